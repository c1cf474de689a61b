"""What do counts further up give away? The exact posterior over a hierarchy, by passing messages upwards.

Level i has the count X_i of the target's group with noise of rate r_i, and Y_i, the count of the d_i other groups that
make up the next level with it: X_(i+1) = X_i + Y_i. The adversary sees x_i, and y_i = Y_i + the sum of d_i noises.
For k in {known, known + 1} the joint weight of (X_1 = k, X_2 = k_2, ...) is

    P[X_1 = k] * prod over i of [ exp(-r_i (x_i - k_i)^2) * S_i(y_i - (k_(i+1) - k_i)) * prior(k_(i+1) | k_i) ]

with S_i the mass of the sum of noise. At two levels with the sum approximated (3.7) and a uniform prior this is S3.4.
Summing from the bottom up costs a convolution per level; no sampling is needed. Each further release of a level
multiplies its factors once more (S5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, inf, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from glasshouse.attack.infer.onelevel import Belief, belief, check_prior, logit, whole
from glasshouse.attack.infer.readings import MOST
from glasshouse.errors import InputError
from glasshouse.mechanism.gaussian import Mass, check_rho, sum_of

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class CountPrior:
    """What the adversary believes of a count one level up, given the target's group's count k: weight of k' >= k.

    `uniform` (to `top`, or without end and then improper), or a given vector of weights from 0 on. A bounded prior is
    normalised for each k.
    """

    weights: tuple[float, ...] | None = None  # from `first` on
    top: int | None = None
    name: str = "uniform"
    first: int = 0

    @staticmethod
    def read(text: str) -> CountPrior:
        """`uniform`, `uniform:10`, `point:1`, or weights from 0 on: `0.5,0.3,0.2`."""
        kind, _, value = text.partition(":")
        try:
            if kind == "uniform":
                top = whole(int(value), "the largest count of a uniform prior", least=0) if value else None
                return CountPrior(top=top, name=text)
            if kind == "point":
                return CountPrior(
                    weights=(1.0,), first=whole(int(value), "the count of a point prior", least=0), name=text
                )
            return CountPrior(weights=tuple(float(word) for word in text.split(",")), name=text).checked()
        except ValueError:
            raise InputError(
                f"unknown prior '{text}'; known: uniform, uniform:10, point:1, or weights 0.5,0.3,0.2"
            ) from None

    def checked(self) -> CountPrior:
        if self.weights is not None and (min(self.weights) < 0 or not 0 < sum(self.weights) < inf):
            raise InputError("the weights of a prior must be 0 or more, and not all 0")
        return self

    def window(self, level: Level, following: Level, below: Counts, implied: Sequence[float] = ()) -> Counts:
        """The counts one level up that can matter, given those below; `implied` are counts that levels above suggest.

        Where neither the prior nor the other groups end them, the two likelihoods multiply to a Gaussian around a
        centre, with rate `both`; what lies further than exp(-90) from its best possible value is left out.
        """
        if level.others == 0:
            return np.unique(below)
        low, high = int(below.min()), int(below.max())
        if self.weights is not None:
            counts = self.first + np.flatnonzero(self.weights)
            return counts[counts >= low] if (counts >= low).any() else np.array([low])
        other = level.rate / level.others
        both = following.rate + other
        if both == 0 and self.top is None:
            raise InputError("rho is 0 at both levels and the prior has no end: nothing bounds the count above")
        if both == 0:
            return np.arange(low, max(low, self.top or 0) + 1)
        centres = [(following.rate * following.noisy + other * (level.noisy_others + k)) / both for k in (low, high)]
        centres += [(following.rate * k + other * (level.noisy_others + low)) / both for k in implied] + list(implied)
        reach = sqrt(90 / both) + 2
        last = max(high, *centres) + reach
        first = min(centres) - reach
        if self.top is not None:
            last, first = min(last, self.top), min(first, self.top - reach)
        start = max(low, floor(first))
        end = max(start, ceil(last))
        if (end - start + 1) * len(below) > MOST:
            raise InputError(
                f"{end - start + 1:,} counts one level up would have to be looked at; the noisy counts conflict"
            )
        return np.arange(start, end + 1)

    def log_weight(self, below: Counts, above: Counts) -> Mass:
        """The logarithm of the weight of each count `above` given each count `below` (columns given rows)."""
        grid = np.broadcast_to(above[None, :], (len(below), len(above)))
        possible = grid >= below[:, None]
        if self.weights is not None:
            table = np.array(self.weights)
            index = np.clip(grid - self.first, 0, len(table) - 1)
            weight = np.where((grid - self.first < len(table)) & (grid >= self.first), table[index], 0.0)
            inside = np.array([table[max(k - self.first, 0) :].sum() for k in below.tolist()])
        elif self.top is not None:
            weight = (grid <= self.top).astype(np.float64)
            inside = np.maximum(self.top - below + 1, 0).astype(np.float64)
        else:
            weight, inside = np.ones(grid.shape), np.ones(len(below))
        with np.errstate(divide="ignore"):
            logs: Mass = np.log(weight) - np.log(np.where(inside > 0, inside, 1.0))[:, None]
        return np.where(possible, logs, -inf)


UNIFORM = CountPrior()


@dataclass(frozen=True)
class Level:
    """One level as the adversary sees it: the noisy count of the target's group, and the sum of the other groups'."""

    rate: float
    noisy: float
    others: int = 0  # groups beside the target's, within the group one level up
    noisy_others: float = 0


@dataclass(frozen=True)
class Posterior:
    """The belief about the target, and about the count at the top: (k, P[X = k]) for every k that matters."""

    belief: Belief
    top: tuple[tuple[int, float], ...]
    joint: tuple[tuple[int, int, float], ...] = ()  # (count of the target's group, count at the top, probability)


def posterior(
    levels: Sequence[Sequence[Level]],
    prior: float,
    known: int = 0,
    *,
    above: CountPrior = UNIFORM,
    noise_sum: str = "approx",
) -> Posterior:
    """The exact belief after seeing every release of every level (finest first), by message passing."""
    check_prior(prior)
    whole(known, "the known count", least=0)
    _check(levels)
    merged = [_merged(level) for level in levels]
    starts = np.array([known, known + 1])
    # one message for each of the two possible counts of the target's group
    counts, message = starts, np.where(np.eye(2, dtype=bool), 0.0, -inf) + _seen(levels[0], starts)[None, :]
    for number, (level, following) in enumerate(pairwise(levels)):
        next_counts = above.window(merged[number], merged[number + 1], counts, _implied(merged[number + 1 :]))
        difference = next_counts[None, :] - counts[:, None]
        step = _others(level, difference, noise_sum) + above.log_weight(counts, next_counts)
        message = logsumexp(message[:, :, None] + step[None, :, :], axis=1) + _seen(following, next_counts)[None, :]
        counts = next_counts
    totals = logsumexp(message, axis=1)
    if not np.isfinite(totals).any():
        raise InputError(f"no count fits: the prior '{above.name}' rules out what the noisy counts allow")
    log_odds = float(logit(prior) + totals[1] - totals[0])
    believed = belief(log_odds, prior)
    joint = message + np.log([[1 - prior], [prior]])
    masses = np.exp(joint - joint.max())  # first the largest: logarithms of absurd releases are huge
    masses /= masses.sum()
    kept = [(int(k), float(mass)) for k, mass in zip(counts, masses.sum(axis=0), strict=True) if mass > 1e-15]
    pairs = [
        (known + has, int(k), float(masses[has, at]))
        for has in (0, 1)
        for at, k in enumerate(counts)
        if masses[has, at] > 1e-15
    ]
    return Posterior(believed, tuple(kept), tuple(pairs))


def _check(levels: Sequence[Sequence[Level]]) -> None:
    """Levels that can be: each is released at least once, and all its releases are about the same groups."""
    if not levels or not all(levels):
        raise InputError("no level is given; expected at least one")
    for number, level in enumerate(levels, start=1):
        if len({one.others for one in level}) > 1:
            raise InputError(f"level {number} has different numbers of other groups; expected the same in each release")
        for one in level:
            if one.others == 0 and one.noisy_others != 0:
                raise InputError(
                    f"level {number} has no other groups, so their noisy sum must be 0, not {one.noisy_others:g}"
                )
    if levels[-1][0].others:
        raise InputError("the last level has no level above it: leave out its other groups")


def _merged(level: Sequence[Level]) -> Level:
    """A level's releases as the one release of Gaussian noise that says the same: rates add up, counts are averaged."""
    rate = sum(one.rate for one in level)
    shares = [one.rate / rate if rate else 1 / len(level) for one in level]
    noisy, others = (
        sum(share * count for share, count in zip(shares, counts, strict=True))
        for counts in ([one.noisy for one in level], [one.noisy_others for one in level])
    )
    return Level(rate, noisy, level[0].others, others)


