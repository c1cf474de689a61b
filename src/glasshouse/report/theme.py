"""Which colours has the report? One palette for the page and every drawing, from `theme.toml`."""

from __future__ import annotations

import re
import tomllib
from importlib import resources

_TOLD = tomllib.loads((resources.files("glasshouse") / "report" / "theme.toml").read_text(encoding="utf-8"))
LIGHT: dict[str, str] = _TOLD["light"]
DARK: dict[str, str] = _TOLD["dark"]
FONT: str = _TOLD["look"]["font"]
SHAPES: tuple[str, ...] = tuple(_TOLD["look"]["shapes"])
COLOURS = tuple(f"var(--{name})" for name in LIGHT if re.fullmatch(r"c\d", name))
SHADES = tuple(f"var(--{name})" for name in LIGHT if re.fullmatch(r"s\d", name))


def style() -> str:
    """Both palettes as CSS: the dark one twice, for who chose it and for whose system is dark; paper is white."""
    light, dark = (
        f"{{ color-scheme: {name}; {' '.join(f'--{key}: {colour};' for key, colour in palette.items())} }}"
        for name, palette in (("light", LIGHT), ("dark", DARK))
    )
    return "\n".join([
        f":root {light}",
        f'@media screen {{ :root[data-theme="dark"] {dark} }}',
        f'@media screen and (prefers-color-scheme: dark) {{ :root:not([data-theme="light"]) {dark} }}',
    ])  # fmt: skip


def fixed(drawn: str) -> str:
    """A drawing in the light palette, for a file that has no page around it."""
    return re.sub(r"var\(--(\w+)\)", lambda name: LIGHT.get(name[1], name[0]), drawn)
