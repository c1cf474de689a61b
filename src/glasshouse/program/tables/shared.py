"""Which variables do the rows of an area count? Those of all its places, row by row, without sorting them."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from glasshouse.program.propagate import Array
from glasshouse.program.tables.rows import Rows


def shared_rows(
    around: Rows, exact: NDArray[np.bool_], width: int, area_of: Array, cell: NDArray[np.int32]
) -> tuple[Array, Array, NDArray[np.int32], Array]:
    """The rows of all areas (area by area, `width` each) that count something: which, how many entries, and these.

    `area_of` and `cell` are those of each variable, `exact` the areas in which differences say everything.
    """
    count = np.zeros(len(exact) * width, np.int64)
    _count(*around.of_cells, exact, around.differences, width, area_of, cell, count)
    number = np.flatnonzero(count)
    sizes = count[number]
    count[number] = np.cumsum(sizes) - sizes  # from here on, where the next entry of a row is written
    variable, times = np.empty(int(sizes.sum()), np.int32), np.empty(int(sizes.sum()), np.int64)
    _fill(*around.of_cells, exact, around.differences, width, area_of, cell, count, variable, times)
    return number, sizes, variable, times


@njit(cache=True, nogil=True)
def _count(starts, rows, times, exact, differences, width, area_of, cell, count):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    for one in range(len(cell)):
        area = area_of[one]
        last = differences if exact[area] else width
        for entry in range(starts[cell[one]], starts[cell[one] + 1]):
            if rows[entry] >= last:  # they ascend
                break
            count[area * width + rows[entry]] += 1


@njit(cache=True, nogil=True)
def _fill(starts, rows, times, exact, differences, width, area_of, cell, at, variable, value):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    for one in range(len(cell)):
        area = area_of[one]
        last = differences if exact[area] else width
        for entry in range(starts[cell[one]], starts[cell[one] + 1]):
            if rows[entry] >= last:
                break
            to = at[area * width + rows[entry]]
            variable[to], value[to] = one, times[entry]
            at[area * width + rows[entry]] = to + 1
