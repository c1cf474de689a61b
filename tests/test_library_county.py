"""Do `synthesize` and `tradeoff` answer a library user with frames, a typed summary and pictures?"""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any, get_args

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import glasshouse as gh
from glasshouse.commands.relocating.options import CoverageName, SpreadName, WeightName
from glasshouse.protection.relocation.front import Spread
from glasshouse.protection.relocation.rules import Coverage, Weight
from tests.running import good, tool

MATRIX = pl.read_csv(
    StringIO("tract,young_a,young_b,old_a,old_b\nt1,1,40,3,60\nt2,2,30,50,1\nt3,60,1,2,70\nt4,50,3,80,2\n")
)


@pytest.fixture(scope="module")
def county() -> Any:
    return gh.synthesize(persons=400, seed=5)


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders go; nothing may be left in it."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def test_a_county_is_frames(county: Any, tmp_path: Path) -> None:
    assert county.cef.height == county.hdf.height == county.summary.records == 400
    assert county.blocks.height == county.summary.blocks and county.blocks["persons"].sum() == 400
    assert county.commercial.height == county.summary.commercial_records
    assert county.attacker_perfect.height == county.summary.data_defined
    assert {"household", "county"} <= set(county.sample.columns)
    assert county.households.height >= county.summary.households and county.housing.width > 1
    assert "seed 5" in county.datasheet and "400 persons in " in repr(county)
    assert ".attacker_perfect" in county._repr_html_()
    good(tool("synthesize", "--persons", 400, "--seed", 5, "--out", tmp_path / "told"))
    written = county.write(tmp_path / "written")
    for name in county.files:
        if name != "manifest.json":
            assert (written / name).read_bytes() == (tmp_path / "told" / name).read_bytes()


def test_a_county_leaves_nothing_behind(nowhere: Path) -> None:
    assert gh.synthesize(persons=200).said()["unchanged"] is False and list(nowhere.iterdir()) == []


def test_a_county_that_is_there_is_read_back(tmp_path: Path) -> None:
    first, again = (gh.synthesize(persons=200, out=tmp_path / "county") for _ in range(2))
    assert again.summary == first.summary and again.said() == first.said() | {"unchanged": True}
    assert_frame_equal(again.cef, first.cef)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"persons": "many"}, "--persons many: expected a whole number"),
        ({"seed": -1}, "--seed -1: expected 0 or more"),
        ({"alpha": 2}, "--alpha 2: expected 0 to 1"),
        ({"preset": "lunar"}, "lunar"),
        ({"commercial": "perfect"}, "2010-like"),
    ],
)
def test_a_county_that_cannot_be(given: dict[str, object], message: str) -> None:
    with pytest.raises(gh.InputError, match=message):
        gh.synthesize(**given)


def test_a_front_from_frames(nowhere: Path) -> None:
    asked = {"risk": [3, 1], "capacity": 5, "points": 5, "attributes": ["age", "race"], "drop": {"R": "age"}}
    found = gh.tradeoff(MATRIX, **asked)
    assert list(nowhere.iterdir()) == []
    assert [one.lambda_ for one in found.summary.fronts] == [1, 3]
    assert found.summary.fronts[0].P_max == pytest.approx(3) and found.summary.fronts[0].capacity == 5
    assert found.points.height == 2 * 2 * 5 and found.changes["change"].sum() == pytest.approx(0)
    assert found.fronts.height == sum(len(one.breakpoints) for one in found.summary.fronts)
    assert found.baselines.to_dicts()[0]["unique"] == found.summary.baselines[0].unique == 3
    assert {"front", "risk", "protection", "baselines", "changes"} == {
        name.removesuffix(".svg") for name in found.files if name.endswith(".svg")
    }
    assert found.figure().svg != found.figure("risk").svg
    assert found.said()["fronts"][0]["lambda"] == 1 and found.said()["unchanged"] is False
    assert_frame_equal(gh.tradeoff(MATRIX.to_pandas(), **asked).points, found.points)


def test_a_front_that_is_there_is_read_back(tmp_path: Path) -> None:
    matrix, groups = tmp_path / "matrix.csv", pl.DataFrame(
        {"combination": MATRIX.columns[1:], "group": ["a", "b", "a", "b"]}
    )  # fmt: skip
    MATRIX.write_csv(matrix)
    first, again = (gh.tradeoff(matrix, explain=groups, aggregate={"G": groups}, out=tmp_path / "f") for _ in range(2))
    assert again.summary == first.summary and again.said() == first.said() | {"unchanged": True}
    told = json.loads((tmp_path / "f" / "summary.json").read_text())
    assert list(told) == ["fronts", "baselines", "explained", "chosen", "protected"]
    assert list(told["fronts"][0])[:3] == ["lambda", "capacity", "method"]
    assert set(first.points["data"]) == {"data", "G"} and set(first.explained["model"]) == {"stepwise", "plain"}


def test_records_are_as_good_as_counts(county: Any) -> None:
    found = gh.tradeoff(county.cef, by=["white", "hispanic"], capacity="5%")
    assert found.summary.fronts[0].capacity == "5%" and found.places.height > 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"risk": [1, 1]}, "--lambda 1 is given twice"),
        ({"weight": "heavy"}, "unknown --weight 'heavy'; known: constant"),
        ({"capacity": "many"}, "a number, a percentage"),
        ({"near": "nowhere.csv"}, "nowhere.csv: there is no such file"),
        ({"drop": ["R=age", "R=race"], "attributes": "age,race"}, "--drop R=race: the name R is given twice"),
        ({"drop": {"R": "age"}}, "--attributes"),
        ({"within": 2}, "--coordinates"),
    ],
)
def test_a_front_that_cannot_be(given: dict[str, object], message: str) -> None:
    with pytest.raises(gh.InputError, match=message):
        gh.tradeoff(MATRIX, **given)


def test_the_choices_offered_are_those_that_are_known() -> None:
    assert get_args(WeightName) == tuple(Weight) and get_args(CoverageName) == tuple(Coverage)
    assert get_args(get_args(SpreadName)[0]) == tuple(Spread)
