"""Tables that add up a number of the records: are persons counted, rebuilt and protected as they should be?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from glasshouse.commands.work.noise import noise_file
from glasshouse.errors import InputError
from glasshouse.files.records import level_matrix, open_records
from glasshouse.mechanism.account import allocation
from glasshouse.model.identities import Checker
from glasshouse.model.records import Count, Records
from glasshouse.model.release import Counts, Release, counted
from glasshouse.model.schema import Attribute, Impossible, Schema
from glasshouse.model.tabulate import tabulate
from glasshouse.program.ladder import Ladder
from glasshouse.program.listing import every
from glasshouse.program.questions import Start, farthest
from glasshouse.program.tables.histogram import Problem, compile_tables, places_alone
from glasshouse.protection.afterwards import Afterwards, invariant, publish
from glasshouse.protection.noise import Plan, add_noise, lines_of_one_record, noise_of, plan_by, plan_evenly
from glasshouse.scenarios.load import Scenario, load
from tests.oracles import Ints, Limits, attribute, kinds_of, listed

NAME = "subsidised-housing"
SMALL = """
title = "Homes of up to three"
impossible = [
  { home = { persons = "0" }, unless = { kind = "none" }, reason = "nobody" },
  { home = { persons = "1+" }, unless = { kind = ["x", "y"] }, reason = "somebody" },
]
[geography]
place = "block"
unit = "block"
levels = { block = 2 }
[attribute]
home = { counts = ["persons", "children"], rest = "adults", most = 3 }
kind = { levels = ["none", "x", "y"] }
[recode]
kind = { attribute = "kind", groups = ["x", "y"] }
[recode.size]
attribute = "home"
groups = [{ label = "one", levels = { persons = "1" } }, { label = "more", levels = { persons = "2+" } }]
[table]
A = { title = "persons", level = "block", sums = "persons" }
B = { title = "b", level = "block", sums = "persons", parts = { young = "children", old = "adults" }, bottom_up = "D" }
C = { title = "kinds", level = "block", by = ["kind"], universe = { home = { persons = "1+" } } }
D = { title = "sizes", level = "block", by = ["size"], universe = { home = { persons = "1+" } } }
E = { title = "adults of x", level = "block", sums = "adults", universe = { kind = "x" } }
H = { title = "homes", level = "block", by = [] }
"""


@pytest.fixture(scope="module")
def scenario() -> Scenario:
    return load(NAME)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    return scenario_of(tmp_path_factory.mktemp("small"), SMALL)


def scenario_of(folder: Path, text: str) -> Scenario:
    (folder / "scenario.toml").write_text(text, encoding="utf-8")
    return load(str(folder))


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The housing units of a small county, as `synthesize` writes them."""
    from glasshouse.cli.main import main

    folder = tmp_path_factory.mktemp("county") / "county"
    assert main(["synthesize", "--persons", "3000", "--seed", "5", "--out", str(folder), "--quiet"]) == 0
    return folder / "households.parquet"


@pytest.fixture(scope="module")
def counts(scenario: Scenario, homes: Path) -> Counts:
    return tabulate(read(homes, scenario), scenario.tables, "block", subtotals=True)


def read(path: Path, scenario: Scenario) -> Records:
    frame = pl.concat(list(open_records(path, scenario).frames()))
    places = tuple(sorted(frame["geoid"].unique().to_list()))
    at = {place: number for number, place in enumerate(places)}
    place = np.array([at[geoid] for geoid in frame["geoid"].to_list()], np.int32)
    return Records(scenario.schema, places, place, level_matrix(frame, scenario.schema))


# Levels that are numbers of members


def test_levels_are_all_pairs_in_order(scenario: Scenario) -> None:
    household = scenario.schema.attribute("household")
    pairs = [(n, k) for n in range(21) for k in range(n + 1)]
    assert len(household) == 231 == len(pairs)
    assert list(zip(household.numbers["persons"], household.numbers["children"], strict=True)) == pairs
    assert all(a == n - k for a, (n, k) in zip(household.numbers["adults"], pairs, strict=True))
    assert household.levels[7] == "3 persons, 1 under 18" and household.readings[0].columns == ("persons", "children")


