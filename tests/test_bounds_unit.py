"""Are the numbers of a unit bounded right? Toys of two and three levels, a mapping and rests, each data set listed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from glasshouse.attack import bounds as attacked
from glasshouse.attack.bounds import FITS, NOTHING, Bounder, Printed, UnitBounds
from glasshouse.attack.contradictions import Decider
from glasshouse.errors import InputError
from glasshouse.model.geography import Geography
from glasshouse.model.records import UNLIMITED
from glasshouse.model.release import Counts, Table, build_table
from glasshouse.model.schema import Group, Predicate, Recode, Schema
from glasshouse.model.tabulate import tabulate
from glasshouse.program.answers import some
from glasshouse.program.integer import Limit, Proof
from glasshouse.program.ladder import ORDER, Ladder
from glasshouse.program.numbers import reasons
from glasshouse.program.numbers.linked import Numbers, link
from glasshouse.program.numbers.system import Layer, System, alone, together
from glasshouse.program.reduce import Split
from tests.number_toys import NumberToy, by_programs
from tests.oracles import Ints, Limits, TooMany, attribute, kinds_of, listed, mask_of, records_of

SCHEMA = Schema((attribute("a", 2), attribute("b", 2)))
BY = {name: Recode(name, name, tuple(Group(f"{name}{at}", frozenset([at])) for at in range(2))) for name in "ab"}


def laid_out(name: str, level: str, by: str) -> Table:
    """A table with its subtotals."""
    return build_table(
        SCHEMA, name=name, level=level, title=name, by=[BY[one] for one in by],
        variable=lambda number: f"{name}_{number}", also=[1],
    )  # fmt: skip


TABLES = (
    laid_out("S", "spot", "a"),
    laid_out("R", "spot", "b"),
    laid_out("T", "town", "ab"),
    laid_out("L", "land", "b"),
)
GEOGRAPHY = Geography({"land": 1, "town": 2, "spot": 3}, "spot", "land")
SPOTS = ("111", "112", "121")
MASKS: dict[str, tuple[int, ...]] = {
    line.variable: tuple(np.flatnonzero(mask_of(SCHEMA, kinds_of(SCHEMA), line.predicate)).tolist())
    for table in TABLES
    for line in table.lines
    if line.predicate is not None
}
UNDECIDED = ORDER.index(Proof.UNDECIDED)
Levels = Mapping[str, Counts]


@dataclass(frozen=True, eq=False)
class Town:
    """Numbers of some levels, and every data set that fits them."""

    levels: Levels
    geography: Geography = GEOGRAPHY
    whole: bool = True
    asked: Mapping[str, Predicate] | None = None

    @property
    def bounder(self) -> Bounder:
        return Bounder(SCHEMA, TABLES, self.geography, asked=self.asked, everything=True, whole=self.whole)

    @property
    def spots(self) -> tuple[str, ...]:
        """Where somebody may live: places that are named, and others, which have the code of an area."""
        named = self.levels["spot"].places
        larger = (
            counts.places for level, counts in self.levels.items() if level not in ("spot", *self.geography.mappings)
        )
        return named if self.whole else (*named, *(place for places in larger for place in places))

    def inside(self, level: str, code: str, variable: str) -> tuple[int, ...]:
        """Whom a number counts, over places x kinds."""
        masks = {**MASKS, **{name: tuple(np.flatnonzero(mask_of(SCHEMA, kinds_of(SCHEMA), one)).tolist())
                             for name, one in (self.asked or {}).items()}}  # fmt: skip
        mapping = self.geography.mappings.get(level)
        where = [
            at
            for at, spot in enumerate(self.spots)
            if (mapping[spot] == code if mapping else spot == code if level == "spot" else spot.startswith(code))
        ]
        return tuple(at * 4 + kind for at in where for kind in masks[variable])

    def limits(self) -> Iterator[tuple[Printed, Limits]]:
        for level, counts in self.levels.items():
            for place, variable in product(counts.places, counts.variables):
                value = counts.value(place, variable)
                one = Printed(level, place, variable, value.lower, min(value.upper, UNLIMITED))
                yield one, (self.inside(level, place, variable), one.lower, one.upper)
            for at, spot in enumerate(self.spots):  # a place that is not named has nobody whom finer tables count
                if level in self.geography.lengths and len(spot) < self.geography.lengths[level]:
                    for variable in counts.variables:
                        inside = tuple(at * 4 + kind for kind in MASKS[variable])
                        yield Printed(level, spot, variable, 0, 0), (inside, 0, 0)

    @cached_property
    def every(self) -> Ints:
        return listed(len(self.spots) * 4, [limits for _, limits in self.limits()])

    def range(self, level: str, place: str, variable: str) -> tuple[int, int]:
        counts = self.every[:, list(self.inside(level, place, variable))].sum(axis=1)
        return int(counts.min()), int(counts.max())


def drawn(
    seed: int, *, levels: Sequence[str] = ("land", "town", "spot"), whole: bool = True, mapped: bool = False
) -> Town:
    """A toy: few people, some numbers as intervals, some not printed; totals are limited."""
    rng = np.random.default_rng([seed, 7])
    truth = np.stack([np.bincount(rng.integers(0, 4, rng.integers(0, 3)), minlength=4) for _ in SPOTS])
    geography = GEOGRAPHY.with_mapping("zone", {"111": "x", "112": "y", "121": "x"}) if mapped else GEOGRAPHY
    found = {}
    for level in ("zone", *levels) if mapped else levels:
        codes = sorted({geography.code(spot, level) for spot in SPOTS})
        areas = np.stack([truth[[geography.code(spot, level) == code for spot in SPOTS]].sum(axis=0) for code in codes])
        tables = [
            table for table in TABLES if table.level == level or (level in ("town", "zone") and table.name == "R")
        ]
        counts = tabulate(records_of(SCHEMA, areas, codes), tables, level)
        counts = Counts(level, tuple(codes), counts.variables, counts.lower.copy(), counts.upper.copy())
        kept = [at for at, name in enumerate(counts.variables) if name.endswith("_1") or rng.random() < 0.8]
        lower, upper = counts.lower[:, kept], counts.upper[:, kept]
        wide = rng.random(lower.shape) < 0.5
        lower, upper = np.maximum(lower - wide * rng.integers(0, 2, lower.shape), 0), upper + wide
        found[level] = Counts(level, tuple(codes), tuple(counts.variables[at] for at in kept), lower, upper)
    return Town(found, geography, whole)


def toys(make: Callable[[int], Town], count: int) -> Iterator[Town]:
    """So many toys of which every data set can be listed."""
    seed = 0
    while count:
        seed += 1
        try:
            toy = make(seed)
            assert len(toy.every)
        except TooMany:
            continue
        count -= 1
        yield toy


def right(toy: Town, told: UnitBounds, *, exactly: bool = True) -> int:
    """Compare every number with the listing; how many are proved."""
    proved = 0
    assert [one.level for one in told.levels] == [at for at in toy.geography.levels if at in toy.levels]
    for one in told.levels:
        assert one.places == toy.levels[one.level].places and not (one.fits == NOTHING).any()
        for (row, place), (at, variable) in product(enumerate(one.places), enumerate(one.variables)):
            least, most = toy.range(one.level, place, variable)
            said = int(one.low[row, at]), int(one.high[row, at])
            met = int(one.met_low[row, at]), int(one.met_high[row, at])
            text = f"{one.level} {place} {variable}: {said}, met {met}, listed {(least, most)}"
            assert said[0] <= least and most <= said[1], text
            if told.fits != FITS and one.scope[row] == one.level:
                continue  # all levels together were not decided, so that other levels were not used
            assert all(end == -1 or least <= end <= most for end in met), text
            if one.proof[row, at] != UNDECIDED:
                assert said == met == (least, most), text
                proved += 1
            assert not exactly or one.proof[row, at] != UNDECIDED, text
    return proved


# Bounds


def test_three_levels_together_are_as_listed() -> None:
    differ = 0
    for toy in toys(drawn, 25):
        told = toy.bounder.bounds(toy.levels)
        assert told.fits == FITS and {scope for one in told.levels for scope in one.scope} == {"land"}
        right(toy, told)
        spots = toy.bounder.bounds({"spot": toy.levels["spot"]}).levels[0]
        assert (spots.low <= told.levels[-1].low).all() and (spots.high >= told.levels[-1].high).all()
        differ += int((spots.low < told.levels[-1].low).sum() + (spots.high > told.levels[-1].high).sum())
    assert differ > 50  # the levels above say something


def test_a_level_may_be_missing_in_between() -> None:
    for toy in toys(lambda seed: drawn(seed, levels=("land", "spot")), 10):
        right(toy, toy.bounder.bounds(toy.levels))


def test_a_mapped_level_is_the_sum_of_its_places() -> None:
    """Zones cut across towns."""
    for toy in toys(lambda seed: drawn(seed, mapped=True), 12):
        told = toy.bounder.bounds(toy.levels)
        assert told.levels[0].level == "zone" and told.levels[0].scope[0] == "zone"
        right(toy, told)


def test_people_of_the_rest_of_an_area_are_in_no_place_that_is_named() -> None:
    """Here tables of spots count everybody, so that nobody can be elsewhere; most lines are not printed, though."""
    for toy in toys(lambda seed: drawn(seed, whole=False), 12):
        right(toy, toy.bounder.bounds(toy.levels))


def test_the_rest_of_an_area_makes_it_up() -> None:
    """Tables of spots tell of a0 alone: those of a1 may live in a spot without a name; with all named they may not."""
    some = build_table(SCHEMA, name="A", level="spot", title="a0", by=[], variable=lambda number: f"A_{number}",
                       universe=SCHEMA.where({"a": [0]}))  # fmt: skip
    both = laid_out("B", "town", "a")
    levels = {"spot": numbers("spot", {"111": {"A_1": 1}}), "town": numbers("town", {"11": {"B_2": 1, "B_3": 2}})}
    asked = {"a1": SCHEMA.where({"a": [1]})}

    def ends(whole: bool) -> tuple[int, int]:
        bounder = Bounder(SCHEMA, (some, both), GEOGRAPHY, asked=asked, whole=whole)
        spot = bounder.bounds(levels).levels[-1]
        assert spot.places == ("111",) and (spot.proof == 0).all()
        at = spot.variables.index("a1")
        return int(spot.low[0, at]), int(spot.high[0, at])

    assert ends(whole=True) == (2, 2) and ends(whole=False) == (0, 2)


@pytest.mark.parametrize("walks", [False, True])
def test_what_large_units_say_holds(monkeypatch: pytest.MonkeyPatch, walks: bool) -> None:
    """Propagation over all levels, then each place by itself; met is what a walk met."""
    monkeypatch.setattr(attacked, "AS_ONE", -1)
    monkeypatch.setattr(System, "loose", property(lambda system: np.full(len(system.programs), walks)))
    proved = [right(toy, toy.bounder.bounds(toy.levels), exactly=False) for toy in toys(drawn, 20)]
    assert sum(proved) > 300


def test_little_effort_says_less_but_nothing_wrong() -> None:
    little = Ladder(nodes=1, limit=Limit(effort=0), engines=())
    for toy in toys(drawn, 10):
        right(toy, toy.bounder.bounds(toy.levels, little), exactly=False)


def walked(toy: Town, levels: Mapping[str, Counts]) -> bool:
    """Does `check` find records that fit all levels, by a walk?"""
    asked = toy.bounder
    decider = Decider(asked.schema, asked.tables, asked.geography, whole=asked.whole)
    return decider.walked([levels[level] for level in reversed(asked.geography.levels) if level in levels])


def test_levels_that_contradict_are_asked_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three in the town, one in each of its two spots: every place fits, and the unit does not."""
    spots = numbers("spot", {"111": {"S_1": 1}, "112": {"S_1": 1}})
    toy = Town({"town": numbers("town", {"11": {"T_1": 3}}), "spot": spots})
    for size in (attacked.AS_ONE, -1):
        monkeypatch.setattr(attacked, "AS_ONE", size)
        told = toy.bounder.bounds(toy.levels)
        assert told.fits == NOTHING and [one.level for one in told.levels] == ["town", "spot"]
        assert all((one.fits == FITS).all() and set(one.scope) == {one.level} for one in told.levels)
        assert told.levels[1].high[0, told.levels[1].variables.index("S_2")] == 1
    assert not walked(toy, toy.levels)


