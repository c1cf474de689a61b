"""How is a picture handed to somebody? As a figure that shows itself in a notebook, and can be saved."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, repr=False)
class Figure:
    """A picture, drawn."""

    svg: str

    def png(self) -> bytes:
        """The same for slides."""
        from glasshouse.report.pictures import png

        return png(self.svg)

    def save(self, path: str | Path) -> Path:
        """Write it, for the owner alone: as PNG if the name ends so, as SVG otherwise."""
        from glasshouse.files.output import private_file

        with private_file(Path(path)) as stream:
            stream.write(self.png() if str(path).lower().endswith(".png") else self.svg.encode())
        return Path(path)

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return f"<div>{self.svg}</div>"

    def __repr__(self) -> str:
        return f"<a picture of {len(self.svg):,} characters of SVG>"
