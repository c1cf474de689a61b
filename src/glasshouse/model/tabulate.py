"""How do records become tables? Compile the tables into look-ups once, then count places in a tight loop.

Levels that no published line tells apart form a *class*. A record's classes, read as one mixed-radix number, are its
*position*; a list says which columns count a record of that position. The block tables of the person scenario have
9,576 positions (their 38 age bins appear by themselves) and a record is counted with four additions and one walk
along a list of about eleven columns, whatever the number of tables. Where the classes of all tables together would be
too many, the tables are split into groups with a list each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from numba import njit
from numpy.typing import NDArray

from glasshouse.errors import InputError
from glasshouse.limits import LOOKUPS
from glasshouse.model.records import Codes, Count, Index, Records
from glasshouse.model.release import Counts, Table, counted
from glasshouse.model.schema import Predicate, Schema

MAX_POSITIONS = 2**18  # of one group: its lists should stay in the processor's cache

Pair = tuple[Predicate, int]  # records of this description are counted in that column


@dataclass(frozen=True)
class Tabulator:
    """The tables of one level, compiled: which columns a record is counted in."""

    schema: Schema
    variables: tuple[str, ...]
    tables: tuple[str, ...]  # of each variable
    steps: NDArray[np.int32]  # group x attribute x level: what a level adds to the position
    starts: NDArray[np.int64]  # where each group's positions begin
    ends: NDArray[np.int64]  # where the list of each position ends; the next begins there
    columns: NDArray[np.int32]  # the lists of all positions
    most: int  # columns that can count one record

    def count(self, codes: Codes, bounds: NDArray[np.int64]) -> tuple[Index, Index, Count]:
        """Non-zero counts of consecutive places: rows `bounds[i]` to `bounds[i + 1]` of `codes` are place `i`.

        Returns place, column and count, ordered by place and column.
        """
        capacity = min(len(codes) * self.most, (len(bounds) - 1) * len(self.variables))
        place, column = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
        value = np.empty(capacity, np.int64)
        width = len(self.variables)
        used = _count_places(
            codes, bounds, self.steps, self.starts, self.ends, self.columns, width, place, column, value
        )
        return place[:used], column[:used], value[:used]


def compile_tables(schema: Schema, tables: Iterable[Table], *, subtotals: bool = False) -> Tabulator:
    """Prepare tables for counting; with `subtotals` every official line, otherwise the cells alone."""
    variables: list[str] = []
    owners: list[str] = []
    pairs: list[list[Pair]] = []
    for table in tables:
        wanted = [line for line in table.lines if subtotals or line.number in table.cells]
        pairs.append([(p, column) for column, line in enumerate(wanted, len(variables)) for p in counted(table, line)])
        variables += [line.variable for line in wanted]
        owners += [table.name] * len(wanted)
    groups = list(_groups(schema, pairs))
    if sum(group.positions + group.entries for group in groups) > LOOKUPS:
        raise InputError(
            "the tables of the scenario tell too many kinds of record apart: with the lines that count each, more than "
            f"{LOOKUPS:,}; expected fewer or smaller tables"
        )
    widest = max(len(attribute) for attribute in schema.attributes)
    steps = np.zeros((len(groups), len(schema.attributes), widest), np.int32)
    lengths, columns = [], []
    for number, group in enumerate(groups):
        for attribute, classes in enumerate(group.classes):
            steps[number, attribute, : len(classes)] = classes * group.strides[attribute]
        position, column = group.lists()
        lengths.append(np.bincount(position, minlength=group.positions))
        columns.append(column)
    sizes = [group.positions for group in groups]
    return Tabulator(
        schema,
        tuple(variables),
        tuple(owners),
        steps,
        np.cumsum([0, *sizes[:-1]], dtype=np.int64),
        np.cumsum(np.concatenate([[0], *lengths]), dtype=np.int64)[1:],
        np.concatenate(columns).astype(np.int32),
        sum(int(some.max(initial=0)) for some in lengths),
    )


def tabulate(records: Records, tables: Sequence[Table], level: str, *, subtotals: bool = False) -> Counts:
    """Count records into tables, one row per place of the records."""
    tabulator = compile_tables(records.schema, tables, subtotals=subtotals)
    order = np.argsort(records.place, kind="stable")
    bounds = np.searchsorted(records.place[order], np.arange(len(records.places) + 1)).astype(np.int64)
    place, column, value = tabulator.count(np.ascontiguousarray(records.codes[order]), bounds)
    counts = np.zeros((len(records.places), len(tabulator.variables)), np.int64)
    counts[place, column] = value
    return Counts(level, records.places, tabulator.variables, counts, counts)


def _groups(schema: Schema, pairs: Sequence[Sequence[Pair]]) -> Iterator[_Group]:
    """All tables in one group if that has few enough positions; otherwise the halves, each on its own."""
    group = _Group(schema, [pair for some in pairs for pair in some])
    if group.positions <= MAX_POSITIONS or len(pairs) <= 1:
        yield group
    else:
        yield from _groups(schema, pairs[: len(pairs) // 2])
        yield from _groups(schema, pairs[len(pairs) // 2 :])


class _Group:
    """Lines compiled together: the classes of their levels, and for every position the columns that count it."""

    def __init__(self, schema: Schema, pairs: Sequence[Pair]) -> None:
        self.pairs = pairs
        self.kinds: list[NDArray[np.int64]] = []  # for each attribute, which of the distinct level sets a pair has
        self.inside: list[list[NDArray[np.int64]]] = []  # for each attribute and distinct level set, its classes
        self.classes: list[NDArray[np.int64]] = []  # for each attribute, the class of each level
        for attribute in schema.attributes:
            everything = frozenset(range(len(attribute)))
            sets = [predicate.by_attribute.get(attribute.name, everything) for predicate, _ in pairs]
            number = {levels: kind for kind, levels in enumerate(dict.fromkeys(sets))}
            member = np.zeros((len(attribute), len(number)), np.bool_)
            for levels, kind in number.items():
                member[sorted(levels), kind] = True
            classes = np.unique(member, axis=0, return_inverse=True)[1].reshape(-1)
            self.kinds.append(np.array([number[levels] for levels in sets], np.int64))
            self.inside.append([np.unique(classes[member[:, kind]]) for kind in number.values()])
            self.classes.append(classes)
        sizes = [int(classes.max()) + 1 for classes in self.classes]
        self.positions = prod(sizes)
        self.strides = [prod(sizes[index + 1 :]) for index in range(len(sizes))]

    @property
    def entries(self) -> float:
        """How many (position, column) there are; a float, since it may be astronomical."""
        sizes = (
            np.array([len(classes) for classes in inside])[kinds]
            for kinds, inside in zip(self.kinds, self.inside, strict=True)
        )
        return float(np.prod([some.astype(np.float64) for some in sizes], axis=0).sum())

    def lists(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Every (position, column) that counts, in order: expand each pair attribute by attribute."""
        pair, position = np.arange(len(self.pairs)), np.zeros(len(self.pairs), np.int64)
        for kinds, inside, stride in zip(self.kinds, self.inside, self.strides, strict=True):
            lengths = np.array([len(classes) for classes in inside], np.int64)
            begins, flat = np.cumsum(lengths) - lengths, np.concatenate([np.empty(0, np.int64), *inside])
            kind = kinds[pair]
            repeat = np.repeat(np.arange(len(pair)), lengths[kind])
            within = np.arange(len(repeat)) - np.repeat(np.cumsum(lengths[kind]) - lengths[kind], lengths[kind])
            position = position[repeat] + flat[begins[kind][repeat] + within] * stride
            pair = pair[repeat]
        column = np.array([column for _, column in self.pairs], np.int64)[pair]
        order = np.lexsort((column, position))
        return position[order], column[order]


@njit(cache=True, nogil=True)
def _count_places(codes, bounds, steps, starts, ends, columns, width, place_out, column_out, value_out):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Count the records of each place into a row of `width` columns; write the non-zero ones, return how many."""
    groups, attributes = steps.shape[0], steps.shape[1]
    row = np.zeros(width, np.int64)
    used = 0
    for place in range(len(bounds) - 1):
        for record in range(bounds[place], bounds[place + 1]):
            for group in range(groups):
                position = starts[group]
                for attribute in range(attributes):
                    position += steps[group, attribute, codes[record, attribute]]
                for entry in range(ends[position - 1] if position > 0 else 0, ends[position]):
                    row[columns[entry]] += 1
        for column in range(width):
            if row[column] > 0:
                place_out[used], column_out[used], value_out[used] = place, column, row[column]
                row[column] = 0
                used += 1
    return used
