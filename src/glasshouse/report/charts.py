"""How is a table drawn? A few kinds of chart, described once, rendered to SVG without a network or a browser.

A picture is a frozen description; its Vega-Lite specification is plain data, so no charting layer is needed on top.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import polars as pl
import vl_convert

from glasshouse.files.output import private_file

# Okabe and Ito's colours, which colour-blind readers can tell apart
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-right")
# from pale to dark of one hue, so that the order is plain without colour too
SHADES = ("#DCE9F5", "#B7D3EA", "#85B5DB", "#4E93C6", "#2470B0", "#0B4A86", "#062A52")
_DASHED = {"type": "rule", "strokeDash": [4, 4], "color": "#555555"}

Spec = dict[str, Any]


class Picture(Protocol):
    """Anything that can describe itself as a Vega-Lite specification."""

    def spec(self) -> Spec: ...


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
    """Lines over a number, one per group, side by side in panels; dashed rules mark values to compare with.

    `columns` puts the panels in a grid with one legend for all. `marks` are points of their own, with a shape for each
    group. `nested` draws the first groups narrow over the wider later ones, so that lines that coincide are all seen.
    """

    title: str
    data: pl.DataFrame
    x: Axis
    y: Axis
    group: Axis
    panel: str | None = None
    points: bool = False
    rule_x: float | None = None
    rule_y: float | None = None
    columns: int | None = None
    marks: pl.DataFrame | None = None
    nested: bool = False

    def spec(self) -> Spec:
        if self.panel is None:
            return {"title": self.title, **self._panel(self.data, self.marks)}
        panels = [
            {"title": str(name) if self.columns is None else small(str(name)), **self._panel(part, self._marks(name))}
            for (name,), part in self.data.group_by(self.panel, maintain_order=True)
        ]
        if self.columns is not None:
            return {"title": self.title, "concat": panels, "columns": self.columns, "spacing": 25}
        return {"title": self.title, "hconcat": panels, "resolve": {"scale": {"color": "independent"}}}

    def _marks(self, panel: object) -> pl.DataFrame | None:
        return None if self.marks is None or self.panel is None else self.marks.filter(pl.col(self.panel) == panel)

    def _panel(self, data: pl.DataFrame, marks: pl.DataFrame | None) -> Spec:
        colour = self.group.colour(data if self.columns is None else self.data)
        encoding = {"x": self.x.number(), "y": self.y.number(), "color": colour}
        layers = self._nested(data, encoding) if self.nested else [self._line(data, encoding)]
        if marks is not None:
            shape = {key: colour[key] for key in ("field", "type", "title")}
            shape["scale"] = {"domain": colour["scale"]["domain"], "range": list(SHAPES)}
            drawn = {"type": "point", "size": 24, "strokeWidth": 1.2, "fill": "white", "opacity": 1, "aria": False}
            values = {"values": marks.to_dicts()}
            layers.append({"data": values, "mark": drawn, "encoding": {**encoding, "shape": shape}})
        for axis, value in (("x", self.rule_x), ("y", self.rule_y)):
            if value is not None:
                at = {axis: {"field": "at", "type": "quantitative"}}
                layers.append({"data": {"values": [{"at": value}]}, "mark": _DASHED, "encoding": at})
        width, height = (340, 260) if self.columns is None else (230, 190)
        return {"width": width, "height": height, "layer": layers}

    def _line(self, data: pl.DataFrame, encoding: Spec, **more: object) -> Spec:
        mark = {"type": "line", "point": self.points, "clip": True, **more}
        return {"data": {"values": data.to_dicts()}, "mark": mark, "encoding": encoding}

    def _nested(self, data: pl.DataFrame, encoding: Spec) -> list[Spec]:
        groups = list(data.group_by(self.group.column, maintain_order=True))
        return [
            self._line(part, encoding, strokeWidth=1.5 + 2.5 * number)
            for number, (_, part) in reversed(list(enumerate(groups)))
        ]


@dataclass(frozen=True)
class Bars:
    """Bars by step, one beside the other for each group, with their numbers above; or many narrow ones, without."""

    title: str
    data: pl.DataFrame
    x: Axis
    y: Axis
    group: Axis
    side_by_side: bool = True
    colours: tuple[str, ...] = COLOURS  # of the groups, in the order of the data
    numbers: str = ".3f"  # how they are written

    def spec(self) -> Spec:
        x = self.x.step(sort=None, axis={"labelAngle": 0} if self.side_by_side else {"labels": False, "ticks": False})
        encoding = {"x": x, "y": self.y.number() | {"scale": {"zero": True}}, "color": self.group.colour(self.data)}
        encoding["color"]["scale"]["range"] = list(self.colours)
        values = {"values": self.data.to_dicts()}
        if not self.side_by_side:
            mark = {"type": "bar", "aria": False}
            return {
                "title": self.title,
                "width": 560,
                "height": 240,
                "data": values,
                "mark": mark,
                "encoding": encoding,
            }
        order = encoding["color"]["scale"]["domain"]
        encoding["xOffset"] = {"field": self.group.column, "type": "nominal", "sort": order}
        label = {"type": "text", "dy": -6, "fontSize": 10}
        text = {"field": self.y.column, "type": "quantitative", "format": self.numbers}
        above = {key: encoding[key] for key in ("x", "y", "xOffset")} | {"text": text}
        layers = [{"mark": "bar", "encoding": encoding}, {"mark": label, "encoding": above}]
        return {"title": self.title, "width": 330, "height": 240, "data": values, "layer": layers}


@dataclass(frozen=True)
class Map:
    """Places as points where they lie, a colour and a shape for each kind; thin lines lead from some to a ringed one.

    `points` has `x, y`, the columns of `kind`, `size` and `panel`; `joined` has `x, y, x2, y2` and `panel`. One unit is
    as long in x as in y. The kinds that come first are drawn below the others.
    """

    title: str
    points: pl.DataFrame
    joined: pl.DataFrame
    kind: Axis
    kinds: dict[str, tuple[str, str]]  # the colour and the shape of each
    size: Axis
    panel: str
    columns: int = 4

    def spec(self) -> Spec:
        panels = [
            self._panel(str(name), part, self.joined.filter(pl.col(self.panel) == name))
            for (name,), part in self.points.group_by(self.panel, maintain_order=True)
        ]
        return {"title": self.title, "concat": panels, "columns": min(self.columns, len(panels)), "spacing": 12}

    def _panel(self, name: str, points: pl.DataFrame, joined: pl.DataFrame) -> Spec:
        side = 480 if self.points[self.panel].n_unique() == 1 else 210
        ends = {axis: (self.points[axis].min(), self.points[axis].max()) for axis in ("x", "y")}
        half = max(max(float(high) - float(low) for low, high in ends.values()) * 0.53, 1e-9)  # type: ignore[arg-type]
        axes = {}
        for axis, (low, high) in ends.items():
            middle = (float(low) + float(high)) / 2  # type: ignore[arg-type]  # there is at least one point
            scale = {"domain": [middle - half, middle + half], "nice": False, "zero": False}
            axes[axis] = {"field": axis, "type": "quantitative", "axis": None, "scale": scale}
        kinds = list(self.kinds)
        colour, shape = ([self.kinds[kind][number] for kind in kinds] for number in (0, 1))
        named = {"field": self.kind.column, "type": "nominal", "title": self.kind.title or None}
        size = self.size.number() | {
            "scale": {"type": "sqrt", "range": [6, side / 3]},
            "legend": {"symbolType": "circle"},
        }
        encoding = {
            **axes,
            "color": {**named, "scale": {"domain": kinds, "range": colour}},
            "shape": {**named, "scale": {"domain": kinds, "range": shape}},
            "size": size,
        }
        points = points.sort(pl.col(self.kind.column).replace_strict(kinds, range(len(kinds))), maintain_order=True)
        mark = {"type": "point", "filled": True, "opacity": 0.9, "aria": False}
        layers: list[Spec] = [{"data": {"values": points.to_dicts()}, "mark": mark, "encoding": encoding}]
        if joined.height:
            line = {"type": "rule", "strokeWidth": 0.7, "opacity": 0.65, "color": COLOURS[-1], "aria": False}
            reach = {**axes, "x2": {"field": "x2"}, "y2": {"field": "y2"}}
            layers.append({"data": {"values": joined.to_dicts()}, "mark": line, "encoding": reach})
            ring = {"type": "point", "size": side / 2, "strokeWidth": 1.5, "color": COLOURS[-1], "aria": False}
            ends_at = {axis: {**axes[axis], "field": f"{axis}2"} for axis in ("x", "y")}
            last = {"values": joined.select("x2", "y2").unique(maintain_order=True).to_dicts()}
            layers.append({"data": last, "mark": ring, "encoding": ends_at})
        return {"title": small(name), "width": side, "height": side, "layer": layers}


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
                {"title": small(self.over.title), "width": 500, "height": 260, "layer": self._upper(x)},
                {"title": small(self.below.title), "width": 500, "height": 150, "layer": self._lower(x)},
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


def small(text: str) -> Spec:
    """The title of a panel."""
    return {"text": text, "fontSize": 11, "fontWeight": "normal", "frame": "group"}


def write(picture: Picture, path: Path) -> None:
    """Write a picture as SVG, for the owner alone."""
    spec = {
        "config": {"background": "white", "title": {"anchor": "start"}, "legend": {"labelLimit": 0}},
        **picture.spec(),
    }
    drawn = vl_convert.vegalite_to_svg(spec, vl_version="6.4")
    seen: dict[str, str] = {}  # the renderer counts on from one picture to the next; we count from 0
    drawn = re.sub(r"(clip|gradient_)\d+", lambda one: seen.setdefault(one[0], f"{one[1]}{len(seen)}"), drawn)
    with private_file(path) as stream:
        stream.write(drawn.encode())
