"""How is an attack on tables run as a command? Options that all share, and the way from a file to a folder.

An attack says what it does to a unit and what it says at the end; the rest is the same for all: the folder is claimed,
the units are done or gone on with, the files put together.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from glasshouse.cli.options import inputs_of, notes_on, refuse_no_file, say
from glasshouse.cli.session import in_folder, refuse_nowhere, refuse_two_crews
from glasshouse.errors import InputError

if TYPE_CHECKING:  # heavy modules are imported by the commands that need them, so that --help is quick
    import polars as pl

    from glasshouse.engine.folder import Folder
    from glasshouse.engine.job import Asked, Item, Job, Work
    from glasshouse.engine.runner import Tally
    from glasshouse.scenarios.load import Scenario

MANY = 50  # units that take a while
EFFORT = 1.0
SECONDS = 300.0

TableFile_ = Annotated[
    Path, typer.Argument(help="Published tables: long or wide CSV, CSV.gz or Parquet, or an office's zip.")
]
Out = Annotated[Path | None, typer.Option("--out", "-o", help="The folder to write; the same command goes on in it.")]
Level = Annotated[
    str | None,
    typer.Option(
        "--level",
        metavar="LEVEL",
        help="Which tables are used: tract, with those of its blocks (default where there are any), or block alone.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", help="The same seed gives the same files.")]
Codebook_ = Annotated[Path | None, typer.Option("--codebook", help="The codebook of an NHGIS extract.")]
Assume = Annotated[
    str,
    typer.Option(
        "--assume-published",
        metavar="all|seen|LIST",
        help="Of tables with no number in the file: which were published, all zero?",
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the result of another run in --out.")]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        "-w",
        min=1,
        max=256,
        help="Processes of this machine (not with --executor); default: one for each core. The answer is the same.",
    ),
]
Executor = Annotated[
    str | None,
    typer.Option("--executor", metavar="dask://HOST:PORT", help="Work on a Dask cluster instead (tls:// encrypts)."),
]
Effort = Annotated[
    float, typer.Option("--effort", min=0, help="Solver steps for each open part; more decides more, the same always.")
]
Seconds = Annotated[
    float,
    typer.Option(
        "--seconds", min=0, help="Wall clock for each open part, 0 for none; what it stops is redone next time."
    ),
]
Units = Annotated[
    str, typer.Option("--units", metavar="LIST", help="Only these tracts (units), as in 99001000100,99001000200.")
]


@dataclass(frozen=True)
class Given:
    """What every attack on tables is given; `inputs` are further files, by their role; `units`: only these."""

    tables: Path
    scenario: Scenario
    scenario_name: str
    out: Path | None
    level: str | None
    seed: int
    codebook: Path | None
    assume: str
    mapping: list[str]
    overwrite: bool
    workers: int | None
    executor: str | None
    effort: float
    seconds: float
    as_json: bool
    quiet: bool
    inputs: Mapping[str, Path] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    units: tuple[str, ...] = ()


@dataclass(frozen=True)
class Prepared:
    """What is done to the units of a run, and the data files that come of it."""

    job: Job
    items: Iterator[Asked]
    work: Work
    kinds: Mapping[str, pl.Schema]


class Attack(Protocol):
    """What one attack adds to what all share."""

    command: str

    def prepare(self, given: Given, job: Job, items: Iterator[Item], near: Path) -> Prepared:
        """What to do with the units; temporary files may lie `near`."""
        ...

    def notes(self, given: Given, job: Job, tally: Tally) -> list[str]:
        """What people must know of the result besides its numbers."""
        ...

    def end(self, given: Given, job: Job, tally: Tally, folder: Folder) -> tuple[dict[str, Any], list[str], list[str]]:
        """What is said at the end: for scripts, for people, and the further files that were written."""
        ...


def run_attack(attack: Attack, given: Given) -> int:
    """Claim the folder, do the units, put the files together, say what came of it."""
    from glasshouse.engine.manifest import Manifest

    for path in (given.tables, *given.inputs.values()):
        refuse_no_file(path)
    refuse_two_crews(given.workers, given.executor)
    refuse_nowhere(given.out, as_json=given.as_json)
    parameters = {
        "scenario": given.scenario.name,
        "tables": [table.name for table in given.scenario.tables],
        "level": given.level,
        "seed": given.seed,
        "assume_published": given.assume,
        "effort": given.effort,
        **given.options,
        **({"units": list(given.units)} if given.units else {}),
    }
    inputs = {"tables": given.tables, **given.inputs} | ({"codebook": given.codebook} if given.codebook else {})
    manifest = Manifest(attack.command, parameters, inputs_of(inputs, given.scenario_name, given.mapping))
    return in_folder(
        manifest,
        lambda folder: _work(attack, given, folder),
        out=given.out,
        overwrite=given.overwrite,
        as_json=given.as_json,
        quiet=given.quiet,
        unit=given.scenario.geography.unit,
    )


def listed_units(text: str) -> tuple[str, ...]:
    """The codes of a list, each once."""
    return tuple(sorted({code.strip() for code in text.split(",") if code.strip()}))


def _only(given: Given, items: Iterator[Item], there: Collection[str]) -> tuple[Iterator[Item], int]:
    """The units that are asked for, and how many they are."""
    if not given.units:
        return items, len(there)
    missing = [code for code in given.units if code not in there]
    if missing:
        unit = given.scenario.geography.unit
        raise InputError(
            f"--units: no number of {unit} {missing[0]} in {given.tables.name}; expected codes of a {unit}"
        )
    wanted = frozenset(given.units)
    return (item for item in items if item.code in wanted), len(wanted)


def _work(attack: Attack, given: Given, folder: Folder) -> dict[str, Any]:
    from glasshouse.engine.job import make_job
    from glasshouse.engine.plain import plain
    from glasshouse.engine.progress import progress
    from glasshouse.engine.runner import Pace, put_together, run, timings
    from glasshouse.engine.workers import Crew
    from glasshouse.files.output import row_writer
    from glasshouse.files.tables import open_tables
    from glasshouse.program.search import is_compiled

    if not given.quiet and not given.as_json and not is_compiled():
        say("The core is compiled for this machine first, once; that takes about half a minute.")
    file = open_tables(given.tables, given.scenario, given.codebook)
    geography = given.scenario.geography
    with ExitStack() as stack:
        about = {"command": attack.command, "parameters": dict(folder.manifest.parameters)}
        ledger = stack.enter_context(folder.working(about, overwrite=given.overwrite))
        watch = stack.enter_context(progress(attack.command, shown=not given.quiet))
        pace = Pace(watch, geography)
        releases = file.releases(assume=given.assume, near=ledger.folder, watch=pace.reading)
        job, items = make_job(file, releases, level=given.level, seed=given.seed, effort=given.effort,
                              seconds=given.seconds or None, options=given.options)  # fmt: skip
        items, number = _only(given, items, file.seen.units)
        pace.begin(number)
        ledger.tell(units=pace.units)
        if given.out and pace.units >= MANY and not (given.quiet or given.as_json or sys.stderr.isatty()):
            units = geography.told({geography.unit: pace.units})
            say(f"note: {units} to do; glasshouse status {given.out} tells how far it is")
        prepared = attack.prepare(given, job, items, ledger.folder)
        crew = Crew(given.workers or len(os.sched_getaffinity(0)), given.executor)
        tally = run(prepared.job, prepared.work, prepared.items, ledger, crew, pace)
        notes = [*notes_on(file, given.scenario, given.assume), *attack.notes(given, prepared.job, tally)]
        if tally.clocked:
            units = geography.told({geography.unit: len(tally.clocked)})
            notes.append(f"warning: the clock (--seconds) stopped work on {units}; the same command does them again")
        folder.make_room()
        put_together(ledger, folder.path, prepared.kinds)
        with row_writer(folder.path / "timings.parquet") as writer:
            writer.write(timings(ledger, geography))
        outputs = [f"{name}.parquet" for name in prepared.kinds]
        said, lines, more = attack.end(given, prepared.job, tally, folder)
        said = {
            "scenario": given.scenario.name, "level": job.area_level or geography.place, "seed": given.seed,
            "units": tally.units, "units_from_before": tally.earlier, **said, "refused": plain(tally.refused),
            "bugs": tally.bugs, "stopped_by_clock": tally.clocked, "notes": notes, "lines": lines,
        }  # fmt: skip
        folder.write(said, [*outputs, *more], cpu=tally.cpu, complete=tally.complete)
    if tally.complete:
        ledger.forget()
    return said
