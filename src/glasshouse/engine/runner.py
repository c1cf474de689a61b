"""How is an attack run over a whole file? Unit by unit: sent out, kept in a ledger, put together at the end.

A unit (a tract) is small and independent; its answer depends on its numbers, the job and the seed alone. So units may
be done in any order, by any number of workers, today or tomorrow after a crash: the files that come out are the same.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl

from glasshouse.engine.job import Asked, Work
from glasshouse.engine.ledger import Entry, Ledger, Refusal
from glasshouse.engine.progress import Bar
from glasshouse.engine.unit import do
from glasshouse.engine.workers import Crew, work_through
from glasshouse.errors import GlasshouseBug
from glasshouse.files.output import RowWriter, row_writer
from glasshouse.model.geography import Geography, plural
from glasshouse.program.search import is_compiled

READING = 0.1  # the share of the work, for the progress bar
ROW_GROUP = 100_000  # rows that a data file is written in at once
Order = tuple[str, tuple[str, ...]]  # a column, and its values: all rows with the first one first, and so on


@dataclass
class Tally:
    """How far a run is."""

    units: int = 0
    places: int = 0
    earlier: int = 0  # units that an earlier run had finished
    refused: dict[str, Refusal] = field(default_factory=dict)
    bugs: int = 0
    clocked: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    cpu: float = 0.0  # seconds of other processes

    def add(self, entry: Entry) -> None:
        notes = entry.notes
        self.units += 1
        self.places += notes.places
        self.cpu += notes.cpu if notes.process != os.getpid() else 0.0
        self.counts.update(notes.counts)
        if notes.refused is not None:
            self.refused[entry.unit] = notes.refused
        self.bugs += notes.bug
        if notes.clock:
            self.clocked.append(entry.unit)

    @property
    def complete(self) -> bool:
        """Nothing is left that another run could do better."""
        return not self.bugs and not self.clocked


class Pace:
    """Tells a bar how far a run is, how fast, and how much of it is proved."""

    def __init__(self, bar: Bar, geography: Geography) -> None:
        self.bar, self.geography = bar, geography
        self.units, self.began = 0, time.perf_counter()
        self.before: int | None = None

    def begin(self, units: int) -> None:
        """The file has been read: so many units there are."""
        self.units = units
        self.bar(READING, "starting")

    def reading(self, share: float) -> None:
        """The file is read first: releases come after half of what it tells."""
        if not self.units:
            self.bar(READING * min(2 * share, 1.0), "reading")

    def __call__(self, tally: Tally) -> None:
        if self.before is None:
            self.began, self.before = time.perf_counter(), tally.places
        fresh, elapsed = tally.places - self.before, time.perf_counter() - self.began
        said = f"{tally.places:,} {plural(self.geography.place)}"
        if fresh and elapsed > 0:
            said += f", {fresh / elapsed:,.0f}/s"
        if tally.counts["proved"]:
            said += f", {tally.counts['proved'] / max(tally.counts['populated'], 1):.2%} proved"
        if tally.refused:
            said += f", {len(tally.refused):,} refused"
        self.bar(READING + (1 - READING) * tally.units / max(self.units, 1), said)


def run(
    job: Any,
    work: Work,
    kinds: Mapping[str, pl.Schema],
    items: Iterable[Asked],
    ledger: Ledger,
    crew: Crew,
    watch: Callable[[Tally], None],
) -> Tally:
    """Do the units that are not done yet; every answer is in the ledger before the next is taken.

    The work gives frames of these `kinds`; from another machine no others are taken.
    """
    tally = Tally()
    finished = ledger.finished()

    def left() -> Iterator[Asked]:
        for item in items:
            if item.code in finished:
                tally.earlier += 1
                tally.add(ledger.read(item.code))
                watch(tally)
            else:
                yield item

    def keep(entry: Entry) -> None:
        for name, frame in entry.frames.items():
            if name not in kinds or frame.schema != kinds[name]:
                raise GlasshouseBug(f"{name} of a unit has columns {frame.schema}; expected {kinds.get(name)}")
        ledger.put(entry, final=not (entry.notes.clock or entry.notes.bug))
        tally.add(entry)
        watch(tally)

    todo = left()
    if not is_compiled():  # once, before several workers would do it at the same time
        first = next(todo, None)
        if first is not None:
            keep(do((job, work), first))
    for entry in work_through(do, (job, work), todo, crew, kinds):
        keep(entry)
    return tally


def put_together(
    ledger: Ledger, folder: Path, kinds: Mapping[str, pl.Schema], order: Mapping[str, Order] | None = None
) -> None:
    """The data files: every unit's rows in the order of their codes, however they came.

    A file that has an `order` has the rows with one value of a column before those with the next.
    """
    order = order or {}
    with ExitStack() as stack:
        files = {
            name: _Rows(stack.enter_context(row_writer(folder / f"{name}.parquet")), schema)
            for name, schema in kinds.items()
        }
        for unit in ledger.held():
            entry = ledger.read(unit)
            for name, file in files.items():
                if name in entry.frames and name not in order:
                    file.add(entry.frames[name])
        for name, (column, values) in order.items():
            for value, unit in product(values, ledger.held()):  # the ledger is read again: a file may be large
                rows = ledger.read(unit).frames.get(name)
                if rows is not None and not (chosen := rows.filter(pl.col(column) == value)).is_empty():
                    files[name].add(chosen)
        for file in files.values():
            file.end()


class _Rows:
    """Rows gathered into large groups, so that a file of many units is not a file of many pieces."""

    def __init__(self, writer: RowWriter, schema: pl.Schema) -> None:
        self.writer, self.schema, self.rows, self.begun = writer, schema, 0, False
        self.held: list[pl.DataFrame] = []

    def add(self, frame: pl.DataFrame) -> None:
        self.held.append(frame)
        self.rows += frame.height
        if self.rows >= ROW_GROUP:
            self._write()

    def end(self) -> None:
        if self.rows or not self.begun:
            self._write()

    def _write(self) -> None:
        self.writer.write(pl.concat([pl.DataFrame(schema=self.schema), *self.held]).rechunk())
        self.held, self.rows, self.begun = [], 0, True


def timings(ledger: Ledger, geography: Geography) -> pl.DataFrame:
    """How long every unit took: the byte rule exempts it."""
    rows = [(u, e.notes.places, e.notes.seconds) for u in ledger.held() for e in [ledger.read(u)]]
    return pl.DataFrame(
        rows, schema={geography.unit: pl.String, plural(geography.place): pl.Int64, "seconds": pl.Float64}, orient="row"
    )
