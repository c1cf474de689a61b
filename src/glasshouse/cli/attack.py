"""The commands that rebuild records from tables, and tell how sure that is: reconstruct, vary, status."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glasshouse.cli.attacking import (
    EFFORT,
    SECONDS,
    Assume,
    Codebook_,
    Effort,
    Executor,
    Given,
    Level,
    Out,
    Overwrite,
    Prepared,
    Seconds,
    Seed,
    TableFile_,
    Units,
    Workers,
    listed_units,
    run_attack,
)
from glasshouse.cli.options import Json, Mapping_, Quiet, ScenarioName, Tables, Verbose, chosen_scenario, finish
from glasshouse.errors import InputError

if TYPE_CHECKING:  # heavy modules are imported by the commands that need them, so that --help is quick
    from glasshouse.engine.folder import Folder
    from glasshouse.engine.study import Item, Job, Tally

app = typer.Typer(rich_markup_mode=None)


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
    units: Units = "",
    nearest: Annotated[
        str,
        typer.Option(
            "--nearest",
            metavar="absolute|squared",
            help="Where no records fit (noisy tables), the nearest; each block by its own tables.",
        ),
    ] = "",
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
    chosen = chosen_scenario(scenario, only, mapping)
    options = {}
    if nearest:
        if nearest not in ("absolute", "squared"):
            raise InputError(f"unknown --nearest '{nearest}'; known: absolute, squared")
        place = chosen.geography.place
        if level not in (None, place):
            raise InputError(f"--nearest works with the tables of a {place}; leave out --level {level}")
        level, options = place, {"nearest": nearest}
    given = Given(
        tables, chosen, scenario, out, level, seed, codebook, assume, mapping, overwrite, workers, executor, effort,
        seconds, as_json, quiet, {}, options, listed_units(units),
    )  # fmt: skip
    return run_attack(_Reconstruct(), given)


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
    units: Units = "",
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
    jointly = scope not in ("", chosen.geography.place)
    options = {"finest": schema == "exact-age", "tighten": tighten, "jointly": jointly, "scope": scope}
    inputs = {"from": records} if records else {}
    inputs |= {"uniques": uniques} if uniques else {}
    given = Given(
        tables, chosen, scenario, out, level, seed, codebook, assume, mapping, overwrite, workers, executor, effort,
        seconds, as_json, quiet, inputs, options, listed_units(units),
    )  # fmt: skip
    return run_attack(_Vary(), given)


@app.command(epilog="Example:  glasshouse status rebuilt")
def status(
    folder: Annotated[Path, typer.Argument(help="The --out folder of a command that works unit by unit.")],
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> int:
    """What is done, what is left, since when."""
    from glasshouse.engine.folder import state_of

    said, lines = state_of(folder)
    return finish(said, as_json, False, lines)


def _notes(given: Given, job: Job) -> list[str]:
    notes = []
    if job.published.left_out:
        names = ", ".join(job.published.left_out)
        notes.append(f"warning: no table used tells {names}: drawn at random, and left out when records are compared")
    if job.area_level is None and given.level is None:
        notes.append(
            f"note: no tables of an area around are there: every {given.scenario.geography.place} is solved alone"
        )
    return notes


class _Reconstruct:
    command = "reconstruct"

    def prepare(self, given: Given, job: Job, items: Iterator[Item], near: Path) -> Prepared:
        from glasshouse.commands.work.reconstruct import rebuild, schemas

        return Prepared(job, items, rebuild, schemas(given.scenario, job.published))

    def notes(self, given: Given, job: Job, tally: Tally) -> list[str]:
        return _notes(given, job)

    def end(self, given: Given, job: Job, tally: Tally, folder: Folder) -> tuple[dict[str, Any], list[str], list[str]]:
        counts, geography = tally.counts, given.scenario.geography
        places = geography.told({geography.place: counts["places"], geography.unit: tally.units - len(tally.refused)})
        said = {"records": counts["records"], "places": counts["places"], "recounted": counts["fits"]}
        if "nearest" in given.options:
            said["error"], said["without_records"] = counts["error"], counts["without"]
            line = (
                f"{counts['records']:,} records in {places}; they fit every number of {counts['fits']:,}, and "
                f"elsewhere come nearest ({given.options['nearest']} error {counts['error']:,} in all; nothing is "
                "certain there)"
            )
            without = counts["without"]
            more = f"; {geography.told({geography.place: without})} left without records, within the limits" * bool(
                without
            )
            return said, [f"{line}{more} -> {folder.path}"], []
        found = f"{counts['records']:,} records in {places}; counted again, they give every"
        if not tally.refused:
            return said, [f"{found} published number -> {folder.path}"], []
        left = geography.told({geography.unit: len(tally.refused)})
        return said, [f"{found} number published of these; {left} left out -> {folder.path}"], []


class _Vary:
    command = "vary"

    def prepare(self, given: Given, job: Job, items: Iterator[Item], near: Path) -> Prepared:
        from glasshouse.commands.work.vary import measure, schemas, starts, with_starts

        _refuse_without_area(given, job.area_level)
        if "from" in given.inputs:
            items = with_starts(items, starts(given.inputs["from"], given.scenario, near), given.scenario)
        return Prepared(job, items, measure, schemas(given.scenario, job.area_level))

    def notes(self, given: Given, job: Job, tally: Tally) -> list[str]:
        notes, geography = _notes(given, job), given.scenario.geography
        if outside := tally.counts["starts_outside"]:
            places = geography.told({geography.place: outside})
            notes.append(
                f"warning: in {places} the records given (--from) do not fit the limits of the area around; "
                "there, records that do were rebuilt to start from"
            )
        return notes

    def end(self, given: Given, job: Job, tally: Tally, folder: Folder) -> tuple[dict[str, Any], list[str], list[str]]:
        from glasshouse.commands.words.vary import summarise
        from glasshouse.commands.work.vary import uniques

        defined = None
        if "uniques" in given.inputs:
            defined = uniques(given.inputs["uniques"], job.published, given.scenario, folder.ledger.folder)
        return summarise(folder.path, job, tally, defined)


def _refuse_without_area(given: Given, area_level: str | None) -> None:
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
