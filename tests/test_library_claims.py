"""Can a notebook ask what must be true, and what two agencies give away together? Frames in, frames out, no folder."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

import glasshouse as gh
from glasshouse.commands.verify import Verified
from glasshouse.scenarios.load import load, scenarios_with
from tests.running import good, tool

FEW = ("P16", "P19", "H3", "H5", "H9", "H13")  # tables that are quickly compiled
SAID = ["block", "columns", "values", "m", "low", "high"]


@pytest.fixture(scope="module")
def county(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("claims") / "county"
    made = ("--persons", 6000, "--subsidised", 0.4, "--alpha", 0.001, "--seed", 4)
    good(tool("synthesize", *made, "--out", folder, "--quiet"))
    return folder


@pytest.fixture(scope="module")
def homes(county: Path) -> pl.DataFrame:
    """The households of a few small blocks."""
    units = pl.read_parquet(county / "households.parquet")
    size = (pl.col("VACS") == 0).sum().over("block")
    small = units.filter(size.is_between(2, 4))
    return small.filter(pl.col("block").is_in(sorted(set(small["block"]))[:4]))


@pytest.fixture(scope="module")
def tables(homes: pl.DataFrame) -> pl.DataFrame:
    return gh.tabulate(homes, scenario="dhc-household", only=FEW).frame("tables")


@pytest.fixture(scope="module")
def occupied(county: Path) -> pl.DataFrame:
    return gh.tabulate(county / "households.parquet", scenario="subsidised-housing").frame("tables")


@pytest.fixture(autouse=True)
def _nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    rooms = tmp_path / "rooms"
    rooms.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(rooms))
    yield
    assert list(rooms.iterdir()) == []


@pytest.fixture(scope="module")
def quick() -> Iterator[None]:
    """Pictures, workbooks and pages take longer than all the rest."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("glasshouse.report.sections.claims.write", lambda *_, **__: [])
        patch.setattr("glasshouse.report.figure.Figure.save", lambda _, path: path.write_text("<svg/>"))
        yield


@pytest.fixture(scope="module")
def found(tables: pl.DataFrame, homes: pl.DataFrame, quick: None) -> Verified:
    return gh.verify(
        tables, scenario="dhc-household", columns=3, only=FEW, absent=1, cannot=[0], why=2, leaks="table", truth=homes,
        prior_area=homes, prior_coarsest=homes, workers=1,
    )  # fmt: skip


def test_verify_takes_frames_and_gives_frames(found: Verified, homes: pl.DataFrame) -> None:
    claims = found.claims
    assert claims.height == found.summary.claims > 100
    assert (claims["truth"] == claims["m"]).all(), "what is certain is true"
    assert {"p_tract", "p_state"} <= set(claims.columns) and claims["p_state"].null_count() == 0
    assert set(found.places["block"]) == set(homes["block"])
    assert found.places["claims"].sum() == claims.height
    assert set(found.counts["multiplicity"]) == {"singleton", "all"}
    assert set(found.leaks["table"]) == set(FEW)
    assert found.summary.leaks is not None and {row["table"] for row in found.summary.leaks} == set(FEW)
    for name in ("reasons", "absent", "cannot"):
        assert found.frame(name).height == getattr(found.summary, name) > 0
    assert set(found.apart.columns) >= {"block", "description", "m"}


def test_a_result_of_verify_shows_and_writes_itself(found: Verified, tmp_path: Path) -> None:
    assert found.out is None and "blocks" in repr(found) and "->" not in repr(found)
    assert ".claims" in found._repr_html_()
    folder = found.write(tmp_path / "out")
    assert pl.read_parquet(folder / "claims.parquet").equals(found.claims)
    assert json.loads((folder / "summary.json").read_text())["claims"] == found.summary.claims
    assert found.said()["claims"] == found.summary.claims and found.code == 0


def test_a_frame_of_pandas_says_the_same(found: Verified, tables: pl.DataFrame, quick: None) -> None:
    pandas = pytest.importorskip("pandas", reason="frames of pandas are taken where it is installed")
    frame = pandas.DataFrame(tables.to_dict(as_series=False))
    again = gh.verify(frame, scenario="dhc-household", columns=3, only=FEW, workers=1)
    assert again.claims.select(SAID).equals(found.claims.select(SAID))


