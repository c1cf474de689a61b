"""Who draws? Vega-Lite, without a network or a browser: a specification becomes SVG, SVG becomes an image."""

from __future__ import annotations

from typing import Any

Spec = dict[str, Any]  # JSON: what Vega-Lite reads


def drawn(spec: Spec) -> str:
    """A specification as SVG."""
    import vl_convert  # slow to load, and only needed here

    return str(vl_convert.vegalite_to_svg(spec, vl_version="6.4"))


def png(svg: str) -> bytes:
    """An SVG as an image, large enough for print."""
    import vl_convert

    return bytes(vl_convert.svg_to_png(svg, scale=2.0))
