"""What is known of how far other records can be? Of each place or area; and of every kind of records of the start."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glasshouse.model.records import Count
from glasshouse.model.schema import Schema
from glasshouse.program.integer import Proof
from glasshouse.program.tables.cells import Cells


@dataclass(frozen=True)
class Far:
    """Of each place, or each area: `distance <= the farthest <= most` (L1), `certain` records of at most so many.

    `population` is of the start; no histogram that fits has more than `population_most` records.
    """

    population: Count
    population_most: Count
    distance: Count
    most: Count
    certain: Count
    certain_most: Count
    proof: tuple[Proof, ...]
    certain_proof: tuple[Proof, ...]
    rung: NDArray[np.int8]
    clock: NDArray[np.bool_]  # the wall clock had a say

    def only(self, rows: NDArray[np.bool_]) -> Far:
        """What is known of some of them."""
        kept = np.flatnonzero(rows).tolist()
        return self._each(lambda mine, _: tuple(mine[i] for i in kept) if isinstance(mine, tuple) else mine[rows])

    def put(self, at: NDArray[np.int64], some: Far) -> Far:
        """The same with what was asked again of some."""
        row = {int(place): number for number, place in enumerate(at)}

        def placed(mine: Any, name: str) -> Any:
            learnt = getattr(some, name)
            if isinstance(mine, tuple):
                return tuple(learnt[row[i]] if i in row else one for i, one in enumerate(mine))
            found = mine.copy()
            found[at] = learnt
            return found

        return self._each(placed)

    def _each(self, change: Callable[[Any, str], Any]) -> Far:
        return Far(**{field.name: change(getattr(self, field.name), field.name) for field in fields(Far)})


@dataclass(frozen=True)
class Kinds:
    """The kinds of records of the start: a cell of a place each, how many there are, how many of them are certain."""

    cells: Cells
    place: NDArray[np.int64]
    cell: NDArray[np.int64]
    records: Count
    certain: Count

    def whole(self, schema: Schema, names: Collection[str]) -> NDArray[np.bool_]:
        """The kinds of which these attributes, which are not compared, are known all the same: they cannot be else."""
        cells, at = np.unique(self.cell, return_inverse=True)
        levels = [schema.levels_within(self.cells.levels(int(cell))) if names else {} for cell in cells]
        return np.array([all(len(one[name]) == 1 for name in names) for one in levels], np.bool_)[at]

    def only(self, places: NDArray[np.bool_]) -> Kinds:
        """Those of some places."""
        kept = places[self.place]
        return Kinds(self.cells, self.place[kept], self.cell[kept], self.records[kept], self.certain[kept])
