"""What do published numbers say about the cells? Rows: a sum of some cells lies between two numbers.

Where one row lies inside another, their difference is a row too, and often shows a zero that no single table shows.
So, as long as a row contains another, it is replaced by the difference; what is left says the same with short rows
that seldom overlap. All of that follows from the tables alone and is worked out once: printed numbers are summed to
*sets* of cells (single years to a bin, say), and sets are combined, with +1 and -1, to *differences*.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse

from glasshouse.errors import GlasshouseBug
from glasshouse.model.records import UNLIMITED, Count
from glasshouse.model.release import Table, counted
from glasshouse.program.propagate import Array
from glasshouse.program.tables.cells import Cells
from glasshouse.program.tables.recipe import Recipe, differences_at, recipe_of

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Rows:
    """Rows on cells, and how their limits follow from published numbers.

    The rows of `members` are the differences first and the sets after them. Where all numbers of a place are exact
    the differences say everything; otherwise both are needed.
    """

    variables: tuple[str, ...]  # the published numbers used: the columns of `sums`
    sums: sparse.csr_matrix  # alternatives x variables: numbers that add up to a set of cells
    partial: Flags  # of each alternative: its numbers count only some records of the set
    set_of: NDArray[np.int64]  # of each alternative
    combine: sparse.csr_matrix  # differences, then those that must be 0, x sets
    members: sparse.csr_matrix  # differences, then sets, x cells: how often a row counts a record (in a tally: often)
    recipe: Recipe  # how exact numbers become differences

    @property
    def differences(self) -> int:
        """How many, without those that must be 0."""
        return self.recipe.differences

    def limits(self, lower: Count, upper: Count, columns: NDArray[np.int64] | None = None) -> Limits:
        """The limits of every row at every place, from published numbers (places x variables).

        `columns` says where the variables stand among the numbers; without it they stand in order.
        """
        at = self.sums.indices if columns is None else columns[self.sums.indices]
        sums, combine, differences = self.sums, self.combine, self.differences
        if self.are_exact(lower, upper):
            numbers, bad = differences_at(self.recipe, lower, self.in_order if columns is None else columns)
            return Limits(numbers, numbers, np.ones(len(lower), np.bool_), bad)
        low, high = _set_limits(lower, upper, sums.indptr, at, self.partial, self.set_of, combine.shape[1], UNLIMITED)
        exact, bad = (low == high).all(axis=1), (low > high).any(axis=1)
        least, most = _difference_limits(low, high, combine.indptr, combine.indices, combine.data, UNLIMITED)
        bad |= (least > most).any(axis=1) | (least[:, differences:] > 0).any(axis=1)
        return Limits(
            np.concatenate([least[:, :differences], low], axis=1),
            np.concatenate([most[:, :differences], high], axis=1),
            exact,
            bad,
        )

    def are_exact(self, lower: Count, upper: Count) -> bool:
        """Do these numbers give the rows exactly, at every place?"""
        return not self.partial.any() and (lower is upper or bool((lower == upper).all()))

    @cached_property
    def in_order(self) -> NDArray[np.int64]:
        """Where the variables stand among numbers that are theirs alone."""
        return np.arange(len(self.variables))

    @cached_property
    def of_cells(self) -> tuple[Array, NDArray[np.int32], Array]:
        """The rows of each cell, and how often they count it."""
        return by_cell(self.members)

    @cached_property
    def differences_of_cells(self) -> tuple[Array, NDArray[np.int32], Array]:
        """The same, without the sets."""
        return by_cell(self.members[: self.differences])

    def printed(self, upper: Count) -> Count:
        """The limits from above that the printed numbers themselves put on the sets (places x sets)."""
        sums = self.sums
        nothing = np.zeros_like(upper)
        return np.asarray(
            _set_limits(
                nothing, upper, sums.indptr, sums.indices, self.partial, self.set_of, self.combine.shape[1], UNLIMITED
            )[1]
        )


def by_cell(members: sparse.csr_matrix) -> tuple[Array, NDArray[np.int32], Array]:
    """The rows of each cell, ascending: differences come first. Where each cell's begin, the rows, how often each."""
    columns = members.tocsc()
    columns.sort_indices()
    return columns.indptr.astype(np.int64), columns.indices.astype(np.int32), columns.data.astype(np.int64)


