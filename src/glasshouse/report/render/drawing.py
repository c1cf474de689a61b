"""How is a picture of the report drawn? As SVG, in the page's colours (CSS variables) or in fixed ones, for a file.

A chart has a layout for wide and one for narrow screens, so that its text is never scaled down. Its parts are drawn by
Vega-Lite; the frame around them, the legend and maps are plain SVG.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from textwrap import wrap
from zlib import crc32

from glasshouse.report.description import Cell, Chart, Curves, Map, Picture, Tiles, text, words
from glasshouse.report.render import curves, maps, rows, tiles
from glasshouse.report.render.svg import Key, frame, label_at, own, size
from glasshouse.report.render.vega import Spec, drawn
from glasshouse.report.theme import fixed

_WIDEST = 1180  # of panels side by side, in a file


def svg(block: Picture, *, themed: bool) -> str:
    """A picture by itself: title, legend and all its panels."""
    whole = _whole(block.title, (block,))
    return whole if themed else fixed(whole)


def drawing(title: str, pictures: Sequence[Picture]) -> str:
    """Pictures that belong together, in one file; its ids are its own, so that many can stand in one notebook."""
    own_name = f"{crc32(repr((title, pictures)).encode()):08x}"
    return fixed(_whole(title, [replace(one, name=f"{one.name}-{own_name}") for one in pictures]))


def _whole(title: str, blocks: Sequence[Picture]) -> str:
    """Title, what is shown in words, and each picture with its legend."""
    drawn_ = [(block, list(pictures(block, narrow=False))) for block in blocks]
    wide = max(_across(parts) for _, parts in drawn_)
    body, top, longest = [], 28.0, 0.0

    def line(said: str, *look: object, size: float) -> None:
        nonlocal top, longest
        body.append(label_at(0, top - 10, said, *look))  # type: ignore[arg-type]  # colour, height, weight
        longest = max(longest, len(said) * size)
        top += 20

    for part in wrap(title, max(40, int(wide / 8))):
        line(part, "ink", 15, "bold", size=8.5)
    for number, (block, parts) in enumerate(drawn_):
        top += 22 if number else 0
        if block.title != title:
            for part in wrap(block.title, max(40, int(wide / 7))):
                line(part, "ink", 13, "bold", size=7.5)
        for part in wrap(text(block.says), max(60, int(wide / 6.4))):
            line(part, "muted", 12, "normal", size=6.4)
        if isinstance(block, Map):
            line(block.axis, "ink", 12, "normal", size=6.4)
        keys = legend(block)
        if len(keys) > 1:
            longest = max(longest, 420)
            top = _keys(body, keys, max(wide, 420), top)
        top = _laid(body, parts, top)
    inside = f'<g transform="translate(16,8)">{"".join(body)}</g>'
    says = " ".join(text(block.says) for block in blocks)
    return frame(max(wide, longest) + 32, top + 16, f"{title}. {says}", inside, whole=True)


def _keys(body: list[str], keys: Sequence[Key], wide: float, top: float) -> float:
    """The legend in lines as wide as the picture."""
    left = 0.0
    for key in keys:
        room = 34 + 6.6 * len(key.label)
        if left and left + room > wide:
            left, top = 0.0, top + 18
        body.append(f'<g transform="translate({left:g},{top - 12:g})">{key.symbol}</g>')
        body.append(label_at(left + 20, top, key.label, "muted", 12))
        left += room
    return top + 16


def _across(parts: Sequence[tuple[str, str]]) -> float:
    """How wide panels are side by side."""
    found, line = 0.0, 0.0
    for part in parts:
        line = line + _width(part) + 16 if line and line + _width(part) <= _WIDEST else _width(part)
        found = max(found, line)
    return found


def _width(part: tuple[str, str]) -> float:
    """How wide a panel is, with its name."""
    return max(size(part[1])[0], 7.6 * len(part[0]))


def _laid(body: list[str], parts: Sequence[tuple[str, str]], top: float) -> float:
    """Panels from left to right, in as many lines as they need; the next free line."""
    left, high = 0.0, 0.0
    for name, one in parts:
        across, down = _width((name, one)), size(one)[1]
        if left and left + across > _WIDEST:
            left, top, high = 0.0, top + high, 0.0
        named = 20 if name else 0
        if name:
            body.append(label_at(left, top + 10, name, "ink", 13, "bold"))
        body.append(one.replace("<svg ", f'<svg x="{left:g}" y="{top + named:g}" ', 1))
        left, high = left + across + 16, max(high, round(down) + 12 + named)
    return top + high


def pictures(block: Picture, *, narrow: bool) -> Iterator[tuple[str, str]]:
    """The parts of a picture with their titles, without a legend, in the colours of the page."""
    if isinstance(block, Map):
        yield from maps.drawn_map(block)
        return
    for number, (panel, spec) in enumerate(_specs(block, narrow=narrow)):
        prefix = f"{block.name}-{'n' if narrow else 'w'}{number}-"
        yield panel, own(drawn(spec), prefix, f"{block.title}{': ' if panel else ''}{panel}. {text(block.says)}")


def _specs(block: Chart | Curves | Tiles, *, narrow: bool) -> Iterator[tuple[str, Spec]]:
    """Each panel in Vega-Lite."""
    panels: dict[str, list[tuple[Cell, ...]]] = {} if block.table.rows else {"": []}
    for row in block.table.rows:
        panels.setdefault("" if block.panel is None else words(row[block.panel]), []).append(row)
    for panel, chosen in panels.items():
        match block:
            case Chart():
                every = [row for some in panels.values() for row in some[: block.most]]
                yield panel, rows.Plot(block, chosen[: block.most], every, narrow).spec()
            case Curves():
                yield panel, curves.spec(block, chosen, narrow=narrow)
            case Tiles():
                yield panel, tiles.spec(block, chosen)


def legend(block: Picture) -> list[Key]:
    """What the marks of a picture stand for."""
    match block:
        case Map():
            return maps.map_legend(block)
        case Chart():
            return rows.legend(block)
        case Curves():
            return curves.legend(block)
        case Tiles():
            return tiles.legend(block)
