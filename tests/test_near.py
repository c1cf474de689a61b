"""Does `reconstruct --nearest` come as near as anything can? Toys against brute force; noisy tables counted again."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from glasshouse.attack import reconstruct_noisy as near
from glasshouse.attack.published import Published, Unit
from glasshouse.attack.reconstruct_noisy import POWER, rebuild_from_noise
from glasshouse.model.records import UNLIMITED
from glasshouse.model.release import Counts
from glasshouse.program.answers import Answers
from glasshouse.program.integer import Limit, Outcome, Proof
from glasshouse.program.ladder import Ladder
from glasshouse.program.nearest import Nearest, nearest
from glasshouse.scenarios.load import Scenario, load
from tests.running import Ended, good, tool
from tests.test_nearest import SORTS, Question, check, hardest, questions

HOUSES = """
title = "Houses"
variable = "{table}_{line:2}"

[geography]
place = "house"
unit = "street"
levels = { town = 1, street = 2, house = 3 }

[attribute.colour]
levels = ["red", "blue"]

[attribute.owner]
levels = ["no", "yes"]
codes = ["0", "1"]

[recode]
colour = { attribute = "colour" }
owner = { attribute = "owner" }

[table]
T1 = { title = "All", level = "house", by = [] }
T2 = { title = "Colour", level = "house", by = ["colour"] }
T3 = { title = "Owner", level = "house", by = ["owner"] }
T4 = { title = "Owner, red", level = "house", by = ["owner"], universe = { colour = "red" } }
T5 = { title = "Colour", level = "street", by = ["colour"] }
"""
KINDS = list(product(("red", "blue"), (0, 1)))
MOST = 7  # of a kind; no number below is larger
COLUMNS = ["level", "geoid", "table", "variable", "value"]


def refused(ended: Ended, pattern: str, out: Path | None = None) -> None:
    assert ended.code == 2 and "Traceback" not in ended.err, ended
    assert re.fullmatch(r"glasshouse: [^\n]*\n?", ended.err), ended.err
    assert re.search(pattern, ended.err), ended.err
    assert out is None or not out.exists()


# Toys: a scenario of four kinds of record, whose histograms can all be looked at


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("near")
    (made / "houses").mkdir()
    (made / "houses" / "scenario.toml").write_text(HOUSES, encoding="utf-8")
    return made


@pytest.fixture(scope="module")
def scenario(folder: Path) -> str:
    return str(folder / "houses")


@pytest.fixture(scope="module")
def members(folder: Path, scenario: str) -> dict[str, list[int]]:
    """Of each number of a house how often it counts each kind: `tabulate` of houses with one record each."""
    frame = pl.DataFrame({"house": ["111", "112", "113", "114"], "colour": [k[0] for k in KINDS],
                          "owner": [k[1] for k in KINDS]})  # fmt: skip
    frame.write_csv(folder / "kinds.csv")
    good(tool("tabulate", folder / "kinds.csv", "--scenario", scenario, "--out", folder / "kinds.parquet", "--quiet"))
    counted = pl.read_parquet(folder / "kinds.parquet").filter(pl.col("level") == "house")
    found = {name: [0] * len(KINDS) for name in sorted(counted["variable"].unique())}
    for geoid, name, value in counted.select("geoid", "variable", "value").iter_rows():
        found[name][int(geoid) - 111] = value
    assert len(found) == 1 + 2 + 2 + 2 and found["T1_01"] == [1, 1, 1, 1]
    return found


@pytest.fixture(scope="module")
def numbers(members: dict[str, list[int]]) -> dict[str, dict[str, int]]:
    """Houses of three streets: in 11 no house fits, in 12 some do, in 13 all do."""
    rng = np.random.default_rng(5)
    matrix, found = np.array(list(members.values())), {}
    for street, noise in (("11", 2.0), ("12", 0.35), ("13", 0.0)):
        for house in range(8):
            exact = matrix @ rng.integers(0, 3, len(KINDS))
            noisy = np.clip(exact + np.rint(rng.normal(0, noise, len(exact))).astype(int), 0, MOST)
            if not noise:
                noisy = exact
            found[f"{street}{house}"] = dict(zip(members, noisy.tolist(), strict=True))
    found["110"] |= {"T1_01": 6, "T2_02": 0, "T2_03": 0}  # whatever the seed, no records fit here
    return found


def written(path: Path, numbers: dict[str, dict[str, int]], streets: str = "123") -> Path:
    rows = [
        ("house", house, name.split("_")[0], name, value)
        for house, some in numbers.items() if house[1] in streets for name, value in some.items()
    ]  # fmt: skip
    pl.DataFrame(rows, schema=COLUMNS, orient="row").write_csv(path)
    return path


@pytest.fixture(scope="module")
def tables(folder: Path, numbers: dict[str, dict[str, int]]) -> Path:
    return written(folder / "noisy.csv", numbers)


def by_hand(members: dict[str, list[int]], numbers: dict[str, int], power: int) -> int:
    """The least error over every histogram."""
    grid = np.array(list(product(range(MOST + 1), repeat=len(KINDS)))).T
    off = np.abs(np.array(list(members.values())) @ grid - np.array([numbers[name] for name in members])[:, None])
    return int((off**power).sum(axis=0).min())


@pytest.fixture(scope="module")
def rebuilt(folder: Path, scenario: str, tables: Path) -> dict[str, Path]:
    """Both ways of measuring, with one worker."""
    for method in POWER:
        words = ["reconstruct", tables, "--scenario", scenario, "--nearest", method, "--out", folder / method]
        said = good(tool(*words, "--workers", 1, "--json")).json
        assert said["places"] == 24 and said["refused"] == {} and said["recounted"] >= 8
        places = pl.read_parquet(folder / method / "places.parquet")
        assert said["error"] == places["error"].sum() > 0 and said["recounted"] == places["recounted"].sum()
    return {method: folder / method for method in POWER}


def recounted(records: Path, scenario: str, near: Path, members: dict[str, list[int]]) -> dict[str, dict[str, int]]:
    """What `tabulate` makes of rebuilt records; what is absent is 0."""
    out = near / "again.parquet"
    good(tool("tabulate", records, "--scenario", scenario, "--out", out, "--overwrite", "--quiet"))
    again: dict[str, dict[str, int]] = {}
    for geoid, name, value in pl.read_parquet(out).select("geoid", "variable", "value").iter_rows():
        again.setdefault(geoid, dict.fromkeys(members, 0))[name] = value
    return again


@pytest.mark.parametrize("method", POWER)
def test_the_error_is_the_least_there_is_and_that_of_the_records(
    method: str, rebuilt: dict[str, Path], scenario: str, tmp_path: Path,
    members: dict[str, list[int]], numbers: dict[str, dict[str, int]],
) -> None:  # fmt: skip
    places = pl.read_parquet(rebuilt[method] / "places.parquet")
    again = recounted(rebuilt[method] / "records.parquet", scenario, tmp_path, members)
    assert places["house"].to_list() == sorted(numbers)
    for row in places.iter_rows(named=True):
        wanted, house = by_hand(members, numbers[row["house"]], POWER[method]), row["house"]
        counts = again.get(house, dict.fromkeys(members, 0))
        error = sum(abs(counts[name] - numbers[house][name]) ** POWER[method] for name in members)
        assert row["error"] == error, house
        assert row["error_floor"] <= wanted <= row["error"], house
        assert row["recounted"] == (wanted == 0) == (row["method"] != "nearest"), house
        assert row["proof"] == "undecided" or row["error_floor"] == row["error"] == wanted, house
        assert row["population"] == counts["T1_01"], house
    fits = places.group_by("street", maintain_order=True).agg(pl.col("recounted").sum())["recounted"].to_list()
    assert fits[0] < 4 and 0 < fits[1] < 8 and fits[2] == 8  # every sort of street is there
    assert (places["proof"] == "exact").sum() >= 20


def test_absolute_and_squared_are_two_questions(rebuilt: dict[str, Path], members: dict[str, list[int]]) -> None:
    first, second = (pl.read_parquet(rebuilt[method] / "places.parquet") for method in POWER)
    assert not first["error"].equals(second["error"])
    assert (second["error"] >= first["error"]).all()  # e^2 >= e for whole numbers, so the least is no less
    assert first["recounted"].equals(second["recounted"])


def test_nothing_is_called_certain_and_files_are_private(rebuilt: dict[str, Path]) -> None:
    for path in rebuilt.values():
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
        assert {stat.S_IMODE(file.stat().st_mode) for file in path.iterdir()} == {0o600}
        columns = pl.read_parquet_schema(path / "places.parquet")
        assert not [name for name in columns if "certain" in name or "solvar" in name]


def test_places_that_fit_are_as_without_nearest(rebuilt: dict[str, Path], scenario: str, folder: Path,
                                                numbers: dict[str, dict[str, int]]) -> None:  # fmt: skip
    """A street whose numbers are true: the same records by the same seed, nothing near about them."""
    street = written(folder / "true.csv", numbers, "3")
    for more in ([], ["--nearest", "absolute"]):
        out = folder / f"true{len(more)}"
        good(tool("reconstruct", street, "--scenario", scenario, "--out", out, "--workers", 1, "--quiet", *more))
    both = [(folder / name / "records.parquet").read_bytes() for name in ("true0", "true2")]
    assert both[0] == both[1]
    alone = pl.read_parquet(folder / "true2" / "records.parquet")
    among = pl.read_parquet(rebuilt["absolute"] / "records.parquet").filter(pl.col("house").str.starts_with("13"))
    assert alone.equals(among)  # convention 20: a unit's answer is its own


def test_the_same_bytes_with_two_workers_and_up_to_date(rebuilt: dict[str, Path], scenario: str, tables: Path,
                                                        tmp_path: Path) -> None:  # fmt: skip
    words = ["reconstruct", tables, "--scenario", scenario, "--nearest", "squared", "--workers", 2]
    good(tool(*words, "--out", tmp_path / "two", "--quiet"))
    for name in ("records.parquet", "places.parquet"):
        assert (tmp_path / "two" / name).read_bytes() == (rebuilt["squared"] / name).read_bytes()
    assert "up to date" in good(tool(*words, "--out", tmp_path / "two")).out
    words[words.index("squared")] = "absolute"
    refused(tool(*words, "--out", tmp_path / "two"), "another run.*nearest")


def test_contradictions_are_never_certain(scenario: str, tables: Path, tmp_path: Path) -> None:
    """The same tables: `vary` and `reconstruct` refuse the streets that contradict themselves, and do the rest."""
    for command in ("vary", "reconstruct"):
        ended = good(tool(command, tables, "--scenario", scenario, "--out", tmp_path / command, "--workers", 1), 1)
        assert "street 11 is left out" in ended.err and "street 12 is left out" in ended.err
        places = pl.read_parquet(tmp_path / command / "places.parquet")
        assert set(places["street"]) == {"13"}
        records = tmp_path / command / "records.parquet"
        if records.exists():
            assert {house[:2] for house in pl.read_parquet(records)["house"]} == {"13"}
    every = written(tmp_path / "bad.csv", {"110": {"T1_01": 6, "T2_02": 0, "T2_03": 0}})
    said = good(tool("vary", every, "--scenario", scenario, "--out", tmp_path / "none", "--workers", 1, "--json"), 1)
    assert set(said.json["refused"]) == {"11"} and pl.read_parquet(tmp_path / "none" / "places.parquet").is_empty()
    assert not said.json.get("certain")


def test_intervals_and_other_levels_and_words_are_refused(scenario: str, tables: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["reconstruct", tables, "--scenario", scenario, "--out", out]
    refused(tool(*words, "--nearest", "manhattan"), "unknown --nearest 'manhattan'; known: absolute, squared", out)
    refused(tool(*words, "--nearest", "absolute", "--level", "street"), "--nearest .* house; .*--level street", out)
    good(tool(*words, "--nearest", "absolute", "--level", "house", "--workers", 1, "--quiet"))
    frame = pl.read_csv(tables, schema_overrides={"geoid": pl.String}).rename({"value": "lower"})
    frame.with_columns(upper=pl.col("lower") + 1).write_csv(tmp_path / "between.csv")
    words = ["reconstruct", tmp_path / "between.csv", "--scenario", scenario, "--nearest", "absolute"]
    ended = tool(*words, "--workers", 1, "--out", tmp_path / "no")
    assert ended.code in (1, 2) and "Traceback" not in ended.err and "bug" not in ended.err
    assert "exact numbers; these are intervals" in ended.err


def test_numbers_above_the_houses_are_left_aside(rebuilt: dict[str, Path], scenario: str, tables: Path,
                                                 tmp_path: Path) -> None:  # fmt: skip
    """Each block by its own tables: what a street's numbers say changes nothing, however wrong."""
    wrong = pl.DataFrame([("street", "11", "T5", "T5_03", 900), ("street", "12", "T5", "T5_02", 7)],
                         schema=COLUMNS, orient="row")  # fmt: skip
    frame = pl.read_csv(tables, schema_overrides={"geoid": pl.String})
    pl.concat([frame, wrong]).write_csv(tmp_path / "more.csv")
    words = ["reconstruct", tmp_path / "more.csv", "--scenario", scenario, "--nearest", "absolute", "--workers", 1]
    good(tool(*words, "--out", tmp_path / "out", "--quiet"))
    for name in ("records.parquet", "places.parquet"):
        assert (tmp_path / "out" / name).read_bytes() == (rebuilt["absolute"] / name).read_bytes()


