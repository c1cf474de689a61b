"""How is a block of the report drawn? As SVG, in the page's colours (CSS variables) or in fixed ones, for a file.

A chart has a layout for wide and one for narrow screens, so that its text is never scaled down. Its parts are drawn by
Vega-Lite; the frame around them, the legend and maps are plain SVG.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from json import dumps
from textwrap import wrap

import vl_convert

from glasshouse.report.charts import Spec
from glasshouse.report.description import (
    Cell,
    Chart,
    Count,
    Hidden,
    Map,
    Measure,
    Series,
    Share,
    Style,
    said,
    text,
    words,
)
from glasshouse.report.maps import drawn_map, map_legend
from glasshouse.report.svg import Key, frame, label_at, size, small
from glasshouse.report.templates import asset

# The light palette is the first block of the page's style; a picture in a file takes its colours from there
LIGHT = dict(re.findall(r"--(\w+): (#\w+);", asset("audit.css").split("}", 1)[0]))
Rows = Sequence[tuple[Cell, ...]]
_SAYS = {"field": "says", "type": "nominal"}
_SHAPES = {  # by the name that Vega knows, drawn for the legend
    "circle": "M7,2a5,5 0 1,0 .001,0Z",
    "square": "M2.5,2.5h9v9h-9Z",
    "triangle-up": "M7,2L12.5,11.5h-11Z",
    "diamond": "M7,1.5L12,7L7,12.5L2,7Z",
    "triangle-down": "M7,12L1.5,2.5h11Z",
    "cross": "M5.2,2h3.6v3.2h3.2v3.6h-3.2v3.2h-3.6v-3.2h-3.2v-3.6h3.2Z",
}


def svg(block: Chart | Map, *, themed: bool) -> str:
    """A picture by itself: title, legend and all its panels."""
    parts = list(pictures(block, narrow=False))
    body, top = [], 28
    width = max(size(drawn)[0] for _, drawn in parts)
    title = wrap(block.title, max(20, int(width / 8)))
    for line in [*title, block.axis] if isinstance(block, Map) else title:
        body.append(label_at(0, top - 10, line, "ink", *((15, "bold") if line in title else (12, "normal"))))
        top += 20
    for key in legend(block) if len(legend(block)) > 1 else ():
        body.append(
            f'<g transform="translate(0,{top - 12})">{key.symbol}</g>{label_at(20, top, key.label, "muted", 12)}'
        )
        top += 18
    for name, drawn in parts:
        if name:
            body.append(label_at(0, top + 10, name, "ink", 13, "bold"))
            top += 20
        body.append(drawn.replace("<svg ", f'<svg y="{top}" ', 1))
        top += round(size(drawn)[1]) + 12
    longest = max([len(line) * 8.5 for line in title] + [20 + 6.5 * len(key.label) for key in legend(block)])
    inside = f'<g transform="translate(16,8)">{"".join(body)}</g>'
    whole = frame(max(width, longest) + 32, top + 16, text(block.says), inside, whole=True)
    return whole if themed else re.sub(r"var\(--(\w+)\)", lambda name: LIGHT.get(name[1], name[0]), whole)


def pictures(block: Chart | Map, *, narrow: bool) -> Iterator[tuple[str, str]]:
    """The parts of a picture with their titles, without a legend, in the colours of the page."""
    if isinstance(block, Map):
        yield "", drawn_map(block)
        return
    panels: dict[str, list[tuple[Cell, ...]]] = {} if block.table.rows else {"": []}
    for row in block.table.rows:
        panels.setdefault("" if block.panel is None else words(row[block.panel]), []).append(row)
    panels = {panel: rows[: block.most] for panel, rows in panels.items()}
    every = [row for rows in panels.values() for row in rows]
    for number, (panel, chosen) in enumerate(panels.items()):
        drawn = vl_convert.vegalite_to_svg(_Plot(block, chosen, every, narrow).spec(), vl_version="6.4")
        prefix = f"{block.name}-{'n' if narrow else 'w'}{number}-"
        yield panel, _own(drawn, prefix, f"{block.title}{': ' if panel else ''}{panel}. {text(block.says)}")


def legend(block: Chart | Map) -> list[Key]:
    """What the marks of a picture stand for."""
    if isinstance(block, Map):
        return map_legend(block)
    return [Key(_symbol(look, block.up), look.series.label) for look in _looks(block)]


# Charts


@dataclass(frozen=True)
class _Look:
    """How a series is drawn: its colour and shape, and by how much it stands beside its row's middle."""

    series: Series
    colour: str
    shape: str
    shift: float
    thick: float


