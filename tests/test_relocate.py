"""Is the front the front? Laws, two linear programs and duality as oracles, the paper's tables, and odd matrices."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from glasshouse.errors import InputError
from glasshouse.protection.relocation.flow import Sweep
from glasshouse.protection.relocation.front import (
    Coverage,
    Front,
    Matrix,
    Point,
    Relocation,
    Rules,
    Spread,
    Weight,
    capacities,
    duality_gap,
    expected,
    front,
    full_lp,
    loads,
    moves,
    protection,
    reduced_lp,
    sampled,
    staying,
    utility,
    verify,
)
from tests.conftest import DATA
from tests.often import often

FRANKLIN = DATA / "franklin" / "tract_ver.csv"
needs_franklin = pytest.mark.skipif(not FRANKLIN.is_file(), reason="needs ../shared/data/franklin")
SUPER_LINEAR = (Weight.INVERSE_QUADRATIC, Weight.INVERSE_CUBIC, Weight.EXPONENTIAL)


def matrix_of(counts: Any) -> Matrix:
    counts = np.array(counts)
    return Matrix(tuple(f"k{k}" for k in range(len(counts))), tuple(f"i{i}" for i in range(counts.shape[1])), counts)


@cache
def franklin() -> Matrix:
    with FRANKLIN.open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    return Matrix(tuple(head[1:]), tuple(r[0] for r in rows), np.array([[int(v) for v in r[1:]] for r in rows]).T)


@st.composite
def problems(draw: st.DrawFn, structured: bool = False) -> tuple[Matrix, Rules]:
    """Small matrices with many counts at risk and little room; any weight and coverage unless `structured`."""
    rows, places = draw(st.integers(1, 5)), draw(st.integers(1, 7))
    counts = st.sampled_from([0, 1, 1, 2, 2, 3, 4, 5, 6, 8, 20])
    matrix = matrix_of(draw(st.lists(st.lists(counts, min_size=places, max_size=places), min_size=rows, max_size=rows)))
    room = st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0, 4.25, 7.0])
    capacity = np.array(draw(st.lists(room, min_size=places, max_size=places)))
    rules = Rules(draw(st.integers(0, 4)), capacity, draw(st.sampled_from(SUPER_LINEAR)))
    if structured:
        return matrix, rules
    table = draw(st.none() | st.lists(st.integers(0, 8), min_size=6, max_size=6))
    weight: Weight | Callable[[Any], Any] = draw(st.sampled_from(list(Weight)))
    if table is not None:
        weight = lambda c: np.array(table, float)[c.astype(int)]  # noqa: E731
    near = draw(st.none() | st.lists(st.booleans(), min_size=places**2, max_size=places**2))
    matrix_near = None if near is None else np.array(near).reshape(places, places)
    return matrix, replace(rules, weight=weight, coverage=draw(st.sampled_from(list(Coverage))), near=matrix_near)


shares = st.floats(0, 1, width=32)


def close(one: float, two: float, scale: float, precision: float = 1e-9) -> bool:
    return abs(one - two) <= precision * max(scale, 1)


def agrees_with_lp(matrix: Matrix, rules: Rules, found: Front, qs: Any, lp: Any = reduced_lp) -> None:
    for q in qs:
        point = found.at_share(q)
        assert close(point.P, lp(matrix, rules, point.U).P, found.P_max)


# Oracles


@settings(max_examples=often(100))
@given(problems(structured=True), shares)
def test_the_flow_is_the_reduced_program(problem: tuple[Matrix, Rules], q: float) -> None:
    matrix, rules = problem
    found = front(matrix, rules)
    assert found.method == "flow"
    end = reduced_lp(matrix, rules)
    assert close(found.P_max, end.P, end.P) and abs(found.U_min - end.U) < 1e-7
    agrees_with_lp(matrix, rules, found, [q])


@settings(max_examples=often(150))
@given(problems(), shares)
def test_so_it_is_with_any_weight_and_any_coverage(problem: tuple[Matrix, Rules], q: float) -> None:
    matrix, rules = problem
    found = front(matrix, rules)
    assert close(found.P_max, reduced_lp(matrix, rules).P, found.P_max)
    agrees_with_lp(matrix, rules, found, [q])


@settings(max_examples=often(120))
@given(problems(), shares)
def test_the_reduced_program_is_the_one_printed(problem: tuple[Matrix, Rules], q: float) -> None:
    matrix, rules = problem
    end = full_lp(matrix, rules)
    assert close(end.P, reduced_lp(matrix, rules).P, end.P)
    epsilon = 1 - q * (1 - end.U)
    assert close(full_lp(matrix, rules, epsilon).P, reduced_lp(matrix, rules, epsilon).P, end.P)


@pytest.mark.slow
@settings(max_examples=often(40))
@given(problems(), shares)
def test_bisection_on_slopes_finds_the_same_front(problem: tuple[Matrix, Rules], q: float) -> None:
    matrix, rules = problem
    flow, lp = front(matrix, rules), front(matrix, rules, method="lp")
    assert (lp.method, lp.why) == ("lp", "asked for")
    assert close(flow.P_max, lp.P_max, flow.P_max)
    point = flow.at_share(q)
    assert close(point.P, lp.at_utility(point.U).P, flow.P_max, 1e-8)
    there = lp.at_share(q)
    relocation = lp.relocation(there)
    assert close(protection(matrix, rules.weight, relocation), there.P, lp.P_max, 1e-8)
    assert duality_gap(matrix, rules, lp, there) < 1e-7


@settings(max_examples=often(250))
@given(problems(), shares)
def test_duality_leaves_no_gap(problem: tuple[Matrix, Rules], q: float) -> None:
    matrix, rules = problem
    found = front(matrix, rules)
    corners = [Point(float(p), float(u)) for p, u in zip(found.P, found.U, strict=True)]
    assert verify(matrix, rules, found, [found.at_share(q), *corners]) < 1e-10


def test_duality_sees_a_front_that_is_not_the_best() -> None:
    matrix = matrix_of([[1, 9, 4], [1, 9, 0]])
    rules = Rules(1, capacities(matrix, 1))
    poor = front(matrix, replace(rules, capacity=np.array([0.0, 0.0, 1.0])))
    assert duality_gap(matrix, rules, poor, poor.at_share(1)) > 0.01
    with pytest.raises(InputError, match="too many"):
        duality_gap(matrix, replace(rules, capacity=np.zeros(3)), poor, poor.at_share(1))


def test_people_are_rerouted_where_a_capacity_binds() -> None:
    """Both rows prefer place 2. The second row can go nowhere else, so the first gives way; a greedy fill stops."""
    matrix = matrix_of([[1, 0, 20, 10], [0, 1, 5, 0]])
    rules = Rules(1, np.array([0.0, 0.0, 1.0, 1.0]))
    found = front(matrix, rules)
    assert isinstance(found.traced, Sweep) and (found.traced.arc_sign < 0).any()
    assert found.P_max == 2
    assert found.U.tolist() == pytest.approx([1, 1 - 1.05 / 8, 1 - (2 + 0.1 + 0.2) / 8])


def test_a_count_gives_way_to_a_smaller_one_of_another_row() -> None:
    """Room for one. First a pair's half goes far into a large element, then the single one whose target is small."""
    matrix = matrix_of([[2, 0, 1000], [0, 1, 3]])
    constant = Rules(2, np.array([0.0, 0.0, 1.0]), lambda c: np.where(c == 1, 1.0, 0.9))
    found = front(matrix, constant)
    assert isinstance(found.traced, Sweep) and (found.traced.end >= 0).any()
    assert found.P.tolist() == pytest.approx([0, 0.9, 1])
    agrees_with_lp(matrix, constant, found, np.linspace(0, 1, 11), full_lp)


