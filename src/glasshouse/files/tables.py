"""How do table files become releases? Long, wide or an office's archive, any order of rows, one unit at a time."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import chain
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.errors import InputError, unknown
from glasshouse.files import summary
from glasshouse.files.codebook import Codebook
from glasshouse.files.frames import Chunk, Source, Watch, open_source, unwatched
from glasshouse.files.places import PlaceColumns, check_codes, listed_places, place_columns, read_codes
from glasshouse.files.regroup import by_key, regroup
from glasshouse.files.releases import Builder, Missing, Seen, absent
from glasshouse.model.records import UNLIMITED
from glasshouse.model.release import Release
from glasshouse.scenarios.load import Scenario, known_scenarios, load

ROWS = {
    "level": pl.String,
    "geoid": pl.String,
    "variable": pl.String,
    "lower": pl.Int64,
    "upper": pl.Int64,
    "line": pl.Int64,
}


@dataclass(frozen=True)
class TableFile:
    """A file of published numbers, and what has been seen in it so far."""

    path: Path
    scenario: Scenario
    codebook: Codebook
    places: Path | None = None  # a list of every place there is
    missing: Missing = "zero"  # what a number without a row is, in a file that has a row for each
    seen: Seen = field(default_factory=Seen)

    def rows(self, watch: Watch = unwatched) -> Iterator[pl.DataFrame]:
        """Published numbers in pieces: level, geoid, variable (its official name), lower, upper, line."""
        if self.path.suffix.lower() == ".zip":
            yield from self._archived()
            return
        source = open_source(self.path)
        self.seen.counted_in = source.counted_in
        if "variable" in source.columns:
            yield from self._long(source, watch)
        else:
            yield from self._wide(source, watch)

    def _keep(self, variable: str, where: str) -> str | None:
        """The official name of a variable; None when its table is official but not the scenario's."""
        table, line = self._official(variable, where)
        if table in self.scenario.by_table:
            return self.scenario.by_table[table].line(line).variable
        return None

    def _official(self, variable: str, where: str) -> tuple[str, int]:
        name = self.codebook.translate(variable)
        if name in self.scenario.official:
            return self.scenario.official[name]
        said = f"{where}: '{variable[:40]}' is not an official variable of {self.scenario.title}"
        others = [load(other) for other in known_scenarios() if other != self.scenario.name]
        known = [other for other in others if name in other.official]
        used = [other for other in known if other.official[name][0] in other.by_table]
        elsewhere = [other.name for other in used or known]
        if elsewhere:
            raise InputError(f"{said}, but of scenario {' and '.join(elsewhere)}; is --scenario right?")
        usual = [line.variable for table in self.scenario.tables for line in table.lines]
        near = get_close_matches(variable, usual, n=1) or get_close_matches(variable, self.scenario.official, n=1)
        raise InputError(f"{said}{f'; the nearest is {near[0]}' if near else ''}")

    def _archived(self) -> Iterator[pl.DataFrame]:
        self.seen.sparse = False
        for frame in summary.read_rows(self.path, self.scenario):
            self._note(frame)
            value = pl.col("value")
            yield frame.select(
                "level",
                "geoid",
                "variable",
                value.alias("lower"),
                value.alias("upper"),
                pl.lit(0, pl.Int64).alias("line"),
            )

    def _note(self, frame: pl.DataFrame) -> None:
        self.seen.variables.update(frame.select("level", "variable").unique().iter_rows())
        self.seen.cells += frame.height

    def _long(self, source: Source, watch: Watch) -> Iterator[pl.DataFrame]:
        values = ("lower", "upper") if "lower" in source.columns and "upper" in source.columns else ("value", "value")
        if values[0] == "lower" and "value" in source.columns:
            raise InputError(f"{source.path.name}: has 'value' and 'lower', 'upper'; expected one or the other")
        if values[0] not in source.columns:
            message = f"column 'value' is missing (or 'lower' and 'upper'); found: {source.told}"
            raise InputError(f"{source.path.name}: {message}")
        place = place_columns(source, self.scenario.geography)
        optional = [name for name in ("level", "table") if name in source.columns]
        wanted = list(dict.fromkeys([*place.names, "variable", *optional, *values]))
        names: dict[str, str | None] = {}
        for chunk in source.chunks(wanted):
            frame = chunk.frame.with_row_index("line", offset=chunk.first)
            frame = frame.with_columns(pl.col("line").cast(pl.Int64), pl.col("variable").cast(pl.String))
            frame = frame.with_columns(read_codes(source, chunk, place))
            self._learn(source, frame, names)
            frame = self._with_level(source, frame, place)
            lower = _counts(source, frame, values[0])
            upper = lower if values[0] == values[1] else _counts(source, frame, values[1], blank=UNLIMITED)
            frame = frame.with_columns(lower.alias("lower"), upper.alias("upper"))
            _refuse(source, frame, pl.col("lower") > pl.col("upper"), "lower is above upper; expected lower <= upper")
            official = pl.col("variable").replace_strict(names, default=None, return_dtype=pl.String)
            found = frame.with_columns(official.alias("variable")).select(list(ROWS))
            kept = found.filter(pl.col("variable").is_not_null())
            self._note(kept)
            watch(chunk.done)
            yield kept if kept.height == found.height else pl.concat([kept, self._named(frame, names)])

    def _named(self, frame: pl.DataFrame, names: dict[str, str | None]) -> pl.DataFrame:
        """The places of numbers that are not used, once each: rows without a variable."""
        aside = pl.col("variable").is_in([name for name, used in names.items() if used is None])
        rows = frame.filter(aside & (pl.col("level") == self.scenario.geography.place))
        self.seen.aside.update(self._official(variable, "")[0] for variable in rows["variable"].unique())
        return _naming(rows.select("level", "geoid").unique(maintain_order=True))

    def _learn(self, source: Source, frame: pl.DataFrame, names: dict[str, str | None]) -> None:
        """Look up variables not met before, and count those of other official tables."""
        if frame["variable"].null_count():
            line = int(frame.filter(pl.col("variable").is_null())["line"][0])
            raise InputError(f"{source.where(line)}: the variable is empty")
        met = frame.group_by("variable", maintain_order=True).agg(pl.len(), pl.col("line").first())
        for variable, number, line in met.iter_rows():
            if variable not in names:
                names[variable] = self._keep(variable, source.where(line))
            if names[variable] is None:
                self.seen.ignored[self._official(variable, source.where(line))[0]] += number
        if "table" in frame.columns:
            pairs = frame.group_by("variable", "table", maintain_order=True).agg(pl.col("line").first())
            for variable, table, line in pairs.iter_rows():
                actual = self._official(variable, source.where(line))[0]
                if table is not None and str(table).strip() != actual:
                    raise InputError(
                        f"{source.where(line)}: variable {variable} is of table {actual}; found table '{table}'"
                    )

    def _with_level(self, source: Source, frame: pl.DataFrame, place: PlaceColumns) -> pl.DataFrame:
        """Give every row its level: told by the file, or else by the length of its code."""
        geography = self.scenario.geography
        if "level" not in frame.columns and place.level:
            frame = frame.with_columns(pl.lit(place.level).alias("level"))
        elif "level" not in frame.columns:
            lengths = {size: level for level, size in geography.lengths.items()}
            length = pl.col("geoid").str.len_bytes()
            level = length.replace_strict(lengths, default=geography.place, return_dtype=pl.String)
            frame = frame.with_columns(level.alias("level"))
        for level in frame["level"].unique().to_list():
            if level is None or level not in geography.levels:
                line = int(frame.filter(pl.col("level").eq_missing(pl.lit(level)))["line"][0])
                raise InputError(f"{source.where(line)}: {unknown('level', str(level), geography.levels)}")
            part = frame if frame["level"].n_unique() == 1 else frame.filter(pl.col("level") == level)
            _check_places(source, part, self.scenario, level)
        return frame

    def _wide(self, source: Source, watch: Watch) -> Iterator[pl.DataFrame]:
        place = place_columns(source, self.scenario.geography)
        shapes = {_shape(name) for name in self.scenario.official}
        kept: dict[str, str] = {}
        aside: Counter[str] = Counter()
        unread = []
        for column in source.columns:
            if column in place.names or column == "level":
                continue
            if _shape(self.codebook.translate(column)) in shapes:  # it looks like a variable, so it must be one
                name = self._keep(column, f"{source.path.name}, header")
                if name is not None:
                    kept[column] = name
                else:
                    aside[self._official(column, source.path.name)[0]] += 1
            else:
                unread.append(column)
        self.seen.columns, self.seen.sparse = tuple(unread), False
        if not kept:
            example = self.scenario.tables[0].variables[0]
            readings = [
                reading.columns for attribute in self.scenario.schema.attributes for reading in attribute.readings
            ]
            if any(set(columns) <= set(source.columns) for columns in readings):
                raise InputError(
                    f"{source.path.name}: looks like records; expected tables (glasshouse tabulate makes them)"
                )
            raise InputError(
                f"{source.path.name}: no column is a variable of {self.scenario.title}; expected a long file with a "
                f"column 'variable', or columns such as {example} (NHGIS codes need --codebook); found: {source.told}"
            )
        _refuse_two_spellings(source, kept)
        filled: dict[tuple[str, str], bool] = {}
        optional = ["level"] if "level" in source.columns else []
        for chunk in source.chunks([*place.names, *optional, *kept]):
            watch(chunk.done)
            self.seen.ignored.update({table: columns * chunk.frame.height for table, columns in aside.items()})
            yield from self._melt(source, _without_second_header(chunk, place, next(iter(kept))), place, kept, filled)

    def _melt(
        self,
        source: Source,
        chunk: Chunk,
        place: PlaceColumns,
        kept: dict[str, str],
        filled: dict[tuple[str, str], bool],
    ) -> Iterator[pl.DataFrame]:
        """The numbers of some rows of a wide file that are not 0, and the first of each place, so that it is not lost.

        A column blank throughout a level is unpublished there.
        """
        frame = chunk.frame.with_row_index("line", offset=chunk.first).with_columns(pl.col("line").cast(pl.Int64))
        frame = self._with_level(source, frame.with_columns(read_codes(source, chunk, place)), place)
        for (level,), part in frame.group_by("level", maintain_order=True):
            columns: list[NDArray[np.int64]] = []
            for column, variable in kept.items():
                blank = _blank(part[column])
                whole = bool(blank.all())
                if (bool(blank.any()) and not whole) or filled.setdefault((str(level), variable), not whole) == whole:
                    line = int(part["line"][int(blank.arg_max() or 0)])
                    raise InputError(
                        f"{source.where(line)}: column '{column}' is empty here and filled elsewhere at level {level}; "
                        "expected a count, or no count at all for that level"
                    )
                columns.append(np.zeros(part.height, np.int64) if whole else _counts(source, part, column).to_numpy())
            present = [variable for variable in kept.values() if filled[str(level), variable]]
            self.seen.variables.update((str(level), variable) for variable in present)
            numbers_of = np.column_stack(columns)
            told = numbers_of != 0
            told[:, [variable in present for variable in kept.values()].index(True) if present else 0] = True
            row, column_at = np.nonzero(told)
            value = numbers_of[row, column_at]
            self.seen.cells += part.height * len(present)
            numbers = pl.Series("lower", value)
            yield pl.DataFrame(
                [
                    pl.repeat(str(level), len(row), eager=True).alias("level"),
                    part["geoid"].gather(row),
                    pl.Series("variable", list(kept.values())).gather(column_at),
                    numbers,
                    numbers.alias("upper"),
                    part["line"].gather(row),
                ],
                schema=ROWS,
            )

    def releases(
        self, *, assume: str = "seen", near: Path | None = None, watch: Watch = unwatched
    ) -> Iterator[Release]:
        """One release per unit, units in increasing order; last, one for the levels coarser than the unit.

        What `assume` says of absent tables: `seen`, they were not published; `all`, every table of the scenario was
        and the absent numbers are 0; or a list of tables that were.
        """
        geography = self.scenario.geography
        within = [level for level in geography.levels if geography.within_unit(level)]
        coarse: list[pl.DataFrame] = []
        total = given = 0

        def inner() -> Iterator[pl.DataFrame]:
            unit = pl.col("geoid").str.head(geography.lengths[geography.unit]).alias("unit")
            nonlocal total
            for frame in chain(self.rows(lambda share: watch(0.5 * share)), self._listed()):
                total += frame.height
                inside = pl.col("level").is_in(within)
                coarse.append(frame.filter(~inside))
                rows = frame.filter(inside).with_columns(unit)
                self.seen.units.update(rows["unit"].unique())
                yield rows

        builder: Builder | None = None
        for group in regroup(inner(), "unit", near=near):
            builder = builder or Builder(self.path, self.scenario, self.seen, within, assume, self.missing)
            for _, rows in by_key(group, "unit"):
                given += rows.height
                watch(0.5 + 0.5 * given / total)
                yield builder.release(rows)
        above = pl.concat(coarse) if coarse else pl.DataFrame(schema=ROWS)
        if builder is None and above.is_empty():
            raise InputError(f"{self.path.name}: no number of a table of {self.scenario.title}; nothing to work on")
        if not above.is_empty():
            levels = [level for level in geography.levels if level not in within]
            yield Builder(self.path, self.scenario, self.seen, levels, assume, self.missing).release(above)

    def _listed(self) -> Iterator[pl.DataFrame]:
        """The places of the list, if there is one; `names_places` holds only once they have been read."""
        if self.places is not None:
            level = self.scenario.geography.place
            codes = listed_places(self.places, self.scenario.geography)
            self.seen.listed = True
            yield _naming(codes.to_frame("geoid").with_columns(level=pl.lit(level)))

    def absent(self, assume: str = "seen") -> tuple[str, ...]:
        """The tables of the scenario of which no number was seen at their own level, and none is assumed."""
        return absent(self.scenario, self.seen, assume)


