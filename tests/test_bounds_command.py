"""Does `glasshouse bounds` keep its promises? The truth is inside; files, exit codes, the same bytes, clear errors."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import glasshouse as gh
from glasshouse.assess.hidden import VERDICTS, Rule, alike, present
from glasshouse.commands.work.bounds import described
from glasshouse.engine import unit
from glasshouse.errors import InputError
from glasshouse.model.records import UNLIMITED
from glasshouse.scenarios.counting import read_count
from glasshouse.scenarios.load import Scenario, known_scenarios, load
from tests.clusters import cluster, needs_dask
from tests.running import Ended, good, tool, without
from tests.test_report_page import Reader

COUNTRY = Path(__file__).parents[1] / "examples" / "own-country"
NORLAND = str(COUNTRY / "scenario")
COLUMNS = [
    "level", "geoid", "table", "variable", "description", "lower", "upper", "low", "high", "met_low", "met_high",
    "verdict", "present", "alike", "proof", "scope",
]  # fmt: skip
REASONS = [
    "level", "geoid", "variable", "number", "reason_level", "reason_geoid", "reason_variable", "reason_description",
    "lower", "upper", "minimal", "proof",
]  # fmt: skip
KEY = ["level", "geoid", "variable"]
FILES = {
    "bounds.parquet", "conflicts.parquet", "summary.json", "bounds-by-table.svg", "printed.parquet", "bounds.html",
    "bounds-public.html",
}  # fmt: skip
TOWN = ["--tables", "W1,W2,T1"]  # quick


@pytest.fixture(scope="module")
def country(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables of an invented country, with subtotals and regions: true, small counts hidden, and rounded."""
    folder = tmp_path_factory.mktemp("norland")
    words = ["--scenario", NORLAND, "--subtotals", "--levels", "region"]
    good(tool("tabulate", COUNTRY / "records.csv", *words, "--out", folder / "true.csv"))
    given = [folder / "true.csv", "--scenario", NORLAND, "--out"]
    good(tool("protect", "suppress", "--below", 3, *given, folder / "hidden.csv"))
    good(tool("protect", "round", "--base", 3, *given, folder / "rounded.csv"))
    return folder


def bounds(tables: Path, *more: object) -> Ended:
    usual = ["--scenario", NORLAND, "--workers", 1, *TOWN]
    return tool("bounds", tables, *without(usual, more), *more)


def refused(ended: Ended, pattern: str) -> None:
    assert ended.code == 2 and "Traceback" not in ended.err, ended
    assert re.search(pattern, ended.err), ended.err


def truth(country: Path) -> pl.DataFrame:
    frame = pl.read_csv(country / "true.csv", infer_schema=False)
    return frame.select(*KEY, pl.col("value").cast(pl.Int64))


def data(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name in FILES | {"reasons.parquet"}}


# What is found