def test_places_are_chosen_by_a_list_or_a_file(
    found: Verified, tables: pl.DataFrame, tmp_path: Path, quick: None
) -> None:
    block = found.places["block"][1]
    (tmp_path / "codes.txt").write_text(f"block\n{block}\n")
    own = found.claims.filter(block=block).select(SAID)
    for places in ([block], found.places["block"].slice(1, 1), tmp_path / "codes.txt"):
        some = gh.verify(tables, scenario="dhc-household", columns=3, only=FEW, places=places, workers=1)
        assert own.height and some.claims.select(SAID).equals(own)


def test_a_second_call_reads_the_folder(tables: pl.DataFrame, tmp_path: Path, quick: None) -> None:
    tables.write_parquet(tmp_path / "tables.parquet")
    first, again = (
        gh.verify(tmp_path / "tables.parquet", scenario="dhc-household", columns=8, only=FEW, workers=1,
                  out=tmp_path / "out") for _ in range(2)
    )  # fmt: skip
    assert again.ended.unchanged and not first.ended.unchanged
    assert again.summary == first.summary and again.lines()[1:] == first.lines()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"columns": 0}, "--columns 0: expected 1 or more"),
        ({"columns": 11}, "a record of this scenario has 10 columns"),
        ({"zeros": "none"}, "known: all, certain, paper"),
        ({"cannot": [-1]}, "--cannot -1: expected 0 or more"),
        ({"drop_cells": ["x"]}, "--drop-cells x: expected a whole number"),
        ({"places": ["99"], "pick": "4:1"}, "--blocks and --pick: give one or the other"),
        ({"truth": "nofile.parquet"}, "nofile.parquet: there is no such file"),
        ({"column": 6}, "unknown argument of verify 'column'"),
        ({"truth": 7}, "truth is of type int; expected a path, a frame"),
    ],
)
def test_verify_says_what_is_wrong(tables: pl.DataFrame, given: dict[str, object], says: str) -> None:
    with pytest.raises(gh.InputError) as error:
        gh.verify(tables, scenario="dhc-household", **given)
    assert says in str(error.value)


# Two agencies


def test_detect_takes_frames_and_gives_frames(county: Path, occupied: pl.DataFrame, quick: None) -> None:
    housing = pl.read_parquet(county / "housing.parquet")
    found = gh.detect(
        occupied, properties=housing, why=True, sample=county / "sample.parquet", solutions=2,
        truth=county / "households.parquet", workers=1,
    )  # fmt: skip
    summary, places = found.summary, found.places
    assert summary.scenario == "subsidised-housing" and places.height == summary.blocks > 0
    assert summary.certain == places.filter(answer="certain").height == found.reasons.height > 0
    assert {*places["block"], *found.left_out["block"]} == set(housing.filter(pl.col("people_total") >= 0)["block"])
    assert set(found.solutions["block"]) == set(found.ranking["block"]) <= set(places["block"])
    assert found.matches.height and summary.households_right is not None
    first = summary.households_right[0]
    rows = found.rates.filter("all_putative", attacker=first.attacker, key=first.key, households=first.households)
    assert first.confirmed in rows["confirmed"] and first.first is not None
    assert summary.blocks_right is not None and summary.blocks_right.precision is not None
    assert summary.blocks_right.precision.value == 1.0, "what is certain is true"
    assert ".places" in found._repr_html_()


def test_detect_leaves_out_what_was_not_asked(county: Path, occupied: pl.DataFrame, quick: None) -> None:
    found = gh.detect(occupied, properties=county / "housing.parquet", workers=1)
    assert {"solvar", "nearest", "usual_reason", "blocks_right", "households_right"}.isdisjoint(found.said())
    with pytest.raises(gh.InputError, match="unknown frame of detect 'reasons'; known: left-out, places"):
        found.reasons  # noqa: B018


