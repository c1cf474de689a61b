"""How does an office's table look on the page? As it is printed, with a colour, a mark and a note on hidden numbers."""

from __future__ import annotations

from dataclasses import dataclass

from glasshouse.report.description import Cell, Count, Known, Printed, words
from glasshouse.report.words import phrase

MARKS: dict[Known, str] = {"exact": "\u25cf", "narrow": "\u25d0", "wide": "\u25cb", "printed": "", "unknown": "?"}
_DEEPEST = 6  # lines further down are indented no more


@dataclass(frozen=True)
class Number:
    """A number of the sheet: what stands there and, of a hidden one, what was printed, and its note."""

    name: str
    known: Known
    text: str
    was: str = ""  # as it was printed, if something narrower is known
    words: str = ""
    about: str = ""
    note: str = ""
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class SheetLine:
    """A line of the sheet: its label, and a number for each place."""

    depth: int
    label: str
    cells: list[Number]


@dataclass(frozen=True)
class Sheet:
    """The lines from the top down, and what the colours mean."""

    lines: list[SheetLine]
    keys: list[tuple[Known, str]]


def laid_out(block: Printed) -> Sheet:
    """The lines of a sheet, number by number."""
    wide = len(block.places)
    lines = [
        SheetLine(
            min(depth, _DEEPEST), label, [_number(block, row) for row in range(at * wide, (at + 1) * wide)],
        )
        for at, (depth, label) in enumerate(block.lines)
    ]  # fmt: skip
    keys: list[Known] = [known for known in MARKS if known in block.known and known != "printed"]
    return Sheet(lines, [(known, phrase(f"printed.known.{known}")) for known in keys])


def _number(block: Printed, row: int) -> Number:
    cells, known, name = block.table.rows[row], block.known[row], f"{block.name}-{row + 1}"
    was, proved = ([cells[end] for end in ends] for ends in (block.printed, block.proved))
    if known == "printed":  # a number, or only that there is one
        return Number(name, known, _range(*was) or phrase("printed.as_printed"))
    if known == "unknown":
        return Number(name, known, _range(*was) or phrase("printed.not_printed"))
    return Number(
        name, known, _range(*proved), "" if was == proved else _range(*was), phrase(f"printed.known.{known}"),
        ", ".join(words(cell) for cell in cells[: block.table.keys]), words(cells[block.note]), block.reasons[row],
    )  # fmt: skip


def _range(low: Cell, high: Cell) -> str:
    """A range as short as it can be said: 2, 2-5, 2+; nothing if there is none."""
    if not isinstance(low, Count):
        return ""
    if not isinstance(high, Count):
        return phrase("printed.or_more_short", low=low.value)
    return words(low) if low == high else phrase("printed.short", low=low.value, high=high.value)
