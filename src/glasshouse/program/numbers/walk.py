"""Which records, one by one, make numbers as small or as large as they can be? A walk over data that nearly fit.

Records are put in, taken out and changed; a number outside its limits is wrong by so much. At each step some wrong
number is picked and mended (`steps`). Where intervals are wide (rounding, cell keys) data that fit are close by, and
such a walk meets the ends of thousands of numbers, of places and areas together, while a solver would look for the
first. What it finds was counted in whole numbers and fits; what it does not find says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from glasshouse.model.records import UNLIMITED, Count
from glasshouse.program.numbers.steps import COUNT, Game, apart, found, towards_ends
from glasshouse.program.propagate import Array

STEPS_FIRST = 60  # for each record that there must be: to find data that fit at all
STEPS_LEAST = 2_000  # however few records there are
STEPS_EACH = 60  # to bring one number to its end
STEPS_APART = 60  # to have one record less in common
ROUNDS = 2  # of trying that
MOST_RECORDS = 20_000  # of one place; more are not walked over
MOST_KEYS = 20_000_000  # of a table that finds cells by attributes
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Board:
    """Which numbers count each cell, and how often; the cells of each number; and what the cells are like.

    `codes[c]` are the attributes of a cell, `lookup` finds the cell by them (its `strides`; -1: there is none). What
    has no attributes is like nothing else.
    """

    starts: Array
    numbers: NDArray[np.int32]
    times: Array
    cell_starts: Array
    cells: NDArray[np.int32]
    codes: NDArray[np.int16]
    strides: Array
    lookup: NDArray[np.int32]

    @staticmethod
    def of(times: sparse.csr_matrix, codes: NDArray[np.int16] | None = None) -> Board:
        """The board of sets (how often each counts each cell), and of the attributes of cells, if those are known."""
        by_number = times.tocsr()
        by_number.sort_indices()
        by_cell = by_number.tocsc()
        by_cell.sort_indices()
        cells = times.shape[1]
        shape = np.ones(0, np.int64) if codes is None else codes.max(axis=0, initial=0).astype(np.int64) + 1
        if codes is None or np.prod(shape.astype(np.float64)) > MOST_KEYS:
            codes, strides = np.zeros((cells, 1), np.int16), np.zeros(1, np.int64)  # all alike: nothing is given back
            lookup = np.full(1, -1, np.int32)
        else:
            strides = np.append(np.cumprod(shape[:0:-1])[::-1], 1).astype(np.int64)
            lookup = np.full(int(np.prod(shape)), -1, np.int32)
            lookup[codes.astype(np.int64) @ strides] = np.arange(cells)
        return Board(
            by_cell.indptr.astype(np.int64), by_cell.indices.astype(np.int32), by_cell.data.astype(np.int64),
            by_number.indptr.astype(np.int64), by_number.indices.astype(np.int32),
            np.ascontiguousarray(codes, np.int16), strides, lookup,
        )  # fmt: skip

    @property
    def count(self) -> int:
        return len(self.cell_starts) - 1


@dataclass(frozen=True)
class Ring:
    """Numbers of areas: `at[k]` is where number k of the board stands there (-1: nowhere), `of` the area of a place."""

    at: Array
    of: Array
    lower: Count
    upper: Count


@dataclass(frozen=True)
class Walked:
    """How many numbers were wrong at last (0: data were found that fit), and the ends met, of places and each ring.

    The data found last are records, each a cell of a place.
    """

    wrong: int
    low: tuple[Count, ...]
    high: tuple[Count, ...]
    place: Array
    cell: Array


class Walk:
    """A walk over the data of places (a row of limits each), together with the areas around them.

    `active` are the numbers of the board that places must fit; others only are counted.
    """

    def __init__(
        self, board: Board, lower: Count, upper: Count, rings: Sequence[Ring], seed: int, active: Flags | None = None
    ) -> None:
        self.tables = [(lower, upper), *((ring.lower, ring.upper) for ring in rings)]
        first = np.concatenate([[0], np.cumsum([one.size for one, _ in self.tables])]).astype(np.int64)
        self.first = first
        lows, highs = (np.concatenate([table[side].reshape(-1) for table in self.tables]) for side in (0, 1))
        places = len(lower)
        shifts = np.zeros((len(rings), places), np.int64)
        at = np.full((len(rings), board.count), -1, np.int64)
        kind, inside = np.full(len(lows), -1, np.int64), np.zeros((len(lows), 3), np.int64)
        kind[: first[1]] = np.tile(np.arange(board.count), places)
        inside[: first[1], 0] = inside[: first[1], 1] = np.repeat(np.arange(places), board.count)
        inside[: first[1], 1] += 1
        order = np.tile(np.arange(places), (len(rings) + 1, 1))
        for number, ring in enumerate(rings):
            shifts[number] = first[number + 1] + ring.of * ring.lower.shape[1]
            at[number] = ring.at
            kinds = np.flatnonzero(ring.at >= 0)
            order[number + 1] = np.argsort(ring.of, kind="stable")
            ends = np.searchsorted(ring.of[order[number + 1]], np.arange(len(ring.lower) + 1))
            areas = first[number + 1] + np.arange(len(ring.lower))[:, None] * ring.lower.shape[1]
            nodes = areas + ring.at[kinds][None, :]
            kind[nodes] = kinds[None, :]
            kind[nodes[ends[:-1] == ends[1:]]] = -1  # areas without places count nothing
            inside[nodes, 0], inside[nodes, 1], inside[nodes, 2] = ends[:-1, None], ends[1:, None], number + 1
        self.empty = bool(((kind < 0) & (lows > 0)).any())  # an area without places must have somebody
        finite = upper[upper < UNLIMITED]
        room = min(int(max(finite.max(initial=0), lower.max(initial=0))) * 2 + 64, MOST_RECORDS)
        self.must = int(lower.max(axis=1, initial=0).sum())
        nothing, ones = np.zeros(len(lows), np.int64), np.ones(len(lows), np.int64)
        random = np.array([seed], np.uint64) * np.uint64(2654435761) + np.uint64(88172645463325252)
        self.game = Game(
            board.starts, board.numbers, board.times, board.cell_starts, board.cells, board.codes, board.strides,
            board.lookup, np.ones(board.count, np.bool_) if active is None else active.copy(), at, shifts, kind,
            inside, order, np.column_stack([nothing, lows, highs, ones]), np.empty(len(lows), np.int64),
            np.full(len(lows), -1, np.int64), np.zeros(1, np.int64), np.empty((places, room), np.int32),
            np.zeros(places, np.int64), random,
        )  # fmt: skip

    def found(self) -> int:
        """Find data that fit: how many numbers are wrong at last."""
        return 1 if self.empty else int(found(self.must * STEPS_FIRST + STEPS_LEAST, self.game))

    def nodes(self, asked: Sequence[Flags]) -> Array:
        """The numbers, of places and of each ring, that are asked for."""
        return np.flatnonzero(np.concatenate([one.reshape(-1) for one in asked]))

    def towards_ends(self, wanted: Array, tries: int) -> tuple[Array, Array]:
        """The least and the most that was met of every number while the wanted ones were brought to their ends."""
        met_low, met_high = np.full(len(self.game.kind), UNLIMITED, np.int64), np.full(len(self.game.kind), -1)
        towards_ends(wanted, tries, STEPS_EACH, self.game, met_low, met_high)
        return met_low, met_high

    def apart(self, unwanted: Array, wanted: Array) -> None:
        """Make some numbers as small, then others as large as can be done in few steps."""
        apart(unwanted, wanted, ROUNDS, STEPS_APART, self.game)

    def counts(self) -> Array:
        """Every number as it is now."""
        return self.game.state[:, COUNT].copy()

    def records(self) -> tuple[Array, Array]:
        """The places and the cells of the records, in order."""
        sizes = self.game.size
        place = np.repeat(np.arange(len(sizes)), sizes)
        cell = np.concatenate([np.empty(0, np.int64), *(self.game.records[at, :size] for at, size in enumerate(sizes))])
        order = np.lexsort((cell, place))
        return place[order], cell[order].astype(np.int64)

    def cut(self, values: Array) -> tuple[Count, ...]:
        """What is known of all numbers, by table: of places, of each ring."""
        pieces = np.split(values, self.first[1:-1])
        return tuple(piece.reshape(one.shape) for piece, (one, _) in zip(pieces, self.tables, strict=True))


def walk(
    board: Board, lower: Count, upper: Count, rings: Sequence[Ring], asked: Sequence[Flags], seed: int,
    *, tries: int = 2, active: Flags | None = None,
) -> Walked:  # fmt: skip
    """Find data that fit; then bring the numbers that are `asked` for, of places and of each ring, to their ends."""
    one = Walk(board, lower, upper, rings, seed, active)
    wrong = one.found()
    low, high = np.full(len(one.game.kind), UNLIMITED, np.int64), np.full(len(one.game.kind), -1, np.int64)
    if wrong == 0:
        low, high = one.towards_ends(one.nodes(asked), tries)
    return Walked(wrong, one.cut(low), one.cut(high), *one.records())
