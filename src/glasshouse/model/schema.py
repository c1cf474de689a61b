"""What is a record? A level for each attribute; a predicate is a product of level sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from glasshouse.errors import InputError, unknown
from glasshouse.limits import NAME_LENGTH, PIECES
from glasshouse.text import is_whole


@dataclass(frozen=True)
class Reading:
    """How record files spell an attribute: `codes[i]` lists what its columns may hold for level `i`.

    Most attributes have one column and one code per level; race has six 0/1 columns; a voting age can be read
    from an age, many codes to a level. The first code of a level is the one we write.
    """

    columns: tuple[str, ...]
    codes: tuple[tuple[tuple[str, ...], ...], ...]


@dataclass(frozen=True)
class Attribute:
    """One thing known about a record: its levels, and the ways record files spell them (preferred one first).

    Levels that say how many of something a record has (members of a household) have `numbers`: by what is counted,
    the number of each level. Tables can add those up.
    """

    name: str
    levels: tuple[str, ...]
    readings: tuple[Reading, ...]
    numbers: Mapping[str, tuple[int, ...]] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not self.levels or len(set(self.levels)) != len(self.levels):
            raise InputError(f"attribute '{self.name}' needs at least one level, and different labels for them")
        for reading in self.readings:
            codes = [code for level in reading.codes for code in level]
            if len(reading.codes) != len(self.levels) or not all(reading.codes):
                raise InputError(f"attribute '{self.name}' has {len(self.levels)} levels; it needs a code for each")
            if len(set(codes)) != len(codes) or any(len(code) != len(reading.columns) for code in codes):
                raise InputError(f"attribute '{self.name}' needs different codes for its levels, one for each column")
        for counted, numbers in self.numbers.items():
            if len(numbers) != len(self.levels) or min(numbers) < 0:
                raise InputError(
                    f"attribute '{self.name}' needs a number of {counted} from 0 up for each of its levels"
                )

    def __len__(self) -> int:
        return len(self.levels)

    @cached_property
    def _by_label(self) -> dict[str, int]:
        return {label: number for number, label in enumerate(self.levels)}

    def level(self, label: str) -> int:
        """The number of a level from its label."""
        if label not in self._by_label:
            raise unknown(f"level of {self.name}", label, self.levels)
        return self._by_label[label]

    def having(self, counted: str, numbers: Iterable[int]) -> frozenset[int]:
        """The levels with one of these numbers of what is counted: the households of 3 or 4 persons."""
        if counted not in self.numbers:
            raise unknown(f"number of {self.name}", counted, self.numbers)
        wanted = frozenset(numbers)
        return frozenset(level for level, number in enumerate(self.numbers[counted]) if number in wanted)


@dataclass(frozen=True)
class Group:
    """Some levels of an attribute under one label, perhaps divided into smaller groups."""

    label: str
    levels: frozenset[int]
    parts: tuple[Group, ...] = ()

    def __post_init__(self) -> None:
        if not self.levels:
            raise InputError(f"group '{self.label}' is empty")
        if self.parts:
            _refuse_overlap(f"group '{self.label}'", self.parts)
            if frozenset().union(*(part.levels for part in self.parts)) != self.levels:
                raise InputError(f"group '{self.label}' is not the sum of its parts")


@dataclass(frozen=True)
class Recode:
    """A way to look at an attribute: its levels gathered into named groups.

    Groups never overlap, except in a `tally`: there a record counts once in every group it belongs to
    ("White alone or in combination"), so the groups count answers, not records.
    """

    name: str
    attribute: str
    groups: tuple[Group, ...]
    tally: bool = False

    def __post_init__(self) -> None:
        if not self.tally:
            _refuse_overlap(f"recode '{self.name}'", self.groups)
        elif any(group.parts for group in self.groups):
            raise InputError(f"recode '{self.name}' is a tally; its groups cannot be divided")

    @cached_property
    def leaves(self) -> tuple[Group, ...]:
        """The finest groups, in printed order."""
        return tuple(leaf for group in self.groups for leaf in _leaves(group))

    def cuts(self) -> Iterator[tuple[Group, ...]]:
        """The groups as they are printed, coarsest first: undivided, then with the parts of each, and so on."""
        groups = self.groups
        yield groups
        while any(group.parts for group in groups):
            groups = tuple(part for group in groups for part in (group.parts or (group,)))
            yield groups

    def divided(self, most: int) -> tuple[Group, ...]:
        """The groups, one after the other divided into their parts while there are at most so many."""
        groups, at = list(self.groups), 0
        while at < len(groups):
            parts = groups[at].parts
            if parts and len(groups) - 1 + len(parts) <= most:
                groups[at : at + 1] = parts
            else:
                at += 1
        return tuple(groups)


@dataclass(frozen=True)
class Predicate:
    """A description of records: for each attribute named, the levels allowed.

    Make one with `Schema.where`, which leaves out attributes that are not restricted; so equal descriptions are
    equal objects, and `p <= q` ("every record of p is one of q") is decided attribute by attribute.
    """

    sets: tuple[tuple[str, frozenset[int]], ...] = ()

    @cached_property
    def by_attribute(self) -> dict[str, frozenset[int]]:
        return dict(self.sets)

    @property
    def empty(self) -> bool:
        return any(not levels for _, levels in self.sets)

    def __and__(self, other: Predicate) -> Predicate:
        both = dict(self.sets)
        for name, levels in other.sets:
            both[name] = both[name] & levels if name in both else levels
        return Predicate(tuple(sorted(both.items(), key=_first)))

    def __le__(self, other: Predicate) -> bool:
        mine = self.by_attribute
        return self.empty or all(name in mine and mine[name] <= levels for name, levels in other.sets)

    def meets(self, other: Predicate) -> bool:
        """Can a record satisfy both descriptions?"""
        return not (self & other).empty


EVERYONE = Predicate()


@dataclass(frozen=True)
class Impossible:
    """A structural zero: records of this description do not exist, for the reason given.

    `kind` says how far it is to be trusted: what follows from the meaning of the words holds in every file, what an
    office's editing of answers makes so need not hold in another's.
    """

    predicate: Predicate
    reason: str
    kind: str = "certain"


@dataclass(frozen=True)
class Schema:
    """What a record is: its attributes, and which combinations of their levels cannot occur."""

    attributes: tuple[Attribute, ...]
    impossible: tuple[Impossible, ...] = ()

    def __post_init__(self) -> None:
        names = [attribute.name for attribute in self.attributes]
        if len(set(names)) != len(names):
            raise InputError(f"attributes must have different names; found {', '.join(names)[:NAME_LENGTH]}")
        numbers = [counted for attribute in self.attributes for counted in attribute.numbers]
        if len(set(numbers)) != len(numbers):
            raise InputError(
                f"what attributes count must have different names; found {', '.join(numbers)[:NAME_LENGTH]}"
            )

    @cached_property
    def by_name(self) -> dict[str, Attribute]:
        return {attribute.name: attribute for attribute in self.attributes}

    @cached_property
    def position(self) -> dict[str, int]:
        return {attribute.name: index for index, attribute in enumerate(self.attributes)}

    def attribute(self, name: str) -> Attribute:
        if name not in self.by_name:
            raise unknown("attribute", name, self.by_name)
        return self.by_name[name]

    def counting(self, counted: str) -> Attribute:
        """The attribute whose levels have a number of what is counted."""
        known = {name: attribute for attribute in self.attributes for name in attribute.numbers}
        if counted not in known:
            raise unknown("number of the records", counted, known)
        return known[counted]

    def where(self, sets: Mapping[str, Iterable[int]]) -> Predicate:
        """The predicate that allows these levels, in canonical form."""
        restricted = []
        for name, allowed in sets.items():
            attribute, levels = self.attribute(name), frozenset(allowed)
            outside = sorted(level for level in levels if not 0 <= level < len(attribute))
            if outside:
                raise InputError(f"attribute '{name}' has levels 0..{len(attribute) - 1}; found {outside[0]}")
            if len(levels) < len(attribute):
                restricted.append((name, levels))
        return Predicate(tuple(sorted(restricted, key=_first)))

    def looking_away(self, names: Iterable[str]) -> Schema:
        """The schema for questions that do not look at some attributes: what is possible with some level of those.

        Zeros that name one of them are taken together: what they leave possible is seen without those attributes, and
        what then is never possible are the zeros that are left.
        """
        away = frozenset(names)
        naming = [zero for zero in self.impossible if away & set(zero.predicate.by_attribute)]
        if not naming:
            return self
        left = self._remaining(EVERYONE, [zero.predicate for zero in naming])
        seen = dict.fromkeys(Predicate(tuple(one for one in box.sets if one[0] not in away)) for box in left)
        widest = [box for box in seen if not any(box <= other and box != other for other in seen)]
        reason, kind = "; ".join(dict.fromkeys(zero.reason for zero in naming)), naming[-1].kind
        implied = [Impossible(box, reason, kind) for box in self._remaining(EVERYONE, widest)]
        kept = [zero for zero in self.impossible if zero not in naming]
        return Schema(self.attributes, (*kept, *implied))

    def size(self, predicate: Predicate = EVERYONE) -> int:
        """How many different possible records satisfy the predicate (structural zeros left out)."""
        return sum(self._volume(box) for box in self.possible(predicate))

    def possible(self, predicate: Predicate = EVERYONE, without: Iterable[Predicate] = ()) -> Iterator[Predicate]:
        """Disjoint descriptions that together are the possible records of a predicate, without those of others."""
        return self._remaining(predicate, (*without, *self._zeros))

    def covered(self, predicate: Predicate, by: Iterable[Predicate]) -> bool:
        """Does every possible record of the predicate satisfy at least one of the others?"""
        return next(self.possible(predicate, by), None) is None

    def levels_within(self, predicate: Predicate) -> Mapping[str, frozenset[int]]:
        """For each attribute, the levels that possible records of the predicate have; asked often, so remembered."""
        if predicate not in self._levels_within:
            found: dict[str, frozenset[int]] = {attribute.name: frozenset() for attribute in self.attributes}
            for box in self.possible(predicate):
                for name, levels in found.items():
                    found[name] = levels.union(box.by_attribute.get(name, range(len(self.attribute(name)))))
            self._levels_within[predicate] = found
        return self._levels_within[predicate]

    @cached_property
    def _levels_within(self) -> dict[Predicate, Mapping[str, frozenset[int]]]:
        return {}

    @cached_property
    def _zeros(self) -> tuple[Predicate, ...]:
        return tuple(zero.predicate for zero in self.impossible)

    def _volume(self, box: Predicate) -> int:
        allowed = box.by_attribute
        return prod(len(allowed.get(a.name, a.levels)) for a in self.attributes)

    def _remaining(self, whole: Predicate, holes: Sequence[Predicate]) -> Iterator[Predicate]:
        """Disjoint boxes that make up what is left of a box without the holes, depth first."""
        waiting, pieces = [(whole, 0)], 0
        while waiting:
            box, start = waiting.pop()
            pieces += 1
            if pieces > PIECES:
                raise InputError(
                    f"structural zeros cut the records into more than {PIECES:,} descriptions; expected fewer zeros, "
                    "or zeros that name fewer attributes"
                )
            met = next((index for index in range(start, len(holes)) if box.meets(holes[index])), None)
            if met is not None:
                waiting += reversed([(piece, met + 1) for piece in self._without(box, holes[met])])
            elif not box.empty:
                yield box

    def _without(self, box: Predicate, hole: Predicate) -> Iterator[Predicate]:
        """Disjoint boxes that make up a box minus a hole: peel one attribute of the hole after the other."""
        for name, levels in hole.sets:
            allowed = box.by_attribute.get(name, frozenset(range(len(self.attribute(name)))))
            if allowed - levels:
                yield box & Predicate(((name, allowed - levels),))
            box = box & Predicate(((name, levels),))

    def describe(self, predicate: Predicate) -> str:
        """The predicate in words."""
        if not predicate.sets:
            return "all records"
        return ", ".join(f"{name} {self._spell(name, levels)}" for name, levels in predicate.sets)

    def _spell(self, name: str, levels: frozenset[int]) -> str:
        labels = self.attribute(name).levels
        ordered = sorted(levels)
        numbers = is_whole(labels[ordered[0]]) and ordered[-1] - ordered[0] == len(ordered) - 1
        if numbers and len(ordered) > 2:
            return f"{labels[ordered[0]]} to {labels[ordered[-1]]}"
        if len(ordered) > 6:
            return f"one of {len(ordered)} levels"
        return " or ".join(labels[level] for level in ordered)


def _first(pair: tuple[str, frozenset[int]]) -> str:
    return pair[0]


def _leaves(group: Group) -> Iterator[Group]:
    if not group.parts:
        yield group
    for part in group.parts:
        yield from _leaves(part)


def _refuse_overlap(owner: str, groups: Sequence[Group]) -> None:
    seen: set[int] = set()
    for group in groups:
        if seen & group.levels:
            raise InputError(f"{owner}: level {min(seen & group.levels)} is in two groups; groups must not overlap")
        seen |= group.levels
