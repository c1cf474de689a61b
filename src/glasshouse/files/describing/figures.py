"""Which texts are numbers? Whole ones, perhaps with separators of thousands; every other text is a mark."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from glasshouse.errors import InputError
from glasshouse.limits import MARKERS, NAME_LENGTH
from glasshouse.text import harmful

_WHOLE = re.compile(r"(\d{1,15})(?:[.,]0+)?")
_GROUPED = re.compile(r"\d{1,3}(?:([.,'\u2019\u00a0\u202f ])\d{3})(?:\1\d{3})*")
_BROKEN = re.compile(r"-?\d*[.,]\d+(?:[eE][-+]?\d+)?")
NONE = "none"
BASES = (1000, 100, 50, 25, 20, 10, 5, 4, 3, 2)
FEWEST = 20  # numbers that are not 0, from which on a common base is worth a question


@dataclass(frozen=True)
class Figures:
    """What texts are as numbers: those that are, and those that stand for something else."""

    numbers: Mapping[str, int]
    marks: tuple[str, ...]
    thousands: str = ""


def read_figures(texts: Iterable[str], where: str, thousands: str = "") -> Figures:
    """The numbers among different texts, three digits behind a mark as thousands unless that is told to be `none`.

    Shares and means are refused: they count nobody.

    >>> read_figures(["12", "1,204", "c", "7.0"], "x.csv").numbers
    {'12': 12, '1,204': 1204, '7.0': 7}
    """
    numbers: dict[str, int] = {}
    marks: list[str] = []
    separators: dict[str, str] = {}
    for text in texts:
        bare = text.strip()
        if thousands != NONE and (match := _GROUPED.fullmatch(bare)) and len(bare) <= 20:
            separators[match[1]] = bare
            numbers[text] = int(re.sub(r"\D", "", bare))
        elif (match := _WHOLE.fullmatch(bare)) and len(bare) <= 20:
            numbers[text] = int(match[1])
        elif _BROKEN.fullmatch(bare):
            raise InputError(
                f"{where}: '{bare[:20]}' is no whole number; describe takes tables of counts; leave shares and "
                f"means out "
                "(--only COLUMN=CODE keeps the rows of one kind of number)"
            )
        else:
            marks.append(text)
            if len(marks) > MARKERS or len(text) > NAME_LENGTH or harmful(text) is not None:
                raise InputError(
                    f"{where}: '{bare[:20]}' stands instead of a number, and {len(marks) - 1:,} other texts; "
                    f"expected numbers, and at most {MARKERS} different marks of at most {NAME_LENGTH} letters that "
                    "can be printed"
                )
    if len(separators) > 1:
        one, two = list(separators.values())[:2]
        raise InputError(f"{where}: '{one}' and '{two}' separate thousands in two ways; expected one way")
    return Figures(numbers, tuple(marks), next(iter(separators), ""))


def common_base(numbers: Iterable[NDArray[np.float64]]) -> int:
    """The base of rounding that all numbers are multiples of; 1 if there is none, or too few numbers to tell."""
    some = np.concatenate([one[np.isfinite(one) & (one > 0)] for one in numbers] or [np.zeros(0)]).astype(np.int64)
    if len(some) < FEWEST:
        return 1
    divisor = int(np.gcd.reduce(some))
    return next((base for base in BASES if divisor % base == 0), 1)


@dataclass(frozen=True)
class Printed:
    """How far a printed number may be from the truth: not at all, by rounding, or by noise."""

    base: int = 1
    how: str = ""
    within: int = 0
    markers: Mapping[str, str] = field(default_factory=dict)
    missing: str = "zero"
    thousands: str = ""

    @property
    def exact(self) -> bool:
        return self.base == 1 and self.within == 0

    def slack(self, parts: int) -> int:
        """How far a sum of so many printed parts may be from the printed total."""
        return (parts + 1) * ((self.base - 1 if self.how != "nearest" else self.base // 2) + self.within)
