"""What is finished? One file for each unit, whole or not there."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import Any

import polars as pl

from glasshouse.engine.manifest import FORMAT_VERSION
from glasshouse.engine.plain import Json, Plain, plain, read_json
from glasshouse.errors import GlasshouseBug, InputError, MachineFailed
from glasshouse.files.output import private_file, private_folder
from glasshouse.files.rooms import sweep

_UNIT = re.compile(r"[0-9A-Za-z]{1,100}")
_FINAL, _OPEN = ".unit", ".open"
UNDER_WAY = ".work"  # how a folder is called in which a unit is worked on, if a killed run is to be gone on with in it
_SEAL = b'{"sha256": "'  # an entry begins so; then comes the hash of every byte behind it
_HASH = slice(len(_SEAL), len(_SEAL) + 64)


@dataclass(frozen=True)
class Refusal:
    """Why a unit was left out: in words, and the published numbers that cannot all be true."""

    reason: str
    cells: tuple[Plain, ...] = ()


@dataclass(frozen=True)
class Notes:
    """What is known of the work on one unit besides its rows."""

    places: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    process: int = 0  # which did it
    counts: Mapping[str, int] = field(default_factory=dict)
    clock: bool = False  # the wall clock stopped it: not final
    refused: Refusal | None = None
    bug: bool = False


@dataclass(frozen=True)
class Entry:
    """What one unit of work gave."""

    unit: str
    notes: Notes
    frames: Mapping[str, pl.DataFrame]


@dataclass(frozen=True)
class Peek:
    """How far a run is, told by the names of its files."""

    about: Json
    finished: int
    open: int
    last: float | None  # when the newest entry was written, in seconds since 1970


class Ledger:
    """The entries of one run, in a folder of its own. The key says what the run is: same key, same results.

    `sure` is asked before an entry is kept: it refuses if an input is no longer the file that the key is of.
    """

    def __init__(self, folder: Path, key: str, sure: Callable[[], None] = lambda: None) -> None:
        self.folder, self.key, self.sure = folder, key, sure

    def begin(self, about: Mapping[str, Any]) -> None:
        """Start, or go on where a run with the same key stopped. The entries of a run with another key are dropped."""
        try:
            with private_folder(self.folder):
                sweep(self.folder)
                paths = list(self.folder.iterdir())
                self.folder.chmod(0o700)
        except OSError as error:
            raise MachineFailed(f"{self.folder}: cannot keep the finished units there ({error.strerror})") from None
        told = _told(self.folder)
        other = told.get("key", self.key) != self.key  # a description that is lost proves nothing: see finished
        for path in paths:
            if other and path.suffix in (_FINAL, _OPEN):
                path.unlink()
            elif other and path.suffix == UNDER_WAY:
                shutil.rmtree(path)
        if told.get("key") == self.key:
            self.tell(resumed=told.get("resumed", 0) + 1)
            return
        self._write({"started": datetime.now(UTC).isoformat(timespec="seconds"), "resumed": 0, **about})

    def tell(self, **about: Any) -> None:
        """Add to the description of the run, such as the number of units once it is known."""
        told, path = _told(self.folder), _description(self.folder)
        if not told and path.exists():  # the disk, not we
            raise MachineFailed(f"{path}: cannot be read any more; run the command again, it keeps what is finished")
        if told.get("key") != self.key:
            raise GlasshouseBug(f"{self.folder}: the ledger was told something before it began")
        self._write(told | about)

    def put(self, entry: Entry, *, final: bool = True) -> None:
        """Keep what a unit gave. What is not final is used if nothing better comes, but does not finish the unit."""
        self.sure()
        with private_file(self._path(entry.unit, _FINAL if final else _OPEN)) as stream:
            stream.write(packed(entry, self.key))
        if final:
            self._path(entry.unit, _OPEN).unlink(missing_ok=True)

    def finished(self) -> set[str]:
        """The units with a whole final entry; a file that is damaged or of another run is removed, and done again."""
        whole = set()
        for path in self.folder.glob("*" + _FINAL):
            if _opened(path, self.key) is None:
                path.unlink(missing_ok=True)
            else:
                whole.add(path.stem)
        return whole

    def held(self) -> list[str]:
        """The units with any entry, final or not, once all are done; `read` refuses one that was damaged since."""
        return sorted({path.stem for kind in (_FINAL, _OPEN) for path in self.folder.glob("*" + kind)})

    def read(self, unit: str) -> Entry:
        """What a unit gave: the final entry if there is one."""
        final = self._path(unit, _FINAL)
        path = final if final.exists() else self._path(unit, _OPEN)
        entry = _unpacked(path, self.key)
        if entry is None:  # it was whole when it was put there: a disk, not the unit
            raise MachineFailed(
                f"{path}: this finished unit is missing, damaged or of another run; "
                "run the command again, it does this unit anew and keeps the others"
            )
        return entry

    def forget(self) -> None:
        """Remove the folder: the results are elsewhere by now."""
        with suppress(FileNotFoundError):
            shutil.rmtree(self.folder)

    def _path(self, unit: str, kind: str) -> Path:
        if not _UNIT.fullmatch(unit):
            raise GlasshouseBug(f"{unit!r} cannot name a unit of work; expected the letters and digits of a geocode")
        return self.folder / (unit + kind)

    def _write(self, about: Mapping[str, Any]) -> None:
        said = {**about, "key": self.key, "format_version": FORMAT_VERSION}
        with private_file(_description(self.folder)) as stream:
            stream.write((json.dumps(said, indent=2, sort_keys=True) + "\n").encode())


def peek(folder: Path) -> Peek | None:
    """How far is the run in this folder? Nothing of its entries is read; None if there is no run."""
    if not _description(folder).is_file():
        return None
    about = _told(folder)
    if not about:
        raise InputError(f"{_description(folder)}: damaged; run the command again, it keeps what is finished")
    kinds: dict[str, set[str]] = {_FINAL: set(), _OPEN: set()}
    last: float | None = None
    for path in folder.iterdir():
        if path.suffix in kinds and _UNIT.fullmatch(path.stem):
            with suppress(FileNotFoundError):  # the run goes on while we look
                last = max(path.stat().st_mtime, last or 0.0)
                kinds[path.suffix].add(path.stem)
    return Peek(about, len(kinds[_FINAL]), len(kinds[_OPEN] - kinds[_FINAL]), last)


def _description(folder: Path) -> Path:
    return folder / "run.json"


def _told(folder: Path) -> Json:
    """The description of the run; nothing if there is none, or it is damaged."""
    return read_json(_description(folder)) or {}


def packed(entry: Entry, key: str) -> bytes:
    """The bytes of an entry: a line of JSON, then the frames. Work done again gives the same bytes."""
    frames = []
    for name, frame in sorted(entry.frames.items()):
        stream = BytesIO()
        frame.rechunk().write_ipc(stream, compression="zstd")
        frames.append((name, stream.getvalue()))
    header = {
        "key": key,
        "unit": entry.unit,
        "notes": plain(entry.notes),
        "frames": [[name, len(rows)] for name, rows in frames],
    }
    line = b'", ' + json.dumps(header, sort_keys=True).encode()[1:] + b"\n"
    sealed = b"".join([line, *(rows for _, rows in frames)])
    return _SEAL + hashlib.sha256(sealed).hexdigest().encode() + sealed


def _opened(path: Path, key: str) -> tuple[Json, bytes] | None:
    """The header and the frames of an entry; None if a byte is wrong or it is not of this run."""
    try:
        return opened(path.read_bytes(), key, path.stem)
    except OSError:
        return None


def opened(packed: bytes, key: str, unit: str) -> tuple[Json, bytes] | None:
    """The same of the bytes of an entry."""
    sealed = memoryview(packed)[_HASH.stop :]
    if packed[: _HASH.start] != _SEAL or packed[_HASH] != hashlib.sha256(sealed).hexdigest().encode():
        return None
    line, _, frames = packed.partition(b"\n")
    header = json.loads(line)
    if (header["key"], header["unit"]) != (key, unit) or sum(size for _, size in header["frames"]) != len(frames):
        return None
    return header, frames


def _unpacked(path: Path, key: str) -> Entry | None:
    opened = _opened(path, key)
    if opened is None:
        return None
    header, packed = opened
    stream, frames = BytesIO(packed), {}
    for name, size in header["frames"]:
        frames[name] = pl.read_ipc(BytesIO(stream.read(size)))
    return Entry(header["unit"], _notes(header["notes"]), frames)


def _notes(told: Json) -> Notes:
    refused = told.get("refused")
    return Notes(**told | {"refused": refused and Refusal(refused["reason"], tuple(refused["cells"]))})
