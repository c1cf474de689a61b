"""How are residents of group quarters protected, who are never swapped? Their race and origin are drawn anew.

The 2010 Census made the population in group quarters partially synthetic (paper 000); how, was not published. Here each
resident gets the race and origin, together, of a resident drawn evenly from the group quarters of the same county with
the same voting-age status, themselves included; from those of the state where the county has too few. So the persons
of each voting-age status of every block stay as counted. Who a donor was is forgotten: only values are taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glasshouse.errors import InputError

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]

FEWEST = 10  # residents alike, or the state's are taken; ours, and no rule of the Bureau's


@dataclass(frozen=True)
class Redrawn:
    """The new cells of residents, and how many came from their state since their county had too few."""

    cell: Ints
    from_state: int


def redraw(county: Ints, state: Ints, adult: Flags, cell: Ints, draw: Floats, fewest: int = FEWEST) -> Redrawn:
    """New cells (race and origin) for residents of group quarters, a row each; `draw` is even, from 0 to 1."""
    if len({len(column) for column in (county, state, adult, cell, draw)}) > 1:
        raise InputError("residents need one row each in all columns")
    near, alike = _drawn(county * 2 + adult, cell, draw)
    far, _ = _drawn(state * 2 + adult, cell, draw)
    few = alike < fewest
    return Redrawn(np.where(few, far, near), int(np.count_nonzero(few)))


def _drawn(place: Ints, cell: Ints, draw: Floats) -> tuple[Ints, Ints]:
    """A cell for each resident, from those of the same place; and how many these are."""
    _, pool, size = np.unique(place, return_inverse=True, return_counts=True)
    order = np.lexsort((cell, pool))  # by what they say: the order of rows does not matter
    first = np.cumsum(size) - size
    at = np.minimum((draw * size[pool]).astype(np.int64), size[pool] - 1)
    return cell[order[first[pool] + at]], size[pool]
