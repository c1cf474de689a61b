"""How well are places and households with violations found? Precision, recall and match rate, beside guessing.

A place is *putative* when it is certain from the numbers that somebody breaks the rule. Households are matched through
a key: the kinds of household that break the rule in the likely data sets of a place, the most frequent first, are
looked up in a list of households; who has one of the first k kinds is putative (section 4.1 and appendix G of Steed,
Qing and Wu). The first k are counted within each place, or in one list over all places.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.assess.one_solution import one_solution
from glasshouse.assess.rates import wilson
from glasshouse.program.integer import Proof

ALL, DETECTED = "others", "detected"  # places
LIKELY, SAMPLING = "likely data sets", "sample of truth"  # attackers
EVERYBODY, UNIQUES = "all", "unique"  # households
UNRANKED = 0  # the rank of what no attacker names
ALONE = ("unique", "unique_subsidised", "unique_violations")  # households that nobody else is like
NARROW = 0.05  # of the households of a place
ONE, FEW = "one solution", f"less than {NARROW:.0%} can differ"
Values = NDArray[np.int64]


@dataclass(frozen=True)
class Ranking:
    """Values of a key, the most frequent among those who break the rule first."""

    values: Values
    weight: NDArray[np.int64]


def ranked(values: Values, weight: NDArray[np.int64]) -> Ranking:
    """The different values with some weight, the heaviest first; of equals, the smaller values."""
    found, inverse = np.unique(values, axis=0, return_inverse=True)
    total = np.zeros(len(found), np.int64)
    np.add.at(total, inverse.reshape(-1), weight)
    order = np.argsort(-total, kind="stable")
    order = order[total[order] > 0]
    return Ranking(found[order], total[order])


def counted(
    values: Values, broken: NDArray[np.bool_], ranking: Ranking | None, sets: int = 1
) -> Iterator[tuple[int | float, ...]]:
    """By rank: households of a place with that value, those who break the rule; and of those alone with their value.

    Rank 0 has all households whose value is not ranked. Ranks that nobody has are told too: they match nobody. Last
    stands how often the value breaks the rule in each of so many data sets.
    """
    names = {} if ranking is None else {row.tobytes(): rank for rank, row in enumerate(ranking.values, 1)}
    found, inverse, size = np.unique(values, axis=0, return_inverse=True, return_counts=True)
    inverse = inverse.reshape(-1)
    rank = np.array([names.get(row.tobytes(), UNRANKED) for row in np.ascontiguousarray(found)], np.int64)
    alone = size == 1
    violations = np.bincount(inverse, weights=broken, minlength=len(found)).astype(np.int64)
    for number in range(len(names) + 1):
        mine = rank == number
        often = 0 if ranking is None or number == UNRANKED else int(ranking.weight[number - 1])
        yield (number, int(size[mine].sum()), int(violations[mine].sum()), int(alone[mine].sum()),
               int(violations[mine & alone].sum()), often / max(sets, 1))  # fmt: skip


def alone(
    group: NDArray[np.int64], counts: NDArray[np.int64], subsidised: NDArray[np.bool_], broken: NDArray[np.bool_]
) -> tuple[int, int, int]:
    """Households of a data set that nobody else has the group of: all, the subsidised, those who break the rule."""
    names, of = np.unique(group, return_inverse=True)
    size = np.zeros(len(names), np.int64)
    np.add.at(size, of.reshape(-1), counts)
    single = size[of.reshape(-1)] == 1
    return int(single.sum()), int((single & subsidised).sum()), int((single & broken).sum())


@dataclass(frozen=True)
class Settled:
    """Households of places in which all data sets agree on a measure's attributes, or on nearly all of them."""

    over: str  # the measure
    band: str  # one solution, or less than so much can be otherwise
    blocks: int
    households: int
    subsidised: int
    violations: int
    unique: int
    unique_subsidised: int
    unique_violations: int


def measures_of(places: pl.DataFrame) -> list[str]:
    """The columns of solution variability: those that have an upper bound beside them."""
    upper = "_upper"
    return [name.removesuffix(upper) for name in places.columns if name.startswith("solvar") and name.endswith(upper)]


def settled_groups(places: pl.DataFrame, measures: Sequence[str]) -> list[Settled]:
    """The groups of section 3.2: places with one solution, and the others in which less than 5% can be otherwise.

    Bounds are proved; households are those of the most likely data set. In a place with one solution of a measure they
    are those of every data set, in the measure's attributes.
    """
    found = []
    for name in measures:
        proof, upper = f"{name}_proof", f"{name}_upper"
        only = one_solution(upper, proof)
        nearly = ~only & (pl.col(upper) < NARROW) & (pl.col(proof) != Proof.UNDECIDED)
        for band, chosen in ((ONE, only), (FEW, nearly)):
            rows = places.drop_nulls(name).filter(chosen)
            columns = ["households", "subsidised", "rebuilt_violations", *(f"{name}_{who}" for who in ALONE)]
            found.append(Settled(name, band, rows.height, *(int(rows[column].sum()) for column in columns)))
    return found


@dataclass(frozen=True)
class Detection:
    """Table 1: how many places are putative, and how often that is right; beside choosing places at random."""

    blocks: int
    with_violations: int
    putative: int
    confirmed: int
    contradictions: int
    decided: int
    precision: Mapping[str, float] | None
    recall: Mapping[str, float] | None
    precision_by_chance: float | None
    recall_by_chance: float | None


