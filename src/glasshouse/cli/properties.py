"""The command that adds noise to what is published of subsidised properties: protect properties."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from glasshouse.cli.noise import SIMULATED
from glasshouse.cli.options import Json, Quiet, ScenarioName, Verbose, chosen_scenario, inputs_of
from glasshouse.cli.protecting import OutFile, Overwrite, from_file_to_file, protect_app
from glasshouse.errors import InputError, unknown

SCENARIO = "subsidised-housing"
NOTES = (
    "note: the price is that of a household in every share, and of a person among the people: a household of k persons "
    "costs k times k what the people do",
    "note: which properties there are, which are suppressed and how many households report is taken as public",
)


@protect_app.command(
    epilog="Example:  glasshouse protect properties county/housing.parquet --rho 12.66 --out noisy-housing.parquet\n\n"
    "Noise is added to the counts that the percentages round to, and to the people. --rho is divided evenly among the "
    "questions (bedrooms, householder, adults, people). What is suppressed stays as it is."
)
def properties(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Properties as HUD's Picture has them: CSV, CSV.gz or Parquet.")
    ],
    rho: Annotated[str, typer.Option("--rho", metavar="R", help="The privacy loss in all: 0.5 or 1/2.")],
    out: OutFile,
    neighbours: Annotated[str, typer.Option("--neighbours", help="add-remove (default) or change-one.")] = "",
    seed: Annotated[
        int | None, typer.Option("--seed", help="Noise of the simulator: the same seed, the same file; 1 if not given.")
    ] = None,
    secure: Annotated[
        bool, typer.Option("--secure", help="Noise from a secure source, for a real release; it has no seed.")
    ] = False,
    scenario: ScenarioName = SCENARIO,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> int:
    """Add discrete Gaussian noise to the statistics of properties, with an exact account of what it costs."""
    from glasshouse.commands.work.properties import noise_properties
    from glasshouse.mechanism.account import fraction
    from glasshouse.mechanism.gaussian import NEIGHBOURS

    if secure and seed is not None:
        raise InputError("--secure has no seed: its noise cannot be drawn again; leave --seed out")
    if neighbours and neighbours not in NEIGHBOURS:
        raise unknown("neighbour relation", neighbours, NEIGHBOURS)
    chosen = chosen_scenario(scenario, "", [])
    if chosen.occupancy is None:
        raise InputError(f"scenario {chosen.name} says nothing of properties; known: {SCENARIO}")
    total = fraction(rho, "--rho")
    if total <= 0:
        raise InputError(f"--rho is {rho}; expected more than 0: with none, nothing can be published")
    chance = None if secure else 1 if seed is None else seed
    parameters = {
        "scenario": chosen.name, "rho": str(total), "neighbours": neighbours, "secure": secure, "seed": chance,
    }  # fmt: skip

    def work() -> tuple[dict[str, Any], list[str]]:
        counts = noise_properties(
            file, chosen, out, rho=total, neighbours=neighbours or "add-remove", seed=chance
        )  # fmt: skip
        counts["notes"] = [*([] if secure else [SIMULATED]), *NOTES, *_notes(counts)]
        return counts, [*_lines(counts, out), *counts["notes"]]

    return from_file_to_file(
        "protect properties", parameters, inputs_of({"data": file}, scenario, []), out, work,
        overwrite=overwrite, as_json=as_json, quiet=quiet,
    )  # fmt: skip


def _notes(counts: dict[str, Any]) -> list[str]:
    notes = [f"note: published as they are, and in no account: {', '.join(counts['as_they_are'])}"]
    if counts["wider"]:
        notes.append(
            f"note: {counts['wider']:,} properties have wider noise: more than 100 households report, so that a "
            "percentage point is more than one of them"
        )
    return notes


def _lines(counts: dict[str, Any], out: Path) -> list[str]:
    """What was spent on what, for people."""
    return [
        f"{counts['measured']:,} numbers of {counts['with_noise']:,} properties have noise "
        f"({counts['properties'] - counts['with_noise']:,} properties say nothing); {counts['negatives']:,} were "
        f"negative -> {out}",
        f"rho {counts['rho_spent']} ({counts['rho_spent_decimal']:.6g}) spent of {counts['rho']}: epsilon "
        f"{counts['epsilon']:.4g} at delta {counts['delta']:g}, {counts['neighbours']} neighbours; "
        + ", ".join(f"{name} {price}" for name, price in counts["ledger"].items()),
    ]
