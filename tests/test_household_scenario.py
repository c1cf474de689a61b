"""Are the household tables right? 861 official lines, the possible households, and claims in plain English."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from glasshouse.cli.main import application
from glasshouse.errors import InputError
from glasshouse.files.records import open_records, record_frame
from glasshouse.model.identities import EQUAL, find_identities
from glasshouse.model.records import Records
from glasshouse.model.release import Release
from glasshouse.model.schema import EVERYONE, Predicate
from glasshouse.model.tabulate import tabulate
from glasshouse.program.tables.cells import partition
from glasshouse.program.tables.rows import compile_rows
from glasshouse.scenarios.load import Scenario, load

from .conftest import TOY

COLUMNS = ("TEN", "VACS", "HHSIZE", "HHT", "HHT2", "THHSPAN", "THHLDRAGE", "THHRACE", "TP18", "TP65")
COMBINED = ("HHSIZE", "HHT", "HHT2", "THHLDRAGE", "TP18", "TP65")


@pytest.fixture(scope="module")
def households() -> Scenario:
    return load("dhc-household")


def rows_of(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


def where(scenario: Scenario, **codes: str) -> Predicate:
    """A predicate from codes, which here are the numbers of the levels."""
    return scenario.schema.where({name: [int(code) for code in some.split()] for name, some in codes.items()})


def some_records(scenario: Scenario, count: int, seed: int) -> Records:
    """Possible records, evenly over the boxes that the structural zeros leave, in three places."""
    rng = np.random.default_rng(seed)
    boxes = list(scenario.schema.possible())
    codes = np.array(
        [
            [
                rng.choice(sorted(boxes[index % len(boxes)].by_attribute.get(a.name, range(len(a)))))
                for a in scenario.schema.attributes
            ]
            for index in range(count)
        ],
        np.int16,
    )
    places = ("990010001001000", "990010001001001", "990010001001002")
    return Records(scenario.schema, places, rng.integers(0, 3, count).astype(np.int32), codes)


# --- the tables ---


def test_the_official_lines_one_by_one(households: Scenario, data: Path) -> None:
    """Golden: shared/data/dhc_spec/dhc_household_tables.csv, from the official table matrix of 2020."""
    official = list(rows_of(data / "dhc_spec" / "dhc_household_tables.csv"))
    ours = [(table, line) for table in households.tables for line in table.lines]
    assert len(official) == len(ours) == 861
    for row, (table, line) in zip(official, ours, strict=True):
        assert (table.name, str(line.number), line.variable) == (row["table"], row["line"], row["file_name"])
        assert households.official[row["api_name"]] == (table.name, line.number)
        expected = households.schema.where(
            {name: [int(code) for code in row[name].split(";")] for name in COLUMNS if row[name]}
        )
        assert line.predicate is not None
        same = households.schema.covered(expected, [line.predicate])
        assert same and households.schema.covered(line.predicate, [expected]), row["file_name"]
        assert bool(line.parts) == (row["is_subtotal"] == "1"), row["file_name"]
        assert table.level == "block"


def test_the_codes_of_the_columns(households: Scenario, data: Path) -> None:
    """Golden: shared/data/dhc_spec/household_columns.csv."""
    official: dict[str, list[str]] = {}
    for row in rows_of(data / "dhc_spec" / "household_columns.csv"):
        if row["column"] in COLUMNS:
            official.setdefault(row["column"], []).append(row["code"])
    assert tuple(attribute.name for attribute in households.schema.attributes) == COLUMNS
    for attribute in households.schema.attributes:
        assert [codes[0][0] for codes in attribute.readings[0].codes] == official[attribute.name]


def test_the_counts_of_lines(households: Scenario) -> None:
    """Golden: shared/data/dhc_spec/dhc_household_tables.md; 621 is the number of statistics in the paper."""
    lines = [(table, line) for table in households.tables for line in table.lines]
    cells = [line.predicate for table, line in lines if line.number in table.cells]
    assert (len(households.tables), len(lines), len(cells)) == (79, 861, 630)
    assert len(set(cells)) == 622
    assert len(set(cells) - {EVERYONE}) == 621
    assert len({line.predicate for _, line in lines}) == 729
    families = Counter(table.name.rstrip("ABCDEFGHIJKLMNOPQRSTUV") for table in households.tables)
    assert {name: count for name, count in families.items() if count > 1} == {"P16": 23, "H4": 23, "H12": 10, "H13": 10}


def test_an_of_which_line_is_a_cell_and_divides_nothing(households: Scenario) -> None:
    table = households.table("P20")
    assert [line.variable for line in table.of_which] == ["P0200010", "P0200016"]
    assert len(table.cells) == 14
    assert len(table.leaves) == 12
    for line in table.of_which:
        assert line.within is not None
        around = table.line(line.within)
        assert line.predicate is not None and around.predicate is not None
        assert line.predicate <= around.predicate and line.predicate != around.predicate
        assert not around.parts
        assert line.number in table.cells
        assert not any(line.number in other.parts for other in table.lines)
        assert table.leaves_of(line) == (line,)
    assert table.leaves_of(table.line(8)) == tuple(table.line(number) for number in (9, 11, 12, 13))
    assert table.leaves_of(table.line(1)) == table.leaves


def test_the_leaves_of_every_table_divide_its_universe(households: Scenario) -> None:
    size = households.schema.size
    for table in (table for table in households.tables if table.name[-1] in "0123456789AHI"):
        leaves = [line.predicate for line in table.leaves if line.predicate is not None]
        assert sum(size(leaf) for leaf in leaves) == size(table.universe), table.name
        assert households.schema.covered(table.universe, leaves), table.name


def test_subtotals_are_the_sums_of_their_parts(households: Scenario) -> None:
    """Law: on random possible records, through `tabulate`."""
    records = some_records(households, 3000, seed=5)
    counts = tabulate(records, households.tables, "block", subtotals=True)
    total = counts.lower.sum(axis=0)
    for table in households.tables:
        number = {line.number: total[counts.column[line.variable]] for line in table.lines}
        for line in table.lines:
            if line.parts:
                assert number[line.number] == sum(number[part] for part in line.parts), line.variable
            if line.within is not None:
                assert 0 < number[line.number] < number[line.within]
    assert total[counts.column["H0010001"]] == len(records)


def test_of_which_lines_are_tied_to_their_line(households: Scenario) -> None:
    """`check` knows P20's line 10 to be at most line 9, and equal to H14's men of 65 or over who live alone."""
    chosen = [households.table(name) for name in ("P20", "H14")]
    sources = [("block", table, frozenset(line.variable for line in table.lines)) for table in chosen]
    found = find_identities(households.schema, "block", sources)
    said = set()
    for row in range(len(found)):
        part = found.matrix[[row], :].tocoo()
        names = sorted((int(sign), found.terms[column][1]) for column, sign in zip(part.col, part.data, strict=True))
        said.add((int(found.relation[row]), *names))
    men = [(-1, "H0140022"), (-1, "H0140056"), (1, "P0200010")]
    assert (EQUAL, *men) in said
    assert any((-1, "P0200010") in names and (1, "P0200009") in names and len(names) == 2 for _, *names in said)


def test_what_a_release_says_of_an_of_which_line(households: Scenario) -> None:
    records = some_records(households, 400, seed=2)
    table = households.table("P20")
    release = Release(households.schema, (table,), {"block": tabulate(records, [table], "block")})
    old_men = where(households, VACS="0", HHT2="9", THHLDRAGE="7 8 9")
    assert release.count(old_men, records.places[0]) == records.count(old_men, records.places[0])


def test_an_of_which_line_finer_than_the_cells_is_a_floor_alone(tmp_path: Path) -> None:
    """It overlaps the line above it, so the core must not add the two up."""
    some = 'of_which = { "no" = { label = "red", colour = "red" } }'
    (tmp_path / "scenario.toml").write_text(TOY.replace("also = [2]", some), encoding="utf-8")
    scenario = load(str(tmp_path))
    table = scenario.table("T6")
    assert [line.label for line in table.lines[:6]] == ["total", "0-1", "no", "red", "yes", "2"]
    cells = partition(scenario.schema, [line.predicate for line in table.leaves if line.predicate is not None])
    rows = compile_rows(cells, [table], [line.variable for line in table.lines])
    sums = [{rows.variables[at] for at in rows.sums[[row], :].indices} for row in range(rows.sums.shape[0])]
    assert all(len(names) == 1 for names in sums)
    floors = {name for names, partial in zip(sums, rows.partial, strict=True) if partial for name in names}
    assert floors == {line.variable for line in table.of_which}


def test_a_doubt_is_kept_with_the_table(households: Scenario) -> None:
    assert "TP18" in households.table("H15").doubt
    assert [table.name for table in households.tables if table.doubt] == ["H15"]


# --- which households can be ---


def combinations(scenario: Scenario) -> set[tuple[int, ...]]:
    """The combinations of six columns that occupied units can have."""
    found: set[tuple[int, ...]] = set()
    for box in scenario.schema.possible(where(scenario, VACS="0")):
        sides = [sorted(box.by_attribute.get(name, range(len(scenario.schema.attribute(name))))) for name in COMBINED]
        found |= {tuple(int(part) for part in row) for row in np.stack(np.meshgrid(*sides), -1).reshape(-1, 6)}
    return found


def test_the_possible_households(households: Scenario) -> None:
    assert households.schema.size() == 108_864 + 7
    assert households.schema.size(where(households, VACS="1 2 3 4 5 6 7")) == 7
    assert len(combinations(households)) == 1_944


def test_the_possible_households_one_by_one(households: Scenario, data: Path) -> None:
    """Golden: shared/data/dhc_spec/household_legal_combos.csv."""
    official = {
        tuple(int(row[name]) for name in COMBINED) for row in rows_of(data / "dhc_spec" / "household_legal_combos.csv")
    }
    assert combinations(households) == official


def test_structural_zeros_by_kind(households: Scenario) -> None:
    kinds = Counter(zero.kind for zero in households.schema.impossible)
    assert set(kinds) == {"definition", "certain", "edit rule"}
    assert (kinds["definition"], kinds["edit rule"]) == (16, 1)
    assert households.with_zeros(["definition", "certain", "edit rule"]) == households
    defined = households.with_zeros(["definition"])
    assert defined.schema.size() == 1_185_408 + 7
    assert defined.tables == households.tables
    certain = households.with_zeros(["definition", "certain"])
    grandmother = where(households, HHT="3", HHT2="6", THHLDRAGE="8")
    assert households.schema.size(grandmother) == 0 < certain.schema.size(grandmother)
    with pytest.raises(InputError, match="keep the kind 'definition'"):
        households.with_zeros(["certain"])
    with pytest.raises(InputError, match="unknown kind of structural zero 'likely'"):
        households.with_zeros(["likely"])


# --- files ---


def test_padded_codes_and_group_quarters(households: Scenario, tmp_path: Path) -> None:
    """Unit files of microdata write HHT2 as 01, and have group quarters among the units."""
    path = tmp_path / "units.csv"
    path.write_text(
        "TABBLKST,TABBLKCOU,TABTRACTCE,TABBLK,RTYPE,TEN,VACS,HHSIZE,HHT,HHT2,THHSPAN,THHLDRAGE,THHRACE,TP18,TP65\n"
        "1,3,10200,1008,2,1,0,3,1,01,1,3,01,1,0\n"
        "1,3,10200,1008,4,0,0,0,0,00,0,0,00,0,0\n"
        "1,3,10200,1008,2,0,5,0,0,00,0,0,00,0,0\n",
        encoding="utf-8",
    )
    file = open_records(path, households)
    frame = pl.concat(list(file.frames()))
    assert frame["geoid"].to_list() == ["010030102001008"] * 2
    assert (frame["HHT2"].to_list(), frame["THHRACE"].to_list(), frame["VACS"].to_list()) == ([1, 0], [1, 0], [0, 5])
    assert file.left_out == {"RTYPE": 1}
    written = record_frame(
        households, ["010030102001008"], np.zeros(1, np.int32), np.array([[1, 0, 3, 1, 1, 1, 3, 1, 1, 0]], np.int16), {}
    )
    assert written.row(0) == ("010030102001008", 1, 0, 3, 1, 1, 1, 3, 1, 1, 0)
    done = CliRunner().invoke(application(), ["tabulate", str(path), "--scenario", "dhc-household", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["left_out"] == 1
    path.write_text(path.read_text(encoding="utf-8").replace(",4,0,", ",2,0,"), encoding="utf-8")
    with pytest.raises(InputError, match=r"units.csv, line 3: .* an occupied unit has a householder"):
        list(open_records(path, households).frames())


def test_several_spellings_of_a_code(tmp_path: Path) -> None:
    text = TOY.replace('codes = ["0", "1"]', 'codes = [["0", "00"], ["1", "01"]]').replace(
        'levels = ["red", "green", "blue"]', 'levels = ["red", "green", "blue"]\ncodes = ["R", ["G", "g"], ["B", "b"]]'
    )
    (tmp_path / "scenario.toml").write_text(text, encoding="utf-8")
    (tmp_path / "records.csv").write_text(
        "house,colour,size,owner\n001,g,1,01\n001,B,2,0\n001,G,3,1\n", encoding="utf-8"
    )
    scenario = load(str(tmp_path))
    frame = pl.concat(list(open_records(tmp_path / "records.csv", scenario).frames()))
    assert (frame["colour"].to_list(), frame["owner"].to_list()) == ([1, 2, 1], [1, 0, 1])
    written = record_frame(scenario, ["001"], np.zeros(1, np.int32), np.array([[1, 0, 1]], np.int16), {})
    assert written.row(0) == ("001", "G", 0, 1)


@pytest.mark.slow
def test_households_of_a_synthetic_county(tmp_path: Path) -> None:
    """The commands from the county to its tables: nothing that is published contradicts itself."""
    run = CliRunner()
    county, tables = tmp_path / "county", tmp_path / "tables.csv"
    made = run.invoke(application(), ["synthesize", "--persons", "3000", "--seed", "1", "--out", str(county)])
    assert made.exit_code == 0, made.output
    households = county / "households.parquet"
    done = run.invoke(application(), ["tabulate", str(households), "--scenario", "dhc-household", "--out", str(tables)])
    assert done.exit_code == 0, done.output
    # every table was checked by hand; a third of them, every kind among them, is enough here and much quicker
    names = [table.name for table in load("dhc-household").tables if table.name[-1] in "0123456789BHQ"]
    checked = run.invoke(
        application(), ["check", str(tables), "--scenario", "dhc-household", "--tables", ",".join(names), "--json"]
    )
    assert checked.exit_code == 0, checked.output


# --- words ---


@pytest.mark.parametrize(
    ("codes", "m", "sentence"),
    [
        (
            {"TEN": "3 4", "VACS": "0", "HHSIZE": "2", "HHT": "7", "THHSPAN": "1", "THHLDRAGE": "2", "THHRACE": "2"}
            | {"TP18": "0", "TP65": "0"},
            1,
            "Exactly one household: rented or occupied without rent, 2 persons, nonfamily with a female householder "
            "not living alone; the householder is Black alone, not Hispanic, 25 to 34 years old; nobody under 18, "
            "nobody 65 or over.",
        ),
        (
            {"TEN": "1 2", "HHT2": "1", "HHT": "1", "THHLDRAGE": "1 2"},
            3,
            "Exactly 3 households: owner occupied, married couple with own children under 18; the householder is 15 to "
            "34 years old.",
        ),
        (
            {"HHT": "3", "HHT2": "4", "THHRACE": "1 4"},
            0,
            "No household: family with a female householder and no spouse, cohabiting couple without own children "
            "under 18; the householder is White alone or Asian alone.",
        ),
        ({"VACS": "1", "TEN": "0"}, 2, "Exactly 2 vacant units: for rent."),
        ({"TP18": "0"}, 1, "Exactly one housing unit: nobody under 18."),  # vacant ones have nobody either
        ({"VACS": "0"}, 1200, "Exactly 1,200 households."),
    ],
)
def test_claims_in_plain_english(households: Scenario, codes: dict[str, str], m: int, sentence: str) -> None:
    assert households.wording.sentence(households.schema, where(households, **codes), m) == sentence


def test_descriptions_without_a_count(households: Scenario, toy: Scenario) -> None:
    def said(**codes: str) -> str:
        return households.wording.said(households.schema, where(households, **codes))

    assert said() == "all housing units"
    assert said(VACS="0") == "occupied units"
    assert said(VACS="1 2 3 4 5 6 7") == "vacant units"
    assert said(VACS="6") == "vacant units: for migrant workers"
    assert said(VACS="0", TEN="1 2", THHRACE="2", THHLDRAGE="2") == (
        "owner occupied; the householder is Black alone, 25 to 34 years old"
    )
    assert toy.claim is None  # a scenario without words has names and labels
    assert toy.wording.sentence(toy.schema, toy.schema.where({"colour": [0, 1], "size": [2]}), 2) == (
        "Exactly 2 records: colour warm, size 2."
    )
    assert toy.wording.said(toy.schema, EVERYONE) == "all records"
    assert toy.wording.groups["owner"] == (frozenset([0]), frozenset([1]))


def test_every_published_line_can_be_said(households: Scenario) -> None:
    """Different descriptions within a table are different in words, too."""
    for table in households.tables:
        predicates = [line.predicate for line in table.lines if line.predicate is not None]
        said = [households.wording.said(households.schema, predicate) for predicate in predicates]
        assert len(set(said)) == len(set(predicates)), table.name
        assert not [text for text in said if "not in universe" in text]


def test_what_claims_may_name(households: Scenario) -> None:
    wording = households.wording
    assert wording.columns == COLUMNS
    assert wording.groups["TEN"] == tuple(map(frozenset, ({0}, {1}, {2}, {3, 4})))
    for name, groups in wording.groups.items():
        assert sorted(level for group in groups for level in group) == list(
            range(len(households.schema.attribute(name)))
        )
    assert wording.apart == where(households, VACS="1 2 3 4 5 6 7")
    assert (wording.records, wording.apart_title) == (("household", "households"), "vacant units")


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ('record = ["a", "b", "c"]\nclauses = []\nwords = {}', "no clause says colour"),
        ('record = ["a", "b", "c"]\nclauses = [{ of = ["color"] }]\nwords = {}', "unknown attribute 'color'"),
        ('record = ["a", "b", "c"]\nwords = {}', "'clauses' is missing"),
        ('record = ["a", "b"]\nclauses = [{ of = ["colour", "size", "owner"] }]\nwords = {}', "not three words"),
        (
            'record = ["a", "b", "c"]\nclauses = [{ of = ["colour", "size", "owner"] }]\nwords = { owner = ["no"] }',
            "1 phrases for owner, which has 2 levels",
        ),
        (
            'record = ["a", "b", "c"]\nclauses = [{ of = ["colour", "size", "owner"] }]\nwords = {}\n'
            'apart = { owner = "no" }',
            "'apart_record' is missing",
        ),
        (
            'record = ["a", "b", "c"]\nclauses = []\nwords = {}\nvalues = { colour = "owner" }',
            "unknown recode of colour 'owner'; known: colour",
        ),
    ],
)
def test_words_with_a_mistake_are_refused(tmp_path: Path, claim: str, message: str) -> None:
    (tmp_path / "scenario.toml").write_text(f"{TOY}\n[claim]\n{claim}\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load(str(tmp_path))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("also = [2]", 'of_which = { "2" = { label = "red", colour = "red" } }', "table T6: group '2' is divided"),
        ("also = [2]", 'of_which = { "9" = { label = "red", colour = "red" } }', "unknown group of table T6 '9'"),
        ("also = [2]", 'of_which = { "no" = { colour = "red" } }', "of_which: 'label' is missing"),
        (
            'title = "A toy"',
            'title = "A toy"\nimpossible = [{ size = "3", kind = "so", reason = "x" }]',
            "'so'; known:",
        ),
        ('title = "A toy"', 'title = "A toy"\nrecords = { leave_in = 1 }', "unknown entry of records 'leave_in'"),
    ],
)
def test_new_entries_with_a_mistake_are_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in TOY
    (tmp_path / "scenario.toml").write_text(TOY.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load(str(tmp_path))
    assert message in str(caught.value)
