"""Is the quick way to a whole solution right? Against every x of small programs, and with engines that fail."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from glasshouse.model.records import UNLIMITED, Count
from glasshouse.program import few, ladder
from glasshouse.program.highs import highs
from glasshouse.program.integer import IntegerProgram, Limit, Outcome, Proof, Solution
from glasshouse.program.ladder import Ladder, cheapest, escalate
from tests.often import often


def program(seed: int, variables: int, rows: int) -> IntegerProgram:
    """A small program, mostly with solutions: its rows are limits around those of some x."""
    rng = np.random.default_rng(seed)
    dense = rng.integers(-1, 4, (rows, variables)) * (rng.random((rows, variables)) < 0.7)
    upper = rng.integers(1, 4, variables)
    middle = dense @ rng.integers(0, upper + 1)
    lower_row = np.where(rng.random(rows) < 0.3, -UNLIMITED, middle - rng.integers(0, 2, rows))
    upper_row = np.where(rng.random(rows) < 0.3, UNLIMITED, middle + rng.integers(0, 2, rows))
    lower_row += np.where((lower_row > -UNLIMITED) & (rng.random(rows) < 0.1), 3, 0)  # now and then nothing fits
    entry = [np.flatnonzero(row) for row in dense]
    return IntegerProgram(
        rng.integers(-3, 4, variables),
        np.zeros(variables, np.int64),
        upper.astype(np.int64),
        lower_row.astype(np.int64),
        upper_row.astype(np.int64),
        np.concatenate([[0], np.cumsum([len(some) for some in entry])]).astype(np.int64),
        np.concatenate(entry).astype(np.int32),
        np.concatenate([row[some] for row, some in zip(dense, entry, strict=True)]).astype(np.int64),
    )


def costs(given: IntegerProgram) -> list[tuple[int, tuple[int, ...]]]:
    """What every x costs that fits, by looking at every one."""
    every = product(*(range(top + 1) for top in given.upper.tolist()))
    return [(given.value(x), one) for one in every if given.fits(x := np.array(one, np.int64))]


def least(given: IntegerProgram) -> int | None:
    """The least cost of any x."""
    return min((cost for cost, _ in costs(given)), default=None)


@settings(max_examples=often(60))
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 4))
def test_the_cheapest_of_all(seed: int, variables: int, rows: int) -> None:
    asked = program(seed, variables, rows)
    found, best = cheapest(asked, Ladder()), least(asked)
    if best is None:
        assert found.outcome == Outcome.INFEASIBLE and found.x is None
    else:
        assert found.x is not None and asked.fits(found.x)
        assert asked.value(found.x) == best
        assert found.floor is not None and found.floor <= best
        assert found.proof != Proof.UNDECIDED


@settings(max_examples=often(60))
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 4))
def test_of_very_many_variables_what_nothing_else_decides_is_branched_on(seed: int, variables: int, rows: int) -> None:
    asked = program(seed, variables, rows)
    fitting = costs(asked)
    assume(fitting)
    dearest = np.array(max(fitting)[1], np.int64)

    def known(relaxed: Solution, held: Solution | None, turn: int) -> Solution | None:
        return None if turn else Solution(Outcome.FEASIBLE, dearest)

    def left_open(program: IntegerProgram, x: Count | None, floor: int | None, limit: Limit) -> Solution:
        return Solution(Outcome.FEASIBLE, x, floor, floor)

    with pytest.MonkeyPatch.context() as changed:
        for name, other in (("many", lambda _: True), ("among_few", lambda *_: None), ("closed", left_open)):
            changed.setattr(ladder, name, other)
        found = escalate(asked, Ladder(), known, weak=True)
    assert found.x is not None and asked.fits(found.x) and asked.value(found.x) == min(fitting)[0]
    assert found.proof in (Proof.EXACT, Proof.TWO_ENGINES)


@settings(max_examples=often(60))
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 4))
def test_what_is_found_among_few_fits_and_is_called_proved_only_if_nothing_is_cheaper(
    seed: int, variables: int, rows: int
) -> None:
    asked = program(seed, variables, rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(few, "MANY", 0)  # vertices are added until the bound is met
        found = few.among_few(asked, highs(asked, Limit(branches=False)), highs, Limit())
    if found is not None:
        best = least(asked)
        assert found.x is not None and asked.fits(found.x) and best is not None
        assert found.proof == Proof.UNDECIDED or asked.value(found.x) == best


def test_what_the_quick_way_finds_is_proved_without_a_second_engine() -> None:
    """Where it ends early, it is because a bound in rational arithmetic is met: nothing else was asked."""
    asked_of_second = 0

    def second(given: IntegerProgram, limit: Limit) -> Solution:
        nonlocal asked_of_second
        asked_of_second += 1
        return Solution(Outcome.STOPPED)

    exact = 0
    for seed in range(80):
        asked = program(seed, 6, 3)
        asked_of_second = 0
        found = cheapest(asked, Ladder(engines=(highs, second)))
        if found.proof == Proof.EXACT and found.x is not None:
            exact += 1
            assert asked_of_second == 0 and asked.value(found.x) == found.floor == least(asked)
    assert exact > 20


def test_a_wrong_vertex_changes_nothing() -> None:
    """An engine whose relaxation names useless variables costs time, not the answer."""

    def misleading(given: IntegerProgram, limit: Limit) -> Solution:
        found = highs(given, limit)
        return found if found.point is None else replace(found, point=np.zeros(len(given.cost)))

    for seed in range(30):
        asked = program(seed, 5, 3)
        found = cheapest(asked, Ladder(engines=(misleading, highs)))
        best = least(asked)
        assert (None if found.x is None else asked.value(found.x)) == best


def test_without_engines_nothing_is_claimed() -> None:
    assert cheapest(program(1, 3, 2), Ladder(engines=())).outcome == Outcome.STOPPED
