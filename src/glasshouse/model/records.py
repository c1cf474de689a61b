"""What do we hold? Records one by one, or the same counted into the cells of a histogram."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from glasshouse.errors import GlasshouseBug, InputError
from glasshouse.model.schema import Group, Predicate, Recode, Schema

Codes = NDArray[np.int16]
Index = NDArray[np.int32]
Count = NDArray[np.int64]


UNLIMITED = 10**12  # the upper end of a count only known to be at least something; more than any population


class Interval(NamedTuple):
    """What is known of a count: it lies between `lower` and `upper`."""

    lower: int
    upper: int = UNLIMITED

    @property
    def exact(self) -> int:
        """The count itself, when only one value is possible."""
        if self.upper != self.lower:
            raise InputError(f"the count is not known exactly: {self.lower} to {self.upper}")
        return self.lower


@dataclass(frozen=True)
class Histogram:
    """Records counted by cell: `counts[i]` records of `places[place[i]]` have the levels `codes[i]`."""

    schema: Schema
    places: tuple[str, ...]
    place: Index
    codes: Codes
    counts: Count

    def __post_init__(self) -> None:
        if self.codes.shape != (len(self.place), len(self.schema.attributes)) or len(self.counts) != len(self.place):
            raise GlasshouseBug("histogram arrays do not have one row per cell and one column per attribute")

    def __len__(self) -> int:
        """How many records there are."""
        return int(self.counts.sum())

    def count(self, predicate: Predicate, place: str | None = None) -> Interval:
        """How many records (of a place, or of all places) satisfy the predicate."""
        chosen = satisfies(self.schema, self.codes, predicate)
        if place is not None:
            if place not in self.places:
                raise InputError(f"no records of place '{place}' here; there are {len(self.places)} other places")
            chosen &= self.place == self.places.index(place)
        total = int(self.counts[chosen].sum())
        return Interval(total, total)


@dataclass(frozen=True)
class Records:
    """Records one by one: record `i` is in `places[place[i]]` and has the levels `codes[i]`."""

    schema: Schema
    places: tuple[str, ...]
    place: Index
    codes: Codes

    def __len__(self) -> int:
        return len(self.place)

    def count(self, predicate: Predicate, place: str | None = None) -> Interval:
        """How many records (of a place, or of all places) satisfy the predicate."""
        ones = np.ones(len(self), dtype=np.int64)
        return Histogram(self.schema, self.places, self.place, self.codes, ones).count(predicate, place)

    def histogram(self) -> Histogram:
        """The same records counted by cell, places and cells in increasing order."""
        rows = np.column_stack([self.place, self.codes.astype(np.int32)])
        cells, counts = np.unique(rows, axis=0, return_counts=True)
        return Histogram(self.schema, self.places, cells[:, 0], cells[:, 1:].astype(np.int16), counts.astype(np.int64))


def group_of_level(schema: Schema, recode: Recode, groups: tuple[Group, ...] | None = None) -> NDArray[np.int64]:
    """The number of the group of each level of a recode's attribute; levels in no group share one of their own.

    The groups are its finest, or others of its own (`Recode.cuts`).
    """
    groups = recode.leaves if groups is None else groups
    found = np.full(len(schema.attribute(recode.attribute)), len(groups), np.int64)
    for number, group in enumerate(groups):
        found[sorted(group.levels)] = number
    return found


def satisfies(schema: Schema, codes: Codes, predicate: Predicate) -> NDArray[np.bool_]:
    """Which rows of codes satisfy the predicate."""
    chosen = np.ones(len(codes), dtype=np.bool_)
    for name, levels in predicate.sets:
        allowed = np.zeros(len(schema.attribute(name)), dtype=np.bool_)
        allowed[sorted(levels)] = True
        chosen &= allowed[codes[:, schema.position[name]]]
    return chosen
