"""Who is behind a record? Records are linked to named people, one to one, and what they tell is attached.

Paper 000, algorithms 1 to 4. Two files are compared place by place. Records that agree on what is known of people (sex
and age) are linked, the first of one file with the first of the other, the second with the second, and none twice;
first those that agree exactly, then, of the rest, those that agree in bins. What the linked record says besides (race
and origin) is then attached to the person: a putative re-identification. It is confirmed when the truth has that
person in that place with that sex, that age (in bins) and exactly what was attached.

Which of several equal records comes first must not be an accident of the files. So records are put into an order that
depends on what they say alone, and then taken in the order of a draw (`taken`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from glasshouse.errors import GlasshouseBug, InputError
from glasshouse.model.records import Codes, group_of_level
from glasshouse.model.schema import Recode, Schema

Ints = NDArray[np.int64]
Small = NDArray[np.int32]  # half the memory is twice as fast
Flags = NDArray[np.bool_]

NOBODY = -1
EXACTLY, IN_BINS = 1, 2  # how two records were found to agree
_DIRECT = 1 << 20  # keys up to here are looked up in a table; larger ones are numbered first


@dataclass(frozen=True)
class Features:
    """What is known of people before the attack, exactly and in bins, and what is sensitive: all the rest.

    `unique_on` names attributes, or bins of one; their attributes are what is known.
    """

    schema: Schema
    bins: Mapping[str, Recode]
    unique_on: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.unique_on:
            raise InputError(
                "the scenario does not say by what people are known; it needs `unique` under [compare]: attributes, "
                "or bins of one, that an attacker knows of a person"
            )
        if not self.sensitive:
            raise InputError("the scenario has no attribute besides those that people are known by: nothing is learnt")

    @property
    def known(self) -> tuple[str, ...]:
        """The attributes that an attacker has of people."""
        names = (self.bins[name].attribute if name in self.bins else name for name in self.unique_on)
        return tuple(dict.fromkeys(names))

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The attributes that an attacker would learn."""
        return tuple(attribute.name for attribute in self.schema.attributes if attribute.name not in self.known)

    @cached_property
    def cells(self) -> int:
        """How many combinations of sensitive levels there are."""
        return int(np.prod([len(self.schema.attribute(name)) for name in self.sensitive]))

    def exactly(self, levels: Mapping[str, NDArray[Any]]) -> Ints:
        """One number for what is known of each record."""
        return _together([(levels[name], len(self.schema.attribute(name))) for name in self.known])

    def in_bins(self, levels: Mapping[str, NDArray[Any]]) -> Ints:
        """One number for what is known of each record, in bins."""
        parts = []
        for name in self.unique_on:
            if name in self.bins:
                groups = group_of_level(self.schema, self.bins[name])
                parts.append((groups[levels[self.bins[name].attribute]], len(self.bins[name].leaves) + 1))
            else:
                parts.append((levels[name], len(self.schema.attribute(name))))
        return _together(parts)

    def cell(self, levels: Mapping[str, NDArray[Any]]) -> Ints:
        """One number for what is sensitive about each record."""
        return _together([(levels[name], len(self.schema.attribute(name))) for name in self.sensitive])

    def levels(self, codes: Codes) -> dict[str, NDArray[np.int16]]:
        """The columns of a matrix of codes by attribute."""
        return {attribute.name: codes[:, at] for at, attribute in enumerate(self.schema.attributes)}


def _together(parts: list[tuple[NDArray[Any], int]]) -> Ints:
    number = np.zeros(len(parts[0][0]), np.int64)
    for levels, size in parts:
        number = number * size + levels
    return number


