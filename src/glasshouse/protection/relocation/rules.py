"""Who may move where, and at what price? The nouns of relocation (paper 003): counts, rules, who is at risk, who moved.

A matrix counts people by combination of attributes (rows k) and place (columns i). An element from 1 to lambda is *at
risk*; its people may be moved, each with a chance theta_kij, to a place j that covers them and has room: in expectation
at most r_j people arrive there. Moving one person out of an element of c people protects w(c) and costs noise
1/c + 1/x_kj. So the noise is one part that only the source knows and one that only the target knows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from glasshouse.errors import GlasshouseBug, InputError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

NEARLY = 1e-10  # of a person: rounding, where capacities are no whole numbers


@dataclass(frozen=True, eq=False)
class Matrix:
    """How many people of each combination of attributes are in each place."""

    combinations: tuple[str, ...]
    places: tuple[str, ...]
    counts: Ints  # combinations x places

    def __post_init__(self) -> None:
        for kind, names in (("combination", self.combinations), ("place", self.places)):
            if len(set(names)) < len(names):
                twice = next(name for name in names if names.count(name) > 1)
                raise InputError(f"the {kind} '{twice}' is listed twice; each must appear once")
        counts = np.asarray(self.counts)
        if counts.shape != (len(self.combinations), len(self.places)):
            wanted = f"{len(self.combinations)} combinations x {len(self.places)} places"
            raise InputError(f"counts must have a row for each combination, {wanted}; found the shape {counts.shape}")
        if counts.dtype.kind not in "iu":
            bad = counts[counts != np.floor(counts)] if counts.dtype.kind == "f" else counts.ravel()
            if bad.size:
                raise InputError(f"counts are whole numbers of people; found {bad.flat[0]}")
        if np.any(counts < 0):
            raise InputError(f"counts cannot be negative; found {counts.min()}")
        object.__setattr__(self, "counts", counts.astype(np.int64))

    @property
    def cells(self) -> int:
        """m x n, zeros too: what noise and risks are averaged over."""
        return self.counts.size

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.combinations), len(self.places)

    @property
    def population(self) -> Ints:
        """People of each place."""
        return np.asarray(self.counts.sum(axis=0))


class Weight(StrEnum):
    """What moving one person out of an element of c people protects."""

    INVERSE_QUADRATIC = "inverse-quadratic"  # 1 / c^2, the paper's choice
    CONSTANT = "constant"
    INVERSE_LINEAR = "inverse-linear"
    INVERSE_CUBIC = "inverse-cubic"
    EXPONENTIAL = "inverse-exponential"

    def __call__(self, counts: Floats) -> Floats:
        return _WEIGHTS[self.value](counts)


_WEIGHTS: dict[str, Callable[[Floats], Floats]] = {
    "inverse-quadratic": lambda c: c**-2.0,
    "constant": lambda c: np.ones_like(c),
    "inverse-linear": lambda c: c**-1.0,
    "inverse-cubic": lambda c: c**-3.0,
    "inverse-exponential": lambda c: np.exp(-c),
}


class Coverage(StrEnum):
    """Which places j may receive people of an element (k, i), always another place with people of their row."""

    ROWWISE = "row-wise"  # those not at risk in that row: x_kj > lambda, as the paper's formula says
    RELAXED = "relaxed"  # also those with others at risk: x_kj > 0, as the paper's discussion allows


@dataclass(frozen=True, eq=False)
class Rules:
    """What a relocation must respect: who is at risk, how many may arrive, what counts how much, where one may go."""

    risk: int  # lambda: elements of 1 to lambda people are at risk
    capacity: Floats  # r_j: how many people may arrive in each place, in expectation; see `capacities`
    weight: Weight | Callable[[Floats], Floats] = Weight.INVERSE_QUADRATIC
    coverage: Coverage = Coverage.ROWWISE
    near: Any = None  # places x places, dense or sparse: j is near enough to i to receive its people; None: all are

    def __post_init__(self) -> None:
        if isinstance(self.risk, bool) or not isinstance(self.risk, (int, np.integer)) or self.risk < 0:
            raise InputError(f"lambda is a whole number from 0; found {self.risk}")
        capacity = np.asarray(self.capacity, np.float64)
        if capacity.ndim != 1 or not np.all(np.isfinite(capacity)) or np.any(capacity < 0):
            raise InputError("capacities are one finite number from 0 for each place; `capacities` makes them")
        object.__setattr__(self, "capacity", capacity)
        object.__setattr__(self, "coverage", Coverage(self.coverage))
        if self.near is not None:
            near = csr_array(self.near).astype(np.bool_)
            if near.shape != (len(capacity), len(capacity)):
                raise InputError(f"near needs a row and a column for each place; found the shape {near.shape}")
            near.sum_duplicates()
            near.eliminate_zeros()
            object.__setattr__(self, "near", near)

    def check(self, matrix: Matrix) -> None:
        """Refuse a matrix of other places."""
        if len(self.capacity) != len(matrix.places):
            wanted = f"{len(matrix.places)} places, {len(self.capacity)} capacities"
            raise InputError(f"every place needs a capacity; found {wanted}")

    def weights(self, counts: Ints) -> Floats:
        """w of elements of so many people."""
        found = np.asarray(self.weight(counts.astype(np.float64)), np.float64)
        if found.shape != counts.shape or not np.all(np.isfinite(found)) or np.any(found < 0):
            raise InputError("weights must be one finite number from 0 for each count")
        return found

    def receives(self, matrix: Matrix) -> Flags:
        """Elements that may receive people of their row, from places that are near and not the place itself."""
        least = self.risk if self.coverage is Coverage.ROWWISE else 0
        return np.asarray(matrix.counts > least)


def capacities(matrix: Matrix, each: ArrayLike | None = None, *, share: float | None = None) -> Floats:
    """Capacities from one number, from one for each place, or as a share of each place's population."""
    if (each is None) == (share is None):
        raise InputError("say either how many people may arrive, or which share of a place's population")
    if share is not None:
        return np.asarray(share * matrix.population, np.float64)
    given = np.asarray(each, np.float64)
    if given.shape not in ((), (len(matrix.places),)):
        raise InputError(f"give one capacity, or one for each of {len(matrix.places)} places; found {given.size}")
    return np.array(np.broadcast_to(given, (len(matrix.places),)))


