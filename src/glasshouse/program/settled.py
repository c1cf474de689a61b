"""Which counts are the same in every histogram that fits? Thousands of descriptions at once.

One histogram that fits gives each description the only count it can have for certain; any other that counts differently
refutes it. So a few histograms next to it refute most, each asked-for extreme refutes more on its way, and only what
must be true is asked for in both directions. A bound on one description holds for others: where a wider one counts no
more, neither does a narrower one, and where a narrower one counts no less, neither does a wider one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from glasshouse.model.records import UNLIMITED
from glasshouse.program.extremes import LEAST, MOST, Extremes, Flags, distinct, solutions_of
from glasshouse.program.integer import Proof
from glasshouse.program.ladder import CLIMB, ORDER, Ladder
from glasshouse.program.propagate import Array
from glasshouse.program.reduce import Programs
from glasshouse.program.tables.histogram import Problem


class Verdict(IntEnum):
    """What is known of a count."""

    SETTLED = 0  # the same in every histogram that fits
    REFUTED = 1  # two that fit count differently
    OPEN = 2  # all that were met agree, but others might not


@dataclass(frozen=True)
class Settled:
    """For each description its verdict, `low <= every count <= high`, and the least and most that were met.

    Of what is refuted no more was asked than that.
    """

    verdict: NDArray[np.int8]
    low: Array
    high: Array
    met_low: Array
    met_high: Array
    proof: tuple[Proof, ...]
    solver_calls: int
    clock: bool

    def some(self, chosen: slice) -> Settled:
        """The same of some of the descriptions."""
        return replace(
            self, verdict=self.verdict[chosen], low=self.low[chosen], high=self.high[chosen],
            met_low=self.met_low[chosen], met_high=self.met_high[chosen], proof=self.proof[chosen],
        )  # fmt: skip


def settled(
    problem: Problem, start: Array, inside: Flags, meeting: Flags, number: int = 0, ladder: Ladder = CLIMB
) -> Settled:
    """Which sets of variables of a program count the same in every solution; `start` is one.

    `inside` are the variables that count towards the least, `meeting` those that count towards the most: they differ
    where a description cuts through cells.
    """
    whole = problem.split(propagate=ladder.propagate)
    first = int(problem.programs.first[number])
    fixed = start.copy()
    parts: list[tuple[Extremes, Array]] = []
    for part in np.flatnonzero(whole.owner == number):
        columns = whole.variables(int(part)) - first
        fixed[columns] = 0
        pairs, of = distinct(np.concatenate([inside[:, columns], meeting[:, columns]], axis=1))
        parts.append((_begun(whole.parts.only(int(part)), start[columns], pairs, ladder), of))
    low, high = inside @ fixed, meeting @ fixed
    met_low, met_high = low.copy(), high.copy()
    alive = low == high
    for one, of in parts:
        alive &= one.agree[of]
    for one, of in parts:
        _ask(one, of[alive])
        alive &= one.agree[of]
    sure = np.zeros(len(inside), np.int64)
    for one, of in parts:
        least, most = one.ends
        for total, known in ((low, least.bound), (high, most.bound), (met_low, least.met), (met_high, most.met)):
            total += known[of]
        sure = np.maximum(sure, np.maximum(least.proof, most.proof)[of])
    low, high, met_low, met_high = (np.minimum(total, UNLIMITED) for total in (low, high, met_low, met_high))
    verdict = np.where(met_low < met_high, Verdict.REFUTED, np.where(low == high, Verdict.SETTLED, Verdict.OPEN))
    proof = tuple(
        Proof.UNDECIDED if verdict[at] == Verdict.OPEN else Proof.EXACT if verdict[at] else ORDER[sure[at]]
        for at in range(len(verdict))
    )
    calls, clock = sum(one.calls for one, _ in parts), any(one.clock for one, _ in parts)
    return Settled(verdict.astype(np.int8), low, high, met_low, met_high, proof, calls, clock)


def _begun(program: Programs, start: Array, pairs: Flags, ladder: Ladder) -> Extremes:
    """What solutions that are listed, or lie next to the start, say of pairs of sets that stand side by side."""
    pool, through = solutions_of(program, ladder)
    # a list that was stopped is not counted: for thousands of sets that takes longer than it saves
    solutions, width = (pool if through else start[None, :]), len(start)
    part = Extremes(program, ladder, solutions, (LEAST, pairs[:, :width]), (MOST, pairs[:, width:]), all_there=through)
    if not through:
        part.look_around()
    return part


def _ask(part: Extremes, wanted: Array) -> None:
    """Ask for the most, wide sets first, and for the least, narrow sets first, of sets that may be settled."""
    alive = np.zeros(len(part.agree), np.bool_)
    alive[wanted] = True
    chosen = np.flatnonzero(alive & part.agree)
    some = least, most = tuple(end.only(chosen) for end in part.ends)
    part.ask(some, 1, np.argsort(-most.sizes, kind="stable"), settling=True)
    part.ask(some, 0, np.argsort(least.sizes, kind="stable"), settling=True)
    for end, learnt in zip(part.ends, some, strict=True):
        end.put(chosen, learnt)
