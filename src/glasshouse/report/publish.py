"""What of a report may leave the office? The same description again, with numbers about too few persons hidden.

The rules, for a threshold of t persons (3 or more: with 2, a hidden count could only be 1):

1. Sections and tables of records are dropped, with the pictures over such tables. A map keeps the shapes of its rows.
   A verdict whose section was dropped leads nowhere.
2. A count of persons stays if it is 0, is hidden from 1 to t - 1, and is else rounded to the nearest multiple of t, or
   of the unit that leaves four digits where that is more. A count of tables or settings stays.
3. A share is hidden if its part or the rest is of 1 to t - 1 persons, or its whole of fewer than 20 t, since rounding
   could then move it by more than 2.5 points and would mislead. Else its part
   and whole are rounded as counts; its interval is widened to multiples of 1%, or of t / whole where that is more: the
   ends of an exact interval would tell the part and the whole.
4. A measure about fewer than 20 t persons is hidden (one that is no share: t); else it is rounded to a multiple of
   0.1%, or of t / persons where that is more; one that is no share to two digits. Its ends are widened
   likewise. One about nobody stays.
5. Totals do not tell parts. A line is a row, a column, or the rows of a column that share their first key; its total
   is its first or last count, if that is the sum of the others. A total at the least or the greatest sum that the
   public counts of its parts allow is moved by one before it is rounded, if it would be rounded otherwise: so more
   than one value of each part fits, hidden or rounded. Where both rows and columns have totals and a part is hidden,
   the totals of the rows are hidden, and the total of all is moved by the sums that those of the columns allow. Whether
   a total may be moved or is hidden is told from public numbers, so nothing is given away by it. Other sums (of some
   columns, of subtotals, of shares, across tables) are not looked for: they bound a hidden count, and may settle it.
6. Where a table says which column counts the places behind a row and that count is hidden, so is all of the row: a
   single place may be behind it; likewise where it counts them without showing it. A table of which no number is left
   is dropped.
7. A sentence with numbers is a `Said`: its numbers go by rules 2 to 4; a section's lead with a hidden one says that
   instead. Other sentences and texts stay: whoever writes
   them puts no number about persons in.
8. The certificate stays, files by their names only, without folders.

To publish what is public already, with the same threshold, changes nothing.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from fractions import Fraction
from itertools import groupby, product

from glasshouse.errors import InputError
from glasshouse.report.description import (
    HIDDEN,
    Block,
    Cell,
    Chart,
    Count,
    Curves,
    Explorer,
    Map,
    Measure,
    Noise,
    Report,
    Said,
    Section,
    Sentence,
    Share,
    Table,
    Tiles,
    Verdict,
    Words,
)
from glasshouse.report.words import phrase

THRESHOLD = 10  # persons, where nothing else is asked for
LEAST = 3  # the lowest threshold: a hidden count has at least two values
COARSE = 20  # thresholds that a share must be of: below, rounding would say more than the number
_DIGITS = 4
_NEAR = Fraction(1, 10**9)  # a float that stands for a multiple is one


def publish(report: Report, threshold: int) -> Report:
    """The public version of a report: the rules of this module."""
    if threshold < LEAST:
        raise InputError(f"threshold {threshold}: expected {LEAST} or more; below, a hidden count could only be 1")
    sections = tuple(_section(one, threshold) for one in report.sections if not one.records)
    left = {section.name for section in sections}
    return replace(
        report,
        version="public",
        verdicts=tuple(_verdict(one, left, threshold) for one in report.verdicts),
        findings=tuple(_said(one, threshold) for one in report.findings),
        verdict=_said(report.verdict, threshold),
        sections=sections,
        certificate=tuple((without_folders(key), without_folders(value)) for key, value in report.certificate),
    )


def _section(section: Section, t: int) -> Section:
    blocks = (_block(block, t) for block in section.blocks)
    lead = _said(section.lead, t)
    if isinstance(lead, Said) and any(cell is HIDDEN for cell in lead.cells):
        lead = phrase("page.too_few_here")
    return replace(section, lead=lead, blocks=tuple(block for block in blocks if block is not None))


def _verdict(verdict: Verdict, sections: set[str], t: int) -> Verdict:
    return replace(
        verdict,
        number=public_cell(verdict.number, t),
        beside=_said(verdict.beside, t),
        meaning=_said(verdict.meaning, t),
        section=verdict.section if verdict.section in sections else "",
    )


def _block(block: Block, t: int) -> Block | None:
    match block:
        case Words():
            return Words(tuple(_said(s, t) for s in block.paragraphs), tuple(_said(s, t) for s in block.points))
        case Table():
            return None if block.records else _or_none(_table(block, t))
        case Noise():  # its levels are of a budget, about nobody
            table = None if block.table is None or block.table.records else _table(block.table, t)
            return replace(block, says=_said(block.says, t), table=table)
        case Chart() | Curves() | Tiles() | Map() | Explorer() if (
            block.table.records or _or_none(_table(block.table, t)) is None
        ):
            return None
        case Map():
            codes = {row[0] for row in block.table.rows}
            shapes = {code: shape for code, shape in block.shapes.items() if code in codes}
            return replace(block, says=_said(block.says, t), table=_table(block.table, t), shapes=shapes)
        case Curves():  # tiles behind it are counts of places that nobody looked at
            return replace(block, says=_said(block.says, t), table=_table(block.table, t), field=None)
        case Chart() | Tiles() | Explorer():
            return replace(block, says=_said(block.says, t), table=_table(block.table, t))


def _said(sentence: Sentence, t: int) -> Sentence:
    if isinstance(sentence, str):
        return sentence
    return Said(sentence.template, tuple(public_cell(cell, t) for cell in sentence.cells))


# Numbers


def public_cell(cell: Cell, threshold: int) -> Cell:
    """A number as the public sees it: rules 2 to 4."""
    match cell:
        case Count():
            value = rounded(cell.value, threshold) if cell.people else cell.value
            return HIDDEN if value is None else replace(cell, value=value)
        case Share():
            return _share(cell, threshold)
        case Measure():
            return _measure(cell, threshold)
        case _:
            return cell


def rounded(count: int, threshold: int) -> int | None:
    """A count of persons by rule 2; None: hidden.

    >>> [rounded(count, 10) for count in (0, 1, 9, 10, 14, 15, 123_456)]
    [0, None, None, 10, 10, 20, 123500]
    """
    if count < 0:
        return -(rounded(-count, threshold) or 0) or None  # a difference of counts
    if 0 < count < threshold:
        return None
    unit = _unit(count, threshold)
    found = (2 * count + unit) // (2 * unit) * unit
    return found if found == count else rounded(found, threshold)  # a digit more can ask for another unit


def _unit(count: int, threshold: int) -> int:
    power = 10 ** max(len(str(count)) - _DIGITS, 0)
    return max(threshold, int(power))


def _share(share: Share, t: int) -> Cell:
    rest = share.whole - share.part
    whole, part = rounded(share.whole, t), rounded(share.part, t)
    if not whole or whole < COARSE * t or part is None or 0 < rest < t:
        return HIDDEN
    part = whole if rest == 0 else min(part, whole)
    while 0 < whole - part < t:  # the whole is rounded more coarsely: the rest stays one that can be shown
        part -= _unit(part, t)
    grid = max(Fraction(1, 100), Fraction(t, whole))
    value = part / whole
    low = None if share.low is None else max(0.0, _down(min(share.low, value), grid))
    high = None if share.high is None else min(1.0, _up(max(share.high, value), grid))
    return Share(part, whole, low, high)


def _measure(measure: Measure, t: int) -> Cell:
    if measure.over == 0:
        return measure
    over = rounded(measure.over, t)
    plain = measure.style not in ("share", "points")
    if over is None or (not plain and over < COARSE * t):
        return HIDDEN
    if plain:
        value, low, high = (
            _two_digits(measure.value, ROUND_HALF_UP),
            None if measure.low is None else _two_digits(min(measure.low, measure.value), ROUND_FLOOR),
            None if measure.high is None else _two_digits(max(measure.high, measure.value), ROUND_CEILING),
        )
        return replace(measure, value=value, over=over, low=low, high=high)
    grid = max(Fraction(1, 1000), Fraction(t, over))
    most = 1.0 if measure.value <= 1 else math.inf
    value = min(most, _nearest(measure.value, grid))
    low = None if measure.low is None else _down(min(measure.low, value), grid)
    high = None if measure.high is None else _up(max(measure.high, value), grid)
    if high is not None and measure.high is not None and measure.high <= 1:
        high = min(high, 1.0)
    return replace(measure, value=value, over=over, low=low, high=high)


def _down(value: float, grid: Fraction) -> float:
    return float(math.floor(Fraction(value) / grid + _NEAR) * grid) if math.isfinite(value) else value


def _up(value: float, grid: Fraction) -> float:
    return float(math.ceil(Fraction(value) / grid - _NEAR) * grid) if math.isfinite(value) else value


def _nearest(value: float, grid: Fraction) -> float:
    return float(math.floor(Fraction(value) / grid + Fraction(1, 2) + _NEAR) * grid) if math.isfinite(value) else value


def _two_digits(value: float, rounding: str) -> float:
    if value == 0 or not math.isfinite(value):
        return value
    exact = Decimal(repr(value))
    return float(exact.quantize(Decimal((0, (1,), exact.adjusted() - 1)), rounding))


# Tables

At = tuple[int, int]  # row and column


def _table(table: Table, t: int) -> Table:
    """Every cell by itself, then the totals that would tell a hidden part."""
    cells = [[public_cell(cell, t) for cell in row] for row in table.rows]
    for at, by in (_moves_of_lines(table, t) | _moves_of_squares(table, t)).items():
        cells[at[0]][at[1]] = HIDDEN if by is None else public_cell(Count(_number(table, at) + by), t)
    behind = table.behind or (None,) * len(cells)
    for row, places in zip(cells, behind, strict=True):
        shown = None if table.places is None else row[table.places]
        if shown is HIDDEN or (places is not None and 0 < places < t):
            row[table.keys :] = [_veiled(cell) for cell in row[table.keys :]]
    return replace(table, rows=tuple(tuple(row) for row in cells), notes=tuple(_said(one, t) for one in table.notes))


def _veiled(cell: Cell) -> Cell:
    """A number of a row that is about too few places; what is about nobody stays."""
    about = isinstance(cell, Share) or (isinstance(cell, Count) and cell.people)
    return HIDDEN if about or (isinstance(cell, Measure) and cell.over) else cell


def _or_none(table: Table) -> Table | None:
    """The table, unless every number of it is hidden."""
    numbers = [
        cell for row in table.rows for cell in row[table.keys :] if not isinstance(cell, str) and cell is not None
    ]
    return None if numbers and all(cell is HIDDEN for cell in numbers) else table


def _moves_of_lines(table: Table, t: int) -> dict[At, int | None]:
    """By how much totals of lines are moved before they are rounded; None: they are hidden."""
    found: dict[At, set[int]] = {}
    for line in _lines(table):
        for total, parts in ((line[0], line[1:]), (line[-1], line[:-1])):
            if _adds_up(table, total, parts):
                low, high = _sums(table, parts, t)
                found.setdefault(total, set()).add(_move(_number(table, total), low, high, t))
    return {at: None if {1, -1} <= moves else sum(moves) for at, moves in found.items() if moves != {0}}


def _moves_of_squares(table: Table, t: int) -> dict[At, int | None]:
    """The same for totals of both rows and columns: those of rows are hidden, the one of all is moved."""
    found: dict[At, int | None] = {}
    for rows in _blocks(table):
        columns = [c for c in range(table.keys, len(table.columns)) if all(_counted(table.rows[r][c]) for r in rows)]
        if len(rows) < 3 or len(columns) < 3:
            continue
        for right, bottom in product((columns[-1], columns[0]), (rows[-1], rows[0])):
            inner, across = [r for r in rows if r != bottom], [c for c in columns if c != right]
            if not all(_adds_up(table, (r, right), [(r, c) for c in across]) for r in rows):
                continue
            if not all(_adds_up(table, (bottom, c), [(r, c) for r in inner]) for c in columns):
                continue
            if _hides(table, [(r, c) for r in inner for c in across], t):
                found |= {(r, right): None for r in inner if _number(table, (r, right))}
                ends = [_ends_of_total(table, (bottom, c), [(r, c) for r in inner], t) for c in across]
                low, high = (sum(end) for end in zip(*ends, strict=True))
                found[bottom, right] = _move(_number(table, (bottom, right)), low, high, t)
            break
    return found


def _lines(table: Table) -> Iterator[list[At]]:
    """Cells that may add up: the counts of a row, of a column, and of a column's rows with the same first key."""
    columns = range(table.keys, len(table.columns))
    lines = [[(r, c) for c in columns] for r in range(len(table.rows))]
    lines += [[(r, c) for r in rows] for rows in _blocks(table) for c in columns]
    for line in lines:
        counts = [(r, c) for r, c in line if _counted(table.rows[r][c])]
        if len(counts) > 2:
            yield counts