class Limits(NamedTuple):
    """Between which numbers each row lies at each place; whether that is exact, and whether it is possible at all.

    Where every place is exact there are columns for the differences only.
    """

    lower: Count
    upper: Count
    exact: Flags
    bad: Flags


def compile_rows(cells: Cells, tables: Iterable[Table], present: Collection[str]) -> Rows:
    """The rows that these tables put on the cells; `present` are the variables with published numbers."""
    variables: dict[str, int] = {}
    sets: dict[bytes, int] = {}
    members: list[NDArray[np.int64]] = []
    alternatives: list[tuple[int, list[int], bool]] = []
    answered: list[tuple[NDArray[np.int64], str, list[str]]] = []
    for table in tables:
        for names, chosen, partial in _summed(cells, table, frozenset(present)):
            number = sets.setdefault(np.packbits(chosen).tobytes(), len(sets))
            if number == len(members):
                members.append(np.flatnonzero(chosen))
            columns = [variables.setdefault(name, len(variables)) for name in names]
            alternatives.append((number, columns, partial))
        answered += _answers(cells, table, frozenset(present))
    of_sets = _matrix(members, len(cells))
    combine, steps = _differences(of_sets)
    inside = (combine @ of_sets).tocsr()
    inside.eliminate_zeros()
    if len(inside.data) and not (inside.data == 1).all():
        raise GlasshouseBug("a difference of rows counts a cell other than once")
    filled = np.diff(inside.indptr) > 0
    heavy: dict[bytes, int] = {}  # sets that count a cell more than once come after the others
    for times, name, _ in answered:
        number = len(members) + heavy.setdefault(times.tobytes(), len(heavy))
        alternatives.append((number, [variables.setdefault(name, len(variables))], False))
    set_of = {columns[0]: number for number, columns, _ in alternatives if len(columns) == 1}
    known = [[set_of.get(variables.get(leaf, -1), -1) for leaf in (name, *leaves)] for _, name, leaves in answered]
    checks, alone = _checks(known, len(members), len(heavy))
    alternatives.sort(key=lambda alternative: alternative[0])
    wider = sparse.hstack([combine, sparse.csr_matrix((combine.shape[0], len(heavy)), dtype=np.int64)], format="csr")
    units = sparse.eye(len(members) + len(heavy), dtype=np.int64, format="csr")[len(members) + alone]
    weights = sparse.csr_matrix(np.frombuffer(b"".join(heavy), np.int64).reshape(len(heavy), len(cells)))
    sums = _matrix([np.array(columns) for _, columns, _ in alternatives], len(variables))
    owner, differences = np.array([number for number, _, _ in alternatives], np.int64), int(filled.sum()) + len(alone)
    first = np.unique(owner, return_index=True)[1]  # where several numbers count the same set, the first is used,
    again = np.setdiff1d(np.arange(len(owner)), first)  # and the others must not differ from it
    one, twice = sums[first], sums[again] - sums[first[owner[again]]]
    others = sparse.vstack([one[len(members) + alone], checks @ one, twice], format="csr")
    row_of_set = np.where(filled, np.cumsum(filled), differences + np.cumsum(~filled)) - 1
    at_end = np.arange(checks.shape[0] + len(again)) + differences + int((~filled).sum())
    row_of_other = np.concatenate([np.arange(differences - len(alone), differences), at_end])
    return Rows(
        tuple(variables),
        sums,
        np.array([partial for _, _, partial in alternatives], np.bool_),
        owner,
        sparse.vstack([wider[filled], units, wider[~filled], checks], format="csr"),
        sparse.vstack([inside[filled], weights[alone], of_sets, weights], format="csr"),
        recipe_of(one[: len(members)], steps, row_of_set, others, row_of_other, differences),
    )