@dataclass(frozen=True, eq=False)
class Groups:
    """The elements at risk, gathered so that those of a group may go to the same places at the same price.

    With the row-wise rule a group is a row: whoever is at risk there is no candidate, and all candidates are open to
    all. With the relaxed rule it is a row and a count: all may go to all, but not to themselves. So of the people of
    N elements of c, a place that is one of these can receive c(N - 1) (`own_limit`), and by Hall's theorem this is
    the only further limit: two such places together can be reached from all N. With `near`, each element is a group.
    """

    row: Ints  # of each element at risk; ordered by group, count, place
    place: Ints
    count: Ints
    group: Ints
    kind: Ints  # the number of its count among `counts`
    group_row: Ints
    own_count: Ints  # of each group: receiving elements of this count belong to the group (0: none do)
    own_limit: Floats
    cost: Floats  # groups x places: 1 / x_kj, or inf where j does not cover the group
    counts: Ints  # the distinct counts at risk
    weight: Floats  # w of those
    supply: Floats  # groups x counts: people

    @classmethod
    def of(cls, matrix: Matrix, rules: Rules) -> Groups:
        rules.check(matrix)
        row, place, count = at_risk(matrix, rules)
        counts, kind = np.unique(count, return_inverse=True)
        own = rules.near is None and rules.coverage is Coverage.RELAXED
        if rules.near is not None:
            key = row * matrix.shape[1] + place
        elif own:
            key = row * (rules.risk + 1) + count
        else:
            key = row
        _, first, group = np.unique(key, return_index=True, return_inverse=True)
        size = np.bincount(group, minlength=len(first))
        group_row = row[first]
        covered = rules.receives(matrix)[group_row]
        if rules.near is not None:
            covered &= rules.near[place[first]].toarray()
            covered[np.arange(len(first)), place[first]] = False
        with np.errstate(divide="ignore"):
            cost = np.where(covered, 1.0 / matrix.counts[group_row], np.inf)
        supply = np.zeros((len(first), len(counts)))
        np.add.at(supply, (group, kind), count)
        own_count = count[first] if own else np.zeros(len(first), np.int64)
        own_limit = (own_count * (size - 1)).astype(np.float64)
        order = np.lexsort((place, count, group))
        return cls(
            row[order], place[order], count[order], group[order], kind[order],
            group_row, own_count, own_limit, cost, counts, rules.weights(counts), supply,
        )  # fmt: skip

    def limits(self, matrix: Matrix) -> Floats:
        """groups x places: how many people of a group a place can receive, capacities apart."""
        own = (matrix.counts[self.group_row] == self.own_count[:, None]) & (self.own_count[:, None] > 0)
        return np.where(own, self.own_limit[:, None], np.inf)


