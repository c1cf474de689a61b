"""What does an attack on a unit start from? Numbers of its places and of the area around, and the tables compiled.

What depends on the tables alone is worked out once and serves every unit; a unit brings only numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from glasshouse.errors import InputError
from glasshouse.model.records import Codes, Index, group_of_level, satisfies
from glasshouse.model.release import Counts, Table, attributes_counted
from glasshouse.model.schema import Predicate, Recode, Schema
from glasshouse.model.tabulate import Tabulator
from glasshouse.model.tabulate import compile_tables as compile_counting
from glasshouse.program.answers import Answers
from glasshouse.program.integer import Outcome, Proof
from glasshouse.program.tables.histogram import Area, Compiled, Problem, compile_tables, places_alone, places_jointly
from glasshouse.program.tables.refine import Refinement, prepare


class Unit(NamedTuple):
    """The numbers of places that are worked on at once, and of the areas around them, if those are used."""

    counts: Counts
    areas: Counts | None
    of: NDArray[np.int64]  # the area of each place


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

    @cached_property
    def binned(self) -> Compiled:
        """Cells as records are compared: every level told apart, and the groups of the bins.

        A table of places that tells levels inside a bin apart makes the cells finer there.
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
    def counting(self) -> tuple[Tabulator, Tabulator | None]:
        """The tables once more, to count what was rebuilt."""
        outer = compile_counting(self.schema, self.around, subtotals=True) if self.around else None
        return compile_counting(self.schema, self.tables, subtotals=True), outer

    def _compile(self, *, finest: bool) -> Compiled:
        return compile_tables(
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

    def groups(self, column: str, codes: Codes) -> NDArray[np.int64]:
        """For each record the number of its group in a column of bins, or its level of an attribute."""
        recode = self.bins.get(column)
        if recode is None:
            return codes[:, self.schema.position[column]].astype(np.int64)
        return group_of_level(self.schema, recode)[codes[:, self.schema.position[recode.attribute]]]

    @cached_property
    def around_is_finer(self) -> bool:
        """Do the tables around tell apart what the binned cells do not?"""
        return bool(self.around) and len(self.finest.cells) > len(self.binned.cells)

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
        return places_alone(compiled, unit.counts) if area is None else places_jointly(compiled, unit.counts, area)


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
    """Levels for records in cells: where a cell stands for several levels, one of them, with equal chances.

    Cells may look away from attributes that no table tells; a record that cannot be is then drawn again.
    """
    codes = _drawn(compiled, cell, rng)
    while True:
        wrong = np.zeros(len(codes), np.bool_)
        for zero in schema.impossible if compiled.cells.schema is not schema else ():
            wrong |= satisfies(schema, codes, zero.predicate)
        if not wrong.any():
            return codes
        codes[wrong] = _drawn(compiled, cell[wrong], rng)


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
