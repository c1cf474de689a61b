"""What was published, judging by the numbers seen? And how do rows of a unit become its release?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.errors import InputError, unknown
from glasshouse.model.records import UNLIMITED, Count
from glasshouse.model.release import Counts, Release, counts_everyone
from glasshouse.scenarios.load import Scenario

Missing = Literal["zero", "hidden"]  # what a number without a row in a long file is: 0, or not told


@dataclass
class Seen:
    """What a table file turned out to hold; complete once all its rows have been read."""

    variables: set[tuple[str, str]] = field(default_factory=set)  # level, variable
    ignored: Counter[str] = field(default_factory=Counter)  # numbers of official tables outside the scenario
    columns: tuple[str, ...] = ()  # of a wide file, neither places nor variables
    aside: set[str] = field(default_factory=set)  # tables whose numbers were read for their places only
    units: set[str] = field(default_factory=set)
    cells: int = 0
    sparse: bool = True  # zeros may have been left out: so it is with long files alone
    short: int = 0  # absent numbers read as 0, though a total that counts them then does not add up
    counted_in: str = "line"
    listed: bool = False  # a list says which places there are

    def names_places(self, scenario: Scenario) -> bool:
        """Does the file, or a list, name every place that may have records?

        A file that leaves out zeros does if one of its tables counts every record of a place.
        """
        if self.listed or not self.sparse:
            return True
        at = scenario.geography.place
        seen = {scenario.official[variable][0] for level, variable in self.variables if level == at}
        seen |= self.aside
        return any(counts_everyone(table) and table.name in seen for table in (*scenario.tables, *scenario.aside))


def published(scenario: Scenario, seen: Seen, assume: str) -> dict[str, tuple[str, ...]]:
    """The variables published at each level, in the order of the tables (convention 6).

    A table seen at a level of a file that leaves out zeros is published there with all its leaves; a subtotal, and
    any line of a wide file or an archive, only if it was seen itself. `assume` adds tables: `all`, or a list.
    """
    listed = _listed(assume)
    if listed - set(scenario.by_table):
        raise unknown("table", min(listed - set(scenario.by_table)), scenario.by_table)
    result: dict[str, tuple[str, ...]] = {}
    for level in scenario.geography.levels:
        variables: list[str] = []
        for table in scenario.tables:
            assumed = table.level == level and (assume == "all" or table.name in listed)
            here = {line.variable for line in table.lines if (level, line.variable) in seen.variables}
            leaves = assumed or (bool(here) and seen.sparse)
            variables += [line.variable for line in table.lines if line.variable in here or (leaves and not line.parts)]
        if variables:
            result[level] = tuple(variables)
    return result


def absent(scenario: Scenario, seen: Seen, assume: str) -> tuple[str, ...]:
    """The tables of which no number was seen at their own level, and none is assumed."""
    if assume == "all":
        return ()
    missing = [t for t in scenario.tables if not any((t.level, line.variable) in seen.variables for line in t.lines)]
    return tuple(table.name for table in missing if table.name not in _listed(assume))


def _listed(assume: str) -> set[str]:
    return set() if assume in ("seen", "all") else {name.strip() for name in assume.split(",")}


class Builder:
    """Puts the rows of a unit into arrays whose columns are the same for every unit."""

    def __init__(
        self, path: Path, scenario: Scenario, seen: Seen, levels: Sequence[str], assume: str, missing: Missing
    ) -> None:
        self.path, self.scenario, self.seen, self.missing = path, scenario, seen, missing
        everywhere = published(scenario, seen, assume)
        self.variables = {level: everywhere[level] for level in levels if level in everywhere}
        self.column = {
            level: pl.DataFrame({"variable": names}).with_row_index("column") for level, names in self.variables.items()
        }
        looked_at = self.variables if seen.sparse and missing == "zero" else ()
        self.totals = {level: list(_totals(scenario, self.variables[level])) for level in looked_at}

    def release(self, rows: pl.DataFrame) -> Release:
        """The release of one unit; an area that only finer rows tell of is there too, with zeros.

        A row without a variable names a place, and says no more of it.
        """
        numbers = rows.filter(pl.col("variable").is_not_null())
        self._refuse_doubles(numbers)
        geography = self.scenario.geography
        places: dict[str, list[str]] = {}
        for level in sorted(self.variables, key=geography.levels.index, reverse=True):
            finer = [place for at, many in places.items() if self._contains(level, at) for place in many]
            here = set(rows.filter(pl.col("level") == level)["geoid"].unique())
            places[level] = sorted(here.union(geography.code(place, level) for place in finer))
        levels = {level: self._counts(numbers, level, places[level]) for level in self.variables}
        return Release(self.scenario.schema, self.scenario.tables, levels)

    def _refuse_doubles(self, rows: pl.DataFrame) -> None:
        if rows.select("level", "geoid", "variable").n_unique() < rows.height:
            twice = rows.select(pl.struct("level", "geoid", "variable").is_duplicated()).to_series()
            first = rows.filter(twice).sort("level", "geoid", "variable", "line", maintain_order=True)
            level, geoid, variable, line = first.select("level", "geoid", "variable", "line").row(0)
            unit = self.seen.counted_in
            raise InputError(
                f"{self.path.name}, {unit} {first['line'][1]}: {variable} of {level} {geoid} was given before, "
                f"in {unit} {line}; expected each number once"
            )

    def _contains(self, level: str, finer: str) -> bool:
        lengths = self.scenario.geography.lengths
        return level in lengths and finer in lengths and lengths[level] < lengths[finer]

    def _counts(self, rows: pl.DataFrame, level: str, places: list[str]) -> Counts:
        rows = rows.filter(pl.col("level") == level)
        variables = self.variables[level]
        row = pl.Series(places, dtype=pl.String).search_sorted(rows["geoid"]).to_numpy()
        column = rows.join(self.column[level], on="variable", how="left", maintain_order="left")["column"].to_numpy()
        lower = np.zeros((len(places), len(variables)), np.int64)
        lower[row, column] = rows["lower"].to_numpy()
        upper = lower
        hidden = self.seen.sparse and self.missing == "hidden" and rows.height < lower.size
        if hidden or not bool((rows["lower"] == rows["upper"]).all()):
            upper = np.full_like(lower, UNLIMITED) if hidden else lower.copy()
            upper[row, column] = rows["upper"].to_numpy()
        if self.totals.get(level) and rows.height < lower.size:
            given = np.zeros(lower.shape, np.bool_)
            given[row, column] = True
            self.seen.short += _short(self.totals[level], lower, upper, given)
        return Counts(level, tuple(places), variables, lower, upper)


def _totals(scenario: Scenario, variables: Sequence[str]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Numbers and the numbers that add up to them: subtotals of a table, and the whole of it in another table."""
    column = {variable: number for number, variable in enumerate(variables)}
    lines = [(table, line) for table in scenario.tables for line in table.lines if line.variable in column]
    whole = {line.predicate: column[line.variable] for table, line in reversed(lines) if line.predicate is not None}
    for table, line in lines:
        parts = [table.line(number).variable for number in line.parts]
        if parts and all(part in column for part in parts):
            yield column[line.variable], np.array([column[part] for part in parts], np.int64)
    for table in scenario.tables:
        leaves = [line.variable for line in table.leaves]
        counts_once = table.universe in whole and not table.tally and not table.sums
        if counts_once and len(leaves) > 1 and set(leaves) <= set(column):
            yield whole[table.universe], np.array([column[leaf] for leaf in leaves], np.int64)


def _short(
    totals: Sequence[tuple[int, NDArray[np.int64]]], lower: Count, upper: Count, given: NDArray[np.bool_]
) -> int:
    """How many numbers that are not given would have to be more than 0, or some of them, for totals to add up."""
    short = np.zeros(given.shape, np.bool_)
    for total, parts in totals:
        failing = np.flatnonzero(given[:, total] & (lower[:, total] > upper[:, parts].sum(axis=1)))
        short[np.ix_(failing, parts)] |= ~given[np.ix_(failing, parts)]
    return int(short.sum())