def test_an_area_without_places_has_nobody() -> None:
    """Town 12 has no spot; if all spots are named, nobody is there, and all of the land are in town 11."""
    levels = {
        "land": numbers("land", {"1": {"R_1": (0, 9)}}),
        "town": numbers("town", {"11": {"R_1": (0, 3)}, "12": {"R_1": (0, 5)}}),
        "spot": numbers("spot", {"111": {"R_1": (1, 9)}}),
    }
    for whole in (True, False):  # whoever lives in a spot that is not named would be counted there
        land, town, _ = Town(levels, whole=whole).bounder.bounds(levels).levels
        assert (land.low[0, 0], land.high[0, 0]) == (1, 3)
        assert town.high[:, 0].tolist() == [3, 0]


# One program for all levels


def test_a_number_of_an_area_is_the_sum_over_what_lies_in_it() -> None:
    """Two numbers, one the sum of two cells; of the lands both are told, of towns the second alone."""
    linked = link(Numbers(("all", "some"), sparse.csr_matrix([[1, 1], [1, 0]])))
    free = np.zeros((4, 2), np.int64), np.full((4, 2), UNLIMITED, np.int64)
    town = Layer(np.array([[2], [1], [0]]), np.array([[2], [4], [9]]), np.array([1]), np.array([0, 0, 1, 2]))
    land = Layer(np.array([[5, 0], [1, 0]]), np.array([[5, UNLIMITED], [1, UNLIMITED]]), np.array([0, 1]),
                 np.array([0, 0, 0, 1]), 0)  # fmt: skip
    nested = together(linked, *free, [town, land])
    flat = together(linked, *free, [town, replace(land, inside=-1)])
    assert len(nested.programs.index) < len(flat.programs.index)
    for system in (nested, flat):
        wanted = np.unique(np.concatenate([some.reshape(-1) for some in system.variable]))
        found = system.ends(wanted)
        low, high = ([ends[np.searchsorted(wanted, some)].tolist() for some in system.variable]
                     for ends in (found.low, found.high))  # fmt: skip
        assert low == [[[0, 0], [0, 0], [1, 1], [1, 0]], [[2], [1], [0]], [[5, 3], [1, 0]]]
        assert high == [[[4, 2], [4, 2], [3, 3], [1, 1]], [[2], [3], [1]], [[5, 5], [1, 1]]]


