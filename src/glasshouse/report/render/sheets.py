"""How is a report opened in a spreadsheet? `tables.xlsx`, a sheet for each table.

Numbers are numbers, with the format they are printed in. The same report gives the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from io import BytesIO
from math import ceil, isfinite
from typing import Any

import xlsxwriter

from glasshouse.report.description import (
    Cell,
    Column,
    Count,
    Definition,
    Hidden,
    Known,
    Measure,
    Printed,
    Report,
    Sentence,
    Share,
    Table,
    interval,
    text,
    value_of,
    words,
)
from glasshouse.report.render.heads import Heading, begins, depth_of, headings, panel_of
from glasshouse.report.render.numbers import defined
from glasshouse.report.theme import LIGHT
from glasshouse.report.words import certified, phrase, several, worse_of

Look = dict[str, Any]  # a format of the workbook, as xlsxwriter takes it
_CREATED = datetime(2010, 4, 1)  # any fixed day, so that the bytes stay the same

_FORMATS = {"count": "#,##0", "share": "0.0%", "points": "+0.0%;-0.0%;0.0%"}
_GREY, _LINE, _FILL = "#636363", "#B0B0B0", "#EEF1F4"
_SHADES: dict[Known, Look] = {  # of what is known of a hidden number
    name: {"bg_color": LIGHT[name], "font_color": LIGHT[f"{name}ink"]} for name in ("exact", "narrow", "wide")
}
_WIDEST, _LONGEST = 44, 31  # characters of a column, of a sheet's name
_TAKEN = ("read me", "definitions", "history")  # the last is Excel's own


def sheets(report: Report) -> bytes:
    """The workbook of a report: what it is, its tables, and its definitions."""

    stream = BytesIO()
    # text is text: never a formula, never a link
    options = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
    book = xlsxwriter.Workbook(stream, options)
    book.set_properties({"title": report.title, "created": _CREATED})
    looks, meanings = _Looks(book), {one.term: one for one in report.definitions}
    _front(book, looks, report)
    names = sheet_names(table.name for table in report.tables())
    as_printed = {one.table.name: one for part in report.sections for one in part.blocks if isinstance(one, Printed)}
    for name, table in zip(names, report.tables(), strict=True):
        _sheet(book.add_worksheet(name), looks, table, meanings, as_printed.get(table.name))
    if meanings:
        _meanings(book, looks, report)
    book.close()
    return stream.getvalue()


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
        self.made: dict[tuple[tuple[str, object], ...], Any] = {}

    def __call__(self, **look: Any) -> Any:
        key = tuple(sorted(look.items()))
        if key not in self.made:
            self.made[key] = self.book.add_format(look)
        return self.made[key]

    def of(self, cell: Cell, published: bool = False, top: bool = False, shade: Look | None = None) -> Any:
        look: Look = {"italic": True, "font_color": _GREY} if published else dict(shade or {})
        look |= {"top": 1, "top_color": _LINE} if top else {}
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


def _put(sheet: Any, row: int, column: int, cell: Cell, look: Any) -> None:
    """A cell of the report as a cell of the sheet; points are percentages with a sign."""
    match cell:
        case None:
            sheet.write_blank(row, column, None, look)
        case str() | Hidden() | Measure(end="under" | "over"):
            sheet.write_string(row, column, words(cell), look)
        case Count() | Share() | Measure():
            _number(sheet, row, column, value_of(cell), look)


def _number(sheet: Any, row: int, column: int, value: float | None, look: Any) -> None:
    if value is None:
        sheet.write_blank(row, column, None, look)
    elif isfinite(value):
        sheet.write_number(row, column, value, look)
    else:
        sheet.write_string(row, column, str(value), look)  # a workbook has no infinity


def _has_ends(cell: Cell) -> bool:
    return isinstance(cell, (Share, Measure)) and (cell.low is not None or cell.high is not None)


@dataclass(frozen=True)
class _Field:
    """A column of the sheet: one of the table, or the ends of its intervals."""

    column: Column
    cells: Sequence[Cell]
    width: int
    end: int | None = None  # 0: the lower ends, 1: the upper ones
    known: Sequence[Known] = ()  # of each row, which has the colour of it

    def put(self, sheet: Any, line: int, at: int, row: int, looks: _Looks, top: bool) -> None:
        cell = self.cells[row]
        look = looks.of(cell, self.column.published, top, _SHADES.get(self.known[row]) if self.known else None)
        if self.end is None:
            _put(sheet, line, at, cell, look)
        elif isinstance(cell, (Share, Measure)):
            _number(sheet, line, at, (cell.low, cell.high)[self.end], look)


def _fields(table: Table, as_printed: Printed | None) -> list[_Field]:
    found = []
    for number, column in list(enumerate(table.columns))[1 if table.panels else 0 :]:
        cells = [row[number] for row in table.rows]
        known = as_printed.known if as_printed is not None and number in as_printed.proved else ()
        found.append(_Field(column, cells, _width(column, cells, key=number < table.keys), known=known))
        if any(map(_has_ends, cells)):
            for end, name in enumerate(("low", "high")):
                head = Column(phrase(f"sheets.{name}"), published=column.published, above=column.above)
                found.append(_Field(head, cells, 10, end))
    return found


def _sheet(
    sheet: Any, looks: _Looks, table: Table, meanings: Mapping[str, Definition], as_printed: Printed | None = None
) -> None:
    """A table: its title, the head and what its columns mean, a line for each row, then notes and source."""
    sheet.write_string(0, 0, table.title, looks.title)
    fields = _fields(table, as_printed)
    head = headings([one.column for one in fields])
    depth = depth_of(head)
    for cell in head:
        _head(sheet, looks, cell)
    terms = any(one.column.term for one in fields)
    for at, one in enumerate(fields):
        sheet.set_column(at, at, one.width)
        if one.column.term:
            meaning = defined(meanings, one.column.term)
            below = f"{meaning.title} ({worse_of(meaning)})" if meaning.worse else meaning.title
            sheet.write_string(2 + depth, at, below, looks(font_size=9, text_wrap=True, valign="top", font_color=_GREY))
    sheet.set_row(1 + depth, 30)
    first = line = 2 + depth + terms
    for row in range(len(table.rows)):
        if panel := panel_of(table, row):
            band = looks(bold=True, bg_color=_FILL, top=1)
            sheet.merge_range(line, 0, line, len(fields) - 1, "", band)
            sheet.write_string(line, 0, panel, band)
            line += 1
        for at, one in enumerate(fields):
            one.put(sheet, line, at, row, looks, begins(table, row))
        line += 1
    source = [phrase("page.source", source=table.source)] if table.source else []
    for sentence in (*table.notes, *source):
        line += 1
        _paragraph(sheet, looks, line, sentence, [one.width for one in fields])
    sheet.freeze_panes(first, table.keys - (1 if table.panels else 0))
    sheet.repeat_rows(2, first - 1)
    _printed(sheet)


def _head(sheet: Any, looks: _Looks, cell: Heading) -> None:
    look = {"bold": True, "text_wrap": True, "valign": "bottom", "border": 1, "border_color": _LINE, "bg_color": _FILL}
    if cell.of is None:
        look |= {"align": "center"}
    elif cell.of.published:
        look |= {"italic": True, "font_color": _GREY}
    first, last = 2 + cell.row, 1 + cell.row + cell.rows
    if cell.rows * cell.columns > 1:
        sheet.merge_range(first, cell.column, last, cell.column + cell.columns - 1, "", looks(**look))
    sheet.write_string(first, cell.column, cell.text, looks(**look))


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
    sheet = book.add_worksheet(phrase("sheets.read_me"))
    widths = [34, 16, 12, 12, 44, 60]
    for at, width in enumerate(widths):
        sheet.set_column(at, at, width)
    sheet.write_string(0, 0, report.title, looks.title)
    _paragraph(sheet, looks, 1, report.about, widths)
    sheet.write_string(2, 0, phrase(f"sheets.{report.version}"), looks(bold=True))
    line = 4
    for at, name in enumerate(several("sheets.first")):
        sheet.write_string(line, at, name, looks.heading)
    for verdict in report.verdicts:
        line += 1
        sheet.write_string(line, 0, verdict.title, looks.wrapped)
        look = looks.of(verdict.number)
        _put(sheet, line, 1, verdict.number, look)
        if interval(verdict.number) and isinstance(verdict.number, (Share, Measure)):
            _number(sheet, line, 2, verdict.number.low, look)
            _number(sheet, line, 3, verdict.number.high, look)
        beside, meaning = text(verdict.beside), text(verdict.meaning)
        sheet.write_string(line, 4, beside, looks.wrapped)
        sheet.write_string(line, 5, meaning, looks.wrapped)
        sheet.set_row(line, 15 * max(ceil(len(beside) / 38), ceil(len(meaning) / 52), 1))
    if report.verdicts:
        line += 2
        sheet.write_string(line, 0, phrase("sheets.findings"), looks(bold=True))
        for finding in report.findings or (phrase("sheets.none_exceeded"),):
            line += 1
            _paragraph(sheet, looks, line, finding, widths)
    if report.certificate:
        line += 2
        sheet.write_string(line, 0, phrase("sheets.run"), looks(bold=True))
        for key, value in certified(report):
            line += 1
            sheet.write_string(line, 0, key, looks.wrapped)
            sheet.write_string(line, 1, value, looks(align="left"))
    _printed(sheet)


def _meanings(book: Any, looks: _Looks, report: Report) -> None:
    sheet = book.add_worksheet(phrase("page.definitions"))
    for at, (name, width) in enumerate(zip(several("sheets.meanings"), (30, 90, 20, 28), strict=True)):
        sheet.set_column(at, at, width)
        sheet.write_string(0, at, name, looks.heading)
    for line, one in enumerate(report.definitions, start=1):
        for at, value in enumerate((one.title, one.meaning, worse_of(one), one.page)):
            sheet.write_string(line, at, value, looks.wrapped)
        sheet.set_row(line, 15 * max(ceil(len(one.meaning) / 80), 1))
    sheet.freeze_panes(1, 1)
    _printed(sheet)
