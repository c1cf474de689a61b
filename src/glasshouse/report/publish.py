"""What of a report may leave the office? The same description again, without numbers about too few persons.

The rules, for a threshold of t persons (3 or more: with 2, a small count could only be 0 or 1). Nobody is as few as
few: a number that is missing for want of anybody looks like one that is hidden, and rows are those of the scenario.

1. Sections and tables of records are dropped, with the pictures over such tables, and so are an office's tables as
   they are printed, place by place. A map keeps the shapes of its rows. A verdict whose section was dropped leads
   nowhere.
2. Tables have no counts of persons, nor of what occurs in their records: such columns go, and what is drawn from them.
   So no sum of rows tells a part. In a sentence a count of too few is hidden, and any other is rounded to the nearest
   multiple of t, or of the unit that leaves four digits. A count of tables or settings stays.
3. Shares are told in steps, and all in the same: of 5%, or of 2, 1, 0.5, 0.2 or 0.1% if a step of everybody in the
   report is still 100 t persons or more. Too few are those of whom a step is fewer than t persons (20 t, for 5%): a
   share of them is hidden. Below one step a share is "under" that, and "over" its mirror image at the other end: so
   that neither a part nor a rest of fewer than t, or of nobody, is told from its neighbours. In between it is rounded
   to the nearest step, and the ends of its interval are widened to steps: exact ones would tell the part and the whole.
   Only a share of everybody is told in finer steps, of t persons or more. Were they finer wherever a row is larger, one
   could tell how large it is, and by that whom the others leave out.
4. A measure about too few persons is hidden; else it is told in steps, and one that is no share, nor a difference of
   shares, with two digits. One about nobody in particular, as of a budget, stays.
5. Where a table says which column counts the places behind a row, or how many there are, and they are fewer than t, all
   of the row is hidden: a single place may be behind it. Where only areas with somebody in them have a row, one without
   a number that is told goes: an area of few looks like one of nobody. A table of which no number is left is dropped.
6. Rows that stand in the order of their exact numbers are put in that of the public ones. A lead that names what is
   greatest or least is said otherwise.
7. A sentence with numbers is a `Said`: its numbers go by rules 2 to 4; a section's lead with a hidden one says that
   instead. Other sentences and texts stay: whoever writes them puts no number about persons in.
8. The certificate stays, files by their names only, without folders. Digests of inputs go, and that of the run, which
   is made from them: whoever has nearly all of a file could try what is missing. With a key of the office they are
   replaced by keyed digests (HMAC), which only the office can check.

What can be worked out from all of it together is tried by `report.attacked` before anything is written.
"""

from __future__ import annotations

import hmac
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from fractions import Fraction

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
    Panels,
    Printed,
    Report,
    Said,
    Section,
    Sentence,
    Share,
    Table,
    Tiles,
    Verdict,
    Words,
    value_of,
    words,
)
from glasshouse.report.words import phrase

THRESHOLD = 10  # persons, where nothing else is asked for
LEAST = 3  # the lowest threshold: a small count has at least three values
STEPS = tuple(Fraction(1, parts) for parts in (20, 50, 100, 200, 500, 1000))
MANY = 100  # thresholds that a step of everybody has, if steps are finer than the first
KEY = 32  # bytes that a key of the office has at least: fewer could be tried out
_DIGITS = 4
_NEAR = Fraction(1, 10**9)  # a float that stands for a multiple is one


@dataclass(frozen=True)
class Rule:
    """What is too few, and in which steps shares are told."""

    threshold: int
    step: Fraction = STEPS[0]

    def __post_init__(self) -> None:
        if self.threshold < LEAST:
            raise InputError(
                f"threshold {self.threshold}: expected {LEAST} or more; below, a hidden count could only be 0 or 1"
            )

    @classmethod
    def of(cls, report: Report, threshold: int) -> Rule:
        """The rule for a report: of how many it is decides the steps."""
        everybody = max((one.whole for one in _shares(report) if one.everybody), default=0)
        return cls(threshold, _finest(everybody, MANY * threshold) or STEPS[0])

    @property
    def fewest(self) -> int:
        """So many are not too few."""
        return math.ceil(self.threshold / self.step)

    def step_of(self, whole: int, *, everybody: bool = False) -> Fraction | None:
        """The step in which a share of so many is told; None: too few.

        >>> [Rule(10).step_of(whole) for whole in (0, 199, 200, 10**6)], Rule(10).step_of(10**6, everybody=True)
        ([None, None, Fraction(1, 20), Fraction(1, 20)], Fraction(1, 1000))
        """
        if whole < self.fewest:
            return None
        return _finest(whole, self.threshold) if everybody else self.step


def _finest(whole: int, persons: int) -> Fraction | None:
    """The finest step that is still so many of a whole."""
    return min((step for step in STEPS if step * whole >= persons), default=None)


