"""Who contributes to the numbers of a table of sums? A row for each number with its largest contributions, or records.

A file of numbers has `geoid, variable, total, largest_1, largest_2, ...`, and may have `contributors` and `level`. A
file of records has the columns of the scenario's records, `contribution`, and `contributor` if one may have several
rows (a holding). All are whole numbers, in the unit of the published table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.errors import InputError
from glasshouse.files.frames import Chunk, Source, need_columns, open_source
from glasshouse.files.records import RecordFile, level_matrix, open_records
from glasshouse.limits import CONTRIBUTIONS
from glasshouse.model.contributions import Cell, Contributed, Contributions, of_records
from glasshouse.model.geography import Geography
from glasshouse.model.records import UNLIMITED, satisfies
from glasshouse.model.release import Table
from glasshouse.scenarios.load import Scenario

TOTAL, LARGEST, CONTRIBUTORS = "total", "largest_", "contributors"
CONTRIBUTOR, CONTRIBUTION = "contributor", "contribution"


def read_contributions(path: Path, scenario: Scenario, depth: int = 2) -> Contributed:
    """The contributions of the numbers of a scenario, at every level: of records, the `depth` largest of each."""
    source = open_source(path)
    if CONTRIBUTION in source.columns:
        return _of_records(source, scenario, depth)
    if TOTAL in source.columns and f"{LARGEST}1" in source.columns:
        return Contributed(dict(_of_numbers(source, scenario)))
    raise InputError(
        f"{path.name}: no contributions; expected a row for each number with '{TOTAL}', '{LARGEST}1', '{LARGEST}2' and "
        f"so on, or records with '{CONTRIBUTION}'; found: {source.told}"
    )


# A row for each number


def _of_numbers(source: Source, scenario: Scenario) -> Iterator[tuple[Cell, Contributions]]:
    need_columns(source, ("geoid", "variable"), "a file of contributions says of which number")
    largest: list[str] = []
    while f"{LARGEST}{len(largest) + 1}" in source.columns:
        largest.append(f"{LARGEST}{len(largest) + 1}")
    some = [name for name in ("level", CONTRIBUTORS) if name in source.columns]
    judged = {line.variable for table in _sums(scenario) for line in table.lines}
    seen: dict[Cell, int] = {}
    for chunk in source.chunks(("geoid", "variable", TOTAL, *largest, *some)):
        totals = _numbers(source, chunk, TOTAL)
        named = [_numbers(source, chunk, name, blank=True) for name in largest]
        counts = (
            _numbers(source, chunk, CONTRIBUTORS, blank=True) if CONTRIBUTORS in some else totals.clear(len(totals))
        )
        texts = [chunk.frame[name].cast(pl.String).str.strip_chars() for name in ("geoid", "variable")]
        told = chunk.frame["level"].cast(pl.String).str.strip_chars() if "level" in some else [None] * len(totals)
        rows = zip(*texts, told, totals, counts, zip(*named, strict=True), strict=True)
        for line, (geoid, variable, level, total, count, values) in enumerate(rows, chunk.first):
            where = source.where(line)
            if variable not in judged:
                raise InputError(
                    f"{where}: '{str(variable)[:40]}' is no number of a table of {scenario.name} that can be judged"
                )
            cell = Cell(_level(where, scenario.geography, str(geoid), level), str(geoid), variable)
            if cell in seen:
                raise InputError(f"{where}: {variable} of {geoid} stands in {source.counted_in} {seen[cell]} already")
            seen[cell] = line
            if len(seen) > CONTRIBUTIONS:
                raise InputError(f"{source.path.name}: more than {CONTRIBUTIONS:,} numbers; give fewer at a time")
            kept = [value for value in values if value is not None]
            if any(value is not None for value in values[len(kept) :]):
                raise InputError(f"{where}: a contribution is blank before one that is not; expected the largest first")
            try:
                yield cell, Contributions(total, tuple(kept), count)
            except InputError as error:
                error.add_where(where)
                raise


def _level(where: str, geography: Geography, geoid: str, level: str | None) -> str:
    """The level of a code: as told, or the only one that has such codes."""
    possible = (
        [geography.known(level)] if level else [one for one in geography.levels if not geography.fault(geoid, one)]
    )
    if len(possible) != 1:
        found = f"may be a {' or a '.join(possible)}; a column 'level' must say which" if possible else "is no place"
        raise InputError(f"{where}: the code '{geoid[:40]}' {found}; levels: {', '.join(geography.levels)}")
    if fault := geography.fault(geoid, possible[0]):
        raise InputError(f"{where}: the code '{geoid[:40]}' {fault}")
    return possible[0]


def _numbers(source: Source, chunk: Chunk, column: str, *, blank: bool = False) -> pl.Series:
    """A column of whole numbers; refuses the first that is none, with its line."""
    given = chunk.frame[column]
    text = given.str.strip_chars() if given.dtype == pl.String else given
    empty = text.is_null() | (text == "") if text.dtype == pl.String else text.is_null()
    numbers = text.cast(pl.Int64, strict=False)
    bad = (numbers.is_null() & ~(empty if blank else empty & False)) | (numbers < 0) | (numbers >= UNLIMITED)
    if given.dtype.is_float():
        bad |= given != given.round()
    bad = bad.fill_null(False)
    if bad.any():
        at = int(bad.arg_max() or 0)
        found = "empty" if empty[at] else f"'{str(given[at])[:20]}'"
        raise InputError(
            f"{source.where(chunk.first + at)}: {column} is {found}; expected a whole number from 0 up, below "
            f"{UNLIMITED:,}, in the unit of the published table (cents, say)"
        )
    return numbers


# Records


def _sums(scenario: Scenario) -> Iterator[Table]:
    """The tables whose lines add up what records give; a tally counts somebody twice."""
    return (table for table in scenario.tables if not table.tally and not table.sums)


def _of_records(source: Source, scenario: Scenario, depth: int) -> Contributed:
    rows = 0
    for chunk in source.chunks((CONTRIBUTION,)):  # so that complaints have a line
        rows += len(_numbers(source, chunk, CONTRIBUTION))
    if rows > CONTRIBUTIONS:
        raise InputError(f"{source.path.name}: {rows:,} records; expected at most {CONTRIBUTIONS:,}")
    frame = _records(open_records(source.path, scenario))
    if frame[CONTRIBUTION].sum() >= UNLIMITED:
        raise InputError(
            f"{source.path.name}: contributions add up to {UNLIMITED:,} or more; give them in a larger unit"
        )
    given = _Given(scenario, frame)
    return Contributed(dict(given.cells(depth)), given.union)


class _Given:
    """Records with what each gives, and what lines of tables make of them."""

    def __init__(self, scenario: Scenario, frame: pl.DataFrame) -> None:
        geography = scenario.geography
        places = frame["geoid"].unique().to_list()
        codes = {level: [geography.code(place, level) for place in places] for level in geography.levels}
        areas = [pl.col("geoid").replace_strict(places, new, return_dtype=pl.String).alias(f"at {level}")
                 for level, new in codes.items()]  # fmt: skip
        self.levels, self.schema = geography.levels, scenario.schema
        self.frame, self.codes = frame.with_columns(areas), level_matrix(frame, scenario.schema)
        self.predicates = {line.variable: line.predicate for table in _sums(scenario) for line in table.lines
                           if line.predicate is not None}  # fmt: skip

    def cells(self, depth: int) -> Iterator[tuple[Cell, Contributions]]:
        """Every cell that somebody contributes to, with its largest contributions."""
        told = 0
        value = pl.col(CONTRIBUTION)
        for variable, predicate in self.predicates.items():
            inside = self.frame.filter(satisfies(self.schema, self.codes, predicate))
            for level in self.levels:
                people = inside.group_by(f"at {level}", CONTRIBUTOR).agg(value.sum())
                largest = value.sort(descending=True).head(depth).alias("largest")
                sums = people.group_by(f"at {level}").agg(value.sum(), largest, pl.len().alias("people"))
                told += sums.height
                if told > CONTRIBUTIONS:
                    raise InputError(f"contributions of more than {CONTRIBUTIONS:,} numbers; give fewer at a time")
                for geoid, total, most, number in sums.iter_rows():
                    yield Cell(level, geoid, variable), Contributions(total, tuple(most), number)

    def union(self, cells: Sequence[Cell]) -> Contributions:
        """Several numbers of one place as one, whose parts have no record in common."""
        level, geoid, _ = cells[0]
        here = np.flatnonzero(self._at(level) == geoid)
        inside = np.zeros(len(here), np.bool_)
        for cell in cells:
            inside |= satisfies(self.schema, self.codes[here], self.predicates[cell.variable])
        return of_records(self.frame[here[inside]].select(CONTRIBUTOR, CONTRIBUTION).iter_rows())

    def _at(self, level: str) -> NDArray[np.object_]:
        return self.frame[f"at {level}"].to_numpy()


def _records(file: RecordFile) -> pl.DataFrame:
    """Place, levels, and who gives how much; without names every row is somebody else."""
    named = CONTRIBUTOR in file.source.columns
    names = (CONTRIBUTOR, CONTRIBUTION) if named else (CONTRIBUTION,)
    frames = list(file.frames(names=names))
    if not frames or not sum(one.height for one in frames):
        raise InputError(f"{file.source.path.name}: no records; expected a row for each contribution")
    frame = pl.concat(frames).with_columns(pl.col(CONTRIBUTION).cast(pl.Int64))
    alone = pl.concat_str(pl.lit("row "), pl.int_range(pl.len()).cast(pl.String))
    who = pl.coalesce(pl.col(CONTRIBUTOR), alone) if named else alone
    return frame.with_columns(who.alias(CONTRIBUTOR))
