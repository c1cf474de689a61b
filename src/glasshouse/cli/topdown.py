"""The command that protects records from the top down: protect topdown."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import typer

from glasshouse.cli.options import Json, Quiet, ScenarioName, Verbose, inputs_of, say
from glasshouse.cli.protecting import OutFile, Overwrite, RecordsFile, from_file_to_file, protect_app
from glasshouse.errors import InputError

SIMULATED = "noise from the seeded simulator: for studies, not for a release (see --secure)"
FAR_OFF = 0.05  # more or fewer records than there were, by this share, is said
SECURE_NOTE = "noise from a secure source (OpenDP): not repeatable, and slow (about 50,000 numbers a second)"


@protect_app.command(
    epilog="Example:  glasshouse protect topdown county/cef.parquet --scenario pl94 --budget pl94-2020 "
    "--places county/blocks.parquet --out mdf.parquet\n\n"
    "The records written add up at every level, and their tables too; people are no longer in households. Noise with "
    "--seed is a simulation, for studies; for a release use --secure."
)
def topdown(
    records: RecordsFile,
    out: OutFile,
    scenario: ScenarioName = "mdf-person",
    budget: Annotated[
        str, typer.Option("--budget", metavar="NAME|FILE", help="How rho is divided: a budget by name, or a TOML file.")
    ] = "persons-2020",
    rho: Annotated[
        str, typer.Option("--rho", metavar="R", help="Another total, divided alike: a decimal or a fraction.")
    ] = "",
    top: Annotated[
        str, typer.Option("--top", metavar="LEVEL", help="Where it begins; default: what all records have in common.")
    ] = "",
    bottom_up: Annotated[
        bool, typer.Option("--bottom-up", help="For comparison: spend all of it at the blocks, and add up.")
    ] = False,
    hold: Annotated[
        list[str] | None,
        typer.Option(
            "--hold", metavar="QUERY@LEVEL",
            help="Counts without noise, as total@county, or none; as the budget says."
        ),
    ] = None,
    absence: Annotated[
        list[str] | None,
        typer.Option(
            "--absence", metavar="QUERY@LEVEL", help="Where a group has nobody it gets nobody, as hhgq@block; or none."
        ),
    ] = None,
    places: Annotated[
        Path | None, typer.Option("--places", metavar="FILE", help="Every block there is: those without records, too.")
    ] = None,
    neighbours: Annotated[
        str, typer.Option("--neighbours", help="add-remove or change-one; default: as the budget says.")
    ] = "",
    seed: Annotated[int | None, typer.Option("--seed", help="The same seed gives the same file; default 1.")] = None,
    secure: Annotated[bool, typer.Option("--secure", help="Noise for a real release: not repeatable.")] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> int:  # fmt: skip
    """Noisy counts at every level, made into records that agree with them and add up."""
    from dataclasses import replace

    from glasshouse.commands.work.topdown import Settings, topdown_file
    from glasshouse.engine.progress import progress
    from glasshouse.mechanism.account import allocation, fraction
    from glasshouse.mechanism.gaussian import NEIGHBOURS
    from glasshouse.scenarios.load import load

    if secure and seed is not None:
        raise InputError("--secure and --seed: noise for a release is not repeatable; give one or the other")
    if neighbours and neighbours not in NEIGHBOURS:
        raise InputError(f"unknown --neighbours '{neighbours}'; known: {', '.join(NEIGHBOURS)}")
    divided = allocation(budget)
    if rho:
        total = fraction(rho, "--rho")
        if total <= 0:
            raise InputError(f"--rho {rho}: expected more than 0; with no budget nothing can be told")
        divided = replace(divided, total=total)
    held, absent = _at(hold, "--hold"), _at(absence, "--absence")
    parameters = {
        "scenario": scenario, "budget": budget, "rho": str(divided.total), "top": top, "bottom_up": bottom_up,
        "hold": hold, "absence": absence, "neighbours": neighbours or divided.neighbours,
        "seed": None if secure else 1 if seed is None else seed, "secure": secure,
    }  # fmt: skip
    inputs = {"records": records} | ({"places": places} if places else {})
    inputs |= {"budget": Path(budget)} if Path(budget).is_file() else {}

    def work() -> tuple[dict[str, Any], list[str]]:
        if secure and not quiet:
            say(f"note: {SECURE_NOTE}")
        with progress("protect topdown", shown=not quiet) as watch:
            settings = Settings(
                divided, top, bottom_up, held, absent, 1 if seed is None else seed, secure, places,
                neighbours or None, watch,
            )  # fmt: skip
            counts = topdown_file(records, load(scenario), out, settings)
        if not quiet:
            say(*([] if secure else [f"note: {SIMULATED}"]), *_notes(counts, places, scenario))
        how = "at the blocks alone" if bottom_up else f"from the {counts['levels'][0]} down"
        line = (
            f"{counts['written']:,} records in {counts['places']:,} places, {how} "
            f"(there were {counts['records']:,}); rho {counts['rho_spent_decimal']:.6g}, "
            f"epsilon {counts['epsilon']:.2f} at delta {counts['delta']:g} ({counts['neighbours']}) -> {out}"
        )
        return counts, [line]

    return from_file_to_file(
        "protect topdown", parameters, inputs_of(inputs, scenario, []), out, work,
        overwrite=overwrite, as_json=as_json, quiet=quiet,
    )  # fmt: skip


def _notes(counts: dict[str, Any], places: Path | None, scenario: str) -> list[str]:
    """What people must know of the records besides their number."""
    notes = []
    if float(Fraction(counts["rho_left"])) > 0:
        left = float(Fraction(counts["rho_left"]))
        notes.append(
            f"note: rho {left:.6g} of {float(Fraction(counts['rho'])):.6g} is left unspent: the budget has it for "
            "levels or queries that are not here"
        )
    exact = [f"{query}@{level}" for level, query in counts["held"].items()]
    if exact:
        notes.append(f"note: without noise, and in no account: the counts of {', '.join(exact)}")
    if counts["absence"]:
        known = next(reversed(counts["absence"].items()))
        notes.append(f"note: without noise, and in no account: which groups of {known[1]} are empty at each {known[0]}")
    if counts["not_held"]:
        notes.append(f"note: the budget would hold {', '.join(counts['not_held'])}, which cannot be here; it does not")
    if counts["left_out"]:
        notes.append(f"note: not asked, as {scenario} has no words for it: {', '.join(counts['left_out'])}")
    if places is None:
        notes.append("note: only places with records take part; --places FILE names those that have none")
    more = counts["written"] / counts["records"] - 1
    if abs(more) > FAR_OFF:
        notes.append(
            f"warning: {more:+.0%} records: with much noise and no total held, counts that cannot be negative come out "
            "too large"
        )
    return notes


def _at(given: list[str] | None, option: str) -> tuple[tuple[str, str], ...] | None:
    """What is held where: of `total@county` the query and the level; None if nothing was said."""
    if not given:
        return None
    if "none" in given:
        if len(given) > 1:
            raise InputError(f"{option} none beside another {option}: nothing, or something; give one or the other")
        return ()
    found = []
    for entry in given:
        query, at, level = entry.rpartition("@")
        if not at or not query or not level:
            raise InputError(f"{option} {entry}: expected QUERY@LEVEL, as total@county, or none")
        found.append((query, level))
    return tuple(found)