def at_risk(matrix: Matrix, rules: Rules) -> tuple[Ints, Ints, Ints]:
    """The elements of 1 to lambda people: row, place and count, row by row."""
    row, place = np.nonzero((matrix.counts > 0) & (matrix.counts <= rules.risk))
    return row.astype(np.int64), place.astype(np.int64), matrix.counts[row, place]


@dataclass(frozen=True, eq=False)
class Relocation:
    """Chances to be moved: each person of combination k at the source goes to the target with chance `share`.

    Sparse: no row where the chance is 0. What an element's shares lack to 1 is the chance to stay.
    """

    combination: Ints
    source: Ints
    target: Ints
    share: Floats

    def __post_init__(self) -> None:
        sizes = {len(part) for part in (self.combination, self.source, self.target, self.share)}
        if len(sizes) > 1:
            raise InputError(f"a relocation has one combination, source, target and share in each row; found {sizes}")
        order = np.lexsort((self.target, self.source, self.combination))
        for name in ("combination", "source", "target", "share"):
            object.__setattr__(self, name, getattr(self, name)[order])
        if np.any(self.source == self.target):
            raise InputError("a relocation moves people to another place; a source is its own target")
        if np.any((self.share <= 0) | (self.share > 1)) or np.any(self.leaving > 1 + NEARLY):
            raise InputError("shares are chances above 0; those of one element sum to at most 1")

    def __len__(self) -> int:
        return len(self.share)

    @cached_property
    def element(self) -> Ints:
        """The number of the element (combination and source) of each row, from 0."""
        new = (np.diff(self.combination, prepend=-1) != 0) | (np.diff(self.source, prepend=-1) != 0)
        return np.cumsum(new, dtype=np.int64) - 1

    @cached_property
    def leaving(self) -> Floats:
        """The chance to leave, for the people of each element that has one."""
        sums = np.bincount(self.element, self.share)
        return np.asarray(np.where(np.abs(sums - 1) < NEARLY, 1.0, sums))

    @cached_property
    def first(self) -> Ints:
        """The first row of each element."""
        return np.flatnonzero(np.diff(self.element, prepend=-1)).astype(np.int64)

    def people(self, matrix: Matrix) -> Floats:
        """How many people each row moves, in expectation."""
        return np.asarray(self.share * matrix.counts[self.combination, self.source])


def staying(matrix: Matrix, relocation: Relocation) -> Floats:
    """theta_kii: the chance of each element's people to stay; 1 where nobody may leave."""
    stay = np.ones(matrix.shape)
    first = relocation.first
    stay[relocation.combination[first], relocation.source[first]] = 1 - relocation.leaving
    return stay


