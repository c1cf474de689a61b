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
MAX_EXACT = 2_000  # counts in an exact sum of noise, where it differs from one discrete Gaussian
MAX_WINDOW = 20_000_000
_FAR = 1e-300  # tails are summed from here


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
        if not 1e-15 <= self.rate < inf:
            raise InputError(f"noise with rho {self.rate:g} is wider than any count; expected more rho")

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
        if radius > MAX_WINDOW:
            raise InputError(
                f"rho {self.rate:g} spreads the noise over {2 * radius:,} values; nothing is learnt from it"
            )
        return np.arange(-radius, radius + 1)

    def at_least(self, bound: float) -> float:
        """The probability that the noise is at least `bound`, which need not be whole (and may be infinite)."""
        return float(self.survival(np.array([bound]))[0])

    def survival(self, bounds: NDArray[np.float64] | NDArray[np.int64]) -> Mass:
        """The probability that the noise is at least each of the bounds."""
        radius = self.radius(_FAR)
        first = np.clip(np.ceil(bounds), -radius, radius + 1).astype(np.int64) + radius
        tails: Mass = self._from[first]
        return tails

    @cached_property
    def _from(self) -> Mass:
        """The probability of each window value or a larger one, added up from the small end."""
        mass = self.mass(self.window(_FAR))
        return np.append(np.cumsum(mass[::-1])[::-1], 0.0)

    @cached_property
    def cumulative(self) -> Mass:
        """The probability of each value of the window or a smaller one, ending at 1: what a simulation draws with."""
        summed = np.cumsum(self.mass(self.window()))
        return np.asarray(summed / summed[-1])

    @cached_property
    def variance(self) -> float:
        """Close to 1 / (2 rate) while that is above 1/2; the window is wide enough for double precision."""
        values = self.window(1e-30)
        return float(np.sum(np.square(values, dtype=np.float64) * self.mass(values)))


@dataclass(frozen=True)
class NoiseSum:
    """The noise of a sum of d counts: P[n] = exp(-rate n^2 / d + factor[n mod d]), for every n.

    Moving d units, one in each count, multiplies all terms of the sum alike, so what is left besides the Gaussian is
    periodic. No table of masses is needed, and no tail is cut off.
    """

    rate: float  # of the sum: that of one count over d
    factor: Mass  # one number where the sum is, to double precision, itself a discrete Gaussian

    def log_mass(self, noise: NDArray[np.int64], *, instead_of: int = 0) -> Mass:
        """The logarithm of the probability of a noise value, plus rate * instead_of^2.

        Differences of huge squares are taken in whole numbers: with `instead_of` near the values, nothing cancels.
        """
        values = np.asarray(noise, np.int64)
        squares = (values - instead_of).astype(np.float64) * (values + instead_of).astype(np.float64)
        return self.factor[values % len(self.factor)] - self.rate * squares

    def radius(self, tail: float = 1e-18) -> int:
        """How far from 0 one must look; the tails of a sum are no heavier than those of the Gaussian part."""
        return DiscreteGaussian(self.rate).radius(tail)

    def window(self, tail: float = 1e-18) -> NDArray[np.int64]:
        """The noise values that matter."""
        return DiscreteGaussian(self.rate).window(tail)


@lru_cache(maxsize=64)
def sum_of(rate: float, count: int, kind: str = "exact") -> NoiseSum:
    """The noise of a sum of `count` independent counts, at least one.

    `approx` is the single discrete Gaussian with `count` times the variance (paper 001, eq. 3.7). `exact` is the true
    sum. By Poisson summation the two differ by a factor of at most 1 + 2 d exp(-pi^2 (d - 1) / (d rate)); where that is
    1 in double precision they are the same.
    """
    if kind not in ("exact", "approx"):
        raise unknown("sum of noise", kind, ("exact", "approx"))
    wide = DiscreteGaussian(rate / count)
    same = 2 * count * exp(-(pi**2) * (count - 1) / (count * rate)) < 1e-17
    if kind == "approx" or count == 1 or same:
        return NoiseSum(wide.rate, np.array([-wide.log_total]))
    if count > MAX_EXACT:
        raise InputError(
            f"exact sums are offered for up to {MAX_EXACT:,} groups at rho {rate:g}; use the approximation (approx)"
        )
    one = np.array([-DiscreteGaussian(rate).log_total])
    power, result, left = one, None, count
    while left:  # by doubling
        if left & 1:
            result = power if result is None else _added(rate, result, power)
        left >>= 1
        if left:
            power = _added(rate, power, power)
    assert result is not None
    return NoiseSum(wide.rate, result)


def _added(rate: float, one: Mass, other: Mass) -> Mass:
    """The periodic factor of the sum of two sums of j and k counts.

    a^2 / j + (n - a)^2 / k = n^2 / (j + k) + (a - a0)^2 (1 / j + 1 / k) with a0 = n j / (j + k): so for each n in a
    period, sum over a near a0. The factors themselves fall by up to rate (j + k) / 4, hence the width.
    """
    j, k = len(one), len(other)
    narrow = rate * (1 / j + 1 / k)
    reach = ceil(sqrt((60 + rate * (j + k) / 4) / narrow)) + 1
    n = np.arange(j + k)
    centre = n * j / (j + k)
    a = np.floor(centre).astype(np.int64)[:, None] + np.arange(-reach, reach + 2)[None, :]
    terms = one[a % j] + other[(n[:, None] - a) % k] - narrow * np.square(a - centre[:, None])
    top = terms.max(axis=1)
    factor: Mass = top + np.log(np.exp(terms - top[:, None]).sum(axis=1))
    return factor


def approximation_error(rate: float, count: int) -> float:
    """The total variation distance between the exact sum of noise and its approximation by one discrete Gaussian."""
    values = sum_of(rate, count, "approx").window(1e-30)
    exact, approx = (np.exp(sum_of(rate, count, kind).log_mass(values)) for kind in ("exact", "approx"))
    return float(0.5 * np.abs(exact - approx).sum())
