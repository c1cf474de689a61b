"""The job behind `protect round`, `suppress` and `cellkey`: exact tables in, the published ones out, unit by unit.

The published file is dense: a sparse file leaves out zeros, and a reader takes what is absent for an exact 0, which no
protected zero is. A place that is not in the file at all has zeros in every table, and stays out of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.commands.words.protections import Perturbed
from glasshouse.errors import InputError, unknown
from glasshouse.files.formats import sdmx_out
from glasshouse.files.frames import Watch, need_columns, open_source, unwatched
from glasshouse.files.output import RowWriter, check_kind, row_writer
from glasshouse.files.tables import TableFile, open_tables
from glasshouse.model.chance import chance
from glasshouse.model.records import UNLIMITED
from glasshouse.model.release import Counts, Release
from glasshouse.protection.perturb import (
    CellKeys,
    Protected,
    PTable,
    Rounding,
    change_by_key,
    description_of,
    round_counts,
    suppress,
)
from glasshouse.scenarios.load import Scenario

# Protects the numbers of one level of one unit; the second argument is the unit's code, empty above units.
Method = Callable[[Counts, str], Protected]
Cells = Mapping[str, Mapping[str, Collection[str]]]  # variables by level and place


def rounding(base: int, how: str = "random", seed: int = 1) -> Method:
    """Round every number to a multiple of the base."""
    if how not in tuple(Rounding):
        raise unknown("way to round", how, tuple(Rounding))

    def protect(counts: Counts, unit: str) -> Protected:
        return round_counts(counts.lower, base, Rounding(how), chance(seed, unit, f"round {counts.level}"))

    return protect


def cell_key(scenario: Scenario, table: PTable, seed: int = 1) -> Method:
    """Change every number as its cell key says."""
    lines = {line.variable: description_of(one, line) for one in scenario.tables for line in one.lines}
    cell_keys = CellKeys(seed)

    def protect(counts: Counts, unit: str) -> Protected:
        described = [lines[variable] for variable in counts.variables]

        def keys(cells: NDArray[np.int64]) -> NDArray[np.uint64]:
            found = [cell_keys.key(counts.places[place], described[column]) for place, column in cells.tolist()]
            return np.array(found, np.uint64)

        return change_by_key(counts.lower, table, keys)

    return protect


@dataclass
class Suppression:
    """Hide small counts, and the cells that were named; remembers which of these it has met."""

    below: int
    hide_zeros: bool = False
    also: Cells = field(default_factory=dict)
    met: set[tuple[str, str, str]] = field(default_factory=set)

    def __call__(self, counts: Counts, unit: str) -> Protected:
        named = np.zeros(counts.lower.shape, np.bool_)
        cells = self.also.get(counts.level, {})
        for row, geoid in enumerate(counts.places):
            for variable in cells.get(geoid, ()):
                if variable in counts.column:
                    named[row, counts.column[variable]] = True
                    self.met.add((counts.level, geoid, variable))
        return suppress(counts.lower, self.below, hide_zeros=self.hide_zeros, also=named)

    def refuse_unmet(self) -> None:
        """A cell that was to be hidden and is not there is a mistake: perhaps another one stays visible."""
        named = {
            (level, geoid, variable)
            for level, places in self.also.items()
            for geoid, variables in places.items()
            for variable in variables
        }
        for level, geoid, variable in sorted(named - self.met):
            raise InputError(f"{variable} of {level} {geoid} is to be hidden, and no such number is in the tables")


def read_cells(path: Path, scenario: Scenario) -> Cells:
    """Cells that someone names: level, geoid, variable (in any official spelling)."""
    source = open_source(path)
    columns = ("level", "geoid", "variable")
    need_columns(source, columns, "cells are named by level, geoid and variable")
    found: dict[str, dict[str, set[str]]] = {}
    for chunk in source.chunks(columns):
        if chunk.frame["geoid"].dtype.is_numeric():
            raise InputError(f"{path.name}: column 'geoid' holds numbers; codes are text; write the column as text")
        rows = chunk.frame.select(pl.col(columns).cast(pl.String).str.strip_chars()).iter_rows()
        for number, (level, geoid, variable) in enumerate(rows, start=chunk.first):
            if level not in scenario.geography.levels:
                raise InputError(f"{source.where(number)}: {unknown('level', level, scenario.geography.levels)}")
            fault = scenario.geography.fault(geoid or "", level)
            if fault:
                raise InputError(f"{source.where(number)}: geoid '{geoid}' {fault}")
            table, line = scenario.official.get(variable, ("", 0))
            if table not in scenario.by_table:
                raise InputError(f"{source.where(number)}: '{variable}' is no variable of a table in use")
            found.setdefault(level, {}).setdefault(geoid, set()).add(scenario.table(table).line(line).variable)
    return found


def read_ptable(path: Path | None) -> PTable:
    """A p-table from a file (count, change, probability); without one, that of Glasshouse."""
    found = path or Path(str(resources.files("glasshouse") / "protection" / "ptable.csv"))
    source, columns = open_source(found), ("count", "change", "probability")
    need_columns(source, columns, "a p-table has count, change, probability")
    rows = [
        (count or "", change or "", probability or "")
        for chunk in source.chunks(columns)
        for count, change, probability in chunk.frame.select(pl.col(columns).cast(pl.String).str.strip_chars()).rows()
    ]
    try:
        return PTable.of(rows)
    except InputError as error:
        error.add_where(found.name)
        raise


def perturb_file(
    tables: Path | TableFile,
    scenario: Scenario,
    out: Path,
    method: Method,
    *,
    values: Path | None = None,
    assume: str = "seen",
    watch: Watch = unwatched,
) -> Perturbed:
    """Write the tables of a file as intervals, and in `values` as an office would print them; what was done."""
    for path in (out, *([values] if values else [])):
        check_kind(path)
    file = tables if isinstance(tables, TableFile) else open_tables(tables, scenario)
    told: Counter[str] = Counter()
    places: Counter[str] = Counter()
    with ExitStack() as stack:
        writer = Late(stack, out)
        printed = Late(stack, values) if values else None
        for counts, unit in levels_of(file, scenario, assume, watch):
            done = method(counts, unit)
            kept = {"lower": pl.Series(done.lower.ravel()), "upper": _limited(done.upper)}
            known = pl.Series((done.lower == done.upper).ravel())
            shown = sdmx_out.printed(pl.Series(done.shown.ravel()), pl.Series(done.hidden.ravel()), known)
            writer.write(long_rows(scenario, counts, kept | shown if sdmx_out.is_sdmx(out) else kept))
            if printed is not None:
                printing = shown if sdmx_out.is_sdmx(printed.path) else {"value": shown["value"]}
                printed.write(long_rows(scenario, counts, printing))
            places[counts.level] += len(counts.places)
            told["cells"] += done.lower.size
            told["hidden"] += int(done.hidden.sum())
            told["changed"] += int(((done.shown != counts.lower) & ~done.hidden).sum())
            told["exact"] += int((done.lower == done.upper).sum())
        if isinstance(method, Suppression):
            method.refuse_unmet()
    cells, hidden, changed, exact = (told[name] for name in ("cells", "hidden", "changed", "exact"))
    return Perturbed(scenario.name, cells, hidden, changed, exact, dict(places))


def levels_of(
    file: TableFile, scenario: Scenario, assume: str = "seen", watch: Watch = unwatched
) -> Iterator[tuple[Counts, str]]:
    """The numbers of every level of every unit, dense and exact, with the unit's code (empty above units)."""
    for release in file.releases(assume=assume, watch=watch):
        unit = unit_of(release, scenario)
        for counts in release.levels.values():
            if not counts.exact:
                place, column = np.argwhere(counts.lower != counts.upper)[0]
                raise InputError(
                    f"{file.path.name}: {counts.variables[column]} of {counts.level} {counts.places[place]} is an "
                    "interval; protections of tables start from exact counts"
                )
            if counts.places:
                yield counts, unit


