"""Is the truth always inside what a protected number tells? Rounding, suppression, cell keys, by enumeration."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glasshouse.commands.work.perturb import read_ptable
from glasshouse.errors import InputError
from glasshouse.model.records import UNLIMITED
from glasshouse.protection.perturb import (
    CellKeys,
    PTable,
    Rounding,
    change_by_key,
    description_of,
    round_counts,
    suppress,
)
from glasshouse.scenarios.load import Scenario

COUNTS = np.arange(60).reshape(6, 10)


def possible_prints(count: int, base: int, how: Rounding) -> set[int]:
    """Oracle: what a count may be printed as, from the words of the rule."""
    below = count - count % base
    above = below if below == count else below + base
    if how is Rounding.RANDOM:
        return {below, above}
    if how is Rounding.NEAREST:
        return {below if count - below < above - count else above}
    return {above if how is Rounding.UP else below}


@pytest.mark.parametrize("how", list(Rounding))
@pytest.mark.parametrize("base", [2, 3, 5, 10])
def test_rounding_tells_exactly_the_counts_that_give_the_print(base: int, how: Rounding) -> None:
    told = round_counts(COUNTS, base, how, np.random.default_rng(base))
    for count, shown, lower, upper in zip(*map(np.ravel, (COUNTS, told.shown, told.lower, told.upper)), strict=True):
        assert shown in possible_prints(int(count), base, how)
        behind = [n for n in range(100) if shown in possible_prints(n, base, how)]
        assert (lower, upper) == (min(behind), max(behind))
        assert lower <= count <= upper
    assert not told.hidden.any()


def test_a_published_zero_is_not_known_to_be_one() -> None:
    told = round_counts(np.zeros((1, 1), np.int64), 3, Rounding.RANDOM, np.random.default_rng(1))
    assert (told.shown[0, 0], told.lower[0, 0], told.upper[0, 0]) == (0, 0, 2)


def test_random_rounding_is_unbiased() -> None:
    counts = np.tile(np.arange(7), (40_000, 1))
    change = round_counts(counts, 5, Rounding.RANDOM, np.random.default_rng(11)).shown - counts
    error = change.std(axis=0) / np.sqrt(len(counts))
    assert (np.abs(change.mean(axis=0)) <= 5 * error + 1e-12).all()
    assert (change[:, [0, 5]] == 0).all()  # a multiple stays


def test_suppression_hides_small_counts_and_those_named() -> None:
    counts, also = np.array([[0, 1, 4, 5, 9]]), np.array([[False, False, False, False, True]])
    told = suppress(counts, 5, hide_zeros=False, also=also)
    assert told.hidden.tolist() == [[False, True, True, False, True]]
    assert told.lower.tolist() == [[0, 1, 1, 5, 0]] and told.upper.tolist() == [[0, 4, 4, 5, UNLIMITED]]
    assert told.shown.tolist() == [[0, 0, 0, 5, 0]]
    hidden = suppress(counts, 5, hide_zeros=True, also=also)
    assert hidden.lower.tolist() == [[0, 0, 0, 5, 0]] and hidden.upper.tolist() == [[4, 4, 4, 5, UNLIMITED]]
    # a small count that someone names too is told like the named ones: nothing of it is known
    both = suppress(np.array([[2]]), 5, hide_zeros=False, also=np.array([[True]]))
    assert (both.lower[0, 0], both.upper[0, 0]) == (0, UNLIMITED)


def drawn_keys(rng: np.random.Generator):  # type: ignore[no-untyped-def]
    return lambda cells: rng.integers(0, 2**64, len(cells), dtype=np.uint64)


@st.composite
def p_tables(draw: st.DrawFn) -> PTable:
    """Tables of up to five rows, with small changes and any probabilities."""
    rows = []
    for count in range(draw(st.integers(1, 5))):
        changes = draw(st.lists(st.integers(-min(count, 3), 3), min_size=1, max_size=4, unique=True))
        weights = [draw(st.integers(1, 9)) for _ in changes]
        rows.append(tuple((c, Fraction(w, sum(weights))) for c, w in sorted(zip(changes, weights, strict=True))))
    return PTable(tuple(rows))


@given(p_tables(), st.integers(0, 2**32))
def test_cell_keys_tell_exactly_the_counts_that_give_the_print(table: PTable, seed: int) -> None:
    told = change_by_key(COUNTS, table, drawn_keys(np.random.default_rng(seed)))
    for count, shown, lower, upper in zip(*map(np.ravel, (COUNTS, told.shown, told.lower, told.upper)), strict=True):
        behind = [n for n in range(80) if shown - n in dict(table.rows[min(n, table.top)])]
        assert (lower, upper) == (min(behind), max(behind))
        assert lower <= count <= upper and shown >= 0


def test_the_p_table_of_glasshouse() -> None:
    table = read_ptable(None)
    assert table.rows[0] == ((0, Fraction(1)),)  # zero stays zero
    assert all(sum(change * chance for change, chance in row) == 0 for row in table.rows)  # unbiased
    assert max(abs(change) for row in table.rows for change, _ in row) == 2
    assert [table.counts_behind(shown) for shown in (0, 1, 2, 3, 9)] == [(0, 2), (1, 3), (1, 4), (1, 5), (7, 11)]


def test_changes_come_as_often_as_the_p_table_says() -> None:
    table, draws = read_ptable(None), 40_000
    counts = np.tile(np.array([1, 2, 7]), (draws, 1))
    change = change_by_key(counts, table, drawn_keys(np.random.default_rng(5))).shown - counts
    for column, row in enumerate((1, 2, 2)):
        for size, chance in table.rows[row]:
            p = float(chance)
            assert abs((change[:, column] == size).mean() - p) < 5 * np.sqrt(p * (1 - p) / draws)


def test_keys_follow_the_description_the_place_and_the_seed(pl94: Scenario) -> None:
    keys = CellKeys(7)
    first, second = pl94.table("P1"), pl94.table("P2")
    assert description_of(first, first.line(1)) == description_of(second, second.line(1))  # both: everyone
    total, white = (description_of(first, first.line(number)) for number in (1, 3))
    several = [keys.key("01", total), keys.key("02", total), keys.key("01", white), CellKeys(8).key("01", total)]
    assert len(set(several)) == 4 and keys.key("01", total) == CellKeys(7).key("01", total)
    spread = np.array([keys.key(str(place), white) for place in range(4000)], np.float64) / 2**64
    assert abs(spread.mean() - 0.5) < 5 * np.sqrt(1 / 12 / 4000)


def test_a_tally_total_has_a_description_of_its_own(toy: Scenario) -> None:
    table = toy.table("T4")
    told = [description_of(table, line) for line in table.lines]
    assert len(set(told)) == len(told) and told[0].startswith(b"answers")


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ([("0", "0", "0.9")], "probabilities of count 0 add up to 9/10; expected exactly 1"),
        ([("0", "0", "1"), ("1", "-2", "1")], "count 1 has change -2; no count goes below 0"),
        ([("0", "0", "1"), ("2", "0", "1")], "no changes for count 1"),
        ([("0", "0", "0.5"), ("0", "0", "0.5")], "count 0 has a change twice"),
        ([("0", "1", "2"), ("0", "0", "-1")], "not above 0"),
        ([("0", "0.5", "1")], "expected whole numbers"),
        ([("0", "0", "x")], "expected a decimal or a fraction"),
        ([], "no changes for count 0"),
    ],
)
def test_p_tables_that_are_none_are_refused(rows: list[tuple[str, str, str]], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        PTable.of(rows)


def test_bases_and_thresholds_that_protect_nothing_are_refused() -> None:
    with pytest.raises(InputError, match="expected 2 or more"):
        round_counts(COUNTS, 1, Rounding.RANDOM, np.random.default_rng(1))
    with pytest.raises(InputError, match="nothing to hide"):
        suppress(COUNTS, 1, hide_zeros=False, also=np.zeros(COUNTS.shape, np.bool_))