def _shares(report: Report) -> Iterator[Share]:
    """The shares on the first screen: if any is of everybody, one of these is."""
    for verdict in report.verdicts:
        if isinstance(verdict.number, Share):
            yield verdict.number


def publish(report: Report, threshold: int, key: bytes | None = None) -> Report:
    """The public version of a report: the rules of this module. What is public stays as it is."""
    rule = Rule.of(report, threshold)
    if report.version == "public":
        return report
    sections = tuple(_section(one, rule) for one in report.sections if not one.records)
    left = {section.name for section in sections}
    return replace(
        report,
        version="public",
        verdicts=tuple(_verdict(one, left, rule) for one in report.verdicts),
        findings=tuple(_said(one, rule) for one in report.findings),
        verdict=_said(report.verdict, rule),
        sections=sections,
        certificate=tuple((without_folders(key), without_folders(value)) for key, value in report.certificate),
        digests=() if key is None else tuple((role, _keyed(key, value)) for role, value in report.digests),
        keyed=key is not None,
    )


def _keyed(key: bytes, digest: str) -> str:
    return hmac.new(key, digest.encode(), "sha256").hexdigest()


def _section(section: Section, rule: Rule) -> Section:
    blocks = (_block(block, rule) for block in section.blocks)
    lead = _said(section.lead, rule)
    if section.ranks:
        lead = phrase("page.see_numbers")
    elif isinstance(lead, Said) and any(cell is HIDDEN for cell in lead.cells):
        lead = phrase("page.too_few_here")
    return replace(section, lead=lead, blocks=tuple(block for block in blocks if block is not None))


def _verdict(verdict: Verdict, sections: set[str], rule: Rule) -> Verdict:
    return replace(
        verdict,
        number=public_cell(verdict.number, rule),
        beside=_said(verdict.beside, rule),
        meaning=_said(verdict.meaning, rule),
        section=verdict.section if verdict.section in sections else "",
    )


def _block(block: Block, rule: Rule) -> Block | None:
    if isinstance(block, Words):
        return Words(tuple(_said(s, rule) for s in block.paragraphs), tuple(_said(s, rule) for s in block.points))
    if isinstance(block, Table):
        return _table(block, rule)
    if isinstance(block, (Printed, Panels)):
        return None
    table = None if block.table is None else _table(block.table, rule)
    if isinstance(block, Noise):  # its levels are of a budget, about nobody
        return replace(block, says=_said(block.says, rule), table=table)
    if table is None or block.table is None:
        return None
    return _over(replace(block, says=_said(block.says, rule)), table, _moved(block.table))


def _said(sentence: Sentence, rule: Rule) -> Sentence:
    if isinstance(sentence, str):
        return sentence
    return Said(sentence.template, tuple(public_cell(cell, rule) for cell in sentence.cells))


# Numbers


def public_cell(cell: Cell, rule: Rule) -> Cell:
    """A number as the public sees it: rules 2 to 4."""
    match cell:
        case Count(people=True):
            value = rounded(cell.value, rule)
            return HIDDEN if value is None else replace(cell, value=value)
        case Share():
            exact, step = Fraction(cell.part, cell.whole or 1), rule.step_of(cell.whole, everybody=cell.everybody)
            return _in_steps(Measure(float(exact), cell.whole, "share", cell.low, cell.high), exact, step, rule)
        case Measure() if cell.over:
            value_ = Fraction(cell.value) if math.isfinite(cell.value) else None
            return _in_steps(cell, value_, rule.step_of(cell.over), rule)
        case _:
            return cell


def rounded(count: int, rule: Rule) -> int | None:
    """A count of persons by rule 2; None: hidden.

    >>> [rounded(count, Rule(10)) for count in (0, 9, 199, 200, 204, 205, 123_456)]
    [None, None, None, 200, 200, 210, 123500]
    """
    if abs(count) < rule.fewest:
        return None
    unit = unit_of_count(count, rule)
    return (2 * count + unit) // (2 * unit) * unit


def unit_of_count(count: int, rule: Rule) -> int:
    """What a count is rounded to a multiple of."""
    return max(rule.threshold, int(10 ** max(len(str(abs(count))) - _DIGITS, 0)))


def _in_steps(measure: Measure, exact: Fraction | None, step: Fraction | None, rule: Rule) -> Cell:
    if step is None:
        return HIDDEN
    over = math.ceil(rule.threshold / step)  # the least that has such steps: no more is told of it
    if measure.style not in ("share", "points") or exact is None:
        value, low, high = (
            _two_digits(measure.value, ROUND_HALF_UP),
            None if measure.low is None else _two_digits(min(measure.low, measure.value), ROUND_FLOOR),
            None if measure.high is None else _two_digits(max(measure.high, measure.value), ROUND_CEILING),
        )
        return replace(measure, value=value, over=over, low=low, high=high)
    if measure.style == "share" and exact < step:
        return Measure(float(step), over, "share", end="under")
    if measure.style == "share" and 1 - step < exact <= 1:
        return Measure(float(1 - step), over, "share", end="over")
    value = float(math.floor(exact / step + Fraction(1, 2)) * step)
    low = None if measure.low is None else _to(math.floor, measure.low, step, _NEAR)
    high = None if measure.high is None else _to(math.ceil, measure.high, step, -_NEAR)
    if high is not None and measure.high is not None and measure.high <= 1:
        high = min(high, 1.0)
    return replace(measure, value=value, over=over, low=low, high=high)


