"""How does a walk take a step? A wrong number is mended by the best of a few changes: a record more, fewer, or another.

*Another* changes as little of a record as brings it into the number, or out of it: it is given the attributes of some
cell there, and gets its own back one by one as far as that goes. So most numbers stay as they were. A change that makes
nothing worse by weight is made; otherwise the wrong number weighs more from now on, and the change is made now and then
all the same. All of this is compiled; whatever is drawn follows from the seed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from glasshouse.model.records import UNLIMITED
from glasshouse.program.propagate import INNER, Array

TRIED = 24  # changes that are looked at in a step, twice as many for a number of an area; half for a wish
OTHERS = 4  # of so many changes all but one replace a record by another
WORSE = 50  # one in so many changes that make things worse is made
HEAVY = 1 << 20  # weights never grow beyond
COUNT, LOW, HIGH, WEIGHT = 0, 1, 2, 3  # what is known of a node


class Game(NamedTuple):
    """What a walk goes over: numbers of places and areas are nodes, with counts, limits and weights.

    By cell the numbers that count it (ascending), by number its cells; the attributes of each cell and, by those, the
    cell. `active` are the kinds of number that places must fit. Of each node its kind (-1: none) and the places it
    counts in: inside[node] is a begin and an end in a row of `order`. Wrong nodes are listed. Records by place.
    """

    starts: Array
    numbers: NDArray[np.int32]
    times: Array
    cell_starts: Array
    cells: NDArray[np.int32]
    codes: NDArray[np.int16]
    strides: Array
    lookup: NDArray[np.int32]
    active: NDArray[np.bool_]
    at: Array
    shifts: Array
    kind: Array
    inside: Array
    order: Array
    state: Array
    listed: Array
    where: Array
    used: Array
    records: NDArray[np.int32]
    size: Array
    random: NDArray[np.uint64]


# What is called for every change that is looked at takes arrays: taking them out of a tuple each time would cost more.


@njit(**INNER)
def _drawn(most, random):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """A number from 0 to most - 1 (xorshift)."""
    x = random[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    random[0] = x
    return np.int64((x >> np.uint64(11)) % np.uint64(most))


@njit(**INNER)
def _has(cell, kind, starts, numbers):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Does a number count a cell?"""
    low, high = starts[cell], starts[cell + 1]
    while low < high:
        middle = (low + high) // 2
        if numbers[middle] < kind:
            low = middle + 1
        else:
            high = middle
    return low < starts[cell + 1] and numbers[low] == kind


@njit(**INNER)
def _wrong(count, low, high):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    return low - count if count < low else (count - high if count > high else np.int64(0))


@njit(**INNER)
def _worse(node, step, state):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """By how much more is a number wrong, by weight, after a step?"""
    count, low, high = state[node, COUNT], state[node, LOW], state[node, HIGH]
    return state[node, WEIGHT] * (_wrong(count + step, low, high) - _wrong(count, low, high))


@njit(**INNER)
def _worse_around(place, kind, step, active, at, shifts, state):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """The same for a number of a place and of the areas around it."""
    worse = np.int64(0)
    if active[kind]:
        worse += _worse(place * len(active) + kind, step, state)
    for ring in range(len(shifts)):
        if at[ring, kind] >= 0:
            worse += _worse(shifts[ring, place] + at[ring, kind], step, state)
    return worse


@njit(**INNER)
def _change(place, out, into, starts, numbers, times, active, at, shifts, state):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """By how much more would be wrong, by weight, with a record less in one cell and one more in another (-1: none)."""
    mine, end = (starts[out], starts[out + 1]) if out >= 0 else (np.int64(0), np.int64(0))
    other, last = (starts[into], starts[into + 1]) if into >= 0 else (np.int64(0), np.int64(0))
    worse = np.int64(0)
    while mine < end or other < last:
        if other >= last or (mine < end and numbers[mine] < numbers[other]):
            worse += _worse_around(place, numbers[mine], -times[mine], active, at, shifts, state)
            mine += 1
        elif mine >= end or numbers[other] < numbers[mine]:
            worse += _worse_around(place, numbers[other], times[other], active, at, shifts, state)
            other += 1
        else:  # a number that counts both alike stays as it is
            if times[mine] != times[other]:
                worse += _worse_around(place, numbers[mine], times[other] - times[mine], active, at, shifts, state)
            mine += 1
            other += 1
    return worse


@njit(**INNER)
def _record(place, kind, counted, records, size, starts, numbers, random):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """The cell of some record that a number counts, or that it does not; -1: there is none."""
    many = size[place]
    if many:
        first = _drawn(many, random)
        for step in range(many):
            one = first + step
            cell = np.int64(records[place, one if one < many else one - many])
            if _has(cell, kind, starts, numbers) == counted:
                return cell
    return np.int64(-1)


