"""What noise is added to a count? The discrete Gaussian, exact to double precision from rho 1e-6 to 100.

The mechanism of a count with privacy loss rho adds an integer n with probability exp(-rho n^2) / Z(rho): the discrete
Gaussian with parameter s = 1 / (2 rho), so that adding or removing one record costs rho. Where a record that changes
moves two counts (the production system of 2020), the noise must have parameter 1 / rho for the same price;
`rate` is the coefficient of n^2 in either case, and everything else works with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil, exp, inf, log, pi, sqrt

import numpy as np
from numpy.typing import NDArray

from glasshouse.errors import InputError, unknown

Mass = NDArray[np.float64]

# How many counts of one table a neighbouring data set may differ in: the squared distance between their histograms.
NEIGHBOURS = {"add-remove": 1, "change-one": 2}
_DIRECT = 40_000_000  # multiplications up to which sums of noise are convolved without a Fourier transform


def rate_of(rho: float, neighbours: str = "add-remove") -> float:
    """The coefficient of n^2 in the noise that costs rho under a neighbour relation."""
    if neighbours not in NEIGHBOURS:
        raise unknown("neighbour relation", neighbours, NEIGHBOURS)
    return check_rho(rho) / NEIGHBOURS[neighbours]


def check_rho(rho: float) -> float:
    """A privacy loss that makes sense: a finite number from 0 up."""
    if not 0 <= rho < inf:  # false for NaN too
        raise InputError(f"rho is {rho}; expected a number from 0 up")
    if rho > 1e6:
        raise InputError(f"rho is {rho:g}; above 1e6 the noise is 0 for every purpose; expected less")
    return rho


@dataclass(frozen=True)
class DiscreteGaussian:
    """Integer noise with probability proportional to exp(-rate n^2)."""

    rate: float

    def __post_init__(self) -> None:
        if not 1e-9 <= self.rate < inf:
            raise InputError(f"noise with rate {self.rate:g} cannot be computed with; expected at least 1e-9")

    @cached_property
    def log_total(self) -> float:
        """The logarithm of Z, the sum of exp(-rate n^2) over all integers.

        The sum itself converges at once for large rates; for small ones its dual by Poisson summation does:
        Z = sqrt(pi / rate) * sum of exp(-pi^2 k^2 / rate).
        """
        if self.rate >= pi:
            return log(1 + 2 * sum(exp(-self.rate * n * n) for n in range(1, 6)))
        return 0.5 * log(pi / self.rate) + log(1 + 2 * sum(exp(-((pi * k) ** 2) / self.rate) for k in range(1, 6)))

    def log_mass(self, noise: NDArray[np.int64] | NDArray[np.float64] | int) -> Mass:
        """The logarithm of the probability of a noise value."""
        return -self.rate * np.square(np.asarray(noise, np.float64)) - self.log_total

    def mass(self, noise: NDArray[np.int64] | int) -> Mass:
        """The probability of a noise value."""
        return np.exp(self.log_mass(noise))

    def radius(self, tail: float = 1e-18) -> int:
        """How far from 0 one must look so that less than `tail` of the probability lies beyond."""
        return max(1, ceil(sqrt((-log(tail) + 2) / self.rate)))

    def window(self, tail: float = 1e-18) -> NDArray[np.int64]:
        """The noise values that matter."""
        radius = self.radius(tail)
        return np.arange(-radius, radius + 1)

    def at_least(self, bound: float) -> float:
        """The probability that the noise is at least `bound`, which need not be whole (and may be infinite)."""
        return float(self.survival(np.array([bound]))[0])

    def survival(self, bounds: NDArray[np.float64] | NDArray[np.int64]) -> Mass:
        """The probability that the noise is at least each of the bounds."""
        values = self.window()
        first = np.clip(np.ceil(bounds), values[0], values[-1] + 1).astype(np.int64) - values[0]
        tails: Mass = self._from[first]
        return tails

    @cached_property
    def _from(self) -> Mass:
        """The probability of each window value or a larger one, added up from the small end."""
        mass = self.mass(self.window())
        return np.append(np.cumsum(mass[::-1])[::-1], 0.0)

    @cached_property
    def variance(self) -> float:
        """Close to 1 / (2 rate) while that is above 1/2; the window is wide enough for double precision."""
        values = self.window(1e-30)
        return float(np.sum(np.square(values, dtype=np.float64) * self.mass(values)))


@dataclass(frozen=True)
class NoiseSum:
    """The noise of a sum of counts: probabilities of the values around 0, and a formula for those too far to matter."""

    masses: Mass
    beyond: DiscreteGaussian

    @property
    def values(self) -> NDArray[np.int64]:
        radius = len(self.masses) // 2
        return np.arange(-radius, radius + 1)

    @cached_property
    def _logs(self) -> Mass:
        with np.errstate(divide="ignore"):
            return np.log(self.masses)

    def log_mass(self, noise: NDArray[np.int64]) -> Mass:
        """The logarithm of the probability of a noise value."""
        radius = len(self.masses) // 2
        index = np.clip(np.asarray(noise) + radius, 0, len(self.masses) - 1)
        return np.where(np.abs(noise) <= radius, self._logs[index], self.beyond.log_mass(noise))


@lru_cache(maxsize=64)
def sum_of(rate: float, count: int, kind: str = "exact") -> NoiseSum:
    """The noise of a sum of `count` independent counts, at least one.

    `exact` convolves; `approx` is the single discrete Gaussian with `count` times the variance (paper 001, eq. 3.7).
    Exact sums are cut off where 1e-40 of the probability is left; further out the approximation stands in.
    """
    wide = DiscreteGaussian(rate / count)
    if kind == "approx":
        return NoiseSum(wide.mass(wide.window()), wide)
    if kind != "exact":
        raise unknown("sum of noise", kind, ("exact", "approx"))
    one = DiscreteGaussian(rate)
    power, result, left = one.mass(one.window(1e-40)), np.ones(1), count
    while left:  # by squaring
        if left & 1:
            result = _trimmed(result, power)
        left >>= 1
        if left:
            power = _trimmed(power, power)
    return NoiseSum(result, wide)


def approximation_error(rate: float, count: int) -> float:
    """The total variation distance between the exact sum of noise and its approximation by one discrete Gaussian."""
    exact, approx = sum_of(rate, count), sum_of(rate, count, "approx")
    values = max(exact.values, approx.values, key=len)
    return float(0.5 * np.abs(np.exp(exact.log_mass(values)) - np.exp(approx.log_mass(values))).sum())


def _trimmed(one: Mass, other: Mass) -> Mass:
    """The convolution of two symmetric distributions, without ends that hold nothing (1e-40 of the probability)."""
    # directly, all terms are positive and relative accuracy is kept in the tails too; the transform keeps the absolute
    if len(one) * len(other) <= _DIRECT:
        both = np.convolve(one, other)
    else:
        from scipy.signal import fftconvolve  # late: a heavy import, and seldom needed

        both = np.maximum(fftconvolve(one, other), 0.0)
    edge = int(np.searchsorted(np.cumsum(both), 1e-40))
    return both[edge : len(both) - edge] if edge else both
