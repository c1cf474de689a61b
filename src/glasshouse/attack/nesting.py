"""What do places and the areas around them, at several levels, say together? One problem for each of the largest areas.

Whatever a number counts must be a union of cells, or the problem says less than the numbers do. The cells that the
tables of places tell apart are few; where numbers of areas cut across them, cells as fine as all tables are needed too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from glasshouse.attack.published import untold, with_rest
from glasshouse.errors import GlasshouseBug, InputError
from glasshouse.model.geography import Geography
from glasshouse.model.identities import sum_up
from glasshouse.model.release import Counts, Table, counted
from glasshouse.model.schema import Predicate, Schema
from glasshouse.program.propagate import Array
from glasshouse.program.reduce import Programs
from glasshouse.program.tables.histogram import Area, Compiled, Problem, gathered, places_within
from glasshouse.program.tables.kept import compiled_tables
from glasshouse.program.tables.refine import parents, prepare
from glasshouse.program.tables.rows import Rows, compile_rows


@dataclass(frozen=True)
class Layer:
    """Areas around what lies below them: their numbers, and the area of each place (or smaller area) below."""

    counts: Counts
    of: NDArray[np.int64]


@dataclass(frozen=True)
class Nest:
    """The numbers of places and, from small to large, of the areas around them that say more than sums of those."""

    counts: Counts
    layers: tuple[Layer, ...] = ()

    @property
    def levels(self) -> tuple[Counts, ...]:
        return (self.counts, *(layer.counts for layer in self.layers))

    def only(self, rows: NDArray[np.int64]) -> Nest:
        """Some of the largest areas, with what lies in them."""
        if not self.layers:
            return Nest(only_places(self.counts, rows))
        *lower, top = self.layers
        below = np.flatnonzero(np.isin(top.of, rows))
        inner = Nest(self.counts, tuple(lower)).only(below)
        return Nest(
            inner.counts,
            (*inner.layers, Layer(only_places(top.counts, rows), np.searchsorted(rows, top.of[below]))),
        )


def nest(levels: Sequence[Counts], geography: Geography, *, whole: bool = True) -> Nest | None:
    """The numbers of nested levels, finest first; None when the last says nothing that sums of the others do not.

    Where the places named are not the `whole` of an area, the rest of it is there, too.
    """
    levels = levels if whole else with_rests(levels, geography)
    inner, *outer = (only_places(counts, np.argsort(counts.places, kind="stable")) for counts in levels)
    layers: list[Layer] = []
    below = inner
    for number, counts in enumerate(outer, 1):
        more = _saying_more(counts, levels[:number], geography)
        if more.variables:
            of = np.array([more.row[geography.code(place, more.level)] for place in below.places], np.int64)
            layers.append(Layer(more, of))
            below = more
    return Nest(inner, tuple(layers)) if not outer or below.level == outer[-1].level else None


def with_rests(levels: Sequence[Counts], geography: Geography) -> list[Counts]:
    """The numbers of nested levels with the rest of every area; a mapping knows places only, and has no rest."""
    found = [levels[-1]]
    for counts in reversed(levels[:-1]):
        prefix = {counts.level, found[0].level} <= set(geography.lengths)
        found.insert(0, with_rest(counts, found[0]) if prefix else counts)
    return found


def _saying_more(counts: Counts, inner: Sequence[Counts], geography: Geography) -> Counts:
    """The numbers that are not just what the sums of a finer level say already.

    A level either repeats all numbers of a finer one that it shares with it, or none counts as repeated: so the tables
    of most units are the same.
    """
    said: set[str] = set()
    for finer in inner:
        both = tuple(variable for variable in finer.variables if variable in counts.column)
        sums = sum_up(_only_variables(finer, both), counts.places, geography, counts.level)
        if following(_only_variables(counts, both), [sums]).all():
            said.update(both)
    return _only_variables(counts, tuple(variable for variable in counts.variables if variable not in said))


def following(counts: Counts, sums: Sequence[Counts]) -> NDArray[np.bool_]:
    """Of each number of areas (areas x variables), whether it follows from the sums of the same number inside."""
    follows = np.zeros(counts.lower.shape, np.bool_)
    for finer in sums:
        both = [
            (at, counts.column[variable]) for at, variable in enumerate(finer.variables) if variable in counts.column
        ]
        inner, outer = ([pair[side] for pair in both] for side in (0, 1))
        low, high = counts.lower[:, outer] <= finer.lower[:, inner], finer.upper[:, inner] <= counts.upper[:, outer]
        follows[:, outer] |= low & high
    return follows


def _only_variables(counts: Counts, variables: tuple[str, ...]) -> Counts:
    columns = [counts.column[variable] for variable in variables]
    lower = counts.lower[:, columns]
    upper = lower if counts.exact else counts.upper[:, columns]
    return Counts(counts.level, counts.places, variables, lower, upper)


def only_places(counts: Counts, rows: NDArray[np.int64]) -> Counts:
    """The numbers of some places, in this order."""
    lower = np.ascontiguousarray(counts.lower[rows])
    upper = lower if counts.exact else np.ascontiguousarray(counts.upper[rows])
    return Counts(counts.level, tuple(counts.places[row] for row in rows), counts.variables, lower, upper)


@dataclass(frozen=True)
class Frame:
    """The tables of a nest, compiled for some cells: those of places, and the rows of every layer around."""

    compiled: Compiled
    rows: tuple[Rows, ...]

    def areas(self, nest: Nest) -> list[tuple[Rows, Area]]:
        """The numbers of the layers, as the core wants them."""
        found = []
        for rows, layer in zip(self.rows, nest.layers, strict=True):
            columns = [layer.counts.column[variable] for variable in rows.variables]
            found.append((rows, Area(layer.counts.lower[:, columns], layer.counts.upper[:, columns], layer.of)))
        return found

    def problem(self, nest: Nest) -> Problem:
        """One program for each of the largest areas (without layers: for each place)."""
        return places_within(self.compiled, nest.counts, self.areas(nest))


@dataclass(frozen=True)
class Frames:
    """Cells of places; and cells that no number cuts across, if those are finer (None: there are too many of them)."""

    places: Frame
    finest: Frame | None

    @property
    def say_all(self) -> bool:
        """Is every number a sum of cells of places?"""
        return self.finest is self.places

    @cached_property
    def dealt(self) -> bool:
        """Does what fits in cells of places also fit in finer ones, whatever the (exact) numbers of the areas?"""
        if self.finest is None or len(self.finest.rows) != 1:
            return False
        try:
            prepare(self.places.compiled, self.finest.compiled)
        except InputError:
            return False
        return True

    def sizes(self, problem: Problem) -> NDArray[np.int64]:
        """How many variables each program in cells of places would have in the finest cells, at most."""
        starts, _ = self._parts
        weight = np.diff(starts)[problem.cell]
        return np.bincount(problem.programs.program_of, weight, len(problem.programs)).astype(np.int64)

    def divided(self, nest: Nest, problem: Problem, x: Array) -> Problem:
        """The same programs in the finest cells, where each cell of a place has as many records as `x` says."""
        if self.finest is None:
            raise GlasshouseBug("the finest cells were not compiled")
        kept = np.flatnonzero(x > 0)
        starts, parts = self._parts
        sizes = np.diff(starts)[problem.cell[kept]]
        ends = np.concatenate([[0], np.cumsum(sizes)])
        entry = np.repeat(np.arange(len(kept)), sizes)
        cell = parts[starts[problem.cell[kept]][entry] + np.arange(ends[-1]) - ends[entry]].astype(np.int32)
        place = problem.place[kept]
        rows = np.searchsorted(place, np.arange(len(nest.counts.places) + 1)).astype(np.int64)
        zero, one = np.zeros(len(cell), np.int64), np.ones(len(cell), np.int64)
        alone = Programs(
            ends[rows], zero, x[kept][entry], rows, x[kept], x[kept], ends, np.arange(len(cell), dtype=np.int32), one
        )
        none, every = np.zeros(len(alone), np.bool_), np.arange(len(alone))
        result = Problem(self.finest.compiled, problem.places, alone, place[entry], cell, none, every, ~none)
        for number, area in self.finest.areas(nest):
            result = gathered(result, number, area)
        return result

    @cached_property
    def _parts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The finest cells by the cell of a place that they lie in, and where those of each begin."""
        fine = self.finest or self.places
        parent = parents(self.places.compiled, fine.compiled)
        order = np.argsort(parent, kind="stable")
        return np.searchsorted(parent[order], np.arange(len(self.places.compiled.cells) + 1)), order


