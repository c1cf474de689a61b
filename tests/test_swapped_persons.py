"""Is a file without one person swapped as if that person had never been there? All done again, and cases by hand."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from glasshouse.errors import InputError
from glasshouse.protection.swap import persons as persons_module
from glasshouse.protection.swap.by_rates import SHUFFLES, Draws, Households, Rates, swap_by_rates
from glasshouse.protection.swap.households import Ints, Swapped, alike_key
from glasshouse.protection.swap.persons import NOWHERE, Persons, settle
from tests.often import often

RISKY = Rates(0, 1)  # so that whoever is at risk moves, if there is anyone to trade with

some_rates = st.sampled_from([RISKY, Rates(0.1, 0.9), Rates(0.3, 0.6), Rates(0.5, 0.5), Rates(1, 1), Rates(0, 0)])


def file(
    people: Any, block: Any, blocks_in_tract: int = 1, tracts_in_area: int = 10**6, household: Any = True
) -> Persons:  # fmt: skip
    """Persons as (unit, adult, cell, identified); tracts are runs of blocks, areas runs of tracts."""
    unit, adult, cell, identified = zip(*people, strict=True) if people else ((), (), (), ())
    where = np.array(block, np.int64)
    near = where // blocks_in_tract
    homes = np.array(np.broadcast_to(np.array(household, np.bool_), where.shape))
    ints, flags = (lambda some: np.array(some, np.int64)), (lambda some: np.array(some, np.bool_))
    return Persons(
        ints(unit), flags(adult), ints(cell), flags(identified), where, near // tracts_in_area, near, homes
    )  # fmt: skip


def without_row(persons: Persons, person: int) -> Persons:
    """The file without the row of a person; all units keep their numbers."""
    some = (field.name for field in fields(persons) if not field.name.startswith("unit_"))
    return replace(persons, **{name: np.delete(getattr(persons, name), person) for name in some})


@st.composite
def some_file(draw: st.DrawFn) -> Persons:
    """Few kinds of households in few blocks, some group quarters, vacant or imputed units; rows in any order."""
    blocks, units = draw(st.integers(1, 6)), draw(st.integers(0, 18))
    block = draw(st.lists(st.integers(0, blocks - 1), min_size=units, max_size=units))
    household = draw(st.lists(st.sampled_from([True] * 5 + [False]), min_size=units, max_size=units))
    sizes = draw(st.lists(st.sampled_from([0, 1, 1, 2, 2, 2, 3, 4]), min_size=units, max_size=units))
    cells, adults = draw(st.integers(1, 4)), draw(st.sampled_from([[True], [True, True, False]]))
    one = st.tuples(st.sampled_from(adults), st.integers(0, cells - 1), st.sampled_from([True, True, False]))
    people = [(unit, *draw(one)) for unit, size in enumerate(sizes) for _ in range(size)]
    tracts = draw(st.integers(1, 2)), draw(st.sampled_from([1, 2, 10**6]))
    return file(draw(st.permutations(people)), block, *tracts, household)


@st.composite
def draws_for(draw: st.DrawFn, count: int) -> Draws:
    """With many shuffles or none; at times coarse, so that many are equal, though in practice none are."""
    draws = Draws.of(count, np.random.default_rng(draw(st.integers(0, 2**32))), draw(st.sampled_from([0, SHUFFLES])))
    return Draws(np.floor(draws.table * 5) / 5, draws.row) if draw(st.booleans()) else draws


# Laws


def from_scratch(persons: Persons, rates: Rates, draws: Draws, small: int) -> list[int]:
    """Where every unit is, told from the persons one by one; only `swap_by_rates` is the same."""
    members: dict[int, list[int]] = {unit: [] for unit in range(persons.units)}
    for person, unit in enumerate(persons.unit):
        members[int(unit)].append(person)
    where = persons.unit_place[persons.unit]

    def alone(person: int) -> bool:
        return not any(
            other != person and where[other] == where[person] and persons.cell[other] == persons.cell[person]
            for other in range(len(persons))
        )

    units = [unit for unit in members if persons.unit_household[unit] and members[unit]]
    risk = [np.sum(where == persons.unit_place[u]) < small or any(map(alone, members[u])) for u in units]
    fixed = [not any(persons.identified[person] for person in members[unit]) for unit in units]
    size, adults = ([sum(what[p] for p in members[u]) for u in units] for what in (np.ones(len(where)), persons.adult))
    rows = np.array(units, np.int64)
    homes = Households(
        persons.unit_place[rows],
        persons.unit_area[rows],
        persons.unit_near[rows],
        alike_key(np.array(size, np.int64), np.array(adults, np.int64)),
        np.array(risk, np.bool_),
        np.array(fixed, np.bool_),
    )
    block = [int(persons.unit_place[unit]) if members[unit] else NOWHERE for unit in members]
    for unit, at in zip(units, swap_by_rates(homes, rates, draws.some(rows)).place, strict=True):
        block[unit] = int(at)
    return block


@settings(max_examples=often(100), deadline=None)
@given(some_file(), some_rates, st.integers(0, 8), st.data())
def test_without_a_person_is_as_if_all_was_done_again(
    persons: Persons, rates: Rates, small: int, data: st.DataObject
) -> None:
    draws = data.draw(draws_for(persons.units))
    settled = settle(persons, rates, draws, small)
    assert settled.unit_place.tolist() == from_scratch(persons, rates, draws, small)
    for person in range(len(persons)):
        less = without_row(persons, person)
        found = settled.without(person)
        assert found.tolist() == from_scratch(less, rates, draws, small)
        assert np.array_equal(found, settle(less, rates, draws, small).unit_place)
        others = np.arange(persons.units) != persons.unit[person]
        event(f"others move: {bool(np.any((found != settled.unit_place) & others))}")


@settings(deadline=None)
@given(some_file(), some_rates, st.data())
def test_blocks_keep_their_persons_and_adults(persons: Persons, rates: Rates, data: st.DataObject) -> None:
    """Convention 28, also for the file without somebody."""
    settled = settle(persons, rates, data.draw(draws_for(persons.units)))
    for person in range(-1, len(persons)):
        less = without_row(persons, person) if person >= 0 else persons
        block = settled.without(person) if person >= 0 else settled.unit_place
        for some in (np.ones(len(less), np.bool_), less.adult):
            before, after = (np.bincount(units[less.unit[some]], minlength=6) for units in (less.unit_place, block))
            assert np.array_equal(before, after)
        still = ~less.unit_household & (block != NOWHERE)
        assert np.array_equal(block[still], less.unit_place[still])


def test_a_larger_county() -> None:
    """Four thousand households of up to six: groups of one and of hundreds."""
    rng = np.random.default_rng(3)
    units = 4000
    unit = np.repeat(np.arange(units), rng.choice(7, units, p=[0.02, 0.27, 0.33, 0.16, 0.13, 0.06, 0.03]))
    block = rng.integers(0, 150, units)
    persons = Persons(
        unit, rng.random(len(unit)) < 0.7, rng.choice(6, len(unit), p=[0.6, 0.2, 0.1, 0.06, 0.03, 0.01]),
        rng.random(len(unit)) < 0.9, block, block // 75, block // 10, rng.random(units) < 0.98,
    )  # fmt: skip
    draws = Draws.of(units, rng)
    settled = settle(persons, Rates(0.05, 0.3), draws, 60)
    assert 0.05 < np.mean(settled.unit_place != block) < 0.4
    for person in rng.integers(0, len(persons), 60):
        again = settle(without_row(persons, int(person)), Rates(0.05, 0.3), draws, 60)
        assert np.array_equal(settled.without(int(person)), again.unit_place)


# Cases


def draws_of(units: int) -> Draws:
    return Draws.of(units, np.random.default_rng(1))


def adults(*cells_of_units: str, identified: bool = True) -> list[tuple[int, bool, int, bool]]:
    return [(unit, True, ord(cell), identified) for unit, cells in enumerate(cells_of_units) for cell in cells]


def test_a_neighbour_who_is_alone_now_moves() -> None:
    """The second b of block 0 is gone: the first is alone, at risk, and trades with the couple of block 1."""
    settled = settle(file(adults("ab", "aab", "aa", "aaa"), [0, 0, 1, 1]), RISKY, draws_of(4), small=0)
    assert settled.unit_place.tolist() == [0, 0, 1, 1]
    assert settled.without(4).tolist() == [1, 0, 0, 1]


def test_a_block_that_is_small_now_moves() -> None:
    settled = settle(file(adults("aa", "aaaa", "aa", "aaaa"), [0, 0, 1, 1]), RISKY, draws_of(4), small=6)
    assert settled.unit_place.tolist() == [0, 0, 1, 1]
    assert settled.without(4).tolist() == [1, 0, 0, 1]


def test_who_was_alone_takes_the_risk_away() -> None:
    settled = settle(file(adults("ab", "aa", "aa", "aa"), [0, 0, 1, 1]), RISKY, draws_of(4), small=0)
    assert settled.unit_place[0] == 1
    assert settled.without(1).tolist() == [0, 0, 1, 1]


def test_a_resident_of_group_quarters_is_a_neighbour_too() -> None:
    people = file(adults("ab", "ab", "aa", "aa"), [0, 0, 1, 2], household=[True, False, True, False])
    settled = settle(people, RISKY, draws_of(4), small=0)
    assert settled.unit_place.tolist() == [0, 0, 1, 2]
    assert settled.without(3).tolist() == [1, 0, 0, 2]


def test_the_last_one_to_leave() -> None:
    settled = settle(file(adults("a", "a", ""), [0, 1, 2]), Rates(1, 1), draws_of(3))
    assert settled.unit_place.tolist() == [1, 0, NOWHERE]
    assert settled.without(0).tolist() == [NOWHERE, 1, NOWHERE]


def test_a_household_without_its_only_identified_member_stays() -> None:
    people = [(0, True, 0, True), (0, True, 0, False), (1, True, 0, True), (2, True, 0, True), (2, True, 0, True)]
    settled = settle(file(people, [0, 1, 2]), Rates(1, 1), draws_of(3))
    assert settled.unit_place.tolist() == [2, 1, 0]
    assert settled.without(1).tolist() == [1, 0, 2]
    assert settled.without(0).tolist() == [0, 1, 2]


def test_only_households_that_are_alike_are_swapped_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of a couple is gone: couples and singles, of that area alone; families are as they were."""
    people = file(adults(*["a", "aa", "aaa", "aaaa"] * 6), np.arange(24) // 4, tracts_in_area=3)
    settled = settle(people, Rates(1, 1), draws_of(24), small=0)
    seen: list[Households] = []

    def watched(homes: Households, rates: Rates, draws: Draws) -> Swapped:
        seen.append(homes)
        return swap_by_rates(homes, rates, draws)

    monkeypatch.setattr(persons_module, "swap_by_rates", watched)
    settled.without(int(np.flatnonzero(people.unit == 1)[0]))
    assert [len(homes) for homes in seen] == [6]
    assert set(seen[0].area.tolist()) == {0} and set(seen[0].place.tolist()) == {0, 1, 2}


# What makes no sense is refused


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"adult": np.array([True])}, "'adult' of the persons must be bool of shape (2,); found bool of shape (1,)"),
        ({"cell": np.array([0.5, 1])}, "'cell' of the persons must be int64 of shape (2,); found float64"),
        ({"unit_near": np.array([0])}, "'unit_near' of the persons must be int64 of shape (2,)"),
        ({"unit": np.array([0, 2])}, "a unit that exists"),
        ({"unit": np.array([-1, 0])}, "a unit that exists"),
        ({"unit_place": np.array([-1, 0])}, "a place numbered from 0"),
    ],
)
def test_files_that_make_no_sense(changes: dict[str, Ints], words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)):
        replace(file(adults("a", "a"), [0, 0]), **changes)


def test_who_is_not_there_cannot_be_taken_away() -> None:
    settled = settle(file(adults("a", "a"), [0, 1]), RISKY, draws_of(2))
    for person in (-1, 2):
        with pytest.raises(InputError, match="in a file of 2 persons"):
            settled.without(person)


def test_every_unit_needs_its_draws() -> None:
    with pytest.raises(InputError, match="needs its draws"):
        settle(file(adults("a", "a"), [0, 1]), RISKY, draws_of(3))
