"""How often is an adversary right who also sees one level up? Exactly, over every release that can happen.

With two levels the log odds of the target having the characteristics are

    logit prior + rate_1 (2 u - 1) + g(x_2, y_1),        u = x_1 - known

where g compares the sums over X_2 for the two possible counts of the target's group: only g needs a sum. So for each
(x_2, y_1) the adversary picks known + 1 from one threshold of x_1 on, and the probability of being right is a sum
of tail probabilities over the window of (x_2, y_1): milliseconds, where the paper draws 10^6 releases with 10^3
Gibbs steps each. The window leaves out a stated share of the probability.

`mode="printed"` approaches the paper's printed two-level numbers, which do not follow from its own posterior S3.4.
They are close to the stationary distribution of a sampler that forgets k_1 <= k_2 when it draws X_1: a Markov chain
on the two values of X_1 with closed-form transition probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from glasshouse.attack.infer.hierarchy import UNIFORM, CountPrior, Level, Posterior, posterior
from glasshouse.attack.infer.onelevel import TIE, TIES, belief, check_prior, logit, smallest_above, whole
from glasshouse.errors import InputError, unknown
from glasshouse.mechanism.gaussian import MAX_EXACT, DiscreteGaussian, Mass, check_rho, sum_of

Whole = NDArray[np.int64]
MODES = ("exact", "printed")
MOST = 50_000_000  # terms that are added up at once


@dataclass(frozen=True)
class TwoLevels:
    """An adversary who sees the noisy count of a group, of the group above, and of the other groups in it."""

    rate1: float
    rate2: float
    others: int
    prior: float = 0.5
    known: int = 0
    above: CountPrior = UNIFORM
    noise_sum: str = "approx"
    mode: str = "exact"

    def __post_init__(self) -> None:
        check_prior(self.prior)
        for rate in (self.rate1, self.rate2):
            check_rho(rate)
        whole(self.others, "the number of other groups", least=1)
        whole(self.known, "the known count", least=0)
        if self.mode not in MODES:
            raise unknown("mode", self.mode, MODES)
        if self.noise_sum not in ("exact", "approx"):
            raise unknown("sum of noise", self.noise_sum, ("exact", "approx"))

    def posterior(self, noisy1: float, noisy2: float, noisy_others: float) -> Posterior:
        """The belief about X_1 and X_2 after one release."""
        x1, x2, y1 = (whole(x, "the noisy count") for x in (noisy1, noisy2, noisy_others))
        if self.mode == "exact":
            levels = [Level(self.rate1, x1, self.others, y1), Level(self.rate2, x2)]
            return posterior(levels, self.prior, self.known, above=self.above, noise_sum=self.noise_sum)
        seen = self.seen(np.array([x2]), np.array([y1]))
        believed = belief(float(seen.log_odds(np.array([x1]))[0]), self.prior)
        given = np.exp(seen.given[:, 0, :])
        mixed = (1 - believed.posterior) * given[0] + believed.posterior * given[1]
        kept = [(int(k), float(mass)) for k, mass in zip(seen.counts, mixed, strict=True) if mass > 1e-15]
        return Posterior(believed, tuple(kept))

    def seen(self, x2: Whole, y1: Whole) -> Seen:
        """What releases of (x_2, y_1), given as two arrays of equal length, say about X_2."""
        counts, below = self._counts(x2, y1)
        _refuse_size(len(x2) * len(counts))
        sums = sum_of(self.rate1, self.others, self.noise_sum)
        own = -self.rate2 * np.square(x2[:, None] - counts[None, :].astype(np.float64))
        others = np.stack([sums.log_mass(y1[:, None] - (counts[None, :] - k)) for k in below])
        logs: Mass = others + own[None] + self.above.log_weight(below, counts)[:, None, :]
        totals = logsumexp(logs, axis=2)
        if not np.isfinite(totals).any(axis=0).all():
            raise InputError(f"no count fits: the prior '{self.above.name}' rules out what the noisy counts allow")
        given = logs - np.where(np.isfinite(totals), totals, 0.0)[:, :, None]
        return Seen(self, counts, given, totals[1] - totals[0], others[1] - others[0])

    def _counts(self, x2: Whole, y1: Whole) -> tuple[Whole, Whole]:
        """The counts of X_2 that matter for some of these releases, and the two of X_1."""
        below = np.array([self.known, self.known + 1])
        corners = [
            self.above.window(Level(self.rate1, 0, self.others, int(y)), Level(self.rate2, int(x)), below)
            for x in (x2.min(), x2.max())
            for y in (y1.min(), y1.max())
        ]
        return np.arange(min(c[0] for c in corners), max(c[-1] for c in corners) + 1), below

    def above_on_grid(self, x2: Whole, y1: Whole) -> Mass:
        """The log odds that the level above adds, for every x_2 with every y_1 (exact mode).

        The weights of X_2 given the release are a part in (x_2, X_2) times one in (y_1, X_2), so the sum over X_2 is a
        matrix product. Where that underflows, far from any likely release, logarithms are summed instead.
        """
        counts, below = self._counts(x2, y1)
        _refuse_size(len(counts) * (len(x2) + len(y1)) + len(x2) * len(y1))
        own = np.exp(-self.rate2 * np.square(x2[:, None] - counts[None, :].astype(np.float64)))
        sums = sum_of(self.rate1, self.others, self.noise_sum)
        distances = np.arange(y1.min() - counts[-1] + below[0], y1.max() - counts[0] + below[1] + 1)
        masses = np.exp(sums.log_mass(distances))
        prior = np.exp(self.above.log_weight(below, counts))
        totals = [
            (own * prior[index]) @ masses[y1[None, :] - counts[:, None] + k - distances[0]]
            for index, k in enumerate(below)
        ]
        if min(total.min() for total in totals) > 1e-290:
            odds: Mass = np.log(totals[1]) - np.log(totals[0])
            return odds
        pairs = np.repeat(x2, len(y1)), np.tile(y1, len(x2))
        return self.seen(*pairs).above.reshape(len(x2), len(y1))


@dataclass(frozen=True)
class Seen:
    """Releases of (x_2, y_1) worked out: what is left is the odds as a function of x_1."""

    attack: TwoLevels
    counts: Whole  # of X_2 that matter
    given: Mass  # log probability of X_2 given X_1: two values of X_1 x release x X_2
    above: Mass  # log odds that the level above adds, for each release
    others: Mass  # log odds that the other groups' sum adds, for each release and X_2

    def log_odds(self, x1: Whole) -> Mass:
        """The log odds of known + 1 for each release, with one x_1 for each."""
        attack = self.attack
        evidence = logit(attack.prior) + attack.rate1 * (2 * (x1 - attack.known).astype(np.float64) - 1)
        if attack.mode == "exact":
            return evidence + self.above
        # Where the chain of draws settles: up-crossings over down-crossings. X_2 is drawn given X_1 as it should be,
        # X_1 given X_2 without minding that X_1 <= X_2.
        odds = evidence[:, None] + self.others
        up = logsumexp(self.given[0] - np.logaddexp(0, -odds), axis=1)
        down = logsumexp(self.given[1] - np.logaddexp(0, odds), axis=1)
        # a value of X_1 that the prior on X_2 rules out is never drawn
        return np.where(
            np.isfinite(self.above),
            np.subtract(up, down, where=np.isfinite(up) | np.isfinite(down), out=np.zeros_like(up)),
            self.above,
        )

    def first(self, least: float, low: int, high: int) -> Whole:
        """For each release the smallest x_1 in low..high whose log odds are more than `least`; high + 1 if none.

        The odds grow with x_1, so halving finds it: the printed mode has no formula for it.
        """
        lows, highs = np.full(self.above.shape, low), np.full(self.above.shape, high + 1)
        for _ in range((high - low + 2).bit_length()):
            middle = (lows + highs) // 2
            enough = (self.log_odds(np.minimum(middle, high)) > least) | (middle > high)
            lows, highs = np.where(enough, lows, middle + 1), np.where(enough, middle, highs)
            lows = np.minimum(lows, highs)
        return highs


@dataclass(frozen=True)
class Correct:
    """How often the adversary is right, and what they gain or lose by looking one level up."""

    probability: float
    ties: float  # probability of a release that leaves the odds even
    gained: float  # of a release where the level above corrects the decision
    lost: float  # of a release where it spoils the decision
    outside: float  # of releases outside the window, counted as wrong: what enumeration leaves out


def correct_decision(
    attack: TwoLevels, *, true2: int, true1: int | None = None, ties: str = "strict", tail: float = 1e-16
) -> Correct:
    """The probability that the adversary picks the true count, by enumerating the releases.

    `true1` is known + 1 unless said otherwise. A tie goes to the smaller count (`strict`), to a coin (`half`), or to
    the larger (`one`).
    """
    if ties not in TIES:
        raise unknown("rule for ties", ties, TIES)
    truth = attack.known + 1 if true1 is None else true1
    if truth not in (attack.known, attack.known + 1):
        raise InputError(f"the true count is {truth}; expected {attack.known} or {attack.known + 1}")
    if attack.rate1 == 0 or attack.rate2 == 0:
        raise InputError("rho is 0 at one of the two levels: nothing is released there; expected more than 0")
    if true2 < truth:
        raise InputError(
            f"the true count one level up is {true2}; expected at least {truth}, the count of the group in it"
        )
    noise1, noise2 = DiscreteGaussian(attack.rate1), DiscreteGaussian(attack.rate2)
    upper = noise2.window(tail)
    # nature adds the noises one by one, whatever is believed
    sums = sum_of(attack.rate1, attack.others, "exact" if attack.others <= MAX_EXACT else "approx")
    other = sums.window(tail)
    other_mass = np.exp(sums.log_mass(other))
    x2, y1 = true2 + upper, true2 - truth + other
    weight = np.outer(noise2.mass(upper), other_mass).ravel()
    reach = noise1.radius(tail)
    picks, even = (
        noise1.survival(first - truth)
        for first in _thresholds(attack, x2, y1, range(truth - reach, truth + reach + 1), (TIE, -TIE))
    )
    even = np.maximum(even - picks, 0.0)
    picks = picks + TIES[ties] * even
    alone = noise1.at_least(attack.known + smallest_above(0.5 - logit(attack.prior) / (2 * attack.rate1)) - truth)
    has = truth == attack.known + 1
    change = weight @ np.maximum(picks - alone, 0), weight @ np.maximum(alone - picks, 0)
    gained, lost = (float(x) for x in (change if has else change[::-1]))
    share = float(weight @ picks)
    inside = float(weight.sum())
    return Correct(
        share if has else inside - share, float(weight @ even), gained, lost, max(0.0, 1 - inside) + 4 * tail
    )


def _refuse_size(terms: int) -> None:
    if terms > MOST:
        raise InputError(
            f"so little rho spreads the noise that {terms:,} terms would have to be added up (at most {MOST:,}); "
            "an adversary learns next to nothing there"
        )


def _thresholds(attack: TwoLevels, x2: Whole, y1: Whole, own: range, least: Sequence[float]) -> list[Whole]:
    """For every x_2 with every y_1 the smallest x_1 whose log odds are more than each of some values."""
    if attack.mode == "printed":
        seen = attack.seen(np.repeat(x2, len(y1)), np.tile(y1, len(x2)))
        return [seen.first(value, own[0], own[-1]) for value in least]
    # logit prior + rate (2 u - 1) + above > value
    alone = logit(attack.prior) + attack.above_on_grid(x2, y1).ravel()
    bounds = [attack.known + 0.5 + (value - alone) / (2 * attack.rate1) for value in least]
    return [np.clip(np.floor(bound) + 1, own[0], own[-1] + 1).astype(np.int64) for bound in bounds]


def decision_map(attack: TwoLevels, x1: range, x2: range, y1: range) -> NDArray[np.int8]:
    """The decision for every combination (figures 4, 10, 11): 1 for known + 1, 0 for known, -1 for a tie."""
    grid = [axis.ravel() for axis in np.meshgrid(np.array(x1), np.array(x2), np.array(y1), indexing="ij")]
    odds = attack.seen(grid[1], grid[2]).log_odds(grid[0])
    decisions = np.where(np.abs(odds) < TIE, -1, odds > 0).astype(np.int8)
    return decisions.reshape(len(x1), len(x2), len(y1))


def window_mass(attack: TwoLevels, x2: range, y1: range, *, true2: int, true1: int) -> float:
    """The probability that a release falls into a window of (x2, y1)."""
    upper = DiscreteGaussian(attack.rate2).mass(np.array(x2) - true2).sum()
    sums = sum_of(attack.rate1, attack.others, "exact")
    return float(upper * np.exp(sums.log_mass(np.array(y1) - (true2 - true1))).sum())
