"""How many people of each kind live in each place? A matrix of counts, read from a file or counted from records.

A file has one row per place (its first column is the code, always text) and one column of whole numbers per combination
of attributes. From records, a combination is one value of every chosen column, its name the values joined with "_".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.errors import InputError
from glasshouse.files.frames import Chunk, Source, Watch, as_text, need_columns, open_source, refuse_control, unwatched
from glasshouse.text import harmful

PLACE = "geoid"  # the column of the code in frames of records
_MOST = 10**12  # convention 7
_MOST_ELEMENTS = 2 * 10**8  # 1.6 GB of numbers
_COUNT, _ROW = " count", " row"  # no column of a file begins with a blank
_GATHER = 2_000_000  # rows of partial counts to hold before they are added up


@dataclass(frozen=True)
class CountMatrix:
    """Counts of people: a row per combination of attributes, a column per place."""

    combinations: tuple[str, ...]
    places: tuple[str, ...]
    counts: NDArray[np.int64]

    def frame(self, place: str = "place") -> pl.DataFrame:
        """As the rows of a file: a place per row, its code in the column `place`."""
        codes = pl.Series(place, self.places, dtype=pl.String)
        return pl.DataFrame([codes, *map(pl.Series, self.combinations, self.counts)])


def read_matrix(path: Path, watch: Watch = unwatched) -> CountMatrix:
    """Read a matrix file: CSV, CSV.gz or Parquet, a row per place and a column per combination."""
    source = open_source(path)
    code, *combinations = source.columns
    if not combinations:
        raise InputError(
            f"{path.name}: only the column '{code}'; expected the places' codes in the first column, then a column of "
            "counts for each combination of attributes"
        )
    blank = next((number for number, name in enumerate(source.columns) if number and not name.strip()), None)
    if blank is not None:
        raise InputError(f"{path.name}: column {blank + 1} has no name; expected the name of a combination")
    faulty = next((number for number, name in enumerate(combinations, 2) if harmful(name) is not None), None)
    if faulty is not None:
        raise InputError(
            f"{path.name}: the name of column {faulty} has a control character; expected printable letters"
        )
    seen: dict[str, int] = {}
    parts = []
    for chunk in source.chunks():
        for place, line in _codes(source, chunk, code):
            if place in seen:
                raise InputError(
                    f"{source.where(line)}: place '{place[:40]}' stands in {source.counted_in} {seen[place]} already; "
                    "expected one row per place"
                )
            seen[place] = line
        parts.append(np.column_stack([_counts(source, chunk, name) for name in combinations]))
        watch(chunk.done)
    if not seen:
        raise InputError(f"{path.name}: a header and no rows; expected one row per place")
    return CountMatrix(tuple(combinations), tuple(seen), np.ascontiguousarray(np.concatenate(parts).T))


def _codes(source: Source, chunk: Chunk, name: str) -> Iterator[tuple[str, int]]:
    """The places of some rows, each with its line; refuses numbers and the first blank."""
    codes = _code_text(source, chunk, name)
    yield from zip(codes, range(chunk.first, chunk.first + len(codes)), strict=True)


def _code_text(source: Source, chunk: Chunk, name: str) -> pl.Series:
    column = chunk.frame[name]
    if column.dtype.is_numeric():
        raise InputError(
            f"{source.path.name}: column '{name}' holds numbers; codes are text, or their leading zeros are lost; "
            "write the column as text"
        )
    codes = column.str.strip_chars()
    blank = codes.is_null() | (codes == "")
    if blank.any():
        raise InputError(
            f"{source.where(chunk.first + int(blank.arg_max() or 0))}: the code of the place ('{name}') is empty; "
            "expected some text"
        )
    return refuse_control(source, chunk.first, codes)


def _counts(source: Source, chunk: Chunk, name: str) -> NDArray[np.int64]:
    """A column of whole numbers; refuses the first that is none, with its line."""
    given = chunk.frame[name]
    if given.dtype == pl.String:
        text = given.str.strip_chars()
        numbers = text.set(~text.str.contains(r"^[0-9]{1,15}$"), None).cast(pl.Int64)
    elif given.dtype.is_float():  # some programs make decimals of whole numbers
        whole = given.is_finite() & (given == given.round()) & (given.abs() <= _MOST)
        numbers = given.set(~whole.fill_null(False), None).cast(pl.Int64)
    else:
        numbers = given
    bad = (numbers.is_null() | ~numbers.is_between(0, _MOST)).fill_null(True)
    if bad.any():
        at = int(bad.arg_max() or 0)
        empty = given[at] is None or str(given[at]).strip() == ""
        found = "empty" if empty else f"'{str(given[at])[:20]}'"
        raise InputError(
            f"{source.where(chunk.first + at)}: column '{name}' is {found}; expected a whole number from 0 to {_MOST:,}"
        )
    return numbers.to_numpy()


def record_frames(
    path: Path, place: str, by: Sequence[str], watch: Watch = unwatched, *, person: str = ""
) -> Iterator[pl.DataFrame]:
    """The records of any file in pieces: the place's code from the column `place`, free text, and the columns `by`.

    No scenario is needed. A frame has the columns `geoid` and `by`, as text; and `person`, who it is, if it is known.
    """
    source = open_source(path)
    _check_choice(by, place, PLACE)
    if person in (*by, place):
        raise InputError(f"'{person}' says who it is; expected other columns for the place and the combination")
    need_columns(source, (place, *by), "the place and the columns that make up a combination")
    for chunk in source.chunks(dict.fromkeys((place, *by, *([person] if person else [])))):
        columns = [_code_text(source, chunk, place).alias(PLACE)]
        for name in by:
            values = refuse_control(source, chunk.first, _text(chunk.frame[name]))
            if values.null_count():
                raise InputError(
                    f"{source.where(chunk.first + int(values.is_null().arg_max() or 0))}: column '{name}' is empty; "
                    "expected a value of every record"
                )
            columns.append(values)
        if person:
            columns.append(_text(chunk.frame[person]))
        watch(chunk.done)
        yield pl.DataFrame(columns)


def matrix_of(
    frames: Iterable[pl.DataFrame],
    by: Sequence[str],
    *,
    place: str = PLACE,
    labels: Mapping[str, Sequence[str]] | None = None,
    every: bool = True,
) -> CountMatrix:
    """Count records by place and combination, piece by piece; places and values come in sorted order.

    `by` are columns of the frames, their values taken as text; `labels` names the levels of columns that hold level
    numbers. `every` takes all combinations of the values seen, as the paper's m does, not only those that occur.
    """
    _check_choice(by, place)
    labels = labels or {}
    keys, held, parts = [place, *by], 0, []
    for frame in frames:
        part = frame.select(keys).group_by(keys).len(_COUNT)
        parts.append(part)
        held += part.height
        if held > _GATHER:
            parts = [_added(parts, keys)]
            held = parts[0].height
    if not sum(part.height for part in parts):
        raise InputError("there are no records; nothing to count")
    counted = _added(parts, keys)
    names = [_named(counted[name], labels.get(name)) for name in by]
    counted = counted.with_columns(names).group_by(keys).agg(pl.col(_COUNT).sum())
    for name in keys:
        if counted[name].null_count():
            raise InputError(f"a record has no '{name}'; expected a value of every record")
    values = {name: _ordered(counted[name], labels.get(name)) for name in by}
    combinations = _combinations(counted, values, every=every)
    places = sorted(counted[place].unique().to_list())
    if len(places) * len(combinations) > _MOST_ELEMENTS:
        raise InputError(
            f"{len(combinations):,} combinations of {', '.join(by)} in {len(places):,} places make a matrix of more "
            f"than {_MOST_ELEMENTS:,} elements; choose fewer columns, or columns with fewer values"
        )
    rows = pl.DataFrame(combinations, dict.fromkeys(by, pl.String), orient="row").with_row_index(_ROW)
    row = counted.select(by).join(rows, on=by, how="left", maintain_order="left")[_ROW].to_numpy()
    column = counted[place].replace_strict(places, range(len(places)), return_dtype=pl.Int64).to_numpy()
    counts = np.zeros((len(combinations), len(places)), np.int64)
    counts[row, column] = counted[_COUNT].to_numpy()
    return CountMatrix(tuple("_".join(values) for values in combinations), tuple(places), counts)


def _check_choice(by: Sequence[str], *place: str) -> None:
    if not by:
        raise InputError("no columns chosen; expected at least one that makes up a combination, such as --by race")
    if len(set(by)) != len(by):
        raise InputError(f"a column is chosen twice: {', '.join(by)}; expected different columns")
    if set(by) & set(place):
        raise InputError(f"'{next(name for name in by if name in place)}' says the place; expected other columns")


def _added(parts: Sequence[pl.DataFrame], keys: Sequence[str]) -> pl.DataFrame:
    return pl.concat(parts).group_by(keys).agg(pl.col(_COUNT).cast(pl.Int64).sum())


def _text(column: pl.Series) -> pl.Series:
    """Values as text; a blank is null."""
    found = as_text(column).str.strip_chars()
    return found.set(found == "", None)


def _named(column: pl.Series, labels: Sequence[str] | None) -> pl.Series:
    if labels is None:
        return _text(column)
    return pl.Series(column.name, list(labels), dtype=pl.String).gather(column.cast(pl.Int64)).alias(column.name)


def _ordered(column: pl.Series, labels: Sequence[str] | None) -> list[str]:
    """The values seen: in the order of their labels, by number if all are numbers, else by the alphabet."""
    seen = column.unique().to_list()
    if labels is not None:
        return [label for label in labels if label in seen]
    numbers = all(value.isascii() and value.isdigit() for value in seen)
    return sorted(seen, key=lambda value: (int(value) if numbers else 0, value))


def _combinations(counted: pl.DataFrame, values: Mapping[str, Sequence[str]], *, every: bool) -> list[tuple[str, ...]]:
    by = list(values)
    if every:
        size = float(np.prod([len(seen) for seen in values.values()], dtype=float))
        if size > _MOST_ELEMENTS:
            raise InputError(f"{size:,.0f} combinations of {', '.join(by)}; choose fewer columns")
        found = list(product(*values.values()))
    else:
        rank = [{value: number for number, value in enumerate(seen)} for seen in values.values()]
        found = sorted(
            set(counted.select(by).iter_rows()),
            key=lambda row: [order[value] for order, value in zip(rank, row, strict=True)],
        )
    names: dict[str, tuple[str, ...]] = {}
    for combination in found:
        other = names.setdefault("_".join(combination), combination)
        if other != combination:
            raise InputError(
                f"two combinations of {', '.join(by)} have the same name '{'_'.join(combination)[:60]}'; "
                "expected values that stay apart when '_' joins them"
            )
    return found


def read_groups(path: Path, combinations: Sequence[str]) -> dict[str, str]:
    """Read which group each combination belongs to: the columns `combination` and `group`, a row per combination."""
    source = open_source(path)
    need_columns(source, ("combination", "group"), "an aggregation names each combination's group")
    known, groups = set(combinations), dict[str, str]()
    for chunk in source.chunks(("combination", "group")):
        names, wanted = (
            refuse_control(source, chunk.first, _text(chunk.frame[name])) for name in ("combination", "group")
        )
        for line, (name, group) in enumerate(zip(names, wanted, strict=True), start=chunk.first):
            if name is None or group is None:
                raise InputError(f"{source.where(line)}: a field is empty; expected a combination and its group")
            if name not in known:
                raise InputError(
                    f"{source.where(line)}: '{name[:60]}' is no combination of the matrix; expected such as "
                    f"'{combinations[0]}'"
                )
            if name in groups:
                raise InputError(f"{source.where(line)}: combination '{name[:60]}' stands twice; expected one group")
            groups[name] = group
    missing = next((name for name in combinations if name not in groups), None)
    if missing is not None:
        raise InputError(f"{path.name}: combination '{missing}' has no group; expected a row for every combination")
    return groups
