"""Which households trade places? Swapping as the 2010 Census described it: like with like, rather those at risk.

Two households that agree on the number of persons and the number of adults exchange their places (paper 000). So the
persons, the adults and the households of each size of every place stay as counted; who they are does not. Every
household that is not entirely imputed has some chance, one at risk a higher one. Group quarters and vacant units are
never swapped: they are not among the households here. With equal chances this is random swapping at a given rate, the
plain form of what paper 004 does (it grades the chances in four steps, and takes partners from the five nearest).

All chance is in draws that belong to households (`Draws`). So the same draws give common random numbers to a file and
to the same file without a person: households of another area, or another number of persons or adults, trade places as
they did, and of those that agree on all this most do, too.

The Bureau never published its rates, what it took for a small place, or how far households may move. Here these are
parameters; their defaults are ours, for studies, and no estimate of the Bureau's.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from glasshouse.errors import InputError
from glasshouse.protection.swap.households import Flags, Floats, Ints, Swapped, numbered

_KINDS = {"Ints": np.int64, "Flags": np.bool_}

CHOOSING, REMAINING, DRAFTING, BREAKING, STEPS = range(5)  # the columns of draws; after these, one for each shuffle
SHUFFLES = 8  # times that chosen households are paired at random, two in three each time, before the few left over


@dataclass(frozen=True)
class Households:
    """The occupied households, a row each, without group quarters. A place lies in one area and in one `near`."""

    place: Ints
    area: Ints  # which a swap stays in; all 0 for no limit
    near: Ints  # which a swap leaves: the surroundings of the place, or the place itself
    key: Ints  # what pairs agree on, see `alike_key`
    risk: Flags
    fixed: Flags  # may not be swapped: entirely imputed

    def __post_init__(self) -> None:
        shapes = {field.name: np.shape(getattr(self, field.name)) for field in fields(self)}
        if len(set(shapes.values())) > 1 or self.place.ndim != 1:
            raise InputError(f"households need one row each in all columns; found the shapes {shapes}")
        for field in fields(self):
            wanted, found = np.dtype(_KINDS[str(field.type)]), getattr(self, field.name).dtype
            if found != wanted:
                raise InputError(f"the column '{field.name}' of the households must be {wanted}; found {found}")
        order = np.argsort(self.place, kind="stable")  # quick where rows go by place already
        same = np.diff(self.place[order]) == 0
        for name, around in (("area", self.area), ("near", self.near)):
            if np.any(same & (around[order[1:]] != around[order[:-1]])):
                raise InputError(f"a place of the households has two values of '{name}'; it must lie in one")

    def __len__(self) -> int:
        return len(self.place)


@dataclass(frozen=True)
class Draws:
    """All chance of a swap: a row for each household, even draws between 0 and 1, a column for each use of them."""

    table: Floats
    row: Ints  # of each household in the table, so that some of many need no copy

    def __post_init__(self) -> None:
        if self.table.ndim != 2 or self.table.dtype != np.float64 or self.table.shape[1] < STEPS:
            found = f"{self.table.dtype} of shape {self.table.shape}"
            raise InputError(f"draws are a row of float64 for each household, at least {STEPS} each; found {found}")

    @classmethod
    def of(cls, count: int, rng: np.random.Generator, shuffles: int = SHUFFLES) -> Draws:
        """Draws for so many households; the first of more households draw the same."""
        table = np.asfortranarray(rng.random((count, STEPS + shuffles)))  # one use after the other in memory
        return cls(table, np.arange(count))

    def __len__(self) -> int:
        return len(self.row)

    def some(self, rows: Ints) -> Draws:
        """Those of some households."""
        return Draws(self.table, self.row[rows])

    def of_use(self, use: int, rows: Ints | slice = slice(None)) -> Floats:
        """What households drew for one use: all of them, or some."""
        return np.asarray(self.table[self.row[rows], use])


@dataclass(frozen=True)
class Rates:
    """The chance that a household is chosen to be swapped: `risky` for one at risk, `base` for any other.

    Chosen households are paired with each other first. So about the share chosen moves, and never more than twice as
    many: where the chosen do not match, a partner is one that was not chosen. The defaults are ours.
    """

    base: float = 0.02
    risky: float = 0.10

    def __post_init__(self) -> None:
        if not 0 <= self.base <= self.risky <= 1:
            raise InputError(f"rates must be 0 <= base <= risky <= 1; found base {self.base}, risky {self.risky}")


def swap_by_rates(households: Households, rates: Rates, draws: Draws) -> Swapped:
    """Choose households by their risk, pair them, and exchange their places. Same rows, same draws: same swap.

    Pairs agree on area and key, and differ in `near`. Chosen ones are paired with chosen ones first, at random. Those
    left over take partners that were not chosen, those at risk before others. Where there are none, pairs are broken up
    to make two of one. So every pair has a chosen household, and of those alike at most one of the
    chosen stays behind who need not.

    Pairs depend on the households of the same area and key alone, and not on the order of rows.
    """
    if len(draws) != len(households):
        raise InputError(f"every household needs its draws; found {len(households)} households, {len(draws)} of draws")
    group, near = numbered(households.area, households.key), households.near
    chance = np.where(households.risk, rates.risky, rates.base)
    chosen = (draws.of_use(CHOOSING) < chance) & ~households.fixed
    idle = ~chosen & ~households.fixed
    partner = np.full(len(households), -1, np.int64)
    for use in range(STEPS, draws.table.shape[1]):
        rows = _ordered(chosen & (partner < 0), group, draws, use)
        _join(partner, near, *_nearest(rows, group, draws.of_use(use, rows)))
    rows = _ordered(chosen & (partner < 0), group, draws, REMAINING)
    _join(partner, near, *_opposites(rows, group, near))
    # Whoever of a group is left over is in one and the same `near` from here on.
    _draft(partner, households, group, chosen, idle, draws)
    _break_up(partner, households, group, chosen, idle, draws)
    return Swapped.of(households.place, partner, chosen)


def _ordered(some: Flags, group: Ints, draws: Draws, use: int, first: Flags | None = None) -> Ints:
    """The rows that are flagged, group by group; in each group by their draws, or those of `first` before others.

    Draws that are equal, if ever, go by their rows in the table, wherever the households are.
    """
    rows = np.flatnonzero(some)
    keys = (group[rows],) if first is None else (~first[rows], group[rows])
    return rows[np.lexsort((draws.row[rows], draws.of_use(use, rows), *keys))]


def _rank(group: Ints) -> tuple[Ints, Ints]:
    """The rank of each row in its group, and the size of that group; the rows of a group lie together."""
    begin = np.flatnonzero(np.diff(group, prepend=-1))
    size = np.diff(begin, append=len(group))
    return np.arange(len(group)) - np.repeat(begin, size), np.repeat(size, size)


def _nearest(rows: Ints, group: Ints, draw: Floats) -> tuple[Ints, Ints]:
    """In each group, ordered by `draw`, the rows of which each is the nearest to the other.

    Pairs counted off from the beginning would all be others if one row was taken away; these are, next to it only.
    """
    gap = np.where(np.diff(group[rows]) == 0, np.diff(draw), np.inf)
    around = np.concatenate([[np.inf], gap, [np.inf]])
    first = np.flatnonzero((gap < around[:-2]) & (gap <= around[2:]))
    return rows[first], rows[first + 1]


def _neighbours(rows: Ints, group: Ints) -> tuple[Ints, Ints]:
    """In each group the first row with the second, the third with the fourth, and so on."""
    rank, _ = _rank(group[rows])
    second = np.flatnonzero(rank % 2)
    return rows[second - 1], rows[second]


def _opposites(rows: Ints, group: Ints, near: Ints) -> tuple[Ints, Ints]:
    """In each group, sorted by `near`, each row with the one half a group on: as many pairs differ as can."""
    rows = rows[np.lexsort((near[rows], group[rows]))]
    rank, size = _rank(group[rows])
    half = (size + 1) // 2
    second = np.flatnonzero(rank >= half)
    return rows[second - half[second]], rows[second]


def _join(partner: Ints, near: Ints, left: Ints, right: Ints) -> None:
    """Make pairs of those that differ in `near`."""
    apart = near[left] != near[right]
    partner[left[apart]], partner[right[apart]] = right[apart], left[apart]


def _left_over(some: Flags, households: Households, group: Ints) -> tuple[Ints, Ints]:
    """How many of a household's group are flagged, and in which `near` they are (anything, where there are none)."""
    rows = np.flatnonzero(some)
    home = np.zeros(len(group), np.int64)
    home[group[rows]] = households.near[rows]
    return np.bincount(group[rows], minlength=len(group))[group], home[group]