# What was stopped, and what fits after all


def unit_of(scenario: Scenario, numbers: dict[str, dict[str, int]], street: str) -> tuple[Published, Unit]:
    houses = [house for house in sorted(numbers) if house.startswith(street)]
    names = tuple(numbers[houses[0]])
    counts = np.array([[numbers[house][name] for name in names] for house in houses], np.int64)
    tables = tuple(table for table in scenario.tables if table.level == "house")
    published = Published(scenario.schema, tables, names, (), (), scenario.bins, scenario.unique_on, ())
    return published, Unit(Counts("house", tuple(houses), names, counts, counts), None, np.zeros(len(houses), np.int64))


def test_without_effort_a_place_has_no_records_and_no_claim(
    scenario: str, numbers: dict[str, dict[str, int]], members: dict[str, list[int]]
) -> None:
    published, unit = unit_of(load(scenario), numbers, "11")
    for ladder in (Ladder(limit=Limit(effort=0)), Ladder(engines=())):
        found = rebuild_from_noise(published, unit, np.random.default_rng(1), "squared", ladder)
        assert found.fits.sum() < 8
        for number in np.flatnonzero(~found.fits).tolist():
            wanted = by_hand(members, numbers[unit.counts.places[number]], 2)
            assert found.floor[number] <= wanted <= found.error[number], number
            assert found.proof[number] == Proof.UNDECIDED or found.error[number] == wanted, number
            assert found.error[number] < UNLIMITED or not (found.place == number).any(), number


