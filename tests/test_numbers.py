"""Are the ends of published numbers right? An independent model on random toys, laws, and one test for each bug."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from scipy import linalg, sparse

from glasshouse.model.records import UNLIMITED
from glasshouse.model.release import counted
from glasshouse.program.highs import highs
from glasshouse.program.integer import IntegerProgram, Limit, Outcome, Proof, Solution
from glasshouse.program.ladder import CLIMB, ORDER, Ladder
from glasshouse.program.numbers import ends as rungs
from glasshouse.program.numbers.ends import ends
from glasshouse.program.numbers.linked import Linked, Numbers, link, numbers_of
from glasshouse.program.reduce import split
from glasshouse.program.tables.cells import partition
from tests import oracles
from tests.number_toys import Ints, NumberToy, Sums, answer, by_programs, number_toy, number_toys, odd_toy

EXACT, UNDECIDED = ORDER.index(Proof.EXACT), ORDER.index(Proof.UNDECIDED)


class Found(NamedTuple):
    """What the core says of each number of a place."""

    fits: int
    low: Ints
    high: Ints
    met_low: Ints
    met_high: Ints
    proof: Ints  # the weaker of both ends


def linked_of(toy: NumberToy) -> Linked:
    names = tuple(f"n{number}" for number in range(len(toy.times)))
    sums = tuple((whole, np.array(parts, np.int64)) for whole, parts in toy.sums)
    return link(Numbers(names, sparse.csr_matrix(toy.times), sums))


def asked(linked: Linked, lower: Ints, upper: Ints, ladder: Ladder = CLIMB) -> list[Found]:
    """The ends of all numbers at each place (a row of limits each)."""
    places, variables = len(lower), np.unique(linked.number)
    wanted = (np.arange(places)[:, None] * linked.width + variables[None, :]).reshape(-1)
    whole = split(linked.programs(lower, upper), np.zeros(places, np.bool_))
    found = ends(whole, wanted, np.tile(linked.equations.needed, places), ladder)
    arrays = (found.low, found.high, found.met_low, found.met_high, np.maximum(found.low_proof, found.high_proof))
    by_place = [array.reshape(places, len(variables))[:, linked.number] for array in arrays]
    return [Found(int(found.fits[place]), *(array[place] for array in by_place)) for place in range(places)]


def bounds(toy: NumberToy, ladder: Ladder = CLIMB) -> Found:
    return asked(linked_of(toy), toy.lower[None], toy.upper[None], ladder)[0]


def toy_of(times: Sequence[Sequence[int]], lower: Sequence[int], upper: Sequence[int], sums: Sums = ()) -> NumberToy:
    cells = len(times[0]) if times else 0
    return NumberToy(
        np.array(times, np.int64).reshape(len(times), cells), np.array(lower, np.int64), np.array(upper, np.int64),
        None, sums,
    )  # fmt: skip


def agrees(toy: NumberToy, *, decided: bool = True) -> bool:
    """Does the core say what the oracle says? Whether anything fits, and both ends of every number.

    Without `decided`, ends may be left open: CP-SAT confirms no least of a weighted number whose cells have no limit.
    """
    found, known = bounds(toy), answer(toy)
    assert found.fits == (1 if known.fits else -1)
    if known.fits:
        sure = found.proof != UNDECIDED
        assert sure.all() or not decided
        assert np.array_equal(found.low[sure], known.low[sure]) and np.array_equal(found.high[sure], known.high[sure])
        assert (found.low <= known.low).all() and (known.high <= found.high).all()
        assert np.array_equal(found.met_low, known.low) and np.array_equal(found.met_high, known.high)
    else:
        assert (found.met_low == -1).all() and (found.met_high == -1).all()
    if toy.truth is not None:
        assert known.fits
    return known.fits


def wholeness_matters(toy: NumberToy) -> bool:
    """Do fractions go further, even if their ends are rounded to whole numbers?"""
    whole, fractions = answer(toy), by_programs(toy, whole=False)
    if whole.fits != fractions.fits:
        return True
    return whole.fits and bool((whole.low != fractions.low).any() or (whole.high != fractions.high).any())


# An independent model


def test_ends_are_those_of_an_independent_model() -> None:
    fits = [agrees(toy) for toy in number_toys(35)]
    assert fits.count(False) >= 3


def test_ends_are_whole_where_fractions_go_further() -> None:
    toys = [odd_toy(seed) for seed in (1, 3, 10, 30, 42, 64, 80)]
    assert all(agrees(toy) for toy in toys)
    assert sum(wholeness_matters(toy) for toy in toys) >= 5


@pytest.mark.slow
def test_ends_of_thousands_of_toys() -> None:
    fits = [agrees(toy, decided=False) for toy in number_toys(3000, 10_000)]
    assert fits.count(False) > 200
    assert sum(wholeness_matters(toy) for toy in number_toys(1000, 10_000)) > 10
    assert all(agrees(odd_toy(seed)) for seed in range(1000, 1400))


def test_an_odd_ring_of_pairs_that_hold_one_each_fits_fractions_only() -> None:
    """And so do three attributes whose margins say the same."""
    for size in (3, 5, 7):
        ring = np.eye(size, dtype=np.int64) + np.roll(np.eye(size, dtype=np.int64), 1, axis=1)
        toy = toy_of(ring.tolist(), [1] * size, [1] * size)
        assert by_programs(toy, whole=False).fits and not agrees(toy)
        assert agrees(toy_of(ring.tolist(), [1] * size, [1] * (size - 1) + [2]))


def test_numbers_of_tables_are_those_of_brute_force() -> None:
    """All lines of random tables, printed or not, over every histogram that fits."""
    for sort in ("exact", "interval", "tallied"):
        for toy in oracles.toys(sort, 25, 24):
            predicates = [one for table in toy.tables for line in table.lines for one in counted(table, line)]
            numbers = numbers_of(partition(toy.schema, predicates), toy.tables)
            lower, upper = np.zeros((2, len(toy.counts.places), len(numbers.names)), np.int64)
            upper += UNLIMITED
            for at, name in enumerate(numbers.names):
                if name in toy.counts.column:
                    lower[:, at] = toy.counts.lower[:, toy.counts.column[name]]
                    upper[:, at] = toy.counts.upper[:, toy.counts.column[name]]
            masks = toy.masks(toy.tables, replace(toy.counts, variables=numbers.names, lower=lower, upper=upper))
            for found, every in zip(asked(link(numbers), lower, upper), toy.alone, strict=True):
                sums = np.stack([every[:, list(masks[name])].sum(axis=1) for name in numbers.names])
                assert found.fits == 1
                assert np.array_equal(found.low, sums.min(axis=1)) and np.array_equal(found.high, sums.max(axis=1))


def test_sums_of_tables_are_sums_of_cells() -> None:
    for toy in oracles.toys("tallied", 20, 7):
        predicates = [one for table in toy.tables for line in table.lines for one in counted(table, line)]
        numbers = numbers_of(partition(toy.schema, predicates), toy.tables)
        for whole, parts in numbers.sums:
            assert (numbers.times[[whole]] != numbers.times[parts].sum(axis=0)).sum() == 0


# Laws


def test_the_truth_is_inside_and_what_is_said_is_met() -> None:
    for toy in number_toys(60, 500):
        found = bounds(toy)
        if toy.truth is not None:
            exact = toy.times @ toy.truth
            assert found.fits == 1
            assert (found.low <= exact).all() and (exact <= found.high).all()
        if found.fits == 1:
            assert (found.low >= toy.lower).all() and (found.high <= np.minimum(toy.upper, UNLIMITED)).all()


def test_knowing_more_never_widens() -> None:
    rng = np.random.default_rng(5)
    for toy in number_toys(40, 700):
        if toy.truth is None or not len(toy.lower):
            continue
        before, after = bounds(toy), bounds(toy.narrowed(rng))
        assert (before.low <= after.low).all() and (after.high <= before.high).all()
        kept = np.sort(rng.permutation(len(toy.lower))[: rng.integers(1, len(toy.lower) + 1)])
        fewer = bounds(toy.only(kept))
        assert (fewer.low <= before.low[kept]).all() and (before.high[kept] <= fewer.high).all()


def test_order_and_duplicates_do_not_matter() -> None:
    rng = np.random.default_rng(6)
    for toy in number_toys(40, 800):
        if not len(toy.lower):
            continue
        plain = bounds(toy)
        order = np.concatenate([rng.permutation(len(toy.lower)), rng.integers(0, len(toy.lower), 3)])
        other = bounds(toy.only(order).with_cells(rng.permutation(toy.times.shape[1])))
        assert plain.fits == other.fits
        if plain.fits == 1:
            assert np.array_equal(plain.low[order], other.low) and np.array_equal(plain.high[order], other.high)


def test_places_do_not_know_of_each_other() -> None:
    rng = np.random.default_rng(7)
    for toy in number_toys(15, 900):
        lower = np.stack([toy.lower, toy.lower + rng.integers(-1, 2, len(toy.lower)), toy.lower])
        upper = np.stack([toy.upper, np.minimum(toy.upper, lower[1] + 2), np.full_like(toy.upper, UNLIMITED)])
        linked = linked_of(toy)
        together = asked(linked, lower, upper)
        for place, found in enumerate(together):
            alone = asked(linked, lower[[place]], upper[[place]])[0]
            assert found.fits == alone.fits
            if alone.fits == 1:
                assert np.array_equal(found.low, alone.low) and np.array_equal(found.high, alone.high)


def test_numbers_side_by_side_do_not_know_of_each_other() -> None:
    """Two systems on cells of their own are two parts: each has the ends that it has alone."""
    for seed in range(950, 965):
        one, other = number_toy(seed), number_toy(seed + 1000)
        both = NumberToy(
            np.asarray(linalg.block_diag(one.times, other.times)).astype(np.int64),
            np.concatenate([one.lower, other.lower]),
            np.concatenate([one.upper, other.upper]),
        )
        found, first, second = bounds(both), bounds(one), bounds(other)
        assert found.fits == min(first.fits, second.fits)
        if found.fits == 1:
            assert np.array_equal(found.low, np.concatenate([first.low, second.low]))
            assert np.array_equal(found.high, np.concatenate([first.high, second.high]))


def test_asking_for_some_says_the_same_of_them() -> None:
    rng = np.random.default_rng(8)
    for toy in number_toys(20, 980):
        linked, plain = linked_of(toy), bounds(toy)
        if plain.fits != 1 or not len(toy.lower):
            continue
        chosen = rng.integers(0, len(toy.lower), 3)
        wanted, where = np.unique(linked.number[chosen], return_inverse=True)
        whole = split(linked.programs(toy.lower[None], toy.upper[None]), np.zeros(1, np.bool_))
        found = ends(whole, wanted, linked.equations.needed)
        assert np.array_equal(found.low[where], plain.low[chosen])
        assert np.array_equal(found.high[where], plain.high[chosen])


def test_large_counts_have_ends_as_small_ones_do() -> None:
    """Millions, rounded: too many to list, and steps of propagation that are too many to take."""
    rng = np.random.default_rng(9)
    for toy in number_toys(5, 1200):
        truth = rng.integers(0, 3_000_000, toy.times.shape[1])
        exact = toy.times @ truth
        lower, upper = exact - rng.integers(0, 5, len(exact)), exact + rng.integers(0, 5, len(exact))
        hidden = rng.random(len(exact)) < 0.4
        large = NumberToy(toy.times, np.where(hidden, 0, lower), np.where(hidden, UNLIMITED, upper), truth, toy.sums)
        found, known = bounds(large), by_programs(large)
        assert found.fits == 1
        assert np.array_equal(found.low, known.low) and np.array_equal(found.high, known.high)


def test_with_little_effort_less_is_known_and_nothing_is_wrong() -> None:
    lazy = Ladder(guided=0, engines=(), limit=Limit(effort=1e-9))
    toys = [*number_toys(8, 300), *(odd_toy(seed) for seed in (10, 30, 42))]
    undecided = 0
    for toy in toys:
        found, known = bounds(toy, lazy), answer(toy)
        assert found.fits in ((0, 1) if known.fits else (0, -1))
        if known.fits:
            assert (found.low <= known.low).all() and (known.high <= found.high).all()
        if found.fits == 1:
            assert (known.low <= found.met_low).all() and (found.met_high <= known.high).all()
            undecided += int((found.proof == UNDECIDED).sum())
            proved = found.proof == EXACT
            assert np.array_equal(found.low[proved], known.low[proved])
            assert np.array_equal(found.high[proved], known.high[proved])
        else:
            assert (found.met_low == -1).all()
    assert undecided


def test_what_was_met_outweighs_engines_that_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two engines that agreed on a falsehood hid solutions that were met later."""
    _only_solvers(monkeypatch)

    def any_will_do(program: IntegerProgram, limit: Limit) -> Solution:
        if not limit.branches:
            return Solution(Outcome.STOPPED)
        x = highs(program.without_cost(), limit).x
        return Solution(Outcome.OPTIMAL, x) if x is not None else Solution(Outcome.INFEASIBLE)

    def blind(program: IntegerProgram, limit: Limit) -> Solution:
        return Solution(Outcome.INFEASIBLE)

    for seed in (10, 30, 42, 64, 80, 88, 92, 98):
        found, known = bounds(odd_toy(seed), Ladder(engines=(any_will_do, blind))), answer(odd_toy(seed))
        assert found.fits == 1
        assert (found.low <= found.met_low).all() and (found.met_high <= found.high).all()
        assert (known.low <= found.met_low).all() and (found.met_high <= known.high).all()