def _checks(known: list[list[int]], first: int, heavy: int) -> tuple[sparse.csr_matrix, NDArray[np.int64]]:
    """What must be 0: numbers of answers less their leaves; and the sets of answers that no others add up to.

    `known` has the set of each number and of its leaves, -1 where a leaf is not known. Sets of answers come after the
    `first` others. One that is the sum of others needs no row besides theirs.
    """
    summed = [(total, leaves) for total, *leaves in known if -1 not in leaves and total not in leaves]
    checks = np.zeros((len(summed), first + heavy), np.int64)
    for number, (total, leaves) in enumerate(summed):
        checks[number, total] = 1
        np.subtract.at(checks[number], leaves, 1)
    alone = np.setdiff1d(np.arange(first, first + heavy), [total for total, _ in summed]) - first
    return sparse.csr_matrix(checks), alone.astype(np.int64)


def _answers(cells: Cells, table: Table, present: frozenset[str]) -> Iterator[tuple[NDArray[np.int64], str, list[str]]]:
    """Numbers of answers: how often each cell is counted, the variable, and those of its leaves.

    A number whose answers cut through cells is left out: it says nothing exact about them.
    """
    for line in table.lines:
        if line.predicate is None and line.variable in present:
            some = counted(table, line)
            inside = [cells.inside(predicate) for predicate in some]
            if all((one == cells.meeting(predicate)).all() for one, predicate in zip(inside, some, strict=True)):
                times = np.sum(inside, axis=0, dtype=np.int64) + np.zeros(len(cells), np.int64)
                yield times, line.variable, [leaf.variable for leaf in table.leaves_of(line)]


def _summed(cells: Cells, table: Table, present: frozenset[str]) -> Iterator[tuple[list[str], Flags, bool]]:
    """Numbers of a table that count a set of cells: one that does so itself, or several that do so together.

    Lines finer than the cells (single years where cells are bins) are added up. Where some of the parts are not
    published, the sum is partial: a floor, not a count.
    """
    finer: dict[bytes, tuple[Flags, list[str], int]] = {}
    for line in table.lines:
        if line.predicate is None or line.variable not in present:
            continue
        meeting = cells.meeting(line.predicate)
        if (cells.inside(line.predicate) == meeting).all():
            yield [line.variable], meeting, False
        elif not line.parts and (table.tally or line.within is not None):  # it overlaps others: not to be added up
            yield [line.variable], meeting, True
        elif not line.parts:
            chosen, names, size = finer.get(meeting.tobytes(), (meeting, [], 0))
            names.append(line.variable)
            finer[meeting.tobytes()] = (chosen, names, size + cells.schema.size(line.predicate))
    for chosen, names, size in finer.values():
        yield names, chosen, size != cells.sizes[chosen].sum()


def _matrix(rows: list[NDArray[np.int64]], width: int) -> sparse.csr_matrix:
    """A 0/1 matrix from the columns of each row."""
    starts = np.cumsum([0, *(len(row) for row in rows)])
    columns = np.concatenate([*rows, np.empty(0, np.int64)]).astype(np.int64)
    return sparse.csr_matrix((np.ones(len(columns), np.int64), columns, starts), shape=(len(rows), width))


class Differences(NamedTuple):
    """Sums of cells none of which contains another (`members`), and of which of them each set is the sum (`sums`)."""

    members: sparse.csr_matrix
    sums: sparse.csr_matrix


def differences_of(sets: sparse.csr_matrix) -> Differences:
    """Take sets of cells apart into differences; sets that share no cell, at any remove, are looked at apart."""
    from scipy.sparse.csgraph import connected_components

    overlap = (sets @ sets.T).tocsr()
    size = np.asarray(sets.sum(axis=1)).reshape(-1)
    count, label = connected_components(overlap, directed=False)
    around = np.repeat(np.arange(len(size)), np.diff(overlap.indptr))
    inner = (overlap.data == size[overlap.indices]) & (overlap.indices != around)
    nested = np.zeros(count, np.bool_)
    nested[label[around[inner]]] = True
    order = np.lexsort((np.arange(len(label)), label, nested[label]))  # sets of which none contains another first
    plain = int((~nested[label]).sum())
    filled = size[order[:plain]] > 0
    members = [sets[order[:plain][filled]]]
    made = [sparse.eye(plain, dtype=np.int64, format="csr")[:, filled]]
    ends = np.flatnonzero(np.diff(label[order[plain:]])) + 1
    for some in np.split(order[plain:], ends) if plain < len(order) else []:
        combine, _ = _differences(sets[some])
        inside = (combine @ sets[some]).tocsr()
        inside.eliminate_zeros()
        filled = np.diff(inside.indptr) > 0
        again = sparse.csr_matrix(np.rint(np.linalg.inv(combine.toarray())).astype(np.int64)[:, filled])
        if ((again @ inside[filled]) != sets[some]).nnz or again.data.min(initial=0) < 0:
            raise GlasshouseBug("sets are not the sums of their differences; please report this")
        members.append(inside[filled])
        made.append(again)
    sums = sparse.block_diag(made, format="csr", dtype=np.int64)
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return Differences(sparse.vstack(members, format="csr"), sums[back])


