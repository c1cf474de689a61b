"""What must be so? Limits move from row to row until nothing moves.

In a row, what the other cells can at most and at least give leaves an interval for each cell. Sums of rows are kept
up to date with every move, so a visit costs the length of the row.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.int64]
# for functions that only compiled code calls: no bridge from Python, which would take as long to compile; numba's own
# types do not know the last two
INNER: Any = {"cache": True, "nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
# for those, besides, that make no arrays: whoever calls them holds what they are given, and numba, not told, counts in
# every call who else does, which takes longer than what a small one is there for
LEAF: Any = INNER | {"_nrt": False}


class System(NamedTuple):
    """The rows of programs as compiled code reads them: by row and by variable."""

    row_lower: Array
    row_upper: Array
    starts: Array
    variable: NDArray[np.int32]  # of each entry
    coefficient: Array
    begins: Array  # the entries of a variable
    row_of: NDArray[np.int32]
    by_column: Array


class State(NamedTuple):
    """Where propagation stands: limits of variables, least and most of rows, and the rows to look at again.

    The queue is a ring of rows; `ends` are where it begins and how many are in it.
    """

    lower: Array
    upper: Array
    least: Array
    most: Array
    queue: Array
    queued: NDArray[np.bool_]
    ends: Array


class Trail(NamedTuple):
    """What limits were before, so that a step can be taken back; `now` is kept once for each variable and step."""

    stamp: Array
    variable: Array
    lower: Array
    upper: Array
    used: Array


@njit(cache=True, nogil=True)
def transposed(variables, starts, index, coefficient):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """The entries by variable, rows ascending."""
    begins = np.zeros(variables + 1, np.int64)
    for entry in range(len(index)):
        begins[index[entry] + 1] += 1
    begins = np.cumsum(begins)
    at = begins[:-1].copy()
    row_of, by_column = np.empty(len(index), np.int32), np.empty(len(index), np.int64)
    for row in range(len(starts) - 1):
        for entry in range(starts[row], starts[row + 1]):
            variable = index[entry]
            row_of[at[variable]], by_column[at[variable]] = row, coefficient[entry]
            at[variable] += 1
    return begins, row_of, by_column


@njit(**LEAF)
def activities(top, bottom, system, state):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """For a range of rows: the least and the most that their sums can be."""
    for row in range(top, bottom):
        low, high = np.int64(0), np.int64(0)
        for entry in range(system.starts[row], system.starts[row + 1]):
            a, variable = system.coefficient[entry], system.variable[entry]
            low += a * (state.lower[variable] if a > 0 else state.upper[variable])
            high += a * (state.upper[variable] if a > 0 else state.lower[variable])
        state.least[row], state.most[row] = low, high


@njit(**LEAF)
def move(variable, low, high, system, state, top):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Give a variable new limits: update the sums of its rows (the first is `top`) and put them into the queue."""
    down, up = low - state.lower[variable], high - state.upper[variable]
    state.lower[variable], state.upper[variable] = low, high
    row_of, by_column, least, most = system.row_of, system.by_column, state.least, state.most
    queue, queued, ends = state.queue, state.queued, state.ends
    for entry in range(system.begins[variable], system.begins[variable + 1]):
        row, a = row_of[entry], by_column[entry]
        least[row] += a * (down if a > 0 else up)
        most[row] += a * (up if a > 0 else down)
        if not queued[row - top]:
            queued[row - top] = True
            at = ends[0] + ends[1]
            queue[at if at < len(queue) else at - len(queue)] = row
            ends[1] += 1


@njit(**LEAF)
def forget(state, top):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Empty the queue."""
    while state.ends[1] > 0:
        state.queued[state.queue[state.ends[0]] - top] = False
        state.ends[0] = (state.ends[0] + 1) % len(state.queue)
        state.ends[1] -= 1


@njit(**LEAF)
def settle(system, state, top, visits, trail, first, now):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Propagate the rows in the queue. Returns the row that cannot be met, -1 when all is well, -2 without room.

    With `now >= 0` the limits a variable had are kept on the trail; `first` is the variable its stamps begin with.
    """
    lower, upper, least, most = state.lower, state.upper, state.least, state.most
    row_lower, row_upper = system.row_lower, system.row_upper
    starts, index, coefficient = system.starts, system.variable, system.coefficient
    queue, queued, ends = state.queue, state.queued, state.ends
    failed = np.int64(-1)
    while ends[1] > 0 and failed == -1 and visits > 0:
        row = queue[ends[0]]
        ends[0] = ends[0] + 1 if ends[0] + 1 < len(queue) else 0
        ends[1] -= 1
        queued[row - top] = False
        visits -= 1
        if least[row] > row_upper[row] or most[row] < row_lower[row]:
            failed = row
            break
        if least[row] >= row_lower[row] and most[row] <= row_upper[row]:
            continue  # it can no longer be broken
        for entry in range(starts[row], starts[row + 1]):
            variable, a = index[entry], coefficient[entry]
            low, high = lower[variable], upper[variable]
            if low == high:
                continue
            above, below = row_upper[row] - least[row], most[row] - row_lower[row]
            if a == 1:
                new_low, new_high = max(low, high - below), min(high, low + above)
            elif a > 0:
                new_low, new_high = max(low, high - below // a), min(high, low + above // a)
            else:
                new_low, new_high = max(low, high - above // -a), min(high, low + below // -a)
            if new_low > new_high:
                failed = row
                break
            if new_low > low or new_high < high:
                if now >= 0 and trail.stamp[variable - first] != now:
                    used = trail.used[0]
                    if used == len(trail.variable):
                        failed = np.int64(-2)
                        break
                    trail.stamp[variable - first] = now
                    trail.variable[used], trail.lower[used], trail.upper[used] = variable, low, high
                    trail.used[0] += 1
                move(variable, new_low, new_high, system, state, top)
    forget(state, top)
    return failed


@njit(**LEAF)
def sort(values, count):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Sort the first numbers of an array in place, Shell's way: compiled in a tenth of the time of Numba's own."""
    gap = 1
    while gap < count // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for at in range(gap, count):
            value, to = values[at], at
            while to >= gap and values[to - gap] > value:
                values[to] = values[to - gap]
                to -= gap
            values[to] = value
        gap //= 3
