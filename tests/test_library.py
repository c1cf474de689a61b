"""Is Glasshouse a library? Frames in, frozen results out, nothing left behind, and the same complaints."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import polars as pl
import pyarrow as pa
import pytest

import glasshouse as gh
from glasshouse.commands.declaration import declaration
from glasshouse.commands.vary import Varied
from glasshouse.model.schema import Schema
from tests.running import good, tool

ROOT = Path(__file__).resolve().parents[1]
SF1 = "sf1-person"
VILLAGE = ROOT / "examples" / "village" / "records.csv"


@pytest.fixture(autouse=True)
def rooms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A temporary folder of our own; after every test nothing of a command is in it."""
    room = tmp_path / "temporary"
    room.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(room))
    yield room
    assert not [path.name for path in room.iterdir() if path.name.startswith("glasshouse-")]


@pytest.fixture(scope="module")
def tables() -> pl.DataFrame:
    return gh.tabulate(VILLAGE, scenario=SF1).tables


@pytest.fixture(scope="module")
def varied(tables: pl.DataFrame) -> Varied:
    return gh.vary(tables, scenario=SF1, workers=1)


def test_importing_is_quick_and_does_nothing() -> None:
    heavy = "{'numpy', 'polars', 'numba', 'scipy', 'pyarrow', 'typer', 'rich', 'pydantic'}"
    script = (
        f"import sys, glasshouse; print(sorted({heavy} & set(sys.modules)), [m for m in sys.modules if 'cli' in m])"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout == "[] []\n" and ended.stderr == ""


def test_every_verb_is_there_and_says_what_it_takes() -> None:
    verbs = [
        "read_tables",
        "read_records",
        "scenario",
        "tabulate",
        "check",
        "reconstruct",
        "vary",
        "verify",
        "detect",
        "reidentify",
        "infer",
        "protect",
        "tradeoff",
        "compare",
        "synthesize",
        "audit",
    ]
    assert set(verbs) <= set(dir(gh))
    for name in gh.VERBS:
        declared = declaration(getattr(gh, name))
        assert declared.says and all(len(option.opt.help) > 10 for option in declared.options), name
    assert {"posterior", "risk", "decide", "plan"} <= set(gh.infer)
    assert {"swap", "topdown", "relocate", "noise", "round", "suppress", "cellkey"} <= set(gh.protect)
    with pytest.raises(AttributeError, match=r"known: .*vary"):
        gh.varry  # noqa: B018


def test_frames_of_every_kind_give_the_same_bytes(tables: pl.DataFrame, varied: Varied, tmp_path: Path) -> None:
    tables.write_csv(tmp_path / "tables.csv")
    for given in (tables.to_pandas(), tables.to_arrow(), pa.table(tables.to_arrow()), tmp_path / "tables.csv",
                  str(tmp_path / "tables.csv")):  # fmt: skip
        found = gh.vary(given, scenario=gh.scenario(SF1), workers=1)
        assert found.places.equals(varied.places) and found.summary == varied.summary


def test_a_result_is_frozen_typed_and_shows_itself(varied: Varied) -> None:
    assert varied.summary.headline is not None
    assert varied.summary.headline.population == varied.places["population"].sum() == 1336
    assert varied.certain_records["certain"].sum() == varied.places["certain"].sum()
    with pytest.raises(dataclasses.FrozenInstanceError):
        varied.summary.seed = 2  # type: ignore[misc]  # that is the point
    assert varied.out is None and varied.code == 0 and varied.refused == {}
    page = varied._repr_html_()
    assert "<svg" in page and "<table" in page and "glasshouse vary" in page
    assert varied.figure()._repr_svg_().startswith("<svg") and varied.figure().png().startswith(b"\x89PNG")
    assert repr(varied).startswith("<vary>\n") and "glasshouse-" not in repr(varied)


def test_what_is_written_later_is_what_the_terminal_writes(
    tables: pl.DataFrame, varied: Varied, tmp_path: Path
) -> None:
    tables.write_parquet(tmp_path / "tables.parquet")
    good(tool("vary", tmp_path / "tables.parquet", "--scenario", SF1, "--workers", 1, "--out", tmp_path / "there"))
    varied.write(tmp_path / "here")
    names = sorted(path.name for path in (tmp_path / "here").iterdir())
    assert names == sorted({path.name for path in (tmp_path / "there").iterdir()} - {"timings.parquet"})
    for name in set(names) - {"manifest.json"}:
        assert (tmp_path / "here" / name).read_bytes() == (tmp_path / "there" / name).read_bytes()
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "here").iterdir())
    with pytest.raises(gh.InputError, match="is there already"):
        varied.write(tmp_path / "here")


