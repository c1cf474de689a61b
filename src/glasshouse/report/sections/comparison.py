"""What does a decision-maker see of several protections? One chart: risk against error, and which are worth a look."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from glasshouse.report.charts import COLOURS, Spec

NAMES = {
    "": "nothing", "swap": "swapping", "topdown": "TopDown", "relocate": "relocation", "noise": "noise on tables",
    "round": "rounding", "suppress": "suppression", "cellkey": "cell key",
}  # fmt: skip
MARKS = (0, 0.01, 0.03, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4)  # of the axis of errors
SHAPES = ("cross", "circle", "square", "triangle-up", "diamond", "triangle-down", "triangle-left", "triangle-right")


@dataclass(frozen=True)
class RiskUtility:
    """Every setting a point with its intervals; a line joins those that no other beats in both; the baseline dashed."""

    title: str
    points: pl.DataFrame  # of `assess.comparison.front`
    risk: str
    cost: str

    def spec(self) -> Spec:
        data = self.points.with_columns(
            kind=pl.col("protect").replace_strict(NAMES), words=pl.col("setting"),
            beaten=pl.when("dominated").then(pl.lit("another is better in both")).otherwise(pl.lit("on the front")),
        )  # fmt: skip
        present = [name for name in NAMES.values() if name in set(data["kind"])]
        x = {
            "field": "cost", "type": "quantitative", "title": self.cost,
            "axis": {"format": ".0%", "values": list(MARKS)},
            "scale": {"type": "sqrt"},  # most that is useful has small errors
        }  # fmt: skip
        y = {"field": "risk", "type": "quantitative", "title": self.risk, "axis": {"format": ".0%"}}
        colour = {
            "field": "kind", "type": "nominal", "title": "protection",
            "scale": {"domain": present, "range": [COLOURS[i % len(COLOURS)] for i in range(len(present))]},
        }  # fmt: skip
        shape = {**colour, "scale": {"domain": present, "range": list(SHAPES[: len(present)])}}
        values = {"values": data.to_dicts()}
        front = {"values": data.filter(~pl.col("dominated")).sort("cost").to_dicts()}
        layers: list[Spec] = [
            {
                "data": front, "mark": {"type": "line", "color": "#999999", "strokeWidth": 1},
                "encoding": {"x": x, "y": y},
            },
            {
                "data": values, "mark": {"type": "rule", "opacity": 0.6},
                "encoding": {"x": x, "y": {**y, "field": "risk_low"}, "y2": {"field": "risk_high"}, "color": colour},
            },
            {
                "data": values, "mark": {"type": "rule", "opacity": 0.6},
                "encoding": {"x": {**x, "field": "cost_low"}, "x2": {"field": "cost_high"}, "y": y, "color": colour},
            },
            {
                "data": values, "mark": {"type": "point", "size": 70, "strokeWidth": 1.6},
                "encoding": {
                    "x": x, "y": y, "color": colour, "shape": shape,
                    "fillOpacity": {"condition": {"test": "datum.dominated", "value": 0}, "value": 1},
                    "fill": colour,
                },
            },
            {
                "data": values,
                "mark": {"type": "text", "align": "left", "dx": 7, "dy": -6, "fontSize": 9, "color": "#333333"},
                "encoding": {"x": x, "y": y, "text": {"field": "words"}},
            },
        ]  # fmt: skip
        guesses = {"values": data.filter(pl.col("baseline").is_not_null()).to_dicts()}
        tick = {"type": "tick", "orient": "horizontal", "size": 14, "thickness": 1.5, "color": "#888888"}
        layers.insert(0, {"data": guesses, "mark": tick, "encoding": {"x": x, "y": {**y, "field": "baseline"}}})
        subtitle = (
            "hollow: another is better in both; lines: 95% over seeds; grey ticks: guessing from the same release"
        )
        return {
            "title": {"text": self.title, "subtitle": subtitle}, "width": 560, "height": 380, "layer": layers,
            "resolve": {"legend": {"color": "shared", "shape": "shared"}},
        }  # fmt: skip