def _only_solvers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither lists nor dives: every end is asked for."""
    for name in ("ROUNDS", "FACES", "STEPS"):
        monkeypatch.setattr(rungs, name, 0)


def test_every_rung_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    toys = [*number_toys(25, 2000), *(odd_toy(seed) for seed in (1, 10, 30, 42))]
    every = [bounds(toy) for toy in toys]
    _only_solvers(monkeypatch)
    for toy, plain in zip(toys, every, strict=True):
        solved = bounds(toy)
        assert solved.fits == plain.fits
        if plain.fits == 1:
            assert np.array_equal(solved.low, plain.low) and np.array_equal(solved.high, plain.high)
            assert np.array_equal(solved.met_low, plain.low) and np.array_equal(solved.met_high, plain.high)
    monkeypatch.setattr(rungs, "RELAXED", -1)
    for toy, plain in zip(toys, every, strict=True):
        if plain.fits == 1:
            rough = bounds(toy)
            assert (rough.low <= plain.low).all() and (plain.high <= rough.high).all()
            assert (plain.low <= rough.met_low).all() and (rough.met_high <= plain.high).all()
            unmet = (rough.low != rough.met_low) | (rough.high != rough.met_high)
            assert np.array_equal(rough.proof == UNDECIDED, unmet)


# Edges


def test_small_systems() -> None:
    none = toy_of([], [], [])
    assert bounds(none).fits == 1 and len(bounds(none).low) == 0
    assert agrees(NumberToy(np.zeros((2, 0), np.int64), np.zeros(2, np.int64), np.array([4, UNLIMITED])))
    assert not agrees(NumberToy(np.zeros((2, 0), np.int64), np.ones(2, np.int64), np.array([4, UNLIMITED])))
    for times in (0, 1, 2, 3):
        for low in range(5):
            for high in (low - 1, low, low + 1, UNLIMITED):
                agrees(toy_of([[times]], [low], [high]))
                agrees(toy_of([[times], [0], [times]], [low, 0, 0], [high, 3, 3]))


def test_no_places_and_numbers_that_nobody_limits() -> None:
    for toy in number_toys(10, 40):
        linked = linked_of(toy)
        nobody = np.empty((0, len(toy.lower)), np.int64)
        assert asked(linked, nobody, nobody) == []
        open_ = replace(toy, lower=np.zeros_like(toy.lower), upper=np.full_like(toy.upper, UNLIMITED))
        found = bounds(open_)
        counts_something = toy.times.any(axis=1)
        assert (found.low == 0).all()
        assert (found.high[counts_something] == UNLIMITED).all() and (found.high[~counts_something] == 0).all()


# Bugs


def test_a_number_may_be_the_sum_of_two_that_are_one_set() -> None:
    """The equation named one variable twice, which a program refuses: two tallied groups that hold the same people."""
    rng = np.random.default_rng(0)
    cells = np.eye(8, dtype=np.int64)
    inside = rng.integers(0, 2, (6, 8))
    times = np.concatenate([inside, inside[:1], 2 * inside[:1], np.ones((1, 8), np.int64), cells])
    exact = times @ np.full(8, 3)
    toy = toy_of(times.tolist(), np.maximum(exact - 4, 0).tolist(), (exact + 4).tolist(), ((7, (0, 6)),))
    starts, index = linked_of(toy).equations.starts, linked_of(toy).equations.index
    for first, last in pairwise(starts):
        assert len(np.unique(index[first:last])) == last - first
    found = bounds(toy)
    assert found.fits == 1
    assert found.low[7] == 2 * found.low[0] == 2 * found.low[6]
    assert found.high[7] == 2 * found.high[0]


def test_what_nothing_limits_has_no_limit() -> None:
    """UNLIMITED was taken for a number: less of it was left for one number as another was large, or counted twice."""
    for times, lower in (
        ([[1, 0], [0, 1], [1, 1]], [5, 0, 0]),
        ([[1, 0], [0, 1], [2, 1]], [0, 0, 7]),
        ([[1, 0], [0, 1]], [5, 0]),
        ([[3]], [0]),
        ([[2, 2], [1, 0], [3, 1]], [1, 0, 0]),
    ):
        found = bounds(toy_of(times, lower, [UNLIMITED] * len(times)))
        assert (found.high == UNLIMITED).all() and (found.met_high == UNLIMITED).all(), times


def test_what_one_number_limits_keeps_its_limit_among_those_without() -> None:
    found = bounds(
        toy_of([[1, 0, 0], [1, 1, 0], [0, 1, 1], [1, 1, 1]], [0, 3, 2, 0], [UNLIMITED, 6, UNLIMITED, UNLIMITED])
    )
    assert found.low.tolist() == [0, 3, 2, 3]
    assert found.high.tolist() == [6, 6, UNLIMITED, UNLIMITED]
    assert found.met_low.tolist() == found.low.tolist()


def test_parity_is_seen_where_nothing_is_limited() -> None:
    """Every cell counts twice: an odd number is out of the question."""
    found = bounds(toy_of([[2, 2], [1, 0], [3, 1]], [1, 0, 0], [UNLIMITED] * 3))
    assert found.low[0] == found.met_low[0] == 2
    assert found.proof[0] != UNDECIDED


def test_no_number_is_below_0_whatever_its_interval() -> None:
    """A number that is a single cell was as low as its interval, and let others be larger than all together."""
    found = bounds(toy_of([[1, 0], [0, 1], [1, 1]], [-2, 0, 1], [3, 5, 1]))
    assert found.low.tolist() == found.met_low.tolist() == [0, 0, 1]
    assert found.high.tolist() == found.met_high.tolist() == [1, 1, 1]
    assert bounds(toy_of([[1, 0], [0, 1], [1, 1]], [-2, 0, 1], [-1, 5, 1])).fits == -1


def test_times_may_name_a_cell_twice_or_say_that_it_is_not_counted() -> None:
    """As scipy allows; a cell named twice was counted once."""
    value, cell, starts = [1, 1, 1, 0], [0, 0, 1, 0], [0, 2, 4]
    times = sparse.csr_matrix((value, cell, starts), shape=(2, 2))
    linked = link(Numbers(("a", "b"), times))
    found = asked(linked, np.array([[1, 1]]), np.array([[3, 4]]))[0]
    assert (found.low.tolist(), found.high.tolist()) == ([2, 1], [2, 4])
    assert times.data.tolist() == value  # and is left as it was


def test_numbers_that_share_no_cell_stay_apart() -> None:
    """Folding made one cell of two that stand in one row each, and with it one part of unrelated tables."""
    linked = linked_of(toy_of(np.eye(4, dtype=np.int64).tolist(), [0] * 4, [9] * 4))
    assert not len(linked.equations.index)
    two = np.kron(np.eye(2, dtype=np.int64), [[1, 1, 0], [0, 1, 1]])
    linked = linked_of(toy_of(two.tolist(), [0] * 4, [9] * 4))
    whole = split(linked.programs(np.full((1, 4), 1), np.full((1, 4), 3)), np.zeros(1, np.bool_))
    assert (np.diff(whole.parts.row_first) > 0).sum() == 2
