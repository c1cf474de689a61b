"""Is everything as it must be after a fault, and as if nothing had happened after the same command again?"""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from glasshouse.engine.lifecycle import DRAWN, DRAWN_ANEW
from glasshouse.files.rooms import JOURNAL, UNFINISHED
from tests.faults.commands import Command, begin, new_case, prepare
from tests.faults.inject import FULL, KILL, UNREADABLE
from tests.faults.server import Ended, Server

PUBLIC = "report-public.html"
Tree = dict[str, str]  # what lies in a folder: the hash of each file by its path, but for what may differ


@dataclass
class Bench:
    """Where commands are put to the test; how often each kind of fault was tried, by command."""

    root: Path
    server: Server
    tried: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        begin(self.root)

    def run(self, command: Command, case: Path, kind: str = KILL, number: int = 0) -> Ended:
        return self.server.run(
            command.arguments, case, kind, number, on=kind == FULL, rows=command.rows, keeps=command.keeps
        )

    def case(self, command: Command) -> tuple[Path, Tree]:
        """A folder to run the command in, and what lies there of an older result."""
        prepare(self.root, self.server, command.typed)
        case = new_case(self.root)
        if command.older:
            kept = self.root / f"older-{sha256(command.older.encode()).hexdigest()[:8]}"
            if not kept.exists():
                ended = self.server.run(command.older.split(), case, keeps=command.keeps)
                assert ended.code == 0, ended
                shutil.copytree(case / "new", kept)
            shutil.copytree(kept, case / "new", dirs_exist_ok=True)
        return case, tree(case)

    def trial(self, name: str, command: Command, kind: str, every: int = 1, first: int = 1) -> Iterator[str]:
        """Let every call of a command go wrong, one after the other, and run the same command after each.

        After each it says what was wrong, or nothing.
        """
        case, older = self.case(command)
        usual = self.run(command, case, kind)
        assert usual.code in (0, 1), usual
        whole = tree(case)
        for number in range(first, len(usual.calls) + 1, every):
            self.tried[name, kind] += 1
            try:
                self._fault(command, kind, number, older, whole, usual)
            except AssertionError as error:
                yield f"{name}: {kind} at call {number} of {len(usual.calls)} ({usual.calls[number - 1]}): {error}"
            else:
                yield ""

    def _fault(self, command: Command, kind: str, number: int, older: Tree, whole: Tree, usual: Ended) -> None:
        case, _ = self.case(command)
        ended = self.run(command, case, kind, number)
        left = tree(case)
        if kind == KILL:
            assert ended.code == -9, ended
        else:
            _one_sentence(ended, usual)
            if ended.code == usual.code:  # it could do without
                assert command.secure or left == whole
            unfinished = {_room(name) for name in left if f"/{UNFINISHED}" in name}
            assert all((case / room / JOURNAL).exists() for room in unfinished), unfinished
            assert not any((case / "tmp").iterdir())
        _whole_files(case, left, older, whole, secure=command.secure)
        assert not older or _has_one(case, left, older, whole)
        drawn = _drawn(case)
        again = self.run(command, case)
        assert again.code == usual.code, (ended, again)
        _modes(case)
        now = tree(case)
        if command.secure:
            assert set(now) == set(whole)
            _drawn_once(case, drawn)
        else:
            assert now == whole, (ended, again, set(now) ^ set(whole))


def tree(case: Path) -> Tree:
    """The files of a case; of manifests and times only that they are there."""
    found = {}
    for path in sorted(case.rglob("*")):
        name = str(path.relative_to(case))
        varies = name.endswith("manifest.json") or path.name == "timings.parquet"
        if path.is_file():
            found[name] = "" if varies else sha256(path.read_bytes()).hexdigest()
        elif not any(path.iterdir()) and name != "tmp":
            found[f"{name}/"] = ""
    return found


def _room(name: str) -> Path:
    """The unfinished folder that a file lies in."""
    parts = Path(name).parts
    depth = next(depth for depth, part in enumerate(parts, 1) if part.startswith(UNFINISHED))
    return Path(*parts[:depth])


def _one_sentence(ended: Ended, usual: Ended) -> None:
    """It says what went wrong in one line, and the exit code is that of bad input; or it could do without."""
    if ended.code == usual.code:
        return
    complaints = [line for line in ended.err.splitlines() if line.startswith("glasshouse: ")]
    assert ended.code == 2 and len(complaints) == 1 and "Traceback" not in ended.err, ended


def _unfinished(name: str) -> bool:
    return UNFINISHED in name or "/ledger/" in f"/{name}"


def _whole_files(case: Path, left: Tree, older: Tree, whole: Tree, *, secure: bool) -> None:
    """Whatever has its name is whole: of the older result or of the new one."""
    for name, digest in left.items():
        if _unfinished(name):
            continue
        if name.endswith("manifest.json"):
            json.loads((case / name).read_text())
        elif not name.endswith("/"):
            assert secure or digest in (older.get(name), whole.get(name)), name


def _has_one(case: Path, left: Tree, older: Tree, whole: Tree) -> bool:
    """The older result is there, or the new one, if only in a draft that is whole."""
    journal = any(path.name == JOURNAL for path in case.rglob(JOURNAL))
    return journal or any(all(left.get(name) == digest for name, digest in one.items()) for one in (older, whole))


def _drawn(case: Path) -> tuple[str, bool]:
    """Of a secure draw that is committed or done: its hash; else whether something was drawn."""
    out = case / "new" / "t.csv"
    room = out.with_name(UNFINISHED + out.name)
    draft = room / out.name if (room / JOURNAL).exists() and (room / out.name).exists() else out
    digest = sha256(draft.read_bytes()).hexdigest() if draft.exists() else ""
    return digest, (room / DRAWN).exists()


def _drawn_once(case: Path, drawn: tuple[str, bool]) -> None:
    """What was drawn and kept is not drawn again; what was drawn and lost is told."""
    digest, begun = drawn
    now, _ = _drawn(case)
    notes = json.loads((case / "new" / "t.csv.manifest.json").read_text())["counts"]["notes"]
    assert (DRAWN_ANEW in notes) == (begun and not digest)
    assert not digest or digest == now


def _modes(case: Path) -> None:
    """Everything is for the owner alone, but what is for everybody."""
    for path in (case / "new").rglob("*"):
        mode = stat.S_IMODE(os.lstat(path).st_mode)
        assert mode == (0o700 if path.is_dir() else 0o644 if path.name == PUBLIC else 0o600), (path, oct(mode))


KINDS = (KILL, FULL, UNREADABLE)
