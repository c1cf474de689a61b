"""Does check find what cannot be true, and only that? The truth always agrees; a changed number is named."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glasshouse.cli.main import main
from glasshouse.commands.work.check import check_file
from glasshouse.files.tables import open_tables
from glasshouse.model.identities import Checker, Finding, find_identities, sum_up
from glasshouse.model.records import UNLIMITED
from glasshouse.model.release import Counts, Table
from glasshouse.model.tabulate import tabulate
from glasshouse.scenarios.load import Scenario, load
from tests.often import often

from .test_tabulate import draw

SF1 = load("sf1-person")


def findings(scenario: Scenario, counts: Counts, finer: list[Counts] | None = None) -> list[Finding]:
    return list(Checker(scenario.schema, scenario.tables).check(counts, finer or []))


def changed(counts: Counts, place: int, variable: str, by: int) -> Counts:
    lower = counts.lower.copy()
    lower[place, counts.column[variable]] += by
    return replace(counts, lower=lower, upper=lower)


def named(finding: Finding) -> set[str]:
    return {cell.variable for cell in finding.cells} | {suspect.cell.variable for suspect in finding.suspects}


@settings(max_examples=often(50), deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.integers(0, 3))
def test_the_truth_always_agrees(toy: Scenario, seed: int, subtotals: bool, width: int) -> None:
    """Law: tables of one set of records break no identity, exact or widened to intervals."""
    records = draw(toy, 30, 4, seed)
    counts = tabulate(records, toy.tables, "house", subtotals=subtotals)
    assert findings(toy, counts) == []
    rng = np.random.default_rng(seed)
    lower = np.maximum(counts.lower - rng.integers(0, width + 1, counts.lower.shape), 0)
    upper = counts.upper + rng.integers(0, width + 1, counts.upper.shape)
    assert findings(toy, replace(counts, lower=lower, upper=upper)) == []


@settings(max_examples=often(60), deadline=None)
@given(st.integers(0, 10**6), st.data())
def test_every_identity_is_true_of_any_records(toy: Scenario, seed: int, chosen: st.DataObject) -> None:
    """Law: also for any part of the tables, with sums of a finer level beside them."""
    tables: list[Table] = chosen.draw(st.lists(st.sampled_from(toy.tables), min_size=1, unique=True))
    toy = replace(toy, tables=tuple(tables))
    records = replace(draw(toy, 20, 4, seed), places=("aa1", "aa2", "ab1", "ab2"))
    houses = tabulate(records, tables, "house", subtotals=True)
    streets = sum_up(houses, ("aa", "ab"), toy.geography, "street")
    at_street = replace(streets, level="street")
    assert findings(toy, at_street, [streets]) == []


@settings(max_examples=often(60), deadline=None)
@given(st.integers(0, 10**6), st.data())
def test_a_wrong_number_is_found_and_named(toy: Scenario, seed: int, chosen: st.DataObject) -> None:
    """With all subtotals printed no single number can be changed unnoticed, and the finding names it."""
    counts = tabulate(draw(toy, 25, 3, seed), toy.tables, "house", subtotals=True)
    variable = chosen.draw(st.sampled_from(counts.variables))
    place = chosen.draw(st.integers(0, 2))
    by = chosen.draw(
        st.integers(-3, 3).filter(lambda by: by != 0 and counts.lower[place, counts.column[variable]] + by >= 0)
    )
    found = findings(toy, changed(counts, place, variable, by))
    assert [finding.geoid for finding in found] == [counts.places[place]]
    assert variable in named(found[0])
    for suspect in found[0].suspects:
        mended = changed(
            changed(counts, place, variable, by), place, suspect.cell.variable, suspect.agrees - suspect.cell.lower
        )
        assert findings(toy, mended) == [], "a suspect that does not mend the place"


def test_the_readable_example() -> None:
    """The issue's own example: P012A003 is 4 but P0120003 is 3."""
    tables = tuple(table for table in SF1.tables if table.name in ("P12", "P12A"))
    variables = tuple(line.variable for table in tables for line in table.leaves)
    values = np.zeros((1, len(variables)), np.int64)
    values[0, variables.index("P012A003")], values[0, variables.index("P0120003")] = 4, 3
    counts = Counts("block", ("010730051031000",), variables, values, values)
    [finding] = findings(replace(SF1, tables=tables), counts)
    assert finding.statement == "P012A003 is 4 but P0120003, which contains it, is 3"
    assert finding.identity == "P0120003 >= P012A003"
    assert {(s.cell.variable, s.agrees) for s in finding.suspects} == {("P012A003", 3), ("P0120003", 4)}


