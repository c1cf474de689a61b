"""Is noise on tables what was paid for? Exact ledgers, the rule of appendix F, unbiased counts, clear errors."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glasshouse.errors import InputError
from glasshouse.mechanism.account import Allocation, allocation
from glasshouse.mechanism.sampler import simulate
from glasshouse.model.records import Count
from glasshouse.model.release import Counts
from glasshouse.protection.afterwards import Afterwards, invariant, publish, scale_to
from glasshouse.protection.noise import (
    add_noise,
    cells_adding_up,
    lines_of_one_record,
    measured_lines,
    plan_by,
    plan_evenly,
)
from glasshouse.scenarios.load import Scenario, load, strategy_query

from .conftest import TOY


def scenario_with(tmp_path: Path, text: str) -> Scenario:
    (tmp_path / "scenario.toml").write_text(text, encoding="utf-8")
    return load(str(tmp_path))


def test_strategy_queries_have_the_cells_of_the_production_system() -> None:
    """Golden: shared/data/dhc_spec/das_budgets.md, section 1: cells of every query."""
    pl94 = load("pl94")
    cells = {"total": 1, "cenrace": 63, "hispanic": 2, "votingage": 2, "hhinstlevels": 3, "hhgq": 8, "detailed": 2016}
    cells |= {"votingage * hispanic * cenrace": 252, "hispanic*cenrace": 126}
    for query, expected in cells.items():
        size = 1
        for recode in strategy_query(pl94, query):
            size *= len(recode.leaves)
        assert size == expected, query
    assert [recode.attribute for recode in strategy_query(pl94, "votingage * cenrace")] == ["voting_age", "race"]
    for query in allocation("pl94-2020").queries:
        strategy_query(pl94, query)


def test_factors_that_mean_nothing_are_refused(tmp_path: Path) -> None:
    pl94 = load("pl94")
    with pytest.raises(InputError, match="unknown factor of the query 'sex \\* cenrace' 'sex'; known: cenrace"):
        strategy_query(pl94, "sex * cenrace")
    with pytest.raises(InputError, match="two factors that look at gq"):
        strategy_query(pl94, "hhgq * hhinstlevels")
    assert strategy_query(replace(pl94, measure={}), "race")[0].attribute == "race"  # an attribute by its own name
    for entry, complaint in {
        'x = "nothing"': "measure: unknown attribute or recode of 'x' 'nothing'",
        'total = "sex"': "measure: 'total' has a meaning of its own",
    }.items():
        with pytest.raises(InputError, match=complaint):
            scenario_with(tmp_path, f"{TOY}\n[measure]\n{entry}\n")


def test_a_recode_that_does_not_divide_everyone_is_no_factor(tmp_path: Path) -> None:
    for entry, complaint in {
        'x = "some"': "'x': recode 'some' does not put every colour into one group",
        'x = "size"': "'size' is an attribute and a recode with other groups",
    }.items():
        with pytest.raises(InputError, match=complaint):
            scenario_with(tmp_path, f"{TOY}\n[measure]\n{entry}\n")
    assert len(scenario_with(tmp_path, f'{TOY}\n[measure]\nx = "warm"\n').measure["x"].leaves) == 3


PUBLISHED = {"house": ("T1_01", "T2_01", "T2_02", "T2_03", "T2_04", "T2_05", "T2_06", "T2_07")}


def everything(scenario: Scenario) -> dict[str, tuple[str, ...]]:
    """Every line of every table at its own level."""
    found: dict[str, list[str]] = {}
    for table in scenario.tables:
        found.setdefault(table.level, []).extend(line.variable for line in table.lines)
    return {level: tuple(names) for level, names in found.items()}


def table_budget(total: str = "1", **queries: str) -> Allocation:
    shares = {name: {"house": Fraction(share)} for name, share in queries.items()}
    return Allocation("mine", "", "", "add-remove", Fraction(total), {"house": Fraction(1, 2)}, shares)


def test_how_many_lines_count_one_record(toy: Scenario, sf1: Scenario) -> None:
    """One, in a tally of two groups two; in that of six races six."""
    for scenario, name, expected in [(toy, "T2", 1), (toy, "T4", 2), (sf1, "P6", 6), (sf1, "P7", 6), (sf1, "P12", 1)]:
        table = scenario.table(name)
        assert lines_of_one_record(scenario.schema, table, table.leaves) == expected, name


def test_an_of_which_line_counts_again() -> None:
    homes = load("dhc-household")
    for table in homes.tables:
        lines = measured_lines(table, [line.variable for line in table.lines])
        most = 2 if table.of_which else 1
        assert lines_of_one_record(homes.schema, table, lines) == most * (1 if not table.tally else most), table.name


def test_rho_alone_is_divided_evenly_and_wholly(toy: Scenario) -> None:
    there = everything(toy)
    plan = plan_evenly(toy, there, Fraction(1, 3))
    assert plan.spent == Fraction(1, 3) and plan.ledger.left == 0
    assert set(plan.ledger.spent) == {f"{table.level} {table.name}" for table in toy.tables}
    assert set(plan.ledger.spent.values()) == {Fraction(1, 3) / len(toy.tables)}
    tally = next(one for one in plan.measured["house"] if one.table.name == "T4")
    assert set(tally.rho) == {tally.price / 2}  # a record may be in two lines of it


def test_a_budget_by_tables_is_spent_table_by_table(toy: Scenario) -> None:
    plan = plan_by(toy, PUBLISHED, table_budget("3", T1="1/4", T2="3/4"))
    assert plan.ledger.spent == {"house T1": Fraction(3, 8), "house T2": Fraction(9, 8)}
    assert plan.ledger.left == Fraction(3, 2) and plan.unspent == {}
    more = replace(table_budget(T1="1/4", T2="3/4"), levels={"house": Fraction(1, 2), "town": Fraction(1, 4)})
    assert plan_by(toy, PUBLISHED, more).unspent == {"town": Fraction(1, 4)}
    assert plan_by(toy, PUBLISHED, table_budget()).spent == Fraction(1, 2)  # no queries: evenly within the level


def test_nothing_is_published_that_was_not_paid_for(toy: Scenario) -> None:
    with pytest.raises(InputError, match="table T2 has no share of the allocation 'mine' at level house"):
        plan_by(toy, PUBLISHED, table_budget(T1="1"))
    with pytest.raises(InputError, match="level 'house' is in the tables and has no share"):
        plan_by(toy, PUBLISHED, replace(table_budget(T1="1"), levels={"town": Fraction(1)}))
    with pytest.raises(InputError, match="T2_02 is not in the tables"):
        plan_by(toy, {"house": ("T1_01", "T2_01")}, table_budget(T1="1/2", T2="1/2"))
    with pytest.raises(InputError, match="rho is 0; expected more than 0"):
        plan_evenly(toy, PUBLISHED, Fraction(0))
    # each of two tables is told as well as the one query that is paid for: together they would cost it twice
    greedy = replace(table_budget(**{"size * colour": "1"}), levels={"house": Fraction(1)})
    two = {"house": tuple(line.variable for name in ("T3R", "T3G") for line in toy.table(name).lines)}
    with pytest.raises(InputError, match="house T3G: asks for rho 1 and 0 is left of 1"):
        plan_by(toy, two, greedy)
    assert plan_by(toy, {"house": two["house"][:4]}, greedy).spent == 1


def test_the_rule_of_appendix_f_by_hand(pl94: Scenario) -> None:
    """Oracle: at blocks, White alone is 4 cells of votingage * hispanic * cenrace and 32 of the detailed query."""
    budget = allocation("pl94-2020")
    plan = plan_by(pl94, {"block": everything(pl94)["block"]}, budget)
    rho = {line.variable: r for one in plan.measured["block"] for line, r in zip(one.lines, one.rho, strict=True)}
    level = budget.total * Fraction(165, 4099)
    assert rho["P0010003"] == level * Fraction(3945, 4097) / 32
    assert rho["P0020002"] == level * Fraction(5, 4097)  # Hispanic: its own query, not 1,008 detailed cells
    assert rho["P0050003"] == level * Fraction(3945, 4097) / 252
    assert plan.spent == sum(max(one.rho) for one in plan.measured["block"])
    assert plan.spent <= level and set(plan.unspent) == set(budget.levels) - {"block"}


def test_cells_that_add_up_to_a_count_by_enumeration(pl94: Scenario) -> None:
    """Oracle: try every cell of the query; it must lie inside the count or outside, and those inside are counted."""
    lines = [pl94.table(name).line(number) for name, number in [("P1", 1), ("P1", 2), ("P4", 2), ("P5", 2), ("P5", 3)]]
    for query in ("total", "hispanic", "hhinstlevels", "hhgq", "votingage * hispanic", "votingage * cenrace"):
        factors = strategy_query(pl94, query)
        boxes = [
            pl94.schema.where({f.attribute: leaf.levels for f, leaf in zip(factors, leaves, strict=True)})
            for leaves in product(*(factor.leaves for factor in factors))
        ]
        for line in lines:
            assert line.predicate is not None
            inside = [box for box in boxes if box <= line.predicate]
            across = [box for box in boxes if box.meets(line.predicate) and not box <= line.predicate]
            expected = 0 if across else len(inside)
            assert cells_adding_up(pl94.schema, factors, line.predicate) == expected, (query, line.variable)


def counted(scenario: Scenario, name: str, rows: Count, places: int) -> Counts:
    """The same numbers of a table's leaves in many places, its totals added up."""
    table = scenario.table(name)
    at = {leaf.number: column for column, leaf in enumerate(table.leaves)}
    columns = [rows[:, [at[leaf.number] for leaf in table.leaves_of(line)]].sum(axis=1) for line in table.lines]
    numbers = np.tile(np.column_stack(columns), (places // len(rows), 1))
    names = tuple(f"{place:03}" for place in range(len(numbers)))
    return Counts(table.level, names, tuple(line.variable for line in table.lines), numbers, numbers)


@pytest.mark.parametrize("neighbours", ["add-remove", "change-one"])
def test_noise_is_unbiased_and_as_wide_as_its_price(toy: Scenario, neighbours: str) -> None:
    counts = counted(toy, "T4", np.array([[9, 0, 3, 1000]]), 20_000)
    plan = plan_evenly(toy, {"house": counts.variables}, Fraction(1, 10), neighbours)
    rng = np.random.default_rng(3)
    noisy = add_noise(counts, plan.measured["house"], neighbours, lambda noise, size: simulate(noise, size, rng))
    noise = noisy["T4"] - counts.lower[:, [counts.column[line.variable] for line in plan.measured["house"][0].lines]]
    # squared distance: two lines of the tally, twice that when a record changes; variance = distance / (2 rho)
    expected = {"add-remove": 2, "change-one": 4}[neighbours] / (2 * 0.1)
    assert np.abs(noise.mean(axis=0)).max() < 5 * np.sqrt(expected / len(noise))
    assert np.abs(noise.var(axis=0) / expected - 1).max() < 5 * np.sqrt(2 / len(noise))


@given(st.integers(0, 10**6), st.integers(1, 50))
def test_what_is_published_is_whole_not_negative_and_adds_up(toy: Scenario, seed: int, tenths: int) -> None:
    rng = np.random.default_rng(seed)
    counts = counted(toy, "T2", rng.integers(0, 6, (8, 4)), 8)
    plan = plan_evenly(toy, {"house": counts.variables}, Fraction(tenths, 10))
    noisy = add_noise(counts, plan.measured["house"], "add-remove", lambda noise, size: simulate(noise, size, rng))
    kept = [invariant(toy, name) for name in ("T2_01", "T2_04")]  # nested: the smaller total first
    values, negatives = publish(counts, plan.measured["house"], noisy, Afterwards.SIMPLE, kept)
    assert values.min() >= 0 and negatives == (noisy["T2"] < 0).sum()
    for name in ("T2_01", "T2_04"):
        assert (values[:, counts.column[name]] == counts.lower[:, counts.column[name]]).all()
    table = toy.table("T2")
    for line in table.subtotals:
        parts = [counts.column[table.line(part).variable] for part in line.parts]
        assert (values[:, counts.column[line.variable]] == values[:, parts].sum(axis=1)).all()
    clipped, _ = publish(counts, plan.measured["house"], noisy, Afterwards.CLIP)
    leaves = [counts.column[line.variable] for line in plan.measured["house"][0].lines]
    assert (clipped[:, leaves] == np.maximum(noisy["T2"], 0)).all()


def test_negative_counts_are_not_published_without_a_word(toy: Scenario) -> None:
    counts = counted(toy, "T2", np.zeros((1, 4), np.int64), 4)
    measured = plan_evenly(toy, {"house": counts.variables}, Fraction(1)).measured["house"]
    minus = {"T2": np.full((4, 4), -1)}
    with pytest.raises(InputError, match="16 noisy counts of level house are negative"):
        publish(counts, measured, minus, Afterwards.NONE)
    assert publish(counts, measured, {"T2": np.zeros((4, 4), np.int64)}, Afterwards.NONE)[1] == 0


def test_an_of_which_is_at_most_its_line() -> None:
    homes = load("dhc-household")
    table = next(table for table in homes.tables if table.of_which)
    lines = measured_lines(table, [line.variable for line in table.lines])
    names = tuple(line.variable for line in table.lines)
    numbers = np.zeros((1, len(names)), np.int64)
    measured = plan_evenly(homes.choose([table.name]), {table.level: names}, Fraction(1)).measured[table.level]
    noisy = {table.name: np.array([[9 if line.within is not None else 2 for line in lines]])}
    counts = Counts(table.level, ("1" * 15,), names, numbers, numbers)
    values, _ = publish(counts, measured, noisy, Afterwards.SIMPLE)
    for line in table.of_which:
        assert values[0, counts.column[line.variable]] == 2


@given(
    st.lists(st.lists(st.integers(0, 10**12), min_size=3, max_size=3), min_size=1, max_size=4),
    st.integers(0, 10**12),
)
def test_scaling_keeps_the_total_and_the_proportions(rows: list[list[int]], total: int) -> None:
    values = scale_to(np.array(rows), np.full(len(rows), total))
    for row, scaled in zip(rows, values.tolist(), strict=True):
        weights = row if sum(row) else [1, 1, 1]
        assert sum(scaled) == total
        assert all(abs(s - Fraction(w * total, sum(weights))) < 1 for w, s in zip(weights, scaled, strict=True))
        assert scale_to(np.array([row]), np.array([sum(row)])).tolist() == [row]


def test_what_cannot_be_kept_is_refused(toy: Scenario) -> None:
    with pytest.raises(InputError, match="unknown variable to keep 'T9_01'; known: T1_01"):
        invariant(toy, "T9_01")
    with pytest.raises(InputError, match="T4_01 cannot be kept"):
        invariant(toy, "T4_01")
