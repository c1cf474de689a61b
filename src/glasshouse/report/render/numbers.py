"""How does a program read the numbers of a report? `numbers.csv`: each on a line, with where it stands and its term."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from io import StringIO

from glasshouse.errors import GlasshouseBug
from glasshouse.report.description import Cell, Count, Definition, Hidden, Measure, Report, Share, value_of, words
from glasshouse.report.numbering import numbered
from glasshouse.report.words import worse_of

HEAD = ("line", "table", "row", "column", "value", "low", "high", "part", "whole", "term", "worse", "source")


def numbers(report: Report) -> str:
    """Every number of the report as CSV, the line it stands on first."""
    stream = StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(HEAD)
    meanings = {one.term: one for one in report.definitions}
    for count, one in enumerate(numbered(report), start=2):
        texts = [
            one.table,
            one.row,
            one.column,
            one.term,
            worse_of(defined(meanings, one.term)) if one.term else "",
            one.source,
        ]
        table, row, column, term, worse, source = map(_inert, texts)
        writer.writerow([one.line, table, row, column, *_fields(one.cell), term, worse, source])
        if one.line != count:
            raise GlasshouseBug(f"a number says line {one.line} and stands on line {count}; please report this")
    return stream.getvalue()


def _fields(cell: Cell) -> tuple[str, str, str, str, str]:
    """Value, low, high, part and whole of a cell."""
    match cell:
        case None:
            return "", "", "", "", ""
        case str() | Hidden():
            return _inert(words(cell)), "", "", "", ""
        case Count():
            return str(cell.value), "", "", "", ""
        case Share():
            return _plain(value_of(cell)), _plain(cell.low), _plain(cell.high), str(cell.part), str(cell.whole)
        case Measure():
            value = words(cell) if cell.end else _plain(cell.value)
            return value, _plain(cell.low), _plain(cell.high), "", ""


def _plain(value: float | None) -> str:
    return "" if value is None else repr(float(value))


def _inert(value: str) -> str:
    """A text that no spreadsheet runs as a formula, on one line."""
    if "\n" in value or "\r" in value:
        raise GlasshouseBug("a text of the report has more than one line; please report this")
    return f"'{value}" if value.startswith(("=", "+", "-", "@", "\t")) else value


def defined(meanings: Mapping[str, Definition], term: str) -> Definition:
    """What a term means; one that the report does not define is a bug of ours."""
    if term not in meanings:
        raise GlasshouseBug(f"the report uses the term '{term}' and does not define it; please report this")
    return meanings[term]
