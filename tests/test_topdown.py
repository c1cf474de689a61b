"""Does noise from the top down keep its laws? Sums, whole numbers, what is held, the budget, unbiased noise.

Oracles are written here from the definitions: a quadratic programme solved by another way, queries counted cell by
cell, and the budget of persons added up again from the two that it is made of.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import lgamma, prod, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import nnls

from glasshouse.errors import GlasshouseBug, InputError
from glasshouse.mechanism.account import Allocation, Ledger, allocation
from glasshouse.mechanism.gaussian import DiscreteGaussian
from glasshouse.mechanism.sampler import simulate
from glasshouse.model.chance import chance
from glasshouse.protection.topdown.controlled import round_alone, round_children
from glasshouse.protection.topdown.least_squares import CLOSE, ENOUGH, STEPS, Answers, Fitted, fit, fit_alone
from glasshouse.protection.topdown.measurements import (
    Measure,
    Query,
    Strategy,
    cells_of,
    codes_of,
    divides,
    nested,
    possible_cells,
    query_of,
    strategy_of,
)
from glasshouse.protection.topdown.placement import place as place_people
from glasshouse.protection.topdown.topdown import Held, Sorted, TopDown, _trade
from glasshouse.scenarios.load import Scenario, load, strategy_query

Array = Any

VILLAGE = """
title = "A village: small, with structural zeros"
impossible = [{ abode = "jail", age = "0-1", reason = "no children in jail" }]
[geography]
place = "house"
unit = "street"
levels = { region = 1, city = 2, street = 3, house = 4 }
[attribute.abode]
levels = ["home", "dorm", "jail"]
codes = ["0", "1", "2"]
[attribute.age]
range = [0, 4]
[attribute.sex]
levels = ["male", "female"]
[recode]
grown = { attribute = "age", bins = "0-1 2-4" }
thirds = { attribute = "age", bins = "0-1 2 3-4" }
[measure]
grown = "grown"
thirds = "thirds"
[table]
T1 = { title = "All", level = "house", by = [] }
"""
LEVELS = ("city", "street", "house")


@pytest.fixture(scope="module")
def village(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    folder = tmp_path_factory.mktemp("village") / "village"
    folder.mkdir()
    (folder / "scenario.toml").write_text(VILLAGE, encoding="utf-8")
    return load(str(folder))


# ---------------------------------------------------------------- least squares


def objective_of(x: Array, answers: Sequence[Answers]) -> float:
    """The objective, from its definition."""
    value = 0.0
    for one in answers:
        for group in range(len(one.noisy)):
            value += one.weight * float(((x[one.group == group].sum(axis=0) - one.noisy[group]) ** 2).sum())
    return value


def slope_of(x: Array, answers: Sequence[Answers]) -> Array:
    slope = np.zeros_like(x)
    for one in answers:
        for cell in range(len(x)):
            slope[cell] += 2 * one.weight * (x[one.group == one.group[cell]].sum(axis=0) - one.noisy[one.group[cell]])
    return slope


def gap_of(x: Array, held: Array, may: Array, answers: Sequence[Answers]) -> float:
    """How much less the objective could be at most, over tables whose rows add up to what is held."""
    slope = slope_of(x, answers)
    best = sum(p * slope[row][may[row]].min() for row, p in enumerate(held) if p > 0)
    return float((slope * x).sum() - best)


def another_way(held: Array, may: Array, answers: Sequence[Answers]) -> Array:
    """A table whose rows add up, by NNLS with heavy rows, then by the normal equations on what is above 0."""
    rows, columns = may.shape
    variables = list(zip(*np.nonzero(may), strict=True))
    design, target = [], []
    for one in answers:
        for group, column in itertools.product(range(len(one.noisy)), range(columns)):
            design.append([sqrt(one.weight) * (c == column and one.group[r] == group) for r, c in variables])
            target.append(sqrt(one.weight) * one.noisy[group, column])
    sums = np.array([[float(r == row) for r, _ in variables] for row in range(rows)])
    a, b = np.array(design, float), np.array(target)
    heavy = 300 * max(np.abs(a).max(), 1e-12)
    found, _ = nnls(np.vstack([a, heavy * sums]), np.concatenate([b, heavy * held]), maxiter=30 * len(variables) + 300)
    for _ in range(len(variables)):
        some = found > 0
        top = np.hstack([a[:, some].T @ a[:, some], sums[:, some].T])
        bottom = np.hstack([sums[:, some], np.zeros((rows, rows))])
        right = np.concatenate([a[:, some].T @ b, held])
        better = np.linalg.lstsq(np.vstack([top, bottom]), right, rcond=1e-13)[0][: some.sum()]
        if (better >= 0).all():
            found = np.zeros(len(variables))
            found[some] = better
            break
        found[np.flatnonzero(some)[better <= 0]] = 0
    x = np.zeros((rows, columns))
    for (row, column), value in zip(variables, found, strict=True):
        x[row, column] = max(value, 0)
    for row in range(rows):  # exactly feasible, whatever rounding has done
        if held[row] > 0 and x[row].sum() > 0:
            x[row] *= held[row] / x[row].sum()
    return x


def problem(rng: np.random.Generator, children: int) -> tuple[int, list[Answers]]:
    cells = int(rng.integers(1, 13))
    answers = []
    for _ in range(int(rng.integers(1, 5))):
        groups = int(rng.integers(1, cells + 1))
        group = rng.integers(0, groups, cells)
        if rng.random() < 0.5:
            groups, group = cells, rng.permutation(cells)
        noisy = rng.normal(3, 10 ** rng.uniform(0, 2), (groups, children)).round()
        answers.append(Answers(group.astype(np.int64), noisy, float(10 ** rng.uniform(-2, 2))))
    return cells, answers


def single_of(cells: int, answers: Sequence[Answers]) -> float:
    return sum(one.weight for one in answers if len(set(one.group.tolist())) == cells)


def judged(found: Fitted, held: Array, may: Array, answers: Sequence[Answers]) -> None:
    """What the answer says of itself is true, by another solver."""
    scale = max(sum(one.weight * float((one.noisy**2).sum()) for one in answers), 1e-9)
    tiny = 1e-9 * scale
    assert (found.x >= 0).all() and not found.x[~may].any()
    assert np.allclose(found.x.sum(axis=1), held, rtol=1e-12, atol=1e-9)
    assert found.objective == pytest.approx(objective_of(found.x, answers), rel=1e-9, abs=tiny)
    assert found.gap == pytest.approx(max(gap_of(found.x, held, may, answers), 0), rel=1e-6, abs=tiny)
    other = another_way(held, may, answers)
    best = objective_of(other, answers)
    assert found.objective - best <= found.gap + tiny
    single = single_of(len(held), answers)
    assert np.isinf(found.off) == (single == 0)
    if single:
        assert found.off == pytest.approx(sqrt(found.gap / single), rel=1e-9)
        unsure = sqrt(max(gap_of(other, held, may, answers), 0) / single)
        assert np.linalg.norm(found.x - other) <= found.off + unsure + 1e-6


def test_least_squares_agree_with_another_solver_and_the_gap_is_true() -> None:
    rng = np.random.default_rng(1)
    late = 0
    for _ in range(250):
        children = int(rng.integers(1, 6))
        cells, answers = problem(rng, children)
        parent = np.where(rng.random(cells) < 0.2, 0, rng.integers(1, 40, cells)).astype(float)
        may = rng.random((cells, children)) < rng.choice([1.0, 0.6])
        may[np.arange(cells), rng.integers(0, children, cells)] |= parent > 0
        found = fit(parent, children, answers, may)
        judged(found, parent, may, answers)
        start = np.where(may, parent[:, None] / np.maximum(may.sum(axis=1), 1)[:, None], 0.0)
        enough = max(single_of(cells, answers) * CLOSE**2, ENOUGH * objective_of(start, answers))
        late += found.gap > enough * (1 + 1e-6) + 1e-12
        assert found.gap <= enough * (1 + 1e-6) + 1e-12 or found.steps == STEPS
    assert late <= 5  # steps are enough but for the worst of weights


def test_everybody_allowed_is_the_default_and_nowhere_is_refused() -> None:
    answers = [Answers(np.arange(2), np.array([[3.0, 1.0], [0.0, 5.0]]), 1.0)]
    parent = np.array([4.0, 5.0])
    assert np.allclose(fit(parent, 2, answers).x, [[3, 1], [0, 5]], atol=CLOSE)
    with pytest.raises(GlasshouseBug):
        fit(parent, 2, answers, np.array([[True, True], [False, False]]))
    with pytest.raises(GlasshouseBug):
        Answers(np.array([0, 2]), np.zeros((2, 1)), 1.0)
    empty = fit(np.zeros(2), 2, answers, np.array([[True, True], [False, False]]))
    assert not empty.x.any() and empty.gap == 0


def test_a_table_alone_with_a_total_agrees_with_another_solver() -> None:
    rng = np.random.default_rng(2)
    for _ in range(150):
        cells, answers = problem(rng, 1)
        may = rng.random(cells) < rng.choice([1.0, 0.7])
        may[rng.integers(cells)] = True
        total = float(rng.integers(0, 200))
        found = fit_alone(cells, answers, total, may)
        assert found.x.shape == (cells, 1) and (found.x >= 0).all() and not found.x[~may].any()
        assert found.x.sum() == pytest.approx(total, rel=1e-12, abs=1e-9)
        # the same as one cell with as many children as there are cells, each query asked of the "children"
        scale = max(sum(one.weight * float((one.noisy**2).sum()) for one in answers), 1e-9)
        slope = slope_of(found.x, answers)[:, 0]
        gap = float(slope @ found.x[:, 0] - total * slope[may].min())
        assert found.gap == pytest.approx(max(gap, 0), rel=1e-6, abs=1e-9 * scale)
        assert found.objective == pytest.approx(objective_of(found.x, answers), rel=1e-9, abs=1e-9 * scale)
        rows = [(one, group) for one in answers for group in range(len(one.noisy))]
        a = np.array([sqrt(one.weight) * (one.group == group) * may for one, group in rows], float)
        b = np.array([sqrt(one.weight) * one.noisy[group, 0] for one, group in rows])
        heavy = 1e4 * max(np.abs(a).max(), 1e-12)
        other, _ = nnls(np.vstack([a, heavy * may]), np.append(b, heavy * total), maxiter=1000)
        other *= total / other.sum() if other.sum() > 0 else 0
        if total and other.sum() == pytest.approx(total):
            assert found.objective - objective_of(other[:, None], answers) <= found.gap + 1e-9 * scale
            if np.isfinite(found.off):
                steep = slope_of(other[:, None], answers)[:, 0]
                unsure = sqrt(max(steep @ other - total * steep[may].min(), 0) / single_of(cells, answers))
                assert np.linalg.norm(found.x[:, 0] - other) <= found.off + unsure + 1e-6


def test_a_table_alone_without_a_total_is_as_good_as_that_of_another_solver() -> None:
    rng = np.random.default_rng(3)
    for _ in range(150):
        cells, answers = problem(rng, 1)
        may = rng.random(cells) < rng.choice([1.0, 0.7])
        found = fit_alone(cells, answers, None, may)
        assert (found.x >= 0).all() and not found.x[~may].any()
        rows = [(one, group) for one in answers for group in range(len(one.noisy))]
        a = np.array([sqrt(one.weight) * (one.group == group) * may for one, group in rows], float)
        b = np.array([sqrt(one.weight) * one.noisy[group, 0] for one, group in rows])
        best = float(nnls(a, b, maxiter=1000)[1] ** 2)
        assert found.objective == pytest.approx(objective_of(found.x, answers), rel=1e-9)
        tiny = 1e-9 * max(float(b @ b), 1e-9)
        assert best - tiny <= found.objective <= best * (1 + 1e-4) + 1e-4 * single_of(cells, answers) + tiny


def test_a_table_of_the_size_of_redistricting_agrees_with_another_solver(pl94: Scenario) -> None:
    rng = np.random.default_rng(0)
    truth = rng.choice(2016, 60, replace=False)[rng.integers(0, 60, 3000)]
    asked = strategy_of(pl94, allocation("pl94-2020"), ("county",)).measures["county"]
    answers = []
    for one in asked:
        noisy = one.query.counted(truth) + simulate(one.noise, one.query.groups, rng)
        answers.append(Answers(one.query.group, noisy.astype(float)[:, None], one.weight))
    found = fit_alone(2016, answers, None, np.ones(2016, np.bool_))
    a = np.vstack([sqrt(one.weight) * (one.group == np.arange(len(one.noisy))[:, None]) for one in answers])
    b = np.concatenate([sqrt(one.weight) * one.noisy[:, 0] for one in answers])
    other, rest = nnls(a, b, maxiter=20_000)
    assert found.objective == pytest.approx(rest**2, rel=1e-8)
    assert np.abs(found.x[:, 0] - other).max() < CLOSE
    total = fit_alone(2016, answers, 3000.0, np.ones(2016, np.bool_))
    assert total.off <= CLOSE and total.x.sum() == pytest.approx(3000, rel=1e-12) and total.objective >= found.objective


# ---------------------------------------------------------------- controlled rounding


def chain_of(rng: np.random.Generator, cells: int) -> list[Array]:
    """Random partitions, each finer than the one before, with the group numbers used in any order."""
    finest = rng.integers(0, int(rng.integers(1, cells + 1)), cells)
    chain = [finest]
    for _ in range(int(rng.integers(0, 3))):
        size = int(chain[0].max()) + 1
        chain.insert(0, rng.integers(0, max(size // 2, 1), size)[chain[0]])
    return [np.unique(group, return_inverse=True)[1].astype(np.int64) for group in chain]


def fractions_of(rng: np.random.Generator, cells: int, children: int) -> tuple[Array, Array]:
    """A table whose rows add up to whole numbers, in 64ths so that nothing is nearly whole."""
    parent = rng.integers(0, 6, cells)
    x = np.zeros((cells, children))
    for row in range(cells):
        cuts = np.sort(rng.integers(0, 64 * parent[row] + 1, children - 1))
        x[row] = np.diff([0, *cuts, 64 * parent[row]]) / 64
    return x, parent


def nearest(whole: Array, fraction: Array) -> bool:
    return bool((np.abs(whole - fraction) < 1).all())


def test_controlled_rounding_keeps_rows_entries_and_nested_sums() -> None:
    rng = np.random.default_rng(4)
    for _ in range(400):
        cells, children = int(rng.integers(1, 12)), int(rng.integers(1, 6))
        x, parent = fractions_of(rng, cells, children)
        chain = chain_of(rng, cells)
        found = round_children(x, parent, chain, rng)
        assert found.dtype == np.int64 and (found >= 0).all()
        assert nearest(found, x) and np.array_equal(found.sum(axis=1), parent)
        assert nearest(found.sum(axis=0), x.sum(axis=0))
        for group in chain:
            for number in range(int(group.max()) + 1):
                assert nearest(found[group == number].sum(axis=0), x[group == number].sum(axis=0))


def test_a_column_alone_is_rounded_with_its_sums() -> None:
    rng = np.random.default_rng(5)
    for turn in range(300):
        cells = int(rng.integers(1, 14))
        x = rng.integers(0, 300, cells) / 64
        total = None
        if turn % 2:
            x[-1] += np.ceil(x.sum()) - x.sum()
            total = round(x.sum())
        chain = chain_of(rng, cells)
        found = round_alone(x, total, chain, rng)
        assert nearest(found, x) and nearest(found.sum(), x.sum())
        assert total is None or found.sum() == total
        for group in chain:
            for number in range(int(group.max()) + 1):
                assert nearest(found[group == number].sum(), x[group == number].sum())
    assert round_alone(np.zeros(0), None, [], rng).shape == (0,)
    assert round_alone(np.zeros(0), 0, [], rng).shape == (0,)


def test_whole_tables_stay_as_they_are() -> None:
    rng = np.random.default_rng(6)
    x = rng.integers(0, 9, (7, 4))
    x[2] = 0
    for chain in ([], [np.array([0, 0, 1, 1, 2, 2, 2])]):
        assert np.array_equal(round_children(x.astype(float), x.sum(axis=1), chain, rng), x)
        assert np.array_equal(round_alone(x[:, 0].astype(float), int(x[:, 0].sum()), chain, rng), x[:, 0])
    nearly = x + rng.uniform(0, 1e-6, x.shape)  # as a solver leaves it
    assert np.array_equal(round_children(nearly, x.sum(axis=1), [], rng), x)
    huge = np.array([[2.0**32, 0.25, 0.75], [0.0, 0.0, 0.0]])
    found = round_children(huge, np.array([2**32 + 1, 0]), [], rng)
    assert found[0, 0] == 2**32 and found[0, 1:].sum() == 1 and not found[1].any()


def test_on_average_rounding_changes_nothing() -> None:
    rng = np.random.default_rng(7)
    for chain in ([], [np.array([0, 0, 1, 1, 1])], [np.array([0, 0, 1, 1, 1]), np.array([0, 1, 2, 2, 3])]):
        x, parent = fractions_of(rng, 5, 4)
        draws = 4000
        mean = sum(round_children(x, parent, chain, rng) for _ in range(draws)) / draws
        part = x % 1
        assert (np.abs(mean - x) <= 5 * np.sqrt(part * (1 - part) / draws) + 1e-9).all()
        alone = sum(round_alone(x[:, 0], None, chain, rng) for _ in range(draws)) / draws
        assert (np.abs(alone - x[:, 0]) <= 5 * np.sqrt((part * (1 - part))[:, 0] / draws) + 1e-9).all()


def test_the_same_chance_rounds_alike() -> None:
    x, parent = fractions_of(np.random.default_rng(8), 9, 5)
    first, again, other = (round_children(x, parent, [], np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert np.array_equal(first, again) and not np.array_equal(first, other)


def test_sums_that_do_not_nest_are_refused_where_they_show() -> None:
    x = np.array([0.25, 0.5, 0.5, 0.75])
    with pytest.raises(GlasshouseBug):
        round_alone(x, 2, [np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])], np.random.default_rng(1))


def test_sums_that_nest_are_kept_and_others_are_always_refused() -> None:
    """Any two groupings of six entries of a half: all sums that are whole stay, or rounding is refused."""
    nested = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        coarse, fine = rng.integers(0, 2, 6), rng.integers(0, 3, 6)
        if all(len(set(coarse[fine == group])) <= 1 for group in range(3)):
            nested += 1
            found = round_alone(np.full(6, 0.5), 3, [coarse, fine], rng)
            assert found.sum() == 3
            for groups in (coarse, fine):
                assert all(abs(found[groups == k].sum() - (groups == k).sum() / 2) <= 0.5 for k in set(groups))
        else:
            with pytest.raises(GlasshouseBug, match="do not nest"):
                round_alone(np.full(6, 0.5), 3, [coarse, fine], rng)
    assert 5 <= nested <= 195


def test_one_person_among_many_children_may_go_to_any() -> None:
    """`topdown` passes slack up to 2^-6, as the fit is known to 0.005 only: a row of 1/100 is then all zeros."""
    x = np.full((1, 100), 0.01)
    drawn = {
        int(round_children(x, np.array([1]), [], np.random.default_rng(seed), 2.0**-6).argmax()) for seed in range(50)
    }
    assert len(drawn) > 20


def test_small_fractions_are_not_lost_together() -> None:
    x = np.tile([0.99, 0.01], (300, 1))  # 3 of 300 people live in the second child
    for seed in range(5):
        found = round_children(x, np.ones(300, np.int64), [], np.random.default_rng(seed), 2.0**-6)
        assert found[:, 1].sum() == 3


# ---------------------------------------------------------------- placing people inside groups


def answered(rng: np.random.Generator, x: Array, weight: float) -> list[Answers]:
    """Noisy answers about every cell, and about all of them together, which tells nothing of who is who."""
    noisy = x + rng.normal(0, weight**-0.5, x.shape)
    return [Answers(np.arange(len(x)), noisy, weight), Answers(np.zeros(len(x), np.int64), noisy[:1], 9.0)]


def likely(x: Array, one: Answers) -> float:
    """The logarithm of how likely a table is: its ways times the likelihood of each."""
    return -float(sum(lgamma(n + 1) for n in x.flat) + one.weight / 2 * ((x - one.noisy) ** 2).sum())


def two_by_two(people: int = 4) -> list[Array]:
    """All tables of two cells and two children, each with so many people."""
    return [np.array([[n, people - n], [people - n, n]]) for n in range(people + 1)]


def test_placing_keeps_rows_sums_of_groups_and_where_nobody_may_be() -> None:
    rng = np.random.default_rng(11)
    moved = 0
    for turn in range(200):
        cells, children = int(rng.integers(1, 12)), int(rng.integers(1, 6))
        allowed = rng.random((cells, children)) < 0.8
        x = np.where(allowed, rng.integers(0, 5, (cells, children)), 0)
        group = chain_of(rng, cells)[-1]
        answers = answered(rng, x, float(10 ** rng.uniform(-3, 1)))[: int(rng.integers(0, 3))]
        found = place_people(x, group, answers, allowed, np.random.default_rng(turn), draw=bool(turn % 2))
        assert np.array_equal(
            found, place_people(x, group, answers, allowed, np.random.default_rng(turn), draw=bool(turn % 2))
        )
        assert (found >= 0).all() and not found[~allowed].any() and np.array_equal(found.sum(axis=1), x.sum(axis=1))
        for number in range(int(group.max()) + 1):
            assert np.array_equal(found[group == number].sum(axis=0), x[group == number].sum(axis=0))
        moved += not np.array_equal(found, x)
    assert moved > 50


@pytest.mark.parametrize("weight", [1e-6, 0.1, 1.0])
def test_people_are_drawn_as_likely_as_the_answers_make_it(weight: float) -> None:
    rng = np.random.default_rng(12)
    tables = two_by_two()
    answers = answered(rng, tables[1], weight)
    chances = np.exp([likely(x, answers[0]) for x in tables])
    chances /= chances.sum()
    draws = 4000
    found = Counter(
        int(place_people(tables[4], np.zeros(2, np.int64), answers, np.ones((2, 2), np.bool_), rng, draw=True)[0, 0])
        for _ in range(draws)
    )
    for n, expected in enumerate(chances):
        assert abs(found[n] / draws - expected) < 5 * sqrt(expected * (1 - expected) / draws) + 1e-3


def test_the_likeliest_table_is_climbed() -> None:
    rng = np.random.default_rng(13)
    tables = two_by_two(6)
    for _ in range(100):
        answers = answered(rng, tables[int(rng.integers(7))], float(10 ** rng.uniform(-4, 1)))
        start = tables[int(rng.integers(7))]
        found = place_people(start, np.zeros(2, np.int64), answers, np.ones((2, 2), np.bool_), rng, draw=False)
        assert likely(found, answers[0]) == pytest.approx(max(likely(x, answers[0]) for x in tables))


def test_noise_larger_than_counts_does_not_put_people_alike_together(village: Scenario) -> None:
    """Twelve houses, each with a man of every age, and noise of 22: who shares a house is chance; 11 of 59 are alike.

    Least squares alone put most people of an age into one house: 59% of those who shared a house were alike.
    """
    truth = {f"10a{house}": np.arange(0, 10, 2) for house in "abcdefghijkl"}
    divided = shared(
        {"street": "9999/10000", "house": "1/10000"},
        {"total": {"street": "1/2", "house": "9/10"}, "detailed": {"street": "1/2", "house": "1/10"}},
        total="100",
    )
    alike = pairs = 0
    for seed in range(20):
        out, _ = run(village, truth, divided, levels=("street", "house"), seed=seed)
        for cells in out.values():
            counts = np.bincount(cells)
            alike += int((counts * (counts - 1)).sum())
            pairs += len(cells) * (len(cells) - 1)
    assert 0.15 < alike / pairs < 0.22


# ---------------------------------------------------------------- measurements


def test_cells_and_codes_are_inverse(village: Scenario, pl94: Scenario) -> None:
    for scenario in (village, pl94, load("mdf-person")):
        shape = [len(attribute) for attribute in scenario.schema.attributes]
        cells = np.arange(prod(shape))
        codes = codes_of(scenario.schema, cells)
        assert np.array_equal(cells_of(scenario.schema, codes), cells)
        assert (codes >= 0).all() and (codes.max(axis=0) + 1).tolist() == shape
    assert codes_of(village.schema, np.empty(0, np.int64)).shape == (0, 3)
    assert cells_of(village.schema, np.array([[2, 4, 1]], np.int16)).tolist() == [29]


QUERIES = [
    "total", "sex", "grown", "thirds", "abode * sex", "sex * abode", "thirds * abode", "detailed", "abode * age * sex",
]  # fmt: skip


@pytest.mark.parametrize("name", QUERIES)
def test_groups_of_a_query_are_those_of_its_recodes(village: Scenario, name: str) -> None:
    query = query_of(village, name)
    codes = codes_of(village.schema, np.arange(30))
    keys = [
        tuple(
            next(n for n, leaf in enumerate(r.leaves) if int(row[village.schema.position[r.attribute]]) in leaf.levels)
            for r in strategy_query(village, name)
        )
        for row in codes
    ]
    assert len({(key, int(group)) for key, group in zip(keys, query.group, strict=True)}) == len(set(keys))
    assert len(set(query.group.tolist())) == len(set(keys)) == query.groups
    rng = np.random.default_rng(9)
    records = rng.integers(0, 30, 200)
    counted = query.counted(records)
    assert counted.sum() == 200 and len(counted) == query.groups
    told = Counter(keys[cell] for cell in records)
    assert all(counted[query.group[cell]] == told[keys[cell]] for cell in range(30))
    assert not query.counted(np.empty(0, np.int64)).any()


def test_every_query_of_the_budgets_divides_the_histogram(pl94: Scenario) -> None:
    for scenario, name in ((pl94, "pl94-2020"), (load("mdf-person"), "persons-2020")):
        strategy = strategy_of(scenario, allocation(name), ("state", "county", "tract", "block_group", "block"))
        assert not strategy.left_out
        for measures in strategy.measures.values():
            for one in measures:
                assert np.array_equal(np.unique(one.query.group), np.arange(one.query.groups))


def test_possible_cells_leave_out_structural_zeros(village: Scenario) -> None:
    may = possible_cells(village.schema)
    codes = codes_of(village.schema, np.arange(30))
    assert np.array_equal(may, ~((codes[:, 0] == 2) & (codes[:, 1] <= 1)))
    assert may.sum() == village.schema.size() == 26
    with pytest.raises(InputError, match="possible combinations"):
        possible_cells(load("dhc-household").schema)


def test_nested_queries_are_a_chain(village: Scenario, pl94: Scenario) -> None:
    rng = np.random.default_rng(10)
    pool = [
        (village, QUERIES),
        (pl94, ["hhgq", "hhinstlevels", "votingage", "votingage * hispanic", "hispanic * cenrace", "hhgq * votingage"]),
    ]
    for scenario, names in pool:
        for _ in range(60):
            chosen = [query_of(scenario, name) for name in rng.choice(names, int(rng.integers(1, 8)))]
            weights = rng.random(len(chosen))
            chain = nested(zip(chosen, weights, strict=True))
            assert all(divides(a, b) and not divides(b, a) for a, b in itertools.pairwise(chain))
            assert not {"total", "detailed"} & {query.name for query in chain}
            others = [(w, q) for w, q in zip(weights, chosen, strict=True) if q.name not in ("total", "detailed")]
            if others:
                heaviest = max(others, key=lambda pair: pair[0])[1]
                assert heaviest.name in {query.name for query in chain}
    assert nested([]) == []


def test_divides_says_who_is_inside_whom(village: Scenario) -> None:
    query = {name: query_of(village, name) for name in QUERIES}
    assert divides(query["grown"], query["thirds"]) and not divides(query["thirds"], query["grown"])
    assert divides(query["total"], query["sex"]) and divides(query["sex"], query["detailed"])
    assert not divides(query["sex"], query["thirds"]) and not divides(query["thirds"], query["sex"])
    assert divides(query["abode * sex"], query["sex * abode"]) and divides(query["sex * abode"], query["abode * sex"])


# ---------------------------------------------------------------- the budget


def shared(
    levels: Mapping[str, str], queries: Mapping[str, Mapping[str, str]], total: str = "1", **more: Any
) -> Allocation:
    return Allocation(
        "ours",
        "Ours",
        "",
        more.pop("neighbours", "add-remove"),
        Fraction(total),
        {level: Fraction(share) for level, share in levels.items()},
        {name: {level: Fraction(share) for level, share in q.items()} for name, q in queries.items()},
        **more,
    )


def evenly(names: Sequence[str], total: str = "1", levels: Sequence[str] = LEVELS, **more: Any) -> Allocation:
    of_level = {level: f"1/{len(levels)}" for level in levels}
    return shared(of_level, {name: {level: f"1/{len(names)}" for level in levels} for name in names}, total, **more)


def test_the_ledger_adds_up_exactly_and_is_never_overdrawn(pl94: Scenario) -> None:
    chosen = ("county", "tract", "block_group", "block")
    for scenario, name in ((pl94, "pl94-2020"), (pl94, "pl94-2020-pr"), (load("mdf-person"), "persons-2020")):
        divided = allocation(name)
        strategy = strategy_of(scenario, divided, chosen)
        spent = sum(strategy.ledger.spent.values(), Fraction(0))
        told = sum((one.rho for measures in strategy.measures.values() for one in measures), Fraction(0))
        by_hand = sum(
            divided.total * divided.levels[level] * shares.get(level, Fraction(0))
            for level in chosen
            for shares in divided.queries.values()
        )
        assert spent == told == by_hand <= divided.total
        assert strategy.ledger.left == divided.total - spent
        for measures in strategy.measures.values():
            for one in measures:
                assert one.noise.rate == pytest.approx(float(one.rho) / 2)  # change-one: two counts differ
                assert one.weight == pytest.approx(2 * one.noise.rate)
    everything = strategy_of(pl94, allocation("pl94-2020"), ("nation", "state", *chosen))
    assert everything.ledger.left == 0


def test_neighbours_can_be_chosen_and_are_never_mixed(village: Scenario) -> None:
    one = strategy_of(village, evenly(["total"]), LEVELS)
    two = strategy_of(village, evenly(["total"]), LEVELS, neighbours="change-one")
    assert one.neighbours == "add-remove" and two.neighbours == "change-one"
    assert one.measures["city"][0].noise.rate == 2 * two.measures["city"][0].noise.rate
    with pytest.raises(InputError, match="neighbour"):
        strategy_of(village, evenly(["total"]), LEVELS, neighbours="friends")


def test_what_a_budget_lacks_is_said(village: Scenario) -> None:
    with pytest.raises(InputError, match="level of the budget"):
        strategy_of(village, evenly(["total"]), ("region", *LEVELS))
    with pytest.raises(InputError, match="asks nothing at level"):
        strategy_of(village, evenly(["cenrace"]), LEVELS)
    strategy = strategy_of(village, evenly(["total", "cenrace"]), LEVELS)
    assert strategy.left_out == ("cenrace",)
    assert sum(strategy.ledger.spent.values(), Fraction(0)) == Fraction(1, 2)
    with pytest.raises(InputError, match="wider than any count"):
        strategy_of(village, evenly(["total"], "1e-18"), LEVELS)
    with pytest.raises(InputError, match="is left of"):
        strategy_of(village, shared({"house": "3/2"}, {"total": {"house": "1"}}), ("house",))
    with pytest.raises(InputError):
        Ledger(Fraction(1)).spend("x", Fraction(-1))


BUDGET = """
title = "Mine"
total = "{total}"
hold = {{ total = "{hold}" }}
[levels]
block = "{block}"
county = "1/2"
[queries.total]
block = "{total_block}"
county = "1"
[queries.detailed]
block = "1/2"
"""
GOOD = {"total": "2", "hold": "county", "block": "1/2", "total_block": "1/2"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"total": "0"}, "expected more than 0"),
        ({"total": "-1"}, "expected more than 0"),
        ({"total": "much"}, "expected a decimal or a fraction"),
        ({"block": "2/3"}, "add up to 7/6, more than 1"),
        ({"total_block": "2/3"}, "add up to 7/6, more than 1"),
        ({"total_block": "1/0"}, "expected a decimal or a fraction"),
        ({"hold": "tract"}, "held at level 'tract'; known: block, county"),
    ],
)
def test_a_budget_that_cannot_be_is_refused(tmp_path: Path, change: dict[str, str], message: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(BUDGET.format(**GOOD | change))
    with pytest.raises(InputError, match=message):
        allocation(str(path))


def test_a_budget_of_ones_own_is_read(tmp_path: Path) -> None:
    path = tmp_path / "good.toml"
    path.write_text(BUDGET.format(**GOOD))
    found = allocation(str(path))
    assert found.hold == {"total": "county"} and found.absence == {} and found.rho("block", "total") == Fraction(1, 2)


def test_a_share_below_0_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "negative.toml"
    path.write_text(
        'title = "x"\ntotal = "2"\n[levels]\nblock = "1/4"\ncounty = "1/4"\n'
        '[queries.total]\nblock = "-1/2"\ncounty = "1"\n[queries.detailed]\nblock = "3/2"\n'
    )
    with pytest.raises(InputError):
        allocation(str(path))


def test_the_budget_of_persons_is_the_sum_of_the_two_releases() -> None:
    """Golden: redistricting and DHC of 2020, query by query, in exact fractions."""
    pl, dhc, ours = (allocation(name) for name in ("pl94-2020", "dhc-persons-2020", "persons-2020"))
    renamed = {
        "hhinstlevels": "hhgq",
        "hhgq": "hhgq",
        "detailed": "hhgq * votingage * hispanic * cenrace",
    }
    spent: Counter[tuple[str, str]] = Counter()
    for query in pl.queries:
        for level in pl.levels:
            spent[level, renamed.get(query, query)] += pl.rho(level, query)  # type: ignore[assignment]
    same = {"age_18_64_116 * sex", "age_38_groups * sex", "hispanic * sex", "detailed"}
    of_dhc = {name: name for name in same} | {
        "age_18_64_116 * relgq_4_groups": "age_18_64_116 * hhgq",
        "sex * relgq_4_groups": "sex * hhgq",
    }
    forty = [query for query in dhc.queries if "age_40_groups" in query]
    assert len(forty) == 2 and set(of_dhc) <= set(dhc.queries)
    of_dhc |= dict.fromkeys(forty, "hhgq * age_38_groups * hispanic * cenrace * sex")
    left = set(dhc.queries) - set(of_dhc)
    assert len(left) == 2
    for query, name in of_dhc.items():
        for level in dhc.levels:
            if level not in ("tract_subset_group", "prim"):
                spent[level.replace("tract_subset", "tract"), name] += dhc.rho(level, query)  # type: ignore[assignment]
    told = {(level, query): ours.rho(level, query) for level in ours.levels for query in ours.queries}
    assert {key: rho for key, rho in told.items() if rho} == {key: rho for key, rho in spent.items() if rho}
    assert ours.total == sum(spent.values()) and sum(ours.levels.values()) == 1
    assert all(sum(shares.get(level, 0) for shares in ours.queries.values()) == 1 for level in ours.levels)
    assert ours.neighbours == pl.neighbours == dhc.neighbours == "change-one"


# ---------------------------------------------------------------- from the top down

Truth = dict[str, Array]


def records_of(truth: Truth) -> Sorted:
    places = tuple(sorted(truth))
    parts = [np.asarray(truth[place], np.int64) for place in places]
    return Sorted(places, np.concatenate(parts), np.cumsum([0, *map(len, parts)]).astype(np.int64))


class Looked(TopDown):
    """The same, with a note of every table on the way."""

    tables: dict[str, Array]

    def _below(self, records: Sorted, depth: int, first: int, last: int, cells: Array, counts: Array) -> Any:
        level = self.strategy.levels[depth]
        code = records.places[first][: self.lengths[level]]
        assert code not in self.tables and (counts > 0).all() and len(set(cells.tolist())) == len(cells)
        self.tables[code] = np.bincount(cells, weights=counts, minlength=len(self.possible)).astype(np.int64)
        yield from super()._below(records, depth, first, last, cells, counts)


def run(
    village: Scenario,
    truth: Truth,
    divided: Allocation,
    *,
    seed: int = 1,
    held: Held | None = None,
    levels: tuple[str, ...] = LEVELS,
) -> tuple[Truth, dict[str, Array]]:
    work = Looked(
        strategy_of(village, divided, levels),
        {level: village.geography.lengths[level] for level in levels},
        possible_cells(village.schema),
        (held or Held()).downwards(levels),
        lambda code: chance(seed, code, "topdown"),
    )
    object.__setattr__(work, "tables", {})
    out = dict(work.protect(records_of(truth)))
    assert list(out) == sorted(truth)
    return out, work.tables


def settlement(rng: np.random.Generator, people: int = 6, cities: int = 1) -> Truth:
    """A random hierarchy: only children, empty houses and empty streets among them."""
    possible = np.array([cell for cell in range(30) if not (cell // 10 == 2 and cell // 2 % 5 <= 1)])
    truth: Truth = {}
    for city in range(cities):
        for street in range(int(rng.integers(1, 5))):
            empty = rng.random() < 0.15
            for house in range(int(rng.integers(1, 5))):
                count = 0 if empty or rng.random() < 0.2 else int(rng.integers(0, 2 * people))
                liked = rng.choice(possible, int(rng.integers(1, 9)))
                truth[f"1{city}{street}{house}"] = rng.choice(liked, count)
    return truth


def counts_at(truth: Truth, query: Query, length: int) -> dict[str, list[int]]:
    found: dict[str, Array] = {}
    for place, cells in truth.items():
        code = place[:length]
        found[code] = found.get(code, 0) + query.counted(np.asarray(cells, np.int64))
    return {code: counts.tolist() for code, counts in found.items()}


def lawful(village: Scenario, truth: Truth, out: Truth, tables: dict[str, Array]) -> None:
    """Places as they were, possible records only, and every table is the sum of those below it."""
    possible = possible_cells(village.schema)
    assert set(out) == set(truth)
    assert all(possible[cells].all() for cells in out.values())
    detailed = query_of(village, "detailed")
    for length in sorted({len(code) for code in tables}):
        for code, counts in counts_at(out, detailed, length).items():
            if code in tables:
                assert counts == tables[code].tolist()
            else:
                assert not any(counts)


def test_tables_add_up_at_every_level_whatever_the_noise(village: Scenario) -> None:
    rng = np.random.default_rng(11)
    for turn in range(60):
        truth = settlement(rng, cities=int(rng.integers(1, 4)))
        names = rng.choice(["total", "sex", "grown", "abode * sex", "thirds * abode", "detailed"], 3, replace=False)
        total = ["1/100", "1", "100"][turn % 3]
        out, tables = run(village, truth, evenly([str(name) for name in names], total), seed=turn)
        lawful(village, truth, out, tables)


@pytest.mark.parametrize("query", ["total", "abode", "grown * sex", "detailed"])
@pytest.mark.parametrize("level", LEVELS)
def test_counts_that_are_held_are_exact_at_their_level_and_above(village: Scenario, query: str, level: str) -> None:
    rng = np.random.default_rng(12)
    length = village.geography.lengths
    asked = query_of(village, query)
    for seed in range(5):
        truth = settlement(rng, cities=2)
        out, tables = run(
            village, truth, evenly(["total", "sex", "detailed"], "1/2"), seed=seed, held=Held({level: asked})
        )
        lawful(village, truth, out, tables)
        for upper in LEVELS[: LEVELS.index(level) + 1]:
            assert counts_at(out, asked, length[upper]) == counts_at(truth, asked, length[upper])
        if level == "city" and query == "total":
            assert counts_at(out, asked, 4) != counts_at(truth, asked, 4)  # noise is there where nothing is held


def test_a_finer_query_may_be_held_above_a_coarser_one(village: Scenario) -> None:
    rng = np.random.default_rng(13)
    kind, total, grown = (query_of(village, name) for name in ("abode", "total", "grown"))
    for seed in range(8):
        truth = settlement(rng)
        held = Held({"street": kind, "house": total}) if seed % 2 else Held({"city": total, "house": kind})
        out, tables = run(village, truth, evenly(["sex", "detailed"], "1/2"), seed=seed, held=held)
        lawful(village, truth, out, tables)
        assert counts_at(out, total, 4) == counts_at(truth, total, 4)
        length = 3 if seed % 2 else 4
        assert counts_at(out, kind, length) == counts_at(truth, kind, length)
    with pytest.raises(InputError, match="neither divides the other"):
        Held({"street": kind, "house": grown}).downwards(LEVELS)


@pytest.mark.parametrize("query", ["abode", "abode * grown"])
@pytest.mark.parametrize("level", LEVELS)
def test_absence_is_held(village: Scenario, query: str, level: str) -> None:
    rng = np.random.default_rng(14)
    asked = query_of(village, query)
    length = village.geography.lengths[level]
    for seed in range(6):
        truth = settlement(rng, cities=2)
        held = Held({"city": query_of(village, "total")} if seed % 2 else {}, {level: asked})
        out, tables = run(village, truth, evenly(["sex", "detailed"], "1/3"), seed=seed, held=held)
        lawful(village, truth, out, tables)
        was, now = counts_at(truth, asked, length), counts_at(out, asked, length)
        assert all(not b for code in was for a, b in zip(was[code], now[code], strict=True) if not a)


def test_absence_of_two_queries_is_refused_and_of_their_product_held(village: Scenario) -> None:
    """One child may lack the one, another the other, and nobody have both: then there is no table at all."""
    kind, sex = query_of(village, "abode"), query_of(village, "sex")
    with pytest.raises(InputError, match=r"cross them, as 'abode \* sex'"):
        Held({}, {"city": kind, "house": sex}).downwards(LEVELS)
    rng, both = np.random.default_rng(15), query_of(village, "abode * sex")
    for seed in range(6):
        truth = {place: cells[cells < 10] for place, cells in settlement(rng).items()}  # everybody is at home
        out, _ = run(village, truth, evenly(["detailed"], "1/3"), seed=seed, held=Held({}, {"house": both}))
        assert counts_at(out, kind, 2)["10"][1:] == [0, 0]


def test_counts_and_absence_are_held_together_or_it_is_said(village: Scenario) -> None:
    total, kind = query_of(village, "total"), query_of(village, "abode")
    rng, done, refused = np.random.default_rng(21), 0, list[str]()
    for turn, (level, lower) in enumerate([("house", "house"), ("street", "house"), ("house", "street")] * 12):
        truth = settlement(rng, people=8)
        held = Held({level: total}, {lower: kind})
        try:
            out, _ = run(village, truth, evenly(["detailed", "total"], "20"), seed=turn, held=held)
        except InputError as error:
            refused.append(str(error))
            continue
        done += 1
        length = len(next(iter(truth))) if level == "house" else 3
        assert counts_at(out, total, length) == counts_at(truth, total, length)
        size = len(next(iter(truth))) if lower == "house" else 3
        was, now = counts_at(truth, kind, size), counts_at(out, kind, size)
        assert all(new == 0 for place in was for old, new in zip(was[place], now[place], strict=True) if old == 0)
    assert done > 20 and all("cannot both be held" in why for why in refused)


def test_somebody_moves_on_where_nobody_may_go_directly() -> None:
    """Child 0 has one too many and child 2 one too few; cell 0 is not allowed in child 2, and cell 1 not in child 0."""
    allowed = np.array([[True, True, False], [False, True, True]])
    x = np.array([[2, 0, 0], [0, 1, 0]])
    assert _trade(x, x.astype(float), np.zeros(2, np.int64), np.array([[1, 1, 1]]), allowed) == 2
    assert x.sum(axis=0).tolist() == [1, 1, 1] and x.sum(axis=1).tolist() == [2, 1] and not x[~allowed].any()
    with pytest.raises(InputError, match="nowhere for some to go"):
        _trade(
            np.array([[2, 0]]), np.zeros((1, 2)), np.zeros(1, np.int64), np.array([[1, 1]]), np.array([[True, False]])
        )


def test_with_next_to_no_noise_the_records_come_back(village: Scenario) -> None:
    rng = np.random.default_rng(16)
    for turn in range(25):
        truth = settlement(rng, people=12, cities=2)
        names = ["detailed", *rng.choice(["total", "sex", "abode * sex"], turn % 3, replace=False)]
        held = Held({"city": query_of(village, "abode")}) if turn % 2 else None
        out, _ = run(village, truth, evenly([str(name) for name in names], "3000"), seed=turn, held=held)
        assert all(Counter(out[place].tolist()) == Counter(truth[place].tolist()) for place in truth)


def test_huge_counts_come_back_too(village: Scenario) -> None:
    truth = {"1000": np.repeat([0, 7], [40_000, 3]), "1001": np.repeat([0, 9], [1, 25_000]), "1010": np.array([7])}
    out, _ = run(village, truth, evenly(["total", "detailed"], "30000"))
    assert all(Counter(out[place].tolist()) == Counter(truth[place].tolist()) for place in truth)


def test_the_seed_decides_and_the_order_of_rows_does_not(village: Scenario) -> None:
    rng = np.random.default_rng(17)
    truth = settlement(rng, people=20)
    mixed = {place: rng.permutation(cells) for place, cells in truth.items()}
    divided = evenly(["total", "sex", "detailed"], "1/2")
    first, again, other = (run(village, t, divided, seed=s)[0] for t, s in ((truth, 3), (mixed, 3), (truth, 4)))
    assert all(first[place].tolist() == again[place].tolist() for place in truth)
    assert any(first[place].tolist() != other[place].tolist() for place in truth)


def test_one_place_no_records_and_only_children(village: Scenario) -> None:
    divided = evenly(["total", "detailed"], "1")
    total = query_of(village, "total")
    one, tables = run(village, {"1000": np.array([0, 0, 5, 29])}, divided, held=Held({"house": total}))
    assert len(one["1000"]) == 4 and set(tables) == {"10", "100", "1000"}
    none, _ = run(village, {"1000": np.array([]), "1010": np.array([])}, divided, held=Held({"city": total}))
    assert not len(none["1000"]) and not len(none["1010"])
    noisy, tables = run(village, {"1000": np.array([]), "1010": np.array([])}, divided)
    lawful(village, {"1000": np.array([]), "1010": np.array([])}, noisy, tables)
    empty = Held({"city": total}, {"house": query_of(village, "abode")})
    gone, _ = run(village, {"1000": np.array([]), "1010": np.array([])}, divided, held=empty)
    assert not any(map(len, gone.values()))
    absent, _ = run(village, {"1000": np.array([]), "1010": np.array([3])}, divided, held=Held({}, empty.absence))
    assert not len(absent["1000"])
    alone, _ = run(village, {"1000": np.array([1, 2])}, evenly(["total"], "9", ["house"]), levels=("house",))
    assert set(alone) == {"1000"}


def test_only_the_total_asked_is_enough(village: Scenario) -> None:
    rng = np.random.default_rng(18)
    total = query_of(village, "total")
    for held in (None, Held({"city": total}), Held({"house": total}), Held({"house": query_of(village, "abode")})):
        truth = settlement(rng)
        out, tables = run(village, truth, evenly(["total"], "1"), held=held)
        lawful(village, truth, out, tables)
        if held is not None:
            assert counts_at(out, total, 2) == counts_at(truth, total, 2)


def test_with_hardly_any_budget_the_laws_still_hold(village: Scenario) -> None:
    rng = np.random.default_rng(19)
    truth = settlement(rng, people=8)
    total = query_of(village, "total")
    for held in (
        Held({"city": total}),
        Held({"house": total}),
        Held({"city": total}, {"house": query_of(village, "abode")}),
    ):
        out, tables = run(village, truth, evenly(["total", "sex", "detailed"], "1e-6"), held=held)
        lawful(village, truth, out, tables)
        assert counts_at(out, total, 2) == counts_at(truth, total, 2)


@pytest.mark.parametrize("rate", [0.005, 0.1, 2.0])
def test_noise_is_unbiased_and_as_wide_as_it_says(village: Scenario, rate: float) -> None:
    measure = Measure(query_of(village, "abode * sex"), Fraction(1), DiscreteGaussian(rate))
    strategy = Strategy(("house",), {"house": (measure,)}, Ledger(Fraction(1)), (), "add-remove")
    work = TopDown(strategy, {"house": 4}, possible_cells(village.schema), Held(), lambda code: chance(1, code, ""))
    truth, cells = np.repeat([0, 1, 13, 29], [7, 1, 4, 2]), np.flatnonzero(possible_cells(village.schema))
    draws = 3000
    asked = work._ask(measure, cells, [truth] * draws, *(chance(1, str(n), "t") for n in range(draws)))
    assert asked.noisy.shape == (6, draws) and asked.weight == 2 * rate
    error = asked.noisy - measure.query.counted(truth)[:, None]
    spread = measure.noise.variance
    assert spread == pytest.approx(1 / (2 * rate), rel=0.01) or rate > 1
    assert (np.abs(error.mean(axis=1)) <= 5 * sqrt(spread / draws)).all()
    assert abs(error.mean()) <= 5 * sqrt(spread / error.size)
    assert error.var() == pytest.approx(spread, rel=5 * sqrt(2 / error.size) * (1 if rate < 1 else 3))
    assert abs(np.corrcoef(error)[np.triu_indices(6, 1)]).max() < 5 / sqrt(draws)
    fewer = work._ask(measure, np.array([0, 2, 13]), [truth], chance(1, "x", "t"))  # groups that are alive only
    assert fewer.noisy.shape == (2, 1) and fewer.group.tolist() == [0, 0, 1]


def test_error_at_the_top_is_far_smaller_than_from_the_bottom_up(village: Scenario) -> None:
    rng = np.random.default_rng(20)
    truth = {f"1{0}{street}{house}": rng.choice([0, 3, 7, 11], 5) for street in range(6) for house in range(8)}
    asked = [query_of(village, name) for name in ("total", "sex", "abode", "detailed")]
    errors = {"top": np.zeros((3, 4)), "bottom": np.zeros((3, 4))}
    for seed in range(12):
        top, _ = run(village, truth, evenly(["total", "sex", "detailed"], "3/2"), seed=seed)
        divided = evenly(["total", "sex", "detailed"], "3/2", ["house"])
        bottom, _ = run(village, truth, divided, seed=seed, levels=("house",))
        for kind, out in (("top", top), ("bottom", bottom)):
            for row, length in enumerate((2, 3, 4)):
                for column, query in enumerate(asked):
                    was, now = counts_at(truth, query, length), counts_at(out, query, length)
                    errors[kind][row, column] += sum(abs(np.subtract(was[c], now[c])).sum() for c in was) / 12
    assert (errors["top"][0] < errors["bottom"][0] / 4).all(), errors
    assert errors["top"][0, 0] < errors["bottom"][0, 0] / 10, errors


def crowded(village: Scenario, *, without_dorm: bool) -> tuple[Truth, Allocation]:
    """Many houses with many people of few kinds; next to no noise in the houses, and some at the city."""
    rng = np.random.default_rng(0)
    places = [f"10{street}{house}" for street in "abcdefghijkl" for house in "abcdefghijkl"]
    truth: Truth = {place: np.repeat([0, 7, 13], rng.integers(1, 600, 3)) for place in places}
    if without_dorm:
        truth[places[0]] = np.zeros(9, np.int64)
    names = ["sex", "abode * sex", "detailed"]
    asked = {name: {"city": "1/3", "house": "1/3"} for name in names}
    return truth, shared({"city": "1/80", "house": "79/80"}, asked, "60")


def test_people_nobody_below_asks_for_are_spread_over_the_children(village: Scenario) -> None:
    """Noise at the top finds people that children, with hardly any noise, do not have: each child is as likely."""
    truth, divided = crowded(village, without_dorm=False)
    got: Counter[str] = Counter()
    for seed in range(8):
        out, _ = run(village, truth, divided, seed=seed, levels=("city", "house"))
        for place, cells in out.items():
            got[place] += int((~np.isin(cells, [0, 7, 13])).sum())
    assert sum(got.values()) > 10 and max(got.values()) < sum(got.values()) / 4


def test_absence_is_held_with_many_children_and_little_noise(village: Scenario) -> None:
    truth, divided = crowded(village, without_dorm=True)
    asked = query_of(village, "abode")
    for seed in range(8):
        out, tables = run(village, truth, divided, seed=seed, levels=("city", "house"), held=Held({}, {"house": asked}))
        lawful(village, truth, out, tables)
        assert asked.counted(out["10aa"])[1:].tolist() == [0, 0]
