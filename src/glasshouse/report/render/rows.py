"""How is a table drawn row by row? Bars, dots and boxes, one position for each row, down the page or across it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from json import dumps
from textwrap import wrap

from glasshouse.report.description import (
    Cell,
    Chart,
    Count,
    Hidden,
    Measure,
    Series,
    Share,
    Style,
    said,
    value_of,
    words,
)
from glasshouse.report.render.svg import Key, small
from glasshouse.report.render.vega import Spec
from glasshouse.report.theme import COLOURS
from glasshouse.report.words import phrase

Rows = Sequence[tuple[Cell, ...]]
SAYS = {"field": "says", "type": "nominal"}
_OWN = ("bar", "dot", "box")  # looks that take the colours in turn
AXES = {
    "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal", "titlePadding": 8,
    "labelColor": "var(--ink)", "titleColor": "var(--muted)", "gridColor": "var(--grid)",
    "domainColor": "var(--muted)", "labelLimit": 400, "ticks": False, "labelPadding": 6,
}  # fmt: skip
MARKS = {  # by the name that Vega knows, drawn for the legend
    "circle": "M7,2a5,5 0 1,0 .001,0Z",
    "square": "M2.5,2.5h9v9h-9Z",
    "triangle-up": "M7,2L12.5,11.5h-11Z",
    "diamond": "M7,1.5L12,7L7,12.5L2,7Z",
    "triangle-down": "M7,12L1.5,2.5h11Z",
    "cross": "M5.2,2h3.6v3.2h3.2v3.6h-3.2v3.2h-3.6v-3.2h-3.2v-3.6h3.2Z",
}


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
        own = series.look in _OWN
        before = [one for one in found if (one.series.look in _OWN) == own]
        compared = "var(--muted)" if series.look == "ring" else "var(--ink)"
        colour = COLOURS[len(before) % len(COLOURS)] if own else compared
        thick = 0.64 / len(peers) if series.look in ("bar", "box") else 0.0
        step = thick or (0.0 if not own else 0.12 if chart.up else 0.22)
        shift = step * (peers.index(series) - (len(peers) - 1) / 2)
        if chart.bare or chart.stacked:  # bars of many places, each of one series; or end to end
            thick, shift = 0.9 if chart.bare else 0.64, 0.0
        found.append(_Look(series, colour, list(MARKS)[len(before) % len(MARKS)], shift, thick))
    return found


def legend(chart: Chart) -> list[Key]:
    """What the marks stand for."""
    return [Key(_symbol(look, chart.up), look.series.label) for look in _looks(chart)]


def _symbol(look: _Look, up: bool) -> str:
    inside = {
        "bar": f'<rect x="1" y="3" width="12" height="8" fill="{look.colour}"/>',
        "box": f'<rect x="1" y="3" width="12" height="8" fill="{look.colour}"/>',
        "dot": f'<path d="{MARKS[look.shape]}" fill="{look.colour}"/>',
        "ring": f'<path d="{MARKS[look.shape]}" fill="none" stroke="{look.colour}" stroke-width="1.8"/>',
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


class Plot:
    """One panel of a chart, in Vega-Lite. Rows are numbers on an axis with names: marks lie where we put them."""

    def __init__(self, chart: Chart, rows: Rows, every: Rows, narrow: bool):
        self.chart, self.rows, self.narrow = chart, rows, narrow
        drawn = [at for one in chart.series for at in (one.column, *one.box)]
        cells = [row[at] for row in every for at in drawn]  # of all panels: they have one scale
        self.style, self.ends = style_of(cells), [end for cell in cells for end in ends(cell)]
        if chart.stacked:
            self.ends += [sum(value_of(row[one.column]) or 0 for one in chart.series) for row in every]
        self.long = (275 if narrow else 340 if chart.panel is not None else max(300, min(560, 84 * len(rows)))) + 0.0
        self.labels = [[""] if chart.bare else self._label(row) for row in rows]
        bars = sum(one.look == "bar" for one in chart.series)
        self.numbers = len(chart.series) == 1 or bars == len(chart.series)
        self.numbers &= not (chart.bare or chart.stacked) and (
            not chart.up or bars * len(rows) <= 24
        )  # else they would run together
        self.longest = max((len(line) for label in self.labels for line in label), default=0)
        lines = max((len(label) for label in self.labels), default=1)
        beside = 1 if chart.stacked else sum(one.look in _OWN for one in chart.series)
        self.step = max(28, 15 * lines + 8, 15 * beside + 10)
        number, place = self._numbers(), self._places()
        self.axes = {"x": place, "y": number} if chart.up else {"x": number, "y": place}

    def spec(self) -> Spec:
        across, down = 195 if self.narrow else 260 if self.chart.panel is not None else 400, self.step * len(self.rows)
        title = {"text": self._axis(), "anchor": "start", "frame": "group", "color": "var(--muted)", "offset": 12}
        slack = (
            0 if self.chart.up else round(0.9 * self.longest)
        )  # the reader's font may be wider than the one measured
        return {
            "background": None,
            "padding": {"left": 4 + slack, "top": 6, "bottom": 4, "right": 14},
            "config": {"font": "Helvetica, Arial, sans-serif", "view": {"stroke": None}, "axis": AXES},
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
        if self.chart.scale == "root":  # most are near 0, and some are 0: the root keeps them apart
            scale = {"type": "sqrt", "domain": [0, 1.06 * high], "nice": False}
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
            keys = [at for at in range(self.chart.table.keys) if at != self.chart.panel]
            axis |= {"title": self.chart.table.columns[keys[0]].title}
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
        unseen = {"type": "point", "opacity": 0, "aria": False, "size": 1, "stroke": "var(--none)"}
        yield self._layer(unseen, [{"at": 0, "from": 0}])  # the axes
        if not self.chart.up:
            yield self._names()
        for look in _looks(self.chart):
            yield from self._series(look, list(self._values(look)))
        if self.chart.rule is not None and self.rows:
            ends_ = [{"at": -0.5, "at2": len(self.rows) - 0.5, "from": self.chart.rule}]
            dashed = {"type": "rule", "stroke": "var(--muted)", "strokeDash": [4, 4], "aria": False}
            yield self._layer(dashed, ends_, "at2")
        hidden = [
            {"at": at, "from": 0, "says": self._says(row)}
            for at, row in enumerate(self.rows)
            if any(isinstance(row[one.column], Hidden) for one in self.chart.series)
        ]
        mark = self._text(fontStyle="italic", fill="var(--muted)", text=phrase("page.hidden"))
        yield self._layer(mark, hidden, description=SAYS)

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
            bars = [row | {"at": row["at"] - half, "at2": row["at"] + half} for row in drawn]
            yield self._layer({"type": "rect", "fill": look.colour}, bars, "at2", "to", description=SAYS)
        if kind == "dot" and self.chart.up:
            line = {"type": "line", "stroke": look.colour, "strokeWidth": 1.5, "strokeOpacity": 0.5, "aria": False}
            for joined, run in groupby(rows, lambda row: row["from"] is not None):
                if joined:
                    yield self._layer(line, list(run))
        if kind == "box":
            yield from self._boxes(look)
            return
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
            yield self._layer(point | (dot if kind == "dot" else ring), drawn, description=SAYS)
        elif kind == "tick":
            ticks = [row | {"at": row["at"] - 0.27, "at2": row["at"] + 0.27} for row in drawn]
            yield self._layer(rule | {"aria": True}, ticks, "at2", description=SAYS)
        elif kind == "bar" and self.numbers:  # past the end of the interval
            ends = [row | {"from": max(row["from"], row["high"] or row["from"])} for row in drawn]
            mark = self._text(fill="var(--ink)", aria=False)
            yield self._layer(mark, ends, text={"field": "text", "type": "nominal"})

    def _boxes(self, look: _Look) -> Iterator[Spec]:
        """Quartiles and median, whiskers, and the largest as a ring."""
        rows: list[Spec] = []
        for at, row in enumerate(self.rows):
            numbers = [value_of(row[column]) for column in (look.series.column, *look.series.box)]
            if None not in numbers:
                names = ("median", "low", "q1", "q3", "high", "largest")
                rows.append(dict(zip(names, numbers, strict=True)) | {"at": at + look.shift, "says": self._says(row)})
        thin = {"type": "rule", "strokeWidth": 1.3, "stroke": look.colour, "aria": False}
        yield self._layer(thin, [row | {"from": row["low"], "to": row["high"]} for row in rows], "to")
        sides = {half: look.thick * part / 2 for half, part in (("at", -0.85), ("at2", 0.85))}
        wide = [row | {half: row["at"] + by for half, by in sides.items()} for row in rows]
        box = {"type": "rect", "fill": look.colour}
        quartiles = [row | {"from": row["q1"], "to": row["q3"]} for row in wide]
        yield self._layer(box, quartiles, "at2", "to", description=SAYS)
        middle = {"type": "rule", "strokeWidth": 2, "stroke": "var(--ink)", "aria": False}
        yield self._layer(middle, [row | {"from": row["median"]} for row in wide], "at2")
        ring = {"type": "point", "size": 18, "fill": "transparent", "stroke": look.colour, "opacity": 1, "aria": False}
        yield self._layer(ring, [row | {"from": row["largest"]} for row in rows])

    def _text(self, **look: object) -> Spec:
        place = {"dy": -8} if self.chart.up else {"dx": 6, "align": "left"}
        return {"type": "text", "fontSize": 11, "baseline": "middle", **place, **look}

    def _values(self, look: _Look) -> Iterator[Spec]:
        for at, row in enumerate(self.rows):
            cell = row[look.series.column]
            value, low, high = (*ends(cell), None, None, None)[:3]
            shown = {"text": words(cell), "says": self._says(row)}
            begin = 0.0
            if self.chart.stacked and value is not None:
                before = self.chart.series[: self.chart.series.index(look.series)]
                begin = sum(value_of(row[one.column]) or 0.0 for one in before)
                value += begin
            yield {"at": at + look.shift, "from": value, "to": begin, "low": low, "high": high, **shown}

    def _says(self, row: tuple[Cell, ...]) -> str:
        name = ", ".join(words(cell) for cell in row[: self.chart.table.keys])
        parts = (f"{one.label}: {said(row[one.column])}" for one in self.chart.series if row[one.column] is not None)
        return f"{name}: {'; '.join(parts)}"


def ends(cell: Cell) -> list[float]:
    """What is drawn of a cell: its number, and the ends of its interval."""
    value = value_of(cell)
    if value is None:
        return []
    if not isinstance(cell, (Share, Measure)) or cell.low is None or cell.high is None:
        return [value]
    return [value, cell.low, cell.high]