@dataclass(frozen=True)
class People:
    """Records of a unit, place by place, in the order in which they are taken.

    `cell` is what is sensitive; a list of named people has none (`NOBODY`).
    """

    place: Small  # the number of the place, increasing
    exact: Small
    binned: Small
    cell: Small

    def __post_init__(self) -> None:
        if np.any(np.diff(self.place) < 0):
            raise GlasshouseBug("records to be linked must lie place by place")

    def __len__(self) -> int:
        return len(self.place)

    @classmethod
    def of(cls, place: NDArray[Any], exact: NDArray[Any], binned: NDArray[Any], cell: NDArray[Any]) -> People:
        columns = place, exact, binned, cell
        if max(int(column.max(initial=0)) for column in columns) > np.iinfo(np.int32).max:
            raise InputError("there are too many combinations of what people are known by; leave an attribute out")
        return cls(*(column.astype(np.int32) for column in columns))

    @cached_property
    def largest(self) -> tuple[int, int]:
        """The largest keys, exact and in bins: a file is linked many times, and its keys do not change."""
        return int(self.exact.max(initial=0)), int(self.binned.max(initial=0))

    @cached_property
    def longest(self) -> int:
        """How many records the place with the most of them has."""
        return _longest(self.place)

    def saying(self, cell: NDArray[Any]) -> People:
        """The same records with something else that is sensitive."""
        return People(self.place, self.exact, self.binned, cell.astype(np.int32))


@dataclass(frozen=True)
class Links:
    """Which record of the left file each record of the right one is linked to; `NOBODY` for none."""

    right: Small
    how: NDArray[np.int8]  # of each right record: EXACTLY, IN_BINS or 0
    lefts: int  # how many records the left file has

    @cached_property
    def left(self) -> Small:
        """Which record of the right file each record of the left one is linked to."""
        to_right = np.full(self.lefts, NOBODY, np.int32)
        linked = np.flatnonzero(self.right >= 0)
        to_right[self.right[linked]] = linked
        return to_right

    @property
    def exact(self) -> int:
        return int(np.count_nonzero(self.how == EXACTLY))

    def __len__(self) -> int:
        return int(np.count_nonzero(self.how))


def taken(place: NDArray[Any], rng: np.random.Generator) -> Ints:
    """The order in which records are taken: place by place, and in each place as a draw says."""
    return np.lexsort((rng.random(len(place)), place))


def match(left: NDArray[Any], left_place: Small, right: NDArray[Any], right_place: Small) -> Links:
    """Algorithm 1: link records of the same place and key, one to one, in order.

    The i-th record with a key is linked to the i-th of the other file with that key, so it is one pass over both.
    """
    largest = max(int(left.max(initial=0)), int(right.max(initial=0)))
    left, right, size = _numbered(left, right, largest)
    longest = max(_longest(left_place), _longest(right_place))
    return _linked((left_place, left, left, left), (right_place, right, right, right), size, 1, 1, longest)


def compile_once() -> None:
    """Link nobody to nobody, so that what is compiled is there."""
    none = np.empty(0, np.int32)
    match(none, none, none, none)


def agreement(left: People, right: People, cells: int) -> Links:
    """Algorithm 2: records that are the same, first with exact age, then in bins."""
    return _both(left, right, cells)


def putative(data: People, listed: People) -> Links:
    """Algorithm 3: which record each listed person could be, by what is known of people alone."""
    return _both(data, listed, cells=1)


def attached(data: People, links: Links) -> Ints:
    """What the linked record says about each person of the list; `NOBODY` where there is none."""
    cell = np.full(len(links.right), NOBODY)
    some = links.right >= 0
    cell[some] = data.cell[links.right[some]]
    return cell


def confirmed(listed: People, attached_cell: Ints, truth: People, true_row: Ints) -> tuple[Flags, Flags]:
    """Algorithm 4: whose attached cell is right, in bins of what is known and exactly.

    `true_row` is the record of that person in that place in the truth, or `NOBODY`. Both files name a person at most
    once in a place, so the paper's two passes come down to comparing these two records.
    """
    right = (true_row >= 0) & (attached_cell >= 0)
    if len(truth):
        right &= (truth.binned[true_row] == listed.binned) & (truth.cell[true_row] == attached_cell)
        return right, right & (truth.exact[true_row] == listed.exact)
    return right, right


def _both(left: People, right: People, cells: int) -> Links:
    exact, binned = (
        _numbered(*keys, max(left.largest[number], right.largest[number]), cells)
        for number, keys in enumerate(((left.exact, right.exact), (left.binned, right.binned)))
    )
    columns = (left.place, exact[0], binned[0], left.cell), (right.place, exact[1], binned[1], right.cell)
    return _linked(*columns, max(exact[2], binned[2]), cells, 2, max(left.longest, right.longest))


