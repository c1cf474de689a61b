"""What stands in the cells of a workbook? Excel's .xlsx: a zip of XML, read cell by cell, with limits.

Numbers come as they are stored, not as their format shows them; dates as ISO text. Formulas give the value that was
computed last. Nothing outside of the cells is looked at: no macros, no links.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from glasshouse.errors import InputError
from glasshouse.files.archive import SafeZip
from glasshouse.files.formats import markup
from glasshouse.files.formats.crossing import shown
from glasshouse.limits import (
    CELL_LETTERS,
    FORMAT_LETTERS,
    SHEET_CELLS,
    SHEET_LETTERS,
    SHEET_MERGED,
    SHEETS,
    TEXT_FILE_BYTES,
)

MOST_ROWS, MOST_COLUMNS = 1 << 20, 1 << 14  # of Excel itself
_DATES = frozenset({*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)})  # formats that Excel has built in
_BREAK = re.compile(r"[\r\n\t\x0b\x0c\x85\u2028\u2029]")
_REFERENCE = re.compile(r"\$?([A-Za-z]{1,3})\$?([0-9]{1,7})")


@dataclass(frozen=True, slots=True)
class Cell:
    """What a cell shows, and whether Excel holds it as a number."""

    text: str
    number: bool = False


@dataclass(frozen=True)
class Sheet:
    """The cells of a sheet with something in them, by row and column (from 1), and ranges of merged cells."""

    path: Path
    name: str
    cells: Mapping[int, Mapping[int, Cell]]
    merged: tuple[tuple[int, int, int, int], ...]  # first row, first column, last row, last column

    @property
    def where(self) -> str:
        return f"{self.path.name}, sheet '{shown(self.name)}'"


def sheets(path: Path) -> Iterator[Sheet]:
    """The visible sheets of a workbook, one after the other."""
    with SafeZip(path, total_bytes=1 << 32, folders_matter=True) as archive:
        book = _Book()
        _listen(archive, "xl/workbook.xml", book, needed=True)
        targets = _Targets()
        _listen(archive, "xl/_rels/workbook.xml.rels", targets, needed=True)
        if not 1 <= len(book.sheets) <= SHEETS:
            raise InputError(f"{path.name}: {len(book.sheets):,} visible sheets; expected 1 to {SHEETS}")
        texts, styles = _Texts(), _Styles()
        _listen(archive, "xl/sharedStrings.xml", texts)
        _listen(archive, "xl/styles.xml", styles)
        for name, target in book.sheets:
            member = targets.found.get(target, "")
            if "worksheet" not in targets.kinds.get(target, ""):
                continue  # a sheet that is a chart
            found = _Cells(f"{path.name}, sheet '{shown(name)}'", texts.found, styles.dates, book.since)
            _listen(archive, member, found, needed=True, limited=False)
            yield Sheet(path, name, found.cells, tuple(found.merged))


def _listen(archive: SafeZip, member: str, told: markup.Told, *, needed: bool = False, limited: bool = True) -> None:
    if member not in archive.names:
        if needed:
            raise InputError(f"{archive.path.name}: no part '{shown(member)}'; expected a workbook of Excel (.xlsx)")
        return
    with archive.open(member) as stream:
        read = 0
        for _ in markup.read(stream, f"{archive.path.name}, {shown(member)}", told):
            read += markup.PIECE
            if limited and read > TEXT_FILE_BYTES + markup.PIECE:
                raise InputError(f"{archive.path.name}: '{shown(member)}' has more than {TEXT_FILE_BYTES >> 20} MiB")


class _Book:
    def __init__(self) -> None:
        self.sheets: list[tuple[str, str]] = []
        self.since = datetime(1899, 12, 30)

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "sheet" and attributes.get("state", "visible") == "visible":
            target = next((text for key, text in attributes.items() if key.endswith(":id")), "")
            self.sheets.append((attributes.get("name", ""), target))
        elif name == "workbookPr" and attributes.get("date1904") in ("1", "true"):
            self.since = datetime(1904, 1, 1)

    def end(self, name: str, text: str) -> None: ...


class _Targets:
    def __init__(self) -> None:
        self.found: dict[str, str] = {}
        self.kinds: dict[str, str] = {}

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "Relationship" and attributes.get("TargetMode", "Internal") == "Internal":
            target = attributes.get("Target", "")
            identifier = attributes.get("Id", "")
            self.found[identifier] = target.lstrip("/") if target.startswith("/") else f"xl/{target}"
            self.kinds[identifier] = attributes.get("Type", "").rpartition("/")[2]

    def end(self, name: str, text: str) -> None: ...


class _Texts:
    """The texts that cells share; how a word is read aloud (`rPh`) is no part of it."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self.parts: list[str] = []
        self.aloud = False

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "si":
            self.parts = []
        elif name == "rPh":
            self.aloud = True

    def end(self, name: str, text: str) -> None:
        if name == "t" and not self.aloud:
            self.parts.append(text)
        elif name == "rPh":
            self.aloud = False
        elif name == "si":
            self.found.append(_line("".join(self.parts)))