def _implied(above: Sequence[Level]) -> list[float]:
    """What levels further up suggest for the count at the first of them: their noisy counts less the other groups'."""
    implied, others = [], 0.0
    for level, following in pairwise(above):
        others += level.noisy_others
        implied.append(following.noisy - others)
    return implied


def _seen(level: Sequence[Level], counts: Counts) -> Mass:
    """The logarithm of the likelihood of a level's noisy counts, up to a constant.

    Squares are taken relative to that of the first count, in whole numbers: huge ones would cancel badly.
    """
    first, logs = int(counts[0]), np.zeros(len(counts))
    for one in level:
        twice = 2 * whole(one.noisy, "the noisy count")
        logs -= (
            check_rho(one.rate) * (counts - first).astype(np.float64) * (counts + (first - twice)).astype(np.float64)
        )
    return logs


def _others(level: Sequence[Level], difference: Counts, noise_sum: str) -> Mass:
    """The logarithm of the likelihood of the other groups' noisy sums, given their true sum, up to a constant."""
    if whole(level[0].others, "the number of other groups", least=0) == 0:
        return np.where(difference == 0, 0.0, -inf)
    logs: Mass = np.zeros(difference.shape)
    for one in level:
        noisy = whole(one.noisy_others, "the noisy sum of the other groups")
        if one.rate > 0:
            reference = noisy - int(difference[0, 0])
            logs = logs + sum_of(one.rate, one.others, noise_sum).log_mass(noisy - difference, instead_of=reference)
    return logs
