"""May this folder be written to, and is the result there already? Same key: go on, or done. Another: refused."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from glasshouse.engine.ledger import Ledger, Peek, peek
from glasshouse.engine.manifest import Manifest, Occupied, sha256
from glasshouse.engine.plain import Json
from glasshouse.errors import InputError
from glasshouse.files.output import private_file, private_folder

LEDGER = "ledger"  # where units are kept until the result is whole
LOCK = "lock"
MANIFEST = "manifest.json"
_OURS = re.compile(
    r"lock|run\.json|[0-9A-Za-z]+\.(unit|open)|\.run\.json\.\w+|\.[0-9A-Za-z]+\.(unit|open)\.\w+|\.glasshouse-.*"
)
_HALF = re.compile(
    r"\.[\w-]+\.(parquet|json|svg|png|csv|html|xlsx)\.\w{8}"
)  # what a kill leaves of a file half written


@dataclass(frozen=True)
class Folder:
    """A folder of results: data files, `manifest.json` once they are whole, and a ledger until then."""

    path: Path
    manifest: Manifest

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.path / LEDGER, self.manifest.key())

    def done(self, *, overwrite: bool) -> Json | None:
        """What was said of the result, if it is there and whole. Refuses a folder of something else, untouched."""
        key = self.manifest.key()  # reads every input, before anything is written
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"{self.path} is a file; expected a folder to write into")
        for role, path in self.manifest.inputs.items():
            if self.path.is_dir() and path.absolute().parent.samefile(self.path):
                raise InputError(f"{path} is an input of this command ({role}); name another folder to write into")
        self._refuse_foreign_ledger()
        running = _peeked(self.path / LEDGER)
        if overwrite:
            if running is None and not (self.path / MANIFEST).is_file():
                self._refuse_foreign_files()
            return None
        told = read_manifest(self.path)
        if told is not None:
            if told.get("key") != key:
                raise Occupied(
                    f"{self.path} holds the result of another run ({self.manifest.differs(told)}); "
                    "name another folder or add --overwrite"
                )
            whole = all(
                (self.path / name).is_file() and sha256(self.path / name) == value
                for name, value in told.get("outputs", {}).items()
            )
            if whole and told.get("complete"):
                if not busy(self.path / LEDGER):
                    self.ledger.forget()  # of a run that was killed right after its last word
                return told
            return None
        if running is not None and running.about.get("key", key) != key:
            raise Occupied(
                f"{self.path} holds an unfinished run of something else ({running.finished:,} units kept), "
                "or of another version of glasshouse; "
                "run that to its end, name another folder, or add --overwrite"
            )
        if running is None:
            self._refuse_foreign_files()
        return None

    def _refuse_foreign_files(self) -> None:
        foreign = [path.name for path in self.path.iterdir()] if self.path.is_dir() else []
        if [name for name in foreign if name != LEDGER and not _HALF.fullmatch(name)]:
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
        with private_folder(ledger.folder), _locked(ledger.folder):
            for path in ledger.folder.glob(".glasshouse-*"):  # sorted runs of an input, left behind by a kill
                shutil.rmtree(path, ignore_errors=True)
            for path in self.path.iterdir():
                if _HALF.fullmatch(path.name):
                    path.unlink()
            if overwrite:
                _empty(ledger.folder)
            ledger.begin(about)
            try:
                yield ledger
            except BaseException:
                units = any(path.suffix in (".unit", ".open") for path in ledger.folder.iterdir())
                ours = (self.path / MANIFEST).is_file()  # the folder is known as ours without a ledger
                if not units and (ours or [path.name for path in self.path.iterdir()] == [LEDGER]):
                    ledger.forget()
                raise

    def make_room(self) -> None:
        """Remove an older result of ours, now that a newer one is about to be written."""
        with suppress(InputError):  # a manifest that cannot be read names nothing
            told = read_manifest(self.path) or {}
            (self.path / MANIFEST).unlink(missing_ok=True)  # first: it would vouch for files that change
            if {"key", "command", "format_version"} <= set(told):
                for name in told.get("outputs", {}):
                    if ".." not in Path(name).parts and not Path(name).is_absolute():
                        (self.path / name).unlink(missing_ok=True)

    def remove(self, outputs: Iterable[str]) -> None:
        """Take back what was written of a result that did not become whole."""
        for name in outputs:
            (self.path / name).unlink(missing_ok=True)

    def write(self, counts: Mapping[str, Any], outputs: list[str], *, cpu: float, complete: bool) -> None:
        """The last word: what the data files are, what they were made from, and the seconds of all workers."""
        said = self.manifest.told(counts)
        said |= {
            "cpu_seconds": round(said["cpu_seconds"] + cpu, 3),
            "outputs": {name: sha256(self.path / name) for name in sorted(outputs)},
            "complete": complete,
        }
        with private_file(self.path / MANIFEST) as stream:
            stream.write((json.dumps(said, indent=2, sort_keys=True) + "\n").encode())


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the folder; the system lets go of it whenever and however this process ends."""
    handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(f"another run is working in {folder.parent}; wait for it (glasshouse status)") from None
        yield
    finally:
        os.close(handle)


def busy(folder: Path) -> bool:
    """Does a run hold the folder right now?"""
    if not (folder / LOCK).exists():
        return False
    try:
        with _locked(folder):
            return False
    except InputError:
        return True


def _empty(ledger: Path) -> None:
    for path in ledger.iterdir():
        if path.name != LOCK and _OURS.fullmatch(path.name):
            path.unlink()


def _peeked(ledger: Path) -> Peek | None:
    """What a ledger says of itself; a damaged description says nothing, and beginning again mends it."""
    try:
        return peek(ledger)
    except InputError:
        return Peek({}, 0, 0, None)


def read_manifest(folder: Path) -> Json | None:
    """What a finished folder says of itself."""
    path = folder / MANIFEST
    if not path.is_file():
        return None
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        told = None
    if not isinstance(told, dict):
        raise Occupied(f"{path}: not a manifest of ours; remove it, or add --overwrite")
    return told