@njit(**INNER)
def _like(cell, record, kind, counted, codes, strides, lookup, starts, numbers, random):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """A cell that a number counts, or does not, as `cell`; for the rest as like a record's as it goes."""
    attributes = codes.shape[1]
    key, found = np.int64(0), cell
    for attribute in range(attributes):
        key += codes[cell, attribute] * strides[attribute]
    first = _drawn(attributes, random)
    for step in range(attributes):
        attribute = (first + step) % attributes
        other = key + (np.int64(codes[record, attribute]) - codes[cell, attribute]) * strides[attribute]
        if other != key:
            there = np.int64(lookup[other])
            if there >= 0 and _has(there, kind, starts, numbers) == counted:
                key, found = other, there
    return found


@njit(**INNER)
def _count(node, step, state, listed, where, used):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Change a count, and keep the list of wrong numbers."""
    state[node, COUNT] += step
    bad = state[node, COUNT] < state[node, LOW] or state[node, COUNT] > state[node, HIGH]
    if bad and where[node] < 0:
        where[node] = used[0]
        listed[used[0]] = node
        used[0] += 1
    elif not bad and where[node] >= 0:
        used[0] -= 1
        last = listed[used[0]]
        listed[where[node]] = last
        where[last] = where[node]
        where[node] = -1


@njit(**INNER)
def _put(place, cell, sign, game):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    active, at, shifts, numbers, times = game.active, game.at, game.shifts, game.numbers, game.times
    state, listed, where, used = game.state, game.listed, game.where, game.used
    for entry in range(game.starts[cell], game.starts[cell + 1]):
        kind, step = numbers[entry], sign * times[entry]
        node = place * len(active) + kind
        if active[kind]:
            _count(node, step, state, listed, where, used)
        else:
            state[node, COUNT] += step
        for ring in range(len(shifts)):
            if at[ring, kind] >= 0:
                _count(shifts[ring, place] + at[ring, kind], step, state, listed, where, used)


@njit(**INNER)
def _look(node, game):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Is a number wrong? The list knows afterwards."""
    _count(node, 0, game.state, game.listed, game.where, game.used)


@njit(**INNER)
def move(place, out, into, game):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Take a record out of a cell and put one into another (-1: none)."""
    if out >= 0:
        _put(place, out, -1, game)
        for one in range(game.size[place] - 1, -1, -1):
            if game.records[place, one] == out:
                game.size[place] -= 1
                game.records[place, one] = game.records[place, game.size[place]]
                break
    if into >= 0:
        _put(place, into, 1, game)
        game.records[place, game.size[place]] = into
        game.size[place] += 1


@njit(**INNER)
def _best(node, more, tried, game):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Of some changes that mend a number the best: the place, the cell a record leaves, the one it enters, how good."""
    starts, numbers, times, cell_starts, cells = game.starts, game.numbers, game.times, game.cell_starts, game.cells
    codes, strides, lookup, active, at = game.codes, game.strides, game.lookup, game.active, game.at
    shifts, state, records, size, random = game.shifts, game.state, game.records, game.size, game.random
    order, room, kind = game.order, game.records.shape[1], game.kind[node]
    begin, end, ring = game.inside[node, 0], game.inside[node, 1], game.inside[node, 2]
    best_place, best_out, best_into, least = np.int64(-1), np.int64(-1), np.int64(-1), np.int64(0)
    for _ in range(tried if ring == 0 else 2 * tried):
        place = order[ring, begin + _drawn(end - begin, random)]
        another = size[place] > 0 and _drawn(OTHERS, random) > 0
        out, into = np.int64(-1), np.int64(-1)
        if another or not more:
            out = _record(place, kind, not more, records, size, starts, numbers, random)
            if out < 0:
                continue
        elif size[place] >= room:
            continue
        if more:
            into = np.int64(cells[cell_starts[kind] + _drawn(cell_starts[kind + 1] - cell_starts[kind], random)])
        elif another:
            into = _drawn(len(codes), random)
            if _has(into, kind, starts, numbers):
                continue
        if another:
            into = _like(into, out, kind, more, codes, strides, lookup, starts, numbers, random)
        worse = _change(place, out, into, starts, numbers, times, active, at, shifts, state)
        if best_place < 0 or worse < least:
            best_place, best_out, best_into, least = place, out, into, worse
    return best_place, best_out, best_into, least


