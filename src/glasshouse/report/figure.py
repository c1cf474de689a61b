"""How does a picture show itself? In a notebook or in a file: drawn from its description when asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from glasshouse.files.output import private_file
from glasshouse.report.description import Picture


class Shown(ABC):
    """Something that can be looked at, in a notebook or in a file."""

    @abstractmethod
    def svg(self) -> str:
        """The picture as SVG, in the light palette."""

    def png(self) -> bytes:
        """The picture as an image, for slides."""
        from glasshouse.report.render.vega import png  # the renderer is slow to load

        return png(self.svg())

    def save(self, path: Path | str) -> Path:
        """Write the picture, for the owner alone: as PNG if the file's name ends so, else as SVG."""
        to = Path(path)
        content = self.png() if to.suffix.lower() == ".png" else self.svg().encode()
        with private_file(to) as stream:
            stream.write(content)
        return to

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x: auto">{self.svg()}</div>'


@dataclass(frozen=True)
class Figure(Shown):
    """Pictures that belong together, under one title."""

    title: str
    pictures: tuple[Picture, ...]

    @classmethod
    def of(cls, *pictures: Picture) -> Figure:
        """Pictures that need no title but that of the first."""
        return cls(pictures[0].title, pictures)

    def svg(self) -> str:
        from glasshouse.report.render.drawing import drawing  # the renderer is slow to load

        return drawing(self.title, self.pictures)


@dataclass(frozen=True, repr=False)
class Drawn(Shown):
    """A picture that was drawn before."""

    content: str

    def svg(self) -> str:
        return self.content

    def __repr__(self) -> str:
        return "<a picture; .save(path) writes it>"