@pytest.mark.parametrize("protected", ["hidden", "rounded"])
@pytest.mark.parametrize("numbers", ["hidden", "all"])
def test_the_truth_is_inside_and_what_is_met_too(country: Path, tmp_path: Path, protected: str, numbers: str) -> None:
    out = tmp_path / "out"
    count = "sex=woman;age=0..6;language=Hill|Coastal"
    good(bounds(country / f"{protected}.csv", "--numbers", numbers, "--count", count, "--out", out))
    found = pl.read_parquet(out / "bounds.parquet")
    assert found.columns == COLUMNS
    assert set(found["level"]) == {"region", "town", "ward"}
    assert found["level"].unique(maintain_order=True).to_list() == ["region", "town", "ward"]
    for _, part in found.group_by("level"):
        assert part["geoid"].is_sorted()
    joined = found.filter(pl.col("table") != "asked").join(truth(country), on=KEY, how="left")
    value = joined["value"].fill_null(0)
    assert (value >= joined["low"]).all()
    assert (value <= joined["high"].fill_null(UNLIMITED)).all()
    assert (found["met_low"] >= found["low"]).all()
    assert (found["met_high"] <= found["high"].fill_null(UNLIMITED)).all()
    proved = found.filter(pl.col("proof") != "undecided")
    assert (proved["met_low"] == proved["low"]).all() and (proved["met_high"] == proved["high"]).all()
    printed = found.drop_nulls("lower")
    assert (printed["low"] >= printed["lower"]).all() and (
        printed["high"] <= printed["upper"].fill_null(UNLIMITED)
    ).all()
    assert (found["verdict"] == "exact").to_list() == (found["low"] == found["high"]).fill_null(False).to_list()
    asked = found.filter(pl.col("table") == "asked")
    assert set(asked["variable"]) == {count} and asked["lower"].null_count() == asked.height == 36 + 3 + 2
    people = pl.read_csv(COUNTRY / "records.csv", infer_schema=False).filter(
        pl.col("sex") == "w", pl.col("age").cast(pl.Int64) <= 6, pl.col("language").is_in(["Hill", "Coastal"])
    )
    for level, length in {"region": 2, "town": 4, "ward": 7}.items():
        true = dict(people.group_by(pl.col("ward").str.head(length)).len().iter_rows())
        for geoid, low, high in asked.filter(pl.col("level") == level).select("geoid", "low", "high").iter_rows():
            assert low <= true.get(geoid, 0) <= (UNLIMITED if high is None else high)
    if numbers == "hidden":
        shown = found.filter(pl.col("table") != "asked")
        assert (shown["lower"] < shown["upper"]).all()


def test_suppressing_small_counts_alone_gives_most_of_them_away(country: Path, tmp_path: Path) -> None:
    said = good(bounds(country / "hidden.csv", "--out", tmp_path / "out", "--json")).json
    found = pl.read_parquet(tmp_path / "out" / "bounds.parquet")
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    verdicts = dict(found["verdict"].value_counts().iter_rows())
    assert summary["hidden"] == summary["numbers"] == found.height
    assert {name: summary[name] for name in VERDICTS} == {name: verdicts.get(name, 0) for name in VERDICTS}
    assert summary["narrow_as_printed"] == summary["narrow"]  # 1 or 2 is as narrow as the rule
    assert summary["share_given_away"] == summary["exact"] / summary["hidden"] > 0.5
    assert summary["undecided"] == summary["contradictions"] == 0
    assert sum(row["hidden"] for row in summary["by_table"]) == summary["hidden"]
    assert [row["level"] for row in summary["by_level"]] == ["region", "town", "ward"]
    assert summary["by_scope"] == dict(sorted(found["scope"].value_counts().iter_rows()))
    assert {name: said[name] for name in summary} == summary
    assert found.filter(pl.col("level") == "region")["scope"].unique().to_list() == ["region"]
    assert any("a region is larger than a town" in note for note in said["notes"])


def test_a_group_that_is_all_alike_is_told(tmp_path: Path, toy_folder: Path) -> None:
    """One to three owners, none of them of blue: all are warm, though nobody knows how many they are."""
    rows = {"T2_02": (7, 7), "T2_03": (1, 3), "T2_04": (0, 9), "T2_05": (0, 5), "T2_06": (0, 5), "T2_07": (0, 0)}
    lines = ["level,geoid,variable,lower,upper", *(f"house,111,{name},{a},{b}" for name, (a, b) in rows.items())]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    found = gh.bounds(tmp_path / "t.csv", scenario=str(toy_folder), width=2, workers=1)
    assert found.bounds.select("variable", "low", "high", "present", "alike").rows() == [
        ("T2_03", 1, 3, False, False), ("T2_04", 1, 3, True, True), ("T2_05", 0, 3, False, False),
        ("T2_06", 0, 3, False, False),
    ]  # fmt: skip
    summary = found.summary
    assert (summary.alike, summary.present, summary.narrow, summary.narrow_as_printed) == (1, 1, 2, 1)
    assert summary.share_given_away == 1 / 4


