"""Which kinds of record can published numbers tell apart? The cells that a histogram has for them.

Levels of an attribute that no predicate tells apart form a class; a cell is one class of each attribute. Any split of
a cell over its levels fits the same numbers, so nothing is lost by counting cells. Structural zeros divide no cell:
a cell is there if some record of it can be. Cells that cannot occur are left out, without ever writing down the full
product.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, reduce
from math import prod

import numpy as np
from numpy.typing import NDArray

from glasshouse.errors import InputError
from glasshouse.model.records import Codes
from glasshouse.model.schema import EVERYONE, Predicate, Schema

_NONE = np.empty(0, np.int64)
MAX_CELLS = 20_000_000  # of one partition: a table of their classes must fit in memory


@dataclass(frozen=True)
class Cells:
    """The cells of a histogram: `codes[c]` are the classes of cell `c`, `classes[a][level]` the class of a level."""

    schema: Schema
    classes: tuple[NDArray[np.int64], ...]
    codes: Codes
    sizes: NDArray[np.int64]  # how many different records each cell stands for

    def __len__(self) -> int:
        return len(self.codes)

    @cached_property
    def _shape(self) -> tuple[int, ...]:
        return tuple(int(classes.max()) + 1 for classes in self.classes)

    @cached_property
    def _positions(self) -> NDArray[np.int64]:
        return np.asarray(np.ravel_multi_index(tuple(self.codes.T.astype(np.int64)), self._shape))

    def levels(self, cell: int) -> Predicate:
        """The description of a cell."""
        attributes = enumerate(self.schema.attributes)
        return self.schema.where(
            {a.name: np.flatnonzero(self.classes[i] == self.codes[cell, i]).tolist() for i, a in attributes}
        )

    def of(self, codes: Codes) -> NDArray[np.int64]:
        """The cell of each record; one of a kind that cannot exist is refused."""
        columns = tuple(classes[codes[:, attribute]] for attribute, classes in enumerate(self.classes))
        position = np.ravel_multi_index(columns, self._shape)
        cell = np.minimum(np.searchsorted(self._positions, position), max(len(self) - 1, 0))
        if len(position) and (not len(self) or (self._positions[cell] != position).any()):
            raise InputError("a record is of a kind that the schema calls impossible; check the records")
        return cell

    def inside(self, predicate: Predicate) -> NDArray[np.bool_]:
        """The cells all of whose records satisfy the predicate."""
        return self._chosen(predicate, every=True)

    def meeting(self, predicate: Predicate) -> NDArray[np.bool_]:
        """The cells some of whose records satisfy the predicate."""
        return self._chosen(predicate, every=False)

    def _chosen(self, predicate: Predicate, *, every: bool) -> NDArray[np.bool_]:
        allowed = []  # by restricted attribute: which classes
        for name, levels in predicate.sets:
            attribute = self.schema.position[name]
            classes = self.classes[attribute]
            times = np.bincount(classes[sorted(levels)], minlength=self._shape[attribute])
            allowed.append((attribute, times >= (np.bincount(classes) if every else 1)))
        allowed.sort(key=lambda pair: int(pair[1].sum()) / len(pair[1]))  # the strictest first leaves least to look at
        chosen = np.zeros(len(self), np.bool_)
        cells: slice | NDArray[np.int64] = slice(None)
        for number, (attribute, fine) in enumerate(allowed):
            if number == 0:
                cells = np.concatenate([self._by_class[attribute][at] for at in np.flatnonzero(fine)] or [_NONE])
            else:
                cells = cells[fine[self.codes[cells, attribute]]]  # type: ignore[index]  # after the first, an array
        chosen[cells] = True
        return chosen

    @cached_property
    def _by_class(self) -> list[list[NDArray[np.int64]]]:
        """Of each attribute and class, the cells."""
        found = []
        for attribute, classes in enumerate(self._shape):
            order = np.argsort(self.codes[:, attribute], kind="stable")
            found.append(np.split(order, np.searchsorted(self.codes[order, attribute], np.arange(1, classes))))
        return found


def partition(schema: Schema, told_apart: Iterable[Predicate]) -> Cells:
    """The coarsest cells that tell these predicates apart."""
    predicates = list(told_apart)
    classes = []
    for attribute in schema.attributes:
        sets = dict.fromkeys(levels for p in predicates for name, levels in p.sets if name == attribute.name)
        member = np.zeros((len(attribute), len(sets)), np.bool_)
        for column, levels in enumerate(sets):
            member[sorted(levels), column] = True
        numbers: dict[bytes, int] = {}  # classes are numbered in the order of their first level
        classes.append(np.array([numbers.setdefault(row.tobytes(), len(numbers)) for row in member], np.int64))
    shape = tuple(int(of.max()) + 1 for of in classes)
    cells, sizes = [_NONE], [_NONE]
    total = 0
    for box in schema.possible(EVERYONE):
        sides, times = [], []
        for a, of in zip(schema.attributes, classes, strict=True):
            met = np.bincount(of[sorted(box.by_attribute[a.name])] if a.name in box.by_attribute else of)
            sides.append(np.flatnonzero(met))
            times.append(met[met > 0])
        total += prod(len(side) for side in sides)
        if total > MAX_CELLS:
            raise InputError(f"the tables tell more than {MAX_CELLS:,} kinds of record apart; use fewer tables at once")
        cells.append(np.ravel_multi_index(np.ix_(*sides), shape).reshape(-1))
        sizes.append(reduce(np.multiply.outer, times).reshape(-1))
    met, cell = np.unique(np.concatenate(cells), return_inverse=True)
    size = np.zeros(len(met), np.int64)
    np.add.at(size, cell, np.concatenate(sizes))
    codes = np.column_stack(np.unravel_index(met, shape)).astype(np.int16)
    return Cells(schema, tuple(classes), np.ascontiguousarray(codes), size)
