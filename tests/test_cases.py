"""Are cuts and cases proofs? Cuts hold for every whole solution, whatever proposed them; cases say what lists say."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction
from itertools import product
from math import lcm
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glasshouse.model.records import UNLIMITED
from glasshouse.program.certainty import cases, mixing
from glasshouse.program.certainty.cases import closed
from glasshouse.program.certainty.cuts import FRACTIONS, Rows, cuts, wholes
from glasshouse.program.certainty.mixing import Mixing
from glasshouse.program.certainty.prove import dual_bound, within
from glasshouse.program.highs import Growing, Relaxation
from glasshouse.program.integer import IntegerProgram, Limit, Outcome, Proof, Solution
from glasshouse.program.ladder import Ladder, confirmed
from tests.often import often

LIMIT = Limit(effort=2.0)


@st.composite
def programs(draw: st.DrawFn) -> IntegerProgram:
    """A few rows over a few variables with few values; some rows have no upper limit, some variables begin below 0."""
    n, m = draw(st.integers(2, 5)), draw(st.integers(1, 4))
    whole = st.integers(-3, 3)
    matrix = np.array(draw(st.lists(st.lists(whole, min_size=n, max_size=n), min_size=m, max_size=m)), np.int64)
    lower = np.array(draw(st.lists(st.integers(-2, 1), min_size=n, max_size=n)), np.int64)
    upper = lower + np.array(draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)), np.int64)
    inside = matrix @ np.array([draw(st.integers(int(a), int(b))) for a, b in zip(lower, upper, strict=True)])
    row_lower = inside - np.array(draw(st.lists(st.integers(-1, 2), min_size=m, max_size=m)), np.int64)
    row_upper = row_lower + np.array(draw(st.lists(st.sampled_from([0, 1, 4]), min_size=m, max_size=m)), np.int64)
    row_upper = np.where(draw(st.lists(st.booleans(), min_size=m, max_size=m)), row_upper, UNLIMITED)
    cost = np.array(draw(st.lists(whole, min_size=n, max_size=n)), np.int64)
    return Rows(matrix, row_lower, row_upper).program(cost, lower, upper)


def every(program: IntegerProgram) -> list[np.ndarray]:
    values = (range(int(a), int(b) + 1) for a, b in zip(program.lower, program.upper, strict=True))
    return [x for one in product(*values) if program.fits(x := np.array(one, np.int64))]


@given(programs(), st.data())
@settings(max_examples=often(400), deadline=None)
def test_a_cut_holds_for_every_whole_solution_whatever_the_multipliers(
    program: IntegerProgram, data: st.DataObject
) -> None:
    rows = Rows.of(program)
    any_ = st.integers(-5000, 5000)
    multipliers = np.array(data.draw(st.lists(any_, min_size=len(rows.lower), max_size=len(rows.lower))), np.int64)
    x = np.array(data.draw(st.lists(st.floats(-3, 4), min_size=len(program.cost), max_size=len(program.cost))))
    divisors = np.array([1, 2, 3, 7, 12, 5040])
    found = cuts(rows, program.lower, program.upper, x, np.tile(multipliers, (len(divisors), 1)), divisors)
    for coefficients, least, depth in zip(*found, strict=True):
        assert all(int(coefficients @ one) >= least for one in every(program))
        assert (depth > 0) == (least - coefficients @ x > 0) or abs(least - coefficients @ x) < 1e-6


def test_a_cut_of_numbers_that_might_overflow_is_not_made() -> None:
    """Limits near 2**31, times multipliers that large: their sums would not be whole numbers of 64 bits any more."""
    n = 6
    rows = Rows(np.ones((1, n), np.int64), np.zeros(1, np.int64), np.full(1, UNLIMITED))
    limits = np.full(n, 2**31 - 1), np.full(n, 2**31 + 5)
    found = cuts(rows, *limits, np.full(n, 2.0**31), np.array([[2**30]]), np.array([7]))
    assert not found.coefficients.any() and not found.depth.any()


@given(st.lists(st.fractions(-50, 50, max_denominator=30), min_size=1, max_size=5))
def test_multipliers_become_whole_and_what_is_no_number_is_left_out(fractions: list[Fraction]) -> None:
    row = np.array([float(one) for one in fractions])
    whole, divisor = wholes(np.array([row, np.full_like(row, np.nan), np.full_like(row, 1e30)]))
    assert len(whole) == 1
    common = lcm(*(one.denominator for one in fractions))
    if common <= FRACTIONS:
        assert int(divisor[0]) == common
        assert [Fraction(int(one), int(divisor[0])) for one in whole[0]] == fractions


@given(programs(), st.data())
@settings(max_examples=often(200), deadline=None)
def test_limits_of_what_costs_no_more_hold_whatever_the_multipliers(
    program: IntegerProgram, data: st.DataObject
) -> None:
    real = st.floats(-4, 4, allow_nan=False)
    duals = np.array(data.draw(st.lists(real, min_size=len(program.row_lower), max_size=len(program.row_lower))))
    most = data.draw(st.integers(-12, 12))
    lower, upper = within(program, duals, most)
    for x in every(program):
        if program.value(x) <= most:
            assert (lower <= x).all() and (x <= upper).all()


@given(programs(), st.data())
@settings(max_examples=often(400), deadline=None)
def test_cases_say_what_a_listing_says(program: IntegerProgram, data: st.DataObject) -> None:
    solutions = every(program)
    if not solutions:
        found = closed(program, None, None, LIMIT)
        assert (found.outcome, found.proof) == (Outcome.INFEASIBLE, Proof.EXACT)
        return
    least = min(program.value(x) for x in solutions)
    found = closed(program, data.draw(st.sampled_from(solutions)), None, LIMIT)
    assert found.x is not None and program.fits(found.x)
    assert (found.proof, program.value(found.x), found.floor) == (Proof.EXACT, least, least)


def _odd_cycles(count: int) -> IntegerProgram:
    """Triangles of which at most one corner may be taken: the relaxation takes half of each."""
    edges = [(3 * at + a, 3 * at + b) for at in range(count) for a, b in ((0, 1), (1, 2), (0, 2))]
    matrix = np.zeros((len(edges), 3 * count), np.int64)
    for row, pair in enumerate(edges):
        matrix[row, list(pair)] = 1
    n, m = 3 * count, len(edges)
    return Rows(matrix, np.full(m, -UNLIMITED), np.ones(m, np.int64)).program(
        -np.ones(n, np.int64), np.zeros(n, np.int64), np.ones(n, np.int64)
    )


def test_many_small_gaps_are_closed_by_cuts_without_a_case(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cases alone would multiply: two for each of forty triangles."""
    program = _odd_cycles(40)
    one_each = np.tile(np.array([1, 0, 0], np.int64), 40)
    monkeypatch.setattr(cases, "CASES", 0)
    found = closed(program, one_each, None, LIMIT)
    assert (found.proof, found.floor) == (Proof.EXACT, -40)