def expected(matrix: Matrix, relocation: Relocation) -> Floats:
    """Equation 13: how many people are expected in each element afterwards. An emptied element has exactly 0."""
    after = matrix.counts * staying(matrix, relocation)
    np.add.at(after, (relocation.combination, relocation.target), relocation.people(matrix))
    return after


def loads(matrix: Matrix, relocation: Relocation) -> Floats:
    """How many people are expected to arrive in each place."""
    return np.bincount(relocation.target, relocation.people(matrix), minlength=len(matrix.places)).astype(np.float64)


def protection(matrix: Matrix, weight: Weight | Callable[[Floats], Floats], relocation: Relocation) -> float:
    """P of equation 2, with t = 1 for whatever moves."""
    counts = matrix.counts[relocation.combination, relocation.source].astype(np.float64)
    return float(np.sum(np.asarray(weight(counts)) * relocation.people(matrix)))


def utility(matrix: Matrix, relocation: Relocation) -> float:
    """U of equations 4 to 6."""
    source = matrix.counts[relocation.combination, relocation.source]
    target = matrix.counts[relocation.combination, relocation.target]
    if np.any(source < 1) or np.any(target < 1):
        raise InputError("people move from and to elements that have people of their combination; one has none")
    noise = np.sum(relocation.people(matrix) * (1 / source + 1 / target))
    return 1 - float(noise) / max(matrix.cells, 1)


@dataclass(frozen=True, eq=False)
class Moves:
    """People moved whole: so many of a combination from a source to a target."""

    combination: Ints
    source: Ints
    target: Ints
    count: Ints

    def arrivals(self, places: int) -> Ints:
        """How many people arrive in each place."""
        arrived = np.zeros(places, np.int64)
        np.add.at(arrived, self.target, self.count)
        return arrived

    def excess(self, capacity: Floats) -> Floats:
        """How many more people arrive in each place than its capacity, which holds in expectation alone."""
        return np.asarray(np.maximum(self.arrivals(len(capacity)) - capacity, 0.0))


def moves(matrix: Matrix, relocation: Relocation, rng: np.random.Generator) -> Moves:
    """Draw for each person apart whether they move, and where to. Same generator, same moves.

    People of combination k in place i leave in the numbers drawn; which of them, is for whoever has their records.
    """
    first = relocation.first
    people = matrix.counts[relocation.combination[first], relocation.source[first]]
    of = np.repeat(np.arange(len(first)), people)
    draw = rng.random(len(of))
    total = np.cumsum(relocation.share)
    within = total - (total[first] - relocation.share[first])[relocation.element]  # cumulative, in each element
    within = np.minimum(within, relocation.leaving[relocation.element])
    last = np.append(first, len(relocation))[1:] - 1
    within[last] = relocation.leaving  # exactly, so that an emptied element is empty in every draw
    row = np.searchsorted(relocation.element + within, of + draw, side="right")
    moved = draw < relocation.leaving[of]
    row = np.clip(row[moved], first[of[moved]], last[of[moved]])  # where adding the number of the element rounded
    count = np.bincount(row, minlength=len(relocation)).astype(np.int64)
    some = count > 0
    return Moves(relocation.combination[some], relocation.source[some], relocation.target[some], count[some])


def sampled(matrix: Matrix, relocation: Relocation, rng: np.random.Generator) -> Matrix:
    """The matrix after one draw of `moves`; every combination keeps its total."""
    drawn = moves(matrix, relocation, rng)
    counts = matrix.counts.copy()
    np.subtract.at(counts, (drawn.combination, drawn.source), drawn.count)
    np.add.at(counts, (drawn.combination, drawn.target), drawn.count)
    if np.any(counts < 0):
        raise GlasshouseBug("more people were moved out of an element than it had")
    return Matrix(matrix.combinations, matrix.places, counts)