@njit(**INNER)
def mend(steps, tried, worse_in, game, log, logged):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Mend wrong numbers until none is left. False: given up, or the log of changes (if it has any room) is full.

    Of changes that make things worse, one in `worse_in` is made.
    """
    for _ in range(steps):
        if game.used[0] == 0:
            return True
        if len(log) and logged[0] >= len(log):
            return False
        node = game.listed[_drawn(game.used[0], game.random)]
        kind = game.kind[node]
        if kind < 0 or game.cell_starts[kind] == game.cell_starts[kind + 1]:
            return False  # nothing counts there
        place, out, into, worse = _best(node, game.state[node, COUNT] < game.state[node, LOW], tried, game)
        if place < 0:
            continue
        if worse > 0:
            game.state[node, WEIGHT] = min(game.state[node, WEIGHT] + 1, HEAVY)
            if _drawn(worse_in, game.random) > 0:
                continue
        move(place, out, into, game)
        if len(log):
            log[logged[0], 0], log[logged[0], 1], log[logged[0], 2] = place, out, into
            logged[0] += 1
    return game.used[0] == 0


@njit(**INNER)
def _meet(place, cell, game, met_low, met_high):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """The numbers that count a cell are met as they are."""
    for entry in range(game.starts[cell], game.starts[cell + 1]):
        kind = game.numbers[entry]
        node = place * len(game.active) + kind
        for ring in range(-1, len(game.shifts)):
            if ring >= 0:
                if game.at[ring, kind] < 0:
                    continue
                node = game.shifts[ring, place] + game.at[ring, kind]
            met_low[node] = min(met_low[node], game.state[node, COUNT])
            met_high[node] = max(met_high[node], game.state[node, COUNT])


@njit(**INNER)
def _wished(node, low, high, steps, tried, worse_in, game, log, logged):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Bring one number between other limits while all others fit. False: it was not done, and all is as before."""
    state, kind = game.state, game.kind[node]
    before_low, before_high, active = state[node, LOW], state[node, HIGH], game.active[kind]
    logged[0] = 0
    state[node, LOW], state[node, HIGH], game.active[kind] = low, high, True
    _look(node, game)
    fine = mend(steps, tried, worse_in, game, log, logged)
    state[node, LOW], state[node, HIGH] = before_low, before_high
    if not fine:
        for one in range(logged[0] - 1, -1, -1):
            place, out, into = log[one]
            move(place, into, out, game)
    _look(node, game)
    game.active[kind] = active
    return fine


@njit(**INNER)
def _shuffled(many, game):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    order = np.arange(many)
    for last in range(many - 1, 0, -1):
        other = _drawn(last + 1, game.random)
        order[last], order[other] = order[other], order[last]
    return order


@njit(cache=True, nogil=True)
def found(steps, game):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Find data that fit. How many numbers are wrong at last: 0 is found."""
    for node in range(len(game.kind)):
        kind = game.kind[node]
        if kind >= 0 and (game.inside[node, 2] > 0 or game.active[kind]):
            _look(node, game)
    mend(steps, TRIED, WORSE, game, np.empty((0, 3), np.int64), np.zeros(1, np.int64))
    return game.used[0]


@njit(cache=True, nogil=True)
def towards_ends(wanted, tries, steps, game, met_low, met_high):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """From data that fit: bring one number after the other to its ends."""
    log, logged = np.empty((4096, 3), np.int64), np.zeros(1, np.int64)
    for node in range(len(game.kind)):
        met_low[node] = met_high[node] = game.state[node, COUNT]
    for attempt in range(tries):
        for turn in _shuffled(2 * len(wanted), game):
            node, up = wanted[turn // 2], turn % 2 == 1
            low, high = game.state[node, LOW], game.state[node, HIGH]
            if game.kind[node] < 0 or (met_high[node] >= high or high >= UNLIMITED if up else met_low[node] <= low):
                continue
            end = high if up else low
            if _wished(node, end, end, steps * (1 + attempt), TRIED // 2, 1, game, log, logged):
                for one in range(logged[0]):
                    for side in range(1, 3):
                        if log[one, side] >= 0:
                            _meet(log[one, 0], log[one, side], game, met_low, met_high)


@njit(cache=True, nogil=True)
def apart(unwanted, wanted, rounds, steps, game):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """From data that fit: make some numbers small, and others large, and keep what was reached."""
    log, logged = np.empty((4096, 3), np.int64), np.zeros(1, np.int64)
    state = game.state
    for attempt in range(rounds):
        longer = steps * (1 + attempt)
        for turn in _shuffled(len(unwanted), game):
            node = unwanted[turn]
            while state[node, COUNT] > state[node, LOW]:
                fewer = state[node, COUNT] - 1
                if not _wished(node, state[node, LOW], fewer, longer, TRIED, WORSE, game, log, logged):
                    break
            state[node, HIGH] = state[node, COUNT]  # never more again
        for node in wanted:
            while state[node, COUNT] < state[node, HIGH]:
                more, high = state[node, COUNT] + 1, state[node, HIGH]
                if not _wished(node, more, high, longer, TRIED, WORSE, game, log, logged):
                    break
            state[node, LOW] = state[node, COUNT]
