"""What is left to decide? Many small integer programs side by side; limits tightened, fixed cells out, parts apart.

A program is: integer x with `lower <= x <= upper` and, for each row, `row_lower <= sum(coefficient * x) <= row_upper`.
Programs stand one after the other in flat arrays, so a million places make a handful of arrays and no objects.
Propagation moves limits until nothing moves: in a row, what the others can at most and at least give leaves an
interval for each cell. Then cells with one possible value are known, rows that can no longer be broken are dropped,
and cells that share no row fall into parts that are solved on their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numba import njit
from numpy.typing import NDArray

from glasshouse.model.records import UNLIMITED, Count
from glasshouse.program.integer import IntegerProgram
from glasshouse.program.propagate import LEAF, Array, State, System, Trail, activities, settle, transposed

FAR = 2**60  # beyond any sum of counts


@dataclass(frozen=True)
class Programs:
    """Integer programs in a row: program `p` has variables `first[p]:first[p + 1]` and rows `row_first[p]:...`."""

    first: Array
    lower: Array
    upper: Array
    row_first: Array
    row_lower: Array
    row_upper: Array
    starts: Array  # row i has the entries starts[i]:starts[i + 1]
    index: NDArray[np.int32]  # the variable of each entry, counted over all programs
    coefficient: Array

    def __len__(self) -> int:
        return len(self.first) - 1

    @cached_property
    def system(self) -> System:
        """The rows, also by variable, for compiled code; a row without a limit gets one that no sum comes near."""
        columns = transposed(len(self.lower), self.starts, self.index, self.coefficient)
        lower = np.where(self.row_lower <= -UNLIMITED, -FAR, self.row_lower)
        upper = np.where(self.row_upper >= UNLIMITED, FAR, self.row_upper)
        return System(lower, upper, self.starts, self.index, self.coefficient, *columns)

    @cached_property
    def program_of(self) -> Array:
        """The program of each variable."""
        return np.repeat(np.arange(len(self)), np.diff(self.first))

    def only(self, number: int) -> Programs:
        """One of the programs on its own."""
        variables = slice(self.first[number], self.first[number + 1])
        rows = slice(self.row_first[number], self.row_first[number + 1])
        starts = self.starts[self.row_first[number] : self.row_first[number + 1] + 1]
        entries = slice(starts[0], starts[-1])
        return Programs(
            np.array([0, self.first[number + 1] - self.first[number]]),
            self.lower[variables],
            self.upper[variables],
            np.array([0, self.row_first[number + 1] - self.row_first[number]]),
            self.row_lower[rows],
            self.row_upper[rows],
            starts - starts[0],
            (self.index[entries] - self.first[number]).astype(np.int32),
            self.coefficient[entries],
        )

    @staticmethod
    def of(program: IntegerProgram) -> Programs:
        """A program, without its cost, as the only one."""
        ends = np.array([0, len(program.cost)]), np.array([0, len(program.row_lower)])
        return Programs(
            ends[0], program.lower, program.upper, ends[1], program.row_lower, program.row_upper, program.starts,
            program.index, program.coefficient,
        )  # fmt: skip

    @staticmethod
    def joined(programs: Sequence[Programs]) -> Programs:
        """Programs one after the other."""

        def ends(sizes: list[int], arrays: list[Array]) -> Array:
            shifted = [array[1:] + shift for array, shift in zip(arrays, np.cumsum([0, *sizes]), strict=False)]
            return np.concatenate([[0], *shifted]).astype(np.int64)

        width = [len(one.lower) for one in programs]
        index = [one.index + shift for one, shift in zip(programs, np.cumsum([0, *width]), strict=False)]
        return Programs(
            ends(width, [one.first for one in programs]),
            np.concatenate([one.lower for one in programs]),
            np.concatenate([one.upper for one in programs]),
            ends([len(one.row_lower) for one in programs], [one.row_first for one in programs]),
            np.concatenate([one.row_lower for one in programs]),
            np.concatenate([one.row_upper for one in programs]),
            ends([len(one.index) for one in programs], [one.starts for one in programs]),
            np.concatenate(index).astype(np.int32),
            np.concatenate([one.coefficient for one in programs]),
        )

    def integer_program(self, cost: Array) -> IntegerProgram:
        """All programs as one, for a solver."""
        return IntegerProgram(
            cost,
            self.lower,
            self.upper,
            self.row_lower,
            self.row_upper,
            self.starts,
            self.index,
            self.coefficient,
        )

    def sums(self, x: Count) -> Array:
        """Every row's sum, in integers."""
        running = np.concatenate([[0], np.cumsum(self.coefficient * x[self.index])])
        return np.asarray(running[self.starts[1:]] - running[self.starts[:-1]])

    def fit(self, x: Count) -> NDArray[np.bool_]:
        """Which programs this x satisfies, checked in integers."""
        fine = np.ones(len(self), np.bool_)
        _fit(self.first, self.row_first, self.system, self.lower, self.upper, x, fine)
        return fine


