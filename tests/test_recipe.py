"""Do differences come out of numbers as they do from matrices, and sets of bits as they do from sorting?"""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from numpy.typing import NDArray

from glasshouse.model.records import Records
from glasshouse.model.release import Table
from glasshouse.model.tabulate import tabulate
from glasshouse.program.tables.cells import partition
from glasshouse.program.tables.marks import mark, taken_out
from glasshouse.program.tables.recipe import differences_at
from glasshouse.program.tables.rows import Rows, compile_rows
from glasshouse.scenarios.load import Scenario

Ints = NDArray[np.int64]


def rows_of(scenario: Scenario, tables: list[Table]) -> Rows:
    present = [variable for table in tables for variable in table.variables]
    told = [line.predicate for table in tables for line in table.lines if line.predicate is not None]
    return compile_rows(partition(scenario.schema, told), tables, present)


def by_matrix(rows: Rows, values: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """The differences, and which numbers cannot be true, straight from what each row is made of."""
    first = np.unique(rows.set_of, return_index=True)[1]
    sets = (rows.sums @ values.T).T
    numbers = (rows.combine @ sets[:, first].T).T
    twice = sets != sets[:, first][:, rows.set_of]
    bad = (numbers < 0).any(axis=1) | (numbers[:, rows.differences :] != 0).any(axis=1) | twice.any(axis=1)
    return np.where(bad[:, None], 0, numbers[:, : rows.differences]), bad


@pytest.mark.parametrize("level", ["block", "tract"])
def test_a_recipe_gives_the_differences_of_true_numbers_and_refuses_others(sf1: Scenario, level: str) -> None:
    tables = [table for table in sf1.tables if table.level == level]
    rows = rows_of(sf1, tables)
    rng = np.random.default_rng(1)
    codes = np.column_stack([rng.integers(0, len(one), 300) for one in sf1.schema.attributes]).astype(np.int16)
    names = tuple(f"39059{number:06d}" + "1000" * (level == "block") for number in range(20))
    records = Records(sf1.schema, names, np.sort(rng.integers(0, 20, 300)).astype(np.int32), codes)
    counts = tabulate(records, tables, level)
    values = counts.lower[:, [counts.column[variable] for variable in rows.variables]]
    wrong = values.copy()
    for place in range(1, len(wrong)):  # one number more, or fewer; some no longer there
        used = np.flatnonzero(wrong[place])
        chosen = int(rng.choice(used)) if len(used) and place % 2 else int(rng.integers(wrong.shape[1]))
        wrong[place, chosen] = max(0, wrong[place, chosen] + int(rng.choice((-2, -1, 1, 2))))
    for some, all_true in ((values, True), (wrong, False)):
        order = rng.permutation(some.shape[1])  # numbers may stand anywhere
        shuffled = np.empty_like(some)
        shuffled[:, order] = some
        numbers, bad = differences_at(rows.recipe, shuffled, order)
        expected, impossible = by_matrix(rows, some)
        assert (numbers == expected).all() and (bad == impossible).all()
        assert not bad.any() if all_true else bad.any()


def test_a_difference_costs_few_steps(sf1: Scenario) -> None:
    """The recipe has no more entries than the matrix of differences by numbers, and here far fewer."""
    rows = rows_of(sf1, [table for table in sf1.tables if table.level == "block"])
    first = np.unique(rows.set_of, return_index=True)[1]
    assert len(rows.recipe.to) < (rows.combine @ rows.sums[first]).nnz / 2


@njit
def _sorted(numbers, size):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    marks, words = np.zeros(size // 64 + 1, np.uint64), np.zeros(size // 4096 + 1, np.uint64)
    out = np.empty(len(numbers), np.int64)
    for number in numbers:
        mark(marks, number)
        mark(words, number >> 6)
    count = taken_out(marks, words, out)
    return out[:count], marks.any() or words.any()


@pytest.mark.parametrize("size", [1, 63, 64, 65, 4095, 4096, 4097, 300_000])
def test_marks_come_out_in_order_and_leave_nothing(size: int) -> None:
    rng = np.random.default_rng(size)
    for count in (0, 1, 40, 3000):
        numbers = rng.integers(0, size, count)
        numbers[:2] = [0, size - 1][: len(numbers)]
        found, left = _sorted(numbers, size)
        assert found.tolist() == sorted(set(numbers.tolist())) and not left
