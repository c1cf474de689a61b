"""Which histograms fit a release? Tables compiled once; then the integer program of each place, or of places jointly.

The tables of a place say how its cells add up. Tables of an area around it (the tract of a block) say so for all its
places together: jointly they are rows over the cells of all of them; for one place alone they are limits from above.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from glasshouse.errors import InputError
from glasshouse.model.records import Count
from glasshouse.model.release import Counts, Table, counted, counts_everyone
from glasshouse.model.schema import Predicate, Schema
from glasshouse.program.propagate import Array
from glasshouse.program.reduce import Programs, Split, split
from glasshouse.program.tables.cells import Cells, partition
from glasshouse.program.tables.live import Caps, Layout, live, placed
from glasshouse.program.tables.rows import Limits, Rows, by_cell, compile_rows
from glasshouse.program.tables.shared import shared_rows


@dataclass(frozen=True)
class Compiled:
    """What follows from the tables alone: the cells, the rows of a place, and those of the area around it."""

    cells: Cells
    own: Rows
    around: Rows | None = None
    total_known: bool = False  # does some table count every record of a place once?

    def columns(self, variables: tuple[str, ...]) -> NDArray[np.int64]:
        """Where the numbers of a place stand among these variables; remembered, as the next place has them too."""
        if variables not in self._columns:
            at = {variable: index for index, variable in enumerate(variables)}
            missing = [variable for variable in self.own.variables if variable not in at]
            if missing:
                raise InputError(f"variable {missing[0]} was compiled, but is not among the published numbers")
            self._columns[variables] = np.array([at[variable] for variable in self.own.variables], np.int64)
        return self._columns[variables]

    @cached_property
    def _columns(self) -> dict[tuple[str, ...], NDArray[np.int64]]:
        return {}

    @cached_property
    def parts(self) -> int:
        """Into how many independent problems the tables of a place always fall."""
        from scipy.sparse.csgraph import connected_components

        rows = self.own.members[: self.own.differences]
        return int(connected_components(rows.T @ rows, directed=False)[0])

    @cached_property
    def owned(self) -> tuple[Array, NDArray[np.int32]]:
        """For each difference the cells whose shortest row it is; cells in no row at all come last."""
        differences = self.own.differences
        starts, rows, _ = self.own.of_cells
        sizes = np.diff(self.own.members[:differences].indptr)
        cell = np.repeat(np.arange(len(self.cells)), np.diff(starts))
        own = rows < differences
        shortest = np.lexsort((rows[own], sizes[rows[own]], cell[own]))  # of rows as short, the first
        having, at = np.unique(cell[own][shortest], return_index=True)
        owner = np.full(len(self.cells), differences, np.int64)
        owner[having] = rows[own][shortest][at]
        order = np.argsort(owner, kind="stable").astype(np.int32)
        return np.searchsorted(owner[order], np.arange(differences + 2)).astype(np.int64), order


def compile_tables(
    schema: Schema,
    tables: Sequence[Table],
    present: Collection[str],
    *,
    around: Sequence[Table] = (),
    around_present: Collection[str] = (),
    told_apart: Collection[Predicate] = (),
    finest: bool = False,
) -> Compiled:
    """Compile the tables of a place, and those of the area around it.

    Cells are what the tables of a place tell apart, and what `told_apart` does; with `finest` also what the tables
    around tell apart. Otherwise numbers of the area that are finer than the cells are added up.
    """
    used = [predicate for table in tables for predicate in _told(table, present)]
    outer = [predicate for table in around for predicate in _told(table, around_present) if finest]
    cells = partition(schema, [*used, *told_apart, *outer])
    rows = compile_rows(cells, around, around_present) if around else None
    counts_all = any(
        counts_everyone(table) and all(line.variable in present for line in table.leaves) for table in tables
    )
    return Compiled(cells, compile_rows(cells, tables, present), rows, counts_all)


def _told(table: Table, present: Collection[str]) -> Iterator[Predicate]:
    """What the published numbers of a table tell apart."""
    for line in table.lines:
        if line.variable in present:
            yield from counted(table, line)


class Area(NamedTuple):
    """The numbers of the areas around places: a row for each area, columns as `around.variables`; `of` each place."""

    lower: Count
    upper: Count
    of: NDArray[np.int64]

    def check(self, places: int, variables: int) -> None:
        """Refuse areas that do not belong to these places and tables."""
        if len(self.of) != places:
            raise InputError(f"there are {places} places; the areas of {len(self.of)} were given")
        if self.lower.shape != self.upper.shape or self.lower.shape[1] != variables:
            raise InputError(f"the numbers of an area need {variables} columns; found {self.lower.shape[1]}")
        if len(self.of) and not (self.of.min() >= 0 and self.of.max() < len(self.lower)):
            raise InputError(f"there are {len(self.lower)} areas; a place names area {int(self.of.max())}")


@dataclass(frozen=True)
class Problem:
    """Programs whose variables are cells of places: `cell[v]` of `places[place[v]]`. Jointly solved, one program."""

    compiled: Compiled
    places: tuple[str, ...]
    programs: Programs
    place: NDArray[np.int32]
    cell: NDArray[np.int32]
    bad: NDArray[np.bool_]  # of each program: its numbers contradict each other before any cell is looked at
    program: NDArray[np.int64]  # of each place
    fixed_total: NDArray[np.bool_]  # of each program: every histogram that fits has the same number of records
    ways: int = 0  # variables beyond the cells, which say how records are dealt to finer ones (`dealing`)

    @property
    def counted(self) -> NDArray[np.bool_]:
        """The variables that count records of a cell."""
        return np.asarray(self.cell < len(self.compiled.cells))

    def check(self, number: int) -> None:
        """Refuse the number of a program that is not there."""
        if not 0 <= number < len(self.programs):
            raise InputError(f"there are {len(self.programs)} programs, counted from 0; found {number}")

    def split(self, *, propagate: bool = True) -> Split:
        """The programs after propagation, taken apart."""
        return self._split if propagate else split(self.programs, self.bad, propagate=False)

    @cached_property
    def _split(self) -> Split:
        return split(self.programs, self.bad)

    def start(
        self, cell: NDArray[np.int64], place: NDArray[np.int64], counts: Count
    ) -> tuple[Count, NDArray[np.bool_]]:
        """Counts by cell and place as values of the variables, and the programs some of whose counts are in none.

        Ways that a program does not ask about are no loss.
        """
        x, lost = np.zeros(len(self.cell), np.int64), np.zeros(len(self.programs), np.bool_)
        missing = np.zeros(len(cell), np.bool_)
        placed(self.place, self.cell, place, cell, counts, x, missing)
        lost[self.program[place[missing & (counts > 0) & (cell < len(self.compiled.cells))]]] = True
        return x, lost

    def chosen(self, predicate: Predicate, *, every: bool = True) -> NDArray[np.bool_]:
        """The variables whose cells lie inside a predicate, or without `every` those that meet it.

        What cannot be is in no cell: one that is there for some of its records only is looked at closely.
        """
        cells = self.compiled.cells
        inside, meeting = cells.inside(predicate), cells.meeting(predicate)
        found = inside if every else meeting
        for cell in np.flatnonzero(cells.partly & meeting & ~inside):
            boxes = list(cells.schema.possible(cells.levels(int(cell))))
            satisfied = [box <= predicate if every else box.meets(predicate) for box in boxes]
            found[cell] = all(satisfied) if every else any(satisfied)
        return np.append(found, np.zeros(self.ways, np.bool_))[self.cell]


def places_alone(compiled: Compiled, counts: Counts, area: Area | None = None, *, tighten: bool = False) -> Problem:
    """One program for each place. Numbers of the area around, if given, are limits from above.

    With `tighten`, differences of the area's numbers are limits too, not only the printed numbers.
    """
    own = compiled.own
    columns = compiled.columns(counts.variables)
    direct = own.are_exact(counts.lower, counts.upper)
    if direct:  # no need to hold the limits of all places at once
        row, sure = np.zeros((1, own.recipe.rows), np.int64), np.ones(len(counts.places), np.bool_)
        limits = Limits(row, row, sure, ~sure)
    else:
        limits = own.limits(counts.lower, counts.upper, columns)
    return _alone(compiled, counts, columns, limits, _caps(compiled, area, tighten, len(counts.places)), direct)


def live_cells(compiled: Compiled, counts: Counts) -> int:
    """How many cells of how many places no number rules out."""
    own = compiled.own
    none = own.limits(counts.lower, counts.upper, compiled.columns(counts.variables)).upper == 0
    members = own.members[: none.shape[1]]
    return int(sum(len(compiled.cells) - np.count_nonzero(row @ members) for row in none.astype(np.int64)))


def _caps(compiled: Compiled, area: Area | None, tighten: bool, places: int) -> Caps:
    if area is None:
        none, zero = np.empty(0, np.int64), np.zeros(places, np.int64)
        return Caps(np.zeros((1, 0), np.int64), zero, np.zeros(len(compiled.cells) + 1, np.int64), none, none)
    if compiled.around is None:
        raise InputError("numbers of an area were given, but its tables were not compiled")
    area.check(places, len(compiled.around.variables))
    around = compiled.around
    if tighten:
        upper = around.limits(area.lower, area.upper).upper
        starts, rows, times = around.differences_of_cells if upper.shape[1] == around.differences else around.of_cells
    else:
        starts, rows, times = by_cell(around.members[around.differences :])
        upper = around.printed(area.upper)
    return Caps(np.ascontiguousarray(upper), area.of, starts, rows.astype(np.int64), times)


def from_above(around: Rows, area: Area, *, tighten: bool) -> tuple[Count, sparse.csr_matrix]:
    """The most of sets of cells in each area, and the sets: of the printed numbers, or of their differences, too."""
    if not tighten:
        return around.printed(area.upper), around.members[around.differences :]
    upper = around.limits(area.lower, area.upper).upper
    return upper, around.members[: upper.shape[1]]  # where all is exact, the differences say everything


def places_jointly(compiled: Compiled, counts: Counts, area: Area) -> Problem:
    """One program for each area, over the cells of all its places (which stand area by area)."""
    if compiled.around is None:
        raise InputError("numbers of an area were given, but its tables were not compiled")
    area.check(len(counts.places), len(compiled.around.variables))
    if (np.diff(area.of) < 0).any():
        raise InputError("places that are solved jointly must stand area by area")
    return gathered(places_alone(compiled, counts, area, tighten=True), compiled.around, area)


def places_within(compiled: Compiled, counts: Counts, around: Sequence[tuple[Rows, Area]]) -> Problem:
    """One program for each of the largest areas around places; smaller areas, if any, come first and lie within them.

    The first rows are those compiled with the places. Without any area there is one program for each place.
    """
    if not around:
        return places_alone(compiled, counts)
    problem = places_jointly(compiled, counts, around[0][1])
    for rows, area in around[1:]:
        problem = gathered(problem, rows, area)
    return problem


def gathered(problem: Problem, around: Rows, area: Area) -> Problem:
    """The programs of each area as one, with the numbers of the areas as rows over the cells of all of them.

    `area.of` is the area of each program; those of an area stand together. So areas can be gathered once more.
    """
    programs = problem.programs
    limits = around.limits(area.lower, area.upper)
    areas = len(area.lower)
    area_of = area.of[programs.program_of]
    width = limits.lower.shape[1]
    number, entries_of, variable, times = shared_rows(around, limits.exact, width, area_of, problem.cell)
    shared_lower, shared_upper = limits.lower.reshape(-1)[number], limits.upper.reshape(-1)[number]
    bad = limits.bad.copy()
    empty = np.ones(areas * width, np.bool_)  # rows without a cell: 0 must be possible
    empty[number] = False
    used = np.arange(width)[None, :] < np.where(limits.exact, around.differences, width)[:, None]
    bad |= (used & empty.reshape(areas, width) & (limits.lower > 0)).any(axis=1)
    bad[area.of[problem.bad]] = True
    # own rows of the programs, then the shared rows, area by area
    own_area = area.of[np.repeat(np.arange(len(programs)), np.diff(programs.row_first))]
    owners = np.concatenate([own_area, number // width])
    sizes = np.concatenate([np.diff(programs.starts), entries_of])
    begins = np.concatenate([programs.starts[:-1], len(programs.index) + np.cumsum(sizes[len(own_area) :])
                             - sizes[len(own_area) :]])  # fmt: skip
    entries = np.concatenate([programs.index, variable])
    values = np.concatenate([programs.coefficient, times])
    sequence = np.argsort(owners, kind="stable")
    sizes, begins = sizes[sequence], begins[sequence]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    gather = np.repeat(begins - starts[:-1], sizes) + np.arange(starts[-1])
    ranges = np.arange(areas + 1)
    joint = Programs(
        np.searchsorted(area_of, ranges).astype(np.int64),
        programs.lower,
        programs.upper,
        np.searchsorted(owners[sequence], ranges).astype(np.int64),
        np.concatenate([programs.row_lower, shared_lower])[sequence],
        np.concatenate([programs.row_upper, shared_upper])[sequence],
        starts,
        entries[gather],
        values[gather],
    )
    fixed = np.ones(areas, np.bool_)
    fixed[area.of[~problem.fixed_total]] = False
    of = area.of[problem.program]
    return Problem(problem.compiled, problem.places, joint, problem.place, problem.cell, bad, of, fixed)


def _alone(compiled: Compiled, counts: Counts, columns: Array, limits: Limits, caps: Caps, direct: bool) -> Problem:
    layout = Layout(*compiled.own.of_cells, *compiled.owned)
    values = np.ascontiguousarray(counts.lower)  # in one order, so that `live` is compiled once
    flat = live(direct, values, columns, compiled.own.recipe, limits, layout, caps)
    programs = Programs(
        flat.first, np.zeros(len(flat.upper), np.int64), flat.upper, flat.row_first, flat.row_lower, flat.row_upper,
        flat.starts, flat.variable, flat.times,
    )  # fmt: skip
    fixed = limits.exact & compiled.total_known
    return Problem(
        compiled, counts.places, programs, flat.place, flat.cell, flat.broken, np.arange(len(counts.places)), fixed
    )