def _looks(chart: Chart) -> list[_Look]:
    """Bars and dots take the colours in turn; what they are compared with is in the colours of text."""
    found: list[_Look] = []
    for series in chart.series:
        peers = [one for one in chart.series if one.look == series.look]
        own = series.look in ("bar", "dot")
        before = [one for one in found if (one.series.look in ("bar", "dot")) == own]
        colour = f"c{len(before) % 6 + 1}" if own else "muted" if series.look == "ring" else "ink"
        thick = 0.64 / len(peers) if series.look == "bar" else 0.0
        step = thick or (0.0 if not own else 0.12 if chart.up else 0.22)
        shift = step * (peers.index(series) - (len(peers) - 1) / 2)
        found.append(_Look(series, f"var(--{colour})", list(_SHAPES)[len(before) % len(_SHAPES)], shift, thick))
    return found


def _symbol(look: _Look, up: bool) -> str:
    inside = {
        "bar": f'<rect x="1" y="3" width="12" height="8" fill="{look.colour}"/>',
        "dot": f'<path d="{_SHAPES[look.shape]}" fill="{look.colour}"/>',
        "ring": f'<path d="{_SHAPES[look.shape]}" fill="none" stroke="{look.colour}" stroke-width="1.8"/>',
        "tick": f'<path d="{"M1,7H13" if up else "M7,1V13"}" stroke="{look.colour}" stroke-width="2.2"/>',
    }
    return small(inside[look.series.look])


def style_of(cells: Sequence[Cell]) -> Style | None:
    """How the numbers of a column are written; None: as counts."""
    for cell in cells:
        if isinstance(cell, Measure):
            return cell.style
        if isinstance(cell, (Share, Count)):
            return "share" if isinstance(cell, Share) else None
    return None