def _same_rank(one: Ints, two: Ints, group: Ints) -> tuple[Ints, Ints]:
    """Where two lists of rows, each group by group, have a row of the same rank in the same group."""
    here, there = (group[rows] * len(group) + _rank(group[rows])[0] for rows in (one, two))
    _, first, second = np.intersect1d(here, there, assume_unique=True, return_indices=True)
    return first, second


def _draft(partner: Ints, households: Households, group: Ints, chosen: Flags, idle: Flags, draws: Draws) -> None:
    """Partners that were not chosen for those left over."""
    waiting = chosen & (partner < 0)
    if not np.any(waiting):
        return
    count, home = _left_over(waiting, households, group)
    asking = _ordered(waiting, group, draws, DRAFTING, first=households.risk)
    free = idle & (count > 0) & (households.near != home)
    # where those at risk are enough, the others, who are many, need not be ordered
    enough = np.bincount(group[free & households.risk], minlength=len(group))[group] >= count
    asked = _ordered(free & (households.risk | ~enough), group, draws, DRAFTING, first=households.risk)
    one, two = _same_rank(asking, asked, group)
    _join(partner, households.near, asking[one], asked[two])


def _break_up(partner: Ints, households: Households, group: Ints, chosen: Flags, idle: Flags, draws: Draws) -> None:
    """Where nobody elsewhere is free: two left over take the two of a pair elsewhere; an odd one brings a neighbour.

    After it, if anyone is still left over: all households elsewhere have a partner in its `near`, or nobody is free.
    """
    near, waiting = households.near, chosen & (partner < 0)
    if not np.any(waiting):
        return
    count, home = _left_over(waiting, households, group)
    neighbours = _ordered(idle & (partner < 0) & (count > 0), group, draws, BREAKING, first=households.risk)
    rank, _ = _rank(group[neighbours])
    # one neighbour comes last in each group, and so is alone where the number left over is even
    rows = np.concatenate([_ordered(waiting, group, draws, BREAKING, first=households.risk), neighbours[rank == 0]])
    one, other = _neighbours(rows[np.argsort(group[rows], kind="stable")], group)
    elsewhere = (count > 0) & (near != home)
    paired = _ordered((partner >= 0) & elsewhere & elsewhere[partner], group, draws, BREAKING)
    place = np.empty(len(group), np.int64)
    place[paired] = np.arange(len(paired))
    pair = paired[place[paired] < place[partner[paired]]]  # each pair once
    two, broken = _same_rank(one, pair, group)
    left, right = pair[broken], partner[pair[broken]]
    _join(partner, near, one[two], left)
    _join(partner, near, other[two], right)