def _blocks(table: Table) -> Iterator[list[int]]:
    """Rows that may add up: all, and those with the same first key."""
    every = list(range(len(table.rows)))
    yield every
    if table.keys > 1:
        for _, group in groupby(every, key=lambda row: table.rows[row][0]):
            yield list(group)


def _counted(cell: Cell) -> bool:
    return isinstance(cell, Count) and cell.people and cell.value >= 0


def _number(table: Table, at: At) -> int:
    cell = table.rows[at[0]][at[1]]
    return cell.value if isinstance(cell, Count) else 0


def _adds_up(table: Table, total: At, parts: list[At]) -> bool:
    return sum(_number(table, part) for part in parts) == _number(table, total)


def _hides(table: Table, parts: list[At], t: int) -> bool:
    return any(0 < _number(table, part) < t for part in parts)


def _sums(table: Table, parts: list[At], t: int) -> tuple[int, int]:
    """The least and the greatest sum of parts, as the public sees them."""
    ends = [_ends(_number(table, part), t) for part in parts]
    return sum(low for low, _ in ends), sum(high for _, high in ends)


def _ends_of_total(table: Table, total: At, parts: list[At], t: int) -> tuple[int, int]:
    """The least and the greatest value that a total may have, as the public sees it and its parts."""
    value, (low, high) = _number(table, total), _sums(table, parts, t)
    least, most = _ends(value + _move(value, low, high, t), t)
    if least == low + 1 and _move(low, low, high, t):
        least = low  # an end that is moved looks as its neighbour does
    if most == high - 1 and _move(high, low, high, t):
        most = high
    return max(low, least), min(high, most)


