"""How do published numbers hang together? Every number is a variable, and all that ties them are equations.

A number that others make up is their sum. What is left is tied by the cells behind it: differences of nested sets,
each a sum of cells, folded. All equations have 0 on the right, so that places differ in nothing but the limits of
their variables: the equations of a set of tables are worked out once. Some are not needed (a number may be made up of
others in several ways) but help limits to move from number to number.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from glasshouse.model.records import UNLIMITED, Count
from glasshouse.model.release import Table, counted
from glasshouse.model.schema import Predicate
from glasshouse.program.numbers.fold import fold
from glasshouse.program.numbers.inclusion import inclusions
from glasshouse.program.numbers.walk import Board
from glasshouse.program.propagate import Array
from glasshouse.program.reduce import Programs
from glasshouse.program.tables.cells import Cells
from glasshouse.program.tables.rows import Differences, differences_of

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Equations:
    """Sums that are 0, or (`loose`) not above: row i has the entries starts[i]:starts[i + 1]."""

    starts: Array
    index: NDArray[np.int32]
    coefficient: Array
    needed: Flags  # of each row; the others follow from these
    loose: Flags

    def only_needed(self) -> Equations:
        kept = np.repeat(self.needed, np.diff(self.starts))
        sizes = np.diff(self.starts)[self.needed]
        ends = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        return Equations(
            ends, self.index[kept], self.coefficient[kept], self.needed[self.needed], self.loose[self.needed]
        )


@dataclass(frozen=True)
class Linked:
    """Numbers as variables: `number[i]` is that of the i-th number; there are `width` variables in all."""

    number: Array
    width: int
    equations: Equations
    sets: sparse.csr_matrix  # how often the first variables, which are numbers, count each cell
    codes: NDArray[np.int16] | None = None  # the attributes of each cell

    @cached_property
    def board(self) -> Board:
        """The numbers and their cells, to walk over."""
        return Board.of(self.sets, self.codes)

    def programs(self, lower: Count, upper: Count, *, needed: bool = False) -> Programs:
        """The program of each place (a row of limits each, a column for each set), side by side."""
        places = len(lower)
        low, high = np.zeros((places, self.width), np.int64), np.full((places, self.width), UNLIMITED, np.int64)
        order = np.argsort(self.number, kind="stable")
        variables, first = np.unique(self.number[order], return_index=True)
        if len(variables):
            low[:, variables] = np.maximum.reduceat(np.maximum(lower, 0)[:, order], first, axis=1)  # noise goes below
            high[:, variables] = np.minimum.reduceat(np.minimum(upper, UNLIMITED)[:, order], first, axis=1)
        rows = self.equations.only_needed() if needed else self.equations
        count, entries = len(rows.starts) - 1, len(rows.index)
        at = np.arange(places, dtype=np.int64)
        starts = np.concatenate([[0], (at[:, None] * entries + rows.starts[None, 1:]).reshape(-1)]).astype(np.int64)
        return Programs(
            np.arange(places + 1) * self.width,
            low.reshape(-1),
            high.reshape(-1),
            np.arange(places + 1) * count,
            np.tile(np.where(rows.loose, -UNLIMITED, 0), places),
            np.zeros(places * count, np.int64),
            starts,
            (at[:, None] * self.width + rows.index[None, :]).reshape(-1).astype(np.int32),
            np.tile(rows.coefficient, places),
        )


class Numbers(NamedTuple):
    """The lines of tables: their names, how often each counts each cell, and which are the sums of which.

    `codes` are the attributes of each cell, if it has any.
    """

    names: tuple[str, ...]
    times: sparse.csr_matrix
    sums: tuple[tuple[int, Array], ...] = ()
    codes: NDArray[np.int16] | None = None


def numbers_of(
    cells: Cells,
    tables: Iterable[Table],
    chosen: Collection[str] | None = None,
    asked: Mapping[str, Predicate] | None = None,
) -> Numbers:
    """The `chosen` lines of some tables (or all), printed or not: all tie each other. And what is `asked`.

    Cells are as fine as all of them.
    """
    names: list[str] = []
    index: list[Array] = []
    value: list[Array] = []
    sums: list[tuple[int, Array]] = []

    def add(name: str, predicates: Iterable[Predicate]) -> int:
        times = np.zeros(len(cells), np.int64)
        for predicate in predicates:
            times += cells.inside(predicate)
        names.append(name)
        index.append(np.flatnonzero(times))
        value.append(times[index[-1]])
        return len(names) - 1

    for table in tables:
        lines = [line for line in table.lines if chosen is None or line.variable in chosen]
        at = {line.number: add(line.variable, counted(table, line)) for line in lines}
        sums += [
            (at[line.number], np.array([at[part] for part in line.parts], np.int64))
            for line in table.subtotals
            if all(number in at for number in (line.number, *line.parts))
        ]
    for name, predicate in (asked or {}).items():
        add(name, [predicate])
    starts = np.cumsum([0, *(len(one) for one in index)])
    none = [np.empty(0, np.int64)]
    shape = len(names), len(cells)
    times = sparse.csr_matrix((np.concatenate(value + none), np.concatenate(index + none), starts), shape=shape)
    return Numbers(tuple(names), times, tuple(sums), cells.codes)


class _Writer:
    """Equations as they are written."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.index: list[Array] = []
        self.value: list[Array] = []
        self.needed: list[bool] = []
        self.loose: list[bool] = []

    def says(
        self, whole: int, parts: Array, times: Array | None = None, *, needed: bool, at_least: bool = False
    ) -> None:
        """A variable is the sum of others, or at least their sum."""
        self.loose.append(at_least)
        if times is None:
            parts, times = np.unique(parts, return_counts=True)  # parts that count the same are one variable
        self.index.append(np.append(parts, whole))
        self.value.append(np.append(times, -1))
        self.sizes.append(len(parts) + 1)
        self.needed.append(needed)

    def equations(self) -> Equations:
        none = [np.empty(0, np.int64)]
        return Equations(
            np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64),
            np.concatenate(self.index + none).astype(np.int32),
            np.concatenate(self.value + none).astype(np.int64),
            np.array(self.needed, np.bool_),
            np.array(self.loose, np.bool_),
        )


