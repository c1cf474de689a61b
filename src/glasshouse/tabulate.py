"""How do records become tables? Compile the tables into look-ups once, then count places in a tight loop.

Each published line is a set of records. Lines that cannot share a record are put into one *layer*: a layer maps the
levels of a record, through one small look-up per attribute, to the single line (or none) that counts it. All 34
tables of the person scenario need a dozen layers, whatever the number of cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numba import njit
from numpy.typing import NDArray

from glasshouse.records import Codes, Count, Index, Records
from glasshouse.release import Counts, Line, Table
from glasshouse.schema import Predicate, Schema

Pair = tuple[Predicate, int]  # records of this description are counted in that column


@dataclass(frozen=True)
class Tabulator:
    """The tables of one level, compiled: which columns a record is counted in."""

    schema: Schema
    variables: tuple[str, ...]
    tables: tuple[str, ...]  # of each variable
    steps: NDArray[np.int32]  # layer x attribute x level: what the level adds to the position in the layer's map
    starts: NDArray[np.int64]  # where each layer's map begins
    columns: NDArray[np.int32]  # the maps of all layers: position -> column, -1 for none

    @cached_property
    def layers(self) -> int:
        return len(self.starts)

    def count(self, codes: Codes, bounds: NDArray[np.int64]) -> tuple[Index, Index, Count]:
        """Non-zero counts of consecutive places: rows `bounds[i]` to `bounds[i + 1]` of `codes` are place `i`.

        Returns place, column and count, ordered by place and column.
        """
        places = len(bounds) - 1
        capacity = min(len(codes) * self.layers, places * len(self.variables))
        place, column = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
        value = np.empty(capacity, np.int64)
        used = _count_places(
            codes, bounds, self.steps, self.starts, self.columns, len(self.variables), place, column, value
        )
        return place[:used], column[:used], value[:used]


def compile_tables(schema: Schema, tables: Iterable[Table], *, subtotals: bool = False) -> Tabulator:
    """Prepare tables for counting; with `subtotals` every official line, otherwise the cells alone."""
    variables: list[str] = []
    owners: list[str] = []
    layers: list[list[Pair]] = []
    for table in tables:
        wanted = [line for line in table.lines if subtotals or line.number in table.cells]
        first = len(variables)
        variables += [line.variable for line in wanted]
        owners += [table.name] * len(wanted)
        depths = _depths(table)
        groups: dict[int, list[Pair]] = {}
        for column, line in enumerate(wanted, start=first):
            for predicate, key in _counted(table, line, depths[line.number]):
                groups.setdefault(key, []).append((predicate, column))
        for _, group in sorted(groups.items()):
            _place(schema, layers, group)
    maps = [_layer(schema, layer) for layer in layers]
    widest = max((len(attribute) for attribute in schema.attributes), default=1)
    steps = np.zeros((len(maps), len(schema.attributes), widest), np.int32)
    for layer, (step, _) in enumerate(maps):
        for attribute, values in enumerate(step):
            steps[layer, attribute, : len(values)] = values
    sizes = [len(columns) for _, columns in maps]
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int64) if maps else np.zeros(0, np.int64)
    flat = np.concatenate([columns for _, columns in maps]) if maps else np.zeros(0, np.int32)
    return Tabulator(schema, tuple(variables), tuple(owners), steps, starts, flat)


def tabulate(records: Records, tables: Sequence[Table], level: str, *, subtotals: bool = False) -> Counts:
    """Count records into tables, one row per place of the records."""
    tabulator = compile_tables(records.schema, tables, subtotals=subtotals)
    order = np.argsort(records.place, kind="stable")
    bounds = np.searchsorted(records.place[order], np.arange(len(records.places) + 1)).astype(np.int64)
    place, column, value = tabulator.count(np.ascontiguousarray(records.codes[order]), bounds)
    counts = np.zeros((len(records.places), len(tabulator.variables)), np.int64)
    counts[place, column] = value
    return Counts(level, records.places, tabulator.variables, counts, counts)


def _counted(table: Table, line: Line, depth: int) -> list[tuple[Predicate, int]]:
    """The descriptions a line counts, each with a number that tells apart those that may share a record."""
    if line.predicate is not None:
        return [(line.predicate, line.number if table.tally else depth)]
    # the subtotal of a tally counts a record once for every answer; depth first, so its leaves stand right below it
    last = line
    while last.parts:
        last = table.line(last.parts[-1])
    leaves = [leaf for leaf in table.leaves if line.number < leaf.number <= last.number]
    return [(leaf.predicate, len(table.lines) * depth + leaf.number) for leaf in leaves if leaf.predicate is not None]


def _depths(table: Table) -> dict[int, int]:
    """How many subtotals stand above each line: lines of equal depth are disjoint."""
    depths = {1: 1}
    for line in table.lines:
        depths |= dict.fromkeys(line.parts, depths[line.number] + 1)
    return depths


def _place(schema: Schema, layers: list[list[Pair]], group: list[Pair]) -> None:
    """Put a group of disjoint lines into the first layer that it cannot share a record with."""
    for layer in layers:
        if not _envelope(schema, layer).meets(_envelope(schema, group)):
            layer.extend(group)
            return
    layers.append(list(group))


def _envelope(schema: Schema, pairs: Iterable[Pair]) -> Predicate:
    """The smallest description that contains all of these."""
    predicates = [predicate for predicate, _ in pairs]
    shared = set.intersection(*(set(predicate.by_attribute) for predicate in predicates))
    return schema.where({name: frozenset().union(*(p.by_attribute[name] for p in predicates)) for name in shared})


def _layer(schema: Schema, pairs: Sequence[Pair]) -> tuple[list[NDArray[np.int32]], NDArray[np.int32]]:
    """The look-ups of a layer: levels that no line tells apart share a class; a map from classes to columns."""
    classes: list[NDArray[np.int64]] = []
    for attribute in schema.attributes:
        everything = frozenset(range(len(attribute)))
        distinct = sorted(
            {predicate.by_attribute.get(attribute.name, everything) for predicate, _ in pairs}, key=sorted
        )
        member = np.array([[level in levels for levels in distinct] for level in range(len(attribute))])
        classes.append(np.unique(member, axis=0, return_inverse=True)[1].reshape(-1))
    shape = [int(c.max()) + 1 for c in classes]
    columns = np.full(shape, -1, np.int32)
    for predicate, column in pairs:
        inside = predicate.by_attribute
        chosen = [
            np.unique(c[sorted(inside[a.name])]) if a.name in inside else np.arange(size)
            for a, c, size in zip(schema.attributes, classes, shape, strict=True)
        ]
        columns[np.ix_(*chosen)] = column
    strides = np.cumprod([1, *shape[:0:-1]])[::-1]
    steps = [(c * stride).astype(np.int32) for c, stride in zip(classes, strides, strict=True)]
    return steps, columns.reshape(-1)


@njit(cache=True, nogil=True)
def _count_places(codes, bounds, steps, starts, columns, width, place_out, column_out, value_out):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Count the records of each place into a row of `width` columns; write the non-zero ones, return how many."""
    layers, attributes = steps.shape[0], steps.shape[1]
    row = np.zeros(width, np.int64)
    used = 0
    for place in range(len(bounds) - 1):
        for record in range(bounds[place], bounds[place + 1]):
            for layer in range(layers):
                position = starts[layer]
                for attribute in range(attributes):
                    position += steps[layer, attribute, codes[record, attribute]]
                column = columns[position]
                if column >= 0:
                    row[column] += 1
        for column in range(width):
            if row[column] > 0:
                place_out[used], column_out[used], value_out[used] = place, column, row[column]
                row[column] = 0
                used += 1
    return used
