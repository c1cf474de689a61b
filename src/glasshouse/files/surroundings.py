"""What else is known of places? Capacities, coordinates, and which are near each other, from files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.spatial import cKDTree

from glasshouse.errors import InputError
from glasshouse.files.frames import open_source

Floats = NDArray[np.float64]


def numbers_of(path: Path, places: Sequence[str], columns: Sequence[str], *, least: float = -np.inf) -> Floats:
    """Numbers of each place from a file whose first column is the place's code; a row for each of the places."""
    source = open_source(path)
    for name in columns:
        if name not in source.columns:
            raise InputError(f"{path.name}: column '{name}' is missing; found: {source.told}")
    code = source.columns[0]
    known: dict[str, tuple[float, ...]] = {}
    for chunk in source.chunks(dict.fromkeys((code, *columns))):
        if chunk.frame[code].dtype.is_numeric():
            raise InputError(f"{path.name}: column '{code}' holds numbers; codes are text; write the column as text")
        values = chunk.frame.select(pl.col(columns).cast(pl.Float64, strict=False))
        for at, (place, row) in enumerate(zip(chunk.frame[code], values.iter_rows(), strict=True)):
            if place in known:
                raise InputError(f"{source.where(chunk.first + at)}: the place '{place}' is there twice; expected once")
            if any(value is None or not np.isfinite(value) or value < least for value in row):
                wanted = "a number" if least == -np.inf else f"a number from {least:g}"
                raise InputError(f"{source.where(chunk.first + at)}: {', '.join(columns)}: expected {wanted}")
            known[str(place)] = row
    extra = sorted(known.keys() - set(places))
    if extra:
        raise InputError(f"{path.name}: '{extra[0]}' is no place of the matrix")
    missing = next((place for place in places if place not in known), None)
    if missing is not None:
        raise InputError(f"{path.name}: the place '{missing}' is missing; expected a row for every place")
    return np.array([known[place] for place in places], np.float64).reshape(len(places), len(columns))


def neighbours_of(path: Path, places: Sequence[str]) -> csr_array:
    """Which places are near each other, from a file of pairs (two columns of codes); both ways."""
    source = open_source(path)
    if len(source.columns) < 2:
        raise InputError(f"{path.name}: expected two columns, the codes of places that are near each other")
    first, second = source.columns[:2]
    position = {place: number for number, place in enumerate(places)}
    ends: list[tuple[int, int]] = []
    for chunk in source.chunks((first, second)):
        for at, pair in enumerate(chunk.frame.select(pl.col(first, second).cast(pl.String)).iter_rows()):
            unknown = next((place for place in pair if place not in position), None)
            if unknown is not None:
                raise InputError(f"{source.where(chunk.first + at)}: '{unknown}' is no place of the matrix")
            ends.append((position[pair[0]], position[pair[1]]))
    rows, columns = np.array(ends, np.int64).reshape(-1, 2).T
    near = csr_array((np.ones(len(rows), np.bool_), (rows, columns)), shape=(len(places), len(places)))
    return near.maximum(near.T)


def within(coordinates: Floats, distance: float) -> csr_array:
    """Which places are at most so far apart, in the units of the coordinates."""
    if not distance > 0:
        raise InputError(f"--within {distance:g}: expected a distance above 0, in the units of the coordinates")
    tree = cKDTree(coordinates)
    found: csr_array = csr_array(tree.sparse_distance_matrix(tree, distance) > 0)
    return found
