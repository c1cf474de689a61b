"""Is a result there as a whole or not at all, drawn once, and made from the inputs that its manifest names?"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from glasshouse.commands.options import inputs_of
from glasshouse.engine import draft, lifecycle, manifest
from glasshouse.engine.folder import read_manifest
from glasshouse.engine.ledger import Entry, Ledger, Notes, peek
from glasshouse.errors import InputError, MachineFailed
from glasshouse.files import rooms
from glasshouse.files.output import private_file
from glasshouse.files.seen import Seen
from tests.running import good, tool

TOY = Path(__file__).parent.parent / "examples" / "own-country"
SCENARIO = ("--scenario", TOY / "scenario")


@pytest.fixture
def records(tmp_path: Path) -> Path:
    return Path(shutil.copy(TOY / "records.csv", tmp_path / "records.csv"))


@pytest.fixture
def tables(records: Path, tmp_path: Path) -> Path:
    out = tmp_path / "tables.csv"
    good(tool("tabulate", records, *SCENARIO, "--out", out))
    return out


def _noise(tables: Path, *more: object) -> list[object]:
    return [
        "protect",
        "noise",
        tables,
        *SCENARIO,
        "--rho",
        4,
        "--secure",
        "--out",
        tables.with_name("noisy.csv"),
        *more,
    ]


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def _files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@dataclass(frozen=True)
class Told:
    """What a run of a test says."""

    seed: int


class Killed(SystemExit):
    """What a kill does to the code after it: nothing of it runs. The command line lets only this through."""


# One commit point


def test_a_kill_between_the_names_of_the_file_and_of_its_manifest(
    records: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("tabulate", records, *SCENARIO, "--out", tmp_path / "t.csv")
    move = draft._move

    def killed(source: Path, final: Path) -> None:
        if final.name.endswith("manifest.json"):
            raise Killed
        move(source, final)

    with monkeypatch.context() as patch:
        patch.setattr(draft, "_move", killed)
        with pytest.raises(Killed):
            tool(*command)
    assert (tmp_path / "t.csv").exists() and not (tmp_path / "t.csv.manifest.json").exists()
    assert "up to date" in good(tool(*command)).out
    assert _names(tmp_path) == {"records.csv", "t.csv", "t.csv.manifest.json"}


def test_files_on_another_disk_are_copied(tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace, far = os.replace, tmp_path / "far"

    def other_disk(source: Any, final: Any) -> None:
        if Path(final).parent == far and Path(source).parent != far:
            raise OSError(18, "Invalid cross-device link")
        replace(source, final)

    far.mkdir()
    command = ("protect", "round", tables, *SCENARIO, "--values", far / "v.csv", "--out", tmp_path / "r.csv")
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", other_disk)
        good(tool(*command))
    assert _names(far) == {"v.csv"} and "up to date" in good(tool(*command)).out
    (far / "v.csv").write_text("changed")
    assert "no longer" in good(tool(*command), code=2).err


@pytest.mark.parametrize("lost", [False, True])
def test_files_of_an_older_result_go_with_it(lost: bool, tmp_path: Path) -> None:
    out = tmp_path / "out"

    def run(seed: int, *names: str) -> None:
        def work(at: lifecycle.Workplace) -> lifecycle.Made[Told]:
            for name in names:
                with private_file(at.path / name) as stream:
                    stream.write(b"%d" % seed)
            return lifecycle.Made(Told(seed), names, replaces=["secret", "figures/b"])

        made = manifest.Manifest("a test", {"seed": seed}, {})
        lifecycle.in_folder(made, Told, work, out=out, overwrite=seed > 1)

    run(1, "data", "secret", "figures/a", "figures/b")
    assert _files(out) == {"data", "secret", "figures/a", "figures/b", "manifest.json"}
    if lost:
        (out / "manifest.json").write_text("damaged")
    run(2, "data", "figures/a")
    assert _files(out) == {"data", "figures/a", "manifest.json"}
    assert (out / "data").read_text() == (out / "figures" / "a").read_text() == "2"


# Rooms, and who may clear them away


def test_what_killed_runs_left_is_removed_and_nothing_else(records: Path, tmp_path: Path) -> None:
    dead, alive, mine = tmp_path / ".glasshouse-dead", tmp_path / ".glasshouse-alive", tmp_path / ".mine"
    for folder in (dead, alive, mine):
        folder.mkdir()
        (folder / "half.csv").write_text("half")
    (tmp_path / ".glasshouse-half").write_text("half")
    with rooms.locked(alive, "not expected"):
        good(tool("tabulate", records, *SCENARIO, "--out", tmp_path / "t.csv"))
        assert _names(tmp_path) == {"records.csv", "t.csv", "t.csv.manifest.json", alive.name, mine.name}
        assert (alive / "half.csv").exists()


@pytest.mark.parametrize("single", [True, False], ids=["a file", "a folder"])
def test_unfinished_work_does_not_follow_links(single: bool, tables: Path, tmp_path: Path) -> None:
    """Whoever can write beside the output could have it drafted, for them to read, in a folder of their own."""
    theirs = tmp_path / "theirs"
    theirs.mkdir(mode=0o755)
    out = tmp_path / "shared" / ("t.csv" if single else "rebuilt")
    room = draft.room_of(out) if single else out / "ledger"
    room.parent.mkdir(parents=True)
    room.symlink_to(theirs)
    protect = ("protect", "round", tables, *SCENARIO, "--base", 3, "--out", out)
    rebuild = ("reconstruct", tables, *SCENARIO, "--workers", 1, "--out", out)
    said = good(tool(*(protect if single else rebuild)), code=2).err
    assert "is no folder of yours" in said or "files that are not ours" in said
    assert not _names(theirs) and theirs.stat().st_mode & 0o777 == 0o755
    room.unlink()
    room.mkdir()
    good(tool(*(protect if single else rebuild)))


def test_two_runs_do_not_write_one_file(records: Path, tmp_path: Path) -> None:
    out = tmp_path / "t.csv"
    room = draft.room_of(out)
    room.mkdir()
    with rooms.locked(room, "not expected"):
        said = good(tool("tabulate", records, *SCENARIO, "--out", out), code=2).err
    assert "another run is writing" in said and not out.exists()
    good(tool("tabulate", records, *SCENARIO, "--out", out))


def test_a_lock_of_a_file_that_is_gone_is_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock, flock = tmp_path / "lock", fcntl.flock

    def removed_first(handle: int, how: int) -> None:
        lock.unlink()
        flock(handle, how)

    monkeypatch.setattr(fcntl, "flock", removed_first)
    assert rooms.held(lock) is None


def test_a_passing_folder_goes_and_takes_the_dead_with_it(tmp_path: Path) -> None:
    (tmp_path / ".glasshouse-dead").mkdir()
    with rooms.passing_folder(tmp_path) as one, rooms.passing_folder(tmp_path) as other:
        assert one != other and not any(one.iterdir()) and len(_names(tmp_path)) == 2
    assert not _names(tmp_path)


# A secure draw is never repeated in silence


def test_a_secure_release_is_drawn_once(tables: Path) -> None:
    good(tool(*_noise(tables)))
    out = tables.with_name("noisy.csv")
    before = out.read_bytes()
    assert "up to date" in good(tool(*_noise(tables))).out
    assert "spend its privacy budget twice" in good(tool(*_noise(tables, "--overwrite")), code=2).err
    assert out.read_bytes() == before
    out.unlink()
    assert "spend its privacy budget twice" in good(tool(*_noise(tables)), code=2).err
    out.with_name("noisy.csv.manifest.json").unlink()  # as the sentence says
    good(tool(*_noise(tables)))


def test_another_version_does_not_draw_again(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good(tool(*_noise(tables)))
    monkeypatch.setattr(manifest, "code_hash", lambda: "another")
    assert "spend its privacy budget twice" in good(tool(*_noise(tables, "--overwrite")), code=2).err
    good(tool(*_noise(tables, "--overwrite", "--tables", "W1")))  # another release, with its own account


@contextmanager
def unreadable(name: str) -> Iterator[None]:
    """Files of this name cannot be read: the disk fails."""
    usual = Path.read_bytes

    def read(path: Path) -> bytes:
        if path.name == name:
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        return usual(path)

    with pytest.MonkeyPatch.context() as failing:
        failing.setattr(Path, "read_bytes", read)
        yield


def test_a_manifest_that_cannot_be_read_lets_nobody_draw_again(tables: Path) -> None:
    """A disk that failed was taken for a manifest that says nothing: with --overwrite the budget was spent twice."""
    good(tool(*_noise(tables)))
    out = tables.with_name("noisy.csv")
    before = out.read_bytes()
    with unreadable("noisy.csv.manifest.json"):
        for more in ((), ("--overwrite",)):
            assert "cannot be read (Input/output error)" in good(tool(*_noise(tables, *more)), code=2).err
    assert "up to date" in good(tool(*_noise(tables))).out
    manifest.manifest_path(out).write_text("{")
    for more in ((), ("--overwrite",)):
        assert "is damaged, and may have said" in good(tool(*_noise(tables, *more)), code=2).err
    assert out.read_bytes() == before


def test_a_run_whose_description_cannot_be_read_is_not_thrown_away(tmp_path: Path) -> None:
    """Another command in the folder of an unfinished run is refused; it is not begun because a disk failed."""
    ledger = Ledger(tmp_path / "out" / "ledger", "another")
    ledger.begin({})
    ledger.put(Entry("1", Notes(1, 0.0, 0.0, 1, {}), {}))

    def run() -> None:
        made = manifest.Manifest("a test", {}, {})
        lifecycle.in_folder(made, Told, lambda _: pytest.fail("begun"), out=tmp_path / "out", overwrite=False)

    with unreadable("run.json"):
        with pytest.raises(MachineFailed, match=r"run\.json: cannot be read"):
            run()
        with pytest.raises(MachineFailed, match=r"run\.json: cannot be read"):
            peek(ledger.folder)
    with pytest.raises(manifest.Occupied, match="holds an unfinished run"):
        run()
    assert ledger.finished() == {"1"}


@pytest.mark.parametrize("single", [True, False])
def test_a_committed_result_whose_journal_cannot_be_read_is_kept(
    single: bool, tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tables.with_name("noisy.csv" if single else "county")
    command = _noise(tables) if single else ["synthesize", "--persons", 60, "--out", out]
    with monkeypatch.context() as killed:
        killed.setattr(draft, "settle", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
        tool(*command)
    with unreadable(rooms.JOURNAL):
        assert "cannot be read (Input/output error); run the same command again" in good(tool(*command), code=2).err
    assert "up to date" in good(tool(*command)).out


def test_a_manifest_that_cannot_be_read_is_not_called_another_s(tmp_path: Path) -> None:
    """Found by the fault harness: `compare` called it none of ours, and kept that as the answer of a setting."""
    county = tmp_path / "county"
    good(tool("synthesize", "--persons", 60, "--out", county))
    with unreadable("manifest.json"):
        with pytest.raises(MachineFailed, match="cannot be read"):
            read_manifest(county)
        ended = good(tool("synthesize", "--persons", 60, "--out", county), code=2)
    assert "cannot be read (Input/output error)" in ended.err and "not a manifest" not in ended.err


@pytest.mark.parametrize("foreign", [
    "[1]", "3", "{", "[" * 100_000, '{"name": "An app", "start_url": "/"}', '{"inputs": [1]}',
    '{"command": "synthesize"}',
    '{"command": "a", "key": "b", "parameters": {}, "inputs": {"x": 1}, "versions": {}, "counts": {}}',
    '{"command": "a", "key": "b", "parameters": {}, "inputs": {}, "versions": {}, "counts": {}, "outputs": ["x"]}',
])  # fmt: skip
def test_a_manifest_of_somebody_else(foreign: str, tables: Path, tmp_path: Path) -> None:
    """Others write files called manifest.json, too: none of them is a bug of ours, and none is taken for ours."""
    county = tmp_path / "county"
    county.mkdir()
    (county / "manifest.json").write_text(foreign)
    assert read_manifest(county) == {}
    command = ("synthesize", "--persons", 60, "--out", county)
    assert "not a manifest of ours" in good(tool(*command), code=2).err
    assert "holds no run of ours" in good(tool("status", county), code=2).err
    linked = ("reidentify", county, "--truth", tables, "--published", tables, "--attacker", tables, *SCENARIO)
    assert "no finished reconstruction" in good(tool(*linked, "--out", tmp_path / "risk"), code=2).err
    good(tool(*command, "--overwrite"))
    rounded = ("protect", "round", tables, *SCENARIO, "--base", 3, "--out", tmp_path / "r.csv")
    (tmp_path / "r.csv.manifest.json").write_text(foreign)
    good(tool(*rounded))
    (tmp_path / "r.csv.manifest.json").write_text(foreign)
    assert "is not (or no longer) the result" in good(tool(*rounded), code=2).err


def test_a_draw_that_a_kill_has_lost_is_told(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tables.with_name("noisy.csv")
    room = draft.room_of(out)
    room.mkdir()
    (room / lifecycle.DRAWN).touch()
    (room / out.name).write_text("half")
    good(tool(*_noise(tables)))
    assert lifecycle.DRAWN_ANEW in json.loads(manifest.manifest_path(out).read_text())["counts"]["notes"]


# Inputs are those that were hashed


def _swap(path: Path, other: Path) -> None:
    """Another file in its place, and the old one back again."""
    aside = path.with_name("aside")
    path.rename(aside)
    other.rename(path)
    path.rename(other)
    aside.rename(path)


CHANGES: dict[str, Callable[[Path, Path], object]] = {
    "replaced": lambda path, other: other.replace(path),
    "written": lambda path, other: path.write_bytes(other.read_bytes()),
    "put back": _swap,
    "removed": lambda path, other: path.unlink(),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("which", ["records.csv", "scenario/scenario.toml"])
def test_an_input_that_changes_while_it_is_used(
    change: str, which: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"
    shutil.copytree(TOY, own)
    other = tmp_path / "other"
    other.write_bytes((own / which).read_bytes() + b"\n")
    told = manifest.Manifest.told

    def meanwhile(self: manifest.Manifest, counts: Any) -> Any:
        CHANGES[change](own / which, other)
        return told(self, counts)

    command = ("tabulate", own / "records.csv", "--scenario", own / "scenario", "--out", tmp_path / "t.csv")
    with monkeypatch.context() as patch:
        patch.setattr(manifest.Manifest, "told", meanwhile)
        ended = good(tool(*command), code=2)
    assert "was changed or replaced while it was in use" in ended.err
    assert not (tmp_path / "t.csv").exists() and not (tmp_path / "t.csv.manifest.json").exists()


def test_a_scenario_that_changes_between_reading_and_hashing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "own"
    shutil.copytree(TOY, own)
    text = own / "scenario" / "scenario.toml"
    hashed = Seen.hashed

    def changed_first(self: Seen, path: Path) -> str:
        if path.name == text.name:
            text.write_text(text.read_text() + "\n")
        return hashed(self, path)

    monkeypatch.setattr(Seen, "hashed", changed_first)
    ended = tool("tabulate", own / "records.csv", "--scenario", own / "scenario", "--out", tmp_path / "t.csv")
    assert ended.code == 2 and "was changed or replaced" in ended.err


def test_no_unit_is_kept_of_an_input_that_changed(tmp_path: Path) -> None:
    given = tmp_path / "given"
    given.write_text("1")
    seen = Seen([given])
    ledger = Ledger(tmp_path / "ledger", "key", seen.unchanged)
    ledger.begin({})
    ledger.put(Entry("1", Notes(), {}))
    given.write_text("2")
    with pytest.raises(InputError, match="was changed or replaced"):
        ledger.put(Entry("2", Notes(), {}))
    assert ledger.finished() == {"1"}


def test_a_codebook_that_is_found_is_an_input(records: Path, tmp_path: Path) -> None:
    book = tmp_path / "records_codebook.txt"
    assert "codebook of data" not in inputs_of({"data": records})
    book.write_text("Source code: P1 NHGIS code: H7V")
    assert inputs_of({"data": records})["codebook of data"] == book
    assert "codebook of data" not in inputs_of({"data": records, "codebook": book})


# What computes is part of the key


@pytest.mark.parametrize("library", ["highspy", "ortools", "numpy", "scipy", "numba", "polars", "opendp"])
def test_another_version_is_another_run_and_named(
    library: str, tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("reconstruct", tables, *SCENARIO, "--workers", 1, "--out", tmp_path / "rebuilt")
    versions = manifest.versions()
    begun = manifest.Manifest("reconstruct", {}, {})
    key = begun.key()
    with monkeypatch.context() as patch:
        patch.setattr(manifest, "versions", lambda: versions | {library: "0.0.1"})
        assert begun.key() != key
        ledger = Ledger(tmp_path / "rebuilt" / "ledger", begun.key())
        ledger.begin(begun.about())
    said = good(tool(*command), code=2).err
    assert f"{library} 0.0.1, now {versions[library]}" in said and "unfinished run" in said


def test_the_manifest_of_a_single_file_names_the_version_that_differs(
    tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = manifest.versions()
    monkeypatch.setattr(manifest, "versions", lambda: versions | {"polars": "0.0.1"})
    said = good(tool("tabulate", tmp_path / "records.csv", *SCENARIO, "--out", tables), code=2).err
    assert f"polars {versions['polars']}, now 0.0.1" in said
