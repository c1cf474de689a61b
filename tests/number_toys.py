"""How far can every published number go, by an independent model? Random toys of linked tables, and two oracles.

A toy is how often each number counts each cell, and an interval for each number. Nothing here knows how the core ties
numbers to each other. Small toys are answered by writing down every histogram, others by one integer program on the
cells for each end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, optimize

from glasshouse.model.records import UNLIMITED
from tests.oracles import TooMany, listed

Ints = NDArray[np.int64]
Sums = tuple[tuple[int, tuple[int, ...]], ...]


@dataclass(frozen=True, eq=False)
class NumberToy:
    """How often each number counts each cell, between what each lies, and the counts that it was made from."""

    times: Ints  # numbers x cells
    lower: Ints
    upper: Ints
    truth: Ints | None = None  # None: some intervals were moved away from it
    sums: Sums = ()  # numbers that are the sums of others

    def narrowed(self, rng: np.random.Generator) -> NumberToy:
        """The toy with some intervals made narrower; the truth stays inside."""
        assert self.truth is not None
        exact = self.times @ self.truth
        lower, upper = self.lower.copy(), self.upper.copy()
        for number in np.flatnonzero(rng.random(len(lower)) < 0.4):
            lower[number] = rng.integers(max(lower[number], 0), exact[number] + 1)
            upper[number] = rng.integers(exact[number], min(upper[number], exact[number] + 6) + 1)
        return replace(self, lower=lower, upper=upper)

    def only(self, kept: Sequence[int] | Ints) -> NumberToy:
        """The toy of some of its numbers, in this order; one may come twice."""
        kept = np.array(kept, np.int64)
        return replace(self, times=self.times[kept], lower=self.lower[kept], upper=self.upper[kept], sums=())

    def with_cells(self, order: Ints) -> NumberToy:
        """The toy with its cells in another order."""
        return replace(self, times=self.times[:, order], truth=None if self.truth is None else self.truth[order])


class Answer(NamedTuple):
    """What an oracle says: can all numbers be true, and how far can each go?"""

    fits: bool
    low: Ints
    high: Ints


# Oracles


def endless(toy: NumberToy) -> NDArray[np.bool_]:
    """The cells that no number limits: those that only numbers without an upper end count, or none."""
    return np.asarray(~((toy.times > 0) & (toy.upper < UNLIMITED)[:, None]).any(axis=0))


def _caps(toy: NumberToy) -> Ints:
    """How much each cell can hold; of one without a limit, as much as could ever be asked for."""
    free = endless(toy)
    room = np.where(toy.times > 0, np.minimum(toy.upper, UNLIMITED)[:, None] // np.maximum(toy.times, 1), UNLIMITED)
    most = int(np.maximum(toy.lower, 0).max(initial=0))
    return np.asarray(np.where(free, most, room.min(axis=0, initial=UNLIMITED)))


def _open_ended(toy: NumberToy, high: Ints) -> Ints:
    """Numbers that count a cell without a limit have none themselves."""
    return np.asarray(np.where((toy.times[:, endless(toy)] > 0).any(axis=1), UNLIMITED, high))


def by_listing(toy: NumberToy) -> Answer:
    """Every histogram, one by one; TooMany where that takes too long."""
    caps = _caps(toy).tolist()
    limits = [
        (tuple(np.repeat(np.arange(len(caps)), row).tolist()), int(low), int(high))
        for row, low, high in zip(toy.times, toy.lower, toy.upper, strict=True)
    ]
    limits += [((cell,), 0, cap) for cell, cap in enumerate(caps)]
    every = listed(len(caps), limits) @ toy.times.T
    if not len(every):
        return Answer(False, toy.lower, toy.upper)
    return Answer(True, every.min(axis=0), _open_ended(toy, every.max(axis=0)))


def by_programs(toy: NumberToy, *, whole: bool = True) -> Answer:
    """An integer program on the cells for each end of each number; without `whole`, of fractions."""
    numbers, cells = toy.times.shape
    if not cells:
        fits = bool((toy.lower <= 0).all() and (toy.upper >= 0).all())
        return Answer(fits, np.zeros(numbers, np.int64), np.zeros(numbers, np.int64))
    above = np.where(toy.upper >= UNLIMITED, np.inf, toy.upper)
    rows = optimize.LinearConstraint(toy.times, toy.lower, above) if numbers else ()
    low, high = np.zeros(numbers, np.int64), np.zeros(numbers, np.int64)
    for number, (sign, ends) in product(range(max(numbers, 1)), ((1, low), (-1, high))):
        cost = sign * toy.times[number] if numbers else np.zeros(cells)
        found = optimize.milp(
            cost, integrality=np.full(cells, int(whole)), bounds=optimize.Bounds(0, _caps(toy)), constraints=rows,
            options={"mip_rel_gap": 0},
        )  # fmt: skip
        assert found.status in (0, 2), found.message
        if found.status == 2:
            return Answer(False, toy.lower, toy.upper)
        if numbers:
            end = int(cost @ np.rint(found.x)) if whole else int(np.ceil(found.fun - 1e-6))
            ends[number] = sign * end
    return Answer(True, low, _open_ended(toy, high))


def answer(toy: NumberToy) -> Answer:
    """By brute force where that is quick, otherwise by integer programs."""
    try:
        return by_listing(toy)
    except TooMany:
        return by_programs(toy)


# Toys


@dataclass
class _Tables:
    """Tables as they are drawn: masks of cells, and which lines are sums."""

    rng: np.random.Generator
    kinds: Ints  # the level of each cell in each attribute
    times: list[Ints] = field(default_factory=list)
    sums: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)

    def line(self, times: Ints | NDArray[np.bool_]) -> int:
        self.times.append(times.astype(np.int64))
        return len(self.times) - 1

    def recode(self, attribute: int) -> list[list[set[int]]]:
        """The levels of an attribute, and ever coarser groups of them."""
        groups = [{level} for level in range(int(self.kinds[:, attribute].max(initial=0)) + 1)]
        result = [groups]
        while len(groups) > 1:
            into = self.rng.integers(0, max(1, len(groups) - 1), len(groups))
            parts = [[group for group, to in zip(groups, into, strict=True) if to == one] for one in np.unique(into)]
            groups = [set[int]().union(*some) for some in parts]
            result.append(groups)
        return result

    def table(self) -> None:
        """Every line of a table by some attributes, at some of the depths of their recodes."""
        attributes = self.rng.permutation(self.kinds.shape[1])[: self.rng.integers(1, self.kinds.shape[1] + 1)]
        depths = []
        for attribute in attributes.tolist():
            recode = self.recode(attribute)
            depths.append([
                [np.isin(self.kinds[:, attribute], list(group)) for group in level]
                for level in recode
                if self.rng.random() < 0.6 or level is recode[-1]
            ])  # fmt: skip
        for chosen in product(*depths):
            for masks in product(*chosen):
                self.line(np.logical_and.reduce(masks))

    def tally(self) -> None:
        """Groups that overlap, and the sum of them all: it counts some cells several times."""
        attribute = int(self.rng.integers(self.kinds.shape[1]))
        levels = int(self.kinds[:, attribute].max(initial=0)) + 1
        groups = [np.flatnonzero(self.rng.random(levels) < 0.6) for _ in range(self.rng.integers(2, 4))]
        lines = [self.line(np.isin(self.kinds[:, attribute], group)) for group in groups]
        total = self.line(np.sum([self.times[line] for line in lines], axis=0))
        if self.rng.random() < 0.7:
            self.sums.append((total, tuple(lines)))

    def weights(self) -> None:
        """A number that counts cells any number of times, or none at all."""
        self.line(self.rng.integers(0, 4, len(self.kinds)) * (self.rng.random(len(self.kinds)) < 0.5))

    def margins(self) -> None:
        """All margins of all attributes but one: whole counts and fractions differ most there."""
        width = self.kinds.shape[1]
        for left_out in range(width):
            others = [column for column in range(width) if column != left_out]
            for levels in np.unique(self.kinds[:, others], axis=0):
                self.line((self.kinds[:, others] == levels).all(axis=1))


def _published(rng: np.random.Generator, exact: Ints, share: float) -> tuple[Ints, Ints]:
    """Intervals around exact numbers, each by one of the ways of the offices; a `share` is printed as it is."""
    lower, upper = exact.copy(), exact.copy()
    base, under, way = int(rng.choice([3, 5])), int(rng.integers(2, 6)), int(rng.integers(6))
    for at, value in enumerate(exact.tolist()):
        how = way if way < 5 else int(rng.integers(5))
        if rng.random() < share:
            continue
        if how == 0:  # rounded to the nearest multiple
            middle = base * ((value + base // 2) // base)
            lower[at], upper[at] = middle - base // 2, middle + base // 2
        elif how == 1:  # rounded up or down by chance
            printed = value if value % base == 0 else base * (value // base + int(rng.integers(2)))
            lower[at], upper[at] = printed - base + 1, printed + base - 1
        elif how == 2 and value < under:  # suppressed, zeros too or not
            lower[at], upper[at] = int(value > 0 and rng.random() < 0.5), under - 1
        elif how == 3:  # changed by its cells' key
            noise = int(rng.integers(-2, 3))
            lower[at], upper[at] = value + noise - 2, value + noise + 2
        elif how == 4:  # not printed, or only said to be there
            lower[at], upper[at] = int(value > 0 and rng.random() < 0.3), UNLIMITED
    return lower, upper


def number_toy(seed: int) -> NumberToy:
    """The toy of a seed."""
    rng = np.random.default_rng([seed, 24])
    sizes = rng.integers(2, 5, rng.integers(1, 4))
    while sizes.prod() > 36:
        sizes[sizes.argmax()] -= 1
    kinds = np.array(list(product(*(range(size) for size in sizes))), np.int64)
    if rng.random() < 0.4:
        kinds = kinds[rng.random(len(kinds)) < 0.8]
    tables = _Tables(rng, kinds)
    if len(sizes) == 3 and rng.random() < 0.3:
        tables.margins()
    else:
        for _ in range(rng.integers(1, 4)):
            tables.table()
    if rng.random() < 0.3:
        tables.tally()
    while rng.random() < 0.3:
        tables.weights()
    times = np.array(tables.times, np.int64).reshape(len(tables.times), len(kinds))
    sums: Sums = tuple(tables.sums)
    while not sums and len(times) > 45:
        times = times[rng.random(len(times)) < 0.8]
    truth = np.minimum(rng.poisson(rng.choice([0.3, 1.0, 3.0]), len(kinds)), 1 if rng.random() < 0.3 else 9)
    lower, upper = _published(rng, times @ truth, rng.choice([0.0, 0.3, 0.7]))
    toy = NumberToy(times, lower, upper, truth.astype(np.int64), sums)
    return _moved(rng, toy) if rng.random() < 0.25 and len(times) else toy


def _moved(rng: np.random.Generator, toy: NumberToy) -> NumberToy:
    """The toy with an interval or two moved: often nothing fits any longer."""
    lower, upper = toy.lower.copy(), toy.upper.copy()
    for number in rng.integers(0, len(lower), rng.integers(1, 3)):
        by = int(rng.choice([-2, -1, 1, 2]))
        lower[number] = max(0, lower[number] + by)
        upper[number] = upper[number] if upper[number] >= UNLIMITED else max(0, upper[number] + by)
    return replace(toy, lower=lower, upper=upper, truth=None)


def number_toys(count: int, first: int = 0) -> Iterator[NumberToy]:
    """So many toys, the same ones every time."""
    return (number_toy(seed) for seed in range(first, first + count))


def odd_toy(seed: int) -> NumberToy:
    """A toy in which fractions often go further than whole counts.

    Either all margins of three attributes, with cells that cannot be; or neighbours in rings of odd length, and totals.
    Sums of some cells are not printed, and of single cells it is known at times that they are at most 1.
    """
    rng = np.random.default_rng([seed, 3])
    if seed % 2:
        kinds = np.array(list(product(range(3), range(3), range(int(rng.integers(3, 5))))), np.int64)
        tables = _Tables(rng, kinds[rng.random(len(kinds)) < 0.7])
        tables.margins()
        printed = np.array(tables.times)
    else:
        rings = [np.eye(size, dtype=np.int64) for size in rng.choice([3, 3, 5, 7], rng.integers(2, 4))]
        printed = np.asarray(linalg.block_diag(*(ring + np.roll(ring, 1, axis=1) for ring in rings)))
    cells = printed.shape[1]
    truth = rng.integers(0, 2, (cells,))
    exact = printed @ truth
    wide = rng.random(len(exact)) < rng.choice([0.3, 0.6, 0.9])
    sums = [np.ones((1, cells), np.int64), rng.integers(0, 2, (3, cells)), np.eye(cells, dtype=np.int64)]
    hidden = np.concatenate(sums)
    most = np.full(len(hidden), UNLIMITED)
    most[-cells:] = np.where(rng.random(cells) < rng.choice([0, 1]), 1, UNLIMITED)
    return NumberToy(
        np.concatenate([printed, hidden]),
        np.concatenate([exact - wide * rng.integers(0, 2, len(exact)), np.zeros(len(hidden), np.int64)]),
        np.concatenate([exact + wide * rng.integers(0, 2, len(exact)), most]),
        truth,
    )
