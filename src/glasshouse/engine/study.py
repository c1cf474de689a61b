"""How is an attack run over a whole file? Unit by unit: sent out, kept in a ledger, put together at the end.

A unit (a tract) is small and independent; its answer depends on its numbers, the job and the seed alone. So units may
be done in any order, by any number of workers, today or tomorrow after a crash: the files that come out are the same.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl

from glasshouse.attack.contradictions import UnitCheck
from glasshouse.attack.published import NothingFits, Published, Unit, untold
from glasshouse.engine.ledger import Entry, Ledger
from glasshouse.engine.progress import Bar
from glasshouse.engine.workers import Crew, work_through
from glasshouse.errors import GlasshouseBug, InputError
from glasshouse.files.output import RowWriter, row_writer
from glasshouse.files.tables import TableFile
from glasshouse.model.geography import Geography, plural
from glasshouse.model.records import Codes, Index
from glasshouse.model.release import Counts, Release
from glasshouse.program.integer import Limit
from glasshouse.program.ladder import Ladder
from glasshouse.program.search import is_compiled
from glasshouse.scenarios.load import Scenario

READING = 0.1  # the share of the work, for the progress bar
ROW_GROUP = 100_000  # rows that a data file is written in at once


class Asked(Protocol):
    """One unit of work: its code, and how many places it has. Whatever else, the work knows."""

    @property
    def code(self) -> str: ...
    @property
    def places(self) -> int: ...


@dataclass(frozen=True)
class Item:
    """One unit of an attack on tables: its code, its numbers, and the records to start from, if they are given."""

    code: str
    unit: Unit
    start: tuple[Index, Codes] | None = None

    @property
    def places(self) -> int:
        return len(self.unit.counts.places)


@dataclass(frozen=True)
class Job:
    """What all units of a run share; sent once to every worker."""

    scenario: Scenario
    published: Published
    area_level: str | None  # whose numbers are used besides those of the places
    seed: int
    effort: float
    seconds: float | None
    options: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def check(self) -> UnitCheck:
        return UnitCheck(self.scenario)

    @property
    def ladder(self) -> Ladder:
        return Ladder(limit=Limit(effort=self.effort, seconds=self.seconds))

    def generator(self, unit: str, question: str) -> np.random.Generator:
        return chance(self.seed, unit, question)


def chance(seed: int, unit: str, question: str) -> np.random.Generator:
    """Chance for a unit: its own, whoever does it and when."""
    digest = hashlib.sha256(f"{seed}/{unit}/{question}".encode()).digest()
    return np.random.default_rng(np.frombuffer(digest, np.uint32))


# Does one unit of a job; returns its frames, and notes that are plain JSON. `clock` among them: not final.
Work = Callable[[Any, Any], tuple[dict[str, pl.DataFrame], dict[str, Any]]]


def do(job_and_work: tuple[Any, Work], item: Asked) -> Entry:
    """One unit, whatever happens: what cannot be done is an entry too."""
    job, work = job_and_work
    began, cpu = time.perf_counter(), time.process_time()
    frames: dict[str, pl.DataFrame] = {}
    try:
        frames, notes = work(job, item)
    except NothingFits as refused:
        notes = {"refused": _explained(job, item, refused), "clock": refused.clock}
    except InputError as error:
        notes = {"refused": {"reason": str(error), "cells": []}}
    except Exception as error:  # one bad unit does not stop the others; the exception's text may hold data
        at = error.__traceback__
        while at is not None and at.tb_next is not None:
            at = at.tb_next
        where = f"{Path(at.tb_frame.f_code.co_filename).name}:{at.tb_lineno}" if at else "?"
        notes = {"refused": {"reason": f"a bug of ours ({type(error).__name__} at {where})", "cells": []}, "bug": True}
    notes["seconds"] = round(time.perf_counter() - began, 6)
    notes["cpu"], notes["process"] = round(time.process_time() - cpu, 6), os.getpid()
    notes["places"] = item.places
    return Entry(item.code, notes, frames)


def _explained(job: Any, item: Any, refused: NothingFits) -> dict[str, Any]:
    """Why nothing fits: the numbers that cannot all be true."""
    if not isinstance(job, Job) or not isinstance(item, Item):
        return {"reason": str(refused), "cells": []}
    levels = {item.unit.counts.level: item.unit.counts}
    if item.unit.areas is not None:
        levels[item.unit.areas.level] = item.unit.areas
    release = Release(job.scenario.schema, job.scenario.tables, levels)
    findings = job.check.findings(release) if refused.proof else []
    if not findings:
        return {"reason": str(refused), "cells": []}
    first = findings[0]
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    cells = [{"geoid": finding.geoid, **asdict(cell)} for finding in findings for cell in finding.cells]
    where = "" if first.geoid == item.code else f"{first.level} {first.geoid}: "
    return {"reason": _without_numbers(item.unit) or f"{where}{first.statement}{more}", "cells": cells}


def _without_numbers(unit: Unit) -> str | None:
    """An area of which the file says nothing, though its places are not empty."""
    if unit.areas is not None:
        for area in np.flatnonzero((unit.areas.upper == 0).all(axis=1)):
            sums = unit.counts.lower[unit.of == area].sum(axis=0)
            if (sums > 0).any():
                where, inside = f"{unit.areas.level} {unit.areas.places[area]}", plural(unit.counts.level)
                first = int(np.argmax(sums > 0))
                adds = f"{unit.counts.variables[first]} over its {inside} is {sums[first]:,}"
                return f"there is no number of {where}, or all are 0, but {adds}"
    return None


@dataclass
class Tally:
    """How far a run is."""

    units: int = 0
    places: int = 0
    earlier: int = 0  # units that an earlier run had finished
    refused: dict[str, dict[str, Any]] = field(default_factory=dict)
    bugs: int = 0
    clocked: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    cpu: float = 0.0  # seconds of other processes

    def add(self, entry: Entry) -> None:
        notes = entry.notes
        self.units += 1
        self.places += int(notes["places"])
        self.cpu += float(notes["cpu"]) if notes["process"] != os.getpid() else 0.0
        self.counts.update(notes.get("counts", {}))
        if "refused" in notes:
            self.refused[entry.unit] = dict(notes["refused"])
        self.bugs += bool(notes.get("bug"))
        if notes.get("clock"):
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


def make_job(
    file: TableFile,
    releases: Iterator[Release],
    *,
    level: str | None,
    seed: int,
    effort: float,
    seconds: float | None,
    options: Mapping[str, Any],
) -> tuple[Job, Iterator[Item]]:
    """What all units share, and the units one by one. What was published is known once the file has been read."""
    first = next(releases)
    published, area_level = publication(file, first, level)
    geography = file.scenario.geography

    def items() -> Iterator[Item]:
        for release in chain([first], releases):
            if geography.place in release.levels:  # not the last one, which is of coarser levels
                yield Item(*unit_of(release, geography, area_level))

    return Job(file.scenario, published, area_level, seed, effort, seconds, options), items()


def publication(file: TableFile, release: Release, level: str | None) -> tuple[Published, str | None]:
    """The tables that are used: those of places, and those of the level around, if they are there."""
    scenario, geography = file.scenario, file.scenario.geography
    inside = [at for at in geography.levels if at in release.levels and geography.within_unit(at)]
    if geography.place not in inside:
        raise InputError(
            f"{file.path.name}: no number of a {geography.place}, where records live; expected a table at that level"
        )
    outer = [at for at in inside if at != geography.place]
    if level is not None:
        geography.known(level)
    if level is None:
        area = outer[0] if outer else None  # levels stand from coarse to fine
    elif level == geography.place:
        area = None
    elif level in outer:
        area = level
    else:
        raise InputError(
            f"--level {level}: no number of a {level} in {file.path.name}; "
            f"its levels that can be used: {', '.join([*outer, geography.place])}"
        )
    inner = release.levels[geography.place].variables
    around = release.levels[area].variables if area else ()
    tables, areas = _tables(scenario, inner), _tables(scenario, around)
    left_out = untold(scenario.schema, (*tables, *areas))
    published = Published(
        scenario.schema, tables, inner, areas, around, scenario.bins, scenario.unique_on, left_out
    )  # fmt: skip
    return published, area


def _tables(scenario: Scenario, variables: Iterable[str]) -> tuple[Any, ...]:
    present = set(variables)
    return tuple(table for table in scenario.tables if any(line.variable in present for line in table.lines))


def unit_of(release: Release, geography: Geography, area_level: str | None) -> tuple[str, Unit]:
    """The numbers of one unit, and its code."""
    counts = release.levels[geography.place]
    if area_level is None:
        unit = Unit(counts, None, np.zeros(len(counts.places), np.int64))
    else:
        areas = release.levels[area_level]
        of = np.array([areas.row[geography.code(place, area_level)] for place in counts.places], np.int64)
        unit = Unit(counts, areas, of)
    named: Counts = next(c for c in release.levels.values() if c.places)
    return geography.code(named.places[0], geography.unit), unit


def run(
    job: Any, work: Work, items: Iterable[Asked], ledger: Ledger, crew: Crew, watch: Callable[[Tally], None]
) -> Tally:
    """Do the units that are not done yet; every answer is in the ledger before the next is taken."""
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
        ledger.put(entry, final=not (entry.notes.get("clock") or entry.notes.get("bug")))
        tally.add(entry)
        watch(tally)

    todo = left()
    if not is_compiled():  # once, before several workers would do it at the same time
        first = next(todo, None)
        if first is not None:
            keep(do((job, work), first))
    for entry in work_through(do, (job, work), todo, crew):
        keep(entry)
    return tally


def put_together(ledger: Ledger, folder: Path, kinds: Mapping[str, pl.Schema]) -> None:
    """The data files: every unit's rows in the order of their codes, however they came."""
    with ExitStack() as stack:
        files = {
            name: _Rows(stack.enter_context(row_writer(folder / f"{name}.parquet")), schema)
            for name, schema in kinds.items()
        }
        for unit in ledger.held():
            entry = ledger.read(unit)
            for name, file in files.items():
                if name in entry.frames:
                    file.add(entry.frames[name])
        for file in files.values():
            file.end()


class _Rows:
    """Rows gathered into large groups, so that a file of many units is not a file of many pieces."""

    def __init__(self, writer: RowWriter, schema: pl.Schema) -> None:
        self.writer, self.schema, self.rows, self.begun = writer, schema, 0, False
        self.held: list[pl.DataFrame] = []

    def add(self, frame: pl.DataFrame) -> None:
        if frame.schema != self.schema:
            raise GlasshouseBug(f"rows of a unit have columns {frame.schema}; expected {self.schema}")
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
    rows = [(u, e.notes["places"], e.notes["seconds"]) for u in ledger.held() for e in [ledger.read(u)]]
    return pl.DataFrame(
        rows, schema={geography.unit: pl.String, plural(geography.place): pl.Int64, "seconds": pl.Float64}, orient="row"
    )
