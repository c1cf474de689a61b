"""The job behind `glasshouse protect relocate`: records in, the same records out, some of them in other places."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from glasshouse.assess.front.choosing import Target, choose
from glasshouse.assess.front.released import Elements, protection_of, released
from glasshouse.assess.frontier import baselines
from glasshouse.commands.relocating.theta import read_theta, theta_frame
from glasshouse.commands.words.protections import HOUSEHOLD, Relocated
from glasshouse.files.frames import open_source
from glasshouse.files.matrix import record_frames
from glasshouse.files.output import row_writer
from glasshouse.protection.relocation.front import Relocation, Rules, Spread, front, moves, protection, utility
from glasshouse.protection.relocation.rules import Matrix, Moves


@dataclass(frozen=True, eq=False)
class Chances:
    """Who moves where, with which chance: at a point of a front, or from a file."""

    relocation: Relocation
    P: float
    U: float
    q: float
    method: str

    @classmethod
    def at(cls, matrix: Matrix, rules: Rules, target: Target, spread: Spread) -> Chances:
        """At a point of the front."""
        one = front(matrix, rules)
        chosen = choose(one, target, spread)
        return cls(one.relocation(chosen.point, spread), chosen.point.P, chosen.point.U, chosen.q, one.method)

    @classmethod
    def read(cls, path: Path, matrix: Matrix, rules: Rules, q: float | None) -> Chances:
        """From a file of chances; P and U are counted afresh."""
        found, of = read_theta(path, matrix, rules.risk, q)
        return cls(found, protection(matrix, rules.weight, found), utility(matrix, found), of, "theta")


def relocate_file(
    records: Path,
    out: Path,
    matrix: Matrix,
    rules: Rules,
    by: tuple[str, ...],
    place: str,
    chances: Chances,
    seed: int,
    theta: Path | None = None,
) -> Relocated:
    """Write the records of a file with those who move in their new places; what was done. `theta`: the chances, too."""
    rng = np.random.default_rng(seed)
    drawn = moves(matrix, chances.relocation, rng)
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
    if theta is not None:
        with row_writer(theta) as writer:
            writer.write(theta_frame(matrix, chances.relocation, int(rules.risk), chances.q))
    excess = drawn.excess(rules.capacity)
    now, (tau, phi) = elements_of(matrix, drawn), baselines(matrix)
    counted = released(now)
    return Relocated(
        written, moved, chances.P, chances.U, chances.q, chances.method, int((excess > 0).sum()),
        float(excess.max(initial=0)), protection_of(now, rules), counted.utility, tau, counted.tau, phi, counted.phi,
    )  # fmt: skip


def elements_of(matrix: Matrix, drawn: Moves) -> Elements:
    """The elements before and after moves: who stayed is known."""
    stayed, came = matrix.counts.copy(), np.zeros_like(matrix.counts)
    np.subtract.at(stayed, (drawn.combination, drawn.source), drawn.count)
    np.add.at(came, (drawn.combination, drawn.target), drawn.count)
    return Elements(matrix.counts, stayed + came, stayed, matrix.cells)


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