def test_levels_are_named_by_their_numbers(scenario: Scenario) -> None:
    recode = scenario.recodes["size"]
    persons = scenario.schema.attribute("household").numbers["persons"]
    for size, group in enumerate(recode.groups[:-1], 1):
        assert {persons[level] for level in group.levels} == {size} and len(group.levels) == size + 1
    assert {persons[level] for level in recode.groups[-1].levels} == set(range(7, 21))


def test_entries_about_numbers_must_all_hold(tmp_path: Path) -> None:
    text = SMALL.replace('persons = "2+" }', 'persons = "2+", children = "1-2", not = "3 persons, 1 children" }')
    changed = scenario_of(tmp_path, text.replace('by = ["size"]', "by = []"))
    levels = changed.recodes["size"].groups[1].levels
    labels = {changed.schema.attribute("home").levels[level] for level in levels}
    assert labels == {"2 persons, 1 children", "2 persons, 2 children", "3 persons, 2 children"}


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ('counts = ["persons", "children"]', 'counts = ["persons"]', "expected counts of two columns"),
        ("most = 3", 'most = "3"', "expected counts of two columns"),
        ('rest = "adults"', 'rest = "children"', "another name"),
        ("most = 3 }", 'most = 3, label = "{persons} persons" }', "different labels"),
        ('levels = { persons = "1" }', 'levels = { person = "1" }', "person"),
        ('levels = { persons = "1" }', 'levels = { persons = "4" }', "does not lie within"),
        ('sums = "persons" }', 'sums = "cats" }', "cats"),
        ('young = "children", old = "adults"', 'young = "children", old = "children"', "do not add up to persons"),
        ('young = "children", old = "adults"', 'young = "children", old = "dogs"', "dogs"),
        ('sums = "persons" }', 'sums = "persons", by = [] }', "by"),
    ],
)
def test_mistakes_are_refused(tmp_path: Path, old: str, new: str, match: str) -> None:
    assert old in SMALL
    with pytest.raises(InputError, match=match):
        scenario_of(tmp_path, SMALL.replace(old, new, 1))


def test_two_attributes_may_not_count_the_same(small: Scenario) -> None:
    home = small.schema.attribute("home")
    with pytest.raises(InputError, match="different names"):
        Schema((home, replace(home, name="house")))
    with pytest.raises(InputError, match="for each of its levels"):
        Attribute("a", ("x",), (), {"cats": (1, 2)})


# Counting


def test_lines_count_each_member_once(scenario: Scenario) -> None:
    """A record gives as many answers as it has members: the law behind every sum."""
    household = scenario.schema.attribute("household")
    for name, line, number in (
        ("P1", 1, "persons"),
        ("P16", 1, "persons"),
        ("P16", 2, "children"),
        ("P16", 3, "adults"),
    ):
        table = scenario.table(name)
        answers = [answer.by_attribute["household"] for answer in counted(table, table.line(line))]
        for level, members in enumerate(household.numbers[number]):
            assert sum(level in answer for answer in answers) == members
    assert scenario.attributes_used == {"household", "THHSPAN", "THHRACE"}


def test_tables_are_the_official_ones(scenario: Scenario) -> None:
    assert {table.name: len(table.lines) for table in scenario.tables} == {
        "P1": 1,
        "P15": 17,
        "P16": 3,
        "H3": 3,
        "H13": 8,
    }
    assert scenario.official["P0050017"] == ("P5", 17) and "P5" not in scenario.by_table
    assert [line.variable for line in scenario.table("P16").lines] == ["P0160001", "P0160002", "P0160003"]


