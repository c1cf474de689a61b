"""How many people could be identified? Putative and confirmed, by group and size of place, each beside guessing.

Counts are made unit by unit and added up; besides the counts themselves their squares and products by place are added,
so that the interval of a rate can allow for neighbours who share their fate (`rates.clustered`).

Groups: `all` records of the attacker's list; `matching`, those that the truth has with that person, place, sex and age
(the paper's Table S7, panel B); `modal`, `nonmodal` and `nonmodal-unique` persons, by the truth: unique in bins, and
`nonmodal-unique-exact` with exactly what people are known by, as the paper's schema of single years has it. The same in
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

from glasshouse.assess.people.groups import EVERYBODY, GROUPS
from glasshouse.assess.rates import Floats, clustered, difference
from glasshouse.attack.people.reidentify import EXACTLY, Flags, Ints, Links
from glasshouse.model.bands import ALL, BANDS, band_of

ZERO_SOLVAR = "zero-solvar-"
GUESSERS = ("MDG", "PRG")
TOGETHER = 64  # units added up at once

# Sums over places of products: k confirmed, n putative, e expected to be confirmed; of a guesser e and n.
PRODUCTS = ("n_n", "k_n", "k_k", "e_n", "e_e")
CROSSED = tuple(f"{ours}_{theirs}_{guesser}" for guesser in GUESSERS for ours in "kn" for theirs in "en")
COUNTS = pl.Schema(
    dict.fromkeys(("data", "attacker", "group", "band"), pl.String)
    | dict.fromkeys(("population", "putative", "confirmed", "putative_exact", "confirmed_exact", "places"), pl.Int64)
    | dict.fromkeys(("expected", *PRODUCTS, *CROSSED), pl.Float64)
)
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
UNIQUES = pl.Schema(
    {"band": pl.String}
    | dict.fromkeys(
        ("persons", "unique", "unique_exact", "defined", "defined_unique", "defined_unique_exact"), pl.Int64
    )
)  # fmt: skip


@dataclass(frozen=True)
class Places:
    """The places of a unit: their size band by the truth (-1 for none there), and which have one solution, proved."""

    band: Ints
    zero: Flags | None  # None: not known

    @classmethod
    def of(cls, population: Ints, zero: Flags | None) -> Places:
        return cls(band_of(population), zero)

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


@dataclass(frozen=True)
class Answer:
    """What one file, or guesser, says of a list: who is linked, who is right, and with which chance each would be."""

    links: Links
    right: tuple[Flags, Flags]  # in bins, exactly
    chance: Floats

    @classmethod
    def of(cls, links: Links, right: tuple[Flags, Flags]) -> Answer:
        """An answer that leaves nothing to chance."""
        return cls(links, right, right[0].astype(np.float64))


def count(
    data: str, attacker: str, places: Places, standing: Standing, answer: Answer, guesses: Mapping[str, Answer]
) -> pl.DataFrame:
    """Putative and confirmed re-identifications of one file with one list, in every group and band.

    `guesses` are the answers of the guessers, to be compared with.
    """
    named, numbers = [], []
    events = (answer.links.how > 0, answer.right[0], answer.links.how == EXACTLY, answer.right[1])
    for group in GROUPS:
        inside = standing.groups[group]
        found = [np.bincount(standing.place[event & inside], minlength=len(places)) for event in events]
        n, k, e = found[0], found[1], _expected(standing, places, answer, inside)
        crossed = []
        for guesser in GUESSERS:
            other = guesses[guesser]
            theirs = np.bincount(standing.place[(other.links.how > 0) & inside], minlength=len(places))
            hoped = _expected(standing, places, other, inside)
            crossed += [k * hoped, k * theirs, n * hoped, n * theirs]
        products = [n * n, k * n, k * k, e * n, e * e, *crossed]
        by_place = np.column_stack([standing.population[group], *found, n > 0, e, *products])
        for kind, some in places.kinds():
            for band, row in zip((ALL, *BANDS), places.by_band(by_place * some[:, None]), strict=True):
                named.append((data, attacker, kind + group, band))
                numbers.append(row)
    return _frame(COUNTS, named, numbers)


def _expected(standing: Standing, places: Places, answer: Answer, inside: Flags) -> Floats:
    """How many are expected to be confirmed, by place."""
    return np.bincount(standing.place[inside], answer.chance[inside], len(places)).astype(np.float64)


def count_agreement(data: str, other: str, places: Places, place: NDArray[Any], links: Links) -> pl.DataFrame:
    """How many records of the right file, whose places are given, have their like in the left one; by band."""
    named, numbers = [], []
    exact = np.bincount(place[links.how == EXACTLY], minlength=len(places))
    binned = np.bincount(place[links.how > 0], minlength=len(places))
    n = np.bincount(place, minlength=len(places))
    columns = [n, exact, binned, n > 0, n * n, n * exact, exact * exact, n * binned, binned * binned]
    by_place = np.column_stack(columns)
    for kind, some in places.kinds():
        for band, row in zip((ALL, *BANDS), places.by_band(by_place * some[:, None]), strict=True):
            named.append((data, other, kind + EVERYBODY, band))
            numbers.append(row)
    return _frame(AGREEMENT, named, numbers)


def count_reach(places: Places, population: Ints, reach: Iterable[NDArray[np.float64]]) -> pl.DataFrame:
    """What guessers can reach among all persons, by band."""
    rows = places.by_band(np.column_stack([population, *reach]))
    return _frame(REACH, [(band,) for band in (ALL, *BANDS)], list(rows))


def count_uniques(places: Places, place: NDArray[Any], defined: Flags, alone: tuple[Flags, Flags]) -> pl.DataFrame:
    """How many persons of the truth are unique in their place, in bins and exactly: of all, and of the data-defined."""
    columns = [np.ones(len(place), np.bool_), *alone, defined, *(defined & some for some in alone)]
    by_place = np.column_stack([np.bincount(place[some], minlength=len(places)) for some in columns])
    return _frame(UNIQUES, [(band,) for band in (ALL, *BANDS)], list(places.by_band(by_place)))


def unique_shares(counts: pl.DataFrame) -> pl.DataFrame:
    """The shares of all persons who are unique: in bins and exactly; and who are data-defined and unique (Table S5)."""
    some = counts.filter(pl.col("persons") > 0)
    parts = ("unique", "unique_exact", "defined_unique", "defined_unique_exact")
    return some.with_columns((pl.col(name) / pl.col("persons")).alias(f"{name}_share") for name in parts)


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

    More is worse for the people. `baseline` is the precision that the guesser has on average; `advantage` is how much
    more often the file is right than that, with an interval that knows that both speak of the same people. A file's
    rows without anybody in them are left out. Guessers have no baseline.
    """
    some = counts.filter((pl.col("population") > 0) | (pl.col("putative") > 0))
    any_ = pl.col("putative") > 0
    low, high = clustered(*(some[name].to_numpy() for name in ("confirmed", "putative", "k_k", "k_n", "n_n", "places")))
    rated = some.with_columns(
        pl.when(any_).then(pl.col("confirmed") / pl.col("putative")).alias("precision"),
        pl.when(any_).then(pl.Series(low)).alias("low"),
        pl.when(any_).then(pl.Series(high)).alias("high"),
    )
    where = ["attacker", "group", "band"]
    theirs = ("expected", "putative", "e_e", "e_n", "n_n", "places")
    guess = (
        rated.filter(pl.col("data").is_in(GUESSERS) & any_)
        .with_columns((pl.col("expected") / pl.col("putative")).alias("baseline"))
        .sort("baseline", descending=True, maintain_order=True)
        .group_by(where, maintain_order=True)
        .agg(
            pl.col("baseline").first(),
            pl.col("data").first().alias("guesser"),
            *(pl.col(name).first().alias(f"guess_{name}") for name in theirs),
        )
    )
    joined = rated.join(guess, on=where, how="left", maintain_order="left")
    beside = ~pl.col("data").is_in(GUESSERS)
    joined = joined.with_columns(_advantage(joined)).with_columns(
        pl.when(beside).then(pl.col(name)).alias(name)
        for name in ("baseline", "guesser", "advantage", "advantage_low", "advantage_high")
    )
    return joined.select(
        "data", *where, "population", "putative", "confirmed", "precision", "low", "high", "baseline", "guesser",
        "advantage", "advantage_low", "advantage_high", "putative_exact", "confirmed_exact",
    )  # fmt: skip


def _advantage(joined: pl.DataFrame) -> list[pl.Series]:
    """How much more often than the better guesser; null where either says nothing."""
    told = joined.select((pl.col("putative") > 0) & pl.col("guesser").is_not_null()).to_series()
    names = ("confirmed", "putative", "k_k", "k_n", "n_n", "places")
    ours = [joined[name].to_numpy().astype(np.float64) for name in names]
    theirs = [joined[f"guess_{name}"].fill_null(0).to_numpy().astype(np.float64) for name in
              ("expected", "putative", "e_e", "e_n", "n_n", "places")]  # fmt: skip
    second = (joined["guesser"] == GUESSERS[1]).fill_null(False).to_numpy()
    crossed = [
        np.where(second, *(joined[f"{pair}_{guesser}"].to_numpy() for guesser in reversed(GUESSERS)))
        for pair in ("k_e", "k_n", "n_e", "n_n")
    ]
    found = difference(ours, theirs, crossed)
    ends = ("advantage", "advantage_low", "advantage_high")
    return [pl.Series(name, np.where(told.to_numpy(), value, np.nan)).fill_nan(None) for name, value in
            zip(ends, found, strict=True)]  # fmt: skip


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