def test_the_scenario_of_detect_is_the_one_with_a_rule_of_occupancy() -> None:
    (name,) = scenarios_with("occupancy")
    assert load(name).occupancy is not None and not scenarios_with("no such section")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "--properties is missing"),
        ({"properties": "no.parquet"}, "no.parquet: there is no such file"),
        ({"properties": "no.parquet", "solvar": True}, "--solvar needs --sample"),
        ({"properties": "no.parquet", "everywhere": True}, "--every-block says where --solutions are listed"),
        ({"properties": "no.parquet", "ties": "all"}, "known: any, fewest"),
        ({"properties": "no.parquet", "model": "exact"}, "unknown model"),
        ({"properties": "no.parquet", "scenario": "pl94"}, "known: subsidised-housing"),
    ],
)
def test_detect_says_what_is_wrong(occupied: pl.DataFrame, given: dict[str, object], says: str) -> None:
    with pytest.raises(gh.InputError) as error:
        gh.detect(occupied, **given)
    assert says in str(error.value)


# Another country: levels are the scenario's own


NORLAND = Path(__file__).resolve().parents[1] / "examples" / "own-country"


@pytest.fixture(scope="module")
def wards() -> pl.DataFrame:
    """The people of the smallest wards of a country that does not exist."""
    everybody = pl.read_csv(NORLAND / "records.csv", infer_schema=False)
    small = everybody.group_by("ward").len().sort("len", "ward").head(3)
    return everybody.filter(pl.col("ward").is_in(small["ward"].implode())).sort("ward")


def test_claims_of_another_country_name_its_own_levels(wards: pl.DataFrame, tmp_path: Path, quick: None) -> None:
    scenario = str(NORLAND / "scenario")
    tables = gh.tabulate(wards, scenario=scenario)
    mapping = wards.select("ward", district=pl.lit("all")).unique()
    mapping.write_csv(tmp_path / "district.csv")
    found = gh.verify(
        tables, scenario=scenario, columns=2, prior_area=wards, prior_coarsest=wards,
        mapping={"district": tmp_path / "district.csv"}, workers=1,
    )  # fmt: skip
    assert {"p_town", "p_region"} <= set(found.claims.columns)
    assert found.claims.height and found.claims.select("p_town", "p_region").null_count().row(0) == (0, 0)
    assert set(found.places["ward"]) == set(wards["ward"]) and "3 wards" in found.lines()[0]
    assert found.summary.baselines is not None
    assert {row["prior"] for row in found.summary.baselines} == {"town", "region"}


def test_where_a_unit_is_the_coarsest_area_there_is_one_prior(wards: pl.DataFrame, tmp_path: Path, quick: None) -> None:
    text = (NORLAND / "scenario" / "scenario.toml").read_text(encoding="utf-8").replace("region = 2, ", "")
    (tmp_path / "flat").mkdir()
    (tmp_path / "flat" / "scenario.toml").write_text(text, encoding="utf-8")
    scenario = str(tmp_path / "flat")
    tables = gh.tabulate(wards, scenario=scenario)
    for prior in ("prior_area", "prior_coarsest"):
        found = gh.verify(tables, scenario=scenario, columns=2, workers=1, **{prior: wards})
        assert found.claims["p_town"].null_count() == 0
    with pytest.raises(gh.InputError, match="a town is the coarsest area of this scenario; give one or the other"):
        gh.verify(tables, scenario=scenario, columns=2, prior_area=wards, prior_coarsest=wards)


def test_a_unit_may_be_the_place_itself(wards: pl.DataFrame, tmp_path: Path, quick: None) -> None:
    text = (NORLAND / "scenario" / "scenario.toml").read_text(encoding="utf-8")
    (tmp_path / "scenario.toml").write_text(text.replace('unit = "town"', 'unit = "ward"'), encoding="utf-8")
    tables = gh.tabulate(wards, scenario=str(tmp_path), only=("W1", "W2"))
    found = gh.verify(tables, scenario=str(tmp_path), only=("W1", "W2"), columns=1, leaks="table", workers=1)
    assert found.code == 0 and found.places.columns[:2] == ["ward", "households"]
    assert found.claims.height == found.places["claims"].sum() > 0
    assert set(found.leaks["of"]) == set(found.places["claims"])
