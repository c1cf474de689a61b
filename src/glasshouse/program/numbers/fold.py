"""Which cells need not be told apart when only sums matter? Rows that meet the others alike are put together.

A row's *link* is what its cells stand in besides it. If two rows have the same link, then to each cell of the one there
is a cell of the other that stands in the same further rows. Let z be the sum of such a pair, and d the sum of a row:
whatever z and d are, if the sum of all z is that of both d, there are whole counts for the cells (a transport with
agreeing totals has a whole solution). So the pair is one cell, the two rows are one row, and their sums are two
variables that add up to its sum. Nothing is lost, as long as nothing but rows limits a cell. Done again and again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[np.int64]
_Name = NDArray[np.uint64]


@dataclass(frozen=True)
class Folded:
    """Rows, of which those from `rows` on are sums of earlier ones (`parts`), and cells put together.

    `top` are the rows that are part of no other; `members` has for each of them the cells it adds up, `of` the new
    cell of each old one.
    """

    rows: int
    parts: tuple[Array, ...]
    top: Array
    members: sparse.csr_matrix
    of: Array


def fold(members: sparse.csr_matrix, plain: NDArray[np.bool_]) -> Folded:
    """Put together what can be; rows that are not `plain` (they count cells several times, say) stay as they are."""
    rows = members.shape[0]
    current, numbers = members.tocsr(), np.arange(rows)
    parts: list[Array] = []
    of = np.arange(members.shape[1])
    current, of = _alike(current, of)
    while True:
        group = _groups(current, plain)
        if group.max(initial=-1) + 1 == current.shape[0]:
            break
        gather = sparse.csr_matrix(
            (np.ones(len(group), np.int64), (group, np.arange(len(group)))), shape=(group.max() + 1, len(group))
        )
        sizes = np.bincount(group)
        first = np.full(len(sizes), -1, np.int64)
        first[group[::-1]] = np.arange(len(group))[::-1]
        new = numbers[first]
        order, ends = np.argsort(group, kind="stable"), np.cumsum(sizes)
        for one in np.flatnonzero(sizes > 1):
            new[one] = rows + len(parts)
            parts.append(numbers[order[ends[one] - sizes[one] : ends[one]]])
        current, numbers, plain = (gather @ current).tocsr(), new, plain[first]
        current, of = _alike(current, of)
    return Folded(rows, tuple(parts), numbers, current, of)


def _names(rows: int, seed: int) -> _Name:
    return np.random.default_rng(seed).integers(0, 2**64, rows, dtype=np.uint64)


def _column_names(members: sparse.csr_matrix, seed: int) -> _Name:
    """A name for what each cell stands in, and how often: a sum of random numbers of its rows."""
    chance = np.repeat(_names(members.shape[0], seed), np.diff(members.indptr)) * members.data.astype(np.uint64)
    total = np.zeros(members.shape[1], np.uint64)
    np.add.at(total, members.indices, chance)
    return total


def _alike(members: sparse.csr_matrix, of: Array) -> tuple[sparse.csr_matrix, Array]:
    """Make one cell of all that stand in the same rows, as often."""
    names = np.column_stack([_column_names(members, seed) for seed in (1, 2)])
    _, first, new = np.unique(names, axis=0, return_index=True, return_inverse=True)
    new = new.reshape(-1)
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    kept = members.tocsc()[:, np.sort(first)]
    _same(members.tocsc(), kept, rank[new])
    return kept.tocsr(), rank[new][of]


def _same(old: sparse.csc_matrix, new: sparse.csc_matrix, of: Array) -> None:
    """Names could be equal by chance: make sure that they are not."""
    old.sort_indices()
    new.sort_indices()
    lengths = np.diff(old.indptr)
    if (lengths != np.diff(new.indptr)[of]).any():
        raise _chance()
    at = np.repeat(new.indptr[:-1][of] - old.indptr[:-1], lengths) + np.arange(len(old.indices))
    if (old.indices != new.indices[at]).any() or (old.data != new.data[at]).any():
        raise _chance()


def _chance() -> Exception:
    from glasshouse.errors import GlasshouseBug

    return GlasshouseBug("cells of different rows were put together; please report this")


def _groups(members: sparse.csr_matrix, plain: NDArray[np.bool_]) -> Array:
    """Of each row, its group: rows with the same link. Merging one group leaves the links of another alike."""
    columns = [(_column_names(members, seed), _names(members.shape[0], seed)) for seed in (1, 2)]
    by_column = members.tocsc()
    by_column.sort_indices()
    links: dict[bytes, tuple[int, list[Array]]] = {}  # by name: the group, and the link itself
    group, count = np.empty(members.shape[0], np.int64), 0
    for row in range(members.shape[0]):
        cells = members.indices[members.indptr[row] : members.indptr[row + 1]]
        pairs = np.column_stack([names[cells] - own[row] for names, own in columns])
        order = np.lexsort(pairs.T)
        key = pairs[order].tobytes() if plain[row] else row.to_bytes(8, "big") + b"alone"
        if key not in links:
            links[key] = count, _link(by_column, cells[order], row)
            count += 1
        elif not all(map(np.array_equal, links[key][1], _link(by_column, cells[order], row))):
            raise _chance()
        group[row] = links[key][0]
    return group


def _link(members: sparse.csc_matrix, cells: Array, row: int) -> list[Array]:
    """What the cells of a row stand in besides it: how many rows each, which, and how often."""
    lengths = np.diff(members.indptr)[cells]
    begins = np.cumsum(lengths) - lengths
    at = np.repeat(members.indptr[cells] - begins, lengths) + np.arange(lengths.sum())
    others = members.indices[at] != row
    return [lengths, members.indices[at][others], members.data[at][others]]
