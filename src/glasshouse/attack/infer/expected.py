"""How much does an adversary learn, and how often are they right, over every release that can happen?

With levels as in `hierarchy`, the log odds that the target has the characteristics are

    logit prior + sum of rate_j (2 u_j - 1) + g,        u_j = x_1j - known,

with a term for each release j of the target's own group, and g for all that was released further up: only g needs sums
over counts. It is worked out from the top down for every release of the levels above at once, by matrix products. For
each of them, the target's own noise is then a tail probability (how often known + 1 is picked) and a mean of a smooth
function of g (the average posterior): no sampling. What the enumeration leaves out is stated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from math import prod

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp

from glasshouse.attack.infer.hierarchy import UNIFORM, CountPrior, Level
from glasshouse.attack.infer.onelevel import TIE, TIES, Belief, check_prior, logit, mean_ratios, true_or_not, whole
from glasshouse.attack.infer.readings import MOST, Draws, Evidence, readings, too_many
from glasshouse.errors import InputError, unknown
from glasshouse.mechanism.gaussian import Mass, check_rho

Counts = NDArray[np.int64]
TAILS = tuple(10.0**-power for power in (16, 14, 12, 10))  # what each noise may leave out: as little as is quick
QUICK = 10_000_000  # terms
ROWS = 2_000_000  # releases that are worked out at a time
PAIRS = 20_000  # and where logarithms are summed one by one


@dataclass(frozen=True)
class Tier:
    """One level as the data holder knows it: its releases' rates, the true count, the other groups in the next one."""

    rates: tuple[float, ...]
    true: int
    others: int = 0


@dataclass(frozen=True)
class Expected:
    """How right the adversary is, over all releases, and what they gain or lose by looking further up."""

    probability: float  # of a correct decision
    ties: float  # of a release that leaves the odds even
    gained: float  # of a release where the levels above correct the decision
    lost: float  # of a release where they spoil the decision
    outside: float  # of releases that were not looked at, counted as wrong
    belief: Belief  # in the truth, on average


@dataclass
class Tally:
    """Adds up what the adversary does with releases of the levels above."""

    alone: float  # how often known + 1 is picked without them
    sums: Mass = field(default_factory=lambda: np.zeros(6))

    def add(self, weight: Mass, picks: Mass, even: Mass, believed: Mass) -> None:
        """Releases with their probability, how often each leads to known + 1, leaves a tie, and the mean belief."""
        more = picks - self.alone
        parts = (np.ones(len(weight)), picks, even, np.maximum(more, 0), np.maximum(-more, 0), believed)
        self.sums += [float(weight @ part) for part in parts]

    def expected(self, has: int, prior: float, tails: float) -> Expected:
        inside, picks, even, up, down, believed = self.sums.tolist()
        right, gained, lost = (picks, up, down) if has else (inside - picks, down, up)
        of_truth = prior if has else 1 - prior
        average = min(believed, 1.0)
        return Expected(right, even, gained, lost, max(0.0, 1 - inside) + tails, Belief(average, average / of_truth))


def expected(
    tiers: Sequence[Tier],
    prior: float,
    known: int = 0,
    *,
    above: CountPrior = UNIFORM,
    noise_sum: str = "approx",
    ties: str = "strict",
) -> Expected:
    """The average belief in the truth and the probability of a correct decision, by enumerating the releases.

    A tie goes to the smaller count (`strict`), to a coin (`half`), or to the larger (`one`).
    """
    check_prior(prior)
    has = true_or_not(tiers[0].true, whole(known, "the known count", least=0))
    if ties not in TIES:
        raise unknown("rule for ties", ties, TIES)
    tiers = checked(tiers)
    evidence = Evidence.of(tiers[0].rates)
    start = logit(prior) + (2 * has - 1) * sum(tiers[0].rates)

    def picked(odds: Mass) -> tuple[Mass, Mass]:
        more, enough = (evidence.above(least - start - odds) for least in (TIE, -TIE))
        return more + TIES[ties] * (enough - more), enough - more

    tally = Tally(float(picked(np.zeros(1))[0][0]))
    believes = MeanBelief(tiers[0].rates)
    seen = _Above.feasible(tiers, known, above, noise_sum)
    for weight, odds in seen.releases():
        toward_truth = logit(prior) + odds if has else -logit(prior) - odds
        tally.add(weight, *picked(odds), believes(toward_truth))
    return tally.expected(has, prior, 4 * seen.tail)