@pytest.mark.slow
def test_so_it_is_in_thousands_of_matrices() -> None:
    """Larger ones, half of them with capacities that are no whole numbers; many reroute, and some give up people."""
    rng, rerouted, given_up = np.random.default_rng(1), 0, 0
    for number in range(5000):
        rows, places = rng.integers(2, 9), rng.integers(3, 16)
        matrix = matrix_of(rng.choice([0, 1, 1, 2, 3, 4, 5, 7, 9, 30], size=(rows, places)))
        room = rng.integers(0, 5, places) * (1.0 if number % 2 else 0.77)
        rules = Rules(int(rng.integers(1, 5)), room, list(Weight)[number % 5], list(Coverage)[number % 3 == 0])
        found = front(matrix, rules)
        assert isinstance(found.traced, Sweep)
        rerouted += bool((found.traced.arc_sign < 0).any())
        given_up += bool((found.traced.end >= 0).any())
        agrees_with_lp(matrix, rules, found, [rng.random(), 1.0])
    assert rerouted > 1000 and given_up > 100


# Laws


@settings(max_examples=often(250))
@given(problems(), shares, st.sampled_from(list(Spread)))
def test_relocations_keep_the_rules(problem: tuple[Matrix, Rules], q: float, spread: Spread) -> None:
    matrix, rules = problem
    found = front(matrix, rules)
    point = found.at_share(q)
    relocation = found.relocation(point, spread)
    assert close(protection(matrix, rules.weight, relocation), point.P, found.P_max)
    assert abs(utility(matrix, relocation) - point.U) < 1e-9
    stay, after = staying(matrix, relocation), expected(matrix, relocation)
    assert np.all((stay >= 0) & (stay <= 1)) and np.all(relocation.leaving <= 1 + 1e-12)
    assert np.all(after >= 0) and np.allclose(after.sum(axis=1), matrix.counts.sum(axis=1), rtol=1e-12)
    assert np.all(loads(matrix, relocation) <= rules.capacity + 1e-8)
    here = matrix.counts[relocation.combination, relocation.source]
    assert np.all((here >= 1) & (here <= rules.risk))
    assert np.all(rules.receives(matrix)[relocation.combination, relocation.target])
    if rules.near is not None:
        near = rules.near.toarray()
        assert np.all(near[relocation.source, relocation.target])


