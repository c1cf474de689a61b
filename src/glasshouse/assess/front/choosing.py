"""Which point of a front is meant? By the share of utility lost, by U, by P, or by the risk tau that is tolerated.

U and P name one point each. tau is no function of the point: it depends on who of people alike moves (`Spread`), and it
falls in steps, when elements are emptied. So a point is looked for whose own relocation has at most that tau, from the
side of high utility: in a grid of the front, then by halving the stretch before the first point of it that will do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from glasshouse.assess.frontier import measures
from glasshouse.errors import InputError
from glasshouse.protection.relocation.front import Front, Point, Spread

Kind = Literal["q", "U", "P", "tau"]
KINDS: tuple[Kind, ...] = ("q", "U", "P", "tau")
LOOKED, HALVED = 64, 40  # stretches of the front that are looked at, and how often the one that matters is halved


@dataclass(frozen=True)
class Target:
    """A point of a front, by one of its numbers."""

    kind: Kind
    value: float

    @classmethod
    def read(cls, text: str, option: str) -> Target:
        """From 0.5 or q=0.5, U=0.9, P=500, tau=0.1."""
        name, equals, rest = text.partition("=")
        kind, number = (name.strip(), rest) if equals else ("q", text)
        expected = "expected a share of the utility that can be lost, 0.5, or U=0.9, P=500, tau=0.1"
        if kind not in KINDS:
            raise InputError(f"{option} {text}: '{kind}' is no number of a point; {expected}")
        try:
            value = float(number)
        except ValueError:
            raise InputError(f"{option} {text}: '{number.strip()}' is no number; {expected}") from None
        if not abs(value) < float("inf"):
            raise InputError(f"{option} {text}: {expected}")
        return cls(kind, value)

    def __str__(self) -> str:
        return f"{self.kind} = {self.value:g}"


@dataclass(frozen=True)
class Chosen:
    """A point that was chosen, and its share q of the utility that can be lost."""

    target: Target
    point: Point
    q: float


def choose(front: Front, target: Target, spread: Spread) -> Chosen:
    """The point of a front that is meant; one that the front does not have is refused with what it has."""
    lost = 1 - front.U_min
    if target.kind == "tau":
        return _by_tau(front, target, spread)
    ends = {"q": (0.0, 1.0), "U": (front.U_min, 1.0), "P": (0.0, front.P_max)}[target.kind]
    value = _within(front, target, *ends)
    point = {"q": front.at_share, "U": front.at_utility, "P": front.at_protection}[target.kind](value)
    q = value if target.kind == "q" else (1 - point.U) / lost if lost > 0 else 0.0
    return Chosen(target, point, min(max(q, 0.0), 1.0))


def _within(front: Front, target: Target, low: float, high: float) -> float:
    """The number asked for; printed with ten digits, the ends of a front are on it."""
    near = 1e-9 * max(1.0, abs(high))
    if not low - near <= target.value <= high + near:
        raise InputError(
            f"{target.kind} = {target.value:g} is not on the front of lambda {front.rules.risk}: there {target.kind} "
            f"goes from {low:.10g} to {high:.10g}"
        )
    return min(max(target.value, low), high)


def _by_tau(front: Front, target: Target, spread: Spread) -> Chosen:
    """The point with the most utility that was found to have at most this tau."""

    def tau(q: float) -> float:
        return measures(front.matrix, front.relocation(front.at_share(q), spread)).tau

    steps = [step / LOOKED for step in range(LOOKED + 1)]
    most, below = tau(0.0), 0.0
    if target.value <= most * (1 + 1e-9):
        for q in steps:
            if tau(q) <= target.value * (1 + 1e-9):
                return Chosen(target, front.at_share(found := _first(tau, target.value, below, q)), found)
            below = q
    least = min(tau(q) for q in steps)
    raise InputError(
        f"tau = {target.value:g} is not on the front of lambda {front.rules.risk}: there tau goes from "
        f"{least:.10g} to {most:.10g} (spread {spread.value})"
    )


def _first(tau: Callable[[float], float], wanted: float, bad: float, good: float) -> float:
    """Between a q with too much tau and one that will do: where it begins to do, to twelve digits."""
    for _ in range(HALVED if bad < good else 0):
        middle = (bad + good) / 2
        bad, good = (bad, middle) if tau(middle) <= wanted * (1 + 1e-9) else (middle, good)
    return good