def test_sums_are_those_of_the_records(homes: Path, counts: Counts) -> None:
    frame = pl.read_parquet(homes)
    wanted = frame.group_by("block").agg(
        P0010001=pl.col("persons").sum().cast(pl.Int64),
        P0160001=pl.col("persons").sum().cast(pl.Int64),
        P0160002=pl.col("children").sum().cast(pl.Int64),
        P0160003=(pl.col("persons") - pl.col("children")).sum().cast(pl.Int64),
        H0030002=(pl.col("persons") > 0).sum().cast(pl.Int64),
        H0030003=(pl.col("persons") == 0).sum().cast(pl.Int64),
        H0130001=(pl.col("persons") > 0).sum().cast(pl.Int64),
        H0130008=(pl.col("persons") >= 7).sum().cast(pl.Int64),
        P0150011=((pl.col("THHSPAN") == 2) & (pl.col("THHRACE") == 1)).sum().cast(pl.Int64),
    )
    for row in wanted.iter_rows(named=True):
        place = row.pop("block")
        assert row == {name: counts.value(place, name).lower for name in row}


def test_records_need_no_bedrooms_and_no_more_than_twenty_persons(
    scenario: Scenario, homes: Path, tmp_path: Path
) -> None:
    frame = pl.read_parquet(homes)
    frame.drop("bedrooms").write_parquet(tmp_path / "without.parquet")
    assert len(read(tmp_path / "without.parquet", scenario)) == frame.height
    for column, value, match in (("persons", 21, "whole number from 0 to 20"), ("children", 20, "persons children")):
        changed = frame.with_columns(
            pl.when(pl.col("persons") > 0).then(value).otherwise(pl.col(column)).cast(pl.Int16).alias(column)
        )
        changed.write_parquet(tmp_path / "odd.parquet")
        with pytest.raises(InputError, match=match):
            read(tmp_path / "odd.parquet", scenario)


# Checking


def test_true_tables_agree_and_wrong_sums_are_found(scenario: Scenario, counts: Counts) -> None:
    checker = Checker(scenario.schema, scenario.tables)
    assert not list(checker.check(counts))
    for variable, others in (("P0010001", "P0160001"), ("P0160003", "P0160002")):
        wrong = counts.lower.copy()
        wrong[0, counts.column[variable]] += 1
        (finding,) = checker.check(replace(counts, lower=wrong, upper=wrong))
        assert finding.geoid == counts.places[0] and others in finding.identity


def test_a_release_says_nothing_of_records_by_a_sum(scenario: Scenario, counts: Counts) -> None:
    release = Release(scenario.schema, (scenario.table("P1"),), {"block": counts})
    somebody = scenario.table("H3").line(2).predicate
    assert somebody is not None
    assert release.count(somebody, counts.places[0]).upper > 10**6


# The core against brute force


def rows_of(scenario: Scenario, kinds: Ints) -> dict[str, list[int]]:
    """How often each kind of the small scenario is counted in each variable, worked out by hand."""
    pairs = [(n, k) for n in range(4) for k in range(n + 1)]
    members = [pairs[home] for home in kinds[:, 0]]
    kind = kinds[:, 1].tolist()
    return {
        "A_001": [n for n, _ in members], "B_001": [n for n, _ in members], "B_002": [k for _, k in members],
        "B_003": [n - k for n, k in members], "C_001": [int(n > 0) for n, _ in members],
        "C_002": [int(one == 1) for one in kind], "C_003": [int(one == 2) for one in kind],
        "D_001": [int(n > 0) for n, _ in members], "D_002": [int(n == 1) for n, _ in members],
        "D_003": [int(n > 1) for n, _ in members],
        "E_001": [(n - k) * int(one == 1) for (n, k), one in zip(members, kind, strict=True)],
        "H_001": [1] * len(kinds),
    }  # fmt: skip


def cases(small: Scenario) -> Iterator[tuple[list[str], Ints, Ints]]:
    """Some of the variables, and the lower and upper numbers of a few homes; now and then none fit."""
    kinds = kinds_of(small.schema)
    counted_in = rows_of(small, kinds)
    rng = np.random.default_rng(11)
    for _ in range(120):
        names = [name for name in counted_in if name == "H_001" or rng.random() < 0.7]
        truth = rng.multinomial(rng.integers(1, 4), np.full(len(kinds), 1 / len(kinds)))
        value = np.array([np.dot(counted_in[name], truth) for name in names])
        spoilt = rng.integers(-1, 2, len(names)) * (rng.random(len(names)) < 0.08)
        wide = rng.integers(0, 2, len(names)) * (rng.random() < 0.3)
        low = np.maximum(value + spoilt - wide, 0)
        yield names, low, np.maximum(value + spoilt, 0) + wide


