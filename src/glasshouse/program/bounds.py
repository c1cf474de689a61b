"""What does a choice cost, and what can no choice beat? Costs with two slopes, and bounds in integers.

Costs have two slopes: `f(x) = below * min(x, knot) + above * max(x - knot, 0)`. A plain cost has both equal; the
distance from a start h is 1 and -1 with the knot at h, so that the least cost is the farthest histogram.

Two bounds. Where rows that share no cell cover a part, each row must place its count in its cells, cheapest places
first; the best such family of rows counts. And any whole multipliers y of the rows give one, here times their scale:
y.b + the least of what is left of each cell's cost, `f(x) - (y A) x`; it also rules out values of single cells.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from glasshouse.errors import InputError
from glasshouse.program.propagate import LEAF, Array, move, settle, sort

FAMILIES = 6  # of rows that share no cell, tried for the bound


class Cost(NamedTuple):
    """What each variable costs, in integers: one slope up to the knot and another beyond it."""

    below: Array
    above: Array
    knot: Array

    def of(self, x: Array) -> Array:
        """The cost of each variable at x."""
        return np.asarray(self.below * np.minimum(x, self.knot) + self.above * np.maximum(x - self.knot, 0))

    def at(self, variables: NDArray[np.int64] | slice) -> Cost:
        """The cost of some of the variables."""
        return Cost(self.below[variables], self.above[variables], self.knot[variables])


def linear(cost: Array) -> Cost:
    """A cost per record, in whole numbers."""
    if cost.dtype != np.int64:
        raise InputError(f"costs are whole numbers (int64); found {cost.dtype}")
    return Cost(cost, cost, np.zeros(len(cost), np.int64))


def distance(start: Array) -> Cost:
    """Minus the distance from a start, but for a constant: f(x) = start - |x - start|."""
    ones = np.ones(len(start), np.int64)
    return Cost(ones, -ones, start)


class Dual(NamedTuple):
    """Multipliers of the rows of a single part, times `scale` (0: none): what they give for sure, and take per unit."""

    scale: int
    base: int
    weight: Array


@njit(**LEAF)
def price(variable, x, slopes):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """The cost of a variable at x."""
    at, below = slopes.knot[variable], slopes.below[variable]
    return below * x if x <= at else below * at + slopes.above[variable] * (x - at)


@njit(**LEAF)
def cheapest(variable, low, high, slopes):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """The least cost of a variable between two values: at an end, or at the knot."""
    least = min(price(variable, low, slopes), price(variable, high, slopes))
    knot = slopes.knot[variable]
    if low < knot < high:
        least = min(least, price(variable, knot, slopes))
    return least


class Families(NamedTuple):
    """What the bound needs of a part: families of rows that share no cell, and the slopes in order.

    `of` is the family of each row, -1 where it has other coefficients than 1; `below` and `above` are the ranks of the
    slopes of each variable in `slopes`, of which there are `kinds`; `taken`, `room` and `gains` are room to count in.
    """

    of: Array
    slopes: Array
    kinds: Array
    below: Array
    above: Array
    taken: NDArray[np.bool_]
    room: Array
    gains: Array

    @staticmethod
    def room_for(variables: int, rows: int) -> Families:
        """Room for a part of so many variables and rows."""
        n = max(variables, 1)
        return Families(
            np.empty(rows, np.int64), np.empty(2 * n, np.int64), np.zeros(1, np.int64), np.empty(n, np.int64),
            np.empty(n, np.int64), np.empty((FAMILIES, n), np.bool_), np.empty(2 * n, np.int64),
            np.empty(FAMILIES, np.int64),
        )  # fmt: skip


@njit(**LEAF)
def sort_into_families(part, system, slopes, families):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Put rows that share no cell into families, first fit, and slopes in order."""
    v0, v1, r0, r1 = part
    family, taken = families.of, families.taken
    for candidate in range(FAMILIES):
        for at in range(v1 - v0):
            taken[candidate, at] = False
    for row in range(r0, r1):
        family[row - r0] = -1
        plain = True
        for entry in range(system.starts[row], system.starts[row + 1]):
            plain &= system.coefficient[entry] == 1
        if not plain:
            continue
        for candidate in range(FAMILIES):
            fits = True
            for entry in range(system.starts[row], system.starts[row + 1]):
                fits &= not taken[candidate, system.variable[entry] - v0]
            if fits:
                family[row - r0] = candidate
                for entry in range(system.starts[row], system.starts[row + 1]):
                    taken[candidate, system.variable[entry] - v0] = True
                break
    ordered, kinds = families.slopes, 0
    for variable in range(v0, v1):
        ordered[2 * (variable - v0)], ordered[2 * (variable - v0) + 1] = slopes.below[variable], slopes.above[variable]
    sort(ordered, 2 * (v1 - v0))
    for at in range(2 * (v1 - v0)):
        if at == 0 or ordered[at] != ordered[kinds - 1]:
            ordered[kinds] = ordered[at]
            kinds += 1
    families.kinds[0] = kinds
    for variable in range(v0, v1):
        families.below[variable - v0] = _rank(ordered, kinds, slopes.below[variable])
        families.above[variable - v0] = _rank(ordered, kinds, slopes.above[variable])