# Walks


def test_a_walk_finds_data_only_where_there_are_some() -> None:
    found = []
    for toy in toys(drawn, 15):
        loose = {level: replace(counts, lower=np.maximum(counts.lower - 1, 0), upper=counts.upper + 1)
                 for level, counts in toy.levels.items()}  # fmt: skip
        found.append(walked(toy, loose))
    assert sum(found) > 10
    exact = numbers("spot", {"111": {"S_1": 1, "S_2": 1, "R_1": 1, "R_2": 1}})
    assert not walked(Town({"spot": exact}), {"spot": exact})  # not worth a walk
    wrong = numbers("spot", {"111": {"S_1": (0, 3), "S_2": (4, 9), "S_3": (0, 9), "R_1": (0, 9)}})
    assert not walked(Town({"spot": wrong}), {"spot": wrong})


# The nearest data


def test_the_nearest_data_are_as_near_as_can_be() -> None:
    rng, moved = np.random.default_rng(3), 0
    every = np.array(list(product(range(6), repeat=4)))
    for _ in range(25):
        names = [name for name in MASKS if name[0] in "SR" and rng.random() < 0.8] or ["S_1"]
        lower = rng.integers(0, 5, len(names))
        upper = lower + rng.integers(0, 3, len(names))
        pairs = zip(lower.tolist(), upper.tolist(), strict=True)
        given = dict(zip(names, pairs, strict=True))
        levels = {"spot": numbers("spot", {"111": given})}
        values = np.stack([every[:, list(MASKS[name])].sum(axis=1) for name in names], axis=1)
        away = np.maximum(lower - values, 0) + np.maximum(values - upper, 0)
        found = Town(levels).bounder.nearest(levels, "spot", "111")
        assert found is not None and found.proof != Proof.UNDECIDED
        assert found.total == away.sum(axis=1).min()
        changed = {one.variable: value for one, value in found.changes}
        assert all(one[:2] == ("spot", "111") and given[one.variable] == one[3:] for one, _ in found.changes)
        same = [(value == changed[name]) if name in changed else (away[:, at] == 0)
                for at, (name, value) in enumerate(zip(names, values.T, strict=True))]  # fmt: skip
        assert (np.logical_and.reduce(same) & (away.sum(axis=1) == found.total)).any()
        moved += bool(found.total)
    assert 5 < moved < 25