def problem_of(small: Scenario, names: list[str], low: Ints, high: Ints) -> Problem:
    fine = [small.schema.where({a.name: [level]}) for a in small.schema.attributes for level in range(len(a))]
    compiled = compile_tables(small.schema, small.tables, names, told_apart=fine)
    return places_alone(compiled, Counts("block", ("01",), tuple(names), low[None], high[None]))


@pytest.mark.parametrize("ladder", [Ladder(), Ladder(propagate=False)], ids=["propagated", "plain"])
def test_the_core_lists_what_brute_force_does(small: Scenario, ladder: Ladder) -> None:
    kinds = kinds_of(small.schema)
    counted_in, fitting = rows_of(small, kinds), 0
    for names, low, high in cases(small):
        limits: list[Limits] = [
            (tuple(at for at, times in enumerate(counted_in[name]) for _ in range(times)), int(a), int(b))
            for name, a, b in zip(names, low, high, strict=True)
        ]
        wanted = {tuple(row) for row in listed(len(kinds), limits).tolist()}
        problem = problem_of(small, names, low, high)
        found = every(problem, len(wanted) + 1, 0, ladder)
        spread = np.zeros((len(found.x), len(kinds)), np.int64)
        at = {tuple(kind): number for number, kind in enumerate(kinds.tolist())}
        for variable, cell in enumerate(problem.cell.tolist()):
            levels = problem.compiled.cells.levels(cell).by_attribute
            kind = tuple(min(levels[a.name]) for a in small.schema.attributes)
            spread[:, at[kind]] = found.x[:, variable]
        assert found.complete and {tuple(row) for row in spread.tolist()} == wanted, (names, low, high)
        fitting += bool(wanted)
    assert 40 < fitting < 120  # both kinds were seen


def test_the_farthest_is_that_of_brute_force(small: Scenario) -> None:
    kinds = kinds_of(small.schema)
    counted_in = rows_of(small, kinds)
    seen = 0
    for names, low, high in cases(small):
        limits: list[Limits] = [
            (tuple(at for at, times in enumerate(counted_in[name]) for _ in range(times)), int(a), int(b))
            for name, a, b in zip(names, low, high, strict=True)
        ]
        all_that_fit = listed(len(kinds), limits)
        if len(all_that_fit) > 1 and seen < 25:
            seen += 1
            problem = problem_of(small, names, low, high)
            first = all_that_fit[0]
            used = np.flatnonzero(first)
            cell = problem.compiled.cells.of(kinds[used].astype(np.int16))
            found = farthest(problem, Start(np.zeros(len(used), np.int64), cell, first[used]))
            assert found.distance[0] == np.abs(all_that_fit - first).sum(axis=1).max()
    assert seen == 25


# Attributes that no table tells


def test_a_schema_looks_away_from_what_can_always_be() -> None:
    schema = Schema((attribute("a", 2), attribute("b", 3)))
    zero = Impossible(schema.where({"a": [0], "b": [1, 2]}), "so it is")
    free = Schema(schema.attributes, (zero,))
    assert free.looking_away(["b"]).impossible == () and free.looking_away([]) is free
    whole = Schema(schema.attributes, (zero, Impossible(schema.where({"a": [0], "b": [0]}), "nor this")))
    (never,) = whole.looking_away(["b"]).impossible
    assert never.predicate == schema.where({"a": [0]})  # whatever b is; forgetting that would be wrong


