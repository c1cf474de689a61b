"""How does an office pack its tables? A geographic header and segments of numbers, joined on a record number."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.errors import InputError, unknown
from glasshouse.files.archive import Chunk, SafeZip
from glasshouse.files.output import private_file, private_folder
from glasshouse.files.rooms import passing_folder
from glasshouse.scenarios.load import Archive, Official, Scenario
from glasshouse.scenarios.spelling import spell, spell_lines

# The header's fields: first position (from 1) and length where widths are fixed, index where they are delimited.
FIXED_LENGTH, FIXED = 500, {
    "FILEID": (1, 6), "STUSAB": (7, 2), "SUMLEV": (9, 3), "GEOCOMP": (12, 2), "CHARITER": (14, 3), "CIFSN": (17, 2),
    "LOGRECNO": (19, 7), "STATE": (28, 2), "COUNTY": (30, 3), "TRACT": (55, 6), "BLKGRP": (61, 1), "BLOCK": (62, 4),
    "POP100": (319, 9),
}  # fmt: skip
DELIMITED_FIELDS, DELIMITED = 97, {
    "FILEID": 0, "STUSAB": 1, "SUMLEV": 2, "GEOVAR": 3, "GEOCOMP": 4, "CHARITER": 5, "CIFSN": 6, "LOGRECNO": 7,
    "GEOID": 8, "GEOCODE": 9, "STATE": 12, "COUNTY": 14, "TRACT": 32, "BLKGRP": 33, "BLOCK": 34, "POP100": 90,
}  # fmt: skip
NAMES = {index: name for name, index in DELIMITED.items()}
# A block group is the first digit of its blocks, so BLKGRP is no part of a block's code.
PARTS = {
    "state": ("STATE",),
    "county": ("STATE", "COUNTY"),
    "tract": ("STATE", "COUNTY", "TRACT"),
    "block_group": ("STATE", "COUNTY", "TRACT", "BLKGRP"),
    "block": ("STATE", "COUNTY", "TRACT", "BLOCK"),
}
LINKS, LOGRECNO = 5, 4  # a segment's line begins with FILEID, STUSAB, CHARITER, CIFSN, LOGRECNO

POSTAL = {
    "01": "AL", "02": "AK", "04": "AZ", "05": "AR", "06": "CA", "08": "CO", "09": "CT", "10": "DE", "11": "DC",
    "12": "FL", "13": "GA", "15": "HI", "16": "ID", "17": "IL", "18": "IN", "19": "IA", "20": "KS", "21": "KY",
    "22": "LA", "23": "ME", "24": "MD", "25": "MA", "26": "MI", "27": "MN", "28": "MS", "29": "MO", "30": "MT",
    "31": "NE", "32": "NV", "33": "NH", "34": "NJ", "35": "NM", "36": "NY", "37": "NC", "38": "ND", "39": "OH",
    "40": "OK", "41": "OR", "42": "PA", "44": "RI", "45": "SC", "46": "SD", "47": "TN", "48": "TX", "49": "UT",
    "50": "VT", "51": "VA", "53": "WA", "54": "WV", "55": "WI", "56": "WY", "72": "PR",
}  # fmt: skip


@dataclass(frozen=True)
class Segment:
    """One file of numbers: its official tables in order, hence the variable in each field after the links."""

    number: int
    tables: tuple[Official, ...]

    @property
    def fields(self) -> int:
        return LINKS + sum(official.lines for official in self.tables)

    def variables(self, pattern: str) -> list[tuple[int, str, str]]:
        """The field number (from 0), table and variable of every count."""
        names = [
            (official.table, name)
            for official in self.tables
            for name in spell_lines(pattern, official.table, range(1, official.lines + 1))
        ]
        return [(index, *name) for index, name in enumerate(names, LINKS)]


def segments_of(scenario: Scenario) -> tuple[Segment, ...]:
    """The segments that the scenario's catalogue describes."""
    numbers = sorted({official.segment for official in scenario.catalogue})
    return tuple(Segment(n, tuple(o for o in scenario.catalogue if o.segment == n)) for n in numbers)


