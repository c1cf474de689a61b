"""What would be published? Records counted into the tables of a scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from glasshouse.commands.declaration import Opt, command
from glasshouse.commands.options import Maps, Only, Overwrite, ScenarioName, Threads, chosen_scenario, inputs_of
from glasshouse.commands.result import FileResult
from glasshouse.errors import InputError

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    import polars as pl

    from glasshouse.engine.lifecycle import Made
    from glasshouse.engine.progress import Bar


@dataclass(frozen=True)
class Counted:
    """What was counted."""

    scenario: str
    tables: int
    records: int
    cells: int
    places: Mapping[str, int]
    left_out: int | None = None


class Tabulated(FileResult[Counted]):
    """Tables, long: `level, geoid, table, variable, value`."""

    @property
    def tables(self) -> pl.DataFrame:
        return self.frame(self.file.partition(".")[0])


@command(
    example="glasshouse tabulate records.parquet --scenario sf1-person --out tables.parquet\n\n"
    "An --out that ends in .zip is written as the office's own archive, for instance al2010.sf1.zip."
)
def tabulate(
    records: Annotated[Path, Opt("Records: CSV, CSV.gz or Parquet (also PPMF person files).")],
    *,
    scenario: ScenarioName,
    out: Annotated[Path | None, Opt("Where to write: .csv, .csv.gz, .parquet or .zip.", short="-o")] = None,
    only: Only = (),
    levels: Annotated[tuple[str, ...], Opt("Further, coarser levels to count at, as in county,state.")] = (),
    mapping: Maps = None,
    subtotals: Annotated[bool, Opt("Write the official subtotals too.")] = False,
    overwrite: Overwrite = False,
    workers: Threads = 1,
) -> Tabulated:
    """Count records into the tables of a scenario."""
    from glasshouse.commands.work.tabulate import archive_for, make_plan, tabulate_file
    from glasshouse.engine.lifecycle import Made, in_file
    from glasshouse.engine.manifest import Manifest

    chosen = chosen_scenario(scenario, only, mapping)
    for level in chosen.geography.mappings:
        if level not in levels:
            raise InputError(f"level '{level}' has a mapping and is not counted at; add it to --levels")
    archive = archive_for(out, chosen) if out is not None and out.suffix.lower() == ".zip" else None
    plan = make_plan(chosen, further=levels, subtotals=subtotals, archive=archive)
    parameters = {
        "scenario": chosen.name, "tables": [t.name for t in chosen.tables], "levels": ",".join(levels),
        "subtotals": subtotals,
    }  # fmt: skip
    manifest = Manifest("tabulate", parameters, inputs_of({"records": records}, scenario, mapping))

    def work(path: Path, bar: Bar) -> Made[Counted]:
        done = tabulate_file(records, plan, path, workers=workers, watch=bar)
        places = dict(sorted(done.places.items()))
        tables = len(plan.scenario.tables)
        summary = Counted(chosen.name, tables, done.records, done.cells, places, done.left_out or None)
        where = chosen.geography.told(done.places)
        line = f"{done.records:,} records, {tables} tables, {done.cells:,} non-zero cells in {where}"
        lines = [line]
        if done.left_out:
            codes = _codes_told(chosen.leave_out)
            lines.append(f"Left out, as the scenario says: {done.left_out:,} rows with {codes}.")
        return Made(summary, [path.name], lines)

    return Tabulated(in_file(manifest, Counted, work, out=out, overwrite=overwrite, name="tables.parquet"))


def _codes_told(leave_out: Mapping[str, Sequence[str]]) -> str:
    return " or ".join(f"{column} {' or '.join(codes)}" for column, codes in leave_out.items())
