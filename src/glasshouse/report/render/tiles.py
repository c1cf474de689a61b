"""How is a table drawn as tiles? Numbers as shades with the number in them, words as colours."""

from __future__ import annotations

from collections.abc import Sequence

from glasshouse.report.description import Cell, Tiles, value_of, words
from glasshouse.report.render.rows import AXES, Rows
from glasshouse.report.render.svg import Key, small
from glasshouse.report.render.vega import Spec
from glasshouse.report.theme import COLOURS, SHADES

_DARK = 0.55  # from this part of the darkest on, text in a tile is pale


def legend(block: Tiles) -> list[Key]:
    """A colour for each word; numbers stand in their tiles."""
    return [Key(small(f'<rect x="1" y="1" width="12" height="12" fill="{c}"/>'), w) for w, c in _words(block).items()]


def _words(block: Tiles) -> dict[str, str]:
    if any(value_of(row[block.column]) is not None for row in block.table.rows):
        return {}
    names = sorted({words(row[block.column]) for row in block.table.rows})
    return {name: COLOURS[at % len(COLOURS)] for at, name in enumerate(names)}


def spec(block: Tiles, rows: Rows) -> Spec:
    """One panel, or a column of panels: one for each word of the column `row`."""
    if block.row is None:
        return _framed(_panel(block, rows))
    parts: dict[str, list[tuple[Cell, ...]]] = {}
    for row in rows:
        parts.setdefault(words(row[block.row]), []).append(row)
    title = {"anchor": "start", "frame": "group", "fontSize": 11, "fontWeight": "normal", "color": "var(--muted)"}
    panels = [{"title": {"text": name, **title}, **_panel(block, part)} for name, part in parts.items()]
    return _framed({"vconcat": panels, "spacing": 12})


def _framed(inside: Spec) -> Spec:
    return {
        "background": None,
        "padding": {"left": 4, "top": 6, "bottom": 4, "right": 14},
        "config": {"font": "Helvetica, Arial, sans-serif", "view": {"stroke": None}, "axis": AXES},
        **inside,
    }


def _panel(block: Tiles, rows: Rows) -> Spec:
    colours, every = _words(block), [value_of(row[block.column]) or 0.0 for row in block.table.rows]
    most = max([1e-12, *every])
    x, y = (_places(block, rows, column) for column in (block.x, block.y))
    tiles = []
    for row in rows:
        said, number = words(row[block.column]), value_of(row[block.column])
        part = (number or 0.0) / most
        shade = SHADES[min(int(part * len(SHADES)), len(SHADES) - 1)] if number is not None else "var(--none)"
        tiles.append({
            "x": words(row[block.x]), "y": words(row[block.y]), "text": said, "fill": colours.get(said, shade),
            "ink": "var(--paper)" if part > _DARK else "var(--ink)",
            "says": f"{', '.join(words(cell) for cell in row[: block.table.keys])}: {said}",
        })  # fmt: skip
    titles = [block.table.columns[column].title for column in (block.x, block.y)]
    many = len(y) > 20
    at: Spec = {
        "x": {"field": "x", "type": "ordinal", "sort": x, "title": titles[0], "axis": {"labelAngle": 0}},
        "y": {"field": "y", "type": "ordinal", "sort": y, "title": titles[1] if many else None, "axis": {}},
    }
    at["y"]["axis"] = {"labelOverlap": True} if many else {}
    fill = {"field": "fill", "type": "nominal", "scale": _as_it_is([tile["fill"] for tile in tiles]), "legend": None}
    described: Spec = {} if many else {"description": {"field": "says", "type": "nominal"}}
    mark = {"type": "rect", "stroke": "var(--paper)", "strokeWidth": 0 if many else 1, "aria": not many}
    layers: list[Spec] = [{"mark": mark, "encoding": {**at, "fill": fill, **described}}]
    if not colours:
        ink = {"field": "ink", "type": "nominal", "scale": _as_it_is(["var(--ink)", "var(--paper)"]), "legend": None}
        text = {"field": "text", "type": "nominal"}
        layers.append(
            {"mark": {"type": "text", "fontSize": 11, "aria": False}, "encoding": {**at, "text": text, "fill": ink}}
        )
    size = {"width": 150, "height": 220} if many else {"width": {"step": 48}, "height": {"step": 24}}
    apart = {"resolve": {"scale": {"fill": "independent"}}}  # else the colours of tiles and of their text are mixed up
    return {**size, "data": {"values": tiles}, "layer": layers, **apart}


def _places(block: Tiles, rows: Rows, column: int) -> list[str]:
    """The words of an axis in their order; numbers that go up are turned, so that the largest is on top."""
    found = list(dict.fromkeys(words(row[column]) for row in rows))
    numbers = [value_of(row[column]) for row in rows]
    return found[::-1] if column == block.y and None not in numbers else found


def _as_it_is(colours: Sequence[str]) -> Spec:
    once = list(dict.fromkeys(colours))
    return {"domain": once, "range": once}
