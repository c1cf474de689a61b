"""What does one noisy count give away? Posterior, risk and decision of an adversary who knows everyone but the target.

The adversary knows that `known` others share the target's characteristics c and believes with probability `prior`
that the target has them too. The true count is known + 1; the release is that plus discrete Gaussian noise. With
u = noisy - known, Bayes' rule (eq. 3.1) is one line:

    logit posterior = logit prior + rate (2 u - 1)

Nothing depends on `known` but through u. The same holds, with another meaning of the prior, for the attacks of S1.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, inf, log, log1p, pi, prod, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from glasshouse.attack.infer.readings import FINE, SHORT, Evidence, listed, readings
from glasshouse.errors import InputError, unknown
from glasshouse.mechanism.gaussian import DiscreteGaussian, check_rho

Complex = NDArray[np.complex128]

# Attacks that are the same in mathematics; what changes is what the prior is a belief about (paper 001, S1.2).
ATTACKS = {
    "characteristics": "the target has characteristics c",
    "participation": "the target filled out the census at all",
    "honesty": "the target reported the correct information",
    "attribute": "the target's one unknown attribute has its true value",
}


TIE = 1e-12  # log odds this close to 0 are a tie: no adversary who computes with doubles could tell
TIES = {"strict": 0.0, "half": 0.5, "one": 1.0}  # how often a tie goes to known + 1


@dataclass(frozen=True)
class Belief:
    """What an adversary believes after the release, and how many times more than before."""

    posterior: float
    ratio: float


@dataclass(frozen=True)
class Decision:
    """How often an adversary who picks the likelier value is right, and the probability of a tie.

    One noisy count: known + 1 is picked from the threshold on.
    """

    probability: float
    ties: float
    threshold: int | None


def check_prior(prior: float) -> float:
    """A belief that can be changed by evidence."""
    if not 0 < prior < 1:  # false for NaN too
        raise InputError(f"the prior is {prior}; expected a probability between 0 and 1, not 0 or 1 themselves")
    return prior


def whole(number: float, what: str, least: int | None = None) -> int:
    """A whole number, as released counts are."""
    if number != number or number in (inf, -inf) or number != floor(number):
        raise InputError(f"{what} is {number}; expected a whole number (the mechanism releases whole numbers)")
    if abs(number) > 10**15:
        raise InputError(f"{what} is {number:g}; expected at most 10^15 in size")
    if least is not None and number < least:
        raise InputError(f"{what} is {number:g}; expected at least {least}")
    return int(number)


def belief(log_odds: float, prior: float) -> Belief:
    """The posterior from its log odds, and its ratio to the prior without overflow."""
    return Belief(float(expit(log_odds)), float(_ratios(np.array([log_odds]), logit(prior))[0]))


def logit(prior: float) -> float:
    return log(prior) - log1p(-prior)


def posterior(rate: float, prior: float, noisy: float, known: int = 0) -> Belief:
    """Equations 3.1 and 3.2: the belief after seeing one noisy count."""
    return posterior_of_releases([rate], prior, [noisy], known)


def posterior_of_releases(rates: Sequence[float], prior: float, noisy: Sequence[float], known: int = 0) -> Belief:
    """The belief after several noisy versions of one count: levels where the target is unique (S1.1), or releases.

    Each release multiplies the odds, so risks multiply with the updated prior (S5.8).
    """
    check_prior(prior)
    whole(known, "the known count", least=0)
    if len(rates) != len(noisy):
        raise InputError(f"{len(rates)} values of rho and {len(noisy)} noisy counts; expected as many of each")
    evidence = [
        check_rho(rate) * (2 * (whole(x, "the noisy count") - known) - 1) for rate, x in zip(rates, noisy, strict=True)
    ]
    return belief(logit(prior) + sum(evidence), prior)


def marginal(rates: Sequence[float], prior: float) -> Belief:
    """Equations 3.3 and 3.4: the posterior of the truth and the risk R, averaged over the release.

    With several rates: a target known to be unique at so many levels (S1.3), or so many releases (S5).
    """
    check_prior(prior)
    ratio = float(mean_ratios(np.array([logit(prior)]), rates)[0])
    return Belief(min(prior * ratio, 1.0), min(ratio, 1 / prior))


def mean_ratios(starts: NDArray[np.float64], rates: Sequence[float]) -> NDArray[np.float64]:
    """The average ratio of the posterior of the truth to the prior, for priors with these log odds."""
    rates = [rate for rate in (check_rho(rate) for rate in rates) if rate > 0]
    if not rates:
        return np.ones(len(starts))
    read = readings(rates) if min(rates) > 1e-8 else []
    if read and prod(2 * one.noise.radius(FINE) for one in read) < SHORT:
        values, mass = listed(read, FINE)
        evidence = values + sum(rates)
        return np.array([mass @ _ratios(start + evidence, start) for start in starts.tolist()])
    return np.array([_logistic_mean(start, rates) / expit(start) for start in starts.tolist()])


def _logistic_mean(start: float, rates: Sequence[float]) -> float:
    """E logistic(T) for T = start + sum of rate_i (2 n_i + 1), n_i the noise at level i: exact, by one integral.

    Along any line Re s = c between 0 and 1, logistic(t) is the integral of exp(s t) / sin(pi s) (a Mellin-Barnes
    integral), so the mean needs only E exp(s T), a product over the levels. Small means keep their relative accuracy
    with c near 1. Where the rates are so large that exp(s T) spans too many orders, c = 0 (the principal value) is
    used instead: logistic(t) = 1/2 + integral of sin(w t) / sinh(pi w) over w > 0.
    """
    if start > 0:  # 1 - logistic(t) = logistic(-t): work from the small side, where T is mirrored
        return 1 - _small_mean(-start, rates, -1)
    return _small_mean(start, rates, 1)


def _small_mean(start: float, rates: Sequence[float], way: int) -> float:
    """E logistic(start + way * sum of rate_i (2 n_i + 1)), for start at most 0."""
    total = sum(rates)
    furthest = abs(start) + total + sum(14 * sqrt(rate) + 2 * rate for rate in rates)
    end = 13.0  # the integrand falls as exp(-pi w), and exp(-13 pi) < 2e-18
    panels = 40 + int(end * furthest / pi)  # narrow: 1 / sin(pi s) has a pole as near as 0.1
    nodes, weights = np.polynomial.legendre.leggauss(20)
    edges = np.linspace(0, end, panels + 1)
    w = (edges[:-1, None] + (nodes[None, :] + 1) * (end / panels / 2)).ravel()
    weight = np.tile(weights * (end / panels / 2), panels)
    if total <= 3:
        s: Complex = np.asarray(0.9 + 1j * w, np.complex128)
        grown = np.exp(s * (start + way * total))
        for rate in rates:
            grown = grown * np.exp(s * s * rate) * _theta(rate, s)
        return float(np.clip((grown / np.sin(pi * s)).real @ weight, 0, 1))
    waves = np.prod([_wave(rate, w) for rate in rates], axis=0)
    sines = np.sin(w * (start + way * total)) * waves
    return float(np.clip(0.5 + (sines / np.sinh(pi * w)) @ weight, 0, 1))


def _theta(rate: float, s: Complex) -> Complex:
    """E exp(2 s rate n) / exp(s^2 rate) for discrete Gaussian noise n: 1, but for ripples of the integers.

    By Poisson summation it is the sum of exp(2 pi i k s - pi^2 k^2 / rate) over k, over the same at s = 0.
    """
    ks = np.arange(-10, 11)
    dual = -((pi * ks) ** 2) / rate
    total = sum(np.exp(2j * pi * k * s + d) for k, d in zip(ks.tolist(), dual.tolist(), strict=True))
    return np.asarray(total / np.exp(dual).sum())


def _wave(rate: float, w: NDArray[np.float64]) -> NDArray[np.float64]:
    """E cos(2 rate w n) for discrete Gaussian noise n: summed as it stands, or by Poisson for a small rate."""
    if rate >= pi:
        noise = DiscreteGaussian(rate)
        values = noise.window(1e-30)
        return np.asarray(np.cos(2 * rate * np.outer(w, values)) @ noise.mass(values))
    ks = np.arange(-16, 17)
    dual = np.exp(-np.square(rate * w[:, None] + pi * ks[None, :]) / rate).sum(axis=1)
    return np.asarray(dual / np.exp(-np.square(pi * ks) / rate).sum())


def decide(
    rates: Sequence[float], prior: float, known: int = 0, *, truth: int | None = None, ties: str = "strict"
) -> Decision:
    """Equations 3.5 and 3.6: how often the adversary who picks the likelier value is right.

    `truth` is the true count, known + 1 unless said otherwise (known: the target does not have the characteristics).
    With several rates as in `marginal`: known + 1 is picked where the sum of rate_i (2 u_i - 1) is more than
    -logit(prior), and a sum that equals it goes by the rule for `ties`.
    """
    check_prior(prior)
    whole(known, "the known count", least=0)
    has = true_or_not(truth, known)
    if ties not in TIES:
        raise unknown("rule for ties", ties, TIES)
    rates = [rate for rate in (check_rho(rate) for rate in rates) if rate >= 1e-12]  # below: nothing is learnt
    needed = -logit(prior) - (2 * has - 1) * sum(rates)
    more, enough = Evidence.of(rates).above(np.array([needed + TIE, needed - TIE])).tolist()
    picks, even = more + TIES[ties] * (enough - more), enough - more
    threshold = None
    if len(rates) == 1:
        least = -TIE if ties == "one" else TIE
        threshold = known + smallest_above(0.5 + (least - logit(prior)) / (2 * rates[0]))
    return Decision(picks if has else 1 - picks, even, threshold)


def true_or_not(truth: int | None, known: int) -> int:
    """Whether the target has the characteristics, from the true count."""
    if truth is not None and truth not in (known, known + 1):
        raise InputError(
            f"the true count is {truth}; expected {known} or {known + 1}, as the adversary knows {known} others"
        )
    return 1 if truth is None else truth - known


def smallest_above(bound: float) -> int:
    """The smallest whole number that is more than a bound."""
    return floor(bound) + 1 if abs(bound) < 2**52 else ceil(bound)


def _ratios(log_odds: NDArray[np.float64], start: float) -> NDArray[np.float64]:
    """Posterior over prior, from the log odds of both: exact for any size of the odds."""
    log_prior, log_rest = -np.logaddexp(0, -start), -np.logaddexp(0, start)
    ratios: NDArray[np.float64] = np.exp(-np.logaddexp(log_prior, log_rest + start - log_odds))
    return ratios