def _ends(count: int, t: int) -> tuple[int, int]:
    """The least and the greatest count that the public cannot tell from this one."""
    shown = rounded(count, t)
    if shown is None:
        return 1, t - 1
    if not shown:
        return 0, 0
    reach = 2 * _unit(shown, t)
    return _last(shown, max(t, shown - reach), t), _last(shown, shown + reach, t)


def _last(shown: int, beyond: int, t: int) -> int:
    """The count farthest from a rounded one, on the side of `beyond`, that is rounded to it."""
    if rounded(beyond, t) == shown:
        return beyond
    inside = shown
    while abs(beyond - inside) > 1:
        middle = (inside + beyond) // 2
        inside, beyond = (middle, beyond) if rounded(middle, t) == shown else (inside, middle)
    return inside


def _move(total: int, low: int, high: int, t: int) -> int:
    """How a total between `low` and `high` is moved: away from an end that is not rounded as its neighbour is."""
    if low == high:
        return 0  # nobody anywhere
    if total == low and rounded(low, t) != rounded(low + 1, t):
        return 1
    if total == high and rounded(high, t) != rounded(high - 1, t):
        return -1
    return 0


# Files

_PATH = re.compile(r"(?:[A-Za-z]:[\\/]|~|\.{1,2}[\\/]|[\\/])")
_TOKEN = re.compile(r"[^\s\"'=,;()\[\]{}<>|]*[\\/][^\s\"'=,;()\[\]{}<>|]*")


def without_folders(value: str) -> str:
    """A text with its paths cut down to the names of files.

    >>> without_folders("glasshouse check /home/me/a.csv --out=runs/b"), without_folders("rho 293764/114921")
    ('glasshouse check a.csv --out=b', 'rho 293764/114921')
    """
    return "".join(_named(part) if at % 2 == 0 else part for at, part in enumerate(re.split(r"([,;]\s*)", value)))


def _named(part: str) -> str:
    if _PATH.match(part) and " -" not in part:  # a path from its beginning on: its folders may have blanks
        return _last_name(part)
    return _TOKEN.sub(lambda found: _last_name(found[0]), part)


def _last_name(path: str) -> str:
    if re.fullmatch(r"[\d.]+/[\d.]+", path) or re.match(r"https?://", path):  # a fraction, a page
        return path
    return re.split(r"[\\/]", path.rstrip("\\/"))[-1]
