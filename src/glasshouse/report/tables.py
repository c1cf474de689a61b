"""How are the paper's tables shown? As Parquet for programs, as a workbook, and as a page that needs nothing else.

The internal files hold exact counts and are for the owner alone. The public ones are of the rounded tables; their page
is the only file that others may read. The same tables give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import ceil
from pathlib import Path
from typing import Any

import polars as pl

from glasshouse.assess.paper_tables import Column, PaperTable, rounded
from glasshouse.files.output import private_file, row_writer
from glasshouse.report.render.templates import render
from glasshouse.report.render.workbook import workbook

TITLE = "Our figures beside the published ones"
VERSION = {
    False: "Internal version: counts are exact. It can hold confidential figures.",
    True: "Public version: counts are rounded to four significant digits.",
}
_BELOW = {"rHDF_bt": ("rHDF", "b,t"), "rHDF_b": ("rHDF", "b"), "rMDF_bt": ("rMDF", "b,t")}  # subscripts of the paper
_NOTHING = "\N{EN DASH}"
_FORMATS = {"count": "#,##0", "share": "0.0%", "low": "0.0%", "high": "0.0%"}
_WIDTHS = {"key": 13, "count": 14, "share": 11, "low": 9, "high": 9, "word": 9}


@dataclass(frozen=True)
class Heading:
    """A cell of the head: its text, where it begins, how far it reaches, and whether it is over published figures."""

    text: str
    row: int
    column: int
    rows: int
    columns: int
    look: str


@dataclass(frozen=True)
class Body:
    """Rows that belong together: those of a band, the first of a panel under its name."""

    panel: str
    rows: list[dict[str, Any]]


def write_tables(tables: Sequence[PaperTable], folder: Path, *, public: bool, about: Sequence[str]) -> list[str]:
    """Write the tables into a folder and return the names of the files; the public ones are rounded first.

    `about` are sentences that stand under the page's title and below each sheet.
    """
    about = [*about, VERSION[public]]
    if public:
        tables = [rounded(table) for table in tables]
        names = ["tables-public.xlsx", "tables-public.html"]
    else:
        names = ["tables.xlsx", "tables.html"]
    with private_file(folder / names[0]) as stream:
        stream.write(_workbook(tables, about))
    with private_file(folder / names[1]) as stream:
        stream.write(_page(tables, about).encode())
    if public:  # to be published by whoever has looked at it: small counts are not hidden
        return names
    for table in tables:
        name = f"table-{_padded(table.name)}.parquet"
        with row_writer(folder / name) as writer:
            writer.write(table.frame)
        names.append(name)
    return names


def _padded(name: str) -> str:
    """A name that sorts: S06 comes before S10."""
    return f"S{int(name[1:]):02}" if name.startswith("S") else name.replace(" ", "-")


# What both renderings share


def _shown(table: PaperTable) -> list[Column]:
    """The columns to show; a panel is a line of its own, not a column."""
    return [column for column in table.columns if column.name != "panel"]


def _head(columns: Sequence[Column]) -> list[Heading]:
    """The head of a table: neighbours under one heading share a cell, and a cell reaches up over blank ones."""
    top = 0 if any(column.headings[0] for column in columns) else 1
    found = []
    for level in range(top, 3):
        at = 0
        for path, group in groupby(columns, key=lambda column: column.headings[: level + 1]):
            under = list(group)
            if path[level]:
                above = max((upper for upper in range(top, level) if path[upper]), default=top - 1)
                look = "key" if under[0].kind == "key" else "published" if under[0].published and level == 2 else ""
                found.append(Heading(path[level], above + 1 - top, at, level - above, len(under), look))
            at += len(under)
    return sorted(found, key=lambda cell: (cell.row, cell.column))  # those that reach up from below belong to their row


def _bodies(frame: pl.DataFrame) -> Iterator[Body]:
    keys = [key for key in ("panel", "band") if key in frame.columns]
    last = ""
    for _, group in groupby(frame.iter_rows(named=True), key=lambda row: [row[key] for key in keys]):
        rows = list(group)
        panel = rows[0].get("panel") or ""
        yield Body(panel if panel != last else "", rows)
        last = panel


def _key(value: object) -> tuple[str, str]:
    """What stands in a row's key, and the subscript that the paper gives it."""
    return ("All", "") if value == "all" else _BELOW.get(str(value), (str(value), ""))


# The page


def _page(tables: Sequence[PaperTable], about: Sequence[str]) -> str:
    return render("tables.html.j2", title=TITLE, about=about, pages=[_on_page(table) for table in tables])


def _on_page(table: PaperTable) -> dict[str, Any]:
    """A table as the template wants it; columns that may be joined to the one before them are."""
    cells: list[list[Column]] = []
    for column in _shown(table):
        if column.joined is None:
            cells.append([column])
        else:
            cells[-1].append(column)
    heads = []
    for first, *more in cells:
        last = first.headings[2] + "".join(f"{column.joined}{column.headings[2]}" for column in more)
        heads.append(replace(first, headings=(*first.headings[:2], last)))
    head = _head(heads)
    return {
        "name": table.name,
        "title": table.title,
        "notes": table.notes,
        "width": len(cells),
        "head": [[cell for cell in head if cell.row == row] for row in range(1 + max(cell.row for cell in head))],
        "bodies": [
            {
                "panel": body.panel,
                "rows": [[_cell(at, cell, row) for at, cell in enumerate(cells)] for row in body.rows],
            }
            for body in _bodies(table.frame)
        ],
    }


