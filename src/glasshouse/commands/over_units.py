"""How is an attack on tables run over a whole file? Unit by unit, by the one life cycle of runs.

An attack says what it does to a unit, which files come of it and what it says at the end; the rest is the same for all.
"""

from __future__ import annotations

import json
import sys
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from glasshouse.commands.options import Reading, Solving, inputs_of, notes_on
from glasshouse.errors import InputError

if TYPE_CHECKING:  # heavy modules are imported by the commands that need them, so that --help is quick
    import polars as pl

    from glasshouse.engine.job import Asked, Item, Job, Work
    from glasshouse.engine.lifecycle import Ended, Made, Workplace
    from glasshouse.engine.runner import Tally
    from glasshouse.scenarios.load import Scenario

S = TypeVar("S", bound="Attacked")
MANY = 50  # units that take a while
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


@dataclass(frozen=True)
class Concluded(Generic[S]):
    """What came of a run: its summary, a few lines for people, and the further files that were written."""

    summary: S
    lines: list[str]
    files: list[str] = field(default_factory=list)


class Attack(ABC, Generic[S]):
    """What one attack adds to what all share."""

    command: str
    kind: type[S]

    @abstractmethod
    def prepare(self, asking: Asking, job: Job, items: Iterator[Item], near: Path) -> Prepared:
        """What to do with the units; temporary files may lie `near`."""

    @abstractmethod
    def notes(self, asking: Asking, job: Job, tally: Tally) -> list[str]:
        """What people must know of the result besides its numbers."""

    @abstractmethod
    def conclude(self, asking: Asking, job: Job, tally: Tally, folder: Path, said: Attacked) -> Concluded[S]:
        """What is said at the end, from the data files in the folder; `said`: what every summary says first."""


def over_units(attack: Attack[S], asking: Asking) -> Ended[S]:
    """Claim the folder, do the units, put the files together, say what came of it."""
    from glasshouse.engine.lifecycle import in_folder
    from glasshouse.engine.manifest import Manifest

    asking.run.crew  # noqa: B018  # refused before anything is read
    parameters = {
        "scenario": asking.scenario.name,
        "tables": [table.name for table in asking.scenario.tables],
        "level": asking.level,
        "seed": asking.seed,
        "assume_published": asking.read.assume_published,
        "effort": asking.run.effort,
        **asking.parameters,
        **({"units": list(asking.units)} if asking.units else {}),
    }
    inputs = {"tables": asking.tables, **asking.inputs, **asking.read.inputs}
    manifest = Manifest(attack.command, parameters, inputs_of(inputs, asking.scenario_name, asking.read.mapping))
    out, overwrite = asking.run.out, asking.run.overwrite
    return in_folder(
        manifest, attack.kind, lambda at: _work(attack, asking, at), out=out, overwrite=overwrite,
        unit=asking.scenario.geography.unit,
    )  # fmt: skip


def write_summary(folder: Path, summary: Attacked, *, but: Collection[str] = ()) -> str:
    """Write what was found, without how the attack was run, for scripts that read files; the name of the file."""
    from glasshouse.engine.plain import plain
    from glasshouse.files.output import private_file

    left = {*(one.name for one in fields(Attacked)), *but}
    told = {name: value for name, value in plain(summary).items() if name not in left}
    with private_file(folder / SUMMARY) as stream:
        stream.write((json.dumps(told, indent=2) + "\n").encode())
    return SUMMARY


def _only(asking: Asking, items: Iterator[Item], there: Collection[str]) -> tuple[Iterator[Item], int]:
    """The units that are asked for, and how many they are."""
    if not asking.units:
        return items, len(there)
    missing = [code for code in asking.units if code not in there]
    if missing:
        unit = asking.scenario.geography.unit
        raise InputError(
            f"--units: no number of {unit} {missing[0]} in {asking.tables.name}; expected codes of a {unit}"
        )
    wanted = frozenset(asking.units)
    return (item for item in items if item.code in wanted), len(wanted)


def _work(attack: Attack[S], asking: Asking, at: Workplace) -> Made[S]:
    from glasshouse.engine.job import make_job
    from glasshouse.engine.lifecycle import Made
    from glasshouse.engine.progress import say
    from glasshouse.engine.runner import Pace, put_together, run, timings
    from glasshouse.files.output import row_writer
    from glasshouse.files.tables import open_tables
    from glasshouse.program.search import is_compiled

    if not is_compiled():
        say("The core is compiled for this machine first, once; that takes about half a minute.")
    file = open_tables(asking.tables, asking.scenario, asking.read.codebook)
    geography, assume = asking.scenario.geography, asking.read.assume_published
    pace = Pace(at.bar, geography)
    releases = file.releases(assume=assume, near=at.ledger.folder, watch=pace.reading)
    job, items = make_job(file, releases, level=asking.level, seed=asking.seed, effort=asking.run.effort,
                          seconds=asking.run.seconds or None)  # fmt: skip
    items, number = _only(asking, items, file.seen.units)
    pace.begin(number)
    at.ledger.tell(units=pace.units)
    if asking.run.out and pace.units >= MANY and not sys.stderr.isatty():
        units = geography.told({geography.unit: pace.units})
        say(f"note: {units} to do; glasshouse status {asking.run.out} tells how far it is")
    prepared = attack.prepare(asking, job, items, at.ledger.folder)
    tally = run(prepared.job, prepared.work, prepared.items, at.ledger, asking.run.crew, pace)
    notes = [*notes_on(file, asking.scenario, assume), *attack.notes(asking, prepared.job, tally), *prepared.notes]
    if tally.clocked:
        units = geography.told({geography.unit: len(tally.clocked)})
        notes.append(f"warning: the clock (--seconds) stopped work on {units}; the same command does them again")
    at.clear()
    put_together(at.ledger, at.path, prepared.kinds)
    with row_writer(at.path / "timings.parquet") as writer:
        writer.write(timings(at.ledger, geography))
    said = Attacked(asking.scenario.name, job.area_level or geography.place, asking.seed, tally.units, tally.earlier)
    concluded = attack.conclude(asking, prepared.job, tally, at.path, said)
    outputs = [*(f"{name}.parquet" for name in prepared.kinds), *concluded.files]
    return Made(concluded.summary, outputs, concluded.lines, notes, tally)
