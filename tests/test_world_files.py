"""Is every real file that nobody here wrote read, or refused with one line that helps? Truncated ones too."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from glasshouse.cli.main import main
from tests import format_samples as samples

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs"))
WORLD = Path(__file__).resolve().parents[2] / "shared" / "data" / "world"
FILES = sorted(str(path.relative_to(WORLD)) for path in WORLD.glob("*/*")) if WORLD.is_dir() else []
real = pytest.mark.skipif(not FILES, reason="the files of other offices are not beside the repository")
WITHOUT_OPTIONS = ["jsonstat/ons.json", *(f"uk/census2021-ts007-{kind}.csv" for kind in ("ctry", "ltla", "rgn"))]
WITH_OPTIONS = {
    "jsonstat/galicia.json": "--accept --place residence --attribute birth=birthplace --noise-within 1",
    "jsonstat/statswe.json": "--accept",
    "px/14001.px": "--accept",
    "nz/dwelling.parquet": "--value V0001,V0002,V0003,V0004,V0005 --total column=V0005 --place code "
    "--only geography=Ward --only year=2013 --accept",
}
QUICK = {"jsonstat/ons.json", "px/14001.px", "uk/census2021-ts007-rgn.csv"}


def refused(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = capsys.readouterr()
    lines = said.err.splitlines()
    assert said.out == ""
    assert lines and all(line.startswith("glasshouse: ") for line in lines)
    asked = "that the tables do not tell" in lines[0]  # then every question has a line
    assert len(lines) == 1 or asked, lines
    assert "bug" not in lines[0] and not out.exists()


@real
@pytest.mark.parametrize("name", FILES)
def test_every_file_is_described_or_refused(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["describe", str(WORLD / name), "--out", str(tmp_path / "found")])
    assert (code == 0) == (name in WITHOUT_OPTIONS)
    if code:
        assert code == 2
        refused(tmp_path / "found", capsys)


@real
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in (*WITHOUT_OPTIONS, *WITH_OPTIONS)],
)
def test_what_was_described_is_read_again(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Eight scenarios, without an edit: each reads its own file, and all numbers can be true."""
    assert len(WITHOUT_OPTIONS) + len(WITH_OPTIONS) >= 8
    found = str(tmp_path / "found")
    assert main(["describe", str(WORLD / name), *WITH_OPTIONS.get(name, "").split(), "--out", found]) == 0
    assert main(["check", str(WORLD / name), "--scenario", found]) == 0
    assert "agree" in capsys.readouterr().out or name == "jsonstat/statswe.json"


@real
@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_a_file_cut_in_half_is_described_or_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = (WORLD / name).read_bytes()
    path = tmp_path / Path(name).name
    path.write_bytes(content[: len(content) // 2])
    code = main(["describe", str(path), *WITH_OPTIONS.get(name, "").split(), "--out", str(tmp_path / "found")])
    assert code in (0, 2)
    if code:
        refused(tmp_path / "found", capsys)


@pytest.mark.parametrize("name", samples.every())
def test_a_table_of_any_format_cut_anywhere_is_described_or_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever is left of a file: a scenario, or a refusal with exit code 2, and nothing written."""
    content, path, out = samples.every()[name], tmp_path / name, tmp_path / "found"
    for tenths in (2, 5, 8, 9):
        path.write_bytes(content[: len(content) * tenths // 10])
        code = main(["describe", str(path), "--accept", "--missing", "zero", "--area", "A", "--out", str(out)])
        assert code in (0, 2)
        if code:
            refused(out, capsys)
        else:
            shutil.rmtree(out)
            capsys.readouterr()
