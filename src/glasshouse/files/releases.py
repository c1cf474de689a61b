"""What was published, judging by the numbers seen? And how do rows of a unit become its release?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.errors import InputError, unknown
from glasshouse.model.printed import ANYTHING, ZERO, Missing
from glasshouse.model.records import Count, Interval
from glasshouse.model.release import Counts, Release, counts_everyone
from glasshouse.scenarios.load import Scenario

__all__ = ["FILES_APART", "TABLES_APART", "Builder", "Missing", "Seen", "absent", "published"]

TABLES_APART = 1 << 36  # lines of the second table of a file begin here, those of the third at twice that
FILES_APART = 1_000 * TABLES_APART  # and those of the second file of a folder here


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
    whole_tables: bool = True  # a total alone says that its table was published, with zeros for what is absent
    absent: Interval = ZERO  # what is known of a number that has no row, where it was not left out to hide it
    totals_aside: int = 0  # totals of an office's file that no table of the scenario has
    files: tuple[str, ...] = ()  # of a folder, in the order they are read
    passed_over: tuple[str, ...] = ()  # files of a folder that are no tables

    def where(self, path: Path, line: int) -> str:
        """A place in the file, or in one of the files of the folder, in words."""
        file = self.files[line // FILES_APART] if self.files else path.name
        return f"{file}, {self.counted_in} {line % TABLES_APART}"

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

    A table seen at a level of a file that leaves out zeros is published there with all its leaves (of an office's own
    file: if a leaf was seen); a subtotal, and any line of a wide file or an archive, only if it was seen itself.
    `assume` adds tables: `all`, or a list.
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
            told = here if seen.whole_tables else here & {line.variable for line in table.leaves}
            leaves = assumed or (bool(told) and seen.sparse)
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
        numbers = self._once(rows.filter(pl.col("variable").is_not_null()))
        geography = self.scenario.geography
        places: dict[str, list[str]] = {}
        for level in sorted(self.variables, key=geography.levels.index, reverse=True):
            finer = [place for at, many in places.items() if self._contains(level, at) for place in many]
            here = set(rows.filter(pl.col("level") == level)["geoid"].unique())
            places[level] = sorted(here.union(geography.code(place, level) for place in finer))
        levels = {level: self._counts(numbers, level, places[level]) for level in self.variables}
        return Release(self.scenario.schema, self.scenario.tables, levels)

    def _once(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Every number once. Two tables of an office may print the same one: both are true, so both intervals hold."""
        key = ["level", "geoid", "variable"]
        if rows.select(key).n_unique() == rows.height:
            return rows
        table = (pl.col("line") // TABLES_APART).alias("table")
        twice = rows.filter(rows.with_columns(table).select(pl.struct(*key, "table").is_duplicated()).to_series())
        if twice.height:
            self._refuse_double(twice, "expected each number once")
        ends = [pl.col("lower").max(), pl.col("upper").min(), pl.col("line").first()]
        once = rows.group_by(key, maintain_order=True).agg(ends)
        apart = once.filter(pl.col("lower") > pl.col("upper"))
        if apart.height:
            self._refuse_double(rows.join(apart.head(1), on=key, how="semi"), "and the two numbers cannot both be true")
        return once

    def _refuse_double(self, twice: pl.DataFrame, expected: str) -> None:
        first = twice.sort("level", "geoid", "variable", "line", maintain_order=True)
        level, geoid, variable, line = first.select("level", "geoid", "variable", "line").row(0)
        before = self.seen.where(self.path, line) if self.seen.files else f"{self.seen.counted_in} {line}"
        raise InputError(
            f"{self.seen.where(self.path, int(first['line'][1]))}: {variable} of {level} {geoid} was given before, "
            f"in {before}; {expected}"
        )

    def _contains(self, level: str, finer: str) -> bool:
        lengths = self.scenario.geography.lengths
        return level in lengths and finer in lengths and lengths[level] < lengths[finer]

    def _counts(self, rows: pl.DataFrame, level: str, places: list[str]) -> Counts:
        rows = rows.filter(pl.col("level") == level)
        variables = self.variables[level]
        row = pl.Series(places, dtype=pl.String).search_sorted(rows["geoid"]).to_numpy()
        column = rows.join(self.column[level], on="variable", how="left", maintain_order="left")["column"].to_numpy()
        absent = ANYTHING if self.seen.sparse and self.missing == "hidden" else self.seen.absent
        lower = np.full((len(places), len(variables)), absent.lower, np.int64)
        lower[row, column] = rows["lower"].to_numpy()
        upper = lower
        unsure = absent.lower < absent.upper and rows.height < lower.size
        if unsure or not bool((rows["lower"] == rows["upper"]).all()):
            upper = np.full_like(lower, absent.upper) if unsure else lower.copy()
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
