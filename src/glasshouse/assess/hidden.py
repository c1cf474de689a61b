"""What is known of a number that an office did not print exactly? Its value, nearly its value, or little: by a rule.

A number is *exact* if one value is left, *narrow* if its least and its most are no farther apart than a rule says, else
*wide*. Two things can be known of a number whose value is not: that it is not 0 (somebody is there), and that it is the
whole of its group (whoever is in the group has this attribute).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.errors import InputError
from glasshouse.model.records import UNLIMITED, Count
from glasshouse.program.integer import Proof

EXACT, NARROW, WIDE = VERDICTS = ("exact", "narrow", "wide")
ASKED = "asked"  # in the place of a table: a count that somebody asked for
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Rule:
    """When a number that is not exact is too well known: its ends are at most so far apart.

    `width` is in units of what is counted; `percent` is of the most that the number can be. Either is enough.
    """

    width: int = 1
    percent: float = 0.0

    def __post_init__(self) -> None:
        if self.width < 1:
            raise InputError(
                f"--width {self.width}: a number whose least and most are 0 apart is exact, so a rule of width 0 names "
                "nothing else; expected 1 or more"
            )
        if not 0 <= self.percent <= 100:
            raise InputError(f"--percent {self.percent:g}: expected a number from 0 to 100")

    def narrow(self, low: Count, high: Count) -> Flags:
        """The numbers whose ends are close, exact ones too; one without a limit is not."""
        apart = high - low
        close = (apart <= self.width) | (100.0 * apart <= self.percent * high)
        return np.asarray(close & (high < UNLIMITED))

    def verdicts(self, low: Count, high: Count) -> NDArray[np.int8]:
        """For each number an index into VERDICTS."""
        found = np.where(low == high, 0, np.where(self.narrow(low, high), 1, 2))
        return found.astype(np.int8)

    @property
    def told(self) -> str:
        """The rule in words."""
        units = f"at most {self.width:,} apart"
        return f"{units}, or {self.percent:g}% of the most" if self.percent else units


def present(lower: Count, low: Count) -> Flags:
    """The numbers that are 1 or more for certain, although 0 was possible as printed."""
    return np.asarray((lower == 0) & (low >= 1))


def alike(low: Count, others: NDArray[Any]) -> Flags:
    """The parts that are for certain the whole of their group: somebody is there, and nobody can be elsewhere in it.

    `others` has for each number the most that all other parts of the group can be together.
    """
    return np.asarray((low >= 1) & (others == 0))


# The same of rows of bounds.parquet, where no limit is a blank


def hidden() -> pl.Expr:
    """The numbers that are printed, but not exactly, and the counts that were asked for."""
    blank = pl.col("upper").is_null() | (pl.col("lower") < pl.col("upper"))
    return (pl.col("lower").is_not_null() & blank) | (pl.col("table") == ASKED)


def narrow_as_printed(rule: Rule) -> pl.Expr:
    """The numbers that are narrow and were printed so: no other number gives them away."""
    apart = pl.col("upper") - pl.col("lower")
    close = (apart <= rule.width) | (100.0 * apart <= rule.percent * pl.col("upper"))
    return (pl.col("verdict") == NARROW) & close.fill_null(False)


def given_away(rule: Rule) -> pl.Expr:
    """The hidden numbers that other numbers give away: exact, or narrow and not printed so."""
    return hidden() & (pl.col("verdict") != WIDE) & ~narrow_as_printed(rule)


@dataclass(frozen=True)
class Known:
    """How well some numbers are known, in counts of numbers; all but `numbers` and `undecided` are of hidden ones."""

    numbers: int  # that were asked for
    hidden: int  # of them, not printed exactly
    exact: int
    narrow: int
    narrow_as_printed: int  # of the narrow ones: their printed interval is as narrow
    wide: int
    given_away: int  # exact, or narrow and not printed so
    share_given_away: float | None  # of the hidden ones; None where nothing is hidden
    present: int
    alike: int
    undecided: int  # the bounds are proved, but perhaps not met
    level: str = ""
    table: str = ""


def known(bounds: pl.LazyFrame, rule: Rule, by: Sequence[str] = ()) -> tuple[Known, ...]:
    """How well the numbers of bounds.parquet are known: all of them, or by some columns in the order of the file."""
    verdict = {name: hidden() & (pl.col("verdict") == name) for name in VERDICTS}
    kinds = {
        "hidden": hidden(), **verdict, "narrow_as_printed": hidden() & narrow_as_printed(rule),
        "given_away": given_away(rule), "present": hidden() & pl.col("present"), "alike": hidden() & pl.col("alike"),
        "undecided": pl.col("proof") == str(Proof.UNDECIDED),
    }  # fmt: skip
    sums = [pl.len().alias("numbers"), *(kind.sum().alias(name) for name, kind in kinds.items())]
    found = bounds.group_by(by, maintain_order=True).agg(sums) if by else bounds.select(sums)
    rows = found.collect().to_dicts()
    return tuple(
        Known(**row, share_given_away=row["given_away"] / row["hidden"] if row["hidden"] else None) for row in rows
    )
