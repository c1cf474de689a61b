"""How is noise added to tables? Discrete Gaussian noise, with an exact account of what it costs."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from glasshouse.commands.declaration import Opt, command
from glasshouse.commands.options import ScenarioName, SomeTables, TablesGiven, inputs_of, notes_on
from glasshouse.commands.protect.files import SIMULATED, ProtectedTables, Secure, SeedOrSecure, ToFile, chance_of
from glasshouse.commands.words.protections import Noised, noise_lines
from glasshouse.errors import InputError

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    from glasshouse.engine.lifecycle import Made
    from glasshouse.engine.progress import Bar

NOTES = (
    "note: which places and totals are in the file is taken as public: a place that is not in it gets no noise",
    "note: tables are not made consistent with each other; glasshouse check will find where they contradict",
)


class NoisyTables(ProtectedTables[Noised]):
    """Tables with noise, and what it cost."""


@command(
    example="glasshouse protect noise tables.parquet --scenario pl94 --budget pl94-2020 --out noisy.parquet"
    "\n\nNoise is added to the lines that are no totals, and totals are added up from them. --rho alone is divided "
    "evenly among levels and tables. A budget names tables, or strategy queries: then every line gets the noise it "
    "would have if it were added up from the best of them (appendix F of Steed et al.)."
)
def noise(
    tables: TablesGiven,
    *,
    scenario: ScenarioName,
    rho: Annotated[
        Fraction | None, Opt("The privacy loss in all: 0.5 or 1/2; of a budget, another total.", metavar="R")
    ] = None,
    budget: Annotated[str, Opt("How rho is divided: pl94-2020, or a file of yours.", metavar="NAME|FILE.toml")] = "",
    neighbours: Annotated[
        Literal["add-remove", "change-one"] | None,
        Opt("add-remove (default) or change-one; a budget says it itself."),
    ] = None,
    invariant: Annotated[
        tuple[str, ...], Opt("Publish this number as it is; may be repeated.", metavar="VARIABLE", repeated=True)
    ] = (),
    postprocess: Annotated[
        Literal["simple", "clip", "none"],
        Opt("simple (negatives to 0, invariants kept), clip (negatives to 0) or none."),
    ] = "simple",
    measurements: Annotated[
        Path | None, Opt("Write the noisy numbers as they are, too.", metavar="FILE", writes=True)
    ] = None,
    seed: SeedOrSecure = None,
    secure: Secure = False,
    read: SomeTables = SomeTables(),  # noqa: B008  # frozen
    to: ToFile = ToFile(),  # noqa: B008
) -> NoisyTables:
    """Add discrete Gaussian noise to tables, with an exact account of what it costs."""
    from glasshouse.commands.work.noise import noise_file
    from glasshouse.engine.draft import draft_of
    from glasshouse.engine.lifecycle import Made
    from glasshouse.engine.manifest import Manifest
    from glasshouse.mechanism.account import allocation

    chance = chance_of(seed, secure=secure)
    if rho is None and not budget:
        raise InputError("what may it cost? expected --rho, or --budget")
    if rho is not None and rho <= 0:
        raise InputError(f"--rho is {rho}; expected more than 0: with none, nothing can be published")
    chosen = read.scenario(scenario, read.only)
    divided = allocation(budget) if budget else None
    files = {"data": tables, "budget": Path(budget) if budget and Path(budget).is_file() else None, **read.inputs}
    inputs = inputs_of(files, scenario, read.mapping)
    to.refuse_beside("--measurements", measurements, inputs.values())
    assume = read.assume_published
    parameters = {
        "scenario": chosen.name, "tables": [table.name for table in chosen.tables], **read.parameters,
        "rho": str(rho) if rho else "", "budget": divided.name if divided else "", "neighbours": neighbours or "",
        "invariant": list(invariant), "postprocess": postprocess, "secure": secure, "seed": chance,
        "measurements": str(measurements) if measurements else "",
    }  # fmt: skip

    def work(path: Path, bar: Bar) -> Made[Noised]:
        file = read.open(tables, chosen)
        summary = noise_file(
            file, chosen, path, rho=rho, budget=divided, neighbours=neighbours, seed=chance, invariants=invariant,
            postprocess=postprocess, measurements=draft_of(path, measurements), assume=assume, watch=bar,
        )  # fmt: skip
        notes = [*([] if secure else [SIMULATED]), *NOTES, *notes_on(file, chosen, assume)]
        return Made(summary, [path.name], noise_lines(summary, chosen.geography.told(summary.places)), notes)

    manifest = Manifest("protect noise", parameters, inputs)
    return NoisyTables(to.write(manifest, Noised, work, name="tables.parquet", beside=[measurements]))