def test_a_limit_is_no_verdict_and_its_floor_holds() -> None:
    program = _odd_cycles(40)
    start = np.zeros(120, np.int64)
    found = closed(program, start, None, Limit(effort=0.0))
    assert (found.outcome, found.proof, found.x is start) == (Outcome.FEASIBLE, Proof.UNDECIDED, True)


def test_cases_that_would_take_far_too_long_are_given_up_and_nothing_is_claimed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without cuts, two cases for each of forty triangles: after a few it is foreseen that there are too many."""
    program, one_each = _odd_cycles(40), np.tile(np.array([1, 0, 0], np.int64), 40)
    asked: list[int] = []
    relax = Growing.relax

    def counted(engine: Growing) -> Relaxation:
        asked.append(1)
        return relax(engine)

    monkeypatch.setattr(Growing, "relax", counted)
    monkeypatch.setattr(cases, "ROUNDS", 0)
    monkeypatch.setattr(cases, "ENOUGH", 50)
    found = closed(program, one_each, None, LIMIT)
    assert (found.outcome, found.proof) == (Outcome.FEASIBLE, Proof.UNDECIDED)
    assert len(asked) < 500 < LIMIT.effort * cases.CASES / (cases.SIZE_OF_CASE + len(program.index) + 120)


@pytest.mark.parametrize("claimed", [None, np.array([1, 0, 0], np.int64)])
def test_a_solver_that_is_wrong_is_found_out(claimed: np.ndarray | None) -> None:
    program = IntegerProgram(
        np.array([3, 2, 1], np.int64), np.zeros(3, np.int64), np.ones(3, np.int64), np.array([1]), np.array([1]),
        np.array([0, 3]), np.arange(3, dtype=np.int32), np.ones(3, np.int64),
    )  # fmt: skip
    outcome = Outcome.INFEASIBLE if claimed is None else Outcome.OPTIMAL

    def wrong(_: IntegerProgram, __: Limit) -> Solution:
        return Solution(outcome, claimed)

    found = confirmed(program, wrong(program, LIMIT), Ladder(engines=(wrong, wrong)))
    assert found.x is not None and (found.proof, program.value(found.x)) == (Proof.EXACT, 1)


def test_finer_multipliers_prove_what_coarse_ones_do_not() -> None:
    """Rows with large coefficients need multipliers that are not rounded much."""
    size = 10**5
    program = IntegerProgram(
        np.array([1], np.int64), np.zeros(1, np.int64), np.array([10**6]), np.array([size * 999_983]),
        np.array([UNLIMITED]),
        np.array([0, 1]), np.zeros(1, np.int32), np.array([size]),
    )  # fmt: skip
    duals = np.array([1 / size])
    assert (dual_bound(program, duals) or 0) < 999_983
    assert dual_bound(program, duals, wanted=999_983) == 999_983


def test_a_row_of_nothing_is_no_beginning() -> None:
    """Compiled code looks at no entry of a row without entries: it would lie beyond the last."""
    matrix = np.array([[1, 1, 1], [0, 0, 0]], np.int64)
    rows = Rows(matrix, np.array([1, 0], np.int64), np.array([2, 0], np.int64))
    lower, upper, x = np.zeros(3, np.int64), np.ones(3, np.int64), np.array([0.5, 0.5, 0.5])
    mixed = Mixing(rows)
    starts, wide = mixing._switches(*mixed.row, mixed.lower, mixed.upper, lower, upper)
    given = (*mixed.row, *mixed.column, mixed.lower, mixed.upper, lower, upper, x, matrix @ x, starts, wide)
    found, divisor = mixing._mixed.py_func(*given)  # as Python, which refuses what lies beyond
    assert not found[1].any() and not divisor[1]
    again, same = mixing._mixed(*given)
    assert (again == found).all() and (same == divisor).all()


@pytest.mark.slow
def test_no_compiled_function_looks_beyond_an_array(tmp_path: Path) -> None:
    """The tests of the core once more, with every index checked."""
    names = ["whole", "cases", "recipe", "starts", "solvers", "extremes", "program", "core"]
    told = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path), "GLASSHOUSE_TESTS": "some"}
    files = [str(Path(__file__).parent / f"test_{name}.py") for name in names]
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", *files],
        capture_output=True, text=True, check=False, env=told,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout[-3000:]
