"""The command that swaps households: protect swap."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from glasshouse.cli.options import Json, Quiet, Verbose, say
from glasshouse.cli.protecting import OutFile, Overwrite, RecordsFile, Seed, from_file_to_file, protect_app
from glasshouse.errors import InputError, unknown


@protect_app.command(
    epilog="Example:  glasshouse protect swap county/cef.parquet --rate 0.1 --coordinates county/blocks.parquet "
    "--out swapped.parquet --log pairs.parquet\n\nThe households go along with  --households "
    "county/households.parquet --households-out moved.parquet\n\nPersons, voting-age persons and households of each "
    "size stay as counted in every block; the log undoes the swap: keep it as you keep the records."
)
def swap(
    records: RecordsFile,
    rate: Annotated[
        float, typer.Option("--rate", metavar="R", help="The share of households that change block, from 0 to 1.")
    ],
    out: OutFile,
    nearest: Annotated[
        int, typer.Option("--nearest", metavar="N", min=1, help="A partner is drawn from so many nearest households.")
    ] = 5,
    small: Annotated[
        int, typer.Option("--small", metavar="N", min=0, help="A block of fewer persons exposes its households.")
    ] = 10,
    coordinates: Annotated[
        Path | None,
        typer.Option("--coordinates", metavar="FILE", help="Where blocks are: block, x, y; else nearness is by code."),
    ] = None,
    quarters: Annotated[
        str,
        typer.Option(
            "--group-quarters",
            metavar="keep|synthesize",
            help="Group quarters are never swapped; synthesize draws race and origin of their residents anew.",
        ),
    ] = "keep",
    log: Annotated[
        Path | None, typer.Option("--log", metavar="FILE", help="Write the pairs: .csv, .csv.gz or .parquet; private.")
    ] = None,
    households: Annotated[
        Path | None,
        typer.Option("--households", metavar="FILE", help="The file of the same households: household_id, block, ..."),
    ] = None,
    households_out: Annotated[
        Path | None,
        typer.Option("--households-out", metavar="FILE", help="Write --households, too, with the same moves."),
    ] = None,
    scenario: Annotated[
        str,
        typer.Option(
            "--scenario",
            metavar="NAME|FOLDER",
            help="Whose [household] says who lives together and who is alike; else the columns of the file decide.",
        ),
    ] = "",
    seed: Seed = 1,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> int:
    """Swap households with others nearby that have as many persons and adults, rather those that are exposed."""
    from glasshouse.commands.work.swap import QUARTERS, swap_file
    from glasshouse.scenarios.load import load

    if not 0 <= rate <= 1:
        raise InputError(f"--rate {rate:g}: expected the share of households that change block, from 0 to 1")
    if quarters not in QUARTERS:
        raise unknown("--group-quarters", quarters, QUARTERS)
    if (households is None) != (households_out is None):
        raise InputError("--households and --households-out go together: give both, or neither")
    inputs = {"records": records} | ({"coordinates": coordinates} if coordinates else {})
    inputs |= {"households": households} if households else {}
    _check_beside("--log", log, out, inputs, overwrite=overwrite)
    others = inputs | ({"log": log} if log else {})
    _check_beside("--households-out", households_out, out, others, overwrite=overwrite)
    parameters = {
        "rate": rate, "nearest": nearest, "small": small, "group-quarters": quarters, "log": log is not None,
        "households-out": str(households_out) if households_out else "", "seed": seed,
    }  # fmt: skip
    parameters |= {"scenario": scenario} if scenario else {}

    def work() -> tuple[dict[str, Any], list[str]]:
        counts = swap_file(
            records, out, rate=rate, seed=seed, nearest=nearest, small=small, coordinates=coordinates,
            quarters=quarters, log=log, households=households, households_out=households_out,
            scenario=load(scenario) if scenario else None,
        )  # fmt: skip
        notes = _notes(counts, rate)
        if quarters == "synthesize" and not counts["group_quarters_persons"]:
            notes.append("warning: nobody is known to live in group quarters, so nothing was drawn anew")
        if not (as_json or quiet):
            say(*notes)
        line = (
            f"{counts['moved']:,} of {counts['households']:,} households ({counts['share']:.2%}) with "
            f"{counts['persons_moved']:,} persons are in another block"
        )
        if quarters == "synthesize":
            line += f"; race and origin of {counts['redrawn']:,} persons in group quarters drawn anew"
        lines = [f"{line} -> {out}"]
        if households_out:
            lines.append(f"{counts['units']:,} housing units, with the same moves -> {households_out}")
        return {**counts, "notes": notes}, lines

    return from_file_to_file(
        "protect swap", parameters, inputs, out, work, overwrite=overwrite, as_json=as_json, quiet=quiet
    )


def _notes(counts: dict[str, Any], rate: float) -> list[str]:
    """What a reader should know of how it was done."""
    notes = []
    if counts["nearness"] == "codes":
        notes.append(
            "note: without --coordinates, near means near in the order of codes: the same tract first, then the "
            "tracts next to it in that order"
        )
    if counts["group_quarters_by"] != "gq":
        notes.append("note: there is no column 'gq': everyone with a household_id is taken to live in a household")
    if counts["unmatched"]:
        notes.append(
            f"note: {counts['unmatched']:,} chosen households found no partner: nobody alike elsewhere is free"
        )
    if counts["moved"] + 2 < rate * counts["households"]:
        fixed = f" ({counts['imputed_households']:,} are entirely imputed, and stay)" * bool(
            counts["imputed_households"]
        )
        notes.append(
            f"note: the share that moved, {counts['share']:.2%}, is below --rate {rate:g}: no pairs are left{fixed}"
        )
    return notes


def _check_beside(option: str, path: Path | None, out: Path, inputs: dict[str, Path], *, overwrite: bool) -> None:
    """Refuse a second file that would replace something else, and a result that is there without it."""
    from glasshouse.files.output import check_kind

    if path is None:
        return
    check_kind(path)
    if path.resolve() in {other.resolve() for other in (out, *inputs.values())}:
        raise InputError(f"{option} {path}: that is another file of this command; name another")
    if not overwrite and path.exists() != out.exists():
        there, absent = (path, out) if path.exists() else (out, path)
        raise InputError(f"{there} exists, and {absent} does not; remove it or add --overwrite")
