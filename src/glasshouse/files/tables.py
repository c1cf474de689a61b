"""How do table files become releases? Long, wide or an office's archive, any order of rows, one unit at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from itertools import chain, islice
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.errors import InputError, unknown
from glasshouse.files import summary
from glasshouse.files.codebook import Codebook, no_table, refuse_two_spellings, without_second_header
from glasshouse.files.extract import is_extract, read_extract
from glasshouse.files.formats import (
    delimited,
    sdmx_out,  # noqa: F401  # so that .sdmx.csv is a known ending
)
from glasshouse.files.frames import OTHER_FORMATS, Chunk, Source, Watch, open_source, table_files, unwatched
from glasshouse.files.office.counts import Numbers, called, counts, is_blank, refuse
from glasshouse.files.office.placebook import read_places
from glasshouse.files.office.tidy import TidyTable, tables_in
from glasshouse.files.office.wide import filters, placed, rows_of, shape, shapes
from glasshouse.files.places import PlaceColumns, check_codes, listed_places, place_columns, read_codes
from glasshouse.files.regroup import by_key, regroup
from glasshouse.files.releases import FILES_APART, TABLES_APART, Builder, Missing, Seen, absent
from glasshouse.model.printed import BLANK, EXACT, Printed
from glasshouse.model.records import UNLIMITED, Interval
from glasshouse.model.release import Release
from glasshouse.scenarios.elsewhere import scenarios_with_tables, scenarios_with_variable
from glasshouse.scenarios.layout import Layout
from glasshouse.scenarios.load import Scenario

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
    printed: Printed = EXACT  # how the office prints its numbers
    seen: Seen = field(default_factory=Seen)

    @property
    def missing(self) -> Missing:
        """What a number without a row is, in a file that has a row for each."""
        return self.printed.missing

    def rows(self, watch: Watch = unwatched) -> Iterator[pl.DataFrame]:
        """Published numbers in pieces: level, geoid, variable (its official name), lower, upper, line."""
        if self.path.is_dir():
            yield from self._folder(watch)
            return
        if self.path.suffix.lower() == ".zip":
            yield from self._extracted(watch) if is_extract(self.path) else self._archived()
            return
        if self.path.name.lower().endswith(OTHER_FORMATS):
            yield from self._tidy(watch)
            return
        source = open_source(self.path)
        self.seen.counted_in = source.counted_in
        self.seen.absent = self.printed.zero
        if "variable" in source.columns:
            yield from self._long(source, watch)
        elif self._is_tidy(source):
            yield from self._tidy(watch)
        else:
            yield from self._wide(source, watch)

    def _folder(self, watch: Watch) -> Iterator[pl.DataFrame]:
        """The numbers of every table file of a folder, as one release."""
        files, others = table_files(self.path)
        self.seen.files, self.seen.passed_over = tuple(file.name for file in files), others
        sparse: set[bool] = set()
        for number, file in enumerate(files):
            self.seen.sparse = True
            for frame in replace(self, path=file, codebook=Codebook.beside(file, self.scenario)).rows():
                yield frame.with_columns(pl.col("line") + number * FILES_APART)
            sparse.add(self.seen.sparse)
            if len(sparse) > 1:
                raise InputError(
                    f"{file}: its layout is another than that of the files before (a row for each number, or a column "
                    "for each variable); expected one layout in a folder"
                )
            watch((number + 1) / len(files))

    def _is_tidy(self, source: Source) -> bool:
        """Is it a table as an office writes it: no column is a variable, and one holds numbers?"""
        official = any(self.codebook.translate(name) in self.scenario.official for name in source.columns)
        return not official and (delimited.holds_numbers(source) or self.scenario.layout is not None)

    def _tidy(self, watch: Watch) -> Iterator[pl.DataFrame]:
        places = read_places(self.scenario.places, self.scenario.geography)
        tables = tables_in(self.path, self.scenario.layout or Layout())
        for number, crossed in enumerate(tables):
            for frame in TidyTable(crossed, self.scenario, self.printed, places, self.seen).rows():
                yield frame.with_columns(pl.col("line") + number * TABLES_APART)
            watch((number + 1) / len(tables))

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
        elsewhere = scenarios_with_variable(name, self.scenario)
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

    def _extracted(self, watch: Watch) -> Iterator[pl.DataFrame]:
        for source, codebook in read_extract(self.path, self.scenario, self.codebook):
            part = replace(self, codebook=codebook, seen=self.seen)
            before = self.seen.columns
            yield from part._wide(source, watch)
            self.seen.columns = (*before, *(name for name in self.seen.columns if name not in before))

    def _note(self, frame: pl.DataFrame) -> None:
        self.seen.variables.update(frame.select("level", "variable").unique().iter_rows())
        self.seen.cells += frame.height

    def _long(self, source: Source, watch: Watch) -> Iterator[pl.DataFrame]:
        values = ("lower", "upper") if "lower" in source.columns and "upper" in source.columns else ("value", "value")
        ends = [name for name in ("lower", "upper") if name in source.columns]
        if ends and "value" in source.columns:
            said = " and ".join(f"'{name}'" for name in ends)
            raise InputError(f"{source.path.name}: has 'value' and {said}; expected 'value', or 'lower' and 'upper'")
        if values[0] not in source.columns:
            message = f"column 'value' is missing (or 'lower' and 'upper'); found: {source.told}"
            raise InputError(f"{source.path.name}: {message}")
        place = place_columns(source, self.scenario.geography)
        optional = [name for name in ("level", "table") if name in source.columns]
        wanted = list(dict.fromkeys([*place.names, "variable", *optional, *values]))
        if values[0] != values[1]:
            self.seen.absent = Interval(0, 0)  # intervals are written out where they are needed
        names: dict[str, str | None] = {}
        for chunk in source.chunks(wanted):
            frame = chunk.frame.with_row_index("line", offset=chunk.first)
            frame = frame.with_columns(pl.col("line").cast(pl.Int64), pl.col("variable").cast(pl.String))
            frame = frame.with_columns(read_codes(source, chunk, place))
            self._learn(source, frame, names)
            frame = self._with_level(source, frame, place)
            if values[0] == values[1]:
                numbers = Numbers(frame["value"], frame["line"], source.where, called=called(frame, "value"))
                lower, upper = numbers.intervals(self.printed)
            else:
                lower, upper = counts(source, frame, "lower"), counts(source, frame, "upper", blank=UNLIMITED)
            frame = frame.with_columns(lower.alias("lower"), upper.alias("upper"))
            refuse(source, frame, pl.col("lower") > pl.col("upper"), "lower is above upper; expected lower <= upper")
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
        if not self.codebook.has_table_of(self.scenario):
            raise no_table(source.path.name, {source.path.name: self.codebook}, self.scenario)
        place, layout = placed(source, self.scenario), self.scenario.layout or Layout()
        looks = shapes(self.scenario.official)
        kept: dict[str, str] = {}
        aside: Counter[str] = Counter()
        unread = []
        for column in source.columns:
            if column in (*place.names, *layout.only) or column == "level":
                continue
            if column not in layout.ignore and shape(self.codebook.translate(column)) in looks:  # then it must be one
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
        refuse_two_spellings(source, kept)
        filled: dict[tuple[str, str], bool] = {}
        optional = [*(["level"] if "level" in source.columns else []), *filters(source, layout)]
        for chunk in source.chunks([*place.names, *optional, *kept]):
            watch(chunk.done)
            self.seen.ignored.update({table: columns * chunk.frame.height for table, columns in aside.items()})
            yield from self._melt(source, without_second_header(chunk, place, next(iter(kept))), place, kept, filled)

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
        frame = rows_of(frame.with_columns(read_codes(source, chunk, place)), self.scenario.layout or Layout())
        frame = self._with_level(source, frame, place)
        for (level,), part in frame.group_by("level", maintain_order=True):
            columns: list[NDArray[np.int64]] = []
            tops: list[NDArray[np.int64]] = []
            for column, variable in kept.items():
                blank = is_blank(part[column])
                told_blank = BLANK in self.printed.markers  # then an empty cell is a number like others
                whole = bool(blank.all()) and not told_blank
                if (bool(blank.any()) and not whole and not told_blank) or filled.setdefault(
                    (str(level), variable), not whole
                ) == whole:
                    line = int(part["line"][int(blank.arg_max() or 0)])
                    raise InputError(
                        f"{source.where(line)}: column '{column}' is empty here and filled elsewhere at level {level}; "
                        "expected a count, or no count at all for that level"
                    )
                if whole:
                    columns.append(np.zeros(part.height, np.int64))
                    tops.append(columns[-1])
                else:
                    numbers = Numbers(part[column], part["line"], source.where, called=called(part, column))
                    lower, upper = numbers.intervals(self.printed)
                    columns.append(lower.to_numpy())
                    tops.append(upper.to_numpy())
            present = [variable for variable in kept.values() if filled[str(level), variable]]
            self.seen.variables.update((str(level), variable) for variable in present)
            numbers_of, most = np.column_stack(columns), np.column_stack(tops)
            told = (numbers_of != self.seen.absent.lower) | (most != self.seen.absent.upper)
            told[:, list(kept.values()).index(present[0]) if present else 0] = True
            row, column_at = np.nonzero(told)
            self.seen.cells += part.height * len(present)
            yield pl.DataFrame(
                [
                    pl.repeat(str(level), len(row), eager=True).alias("level"),
                    part["geoid"].gather(row),
                    pl.Series("variable", list(kept.values())).gather(column_at),
                    pl.Series("lower", numbers_of[row, column_at]),
                    pl.Series("upper", most[row, column_at]),
                    part["line"].gather(row),
                ],
                schema=ROWS,
            )

    def releases(
        self, *, assume: str = "seen", near: Path | None = None, watch: Watch = unwatched, units: Collection[str] = ()
    ) -> Iterator[Release]:
        """One release per unit, units in increasing order; last, one for the levels coarser than the unit.

        With `units` only theirs; the file is read through all the same, since all of it says what was published. What
        `assume` says of absent tables: `seen`, they were not published; `all`, every table of the scenario was
        and the absent numbers are 0; or a list of tables that were.
        """
        geography = self.scenario.geography
        within = [level for level in geography.levels if geography.within_unit(level)]
        coarse: list[pl.DataFrame] = []
        wanted, total, given = sorted(units), 0, 0

        def inner() -> Iterator[pl.DataFrame]:
            unit = pl.col("geoid").str.head(geography.lengths[geography.unit]).alias("unit")
            nonlocal total
            for frame in chain(self.rows(lambda share: watch(0.5 * share)), self._listed()):
                total += frame.height
                inside = pl.col("level").is_in(within)
                coarse.append(frame.filter(~inside))
                rows = frame.filter(inside).with_columns(unit)
                self.seen.units.update(rows["unit"].unique())
                yield rows.filter(pl.col("unit").is_in(wanted)) if wanted else rows

        builder: Builder | None = None
        groups = regroup(inner(), "unit", near=near)
        begun = list(islice(groups, 1))  # all is read by now
        missing, unit = [code for code in wanted if code not in self.seen.units], geography.unit
        if missing and self.seen.units:
            said = f"--units: no number of {unit} {missing[0]} in {self.path.name}"
            raise InputError(f"{said}; expected codes of a {unit}")
        for group in chain(begun, groups):
            if not self.seen.variables and assume == "seen":
                raise self._nothing()
            builder = builder or self._builder(within, assume)
            for _, rows in by_key(group, "unit"):
                given += rows.height
                watch(0.5 + 0.5 * given / total)
                yield builder.release(rows)
        above = pl.concat(coarse) if coarse else pl.DataFrame(schema=ROWS)
        if not self.seen.units and above.is_empty():
            raise self._nothing()
        if not above.is_empty():
            levels = [level for level in geography.levels if level not in within]
            yield self._builder(levels, assume).release(above)

    def _nothing(self) -> InputError:
        """That nothing in the file is of the scenario, and of which other its tables are."""
        said = f"{self.path.name}: no number of a table of {self.scenario.title}; nothing to work on"
        elsewhere = scenarios_with_tables(self.seen.ignored, self.scenario)
        found = f"found {', '.join(sorted(self.seen.ignored))}, not of this, but of scenario {' and '.join(elsewhere)}"
        return InputError(f"{said}; {found}; is --scenario right?" if elsewhere else said)

    def _builder(self, levels: Sequence[str], assume: str) -> Builder:
        return Builder(self.path, self.scenario, self.seen, levels, assume, self.missing)

    def some(self, places: Mapping[str, Collection[str]], *, assume: str = "seen") -> Release:
        """The numbers of some places, by level; the file is read through, and only they are kept."""
        wanted = pl.any_horizontal(
            [(pl.col("level") == level) & pl.col("geoid").is_in(sorted(some)) for level, some in places.items()]
        )
        rows = pl.concat([pl.DataFrame(schema=ROWS), *(frame.filter(wanted) for frame in self.rows())])
        return self._builder(list(places), assume).release(rows)

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
    path: Path,
    scenario: Scenario,
    codebook: Path | None = None,
    places: Path | None = None,
    missing: Missing | None = None,
    printed: Printed | None = None,
) -> TableFile:
    """A table file, or a folder of them, not read yet; without `printed`, the scenario says how numbers are printed.

    A `codebook` translates the names of an NHGIS extract, `places` lists every place.
    """
    if not path.exists():
        raise InputError(f"{path}: there is no such file")
    said = scenario.printed if printed is None else printed
    said = said if missing is None else replace(said, missing=missing)
    names = Codebook.read(codebook, scenario) if codebook else Codebook.beside(path, scenario)
    return TableFile(path, scenario, names, places, said)


def _check_places(source: Source, frame: pl.DataFrame, scenario: Scenario, level: str) -> None:
    """Check codes, with the line of the first that is wrong; rows may have gaps, so lines are looked up."""
    try:
        check_codes(source, 0, frame["geoid"], scenario.geography, level)
    except InputError:
        for line, code in zip(frame["line"], frame["geoid"], strict=True):
            check_codes(source, line, pl.Series([code], dtype=pl.String), scenario.geography, level)


def _naming(places: pl.DataFrame) -> pl.DataFrame:
    """Rows that name places and say no more of them."""
    zeros = (pl.lit(0, pl.Int64).alias(name) for name in ("lower", "upper", "line"))
    return places.select("level", "geoid", pl.lit(None, pl.String).alias("variable"), *zeros)
