"""May this folder be written to, and is the result there already? Same key: go on, or done. Another: refused."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from glasshouse.engine.draft import commit, committed, settle
from glasshouse.engine.ledger import UNDER_WAY, Ledger, Peek, peek
from glasshouse.engine.manifest import Manifest, Occupied, said_by, sha256
from glasshouse.engine.plain import Json
from glasshouse.errors import InputError, MachineFailed
from glasshouse.files.output import private_folder
from glasshouse.files.rooms import LOCK, UNFINISHED, busy, locked, refuse_strange, sweep

LEDGER = "ledger"  # where units are kept until the result is whole, and the draft of the result
DRAFT = "draft"
MANIFEST = "manifest.json"
_OURS = re.compile(
    r"lock|moves\.json|draft|run\.json|[0-9A-Za-z]+\.(unit|open|work)|\.glasshouse-.*"
    r"|\.(run\.json|[0-9A-Za-z]+\.(unit|open))\.\w+"  # what was killed before everything unfinished had one name
)


@dataclass(frozen=True)
class Folder:
    """A folder of results: data files, `manifest.json` once they are whole, and a ledger until then."""

    path: Path
    manifest: Manifest

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.path / LEDGER, self.manifest.key(), self.manifest.unchanged)

    @property
    def draft(self) -> Path:
        """Where the files of the result lie until all of them are whole."""
        return self.path / LEDGER / DRAFT

    def done(self, *, overwrite: bool) -> Json | None:
        """What was said of the result, if it is there and whole. Refuses a folder of something else, untouched."""
        key = self.manifest.key()  # reads every input, before anything is written
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"{self.path} is a file; expected a folder to write into")
        for role, path in self.manifest.inputs.items():
            if self.path.is_dir() and path.absolute().parent.samefile(self.path):
                raise InputError(f"{path} is an input of this command ({role}); name another folder to write into")
        self._refuse_foreign_ledger()
        if committed(self.path / LEDGER):
            with self._locked():
                pass  # the result of a run that was killed at its end has its names now
        running = _peeked(self.path / LEDGER)
        if overwrite:
            if running is None and not (self.path / MANIFEST).is_file():
                self._refuse_foreign_files()
            return None
        told = read_manifest(self.path)
        if told == {}:
            raise Occupied(f"{self.path / MANIFEST}: not a manifest of ours; remove it, or add --overwrite")
        if told is not None:
            if told["key"] != key:
                raise Occupied(
                    f"{self.path} holds the result of another run ({self.manifest.differs(told)}); "
                    "name another folder or add --overwrite"
                )
            whole = all(
                (self.path / name).is_file() and sha256(self.path / name) == value
                for name, value in told.get("outputs", {}).items()
            )
            if whole and told.get("complete"):
                if (self.path / LEDGER).is_dir() and not busy(self.path / LEDGER):
                    with self._locked():  # of a run that was killed right after its last word
                        self.ledger.forget()
                return told
            return None
        if running is not None and running.about.get("key", key) != key:
            raise Occupied(
                f"{self.path} holds an unfinished run of something else ({self.manifest.differs(running.about)}; "
                f"{running.finished:,} units kept); run that to its end, name another folder, or add --overwrite"
            )
        if running is None:
            self._refuse_foreign_files()
        return None

    def _refuse_foreign_files(self) -> None:
        foreign = [path.name for path in self.path.iterdir()] if self.path.is_dir() else []
        if [name for name in foreign if name != LEDGER and not name.startswith(UNFINISHED)]:
            raise InputError(f"{self.path} is not empty and holds no run of ours; name another folder")

    def _refuse_foreign_ledger(self) -> None:
        folder = self.path / LEDGER
        foreign = [path.name for path in folder.iterdir() if not _OURS.fullmatch(path.name)] if folder.is_dir() else []
        if foreign:
            raise InputError(f"{folder} holds files that are not ours ({foreign[0]}); name another folder")

    @contextmanager
    def working(self, about: Mapping[str, Any], *, overwrite: bool) -> Iterator[Ledger]:
        """The ledger, begun or gone on with; no other run may work in the folder meanwhile.

        A run that ends badly before its first unit is done leaves nothing behind, unless it has written other files.
        """
        ledger = self.ledger
        refuse_strange(ledger.folder)
        with private_folder(ledger.folder), self._locked():
            try:
                sweep(self.path)
                shutil.rmtree(self.draft, ignore_errors=True)
                if overwrite:
                    _empty(ledger.folder)
                ledger.begin(about)
                with private_folder(self.draft):
                    yield ledger
            except BaseException:
                if committed(ledger.folder):
                    raise  # naming the files failed: the next run goes on
                shutil.rmtree(self.draft, ignore_errors=True)
                units = any(path.suffix in (".unit", ".open", UNDER_WAY) for path in ledger.folder.iterdir())
                ours = (self.path / MANIFEST).is_file()  # the folder is known as ours without a ledger
                if not units and (ours or [path.name for path in self.path.iterdir()] == [LEDGER]):
                    ledger.forget()
                raise

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """No other run works here meanwhile; a result that a killed run left in its draft gets its names."""
        with locked(self.path / LEDGER, f"another run is working in {self.path}; wait for it (glasshouse status)"):
            if committed(self.path / LEDGER):
                settle(self.path / LEDGER)
            yield

    def write(
        self, counts: Mapping[str, Any], outputs: list[str], replaces: Iterable[str] = (), *, cpu: float, complete: bool
    ) -> None:
        """The last word: what the data files are, what they were made from, and the seconds of all workers.

        With it the draft becomes the result; the files of an older one go.
        """
        said = self.manifest.told(counts)
        said |= {
            "cpu_seconds": round(said["cpu_seconds"] + cpu, 3),
            "outputs": {name: sha256(self.draft / name) for name in sorted(outputs)},
            "complete": complete,
        }
        self.manifest.write(self.draft / MANIFEST, said)
        files = sorted(path for path in self.draft.rglob("*") if path.is_file() and path != self.draft / MANIFEST)
        moves = [(path, self.path / path.relative_to(self.draft)) for path in [*files, self.draft / MANIFEST]]
        newer = {final for _, final in moves}
        gone = [path for path in (*self._older(), *(self.path / name for name in replaces)) if path not in newer]
        commit(self.path / LEDGER, moves, [self.path / MANIFEST, *gone])
        shutil.rmtree(self.draft)

    def _older(self) -> list[Path]:
        """The files of an older result of ours."""
        names = (read_manifest(self.path) or {}).get("outputs", {})
        inside = [Path(name) for name in names if ".." not in Path(name).parts and not Path(name).is_absolute()]
        return [self.path / name for name in inside]


def _empty(ledger: Path) -> None:
    for path in ledger.iterdir():
        if path.name != LOCK and _OURS.fullmatch(path.name) and path.is_file():
            path.unlink()
        elif path.suffix == UNDER_WAY:
            shutil.rmtree(path)


def _peeked(ledger: Path) -> Peek | None:
    """What a ledger says of itself; a damaged description says nothing, and beginning again mends it."""
    try:
        return peek(ledger)
    except MachineFailed:
        raise
    except InputError:
        return Peek({}, 0, 0, None)


def read_manifest(folder: Path) -> Json | None:
    """What a finished folder says of itself: None if it says nothing, nothing if its manifest is none of ours."""
    return said_by(folder / MANIFEST)
