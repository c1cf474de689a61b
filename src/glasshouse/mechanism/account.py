"""What does noise cost? Exact accounts of rho, and what a total means: epsilon at delta, power of a membership test."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from importlib import resources
from math import exp, inf, log, sqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from glasshouse.errors import InputError, unknown
from glasshouse.mechanism.gaussian import NEIGHBOURS, check_rho
from glasshouse.scenarios.toml import found as shown
from glasshouse.scenarios.toml import is_there, read_toml

SIGNIFICANCE = 0.01  # of a membership test, where nothing else is said: the level that paper 000 speaks of
_LONG = re.compile(r"[eE][+-]?\d{4}|^.{100}")  # a number that would take long to write out, and is in no budget


def fraction(text: str, what: str) -> Fraction:
    """Read an exact number: a decimal or a fraction."""
    if not isinstance(text, str):
        raise InputError(
            f'{what} is {shown(text)} without quotes; expected a text, as "0.1" or "165/4099": it is read exactly'
        )
    try:
        if _LONG.search(text):
            raise ValueError
        number = Fraction(text.strip())
        float(number)  # too large for a double is too large for a budget
    except (ValueError, ZeroDivisionError, OverflowError):
        raise InputError(f"{what} is '{text[:40]}'; expected a decimal or a fraction such as 0.1 or 165/4099") from None
    return number


def epsilon(rho: float, delta: float) -> float:
    """Epsilon at delta as the Census Bureau reports it: rho + 2 sqrt(rho log(1/delta)) (Bun and Steinke, Prop. 1.3)."""
    _check_delta(delta)
    return float(check_rho(rho) + 2 * sqrt(rho * log(1 / delta)))


def epsilon_tight(rho: float, delta: float) -> float:
    """The smaller epsilon that rho-zCDP also implies (Canonne, Kamath and Steinke 2020, Prop. 12).

    Minimises alpha rho + (log(1/delta) + (alpha - 1) log(1 - 1/alpha) - log alpha) / (alpha - 1) over alpha > 1.
    """
    _check_delta(delta)
    if check_rho(rho) == 0:
        return 0.0

    def at(log_excess: float) -> float:
        alpha: float = 1 + 10.0**log_excess
        return alpha * rho + (log(1 / delta) + (alpha - 1) * log(1 - 1 / alpha) - log(alpha)) / (alpha - 1)

    from scipy.optimize import minimize_scalar  # late: a heavy import

    best = minimize_scalar(at, bounds=(-8, 12), method="bounded", options={"xatol": 1e-12})
    return max(0.0, min(float(best.fun), epsilon(rho, delta)))


def membership_power(rho: float, significance: float = SIGNIFICANCE) -> float:
    """The largest power of a test for one person's presence at a significance level, under Gaussian noise.

    Two normal distributions sqrt(2 rho) standard deviations apart differ by rho; the best test has power
    Phi(Phi^-1(significance) + sqrt(2 rho)).
    """
    _check_significance(significance)
    return float(ndtr(ndtri(significance) + sqrt(2 * check_rho(rho))))


def membership_power_bound(rho: float, significance: float = SIGNIFICANCE) -> float:
    """A power that no test reaches at a significance level, whatever mechanism spends rho.

    A test is a two-valued statistic, and cannot differ more between neighbours than the data: its Renyi divergence is
    at most alpha rho for every alpha, in both directions. The bound is the largest power that satisfies them all.
    """
    _check_significance(significance)
    check_rho(rho)
    alphas = 1 + np.logspace(-4, 3, 4000)
    limit = alphas * (alphas - 1) * rho

    def allowed(power: float) -> bool:
        return all(
            bool((_log_renyi(p, q, alphas) <= limit + 1e-12).all())
            for p, q in ((power, significance), (significance, power))
        )

    low, high = significance, 1.0
    if rho == 0:
        return low
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if allowed(middle) else (low, middle)
    return high


def membership_power_of_epsilon(epsilon: float, delta: float, significance: float = SIGNIFICANCE) -> float:
    """A power that no test reaches at a significance level, by (epsilon, delta) alone (Wasserman and Zhou; Kairouz).

    min(e^epsilon a + delta, 1 - e^-epsilon (1 - a - delta)): with the epsilon of large budgets nearly 1, so that it
    says nothing, where the bound by rho still does.
    """
    _check_significance(significance)
    _check_delta(delta)
    most = 1 - exp(-epsilon) * (1 - significance - delta)
    least = exp(epsilon) * significance + delta if epsilon < 700 else inf
    return float(min(most, least, 1.0))


def _log_renyi(p: float, q: float, alphas: NDArray[np.float64]) -> NDArray[np.float64]:
    """The logarithm of the sum of p^alpha q^(1 - alpha) over the two outcomes of a test."""
    if q == 1:  # the other outcome cannot happen, and happens: infinitely different
        return np.full_like(alphas, inf)
    yes = alphas * log(p) + (1 - alphas) * log(q)
    no = alphas * np.log1p(-p) + (1 - alphas) * np.log1p(-q) if p < 1 else np.full_like(alphas, -inf)
    return np.logaddexp(yes, no)


def _check_significance(significance: float) -> None:
    if not 0 < significance < 1:
        raise InputError(f"the significance level is {significance}; expected a number between 0 and 1")


def _check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise InputError(f"delta is {delta}; expected a number between 0 and 1")


@dataclass
class Ledger:
    """An account of a total rho, in exact fractions, that refuses to be overdrawn."""

    total: Fraction
    spent: dict[str, Fraction] = field(default_factory=dict)

    @property
    def left(self) -> Fraction:
        return self.total - sum(self.spent.values(), Fraction(0))

    def spend(self, purpose: str, rho: Fraction) -> None:
        if rho < 0:
            raise InputError(f"{purpose}: cannot spend {rho}; expected 0 or more")
        if rho > self.left:
            raise InputError(f"{purpose}: asks for rho {rho} and {self.left} is left of {self.total}")
        self.spent[purpose] = self.spent.get(purpose, Fraction(0)) + rho


@dataclass(frozen=True)
class Allocation:
    """How a total is divided: a share of rho for each level, finest first, and for each query within a level."""

    name: str
    title: str
    source: str
    neighbours: str
    total: Fraction
    levels: Mapping[str, Fraction]
    queries: Mapping[str, Mapping[str, Fraction]]  # by query, then by level
    hold: Mapping[str, str] = field(default_factory=dict)  # queries that get no noise, and from which level up
    absence: Mapping[str, str] = field(default_factory=dict)  # queries whose empty groups stay empty, and down to where

    def rho(self, level: str, query: str | None = None) -> Fraction:
        """The exact rho of a level, or of one query at it."""
        if level not in self.levels:
            raise InputError(
                f"unknown level of the allocation '{level}'; known: {', '.join(self.levels)}; "
                f"say which it takes the place of, as in --levels {level}={next(iter(self.levels))}"
            )
        share = self.total * self.levels[level]
        if query is None:
            return share
        if query not in self.queries:
            raise unknown("query of the allocation", query, self.queries)
        return share * self.queries[query].get(level, Fraction(0))

    def rhos(self, query: str | None = None) -> dict[str, Fraction]:
        """The rho of every level, finest first."""
        return {level: self.rho(level, query) for level in self.levels}


def known_allocations() -> tuple[str, ...]:
    """The allocations that come with Glasshouse."""
    folder = resources.files("glasshouse") / "mechanism" / "budgets"
    return tuple(sorted(item.name.removesuffix(".toml") for item in folder.iterdir() if item.name.endswith(".toml")))


@cache
def allocation(name: str) -> Allocation:
    """A named allocation, or one of your own from a TOML file; shares must add up to at most 1."""
    if name in known_allocations():
        path = Path(str(resources.files("glasshouse") / "mechanism" / "budgets" / f"{name}.toml"))
    elif is_there(name):
        path = Path(name)
    elif name.endswith(".toml"):
        raise InputError(f"{name}: there is no such file")
    else:
        raise unknown("budget", name, known_allocations())
    said = read_toml(path)
    try:
        levels = {level: fraction(share, f"the share of {level}") for level, share in said["levels"].items()}
        queries = {
            query: {level: fraction(share, f"{query} at {level}") for level, share in shares.items() if share != "-"}
            for query, shares in said.get("queries", {}).items()
        }
        for key in ("title", "source", "neighbours"):
            if not isinstance(said.get(key, ""), str):
                raise InputError(f"'{key}' is {shown(said[key])}; expected a text")
        found = Allocation(
            path.stem,
            said["title"],
            said.get("source", ""),
            said.get("neighbours", "add-remove"),
            fraction(said["total"], "the total"),
            levels,
            queries,
            *({str(query): str(level) for query, level in said.get(what, {}).items()} for what in ("hold", "absence")),
        )
    except InputError as error:
        error.add_where(path)
        raise
    except (KeyError, AttributeError, TypeError) as error:
        raise InputError(
            f"{path}: expected title, total, [levels] and [queries] with shares as text ({error})"
        ) from None
    if found.neighbours not in NEIGHBOURS:
        raise InputError(f"{path}: {unknown('neighbour relation', found.neighbours, NEIGHBOURS)}")
    _check_shares(path, found)
    return found


def _check_shares(path: Path, found: Allocation) -> None:
    sums = {"the levels": sum(found.levels.values(), Fraction(0))}
    for level in found.levels:
        sums[f"the queries at {level}"] = sum((q.get(level, Fraction(0)) for q in found.queries.values()), Fraction(0))
    for query, level in [*found.hold.items(), *found.absence.items()]:
        if level not in found.levels:
            raise InputError(f"{path}: '{query}' is held at level '{level}'; known: {', '.join(found.levels)}")
    shares = [*found.levels.values(), *(share for query in found.queries.values() for share in query.values())]
    if min(shares, default=Fraction(0)) < 0:
        raise InputError(f"{path}: a share is {min(shares)}; expected 0 or more")
    for what, total in sums.items():
        if total > 1:
            raise InputError(f"{path}: the shares of {what} add up to {total}, more than 1")
    if found.total <= 0 or float(found.total) == inf:
        raise InputError(f"{path}: the total is {found.total}; expected more than 0")