@dataclass(frozen=True)
class Split:
    """Programs after propagation: which fit nothing, what is known of every variable, and the parts left to decide."""

    whole: Programs
    impossible: NDArray[np.bool_]  # of each program
    lower: Array  # of each variable of the whole, tightened
    upper: Array
    parts: Programs
    owner: Array  # the program of each part
    origin: Array  # the variable of the whole that each variable of a part is
    row_origin: Array  # the row of the whole that each row of a part is

    def variables(self, part: int) -> Array:
        """The variables of the whole that those of a part are."""
        return self.origin[self.parts.first[part] : self.parts.first[part + 1]]


def split(programs: Programs, refused: NDArray[np.bool_], *, propagate: bool = True) -> Split:
    """Propagate to a fixed point and take the programs apart; without `propagate`, each program is one part.

    `refused` are programs known to fit nothing.
    """
    lower, upper, impossible = programs.lower.copy(), programs.upper.copy(), refused.copy()
    system = programs.system
    label, slack = _reduce(programs.first, programs.row_first, system, lower, upper, impossible, propagate)
    arrays = _parts(programs.first, programs.row_first, system, lower, upper, label, slack, impossible)
    *flat, owner, origin, row_origin = arrays
    return Split(programs, impossible, lower, upper, Programs(*flat), owner, origin, row_origin)


def with_sums(programs: Programs, group: Array, groups: Array) -> tuple[Programs, Array, Array]:
    """Programs with a further variable for each group of variables: their sum.

    `group` is the group of each variable, -1 for none; `groups` the program of each group, ascending. Returns the
    programs and where the old variables and the new ones stand in them.
    """
    sizes, extra = np.diff(programs.first), np.bincount(groups, minlength=len(programs))
    first = np.concatenate([[0], np.cumsum(sizes + extra)])
    old = np.arange(len(group)) + (np.cumsum(extra) - extra)[programs.program_of]
    new = np.arange(len(groups)) + np.cumsum(sizes)[groups]
    lower, upper = np.zeros(first[-1], np.int64), np.zeros(first[-1], np.int64)
    lower[old], upper[old] = programs.lower, programs.upper
    counted = np.flatnonzero(group >= 0)
    np.add.at(lower, new[group[counted]], programs.lower[counted])
    np.add.at(upper, new[group[counted]], programs.upper[counted])
    program_of_row = np.repeat(np.arange(len(programs)), np.diff(programs.row_first))
    owners = np.concatenate([program_of_row, groups])
    sequence = np.argsort(owners, kind="stable")
    place = np.empty(len(owners), np.int64)
    place[sequence] = np.arange(len(owners))
    m = len(program_of_row)
    rows = [np.repeat(np.arange(m), np.diff(programs.starts)), m + group[counted], m + np.arange(len(groups))]
    row = place[np.concatenate(rows)]
    index = np.concatenate([old[programs.index], old[counted], new])
    value = np.concatenate([programs.coefficient, np.ones(len(counted), np.int64), -np.ones(len(groups), np.int64)])
    order = np.lexsort((index, row))
    zero = np.zeros(len(groups), np.int64)
    longer = Programs(
        first,
        lower,
        np.minimum(upper, UNLIMITED),
        np.searchsorted(owners[sequence], np.arange(len(programs) + 1)).astype(np.int64),
        np.concatenate([programs.row_lower, zero])[sequence],
        np.concatenate([programs.row_upper, zero])[sequence],
        np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(owners)))]),
        index[order].astype(np.int32),
        value[order],
    )
    return longer, old, new


@njit(**LEAF)
def _root(parent, variable):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    while parent[variable] != variable:
        parent[variable] = parent[parent[variable]]
        variable = parent[variable]
    return variable


@njit(cache=True, nogil=True)
def _fit(first, row_first, system, lower, upper, x, fine):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Mark the programs that an x does not satisfy."""
    starts, index, coefficient = system.starts, system.variable, system.coefficient
    for program in range(len(first) - 1):
        fits = True
        for variable in range(first[program], first[program + 1]):
            fits &= lower[variable] <= x[variable] <= upper[variable]
        for row in range(row_first[program], row_first[program + 1]):
            total = np.int64(0)
            for entry in range(starts[row], starts[row + 1]):
                total += coefficient[entry] * x[index[entry]]
            fits &= system.row_lower[row] <= total <= system.row_upper[row]
        fine[program] = fits


@njit(cache=True, nogil=True)
def _reduce(first, row_first, system, lower, upper, impossible, propagate):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Propagate every program in place; label each variable with the first variable of its part; slack rows apart."""
    rows = len(system.row_lower)
    least, most = np.empty(rows, np.int64), np.empty(rows, np.int64)
    label, slack = np.arange(len(lower)), np.zeros(rows, np.bool_)
    none = np.empty(0, np.int64)
    trail = Trail(none, none, none, none, none)
    longest = np.int64(1)
    for program in range(len(first) - 1):
        longest = max(longest, row_first[program + 1] - row_first[program])
    queue, queued, ends = np.empty(longest, np.int64), np.empty(longest, np.bool_), np.zeros(2, np.int64)
    state = State(lower, upper, least, most, queue, queued, ends)
    _reduced(first, row_first, system, state, trail, label, slack, impossible, propagate)
    return label, slack


