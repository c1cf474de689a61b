"""How does an office's own table become rows of a release? Its words become lines, its marks intervals.

A tidy file has a column for places, one for each attribute, and one of numbers. It is read twice: first for the
different descriptions of its rows, which say of which tables it is, then for the numbers, piece by piece.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from glasshouse.errors import InputError, unknown
from glasshouse.files import formats
from glasshouse.files.crossed import LINE, STATUS, VALUE, Crossed
from glasshouse.files.formats import delimited, sdmx_csv
from glasshouse.files.formats.delimited import OVER
from glasshouse.files.frames import of_columns, open_source
from glasshouse.files.office.counts import Numbers
from glasshouse.files.office.placebook import At, PlaceBook
from glasshouse.files.releases import Seen
from glasshouse.limits import DESCRIPTIONS, NAME_LENGTH
from glasshouse.model.printed import Printed
from glasshouse.model.records import Interval
from glasshouse.scenarios.layout import Layout, columns_by_name
from glasshouse.scenarios.load import Scenario
from glasshouse.scenarios.matching import NOBODY, Matching, Target, Told
from glasshouse.scenarios.meaning import Dictionary

PLACES = ("geoid", "geo_id", "geocode", "area", "place", "geo")  # how a column of places is called, besides its level
LEVEL, TABLE = "level", "table"
NORMAL: Mapping[str, Interval | None] = {"A": None}  # the observation status of SDMX for a number that stands
SAID = ".description"  # the number of what a row says, besides its place
ABSENT = -1  # a row whose number is not used


def tables_in(path: Path, layout: Layout) -> tuple[Crossed, ...]:
    """Every table of a file, in the shape that all formats are read into; none of the numbers is read yet."""
    if not of_columns(path) or sdmx_csv.is_sdmx(open_source(path).columns):
        return formats.crossed(path)
    over = layout.columns[OVER].declared if OVER in layout.columns else ()
    return (delimited.read(path, layout.value, layout.status, over),)


@dataclass(frozen=True)
class Roles:
    """What the columns of a file are: places, attributes with their words, and others that say nothing."""

    place: str | None
    level: str | None
    table: str | None
    attributes: Mapping[str, Dictionary]
    others: tuple[str, ...]  # not declared: they may have one value only
    ignored: tuple[str, ...]

    @property
    def described(self) -> list[str]:
        return [*self.attributes, *([self.table] if self.table else [])]


@dataclass
class TidyTable:
    """A table of an office's file, read by a scenario."""

    crossed: Crossed
    scenario: Scenario
    printed: Printed
    places: PlaceBook
    seen: Seen
    met: dict[tuple[str, str | None], At] = field(default_factory=dict)

    def rows(self) -> Iterator[pl.DataFrame]:
        """Published numbers in pieces: level, geoid, variable, lower, upper, line."""
        roles = self._roles()
        descriptions, matchings = self._described(roles)
        self.seen.columns = tuple(dict.fromkeys((*self.seen.columns, *roles.others, *roles.ignored)))
        self.seen.whole_tables = False
        self.seen.absent = self.printed.zero
        targets: dict[str, list[Target]] = {}
        for piece in self._pieces():
            frame = self._placed(piece, roles)
            frame = frame.join(descriptions, on=roles.described, how="left", maintain_order="left") if roles.described \
                else frame.with_columns(pl.lit(0, pl.Int64).alias(SAID))  # fmt: skip
            frame = frame.select(LEVEL, "geoid", SAID, VALUE, STATUS, LINE)  # the file's own columns may be called so
            numbers = Numbers(frame[VALUE], frame[LINE], self.crossed.where, frame[STATUS])
            lower, upper = numbers.intervals(self._marked())
            frame = frame.with_columns(lower.alias("lower"), upper.alias("upper"))
            for (level,), part in frame.group_by(LEVEL, maintain_order=True):
                at = str(level)
                if at not in targets:
                    targets[at] = [target for matching in matchings for target in matching.targets(at)]
                yield self._aimed(part, targets[at])

    def _marked(self) -> Printed:
        markers = {**NORMAL, **self.printed.markers}
        return Printed(self.printed.rule, markers, self.printed.missing, self.printed.thousands, self.printed.decimal)

    def _aimed(self, frame: pl.DataFrame, targets: list[Target]) -> pl.DataFrame:
        """The rows of one level with the variables they are; what is not used is counted."""
        used = self.scenario.by_table
        names = pl.Series([target.variable if target.table in used else None for target in targets], dtype=pl.String)
        frame = frame.with_columns(names.gather(frame[SAID]).alias("variable"))
        met = frame.group_by(SAID).agg(pl.len(), pl.col("lower").max(), pl.col(LINE).first())
        for description, number, lower, line in met.iter_rows():
            target = targets[description]
            if target == NOBODY and lower > 0:
                raise InputError(
                    f"{self.crossed.where(line)}: a number above 0 of records that the table does not count (its "
                    "universe leaves them out)"
                )
            if target == Target():
                self.seen.totals_aside += number
            elif target.table and target.table not in used:
                self.seen.ignored[target.table] += number
        kept = frame.filter(pl.col("variable").is_not_null())
        self.seen.variables.update(kept.select(LEVEL, "variable").unique().iter_rows())
        self.seen.cells += kept.height
        return kept.select(LEVEL, "geoid", "variable", "lower", "upper", pl.col(LINE).cast(pl.Int64))

    def _pieces(self) -> Iterator[pl.DataFrame]:
        layout = self.scenario.layout or Layout()
        wanted = [pl.col(name) == value for name, value in layout.only.items() if name in self._names]
        for piece in self.crossed.pieces():
            kept = piece.with_columns(pl.col(self._names).fill_null(""))
            kept = kept.filter(*wanted) if wanted else kept
            if kept.height:
                yield kept

    @property
    def _names(self) -> list[str]:
        return [dimension.name for dimension in self.crossed.dimensions]

    def _roles(self) -> Roles:
        layout, scenario = self.scenario.layout or Layout(), self.scenario
        known = columns_by_name(scenario.schema, scenario.recodes)
        free = [name for name in self._names if name not in (*layout.ignore, *layout.only)]
        attributes = {name: layout.columns[name] for name in free if name in layout.columns}
        attributes |= {
            name: known[name.casefold()] for name in free if name not in attributes and name.casefold() in known
        }
        place = self._place([name for name in free if name not in attributes], layout)
        left = [name for name in free if name not in attributes and name != place]
        level = next((name for name in left if name.casefold() == LEVEL), None)
        table = next((name for name in left if name.casefold() == TABLE), None)
        left = [name for name in left if name not in (level, table)]
        if OVER in left:
            attributes[OVER] = self._over({words.attribute.name for words in attributes.values()})
            left.remove(OVER)
        twice = [words.attribute.name for words in attributes.values()]
        for words in attributes.values():
            if twice.count(words.attribute.name) > 1:
                others = [column for column in attributes if attributes[column].attribute == words.attribute]
                raise InputError(
                    f"{self.crossed.path.name}: columns {' and '.join(others)} are both {words.attribute.name}; "
                    "[files] ignore = [...] leaves one out"
                )
        ignored = tuple(name for name in self._names if name in layout.ignore)
        return Roles(place, level, table, attributes, tuple(left), ignored)

    def _place(self, free: list[str], layout: Layout) -> str | None:
        """The column of places: the one declared, or that the file calls so; None where all is of one area."""
        file = self.crossed.path.name
        if layout.area:
            return None
        if layout.place:
            if layout.place not in free:
                raise InputError(f"{file}: no column '{layout.place}' (the place); found: {', '.join(self._names)}")
            return layout.place
        geo = [dimension.name for dimension in self.crossed.dimensions if dimension.role == "geo"]
        usual = {*PLACES, *(level.casefold() for level in self.scenario.geography.levels)}
        found = [name for name in geo if name in free] or [name for name in free if name.casefold() in usual]
        if len(found) == 1:
            return found[0]
        said = f"{' and '.join(found)} may all be the place" if found else "no column says which place a row is of"
        raise InputError(
            f'{file}: {said}; say [files] place = "COLUMN" (and ignore = [...] for the others), or area = "CODE" if '
            f"all is of one area; found: {', '.join(self._names)}"
        )

    def _over(self, taken: set[str]) -> Dictionary:
        """The attribute whose words stand over the columns of numbers: the only one that knows them all."""
        layout = self.scenario.layout or Layout()
        words = next(dimension for dimension in self.crossed.dimensions if dimension.name == OVER).categories
        every = [*layout.columns.values(), *columns_by_name(self.scenario.schema, self.scenario.recodes).values()]
        found = {
            one.attribute.name: one
            for one in reversed(every)
            if one.attribute.name not in taken and all(one.levels(category.code) is not None for category in words)
        }
        if len(found) == 1:
            return next(iter(found.values()))
        listed = ", ".join(category.code[:40] for category in words[:6])
        raise InputError(
            f"{self.crossed.path.name}: no column of numbers is called value, count or obs_value, and the columns "
            f"{listed} are words of {'no attribute' if not found else ' and '.join(found)}; say [files] value = "
            '"COLUMN", or [files.column.column] attribute = "..." with their codes'
        )

    def _described(self, roles: Roles) -> tuple[pl.DataFrame, list[Matching]]:
        """The different descriptions of the rows, numbered, and what they may be; others must have one value each."""
        first: dict[str, str] = {}
        parts: list[pl.DataFrame] = []
        found = pl.DataFrame()
        for piece in self._pieces():
            for name in roles.others:
                value = first.setdefault(name, piece[name][0])
                differs = piece.filter(pl.col(name) != value)
                if differs.height:
                    raise InputError(
                        f"{self.crossed.where(int(differs[LINE][0]))}: column '{name}' is '{differs[name][0][:40]}', "
                        f"and '{value[:40]}' before; nothing says what it is: [files.column.{name}] attribute = "
                        f'"...", [files] only = {{ {name} = "{value[:40]}" }}, or ignore = ["{name}"]'
                    )
            if roles.described:
                parts.append(piece.group_by(roles.described, maintain_order=True).agg(pl.col(LINE).first()))
                found = pl.concat(parts).unique(roles.described, keep="first", maintain_order=True)
                parts = [found]
            if found.height > DESCRIPTIONS:
                raise InputError(f"{self.crossed.path.name}: more than {DESCRIPTIONS:,} descriptions; expected fewer")
        if roles.described and not found.width:  # no rows at all
            return found, []
        if not roles.described:
            return found, [Matching(self.scenario, self.crossed.path.name, [self._told({}, 1)], self._stem())]
        matchings: list[Matching] = []
        numbered: list[pl.DataFrame] = []
        groups = found.group_by(roles.table, maintain_order=True) if roles.table else [((None,), found)]
        for (table,), part in groups:
            told = [
                self._told({name: (words, row[name]) for name, words in roles.attributes.items()}, row[LINE])
                for row in part.iter_rows(named=True)
            ]
            matchings.append(Matching(self.scenario, self.crossed.path.name, told, self._named(table, part)))
            numbered.append(part.drop(LINE))
        every = pl.concat(numbered)
        return every.with_columns(pl.Series(SAID, range(every.height), dtype=pl.Int64)), matchings

    def _named(self, table: object, rows: pl.DataFrame) -> str:
        if table is None:
            return self._stem()
        known = [one.name for one in (*self.scenario.tables, *self.scenario.aside)]
        if table not in known:
            where = self.crossed.where(int(rows[LINE][0]))
            raise InputError(f"{where}: {unknown('table', str(table), known)}")
        return str(table)

    def _stem(self) -> str:
        """The table that the file is named after, if it is."""
        stem = self.crossed.path.name.partition(".")[0]
        return next((t.name for t in (*self.scenario.tables, *self.scenario.aside) if t.name == stem), "")

    def _told(self, said: Mapping[str, tuple[Dictionary, str]], line: int) -> Told:
        sets = {}
        for column, (words, text) in said.items():
            try:
                levels = words.levels(text)
            except InputError as error:
                error.add_where(f"{self.crossed.where(line)}: column '{column}'")
                raise
            if levels is None:
                raise InputError(
                    f"{self.crossed.where(line)}: column '{column}' is '{text[:NAME_LENGTH]}'; expected a word for "
                    f"{words.attribute.name}: {words.known}; others are declared under [files.column.{column}] codes "
                    '(everybody is "*")'
                )
            sets[words.attribute.name] = levels
        return Told(self.scenario.schema.where(sets), self.crossed.where(line))

    def _placed(self, frame: pl.DataFrame, roles: Roles) -> pl.DataFrame:
        """The rows with their levels and nested codes; each place is looked up once."""
        layout = self.scenario.layout or Layout()
        text = pl.col(roles.place) if roles.place else pl.lit(layout.area)
        level = pl.col(roles.level) if roles.level else pl.lit(None, pl.String)
        frame = frame.with_columns(text.alias(".place"), level.alias(".level"))
        places = frame.group_by(".place", ".level", maintain_order=True).agg(pl.col(LINE).first())
        for place, said, line in places.iter_rows():
            if (place, said) not in self.met:
                try:
                    self.met[place, said] = self.places.find(place, said)
                except InputError as error:
                    error.add_where(self.crossed.where(line))
                    raise
        found = [self.met[place, said] for place, said in places.select(".place", ".level").iter_rows()]
        told = places.drop(LINE).with_columns(
            pl.Series(LEVEL, [one[0] for one in found], dtype=pl.String),
            pl.Series("geoid", [one[1] for one in found], dtype=pl.String),
        )
        drop = [name for name in (LEVEL, "geoid") if name in frame.columns and name not in roles.attributes]
        return frame.drop(drop).join(told, on=[".place", ".level"], how="left", nulls_equal=True, maintain_order="left")