@pytest.mark.parametrize(
    ("total", "parts", "relation"),
    [
        ("P0010001", {"P0080003", "P0080071"}, 0),  # the 63 races make up everyone
        ("P0060002", {"P0080003", "P0080011"}, 0),  # White alone or in combination: 32 of the 63
        ("P0120003", {f"P012{letter}003" for letter in "ABCDEFG"}, 0),  # iterations sum to totals
        ("P0120003", {f"P01400{line:02d}" for line in (3, 4, 5, 6, 7)}, 0),  # single years make up a bin
        ("P0080003", {f"P012A{line:03d}" for line in range(3, 50) if line != 26}, 0),
        ("P0080003", {"P0100003"}, 1),  # 18 and over is part of all ages
        ("P0010001", {f"P006000{line}" for line in range(2, 8)}, -1),  # everyone gives at least one race
        ("P0010001", {"P0060002"}, 1),
    ],
)
def test_the_identities_of_the_person_tables(total: str, parts: set[str], relation: int) -> None:
    block = [t for t in SF1.tables if t.level == "block"]
    sources = [("block", table, frozenset(line.variable for line in table.lines)) for table in block]
    identities = find_identities(SF1.schema, "block", sources)
    wanted = identities.terms.index(("block", total))
    for row in range(len(identities)):
        span = slice(identities.matrix.indptr[row], identities.matrix.indptr[row + 1])
        columns, signs = identities.matrix.indices[span], identities.matrix.data[span]
        if columns[signs > 0][0] == wanted and identities.relation[row] == relation:
            found = {identities.terms[column][1] for column in columns[signs < 0]}
            if parts <= found and (relation or len(found) >= len(parts)):
                return
    pytest.fail(f"no identity of {total} with {parts}")


def test_a_wrong_block_is_not_reported_again_for_its_tract(tmp_path: Path) -> None:
    rows = [("block", "990010001001001", variable, value) for variable, value in (("P0120003", 3), ("P012A003", 4))]
    rows += [("block", "990010001001002", "P0120003", 5), ("tract", "99001000100", "P0060002", 8)]
    checked = check_file(open_tables(long_file(tmp_path / "t.csv", rows), SF1))
    assert [(finding.level, finding.identity) for finding in checked.findings] == [("block", "P0120003 >= P012A003")]
    assert checked.places == {"block": 2, "tract": 1}


def test_an_unlimited_number_breaks_nothing() -> None:
    """Convention 7: `at least 3` is an interval without an upper end."""
    table = replace(SF1, tables=(SF1.table("P1"), SF1.table("P8")))
    variables = tuple(line.variable for t in table.tables for line in t.leaves)
    lower = np.zeros((1, 64), np.int64)
    lower[0, 0], lower[0, 1] = 5, 3
    upper = lower.copy()
    upper[0, 1] = UNLIMITED
    assert findings(table, Counts("block", ("x",), variables, lower, upper)) == []
    upper[0, 1] = 4
    assert len(findings(table, Counts("block", ("x",), variables, lower, upper))) == 1


def long_file(path: Path, rows: list[tuple[str, str, str, int]]) -> Path:
    frame = pl.DataFrame(rows, schema=["level", "geoid", "variable", "value"], orient="row")
    frame.write_csv(path)
    return path


BLOCKS = [("block", f"99001000100100{n}", "P0010001", 10 * n) for n in (1, 2)]


