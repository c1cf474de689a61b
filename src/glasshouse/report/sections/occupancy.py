"""What does joining two agencies' numbers look like? Certain blocks by size, solution variability, matches by k.

Blocks are drawn as counts in bands and as shares; no picture says which block it is.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from glasshouse.assess.occupancy import EVERYBODY, SAMPLING
from glasshouse.report.description import Cell, Chart, Column, Count, Series, Table
from glasshouse.report.figure import Figure
from glasshouse.report.framed import Axis, lines
from glasshouse.report.words import phrase, table

BANDS = ((1, 14), (15, 29), (30, 59), (60, 119), (120, None))  # subsidised households
STEPS = 101


def by_households(places: pl.DataFrame) -> Figure:
    """How many blocks have which answer, by the number of subsidised households (figure A.1)."""
    words = table("detection.answers")
    rows: list[tuple[Cell, ...]] = []
    for low, high in BANDS:
        top = np.iinfo(np.int64).max if high is None else high
        inside = places.filter(pl.col("subsidised").is_between(low, top))
        band = phrase("detection.or_more", low=low) if high is None else phrase("detection.band", low=low, high=high)
        rows.append((band, *(Count(inside.filter(pl.col("answer") == answer).height) for answer in words)))
    title = phrase("detection.title")
    columns = (Column(phrase("detection.subsidised")), *(Column(word, "violations") for word in words.values()))
    found = Table("detected", title, columns, tuple(rows), "places.parquet")
    series = tuple(Series(1 + at, word, "bar") for at, word in enumerate(words.values()))
    return Figure.of(
        Chart("detected-chart", title, phrase("detection.says"), found, series, phrase("detection.axis"), up=True)
    )


def variability(places: pl.DataFrame) -> Figure:
    """The share of blocks whose solution variability is at most so much (figure 2)."""
    names = [name for name in places.columns if name.startswith("solvar") and not name.endswith(("_upper", "_proof"))]
    words = table("detection.over")
    rows = []
    for name in names:
        values = np.sort(places[name].drop_nulls().to_numpy())
        over = words.get(name) or phrase("detection.of_attributes", name=name.removeprefix("solvar_"))
        for at in np.linspace(0, 1, STEPS):
            below = np.searchsorted(values, at + 1e-12, side="right") / max(len(values), 1)
            rows.append((over, float(at), float(below)))
    data = pl.DataFrame(rows, schema=["over", "solvar", "share"], orient="row")
    return lines(
        phrase("detection.variability"),
        data,
        Axis("solvar", phrase("detection.solvar"), zero=True, style="share"),
        Axis("share", phrase("detection.at_or_below"), zero=True, style="share"),
        Axis("over"),
        says=phrase("detection.variability_says"),
    )


def matched(rates: pl.DataFrame) -> Figure:
    """Precision of matches with the k most frequent kinds, for all households whom the key tells (figure A.5)."""
    where = pl.when(pl.col("attacker") == SAMPLING).then(pl.concat_str(pl.lit(" ("), "blocks", pl.lit(")")))
    who = pl.concat_str(pl.col("attacker"), where.otherwise(pl.lit("")))
    data = rates.filter((pl.col("households") == EVERYBODY) & (pl.col("putative") > 0))
    data = data.with_columns(who=who).select("k", "precision", "who", "key").sort("key", "who", "k")
    return lines(
        phrase("detection.matched"),
        data,
        Axis("k", phrase("detection.kinds"), zero=True),
        Axis("precision", phrase("detection.precision"), zero=True, style="share"),
        Axis("who", phrase("detection.attacker")),
        "key",
        says=phrase("detection.matched_says"),
    )
