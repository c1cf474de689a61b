"""How do protections of tables without a budget work? Every number becomes an interval that the true one lies in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from glasshouse.commands.declaration import Opt
from glasshouse.commands.options import SomeTables, inputs_of, notes_on
from glasshouse.commands.protect.files import ProtectedTables, ToFile
from glasshouse.commands.words.protections import Perturbed

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    from glasshouse.commands.work.perturb import Method
    from glasshouse.engine.lifecycle import Ended, Made
    from glasshouse.engine.progress import Bar
    from glasshouse.scenarios.load import Scenario

PLACES = (
    "note: places that are not in the file have zeros in all tables, and stay out; so do totals that are 0 everywhere"
)


class Intervals(ProtectedTables[Perturbed]):
    """Tables of which every number is an interval: `level, geoid, table, variable, lower, upper`."""


@dataclass(frozen=True)
class ToIntervals(ToFile):
    """Where the intervals go, and what the office would print."""

    values: Annotated[
        Path | None,
        Opt(
            "Write what the office would print, too: blank where suppressed (--marker blank=1..4 reads it back).",
            metavar="FILE",
            writes=True,
        ),
    ] = None


@dataclass(frozen=True)
class Asked:
    """What is asked of a protection: which tables, how they are read, and where the result goes."""

    command: str
    tables: Path
    scenario: str
    read: SomeTables
    to: ToIntervals
    parameters: Mapping[str, object]  # the protection's own, as the manifest tells them
    further: Mapping[str, Path | None]  # files that it depends on besides the tables

    def protect(
        self, method: Callable[[Scenario], Method], line: Callable[[Perturbed], str], notes: Sequence[str] = ()
    ) -> Ended[Perturbed]:
        """From a table file to intervals, with notes on what was not used."""
        from glasshouse.commands.work.perturb import perturb_file
        from glasshouse.engine.draft import draft_of
        from glasshouse.engine.lifecycle import Made
        from glasshouse.engine.manifest import Manifest

        read, to, assume = self.read, self.to, self.read.assume_published
        chosen = read.scenario(self.scenario, read.only)
        inputs = inputs_of({"data": self.tables, **self.further, **read.inputs}, self.scenario, read.mapping)
        to.refuse_beside("--values", to.values, inputs.values())
        parameters = {
            "scenario": chosen.name, "tables": [table.name for table in chosen.tables], **read.parameters,
            **self.parameters, "values": str(to.values) if to.values else "",
        }  # fmt: skip

        def work(path: Path, bar: Bar) -> Made[Perturbed]:
            file = read.open(self.tables, chosen)
            values = draft_of(path, to.values)
            said = perturb_file(file, chosen, path, method(chosen), values=values, assume=assume, watch=bar)
            told = f"{line(said)}, in {chosen.geography.told(said.places)}"
            return Made(said, [path.name], [told], [*notes, PLACES, *notes_on(file, chosen, assume)])

        manifest = Manifest(self.command, parameters, inputs)
        return to.write(manifest, Perturbed, work, name="tables.parquet", beside=[to.values])
