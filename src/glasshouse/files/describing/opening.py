"""Which column holds the numbers? Delimited files and Parquet are opened here; every other format by its own reader."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from glasshouse.errors import InputError, unknown
from glasshouse.files.crossed import LINE, STATUS, VALUE, Category, Crossed, Dimension
from glasshouse.files.describing.asking import Inquiry
from glasshouse.files.formats import crossed, says_itself
from glasshouse.files.formats.delimited import OVER
from glasshouse.files.frames import Source, as_text, of_columns, open_source
from glasshouse.limits import DIMENSIONS
from glasshouse.scenarios.elsewhere import scenarios_with_columns

VALUES = ("obs_value", "value", "values", "count", "counts", "number", "persons", "people", "population")
STATUSES = ("obs_status", "status", "flag", "flags", "obs_flag", "symbol", "observation status")
OVER_COLUMNS = re.compile(r"(?P<dimension>[^:;]+): (?P<category>[^;]+?)(?:; ?measures: ?(?:value|count))?", re.I)
RECORDS = (
    "if its rows are records (one for each person), count them first with glasshouse tabulate; if it is a table, name "
    "the column of its numbers: --value COLUMN (or those of all categories: --value COLUMN,COLUMN)"
)


def opened(path: Path, inquiry: Inquiry) -> tuple[Crossed, ...]:
    """The tables of a file, not read yet."""
    if of_columns(path) and not says_itself(path):
        return (_delimited(path, inquiry),)
    return crossed(path)


def _delimited(path: Path, inquiry: Inquiry) -> Crossed:
    """A file of columns: one of them the numbers, or several that are the categories of a dimension."""
    source = open_source(path)
    answers = inquiry.answers
    asked = [name.strip() for name in answers.value.split(",") if name.strip()]
    for name in (*asked, *filter(None, [answers.status])):
        if name not in source.columns and not _elsewhere(name):
            raise unknown(f"column of {path.name}", name, source.columns)
    status = answers.status or _named(source.columns, STATUSES)
    over = {name: match for name in source.columns if (match := OVER_COLUMNS.fullmatch(name))}
    if len(asked) > 1:
        return _over_columns(source, "", {name: name for name in asked})
    if not asked and len(over) > 1 and len({match["dimension"] for match in over.values()}) == 1:
        dimension = next(iter(over.values()))["dimension"].strip()
        return _over_columns(source, dimension, {name: match["category"].strip() for name, match in over.items()})
    value = asked[0] if asked else _named(source.columns, VALUES) or _numeric(source, inquiry)
    dimensions = tuple(Dimension(name) for name in _named_columns(source) if name not in (value, status))
    inquiry.values.append(value)
    inquiry.statuses += [status] if status else []

    def pieces() -> Iterator[pl.DataFrame]:
        for chunk in source.chunks():
            frame = chunk.frame
            yield frame.select(
                *(as_text(frame[one.name]) for one in dimensions),
                as_text(frame[value]).alias(VALUE),
                as_text(frame[status]).alias(STATUS) if status else pl.lit(None, pl.String).alias(STATUS),
                pl.int_range(chunk.first, chunk.first + frame.height).alias(LINE),
            )

    return Crossed(path, path.name, _safe(path, dimensions), pieces, source.counted_in)


def _over_columns(source: Source, dimension: str, categories: dict[str, str]) -> Crossed:
    """A table with a category over each column of numbers, brought into one row for each number."""
    rest = [name for name in _named_columns(source) if name not in categories]
    over = tuple(Category(name, label) for name, label in categories.items())
    dimensions = (*(Dimension(name) for name in rest), Dimension(OVER, dimension, over))

    def pieces() -> Iterator[pl.DataFrame]:
        for chunk in source.chunks([*rest, *categories]):
            frame = pl.DataFrame([as_text(column) for column in chunk.frame.get_columns()])
            frame = frame.with_columns(pl.int_range(chunk.first, chunk.first + frame.height).alias(LINE))
            long = frame.unpivot(list(categories), index=[*rest, LINE], variable_name=OVER, value_name=VALUE)
            yield long.with_columns(pl.lit(None, pl.String).alias(STATUS))

    return Crossed(source.path, source.path.name, _safe(source.path, dimensions), pieces, source.counted_in)


def _safe(path: Path, dimensions: Sequence[Dimension]) -> tuple[Dimension, ...]:
    if len(dimensions) > DIMENSIONS:
        raise InputError(
            f"{path.name}: {len(dimensions):,} columns besides its numbers; expected at most {DIMENSIONS}: name all "
            "columns of numbers (--value COLUMN,COLUMN), or keep only those that matter in the file"
        )
    taken = [one.name for one in dimensions if one.name in (VALUE, STATUS, LINE)]
    if taken:
        raise InputError(f"{path.name}: column '{taken[0]}' cannot be a dimension; rename it")
    return tuple(dimensions)


def _named_columns(source: Source) -> list[str]:
    """Without a name are the numbers of rows in a data frame, and what follows a comma at the end of each line."""
    return [name for name in source.columns if name]


def _elsewhere(name: str) -> bool:
    """May a column stand in another of the files? Formats with names of their own have these."""
    return name.lower() in (*VALUES, *STATUSES)


def _named(columns: Sequence[str], names: Sequence[str]) -> str:
    return next((column for name in names for column in columns if column.strip().lower() == name), "")


def _numeric(source: Source, inquiry: Inquiry) -> str:
    """The only column of numbers among those that have no name we know; asked for, and none if there are several."""
    chunk = next(source.chunks(), None)
    if chunk is None or chunk.frame.height == 0:
        raise InputError(f"{source.path.name} has a header and no rows; expected a row for each number")
    texts = {name: as_text(chunk.frame[name]).drop_nulls() for name in _named_columns(source)}
    whole = {name: text.str.contains(r"^\s*\d[\d,.' ]*\s*$") for name, text in texts.items()}
    candidates = [name for name, found in whole.items() if 2 * found.sum() > len(found)]
    told = ", ".join(candidates[:8]) or "none"
    if len(candidates) != 1:
        known = scenarios_with_columns(source.columns)
        if known:
            named = f"its columns are variables of scenario {' and '.join(known)}"
            remedy = f"it needs no describing: say --scenario {known[0]} to check, bounds and the others"
            raise InputError(f"{source.path.name}: {named}; {remedy} (or --value COLUMN,COLUMN for some of them)")
        raise InputError(
            f"{source.path.name}: no column is called {', '.join(VALUES[:4])}, and columns of whole numbers "
            f"are: {told}; "
            f"{RECORDS}"
        )
    inquiry.ask(
        f"{source.path.name}: the numbers seem to stand in the column '{candidates[0]}'",
        f"--value '{candidates[0]}'",
        candidates[0],
    )
    return candidates[0]
