"""Can records in coarse cells have the finer ones that an area's numbers leave? Then so must every solution.

Places are solved in the cells that records are compared in. Numbers of the area around may limit finer ones: single
years inside an age bin. Added up over a bin those limits are necessary, but not enough: where Hispanics of a bin may
only be 31 and Asians only 33, none can be both. So where that matters, how records are dealt to finer cells is part of
the program: a variable for each *way* in which cells of one *kind* can be dealt, rows that deal every record, and
limits on the ways. Kinds are cells that can be dealt in the same ways; ways of a kind count in different limits.

For a place alone the limits are from above, and then fewer records are no harder to deal. So where even as many as each
cell can have, all at once, can be dealt, nothing needs to be added. For the places of an area jointly they are limits
from below as well, on all records of the area: which place gets which is open.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from glasshouse.errors import InputError
from glasshouse.model.records import UNLIMITED, Count
from glasshouse.program.propagate import Array
from glasshouse.program.reduce import Programs
from glasshouse.program.tables.histogram import Area, Compiled, Problem, from_above
from glasshouse.program.tables.refine import parents


@dataclass(frozen=True)
class Ruled:
    """Limits on sets of fine cells: a row of `members` each; a row of `lower` and `upper` for each area."""

    members: sparse.csr_matrix
    lower: Count
    upper: Count


def ruled_from_above(fine: Compiled, area: Area, *, tighten: bool) -> Ruled:
    """The limits on fine cells that the area's numbers are for one of its places."""
    if fine.around is None:
        raise InputError("numbers of an area were given, but its tables were not compiled")
    upper, members = from_above(fine.around, area, tighten=tighten)
    return Ruled(members.tocsr(), np.zeros_like(upper), upper)


@dataclass(frozen=True)
class Dealing:
    """What follows from the tables alone. Ways of kind k are `first[k]:first[k + 1]`; groups share no limit."""

    cells: int  # coarse ones
    kind: Array  # of each coarse cell; -1: finer limits do not bear on it
    group: Array  # of each kind
    first: Array
    way: Array  # of each fine cell, -1 where its coarse cell has no kind
    limits: sparse.csr_matrix  # ways x limits: how often a record dealt so counts in each
    splitting: Array  # the limits that look inside coarse cells

    @property
    def ways(self) -> int:
        return int(self.first[-1])


def dealing(
    coarse: Compiled, fine: Compiled, members: sparse.csr_matrix, *, from_above: bool, printed: bool
) -> Dealing | None:
    """How records of coarse cells can be dealt to fine ones; None where limits look at whole coarse cells only.

    Limits that were `printed` are in the coarse problem already where they do; differences of those that do not need
    not be, and all are taken. With limits `from_above` a kind that has a way without any limit can always be dealt, and
    is left out.
    """
    parent = parents(coarse, fine)
    inside = sparse.csr_matrix((np.ones(len(parent), np.int64), (np.arange(len(parent)), parent)))
    sums, squares, sizes = members @ inside, members.multiply(members) @ inside, np.bincount(parent)
    uneven = sparse.csr_matrix(squares.multiply(sizes[None, :]) - sums.multiply(sums))
    uneven.eliminate_zeros()
    splits = np.diff(uneven.indptr) > 0  # they count fine cells of a coarse one, but not all alike
    splits |= (sums[:, coarse.cells.partly] > 0).sum(axis=1).A1 > 0  # coarse rows do not know what cannot be inside
    splitting = np.flatnonzero(splits | (not printed))
    if not len(splitting):
        return None
    only = members[splitting].tocsc()
    only.sort_indices()
    mark, example = _marks(only)
    of_cell: list[set[int]] = [set() for _ in range(len(coarse.cells))]
    for cell, one in zip(parent.tolist(), mark.tolist(), strict=True):
        of_cell[cell].add(one)
    nowhere = {one for one, at in enumerate(example) if only.indptr[at] == only.indptr[at + 1]}
    kinds: dict[tuple[int, ...], int] = {}
    kind = np.array(
        [-1 if (marks & nowhere if from_above else marks <= nowhere) else
         kinds.setdefault(tuple(sorted(marks)), len(kinds)) for marks in of_cell], np.int64
    )  # fmt: skip
    if not kinds:
        return None
    pairs = {pair: way for way, pair in enumerate((number, one) for marks, number in kinds.items() for one in marks)}
    first = np.cumsum([0, *(len(marks) for marks in kinds)]).astype(np.int64)
    way = np.array([pairs.get(pair, -1) for pair in zip(kind[parent].tolist(), mark.tolist(), strict=True)], np.int64)
    ways = only.T.tocsr()[[example[one] for _, one in pairs]]
    owner = sparse.csr_matrix((np.ones(len(pairs)), ([number for number, _ in pairs], np.arange(len(pairs)))))
    met = (owner @ ways) != 0
    group = connected_components(met.astype(np.int32) @ met.T.astype(np.int32), directed=False)[1].astype(np.int64)
    wide = sparse.csr_matrix((ways.data, splitting[ways.indices], ways.indptr), shape=(len(pairs), members.shape[0]))
    return Dealing(len(coarse.cells), kind, group, first, way, wide, splitting)


