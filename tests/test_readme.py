"""Are the first pages true to the letter? Their sessions are run and compared, and the picture is of the same lines."""

from __future__ import annotations

import importlib.util
import re
import shlex
import sys
from pathlib import Path
from types import ModuleType

import pytest

from glasshouse.cli.main import main
from glasshouse.commands.auditing.config import read_config

ROOT = Path(__file__).resolve().parents[1]


def module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = loaded
    spec.loader.exec_module(loaded)
    return loaded


def sessions(page: Path) -> list[str]:
    return re.findall(r"```console\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions are typed as they stand, on a machine that starts no other processes for them."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0})


terminal = module(ROOT / "docs" / "make_terminal.py")
village = module(ROOT / "examples" / "village" / "make.py")


def test_the_first_session_of_first_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    shown: list[str] = terminal.session()
    printed: list[str] = []
    for line in shown:
        if line.startswith("$ glasshouse "):
            main(shlex.split(line)[2:])
            printed += [line, *capsys.readouterr().out.splitlines()]
    assert printed == shown
    assert len([line for line in shown if line.startswith("$")]) == 5


@pytest.mark.parametrize(("number", "commands"), [pytest.param(1, 4, marks=pytest.mark.slow), (2, 3)])
@pytest.mark.usefixtures("one_core")
def test_the_other_sessions_of_first_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], number: int, commands: int
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = sessions(ROOT / "docs" / "first-steps.md")[number]
    printed: list[str] = []
    for line in shown.splitlines():
        if line.startswith("$ glasshouse "):
            assert main(shlex.split(line)[2:]) == 0
            printed += [line, *capsys.readouterr().out.splitlines()]
    assert printed == shown.splitlines()
    assert len([line for line in printed if line.startswith("$")]) == commands


def test_the_seven_of_the_readme_are_those_of_the_example() -> None:
    shown = sessions(ROOT / "README.md")[0]
    assert shown == sessions(ROOT / "examples" / "seven-people" / "README.md")[0]  # which is run by test_examples


@pytest.mark.usefixtures("one_core")
def test_a_new_user_gets_from_a_table_to_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The session of the README, typed as it stands, in an empty folder; dots stand for lines that are not shown."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    codes = []
    for command in re.split(r"^\$ glasshouse ", sessions(ROOT / "README.md")[1], flags=re.MULTILINE)[1:]:
        words, _, shown = command.partition("\n")
        codes.append(main(shlex.split(words)))
        printed = capsys.readouterr()
        pattern = ".*\n".join(re.escape(part) for part in shown.split("...\n"))
        assert re.fullmatch(pattern, printed.err if codes[-1] else printed.out, re.DOTALL), printed
    assert codes == [2, 0, 0]
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    said = re.sub(r"<(script|style)[^>]*>.*?</\1>|<[^>]+>", " ", page, flags=re.DOTALL)
    said = said[: said.index("Certificate What was run")] if "Certificate What was run" in said else said
    for word in ("race", "races", "hispanic", "origin", "block", "blocks", "tract", "tracts", "Bureau", "microdata"):
        assert not re.search(rf"\b{word}\b", said, re.IGNORECASE), f"a report of an invented country says '{word}'"
    shown = re.findall(r"```csv\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)[0]
    rows = (ROOT / "examples" / "norland" / "population.csv").read_text(encoding="utf-8").splitlines()
    assert {*shown.splitlines()} - {"..."} <= {*rows}


def test_the_configuration_of_the_readme_reads(tmp_path: Path) -> None:
    (shown,) = re.findall(r"```toml\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "mine.toml").write_text(shown, encoding="utf-8")
    for name in re.findall(r'= "([\w-]+\.(?:parquet|csv\.gz|geojson))"', shown):
        (tmp_path / name).touch()
    assert read_config(tmp_path / "mine.toml").thresholds.share_certain == 0.5


def test_the_plan_of_first_steps(capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / "docs" / "first-steps.md").read_text(encoding="utf-8")
    command, _, shown = text.partition("$ glasshouse infer ")[2].partition("```")[0].partition("\n")
    assert main(["infer", *shlex.split(command)]) == 0
    assert capsys.readouterr().out == shown


def test_the_picture_shows_the_session() -> None:
    assert (ROOT / "docs" / "terminal.svg").read_text(encoding="utf-8") == terminal.draw(terminal.session())


def test_the_village_is_made_by_its_recipe(tmp_path: Path) -> None:
    village.main(tmp_path / "records.csv")
    assert (tmp_path / "records.csv").read_bytes() == (ROOT / "examples" / "village" / "records.csv").read_bytes()


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "CONTRIBUTING.md"])
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_country_of_ones_own_in_the_documentation_loads(tmp_path: Path) -> None:
    from glasshouse.scenarios.load import load

    text = (ROOT / "docs" / "scenarios.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    (tmp_path / "scenario.toml").write_text(blocks[-1], encoding="utf-8")
    assert [table.name for table in load(str(tmp_path)).tables] == ["D1", "D1A", "D2"]
