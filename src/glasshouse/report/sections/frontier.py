"""What does a decision-maker look at? The front of privacy and utility, and what each point of it does to the data.

The charts of paper 003. Data comes as frames; `risk` is the column of lambda, the largest count that is at risk.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.errors import InputError
from glasshouse.report.charts import COLOURS, Axis, Bars, Lines, Map

TAU, PHI = "τ: global disclosure risk", "φ: population uniqueness rate"
MORE, FEWER, SAME = "more people", "fewer people", "unchanged"
KINDS = {  # the first are drawn below the others
    SAME: ("#BBBBBB", "circle"),
    FEWER: (COLOURS[1], "triangle-down"),
    MORE: (COLOURS[0], "triangle-up"),
}
_LAMBDA = Axis("lambda", "at risk")
_MOST_BARS = 500


def baselines_picture(risks: pl.DataFrame) -> Bars:
    """Figure 6: the risk of data and aggregates as they are; columns `data, tau, phi`."""
    long = risks.unpivot(["tau", "phi"], index="data", variable_name="measure", value_name="risk")
    named = pl.col("measure").replace_strict({"tau": "τ*: global disclosure risk", "phi": "φ*: population uniqueness"})
    return Bars(
        "Risk before anyone is moved",
        long.with_columns(named),
        Axis("data"),
        Axis("risk", "mean over all elements"),
        Axis("measure"),
    )


def time_picture(times: pl.DataFrame) -> Lines:
    """Figure 7: cumulative time; columns `solved` (points of the front so far), `seconds`, `how` (a line for each)."""
    seconds = Axis("seconds", "seconds so far (log scale)", log=True)
    x = Axis("solved", "points of the front found")
    return Lines("Time to find points of the front", times, x, seconds, Axis("how"), points=True)


def front_picture(breakpoints: pl.DataFrame, points: pl.DataFrame | None = None) -> Lines:
    """Figure 8: every front through all its breakpoints (`risk, P, U`), with some points marked (the same columns)."""
    return Lines(
        "What privacy costs: whole fronts" + ("" if points is None else " (marks: even steps of U)"),
        _named(breakpoints).select("lambda", "P", "U"),
        Axis("P", "P: weighted persons moved", zero=True),
        Axis("U", "U: utility"),
        _LAMBDA,
        marks=None if points is None else _named(points).select("lambda", "P", "U"),
        nested=True,
    )


def risk_picture(points: pl.DataFrame) -> Lines:
    """Figure 9: risk against utility, a panel per measure and data (VER, ER, R); columns `risk, data, tau, phi, U`."""
    data = _by_measure(points.with_columns(data=pl.col("data") + ", "), "U")
    return Lines(
        "What utility buys: risk against utility, for the data and aggregates of them",
        data,
        Axis("U", "U: utility"),
        Axis("value", zero=True),
        _LAMBDA,
        "panel",
        columns=points["data"].n_unique(),
        marks=data,
        nested=True,
    )


def protection_picture(points: pl.DataFrame) -> Lines:
    """Figure 10: does P stand for the risk? Columns `risk, P, tau, phi`."""
    data = _by_measure(points.with_columns(data=pl.lit("")), "P")
    return Lines(
        "Does P stand for the risk?",
        data,
        Axis("P", "P: weighted persons moved", zero=True),
        Axis("value", zero=True),
        _LAMBDA,
        "panel",
        columns=2,
        marks=data,
        nested=True,
    )


def _by_measure(points: pl.DataFrame, x: str) -> pl.DataFrame:
    """Long: a row for each point and measure, the measure of risk in the name of the panel; tau of all data first."""
    parts = [
        _named(points).select("lambda", x, (pl.col("data") + title).alias("panel"), pl.col(measure).alias("value"))
        for measure, title in (("tau", TAU), ("phi", PHI))
    ]
    return pl.concat(parts)


def _named(points: pl.DataFrame) -> pl.DataFrame:
    """Lambda in words, from the least."""
    words = pl.format("λ = {}", pl.col("risk")).alias("lambda")
    return points.sort("risk", maintain_order=True).with_columns(words)


def change_map(
    changes: pl.DataFrame, joined: pl.DataFrame, coordinates: NDArray[np.float64], *, degrees: bool, columns: int = 4
) -> Map:
    """Figure 11: how many people each place gains or loses, with lines from sources to the largest receiver.

    `changes` has `panel, place` (a number) and `change`, `joined` has `panel, source, target` (numbers). `coordinates`
    has a row `x, y` for each place; in `degrees`, x is longitude and y latitude.
    """
    if coordinates.ndim != 2 or coordinates.shape[1] != 2 or not np.isfinite(coordinates).all():
        raise InputError("coordinates are two finite numbers, x and y, for each place")
    x, y = coordinates.T
    if degrees:
        x = x * np.cos(np.radians(y.mean()))  # a degree of longitude is shorter than one of latitude
    at = changes["place"].to_numpy()
    points = changes.select("panel", kind=_kind(), size=pl.col("change").abs())
    points = points.with_columns(pl.Series("x", x[at]), pl.Series("y", y[at]))
    ends = {"x": x, "y": y, "x2": x, "y2": y}
    of = {"x": "source", "y": "source", "x2": "target", "y2": "target"}
    lines = joined.select("panel").with_columns(
        pl.Series(name, ends[name][joined[column].to_numpy()]) for name, column in of.items()
    )
    return Map(
        "Expected change of each place's people; lines: to the place that receives most",
        points,
        lines,
        Axis("kind"),
        KINDS,
        Axis("size", "persons"),
        "panel",
        columns,
    )


def change_picture(changes: pl.DataFrame) -> Bars:
    """Figure 11 without coordinates: the places in the order of their change (column `change`), a bar for each.

    Where there are very many, one in so many is drawn.
    """
    every = max(1, -(-changes.height // _MOST_BARS))
    drawn = changes.sort("change", descending=True).gather_every(every)
    title = "Expected change of each place's people, in order"
    if every > 1:
        title += f" (one in {every} of {changes.height:,} places)"
    return Bars(
        title,
        drawn.select(pl.int_range(1, pl.len() + 1).alias("rank"), "change", kind=_kind()),
        Axis("rank", "places, from the largest gain to the largest loss"),
        Axis("change", "expected change, persons"),
        Axis("kind"),
        side_by_side=False,
        colours=tuple(KINDS[kind][0] for kind in drawn.select(_kind()).to_series().unique(maintain_order=True)),
    )


def _kind() -> pl.Expr:
    change = pl.col("change")
    return pl.when(change > 0).then(pl.lit(MORE)).when(change < 0).then(pl.lit(FEWER)).otherwise(pl.lit(SAME))
