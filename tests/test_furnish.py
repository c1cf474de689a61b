"""Is a truth that `furnish` draws one that both agencies' numbers are of, and is it drawn as appendix B says?"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from glasshouse.files.sample import StateSample, read_sample
from glasshouse.population.furnished import Microdata, furnished
from tests.running import Ended, good, tool

PRINTED = ["block", "TEN", "VACS", "HHSIZE", "THHSPAN", "THHRACE", "TP18"]  # what microdata of an office tell


@pytest.fixture(scope="module")
def county(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("furnish") / "county"
    good(tool("synthesize", "--persons", 6_000, "--subsidised", 0.3, "--seed", 4, "--out", folder, "--quiet"))
    pl.read_parquet(folder / "households.parquet").select(PRINTED).write_csv(folder / "units.csv")
    return folder


def furnish(county: Path, out: Path, *words: object, **files: Path) -> Ended:
    units, sample = files.get("units", county / "units.csv"), files.get("sample", county / "sample.parquet")
    housing = files.get("housing", county / "housing.parquet")
    return tool("furnish", units, "--sample", sample, "--properties", housing, *words, "--out", out, "--quiet")


@pytest.fixture(scope="module")
def truth(county: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("furnished") / "truth"
    good(furnish(county, out, "--alpha", 0.05))
    return out


def test_what_is_printed_stays_and_the_rest_is_drawn_from_the_sample(county: Path, truth: Path) -> None:
    homes = pl.read_parquet(truth / "households.parquet")
    given = pl.read_csv(county / "units.csv", schema_overrides={"block": pl.String})
    same = ["block", "VACS", "HHSIZE", "THHSPAN", "THHRACE", "TP18"]
    assert homes.select(same).equals(given.select(same).cast(homes.select(same).schema))
    (sample,) = read_sample(county / "sample.parquet").values()
    kinds = set(zip(sample.persons.tolist(), sample.children.tolist(), strict=True))
    for row in homes.iter_rows(named=True):
        if row["VACS"]:
            assert row["persons"] == row["children"] == row["bedrooms"] == row["reported"] == 0
            continue
        assert row["persons"] == row["HHSIZE"] if row["HHSIZE"] < 7 else 7 <= row["persons"] <= 20
        assert (row["children"] > 0) == (row["TP18"] == 1) and row["children"] <= row["persons"]
        if row["children"] > 1:
            assert (row["persons"], row["children"]) in kinds
    assert homes.filter(pl.col("persons") > 7).height > 0


def test_properties_hold_as_many_households_as_they_report(county: Path, truth: Path) -> None:
    homes = pl.read_parquet(truth / "households.parquet").filter(pl.col("property_id").is_not_null())
    before, after = (pl.read_parquet(folder / "housing.parquet") for folder in (county, truth))
    used = before.filter(pl.col("pct_white_nothsp") >= 0)
    assert sorted(zip(after["block"], after["number_reported"], strict=True)) == sorted(
        zip(used["block"], used["number_reported"], strict=True)
    )
    assert homes.group_by("property_id").len().sort("property_id")["len"].to_list() == after.sort("property_id")[
        "number_reported"].to_list()  # fmt: skip
    for row in after.iter_rows(named=True):
        mine = homes.filter(property_id=row["property_id"])
        share = 100 * (mine["bedrooms"] == 1).sum() / mine.height
        assert mine["block"].unique().to_list() == [row["block"]] and abs(share - row["pct_bed1"]) <= 0.5
        assert row["people_total"] == mine["persons"].sum()


def test_both_files_are_of_one_truth(truth: Path, tmp_path: Path) -> None:
    """Nothing contradicts, and whatever is found is true: the test of `detect` that appendix B is for."""
    tables, homes = tmp_path / "tables.parquet", truth / "households.parquet"
    good(tool("tabulate", homes, "--scenario", "subsidised-housing", "--out", tables, "--quiet"))
    for model in ("sharp", "paper"):
        words = ("--properties", truth / "housing.parquet", "--truth", homes, "--model", model, "--workers", 1)
        told: dict[str, Any] = good(tool("detect", tables, *words, "--json")).json
        assert told["contradiction"] == 0 and told["blocks"] > 3
        assert told["blocks_right"]["putative"] == told["blocks_right"]["confirmed"]


def test_a_smaller_alpha_makes_for_fewer_violations_and_a_seed_for_the_same(county: Path, tmp_path: Path) -> None:
    files = (county / "units.csv", "--sample", county / "sample.parquet", "--properties", county / "housing.parquet")
    told = [good(tool("furnish", *files, "--alpha", alpha, "--json")).json for alpha in (0, 0.05, 1)]
    assert told[0]["violations"] < told[1]["violations"] < told[2]["violations"]
    for name in ("one", "two"):
        good(furnish(county, tmp_path / name, "--seed", 3))
    for name in ("households", "housing"):
        one, two = ((tmp_path / folder / f"{name}.parquet").read_bytes() for folder in ("one", "two"))
        assert one == two


def test_households_are_drawn_by_their_weight_among_those_alike() -> None:
    """Half the sample's large white households have 8 persons, by weight three quarters; others are 10."""
    one = np.array([8, 9, 10]), np.array([2, 2, 2]), np.array([0, 0, 1]), np.array([3, 1, 50])
    sample = StateSample(one[0], one[1], one[2], np.zeros((3, 14), np.bool_), one[3])
    count = 4000
    codes = {"VACS": 0, "HHSIZE": 7, "THHSPAN": 1, "THHRACE": 1, "TP18": 1}
    units = Microdata(
        pl.Series(["990010001001000"] * count), {name: np.full(count, code) for name, code in codes.items()}
    )
    shares = dict.fromkeys(("pct_white_nothsp", "pct_1adult", "pct_bed3"), 100)
    others = ("pct_black_nonhsp", "pct_native_american_nonhsp", "pct_asian_pacific_nonhsp", "pct_hispanic", "pct_multi",
              "pct_2adults", "pct_bed1", "pct_bed2")  # fmt: skip
    row = {"block": "990010001001000", "number_reported": 11, "total_units": 12, **shares, **dict.fromkeys(others, 0)}
    made = furnished(units, {"99": sample}, pl.DataFrame([row]), np.random.default_rng(0), alpha=1, place="block")
    sizes = Counter(made.households["persons"].to_list())
    assert set(sizes) == {8, 9} and abs(sizes[8] / count - 0.75) < 0.03
    assert made.subsidised == 11 and made.unlike == 0
    other = Microdata(units.block, units.codes | {"THHRACE": np.full(count, 5)})
    assert furnished(other, {"99": sample}, pl.DataFrame([row]), np.random.default_rng(0), alpha=1,
                     place="block").unlike > count  # fmt: skip


