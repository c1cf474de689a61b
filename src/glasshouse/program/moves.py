"""Which solutions lie next to one? Exchanges: two cells give one each, two others take them, and every row stays.

Most solutions of a table's numbers are a few exchanges apart, and exchanges are found without any solver: a cell gets a
random number for the rows it is in, and two pairs of cells are in the same rows when their numbers add up to the same.
Each exchange found is checked row by row, in integers.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from glasshouse.program.propagate import Array
from glasshouse.program.reduce import Programs

MOST = 4096  # exchanges that are worth having at once
WORK = 30_000_000  # pairs of cells that are looked at
Moves = NDArray[np.int64]  # a row each: two cells that give, two that take


def exchanges(part: Programs, x: Array, rng: np.random.Generator, most: int = MOST) -> Moves:
    """Exchanges that lead from x to other solutions of a single part; all, or a random choice of them."""
    held = np.flatnonzero(x > part.lower)
    first, second = np.triu_indices(len(held))
    pairs = np.column_stack([held[first], held[second]]).astype(np.int64)
    pairs = pairs[(pairs[:, 0] != pairs[:, 1]) | (x[pairs[:, 0]] >= part.lower[pairs[:, 0]] + 2)]
    rng.shuffle(pairs)
    pairs = pairs[: max(1, WORK // max(len(x), 1))]
    chance = rng.integers(0, 2**64, len(part.row_lower), dtype=np.uint64)
    name = np.zeros(len(x), np.uint64)
    rows = np.repeat(chance, np.diff(part.starts)) * part.coefficient.astype(np.uint64)
    np.add.at(name, part.index, rows)
    order = np.argsort(name, kind="stable")
    slots = 1 << max(4, int(np.ceil(np.log2(2 * len(x) + 1))))
    system = part.system
    found = np.empty((most, 4), np.int64)
    used = _exchanges(
        pairs, x, part.upper, name, order, np.full(slots, -1, np.int64), system.begins, system.row_of, system.by_column,
        np.zeros(len(part.row_lower), np.int64), found,
    )  # fmt: skip
    return found[:used]


def wandered(part: Programs, x: Array, moves: Moves, rng: np.random.Generator) -> Array:
    """Another solution: exchanges one after the other in random order, as far as they still can be made."""
    there = x.copy()
    _wander(there, part.lower, part.upper, moves[rng.permutation(len(moves))])
    return there if bool(part.fit(there)[0]) else x


@njit(cache=True, nogil=True)
def _exchanges(pairs, x, upper, name, order, table, begins, row_of, times, tally, found):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    mask = np.uint64(len(table) - 1)
    for variable in order:
        slot = (name[variable] ^ (name[variable] >> np.uint64(29))) & mask
        while table[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        table[slot] = variable
    used = 0
    for pair in range(len(pairs)):
        a, b = pairs[pair, 0], pairs[pair, 1]
        total = name[a] + name[b]
        for c in range(len(name)):
            if c in (a, b) or x[c] >= upper[c]:
                continue
            wanted = total - name[c]
            slot = (wanted ^ (wanted >> np.uint64(29))) & mask
            while table[slot] >= 0:  # several cells may be in the same rows
                d = table[slot]
                slot = (slot + np.uint64(1)) & mask
                if name[d] != wanted or d < c or d in (a, b) or x[d] >= upper[d] or (c == d and x[c] + 2 > upper[c]):
                    continue
                if not _same_rows(a, b, c, d, begins, row_of, times, tally):
                    continue
                found[used, 0], found[used, 1], found[used, 2], found[used, 3] = a, b, c, d
                used += 1
                if used == len(found):
                    return used
    return used


@njit(cache=True, nogil=True)
def _same_rows(a, b, c, d, begins, row_of, times, tally):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Are two pairs of cells in the same rows, as often? `tally` is 0 before and after."""
    for entry in range(begins[a], begins[a + 1]):
        tally[row_of[entry]] += times[entry]
    for entry in range(begins[b], begins[b + 1]):
        tally[row_of[entry]] += times[entry]
    for entry in range(begins[c], begins[c + 1]):
        tally[row_of[entry]] -= times[entry]
    for entry in range(begins[d], begins[d + 1]):
        tally[row_of[entry]] -= times[entry]
    same = True
    for variable in (a, b, c, d):
        for entry in range(begins[variable], begins[variable + 1]):
            same &= tally[row_of[entry]] == 0
    for variable in (a, b, c, d):
        for entry in range(begins[variable], begins[variable + 1]):
            tally[row_of[entry]] = 0
    return same


@njit(cache=True, nogil=True)
def _wander(x, lower, upper, moves):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    for move in range(len(moves)):
        a, b, c, d = moves[move, 0], moves[move, 1], moves[move, 2], moves[move, 3]
        x[a] -= 1
        x[b] -= 1
        x[c] += 1
        x[d] += 1
        if x[a] < lower[a] or x[b] < lower[b] or x[c] > upper[c] or x[d] > upper[d]:
            x[a] += 1
            x[b] += 1
            x[c] -= 1
            x[d] -= 1