class _Plot:
    """One panel of a chart, in Vega-Lite. Rows are numbers on an axis with names: marks lie where we put them."""

    def __init__(self, chart: Chart, rows: Rows, every: Rows, narrow: bool):
        self.chart, self.rows, self.narrow = chart, rows, narrow
        cells = [row[one.column] for row in every for one in chart.series]  # of all panels: they have one scale
        self.style, self.ends = style_of(cells), [end for cell in cells for end in _ends(cell)]
        self.long = (275 if narrow else 340 if chart.panel is not None else max(300, min(560, 84 * len(rows)))) + 0.0
        self.labels = [self._label(row) for row in rows]
        self.longest = max((len(line) for label in self.labels for line in label), default=0)
        lines = max((len(label) for label in self.labels), default=1)
        self.step = max(28, 15 * lines + 8, 15 * sum(one.look in ("bar", "dot") for one in chart.series) + 10)
        number, place = self._numbers(), self._places()
        self.axes = {"x": place, "y": number} if chart.up else {"x": number, "y": place}

    def spec(self) -> Spec:
        across, down = 195 if self.narrow else 260 if self.chart.panel is not None else 400, self.step * len(self.rows)
        axis = {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "titlePadding": 8}
        axis |= {"labelColor": "var(--ink)", "titleColor": "var(--muted)", "gridColor": "var(--grid)"}
        axis |= {"domainColor": "var(--muted)", "labelLimit": 400, "ticks": False, "labelPadding": 6}
        title = {"text": self._axis(), "anchor": "start", "frame": "group", "color": "var(--muted)", "offset": 12}
        slack = (
            0 if self.chart.up else round(0.9 * self.longest)
        )  # the reader's font may be wider than the one measured
        return {
            "background": None,
            "padding": {"left": 4 + slack, "top": 6, "bottom": 4, "right": 14},
            "config": {"font": "Helvetica, Arial, sans-serif", "view": {"stroke": None}, "axis": axis},
            "width": self.long if self.chart.up else across,
            "height": 230 if self.chart.up else max(down, self.step),
            "layer": list(self._layers()),
        } | ({"title": {**title, "fontSize": 12, "fontWeight": "normal"}} if self.chart.up else {})

    def _axis(self) -> list[str]:
        said = f"{self.chart.axis} (points)" if self.style == "points" else self.chart.axis
        return wrap(said, 34 if self.narrow else 60)

    def _label(self, row: tuple[Cell, ...]) -> list[str]:
        names = [words(cell) for k, cell in enumerate(row[: self.chart.table.keys]) if k != self.chart.panel]
        wide = 15 if self.narrow else 30 if self.chart.panel is None else 20
        if self.chart.up:
            wide = max(1, int(self.long / len(self.rows) / 8))
        longest = max((len(word) for word in ", ".join(names).split()), default=1)
        if self.chart.up and longest > wide:
            wide = 18  # they will stand aslant
        lines = wrap(", ".join(names), max(wide, min(longest, 22))) or [""]
        return lines if len(lines) <= 5 else [*lines[:4], lines[4] + " \N{HORIZONTAL ELLIPSIS}"]

    def _numbers(self) -> Spec:
        low, high = min([0.0, *self.ends]), max([0.0, *self.ends]) or 1.0
        scale: Spec = {"domain": [low, high], "nice": True, "zero": True}
        if self.style == "share" and low >= 0 and 0.6 < high <= 1:
            scale = {"domain": [0, 1]}
        room = 5 - 2 * (not self.chart.up and (self.narrow or self.chart.panel is not None)) - (high >= 10_000)
        axis: Spec = {"domain": False, "title": None if self.chart.up else self._axis()}
        axis |= {"tickCount": room, "format": "~%" if self.style == "share" else ",~r"}
        if self.style == "points":
            axis |= {"labelExpr": "format(100 * datum.value, '+~g')"}
        return {"type": "quantitative", "scale": scale, "axis": axis}

    def _places(self) -> Spec:
        ends = [-0.5, max(len(self.rows), 1) - 0.5]
        scale = {"domain": ends if self.chart.up else ends[::-1], "nice": False, "zero": False}
        axis: Spec = {"values": list(range(len(self.rows))), "grid": False, "title": None, "labels": self.chart.up}
        if self.chart.up:
            axis |= {"labelExpr": f"{dumps(self.labels)}[datum.value]", "labelOverlap": False, "labelAngle": 0}
            axis |= {"title": self.chart.table.columns[0].title}
            if self.longest * 8 * len(self.rows) > self.long:
                axis |= {"labelAngle": -40, "labelAlign": "right", "labelBaseline": "middle"}
        return {"type": "quantitative", "scale": scale, "axis": axis}

    def _layer(self, mark: Spec, rows: list[Spec], *second: str, **more: Spec) -> Spec:
        """Marks at `at` and `from`; where they have an extent it is to `at2` or `to`."""
        along, across = ("x", "y") if self.chart.up else ("y", "x")
        encoding: Spec = {
            along: {"field": "at", **self.axes[along]},
            across: {"field": "from", **self.axes[across]},
            **more,
        }
        for field in second:
            encoding[f"{along if field == 'at2' else across}2"] = {"field": field}
        return {"data": {"values": rows}, "mark": mark, "encoding": encoding}

    def _layers(self) -> Iterator[Spec]:
        yield self._layer({"type": "point", "opacity": 0, "aria": False, "size": 1}, [{"at": 0, "from": 0}])  # the axes
        if not self.chart.up:
            yield self._names()
        for look in _looks(self.chart):
            yield from self._series(look, list(self._values(look)))
        hidden = [
            {"at": at, "from": 0, "says": self._says(row)}
            for at, row in enumerate(self.rows)
            if any(isinstance(row[one.column], Hidden) for one in self.chart.series)
        ]
        mark = self._text(fontStyle="italic", fill="var(--muted)", text="hidden")
        yield self._layer(mark, hidden, description=_SAYS)

    def _names(self) -> Spec:
        """The rows' names left of the axis, their lines around the middle of the row."""
        lines = [
            {"at": at + 15 / self.step * (number - (len(label) - 1) / 2), "text": line}
            for at, label in enumerate(self.labels)
            for number, line in enumerate(label)
        ]
        mark = self._text(align="right", dx=0, fontSize=12, fill="var(--ink)", aria=False)
        found = self._layer(mark, lines, text={"field": "text", "type": "nominal"})
        found["encoding"]["x"] = {"value": -8}
        return found

    def _series(self, look: _Look, rows: list[Spec]) -> Iterator[Spec]:
        drawn = [row for row in rows if row["from"] is not None]
        kind = look.series.look
        if kind == "bar":
            half = look.thick / 2
            bars = [row | {"to": 0, "at": row["at"] - half, "at2": row["at"] + half} for row in drawn]
            yield self._layer({"type": "rect", "fill": look.colour}, bars, "at2", "to", description=_SAYS)
        if kind == "dot" and self.chart.up:
            line = {"type": "line", "stroke": look.colour, "strokeWidth": 1.5, "strokeOpacity": 0.5, "aria": False}
            for joined, run in groupby(rows, lambda row: row["from"] is not None):
                if joined:
                    yield self._layer(line, list(run))
        reach = [row | {"from": row["low"], "to": row["high"]} for row in drawn if row["low"] is not None]
        rule = {"type": "rule", "strokeWidth": 2.5, "stroke": look.colour, "aria": False}
        if kind == "bar":
            rule |= {"strokeWidth": 1.5, "stroke": "var(--ink)"}
        if reach:
            yield self._layer(rule, reach, "to")
        if kind in ("dot", "ring"):
            point = {"type": "point", "shape": look.shape, "size": 80, "opacity": 1}
            dot = {"fill": look.colour, "stroke": "var(--paper)", "strokeWidth": 1}
            ring = {"fill": "transparent", "stroke": look.colour, "strokeWidth": 1.8, "size": 130}  # a dot shows in it
            yield self._layer(point | (dot if kind == "dot" else ring), drawn, description=_SAYS)
        elif kind == "tick":
            ticks = [row | {"at": row["at"] - 0.27, "at2": row["at"] + 0.27} for row in drawn]
            yield self._layer(rule | {"aria": True}, ticks, "at2", description=_SAYS)
        elif len(self.chart.series) == 1:  # past the end of the interval
            ends = [row | {"from": max(row["from"], row["high"] or row["from"])} for row in drawn]
            mark = self._text(fill="var(--ink)", aria=False)
            yield self._layer(mark, ends, text={"field": "text", "type": "nominal"})

    def _text(self, **look: object) -> Spec:
        place = {"dy": -8} if self.chart.up else {"dx": 6, "align": "left"}
        return {"type": "text", "fontSize": 11, "baseline": "middle", **place, **look}

    def _values(self, look: _Look) -> Iterator[Spec]:
        for at, row in enumerate(self.rows):
            cell = row[look.series.column]
            value, low, high = (*_ends(cell), None, None, None)[:3]
            shown = {"text": words(cell), "says": self._says(row)}
            yield {"at": at + look.shift, "from": value, "low": low, "high": high, **shown}

    def _says(self, row: tuple[Cell, ...]) -> str:
        name = ", ".join(words(cell) for cell in row[: self.chart.table.keys])
        parts = (f"{one.label}: {said(row[one.column])}" for one in self.chart.series if row[one.column] is not None)
        return f"{name}: {'; '.join(parts)}"


