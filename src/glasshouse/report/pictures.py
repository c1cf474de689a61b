"""How does a drawing become an image for slides?"""

from __future__ import annotations

import vl_convert


def png(drawn: str) -> bytes:
    """An SVG as PNG, large enough for print."""
    return bytes(vl_convert.svg_to_png(drawn, scale=2.0))
