"""Does `protect swap` keep its promises? Counts that stay, the same bytes, private files, and words for bad input."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from glasshouse.commands.work.swap import swap_file
from tests.running import Ended, good, tool

RACES = ["white", "black", "aian", "asian", "nhopi", "sor"]
HEADER = "block,sex,age,white,black,aian,asian,nhopi,sor,hispanic,household_id"


@pytest.fixture(scope="module")
def county(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("swapping") / "county"
    good(tool("synthesize", "--persons", 3000, "--seed", 1, "--out", folder, "--quiet"))
    return folder


@pytest.fixture(scope="module")
def people(county: Path) -> Path:
    return county / "cef.parquet"


def refused(ended: Ended, pattern: str, out: Path | None = None) -> None:
    assert ended.code == 2 and "Traceback" not in ended.err, ended
    assert re.fullmatch(r"glasshouse: [^\n]*\n?", ended.err), ended.err
    assert re.search(pattern, ended.err), ended.err
    assert out is None or not out.exists()


def counted(frame: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """What must stay: persons and adults of every block, and its households by persons and adults."""
    frame = frame.with_columns(adult=pl.col("age") >= 18, quarters=pl.col("gq") > 0)
    homes = frame.filter(~pl.col("quarters")).group_by("household_id", "block").agg(pl.len(), pl.col("adult").sum())
    return {
        "persons": frame.group_by("block", "adult", "quarters").len().sort(pl.all()),
        "households": homes.group_by("block", "len", "adult").len("households").sort(pl.all()),
    }


def test_households_move_and_nothing_else_changes(people: Path, tmp_path: Path) -> None:
    out, log = tmp_path / "swapped.parquet", tmp_path / "pairs.csv"
    blocks = people.with_name("blocks.parquet")
    words = ["protect", "swap", people, "--rate", 0.1, "--coordinates", blocks, "--out", out, "--log", log]
    said = good(tool(*words, "--json")).json
    before, after = pl.read_parquet(people), pl.read_parquet(out)
    assert after.schema == before.schema and after.drop("block").equals(before.drop("block"))
    assert said["persons"] == before.height
    homes = before.filter(pl.col("gq") == 0)["household_id"].n_unique()
    gone = before.with_columns(now=after["block"]).filter(pl.col("block") != pl.col("now"))
    assert said["households"] == homes and said["moved"] == gone["household_id"].n_unique()
    assert abs(said["moved"] - 0.1 * homes) <= 1 and said["share"] == said["moved"] / homes
    assert said["persons_moved"] == gone.height > said["moved"] and set(gone["gq"]) == {0}
    assert gone.group_by("household_id").agg(pl.col("data_defined").max())["data_defined"].min() == 1
    now, was = counted(after), counted(before)
    assert all(now[name].equals(was[name]) for name in was)
    assert sum(tier["households"] for tier in said["tiers"]) == homes
    assert sum(tier["moved"] for tier in said["tiers"]) == said["moved"]
    assert said["nearness"] == "coordinates" and not [note for note in said["notes"] if "codes" in note]
    # the log
    assert stat.S_IMODE(out.stat().st_mode) == stat.S_IMODE(log.stat().st_mode) == 0o600
    pairs = pl.read_csv(log, schema_overrides={"from_block": pl.String, "to_block": pl.String})
    assert pairs.columns == ["household_id", "from_block", "to_block", "partner_household_id", "distance", "tier"]
    assert pairs.height == said["moved"] and set(pairs["tier"]) <= {1, 2, 3, 4}
    told = gone.group_by("household_id").agg(pl.col("block").first(), pl.col("now").first()).sort("household_id")
    assert pairs.select("household_id", "from_block", "to_block").rows() == told.rows()
    back = pairs.select(pl.col("partner_household_id").alias("household_id"), "to_block", "distance")
    both = pairs.join(back, on="household_id", suffix="_other")
    assert both.height == pairs.height
    assert both["from_block"].equals(both["to_block_other"]) and both["distance"].equals(both["distance_other"])
    at = dict(pl.read_parquet(blocks).select("block", pl.concat_list("x", "y")).iter_rows())
    for row in pairs.head(5).iter_rows(named=True):
        assert row["distance"] == pytest.approx(np.hypot(*np.subtract(at[row["from_block"]], at[row["to_block"]])))
    # the manifest
    told_by = json.loads((tmp_path / "swapped.parquet.manifest.json").read_text())
    assert told_by["command"] == "protect swap" and told_by["counts"]["moved"] == said["moved"]
    assert set(told_by["inputs"]) == {"records", "coordinates"} and told_by["parameters"]["rate"] == 0.1
    # again
    assert good(tool(*words, "--json")).json["unchanged"]
    first = out.read_bytes(), log.read_bytes()
    good(tool(*words, "--overwrite", "--quiet"))
    assert (out.read_bytes(), log.read_bytes()) == first


def test_the_order_of_rows_and_the_kind_of_file_do_not_matter(people: Path, tmp_path: Path) -> None:
    """Convention 8. Rows keep their order, and each says the same as in another order."""
    frame = pl.read_parquet(people).with_row_index("line")
    mixed = frame.sample(fraction=1, shuffle=True, seed=1)
    frame.write_parquet(tmp_path / "one.parquet")
    mixed.write_csv(tmp_path / "two.csv")
    kept = {"rate": 0.4, "seed": 5, "quarters": "synthesize"}
    one = swap_file(tmp_path / "one.parquet", tmp_path / "out1.parquet", **kept)  # type: ignore[arg-type]
    two = swap_file(tmp_path / "two.csv", tmp_path / "out2.csv", **kept)  # type: ignore[arg-type]
    assert one == two
    first = pl.read_parquet(tmp_path / "out1.parquet")
    second = pl.read_csv(tmp_path / "out2.csv", schema=first.schema)
    assert second["line"].equals(mixed["line"]) and first["line"].equals(frame["line"])
    assert second.sort("line").equals(first)
    swap_file(tmp_path / "one.parquet", tmp_path / "other.parquet", rate=0.4, seed=6)
    assert pl.read_parquet(tmp_path / "other.parquet")["block"].to_list() != first["block"].to_list()


def test_without_coordinates_nearness_is_by_code_and_is_said_to_be(people: Path, tmp_path: Path) -> None:
    out = tmp_path / "swapped.csv.gz"
    ended = good(tool("protect", "swap", people, "--rate", 0.2, "--out", out))
    assert "order of codes" in ended.err and "households" in ended.out and str(out) in ended.out
    assert "no column says who lives in group quarters" not in ended.err
    published = people.with_name("hdf.parquet")  # which says nothing of group quarters
    said = good(tool("protect", "swap", published, "--rate", 0.2, "--out", tmp_path / "again.csv", "--json")).json
    assert any("no column says who lives in group quarters" in note for note in said["notes"])
    quiet = good(tool("protect", "swap", people, "--rate", 0.2, "--out", out, "--overwrite", "--quiet"))
    assert quiet.err == quiet.out == ""


def test_none_and_all(people: Path, tmp_path: Path) -> None:
    none, every = tmp_path / "none.parquet", tmp_path / "every.parquet"
    said = good(tool("protect", "swap", people, "--rate", 0, "--out", none, "--log", tmp_path / "l.csv", "--json")).json
    assert said["moved"] == 0 and pl.read_parquet(none).equals(pl.read_parquet(people))
    assert (tmp_path / "l.csv").read_text().splitlines() == [
        "household_id,from_block,to_block,partner_household_id,distance,tier"
    ]
    said = good(tool("protect", "swap", people, "--rate", 1, "--out", every, "--json")).json
    assert said["moved"] == said["households"] - said["imputed_households"] - said["unmatched"]
    assert any("below --rate" in note for note in said["notes"])
    now, was = counted(pl.read_parquet(every)), counted(pl.read_parquet(people))
    assert all(now[name].equals(was[name]) for name in was)


def test_group_quarters_may_be_synthetic(people: Path, tmp_path: Path) -> None:
    out = tmp_path / "swapped.parquet"
    ended = good(tool("protect", "swap", people, "--rate", 0.1, "--group-quarters", "synthesize", "--out", out))
    assert "drawn anew" in ended.out
    before, after = pl.read_parquet(people), pl.read_parquet(out)
    assert after.schema == before.schema
    traits = [*RACES, "hispanic"]
    home = pl.col("gq") == 0
    assert after.filter(home).drop("block").equals(before.filter(home).drop("block"))
    assert after.filter(~home).drop(traits).equals(before.filter(~home).drop(traits))
    assert not after.filter(~home).equals(before.filter(~home))
    adult = pl.col("age") >= 18
    for age in (adult, ~adult):
        donors, drawn = (set(frame.filter(~home, age).select(traits).rows()) for frame in (before, after))
        assert drawn <= donors
    now, was = counted(after), counted(before)
    assert all(now[name].equals(was[name]) for name in was)


def test_it_goes_straight_into_tables(people: Path, tmp_path: Path) -> None:
    out = tmp_path / "swapped.csv"
    good(tool("protect", "swap", people, "--rate", 0.1, "--out", out, "--quiet"))
    good(tool("tabulate", out, "--scenario", "sf1-person", "--out", tmp_path / "tables.parquet", "--quiet"))


def written(path: Path, *lines: str, header: str = HEADER) -> Path:
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


def person(block: int, household: str, age: Any = 30, rest: str = "1,0,0,0,0,0,0") -> str:
    return f"99001000100{block:04},male,{age},{rest},{household}"


def test_who_has_no_household_stays(tmp_path: Path) -> None:
    lines = [person(1000, "a"), person(1000, ""), person(1001, ""), person(1001, "b"), person(1001, "b", 5)]
    records = written(tmp_path / "people.csv", *lines, person(1002, "c"))
    said = swap_file(records, tmp_path / "out.csv", rate=1, seed=1)
    assert (said.households, said.moved, said.group_quarters_persons) == (3, 2, 2)
    after = (tmp_path / "out.csv").read_text().splitlines()
    assert after == [HEADER, person(1002, "a"), *lines[1:], person(1000, "c")]
    # numbers of households, some blank, are decimals in some files
    frame = pl.read_csv(records, schema_overrides={"block": pl.String})
    ids = pl.Series("household_id", [1.0, None, float("nan"), 2.0, 2.0, 3.0])
    frame.with_columns(ids).write_parquet(tmp_path / "people.parquet")
    assert swap_file(tmp_path / "people.parquet", tmp_path / "out.parquet", rate=1, seed=1) == said


def test_nobody_crosses_a_state(tmp_path: Path) -> None:
    lines = [person(1000, "a"), person(1001, "b"), person(1000, "c").replace("99001", "98001", 1)]
    said = swap_file(written(tmp_path / "people.csv", *lines), tmp_path / "out.csv", rate=1, seed=1)
    assert said.moved == 2 and said.unmatched == 1
    assert (tmp_path / "out.csv").read_text().splitlines()[3] == lines[2]


@pytest.mark.parametrize(
    ("lines", "pattern"),
    [
        ([person(1000, "a"), person(1001, "b"), person(1001, "a")], r"line 2: .*two blocks"),
        ([person(1000, "a", 130)], r"line 2: column 'age' is '130'; expected a whole number from 0 to 110"),
        ([person(1000, "a", "x")], r"line 2: column 'age' is 'x'"),
        ([person(1000, "a", 7.5)], r"line 2: column 'age' is '7.5'"),
        ([person(1000, "a"), person(1000, "a", "")], r"line 3: column 'age' is empty"),
        ([person(1000, "a", rest="2,0,0,0,0,0,0")], r"column 'white' is '2'; expected 0 or 1"),
        ([person(1000, "a", rest="0,0,0,0,0,0,1")], r"line 2: .* all 0; expected at least one 1"),
        ([person(1000, "a")[1:]], r"line 2: .*leading zero"),
        ([], r"no records"),
    ],
)
def test_bad_records(lines: list[str], pattern: str, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    ended = tool("protect", "swap", written(tmp_path / "people.csv", *lines), "--rate", 0.5, "--out", out)
    refused(ended, pattern, out)
    assert "people.csv" in ended.err and "male" not in ended.err


def test_units_of_both_kinds_and_missing_columns(tmp_path: Path, people: Path) -> None:
    out = tmp_path / "out.csv"
    mixed = written(tmp_path / "people.csv", person(1000, "a") + ",0", person(1000, "a") + ",1", header=HEADER + ",gq")
    refused(tool("protect", "swap", mixed, "--rate", 0.5, "--out", out), r"line 3: .*group quarters", out)
    nameless = tmp_path / "nameless.parquet"
    pl.read_parquet(people).drop("household_id").write_parquet(nameless)
    pattern = r"nameless.parquet: column 'household_id' is missing .*protect relocate.*found: person_id, block"
    refused(tool("protect", "swap", nameless, "--rate", 0.5, "--out", out), pattern, out)
    refused(
        tool("protect", "swap", people.with_name("blocks.parquet"), "--rate", 0.5, "--out", out), "'age' is missing"
    )
    frame = pl.read_parquet(people).with_columns(pl.int_range(pl.len()) + 0.5).rename({"literal": "half"})
    frame.with_columns(household_id="half").write_parquet(nameless)
    refused(tool("protect", "swap", nameless, "--rate", 0.5, "--out", out), "row 1: .*decimal", out)


def test_bad_options(tmp_path: Path, people: Path) -> None:
    out, log = tmp_path / "out.csv", tmp_path / "log.csv"
    words = ["protect", "swap", people, "--out", out]
    refused(tool(*words, "--rate", 1.5), "--rate 1.5: expected .* from 0 to 1", out)
    refused(tool(*words, "--rate", 0.1, "--group-quarters", "move"), "known: keep, synthesize", out)
    refused(tool(*words, "--rate", 0.1, "--coordinates", tmp_path / "no.csv"), "no such file", out)
    refused(tool(*words, "--rate", 0.1, "--log", out), "another file of this command", out)
    refused(tool(*words, "--rate", 0.1, "--log", tmp_path / "log.txt"), "cannot write this kind", out)
    log.write_text("mine")
    refused(tool(*words, "--rate", 0.1, "--log", log), "log.csv exists, and .*out.csv does not", out)
    assert log.read_text() == "mine"
    log.unlink()
    good(tool(*words, "--rate", 0.1, "--quiet"))
    refused(tool(*words, "--rate", 0.1, "--log", log), "out.csv exists, and .*log.csv does not")
    refused(tool(*words, "--rate", 0.2), "exists and is not")


def test_bad_coordinates(tmp_path: Path, people: Path) -> None:
    out, where = tmp_path / "out.csv", tmp_path / "where.csv"
    words = ["protect", "swap", people, "--rate", 0.1, "--coordinates", where, "--out", out]
    where.write_text("block,x\n990010001001000,1\n")
    refused(tool(*words), "where.csv: column 'y' is missing", out)
    where.write_text("block,x,y\n990010001001000,1,2\n")
    refused(tool(*words), r"where.csv: 68 blocks of the records are missing, such as '99001000100\d{4}'", out)
    where.write_text("block,x,y\n990010001001000,1,east\n")
    refused(tool(*words), "line 2: x, y: expected a number", out)


ELSEWHERE = """
title = "Persons of another country"
[geography]
place = "cell"
unit = "parish"
levels = { region = 1, parish = 3, cell = 5 }
[attribute]
years = { levels = ["child", "grown", "old"], column = "altersgruppe", codes = ["K", "E", "A"] }
tongue = { levels = ["this", "that"], column = "sprache" }
[table]
T1 = { title = "All", level = "cell", by = [] }
[household]
column = "haushalt"
adult = { years = ["grown", "old"] }
stand_out = ["tongue"]
quarters = { column = "heim", highest = 1 }
defined = "echt"
tell_apart = ["altersgruppe"]
near = "parish"
donors = "parish"
within = "region"
"""


def test_another_country_says_itself_what_a_household_is(tmp_path: Path) -> None:
    """Its own levels, columns and codes: nothing built in is needed, and its words are in the files."""
    (tmp_path / "land").mkdir()
    (tmp_path / "land" / "scenario.toml").write_text(ELSEWHERE)
    header = "cell,altersgruppe,sprache,haushalt,heim"
    homes = ["A0101,E,this,1,0", "A0101,K,this,1,0", "A0101,A,that,4,0", "A0202,A,that,2,0", "A0202,K,this,2,0"]
    lines = [*homes, "B0101,E,this,3,0", *(f"A0101,E,{tongue},,1" for tongue in ("this", "that") * 10)]
    records = written(tmp_path / "people.csv", *lines, header=header)
    out, log = tmp_path / "out.csv", tmp_path / "log.csv"
    words = ["protect", "swap", records, "--rate", 1, "--out", out, "--log", log, "--group-quarters", "synthesize"]
    said = good(tool(*words, "--scenario", tmp_path / "land", "--json")).json
    # 1 and 2 have an adult and a child each; nobody is like 4 in another cell, nor like 3 in its region
    assert (said["moved"], said["unmatched"], said["redrawn"], said["redrawn_from_region"]) == (2, 2, 20, 0)
    after = out.read_text().splitlines()[1:]
    assert after[:6] == [
        "A0202,E,this,1,0",
        "A0202,K,this,1,0",
        lines[2],
        "A0101,A,that,2,0",
        "A0101,K,this,2,0",
        lines[5],
    ]
    assert {line.split(",")[2] for line in after[6:]} == {"this", "that"} and after[6:] != lines[6:]
    assert log.read_text().splitlines()[0] == "haushalt,from_cell,to_cell,partner_haushalt,distance,tier"
    assert [line.split(",")[:4] for line in log.read_text().splitlines()[1:]] == [
        ["1", "A0101", "A0202", "2"], ["2", "A0202", "A0101", "1"]
    ]  # fmt: skip
    divided = written(tmp_path / "divided.csv", "A0101,E,this,1,0", "A0202,K,this,1,0", header=header)
    words[2] = divided
    other = tmp_path / "other.csv"
    words[6] = other
    refused(tool(*words[:7], "--scenario", tmp_path / "land"), "the members of this household are in two cells", other)
    wrong = written(tmp_path / "wrong.csv", "A0101,X,this,1,0", header=header)
    words[2] = wrong
    refused(tool(*words[:7], "--scenario", tmp_path / "land"), "column 'altersgruppe' is 'X'; expected one of", other)
    refused(tool(*words[:7]), "wrong.csv: column 'block' is missing", other)
    refused(tool(*words[:7], "--scenario", "pl94"), "scenario pl94 does not say what a household is", other)


@pytest.mark.parametrize(
    ("line", "pattern"),
    [
        ('adult = { years = ["child", "grown", "old"] }', "adult: expected the levels of one attribute"),
        ('stand_out = ["years"]', "stand_out: expected one attribute or several"),
        ('stand_out = ["language"]', "unknown attribute 'language'"),
        ('near = "tract"', "unknown level of near 'tract'; known: cell, parish, region"),
        ('quarters = "heim"', "'household.quarters' is 'heim'; expected a table of entries"),
        ("nonsense = 1", "unknown entry of household 'nonsense'"),
    ],
)
def test_what_a_scenario_says_of_households_is_checked(line: str, pattern: str, tmp_path: Path) -> None:
    key = line.split(" = ")[0]
    lines = [line if other.startswith(f"{key} =") else other for other in ELSEWHERE.splitlines()]
    (tmp_path / "scenario.toml").write_text("\n".join(lines if line in lines else [*lines, line]))
    ended = tool("protect", "swap", written(tmp_path / "p.csv"), "--rate", 1, "--out", tmp_path / "out.csv",
                 "--scenario", tmp_path)  # fmt: skip
    refused(ended, pattern, tmp_path / "out.csv")


def test_the_function_refuses_what_the_command_refuses(tmp_path: Path, people: Path) -> None:
    from glasshouse.errors import InputError

    with pytest.raises(InputError, match="--rate 2"):
        swap_file(people, tmp_path / "out.csv", rate=2, seed=1)
    with pytest.raises(InputError, match="known: keep, synthesize"):
        swap_file(people, tmp_path / "out.csv", rate=0.1, seed=1, quarters="no")


def test_help_has_an_example() -> None:
    ended = good(tool("protect", "swap", "--help"))
    assert "Example:  glasshouse protect swap" in re.sub(r"\s*\n\s*", " ", ended.out).replace(
        "Example: g", "Example:  g"
    )
