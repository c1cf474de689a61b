"""Do certificates hold for what commands say? A small county, an office's households, and hidden numbers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

import glasshouse as gh
from glasshouse.commands.proving.prove import Proved
from glasshouse.commands.vary import Varied
from glasshouse.errors import InputError
from glasshouse.proofs import check_proof
from tests import vipr_grammar
from tests.bounds_sample import NORLAND
from tests.running import tool

SF1 = "sf1-person"


@pytest.fixture(scope="module")
def county(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("proofs")
    gh.synthesize(persons=260, seed=3, out=folder / "county")
    gh.tabulate(folder / "county" / "cef.parquet", scenario=SF1, out=folder / "tables.csv.gz")
    return folder


@pytest.fixture(scope="module")
def varied(county: Path) -> Varied:
    return gh.vary(county / "tables.csv.gz", scenario=SF1, out=county / "solvar", workers=1)


@pytest.fixture(scope="module")
def proved(county: Path, varied: Varied) -> Proved:
    return gh.prove(county / "solvar", tables=county / "tables.csv.gz", out=county / "proofs", workers=1)


def test_everything_that_is_exact_is_certified(county: Path, varied: Varied, proved: Proved) -> None:
    places, index = varied.places, proved.index
    assert set(places["proof"]) == {"exact"}
    assert set(index["status"]) == {"certified"} and proved.code == 0
    assert proved.summary.certified == proved.summary.facts == index.height
    assert proved.summary.records_certain == places["certain"].sum()
    populated = places.filter(pl.col("population") > 0)
    assert set(index.filter(pl.col("fact") == "certain")["place"]) == set(
        populated.filter(pl.col("certain") > 0)["block"]
    )
    for place, distance, population in populated.select("block", "distance", "population").iter_rows():
        said = index.filter((pl.col("place") == place) & (pl.col("fact") == "solvar"))["statement"]
        overlap = population - distance // 2
        if overlap:
            assert f"at least {overlap} of the {population} records named, and {population} in all" in said[0]


def test_certificates_are_private_and_the_same_every_time(county: Path, varied: Varied, proved: Proved) -> None:
    folder = county / "proofs"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    assert gh.prove(county / "solvar", tables=county / "tables.csv.gz", out=folder, workers=1).summary == proved.summary
    again = varied.prove(county / "tables.csv.gz", out=county / "again", workers=2)
    assert again.files == proved.files
    for name in proved.files:
        if name != "manifest.json":
            assert (county / "again" / name).read_bytes() == (folder / name).read_bytes(), name


def test_what_is_beyond_the_checkers_limits_is_open_and_no_reason_to_stop(
    county: Path, varied: Varied, proved: Proved, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_proof, "STEPS", 40_000)
    found = varied.prove(county / "tables.csv.gz", workers=1)
    assert found.index.select("place", "fact").equals(proved.index.select("place", "fact"))
    assert {"certified", "open"} == set(found.index["status"])
    assert (found.index.filter(pl.col("status") == "open")["file"] == "").all()


def test_facts_and_units_are_chosen(county: Path, varied: Varied, proved: Proved) -> None:
    tables, tract = county / "tables.csv.gz", varied.places["tract"][0]
    both = {fact: varied.prove(tables, facts=fact, units=tract, workers=1) for fact in ("solvar", "certain")}
    for fact, found in both.items():
        inside = proved.index.filter((pl.col("fact") == fact) & pl.col("place").str.starts_with(tract))
        assert inside.height and found.index.sort("place").equals(
            inside.sort("place")
        )  # the same files, the same words
    assert varied.prove(tables, facts=("certain", "solvar"), workers=1).index.equals(proved.index)
    for unknown in ("least", "solvar,least", "Solvar"):
        with pytest.raises(InputError, match=r"unknown kind of fact of a result of vary '.*'; known: certain, solvar$"):
            varied.prove(tables, facts=unknown)


def test_strangers_check_with_python_alone(county: Path, proved: Proved) -> None:
    folder = county / "proofs"
    said = [sys.executable, "-I", "-S", str(folder / "check_proof.py"), str(folder), "--tables"]
    ended = subprocess.run([*said, str(county / "tables.csv.gz")], capture_output=True, text=True, check=False)
    assert ended.returncode == 0 and f"{proved.summary.files} accepted, 0 refused" in ended.stdout, ended


def test_a_pipe_among_certificates_is_not_waited_for(county: Path, proved: Proved, tmp_path: Path) -> None:
    """A folder may come from strangers, packed as they like; a pipe in it has nobody who writes."""
    folder = tmp_path / "proofs"
    shutil.copytree(county / "proofs", folder)
    os.mkfifo(folder / "pipe.vipr")
    fine = gh.check_proof(folder, tables=county / "tables.csv.gz")
    assert fine.code == 1 and fine.summary.accepted == proved.summary.files
    said = [sys.executable, "-I", "-S", str(folder / "check_proof.py"), str(folder), "--tables"]
    ended = subprocess.run([*said, str(county / "tables.csv.gz")], capture_output=True, check=False, timeout=200)
    assert ended.returncode == 1 and b"REFUSED pipe.vipr" in ended.stdout


def test_certificates_are_of_the_published_grammar(county: Path, proved: Proved) -> None:
    for path in sorted((county / "proofs").glob("*.vipr")):
        assert not vipr_grammar.refused(path.read_text()), path.name


def test_check_proof_refuses_other_tables_and_other_words(county: Path, proved: Proved) -> None:
    tables = county / "tables.csv.gz"
    fine = gh.check_proof(county / "proofs", tables=tables)
    assert fine.code == 0 and fine.summary.accepted == proved.summary.files
    frame = pl.read_csv(tables, infer_schema=False)
    at = int(frame["value"].cast(pl.Int64).arg_max() or 0)
    other = frame.with_columns(
        pl.when(pl.int_range(pl.len()) == at).then(pl.lit("1")).otherwise(pl.col("value")).alias("value")
    )
    other.write_csv(county / "other.csv")
    refused = gh.check_proof(county / "proofs", tables=county / "other.csv")
    assert refused.code == 1 and "another published file" in refused.summary.reasons[0]
    copy = county / "copied"
    shutil.copytree(county / "proofs", copy)
    index = (copy / "index.csv").read_text()
    (copy / "index.csv").write_text(index.replace("has at least", "has more than", 1))
    assert gh.check_proof(copy, tables=tables).code == 1
    (copy / "index.csv").write_text(index)
    one = sorted(copy.glob("*.vipr"))[0]
    text = one.read_text()
    one.write_text(text.replace("RTP range ", "RTP range 1", 1))
    ended = tool("check-proof", copy, "--tables", tables, "--json")
    assert ended.code == 1 and ended.json["refused"] == 1
    with pytest.raises(InputError, match=r"no definitions\.json there"):
        gh.check_proof(county, tables=tables)


def test_what_does_not_fit_together_is_refused(county: Path, varied: Varied) -> None:
    tables = county / "tables.csv.gz"
    with pytest.raises(InputError, match="no result of vary, bounds, verify, detect there"):
        gh.prove(county, tables=tables)
    (county / "short.csv").write_text("level,geoid,table,variable,value\n")
    with pytest.raises(InputError, match="is another file than the result was made from"):
        gh.prove(county / "solvar", tables=county / "short.csv")
    with pytest.raises(InputError, match="did not start from given records"):
        gh.prove(county / "solvar", tables=tables, start=county / "county" / "cef.parquet")
    with pytest.raises(InputError, match="read otherwise"):
        gh.prove(county / "solvar", tables=tables, rounded="3")


def test_tables_that_the_checker_cannot_read_are_excerpted(county: Path) -> None:
    """Parquet: the numbers used are written beside the proofs, and Glasshouse compares them with the file."""
    frame = pl.read_csv(county / "tables.csv.gz", infer_schema=False).with_columns(pl.col("value").cast(pl.Int64))
    frame.write_parquet(county / "tables.parquet")
    gh.vary(county / "tables.parquet", scenario=SF1, level="block", out=county / "block", workers=1)
    found = gh.prove(county / "block", tables=county / "tables.parquet", out=county / "parquet", workers=1)
    assert "published.csv" in found.files and found.summary.certified == found.summary.facts
    assert gh.check_proof(county / "parquet", tables=county / "tables.parquet").code == 0
    published = county / "parquet" / "published.csv"
    lines = published.read_text().splitlines()
    published.write_text("\n".join([*lines[:-1], lines[-1].rpartition(",")[0] + ",9"]) + "\n")
    changed = gh.check_proof(county / "parquet", tables=county / "tables.parquet")
    assert changed.code == 1 and "is not what tables.parquet says" in changed.summary.reasons[0]


def test_claims_about_households_are_certified(tmp_path: Path) -> None:
    tables = tmp_path / "norland.csv"
    gh.tabulate(NORLAND / "records.csv", scenario=str(NORLAND / "scenario"), out=tables)
    claims = gh.verify(tables, scenario=str(NORLAND / "scenario"), columns=4, out=tmp_path / "claims", workers=1)
    found = gh.prove(
        tmp_path / "claims", tables=tables, scenario=str(NORLAND / "scenario"), out=tmp_path / "p", workers=1
    )
    sides = claims.claims.filter(pl.col("low") > 0).height + claims.claims.height
    assert found.index.height == sides and set(found.index["status"]) == {"certified"}
    assert gh.check_proof(tmp_path / "p", tables=tables).code == 0
    least = claims.prove(tables, scenario=str(NORLAND / "scenario"), facts="least", workers=1)
    assert least.index.height == claims.claims.filter(pl.col("low") > 0).height
    assert least.index["fact"].str.ends_with(" least").all()


def test_hidden_numbers_are_certified(tmp_path: Path) -> None:
    whole, tables, scenario = tmp_path / "whole.csv", tmp_path / "tables.csv", str(NORLAND / "scenario")
    gh.tabulate(NORLAND / "records.csv", scenario=scenario, out=whole)
    gh.protect.suppress(whole, scenario=scenario, below=3, out=tables)
    only = ("W1", "W2", "T1")
    bounds = gh.bounds(tables, scenario=scenario, only=only, out=tmp_path / "bounds", workers=1)
    found = gh.prove(tmp_path / "bounds", tables=tables, scenario=scenario, out=tmp_path / "p", workers=1)
    assert "town" in set(bounds.bounds["scope"])
    assert found.summary.facts > 50 and found.summary.certified == found.summary.facts
    assert gh.check_proof(tmp_path / "p", tables=tables, scenario=scenario).code == 0


def test_numbers_that_contradict_are_named(tmp_path: Path) -> None:
    whole, tables, scenario = tmp_path / "whole.csv", tmp_path / "tables.csv", str(NORLAND / "scenario")
    gh.tabulate(NORLAND / "records.csv", scenario=scenario, subtotals=True, out=whole)
    frame = pl.read_csv(whole, infer_schema=False).filter(pl.col("table") == "W1")
    wrong = (pl.int_range(pl.len()) == 1) & (pl.col("value") != "0")
    frame = frame.with_columns(pl.when(wrong).then(pl.lit("999")).otherwise(pl.col("value")).alias("value"))
    frame.write_csv(tables)
    bounds = gh.bounds(tables, scenario=scenario, only=("W1",), out=tmp_path / "bounds", workers=1)
    assert bounds.conflicts.height >= 1
    found = gh.prove(tmp_path / "bounds", tables=tables, scenario=scenario, out=tmp_path / "p", workers=1)
    said = found.index.filter(pl.col("fact") == "contradiction")
    assert said.height and set(said["status"]) == {"certified"}, said
    assert said["statement"].str.contains("without any one of them some set fits the others").all()
    assert bounds.prove(tables, scenario=scenario, facts="contradiction", workers=1).index.equals(said)


def test_what_places_owe_to_their_neighbours_is_certified(tmp_path: Path) -> None:
    """Places solved together: what needs the whole area has certificates about it, and the area has its own."""
    tables, scenario = tmp_path / "norland.csv", str(NORLAND / "scenario")
    gh.tabulate(NORLAND / "records.csv", scenario=scenario, out=tables)
    alone = gh.vary(tables, scenario=scenario, workers=1).places
    joint = gh.vary(tables, scenario=scenario, scope="town", workers=1)
    found = joint.prove(tables, scenario=scenario, out=tmp_path / "p", workers=1)
    assert set(found.index["status"]) == {"certified"}
    more = set(joint.places.filter(joint.places["certain"] > alone["certain"])["ward"])
    said = found.index.filter((pl.col("fact") == "certain") & pl.col("place").is_in(more))
    assert more and said.height == len(more) and said["statement"].str.contains("and of the town around").all()
    areas = {fact: found.index.filter(pl.col("fact") == f"area {fact}") for fact in ("solvar", "certain")}
    assert all(set(some["place"]) == set(joint.areas["town"]) for some in areas.values())
    for town, population, distance in joint.areas.select("town", "population", "distance").iter_rows():
        statement = areas["solvar"].filter(pl.col("place") == town)["statement"][0]
        overlap = population - distance // 2
        assert f"at least {overlap} of the {population} records named, and {population} in all; one that" in statement
    assert found.summary.records_certain == joint.places["certain"].sum()
    for path in (tmp_path / "p").glob("*.vipr"):
        assert not vipr_grammar.refused(path.read_text())
    assert gh.check_proof(tmp_path / "p", tables=tables).code == 0


def test_what_rests_on_all_places_being_there_is_not_called_certified_of_an_excerpt(tmp_path: Path) -> None:
    """The checker sees which places there are in a long CSV alone."""
    tables, scenario = tmp_path / "norland.parquet", str(NORLAND / "scenario")
    gh.tabulate(NORLAND / "records.csv", scenario=scenario, out=tables)
    alone = gh.vary(tables, scenario=scenario, workers=1).places
    joint = gh.vary(tables, scenario=scenario, scope="town", workers=1)
    found = joint.prove(tables, scenario=scenario, workers=1)
    more = joint.places.filter(joint.places["certain"] > alone["certain"])["ward"]
    status = dict(found.index.filter(pl.col("fact") == "certain").select("place", "status").iter_rows())
    assert len(more) and {status[place] for place in more} == {"weaker"}
    assert {status[place] for place in status if place not in set(more)} == {"certified"}
    assert set(found.index.filter(pl.col("fact").str.starts_with("area"))["status"]) == {"open"}
    assert any("cannot see that all places are there" in note for note in found.notes)


@pytest.mark.parametrize("jointly", [False, True])
def test_differences_of_printed_numbers_need_no_rows_of_their_own(jointly: bool, tmp_path: Path) -> None:
    """Of --tighten: a difference of two numbers of an area is a sum of rows."""
    tables, scenario = tmp_path / "norland.csv", str(NORLAND / "scenario")
    gh.tabulate(NORLAND / "records.csv", scenario=scenario, out=tables)
    scope = {"scope": "town"} if jointly else {}
    varied = gh.vary(tables, scenario=scenario, tighten=True, units=("NO01",), workers=1, **scope)
    found = varied.prove(tables, scenario=scenario, units="NO01", workers=1)
    assert found.index.height and set(found.index["status"]) == {"certified"}
