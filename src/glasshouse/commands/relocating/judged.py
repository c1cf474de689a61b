"""How do other files stand beside a front? Any protected version of the data: read, set against it, and counted."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from glasshouse.assess.front.released import Elements
from glasshouse.errors import InputError
from glasshouse.files.frames import open_source
from glasshouse.files.matrix import PLACE, matrix_of, read_matrix, record_frames
from glasshouse.protection.relocation.rules import Matrix

BY_NAME, AT_MOST = "by name", "at most"  # how it is known who stayed
_KIND, _PERSON, _MANY = " kind", " person", " many"


def elements(
    data: Path, matrix: Matrix, other: Path, by: Sequence[str], place: str, person: str = ""
) -> tuple[Elements, str]:
    """The elements of the data and of a protected version of them, and how it is known who stayed."""
    if not by:
        found = read_matrix(other)
        return Elements.nameless(matrix, Matrix(found.combinations, found.places, found.counts)), AT_MOST
    counted = matrix_of(record_frames(other, place, by), by)
    after = Matrix(counted.combinations, counted.places, counted.counts)
    whole = Elements.nameless(matrix, after)
    if not person or person not in open_source(other).columns:
        return whole, AT_MOST
    named = [_named(path, place, by, person) for path in (data, other)]
    keys = [_KIND, PLACE]
    both = named[0].join(named[1], on=[*keys, _PERSON], suffix=" after")
    same = both.group_by(keys).agg(pl.min_horizontal(_MANY, f"{_MANY} after").sum().alias(_MANY))
    rows = {name: number for number, name in enumerate(dict.fromkeys((*matrix.combinations, *after.combinations)))}
    columns = {name: number for number, name in enumerate(dict.fromkeys((*matrix.places, *after.places)))}

    def counts(frame: pl.DataFrame) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
        summed = frame.group_by(keys).agg(pl.col(_MANY).sum())
        grid = np.zeros((len(rows), len(columns)), np.int64)
        for kind, code, many in summed.select(*keys, _MANY).iter_rows():
            grid[rows[kind], columns[code]] = many
        return grid

    nameless = np.minimum(whole.before - counts(named[0]), whole.after - counts(named[1]))
    return Elements(whole.before, whole.after, counts(same) + nameless, matrix.cells), BY_NAME


def _named(path: Path, place: str, by: Sequence[str], person: str) -> pl.DataFrame:
    """How many records each name has in each element; people without a name are left out."""
    if person not in open_source(path).columns:
        raise InputError(f"--person {person}: {path.name} has no such column")
    parts = [
        frame.select(pl.concat_str(by, separator="_").alias(_KIND), PLACE, pl.col(person).alias(_PERSON))
        .filter(pl.col(_PERSON).is_not_null())
        .group_by(_KIND, PLACE, _PERSON)
        .len(_MANY)
        for frame in record_frames(path, place, by, person=person)
    ]
    frame = pl.concat(parts)
    return frame.group_by(_KIND, PLACE, _PERSON).agg(pl.col(_MANY).cast(pl.Int64).sum())
