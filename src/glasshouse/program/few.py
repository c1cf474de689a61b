"""Which few of very many variables does a good solution need? Those that some vertices of the relaxation use.

A vertex uses no more variables than there are rows. Where many solutions cost the same, the least cost of the
relaxation is mostly met by whole ones too, and some of them use only what a few vertices use, each the cheapest for
prices that are drawn at random. Branching on those variables alone takes milliseconds where all of them take seconds.
What is found is a solution; only where it meets the relaxation's bound does this show that none is cheaper.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from glasshouse.model.records import UNLIMITED
from glasshouse.program.certainty.prove import certified
from glasshouse.program.highs import Kept
from glasshouse.program.integer import IntegerProgram, Limit, Outcome, Solution, Solver

PRICES = 100  # what a variable costs at most when prices are drawn
MANY = 2000  # variables: with so many, branching on all takes so long that several sets of few are tried before
VERTICES = 16  # and this is how many vertices the last set is from


def many(program: IntegerProgram) -> bool:
    """Are there so many variables that a few of them are to be tried first, whatever is asked?"""
    return len(program.cost) > MANY


def among_few(program: IntegerProgram, relaxed: Solution, solver: Solver, limit: Limit) -> Solution | None:
    """The cheapest x that is found so; if it meets the relaxation's bound it is proved.

    None: the relaxation ended without a vertex, some variable must be more than 0, or no x was found.
    """
    floor = relaxed.floor
    if relaxed.point is None or floor is None or abs(floor) >= UNLIMITED or program.lower.any():
        return None
    best = program.known
    for used in _growing(program, relaxed.point, floor, limit):
        found = solver(program.only(np.flatnonzero(used)), limit).x
        if found is None:
            continue
        x = program.lower.copy()
        x[used] = found
        if program.fits(x) and (best is None or program.value(x) < program.value(best)):
            best = x
        if best is not None and program.value(best) <= floor:
            break
    return None if best is None else certified(program, Solution(Outcome.FEASIBLE, best, floor, floor))


def _growing(
    program: IntegerProgram, vertex: NDArray[np.float64], floor: int, limit: Limit
) -> Iterator[NDArray[np.bool_]]:  # fmt: skip
    """What more and more vertices use that cost no more than the bound, and what a known solution does."""
    kept = Kept(program.with_row(program.cost, -UNLIMITED, floor))
    random, used = np.random.default_rng(0), vertex > 0  # any prices will do, if always the same
    if program.known is not None:
        used |= program.known > 0
    for number in range(1, VERTICES if many(program) else 2):
        other = kept.relax(random.integers(0, PRICES, len(vertex)), limit).x
        if other is None:
            return
        used |= other > 0
        if (number + 1).bit_count() == 1:  # 2, 4, 8, 16
            yield used
