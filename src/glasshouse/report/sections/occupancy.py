"""What does joining two agencies' numbers look like? Certain blocks, solution variability, who is matched.

Blocks are drawn as counts in bands and as shares; no picture says which block it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import polars as pl

from glasshouse.assess.occupancy import EVERYBODY, NARROW, SAMPLING, UNIQUES, measures_of
from glasshouse.assess.one_solution import one_solution
from glasshouse.program.integer import Proof
from glasshouse.report.description import Cell, Chart, Column, Count, Series, Table
from glasshouse.report.figure import Figure
from glasshouse.report.framed import Axis, lines
from glasshouse.report.words import phrase, table

BANDS = ((1, 14), (15, 29), (30, 59), (60, 119), (120, None))  # subsidised households
SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)  # of a block's households that are subsidised
STEPS = 101


def by_households(places: pl.DataFrame) -> Figure:
    """How many blocks have which answer, by the number of subsidised households (figure A.1)."""
    bands = []
    for low, high in BANDS:
        top = np.iinfo(np.int64).max if high is None else high
        word = phrase("detection.or_more", low=low) if high is None else phrase("detection.band", low=low, high=high)
        bands.append((word, pl.col("subsidised").is_between(low, top)))
    return _answers(places, bands, phrase("detection.subsidised"), phrase("detection.says"))


def by_share(places: pl.DataFrame) -> Figure:
    """The same by the share of the block's households that are subsidised (figure A.1, below)."""
    return _answers(places, _shares(), phrase("detection.share"), phrase("detection.share_says"))


def _shares() -> list[tuple[str, pl.Expr]]:
    """Bands of the subsidised share: each ends where the next begins, the last holds blocks that are all subsidised."""
    share, found = pl.col("subsidised") / pl.col("households"), []
    for low, high in pairwise(SHARES):
        inside = (share >= low) & ((share <= high) if high == SHARES[-1] else (share < high))
        found.append((phrase("detection.band", low=f"{low:.0%}", high=f"{high:.0%}"), inside))
    return found


def _answers(places: pl.DataFrame, bands: Sequence[tuple[str, pl.Expr]], by: str, says: str) -> Figure:
    words = table("detection.answers")
    counted = {word: pl.col("answer") == answer for answer, word in words.items()}
    return _bars("detected", phrase("detection.title"), says, by, places, bands, counted)


def narrow_by_share(places: pl.DataFrame) -> Figure:
    """Blocks of which little can be otherwise in a few attributes, by their subsidised share (figure A.2)."""
    name = next((one for one in measures_of(places) if one not in table("detection.over")), "solvar")
    known = places.drop_nulls(name)
    only = one_solution(f"{name}_upper", f"{name}_proof")
    nearly = ~only & (pl.col(f"{name}_upper") < NARROW) & (pl.col(f"{name}_proof") != Proof.UNDECIDED)
    counted = {phrase("detection.one"): only, phrase("detection.few", share=f"{NARROW:.0%}"): nearly}
    title, says = phrase("detection.narrow"), phrase("detection.narrow_says", name=name.removeprefix("solvar_"))
    return _bars("narrow", title, says, phrase("detection.share"), known, _shares(), counted)


def _bars(
    name: str, title: str, says: str, by: str, places: pl.DataFrame, bands: Sequence[tuple[str, pl.Expr]],
    counted: Mapping[str, pl.Expr],
) -> Figure:  # fmt: skip
    """How many blocks of each band are of each sort."""
    rows: list[tuple[Cell, ...]] = []
    for band, inside in bands:
        some = places.filter(inside)
        rows.append((band, *(Count(some.filter(chosen).height) for chosen in counted.values())))
    columns = (Column(by), *(Column(word, "violations") for word in counted))
    found = Table(name, title, columns, tuple(rows), "places.parquet")
    series = tuple(Series(1 + at, word, "bar") for at, word in enumerate(counted))
    return Figure.of(Chart(f"{name}-chart", title, says, found, series, phrase("detection.axis"), up=True))


def variability(places: pl.DataFrame) -> Figure:
    """The share of blocks whose solution variability is at most so much (figure 2)."""
    names = measures_of(places)
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


def matched(rates: pl.DataFrame, *, unique: bool = False) -> Figure:
    """Precision of matches with the k most frequent kinds (figure A.5), or of those alone with their key (figure 3)."""
    data = _rated(rates, unique=unique).select("k", "precision", "who", "key").sort("key", "who", "k")
    return lines(
        phrase("detection.matched_unique" if unique else "detection.matched"),
        data,
        Axis("k", phrase("detection.kinds"), zero=True),
        Axis("precision", phrase("detection.precision"), zero=True, style="share"),
        Axis("who", phrase("detection.attacker")),
        "key",
        says=phrase("detection.matched_says"),
    )


def precision_recall(over_all: pl.DataFrame, *, unique: bool = False) -> Figure:
    """Precision against recall down one list over all blocks (figure A.4: households that are alone with their key)."""
    data = _rated(over_all, unique=unique).drop_nulls("recall").sort("key", "who", "k")
    return lines(
        phrase("detection.curve_unique" if unique else "detection.curve"),
        data.select("recall", "precision", "who", "key"),
        Axis("recall", phrase("detection.recall"), zero=True, style="share"),
        Axis("precision", phrase("detection.precision"), zero=True, style="share"),
        Axis("who", phrase("detection.attacker")),
        "key",
        says=phrase("detection.curve_says"),
    )


def match_rates(rates: pl.DataFrame) -> Figure:
    """The share of the k kinds that somebody who exceeds the limit has (figure G.7)."""
    data = _rated(rates).select("k", "match_rate", "who", "key").sort("key", "who", "k")
    return lines(
        phrase("detection.match_rates"),
        data,
        Axis("k", phrase("detection.kinds"), zero=True),
        Axis("match_rate", phrase("detection.match_rate"), zero=True, style="share"),
        Axis("who", phrase("detection.attacker")),
        "key",
        says=phrase("detection.match_rates_says"),
    )


def _rated(rates: pl.DataFrame, *, unique: bool = False) -> pl.DataFrame:
    """Rates of all households, or of those alone with their key, with the attacker's name in full."""
    where = pl.when(pl.col("attacker") == SAMPLING).then(pl.concat_str(pl.lit(" ("), "blocks", pl.lit(")")))
    who = pl.concat_str(pl.col("attacker"), where.otherwise(pl.lit("")))
    chosen = pl.col("households") == (UNIQUES if unique else EVERYBODY)
    return rates.filter(chosen & (pl.col("putative") > 0)).with_columns(who=who)


def violations(places: pl.DataFrame) -> Figure:
    """Households above the limit in the likely data sets of each block, and in truth (figure A.3)."""
    known = places.drop_nulls(["likely_violations", "violations_true"])
    equal, found = phrase("detection.equal"), phrase("detection.rebuilt")
    top = max([1.0, *known["violations_true"].to_list(), *known["likely_violations"].to_list()])
    line = pl.DataFrame({"true": [0.0, top], "likely": [0.0, top], "what": [equal, equal]})
    dots = known.select(
        pl.col("violations_true").cast(pl.Float64).alias("true"),
        pl.col("likely_violations").cast(pl.Float64).alias("likely"),
        pl.lit(found).alias("what"),
    )
    return lines(
        phrase("detection.violations"),
        line,
        Axis("true", phrase("detection.true"), zero=True),
        Axis("likely", phrase("detection.likely"), zero=True),
        Axis("what"),
        says=phrase("detection.violations_says"),
        marks=dots,
    )
