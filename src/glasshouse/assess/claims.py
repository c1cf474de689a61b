"""What do verified claims add up to? Places where somebody is singled out, households represented, how surprising.

The input is what verify writes, the column of places called `place`. A claim says that exactly m households of a place
match a partial description of k columns; it is verified when that holds in every data set that fits the tables, and a
singleton when m is 1. `counts` has a row for every place, k and multiplicity (`singleton`, `all`), `places` one for
every place. Claims may be millions of rows: they are scanned and aggregated, never held. Places without households are
left out. Tables that are written call places blocks, as the contract has it.

More verified claims are worse for the households, and a claim that nobody would have guessed (a low baseline
probability) is worse than one that anybody would. `least` and `most` are proved bounds; `low` and `high` are the ends
of 95% intervals, which take places as independent draws and allow for the households or claims of one place sharing
their fate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from glasshouse.assess.claimed_places import (
    EVERY,
    GROUP,
    MULTIPLICITIES,
    SINGLETON,
    Dropped,
    Unique,
    by_columns,
    dropped,
    median_size,
    refuse_missing,
    sizes,
    unique,
)
from glasshouse.assess.rates import clustered
from glasshouse.errors import InputError
from glasshouse.program.integer import Proof

__all__ = ["EVERY", "SINGLETON", "SURPRISING", "Results", "summed_up"]

PRIOR = "p_"  # a column of claims: how probable it was, by records of the area whose level follows
TOP = 5  # sets of columns, as in the paper's table 6
SURPRISING = 0.02  # the paper's figure 3: most medians are below
_BETWEEN = "\n"  # no name of a column holds it


@dataclass(frozen=True)
class Results:
    """Everything that one run of verify adds up to; frames as the functions of this module give them."""

    by_columns: pl.DataFrame
    unique: Unique
    baselines: pl.DataFrame
    columns_used: pl.DataFrame
    combinations: pl.DataFrame
    sizes: pl.DataFrame
    median_size: float | None
    dropped: Dropped
    undecided: Undecided
    marginal_sets: pl.DataFrame | None = None


def summed_up(
    claims: pl.LazyFrame,
    counts: pl.DataFrame,
    places: pl.DataFrame,
    names: Sequence[str],
    sets: pl.DataFrame | None = None,
) -> Results:
    """Every result of a run; `names` are the columns that claims may name, in order, `sets` those of marginals."""
    found, named = by_columns(counts, places), _by_set(claims, names)
    asked = pl.col("multiplicity").is_in(found["multiplicity"].unique().to_list())  # or singletons only
    return Results(
        found,
        unique(places),
        baselines(claims).filter(asked),
        _columns_used(named, names).filter(asked),
        _combinations(named, names, TOP).filter(asked),
        sizes(places),
        median_size(places),
        dropped(places),
        undecided(claims),
        sets,
    )


@dataclass(frozen=True)
class Undecided:
    """How many claims could be neither proved nor refuted; of no claims the share is not known (None)."""

    claims: int
    undecided: int
    share: float | None
    low: float | None
    high: float | None


def undecided(claims: pl.LazyFrame) -> Undecided:
    """How many claims could be neither proved nor refuted."""
    rows = _claims(claims).filter(pl.col("m").is_null() | (pl.col("m") > 0))
    by_place = rows.group_by("place").agg(
        pl.len().cast(pl.Int64).alias("n"), pl.col("m").null_count().cast(pl.Int64).alias("k")
    )
    k, n = pl.col("k"), pl.col("n")
    sums = by_place.select(k.sum(), n.sum(), (k * k).sum().alias("kk"), (k * n).sum().alias("kn"),
                         (n * n).sum().alias("nn"), pl.len().alias("clusters")).collect().row(0)  # fmt: skip
    hits, total = sums[:2]
    low, high = (float(end) for end in clustered(*sums)) if total else (None, None)
    return Undecided(total, hits, hits / total if total else None, low, high)


def baselines(claims: pl.LazyFrame) -> pl.DataFrame:
    """How probable verified claims were to begin with (equation 4), by prior, multiplicity and k (figures 3 and 5).

    Quartiles are interpolated; whiskers end at the furthest claim within 1.5 times the distance of the quartiles, as
    in the paper. `surprising` is the share below 2%, with its interval. A prior that was not computed has no rows.
    """
    known = _verified(claims)
    present = known.collect_schema().names()
    priors = {column.removeprefix(PRIOR): column for column in present if column.startswith(PRIOR)}
    if not priors:
        raise InputError(f"the claims have no column of a prior, whose name begins with {PRIOR}; expected at least one")
    parts = [
        _baseline(known.select("place", "k", "single", pl.col(column).cast(pl.Float64).alias("p")), prior, multiplicity)
        for prior, column in priors.items()  # one by one: all at once would hold millions of rows four times
        for multiplicity in MULTIPLICITIES
    ]
    table = pl.concat(parts)
    if table.filter((pl.col("min") < 0) | (pl.col("max") > 1) | pl.col("median").is_nan()).height:
        raise InputError("a baseline probability of the claims is not between 0 and 1; was the file changed?")
    return table


def _baseline(rows: pl.LazyFrame, prior: str, multiplicity: str) -> pl.DataFrame:
    p = pl.col("p")
    rows = (rows.filter("single") if multiplicity == SINGLETON else rows).drop_nulls("p")
    below, above = p.quantile(0.25, "linear"), p.quantile(0.75, "linear")
    reach = 1.5 * (above - below)
    found = rows.group_by("k").agg(
        below.alias("q1"),
        p.median().alias("median"),
        above.alias("q3"),
        p.quantile(0.9, "linear").alias("p90"),
        p.min().alias("min"),
        p.max().alias("max"),
        # a quartile between two claims may lie beyond the furthest one within reach: the whisker then has no length
        pl.min_horizontal(p.filter(p >= below - reach).min(), below).alias("whisker_low"),
        pl.max_horizontal(p.filter(p <= above + reach).max(), above).alias("whisker_high"),
    )
    counted = (
        rows.group_by("place", "k")
        .agg(pl.len().cast(pl.Int64).alias("claims"), (p < SURPRISING).sum().cast(pl.Int64).alias("hits"))
        .collect()
    )
    shares = _shares(counted.drop("claims"), counted.drop("hits"), ["k"], ["k"])
    shares = shares.rename({"share": "surprising", "low": "surprising_low", "high": "surprising_high"})
    return found.collect().join(shares, on="k", how="inner").sort("k").select(
        pl.lit(prior).alias("prior"), pl.lit(multiplicity).alias("multiplicity"), "k", "claims", "min", "whisker_low",
        "q1", "median", "q3", "whisker_high", "p90", "max", "surprising", "surprising_low", "surprising_high",
    )  # fmt: skip


def columns_used(claims: pl.LazyFrame, names: Sequence[str]) -> pl.DataFrame:
    """By multiplicity and k, the share of verified claims that name each column (figure 4), also where it is none."""
    return _columns_used(_by_set(claims, names), names)


def combinations(claims: pl.LazyFrame, names: Sequence[str], top: int = TOP) -> pl.DataFrame:
    """By multiplicity and k, the sets of columns that most verified claims name (table 6): at most `top`.

    Of sets in equally many claims the one with the earlier columns comes first.
    """
    return _combinations(_by_set(claims, names), names, top)


def _columns_used(counted: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    n, hits = pl.col("claims"), [f"hits {at}" for at in range(len(names))]  # a name may be that of another column here
    named = (pl.when(pl.col("set") & (1 << at) != 0).then(n).otherwise(0) for at in range(len(names)))
    by_place = (
        counted.select("place", *GROUP, n, *(own.alias(name) for own, name in zip(named, hits, strict=True)))
        .group_by("place", *GROUP)
        .sum()
    )
    sums = by_place.group_by(GROUP).agg(
        n.sum(),
        (n * n).sum().alias("nn"),
        pl.len().alias("clusters"),
        *(pl.col(name).sum() for name in hits),
        *((pl.col(name) * pl.col(name)).sum().alias(f"kk {name}") for name in hits),
        *((pl.col(name) * n).sum().alias(f"kn {name}") for name in hits),
    )
    parts = [
        _with_interval(sums.rename({hit: "hits", f"kk {hit}": "kk", f"kn {hit}": "kn"})).select(
            *GROUP, pl.lit(name).alias("column"), "hits", "claims", "share", "low", "high", pl.lit(at).alias("at")
        )
        for at, (name, hit) in enumerate(zip(names, hits, strict=True))
    ]
    return pl.concat(parts).sort(*GROUP, "at", descending=[True, False, False]).drop("at")


def _combinations(counted: pl.DataFrame, names: Sequence[str], top: int) -> pl.DataFrame:
    hits = counted.rename({"claims": "hits"})
    found = _shares(hits, _total(counted), [*GROUP, "set"], GROUP)
    # the set as 0s and 1s from the first column on, so that text order is the order of columns
    told = {
        number: (
            [name for at, name in enumerate(names) if number >> at & 1],
            "".join("0" if number >> at & 1 else "1" for at in range(len(names))),
        )
        for number in found["set"].unique()
    }
    listed = found.with_columns(
        pl.Series("columns", [told[number][0] for number in found["set"]], pl.List(pl.String)),
        pl.Series("order", [told[number][1] for number in found["set"]], pl.String),
    ).sort(*GROUP, "hits", "order", descending=[True, False, True, False])
    rank = pl.int_range(1, pl.len() + 1).over(GROUP).alias("rank")
    listed = listed.with_columns(rank).filter(pl.col("rank") <= top)
    return listed.select(*GROUP, "rank", "columns", "hits", "claims", "share", "low", "high")


def _claims(claims: pl.LazyFrame) -> pl.LazyFrame:
    rows = claims.lazy()
    refuse_missing(rows.collect_schema().names(), "claims", ("place", "k", "columns", "m", "proof"))
    # what is not proved is not verified, whatever the file holds
    return rows.with_columns(pl.when(pl.col("proof") != Proof.UNDECIDED).then("m").alias("m"))


def _verified(claims: pl.LazyFrame) -> pl.LazyFrame:
    """The verified claims that represent somebody, and whether that is one household alone."""
    rows = _claims(claims).filter(pl.col("m") > 0)
    return rows.with_columns(pl.col("k").cast(pl.Int64), (pl.col("m") == 1).alias("single"))


def _by_set(claims: pl.LazyFrame, names: Sequence[str]) -> pl.DataFrame:
    """How many verified claims of each place name which set of columns; a set is a number with a bit for each name."""
    told = pl.col("columns").list.join(_BETWEEN).alias("told")
    counted = (
        _verified(claims)
        .select("place", "k", "single", told)
        .group_by("place", "k", "single", "told")
        .agg(pl.len().cast(pl.Int64).alias("claims"))
        .collect()
    )
    bit = {name: 1 << at for at, name in enumerate(names)}
    sets = {}
    for k, text in counted.select("k", "told").unique().iter_rows():
        named = set(text.split(_BETWEEN))
        if not named <= set(names) or len(named) != k:
            raise InputError(
                f"a claim names other columns than its k of {', '.join(names)}; are they of this scenario?"
            )
        sets[text] = sum(bit[name] for name in named)
    numbers = pl.DataFrame({"told": list(sets), "set": list(sets.values())}, {"told": pl.String, "set": pl.Int64})
    numbered = counted.join(numbers, on="told", how="inner")
    keys = ["place", "k", "set"]
    parts = {SINGLETON: numbered.filter("single"), EVERY: numbered}
    return pl.concat(
        part.group_by(keys).agg(pl.col("claims").sum()).with_columns(pl.lit(name).alias("multiplicity"))
        for name, part in parts.items()
    )


def _total(counted: pl.DataFrame) -> pl.DataFrame:
    return counted.group_by("place", *GROUP).agg(pl.col("claims").sum())


def _shares(hits: pl.DataFrame, totals: pl.DataFrame, keys: Sequence[str], of: Sequence[str]) -> pl.DataFrame:
    """Shares of claims by `keys` with intervals that allow for the claims of a place being alike.

    `hits` has a row `place, keys, hits`, `totals` one `place, of, claims` for every place with claims.
    """
    k, n = pl.col("hits"), pl.col("claims")
    whole = totals.group_by(of).agg(n.sum(), (n * n).sum().alias("nn"), pl.len().alias("clusters"))
    part = (
        hits.join(totals, on=["place", *of], how="inner")
        .group_by(keys)
        .agg(k.sum(), (k * k).sum().alias("kk"), (k * n).sum().alias("kn"))
    )
    both = part.join(whole, on=of, how="inner")
    return _with_interval(both).select(*keys, "hits", "claims", "share", "low", "high")


def _with_interval(sums: pl.DataFrame) -> pl.DataFrame:
    """The share of hits among claims, and its interval, from their sums and those of their squares over places."""
    low, high = clustered(*(sums[name].to_numpy() for name in ("hits", "claims", "kk", "kn", "nn", "clusters")))
    share = (pl.col("hits") / pl.col("claims")).alias("share")
    return sums.with_columns(share, pl.Series("low", low), pl.Series("high", high))
