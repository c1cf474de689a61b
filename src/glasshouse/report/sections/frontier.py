"""What does a decision-maker look at? The front of privacy and utility, and what each point of it does to the data.

The charts of paper 003. Data comes as frames; `risk` is the column of lambda, the largest count that is at risk.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.errors import InputError
from glasshouse.report.description import Chart, Column, Map, Measure, Series, Shape, Table
from glasshouse.report.figure import Figure
from glasshouse.report.framed import Axis, lines, number
from glasshouse.report.words import phrase

_MOST_BARS = 500
_LAMBDA = Axis("lambda")


def baselines_picture(risks: pl.DataFrame) -> Figure:
    """Figure 6: the risk of data and aggregates as they are; columns `data, tau, phi`."""
    title = phrase("frontier.before")
    names = [phrase("frontier.tau_before"), phrase("frontier.phi_before")]
    rows = tuple((row["data"], number(row["tau"]), number(row["phi"])) for row in risks.iter_rows(named=True))
    table = Table("baselines", title, (Column(""), *map(Column, names)), rows, "baselines.parquet")
    series = tuple(Series(1 + at, name, "bar") for at, name in enumerate(names))
    return Figure.of(Chart("before", title, "", table, series, phrase("frontier.mean"), up=True))


def time_picture(times: pl.DataFrame) -> Figure:
    """Figure 7: cumulative time; columns `solved` (points of the front so far), `seconds`, `how` (a line for each)."""
    seconds = Axis("seconds", phrase("frontier.seconds"), log=True)
    return lines(
        phrase("frontier.time"), times, Axis("solved", phrase("frontier.solved")), seconds, Axis("how"), points=True
    )


def front_picture(breakpoints: pl.DataFrame, points: pl.DataFrame | None = None) -> Figure:
    """Figure 8: every front through all its breakpoints (`risk, P, U`), with some points marked (the same columns)."""
    return lines(
        phrase("frontier.fronts"),
        _named(breakpoints).select("lambda", "P", "U"),
        Axis("P", phrase("frontier.moved"), zero=True),
        Axis("U", phrase("frontier.utility")),
        _LAMBDA,
        says="" if points is None else phrase("frontier.marks"),
        marks=None if points is None else _named(points).select("lambda", "P", "U"),
        nested=True,
    )


def risk_picture(points: pl.DataFrame) -> Figure:
    """Figure 9: risk against utility, a panel per measure and data (VER, ER, R); columns `risk, data, tau, phi, U`."""
    data = _by_measure(points.with_columns(data=pl.col("data") + ", "), "U")
    return lines(
        phrase("frontier.buys"),
        data,
        Axis("U", phrase("frontier.utility")),
        Axis("value", zero=True),
        _LAMBDA,
        "panel",
        marks=data,
        nested=True,
    )


def protected_picture(points: pl.DataFrame, protected: pl.DataFrame) -> Figure:
    """Protected versions of the data (`name, utility, tau, phi`) beside what fronts offer (`risk, U, tau, phi`)."""
    data = _by_measure(points.with_columns(data=pl.lit("")), "U")
    parts = [
        protected.unique("name", keep="first", maintain_order=True).select(
            pl.col("name").alias("lambda"),
            pl.col("utility").alias("U"),
            pl.lit(title).alias("panel"),
            pl.col(measure).alias("value"),
        )
        for measure, title in (("tau", phrase("frontier.tau")), ("phi", phrase("frontier.phi")))
    ]
    return lines(
        phrase("frontier.beside"),
        data,
        Axis("U", phrase("frontier.utility")),
        Axis("value", zero=True),
        _LAMBDA,
        "panel",
        says=phrase("frontier.beside_says"),
        marks=pl.concat(parts),
        nested=True,
    )


def protection_picture(points: pl.DataFrame) -> Figure:
    """Figure 10: does P stand for the risk? Columns `risk, P, tau, phi`."""
    data = _by_measure(points.with_columns(data=pl.lit("")), "P")
    return lines(
        phrase("frontier.stands"),
        data,
        Axis("P", phrase("frontier.moved"), zero=True),
        Axis("value", zero=True),
        _LAMBDA,
        "panel",
        marks=data,
        nested=True,
    )


def _by_measure(points: pl.DataFrame, x: str) -> pl.DataFrame:
    """Long: a row for each point and measure, the measure of risk in the name of the panel; tau of all data first."""
    parts = [
        _named(points).select("lambda", x, (pl.col("data") + title).alias("panel"), pl.col(measure).alias("value"))
        for measure, title in (("tau", phrase("frontier.tau")), ("phi", phrase("frontier.phi")))
    ]
    return pl.concat(parts)


def _named(points: pl.DataFrame) -> pl.DataFrame:
    """Lambda in words, from the least."""
    words = pl.format("λ = {}", pl.col("risk")).alias("lambda")
    return points.sort("risk", maintain_order=True).with_columns(words)


def change_map(
    changes: pl.DataFrame, joined: pl.DataFrame, coordinates: NDArray[np.float64], *, degrees: bool
) -> Figure:
    """Figure 11: how many people each place gains or loses, with lines from sources to the largest receiver.

    `changes` has `panel, place` (a number) and `change`, `joined` has `panel, source, target` (numbers). `coordinates`
    has a row `x, y` for each place; in `degrees`, x is longitude and y latitude.
    """
    if coordinates.ndim != 2 or coordinates.shape[1] != 2 or not np.isfinite(coordinates).all():
        raise InputError("coordinates are two finite numbers, x and y, for each place")
    rows = tuple(
        (str(row["place"]), row["panel"], Measure(row["change"], 0, "number")) for row in changes.iter_rows(named=True)
    )
    title = phrase("frontier.map")
    columns = (Column(phrase("frontier.place")), Column(""), Column(phrase("frontier.change")))
    shapes = {str(at): Shape((float(x), float(y))) for at, (x, y) in enumerate(coordinates)}
    links: dict[str, list[tuple[str, str]]] = {}
    for panel, source, target in joined.select("panel", "source", "target").iter_rows():
        links.setdefault(panel, []).append((str(source), str(target)))
    table, says = Table("changed", title, columns, rows, "", keys=2), phrase("frontier.map_says")
    joins = {panel: tuple(some) for panel, some in links.items()}
    return Figure.of(Map("changes", title, says, table, 2, shapes, columns[2].title, 1, joins, degrees))


def change_picture(changes: pl.DataFrame, where: str = "") -> Figure:
    """Figure 11 without coordinates: the places in the order of their change (column `change`), a bar for each.

    Where there are very many, one in so many is drawn. `where` says which point of the front it is of.
    """
    every = max(1, -(-changes.height // _MOST_BARS))
    drawn = changes.sort("change", descending=True).gather_every(every)["change"].to_list()
    title = phrase("frontier.in_order")
    if every > 1:
        title = phrase("frontier.in_order_some", every=every, places=changes.height)
    names = [phrase("frontier.more"), phrase("frontier.fewer")]
    rows = tuple(
        (str(rank), number(change if change >= 0 else None), number(change if change < 0 else None))
        for rank, change in enumerate(drawn, start=1)
    )
    table = Table("changed", title, (Column(phrase("frontier.places")), *map(Column, names)), rows, "changes.parquet")
    series = tuple(Series(1 + at, name, "bar") for at, name in enumerate(names))
    axis = phrase("frontier.change")
    return Figure.of(Chart("changes", f"{title}{where}", "", table, series, axis, up=True, most=_MOST_BARS, bare=True))


def changes_pictures(changes: Mapping[str, NDArray[np.float64]]) -> Figure:
    """Figure 11 without coordinates, for several points: a panel each, the places in order of their change."""
    parts = []
    for panel, change in changes.items():
        ordered = np.sort(change)[::-1]
        kept = np.unique(np.linspace(0, len(ordered) - 1, min(len(ordered), _MOST_BARS)).astype(np.int64))
        parts.append(pl.DataFrame({"panel": panel, "rank": kept + 1, "change": ordered[kept], "of": ""}))
    title, places = phrase("frontier.in_order"), Axis("rank", phrase("frontier.places"))
    return lines(
        title, pl.concat(parts), places, Axis("change", phrase("frontier.change")), Axis("of"), "panel", rule_y=0
    )