def checked(tiers: Sequence[Tier]) -> list[Tier]:
    """Levels that can be; one that its target's group fills is a further release of that group's count."""
    found: list[Tier] = []
    for number, tier in enumerate(tiers, start=1):
        whole(tier.others, "the number of other groups", least=0)
        if not any(check_rho(rate) for rate in tier.rates):
            raise InputError(f"rho is 0 at level {number}: nothing is released there; expected more than 0")
        if found and tier.true < found[-1].true:
            raise InputError(
                f"the true count one level up is {tier.true}; expected at least {found[-1].true}, "
                "the count of the group in it"
            )
        if found and found[-1].others == 0:
            if tier.true != found[-1].true:
                raise InputError(f"level {number - 1} has no other groups, so level {number} must have the same count")
            found[-1] = replace(tier, rates=found[-1].rates + tier.rates)
        else:
            found.append(tier)
    check_top(found)
    return found


def check_top(tiers: Sequence[Tier]) -> None:
    if tiers[-1].others:
        raise InputError("the last level has no level above it: leave out its other groups")


class MeanBelief:
    """The posterior of the truth averaged over the own noise, for many log odds that the rest of the release gives.

    Its ratio to the prior is smooth: the singularities are pi away from the real line, so on a stretch of length 1 a
    polynomial through 14 Chebyshev points has it to double precision. Stretches are worked out when they are met.
    """

    furthest = 700
    nodes = np.polynomial.chebyshev.chebpts1(14)

    def __init__(self, rates: Sequence[float]) -> None:
        self.rates = rates
        self.met = np.zeros(2 * self.furthest + 1, dtype=bool)
        self.terms = np.zeros((len(self.nodes), len(self.met)))

    def __call__(self, starts: Mass) -> Mass:
        starts = np.clip(starts, -self.furthest, self.furthest)
        stretch = np.floor(starts).astype(np.int64) + self.furthest
        self._meet(np.flatnonzero((np.bincount(stretch, minlength=len(self.met)) > 0) & ~self.met))
        at = 2 * (starts - (stretch - self.furthest)) - 1
        last, before = np.zeros(len(at)), np.zeros(len(at))
        for row in self.terms[:0:-1]:  # Clenshaw's sum
            last, before = row[stretch] + 2 * at * last - before, last
        believed: Mass = expit(starts) * (self.terms[0][stretch] + at * last - before)
        return believed

    def _meet(self, stretches: Counts) -> None:
        if len(stretches):
            points = (stretches[:, None] - self.furthest + (self.nodes[None, :] + 1) / 2).ravel()
            values = mean_ratios(points, self.rates).reshape(len(stretches), -1)
            through = np.polynomial.chebyshev.chebvander(self.nodes, len(self.nodes) - 1)
            self.terms[:, stretches] = np.linalg.solve(through, values.T)
            self.met[stretches] = True


