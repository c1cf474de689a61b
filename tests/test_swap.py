"""Do households trade places as promised? Laws, all pairings tried on toys, rates, and a million households."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glasshouse.errors import InputError
from glasshouse.protection.swap.by_rates import SHUFFLES, Draws, Households, Rates, swap_by_rates
from glasshouse.protection.swap.households import Flags, Ints, Swapped, alike_key, at_risk
from tests.often import often

SIZES = [(1, 1), (2, 1), (2, 2), (3, 2)]  # persons and adults
ALL = Rates(1, 1)

some_rates = st.tuples(*[st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0])] * 2).map(lambda pair: Rates(min(pair), max(pair)))
seeds = st.integers(0, 2**32)


def generator(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def swapped(homes: Households, rates: Rates, seed: int = 1, shuffles: int = SHUFFLES) -> Swapped:
    return swap_by_rates(homes, rates, Draws.of(len(homes), generator(seed), shuffles))


@st.composite
def draws_for(draw: st.DrawFn, count: int) -> Draws:
    """With many shuffles or none; at times coarse, so that many are equal, though in practice none are."""
    draws = Draws.of(count, generator(draw(seeds)), draw(st.sampled_from([0, 1, SHUFFLES])))
    return Draws(np.floor(draws.table * 5) / 5, draws.row) if draw(st.booleans()) else draws


def rows_of(homes: Households, rows: Any) -> Households:
    return Households(*(getattr(homes, field.name)[rows] for field in fields(homes)))


def households(
    block: Any, size: Any = 0, blocks_in_tract: int = 1, tracts_in_area: int = 10**6, risk: Any = False,
    fixed: Any = False,
) -> Households:  # fmt: skip
    """Households of SIZES in numbered blocks; tracts are runs of blocks, areas runs of tracts."""
    where = np.array(block, np.int64)
    keys = alike_key(*np.array(SIZES).T)
    near = where // blocks_in_tract
    flags = (np.broadcast_to(np.array(some, np.bool_), where.shape) for some in (risk, fixed))
    key = np.broadcast_to(keys[np.array(size, np.int64)], where.shape)
    return Households(where, near // tracts_in_area, near, key, *flags)


@st.composite
def some_households(draw: st.DrawFn, largest: int = 24) -> Households:
    """None, one, few or many; few tracts, so that often there is nobody to swap with."""
    count = draw(st.integers(0, largest))
    most = draw(st.integers(0, 7))
    rows = draw(
        st.lists(
            st.tuples(st.integers(0, most), st.integers(0, 3), st.booleans(), st.integers(0, 9).map(lambda x: x == 0)),
            min_size=count,
            max_size=count,
        )
    )
    block, size, risk, fixed = zip(*rows, strict=True) if rows else ((), (), (), ())
    return households(block, size, draw(st.integers(1, 3)), draw(st.sampled_from([1, 2, 10**6])), risk, fixed)


# Laws


@given(some_households(), some_rates, seeds)
def test_pairs_agree_and_move(homes: Households, rates: Rates, seed: int) -> None:
    check(homes, swapped(homes, rates, seed))


def check(homes: Households, done: Swapped) -> None:
    rows = np.flatnonzero(done.partner >= 0)
    other = done.partner[rows]
    assert np.array_equal(done.partner[other], rows) and not np.any(other == rows)
    assert np.array_equal(homes.key[rows], homes.key[other])
    assert np.array_equal(homes.area[rows], homes.area[other])
    assert np.all(homes.near[rows] != homes.near[other])
    assert not np.any(homes.fixed[rows]) and not np.any(homes.fixed & done.chosen)
    assert np.all(done.chosen[rows] | done.chosen[other])  # nobody moves for nothing
    assert np.array_equal(done.place[rows], homes.place[other])
    stays = done.partner < 0
    assert np.array_equal(done.place[stays], homes.place[stays])
    assert done.unmatched == np.count_nonzero(done.chosen & stays)
    assert done.moved == np.count_nonzero(done.place != homes.place) and done.share == done.moved / max(len(homes), 1)
    assert done.chosen.sum() - done.unmatched <= done.moved <= 2 * done.chosen.sum()


@given(some_households(), some_rates, seeds)
def test_blocks_keep_their_persons_adults_and_sizes(homes: Households, rates: Rates, seed: int) -> None:
    """As published in 2010: block populations and voting age as enumerated (paper 000)."""
    done = swapped(homes, rates, seed)
    size = np.searchsorted(alike_key(*np.array(SIZES).T), homes.key)
    for what in np.array(SIZES).T:
        before, after = (np.bincount(block, what[size], 30) for block in (homes.place, done.place))
        assert np.array_equal(before, after)
    kinds = [sorted(zip(block, homes.key, strict=True)) for block in (homes.place, done.place)]
    assert kinds[0] == kinds[1]


@given(some_households(), some_rates, seeds)
def test_the_same_draws_give_the_same_swap(homes: Households, rates: Rates, seed: int) -> None:
    one, two = (swapped(homes, rates, seed) for _ in range(2))
    assert np.array_equal(one.partner, two.partner) and np.array_equal(one.chosen, two.chosen)


@given(some_households(), seeds)
def test_no_rate_no_swap(homes: Households, seed: int) -> None:
    done = swapped(homes, Rates(0, 0), seed)
    assert (done.moved, done.unmatched, done.share) == (0, 0, 0)
    assert np.array_equal(done.place, homes.place)


@given(some_households(), some_rates, seeds)
def test_a_higher_rate_chooses_more(homes: Households, rates: Rates, seed: int) -> None:
    fewer, more = (swapped(homes, some, seed).chosen for some in (rates, ALL))
    assert np.all(more == ~homes.fixed) and not np.any(fewer & ~more)


@given(some_households(), some_rates, seeds)
def test_names_of_places_make_no_difference(homes: Households, rates: Rates, seed: int) -> None:
    other = replace(homes, place=7 * homes.place - 50, near=3 * homes.near - 9, area=homes.area - 2**60)
    one, two = (swapped(some, rates, seed) for some in (homes, other))
    assert np.array_equal(one.partner, two.partner)
    assert np.array_equal(7 * one.place - 50, two.place)


@given(some_households(), some_rates, st.data())
def test_each_group_swaps_for_itself(homes: Households, rates: Rates, data: st.DataObject) -> None:
    """Households of one area and key alone, with their draws, make the pairs that they make among all others."""
    draws = data.draw(draws_for(len(homes)))
    done = swap_by_rates(homes, rates, draws)
    for area, key in set(zip(homes.area, homes.key, strict=True)):
        same_as(done, homes, rates, draws, np.flatnonzero((homes.area == area) & (homes.key == key)))


def same_as(done: Swapped, homes: Households, rates: Rates, draws: Draws, rows: Ints) -> None:
    """Does a swap of these rows alone, in this order, make the pairs that they make in the swap of all?"""
    alone = swap_by_rates(rows_of(homes, rows), rates, draws.some(rows))
    pairs = rows[alone.partner] if len(rows) else rows
    assert np.array_equal(np.where(alone.partner >= 0, pairs, -1), done.partner[rows])
    assert np.array_equal(alone.place, done.place[rows]) and np.array_equal(alone.chosen, done.chosen[rows])


@given(some_households(), some_rates, st.data())
def test_the_order_of_rows_makes_no_difference(homes: Households, rates: Rates, data: st.DataObject) -> None:
    draws = data.draw(draws_for(len(homes)))
    mixed = np.array(data.draw(st.permutations(range(len(homes)))), np.int64)
    same_as(swap_by_rates(homes, rates, draws), homes, rates, draws, mixed)


@given(some_households(), some_rates, st.data())
def test_who_may_not_be_swapped_might_as_well_be_absent(homes: Households, rates: Rates, data: st.DataObject) -> None:
    draws = data.draw(draws_for(len(homes)))
    same_as(swap_by_rates(homes, rates, draws), homes, rates, draws, np.flatnonzero(~homes.fixed))


@given(some_households(), some_rates, st.data())
def test_who_is_neither_chosen_nor_moved_leaves_no_trace(homes: Households, rates: Rates, data: st.DataObject) -> None:
    draws = data.draw(draws_for(len(homes)))
    done = swap_by_rates(homes, rates, draws)
    same_as(done, homes, rates, draws, np.flatnonzero((done.partner >= 0) | done.chosen))


# Oracles


def fewest_left_over(homes: Households, chosen: Flags) -> int:
    """How many chosen households stay without a partner at least: all pairings tried."""
    rows = [row for row in range(len(homes)) if not homes.fixed[row]]

    def fit(one: int, two: int) -> bool:
        alike = homes.key[one] == homes.key[two] and homes.area[one] == homes.area[two]
        return bool(alike and homes.near[one] != homes.near[two])

    @cache
    def least(left: tuple[int, ...]) -> int:
        if not left:
            return 0
        one, rest = left[0], left[1:]
        tried = [least(tuple(row for row in rest if row != two)) for two in rest if fit(one, two)]
        return min([int(chosen[one]) + least(rest), *tried])

    return least(tuple(rows))


@settings(max_examples=often(300))
@given(some_households(largest=9), some_rates, seeds)
def test_at_most_one_of_a_group_is_left_over_without_need(homes: Households, rates: Rates, seed: int) -> None:
    """Whoever was drafted for one is not given back to help another: so one more than must be may stay behind."""
    alike = replace(homes, key=np.minimum(homes.key, 2))  # fewer kinds, more to pair
    for shuffles in (SHUFFLES, 0):  # without luck, too
        done = swapped(alike, rates, seed, shuffles)
        check(alike, done)
        groups = len(set(zip(alike.area.tolist(), alike.key.tolist(), strict=True)))
        assert 0 <= done.unmatched - fewest_left_over(alike, done.chosen) <= groups


@given(some_households(largest=40), seeds)
def test_everything_that_can_be_paired_is(homes: Households, seed: int) -> None:
    """Of n households in tracts, of which the largest holds m, min(n // 2, n - m) pairs can be made."""
    free = ~homes.fixed
    pairs = 0
    for area, key in set(zip(homes.area[free], homes.key[free], strict=True)):
        _, tracts = np.unique(homes.near[free & (homes.area == area) & (homes.key == key)], return_counts=True)
        pairs += int(min(tracts.sum() // 2, tracts.sum() - tracts.max()))
    done = swapped(homes, ALL, seed)
    assert done.moved == 2 * pairs
    assert done.unmatched == free.sum() - 2 * pairs


@st.composite
def some_people(draw: st.DrawFn) -> tuple[Ints, Ints, Ints, Ints, int]:
    blocks, units = draw(st.integers(1, 5)), draw(st.integers(0, 12))
    block = draw(st.lists(st.integers(0, blocks - 1), min_size=units, max_size=units))
    people = draw(st.lists(st.tuples(st.integers(0, units - 1), st.integers(0, 5)), max_size=30)) if units else []
    unit, race = zip(*people, strict=True) if people else ((), ())
    more = draw(st.lists(st.integers(0, 8), min_size=blocks, max_size=blocks))  # persons of other units
    where, of, group = (np.array(some, np.int64) for some in (block, unit, race))
    return where, np.bincount(where[of], minlength=blocks) + more, of, group, draw(st.integers(0, 12))


@given(some_people())
def test_who_is_at_risk(people: tuple[Ints, Ints, Ints, Ints, int]) -> None:
    block, persons, unit, race, small = people
    expected = []
    for home, where in enumerate(block):
        around = [int(race[person]) for person in range(len(unit)) if block[unit[person]] == where]
        own = [int(race[person]) for person in range(len(unit)) if unit[person] == home]
        expected.append(bool(persons[where] < small) or any(around.count(group) == 1 for group in own))
    assert at_risk(block, persons, unit, race, small).tolist() == expected


def test_a_block_of_ten_is_not_small() -> None:
    block, persons = np.array([0, 1]), np.array([9, 10])
    unit, race = np.repeat([0, 1], [9, 10]), np.zeros(19, np.int64)
    assert at_risk(block, persons, unit, race).tolist() == [True, False]


def test_a_key_for_every_kind_of_household() -> None:
    kinds = np.array([(persons, adults) for persons in range(1, 200) for adults in range(persons + 1)])
    assert len(np.unique(alike_key(*kinds.T))) == len(kinds)
    assert np.array_equal(alike_key(*kinds.T.astype(np.uint8)), alike_key(*kinds.T))


# Edges


@pytest.mark.parametrize(
    ("homes", "moved"),
    [
        (households([]), 0),
        (households([0]), 0),
        (households([0, 0, 0]), 0),  # all in one tract
        (households([0, 1], [0, 1]), 0),  # nothing in common
        (households([0, 1], fixed=[True, False]), 0),
        (households([0, 1], tracts_in_area=1), 0),  # each in an area of its own
        (households([0, 1], blocks_in_tract=2), 0),
        (households([0, 1]), 2),
        (households([0, 0, 0, 0, 1]), 2),
        (households([0, 0, 1, 2]), 4),  # whoever is paired first
        (households([0, 1, 2]), 2),
    ],
)
@pytest.mark.parametrize("seed", range(5))
def test_small_numbers(homes: Households, moved: int, seed: int) -> None:
    done = swapped(homes, ALL, seed)
    assert (done.moved, done.unmatched) == (moved, int((~homes.fixed).sum()) - moved)


@pytest.mark.parametrize("seed", range(5))
def test_a_partner_need_not_be_chosen(seed: int) -> None:
    homes = households([0] * 10 + [1] * 10, risk=[True] + [False] * 19)
    done = swapped(homes, Rates(0, 1), seed)
    assert (done.moved, done.unmatched, done.chosen.sum()) == (2, 0, 1)
    assert homes.place[done.partner[0]] == 1


@pytest.mark.parametrize("seed", range(5))
def test_a_partner_that_was_not_chosen_is_rather_at_risk(seed: int) -> None:
    """Some 100 are chosen in one tract, 80 in the other; of the 120 free there some 80 are at risk, enough for all."""
    block = np.repeat([0, 1], 200)
    homes = households(block, risk=(block == 0) | (np.arange(400) % 5 > 0))
    done = swapped(homes, Rates(0, 0.5), seed)
    drafted = (done.partner >= 0) & ~done.chosen
    assert drafted.any() and np.all(homes.risk[drafted])


@pytest.mark.parametrize("seed", range(5))
def test_an_odd_one_brings_a_neighbour(seed: int) -> None:
    """Three are chosen, one in each tract, all others live in tract 0: if its own is left over, one helps."""
    homes = households([0, 1, 2, 0, 0], risk=[True, True, True, False, False])
    done = swapped(homes, Rates(0, 1), seed)
    assert (done.moved, done.unmatched) == (4, 0)


# Rates and size


def county(count: int, seed: int) -> Households:
    """Like a large county: tracts of 40 blocks and some 1,600 households, one in ten at risk."""
    rng = generator(seed)
    block = rng.integers(0, max(count // 40, 1), count)
    persons = rng.choice(8, count, p=[0.27, 0.33, 0.16, 0.13, 0.06, 0.03, 0.01, 0.01]) + 1
    key = alike_key(persons, np.minimum(persons, rng.integers(1, 4, count)))
    return Households(block, block // 4000, block // 40, key, rng.random(count) < 0.1, rng.random(count) < 0.02)


@pytest.mark.parametrize("rates", [Rates(), Rates(0.1, 0.1), Rates(0.05, 0.5)], ids=str)
def test_about_the_share_asked_for_moves(rates: Rates) -> None:
    """Within four standard errors of the chances, for those at risk and for others, besides a few drafted partners."""
    homes = county(200_000, 3)
    done = swapped(homes, rates, 4)
    for who, chance in ((homes.risk, rates.risky), (~homes.risk, rates.base)):
        some = who & ~homes.fixed
        error = 4 * np.sqrt(chance * (1 - chance) / some.sum())
        assert abs(done.chosen[some].mean() - chance) < error
    drafted = np.count_nonzero((done.partner >= 0) & ~done.chosen)
    assert drafted < 0.02 * done.moved and done.unmatched < 0.001 * done.moved
    assert done.share == pytest.approx(done.chosen.mean(), rel=0.02)


def test_where_one_goes_is_left_to_chance() -> None:
    """Ten tracts of equal size: every pair of tracts is about as frequent (chi-square of 45 pairs, four deviations)."""
    block = np.repeat(np.arange(10), 9000)
    done = swapped(households(block), Rates(0.5, 0.5), 5)
    rows = np.flatnonzero(done.partner > np.arange(len(block)))
    here, there = block[rows], block[done.partner[rows]]
    times = np.bincount(10 * np.minimum(here, there) + np.maximum(here, there), minlength=100)
    times = times[np.triu(np.ones((10, 10), np.bool_), 1).ravel()]
    expected = len(rows) / 45
    assert ((times - expected) ** 2 / expected).sum() < 44 + 4 * np.sqrt(2 * 44)


def test_one_household_less_changes_little() -> None:
    """Of some 9,000 that trade places, all alike; counted off in order, half of them would go elsewhere."""
    homes = households(np.arange(90_000) // 450)
    draws = Draws.of(len(homes), generator(8))
    done = swap_by_rates(homes, Rates(0.1, 0.1), draws)
    changes = []
    for row in np.flatnonzero(done.chosen)[:500:10]:
        rows = np.delete(np.arange(len(homes)), row)
        less = swap_by_rates(rows_of(homes, rows), Rates(0.1, 0.1), draws.some(rows))
        changes.append(np.count_nonzero(less.place != done.place[rows]))
    assert np.mean(changes) < 20


@pytest.mark.parametrize("rates", [Rates(), pytest.param(ALL, marks=pytest.mark.slow)], ids=str)
def test_a_million_households(rates: Rates) -> None:
    homes = county(1_000_000, 6)
    done = swapped(homes, rates, 7)
    check(homes, done)
    before, after = (np.sort(block * 100 + homes.key) for block in (homes.place, done.place))
    assert np.array_equal(before, after)
    assert done.share == pytest.approx(done.chosen.mean(), rel=0.01)


# What makes no sense is refused


@pytest.mark.parametrize(("base", "risky"), [(-0.1, 0.5), (0.2, 0.1), (0.5, 1.1), (float("nan"), 0.5)])
def test_rates_that_are_no_chances(base: float, risky: float) -> None:
    with pytest.raises(InputError, match="0 <= base <= risky <= 1"):
        Rates(base, risky)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"near": np.arange(3)}, "one row each"),
        ({"near": np.array([0, 1])}, "two values of 'near'"),
        ({"area": np.array([0, 1])}, "two values of 'area'"),
        ({"fixed": np.array([0, 1])}, "'fixed' of the households must be bool; found int64"),
        ({"near": np.array([0.5, 0.5])}, "'near' of the households must be int64; found float64"),
    ],
)
def test_households_that_make_no_sense(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)):
        replace(households([0, 0]), **changes)


@pytest.mark.parametrize("table", [np.zeros(3), np.zeros((3, 2)), np.zeros((3, 20), np.float32)])
def test_draws_that_make_no_sense(table: Any) -> None:
    with pytest.raises(InputError, match="a row of float64 for each household"):
        Draws(table, np.arange(3))


def test_every_household_needs_its_draws() -> None:
    with pytest.raises(InputError, match="2 households, 3 of draws"):
        swap_by_rates(households([0, 1]), ALL, Draws.of(3, generator()))


@pytest.mark.parametrize(("persons", "adults"), [(0, 0), (1, 2), (2, -1)])
def test_vacant_units_and_too_many_adults_have_no_key(persons: int, adults: int) -> None:
    with pytest.raises(InputError, match="at least one person"):
        alike_key(np.array([1, persons]), np.array([1, adults]))


def test_risk_needs_a_place_for_everybody() -> None:
    one = np.array([0])
    for block, unit, race in (([1], [0], [0]), ([-1], [0], [0]), ([0], [1], [0]), ([0], [-1], [0]), ([0], [0], [])):
        with pytest.raises(InputError):
            at_risk(np.array(block), one, np.array(unit), np.array(race))
