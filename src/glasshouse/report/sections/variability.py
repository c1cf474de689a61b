"""What does the certainty of a reconstruction look like? Solvar against the size of the block.

Blocks are only ever drawn as counts in bins, in steps of ten, and each point of a line stands for ten blocks or more
(for all, where there are fewer): a nation is a small picture, and neither it nor the text inside its file tells the
numbers of a single block.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.assess.one_solution import one_solution
from glasshouse.assess.rates import wilson
from glasshouse.assess.variability import inhabited
from glasshouse.report.description import (
    Column,
    Count,
    Curves,
    Field,
    Measure,
    Scale,
    Series,
    Table,
)
from glasshouse.report.figure import Figure
from glasshouse.report.framed import number
from glasshouse.report.words import phrase

Integers = NDArray[np.int64]

_PER_DECADE = 8
_LEAST = 10  # blocks behind a point of a line
_STEPS = ("1 to 9", "10 to 99", "100 to 999", "1,000 to 9,999", "10,000 to 99,999", "100,000 to 999,999", "1,000,000+")


def picture(places: pl.DataFrame, published: pl.DataFrame | None = None) -> Figure:
    """Solvar against block size, and below it the share of blocks that are proved to have one solution.

    `published` shares to compare with have the columns `blocks, population, zero_share` and are marked at the mean size
    of their blocks.
    """
    blocks = inhabited(places).with_columns((pl.col("distance") / (2 * pl.col("population"))).alias("solvar"))
    edges = _edges(int(blocks["population"].max()))  # type: ignore[arg-type]  # there is at least one block
    size = np.searchsorted(edges, blocks["population"].to_numpy(), side="right") - 1
    blocks = blocks.with_columns(pl.Series("size", size))
    tiles = _tiles(blocks, edges)
    curves = _curves(blocks, edges)
    field = Field(
        Table(
            "solvar-tiles", phrase("variability.tiles"),
            tuple(Column(name) for name in ("left", "right", "bottom", "top", "blocks")),
            tuple((*map(number, row[:4]), row[5]) for row in tiles.iter_rows()), "", keys=0,
        ),
        _STEPS[: int(tiles["order"].max()) + 1],  # type: ignore[arg-type]  # there is at least one tile
        phrase("variability.blocks"),
    )  # fmt: skip
    persons, blocks_ = Scale(phrase("variability.persons"), "log"), phrase("variability.blocks")
    mean = Table(
        "solvar-mean", phrase("variability.mean"),
        (Column(persons.title), Column(blocks_), Column(phrase("columns.solvar"), "solvar")),
        tuple(
            (number(row["persons"]), Count(row["blocks"]),
             Measure(row["mean"], row["population"], "share", row["mean"], row["mean_upper"]))
            for row in curves.iter_rows(named=True)
        ), "", keys=0,
    )  # fmt: skip
    shares = [
        (number(row["persons"]), Count(row["blocks"]),
         Measure(row["share"], row["blocks"], "share", row["share_low"], row["share_high"]), None)
        for row in curves.iter_rows(named=True)
    ]  # fmt: skip
    marks = _marks(published, float(edges[-1]))
    share = Table(
        "solvar-share", phrase("variability.share"),
        (Column(persons.title), Column(blocks_), Column(phrase("size.one_solution"), "one_solution"),
         Column(phrase("variability.published"), "one_solution", published=True)),
        (*shares, *((number(at), None, None, Measure(value, 0, "share")) for at, value in marks)), "", keys=0,
    )  # fmt: skip
    rings = (Series(3, phrase("variability.published"), "ring"),) if marks else ()
    return Figure(
        phrase("variability.title"),
        (
            Curves("solvar", mean.title, phrase("variability.mean_says"), mean, 0,
                   (Series(2, phrase("variability.mean_line"), "line"),), persons,
                   Scale(phrase("variability.solvar"), zero=True), field=field),
            Curves("one-solution", share.title, phrase("variability.share_says"), share, 0,
                   (Series(2, phrase("variability.share_line"), "line"), *rings), persons,
                   Scale(phrase("variability.of_blocks"), zero=True)),
        ),
    )  # fmt: skip


def _marks(published: pl.DataFrame | None, end: float) -> list[tuple[float, float]]:
    """Published shares at the mean size of their blocks, where there are sizes of ours to compare with."""
    if published is None:
        return []
    at = published.select((pl.col("population") / pl.col("blocks")).alias("persons"), share="zero_share")
    return [(persons, share) for persons, share in at.iter_rows() if persons < end]


def _edges(largest: int) -> Integers:
    """Where each bin of sizes begins, and at last where the last one ends: whole numbers, evenly on a log scale."""
    steps = int(np.ceil(np.log10(largest + 1) * _PER_DECADE))
    return np.unique(np.round(10 ** (np.arange(steps + 1) / _PER_DECADE)).astype(np.int64))


def _tiles(blocks: pl.DataFrame, edges: Integers) -> pl.DataFrame:
    """Where there are blocks, and how many in steps of ten; proved zeros lie in a strip below 0."""
    largest = float(blocks["solvar"].max())  # type: ignore[arg-type]  # there is at least one block
    height = next(step for step in (0.0025, 0.005, 0.01, 0.025) if largest <= 40 * step)
    strip = (-2.5 * height, -0.5 * height)
    # a tile holds its upper end; a zero that is not proved counts as small
    row = pl.when(one_solution()).then(0).otherwise((pl.col("solvar") / height).ceil().cast(pl.Int64).clip(1))
    counted = blocks.group_by("size", row.alias("row")).len().sort("size", "row")
    known, at = pl.col("row") == 0, counted["size"].to_numpy()
    tiles = counted.select(
        # sizes are whole numbers: a tile reaches half a person beyond them, so that the number itself is inside
        pl.Series("left", edges[at] - 0.5),
        pl.Series("right", edges[at + 1] - 0.5),
        pl.when(known).then(strip[0]).otherwise((pl.col("row") - 1) * height).alias("bottom"),
        pl.when(known).then(strip[1]).otherwise(pl.col("row") * height).alias("top"),
        pl.col("len").log10().floor().cast(pl.Int64).clip(0, len(_STEPS) - 1).alias("order"),
    )
    return tiles.with_columns(pl.Series("step", _STEPS).gather(tiles["order"]))


def _curves(blocks: pl.DataFrame, edges: Integers) -> pl.DataFrame:
    """By size: solvar over persons, its proved bound, and the share of blocks known for certain with its interval."""
    counts, middle = np.bincount(blocks["size"].to_numpy(), minlength=len(edges) - 1), edges[:-1] * (edges[1:] - 1.0)
    first = _gathered(counts)
    group = np.searchsorted(first, blocks["size"].to_numpy(), side="right") - 1
    sums = (
        blocks.group_by(pl.Series("group", group))
        .agg(
            pl.len().alias("blocks"),
            pl.col("population", "distance", "distance_upper").sum(),
            one_solution().sum().alias("zero"),
        )
        .sort("group")
    )
    low, high = wilson(sums["zero"].to_numpy(), sums["blocks"].to_numpy())
    centre = np.add.reduceat(counts * np.log(middle) / 2, first) / sums["blocks"].to_numpy()
    return sums.select(
        pl.Series("persons", np.exp(centre)),  # where the bins of the blocks lie, not their own sizes
        "blocks",
        "population",
        (pl.col("distance") / (2 * pl.col("population"))).alias("mean"),
        (pl.col("distance_upper") / (2 * pl.col("population"))).alias("mean_upper"),
        (pl.col("zero") / pl.col("blocks")).alias("share"),
        pl.Series("share_low", low),
        pl.Series("share_high", high),
    )


def _gathered(blocks: Integers) -> Integers:
    """The first bin of each group of neighbouring bins, such that every group has enough blocks (if there are)."""
    first = [0]
    for at in range(1, len(blocks)):
        if blocks[first[-1] : at].sum() >= _LEAST and blocks[at:].sum() >= _LEAST:
            first.append(at)
    return np.array(first)