def test_blocks_are_unique_whatever_their_bedrooms(scenario: Scenario, tmp_path: Path) -> None:
    """Vacant units are not subsidised; that must not make bedrooms, which no table tells, count as a difference."""
    from glasshouse.cli.main import main

    rows = [(2, 0, 1, 1, 2), (0, 0, 0, 0, 0)]
    names = ("persons", "children", "THHSPAN", "THHRACE", "bedrooms")
    frame = pl.DataFrame([dict(zip(names, row, strict=True)) | {"block": "990010001001000"} for row in rows])
    frame.write_csv(tmp_path / "homes.csv")
    words = ["--scenario", NAME, "--quiet"]
    tables, out = str(tmp_path / "tables.parquet"), tmp_path / "out"
    assert main(["tabulate", str(tmp_path / "homes.csv"), "--out", tables, *words]) == 0
    assert main(["vary", tables, "--out", str(out), *words]) == 0
    places = pl.read_parquet(out / "places.parquet")
    assert places["certain"].to_list() == [2]
    assert main(["reconstruct", tables, "--out", str(tmp_path / "rebuilt"), *words]) == 0
    again = pl.read_parquet(tmp_path / "rebuilt" / "records.parquet").sort("persons")
    assert again.select(names[:4]).rows() == [(0, 0, 0, 0), (2, 0, 1, 1)] and again["bedrooms"][0] == 0


# Noise


def drawn(
    plan: Plan, counts: Counts, how: Afterwards, kept: list[Any], seed: int = 1
) -> tuple[dict[str, Count], Count]:
    from glasshouse.mechanism.sampler import simulate

    rng = np.random.default_rng(seed)
    noisy = add_noise(counts, plan.measured["block"], plan.neighbours, lambda noise, size: simulate(noise, size, rng))
    return noisy, publish(counts, plan.measured["block"], noisy, how, kept)[0]


@pytest.fixture(scope="module")
def plan(scenario: Scenario, counts: Counts) -> Plan:
    return plan_by(scenario, {"block": counts.variables}, allocation("occupancy-2020"))


def test_the_budget_is_that_of_the_paper(plan: Plan) -> None:
    """Appendix F: c = 0.0002 / M of rho 7.70, or of 4.96 for persons, and noise of variance 1 / (c rho)."""
    wanted = {
        "block H13": Fraction("7.70") * Fraction("0.0002") / 3360,
        "block P15": Fraction("7.70") * Fraction("0.0002") / 2,
        "block P16": Fraction("4.96") * Fraction("0.0002") / 2,
    }
    assert plan.ledger.spent == wanted and plan.spent == sum(wanted.values()) and plan.ledger.total == Fraction("12.66")
    for one in plan.measured["block"]:
        assert one.price == wanted.get(one.purpose, 0)
        for rho in one.rho:
            assert rho == wanted[one.purpose]
            assert noise_of(rho, plan.neighbours).variance == pytest.approx(float(1 / rho), rel=1e-9)


def test_only_children_of_the_persons_get_noise(scenario: Scenario, plan: Plan) -> None:
    lines = {one.table.name: [line.variable for line in one.lines] for one in plan.measured["block"]}
    assert lines["P1"] == [] and lines["P16"] == ["P0160002"] and lines["H3"] == [] and len(lines["H13"]) == 7
    assert lines_of_one_record(scenario.schema, scenario.table("P16"), scenario.table("P16").leaves) == 1
    made = {one.table.name: one.made.adds for one in plan.measured["block"] if one.made}
    assert made == {"P1": (1, 2, 3, 4, 5, 6, 7), "P16": (1, 2, 3, 4, 5, 6, 7)}


