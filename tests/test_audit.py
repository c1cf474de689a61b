"""Does `glasshouse audit` keep its contract? One small county with every part, and a toy town that is quick.

Its numbers are worked out here again from the data files of its steps; what those say is the business of their tests.
"""

from __future__ import annotations

import csv
import fcntl
import hmac
import json
import os
import re
import shutil
import signal
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from dataclasses import asdict
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zipfile import ZipFile

import numpy as np
import polars as pl
import pytest

import glasshouse as gh
from glasshouse.commands.auditing import writing as audit_writing
from glasshouse.commands.auditing.config import Config, Thresholds, read_config
from glasshouse.commands.auditing.files import files_of
from glasshouse.commands.auditing.findings import Findings, find
from glasshouse.commands.auditing.steps import Ask, _reading, steps_of
from glasshouse.commands.work import compare as comparing
from glasshouse.commands.work import vary as varying
from glasshouse.engine import manifest
from glasshouse.engine.manifest import Occupied
from glasshouse.errors import GlasshouseBug, InputError
from glasshouse.report.description import Share, text
from glasshouse.report.publish import publish
from glasshouse.scenarios.load import load
from tests.running import Ended, good, started, tool
from tests.test_report_page import Reader

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
FILES = {"report.html", "report-public.html", "tables.xlsx", "numbers.csv", "summary.json", "manifest.json"}
KEYS = {
    "persons", "blocks", "share_certain", "solvar_mean", "zero_solvar_share", "precision_exposed", "precision_guess",
    "protections",
}  # fmt: skip
STEPS = [
    "synthesize", "tabulate", "check", "bounds", "reconstruct", "vary", "leaks", "reidentify", "claims", "occupancy",
    "prove", "noise", "compare",
]  # fmt: skip
TITLE = "Tiny </script><script>alert(1)</script> & {} Ångström 統計"
TINY = f"""
title = "{TITLE}"
scenario = "mini"
[synthetic]
persons = 500
subsidised = 0.25
[attackers]
leave_one_out = 5
[leaks]
blocks = 5
[claims]
scenario = "dhc-household"
pick = "median:1"
[occupancy]
scenario = "subsidised-housing"
[noise]
budget = "paper-2020"
[protections]
plan = "plan.toml"
"""
PLAN = """
title = "Two"
scenario = "{}"
seeds = [1]
attackers = ["attacker-perfect"]
[[setting]]
name = "nothing"
[[setting]]
name = "round to 3"
protect = "round"
base = 3
"""


@pytest.fixture(scope="module", autouse=True)
def _one_hash() -> Iterator[None]:
    """Runs compare their folders; sources that change meanwhile are no business of theirs."""
    known = manifest.code_hash()
    with pytest.MonkeyPatch.context() as patch:
        for module in (manifest, audit_writing):
            patch.setattr(module, "code_hash", lambda: known)
        yield


def few_tables(folder: Path) -> Path:
    """The scenario of the 2010 Census with some of its tables, as an office might write its own."""
    built_in = Path(str(manifest.resources.files("glasshouse"))) / "scenarios" / "data" / "sf1-person"
    head, tables = (built_in / "scenario.toml").read_text(encoding="utf-8").split("[table]\n")
    kept = [line for line in tables.splitlines() if line.split(" = ")[0] in ("P1", "P8", "P12", "PCT12")]
    few = "\n".join(kept).replace('"ABCDEFGHI"', '"H"').replace(', iterations = "ABCDEFGHIJKLMNO"', "")
    (folder / "mini").mkdir()
    (folder / "mini" / "scenario.toml").write_text(f"{head}[table]\n{few}\n", encoding="utf-8")
    shutil.copy(built_in / "catalogue.csv", folder / "mini")
    (folder / "plan.toml").write_text(PLAN.format(folder / "mini"))
    return folder


def audit(config: Path, out: Path, *more: object) -> Ended:
    """The command, beside its configuration: a scenario of one's own is found there only (bug 5)."""
    with chdir(config.parent):
        return tool("audit", "--config", config, "--out", out, "--workers", 1, "--quiet", *more)


@contextmanager
def once(factory: pytest.TempPathFactory, name: str) -> Iterator[tuple[Path, bool]]:
    """A folder that all workers of a session share, and whether this one is to fill it."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    ready = folder.with_suffix(".ready")
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        first = not ready.exists()
        if first:
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
        yield folder, first
        ready.touch()


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A county of 500 persons, audited with every part."""
    with once(tmp_path_factory, "tiny-audit") as (folder, first):
        if first:
            few_tables(folder)
            (folder / "tiny.toml").write_text(TINY, encoding="utf-8")
            ended = good(audit(folder / "tiny.toml", folder / "out"))
            (folder / "said.txt").write_text(ended.out)
    return folder


def found_in(config: Config, out: Path) -> Findings:
    """What the files of a finished audit say, perhaps with another configuration."""
    files = files_of(config, out)
    return find(config, files, steps_of(config, files), [])


def with_thresholds(config: Config, **limits: float) -> Config:
    return config.model_copy(update={"thresholds": Thresholds(**limits)})


