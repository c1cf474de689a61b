"""Is the data of the scenarios right? The 4,071 official cells, predicate by predicate, and errors that help."""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest

from glasshouse.errors import InputError
from glasshouse.scenarios.load import Scenario, bins, known_scenarios, load, spell
from glasshouse.scenarios.spelling import spell_lines

from .conftest import TOY

RACES = ("white", "black", "aian", "asian", "nhopi", "sor")


def official_levels(row: dict[str, str]) -> dict[str, frozenset[int]]:
    """The level sets that a row of the official list of cells describes."""
    subsets = [set(some) for size in range(1, 7) for some in combinations(RACES, size)]
    race = frozenset(
        level
        for level, some in enumerate(subsets)
        if all(row[name] == "missing" or (row[name] == "Y") == (name in some) for name in RACES)
        and {"missing": True, "two": len(some) > 1, "N": len(some) == 1}[row["two"]]
    )
    return {
        "sex": {"male": frozenset([0]), "female": frozenset([1]), "missing": frozenset([0, 1])}[row["sex"]],
        "age": frozenset(range(int(row["start_age"]), int(row["end_age"]) + 1)),
        "race": race,
        "hispanic": {
            "Y": frozenset([1]),
            "hispanic": frozenset([1]),
            "N": frozenset([0]),
            "missing": frozenset([0, 1]),
        }[row["hispanic"]],
    }


def test_the_official_cells_predicate_by_predicate(sf1: Scenario, data: Path) -> None:
    """Golden: shared/data/sf1_spec/cells.csv.gz, the 4,071 cells of Abowd et al."""
    with gzip.open(data / "sf1_spec" / "cells.csv.gz", "rt", encoding="utf-8") as file:
        official = {row["cell_number"]: row for row in csv.DictReader(file)}
    ours = {line.variable: (table, line) for table in sf1.tables for line in table.lines if line.number in table.cells}
    assert len(official) == 4071
    assert set(ours) == set(official)
    for variable, row in official.items():
        table, line = ours[variable]
        assert (table.name, table.level) == (row["table_number"], row["level"]), variable
        assert line.predicate == sf1.schema.where(official_levels(row)), variable


def test_the_shape_of_the_person_scenario(sf1: Scenario) -> None:
    cells = Counter[str]()
    for table in sf1.tables:
        cells[table.level] += len(table.cells)
    assert cells == {"block": 775, "tract": 3296}
    assert Counter(table.level for table in sf1.tables) == {"block": 18, "tract": 16}
    assert len(sf1.schema.attribute("race")) == 63
    assert sf1.schema.size() == 2 * 111 * 63 * 2
    assert len(sf1.recodes["age-38"].groups) == 38


def test_the_scenario_is_a_file_a_person_can_read() -> None:
    import glasshouse

    for name in known_scenarios():
        text = (Path(glasshouse.__file__).parent / "scenarios" / "data" / name / "scenario.toml").read_text(
            encoding="utf-8"
        )
        assert len(text.splitlines()) < 170


@pytest.mark.parametrize(
    ("variable", "label"),
    [
        ("P0120026", "female"),  # a subtotal
        ("P0080071", "white+black+aian+asian+nhopi+sor"),
        ("P0090002", "Hispanic"),
        ("P0110073", "white+black+aian+asian+nhopi+sor"),
        ("P0140023", "female"),
        ("PCT012O209", "110-110"),
        ("P0070009", "Hispanic"),
    ],
)
def test_official_lines_stand_where_the_office_prints_them(sf1: Scenario, variable: str, label: str) -> None:
    """Golden: technical documentation of Summary File 1, chapter 5 (table outlines)."""
    table, number = sf1.official[variable]
    line = sf1.table(table).line(number)
    assert line.variable == variable
    assert line.label == label.replace("110-110", "110")


def test_a_tally_has_no_predicate_for_its_totals(sf1: Scenario) -> None:
    """Convention 5: P6 and P7 count answers; their totals are no counts of persons."""
    assert sf1.table("P6").line(1).predicate is None
    assert sf1.table("P7").line(2).predicate is None
    assert sf1.table("P7").line(3).predicate is not None


def test_every_spelling_of_a_variable_is_known(sf1: Scenario, pl94: Scenario) -> None:
    for name in ("P0120003", "P012003", "P12_003N"):
        assert sf1.official[name] == ("P12", 3)
    for name in ("P012A003", "P12A_003N"):
        assert sf1.official[name] == ("P12A", 3)
    assert sf1.official["H011A0001"] == ("H11A", 1)
    assert pl94.official["P1_001N"] == ("P1", 1)
    assert sf1.official["P0050017"] == ("P5", 17)  # official, though no table of the scenario
    assert "P0050018" not in sf1.official
    assert sf1.choose(["P1", "P12A"]).official == sf1.official  # whatever is chosen of its tables
    changed = sf1.choose(["P1"]).official
    changed.clear()  # what is kept for all choices is not at hand to be changed
    assert sf1.choose(["P12A"]).official == sf1.official


