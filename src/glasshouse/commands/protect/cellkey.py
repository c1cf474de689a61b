"""How does a cell key protect tables? Every number is changed a little, as a key of its cell and a p-table say."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from glasshouse.commands.declaration import Opt, command
from glasshouse.commands.options import ScenarioName, Seed, SomeTables, TablesGiven
from glasshouse.commands.protect.intervals import Asked, Intervals, ToIntervals


@command(
    example="glasshouse protect cellkey tables.parquet --scenario sf1-person --seed 7 --out keyed.parquet\n\n"
    "The same description of records in the same place has the same change in every table. Without --ptable: zero "
    "stays zero, changes up to 2, none on average. Whoever knows the seed can undo every change: keep it secret."
)
def cellkey(
    tables: TablesGiven,
    *,
    scenario: ScenarioName,
    ptable: Annotated[
        Path | None,
        Opt("count, change, probability; the row of the largest count stands for all larger ones.", metavar="FILE"),
    ] = None,
    seed: Seed = 1,
    read: SomeTables = SomeTables(),  # noqa: B008  # frozen
    to: ToIntervals = ToIntervals(),  # noqa: B008
) -> Intervals:
    """Change every number of tables a little, as a key of its cell and a p-table say."""
    from glasshouse.commands.work.perturb import cell_key, read_ptable

    asked = Asked("protect cellkey", tables, scenario, read, to, {"seed": seed}, {"ptable": ptable})
    return Intervals(
        asked.protect(
            lambda chosen: cell_key(chosen, read_ptable(ptable), seed),
            lambda said: f"{said.changed:,} of {said.cells:,} numbers changed by their cell key",
        )
    )
