"""Do households trade places with those nearby as promised? Laws, a slow twin that looks at everyone, and weights."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, replace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glasshouse.errors import InputError
from glasshouse.protection.swap import by_tiers as nearby
from glasshouse.protection.swap.by_tiers import (
    PICKING,
    RACING,
    STANDING,
    TIERS,
    USES,
    WEIGHTS,
    Homes,
    SwappedNearby,
    along_codes,
    composed_alike,
    draws_of,
    swap_by_tiers,
    tiers,
)
from glasshouse.protection.swap.households import Flags, Floats, Ints, alike_key
from glasshouse.protection.swap.quarters import redraw
from tests.often import often

SIZES = alike_key(np.array([1, 2, 2, 3]), np.array([1, 1, 2, 2]))
seeds = st.integers(0, 2**32)
rates = st.sampled_from([0.0, 0.05, 0.3, 0.7, 1.0])


def random_homes(seed: int, count: int, blocks: int, states: int = 1, kinds: int = 2, fixed: float = 0.0) -> Homes:
    """Households of some kinds in blocks; states are runs of blocks."""
    rng = np.random.default_rng(seed)
    block = rng.integers(0, blocks, count)
    return Homes(
        block,
        block * states // blocks,
        SIZES[rng.integers(0, kinds, count)],
        rng.integers(0, len(TIERS), count),
        rng.random(count) < fixed,
    )


def draws_for(count: int, seed: int = 1) -> Floats:
    return np.random.default_rng(seed).random((count, USES))


def on_a_grid(seed: int, blocks: int, side: int = 4) -> Floats:
    """Few different places, so that many distances are equal, and at times blocks lie on each other."""
    return np.random.default_rng(seed).integers(0, side, (blocks, 2)).astype(np.float64)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Homes, Floats, Floats]:
    seed, count, blocks = draw(seeds), draw(st.integers(0, 40)), draw(st.integers(1, 12))
    homes = random_homes(
        seed, count, blocks, draw(st.integers(1, 3)), draw(st.integers(1, 4)), draw(st.sampled_from([0, 0.3]))
    )
    return homes, on_a_grid(seed, blocks, draw(st.sampled_from([1, 4, 50]))), draws_for(count, seed)


def by_looking_at_everyone(homes: Homes, where: Floats, rate: float, draws: Floats, nearest: int) -> tuple[Ints, Flags]:
    """The same swap in plain words: partners, and who asked for one."""
    partner, asked = np.full(len(homes), -1, np.int64), np.zeros(len(homes), np.bool_)
    time = -np.log1p(-draws[:, RACING]) / WEIGHTS[homes.tier]
    for state in set(homes.area.tolist()):
        everyone = [row for row in range(len(homes)) if homes.area[row] == state]
        free = {row for row in everyone if not homes.fixed[row]}
        left = int(rate * len(everyone) / 2 + 0.5)
        for row in sorted(free, key=lambda row: (time[row], row)):
            if not left:
                break
            if row not in free:
                continue
            asked[row] = True
            others = [
                (*_apart(where, homes, row, other), draws[other, STANDING], other)
                for other in free
                if homes.key[other] == homes.key[row] and homes.place[other] != homes.place[row]
            ]
            if others:
                candidates = [other for *_, other in sorted(others)[:nearest]]
                other = candidates[int(draws[row, PICKING] * len(candidates))]
                partner[row], partner[other] = other, row
                free -= {row, other}
                left -= 1
    return partner, asked


def _apart(where: Floats, homes: Homes, row: int, other: int) -> tuple[float, int]:
    x, y = where[homes.place[row]] - where[homes.place[other]]
    return float(x * x + y * y), int(homes.place[other])


@settings(max_examples=often(150))
@given(cases(), rates, st.sampled_from([1, 2, 5]), st.sampled_from([1, 3, 64]))
def test_it_is_the_swap_in_plain_words(
    case: tuple[Homes, Floats, Floats], rate: float, nearest: int, listed: int
) -> None:
    """Also when few blocks are listed beforehand, and the others searched."""
    homes, where, draws = case
    with mock.patch.object(nearby, "LISTED", listed):
        found = swap_by_tiers(homes, where, rate, draws, nearest)
    partner, asked = by_looking_at_everyone(homes, where, rate, draws, nearest)
    assert found.partner.tolist() == partner.tolist()
    assert found.chosen.tolist() == asked.tolist()
    assert found.unmatched == int((asked & (partner < 0)).sum())


@settings(max_examples=often(100))
@given(cases(), rates)
def test_what_holds_of_every_swap(case: tuple[Homes, Floats, Floats], rate: float) -> None:
    """Convention 28: counts of every block stay, who is fixed stays, nobody leaves the state."""
    homes, where, draws = case
    found = swap_by_tiers(homes, where, rate, draws)
    moved = np.flatnonzero(found.partner >= 0)
    other = found.partner[moved]
    assert (found.partner[other] == moved).all()  # an involution
    assert (found.place[moved] == homes.place[other]).all() and (found.place[moved] != homes.place[moved]).all()
    assert (homes.key[moved] == homes.key[other]).all() and (homes.area[moved] == homes.area[other]).all()
    assert not homes.fixed[moved].any()
    before, after = (
        Counter(zip(block.tolist(), homes.key.tolist(), strict=True)) for block in (homes.place, found.place)
    )
    assert before == after
    stay = found.partner < 0
    assert (found.place[stay] == homes.place[stay]).all() and (found.distance[stay] == 0).all()
    assert found.distance[moved] == pytest.approx(np.hypot(*(where[homes.place[moved]] - where[homes.place[other]]).T))
    for state in np.unique(homes.area):
        here = homes.area == state
        assert (found.partner[here] >= 0).sum() <= rate * here.sum() + 1
    if rate == 0:
        assert found.moved == 0 and not found.chosen.any()
    assert (found.place[other] == homes.place[moved]).all()  # the same exchange again undoes it


@settings(max_examples=often(60))
@given(cases(), rates, seeds)
def test_the_order_of_rows_does_not_matter(case: tuple[Homes, Floats, Floats], rate: float, seed: int) -> None:
    homes, where, draws = case
    mixed = np.random.default_rng(seed).permutation(len(homes))
    one = swap_by_tiers(homes, where, rate, draws)
    two = swap_by_tiers(
        Homes(*(getattr(homes, field.name)[mixed] for field in fields(homes))), where, rate, draws[mixed]
    )
    assert (two.place == one.place[mixed]).all() and (two.chosen == one.chosen[mixed]).all()
    same = one.partner[mixed]
    assert (np.where(two.partner >= 0, np.append(mixed, -1)[two.partner], -1) == same).all()


@pytest.mark.parametrize("rate", [0, 0.02, 0.1, 0.26, 0.5, 0.9])
def test_the_rate_is_reached_within_a_pair(rate: float) -> None:
    homes = random_homes(3, 5001, 200, kinds=4)
    found = swap_by_tiers(homes, on_a_grid(3, 200, 100), rate, draws_for(5001))
    assert abs(found.moved - rate * 5001) <= 1 and found.share == found.moved / 5001
    # in every state apart: one does not know of the other
    two = random_homes(4, 5000, 200, states=2, kinds=4)
    where, draws = on_a_grid(3, 200, 100), draws_for(5000)
    both = swap_by_tiers(two, where, rate, draws)
    for state in (0, 1):
        here = np.flatnonzero(two.area == state)
        assert abs(int((both.partner[here] >= 0).sum()) - rate * len(here)) <= 1
        alone = Homes(*(getattr(two, field.name)[here] for field in fields(two)))
        assert (swap_by_tiers(alone, where, rate, draws[here]).place == both.place[here]).all()


def test_at_rate_one_only_those_stay_who_have_nobody() -> None:
    homes = random_homes(5, 2001, 50, kinds=4, fixed=0.1)
    found = swap_by_tiers(homes, on_a_grid(5, 50, 20), 1, draws_for(2001))
    left = np.flatnonzero((found.partner < 0) & ~homes.fixed)
    for key in np.unique(homes.key):  # whoever is left of a kind is in one block
        assert len(set(homes.place[left[homes.key[left] == key]])) <= 1
    assert found.unmatched == len(left) < 10
    assert (found.partner[homes.fixed] < 0).all()


def test_one_block_and_nobody() -> None:
    alone = replace(random_homes(1, 10, 1), place=np.zeros(10, np.int64))
    found = swap_by_tiers(alone, np.zeros((1, 2)), 1, draws_for(10))
    assert found.moved == 0 and found.unmatched == 10
    nobody = swap_by_tiers(random_homes(1, 0, 1), np.zeros((0, 2)), 1, draws_for(0))
    assert nobody.moved == 0 and nobody.share == 0


def test_the_more_exposed_move_more_often() -> None:
    """At a low rate those who get their turn do so in the ratio of the weights: 10 to 6 to 3 to 1."""
    count = 40_000
    homes = replace(random_homes(7, count, 400, kinds=1), tier=np.arange(count) % 4)
    where, chosen, moved = on_a_grid(7, 400, 1000), np.zeros(4), np.zeros(4)
    for seed in range(5):
        found = swap_by_tiers(homes, where, 0.02, draws_for(count, seed))
        chosen += np.bincount(homes.tier[found.chosen], minlength=4)
        moved += np.bincount(homes.tier[found.partner >= 0], minlength=4)
    assert chosen.sum() == 5 * 400
    assert chosen / chosen.sum() == pytest.approx(WEIGHTS / WEIGHTS.sum(), abs=0.04)
    assert (np.diff(moved) < 0).all()


def test_partners_are_near() -> None:
    """Of many alike, the partner is one of the five nearest; each as often."""
    blocks = 101
    where = np.column_stack([np.arange(blocks), np.zeros(blocks)]).astype(np.float64)
    one_each = np.arange(blocks)
    homes = Homes(
        one_each, np.zeros(blocks, np.int64), np.ones(blocks, np.int64), np.full(blocks, 3), np.zeros(blocks, np.bool_)
    )
    homes.tier[50] = 0
    partners: Counter[int] = Counter()
    for seed in range(600):
        draws = draws_for(blocks, seed)
        draws[50, RACING] = 0  # first to the line
        found = swap_by_tiers(homes, where, 2 / blocks, draws)
        partners[int(found.partner[50])] += 1
    assert set(partners) == {47, 48, 49, 51, 52}  # 47 and 53 are as far: the lower code comes first
    assert max(partners.values()) < 160 and min(partners.values()) > 80


def test_tiers_are_those_of_the_footnote() -> None:
    count = 2000
    rng = np.random.default_rng(1)
    risk, alike, in_block = rng.random(count) < 0.1, rng.integers(1, 30, count), rng.integers(1, 300, count)
    tie = rng.random(count)
    state = np.arange(count) % 2
    found = tiers(state, risk, alike, in_block, tie)
    for here in (state == 0, state == 1):
        assert np.bincount(found[here]).tolist() == [5, 195, 300, 500]
        rank = sorted(np.flatnonzero(here), key=lambda row: (not risk[row], alike[row], in_block[row], tie[row]))
        assert (np.diff(found[rank]) >= 0).all()
    assert found[risk].max() <= 1  # a tenth is at risk: all of it before all others
    assert sum(size / 1000 * weight for size, (_, weight) in zip([5, 195, 300, 500], TIERS, strict=True)) == (
        pytest.approx(0.262)  # what the weights would move as chances
    )
    assert tiers(*(column[:1] for column in (state, risk, alike, in_block, tie))).tolist() == [0]
    assert tiers(*(column[:0] for column in (state, risk, alike, in_block, tie))).tolist() == []


def test_alike_is_size_adults_and_the_set_of_cells_in_the_tract() -> None:
    #                   0      1      2         3      4      5
    members: Any = [[1, 1], [1, 1], [1, 2], [2, 1], [1, 1], [1, 1]]
    tract, adults = np.array([0, 0, 0, 0, 1, 0]), np.array([2, 2, 2, 2, 2, 1])
    household = np.repeat(np.arange(6), 2)
    found = composed_alike(tract, np.full(6, 2), adults, household, np.array(members).ravel())
    assert found.tolist() == [2, 2, 2, 2, 1, 1]
    # three persons: the set counts, not how many have each; and many different cells are told apart
    cell = np.array([5, 5, 6, 5, 6, 6, *range(126), *range(1, 127)])
    household = np.repeat(np.arange(4), [3, 3, 126, 126])
    size = np.bincount(household)
    assert composed_alike(np.zeros(4, np.int64), size, size, household, cell).tolist() == [2, 2, 1, 1]
    nothing = np.empty(0, np.int64)
    assert composed_alike(nothing, nothing, nothing, nothing, nothing).tolist() == []


@given(st.lists(st.integers(1, 9), min_size=1, max_size=8))
def test_codes_put_the_own_tract_first_then_tracts_in_order(sizes: list[int]) -> None:
    tract = np.repeat(np.arange(len(sizes)), sizes)
    line = along_codes(tract)
    for block in range(len(tract)):
        order = np.argsort(np.abs(line[:, 0] - line[block, 0]), kind="stable")
        assert (np.diff(np.abs(tract[order] - tract[block])) >= 0).all()
        mine = order[tract[order] == tract[block]]
        assert (np.diff(np.abs(mine - block)) >= 0).all()
    assert (line[:, 1] == 0).all()


def test_draws_belong_to_names() -> None:
    some, more = draws_of(["a", "b"], 1), draws_of(["c", "b", "a", ""], 1)
    assert (some == more[[2, 1]]).all() and (draws_of(["a"], 2) != some[0]).all()
    many = draws_of(map(str, range(20_000)), 3)
    assert many.shape == (20_000, USES) and (many >= 0).all() and (many < 1).all()
    assert many.mean(axis=0) == pytest.approx(0.5, abs=0.01) and np.corrcoef(many.T) == pytest.approx(
        np.eye(USES), abs=0.04
    )


@pytest.mark.parametrize(
    ("change", "pattern"),
    [
        ({"rate": 1.1}, "from 0 to 1"),
        ({"rate": float("nan")}, "from 0 to 1"),
        ({"nearest": 0}, "at least 1"),
        ({"draws": draws_for(3)}, "draws"),
        ({"where": np.zeros((4, 3))}, "two coordinates"),
        ({"where": np.zeros((2, 2))}, "two coordinates"),
    ],
)
def test_what_is_refused(change: dict[str, Any], pattern: str) -> None:
    asked: dict[str, Any] = {"where": np.zeros((4, 2)), "rate": 0.5, "draws": draws_for(30)} | change
    with pytest.raises(InputError, match=pattern):
        swap_by_tiers(random_homes(1, 30, 4), **asked)


def test_households_are_checked() -> None:
    homes = random_homes(1, 5, 2)
    for change in ({"tier": np.full(5, 4)}, {"place": np.full(5, -1)}, {"key": np.zeros(4, np.int64)}):
        with pytest.raises(InputError, match="households"):
            replace(homes, **change)
    with pytest.raises(InputError, match="order of their codes"):
        along_codes(np.array([1, 0]))
    with pytest.raises(InputError, match="every person"):
        composed_alike(*[np.zeros(1, np.int64)] * 4, np.zeros(2, np.int64))


def test_nobody_is_moved_says_so() -> None:
    still = SwappedNearby(np.full(2, -1), np.zeros(2, np.int64), np.zeros(2), np.ones(2, np.bool_), 2)
    assert (still.moved, still.share) == (0, 0)


def test_residents_get_cells_of_their_county_and_age() -> None:
    rng = np.random.default_rng(2)
    county = np.repeat([0, 1, 2], [400, 300, 6])
    state = np.zeros(706, np.int64)
    adult = rng.random(706) < 0.7
    adult[-6:] = True
    cell = np.where(adult, 10, 20) + county  # tells where a donor was
    found = redraw(county, state, adult, cell, rng.random(706))
    assert (found.cell[:-6] == cell[:-6]).all()
    assert found.from_wide == 6 and set(found.cell[-6:]) <= {10, 11, 12}
    # shares stay about as they were; the order of rows does not matter
    cell, draw = rng.integers(0, 4, 706), rng.random(706)
    drawn = redraw(county, state, adult, cell, draw)
    assert np.bincount(drawn.cell) / 706 == pytest.approx(np.bincount(cell) / 706, abs=0.08)
    mixed = rng.permutation(706)
    again = redraw(county[mixed], state[mixed], adult[mixed], cell[mixed], draw[mixed])
    assert (again.cell == drawn.cell[mixed]).all()
    none = np.empty(0, np.int64)
    assert redraw(none, none, none > 0, none, np.empty(0)).cell.tolist() == []
    with pytest.raises(InputError, match="one row each"):
        redraw(county, state, adult, cell, draw[1:])
