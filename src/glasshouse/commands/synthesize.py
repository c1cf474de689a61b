"""Is there a county to try things on? One with a known truth is made, with the files that a study of it needs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from glasshouse.commands.declaration import Opt, command
from glasshouse.commands.options import OutFolder, Overwrite
from glasshouse.commands.result import Result
from glasshouse.commands.words.datasheet import Summary, Wanted

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    import polars as pl

    from glasshouse.engine.lifecycle import Made, Workplace


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
