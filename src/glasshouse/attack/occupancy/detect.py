"""Must somebody break the rule? The least and the most households of a block that can, with proof, and why.

`Q(D') fits Q(D)` and nobody breaks the rule: if nothing satisfies both, but something satisfies the first, somebody
does (equation 1 of Steed, Qing and Wu). The least number of such households answers all at once: nothing fits, none
need to, or so many must. Where numbers can be read in several ways, a data set fits if it fits under one of them: what
is certain is certain under every reading.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from glasshouse.attack.occupancy.bundles import Bundles
from glasshouse.attack.occupancy.kinds import TOTALS, Block
from glasshouse.model.records import UNLIMITED, Count
from glasshouse.program.conflict import smallest
from glasshouse.program.integer import Outcome, Proof, Solution
from glasshouse.program.ladder import CLIMB, Ladder, cheapest, engage, weaker


class Answer(StrEnum):
    """What is known of a block."""

    CERTAIN = "certain"  # the numbers can all hold only if somebody breaks the rule
    OPEN = "open"  # they can also hold if nobody does
    CONTRADICTION = "contradiction"  # nothing fits, rule or no rule: says nothing of anybody


@dataclass(frozen=True)
class Found:
    """How many households break the rule: `low <= number <= high`, and whether data sets that fit meet the ends.

    `proof` is that of the answer: of `low` being above 0 where it is certain, of nothing fitting in a contradiction. An
    open answer has a data set without violations (exact), or nobody could tell (undecided).
    """

    answer: Answer
    low: int
    high: int
    low_met: bool
    high_met: bool
    proof: Proof
    clock: bool = False


def detect(bundles: Bundles, readings: Sequence[Block], ladder: Ladder = CLIMB) -> Found:
    """The least and the most households that break the rule in any data set that fits under any reading."""
    found = [_detect(bundles, block, ladder) for block in readings]
    fitting = [one for one in found if one.answer != Answer.CONTRADICTION]
    clock, proof = any(one.clock for one in found), reduce(weaker, (one.proof for one in found))
    if not fitting:
        return Found(Answer.CONTRADICTION, 0, 0, False, False, proof, clock)
    low, high = min(one.low for one in fitting), max(one.high for one in fitting)
    low_met = any(one.low_met for one in fitting if one.low == low)
    high_met = any(one.high_met for one in fitting if one.high == high)
    if low > 0:
        return Found(Answer.CERTAIN, low, high, low_met, high_met, proof, clock)
    return Found(Answer.OPEN, low, high, low_met, high_met, Proof.EXACT if low_met else Proof.UNDECIDED, clock)


def _detect(bundles: Bundles, block: Block, ladder: Ladder) -> Found:
    """The same under one reading."""
    if bundles.kinds.too_many(block):
        return Found(Answer.CONTRADICTION, 0, 0, False, False, Proof.EXACT)
    broken = bundles.breaks.astype(np.int64)
    least = _least(bundles, block, broken, ladder)
    if least.outcome == Outcome.INFEASIBLE and least.proof != Proof.UNDECIDED:
        return Found(Answer.CONTRADICTION, 0, 0, False, False, least.proof)
    if least.x is None:  # nobody knows whether anything fits
        return Found(Answer.OPEN, 0, block.subsidised, False, False, Proof.UNDECIDED, least.clock)
    most = _least(bundles, block, -broken, ladder)
    low, low_met = _proved(least)
    high, high_met = _proved(most)
    low, high = max(low, 0), min(-high, block.subsidised)
    if low > 0:
        proof = least.proof if low_met else Proof.EXACT  # a floor is checked in rational arithmetic
        return Found(Answer.CERTAIN, low, high, low_met, high_met, proof, least.clock or most.clock)
    proof = Proof.EXACT if low_met else Proof.UNDECIDED  # a data set without a violation, or nobody can tell
    return Found(Answer.OPEN, low, high, low_met, high_met, proof, least.clock or most.clock)


def _least(bundles: Bundles, block: Block, cost: Count, ladder: Ladder) -> Solution:
    """The cheapest data set; of one that is proved, or costs nothing, bound and floor are what it costs."""
    program = bundles.program(block, cost)
    solution = cheapest(program, ladder)
    if solution.x is None:
        return solution
    value = program.value(solution.x)
    if solution.proof != Proof.UNDECIDED or (value == 0 and (cost >= 0).all()):
        proof = solution.proof if value else Proof.EXACT
        return Solution(Outcome.OPTIMAL, solution.x, value, value, proof)
    return solution


def _proved(solution: Solution) -> tuple[int, bool]:
    """What the cost cannot be below, and whether a data set costs just that."""
    if solution.proof != Proof.UNDECIDED and solution.bound is not None:
        return solution.bound, True
    return (-UNLIMITED if solution.floor is None else solution.floor), False


@dataclass(frozen=True)
class Reason:
    """Published numbers that imply that somebody breaks the rule: rows of the program. Minimal: none can be left out.

    Rows 0 and 1 are the households and the subsidised among them, then come the statements.
    """

    rows: tuple[int, ...]
    proof: Proof
    minimal: bool


def explain(bundles: Bundles, readings: Sequence[Block], ladder: Ladder = CLIMB) -> Reason | None:
    """A smallest set of published numbers with which somebody must break the rule, however they are read, or None.

    Ask `detect` first: numbers that nothing fits imply anything.
    """
    kinds = bundles.kinds
    face = int(kinds.face[kinds.breaks].max(initial=0))
    first, totals = TOTALS * face, TOTALS * kinds.faces
    rows = np.array([first, first + 1, *range(totals, kinds.rows.shape[0])])
    rows = rows[np.asarray((kinds.rows[:, kinds.face == face] != 0).sum(axis=1)).reshape(-1)[rows] > 0]
    barred = bundles.breaks | (bundles.face != face)
    unsure = False

    def contradict(chosen: NDArray[np.int64]) -> bool:
        nonlocal unsure
        for block in readings:
            solution = _fits(bundles, block, rows[chosen], barred, ladder)
            unsure |= solution.x is None and solution.proof == Proof.UNDECIDED
            if solution.outcome != Outcome.INFEASIBLE or solution.proof == Proof.UNDECIDED:
                return False
        return True

    everything = np.arange(len(rows))
    if not contradict(everything):
        return None
    chosen = np.sort(smallest(contradict, everything[:0], everything, fresh=False))
    proof = reduce(weaker, (_fits(bundles, block, rows[chosen], barred, ladder).proof for block in readings))
    named = tuple(int(row - first if row < totals else row - totals + TOTALS) for row in rows[chosen])
    return Reason(named, proof, not unsure)


def _fits(
    bundles: Bundles, block: Block, rows: NDArray[np.int64], barred: NDArray[np.bool_], ladder: Ladder
) -> Solution:
    """Does anything fit these rows, without the kinds that are barred?"""
    believed = np.zeros(bundles.kinds.rows.shape[0], np.bool_)
    believed[rows] = True
    program = bundles.program(block, None, believed, barred)
    return engage(program, ladder, confirm=True)
