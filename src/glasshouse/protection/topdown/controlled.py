"""How does a table of fractions become whole numbers without its sums going astray? Controlled rounding, by chance.

Every entry, and every sum that is watched, becomes the whole number just below or just above it; sums that are whole
stay. That works whenever the sums that are watched nest on either side (rows on one, a tree over the columns on the
other): entries and sums are then flows along the edges of a network. Edges whose flow is not whole have no loose ends,
so there is a cycle of them; flow is pushed around it, one way or the other, until an edge is whole, and so on. The way
is drawn so that on average nothing changes: the expected table is the one given.

All of it in whole numbers: fractions are taken in units of 2^-30.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numba import njit
from numpy.typing import NDArray

from glasshouse.errors import GlasshouseBug

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

UNIT = 2**30
SLACK = 2.0**-14  # a fraction this near to a whole number is taken for it, unless said otherwise
LOST = UNIT // 20  # what a row may lose or gain by that, and a column five times; else it is taken less far


def round_children(
    x: Floats, parent: Ints, chain: Sequence[Ints], rng: np.random.Generator, slack: float = SLACK
) -> Ints:
    """Whole numbers for a table of cells x children whose rows add up to the parent's counts, and go on doing so.

    `chain` are partitions of the cells, each finer than the one before: the sums of their groups in each child, and
    each child's total, are rounded up or down as well.
    """
    units = _in_units(x, parent, slack)
    cells, children = x.shape
    row, child = np.nonzero(units % UNIT)
    tail = row.astype(np.int64)
    return _rounded(units, tail, row, child, cells, chain, children, rng)


def round_alone(
    x: Floats, total: int | None, chain: Sequence[Ints], rng: np.random.Generator, slack: float = SLACK
) -> Ints:
    """Whole numbers for one column; with a total that is kept, or rounded like any other sum."""
    sums = None if total is None or not len(x) else np.array([total])
    units = _in_units(x.reshape(1, -1), sums, slack).T
    row, child = np.nonzero(units % UNIT)
    tail = np.full(len(row), -1, np.int64)  # they all begin where sums end
    return _rounded(units, tail, row, child, 0, chain, 1, rng)[:, 0]


def _in_units(x: Floats, sums: Ints | None, slack: float) -> Ints:
    """Fractions in units; what is nearly whole is whole; rows add up to their sums, if given, exactly."""
    units = np.ascontiguousarray(np.rint(x * UNIT).astype(np.int64))
    _snap(units, int(slack * UNIT))
    if sums is not None:
        _mend(units, np.asarray(sums, np.int64) * UNIT)
    return units


@njit(cache=True)
def _snap(units, slack):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Make whole what is nearly so, as far as no row and no column loses or gains people by it.

    Many small shares are some people: where they would be lost together, less is taken for nearly whole.
    """
    rows, columns = units.shape
    near = slack
    while near > 0:
        fits = True
        lost_by_column = np.zeros(columns, np.int64)
        for row in range(rows):
            lost = 0
            for column in range(columns):
                part = units[row, column] % UNIT
                part = part if part <= near else (part - UNIT if part >= UNIT - near else 0)
                lost += part
                lost_by_column[column] += part
            fits = fits and abs(lost) <= LOST
        if fits and (rows == 1 or np.abs(lost_by_column).max() <= 5 * LOST):
            for row in range(rows):
                for column in range(columns):
                    part = units[row, column] % UNIT
                    units[row, column] -= part if part <= near else (part - UNIT if part >= UNIT - near else 0)
            return
        near //= 8


