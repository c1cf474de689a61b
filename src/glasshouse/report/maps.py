"""How is a map drawn? Areas as shapes or points where they lie, shaded by their number: plain SVG."""

from __future__ import annotations

from html import escape
from itertools import groupby
from math import cos, radians

from glasshouse.report.description import Cell, Hidden, Map, said, text, value_of, words
from glasshouse.report.svg import Key, frame, label_at, small

CLASSES = 5
_HATCH = (
    'width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect width="6" height="6" fill="var(--paper)"/><path d="M0,0V6" stroke="var(--muted)" stroke-width="2"/>'
)


def drawn_map(block: Map) -> str:
    """Areas as shapes or points; the north is up, and a degree of longitude as long as it is in the middle."""
    rows = {words(row[0]): row for row in block.table.rows}
    rings = {code: shape.rings or ((shape.point,) if shape.point else (),) for code, shape in block.shapes.items()}
    corners = [place for some in rings.values() for ring in some for place in ring]
    if not corners:
        return frame(600, 40, text(block.says), label_at(0, 20, "No area of the table has a place.", "muted", 13))
    degrees = all(abs(x) <= 180 and abs(y) <= 90 for x, y in corners)
    (west, south), (east, north) = ([end(axis) for axis in zip(*corners, strict=True)] for end in (min, max))
    stretch = cos(radians((south + north) / 2)) if degrees else 1.0
    across, up = max((east - west) * stretch, 1e-12), max(north - south, 1e-12)
    margin, unit = 14, min(572 / across, 432 / up)  # at most 600 by 460

    def at(place: tuple[float, float]) -> str:
        return f"{margin + (place[0] - west) * stretch * unit:.1f},{margin + (north - place[1]) * unit:.1f}"

    radius = max(2.5, min(9.0, 60 / len(rings) ** 0.5))
    shades = {value_of(cell): shade for cells, shade in _classes(block) for cell in cells}
    body = [f'<defs><pattern id="{block.name}-hatch" {_HATCH}</pattern></defs>']
    for code, some in rings.items():
        row = rows.get(code, (code,))
        cell = row[block.column] if code in rows else None
        name = ", ".join(words(one) for one in row[: block.table.keys])
        label = f"{name}: {'no number' if cell is None else said(cell)}"
        fill = f"url(#{block.name}-hatch)" if isinstance(cell, Hidden) else shades.get(value_of(cell), "var(--none)")
        look = f'fill="{fill}" role="img" aria-label="{escape(label)}"'
        if block.shapes[code].rings:
            drawn = "".join(f"M{'L'.join(point for point, _ in groupby(map(at, ring)))}Z" for ring in some)
            body.append(f'<path d="{drawn}" fill-rule="evenodd" stroke="var(--paper)" {look}/>')
        elif some[0]:
            x, y = at(some[0][0]).split(",")
            body.append(f'<circle cx="{x}" cy="{y}" r="{radius:.1f}" stroke="var(--muted)" stroke-width="0.6" {look}/>')
    return frame(across * unit + 28, up * unit + 28, f"{block.title}. {text(block.says)}", "".join(body))


def _classes(block: Map) -> list[tuple[list[Cell], str]]:
    """The numbers in classes of about as many areas each, with their shades; a number of many areas has its own."""
    cells = [row[block.column] for row in block.table.rows if words(row[0]) in block.shapes]
    ordered = sorted((cell for cell in cells if value_of(cell) is not None), key=lambda cell: value_of(cell) or 0.0)
    groups, many = [list(same) for _, same in groupby(ordered, value_of)], len(ordered) / CLASSES
    large = [len(group) for group in groups if len(group) > many]
    enough = (len(ordered) - sum(large)) / max(CLASSES - len(large), 1)
    classes: list[list[Cell]] = []
    full = True
    for group in groups:
        if (full or len(group) > many) and len(classes) < CLASSES:
            classes.append([])
        classes[-1] += group
        full = len(group) > many or len(classes[-1]) >= enough
    step = (CLASSES - 1) / max(len(classes) - 1, 1)
    return [(some, f"var(--s{1 + round(number * step)})") for number, some in enumerate(classes)]


def map_legend(block: Map) -> list[Key]:
    keys = []
    for cells, shade in _classes(block):
        ends = dict.fromkeys((words(cells[0]), words(cells[-1])))  # one, if they are written alike
        keys.append(Key(_swatch(shade), " to ".join(ends)))
    rows = {words(row[0]): row[block.column] for row in block.table.rows}
    if any(isinstance(rows.get(code), Hidden) for code in block.shapes):
        keys.append(Key(_swatch(f"url(#{block.name}-hatch)"), "hidden"))
    if any(rows.get(code) is None for code in block.shapes):
        keys.append(Key(_swatch("var(--none)"), "no number"))
    if lost := sum(code not in block.shapes for code in rows):
        keys.append(Key(_swatch("none"), f"not drawn, as their place is not known: {lost:,}"))
    return keys


def _swatch(fill: str) -> str:
    return small(f'<rect x="1" y="1" width="12" height="12" fill="{fill}" stroke="var(--muted)" stroke-width="0.5"/>')
