"""What is a table in a file that nobody wrote for us? Dimensions with codes and labels, and a row for each number.

Every format (delimited, Excel, SDMX, JSON-stat, PX, tau-Argus) is read into this one shape. What its columns mean in a
scenario, and what its marks mean in numbers, is decided elsewhere: a reader of a format guesses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import polars as pl

VALUE, STATUS, LINE = "value", "status", "line"  # the columns of a piece besides the dimensions
Role = Literal["", "geo", "time", "metric"]


@dataclass(frozen=True)
class Category:
    """One value of a dimension: its code in the rows, its label for people, and the code it is a part of, if told."""

    code: str
    label: str = ""
    parent: str = ""


@dataclass(frozen=True)
class Dimension:
    """A column that says what a number counts. `categories` are in the order of the file; none: not told by the file.

    `role` is what the file itself says of it: places, times, or kinds of number.
    """

    name: str
    label: str = ""
    categories: tuple[Category, ...] = ()
    role: Role = ""


@dataclass(frozen=True)
class Crossed:
    """A table as a file has it, not read yet.

    `pieces` gives frames of bounded size: a column of text for each dimension, with the codes as the file writes them;
    `value`, text as printed (null where there is none); `status`, a mark beside the value (null where there is none);
    `line`, where it stands in the file, for complaints (`where` makes words of it). `marks` is what the file itself
    says of its marks, in its own words.
    """

    path: Path
    title: str
    dimensions: tuple[Dimension, ...]
    pieces: Callable[[], Iterator[pl.DataFrame]]
    counted_in: str = "line"  # what a `line` is: a line, a row, an observation
    marks: Mapping[str, str] = field(default_factory=dict)

    def where(self, line: int) -> str:
        """A place in the file, in words."""
        return f"{self.path.name}, {self.counted_in} {line:,}"
