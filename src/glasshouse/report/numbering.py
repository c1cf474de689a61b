"""Which line of `numbers.csv` does a number of the report stand on?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from glasshouse.report.description import Cell, Report, words


@dataclass(frozen=True)
class Numbered:
    """A number of the report and where it stands: its line in `numbers.csv`."""

    line: int
    table: str
    row: str
    column: str
    cell: Cell
    term: str
    source: str


def numbered(report: Report) -> Iterator[Numbered]:
    """Every number of the report, first those of the first screen, then table by table; line 1 is the head."""
    line = 1
    for verdict in report.verdicts:
        line += 1
        yield Numbered(line, "verdict", verdict.title, "", verdict.number, verdict.term, verdict.source)
    for table in report.tables():
        for row in table.rows:
            name = ", ".join(words(cell) for cell in row[: table.keys])
            for column, cell in list(zip(table.columns, row, strict=True))[table.keys :]:
                line += 1
                yield Numbered(line, table.name, name, column.title, cell, column.term, table.source)
