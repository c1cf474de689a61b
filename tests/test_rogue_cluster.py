"""Can a rogue worker, or a rogue scheduler, run code in the process that asks it? (Convention 9)"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from glasshouse.engine.workers import Crew
from glasshouse.errors import MachineFailed
from tests import work_items
from tests.clusters import cluster, needs_dask
from tests.running import good, tool
from tests.work_items import Job, through

SENT = ["result", "list", "array", "bytes", "type", "error", "traceback", "warning", "print"]


@pytest.fixture(scope="module")
def rogue_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rogue")


@pytest.fixture(scope="module")
def rogue_worker(rogue_folder: Path) -> Iterator[str]:
    with ExitStack() as stack:
        found = stack.enter_context(
            cluster(rogue_folder, 1, worker=("--preload", "tests.rogue"), ROGUE_FOLDER=str(rogue_folder))
        )
        yield found.address


def exploded(folder: Path) -> bool:
    """Was anything unpickled here? (What explodes in the cluster itself writes the name of another process.)"""
    return (folder / str(os.getpid())).exists()


@needs_dask
@pytest.mark.parametrize("sent", SENT)
def test_a_rogue_worker_executes_nothing(
    sent: str, rogue_worker: str, rogue_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (rogue_folder / "mode").write_text(sent)
    with pytest.raises(Exception) as caught:  # looked at below
        list(through(work_items.square, Job(tmp_path), range(3), Crew(address=rogue_worker)))
    assert not exploded(rogue_folder)
    assert caught.type is MachineFailed
    assert capsys.readouterr().out == ""
    refused = r"its answer was refused" if sent not in ("error", "traceback") else r"cannot take up the work"
    assert caught.match(refused) and "\n" not in str(caught.value)


@needs_dask
def test_a_command_says_so_in_a_sentence(
    rogue_worker: str, rogue_folder: Path, toy_folder: Path, tmp_path: Path
) -> None:
    (rogue_folder / "mode").write_text("result")
    rows = [f"{town}{street}{house},red,{house},0" for town in "12" for street in "123" for house in "012"]
    (tmp_path / "records.csv").write_text("\n".join(["house,colour,size,owner", *rows]) + "\n")
    tables, out, toy = tmp_path / "tables.csv", tmp_path / "out", ("--scenario", toy_folder)
    good(tool("tabulate", tmp_path / "records.csv", *toy, "--out", tables))
    ended = good(tool("reconstruct", tables, *toy, "--executor", rogue_worker, "--out", out, "--json"), 2)
    assert not exploded(rogue_folder)
    last = ended.err.splitlines()[-1]
    assert last.startswith(f"glasshouse: {rogue_worker}: a worker does not speak as Glasshouse does")
    assert ended.json["exit_code"] == 2 and not (out / "records.parquet").exists()


@needs_dask
def test_a_rogue_scheduler_executes_nothing(tmp_path: Path) -> None:
    with cluster(tmp_path, 1, scheduler=("--preload", "tests.rogue"), ROGUE_FOLDER=str(tmp_path)) as found:
        done = list(through(work_items.square, Job(tmp_path), range(3), Crew(address=found.address)))
    assert len(done) == 3 and not exploded(tmp_path)