def test_bad_files_get_one_clear_line(county: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    people = pl.read_parquet(county / "sample.parquet")
    people.drop("age").write_parquet(tmp_path / "ageless.parquet")
    elsewhere = people.with_columns(pl.col("county").str.replace("^99", "36"))
    elsewhere.write_parquet(tmp_path / "elsewhere.parquet")
    units = pl.read_csv(county / "units.csv", schema_overrides={"block": pl.String})
    units.drop("HHSIZE").write_csv(tmp_path / "sizeless.csv")
    units.with_columns(block=pl.lit("99001")).write_csv(tmp_path / "coarse.csv")
    housing = pl.read_parquet(county / "housing.parquet")
    housing.with_columns(block=pl.lit("360010001001000")).write_parquet(tmp_path / "far.parquet")
    for files, pattern in (
        ({"sample": tmp_path / "ageless.parquet"}, "'age'"),
        ({"sample": tmp_path / "elsewhere.parquet"}, "the sample has nobody of 99"),
        ({"units": tmp_path / "sizeless.csv"}, "'HHSIZE'"),
        ({"units": tmp_path / "coarse.csv"}, "'99001' is no code of a block; expected 15 characters"),
        ({"housing": tmp_path / "far.parquet"}, "no property can be filled with these households"),
    ):
        ended = furnish(county, out, **files)
        assert ended.code == 2 and pattern in ended.err and ended.err.count("\n") == 1, ended.err
        assert not out.exists()
    ended = furnish(county, out, "--scenario", "dhc-household")
    assert ended.code == 2 and "says nothing of a second agency" in ended.err
