"""The job behind `glasshouse protect topdown`: records in, other records out that add up at every level."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl

from glasshouse.commands.words.protections import FromTopDown
from glasshouse.errors import InputError, unknown
from glasshouse.files.frames import Watch, unwatched
from glasshouse.files.output import row_writer
from glasshouse.files.places import listed_places
from glasshouse.files.records import level_matrix, open_records, record_frame
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
from glasshouse.protection.topdown.topdown import Held, Sorted, TopDown, simulated
from glasshouse.scenarios.load import Scenario

BATCH = 100_000  # records written at once
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


def topdown_file(records: Path, scenario: Scenario, out: Path, settings: Settings) -> FromTopDown:
    """Write records that are protected from the top down; what was spent, and how it went."""
    sorted_ = _sorted(records, scenario, settings)
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
        lambda code: chance(settings.seed, code, "topdown"),
        _securely if settings.secure else simulated,
    )
    written = _write(out, scenario, work, sorted_, settings.watch)
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


def _securely(measure: Measure, size: int, rng: np.random.Generator) -> Ints:
    return draw_securely(measure.noise, size)


def _sorted(records: Path, scenario: Scenario, settings: Settings) -> Sorted:
    """All records by place; places of the list without records are there, too."""
    schema, geography = scenario.schema, scenario.geography
    file = open_records(records, scenario, [attribute.name for attribute in schema.attributes])
    pieces = [
        frame.select("geoid", pl.Series("cell", cells_of(schema, level_matrix(frame, schema))))
        for frame in file.frames(lambda share: settings.watch(READING * share))
    ]
    nobody = pl.DataFrame(schema={"geoid": pl.String, "cell": pl.Int64})
    frame = pl.concat([nobody, *pieces]).sort("geoid", maintain_order=True)
    if not frame.height:
        raise InputError(f"{records.name}: a header and no records; nothing to protect")
    places = frame["geoid"].unique().sort()
    if settings.places is not None:
        known = listed_places(settings.places, geography)
        outside = places.filter(~places.is_in(known.implode()))
        if len(outside):
            raise InputError(
                f"{settings.places.name}: {geography.place} {outside[0]} of {records.name} is not in the list; "
                "expected every place there is"
            )
        places = known
    bounds = np.append(frame["geoid"].search_sorted(places, side="left").to_numpy(), frame.height).astype(np.int64)
    return Sorted(tuple(places), frame["cell"].to_numpy().astype(np.int64), bounds)


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


def _write(out: Path, scenario: Scenario, work: TopDown, records: Sorted, watch: Watch) -> int:
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

        for number, (code, found) in enumerate(work.protect(records), start=1):
            codes.append(code)
            cells.append(found)
            written, waiting = written + len(found), waiting + len(found)
            if waiting >= BATCH:
                flush()
                waiting = 0
                watch(READING + (1 - READING) * number / len(records.places))
        flush()
    return written