def frames(schema: Schema, tables: Sequence[Table], nest: Nest) -> Frames:
    """Compile the tables of a nest; it depends on the variables of each level alone."""
    levels = [(_tables(tables, counts), counts.variables) for counts in nest.levels]
    seen = schema.looking_away(untold(schema, [table for some, _ in levels for table in some]))
    places = _frame(seen, levels, finest=False)
    cells = places.compiled.cells
    told = [predicate for level in levels[1:] for predicate in _told(*level)]
    if all((cells.inside(predicate) == cells.meeting(predicate)).all() for predicate in dict.fromkeys(told)):
        return Frames(places, places)
    try:
        return Frames(places, _frame(seen, levels, finest=True))
    except InputError:  # more cells than can be written down
        return Frames(places, None)


Level = tuple[list[Table], tuple[str, ...]]  # the tables of a level, and the variables published there


def _frame(schema: Schema, levels: Sequence[Level], *, finest: bool) -> Frame:
    (inside, variables), *outer = levels
    (around, present), *beyond = outer or [([], ())]
    told = [predicate for level in beyond for predicate in _told(*level)] if finest else []
    compiled = compiled_tables(
        schema, inside, variables, around=around, around_present=present, told_apart=told, finest=finest
    )
    first = () if compiled.around is None else (compiled.around,)
    return Frame(compiled, (*first, *(compile_rows(compiled.cells, *level) for level in beyond)))


def _told(tables: list[Table], variables: tuple[str, ...]) -> Iterator[Predicate]:
    present = frozenset(variables)
    for table in tables:
        for line in table.lines:
            if line.variable in present:
                yield from counted(table, line)


def _tables(tables: Sequence[Table], counts: Counts) -> list[Table]:
    return [table for table in tables if any(line.variable in counts.column for line in table.lines)]
