"""Which table would an office withhold first? A bar for each, as long as the claims that depend on it."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from glasshouse.report.charts import COLOURS, Spec

MOST = 25  # bars that are read
WORDS = {"withheld": "lost when the table is withheld", "added": "gained when the table is added"}


@dataclass(frozen=True)
class Leaks:
    """Horizontal bars, the longest on top; with the ends of their intervals where they have any."""

    title: str
    data: pl.DataFrame

    def spec(self) -> Spec:
        order = self.data["table"].to_list()
        y = {"field": "table", "type": "nominal", "sort": order, "title": None, "axis": {"labelLimit": 260}}
        x: Spec = {"field": "share", "type": "quantitative", "title": "share of the verified claims (more is worse)"}
        x["axis"] = {"format": ".0%"}
        x["scale"] = {"domainMin": 0}
        shown = [change for change in WORDS if change in self.data["change"]]
        colours = [list(WORDS).index(change) for change in shown]
        worded = self.data.with_columns(pl.col("change").replace_strict(WORDS).alias("what"))
        colour = {
            "field": "what", "type": "nominal", "title": None,
            "legend": {"orient": "bottom", "columnPadding": 60, "labelLimit": 400},
            "scale": {"domain": [WORDS[change] for change in shown], "range": [COLOURS[change] for change in colours]},
        }  # fmt: skip
        text = {"field": "share", "type": "quantitative", "format": ".1%"}
        ends = {"y": y, "x": {**x, "field": "low"}, "x2": {"field": "high"}, "color": {"value": "#222222"}}
        label = {"mark": {"type": "text", "align": "left", "dx": 6, "fontSize": 10},
                 "encoding": {"y": y, "x": {**x, "field": "end"}, "text": text}}  # fmt: skip
        layers = [
            {"mark": "bar", "encoding": {"y": y, "x": x, "color": colour}},
            {"mark": "rule", "encoding": ends},
            label,
        ]
        values = worded.with_columns(pl.max_horizontal("share", "high").alias("end")).to_dicts()
        title = {
            "text": self.title,
            "subtitle": "thin lines: 95% intervals over blocks; tables overlap, so shares do not add up",
        }
        return {"title": title, "width": 460, "height": {"step": 18}, "data": {"values": values}, "layer": layers}


def picture(by_table: pl.DataFrame) -> Leaks:
    """The tables on which most claims depend."""
    shown = by_table.filter(pl.col("claims") > 0, pl.col("share").is_not_null()).head(MOST)
    if not shown.height:  # all bars are 0 long, and some are drawn to say so
        none = by_table.head(MOST).with_columns(pl.lit(0.0).alias("share"))
        return Leaks("No single table decides any claim: others say the same", none)
    first = shown.row(0, named=True)
    verb = "depend on" if first["change"] == "withheld" else "would come with"
    return Leaks(f"{first['share']:.0%} of the verified claims {verb} {first['table']}", shown)
