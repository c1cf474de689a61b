"""What was published? Tables of counts: a table is a product of recodes within a universe, at a geographic level."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from glasshouse.errors import GlasshouseBug, InputError, unknown
from glasshouse.limits import LINES
from glasshouse.model.records import UNLIMITED, Count, Interval
from glasshouse.model.schema import EVERYONE, Group, Predicate, Recode, Schema


@dataclass(frozen=True)
class Line:
    """One published number of a table: a cell, or a subtotal of the lines named in `parts`.

    `predicate` says which records it counts; the subtotal of a tally counts answers instead and has none, and so does a
    line that adds up a number of the records: each of its `answers` is given by the records that have at least so
    many, so a household of 5 persons gives five. `counted` says what a line counts, whichever it is.
    An *of which* line counts some records of line `within`, and the rest of them is not published: it is a cell, but
    no part of anything.
    """

    number: int
    variable: str
    label: str
    predicate: Predicate | None
    parts: tuple[int, ...] = ()
    within: int | None = None
    answers: tuple[Predicate, ...] = ()


@dataclass(frozen=True)
class OfWhich:
    """What an office prints below a line without dividing it: `living alone, of which: 65 years and over`."""

    label: str
    predicate: Predicate


@dataclass(frozen=True)
class Table:
    """A published table: its lines in official order, of which `cells` are the ones an attack uses.

    A `tally` counts answers, not records; so does a table that adds up what it `sums`, a number of the records.
    """

    name: str
    level: str
    title: str
    universe: Predicate
    by: tuple[str, ...]
    tally: bool
    lines: tuple[Line, ...]
    cells: frozenset[int]
    doubt: str = ""  # why the office may count something slightly different
    sums: str = ""  # the number of the records that the table adds up, if it does
    bottom_up: str = ""  # the table whose noisy numbers its total is made from, when noise is added

    def line(self, number: int) -> Line:
        return self.lines[number - 1]

    @cached_property
    def leaves(self) -> tuple[Line, ...]:
        """The lines that are not subtotals: each record of the universe is in one (in a tally: in at least one)."""
        return tuple(line for line in self.lines if not line.parts and line.within is None)

    @cached_property
    def of_which(self) -> tuple[Line, ...]:
        """The lines that count some of the records of another line, and divide nothing."""
        return tuple(line for line in self.lines if line.within is not None)

    def leaves_of(self, line: Line) -> tuple[Line, ...]:
        """The leaves that a line adds up; of a line that adds up nothing, itself."""
        if not line.parts:
            return (line,)
        last = line  # lines stand depth first, so the leaves of a total stand right below it
        while last.parts:
            last = self.line(last.parts[-1])
        return tuple(leaf for leaf in self.leaves if line.number <= leaf.number <= last.number)

    @cached_property
    def subtotals(self) -> tuple[Line, ...]:
        return tuple(line for line in self.lines if line.parts)

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """The official names of the cells, in the order of the lines."""
        return tuple(line.variable for line in self.lines if line.number in self.cells)


def counted(table: Table, line: Line) -> list[Predicate]:
    """The descriptions that a line counts, once for each: its own, its answers, or all those of its leaves."""
    if line.predicate is not None:
        return [line.predicate]
    if line.answers:
        return list(line.answers)
    return [leaf.predicate for leaf in table.leaves_of(line) if leaf.predicate is not None]


def counts_everyone(table: Table) -> bool:
    """Is every record in one of the table's cells, and in one only?"""
    return table.universe == EVERYONE and not table.tally


def attributes_counted(table: Table) -> frozenset[str]:
    """The attributes that a table looks at: those of its lines, and of its universe, also where that can be nobody."""
    lines = (name for line in table.lines for some in counted(table, line) for name in some.by_attribute)
    return frozenset(lines).union(table.universe.by_attribute)


