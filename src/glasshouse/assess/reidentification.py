"""How many people could be identified? Putative and confirmed, by group and block size, each beside guessing.

Counts are made unit by unit and added up; besides the counts themselves their squares and products by place are added,
so that the interval of a rate can allow for neighbours who share their fate (`rates.clustered`).

Groups: `all` records of the attacker's list; `matching`, those that the truth has with that person, place, sex and age
(the paper's Table S7, panel B); `modal`, `nonmodal` and `nonmodal-unique` persons, by the truth. The same again in
places proved to have one solution: `zero-solvar-...`. The population of the first two is the list's, that of the others
the data-defined persons of the truth, whoever lists them (the paper's Table S8).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.assess.rates import clustered
from glasshouse.assess.variability import ALL, BANDS
from glasshouse.attack.reidentify import EXACTLY, Flags, Ints, Links

GROUPS = ("all", "matching", "modal", "nonmodal", "nonmodal-unique")
ZERO_SOLVAR = "zero-solvar-"
GUESSERS = ("MDG", "PRG")
TOGETHER = 64  # units added up at once

COUNTS = pl.Schema(
    {
        "data": pl.String, "attacker": pl.String, "group": pl.String, "band": pl.String, "population": pl.Int64,
        "putative": pl.Int64, "confirmed": pl.Int64, "putative_exact": pl.Int64, "confirmed_exact": pl.Int64,
        "places": pl.Int64, "putative_squared": pl.Int64, "product": pl.Int64, "confirmed_squared": pl.Int64,
    }
)  # fmt: skip
AGREEMENT = pl.Schema(
    {
        "data": pl.String, "with": pl.String, "group": pl.String, "band": pl.String, "population": pl.Int64,
        "exact": pl.Int64, "binned": pl.Int64, "places": pl.Int64, "population_squared": pl.Int64,
        "exact_product": pl.Int64, "exact_squared": pl.Int64, "binned_product": pl.Int64, "binned_squared": pl.Int64,
    }
)  # fmt: skip
REACH = pl.Schema(
    {
        "band": pl.String, "persons": pl.Int64, "modal": pl.Float64, "proportional": pl.Float64,
        "modal_without": pl.Float64, "proportional_without": pl.Float64,
    }
)  # fmt: skip


@dataclass(frozen=True)
class Blocks:
    """The places of a unit: their size band by the truth (-1 for none there), and which have one solution, proved."""

    band: Ints
    zero: Flags | None  # None: not known

    @classmethod
    def of(cls, population: Ints, zero: Flags | None) -> Blocks:
        return cls(np.searchsorted(list(BANDS.values()), population, side="right") - 1, zero)

    def __len__(self) -> int:
        return len(self.band)

    def by_band(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sums over all places, then over the places of each band; `values` has a row for each place."""
        rows = [values.sum(axis=0), *(values[self.band == number].sum(axis=0) for number in range(len(BANDS)))]
        return np.array(rows)

    def kinds(self) -> Iterable[tuple[str, Flags]]:
        """All places, and those with one solution."""
        yield "", np.ones(len(self), np.bool_)
        if self.zero is not None:
            yield ZERO_SOLVAR, self.zero


@dataclass(frozen=True)
class Standing:
    """Of each record of a list: does the truth have it, and is its person modal, and unique? By `group`."""

    place: NDArray[Any]
    groups: Mapping[str, Flags]
    population: Mapping[str, Ints]  # by place


def count(
    data: str, attacker: str, blocks: Blocks, standing: Standing, links: Links, right: tuple[Flags, Flags]
) -> pl.DataFrame:
    """Putative and confirmed re-identifications of one file with one list, in every group and band."""
    named, numbers = [], []
    events = (links.how > 0, right[0], links.how == EXACTLY, right[1])
    for group in GROUPS:
        inside = standing.groups[group]
        found = [np.bincount(standing.place[event & inside], minlength=len(blocks)) for event in events]
        n, k = found[0], found[1]
        by_place = np.column_stack([standing.population[group], *found, n > 0, n * n, n * k, k * k])
        for kind, some in blocks.kinds():
            for band, row in zip((ALL, *BANDS), blocks.by_band(by_place * some[:, None]), strict=True):
                named.append((data, attacker, kind + group, band))
                numbers.append(row)
    return _frame(COUNTS, named, numbers)


def count_agreement(
    data: str, other: str, blocks: Blocks, population: Ints, place: NDArray[Any], links: Links
) -> pl.DataFrame:
    """How many records of two files are the same, by band; `place` is that of the right file's records."""
    named, numbers = [], []
    exact = np.bincount(place[links.how == EXACTLY], minlength=len(blocks))
    binned = np.bincount(place[links.how > 0], minlength=len(blocks))
    n = population
    columns = [n, exact, binned, n > 0, n * n, n * exact, exact * exact, n * binned, binned * binned]
    by_place = np.column_stack(columns)
    for kind, some in blocks.kinds():
        for band, row in zip((ALL, *BANDS), blocks.by_band(by_place * some[:, None]), strict=True):
            named.append((data, other, kind + "all", band))
            numbers.append(row)
    return _frame(AGREEMENT, named, numbers)