@njit(**LEAF)
def _reduced(first, row_first, system, state, trail, label, slack, impossible, propagate):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """The same, in the room that is needed."""
    lower, upper, least, most = state.lower, state.upper, state.least, state.most
    queue, queued, ends = state.queue, state.queued, state.ends
    for program in range(len(first) - 1):
        top, bottom = row_first[program], row_first[program + 1]
        ends[0], ends[1] = 0, bottom - top
        for row in range(top, bottom):
            queue[row - top], queued[row - top] = row, True
        for variable in range(first[program], first[program + 1]):
            impossible[program] |= lower[variable] > upper[variable]
        activities(top, bottom, system, state)
        if propagate and not impossible[program]:
            impossible[program] = settle(system, state, top, 100 * (bottom - top) + 10_000, trail, 0, -1) >= 0
        for row in range(top, bottom):  # also those that propagation had no visits left for
            impossible[program] |= least[row] > system.row_upper[row] or most[row] < system.row_lower[row]
        if impossible[program]:
            continue
        if not propagate:
            label[first[program] : first[program + 1]] = first[program]
            continue
        for row in range(top, bottom):
            slack[row] = least[row] >= system.row_lower[row] and most[row] <= system.row_upper[row]
            before = -1
            if not slack[row]:
                for entry in range(system.starts[row], system.starts[row + 1]):
                    variable = system.variable[entry]
                    if lower[variable] < upper[variable]:
                        if before >= 0:
                            one, other = _root(label, variable), _root(label, before)
                            label[max(one, other)] = min(one, other)
                        before = variable
    for variable in range(len(label)):
        label[variable] = _root(label, variable)


@njit(cache=True, nogil=True)
def _parts(first, row_first, system, lower, upper, label, slack, impossible):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Write the parts one after the other: open variables by label, rows with what fixed variables add taken off."""
    n, m = len(lower), len(system.row_lower)
    starts, index, coefficient = system.starts, system.variable, system.coefficient
    is_open = lower < upper
    for program in range(len(first) - 1):
        if impossible[program]:
            is_open[first[program] : first[program + 1]] = False
    part_of = np.full(n, -1, np.int64)  # by label
    parts = 0
    for variable in range(n):
        if is_open[variable] and part_of[label[variable]] < 0:
            part_of[label[variable]] = parts
            parts += 1
    owner = np.zeros(parts, np.int64)
    part_first, part_rows = np.zeros(parts + 1, np.int64), np.zeros(parts + 1, np.int64)
    row_part, entries = np.full(m, -1, np.int64), np.zeros(m, np.int64)
    for program in range(len(first) - 1):
        for variable in range(first[program], first[program + 1]):
            if is_open[variable]:
                owner[part_of[label[variable]]] = program
                part_first[part_of[label[variable]] + 1] += 1
        for row in range(row_first[program], row_first[program + 1]):
            if not slack[row]:
                for entry in range(starts[row], starts[row + 1]):
                    if is_open[index[entry]]:
                        row_part[row] = part_of[label[index[entry]]]
                        entries[row] += 1
                if row_part[row] >= 0:
                    part_rows[row_part[row] + 1] += 1
    part_first, part_rows = np.cumsum(part_first), np.cumsum(part_rows)
    new, count = np.full(n, -1, np.int64), part_first[-1]
    origin, low, high = np.empty(count, np.int64), np.empty(count, np.int64), np.empty(count, np.int64)
    at = part_first[:-1].copy()
    for variable in range(n):
        if is_open[variable]:
            part = part_of[label[variable]]
            new[variable] = at[part]
            origin[at[part]], low[at[part]], high[at[part]] = variable, lower[variable], upper[variable]
            at[part] += 1
    rows = part_rows[-1]
    old_row, new_lower, new_upper = np.empty(rows, np.int64), np.empty(rows, np.int64), np.empty(rows, np.int64)
    at = part_rows[:-1].copy()
    new_starts = np.zeros(rows + 1, np.int64)
    for row in range(m):
        if row_part[row] >= 0:
            old_row[at[row_part[row]]] = row
            new_starts[at[row_part[row]] + 1] = entries[row]
            at[row_part[row]] += 1
    new_starts = np.cumsum(new_starts)
    new_index, new_coefficient = np.empty(new_starts[-1], np.int32), np.empty(new_starts[-1], np.int64)
    for row in range(rows):
        known, to = np.int64(0), new_starts[row]
        for entry in range(starts[old_row[row]], starts[old_row[row] + 1]):
            variable = index[entry]
            if is_open[variable]:
                new_index[to], new_coefficient[to] = new[variable], coefficient[entry]
                to += 1
            else:
                known += coefficient[entry] * lower[variable]
        new_lower[row] = max(system.row_lower[old_row[row]] - known, -UNLIMITED)
        new_upper[row] = min(system.row_upper[old_row[row]] - known, UNLIMITED)
    rest = (part_rows, new_lower, new_upper, new_starts, new_index, new_coefficient, owner, origin, old_row)
    return part_first, low, high, *rest