def build_table(
    schema: Schema,
    *,
    name: str,
    level: str,
    title: str,
    by: Sequence[Recode],
    variable: Callable[[int], str],
    universe: Predicate = EVERYONE,
    undivided: Iterable[str] = (),
    also: Iterable[int] = (),
    of_which: Mapping[str, OfWhich] | None = None,
    doubt: str = "",
    most: int = LINES,
) -> Table:
    """Lay out a table as statistical offices print it, depth first: a total, then each group followed by its parts.

    A group named in `undivided` is not crossed with the recodes that follow. `also` names subtotals that count
    among the cells. `of_which` has, by the label of a group that is not divided, the line printed below it.
    `variable` names the line of a number. A table of more than `most` lines is refused.
    """
    whole, below = frozenset(undivided), of_which or {}
    labels = {group.label for recode in by for group in recode.leaves}
    if not labels.issuperset(whole.union(below)):
        raise unknown(f"group of table {name}", min(whole.union(below) - labels), labels)
    lines: list[Line] = []

    def add(label: str, predicate: Predicate, groups: Sequence[Group], depth: int) -> int:
        number = len(lines) + 1
        _refuse_lines(name, number, most)
        lines.append(Line(number, variable(number), label, predicate))
        if groups and not by[depth].tally:
            _refuse_gap(schema, name, by[depth], predicate, groups)
        parts = []
        for group in groups:
            inside = predicate & schema.where({by[depth].attribute: group.levels})
            if group.parts:
                parts.append(add(group.label, inside, group.parts, depth))
            elif group.label in whole or depth + 1 == len(by):
                parts.append(add(group.label, inside, (), depth))
            else:
                parts.append(add(group.label, inside, by[depth + 1].groups, depth + 1))
        if parts:
            answers = any(recode.tally for recode in by[depth:])
            lines[number - 1] = Line(number, variable(number), label, None if answers else predicate, tuple(parts))
        elif label in below:
            some, after = below[label], number + 1
            lines.append(Line(after, variable(after), some.label, predicate & some.predicate, within=number))
        return number

    add("total", universe, by[0].groups if by else (), 0)
    divided = set(below).difference(line.label for line in lines if not line.parts)
    if divided:
        raise InputError(
            f"table {name}: group '{min(divided)}' is divided; an 'of which' line stands below one that is not"
        )
    cells = frozenset(line.number for line in lines if not line.parts) | frozenset(also)
    if max(cells) > len(lines) or min(cells) < 1:
        raise InputError(f"table {name} has lines 1 to {len(lines)}; 'also' names line {max(cells)}")
    tally = any(recode.tally for recode in by)
    return Table(name, level, title, universe, tuple(recode.name for recode in by), tally, tuple(lines), cells, doubt)


def build_sums(
    schema: Schema,
    *,
    name: str,
    level: str,
    title: str,
    sums: str,
    variable: Callable[[int], str],
    universe: Predicate = EVERYONE,
    parts: Mapping[str, str] | None = None,
    bottom_up: str = "",
    doubt: str = "",
    most: int = LINES,
) -> Table:
    """A table that adds up a number of the records, and then its parts by label: all members, children, adults."""
    attribute, divided = schema.counting(sums), tuple((parts or {}).items())
    for _, some in divided:
        if some not in attribute.numbers:
            raise unknown(f"number of {attribute.name}", some, attribute.numbers)
    adds_up = np.sum([attribute.numbers[some] for _, some in divided], axis=0) == attribute.numbers[sums]
    if divided and not np.all(adds_up):
        raise InputError(f"table {name}: {' and '.join(some for _, some in divided)} do not add up to {sums}")
    _refuse_lines(name, 1 + len(divided), most)
    lines = [
        Line(number, variable(number), label, None, answers=answers(schema, universe, some))
        for number, (label, some) in enumerate([("total", sums), *divided], 1)
    ]
    lines[0] = replace(lines[0], parts=tuple(line.number for line in lines[1:]))
    cells = frozenset(line.number for line in lines if not line.parts)
    return Table(name, level, title, universe, (), True, tuple(lines), cells, doubt, sums, bottom_up)


def _refuse_lines(table: str, number: int, most: int) -> None:
    if number > most:
        raise InputError(f"table {table}: the tables of the scenario have more than {LINES:,} lines; expected fewer")


def answers(schema: Schema, universe: Predicate, number: str) -> tuple[Predicate, ...]:
    """A description for each k from 1 up: the records whose number is at least k."""
    attribute = schema.counting(number)
    most = max(attribute.numbers[number])
    at_least = (attribute.having(number, range(k, most + 1)) for k in range(1, most + 1))
    found = (universe & schema.where({attribute.name: levels}) for levels in at_least)
    return tuple(predicate for predicate in found if not predicate.empty)


