"""A file format of one's own, in one file: a record a line, `column=value` between semicolons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl

from glasshouse.files.frames import Chunk, Source, add_format


def opened(path: Path) -> Source:
    """Look at the first line: it names every column."""
    with path.open(encoding="utf-8") as stream:
        names = [field.partition("=")[0] for field in stream.readline().strip().split(";")]
    return Source(path, tuple(names), "line", pieces=pieces)


def pieces(source: Source, wanted: Sequence[str]) -> Iterator[Chunk]:
    """All lines at once, as text."""
    lines = source.path.read_text(encoding="utf-8").splitlines()
    rows = [dict(field.split("=", 1) for field in line.split(";")) for line in lines]
    yield Chunk(pl.DataFrame(rows, schema=dict.fromkeys(source.columns, pl.String)).select(wanted), 1, 1.0)


add_format(".pairs", opened)
