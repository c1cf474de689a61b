"""How is noise added to what is published of subsidised properties? To the counts behind the percentages."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from glasshouse.commands.declaration import Opt, command
from glasshouse.commands.options import ScenarioName, chosen_scenario, inputs_of
from glasshouse.commands.protect.files import SIMULATED, Protected, Secure, SeedOrSecure, ToFile, chance_of
from glasshouse.commands.words.protections import NoisedProperties, properties_lines, properties_notes
from glasshouse.errors import InputError

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    import polars as pl

    from glasshouse.engine.lifecycle import Made
    from glasshouse.engine.progress import Bar


class NoisyProperties(Protected[NoisedProperties]):
    """Statistics of properties with noise, and what it cost."""

    @property
    def properties(self) -> pl.DataFrame:
        return self.frame(self.file.partition(".")[0])


@command(
    example="glasshouse protect properties county/housing.parquet --rho 12.66 --out noisy-housing.parquet\n\n"
    "Noise is added to the counts that the percentages round to, and to the people. --rho is divided evenly among the "
    "questions (bedrooms, householder, adults, people). What is suppressed stays as it is."
)
def properties(
    file: Annotated[Path, Opt("Properties as HUD's Picture has them: CSV, CSV.gz or Parquet.", metavar="FILE")],
    *,
    rho: Annotated[Fraction, Opt("The privacy loss in all: 0.5 or 1/2.", metavar="R")],
    neighbours: Annotated[
        Literal["add-remove", "change-one"] | None, Opt("add-remove (default) or change-one.")
    ] = None,
    seed: SeedOrSecure = None,
    secure: Secure = False,
    scenario: ScenarioName = "subsidised-housing",
    to: ToFile = ToFile(),  # noqa: B008  # frozen
) -> NoisyProperties:
    """Add discrete Gaussian noise to the statistics of properties, with an exact account of what it costs."""
    from glasshouse.commands.work.properties import noise_properties
    from glasshouse.engine.lifecycle import Made
    from glasshouse.engine.manifest import Manifest
    from glasshouse.scenarios.load import known_scenarios, load

    chance = chance_of(seed, secure=secure)
    chosen = chosen_scenario(scenario)
    if chosen.occupancy is None:
        known = [name for name in known_scenarios() if load(name).occupancy is not None]
        raise InputError(f"scenario {chosen.name} says nothing of properties; known: {', '.join(known)}")
    if rho <= 0:
        raise InputError(f"--rho is {rho}; expected more than 0: with none, nothing can be published")
    parameters = {
        "scenario": chosen.name, "rho": str(rho), "neighbours": neighbours or "", "secure": secure, "seed": chance,
    }  # fmt: skip

    def work(path: Path, bar: Bar) -> Made[NoisedProperties]:
        summary = noise_properties(file, chosen, path, rho=rho, neighbours=neighbours or "add-remove", seed=chance)
        notes = [*([] if secure else [SIMULATED]), *properties_notes(summary)]
        return Made(summary, [path.name], properties_lines(summary), notes)

    manifest = Manifest("protect properties", parameters, inputs_of({"data": file}, scenario))
    return NoisyProperties(to.write(manifest, NoisedProperties, work, name="properties.parquet"))
