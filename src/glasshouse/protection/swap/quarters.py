"""How are residents of group quarters protected, who are never swapped? What makes them stand out is drawn anew.

The 2010 Census made the population in group quarters partially synthetic (paper 000); how, was not published. Here each
resident gets the cell (in the paper: race and origin, together) of a resident drawn evenly from the group quarters of
the same area, of adults for adults and of children for children, themselves included; from those of a wider area where
that one has too few. So the adults and children of every place stay as counted. Who a donor was is forgotten: only
values are taken.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glasshouse.errors import InputError
from glasshouse.protection.swap.households import Flags, Floats, Ints

FEWEST = 10  # residents alike, or those of the wider area are taken; ours, and no rule of the Bureau's


@dataclass(frozen=True)
class Redrawn:
    """The new cells of residents, and how many came from the wider area since the narrow one had too few."""

    cell: Ints
    from_wide: int


def redraw(narrow: Ints, wide: Ints, adult: Flags, cell: Ints, draw: Floats, fewest: int = FEWEST) -> Redrawn:
    """New cells for residents of group quarters, a row each; `draw` is even, from 0 to 1."""
    if len({len(column) for column in (narrow, wide, adult, cell, draw)}) > 1:
        raise InputError("residents need one row each in all columns")
    near, alike = _drawn(narrow * 2 + adult, cell, draw)
    far, _ = _drawn(wide * 2 + adult, cell, draw)
    few = alike < fewest
    return Redrawn(np.where(few, far, near), int(np.count_nonzero(few)))


def _drawn(place: Ints, cell: Ints, draw: Floats) -> tuple[Ints, Ints]:
    """A cell for each resident, from those of the same place; and how many these are."""
    _, pool, size = np.unique(place, return_inverse=True, return_counts=True)
    order = np.lexsort((cell, pool))  # by what they say: the order of rows does not matter
    first = np.cumsum(size) - size
    at = np.minimum((draw * size[pool]).astype(np.int64), size[pool] - 1)
    return cell[order[first[pool] + at]], size[pool]
