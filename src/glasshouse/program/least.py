"""How many records of each kind must there be? The least of every variable over all solutions, for many at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from glasshouse.program.extremes import LEAST, Extremes, solutions_of
from glasshouse.program.integer import Proof
from glasshouse.program.ladder import ORDER, Ladder
from glasshouse.program.propagate import Array
from glasshouse.program.reduce import Programs
from glasshouse.program.tables.histogram import Problem


@dataclass(frozen=True)
class Least:
    """Of each variable: in every solution it is at least `low`, and in some solution it is `met`. Equal: proved."""

    low: Array
    met: Array
    proof: tuple[Proof, ...]  # of each program, the weakest
    clock: NDArray[np.bool_]  # of each program: the wall clock had a say


def least(
    problem: Problem, witnesses: Sequence[Array], ladder: Ladder, open_: NDArray[np.bool_] | None = None,
    *, ask: bool = True,
) -> Least:  # fmt: skip
    """The least of every variable that counts records; of others, what is known without asking.

    `witnesses` solve every program; those not `open_` have no other solution. Without `ask`, what propagation and the
    witnesses tell.
    """
    whole = problem.split(propagate=ladder.propagate)
    known = np.array(witnesses)
    low, met = whole.lower.copy(), known.min(axis=0)
    asked = np.ones(len(problem.programs), np.bool_) if open_ is None else open_
    closed = ~asked[problem.programs.program_of]
    low[closed] = met[closed]
    weakest = np.zeros(len(problem.programs), np.int64)
    clock = np.zeros(len(problem.programs), np.bool_)
    for part in np.flatnonzero(asked[whole.owner]):
        variables, owner = whole.variables(int(part)), int(whole.owner[part])
        counts = problem.counted[variables]
        if not (met[variables] > low[variables])[counts].any():
            continue
        if not ask:
            weakest[owner] = ORDER.index(Proof.UNDECIDED)
        else:
            found = _of_part(whole.parts.only(int(part)), known[:, variables], ladder, counts)
            low[variables], met[variables] = found.low, found.met
            weakest[owner] = max(weakest[owner], found.weakest)
            clock[owner] |= found.clock
    return Least(low, met, tuple(ORDER[at] for at in weakest), clock)


class _OfPart(NamedTuple):
    """The least of each variable of a part, the weakest of the answers (as in ORDER), and whether the clock spoke."""

    low: Array
    met: Array
    weakest: int
    clock: bool


def _of_part(program: Programs, known: NDArray[np.int64], ladder: Ladder, counts: NDArray[np.bool_]) -> _OfPart:
    """The least of each variable of a part that counts records."""
    if ladder.memory is None:
        return _asked(program, known, ladder, counts)
    key = ladder.memory.key(program, known, counts, ladder.limit)
    if key not in ladder.memory:
        ladder.memory[key] = _asked(program, known, ladder, counts)
    found: _OfPart = ladder.memory[key]
    return found


def _asked(program: Programs, known: NDArray[np.int64], ladder: Ladder, counts: NDArray[np.bool_]) -> _OfPart:
    """The same, asked for, small ones first."""
    pool, through = solutions_of(program, ladder, brief=True)
    solutions = pool if through else np.concatenate([known, pool])  # those of a list that was stopped are met as well
    found = Extremes(program, ladder, solutions, (LEAST, None), all_there=through)
    order = np.argsort(found.ends[0].met, kind="stable")
    found.ask(found.ends, 0, order[counts[order]])
    (end,) = found.ends
    return _OfPart(end.bound, end.met, int(end.asked.max()), found.clock)
