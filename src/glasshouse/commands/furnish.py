"""Who might live in subsidised housing? A truth to try `detect` on, drawn for microdata of households."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from glasshouse.commands.declaration import Opt, command
from glasshouse.commands.options import OutFolder, Overwrite, Seed, inputs_of
from glasshouse.commands.result import Result
from glasshouse.errors import InputError

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    import polars as pl

    from glasshouse.engine.lifecycle import Made, Workplace

FILES = ("households", "housing")


@dataclass(frozen=True)
class Summary:
    """How much of everything was drawn."""

    units: int
    households: int
    subsidised_households: int
    violations: int
    properties: int
    properties_left_out: Mapping[str, int]
    drawn_sizes: int  # households of the largest class of size
    drawn_children: int  # households with children
    unlike: int  # draws for which the sample had nobody alike
    alpha: float
    seed: int


class Furnished(Result[Summary]):
    """A simulated truth: nobody in it lives where it says."""

    households: pl.DataFrame  # the microdata, with persons, children, subsidies and bedrooms
    housing: pl.DataFrame  # what the properties publish of these households


@command(
    example="glasshouse furnish units.csv --sample psam_p01.csv --properties hud.csv --property-blocks blocks.csv "
    "--out truth\n\nThen: glasshouse tabulate truth/households.parquet --scenario subsidised-housing --out "
    "tables.parquet, and glasshouse detect tables.parquet --properties truth/housing.parquet --truth "
    "truth/households.parquet."
)
def furnish(
    units: Annotated[
        Path, Opt("Microdata of households and vacant units, as `records` of households.", metavar="FILE")
    ],
    *,
    sample: Annotated[Path, Opt("A public-use sample: sizes and children of households that are alike.")],
    properties: Annotated[Path, Opt("Subsidised properties: how many households, and which shares of them.")],
    property_places: Annotated[
        Path | None,
        Opt("The block of each property: columns code and block.", flag="--property-blocks", metavar="FILE"),
    ] = None,
    scenario: Annotated[
        str | None, Opt("A scenario with a rule of occupancy; default: the built-in one that has it.", short="-s")
    ] = None,
    alpha: Annotated[float, Opt("Weight of over-occupied homes; smaller makes for fewer.", least=0, most=1)] = 1e-4,
    seed: Seed = 1,
    out: OutFolder = None,
    overwrite: Overwrite = False,
) -> Furnished:
    """Draw a truth for microdata that say nothing of subsidies: sizes, children, properties and bedrooms."""
    from glasshouse.engine.lifecycle import Made, in_folder
    from glasshouse.engine.manifest import Manifest
    from glasshouse.scenarios.load import load, scenarios_with

    known = scenarios_with("occupancy")
    chosen = load(scenario or known[0])
    occupancy = chosen.occupancy
    if occupancy is None:
        raise InputError(f"scenario {chosen.name} says nothing of a second agency; known: {', '.join(known)}")
    files = {"units": units, "sample": sample, "properties": properties, "property blocks": property_places}
    manifest = Manifest("furnish", {"alpha": alpha, "seed": seed, "scenario": chosen.name}, inputs_of(files))

    def work(at: Workplace) -> Made[Summary]:
        from glasshouse.files.output import row_writer
        from glasshouse.files.properties import read_properties
        from glasshouse.files.sample import read_sample
        from glasshouse.model.chance import chance
        from glasshouse.population.furnished import furnished, read_microdata

        place = chosen.geography.place
        file = read_properties(
            properties, chosen.geography, occupancy.shares, blocks=property_places, exclusive=occupancy.wholes,
            counts=occupancy.counts, of_units=occupancy.shares_of_units,
        )  # fmt: skip
        if file.decimals and max(file.decimals.values()):
            raise InputError(f"{properties.name}: percentages with decimals; expected whole ones")
        given = read_microdata(units, place, chosen.geography.lengths[place])
        rng = chance(seed, chosen.name, "furnish")
        made = furnished(given, read_sample(sample), file.frame, rng, alpha=alpha, place=place)
        for name, frame in zip(FILES, (made.households, made.housing), strict=True):
            with row_writer(at.path / f"{name}.parquet") as writer:
                writer.write(frame)
        left = {**file.left_out, **made.properties_left_out}
        summary = Summary(
            made.households.height, int(given.occupied.sum()), made.subsidised, made.violations, made.housing.height,
            left, made.drawn_sizes, made.drawn_children, made.unlike, alpha, seed,
        )  # fmt: skip
        line = (
            f"{summary.households:,} households, {summary.subsidised_households:,} of them drawn into "
            f"{summary.properties:,} properties, {summary.violations:,} above the limit: simulated, nobody's own"
        )
        notes = [f"note: properties left out: {number:,}, {why}" for why, number in left.items()]
        return Made(summary, [f"{name}.parquet" for name in FILES], [line], notes)

    return Furnished(in_folder(manifest, Summary, work, out=out, overwrite=overwrite))
