"""Where did the core go wrong on realistic sizes? One minimal test for each bug that fuzzing found."""

from __future__ import annotations

import tracemalloc

import numpy as np
from benchmarks import blocks

from glasshouse.model.records import UNLIMITED
from glasshouse.model.release import Counts
from glasshouse.model.tabulate import tabulate
from glasshouse.program.answers import minimum
from glasshouse.program.bounds import Cost, linear
from glasshouse.program.conflict import conflict
from glasshouse.program.integer import IntegerProgram, Limit, Outcome, Proof, Solution
from glasshouse.program.ladder import Ladder
from glasshouse.program.listing import _combined
from glasshouse.program.reduce import Programs, split
from glasshouse.program.search import minimise_guided
from glasshouse.program.tables.histogram import compile_tables
from glasshouse.scenarios.load import load


def programs(lower: list[int], upper: list[int], rows: list[tuple[list[int], list[int], int, int]]) -> Programs:
    """One program; a row is its variables, their coefficients, and its limits."""
    n, m = len(lower), len(rows)
    return Programs(
        np.array([0, n]),
        np.array(lower, np.int64),
        np.array(upper, np.int64),
        np.array([0, m]),
        np.array([row[2] for row in rows], np.int64),
        np.array([row[3] for row in rows], np.int64),
        np.concatenate([[0], np.cumsum([len(row[0]) for row in rows])]).astype(np.int64),
        np.array([v for row in rows for v in row[0]], np.int32),
        np.array([c for row in rows for c in row[1]], np.int64),
    )


def test_a_guided_search_decides_cells_whose_cost_falls_and_rises() -> None:
    """Worst kind: the wrong minimum, called exact. The least is -4, at (2, 2)."""
    part = programs([0, 0], [4, 4], [([0, 1], [1, 1], 0, 7)])
    two = np.full(2, 2, np.int64)
    cost = Cost(-np.ones(2, np.int64), np.ones(2, np.int64), two)
    found = minimise_guided(part, cost, 1000, np.zeros(2, np.int64), np.zeros(1))
    assert found is not None and found.exhausted[0]
    assert int(found.value[0]) == -4


def test_a_guided_search_ends_for_cells_of_any_width() -> None:
    """Values were ruled out one by one: 10^11 of them take minutes."""
    top = 10**11
    part = programs([0] * 4, [top] * 4, [([0, 1, 2], [2, 2, 2], 7, 4 * top), ([1, 2, 3], [2, 2, 2], 7, 4 * top)])
    cost, start, duals = linear(np.ones(4, np.int64)), np.array([1, 4, 0, 0]), np.array([0.5, 0.0])
    found = minimise_guided(part, cost, 1000, start, duals)
    assert found is not None and int(found.value[0]) == 4


def test_a_long_list_of_two_parts_needs_memory_for_the_list_only() -> None:
    """Wanted 5,000 of 5,000 x 5,000 combinations; with a limit of 100,000 it would be 80 GB."""
    many, zero = 5000, np.zeros(5000, np.int64)
    tracemalloc.start()
    rows, values = _combined(
        np.zeros((many, 2), np.int64), zero, np.zeros((many, 1), np.int64), zero, np.array([1]), many
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(rows) == len(values) == many
    assert peak < 20_000_000


def test_the_conflict_of_a_small_block_names_three_numbers() -> None:
    """All person tables, 20 persons, one number changed; draws in 9,576 cells once took most of half a minute."""
    place = load("sf1-person")
    tables = [table for table in place.tables if table.level == "block"]
    counts = tabulate(blocks.synthetic(np.array([20, 41]), "simple", 1), tables, "block")
    numbers = counts.lower[:1].copy()
    numbers[0, 1] += 1
    wrong = Counts("block", counts.places[:1], counts.variables, numbers, numbers)
    compiled = compile_tables(place.schema, tables, counts.variables)
    found = conflict(compiled, wrong)
    assert found is not None and found.minimal
    assert counts.variables[1] in {number.variable for number in found.numbers}
    assert len(found.numbers) == 3


def test_an_engine_that_stops_early_does_not_worsen_what_the_search_held() -> None:
    part = programs([0, 0], [5, 5], [([0, 1], [2, 2], 5, 20)])
    cost, start = linear(np.array([3, 4])), np.array([3, 0])

    def poor(program: IntegerProgram, limit: Limit) -> Solution:
        return Solution(Outcome.FEASIBLE, np.array([5, 5]))

    ladder = Ladder(nodes=0, engines=(poor,))
    answers = minimum(split(part, np.zeros(1, np.bool_)), cost, ladder, start=start)
    assert int(answers.value[0]) == 9


def test_a_bend_in_an_unlimited_cell_can_be_put_to_a_solver() -> None:
    part = programs([4, 0], [UNLIMITED, 9], [([0, 1], [2, 3], 17, UNLIMITED)])
    cost = Cost(np.array([5, 3]), np.array([1, 3]), np.array([5, 0]))
    answers = minimum(split(part, np.zeros(1, np.bool_)), cost, Ladder(nodes=0))
    assert int(answers.value[0]) == min(
        min(x, 5) * 5 + max(x - 5, 0) + 3 * y for x in range(4, 20) for y in range(10) if 2 * x + 3 * y >= 17
    )


def test_what_the_search_holds_outweighs_engines_that_find_nothing() -> None:
    """Two engines that agree on a falsehood must not turn an x that fits into a proved optimum."""
    part = programs([0, 0], [5, 5], [([0, 1], [2, 2], 5, 20)])

    def blind(program: IntegerProgram, limit: Limit) -> Solution:
        return Solution(Outcome.INFEASIBLE)

    ladder = Ladder(nodes=0, engines=(blind, blind), cases=False)
    answers = minimum(split(part, np.zeros(1, np.bool_)), linear(np.array([3, 4])), ladder, start=np.array([4, 0]))
    assert answers.outcome == (Outcome.FEASIBLE,)
    assert answers.proof == (Proof.UNDECIDED,)
    assert int(answers.floor[0]) <= 9 <= int(answers.value[0])