def link(numbers: Numbers) -> Linked:
    """Tie numbers to each other."""
    sets, number = sets_of(numbers)
    kinds = np.arange(sets.shape[0])
    often = np.maximum.reduceat(np.append(sets.data, 0), sets.indptr[:-1]) if len(kinds) else np.empty(0, np.int64)
    plain = (often <= 1) | (np.diff(sets.indptr) == 0)
    once = np.flatnonzero(plain)
    ways = {(int(number[whole]), tuple(np.sort(number[parts]))) for whole, parts in numbers.sums}
    within = list(inclusions(sets[once]))
    ways |= {(int(once[one.around]), tuple(once[list(one.parts)])) for one in within if one.whole}
    writer, defined = _Writer(), np.zeros(len(kinds), np.bool_)
    for whole, parts in sorted(ways, key=lambda way: (way[0], len(way[1]), way[1])):
        if whole not in parts:  # a total with one part
            distinct, repeats = np.unique(np.array(parts, np.int64), return_counts=True)  # two parts may be one set
            writer.says(whole, distinct, repeats.astype(np.int64), needed=not defined[whole])
            defined[whole] = True
    for one in within:
        if not one.whole:
            writer.says(int(once[one.around]), once[list(one.parts)], needed=False, at_least=True)
    left, heavy = np.flatnonzero(plain & ~defined), np.flatnonzero(~plain & ~defined)
    chain = differences_of(sets[left])
    width = _tie(writer, sets, left, heavy, chain, len(kinds))
    return Linked(number, width, writer.equations(), sets, numbers.codes)


def sets_of(numbers: Numbers) -> tuple[sparse.csr_matrix, Array]:
    """The sets that differ, and which of them each number is."""
    times = sparse.csr_matrix(numbers.times, dtype=np.int64, copy=True)
    times.sum_duplicates()
    times.eliminate_zeros()
    kinds, number = _distinct(times)
    return times[kinds], number


def _distinct(times: sparse.csr_matrix) -> tuple[Array, Array]:
    """The first of every kind of set, and the kind of each."""
    seen: dict[bytes, int] = {}
    kinds: list[int] = []
    number = np.empty(times.shape[0], np.int64)
    for row in range(times.shape[0]):
        entries = slice(times.indptr[row], times.indptr[row + 1])
        key = times.indices[entries].tobytes() + b"|" + times.data[entries].tobytes()
        number[row] = seen.setdefault(key, len(seen))
        if number[row] == len(kinds):
            kinds.append(row)
    return np.array(kinds, np.int64), number


def _tie(writer: _Writer, sets: sparse.csr_matrix, left: Array, heavy: Array, chain: Differences, width: int) -> int:
    """Tie sets that no others make up to their differences, and those to cells; how many variables there are then."""
    inside = chain.members
    rows = np.arange(width, width + inside.shape[0])
    width += len(rows)
    # a difference that is a set itself needs no variable of its own
    for at, whole in enumerate(left):
        parts = chain.sums.indices[chain.sums.indptr[at] : chain.sums.indptr[at + 1]]
        if len(parts) == 1:
            rows[parts[0]] = whole
    for at, whole in enumerate(left):
        parts = chain.sums.indices[chain.sums.indptr[at] : chain.sums.indptr[at + 1]]
        if len(parts) != 1:
            writer.says(int(whole), rows[parts], needed=True)
    every = sparse.vstack([inside, sets[heavy]], format="csr")
    plain = np.arange(every.shape[0]) < inside.shape[0]
    folded = fold(every, plain)
    variable = np.concatenate([rows, heavy, np.arange(width, width + len(folded.parts))])
    width += len(folded.parts)
    members = folded.members
    lengths, rows_of = np.diff(members.indptr), np.bincount(members.indices, minlength=members.shape[1])
    is_cell = (lengths == 1) & ((folded.top < len(rows)) | (folded.top >= folded.rows))
    is_cell[is_cell] = rows_of[members.indices[members.indptr[:-1][is_cell]]] == 1  # such a row is its cell
    free = set(folded.top[is_cell].tolist())  # a sum that stands in nothing else may be anything: it says nothing
    for number, parts in enumerate(folded.parts, folded.rows):
        if number not in free:
            writer.says(int(variable[number]), variable[parts], needed=True)
    used = rows_of > 0
    used[members.indices[np.repeat(is_cell, lengths)]] = False
    cell = np.full(len(used), -1, np.int64)
    cell[used] = width + np.arange(used.sum())
    for row in np.flatnonzero(~is_cell):
        entries = slice(members.indptr[row], members.indptr[row + 1])
        writer.says(int(variable[folded.top[row]]), cell[members.indices[entries]], members.data[entries], needed=True)
    return width + int(used.sum())
