"""Which records could stand behind these tables? One set that fits every number, drawn with the seed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from glasshouse.commands.attack import Asking, Attack, Attacked, Concluded, Prepared, how_many
from glasshouse.commands.declaration import Opt, command
from glasshouse.commands.options import ScenarioName, Seed, Solving, SomeTables, TablesGiven
from glasshouse.commands.over_units import over_units
from glasshouse.commands.result import Result
from glasshouse.errors import InputError

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    import polars as pl

    from glasshouse.engine.job import Item, Job
    from glasshouse.engine.runner import Tally

Level = Annotated[
    str | None,
    Opt(
        "Which tables are used: those of an area with those of its places (default where there are any), or those of "
        "places alone.",
        metavar="LEVEL",
    ),
]
Units = Annotated[tuple[str, ...], Opt("Only these units, by their codes, separated by commas.", metavar="LIST")]


@dataclass(frozen=True)
class Rebuilt(Attacked):
    """What `reconstruct` found, in numbers."""

    records: int
    places: int
    recounted: int  # places whose records give every published number again
    error: int | None = None  # of the nearest records, where none fit
    without_records: int | None = None


class Reconstructed(Result[Rebuilt]):
    """Records that fit, and how each place's were found."""

    records: pl.DataFrame
    places: pl.DataFrame


@command(
    example="glasshouse reconstruct tables.csv.gz --scenario sf1-person --out rebuilt\n\n"
    "Exit code 0: done. 1: done, but some units were left out (their numbers cannot all be true) or stopped by the "
    "clock. 2: bad input or usage. 130: interrupted; run the same command again to resume."
)
def reconstruct(
    tables: TablesGiven,
    *,
    scenario: ScenarioName,
    level: Level = None,
    seed: Seed = 1,
    units: Units = (),
    nearest: Annotated[
        Literal["", "absolute", "squared"],
        Opt(
            "Where no records fit (noisy tables), the nearest; each place by its own tables.",
            metavar="absolute|squared",
        ),
    ] = "",
    printed: Annotated[
        Path | None,
        Opt(
            "What was printed, where the tables are intervals: of the records inside them, the nearest to it "
            "(needs --nearest).",
            metavar="FILE",
        ),
    ] = None,
    read: SomeTables = SomeTables(),  # noqa: B008  # frozen
    run: Solving = Solving(),  # noqa: B008  # frozen
) -> Reconstructed:
    """Rebuild records from tables: one set that fits every number, drawn with the seed."""
    chosen = read.scenario(scenario, read.only)
    if printed is not None and not nearest:
        raise InputError("--printed needs --nearest absolute or --nearest squared")
    if nearest:
        place = chosen.geography.place
        if level not in (None, place):
            raise InputError(f"--nearest works with the tables of a {place}; leave out --level {level}")
        level = place
    parameters = {"nearest": nearest} if nearest else {}
    codes = tuple(sorted(set(units)))
    asking = Asking(tables, chosen, scenario, level, seed, read, run, parameters, {"printed": printed}, codes)
    return Reconstructed(over_units(_Reconstruct(nearest, printed), asking))


@dataclass(frozen=True)
class _Reconstruct(Attack[Rebuilt]):
    nearest: str
    printed: Path | None
    command = "reconstruct"
    kind = Rebuilt

    def prepare(self, asking: Asking, job: Job, items: Iterator[Item], near: Path) -> Prepared:
        from glasshouse.commands.work.reconstruct import Rebuilding, rebuild, schemas, with_print

        asked = job.asking(Rebuilding, nearest=self.nearest)
        if self.printed is not None:
            file = asking.read.open(self.printed, asking.scenario)
            items = with_print(items, job, file, asking.read.assume_published, near)
        return Prepared(asked, items, rebuild, schemas(asking.scenario, job.published))

    def notes(self, asking: Asking, job: Job, tally: Tally) -> list[str]:
        return notes_on_tables(asking, job)

    def conclude(self, asking: Asking, job: Job, tally: Tally, folder: Path, said: Attacked) -> Concluded[Rebuilt]:
        counts, geography = tally.counts, asking.scenario.geography
        places = geography.told({geography.place: counts["places"], geography.unit: tally.units - len(tally.refused)})
        numbers = (counts["records"], counts["places"], counts["fits"])
        if self.nearest:
            fit = geography.told({geography.place: counts["fits"]})
            said_of = (
                f"inside every interval of {fit}, and nearest to what was printed"
                if self.printed
                else f"they fit every number of {fit}, and elsewhere come nearest"
            )
            error = f"{self.nearest} error {counts['error']:,} in all; nothing is certain"
            line = f"{counts['records']:,} records in {places}; {said_of} ({error}{'' if self.printed else ' there'})"
            if without := counts["without"]:
                line += f"; {geography.told({geography.place: without})} left without records, within the limits"
            summary = Rebuilt(**asdict(said), records=numbers[0], places=numbers[1], recounted=numbers[2],
                              error=counts["error"], without_records=counts["without"])  # fmt: skip
            return Concluded(summary, [f"{line}"])
        summary = Rebuilt(**asdict(said), records=numbers[0], places=numbers[1], recounted=numbers[2])
        found = f"{how_many(counts['records'], tally)} in {places}; counted again, they give every"
        if not tally.refused:
            return Concluded(summary, [f"{found} published number"])
        left = geography.told({geography.unit: len(tally.refused)})
        return Concluded(summary, [f"{found} number published of these; {left} left out"])


def notes_on_tables(asking: Asking, job: Job) -> list[str]:
    """What the tables that are there leave open."""
    notes = []
    if job.published.left_out:
        names = ", ".join(job.published.left_out)
        notes.append(f"warning: no table used tells {names}: drawn at random, and left out when records are compared")
    if job.area_level is None and asking.level is None:
        place = asking.scenario.geography.place
        notes.append(f"note: no tables of an area around are there: every {place} is solved alone")
    return notes
