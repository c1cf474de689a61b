"""Does a sum tell too much of its largest contributor, and do the proved ends of the sum hide that enough?

A cell of a table of sums (turnover) is *sensitive* by a rule about its largest contributions. Hidden, it is *protected*
if it can be so much more, and so much less, that the rule would be kept at both ends. Everything is in whole units and
exact fractions; docs/bounds.md has the formulas.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import Protocol

from glasshouse.errors import InputError
from glasshouse.model.contributions import Contributions

PROTECTED, NOT_PROTECTED, PRINTED, UNDECIDED, NOT_SENSITIVE, NOT_JUDGED = (
    "protected", "not protected", "printed", "undecided", "not sensitive", "not judged",
)  # fmt: skip
UNSAFE = (NOT_PROTECTED, PRINTED)


class SensitivityRule(Protocol):
    """A rule about the largest contributions of a cell."""

    @property
    def told(self) -> str:
        """The rule in words."""

    @property
    def number(self) -> int:
        """How many contributions it speaks of."""

    def lacking(self, cell: Contributions) -> Fraction:
        """By how much the total would have to be larger for the rule to be kept; above 0: the cell is sensitive."""


@dataclass(frozen=True)
class PPercent:
    """Nobody among the contributors may be able to tell the largest contribution to within p percent."""

    percent: Fraction
    number: int = field(default=2, init=False)

    def __post_init__(self) -> None:
        if not 0 < self.percent <= 100:
            raise InputError(f"--p-percent {float(self.percent):g}: expected more than 0 and at most 100")

    @property
    def told(self) -> str:
        return f"p% with p = {float(self.percent):g}"

    def lacking(self, cell: Contributions) -> Fraction:
        largest = cell.top(1)
        return self.percent / 100 * largest - (cell.total - cell.top(2))


@dataclass(frozen=True)
class Dominance:
    """The `number` largest contributions may not be more than `percent` of the total: the (n, k) rule."""

    number: int
    percent: Fraction

    def __post_init__(self) -> None:
        if self.number < 1 or not 0 < self.percent < 100:
            raise InputError(
                f"--dominance {self.number}:{float(self.percent):g}: expected n:k, such as 1:75, with n from 1 up and "
                "k above 0 and below 100"
            )

    @property
    def told(self) -> str:
        return f"({self.number}, {float(self.percent):g}) dominance"

    def lacking(self, cell: Contributions) -> Fraction:
        return 100 / self.percent * cell.top(self.number) - cell.total


def read_dominance(text: str) -> Dominance:
    """A rule as it is typed: `1:75`, the largest contribution is more than 75 percent."""
    match = re.fullmatch(r"\s*(\d{1,3})\s*:\s*(\d{1,3}(?:\.\d{1,6})?)\s*", text)
    if match is None:
        raise InputError(f"--dominance {text}: expected n:k, such as 1:75 (the largest may not be more than 75%)")
    return Dominance(int(match[1]), Fraction(match[2]))


def sensitive(cell: Contributions, rules: Sequence[SensitivityRule]) -> tuple[tuple[SensitivityRule, ...], int]:
    """The rules that a cell breaks, and the protection it needs: whole units that it must be able to be more, and less.

    The least whole number will do, since totals and their ends are whole.
    """
    lacking = {rule: rule.lacking(cell) for rule in rules}
    broken = tuple(rule for rule in rules if lacking[rule] > 0)
    return broken, max((ceil(lacking[rule]) for rule in broken), default=0)


@dataclass(frozen=True)
class Range:
    """What is proved of a sum: nothing that fits is below `low` or above `high` (None: no limit), and data that fit
    have `met_low` and `met_high` (None: none were found). `endless`: it can be as large as one likes."""

    low: int
    high: int | None
    met_low: int | None = None
    met_high: int | None = None
    endless: bool = False

    def judge(self, total: int, needed: int) -> str:
        """Is a sum that is sensitive protected? `needed` above it, and as much, or all of it, below.

        What no data reach settles that it is not; only what data were found to reach settles that it is.
        """
        below = min(needed, total)
        if (self.high is not None and self.high - total < needed) or total - self.low < below:
            return NOT_PROTECTED
        more = self.endless or (self.met_high is not None and self.met_high - total >= needed)
        less = self.met_low is not None and total - self.met_low >= below
        return PROTECTED if more and less else UNDECIDED
