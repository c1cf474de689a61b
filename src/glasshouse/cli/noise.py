"""The command that adds noise to tables: protect noise."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

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
from glasshouse.cli.protecting import OutFile, Overwrite, TablesFile, from_file_to_file, protect_app
from glasshouse.errors import InputError

NOTES = (
    "note: which places and totals are in the file is taken as public: a place that is not in it gets no noise",
    "note: tables are not made consistent with each other; glasshouse check will find where they contradict",
)
SIMULATED = "note: noise of the seeded simulator, for studies; --secure is for a real release"


@protect_app.command(
    epilog="Example:  glasshouse protect noise tables.parquet --scenario pl94 --budget pl94-2020 --out noisy.parquet"
    "\n\nNoise is added to the lines that are no totals, and totals are added up from them. --rho alone is divided "
    "evenly among levels and tables. A budget names tables, or strategy queries: then every line gets the noise it "
    "would have if it were added up from the best of them (appendix F of Steed et al.)."
)
def noise(
    tables: TablesFile,
    scenario: ScenarioName,
    out: OutFile,
    rho: Annotated[
        str,
        typer.Option("--rho", metavar="R", help="The privacy loss in all: 0.5 or 1/2; of a budget, another total."),
    ] = "",
    budget: Annotated[
        str,
        typer.Option("--budget", metavar="NAME|FILE.toml", help="How rho is divided: pl94-2020, or a file of yours."),
    ] = "",
    neighbours: Annotated[
        str, typer.Option("--neighbours", help="add-remove (default) or change-one; a budget says it itself.")
    ] = "",
    invariant: Annotated[
        list[str],
        typer.Option("--invariant", metavar="VARIABLE", help="Publish this number as it is; may be repeated."),
    ] = [],  # noqa: B006  # typer copies it
    postprocess: Annotated[
        str,
        typer.Option("--postprocess", help="simple (negatives to 0, invariants kept), clip (negatives to 0) or none."),
    ] = "simple",
    measurements: Annotated[
        Path | None,
        typer.Option("--measurements", metavar="FILE", help="Write the noisy numbers as they are, too."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Noise of the simulator: the same seed, the same file; 1 if not given.")
    ] = None,
    secure: Annotated[
        bool, typer.Option("--secure", help="Noise from a secure source, for a real release; it has no seed.")
    ] = False,
    only: Tables = "",
    codebook: Codebook_ = None,
    assume: Assume = "seen",
    mapping: Mapping_ = [],  # noqa: B006
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> int:
    """Add discrete Gaussian noise to tables, with an exact account of what it costs."""
    from glasshouse.commands.work.noise import noise_file
    from glasshouse.commands.work.perturb import refuse_second_file
    from glasshouse.engine.progress import progress
    from glasshouse.files.tables import open_tables
    from glasshouse.mechanism.account import allocation, fraction

    if secure and seed is not None:
        raise InputError("--secure has no seed: its noise cannot be drawn again; leave --seed out")
    if not rho and not budget:
        raise InputError("what may it cost? expected --rho, or --budget")
    chosen = chosen_scenario(scenario, only, mapping)
    total = fraction(rho, "--rho") if rho else None
    if total is not None and total <= 0:
        raise InputError(f"--rho is {rho}; expected more than 0: with none, nothing can be published")
    divided = allocation(budget) if budget else None
    refuse_second_file(measurements, "--measurements", out, tables, overwrite=overwrite)
    chance = None if secure else 1 if seed is None else seed
    parameters = {
        "scenario": chosen.name, "tables": [table.name for table in chosen.tables], "assume_published": assume,
        "rho": str(total) if total else "", "budget": divided.name if divided else "", "neighbours": neighbours,
        "invariant": invariant, "postprocess": postprocess, "secure": secure, "seed": chance,
        "measurements": str(measurements) if measurements else "",
    }  # fmt: skip

    def work() -> tuple[dict[str, Any], list[str]]:
        file = open_tables(tables, chosen, codebook)
        with progress("protect noise", shown=not quiet) as watch:
            counts = noise_file(
                file, chosen, out, rho=total, budget=divided, neighbours=neighbours or None, seed=chance,
                invariants=invariant, postprocess=postprocess, measurements=measurements, assume=assume, watch=watch,
            )  # fmt: skip
        counts["notes"] = [*([] if secure else [SIMULATED]), *NOTES, *notes_on(file, chosen, assume)]
        return counts, [*_lines(counts, chosen.geography.told(counts["places"]), out), *counts["notes"]]

    inputs = {"data": tables} | ({"budget": Path(budget)} if Path(budget).is_file() else {})
    inputs |= {"codebook": codebook} if codebook else {}
    return from_file_to_file(
        "protect noise", parameters, inputs_of(inputs, scenario, mapping), out, work,
        overwrite=overwrite, as_json=as_json, quiet=quiet,
    )  # fmt: skip


def _lines(counts: dict[str, Any], where: str, out: Path) -> list[str]:
    """What was spent on what, for people."""
    dearest = sorted(counts["ledger"].items())
    lines = [
        f"{counts['measured']:,} noisy numbers make {counts['cells']:,} published ones in {where}; "
        f"{counts['negatives']:,} were negative -> {out}",
        f"rho {counts['rho_spent']} ({counts['rho_spent_decimal']:.6g}) spent of {counts['rho']}: epsilon "
        f"{counts['epsilon']:.4g} at delta {counts['delta']:g}, {counts['neighbours']} neighbours; "
        f"{len(dearest)} entries in the account (see the manifest)",
    ]
    if counts["levels_unspent"]:
        lines.append(f"Left unspent: the shares of {', '.join(counts['levels_unspent'])}, which are not in the file.")
    exact = [*counts["invariants"], *(f"table {name}" for name in counts["held"])]
    if exact:
        lines.append(f"Published exactly, and in no account: {', '.join(exact)}.")
    return lines
