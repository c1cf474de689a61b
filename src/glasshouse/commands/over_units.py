"""How is an attack on tables run over a whole file? Unit by unit, by the one life cycle of runs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

from glasshouse.commands.attack import Asking, Attack, Attacked
from glasshouse.commands.options import inputs_of

if TYPE_CHECKING:  # heavy modules are imported by the commands that need them, so that --help is quick
    from glasshouse.engine.lifecycle import Ended

S = TypeVar("S", bound=Attacked)


def over_units(attack: Attack[S], asking: Asking) -> Ended[S]:
    """Claim the folder, do the units, put the files together, say what came of it."""
    from glasshouse.commands.work.units import units_done
    from glasshouse.engine.lifecycle import in_folder
    from glasshouse.engine.manifest import Manifest

    asking.run.crew  # noqa: B018  # refused before anything is read
    parameters = {
        "scenario": asking.scenario.name,
        "tables": [table.name for table in asking.scenario.tables],
        "level": asking.level,
        "seed": asking.seed,
        **asking.read.parameters,
        "effort": asking.run.effort,
        **asking.parameters,
        **({"units": list(asking.units)} if asking.units else {}),
    }
    inputs = {"tables": asking.tables, **asking.inputs, **asking.read.inputs}
    manifest = Manifest(attack.command, parameters, inputs_of(inputs, asking.scenario_name, asking.read.mapping))
    out, overwrite = asking.run.out, asking.run.overwrite
    return in_folder(
        manifest, attack.kind, partial(units_done, attack, asking), out=out, overwrite=overwrite,
        unit=asking.scenario.geography.unit,
    )  # fmt: skip
