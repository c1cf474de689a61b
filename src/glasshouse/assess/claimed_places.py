"""What is known of places and households from verified claims? Who is singled out where, and who is represented.

What a rate is of, is said here and nowhere else. A share of places is of all places that may have a household: one is
left out when it is proved to have none. A share of households is between two proved bounds: the least that are
represented of the most that there can be, and the most that are represented of the least that there can be. Where the
tables fix the number of households, both are of that number; where the truth is known, it is.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import fsum

import polars as pl

from glasshouse.assess.rates import Rate, clustered, wilson
from glasshouse.errors import InputError, unknown
from glasshouse.model.records import UNLIMITED

SINGLETON, EVERY = "singleton", "all"
MULTIPLICITIES = (SINGLETON, EVERY)
GROUP = ["multiplicity", "k"]
MAY_HAVE_ONE = pl.col("households_high").is_null() | (pl.col("households_high") > 0)  # of places; no end, no limit
_COUNTS = ("claims", "kinds", "households_low", "households_high")
_NUMBERS = ("households_low", "queries", "queries_dropped")
_OPEN = ("households", "households_high", "truth")  # blank where it is not known, or nothing limits it


def by_columns(counts: pl.DataFrame, places: pl.DataFrame) -> pl.DataFrame:
    """By multiplicity and k: places with at least one verified claim, and the households represented.

    They are figures 3a and 3d and tables 4 and 7 of the paper. The places have at least `households_least` and at most
    `households_most` households (null: nothing limits it), of which at least `represented_least` and at most
    `represented_most` are represented, whatever the truth is. `households` is their number where it is known, by the
    tables or by the truth. `represented`, `per_block` and `share` are those of the truth, null without it. `share_low`
    and `share_high` are the 95% interval of the true share, or reach from that of the least to that of the most.
    """
    homes = _inhabited(places).select("place", "households_low", *_OPEN)
    rows = _checked_counts(counts, homes)
    real, true, known = pl.col("represented"), pl.col("truth"), pl.col("households")
    least, most = pl.col("households_low"), pl.col("households_high")
    told = real.is_not_null() & true.is_not_null()
    rows = rows.with_columns(pl.when(told).then(real), pl.when(told).then(true)).with_columns(
        pl.coalesce(true, known).alias("households"),
        pl.max_horizontal(least, "represented_most").alias("fewest"),
        pl.coalesce(true, most).is_null().alias("endless"),
    )
    ends = {
        "least": (pl.coalesce(real, "represented_least"), pl.coalesce(true, most, least).cast(pl.Float64)),
        "most": (pl.coalesce(real, "represented_most"), pl.coalesce(true, "fewest").cast(pl.Float64)),
    }
    squares = [
        number.sum().alias(f"{name} {end}")
        for end, (k, n) in ends.items()
        for name, number in {"k": k, "n": n, "kk": k * k, "kn": k * n, "nn": n * n}.items()
    ]
    sums = (
        rows.group_by(GROUP)
        .agg(
            pl.len().cast(pl.Int64).alias("blocks"),
            (pl.col("claims") > 0).sum().cast(pl.Int64).alias("blocks_with_claim"),
            pl.col("claims", "kinds", "represented_least", "represented_most", "fewest").sum(),
            *(_known_sum(number) for number in (real, known)),
            least.sum().alias("households_least"),
            _known_sum(most).alias("households_most"),
            pl.col("endless").any(),
            *squares,
        )
        .sort(GROUP, descending=[True, False])
    )
    low, high = wilson(sums["blocks_with_claim"].to_numpy(), sums["blocks"].to_numpy())
    powers = ("k", "n", "kk", "kn", "nn")
    (down, _), (_, up) = (
        clustered(*(sums[name].to_numpy() for name in [*(f"{power} {end}" for power in powers), "blocks"]))
        for end in ends
    )
    parts = {"least": "represented_least", "most": "represented_most", "": "represented"}
    return sums.select(
        *GROUP, "blocks", "blocks_with_claim",
        (pl.col("blocks_with_claim") / pl.col("blocks")).alias("block_share"),
        pl.Series("block_share_low", low),
        pl.Series("block_share_high", high),
        "claims", "kinds", "households", "households_least", "households_most", *parts.values(),
        *((pl.col(part) / pl.col("blocks")).alias(f"per_block_{end}".strip("_")) for end, part in parts.items()),
        (pl.col("represented_least") / pl.col("households_most")).fill_null(0.0).alias("share_least"),  # no limit
        (pl.col("represented_most") / pl.col("fewest")).fill_nan(0.0).alias("share_most"),
        (real / known).fill_nan(0.0).alias("share"),
        pl.when("endless").then(0.0).otherwise(pl.Series(down)).alias("share_low"),
        pl.Series("share_high", up),
    )  # fmt: skip


def _known_sum(numbers: pl.Expr) -> pl.Expr:
    """The sum, if every one of the numbers is known."""
    return pl.when(numbers.null_count() == 0).then(numbers.sum())


@dataclass(frozen=True)
class Unique:
    """How many places are known as a whole: only one data set fits them.

    The interval begins at that of the places that are proved, and ends as if every undecided place were one of them.
    """

    blocks: int
    unique: int
    share: float
    low: float
    high: float
    undecided: int


def unique(places: pl.DataFrame) -> Unique:
    """How many places are known as a whole."""
    known = _inhabited(places)["unique"]
    sure, open_ = int(known.sum()), known.null_count()
    low, high = Rate.of(sure, len(known)), Rate.of(sure + open_, len(known))
    return Unique(len(known), sure, low.value, low.low, high.high, open_)


def sizes(places: pl.DataFrame) -> pl.DataFrame:
    """How many places have how many households (figure 2): `households, blocks, share`, the share with its interval.

    Places whose number of households is not known stand in a last row, where it is null.
    """
    known = _inhabited(places)
    found = known.group_by("households").agg(pl.len().cast(pl.Int64).alias("blocks"))
    found = found.sort("households", nulls_last=True)
    low, high = wilson(found["blocks"].to_numpy(), known.height)
    share = pl.col("blocks") / known.height
    return found.with_columns(share.alias("share"), pl.Series("share_low", low), pl.Series("share_high", high))


def median_size(places: pl.DataFrame) -> float | None:
    """The median number of households of a place; None where the tables leave it open."""
    known = _inhabited(places)
    ends = known["households_low"].median(), known["households_high"].fill_null(UNLIMITED).median()
    return float(ends[0]) if ends[0] == ends[1] else None  # type: ignore[arg-type]  # there is at least one place


@dataclass(frozen=True)
class Dropped:
    """How large a share of its queries was kept from the attack, in the mean over places, the least and the most.

    It is a setting of the run and no finding (table 5), so it has no interval.
    """

    queries: int
    dropped: int
    share_mean: float
    share_least: float
    share_most: float


def dropped(places: pl.DataFrame) -> Dropped:
    """How large a share of the queries was kept from the attack."""
    known = _inhabited(places)
    part = known.select(pl.col("queries_dropped") / pl.col("queries").clip(1)).to_series()
    return Dropped(
        int(known["queries"].sum()),
        int(known["queries_dropped"].sum()),
        fsum(part) / len(part),  # the same in any order of rows
        min(part),
        max(part),
    )


def _inhabited(places: pl.DataFrame) -> pl.DataFrame:
    """The places with households, after a check that each row makes sense; a frame without any is refused."""
    wanted = ("place", *_NUMBERS, *_OPEN, "unique")
    refuse_missing(places.columns, "places", wanted)
    found = places.select("place", pl.col(*_NUMBERS, *_OPEN).cast(pl.Int64), pl.col("unique").cast(pl.Boolean))
    refuse_blank(found, "places", ("place", *_NUMBERS))
    if not found.select((pl.min_horizontal(*_NUMBERS, *_OPEN) >= 0).all()).item():
        raise InputError("a row of the places has a number below 0; was the file changed after it was written?")
    if not found.select((pl.col("queries_dropped") <= pl.col("queries")).all()).item():
        raise InputError("a row of the places has queries_dropped > queries; was the file changed?")
    if found["place"].n_unique() < found.height:
        raise InputError("a place is in two rows; expected one row for each")
    found = found.filter(MAY_HAVE_ONE)
    if found.is_empty():
        raise InputError("none of the places has any households; there is nothing to sum up")
    return found


def _checked_counts(counts: pl.DataFrame, homes: pl.DataFrame) -> pl.DataFrame:
    """The counts of the places with households, beside their number; every place has a row for every k."""
    refuse_missing(counts.columns, "counts", ("place", "k", "multiplicity", *_COUNTS, "households"))
    found = counts.select(
        "place", "multiplicity", pl.col("k", *_COUNTS).cast(pl.Int64),
        pl.col("households").cast(pl.Int64).alias("represented"),
    ).rename({"households_low": "represented_least", "households_high": "represented_most"})  # fmt: skip
    refuse_blank(found, "counts", [name for name in found.columns if name != "represented"])
    strange = set(found["multiplicity"].unique()) - set(MULTIPLICITIES)
    if strange:
        raise unknown("multiplicity", min(strange), MULTIPLICITIES)
    rows = found.join(homes, on="place", how="inner")
    steps = rows.select(GROUP).n_unique()  # a run may have asked about singletons only
    if not steps or rows.height != homes.height * steps or rows.select("place", *GROUP).n_unique() < rows.height:
        raise InputError(
            "the counts do not have one row for every place, k and multiplicity; are they of these places?"
        )
    least, most = pl.col("represented_least"), pl.col("represented_most")
    holds = {  # the truth may lie outside, if it is not that of the tables; the run warns of it
        "0 <= households_low <= households_high": (least >= 0) & (least <= most),
        "households_low <= households of the place": least <= pl.col("households_low"),
        "households_high <= most households of the place": most <= pl.col("households_high").fill_null(UNLIMITED),
        "0 <= kinds <= claims": (pl.col("kinds") >= 0) & (pl.col("kinds") <= pl.col("claims")),
        "no claims, no households": (pl.col("claims") > 0) | (most == 0),
    }  # fmt: skip
    for said, right in rows.select(rule.all().alias(said) for said, rule in holds.items()).row(0, named=True).items():
        if right is False:
            raise InputError(f"a row of the counts breaks {said}; was the file changed after it was written?")
    return rows


def refuse_missing(columns: Collection[str], what: str, wanted: Sequence[str]) -> None:
    missing = [name for name in wanted if name not in columns]
    if missing:
        raise InputError(f"the {what} have no column '{missing[0]}'; expected {', '.join(wanted)}")


def refuse_blank(frame: pl.DataFrame, what: str, wanted: Sequence[str]) -> None:
    for name in wanted:
        if frame[name].null_count():
            raise InputError(f"the column '{name}' of the {what} has a blank; expected a value in every row")
