"""What do two sets of tables say about the same places? Numbers at every level, side by side, ready to be compared.

Records are counted into the tables of the scenario first, each at its own level. At a coarser level the numbers that
were published there are taken, and the sums of the places otherwise. Groups of a recode (races, say) and the number of
all records come from the smallest table that tells them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glasshouse.errors import GlasshouseBug, unknown
from glasshouse.model.geography import Geography
from glasshouse.model.records import UNLIMITED, Records
from glasshouse.model.release import Counts, Line, Release, Table
from glasshouse.model.schema import EVERYONE, Group, Predicate, Recode, Schema
from glasshouse.model.tabulate import Tabulator, compile_tables
from glasshouse.scenarios.load import Scenario

Floats = NDArray[np.float64]

MOST_GROUPS = 10  # a recode is looked at in at most so many groups, unless its coarsest ones are more


@dataclass(frozen=True)
class Numbers:
    """The numbers of places as a reader takes them: tables side by side, leaves only."""

    places: tuple[str, ...]  # in increasing order
    spans: Mapping[str, tuple[int, int]]  # the columns of each table
    data: Floats  # judged value, width, unlimited intervals; of each place; of each leaf

    @classmethod
    def of(cls, counts: Counts, columns: NDArray[np.int64], spans: Mapping[str, tuple[int, int]]) -> Numbers:
        """What was published in some columns."""
        order = np.argsort(np.array(counts.places, dtype=np.str_), kind="stable")
        lower, upper = counts.lower[np.ix_(order, columns)], counts.upper[np.ix_(order, columns)]
        data = np.zeros((3, *lower.shape))
        data[0] = lower
        if counts.upper is not counts.lower:
            endless = upper >= UNLIMITED
            data[1] = np.where(endless, 0, upper - lower)
            data[0] += data[1] / 2
            data[2] = endless
        return cls(tuple(counts.places[at] for at in order), spans, data)

    def summed(self, codes: Sequence[str]) -> Numbers:
        """The sums of places by the code of the area that each lies in."""
        if not codes:
            return self
        order = np.argsort(np.array(codes, dtype=np.str_), kind="stable")
        areas, starts = np.unique(np.array(codes, dtype=np.str_)[order], return_index=True)
        data = np.add.reduceat(self.data[:, order], starts, axis=1)
        return Numbers(tuple(str(area) for area in areas), self.spans, data)

    def chosen(self, places: Sequence[str], tables: Iterable[str]) -> Numbers:
        """These tables of these places; a place that is not here has zeros."""
        wanted = list(tables)
        if tuple(places) == self.places and wanted == list(self.spans):
            return self
        spans: dict[str, tuple[int, int]] = {}
        columns: list[int] = []
        for name in wanted:
            spans[name] = (len(columns), len(columns) + self.spans[name][1] - self.spans[name][0])
            columns += range(*self.spans[name])
        row = {place: number for number, place in enumerate(places)}
        data = np.zeros((3, len(places), len(columns)))
        data[:, [row[place] for place in self.places]] = self.data[:, :, columns]
        return Numbers(tuple(places), spans, data)

    def columns(self, table: str) -> Floats:
        """Values, widths and unlimited intervals of one table."""
        start, end = self.spans[table]
        return self.data[:, :, start:end]

    def beside(self, other: Numbers) -> Numbers:
        """These tables, and those of the other that are not here."""
        if not self.spans or not other.spans:
            return self if self.spans else other
        places = sorted({*self.places, *other.places})
        mine = self.chosen(places, self.spans)
        more = other.chosen(places, [name for name in other.spans if name not in self.spans])
        width = mine.data.shape[2]
        spans = {name: (start + width, end + width) for name, (start, end) in more.spans.items()}
        return Numbers(mine.places, {**mine.spans, **spans}, np.concatenate([mine.data, more.data], axis=2))


NOTHING = Numbers((), {}, np.zeros((3, 0, 0)))


def groups_of(recode: Recode) -> tuple[Group, ...]:
    """The groups of a recode that are looked at: divided into their parts, in order, while there are few enough.

    So races become six of one race, and two or more; not 63.
    """
    return recode.divided(MOST_GROUPS)


def recodes_of(scenario: Scenario, names: Sequence[str] = ()) -> tuple[Recode, ...]:
    """The recodes whose groups are looked at: those named, or for each attribute the coarsest that tables use.

    A tally is none, since it counts answers. Of several equally coarse the one that tables use first is taken. Without
    names, an attribute of which every recode has more than MOST_GROUPS groups (age) is left out; so is a recode whose
    groups no table of the places tells, since protected tables could not be compared with protected records then.
    """
    used = dict.fromkeys(name for table in scenario.tables for name in table.by)
    fit = {n: r for n, r in scenario.recodes.items() if not r.tally and len(r.groups) > 1}
    for name in names:
        if name not in fit:
            raise unknown("recode that divides records into groups", name, fit)
    if names:
        return tuple(fit[name] for name in dict.fromkeys(names))
    tables = [table for table in scenario.tables if table.level == scenario.geography.place]
    best: dict[str, Recode] = {}
    for recode in (fit[name] for name in used if name in fit):
        before = best.get(recode.attribute)
        finer = before is not None and len(recode.groups) >= len(before.groups)
        if not finer and len(recode.groups) <= MOST_GROUPS and _find_view(scenario.schema, tables, recode):
            best[recode.attribute] = recode
    return tuple(best.values())


@dataclass(frozen=True)
class Counting:
    """How records are counted for a comparison, compiled: every table at its own level, and the groups by place."""

    scenario: Scenario
    tables: tuple[Table, ...]
    tabulators: Mapping[str, Tabulator]  # by level

    @classmethod
    def of(cls, scenario: Scenario, recodes: Sequence[Recode]) -> Counting:
        geography, schema = scenario.geography, scenario.schema
        place = geography.place
        views = [_view_table("all records", place, EVERYONE, {"all": EVERYONE})]
        for recode in recodes:
            parts = {group.label: schema.where({recode.attribute: group.levels}) for group in groups_of(recode)}
            levels = frozenset[int]().union(*(group.levels for group in recode.groups))
            views.append(
                _view_table(f"groups of {recode.name}", place, schema.where({recode.attribute: levels}), parts)
            )
        by_level: dict[str, list[Table]] = {}
        for table in (*scenario.tables, *views):
            by_level.setdefault(_counted_at(geography, table.level), []).append(table)
        compiled = {level: compile_tables(schema, tables) for level, tables in by_level.items()}
        return cls(scenario, (*scenario.tables, *views), compiled)

    def release(self, records: Records) -> Release:
        """The tables of some records."""
        geography = self.scenario.geography
        names = sorted(records.places)
        number = {name: at for at, name in enumerate(names)}
        place = np.array([number[name] for name in records.places], np.int64)[records.place]
        codes = np.ascontiguousarray(records.codes[np.argsort(place, kind="stable")])
        ends = np.cumsum(np.bincount(place, minlength=len(names)))
        levels = {}
        for level, tabulator in self.tabulators.items():
            areas = [geography.code(name, level) for name in names]
            last = [at for at, area in enumerate(areas) if at + 1 == len(areas) or areas[at + 1] != area]
            bounds = np.concatenate([[0], ends[last]]).astype(np.int64) if last else np.zeros(1, np.int64)
            row, column, value = tabulator.count(codes, bounds)
            counts = np.zeros((len(last), len(tabulator.variables)), np.int64)
            counts[row, column] = value
            levels[level] = Counts(level, tuple(areas[at] for at in last), tabulator.variables, counts, counts)
        return Release(self.scenario.schema, self.tables, levels)


def _counted_at(geography: Geography, level: str) -> str:
    """Where the records of one unit are counted for a table of a level: there, or what adds up to it."""
    if geography.within_unit(level):
        return level
    return geography.unit if level in geography.lengths else geography.place


def _view_table(name: str, level: str, universe: Predicate, groups: Mapping[str, Predicate]) -> Table:
    """Groups as a table without a total."""
    lines = tuple(
        Line(number, f"{name}: {label}", label, predicate)
        for number, (label, predicate) in enumerate(groups.items(), start=1)
    )
    return Table(name, level, name, universe, (), False, lines, frozenset(line.number for line in lines))


class Side:
    """The truth, or the protected data: numbers at every level, and sums for the levels above the unit."""

    def __init__(self, scenario: Scenario, recodes: Sequence[Recode]) -> None:
        self.scenario, self.recodes = scenario, tuple(recodes)
        self._sums: dict[str, dict[str, Floats]] = {}
        self._spans: dict[str, Mapping[str, tuple[int, int]]] = {}
        self._columns: dict[tuple[str, tuple[str, ...]], tuple[NDArray[np.int64], dict[str, tuple[int, int]]]] = {}
        self._views: dict[tuple[str, ...], tuple[_View | None, ...]] = {}
        self._by_name: dict[str, Table] = {}

    def numbers(self, release: Release) -> dict[str, Numbers]:
        """What a release says at every level: published there, or the sums of what was published just below."""
        geography = self.scenario.geography
        found, below = {}, NOTHING
        for level in reversed(list(geography.lengths)):
            sums = below.summed([place[: geography.lengths[level]] for place in below.places])
            found[level] = below = self._published(release, level).beside(sums)
        places = found[geography.place]
        for level in geography.mappings:
            sums = places.summed([geography.code(place, level) for place in places.places])
            found[level] = self._published(release, level).beside(sums)
        return found

    def _published(self, release: Release, level: str) -> Numbers:
        """The numbers of whole tables at a level; where they stand is remembered, as it is the same for every unit."""
        if level not in release.levels:
            return NOTHING
        counts = release.levels[level]
        key = level, counts.variables
        if key not in self._columns:
            tables = release.published(level)
            self._by_name |= {table.name: table for table in tables}
            columns = [counts.column[line.variable] for table in tables for line in table.leaves]
            ends = np.cumsum([len(table.leaves) for table in tables])
            spans = {t.name: (int(end) - len(t.leaves), int(end)) for t, end in zip(tables, ends, strict=True)}
            self._columns[key] = np.array(columns, np.int64), spans
        columns_of, spans_of = self._columns[key]
        return Numbers.of(counts, columns_of, spans_of) if spans_of else NOTHING

    def add(self, numbers: Mapping[str, Numbers], levels: Iterable[str]) -> None:
        """Add what is said of one unit to the sums of levels above it."""
        for level in levels:
            here = numbers[level]
            if here.spans:
                if dict(self._spans.setdefault(level, here.spans)) != dict(here.spans):
                    raise GlasshouseBug(f"the units of a file have different tables at level {level}")
                sums = self._sums.setdefault(level, {})
                for at, place in enumerate(here.places):
                    before = sums.get(place)
                    sums[place] = here.data[:, at].copy() if before is None else before + here.data[:, at]

    def above(self, level: str, published: Mapping[str, Numbers]) -> Numbers:
        """What is known of a level above the unit: published there, or the sums of all units that were added."""
        sums = self._sums.get(level, {})
        places = sorted(sums)
        found = Numbers(tuple(places), self._spans[level], np.stack([sums[p] for p in places], 1)) if sums else NOTHING
        return published.get(level, NOTHING).beside(found)

    def view(self, numbers: Numbers, recode: Recode | None) -> Floats | None:
        """The records of each place, or those of each group of a recode; None where no table tells.

        Value, width and unlimited; of each place; of each group.
        """
        key = tuple(numbers.spans)
        if key not in self._views:
            tables = [self._by_name[name] for name in key]
            self._views[key] = tuple(_find_view(self.scenario.schema, tables, one) for one in (None, *self.recodes))
        view = self._views[key][0 if recode is None else 1 + self.recodes.index(recode)]
        if view is None:
            return None
        start = numbers.spans[view.table][0]
        return np.stack([numbers.data[:, :, [start + at for at in leaves]].sum(axis=2) for leaves in view.groups], 2)


@dataclass(frozen=True)
class _View:
    """Where groups are found: a table, and the leaves that add up to each."""

    table: str
    groups: tuple[tuple[int, ...], ...]


def _find_view(schema: Schema, tables: Sequence[Table], recode: Recode | None) -> _View | None:
    """The table with the fewest leaves that tells the groups of a recode (all records, without one)."""
    wanted = [EVERYONE] if recode is None else [schema.where({recode.attribute: g.levels}) for g in groups_of(recode)]
    for table in sorted(tables, key=lambda table: len(table.leaves)):
        if table.tally or not all(schema.covered(group, [table.universe]) for group in wanted):
            continue
        leaves = [line.predicate or EVERYONE for line in table.leaves]
        inside = [tuple(at for at, leaf in enumerate(leaves) if leaf <= group) for group in wanted]
        told = {at for some in inside for at in some}
        if all(at in told or not any(leaf.meets(group) for group in wanted) for at, leaf in enumerate(leaves)):
            return _View(table.name, tuple(inside))
    return None


def at_or_above(geography: Geography, level: str, own: str) -> bool:
    """Is a level the table's own, or coarser?"""
    if level == own or own not in geography.lengths:
        return level == own
    return level in geography.mappings or geography.lengths[level] <= geography.lengths[own]
