"""Between which numbers does a count lie, over all histograms that fit? For one description or thousands at once.

Parts are independent, so the least of a sum is the sum of the leasts; descriptions of the same cells are asked once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glasshouse.model.records import UNLIMITED
from glasshouse.model.schema import Predicate
from glasshouse.program.answers import minimum, some
from glasshouse.program.bounds import linear
from glasshouse.program.extremes import LEAST, MOST, Extremes, Flags, distinct, solutions_of
from glasshouse.program.integer import Outcome, Proof
from glasshouse.program.ladder import CLIMB, ORDER, Ladder
from glasshouse.program.propagate import Array
from glasshouse.program.reduce import Programs, split
from glasshouse.program.tables.histogram import Problem

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
    problem: Problem, inside: Flags, meeting: Flags, number: int = 0, ladder: Ladder = CLIMB, known: Array | None = None
) -> Ranges:
    """The same for sets of variables of the program: those that count towards the least, and towards the most.

    Where a solution is `known`, none is drawn.
    """
    problem.check(number)
    whole = problem.split(propagate=ladder.propagate)
    here = slice(int(problem.programs.first[number]), int(problem.programs.first[number + 1]))
    count = len(inside)
    if whole.impossible[number]:
        return _nothing(count, Proof.EXACT)
    fixed = whole.lower[here].copy()
    mine = [(int(part), whole.variables(int(part)) - here.start) for part in np.flatnonzero(whole.owner == number)]
    for _, columns in mine:
        fixed[columns] = 0
    low, high = inside @ fixed, meeting @ fixed
    met_low, met_high = low.copy(), high.copy()
    weakest = np.zeros(count, np.int64)  # of each description: the index of its weakest proof
    for part, columns in mine:
        sets, of = distinct(np.concatenate([inside[:, columns], meeting[:, columns]]))
        found = _of_part(whole.parts.only(part), sets, ladder, None if known is None else known[columns])
        if isinstance(found, Proof):
            return _nothing(count, found)
        if found is None:
            none = np.full(count, -1, np.int64)
            low, high = inside @ whole.lower[here], meeting @ whole.upper[here]
            return Ranges(low, np.minimum(high, UNLIMITED), none, none, (Proof.UNDECIDED,) * count, None)
        least, most = found.ends
        low += least.bound[of[:count]]
        met_low += least.met[of[:count]]
        high += most.bound[of[count:]]
        met_high += most.met[of[count:]]
        weakest = np.maximum(weakest, np.maximum(least.asked[of[:count]], most.asked[of[count:]]))
    high, met_high = np.minimum(high, UNLIMITED), np.minimum(met_high, UNLIMITED)
    return Ranges(low, high, met_low, met_high, tuple(ORDER[at] for at in weakest), True)


def _nothing(count: int, proof: Proof) -> Ranges:
    """Nothing fits."""
    zero = np.zeros(count, np.int64)
    return Ranges(zero, zero, zero, zero, (proof,) * count, False)


def _of_part(program: Programs, sets: Flags, ladder: Ladder, known: Array | None) -> Extremes | Proof | None:
    """The range of every set of variables of a part; the proof that it has no solution; None when none is known."""
    pool, through = solutions_of(program, ladder)
    if not through:  # those of a list that was stopped are much alike: drawn ones narrow more
        pool = _drawn(program, ladder) if known is None else known[None, :]
    elif not len(pool):
        return Proof.EXACT
    if not len(pool):
        alone = split(program, np.zeros(1, np.bool_), propagate=ladder.propagate)
        answers = minimum(alone, linear(np.zeros(len(program.lower), np.int64)), ladder)
        if not answers.fits[0]:
            return answers.proof[0] if answers.outcome[0] == Outcome.INFEASIBLE else None
        pool = answers.x[None, :]
    found = Extremes(program, ladder, pool, (LEAST, sets), (MOST, sets), all_there=through)
    for end in range(2):
        found.ask(found.ends, end, np.arange(len(sets)))
    return found


def _drawn(program: Programs, ladder: Ladder) -> NDArray[np.int64]:
    """Solutions by chance, a row each; perhaps none."""
    alone = split(program, np.zeros(1, np.bool_), propagate=ladder.propagate)
    answers = [some(alone, np.array([seed], np.uint64), ladder) for seed in range(DRAWN)]
    return np.array([one.x for one in answers if one.fits[0]], np.int64).reshape(-1, len(program.lower))
