"""What do the definitions of a run say? What the numbers that are used count, and how records are compared."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from glasshouse.engine.job import Job
from glasshouse.files.tables import TableFile
from glasshouse.model.schema import Schema
from glasshouse.proofs.definitions import definitions
from glasshouse.scenarios.load import Scenario

Readings = Mapping[str, Mapping[str, Mapping[str, object]]]  # by name: the numbers that follow from a second file


@dataclass(frozen=True)
class Defining:
    """What is known of definitions before the names of files are."""

    scenario: Scenario
    schema: Schema  # with the records that cannot be
    compare: Sequence[Sequence[int]]
    variables: Mapping[str, Collection[str]]  # of the published file, by level
    all_places: bool
    assumed: Sequence[str]
    second: Readings | None = None

    def content(
        self,
        *,
        aside: Collection[str] = (),
        made_from: Mapping[str, str] | None = None,
        second_from: Mapping[str, object] | None = None,
    ) -> bytes:
        """The definitions, with names in the file that are not used, and the files that excerpts were taken from."""
        return definitions(
            self.scenario, self.schema, self.compare, self.variables, hidden=False, all_places=self.all_places,
            assumed=self.assumed, aside=aside, made_from=made_from, second=self.second, second_from=second_from,
        )  # fmt: skip

    @property
    def used(self) -> set[str]:
        """The names of the published numbers that are used."""
        return {name for some in self.variables.values() for name in some}


def defining(job: Job, file: TableFile, *, finest: bool, assume: str, plain: bool) -> Defining:
    """The definitions of a job's numbers. Where the checker reads an excerpt, it cannot see which places there are."""
    scenario, tables = job.scenario, job.published
    variables = {scenario.geography.place: tables.variables}
    if job.area_level is not None:
        variables[job.area_level] = tables.around_variables
    cells = (tables.finest if finest else tables.binned).cells
    compare = [[int(one) for one in classes] for classes in cells.classes]
    assumed = assumed_numbers(scenario, file, variables) if plain and assume != "seen" else ()
    return Defining(
        scenario, cells.schema, compare, variables, plain and file.seen.names_places(scenario), tuple(assumed)
    )


def assumed_numbers(scenario: Scenario, file: TableFile, variables: Mapping[str, Collection[str]]) -> list[str]:
    """The numbers of tables that no row of the file is of."""
    seen = {(level, scenario.official[name][0]) for level, name in file.seen.variables}
    return [
        name for level, some in variables.items() for name in some if (level, scenario.official[name][0]) not in seen
    ]
