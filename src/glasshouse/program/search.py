"""How far does plain search get? A compiled depth-first search of small parts, with propagation at every step.

Each step cuts the interval of one cell in two and propagates; what cannot fit, or cannot beat the best known, is left.
Given multipliers of the rows, the duals of a relaxation made whole, their bound is used instead of the plain one; any
multipliers are right, good ones are sharp. A search that ends has seen everything, in integers: its answer is a proof.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from glasshouse.model.records import UNLIMITED
from glasshouse.program.bounds import (
    Cost,
    Dual,
    Families,
    bound,
    dual_bound,
    left,
    linear,
    price,
    rule_out,
    sort_into_families,
)
from glasshouse.program.propagate import LEAF, Array, State, Trail, activities, forget, move, settle
from glasshouse.program.reduce import Programs

EXHAUSTED, STOPPED = 0, 1
WIDE, WIDE_DRAW = 10**7, 100  # an interval so wide is not one to draw from evenly; draw so many instead
WORK = 20_000_000  # steps of a draw times the size of the part; beyond, a solver is better
DRAWS = 6  # beginnings of a draw, before a solver is asked
ENTRIES = 4000  # of a part that is searched for all the steps allowed; a larger one gets fewer
CHANGES, MORE_CHANGES = 32, 4096  # that a search of a part can take back: for each variable, and besides
SCALE = 2**16  # multipliers of rows are rounded to this fraction


def is_compiled() -> bool:
    """Has the search been compiled on this machine before? The first time takes about half a minute."""
    where = _search_all.stats.cache_path
    return where is not None and any(Path(where).glob("search._search_all*.nbi"))


class Found(NamedTuple):
    """What the search of each part came to: the best x and its value if any was found, and a bound on all values."""

    x: Array
    known: NDArray[np.bool_]  # was a solution found?
    value: Array
    floor: Array  # no solution costs less
    exhausted: NDArray[np.bool_]
    nodes: Array


def minimise(
    parts: Programs, cost: Cost, nodes: int, *, start: Array | None = None, known: NDArray[np.bool_] | None = None
) -> Found:
    """The cheapest solution of each part, by at most `nodes` steps each; `start` solves the parts that are `known`."""
    seeds = np.zeros(len(parts), np.uint64)
    return _run(parts, cost, nodes, seeds, chance=False, start=start, known=known)


def minimise_guided(part: Programs, cost: Cost, nodes: int, start: Array, duals: NDArray[np.float64]) -> Found | None:
    """The cheapest solution of a single part, searched with multipliers of its rows; None where they are too large."""
    scaled = np.rint(np.nan_to_num(duals[: len(part.row_lower)]) * SCALE)  # a linear program has further rows
    rows = part.integer_program(cost.below)
    size = max(np.abs(scaled).max(initial=0), SCALE * float(max(np.abs(cost.below).max(), np.abs(cost.above).max())))
    reach = float(max(np.abs(part.upper).max(), np.abs(part.lower).max(), np.abs(cost.knot).max()))
    sums = float(np.abs(part.row_lower).sum() + np.abs(part.row_upper).sum()) + len(part.index) * reach
    if size * max(rows.largest_coefficient, 1) * sums >= 2**62:
        return None
    whole = scaled.astype(np.int64)
    usable = np.where(whole > 0, part.row_lower > -UNLIMITED, part.row_upper < UNLIMITED)
    whole = np.where(usable, whole, 0)
    weight = np.zeros(len(part.lower), np.int64)
    np.add.at(weight, part.index, whole[rows.row_of] * part.coefficient)
    base = int(whole @ np.where(whole > 0, part.row_lower, np.where(whole < 0, part.row_upper, 0)))
    dual = Dual(SCALE, base, weight)
    nodes = max(1, int(nodes * min(1.0, ENTRIES / (len(part.index) + len(part.lower)))))  # a step costs as many
    known, seeds = np.ones(1, np.bool_), np.zeros(1, np.uint64)
    return _run(part, cost, nodes, seeds, chance=False, start=start, known=known, dual=dual)


def sample(parts: Programs, nodes: int, seeds: NDArray[np.uint64]) -> Found:
    """Some solution of each part, cells and values drawn with its seed (not with equal chances for all solutions)."""
    zero = np.zeros(len(parts.lower), np.int64)
    return _run(parts, linear(zero), nodes, seeds, chance=True, start=None, known=None)


def enumerate_part(
    parts: Programs, number: int, wanted: int, nodes: int, *, cost: Cost | None = None
) -> tuple[NDArray[np.int64], bool]:
    """Up to `wanted` solutions of a part (a row each), and whether the search is through.

    With a cost, the cheapest ones in order of cost, and through means that no others are cheaper; without, the first
    ones met, and through means that there are no others.
    """
    width = int(parts.first[number + 1] - parts.first[number])
    store, values = np.empty((wanted, width), np.int64), np.empty(wanted, np.int64)
    price = linear(np.zeros(len(parts.lower), np.int64)) if cost is None else cost
    part = (*parts.first[number : number + 2], *parts.row_first[number : number + 2])
    status, found, _, _ = _search(
        part, parts.system, _room(parts, nodes), price, Dual(0, 0, np.empty(0, np.int64)), nodes, cost is None, False,
        np.uint64(0), store, values, 0,
    )  # fmt: skip
    order = np.argsort(values[:found], kind="stable")
    return store[order], bool(status == EXHAUSTED)


def _run(
    parts: Programs, cost: Cost, nodes: int, seeds: NDArray[np.uint64], *, chance: bool, start: Array | None,
    known: NDArray[np.bool_] | None, dual: Dual | None = None,
) -> Found:  # fmt: skip
    x = np.zeros(len(parts.lower), np.int64) if start is None else start.copy()
    known = np.full(len(parts), start is not None, np.bool_) if known is None else known.copy()
    value, floor = np.zeros(len(parts), np.int64), np.zeros(len(parts), np.int64)
    exhausted, used = np.zeros(len(parts), np.bool_), np.zeros(len(parts), np.int64)
    found = Found(x, known, value, floor, exhausted, used)
    dual = dual or Dual(0, 0, np.empty(0, np.int64))
    deepest = nodes + int(np.diff(parts.first).max(initial=0)) if chance else nodes
    room = _room(parts, deepest)
    _search_all(parts.first, parts.row_first, parts.system, room, cost, dual, nodes, chance, seeds, found)
    return found


class _Room(NamedTuple):
    """What a search needs besides what it is asked; made once for all parts, as long as the longest needs it."""

    state: State  # of all parts; every search leaves the limits as they were
    trail: Trail
    families: Families
    branch: Array  # the steps taken: the cell, where the trail was, and what the other way leaves the cell
    mark: Array
    other_lower: Array
    other_upper: Array
    random: NDArray[np.uint64]
    least: Array


def _room(parts: Programs, nodes: int) -> _Room:
    """Room for searches of so many steps."""
    n, m = (int(np.diff(first).max(initial=0)) for first in (parts.first, parts.row_first))
    deep, rows, long = nodes + 2, len(parts.row_lower), CHANGES * n + MORE_CHANGES

    def some(count: int) -> Array:
        return np.empty(count, np.int64)

    limits = parts.lower.copy(), parts.upper.copy(), some(rows), some(rows)
    return _Room(
        State(*limits, some(m + 1), np.zeros(m, np.bool_), some(2)),
        Trail(some(n), some(long), some(long), some(long), some(1)),
        Families.room_for(n, m),
        some(deep),
        some(deep),
        some(deep),
        some(deep),
        np.empty(1, np.uint64),
        some(n),
    )


@njit(cache=True, nogil=True)
def _search_all(first, row_first, system, room, slopes, dual, nodes, chance, seeds, found):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Search every part for its cheapest solution, or by chance for any."""
    values = np.empty(1, np.int64)
    for part in range(len(first) - 1):
        v0, v1 = first[part], first[part + 1]
        store = np.empty((1, v1 - v0), np.int64)
        held = 0
        if found.known[part]:
            held, values[0] = 1, 0
            for variable in range(v0, v1):
                store[0, variable - v0] = found.x[variable]
                values[0] += price(variable, found.x[variable], slopes)
        where = (v0, v1, row_first[part], row_first[part + 1])
        steps, attempts = nodes, 1
        if chance and nodes > 0:  # a draw must reach the bottom once; one that goes astray is better begun anew
            size = (v1 - v0) + system.starts[where[3]] - system.starts[where[2]]
            steps = min(nodes + (v1 - v0), max(nodes, WORK // size))
            attempts = DRAWS if steps == nodes + (v1 - v0) else 1
        for attempt in range(attempts):
            seed = seeds[part] + np.uint64(attempt) * np.uint64(0xD1B54A32D192ED03)
            status, held, found.nodes[part], found.floor[part] = _search(
                where, system, room, slopes, dual, steps, chance, chance, seed, store, values, held
            )
            if held > 0 or status == EXHAUSTED:
                break
        found.exhausted[part] = status == EXHAUSTED
        if held:
            found.known[part], found.value[part] = True, values[0]
            found.x[v0:v1] = store[0]
            if status == EXHAUSTED and not chance:
                found.floor[part] = values[0]


@njit(**LEAF)
def _next(state):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """The next number of a splitmix64 stream."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(**LEAF)
def _pick_by_dual(part, state, slopes, dual):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """The next cell to decide: the one whose second choice is dearest."""
    chosen, best = np.int64(-1), np.int64(-1)
    for variable in range(part[0], part[1]):
        low, high = state.lower[variable], state.upper[variable]
        if low < high:
            first, last = left(variable, low, slopes, dual), left(variable, high, slopes, dual)
            if first <= last:
                regret = min(left(variable, low + 1, slopes, dual), last) - first
            else:
                regret = min(left(variable, high - 1, slopes, dual), first) - last
            if chosen < 0 or regret > best:
                chosen, best = np.int64(variable), regret
    return chosen


@njit(**LEAF)
def _pick(part, state, slopes):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """The next cell to decide: one whose cost rises and that has few values; -1 when all are decided."""
    chosen, best = np.int64(-1), np.int64(0)
    for variable in range(part[0], part[1]):
        low, high = state.lower[variable], state.upper[variable]
        if low < high:
            score = high - low
            if price(variable, high, slopes) <= price(variable, low, slopes):
                score += np.int64(1) << 40
            if chosen < 0 or score < best:
                chosen, best = np.int64(variable), score
    return chosen


@njit(**LEAF)
def _pick_by_chance(part, state, random):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """The next cell to decide: the first open one from a random place on; -1 when all are decided."""
    v0, v1 = part[0], part[1]
    begin = v0 + np.int64(_next(random) % np.uint64(v1 - v0))
    for variable in range(begin, v1):
        if state.lower[variable] < state.upper[variable]:
            return np.int64(variable)
    for variable in range(v0, begin):
        if state.lower[variable] < state.upper[variable]:
            return np.int64(variable)
    return np.int64(-1)


@njit(cache=True, nogil=True)
def _search(part, system, room, slopes, dual, nodes, stop_when_full, chance, seed, store, values, found):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Search one part. Keeps the solutions in `store`; returns status, how many, nodes used and a floor of the cost."""
    long, kept = CHANGES * (part[1] - part[0]) + MORE_CHANGES, room.trail
    trail = Trail(kept.stamp, kept.variable[:long], kept.lower[:long], kept.upper[:long], kept.used)
    return _walk(part, system, room, trail, slopes, dual, nodes, stop_when_full, chance, seed, store, values, found)


@njit(**LEAF)
def _dearest(values):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Where the largest value stands, the first of several."""
    at = np.int64(0)
    for one in range(1, len(values)):
        if values[one] > values[at]:
            at = np.int64(one)
    return at


@njit(**LEAF)
def _walk(  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    part, system, room, trail, slopes, dual, nodes, stop_when_full, chance, seed, store, values, found
):
    v0, v1, r0, r1 = part
    m, wanted, long = r1 - r0, len(store), len(trail.variable)
    state, family, random, least = room.state, room.families, room.random, room.least
    kept, kept_lower, kept_upper = trail.variable, trail.lower, trail.upper
    branch, mark, other_lower, other_upper = room.branch, room.mark, room.other_lower, room.other_upper
    trail.stamp[: v1 - v0], trail.used[0], random[0] = -1, 0, seed
    state.ends[0], state.ends[1], state.queued[:m] = 0, 0, False
    activities(r0, r1, system, state)
    full = _dearest(values) if found == wanted else np.int64(-1)  # the dearest kept, once full
    floor = np.int64(0)
    if not chance:  # where there are costs
        sort_into_families(part, system, slopes, family)
        floor = bound(part, system, state, slopes, family)
    if dual.scale > 0:
        floor = max(floor, -(-dual_bound(part, state, slopes, dual, least) // dual.scale))
    depth, count, status, enter = 0, 0, EXHAUSTED, True
    while True:
        if enter:  # a node whose limits are consistent
            if full >= 0 and dual.scale > 0:
                if not rule_out(part, system, state, slopes, dual, values[full], trail, count, least):
                    enter = False
                    continue
            elif full >= 0 and (floor if count == 0 else bound(part, system, state, slopes, family)) >= values[full]:
                enter = False
                continue
            if chance:
                variable = _pick_by_chance(part, state, random)
            elif dual.scale > 0:
                variable = _pick_by_dual(part, state, slopes, dual)
            else:
                variable = _pick(part, state, slopes)
            if variable < 0:
                fits, value = True, np.int64(0)
                for row in range(r0, r1):
                    fits &= system.row_lower[row] <= state.least[row] <= system.row_upper[row]
                for v in range(v0, v1):
                    value += price(v, state.lower[v], slopes)
                if fits and (full < 0 or value < values[full]):
                    to = full if full >= 0 else found
                    found = found if full >= 0 else found + 1
                    for v in range(v0, v1):
                        store[to, v - v0] = state.lower[v]
                    values[to] = value
                    if found == wanted:
                        if stop_when_full:
                            status = STOPPED
                            break
                        full = _dearest(values)
                enter = False
                continue
            if count >= nodes:
                status = STOPPED
                break
            low, high = state.lower[variable], state.upper[variable]
            if chance:
                wide = high - low > WIDE  # hardly limited: stay near the least
                cut = low + np.int64(_next(random) % np.uint64(WIDE_DRAW if wide else high - low))
                down = wide or np.int64(_next(random) % np.uint64(high - low + 1)) <= cut - low
            elif (dual.scale > 0 and left(variable, high, slopes, dual) < left(variable, low, slopes, dual)) or (
                dual.scale == 0 and price(variable, high, slopes) < price(variable, low, slopes)
            ):
                cut, down = high - 1, False
            else:
                cut, down = low, True
            one_lower, one_upper = (low, cut) if down else (cut + 1, high)
            other_lower[depth], other_upper[depth] = (cut + 1, high) if down else (low, cut)
            branch[depth], mark[depth] = variable, trail.used[0]
            depth += 1
        else:  # take back the last step and go the other way
            if depth == 0:
                break
            depth -= 1
            while trail.used[0] > mark[depth]:
                trail.used[0] -= 1
                at = trail.used[0]
                move(kept[at], kept_lower[at], kept_upper[at], system, state, r0)
            forget(state, r0)
            variable, one_lower, one_upper = branch[depth], other_lower[depth], other_upper[depth]
        count += 1
        at = trail.used[0]
        if at == long:
            status = STOPPED
            break
        trail.stamp[variable - v0] = count
        kept[at], kept_lower[at], kept_upper[at] = variable, state.lower[variable], state.upper[variable]
        trail.used[0] += 1
        move(variable, one_lower, one_upper, system, state, r0)
        failed = settle(system, state, r0, 100 * m + 10_000, trail, v0, count)
        if failed == -2:
            status = STOPPED
            break
        enter = failed == -1
    while trail.used[0] > 0:  # leave the limits as they were
        trail.used[0] -= 1
        at = trail.used[0]
        state.lower[kept[at]], state.upper[kept[at]] = kept_lower[at], kept_upper[at]
    return status, found, count, floor
