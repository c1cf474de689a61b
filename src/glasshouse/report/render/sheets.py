"""How is a report opened in a spreadsheet? `tables.xlsx`, a sheet for each table; and every number a line of CSV.

Numbers are numbers, with the format they are printed in. The same report gives the same bytes.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from io import StringIO
from math import ceil, isfinite
from typing import Any

from glasshouse.errors import GlasshouseBug
from glasshouse.report.description import (
    Cell,
    Column,
    Count,
    Definition,
    Hidden,
    Measure,
    Report,
    Sentence,
    Share,
    Table,
    interval,
    text,
    words,
)
from glasshouse.report.numbering import numbered
from glasshouse.report.render.workbook import workbook

HEAD = ("line", "table", "row", "column", "value", "low", "high", "part", "whole", "term", "worse", "source")
_FORMATS = {"count": "#,##0", "share": "0.0%", "points": "+0.0%;-0.0%;0.0%"}
_GREY, _LINE, _FILL = "#636363", "#B0B0B0", "#EEF1F4"
_WIDEST, _LONGEST = 44, 31  # characters of a column, of a sheet's name
_TAKEN = ("read me", "definitions", "history")  # the last is Excel's own
_VERSIONS = {
    "internal": "Internal version: numbers are exact. It can hold confidential figures.",
    "public": "Public version: numbers about few persons are hidden, the others rounded.",
}


# numbers.csv


def numbers(report: Report) -> str:
    """Every number of the report as CSV, the line it stands on first."""
    stream = StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(HEAD)
    meanings = _definitions(report)
    for count, one in enumerate(numbered(report), start=2):
        texts = [one.table, one.row, one.column, one.term, _worse(meanings, one.term), one.source]
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
            return _plain(cell.value), _plain(cell.low), _plain(cell.high), str(cell.part), str(cell.whole)
        case Measure():
            return _plain(cell.value), _plain(cell.low), _plain(cell.high), "", ""


def _plain(value: float | None) -> str:
    return "" if value is None else repr(float(value))


def _inert(value: str) -> str:
    """A text that no spreadsheet runs as a formula, on one line."""
    if "\n" in value or "\r" in value:
        raise GlasshouseBug("a text of the report has more than one line; please report this")
    return f"'{value}" if value.startswith(("=", "+", "-", "@", "\t")) else value


def _definitions(report: Report) -> dict[str, Definition]:
    return {one.term: one for one in report.definitions}


def _worse(meanings: Mapping[str, Definition], term: str) -> str:
    return _defined(meanings, term).worse if term else ""


def _defined(meanings: Mapping[str, Definition], term: str) -> Definition:
    if term not in meanings:
        raise GlasshouseBug(f"the report uses the term '{term}' and does not define it; please report this")
    return meanings[term]


# tables.xlsx


def sheets(report: Report) -> bytes:
    """The workbook of a report: what it is, its tables, and its definitions."""

    def fill(book: Any) -> None:
        looks = _Looks(book)
        _front(book, looks, report)
        names = sheet_names(table.name for table in report.tables())
        for name, table in zip(names, report.tables(), strict=True):
            _sheet(book.add_worksheet(name), looks, table, _definitions(report))
        _meanings(book, looks, report)

    return workbook(report.title, fill)


def sheet_names(names: Iterator[str]) -> list[str]:
    """Names that a workbook takes: at most 31 characters, none of []:*?/\\, no quote at an end, each once.

    >>> sheet_names(iter(["a/b", "A:B", "x" * 40]))
    ['a b', 'A B 2', 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx']
    """
    found: list[str] = []
    taken = set(_TAKEN)
    for name in names:
        plain = " ".join(re.sub(r"[\[\]:*?/\\\x00-\x1f]", " ", name).split()).strip("'") or "Table"
        legal, number = plain[:_LONGEST].strip(" '"), 1
        while legal.lower() in taken:
            number += 1
            ending = f" {number}"
            legal = plain[: _LONGEST - len(ending)].strip(" '") + ending
        taken.add(legal.lower())
        found.append(legal)
    return found


class _Looks:
    """The formats of a workbook, each made once."""

    def __init__(self, book: Any) -> None:
        self.book = book
        self.made: dict[tuple[tuple[str, Any], ...], Any] = {}

    def __call__(self, **look: Any) -> Any:
        key = tuple(sorted(look.items()))
        if key not in self.made:
            self.made[key] = self.book.add_format(look)
        return self.made[key]

    def of(self, cell: Cell, published: bool) -> Any:
        look: dict[str, Any] = {"italic": True, "font_color": _GREY} if published else {}
        match cell:
            case Count():
                look["num_format"] = _FORMATS["count"]
            case Share():
                look["num_format"] = _FORMATS["share"]
            case Measure():
                number = "#,##0" if abs(cell.value) >= 1000 else "0.###" if abs(cell.value) >= 0.1 else "0.00E+00"
                number = "0" if cell.value == 0 else number
                look["num_format"] = _FORMATS.get(cell.style, number)
            case _:
                look |= {"align": "left", "valign": "top", "text_wrap": True} if isinstance(cell, str) else {}
                look |= {"align": "right", "font_color": _GREY} if isinstance(cell, Hidden) else {}
        return self(**look)

    @property
    def title(self) -> Any:
        return self(bold=True, font_size=14)

    @property
    def heading(self) -> Any:
        return self(bold=True, text_wrap=True, valign="bottom", border=1, border_color=_LINE, bg_color=_FILL)

    @property
    def wrapped(self) -> Any:
        return self(text_wrap=True, valign="top")


def _put(sheet: Any, row: int, column: int, cell: Cell, looks: _Looks, published: bool = False) -> None:
    """A cell of the report as a cell of the sheet; points are percentages with a sign."""
    look = looks.of(cell, published)
    match cell:
        case None:
            sheet.write_blank(row, column, None, look)
        case str() | Hidden():
            sheet.write_string(row, column, words(cell), look)
        case Count() | Share() | Measure():
            _number(sheet, row, column, cell.value, look)


def _number(sheet: Any, row: int, column: int, value: float | None, look: Any) -> None:
    if value is None:
        sheet.write_blank(row, column, None, look)
    elif isfinite(value):
        sheet.write_number(row, column, value, look)
    else:
        sheet.write_string(row, column, str(value), look)  # a workbook has no infinity


def _put_ends(sheet: Any, row: int, column: int, cell: Cell, looks: _Looks, published: bool) -> None:
    if isinstance(cell, (Share, Measure)):
        for at, end in enumerate((cell.low, cell.high)):
            _number(sheet, row, column + at, end, looks.of(cell, published))


def _has_ends(cell: Cell) -> bool:
    return isinstance(cell, (Share, Measure)) and (cell.low is not None or cell.high is not None)


def _sheet(sheet: Any, looks: _Looks, table: Table, meanings: Mapping[str, Definition]) -> None:
    """A table: its title, the head and what its columns mean, a line for each row, then notes and source."""
    sheet.write_string(0, 0, table.title, looks.title)
    first = 4 if any(column.term for column in table.columns) else 3
    at, widths = 0, []
    for number, column in enumerate(table.columns):
        cells = [row[number] for row in table.rows]
        _head(sheet, looks, at, column, column.title, meanings)
        for row, cell in enumerate(cells, start=first):
            _put(sheet, row, at, cell, looks, column.published)
        widths.append(_width(column, cells, key=number < table.keys))
        at += 1
        if any(map(_has_ends, cells)):
            for name in ("low", "high"):
                _head(sheet, looks, len(widths), Column(name, published=column.published), name, {})
                widths.append(10)
            for row, cell in enumerate(cells, start=first):
                _put_ends(sheet, row, at, cell, looks, column.published)
            at += 2
    for number, width in enumerate(widths):
        sheet.set_column(number, number, width)
    sheet.set_row(2, 30)
    line = first + len(table.rows)
    for sentence in (*table.notes, f"Source: {table.source}"):
        line += 1
        _paragraph(sheet, looks, line, sentence, widths)
    sheet.freeze_panes(first, table.keys)
    sheet.repeat_rows(2, first - 1)
    _printed(sheet)


def _head(sheet: Any, looks: _Looks, at: int, column: Column, title: str, meanings: Mapping[str, Definition]) -> None:
    look = {"italic": True, "font_color": _GREY} if column.published else {}
    heading = {"bold": True, "text_wrap": True, "valign": "bottom", "border": 1, "border_color": _LINE}
    sheet.write_string(2, at, title, looks(bg_color=_FILL, **heading, **look))
    if column.term:
        meaning = _defined(meanings, column.term)
        below = meaning.title + (f" ({meaning.worse})" if meaning.worse else "")
        sheet.write_string(3, at, below, looks(font_size=9, text_wrap=True, valign="top", font_color=_GREY))


def _width(column: Column, cells: list[Cell], *, key: bool) -> int:
    longest = max((len(words(cell)) for cell in cells), default=0)
    return min(_WIDEST, max(longest + 2, min(len(column.title), 24) + 2, 14 if key else 11))


def _paragraph(sheet: Any, looks: _Looks, line: int, sentence: Sentence, widths: list[int]) -> None:
    """A sentence across the columns, as high as it needs."""
    said, last = text(sentence), min(len(widths), 10) - 1
    if last:
        sheet.merge_range(line, 0, line, last, "", looks.wrapped)
    sheet.write_string(line, 0, said, looks.wrapped)
    sheet.set_row(line, 15 * ceil(max(1.15 * len(said), 1) / sum(widths[: last + 1])))


def _printed(sheet: Any) -> None:
    sheet.set_landscape()
    sheet.set_paper(9)  # A4
    sheet.fit_to_pages(1, 0)


def _front(book: Any, looks: _Looks, report: Report) -> None:
    """The first sheet: what the report is, its first numbers, what was found, and how the run was made."""
    sheet = book.add_worksheet("Read me")
    widths = [34, 16, 12, 12, 44, 60]
    for at, width in enumerate(widths):
        sheet.set_column(at, at, width)
    sheet.write_string(0, 0, report.title, looks.title)
    _paragraph(sheet, looks, 1, report.about, widths)
    sheet.write_string(2, 0, _VERSIONS[report.version], looks(bold=True))
    line = 4
    for at, name in enumerate(("In short", "number", "low", "high", "beside", "what it means")):
        sheet.write_string(line, at, name, looks.heading)
    for verdict in report.verdicts:
        line += 1
        sheet.write_string(line, 0, verdict.title, looks.wrapped)
        _put(sheet, line, 1, verdict.number, looks)
        if interval(verdict.number):
            _put_ends(sheet, line, 2, verdict.number, looks, published=False)
        beside, meaning = text(verdict.beside), text(verdict.meaning)
        sheet.write_string(line, 4, beside, looks.wrapped)
        sheet.write_string(line, 5, meaning, looks.wrapped)
        sheet.set_row(line, 15 * max(ceil(len(beside) / 38), ceil(len(meaning) / 52), 1))
    line += 2
    sheet.write_string(line, 0, "Findings", looks(bold=True))
    for finding in report.findings or ("No threshold was passed.",):
        line += 1
        _paragraph(sheet, looks, line, finding, widths)
    line += 2
    sheet.write_string(line, 0, "The run", looks(bold=True))
    for key, value in report.certificate:
        line += 1
        sheet.write_string(line, 0, key, looks.wrapped)
        sheet.write_string(line, 1, value, looks(align="left"))
    _printed(sheet)


def _meanings(book: Any, looks: _Looks, report: Report) -> None:
    sheet = book.add_worksheet("Definitions")
    for at, (name, width) in enumerate((("word", 30), ("what it means", 90), ("which way is worse", 20), ("page", 28))):
        sheet.set_column(at, at, width)
        sheet.write_string(0, at, name, looks.heading)
    for line, one in enumerate(report.definitions, start=1):
        for at, value in enumerate((one.title, one.meaning, one.worse, one.page)):
            sheet.write_string(line, at, value, looks.wrapped)
        sheet.set_row(line, 15 * max(ceil(len(one.meaning) / 80), 1))
    sheet.freeze_panes(1, 1)
    _printed(sheet)
