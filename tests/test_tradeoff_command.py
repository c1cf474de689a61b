"""Do the commands about relocation keep their promises? Fronts, aggregates, and records that are moved."""

from __future__ import annotations

import re
import stat
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tests.running import Ended, good, tool

SMALL = """tract,young_a,young_b,old_a,old_b
t1,1,40,3,60
t2,2,30,50,1
t3,60,1,2,70
t4,50,3,80,2
"""


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    path = tmp_path / "matrix.csv"
    path.write_text(SMALL)
    return path


def refused(ended: Ended, pattern: str) -> None:
    assert ended.code == 2 and "Traceback" not in ended.err, ended
    assert re.fullmatch(r"glasshouse: [^\n]*\n?", ended.err), ended.err
    assert re.search(pattern, ended.err), ended.err


def test_the_json_of_the_contract(matrix: Path) -> None:
    said = good(tool("tradeoff", matrix, "--lambda", 3, "--lambda", 1, "--capacity", 5, "--points", 5, "--json")).json
    assert [one["lambda"] for one in said["fronts"]] == [1, 3]
    for one in said["fronts"]:
        assert set(one) >= {"lambda", "capacity", "P_max", "U_min", "breakpoints", "points"}
        assert one["capacity"] == 5
        assert [point["q"] for point in one["points"]] == [0, 0.25, 0.5, 0.75, 1]
        assert one["points"][0] == {"q": 0, "P": 0, "U": 1}
        assert one["points"][-1] == {"q": 1, "P": one["P_max"], "U": one["U_min"]}
        assert one["breakpoints"][-1] == {"P": one["P_max"], "U": one["U_min"]}
        assert one["duality_gap"] < 1e-9
    # lambda 1: three unique people, and every row has a place that is not at risk and near room
    assert said["fronts"][0]["P_max"] == pytest.approx(3)


def test_the_files(matrix: Path, tmp_path: Path) -> None:
    out = tmp_path / "front"
    words = ["tradeoff", matrix, "--capacity", "10%", "--attributes", "age,race", "--drop", "R=age", "--out", out]
    ended = good(tool(*words))
    assert "lambda 3" in ended.out
    assert stat.S_IMODE(out.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in out.iterdir()} == {0o600}
    points = pl.read_parquet(out / "points.parquet")
    assert points.height == 2 * 21 and set(points["data"]) == {"data", "R"}
    own = points.filter(pl.col("data") == "data")
    assert (own["U"] - own["utility"]).abs().max() < 1e-12  # type: ignore[operator]
    assert own["P"].is_sorted() and own["tau"][-1] < own["tau"][0]
    changes = pl.read_parquet(out / "changes.parquet")
    assert changes["change"].sum() == pytest.approx(0)
    before = {path.name: path.read_bytes() for path in out.iterdir() if path.suffix in (".parquet", ".svg")}
    assert "up to date" in good(tool(*words)).out
    good(tool(*words, "--overwrite"))
    assert before == {path.name: path.read_bytes() for path in out.iterdir() if path.name in before}
    refused(tool("tradeoff", matrix, "--out", out), "another run")


def test_places_near_each_other(matrix: Path, tmp_path: Path) -> None:
    where = tmp_path / "where.csv"
    where.write_text("place,x,y\nt1,0,0\nt2,1,0\nt3,10,0\nt4,11,0\n")
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("one,other\nt1,t2\nt3,t4\n")
    by_distance = good(tool("tradeoff", matrix, "--coordinates", where, "--within", 2, "--json")).json["fronts"]
    by_pairs = good(tool("tradeoff", matrix, "--near", pairs, "--json")).json["fronts"]
    anywhere = good(tool("tradeoff", matrix, "--json")).json["fronts"]
    assert by_distance[0]["P_max"] == pytest.approx(by_pairs[0]["P_max"])
    assert 0 < by_pairs[0]["P_max"] < anywhere[0]["P_max"]
    good(tool("tradeoff", matrix, "--coordinates", where, "--out", tmp_path / "map"))
    assert "<svg" in (tmp_path / "map" / "changes.svg").read_text()


