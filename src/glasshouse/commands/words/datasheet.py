"""What should a reader know of a synthetic county? How much of everything there is, and one page beside its files."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from pathlib import Path


@dataclass(frozen=True)
class Wanted:
    """What a county was asked to be."""

    persons: int
    seed: int
    preset: str
    commercial: str
    swap_base: float
    swap_risky: float
    alpha: float
    subsidised: float


@dataclass(frozen=True)
class Summary(Wanted):
    """What a county was asked to be, and how much of everything there is."""

    tracts: int
    blocks: int
    households: int
    swapped_households: int
    subsidised_households: int
    violations: int
    records: int
    data_defined: int
    commercial_records: int


def datasheet(folder: Path, title: str, county: Summary) -> None:
    """Write datasheet.md; `title`: what the preset calls itself."""
    from glasshouse.files.output import private_file

    template = (resources.files("glasshouse") / "commands" / "words" / "datasheet.md").read_text(encoding="utf-8")
    share = county.data_defined / county.records
    with private_file(folder / "datasheet.md") as stream:
        stream.write(template.format(title=title, share=share, county=county).encode())