# Reasons


def believed(toy: Town, chosen: Sequence[Printed], target: tuple[int, ...]) -> tuple[int, int]:
    """The ends of a number if only some are believed, by integer programs."""
    kept = [limits for one, limits in toy.limits() if one in chosen]
    times = np.zeros((len(kept) + 1, 4 * len(toy.spots)), np.int64)
    for row, inside in enumerate([target, *(inside for inside, _, _ in kept)]):
        times[row, list(inside)] = 1
    ends = [(0, UNLIMITED), *((low, high) for _, low, high in kept)]
    found = by_programs(NumberToy(times, *np.array(ends).T))
    return int(found.low[0]), int(found.high[0])


@pytest.mark.parametrize("whole", [True, False])
def test_reasons_suffice_and_each_is_needed(whole: bool) -> None:
    """Of numbers that are exact although they were not printed so."""
    scopes: set[str] = set()
    for toy in toys(lambda seed: drawn(seed, whole=whole), 4):
        for one in toy.bounder.bounds(toy.levels).levels:
            for row, at in np.argwhere((one.low == one.high) & one.hidden)[:4]:
                place, variable, value = one.places[row], one.variables[at], int(one.low[row, at])
                reason = toy.bounder.why(toy.levels, one, place, variable)
                assert reason is not None and reason.minimal and reason.proof != Proof.UNDECIDED
                scopes.add(reason.scope)
                target = toy.inside(one.level, place, variable)
                assert believed(toy, reason.numbers, target) == (value, value)
                for gone in reason.numbers:
                    rest = [number for number in reason.numbers if number != gone]
                    assert believed(toy, rest, target) != (value, value)
    assert scopes == {"spot", "town", "land"}


