"""What is a unit of work, and what do all units of an attack on tables share?

A unit (a tract) is small and independent; its answer depends on its numbers, the job and the seed alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from glasshouse.attack.contradictions import UnitCheck
from glasshouse.attack.published import Published, Unit, divisions, untold, with_rest
from glasshouse.errors import InputError
from glasshouse.files.tables import TableFile
from glasshouse.model.chance import chance
from glasshouse.model.geography import Geography
from glasshouse.model.records import Codes, Index
from glasshouse.model.release import Counts, Release, Table
from glasshouse.program.integer import Limit
from glasshouse.program.ladder import Ladder
from glasshouse.scenarios.load import Scenario

if TYPE_CHECKING:
    import polars as pl

J = TypeVar("J", bound="Job")


@dataclass(frozen=True)
class Done:
    """What the work on one unit gave: rows of the data files, and counts to be added up."""

    frames: Mapping[str, pl.DataFrame]
    counts: Mapping[str, int] = field(default_factory=dict)
    clock: bool = False  # stopped by the wall clock: not final


Work = Callable[[Any, Any], Done]  # does one unit (the second) of a job (the first)


class Asked(Protocol):
    """One unit of work: its code, and how many places it has. Whatever else, the work knows."""

    @property
    def code(self) -> str: ...
    @property
    def places(self) -> int: ...


@dataclass(frozen=True)
class Item:
    """One unit of an attack on tables: its code, its numbers, and the records to start from, if they are given."""

    code: str
    unit: Unit
    start: tuple[Index, Codes] | None = None

    @property
    def places(self) -> int:
        return int(self.unit.named.sum())


@dataclass(frozen=True)
class Job:
    """What all units of a run share; sent once to every worker."""

    scenario: Scenario
    published: Published
    area_level: str | None  # whose numbers are used besides those of the places
    seed: int
    effort: float
    seconds: float | None

    def asking(self, kind: Callable[..., J], **more: Any) -> J:
        """The same job with what one attack asks besides."""
        return kind(**{one.name: getattr(self, one.name) for one in fields(Job)}, **more)

    @cached_property
    def check(self) -> UnitCheck:
        return UnitCheck(self.scenario)

    @property
    def ladder(self) -> Ladder:
        return Ladder(limit=Limit(effort=self.effort, seconds=self.seconds))

    def generator(self, unit: str, question: str) -> np.random.Generator:
        return chance(self.seed, unit, question)


def make_job(
    file: TableFile,
    releases: Iterator[Release],
    *,
    level: str | None,
    seed: int,
    effort: float,
    seconds: float | None,
) -> tuple[Job, Iterator[Item]]:
    """What all units share, and the units one by one. What was published is known once the file has been read."""
    first = next(releases)
    published, area_level = publication(file, first, level)
    geography = file.scenario.geography

    def items() -> Iterator[Item]:
        for release in chain([first], releases):
            if geography.place in release.levels:  # not the last one, which is of coarser levels
                yield Item(*unit_of(release, geography, area_level, whole=file.seen.names_places(file.scenario)))

    return Job(file.scenario, published, area_level, seed, effort, seconds), items()


def publication(file: TableFile, release: Release, level: str | None) -> tuple[Published, str | None]:
    """The tables that are used: those of places, and those of the level around, if they are there."""
    scenario, geography = file.scenario, file.scenario.geography
    inside = [at for at in geography.levels if at in release.levels and geography.within_unit(at)]
    if geography.place not in inside:
        raise InputError(
            f"{file.path.name}: no number of a {geography.place}, where records live; expected a table at that level"
        )
    outer = [at for at in inside if at != geography.place]
    if level is not None:
        geography.known(level)
    if level is None:
        area = outer[0] if outer else None  # levels stand from coarse to fine
    elif level == geography.place:
        area = None
    elif level in outer:
        area = level
    else:
        raise InputError(
            f"--level {level}: no number of a {level} in {file.path.name}; "
            f"its levels that can be used: {', '.join([*outer, geography.place])}"
        )
    inner = release.levels[geography.place].variables
    around = release.levels[area].variables if area else ()
    tables, areas = _tables(scenario, inner), _tables(scenario, around)
    left_out = untold(scenario.schema, (*tables, *areas))
    of_places = [table for table in (*scenario.tables, *scenario.aside) if table.level == geography.place]
    published = Published(
        scenario.schema, tables, inner, areas, around, scenario.bins, scenario.unique_on, left_out,
        divisions(of_places, scenario.bins),
    )  # fmt: skip
    return published, area


def _tables(scenario: Scenario, variables: Iterable[str]) -> tuple[Table, ...]:
    present = set(variables)
    return tuple(table for table in scenario.tables if any(line.variable in present for line in table.lines))


def unit_of(release: Release, geography: Geography, area_level: str | None, *, whole: bool) -> tuple[str, Unit]:
    """The numbers of one unit, and its code; where its places are not the whole of it, with the rest of its areas."""
    counts = release.levels[geography.place]
    if area_level is None:
        unit = Unit(counts, None, np.zeros(len(counts.places), np.int64))
    else:
        areas = release.levels[area_level]
        counts = counts if whole else with_rest(counts, areas)
        of = np.array([areas.row[geography.code(place, area_level)] for place in counts.places], np.int64)
        unit = Unit(counts, areas, of)
    named: Counts = next(c for c in release.levels.values() if c.places)
    return geography.code(named.places[0], geography.unit), unit