def open_tables(
    path: Path, scenario: Scenario, codebook: Path | None = None, places: Path | None = None, missing: Missing = "zero"
) -> TableFile:
    """A table file, not read yet; a `codebook` translates the names of an NHGIS extract, `places` lists every place."""
    if not path.exists():
        raise InputError(f"{path}: there is no such file")
    names = Codebook.read(codebook, scenario) if codebook else Codebook.beside(path, scenario)
    return TableFile(path, scenario, names, places, missing)


def _counts(source: Source, frame: pl.DataFrame, column: str, blank: int | None = None) -> pl.Series:
    """A column of counts as whole numbers; refuses the first that is none, with its line."""
    given = frame[column]
    if blank is not None:
        unlimited: object = (
            str(blank) if given.dtype == pl.String else float(blank) if given.dtype.is_float() else blank
        )
        given = given.set(_blank(given), unlimited)
    text = given.str.strip_chars() if given.dtype == pl.String else given
    numbers = text.cast(pl.Int64, strict=False)
    bad = numbers.is_null() | (numbers < 0) | (numbers > UNLIMITED)
    if given.dtype.is_float():
        bad |= given != given.round()
    if bad.any():
        at = int(bad.arg_max() or 0)
        variable = (
            f" of {frame['variable'][at]}"
            if column in ("value", "lower", "upper") and "variable" in frame.columns
            else ""
        )
        found = "empty" if given[at] is None else f"'{str(given[at])[:20]}'"
        remedy = (
            ""
            if column in ("lower", "upper")
            else "; a number that is not exact needs the columns lower and upper instead"
        )
        if numbers[at] is not None and numbers[at] > UNLIMITED:
            remedy = f", at most {UNLIMITED:,}"
        where = source.where(int(frame["line"][at]))
        raise InputError(f"{where}: {column}{variable} is {found}; expected a whole number from 0 up{remedy}")
    return numbers


