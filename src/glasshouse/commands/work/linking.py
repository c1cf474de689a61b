"""Which files does a re-identification read, and are they fit for it?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from glasshouse.assess.one_solution import one_solution
from glasshouse.assess.people.facts import (
    ATTACKER,
    DEFINED,
    ID,
    MODAL,
    PROPORTIONAL,
    PUBLISHED,
    TRUTH,
    VARIED,
    Together,
    features_of,
)
from glasshouse.assess.people.leaving_out import HOUSEHOLD, ROW
from glasshouse.assess.variability import NUMBERS, WORDS, inhabited
from glasshouse.attack.people.reidentify import Features, Ints
from glasshouse.engine.folder import read_manifest
from glasshouse.errors import InputError
from glasshouse.files.frames import open_source
from glasshouse.files.records import RecordFile, level_matrix, open_records
from glasshouse.files.units import Stream, by_unit, side_by_side
from glasshouse.scenarios.load import Scenario

RECORDS, PLACES = "records.parquet", "places.parquet"
HELD = 250_000  # rows of each file in memory at once
TAKEN_NAMES = (TRUTH, PUBLISHED, MODAL, PROPORTIONAL)


@dataclass(frozen=True)
class Attacked:
    """A file to attack, by name; `folder` if a reconstruction wrote it."""

    name: str
    path: Path
    folder: Path | None

    @property
    def told(self) -> dict[str, object] | None:
        """What the reconstruction says of itself."""
        return read_manifest(self.folder) if self.folder else None

    @property
    def scenario(self) -> str | None:
        """The scenario that the reconstruction was made with."""
        parameters = (self.told or {}).get("parameters")
        return str(parameters["scenario"]) if isinstance(parameters, dict) else None

    @property
    def doubts(self) -> list[str]:
        """What must be known of a reconstruction that is not whole."""
        told = self.told or {}
        counts = told.get("counts")
        refused = len(counts.get("refused", {})) if isinstance(counts, dict) else 0
        if refused:
            return [
                f"warning: {self.name}: {refused:,} units were left out when it was rebuilt; nobody is linked there"
            ]
        if told and not told.get("complete"):
            return [f"warning: {self.name}: the clock stopped part of it; the same reconstruct command does the rest"]
        return []


def attacked(name: str, path: Path) -> Attacked:
    """A reconstruction or a record file to attack; without a name, the first is called by the tables it used."""
    if path.is_dir():
        told = read_manifest(path)
        if told is None or told.get("command") != "reconstruct" or not (path / RECORDS).is_file():
            raise InputError(f"{path}: no finished reconstruction there; expected the --out folder of reconstruct")
        if not name:
            level = told.get("counts", {}).get("level")
            name = "rHDF_bt" if level != _place_of(path) else "rHDF_b"
        return Attacked(_checked(name), path / RECORDS, path)
    if not path.exists():
        raise InputError(f"{path}: there is no such folder or file; expected the --out folder of reconstruct")
    if not name:
        raise InputError(f"{path} is a file; give it a name to go by, as in protected={path}")
    return Attacked(_checked(name), path, None)


def _place_of(folder: Path) -> str:
    """Where records live, by the name of the first column of the reconstruction's places."""
    return open_source(folder / "places.parquet").columns[0]


def listed(name: str, path: Path) -> tuple[str, Path]:
    """A list of people; without a name, it goes by the file's."""
    return _checked(name or path.name.split(".")[0]), path


def _checked(name: str) -> str:
    if not name or len(name) > 40 or not all(letter.isalnum() or letter in "_-" for letter in name):
        raise InputError(
            f"'{name[:40]}' cannot be a name; expected letters, digits, - and _, as in swapped=FILE "
            "(a path with = in it needs a name before it)"
        )
    if name in TAKEN_NAMES:
        raise InputError(f"the name {name} is taken; known names of ours: {', '.join(TAKEN_NAMES)}; choose another")
    return name


