"""What does an attack on a unit start from? Numbers of its places and of the area around, and the tables compiled.

What depends on the tables alone is worked out once and serves every unit; a unit brings only numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from glasshouse.errors import InputError
from glasshouse.model.records import UNLIMITED, Codes, Index, group_of_level, satisfies
from glasshouse.model.release import Counts, Table, attributes_counted, counted, counts_everyone
from glasshouse.model.schema import EVERYONE, Predicate, Recode, Schema
from glasshouse.model.tabulate import Tabulator
from glasshouse.model.tabulate import compile_tables as compile_counting
from glasshouse.program.answers import Answers
from glasshouse.program.integer import Outcome, Proof
from glasshouse.program.tables.dealing import Dealing, Ruled, dealing, ruled_from_above
from glasshouse.program.tables.histogram import (
    Area,
    Compiled,
    Problem,
    live_cells,
    places_alone,
    places_jointly,
)
from glasshouse.program.tables.kept import compiled_tables
from glasshouse.program.tables.refine import Refinement, prepare

MOST_JOINTLY = 300_000  # kinds of record, place by place, that are worth trying together where numbers are intervals


class Unit(NamedTuple):
    """The numbers of places that are worked on at once, and of the areas around them, if those are used.

    Where not every place is known, each area has one more, named as the area is: the rest of it. No number of a place
    counts anybody there; the area's own do.
    """

    counts: Counts
    areas: Counts | None
    of: NDArray[np.int64]  # the area of each place

    @property
    def named(self) -> NDArray[np.bool_]:
        """The places that are places, and not the rest of an area."""
        areas = set() if self.areas is None else set(self.areas.places)
        return np.array([place not in areas for place in self.counts.places], np.bool_)


def with_rest(counts: Counts, areas: Counts) -> Counts:
    """The places with the rest of each area, where every number of a place is 0; a shorter code stands first."""
    places = tuple(sorted({*counts.places, *areas.places}))
    row = np.searchsorted(places, counts.places)
    lower = np.zeros((len(places), len(counts.variables)), np.int64)
    lower[row] = counts.lower
    upper = lower
    if not counts.exact:
        upper = np.zeros_like(lower)
        upper[row] = counts.upper
    return Counts(counts.level, places, counts.variables, lower, upper)


@dataclass(frozen=True)
class Published:
    """The tables of places and of the areas around them, and how records are compared."""

    schema: Schema
    tables: tuple[Table, ...]
    variables: tuple[str, ...]
    around: tuple[Table, ...]
    around_variables: tuple[str, ...]
    bins: Mapping[str, Recode] = field(default_factory=dict)  # by the column that gives the group
    unique_on: tuple[str, ...] = ()  # attributes or bins
    left_out: tuple[str, ...] = ()  # attributes that are not compared; see `untold`
    divided: tuple[Predicate, ...] = ()  # what tables of places tell apart inside bins, also tables not used

    @cached_property
    def binned(self) -> Compiled:
        """Cells as records are compared: every level told apart, and the groups of the bins.

        A table of places, used or not, that tells levels inside a bin apart makes the cells finer there.
        """
        return self._compile(finest=False)

    @cached_property
    def finest(self) -> Compiled:
        """Cells that also tell apart what only the tables around do, such as single years."""
        return self._compile(finest=True)

    @cached_property
    def deal(self) -> Refinement | None:
        """How records in bins get what only the tables around tell; None when those must be solved for directly."""
        try:
            return prepare(self.binned, self.finest)
        except InputError:
            return None

    @cached_property
    def compared(self) -> tuple[str, ...]:
        """The attributes in which records are compared: those that some table tells."""
        return tuple(attribute.name for attribute in self.schema.attributes if attribute.name not in self.left_out)

    def dealing(self, unit: Unit, *, tighten: bool, jointly: bool = False) -> tuple[Dealing, Ruled] | None:
        """How records in bins can have what only the tables around tell; None where limits on bins say it all.

        Limits are the printed numbers, or also their differences; from above, or jointly from below, too.
        """
        area = self.area(self.finest, unit) if self.around_is_finer else None
        if area is None or self.finest.around is None or ((tighten or jointly) and self.bins_say_all(unit)):
            return None
        if jointly:
            found = self.finest.around.limits(area.lower, area.upper)
            ruled = Ruled(self.finest.around.members[: found.upper.shape[1]], found.lower, found.upper)
        else:
            ruled = ruled_from_above(self.finest, area, tighten=tighten)
        key = tighten, jointly, ruled.upper.shape[1]  # exact numbers have fewer differences
        if key not in self._dealings:
            self._dealings[key] = dealing(
                self.binned, self.finest, ruled.members, from_above=not jointly, printed=not (tighten or jointly)
            )
        prepared = self._dealings[key]
        return None if prepared is None else (prepared, ruled)

    @cached_property
    def _dealings(self) -> dict[tuple[bool, bool, int], Dealing | None]:
        return {}

    @cached_property
    def counting(self) -> tuple[Tabulator, Tabulator | None]:
        """The tables once more, to count what was rebuilt."""
        outer = compile_counting(self.schema, self.around, subtotals=True) if self.around else None
        return compile_counting(self.schema, self.tables, subtotals=True), outer

    def _compile(self, *, finest: bool) -> Compiled:
        return compiled_tables(
            self.schema.looking_away(self.left_out),
            self.tables,
            self.variables,
            around=self.around,
            around_present=self.around_variables,
            told_apart=list(self._told_apart()),
            finest=finest,
        )

    def _told_apart(self) -> Iterator[Predicate]:
        binned = {recode.attribute: recode for recode in self.bins.values()}
        for attribute in self.schema.attributes:
            if attribute.name in self.left_out:
                continue
            groups = (
                [leaf.levels for leaf in binned[attribute.name].leaves]
                if attribute.name in binned
                else [frozenset([level]) for level in range(len(attribute))]
            )
            yield from (self.schema.where({attribute.name: levels}) for levels in groups)
        yield from (one for one in self.divided if not set(one.by_attribute).intersection(self.left_out))

    def groups(self, column: str, codes: Codes) -> NDArray[np.int64]:
        """For each record the number of its group in a column of bins, or its level of an attribute."""
        recode = self.bins.get(column)
        if recode is None:
            return codes[:, self.schema.position[column]].astype(np.int64)
        return group_of_level(self.schema, recode)[codes[:, self.schema.position[recode.attribute]]]

    @cached_property
    def around_is_finer(self) -> bool:
        """Do the tables around tell levels apart that the binned cells do not?"""
        pairs = zip(self.finest.cells.classes, self.binned.cells.classes, strict=True)
        return bool(self.around) and any(fine.max() > binned.max() for fine, binned in pairs)

    def bins_say_all(self, unit: Unit) -> bool:
        """Is every solution in the binned cells one in full? Finer tables around must be such as can be dealt out."""
        return unit.areas is None or not self.around_is_finer or (self.deal is not None and unit.areas.exact)

    def refuse_contradictions(self, unit: Unit) -> None:
        """Numbers of an area can contradict each other inside a bin, where solving in bins would not see it."""
        around = self.finest.around if unit.areas is not None and self.around else None
        if around is not None and unit.areas is not None:
            columns = [unit.areas.column[variable] for variable in around.variables]
            bad = around.limits(unit.areas.lower[:, columns], unit.areas.upper[:, columns]).bad
            if bad.any():
                raise NothingFits(int(bad.sum()), Proof.EXACT, clock=False)

    def area(self, compiled: Compiled, unit: Unit) -> Area | None:
        """The numbers of the areas around, as the core wants them."""
        if unit.areas is None or compiled.around is None:
            return None
        columns = [unit.areas.column[variable] for variable in compiled.around.variables]
        return Area(unit.areas.lower[:, columns], unit.areas.upper[:, columns], unit.of)

    def together(self, compiled: Compiled, unit: Unit) -> Problem:
        """The places of each area jointly; without numbers of areas, each place alone."""
        area = self.area(compiled, unit)
        if area is None:
            return places_alone(compiled, unit.counts)
        kinds = 0 if unit.counts.exact else live_cells(compiled, unit.counts)
        if kinds > MOST_JOINTLY:
            raise InputError(
                f"its numbers are intervals, which leave {kinds:,} kinds of record in its places; together that is too "
                f"large a problem (up to {MOST_JOINTLY:,} are tried); --level {unit.counts.level} asks of each alone"
            )
        return places_jointly(compiled, unit.counts, area)


def divisions(tables: Iterable[Table], bins: Mapping[str, Recode]) -> tuple[Predicate, ...]:
    """What tables tell apart in the attributes that have bins, each attribute by itself."""
    binned = {recode.attribute for recode in bins.values()}
    found = (one for table in tables for line in table.lines for some in counted(table, line) for one in some.sets)
    return tuple(dict.fromkeys(Predicate((one,)) for one in found if one[0] in binned))


def records_allowed(published: Published, counts: Counts) -> tuple[int, int]:
    """How many records the places have, at least and at most, by the tables that count all; UNLIMITED is no limit.

    More tables together may allow less: the truth is inside all the same.
    """
    least, most = np.zeros(len(counts.places), np.int64), np.full(len(counts.places), UNLIMITED)
    for table in published.tables:
        if not counts_everyone(table) or table.sums:
            continue
        wholes = [[line.variable] for line in table.lines if line.predicate == EVERYONE]
        for variables in (*wholes, [line.variable for line in table.leaves]):
            if set(variables) <= counts.column.keys():
                columns = [counts.column[variable] for variable in variables]
                least = np.maximum(least, counts.lower[:, columns].sum(axis=1))
                most = np.minimum(most, counts.upper[:, columns].sum(axis=1))
    return int(least.sum()), min(int(most.sum()), UNLIMITED)


def untold(schema: Schema, tables: Iterable[Table]) -> tuple[str, ...]:
    """Attributes that no table looks at: nothing is known of them, and nothing can be certain if they are compared."""
    told = frozenset().union(*(attributes_counted(table) for table in tables))
    return tuple(attribute.name for attribute in schema.attributes if attribute.name not in told)


class NothingFits(InputError):  # noqa: N818  # it is a finding about the numbers
    """Nothing fits the numbers of a unit (`proved`), or nothing was found within the limits."""

    def __init__(self, programs: int, proof: Proof | None, *, clock: bool) -> None:
        self.proof, self.clock = proof, clock
        told = "no records fit the numbers" if proof else "no records that fit the numbers were found within the limits"
        super().__init__(f"{told}{f' ({programs:,} problems)' if programs > 1 else ''}")


def refuse_unfit(answers: Answers) -> None:
    """Every program must have a solution."""
    if answers.fits.all():
        return
    bad = np.flatnonzero(~answers.fits)
    proved = [answers.proof[number] for number in bad if answers.outcome[number] == Outcome.INFEASIBLE]
    proved = [proof for proof in proved if proof != Proof.UNDECIDED]
    raise NothingFits(len(bad), proved[0] if proved else None, clock=bool(answers.clock[bad].any()))


def drawn(compiled: Compiled, cell: NDArray[np.int64], rng: np.random.Generator, schema: Schema) -> Codes:
    """Levels for records in cells: where a cell stands for several possible records, one, with equal chances.

    Structural zeros do not divide cells; where a draw cannot be, what can is listed and drawn from.
    """
    codes = _drawn(compiled, cell, rng)
    wrong = np.zeros(len(codes), np.bool_)
    for zero in schema.impossible:
        wrong |= satisfies(schema, codes, zero.predicate)
    for one in np.unique(cell[wrong]):
        boxes = [box.by_attribute for box in schema.possible(compiled.cells.levels(int(one)))]
        sides = [[sorted(box.get(a.name, range(len(a)))) for a in schema.attributes] for box in boxes]
        sizes = np.array([prod(len(side) for side in box) for box in sides], np.float64)
        mine = np.flatnonzero(wrong & (cell == one))
        for record, box in zip(mine, rng.choice(len(boxes), len(mine), p=sizes / sizes.sum()), strict=True):
            codes[record] = [side[int(rng.integers(len(side)))] for side in sides[box]]
    return codes


def _drawn(compiled: Compiled, cell: NDArray[np.int64], rng: np.random.Generator) -> Codes:
    codes = np.empty((len(cell), len(compiled.cells.classes)), np.int16)
    for attribute, classes in enumerate(compiled.cells.classes):
        levels = np.argsort(classes, kind="stable")
        sizes = np.bincount(classes)
        begins = np.cumsum(sizes) - sizes
        chosen = compiled.cells.codes[cell, attribute]
        within = (rng.random(len(cell)) * sizes[chosen]).astype(np.int64)
        codes[:, attribute] = levels[begins[chosen] + within]
    return codes


def recounted(
    published: Published, unit: Unit, place: Index, codes: Codes
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which places, and which areas, the records (sorted by place) reproduce in every published number."""
    inner, outer = published.counting
    places = _recounted(inner, unit.counts, place, codes)
    if unit.areas is None or outer is None:
        return places, np.ones(0, np.bool_)
    area = unit.of[place].astype(np.int32)
    by_area = np.argsort(area, kind="stable")
    return places, _recounted(outer, unit.areas, area[by_area], np.ascontiguousarray(codes[by_area]))


def _recounted(tabulator: Tabulator, counts: Counts, place: Index, codes: Codes) -> NDArray[np.bool_]:
    """Which places the records, sorted by place, reproduce in every number."""
    bounds = np.searchsorted(place, np.arange(len(counts.places) + 1)).astype(np.int64)
    row, column, value = tabulator.count(codes, bounds)
    again = np.zeros((len(counts.places), len(tabulator.variables)), np.int64)
    again[row, column] = value
    at = {variable: number for number, variable in enumerate(tabulator.variables)}
    again = again[:, [at[variable] for variable in counts.variables]]
    return np.asarray(((again >= counts.lower) & (again <= counts.upper)).all(axis=1))
