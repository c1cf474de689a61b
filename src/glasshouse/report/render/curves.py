"""How are numbers drawn against numbers? Lines with bands, marks with thin lines, on axes that may be logarithmic."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from json import dumps
from math import floor, log10
from textwrap import wrap

from glasshouse.report.description import Cell, Curves, Field, Scale, Series, said, value_of, words
from glasshouse.report.render.rows import AXES, MARKS, SAYS, Rows, ends, style_of
from glasshouse.report.render.svg import Key, small
from glasshouse.report.render.vega import Spec
from glasshouse.report.theme import COLOURS, SHADES, SHAPES
from glasshouse.report.words import phrase

_ROOTS = (0, 0.01, 0.03, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4)  # ticks of a share on an axis of roots
_DASHES: tuple[list[int], ...] = ([], [6, 3], [2, 2])  # once the colours are used up


@dataclass(frozen=True)
class _Look:
    """A group, or a series where there are no groups."""

    name: str
    colour: str
    shape: str
    dash: list[int]
    wide: float


def _looks(block: Curves) -> list[_Look]:
    names = [one.label for one in block.series]
    if block.group is not None:
        names = list(dict.fromkeys(words(row[block.group]) for row in block.table.rows))
    return [
        _Look(
            name, COLOURS[at % len(COLOURS)], SHAPES[at % len(SHAPES)], _DASHES[at // len(COLOURS) % len(_DASHES)],
            1.5 + 2.5 * at if block.nested else 1.8,
        )
        for at, name in enumerate(names)
    ]  # fmt: skip


def legend(block: Curves) -> list[Key]:
    """Groups by colour and shape; then what marks of each look are, where there are several."""
    looks, lines = _looks(block), all(one.look == "line" for one in block.series)
    keys = [Key(_symbol(block.series[0], look, lines), look.name) for look in looks if look.name]
    if block.group is None:
        keys = [Key(_symbol(one, look), one.label) for one, look in zip(block.series, looks, strict=True)]
    elif len(marks := [one for one in block.series if one.look not in ("line", "path")]) > 1:
        plain = _Look("", "var(--muted)", "circle", [], 1.8)
        keys += [Key(_symbol(one, plain), one.label) for one in marks]
    if block.field is not None:
        keys += [Key(_swatch(shade), f"{step} {block.field.axis}") for step, shade in _steps(block.field).items()]
    return keys


def _symbol(series: Series, look: _Look, line: bool = False) -> str:
    mark = MARKS[look.shape]
    if series.look in ("line", "path") or line:
        dash = f' stroke-dasharray="{" ".join(map(str, look.dash))}"' if look.dash else ""
        return small(f'<path d="M0,7H14" fill="none" stroke="{look.colour}" stroke-width="2.4"{dash}/>')
    if series.look == "tick":
        return small(f'<path d="M1,7H13" stroke="{look.colour}" stroke-width="2.2"/>')
    fill = "none" if series.look == "ring" else look.colour
    return small(f'<path d="{mark}" fill="{fill}" stroke="{look.colour}" stroke-width="1.4"/>')


def _swatch(fill: str) -> str:
    return small(f'<rect x="1" y="1" width="12" height="12" fill="{fill}" stroke="var(--muted)" stroke-width="0.5"/>')


def spec(block: Curves, rows: Rows, *, narrow: bool) -> Spec:
    """One panel."""
    wide, high = (250, 190) if narrow else (300, 220) if block.panel is not None else (500, 280)
    title = {"text": wrap(block.up.title, 34 if narrow else 60), "anchor": "start", "frame": "group", "offset": 10}
    title |= {"color": "var(--muted)", "fontSize": 12, "fontWeight": "normal"}
    x = _axis(block.across, [row[block.x] for row in rows], block.rule_x)
    y = _axis(block.up, [row[one.column] for row in rows for one in block.series], block.rule_y)
    x["axis"]["title"] = wrap(block.across.title, 34 if narrow else 60)
    layers = list(_field(block.field, x, y)) if block.field is not None else []
    for look in reversed(_looks(block)) if block.nested else _looks(block):
        for series in block.series:
            if block.group is None and series.label != look.name:
                continue
            own = [row for row in rows if block.group is None or words(row[block.group]) == look.name]
            layers += _series(block, series, look, own, x, y)
    for series in block.series:
        if series.look == "path":
            joined = sorted(_points(block, series, rows), key=lambda point: float(point["x"]))
            line = {"type": "line", "stroke": "var(--muted)", "strokeWidth": 1, "aria": False}
            layers.insert(0, _layer(line, joined, x, y))
    for along, value in (("x", block.rule_x), ("y", block.rule_y)):
        if value is not None:
            dashed = {"type": "rule", "stroke": "var(--muted)", "strokeDash": [4, 4], "aria": False}
            at = {"x": {"field": "x", **x}} if along == "x" else {"y": {"field": "y", **y}}
            layers.append({"data": {"values": [{along: value}]}, "mark": dashed, "encoding": at})
    layers += list(_names(block, rows, x, y))
    empty = [_layer({"type": "point", "opacity": 0, "aria": False, "stroke": "var(--none)"}, [], x, y)]
    return {
        "background": None,
        "padding": {"left": 4, "top": 6, "bottom": 4, "right": 18},
        "config": {"font": "Helvetica, Arial, sans-serif", "view": {"stroke": None}, "axis": AXES},
        "width": wide,
        "height": high,
        "layer": layers or empty,
    } | ({"title": title} if block.up.title else {})


def _axis(scale: Scale, cells: Sequence[Cell], rule: float | None) -> Spec:
    style = style_of(cells)
    known = [end for cell in cells for end in ends(cell)] + ([] if rule is None else [rule])
    axis: Spec = {"title": None, "tickCount": 6, "format": "~%" if style == "share" else ",~r"}
    divided: Spec = {"zero": scale.zero, "nice": True}
    if scale.kind == "log":
        known = [value for value in known if value > 0]
        divided = {"type": "log", "nice": False}
        if known:
            divided["domain"] = [min(known), max(known) if max(known) > min(known) else 10 * max(known)]
            axis["values"] = _decades(*divided["domain"])
    elif scale.kind == "root":
        divided = {"type": "sqrt"}
        axis |= {"values": [tick for tick in _ROOTS if tick <= max(known, default=1)]} if style == "share" else {}
    elif style == "share" and scale.zero and known and 0.6 < max(known) <= 1 and min(known) >= 0:
        divided = {"domain": [0, 1]}
    return {"type": "quantitative", "scale": divided, "axis": axis}


def _decades(low: float, high: float) -> list[float]:
    """Ticks of a logarithmic axis: 1, 2, 5 where there is room."""
    digits = (1, 2, 5) if high / low < 2000 else (1,)
    every = [digit * 10.0**power for power in range(floor(log10(low)), floor(log10(high)) + 1) for digit in digits]
    return [float(f"{tick:.6g}") for tick in every if low <= tick <= high]


def _points(block: Curves, series: Series, rows: Rows) -> list[Spec]:
    found: list[Spec] = []
    for row in rows:
        across, up = (*ends(row[block.x]), None, None, None)[:3], (*ends(row[series.column]), None, None, None)[:3]
        if across[0] is not None and up[0] is not None:
            place: Spec = {"x": across[0], "left": across[1], "right": across[2]}
            found.append(place | {"y": up[0], "low": up[1], "high": up[2], "says": _says(block, series, row)})
    return found


def _says(block: Curves, series: Series, row: tuple[Cell, ...]) -> str:
    name = ", ".join(words(cell) for cell in row[: block.table.keys])
    return (
        f"{name}: {block.table.columns[block.x].title} {said(row[block.x])}; {series.label}: {said(row[series.column])}"
    )


def _layer(mark: Spec, points: Sequence[Spec], x: Spec, y: Spec, **more: Spec) -> Spec:
    encoding = {"x": {"field": "x", **x}, "y": {"field": "y", **y}, **more}
    return {"data": {"values": list(points)}, "mark": mark, "encoding": encoding}


def _series(block: Curves, series: Series, look: _Look, rows: Rows, x: Spec, y: Spec) -> Iterator[Spec]:
    points = _points(block, series, rows)
    if not points or series.look == "path":
        return
    reach = [point for point in points if point["low"] is not None]
    if series.look == "line":
        slim = [{key: point[key] for key in ("x", "y", "low", "high")} for point in points]
        if reach:
            band = {"type": "area", "fill": look.colour, "opacity": 0.22, "aria": False, "clip": True}
            yield _layer(band, slim, x, {**y, "field": "low"}, y2={"field": "high"})
        line = {"type": "line", "stroke": look.colour, "strokeWidth": look.wide, "aria": False, "clip": True}
        line |= {"strokeDash": look.dash} if look.dash else {}
        yield _layer(line, [{"x": point["x"], "y": point["y"]} for point in points], x, y, order={"value": 0})
        if len(points) == 1:  # no line would be seen
            yield _layer({"type": "point", "fill": look.colour, "size": 40, "opacity": 1}, points, x, y)
        return
    thin = {"type": "rule", "stroke": look.colour, "strokeWidth": 1.4, "strokeOpacity": 0.6, "aria": False}
    if reach:
        yield _layer(thin, reach, x, {**y, "field": "low"}, y2={"field": "high"})
    if sideways := [point for point in points if point["left"] is not None]:
        yield _layer(thin, sideways, {**x, "field": "left"}, y, x2={"field": "right"})
    if series.look == "tick":
        tick = {"type": "tick", "orient": "horizontal", "size": 14, "thickness": 1.5, "color": "var(--muted)"}
        yield _layer(tick | {"opacity": 1}, points, x, y, description=SAYS)
        return
    mark = {"type": "point", "shape": look.shape, "size": 60, "stroke": look.colour, "strokeWidth": 1.4, "opacity": 1}
    yield _layer(
        mark | {"fill": look.colour if series.look == "dot" else "var(--paper)"}, points, x, y, description=SAYS
    )


def _names(block: Curves, rows: Rows, x: Spec, y: Spec) -> Iterator[Spec]:
    if block.names is None:
        return
    marks = [one for one in block.series if one.look in ("dot", "ring")]
    found = []
    for row in rows:
        up = next((value_of(row[one.column]) for one in marks if value_of(row[one.column]) is not None), None)
        if up is not None:
            found.append({"x": value_of(row[block.x]), "y": up, "text": words(row[block.names])})
    mark = {"type": "text", "align": "left", "dx": 8, "dy": -6, "fontSize": 10, "fill": "var(--ink)", "aria": False}
    yield _layer(mark, found, x, y, text={"field": "text", "type": "nominal"})


# Tiles behind the curves


def _steps(field: Field) -> dict[str, str]:
    spread = max(len(field.steps) - 1, 1)
    return {step: SHADES[round(at * (len(SHADES) - 1) / spread)] for at, step in enumerate(field.steps)}


def _field(field: Field, x: Spec, y: Spec) -> Iterator[Spec]:
    """The tiles; both axes reach over all of them."""
    names, shades = ("left", "right", "bottom", "top"), _steps(field)
    tiles: list[Spec] = [
        {name: value_of(cell) or 0.0 for name, cell in zip(names, row, strict=False)} | {"shade": shades[words(row[4])]}
        for row in field.table.rows
    ]
    ends_ = {name: [tile[name] for tile in tiles] for name in names}
    left, right = min(ends_["left"], default=1.0), max(ends_["right"], default=2.0)
    bottom, top = min(ends_["bottom"], default=0.0), max(0.1, *ends_["top"])
    x["scale"] |= {"domain": [left, right], "nice": False}
    x["axis"] |= {"values": _decades(left, right)}
    y["scale"] = {"domain": [bottom, top], "nice": False, "zero": False}
    every = next(step for step in (0.02, 0.05, 0.1, 0.2) if top <= 6 * step or step == 0.2)
    strip = [(tile["bottom"] + tile["top"]) / 2 for tile in tiles if tile["top"] < 0][:1]
    label = f"datum.value < 0 ? {dumps(phrase('page.exactly_0'))} : format(datum.value, '.2~%')"
    y["axis"] |= {
        "values": [*strip, *(round(every * k, 2) for k in range(1, int(top / every) + 1))],
        "labelExpr": label,
    }
    mark = {"type": "rect", "stroke": "var(--paper)", "strokeWidth": 0.4, "aria": False}
    scale = {"domain": list(shades.values()), "range": list(shades.values())}
    colour = {"field": "shade", "type": "nominal", "legend": None, "scale": scale}
    yield {
        "data": {"values": tiles},
        "mark": mark,
        "encoding": {
            "x": {**x, "field": "left"}, "x2": {"field": "right"}, "y": {**y, "field": "bottom"},
            "y2": {"field": "top"}, "fill": colour,
        },
    }  # fmt: skip