def _to(whole: Callable[[Fraction], int], value: float, step: Fraction, more: Fraction) -> float:
    return float(whole(Fraction(value) / step + more) * step) if math.isfinite(value) else value


def _two_digits(value: float, rounding: str) -> float:
    if value == 0 or not math.isfinite(value):
        return value
    exact = Decimal(repr(value))
    return float(exact.quantize(Decimal((0, (1,), exact.adjusted() - 1)), rounding))


# Tables


def _table(table: Table, rule: Rule) -> Table | None:
    """Every cell by itself, without columns of counts; None where no number is left."""
    if table.records:
        return None
    kept, about = list(_moved(table)), _about_persons(table)
    behind = table.behind or (None,) * len(table.rows)
    rows = []
    for row, places in zip(table.rows, behind, strict=True):
        shown = row[table.places] if table.places is not None else None
        number = shown.value if isinstance(shown, Count) else places
        few = number is not None and number < rule.threshold
        rows.append(
            tuple(
                HIDDEN if column in about and (few or row[column] is None) else public_cell(row[column], rule)
                for column in kept
            )
        )
    if table.inhabited:
        rows = [row for row in rows if any(cell is not HIDDEN for cell in row[table.keys :])]
    numbers = [cell for row in rows for cell in row[table.keys :] if not isinstance(cell, str) and cell is not None]
    if all(cell is HIDDEN for cell in numbers) and (numbers or table.inhabited):
        return None
    return replace(
        table,
        columns=tuple(table.columns[column] for column in kept),
        rows=_ordered(rows, table),
        notes=tuple(_said(one, rule) for one in table.notes),
        places=None,
        behind=(),
        links=(),
    )


def _about_persons(table: Table) -> set[int]:
    """The columns with numbers about persons."""
    return {
        column
        for column in range(table.keys, len(table.columns))
        if any(
            isinstance(cell, Share) or (isinstance(cell, Measure) and cell.over)
            for cell in (row[column] for row in table.rows)
        )
    }


def _moved(table: Table) -> dict[int, int]:
    """Where columns stand in the public table; those that count persons are not in it."""
    counted = {
        column
        for column in range(table.keys, len(table.columns))
        if any(isinstance(cell, Count) and cell.people for cell in (row[column] for row in table.rows))
    }
    return {old: new for new, old in enumerate(one for one in range(len(table.columns)) if one not in counted)}


def _ordered(rows: list[tuple[Cell, ...]], table: Table) -> tuple[tuple[Cell, ...], ...]:
    """The rows, by their public numbers where they stood in the order of exact ones; hidden ones last."""
    if table.order is None:
        return tuple(rows)
    column, falling = _moved(table)[table.order[0]], table.order[1]

    def place(row: tuple[Cell, ...]) -> tuple[bool, float, tuple[str, ...]]:
        value = value_of(row[column])
        return value is None, (-value if falling else value) if value is not None else 0.0, tuple(map(words, row))

    return tuple(sorted(rows, key=place))


def _over(block: Chart | Curves | Tiles | Map | Explorer, table: Table, moved: dict[int, int]) -> Block:
    """A picture over its public table; if what it draws is gone, the table alone."""
    match block:
        case Chart() | Curves():
            series = tuple(
                replace(one, column=moved[one.column], box=tuple(moved[end] for end in one.box))
                for one in block.series
                if {one.column, *one.box} <= set(moved)
            )
            if not series or (isinstance(block, Curves) and block.x not in moved):
                return table
            if isinstance(block, Chart):
                return replace(block, table=table, series=series)
            # tiles behind it are counts of places that nobody looked at
            return replace(block, table=table, series=series, x=moved[block.x], field=None)
        case Map():
            codes = {row[0] for row in table.rows}
            shapes = {code: shape for code, shape in block.shapes.items() if code in codes}
            if block.column not in moved:
                return table
            return replace(block, table=table, column=moved[block.column], shapes=shapes)
        case Tiles():
            return replace(block, table=table, column=moved[block.column]) if block.column in moved else table
        case Explorer():
            risks, costs = (tuple(moved[one] for one in some if one in moved) for some in (block.risks, block.costs))
            guesses = {moved[a]: moved[b] for a, b in block.guesses.items() if {a, b} <= set(moved)}
            return replace(block, table=table, risks=risks, costs=costs, guesses=guesses) if risks and costs else table


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