def test_a_reason_may_need_numbers_of_other_places() -> None:
    """One of two in the town is in each spot, because the other spot has one."""
    levels = {
        "town": numbers("town", {"11": {"R_1": 2}}),
        "spot": numbers("spot", {"111": {"S_1": 1}, "112": {"S_1": (0, 4)}}),
    }
    toy = Town(levels)
    spot = toy.bounder.bounds(levels).levels[-1]
    assert spot.low[1, spot.variables.index("S_1")] == spot.high[1, spot.variables.index("S_1")] == 1
    reason = toy.bounder.why(levels, spot, "112", "S_1")
    wanted = {Printed("town", "11", "R_1", 2, 2), Printed("spot", "111", "S_1", 1, 1)}
    assert reason is not None and set(reason.numbers) == wanted
    assert reason.minimal and reason.scope == "town"
    with pytest.raises(InputError, match="X_1"):
        toy.bounder.why(levels, spot, "112", "X_1")


def test_reasons_of_large_units_are_those_of_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    levels = {
        "town": numbers("town", {"11": {"R_1": 2}}),
        "spot": numbers("spot", {"111": {"S_1": 1, "S_2": 1, "S_3": (0, 3)}, "112": {"S_1": (0, 4)}}),
    }
    toy = Town(levels)
    monkeypatch.setattr(attacked, "AS_ONE", -1)
    spot = toy.bounder.bounds(levels).levels[-1]
    near = toy.bounder.why(levels, spot, "111", "S_3")
    assert near is not None and near.scope == "spot" and {one.variable for one in near.numbers} == {"S_1", "S_2"}
    assert toy.bounder.why(levels, spot, "112", "S_1") is None


def test_solvers_see_no_limits_that_come_from_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of UNLIMITED is no limit either: a solver that took it for one branched without end (case 50521)."""
    seen: list[int] = []

    def spied(whole: Split, *rest: Any) -> Any:
        seen.extend(whole.parts.upper.tolist())
        return some(whole, *rest)

    monkeypatch.setattr(reasons, "some", spied)
    times = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [1, 2, 3, 4]])  # the last adds up
    linked = link(Numbers(tuple("abcde"), sparse.csr_matrix(times)))
    system = alone(linked, np.zeros((1, 5), np.int64), np.full((1, 5), UNLIMITED, np.int64))
    lower, upper = np.array([4, 2, 2, 0, 10]), np.array([4, 2, 2, UNLIMITED, 10])
    printed = system.variable[0][0]
    found = reasons.gives_away(system.programs, printed, lower, upper, int(printed[3]), 2, 2)
    assert found is not None and found.minimal and found.chosen.tolist() == [0, 1]
    most = reasons.ROOM + int(lower.max())  # something small is looked for first
    assert seen and not [limit for limit in seen if most < limit < UNLIMITED]


def numbers(level: str, told: Mapping[str, Mapping[str, int | tuple[int, int]]]) -> Counts:
    """Numbers of places, each with a value or an interval; those that only other places have are not limited."""
    names = tuple(dict.fromkeys(name for row in told.values() for name in row))
    ends = [[row.get(name, (0, UNLIMITED)) for name in names] for row in told.values()]
    pairs = np.array([[one if isinstance(one, tuple) else (one, one) for one in row] for row in ends], np.int64)
    return Counts(level, tuple(told), names, pairs[:, :, 0], pairs[:, :, 1])