def _marks(limits: sparse.csc_matrix) -> tuple[Array, list[int]]:
    """A number for each column, the same where columns are, and the first column of each number."""
    names: dict[bytes, int] = {}
    ends, example = limits.indptr, list[int]()
    marks = np.empty(limits.shape[1], np.int64)
    for at in range(limits.shape[1]):
        entries = slice(ends[at], ends[at + 1])
        marks[at] = names.setdefault(limits.indices[entries].tobytes() + limits.data[entries].tobytes(), len(names))
        if marks[at] == len(example):
            example.append(at)
    return marks, example


def dealt_alone(
    problem: Problem, dealing: Dealing, ruled: Ruled, area: Area, doubtful: NDArray[np.bool_]
) -> tuple[Problem, Array]:
    """The doubtful places of a problem (one program each) in which records may not all be dealt, with the ways.

    Variables of ways come after those of cells, with numbers beyond them. Returns which places they are, too.
    """
    split = problem.split()
    chosen, parts = [], []
    for place in np.flatnonzero(doubtful):
        mine = slice(problem.programs.first[place], problem.programs.first[place + 1])
        most, open_ = split.upper[mine], split.lower[mine] < split.upper[mine]
        lower, upper = ruled.lower[area.of[place]], ruled.upper[area.of[place]]
        kept = _kinds_in_doubt(dealing, problem.cell[mine], most, open_, upper)
        if len(kept):
            chosen.append(int(place))
            program = problem.programs.only(int(place))
            parts.append(_longer(program, problem.cell[mine], dealing, kept, lower, upper))
    at = np.array(chosen, np.int64)
    if not len(at):
        return problem, at
    longer = replace(
        problem,
        places=tuple(problem.places[place] for place in at),
        programs=Programs.joined([programs for programs, _ in parts]),
        place=np.repeat(np.arange(len(at)), [len(cell) for _, cell in parts]).astype(np.int32),
        cell=np.concatenate([cell for _, cell in parts]).astype(np.int32),
        bad=problem.bad[at],
        program=np.arange(len(at)),
        fixed_total=problem.fixed_total[at],
        ways=dealing.ways,
    )
    return longer, at


def dealt_jointly(problem: Problem, dealing: Dealing, ruled: Ruled) -> Problem:
    """A joint problem (one program for each area) with the ways; those of an area go with the last of its places."""
    parts, places, bad = [], [], problem.bad.copy()
    for area in range(len(problem.programs)):
        mine = slice(problem.programs.first[area], problem.programs.first[area + 1])
        cell = problem.cell[mine]
        kinds = np.unique(dealing.kind[cell])
        lower, upper = ruled.lower[area], ruled.upper[area]
        parts.append(_longer(problem.programs.only(area), cell, dealing, kinds[kinds >= 0], lower, upper))
        used = np.zeros(len(lower), np.bool_)
        used[dealing.limits[parts[-1][1][len(cell) :] - dealing.cells].indices] = True
        bad[area] |= bool((lower[dealing.splitting][~used[dealing.splitting]] > 0).any())
        last = np.full(len(parts[-1][1]) - len(cell), last_place(problem, area), np.int32)
        places.append(np.concatenate([problem.place[mine], last]))
    return replace(
        problem,
        programs=Programs.joined([programs for programs, _ in parts]),
        place=np.concatenate(places),
        cell=np.concatenate([cell for _, cell in parts]).astype(np.int32),
        bad=bad,
        ways=dealing.ways,
    )


