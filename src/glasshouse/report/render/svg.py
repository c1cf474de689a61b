"""How is a piece of SVG written? A frame with a label for those who cannot see it, text, and symbols of a legend."""

from __future__ import annotations

import html
import re
from typing import NamedTuple

from glasshouse.report.theme import FONT
from glasshouse.text import plain


def escape(text: str) -> str:
    """A text as SVG takes it, whatever letters it has."""
    return html.escape(plain(text))


class Key(NamedTuple):
    """An entry of a legend: a symbol (SVG of 14 by 14) and what it stands for."""

    symbol: str
    label: str


def size(drawn: str) -> tuple[float, float]:
    """How wide and how high a picture is."""
    found = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', drawn)
    assert found is not None
    return float(found[1]), float(found[2])


def frame(width: float, height: float, label: str, inside: str, *, whole: bool = False) -> str:
    space = 'xmlns="http://www.w3.org/2000/svg" ' if whole else ""
    paper = '<rect width="100%" height="100%" fill="var(--paper)"/>' if whole else ""
    # shapes drawn beyond a part's edge, such as the end of a long name in another font, are not cut off
    return (
        f'<svg {space}width="{width:g}" height="{height:g}" viewBox="0 0 {width:g} {height:g}" role="group" '
        f'font-family="{FONT}" overflow="visible" aria-label="{escape(label)}">{paper}{inside}</svg>'
    )


def label_at(x: float, y: float, text: str, colour: str, height: int, weight: str = "normal") -> str:
    look = f'fill="var(--{colour})" font-size="{height}" font-weight="{weight}"'
    return f'<text x="{x}" y="{y}" {look}>{escape(text)}</text>'


def small(inside: str) -> str:
    return f'<svg width="14" height="14" viewBox="0 0 14 14" aria-hidden="true">{inside}</svg>'


def own(drawn: str, prefix: str, label: str) -> str:
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