@njit(cache=True)
def _mend(units, sums):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Give or take what a row lacks: evenly from entries that are not whole, else from the largest; never below 0."""
    rows, columns = units.shape
    for row in range(rows):
        lack, broken = sums[row], 0
        for column in range(columns):
            lack -= units[row, column]
            broken += units[row, column] % UNIT != 0
        for column in range(columns):
            if lack != 0 and units[row, column] % UNIT != 0:
                change = max(lack // broken, -units[row, column])
                units[row, column] += change
                lack -= change
                broken -= 1
        while lack != 0:
            most = 0
            for column in range(columns):
                if units[row, column] > units[row, most]:
                    most = column
            change = max(lack, -units[row, most])
            units[row, most] += change
            lack -= change
            if change == 0:
                break  # nobody is left to take from: the caller will see it


def _rounded(
    units: Ints,
    tail: Ints,
    row: Ints,
    child: Ints,
    rows: int,
    chain: Sequence[Ints],
    children: int,
    rng: np.random.Generator,
) -> Ints:
    """Build the network of what is not whole, and make it whole."""
    whole, left = units // UNIT, units % UNIT
    value = left[row, child]
    tails, heads, flows = [tail], [], [value]
    sums = [np.ones(len(units), np.int64) * 0, *chain]  # from the total of a child down to the finest groups
    sizes = [int(group.max(initial=-1)) + 1 for group in sums]
    first = np.cumsum([rows, *(size * children for size in sizes)])  # where the nodes of each partition begin
    sink = int(first[-1])
    finest = first[-2] + sums[-1][row] * children + child
    heads.append(finest)
    for depth in range(len(sums) - 1, -1, -1):  # each group's sum flows on to the group around it
        size = sizes[depth]
        total = np.zeros(size * children, np.int64)
        np.add.at(total, sums[depth][row] * children + child, value)
        node = np.flatnonzero(total % UNIT)
        around = np.full(size, -1, np.int64)
        if depth:
            around[sums[depth]] = sums[depth - 1]
            if not np.array_equal(around[sums[depth]], sums[depth - 1]):
                raise GlasshouseBug("sums of a table that are to be rounded do not nest")
        head = (
            first[depth - 1] + around[node // children] * children + node % children
            if depth
            else np.full(len(node), sink)
        )
        tails.append(first[depth] + node)
        heads.append(head)
        flows.append(total[node] % UNIT)
    everything = [np.concatenate(part).astype(np.int64) for part in (tails, heads, flows)]
    everything[0][everything[0] < 0] = sink
    flow = everything[2]
    bad = _push(everything[0], everything[1], flow, sink + 1, int(rng.integers(2**31)))
    if bad:
        raise GlasshouseBug("sums of a table that are to be rounded do not nest, or its rows do not add up")
    whole[row, child] += flow[: len(row)] // UNIT
    return whole


@njit(cache=True)
def _push(tail, head, flow, nodes, seed):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Make every flow 0 or UNIT, sums at every node as they were (but for whole UNITs); 1 if an edge ends nowhere."""
    np.random.seed(seed)
    edges = len(flow)
    first = np.zeros(nodes + 1, np.int64)
    for edge in range(edges):
        first[tail[edge] + 1] += 1
        first[head[edge] + 1] += 1
    for node in range(nodes):
        first[node + 1] += first[node]
    at = first[:-1].copy()
    around = np.empty(2 * edges, np.int64)
    for edge in range(edges):
        for node in (tail[edge], head[edge]):
            around[at[node]] = edge
            at[node] += 1
    begin = first[:-1].copy()  # edges before this one are whole by now
    place = np.full(nodes, -1, np.int64)  # of a node on the path
    path = np.empty(nodes + 1, np.int64)
    edge_in = np.empty(nodes + 1, np.int64)  # the edge by which a node of the path was reached
    for start in range(edges):
        if flow[start] % UNIT == 0:
            continue
        length = 1
        path[0], edge_in[0] = tail[start], -1
        place[tail[start]] = 0
        while length > 0:
            node = path[length - 1]
            while begin[node] < first[node + 1] and flow[around[begin[node]]] % UNIT == 0:
                begin[node] += 1
            chosen = -1
            for k in range(begin[node], first[node + 1]):
                edge = around[k]
                if flow[edge] % UNIT != 0 and edge != edge_in[length - 1]:
                    chosen = edge
                    break
            if chosen < 0:
                if length > 1:
                    return 1  # a loose end
                place[node] = -1
                length = 0
                break
            other = head[chosen] if tail[chosen] == node else tail[chosen]
            if place[other] < 0:
                path[length], edge_in[length] = other, chosen
                place[other] = length
                length += 1
                continue
            # a cycle: from `other` along the path to `node`, and back by the edge chosen
            up, down = UNIT, UNIT
            for k in range(place[other] + 1, length + 1):
                edge = edge_in[k] if k < length else chosen
                forward = tail[edge] == path[k - 1]
                more, less = UNIT - flow[edge] % UNIT, flow[edge] % UNIT
                up = min(up, more if forward else less)
                down = min(down, less if forward else more)
            change = up if np.random.random() * (up + down) < down else -down
            for k in range(place[other] + 1, length + 1):
                edge = edge_in[k] if k < length else chosen
                flow[edge] += change if tail[edge] == path[k - 1] else -change
            keep = place[other] + 1
            for k in range(keep, length):
                place[path[k]] = -1
            length = keep
    return 0
