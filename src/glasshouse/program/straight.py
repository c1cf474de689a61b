"""How does a cost with two slopes become a linear one? A variable with a bend inside its limits becomes two.

The second is what lies beyond the knot. Where the slope falls there, a switch lets it rise only when the first is full;
a first variable with two values is its own switch.

Good solutions are found with less: every variable gets one slope, that of the chord from its least to where it stands.
The cheapest vertex moves; its chords are taken next, until nothing changes (slope scaling). Vertices are nearly always
whole here, and each costs what a warm relaxation does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from glasshouse.model.records import UNLIMITED
from glasshouse.program.bounds import Cost
from glasshouse.program.highs import Kept
from glasshouse.program.integer import SAFE, IntegerProgram, Limit, largest
from glasshouse.program.propagate import Array

UNIT = 1000  # slopes are rounded to this fraction
ROUNDS = 6  # vertices from each beginning


@dataclass(frozen=True)
class Straight:
    """A program with linear costs, and how its x and those of the bent one become each other."""

    program: IntegerProgram
    cost: Cost  # as it was
    second: Array  # variables that have a second one
    switched: Array  # and, of these, a switch
    left_out: int  # what lies before the knots, in costs that begin beyond them

    @property
    def weak(self) -> bool:
        """Does the relaxation tell little? It makes what lies beyond a knot cheaper than it is."""
        return len(self.second) > 0

    def gathered(self, x: Array) -> Array:
        """An x of the bent program."""
        count = len(self.cost.knot)
        whole = x[:count].copy()
        whole[self.second] += x[count : count + len(self.second)]
        return whole

    def spread(self, x: Array) -> Array:
        """An x of the linear program."""
        first = x.copy()
        first[self.second] = np.minimum(x[self.second], self.cost.knot[self.second])
        beyond = x[self.second] - first[self.second]
        return np.concatenate([first, beyond, (x[self.switched] > self.cost.knot[self.switched]).astype(np.int64)])


def straighten(program: IntegerProgram, cost: Cost) -> Straight:
    """The same program with linear costs."""
    n = len(cost.knot)
    low, high, knot = program.lower, program.upper, cost.knot
    left_out = int(((cost.below - cost.above) * knot)[knot <= low].sum())
    slope = np.where(knot <= low, cost.above, cost.below)
    second = np.flatnonzero((cost.below != cost.above) & (knot > low) & (knot < high))
    if not len(second):
        return Straight(replace(program, cost=slope), cost, second, second, left_out)
    upper = high.copy()
    upper[second] = knot[second]
    number = np.full(n, -1, np.int64)
    number[second] = n + np.arange(len(second))
    own, switched = _falling(cost, low, high, second)
    switch = n + len(second) + np.arange(len(switched))
    doubled = number[program.index] >= 0
    m = len(program.row_lower)
    alone = m + np.arange(len(own))  # second <= (high - knot) * (first - low)
    full, over = m + len(own) + np.arange(len(switched)), m + len(own) + len(switched) + np.arange(len(switched))
    ones, once = np.ones(len(switched), np.int64), np.ones(len(own), np.int64)
    # first >= low + (knot - low) * switch;  second <= (high - knot) * switch
    rows = [program.row_of, program.row_of[doubled], alone, alone, full, full, over, over]
    index = [program.index.astype(np.int64), number[program.index[doubled]]]
    index += [number[own], own, switched, switch, number[switched], switch]
    value = [program.coefficient, program.coefficient[doubled], once, knot[own] - high[own]]
    value += [ones, low[switched] - knot[switched], ones, knot[switched] - high[switched]]
    row, column, entry = np.concatenate(rows), np.concatenate(index), np.concatenate(value)
    order = np.lexsort((column, row))
    none, unlimited = np.zeros(len(switched), np.int64), np.full(len(switched), UNLIMITED)
    below = np.full(len(own), -UNLIMITED)
    longer = IntegerProgram(
        np.concatenate([slope, cost.above[second], none]),
        np.concatenate([low, np.zeros(len(second) + len(switched), np.int64)]),
        np.concatenate([upper, high[second] - knot[second], ones]),
        np.concatenate([program.row_lower, below, low[switched], -unlimited]),
        np.concatenate([program.row_upper, (knot[own] - high[own]) * low[own], unlimited, none]),
        np.concatenate([[0], np.cumsum(np.bincount(row, minlength=m + len(own) + 2 * len(switched)))]),
        column[order].astype(np.int32),
        entry[order],
    )
    return Straight(longer, cost, second, switched, left_out)


def _falling(cost: Cost, lower: Array, upper: Array, second: Array) -> tuple[Array, Array]:
    """Of the variables with a bend, those whose slope falls: with two values before the knot, and with more."""
    falling = second[cost.below[second] > cost.above[second]]
    limit = (upper[falling] - cost.knot[falling]).astype(np.float64) * lower[falling]  # of the row that links the two
    two = (cost.knot[falling] - lower[falling] == 1) & (limit < UNLIMITED)
    return falling[two], falling[~two]


def descended(program: IntegerProgram, cost: Cost, x: Array, limit: Limit, descents: int, seed: int = 0) -> Array:
    """A solution that costs no more than x, and mostly less: the best whole vertex of a few descents.

    The first begins with the chords of all costs, the others at the best solution with slopes that are changed by
    chance (the same for the same seed).
    """
    steepest = max(largest(cost.below), largest(cost.above))
    if UNIT * steepest * max(largest(program.lower), largest(program.upper), largest(cost.knot)) >= SAFE:
        return x  # without limits there are no chords
    kept, random, lower = Kept(program), np.random.default_rng(seed), program.lower
    base, best = cost.of(lower), int(cost.of(x).sum())

    def chords(at: Array, otherwise: Array) -> Array:
        """The slopes from the least of each variable to where it stands; where that is the least, otherwise."""
        return np.where(at > lower, UNIT * (cost.of(at) - base) // np.maximum(at - lower, 1), otherwise)

    widest = chords(program.upper, np.zeros_like(base))
    for descent in range(descents):
        slopes = widest
        if descent:
            slopes = chords(x, widest) * random.integers(UNIT // 2, 3 * UNIT // 2, len(x)) // UNIT
        for _ in range(ROUNDS):
            vertex = kept.relax(slopes, limit).x
            if vertex is None:
                break
            found = np.rint(vertex).astype(np.int64)
            value = int(cost.of(found).sum())
            if value < best and program.fits(found):
                x, best = found, value
            before, slopes = slopes, chords(found, slopes)
            if (before == slopes).all():
                break
    return x
