"""Which kinds of household does a public-use sample have, and how often? Persons in, households by state out.

A row is a person: `household` (its number in the sample), `county` or `state`, `age`, the six races and `hispanic` as
0 and 1, and `relation`, which says who the householder is. Public-use files of the office are read as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.errors import InputError
from glasshouse.files.frames import Chunk, Source, need_columns, open_source
from glasshouse.files.pums import PERSON, is_public_use, persons_of, sources_of

RACES = ("white", "black", "aian", "asian", "nhopi", "sor")
SEVERAL = len(RACES)  # the number of those of two or more races
PLACES = ("state", "county")
HOUSEHOLDER = "householder"
ADULT = 18
STATE = 2  # digits
GROUPS = 2 * (len(RACES) + 1)  # not Hispanic by race, then Hispanic


@dataclass(frozen=True)
class StateSample:
    """The different kinds of household of a state: members, householder, who lives there, and how many there are."""

    persons: NDArray[np.int64]
    children: NDArray[np.int64]
    householder: NDArray[np.int64]  # the group of the householder
    present: NDArray[np.bool_]  # a column for each group: somebody of it lives there
    households: NDArray[np.int64]


def group_of(hispanic: NDArray[np.int64], race: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of a group, from 0 and 1 for Hispanic and a race from 0 (white alone) to 6 (several)."""
    return hispanic * (len(RACES) + 1) + race


def read_sample(path: Path) -> Mapping[str, StateSample]:
    """The households of each state in a sample of persons."""
    gathered = [_by_household(_numbers(persons)) for persons in _people(path)]
    if not gathered:
        raise InputError(f"{path.name}: no persons; expected a row for each person of the sample")
    homes = _together(pl.concat(gathered))
    headless = homes.filter(pl.col("householder") < 0)
    if headless.height:
        raise InputError(
            f"{path.name}: {headless.height:,} households have no person whose relation is '{HOUSEHOLDER}'; expected "
            "one in each"
        )
    return {str(state): _kinds(rows) for (state,), rows in homes.group_by("state", maintain_order=True)}


def _people(path: Path) -> Iterator[pl.DataFrame]:
    """The persons of a sample, piece by piece, however it is spelled."""
    if path.suffix.lower() == ".zip":
        yield from persons_of(sources_of(path))
        return
    _refuse_fixed_width(path)
    source = open_source(path)
    if is_public_use(source):
        yield from persons_of([source])
        return
    place = next((name for name in PLACES if name in source.columns), None)
    need_columns(source, ("household", "age", *RACES, "hispanic", "relation"), "a sample of persons")
    if place is None:
        raise InputError(f"{path.name}: column 'state' or 'county' is missing; found: {source.told}")
    wanted = ["household", place, "age", *RACES, "hispanic", "relation"]
    for chunk in source.chunks(wanted):
        yield _ours(source, chunk, place)


def _refuse_fixed_width(path: Path) -> None:
    """The 10% sample of the 2010 Census has lines of fixed width, whose positions are nowhere declared to us."""
    if path.is_file() and path.suffix.lower() in (".txt", ".dat"):
        with path.open("rb") as file:
            if re.match(rb"[HP][0-9A-Za-z ]{40}", file.read(64)):
                raise InputError(
                    f"{path.name}: lines of fixed width, as in the public-use sample of the 2010 Census; expected CSV "
                    "or Parquet; write a row for each person with the columns household, state, age, the six races, "
                    "hispanic and relation, by the office's record layout"
                )


def _ours(source: Source, chunk: Chunk, place: str) -> pl.DataFrame:
    """Persons in our own columns."""
    frame = chunk.frame
    flags = {name: _whole(source, chunk, name, 1) for name in (*RACES, "hispanic")}
    several = np.sum([flags[name] for name in RACES], axis=0)
    if (several == 0).any():
        raise InputError(f"{source.where(chunk.first + int((several == 0).argmax()))}: a person of no race")
    one = np.argmax([flags[name] for name in RACES], axis=0)
    columns = {
        "state": frame[place].cast(pl.String).str.strip_chars().str.head(STATE),
        "household": frame["household"].cast(pl.String),
        "age": _whole(source, chunk, "age", 130),
        "race": np.where(several > 1, SEVERAL, one),
        "hispanic": flags["hispanic"],
        "head": (frame["relation"].cast(pl.String) == HOUSEHOLDER).fill_null(False),
        "weight": np.ones(frame.height, np.int64),
    }
    return pl.DataFrame(columns, schema=PERSON)


def _numbers(persons: pl.DataFrame) -> pl.DataFrame:
    """Persons as numbers: state, household, child, the bit of their group, and a householder's group and weight."""
    group = group_of(persons["hispanic"].to_numpy(), persons["race"].to_numpy())
    head = persons["head"].to_numpy()
    return persons.select(
        "state",
        "household",
        (pl.col("age") < ADULT).cast(pl.Int64).alias("children"),
        pl.Series("present", np.int64(1) << group),
        pl.Series("householder", np.where(head, group, -1)),
        pl.Series("weight", np.where(head, persons["weight"].to_numpy(), 0)),
    )


def _whole(source: Source, chunk: Chunk, name: str, most: int) -> NDArray[np.int64]:
    given = chunk.frame[name]
    numbers = given.cast(pl.Int64, strict=False)
    bad = numbers.is_null() | (numbers < 0) | (numbers > most)
    if given.dtype.is_float():
        bad |= (given != given.round()).fill_null(True)
    if bad.any():
        at = int(bad.arg_max() or 0)
        raise InputError(f"{source.where(chunk.first + at)}: {name}: expected a whole number from 0 to {most}")
    return numbers.to_numpy()


def _by_household(persons: pl.DataFrame) -> pl.DataFrame:
    """Households of one piece of the file."""
    return persons.group_by("state", "household").agg(
        pl.len().cast(pl.Int64).alias("persons"),
        pl.col("children").sum(),
        pl.col("present").bitwise_or(),
        pl.col("householder").max(),
        pl.col("weight").max(),
    )


def _together(pieces: pl.DataFrame) -> pl.DataFrame:
    """Households whose persons stand in several pieces put together, then counted by kind, each by its weight."""
    homes = pieces.group_by("state", "household").agg(
        pl.col("persons").sum(), pl.col("children").sum(), pl.col("present").bitwise_or(),
        pl.col("householder").max(), pl.col("weight").max(),
    )  # fmt: skip
    kind = ["state", "persons", "children", "householder", "present"]
    counted = homes.group_by(kind).agg(pl.col("weight").sum().alias("households")).sort(kind)
    return counted.filter((pl.col("households") > 0) | (pl.col("householder") < 0))


def _kinds(rows: pl.DataFrame) -> StateSample:
    bits = rows["present"].to_numpy()
    present = (bits[:, None] >> np.arange(GROUPS)) & 1 == 1
    persons, children, householder, households = (
        rows[name].to_numpy() for name in ("persons", "children", "householder", "households")
    )
    return StateSample(persons, children, householder, present, households)
