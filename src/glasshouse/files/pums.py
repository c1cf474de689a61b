"""How do the Census Bureau's public-use files of the American Community Survey become persons of a sample?

Persons and households are two CSV files, joined by SERIALNO; a file of persons alone is enough where it has the state.
A zip may hold both, and several of each. Who lives in group quarters is no household and is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.errors import InputError
from glasshouse.files.archive import SafeZip, member_source
from glasshouse.files.coded_columns import whole_numbers
from glasshouse.files.frames import Chunk, Source

Ints = NDArray[np.int64]

PERSON = {"state": pl.String, "household": pl.String, "age": pl.Int64, "race": pl.Int64, "hispanic": pl.Int64,
          "head": pl.Boolean, "weight": pl.Int64}  # fmt: skip
_SERIAL, _AGE, _RACE, _ORIGIN, _PERSONS = "serialno", "agep", "rac1p", "hisp", "np"
_STATES = ("st", "state")  # the second since 2023
_WEIGHTS = ("pwgtp", "wgtp")  # of persons, of households
_RACES = np.array([-1, 0, 1, 2, 2, 2, 3, 4, 5, 6])  # RAC1P: American Indians and Alaska Natives have three codes
_ORIGINS, _MOST_PERSONS, _MOST_WEIGHT = 24, 99, 10**6


@dataclass(frozen=True)
class _Relation:
    """How a vintage says who the householder is, and who lives in group quarters."""

    column: str
    householder: int
    quarters: tuple[int, int]


_RELATIONS = (_Relation("relshipp", 20, (37, 38)), _Relation("relp", 0, (16, 17)))  # since 2019; 2010 to 2018
_TOLD = {
    _AGE: "AGEP (age)", _RACE: "RAC1P (race)", _ORIGIN: "HISP (Hispanic origin)",
}  # fmt: skip


def is_public_use(source: Source) -> bool:
    """Does a file name its households as the public-use files do?"""
    return _SERIAL in _names(source)


def sources_of(path: Path) -> tuple[Source, ...]:
    """The files of columns in a zip."""
    with SafeZip(path) as archive:
        members = [name for name in archive.names if name.lower().endswith(".csv")]
    if not members:
        raise InputError(f"{path.name}: holds no .csv file; expected public-use files of persons and households")
    return tuple(member_source(path, name) for name in members)


def persons_of(sources: Sequence[Source]) -> Iterator[pl.DataFrame]:
    """The persons who live in households, piece by piece, with the columns of `PERSON`."""
    persons = [source for source in sources if is_public_use(source) and _AGE in _names(source)]
    homes = [source for source in sources if is_public_use(source) and _AGE not in _names(source)]
    if not persons:
        raise InputError(
            f"{sources[0].path.name}: households without their persons; expected a public-use file of persons (with "
            "SERIALNO, AGEP, ...), or a zip with both"
        )
    households = _Households.read(homes)
    for source in persons:
        file = _Persons.of(source, households)
        for chunk in source.chunks(file.columns):
            yield file.read(chunk)
    households.refuse_missing()


class _Households:
    """What the files of households say: the state, the weight and the number of persons of each, and who was met."""

    def __init__(self, frame: pl.DataFrame, name: str) -> None:
        self.frame, self.name = frame, name
        self.met: list[pl.DataFrame] = []

    @staticmethod
    def read(sources: Sequence[Source]) -> _Households:
        found = []
        for source in sources:
            names = _names(source)
            wanted = [name for name in (_SERIAL, *_STATES, _WEIGHTS[1], _PERSONS) if name in names]
            for chunk in source.chunks([names[name] for name in wanted]):
                columns = {"household": _text(chunk, names[_SERIAL])}
                if state := next((name for name in _STATES if name in names), None):
                    columns["state"] = _state(source, chunk, names[state])
                for name, column, most in ((_WEIGHTS[1], "weight", _MOST_WEIGHT), (_PERSONS, "persons", _MOST_PERSONS)):
                    if name in names:
                        columns[column] = pl.Series(whole_numbers(source, chunk, names[name], most))
                found.append(pl.DataFrame(columns))
        frame = pl.concat(found, how="diagonal") if found else pl.DataFrame(schema={"household": pl.String})
        twice = frame.filter(pl.col("household").is_duplicated())
        if twice.height:
            raise InputError(f"{sources[0].path.name}: household '{twice[0, 0]}' stands in it twice; expected once")
        return _Households(frame, sources[0].path.name if sources else "")

    def beside(self, source: Source, chunk: Chunk, household: pl.Series, column: str) -> pl.Series:
        """What is said of the household of each person; a person of no household is refused."""
        both = household.to_frame("household").join(self.frame, on="household", how="left", maintain_order="left")
        if both[column].null_count():
            at = int(both[column].is_null().arg_max() or 0)
            raise InputError(
                f"{source.where(chunk.first + at)}: SERIALNO is '{household[at][:20]}', which {self.name} has not, or "
                "without its state or weight; expected the household of every person"
            )
        return both[column]

    def count(self, household: pl.Series) -> None:
        if "persons" in self.frame.columns:
            self.met.append(household.value_counts(name="found").rename({household.name: "household"}))

    def refuse_missing(self) -> None:
        """Refuse a household of which not all persons were met: it would be taken for a smaller one."""
        if not self.met:
            return
        met = pl.concat(self.met).group_by("household").agg(pl.col("found").sum().cast(pl.Int64))
        wrong = self.frame.join(met, on="household").filter(pl.col("persons") != pl.col("found")).sort("household")
        if wrong.height:
            one = wrong.row(0, named=True)
            raise InputError(
                f"{self.name}: household '{one['household'][:20]}' has NP {one['persons']} and {one['found']} persons "
                "in the file of persons; expected all persons of each household"
            )


@dataclass(frozen=True)
class _Persons:
    """A file of persons: the file's own names of its columns, and how it tells relations."""

    source: Source
    names: Mapping[str, str]
    relation: _Relation
    state: str | None  # its own column, if it has one
    households: _Households

    @staticmethod
    def of(source: Source, households: _Households) -> _Persons:
        names = _names(source)
        relation = next((one for one in _RELATIONS if one.column in names), None)
        state = next((name for name in _STATES if name in names), None)
        missing = [told for name, told in _TOLD.items() if name not in names]
        if relation is None:
            missing.append("RELSHIPP or RELP (relationship to the householder)")
        if state is None and "state" not in households.frame.columns:
            missing.append("ST or STATE (there, or in a file of households)")
        if missing or relation is None:
            raise InputError(
                f"{source.path.name}: a public-use file of persons without {', '.join(missing)}; expected all columns "
                "of the file as the office publishes it; download it again, or give a sample with the columns "
                "household, state, age, the six races, hispanic and relation"
            )
        return _Persons(source, names, relation, state, households)

    @property
    def columns(self) -> list[str]:
        wanted = (
            _SERIAL,
            _AGE,
            _RACE,
            _ORIGIN,
            self.relation.column,
            _WEIGHTS[0],
            *([self.state] if self.state else []),
        )
        return [self.names[name] for name in wanted if name in self.names]

    def read(self, chunk: Chunk) -> pl.DataFrame:
        """The persons of a piece who live in households."""
        household = _text(chunk, self.names[_SERIAL])
        if household.null_count():
            at = int(household.is_null().arg_max() or 0)
            raise InputError(f"{self.source.where(chunk.first + at)}: SERIALNO is empty; expected that of a household")
        relation = self._number(chunk, self.relation.column, self.relation.quarters[1])
        race, origin = self._number(chunk, _RACE, len(_RACES) - 1, 1), self._number(chunk, _ORIGIN, _ORIGINS, 1)
        head = relation == self.relation.householder
        if self.state:
            state = _state(self.source, chunk, self.names[self.state])
        else:
            state = self.households.beside(self.source, chunk, household, "state")
        frame = pl.DataFrame(
            {
                "state": state, "household": household, "age": self._number(chunk, _AGE, 130), "race": _RACES[race],
                "hispanic": (origin > 1).astype(np.int64), "head": head, "weight": self._weight(chunk, household),
            },
            schema=PERSON,
        )  # fmt: skip
        housed = frame.filter(pl.Series(~np.isin(relation, self.relation.quarters)))
        self.households.count(housed["household"])
        return housed

    def _weight(self, chunk: Chunk, household: pl.Series) -> Ints:
        """How many households each stands for: the weight of its householder, or its own; else 1."""
        if _WEIGHTS[0] in self.names:
            return self._number(chunk, _WEIGHTS[0], _MOST_WEIGHT)
        if "weight" in self.households.frame.columns:
            return self.households.beside(self.source, chunk, household, "weight").to_numpy()
        return np.ones(chunk.frame.height, np.int64)

    def _number(self, chunk: Chunk, name: str, most: int, least: int = 0) -> Ints:
        found = whole_numbers(self.source, chunk, self.names[name], most)
        if (found < least).any():
            where = self.source.where(chunk.first + int((found < least).argmax()))
            raise InputError(
                f"{where}: column '{self.names[name]}' is '0'; expected a whole number from {least} to {most}"
            )
        return found


def _names(source: Source) -> dict[str, str]:
    """The file's own names of its columns, by their names in small letters; the first of two that differ in case."""
    return {name.lower(): name for name in reversed(source.columns)}


def _text(chunk: Chunk, name: str) -> pl.Series:
    text = chunk.frame[name].cast(pl.String).str.strip_chars()
    return text.set(text == "", None)


def _state(source: Source, chunk: Chunk, name: str) -> pl.Series:
    """The code of a state, whose leading zero a program may have taken away."""
    return pl.Series(whole_numbers(source, chunk, name, 99)).cast(pl.String).str.zfill(2)
