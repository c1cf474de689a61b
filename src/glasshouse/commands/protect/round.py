"""How are tables rounded? Every number to a multiple of a base, each on its own."""

from __future__ import annotations

from typing import Annotated, Literal

from glasshouse.commands.declaration import Opt, command
from glasshouse.commands.options import ScenarioName, Seed, SomeTables, TablesGiven
from glasshouse.commands.protect.intervals import Asked, Intervals, ToIntervals


@command(
    example="glasshouse protect round tables.parquet --scenario sf1-person --base 3 --out rounded.parquet\n\n"
    "Every number is rounded on its own, totals too, so they do not add up; the file has the interval of each."
)
def round_(
    tables: TablesGiven,
    *,
    scenario: ScenarioName,
    base: Annotated[int, Opt("Round to multiples of this.", least=2)] = 3,
    how: Annotated[
        Literal["random", "nearest", "up", "down"], Opt("random (unbiased), nearest, up or down.")
    ] = "random",
    seed: Seed = 1,
    read: SomeTables = SomeTables(),  # noqa: B008  # frozen
    to: ToIntervals = ToIntervals(),  # noqa: B008
) -> Intervals:
    """Round every number of tables to a multiple of a base."""
    from glasshouse.commands.work.perturb import rounding

    parameters = {"base": base, "how": how} | ({"seed": seed} if how == "random" else {})
    asked = Asked("protect round", tables, scenario, read, to, parameters, {})
    return Intervals(
        asked.protect(
            lambda chosen: rounding(base, how, seed),
            lambda said: f"{said.changed:,} of {said.cells:,} numbers rounded to another one, base {base} ({how})",
        )
    )
