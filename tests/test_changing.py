"""Is docs/changing.md true? Its files are there, and a file format of one's own is one file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

import glasshouse as gh
from glasshouse.files import frames
from tests.running import good, tool

ROOT = Path(__file__).resolve().parents[1]
SRC = ROOT / "src" / "glasshouse"
VILLAGE = ROOT / "examples" / "village" / "records.csv"


def test_a_page_of_twenty_changes_names_three_files_at_most_and_all_are_there() -> None:
    rows = re.findall(r"^\| .*\*\*.*$", (ROOT / "docs" / "changing.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) == 20
    for row in rows:
        touched = row.split("|")[2]
        named = [name for name in re.findall(r"`([\w./<>-]+\.(?:py|toml|md))`", touched) if "tests/" not in name]
        assert 1 <= len(named) <= 3, row
        for name in named:
            if "<" in name:  # a file of one's own: its folder is there
                assert (SRC / Path(name).parent).is_dir() or "scenario" in name, name
            else:
                assert (SRC / name).is_file() or (ROOT / name).is_file() or name in ("scenario.toml", "findings.py"), (
                    name
                )


@pytest.fixture
def pairs(tmp_path: Path) -> Iterator[Path]:
    """The village in a format that Glasshouse does not know, with the file that reads it."""
    known = dict(frames.FORMATS)
    records = pl.read_csv(VILLAGE, infer_schema=False)
    lines = [";".join(f"{name}={value}" for name, value in row.items()) for row in records.iter_rows(named=True)]
    path = tmp_path / "village.pairs"
    path.write_text("\n".join(lines), encoding="utf-8")
    yield path
    frames.FORMATS.clear()
    frames.FORMATS.update(known)


def test_a_file_format_of_ones_own_is_one_file(pairs: Path, tmp_path: Path) -> None:
    with pytest.raises(gh.InputError, match=r"unknown kind of file; known: \.csv, \.csv\.gz, \.parquet"):
        gh.tabulate(pairs, scenario="sf1-person")
    from tests import toy_format

    frames.add_format(".pairs", toy_format.opened)
    found = gh.tabulate(pairs, scenario="sf1-person")
    assert found.tables.equals(gh.tabulate(VILLAGE, scenario="sf1-person").tables)
    good(tool("tabulate", pairs, "--scenario", "sf1-person", "--out", tmp_path / "tables.csv"))
    spoilt = tmp_path / "spoilt.pairs"
    spoilt.write_text(pairs.read_text(encoding="utf-8").replace("sex=male", "sex=mail", 1), encoding="utf-8")
    with pytest.raises(gh.InputError, match=r"spoilt\.pairs, line \d+: column 'sex' is 'mail'; expected"):
        gh.tabulate(spoilt, scenario="sf1-person")
