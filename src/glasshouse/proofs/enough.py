"""Which few rows show a bound? A proof has a number for each row that is used, so the others are left out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from glasshouse.model.records import UNLIMITED
from glasshouse.program.highs import Growing, Relaxation
from glasshouse.program.integer import IntegerProgram, Limit

LIMIT = Limit(effort=5.0)
CLEARLY = 0.15  # beyond what is not enough, or half of what there is: so that multipliers may be rounded
SMALLEST = 2  # rows that are left out at once
TINY = 1e-9
Float = NDArray[np.float64]


def enough(program: IntegerProgram, duals: Float, value: int) -> Float:
    """Multipliers of few rows that show, as these do, that all costs at least so much, or that nothing fits.

    Halves of the rows, then quarters and so on, smallest multipliers first, are left out as long as the rest is enough.
    """
    engine, free = Growing(program, LIMIT), np.abs(duals) <= TINY
    first = engine.relax()
    spare = np.inf if first.x is None else float(program.cost @ first.x) - (value - 1)
    least = value - 1 + min(CLEARLY, spare / 2)
    limits = program.row_lower, program.row_upper
    none = np.full_like(limits[0], -UNLIMITED), np.full_like(limits[1], UNLIMITED)
    engine.limit_rows(np.flatnonzero(free), *none)
    size = max(int((~free).sum()) // 2, 1)
    while size >= SMALLEST:
        left = np.flatnonzero(~free)
        left = left[np.argsort(np.abs(duals[left]), kind="stable")]
        for at in range(0, len(left), size):
            some = left[at : at + size][~free[left[at : at + size]]]
            if not len(some):
                continue
            engine.limit_rows(some, *none)
            relaxed = engine.relax()
            if relaxed.duals is not None and _shows(program, relaxed, least):
                duals = np.where(np.abs(relaxed.duals) > TINY, relaxed.duals, 0.0)
                unused = np.flatnonzero(~free & (duals == 0))
                engine.limit_rows(unused, *none)
                free[unused] = True
            else:
                engine.limit_rows(some, *limits)
        size //= 2
    return np.where(free, 0.0, duals)


def _shows(program: IntegerProgram, relaxed: Relaxation, least: float) -> bool:
    if relaxed.x is None:
        return True
    return relaxed.status.name == "kOptimal" and float(program.cost @ relaxed.x) > least