def _numbered(left: NDArray[Any], right: NDArray[Any], largest: int, cells: int = 1) -> tuple[Small, Small, int]:
    """Keys that fit into a table, and their number; large ones are numbered from 0."""
    if largest * cells >= _DIRECT:
        found, number = np.unique(np.concatenate([left, right]), return_inverse=True)
        left, right, largest = number[: len(left)], number[len(left) :], len(found)
    return left.astype(np.int32, copy=False), right.astype(np.int32, copy=False), largest + 1


_Columns = tuple[Small, Small, Small, Small]  # place, exact key, key in bins, cell


def _linked(left: _Columns, right: _Columns, size: int, cells: int, passes: int, longest: int) -> Links:
    ours, theirs = len(left[0]), len(right[0])
    to_left, how = np.empty(theirs, np.int32), np.empty(theirs, np.int8)
    room = np.zeros((5, longest + 1), np.int32)
    _link(*left, *right, cells, passes, to_left, how, np.zeros(size * cells, np.int32), *room)
    return Links(to_left, how, ours)


def _longest(place: Small) -> int:
    """How many records the place with the most of them has."""
    return int(np.diff(np.flatnonzero(np.diff(place, prepend=-1, append=-1))).max(initial=0))


@njit(cache=True, nogil=True)
def _link(  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    left_place, left_exact, left_binned, left_cell, right_place, right_exact, right_binned, right_cell, cells, passes,
    to_left, how, queue, following, served, keys, left_free, right_free,
):  # fmt: skip
    """Place by place: the records of the right file in a queue for each key, from which the left ones are served.

    Right records of a place are numbered from 1: number 0 stands for nobody, ends every queue, and may be served any
    number of times. So the loops need no branches, which a processor would guess wrong half of the time; and all but
    what is told in the end is as long as the largest place, and stays near the processor. Indices that cannot be
    negative are told so (`uint64`), or each look-up would ask.
    """
    i, j, with_cell = 0, 0, cells > 1
    while i < len(left_place) and j < len(right_place):
        place = max(left_place[i], right_place[j])
        while i < len(left_place) and left_place[i] < place:
            i += 1
        while j < len(right_place) and right_place[j] < place:
            to_left[j], how[j] = -1, 0
            j += 1
        left_begin, right_begin = i, j
        while i < len(left_place) and left_place[i] == place:
            i += 1
        while j < len(right_place) and right_place[j] == place:
            j += 1
        count = j - right_begin
        # first everyone, in the order of the file
        for r in range(count, 0, -1):
            number = right_exact[right_begin + r - 1] * cells
            if with_cell:
                number += right_cell[right_begin + r - 1]
            key = uint64(number)
            keys[uint64(r)] = key
            served[uint64(r)] = -1
            following[uint64(r)] = queue[key]
            queue[key] = r
        left_count = 0
        for n in range(left_begin, i):
            number = left_exact[n] * cells
            if with_cell:
                number += left_cell[n]
            key = uint64(number)
            r = queue[key]
            queue[key] = following[uint64(r)]
            served[uint64(r)] = n
            left_free[uint64(left_count)] = n
            left_count += r == 0
        right_count = 0
        for r in range(1, count + 1):
            queue[uint64(keys[uint64(r)])] = 0
            free = served[uint64(r)] < 0
            to_left[right_begin + r - 1] = served[uint64(r)]
            how[right_begin + r - 1] = 0 if free else EXACTLY
            right_free[uint64(right_count)] = r
            right_count += free
        if passes == 1 or left_count == 0 or right_count == 0:
            continue
        # then those who are left, in bins
        for at in range(right_count - 1, -1, -1):
            r = right_free[uint64(at)]
            number = right_binned[right_begin + r - 1] * cells
            if with_cell:
                number += right_cell[right_begin + r - 1]
            key = uint64(number)
            keys[uint64(at)] = key
            following[uint64(r)] = queue[key]
            queue[key] = r
        for at in range(left_count):
            n = left_free[uint64(at)]
            number = left_binned[n] * cells
            if with_cell:
                number += left_cell[n]
            key = uint64(number)
            r = queue[key]
            queue[key] = following[uint64(r)]
            served[uint64(r)] = n
        for at in range(right_count):
            r = right_free[uint64(at)]
            queue[uint64(keys[uint64(at)])] = 0
            to_left[right_begin + r - 1] = served[uint64(r)]
            how[right_begin + r - 1] = 0 if served[uint64(r)] < 0 else IN_BINS
    to_left[j:] = -1
    how[j:] = 0