class Files:
    """The files of a run, opened and checked, and then read side by side."""

    def __init__(
        self, scenario: Scenario, truth: Path, published: Path, data: Sequence[Attacked],
        attackers: Sequence[tuple[str, Path]], vary: Path | None,
    ) -> None:  # fmt: skip
        self.scenario, self.features = scenario, features_of(scenario)
        everything = [attribute.name for attribute in scenario.schema.attributes]
        self.truth = open_records(truth, scenario, everything)
        _need_id(self.truth, "the truth", "nobody can be confirmed")
        self.records: dict[str, RecordFile] = {PUBLISHED: open_records(published, scenario, everything)}
        self.records |= {file.name: open_records(file.path, scenario, everything) for file in data}
        self.lists = {name: open_records(path, scenario, self.features.known) for name, path in attackers}
        for name, file in self.lists.items():
            _need_id(file, f"the list {name}", "nobody is named")
        self.vary = vary / PLACES if vary else None
        if self.vary is not None:
            _check_places(self.vary, scenario)
        self.nations: dict[str, Ints] = {}
        self.units: set[str] = set()
        self.rows: dict[str, int] = {}

    @property
    def files(self) -> dict[str, RecordFile]:
        return {TRUTH: self.truth, **self.records, **{ATTACKER + name: file for name, file in self.lists.items()}}

    def read(self, near: Path, watch: Callable[[float], None], *, households: bool = False) -> Iterator[Together]:
        """The units one by one. All files are read through first: nations and units are known at the first unit.

        With `households` also whose household a record is of, and which row of the truth it is.
        """
        self.nations = {name: np.zeros(self.features.cells, np.int64) for name in (TRUTH, PUBLISHED)}
        self.rows = {}
        flag = DEFINED if DEFINED in self.truth.source.columns else None
        homes = {name: _household(file) if households else () for name, file in self.files.items()}
        wanted: dict[str, Iterator[pl.DataFrame]] = {
            TRUTH: self.truth.frames(flag=flag, names=(ID, *homes[TRUTH])),
            PUBLISHED: self.records[PUBLISHED].frames(names=homes[PUBLISHED]),
        }
        wanted |= {name: file.frames() for name, file in self.records.items() if name != PUBLISHED}
        wanted |= {ATTACKER + name: file.frames(names=(ID,)) for name, file in self.lists.items()}
        if self.vary is not None:
            wanted[VARIED] = _proved(self.vary, self.scenario)
        streams = {}
        for number, (name, frames) in enumerate(wanted.items()):
            stream = by_unit(self._tapped(name, frames), self.scenario.geography, near, limit=HELD)
            first = next(stream, None)  # reads the file to its end
            if first is None and name != VARIED:
                raise InputError(f"{self._path(name).name}: there are no records in it; expected at least one")
            streams[name] = _again(first, stream)
            watch((number + 1) / len(wanted))
        for code, frames_of in side_by_side(streams):
            yield Together(code, frames_of)

    def _tapped(self, name: str, frames: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        """Counts what goes by."""
        width = self.scenario.geography.lengths[self.scenario.geography.unit]
        for frame in frames:
            self.units.update(frame["geoid"].str.head(width).unique())
            before = self.rows.get(name, 0)
            self.rows[name] = before + frame.height
            if name in self.nations:
                cells = _cells(frame, self.scenario, self.features)
                self.nations[name] += np.bincount(cells, minlength=self.features.cells)
            yield frame.with_row_index(ROW, before) if name == TRUTH else frame

    def _path(self, name: str) -> Path:
        return self.files[name].source.path


def _cells(frame: pl.DataFrame, scenario: Scenario, features: Features) -> Ints:
    return features.cell(features.levels(level_matrix(frame, scenario.schema)))


def _again(first: tuple[str, pl.DataFrame] | None, rest: Stream) -> Stream:
    if first is not None:
        yield first
        yield from rest


def _household(file: RecordFile) -> tuple[str, ...]:
    return (HOUSEHOLD,) if HOUSEHOLD in file.source.columns else ()


def _need_id(file: RecordFile, what: str, consequence: str) -> None:
    if ID not in file.source.columns:
        raise InputError(
            f"{file.source.path.name}: column '{ID}' is missing; {what} must say who is who, else {consequence}; "
            f"found: {file.source.told}"
        )


def _check_places(path: Path, scenario: Scenario) -> None:
    """Refuse places that a table would refuse at the end."""
    source, geography = open_source(path), scenario.geography
    named = {geography.place: "place", geography.unit: "area"}
    columns = [*named, *(name for name in (*WORDS, *NUMBERS) if name not in named.values())]
    for column in columns:
        if column not in source.columns:
            raise InputError(
                f"{path}: column '{column}' is missing; expected the {PLACES} of glasshouse vary; found: {source.told}"
            )
    chunks = [chunk.frame for chunk in source.chunks(columns)]
    if not chunks:
        raise InputError(f"{path}: there are no places in it; expected the {PLACES} of glasshouse vary")
    places = pl.concat(chunks).rename(named)
    for name in NUMBERS:
        if not places[name].dtype.is_integer():
            raise InputError(f"{path}: column '{name}' does not hold whole numbers; expected those of glasshouse vary")
    if places["population"].sum():
        inhabited(places)


def _proved(path: Path, scenario: Scenario) -> Iterator[pl.DataFrame]:
    """The places of vary: how many records they have, and whether they are proved to have one solution."""
    place = scenario.geography.place
    for chunk in open_source(path).chunks((place, "population", "distance_upper", "proof")):
        geoid, population = pl.col(place).alias("geoid"), pl.col("population").cast(pl.Int64)
        yield chunk.frame.select(geoid, population, one_solution().alias("zero"))
