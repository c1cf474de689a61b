"""What becomes of the household file that belongs to swapped persons? The same moves, and nothing else.

The file is read twice: first who is in it and where, for the whole file, so that nothing is written if it does not fit
the persons; then everything, piece by piece, to be written as it came, with other places where a household moved.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.errors import InputError
from glasshouse.files.frames import Chunk, Source, need_columns, open_source
from glasshouse.files.output import RowWriter
from glasshouse.files.places import PlaceColumns, check_codes, read_codes
from glasshouse.model.geography import Geography
from glasshouse.scenarios.households import Household

Ints = NDArray[np.int64]

ANOTHER_SWAP = "published_{}"  # what an earlier swap made of the same households: the place under this name


@dataclass(frozen=True)
class Moves:
    """Where each household of the persons was and is now."""

    records: Source  # the file of the persons
    names: pl.Series  # identifiers of households, sorted
    line: Ints  # where the first member of each stands
    places: pl.Series  # codes, by number
    before: Ints
    after: Ints
    geography: Geography
    home: Household

    @property
    def place(self) -> str:
        return self.geography.place


def identifiers(source: Source, chunk: Chunk, name: str) -> pl.Series:
    """Identifiers of households as text; a blank is null. Numbers, some blank, may have been made decimals."""
    column = chunk.frame[name]
    if column.dtype.is_float():
        whole = column.cast(pl.Int64, strict=False)
        wrong = (column.is_not_null() & (whole.cast(pl.Float64) != column).fill_null(True)) | (column.abs() >= 2**53)
        if wrong.any():
            line = chunk.first + int(wrong.arg_max() or 0)
            raise InputError(f"{source.where(line)}: column '{name}' is a decimal; write the column as text")
        column = whole
    text = column.cast(pl.String).str.strip_chars()
    return text.set(text == "", None).alias(name)


def check_households(path: Path, moves: Moves) -> tuple[Source, int]:
    """The household file, if every household of the persons is in it once and in the same place; and its size."""
    source, household, place = open_source(path), moves.home.column, moves.place
    need_columns(source, [household, place], "it says which household moves with its persons")
    seen = np.zeros(len(moves.names), np.bool_)
    rows = 0
    for chunk in source.chunks([household, place]):
        codes = read_codes(source, chunk, PlaceColumns(((place, 0),), place))
        check_codes(source, chunk.first, codes, moves.geography, place)
        number = _numbers(moves, identifiers(source, chunk, household))
        at = np.flatnonzero(number >= 0)
        first = np.zeros(len(at), np.bool_)
        first[np.unique(number[at], return_index=True)[1]] = True
        again = at[~first | seen[number[at]]]
        if len(again):
            raise InputError(
                f"{source.where(chunk.first + int(again[0]))}: another line has the same {household}; expected a line "
                "for each household"
            )
        seen[number[at]] = True
        elsewhere = at[(codes.gather(at) != moves.places.gather(moves.before[number[at]])).to_numpy()]
        if len(elsewhere):
            line = moves.records.where(int(moves.line[number[elsewhere[0]]]))
            more = f" ({len(elsewhere) - 1:,} more lines like it)" if len(elsewhere) > 1 else ""
            raise InputError(
                f"{source.where(chunk.first + int(elsewhere[0]))}: this household is in another {place} than its "
                f"persons ({line}){more}; expected the households of these records, before any swap"
            )
        rows += chunk.frame.height
    if not seen.all():
        line = moves.records.where(int(moves.line[np.flatnonzero(~seen)[0]]))
        raise InputError(
            f"{source.path.name}: {int((~seen).sum()):,} of the {len(seen):,} households of the records are not in it, "
            f"the first that of {line}; expected a line for each (who lives in group quarters has "
            f"'{moves.home.quarters.column}' above 0 or no {household} in the records)"
        )
    return source, rows


def write_households(source: Source, writer: RowWriter, moves: Moves) -> None:
    """The household file as it came, in its order, with the new places of those that moved."""
    names = [name for name in source.columns if name != ANOTHER_SWAP.format(moves.place)]
    kinds = pl.read_parquet_schema(source.path) if source.counted_in == "row" else {}
    kinds = {name: kind for name, kind in kinds.items() if name in names and name != moves.place}
    for chunk in source.chunks(names):
        number = _numbers(moves, identifiers(source, chunk, moves.home.column))
        rows = np.flatnonzero((number >= 0) & (moves.before != moves.after)[number])
        place = chunk.frame[moves.place].clone().scatter(rows, moves.places.gather(moves.after[number[rows]]))
        writer.write(chunk.frame.with_columns(place).cast(kinds))  # type: ignore[arg-type]  # as they came


def _numbers(moves: Moves, names: pl.Series) -> Ints:
    """The number of each household among those of the persons; -1 for any other unit."""
    if not len(moves.names):
        return np.full(len(names), -1)
    at = moves.names.search_sorted(names.fill_null("")).to_numpy().astype(np.int64)
    at = np.minimum(at, len(moves.names) - 1)
    same = (moves.names.gather(at) == names).fill_null(False).to_numpy()
    return np.where(same, at, -1)
