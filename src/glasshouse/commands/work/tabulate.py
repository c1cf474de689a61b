"""The job behind `glasshouse tabulate`: records in any order in, a scenario's tables out, some places at a time."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.engine.progress import in_order
from glasshouse.errors import InputError
from glasshouse.files.frames import Watch, unwatched
from glasshouse.files.output import check_kind, row_writer
from glasshouse.files.records import level_matrix, open_records
from glasshouse.files.regroup import regroup
from glasshouse.files.summary import write_archive
from glasshouse.model.geography import Geography
from glasshouse.model.release import Table
from glasshouse.model.tabulate import Tabulator, compile_tables
from glasshouse.scenarios.load import Archive, Scenario

BATCH_ROWS = 100_000
READING = 0.4  # the share of the work, for the progress bar; counting and writing is the rest
LONG = {"level": pl.String, "geoid": pl.String, "table": pl.String, "variable": pl.String, "value": pl.Int64}


@dataclass(frozen=True)
class Plan:
    """Which tables are counted at which level, compiled."""

    scenario: Scenario
    archive: Archive | None  # how the tables are packed, if they are
    tabulators: Mapping[str, Tabulator]  # by level, coarse to fine
    tables: Mapping[str, Sequence[Table]]


@dataclass
class Done:
    """How much has been counted."""

    records: int = 0
    left_out: int = 0  # rows of the file that are no records of the scenario
    cells: int = 0
    places: Counter[str] = field(default_factory=Counter)
    first: dict[str, str] = field(default_factory=dict)
    tables: set[tuple[str, str]] = field(default_factory=set)


def make_plan(
    scenario: Scenario, *, further: Iterable[str] = (), subtotals: bool = False, archive: Archive | None = None
) -> Plan:
    """Every table at its own level, and at each further level that is coarser.

    An archive has the tables of its vintage, complete with their subtotals.
    """
    if archive is not None:
        subtotals = True
        scenario = scenario.choose(name for name in scenario.by_table if name not in archive.lacks)
    geography = scenario.geography
    order = list(geography.levels)
    also = [geography.known(level) for level in further]
    tables = {
        level: [
            table
            for table in scenario.tables
            if table.level == level or (level in also and _coarser(geography, level, table.level))
        ]
        for level in order
    }
    tables = {level: some for level, some in tables.items() if some}
    compiled = {level: compile_tables(scenario.schema, some, subtotals=subtotals) for level, some in tables.items()}
    return Plan(scenario, archive, compiled, tables)


def tabulate_file(records: Path, plan: Plan, out: Path | None, *, workers: int = 1, watch: Watch = unwatched) -> Done:
    """Count the records of a file into the tables of a plan and write them, if a file is named."""
    if out is not None and plan.archive is None:
        check_kind(out)
    done = Done()
    frames = _long_frames(records, plan, done, workers, watch, near=out.parent if out else None)
    first = next(frames)  # by now every record has been read and found good: nothing is written before
    frames = chain([first], frames)
    if out is None:
        deque(frames, maxlen=0)
    elif plan.archive is not None:
        write_archive(out, plan.scenario, plan.archive, _places(frames))
    else:
        with row_writer(out) as writer:
            for frame in frames:
                writer.write(frame)
    return done


def _long_frames(
    records: Path, plan: Plan, done: Done, workers: int, watch: Watch, near: Path | None
) -> Iterator[pl.DataFrame]:
    """The tables as long rows: units in increasing order, coarser levels last, one 0 for a table without a number."""
    geography = plan.scenario.geography
    inside = [level for level in plan.tabulators if geography.within_unit(level)]
    above = [level for level in plan.tabulators if level not in inside]
    totals: dict[str, dict[str, np.ndarray]] = {level: {} for level in above}
    file = open_records(records, plan.scenario)
    unit = pl.col("geoid").str.head(geography.lengths[geography.unit]).alias("unit")
    read = 0

    def reading() -> Iterator[pl.DataFrame]:
        nonlocal read
        for frame in file.frames(lambda share: watch(READING * share)):
            read += frame.height
            yield frame.with_columns(unit)

    whole_units = regroup(reading(), "unit", near=near)
    for batch, found in in_order(lambda batch: (batch, _count(plan, batch)), _batches(whole_units), workers):
        done.records += batch.height
        watch(READING + (1 - READING) * done.records / read)
        for level in plan.tabulators:
            done.first.setdefault(level, found[level][0][0])
        for level in above:
            _add_up(totals[level], *found[level], width=len(plan.tabulators[level].variables))
        if inside:
            yield _noted(done, _frame(plan, {level: found[level] for level in inside}))
    done.left_out = file.left_out.total()
    if not done.records:
        raise InputError(f"{records.name}: a header and no records; nothing to count")
    for level in above:
        yield _noted(done, _frame(plan, {level: _sparse(totals[level])}))
    missing = [
        (level, done.first[level], table.name, table.variables[0], 0)
        for level, tables in plan.tables.items()
        for table in tables
        if (level, table.name) not in done.tables
    ]
    if missing:
        yield pl.DataFrame(missing, schema=LONG, orient="row")


Found = tuple[list[str], np.ndarray, np.ndarray, np.ndarray]  # places, and for each number its place, column, value


def _batches(groups: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Cut sorted groups between units into pieces of about BATCH_ROWS records, sorted by place."""
    for group in groups:
        ends = np.append(
            np.flatnonzero((group["unit"] != group["unit"].shift(-1)).fill_null(False).to_numpy()) + 1, group.height
        )
        start = 0
        for end, following in zip(ends, [*ends[1:], None], strict=True):
            if following is None or following - start > BATCH_ROWS:
                yield group.slice(start, end - start).sort("geoid", maintain_order=True)
                start = int(end)


