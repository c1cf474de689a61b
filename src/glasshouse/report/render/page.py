"""How is a report shown? As one page that loads nothing: its pictures are drawn, its numbers say where they are from.

The page works from a disk, without a network and, but for what the reader moves, without its script. The same report
gives the same bytes.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from json import dumps

from glasshouse.report.description import (
    Block,
    Cell,
    Chart,
    Curves,
    Explorer,
    Hidden,
    Map,
    Measure,
    Noise,
    Printed,
    Report,
    Share,
    Table,
    Tiles,
    interval,
    text,
    value_of,
    words,
)
from glasshouse.report.numbering import numbered
from glasshouse.report.render.drawing import legend, pictures
from glasshouse.report.render.heads import Heading, begins, depth_of, headings, panel_of
from glasshouse.report.render.printed import MARKS, Sheet, laid_out
from glasshouse.report.render.rows import style_of
from glasshouse.report.render.svg import Key
from glasshouse.report.render.templates import asset, render
from glasshouse.report.theme import style
from glasshouse.report.words import all_of, certified, phrase, several


def page(report: Report) -> str:
    """The report as HTML."""
    script = asset("page.js")
    lines = _lines(report)
    return render(
        "page.html.j2",
        report=report,
        certificate=certified(report),
        names={section.name for section in report.sections},
        verdicts=[(one, _shown(one.number, k + 2)) for k, one in enumerate(report.verdicts)],
        sections=_sections(report),
        heads=_heads,
        rows=lambda table: _rows(table, lines[table.name], report.listed),
        texts=_script_data(all_of("script")),
        terms={one.term for one in report.definitions},
        marks=MARKS,
        say=phrase,
        text=text,
        words=words,
        heads_of_numbers=several("proofs.heads"),
        css=f"{style()}\n{asset('page.css')}",
        script=script,
        digest=b64encode(sha256(script.encode()).digest()).decode(),
    )


@dataclass(frozen=True)
class _View:
    """A block and what is drawn of it. `first`: its numbers have not been shown yet, further up."""

    kind: str
    block: Block
    table: Table | None
    first: bool
    wide: tuple[tuple[str, str], ...] = ()
    narrow: tuple[tuple[str, str], ...] = ()
    keys: tuple[Key, ...] = ()
    data: str = ""
    sheet: Sheet | None = None


def _sections(report: Report) -> Iterator[tuple[object, list[_View]]]:
    seen: set[str] = set()
    worse = {one.term: one.worse for one in report.definitions}
    for section in report.sections:
        views = []
        for block in section.blocks:
            table = block if isinstance(block, Table) else getattr(block, "table", None)
            first = table is not None and table.name not in seen
            seen |= {table.name} if table is not None else set()
            views.append(_drawn(_View(type(block).__name__, block, table, first), worse))
        yield section, views


def _drawn(view: _View, worse: Mapping[str, str]) -> _View:
    block = view.block
    match block:
        case Chart() | Curves() | Tiles():
            keys = legend(block)
            wide, narrow = (tuple(pictures(block, narrow=narrow)) for narrow in (False, True))
            return replace(view, wide=wide, narrow=narrow, keys=tuple(keys) if len(keys) > 1 else ())
        case Map():  # scales well, as it has no text in it
            return replace(view, wide=tuple(pictures(block, narrow=False)), keys=tuple(legend(block)))
        case Explorer():
            return replace(view, data=_script_data(_settings(block, worse)))
        case Noise():
            levels = [{"name": name, "rho": rho} for name, rho in block.levels]
            return replace(view, data=_script_data({"levels": levels, "scale": block.scale}))
        case Printed():
            return replace(view, sheet=laid_out(block))
    return view


# What the script reads


def _settings(block: Explorer, worse: Mapping[str, str]) -> Mapping[str, object]:
    table = block.table
    columns = []
    for number, column in enumerate(table.columns):
        axis = number in block.risks or number in block.costs
        direction = "higher" if axis else worse.get(column.term, "")
        style = style_of([row[number] for row in table.rows])
        columns.append({"title": column.title, "worse": direction, "style": style or "count"})
    rows = [
        {"name": words(row[0]), "kind": words(row[1]), "cells": [_point(cell) for cell in row]} for row in table.rows
    ]
    guesses = {str(risk): guess for risk, guess in sorted(block.guesses.items())}
    return {"columns": columns, "rows": rows, "guesses": guesses, "first": max(table.keys, 2)}


def _point(cell: Cell) -> Mapping[str, object]:
    found: dict[str, object] = {"value": value_of(cell), "text": words(cell)}
    if interval(cell) and isinstance(cell, (Share, Measure)):
        found |= {"low": cell.low, "high": cell.high, "reach": interval(cell)}
    return found


def _script_data(data: object) -> str:
    """Data to stand in a script element, which nothing in it can end."""
    return dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


# Tables


@dataclass(frozen=True)
class _Cell:
    text: str
    reach: str
    line: int | None  # in numbers.csv, if it is a number
    hidden: bool = False
    key: bool = False
    look: str = ""
    link: str = ""  # the panel that it leads to


def _lines(report: Report) -> dict[str, list[int]]:
    """The lines of each table's numbers in `numbers.csv`, row by row."""
    found: dict[str, list[int]] = {table.name: [] for table in report.tables()}
    for one in list(numbered(report))[len(report.verdicts) :]:
        found[one.table].append(one.line)
    return found


def _shown(cell: Cell, line: int, look: str = "") -> _Cell:
    number = value_of(cell) is not None and line > 0
    return _Cell(words(cell), interval(cell), line if number else None, isinstance(cell, Hidden), look=look)


def _heads(table: Table) -> list[list[tuple[Heading, str]]]:
    """The head, line by line, with the look of each cell."""
    first = 1 if table.panels else 0
    head = headings(table.columns[first:])
    lines: list[list[tuple[Heading, str]]] = [[] for _ in range(depth_of(head))]
    for cell in head:
        look = _look(table, first + cell.column) if cell.of is not None else "over"
        lines[cell.row].append((cell, look + (" key" if first + cell.column < table.keys else "")))
    return lines


def _look(table: Table, number: int) -> str:
    """Numbers stand at the right, words at the left; somebody else's are grey."""
    column = [row[number] for row in table.rows]
    wordy = number < table.keys or any(isinstance(cell, str) for cell in column)
    return ("w" if wordy else "n") + (" published" if table.columns[number].published else "")


@dataclass(frozen=True)
class _Row:
    panel: str  # a line over it
    first: bool  # of those that stand together
    cells: list[_Cell]


def _rows(table: Table, lines: list[int], listed: bool) -> Iterator[_Row]:
    looks = [_look(table, number) for number in range(len(table.columns))]
    wide, first = len(table.columns) - table.keys, 1 if table.panels else 0
    for at, row in enumerate(table.rows[: table.shown]):
        keys = [_Cell(words(cell), "", None, isinstance(cell, Hidden), key=True) for cell in row[first : table.keys]]
        if keys and at < len(table.links):
            keys[0] = replace(keys[0], link=table.links[at])
        numbers = lines[at * wide : (at + 1) * wide]
        rest = zip(row[table.keys :], numbers, looks[table.keys :], strict=True)
        cells = keys + [_shown(cell, line if listed else 0, look) for cell, line, look in rest]
        yield _Row(panel_of(table, at), begins(table, at), cells)
