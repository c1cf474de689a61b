"""Is there a truth to try things on? A county is made, or what microdata of households do not say is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from glasshouse.commands.declaration import Opt, command
from glasshouse.commands.options import OutFolder, Overwrite, Seed, inputs_of
from glasshouse.commands.result import Result
from glasshouse.commands.words.datasheet import Summary, Wanted
from glasshouse.errors import InputError
from glasshouse.model.geography import plural

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    import polars as pl

    from glasshouse.engine.lifecycle import Made, Workplace

DRAWN = ("households", "housing")  # the files of a truth that is drawn for microdata


class Synthesized(Result[Summary]):
    """A county of which nobody is real: the truth, what would be published, and what an attacker may have."""

    always_told: ClassVar[bool] = False

    cef: pl.DataFrame  # the truth: persons as they answered
    hdf: pl.DataFrame  # the same persons after households were swapped: what is published
    households: pl.DataFrame
    commercial: pl.DataFrame  # a list that an attacker may buy, with its gaps and errors
    attacker_perfect: pl.DataFrame  # a list without gaps and errors
    sample: pl.DataFrame  # a public-use sample: one household in ten, with no place finer than the county
    housing: pl.DataFrame  # statistics of subsidised properties
    blocks: pl.DataFrame  # where people live: codes, coordinates, sizes

    @property
    def datasheet(self) -> str:
        """What a reader should know of the county."""
        return self.ended.files.read("datasheet.md").decode()

    def said(self) -> dict[str, object]:
        return {**super().said(), "unchanged": self.ended.unchanged}


@command(
    example="glasshouse synthesize --persons 30000 --seed 1 --out county\n\n"
    "Nobody in it is real. datasheet.md, written beside the files, says what it was made from."
)
def synthesize(
    *,
    persons: Annotated[int, Opt("How many persons: a village, a county, a state.")] = 30_000,
    seed: Annotated[int, Opt("The same seed gives the same files.", least=0)] = 1,
    out: OutFolder = None,
    preset: Annotated[
        str, Opt("The kind of county: national, homogeneous-rural, diverse-urban, or a TOML file of yours.")
    ] = "national",
    commercial: Annotated[str, Opt("How good the attacker's bought list is: low, 2010-like, high.")] = "2010-like",
    swap_base: Annotated[
        float, Opt("Chance that a household is swapped in the published file.", least=0, most=1)
    ] = 0.02,
    swap_risky: Annotated[
        float, Opt("The same for households at risk (small blocks, rare races).", least=0, most=1)
    ] = 0.10,
    alpha: Annotated[float, Opt("Weight of over-occupied homes in subsidised housing.", least=0, most=1)] = 1e-4,
    subsidised: Annotated[
        float, Opt("Share of households in subsidised properties (0.006 in the nation).", least=0, most=1)
    ] = 0.03,
    overwrite: Overwrite = False,
) -> Synthesized:
    """Make a synthetic county with a known truth, and the files around it."""
    from glasshouse.commands.words.datasheet import datasheet
    from glasshouse.commands.work.synthesize import FILES, Choices, make
    from glasshouse.engine.lifecycle import Made, in_folder
    from glasshouse.engine.manifest import Manifest
    from glasshouse.population.attackers import quality
    from glasshouse.population.county import County
    from glasshouse.population.preset import known_presets, load_preset
    from glasshouse.protection.swap.by_rates import Rates

    chosen = load_preset(preset)
    choices = Choices(quality(commercial), Rates(swap_base, swap_risky), alpha, subsidised)
    county = County(chosen, persons, seed)
    wanted = Wanted(persons, seed, chosen.name, commercial, swap_base, swap_risky, alpha, subsidised)
    manifest = Manifest("synthesize", asdict(wanted), {} if preset in known_presets() else {"preset": Path(preset)})

    def work(at: Workplace) -> Made[Summary]:
        county.places  # noqa: B018  # what cannot be laid out is refused before anything is written
        outputs = [*(f"{name}.parquet" for name in FILES), "datasheet.md"]
        summary = make(wanted, county, choices, at.path, at.bar)
        datasheet(at.path, chosen.title, summary)
        line = (
            f"{summary.records:,} persons in {summary.households:,} households, {summary.blocks:,} blocks, "
            f"{summary.tracts:,} tracts, none of them real"
        )
        return Made(summary, outputs, [line])

    return Synthesized(in_folder(manifest, Summary, work, out=out, overwrite=overwrite))


@dataclass(frozen=True)
class Drawn:
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


class Furnished(Result[Drawn]):
    """A simulated truth: nobody in it lives where it says."""

    households: pl.DataFrame  # the microdata, with persons, children, subsidies and bedrooms
    housing: pl.DataFrame  # what the properties publish of these households


@command(
    example="glasshouse furnish units.csv --sample psam_p01.csv --properties hud.csv --property-blocks codes.csv "
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
    files = {
        "units": units,
        "sample": sample,
        "properties": properties,
        f"property {plural(chosen.geography.place)}": property_places,
    }
    manifest = Manifest("furnish", {"alpha": alpha, "seed": seed, "scenario": chosen.name}, inputs_of(files))

    def work(at: Workplace) -> Made[Drawn]:
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
        for name, frame in zip(DRAWN, (made.households, made.housing), strict=True):
            with row_writer(at.path / f"{name}.parquet") as writer:
                writer.write(frame)
        left = {**file.left_out, **made.properties_left_out}
        summary = Drawn(
            made.households.height, int(given.occupied.sum()), made.subsidised, made.violations, made.housing.height,
            left, made.drawn_sizes, made.drawn_children, made.unlike, alpha, seed,
        )  # fmt: skip
        line = (
            f"{summary.households:,} households, {summary.subsidised_households:,} of them drawn into "
            f"{summary.properties:,} properties, {summary.violations:,} above the limit: simulated, nobody's own"
        )
        notes = [f"note: properties left out: {number:,}, {why}" for why, number in left.items()]
        return Made(summary, [f"{name}.parquet" for name in DRAWN], [line], notes)

    return Furnished(in_folder(manifest, Drawn, work, out=out, overwrite=overwrite))
