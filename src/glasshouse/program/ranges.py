"""Between which numbers does a count lie, over all histograms that fit? For one description or thousands at once.

Parts are independent, so the least of a sum is the sum of the leasts. A part whose solutions can all be listed gives
every range at a glance. Otherwise each solution met narrows what is open for every description, limits from propagation
close others, and only the rest is asked for, one by one; descriptions of the same cells are asked once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glasshouse.model.records import UNLIMITED
from glasshouse.model.schema import Predicate
from glasshouse.program import ladder as rungs
from glasshouse.program import search
from glasshouse.program.bounds import linear
from glasshouse.program.histogram import Problem
from glasshouse.program.integer import Outcome, Proof
from glasshouse.program.ladder import Ladder
from glasshouse.program.propagate import Array
from glasshouse.program.reduce import Programs, Split, split

CLIMB = Ladder()
LISTED = 1024  # solutions of a part that are worth listing
DRAWN = 8  # solutions drawn first, when they cannot all be listed


@dataclass(frozen=True)
class Ranges:
    """For each description: every fitting histogram counts between `low` and `high`; some count `met_low`, `met_high`.

    Where the two agree the range is proved; otherwise it is undecided, and lies between them. UNLIMITED stands for no
    limit. `fits` says whether any histogram fits at all; if none does, ranges mean nothing, and if that is not known
    (None) nothing was met and `met_low`, `met_high` are -1.
    """

    low: Array
    high: Array
    met_low: Array
    met_high: Array
    proof: tuple[Proof, ...]
    fits: bool | None
    solver_calls: int


def ranges(problem: Problem, predicates: Sequence[Predicate], number: int = 0, ladder: Ladder = CLIMB) -> Ranges:
    """The range of every description in a program.

    A description may cut through cells: a cell's records can be split in any way, so the least counts the cells
    inside it and the most those that meet it.
    """
    problem.check(number)
    first, last = int(problem.programs.first[number]), int(problem.programs.first[number + 1])
    here = np.arange(first, last)
    inside = np.array([problem.chosen(p)[here] for p in predicates], np.bool_).reshape(len(predicates), len(here))
    meeting = np.array([problem.chosen(p, every=False)[here] for p in predicates], np.bool_)
    return ranges_of(problem, inside, meeting.reshape(inside.shape), number, ladder)


def ranges_of(
    problem: Problem,
    inside: NDArray[np.bool_],
    meeting: NDArray[np.bool_],
    number: int = 0,
    ladder: Ladder = CLIMB,
    known: Array | None = None,
) -> Ranges:
    """The same for sets of variables of the program: those that count towards the least, and towards the most.

    Where a solution is `known`, none is drawn.
    """
    problem.check(number)
    whole = problem.split(propagate=ladder.propagate)
    first, last = int(problem.programs.first[number]), int(problem.programs.first[number + 1])
    count = len(inside)
    if whole.impossible[number]:
        zero = np.zeros(count, np.int64)
        return Ranges(zero, zero, zero, zero, (Proof.EXACT,) * count, False, 0)
    fixed = whole.lower[first:last].copy()
    mine = np.flatnonzero(whole.owner == number)
    for part in mine:
        fixed[whole.origin[whole.parts.first[part] : whole.parts.first[part + 1]] - first] = 0
    least, most = inside @ fixed, meeting @ fixed
    bounds = [least, most, least.copy(), most.copy()]  # low, high, met_low, met_high
    sure = np.full(count, 0, np.int64)  # of each description: the index of its weakest proof
    calls = 0
    for part in mine:
        columns = whole.origin[whole.parts.first[part] : whole.parts.first[part + 1]] - first
        sets, of = np.unique(np.concatenate([inside[:, columns], meeting[:, columns]]), axis=0, return_inverse=True)
        of = of.reshape(-1)
        found = _of_part(whole.parts.only(int(part)), sets, ladder, None if known is None else known[columns])
        if found is None:
            none = np.full(count, -1, np.int64)
            low, high = inside @ whole.lower[first:last], meeting @ whole.upper[first:last]
            return Ranges(low, np.minimum(high, UNLIMITED), none, none, (Proof.UNDECIDED,) * count, None, calls)
        if found.impossible is not None:
            zero = np.zeros(count, np.int64)
            return Ranges(zero, zero, zero, zero, (found.impossible,) * count, False, calls)
        bounds[0] += found.low[of[:count]]
        bounds[2] += found.met_low[of[:count]]
        bounds[1] += found.high[of[count:]]
        bounds[3] += found.met_high[of[count:]]
        sure = np.maximum(sure, np.maximum(found.sure[0][of[:count]], found.sure[1][of[count:]]))
        calls += found.calls
    proof = tuple(rungs.ORDER[at] for at in sure)
    high, met_high = np.minimum(bounds[1], UNLIMITED), np.minimum(bounds[3], UNLIMITED)
    return Ranges(bounds[0], high, bounds[2], met_high, proof, True, calls)


@dataclass
class _Part:
    """What is known of the sets of a part while it is asked."""

    low: Array
    high: Array
    met_low: Array
    met_high: Array
    sure: tuple[Array, Array]
    calls: int = 0
    impossible: Proof | None = None


def _of_part(program: Programs, sets: NDArray[np.bool_], ladder: Ladder, known: Array | None) -> _Part | None:
    """The range of every set of variables of a part; None when no solution is known."""
    zero = np.zeros(len(sets), np.int64)
    part = _Part(zero, zero, zero, zero, (zero.copy(), zero.copy()))
    if ladder.nodes > 0 and program.upper.max() < UNLIMITED:
        pool, through = search.enumerate_part(program, 0, LISTED, max(ladder.nodes, 4 * LISTED))
        if through:
            if not len(pool):
                part.impossible = Proof.EXACT
                return part
            sums = pool @ sets.T
            part.low = part.met_low = sums.min(axis=0)
            part.high = part.met_high = sums.max(axis=0)
            return part
    alone = split(program, np.zeros(1, np.bool_), propagate=ladder.propagate)
    if known is not None:
        pool = known[None, :]
    else:
        pool = np.array([a.x for a in _drawn(alone, ladder) if a.fits[0]], np.int64).reshape(-1, len(program.lower))
    if not len(pool):
        answers = rungs.minimum(alone, linear(np.zeros(len(program.lower), np.int64)), ladder)
        part.calls += 1
        if answers.outcome[0] == Outcome.INFEASIBLE:
            part.impossible = answers.proof[0]
            return part
        if answers.outcome[0] == Outcome.STOPPED:
            return None
        pool = answers.x[None, :]
    sums = pool @ sets.T
    part.met_low, part.met_high = sums.min(axis=0), sums.max(axis=0)
    part.low, part.high = sets @ alone.lower, np.minimum(sets @ alone.upper, UNLIMITED)
    endless = sets @ (alone.upper >= UNLIMITED) > 0  # nothing limits one of the cells: more of it always fits
    part.met_high[endless] = part.high[endless] = UNLIMITED
    for sign, floor, met in ((1, part.low, part.met_low), (-1, part.high, part.met_high)):
        for number in range(len(sets)):
            if floor[number] == met[number]:
                continue
            answers = rungs.minimum(alone, linear(sign * sets[number].astype(np.int64)), ladder, start=pool[0])
            part.calls += 1
            floor[number] = _tighter(sign, floor[number], sign * answers.floor[0])
            part.sure[0 if sign > 0 else 1][number] = rungs.ORDER.index(answers.proof[0])
            if answers.fits[0]:
                counts = sets @ answers.x
                np.minimum(part.met_low, counts, out=part.met_low)
                np.maximum(part.met_high, counts, out=part.met_high)
            if answers.proof[0] == Proof.TWO_ENGINES:
                floor[number] = met[number]
    return part


def _tighter(sign: int, one: int, other: int) -> int:
    return max(one, other) if sign > 0 else min(one, other)


def _drawn(alone: Split, ladder: Ladder) -> list[rungs.Answers]:
    return [rungs.some(alone, np.array([seed], np.uint64), ladder) for seed in range(DRAWN)]
