"""Which households trade places with one nearby, and who rather than others? Swapping as paper 004 describes it.

Households are ranked by how exposed they are, in every state apart (`tiers`): those at risk as paper 000 has it come
first, in a block of few persons, or with a member alone in the block with its race and origin; then the fewer
households of the tract are composed alike, the more exposed; then the fewer persons the block has; then a draw decides.
Two households are composed alike if they agree on persons, adults, and the set of races and origins of their members.
The most exposed 0.5% have weight 1.0, the next 19.5% 0.6, the next 30% 0.3, the last half 0.1 (footnote 6). Taken as
chances these would choose 26% of all households; here they are relative weights, and the rate is given.

Households get their turn in a weighted race: the one with weight w comes to the line after a time that is exponential
with rate w. Who is still free then takes a partner, drawn evenly from the nearest free households (five) that agree on
the number of persons and of adults, in other blocks of the state. That goes on until the share asked for has moved,
in every state apart. So half of those who move had their turn, by weight; the other half are partners, by nearness.
Entirely imputed households are never swapped; group quarters are not among the households here.

This differs from `swap`, which is the 2010 rule in its plain form: two rates, for those at risk and for others; chosen
households are paired with each other, at random within an area and from another tract, not with the nearest; and the
rates are chances, where the share here is reached within one pair of each state, as long as there are partners.

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

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]

TIERS = ((5, 1.0), (200, 0.6), (500, 0.3), (1000, 0.1))  # where a tier ends, in thousandths of the rank; its weight
WEIGHTS = np.array([weight for _, weight in TIERS])
RANKING, RACING, PICKING, STANDING, USES = range(5)  # what the draws of a household are for
LISTED = 24  # nearest blocks with households alike that are listed beforehand; beyond them, all are looked at
_BITS = 62  # flags in a whole number
_AT_ONCE = 20_000  # lists made at a time
_KINDS = {"Ints": np.dtype(np.int64), "Flags": np.dtype(np.bool_)}


@dataclass(frozen=True)
class Homes:
    """The occupied households, a row each, without group quarters."""

    block: Ints  # numbered from 0, in the order of codes, which breaks ties of distance
    state: Ints  # which nobody leaves
    key: Ints  # what pairs agree on, see `swap.swap_key`
    tier: Ints  # see `tiers`
    fixed: Flags  # may not be swapped: entirely imputed

    def __post_init__(self) -> None:
        for field in fields(self):
            column, kind = getattr(self, field.name), _KINDS[str(field.type)]
            if column.shape != self.block.shape or column.ndim != 1 or column.dtype != kind:
                found = f"{column.dtype} of shape {column.shape}"
                raise InputError(f"'{field.name}' of the households must be {kind}, a row each; found {found}")
        if np.any((self.tier < 0) | (self.tier >= len(TIERS))) or np.any(self.block < 0):
            raise InputError(f"households need a tier from 0 to {len(TIERS) - 1} and a block numbered from 0")

    def __len__(self) -> int:
        return len(self.block)


@dataclass(frozen=True)
class NearbySwap:
    """Who changed places with whom."""

    partner: Ints  # the row of the other household of the pair, or -1
    block: Ints  # where each household is now
    distance: Floats  # between the two blocks of a pair; 0 for who stays
    chosen: Flags  # had their turn, and were free: they asked for a partner
    unmatched: int  # of these, found none

    @property
    def moved(self) -> int:
        """How many households are in another block now."""
        return int(np.count_nonzero(self.partner >= 0))

    @property
    def share(self) -> float:
        """The realised swap rate: which share of all households is in another block now."""
        return self.moved / max(len(self.partner), 1)


def draws_of(names: Iterable[str], seed: int) -> Floats:
    """All chance of a swap: a row of even draws from 0 to 1 for each household, from the seed and its name alone."""
    key = hashlib.sha256(str(seed).encode()).digest()
    said = b"".join(hashlib.blake2b(name.encode(), digest_size=8 * USES, key=key).digest() for name in names)
    return (np.frombuffer(said, "<u8").reshape(-1, USES) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def alike_in_tract(tract: Ints, persons: Ints, adults: Ints, household_of_person: Ints, cell: Ints) -> Ints:
    """How many households of its tract are composed as this one, itself included; `cell` is that of each person.

    Composed alike: as many persons, as many adults, and the same set of cells (races and origins) among the members.
    """
    if len(household_of_person) != len(cell):
        raise InputError("every person needs a household and a cell")
    kinds, number = np.unique(cell, return_inverse=True)
    present = np.unique(household_of_person * max(len(kinds), 1) + number)  # each cell once in a household
    household, flag = np.divmod(present, max(len(kinds), 1))
    columns = [tract, persons, adults]
    for word in range((len(kinds) + _BITS - 1) // _BITS):
        here = flag // _BITS == word
        flags = np.zeros(len(tract), np.int64)
        np.add.at(flags, household[here], np.int64(1) << (flag[here] % _BITS))
        columns.append(flags)
    order = np.lexsort(columns)
    new = np.zeros(len(order), np.bool_)
    for column in columns:
        new[1:] |= np.diff(column[order]) != 0
    composed = np.empty(len(order), np.int64)
    composed[order] = np.cumsum(new)
    return np.bincount(composed)[composed] if len(composed) else composed


def tiers(state: Ints, risk: Flags, alike: Ints, persons_in_block: Ints, tie: Floats) -> Ints:
    """The tier of each household, 0 for the most exposed; ranked in each state as this module's docstring says.

    `persons_in_block` is that of the household's block, `tie` a draw of the household.
    """
    order = np.lexsort((np.arange(len(state)), tie, persons_in_block, alike, ~risk, state))
    begin = np.flatnonzero(np.diff(state[order], prepend=-1))
    size = np.diff(begin, append=len(order))
    rank = np.arange(len(order)) - np.repeat(begin, size)
    tier = np.empty(len(order), np.int64)
    ends = np.array([end for end, _ in TIERS])
    # rank / size < end / 1000 in whole numbers, so that no rounding decides
    tier[order] = np.argmax(1000 * rank[:, None] < ends * np.repeat(size, size)[:, None], axis=1)
    return tier


def along_codes(tract_of_block: Ints) -> Floats:
    """Where blocks lie when only their codes are known: on a line, in the order of codes.

    Between tracts there are gaps wider than any tract: so the blocks of the own tract are nearest, then those of the
    tracts before and after it in the order of codes, and so on. Blocks of a tract have consecutive numbers.
    """
    if np.any(np.diff(tract_of_block) < 0):
        raise InputError("blocks must be numbered in the order of their codes, so those of a tract one after the other")
    begin = np.flatnonzero(np.diff(tract_of_block, prepend=-1))
    size = np.diff(begin, append=len(tract_of_block))
    rank = np.arange(len(tract_of_block)) - np.repeat(begin, size)
    tract = np.repeat(np.arange(len(begin)), size)
    line = tract * 2 * np.max(size, initial=0) + rank
    return np.column_stack([line, np.zeros(len(line))]).astype(np.float64)


def swap_nearby(homes: Homes, where: Floats, rate: float, draws: Floats, nearest: int = 5) -> NearbySwap:
    """Exchange the blocks of pairs of households until the share `rate` of each state has moved. At 1: all who can.

    `where` has the two coordinates of every block, `draws` a row for each household. Nearness is that of blocks, by
    distance in a plane, then by the number of the block; households of one block are as their draws order them.
    """
    if not 0 <= rate <= 1:
        raise InputError(f"the rate must be from 0 to 1: the share of households that change block; found {rate}")
    if nearest < 1:
        raise InputError(f"a partner is drawn from at least 1 nearest household; found {nearest}")
    if draws.shape != (len(homes), USES):
        raise InputError(f"every household needs {USES} draws; found the shape {draws.shape} for {len(homes)}")
    if where.ndim != 2 or where.shape[1] != 2 or len(where) <= np.max(homes.block, initial=-1):
        raise InputError("every block needs two coordinates")
    partner = np.full(len(homes), -1, np.int64)
    chosen = np.zeros(len(homes), np.bool_)
    for state in np.unique(homes.state):
        everyone = np.flatnonzero(homes.state == state)
        rows = everyone[~homes.fixed[everyone]]
        wanted = int(np.floor(rate * len(everyone) / 2 + 0.5))  # pairs
        if wanted and len(rows):
            _swap_in_state(homes, where, rows, wanted, draws, nearest, partner, chosen)
    block = np.where(partner >= 0, homes.block[partner], homes.block)
    apart = where[block] - where[homes.block]
    distance = np.sqrt(apart[:, 0] ** 2 + apart[:, 1] ** 2)
    return NearbySwap(partner, block, distance, chosen, int(np.count_nonzero(chosen & (partner < 0))))


def _swap_in_state(
    homes: Homes, where: Floats, rows: Ints, wanted: int, draws: Floats, nearest: int, partner: Ints, chosen: Flags
) -> None:
    """The households of one state that may be swapped. Writes `partner` and `chosen`."""
    rows = rows[np.lexsort((rows, draws[rows, STANDING], homes.key[rows], homes.block[rows]))]
    _, block = np.unique(homes.block[rows], return_inverse=True)
    keys, key = np.unique(homes.key[rows], return_inverse=True)
    # A pool: the households of one block with one key. They lie together; the pools of a key go by block.
    begin = np.flatnonzero(np.diff(block * len(keys) + key, prepend=-1))
    pool = np.repeat(np.arange(len(begin)), np.diff(begin, append=len(rows)))
    by_key = np.argsort(key[begin], kind="stable")
    first_of_key = np.searchsorted(key[begin][by_key], np.arange(len(keys) + 1))
    time = -np.log1p(-draws[rows, RACING]) / WEIGHTS[homes.tier[rows]]
    turn = np.lexsort((rows, time))
    asking = np.zeros(len(begin), np.bool_)
    asking[pool[turn[: 2 * wanted]]] = True  # about as far as it goes: half of these are partners before their turn
    place = np.ascontiguousarray(where[homes.block[rows[begin]]])
    found, asked = _in_turn(
        turn, pool, begin, key[begin], by_key, first_of_key, np.bincount(pool), np.bincount(key), place,
        *_neighbours(place, by_key, first_of_key, asking), draws[rows, PICKING], wanted, nearest,
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