def _ends(cell: Cell) -> list[float]:
    """What is drawn of a cell: its number, and the ends of its interval."""
    if not isinstance(cell, (Count, Share, Measure)):
        return []
    if isinstance(cell, Count) or cell.low is None or cell.high is None:
        return [float(cell.value)]
    return [cell.value, cell.low, cell.high]


def _own(drawn: str, prefix: str, label: str) -> str:
    """A picture of Vega's with ids of its own: it counts them on from one picture to the next, we count from 0."""
    seen: dict[str, str] = {}
    ids = r'(?<=id=")\w+\d|(?<=url\(#)\w+\d'
    drawn = re.sub(ids, lambda one: seen.setdefault(one[0], f"{prefix}{len(seen)}"), drawn)
    found = re.fullmatch(r"<svg [^>]*>(.*)</svg>\s*", drawn, re.DOTALL)
    assert found is not None
    width, height = size(drawn)
    inside = re.sub(r'<path class="(?:back|fore)ground"[^>]*?/>', "", found[1])  # they draw nothing
    inside = re.sub(r' (?:pointer-events="none"|opacity="1"|font-family="[^"]*"|role="graphics-object")', "", inside)
    inside = re.sub(r' aria-roledescription="[^"]*(?:container|axis)"', "", inside)
    inside = re.sub(r' role="graphics-symbol" aria-label="[XY]-axis[^"]*"', ' aria-hidden="true"', inside)
    inside = re.sub(r' role="graphics-symbol"( aria-roledescription="[^"]*")?', ' role="img"', inside)
    return frame(width, height, label, inside)