def count_reach(blocks: Blocks, population: Ints, reach: Iterable[NDArray[np.float64]]) -> pl.DataFrame:
    """What guessers can reach among all persons, by band."""
    rows = blocks.by_band(np.column_stack([population, *reach]))
    return _frame(REACH, [(band,) for band in (ALL, *BANDS)], list(rows))


def _frame(schema: pl.Schema, named: Sequence[tuple[str, ...]], numbers: list[NDArray[Any]]) -> pl.DataFrame:
    words = list(schema)[: len(named[0])]
    left = pl.DataFrame(named, schema=words, orient="row")
    right = pl.DataFrame(np.array(numbers), schema=list(schema)[len(words) :])
    return pl.concat([left, right], how="horizontal").cast(schema)


def added(frames: Iterable[pl.DataFrame], schema: pl.Schema) -> pl.DataFrame:
    """Counts of many units added up, rows in the order of their first appearance."""
    words = [name for name, kind in schema.items() if kind == pl.String]
    total = pl.DataFrame(schema=schema)
    for some in _batched(frames, TOGETHER):
        total = pl.concat([total, *some]).group_by(words, maintain_order=True).sum().select(list(schema))
    return total


def _batched(frames: Iterable[pl.DataFrame], size: int) -> Iterator[list[pl.DataFrame]]:
    rest = iter(frames)
    while some := list(islice(rest, size)):
        yield some


def rates(counts: pl.DataFrame) -> pl.DataFrame:
    """Precision with its interval, beside the better of the two guessers for the same people.

    More is worse for the people. A file's rows without anybody in them are left out. Guessers have no baseline.
    """
    some = counts.filter((pl.col("population") > 0) | (pl.col("putative") > 0))
    low, high = clustered(*(some[name].to_numpy() for name in (
        "confirmed", "putative", "confirmed_squared", "product", "putative_squared", "places")))  # fmt: skip
    any_ = pl.col("putative") > 0
    rated = some.with_columns(
        pl.when(any_).then(pl.col("confirmed") / pl.col("putative")).alias("precision"),
        pl.when(any_).then(pl.Series(low)).alias("low"),
        pl.when(any_).then(pl.Series(high)).alias("high"),
    )
    where = ["attacker", "group", "band"]
    guess = (
        rated.filter(pl.col("data").is_in(GUESSERS) & pl.col("precision").is_not_null())
        .sort("precision", descending=True, maintain_order=True)
        .group_by(where, maintain_order=True)
        .agg(pl.col("precision").first().alias("baseline"), pl.col("data").first().alias("guesser"))
    )
    beside = pl.col("data").is_in(GUESSERS)
    return (
        rated.join(guess, on=where, how="left", maintain_order="left")
        .with_columns(pl.when(~beside).then(pl.col(name)).alias(name) for name in ("baseline", "guesser"))
        .select(
            "data",
            *where,
            "population",
            "putative",
            "confirmed",
            "precision",
            "low",
            "high",
            "baseline",
            "guesser",
            "putative_exact",
            "confirmed_exact",
        )
    )


def agreement_rates(counts: pl.DataFrame) -> pl.DataFrame:
    """Agreement with its intervals, beside that of records whose sensitive part was guessed (in bins)."""
    some = counts.filter(pl.col("population") > 0)
    columns = []
    for name in ("exact", "binned"):
        low, high = clustered(*(some[part].to_numpy() for part in (
            name, "population", f"{name}_squared", f"{name}_product", "population_squared", "places")))  # fmt: skip
        columns += [
            (pl.col(name) / pl.col("population")).alias(f"{name}_share"),
            pl.Series(f"{name}_low", low),
            pl.Series(f"{name}_high", high),
        ]
    rated = some.with_columns(columns)
    where = ["with", "group", "band"]
    guess = (
        rated.filter(pl.col("data").is_in(GUESSERS))
        .group_by(where, maintain_order=True)
        .agg(pl.col("binned_share").max().alias("baseline"))
    )
    kept = ["data", *where, "population", "exact", "binned"]
    kept += [f"{name}_{end}" for name in ("exact", "binned") for end in ("share", "low", "high")]
    joined = rated.join(guess, on=where, how="left", maintain_order="left")
    beside = pl.when(~pl.col("data").is_in(GUESSERS)).then(pl.col("baseline")).alias("baseline")
    return joined.with_columns(beside).select(*kept, "baseline")


def reach_rates(counts: pl.DataFrame) -> pl.DataFrame:
    """The shares of all persons that guessers can be right about: upper bounds, and with each person left out."""
    names = ("modal", "proportional", "modal_without", "proportional_without")
    some = counts.filter(pl.col("persons") > 0)
    return some.with_columns(pl.col(name) / pl.col("persons") for name in names)
