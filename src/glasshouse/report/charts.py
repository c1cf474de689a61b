"""How is a table drawn? A few kinds of chart, described once, rendered to SVG without a network or a browser.

A picture is a frozen description; its Vega-Lite specification is plain data, so no charting layer is needed on top.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import vl_convert

from glasshouse.files.output import private_file

# Okabe and Ito's colours, which colour-blind readers can tell apart
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
# from pale to dark of one hue, so that the order is plain without colour too
SHADES = ("#DCE9F5", "#B7D3EA", "#85B5DB", "#4E93C6", "#2470B0", "#0B4A86", "#062A52")
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
class Bands:
    """Rates by step, each with its interval, one line per group, side by side in panels; the y axis is a share."""

    title: str
    data: pl.DataFrame  # the columns of all axes, low, high
    x: Axis
    steps: tuple[str, ...]  # of x, in order
    y: Axis
    group: Axis
    panel: str

    def spec(self) -> Spec:
        colour = self.group.colour(self.data)  # the same in every panel
        panels = [
            {"title": str(name), **self._panel(part, colour)}
            for (name,), part in self.data.group_by(self.panel, maintain_order=True)
        ]
        return {"title": self.title, "hconcat": panels or [{"mark": "point", "data": {"values": []}}]}

    def _panel(self, data: pl.DataFrame, colour: Spec) -> Spec:
        shift = {"xOffset": {"field": self.group.column, "type": "nominal", "sort": colour["scale"]["domain"]}}
        x = self.x.step(sort=list(self.steps), axis={"labelAngle": -40})
        y = self.y.number() | {"scale": {"domain": [0, 1]}, "axis": {"format": "%"}}
        values = {"values": data.to_dicts()}
        ends = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour, **shift}
        line = {"type": "line", "strokeWidth": 1, "opacity": 0.5}
        points = {"type": "point", "filled": True, "size": 30}
        at = {"x": x, "y": y, "color": colour}
        return {
            "width": 270,
            "height": 280,
            "layer": [
                {"data": values, "mark": line, "encoding": {**at, **shift}},
                {"data": values, "mark": {"type": "rule", "strokeWidth": 2}, "encoding": ends},
                {"data": values, "mark": points, "encoding": {**at, **shift}},
            ],
        }


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


@dataclass(frozen=True)
class Curve:
    """A line over a number inside the band from `low` to `high`; hollow marks are values to compare with."""

    title: str
    data: pl.DataFrame  # the columns of both axes, low, high
    x: Axis
    y: Axis
    marks: pl.DataFrame | None = None  # the columns of both axes

    def layers(self, x: Spec, y: Spec) -> list[Spec]:
        colour = COLOURS[1]
        ends = {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}}
        band = {"type": "area", "color": colour, "opacity": 0.25, "clip": True}
        line = {
            "type": "line",
            "color": colour,
            "strokeWidth": 2.5,
            "clip": True,
            "point": {"color": colour, "size": 20},
        }
        values = {"values": self.data.to_dicts()}
        layers: list[Spec] = [
            {"data": values, "mark": band, "encoding": ends},
            {"data": values, "mark": line, "encoding": {"x": x, "y": y}},
        ]
        if self.marks is not None:
            hollow = {"type": "point", "shape": "circle", "size": 90, "color": COLOURS[-1], "strokeWidth": 1.8}
            marks = {"values": self.marks.to_dicts()}
            layers.append({"data": marks, "mark": {**hollow, "filled": False}, "encoding": {"x": x, "y": y}})
        return layers


@dataclass(frozen=True)
class Density:
    """Where most things lie: tiles over two numbers, shaded by how many, a curve through them, and a curve below.

    A tile has `left, right, bottom, top` and a shade, one of `shades` in order. Tiles of things that are exactly 0 lie
    in the `strip` below 0, from its bottom to its top, which is labelled so. The x axis is logarithmic over `reach`.
    """

    title: str
    tiles: pl.DataFrame
    shade: Axis
    shades: tuple[str, ...]
    reach: tuple[float, float]
    strip: tuple[float, float]
    over: Curve
    below: Curve

    def spec(self) -> Spec:
        left, right = self.reach
        ticks = [digit * 10**power for power in range(7) for digit in (1, 2, 5) if left < digit * 10**power < right]
        x = self.over.x.number()
        x |= {"scale": {"type": "log", "domain": [left, right], "nice": False}, "axis": {"values": ticks}}
        return {
            "title": self.title,
            "vconcat": [
                {"title": _small(self.over.title), "width": 500, "height": 260, "layer": self._upper(x)},
                {"title": _small(self.below.title), "width": 500, "height": 150, "layer": self._lower(x)},
            ],
        }

    def _upper(self, x: Spec) -> list[Spec]:
        top = max(self.tiles.select(pl.col("top").max()).item(), 0.1)  # where all are 0 there is still an axis
        y = self.over.y.number() | {"scale": {"domain": [self.strip[0], top], "nice": False, "zero": False}}
        every = next(step for step in (0.02, 0.05, 0.1, 0.2) if top <= 6 * step or step == 0.2)
        ticks = [round(every * k, 2) for k in range(1, int(top / every) + 1)]
        label = "datum.value < 0 ? 'exactly 0' : format(datum.value, '.2~f')"
        y["axis"] = {"values": [sum(self.strip) / 2, *ticks], "labelExpr": label, "titlePadding": 14}
        spread = [round(k * (len(SHADES) - 1) / max(len(self.shades) - 1, 1)) for k in range(len(self.shades))]
        scale = {"domain": list(self.shades), "range": [SHADES[k] for k in spread]}
        tiles = {
            "data": {"values": self.tiles.to_dicts()},
            "mark": {"type": "rect", "stroke": "white", "strokeWidth": 0.4, "aria": False},  # no label for each tile
            "encoding": {
                "x": {**x, "field": "left"},
                "x2": {"field": "right"},
                "y": {**y, "field": "bottom"},
                "y2": {"field": "top"},
                "color": self.shade.step(scale=scale),
            },
        }
        return [tiles, *self.over.layers(x, y)]

    def _lower(self, x: Spec) -> list[Spec]:
        return self.below.layers(x, self.below.y.number() | {"scale": {"domain": [0, 1]}})


def _small(text: str) -> Spec:
    return {"text": text, "fontSize": 11, "fontWeight": "normal", "frame": "group"}


def write(picture: Lines | Bands | Tiles | Density, path: Path) -> None:
    """Write a picture as SVG, for the owner alone."""
    spec = {"config": {"background": "white", "title": {"anchor": "start"}}, **picture.spec()}
    drawn = vl_convert.vegalite_to_svg(spec, vl_version="6.4")
    seen: dict[str, str] = {}  # the renderer counts on from one picture to the next; we count from 0
    drawn = re.sub(r"clip\d+", lambda clip: seen.setdefault(clip[0], f"clip{len(seen)}"), drawn)
    with private_file(path) as stream:
        stream.write(drawn.encode())
