"""Which records fit the numbers of all levels at once, where those are intervals? Found by a walk, or not found.

Rounded and perturbed tables leave so much open that records which fit are close to any others. A walk over records
finds them in a fraction of a second where an integer program would take minutes (`program/numbers/walk.py`). It needs
nothing but how often each number counts each cell. What it finds was counted in whole numbers; if it finds nothing,
that says nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from glasshouse.attack.published import Published, Unit, untold
from glasshouse.model.records import UNLIMITED, Count
from glasshouse.model.release import Counts, Table, counted
from glasshouse.model.schema import Schema
from glasshouse.program.numbers.linked import numbers_of, sets_of
from glasshouse.program.numbers.walk import MOST_RECORDS, Board, Ring, Walk
from glasshouse.program.propagate import Array
from glasshouse.program.questions import Start
from glasshouse.program.tables.cells import Cells, partition
from glasshouse.program.tables.refine import parents

WALKS = 2  # that are begun, before it is given up
OPEN = 0.8  # share of numbers above 0 that are intervals, for a walk to be worth it

SMALL = 20_000  # cells of all places; fewer are searched and solved for, which proves more
Layer = tuple[Counts, NDArray[np.int64]]  # the numbers of areas, and the area of each place


class Fitting(NamedTuple):
    """Records that fit: the place and the cell of each."""

    place: Array
    cell: Array


@dataclass(frozen=True)
class Ground:
    """Cells, and how often the numbers of some tables count them: what records walk over."""

    board: Board
    kind: Mapping[str, int]  # the set of each number

    @staticmethod
    def of(
        cells: Cells, tables: Iterable[Table], variables: Iterable[str], groups: sparse.csr_matrix | None = None
    ) -> Ground:
        """The ground of some variables; no number may cut across a cell. Numbers of `groups` of cells come last."""
        numbers = numbers_of(cells, {table.name: table for table in tables}.values(), frozenset(variables))
        sets, kind = sets_of(numbers)
        every = sets if groups is None else sparse.vstack([sets, groups], format="csr")
        return Ground(Board.of(every, cells.codes), dict(zip(numbers.names, kind.tolist(), strict=True)))

    @staticmethod
    def of_tables(schema: Schema, tables: Sequence[Table], variables: Collection[str]) -> Ground:
        """The ground of the cells that some variables tell apart."""
        used = [table for table in tables if any(line.variable in variables for line in table.lines)]
        told = [
            predicate for table in used for line in table.lines if line.variable in variables
            for predicate in counted(table, line)
        ]  # fmt: skip
        return Ground.of(partition(schema.looking_away(untold(schema, used)), told), used, variables)

    def fitting(self, counts: Counts, layers: Sequence[Layer], seed: int) -> Fitting | None:
        """Records that fit the numbers of places and of the areas around them."""
        if not worth_a_walk([counts, *(areas for areas, _ in layers)]):
            return None
        for turn in range(WALKS):
            walk = self.walk(counts, layers, seed * WALKS + turn)
            if walk.found() == 0:
                return Fitting(*walk.records())
        return None

    def walk(self, counts: Counts, layers: Sequence[Layer], seed: int) -> Walk:
        """A walk that is not begun."""
        lower, upper = self.limits(counts)
        rings = []
        for areas, of in layers:
            kinds = np.unique([self.kind[name] for name in areas.variables]).astype(np.int64)
            at = np.full(self.board.count, -1, np.int64)
            at[kinds] = np.arange(len(kinds))
            low, high = self.limits(areas)
            rings.append(Ring(at, of, low[:, kinds], high[:, kinds]))
        active = np.zeros(self.board.count, np.bool_)
        active[[self.kind[name] for name in counts.variables]] = True
        return Walk(self.board, lower, upper, rings, seed, active)

    def limits(self, counts: Counts) -> tuple[Count, Count]:
        """The limits of every set at some places; several numbers may be of one set."""
        shape = len(counts.places), self.board.count
        lower, upper = np.zeros(shape, np.int64), np.full(shape, UNLIMITED, np.int64)
        for at, name in enumerate(counts.variables):
            kind = self.kind[name]
            np.maximum(lower[:, kind], counts.lower[:, at], out=lower[:, kind])
            np.minimum(upper[:, kind], counts.upper[:, at], out=upper[:, kind])
        return lower, upper


def worth_a_walk(levels: Sequence[Counts]) -> bool:
    """Are most numbers that may be above 0 intervals, and none of a place large?"""
    some = [counts.upper > 0 for counts in levels]
    open_ = sum(int((counts.lower < counts.upper).sum()) for counts in levels)
    places = levels[0]
    most = np.where(places.upper < UNLIMITED, places.upper, places.lower).max(initial=0)
    return bool(most <= MOST_RECORDS // 4) and open_ > OPEN * sum(int(one.sum()) for one in some)


def fitting(published: Published, unit: Unit, seed: int) -> Fitting | None:
    """Records, in the finest cells, that fit every number of a unit whose numbers are intervals; None: not found."""
    counts, areas = _used(published, unit)
    levels = [counts] if areas is None else [counts, areas]
    if all(one.exact for one in levels) or len(published.finest.cells) * len(counts.places) < SMALL:
        return None
    layers = [] if areas is None else [(areas, unit.of)]
    return _ground(published).fitting(counts, layers, seed)


def far_apart(published: Published, unit: Unit, start: Start, seed: int) -> Start | None:
    """Records that fit the numbers of each place (and those of the area from above) and have little in common with a
    start; compared, as the start, in bins. Places where none were found have none."""
    counts, areas = _used(published, unit)
    wide = not counts.exact and worth_a_walk([counts])
    if not wide or len(published.binned.cells) * len(counts.places) < SMALL:
        return None
    parent = parents(published.binned, published.finest)
    names, group = np.unique(start.cell, return_inverse=True)
    ground = _ground(published, _groups(parent, names))
    sets = ground.board.count - len(names) - 1
    lower, upper = ground.limits(counts)
    if areas is not None:
        upper = np.minimum(upper, ground.limits(areas)[1][unit.of])
    active = np.asarray(((lower > 0) | (upper < UNLIMITED)).any(axis=0))
    active[sets:] = True
    found: list[tuple[Array, Array]] = []
    for at in range(len(counts.places)):
        row = slice(at, at + 1)
        walk = Walk(ground.board, lower[row], upper[row], (), seed, active)
        if walk.found() == 0:
            walk.apart(sets + group[start.place == at], np.array([sets + len(names)]))
            _, fine = walk.records()
            found.append((np.full(len(fine), at, np.int64), parent[fine]))
    if not found:
        return None
    place, cell = (np.concatenate(pair) for pair in zip(*found, strict=True))
    width = len(published.binned.cells)
    key, times = np.unique(place * width + cell, return_counts=True)
    return Start(key // width, key % width, times.astype(np.int64))


def _used(published: Published, unit: Unit) -> tuple[Counts, Counts | None]:
    """The numbers of a unit that are used, and no others."""
    fine = published.finest
    areas = None if unit.areas is None or fine.around is None else _only(unit.areas, fine.around.variables)
    return _only(unit.counts, fine.own.variables), areas


def _only(counts: Counts, variables: Sequence[str]) -> Counts:
    columns = [counts.column[name] for name in variables]
    return Counts(counts.level, counts.places, tuple(variables), counts.lower[:, columns], counts.upper[:, columns])


def _ground(published: Published, groups: sparse.csr_matrix | None = None) -> Ground:
    fine, tables = published.finest, (*published.tables, *published.around)
    around = () if fine.around is None else fine.around.variables
    return Ground.of(fine.cells, tables, {*fine.own.variables, *around}, groups)


def _groups(parent: Array, names: Array) -> sparse.csr_matrix:
    """The fine cells of each of some coarse ones; and all."""
    row = np.full(int(max(parent.max(initial=0), names.max(initial=0))) + 1, -1, np.int64)
    row[names] = np.arange(len(names))
    inside = np.flatnonzero(row[parent] >= 0)
    rows = np.concatenate([row[parent[inside]], np.full(len(parent), len(names))])
    cells = np.concatenate([inside, np.arange(len(parent))])
    return sparse.csr_matrix((np.ones(len(rows), np.int64), (rows, cells)), shape=(len(names) + 1, len(parent)))
