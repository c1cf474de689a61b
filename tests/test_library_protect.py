"""Can a notebook protect and compare? Functions, results and the register, as a user of the library meets them."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from importlib import import_module, resources
from pathlib import Path

import polars as pl
import pytest

import glasshouse as gh
from glasshouse.commands.protect.register import Protection, add, protection, protections
from glasshouse.errors import InputError
from tests.running import good, tool

RECORD_KEYWORDS = {"swap": {"rate": 0.2}, "relocate": {"by": ("hispanic", "white")}, "topdown": {"rho": 50}}
TABLE_KEYWORDS = {"noise": {"rho": 0.5}, "round": {"base": 5}, "suppress": {"below": 3}, "cellkey": {"seed": 4}}


@pytest.fixture(scope="module")
def county(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("protect") / "county"
    good(tool("synthesize", "--persons", 600, "--seed", 3, "--out", folder, "--quiet"))
    return folder


@pytest.fixture(scope="module")
def people(county: Path) -> pl.DataFrame:
    return pl.read_parquet(county / "cef.parquet")


@pytest.fixture(scope="module")
def tables(people: pl.DataFrame) -> pl.DataFrame:
    return gh.tabulate(people, scenario="pl94", only=["P1", "P5"]).tables


@pytest.fixture
def emptied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temporary folder of our own, in which nothing may be left."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert not list(folder.iterdir())


def test_every_protection_has_a_case_here() -> None:
    assert set(RECORD_KEYWORDS) == {one.name for one in protections("records")}
    assert set(TABLE_KEYWORDS) == {one.name for one in protections("tables")}


@pytest.mark.parametrize("name", RECORD_KEYWORDS)
def test_records_from_frame_to_frame(name: str, people: pl.DataFrame, county: Path, emptied: Path) -> None:
    """The same as the command line writes, with nothing left on disk."""
    made = getattr(gh.protect, name)(people, **RECORD_KEYWORDS[name])
    out = emptied.parent / "out.parquet"
    asked = [f"--{key}={','.join(value) if isinstance(value, tuple) else value}"
             for key, value in RECORD_KEYWORDS[name].items()]  # fmt: skip
    said = good(tool("protect", name, county / "cef.parquet", *asked, "--out", out, "--json")).json
    assert made.records.equals(pl.read_parquet(out)) and made.out is None and made.command == f"protect {name}"
    assert made.summary.__dataclass_fields__.keys() - {"redrawn_from"} <= said.keys() | made_unsaid(made.summary)
    assert made.records.height and "<table" in made._repr_html_()
    written = made.write(emptied.parent / "mine.parquet")
    assert written.read_bytes() == out.read_bytes()


def made_unsaid(summary: object) -> set[str]:
    """Fields that have nothing to say."""
    return {name for name in vars(summary) if getattr(summary, name) is None}


@pytest.mark.parametrize("name", TABLE_KEYWORDS)
def test_tables_from_frame_to_frame_and_on_to_an_attack(name: str, tables: pl.DataFrame, emptied: Path) -> None:
    made = getattr(gh.protect, name)(tables.to_arrow(), scenario="pl94", only=["P1", "P5"], **TABLE_KEYWORDS[name])
    assert made.tables.height == made.summary.cells and made.summary.scenario == "pl94" and made.notes
    again = getattr(gh.protect, name)(tables, scenario="pl94", only=["P1", "P5"], **TABLE_KEYWORDS[name])
    assert again.tables.equals(made.tables)
    if name != "noise":  # intervals hold the truth
        assert gh.check(made, only=["P1", "P5"]).summary.agrees


def test_a_number_is_read_exactly(tables: pl.DataFrame) -> None:
    for rho in (0.1, "0.1", "1/10", Fraction(1, 10)):
        assert gh.protect.noise(tables, scenario="pl94", only=["P1"], rho=rho).summary.rho == "1/10"


def test_bad_arguments_are_one_clear_line(people: pl.DataFrame, tables: pl.DataFrame, emptied: Path) -> None:
    for call, complaint in (
        (lambda: gh.protect.swap(people), "--rate is missing"),
        (lambda: gh.protect.swap(people, rate=2), "--rate 2: expected"),
        (lambda: gh.protect.swap(people, rate=0.1, speed=3), "unknown argument of swap 'speed'"),
        (lambda: gh.protect.swap(people.drop("household_id"), rate=0.1), "'household_id' is missing"),
        (lambda: gh.protect.round(tables, scenario="pl94", base=1), "--base 1: expected 2 or more"),
        (lambda: gh.protect.noise(tables, scenario="pl94"), "expected --rho, or --budget"),
        (lambda: gh.protect.noise(tables, scenario="pl94", rho=True), "--rho"),
        (lambda: gh.protect.noise(tables, scenario="pl95", rho=1), "unknown scenario 'pl95'"),
        (lambda: gh.protect.topdown(people, secure=True, seed=1), "--secure has no seed"),
        (lambda: gh.compare(), "nothing to compare on"),
        (lambda: gh.compare(truth=people, attackers={"mine": people}, plan="none"), "unknown plan 'none'"),
    ):
        with pytest.raises(InputError, match=complaint):
            call()
    with pytest.raises(AttributeError, match="known: swap, topdown"):
        gh.protect.shuffle  # noqa: B018


def test_a_file_beside_comes_and_goes_with_the_result(people: pl.DataFrame, tmp_path: Path) -> None:
    log = tmp_path / "pairs.parquet"
    made = gh.protect.swap(people, rate=0.3, log=log)
    assert pl.read_parquet(log).height == made.summary.moved > 0
    with pytest.raises(InputError, match=r"pairs.parquet exists, and records.parquet does not"):
        gh.protect.swap(people, rate=0.3, log=log)
    gh.protect.swap(people, rate=0.3, log=log, overwrite=True)


# A protection of one's own


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a protection that is there as long as the test."""
    import glasshouse.commands.protect.register as register

    monkeypatch.delitem(sys.modules, "tests.toy_protection", raising=False)
    for known in (register._REGISTER, register._PLACES):
        monkeypatch.setitem(known, "cap", None)  # type: ignore[arg-type]  # to be taken out again at the end
        del known["cap"]  # type: ignore[attr-defined]
    import_module("tests.toy_protection")  # its last line adds it
    return "cap"


