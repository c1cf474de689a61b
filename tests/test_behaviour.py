"""Does every command still do what it did when `tests/behaviour.json` was made? Each run is a test of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests import behaviour
from tests.behaviour import EVERY, Run, differences, done, locked, prepare, recorded, versions


@pytest.fixture(scope="session")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of a session share: what a run needs is made by the first that asks for it."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "behaviour"
    with locked(folder.with_suffix(".lock")):
        if not folder.exists():
            folder.mkdir()
            prepare(folder)
    return folder


@pytest.mark.parametrize(
    "run", [pytest.param(run, id=run.name, marks=[pytest.mark.slow] * run.slow) for run in EVERY.values()]
)
def test_a_run_says_and_writes_what_it_did(run: Run, scratch: Path) -> None:
    record = recorded()
    same = all(record["versions"][name] == versions()[name] for name in ("polars", "pyarrow"))
    found = differences(run.name, record["runs"][run.name], done(run, scratch), same_libraries=same)
    if found and record["versions"] != versions():
        found["versions"] = f"{record['versions']}, now {versions()}"
    assert not found, "\n".join(["", *(f"{what}: {how}" for what, how in found.items())])


def test_the_record_is_of_these_runs() -> None:
    record = recorded()
    assert record["runs"].keys() == EVERY.keys()
    assert {name: said["arguments"] for name, said in record["runs"].items()} == {
        name: run.arguments for name, run in EVERY.items()
    }
    known = {f"{name}{mark}" for name in EVERY for mark in ("/", ":")}
    assert all(any(what.startswith(start) for start in known) and why for what, why in record["mended"].items())
    assert behaviour.RECORD.read_text(encoding="utf-8") == behaviour.laid_out(record) + "\n"


def test_a_difference_is_told_by_run_file_and_part() -> None:
    """What is said of runs that differ, and that other libraries may write other bytes with the same columns."""
    frame = {"sha256": "a", "rows": 2, "order": ["x", "y"], "columns": {"x": "1", "y": "2"}}
    before = {"code": 0, "keys": {"a": "1"}, "files": {"t.parquet": frame, "gone.csv": frame}}
    now = {"code": 1, "keys": {"b": "1"}, "files": {"t.parquet": frame, "new.csv": frame}}
    assert differences("r", before, before) == {}
    assert differences("r", before, now) == {
        "r: code": "0, now 1",
        "r: keys": "gone a",
        "r/gone.csv": "is no longer written",
        "r/new.csv": "was not written before",
    }
    other = {"code": 0, "files": {"t.parquet": frame | {"sha256": "b", "rows": 3, "columns": {"x": "1", "y": "3"}}}}
    bytes_only = {"code": 0, "files": {"t.parquet": frame | {"sha256": "b"}}}
    first = {"code": 0, "files": {"t.parquet": frame}}
    assert differences("r", first, other, same_libraries=False) == {"r/t.parquet": "rows 2, now 3; columns: changed y"}
    assert differences("r", first, bytes_only) == {"r/t.parquet": "other bytes, the same in every part"}
    assert differences("r", first, bytes_only, same_libraries=False) == {}
