"""How does a picture show itself? In a notebook or in a file: drawn from its description when asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from glasshouse.files.output import private_file
from glasshouse.report.description import Picture


@dataclass(frozen=True)
class Figure:
    """Pictures that belong together, under one title."""

    title: str
    pictures: tuple[Picture, ...]

    @classmethod
    def of(cls, *pictures: Picture) -> Figure:
        """Pictures that need no title but that of the first."""
        return cls(pictures[0].title, pictures)

    def svg(self) -> str:
        """The figure as SVG, in the light palette."""
        from glasshouse.report.render.drawing import drawing  # the renderer is slow to load

        return drawing(self.title, self.pictures)

    def png(self) -> bytes:
        """The figure as an image, for slides."""
        from glasshouse.report.render.vega import png

        return png(self.svg())

    def save(self, path: Path | str) -> Path:
        """Write the figure, for the owner alone: as PNG if the file's name ends so, else as SVG."""
        to = Path(path)
        content = self.png() if to.suffix.lower() == ".png" else self.svg().encode()
        with private_file(to) as stream:
            stream.write(content)
        return to

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x: auto">{self.svg()}</div>'
