"""How do rows in any order become whole places? Sorted runs on disk, merged a few places at a time.

Memory holds `limit` rows, however long the input; a file that fits is sorted in memory and touches no disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from glasshouse.errors import GlasshouseBug, InputError
from glasshouse.files.rooms import passing_folder

LIMIT_ROWS = 1_000_000
BATCH_ROWS = 16_384  # of a run on disk: what is read at once


def regroup(
    frames: Iterable[pl.DataFrame], key: str, *, limit: int = LIMIT_ROWS, near: Path | None = None
) -> Iterator[pl.DataFrame]:
    """Frames that hold every row of the keys in them, keys in increasing order, rows of a key in input order.

    Temporary files go to a private folder in `near` and are gone when the iterator ends, however it ends.
    """
    held: list[pl.DataFrame] = []
    rows = 0
    with ExitStack() as stack:
        runs: list[_Run] = []
        folder: Path | None = None
        for frame in frames:
            held.append(frame)
            rows += frame.height
            if rows >= limit:
                folder = folder or stack.enter_context(passing_folder(near))  # only once it is needed
                runs.append(_write_run(held, key, folder / f"run{len(runs):06d}.arrow"))
                held, rows = [], 0
        if folder is None:
            if rows:
                yield pl.concat(held).sort(key, maintain_order=True)
            return
        if rows:
            runs.append(_write_run(held, key, folder / f"run{len(runs):06d}.arrow"))
        held = []
        yield from _merge(runs, key, limit)


def by_key(frame: pl.DataFrame, key: str) -> Iterator[tuple[str, pl.DataFrame]]:
    """The rows of each key of a frame that is sorted by it."""
    lengths = frame.select(pl.col(key).rle()).unnest(key)
    start = 0
    for length, value in zip(lengths["len"], lengths["value"], strict=True):
        yield value, frame.slice(start, length)
        start += length


@dataclass(frozen=True)
class _Run:
    """Sorted rows on disk; `ends[i]` is where the rows of `keys[i]` end."""

    path: Path
    keys: pl.Series
    ends: NDArray[np.int64]


def _write_run(held: list[pl.DataFrame], key: str, path: Path) -> _Run:
    frame = pl.concat(held).sort(key, maintain_order=True)
    table = frame.rechunk().to_arrow().combine_chunks()  # in one piece, so that every batch but the last is full
    try:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            for batch in table.to_batches(max_chunksize=BATCH_ROWS):
                writer.write_batch(batch)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        raise InputError(f"{path.parent}: no sorted part of the input can be written there ({why})") from None
    runs = frame.select(pl.col(key).rle()).unnest(key)
    return _Run(path, runs["value"], np.cumsum(runs["len"].to_numpy(), dtype=np.int64))


def _merge(runs: list[_Run], key: str, limit: int) -> Iterator[pl.DataFrame]:
    """Cut the keys into consecutive ranges of about `limit` rows and gather each range from all runs."""
    lengths = [pl.DataFrame({key: run.keys, "rows": np.diff(run.ends, prepend=0)}) for run in runs]
    sizes = pl.concat(lengths).group_by(key).agg(pl.col("rows").sum()).sort(key)
    band = (pl.col("rows").cum_sum() - 1) // limit
    lasts = sizes.group_by(band.alias("band"), maintain_order=True).agg(pl.col(key).last())[key]
    starts = [0] * len(runs)
    with ExitStack() as stack:
        readers = [pa.ipc.open_file(stack.enter_context(pa.OSFile(str(run.path)))) for run in runs]
        for last in lasts:
            pieces = []
            for index, run in enumerate(runs):
                known = int(run.keys.search_sorted(last, side="right"))
                end = int(run.ends[known - 1]) if known else 0
                pieces.append(_slice(readers[index], starts[index], end))
                starts[index] = end
            yield pl.concat(pieces).sort(key, maintain_order=True)


def _slice(reader: pa.ipc.RecordBatchFileReader, start: int, end: int) -> pl.DataFrame:
    """Some rows of a run; only the batches that hold them are read."""
    first, last = start // BATCH_ROWS, max(start, end - 1) // BATCH_ROWS
    batches = [reader.get_record_batch(number) for number in range(first, min(last + 1, reader.num_record_batches))]
    table = pa.Table.from_batches(batches, reader.schema)
    rows = cast(pl.DataFrame, pl.from_arrow(table.slice(start - first * BATCH_ROWS, end - start)))
    if rows.height != end - start:
        raise GlasshouseBug(f"a run on disk gave {rows.height} of {end - start} rows")
    return rows
