"""The commands that protect tables without a budget: protect round, suppress, cellkey."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glasshouse.cli.options import (
    Assume,
    Codebook_,
    Json,
    Mapping_,
    Quiet,
    ScenarioName,
    Tables,
    Verbose,
    chosen_scenario,
    inputs_of,
    notes_on,
)
from glasshouse.cli.protecting import OutFile, Overwrite, Seed, TablesFile, from_file_to_file, protect_app
from glasshouse.errors import InputError

if TYPE_CHECKING:  # heavy modules are imported by the commands that need them, so that --help is quick
    from glasshouse.commands.work.perturb import Method
    from glasshouse.scenarios.load import Scenario

Values = Annotated[
    Path | None,
    typer.Option("--values", metavar="FILE", help="Write what the office would print, too: blank where suppressed."),
]
PLACES = (
    "note: places that are not in the file have zeros in all tables, and stay out; so do totals that are 0 everywhere"
)


@protect_app.command(
    name="round",
    epilog="Example:  glasshouse protect round tables.parquet --scenario sf1-person --base 3 --out rounded.parquet\n\n"
    "Every number is rounded on its own, totals too, so they do not add up; the file has the interval of each.",
)
def round_(
    tables: TablesFile,
    scenario: ScenarioName,
    out: OutFile,
    base: Annotated[int, typer.Option("--base", min=2, help="Round to multiples of this.")] = 3,
    how: Annotated[str, typer.Option("--how", help="random (unbiased), nearest, up or down.")] = "random",
    values: Values = None,
    only: Tables = "",
    codebook: Codebook_ = None,
    assume: Assume = "seen",
    mapping: Mapping_ = [],  # noqa: B006  # typer copies it
    seed: Seed = 1,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> int:
    """Round every number of tables to a multiple of a base."""
    from glasshouse.commands.work.perturb import rounding

    method = rounding(base, how, seed)
    by_chance = {"seed": seed} if how == "random" else {}
    return _protect(
        "protect round", {"base": base, "how": how} | by_chance, lambda chosen: method, tables, scenario, out, values,
        only, codebook, assume, mapping, {}, overwrite, as_json, quiet,
        lambda said: [f"{said['changed']:,} of {said['cells']:,} numbers rounded to another one, base {base} ({how})"],
    )  # fmt: skip


@protect_app.command(
    epilog="Example:  glasshouse protect suppress tables.parquet --scenario sf1-person --below 5 --out hidden.parquet"
    "\n\nOnly small counts are hidden. Whether the totals that stay give them away is left to you: name further cells "
    "in --also (level, geoid, variable), and let verify or vary tell what still follows."
)
def suppress(
    tables: TablesFile,
    scenario: ScenarioName,
    out: OutFile,
    below: Annotated[int, typer.Option("--below", min=2, metavar="K", help="Hide counts from 1 to K - 1.")] = 5,
    zeros: Annotated[str, typer.Option("--zeros", help="Zeros: show or hide.")] = "show",
    also: Annotated[
        Path | None,
        typer.Option("--also", metavar="FILE", help="Hide these cells too: level, geoid, variable."),
    ] = None,
    values: Values = None,
    only: Tables = "",
    codebook: Codebook_ = None,
    assume: Assume = "seen",
    mapping: Mapping_ = [],  # noqa: B006  # typer copies it
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> int:
    """Leave small counts of tables blank, and other cells you name."""
    from glasshouse.commands.work.perturb import Suppression, read_cells

    if zeros not in ("show", "hide"):
        raise InputError(f"--zeros {zeros}: expected show or hide")

    def method(chosen: Scenario) -> Method:
        return Suppression(below, zeros == "hide", read_cells(also, chosen) if also else {})

    def lines(said: dict[str, Any]) -> list[str]:
        return [
            f"{said['hidden']:,} of {said['cells']:,} numbers hidden",
            "note: no complementary suppression was done: totals that stay may give hidden numbers away; see --also",
        ]

    return _protect(
        "protect suppress", {"below": below, "zeros": zeros}, method, tables, scenario, out, values,
        only, codebook, assume, mapping, {"also": also} if also else {}, overwrite, as_json, quiet, lines,
    )  # fmt: skip


@protect_app.command(
    epilog="Example:  glasshouse protect cellkey tables.parquet --scenario sf1-person --seed 7 --out keyed.parquet\n\n"
    "The same description of records in the same place has the same change in every table. Without --ptable: zero "
    "stays zero, changes up to 2, none on average. Whoever knows the seed can undo every change: keep it secret."
)
def cellkey(
    tables: TablesFile,
    scenario: ScenarioName,
    out: OutFile,
    ptable: Annotated[
        Path | None,
        typer.Option(
            "--ptable",
            metavar="FILE",
            help="count, change, probability; the row of the largest count stands for all larger ones.",
        ),
    ] = None,
    values: Values = None,
    only: Tables = "",
    codebook: Codebook_ = None,
    assume: Assume = "seen",
    mapping: Mapping_ = [],  # noqa: B006  # typer copies it
    seed: Seed = 1,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> int:
    """Change every number of tables a little, as a key of its cell and a p-table say."""
    from glasshouse.commands.work.perturb import cell_key, read_ptable

    table = read_ptable(ptable)
    return _protect(
        "protect cellkey", {"seed": seed}, lambda chosen: cell_key(chosen, table, seed), tables, scenario, out, values,
        only, codebook, assume, mapping, {"ptable": ptable} if ptable else {}, overwrite, as_json, quiet,
        lambda said: [f"{said['changed']:,} of {said['cells']:,} numbers changed by their cell key"],
    )  # fmt: skip


def _protect(
    command: str,
    parameters: dict[str, Any],
    method: Callable[[Scenario], Method],
    tables: Path,
    scenario: str,
    out: Path,
    values: Path | None,
    only: str,
    codebook: Path | None,
    assume: str,
    mapping: list[str],
    further: dict[str, Path],
    overwrite: bool,
    as_json: bool,
    quiet: bool,
    lines: Callable[[dict[str, Any]], list[str]],
) -> int:
    """What the three commands share: from a table file to intervals, with notes on what was not used."""
    from glasshouse.commands.work.perturb import perturb_file, refuse_second_file
    from glasshouse.engine.progress import progress
    from glasshouse.files.tables import open_tables

    chosen = chosen_scenario(scenario, only, mapping)
    refuse_second_file(values, "--values", out, tables, overwrite=overwrite)
    said = {"scenario": chosen.name, "tables": [table.name for table in chosen.tables], "assume_published": assume}
    said |= {**parameters, "values": str(values) if values else ""}

    def work() -> tuple[dict[str, Any], list[str]]:
        file = open_tables(tables, chosen, codebook)
        with progress(command, shown=not quiet) as watch:
            counts = perturb_file(file, chosen, out, method(chosen), values=values, assume=assume, watch=watch)
        counts["notes"] = [*lines(counts)[1:], PLACES, *notes_on(file, chosen, assume)]
        where = chosen.geography.told(counts["places"])
        return counts, [f"{lines(counts)[0]}, in {where} -> {out}", *counts["notes"]]

    inputs = {"data": tables, **further} | ({"codebook": codebook} if codebook else {})
    return from_file_to_file(
        command, said, inputs_of(inputs, scenario, mapping), out, work,
        overwrite=overwrite, as_json=as_json, quiet=quiet,
    )  # fmt: skip
