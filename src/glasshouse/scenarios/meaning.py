"""What do the words of a table mean? A label, a code, a bin or a group of a recode is a set of levels."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from glasshouse.errors import InputError
from glasshouse.limits import CHOICES, NAME_LENGTH
from glasshouse.model.schema import Attribute, Group, Recode
from glasshouse.scenarios.spelling import binned

EVERYBODY = ("*", "total")  # how a table says that an attribute does not matter; an office's own words are declared
Levels = frozenset[int]


@dataclass(frozen=True)
class Dictionary:
    """The words for sets of levels of one attribute: what was declared, and what the scenario calls them itself."""

    attribute: Attribute
    recodes: tuple[Recode, ...] = ()
    declared: Mapping[str, Levels] = field(default_factory=dict)
    met: dict[str, Levels | None] = field(default_factory=dict, compare=False, repr=False)

    @property
    def everybody(self) -> Levels:
        return frozenset(range(len(self.attribute)))

    def levels(self, text: str) -> Levels | None:
        """The levels that a text means; None when nobody says. A text that means two things is refused."""
        if text not in self.met:
            self.met[text] = self._levels(text)
        return self.met[text]

    def _levels(self, text: str) -> Levels | None:
        if text in self.declared:
            return self.declared[text]
        found = self._named.get(text) or self._named_in_any_case.get(text.casefold()) or set()
        if not found and text.casefold() in EVERYBODY:
            return self.everybody
        if not found:
            found = set(self._bins(text))
        if len(found) > 1:
            raise InputError(
                f"'{text[:NAME_LENGTH]}' means different things of {self.attribute.name} (a level, a code or groups of "
                f"recodes); say which under [files.column.NAME] codes"
            )
        return next(iter(found), None)

    @cached_property
    def _named(self) -> dict[str, set[Levels]]:
        return _gathered(self._known())

    @cached_property
    def _named_in_any_case(self) -> dict[str, set[Levels]]:
        return _gathered((name.casefold(), levels) for name, levels in self._known())

    def _known(self) -> Iterator[tuple[str, Levels]]:
        for level, label in enumerate(self.attribute.levels):
            yield label, frozenset([level])
        for reading in self.attribute.readings[:1]:
            if len(reading.columns) == 1:
                for level, codes in enumerate(reading.codes):
                    yield from ((code[0], frozenset([level])) for code in codes)
        for recode in self.recodes:
            yield from _groups(recode.groups)

    def _bins(self, text: str) -> Iterator[Levels]:
        """A bin of whole numbers that no recode has: `15-29`, `85+`, or with an open end as offices write it."""
        try:
            bins = binned(self.attribute, text) if " " not in text and ".." not in text else []
        except InputError:
            return
        yield from (levels for _, levels in bins)

    @property
    def known(self) -> str:
        """Words that are known, for a complaint."""
        names = list(dict.fromkeys([*self.declared, *(name for name, _ in self._known())]))
        return ", ".join(names[: CHOICES // 3]) + (", ..." if len(names) > CHOICES // 3 else "")


def dictionary(attribute: Attribute, recodes: Mapping[str, Recode]) -> Dictionary:
    """The words that a scenario has for the levels of an attribute."""
    return Dictionary(attribute, tuple(one for one in recodes.values() if one.attribute == attribute.name))


def _gathered(pairs: Iterable[tuple[str, Levels]]) -> dict[str, set[Levels]]:
    found: dict[str, set[Levels]] = {}
    for name, levels in pairs:
        found.setdefault(name, set()).add(levels)
    return found


def _groups(groups: tuple[Group, ...]) -> Iterator[tuple[str, Levels]]:
    for group in groups:
        yield group.label, group.levels
        yield from _groups(group.parts)