@settings(max_examples=often(250))
@given(problems())
def test_a_front_is_concave_and_falls(problem: tuple[Matrix, Rules]) -> None:
    found = front(*problem)
    assert (found.P[0], found.U[0]) == (0, 1)
    assert np.all(np.diff(found.P) > 0) and np.all(np.diff(found.U) < 0)
    slopes = np.diff(1 - found.U) / np.diff(found.P)
    assert np.all(np.diff(slopes) > -1e-9)
    for q in (0.0, 0.3, 1.0):
        point = found.at_share(q)
        assert close(point.P, found.at_utility(point.U).P, found.P_max)
    assert found.at_utility(found.U_min - 1) == found.at_share(1) == Point(found.P_max, found.U_min)


@given(problems(), st.floats(0, 5), shares)
def test_more_room_never_makes_it_worse(problem: tuple[Matrix, Rules], more: float, q: float) -> None:
    matrix, rules = problem
    tight, wide = front(matrix, rules), front(matrix, replace(rules, capacity=rules.capacity + more))
    point = tight.at_share(q)
    assert min(0, wide.at_utility(point.U).P - point.P) == pytest.approx(0, abs=1e-9 * max(1, tight.P_max))


@settings(max_examples=often(100))
@given(problems(structured=True), shares)
def test_lower_counts_of_a_row_go_first_with_super_linear_weights(problem: tuple[Matrix, Rules], q: float) -> None:
    matrix, rules = problem
    found = front(matrix, rules)
    relocation = found.relocation(found.at_share(q))
    stay = staying(matrix, relocation)
    for row in range(matrix.shape[0]):
        gone = [matrix.counts[row, i] for i in range(matrix.shape[1]) if stay[row, i] < 1 - 1e-9]
        here = matrix.counts[row]
        assert not np.any((here > 0) & (here < max(gone, default=0)) & (stay[row] > 1e-9))


