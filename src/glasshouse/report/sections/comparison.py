"""What does a decision-maker see of several protections? One chart: risk against error, and which are worth a look."""

from __future__ import annotations

import polars as pl

from glasshouse.report.description import Cell, Column, Curves, Measure, Scale, Series, Table
from glasshouse.report.figure import Figure
from glasshouse.report.framed import number
from glasshouse.report.words import phrase, plain, table


def named(protection: str) -> str:
    """A protection in words; one that the language has no words for keeps its name."""
    return plain(f"protections.{protection or 'none'}", protection)


def risk_utility(title: str, points: pl.DataFrame, level: str, measure: str = "found_exposed") -> Figure:
    """Every setting a mark with its intervals; a line joins those that no other beats in both; guessing as ticks.

    `points` are those of `assess.comparison.front`; `level` is the one whose tables err, `measure` the risk.
    """
    order, rows = {name: at for at, name in enumerate(table("protections"))}, []
    for row in sorted(points.to_dicts(), key=lambda row: order.get(row["protect"] or "none", len(order))):
        risk, beaten = _ranged(row, "risk"), bool(row["dominated"])
        rows.append((
            row["setting"], named(row["protect"]), _ranged(row, "cost"), None if beaten else risk,
            risk if beaten else None, number(row["baseline"], "share"),
        ))  # fmt: skip
    best, beaten_, guess = (phrase(f"comparison.{key}") for key in ("front", "beaten", "guessing"))
    risk, cost = table("comparison.risks")[measure], phrase("comparison.cost", level=level)
    columns = (phrase("comparison.setting"), phrase("comparison.protection"), cost, best, beaten_, guess)
    found = Table("risk-utility", title, tuple(map(Column, columns)), tuple(rows), "front.parquet", keys=2)
    series = (Series(3, best, "dot"), Series(4, beaten_, "ring"), Series(5, guess, "tick"), Series(3, "", "path"))
    curves = Curves(
        "risk-against-error", title, phrase("comparison.says"), found, 2, series,
        Scale(cost, "root"), Scale(risk, zero=True), group=1, names=0,  # most that is useful has small errors
    )  # fmt: skip
    return Figure.of(curves)


def _ranged(row: dict[str, float | None], name: str) -> Cell:
    value = row[name]
    return None if value is None else Measure(value, 0, "share", row[f"{name}_low"], row[f"{name}_high"])
