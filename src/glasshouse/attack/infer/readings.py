"""What do several noisy versions of one count say together?

Releases of one count, with noises n_j of rates r_j, weigh another count that is higher by delta with
exp(-sum of r_j (n_j - delta)^2), up to a factor. Releases of one rate enter through the sum of their noises alone, so
any number of them is a single reading: exp(-r / c (N - c delta)^2), N the sum of c noises. The same holds for the sum
of several groups' counts, as far as the adversary takes its noise for Gaussian (paper 001, eq. 3.7).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from glasshouse.errors import InputError
from glasshouse.mechanism.gaussian import MAX_EXACT, Mass, NoiseSum, sum_of

MOST = 50_000_000  # terms that are added up at once
SHORT = 100_000  # values that one list may have where it would do alone
FINE = 1e-18  # the probability that a list of values may leave out
FINEST = 1e-300  # and where one list is all there is


@dataclass(frozen=True)
class Reading:
    """Releases of one rate, taken together: the noise that is in them, and how the adversary weighs it."""

    noise: NoiseSum
    believed: NoiseSum
    releases: int


def readings(rates: Sequence[float], counts: int = 1, noise_sum: str = "approx") -> list[Reading]:
    """What releases of a sum of so many counts come to; those with rate 0 tell nothing."""
    found = []
    for rate, releases in Counter(rate for rate in rates if rate > 0).items():
        believed = sum_of(rate, counts, noise_sum)
        together = releases if len(believed.factor) == 1 else 1  # ripples of whole numbers: each on its own
        noises = counts * together
        # nature adds the noises one by one, whatever is believed
        noise = sum_of(rate, noises, "exact" if noises <= MAX_EXACT else "approx")
        believed = sum_of(rate, noises, "approx") if len(believed.factor) == 1 else believed
        found += [Reading(noise, believed, together)] * (releases // together)
    return found


@dataclass(frozen=True)
class Draws:
    """Every release of a count that can happen, but for a stated tail: its probability, and the noises in it."""

    read: tuple[Reading, ...]
    noises: tuple[NDArray[np.int64], ...]  # an array for each reading
    mass: Mass

    @staticmethod
    def of(read: Sequence[Reading], tail: float) -> Draws:
        windows = [one.noise.window(tail) for one in read]
        if prod(len(window) for window in windows) > MOST:
            raise too_many(prod(len(window) for window in windows))
        grid = [axis.ravel() for axis in np.meshgrid(*windows, indexing="ij")] if windows else []
        logs = sum((one.noise.log_mass(noise) for one, noise in zip(read, grid, strict=True)), np.zeros(1))
        return Draws(tuple(read), tuple(grid), np.exp(logs))

    def log_weights(self, more: NDArray[np.int64]) -> Mass:
        """How the adversary weighs counts that are `more` than the truth, for each release: rows are releases."""
        logs: Mass = np.zeros((len(self.mass), len(more)))
        for one, noise in zip(self.read, self.noises, strict=True):
            logs = logs + one.believed.log_mass(noise[:, None] - one.releases * more[None, :])
        return logs

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The least and the most that the releases suggest, as far from the truth."""
        rate = sum(one.believed.rate * one.releases**2 for one in self.read)
        suggested = sum(
            one.believed.rate * one.releases * noise for one, noise in zip(self.read, self.noises, strict=True)
        )
        return float(np.min(suggested) / rate), float(np.max(suggested) / rate)


@dataclass(frozen=True)
class Evidence:
    """The sum of 2 rate_j n_j over independent noises n_j: what moves the odds, in two lists that add up to it.

    All values of the one list with all of the other would be the whole distribution; its tails need only the lists.
    """

    values: Mass
    mass: Mass
    ordered: Mass
    tails: Mass  # the probability of each value of the ordered list or a larger one, and 0

    @staticmethod
    def of(rates: Sequence[float]) -> Evidence:
        read = readings(rates)
        tail = FINEST if len(read) == 1 else FINE
        halves: list[list[Reading]] = [[], []]
        sizes = [1, 1]
        for one in sorted(read, key=lambda one: one.noise.rate):  # the widest first
            size = len(one.noise.window(tail))
            half = 0 if sizes[0] * size <= SHORT else sizes.index(min(sizes))
            halves[half].append(one)
            sizes[half] *= size
        (values, mass), (ordered, other) = (listed(half, tail) for half in halves[::-1])
        order = np.argsort(ordered, kind="stable")
        tails = np.append(np.cumsum(other[order][::-1])[::-1], 0.0)
        return Evidence(values, mass, ordered[order], tails)

    def above(self, bounds: Mass) -> Mass:
        """The probability that the sum is more than each of the bounds."""
        if len(self.values) * len(bounds) > 20 * MOST:
            raise too_many(len(self.values) * len(bounds))
        found = np.zeros(len(bounds))
        if len(self.values) > len(bounds):
            for at, bound in enumerate(bounds):
                found[at] = self.mass @ self.tails[np.searchsorted(self.ordered, bound - self.values, side="right")]
            return found
        for value, mass in zip(self.values, self.mass, strict=True):
            found += mass * self.tails[np.searchsorted(self.ordered, bounds - value, side="right")]
        return found


def listed(read: Sequence[Reading], tail: float) -> tuple[Mass, Mass]:
    """Every value of the sum of 2 rate_j n_j, but for the tails, and its probability."""
    draws = Draws.of(read, tail)
    values: Mass = np.zeros(1)
    for one, noise in zip(read, draws.noises, strict=True):
        values = values + 2 * one.believed.rate * one.releases * noise
    return values, draws.mass


def too_many(terms: int) -> InputError:
    return InputError(
        f"so little rho, or so many different releases and levels, spread the noise over {terms:,} terms that would "
        f"have to be added up (at most {MOST:,}); ask about fewer releases or levels, or leave out those with the "
        "least rho: an adversary learns next to nothing there"
    )