def test_redistricting_tables(pl94: Scenario) -> None:
    assert {table.name: len(table.lines) for table in pl94.tables} == {"P1": 71, "P2": 73, "P3": 71, "P4": 73, "P5": 10}
    assert pl94.schema.size() == 2016  # the 2020 histogram: 8 x 2 x 2 x 63
    in_quarters = pl94.table("P5").line(1).predicate
    assert in_quarters is not None
    assert pl94.schema.size(in_quarters) == 2016 * 7 // 8


def test_a_scenario_of_ones_own(toy: Scenario, toy_folder: Path) -> None:
    assert toy.name == "toy"
    names = [line.variable for line in toy.table("T2").lines]
    assert names == ["T2_01", "T2_02", "T2_03", "T2_04", "T2_05", "T2_06", "T2_07"]
    labels = [line.label for line in toy.table("T2").lines]
    assert labels == ["total", "no", "yes", "warm", "red", "green", "blue"]
    assert toy.table("T2").line(3).parts == (4, 7)
    assert toy.table("T3R").title == "Size (red)"
    assert load(str(toy_folder)) == toy


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('by = ["colour"]', 'by = ["color"]', "unknown recode in table T5 'color'; known: colour, owner"),
        ('title = "A toy"', 'titel = "A toy"', "the top level: 'title' is missing"),
        ('title = "A toy"', 'title = "A toy"\nauthor = "me"', "unknown entry of the top level 'author'"),
        ('bins = "0-1 2 3"', 'bins = "0-1 1-2 3"', "level 1 is in two groups"),
        ('bins = "0-1 2 3"', 'bins = "0-1 2-9"', "bin '2-9' does not lie within 0 to 3"),
        ('bins = "0-1 2 3"', 'bins = "0-1 two"', "recode size: 'two' is not a bin"),
        ('bins = "0-1 2 3"', 'bins = "0-1 3"', "table T3: size 2 is in no group of recode 'size'"),
        ("range = [0, 3]", 'range = "0-3"', "attribute size: range is '0-3'; expected two whole numbers"),
        ('level = "street", by = ["colour"]', 'level = "lane", by = ["colour"]', "unknown level 'lane'"),
        ('colour = "red"', 'colour = "mauve"', "unknown level of colour 'mauve'"),
        ('undivided = ["no"]', 'undivided = ["none"]', "unknown group of table T2 'none'"),
        ('iterations = "RGB"', 'iterations = "RGX"', "unknown iteration in table T3 'X'"),
        ("{line:2}", "{row:2}", "'row' is not known"),
        ('place = "house"', 'place = "home"', "unknown level 'home'"),
        ("[geography]", "[geography", "not valid TOML"),
        ("also = [2]", "alsoo = [2]", "unknown entry of table T6 'alsoo'"),
    ],
)
def test_a_scenario_with_a_mistake_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in TOY
    (tmp_path / "scenario.toml").write_text(TOY.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load(str(tmp_path))
    assert message in str(caught.value)
    assert "scenario.toml" in str(caught.value)


def test_a_table_must_have_the_lines_of_its_catalogue(tmp_path: Path) -> None:
    (tmp_path / "catalogue.csv").write_text("table,lines,segment\nT1,1,1\nT2,6,1\n", encoding="utf-8")
    text = TOY.replace('title = "A toy"', 'title = "A toy"\ncatalogue = "catalogue.csv"')
    (tmp_path / "scenario.toml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="table T2 has 7 lines; its catalogue gives it 6"):
        load(str(tmp_path))


def test_unknown_scenarios_and_tables_list_the_known(sf1: Scenario) -> None:
    with pytest.raises(
        InputError,
        match=r"unknown scenario 'sf2'; known: .*, dhc-person, .*, gvhr-1940, mdf-person, .*, pl94, sf1-person",
    ):
        load("sf2")
    with pytest.raises(InputError, match=r"unknown table 'P99'; known: P1, P10"):
        sf1.choose(["P99"])


def test_bins() -> None:
    assert bins("0..2 3-4 9+", 10) == [range(1), range(1, 2), range(2, 3), range(3, 5), range(9, 11)]


def test_spelling() -> None:
    assert spell("{letters}{number:3}{iteration:1}{line:3}", "P12A", 3) == "P012A003"
    assert spell("{letters}{number:3}{iteration:1}{line:3}", "PCT12", 3) == "PCT0120003"
    assert spell("{table}-{line}", "households", 3) == "households-3"
    assert list(spell_lines("{table}_{line:2}N", "P1", (9, 10, 100))) == ["P1_09N", "P1_10N", "P1_100N"]
