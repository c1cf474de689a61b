"""What does an adversary do who also sees one level up, as in the paper? Exactly, or as the paper prints it.

With two levels the log odds of the target having the characteristics are

    logit prior + rate_1 (2 u - 1) + g(x_2, y_1),        u = x_1 - known

where g compares the sums over X_2 for the two possible counts of the target's group. `expected` adds up over every
release that can happen: milliseconds, where the paper draws 10^6 releases with 10^3 Gibbs steps each.

`mode="printed"` approaches the paper's printed two-level numbers, which do not follow from its own posterior S3.4.
They are close to the stationary distribution of a sampler that forgets k_1 <= k_2 when it draws X_1: a Markov chain
on the two values of X_1 with closed-form transition probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp

from glasshouse.attack.infer.expected import TAILS, Expected, Tally, Tier, checked, expected
from glasshouse.attack.infer.hierarchy import UNIFORM, CountPrior, Level, Posterior, posterior
from glasshouse.attack.infer.onelevel import TIE, TIES, belief, check_prior, decide, logit, true_or_not, whole
from glasshouse.attack.infer.readings import FINE, MOST, too_many
from glasshouse.errors import InputError, unknown
from glasshouse.mechanism.gaussian import MAX_EXACT, DiscreteGaussian, Mass, check_rho, sum_of

Whole = NDArray[np.int64]
MODES = ("exact", "printed")


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
            levels = [[Level(self.rate1, x1, self.others, y1)], [Level(self.rate2, x2)]]
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


def correct_decision(attack: TwoLevels, *, true2: int, true1: int | None = None, ties: str = "strict") -> Expected:
    """The probability that the adversary picks the true count, and their average belief in it.

    `true1` is known + 1 unless said otherwise.
    """
    truth = attack.known + true_or_not(true1, attack.known)
    tiers = [Tier((attack.rate1,), truth, attack.others), Tier((attack.rate2,), true2)]
    if attack.mode == "exact":
        return expected(tiers, attack.prior, attack.known, above=attack.above, noise_sum=attack.noise_sum, ties=ties)
    return _printed(attack, checked(tiers), ties)


def _printed(attack: TwoLevels, tiers: Sequence[Tier], ties: str) -> Expected:
    """The same for the sampler that forgets: its odds have no formula in x_1, so every x_1 is looked at."""
    truth, has = tiers[0].true, tiers[0].true - attack.known
    noise1, noise2 = DiscreteGaussian(attack.rate1), DiscreteGaussian(attack.rate2)
    sums = sum_of(attack.rate1, attack.others, "exact" if attack.others <= MAX_EXACT else "approx")
    own, upper, other = noise1.window(TAILS[0]), noise2.window(TAILS[0]), sums.window(TAILS[0])
    weights = np.outer(noise2.mass(upper), np.exp(sums.log_mass(other)))
    at2, at1 = np.nonzero(weights > FINE)
    weight = weights[at2, at1]
    seen = attack.seen(tiers[1].true + upper[at2], tiers[1].true - truth + other[at1])
    picks, even, believed = np.zeros((3, len(weight)))
    for x1, mass in zip(truth + own, noise1.mass(own), strict=True):
        odds = seen.log_odds(np.full(len(weight), x1))
        tied = np.abs(odds) <= TIE
        even += mass * tied
        picks += mass * np.where(tied, TIES[ties], odds > 0)
        believed += mass * expit(odds if has else -odds)
    alone = decide([attack.rate1], attack.prior, attack.known, ties=ties, truth=truth).probability
    tally = Tally(alone if has else 1 - alone)
    tally.add(weight, picks, even, believed)
    return tally.expected(has, attack.prior, 4 * TAILS[0])


def _refuse_size(terms: int) -> None:
    if terms > MOST:
        raise too_many(terms)


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
