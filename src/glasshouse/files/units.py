"""How are the records of several files brought together? Unit by unit, in the order of their codes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import polars as pl

from glasshouse.files.regroup import LIMIT_ROWS, by_key, regroup
from glasshouse.model.geography import Geography

Stream = Iterator[tuple[str, pl.DataFrame]]


def by_unit(frames: Iterable[pl.DataFrame], geography: Geography, near: Path, *, limit: int = LIMIT_ROWS) -> Stream:
    """The rows of each unit; which it is, the column `geoid` says. Every frame is read before the first comes out."""
    unit = pl.col("geoid").str.head(geography.lengths[geography.unit]).alias("unit")
    for group in regroup((frame.with_columns(unit) for frame in frames), "unit", limit=limit, near=near):
        yield from by_key(group, "unit")


def side_by_side(streams: Mapping[str, Stream]) -> Iterator[tuple[str, dict[str, pl.DataFrame]]]:
    """What each file has of a unit, by the name of the file; a file that has nothing of it is not there."""
    ahead = {name: first for name, stream in streams.items() if (first := next(stream, None)) is not None}
    while ahead:
        code = min(unit for unit, _ in ahead.values())
        found = {name: frame for name, (unit, frame) in ahead.items() if unit == code}
        yield code, found
        for name in found:
            following = next(streams[name], None)
            if following is None:
                del ahead[name]
            else:
                ahead[name] = following