class _Styles:
    """Which styles of cells show a date."""

    def __init__(self) -> None:
        self.own: set[int] = set()
        self.dates: set[int] = set()
        self.inside = False
        self.count = 0

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "numFmt":
            code = re.sub(r'"[^"]*"|\[[^\]]*\]|\\.', "", attributes.get("formatCode", "")[:FORMAT_LETTERS])
            if re.search(r"[ydhs]|mm", code, re.IGNORECASE) and "general" not in code.lower():
                self.own.add(_whole(attributes.get("numFmtId", "")))
        elif name == "cellXfs":
            self.inside = True
        elif name == "xf" and self.inside:
            kind = _whole(attributes.get("numFmtId", ""))
            if kind in _DATES or kind in self.own:
                self.dates.add(self.count)
            self.count += 1

    def end(self, name: str, text: str) -> None:
        if name == "cellXfs":
            self.inside = False


@dataclass
class _Cells:
    where: str
    texts: list[str]
    dates: set[int]
    since: datetime
    cells: dict[int, dict[int, Cell]] = field(default_factory=dict)
    merged: list[tuple[int, int, int, int]] = field(default_factory=list)
    row: int = 0
    column: int = 0
    kind: str = ""
    style: int = 0
    value: str = ""
    parts: list[str] = field(default_factory=list)
    total: int = 0
    letters: int = 0

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if name == "row":
            self.row = _whole(attributes["r"]) if "r" in attributes else self.row + 1
            self.column = 0
            if not 1 <= self.row <= MOST_ROWS:
                raise InputError(
                    f"{self.where}: a row is called '{shown(attributes.get('r', ''), 20)}'; expected 1 to {MOST_ROWS:,}"
                )
        elif name == "c":
            self.column += 1
            if "r" in attributes:
                row, self.column = self._at(attributes["r"])
                if row != self.row:
                    raise InputError(
                        f"{self.where}, row {self.row}: holds the cell {shown(attributes['r'], 20)}; expected its own"
                    )
            self.kind, self.style = attributes.get("t", "n"), _whole(attributes.get("s", "0"))
            self.value, self.parts = "", []
        elif name == "mergeCell":
            first, _, last = attributes.get("ref", "").partition(":")
            self.merged.append((*self._at(first), *self._at(last or first)))
            if len(self.merged) > SHEET_MERGED:
                raise InputError(f"{self.where}: more than {SHEET_MERGED:,} merged ranges; save the table as CSV")

    def end(self, name: str, text: str) -> None:
        if name == "v":
            self.value = text
        elif name == "t":
            self.parts.append(text)
        elif name == "c":
            cell = self._cell()
            if cell is not None and cell.text.strip():
                row = self.cells.setdefault(self.row, {})
                if self.column in row:
                    raise InputError(f"{self.where}, row {self.row}: a cell stands twice; expected each once")
                row[self.column] = cell
                self.total += 1
                self.letters += len(cell.text)
                if self.total > SHEET_CELLS or self.letters > SHEET_LETTERS:
                    raise InputError(
                        f"{self.where}: more than {SHEET_CELLS:,} cells, or {SHEET_LETTERS:,} letters in them; save "
                        "the table as CSV"
                    )
                if len(cell.text) > CELL_LETTERS:
                    raise InputError(
                        f"{self.where}, row {self.row}: a text of {len(cell.text):,} letters; expected at most "
                        f"{CELL_LETTERS:,}, as in Excel"
                    )

    def _cell(self) -> Cell | None:
        if self.kind == "s":
            at = _whole(self.value)
            if not 0 <= at < len(self.texts):
                raise InputError(
                    f"{self.where}, row {self.row}: a cell has text '{shown(self.value, 20)}', which is not there"
                )
            return Cell(self.texts[at])
        if self.kind == "inlineStr":
            return Cell(_line("".join(self.parts)))
        if not self.value.strip():
            return None
        if self.kind == "b":
            return Cell("TRUE" if self.value.strip() == "1" else "FALSE")
        if self.kind != "n":  # text of a formula, an error, a date in ISO
            return Cell(_line(self.value))
        return self._number()

    def _number(self) -> Cell:
        try:
            number = float(self.value)
        except ValueError:
            number = float("nan")
        if not -1e300 < number < 1e300:
            raise InputError(f"{self.where}, row {self.row}: found '{shown(self.value, 20)}' as a number; expected one")
        if self.style in self.dates and 0 <= number < 2_958_466:
            when = self.since + timedelta(days=number)
            return Cell(when.date().isoformat() if when == when.replace(hour=0, minute=0, second=0, microsecond=0)
                        else when.isoformat(timespec="seconds"))  # fmt: skip
        return Cell(str(int(number)) if number == int(number) and abs(number) < 1e15 else repr(number), number=True)

    def _at(self, reference: str) -> tuple[int, int]:
        found = _REFERENCE.fullmatch(reference)
        column = 0
        for letter in found[1].upper() if found else "":
            column = 26 * column + ord(letter) - 64
        row = int(found[2]) if found else 0
        if not (1 <= row <= MOST_ROWS and 1 <= column <= MOST_COLUMNS):
            raise InputError(f"{self.where}: a cell is called '{shown(reference, 20)}'; expected such as B7")
        return row, column


def _line(text: str) -> str:
    """A text that is broken into lines, in one."""
    if text.isprintable():
        return text.strip()
    lines = (line.strip() for line in _BREAK.split(text))
    return " ".join(line for line in lines if line)


def _whole(text: str) -> int:
    """A whole number; -1 for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
