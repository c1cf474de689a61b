"""The command that finds every claim which must be true, although the records cannot be rebuilt: verify."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
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
    Out,
    Overwrite,
    Prepared,
    Seconds,
    Seed,
    TableFile_,
    Workers,
    run_attack,
)
from glasshouse.cli.options import Json, Mapping_, Quiet, ScenarioName, Tables, Verbose, chosen_scenario
from glasshouse.errors import InputError, unknown

if TYPE_CHECKING:  # heavy modules are imported by the commands that need them, so that --help is quick
    import polars as pl

    from glasshouse.engine.folder import Folder
    from glasshouse.engine.job import Item, Job
    from glasshouse.engine.runner import Tally
    from glasshouse.scenarios.load import Scenario

app = typer.Typer(rich_markup_mode=None)

COLUMNS = 6
ZEROS = {"all": ("definition", "certain", "edit rule"), "certain": ("definition", "certain"), "paper": ("definition",)}
LEAKS = ("table", "family")


@app.command(
    epilog="Example:  glasshouse verify tables.csv.gz --scenario dhc-household --out claims\n\n"
    "As the paper does, with the truth beside it:  glasshouse verify tables.csv.gz --scenario dhc-household "
    "--pick median:5 --singletons --truth households.parquet --prior-tract households.parquet --out claims\n\n"
    "A verified claim is a result: exit code 0. 1: some units were left out (their numbers cannot all be true) or "
    "stopped by the clock. 2: bad input or usage. 130: interrupted; the same command goes on."
)
def verify(
    tables: TableFile_,
    scenario: ScenarioName,
    out: Out = None,
    columns: Annotated[
        int, typer.Option("--columns", "-k", min=1, help="Claims that name at least so many columns.")
    ] = COLUMNS,
    singletons: Annotated[
        bool, typer.Option("--singletons", help="Only claims about exactly one household (m = 1).")
    ] = False,
    absent: Annotated[
        int,
        typer.Option(
            "--absent", min=0, max=5, help="Also the coarsest descriptions of up to N columns that nobody fits."
        ),
    ] = 0,
    cannot: Annotated[
        list[int], typer.Option("--cannot", min=0, help="Also descriptions whose count cannot be M (0: somebody fits).")
    ] = [],  # noqa: B006  # typer copies it
    why: Annotated[
        int, typer.Option("--why", min=0, help="Explain up to N claims of a block by the fewest published numbers.")
    ] = 0,
    leaks: Annotated[
        str,
        typer.Option(
            "--leaks",
            metavar="table|family",
            help="Claims lost when each table (or a table with its iterations) is withheld; gained when one that "
            "--tables leaves out is added.",
        ),
    ] = "",
    drop: Annotated[
        str, typer.Option("--drop-cells", metavar="0,1", help="Leave out published numbers with these values.")
    ] = "",
    zeros: Annotated[
        str,
        typer.Option(
            "--zeros",
            metavar="all|certain|paper",
            help="Structural zeros used: all, those without the office's edit rules, or only what the paper states.",
        ),
    ] = "all",
    blocks: Annotated[
        str,
        typer.Option("--blocks", metavar="FILE|LIST", help="Only these blocks: a file with a code a line, or codes."),
    ] = "",
    pick: Annotated[
        str,
        typer.Option(
            "--pick",
            metavar="SIZE:N",
            help="Only N blocks a state, drawn among those of a size: state-median:5, median:5 or 10:5.",
        ),
    ] = "",
    truth: Annotated[
        Path | None, typer.Option("--truth", metavar="RECORDS", help="The true records: how many households are known.")
    ] = None,
    prior_tract: Annotated[
        Path | None,
        typer.Option("--prior-tract", metavar="RECORDS", help="How probable a claim is, drawing from its tract here."),
    ] = None,
    prior_state: Annotated[
        Path | None,
        typer.Option("--prior-state", metavar="RECORDS", help="The same, drawing from its whole state."),
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
    """What must be true of the households? Every claim that holds in all data sets that fit the tables."""
    if zeros not in ZEROS:
        raise unknown("choice of structural zeros", zeros, ZEROS)
    if leaks and leaks not in LEAKS:
        raise unknown("kind of leak", leaks, LEAKS)
    if blocks and pick:
        raise InputError("--blocks and --pick: give one or the other")
    planned = bool(leaks and only)  # tables that are not used may be added, so they are read too
    chosen = chosen_scenario(scenario, "" if planned else only, mapping).with_zeros(ZEROS[zeros])
    used = [table.name for table in chosen_scenario(scenario, only, []).tables] if planned else []
    if columns > len(chosen.wording.columns):
        raise InputError(f"--columns {columns}: a record of this scenario has {len(chosen.wording.columns)} columns")
    if pick:
        from glasshouse.commands.work.picked_places import parse_pick

        parse_pick(pick, chosen.geography)
    inputs = {"truth": truth, "prior tract": prior_tract, "prior state": prior_state}
    inputs |= {"blocks": Path(blocks)} if blocks and Path(blocks).is_file() else {}
    options = {
        "columns": columns, "singletons": singletons, "absent": absent, "cannot": sorted(set(cannot)), "why": why,
        "leaks": leaks, "drop": _values(drop), "zeros": zeros, "blocks": blocks if "blocks" not in inputs else "",
        "pick": pick, "used": used,
    }  # fmt: skip
    given = Given(
        tables, chosen, scenario, out, chosen.geography.place, seed, codebook, assume, mapping, overwrite, workers,
        executor, effort, seconds, as_json, quiet, {role: path for role, path in inputs.items() if path}, options,
    )  # fmt: skip
    return run_attack(_Verify(), given)


def _values(text: str) -> list[int]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not all(word.isdigit() for word in words):
        raise InputError(f"--drop-cells {text}: expected whole numbers such as 0,1")
    return sorted({int(word) for word in words})


class _Verify:
    command = "verify"
    short = ""  # fewer places than were asked for

    def prepare(self, given: Given, job: Job, items: Iterator[Item], near: Path) -> Prepared:
        from glasshouse.commands.work.verify import chosen_places, enquiry, examine, schemas, state_priors, with_records
        from glasshouse.files.records import open_records
        from glasshouse.files.units import by_unit

        chosen, self.short = _chosen(given, near)
        if chosen is not None:
            items = chosen_places(items, chosen)
        columns = given.scenario.wording.columns  # all of them, whichever the tables look at

        def records(role: str) -> Iterator[pl.DataFrame]:
            return open_records(given.inputs[role], given.scenario, columns).frames()

        truth, tract = (
            by_unit(records(role), given.scenario.geography, near) if role in given.inputs else None
            for role in ("truth", "prior tract")
        )
        priors = state_priors(records("prior state"), given.scenario) if "prior state" in given.inputs else {}
        # times are told of what is done; the level of the place alone is asked, so nothing is left out
        asked = enquiry(replace(job, options=given.options), priors)
        return Prepared(
            asked, with_records(items, given.scenario, truth, tract), examine, schemas(given.scenario, given.options)
        )

    def notes(self, given: Given, job: Job, tally: Tally) -> list[str]:
        geography = given.scenario.geography
        notes = [
            f"warning: {table.name}: {table.doubt}; with an office's own file, leave it out (--tables)"
            for table in job.published.tables
            if table.doubt and (not given.options["used"] or table.name in given.options["used"])
        ]
        if other := tally.counts["other_truth"]:
            places = geography.told({geography.place: other})
            notes.append(
                f"warning: in {places} the true records (--truth) do not give the published numbers, so a claim can be "
                f"certain from the tables and not true of them: {tally.counts['untrue']:,} of "
                f"{tally.counts['claims']:,} claims are"
            )
        for prior, missing in (("tract", tally.counts["no_tract"]), ("state", tally.counts["no_state"])):
            if missing:
                places = geography.told({geography.place: missing})
                notes.append(
                    f"warning: --prior-{prior}: nobody of the {prior} of {places} is in that file; no probability"
                )
        return [*notes, self.short] if self.short else notes

    def end(self, given: Given, job: Job, tally: Tally, folder: Folder) -> tuple[dict[str, Any], list[str], list[str]]:
        from glasshouse.commands.words.verify_summary import ended

        return ended(folder.path, given.scenario, given.options, tally)


def _listed(given: Given) -> frozenset[str]:
    from glasshouse.commands.work.picked_places import listed

    named = given.options["blocks"] or str(given.inputs["blocks"])
    return listed(named, given.scenario.geography)


def _chosen(given: Given, near: Path) -> tuple[frozenset[str] | None, str]:
    """The places asked for (None when all are), and what to say if there are fewer; the file is read once more."""
    from glasshouse.commands.work.picked_places import parse_pick, picked, places_in, sizes
    from glasshouse.files.tables import open_tables

    scenario: Scenario = given.scenario
    geography = scenario.geography
    releases = open_tables(given.tables, scenario, given.codebook).releases(assume=given.assume, near=near)
    if given.options["blocks"] or "blocks" in given.inputs:
        asked = _listed(given)
        found = asked & places_in(releases, geography)
        if not found:
            raise InputError(f"--blocks: none of the {len(asked):,} codes asked for is in {given.tables.name}")
        missing = len(asked) - len(found)
        return (
            found,
            f"warning: {missing:,} of the {len(asked):,} codes of --blocks are not in the file" if missing else "",
        )
    if not given.options["pick"]:
        return None, ""
    pick = parse_pick(given.options["pick"], geography)
    found, wanted = picked(sizes(releases, scenario), pick, geography, given.seed)
    short = f"note: --pick {given.options['pick']}: only {len(found):,} of {wanted:,} are there to be picked"
    return found, short if len(found) < wanted else ""
