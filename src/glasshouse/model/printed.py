"""What does a printed number say of the count behind it? Rounding, marks, cell keys and noise, each as an interval.

The one place where a convention of an office becomes a lower and an upper end. Whatever the office did inside its
convention, the interval holds the true count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import isfinite
from typing import Any, Literal, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from glasshouse.errors import InputError, unknown
from glasshouse.model.records import UNLIMITED, Count, Interval

Missing = Literal["zero", "hidden"]  # what a number without a row is: 0 as the office prints it, or not told
How = Literal["random", "nearest", "half-up", "up", "down"]
Zeros = Literal["any", "kept"]
ANYTHING, ZERO = Interval(0, UNLIMITED), Interval(0, 0)
BLANK = ""  # the mark that is no text at all
SLACK = 1e-6  # decimals are not exact; an interval is widened by more than they can be wrong
LARGEST_BASE = 10**6
REPEATED = 250  # the last rows of the p-tables of the ONS stand for all larger counts, in turn


class Rule(Protocol):
    """What was done to every count before it was printed."""

    @property
    def whole(self) -> bool:
        """Are printed numbers whole, and never below 0?"""
        ...

    @property
    def told(self) -> str:
        """The rule in words."""
        ...

    def behind(self, shown: NDArray[Any]) -> tuple[Count, Count]:
        """The least and the most count that may be printed so; the least is the greater one where there is none."""
        ...


@dataclass(frozen=True)
class Rounded:
    """Every count is rounded to a multiple of the base.

    `random`: to the one below or above. `nearest`: a count in the middle may go either way, since offices differ;
    `half-up` says that it goes up. With zeros `kept` a printed 0 is a 0: no other count is printed as 0.
    """

    base: int
    how: How = "random"
    zeros: Zeros = "any"
    whole: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        if self.how not in get_args(How):
            raise unknown("way to round", self.how, get_args(How))
        if self.zeros not in get_args(Zeros):
            raise unknown("meaning of rounded zeros", self.zeros, get_args(Zeros))
        if not 2 <= self.base <= LARGEST_BASE:
            raise InputError(f"the base of rounding is {self.base:,}; expected 2 or more, up to {LARGEST_BASE:,}")

    @property
    def told(self) -> str:
        return f"rounded to a multiple of {self.base} ({self.how}{', zeros kept' if self.zeros == 'kept' else ''})"

    def behind(self, shown: NDArray[Any]) -> tuple[Count, Count]:
        less, more = {
            "random": (self.base - 1, self.base - 1),
            "nearest": (self.base // 2, self.base // 2),
            "half-up": (self.base // 2, (self.base - 1) // 2),
            "up": (self.base - 1, 0),
            "down": (0, self.base - 1),
        }[self.how]
        lower, upper = np.maximum(shown - less, 0), shown + more
        if self.zeros == "kept":  # what would become 0 is printed as the base instead
            lower = np.where(shown > 0, np.where(shown == self.base, 1, np.maximum(lower, 1)), 0)
            upper = np.where(shown == 0, 0, upper)
        possible = shown % self.base == 0
        return np.where(possible, lower, 1), np.where(possible, upper, 0)


@dataclass(frozen=True)
class Keyed:
    """Every count is changed as a p-table allows: `changes[n]` are those of count n, `larger` those of all beyond."""

    changes: tuple[frozenset[int], ...]
    larger: frozenset[int]
    whole: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        for count, changes in enumerate(self.changes):
            if not changes or min(changes) < -count:
                raise InputError(f"p-table: count {count} has changes {sorted(changes)}; expected some, to 0 or more")
        if not self.larger or min(self.larger) < -len(self.changes):
            raise InputError("p-table: the changes of the largest counts are missing, or lead below 0")

    @property
    def told(self) -> str:
        return f"changed by cell keys (p-table up to count {len(self.changes) - 1:,})"

    @cached_property
    def _small(self) -> tuple[Count, Count]:
        """The least and the most count behind each printed number that a count of the table can become."""
        top = len(self.changes)
        size = top + max(0, max(self.larger), *(max(some) for some in self.changes)) + 1
        lower, upper = np.full(size, UNLIMITED, np.int64), np.full(size, -1, np.int64)
        for count, changes in enumerate(self.changes):
            for change in changes:
                lower[count + change] = min(lower[count + change], count)
                upper[count + change] = max(upper[count + change], count)
        for change in self.larger:
            shown = np.arange(max(top + change, 0), size)
            lower[shown] = np.minimum(lower[shown], shown - change)
            upper[shown] = np.maximum(upper[shown], shown - change)
        return lower, upper

    def behind(self, shown: NDArray[Any]) -> tuple[Count, Count]:
        lower, upper = self._small
        small = shown < len(lower)
        at = np.where(small, shown, 0)
        return (
            np.where(small, lower[at], shown - max(self.larger)),
            np.where(small, upper[at], shown - min(self.larger)),
        )


@dataclass(frozen=True)
class Noisy:
    """Noise was added to every count, never more than `within`; a printed number may be a decimal, or below 0."""

    within: float
    whole: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        if not (isfinite(self.within) and 0 <= self.within <= UNLIMITED):
            raise InputError(f"noise within {self.within}; expected a number from 0 up")

    @property
    def told(self) -> str:
        return f"with noise of at most {self.within:g}"

    def behind(self, shown: NDArray[Any]) -> tuple[Count, Count]:
        slack = SLACK * np.maximum(1, np.abs(shown) / 1e6)
        lower = np.maximum(np.ceil(shown - self.within - slack), 0)
        return lower.astype(np.int64), np.floor(shown + self.within + slack).astype(np.int64)


@dataclass(frozen=True)
class Printed:
    """How an office prints its counts: what it does to each, what its marks mean, and how it writes digits.

    `markers` has, by text or status, the interval that a mark stands for; None: the number beside it stands. The mark
    `BLANK` is an empty cell.
    """

    rule: Rule | None = None
    markers: Mapping[str, Interval | None] = field(default_factory=dict)
    missing: Missing = "zero"
    thousands: str = ""
    decimal: str = "."

    def __post_init__(self) -> None:
        if self.missing not in get_args(Missing):
            raise unknown("meaning of a missing row", self.missing, get_args(Missing))
        if self.thousands and self.thousands == self.decimal:
            raise InputError(f"'{self.decimal}' separates thousands and decimals; expected two different signs")
        for name, sign, known in (("thousands", self.thousands, " ,.'_"), ("decimal", self.decimal, ".,")):
            if len(sign) > 1 or sign not in known or (name == "decimal" and not sign):
                raise unknown(f"sign for {name}", sign, list(known))

    @property
    def plain(self) -> bool:
        """Is every number what it says, written in digits alone?"""
        return self.rule is None and not self.markers and not self.thousands and self.decimal == "."

    def behind(self, shown: NDArray[Any]) -> tuple[Count, Count]:
        """The ends of the interval of each printed number; the lower is above the upper where it cannot be printed."""
        if self.rule is None:
            return shown, shown
        lower, upper = self.rule.behind(shown)
        return lower, np.minimum(upper, UNLIMITED)

    @cached_property
    def zero(self) -> Interval:
        """What is known of a number that is printed as 0, or left out since it would be."""
        (lower,), (upper,) = self.behind(np.zeros(1, np.int64))
        return Interval(int(lower), int(upper)) if lower <= upper else ZERO


EXACT = Printed()