@pytest.mark.parametrize(
    ("more", "places", "words"),
    [
        ([("tract", "99001000100", "P0010001", 30)], [], ""),
        ([("tract", "99001000100", "P0010001", 31)], ["99001000100"], "P0010001 over its blocks is 30"),
        ([("county", "99001", "P0010001", 30), ("state", "99", "P0010001", 30)], [], ""),
        ([("county", "99001", "P0010001", 29)], ["99001"], "P0010001 over its blocks is 30"),
        # an area is there with zeros when its level is published for others
        ([("tract", "99001000200", "P0010001", 0)], ["99001000100"], "over its blocks is 30"),
        ([("county", "99002", "P0010001", 0)], ["99001"], "over its blocks is 30"),
        ([("county", "99001", "P0010001", 30), ("state", "99", "P0010001", 40)], ["99"], "over its"),
    ],
)
def test_finer_places_add_up(
    tmp_path: Path, more: list[tuple[str, str, str, int]], places: list[str], words: str
) -> None:
    file = open_tables(long_file(tmp_path / "t.csv", BLOCKS + more), SF1)
    checked = check_file(file)
    assert [finding.geoid for finding in checked.findings] == places
    assert all(words in finding.statement for finding in checked.findings)


@pytest.mark.slow
def test_real_blocks_agree_with_their_tracts(data: Path) -> None:
    checked = check_file(open_tables(data / "sf1_tracts" / "tables.csv.gz", SF1), workers=2)
    assert checked.findings == []
    assert checked.places == {"block": 4558, "tract": 14}
    assert checked.identities["tract"] > 20_000


def test_a_real_county_passes(data: Path) -> None:
    file = open_tables(data / "guernsey" / "tables.csv.gz", SF1)
    assert check_file(file).findings == []
    assert file.seen.ignored == {"P5": 7551}
    assert "P12H" in file.absent()


def mutations(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Some numbers of a real file, each changed alone: up, down, to zero."""
    rng = np.random.default_rng(2010)
    of_interest = [n for n, line in enumerate(lines) if n and ",P5," not in line]
    for number in rng.choice(of_interest, 12, replace=False):
        *start, value = lines[number].split(",")
        yield int(number), ",".join([*start, str(int(rng.choice([int(value) + 1, int(value) + 7, int(value) - 1, 0])))])


def test_a_real_county_with_one_number_changed_fails(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Must show: the changed cell is among the few that are named."""
    with gzip.open(data / "guernsey" / "tables.csv.gz", "rt", encoding="utf-8") as file:
        lines = file.read().splitlines()
    for number, line in mutations(lines):
        if line == lines[number]:
            continue
        path = tmp_path / f"t{number}.csv"
        path.write_text("\n".join([*lines[:number], line, *lines[number + 1 :]]) + "\n", encoding="utf-8")
        assert main(["check", str(path), "--scenario", "sf1-person", "--json", "--quiet"]) == 1
        [finding] = json.loads(capsys.readouterr().out)["findings"]
        _, geoid, _, variable, _ = line.split(",")
        assert finding["geoid"] == geoid
        few = {cell["variable"] for cell in finding["cells"]} | {suspect["variable"] for suspect in finding["suspects"]}
        assert variable in few
        assert len(few) <= 50


@pytest.mark.slow
def test_three_hundred_changes_of_a_real_county_are_found_and_named(data: Path) -> None:
    """The figures of docs/check.md: every change found, the number named, 3 to 4 suspects on average."""
    releases = list(open_tables(data / "guernsey" / "tables.csv.gz", SF1).releases())
    checker = Checker(SF1.schema, SF1.tables)
    rng = np.random.default_rng(0)
    suspects = []
    for _ in range(300):
        counts = releases[rng.integers(len(releases))].levels["block"]
        place = int(rng.integers(len(counts.places)))
        filled = np.flatnonzero(counts.lower[place])
        column = int(rng.choice(filled) if rng.random() < 0.8 else rng.integers(len(counts.variables)))
        by = int(rng.choice([-1, 1, 2, 5]))
        by = by if counts.lower[place, column] + by >= 0 else 1
        [finding] = checker.check(changed(counts, place, counts.variables[column], by))
        assert counts.variables[column] in named(finding)
        suspects.append(len(finding.suspects))
    assert 2 < np.mean(suspects) < 5
    assert max(suspects) <= 23
