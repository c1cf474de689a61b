"""Which place does a row speak of? A column with the whole code, or its parts in several columns."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from glasshouse.errors import InputError
from glasshouse.files.frames import Chunk, Source, open_source
from glasshouse.model.geography import Geography

_WHOLE = ("geoid", "geoid10", "geoid20", "geo_id", "geocode")


@dataclass(frozen=True)
class PlaceColumns:
    """The columns that hold a code, and the level it has (None: told by a `level` column or by its length)."""

    columns: tuple[tuple[str, int], ...]
    level: str | None

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.columns)


def place_columns(source: Source, geography: Geography) -> PlaceColumns:
    """Find the code in a file: a whole code under one of its usual names, or the finest that the columns make up."""
    actual = {name.lower(): name for name in source.columns}
    for name in _WHOLE:
        if name in actual:
            return PlaceColumns(((actual[name], 0),), None)
    found = [
        PlaceColumns(
            tuple((actual[name.lower()], width) for name, width in path),
            _level_of_length(geography, sum(width for _, width in path)),
        )
        for path in geography.compose
        if len(path) > 1 and all(name.lower() in actual for name, _ in path)
    ]
    found += [PlaceColumns(((actual[level], 0),), level) for level in geography.levels if level in actual]
    if found:
        return max(found, key=lambda place: geography.levels.index(place.level or ""))  # the first of equals
    parts = " ".join(name for name, _ in geography.compose[0]) if geography.compose else "none"
    raise InputError(
        f"{source.path.name}: no column says which place a row is about; expected '{geography.place}' or 'geoid' "
        f"(or the columns {parts}); found: {source.told}"
    )


def read_codes(source: Source, chunk: Chunk, place: PlaceColumns) -> pl.Series:
    """The codes of a chunk, as text, parts padded to their widths; not yet checked."""
    parts = []
    for name, width in place.columns:
        column = chunk.frame[name]
        if column.dtype.is_numeric() and not width:
            raise InputError(
                f"{source.path.name}: column '{name}' holds numbers; codes are text, or their leading zeros are lost; "
                "write the column as text"
            )
        parts.append(column.cast(pl.String).str.strip_chars().str.zfill(width).alias(name))
    whole = sum(width for _, width in place.columns)
    if len(parts) == 1 or parts[-1].str.len_bytes().min() == whole:  # the last column may hold the whole code already
        code = parts[-1]
    else:
        code = pl.DataFrame(parts).select(pl.concat_str(pl.all())).to_series()
    if code.name.lower() == "geo_id":
        code = code.str.replace(r"^.*US", "")  # the long form of the Census: 1000000US390599772003104
    return code.alias("geoid")


def check_codes(source: Source, first: int, codes: pl.Series, geography: Geography, level: str) -> None:
    """Refuse the first code that is not well formed at its level, with its line and the remedy."""
    if codes.null_count():
        line = first + int(codes.is_null().arg_max() or 0)
        raise InputError(f"{source.where(line)}: the {level} code is empty")
    if level in geography.lengths:
        wrong = (codes.str.len_bytes() != geography.lengths[level]) | ~codes.str.contains(r"^[0-9A-Za-z]*$")
        if wrong.any():
            line = int(wrong.arg_max() or 0)
            raise InputError(
                f"{source.where(first + line)}: {level} '{codes[line][:40]}' {geography.fault(codes[line], level)}"
            )


def listed_places(path: Path, geography: Geography) -> pl.Series:
    """The codes of a file that lists places, each once, in order."""
    source = open_source(path)
    columns = place_columns(source, geography)
    found = [pl.Series("geoid", dtype=pl.String)]
    for chunk in source.chunks(columns.names):
        codes = read_codes(source, chunk, columns)
        check_codes(source, chunk.first, codes, geography, geography.place)
        found.append(codes)
    return pl.concat(found).unique().sort()


def _level_of_length(geography: Geography, length: int) -> str:
    for level, size in geography.lengths.items():
        if size == length:
            return level
    raise InputError(f"the columns that make up a code give it {length} characters; no level has codes of that length")
