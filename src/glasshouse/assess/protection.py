"""Which sums tell too much of their largest contributor? Every number with contributions, judged by its proved ends."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from glasshouse.assess.hidden import EXACT, hidden
from glasshouse.assess.sensitive import (
    NOT_JUDGED,
    NOT_PROTECTED,
    NOT_SENSITIVE,
    PRINTED,
    Range,
    SensitivityRule,
    sensitive,
)
from glasshouse.errors import InputError
from glasshouse.model.contributions import Cell, Contributed, Contributions
from glasshouse.model.release import Table
from glasshouse.program.integer import Proof

PROTECTION = pl.Schema({
    "level": pl.String, "geoid": pl.String, "table": pl.String, "variable": pl.String, "description": pl.String,
    "cells": pl.Int64, "contributors": pl.Int64, "total": pl.Int64, "rules": pl.String, "needed": pl.Int64,
    "low": pl.Int64, "high": pl.Int64, "verdict": pl.String, "proof": pl.String,
})  # fmt: skip


@dataclass(frozen=True)
class Judging:
    """What numbers are judged by: contributions, and rules about the largest of them."""

    contributed: Contributed
    rules: tuple[SensitivityRule, ...]

    @property
    def told(self) -> str:
        return "; ".join(rule.told for rule in self.rules)

    def broken(self, cell: Cell, given: Contributions) -> tuple[str, int]:
        """The rules that a number breaks, in words, and the protection it needs; complaints name the number."""
        try:
            broken, needed = sensitive(given, self.rules)
        except InputError as error:
            error.add_where(f"--contributions: {cell.variable} of {cell.level} {cell.geoid}")
            raise
        return "; ".join(rule.told for rule in broken), needed


@dataclass(frozen=True)
class Numbers:
    """The numbers of a run: those that are not printed exactly, with their ends, and those that are."""

    hidden: Mapping[Cell, tuple[Range, str, str]] = field(default_factory=dict)  # with verdict and proof
    printed: Mapping[Cell, int] = field(default_factory=dict)

    def known(self, cell: Cell) -> int | None:
        """The value of a number that everybody knows."""
        if cell in self.hidden:
            found, verdict, _ = self.hidden[cell]
            return found.low if verdict == EXACT else None
        return self.printed.get(cell)


def numbers_of(bounds: pl.DataFrame, printed: pl.DataFrame, skipped: Collection[tuple[str, str]]) -> Numbers:
    """What is known of hidden numbers, and what was printed exactly; places that contradict themselves are skipped."""
    found = {}
    for row in bounds.filter(hidden()).iter_rows(named=True):
        sure = row["proof"] != str(Proof.UNDECIDED)
        ends = Range(row["low"], row["high"], row["met_low"], row["met_high"], row["high"] is None and sure)
        found[Cell(row["level"], row["geoid"], row["variable"])] = ends, row["verdict"], row["proof"]
    exact = printed.filter(pl.col("lower") == pl.col("upper")).select("level", "geoid", "variable", "lower")
    shown = {Cell(*row[:3]): row[3] for row in exact.iter_rows() if row[:2] not in skipped}
    return Numbers(found, shown)


def judged(
    numbers: Numbers, judging: Judging, tables: Sequence[Table], words: Mapping[str, tuple[str, str]]
) -> pl.DataFrame:
    """A row for each number that is hidden, or sensitive and printed; and for known sums of hidden ones that are
    sensitive. Numbers stand in the order of bounds.parquet, then those that are printed, then the sums; `words` has the
    table and the description of each variable."""
    rows = [*_hidden(numbers, judging), *_printed(numbers, judging), *_unions(numbers, judging, tables)]
    told = []
    for cells, (cell, given, rules, needed, low, high, verdict, proof) in rows:
        names = [one.variable for one in cells]
        table, _ = words[cell.variable]
        said = " + ".join(words[name][1] for name in names)
        people, total = (None, None) if given is None else (given.contributors, given.total)
        number = cell.level, cell.geoid, table, " + ".join(names), said, len(cells)
        told.append((*number, people, total, rules, needed, low, high, verdict, proof))
    return pl.DataFrame(told, schema=PROTECTION, orient="row")


Row = tuple[Cell, Contributions | None, str | None, int | None, int, int | None, str, str]
Told = tuple[tuple[Cell, ...], Row]


def _hidden(numbers: Numbers, judging: Judging) -> Iterator[Told]:
    for cell, (ends, _, proof) in numbers.hidden.items():
        given = judging.contributed.of(cell)
        if given is None:
            yield (cell,), (cell, None, None, None, ends.low, ends.high, NOT_JUDGED, proof)
            continue
        if given.total < ends.low or (ends.high is not None and given.total > ends.high):
            raise _contradiction(cell)
        rules, needed = judging.broken(cell, given)
        verdict = ends.judge(given.total, needed) if rules else NOT_SENSITIVE
        yield (cell,), (cell, given, rules, needed, ends.low, ends.high, verdict, proof)


def _printed(numbers: Numbers, judging: Judging) -> Iterator[Told]:
    for cell, value in numbers.printed.items():
        given = judging.contributed.of(cell)
        if given is None:
            continue
        if given.total != value:
            raise _contradiction(cell)
        rules, needed = judging.broken(cell, given)
        if rules:
            yield (cell,), (cell, given, rules, needed, value, value, PRINTED, str(Proof.EXACT))


def _unions(numbers: Numbers, judging: Judging, tables: Sequence[Table]) -> Iterator[Told]:
    """Sums of hidden parts of a group that everybody knows, since the whole and all other parts are known."""
    places: dict[tuple[str, str], set[str]] = {}
    for cell in numbers.hidden:
        places.setdefault((cell.level, cell.geoid), set()).add(cell.variable)
    groups = [
        (whole.variable, [table.line(part).variable for part in whole.parts])
        for table in tables if not table.tally and not table.sums for whole in table.subtotals
    ]  # fmt: skip
    for (level, geoid), names in places.items():
        for whole, parts in groups:
            open_ = [
                Cell(level, geoid, name)
                for name in parts
                if name in names and numbers.known(Cell(level, geoid, name)) is None
            ]
            rest = [Cell(level, geoid, name) for name in (whole, *parts)]
            if not 1 < len(open_) < len(parts) or any(
                numbers.known(cell) is None for cell in rest if cell not in open_
            ):
                continue  # all parts together are the whole, which is judged as a number
            given = judging.contributed.union(open_)
            if given is not None:
                rules, needed = judging.broken(open_[0], given)
                if rules:
                    total, exact = given.total, str(Proof.EXACT)
                    yield tuple(open_), (open_[0], given, rules, needed, total, total, NOT_PROTECTED, exact)


def _contradiction(cell: Cell) -> InputError:
    """Contributions and tables must be of the same records; how much they differ is nobody's business."""
    return InputError(
        f"--contributions: those of {cell.variable} of {cell.level} {cell.geoid} add up to a total that the published "
        "tables rule out; expected the contributions of the records behind the tables, in the same unit"
    )