def _blank(column: pl.Series) -> pl.Series:
    return column.is_null() | (column.str.strip_chars() == "") if column.dtype == pl.String else column.is_null()


def _refuse(source: Source, frame: pl.DataFrame, wrong: pl.Expr, message: str) -> None:
    bad = frame.filter(wrong)
    if bad.height:
        raise InputError(f"{source.where(int(bad['line'][0]))}: {message}")


def _check_places(source: Source, frame: pl.DataFrame, scenario: Scenario, level: str) -> None:
    """Check codes, with the line of the first that is wrong; rows may have gaps, so lines are looked up."""
    try:
        check_codes(source, 0, frame["geoid"], scenario.geography, level)
    except InputError:
        for line, code in zip(frame["line"], frame["geoid"], strict=True):
            check_codes(source, line, pl.Series([code], dtype=pl.String), scenario.geography, level)


def _refuse_two_spellings(source: Source, kept: dict[str, str]) -> None:
    seen: dict[str, str] = {}
    for column, variable in kept.items():
        if variable in seen:
            raise InputError(
                f"{source.path.name}: columns '{seen[variable]}' and '{column}' are the same variable {variable}"
            )
        seen[variable] = column


def _without_second_header(chunk: Chunk, place: PlaceColumns, variable: str) -> Chunk:
    """NHGIS writes a second header of descriptions: words where the first code and the first number should be."""
    if chunk.first > 2 or chunk.frame.is_empty():
        return chunk
    words = [str(chunk.frame[name][0] or "0") for name in (place.names[0], variable)]
    if any(letter.isdigit() for letter in words[0]) or words[1].strip().lstrip("-").replace(".", "", 1).isdigit():
        return chunk
    return Chunk(chunk.frame.slice(1), chunk.first + 1, chunk.done)


def _naming(places: pl.DataFrame) -> pl.DataFrame:
    """Rows that name places and say no more of them."""
    zeros = (pl.lit(0, pl.Int64).alias(name) for name in ("lower", "upper", "line"))
    return places.select("level", "geoid", pl.lit(None, pl.String).alias("variable"), *zeros)


def _shape(name: str) -> str:
    """How a name looks, its digits aside: P0120003 and P0129999 look alike, POP100 does not."""
    return re.sub(r"\d", "0", name)