def hashes(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


TIMES = ("wall_seconds", "cpu_seconds", "units_from_before", "seconds")


def without_times(told: Any) -> Any:
    if isinstance(told, dict):
        return {key: without_times(value) for key, value in told.items() if key not in TIMES}
    return [without_times(one) for one in told] if isinstance(told, list) else told


def results(folder: Path) -> dict[str, object]:
    """Every file of a folder but for what time it took, and where it lies."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.name == "timings.parquet" or not path.is_file():
            continue
        if path.name.endswith("manifest.json"):
            told = json.loads(path.read_text().replace(str(folder), "OUT").replace(folder.name, "OUT"))
            found[name] = {key: without_times(told[key]) for key in ("key", "parameters", "inputs")}
        else:
            found[name] = sha256(path.read_bytes()).hexdigest()
    return found


# The contract


def _unpictured(told: dict[str, Any]) -> set[str]:
    """The outputs of a manifest without the figures, which are more or fewer."""
    assert any(name.startswith("figures/") for name in told["outputs"])
    return {name for name in told["outputs"] if not name.startswith("figures/")}


def test_the_files_of_the_contract_are_there_and_private(tiny: Path) -> None:
    out = tiny / "out"
    assert {path.name for path in out.iterdir()} >= FILES
    assert not (out / "ledger").exists() and not list(out.rglob("ledger"))
    figures = {path.name for path in (out / "figures").iterdir()}
    assert figures and {Path(name).stem for name in figures if name.endswith(".svg")} == {
        Path(name).stem for name in figures if name.endswith(".png")
    }
    for path in (out, *out.rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o644 if path == out / "report-public.html" else 0o600), path
    for picture in (out / "figures").glob("*.png"):
        assert picture.read_bytes().startswith(b"\x89PNG")
    told = json.loads((out / "manifest.json").read_text())
    assert told["complete"] is True and _unpictured(told) == FILES - {"manifest.json"}
    for name, digest in told["outputs"].items():
        assert sha256((out / name).read_bytes()).hexdigest() == digest


def test_the_summary_says_what_the_data_files_say(tiny: Path) -> None:
    out = tiny / "out"
    said = json.loads((out / "summary.json").read_text())
    assert set(said) >= KEYS
    places = [row for row in pl.read_parquet(out / "solvar/places.parquet").to_dicts() if row["population"]]
    persons = sum(row["population"] for row in places)
    assert said["persons"] == persons and said["blocks"] == len(places)
    assert said["share_certain"] == pytest.approx(sum(row["certain"] for row in places) / persons)
    assert said["solvar_mean"] == pytest.approx(sum(row["solvar"] * row["population"] for row in places) / persons)
    one = sum(row["solvar_upper"] == 0 and row["proof"] != "undecided" for row in places)
    assert said["zero_solvar_share"] == pytest.approx(one / len(places))
    assert said["undecided"] == sum(row["proof"] == "undecided" for row in places)
    rates = pl.read_parquet(out / "risk/rates.parquet").filter(
        ~pl.col("data").is_in(["CEF", "HDF", "MDG", "PRG"]), attacker="perfect", group="nonmodal-unique", band="all"
    )
    (row,) = rates.to_dicts()
    assert said["precision_exposed"] == pytest.approx(row["confirmed"] / row["putative"])
    assert said["found_exposed"] == pytest.approx(row["confirmed"] / row["population"])
    assert said["precision_guess"] == row["baseline"]
    assert said["advantage_exposed"] == pytest.approx(said["precision_exposed"] - said["precision_guess"])
    assert said["precision_exposed_low"] <= said["precision_exposed"] <= said["precision_exposed_high"]
    front = pl.read_parquet(out / "compared/front.parquet")
    assert said["protections"] == front.select(list(said["protections"][0])).to_dicts()
    assert {one["setting"] for one in said["protections"]} == {"nothing", "round to 3"}
    claims = json.loads((out / "claims/summary.json").read_text())["by_columns"]
    fewest = min((one for one in claims if one["multiplicity"] == "singleton"), key=lambda one: one["k"])
    assert said["claims_households"] == pytest.approx(fewest["represented"] / fewest["households"])
    answers = pl.read_parquet(out / "occupancy/places.parquet")["answer"].to_list()
    assert said["detected_blocks"] == pytest.approx(answers.count("certain") / len(answers))
    noise = json.loads((out / "noise.json").read_text())
    levels = noise["plans"][0]["alone"]["levels"]
    assert said["posterior"] == pytest.approx(max(one["posterior"] for one in levels))
    assert (
        said["skipped"] == {"bounds": "every number is printed exactly", "prove": "no [proofs]"}
        and "hidden_numbers" not in said
    )
    assert (said["thresholds"], said["exceeded"]) == ({}, [])


def test_what_is_said_ends_with_the_report(tiny: Path) -> None:
    lines = (tiny / "said.txt").read_text().splitlines()
    assert lines[0].startswith(TITLE) and lines[-1].endswith("report.html")
    said = json.loads((tiny / "out" / "summary.json").read_text())
    for words, key in (("certain records", "share_certain"), ("one solution", "zero_solvar_share"),
                       ("solvar", "solvar_mean"), ("most exposed", "precision_exposed")):  # fmt: skip
        (line,) = [line for line in lines if words in line]
        assert f"{said[key]:.1%}" in line


def printed(row: dict[str, str], style: str) -> set[str]:
    """The ways in which a number of numbers.csv may be printed."""
    value = float(row["value"])
    small = f"{value:,.3g}" if abs(value) < 1000 else f"{value:,.0f}"
    return {f"{value:.1%}", f"{100 * value:+.1f} points", small, f"{value:,.0f}" if value == int(value) else small}


def test_every_number_of_the_page_is_a_line_of_numbers(tiny: Path) -> None:
    with (tiny / "out" / "numbers.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [int(row["line"]) for row in rows] == list(range(2, len(rows) + 2))
    by_line = {int(row["line"]): row for row in rows}
    shown = Reader((tiny / "out" / "report.html").read_text(encoding="utf-8")).having("data-n")
    assert len(shown) > 200 and len({one.attributes["data-n"] for one in shown}) == len(shown)
    for element in shown:
        row = by_line[int(element.attributes["data-n"])]
        if element.name == "button" and not re.match(r"[\d.]+$", row["value"]):
            assert element.text == row["value"]  # the name of a setting
            continue
        assert any(element.text.startswith(one) for one in printed(row, "")), (element.text, row)
        if row["part"]:
            assert float(row["value"]) == pytest.approx(int(row["part"]) / int(row["whole"]))


def test_every_table_is_a_sheet(tiny: Path) -> None:
    report = found_in(read_config(tiny / "tiny.toml"), tiny / "out").report
    tables = {table.name: len(table.columns) - table.keys for table in report.tables()}
    with ZipFile(BytesIO((tiny / "out" / "tables.xlsx").read_bytes())) as book:
        names = re.findall(r'<sheet name="([^"]*)"', book.read("xl/workbook.xml").decode())
    assert set(names) == {name[:31] for name in tables} | {"Read me", "Definitions"}
    with (tiny / "out" / "numbers.csv").open(newline="") as stream:
        assert {row["table"] for row in csv.DictReader(stream)} == {name for name in tables if tables[name]} | {
            "verdict"
        }


def test_a_title_is_text_wherever_it_stands(tiny: Path) -> None:
    for name in ("report.html", "report-public.html"):
        page = (tiny / "out" / name).read_text(encoding="utf-8")
        assert "<script>alert" not in page and "&lt;script&gt;alert(1)" in page
        (title,) = Reader(page).all("title")
        assert TITLE in title.text
    for picture in (tiny / "out" / "figures").glob("*.svg"):
        assert "<script" not in picture.read_text(encoding="utf-8")


def test_a_second_run_changes_nothing(tiny: Path) -> None:
    before = hashes(tiny / "out")
    again = good(audit(tiny / "tiny.toml", tiny / "out"))
    assert again.out.splitlines()[0] == f"{tiny / 'out'} is up to date"
    assert again.out.splitlines()[1:] == (tiny / "said.txt").read_text().splitlines()
    said = good(audit(tiny / "tiny.toml", tiny / "out", "--json")).json
    assert said["unchanged"] is True and said["command"] == "audit" and set(said) >= KEYS
    assert hashes(tiny / "out") == before


def test_another_configuration_is_refused_in_the_same_folder(tiny: Path) -> None:
    before = hashes(tiny / "out")
    (tiny / "other.toml").write_text(TINY.replace("Tiny", "Other"), encoding="utf-8")
    ended = audit(tiny / "other.toml", tiny / "out")
    assert ended.code == 2 and ended.err.count("\n") == 1 and "--overwrite" in ended.err and "title" in ended.err
    assert audit(tiny / "tiny.toml", tiny / "out", "--public").code == 2
    assert hashes(tiny / "out") == before


def test_status_knows_an_audit(tiny: Path) -> None:
    said = good(tool("status", tiny / "out", "--json")).json
    assert said["state"] == "done" and said["command"] == "audit"
    assert "audit: done" in good(tool("status", tiny / "out")).out
    for part in ("solvar", "rebuilt", "risk", "compared", "claims", "occupancy"):
        assert good(tool("status", tiny / "out" / part, "--json")).json["state"] == "done"


def test_no_list_of_the_report_is_empty_and_every_term_is_defined(tiny: Path) -> None:
    report = found_in(read_config(tiny / "tiny.toml"), tiny / "out").report
    names = [section.name for section in report.sections]
    assert names == ["where", "who", "why", "size", "identify", "claims", "occupancy", "noise", "protections", "rules",
                     "methods"]  # fmt: skip
    assert all(verdict.section in names for verdict in report.verdicts)
    known = {one.term for one in report.definitions}
    for table in report.tables():
        assert table.rows and all(len(row) == len(table.columns) for row in table.rows)
        assert {column.term for column in table.columns} - {""} <= known
        assert table.source
    assert {verdict.term for verdict in report.verdicts} <= known


def test_tables_under_the_report_are_those_of_the_data_files(tiny: Path) -> None:
    """Certain records by group, and by family withheld, as the files have them."""
    report = found_in(read_config(tiny / "tiny.toml"), tiny / "out").report
    tables = {table.name: table for table in report.tables()}
    groups = pl.read_parquet(tiny / "out/solvar/groups.parquet")
    for attribute in groups["attribute"].unique():
        part = groups.filter(attribute=attribute)
        shares = [row[2] for row in tables[f"who-{attribute}"].rows]
        assert sum(share.part for share in shares) == part["certain"].sum()
        assert sum(share.whole for share in shares) == part["records"].sum()
    leaks = pl.read_parquet(tiny / "out/leaks.parquet")
    assert leaks["tables"].n_unique() == leaks.height == len(tables["withheld"].rows) == 4
    places = pl.read_parquet(tiny / "out/solvar/places.parquet").filter(pl.col("population") > 0)
    for row in leaks.iter_rows(named=True):
        assert row["certain"] <= row["records"] and (row["without"] or 0) <= row["records"]
        if row["without"] is not None and not row["not_compared"]:
            assert row["without"] <= row["certain"]  # what is not told cannot make more certain
    assert leaks["records"].unique().to_list() == [places["population"].sum()]  # one tract


def test_families_that_change_nothing_are_those_that_change_nothing(tiny: Path) -> None:
    leaks = pl.read_parquet(tiny / "out/leaks.parquet").to_dicts()
    report = found_in(read_config(tiny / "tiny.toml"), tiny / "out").report
    lead = text(next(section.lead for section in report.sections if section.name == "why"))
    same = sum(row["without"] == row["certain"] and not row["not_compared"] for row in leaks)
    said = re.search(r"(\d+) of (\d+) families change nothing", lead)
    assert said is None or (int(said[1]), int(said[2])) == (same, len(leaks))
    assert said is not None or "No family" not in lead or same == len(leaks)


# Thresholds

LOWER = "solvar_mean"


def test_thresholds_are_exceeded_above_and_not_at_or_below(tiny: Path) -> None:
    config = read_config(tiny / "tiny.toml")
    values: dict[str, float] = asdict(found_in(config, tiny / "out").summary)
    keys = [key for key in Thresholds.model_fields if key != "share_given_away"]  # nothing is hidden here
    assert all(values[key] is not None for key in keys)
    at = found_in(with_thresholds(config, **{key: values[key] for key in keys}), tiny / "out")
    assert at.exceeded == () and at.report.findings == () and at.report.thresholds == len(keys)
    assert at.summary.exceeded == () and set(at.summary.thresholds) == set(keys)
    near = {key: values[key] + (1e-9 if key == LOWER else -1e-9) for key in keys}
    beyond = {key: limit for key, limit in near.items() if 0 <= limit <= 1}
    past = found_in(with_thresholds(config, **beyond), tiny / "out")
    assert len(past.exceeded) == len(past.report.findings) == len(beyond) > 6
    for key in beyond:
        (line,) = [line for line in past.exceeded if f"threshold {key} =" in line]
        value = f"{100 * values[key]:+.1f} points" if key == "advantage_exposed" else f"{values[key]:.1%}"
        assert f" is {value}, " in line and ("below" if key == LOWER else "above") in line and "\n" not in line
    assert past.summary.exceeded == past.exceeded
    safe = {key: 0.0 if key == LOWER else 1.0 for key in keys}
    assert found_in(with_thresholds(config, **safe), tiny / "out").exceeded == ()


def test_a_threshold_looks_at_whole_records(tiny: Path, tmp_path: Path) -> None:
    """Where tables tell less, less is compared, and more seems certain; that exceeds nothing."""
    config, folder = read_config(tiny / "tiny.toml"), tmp_path / "out"
    shutil.copytree(tiny / "out", folder)
    told = json.loads((folder / "solvar" / "summary.json").read_text(encoding="utf-8"))
    limit = told["headline"]["share_certain"] / 2
    assert len(found_in(with_thresholds(config, share_certain=limit), folder).exceeded) == 1
    told["headline"]["share_certain_whole"] = limit / 2
    (folder / "solvar" / "summary.json").write_text(json.dumps(told), encoding="utf-8")
    assert found_in(with_thresholds(config, share_certain=limit), folder).exceeded == ()


@pytest.mark.parametrize("key", ["precision_exposed", "found_exposed"])
def test_a_public_finding_about_few_is_hidden(tiny: Path, key: str) -> None:
    """Ten persons are most exposed, so half of them are five."""
    config = read_config(tiny / "tiny.toml")
    found = found_in(with_thresholds(config, **{key: 0.01}), tiny / "out")
    (cell,) = found.report.findings[0].cells  # type: ignore[union-attr]  # a sentence with a number
    assert isinstance(cell, Share) and cell.whole <= 10 * 2
    assert f"{getattr(found.summary, key):.1%}" not in str(publish(found.report, 10).findings)


# A toy town: quick to audit, again and again

NO_LEAKS = "[leaks]\nblocks = 0\n"


def town_records(folder: Path) -> None:
    rng = np.random.default_rng(5)
    houses = [f"9{street}{house}" for street in range(3) for house in range(6)]
    rows = [
        (house, rng.choice(["red", "green", "blue"]), str(rng.integers(0, 4)), str(rng.integers(0, 2)))
        for house in houses
        for _ in range(rng.integers(0, 7))
    ]
    named = pl.DataFrame(rows, schema=["house", "colour", "size", "owner"], orient="row")
    named.write_csv(folder / "records.csv")


@pytest.fixture(scope="session")
def town(tmp_path_factory: pytest.TempPathFactory, toy_folder: Path) -> Path:
    """The files of a town, and its audits without interruption: from its records, and from its tables alone."""
    with once(tmp_path_factory, "town-audit") as (folder, first):
        if first:
            town_records(folder)
            told = ("--scenario", toy_folder, "--out", folder / "tables.csv", "-q")
            good(tool("tabulate", folder / "records.csv", *told))
            few = 'tables = ["T1", "T2", "T6"]\n[input]'
            config = config_of(toy_folder, 'records = "records.csv"', "[leaks]\nblocks = 10\n[noise]\nrho = 0.2\n")
            (folder / "records.toml").write_text(config.replace("[input]", few))
            (folder / "tables.toml").write_text(config_of(toy_folder, 'tables = "tables.csv"', NO_LEAKS))
            good(audit(folder / "records.toml", folder / "whole"))
            good(audit(folder / "tables.toml", folder / "plain"))
    return folder


def config_of(scenario: Path, files: str, more: str = "", title: str = "A town") -> str:
    head = f'title = "{title}"\nscenario = "{scenario}"\n[input]\n{files}\n'
    return f"{head}[attackers]\nperfect = false\n{more}"


def write(town: Path, name: str, more: str, *, title: str = "A town", files: str = 'tables = "tables.csv"') -> Path:
    scenario = Path(read_config(town / "tables.toml").scenario)
    (town / name).write_text(config_of(scenario, files, NO_LEAKS + more, title), encoding="utf-8")
    return town / name


def test_an_exceeded_threshold_is_the_last_line_and_exit_code_1(town: Path, tmp_path: Path) -> None:
    config = write(town, "strict.toml", "[thresholds]\nshare_certain = 0.01\nzero_solvar_share = 1.0\n")
    for _ in range(2):  # the same again when it is up to date
        ended = good(audit(config, tmp_path / "out"), 1)
        assert re.fullmatch(r"exceeded: share of certain records is [\d.]+%, above the threshold share_certain = 0.01",
                            ended.out.splitlines()[-1])  # fmt: skip
        assert ended.out.count("exceeded:") == 1 and not ended.err
    said = good(audit(config, tmp_path / "out", "--json"), 1).json
    assert len(said["findings"]) == 1 and said["exceeded"] == said["findings"]
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "above the threshold of 1.0%" in page


@pytest.fixture
def plain(town: Path, tmp_path: Path) -> Path:
    """A copy of the audit of the town's tables."""
    shutil.copytree(town / "plain", tmp_path / "plain")
    return tmp_path / "plain"


def test_another_configuration_in_the_same_folder_needs_overwrite(town: Path, plain: Path) -> None:
    other = write(town, "other.toml", "[public]\nthreshold = 5\n", title="Another town")
    assert audit(other, plain).code == 2
    good(audit(other, plain, "--overwrite"))
    assert json.loads((plain / "summary.json").read_text())["title"] == "Another town"
    assert audit(town / "tables.toml", plain).code == 2


def test_what_was_lost_or_changed_is_made_again(town: Path, plain: Path) -> None:
    before = results(plain)
    (plain / "report.html").unlink()
    (plain / "summary.json").write_text("{}")
    (plain / "solvar" / "places.parquet").write_bytes(b"")
    good(audit(town / "tables.toml", plain))
    assert results(plain) == before


def test_figures_that_were_lost_are_made_again(town: Path, plain: Path) -> None:
    before = results(plain)
    shutil.rmtree(plain / "figures")
    good(audit(town / "tables.toml", plain))
    assert results(plain) == before


def test_public_alone_writes_no_internal_report(town: Path, plain: Path) -> None:
    ended = good(audit(town / "tables.toml", plain, "--public", "--overwrite"))
    assert ended.out.splitlines()[-1].endswith("report-public.html")
    assert not (plain / "report.html").exists() and (plain / "report-public.html").is_file()
    told = json.loads((plain / "manifest.json").read_text())
    assert set(told["outputs"]) == FILES - {"manifest.json", "report.html"}  # of so few, there is nothing to draw
    with (plain / "numbers.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert rows and {row["value"] for row in rows if row["part"] or row["column"] in ("persons", "records")} == set()


def test_a_key_of_the_office_gives_digests_that_others_cannot_try(town: Path, tmp_path: Path) -> None:
    """Somebody who has nearly all of a file could try what is missing, until its digest fits."""
    key = tmp_path / "key"
    digest = sha256((town / "tables.csv").read_bytes()).hexdigest()
    for content, told in ((b"short", "expected 32 or more"), (None, "cannot be read")):
        if content is not None:
            key.write_bytes(content)
        ended = audit(town / "tables.toml", tmp_path / "out", "--certificate-key", key if content else tmp_path / "no")
        assert ended.code == 2 and told in ended.err and not (tmp_path / "out").exists()
    key.write_bytes(bytes(range(40)))
    good(audit(town / "tables.toml", tmp_path / "out", "--certificate-key", key))
    internal, public = ((tmp_path / "out" / name).read_text("utf-8") for name in ("report.html", "report-public.html"))
    assert digest in internal and digest not in public
    assert f"HMAC-SHA-256 {hmac.new(key.read_bytes(), digest.encode(), 'sha256').hexdigest()}" in public
    told = (tmp_path / "out" / "manifest.json").read_text()
    assert key.read_bytes().hex() not in told and key.name not in json.loads(told)["inputs"]
    good(audit(town / "tables.toml", tmp_path / "out", "--certificate-key", key))
    key.write_bytes(bytes(40))
    assert audit(town / "tables.toml", tmp_path / "out", "--certificate-key", key).code == 2  # another run


def test_a_report_says_what_contradicted_and_was_left_out(town: Path, tmp_path: Path) -> None:
    """One street's numbers cannot be true: its people are in no number of the report."""
    rows = pl.read_csv(town / "tables.csv", infer_schema=False)
    spoilt = pl.col("geoid").str.starts_with("90") & (pl.col("variable") == "T1_01")
    rows.with_columns(value=pl.when(spoilt).then(pl.lit("50")).otherwise("value")).write_csv(town / "spoilt.csv")
    config = write(town, "spoilt.toml", "", files='tables = "spoilt.csv"')
    ended = tool("audit", "--config", config, "--out", tmp_path / "out", "--workers", 1)
    assert ended.code in (0, 1) and "warning: check: " in ended.err and "warning: vary: 1 units" in ended.err
    page = Reader((tmp_path / "out" / "report.html").read_text(encoding="utf-8"))
    assert any("contradict" in one.text or "cannot all be true" in one.text for one in page.all("main"))


# Where it may write


def test_a_folder_of_something_else_is_left_alone(town: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "letters.txt").write_text("dear")
    for more in ((), ("--overwrite",)):
        ended = audit(town / "tables.toml", tmp_path / "out", *more)
        assert ended.code == 2 and "not empty" in ended.err and ended.err.count("\n") == 1
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["letters.txt"]
    ended = audit(town / "tables.toml", tmp_path / "out" / "letters.txt")
    assert ended.code == 2 and (tmp_path / "out" / "letters.txt").read_text() == "dear"


def test_the_folder_of_the_inputs_is_refused_and_one_inside_is_not(town: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = audit(town / "tables.toml", town)
    assert ended.code == 2 and "is an input" in ended.err and not (town / "ledger").exists()
    stopping(monkeypatch, 0, True, KeyboardInterrupt)
    assert audit(town / "tables.toml", town / "inside").code == 130


def test_results_of_another_command_are_left_alone(town: Path, tmp_path: Path) -> None:
    shutil.copytree(town / "whole" / "solvar", tmp_path / "solvar")
    before = hashes(tmp_path)
    ended = audit(town / "tables.toml", tmp_path / "solvar")
    assert ended.code == 2 and "command vary" in ended.err
    assert hashes(tmp_path) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_refused(town: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        ended = audit(town / "tables.toml", tmp_path / "out")
    finally:
        tmp_path.chmod(0o700)
    assert ended.code == 2 and "Permission denied" in ended.err


def test_a_file_where_a_folder_should_be_is_refused(town: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    ended = audit(town / "tables.toml", tmp_path / "file" / "out")
    assert ended.code == 2 and "Traceback" not in ended.err


# Odd inputs


def test_numbers_that_all_contradict_are_refused_with_a_way_on(town: Path, tmp_path: Path) -> None:
    rows = pl.read_csv(town / "tables.csv", infer_schema=False)
    fifty = pl.when(pl.col("variable") == "T1_01").then(pl.lit("50")).otherwise("value")
    rows.with_columns(value=fifty).write_csv(town / "slips.csv")
    ended = audit(write(town, "slips.toml", "", files='tables = "slips.csv"'), tmp_path / "out")
    assert ended.code == 2 and ended.err.count("\n") == 1 and "contradict" in ended.err and "check" in ended.err
    assert not (tmp_path / "out" / "report.html").exists()


def test_tables_of_one_house_and_of_none(town: Path, tmp_path: Path) -> None:
    rows = pl.read_csv(town / "tables.csv", infer_schema=False)
    populated = rows.filter((pl.col("variable") == "T1_01") & (pl.col("value") == "1"))["geoid"]
    one = rows.filter(pl.col("geoid") == populated[0])
    one.write_csv(town / "one.csv")
    good(audit(write(town, "one.toml", "", files='tables = "one.csv"'), tmp_path / "one"))
    assert json.loads((tmp_path / "one" / "summary.json").read_text())["persons"] == 1
    public = (tmp_path / "one" / "report-public.html").read_text(encoding="utf-8")
    assert f">{populated[0]}<" not in public
    one.head(0).write_csv(town / "none.csv")
    ended = audit(write(town, "none.toml", "", files='tables = "none.csv"'), tmp_path / "none")
    assert ended.code == 2 and "none.csv" in ended.err and not (tmp_path / "none").exists()
    one.with_columns(value=pl.lit("0")).write_csv(town / "nobody.csv")
    ended = audit(write(town, "nobody.toml", "", files='tables = "nobody.csv"'), tmp_path / "nobody")
    assert ended.code == 2 and ended.err.count("\n") == 1 and "records" in ended.err


@pytest.mark.parametrize(
    ("title", "fault"),
    [
        ("L" * 201, r"is .* expected a text \(one line, at most 200 letters\)"),
        ("a\\nb", r"has the control character \\n; expected letters that can be printed"),
        ("a\\u0007b", r"has the control character \\x07"),
        ("a\\u001b[2Jb", r"has the control character \\x1b"),
        ("a\\u202eb", r"has the control character \\u202e"),
    ],
)
def test_a_title_is_one_line_that_can_be_printed(town: Path, title: str, fault: str) -> None:
    with pytest.raises(InputError, match=f"'title' {fault}") as caught:
        read_config(write(town, "titled.toml", "", title=title))
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("title", ["L" * 200, "a\u200db\u00e9=cmd|'A0 {0} {x} %s"])
def test_odd_titles_do_no_harm(town: Path, title: str) -> None:
    config = read_config(write(town, "titled.toml", "", title=title))
    found = found_in(config, town / "whole")
    from glasshouse.report.render.numbers import numbers
    from glasshouse.report.render.page import page
    from glasshouse.report.render.sheets import sheets

    for report in (found.report, publish(found.report, 10)):
        Reader(page(report))
        assert sheets(report).startswith(b"PK") and numbers(report)
    assert found.summary.title == config.title


def test_a_withheld_table_is_not_assumed_to_be_published(town: Path) -> None:
    """What is refused for that is then said to be impossible to rebuild."""
    files = 'tables = "tables.csv"\nassume_published = "T1,T2"'
    head = write(town, "assumed.toml", "", files=files).read_text()
    few = head.replace("[input]", 'tables = ["T1", "T2"]\n[input]').replace("blocks = 0", "blocks = 5")
    (town / "assumed.toml").write_text(few)
    config = read_config(town / "assumed.toml")
    files = files_of(config, town / "plain")
    for kept, assumed in ((["T1", "T2"], "T1,T2"), (["T1"], "T1"), (["T3"], "seen"), ([], "T1,T2")):
        assert _reading(config, kept)["assume_published"] == assumed


# Functions that steps call


class Asked:
    """Asks nothing of anybody, and notes what it would have asked."""

    workers, before = 1, {}

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    def crew(self) -> dict[str, Any]:
        return {}

    def __call__(self, name: str, function: Callable[..., Any], *args: object, **given: object) -> None:
        self.calls.append({"function": function.__name__, "args": args, **given})


def asked(config: Path, step: str) -> dict[str, Any]:
    chosen = read_config(config)
    found = next(one for one in steps_of(chosen, files_of(chosen, config.parent / "out")) if one.name == step)
    assert not found.without
    caller: Any = Asked()
    found.do(caller)
    (call,) = caller.calls
    return dict(call)


def test_a_scenario_of_ones_own_is_found_from_everywhere(tiny: Path, tmp_path: Path) -> None:
    out = tiny / "out"
    words = (out / "rebuilt", "--vary", out / "solvar", "--truth", out / "county/cef.parquet",
             "--published", out / "county/hdf.parquet", "--scenario", tiny / "mini",
             "--attacker", f"p={out / 'county/attacker-perfect.parquet'}")  # fmt: skip
    with chdir(tmp_path):
        good(tool("reidentify", *words, "--workers", 1, "--out", tmp_path / "out", "-q"))


def test_a_scenario_of_ones_own_is_named_to_every_command_that_needs_it(tmp_path: Path) -> None:
    own = EXAMPLES / "own-country"
    pl.read_csv(own / "records.csv").with_row_index("person_id").write_csv(tmp_path / "records.csv")
    (tmp_path / "own.toml").write_text(
        f'scenario = "{own / "scenario"}"\n[input]\nrecords = "records.csv"\n[protections]\n'
    )
    for step in ("tabulate", "reconstruct", "vary", "reidentify", "compare"):
        assert load(asked(tmp_path / "own.toml", step)["scenario"]).title == "Census of Norland"


def test_protections_are_not_compared_on_other_tables_than_those_of_the_audit(tmp_path: Path) -> None:
    (tmp_path / "some.toml").write_text(
        'scenario = "sf1-person"\ntables = ["P1", "P12"]\n[synthetic]\npersons = 300\n[protections]\n'
    )
    config = read_config(tmp_path / "some.toml")
    step = next(one for one in steps_of(config, files_of(config, tmp_path / "out")) if one.name == "compare")
    assert "only some are used" in step.without


ASK = Ask(1, None, {})


def test_a_refused_step_is_a_complaint_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^step x: .*gone\.csv.*no such file") as caught:
        ASK("x", gh.check, tmp_path / "gone.csv", scenario="sf1-person")
    assert "\n" not in str(caught.value) and not str(caught.value).startswith("glasshouse")
    with pytest.raises(InputError, match=r"^step y: unknown argument of check 'nope'"):
        ASK("y", gh.check, tmp_path / "gone.csv", scenario="sf1-person", nope=1)


def test_a_step_prints_nothing_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    found = ASK("x", gh.check, EXAMPLES / "village" / "slip.csv", scenario="sf1-person")
    assert capsys.readouterr() == ("", "")
    assert not found.summary.agrees and found.summary.findings, "what is found is no complaint"


def test_an_interrupt_of_a_step_passes_through(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("glasshouse.scenarios.load.known_scenarios", stop)
    with pytest.raises(KeyboardInterrupt):
        ASK("x", gh.check, EXAMPLES / "village" / "slip.csv", scenario="sf1-person")


def test_a_bug_in_a_unit_of_a_step_is_a_bug_of_the_audit() -> None:
    failed = SimpleNamespace(code=3, command="vary")
    with pytest.raises(GlasshouseBug, match="step x: a bug of ours in vary"):
        ASK("x", lambda: failed)  # type: ignore[arg-type, return-value]  # stands for a result


@pytest.mark.parametrize(("complaint", "times"), [(Occupied("of another run"), 2), (InputError("no such file"), 1)])
def test_only_a_folder_of_the_audit_is_overwritten(complaint: InputError, times: int) -> None:
    """A place that holds something else is written over, once; other complaints are passed on."""
    given: list[dict[str, Any]] = []

    def refuse(**keywords: Any) -> Any:
        given.append(keywords)
        raise complaint

    with pytest.raises(InputError, match="step s"):
        ASK("s", refuse, seed=1)
    assert len(given) == times and given[-1].get("overwrite", False) == (times == 2)


# Killed, and gone on with


def stopping(monkeypatch: pytest.MonkeyPatch, at: int, before: bool, how: type[BaseException]) -> list[str]:
    """Stop the audit before or after one of the functions that it calls; what was called is noted."""
    real, called = Ask.__call__, []

    def counting(self: Ask, name: str, function: Any, *args: Any, **given: Any) -> Any:
        called.append(function.__name__)
        if len(called) - 1 == at and before:
            raise how
        found = real(self, name, function, *args, **given)
        if len(called) - 1 == at:
            raise how
        return found

    monkeypatch.setattr(Ask, "__call__", counting)
    return called


def test_stopped_at_any_step_it_comes_to_the_same_end(
    town: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One audit, stopped before or after every command in turn, and gone on with each time."""
    out = tmp_path / "whole"
    for at in range(20):
        with monkeypatch.context() as patch:
            called = stopping(patch, at, at % 2 == 0, KeyboardInterrupt)
            ended = audit(town / "records.toml", out)
        if ended.code == 0:
            break
        assert ended.code == 130 and len(called) == at + 1
        assert "the same command" in ended.err
    assert called == ["tabulate", "check", "reconstruct", "vary", "vary", "vary", "vary"]
    assert results(out) == results(town / "whole")


def test_stopped_right_after_its_first_command_it_goes_on(
    town: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        with monkeypatch.context() as patch:
            stopping(patch, 0, False, KeyboardInterrupt)
            assert audit(town / "records.toml", tmp_path / "out").code == 130


def test_stopped_in_the_middle_of_a_step_it_goes_on(
    town: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, real, seen = tmp_path / "whole", varying.measure, []

    def measure(job: Any, item: Any) -> Any:
        seen.append(item.code)
        if len(seen) == 2:
            raise KeyboardInterrupt
        return real(job, item)

    monkeypatch.setattr(varying, "measure", measure)
    ended = audit(town / "records.toml", out)
    assert ended.code == 130 and "kept" in ended.err and seen == ["90", "91"]
    assert good(tool("status", out, "--json")).json["state"] == "stopped"
    assert good(tool("status", out / "solvar", "--json")).json["finished"] == 1
    good(audit(town / "records.toml", out))
    assert seen[2:4] == ["91", "92"]  # the first street is not measured again
    assert results(out) == results(town / "whole")


def test_stopped_while_the_report_is_written_it_goes_on(
    town: Path, plain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = results(plain)
    (plain / "report.html").unlink()
    for name in ("page", "sheets", "_figures"):
        with monkeypatch.context() as patch:
            patch.setattr(audit_writing, name, stop)
            assert audit(town / "tables.toml", plain).code == 130
        left = {name: content for name, content in results(plain).items() if not name.startswith("ledger/")}
        assert left == {name: content for name, content in before.items() if name != "report.html"}  # as it was
    good(audit(town / "tables.toml", plain))
    assert results(plain) == before


def test_interrupted_in_the_first_step_it_can_be_begun_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A county that is half written is not taken for files of somebody else."""
    (tmp_path / "c.toml").write_text('scenario = "sf1-person"\n[synthetic]\npersons = 300\n')
    written: list[str] = []

    def half(self: Ask, name: str, function: Any, *args: Any, out: Path, **given: Any) -> None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "cef.parquet").write_bytes(b"half")
        written.append(function.__name__)
        raise KeyboardInterrupt

    monkeypatch.setattr(Ask, "__call__", half)
    assert audit(tmp_path / "c.toml", tmp_path / "out").code == 130
    assert audit(tmp_path / "c.toml", tmp_path / "out").code == 130 and written == ["synthesize", "synthesize"]


def test_what_is_half_written_is_taken_away(town: Path, plain: Path) -> None:
    (plain / "report.html").unlink()
    for name in (".glasshouse-abcd1234", ".glasshouse-abcd1235"):
        (plain / name).write_text("half")
    good(audit(town / "tables.toml", plain))
    assert not list(plain.glob(".*"))


@pytest.mark.slow
def test_stopped_at_any_step_of_a_county_it_comes_to_the_same_end(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    for at in range(40):
        with monkeypatch.context() as patch:
            called = stopping(patch, at, at % 2 == 0, KeyboardInterrupt)
            ended = audit(tiny / "tiny.toml", out)
        if ended.code == 0:
            break
        assert ended.code == 130, ended
    assert called[-1] == "compare"
    assert results(out) == results(tiny / "out")


@pytest.mark.slow
def test_stopped_in_the_middle_of_a_comparison_it_goes_on(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, real, seen = tmp_path / "out", comparing.compare_one, []

    def stop(job: Any, run: Any) -> Any:
        seen.append(run.code)
        if len(seen) == 2:
            raise KeyboardInterrupt
        return real(job, run)

    shutil.copytree(tiny / "out", out)
    shutil.rmtree(out / "compared")
    (out / "report.html").unlink()
    with monkeypatch.context() as patch:
        patch.setattr(comparing, "compare_one", stop)
        assert audit(tiny / "tiny.toml", out).code == 130
    good(audit(tiny / "tiny.toml", out))
    assert results(out) == results(tiny / "out")


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_killed_at_a_moment_of_chance_it_goes_on(tiny: Path, tmp_path: Path, seed: int) -> None:
    out, rng = tmp_path / "out", np.random.default_rng([seed, time.time_ns()])
    words = ("-m", "glasshouse", "audit", "--config", tiny / "tiny.toml", "--out", out, "--quiet", "--workers", 2)
    ended: int | None = None
    for _ in range(60):
        with chdir(tiny), started(*words) as process:  # bug 5
            try:
                ended = process.wait(float(rng.uniform(3, 30)))
            except Exception:
                os.killpg(process.pid, signal.SIGKILL)
        if ended is not None:
            break
    assert ended == 0
    assert results(out) == results(tiny / "out")
