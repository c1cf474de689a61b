"""Which published sets lie in which, and which are made up of others? Sets of cells, compared once for all places.

A set is *made up* of others if they are disjoint and together have all its cells: then its number is the sum of theirs,
whatever the numbers are. If some cells are missing, it is at least their sum. Only the largest sets inside a set are
looked at: what those are made up of is said of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse

Array = NDArray[np.int64]
FAMILIES = 24  # of disjoint sets inside one set that are looked for


class Within(NamedTuple):
    """Disjoint sets inside a set; `whole`: they make it up."""

    around: int
    parts: tuple[int, ...]
    whole: bool


def inclusions(members: sparse.csr_matrix) -> Iterator[Within]:
    """How the sets (rows of 0 and 1, no two alike) lie in each other: every largest set inside another is told of."""
    overlap = (members @ members.T).tocsr()
    overlap.sort_indices()
    size = np.asarray(members.sum(axis=1)).reshape(-1)
    within = _within(overlap, size)
    for around in np.flatnonzero(np.diff(within.indptr) > 0):
        inside = within.indices[within.indptr[around] : within.indptr[around + 1]].astype(np.int64)
        for parts, whole in _disjoint(overlap, inside, size, int(size[around])):
            yield Within(int(around), tuple(parts.tolist()), whole)


def _within(overlap: sparse.csr_matrix, size: Array) -> sparse.csr_matrix:
    """The largest sets inside each set: row by row, those that lie in it and in no other set in it."""
    around = np.repeat(np.arange(len(size)), np.diff(overlap.indptr))
    inner = (overlap.data == size[overlap.indices]) & (overlap.indices != around)
    shape = overlap.shape
    all_within = sparse.csr_matrix(
        (np.ones(int(inner.sum()), np.int64), (around[inner], overlap.indices[inner])), shape=shape
    )
    between = all_within @ all_within  # how many sets lie between two
    between.data[:] = 1
    direct = (all_within - all_within.multiply(between)).tocsr()
    direct.eliminate_zeros()
    direct.sort_indices()
    return direct


def _disjoint(overlap: sparse.csr_matrix, inside: Array, size: Array, whole: int) -> Iterator[tuple[Array, bool]]:
    """Families of disjoint sets among those inside a set, large ones first, and whether they have all its cells."""
    inside = inside[np.argsort(-size[inside], kind="stable")]
    sizes, meets = size[inside], _meets(overlap.indptr, overlap.indices, inside)
    used, seen = np.zeros(len(inside), np.bool_), set[tuple[int, ...]]()
    for first in range(len(inside)):
        if used[first] or len(seen) == FAMILIES:
            continue
        free, left, chosen = ~meets[first], whole - sizes[first], [first]
        for other in np.flatnonzero(free):
            if left == 0:
                break
            if free[other] and sizes[other] <= left:
                chosen.append(int(other))
                left -= sizes[other]
                free &= ~meets[other]
        used[chosen] = True
        key = tuple(sorted(chosen))
        if key not in seen:
            seen.add(key)
            yield np.sort(inside[chosen]), bool(left == 0)


@njit(cache=True, nogil=True)
def _meets(starts, index, some):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Of each two of some sets: do they overlap?"""
    order = np.argsort(some)
    sorted_some = some[order]
    found = np.zeros((len(some), len(some)), np.bool_)
    for one in range(len(some)):
        begin, end = starts[some[one]], starts[some[one] + 1]
        if end - begin < 16 * len(some):  # look at every entry of the row
            at = 0
            for entry in range(begin, end):
                while at < len(some) and sorted_some[at] < index[entry]:
                    at += 1
                if at == len(some):
                    break
                if sorted_some[at] == index[entry]:
                    found[one, order[at]] = True
        else:  # a long row: look for the few
            row = index[begin:end]
            for at in range(len(some)):
                place = np.searchsorted(row, sorted_some[at])
                if place < len(row) and row[place] == sorted_some[at]:
                    found[one, order[at]] = True
    return found
