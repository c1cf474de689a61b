"""Is every step of an audit done by whoever does the work, with the same bytes, whoever dies?"""

from __future__ import annotations

import itertools
import shutil
import signal
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from glasshouse.engine import wire
from glasshouse.engine.ledger import UNDER_WAY, Entry, Ledger, Notes
from glasshouse.engine.unit import do
from glasshouse.errors import InputError, MachineFailed
from glasshouse.files.tables import open_tables
from glasshouse.scenarios.load import load
from tests.clusters import certificates, cluster, eventually, in_environment, needs_dask, started
from tests.running import good, tool
from tests.test_compare import folder  # noqa: F401  # a fixture
from tests.test_topdown import LEVELS, evenly, records_of, settlement, village  # noqa: F401  # a fixture is among them

CONFIG = """
title = "Whole"
scenario = "sf1-person"
[synthetic]
persons = 14000
subsidised = 0.25
[attackers]
leave_one_out = 2
[leaks]
blocks = 20
[claims]
scenario = "dhc-household"
pick = "median:2"
leaks = "family"
[occupancy]
scenario = "subsidised-housing"
[protections]
plan = "plan.toml"
"""
PLAN = """
scenario = "sf1-person"
seeds = [1]
attackers = ["attacker-perfect"]
[[setting]]
name = "nothing"
[[setting]]
name = "from the top down"
protect = "topdown"
scenario = "pl94"
budget = "pl94-2020"
places = "{blocks}"
"""


# From the top down, in branches


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("length", [2, 3, 4])
def test_branches_grown_in_any_order_are_the_whole(village, seed: int, length: int) -> None:  # type: ignore[no-untyped-def]  # noqa: F811
    from glasshouse.model.chance import chance
    from glasshouse.protection.topdown.measurements import possible_cells, query_of, strategy_of
    from glasshouse.protection.topdown.topdown import Held, Quality, TopDown

    rng = np.random.default_rng(seed)
    records = records_of(settlement(rng, cities=2))
    for levels in (LEVELS, LEVELS[1:], LEVELS[2:], (LEVELS[0], LEVELS[2])):
        held = Held({levels[0]: query_of(village, "total")} if seed % 2 else {}).downwards(levels)

        def work(levels: tuple[str, ...] = levels, held: Held = held) -> TopDown:
            strategy = strategy_of(village, evenly(["total", "sex", "detailed"], str(Fraction(1, 2))), levels)
            lengths = {level: village.geography.lengths[level] for level in levels}
            return TopDown(
                strategy, lengths, possible_cells(village.schema), held, lambda code: chance(seed, code, "topdown")
            )

        whole, parts = work(), work()
        wanted = [(place, cells.tolist()) for place, cells in whole.protect(records)]
        branches = list(parts.branches(records, length))
        assert [one.code for one in branches] == sorted(one.code for one in branches)
        assert list(itertools.chain(*(one.records.places for one in branches))) == list(records.places)
        found = {}
        for number in rng.permutation(len(branches)):
            grown, quality = parts.grow(branches[number])
            found[number] = [(place, cells.tolist()) for place, cells in grown]
            parts.quality.add(quality)
        assert [pair for number in sorted(found) for pair in found[number]] == wanted
        assert parts.quality == whole.quality and parts.quality != Quality()


def test_two_workers_protect_from_the_top_down_as_one_does(tmp_path: Path) -> None:
    good(tool("synthesize", "--persons", 20_000, "--out", tmp_path / "county", "--quiet"))
    records = tmp_path / "county" / "cef.parquet"
    assert pl.read_parquet(records)["block"].str.head(11).n_unique() >= 4  # enough for processes
    for workers in (1, 2):
        words = ["protect", "topdown", records, "--scenario", "pl94", "--budget", "pl94-2020", "--quiet"]
        good(tool(*words, "--workers", workers, "--out", tmp_path / f"by{workers}.parquet"))
    assert (tmp_path / "by1.parquet").read_bytes() == (tmp_path / "by2.parquet").read_bytes()
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


# What is read, and what is left


def test_units_that_are_asked_for_are_those_of_the_whole_file(folder: Path, tmp_path: Path) -> None:  # noqa: F811
    scenario = load(str(folder / "few"))
    tables = tmp_path / "tables.parquet"
    good(tool("tabulate", folder / "county" / "cef.parquet", "--scenario", folder / "few", "--out", tables, "--quiet"))
    file = open_tables(tables, scenario)
    whole = {
        release.levels["block"].places[0][:11]: release for release in file.releases() if "block" in release.levels
    }
    assert len(whole) == 2
    for unit in whole:
        some = open_tables(tables, scenario)
        found = [one for one in some.releases(units=[unit]) if "block" in one.levels]
        assert len(found) == 1 and some.seen == file.seen
        for level, counts in whole[unit].levels.items():
            assert found[0].levels[level].places == counts.places
            assert np.array_equal(found[0].levels[level].lower, counts.lower)