@given(problems(structured=True), shares)
def test_whole_empties_and_even_spares_nobody(problem: tuple[Matrix, Rules], q: float) -> None:
    """Equal P and U, two relocations: one with the most empty elements, one with the fewest that no chance moves."""
    matrix, rules = problem
    found = front(matrix, rules)
    whole, even = (found.relocation(found.at_share(q), spread) for spread in Spread)
    assert np.sum(whole.leaving == 1) >= np.sum(even.leaving == 1)
    assert len(whole.leaving) <= len(even.leaving)
    for relocation in (whole, even):  # the same people of each combination leave
        people = np.bincount(relocation.combination, relocation.people(matrix), minlength=matrix.shape[0])
        assert people == pytest.approx(np.bincount(whole.combination, whole.people(matrix), minlength=matrix.shape[0]))


@given(problems(), shares, st.integers(0, 2**32))
def test_a_draw_keeps_totals_and_is_repeatable(problem: tuple[Matrix, Rules], q: float, seed: int) -> None:
    matrix, rules = problem
    found = front(matrix, rules)
    relocation = found.relocation(found.at_share(q))
    one, two = (sampled(matrix, relocation, np.random.default_rng(seed)) for _ in range(2))
    assert np.array_equal(one.counts, two.counts)
    assert np.array_equal(one.counts.sum(axis=1), matrix.counts.sum(axis=1))
    drawn = moves(matrix, relocation, np.random.default_rng(seed))
    assert drawn.arrivals(matrix.shape[1]).sum() == drawn.count.sum()
    emptied = relocation.first[relocation.leaving == 1]
    left = matrix.counts.copy()
    np.subtract.at(left, (drawn.combination, drawn.source), drawn.count)
    assert not left[relocation.combination[emptied], relocation.source[emptied]].any()


def test_draws_are_unbiased() -> None:
    matrix = matrix_of([[3, 3, 2, 40, 9], [1, 2, 30, 5, 0]])
    rules = Rules(3, np.array([0, 0, 1.5, 2.25, 1.0]))
    found = front(matrix, rules)
    relocation = found.relocation(found.at_share(0.9), Spread.EVEN)
    rng = np.random.default_rng(7)
    draws = np.array([sampled(matrix, relocation, rng).counts for _ in range(4000)])
    deviation = (draws.mean(axis=0) - expected(matrix, relocation)) / np.maximum(draws.std(axis=0) / 4000**0.5, 1e-9)
    assert np.abs(deviation).max() < 4.5
    drawn = moves(matrix, relocation, rng)
    assert drawn.excess(rules.capacity) == pytest.approx(np.maximum(drawn.arrivals(5) - rules.capacity, 0))


# Odd matrices, odd rules


@pytest.mark.parametrize(
    ("counts", "risk", "room"),
    [
        ([[1, 5], [2, 6]], 0, 5),  # nobody at risk
        ([[1, 5], [2, 6]], 2, 0),  # no room
        ([[1, 2], [2, 1]], 2, 5),  # no candidate anywhere
        ([[0, 0], [0, 0]], 2, 5),  # nobody at all
        (np.zeros((0, 3), int), 2, 5),
        (np.zeros((2, 0), int), 2, 5),
    ],
)
def test_where_nothing_can_be_gained_the_front_is_a_point(counts: Any, risk: int, room: float) -> None:
    matrix = matrix_of(counts) if len(counts) else Matrix((), ("a", "b", "c"), counts)
    rules = Rules(risk, capacities(matrix, room))
    for method in ("flow", "lp"):
        found = front(matrix, rules, method)  # type: ignore[arg-type]
        assert (found.P.tolist(), found.U.tolist()) == ([0.0], [1.0])
        relocation = found.relocation(found.at_share(1))
        assert len(relocation) == 0 and np.array_equal(expected(matrix, relocation), matrix.counts)
        assert np.array_equal(sampled(matrix, relocation, np.random.default_rng(1)).counts, matrix.counts)
        assert verify(matrix, rules, found, [found.at_share(0.5)]) == pytest.approx(0)


