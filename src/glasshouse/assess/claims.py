"""What do verified claims add up to? Blocks where somebody is singled out, households represented, how surprising.

The input is what verify writes. A claim says that exactly m households of a block match a partial description of k
columns; it is verified when that holds in every data set that fits the tables, and a singleton when m is 1. `counts`
has a row for every block, k and multiplicity (`singleton`, `all`), `places` one for every block. Claims may be millions
of rows: they are scanned and aggregated, never held. Blocks without households are left out.

More verified claims are worse for the households, and a claim that nobody would have guessed (a low baseline
probability) is worse than one that anybody would. `least` and `most` are proved bounds; `low` and `high` are the ends
of 95% intervals, which take blocks as independent draws and allow for the households or claims of one block sharing
their fate.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any

import polars as pl

from glasshouse.assess.rates import Rate, clustered, wilson
from glasshouse.errors import InputError, unknown
from glasshouse.program.integer import Proof

SINGLETON, EVERY = "singleton", "all"
MULTIPLICITIES = (SINGLETON, EVERY)
PRIOR = "p_"  # a column of claims: how probable it was, by records of the area whose level follows
TOP = 5  # sets of columns, as in the paper's table 6
SURPRISING = 0.02  # the paper's figure 3: most medians are below
_GROUP = ["multiplicity", "k"]
_BETWEEN = "\n"  # no name of a column holds it
_COUNTS = ("claims", "kinds", "households_low", "households_high")
_NUMBERS = ("households", "vacant", "queries", "queries_dropped")


@dataclass(frozen=True)
class Results:
    """Everything that one run of verify adds up to; frames as the functions of this module give them."""

    by_columns: pl.DataFrame
    unique: Mapping[str, Any]
    baselines: pl.DataFrame
    columns_used: pl.DataFrame
    combinations: pl.DataFrame
    sizes: pl.DataFrame
    median_size: float
    dropped: Mapping[str, Any]
    undecided: Mapping[str, Any]
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


# What is known of blocks and households


def by_columns(counts: pl.DataFrame, places: pl.DataFrame) -> pl.DataFrame:
    """By multiplicity and k: blocks with at least one verified claim, and the households represented.

    They are figures 3a and 3d and tables 4 and 7 of the paper. `households` are all households of the blocks, of which
    at least `represented_least` and at most `represented_most` are represented, whatever the truth is; `represented` is
    the true number (null without the truth), as are `per_block` and `share`. `share_low` and `share_high` are the 95%
    interval of the true share, or reach from that of the least to that of the most. Where the tables leave open how
    many households there are, `households` is the least of them; so shares end at 1.
    """
    homes = _inhabited(places).select("block", "households")
    rows = _checked_counts(counts, homes)
    real = pl.col("represented")
    n = pl.col("households")
    rows = rows.with_columns(
        pl.min_horizontal(pl.coalesce(real, f"represented_{end}"), n).alias(name)
        for end, name in (("least", "down"), ("most", "up"))
    )
    sums = (
        rows.group_by(_GROUP)
        .agg(
            pl.len().cast(pl.Int64).alias("blocks"),
            (pl.col("claims") > 0).sum().cast(pl.Int64).alias("blocks_with_claim"),
            pl.col("claims", "kinds", "households", "represented_least", "represented_most").sum(),
            pl.when(real.null_count() == 0).then(real.sum()).alias("represented"),
            (n * n).sum().alias("nn"),
            *(pl.col(end).sum().alias(f"k_{end}") for end in ("down", "up")),
            *((pl.col(end) * pl.col(end)).sum().alias(f"kk_{end}") for end in ("down", "up")),
            *((pl.col(end) * n).sum().alias(f"kn_{end}") for end in ("down", "up")),
        )
        .sort(_GROUP, descending=[True, False])
    )
    low, high = wilson(sums["blocks_with_claim"].to_numpy(), sums["blocks"].to_numpy())
    ends = [
        clustered(*(sums[name].to_numpy() for name in (f"k_{e}", "households", f"kk_{e}", f"kn_{e}", "nn", "blocks")))
        for e in ("down", "up")
    ]
    parts = {"least": "represented_least", "most": "represented_most", "": "represented"}
    return sums.select(
        *_GROUP, "blocks", "blocks_with_claim",
        (pl.col("blocks_with_claim") / pl.col("blocks")).alias("block_share"),
        pl.Series("block_share_low", low),
        pl.Series("block_share_high", high),
        "claims", "kinds", "households", *parts.values(),
        *((pl.col(part) / pl.col("blocks")).alias(f"per_block_{end}".strip("_")) for end, part in parts.items()),
        *((pl.col(part) / n).clip(0, 1).alias(f"share_{end}") for end, part in parts.items() if end),
        pl.when(real.is_not_null()).then(pl.col("k_down") / n).alias("share"),  # a block counts with all it has at most
        pl.Series("share_low", ends[0][0]),
        pl.Series("share_high", ends[1][1]),
    )  # fmt: skip


def unique(places: pl.DataFrame) -> dict[str, Any]:
    """How many blocks are known as a whole: only one data set fits them.

    The interval begins at that of the blocks that are proved, and ends as if every undecided block were one of them.
    """
    known = _inhabited(places)["unique"]
    sure, open_ = int(known.sum()), known.null_count()
    low, high = Rate.of(sure, len(known)), Rate.of(sure + open_, len(known))
    return {
        "blocks": len(known), "unique": sure, "share": low.value, "low": low.low, "high": high.high, "undecided": open_,
    }  # fmt: skip


def sizes(places: pl.DataFrame) -> pl.DataFrame:
    """How many blocks have how many households (figure 2): `households, blocks, share`, the share with its interval."""
    known = _inhabited(places)
    found = known.group_by("households").agg(pl.len().cast(pl.Int64).alias("blocks")).sort("households")
    low, high = wilson(found["blocks"].to_numpy(), known.height)
    share = pl.col("blocks") / known.height
    return found.with_columns(share.alias("share"), pl.Series("share_low", low), pl.Series("share_high", high))


def median_size(places: pl.DataFrame) -> float:
    """The median number of households of a block."""
    return float(_inhabited(places)["households"].median())  # type: ignore[arg-type]  # there is at least one block


def dropped(places: pl.DataFrame) -> dict[str, Any]:
    """How large a share of its queries was kept from the attack, in the mean over blocks, the least and the most.

    It is a setting of the run and no finding (table 5), so it has no interval.
    """
    known = _inhabited(places)
    part = known.select(pl.col("queries_dropped") / pl.col("queries").clip(1)).to_series()
    return {
        "queries": int(known["queries"].sum()),
        "dropped": int(known["queries_dropped"].sum()),
        "share_mean": fsum(part) / len(part),  # the same in any order of rows
        "share_least": part.min(),
        "share_most": part.max(),
    }


def _inhabited(places: pl.DataFrame) -> pl.DataFrame:
    """The blocks with households, after a check that each row makes sense; a frame without any is refused."""
    wanted = ("block", *_NUMBERS, "unique")
    _refuse_missing(places.columns, "places", wanted)
    found = places.select("block", pl.col(_NUMBERS).cast(pl.Int64), pl.col("unique").cast(pl.Boolean))
    _refuse_blank(found, "places", ("block", *_NUMBERS))
    if not found.select((pl.min_horizontal(_NUMBERS) >= 0).all()).item():
        raise InputError("a block of the places has a number below 0; was the file changed after it was written?")
    if not found.select((pl.col("queries_dropped") <= pl.col("queries")).all()).item():
        raise InputError("a block of the places has queries_dropped > queries; was the file changed?")
    if found["block"].n_unique() < found.height:
        raise InputError("a block is in two rows of the places; expected one row per block")
    found = found.filter(pl.col("households") > 0)
    if found.is_empty():
        raise InputError("no block of the places has any households; there is nothing to sum up")
    return found


def _checked_counts(counts: pl.DataFrame, homes: pl.DataFrame) -> pl.DataFrame:
    """The counts of the blocks with households, beside their number; every block has a row for every k."""
    _refuse_missing(counts.columns, "counts", ("block", "k", "multiplicity", *_COUNTS, "households"))
    found = counts.select(
        "block", "multiplicity", pl.col("k", *_COUNTS).cast(pl.Int64),
        pl.col("households").cast(pl.Int64).alias("represented"),
    ).rename({"households_low": "represented_least", "households_high": "represented_most"})  # fmt: skip
    _refuse_blank(found, "counts", [name for name in found.columns if name != "represented"])
    strange = set(found["multiplicity"].unique()) - set(MULTIPLICITIES)
    if strange:
        raise unknown("multiplicity", min(strange), MULTIPLICITIES)
    rows = found.join(homes, on="block", how="inner")
    steps = rows.select(_GROUP).n_unique()  # a run may have asked about singletons only
    if not steps or rows.height != homes.height * steps or rows.select("block", *_GROUP).n_unique() < rows.height:
        raise InputError(
            "the counts do not have one row for every block, k and multiplicity; are they of these places?"
        )
    least, most = pl.col("represented_least"), pl.col("represented_most")
    holds = {  # the truth may lie outside, if it is not that of the tables; the run warns of it
        "0 <= households_low <= households_high": (least >= 0) & (least <= most),
        "households_low <= households of the block": least <= pl.col("households"),
        "0 <= kinds <= claims": (pl.col("kinds") >= 0) & (pl.col("kinds") <= pl.col("claims")),
        "no claims, no households": (pl.col("claims") > 0) | (most == 0),
    }  # fmt: skip
    for said, right in rows.select(rule.all().alias(said) for said, rule in holds.items()).row(0, named=True).items():
        if right is False:
            raise InputError(f"a row of the counts breaks {said}; was the file changed after it was written?")
    return rows


def _refuse_missing(columns: Collection[str], what: str, wanted: Sequence[str]) -> None:
    missing = [name for name in wanted if name not in columns]
    if missing:
        raise InputError(f"the {what} have no column '{missing[0]}'; expected {', '.join(wanted)}")


def _refuse_blank(frame: pl.DataFrame, what: str, wanted: Sequence[str]) -> None:
    for name in wanted:
        if frame[name].null_count():
            raise InputError(f"the column '{name}' of the {what} has a blank; expected a value in every row")


# What the claims say


def undecided(claims: pl.LazyFrame) -> dict[str, Any]:
    """How many claims could be neither proved nor refuted; of no claims the share is not known (None)."""
    rows = _claims(claims).filter(pl.col("m").is_null() | (pl.col("m") > 0))
    blocks = rows.group_by("block").agg(
        pl.len().cast(pl.Int64).alias("n"), pl.col("m").null_count().cast(pl.Int64).alias("k")
    )
    k, n = pl.col("k"), pl.col("n")
    sums = blocks.select(k.sum(), n.sum(), (k * k).sum().alias("kk"), (k * n).sum().alias("kn"),
                         (n * n).sum().alias("nn"), pl.len().alias("clusters")).collect().row(0)  # fmt: skip
    hits, total = sums[:2]
    low, high = (float(end) for end in clustered(*sums)) if total else (None, None)
    return {"claims": total, "undecided": hits, "share": hits / total if total else None, "low": low, "high": high}


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
        _baseline(known.select("block", "k", "single", pl.col(column).cast(pl.Float64).alias("p")), prior, multiplicity)
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
        rows.group_by("block", "k")
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
    blocks = (
        counted.select("block", *_GROUP, n, *(own.alias(name) for own, name in zip(named, hits, strict=True)))
        .group_by("block", *_GROUP)
        .sum()
    )
    sums = blocks.group_by(_GROUP).agg(
        n.sum(),
        (n * n).sum().alias("nn"),
        pl.len().alias("clusters"),
        *(pl.col(name).sum() for name in hits),
        *((pl.col(name) * pl.col(name)).sum().alias(f"kk {name}") for name in hits),
        *((pl.col(name) * n).sum().alias(f"kn {name}") for name in hits),
    )
    parts = [
        _with_interval(sums.rename({hit: "hits", f"kk {hit}": "kk", f"kn {hit}": "kn"})).select(
            *_GROUP, pl.lit(name).alias("column"), "hits", "claims", "share", "low", "high", pl.lit(at).alias("at")
        )
        for at, (name, hit) in enumerate(zip(names, hits, strict=True))
    ]
    return pl.concat(parts).sort(*_GROUP, "at", descending=[True, False, False]).drop("at")


def _combinations(counted: pl.DataFrame, names: Sequence[str], top: int) -> pl.DataFrame:
    hits = counted.rename({"claims": "hits"})
    found = _shares(hits, _total(counted), [*_GROUP, "set"], _GROUP)
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
    ).sort(*_GROUP, "hits", "order", descending=[True, False, True, False])
    rank = pl.int_range(1, pl.len() + 1).over(_GROUP).alias("rank")
    listed = listed.with_columns(rank).filter(pl.col("rank") <= top)
    return listed.select(*_GROUP, "rank", "columns", "hits", "claims", "share", "low", "high")


def _claims(claims: pl.LazyFrame) -> pl.LazyFrame:
    rows = claims.lazy()
    _refuse_missing(rows.collect_schema().names(), "claims", ("block", "k", "columns", "m", "proof"))
    # what is not proved is not verified, whatever the file holds
    return rows.with_columns(pl.when(pl.col("proof") != Proof.UNDECIDED).then("m").alias("m"))


def _verified(claims: pl.LazyFrame) -> pl.LazyFrame:
    """The verified claims that represent somebody, and whether that is one household alone."""
    rows = _claims(claims).filter(pl.col("m") > 0)
    return rows.with_columns(pl.col("k").cast(pl.Int64), (pl.col("m") == 1).alias("single"))


def _by_set(claims: pl.LazyFrame, names: Sequence[str]) -> pl.DataFrame:
    """How many verified claims of each block name which set of columns; a set is a number with a bit for each name."""
    told = pl.col("columns").list.join(_BETWEEN).alias("told")
    counted = (
        _verified(claims)
        .select("block", "k", "single", told)
        .group_by("block", "k", "single", "told")
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
    keys = ["block", "k", "set"]
    parts = {SINGLETON: numbered.filter("single"), EVERY: numbered}
    return pl.concat(
        part.group_by(keys).agg(pl.col("claims").sum()).with_columns(pl.lit(name).alias("multiplicity"))
        for name, part in parts.items()
    )


def _total(counted: pl.DataFrame) -> pl.DataFrame:
    return counted.group_by("block", *_GROUP).agg(pl.col("claims").sum())


def _shares(hits: pl.DataFrame, totals: pl.DataFrame, keys: Sequence[str], of: Sequence[str]) -> pl.DataFrame:
    """Shares of claims by `keys` with intervals that allow for the claims of a block being alike.

    `hits` has a row `block, keys, hits`, `totals` one `block, of, claims` for every block with claims.
    """
    k, n = pl.col("hits"), pl.col("claims")
    whole = totals.group_by(of).agg(n.sum(), (n * n).sum().alias("nn"), pl.len().alias("clusters"))
    part = (
        hits.join(totals, on=["block", *of], how="inner")
        .group_by(keys)
        .agg(k.sum(), (k * k).sum().alias("kk"), (k * n).sum().alias("kn"))
    )
    both = part.join(whole, on=of, how="inner")
    return _with_interval(both).select(*keys, "hits", "claims", "share", "low", "high")


def _with_interval(sums: pl.DataFrame) -> pl.DataFrame:
    """The share of hits among claims, and its interval, from their sums and those of their squares over blocks."""
    low, high = clustered(*(sums[name].to_numpy() for name in ("hits", "claims", "kk", "kn", "nn", "clusters")))
    share = (pl.col("hits") / pl.col("claims")).alias("share")
    return sums.with_columns(share, pl.Series("low", low), pl.Series("high", high))
