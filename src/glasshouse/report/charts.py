"""How is a table drawn? A few kinds of chart, described once, rendered to SVG without a network or a browser.

A picture is a frozen description; its Vega-Lite specification is plain data, so no charting layer is needed on top.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import vl_convert

from glasshouse.files.output import private_file

# Okabe and Ito's colours, which colour-blind readers can tell apart
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_DASHED = {"type": "rule", "strokeDash": [4, 4], "color": "#555555"}

Spec = dict[str, Any]


@dataclass(frozen=True)
class Axis:
    """A column of the data, what to call it, and whether its scale is logarithmic or starts at 0."""

    column: str
    title: str = ""
    log: bool = False
    zero: bool = False

    def number(self) -> Spec:
        scale: Spec = {"type": "log"} if self.log else {"zero": self.zero, "nice": True}
        return {"field": self.column, "type": "quantitative", "title": self.title or None, "scale": scale}

    def step(self, **more: object) -> Spec:
        return {"field": self.column, "type": "ordinal", "title": self.title or None, **more}

    def colour(self, data: pl.DataFrame) -> Spec:
        order = data[self.column].unique(maintain_order=True).to_list()
        scale = {"range": list(COLOURS), "domain": order}
        return {"field": self.column, "type": "nominal", "title": self.title or None, "scale": scale}


@dataclass(frozen=True)
class Lines:
    """Lines over a number, one per group, side by side in panels; dashed rules mark values to compare with."""

    title: str
    data: pl.DataFrame
    x: Axis
    y: Axis
    group: Axis
    panel: str | None = None
    points: bool = False
    rule_x: float | None = None
    rule_y: float | None = None

    def spec(self) -> Spec:
        if self.panel is None:
            return {"title": self.title, **self._panel(self.data)}
        panels = [
            {"title": str(name), **self._panel(part)}
            for (name,), part in self.data.group_by(self.panel, maintain_order=True)
        ]
        return {"title": self.title, "hconcat": panels, "resolve": {"scale": {"color": "independent"}}}

    def _panel(self, data: pl.DataFrame) -> Spec:
        encoding = {"x": self.x.number(), "y": self.y.number(), "color": self.group.colour(data)}
        layers: list[Spec] = [
            {
                "data": {"values": data.to_dicts()},
                "mark": {"type": "line", "point": self.points, "clip": True},
                "encoding": encoding,
            }
        ]
        for axis, value in (("x", self.rule_x), ("y", self.rule_y)):
            if value is not None:
                at = {axis: {"field": "at", "type": "quantitative"}}
                layers.append({"data": {"values": [{"at": value}]}, "mark": _DASHED, "encoding": at})
        return {"width": 340, "height": 260, "layer": layers}


@dataclass(frozen=True)
class Tiles:
    """Coloured tiles over two numbers, in a grid of panels."""

    title: str
    data: pl.DataFrame
    x: Axis
    y: Axis
    group: Axis
    row: Axis
    column: Axis

    def spec(self) -> Spec:
        return {
            "title": self.title,
            "data": {"values": self.data.to_dicts()},
            "mark": {"type": "rect"},
            "width": 150,
            "height": 220,
            "encoding": {
                "x": self.x.step(),
                "y": self.y.step(sort="descending", axis={"labelOverlap": True}),
                "color": self.group.colour(self.data.sort(self.group.column)),
                "row": {"field": self.row.column, "type": "nominal", "title": self.row.title or None},
                "column": {"field": self.column.column, "type": "nominal", "title": self.column.title or None},
            },
        }


def write(picture: Lines | Tiles, path: Path) -> None:
    """Write a picture as SVG, for the owner alone."""
    spec = {"config": {"background": "white", "title": {"anchor": "start"}}, **picture.spec()}
    with private_file(path) as stream:
        stream.write(vl_convert.vegalite_to_svg(spec, vl_version="6.4").encode())
