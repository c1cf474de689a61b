"""Does counting count? Against listing records one by one, and against the real tables of 14 tracts."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glasshouse.commands.work import tabulate as tabulating
from glasshouse.commands.work.tabulate import make_plan, tabulate_file
from glasshouse.engine.progress import in_order
from glasshouse.files import regroup as regroup_module
from glasshouse.model.records import Interval, Records, satisfies
from glasshouse.model.release import Release, Table, build_sums
from glasshouse.model.schema import Attribute, Schema
from glasshouse.model.tabulate import compile_tables, tabulate
from glasshouse.scenarios.load import Scenario, load
from tests.often import often

SF1 = load("sf1-person")
PL = load("pl94")


def draw(scenario: Scenario, persons: int, places: int, seed: int) -> Records:
    """Records with some structure: most share the first levels, as in life."""
    rng = np.random.default_rng(seed)
    columns = [
        np.minimum(rng.geometric(0.4, persons) - 1, len(attribute) - 1)
        if len(attribute) < 100
        else rng.integers(0, len(attribute), persons)
        for attribute in scenario.schema.attributes
    ]
    names = tuple(f"{place:03d}" for place in range(places))
    place = rng.integers(0, places, persons).astype(np.int32)
    return Records(scenario.schema, names, place, np.column_stack(columns).astype(np.int16))


def by_definition(records: Records, table: Table, place: int) -> dict[str, int]:
    """The numbers of a table by looking at every record for every line."""
    codes = records.codes[records.place == place]
    values: dict[int, int] = {}
    for line in reversed(table.lines):
        if line.predicate is None:
            values[line.number] = sum(values[part] for part in line.parts)
        else:
            values[line.number] = int(satisfies(records.schema, codes, line.predicate).sum())
    return {table.line(number).variable: value for number, value in values.items()}


@settings(max_examples=often(40), deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 40), st.integers(1, 4), st.booleans())
def test_counting_is_what_the_predicates_say(
    toy: Scenario, seed: int, persons: int, places: int, subtotals: bool
) -> None:
    """Oracle: every line of every table, tallies and iterations and undivided groups included."""
    records = draw(toy, persons, places, seed)
    counts = tabulate(records, toy.tables, "house", subtotals=subtotals)
    for place in range(places):
        for table in toy.tables:
            for variable, expected in by_definition(records, table, place).items():
                if subtotals or variable in table.variables:
                    assert counts.value(records.places[place], variable) == Interval(expected, expected), variable


@pytest.mark.parametrize("scenario", [SF1, PL], ids=["sf1-person", "pl94"])
def test_the_built_in_scenarios_count_what_they_say(scenario: Scenario) -> None:
    records = draw(scenario, 300, 3, seed=7)
    counts = tabulate(records, scenario.tables, "block", subtotals=True)
    for table in scenario.tables:
        for variable, expected in by_definition(records, table, 1).items():
            assert counts.value("001", variable).exact == expected, variable


def test_few_positions_count_many_cells() -> None:
    """The reason for the speed: levels that no line tells apart share a class."""
    block = compile_tables(SF1.schema, [table for table in SF1.tables if table.level == "block"])
    tract = compile_tables(SF1.schema, [table for table in SF1.tables if table.level == "tract"])
    assert (len(block.variables), len(tract.variables)) == (775, 3296)
    assert len(block.ends) == 2 * 38 * 63 * 2  # the 38-bin age schema appears by itself
    assert len(tract.ends) == 2 * 103 * 7 * 2


@settings(max_examples=often(30), deadline=None)
@given(st.integers(0, 10**6), st.data())
def test_the_same_question_to_records_and_to_a_release(toy: Scenario, seed: int, chosen: st.DataObject) -> None:
    """Law (convention 1): the release never excludes the truth, and knows its own cells exactly."""
    records = draw(toy, 25, 2, seed)
    counts = tabulate(records, toy.tables, "house")
    release = Release(toy.schema, toy.tables, {"house": counts})
    sets = {
        attribute.name: chosen.draw(st.sets(st.integers(0, len(attribute) - 1), min_size=1))
        for attribute in toy.schema.attributes
    }
    predicate = toy.schema.where(sets)
    for place in records.places:
        truth = records.count(predicate, place).exact
        known = release.count(predicate, place)
        assert known.lower <= truth <= known.upper
        for table in toy.tables:
            for line in table.leaves:
                assert line.predicate is not None
                assert release.count(line.predicate, place).exact == records.count(line.predicate, place).exact


def write_records(path: Path, persons: int, blocks: int, seed: int) -> Path:
    rng = np.random.default_rng(seed)
    block = rng.integers(0, blocks, persons)
    flags = np.zeros((persons, 6), np.int64)
    flags[np.arange(persons), np.minimum(rng.geometric(0.7, persons) - 1, 5)] = 1
    pl.DataFrame(
        {
            "block": [f"99{b % 3:03d}{b % 7:06d}{1000 + b:04d}" for b in block],
            "sex": rng.choice(["male", "female"], persons),
            "age": rng.integers(0, 111, persons),
            **{name: flags[:, i] for i, name in enumerate(("white", "black", "aian", "asian", "nhopi", "sor"))},
            "hispanic": rng.integers(0, 2, persons),
        }
    ).write_csv(path)
    return path


def test_streaming_does_not_change_a_byte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Convention 8: the answer does not depend on memory, chunks or workers."""
    source = write_records(tmp_path / "records.csv", 5000, 200, seed=1)
    plan = make_plan(SF1, further=["county", "state"], subtotals=True)
    tabulate_file(source, plan, tmp_path / "whole.csv")
    monkeypatch.setattr(tabulating, "BATCH_ROWS", 100)
    monkeypatch.setattr(regroup_module.regroup, "__kwdefaults__", {"limit": 700, "near": None})
    monkeypatch.setattr("glasshouse.files.frames.BLOCK_BYTES", 10_000)
    done = tabulate_file(source, plan, tmp_path / "pieces.csv", workers=3)
    whole, pieces = (pl.read_csv(tmp_path / f"{name}.csv", infer_schema=False) for name in ("whole", "pieces"))
    assert pieces.sort(pieces.columns).equals(whole.sort(whole.columns))
    assert done.records == 5000
    assert (tmp_path / "whole.csv").read_bytes() == (tmp_path / "pieces.csv").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pieces.csv", "records.csv", "whole.csv"]


