"""How do the differences of a place follow from its exact numbers? In few steps, and none for a number that is 0.

A recipe is a graph without circles. Its nodes are sums and differences of numbers, each after all those it is made of;
some of them are rows. A node that is 0 adds nothing to others, and most are: so a place costs as much as
it has numbers that are not 0, and a row that is the difference of differences costs a step for each of these, not one
for each of the numbers in it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy import sparse

from glasshouse.model.records import Count
from glasshouse.program.propagate import INNER, LEAF
from glasshouse.program.tables.marks import first_of, mark


class Recipe(NamedTuple):
    """The node each number is added to, and for each node which later ones it adds to, and how often.

    Rows below `differences` are those. The rows beyond must be 0, and no other may be negative: or the numbers cannot
    be true.
    """

    home: NDArray[np.int32]  # of each number
    starts: NDArray[np.int32]
    to: NDArray[np.int32]
    times: NDArray[np.int32]
    row: NDArray[np.int32]  # of each node, -1 for those that are none
    differences: int
    rows: int


def recipe_of(
    sums: sparse.csr_matrix, steps: NDArray[np.int64], row_of_set: NDArray[np.int64], others: sparse.csr_matrix,
    row_of_other: NDArray[np.int64], differences: int,
) -> Recipe:  # fmt: skip
    """The recipe of sets that are sums of numbers, of which one is taken away from another step by step.

    `row_of_set` is the row that a set becomes, -1 for none; `others` are further rows, straight from numbers.
    """
    variables, sets = sums.shape[1], sums.shape[0]
    straight, further = sums.tocoo(), others.tocoo()
    uses = np.bincount(np.concatenate([straight.col, further.col]), minlength=variables)
    plain = uses[straight.col] == 1
    plain &= straight.data == 1
    home = np.full(variables, -1, np.int64)
    home[straight.col[plain]] = straight.row[plain]  # a number that is added to one set alone needs no node of its own
    own = home < 0
    source, sink, sign, node_of, finished = _nodes(sets, steps)
    made = len(finished)
    order = np.lexsort((np.arange(made), finished))  # a node is finished before it is used
    number = np.empty(made, np.int64)
    alone = int(own.sum())
    number[order] = alone + np.arange(made)
    set_of, home = home[~own], np.cumsum(own) - 1
    home[~own] = number[set_of]
    total = alone + made + others.shape[0]
    entries = [home[straight.col[~plain]], number[source], home[further.col]]
    ends = [number[straight.row[~plain]], number[sink], alone + made + further.row.astype(np.int64)]
    begin, end = np.concatenate(entries), np.concatenate(ends)
    sorting = np.lexsort((end, begin))
    row = np.full(total, -1, np.int32)
    row[number[node_of]], row[alone + made :] = row_of_set, row_of_other
    return Recipe(
        home.astype(np.int32),
        np.searchsorted(begin[sorting], np.arange(total + 1)).astype(np.int32),
        end[sorting].astype(np.int32),
        np.concatenate([straight.data[~plain], sign, further.data])[sorting].astype(np.int32),
        row,
        differences,
        int(row.max(initial=-1)) + 1,
    )


def _nodes(sets: int, steps: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """A node for each set as it is used, and for each that is used and changed afterwards one more.

    Returns the entries between nodes (from, to, sign), the last node of each set, and when each node is finished.
    """
    node_of, finished, used = list(range(sets)), [0] * sets, [False] * sets
    source, sink, sign = list[int](), list[int](), list[int]()
    for time, (larger, inner) in enumerate(steps.tolist(), start=1):
        used[node_of[inner]] = True
        if used[node_of[larger]]:
            source.append(node_of[larger])
            node_of[larger] = len(finished)
            finished.append(time)
            used.append(False)
            sink.append(node_of[larger])
            sign.append(1)
        source.append(node_of[inner])
        sink.append(node_of[larger])
        sign.append(-1)
        finished[node_of[larger]] = time
    named: Any = (source, sink, sign, node_of, finished)
    return tuple(np.array(one, np.int64) for one in named)


def differences_at(recipe: Recipe, values: Count, columns: NDArray[np.int64]) -> tuple[Count, NDArray[np.bool_]]:
    """The differences of exact numbers at each place, and where these cannot be true (and all is 0)."""
    numbers, bad = np.zeros((len(values), recipe.rows), np.int64), np.zeros(len(values), np.bool_)
    _differences_at(recipe, np.ascontiguousarray(values), columns, numbers, bad)
    return np.ascontiguousarray(numbers[:, : recipe.differences]), bad


@njit(cache=True, nogil=True)
def _differences_at(recipe, values, columns, numbers, bad):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    nodes, marks = room_for(recipe)
    listed = np.empty(recipe.rows, np.int64)
    for place in range(len(values)):
        bad[place] = exact_differences(values[place], columns, recipe, nodes, marks, numbers[place], listed) < 0


@njit(**INNER)
def room_for(recipe):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Room for the nodes of a place, all 0, and for marks of those that are not."""
    return np.zeros(len(recipe.row), np.int64), np.zeros(len(recipe.row) // 64 + 1, np.uint64)


@njit(**LEAF)
def exact_differences(values, columns, recipe, nodes, marks, result, listed):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """The differences of the exact numbers of one place, into `result`, which is 0 before; most numbers are 0.

    Lists the rows that are not 0 and returns how many; -1, and all is 0 again, when the numbers cannot be true.
    """
    home, starts, to, times, row_of = recipe.home, recipe.starts, recipe.to, recipe.times, recipe.row
    used, fine = 0, True
    for variable in range(len(columns)):
        value = values[columns[variable]]
        if value != 0:
            nodes[home[variable]] += value
            mark(marks, home[variable])
    for word in range(len(marks)):
        while marks[word] != 0:  # whatever a node adds to comes after it
            node = word * 64 + first_of(marks[word])
            marks[word] &= marks[word] - np.uint64(1)
            value = nodes[node]
            if value != 0:
                nodes[node] = 0
                for entry in range(starts[node], starts[node + 1]):
                    nodes[to[entry]] += times[entry] * value
                    mark(marks, to[entry])
                row = row_of[node]
                if row >= 0:
                    fine &= value > 0 and row < recipe.differences
                    result[row] = value
                    listed[used] = row
                    used += 1
    if not fine:
        for i in range(used):
            result[listed[i]] = 0
    return used if fine else -1
