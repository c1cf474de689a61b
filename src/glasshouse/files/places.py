"""Which place does a row speak of? A column with the whole code, or its parts in several columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from glasshouse.errors import InputError
from glasshouse.files.frames import Chunk, Source, open_source
from glasshouse.model.geography import Geography

_WHOLE = ("geoid", "geoid10", "geoid20", "geo_id", "geocode")

# The Census Bureau's long codes: a summary level, a variant of it (not in surveys), a component, "US", and the code
# itself (1400000US17031010100, 14000US17031010100). Component 00 is all of an area; others are parts, urban or rural.
_LONG = r"^([0-9]{3})(?:[0-9A-Z]{2})?([0-9A-Z]{2})US([0-9].*)$"
_WHOLE_AREA = "00"
_LETTERS = {"040": 2, "050": 5, "140": 11, "150": 12, "100": 15, "101": 15, "750": 15}  # of codes, by summary level


@dataclass(frozen=True)
class PlaceColumns:
    """The columns that hold a code, and the level it has (None: told by a `level` column or by its length).

    What `others` of the same file say of the place must agree with it.
    """

    columns: tuple[tuple[str, int], ...]
    level: str | None
    length: int | None = None  # letters of a whole code, where the columns may hold something else
    others: tuple[PlaceColumns, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The columns to read, those of the code first."""
        every = [*self.columns, *(column for other in self.others for column in other.columns)]
        return tuple(dict.fromkeys(name for name, _ in every))

    @property
    def told(self) -> str:
        return " ".join(name for name, _ in self.columns)


def place_columns(source: Source, geography: Geography) -> PlaceColumns:
    """Find the code in a file: a whole code under one of its usual names, or the finest that the columns make up."""
    actual = {name.lower(): name for name in source.columns}
    whole = [PlaceColumns(((actual[name], 0),), None) for name in _WHOLE if name in actual]
    found = [
        PlaceColumns(
            tuple((actual[name.lower()], width) for name, width in path),
            _level_of_length(geography, sum(width for _, width in path)),
            sum(width for _, width in path),
        )
        for path in geography.compose
        if len(path) > 1 and all(name.lower() in actual for name, _ in path)
    ]
    found += [
        PlaceColumns(((actual[level], 0),), level, geography.lengths.get(level, 0))
        for level in geography.levels
        if level in actual
    ]
    if whole or found:
        ranked = sorted(found, key=lambda place: geography.levels.index(place.level or ""), reverse=True)
        chosen = [*whole, *ranked][0]  # the first of equals
        return replace(chosen, others=tuple(place for place in (*whole, *found) if place is not chosen))
    parts = " ".join(name for name, _ in geography.compose[0]) if geography.compose else "none"
    raise InputError(
        f"{source.path.name}: no column says which place a row is about; expected '{geography.place}' or 'geoid' "
        f"(or the columns {parts}); found: {source.told}"
    )


def read_codes(source: Source, chunk: Chunk, place: PlaceColumns) -> pl.Series:
    """The codes of a chunk, as text, parts padded to their widths; well formed or not, no other column contradicts."""
    codes = _codes(source, chunk, place)
    for other in place.others:
        if all(width or not chunk.frame[name].dtype.is_numeric() for name, width in other.columns):
            _refuse_another_place(source, chunk, (place, codes), (other, _codes(source, chunk, other)))
    return codes


def _refuse_another_place(
    source: Source, chunk: Chunk, one: tuple[PlaceColumns, pl.Series], two: tuple[PlaceColumns, pl.Series]
) -> None:
    """Refuse the first row whose columns name two places: neither of two whole codes begins with the other.

    A column with the name of a level may hold something else: the last digits of the code, or a name. So it is only
    looked at where it is as long as a code of that level, with letters and digits in the same places.
    """
    (place, codes), (other, beside) = one, two
    frame = pl.DataFrame([codes.alias("one"), beside.alias("two")])
    look = pl.col("one", "two").str.replace_all("[0-9]", "0").str.replace_all("[A-Za-z]", "A").name.suffix("-looks")
    whole = pl.lit(True) if other.length is None else pl.col("two").str.len_bytes() == other.length
    alike, agree = (
        pl.col(first).str.starts_with(pl.col(second)) | pl.col(second).str.starts_with(pl.col(first))
        for first, second in (("one-looks", "two-looks"), ("one", "two"))
    )
    wrong = frame.with_columns(look).select((whole & alike & ~agree).fill_null(False)).to_series()
    if wrong.any():
        at = int(wrong.arg_max() or 0)
        raise InputError(
            f"{source.where(chunk.first + at)}: {place.told} is '{codes[at][:40]}' and {other.told} is "
            f"'{beside[at][:40]}', which are two places; expected one, or remove the column that is not meant"
        )


def _codes(source: Source, chunk: Chunk, place: PlaceColumns) -> pl.Series:
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
    return short_codes(source, chunk.first, place.told, code).alias("geoid")


def short_codes(source: Source, first: int, told: str, codes: pl.Series) -> pl.Series:
    """Codes without the prefix of the long form, after what it says was compared with the code.

    Another summary level may have codes as long as ours: a ZIP code area is no county, and part of a tract no tract.
    """
    if codes.is_empty() or not codes.str.contains(_LONG).any():
        return codes
    long = pl.DataFrame([codes.alias("code"), codes.str.replace(_LONG, "${3}").alias("short")]).with_columns(
        level=pl.col("code").str.extract(_LONG, 1), component=pl.col("code").str.extract(_LONG, 2)
    )
    length = pl.col("level").replace_strict(_LETTERS, default=None, return_dtype=pl.UInt32)
    other, part = length.is_null(), pl.col("component") != _WHOLE_AREA
    unlike = pl.col("short").str.len_bytes() != length
    wrong = long.select(pl.col("level").is_not_null() & (other | part | unlike)).to_series().fill_null(False)
    if wrong.any():
        at = int(wrong.arg_max() or 0)
        level, component, short = long["level"][at], long["component"][at], long["short"][at]
        if level not in _LETTERS:
            known = ", ".join(_LETTERS)
            found = f"of summary level {level}; expected one of {known}; leave out rows of other kinds of area"
        elif component != _WHOLE_AREA:
            found = f"of component {component}, a part of an area; expected 00, all of it; leave out the parts"
        else:
            found = f"with {len(short)} characters after 'US'; expected {_LETTERS[level]} at summary level {level}"
        raise InputError(f"{source.where(first + at)}: {told} is '{codes[at][:40]}', {found}")
    return long["short"]


def check_codes(source: Source, first: int, codes: pl.Series, geography: Geography, level: str) -> None:
    """Refuse the first code that is not well formed at its level, with its line and the remedy."""
    if codes.null_count():
        line = first + int(codes.is_null().arg_max() or 0)
        raise InputError(f"{source.where(line)}: the {level} code is empty")
    if level in geography.lengths:
        wrong = (codes.str.len_bytes() != geography.lengths[level]) | ~codes.str.contains(r"^[0-9A-Za-z]*$")
    else:
        wrong = codes.is_in([code for code in codes.unique() if geography.fault(code, level) is not None])
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