def test_every_table_has_a_row_even_if_it_is_all_zero(tmp_path: Path) -> None:
    """Convention 6: a table without a number would look unpublished."""
    source = write_records(tmp_path / "records.csv", 3, 1, seed=5)
    plan = make_plan(SF1)
    tabulate_file(source, plan, tmp_path / "tables.csv")
    tables = pl.read_csv(tmp_path / "tables.csv", infer_schema=False)
    assert set(tables.select("level", "table").iter_rows()) == {(table.level, table.name) for table in SF1.tables}


def test_the_fourteen_real_tracts_cell_by_cell(data: Path, tmp_path: Path) -> None:
    """Golden: shared/data/sf1_tracts, 122,736 non-zero cells of all 34 tables."""
    done = tabulate_file(data / "sf1_tracts" / "records.csv.gz", make_plan(SF1), tmp_path / "tables.parquet", workers=2)
    assert done.records == 32_300
    assert done.places == Counter(block=4558, tract=14)
    ours = pl.read_parquet(tmp_path / "tables.parquet")
    published = pl.read_csv(data / "sf1_tracts" / "tables.csv.gz", schema_overrides={"geoid": pl.String})
    assert ours.sort(ours.columns).equals(published.select(ours.columns).sort(ours.columns))


def test_the_privacy_protected_county(data: Path, tmp_path: Path) -> None:
    """Golden: Guernsey County's 2021-06-08 PPMF holds 40,085 records (shared/data/README.md)."""
    source = data / "guernsey" / "ppmf_2021-06-08.csv.gz"
    done = tabulate_file(source, make_plan(PL, further=["county"], subtotals=True), tmp_path / "tables.parquet")
    assert done.records == 40_085
    county = pl.read_parquet(tmp_path / "tables.parquet").filter(pl.col("level") == "county")
    values = dict(zip(county["variable"], county["value"], strict=True))
    assert values["P0010001"] == 40_085
    assert values["P0030001"] == 30_477  # VOTING_AGE = 2
    assert values["P0020002"] == 337  # CENHISP = 2
    assert values["P0050001"] == 517  # RTYPE = 5, group quarters
    assert values["P0010003"] == 38_580  # CENRACE = 1


def test_work_is_done_in_threads_and_given_back_in_order() -> None:
    threads = set()

    def work(item: int) -> int:
        threads.add(threading.get_ident())
        return item * item

    assert list(in_order(work, range(50), workers=3)) == [item * item for item in range(50)]
    assert threading.get_ident() not in threads


def test_a_table_that_counts_nobody_is_counted() -> None:
    """A sum of numbers over records that have none of them: its one line counts no record at all."""
    schema = Schema((Attribute("a", ("0", "1"), (), {"years": (0, 1)}),))
    nobody = build_sums(
        schema, name="T1", level="block", title="years", sums="years", variable=lambda line: f"T1_{line}",
        universe=schema.where({"a": [0]}),
    )  # fmt: skip
    records = Records(schema, ("p",), np.zeros(2, np.int32), np.array([[0], [1]], np.int16))
    assert tabulate(records, [nobody], "block").lower.tolist() == [[0]]