def test_the_numbers_that_give_one_away_are_enough_and_each_is_needed(country: Path, tmp_path: Path) -> None:
    """Numbers that are no reason are made unknown: the bounds stay. Without any one of the reasons, they do not."""
    out = tmp_path / "out"
    good(bounds(country / "hidden.csv", "--tables", "W1,W2", "--why", 2, "--out", out))
    reasons, found = pl.read_parquet(out / "reasons.parquet"), pl.read_parquet(out / "bounds.parquet")
    assert reasons.columns == REASONS
    summary = json.loads((out / "summary.json").read_text())
    explained = reasons.group_by(KEY, maintain_order=True)
    assert summary["explained"] == len(list(explained)) >= 3
    assert reasons["minimal"].all() and (reasons["proof"] != "undecided").all()
    everything = pl.read_csv(country / "hidden.csv", infer_schema=False).filter(pl.col("table").is_in(["W1", "W2"]))
    (level, geoid, variable), some = next(
        (key, part) for key, part in explained if key[0] == "ward" and 1 < part.height < 9
    )
    assert some["number"].to_list() == list(range(1, some.height + 1))
    here = everything.filter(pl.col("level") == level, pl.col("geoid") == geoid)
    before = found.filter(pl.col("level") == level, pl.col("geoid") == geoid, pl.col("variable") == variable)
    assert before["verdict"].item() == "exact"

    def known_from(kept: set[str]) -> tuple[int, int | None]:
        believed = pl.col("variable").is_in(list(kept))
        frame = here.with_columns(
            lower=pl.when(believed).then("lower").otherwise(pl.lit("0")),
            upper=pl.when(believed).then("upper").otherwise(pl.lit("")),
        )
        path = tmp_path / "some.csv"
        frame.write_csv(path)
        told = gh.bounds(path, scenario=NORLAND, only=["W1", "W2"], numbers="all", workers=1).bounds
        low, high = told.filter(pl.col("variable") == variable).select("low", "high").row(0)
        return low, high

    needed = set(some["reason_variable"])
    exact = (before["low"].item(), before["high"].item())
    assert known_from(needed) == exact
    for one in needed:
        assert known_from(needed - {one}) != exact


@pytest.mark.slow
def test_reasons_among_numbers_without_a_limit_come_to_an_end(tmp_path: Path) -> None:
    """Without totals, over all levels: a number that is not believed has no limit, and HiGHS did not come back."""
    words = ["--scenario", NORLAND, "--out"]
    good(tool("tabulate", COUNTRY / "records.csv", *words, tmp_path / "true.csv"))
    (tmp_path / "also.csv").write_text("level,geoid,variable\nward,NO01W01,W1_004\n")
    given = [tmp_path / "true.csv", "--below", 3, "--also", tmp_path / "also.csv", *words]
    good(tool("protect", "suppress", *given, tmp_path / "hidden.csv"))
    found = gh.bounds(tmp_path / "hidden.csv", scenario=NORLAND, units="NO01", why=2, workers=1)
    assert found.summary.explained == 2 and found.reasons["minimal"].all()


# Files, exit codes, the same bytes


def test_files_are_private_and_the_same_for_any_number_of_workers(country: Path, tmp_path: Path) -> None:
    for workers in (1, 2):
        good(bounds(country / "rounded.csv", "--why", 1, "--workers", workers, "--out", tmp_path / str(workers)))
    assert data(tmp_path / "1") == data(tmp_path / "2") and set(data(tmp_path / "1")) == FILES | {"reasons.parquet"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "1").iterdir()} == {0o600}
    again = good(bounds(country / "rounded.csv", "--why", 1, "--out", tmp_path / "1", "--json")).json
    assert again["unchanged"] and again["by_scope"]


@needs_dask
@pytest.mark.slow
def test_a_dask_cluster_gives_the_same_bytes(country: Path, tmp_path: Path) -> None:
    good(bounds(country / "hidden.csv", "--why", 1, "--out", tmp_path / "here"))
    words = [country / "hidden.csv", "--scenario", NORLAND, *TOWN, "--why", 1]
    with cluster(tmp_path, 2) as found:
        good(tool("bounds", *words, "--executor", found.address, "--out", tmp_path / "there"))
    assert data(tmp_path / "there") == data(tmp_path / "here")


