"""What does joining two agencies' numbers look like? Certain blocks by size, solution variability, matches by k.

Blocks are drawn as counts in bands and as shares; no picture says which block it is.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from glasshouse.assess.occupancy import EVERYBODY, SAMPLING
from glasshouse.report.charts import COLOURS, Axis, Bars, Lines

BANDS = ((1, 14), (15, 29), (30, 59), (60, 119), (120, None))  # subsidised households
ANSWERS = {"certain": "certain violation", "open": "perhaps none", "contradiction": "nothing fits"}
STEPS = 101


def by_households(places: pl.DataFrame) -> Bars:
    """How many blocks have which answer, by the number of subsidised households (figure A.1)."""
    rows = []
    for low, high in BANDS:
        top = np.iinfo(np.int64).max if high is None else high
        inside = places.filter(pl.col("subsidised").is_between(low, top))
        band = f"{low} or more" if high is None else f"{low} to {high}"
        for answer, words in ANSWERS.items():
            rows.append((band, words, inside.filter(pl.col("answer") == answer).height))
    data = pl.DataFrame(rows, schema=["households", "answer", "blocks"], orient="row")
    return Bars(
        "Blocks by what their numbers imply",
        data,
        Axis("households", "subsidised households in the block"),
        Axis("blocks", "blocks"),
        Axis("answer"),
        colours=(COLOURS[1], COLOURS[0], COLOURS[3]),
        numbers=",d",
    )


def variability(places: pl.DataFrame) -> Lines:
    """The share of blocks whose solution variability is at most so much (figure 2)."""
    names = [name for name in places.columns if name.startswith("solvar") and not name.endswith(("_upper", "_proof"))]
    words = {"solvar": "all attributes", "solvar_violations": "violating households"}
    rows = []
    for name in names:
        values = np.sort(places[name].drop_nulls().to_numpy())
        for at in np.linspace(0, 1, STEPS):
            below = np.searchsorted(values, at + 1e-12, side="right") / max(len(values), 1)
            rows.append((words.get(name, f"{name.removeprefix('solvar_')} attributes"), float(at), float(below)))
    data = pl.DataFrame(rows, schema=["over", "solvar", "share"], orient="row")
    return Lines(
        "How different another data set that fits can be",
        data,
        Axis("solvar", "solution variability: L1 / 2|D*|", zero=True),
        Axis("share", "share of blocks at or below", zero=True),
        Axis("over", "over"),
    )


def matched(rates: pl.DataFrame) -> Lines:
    """Precision of matches with the k most frequent kinds, for all households whom the key tells (figure A.5)."""
    where = pl.when(pl.col("attacker") == SAMPLING).then(pl.concat_str(pl.lit(" ("), "blocks", pl.lit(")")))
    who = pl.concat_str(pl.col("attacker"), where.otherwise(pl.lit("")))
    data = rates.filter((pl.col("households") == EVERYBODY) & (pl.col("putative") > 0))
    data = data.with_columns(who=who).select("k", "precision", "who", "key").sort("key", "who", "k")
    return Lines(
        "How often a matched household breaks the rule",
        data,
        Axis("k", "k: kinds of household tried in a block", zero=True),
        Axis("precision", "precision", zero=True),
        Axis("who", "attacker"),
        panel="key",
        columns=3,
    )
