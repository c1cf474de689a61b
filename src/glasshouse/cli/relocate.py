"""The command `protect relocate`: people at risk are moved to other places."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, cast, get_args

import typer

from glasshouse.cli.options import Json, Quiet, Verbose
from glasshouse.cli.protecting import OutFile, Overwrite, RecordsFile, Seed, from_file_to_file, protect_app
from glasshouse.commands.relocation_options import BY, CoverageName, Relocating, WeightName
from glasshouse.errors import InputError, unknown


@protect_app.command(
    epilog="Example:  glasshouse protect relocate people.parquet --by sex,race --place block --lambda 3 --capacity 20 "
    "--q 0.5 --out relocated.parquet\n\nPeople who are moved lose their household_id: nobody lives with them there."
)
def relocate(
    records: RecordsFile,
    by: Annotated[str, typer.Option("--by", metavar="COLUMNS", help=BY)],
    out: OutFile,
    place: Annotated[
        str, typer.Option("--place", help="Of records: the column of the place's code, free text.")
    ] = "block",
    risk: Annotated[int, typer.Option("--lambda", metavar="N", min=0, help="Elements of 1 to N are at risk.")] = 3,
    capacity: Annotated[
        str,
        typer.Option(
            "--capacity",
            metavar="N|N%|FILE",
            help="How many may arrive in a place, on average: a number, a share of its people, or a file "
            "place,capacity.",
        ),
    ] = "20",
    q: Annotated[
        float,
        typer.Option("--q", min=0, max=1, help="The point of the front: the share of utility lost; 1 protects most."),
    ] = 1.0,
    weight: Annotated[
        str,
        typer.Option(
            "--weight",
            help="What moving a person is worth: inverse-quadratic, constant, inverse-linear, inverse-cubic, "
            "inverse-exponential (in the people of their element).",
        ),
    ] = "inverse-quadratic",
    coverage: Annotated[
        str, typer.Option("--coverage", help="Who may receive: row-wise (not at risk in that row), or relaxed.")
    ] = "row-wise",
    near: Annotated[
        Path | None, typer.Option("--near", metavar="FILE", help="Only to places near: pairs of codes, two columns.")
    ] = None,
    coordinates: Annotated[
        Path | None, typer.Option("--coordinates", metavar="FILE", help="Where places are: code, x, y.")
    ] = None,
    within: Annotated[
        float, typer.Option("--within", metavar="D", help="Only to places at most so far, in units of --coordinates.")
    ] = 0.0,
    spread: Annotated[
        str,
        typer.Option(
            "--spread", help="Of people alike: whole (elements are emptied one by one) or even (the same chance)."
        ),
    ] = "even",
    seed: Seed = 1,
    overwrite: Overwrite = False,
    as_json: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> int:
    """Move people at risk to other places, at a point of the front; totals of every combination stay."""
    from glasshouse.commands.work.relocate import relocate_file
    from glasshouse.protection.relocation.front import Spread

    for flag, word, known in (
        ("--weight", weight, get_args(WeightName)),
        ("--coverage", coverage, get_args(CoverageName)),
        ("--spread", spread, tuple(Spread)),
    ):
        if word not in known:
            raise unknown(flag, word, known)
    if coordinates is not None and not within:
        raise InputError("--coordinates is of use with --within: how far people may move")
    parameters = {
        "by": by, "place": place, "lambda": risk, "capacity": capacity, "q": q, "weight": weight, "coverage": coverage,
        "within": within, "spread": spread, "seed": seed,
    }  # fmt: skip
    rules = Relocating(
        place, capacity, cast(WeightName, weight), cast(CoverageName, coverage), near, coordinates, within
    )

    def work() -> tuple[dict[str, Any], list[str]]:
        columns = tuple(name.strip() for name in by.split(","))
        found = rules.matrix(records, columns)
        (ruled,) = rules.rules(found, [risk])
        counts = relocate_file(records, out, found, ruled, columns, place, q, Spread(spread), seed)
        over = (
            f"{counts['over_capacity']:,} places got more than their capacity, at most {counts['excess']:g}, by chance"
        )
        line = (
            f"{counts['moved']:,} of {counts['records']:,} people moved (P {counts['P']:,.4f}, U {counts['U']:.6f}); "
            f"{over if counts['over_capacity'] else 'no place got more than its capacity'}"
        )
        return counts, [f"{line} -> {out}"]

    return from_file_to_file(
        "protect relocate", parameters, rules.inputs(records), out, work, overwrite=overwrite, as_json=as_json,
        quiet=quiet,
    )  # fmt: skip
