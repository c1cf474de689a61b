"""Does `check` find what adding up cannot? Contradictions between several tables, and those of whole numbers only."""

from __future__ import annotations

from pathlib import Path

import pytest

from glasshouse.commands.work.check import Checked, check_file
from glasshouse.files.tables import open_tables
from glasshouse.scenarios.load import Scenario, load

PAIRS = """
title = "Pairs"
variable = "{table}_{line:2}"

[geography]
place = "house"
unit = "street"
levels = { street = 1, house = 2 }

[attribute.a]
levels = ["0", "1"]
[attribute.b]
levels = ["0", "1"]
[attribute.c]
levels = ["0", "1"]
[attribute.colour]
levels = ["red", "green", "blue"]

[recode]
a = { attribute = "a" }
b = { attribute = "b" }
c = { attribute = "c" }
two = { attribute = "colour", tally = true, groups = [
  { label = "not red", not = "red" }, { label = "not green", not = "green" }, { label = "not blue", not = "blue" } ] }

[table]
AB = { title = "a by b", level = "house", by = ["a", "b"] }
BC = { title = "b by c", level = "house", by = ["b", "c"] }
AC = { title = "a by c", level = "house", by = ["a", "c"] }
T = { title = "Colours tallied", level = "house", by = ["two"] }
S = { title = "a by c", level = "street", by = ["a", "c"] }
"""


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Scenario:
    folder = tmp_path_factory.mktemp("scenario") / "pairs"
    folder.mkdir()
    (folder / "scenario.toml").write_text(PAIRS, encoding="utf-8")
    return load(str(folder))


def checked(scenario: Scenario, path: Path, numbers: dict[str, dict[str, list[int]]]) -> Checked:
    """Check leaves given by place and table, in printed order."""
    rows = ["level,geoid,table,variable,value"]
    for geoid, tables in numbers.items():
        for name, values in tables.items():
            table = scenario.table(name)
            for line, value in zip(table.leaves, values, strict=True):
                rows.append(f"{table.level},{geoid},{name},{line.variable},{value}")
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return check_file(open_tables(path, scenario))


def test_tables_that_add_up_pairwise_can_contradict_together(pairs: Scenario, tmp_path: Path) -> None:
    # one record with a = 0, one with a = 1; a equals b, b equals c, but a differs from c
    same, other = [1, 0, 0, 1], [0, 1, 1, 0]
    found = checked(pairs, tmp_path / "t.csv", {"10": {"AB": same, "BC": same, "AC": other}})
    (finding,) = found.findings
    assert (finding.level, finding.geoid) == ("house", "10")
    assert "cannot all be true" in finding.statement
    assert finding.identity == "no histogram fits; proof: exact"
    tables = {cell.variable.split("_")[0] for cell in finding.cells}
    assert tables == {"AB", "BC", "AC"}
    assert finding.statement.endswith("though all add up: BC_03 = 1, AB_06 = 0, AC_03 = 0")
    fine = checked(pairs, tmp_path / "f.csv", {"10": {"AB": same, "BC": same, "AC": same}})
    assert fine.findings == []
    assert not fine.undecided


def test_numbers_that_only_half_a_person_could_fit_are_found(pairs: Scenario, tmp_path: Path) -> None:
    # every pair of colours counts one record: half a red, half a green and half a blue one would do
    (finding,) = checked(pairs, tmp_path / "t.csv", {"10": {"T": [1, 1, 1]}}).findings
    assert {(cell.variable, cell.lower) for cell in finding.cells} == {("T_02", 1), ("T_03", 1), ("T_04", 1)}
    assert checked(pairs, tmp_path / "f.csv", {"10": {"T": [2, 2, 2]}}).findings == []


def test_a_street_that_no_houses_can_make_up_is_found_once(pairs: Scenario, tmp_path: Path) -> None:
    # both houses have a = b and b = c, so nobody of the street can have a = 0 and c = 1; sums by a and by c agree
    house = {"AB": [1, 0, 0, 1], "BC": [1, 0, 0, 1]}
    found = checked(pairs, tmp_path / "t.csv", {"10": house, "11": house, "1": {"S": [1, 1, 1, 1]}})
    (finding,) = found.findings
    assert (finding.level, finding.geoid) == ("street", "1")
    assert any(" of 1" in cell.variable for cell in finding.cells)  # numbers of houses take part
    assert checked(pairs, tmp_path / "f.csv", {"10": house, "11": house, "1": {"S": [2, 0, 0, 2]}}).findings == []


def test_what_adding_up_shows_is_not_told_twice(pairs: Scenario, tmp_path: Path) -> None:
    found = checked(pairs, tmp_path / "t.csv", {"10": {"AB": [1, 0, 0, 1], "BC": [3, 0, 0, 1]}})
    assert len(found.findings) == 1
    assert "no histogram" not in found.findings[0].identity
