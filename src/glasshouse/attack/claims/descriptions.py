"""Which descriptions could be certain? Those of the households that one fitting data set has, column by column.

A description names a value for each of some columns. If exactly m >= 1 records match it in every data set that fits,
then m do in any one of them: so one data set holds every candidate, and nothing is missed by looking at no other.
Descriptions that the same live cells match are one *kind*, settled once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from glasshouse.errors import InputError
from glasshouse.model.records import Codes
from glasshouse.model.release import Table, counted
from glasshouse.model.schema import Predicate, Schema
from glasshouse.model.wording import Wording
from glasshouse.program.extremes import different
from glasshouse.program.tables.cells import Cells

Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]
MAX_COLUMNS = 20  # their subsets are listed


def told_by(tables: Iterable[Table], present: Iterable[str], schema: Schema, wording: Wording) -> Wording:
    """The wording with one value for all levels that no published number tells apart (convention 39).

    A claim that named one of them could never be certain. Columns that no table looks at stay as they are: only what
    cannot be (structural zeros) can tell something of them.
    """
    names = frozenset(present)
    lines = [(table, line) for table in tables for line in table.lines if line.variable in names]
    told = [some for table, line in lines for some in counted(table, line)]
    told += [] if wording.apart is None else [wording.apart]
    groups = dict(wording.groups)
    for name in wording.columns:
        sets = {some.by_attribute[name] for some in told if name in some.by_attribute}
        alike: dict[tuple[bool, ...], set[int]] = {}
        for level in range(len(schema.attribute(name))) if sets else ():
            alike.setdefault(tuple(level in levels for levels in sets), set()).add(level)
        for levels in alike.values():
            met = [group for group in groups[name] if group & levels]
            rest = [group for group in groups[name] if not group & levels]
            groups[name] = (*rest, frozenset().union(*met))
        groups[name] = tuple(sorted(groups[name], key=min))
    return replace(wording, groups=groups)


@dataclass(frozen=True)
class Vocabulary:
    """What claims can say of cells: the value that every level has in each column, and what classes of levels cover."""

    wording: Wording
    cells: Cells

    @cached_property
    def at(self) -> tuple[int, ...]:
        """Where the columns stand among the attributes."""
        return tuple(self.cells.schema.position[name] for name in self.wording.columns)

    @cached_property
    def of_level(self) -> tuple[Ints, ...]:
        """For each column the value of each level."""
        return values_of_levels(self.wording, self.cells.schema)

    @cached_property
    def covers(self) -> tuple[Flags, ...]:
        """For each column: which values the levels of a class have."""
        found = []
        for at, values in zip(self.at, self.of_level, strict=True):
            classes = self.cells.classes[at]
            member = np.zeros((int(classes.max()) + 1, int(values.max()) + 1), np.bool_)
            member[classes, values] = True
            found.append(member)
        return tuple(found)

    @cached_property
    def only(self) -> tuple[Ints, ...]:
        """For each column the value of each class, -1 where its levels have several."""
        return tuple(np.where(member.sum(axis=1) == 1, member.argmax(axis=1), -1) for member in self.covers)


def values_of_levels(wording: Wording, schema: Schema) -> tuple[Ints, ...]:
    """For each column the value of each level: the number of the group that it is in."""
    found = []
    for name in wording.columns:
        values = np.empty(len(schema.attribute(name)), np.int64)
        for number, levels in enumerate(wording.groups[name]):
            values[sorted(levels)] = number
        found.append(values)
    return tuple(found)


def values_of_records(wording: Wording, schema: Schema, codes: Codes) -> NDArray[np.int16]:
    """The values of records, a row each."""
    at = [schema.position[name] for name in wording.columns]
    columns = [values[codes[:, here]] for here, values in zip(at, values_of_levels(wording, schema), strict=True)]
    return np.column_stack(columns).astype(np.int16)


def predicate_of(wording: Wording, schema: Schema, values: NDArray[np.int16]) -> Predicate:
    """A description as a predicate."""
    named = [(name, value) for name, value in zip(wording.columns, values.tolist(), strict=True) if value >= 0]
    return schema.where({name: wording.groups[name][value] for name, value in named})


@dataclass(frozen=True)
class Candidates:
    """Descriptions, a row each: `values[i, c]` is the value of column c, -1 where it is not named; and their kinds.

    A kind is the variables wholly `inside` its descriptions, and those `meeting` them.
    """

    values: NDArray[np.int16]
    kind: Ints
    inside: Flags
    meeting: Flags

    @property
    def columns(self) -> Ints:
        """How many columns each description names."""
        return np.asarray((self.values >= 0).sum(axis=1))


class Live:
    """The live cells of one place as claims see them; `of` puts cells together into variables."""

    def __init__(self, vocabulary: Vocabulary, cells: NDArray[np.integer], of: Ints | None = None) -> None:
        self.vocabulary = vocabulary
        self.classes = vocabulary.cells.codes[cells].astype(np.int64)[:, list(vocabulary.at)]
        self.of = of
        self.order = np.arange(len(cells)) if of is None else np.argsort(of, kind="stable")
        self.count = len(cells) if of is None else int(of.max(initial=-1)) + 1
        self.begins = (
            np.arange(self.count) if of is None else np.searchsorted(of[self.order], np.arange(self.count))
        ).astype(np.int64)
        only = [values[self.classes[:, column]] for column, values in enumerate(vocabulary.only)]
        self.only = np.column_stack(only)[self.order] if only else np.empty((len(cells), 0), np.int64)
        self.classes = self.classes[self.order]

    @cached_property
    def shared(self) -> Ints:
        """For each variable and column the value that all its cells have, or -1."""
        low = np.minimum.reduceat(self.only, self.begins, axis=0) if self.count else self.only
        high = np.maximum.reduceat(self.only, self.begins, axis=0) if self.count else self.only
        return np.asarray(np.where(low == high, low, -1))

    def matching(self, values: Ints, subsets: Ints) -> tuple[Flags, Flags]:
        """The variables inside, and meeting, the descriptions that name these subsets of the values."""
        bits = np.int64(1) << np.arange(len(values))
        inside = ((self.only == values) @ bits).astype(np.int64)
        covered = np.column_stack(
            [covers[self.classes[:, c], max(values[c], 0)] for c, covers in enumerate(self.vocabulary.covers)]
        )
        meeting = (covered @ bits).astype(np.int64)
        every = inside if self.of is None else np.bitwise_and.reduceat(inside, self.begins)
        within = (every[None, :] & subsets[:, None]) == subsets[:, None]
        if self.of is None:
            same = bool((inside == meeting).all())
            return within, within if same else (meeting[None, :] & subsets[:, None]) == subsets[:, None]
        owner = self.of[self.order]  # of each cell; few combinations of bits per variable
        pairs = np.unique(owner * (np.int64(1) << len(values)) + meeting)
        found = (pairs % (np.int64(1) << len(values)))[None, :] & subsets[:, None]
        starts = np.searchsorted(pairs >> len(values), np.arange(self.count))
        return within, np.asarray(np.logical_or.reduceat(found == subsets[:, None], starts, axis=1))

    def described(self, values: NDArray[np.int16], sources: Ints) -> tuple[Flags, Flags]:
        """The variables inside, and meeting, each of these descriptions; most are parts of one of the `sources`."""
        bits = np.int64(1) << np.arange(values.shape[1])
        inside = np.zeros((len(values), self.count), np.bool_)
        meeting = inside.copy()
        left = np.ones(len(values), np.bool_)
        for source in sources:
            mine = np.flatnonzero(left & ((values == source) | (values < 0)).all(axis=1))
            if len(mine):
                inside[mine], meeting[mine] = self.matching(source, ((values[mine] >= 0) @ bits).astype(np.int64))
                left[mine] = False
        for row in np.flatnonzero(left):
            named = values[row].astype(np.int64)
            inside[row : row + 1], meeting[row : row + 1] = self.matching(named, np.array([int((named >= 0) @ bits)]))
        return inside, meeting

    def candidates(self, support: Sequence[int] | Ints, subsets: Ints, among: Flags) -> Candidates:
        """The descriptions of these variables by subsets of columns, bits of which stand for columns.

        Only the variables `among` all are counted.
        """
        rows, packed = [], []
        bits = np.int64(1) << np.arange(self.shared.shape[1])
        for variable in support:
            values = self.shared[variable]
            fine = subsets[(subsets & ~int((values >= 0) @ bits)) == 0]
            if not len(fine):
                continue
            inside, meeting = self.matching(values, fine)
            named = (fine[:, None] & bits) > 0
            rows.append(np.where(named, values, -1).astype(np.int16))
            both = [np.packbits(inside & among, axis=1), np.packbits(meeting & among, axis=1)]
            packed.append(np.concatenate(both, axis=1))
        width = (self.count + 7) // 8
        if not rows:
            none = np.zeros((0, self.count), np.bool_)
            return Candidates(np.empty((0, len(bits)), np.int16), np.empty(0, np.int64), none, none)
        values = np.concatenate(rows)
        first, _ = different((values + 1).astype(">u2").view(np.uint8))
        values, kinds = values[first], np.concatenate(packed)[first]
        once, kind = different(kinds)
        kinds = kinds[once]
        inside = np.unpackbits(kinds[:, :width], axis=1, count=self.count).astype(np.bool_)
        meeting = np.unpackbits(kinds[:, width:], axis=1, count=self.count).astype(np.bool_)
        return Candidates(values, kind, inside, meeting)


def subsets_of(columns: int, least: int) -> Ints:
    """All sets of at least so many of the columns, as bits."""
    if columns > MAX_COLUMNS:
        raise InputError(f"claims can be made of at most {MAX_COLUMNS} columns; the scenario's records have {columns}")
    every = np.arange(1 << columns, dtype=np.int64)
    return every[_ones(every) >= least]


def _ones(numbers: Ints) -> Ints:
    total = np.zeros(len(numbers), np.int64)
    for bit in range(MAX_COLUMNS):
        total += (numbers >> bit) & 1
    return total
