"""Which few published numbers give a number away? Those without any one of which it could be something else.

Numbers that are not believed have no limits. A set gives a number away if no solution goes beyond its bounds; it is
made smaller by halves until every number of it is needed (QuickXplain). What the relaxation rests on is tried first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from glasshouse.model.records import UNLIMITED, Count
from glasshouse.program.answers import some
from glasshouse.program.conflict import smallest
from glasshouse.program.highs import relax
from glasshouse.program.integer import Outcome, Proof
from glasshouse.program.ladder import CLIMB, ORDER, Ladder
from glasshouse.program.numbers.ends import opened
from glasshouse.program.propagate import Array
from glasshouse.program.reduce import Programs, split

ROOM = 1 << 20  # beyond the largest printed number: what is not believed is first tried up to here
_FELT = 1e-7  # a reduced cost beyond this: the limit of the variable has a say


@dataclass(frozen=True)
class Support:
    """Which of the published numbers give a number away; `minimal`: every one is needed."""

    chosen: NDArray[np.int64]
    minimal: bool
    proof: Proof = Proof.EXACT


def gives_away(
    program: Programs, printed: Array, lower: Count, upper: Count, target: int, low: int, high: int,
    ladder: Ladder = CLIMB,
) -> Support | None:  # fmt: skip
    """A smallest choice of the `printed` variables (with these limits) that keeps the target between two numbers.

    `program` is a single one. None: not even all of them do, as far as could be shown.
    """
    asked = _Asked(program, printed, lower, upper, target, low, high, ladder)
    told = np.flatnonzero((lower > 0) | (upper < UNLIMITED))
    for candidates in (asked.felt(told), told):
        if len(candidates) and asked.contradict(candidates):
            asked.unsure = False
            chosen = smallest(asked.contradict, candidates[:0], candidates, fresh=True)
            return Support(np.sort(chosen), not asked.unsure, ORDER[asked.proof])
    return None


@dataclass
class _Asked:
    """Could the target go beyond its bounds if only some numbers were believed?"""

    program: Programs
    printed: Array
    lower: Count
    upper: Count
    target: int
    low: int
    high: int
    ladder: Ladder
    unsure: bool = False
    proof: int = 0  # the weakest that was used, an index into ORDER

    def contradict(self, chosen: Array) -> bool:
        """Is it proved that the target stays within its bounds, with these numbers alone?"""
        lower, upper = self._believed(chosen)
        sides = []
        if self.low > 0:
            sides.append((lower, _with(upper, self.target, min(self.low - 1, int(upper[self.target])))))
        if self.high < UNLIMITED:
            sides.append((_with(lower, self.target, max(self.high + 1, int(lower[self.target]))), upper))
        return all(self._nothing_fits(*limits) for limits in sides)

    def _believed(self, chosen: Array) -> tuple[Count, Count]:
        lower, upper = np.zeros_like(self.program.lower), np.full_like(self.program.upper, UNLIMITED)
        np.maximum.at(lower, self.printed[chosen], self.lower[chosen])
        np.minimum.at(upper, self.printed[chosen], self.upper[chosen])
        return lower, upper

    def _nothing_fits(self, lower: Count, upper: Count) -> bool:
        """Is it proved that nothing fits? Something small that fits is looked for first.

        Integers without a limit can keep HiGHS at the root for ever, where neither nodes nor its clock count.
        """
        small = np.minimum(upper, int(lower.max(initial=0)) + ROOM)
        near = split(replace(self.program, lower=lower, upper=small), np.zeros(1, np.bool_))
        if not near.impossible[0] and some(near, np.zeros(1, np.uint64), self.ladder).fits[0]:
            return False
        whole = split(replace(self.program, lower=lower, upper=upper), np.zeros(1, np.bool_))
        if whole.impossible[0]:
            return True
        answer = some(opened(whole), np.zeros(1, np.uint64), self.ladder)
        nothing = answer.outcome[0] == Outcome.INFEASIBLE and answer.proof[0] != Proof.UNDECIDED
        self.unsure |= not nothing and not answer.fits[0]
        self.proof = max(self.proof, ORDER.index(answer.proof[0])) if nothing else self.proof
        return bool(nothing)

    def felt(self, told: Array) -> Array:
        """The numbers whose limits have a say in the relaxation's bounds."""
        lower, upper = self._believed(told)
        felt = np.zeros(len(lower), np.bool_)
        for sign, wanted in ((1, self.low > 0), (-1, self.high < UNLIMITED)):
            if wanted:
                cost = _with(np.zeros_like(lower), self.target, sign)
                program = replace(self.program, lower=lower, upper=upper).integer_program(cost)
                duals = relax(program, self.ladder.limit).duals
                if duals is None:
                    return told[:0]
                saved = np.bincount(program.index, program.coefficient * duals[program.row_of], len(cost))
                felt |= np.abs(cost - saved) > _FELT
        return told[felt[self.printed[told]]]


def _with(values: Count, at: int, value: int) -> Count:
    changed = values.copy()
    changed[at] = value
    return changed