def _count(plan: Plan, batch: pl.DataFrame) -> dict[str, Found]:
    geography = plan.scenario.geography
    codes = np.ascontiguousarray(level_matrix(batch, plan.scenario.schema))
    runs = runs_of(batch["geoid"])
    found: dict[str, Found] = {}
    for level, tabulator in plan.tabulators.items():
        if level in geography.mappings:
            areas = pl.Series([geography.code(place, level) for place in runs["value"]], dtype=pl.String)
            order = np.argsort(np.repeat(areas.rank("dense").to_numpy(), runs["len"].to_numpy()), kind="stable")
            by_area = runs.with_columns(areas.alias("value")).sort("value", maintain_order=True)
            areas_met, bounds = areas_of(by_area)
            found[level] = (areas_met, *tabulator.count(codes[order], bounds))
        else:
            areas_met, bounds = areas_of(runs, geography.lengths[level])
            found[level] = (areas_met, *tabulator.count(codes, bounds))
    return found


def runs_of(geoids: pl.Series) -> pl.DataFrame:
    """The places of records that are sorted by place, each with its number of records."""
    return geoids.rle().struct.unnest()


def areas_of(runs: pl.DataFrame, length: int | None = None) -> tuple[list[str], NDArray[np.int64]]:
    """The areas that places make up, by the first characters of their codes, and where the records of each end."""
    codes = runs["value"] if length is None else runs["value"].str.head(length)
    areas = codes.rle().struct.unnest()
    ends = np.cumsum(runs["len"].to_numpy(), dtype=np.int64)[np.cumsum(areas["len"].to_numpy(), dtype=np.int64) - 1]
    return areas["value"].to_list(), np.concatenate([[0], ends]).astype(np.int64)


def _frame(plan: Plan, found: Mapping[str, Found]) -> pl.DataFrame:
    """Numbers of several levels as long rows, an area before the finer ones inside it."""
    frames = []
    for rank, (level, (places, place, column, value)) in enumerate(found.items()):
        tabulator = plan.tabulators[level]
        frames.append(
            pl.DataFrame(
                [
                    pl.repeat(level, len(place), dtype=pl.String, eager=True).alias("level"),
                    pl.Series("geoid", places, dtype=pl.String).gather(place),
                    pl.Series("table", tabulator.tables, dtype=pl.String).gather(column),
                    pl.Series("variable", tabulator.variables, dtype=pl.String).gather(column),
                    pl.Series("value", value),
                    pl.repeat(rank, len(place), dtype=pl.Int8, eager=True).alias("rank"),
                ]
            )
        )
    if len(frames) == 1:
        return frames[0].drop("rank")
    width = plan.scenario.geography.lengths[plan.scenario.geography.unit]
    order = pl.col("geoid").str.head(width)
    return pl.concat(frames).sort(order, "rank", maintain_order=True).drop("rank")


def _add_up(
    totals: dict[str, np.ndarray],
    places: list[str],
    place: np.ndarray,
    column: np.ndarray,
    value: np.ndarray,
    width: int,
) -> None:
    for index, name in enumerate(places):
        row = totals.setdefault(name, np.zeros(width, np.int64))
        mine = slice(*np.searchsorted(place, [index, index + 1]))
        row[column[mine]] += value[mine]


def _sparse(totals: Mapping[str, np.ndarray]) -> Found:
    places = sorted(totals)
    rows = np.array([totals[name] for name in places])
    place, column = np.nonzero(rows)
    return places, place, column, rows[place, column]


def _noted(done: Done, frame: pl.DataFrame) -> pl.DataFrame:
    done.cells += frame.height
    for (level,), part in frame.group_by("level", maintain_order=True):
        done.places[str(level)] += part["geoid"].n_unique()
        done.tables.update((str(level), name) for name in part["table"].unique())
    return frame


def _places(frames: Iterable[pl.DataFrame]) -> Iterator[tuple[str, str, dict[str, int]]]:
    """Long rows gathered by place, as an archive wants them."""
    for frame in frames:
        for (level, geoid), part in frame.filter(pl.col("value") > 0).group_by("level", "geoid", maintain_order=True):
            yield str(level), str(geoid), dict(zip(part["variable"], part["value"], strict=True))


def archive_for(out: Path, scenario: Scenario) -> Archive:
    """The archive whose files end as the name says (al2010.sf1.zip), or the only one there is."""
    for archive in scenario.archives:
        if out.name.lower().endswith(f"{archive.suffix}.zip".lower()) or len(scenario.archives) == 1:
            return archive
    if not scenario.archives:
        raise InputError(f"{out}: scenario {scenario.name} has no archive of its own; write .csv, .csv.gz or .parquet")
    endings = ", ".join(f"*{archive.suffix}.zip" for archive in scenario.archives)
    raise InputError(f"{out}: scenario {scenario.name} writes archives named {endings}")


def _coarser(geography: Geography, level: str, than: str) -> bool:
    return level in geography.mappings or geography.lengths[level] < geography.lengths[than]
