"""Where does a record live? Nested codes, always text; a coarser level is a prefix, or comes from a mapping."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from glasshouse.errors import InputError, unknown
from glasshouse.limits import CODE_LENGTH, GEOGRAPHIC_LEVELS, NAME_LENGTH
from glasshouse.text import harmful


@dataclass(frozen=True)
class Geography:
    """The levels of a country, coarse to fine, and how codes nest.

    `lengths` gives the length of a code at each level; a level in `mappings` is not a prefix: its code is looked up
    by place. `place` is the finest level, where records live; `unit` is the level that is worked on at once. `compose`
    lists how files that keep the parts of a code in separate columns make it up: columns with their widths.
    """

    lengths: Mapping[str, int]
    place: str
    unit: str
    mappings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    compose: tuple[tuple[tuple[str, int], ...], ...] = ()

    def __post_init__(self) -> None:
        for level in (self.place, self.unit):
            if level not in self.lengths:
                raise unknown("level", level, self.lengths)
        sizes = list(self.lengths.values())
        if len(sizes) > GEOGRAPHIC_LEVELS or max(sizes) > CODE_LENGTH:
            raise InputError(
                f"{len(sizes)} levels of places, with codes of up to {max(sizes):,} letters; expected at most "
                f"{GEOGRAPHIC_LEVELS} levels, and codes of at most {CODE_LENGTH} letters"
            )
        if sizes != sorted(set(sizes)) or sizes[0] < 1 or self.place != list(self.lengths)[-1]:
            raise InputError("levels must be listed from coarse to fine with growing code lengths, the place last")

    @property
    def levels(self) -> tuple[str, ...]:
        """Every level by name, coarse to fine, mapped levels first."""
        return (*self.mappings, *self.lengths)

    @property
    def coarsest(self) -> str:
        """The level of the largest areas that codes begin with."""
        return next(iter(self.lengths))

    def with_mapping(self, level: str, codes: Mapping[str, str]) -> Geography:
        """The same geography with one more level, given as the code of each place."""
        if level in self.lengths:
            raise InputError(
                f"level '{level}' is already a prefix of the {self.place} code; name the mapped level otherwise"
            )
        return replace(self, mappings={**self.mappings, level: dict(codes)})

    def known(self, level: str) -> str:
        if level not in self.levels:
            raise unknown("level", level, self.levels)
        return level

    def within_unit(self, level: str) -> bool:
        """Does every place of this level lie inside one unit?"""
        return self.known(level) in self.lengths and self.lengths[level] >= self.lengths[self.unit]

    def code(self, place: str, level: str) -> str:
        """The code at a level of the area a place lies in."""
        if level in self.mappings:
            if place not in self.mappings[level]:
                raise InputError(f"{self.place} '{place}' is not in the mapping of level '{level}'; add a row for it")
            return self.mappings[level][place]
        return place[: self.lengths[self.known(level)]]

    def told(self, places: Mapping[str, int]) -> str:
        """How many places of each level, in words: 2,158 blocks, 1 county."""
        finest_first = sorted(places, key=self.levels.index, reverse=True)
        return ", ".join(
            f"{places[level]:,} {level if places[level] == 1 else plural(level)}" for level in finest_first
        )

    def fault(self, code: str, level: str) -> str | None:
        """What is wrong with a code at a level, with the remedy; None when it is well formed."""
        if level in self.mappings:
            if not code:
                return "is empty"
            if harmful(code) is not None:
                return "has a control character; expected letters that can be printed"
            return None if len(code) <= NAME_LENGTH else f"has {len(code):,} letters; expected at most {NAME_LENGTH}"
        length = self.lengths[self.known(level)]
        if len(code) == length and code.isascii() and code.isalnum():
            return None
        if code.replace("+", "").replace(".", "").upper().startswith(tuple("123456789")) and "E" in code.upper():
            return f"is in scientific notation and has lost digits; a {level} code has {length}; export it as text"
        if len(code) == length - 1 and code.isdigit():
            return (
                f"has {len(code)} digits but a {level} code has {length}; a leading zero seems to have been lost "
                "(a spreadsheet reads codes as numbers); export the column as text"
            )
        return f"has {len(code)} characters; a {level} code has {length} letters or digits"


def plural(level: str) -> str:
    """The name of a level in the plural: blocks, counties."""
    words = level.replace("_", " ")
    return words[:-1] + "ies" if words.endswith("y") else words + "s"