def last_place(problem: Problem, area: int) -> int:
    """The last place of an area; 0 where it has none."""
    return int(np.flatnonzero(problem.program == area).max(initial=0))


def _kinds_in_doubt(
    dealing: Dealing, cell: NDArray[np.int32], most: Array, open_: NDArray[np.bool_], caps: Array
) -> Array:
    """The kinds of a place that share limits with something open, if not even its most can be dealt."""
    kind = dealing.kind[cell]
    limited = kind >= 0
    wanted = np.zeros(len(dealing.group), np.int64)
    np.add.at(wanted, kind[limited], most[limited])
    kept, limits = [], dealing.limits
    for group in np.unique(dealing.group[kind[limited & open_]]):
        some = np.flatnonzero((dealing.group == group) & (wanted > 0))
        if not _dealt(some, wanted, dealing.first, limits.indptr, limits.indices, limits.data, caps.copy()):
            kept.append(some)
    return np.unique(np.concatenate([*kept, np.empty(0, np.int64)])).astype(np.int64)


@njit(cache=True, nogil=True)
def _dealt(kinds, wanted, first, starts, limit, times, room):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Can so many of each kind be dealt? Each to the way that has most room; a no may be wrong, a yes is not."""
    for kind in kinds:
        left = wanted[kind]
        while left > 0:
            best, way = np.int64(0), -1
            for candidate in range(first[kind], first[kind + 1]):
                most = left
                for entry in range(starts[candidate], starts[candidate + 1]):
                    most = min(most, room[limit[entry]] // times[entry])
                if most > best:
                    best, way = most, candidate
            if way < 0:
                return False
            for entry in range(starts[way], starts[way + 1]):
                room[limit[entry]] -= best * times[entry]
            left -= best
    return True


def _longer(
    program: Programs, cell: NDArray[np.int32], dealing: Dealing, kinds: Array, lower: Array, upper: Array
) -> tuple[Programs, Array]:
    """One program with the ways of some kinds (ascending), and the cell or way of each variable."""
    ways = np.concatenate(
        [*(np.arange(dealing.first[kind], dealing.first[kind + 1]) for kind in kinds), np.empty(0, np.int64)]
    ).astype(np.int64)
    limits = dealing.limits[ways]
    owner = np.repeat(np.arange(len(kinds)), dealing.first[kinds + 1] - dealing.first[kinds])
    number = np.full(len(dealing.group) + 1, -1, np.int64)  # the last is for cells of no kind
    number[kinds] = np.arange(len(kinds))
    of_cell = number[dealing.kind[cell]]
    there = np.flatnonzero(of_cell >= 0)
    n, rows = len(cell), len(program.row_lower)
    used, column = np.unique(limits.indices, return_inverse=True)
    of_way = np.repeat(np.arange(len(ways)), np.diff(limits.indptr))
    old = np.repeat(np.arange(rows), np.diff(program.starts))
    row = np.concatenate([old, rows + of_cell[there], rows + owner, rows + len(kinds) + column])
    variable = np.concatenate([program.index, there, n + np.arange(len(ways)), n + of_way])
    one = np.ones(len(there), np.int64), -np.ones(len(ways), np.int64)
    value = np.concatenate([program.coefficient, *one, limits.data])
    order = np.lexsort((variable, row))
    most = np.full(len(ways), UNLIMITED, np.int64)
    np.minimum.at(most, of_way, upper[limits.indices] // limits.data)
    zero, size = np.zeros(len(kinds), np.int64), rows + len(kinds) + len(used)
    longer = Programs(
        np.array([0, n + len(ways)]),
        np.concatenate([program.lower, np.zeros(len(ways), np.int64)]),
        np.concatenate([program.upper, most]),
        np.array([0, size]),
        np.concatenate([program.row_lower, zero, lower[used]]),
        np.concatenate([program.row_upper, zero, upper[used]]),
        np.concatenate([[0], np.cumsum(np.bincount(row, minlength=size))]),
        variable[order].astype(np.int32),
        value[order],
    )
    return longer, np.concatenate([cell, dealing.cells + ways])
