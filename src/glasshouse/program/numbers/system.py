"""Which variables and rows do the numbers of places have, and those of the areas around them? One program, or many.

Places are alone, a program each; or together with areas, of which every number is the sum over what lies in them: over
smaller areas that have the same number, else over places.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from glasshouse.model.records import UNLIMITED, Count
from glasshouse.program.ladder import CLIMB, Ladder
from glasshouse.program.numbers.ends import Ends, Known, ends, opened
from glasshouse.program.numbers.linked import Linked
from glasshouse.program.numbers.walk import MOST_RECORDS, Ring, walk
from glasshouse.program.propagate import Array
from glasshouse.program.reduce import Programs, Split, split

Flags = NDArray[np.bool_]
WALKS = 2  # that are begun, before it is given up


@dataclass(frozen=True)
class Layer:
    """Numbers of areas: limits (areas x numbers), which of the linked numbers they are, and the area of each place.

    `inside` is the number of an earlier layer whose areas lie in these; -1: only places are known to.
    """

    lower: Count
    upper: Count
    numbers: Array
    of: Array
    inside: int = -1


@dataclass(frozen=True)
class Around:
    """Areas as variables: which kinds of number they have (ascending), their variables, and the area of each place."""

    kinds: Array
    variable: Array
    of: Array


@dataclass(frozen=True)
class System:
    """Programs in which published numbers are variables: `variable[l]` of layer l (0: places), areas x numbers."""

    linked: Linked
    programs: Programs
    needed: Flags
    variable: tuple[Array, ...]
    around: tuple[Around, ...] = ()

    @cached_property
    def split(self) -> Split:
        """The programs after propagation, taken apart."""
        return opened(split(self.programs, np.zeros(len(self.programs), np.bool_)))

    def ends(self, wanted: Array, ladder: Ladder = CLIMB, known: Known | None = None) -> Ends:
        """The least and the most of some variables (ascending)."""
        return ends(self.split, wanted, self.needed, ladder, known)

    @property
    def loose(self) -> Flags:
        """The programs worth a walk: most of their numbers are open, and no count is large."""
        lower, upper = self._numbers
        small = np.where(upper < UNLIMITED, upper, lower).max(axis=1, initial=0) <= MOST_RECORDS // 4
        if self.around:  # places that are known one by one do not matter
            return np.array([bool(small.all()) and bool((lower < upper).mean() > 0.5)])
        return np.asarray(small & ((lower < upper).mean(axis=1) > 0.5))

    @property
    def _numbers(self) -> tuple[Count, Count]:
        """The limits of all kinds of number, places x kinds."""
        places, kinds = len(self.variable[0]), self.linked.board.count
        at = np.arange(places)[:, None] * self.linked.width + np.arange(kinds)[None, :]
        return self.split.lower[at], self.split.upper[at]

    @property
    def printed(self) -> Flags:
        """The kinds of number that some place has a limit for, before limits moved: if those fit, all do."""
        at = np.arange(len(self.variable[0]))[:, None] * self.linked.width + np.arange(self.linked.board.count)[None, :]
        limited = (self.programs.lower[at] > 0) | (self.programs.upper[at] < UNLIMITED)
        return np.asarray(limited.any(axis=0))

    def walked(self, wanted: Array, chosen: Flags) -> Known:
        """Walk over the data of the chosen programs: what was met of the variables."""
        asked = np.zeros(len(self.programs.lower), np.bool_)
        asked[wanted] = True
        low, high = np.full(len(asked), UNLIMITED, np.int64), np.full(len(asked), -1, np.int64)
        found = np.zeros(len(self.programs), np.bool_)
        lower, upper = self._numbers
        kinds, width = self.linked.board.count, self.linked.width
        places = np.arange(len(lower))[:, None] * width + np.arange(kinds)[None, :]
        groups = [np.array([place]) for place in np.flatnonzero(chosen)] if not self.around else [np.arange(len(lower))]
        for program, some in zip(np.flatnonzero(chosen), groups, strict=True):
            rings = [self._ring(around, some) for around in self.around]
            wishes = [asked[places[some]], *(asked[around.variable] for around in self.around)]
            for seed in range(1, WALKS + 1):
                one = walk(
                    self.linked.board, lower[some], upper[some], rings, wishes, seed,
                    tries=1 if rings else 2, active=self.printed,
                )  # fmt: skip
                if one.wrong == 0:
                    break
            found[program] = one.wrong == 0
            if one.wrong == 0:
                for variable, least, most in zip(
                    (places[some], *(around.variable for around in self.around)), one.low, one.high, strict=True
                ):
                    low[variable], high[variable] = least, most
        return Known(found, low, high)

    def _ring(self, around: Around, places: Array) -> Ring:
        at = np.full(self.linked.board.count, -1, np.int64)
        at[around.kinds] = np.arange(len(around.kinds))
        lower, upper = self.split.lower[around.variable], self.split.upper[around.variable]
        return Ring(at, around.of[places], lower, upper)


def alone(linked: Linked, lower: Count, upper: Count) -> System:
    """A program for each place."""
    places = len(lower)
    programs = linked.programs(lower, upper)
    variable = np.arange(places)[:, None] * linked.width + linked.number[None, :]
    return System(linked, programs, np.tile(linked.equations.needed, places), (variable,))


def together(linked: Linked, lower: Count, upper: Count, layers: Sequence[Layer]) -> System:
    """One program for places and all areas around them."""
    inner = alone(linked, lower, upper)
    programs, width = inner.programs, len(inner.programs.lower)
    rings: list[Around] = []
    variable, lows, highs = [inner.variable[0]], [programs.lower], [programs.upper]
    sizes, index, value = [np.diff(programs.starts)], [programs.index], [programs.coefficient]
    for layer in layers:
        kinds, column = np.unique(linked.number[layer.numbers], return_inverse=True)  # some count the same
        own = width + np.arange(len(layer.lower) * len(kinds)).reshape(len(layer.lower), len(kinds))
        width += own.size
        low, high = np.zeros(own.shape, np.int64), np.full(own.shape, UNLIMITED, np.int64)
        for at, kind in enumerate(column):
            np.maximum(low[:, kind], layer.lower[:, at], out=low[:, kind])
            np.minimum(high[:, kind], layer.upper[:, at], out=high[:, kind])
        lows.append(low.reshape(-1))
        highs.append(high.reshape(-1))
        below = {} if layer.inside < 0 else _below(layer, layers[layer.inside], variable[layer.inside + 1], linked)
        for at, kind in enumerate(kinds):
            places = np.arange(len(lower)) * linked.width + kind
            parts, of = below.get(int(kind), (places, layer.of))
            order = np.argsort(of, kind="stable")
            ends_ = np.searchsorted(of[order], np.arange(len(layer.lower) + 1))
            for area in range(len(layer.lower)):
                inside = parts[order[ends_[area] : ends_[area + 1]]]
                index.append(np.append(inside, own[area, at]).astype(np.int32))
                value.append(np.append(np.ones(len(inside), np.int64), -1))
                sizes.append(np.array([len(inside) + 1]))
        variable.append(own[:, column])
        rings.append(Around(kinds, own, layer.of))
    rows = sum(map(len, sizes))
    extra = rows - len(programs.row_lower)
    zero = np.zeros(extra, np.int64)
    joint = Programs(
        np.array([0, width]),
        np.concatenate(lows),
        np.concatenate(highs),
        np.array([0, rows]),
        np.concatenate([programs.row_lower, zero]),
        np.concatenate([programs.row_upper, zero]),
        np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64),
        np.concatenate(index).astype(np.int32),
        np.concatenate(value),
    )
    return System(linked, joint, np.append(inner.needed, np.ones(extra, np.bool_)), tuple(variable), tuple(rings))


def _below(layer: Layer, inner: Layer, variable: Array, linked: Linked) -> dict[int, tuple[Array, Array]]:
    """By kind of number: its variables at the areas of an earlier layer, and the area around each of those."""
    of = np.full(len(inner.lower), -1, np.int64)  # an area without places lies nowhere: nobody is there
    of[inner.of] = layer.of
    return {int(linked.number[number]): (variable[:, at], of) for at, number in enumerate(inner.numbers)}
