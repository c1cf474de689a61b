"""Where is the table in a sheet? Tidy (a column of numbers, by name), or crossed (names of categories over columns).

Titles above and notes below are skipped where they cannot be taken for rows: single cells, or set apart by an empty
row. Labels that are written once for several rows, merged or left blank below the first, are filled in, but never in
the innermost column or the lowest row of names. Everything else that could mean two things is refused, with the row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from glasshouse.errors import InputError
from glasshouse.files.crossed import LINE, STATUS, VALUE, Category, Crossed, Dimension
from glasshouse.files.formats.crossing import PIECE_ROWS, checked, shown
from glasshouse.files.formats.workbook import Cell, Sheet, sheets
from glasshouse.limits import NAME_LENGTH

VALUES = ("value", "count", "obs_value")  # what a tidy sheet calls its column of numbers, in any case
STATUSES = ("status", "obs_status", "obs_flag")
Texts = dict[int, dict[int, Cell]]


def read(path: Path) -> tuple[Crossed, ...]:
    """The table of every visible sheet that has numbers."""
    found = [_table(sheet) for sheet in sheets(path) if _numbers(sheet) > 1]
    if not found:
        raise InputError(
            f"{path.name}: no sheet with a table of numbers; expected one; numbers kept as text are no numbers"
        )
    return tuple(found)


def _numbers(sheet: Sheet) -> int:
    return sum(_numbers_in(sheet, row) for row in sheet.cells)


def _numbers_in(sheet: Sheet, row: int) -> int:
    return sum(cell.number for cell in sheet.cells[row].values())


@dataclass(frozen=True)
class _Area:
    """The part of a sheet that is its table: rows of names, rows of numbers, and columns; and what stood above."""

    sheet: Sheet
    cells: Texts  # merged ranges filled
    header: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    title: str

    def text(self, row: int, column: int) -> str:
        cell = self.cells.get(row, {}).get(column)
        return cell.text if cell else ""

    def error(self, row: int, found: str, expected: str) -> InputError:
        return InputError(f"{self.sheet.where}, row {row}: {found}; expected {expected}, or save the table as CSV")


def _table(sheet: Sheet) -> Crossed:
    area = _area(sheet)
    names = [area.text(area.header[-1], column).casefold() for column in area.columns]
    if sum(name in VALUES for name in names) == 1 and len(area.header) == 1:
        return _tidy(area, names)
    return _crossed(area)


def _area(sheet: Sheet) -> _Area:
    """Find the table. Rows with numbers are its body; what touches the first of them from above are names."""
    wide = {row: cells for row, cells in sheet.cells.items() if len(cells) > 1}
    numeric = sorted(row for row, cells in wide.items() if any(cell.number for cell in cells.values()))
    if not numeric:
        raise InputError(f"{sheet.where}: no row with a label and a number; expected a table, or save it as CSV")
    top = numeric[0]
    while top - 1 in sheet.cells:  # up to an empty row
        top -= 1
    first, last = numeric[0], numeric[-1]
    while last + 1 in wide and len(wide[last + 1]) >= len(wide[last]):  # a row of marks alone
        last += 1
    cells = _filled(sheet, top, last)
    header = _header(sheet, top, first)
    if not header:  # years over columns are numbers too
        if not _years([cell.text for cell in sheet.cells[first].values() if cell.number]):
            raise InputError(
                f"{sheet.where}, row {first}: no names over the numbers; expected a row of names above, as text, or "
                "save the table as CSV"
            )
        header, first = [first], first + 1
    rows = [row for row in range(first, last + 1) if row in sheet.cells]
    area = _Area(sheet, cells, tuple(header), tuple(rows), (), _title(sheet, header[0]))
    if not rows:
        raise area.error(header[-1], "names and no numbers below", "rows of numbers")
    for row in rows:
        if len(sheet.cells[row]) == 1 and len(cells[row]) == 1:
            raise area.error(
                row, "a single cell between rows of numbers (a heading? a note?)", "a label and numbers in each row"
            )
    full = max(_numbers_in(sheet, row) for row in rows)
    for row in rows[1:]:
        if row - 1 not in sheet.cells and _numbers_in(sheet, row) < full:
            raise area.error(
                row, "after an empty row, not all numbers (another table? a note?)", "one table in the sheet"
            )
    if last + 1 in wide:
        raise area.error(last + 1, "words right below the numbers", "an empty row before notes")
    columns = sorted({column for row in (*header, *rows) for column in cells.get(row, {})})
    if columns != list(range(columns[0], columns[-1] + 1)):
        gap = next(column for column in range(columns[0], columns[-1]) if column not in columns)
        raise area.error(header[-1], f"an empty column ({_letters(gap)}) inside the table", "one table without gaps")
    return _Area(sheet, cells, tuple(header), tuple(rows), tuple(columns), area.title)


def _header(sheet: Sheet, top: int, first: int) -> list[int]:
    """The rows of names: those between the title and the numbers. A single cell in the first column is a title."""
    left = min(min(cells) for row, cells in sheet.cells.items() if row >= first)
    header: list[int] = []
    for row in range(top, first):
        cells = sheet.cells[row]
        if len(cells) == 1 and min(cells) <= left and not header:
            continue
        header.append(row)
    return header


def _title(sheet: Sheet, before: int) -> str:
    lines = [
        " ".join(cell.text for _, cell in sorted(cells.items()))
        for row, cells in sorted(sheet.cells.items())
        if row < before
    ]
    return (lines[0] if lines else sheet.name)[:NAME_LENGTH]


def _filled(sheet: Sheet, top: int, last: int) -> Texts:
    """The cells from a row to another, merged ranges with the text of their first cell throughout."""
    found: Texts = {row: dict(cells) for row, cells in sheet.cells.items() if top <= row <= last}
    right = max(max(cells) for cells in found.values())
    for row, column, to_row, to_column in sheet.merged:
        cell = sheet.cells.get(row, {}).get(column)
        if cell is not None and row >= top:
            for at in range(row, min(to_row, last) + 1):
                for beside in range(column, min(to_column, right) + 1):
                    found.setdefault(at, {}).setdefault(beside, cell)
    return found


def _tidy(area: _Area, names: Sequence[str]) -> Crossed:
    """One row a number: the column that is called value, count or OBS_VALUE has it; the others say what it counts."""
    head = area.header[-1]
    given = [area.text(head, column) for column in area.columns]
    if not all(given):
        raise area.error(
            head, f"no name over column {_letters(area.columns[given.index('')])}", "a name for each column"
        )
    value = area.columns[next(at for at, name in enumerate(names) if name in VALUES)]
    marked = [column for column, name in zip(area.columns, names, strict=True) if name in STATUSES]
    status = marked[0] if len(marked) == 1 else None
    labels = [column for column in area.columns if column not in (value, status)]
    for row in area.rows:
        for column in labels:
            if not area.text(row, column):
                raise area.error(row, f"nothing in column {_letters(column)}", "a label for each number")
    rows = [
        (*(area.text(row, column) for column in labels), area.text(row, value) or None,
         area.text(row, status) or None if status else None, row)
        for row in area.rows
    ]  # fmt: skip
    return _made(area, [area.text(head, column) for column in labels], rows)


def _crossed(area: _Area) -> Crossed:
    """Labels on the left, names of categories above, a number where they cross."""
    inner = [column for column in area.columns if any(_number(area, row, column) for row in area.rows)]
    if not inner or inner[0] == area.columns[0]:
        raise area.error(
            area.rows[0], f"numbers in the first column ({_letters(area.columns[0])})",
            f"labels there, as text (in a tidy table, a column called {', '.join(VALUES)})",
        )  # fmt: skip
    labels = [column for column in area.columns if column < inner[0]]
    numbers = [column for column in area.columns if column >= inner[0]]
    _refuse_years(area, numbers)
    above = _names_above(area, numbers)
    names = _names_left(area, labels)
    left = _labels(area, labels)
    ways = ["column"] if len(area.header) == 1 else [f"column {number + 1}" for number in range(len(area.header))]
    rows = [
        (*left[row], *above[column], area.text(row, column) or None, None, row)
        for row in area.rows
        for column in numbers
    ]
    return _made(area, [*names, *ways], rows)


def _number(area: _Area, row: int, column: int) -> bool:
    cell = area.cells.get(row, {}).get(column)
    return cell is not None and cell.number


def _refuse_years(area: _Area, numbers: Sequence[int]) -> None:
    """A first row of different years below names could be names or numbers."""
    if _years([area.text(area.rows[0], column) for column in numbers]):
        raise area.error(
            area.rows[0], "what looks like years below names", "names as text (an apostrophe before each year)"
        )


def _years(texts: Sequence[str]) -> bool:
    years = [text for text in texts if len(text) == 4 and text.isdigit() and "1800" <= text <= "2199"]
    return len(years) == len(texts) > 1 and len(set(years)) == len(years) and years == sorted(years)


def _names_above(area: _Area, numbers: Sequence[int]) -> dict[int, tuple[str, ...]]:
    lines: list[list[str]] = []
    for row in area.header:
        line, before = [], ""
        for column in numbers:
            text = area.text(row, column)
            if not text and (row == area.header[-1] or not before):
                raise area.error(row, f"no name over column {_letters(column)}", "a name over each column of numbers")
            before = text or before
            line.append(before)
        lines.append(line)
    found = list(zip(*lines, strict=True))
    for at, names in enumerate(found):
        if names in found[:at]:
            raise area.error(area.header[-1], f"'{shown(names[-1])}' stands over two columns", "different names")
    return dict(zip(numbers, found, strict=True))


def _names_left(area: _Area, labels: Sequence[int]) -> list[str]:
    found = [area.text(area.header[-1], column) for column in labels]
    return [name or ("row" if len(labels) == 1 else f"row {at + 1}") for at, name in enumerate(found)]


def _labels(area: _Area, labels: Sequence[int]) -> dict[int, tuple[str, ...]]:
    """The labels of each row: what is blank is what stood above, but not in the last column of labels."""
    found: dict[int, tuple[str, ...]] = {}
    before = [""] * len(labels)
    seen: set[tuple[str, ...]] = set()
    for row in area.rows:
        fresh = False
        for at, column in enumerate(labels):
            text = area.text(row, column)
            if text:
                fresh = fresh or text != before[at]
                before[at] = text
            elif at == len(labels) - 1 or not before[at] or fresh:
                raise area.error(row, f"no label in column {_letters(column)}", "a label, or that of the row above")
        found[row] = tuple(before)
        if found[row] in seen:
            raise area.error(row, f"the labels of '{shown(before[-1])}' stand twice", "each row once")
        seen.add(found[row])
    return found


def _made(area: _Area, names: Sequence[str], rows: list[tuple[str | int | None, ...]]) -> Crossed:
    categories = [
        tuple(Category(str(code)) for code in dict.fromkeys(row[at] for row in rows)) for at in range(len(names))
    ]
    dimensions = checked(
        area.sheet.where, [Dimension(name, "", some) for name, some in zip(names, categories, strict=True)]
    )
    schema = {**dict.fromkeys([*names, VALUE, STATUS], pl.String), LINE: pl.Int64}
    return Crossed(area.sheet.path, area.title, dimensions, _pieces(rows, schema), counted_in="row")


def _pieces(
    rows: list[tuple[str | int | None, ...]], schema: dict[str, type[pl.DataType]]
) -> Callable[[], Iterator[pl.DataFrame]]:
    def pieces() -> Iterator[pl.DataFrame]:
        for first in range(0, len(rows), PIECE_ROWS):
            yield pl.DataFrame(rows[first : first + PIECE_ROWS], schema=schema, orient="row")

    return pieces


def _letters(column: int) -> str:
    text = ""
    while column:
        column, letter = divmod(column - 1, 26)
        text = chr(65 + letter) + text
    return text