def test_an_empty_row_changes_the_average_alone() -> None:
    counts = [[1, 9, 4], [2, 7, 30]]
    one, two = (front(matrix_of(c), Rules(2, np.full(3, 2.0))) for c in (counts, [*counts, [0, 0, 0]]))
    assert np.allclose(two.P, one.P, rtol=1e-12)
    assert np.allclose((1 - two.U) * 9, (1 - one.U) * 6, rtol=1e-12)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Matrix(("k",), ("a", "a"), np.array([[1, 2]])), "place 'a' is listed twice"),
        (lambda: Matrix(("k", "k"), ("a",), np.array([[1], [2]])), "combination 'k' is listed twice"),
        (lambda: matrix_of([[1, -2]]), "negative; found -2"),
        (lambda: matrix_of([[1, 2.5]]), "whole numbers of people; found 2.5"),
        (lambda: matrix_of([["1", "x"]]), "whole numbers"),
        (lambda: matrix_of([[1.0, np.nan]]), "whole numbers"),
        (lambda: Matrix(("k",), ("a",), np.array([[1, 2]])), "a row for each combination"),
        (lambda: Rules(-1, np.ones(2)), "lambda"),
        (lambda: Rules(1.5, np.ones(2)), "lambda"),  # type: ignore[arg-type]
        (lambda: Rules(1, np.array([1, -1.0])), "capacities"),
        (lambda: Rules(1, np.array([1, np.inf])), "capacities"),
        (lambda: Rules(1, np.ones(2), near=np.ones((3, 3))), "near"),
        (lambda: front(matrix_of([[1, 2]]), Rules(1, np.ones(3))), "2 places, 3 capacities"),
        (lambda: front(matrix_of([[1, 2]]), Rules(1, np.ones(2), lambda c: -c)), "weights"),
        (lambda: front(matrix_of([[1, 2]]), Rules(1, np.ones(2)), "sort"), "'flow' or 'lp'"),  # type: ignore[arg-type]
        (lambda: capacities(matrix_of([[1, 2]]), [1, 2, 3]), "one for each of 2 places"),
        (lambda: capacities(matrix_of([[1, 2]])), "say either"),
        (lambda: front(matrix_of([[1, 2]]), Rules(1, np.ones(2))).at_share(2), "share from 0 to 1"),
        (lambda: front(matrix_of([[1, 2]]), Rules(1, np.ones(2))).at_utility(float("nan")), "above 1"),
        (lambda: front(matrix_of([[1, 2]]), Rules(1, np.ones(2))).relocation(Point(3, 1)), "not on the front"),
    ],
)
def test_what_cannot_be_is_refused(build: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        build()


def test_capacities_can_follow_the_population() -> None:
    matrix = matrix_of([[1, 9], [3, 7]])
    assert capacities(matrix, share=0.5).tolist() == [2, 8]
    assert capacities(matrix, [4, 5]).tolist() == [4, 5]
    assert matrix_of([[1.0, 2.0]]).counts.dtype == np.int64  # whole numbers in a float column


def test_near_may_be_sparse_and_many_elements_are_left_to_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = matrix_of([[1, 9, 4, 1], [2, 7, 30, 8]])
    near = np.eye(4, k=1, dtype=bool) | np.eye(4, k=-1, dtype=bool)
    dense, sparse = (Rules(2, np.full(4, 1.5), near=n) for n in (near, csr_array(near)))
    flow = front(matrix, dense)
    assert np.array_equal(flow.P, front(matrix, sparse).P)
    monkeypatch.setattr("glasshouse.protection.relocation.front.MOST_GROUPS", 2)
    lp = front(matrix, sparse)
    assert lp.method == "lp" and lp.why.startswith("3 elements")
    assert np.allclose(lp.P, flow.P) and np.allclose(lp.U, flow.U)


# The paper


@pytest.mark.parametrize(
    ("weight", "first", "second"),
    [
        (Weight.CONSTANT, 2, 1.2),
        (Weight.INVERSE_LINEAR, 1, 1),
        (Weight.INVERSE_QUADRATIC, 0.67, 0.93),
        (Weight.INVERSE_CUBIC, 0.56, 0.91),
        (Weight.EXPONENTIAL, 0.26, 0.35),
    ],
)
def test_table_1(weight: Weight, first: float, second: float) -> None:
    """As printed, with t = 1 throughout: the coverage rule would not let anyone go to an element that is at risk."""
    matrix = matrix_of([[1, 4], [3, 1]])
    for shares_, printed in (((0.5, 0.5), first), ((0.9, 0.1), second)):
        relocation = Relocation(np.array([0, 1]), np.array([0, 0]), np.array([1, 1]), np.array(shares_))
        assert protection(matrix, weight, relocation) == pytest.approx(printed, abs=0.005)


TABLE_2 = {1: (684, 0.906850), 2: (921.5, 0.834838), 3: (1031 + 1 / 6, 0.779960)}


@needs_franklin
@pytest.mark.parametrize("risk", TABLE_2)
def test_table_2(risk: int) -> None:
    found = front(franklin(), Rules(risk, capacities(franklin(), 20)))
    assert found.P_max == pytest.approx(TABLE_2[risk][0], rel=1e-12)
    assert found.U_min == pytest.approx(TABLE_2[risk][1], abs=5e-7)


@needs_franklin
def test_table_2_prints_what_lambda_3_has_without_capacities() -> None:
    found = front(franklin(), Rules(3, capacities(franklin(), 10**6)))
    assert found.P_max == pytest.approx(1034 + 1 / 6, rel=1e-12)


@needs_franklin
def test_the_baseline_risk_follows_from_the_matrix() -> None:
    counts = franklin().counts
    assert franklin().shape == (28, 284) and counts.sum() == 1_138_011
    assert np.sum(1 / counts[counts > 0]) / counts.size == pytest.approx(0.166738, abs=5e-7)
    assert np.sum(counts == 1) == 684


@needs_franklin
def test_more_at_risk_can_mean_less_protection() -> None:
    """P_max is not monotone in lambda: who is at risk is no longer a candidate."""
    most = [front(franklin(), Rules(risk, capacities(franklin(), 20))).P_max for risk in range(1, 12)]
    assert np.any(np.diff(most) < 0)


@needs_franklin
@pytest.mark.parametrize(("risk", "room"), [(1, 20), (3, 20), (5, 2), (3, 1)])
def test_franklin_quickly(risk: int, room: float) -> None:
    matrix, rules = franklin(), Rules(risk, capacities(franklin(), room))
    found = front(matrix, rules)
    agrees_with_lp(matrix, rules, found, [0.35, 0.8])
    assert verify(matrix, rules, found, [found.at_share(q) for q in np.linspace(0, 1, 21)]) < 1e-11


@needs_franklin
@pytest.mark.slow
@pytest.mark.parametrize("room", [1, 2, 5, 10, 20, 50])
@pytest.mark.parametrize("risk", [1, 2, 3, 4, 5])
def test_franklin(risk: int, room: float) -> None:
    matrix, rules = franklin(), Rules(risk, capacities(franklin(), room))
    found = front(matrix, rules)
    agrees_with_lp(matrix, rules, found, np.linspace(0, 1, 21))
    end = reduced_lp(matrix, rules)
    assert close(found.P_max, end.P, end.P) and abs(found.U_min - end.U) < 1e-9


@needs_franklin
@pytest.mark.slow
def test_franklin_with_the_program_as_printed() -> None:
    matrix, rules = franklin(), Rules(3, capacities(franklin(), 20))
    agrees_with_lp(matrix, rules, front(matrix, rules), [0.25, 0.75], full_lp)


@needs_franklin
def test_franklin_with_other_rules() -> None:
    matrix, room = franklin(), capacities(franklin(), 5)
    ring = np.abs(np.subtract.outer(np.arange(284), np.arange(284))) < 20
    for rules in (
        Rules(3, room, Weight.CONSTANT),
        Rules(3, room, coverage=Coverage.RELAXED),
        Rules(1, room, near=ring),
        Rules(3, capacities(matrix, share=0.001), Weight.INVERSE_LINEAR),
    ):
        found = front(matrix, rules)
        assert verify(matrix, rules, found, [found.at_share(q) for q in (0.2, 0.6, 1)]) < 1e-11