@dataclass(frozen=True)
class Header:
    """The geographic header: the level (-1 if not wanted) and code of every logical record, by rising number."""

    levels: tuple[str, ...]
    logrecno: NDArray[np.int64]
    level: NDArray[np.int8]
    geoid: pl.Series

    def frame(self, places: NDArray[np.int64], variables: pl.Series, values: NDArray[np.int64]) -> pl.DataFrame:
        """Rows of the answer."""
        level = pl.Series(self.levels, dtype=pl.String).gather(self.level[places])
        geoid = self.geoid.gather(places)
        return pl.DataFrame({"level": level, "geoid": geoid, "variable": variables, "value": values})


def archive_of(path: Path, scenario: Scenario) -> Archive | None:
    """Which of the scenario's archives a file is; None for a file that is no zip by name nor by its first bytes."""
    if path.suffix.lower() != ".zip" and path.is_file():
        with path.open("rb") as file:
            if file.read(2) != b"PK":
                return None
    with SafeZip(path) as source:
        return _recognise(source, scenario)[0]


def read_rows(
    path: Path, scenario: Scenario, *, levels: Collection[str] | None = None, tables: Collection[str] | None = None
) -> Iterator[pl.DataFrame]:
    """Read the published counts of an archive as rows of level, geoid, variable and value, a piece at a time.

    Zeros are left out, but every variable published at a level has at least one row there.
    """
    chosen, known = set(scenario.by_table if tables is None else tables), {entry.table for entry in scenario.catalogue}
    if chosen - known:
        raise unknown("table", min(chosen - known), known)
    with SafeZip(path) as source:
        archive, prefix, members = _recognise(source, scenario)
        wanted = {scenario.geography.known(level) for level in (archive.sumlev.values() if levels is None else levels)}
        header = _read_header(source, members[_member(prefix, "geo", archive)], scenario, archive, wanted)
        for segment in segments_of(scenario):
            names = {index: name for index, table, name in segment.variables(scenario.patterns[0]) if table in chosen}
            member = members.get(_member(prefix, f"{segment.number:05d}", archive))
            if names and member:
                reader = _SegmentReader(source, member, segment, names, header)
                for chunk in source.lines(member):
                    yield reader.rows(chunk, archive.delimiter)
                yield reader.zeros()


def _member(prefix: str, part: str, archive: Archive) -> str:
    """The name of a file of the archive, in lower case, as members are looked up."""
    return f"{prefix}{part}{archive.suffix}".lower()


def _recognise(source: SafeZip, scenario: Scenario) -> tuple[Archive, str, dict[str, str]]:
    """The archive's description, its state prefix, and its members by lower-case base name."""
    members = {PurePosixPath(name).name.lower(): name for name in source.names}
    found = [
        (archive, match[1])
        for archive in scenario.archives
        for name in members
        if (match := re.fullmatch(rf"([a-z]{{2}})geo{re.escape(archive.suffix.lower())}", name))
    ]
    if len(found) != 1:
        expected = " or ".join(f"<st>geo{archive.suffix}" for archive in scenario.archives) or "no archive at all"
        some = ", ".join(sorted(members)[:5]) or "no files"
        raise InputError(
            f"{source.path}: holds {len(found)} geographic headers of scenario {scenario.name} (its files: {some}); "
            f"expected exactly one, {expected}; give one state's archive as the office publishes it"
        )
    return (*found[0], members)


def _read_header(source: SafeZip, member: str, scenario: Scenario, archive: Archive, wanted: set[str]) -> Header:
    levels = tuple(dict.fromkeys(level for level in archive.sumlev.values() if level in wanted))
    frames = []
    for chunk in source.lines(member):
        if archive.geography == "fixed-width":
            text = _slices(chunk).with_columns(GEOCODE=_code(archive))
        else:
            text = chunk.fields(archive.delimiter, DELIMITED_FIELDS, NAMES)
        frames.append(_places(chunk, text, scenario, archive, levels))
    if not frames:
        raise source.error(member, "an empty file", "a line for each place")
    frame = pl.concat(frames).sort("LOGRECNO", maintain_order=True)
    for columns in (["LOGRECNO"], ["level", "geoid"]):
        twice = frame.filter(pl.col("level") >= 0 if "level" in columns else True).select(columns)
        twice = twice.filter(twice.is_duplicated())
        if len(twice):
            what = f"LOGRECNO {twice[0, 0]}" if len(columns) == 1 else f"{levels[twice[0, 0]]} {twice[0, 1]}"
            raise source.error(member, f"{what} more than once", "every place once")
    return Header(levels, frame["LOGRECNO"].to_numpy(), frame["level"].to_numpy(), frame["geoid"])


