"""How are counts suppressed? Small ones are left blank, and other cells that are named."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from glasshouse.commands.declaration import Opt, command
from glasshouse.commands.options import ScenarioName, SomeTables, TablesGiven
from glasshouse.commands.protect.intervals import Asked, Intervals, ToIntervals

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    from glasshouse.commands.work.perturb import Method
    from glasshouse.scenarios.load import Scenario

GIVE_AWAY = "totals that stay may give hidden numbers away (bounds tells which)"
NOTE = f"note: only small counts were hidden: {GIVE_AWAY}; --also hides further cells"
NOTE_ALSO = f"note: small counts and the cells of --also were hidden; that this is enough was not checked: {GIVE_AWAY}"


@command(
    example="glasshouse protect suppress tables.parquet --scenario sf1-person --below 5 --out hidden.parquet"
    "\n\nOnly small counts are hidden. Whether the totals that stay give them away is left to you: name further cells "
    "in --also (level, geoid, variable), and let verify or vary tell what still follows."
)
def suppress(
    tables: TablesGiven,
    *,
    scenario: ScenarioName,
    below: Annotated[int, Opt("Hide counts from 1 to K - 1.", metavar="K", least=2)] = 5,
    zeros: Annotated[Literal["show", "hide"], Opt("Zeros: show or hide.")] = "show",
    also: Annotated[Path | None, Opt("Hide these cells too: level, geoid, variable.", metavar="FILE")] = None,
    read: SomeTables = SomeTables(),  # noqa: B008  # frozen
    to: ToIntervals = ToIntervals(),  # noqa: B008
) -> Intervals:
    """Leave small counts of tables blank, and other cells you name."""

    def method(chosen: Scenario) -> Method:
        from glasshouse.commands.work.perturb import Suppression, read_cells

        return Suppression(below, zeros == "hide", read_cells(also, chosen) if also else {})

    parameters = {"below": below, "zeros": zeros}
    asked = Asked("protect suppress", tables, scenario, read, to, parameters, {"also": also})
    note = NOTE_ALSO if also else NOTE
    return Intervals(asked.protect(method, lambda said: f"{said.hidden:,} of {said.cells:,} numbers hidden", [note]))
