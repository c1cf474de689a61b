"""Is leaving one person out what it says? Done again by hand, with the commands, for single persons."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from glasshouse.assess.people.facts import Reidentification, Together
from glasshouse.assess.people.leaving_out import GROUPS, LEAVING, LeavingOut, Targets, outcome
from glasshouse.attack.people.counterfactual import World
from glasshouse.cli.main import main
from glasshouse.commands.work.leave_one_out import leave_out
from glasshouse.commands.work.leaving_plan import attacks_of, everyone, rates_of
from glasshouse.commands.work.linking import Files, attacked
from glasshouse.protection.swap.by_rates import Rates
from glasshouse.scenarios.load import load
from tests.running import tool

SCENARIO = ("--scenario", "sf1-person")
LIST = "attacker-perfect"


def good(*words: object) -> None:
    assert main([*map(str, words), "--quiet"]) == 0


@pytest.fixture(scope="module")
def county(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("leaving")
    good(
        "synthesize",
        "--persons",
        2500,
        "--seed",
        5,
        "--swap-base",
        0.05,
        "--swap-risky",
        0.2,
        "--out",
        folder / "county",
    )
    attack(folder, folder / "county" / "hdf.parquet")
    return folder


def attack(folder: Path, published: Path) -> None:
    """Tables of a published file, and both reconstructions."""
    good("tabulate", published, *SCENARIO, "--out", folder / "tables.parquet")
    for level in ("tract", "block"):
        good("reconstruct", folder / "tables.parquet", *SCENARIO, "--level", level, "--out", folder / level)


class Study:
    """The job and its units, in this process."""

    def __init__(self, folder: Path, rates: Rates | None = None) -> None:
        truth, published = folder / "county" / "cef.parquet", folder / "county" / "hdf.parquet"
        data = [attacked("", folder / level) for level in ("tract", "block")]
        lists = [(LIST, folder / "county" / f"{LIST}.parquet")]
        files = Files(load("sf1-person"), truth, published, data, lists, None)
        self.units = list(files.read(folder, lambda share: None, households=True))
        job = Reidentification(files.scenario, tuple(file.name for file in data), (LIST,), files.nations, False, 1)
        world = everyone(files.truth, files.scenario, rates, 1, job) if rates else None
        self.job = LeavingOut(job, attacks_of(data, files.scenario), world)

    def asked(self, unit: Together, number: int, group: str = "all") -> dict[str, dict[str, int]]:
        """What is said of one person of a unit, by teller."""
        done = leave_out(self.job, Targets(unit, {group: np.array([number])}))
        rows = done.frames["leaving"].iter_rows(named=True)
        return {row["data"]: row for row in rows if row["group"] == group}


@pytest.fixture(scope="module")
def study(county: Path) -> Study:
    return Study(county)


def links(folder: Path, county: Path, published: Path) -> pl.DataFrame:
    good(
        "reidentify", folder / "tract", folder / "block", "--truth", county / "cef.parquet", "--published", published,
        "--attacker", county / f"{LIST}.parquet", "--links", "--out", folder / "risk",
    )  # fmt: skip
    return pl.read_parquet(folder / "risk" / "links.parquet")


def found(rows: pl.DataFrame, person: str, block: str) -> dict[str, tuple[int, int]]:
    """Of one person, by teller: was anything inferred, was it right?"""
    mine = rows.filter(pl.col("person_id") == person, pl.col("geoid") == block)
    return {data: (1, int(right)) for data, right in mine.select("data", "confirmed").iter_rows()}


def some_targets(study: Study) -> Iterator[tuple[Together, int, str]]:
    for at, unit in enumerate(study.units):
        yield unit, 3 + at, "all"
        yield unit, at, "nonmodal"
        yield unit, at, "nonmodal-unique"


def person_of(study: Study, unit: Together, number: int, group: str) -> dict[str, Any]:
    """Who that is, found by other means: a plain count over the rows of the truth in the order they are taken."""
    from glasshouse.assess.people.leaving_out import _Unit

    row = int(_Unit(study.job, unit).targets({group: np.array([number])})[group][0])
    return _Unit(study.job, unit).truth.frame.row(row, named=True)


@pytest.mark.slow  # 25 s; the same law is tested in the process below
def test_it_is_what_the_commands_give_by_hand(county: Path, study: Study, tmp_path: Path) -> None:
    hdf = pl.read_parquet(county / "county" / "hdf.parquet")
    cef = pl.read_parquet(county / "county" / "cef.parquet")
    before = links_of_all(county, tmp_path)
    changed = 0
    for number, (unit, at, group) in enumerate(some_targets(study)):
        who = person_of(study, unit, at, group)
        record = cef.filter(pl.col("person_id") == who["person_id"], pl.col("data_defined") == 1).row(0, named=True)
        same = [c for c in hdf.columns if c != "block"]
        theirs = hdf.with_row_index("row").filter([pl.col(c) == record[c] for c in same])["row"][0]
        world = tmp_path / f"without{number}"
        world.mkdir()
        hdf.with_row_index("row").filter(pl.col("row") != theirs).drop("row").write_parquet(world / "hdf.parquet")
        attack(world, world / "hdf.parquet")
        after = links(world, county / "county", world / "hdf.parquet")
        said = study.asked(unit, at, group)
        for teller in ("HDF", "rHDF_bt", "rHDF_b"):
            inside, outside = (
                found(rows, who["person_id"], record["block"]).get(teller, (0, 0)) for rows in (before, after)
            )
            row = said[teller]
            assert (row["inferred_in"], row["right_in"]) == inside, teller
            assert (row["inferred_out"], row["right_out"]) == outside, teller
            assert row["right_both"] == inside[1] * outside[1]
            changed += inside != outside
    assert changed > 3  # or the test shows nothing


def links_of_all(county: Path, tmp_path: Path) -> pl.DataFrame:
    good(
        "reidentify", county / "tract", county / "block", "--truth", county / "county" / "cef.parquet", "--published",
        county / "county" / "hdf.parquet", "--attacker", county / "county" / f"{LIST}.parquet", "--links", "--out",
        tmp_path / "all",
    )  # fmt: skip
    return pl.read_parquet(tmp_path / "all" / "links.parquet")


def test_with_nobody_left_out_the_reconstruction_is_the_one_given(study: Study) -> None:
    for unit in study.units:
        counts = leave_out(study.job, Targets(unit, {"all": np.array([0])})).counts
        assert counts["same rHDF_bt"] == counts["same rHDF_b"] == 1


def test_without_swapping_again_and_again_gives_the_world_as_it_is(county: Path, study: Study) -> None:
    """Rates of 0 swap nobody: both ways of taking a person out are one, if the published file is the truth."""
    again = Study(county, Rates(0.0, 0.0))
    world = again.job.everyone
    assert world is not None
    for unit in again.units:
        truth = unit.frames["CEF"]
        first = int(np.searchsorted(world.places, unit.code))
        last = int(np.searchsorted(world.places, unit.code + "~"))
        made = world.world(world.settled.unit_place, first, last)
        attributes = [attribute.name for attribute in again.job.base.scenario.schema.attributes]
        codes = truth.sort("geoid", *attributes).select(attributes).to_numpy()
        assert (made.codes == codes).all()


def test_who_is_alone_leaves_nothing_to_link_when_nobody_is_swapped(county: Path) -> None:
    """A law: unique on place, sex and age bin, and no swapping: no candidate, no inference."""
    again = Study(county, Rates(0.0, 0.0))
    for at, unit in enumerate(again.units):
        said = again.asked(unit, at, "nonmodal-unique")
        for teller in ("HDF", "rHDF_bt", "rHDF_b"):
            assert said[teller]["inferred_in"] == 1
            assert said[teller]["inferred_out"] == said[teller]["right_out"] == 0
        assert said["HDF"]["right_in"] == 1
        assert said["rHDF_bt+MDG"]["inferred_out"] == 1  # who finds nothing may still guess


@pytest.mark.slow
def test_the_command(county: Path, tmp_path: Path) -> None:
    files = [
        "--truth", county / "county" / "cef.parquet", "--published", county / "county" / "hdf.parquet",
        "--attacker", county / "county" / f"{LIST}.parquet", "--leave-one-out", "12",
    ]  # fmt: skip
    runs = {}
    for name, more in {"one": ["--workers", "1"], "two": ["--workers", "2"], "swap": ["--swap", "0.05,0.2"]}.items():
        ended = tool(
            "reidentify", county / "tract", county / "block", *files, *more, "--out", tmp_path / name, "--json"
        )
        assert ended.code == 0, ended.err
        runs[name] = json.loads(ended.out)["leave_one_out"]
    assert (tmp_path / "one" / "leave-one-out.parquet").read_bytes() == (
        tmp_path / "two" / "leave-one-out.parquet"
    ).read_bytes()
    for rows in runs.values():
        assert {row["group"] for row in rows} == set(GROUPS)
        for row in rows:
            assert row["persons"] == 12
            assert -1 <= row["low"] <= row["difference"] <= row["high"] <= 1
            assert row["difference"] == pytest.approx((row["right_in"] - row["right_out"]) / 12)
            assert row["right_both"] <= min(row["right_in"], row["right_out"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--swap", "0.1,0.2"], "--leave-one-out"),
        (["--leave-one-out", "5", "--swap", "half"], "BASE,RISKY"),
        (["--leave-one-out", "5", "--swap", "0.2,0.1"], "base <= risky"),
    ],
)
def test_wrong_options(county: Path, tmp_path: Path, words: list[str], said: str) -> None:
    ended = tool(
        "reidentify", county / "tract", "--truth", county / "county" / "cef.parquet", "--published",
        county / "county" / "hdf.parquet", "--attacker", county / "county" / f"{LIST}.parquet", *words, "--out",
        tmp_path / "r",
    )  # fmt: skip
    assert ended.code == 2
    assert said in ended.err
    assert not (tmp_path / "r").exists()


def test_swapping_again_needs_households(county: Path, tmp_path: Path) -> None:
    truth = tmp_path / "truth.parquet"
    pl.read_parquet(county / "county" / "cef.parquet").drop("household_id").write_parquet(truth)
    ended = tool(
        "reidentify", county / "tract", "--truth", truth, "--published", county / "county" / "hdf.parquet",
        "--attacker", county / "county" / f"{LIST}.parquet", "--leave-one-out", "5", "--swap", "0.1,0.2", "--out",
        tmp_path / "r",
    )  # fmt: skip
    assert ended.code == 2
    assert "household_id" in ended.err


def test_a_world_without_a_record() -> None:
    world = World.of(np.array([1, 0, 1]), np.array([[3], [1], [2]], np.int16))
    assert world.place.tolist() == [0, 1, 1] and world.codes.ravel().tolist() == [1, 2, 3]
    assert world.without(1).codes.ravel().tolist() == [1, 3]


def test_rates_in_words() -> None:
    assert rates_of("0.02,0.10") == Rates(0.02, 0.10)


def test_the_outcome_by_plain_counting() -> None:
    frame = pl.DataFrame(
        [("x", "a", "all", 10, 10, 9, 4, 8, 3, 2)],
        schema=list(LEAVING),
        orient="row",
    )
    row = outcome([frame, frame], ["a"]).row(0, named=True)
    assert (row["persons"], row["share_in"], row["share_out"]) == (20, 0.8, 0.3)
    assert row["difference"] == pytest.approx(0.5)
    assert row["precision_in"] == pytest.approx(8 / 9)
    assert row["precision_out"] == pytest.approx(3 / 4)
