"""How is a map drawn? Areas as shapes or points where they lie, shaded by their number: plain SVG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import cos, radians, sqrt

from glasshouse.report.description import Cell, Hidden, Map, Ring, Shape, said, text, value_of, words
from glasshouse.report.render.svg import Key, escape, frame, label_at, small
from glasshouse.report.words import phrase

CLASSES = 5
_MARGIN = 14
_HATCH = (
    'width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    '<rect width="6" height="6" fill="var(--paper)"/><path d="M0,0V6" stroke="var(--muted)" stroke-width="2"/>'
)


@dataclass(frozen=True)
class _Ground:
    """Where places lie on paper: the north is up, and a degree of longitude as long as it is in the middle."""

    west: float
    north: float
    stretch: float
    unit: float
    size: tuple[float, float]

    def at(self, place: tuple[float, float]) -> tuple[float, float]:
        x, y = (place[0] - self.west) * self.stretch * self.unit, (self.north - place[1]) * self.unit
        return _MARGIN + x, _MARGIN + y


def _ground(block: Map, corners: Sequence[tuple[float, float]]) -> _Ground:
    degrees = block.degrees
    if degrees is None:
        degrees = all(abs(x) <= 180 and abs(y) <= 90 for x, y in corners)
    (west, south), (east, north) = ([end(axis) for axis in zip(*corners, strict=True)] for end in (min, max))
    stretch = cos(radians((south + north) / 2)) if degrees else 1.0
    across, up = max((east - west) * stretch, 1e-12), max(north - south, 1e-12)
    most = (572, 432) if block.panel is None or len(_panels(block)) == 1 else (240, 240)  # at most 600 by 460
    unit = min(most[0] / across, most[1] / up)
    return _Ground(west, north, stretch, unit, (across * unit + 2 * _MARGIN, up * unit + 2 * _MARGIN))


def _panels(block: Map) -> dict[str, dict[str, tuple[Cell, ...]]]:
    found: dict[str, dict[str, tuple[Cell, ...]]] = {} if block.table.rows else {"": {}}
    for row in block.table.rows:
        found.setdefault("" if block.panel is None else words(row[block.panel]), {})[words(row[0])] = row
    return found


def drawn_map(block: Map) -> Iterator[tuple[str, str]]:
    """Areas as shapes or points, a map for each panel."""
    corners = [place for one in block.shapes.values() for ring in _rings(one) for place in ring]
    if not corners:
        yield "", frame(600, 40, text(block.says), label_at(0, 20, phrase("page.no_place"), "muted", 13))
        return
    ground = _ground(block, corners)
    for panel, rows in _panels(block).items():
        body = _marks(block, rows, panel, ground) if _signed(block) else _areas(block, rows, ground)
        title = f"{block.title}{': ' if panel else ''}{panel}. {text(block.says)}"
        yield panel, frame(*ground.size, title, "".join(body))


def _rings(shape: Shape) -> tuple[Ring, ...]:
    return shape.rings or ((shape.point,) if shape.point else (),)


def _areas(block: Map, rows: Mapping[str, tuple[Cell, ...]], ground: _Ground) -> Iterator[str]:
    """Shapes, or points, as dark as their number is high."""
    radius = max(2.5, min(9.0, 60 / len(block.shapes) ** 0.5))
    shades = {value_of(cell): shade for cells, shade in _classes(block) for cell in cells}
    yield f'<defs><pattern id="{block.name}-hatch" {_HATCH}</pattern></defs>'
    for code, shape in block.shapes.items():
        cell = rows[code][block.column] if code in rows else None
        fill = f"url(#{block.name}-hatch)" if isinstance(cell, Hidden) else shades.get(value_of(cell), "var(--none)")
        look = f'fill="{fill}" role="img" aria-label="{escape(_label(block, rows, code))}"'
        some = [[",".join(f"{z:.1f}" for z in ground.at(place)) for place in ring] for ring in _rings(shape)]
        if shape.rings:
            drawn = "".join(f"M{'L'.join(point for point, _ in groupby(ring))}Z" for ring in some)
            yield f'<path d="{drawn}" fill-rule="evenodd" stroke="var(--paper)" {look}/>'
        elif some[0]:
            x, y = some[0][0].split(",")
            yield f'<circle cx="{x}" cy="{y}" r="{radius:.1f}" stroke="var(--muted)" stroke-width="0.6" {look}/>'


def _label(block: Map, rows: Mapping[str, tuple[Cell, ...]], code: str) -> str:
    row = rows.get(code, (code,))
    cell = row[block.column] if code in rows else None
    name = ", ".join(words(one) for one in row[: block.table.keys])
    return f"{name}: {phrase('page.no_number') if cell is None else said(cell)}"


# Changes: more, fewer, and the same

_KINDS = {"fewer": ("var(--c2)", "M0,1L1,-1H-1Z"), "more": ("var(--c1)", "M0,-1L1,1H-1Z")}


def _signed(block: Map) -> bool:
    return any((value_of(row[block.column]) or 0.0) < 0 for row in block.table.rows)


def _marks(block: Map, rows: Mapping[str, tuple[Cell, ...]], panel: str, ground: _Ground) -> Iterator[str]:
    """Triangles up and down, as large as the change; lines lead to a ringed place. The unchanged lie below."""
    values = {code: value_of(row[block.column]) or 0.0 for code, row in rows.items()}
    most = max([1e-12, *(abs(value_of(row[block.column]) or 0.0) for row in block.table.rows)])
    large = 11 if ground.size[0] > 300 else 7
    points = {code: ground.at(shape.point) for code, shape in block.shapes.items() if shape.point is not None}
    for code, value in sorted(values.items(), key=lambda one: (one[1] != 0, one[1] > 0)):
        if code not in points:
            continue
        x, y = points[code]
        label = f'role="img" aria-label="{escape(_label(block, rows, code))}"'
        if value == 0:
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="1.6" fill="var(--none)" {label}/>'
            continue
        colour, shape = _KINDS["more" if value > 0 else "fewer"]
        scale = max(1.8, large * sqrt(abs(value) / most))
        place = f"translate({x:.1f},{y:.1f}) scale({scale:.2f})"
        yield f'<path d="{shape}" transform="{place}" fill="{colour}" fill-opacity="0.9" {label}/>'
    for start, end in block.links.get(panel, ()):
        (x, y), (x2, y2) = points[start], points[end]
        line = f"M{x:.1f},{y:.1f}L{x2:.1f},{y2:.1f}"
        yield f'<path d="{line}" stroke="var(--ink)" stroke-width="0.7" stroke-opacity="0.65"/>'
    for code in dict.fromkeys(end for _, end in block.links.get(panel, ())):
        x, y = points[code]
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{large}" fill="none" stroke="var(--ink)" stroke-width="1.5"/>'


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
    """The classes and their shades, or the kinds of change and the largest of each."""
    if _signed(block):
        return _kinds(block)
    keys = []
    for cells, shade in _classes(block):
        ends = dict.fromkeys((words(cells[0]), words(cells[-1])))  # one, if they are written alike
        keys.append(Key(_swatch(shade), phrase("page.to").join(ends)))
    rows = {words(row[0]): row[block.column] for row in block.table.rows}
    if any(isinstance(rows.get(code), Hidden) for code in block.shapes):
        keys.append(Key(_swatch(f"url(#{block.name}-hatch)"), phrase("page.hidden")))
    if any(rows.get(code) is None for code in block.shapes):
        keys.append(Key(_swatch("var(--none)"), phrase("page.no_number")))
    if lost := sum(code not in block.shapes for code in rows):
        keys.append(Key(_swatch("none"), phrase("page.not_drawn", lost=lost)))
    return keys


def _swatch(fill: str) -> str:
    return small(f'<rect x="1" y="1" width="12" height="12" fill="{fill}" stroke="var(--muted)" stroke-width="0.5"/>')


def _kinds(block: Map) -> list[Key]:
    """More, fewer and unchanged, with the largest change of each."""
    cells = sorted((row[block.column] for row in block.table.rows), key=lambda cell: value_of(cell) or 0.0)
    keys = []
    for kind, end in (("more", cells[-1]), ("fewer", cells[0])):
        colour, shape = _KINDS[kind]
        if ((value_of(end) or 0.0) > 0) == (kind == "more") and value_of(end):
            drawn = f'<path d="{shape}" transform="translate(7,7) scale(5)" fill="{colour}"/>'
            keys.append(Key(small(drawn), phrase(f"page.{kind}", most=words(end))))
    if any(value_of(cell) == 0 for cell in cells):
        keys.append(Key(small('<circle cx="7" cy="7" r="3" fill="var(--none)"/>'), phrase("page.unchanged")))
    return keys
