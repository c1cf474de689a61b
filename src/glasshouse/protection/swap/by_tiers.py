"""Which households trade places with one nearby, and who rather than others? Swapping as paper 004 describes it.

Households are ranked by how exposed they are, within each area that nobody leaves (`tiers`): those at risk as paper 000
has it come first, in a place of few persons, or with a member alone there with its cell; then the fewer households
nearby are composed alike, the more exposed; then the fewer persons the place has; then a draw decides. Two households
are composed alike if they agree on persons, adults, and the set of cells of their members (races and origins, there).
The most exposed 0.5% have weight 1.0, the next 19.5% 0.6, the next 30% 0.3, the last half 0.1 (footnote 6). Taken as
chances these would choose 26% of all households; here they are relative weights, and the rate is given.

Households get their turn in a weighted race: the one with weight w comes to the line after a time that is exponential
with rate w. Who is still free then takes a partner, drawn evenly from the nearest free households (five) that agree on
the number of persons and of adults, in other places of the area. That goes on until the share asked for has moved,
in every area apart. So half of those who move had their turn, by weight; the other half are partners, by nearness.
Entirely imputed households are never swapped; group quarters are not among the households here.

The rates of `by_rates` are chances; the share here is reached within one pair of each area, as long as there are
partners. The package says how the two rules differ.

All chance is in draws that belong to households (`draws_of`). Nothing depends on the order of rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np
from numba import njit
from numpy.typing import NDArray

from glasshouse.errors import InputError
from glasshouse.protection.swap.households import Flags, Floats, Ints, Swapped, numbered

TIERS = ((5, 1.0), (200, 0.6), (500, 0.3), (1000, 0.1))  # where a tier ends, in thousandths of the rank; its weight
WEIGHTS = np.array([weight for _, weight in TIERS])
RANKING, RACING, PICKING, STANDING, USES = range(5)  # what the draws of a household are for
LISTED = 24  # nearest places with households alike that are listed beforehand; beyond them, all are looked at
_BITS = 62  # flags in a whole number
_AT_ONCE = 20_000  # lists made at a time
_KINDS = {"Ints": np.dtype(np.int64), "Flags": np.dtype(np.bool_)}


@dataclass(frozen=True)
class Homes:
    """The occupied households, a row each, without group quarters."""

    place: Ints  # numbered from 0, in the order of codes, which breaks ties of distance
    area: Ints  # which nobody leaves
    key: Ints  # what pairs agree on, see `alike_key`
    tier: Ints  # see `tiers`
    fixed: Flags  # may not be swapped: entirely imputed

    def __post_init__(self) -> None:
        for field in fields(self):
            column, kind = getattr(self, field.name), _KINDS[str(field.type)]
            if column.shape != self.place.shape or column.ndim != 1 or column.dtype != kind:
                found = f"{column.dtype} of shape {column.shape}"
                raise InputError(f"'{field.name}' of the households must be {kind}, a row each; found {found}")
        if np.any((self.tier < 0) | (self.tier >= len(TIERS))) or np.any(self.place < 0):
            raise InputError(f"households need a tier from 0 to {len(TIERS) - 1} and a place numbered from 0")

    def __len__(self) -> int:
        return len(self.place)


@dataclass(frozen=True)
class SwappedNearby(Swapped):
    """Who changed places with whom, and how far that was."""

    distance: Floats  # between the two places of a pair; 0 for who stays


def draws_of(names: Iterable[str], seed: int) -> Floats:
    """All chance of a swap: a row of even draws from 0 to 1 for each household, from the seed and its name alone."""
    key = hashlib.sha256(str(seed).encode()).digest()
    said = b"".join(hashlib.blake2b(name.encode(), digest_size=8 * USES, key=key).digest() for name in names)
    return (np.frombuffer(said, "<u8").reshape(-1, USES) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def composed_alike(near: Ints, persons: Ints, adults: Ints, household_of_person: Ints, cell: Ints) -> Ints:
    """How many households of its surroundings are composed as this one, itself included; persons have a `cell` each.

    Composed alike: as many persons, as many adults, and the same set of cells among the members.
    """
    if len(household_of_person) != len(cell):
        raise InputError("every person needs a household and a cell")
    kinds, number = np.unique(cell, return_inverse=True)
    present = np.unique(household_of_person * max(len(kinds), 1) + number)  # each cell once in a household
    household, flag = np.divmod(present, max(len(kinds), 1))
    columns = [near, persons, adults]
    for word in range((len(kinds) + _BITS - 1) // _BITS):
        here = flag // _BITS == word
        flags = np.zeros(len(near), np.int64)
        np.add.at(flags, household[here], np.int64(1) << (flag[here] % _BITS))
        columns.append(flags)
    composed = numbered(*columns)
    return np.bincount(composed)[composed] if len(composed) else composed


def tiers(area: Ints, risk: Flags, alike: Ints, persons_in_place: Ints, tie: Floats) -> Ints:
    """The tier of each household, 0 for the most exposed; ranked in each area as this module's docstring says.

    `persons_in_place` is that of the household's place, `tie` a draw of the household.
    """
    order = np.lexsort((np.arange(len(area)), tie, persons_in_place, alike, ~risk, area))
    begin = np.flatnonzero(np.diff(area[order], prepend=-1))
    size = np.diff(begin, append=len(order))
    rank = np.arange(len(order)) - np.repeat(begin, size)
    tier = np.empty(len(order), np.int64)
    ends = np.array([end for end, _ in TIERS])
    # rank / size < end / 1000 in whole numbers, so that no rounding decides
    tier[order] = np.argmax(1000 * rank[:, None] < ends * np.repeat(size, size)[:, None], axis=1)
    return tier


def along_codes(near: Ints) -> Floats:
    """Where places lie when only their codes are known: on a line, in the order of codes. `near` is around each place.

    Between surroundings there are gaps wider than any of them: so the places of the own ones are nearest, then those of
    the ones before and after in the order of codes, and so on. Places of the same have consecutive numbers.
    """
    if np.any(np.diff(near) < 0):
        raise InputError("places must be numbered in the order of their codes, so those of an area one after the other")
    begin = np.flatnonzero(np.diff(near, prepend=-1))
    size = np.diff(begin, append=len(near))
    rank = np.arange(len(near)) - np.repeat(begin, size)
    line = np.repeat(np.arange(len(begin)), size) * 2 * np.max(size, initial=0) + rank
    return np.column_stack([line, np.zeros(len(line))]).astype(np.float64)


def swap_by_tiers(homes: Homes, where: Floats, rate: float, draws: Floats, nearest: int = 5) -> SwappedNearby:
    """Exchange the places of pairs of households until the share `rate` of each area has moved. At 1: all who can.

    `where` has the two coordinates of every place, `draws` a row for each household. Nearness is that of places, by
    distance in a plane, then by the number of the place; households of one place are as their draws order them.
    """
    if not 0 <= rate <= 1:
        raise InputError(f"the rate must be from 0 to 1: the share of households that change places; found {rate}")
    if nearest < 1:
        raise InputError(f"a partner is drawn from at least 1 nearest household; found {nearest}")
    if draws.shape != (len(homes), USES):
        raise InputError(f"every household needs {USES} draws; found the shape {draws.shape} for {len(homes)}")
    if where.ndim != 2 or where.shape[1] != 2 or len(where) <= np.max(homes.place, initial=-1):
        raise InputError("every place needs two coordinates")
    partner = np.full(len(homes), -1, np.int64)
    chosen = np.zeros(len(homes), np.bool_)
    for area in np.unique(homes.area):
        everyone = np.flatnonzero(homes.area == area)
        rows = everyone[~homes.fixed[everyone]]
        wanted = int(np.floor(rate * len(everyone) / 2 + 0.5))  # pairs
        if wanted and len(rows):
            _swap_in_area(homes, where, rows, wanted, draws, nearest, partner, chosen)
    done = Swapped.of(homes.place, partner, chosen)
    apart = where[done.place] - where[homes.place]
    distance = np.sqrt(apart[:, 0] ** 2 + apart[:, 1] ** 2)
    return SwappedNearby(partner, done.place, done.unmatched, chosen, distance)


def _swap_in_area(
    homes: Homes, where: Floats, rows: Ints, wanted: int, draws: Floats, nearest: int, partner: Ints, chosen: Flags
) -> None:
    """The households of one area that may be swapped. Writes `partner` and `chosen`."""
    rows = rows[np.lexsort((rows, draws[rows, STANDING], homes.key[rows], homes.place[rows]))]
    _, place = np.unique(homes.place[rows], return_inverse=True)
    keys, key = np.unique(homes.key[rows], return_inverse=True)
    # A pool: the households of one place with one key. They lie together; the pools of a key go by place.
    begin = np.flatnonzero(np.diff(place * len(keys) + key, prepend=-1))
    pool = np.repeat(np.arange(len(begin)), np.diff(begin, append=len(rows)))
    by_key = np.argsort(key[begin], kind="stable")
    first_of_key = np.searchsorted(key[begin][by_key], np.arange(len(keys) + 1))
    time = -np.log1p(-draws[rows, RACING]) / WEIGHTS[homes.tier[rows]]
    turn = np.lexsort((rows, time))
    asking = np.zeros(len(begin), np.bool_)
    asking[pool[turn[: 2 * wanted]]] = True  # about as far as it goes: half of these are partners before their turn
    lies = np.ascontiguousarray(where[homes.place[rows[begin]]])
    found, asked = _in_turn(
        turn, pool, begin, key[begin], by_key, first_of_key, np.bincount(pool), np.bincount(key), lies,
        *_neighbours(lies, by_key, first_of_key, asking), draws[rows, PICKING], wanted, nearest,
    )  # fmt: skip
    partner[rows] = np.where(found >= 0, rows[found], -1)
    chosen[rows] = asked


def _neighbours(
    place: Floats, by_key: Ints, first_of_key: Ints, asking: Flags
) -> tuple[NDArray[np.int32], Ints, Flags]:
    """The nearest other pools of the same key, nearest first, -1 after the last: a list for each pool that asks.

    And which list is that of each pool (-1 for none), and whether it has all there are. Equal distances go by number.
    """
    from scipy.spatial import cKDTree

    listing = np.where(asking, np.cumsum(asking) - 1, -1)
    lists = np.full((int(asking.sum()), LISTED + 1), -1, np.int32)
    whole = np.zeros(len(asking), np.bool_)
    for first, end in pairwise(first_of_key):
        pools = by_key[first:end]
        some = min(LISTED + 1, len(pools))
        whole[pools] = some == len(pools)
        owners = pools[asking[pools]]
        tree = cKDTree(place[pools]) if some < len(pools) else None
        for start in range(0, len(owners), _AT_ONCE):
            own = owners[start : start + _AT_ONCE]
            if tree is None:
                near = np.broadcast_to(pools, (len(own), some))
            else:
                near = pools[np.sort(tree.query(place[own], k=np.arange(1, some + 1))[1], axis=1)]
            apart = place[near] - place[own, None]
            distance = apart[..., 0] * apart[..., 0] + apart[..., 1] * apart[..., 1]  # to the bit as `_searched` does
            keep = near != own[:, None]
            if tree is not None:  # of those as far as the last, others may be missing that have lower numbers
                keep &= distance < np.max(distance, axis=1, keepdims=True) * (1 - 1e-9)
            order = np.argsort(np.where(keep, distance, np.inf), axis=1, kind="stable")
            lists[listing[own], :some] = np.take_along_axis(np.where(keep, near, -1), order, 1)
    return lists, listing, whole


@njit(cache=True, nogil=True)
def _in_turn(  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    turn, pool, begin, pool_key, by_key, first_of_key, left, free, where, lists, listing, whole, draw, wanted, nearest
):  # fmt: skip
    """Go along the turns; who is free takes a partner. Returns partners, and who asked for one.

    The free ones of a pool are kept at its beginning, in order; pools that have any are kept at the beginning of
    their key's list, in no order.
    """
    partner = np.full(len(turn), -1, np.int64)
    asked = np.zeros(len(turn), np.bool_)
    standing = np.arange(len(turn))
    place = np.empty(len(by_key), np.int64)
    place[by_key] = np.arange(len(by_key))
    live = first_of_key[1:] - first_of_key[:-1]
    candidate, far = np.empty(nearest, np.int64), np.empty(nearest)
    pairs = 0
    for row in turn:
        if pairs == wanted:
            break
        if partner[row] >= 0:
            continue
        asked[row] = True
        own, key = pool[row], pool_key[pool[row]]
        if free[key] == left[own]:  # nobody elsewhere
            continue
        found = 0
        if listing[own] >= 0:
            for near in lists[listing[own]]:
                if near < 0 or found == nearest:
                    break
                for member in range(begin[near], begin[near] + min(left[near], nearest - found)):
                    candidate[found] = standing[member]
                    found += 1
        if found < nearest and not (whole[own] and listing[own] >= 0):
            live_pools = by_key[first_of_key[key] : first_of_key[key] + live[key]]
            found = _searched(own, live_pools, begin, left, standing, where, candidate, far)
        other = candidate[min(int(draw[row] * found), found - 1)]
        partner[row], partner[other] = other, row
        pairs += 1
        for gone in (row, other):
            at = pool[gone]
            member = begin[at]
            while standing[member] != gone:
                member += 1
            left[at] -= 1
            free[key] -= 1
            for later in range(member, begin[at] + left[at]):
                standing[later] = standing[later + 1]
            if left[at] == 0:  # the last of the list takes its place there
                live[key] -= 1
                last = by_key[first_of_key[key] + live[key]]
                by_key[place[at]] = last
                place[last] = place[at]
    return partner, asked


@njit(cache=True, nogil=True)
def _searched(own, pools, begin, left, standing, where, candidate, far):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """The nearest free households of all pools but one's own, nearest first, by looking at every pool."""
    found, nearest = 0, len(candidate)
    which = np.empty(nearest, np.int64)
    for pool in pools:
        if pool == own:
            continue
        x, y = where[pool, 0] - where[own, 0], where[pool, 1] - where[own, 1]
        distance = x * x + y * y
        for member in range(begin[pool], begin[pool] + left[pool]):
            at = found
            while at > 0 and (far[at - 1] > distance or (far[at - 1] == distance and which[at - 1] > pool)):
                at -= 1
            if at == nearest:
                break
            found = min(found + 1, nearest)
            for later in range(found - 1, at, -1):
                candidate[later], far[later], which[later] = candidate[later - 1], far[later - 1], which[later - 1]
            candidate[at], far[at], which[at] = standing[member], distance, pool
    return found
