"""Is less asked and the same answered? Starts are solutions, a part is asked once, vertices say what lists do."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from benchmarks.same_answers import agree, compared
from hypothesis import given, settings
from hypothesis import strategies as st

from glasshouse.program import extremes, ladder
from glasshouse.program.bounds import Cost, distance
from glasshouse.program.certainty.cases import closed
from glasshouse.program.integer import IntegerProgram, Limit, Outcome, Proof, Solution
from glasshouse.program.ladder import Ladder, remembering, solve
from glasshouse.program.least import _of_part
from glasshouse.program.reduce import Programs
from glasshouse.program.search import enumerate_part
from glasshouse.program.straight import descended, straighten
from tests.often import often

LIMIT = Limit(effort=2.0)


@st.composite
def transports(draw: st.DrawFn) -> tuple[Programs, np.ndarray]:
    """Counts in a table of a few rows and columns, whose sums are known, and a table that has these sums."""
    rows, columns = draw(st.integers(2, 4)), draw(st.integers(2, 5))
    cells = st.lists(st.integers(0, 4), min_size=rows * columns, max_size=rows * columns)
    x = np.array(draw(cells), np.int64)
    at = np.arange(rows * columns)
    owner = np.concatenate([at // columns, rows + at % columns])
    order = np.argsort(owner, kind="stable")
    index = np.concatenate([at, at])[order].astype(np.int32)
    starts = np.concatenate([[0], np.cumsum(np.bincount(owner))])
    table = x.reshape(rows, columns)
    sums = np.concatenate([table.sum(axis=1), table.sum(axis=0)])
    upper = np.minimum(sums[at // columns], sums[rows + at % columns])
    ends = np.array([0, len(x)]), np.array([0, len(sums)])
    ones = np.ones(len(index), np.int64)
    return Programs(ends[0], np.zeros_like(x), upper, ends[1], sums, sums, starts, index, ones), x


def overlap(start: np.ndarray) -> Cost:
    return distance(start)._replace(above=np.zeros(len(start), np.int64))


@given(transports())
@settings(max_examples=often(60), deadline=None)
def test_a_better_start_is_a_solution_and_never_dearer(toy: tuple[Programs, np.ndarray]) -> None:
    part, x = toy
    for cost in (overlap(x), distance(x)):
        found = descended(part.integer_program(cost.below), cost, x, LIMIT, 4)
        assert part.fit(found)[0]
        assert int(cost.of(found).sum()) <= int(cost.of(x).sum())


def test_a_start_without_limits_stays_as_it_is() -> None:
    far = np.array([10**12, 10**12])
    program = IntegerProgram(
        np.zeros(2, np.int64), np.zeros(2, np.int64), far, np.array([3]), np.array([10**12]),
        np.array([0, 2]), np.array([0, 1], np.int32), np.ones(2, np.int64),
    )  # fmt: skip
    x = np.array([1, 2])
    steep = Cost(np.full(2, 10**6), np.full(2, -(10**6)), x)
    assert descended(program, steep, x, LIMIT, 4) is x


@given(transports())
@settings(max_examples=often(60), deadline=None)
def test_the_least_of_every_variable_is_the_same_by_vertices_and_by_lists(toy: tuple[Programs, np.ndarray]) -> None:
    part, x = toy
    listed, through = enumerate_part(part, 0, 20_000, 200_000)
    if not through:
        return
    counts, known, before = np.ones(len(x), np.bool_), x[None, :], (extremes.LARGE, extremes.LISTED)
    try:
        extremes.LARGE, extremes.LISTED = 0, 1
        found = _of_part(part, known, Ladder(), counts)
    finally:
        extremes.LARGE, extremes.LISTED = before
    assert (found.low == listed.min(axis=0)).all()
    assert (found.met == found.low).all()


@given(transports())
@settings(max_examples=often(40), deadline=None)
def test_the_farthest_is_proved_whoever_finds_the_start(toy: tuple[Programs, np.ndarray]) -> None:
    part, x = toy
    listed, through = enumerate_part(part, 0, 20_000, 200_000)
    if not through:
        return
    cost = overlap(x)
    found = solve(part, cost, Ladder(nodes=0, guided=1, limit=LIMIT), x)
    assert found.proof == Proof.EXACT
    assert found.x is not None and int(cost.of(found.x).sum()) == min(int(cost.of(one).sum()) for one in listed)


def _crossed() -> tuple[Programs, np.ndarray, Cost]:
    """Two rows of known sums and one between limits, a solution, and what overlaps it."""
    ends = np.array([0, 4]), np.array([0, 3])
    part = Programs(
        ends[0], np.zeros(4, np.int64), np.full(4, 5), ends[1], np.array([5, 5, 3]), np.array([5, 5, 8]),
        np.array([0, 2, 4, 6]), np.array([0, 1, 2, 3, 0, 2], np.int32), np.ones(6, np.int64),
    )  # fmt: skip
    start = np.array([2, 3, 3, 2])
    return part, start, overlap(start)


def test_cuts_and_cases_find_and_prove_the_best_before_anybody_branches() -> None:
    part, start, cost = _crossed()
    asked: list[bool] = []

    def stops(program: IntegerProgram, limit: Limit) -> Solution:
        asked.append(limit.branches)
        return Solution(Outcome.STOPPED)

    found = solve(part, cost, Ladder(nodes=0, guided=0, engines=(stops,)), start)
    listed, _ = enumerate_part(part, 0, 2000, 20_000)
    assert asked == [False]
    assert found.proof == Proof.EXACT and found.x is not None
    assert int(cost.of(found.x).sum()) == min(int(cost.of(one).sum()) for one in listed)


@pytest.mark.parametrize("better", [False, True])
def test_what_cases_leave_open_is_proved_if_branching_finds_a_better_x(
    monkeypatch: pytest.MonkeyPatch, better: bool
) -> None:
    part, start, cost = _crossed()
    listed, _ = enumerate_part(part, 0, 2000, 20_000)
    best = min(listed, key=lambda one: int(cost.of(one).sum()))
    tried: list[int] = []

    def open_at_first(program: IntegerProgram, x: np.ndarray, floor: int | None, limit: Limit) -> Solution:
        tried.append(program.value(x))
        return Solution(Outcome.FEASIBLE, x, floor, floor) if len(tried) == 1 else closed(program, x, floor, limit)

    def branches(program: IntegerProgram, limit: Limit) -> Solution:
        if not limit.branches:
            return Solution(Outcome.STOPPED)
        straight = straighten(part.integer_program(cost.below), cost)
        return Solution(Outcome.FEASIBLE, straight.spread(best) if better else program.known)

    monkeypatch.setattr(ladder, "closed", open_at_first)
    monkeypatch.setattr(ladder, "FURTHER", 0)
    found = solve(part, cost, Ladder(nodes=0, guided=0, engines=(branches,)), start)
    assert found.x is not None and part.fit(found.x)[0]
    assert len(tried) == (2 if better else 1)  # the same x is not tried twice
    assert found.proof == (Proof.EXACT if better else Proof.UNDECIDED)
    if better:
        assert int(cost.of(found.x).sum()) == int(cost.of(best).sum())


def test_a_part_is_asked_once_and_a_changed_one_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def answer(part: Programs, cost: Cost, rungs: Ladder, start: np.ndarray | None) -> Solution:
        asked.append(len(part.lower))
        return Solution(Outcome.FEASIBLE, part.lower.copy())

    monkeypatch.setattr(ladder, "_solve", answer)
    ends = np.array([0, 2]), np.array([0, 1])
    part = Programs(
        ends[0], np.zeros(2, np.int64), np.full(2, 3), ends[1], np.array([2]), np.array([2]), np.array([0, 2]),
        np.array([0, 1], np.int32), np.ones(2, np.int64),
    )  # fmt: skip
    cost, mind = overlap(np.array([1, 1])), remembering(Ladder())
    first = solve(part, cost, mind, None)
    assert solve(part, cost, mind, None) is first
    assert len(asked) == 1
    solve(part, overlap(np.array([2, 0])), mind, None)
    solve(part, cost, mind, np.array([1, 1]))
    solve(part, cost, remembering(Ladder()), None)
    solve(part, cost, Ladder(), None)
    assert len(asked) == 5


def _places(**columns: list[object]) -> pl.DataFrame:
    given = {
        "block": ["1", "2"], "population": [4, 6], "population_upper": [4, 6], "unique": [1, 1],
        "start_fits": [True, True], "untold": [0, 0], "distance": [2, 4], "distance_upper": [2, 6],
        "proof": ["exact", "undecided"], "certain": [3, 1], "certain_upper": [3, 1], "certain_proof": ["exact"] * 2,
    }  # fmt: skip
    return pl.DataFrame({**given, **columns})


def test_runs_agree_where_more_is_proved_and_nothing_contradicts() -> None:
    old = _places()
    assert agree(compared(old, old))
    closed = compared(old, _places(distance=[2, 6], proof=["exact", "exact"]))
    assert agree(closed) and closed["distance: now exact"] == 1
    assert not agree(compared(old, _places(distance=[4, 4], distance_upper=[4, 6])))
    assert not agree(compared(old, _places(proof=["undecided", "undecided"])))
    assert not agree(compared(old, _places(distance=[2, 8], distance_upper=[2, 8], proof=["exact", "exact"])))
    agreed = _places(distance=[2, 4], distance_upper=[2, 4], proof=["exact", "two-engines"])
    assert not agree(compared(agreed, _places(distance=[2, 2], distance_upper=[2, 2], proof=["exact", "exact"])))
