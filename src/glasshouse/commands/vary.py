"""How different could the records be? The farthest set that fits, for every place, proved or bounded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from glasshouse.commands.attack import Asking, Attack, Attacked, Concluded, Prepared
from glasshouse.commands.declaration import Opt, command
from glasshouse.commands.options import ScenarioName, Seed, Solving, SomeTables, TablesGiven
from glasshouse.commands.over_units import over_units
from glasshouse.commands.proving.provable import Provable
from glasshouse.commands.reconstruct import Level, Units, notes_on_tables
from glasshouse.commands.words.vary import Summary, summarise
from glasshouse.errors import InputError, unknown

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    import polars as pl

    from glasshouse.engine.job import Item, Job
    from glasshouse.engine.runner import Tally


class Varied(Provable[Summary]):
    """How far other records that fit can be, place by place, area by area, and for which groups of people."""

    places: pl.DataFrame
    areas: pl.DataFrame
    groups: pl.DataFrame  # records, and the certain among them, by the groups that the office's own tables use

    @property
    def certain_records(self) -> pl.DataFrame:
        """How many records are known for certain, and by which proof: the places that have any, most first."""
        import polars as pl

        some = self.places.filter(pl.col("certain") > 0).sort("certain", descending=True, maintain_order=True)
        return some.select(some.columns[0], "population", "certain", "certain_upper", "certain_proof")


@command(
    example="glasshouse vary tables.csv.gz --scenario sf1-person --out solvar\n\n"
    "solvar is the share of a block's records that could differ: 0 means that they are known for certain. "
    "Exit codes as for reconstruct."
)
def vary(
    tables: TablesGiven,
    *,
    scenario: ScenarioName,
    level: Level = None,
    start: Annotated[
        Path | None,
        Opt("Start from the records of this reconstruction, or record file.", flag="--from", metavar="DIR"),
    ] = None,
    scope: Annotated[
        str, Opt("What is solved together: a place (block), or also a whole area (tract).", metavar="LEVEL")
    ] = "",
    schema: Annotated[
        str,
        Opt(
            "The cells compared, as the scenario calls them: with its bins (38-bin; the default) or every level "
            "(exact-age; needs the tables of an area)."
        ),
    ] = "",
    tighten: Annotated[bool, Opt("Use differences of the area's numbers as limits, not only printed ones.")] = False,
    uniques: Annotated[
        Path | None, Opt("Count uniques by size among the data-defined of these, as Table S5.", metavar="RECORDS")
    ] = None,
    seed: Seed = 1,
    units: Units = (),
    read: SomeTables = SomeTables(),  # noqa: B008  # frozen
    run: Solving = Solving(),  # noqa: B008  # frozen
) -> Varied:
    """How different could the records be? The farthest set that fits, for every block, proved or bounded."""
    chosen = read.scenario(scenario, read.only)
    binned, finest = chosen.compared
    if schema not in ("", binned, finest):
        raise unknown("schema", schema, chosen.compared)
    if scope and scope not in chosen.geography.levels:
        raise InputError(f"unknown scope '{scope}'; known: {', '.join(chosen.geography.levels)}")
    records = start
    if start is not None and start.is_dir():
        records = start / "records.parquet"
        if not records.exists():
            raise InputError(
                f"--from {start}: no records.parquet there; expected a folder of reconstruct, or a record file"
            )
    attack = _Vary(
        schema == finest, tighten, scope not in ("", chosen.geography.place), scope, records, uniques, schema
    )
    parameters = {
        "finest": attack.finest, "tighten": tighten, "jointly": attack.jointly, "scope": scope,
    }  # fmt: skip
    inputs = {"from": records, "uniques": uniques}
    codes = tuple(sorted(set(units)))
    asking = Asking(tables, chosen, scenario, level, seed, read, run, parameters, inputs, codes)
    return Varied(over_units(attack, asking))


@dataclass(frozen=True)
class _Vary(Attack[Summary]):
    finest: bool
    tighten: bool
    jointly: bool
    scope: str
    start: Path | None
    uniques: Path | None
    schema: str
    command = "vary"
    kind = Summary

    def prepare(self, asking: Asking, job: Job, items: Iterator[Item], near: Path) -> Prepared:
        from glasshouse.commands.work.vary import Varying, measure, schemas, starts, with_starts

        self._refuse_without_area(job.area_level)
        if self.start is not None:
            items = with_starts(items, starts(self.start, asking.scenario, near), asking.scenario)
        asked = job.asking(Varying, finest=self.finest, tighten=self.tighten, jointly=self.jointly)
        return Prepared(asked, items, measure, schemas(asking.scenario, job.area_level))

    def _refuse_without_area(self, area_level: str | None) -> None:
        for given, option in ((self.tighten, "--tighten"), (self.finest, f"--schema {self.schema}")):
            if given and area_level is None:
                raise InputError(f"{option} needs the tables of an area around, which are not there or not used")
        if self.jointly and self.scope != area_level:
            used = f"those of the {area_level}" if area_level else "none of an area around"
            raise InputError(
                f"--scope {self.scope} needs the tables of that level; the tables used are {used} (see --level)"
            )

    def notes(self, asking: Asking, job: Job, tally: Tally) -> list[str]:
        notes, geography = notes_on_tables(asking, job), asking.scenario.geography
        if outside := tally.counts["starts_outside"]:
            places = geography.told({geography.place: outside})
            notes.append(
                f"warning: in {places} the records given (--from) do not fit the limits of the area around; "
                "there, records that do were rebuilt to start from"
            )
        return notes

    def conclude(self, asking: Asking, job: Job, tally: Tally, folder: Path, said: Attacked) -> Concluded[Summary]:
        from glasshouse.commands.work.vary import uniques

        counted = None
        if self.uniques is not None:
            counted = uniques(self.uniques, job.published, asking.scenario, folder)
        return summarise(folder, job, tally, counted, said, jointly=self.jointly)
