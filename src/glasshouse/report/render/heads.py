"""How are the headings of a table laid out? Neighbours under one heading share a cell, in every rendering."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

from glasshouse.report.description import Column, Table, words


@dataclass(frozen=True)
class Heading:
    """A cell of the head: its text, where it begins, how far it reaches, and the column it is of, if only of one."""

    text: str
    row: int
    column: int
    rows: int
    columns: int
    of: Column | None


def headings(columns: Sequence[Column]) -> list[Heading]:
    """The head of a table, line by line; a cell reaches up over blank ones."""
    depth = max((len(column.above) for column in columns), default=0)
    paths = [(*("",) * (depth - len(column.above)), *column.above, column.title) for column in columns]
    top = next((level for level in range(depth) if any(path[level] for path in paths)), depth)
    found = []
    for level in range(top, depth + 1):
        at = 0
        # the last line has a cell for each column, though two have one name
        keys = [(number if level == depth else 0, path[: level + 1]) for number, path in enumerate(paths)]
        for (_, path), group in groupby(zip(keys, columns, strict=True), key=itemgetter(0)):
            under = [column for _, column in group]
            if path[level] or level == depth:
                above = max((upper for upper in range(top, level) if path[upper]), default=top - 1)
                of = under[0] if level == depth else None
                found.append(Heading(path[level], above + 1 - top, at, level - above, len(under), of))
            at += len(under)
    return sorted(found, key=lambda cell: (cell.row, cell.column))  # those that reach up from below belong to their row


def depth_of(head: Sequence[Heading]) -> int:
    """How many lines a head has."""
    return max((cell.row + cell.rows for cell in head), default=0)


def panel_of(table: Table, row: int) -> str:
    """The line that stands over a row, where one begins."""
    if not table.panels or (row and table.rows[row][0] == table.rows[row - 1][0]):
        return ""
    return words(table.rows[row][0])


def begins(table: Table, row: int) -> bool:
    """Is a row the first of those that stand together?"""
    if table.band is None or row == 0:
        return table.band is not None
    return table.rows[row][table.band] != table.rows[row - 1][table.band]