def few_tables(folder: Path) -> Path:
    """A scenario with two of the tables of sf1-person, which are quick to attack."""
    source = Path(str(resources.files("glasshouse") / "scenarios" / "data" / "sf1-person"))
    before, tables = (source / "scenario.toml").read_text(encoding="utf-8").split("[table]\n")
    few = [line for line in tables.splitlines() if line.startswith(("P8 ", "P12 "))]
    text = before + "[table]\n" + re.sub(r', iterations = "\w+"', "", "\n".join(few)) + "\n"
    (folder / "few").mkdir()
    (folder / "few" / "scenario.toml").write_text(text, encoding="utf-8")
    shutil.copy(source / "catalogue.csv", folder / "few")
    return folder / "few"


def test_a_new_protection_is_one_file_and_one_line(
    toy: str, people: pl.DataFrame, county: Path, tmp_path: Path
) -> None:
    """tests/toy_protection.py: found by the library, the command line, and compare."""
    assert toy in dir(gh.protect) and protection(toy).of == "records"
    made = gh.protect.cap(people, oldest=60)
    assert made.records["age"].max() == 60 and made.summary.changed == (people["age"] > 60).sum()
    out = tmp_path / "capped.parquet"
    assert "no age above" in good(tool("protect", "--help")).out
    ended = good(tool("protect", toy, county / "cef.parquet", "--oldest", 60, "--out", out))
    assert f"ages told as 60 -> {out}" in ended.out and pl.read_parquet(out).equals(made.records)
    plan = tmp_path / "plan.toml"
    few = f'scenario = "{few_tables(tmp_path)}"\nattackers = ["attacker-perfect"]\n[[setting]]\nname = "old"\n'
    few += f'protect = "{toy}"\n'
    plan.write_text(few + "oldest = 60\n")
    found = gh.compare(county, plan=plan, workers=1)
    assert not found.refused, found.refused
    assert set(found.measures["protect"]) == {toy} and found.summary.front == ("old",)
    assert found.summary.runs == 1 and not found.refused and found.out is None
    assert found.frame("summary").height and found.uses.height and found.front["setting"].to_list() == ["old"]
    assert found.refused == {} and "<svg" in found._repr_html_()
    plan.write_text(few + "oldest = 0\n")
    with pytest.raises(InputError, match=r"setting 'old': --oldest 0: expected 1 or more"):
        gh.compare(county, plan=plan)


def test_a_name_that_is_taken_is_refused() -> None:
    with pytest.raises(InputError, match="there is a protection 'swap' already"):
        add(Protection("swap", "tests.toy_protection:cap", "records"))
    assert protection("swap").where == "glasshouse.commands.protect.swap"


def test_the_register_is_light() -> None:
    """Whoever asks which protections there are does not wait for polars."""
    code = "import sys, glasshouse as gh; print(gh.protect, 'polars' in sys.modules, 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], env=os.environ, capture_output=True, text=True, check=True)
    assert "swap" in done.stdout and done.stdout.endswith("False False\n")


def test_a_plan_is_shown_in_its_own_words() -> None:
    from glasshouse.commands.compare_plan import plan_path

    text = plan_path("audit").read_text(encoding="utf-8")
    assert good(tool("compare", "--show-plan", "--plan", "audit")).out == text
    said = json.load(io.StringIO(good(tool("compare", "--show-plan", "--plan", "audit", "--json")).out))
    assert said["text"] == text