def _differences(members: sparse.csr_matrix) -> tuple[sparse.csr_matrix, NDArray[np.int64]]:
    """What to add and subtract so that no row contains another, and the steps: which row, less which other.

    `combine @ members` are the rows left.
    """
    overlap = (members @ members.T).toarray().astype(np.int32)
    combine = np.eye(members.shape[0], dtype=np.int32)
    steps, used, before = np.empty((1024, 2), np.int64), 0, -1
    while used > before:
        before = used
        steps, used = _subtract_contained(overlap, combine, np.argsort(np.diag(overlap), kind="stable"), steps, used)
    return sparse.csr_matrix(combine.astype(np.int64)), steps[:used]


@njit(cache=True, nogil=True)
def _subtract_contained(overlap, combine, order, steps, used):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Replace each row by its difference with the largest row inside it, again and again; tells the steps so far.

    Only the sizes of the overlaps are needed: for r inside s, |(s - r) & t| = |s & t| - |r & t|.
    """
    count = len(overlap)
    for s in order:
        while overlap[s, s] > 0:
            inner = -1
            for r in range(count):
                size = overlap[r, r]
                smaller = size < overlap[s, s] or (size == overlap[s, s] and r < s)
                if size > 0 and smaller and overlap[r, s] == size and (inner < 0 or size > overlap[inner, inner]):
                    inner = r
            if inner < 0:
                break
            rest = overlap[s, s] - overlap[inner, inner]
            for t in range(count):
                overlap[s, t] -= overlap[inner, t]
                combine[s, t] -= combine[inner, t]
            overlap[s, s] = rest
            for t in range(count):
                overlap[t, s] = overlap[s, t]
            if used == len(steps):
                longer = np.empty((2 * used, 2), np.int64)
                longer[:used] = steps
                steps = longer
            steps[used, 0], steps[used, 1] = s, inner
            used += 1
    return steps, used


@njit(cache=True, nogil=True)
def _set_limits(lower, upper, starts, columns, partial, set_of, sets, unlimited):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """For each place and set, the tightest of its alternatives."""
    low = np.zeros((len(lower), sets), np.int64)
    high = np.full((len(lower), sets), unlimited, np.int64)
    for place in range(len(lower)):
        for alternative in range(len(set_of)):
            least, most = np.int64(0), np.int64(0)
            for entry in range(starts[alternative], starts[alternative + 1]):
                least += lower[place, columns[entry]]
                most += min(upper[place, columns[entry]], unlimited)
            number = set_of[alternative]
            low[place, number] = max(low[place, number], least)
            if not partial[alternative]:
                high[place, number] = min(high[place, number], most)
    return low, high


@njit(cache=True, nogil=True)
def _difference_limits(low, high, starts, columns, signs, unlimited):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Interval arithmetic: a difference is at least its least less the most of what is taken away."""
    rows = len(starts) - 1
    least, most = np.empty((len(low), rows), np.int64), np.empty((len(low), rows), np.int64)
    for place in range(len(low)):
        for row in range(rows):
            first, last, open_below, open_above = np.int64(0), np.int64(0), False, False
            for entry in range(starts[row], starts[row + 1]):
                number, sign = columns[entry], signs[entry]
                if sign > 0:
                    first += sign * low[place, number]
                    last += sign * high[place, number]
                    open_above |= high[place, number] >= unlimited
                else:
                    first += sign * high[place, number]
                    last += sign * low[place, number]
                    open_below |= high[place, number] >= unlimited
            least[place, row] = np.int64(0) if open_below else max(first, np.int64(0))
            most[place, row] = unlimited if open_above else last
    return least, most