def _refuse_gap(schema: Schema, table: str, recode: Recode, inside: Predicate, groups: Sequence[Group]) -> None:
    """A total is the sum of its parts: every level that it counts must be in one of the groups that divide it.

    A level that no possible record of the total has ("not in universe" among the occupied) needs no group.
    """
    attribute = schema.attribute(recode.attribute)
    allowed = inside.by_attribute.get(attribute.name, frozenset(range(len(attribute))))
    missed = allowed.difference(*(group.levels for group in groups))
    missed &= schema.levels_within(inside)[attribute.name] if missed else frozenset()
    if missed:
        raise InputError(
            f"table {table}: {attribute.name} {attribute.levels[min(missed)]} is in no group of recode "
            f"'{recode.name}'; add it to a group, or leave it out of the table's universe"
        )


@dataclass(frozen=True)
class Counts:
    """What was published at one level: a row for each place, a column for each variable."""

    level: str
    places: tuple[str, ...]
    variables: tuple[str, ...]
    lower: Count
    upper: Count

    def __post_init__(self) -> None:
        shape = (len(self.places), len(self.variables))
        if self.lower.shape != shape or self.upper.shape != shape:
            raise GlasshouseBug(
                f"counts at level {self.level} do not have one row per place and one column per variable"
            )

    @property
    def exact(self) -> bool:
        """Is every count known, rather than an interval?"""
        return self.lower is self.upper or bool((self.lower == self.upper).all())

    @cached_property
    def column(self) -> dict[str, int]:
        return {variable: index for index, variable in enumerate(self.variables)}

    @cached_property
    def row(self) -> dict[str, int]:
        return {place: index for index, place in enumerate(self.places)}

    def value(self, place: str, variable: str) -> Interval:
        """The published number: one value, or the interval it lies in."""
        if place not in self.row:
            raise InputError(f"no {self.level} '{place}' in this release")
        if variable not in self.column:
            raise InputError(f"variable {variable} is not published at level {self.level} in this release")
        at = self.row[place], self.column[variable]
        return Interval(int(self.lower[at]), int(self.upper[at]))


@dataclass(frozen=True)
class Release:
    """Published counts for many places: the tables that were published, and their numbers by level."""

    schema: Schema
    tables: tuple[Table, ...]
    levels: Mapping[str, Counts] = field(default_factory=dict)

    def published(self, level: str) -> tuple[Table, ...]:
        """The tables with numbers at a level."""
        if level not in self.levels:
            return ()
        column = self.levels[level].column
        return tuple(table for table in self.tables if all(line.variable in column for line in table.leaves))

    def count(self, predicate: Predicate, place: str) -> Interval:
        """What single tables say about how many records of a place satisfy the predicate.

        A table's cells inside the predicate are a floor; its cells that together cover the predicate are a ceiling.
        What several tables imply together is the business of the core, which never gives a wider answer.
        """
        level = self._level_of(place)
        lower, upper = 0, UNLIMITED
        for table in self.published(level):
            cells = [
                (line.predicate, self.levels[level].value(place, line.variable))
                for line in table.leaves
                if line.predicate is not None and line.predicate.meets(predicate)
            ]
            floors = [value.lower for inside, value in cells if inside <= predicate]
            lower = max(lower, max(floors, default=0) if table.tally else sum(floors))  # tallies overlap: the best one
            ceilings = [value.upper for around, value in cells if predicate <= around]
            if self.schema.covered(predicate, (around for around, _ in cells)):
                ceilings.append(sum(value.upper for _, value in cells))
            for line in table.of_which:  # says nothing of the rest of its line: a floor or a ceiling of its own
                if line.predicate is not None and line.variable in self.levels[level].column:
                    value = self.levels[level].value(place, line.variable)
                    lower = max(lower, value.lower if line.predicate <= predicate else 0)
                    ceilings += [value.upper] if predicate <= line.predicate else []
            upper = min(upper, *ceilings, UNLIMITED)
        return Interval(lower, upper)

    def _level_of(self, place: str) -> str:
        for level, counts in self.levels.items():
            if place in counts.row:
                return level
        raise InputError(f"no place '{place}' in this release")
