"""Who draws? Vega-Lite, without a network or a browser: a specification becomes SVG, SVG becomes an image."""

from __future__ import annotations

from typing import Any

from glasshouse.errors import refuse_few_addresses
from glasshouse.limits import DRAWING_ADDRESSES
from glasshouse.text import plain

Spec = dict[str, Any]  # JSON: what Vega-Lite reads


def drawn(spec: Spec) -> str:
    """A specification as SVG."""
    refuse_few_addresses(DRAWING_ADDRESSES, "a picture")
    import vl_convert  # slow to load, and only needed here

    return str(vl_convert.vegalite_to_svg(_plain(spec), vl_version="6.4"))


def _plain(part: Any) -> Any:
    """The same with texts that can be drawn: at a control character the library would end the whole process."""
    if isinstance(part, dict):
        return {_plain(key): _plain(inside) for key, inside in part.items()}
    if isinstance(part, (list, tuple)):
        return [_plain(inside) for inside in part]
    return plain(part, lines=True) if isinstance(part, str) else part


def png(svg: str) -> bytes:
    """An SVG as an image, large enough for print."""
    import vl_convert

    return bytes(vl_convert.svg_to_png(svg, scale=2.0))