@njit(**LEAF)
def _rank(ordered, count, value):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Where a value stands among ordered ones."""
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) // 2
        if ordered[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@njit(**LEAF)
def bound(part, system, state, slopes, family):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """No solution within the limits costs less than this."""
    v0, v1, r0, r1 = part
    starts, index, row_lower, row_upper = system.starts, system.variable, system.row_lower, system.row_upper
    lower, upper, knots = state.lower, state.upper, slopes.knot
    of, room, gains, ranks_below, ranks_above = family.of, family.room, family.gains, family.below, family.above
    kinds = family.kinds[0]
    total = np.int64(0)
    for variable in range(v0, v1):
        total += cheapest(variable, lower[variable], upper[variable], slopes)
    gains[:] = 0
    for row in range(r0, r1):
        if of[row - r0] < 0:
            continue
        cost, free, placed = np.int64(0), np.int64(0), np.int64(0)
        room[:kinds] = 0
        for entry in range(starts[row], starts[row + 1]):
            variable = index[entry]
            low, high, at = lower[variable], upper[variable], knots[variable]
            free += cheapest(variable, low, high, slopes)
            cost += price(variable, low, slopes)
            placed += low
            if low < at:
                room[ranks_below[variable - v0]] += min(high, at) - low
            if high > at:
                room[ranks_above[variable - v0]] += high - max(low, at)
        for rank in range(kinds):
            slope = family.slopes[rank]
            most = (row_upper[row] if slope < 0 else row_lower[row]) - placed
            if most > 0:
                take = min(most, room[rank])
                cost += take * slope
                placed += take
            elif slope >= 0:
                break
        if cost > free:
            gains[of[row - r0]] += cost - free
    best = gains[0]
    for one in range(1, FAMILIES):
        best = max(best, gains[one])
    return total + best


@njit(**LEAF)
def left(variable, x, slopes, dual):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """What a variable costs at x beyond what the multipliers account for, times their scale."""
    return dual.scale * price(variable, x, slopes) - dual.weight[variable] * x


@njit(**LEAF)
def dual_bound(part, state, slopes, dual, least):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """The bound of the multipliers, times their scale; `least` gets what each variable adds."""
    total = np.int64(dual.base)
    for variable in range(part[0], part[1]):
        low, high, knot = state.lower[variable], state.upper[variable], slopes.knot[variable]
        rest = left(variable, low, slopes, dual)
        if low < high:
            rest = min(rest, left(variable, high, slopes, dual))
            if low < knot < high:
                rest = min(rest, left(variable, knot, slopes, dual))
        least[variable - part[0]] = rest
        total += rest
    return total


@njit(**LEAF)
def _first_within(variable, low, high, most, slopes, dual):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """The first value, from below, at which no more than `most` is left; there is one."""
    knot = slopes.knot[variable]
    begin = left(variable, low, slopes, dual)
    if begin > most and low < knot:
        fall = dual.weight[variable] - dual.scale * slopes.below[variable]
        low = min(knot, high) if fall <= 0 else min(low - (most - begin) // fall, min(knot, high))
        begin = left(variable, low, slopes, dual)
    if begin > most:
        fall = dual.weight[variable] - dual.scale * slopes.above[variable]
        low = high if fall <= 0 else min(low - (most - begin) // fall, high)
    return low


@njit(**LEAF)
def _last_within(variable, low, high, most, slopes, dual):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """The first value, from above, at which no more than `most` is left; there is one."""
    knot = slopes.knot[variable]
    begin = left(variable, high, slopes, dual)
    if begin > most and high > knot:
        rise = dual.scale * slopes.above[variable] - dual.weight[variable]
        high = max(knot, low) if rise <= 0 else max(high + (most - begin) // rise, max(knot, low))
        begin = left(variable, high, slopes, dual)
    if begin > most:
        rise = dual.scale * slopes.below[variable] - dual.weight[variable]
        high = low if rise <= 0 else max(high + (most - begin) // rise, low)
    return high


@njit(**LEAF)
def rule_out(part, system, state, slopes, dual, best, trail, now, least):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Take away values that cannot beat the best, and propagate, while that helps. False when nothing can beat it."""
    v0, v1, r0, r1 = part
    for _ in range(3):
        spare = dual.scale * (best - 1) - dual_bound(part, state, slopes, dual, least)
        if spare < 0:
            return False
        for variable in range(v0, v1):
            low, high = state.lower[variable], state.upper[variable]
            if low == high:
                continue
            most = least[variable - v0] + spare
            low = _first_within(variable, low, high, most, slopes, dual)
            high = _last_within(variable, low, high, most, slopes, dual)
            if low > state.lower[variable] or high < state.upper[variable]:
                if trail.stamp[variable - v0] != now:
                    used = trail.used[0]
                    if used == len(trail.variable):
                        break  # no room: what was ruled out so far stands
                    trail.stamp[variable - v0] = now
                    trail.variable[used], trail.lower[used] = variable, state.lower[variable]
                    trail.upper[used] = state.upper[variable]
                    trail.used[0] += 1
                move(variable, low, high, system, state, r0)
        if state.ends[1] == 0:
            return True
        if settle(system, state, r0, 100 * (r1 - r0) + 10_000, trail, v0, now) >= 0:
            return False
    return True
