"""What can be worked out from a public page? Every number of it becomes a row of a program in whole numbers.

The attacker knows the rules of `report.publish`, and more than a reader would: which numbers of the report are the
same, and which add up to another (sums that hold exactly, down the columns of tables). Unknown are, for each share, its
part, its rest and its whole. A small one (fewer than the threshold, or nobody) is given away if it cannot be 0, so that
somebody must be there, or if it can be nothing else than it is. To tell that it is not, a set of numbers is found that
makes the same page: they are published again, and looked at. Where none is found, it counts as given away.
Measures that are no shares of counts (averages, errors) are not in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import groupby
from math import ceil
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from glasshouse.errors import GlasshouseBug
from glasshouse.model.records import UNLIMITED
from glasshouse.program.highs import highs
from glasshouse.program.integer import IntegerProgram, Limit
from glasshouse.report.description import HIDDEN, Cell, Count, Measure, Report, Said, Section, Sentence, Share, Table
from glasshouse.report.publish import STEPS, Rule, public_cell, rounded, unit_of_count

BEYOND = 100  # times the largest number of the report: no number is larger; a stronger attacker than there is
NEAR = 20  # times the threshold: how far from the truth other numbers are looked for first, since that is much easier
_EFFORT = Limit(effort=0.5)  # about a second each
Numbers = NDArray[np.int64]
At = tuple[int, int]  # row and column
Unknowns = dict[str, int]  # of a number: of its whole, and of a share the part and the rest, too
Row = tuple[dict[int, int], int, int]  # coefficients by variable, and between which ends the sum lies


@dataclass
class _Puzzle:
    """The unknown numbers with their true values, and all that the page says of them."""

    rule: Rule
    truth: list[int] = field(default_factory=list)
    named: list[str] = field(default_factory=list)  # the table that a number is of
    known: dict[tuple[str | int, ...], int] = field(default_factory=dict)  # by kind, value, whole and, if small, where
    rows: list[Row] = field(default_factory=list)
    shown: list[tuple[int, int, Measure, bool]] = field(default_factory=list)  # part, whole, as told, of everybody

    def unknown(self, kind: str, value: int, whole: int, where: str, row: int) -> int:
        """The unknown of a number of a whole: the same wherever that is the same; small ones only within a row."""
        key = (kind, value, whole) if value >= self.rule.threshold else (kind, value, whole, where, row)
        if key not in self.known:
            self.truth.append(value)
            self.named.append(where)
            self.known[key] = len(self.truth) - 1
        return self.known[key]

    def says(self, terms: Sequence[tuple[int, int]], low: int, high: int) -> None:
        coefficients: dict[int, int] = {}
        for variable, coefficient in terms:
            coefficients[variable] = coefficients.get(variable, 0) + coefficient
        self.rows.append(({variable: one for variable, one in coefficients.items() if one}, low, high))

    def adds_up(self, parts: Sequence[int], total: int | None) -> bool:
        """Parts are known to add up to a total, if they do."""
        if total is None or total in parts or self.truth[total] != sum(self.truth[part] for part in parts):
            return False
        self.says([*((part, 1) for part in parts), (total, -1)], 0, 0)
        return True

    def divides(self, parts: Sequence[int], total: int | None) -> bool:
        """So do parts of a line, unless it may be by chance: that all but one are nobody's is not known."""
        return sum(self.truth[part] > 0 for part in parts) > 1 and self.adds_up(parts, total)


def given_away(internal: Report, public: Report, threshold: int) -> tuple[str, ...]:
    """The tables (or sections) of which the public version gives a small number away; none is as it should be."""
    puzzle = _Puzzle(Rule.of(internal, threshold))
    for number, (name, exact, shown) in enumerate(_sentences(internal, public)):
        _learn(puzzle, exact, shown, name, -number)
    tables = {table.name: table for table in public.tables()}
    learnt = [
        (table, _learn_table(puzzle, table, tables[table.name])) for table in internal.tables() if table.name in tables
    ]
    for table, unknowns in learnt:
        for line in _lines(table):
            _learn_sums(puzzle, [unknowns[at] for at in line if unknowns[at]])
        for row in range(len(table.rows)):
            _learn_parts(puzzle, [one for at, one in unknowns.items() if at[0] == row and "part" in one])
    return _unsafe(puzzle)


# What the page says


