"""Does tidying the noisy counts protect anyone? The adversary sees only counts made to add up (paper 001, S6).

The simplified post-processing fits the group's count to a given total of the level above: the least-squares solution
(d x_1 + (t_2 - y_1)) / (d + 1), cut off to 0..t_2 and rounded. The adversary knows the true count above. What they see
is a function of (x_1, y_1), so their risk is at most that of someone who sees x_1 *and* y_1: that is the valid
bound. The bound by x_1 alone, which the paper claims, fails for large t_2, because t_2 - y_1 leaks into the result.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from glasshouse.attack.infer.onelevel import Belief, check_prior, logit, marginal, whole
from glasshouse.attack.infer.readings import MOST
from glasshouse.errors import InputError, unknown
from glasshouse.mechanism.gaussian import DiscreteGaussian, check_rho

ROUNDING = ("half-even", "half-up", "half-down")


@dataclass(frozen=True)
class PostProcessed:
    """The average risk with and without post-processing, and the two bounds."""

    processed: Belief
    x1_alone: Belief  # the paper's bound
    x1_and_others: Belief  # the valid bound


def post_processing(
    rate: float, prior: float, others: int, total: int, *, true2: int = 1, rounding: str = "half-even"
) -> PostProcessed:
    """The adversary's average belief in the truth (x_1 = 1, no one else known) after post-processing, eq. S6.8."""
    check_prior(prior)
    whole(others, "the number of other groups", least=1)
    whole(total, "the post-processed count above", least=0)
    whole(true2, "the true count above", least=1)
    if rounding not in ROUNDING:
        raise unknown("rounding", rounding, ROUNDING)
    if check_rho(rate) == 0:
        raise InputError("rho is 0: nothing is released; expected more than 0")
    own, other = DiscreteGaussian(rate), DiscreteGaussian(rate / others)
    x1 = np.arange(-own.radius(), own.radius() + 2)
    y1 = np.arange(true2 - 1 - other.radius(), true2 + other.radius() + 1)
    if len(x1) * len(y1) > MOST:
        raise InputError(
            f"so little rho would need {len(x1) * len(y1):,} terms; an adversary learns next to nothing there"
        )
    _, seen = np.unique(_fitted(x1, y1, others, total, rounding), return_inverse=True)
    seen = seen.ravel()
    masses = [np.outer(own.mass(x1 - k), other.mass(y1 - (true2 - k))).ravel() for k in (0, 1)]
    likelihood = [np.bincount(seen, mass) for mass in masses]
    with np.errstate(divide="ignore", invalid="ignore"):
        believed = np.where(
            likelihood[1] > 0, prior * likelihood[1] / (prior * likelihood[1] + (1 - prior) * likelihood[0]), 0.0
        )
    average = float(believed @ likelihood[1])
    gap = (y1 - true2)[None, :]
    odds = logit(prior) + rate * (2 * x1 - 1)[:, None] - (rate / others) * (2 * gap + 1)
    both = float((masses[1].reshape(odds.shape) * expit(odds)).sum())
    return PostProcessed(Belief(average, average / prior), marginal([rate], prior), Belief(both, both / prior))


def _fitted(x1: NDArray[np.int64], y1: NDArray[np.int64], others: int, total: int, rounding: str) -> NDArray[np.int64]:
    """The post-processed count for every (x_1, y_1), in whole numbers: numerator / (d + 1), cut off, rounded."""
    below = others + 1
    top = others * x1[:, None] + (total - y1)[None, :]
    quotient, rest = np.divmod(top, below)
    twice = 2 * rest
    up = twice > below
    tie = twice == below
    if rounding == "half-up":
        up |= tie
    elif rounding == "half-even":
        up |= tie & (quotient % 2 == 1)
    fitted: NDArray[np.int64] = np.clip(quotient + up, 0, total)
    return fitted
