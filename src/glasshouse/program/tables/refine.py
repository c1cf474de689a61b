"""How do records in coarse cells get finer ones? By a bijection with what the area's numbers say in detail.

Places are solved in the cells that their own tables tell apart. Numbers of the area around can be finer: single years
inside an age bin. Where, inside a coarse row of the area, every coarse cell can take every one of the finer rows, any
deal of the finer counts to the records of that row fits, so the records are dealt at random. Where that does not hold
the finer cells must be solved for directly (`finest`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glasshouse.errors import InputError
from glasshouse.model.records import Count
from glasshouse.program.propagate import Array
from glasshouse.program.tables.histogram import Compiled


@dataclass(frozen=True)
class Refinement:
    """Worked out once for two sets of cells: for each coarse cell and finer row of the area, the fine cell in both."""

    coarse: Compiled
    fine: Compiled
    rows: Array  # the finer rows, by the coarse row of the area they lie in
    coarse_row: Array  # of each of these
    rank: Array  # of each of these, within its coarse row
    row_of_cell: Array  # of each coarse cell: its coarse row
    fine_cell: NDArray[np.int64]  # coarse cells x finer rows of their coarse row, by rank; -1 beyond


def prepare(coarse: Compiled, fine: Compiled) -> Refinement:
    """Check that dealing is enough, and where each fine cell lies; `fine` has the same tables, compiled `finest`."""
    if coarse.around is None or fine.around is None:
        raise InputError("records get finer cells from the tables of the area around; none were compiled")
    if coarse.cells.partly.any():
        raise InputError("inside some coarse cells not everything can be, which coarse rows do not know; use 'finest'")
    rows_fine = _only_row(fine, "fine")
    rows_coarse = _only_row(coarse, "coarse")
    parent = parents(coarse, fine)
    count = fine.around.differences
    of_fine = rows_coarse[parent]
    coarse_row = np.full(count, -1, np.int64)
    coarse_row[rows_fine] = of_fine
    if (coarse_row[rows_fine] != of_fine).any():
        raise InputError("a finer number of the area lies in two coarse rows; compile with 'finest'")
    if (coarse_row < 0).any():
        raise InputError("a number of the area counts no kind of record that can be; compile with 'finest'")
    rows = np.argsort(coarse_row, kind="stable")
    ranks = np.arange(count) - np.searchsorted(coarse_row[rows], coarse_row[rows])
    rank = np.empty(count, np.int64)
    rank[rows] = ranks
    cell = np.full((len(coarse.cells), int(ranks.max(initial=-1)) + 1), -1, np.int64)
    cell[parent, rank[rows_fine]] = np.arange(len(fine.cells))
    if ((cell >= 0).sum(axis=1) != np.bincount(coarse_row)[rows_coarse]).any():
        raise InputError("not every cell can take every finer number of the area; compile with 'finest'")
    return Refinement(coarse, fine, rows, coarse_row[rows], ranks, rows_coarse, cell)


def refine(
    prepared: Refinement, cell: NDArray[np.int32], x: Count, lower: Count, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Deal the finer counts of an area (its exact numbers, by variable of `fine.around`) to the records of its places.

    `x` records are in coarse `cell` each. Returns, for every record, the entry it comes from and its fine cell.
    """
    around = prepared.fine.around
    if around is None:
        raise InputError("no tables of the area around were compiled")
    limits = around.limits(lower[None, :], lower[None, :])
    if limits.bad[0]:
        raise InputError("the numbers of the area contradict each other")
    entry = np.repeat(np.arange(len(x)), x)
    row = prepared.row_of_cell[cell[entry]]
    order = _by_row(rng.random(len(entry)), row)  # the records of each coarse row, shuffled
    count = limits.lower[0, prepared.rows]
    given = np.repeat(prepared.coarse_row, count)  # by coarse row, like the records in their order
    if len(given) != len(row) or (given != row[order]).any():
        raise InputError("the records do not add up to the numbers of the area; solve the places jointly first")
    rank = np.repeat(prepared.rank, count)
    fine = np.empty(len(entry), np.int64)
    fine[order] = prepared.fine_cell[cell[entry[order]], rank]
    return entry, fine


def _by_row(chance: NDArray[np.float64], row: Array) -> Array:
    """The order by row, and within a row by chance."""
    drawn = np.argsort(chance, kind="stable")
    within = row[drawn]
    if within.max(initial=0) < 2**16:
        within = within.astype(np.uint16)  # numbers as short are sorted in one go
    return np.asarray(drawn[np.argsort(within, kind="stable")])


def _only_row(compiled: Compiled, which: str) -> Array:
    """The one difference of the area's numbers that each cell lies in."""
    around = compiled.around
    if around is None or around.partial.any():
        raise InputError(f"the tables of the area do not tell the {which} cells apart; compile with 'finest'")
    rows = around.members[: around.differences].tocsc()
    if (np.diff(rows.indptr) != 1).any():
        raise InputError(f"a {which} cell lies in several rows of the area; compile with 'finest'")
    return np.asarray(rows.indices, np.int64)


def parents(coarse: Compiled, fine: Compiled) -> Array:
    """The coarse cell of each fine cell."""
    codes = np.empty_like(fine.cells.codes)
    for attribute, classes in enumerate(fine.cells.classes):
        first = np.unique(classes, return_index=True)[1]  # a level of each class
        codes[:, attribute] = first[fine.cells.codes[:, attribute]]
    return coarse.cells.of(codes)
