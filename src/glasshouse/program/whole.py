"""Where is a whole solution that costs no more than the relaxation says? Among the few variables that two vertices use.

A relaxation takes a millisecond, branch and bound over all variables ten. Where many solutions cost the same, the least
cost of the relaxation is met by whole ones too, and some use only variables that are not 0 at one of two vertices: that
of the relaxation, and another, for which prices are drawn at random among solutions that cost no more. Branching on
those variables alone is quick; what it finds is proved by the relaxation's bound. If it finds nothing, all variables
are asked.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import sparse

from glasshouse.model.records import UNLIMITED, Count
from glasshouse.program.integer import IntegerProgram, Outcome, Proof, Solution
from glasshouse.program.ladder import Ladder, engage
from glasshouse.program.prove import certified

PRICES = 100  # what a variable costs at most when prices are drawn


def cheapest(program: IntegerProgram, ladder: Ladder) -> Solution:
    """The cheapest x, as `ladder.engage` finds and confirms it, sooner where the relaxation's bound can be met."""
    if not ladder.engines:
        return Solution(Outcome.STOPPED)
    engine, stopping = ladder.engines[0], replace(ladder.limit, branches=False)
    relaxed = engine(program, stopping)
    if relaxed.proof != Proof.UNDECIDED:
        return relaxed
    if relaxed.point is not None and relaxed.floor is not None and abs(relaxed.floor) < UNLIMITED:
        prices = np.random.default_rng(0).integers(0, PRICES, len(program.cost))  # any will do, if always the same
        other = engine(replace(program.with_row(program.cost, -UNLIMITED, relaxed.floor), cost=prices), stopping)
        found = _meets(program, relaxed.floor, other.x)
        if found is None and other.point is not None:
            used = (relaxed.point > 0) | (other.point > 0)
            found = _meets(program, relaxed.floor, _among(program, np.flatnonzero(used), ladder))
        if found is not None:
            return found
    return engage(program, ladder, confirm=True)


def _meets(program: IntegerProgram, floor: int, x: Count | None) -> Solution | None:
    """A solution that costs just what none is below."""
    if x is None or not program.fits(x) or program.value(x) > floor:
        return None
    return certified(program, Solution(Outcome.FEASIBLE, x, floor, floor))


def _among(program: IntegerProgram, chosen: Count, ladder: Ladder) -> Count | None:
    """The cheapest x that is 0 but for some variables, whose least values must be 0."""
    shape = (len(program.row_lower), len(program.cost))
    rows = sparse.csr_matrix((program.coefficient, program.index, program.starts), shape=shape)[:, chosen].tocsr()
    rows.sort_indices()
    fewer = IntegerProgram(
        program.cost[chosen], program.lower[chosen], program.upper[chosen], program.row_lower, program.row_upper,
        rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data,
    )  # fmt: skip
    found = ladder.engines[0](fewer, ladder.limit).x
    if found is None:
        return None
    x = program.lower.copy()
    x[chosen] = found
    return x