def test_a_place_without_an_answer_is_counted_apart(scenario: str, tables: Path, tmp_path: Path) -> None:
    """No records were found there: that is no error of 10^12 to be added up, and not simply done."""
    words = ["reconstruct", tables, "--scenario", scenario, "--nearest", "absolute", "--effort", 0, "--workers", 1]
    ended = tool(*words, "--out", tmp_path / "out", "--json")
    assert "bug" not in ended.err and ended.json["error"] < UNLIMITED, ended.json["error"]


def test_what_the_clock_stopped_is_said_and_not_final(scenario: str, tables: Path, tmp_path: Path) -> None:
    """Conventions 17 and 21."""
    words = ["reconstruct", tables, "--scenario", scenario, "--nearest", "absolute", "--seconds", 1e-9, "--workers", 1]
    ended = tool(*words, "--out", tmp_path / "out", "--json")
    assert "undecided" in set(pl.read_parquet(tmp_path / "out" / "places.parquet")["proof"])
    assert ended.json["stopped_by_clock"] and ended.code == 1
    assert not json.loads((tmp_path / "out" / "manifest.json").read_text())["complete"]


def test_a_place_that_was_not_settled_at_first_may_fit(
    scenario: str, tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first look stops without an answer, the second finds records with no error at all: they fit."""
    first: Callable[..., Answers] = near.one

    def stopped(*asked: Any) -> Answers:
        found = first(*asked)
        count = len(found.outcome)
        return replace(found, outcome=(Outcome.STOPPED,) * count, proof=(Proof.UNDECIDED,) * count, x=found.x * 0)

    monkeypatch.setattr(near, "one", stopped)
    words = ["reconstruct", tables, "--scenario", scenario, "--nearest", "absolute", "--workers", 1]
    said = good(tool(*words, "--out", tmp_path / "out", "--json")).json
    assert said["recounted"] >= 8


# Noisy tables of people


@pytest.fixture(scope="module")
def county(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few small blocks of two tracts of a synthetic county."""
    made = tmp_path_factory.mktemp("near-county")
    good(tool("synthesize", "--persons", 5000, "--seed", 2, "--out", made / "whole", "--quiet"))
    people = pl.read_parquet(made / "whole" / "cef.parquet").with_columns(tract=pl.col("block").str.head(11))
    sizes = people.group_by("tract", "block").len().sort("tract", "len", "block")
    some = sizes.filter(pl.col("len") >= 5).group_by("tract", maintain_order=True).head(3)
    assert some["tract"].n_unique() == 2
    people.filter(pl.col("block").is_in(some["block"].to_list())).drop("tract").write_parquet(made / "people.parquet")
    return made


@pytest.mark.parametrize("method", POWER)
def test_noisy_tables_of_people(method: str, county: Path, tmp_path: Path) -> None:
    """The error said of a block is that of its records against the numbers published; `vary` refuses these tables."""
    words = ["--scenario", "sf1-person", "--tables", "P1,P8,P12", "--quiet"]
    good(tool("tabulate", county / "people.parquet", *words, "--out", tmp_path / "exact.parquet"))
    noise = ["protect", "noise", tmp_path / "exact.parquet", *words, "--rho", 3, "--seed", 4]
    good(tool(*noise, "--out", tmp_path / "noisy.parquet"))
    near_ = ["reconstruct", tmp_path / "noisy.parquet", *words, "--nearest", method, "--workers", 1]
    good(tool(*near_, "--out", tmp_path / "out"))
    good(tool("tabulate", tmp_path / "out" / "records.parquet", *words, "--out", tmp_path / "again.parquet"))
    at = ["geoid", "variable"]
    noisy, again = (
        pl.read_parquet(tmp_path / f"{name}.parquet").filter(pl.col("level") == "block").select(*at, "value")
        for name in ("noisy", "again")
    )
    both = noisy.join(again, on=at, how="full", coalesce=True, suffix="_again").fill_null(0)
    off = (pl.col("value") - pl.col("value_again")).abs() ** POWER[method]
    wanted = dict(both.group_by("geoid").agg(off.sum()).rows())
    places = pl.read_parquet(tmp_path / "out" / "places.parquet")
    assert {row["block"]: row["error"] for row in places.iter_rows(named=True)} == wanted
    assert (places["error_floor"] <= places["error"]).all() and places["error"].min() > 0
    assert not places["recounted"].any() and set(places["method"]) == {"nearest"}
    proved = places.filter(pl.col("proof") != "undecided")
    assert proved["error"].equals(proved["error_floor"])
    said = good(tool("vary", tmp_path / "noisy.parquet", *words[:4], "--workers", 1, "--json"), 1).json
    assert len(said["refused"]) == 2


# An answer that may miss the least


def loosely(asked: Question, power: int) -> Nearest:
    return nearest(asked.compiled, asked.noisy, asked.weights, power=power, hard=asked.hard, thorough=False)


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("sort", SORTS)
def test_what_is_not_thorough_still_has_bounds_that_hold(sort: str, power: int) -> None:
    """`floor <= least <= error`, hard numbers met, and what is called proved is the least."""
    exactly = 0
    for asked in questions(sort, 60):
        found, wanted = loosely(asked, power), asked.by_hand(power)
        check(asked, found, power, wanted, "not thorough")
        exactly += wanted is not None and found.error == wanted
    assert exactly > 40


@pytest.mark.parametrize("power", [1, 2])
def test_thorough_is_never_worse(power: int) -> None:
    for asked in (*hardest(), *questions("plain", 30), *questions("far", 30)):
        loose, best = loosely(asked, power), asked.ask(power, Ladder())
        assert (loose.outcome == Outcome.INFEASIBLE) == (best.outcome == Outcome.INFEASIBLE), asked.seed
        assert loose.floor <= best.error <= loose.error, asked.seed
        assert (loose.fitted == asked.noisy)[asked.hard].all() or best.outcome == Outcome.INFEASIBLE, asked.seed


def test_some_answers_are_left_open_without_thorough() -> None:
    """Else the option would be of no use, and the tests above of little."""
    left = [asked for asked in hardest() if loosely(asked, 2).proof == Proof.UNDECIDED]
    assert left
    for asked in left:
        assert loosely(asked, 2).floor <= (asked.by_hand(2) or 0), asked.seed