def test_a_killed_run_goes_on_and_gives_the_same_bytes(
    country: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good(bounds(country / "hidden.csv", "--out", tmp_path / "whole"))
    done, calls = unit.do, []

    def dying(job: object, item: object) -> object:
        calls.append(item)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return done(job, item)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr("glasshouse.engine.runner.do", dying)
        assert bounds(country / "hidden.csv", "--out", tmp_path / "out").code == 130
    said = good(bounds(country / "hidden.csv", "--out", tmp_path / "out", "--json")).json
    assert said["units_from_before"] == 2 and said["units"] == 4  # three towns, and what is larger
    assert data(tmp_path / "out") == data(tmp_path / "whole")


def test_the_exit_code_tells_of_too_much(country: Path, tmp_path: Path) -> None:
    ended = good(bounds(country / "hidden.csv", "--most", 0.05, "--out", tmp_path / "a"), code=1)
    assert re.search(
        r"\d\d\.\d\d% of the hidden numbers are given away; the limit \(--most\) is 5.00% of them", ended.out
    )
    assert bounds(country / "hidden.csv", "--most", 0.05, "--out", tmp_path / "a", "--json").json["findings"]
    good(bounds(country / "hidden.csv", "--most", 1, "--out", tmp_path / "b"))


def test_numbers_that_contradict_are_named_and_the_rest_is_done(country: Path, tmp_path: Path) -> None:
    lines = (country / "hidden.csv").read_text().splitlines()
    place = next(line for line in lines if ",W1,W1_001," in line and line.startswith("ward"))
    level, geoid, table, variable, lower, upper = place.split(",")
    path = tmp_path / "wrong.csv"
    path.write_text(
        "\n".join([*(line for line in lines if line != place), f"{level},{geoid},{table},{variable},900,900"])
    )
    ended = good(bounds(path, "--out", tmp_path / "out"), code=1)
    assert f"ward {geoid}: " in ended.out and "The numbers of 1 place cannot all be true" in ended.out
    conflicts = pl.read_parquet(tmp_path / "out" / "conflicts.parquet")
    assert conflicts.columns == ["level", "geoid", "statement", "nearest", "nearest_proof", "changes"]
    assert conflicts.select("level", "geoid").rows() == [("ward", geoid)] and "900" in conflicts["statement"].item()
    nearest = conflicts["nearest"].item()  # the total alone is wrong, and nothing nearer fits than what was right
    assert int(lower) <= 900 - nearest <= int(upper) and conflicts["nearest_proof"].item() == "exact"
    assert conflicts["changes"].item() == f"{variable}: printed 900, nearest {900 - nearest}"
    assert f"its numbers must change by {nearest} at least in all, as here: {variable}: printed" in ended.out
    assert "The numbers of one place cannot all be true" in (tmp_path / "out" / "bounds.html").read_text()
    found = pl.read_parquet(tmp_path / "out" / "bounds.parquet")
    assert found.filter(pl.col("geoid") == geoid).is_empty()
    wards = found.filter(pl.col("level") == "ward")
    assert wards["geoid"].n_unique() > 20
    assert set(wards.filter(pl.col("geoid").str.starts_with(geoid[:4]))["scope"]) == {"ward"}  # of that town
    assert int(lower) < 900


def test_levels_that_contradict_each_other_are_named(country: Path, tmp_path: Path) -> None:
    """A town that has more people than its wards can have: its own numbers agree, those of each ward too."""
    frame = pl.read_csv(country / "hidden.csv", infer_schema=False)
    town = (pl.col("level") == "town") & (pl.col("geoid") == "NO02")
    more = pl.when(town).then(pl.col("upper").cast(pl.Int64) * 50).otherwise(pl.col("upper").cast(pl.Int64))
    twice = pl.when(town).then(pl.col("lower").cast(pl.Int64) * 50).otherwise(pl.col("lower").cast(pl.Int64))
    frame.with_columns(lower=twice, upper=more).write_csv(tmp_path / "wrong.csv")
    good(bounds(tmp_path / "wrong.csv", "--out", tmp_path / "out"), code=1)
    conflicts = pl.read_parquet(tmp_path / "out" / "conflicts.parquet")
    assert ("town", "NO02") in conflicts.select("level", "geoid").rows()
    assert conflicts.select("nearest", "nearest_proof", "changes").null_count().row(0) == (conflicts.height,) * 3
    found = pl.read_parquet(tmp_path / "out" / "bounds.parquet")
    assert found.filter(pl.col("level") == "town", pl.col("geoid") == "NO02").is_empty()
    assert found.filter(pl.col("level") == "ward", pl.col("geoid").str.starts_with("NO02"))[
        "scope"
    ].unique().to_list() == ["ward"]


# The pages


def text_of(path: Path) -> str:
    return Reader(path.read_text(encoding="utf-8")).all("main")[0].text


def test_the_page_prints_the_tables_and_the_public_one_names_nothing(country: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    good(bounds(country / "hidden.csv", "--why", 1, "--out", out))
    summary, found = json.loads((out / "summary.json").read_text()), pl.read_parquet(out / "bounds.parquet")
    told = text_of(out / "bounds.html")
    assert f"Of the {summary['hidden']} numbers" in told and f"{summary['share_given_away']:.1%}" in told
    assert f"{summary['given_away']} of {summary['hidden']}" in told  # as the summary counts
    printed = pl.read_parquet(out / "printed.parquet")
    true = printed.join(truth(country), on=KEY, how="left").with_columns(pl.col("value").fill_null(0))
    assert (true["lower"] <= true["value"]).all() and (true["value"] <= true["upper"]).all()
    assert 0 < printed.select("level", "geoid").n_unique() <= 4 * 6
    assert "not looked at" not in told  # every number of those places is there: hidden, or as it was printed
    public = text_of(out / "bounds-public.html")
    for place in found["geoid"].unique():
        assert place not in public
    for variable in found["variable"].unique():
        assert variable not in public
    manifest = json.loads((out / "manifest.json").read_text())
    assert set(manifest["outputs"]) == FILES | {"reasons.parquet"}


def test_a_page_that_would_give_a_number_away_is_not_written(
    country: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("glasshouse.report.bounds.given_away", lambda *_: ("bounds-by-table",))
    ended = good(bounds(country / "hidden.csv", "--out", tmp_path / "out"))
    assert "bounds-public.html was not written" in ended.out
    assert not (tmp_path / "out" / "bounds-public.html").exists() and (tmp_path / "out" / "bounds.html").exists()


def test_a_hidden_total_without_a_limit_has_no_most(toy_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("level,geoid,variable,lower,upper\nhouse,111,T1_01,3,\nhouse,112,T1_01,4,5\n")
    found = gh.bounds(tmp_path / "t.csv", scenario=str(toy_folder), workers=1)
    assert found.bounds.select("low", "high", "verdict").rows() == [(3, None, "wide"), (4, 5, "narrow")]
    assert found.bounds.select("upper", "met_high").rows() == [(None, None), (5, 5)]


def test_only_some_levels_and_units(country: Path, tmp_path: Path) -> None:
    whole = gh.bounds(country / "hidden.csv", scenario=NORLAND, only=["W1", "W2", "T1"], workers=1).bounds
    some = gh.bounds(
        country / "hidden.csv", scenario=NORLAND, only=["W1", "W2", "T1"], level="ward", units="NO02", workers=1
    )
    ours = (pl.col("level") == "ward") & pl.col("geoid").str.starts_with("NO02")
    assert some.bounds.equals(whole.filter(ours))
    refused(
        bounds(country / "hidden.csv", "--level", "street", "--json"),
        "unknown level 'street'; known: region, town, ward",
    )
    towns = pl.read_csv(country / "hidden.csv", infer_schema=False).filter(pl.col("level") == "town")
    towns.write_csv(tmp_path / "towns.csv")
    refused(
        bounds(tmp_path / "towns.csv", "--level", "ward", "--json"),
        "no number of a ward in towns.csv; its levels: town",
    )
    assert gh.bounds(tmp_path / "towns.csv", scenario=NORLAND, workers=1).summary.level == "ward"  # none around


def test_a_frame_will_do_and_a_result_shows_itself(country: Path) -> None:
    frame = pl.read_csv(country / "hidden.csv", schema_overrides={"geoid": pl.String})
    found = gh.bounds(frame, scenario=NORLAND, only=["W1", "W2"], most=0.1, workers=1)
    assert found.code == 1 and found.out is None and found.summary.most == 0.1
    assert found.summary.exact == found.bounds.filter(pl.col("verdict") == "exact").height
    assert found.conflicts.is_empty()
    assert found.figure().svg().startswith("<svg")
    assert "The tables as printed" in found.page() and "The tables as printed" not in found.page(public=True)
    assert "hidden numbers" in repr(found) and "<table" in found._repr_html_()


def test_exact_tables_hide_nothing(country: Path, tmp_path: Path) -> None:
    ended = good(bounds(country / "true.csv", "--out", tmp_path / "out"))
    assert ended.out.startswith("No number is hidden: every number is printed exactly (36 wards, 3 towns, 2 regions)")
    assert pl.read_parquet(tmp_path / "out" / "bounds.parquet").is_empty()
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["share_given_away"] is None


# What is asked, and what is refused


@pytest.mark.parametrize(
    ("words", "pattern"),
    [
        (["--width", 0], "--width 0: .* a rule of width 0 names nothing else; expected 1 or more"),
        (["--percent", 101], "--percent 101: expected a number from 0 to 100"),
        (["--most", 1.5], "'--most': Input should be less than or equal to 1"),
        (["--numbers", "some"], "some"),
        (["--count", "gender=woman"], "unknown attribute 'gender'; known: age, language, sex, work"),
        (["--count", "sex=female"], "unknown level of sex 'female'; known: man, woman"),
        (["--count", "age=6..0"], "6 stands after 0; expected the first level first"),
        (["--count", "age=0..200"], "unknown level of age '200'"),
        (["--count", "woman"], "found 'woman'; expected ATTRIBUTE=LEVEL"),
        (["--count", "sex=man;sex=woman"], "sex is named twice; put its levels together"),
        (["--count", "sex=man", "--count", "sex=man;age=0..99"], "this count is asked for twice"),
        (["--units", "NO99"], "no number of town NO99"),
    ],
)
def test_bad_input_is_named(country: Path, words: list[object], pattern: str) -> None:
    refused(bounds(country / "hidden.csv", *words, "--json"), pattern)


def test_counts_are_read(toy: Scenario) -> None:
    schema = toy.schema
    assert read_count(schema, " colour = red | blue ; size = 1..3 ") == schema.where(
        {"colour": [0, 2], "size": [1, 2, 3]}
    )
    assert read_count(schema, "colour=red..blue") == schema.where({})
    with pytest.raises(InputError, match="found ''"):
        read_count(schema, "")


def every_line() -> Iterator[tuple[Scenario, str]]:
    for name in (*known_scenarios(), NORLAND):
        scenario = load(name)
        for table in scenario.tables:
            for _, one in described(scenario, table):
                yield scenario, one.description


def test_every_line_of_every_scenario_has_words() -> None:
    assert all(words and not words.startswith(":") for _, words in every_line())


def test_the_rule() -> None:
    low, high = np.array([3, 3, 0, 97, 50, 7]), np.array([3, 4, 2, 100, 100, UNLIMITED])
    assert [VERDICTS[at] for at in Rule().verdicts(low, high)] == ["exact", "narrow", "wide", "wide", "wide", "wide"]
    assert [VERDICTS[at] for at in Rule(1, 3.0).verdicts(low, high)][3:] == ["narrow", "wide", "wide"]
    assert [VERDICTS[at] for at in Rule(2).verdicts(low, high)][:3] == ["exact", "narrow", "narrow"]
    assert present(np.array([0, 0, 1]), np.array([1, 0, 1])).tolist() == [True, False, False]
    assert alike(np.array([1, 0, 2]), np.array([0, 0, 1])).tolist() == [True, False, False]
