"""What do linked tables with hidden cells look like? Seeded, with hierarchies, in the manner of tau-Argus.

A release has two tables over the same three attributes. Every attribute has a hierarchy of three levels (all, groups,
leaves); the second table groups the first attribute in another way, which does not nest with the first, and has no
leaves of it. All crossings of the groups are published, so the tables share every margin in which the first attribute
is not divided. Counts are uneven. What is 1 or 2 is hidden; then for each such cell the corners of a cube with it (the
hypercube method: one other member of the group in each attribute), and below a hidden sum some part of it in each
direction, so that no sum over one attribute gives a hidden cell away. Nothing else is made sure of: it is as safe as
such methods are. Of a hidden cell nothing is said but that it is not negative.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from glasshouse.model.records import UNLIMITED
from glasshouse.program.numbers.linked import Numbers

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
SMALL = 3  # counts from 1 to below this are hidden
DEAR = 1000.0  # what hiding a zero costs: it protects nothing


@dataclass(frozen=True)
class Hierarchy:
    """An attribute's nodes: the leaves inside each, its parent (-1: none), and its children."""

    inside: sparse.csr_matrix
    parent: Ints
    children: tuple[Ints, ...]

    @classmethod
    def of(cls, groups: Ints, *, leaves: bool) -> Hierarchy:
        """All, groups (given for each leaf) and, if wanted, leaves."""
        count, width = int(groups.max()) + 1, len(groups)
        rows = [np.zeros(width, np.int64), 1 + groups]
        parent = [-1] + [0] * count
        if leaves:
            rows.append(1 + count + np.arange(width))
            parent += (1 + groups).tolist()
        at = np.concatenate(rows), np.tile(np.arange(width), len(rows))
        inside = sparse.csr_matrix((np.ones(len(at[0]), np.int64), at), (len(parent), width))
        above = np.array(parent)
        return cls(inside, above, tuple(np.flatnonzero(above == node) for node in range(len(parent))))

    def fellows(self, node: int) -> Ints:
        """The other members of a node's group."""
        same = self.children[self.parent[node]]
        return np.asarray(same[same != node])


@dataclass(frozen=True)
class Linked:
    """Numbers, what they count, the true counts and which are hidden."""

    numbers: Numbers
    counts: Ints
    hidden: Flags

    @property
    def lower(self) -> Ints:
        return np.where(self.hidden, 0, self.counts)

    @property
    def upper(self) -> Ints:
        return np.where(self.hidden, UNLIMITED, self.counts)


def linked_tables(leaves: tuple[int, int, int], group: int = 5, mean: float = 6.0, seed: int = 1) -> Linked:
    """Two linked tables over so many leaves, in groups of this size; counts are so large on average."""
    rng = np.random.default_rng(seed)
    one, two, three = (rng.gamma(1.0, 1.0, count) ** 0.7 for count in leaves)
    rates = mean * one[:, None, None] * two[:, None] * three
    cells = rng.poisson(rates * rng.gamma(1.0, 1.0, leaves))
    first, *others = (np.arange(count) // group for count in leaves)
    other = (np.arange(leaves[0]) + group // 2) // group % (int(first.max()) + 1)  # does not nest with the first
    names, times, counts, hidden = [], [], [], []
    for number, hierarchies in enumerate(
        [
            [Hierarchy.of(first, leaves=True), *(Hierarchy.of(groups, leaves=True) for groups in others)],
            [Hierarchy.of(other, leaves=False), *(Hierarchy.of(groups, leaves=True) for groups in others)],
        ]
    ):
        table = _summed(cells, hierarchies)
        hidden.append(_hidden(table, hierarchies).reshape(-1))
        counts.append(table.reshape(-1))
        inside = [hierarchy.inside for hierarchy in hierarchies]
        times.append(sparse.kron(sparse.kron(inside[0], inside[1], format="csr"), inside[2], format="csr"))
        names += [f"T{number + 1}-{index}" for index in range(table.size)]
    every = Numbers(tuple(names), sparse.vstack(times, format="csr").astype(np.int64))
    return Linked(every, np.concatenate(counts), _consistent(every.times, np.concatenate(hidden)))


def _consistent(times: sparse.csr_matrix, hidden: Flags) -> Flags:
    """What is hidden in one table is hidden wherever the same cells are counted."""
    names = np.random.default_rng(0).integers(0, 2**62, times.shape[1])
    _, kind = np.unique(times @ names, return_inverse=True)
    return np.asarray(np.bincount(kind, hidden)[kind] > 0)


def _summed(cells: Ints, hierarchies: list[Hierarchy]) -> Ints:
    table = cells
    for axis, hierarchy in enumerate(hierarchies):
        table = np.moveaxis(np.tensordot(hierarchy.inside.toarray(), table, (1, axis)), 0, axis)
    return np.asarray(table)


def _hidden(table: Ints, hierarchies: list[Hierarchy]) -> Flags:
    """Small counts, the corners of cubes with them, and parts of what is hidden."""
    hidden = np.asarray((table > 0) & (table < SMALL))
    cost = np.where(table > 0, 1 + np.log(np.maximum(table, 1)), DEAR)
    todo = deque((tuple(cell), True) for cell in np.argwhere(hidden).tolist())

    def hide(cell: tuple[int, ...], *, cube: bool) -> None:
        if not hidden[cell]:
            hidden[cell] = True
            todo.append((cell, cube))

    while todo:
        cell, cube = todo.popleft()
        if cube:
            for corner in _corners(cell, hidden, cost, hierarchies):
                hide(corner, cube=False)
        for axis, hierarchy in enumerate(hierarchies):
            parts = [(*cell[:axis], int(child), *cell[axis + 1 :]) for child in hierarchy.children[cell[axis]]]
            if parts and not any(hidden[part] for part in parts):
                hide(min(parts, key=lambda part: cost[part]), cube=True)
    return hidden


def _corners(
    cell: tuple[int, ...], hidden: Flags, cost: NDArray[np.float64], hierarchies: list[Hierarchy]
) -> list[tuple[int, ...]]:
    """The corners of the cube that costs least."""
    axes = [axis for axis, hierarchy in enumerate(hierarchies) if hierarchy.parent[cell[axis]] >= 0]
    others = [h.fellows(cell[axis]) if axis in axes else np.array([cell[axis]]) for axis, h in enumerate(hierarchies)]
    if any(len(other) == 0 for other in others) or not axes:
        return []
    spent = np.where(hidden, 0.0, cost)
    total = np.zeros([len(other) for other in others])
    moves = list(product(*([False, True] if axis in axes else [False] for axis in range(len(cell)))))
    for move in moves:
        at = [other if moved else np.array([node]) for other, moved, node in zip(others, move, cell, strict=True)]
        total = total + spent[np.ix_(*at)]
    far = [int(other[at]) for other, at in zip(others, np.unravel_index(int(total.argmin()), total.shape), strict=True)]
    return [tuple(b if moved else a for a, b, moved in zip(cell, far, move, strict=True)) for move in moves]