def test_capacities_from_a_file(matrix: Path, tmp_path: Path) -> None:
    room = tmp_path / "room.csv"
    room.write_text("place,capacity\nt1,0\nt2,0\nt3,0\nt4,0\n")
    said = good(tool("tradeoff", matrix, "--capacity", room, "--json")).json["fronts"][0]
    assert (said["P_max"], said["U_min"]) == (0, 1)
    room.write_text("place,capacity\nt1,4\nt2,0\nt3,0\n")
    refused(tool("tradeoff", matrix, "--capacity", room, "--json"), "t4.*missing")
    room.write_text("place,capacity\nt1,-4\n")
    refused(tool("tradeoff", matrix, "--capacity", room, "--json"), "room.csv.*from 0")


@pytest.mark.parametrize(
    ("words", "pattern"),
    [
        (["--lambda", 1, "--lambda", 1], "given twice"),
        (["--capacity", "many"], "a number, a percentage"),
        (["--capacity", "-3"], "from 0"),
        (["--weight", "heavy"], "inverse-quadratic"),
        (["--coverage", "all"], "row-wise"),
        (["--spread", "thin"], "whole"),
        (["--within", 3], "--coordinates"),
        (["--drop", "R=age"], "--attributes"),
        (["--attributes", "age,race", "--drop", "R"], "NAME=ATTRIBUTES"),
        (["--attributes", "age,race", "--drop", "data=age"], "the matrix itself"),
        (["--attributes", "age,race", "--drop", "R=sex"], "sex"),
    ],
)
def test_wrong_options(matrix: Path, words: list[object], pattern: str) -> None:
    refused(tool("tradeoff", matrix, *words, "--json"), pattern)


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("tract,a\nt1,1\nt1,2\n", "t1"),
        ("tract,a\nt1,1.5\n", "whole number"),
        ("tract,a\nt1,-1\n", "whole number"),
        ("tract,a\nt1,\n", "empty"),
        ("tract\nt1\n", "."),
        ("tract,a\n", "."),
    ],
)
def test_bad_matrices(tmp_path: Path, text: str, pattern: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    refused(tool("tradeoff", path, "--json"), pattern)


def test_nobody_at_risk_and_nobody_to_receive(matrix: Path, tmp_path: Path) -> None:
    said = good(tool("tradeoff", matrix, "--lambda", 0, "--json")).json["fronts"][0]
    assert (said["P_max"], said["U_min"]) == (0, 1)
    alone = tmp_path / "alone.csv"
    alone.write_text("tract,a,b\nt1,1,2\nt2,2,0\n")
    said = good(tool("tradeoff", alone, "--lambda", 3, "--json")).json["fronts"][0]
    assert (said["P_max"], said["U_min"]) == (0, 1)


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("people")
    good(tool("synthesize", "--persons", 4000, "--seed", 3, "--out", folder / "county", "--quiet"))
    return folder / "county" / "cef.parquet"


def test_records_are_moved_and_nothing_else_changes(people: Path, tmp_path: Path) -> None:
    out = tmp_path / "moved.parquet"
    words = ["protect", "relocate", people, "--by", "sex,white,black,hispanic", "--lambda", 2, "--out", out]
    said = good(tool(*words, "--json")).json
    before, after = pl.read_parquet(people), pl.read_parquet(out)
    assert after.columns == before.columns and after.height == before.height == said["records"]
    rest = [name for name in before.columns if name not in ("block", "household_id")]
    assert after.select(rest).equals(before.select(rest))
    gone = before["block"] != after["block"]
    assert int(gone.sum()) == said["moved"] > 50
    assert after.filter(gone)["household_id"].null_count() == said["moved"]
    assert after.filter(~gone)["household_id"].equals(before.filter(~gone)["household_id"])
    by = ["sex", "white", "black", "hispanic"]
    size = before.select(pl.len().over("block", *by)).to_series()
    assert size.filter(gone).max() <= 2  # type: ignore[operator]  # only people at risk
    # they go where more than lambda like them are
    there = Counter(before.select("block", *by).iter_rows())
    assert min(there[row] for row in after.filter(gone).select("block", *by).iter_rows()) > 2
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    again = tmp_path / "again.parquet"
    good(tool(*words[:-1], again))
    assert again.read_bytes() == out.read_bytes()
    good(tool(*words[:-1], tmp_path / "other.parquet", "--seed", 2))
    assert (tmp_path / "other.parquet").read_bytes() != out.read_bytes()


@pytest.mark.slow
def test_moved_records_go_straight_into_tables_and_attacks(people: Path, tmp_path: Path) -> None:
    out, tables = tmp_path / "moved.csv", tmp_path / "tables.parquet"
    good(tool("protect", "relocate", people, "--by", "white,hispanic", "--q", 0.5, "--out", out, "--quiet"))
    good(tool("tabulate", out, "--scenario", "sf1-person", "--out", tables, "--quiet"))
    good(tool("reconstruct", tables, "--scenario", "sf1-person", "--out", tmp_path / "rebuilt", "--quiet"))
    said = good(
        tool(
            "reidentify",
            tmp_path / "rebuilt",
            "--truth",
            people,
            "--published",
            out,
            "--attacker",
            people.with_name("attacker-perfect.parquet"),
            "--json",
        )
    ).json
    assert {row["data"] for row in said["rates"]} >= {"CEF", "HDF", "rHDF_bt"}


def test_capacities_hold_on_average(people: Path, tmp_path: Path) -> None:
    """Of one draw it is said how far it is from that."""
    said = good(
        tool(
            "protect",
            "relocate",
            people,
            "--by",
            "white,black,hispanic",
            "--capacity",
            1,
            "--out",
            tmp_path / "moved.parquet",
            "--json",
        )
    ).json
    moved = pl.read_parquet(tmp_path / "moved.parquet").with_columns(was=pl.read_parquet(people)["block"])
    arrived = moved.filter(pl.col("block") != pl.col("was")).group_by("block").len()["len"]
    assert said["over_capacity"] == int((arrived > 1).sum())
    assert said["excess"] == max(int(arrived.max()) - 1, 0)  # type: ignore[call-overload]


def test_the_franklin_matrix(data: Path, tmp_path: Path) -> None:
    """Table 2 with the corrected value (FINDINGS E: the paper's 1,034.17 for lambda 3 ignores capacity); tau*."""
    source = data / "franklin" / "tract_ver.csv"
    words = [f"--lambda={number}" for number in (1, 2, 3)]
    said = good(
        tool(
            "tradeoff",
            source,
            *words,
            "--capacity",
            20,
            "--attributes",
            "age,ethnicity,race",
            "--drop",
            "ER=age",
            "--drop",
            "R=age,ethnicity",
            "--points",
            21,
            "--json",
        )
    ).json
    ends = [(one["P_max"], one["U_min"]) for one in said["fronts"]]
    assert np.array(ends) == pytest.approx(
        np.array([(684, 0.906850), (921.5, 0.834838), (1031 + 1 / 6, 0.779960)]), abs=6e-7
    )
    taus = {row["data"]: row["tau"] for row in said["baselines"]}
    assert taus == pytest.approx({"data": 0.166738, "ER": 0.156566, "R": 0.094117}, abs=6e-7)
    assert [len(one["points"]) for one in said["fronts"]] == [21] * 3


def test_columns_that_share_values_make_different_groups(people: Path) -> None:
    said = good(tool("tradeoff", people, "--by", "white,hispanic", "--json")).json
    assert "explained" in said


def test_relocated_columns_keep_their_kinds(people: Path, tmp_path: Path) -> None:
    out = tmp_path / "moved.parquet"
    good(tool("protect", "relocate", people, "--by", "white,hispanic", "--lambda", 1, "--out", out, "--quiet"))
    assert pl.read_parquet_schema(out) == pl.read_parquet_schema(people)


def test_unique_people_who_stay_do_not_depend_on_the_spread(matrix: Path, tmp_path: Path) -> None:
    found = []
    for spread in ("whole", "even"):
        out = tmp_path / spread
        good(tool("tradeoff", matrix, "--lambda", 1, "--spread", spread, "--points", 5, "--out", out))
        found.append(pl.read_parquet(out / "points.parquet"))
    assert (found[0]["unique_staying"] - found[1]["unique_staying"]).abs().max() < 1e-9  # type: ignore[operator]
    assert (3 - found[0]["P"] - found[0]["unique_staying"]).abs().max() < 1e-9  # type: ignore[operator]


@pytest.mark.parametrize(
    ("words", "pattern"), [(["--degrees"], "--coordinates"), (["--capacity", "cap.csv"], "'t9' is no place")]
)
def test_what_would_be_ignored_is_refused(
    matrix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[object], pattern: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("cap.csv").write_text("place,capacity\nt1,4\nt2,4\nt3,4\nt4,4\nt9,4\n")
    refused(tool("tradeoff", matrix, *words, "--json"), pattern)
