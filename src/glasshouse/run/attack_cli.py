"""The commands that rebuild records from tables, and tell how sure that is: reconstruct, vary, status."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glasshouse.errors import InputError
from glasshouse.run.options import (
    Json,
    Mapping_,
    Quiet,
    ScenarioName,
    Tables,
    Verbose,
    chosen_scenario,
    finish,
    inputs_of,
    notes_on,
    refuse_no_file,
    say,
)
from glasshouse.run.session import in_folder, refuse_nowhere, refuse_two_crews

if TYPE_CHECKING:  # heavy modules are imported by the commands that need them, so that --help is quick
    from glasshouse.run.folder import Folder
    from glasshouse.run.study import Job, Tally
    from glasshouse.scenario import Scenario

MANY = 50  # units that take a while
EFFORT = 1.0
SECONDS = 300.0

app = typer.Typer(rich_markup_mode=None)

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


@dataclass(frozen=True)
class _Common:
    """What both attacks are given."""

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
    start: Path | None = None
    uniques: Path | None = None
    options: dict[str, Any] = field(default_factory=dict)


@app.command(
    epilog="Example:  glasshouse reconstruct tables.csv.gz --scenario sf1-person --out rebuilt\n\n"
    "Exit code 0: done. 1: done, but some units were left out (their numbers cannot all be true) or stopped by the "
    "clock. 2: bad input or usage. "
    "130: interrupted; the same command goes on."
)
def reconstruct(
    tables: TableFile_,
    scenario: ScenarioName,
    out: Out = None,
    level: Level = None,
    seed: Seed = 1,
    only: Tables = "",
    codebook: Codebook_ = None,
    assume: Assume = "seen",
    mapping: Mapping_ = [],  # noqa: B006  # typer copies it
    overwrite: Overwrite = False,
    workers: Workers = None,
    executor: Executor = None,
    effort: Effort = EFFORT,
    seconds: Seconds = SECONDS,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> int:
    """Rebuild records from tables: one set that fits every number, drawn with the seed."""
    common = _Common(
        tables, chosen_scenario(scenario, only, mapping), scenario, out, level, seed, codebook, assume, mapping,
        overwrite, workers, executor, effort, seconds, as_json, quiet,
    )  # fmt: skip
    return _run("reconstruct", common, _rebuilt)


@app.command(
    epilog="Example:  glasshouse vary tables.csv.gz --scenario sf1-person --out solvar\n\n"
    "solvar is the share of a block's records that could differ: 0 means that they are known for certain. "
    "Exit codes as for reconstruct."
)
def vary(
    tables: TableFile_,
    scenario: ScenarioName,
    out: Out = None,
    level: Level = None,
    start: Annotated[
        Path | None,
        typer.Option("--from", metavar="DIR", help="Start from the records of this reconstruction, or record file."),
    ] = None,
    scope: Annotated[
        str, typer.Option("--scope", metavar="LEVEL", help="What is solved together: block, or also a whole tract.")
    ] = "",
    schema: Annotated[
        str,
        typer.Option(
            "--schema",
            help="The cells compared: 38-bin (as the scenario bins them), or exact-age (needs tract tables).",
        ),
    ] = "38-bin",
    tighten: Annotated[
        bool, typer.Option("--tighten", help="Use differences of the tract's numbers as limits, not only printed ones.")
    ] = False,
    uniques: Annotated[
        Path | None,
        typer.Option(
            "--uniques", metavar="RECORDS", help="Count uniques by size among the data-defined of these, as Table S5."
        ),
    ] = None,
    seed: Seed = 1,
    only: Tables = "",
    codebook: Codebook_ = None,
    assume: Assume = "seen",
    mapping: Mapping_ = [],  # noqa: B006  # typer copies it
    overwrite: Overwrite = False,
    workers: Workers = None,
    executor: Executor = None,
    effort: Effort = EFFORT,
    seconds: Seconds = SECONDS,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> int:
    """How different could the records be? The farthest set that fits, for every block, proved or bounded."""
    if schema not in ("38-bin", "exact-age"):
        raise InputError(f"unknown schema '{schema}'; known: 38-bin, exact-age")
    chosen = chosen_scenario(scenario, only, mapping)
    if scope and scope not in chosen.geography.levels:
        raise InputError(f"unknown scope '{scope}'; known: {', '.join(chosen.geography.levels)}")
    records = None
    if start is not None:
        records = start / "records.parquet" if start.is_dir() else start
        if start.is_dir() and not records.exists():
            raise InputError(
                f"--from {start}: no records.parquet there; expected a folder of reconstruct, or a record file"
            )
        refuse_no_file(records)
    if uniques is not None:
        refuse_no_file(uniques)
    jointly = scope not in ("", chosen.geography.place)
    options = {"finest": schema == "exact-age", "tighten": tighten, "jointly": jointly, "scope": scope}
    common = _Common(
        tables, chosen, scenario, out, level, seed, codebook, assume, mapping, overwrite, workers, executor, effort,
        seconds, as_json, quiet, records, uniques, options,
    )  # fmt: skip
    return _run("vary", common, _varied)


@app.command(epilog="Example:  glasshouse status rebuilt")
def status(
    folder: Annotated[Path, typer.Argument(help="The --out folder of reconstruct or vary.")],
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> int:
    """What is done, what is left, since when."""
    from glasshouse.run.folder import state_of

    said, lines = state_of(folder)
    return finish(said, as_json, False, lines)


Ending = Callable[["Folder", _Common, "Job", "Tally"], tuple[dict[str, Any], list[str], list[str]]]


def _run(command: str, given: _Common, ending: Ending) -> int:
    """Claim the folder, do the units, put the files together, say what came of it."""
    from glasshouse.run.manifest import Manifest

    refuse_no_file(given.tables)
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
    }
    inputs = {"tables": given.tables} | ({"from": given.start} if given.start else {})
    inputs |= {"codebook": given.codebook} if given.codebook else {}
    inputs |= {"uniques": given.uniques} if given.uniques else {}
    manifest = Manifest(command, parameters, inputs_of(inputs, given.scenario_name, given.mapping))
    return in_folder(
        manifest,
        lambda folder: _work(command, given, folder, ending),
        out=given.out,
        overwrite=given.overwrite,
        as_json=given.as_json,
        quiet=given.quiet,
        unit=given.scenario.geography.unit,
    )


def _work(command: str, given: _Common, folder: Folder, ending: Ending) -> dict[str, Any]:
    from glasshouse.files.output import row_writer
    from glasshouse.files.tables import open_tables
    from glasshouse.program.search import is_compiled
    from glasshouse.run import rebuilding, varying
    from glasshouse.run.executors import Crew
    from glasshouse.run.progress import progress
    from glasshouse.run.study import Pace, make_job, put_together, run, timings

    if not given.quiet and not given.as_json and not is_compiled():
        say("The core is compiled for this machine first, once; that takes about half a minute.")
    file = open_tables(given.tables, given.scenario, given.codebook)
    with ExitStack() as stack:
        about = {"command": command, "parameters": dict(folder.manifest.parameters)}
        ledger = stack.enter_context(folder.working(about, overwrite=given.overwrite))
        watch = stack.enter_context(progress(command, shown=not given.quiet))
        pace = Pace(watch, given.scenario.geography)
        releases = file.releases(assume=given.assume, near=ledger.folder, watch=pace.reading)
        job, items = make_job(file, releases, level=given.level, seed=given.seed, effort=given.effort,
                              seconds=given.seconds or None, options=given.options)  # fmt: skip
        pace.begin(len(file.seen.units))
        ledger.tell(units=pace.units)
        if given.out and pace.units >= MANY and not (given.quiet or given.as_json or sys.stderr.isatty()):
            units = given.scenario.geography.told({given.scenario.geography.unit: pace.units})
            say(f"note: {units} to do; glasshouse status {given.out} tells how far it is")
        if command == "vary":
            _refuse_without_area(given, job.area_level)
            if given.start is not None:
                items = varying.with_starts(
                    items, varying.starts(given.start, given.scenario, ledger.folder), given.scenario
                )
        work, kinds = (
            (rebuilding.rebuild, rebuilding.schemas(given.scenario, job.published))
            if command == "reconstruct"
            else (varying.measure, varying.schemas(given.scenario, job.area_level))
        )
        crew = Crew(given.workers or len(os.sched_getaffinity(0)), given.executor)
        tally = run(job, work, items, ledger, crew, pace)
        notes = notes_on(file, given.scenario, given.assume)
        if job.published.left_out:
            names = ", ".join(job.published.left_out)
            notes.append(
                f"warning: no table used tells {names}: drawn at random, and left out when records are compared"
            )
        if job.area_level is None and given.level is None:
            notes.append(
                f"note: no tables of an area around are there: every {given.scenario.geography.place} is solved alone"
            )
        notes += _warnings(tally, given.scenario)
        folder.make_room()
        put_together(ledger, folder.path, kinds)
        with row_writer(folder.path / "timings.parquet") as writer:
            writer.write(timings(ledger, given.scenario.geography))
        outputs = [f"{name}.parquet" for name in kinds]
        said, lines, more = ending(folder, given, job, tally)
        level = job.area_level or given.scenario.geography.place
        said = {
            "scenario": given.scenario.name, "level": level, "seed": given.seed, "units": tally.units,
            "units_from_before": tally.earlier, **said, "refused": tally.refused, "bugs": tally.bugs,
            "stopped_by_clock": tally.clocked, "notes": notes, "lines": lines,
        }  # fmt: skip
        folder.write(said, [*outputs, *more], cpu=tally.cpu, complete=tally.complete)
    if tally.complete:
        ledger.forget()
    return said


def _warnings(tally: Tally, scenario: Scenario) -> list[str]:
    """What people must know of the result besides its numbers."""
    geography, notes = scenario.geography, []
    if tally.clocked:
        units = geography.told({geography.unit: len(tally.clocked)})
        notes.append(f"warning: the clock (--seconds) stopped work on {units}; the same command does them again")
    if outside := tally.counts["starts_outside"]:
        places = geography.told({geography.place: outside})
        notes.append(
            f"warning: in {places} the records given (--from) do not fit the limits of the area around; "
            "there, records that do were rebuilt to start from"
        )
    return notes


def _refuse_without_area(given: _Common, area_level: str | None) -> None:
    scope = given.options["scope"]
    if given.options["tighten"] and area_level is None:
        raise InputError("--tighten needs the tables of an area around (tract), which are not there or not used")
    if given.options["finest"] and area_level is None:
        raise InputError(
            "--schema exact-age needs the tables of an area around (tract), which are not there or not used"
        )
    if given.options["jointly"] and scope != area_level:
        used = f"those of the {area_level}" if area_level else "none of an area around"
        raise InputError(f"--scope {scope} needs the tables of that level; the tables used are {used} (see --level)")


def _rebuilt(folder: Folder, given: _Common, job: Job, tally: Tally) -> tuple[dict[str, Any], list[str], list[str]]:
    counts, geography = tally.counts, given.scenario.geography
    places = geography.told({geography.place: counts["places"], geography.unit: tally.units - len(tally.refused)})
    said = {"records": counts["records"], "places": counts["places"], "recounted": counts["places"]}
    found = f"{counts['records']:,} records in {places}; counted again, they give every"
    if not tally.refused:
        return said, [f"{found} published number -> {folder.path}"], []
    left = geography.told({geography.unit: len(tally.refused)})
    return said, [f"{found} number published of these; {left} left out -> {folder.path}"], []


def _varied(folder: Folder, given: _Common, job: Job, tally: Tally) -> tuple[dict[str, Any], list[str], list[str]]:
    from glasshouse.run.varying import uniques
    from glasshouse.run.varying_words import summarise

    defined = None
    if given.uniques is not None:
        defined = uniques(given.uniques, job.published, given.scenario, folder.ledger.folder)
    return summarise(folder.path, job, tally, defined)
