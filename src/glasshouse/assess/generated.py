"""How far do K data sets that were drawn lead? Claims that all of them agree on, beside those that are certain.

The input is what verify writes with `--reconstructions`, the column of places called `place`. A claim is *agreed* when
all K bear it out; it is *left over* when another data set that fits refutes it all the same: whoever stops at the
intersection of K takes it for a fact, and it is none. More left over is worse for whoever relies on K.
"""

from __future__ import annotations

import polars as pl

from glasshouse.assess.claimed_places import EVERY, SINGLETON


def left_over(generated: pl.LazyFrame) -> pl.DataFrame:
    """By K, multiplicity and number of columns: claims agreed, certain, undecided, left over, and in how many places.

    `most` are the claims of the first data set that more than half of all bear out, `most_certain` the certain ones.
    """
    every = generated.with_columns((pl.col("frequency") == 1).alias("agreed"), pl.col("verified").alias("sure"))
    parts = {SINGLETON: every.filter(pl.col("m") == 1), EVERY: every}
    sure = pl.col("sure").fill_null(False)
    wrong = pl.col("agreed") & (pl.col("sure") == False).fill_null(False)  # noqa: E712  # null is undecided
    found = pl.concat(
        rows.group_by("reconstructions", pl.col("k").cast(pl.Int64))
        .agg(
            pl.col("agreed").sum().cast(pl.Int64),
            (pl.col("agreed") & sure).sum().cast(pl.Int64).alias("certain"),
            (pl.col("agreed") & pl.col("sure").is_null()).sum().cast(pl.Int64).alias("undecided"),
            wrong.sum().cast(pl.Int64).alias("left_over"),
            pl.col("place").filter(wrong).n_unique().cast(pl.Int64).alias("blocks"),
            pl.len().cast(pl.Int64).alias("most"),
            sure.sum().cast(pl.Int64).alias("most_certain"),
        )
        .with_columns(pl.lit(name).alias("multiplicity"))
        for name, rows in parts.items()
    ).collect()
    share = pl.when(pl.col("agreed") > 0).then(pl.col("left_over") / pl.col("agreed")).alias("left_over_share")
    first = ("reconstructions", "multiplicity", "k")
    named = found.with_columns(share).select(*first, pl.all().exclude(*first))
    return named.sort(*first, descending=[False, True, False])
