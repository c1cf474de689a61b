"""Does an audit of tables with hidden numbers tell which of them are given away, and nothing of it in public?"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import polars as pl
import pytest

from glasshouse.commands.auditing.config import read_config
from glasshouse.commands.auditing.files import files_of
from glasshouse.commands.auditing.steps import steps_of
from tests.running import good, tool
from tests.test_audit import audit
from tests.test_audit_public import all_of

COUNTRY = Path(__file__).parents[1] / "examples" / "own-country"
NORLAND = str(COUNTRY / "scenario")
CONFIG = f"""
title = "Norland"
scenario = "{NORLAND}"
tables = ["W1", "W2", "T1"]
[input]
tables = "hidden.csv"
[leaks]
blocks = 0
"""
LIMIT = "[thresholds]\nshare_given_away = {}\n"


@pytest.fixture(scope="module")
def norland(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Norland's tables with counts of 1 and 2 hidden, audited with a limit that they exceed."""
    folder = tmp_path_factory.mktemp("norland")
    good(tool("tabulate", COUNTRY / "records.csv", "--scenario", NORLAND, "--subtotals", "--out", folder / "true.csv"))
    given = [folder / "true.csv", "--scenario", NORLAND, "--out", folder / "hidden.csv"]
    good(tool("protect", "suppress", "--below", 3, *given))
    (folder / "mine.toml").write_text(CONFIG + LIMIT.format(0.1))
    ended = good(audit(folder / "mine.toml", folder / "out"), code=1)
    (folder / "said.txt").write_text(ended.out)
    return folder


def without(folder: Path, name: str, text: str) -> str:
    """Why the step is left out of an audit; nothing, if it is not."""
    (folder / name).write_text(text)
    config = read_config(folder / name)
    (step,) = [step for step in steps_of(config, files_of(config, folder / "out")) if step.name == "bounds"]
    return step.without


def test_what_is_given_away_is_told_and_a_threshold_looks_at_it(norland: Path) -> None:
    said = json.loads((norland / "out" / "summary.json").read_text())
    found = json.loads((norland / "out" / "bounds" / "summary.json").read_text())
    assert said["hidden_numbers"] == found["hidden"] > 300 and said["given_away"] == found["given_away"]
    assert said["share_given_away"] == found["share_given_away"] > 0.5 and "bounds" not in said["skipped"]
    lines = (norland / "said.txt").read_text().splitlines()
    assert re.fullmatch(
        r"exceeded: share of the hidden numbers that other numbers give away is [\d.]+%, above the threshold "
        r"share_given_away = 0.1", lines[-1],
    )  # fmt: skip
    told = f"{found['share_given_away']:.1%} (of {found['hidden']} that are not printed exactly)"
    assert any("hidden numbers given away" in line and told in line for line in lines)


def test_the_report_has_the_tables_as_printed_and_the_public_one_nothing_hidden(norland: Path) -> None:
    out = norland / "out"
    internal, public = (all_of((out / name).read_text("utf-8")) for name in ("report.html", "report-public.html"))
    assert "Hidden numbers that are given away" in internal and "The tables as printed" in internal
    assert "Hidden numbers that are given away" in public and "The tables as printed" not in public
    found = pl.read_parquet(out / "bounds" / "bounds.parquet")
    places, variables = (set(found[name]) for name in ("geoid", "variable"))
    assert any(place in internal for place in places) and any(variable in internal for variable in variables)
    assert not [place for place in places if place in public]
    assert not [variable for variable in variables if variable in public]
    said = json.loads((out / "summary.json").read_text())
    assert not re.search(rf"\b{said['given_away']}\b", public)  # counts are told in steps, shares too
    assert f"{said['share_given_away']:.1%}" not in public
    assert not list((out / "figures").glob("sheet-*"))


def test_a_limit_that_is_not_exceeded_ends_well(norland: Path, tmp_path: Path) -> None:
    shutil.copy(norland / "hidden.csv", tmp_path)
    (tmp_path / "mine.toml").write_text(CONFIG + LIMIT.format(1))
    said = good(audit(tmp_path / "mine.toml", tmp_path / "out", "--json")).json
    assert said["thresholds"] == {"share_given_away": 1.0} and said["exceeded"] == []


def test_it_is_left_out_where_every_number_is_printed_exactly(norland: Path, tmp_path: Path) -> None:
    shutil.copytree(norland, tmp_path, dirs_exist_ok=True)
    exactly = "every number is printed exactly"
    assert without(tmp_path, "a.toml", CONFIG) == ""
    assert without(tmp_path, "b.toml", CONFIG.replace("hidden.csv", "true.csv")) == exactly
    records = f'records = "{COUNTRY / "records.csv"}"'
    assert without(tmp_path, "c.toml", CONFIG.replace('tables = "hidden.csv"', records)) == exactly
    frame = pl.read_csv(tmp_path / "hidden.csv", infer_schema=False)
    some = pl.col("table") == "W1"
    exact = frame.with_columns(upper=pl.when(some).then("upper").otherwise("lower"))
    exact.write_csv(tmp_path / "some.csv")
    assert without(tmp_path, "d.toml", CONFIG.replace("hidden.csv", "some.csv")) == ""
    of_others = CONFIG.replace("hidden.csv", "some.csv").replace('"W1", ', "")
    assert without(tmp_path, "e.toml", of_others) == exactly  # the tables used hide nothing
    absent = CONFIG.replace("hidden.csv", "true.csv") + '[input]\nmissing = "hidden"\n'
    absent = absent.replace("[input]\nmissing", "missing", 1).replace("[leaks]\nblocks = 0\n", "")
    assert without(tmp_path, "f.toml", absent) == ""  # what has no row is hidden
    (tmp_path / "g.toml").write_text(of_others + LIMIT.format(0.1))
    ended = audit(tmp_path / "g.toml", tmp_path / "other")
    assert ended.code == 2 and "thresholds.share_given_away is set, but the step" in ended.err and exactly in ended.err