def _cell(at: int, columns: Sequence[Column], row: dict[str, Any]) -> dict[str, Any]:
    first = columns[0]
    if first.kind == "key":
        text, below = _key(row[first.name])
        return {"key": at, "text": text, "below": below}
    text = "".join((column.joined or "") + _text(column, row[column.name]) for column in columns)
    if all(row[column.name] is None for column in columns):
        text = _NOTHING
    return {
        "key": None,
        "text": text,
        "look": "published" if first.published else "word" if first.kind == "word" else "",
    }


def _text(column: Column, value: Any) -> str:
    if value is None:
        return _NOTHING
    match column.kind:
        case "count":
            return f"{value:,}"
        case "word":
            return str(value)
        case _:
            return f"{value:.1%}"


# The workbook


def _workbook(tables: Sequence[PaperTable], about: Sequence[str]) -> bytes:
    def fill(book: Any) -> None:
        for table in tables:
            _sheet(book, table, about)

    return workbook(TITLE, fill)


def _sheet(book: Any, table: PaperTable, about: Sequence[str]) -> None:
    """A sheet: the title, the head, a line for each row, and the notes; keys and head stay in sight."""
    sheet, columns = book.add_worksheet(f"Table {table.name}"), _shown(table)
    head, keys = _head(columns), sum(column.kind == "key" for column in columns)
    bold, wrapped = (
        book.add_format({"bold": True, "font_size": 12}),
        book.add_format({"text_wrap": True, "valign": "top"}),
    )
    band = book.add_format({"bold": True, "bg_color": "#F6F6F2", "top": 1})
    sheet.write_string(0, 0, f"Table {table.name}. {table.title}", bold)
    depth = max(cell.row + cell.rows for cell in head)
    for cell in head:
        look = {"bold": True, "text_wrap": True, "border": 1, "border_color": "#B0B0B0", "bg_color": "#EEF1F4"}
        look |= {"valign": "bottom", "align": "left" if cell.look == "key" else "center"}
        look |= {"italic": True, "font_color": "#636363"} if cell.look == "published" else {}
        first, last = 2 + cell.row, 1 + cell.row + cell.rows
        if cell.rows * cell.columns > 1:
            sheet.merge_range(first, cell.column, last, cell.column + cell.columns - 1, "", book.add_format(look))
        sheet.write_string(first, cell.column, cell.text, book.add_format(look))
    sheet.set_row(depth, 30)  # the headings of the numbers take two lines
    looks = {
        (column.name, first): book.add_format(_look(column, first)) for column in columns for first in (True, False)
    }
    below = book.add_format({"font_script": 2})
    line = 2 + depth
    for body in _bodies(table.frame):
        if body.panel:
            sheet.merge_range(line, 0, line, len(columns) - 1, "", band)
            sheet.write_string(line, 0, body.panel, band)
            line += 1
        for row in body.rows:
            for at, column in enumerate(columns):
                _write(sheet, line, at, column, row[column.name], looks[column.name, row is body.rows[0]], below)
            line += 1
    for at, column in enumerate(columns):
        sheet.set_column(at, at, max(_WIDTHS[column.kind], 17 if column.name == "records" else 0))
    width = min(len(columns), 10)
    for note in (*about, *table.notes):
        line += 1
        sheet.merge_range(line, 0, line, width - 1, "", wrapped)
        sheet.write_string(line, 0, note, wrapped)
        letters = sum(_WIDTHS[column.kind] for column in columns[:width])
        sheet.set_row(line, 15 * ceil(1.1 * len(note) / letters))
    sheet.freeze_panes(2 + depth, keys)
    sheet.repeat_rows(2, 1 + depth)
    sheet.set_landscape()
    sheet.set_paper(9)  # A4
    sheet.fit_to_pages(1, 0)


def _look(column: Column, first: bool) -> dict[str, Any]:
    """How a column's cells look; the first row of a body has a line above it."""
    look: dict[str, Any] = {"top": 1, "top_color": "#9AA3AB"} if first else {}
    if column.kind in _FORMATS:
        look["num_format"] = _FORMATS[column.kind]
    return look | ({"italic": True, "font_color": "#636363"} if column.published else {})


def _write(sheet: Any, line: int, at: int, column: Column, value: Any, look: Any, below: Any) -> None:
    if value is None:
        sheet.write_blank(line, at, None, look)
    elif column.kind == "key":
        text, subscript = _key(value)
        if subscript:
            sheet.write_rich_string(line, at, text, below, subscript, look)
        else:
            sheet.write_string(line, at, text, look)
    elif column.kind == "word":
        sheet.write_string(line, at, value, look)
    else:
        sheet.write_number(line, at, value, look)
