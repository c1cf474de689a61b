"""The job behind `glasshouse protect topdown`: records in, other records out that add up at every level.

What lies above the units (tracts) is done here, and what grows from each unit by whoever does the work. What comes back
lies in a ledger until all is there, and is then written in the order of places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, replace
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from glasshouse.commands.words.protections import FromTopDown
from glasshouse.engine.ledger import Entry, Ledger, Notes
from glasshouse.engine.workers import Crew, work_through
from glasshouse.errors import InputError, unknown
from glasshouse.files.frames import Watch, unwatched
from glasshouse.files.output import row_writer
from glasshouse.files.places import listed_places
from glasshouse.files.records import level_matrix, open_records, record_frame
from glasshouse.files.regroup import regroup
from glasshouse.files.rooms import passing_folder
from glasshouse.mechanism.account import Allocation
from glasshouse.mechanism.sampler import draw_securely
from glasshouse.mechanism.spent import Spent
from glasshouse.model.chance import chance
from glasshouse.model.geography import Geography
from glasshouse.protection.topdown.measurements import (
    Ints,
    Measure,
    Query,
    Strategy,
    cells_of,
    codes_of,
    possible_cells,
    query_of,
    strategy_of,
)
from glasshouse.protection.topdown.topdown import Branch, Held, Quality, Sorted, TopDown, simulated
from glasshouse.scenarios.load import Scenario

BATCH = 100_000  # records written at once
KINDS = {
    "places": pl.Schema({"geoid": pl.String, "records": pl.Int64}),
    "cells": pl.Schema({"cell": pl.Int64}),
    "quality": pl.Schema({"tables": pl.Int64, "steps": pl.Int64, "off": pl.Float64, "moved": pl.Int64}),
}  # of what comes of a unit
READING = 0.2  # the share of the work, for the progress bar


@dataclass(frozen=True)
class Settings:
    """What can be chosen about noise from the top down."""

    allocation: Allocation
    top: str = ""  # the level that nothing is above; by default the finest that all records share
    bottom_up: bool = False  # spend at the places what all levels would, and add up
    hold: tuple[tuple[str, str], ...] | None = None  # queries and levels; None: as the budget says
    absence: tuple[tuple[str, str], ...] | None = None
    seed: int = 1
    secure: bool = False
    places: Path | None = None  # every place there is, also those without records
    neighbours: str | None = None
    watch: Watch = field(default=unwatched)
    crew: Crew = field(default_factory=Crew)


def topdown_file(records: Path, scenario: Scenario, out: Path, settings: Settings) -> FromTopDown:
    """Write records that are protected from the top down; what was spent, and how it went."""
    sorted_ = _sorted(records, scenario, settings, out.parent)
    allocation, lengths = settings.allocation, _lengths(scenario.geography, settings.allocation)
    levels = _levels(lengths, sorted_.places, settings)
    if settings.bottom_up:  # what the hierarchy would spend, at the places alone
        allocation = replace(
            allocation, levels={levels[-1]: sum((allocation.levels[at] for at in levels), Fraction(0))}
        )
        levels = levels[-1:]
    strategy = strategy_of(scenario, allocation, levels, neighbours=settings.neighbours)
    told, not_held = _held(scenario, levels, lengths, sorted_.places, settings)
    spent = Spent.of(strategy.ledger, strategy.neighbours)  # first: a total beyond measure is refused
    work = TopDown(
        strategy,
        {level: lengths[level] for level in levels},
        possible_cells(scenario.schema),
        told,
        partial(_chance, settings.seed),
        _securely if settings.secure else simulated,
    )
    with passing_folder(out.parent) as folder:
        ledger = Ledger(folder, "topdown")
        _grown(work, sorted_, scenario.geography.lengths[scenario.geography.unit], ledger, settings)
        written = _write(out, scenario, ledger)
    return FromTopDown(
        **asdict(spent),
        records=len(sorted_.cells),
        written=written,
        places=len(sorted_.places),
        levels=strategy.levels,
        rho_by_level=_by_level(strategy),
        held={level: query.name for level, query in told.counts.items()},
        absence={level: query.name for level, query in told.absence.items()},
        not_held=tuple(not_held),
        left_out=strategy.left_out,
        tables=work.quality.tables,
        steps=work.quality.steps,
        off=work.quality.off,
        moved_to_hold=work.quality.moved,
    )


def _chance(seed: int, code: str) -> np.random.Generator:
    """The noise of a place is its own, whoever draws it."""
    return chance(seed, code, "topdown")


def _securely(measure: Measure, size: int, rng: np.random.Generator) -> Ints:
    return draw_securely(measure.noise, size)


def _sorted(records: Path, scenario: Scenario, settings: Settings, near: Path) -> Sorted:
    """All records by place; places of the list without records are there, too."""
    schema, geography = scenario.schema, scenario.geography
    file = open_records(records, scenario, [attribute.name for attribute in schema.attributes])
    pieces = (
        frame.select("geoid", pl.Series("cell", cells_of(schema, level_matrix(frame, schema))))
        for frame in file.frames(lambda share: settings.watch(READING * share))
    )
    cells, lived = [np.empty(0, np.int64)], [pl.DataFrame(schema={"value": pl.String, "len": pl.Int64})]
    for frame in regroup(pieces, "geoid", near=near):  # of a record its cell is held, eight bytes
        cells.append(frame["cell"].to_numpy())
        lived.append(frame["geoid"].rle().struct.unnest().select("value", pl.col("len").cast(pl.Int64)))
    here = pl.concat(lived)
    if not here.height:
        raise InputError(f"{records.name}: a header and no records; nothing to protect")
    places = here["value"]
    if settings.places is not None:
        known = listed_places(settings.places, geography)
        outside = places.filter(~places.is_in(known.implode()))
        if len(outside):
            raise InputError(
                f"{settings.places.name}: {geography.place} {outside[0]} of {records.name} is not in the list; "
                "expected every place there is"
            )
        places = known
    ends = np.concatenate([[0], np.cumsum(here["len"].to_numpy())]).astype(np.int64)
    bounds = np.append(ends[here["value"].search_sorted(places, side="left").to_numpy()], ends[-1])
    return Sorted(tuple(places), np.concatenate(cells), bounds)


def _lengths(geography: Geography, allocation: Allocation) -> dict[str, int]:
    """How much of a code tells each level, from the top down.

    A budget's coarsest level that codes do not spell, such as the nation, is all that there is.
    """
    coarsest = list(allocation.levels)[-1]
    return {**({} if coarsest in geography.lengths else {coarsest: 0}), **geography.lengths}


def _levels(lengths: Mapping[str, int], places: Sequence[str], settings: Settings) -> tuple[str, ...]:
    """The levels from the top down: of the budget, and prefixes of the codes."""
    known = list(lengths)
    if settings.top and settings.top not in known:
        raise unknown("--top", settings.top, known)
    shared = [level for level in known if _one(places, lengths[level])]
    usual = [level for level in shared if level in settings.allocation.levels] or shared
    top = settings.top or (usual[-1] if usual else known[0])
    below = known[known.index(top) :]
    asked = [level for level in below if level in settings.allocation.levels]
    if top not in asked or known[-1] not in asked:
        missing = top if top not in asked else known[-1]
        raise InputError(
            f"the budget '{settings.allocation.name}' has no share for level {missing}; it has "
            f"{', '.join(settings.allocation.levels)}; choose another --top, or give the level a share"
        )
    return tuple(asked)


def _one(places: Sequence[str], length: int) -> bool:
    """Do all places lie in one area of a level?"""
    return places[0][:length] == places[-1][:length]  # they are sorted


def _held(
    scenario: Scenario,
    levels: tuple[str, ...],
    lengths: Mapping[str, int],
    places: Sequence[str],
    settings: Settings,
) -> tuple[Held, list[str]]:
    """What is held, and what the budget would hold but cannot be.

    A level above the top stands at the top if that is one place. If it is several, their counts are no count of that
    level, and holding them would give them away.
    """
    top = levels[0]
    coarser = [level for level in settings.allocation.levels if lengths.get(level, lengths[top]) < lengths[top]]
    dropped: list[str] = []

    def at(said: tuple[tuple[str, str], ...] | None, default: Mapping[str, str]) -> dict[str, Query]:
        found: dict[str, Query] = {}
        for query, level in tuple(default.items()) if said is None else said:
            above = level in coarser
            where = top if above or level == "top" else level
            if above and not _one(places, lengths[top]):
                if said is not None:
                    raise InputError(
                        f"'{query}' cannot be held at {level}: the work begins at {top}, of which there are several; "
                        f"choose a coarser --top, or hold it at {top} if those counts may be known"
                    )
                dropped.append(f"{query}@{level}")
                continue
            if where not in levels:
                raise unknown(f"level of '{query}@{level}'", level, (*coarser, *levels))
            try:
                asked = query_of(scenario, query)
            except InputError:
                if said is not None:
                    known = ("total", "detailed", *scenario.measure, *scenario.schema.by_name)
                    raise unknown(f"query of '{query}@{level}'", query, known) from None
                dropped.append(f"{query}@{level}")
                continue
            if where in found and found[where].name != query:
                both = f"{found[where].name} and {query}"
                raise InputError(f"two queries are to be held at level {where}: {both}; cross them, or name one")
            found[where] = asked
        return found

    counts = at(settings.hold, settings.allocation.hold)
    return Held(counts, at(settings.absence, settings.allocation.absence)).downwards(levels), dropped


def _by_level(strategy: Strategy) -> dict[str, str]:
    """What each level cost."""
    by_level: dict[str, Fraction] = {}
    for purpose, rho in strategy.ledger.spent.items():
        level = purpose.partition(":")[0]
        by_level[level] = by_level.get(level, Fraction(0)) + rho
    return {level: str(rho) for level, rho in by_level.items()}


def _grown(work: TopDown, records: Sorted, length: int, ledger: Ledger, settings: Settings) -> None:
    """Do everything; what became of each unit is in the ledger, and how well it went is noted."""
    done = 0
    for entry in work_through(_grow, work, work.branches(records, length), settings.crew, KINDS):
        ledger.put(entry)
        for tables, steps, off, moved in entry.frames["quality"].iter_rows():
            work.quality.add(Quality(tables, steps, off, moved))
        done += entry.notes.places
        settings.watch(READING + (1 - READING) * done / len(records.places))


def _grow(work: TopDown, branch: Branch) -> Entry:
    """The new records of one unit."""
    found, quality = work.grow(branch)
    frames = {
        "places": pl.DataFrame([(code, len(cells)) for code, cells in found], schema=KINDS["places"], orient="row"),
        "cells": pl.DataFrame({"cell": np.concatenate([np.empty(0, np.int64), *(cells for _, cells in found)])}),
        "quality": pl.DataFrame([astuple(quality)], schema=KINDS["quality"], orient="row"),
    }
    return Entry(branch.code, Notes(places=branch.places), frames)


def _write(out: Path, scenario: Scenario, ledger: Ledger) -> int:
    """The new records of all units, some whole places at once; how many there are."""
    written, waiting = 0, 0
    codes: list[str] = []
    cells: list[Ints] = []
    with row_writer(out) as writer:

        def flush() -> None:
            place = np.repeat(np.arange(len(codes)), [len(some) for some in cells]).astype(np.int32)
            together = np.concatenate([np.empty(0, np.int64), *cells])
            writer.write(record_frame(scenario, codes, place, codes_of(scenario.schema, together), {}))
            codes.clear()
            cells.clear()

        for unit in ledger.held():
            frames = ledger.read(unit).frames
            ends = np.cumsum(frames["places"]["records"].to_numpy())
            for code, found in zip(
                frames["places"]["geoid"], np.split(frames["cells"]["cell"].to_numpy(), ends[:-1]), strict=True
            ):
                codes.append(code)
                cells.append(found)
                written, waiting = written + len(found), waiting + len(found)
                if waiting >= BATCH:
                    flush()
                    waiting = 0
        flush()
    return written
