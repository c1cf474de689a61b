"""Do the pieces keep their promises? Folding, inclusions, differences, dives and warm relaxations, each on its own."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, sparse

from glasshouse.program.dive import dive
from glasshouse.program.highs import Kept, relax
from glasshouse.program.integer import Limit
from glasshouse.program.numbers import linked as linking
from glasshouse.program.numbers.fold import Folded, fold
from glasshouse.program.numbers.inclusion import FAMILIES, inclusions
from glasshouse.program.reduce import split
from glasshouse.program.tables.rows import differences_of
from tests.number_toys import Ints, number_toys, odd_toy
from tests.test_numbers import bounds, linked_of


def incidences(count: int, seed: int) -> list[Ints]:
    """Random sets of cells: some alike in structure (grids), some not, none empty, no two the same."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(count):
        if rng.random() < 0.5:
            rows, columns = rng.integers(1, 4, 2)
            sets = np.concatenate([np.kron(np.eye(rows), np.ones(columns)), np.kron(np.ones(rows), np.eye(columns))])
            sets = sets[rng.random(len(sets)) < 0.9]
            sets = np.concatenate([sets, rng.integers(0, 2, (rng.integers(0, 2), rows * columns))])
        else:
            sets = (rng.random((rng.integers(1, 7), rng.integers(1, 9))) < rng.choice([0.2, 0.4, 0.7])).astype(float)
        sets = np.unique(sets[sets.any(axis=1)], axis=0).astype(np.int64)
        found.append(sets[rng.permutation(len(sets))])
    return found


def has_counts(times: Ints, sums: Ints) -> bool:
    """Are there whole counts with these sums?"""
    if not times.size:
        return not sums.any()
    found = optimize.milp(
        np.zeros(times.shape[1]), integrality=np.ones(times.shape[1]),
        constraints=optimize.LinearConstraint(times, sums, sums),
    )  # fmt: skip
    return bool(found.status == 0)


def test_folding_loses_nothing_and_adds_nothing() -> None:
    """Counts have sums that fit what is folded; and whatever fits what is folded are the sums of some counts."""
    rng, merged = np.random.default_rng(1), 0
    for sets in incidences(120, 1):
        heavy = rng.integers(0, 3, (rng.integers(0, 2), sets.shape[1])) if rng.random() < 0.3 else sets[:0]
        every = np.concatenate([sets, heavy])
        plain = np.arange(len(every)) < len(sets)
        folded = fold(sparse.csr_matrix(every), plain)
        cells = folded.members.toarray()
        merged += bool(folded.parts)
        # counts to sums
        x = rng.integers(0, 4, every.shape[1])
        sums = [*(every @ x)]
        for parts in folded.parts:
            sums.append(sum(sums[part] for part in parts))
        assert np.array_equal(
            cells @ np.bincount(folded.of, x, cells.shape[1]).astype(np.int64), np.array(sums)[folded.top]
        )
        # sums to counts
        for _ in range(3):
            told = np.full(len(sums), -1)
            told[folded.top] = cells @ rng.integers(0, 3, cells.shape[1])
            for number in range(len(folded.parts) - 1, -1, -1):
                parts = folded.parts[number]
                share = rng.multinomial(told[folded.rows + number], np.full(len(parts), 1 / len(parts)))
                told[parts] = share
            assert (told >= 0).all()
            assert has_counts(every, told[: folded.rows])
    assert merged > 30


def test_folded_or_not_the_ends_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    toys = [*number_toys(30, 4000), odd_toy(1), odd_toy(10)]
    every = [(linked_of(toy).width, bounds(toy)) for toy in toys]

    def unfolded(members: sparse.csr_matrix, plain: object) -> Folded:
        rows, cells = members.shape
        return Folded(rows, (), np.arange(rows), members.tocsr(), np.arange(cells))

    monkeypatch.setattr(linking, "fold", unfolded)
    assert sum(linked_of(toy).width for toy in toys) > sum(width for width, _ in every)
    for toy, (_, folded) in zip(toys, every, strict=True):
        plain = bounds(toy)
        assert plain.fits == folded.fits
        if plain.fits == 1:
            assert np.array_equal(plain.low, folded.low) and np.array_equal(plain.high, folded.high)


def test_rows_that_are_not_needed_follow() -> None:
    """The same ends without them, by an independent engine: no row is needed but those that are called so."""
    for toy in [*number_toys(12, 4100), odd_toy(3)]:
        linked = linked_of(toy)
        programs = linked.programs(toy.lower[None], toy.upper[None])
        fewer = linked.programs(toy.lower[None], toy.upper[None], needed=True)
        rows = sparse.csr_matrix(
            (programs.coefficient, programs.index, programs.starts), shape=(len(programs.row_lower), linked.width)
        )
        kept = sparse.csr_matrix(
            (fewer.coefficient, fewer.index, fewer.starts), shape=(len(fewer.row_lower), linked.width)
        )
        for row in np.flatnonzero(~linked.equations.needed)[:12]:
            for sign in (1, -1) if not linked.equations.loose[row] else (-1,):
                cost = sign * rows[[row]].toarray().reshape(-1)
                bounds_ = optimize.Bounds(np.zeros(linked.width), np.full(linked.width, 1000))
                found = optimize.milp(
                    cost, bounds=bounds_, constraints=optimize.LinearConstraint(kept, fewer.row_lower, fewer.row_upper)
                )
                assert found.status == 0 and abs(found.fun) < 1e-6