def _slices(chunk: Chunk) -> pl.DataFrame:
    """The fields of a fixed-width header as text."""
    # Not `splitlines`: some characters of Latin-1 count as line ends there.
    lines = pl.Series("line", chunk.lines.decode("latin-1").removesuffix("\n").split("\n"))
    short = (lines.str.len_chars() < FIXED_LENGTH).to_numpy()
    if short.any():
        row = int(np.argmax(short))
        raise chunk.error(row, f"{len(lines[row])} characters", f"{FIXED_LENGTH} characters")
    return lines.to_frame().select(
        pl.col("line").str.slice(start - 1, length).alias(name) for name, (start, length) in FIXED.items()
    )


def _code(archive: Archive) -> pl.Expr:
    """The code of a place from the parts that a fixed-width header gives at its level."""
    return pl.coalesce(
        pl.when(pl.col("SUMLEV") == sumlev).then(pl.concat_str(_parts(level)))
        for sumlev, level in archive.sumlev.items()
    )


def _parts(level: str) -> tuple[str, ...]:
    if level not in PARTS:
        raise unknown("level of a geographic header", level, PARTS)
    return PARTS[level]


def _places(
    chunk: Chunk, text: pl.DataFrame, scenario: Scenario, archive: Archive, levels: tuple[str, ...]
) -> pl.DataFrame:
    """The number, level and code of each record; components of areas (urban, rural) are not places."""
    numbers = chunk.numbers(text.select(pl.col("LOGRECNO").fill_null("")))
    index = {sumlev: levels.index(level) for sumlev, level in archive.sumlev.items() if level in levels}
    whole = pl.col("GEOCOMP").fill_null("").str.strip_chars().is_in(["", "00"])
    level = pl.col("SUMLEV").replace_strict(index, default=-1, return_dtype=pl.Int8)
    frame = text.select(
        numbers["LOGRECNO"], level=pl.when(whole).then(level).otherwise(-1), geoid=pl.col("GEOCODE").fill_null("")
    ).with_columns(geoid=pl.when(pl.col("level") >= 0).then("geoid"))
    for row, (number, code) in enumerate(zip(frame["level"], frame["geoid"], strict=True)):
        fault = scenario.geography.fault(code, levels[number]) if number >= 0 else None
        if fault:
            raise chunk.error(row, f"{levels[number]} '{code}', which {fault}", "a well-formed code")
    return frame


