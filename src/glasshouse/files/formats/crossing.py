"""How do numbers in the order of their crossings become rows? JSON-stat and PX list them so, the last one fastest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.errors import InputError
from glasshouse.files.crossed import LINE, STATUS, VALUE, Category, Dimension
from glasshouse.limits import CATEGORIES, CROSSINGS, DIMENSIONS, NAME_LENGTH
from glasshouse.text import harmful, plain

PIECE_ROWS = 250_000


def shown(text: str, letters: int = NAME_LENGTH) -> str:
    """What a file says, for a complaint: not too much of it, and in one line."""
    return plain(text[:letters])


def size_of(where: str, dimensions: Sequence[Dimension]) -> int:
    """How many numbers all crossings have; more than anybody publishes are refused."""
    size = prod(len(one.categories) for one in dimensions)
    if size > CROSSINGS:
        raise InputError(f"{where}: {size:,} crossings of categories; expected at most {CROSSINGS:,}")
    return size


def frame(
    dimensions: Sequence[Dimension],
    at: NDArray[np.int64],
    values: Sequence[str | None],
    statuses: Sequence[str | None] | None = None,
    lines: NDArray[np.int64] | None = None,
) -> pl.DataFrame:
    """Rows for the crossings with these numbers, counted from 0; a `line` is the number of the crossing from 1."""
    columns: list[pl.Series] = []
    rest = at
    for one in reversed(dimensions):
        rest, code = np.divmod(rest, len(one.categories))
        codes = pl.Series(one.name, [category.code for category in one.categories], dtype=pl.String)
        columns.append(codes.gather(code))
    columns.reverse()
    marks = pl.Series(STATUS, statuses, dtype=pl.String) if statuses is not None else None
    return pl.DataFrame(
        [
            *columns,
            pl.Series(VALUE, values, dtype=pl.String),
            pl.repeat(None, len(at), dtype=pl.String, eager=True).alias(STATUS) if marks is None else marks,
            pl.Series(LINE, at + 1 if lines is None else lines, dtype=pl.Int64),
        ]
    )


def checked(where: str, dimensions: Sequence[Dimension]) -> tuple[Dimension, ...]:
    """Refuse what no table has: no dimension or too many, names or codes that stand twice or cannot be printed."""
    if not 1 <= len(dimensions) <= DIMENSIONS:
        raise InputError(f"{where}: {len(dimensions)} dimensions; expected 1 to {DIMENSIONS}")
    if sum(len(one.categories) for one in dimensions) > CATEGORIES:
        raise InputError(f"{where}: more than {CATEGORIES:,} categories of its dimensions")
    _refuse_double(where, "dimension", [one.name for one in dimensions])
    for one in dimensions:
        if one.name in (VALUE, STATUS, LINE):
            raise InputError(
                f"{where}: a dimension is called '{one.name}', which is the name of a column of numbers; rename it"
            )
        _refuse_double(where, f"code of '{shown(one.name)}'", [category.code for category in one.categories])
    return tuple(
        replace(one, label=_printable(one.label), categories=tuple(_told(category) for category in one.categories))
        for one in dimensions
    )


def _told(category: Category) -> Category:
    return replace(category, label=_printable(category.label)) if harmful(category.label) else category


def _printable(text: str) -> str:
    """A label in one line; what cannot be printed is spelt out."""
    return plain(" ".join(text.split()))


def _refuse_double(where: str, what: str, names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        wrong = "is empty" if not name else "stands twice" if name in seen else ""
        if not wrong and harmful(name):
            wrong = f"has the control character {harmful(name)}"
        if wrong or len(name) > 2_000:
            raise InputError(
                f"{where}: the {what} '{shown(name)}' {wrong or 'is too long'}; expected different, printable "
                "names; mend the file"
            )
        seen.add(name)


def named(codes: Sequence[str], labels: dict[str, str], parents: dict[str, str]) -> tuple[Category, ...]:
    """Categories from codes, what they are called, and what they are parts of."""
    return tuple(Category(code, labels.get(code, ""), parents.get(code, "")) for code in codes)
