"""How little must change so that something fits? Limits of numbers are moved, by as little as can be in all.

Where published numbers contradict each other nothing fits them, and nothing follows. The nearest data say how far the
numbers are from agreeing, and which of them need not be touched.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glasshouse.model.records import UNLIMITED, Count
from glasshouse.program.integer import IntegerProgram, Proof
from glasshouse.program.ladder import CLIMB, Ladder, cheapest
from glasshouse.program.propagate import Array
from glasshouse.program.reduce import Programs


@dataclass(frozen=True)
class Mended:
    """The least sum of what numbers must move beyond their limits (no less than `floor`), and the values they get."""

    total: int
    floor: int
    values: Count  # of each printed number, in the nearest data that were found
    proof: Proof


def mend(program: Programs, printed: Array, lower: Count, upper: Count, ladder: Ladder = CLIMB) -> Mended | None:
    """The nearest data to the limits of the `printed` variables of a single program; None: none were found."""
    width, count = len(program.lower), len(printed)
    free_lower, free_upper = program.lower.copy(), program.upper.copy()
    free_lower[printed], free_upper[printed] = 0, UNLIMITED
    zero, ones = np.zeros(2 * count, np.int64), np.ones(2 * count, np.int64)
    up, down = width + np.arange(count), width + count + np.arange(count)
    index = np.stack([printed, up, down], axis=1).reshape(-1)
    sign = np.tile([1, 1, -1], count)
    softened = IntegerProgram(
        np.concatenate([np.zeros(width, np.int64), ones]),
        np.concatenate([free_lower, zero]),
        np.concatenate([free_upper, zero + UNLIMITED]),
        np.concatenate([program.row_lower, lower]),
        np.concatenate([program.row_upper, upper]),
        np.concatenate([program.starts, program.starts[-1] + 3 * np.arange(1, count + 1)]),
        np.concatenate([program.index, index]).astype(np.int32),
        np.concatenate([program.coefficient, sign]),
    )
    found = cheapest(softened, ladder)
    if found.x is None:
        return None
    values = found.x[printed]
    total = int(np.maximum(lower - values, 0).sum() + np.maximum(values - upper, 0).sum())
    return Mended(total, max(found.floor or 0, 0), values, found.proof)
