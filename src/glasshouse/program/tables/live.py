"""Which cells can hold anybody? Those with no row at zero, for one place after the other, in a tight loop.

Rows that are not zero are found first, and each cell is looked at from the shortest of its rows only; so a small place
costs microseconds, however many cells its tables tell apart. What comes out are the programs of the places, flat.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from glasshouse.model.records import UNLIMITED, Count
from glasshouse.program.propagate import LEAF, Array
from glasshouse.program.tables.marks import mark, taken_out
from glasshouse.program.tables.recipe import Recipe, exact_differences, room_for
from glasshouse.program.tables.rows import Limits


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


class Flat(NamedTuple):
    """The programs of the places, one after the other; `ends` are how many variables, rows and entries there are."""

    first: Array
    place: NDArray[np.int32]
    cell: NDArray[np.int32]
    upper: Array
    row_first: Array
    row_lower: Array
    row_upper: Array
    starts: Array
    variable: NDArray[np.int32]
    times: Array
    broken: NDArray[np.bool_]
    ends: Array


def live(
    direct: bool, values: Count, columns: NDArray[np.int64], recipe: Recipe, limits: Limits, layout: Layout, caps: Caps
) -> Flat:
    """The live cells of each place (no row of theirs is zero) and the rows that can still be broken.

    Exact places make their limits as they come, in the one row that `lower` and `upper` then have.
    """
    places = len(limits.exact)
    flat, done = _room(places, (1024, 1024, 4096)), 0
    flat.broken[:] = limits.bad
    while True:
        before, done = done, int(_live(direct, values, columns, recipe, limits, layout, caps, flat, done))
        if done == places:
            break
        share = 1.1 * places / done if done > before else 0.0  # those to come are like those before
        used = zip(flat.ends.tolist(), _lengths(flat), strict=True)
        wanted = [max(2 * long, min(int(share * some), 16 * long)) for some, long in used]
        flat = _moved(flat, _room(places, (wanted[0], wanted[1], wanted[2])))
    n, m, entries = flat.ends
    return Flat(
        flat.first, flat.place[:n], flat.cell[:n], flat.upper[:n], flat.row_first, flat.row_lower[:m],
        flat.row_upper[:m], flat.starts[: m + 1], flat.variable[:entries], flat.times[:entries], flat.broken, flat.ends,
    )  # fmt: skip


def _lengths(flat: Flat) -> tuple[int, int, int]:
    """For how many variables, rows and entries there is room."""
    return len(flat.cell), len(flat.row_lower), len(flat.variable)


def _room(places: int, lengths: tuple[int, int, int]) -> Flat:
    n, m, entries = lengths
    zero = np.zeros(places + 1, np.int64), np.zeros(places + 1, np.int64)
    return Flat(
        zero[0], np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int64), zero[1], np.empty(m, np.int64),
        np.empty(m, np.int64), np.zeros(m + 1, np.int64), np.empty(entries, np.int32), np.empty(entries, np.int64),
        np.zeros(places, np.bool_), np.zeros(3, np.int64),
    )  # fmt: skip


def _moved(flat: Flat, longer: Flat) -> Flat:
    """What is written so far, with more room after it."""
    pairs: Any = zip(flat, longer, strict=True)
    for old, new in pairs:
        new[: len(old)] = old
    return longer


class _Room(NamedTuple):
    """What the places need one after the other; marks and counts are 0 between them."""

    found: NDArray[np.int32]  # live cells
    limit: Array  # of each cell
    living: Array  # of each row: its live cells,
    total: Array  # how much they can hold,
    slot: Array  # and where the next of them is written
    touched: Array  # rows with live cells
    listed: Array  # rows that are not 0
    row_marks: NDArray[np.uint64]
    row_words: NDArray[np.uint64]
    cell_marks: NDArray[np.uint64]
    cell_words: NDArray[np.uint64]
    nodes: Array
    node_marks: NDArray[np.uint64]


@njit(cache=True, nogil=True)
def _live(direct, values, columns, recipe, limits, layout, caps, flat, begin):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Write the programs of the places from `begin` on; returns the first for which there was no room."""
    all_rows, cells = limits.lower.shape[1], len(layout.starts) - 1
    width = all_rows + caps.upper.shape[1]
    nodes, node_marks = room_for(recipe)
    room = _Room(
        np.empty(cells, np.int32), np.empty(cells, np.int64), np.zeros(width, np.int64), np.zeros(width, np.int64),
        np.zeros(width, np.int64), np.empty(width, np.int64), np.empty(all_rows + 1, np.int64),
        np.zeros(width // 64 + 1, np.uint64), np.zeros(width // 4096 + 1, np.uint64),
        np.zeros(cells // 64 + 1, np.uint64), np.zeros(cells // 4096 + 1, np.uint64), nodes, node_marks,
    )  # fmt: skip
    return _written(direct, values, columns, recipe, limits, layout, caps, flat, begin, room)


@njit(**LEAF)
def _written(direct, values, columns, recipe, limits, layout, caps, flat, begin, room):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """The same, in the room that is needed."""
    lower, upper, exact, differences = limits.lower, limits.upper, limits.exact, recipe.differences
    starts, rows, often, area = layout.starts, layout.rows, layout.times, caps.of
    owned_starts, owned = layout.owned_starts, layout.owned
    cap_starts, cap_rows, cap_times, cap_upper = caps.starts, caps.rows, caps.times, caps.upper
    place_out, cell_out, upper_out = flat.place, flat.cell, flat.upper
    row_lower, row_upper, row_starts = flat.row_lower, flat.row_upper, flat.starts
    index, times, broken = flat.variable, flat.times, flat.broken
    found, limit, touched, listed = room.found, room.limit, room.touched, room.listed
    count, total, slot = room.living, room.total, room.slot
    row_marks, row_words, cell_marks, cell_words = room.row_marks, room.row_words, room.cell_marks, room.cell_words
    places, all_rows = len(exact), lower.shape[1]
    variables, rows_used, entries = flat.ends[0], flat.ends[1], flat.ends[2]
    for place in range(begin, places):
        flat.first[place], flat.row_first[place] = variables, rows_used
        if broken[place]:
            continue
        at = place
        if direct:
            at = 0
            known = exact_differences(values[place], columns, recipe, room.nodes, room.node_marks, lower[0], listed)
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
                    limit[cell] = most
                    mark(cell_marks, cell)
                    mark(cell_words, cell >> 6)
        alive, held = taken_out(cell_marks, cell_words, found), 0
        for i in range(alive):
            cell = found[i]
            for entry in range(starts[cell], starts[cell + 1]):
                row = rows[entry]
                if row >= last:
                    break
                if count[row] == 0:
                    mark(row_marks, row)
                    mark(row_words, row >> 6)
                count[row] += 1
                total[row] += often[entry] * limit[cell]
                held += 1
            for entry in range(cap_starts[cell], cap_starts[cell + 1]):
                row = all_rows + cap_rows[entry]
                if count[row] == 0:
                    mark(row_marks, row)
                    mark(row_words, row >> 6)
                count[row] += 1
                total[row] += cap_times[entry] * limit[cell]
                held += 1
        for i in range(known if direct else last):
            row = listed[i] if direct else i
            if lower[at, row] > 0 and count[row] == 0:
                broken[place] = True  # something is counted there, but no cell can hold it
        used = taken_out(row_marks, row_words, touched)  # rows of this place
        fits = (
            variables + alive <= len(cell_out) and rows_used + used <= len(row_lower) and entries + held <= len(index)
        )
        if fits and not broken[place]:
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
        if not fits and not broken[place]:
            places = place
            break
    flat.first[places], flat.row_first[places] = variables, rows_used
    flat.ends[0], flat.ends[1], flat.ends[2] = variables, rows_used, entries
    return places


@njit(cache=True, nogil=True)
def placed(places, cells, place, cell, counts, x, missing):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Add counts to the variables of their places and cells, and mark those that have none.

    Variables stand place by place, cells ascending. Counts mostly do, too; then each is found next to the one before.
    """
    at = 0
    for one in range(len(cell)):
        if at > 0 and not (places[at - 1], cells[at - 1]) < (place[one], cell[one]):
            low, at = 0, at - 1
            while low < at:
                middle = (low + at) // 2
                if (places[middle], cells[middle]) < (place[one], cell[one]):
                    low = middle + 1
                else:
                    at = middle
        while at < len(x) and (places[at], cells[at]) < (place[one], cell[one]):
            at += 1
        if at < len(x) and places[at] == place[one] and cells[at] == cell[one]:
            x[at] += counts[one]
        else:
            missing[one] = True
