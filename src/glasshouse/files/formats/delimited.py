"""How is a table in CSV or Parquet read that nobody wrote for us? A column of numbers, or categories over columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import polars as pl

from glasshouse.errors import InputError
from glasshouse.files.crossed import LINE, STATUS, VALUE, Category, Crossed, Dimension
from glasshouse.files.frames import Chunk, Source, as_text, open_source

VALUES = ("value", "count", "obs_value")  # how a column of numbers is called, in any case
STATUSES = ("status", "obs_status")
ENDS = ("lower", "upper")
OVER = "column"  # the dimension whose categories stand over columns of numbers
ROWS_AT_ONCE = 250_000


@dataclass(frozen=True)
class Columns:
    """Which columns of a file hold its numbers, and what stands beside them."""

    dimensions: tuple[str, ...]
    values: tuple[str, ...]  # one; or several, named by the categories of a dimension
    status: str | None
    ends: bool = False  # the values are a lower and an upper end

    @property
    def over(self) -> bool:
        return len(self.values) > 1 and not self.ends


def read(path: Path, value: str = "", status: str = "", over: Collection[str] = ()) -> Crossed:
    """A tidy table (a column of numbers, and one for each dimension), or one with categories over its columns.

    `value` and `status` name the columns; without, they are found by their usual names. Where there is no such column,
    the columns `over` which categories are known to stand, or else the last that hold numbers, are categories of one
    dimension, `column`.
    """
    source = open_source(path)
    columns = _columns(source, value, status, over)
    for name in columns.dimensions:
        if name in (VALUE, STATUS, LINE, OVER):
            raise InputError(f"{path.name}: a column '{name}' besides the numbers; expected another name for it")
    dimensions = tuple(Dimension(name) for name in columns.dimensions)
    if columns.over:
        dimensions += (Dimension(OVER, categories=tuple(Category(name) for name in columns.values)),)
    return Crossed(path, path.stem, dimensions, partial(_pieces, source, columns), source.counted_in)


def holds_numbers(source: Source) -> bool:
    """Is a column called as columns of numbers are? So it is in tables, and not in records."""
    names = {name.casefold() for name in source.columns}
    return bool(names & set(VALUES)) or names >= set(ENDS)


def _columns(source: Source, value: str, status: str, over: Collection[str]) -> Columns:
    names = source.columns
    for role, given in (("value", value), ("status", status)):
        if given and given not in names:
            raise InputError(f"{source.path.name}: no column '{given}' (the {role}); found: {source.told}")
    several = [name for name in names if name.casefold() in VALUES]
    if not value and len(several) > 1:
        raise InputError(
            f"{source.path.name}: {' and '.join(several)} may both hold the numbers; say which ([files] value = ...)"
        )
    marks = status or next((name for name in names if name.casefold() in STATUSES), None)
    chosen = value or (several[0] if several else "")
    if chosen:
        rest = tuple(name for name in names if name not in (chosen, marks))
        return Columns(rest, (chosen,), marks)
    ends = [name for end in ENDS for name in names if name.casefold() == end]
    if len(ends) == 2:
        return Columns(tuple(name for name in names if name not in (*ends, marks)), tuple(ends), marks, ends=True)
    numbers = tuple(name for name in names if name in over) or _numbers_last(source)
    if len(numbers) < 2 or len(numbers) == len(names):
        raise InputError(
            f"{source.path.name}: no column of numbers is called value, count or obs_value; say which it is ([files] "
            f"value = ...); found: {source.told}"
        )
    return Columns(tuple(name for name in names if name not in numbers), numbers, None)


def _numbers_last(source: Source) -> tuple[str, ...]:
    """The last columns of which at least half of the first values are numbers."""
    head: Chunk | None = next(iter(source.chunks()), None)
    found: list[str] = []
    for name in reversed(source.columns if head is not None else ()):
        column = head.frame[name].head(1000).cast(pl.String).str.strip_chars() if head is not None else pl.Series()
        if not len(column) or 2 * int(column.str.contains(r"^-?[0-9][0-9., ]*$").fill_null(False).sum()) < len(column):
            break
        found.append(name)
    return tuple(reversed(found))


def _pieces(source: Source, columns: Columns) -> Iterator[pl.DataFrame]:
    wanted = [*columns.dimensions, *columns.values, *([columns.status] if columns.status else [])]
    for chunk in source.chunks(wanted):
        frame = chunk.frame.with_row_index(LINE, offset=chunk.first)
        for start in range(0, frame.height, ROWS_AT_ONCE):
            yield _piece(frame.slice(start, ROWS_AT_ONCE), columns)


def _piece(frame: pl.DataFrame, columns: Columns) -> pl.DataFrame:
    frame = frame.with_columns(as_text(frame[name]) for name in (*columns.dimensions, *columns.values))
    written: Callable[[str], pl.Expr] = lambda name: pl.col(name).cast(pl.String).str.strip_chars()  # noqa: E731
    dimensions = [written(name).fill_null("") for name in columns.dimensions]
    marks = (written(columns.status) if columns.status else pl.lit(None, pl.String)).alias(STATUS)
    line = pl.col(LINE).cast(pl.Int64)
    if columns.ends:
        lower, upper = columns.values
        ends = pl.concat_str(written(lower), pl.lit(".."), written(upper).fill_null(""))
        return frame.select(*dimensions, ends.alias(VALUE), marks, line)
    if not columns.over:
        return frame.select(*dimensions, written(columns.values[0]).alias(VALUE), marks, line)
    names: Sequence[str] = columns.values
    long = frame.select(*dimensions, *(written(name) for name in names), line).unpivot(
        names, index=[*columns.dimensions, LINE], variable_name=OVER, value_name=VALUE
    )
    return long.select(*columns.dimensions, OVER, VALUE, pl.lit(None, pl.String).alias(STATUS), LINE)