def _sentences(internal: Report, public: Report) -> Iterator[tuple[str, Cell, Cell]]:
    """Every number outside of tables, exact and as shown, with where it stands."""
    told: list[tuple[str, Sentence, Sentence]] = [("verdict", internal.verdict, public.verdict)]
    told += [("findings", *two) for two in zip(internal.findings, public.findings, strict=True)]
    for one, other in zip(internal.verdicts, public.verdicts, strict=True):
        yield "verdict", one.number, other.number
        told += [("verdict", one.beside, other.beside), ("verdict", one.meaning, other.meaning)]
    sections = {section.name: section for section in public.sections}
    for section in internal.sections:
        if section.name in sections:
            told += [(section.name, *two) for two in zip(_texts(section), _texts(sections[section.name]), strict=False)]
    for name, exact, shown in told:
        if isinstance(exact, Said) and isinstance(shown, Said) and exact.template == shown.template:
            yield from ((name, *cells) for cells in zip(exact.cells, shown.cells, strict=True))


def _texts(section: Section) -> list[Sentence]:
    found: list[Sentence] = [section.lead]
    for block in section.blocks:
        found += [*getattr(block, "paragraphs", ()), *getattr(block, "points", ())]
    return found


def _learn_table(puzzle: _Puzzle, exact: Table, shown: Table) -> dict[At, Unknowns]:
    """The numbers of a table, also of columns that are not shown; where each stood inside."""
    columns = {column: at for at, column in enumerate(shown.columns)}
    rows = {row[: shown.keys]: row for row in shown.rows}
    found = {}
    for r, row in enumerate(exact.rows):
        for c, cell in enumerate(row[exact.keys :], start=exact.keys):
            at = columns.get(exact.columns[c])
            there = rows.get(row[: exact.keys])  # a row that is not there is one of few, or of nobody
            public = None if at is None else HIDDEN if there is None else there[at]
            found[r, c] = _learn(puzzle, cell, public, exact.name, r)
    return found


def _learn(puzzle: _Puzzle, exact: Cell, shown: Cell, where: str, row: int) -> Unknowns:
    """The unknowns of a number, of which the page tells what is shown; None: nothing."""
    rule = puzzle.rule
    if isinstance(exact, Count) and exact.people:
        number = puzzle.unknown("whole", exact.value, exact.value, where, row)
        if isinstance(shown, Count):
            puzzle.says([(number, 1)], *_reach(shown.value, rule))
        elif shown is HIDDEN:
            puzzle.says([(number, 1)], 0, rule.fewest - 1)
        return {"whole": number}
    if not isinstance(exact, Share):
        return {}
    sizes = {"part": exact.part, "rest": exact.whole - exact.part, "whole": exact.whole}
    found = {kind: puzzle.unknown(kind, value, exact.whole, where, row) for kind, value in sizes.items()}
    puzzle.adds_up((found["part"], found["rest"]), found["whole"])
    step = rule.step_of(exact.whole, everybody=exact.everybody)
    if isinstance(shown, Measure) and step is not None:
        puzzle.shown.append((found["part"], found["whole"], shown, exact.everybody))
        finer = next((one for one in STEPS if one < step), None) if exact.everybody else None
        most = UNLIMITED if finer is None else ceil(rule.threshold / finer) - 1
        puzzle.says([(found["whole"], 1)], ceil(rule.threshold / step), most)
        puzzle.rows += _between(found["part"], found["whole"], shown, step)
    elif shown is HIDDEN and step is None:
        puzzle.says([(found["whole"], 1)], 0, rule.fewest - 1)
    return found


def _between(part: int, whole: int, shown: Measure, step: Fraction) -> Iterator[Row]:
    """A share between two ends: the part times the denominator, against the whole times the numerator."""
    value = round(Fraction(shown.value) / step) * step
    low, high = max(step, value - step / 2), min(1 - step, value + step / 2)
    if shown.end:
        low, high = (Fraction(0), value) if shown.end == "under" else (value, Fraction(1))
    open_ = shown.end == "under" or high < 1 - step  # the upper end itself is told otherwise
    yield {part: low.denominator, whole: -low.numerator}, 1 if shown.end == "over" else 0, UNLIMITED
    yield {part: high.denominator, whole: -high.numerator}, -UNLIMITED, -1 if open_ else 0


def _reach(shown: int, rule: Rule) -> tuple[int, int]:
    """The least and the greatest count that is rounded to this one."""
    unit = unit_of_count(shown, rule)
    inside = [count for count in range(shown - unit, shown + unit) if rounded(count, rule) == shown]
    return inside[0], inside[-1]


# What adds up


def _lines(table: Table) -> Iterator[list[At]]:
    """Cells that may add up: those of a column, and of its rows with the same first key."""
    columns = range(table.keys, len(table.columns))
    every = list(range(len(table.rows)))
    blocks = [every]
    if table.keys > 1:
        blocks += [list(group) for _, group in groupby(every, key=lambda row: table.rows[row][0])]
    yield from ([(r, c) for r in rows] for rows in blocks for c in columns)


