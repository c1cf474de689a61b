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
from math import ceil, exp, floor, inf, log, log1p, pi

import numpy as np
from scipy.special import expit

from glasshouse.errors import InputError
from glasshouse.mechanism.gaussian import DiscreteGaussian, check_rho

# Attacks that are the same in mathematics; what changes is what the prior is a belief about (paper 001, S1.2).
ATTACKS = {
    "characteristics": "the target has characteristics c",
    "participation": "the target filled out the census at all",
    "honesty": "the target reported the correct information",
    "attribute": "the target's one unknown attribute has its true value",
}


@dataclass(frozen=True)
class Belief:
    """What an adversary believes after the release, and how many times more than before."""

    posterior: float
    ratio: float


@dataclass(frozen=True)
class Decision:
    """How often an adversary who picks the likelier value is right; known + 1 is picked from the threshold on."""

    probability: float
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
    return Belief(float(expit(log_odds)), _ratio(log_odds, prior))


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
    rates = [rate for rate in (check_rho(rate) for rate in rates) if rate > 0]
    if not rates:
        return Belief(prior, 1.0)
    if len(rates) == 1:
        noise = DiscreteGaussian(rates[0])
        values = noise.window()
        log_odds = logit(prior) + rates[0] * (2 * values + 1)
        ratio = float(noise.mass(values) @ [_ratio(value, prior) for value in log_odds])
        return Belief(prior * ratio, ratio)
    average = _logistic_mean(logit(prior), rates)
    return Belief(average, average / prior)


def _logistic_mean(start: float, rates: Sequence[float]) -> float:
    """E logistic(T) for T = start + sum of rate_i (2 n_i + 1), n_i the noise at level i: exact, by one integral.

    logistic(t) = 1/2 + integral over w > 0 of sin(w t) / sinh(pi w), so the mean needs only the characteristic function
    of T, which is a product over the levels. The integrand dies off as exp(-pi w); panels of Gauss-Legendre nodes
    follow its oscillation. Absolute accuracy is that of doubles.
    """
    noises = [DiscreteGaussian(rate) for rate in rates]
    furthest = abs(start) + sum(noise.rate * (2 * noise.radius() + 1) for noise in noises)
    end = 13.0  # exp(-13 pi) < 2e-18
    panels = 8 + int(end * furthest / pi)
    nodes, weights = np.polynomial.legendre.leggauss(20)
    edges = np.linspace(0, end, panels + 1)
    w = (edges[:-1, None] + (nodes[None, :] + 1) * (end / panels / 2)).ravel()
    phase = np.exp(1j * w * (start + sum(rates)))
    for noise in noises:
        values = noise.window()
        phase *= np.cos(2 * noise.rate * np.outer(w, values)) @ noise.mass(values)
    integral = (phase.imag / np.sinh(pi * w)) @ np.tile(weights * (end / panels / 2), panels)
    return float(np.clip(0.5 + integral, 0, 1))


def decide(rate: float, prior: float, known: int = 0, *, truth: int | None = None) -> Decision:
    """Equations 3.5 and 3.6: how often the adversary who picks the likelier value is right.

    `truth` is the true count, known + 1 unless said otherwise (known: the target does not have the characteristics).
    The posterior passes one half at u = 1/2 - logit(prior) / (2 rate).
    """
    check_prior(prior)
    whole(known, "the known count", least=0)
    has = _has(truth, known)
    if check_rho(rate) == 0:
        picks = 1.0 if prior > 0.5 else 0.0
        return Decision(picks if has else 1 - picks, None)
    threshold = smallest_above(0.5 - logit(prior) / (2 * rate))
    picks = DiscreteGaussian(rate).at_least(threshold - has)
    return Decision(picks if has else 1 - picks, known + threshold)


def _has(truth: int | None, known: int) -> int:
    """Whether the target has the characteristics, from the true count."""
    if truth is not None and truth not in (known, known + 1):
        raise InputError(
            f"the true count is {truth}; expected {known} or {known + 1}, as the adversary knows {known} others"
        )
    return 1 if truth is None else truth - known


def smallest_above(bound: float) -> int:
    """The smallest whole number that is more than a bound."""
    return floor(bound) + 1 if abs(bound) < 2**52 else ceil(bound)


def _ratio(log_odds: float, prior: float) -> float:
    """Posterior over prior: 1 / (prior + (1 - prior) prior-odds / posterior-odds), for any size of the odds."""
    return exp(-float(np.logaddexp(log(prior), log1p(-prior) + logit(prior) - log_odds)))
