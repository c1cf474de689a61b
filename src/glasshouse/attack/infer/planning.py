"""Which rho keeps the risk tolerable? The inverse question, and the direct one for a whole budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

from glasshouse.attack.infer.onelevel import check_prior, marginal
from glasshouse.errors import InputError
from glasshouse.mechanism.account import (
    SIGNIFICANCE,
    Allocation,
    epsilon,
    epsilon_tight,
    membership_power,
    membership_power_bound,
)
from glasshouse.mechanism.gaussian import DiscreteGaussian, rate_of

MOST = 100.0  # the largest rho that is looked at; beyond it a count is released as it is
FINEST, STEP = 1e-6, 1.05  # the smallest rho, and how far one looks ahead


@dataclass(frozen=True)
class Limit:
    """The most that is tolerated: an average posterior, or a ratio of posterior to prior."""

    posterior: float | None = None
    ratio: float | None = None

    def __post_init__(self) -> None:
        if (self.posterior is None) == (self.ratio is None):
            raise InputError("say one limit: the largest tolerable posterior, or the largest tolerable ratio")
        if self.posterior is not None and not 0 < self.posterior <= 1:
            raise InputError(f"the largest tolerable posterior is {self.posterior}; expected a probability")
        if self.ratio is not None and not self.ratio >= 1:
            raise InputError(
                f"the largest tolerable ratio is {self.ratio}; expected 1 or more (1: nothing may be learnt)"
            )

    def most(self, prior: float) -> float:
        """The largest tolerable posterior for a prior."""
        most = self.posterior if self.posterior is not None else (self.ratio or 1.0) * prior
        if most >= 1:
            raise InputError(f"a prior of {prior:g} never comes to pass this limit; no noise is needed for it")
        if most < prior:
            raise InputError(
                f"the prior is {prior:g}, already above the tolerable posterior {most:g}; no noise can help"
            )
        return most


@dataclass(frozen=True)
class LevelPlan:
    """What one level may spend, and the noise that costs it."""

    level: str
    rho: float
    standard_deviation: float | None  # of the noise in one count; None: nothing may be released
    posterior: float
    ratio: float


@dataclass(frozen=True)
class Plan:
    """What a limit allows: rho by level and in total, and how that total reads."""

    prior: float
    levels: tuple[LevelPlan, ...]
    total: float
    epsilon: float
    epsilon_tight: float
    significance: float  # of the membership test
    power: float
    power_bound: float


def largest_rho(
    limit: Limit, prior: float, *, shares: Sequence[float] = (1.0,), neighbours: str = "add-remove"
) -> float:
    """The largest total rho, divided over levels in these shares, that keeps the average posterior within a limit.

    The adversary of several shares knows the target to be unique at all those levels (S1.3), or sees as many releases.
    The average posterior does not grow with rho everywhere (at a prior of 1/864 it falls between 2.8 and 3.2), so the
    answer is the end of the first stretch within the limit: every smaller rho is within it too.
    """
    most = limit.most(check_prior(prior))
    if min(shares) < 0 or not sum(shares) > 0:
        raise InputError("shares of rho must be 0 or more, and not all 0")
    scale = sum(shares)

    def excess(rho: float) -> float:
        return marginal([rate_of(rho * share / scale, neighbours) for share in shares], prior).posterior - most

    from scipy.optimize import brentq  # late: a heavy import

    rho = FINEST
    if excess(rho) > 0:
        return 0.0
    while rho < MOST:
        following = min(rho * STEP, MOST)
        if excess(following) > 0:
            return float(brentq(excess, rho, following, xtol=1e-14, rtol=1e-12))
        rho = following
    return MOST


def plan(
    limit: Limit,
    prior: float,
    levels: Sequence[str],
    *,
    unique: bool = False,
    shares: Mapping[str, float] | None = None,
    delta: float = 1e-10,
    significance: float = SIGNIFICANCE,
    neighbours: str = "add-remove",
) -> Plan:
    """What may each level spend? Each on its own, or all together against a target unique at every level."""
    if not levels:
        raise InputError("no level is given; expected at least one")
    if unique:
        parts = [float((shares or {}).get(level, 1.0)) for level in levels]
        total = largest_rho(limit, prior, shares=parts, neighbours=neighbours)
        rhos = [total * part / sum(parts) for part in parts]
    else:
        rhos = [largest_rho(limit, prior, neighbours=neighbours)] * len(levels)
    rows = []
    for number, (level, rho) in enumerate(zip(levels, rhos, strict=True), start=1):
        seen = rhos[:number] if unique else [rho]
        risk = marginal([rate_of(r, neighbours) for r in seen], prior)
        rows.append(LevelPlan(level, rho, noise_deviation(rho, neighbours), risk.posterior, risk.ratio))
    return _read(prior, rows, sum(rhos), delta, significance)


def assess(
    allocation: Allocation,
    query: str | None,
    prior: float,
    levels: Sequence[str] = (),
    *,
    delta: float = 1e-10,
    significance: float = SIGNIFICANCE,
) -> tuple[Plan, Plan]:
    """The risk of a given budget: each level's count on its own, and a target unique from the finest level up."""
    alone: list[LevelPlan] = []
    together: list[LevelPlan] = []
    seen: list[float] = []
    rhos = {level: allocation.rho(level, query) for level in levels or allocation.levels}
    for level, rho in ((name, float(value)) for name, value in rhos.items()):
        rate = rate_of(rho, allocation.neighbours)
        seen.append(rate)
        for rows, rates in ((alone, [rate]), (together, list(seen))):
            risk = marginal(rates, prior)
            deviation = noise_deviation(rho, allocation.neighbours)
            rows.append(LevelPlan(level, rho, deviation, risk.posterior, risk.ratio))
    total = float(sum(rhos.values(), Fraction(0)))
    first, second = (_read(prior, rows, total, delta, significance) for rows in (alone, together))
    return first, second


def noise_deviation(rho: float, neighbours: str = "add-remove") -> float | None:
    """The standard deviation of the noise that costs rho."""
    return sqrt(DiscreteGaussian(rate_of(rho, neighbours)).variance) if rho > 1e-8 else None


def _read(prior: float, rows: Sequence[LevelPlan], total: float, delta: float, significance: float) -> Plan:
    return Plan(
        prior,
        tuple(rows),
        total,
        epsilon(total, delta),
        epsilon_tight(total, delta),
        significance,
        membership_power(total, significance),
        membership_power_bound(total, significance),
    )