class _SegmentReader:
    """Reads one segment piece by piece, and remembers which places and variables it has met."""

    def __init__(
        self, source: SafeZip, member: str, segment: Segment, names: Mapping[int, str], header: Header
    ) -> None:
        self.source, self.member, self.segment, self.names, self.header = source, member, segment, names, header
        self.variables = pl.Series(list(names.values()), dtype=pl.String)
        self.met = np.zeros(len(header.logrecno), dtype=bool)
        self.filled = np.zeros((len(header.levels), len(names)), dtype=np.int64)
        self.nonzero = np.zeros(self.filled.shape, dtype=bool)

    def rows(self, chunk: Chunk, delimiter: str) -> pl.DataFrame:
        """The counts of a chunk that are not zero."""
        text = chunk.fields(delimiter, self.segment.fields, {LOGRECNO: "LOGRECNO", **self.names})
        places = self._meet(chunk, text.select(pl.col("LOGRECNO").fill_null("")))
        wanted = self.header.level[places] >= 0
        places = places[wanted]
        counts = chunk.numbers(text.drop("LOGRECNO").filter(wanted), np.flatnonzero(wanted))
        values = counts.fill_null(0).to_numpy()
        filled, level = counts.select(pl.all().is_not_null()).to_numpy(), self.header.level[places]
        for index in range(len(self.header.levels)):
            self.filled[index] += filled[level == index].sum(axis=0)
            self.nonzero[index] |= (values[level == index] > 0).any(axis=0)
        row, column = np.nonzero(values)
        return self.header.frame(places[row], self.variables.gather(column), values[row, column])

    def zeros(self) -> pl.DataFrame:
        """Once all is read: a zero for each variable that is zero at every place of a level, where it is published."""
        first = np.zeros(len(self.header.levels), dtype=np.int64)
        for index, level in enumerate(self.header.levels):
            places = np.flatnonzero(self.header.level == index)
            missing = places[~self.met[places]]
            if 0 < len(missing) < len(places):
                found = f"no line for LOGRECNO {self.header.logrecno[missing[0]]:07d}, a {level}"
                raise self.source.error(self.member, found, f"all {len(places):,} places of level {level}, or none")
            partly = np.flatnonzero((self.filled[index] > 0) & (self.filled[index] < len(places)))
            if len(partly):
                blank = len(places) - self.filled[index][partly[0]]
                found = f"{self.variables[int(partly[0])]} blank at {blank:,} of {len(places):,} places"
                raise self.source.error(self.member, found, f"a number at all places of level {level}, or at none")
            first[index] = places[0] if len(places) else 0
        level_index, column = np.nonzero((self.filled > 0) & ~self.nonzero)
        return self.header.frame(first[level_index], self.variables.gather(column), np.zeros(len(column), np.int64))

    def _meet(self, chunk: Chunk, text: pl.DataFrame) -> NDArray[np.int64]:
        """The header's rows for the record numbers of a chunk, each met for the first time."""
        numbers = chunk.numbers(text)["LOGRECNO"].to_numpy()
        known = self.header.logrecno
        places = np.minimum(np.searchsorted(known, numbers), len(known) - 1)
        strange = known[places] != numbers
        if strange.any():
            row = int(np.argmax(strange))
            raise chunk.error(row, f"LOGRECNO {numbers[row]:07d}", "a number of the geographic header")
        again = self.met[places] | pl.Series(places).is_first_distinct().not_().to_numpy()
        if again.any():
            row = int(np.argmax(again))
            raise chunk.error(row, f"LOGRECNO {numbers[row]:07d} for the second time", "every place once")
        self.met[places] = True
        return places


# Writing


def write_archive(
    path: Path, scenario: Scenario, archive: Archive, places: Iterable[tuple[str, str, Mapping[str, int]]]
) -> None:
    """Write an archive from (level, code, counts that are not zero), in the order given; all of it or nothing.

    A table is published at its own level, and wherever one of its variables is given.
    """
    if path.is_dir():
        raise InputError(f"{path} is a directory; expected the name of a file to write")
    with ExitStack() as stack:
        stack.enter_context(private_folder(path.parent))
        folder = stack.enter_context(passing_folder(path.parent))  # only its owner may look inside
        draft = _Draft(folder / "places", scenario, archive)
        draft.spool(places)
        with private_file(path) as stream, zipfile.ZipFile(stream, "w") as target:
            for member in draft.write(folder):
                # A fixed date and mode, so that equal tables make equal archives.
                info = zipfile.ZipInfo(member.name, date_time=(1980, 1, 1, 0, 0, 0))
                info.compress_type, info.create_system, info.external_attr = zipfile.ZIP_DEFLATED, 3, 0o600 << 16
                info.file_size = member.stat().st_size
                with member.open("rb") as lines, target.open(info, "w") as packed:
                    shutil.copyfileobj(lines, packed, 2**20)