def test_every_inclusion_is_true_and_every_largest_set_inside_is_told_of() -> None:
    told = 0
    for sets in incidences(150, 2):
        inside: dict[int, set[int]] = {}
        for one in inclusions(sparse.csr_matrix(sets)):
            together = sets[list(one.parts)].sum(axis=0)
            assert one.around not in one.parts and len(set(one.parts)) == len(one.parts)
            assert (together <= sets[one.around]).all()
            assert one.whole == np.array_equal(together, sets[one.around])
            inside.setdefault(one.around, set()).update(one.parts)
            told += 1
        for around, outer in enumerate(sets):
            within = [at for at, inner in enumerate(sets) if at != around and (inner <= outer).all()]
            largest = {
                at for at in within if not any(other != at and (sets[at] <= sets[other]).all() for other in within)
            }
            assert len(largest) > FAMILIES or inside.get(around, set()) == largest
    assert told > 100


def test_sets_are_the_sums_of_differences_none_of_which_contains_another() -> None:
    for sets in [*incidences(150, 3), np.empty((0, 3), np.int64), np.zeros((1, 2), np.int64)]:
        found = differences_of(sparse.csr_matrix(sets))
        members, sums = found.members.toarray(), found.sums.toarray()
        assert np.array_equal(sums @ members, sets)
        assert np.isin(members, (0, 1)).all() and np.isin(sums, (0, 1)).all() and members.any(axis=1).all()
        for at, inner in enumerate(members):
            assert not any((inner <= outer).all() for other, outer in enumerate(members) if other != at)


def test_what_a_dive_returns_fits() -> None:
    rng, returned, granted = np.random.default_rng(4), 0, 0
    for toy in [*number_toys(40, 4200), *(odd_toy(seed) for seed in range(6))]:
        whole = split(linked_of(toy).programs(toy.lower[None], toy.upper[None]), np.zeros(1, np.bool_))
        for number in range(len(whole.parts)):
            part = whole.parts.only(number)
            count, system = len(part.lower), part.system
            for _ in range(4):
                wishes = rng.permutation(count)[: rng.integers(0, count + 1)]
                near = rng.integers(-3, 12, count)
                values = np.where(rng.random(len(wishes)) < 0.5, part.lower[wishes], part.upper[wishes])
                limits = part.lower.copy(), part.upper.copy()
                x = dive(part, wishes, values, near, rng.permutation(count))
                assert np.array_equal(part.lower, limits[0]) and np.array_equal(part.upper, limits[1])
                assert part.system is system
                if x is not None:
                    assert part.fit(x).all()
                    returned += 1
                    granted += bool(len(wishes)) and bool(x[wishes[0]] == values[0])
    assert returned > 50 and granted > 20


def test_a_dive_near_a_solution_is_that_solution() -> None:
    rng, none, again = np.random.default_rng(6), np.empty(0, np.int64), 0
    for toy in number_toys(30, 4300):
        programs = linked_of(toy).programs(toy.lower[None], toy.upper[None])
        near = rng.integers(0, 5, len(programs.lower))
        x = dive(programs, none, none, near, rng.permutation(len(near)))
        if x is not None:
            same = dive(programs, none, none, x, rng.permutation(len(x)))
            assert same is not None and np.array_equal(same, x)
            again += 1
    assert again > 5


def test_a_kept_relaxation_says_what_a_fresh_one_says() -> None:
    rng, limit, compared = np.random.default_rng(5), Limit(), 0
    for toy in [*number_toys(25, 4400), odd_toy(1), odd_toy(3), odd_toy(10)]:
        programs = linked_of(toy).programs(toy.lower[None], np.minimum(toy.upper, 50)[None])
        program = programs.integer_program(np.zeros(len(programs.lower), np.int64))
        kept = Kept(program)
        for _ in range(5):
            cost = rng.integers(0, 4, len(program.cost)) * (rng.random(len(program.cost)) < 0.5)
            warm = kept.relax(cost, limit)
            cold = relax(programs.integer_program(cost), limit)
            assert warm.status == cold.status
            if warm.x is not None and cold.x is not None and cold.duals is not None:
                assert warm.duals is not None
                assert abs(cost @ warm.x - cost @ cold.x) < 1e-6
                compared += 1
    assert compared > 50
