"""Which cells can hold anybody? Those with no row at zero, for one place after the other, in a tight loop.

Rows that are not zero are found first, and each cell is looked at from the shortest of its rows only; so a small place
costs microseconds, however many cells its tables tell apart. What comes out are the programs of the places, flat.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from glasshouse.model.records import UNLIMITED, Count
from glasshouse.program.propagate import INNER, Array, sort
from glasshouse.program.tables.rows import exact_differences


class Caps(NamedTuple):
    """Limits from above: for each area and row, the rows of each cell, and how often they count it."""

    upper: Count
    of: NDArray[np.int64]
    starts: Array
    rows: Array
    times: Array


class Layout(NamedTuple):
    """Where rows and cells meet: the rows of each cell, and the cells of each row that owns them."""

    starts: Array
    rows: NDArray[np.int32]
    times: Array  # how often the row counts the cell
    owned_starts: Array
    owned: NDArray[np.int32]


@njit(**INNER)
def _room(array, used, more):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """The array, or a longer copy, with room for more."""
    if used + more <= len(array):
        return array
    longer = np.empty(2 * (used + more), array.dtype)
    longer[:used] = array[:used]
    return longer


@njit(cache=True, nogil=True)
def live(direct, values, recipe, limits, layout, caps):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """The live cells of each place (no row of theirs is zero) and the rows that can still be broken.

    Exact places make their limits as they come, in the one row that `lower` and `upper` then have.
    """
    lower, upper, exact, differences = limits.lower, limits.upper, limits.exact, recipe.differences
    starts, rows, often, area = layout.starts, layout.rows, layout.times, caps.of
    owned_starts, owned = layout.owned_starts, layout.owned
    cap_starts, cap_rows, cap_times, cap_upper = caps.starts, caps.rows, caps.times, caps.upper
    places, all_rows, cells = len(exact), lower.shape[1], len(starts) - 1
    width = all_rows + cap_upper.shape[1]
    found, limit = np.empty(cells, np.int32), np.empty(cells, np.int64)  # live cells of a place, and their limits
    count, total = np.zeros(width, np.int64), np.zeros(width, np.int64)
    slot, touched = np.zeros(width, np.int64), np.empty(width, np.int64)
    listed, marked = np.empty(all_rows + 1, np.int64), np.zeros(all_rows, np.bool_)  # rows that are not 0
    first, row_first = np.zeros(places + 1, np.int64), np.zeros(places + 1, np.int64)
    place_out, cell_out, upper_out = np.empty(1024, np.int32), np.empty(1024, np.int32), np.empty(1024, np.int64)
    row_lower, row_upper, row_starts = np.empty(1024, np.int64), np.empty(1024, np.int64), np.zeros(1024, np.int64)
    index, times = np.empty(4096, np.int32), np.empty(4096, np.int64)
    broken = limits.bad.copy()
    variables, rows_used, entries = 0, 0, 0
    for place in range(places):
        first[place], row_first[place] = variables, rows_used
        if broken[place]:
            continue
        at = place
        if direct:
            at = 0
            known = exact_differences(values[place], recipe, lower[0], listed, marked)
            broken[place] = known < 0
            if known < 0:
                continue
        else:
            known = 0
            for row in range(differences):
                if upper[at, row] > 0:
                    listed[known] = row
                    known += 1
        listed[known] = differences  # cells in no row at all
        last = differences if exact[place] else all_rows
        alive = 0
        for i in range(known + 1):
            row = listed[i]
            for one in range(owned_starts[row], owned_starts[row + 1]):
                cell = owned[one]
                most = UNLIMITED
                for entry in range(starts[cell], starts[cell + 1]):
                    if rows[entry] >= last or most == 0:
                        break
                    limit_here = upper[at, rows[entry]]
                    whole = often[entry] == 1 or limit_here >= UNLIMITED
                    most = min(most, limit_here if whole else limit_here // often[entry])
                for entry in range(cap_starts[cell], cap_starts[cell + 1]):
                    if most == 0:
                        break
                    most = min(most, cap_upper[area[place], cap_rows[entry]] // cap_times[entry])
                if most > 0:
                    found[alive], limit[cell] = cell, most
                    alive += 1
        sort(found, alive)
        used = 0  # rows of this place
        for i in range(alive):
            cell = found[i]
            for entry in range(starts[cell], starts[cell + 1]):
                row = rows[entry]
                if row >= last:
                    break
                if count[row] == 0:
                    touched[used] = row
                    used += 1
                count[row] += 1
                total[row] += often[entry] * limit[cell]
            for entry in range(cap_starts[cell], cap_starts[cell + 1]):
                row = all_rows + cap_rows[entry]
                if count[row] == 0:
                    touched[used] = row
                    used += 1
                count[row] += 1
                total[row] += cap_times[entry] * limit[cell]
        for i in range(known if direct else last):
            row = listed[i] if direct else i
            if lower[at, row] > 0 and count[row] == 0:
                broken[place] = True  # something is counted there, but no cell can hold it
        sort(touched, used)
        if not broken[place]:
            if rows_used + used + 1 > len(row_starts):
                row_lower, row_upper = _room(row_lower, rows_used, used + 1), _room(row_upper, rows_used, used + 1)
                row_starts = _room(row_starts, rows_used + 1, used)
            for i in range(used):
                row = touched[i]
                low = lower[at, row] if row < all_rows else 0
                high = upper[at, row] if row < all_rows else cap_upper[area[place], row - all_rows]
                slot[row] = -1
                if low > 0 or (total[row] > high and high < UNLIMITED):
                    row_lower[rows_used], row_upper[rows_used] = low, high
                    slot[row] = entries
                    entries += count[row]
                    rows_used += 1
                    row_starts[rows_used] = entries
            before = row_starts[row_first[place]]
            if entries > len(index):
                index, times = _room(index, before, entries - before), _room(times, before, entries - before)
            if variables + alive > len(cell_out):
                place_out, cell_out = _room(place_out, variables, alive), _room(cell_out, variables, alive)
                upper_out = _room(upper_out, variables, alive)
            for i in range(alive):
                cell = found[i]
                place_out[variables], cell_out[variables], upper_out[variables] = place, cell, limit[cell]
                for entry in range(starts[cell], starts[cell + 1]):
                    row = rows[entry]
                    if row >= last:
                        break
                    if slot[row] >= 0:
                        index[slot[row]], times[slot[row]] = variables, often[entry]
                        slot[row] += 1
                for entry in range(cap_starts[cell], cap_starts[cell + 1]):
                    row = all_rows + cap_rows[entry]
                    if slot[row] >= 0:
                        index[slot[row]], times[slot[row]] = variables, cap_times[entry]
                        slot[row] += 1
                variables += 1
        for i in range(used):
            count[touched[i]], total[touched[i]] = 0, 0
        for i in range(known if direct else 0):
            lower[0, listed[i]] = 0
    first[places], row_first[places] = variables, rows_used
    return (first, place_out[:variables], cell_out[:variables], upper_out[:variables], row_first, row_lower[:rows_used],
            row_upper[:rows_used], row_starts[: rows_used + 1], index[:entries],
        times[:entries], broken)  # fmt: skip