def test_half_a_unit_is_kept_for_the_same_run_only(tmp_path: Path) -> None:
    kept = tmp_path / f"000s1{UNDER_WAY}"
    Ledger(tmp_path, "one").begin({})
    kept.mkdir()
    Ledger(tmp_path, "one").begin({})
    assert kept.is_dir()
    Ledger(tmp_path, "other").begin({})
    assert not kept.exists()


class Item:
    code, places = "1", 1


@pytest.mark.parametrize("error", [MachineFailed("gone"), InputError("wrong")])
def test_that_nobody_works_is_no_answer(error: Exception) -> None:
    def work(job: object, item: object) -> None:
        raise error

    if isinstance(error, MachineFailed):
        with pytest.raises(MachineFailed, match="gone"):
            do((None, work), Item())  # type: ignore[arg-type]  # it never answers
    else:
        assert do((None, work), Item()).notes.refused is not None  # type: ignore[arg-type]  # it never answers


def test_that_a_finished_unit_cannot_be_read_again_is_no_answer(tmp_path: Path) -> None:
    """Of a run inside a unit, such as a setting of compare: a disk that fails once does not leave the setting out."""

    def work(job: object, item: object) -> None:
        ledger = Ledger(tmp_path / "ledger", "one")
        ledger.begin({})
        ledger.put(Entry("1", Notes(), {}))
        (tmp_path / "ledger" / "1.unit").write_bytes(b"")
        ledger.read("1")

    with pytest.raises(MachineFailed, match="run the command again"):
        do((None, work), Item())  # type: ignore[arg-type]  # it never answers


@needs_dask
def test_a_comparison_without_its_cluster_refuses_no_setting(
    folder: Path,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A scheduler that is gone says nothing of a protection; what was done is there for the next run."""
    monkeypatch.setattr(wire, "PATIENCE", 0.2)
    words = ["compare", folder / "county", "--plan", folder / "small.toml", "--setting", "swap, a third", "--seeds", 1]
    out = tmp_path / "out"
    ended = tool(*words, "--executor", "dask://127.0.0.1:1", "--out", out)
    assert ended.code == 2 and "no Dask scheduler answered" in ended.err, ended
    assert not list(out.glob("ledger/*.unit")) and not (out / "manifest.json").exists()
    assert (out / "ledger" / f"000s1{UNDER_WAY}" / "protected.parquet").is_file()
    again = tmp_path / "again"
    shutil.copytree(out, again)
    good(tool(*words, "--workers", 2, "--out", out, "--quiet"))
    good(tool(*words, "--workers", 1, "--out", tmp_path / "at-once", "--quiet"))
    good(tool(*words, "--workers", 1, "--out", again, "--overwrite", "--quiet"))
    assert not (out / "ledger").exists() and not (again / "ledger").exists()
    assert (again / "measures.parquet").read_bytes() == (out / "measures.parquet").read_bytes()
    for name in ("measures.parquet", "uses.parquet"):
        assert (out / name).read_bytes() == (tmp_path / "at-once" / name).read_bytes()
    refused = tool(*words, "--executor", "dask://127.0.0.1:1", "--workers", 2, "--out", tmp_path / "no")
    assert refused.code == 2 and "give one or the other" in refused.err


# All of it, on a cluster


def results(audit: Path) -> dict[str, bytes]:
    """Every data file of every step, but for times."""
    files = [path for path in audit.rglob("*.parquet") if path.name != "timings.parquet"]
    return {str(path.relative_to(audit)): path.read_bytes() for path in files}


@needs_dask
@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["tcp", "tls"])
def test_an_audit_on_a_cluster_that_loses_a_worker_has_the_same_bytes(protocol: str, tmp_path: Path) -> None:
    (tmp_path / "audit.toml").write_text(CONFIG, encoding="utf-8")
    (tmp_path / "plan.toml").write_text(PLAN, encoding="utf-8")
    words = ["audit", "--config", str(tmp_path / "audit.toml")]
    home, away = tmp_path / "home", tmp_path / "away"
    good(tool(*words, "--workers", 1, "--out", home, "--quiet"))
    told = in_environment(certificates(tmp_path)) if protocol == "tls" else {}
    with cluster(tmp_path, 3, protocol=protocol, **told) as found:
        command = ["-m", "glasshouse", *words, "--executor", found.address, "--out", str(away)]
        with started(*command, **told) as process:
            eventually(lambda: process.poll() is not None or any((away / "solvar").glob("ledger/*.unit")))
            assert process.poll() is None, "it was over before a worker could be killed"
            found.workers[0].send_signal(signal.SIGKILL)
            _, said = process.communicate()
            assert process.returncode == 0, said
        assert found.workers[0].poll() is not None and found.workers[1].poll() is None
    assert results(away) == results(home) and {"leaks.parquet", "compared/measures.parquet"} <= set(results(home))
    assert (away / "summary.json").read_bytes() == (home / "summary.json").read_bytes()