def of_places(places: pl.DataFrame) -> Detection:
    """How many places are putative, and how often that is right."""
    decided = places.filter(pl.col("answer") != "contradiction")
    putative = pl.col("answer") == "certain"
    true = pl.col("violations_true") > 0
    numbers = places.select(
        pl.len().alias("blocks"),
        true.sum().alias("with_violations"),
        putative.sum().alias("putative"),
        (putative & true).sum().alias("confirmed"),
        (pl.col("answer") == "contradiction").sum().alias("contradictions"),
    ).row(0, named=True)
    return Detection(
        **numbers,
        decided=decided.height,
        precision=_rate(numbers["confirmed"], numbers["putative"]),
        recall=_rate(numbers["confirmed"], numbers["with_violations"]),
        precision_by_chance=_share(numbers["with_violations"], numbers["blocks"]),
        recall_by_chance=_share(numbers["putative"], numbers["blocks"]),
    )


def _rate(hits: int, total: int) -> dict[str, float] | None:
    if not total:
        return None
    low, high = wilson(hits, total)
    return {"value": hits / total, "low": float(low), "high": float(high)}


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


RATES = {
    "attacker": pl.String, "blocks": pl.String, "key": pl.String, "households": pl.String, "k": pl.Int64,
    "population": pl.Int64, "violations": pl.Int64, "putative": pl.Int64, "confirmed": pl.Int64,
    "precision": pl.Float64, "low": pl.Float64, "high": pl.Float64, "recall": pl.Float64, "match_rate": pl.Float64,
    "baseline": pl.Float64, "all_putative": pl.Boolean,
}  # fmt: skip


def of_households(matches: pl.LazyFrame, *, over_all: bool = False) -> pl.DataFrame:
    """Precision, recall and match rate at every k, by attacker, key and households; the baseline is chance.

    The reconstructing attacker looks in detected places only; the one with a sample of the truth once there, and once
    everywhere. Recall is always of all violations. The interval takes households as independent. By default k kinds are
    tried in each place. With `over_all` there is one list of kinds of all places, the most frequent first, and k of it
    are tried: only such k as leave out no kind that is as frequent as one taken in.
    """
    found = []
    for attacker, where in ((LIKELY, (DETECTED,)), (SAMPLING, (DETECTED,)), (SAMPLING, (DETECTED, ALL))):
        rows = matches.filter(pl.col("attacker") == attacker)
        for households, size, broken in ((EVERYBODY, "households", "violations"),
                                         (UNIQUES, "unique", "unique_violations")):  # fmt: skip
            named = "detected" if where == (DETECTED,) else "all"
            words = {"attacker": attacker, "blocks": named, "households": households}
            rated = _at_every_k(rows, where, size, broken, over_all=over_all)
            found.append(rated.with_columns(pl.lit(word).alias(name) for name, word in words.items()))
    frame = pl.concat(found)
    low, high = wilson(frame["confirmed"].to_numpy(), frame["putative"].to_numpy())
    return frame.with_columns(low=pl.Series(low), high=pl.Series(high)).select(list(RATES)).cast(pl.Schema(RATES))


def _at_every_k(
    rows: pl.LazyFrame, where: tuple[str, ...], size: str, broken: str, *, over_all: bool
) -> pl.DataFrame:  # fmt: skip
    by = "frequency" if over_all else "rank"
    whole = rows.group_by("key").agg(pl.col(broken).sum().alias("violations"))
    inside = rows.filter(pl.col("blocks").is_in(list(where)))
    people = inside.group_by("key").agg(pl.col(size).sum().alias("population"), pl.col(broken).sum().alias("there"))
    ranks = (
        inside.filter(pl.col("rank") > UNRANKED)
        .group_by("key", by)
        .agg(
            pl.col(size).sum().alias("putative"),
            pl.col(broken).sum().alias("confirmed"),
            (pl.col(broken) > 0).sum().alias("hits"),
            pl.len().alias("named"),
        )
        .sort("key", by, descending=[False, over_all])
        .with_columns(pl.col("putative", "confirmed", "hits", "named").cum_sum().over("key"))
    )
    share = pl.col("confirmed") / pl.col("putative")
    return (
        ranks.join(whole, on="key")
        .join(people, on="key")
        .with_columns(
            k=pl.col("named" if over_all else "rank").cast(pl.Int64),
            precision=pl.when(pl.col("putative") > 0).then(share),
            recall=pl.when(pl.col("violations") > 0).then(pl.col("confirmed") / pl.col("violations")),
            match_rate=pl.col("hits") / pl.col("named"),
            baseline=pl.when(pl.col("population") > 0).then(pl.col("there") / pl.col("population")),
            all_putative=pl.col("named") == pl.col("named").max().over("key"),
        )
        .sort("key", "k")
        .collect()
        .drop(by, "there", "hits", "named")
    )


def told(rates: pl.DataFrame) -> list[dict[str, object]]:
    """What all putative households together give, by attacker, key and households; and `first`, with k = 1 alone."""
    same = ["attacker", "blocks", "key", "households"]
    numbers = ["putative", "confirmed", "precision", "low", "high", "recall", "match_rate"]
    first = rates.filter(pl.col("k") == 1).select(*same, pl.struct(numbers).alias("first"))
    return rates.filter("all_putative").drop("all_putative").join(first, on=same, how="left").to_dicts()
