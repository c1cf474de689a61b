"""How does the N-th call of the system go wrong? By hooks in this process: a kill, a full disk, an unreadable file.

What Python opens, makes, renames and removes passes an audit hook; fsync, reads and writes are wrapped. Here fsync is
counted and not done: what a killed process wrote is there, only a machine that fails loses it. Libraries in other
languages are not seen: `tests.test_faults` asks strace whether any of them renames or removes something.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import signal
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

KILL, FULL, UNREADABLE = "kill", "full", "unreadable"
CALLS = {
    KILL: {"create", "write", "fsync", "rename", "remove", "rmdir", "mkdir", "chmod"},
    FULL: {"create", "write", "fsync", "rename", "mkdir"},
    UNREADABLE: {"open", "read"},
}
_EVENTS = {"os.rename": "rename", "os.remove": "remove", "os.rmdir": "rmdir", "os.mkdir": "mkdir", "os.chmod": "chmod"}
_real_open = io.open


class Faults:
    """Counts the calls of one kind under a folder; the one of this number goes wrong, and with `on` all after it."""

    def __init__(self, kind: str, number: int, root: Path, *, on: bool) -> None:
        self.kind, self.number, self.root, self.on = kind, number, f"{root}/", on
        self.calls: list[str] = []

    def install(self) -> None:
        sys.addaudithook(self._hook)
        os.fsync = self._fsync
        builtins.open = io.open = self._open  # type: ignore[assignment]

    def met(self, call: str) -> None:
        """A call is about to be made."""
        if call not in CALLS[self.kind]:
            return
        self.calls.append(call)
        if len(self.calls) == self.number or (self.on and 0 < self.number < len(self.calls)):
            if self.kind == KILL:
                os.kill(os.getpid(), signal.SIGKILL)
            code = errno.ENOSPC if self.kind == FULL else errno.EIO
            raise OSError(code, os.strerror(code))

    def inside(self, path: object) -> bool:
        if isinstance(path, int):
            path = os.readlink(f"/proc/self/fd/{path}")
        return isinstance(path, (str, os.PathLike)) and os.path.abspath(path).startswith(self.root)

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if event in _EVENTS:
            if self.inside(args[0]):  # not what is compiled and kept beside the code
                self.met(_EVENTS[event])
        elif event == "open" and isinstance(args[0], (str, os.PathLike)) and self.inside(args[0]):
            path, _, flags = args
            if flags & os.O_CREAT:
                self.met("create")
            elif os.path.isfile(path):
                self.met("open")

    def _fsync(self, handle: int) -> None:
        self.met("fsync")

    def _open(
        self, file: Any, mode: str = "r", buffering: int = -1, encoding: str | None = None, errors: str | None = None,
        newline: str | None = None, closefd: bool = True, opener: Callable[[str, int], int] | None = None,
    ) -> Any:  # fmt: skip
        """As `open`, with reads and writes that are counted."""
        if not self.inside(file):
            return _real_open(file, mode, buffering, encoding, errors, newline, closefd, opener)
        raw = _Counted(file, mode.replace("b", "").replace("t", ""), closefd, opener)
        raw.faults = self
        if stat.S_ISDIR(os.fstat(raw.fileno()).st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(file))
        if buffering == 0:
            return raw
        layers: dict[bool, Any] = {True: io.BufferedWriter, False: io.BufferedReader}
        kind = io.BufferedRandom if "+" in mode else layers[raw.writable()]
        buffered = kind(raw)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, io.text_encoding(encoding), errors, newline)


class _Counted(io.FileIO):
    faults: Faults

    def write(self, data: Any) -> int:
        self.faults.met("write")
        return super().write(data)

    def readinto(self, buffer: Any) -> int:
        self.faults.met("read")
        return super().readinto(buffer)

    def read(self, size: int = -1) -> bytes:
        self.faults.met("read")
        return super().read(size)

    def readall(self) -> bytes:
        self.faults.met("read")
        return super().readall()
