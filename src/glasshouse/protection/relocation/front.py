"""How much privacy for how much utility? The whole front of relocations, exact, and a relocation at any point of it.

`front` gives every breakpoint of the most protection P that leaves the utility U (paper 003, equations 7 to 12), by the
parametric flow of `relocation_flow`, or by linear programs where elements cannot be gathered and are too many.
`verify` proves it at chosen points by weak duality, without a solver.

Relocations with equal P and U are many; they differ in tau and phi. `Spread` says which one is given: of the flow at
that point, how the people of one combination and count are told who moves. With WHOLE, elements are emptied one after
the other, in the order of places: the most elements are empty, so of all ways to tell them tau is least; but a draw
has little to decide. With EVEN, all have the same chance, and only a draw knows who moved; phi, which counts unique
people whom no chance moves, is then least and says little, and tau hardly falls.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import numpy as np

from glasshouse.errors import InputError
from glasshouse.protection.relocation.flow import Sweep, sweep
from glasshouse.protection.relocation.linear import Program, corners, full_lp, full_program, reduced_lp
from glasshouse.protection.relocation.rules import (
    NEARLY,
    Coverage,
    Flags,
    Floats,
    Groups,
    Ints,
    Matrix,
    Moves,
    Relocation,
    Rules,
    Weight,
    at_risk,
    capacities,
    expected,
    loads,
    moves,
    protection,
    sampled,
    staying,
    utility,
)

__all__ = [
    "Coverage", "Front", "Matrix", "Moves", "Point", "Relocation", "Rules", "Spread", "Weight", "at_risk", "capacities",
    "duality_gap", "expected", "front", "full_lp", "loads", "moves", "protection", "reduced_lp", "sampled", "staying",
    "utility", "verify",
]  # fmt: skip

MOST_GROUPS = 4000  # the flow keeps a table of groups x groups
SAME_SLOPE = 1e-11  # relative: breakpoints where the slope changes by less are none


class Spread(StrEnum):
    """Who of a combination and count moves, where a relocation moves some of them."""

    WHOLE = "whole"
    EVEN = "even"


@dataclass(frozen=True)
class Point:
    """A point of the front: protection and utility."""

    P: float
    U: float


@dataclass(frozen=True, eq=False)
class Front:
    """The most protection for every utility: concave, piecewise linear, from (0, 1) to (P_max, U_min)."""

    matrix: Matrix
    rules: Rules
    method: Literal["flow", "lp"]
    why: str
    P: Floats  # the breakpoints
    U: Floats
    traced: Sweep | tuple[Program, list[Floats]]  # what a relocation is made from

    @property
    def P_max(self) -> float:  # noqa: N802  # the paper's name
        return float(self.P[-1])

    @property
    def U_min(self) -> float:  # noqa: N802
        """The utility at P_max: with the least noise that the most protection costs."""
        return float(self.U[-1])

    def at_utility(self, epsilon: float) -> Point:
        """The most P with U >= epsilon; below U_min that is the end of the front."""
        if not epsilon <= 1:
            raise InputError(f"no utility is above 1; found {epsilon}")
        kept = max(float(epsilon), self.U_min)
        return Point(float(np.interp(1 - kept, 1 - self.U, self.P)), kept)

    def at_protection(self, protected: float) -> Point:
        """The most U with P >= protected."""
        if not 0 <= protected <= self.P_max:
            raise InputError(f"P goes from 0 to {self.P_max} on this front; found {protected}")
        return Point(float(protected), float(np.interp(protected, self.P, self.U)))

    def at_share(self, q: float) -> Point:
        """Equation 19: the point where a share q of the utility that can be lost is lost."""
        if not 0 <= q <= 1:
            raise InputError(f"q is a share from 0 to 1; found {q}")
        return self.at_utility(1 - q * (1 - self.U_min)) if q < 1 else Point(self.P_max, self.U_min)

    def relocation(self, point: Point, spread: Spread = Spread.WHOLE) -> Relocation:
        """A relocation with that P and U."""
        here = self.at_utility(point.U)
        if abs(here.P - point.P) > 1e-9 * max(1.0, self.P_max) or self.U_min - point.U > 1e-12:
            raise InputError(f"P {point.P}, U {point.U} is not on the front; `at_utility` and `at_share` give points")
        if isinstance(self.traced, Sweep):
            flow, moved = self.traced.flow(*_steps(self.traced, self.matrix, here))
            return _told(self.matrix, self.traced.groups, flow, moved, Spread(spread))
        program, thetas = self.traced
        after = int(np.searchsorted(1 - self.U, 1 - here.U, side="left"))
        before = max(after - 1, 0)
        span = self.U[before] - self.U[after]
        rest = (self.U[before] - here.U) / span if span > 0 else 1.0
        return program.relocation((1 - rest) * thetas[before] + rest * thetas[after])


def front(matrix: Matrix, rules: Rules, method: Literal["flow", "lp"] | None = None) -> Front:
    """The whole front. The flow is used unless elements at risk, with `near`, are too many to be nodes of it."""
    rules.check(matrix)
    many = len(at_risk(matrix, rules)[0]) if rules.near is not None else 0
    used = method or ("lp" if many > MOST_GROUPS else "flow")
    if used == "lp":
        why = "asked for" if method else f"{many} elements at risk may go to different places, each its own"
        program = full_program(matrix, rules)
        found = corners(program)
        protected, kept = (np.array([point[at] for point in found], np.float64) for at in (0, 1))
        return Front(matrix, rules, "lp", why, protected, kept, (program, [point[2] for point in found]))
    if used != "flow":
        raise InputError(f"a front is traced by 'flow' or 'lp'; found '{used}'")
    groups = Groups.of(matrix, rules)
    traced = sweep(matrix, rules, groups)
    of = "elements at risk" if many else "groups of elements at risk that may go to the same places"
    gained, lost = (np.cumsum(per * traced.amount) for per in (traced.gain, traced.noise))
    price = traced.price
    turn = np.append(np.diff(price) > SAME_SLOPE * price[1:], True)[: len(price)] if len(price) else np.zeros(0, bool)
    protected = np.concatenate([[0.0], gained[turn]])
    kept = 1 - np.concatenate([[0.0], lost[turn]]) / max(matrix.cells, 1)
    return Front(matrix, rules, "flow", f"{len(groups.group_row)} {of}", protected, kept, traced)


def _steps(traced: Sweep, matrix: Matrix, point: Point) -> tuple[int, float]:
    """How many steps lead to a point, and which share of the next."""
    lost = np.concatenate([[0.0], np.cumsum(traced.noise * traced.amount)]) / max(matrix.cells, 1)
    after = min(int(np.searchsorted(lost, 1 - point.U, side="left")), len(lost) - 1)
    if after == 0 or lost[after] - (1 - point.U) <= 1e-15:
        return after, 0.0
    return after - 1, float((1 - point.U - lost[after - 1]) / (lost[after] - lost[after - 1]))


def _told(matrix: Matrix, groups: Groups, flow: Floats, moved: Floats, spread: Spread) -> Relocation:
    """Tell each element at risk how many of its people go where."""
    none = np.empty(0, np.int64)
    rows: list[Ints] = [none]
    targets: list[Ints] = [none]
    people: list[Floats] = [np.empty(0)]
    begins = np.searchsorted(groups.group, np.arange(len(flow) + 1))
    for group in np.flatnonzero(flow.any(axis=1)):
        elements = np.arange(begins[group], begins[group + 1])
        arriving = flow[group]
        total = float(moved[group].sum())
        most = groups.count[elements].astype(np.float64)
        own = bool(groups.own_count[group])
        if own:  # nobody moves to where they are, so an element's leavers and arrivals are different people
            most = np.minimum(most, np.maximum(total - arriving[groups.place[elements]], 0))
        leaving = np.concatenate(
            [
                _shares(most[groups.kind[elements] == kind], moved[group, kind], spread)
                for kind in np.unique(groups.kind[elements])
            ]
        )
        element, target, amount = _staircase(leaving, arriving)
        if own:
            element, target, amount = _apart(groups.place[elements], element, target, amount)
        rows.append(elements[element])
        targets.append(target)
        people.append(amount)
    width = max(matrix.shape[1], 1)
    key, inverse = np.unique(np.concatenate(rows) * width + np.concatenate(targets), return_inverse=True)
    row, to = key // width, key % width
    summed = np.bincount(inverse, np.concatenate(people), minlength=len(key))
    share = summed / groups.count[row]
    total_share = np.bincount(row, share, minlength=len(groups.row))[row]
    share = np.where(np.abs(total_share - 1) < NEARLY, share / total_share, share)
    some = share > NEARLY / 100
    row, to, share = row[some], to[some], np.minimum(share[some], 1.0)
    return Relocation(groups.row[row], groups.place[row], to, share)


def _shares(most: Floats, total: float, spread: Spread) -> Floats:
    """How many people leave each of some elements, of which at most so many can: one after the other, or evenly."""
    if spread is Spread.WHOLE:
        before = np.concatenate([[0.0], np.cumsum(most)[:-1]])
        return np.asarray(np.clip(total - before, 0, most))
    ordered = np.sort(most)
    # at a level, those with less are all gone: find the number of those, then the level
    spent = np.cumsum(ordered) - ordered + ordered * np.arange(len(most), 0, -1)
    gone = min(int(np.searchsorted(spent, total, side="left")), len(most) - 1)
    return np.asarray(np.minimum(most, (total - ordered[:gone].sum()) / (len(most) - gone)))


def _staircase(leaving: Floats, arriving: Floats) -> tuple[Ints, Ints, Floats]:
    """People in the order of sources, places in the order of targets, side by side: as few pairs as can be."""
    out, into = np.cumsum(leaving), np.cumsum(arriving)
    steps = np.unique(np.concatenate([out, into]))
    steps = steps[steps <= min(out[-1], into[-1])]
    size = np.diff(steps, prepend=0.0)
    some = size > NEARLY / 100
    middle = (steps - size / 2)[some]
    return np.searchsorted(out, middle), np.searchsorted(into, middle), size[some]


def _apart(place: Ints, element: Ints, target: Ints, amount: Floats) -> tuple[Ints, Ints, Floats]:
    """Exchange targets until nobody's target is their own place.

    Let a_s people leave s and y_s arrive, of a total of M; `_told` has a_s + y_s <= M. Of the pairs, those that neither
    begin nor end at s have at least M - (a_s + y_s - v) >= v people, where v go from s to s: enough to exchange with.
    """
    who, where, many = element.tolist(), target.tolist(), amount.tolist()
    for at in range(len(who)):
        home, place_here = who[at], int(place[who[at]])
        other = 0
        while where[at] == place_here and many[at] > NEARLY / 100 and other < len(who):
            if who[other] != home and where[other] != place_here and many[other] > 0:
                some = min(many[other], many[at])
                who += [home, who[other]]
                where += [where[other], place_here]
                many += [some, some]
                many[at] -= some
                many[other] -= some
            other += 1
    element, target, amount = np.array(who, np.int64), np.array(where, np.int64), np.array(many, np.float64)
    kept = (amount > NEARLY / 100) & (place[element] != target)
    return element[kept], target[kept], amount[kept]


def verify(matrix: Matrix, rules: Rules, found: Front, points: Iterable[Point]) -> float:
    """The largest relative gap, over some points, between a front and what duality allows at all; 0 is proof."""
    return max((duality_gap(matrix, rules, found, point) for point in points), default=0.0)


def duality_gap(matrix: Matrix, rules: Rules, found: Front, point: Point) -> float:
    """By how much, relative to P_max, some relocation with U >= point.U could have more protection than the one found.

    Of the relocation found all is counted afresh: that it keeps the rules, its P and U. For a price nu of protection
    and prices beta_j >= 0 of room, no relocation of the paper's program has nu P - E above

        sum_j r_j beta_j  +  sum over elements at risk of  x_ki max(0, max_j [nu w - 1/x_ki - 1/x_kj - beta_j]),

    whatever the prices (weak duality). They are taken from the flow; if it was wrong, the gap is large, never negative.
    """
    relocation = found.relocation(point)
    _keeps_rules(matrix, rules, relocation)
    reached, kept = protection(matrix, rules.weight, relocation), utility(matrix, relocation)
    if kept < point.U - 1e-9:
        raise InputError(f"the relocation of a front leaves the utility {kept}, not {point.U}")
    row, place, count = at_risk(matrix, rules)
    receives = rules.receives(matrix)
    if not len(row) or not receives.any():
        return abs(reached)
    nu = _slope(found, point)
    weight = rules.weights(count)
    beta = _room_prices(matrix, rules, found, point, nu)
    best = np.full(len(row), np.inf)  # 1 / x_kj + beta_j of the best place
    with np.errstate(divide="ignore"):
        price = np.where(receives, 1.0 / matrix.counts, np.inf) + beta
    if rules.near is None and rules.coverage is Coverage.ROWWISE:
        best = price.min(axis=1)[row]
    else:
        for element, (k, i) in enumerate(zip(row, place, strict=True)):
            here = price[k].copy()
            here[i] = np.inf
            if rules.near is not None:
                here[~rules.near[[i]].toarray()[0]] = np.inf
            best[element] = here.min()
    bound = rules.capacity @ beta + np.sum(count * np.maximum(0, nu * weight - 1 / count - best))
    allowed = (bound + (1 - point.U) * matrix.cells) / nu if nu > 0 else 0.0
    return abs(float(allowed - reached)) / max(found.P_max, 1e-300) if found.P_max > 0 else abs(float(allowed))


def _slope(found: Front, point: Point) -> float:
    """nu at a point: noise for protection, on the piece of the front that ends there or goes on."""
    if len(found.P) < 2:  # nobody can gain: any price will do
        return 1.0
    at = int(np.clip(np.searchsorted(1 - found.U, 1 - point.U, side="left"), 1, len(found.U) - 1))
    return float((found.U[at - 1] - found.U[at]) * found.matrix.cells / (found.P[at] - found.P[at - 1]))


def _room_prices(matrix: Matrix, rules: Rules, found: Front, point: Point, nu: float) -> Floats:
    """beta_j: what one more person's room in each place would save, by the shortest walk in the flow at a point."""
    groups = Groups.of(matrix, rules)
    flow, moved = np.zeros(groups.cost.shape), np.zeros(groups.supply.shape)
    if isinstance(found.traced, Sweep):
        flow, moved = found.traced.flow(*_steps(found.traced, matrix, point))
    else:
        relocation = found.relocation(point)
        width = matrix.shape[1]
        key = groups.row * width + groups.place
        order = np.argsort(key)
        element = order[np.searchsorted(key[order], relocation.combination * width + relocation.source)]
        np.add.at(flow, (groups.group[element], relocation.target), relocation.people(matrix))
        np.add.at(moved, (groups.group[element], groups.kind[element]), relocation.people(matrix))
    worth = nu * groups.weight - 1.0 / groups.counts
    highest = max(nu * float(groups.weight.max()), 0.0)
    slack = 1e-7
    full = flow.sum(axis=0) >= rules.capacity - slack
    given_up = np.where(moved > slack, worth, np.inf).min(axis=1)
    allowed: Flags = np.isfinite(groups.cost) & (flow < groups.limits(matrix) - slack)
    enters = np.where(allowed, groups.cost, np.inf)
    holds: Flags = flow > slack
    beta = np.where(full, np.inf, 0.0)
    for _ in range(len(flow) + 1):
        walk = np.minimum(given_up, (enters + beta).min(axis=1, initial=np.inf))
        with np.errstate(invalid="ignore"):
            turned = np.where(holds, walk[:, None] - np.where(holds, groups.cost, 0.0), np.inf)
        lower = np.minimum(beta, turned.min(axis=0, initial=np.inf))
        if np.array_equal(lower, beta):
            break
        beta = lower
    return np.clip(beta, 0, highest)


def _keeps_rules(matrix: Matrix, rules: Rules, relocation: Relocation) -> None:
    """Refuse a relocation that moves whom it must not, where it must not, or too many."""
    k, i, j = relocation.combination, relocation.source, relocation.target
    here = matrix.counts[k, i]
    wrong = (here < 1) | (here > rules.risk) | ~rules.receives(matrix)[k, j]
    if rules.near is not None and len(i):
        wrong |= ~np.asarray(rules.near[i, j]).astype(np.bool_).ravel()
    if np.any(wrong) or np.any(loads(matrix, relocation) > rules.capacity * (1 + 1e-9) + 1e-6):
        raise InputError("a relocation moves people who are not at risk, to places that do not cover them, or too many")
