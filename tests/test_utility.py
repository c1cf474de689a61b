"""How useful are protected data? Measures by hand on toys, against counting one by one, and laws that always hold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glasshouse.assess.numbers import Counting, groups_of, recodes_of
from glasshouse.assess.usefulness import MEASURES, Kind, compare_files, headlines_of, measures_of, usefulness
from glasshouse.assess.utility import (
    Comparison,
    Errors,
    Utility,
    dissimilarity,
    districts_of,
    draw_districts,
    errors_of,
    population_of,
    shares,
    utility_of,
    utility_of_tables,
)
from glasshouse.commands.work.tabulate import make_plan, tabulate_file
from glasshouse.errors import GlasshouseBug, InputError
from glasshouse.files.records import record_frame
from glasshouse.model.records import UNLIMITED, Records, satisfies
from glasshouse.model.release import Counts, Release
from glasshouse.scenarios.load import Scenario, known_scenarios, load
from tests.often import often

HOUSES = ("A11", "A12", "A13", "A21", "A22", "B11", "B12")  # two towns, three streets


def draw(scenario: Scenario, persons: int, seed: int, houses: tuple[str, ...] = HOUSES) -> Records:
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(0, len(attribute), persons) for attribute in scenario.schema.attributes])
    place = rng.integers(0, len(houses), persons).astype(np.int32)
    return Records(scenario.schema, houses, place, codes.astype(np.int16))


def perturbed(records: Records, seed: int, share: float = 0.3) -> Records:
    """The same records, some of them in other places or with other levels."""
    rng = np.random.default_rng(seed)
    place, codes = records.place.copy(), records.codes.copy()
    moved = rng.random(len(place)) < share
    place[moved] = rng.integers(0, len(records.places), int(moved.sum()))
    shuffled = np.flatnonzero(rng.random(len(place)) < share)
    codes[shuffled] = codes[rng.permutation(shuffled)]
    return Records(records.schema, records.places, place, codes)


def without(records: Records, prefix: str) -> Records:
    """The records that do not live in places of this prefix; the places are gone too."""
    kept = [name for name in records.places if not name.startswith(prefix)]
    number = np.array([kept.index(name) if name in kept else -1 for name in records.places], np.int32)
    rows = number[records.place] >= 0
    return Records(records.schema, tuple(kept), number[records.place[rows]], records.codes[rows])


def write(records: Records, scenario: Scenario, path: Path) -> Path:
    record_frame(scenario, records.places, records.place, records.codes, {}).sample(
        fraction=1.0, shuffle=True, seed=1
    ).write_parquet(path)
    return path


def tabulated(records: Path, scenario: Scenario, out: Path, further: tuple[str, ...] = ()) -> Path:
    tabulate_file(records, make_plan(scenario, further=further), out)
    return out


def flat(found: Utility) -> pl.DataFrame:
    return measures_of(found).sort(["measure", "level", "table", "group"], nulls_last=True)


def same(one: Utility, other: Utility) -> bool:
    first, second = flat(one), flat(other)
    keys = [name for name in MEASURES if name not in ("value", "truth")]
    close = np.allclose(first.select("value", "truth").to_numpy(), second.select("value", "truth").to_numpy(),
                        rtol=1e-12, atol=1e-12, equal_nan=True)  # fmt: skip
    return close and first.select(keys).equals(second.select(keys))


# by hand


def test_errors_of_counts_by_hand() -> None:
    found = errors_of(np.array([[4.0, 0.0], [2.0, 2.0]]), np.array([[3.0, 0.0], [5.0, 2.0]]))
    assert found == Errors(numbers=4, changed=2, total=8.0, absolute=4.0, largest=3.0, width=0.0, unlimited=0)
    assert (found.relative, found.mean, found.share_changed) == (0.5, 1.0, 0.5)
    both = found + errors_of(np.array([2.0]), np.array([7.0]))
    assert (both.numbers, both.total, both.absolute, both.largest) == (5, 10.0, 9.0, 5.0)


def test_an_interval_is_judged_by_its_midpoint_and_is_never_unchanged() -> None:
    found = errors_of(np.array([4.0, 1.0]), np.array([4.0, 1.0]), np.array([4.0, 0.0]), np.array([0.0, 1.0]))
    assert (found.absolute, found.changed, found.width, found.unlimited, found.mean_width) == (0.0, 2, 4.0, 1, 4.0)


def test_populations_by_hand() -> None:
    found = population_of(np.array([10.0, 0.0, 20.0]), np.array([12.0, 3.0, 20.0]))
    assert (found.places, found.absolute, found.largest, found.exact) == (3, 5.0, 3.0, 1)
    assert (found.mean_percent, found.empty, found.empty_absolute) == (10.0, 1, 3.0)  # 20 % and 0 % of two places
    assert found.share_exact == pytest.approx(1 / 3)


def test_dissimilarity_of_two_blocks_by_hand() -> None:
    apart = np.array([[8.0, 2.0], [2.0, 8.0]])  # |.8 - .2| / 2 + |.2 - .8| / 2
    assert dissimilarity(apart) == pytest.approx([0.6, 0.6])
    assert dissimilarity(np.array([[5.0, 0.0], [0.0, 5.0]])).tolist() == [1.0, 1.0]
    assert dissimilarity(np.array([[5.0, 0.0], [3.0, 0.0]])).tolist() == [0.0, 0.0]  # convention 36
    three = dissimilarity(np.array([[6.0, 2.0, 2.0], [2.0, 4.0, 4.0]]))
    assert three[0] == pytest.approx((abs(6 / 8 - 4 / 12) + abs(2 / 8 - 8 / 12)) / 2)


def test_shares_by_hand() -> None:
    assert shares(np.array([[1.0, 3.0], [0.0, 0.0]])).tolist() == [[25.0, 75.0], [0.0, 0.0]]


def test_districts_by_hand() -> None:
    """Drawn on what the protected data say, measured on the truth."""
    truth, protected = np.array([30.0, 10.0, 10.0, 30.0]), np.array([10.0, 10.0, 10.0, 30.0])
    assert draw_districts(truth, 2).tolist() == [0, 0, 1, 1]
    assert draw_districts(protected, 2).tolist() == [0, 0, 0, 1]
    found = districts_of(truth, protected, 2)
    assert (found.deviation, found.claimed, found.informed) == (25.0, 0.0, 0.0)  # 50 and 30 people where 40 are ideal
    assert districts_of(truth, protected, 1).deviation == 0.0
    assert draw_districts(np.array([5.0]), 4).max() < 4  # more districts than blocks: some are empty
    with pytest.raises(InputError, match="expected at least 1"):
        districts_of(truth, protected, 0)


def test_a_toy_street_by_hand(toy: Scenario) -> None:
    """Four things in two houses of a street; the protected data have one of them next door."""
    codes = np.array([[0, 0, 0], [0, 0, 1], [2, 3, 0], [2, 3, 1]], np.int16)  # colour, size, owner
    truth = Records(toy.schema, ("A11", "A12"), np.array([0, 0, 1, 1], np.int32), codes)
    protected = Records(toy.schema, ("A11", "A12"), np.array([0, 1, 1, 1], np.int32), codes)
    found = utility_of(truth, protected, toy, groups=("owner", "warm"), districts=2)
    assert found.tables["house", "T1"] == Errors(2, 2, 4.0, 2.0, 1.0)
    assert found.tables["house", "T1"].relative == 0.5
    assert found.tables["street", "T1"].absolute == 0.0
    assert ("house", "T5") not in found.tables  # a table of streets says nothing about houses
    assert found.populations["house"].mean_percent == 50.0
    assert found.populations["street"].share_exact == 1.0
    by_house = {(one.recode, one.group): one for one in found.segregation if one.level == "house"}
    red = by_house["warm", "red"]
    assert (red.truth, red.protected, red.error) == (1.0, 0.5, 0.5)
    yes = by_house["owner", "yes"]
    assert (yes.truth, yes.protected) == (0.0, 0.5)
    assert found.districts is not None
    assert (found.districts.deviation, found.districts.claimed, found.districts.informed) == (0.0, 50.0, 0.0)
    assert all(share.error == 0 for share in found.shares)


def test_several_areas_are_averaged_by_their_people(toy: Scenario) -> None:
    """Town A (4) is wholly apart, in the protected data not at all; town B (2) is as it was."""
    codes = np.array([[0, 0, owner] for owner in (0, 0, 1, 1, 0, 1)], np.int16)
    places = ("A11", "A12", "B11", "B12")
    truth = Records(toy.schema, places, np.array([0, 0, 1, 1, 2, 3], np.int32), codes)
    protected = Records(toy.schema, places, np.array([0, 1, 0, 1, 2, 3], np.int32), codes)
    found = utility_of(truth, protected, toy, groups=("owner",))
    yes = next(one for one in found.segregation if (one.level, one.group) == ("house", "yes"))
    assert (yes.truth, yes.protected, yes.error) == pytest.approx((1.0, 1 / 3, 2 / 3))


# against counting one by one


@settings(max_examples=often(15), deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 60))
def test_table_errors_are_what_the_predicates_say(toy: Scenario, seed: int, persons: int) -> None:
    truth = draw(toy, persons, seed)
    protected = perturbed(truth, seed + 1)
    found = utility_of(truth, protected, toy)
    geography = toy.geography
    for (level, name), errors in found.tables.items():
        absolute = 0
        for line in toy.table(name).leaves:
            assert line.predicate is not None
            hits = [satisfies(toy.schema, side.codes, line.predicate) for side in (truth, protected)]
            for area in {geography.code(place, level) for place in HOUSES}:
                inside = np.array([place.startswith(area) for place in HOUSES])
                counts = [int((hit & inside[s.place]).sum()) for hit, s in zip(hits, (truth, protected), strict=True)]
                absolute += abs(counts[0] - counts[1])
        assert errors.absolute == absolute


# laws


@settings(max_examples=often(15), deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 60))
def test_identical_data_have_no_error(toy: Scenario, seed: int, persons: int) -> None:
    truth = draw(toy, persons, seed)
    found = utility_of(truth, truth, toy)
    assert all(errors.absolute == errors.changed == errors.largest == 0 for errors in found.tables.values())
    assert all(one.absolute == 0 and one.exact == one.places for one in found.populations.values())
    assert all(share.error == 0 for share in found.shares)
    assert found.segregation
    assert all(one.truth == one.protected and one.error == 0 for one in found.segregation)
    assert found.districts is not None
    assert found.districts.deviation == found.districts.claimed == found.districts.informed


@settings(max_examples=often(15), deadline=None)
@given(st.integers(0, 10**6), st.integers(10, 60))
def test_a_swap_within_a_street_changes_no_number_of_a_street(toy: Scenario, seed: int, persons: int) -> None:
    truth = draw(toy, persons, seed, houses=("A11", "A12"))
    place = truth.place.copy()
    homes = [np.flatnonzero(place == house) for house in (0, 1)]
    if len(homes[0]) and len(homes[1]):
        place[homes[0][0]], place[homes[1][0]] = 1, 0
    found = utility_of(truth, Records(toy.schema, truth.places, place, truth.codes), toy)
    assert all(errors.changed == 0 for (level, _), errors in found.tables.items() if level != "house")
    assert all(one.absolute == 0 for one in found.populations.values())
    assert all(share.error == 0 for share in found.shares)


def test_a_swap_across_streets_is_seen(toy: Scenario) -> None:
    """The other side of the law before: an error of 0 must not be all that is ever said."""
    truth = draw(toy, 40, 3)
    found = utility_of(truth, perturbed(truth, 4), toy)
    for level in ("house", "street", "town"):
        assert found.at(level).absolute > 0
    assert any(share.error > 0 for share in found.shares)
    assert any(one.error > 0 for one in found.segregation)


@settings(max_examples=often(20), deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 80))
def test_errors_of_sums_are_at_most_sums_of_errors(toy: Scenario, seed: int, persons: int) -> None:
    truth = draw(toy, persons, seed)
    found = utility_of(truth, perturbed(truth, seed + 1), toy)
    for name in toy.by_table:
        errors = [
            found.tables[level, name].absolute for level in ("town", "street", "house") if (level, name) in found.tables
        ]
        assert errors == sorted(errors)
    absolute = [found.populations[level].absolute for level in ("town", "street", "house")]
    assert absolute == sorted(absolute)


@settings(max_examples=often(15), deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 80))
def test_unit_by_unit_is_the_same_as_at_once(toy: Scenario, seed: int, persons: int) -> None:
    truth = draw(toy, persons, seed)
    protected = without(perturbed(truth, seed + 1), "A2") if seed % 3 == 0 else perturbed(truth, seed + 1)
    recodes = recodes_of(toy)
    counting, at_once = Counting.of(toy, recodes), Comparison(toy, recodes)
    at_once.add(counting.release(truth), counting.release(protected))
    assert same(utility_of(truth, protected, toy), at_once.finish())


def test_units_out_of_order_are_our_bug(toy: Scenario) -> None:
    recodes = recodes_of(toy)
    counting, comparison = Counting.of(toy, recodes), Comparison(toy, recodes)
    one, other = (counting.release(draw(toy, 5, 1, houses)) for houses in (("B11",), ("A11",)))
    comparison.add(one, one)
    with pytest.raises(GlasshouseBug):
        comparison.add(other, other)


# intervals and levels of tables


def released(toy: Scenario, **counts: dict[str, list[tuple[int, int]]]) -> Release:
    """Table T1 (all) by level and place, as intervals."""
    levels = {}
    for level, rows in counts.items():
        lower, upper = (np.array([[row[0][end]] for row in rows.values()], np.int64) for end in (0, 1))
        levels[level] = Counts(level, tuple(rows), ("T1_01",), lower, upper)
    return Release(toy.schema, toy.tables, levels)


def test_interval_tables(toy: Scenario) -> None:
    """A midpoint, an end alone, and a number; coarser places are the sums of what is judged."""
    truth = released(toy, house={"A11": [(5, 5)], "A12": [(3, 3)], "A13": [(2, 2)]})
    protected = released(toy, house={"A11": [(4, 8)], "A12": [(2, UNLIMITED)], "A13": [(2, 2)]})
    found = utility_of_tables(truth, protected, toy, districts=2)
    assert found.tables["house", "T1"] == Errors(3, 2, 10.0, 2.0, 1.0, width=4.0, unlimited=1)
    assert found.tables["house", "T1"].mean_width == 2.0
    assert found.tables["street", "T1"] == Errors(1, 1, 10.0, 0.0, 0.0, width=0.0, unlimited=1)  # 6 + 2 + 2
    assert found.populations["house"].exact == 1
    with pytest.raises(InputError, match="the truth holds intervals"):
        utility_of_tables(protected, truth, toy)


def test_numbers_published_at_a_coarser_level_are_judged_there(toy: Scenario) -> None:
    truth = released(toy, house={"A11": [(5, 5)], "A12": [(3, 3)]})
    protected = released(toy, house={"A11": [(5, 5)], "A12": [(0, 0)]}, street={"A1": [(8, 8)]}, town={"A": [(9, 9)]})
    found = utility_of_tables(truth, protected, toy)
    assert [found.tables[level, "T1"].absolute for level in ("house", "street", "town")] == [3.0, 0.0, 1.0]


def test_an_interval_file(toy: Scenario, tmp_path: Path) -> None:
    truth = write(draw(toy, 60, 1), toy, tmp_path / "truth.parquet")
    tables = pl.read_parquet(tabulated(truth, toy, tmp_path / "exact.parquet"))
    value = pl.col("value")
    rounded = tables.select(
        "level", "geoid", "table", "variable", (value // 3 * 3).alias("lower"), (value // 3 * 3 + 2).alias("upper")
    )
    rounded.write_parquet(tmp_path / "rounded.parquet")
    found = compare_files(truth, tmp_path / "rounded.parquet", toy, near=tmp_path, kind="tables")
    errors = found.tables["house", "T1"]
    assert errors.changed == errors.numbers
    assert errors.mean_width == 2.0
    assert errors.largest <= 1.0


def test_a_level_that_is_no_prefix_is_a_sum_of_places(toy: Scenario) -> None:
    odd = {house: "odd" if house[-1] in "13" else "even" for house in HOUSES}
    mapped = replace(toy, geography=toy.geography.with_mapping("side", odd))
    truth = draw(toy, 60, 11)
    protected = perturbed(truth, 12)
    found = utility_of(truth, protected, mapped)
    sides = [np.bincount([int(odd[HOUSES[at]] == "odd") for at in s.place], minlength=2) for s in (truth, protected)]
    assert found.tables["side", "T1"].absolute == np.abs(sides[0] - sides[1]).sum()
    assert found.tables["side", "T1"].numbers == 2


def test_a_file_of_coarse_numbers_alone_is_judged_there(toy: Scenario, tmp_path: Path) -> None:
    truth = write(draw(toy, 60, 13), toy, tmp_path / "truth.parquet")
    tables = pl.read_parquet(tabulated(truth, toy, tmp_path / "all.parquet", ("town",)))
    towns = tables.filter(pl.col("level") == "town").with_columns(pl.col("value") + 1)
    towns.write_parquet(tmp_path / "towns.parquet")
    found = compare_files(truth, tmp_path / "towns.parquet", toy, near=tmp_path, kind="tables")
    assert {level for level, _ in found.tables} == {"town"}
    assert found.tables["town", "T1"].absolute == 2.0
    assert found.districts is None


# files


def test_files_say_what_records_in_memory_say(toy: Scenario, tmp_path: Path) -> None:
    truth = draw(toy, 80, 5)
    protected = without(perturbed(truth, 6), "A2")  # a whole unit is missing
    paths = [write(side, toy, tmp_path / f"{name}.parquet") for name, side in (("t", truth), ("p", protected))]
    found = compare_files(paths[0], paths[1], toy, near=tmp_path, kind="records")
    assert same(found, utility_of(truth, protected, toy))
    assert found.at("street").absolute > 0
    assert same(
        compare_files(paths[1], paths[0], toy, near=tmp_path, kind="records"), utility_of(protected, truth, toy)
    )


def test_tables_say_of_counts_what_their_records_say(toy: Scenario, tmp_path: Path) -> None:
    """Beside tables the truth may be records or tables, with and without coarser levels and missing units."""
    truth = draw(toy, 80, 7)
    protected = without(perturbed(truth, 8), "A1")
    t, p = (write(side, toy, tmp_path / f"{n}.parquet") for n, side in (("t", truth), ("p", protected)))
    expected = compare_files(t, p, toy, near=tmp_path, kind="records")
    exact = tabulated(t, toy, tmp_path / "exact.parquet")
    for number, further in enumerate(((), ("street", "town"))):
        tables = tabulated(p, toy, tmp_path / f"tables{number}.parquet", further)
        for one in (t, exact):
            found = compare_files(one, tables, toy, near=tmp_path, kind="tables")
            assert found.tables == expected.tables
            assert found.populations == expected.populations
            assert found.districts == expected.districts
            assert same(found, expected)  # so protected records and protected tables may stand side by side


def test_the_long_frame_and_its_headlines(toy: Scenario, tmp_path: Path) -> None:
    truth = draw(toy, 80, 9)
    paths = [write(s, toy, tmp_path / f"{n}.parquet") for n, s in (("t", truth), ("p", perturbed(truth, 10)))]
    measures, headlines = usefulness(paths[0], paths[1], toy, near=tmp_path, kind="records", districts=2)
    assert dict(measures.schema) == MEASURES
    assert set(measures["worse"].drop_nulls()) == {"higher", "lower"}
    keys = measures.select("measure", "level", "table", "group")
    assert keys.n_unique() == measures.height
    assert set(headlines) == {
        *(f"{what}_error_{level}" for what in ("population", "table") for level in ("town", "street", "house")),
        "share_error_street",
        "dissimilarity_error_house",
        "districts_deviation",
    }
    found = utility_of(truth, perturbed(truth, 10), toy, districts=2)
    assert headlines == pytest.approx(headlines_of(found, "house"))
    assert headlines["table_error_house"] == pytest.approx(found.at("house").absolute / found.at("house").total)
    whole = measures.filter(pl.col("table").is_null(), measure="relative error", level="house")
    assert whole["value"].to_list() == [headlines["table_error_house"]]
    assert not list(tmp_path.glob(".glasshouse-*"))


def test_bad_input_is_refused(toy: Scenario, tmp_path: Path) -> None:
    path = write(draw(toy, 5, 1), toy, tmp_path / "t.parquet")
    with pytest.raises(InputError, match="nonsense"):
        usefulness(path, path, toy, near=tmp_path, kind="records", groups=("nonsense",))
    with pytest.raises(InputError, match="some"):  # a tally counts answers
        usefulness(path, path, toy, near=tmp_path, kind="records", groups=("some",))
    kind: Kind = "figures"  # type: ignore[assignment]  # a name that is not known
    with pytest.raises(InputError, match="records, tables"):
        usefulness(path, path, toy, near=tmp_path, kind=kind)


# which groups


def test_groups_by_default(sf1: Scenario, toy: Scenario) -> None:
    chosen = {recode.attribute: recode.name for recode in recodes_of(sf1)}
    assert chosen == {"hispanic": "origin", "race": "races", "sex": "sex"}  # ages are many, and left out
    assert [len(groups_of(sf1.recodes[name])) for name in ("origin", "races", "sex")] == [2, 7, 2]
    assert [group.label for group in groups_of(toy.recodes["warm"])] == ["red", "green", "blue"]
    assert [recode.name for recode in recodes_of(sf1, ("age-23",))] == ["age-23"]
    assert {recode.name for recode in recodes_of(toy)} == {"owner", "size"}  # no table of a house tells its colours


@pytest.mark.parametrize("name", known_scenarios())
def test_every_scenario_has_groups_that_divide(name: str) -> None:
    scenario = load(name)
    recodes = recodes_of(scenario)
    assert recodes or set(scenario.schema.by_name) == {"age"}  # ages are many, and left out
    for recode in recodes:
        groups = groups_of(recode)
        assert len(groups) >= 2
        assert sum(len(group.levels) for group in groups) == len(frozenset().union(*(g.levels for g in groups)))


def test_real_tables_against_a_count_of_the_rows(sf1: Scenario, tmp_path: Path) -> None:
    """Oracle: errors of two tables, a share and an index of the person scenario, from the rows of the files alone."""
    rng = np.random.default_rng(1)
    houses = tuple(f"99001{tract:06d}{block:04d}" for tract in (1, 2, 3) for block in (1001, 1002, 2001))
    truth = draw(sf1, 300, 1, houses)
    truth.codes[:, sf1.schema.position["race"]] = rng.choice([0, 1, 3, 6], 300, p=[0.6, 0.2, 0.1, 0.1])
    protected = perturbed(truth, 2, 0.1)
    t, p = (write(side, sf1, tmp_path / f"{n}.parquet") for n, side in (("t", truth), ("p", protected)))
    tables = tabulated(p, sf1, tmp_path / "tables.parquet")
    races = ["white", "black", "aian", "asian", "nhopi", "sor"]
    frames = [pl.read_parquet(path).with_columns(tract=pl.col("block").str.head(11)) for path in (t, p)]

    def l1(keys: list[str]) -> int:
        one, other = (frame.group_by(keys).len() for frame in frames)
        both = one.join(other, on=keys, how="full", coalesce=True).fill_null(0)
        return int(both.select((pl.col("len").cast(pl.Int64) - pl.col("len_right").cast(pl.Int64)).abs().sum()).item())

    def index(frame: pl.DataFrame) -> float:
        by = frame.group_by("block").agg(pl.col("hispanic").sum().alias("g"), pl.len().alias("n"))
        g, r = by["g"].to_numpy(), by["n"].to_numpy() - by["g"].to_numpy()
        return float(np.abs(g / g.sum() - r / r.sum()).sum() / 2)

    def black(frame: pl.DataFrame) -> pl.DataFrame:
        alone = (pl.col("black") == 1) & (pl.sum_horizontal(races) == 1)
        return frame.group_by("tract").agg((100 * alone.mean()).alias("share")).sort("tract")

    off = float((black(frames[0])["share"] - black(frames[1])["share"]).abs().mean() or 0)
    for path, kind in ((p, "records"), (tables, "tables")):
        found = compare_files(t, path, sf1, near=tmp_path, kind=kind)  # type: ignore[arg-type]  # a literal, in a loop
        assert found.tables["block", "P1"].absolute == l1(["block"]) > 0
        assert found.tables["block", "P8"].absolute == l1(["block", *races]) > 0
        assert found.tables["tract", "P8"].absolute == l1(["tract", *races]) > 0
        hispanic = next(one for one in found.segregation if (one.level, one.group) == ("block", "Hispanic"))
        assert (hispanic.truth, hispanic.protected) == pytest.approx((index(frames[0]), index(frames[1])))
        share = next(one for one in found.shares if one.recode == "races" and one.group == "black")
        assert share.error == pytest.approx(off)
        assert off > 0
