"""The job behind `glasshouse protect relocate`: records in, the same records out, some of them in other places."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from glasshouse.commands.words.protections import HOUSEHOLD, Relocated
from glasshouse.files.frames import open_source
from glasshouse.files.matrix import record_frames
from glasshouse.files.output import row_writer
from glasshouse.protection.relocation.front import Rules, Spread, front, moves
from glasshouse.protection.relocation.rules import Matrix, Moves


def relocate_file(
    records: Path,
    out: Path,
    matrix: Matrix,
    rules: Rules,
    by: tuple[str, ...],
    place: str,
    q: float,
    spread: Spread,
    seed: int,
) -> Relocated:
    """Write the records of a file with those who move in their new places; what was done."""
    rng = np.random.default_rng(seed)
    one = front(matrix, rules)
    point = one.at_share(q)
    drawn = moves(matrix, one.relocation(point, spread), rng)
    queues = _queues(matrix, drawn, rng)
    source = open_source(records)
    kinds = pl.read_parquet_schema(records) if records.name.lower().endswith(".parquet") else {}
    written, moved = 0, 0
    with row_writer(out) as writer:
        keyed = record_frames(records, place, by)
        for chunk in source.chunks():
            frame, there = _moved(chunk.frame, next(keyed), place, by, queues)
            writer.write(frame.cast({name: kind for name, kind in kinds.items() if name != place}))  # as they came
            written += frame.height
            moved += there
    excess = drawn.excess(rules.capacity)
    return Relocated(
        written, moved, point.P, point.U, one.method, int((excess > 0).sum()), float(excess.max(initial=0))
    )


def _queues(matrix: Matrix, drawn: Moves, rng: np.random.Generator) -> dict[tuple[str, str], list[str | None]]:
    """Of each element that anyone leaves: where its people go, or None, in an order drawn."""
    targets: dict[tuple[int, int], list[str | None]] = defaultdict(list)
    rows = zip(drawn.combination, drawn.source, drawn.target, drawn.count, strict=True)
    for combination, source, target, count in rows:
        targets[int(combination), int(source)] += [matrix.places[int(target)]] * int(count)
    found = {}
    for (combination, source), gone in sorted(targets.items()):
        stay = int(matrix.counts[combination, source]) - len(gone)
        everyone = [*gone, *([None] * stay)]
        found[matrix.combinations[combination], matrix.places[source]] = [
            everyone[at] for at in rng.permutation(len(everyone))
        ]
    return found


def _moved(
    frame: pl.DataFrame, keyed: pl.DataFrame, place: str, by: tuple[str, ...], queues: dict[Any, list[str | None]]
) -> tuple[pl.DataFrame, int]:
    """Some records, each in its place of now; a person who moved has no household any more."""
    names = keyed.select(pl.concat_str(by, separator="_")).to_series()
    codes = keyed["geoid"].to_list()
    moved = 0
    for at, key in enumerate(zip(names, codes, strict=True)):
        if key in queues:
            target = queues[key].pop()
            if target is not None:
                codes[at] = target
                moved += 1
    now = pl.Series(place, codes, dtype=pl.String)
    columns = [now.alias(place)]
    if HOUSEHOLD in frame.columns:
        stays = now == keyed["geoid"]
        columns.append(frame[HOUSEHOLD].set(~stays, None))
    return frame.with_columns(columns), moved