class _Draft:
    """An archive in the making: places are spooled first, since what is published is known only after the last."""

    def __init__(self, places: Path, scenario: Scenario, archive: Archive) -> None:
        self.places, self.scenario, self.archive = places, scenario, archive
        self.segments = [(segment, segment.variables(scenario.patterns[0])) for segment in segments_of(scenario)]
        self.field = {
            variable: (segment.number, index, table)
            for segment, variables in self.segments
            for index, table, variable in variables
            if table in scenario.by_table
        }
        self.sumlev = {level: sumlev for sumlev, level in archive.sumlev.items()}
        self.population = spell(scenario.patterns[0], "P1", 1)
        self.published: dict[str, set[str]] = {}
        self.states: set[str] = set()

    def spool(self, places: Iterable[tuple[str, str, Mapping[str, int]]]) -> None:
        """Check the places and note them down, with their states and what is published at their levels."""
        with self.places.open("w", encoding="ascii") as file:
            for number, (level, geoid, values) in enumerate(places, 1):
                self._check(number, level, geoid, values)
                if level not in self.published:
                    self.published[level] = {table.name for table in self.scenario.tables if table.level == level}
                self.published[level].update(self.field[variable][2] for variable in values)
                self.states.add(POSTAL[geoid[:2]])
                file.write(json.dumps([level, geoid, {name: int(value) for name, value in values.items()}]) + "\n")
        if not self.states:
            raise InputError("found no place; an archive needs at least one; give tables that are not empty")

    def _check(self, number: int, level: str, geoid: str, values: Mapping[str, int]) -> None:
        if level not in self.sumlev:
            raise unknown("level of the archive", level, self.sumlev)
        fault = self.scenario.geography.fault(geoid, level)
        if fault:
            raise InputError(f"{level} '{geoid}' {fault}")
        if geoid[:2] not in POSTAL:
            raise InputError(f"{level} '{geoid}': no state has code {geoid[:2]}; expected a FIPS code such as 01 or 72")
        if number > 9_999_999:
            raise InputError("an archive numbers its places with seven digits; found more; write one archive per state")
        for variable, value in values.items():
            if variable not in self.field:
                raise InputError(f"{level} '{geoid}': variable {variable} is of no table of {self.scenario.name}")
            if value < 0:
                raise InputError(f"{level} '{geoid}': {variable} is {value}; expected a count, 0 or more")

    def write(self, folder: Path) -> list[Path]:
        """Write the header and the segments, and say where they are."""
        prefix = min(self.states).lower() if len(self.states) == 1 else "us"
        blank = {level: self._blank(tables) for level, tables in self.published.items()}
        numbers = sorted({number for rows in blank.values() for number in rows})
        paths = [folder / f"{prefix}{part}{self.archive.suffix}" for part in ("geo", *(f"{n:05d}" for n in numbers))]
        with ExitStack() as stack:
            geo, *files = [stack.enter_context(path.open("w", encoding="latin-1", newline="\n")) for path in paths]
            segments = dict(zip(numbers, files, strict=True))
            for number, line in enumerate(stack.enter_context(self.places.open(encoding="ascii")), 1):
                level, geoid, values = json.loads(line)
                geo.write(self._header(number, level, geoid, values) + "\n")
                rows = {segment: row.copy() for segment, row in blank[level].items()}
                for variable, value in values.items():
                    segment, index, _ = self.field[variable]
                    rows[segment][index] = str(value)
                for segment, row in rows.items():
                    row[:LINKS] = [self.archive.fileid, POSTAL[geoid[:2]], "000", f"{segment:02d}", f"{number:07d}"]
                    segments[segment].write(self.archive.delimiter.join(row) + "\n")
        return paths

    def _blank(self, tables: set[str]) -> dict[int, list[str]]:
        """The line of a place with no records, in each segment that has some of the tables."""
        return {
            segment.number: [""] * LINKS + ["0" if table in tables else "" for _, table, _ in variables]
            for segment, variables in self.segments
            if any(official.table in tables for official in segment.tables)
        }

    def _header(self, number: int, level: str, geoid: str, values: Mapping[str, int]) -> str:
        sumlev, start = self.sumlev[level], 0
        fields = {"FILEID": self.archive.fileid, "STUSAB": POSTAL[geoid[:2]], "SUMLEV": sumlev, "GEOVAR": "00"}
        fields |= {"GEOCOMP": "00", "CHARITER": "000", "CIFSN": "00", "LOGRECNO": f"{number:07d}"}
        fields |= {"GEOID": f"{sumlev}0000US{geoid}", "GEOCODE": geoid}
        for part in _parts(level):
            fields[part] = geoid[start : start + FIXED[part][1]]
            start += len(fields[part])
        if "BLOCK" in fields:
            fields["BLKGRP"] = fields["BLOCK"][0]
        if "P1" in self.published[level]:
            fields["POP100"] = str(values.get(self.population, 0))
        if self.archive.geography == "fixed-width":
            return _fixed_line(fields)
        return self.archive.delimiter.join(fields.get(NAMES.get(index, ""), "") for index in range(DELIMITED_FIELDS))


def _fixed_line(fields: Mapping[str, str]) -> str:
    line = [" "] * FIXED_LENGTH
    for name, (start, length) in FIXED.items():
        text = fields.get(name, "")
        line[start - 1 : start - 1 + length] = text.rjust(length) if name == "POP100" else text.ljust(length)
    return "".join(line)
