"""How many records of each kind must there be? The least of every variable over all solutions, for many at once.

A part whose solutions can all be listed shows it at a glance. Otherwise every solution met is a witness that a
variable can be as small as it is there, limits from propagation are a floor, and only where the two differ is the least
asked for; each answer is one more witness for all the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glasshouse.model.records import UNLIMITED
from glasshouse.program import ladder as rungs
from glasshouse.program import search
from glasshouse.program.bounds import linear
from glasshouse.program.histogram import Problem
from glasshouse.program.integer import Proof
from glasshouse.program.ladder import Ladder
from glasshouse.program.propagate import Array
from glasshouse.program.reduce import Programs, split

LISTED = 1024  # solutions of a part that are worth listing
STEPS = 4096  # of the search that lists them


@dataclass(frozen=True)
class Least:
    """Of each variable: in every solution it is at least `low`, and in some solution it is `met`. Equal: proved."""

    low: Array
    met: Array
    proof: tuple[Proof, ...]  # of each program, the weakest
    clock: NDArray[np.bool_]  # of each program: the wall clock had a say


def least(
    problem: Problem, witnesses: Sequence[Array], ladder: Ladder, open_: NDArray[np.bool_] | None = None
) -> Least:
    """The least of every variable. `witnesses` solve every program; those not `open_` have no other solution."""
    whole = problem.split(propagate=ladder.propagate)
    met = np.minimum.reduce(list(witnesses))
    low = whole.lower.copy()
    asked = np.ones(len(problem.programs), np.bool_) if open_ is None else open_
    closed = ~asked[problem.programs.program_of]
    low[closed] = met[closed]
    weakest = np.zeros(len(problem.programs), np.int64)
    clock = np.zeros(len(problem.programs), np.bool_)
    for part in np.flatnonzero(asked[whole.owner]):
        variables = whole.origin[whole.parts.first[part] : whole.parts.first[part + 1]]
        owner = int(whole.owner[part])
        found = _of_part(whole.parts.only(int(part)), [x[variables] for x in witnesses], ladder)
        low[variables], met[variables] = found.low, found.met
        weakest[owner] = max(weakest[owner], rungs.ORDER.index(found.proof))
        clock[owner] |= found.clock
    return Least(low, met, tuple(rungs.ORDER[at] for at in weakest), clock)


@dataclass(frozen=True)
class _Part:
    low: Array
    met: Array
    proof: Proof
    clock: bool


def _of_part(program: Programs, witnesses: Sequence[Array], ladder: Ladder) -> _Part:
    met = np.minimum.reduce(list(witnesses))
    if not (met > program.lower).any():
        return _Part(program.lower, met, Proof.EXACT, False)
    if ladder.nodes > 0 and program.upper.max() < UNLIMITED:
        pool, through = search.enumerate_part(program, 0, LISTED, STEPS)
        if len(pool):
            met = np.minimum(met, pool.min(axis=0))
        if through:
            return _Part(met, met, Proof.EXACT, False)
    alone = split(program, np.zeros(1, np.bool_), propagate=ladder.propagate)
    low, proof, clock = program.lower.copy(), Proof.EXACT, False
    for variable in np.argsort(met, kind="stable"):
        if met[variable] == low[variable]:
            continue
        cost = np.zeros(len(met), np.int64)
        cost[variable] = 1
        fitting = np.ones(1, np.bool_)
        answers = rungs.minimum(alone, linear(cost), ladder, start=witnesses[0], fitting=fitting)
        met = np.minimum(met, answers.x)
        low[variable] = max(low[variable], int(answers.floor[0]))
        if answers.proof[0] == Proof.TWO_ENGINES:
            low[variable] = met[variable]
        proof, clock = rungs.weaker(proof, answers.proof[0]), clock or bool(answers.clock[0])
    return _Part(low, met, proof, clock)