@dataclass(frozen=True)
class _Above:
    """Everything that can be released above the target's own group, and what it does to the odds."""

    tiers: Sequence[Tier]
    own: list[Draws]  # of the target's group at each level
    others: list[Draws]  # of the sum of the other groups at each level
    counts: list[Counts]  # that matter at each level
    above: CountPrior
    tail: float

    @staticmethod
    def feasible(tiers: Sequence[Tier], known: int, above: CountPrior, noise_sum: str) -> _Above:
        """The releases, with as small a tail left out as there is room for."""
        reads = [readings(tier.rates) for tier in tiers[1:]]
        reads += [readings(tier.rates, tier.others, noise_sum) for tier in tiers[:-1]]
        for tail in TAILS:
            terms = prod(len(one.noise.window(tail)) for read in reads for one in read)
            if terms <= QUICK:
                break
        if terms > MOST:
            raise too_many(terms)
        own = [Draws.of(read, tail) for read in reads[: len(tiers) - 1]]
        others = [Draws.of(read, tail) for read in reads[len(tiers) - 1 :]]
        return _Above(tiers, own, others, list(_counts(tiers, own, others, known, above)), above, tail)

    def releases(self) -> Iterator[tuple[Mass, Mass]]:
        """Releases in parts: the probability of each, and the log odds g that it adds."""
        if len(self.tiers) == 1:
            yield np.ones(1), np.zeros(1)
            return
        # what is seen above a level, for each of its counts (rows) and each release of what is above (columns)
        message, weight = np.ones((len(self.counts[-1]), 1)), np.ones(1)
        for number in range(len(self.tiers) - 2, 0, -1):
            own = np.exp(self._own(number))
            if own.shape[1] * message.size > MOST:
                raise too_many(own.shape[1] * message.size)
            message = _scaled((own[:, :, None] * message[:, None, :]).reshape(len(own), -1))
            step = np.exp(self._step(number))
            message = _scaled((step.reshape(-1, step.shape[2]) @ message).reshape(len(step), -1))
            weight = np.outer(self.others[number].mass, np.outer(self.own[number].mass, weight)).ravel()
        own, step = self._own(0), self._step(0)
        rows = max(1, ROWS // (len(weight) * step.shape[1]))
        with np.errstate(divide="ignore"):
            above = np.log(message)
        for at in range(0, own.shape[1], rows):
            logs = (own[:, at : at + rows, None] + above[:, None, :]).reshape(len(own), -1)
            mass = np.outer(self.others[0].mass, np.outer(self.own[0].mass[at : at + rows], weight)).ravel()
            yield mass, self._odds(step, logs).ravel()

    def _own(self, number: int) -> Mass:
        """How well each count one level up (rows) explains each release (columns) of its noisy count, in logarithms."""
        logs = self.own[number].log_weights(self.counts[number + 1] - self.tiers[number + 1].true)
        return _relative(logs, axis=1).T

    def _step(self, number: int) -> Mass:
        """The log weight of a count, a release of the other groups' sum, and the count one level up."""
        low, high = self.counts[number], self.counts[number + 1]
        truth = self.tiers[number + 1].true - self.tiers[number].true
        more = (high[None, :] - low[:, None]) - truth
        shifts = np.arange(more.min(), more.max() + 1)
        weights = self.others[number].log_weights(shifts)[:, more - shifts[0]]  # release, low, high
        logs = np.moveaxis(weights, 0, 1) + self.above.log_weight(low, high)[:, None, :]
        return _relative(logs, axis=(0, 2))

    def _odds(self, step: Mass, logs: Mass) -> Mass:
        """The log odds between the two counts of the target's group; logarithms are summed where numbers underflow."""
        message = np.exp(logs)
        totals = np.stack([np.exp(one) @ message for one in step])
        with np.errstate(divide="ignore", invalid="ignore"):
            totals = np.log(totals)
            possible = np.isfinite(step.max(axis=2))
            small = (totals < -650) & possible[:, :, None]
            where = np.nonzero(small.any(axis=0))
            for some in range(0, len(where[0]), PAIRS):
                row, column = (axis[some : some + PAIRS] for axis in where)
                totals[:, row, column] = logsumexp(step[:, row, :] + logs.T[column], axis=2)
            if not np.isfinite(totals).any(axis=0).all():
                raise InputError(f"no count fits: the prior '{self.above.name}' rules out what the noisy counts allow")
            odds: Mass = totals[1] - totals[0]
        return odds


def _relative(logs: Mass, axis: int | tuple[int, ...]) -> Mass:
    """Logarithms less the largest, which does not matter for odds."""
    largest = logs.max(axis=axis, keepdims=True)
    return logs - np.where(np.isfinite(largest), largest, 0.0)


def _scaled(message: Mass) -> Mass:
    """Each column relative to its largest."""
    largest = message.max(axis=0, keepdims=True)
    scaled: Mass = message / np.where(largest > 0, largest, 1.0)
    return scaled


def _counts(
    tiers: Sequence[Tier], own: Sequence[Draws], others: Sequence[Draws], known: int, above: CountPrior
) -> Iterator[Counts]:
    """The counts that matter at each level for some of the releases: those at the corners, and all between."""
    counts: Counts = np.array([known, known + 1])
    yield counts
    corner: Callable[[Draws, int], list[float]] = lambda draws, true: [true + end for end in draws.ends]  # noqa: E731
    noisy = [corner(draws, tier.true) for draws, tier in zip(own, tiers[1:], strict=True)]
    rest = [corner(draws, up.true - low.true) for draws, (low, up) in zip(others, pairwise(tiers), strict=True)]
    for number, (tier, up) in enumerate(pairwise(tiers)):
        implied = []
        for top in range(number + 1, len(noisy)):
            between = rest[number + 1 : top + 1]
            implied += [noisy[top][0] - sum(y[1] for y in between), noisy[top][1] - sum(y[0] for y in between)]
        windows = [
            above.window(Level(sum(tier.rates), 0, tier.others, y), Level(sum(up.rates), x), counts, implied)
            for x, y in product(noisy[number], rest[number])
        ]
        counts = np.arange(min(w[0] for w in windows), max(w[-1] for w in windows) + 1)
        yield counts
