"""What fits, by brute force? Random toys small enough to write down every histogram, and a plain recursion that does.

Nothing here knows the core: lines of tables are masks over the possible records, made in plain Python, and the
histograms that satisfy every published line are found one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import combinations, count, product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glasshouse.model.records import UNLIMITED, Records
from glasshouse.model.release import Counts, Table, build_table
from glasshouse.model.schema import EVERYONE, Attribute, Group, Impossible, Predicate, Reading, Recode, Schema
from glasshouse.model.tabulate import tabulate
from glasshouse.model.wording import Clause, Noun, Wording

Ints = NDArray[np.int64]
Limits = tuple[tuple[int, ...], int, int]  # these variables (some more than once) add up to between two numbers

MOST = 4000  # histograms of a program; toys with more are rejected
NODES = 60_000  # steps of the recursion before a toy is rejected


class TooMany(Exception):  # noqa: N818  # not an error: the toy is too large, take another
    """More histograms than we care to write down, or endlessly many."""


def satisfied(schema: Schema, kind: Sequence[int], predicate: Predicate) -> bool:
    """Does a record satisfy a predicate? One attribute after the other."""
    return all(kind[schema.position[name]] in levels for name, levels in predicate.sets)


def kinds_of(schema: Schema) -> Ints:
    """Every possible record."""
    every = product(*(range(len(attribute)) for attribute in schema.attributes))
    possible = [k for k in every if not any(satisfied(schema, k, zero.predicate) for zero in schema.impossible)]
    return np.array(possible, np.int64).reshape(-1, len(schema.attributes))


def mask_of(schema: Schema, kinds: Ints, predicate: Predicate) -> NDArray[np.bool_]:
    return np.array([satisfied(schema, kind, predicate) for kind in kinds.tolist()], np.bool_).reshape(len(kinds))


def listed(variables: int, limits: Sequence[Limits], *, enough: int = UNLIMITED) -> Ints:
    """Every whole vector that keeps to the limits (and is nowhere negative), by recursion; or the first few."""
    if any(low > high or (not inside and low > 0) or high < 0 for inside, low, high in limits):
        return np.empty((0, variables), np.int64)
    of = [[(i, inside.count(v)) for i, (inside, _, _) in enumerate(limits) if v in inside] for v in range(variables)]
    if any(all(limits[number][2] >= UNLIMITED for number, _ in numbers) for numbers in of):
        raise TooMany("a variable without a limit")
    due = [[(i, times) for i, times in numbers if max(limits[i][0]) == v] for v, numbers in enumerate(of)]
    need, room = [low for _, low, _ in limits], [high for _, _, high in limits]
    found: list[tuple[int, ...]] = []
    x = [0] * variables
    steps = 0

    def go(v: int) -> None:
        nonlocal steps
        steps += 1
        if len(found) >= enough:
            return
        if steps > NODES or len(found) > MOST:
            raise TooMany("too many histograms")
        if v == variables:
            found.append(tuple(x))
            return
        top = min(room[number] // times for number, times in of[v])
        for value in range(top + 1):
            x[v] = value
            if all(need[number] <= value * times for number, times in due[v]):
                for number, times in of[v]:
                    room[number] -= value * times
                    need[number] -= value * times
                go(v + 1)
                for number, times in of[v]:
                    room[number] += value * times
                    need[number] += value * times
        x[v] = 0

    go(0)
    return np.array(found, np.int64).reshape(len(found), variables)


def satisfiable(variables: int, limits: Sequence[Limits]) -> bool:
    """Is there any such vector? Exact also where variables are unlimited.

    Variables in the same sums are as good as one. One without a limit from above only ever helps: it may as well be
    as large as the largest number asked for.
    """
    sums = [
        frozenset((i, inside.count(v)) for i, (inside, _, _) in enumerate(limits) if v in inside)
        for v in range(variables)
    ]
    endless = {some for some in sums if all(limits[number][2] >= UNLIMITED for number, _ in some)}
    kept = sorted(set(sums) - endless, key=len, reverse=True)
    helped = {
        number for some in endless for number, _ in some
    }  # these have no upper limit, and any lower one can be met
    rest = []
    for number, (_, low, high) in enumerate(limits):
        inside = tuple(v for v, some in enumerate(kept) for i, times in some if i == number for _ in range(times))
        rest.append((inside, 0 if number in helped and low <= high else low, high))
    return len(listed(len(kept), rest, enough=1)) > 0


@dataclass(frozen=True, eq=False)
class Toy:
    """A release small enough for brute force: tables and counts of places, perhaps of areas around them."""

    schema: Schema
    tables: tuple[Table, ...]
    counts: Counts
    truth: Ints  # places x kinds
    around: tuple[Table, ...] = ()
    area: Counts | None = None
    of: Ints | None = None  # the area of each place
    seed: int = 0

    @cached_property
    def kinds(self) -> Ints:
        return kinds_of(self.schema)

    def masks(self, tables: Sequence[Table], counts: Counts) -> dict[str, tuple[int, ...]]:
        """The kinds that each published line counts; the total of a tally counts a kind once for every answer."""
        result = {}
        for table in tables:
            inside: dict[int, tuple[int, ...]] = {}
            for line in reversed(table.lines):  # parts stand below
                if line.predicate is not None:
                    inside[line.number] = tuple(
                        np.flatnonzero(mask_of(self.schema, self.kinds, line.predicate)).tolist()
                    )
                else:
                    inside[line.number] = tuple(kind for part in line.parts for kind in inside[part])
                if line.variable in counts.column:
                    result[line.variable] = inside[line.number]
        return result

    @cached_property
    def own_masks(self) -> dict[str, tuple[int, ...]]:
        return self.masks(self.tables, self.counts)

    @cached_property
    def around_masks(self) -> dict[str, tuple[int, ...]]:
        return {} if self.area is None else self.masks(self.around, self.area)

    def own_limits(self, place: int) -> list[Limits]:
        row = self.counts.lower[place].tolist(), self.counts.upper[place].tolist()
        at = self.counts.column
        return [(inside, row[0][at[name]], row[1][at[name]]) for name, inside in self.own_masks.items()]

    def capped_limits(self, place: int) -> list[Limits]:
        """The limits of a place alone, with the numbers of its area as limits from above."""
        limits = self.own_limits(place)
        if self.area is not None and self.of is not None:
            upper = self.area.upper[self.of[place]].tolist()
            limits += [(inside, 0, upper[self.area.column[name]]) for name, inside in self.around_masks.items()]
        return limits

    def joint_limits(self, area: int) -> tuple[int, list[Limits]]:
        """The limits of all places of an area, over places x kinds."""
        assert self.area is not None and self.of is not None
        places, n = np.flatnonzero(self.of == area).tolist(), len(self.kinds)
        limits = [
            (tuple(number * n + v for v in inside), low, high)
            for number, place in enumerate(places)
            for inside, low, high in self.own_limits(place)
        ]
        lower, upper, at = self.area.lower[area].tolist(), self.area.upper[area].tolist(), self.area.column
        limits += [
            (tuple(number * n + v for number in range(len(places)) for v in inside), lower[at[name]], upper[at[name]])
            for name, inside in self.around_masks.items()
        ]
        return len(places) * n, limits

    @cached_property
    def alone(self) -> tuple[Ints, ...]:
        """For each place every histogram over kinds that fits its own tables."""
        return tuple(listed(len(self.kinds), self.own_limits(place)) for place in range(len(self.counts.places)))

    @cached_property
    def capped(self) -> tuple[Ints, ...]:
        return tuple(listed(len(self.kinds), self.capped_limits(place)) for place in range(len(self.counts.places)))

    @cached_property
    def jointly(self) -> tuple[Ints, ...]:
        """For each area every histogram over places x kinds that fits."""
        assert self.area is not None
        return tuple(listed(*self.joint_limits(area)) for area in range(len(self.area.places)))


# Random toys


def attribute(name: str, levels: int) -> Attribute:
    labels = tuple(f"{name}{level}" for level in range(levels))
    return Attribute(name, labels, (Reading((name,), tuple(((label,),) for label in labels)),))


def random_schema(rng: np.random.Generator, most: int = 12) -> Schema:
    while True:
        sizes = rng.integers(2, 5, rng.choice(3, p=[0.2, 0.4, 0.4]) + 1).tolist()
        if np.prod(sizes) > most:
            continue
        plain = Schema(tuple(attribute("abc"[i], size) for i, size in enumerate(sizes)))
        if rng.random() < 0.7:
            return plain
        zeros = tuple(Impossible(random_predicate(rng, plain), "so it is") for _ in range(rng.integers(1, 3)))
        schema = Schema(plain.attributes, tuple(zero for zero in zeros if zero.predicate.sets))
        if len(kinds_of(schema)):
            return schema


def random_predicate(rng: np.random.Generator, schema: Schema, *, empty: bool = False) -> Predicate:
    sets = {}
    for one in schema.attributes:
        if rng.random() < 0.6:
            chosen = np.flatnonzero(rng.random(len(one)) < 0.5).tolist()
            if chosen or empty:
                sets[one.name] = chosen
    return schema.where(sets)


def random_groups(rng: np.random.Generator, levels: list[int], label: str, *, deep: bool = True) -> tuple[Group, ...]:
    """A random partition of levels, some groups divided further."""
    name = rng.integers(0, len(levels), len(levels))
    groups = []
    for number in np.unique(name).tolist():
        inside = [level for level, of in zip(levels, name.tolist(), strict=True) if of == number]
        parts: tuple[Group, ...] = ()
        if deep and len(inside) > 1 and rng.random() < 0.4:
            parts = random_groups(rng, inside, f"{label}{number}.", deep=False)
        groups.append(Group(f"{label}{number}", frozenset(inside), parts))
    return tuple(groups)


def random_recode(rng: np.random.Generator, one: Attribute, name: str, *, tally: bool = False) -> Recode:
    if tally:
        sets = [np.flatnonzero(rng.random(len(one)) < 0.5).tolist() for _ in range(rng.integers(1, 4))]
        groups = tuple(Group(f"{name}{i}", frozenset(some)) for i, some in enumerate(sets) if some)
        if groups:
            return Recode(name, one.name, groups, tally=True)
    return Recode(name, one.name, random_groups(rng, list(range(len(one))), name))


def random_table(rng: np.random.Generator, schema: Schema, name: str, level: str) -> Table:
    order = rng.permutation(len(schema.attributes))[: rng.integers(0, len(schema.attributes) + 1)]
    by = [
        random_recode(rng, schema.attributes[i], f"{name}{schema.attributes[i].name}", tally=rng.random() < 0.2)
        for i in order.tolist()
    ]
    universe = random_predicate(rng, schema) if rng.random() < 0.3 else EVERYONE
    undivided = [by[0].leaves[0].label] if len(by) > 1 and rng.random() < 0.2 else []

    def build(also: Sequence[int]) -> Table:
        return build_table(
            schema, name=name, level=level, title=name, by=by, variable=lambda number: f"{name}_{number}",
            universe=universe, undivided=undivided, also=also,
        )  # fmt: skip

    subtotals = [line.number for line in build(()).subtotals]
    return build([number for number in subtotals if rng.random() < 0.4])


def total_table(schema: Schema, level: str, name: str = "T0") -> Table:
    return build_table(schema, name=name, level=level, title=name, by=[], variable=lambda number: f"{name}_{number}")


def records_of(schema: Schema, histogram: Ints, places: Sequence[str]) -> Records:
    """The records of a histogram over places x kinds, one by one."""
    kinds = kinds_of(schema)
    place, kind = np.nonzero(histogram)
    times = histogram[place, kind]
    return Records(
        schema,
        tuple(places),
        np.repeat(place, times).astype(np.int32),
        np.repeat(kinds[kind], times, axis=0).astype(np.int16).reshape(-1, len(schema.attributes)),
    )


def thinned(rng: np.random.Generator, counts: Counts, share: float) -> Counts:
    """The counts without some of the variables."""
    kept = [i for i, name in enumerate(counts.variables) if name.startswith("T0") or rng.random() >= share]
    if not kept:
        return counts
    names = tuple(counts.variables[i] for i in kept)
    return Counts(counts.level, counts.places, names, counts.lower[:, kept], counts.upper[:, kept])


def widened(rng: np.random.Generator, counts: Counts) -> Counts:
    """Counts as intervals: rounded, suppressed, or 'at least'. A total keeps an upper end."""
    lower, upper = counts.lower.copy(), counts.upper.copy()
    for place, column in np.ndindex(lower.shape):
        draw = rng.random()
        total = counts.variables[column].startswith("T0")
        if draw < 0.45:
            lower[place, column] = lower[place, column] - rng.integers(0, 3)  # may be below 0: that says nothing
            upper[place, column] += rng.integers(0, 2 if total else 3)
        elif draw < 0.55 and not total:
            upper[place, column] = UNLIMITED
        elif draw < 0.65 and not total:
            lower[place, column], upper[place, column] = 0, UNLIMITED
    return Counts(counts.level, counts.places, counts.variables, lower, upper)


def random_toy(rng: np.random.Generator, seed: int, *, intervals: bool, areas: bool) -> Toy:
    schema = random_schema(rng, 8 if areas else 16)
    kinds = kinds_of(schema)
    places = tuple(f"p{i}" for i in range(rng.integers(1, 4)))
    people = 4 if areas else 8
    truth = np.stack([
        np.bincount(rng.integers(0, len(kinds), rng.integers(0, people)), minlength=len(kinds)) for _ in places
    ]).astype(np.int64)  # fmt: skip
    tables = [random_table(rng, schema, f"T{i + 1}", "block") for i in range(rng.integers(1, 5))]
    if intervals or rng.random() < 0.3:
        tables = [total_table(schema, "block"), *tables[:3]]
    counts = tabulate(records_of(schema, truth, places), tables, "block")
    if rng.random() < 0.3:
        counts = thinned(rng, counts, 0.25)
    if intervals:
        counts = widened(rng, counts)
    if not areas:
        return Toy(schema, tuple(tables), counts, truth, seed=seed)
    of = np.sort(rng.integers(0, 2, len(places))).astype(np.int64) if rng.random() < 0.5 else np.zeros(len(places), int)
    of = np.unique(of, return_inverse=True)[1].astype(np.int64)
    around = [random_table(rng, schema, f"A{i + 1}", "area") for i in range(rng.integers(1, 3))]
    names = tuple(f"area{i}" for i in range(int(of.max()) + 1))
    sums = np.zeros((len(names), len(kinds)), np.int64)
    np.add.at(sums, of, truth)
    area = tabulate(records_of(schema, sums, names), around, "area")
    if rng.random() < 0.3:
        area = thinned(rng, area, 0.25)
    if rng.random() < 0.4:
        area = widened(rng, area)
    return Toy(schema, tuple(tables), counts, truth, tuple(around), area, of, seed)


def toys(sort: str, count: int, first: int = 0) -> Iterator[Toy]:
    """So many toys of a sort, the same ones every time.

    Something fits: exact, interval, tallied (exact, but the total is open), joint. Nothing fits: contradictory,
    fractional, broken (jointly).
    """
    found, seed = 0, first * 100_000
    while found < count:
        toy = _toy(sort, seed)
        seed += 1
        if toy is not None:
            found += 1
            yield toy


@cache
def _toy(sort: str, seed: int) -> Toy | None:
    """The toy of a seed; None when it is too large, or not of that sort after all."""
    rng = np.random.default_rng([seed, sum(sort.encode())])
    try:
        if sort == "fractional":
            return fractional(rng, seed)
        if sort == "tallied":
            return tallied(rng, seed)
        intervals = sort == "interval" or (sort != "exact" and rng.random() < 0.3)
        areas = sort in ("joint", "broken")
        toy = random_toy(rng, seed, intervals=intervals, areas=areas)
        if sort == "contradictory":
            return spoilt(rng, toy)
        if sort == "broken":
            return spoilt_area(rng, toy)
        assert all(len(solutions) for solutions in toy.alone)
        if sort == "joint":
            assert all(len(solutions) for solutions in toy.jointly)
            assert all(len(solutions) for solutions in toy.capped)
        return toy
    except TooMany:
        return None


def spoilt(rng: np.random.Generator, toy: Toy) -> Toy | None:
    """The toy with one place left and a number or two changed so that nothing fits; None when that fails."""
    place = int(rng.integers(0, len(toy.counts.places)))
    counts = Counts("block", ("p0",), toy.counts.variables, toy.counts.lower[[place]], toy.counts.upper[[place]])
    for _ in range(4):
        lower, upper = counts.lower.copy(), counts.upper.copy()
        column = int(rng.integers(0, len(counts.variables)))
        change = int(rng.choice([-2, -1, 1, 2]))
        lower[0, column] += change
        if upper[0, column] < UNLIMITED:
            upper[0, column] += change
        counts = replace(counts, lower=lower, upper=upper)
        changed = replace(toy, counts=counts, truth=toy.truth[[place]])
        if not len(changed.alone[0]):
            return changed
    return None


def spoilt_area(rng: np.random.Generator, toy: Toy) -> Toy | None:
    """The toy with one area left, in which places fit but not jointly; None when that fails."""
    assert toy.area is not None and toy.of is not None
    inside = np.flatnonzero(toy.of == 0)
    own = Counts(
        "block",
        tuple(f"p{i}" for i in range(len(inside))),
        toy.counts.variables,
        toy.counts.lower[inside],
        toy.counts.upper[inside],
    )
    area = toy.area
    for _ in range(4):
        lower, upper = area.lower[[0]].copy(), area.upper[[0]].copy()
        column = int(rng.integers(0, len(area.variables)))
        change = int(rng.choice([-2, -1, 1, 2]))
        lower[0, column] += change
        if upper[0, column] < UNLIMITED:
            upper[0, column] += change
        area = Counts("area", ("area0",), area.variables, lower, upper)
        changed = replace(toy, counts=own, truth=toy.truth[inside], area=area, of=np.zeros(len(inside), np.int64))
        if not len(changed.jointly[0]):
            return changed
    return None


def fractional(rng: np.random.Generator, seed: int) -> Toy | None:
    """Nothing whole fits, but fractions do: pairs of three levels are counted, and the counts have an odd sum."""
    second = bool(rng.random() < 0.5)
    schema = Schema((attribute("a", 3), attribute("b", 2)) if second else (attribute("a", 3),))
    pairs = Recode("pairs", "a", tuple(Group(f"not{i}", frozenset({0, 1, 2} - {i})) for i in range(3)), tally=True)
    tables = [
        build_table(schema, name="T1", level="block", title="pairs", by=[pairs], variable=lambda n: f"T1_{n}"),
        total_table(schema, "block"),
    ]
    base = int(rng.integers(0, 3))
    numbers = base + rng.integers(0, 2, 3)
    if numbers.sum() % 2 == 0:
        numbers[int(rng.integers(0, 3))] += 1
    if numbers.max() > numbers.sum() - numbers.max():
        return None
    columns = [*tables[0].variables, "T0_1"]
    least, most = numbers.sum() // 2, numbers.sum() // 2 + 1 + rng.integers(0, 2)
    lower, upper = np.array([[*numbers, least - rng.integers(0, 2)]]), np.array([[*numbers, most]])
    if second:
        split = build_table(
            schema, name="T2", level="block", title="b", variable=lambda n: f"T2_{n}",
            by=[Recode("b", "b", (Group("b0", frozenset({0})), Group("b1", frozenset({1}))))],
        )  # fmt: skip
        tables.append(split)
        columns += split.variables
        lower = np.concatenate([lower, np.zeros((1, 2), np.int64)], axis=1)
        upper = np.concatenate([upper, np.full((1, 2), most)], axis=1)
    counts = Counts("block", ("p0",), tuple(columns), lower.astype(np.int64), upper.astype(np.int64))
    toy = Toy(schema, tuple(tables), counts, np.zeros((1, len(kinds_of(schema))), np.int64), seed=seed)
    return None if len(toy.alone[0]) else toy


def tallied(rng: np.random.Generator, seed: int) -> Toy | None:
    """Exact numbers that leave the total open: level 0 is counted together with each of the others."""
    levels = int(rng.integers(3, 5))
    second = bool(rng.random() < 0.5)
    schema = Schema((attribute("a", levels), attribute("b", 2)) if second else (attribute("a", levels),))
    groups = tuple(Group(f"with{i}", frozenset({0, i})) for i in range(1, levels))
    recodes = [Recode("with", "a", groups, tally=True)]
    if second:
        recodes.append(random_recode(rng, schema.attributes[1], "b"))
    also = [1] if rng.random() < 0.3 else []
    table = build_table(
        schema, name="T1", level="block", title="with", by=recodes, variable=lambda n: f"T1_{n}", also=also
    )
    kinds = kinds_of(schema)
    places = ("p0", "p1")
    truth = np.stack([rng.multinomial(rng.integers(1, 6), np.full(len(kinds), 1 / len(kinds))) for _ in places])
    counts = tabulate(records_of(schema, truth.astype(np.int64), places), [table], "block")
    toy = Toy(schema, (table,), counts, truth.astype(np.int64), seed=seed)
    return toy if any(np.ptp(solutions.sum(axis=1)) for solutions in toy.alone) else None


# What is certain, by brute force


@dataclass(frozen=True, eq=False)
class Known:
    """Every data set that fits a place, over the kinds of record that can occur in it.

    Kinds that no number, no word and no report tells apart stand as one. A kind that no number limits is held down to
    what the numbers ask for: more of it always fits, so the least of a count is not changed by that, and the most of
    any count that has to do with such a kind is endless.
    """

    values: Ints  # kinds x columns: the value that a claim says
    apart: NDArray[np.bool_]
    endless: NDArray[np.bool_]
    data: Ints  # data sets x kinds
    looked_at: NDArray[np.bool_]  # of each column: does a line of some table depend on it?

    def range(self, chosen: NDArray[np.bool_]) -> tuple[int, int]:
        """The least and the most that these kinds hold together."""
        sums = self.data @ chosen
        return int(sums.min()), UNLIMITED if (chosen & self.endless).any() else int(sums.max())

    def of(self, description: Sequence[int]) -> tuple[int, int]:
        """The least and the most records that match a description."""
        return self.range(matching(self.values, description))

    def represented(self, descriptions: Iterable[Sequence[int]]) -> tuple[int, int]:
        """The least and the most records that match any of the descriptions."""
        about = np.zeros(len(self.values), np.bool_)
        for description in descriptions:
            about |= matching(self.values, description)
        return self.range(about)

    def only(self, chosen: NDArray[np.bool_]) -> Known:
        """The same of some of the kinds: claims count no others."""
        endless, data = self.endless[chosen], self.data[:, chosen]
        return Known(self.values[chosen], self.apart[chosen], endless, data, self.looked_at)

    def certain(self, least: int) -> dict[tuple[int, ...], int]:
        """Every description of at least so many columns that the same m >= 1 records match in every data set."""
        columns = self.values.shape[1]
        found = {}
        for k in range(least, columns + 1):
            for named in combinations(range(columns), k):
                said = {tuple(row[c] if c in named else -1 for c in range(columns)) for row in self.values.tolist()}
                for description in said:
                    low, high = self.of(description)
                    if low == high >= 1:
                        found[description] = low
        return found

    @property
    def unique(self) -> bool:
        """Do all data sets say the same of every record in every column that tables look at, if there is any?"""
        full = {tuple(row) for row in np.where(self.looked_at, self.values, -1).tolist()}
        return bool(self.looked_at.any()) and all(low == high for low, high in map(self.of, full))


def matching(values: Ints, description: Sequence[int]) -> NDArray[np.bool_]:
    """The kinds (rows of values) that match a description: a value for each column, -1 where it says nothing."""
    found = np.ones(len(values), np.bool_)
    for column, said in enumerate(description):
        if said >= 0:
            found &= values[:, column] == said
    return found


def words_of(toy: Toy, wording: Wording) -> Ints:
    """The value that claims say of each kind in each column: the number of the group that its level is in."""
    rows = [
        [
            number
            for name in wording.columns
            for number, levels in enumerate(wording.groups[name])
            if kind[toy.schema.position[name]] in levels
        ]
        for kind in toy.kinds.tolist()
    ]
    return np.array(rows, np.int64).reshape(len(toy.kinds), len(wording.columns))


def known_of(toy: Toy, wording: Wording, place: int) -> Known:
    """What brute force knows of a place."""
    limits, words = toy.own_limits(place), words_of(toy, wording)
    rows = [[inside.count(kind) for inside, _, _ in limits] for kind in range(len(toy.kinds))]
    apart = [wording.apart is not None and satisfied(toy.schema, kind, wording.apart) for kind in toy.kinds.tolist()]
    alike: dict[tuple[object, ...], int] = {}
    for kind, times in enumerate(rows):
        if all(often <= high or not often for often, (_, _, high) in zip(times, limits, strict=True)):
            alike.setdefault((*words[kind].tolist(), apart[kind], *times), kind)
    kept = list(alike.values())
    fewer = [
        (tuple(v for v, kind in enumerate(kept) for _ in range(rows[kind][number])), low, high)
        for number, (_, low, high) in enumerate(limits)
    ]
    endless = np.zeros(len(kept), np.bool_)
    for v, kind in enumerate(kept):
        mine = [limit for often, limit in zip(rows[kind], limits, strict=True) if often]
        endless[v] = all(high >= UNLIMITED for _, _, high in mine)
        if endless[v]:
            fewer.append(((v,), 0, max([0, *(low for _, low, _ in mine)])))
    seen = {name for table in toy.tables for line in table.leaves if line.predicate for name, _ in line.predicate.sets}
    looked_at = np.array([name in seen for name in wording.columns], np.bool_)
    return Known(words[kept], np.array(apart, np.bool_)[kept], endless, listed(len(kept), fewer), looked_at)


def wording_of(
    columns: Sequence[str], groups: Mapping[str, Sequence[Iterable[int]]], apart: Predicate | None = None
) -> Wording:
    """Words for claims that say these groups of levels."""
    divided = {name: tuple(frozenset(levels) for levels in groups[name]) for name in columns}
    return Wording(tuple(columns), divided, (Clause(tuple(columns)),), Noun("record", "records", "all"), apart=apart)


def plain_words(schema: Schema, apart: Predicate | None = None) -> Wording:
    """Words for every level of every attribute."""
    groups = {one.name: [[level] for level in range(len(one))] for one in schema.attributes}
    return wording_of(list(groups), groups, apart)


def random_wording(rng: np.random.Generator, schema: Schema, *, coarse: bool) -> Wording:
    """Columns in any order, perhaps not all of them; values that are levels, or groups of levels."""
    names = [schema.attributes[i].name for i in rng.permutation(len(schema.attributes)).tolist()]
    if len(names) > 2 and rng.random() < 0.2:
        names = names[1:]
    groups = {}
    for name in names:
        levels = list(range(len(schema.attribute(name))))
        divided = random_groups(rng, levels, name, deep=False) if coarse and rng.random() < 0.5 else ()
        groups[name] = [group.levels for group in divided] or [[level] for level in levels]
    return wording_of(names, groups)


def hidden(rng: np.random.Generator, counts: Counts, share: float) -> Counts:
    """The counts with some of them unpublished, here and there."""
    lower, upper = counts.lower.copy(), counts.upper.copy()
    for place, column in np.ndindex(lower.shape):
        if rng.random() < share:
            lower[place, column], upper[place, column] = 0, UNLIMITED
    return Counts(counts.level, counts.places, counts.variables, lower, upper)


def told_toy(
    rng: np.random.Generator,
    seed: int,
    *,
    kinds: int = 72,
    people: int = 5,
    hide: float = 0.0,
    intervals: bool = False,
    total: bool = True,
    coarse: bool = True,
    apart: bool = False,
) -> tuple[Toy, Wording]:
    """Two to five attributes, places with few people, and words for claims about them.

    With `apart`, records of some levels of one attribute are reported apart; how many they are is published.
    """
    while True:
        sizes = rng.integers(2, 5, rng.integers(2, 6)).tolist()
        attributes = tuple(attribute("abcde"[i], size) for i, size in enumerate(sizes))
        schema = Schema(attributes)
        if rng.random() < 0.4:
            zeros = [random_predicate(rng, schema) for _ in range(rng.integers(1, 4))]
            schema = Schema(attributes, tuple(Impossible(zero, "so it is") for zero in zeros if len(zero.sets) > 1))
        if np.prod(sizes) <= kinds and len(kinds_of(schema)):
            break
    places = tuple(f"p{i}" for i in range(rng.integers(1, 3)))
    possible = len(kinds_of(schema))
    truth = np.stack(
        [np.bincount(rng.integers(0, possible, rng.integers(0, people + 1)), minlength=possible) for _ in places]
    ).astype(np.int64)
    tables = tuple(random_table(rng, schema, f"T{i + 1}", "block") for i in range(rng.integers(1, 6)))
    if total:
        tables = (total_table(schema, "block"), *tables)
    counts = tabulate(records_of(schema, truth, places), tables, "block")
    if intervals:
        counts = widened(rng, counts)
    if hide:
        counts = hidden(rng, counts, hide)
    wording = random_wording(rng, schema, coarse=coarse)
    if apart:
        name = wording.columns[int(rng.integers(0, len(wording.columns)))]
        where = schema.where({name: wording.groups[name][0]})
        table = build_table(
            schema, name="X", level="block", title="X", by=[], variable=lambda number: f"X_{number}", universe=where
        )
        wording, tables = replace(wording, apart=where), (*tables, table)
        more = tabulate(records_of(schema, truth, places), [table], "block")
        counts = Counts(
            "block",
            places,
            counts.variables + more.variables,
            np.concatenate([counts.lower, more.lower], axis=1),
            np.concatenate([counts.upper, more.upper], axis=1),
        )
    return Toy(schema, tables, counts, truth, seed=seed), wording


def claim_toy(seed: int, **options: Any) -> tuple[Toy, Wording, tuple[Known, ...]]:
    """A toy of a seed, and what brute force knows of its places; those that are too large are passed over."""
    for attempt in count():
        toy, wording = told_toy(np.random.default_rng([seed, attempt]), seed, **options)
        try:
            return toy, wording, tuple(known_of(toy, wording, place) for place in range(len(toy.counts.places)))
        except TooMany:
            continue
    raise AssertionError("there is always another toy")
