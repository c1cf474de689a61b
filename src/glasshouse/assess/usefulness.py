"""How useful is a protected file beside the true one? The comparison of two files, unit by unit, and its figures.

The measures come as a long frame: `measure, level, table, group, value, unit, worse, truth`. `worse` says which
direction is worse (nothing, where a figure is only to be read beside its `truth`); `truth` is what the true data say:
the share or the index that is off, the deviation of districts drawn on the truth. A row without a table is about all
tables of its level. The headlines are

- `population_error_LEVEL`: mean absolute error of the number of records of a place;
- `table_error_LEVEL`: L1 over all tables, relative to the true counts;
- `share_error_UNIT`: percentage points, the mean over recodes of the mean over their groups;
- `dissimilarity_error_PLACE`: likewise, of the index;
- `districts_deviation`: percent, in truth, of districts drawn on the protected data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import polars as pl

from glasshouse.assess.numbers import Counting, recodes_of
from glasshouse.assess.utility import DISTRICTS, Comparison, Errors, Population, Segregation, Share, Utility
from glasshouse.errors import InputError, unknown
from glasshouse.files.formats.delimited import holds_numbers
from glasshouse.files.frames import open_source
from glasshouse.files.records import level_matrix, open_records
from glasshouse.files.tables import open_tables
from glasshouse.files.units import by_unit
from glasshouse.model.records import Records
from glasshouse.model.release import Counts, Release
from glasshouse.model.schema import Recode, Schema
from glasshouse.scenarios.load import Scenario

Kind = Literal["records", "tables"]

MEASURES = {
    "measure": pl.String,
    "level": pl.String,
    "table": pl.String,
    "group": pl.String,
    "value": pl.Float64,
    "unit": pl.String,
    "worse": pl.String,
    "truth": pl.Float64,
}
Row = tuple[str, str | None, str | None, str | None, float, str, str | None, float | None]


class Usefulness(NamedTuple):
    """Every measure as a row, and the few that stand for them."""

    measures: pl.DataFrame
    headlines: dict[str, float]


def usefulness(
    truth: Path,
    protected: Path,
    scenario: Scenario,
    *,
    near: Path,
    kind: Kind,
    groups: tuple[str, ...] = (),
    districts: int = DISTRICTS,
) -> Usefulness:
    """Compare a protected file, of records or of tables, with the true records.

    Beside protected tables the truth may be tables too. Temporary files lie in `near`.
    """
    found = compare_files(truth, protected, scenario, near=near, kind=kind, groups=groups, districts=districts)
    return Usefulness(measures_of(found), headlines_of(found, scenario.geography.place))


def compare_files(
    truth: Path,
    protected: Path,
    scenario: Scenario,
    *,
    near: Path,
    kind: Kind,
    groups: tuple[str, ...] = (),
    districts: int = DISTRICTS,
) -> Utility:
    """The comparison itself; memory holds a unit of each file, sums of the levels above, and the groups of an area."""
    if kind not in ("records", "tables"):
        raise unknown("kind of protected data", kind, ("records", "tables"))
    recodes = recodes_of(scenario, groups)
    comparison = Comparison(scenario, recodes, districts)
    ours = _Stream(truth, scenario, recodes, near, kind == "records" or _holds_records(truth, scenario))
    theirs = _Stream(protected, scenario, recodes, near, kind == "records")
    while True:
        ahead = [stream.unit for stream in (ours, theirs) if stream.unit is not None]
        if not ahead:
            break
        comparison.add(ours.take(min(ahead)), theirs.take(min(ahead)))
    found = comparison.finish(ours.above, theirs.above)
    if not found.tables:
        raise InputError(f"{protected.name}: has no whole table that {truth.name} has too; nothing to compare")
    return found


class _Stream:
    """The tables of a file, unit by unit; a unit that it does not have has no places."""

    def __init__(self, path: Path, scenario: Scenario, recodes: tuple[Recode, ...], near: Path, records: bool) -> None:
        self.scenario, self.path = scenario, path
        self.above: Release | None = None
        self._releases = _counted(path, scenario, recodes, near) if records else _published(path, scenario, near)
        self._last: Release | None = None
        self._advance()
        self._last = self._next or self.above
        if self._last is None:
            raise InputError(f"{path.name}: a header and no records; nothing to compare")

    def _advance(self) -> None:
        self._next, self.unit = next(self._releases, None), None
        if self._next is not None:
            geography = self.scenario.geography
            place = next((c.places[0] for c in self._next.levels.values() if c.places), "")
            if all(geography.within_unit(level) for level in self._next.levels):
                self.unit = geography.code(place, geography.unit)
            else:  # the last: what was published above the units
                self.above, self._next = self._next, None

    def take(self, unit: str) -> Release:
        """The release of a unit, which is the next one or is not in the file."""
        if self.unit != unit or self._next is None:
            return _emptied(self._last) if self._last is not None else Release(self.scenario.schema, ())
        self._last = self._next
        self._advance()
        return self._last


def _counted(path: Path, scenario: Scenario, recodes: tuple[Recode, ...], near: Path) -> Iterator[Release]:
    counting = Counting.of(scenario, recodes)
    needed = {recode.attribute for recode in recodes}
    more = None if needed <= scenario.attributes_used else scenario.attributes_used | needed
    for _, frame in by_unit(open_records(path, scenario, more).frames(), scenario.geography, near):
        yield counting.release(_records(frame, scenario.schema))


def _records(frame: pl.DataFrame, schema: Schema) -> Records:
    places = frame["geoid"].unique().sort()
    place = places.search_sorted(frame["geoid"]).to_numpy().astype(np.int32)
    return Records(schema, tuple(places), place, level_matrix(frame, schema).astype(np.int16))


def _published(path: Path, scenario: Scenario, near: Path) -> Iterator[Release]:
    return open_tables(path, scenario).releases(near=near)


def _holds_records(path: Path, scenario: Scenario) -> bool:
    """Does a file look like records? Then it has the columns of an attribute, in one of its spellings."""
    if path.suffix.lower() == ".zip":
        return False
    source = open_source(path)
    columns = set(source.columns)
    readings = (reading for attribute in scenario.schema.attributes for reading in attribute.readings)
    tables = "variable" in columns or holds_numbers(source)
    return not tables and any(columns.issuperset(reading.columns) for reading in readings)


def _emptied(release: Release) -> Release:
    """The same tables without a place."""
    levels = {}
    for level, counts in release.levels.items():
        nothing = np.zeros((0, len(counts.variables)), np.int64)
        levels[level] = Counts(level, (), counts.variables, nothing, nothing)
    return replace(release, levels=levels)


def measures_of(found: Utility) -> pl.DataFrame:
    """Every measure as a row: tables by level, populations, shares, segregation, districts."""
    rows: list[Row] = []
    for level in found.levels:
        tables = {name: errors for (where, name), errors in found.tables.items() if where == level}
        for name, errors in [(None, found.at(level)), *tables.items()] if tables else []:
            rows += _error_rows(level, name, errors)
        if level in found.populations:
            rows += _population_rows(level, found.populations[level])
    for share in found.shares:
        where = (found.unit, None, f"{share.recode}: {share.group}")
        rows.append(("error of share", *where, share.error, "points", "higher", share.truth))
    for one in found.segregation:
        where = (one.level, None, f"{one.recode}: {one.group}")
        rows.append(("dissimilarity", *where, one.protected, "index", None, one.truth))
        rows.append(("error of dissimilarity", *where, one.error, "index", "higher", one.truth))
    if found.districts is not None:
        drawn, name = found.districts, f"{found.districts.number} districts"
        rows += [
            ("deviation of districts", None, None, name, drawn.deviation, "percent", "higher", drawn.informed),
            ("claimed deviation of districts", None, None, name, drawn.claimed, "percent", None, drawn.deviation),
        ]
    return pl.DataFrame(rows, schema=MEASURES, orient="row")


def _error_rows(level: str, table: str | None, errors: Errors) -> Iterator[Row]:
    figures: list[tuple[str, float, str]] = [
        ("absolute error", errors.absolute, "records"),
        ("relative error", errors.relative, "share"),
        ("mean error of a number", errors.mean, "records"),
        ("numbers changed", errors.share_changed, "share"),
        ("largest error of a number", errors.largest, "records"),
        ("mean width of intervals", errors.mean_width, "records"),
        ("numbers without an upper end", errors.unlimited / max(errors.numbers, 1), "share"),
    ]
    return ((name, level, table, None, value, unit, "higher", None) for name, value, unit in figures)


def _population_rows(level: str, population: Population) -> Iterator[Row]:
    figures: list[tuple[str, float, str, str | None]] = [
        ("error of population", population.mean, "records", "higher"),
        ("error of population in percent", population.mean_percent, "percent", "higher"),
        ("largest error of population", population.largest, "records", "higher"),
        ("populations exact", population.share_exact, "share", "lower"),
        ("empty places", population.empty, "places", None),
        ("records in empty places", population.empty_absolute, "records", "higher"),
    ]
    return ((name, level, None, None, float(value), unit, worse, None) for name, value, unit, worse in figures)


def headlines_of(found: Utility, place: str) -> dict[str, float]:
    """A few numbers that stand for the rest; in all of them, higher is worse."""
    headlines: dict[str, float] = {}
    for level in reversed(found.levels):
        if level in found.populations:
            headlines[f"population_error_{level}"] = found.populations[level].mean
        if any(where == level for where, _ in found.tables):
            headlines[f"table_error_{level}"] = found.at(level).relative
    if found.shares:
        headlines[f"share_error_{found.unit}"] = _mean_error(found.shares)
    by_place = [one for one in found.segregation if one.level == place]
    if by_place:
        headlines[f"dissimilarity_error_{place}"] = _mean_error(by_place)
    if found.districts is not None:
        headlines["districts_deviation"] = found.districts.deviation
    return headlines


def _mean_error(things: Iterable[Share | Segregation]) -> float:
    """The mean over recodes of the mean over their groups: one with many groups weighs no more than another."""
    kinds: dict[str, list[float]] = {}
    for thing in things:
        kinds.setdefault(thing.recode, []).append(thing.error)
    return float(np.mean([np.mean(values) for values in kinds.values()]))