@pytest.mark.parametrize("rho", [None, Fraction(3)])
def test_persons_are_made_from_noisy_sizes(
    scenario: Scenario, counts: Counts, plan: Plan, rho: Fraction | None
) -> None:
    kept = [invariant(scenario, "H0030002")]
    if rho is not None:
        plan = plan_evenly(
            scenario, {"block": counts.variables}, rho, "change-one", [one.line.variable for one in kept]
        )
        assert plan.ledger.spent == {f"block {name}": rho / 4 for name in ("P15", "P16", "H3", "H13")}
    noisy, shown = drawn(plan, counts, Afterwards.SIMPLE, kept)
    at = {name: shown[:, number] for name, number in counts.column.items()}
    occupied = counts.lower[:, counts.column["H0030002"]]
    assert (at["H0030002"] == occupied).all() and (shown >= 0).all()
    assert (at["H0130001"] == occupied).all() and (at["P0150001"] == occupied).all()
    total = sum(size * at[f"H013000{size + 1}"] for size in range(1, 8))
    assert (at["P0010001"] == total).all() and (at["P0160001"] == total).all()
    assert (at["P0160002"] == np.minimum(np.maximum(noisy["P16"][:, 0], 0), total)).all()
    assert (at["P0160003"] == total - at["P0160002"]).all()
    assert not list(Checker(scenario.schema, scenario.tables).check(replace(counts, lower=shown, upper=shown)))


def test_a_table_that_is_kept_whole_costs_nothing(scenario: Scenario, counts: Counts) -> None:
    plan = plan_evenly(scenario, {"block": counts.variables}, Fraction(3), kept=["H0030002", "H0030003"])
    assert plan.ledger.spent == {f"block {name}": Fraction(1) for name in ("P15", "P16", "H13")}
    _, shown = drawn(plan, counts, Afterwards.SIMPLE, [])
    columns = [counts.column[f"H003000{line}"] for line in (1, 2, 3)]
    assert (shown[:, columns] == counts.lower[:, columns]).all()


def test_noise_that_cannot_be_is_refused(scenario: Scenario, counts: Counts, plan: Plan) -> None:
    with pytest.raises(InputError, match="bottom up from H13"):
        drawn(plan, counts, Afterwards.CLIP, [])
    with pytest.raises(InputError, match="is made from H13, which is not in the tables"):
        plan_evenly(scenario.choose(["P1", "P15"]), {"block": counts.variables}, Fraction(1))
    with pytest.raises(InputError, match="cannot be kept"):
        invariant(scenario, "P0010001")
    budget = replace(allocation("occupancy-2020"), queries={"total": {"block": Fraction(1)}})
    with pytest.raises(InputError, match="no strategy query adds up"):
        plan_by(scenario.choose(["P16", "H13", "H3"]), {"block": counts.variables}, budget)


def test_the_command_keeps_an_honest_account(scenario: Scenario, homes: Path, tmp_path: Path) -> None:
    from glasshouse.cli.main import main

    tables = tmp_path / "tables.parquet"
    assert main(["tabulate", str(homes), "--scenario", NAME, "--out", str(tables), "--quiet"]) == 0
    out, raw = tmp_path / "noisy.parquet", tmp_path / "raw.parquet"
    told = noise_file(
        tables, scenario, out, budget=allocation("occupancy-2020"), invariants=["H0030002"], measurements=raw
    )
    assert told.held == ("H3",) and told.invariants == ("H0030002",) and told.neighbours == "change-one"
    assert set(told.ledger) == {"block H13", "block P15", "block P16"}
    measured = set(pl.read_parquet(raw)["variable"].to_list())
    assert not {name for name in measured if name.startswith(("P001", "H003"))}  # what has no noise is not told
    assert "P0160002" in measured and "P0160003" not in measured


@pytest.mark.parametrize("how", [["round", "--base", "3"], ["suppress", "--below", "5"], ["cellkey", "--seed", "3"]])
def test_other_protections_admit_the_truth(homes: Path, tmp_path: Path, how: list[str]) -> None:
    from glasshouse.cli.main import main

    tables, out = str(tmp_path / "tables.parquet"), str(tmp_path / "out.parquet")
    assert main(["tabulate", str(homes), "--scenario", NAME, "--out", tables, "--quiet"]) == 0
    assert main(["protect", how[0], tables, "--scenario", NAME, "--out", out, *how[1:], "--quiet"]) == 0
    both = pl.read_parquet(out).join(pl.read_parquet(tables), on=["geoid", "variable"], how="left", suffix="_true")
    truth, upper = both["value"].fill_null(0), both["upper"].fill_null(10**12)
    assert both.height and ((truth >= both["lower"]) & (truth <= upper)).all()
