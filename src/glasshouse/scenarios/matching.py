"""Which line of a scenario's tables is a row of an office's file? That which counts the same records, at its level.

A file is of the table that looks at exactly the attributes that the file tells apart; its totals are lines of that
table, or of one that looks at fewer attributes. What fits two tables that count different records is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from glasshouse.errors import InputError
from glasshouse.model.release import Line, Table
from glasshouse.model.schema import Predicate
from glasshouse.scenarios.load import Scenario


class Told(NamedTuple):
    """A description that rows of a file have: whom they count, and where the first of them stands."""

    predicate: Predicate
    where: str


class Target(NamedTuple):
    """The line that a description is; no line: a total that no table has, or a row that can count nobody."""

    table: str = ""
    variable: str = ""


NOBODY = Target("", "nobody")  # the row counts nobody within the table, by what the table is of


@dataclass(frozen=True)
class Matching:
    """The descriptions of one file, and the tables of the scenario they may belong to."""

    scenario: Scenario
    file: str
    told: Sequence[Told]
    named: str = ""  # the table that the file says it is

    @cached_property
    def attributes(self) -> frozenset[str]:
        """What the file tells apart."""
        return frozenset(name for one in self.told for name in one.predicate.by_attribute)

    def targets(self, level: str) -> list[Target]:
        """The line of each description at a level."""
        tables = self._tables(level)
        whole = [one for one in self.told if self.attributes == set(one.predicate.by_attribute)]
        fitting = [table for table in tables if self._fits(table, whole)]
        if len({tuple(one.predicate & table.universe for one in self.told) for table in fitting}) > 1:
            self._ambiguous(fitting)
        fitting.sort(key=self._lines_of, reverse=True)  # of those that mean the same, the one with the most lines
        return [self._target(one, fitting[:1] or tables, level) for one in self.told]

    def _fits(self, table: Table, whole: Sequence[Told]) -> bool:
        """Has the table a line for every row that is no total? Rows that count nobody in it do not tell."""
        lines = [self._line(table, one.predicate) for one in whole]
        return all(lines) and any(isinstance(line, Line) for line in lines)

    def _lines_of(self, table: Table) -> int:
        return sum(isinstance(self._line(table, one.predicate), Line) for one in self.told)

    def _tables(self, level: str) -> list[Table]:
        """The tables that look at what the file tells apart; those of this level, if there are any."""
        every = [table for table in (*self.scenario.tables, *self.scenario.aside) if not table.sums]
        if self.named:
            return [table for table in every if table.name == self.named]
        found = [table for table in every if self._looks_at(table, self.attributes)]
        if not found:
            looked = ", ".join(sorted(self.attributes)) or "no attribute (totals alone)"
            known = "; ".join(f"{t.name}: {', '.join(sorted(self._by(t))) or 'totals'}" for t in every[:12])
            raise InputError(f"{self.file}: tells {looked} apart, and no table of the scenario does; known: {known}")
        return [table for table in found if table.level == level] or found

    def _by(self, table: Table) -> set[str]:
        return {self.scenario.recodes[name].attribute for name in table.by}

    def _looks_at(self, table: Table, attributes: frozenset[str]) -> bool:
        by = self._by(table)
        return by <= attributes <= by.union(table.universe.by_attribute)

    def _target(self, one: Told, tables: Sequence[Table], level: str) -> Target:
        lines = [(table, found) for table in tables if (found := self._line(table, one.predicate))]
        if not lines and set(one.predicate.by_attribute) != self.attributes:  # a total: perhaps of a smaller table
            smaller = [
                table
                for table in (*self.scenario.tables, *self.scenario.aside)
                if table.level == level and not table.sums
                if self._looks_at(table, frozenset(one.predicate.by_attribute))
            ]
            lines = [(table, found) for table in smaller if (found := self._line(table, one.predicate))]
            if not lines:
                return Target()
        if not lines:
            said = self.scenario.schema.describe(one.predicate)
            names = ", ".join(table.name for table in tables[:12])
            raise InputError(f"{one.where}: no line of table {names} counts {said}; expected the groups of its recodes")
        different = {line.predicate for _, line in lines if isinstance(line, Line)}
        if len(different) > 1:
            self._ambiguous([table for table, _ in lines])
        table, line = lines[0]
        return NOBODY if not isinstance(line, Line) else Target(table.name, line.variable)

    def _line(self, table: Table, predicate: Predicate) -> Line | bool:
        """The line of a table that counts these records; True where none of the table's can be of them."""
        inside = predicate & table.universe
        return True if inside.empty else _by_predicate(table).get(inside, False)

    def _ambiguous(self, tables: Sequence[Table]) -> None:
        names = " and ".join(table.name for table in tables[:6])
        raise InputError(
            f"{self.file}: its rows fit the tables {names}, which count different records; name the file after its "
            f"table ({tables[0].name}.csv), or give it a column 'table'"
        )


def _by_predicate(table: Table) -> dict[Predicate, Line]:
    """The lines of a table by whom they count; of a total and its only part, the part."""
    return {line.predicate: line for line in table.lines if line.predicate is not None}