def test_a_place_to_write_is_resumed_and_refused_as_in_the_terminal(tables: pl.DataFrame, tmp_path: Path) -> None:
    first = gh.reconstruct(tables, scenario=SF1, workers=1, out=tmp_path / "out")
    again = gh.reconstruct(tables, scenario=SF1, workers=1, out=tmp_path / "out")
    assert not first.ended.unchanged and again.ended.unchanged
    assert again.summary == first.summary and again.records.equals(first.records)
    with pytest.raises(gh.InputError, match=r"another run .*seed 1, now 2.*--overwrite"):
        gh.reconstruct(tables, scenario=SF1, workers=1, seed=2, out=tmp_path / "out")
    other = gh.reconstruct(tables, scenario=SF1, workers=1, seed=2, out=tmp_path / "out", overwrite=True)
    assert other.summary.seed == 2


def test_results_and_what_was_read_go_on_to_the_next_function(tables: pl.DataFrame) -> None:
    read = gh.read_tables(tables, scenario=SF1, only=["P1", "P8", "P12"])
    assert set(read.frame["table"].unique()) == {"P1", "P8", "P12"} and isinstance(read.scenario.schema, Schema)
    assert gh.check(read).summary.numbers == read.frame.height
    rebuilt = gh.reconstruct(read, workers=1)
    assert gh.vary(read, start=rebuilt, workers=1).summary.scenario == SF1
    records = gh.read_records(pl.read_csv(VILLAGE, infer_schema=False), scenario=SF1)
    assert gh.tabulate(records).tables.equals(tables)


def spoilt(tables: pl.DataFrame, **columns: object) -> pl.DataFrame:
    return tables.with_columns(**{name: pl.lit(value) for name, value in columns.items()})


# by name: how it is called, and what is said of it
BAD: dict[str, tuple[Callable[[pl.DataFrame], object], str]] = {
    "a scenario that is not there": (lambda t: gh.vary(t, scenario="nope"), "unknown scenario 'nope'; known: .*sf1-"),
    "no scenario": (lambda t: gh.vary(t), "--scenario is missing"),
    "an unknown keyword": (lambda t: gh.vary(t, scenario=SF1, sede=1), "unknown argument of vary 'sede'; .*seed"),
    "a wrong frame": (lambda t: gh.vary(t.select("value"), scenario=SF1), "frame-of-tables.parquet: no column says"),
    "an unknown variable": (lambda t: gh.check(spoilt(t, variable="X1"), scenario=SF1), "row 1: 'X1' is not an off"),
    "no count": (lambda t: gh.check(spoilt(t, value=-1), scenario=SF1), "row 1: value of .* is '-1'; expected a who"),
    "no frame at all": (lambda t: gh.vary(7, scenario=SF1), "tables is of type int; expected a path, a frame"),
    "a file that is not there": (lambda t: gh.vary("gone.csv", scenario=SF1), "gone.csv: there is no such file"),
    "too few workers": (lambda t: gh.vary(t, scenario=SF1, workers=0), "--workers 0: expected 1 to 256"),
    "a choice that is none": (lambda t: gh.reconstruct(t, scenario=SF1, nearest="x"), "unknown --nearest 'x'; known"),
    "two crews": (lambda t: gh.vary(t, scenario=SF1, workers=1, executor="dask://h:1"), "--workers and --executor"),
    "a changed scenario": (lambda t: gh.vary(t, scenario=gh.scenario(SF1).choose(["P1"])), "was changed in Python"),
    "too many arguments": (lambda t: gh.vary(t, SF1), "vary takes tables; give the rest by name"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_an_exception_of_one_line(name: str, tables: pl.DataFrame, rooms: Path) -> None:
    call, pattern = BAD[name]
    with pytest.raises(gh.InputError, match=pattern) as caught:
        call(tables)
    assert "\n" not in str(caught.value)
    assert list(rooms.iterdir()) == []


def test_the_library_is_silent_unless_asked(tables: pl.DataFrame, capfd: pytest.CaptureFixture[str]) -> None:
    gh.reconstruct(tables, scenario=SF1, workers=1)
    assert capfd.readouterr() == ("", "")


def test_json_says_what_the_summary_holds(tables: pl.DataFrame, tmp_path: Path) -> None:
    tables.write_parquet(tmp_path / "tables.parquet")
    said = good(tool("check", tmp_path / "tables.parquet", "--scenario", SF1, "--json")).json
    found = gh.check(tmp_path / "tables.parquet", scenario=SF1)
    assert said == json.loads(json.dumps(found.said()))
    assert said["numbers"] == found.summary.numbers


def test_the_reference_and_the_types_are_those_of_the_functions() -> None:
    ended = subprocess.run(
        [sys.executable, ROOT / "docs" / "make_reference.py", "--check"], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr


@pytest.mark.slow
def test_the_notebook_runs_and_gives_what_it_shows() -> None:
    """Every cell is run in a kernel; tables and a picture come back, the same as are kept."""
    ended = subprocess.run(
        [sys.executable, ROOT / "docs" / "make_library_page.py", "--check"], capture_output=True, text=True,
        check=False, env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    kept = nbformat.read(ROOT / "examples" / "library" / "walkthrough.ipynb", as_version=4)
    shown = {kind for cell in kept.cells for output in cell.get("outputs", []) for kind in output.get("data", {})}
    assert {"text/html", "image/svg+xml"} <= shown