def _learn_sums(puzzle: _Puzzle, line: Sequence[Unknowns]) -> None:
    """If a line divides a whole, its parts, rests and wholes add up to those of the whole."""
    if len(line) < 2:
        return
    kinds = [kind for kind in ("whole", "part", "rest") if all(kind in one for one in line)]
    somewhere: Unknowns = {}
    whole = sum(puzzle.truth[one["whole"]] for one in line)
    for kind in kinds:
        key = (kind, sum(puzzle.truth[one[kind]] for one in line), whole)
        somewhere |= {kind: puzzle.known[key]} if key in puzzle.known else {}
    for total, parts in ((line[0], line[1:]), (line[-1], line[:-1]), (somewhere, line)):
        if puzzle.divides([one["whole"] for one in parts], total.get("whole")):
            for kind in kinds[1:]:
                puzzle.adds_up([one[kind] for one in parts], total.get(kind))
    if "part" in kinds:
        _learn_parts(puzzle, line)


def _learn_parts(puzzle: _Puzzle, line: Sequence[Unknowns]) -> None:
    """Shares of one whole may add up to it."""
    if len(line) > 1 and len({one["whole"] for one in line}) == 1:
        puzzle.divides([one["part"] for one in line], line[0]["whole"])


# What follows


def _unsafe(puzzle: _Puzzle) -> tuple[str, ...]:
    truth = np.array(puzzle.truth, np.int64)
    if not _same_page(puzzle, truth):
        raise GlasshouseBug("a public page contradicts the numbers it was made from; please report this")
    small = np.flatnonzero(truth < puzzle.rule.threshold)
    away = {*_left(puzzle, small, +1), *_left(puzzle, small[truth[small] == 0], -1)}
    return tuple(sorted({puzzle.named[one] for one in away}))


def _same_page(puzzle: _Puzzle, x: Numbers) -> bool:
    """Do these numbers, published, look as the page does?"""
    told = all(
        low <= sum(int(x[variable]) * one for variable, one in terms.items()) <= high
        for terms, low, high in puzzle.rows
    )
    return told and all(
        _told(public_cell(Share(int(x[part]), int(x[whole]), everybody=everybody), puzzle.rule)) == _told(shown)
        for part, whole, shown, everybody in puzzle.shown
    )


def _told(cell: Cell) -> tuple[str, float] | None:
    return (cell.end, cell.value) if isinstance(cell, Measure) else None


def _left(puzzle: _Puzzle, some: Numbers, sign: int) -> list[int]:
    """Of these numbers, those that nothing is found for in which they are 0 (sign 1), or are not (sign -1)."""
    left = list(map(int, some))
    most = BEYOND * (max(puzzle.truth, default=0) + puzzle.rule.fewest)
    for reach in (NEAR * puzzle.rule.threshold, most):
        for together in (left, *([number] for number in left)):
            asked = [number for number in together if number in left]
            x = _witness(puzzle, asked, sign, reach) if asked else None
            left = left if x is None else [number for number in left if (x[number] > 0) == (sign > 0)]
    return left


def _witness(puzzle: _Puzzle, some: list[int], sign: int, reach: int) -> Numbers | None:
    """Numbers that make the same page, in which these are as small (or, sign -1, as large, up to 1) as was found."""
    program, least = _program(puzzle, reach)
    cost = np.zeros(len(least), np.int64)
    cost[some] = sign
    upper = program.upper if sign > 0 else np.where(cost != 0, 1, program.upper)
    above = highs(replace(program, cost=cost, upper=upper), _EFFORT).x
    return least + above if above is not None and _same_page(puzzle, least + above) else None


def _program(puzzle: _Puzzle, reach: int) -> tuple[IntegerProgram, Numbers]:
    """All that the page says of numbers at most so far from the true ones; the least of each, and how far above it."""
    truth, rows = np.array(puzzle.truth, np.int64), puzzle.rows
    least = np.maximum(truth - reach, 0)
    zero = np.zeros(len(truth), np.int64)
    starts = np.cumsum([0, *(len(terms) for terms, _, _ in rows)])
    index = np.array([variable for terms, _, _ in rows for variable in terms], np.int32)
    coefficient = np.array([one for terms, _, _ in rows for one in terms.values()], np.int64)
    low, high = (np.array([_shifted(row, end, least) for row in rows], np.int64) for end in (1, 2))
    upper = truth + reach - least
    return IntegerProgram(zero, zero, upper, low, high, starts.astype(np.int64), index, coefficient), least


def _shifted(row: Row, end: Literal[1, 2], least: Numbers) -> int:
    """An end of a row for what lies above the least numbers."""
    if abs(row[end]) == UNLIMITED:
        return row[end]
    return row[end] - sum(one * int(least[variable]) for variable, one in row[0].items())