def unit_of(release: Release, scenario: Scenario) -> str:
    """The code of the unit a release is of; empty for that of the levels above units."""
    geography = scenario.geography
    for level, counts in release.levels.items():
        if geography.within_unit(level) and counts.places:
            return geography.code(counts.places[0], geography.unit)
    return ""


def long_rows(scenario: Scenario, counts: Counts, columns: Mapping[str, pl.Series]) -> pl.DataFrame:
    """Numbers of a level, a row for every place and variable, in their order."""
    owner = {line.variable: table.name for table in scenario.tables for line in table.lines}
    rows, width = len(counts.places), len(counts.variables)
    column = np.tile(np.arange(width), rows)
    return pl.DataFrame(
        [
            pl.repeat(counts.level, rows * width, dtype=pl.String, eager=True).alias("level"),
            pl.Series("geoid", counts.places, dtype=pl.String).gather(np.repeat(np.arange(rows), width)),
            pl.Series("table", [owner[name] for name in counts.variables], dtype=pl.String).gather(column),
            pl.Series("variable", counts.variables, dtype=pl.String).gather(column),
            *(series.alias(name) for name, series in columns.items()),
        ]
    )


class Late:
    """A writer that begins with its first rows: nothing is written before all input was read and found good."""

    def __init__(self, stack: ExitStack, path: Path) -> None:
        self.stack, self.path = stack, path
        self.writer: RowWriter | None = None

    def write(self, frame: pl.DataFrame) -> None:
        if self.writer is None:
            self.writer = self.stack.enter_context(row_writer(self.path))
        self.writer.write(frame)


def _limited(upper: NDArray[np.int64]) -> pl.Series:
    """Upper ends, blank where there is no limit."""
    series = pl.Series(upper.ravel())
    return series.set(series >= UNLIMITED, None)
