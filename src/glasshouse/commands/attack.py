"""What is an attack on tables, as a command runs it? What it is asked, what it does to a unit, and what came of it."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from glasshouse.commands.options import Reading, Solving

if TYPE_CHECKING:  # heavy modules are imported by the commands that need them, so that --help is quick
    import polars as pl

    from glasshouse.engine.job import Asked, Job, Work
    from glasshouse.engine.runner import Order, Tally
    from glasshouse.files.tables import TableFile
    from glasshouse.model.release import Release
    from glasshouse.scenarios.load import Scenario

S = TypeVar("S", bound="Attacked")
SUMMARY = "summary.json"


@dataclass(frozen=True)
class Attacked:
    """What the summary of every attack on tables says first."""

    scenario: str
    level: str  # the tables of which level were used, besides those of places
    seed: int
    units: int
    units_from_before: int


@dataclass(frozen=True)
class Asking:
    """What an attack is asked: which tables, which of their units, how it is run, and further files by their role."""

    tables: Path
    scenario: Scenario
    scenario_name: str
    level: str | None
    seed: int
    read: Reading
    run: Solving
    parameters: Mapping[str, Any] = field(default_factory=dict)  # the attack's own, as the manifest tells them
    inputs: Mapping[str, Path | None] = field(default_factory=dict)
    units: tuple[str, ...] = ()


@dataclass(frozen=True)
class Prepared:
    """What is done to the units of a run, and the data files that come of it."""

    job: Job
    items: Iterator[Asked]
    work: Work
    kinds: Mapping[str, pl.Schema]
    notes: tuple[str, ...] = ()  # what people must know of how the units were chosen
    order: Mapping[str, Order] = field(default_factory=dict)  # of files that do not go unit by unit


@dataclass(frozen=True)
class Opened:
    """A file of tables, as an attack takes it: what all units share, the units one by one, and their codes."""

    job: Job
    items: Iterator[Any]
    codes: Collection[str]


@dataclass(frozen=True)
class Concluded(Generic[S]):
    """What came of a run: its summary, a few lines for people, and the further files that were written."""

    summary: S
    lines: list[str]
    files: list[str] = field(default_factory=list)
    findings: list[str] = field(default_factory=list)  # what the exit code must tell


class Attack(ABC, Generic[S]):
    """What one attack adds to what all share."""

    command: str
    kind: type[S]
    puts_records: ClassVar[bool] = True  # into places; perhaps into some that the file does not name

    def open(self, asking: Asking, file: TableFile, releases: Iterator[Release]) -> Opened:
        """The units of a file: places, with the numbers of one level around them, if they are used."""
        from glasshouse.engine.job import make_job

        job, items = make_job(
            file, releases, level=asking.level, seed=asking.seed, effort=asking.run.effort,
            seconds=asking.run.seconds or None,
        )  # fmt: skip
        return Opened(job, items, file.seen.units)

    @abstractmethod
    def prepare(self, asking: Asking, job: Job, items: Iterator[Any], near: Path) -> Prepared:
        """What to do with the units; temporary files may lie `near`."""

    @abstractmethod
    def notes(self, asking: Asking, job: Job, tally: Tally) -> list[str]:
        """What people must know of the result besides its numbers."""

    @abstractmethod
    def conclude(self, asking: Asking, job: Job, tally: Tally, folder: Path, said: Attacked) -> Concluded[S]:
        """What is said at the end, from the data files in the folder; `said`: what every summary says first."""


def how_many(records: int, tally: Tally) -> str:
    """So many records; as a fact only where every set that fits has so many."""
    from glasshouse.model.records import UNLIMITED

    least, most = tally.counts["least"], tally.counts["most"]
    if least == most:
        return f"{records:,} records"
    allowed = f"{least:,} to {most:,}" if most < UNLIMITED else f"{least:,} or more"
    return f"one possible set of {records:,} records (the tables' own totals allow {allowed})"


def write_summary(folder: Path, summary: Attacked, *, but: Collection[str] = ()) -> str:
    """Write what was found, without how the attack was run, for scripts that read files; the name of the file."""
    from glasshouse.engine.plain import plain
    from glasshouse.files.output import private_file

    left = {*(one.name for one in fields(Attacked)), *but}
    told = {name: value for name, value in plain(summary).items() if name not in left}
    with private_file(folder / SUMMARY) as stream:
        stream.write((json.dumps(told, indent=2) + "\n").encode())
    return SUMMARY
