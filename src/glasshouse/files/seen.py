"""Is this still the file that was hashed? A manifest must vouch for the bytes that were read.

A file is looked at when a command is called, before anything of it is read: which file it is (device and number), its
size, and when it and its entry last changed. It is hashed if it is still that file, and at the end it must be so
again. So whoever edits or replaces a file while a command runs, by accident or to deceive, and even if the old file
is put back, makes the command refuse. Not seen: a folder above it, or a link to it, that is exchanged and put back.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import NamedTuple

from glasshouse.errors import InputError


class Identity(NamedTuple):
    """What tells a file from any other, and from itself before a change. A rename changes `changed`, too."""

    device: int
    number: int
    size: int
    modified: int
    changed: int

    @classmethod
    def of(cls, stat: os.stat_result) -> Identity:
        return cls(stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)


class Seen:
    """The inputs of one call of a command, as they were when it began."""

    def __init__(self, paths: Iterable[Path] = ()) -> None:
        self.files = {path: Identity.of(path.stat()) for path in paths if _is_file(path)}

    def hashed(self, path: Path) -> str:
        """The SHA-256 of a file that is still as it was seen first."""
        try:
            with path.open("rb") as stream:
                before = self.files.setdefault(path, Identity.of(os.fstat(stream.fileno())))
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
                _refuse(path, before, Identity.of(os.fstat(stream.fileno())))
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror})") from None
        return digest

    def unchanged(self) -> None:
        """Refuse if any of them is another file by now, or was changed."""
        for path, before in self.files.items():
            _refuse(path, before, Identity.of(path.stat()) if path.exists() else None)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # no text that could name a file
        return False


def _refuse(path: Path, before: Identity, now: Identity | None) -> None:
    if now != before:
        raise InputError(
            f"{path} was changed or replaced while it was in use; no result was written, since nobody can say which of "
            "its contents was read; run the command again"
        )


_SEEN: ContextVar[Seen | None] = ContextVar("seen", default=None)


def seen() -> Seen:
    """What the command that is being called has seen."""
    return _SEEN.get() or Seen()


@contextmanager
def seeing(paths: Iterable[Path]) -> Iterator[None]:
    """Look at the files that a command is given, before it reads any."""
    token = _SEEN.set(Seen(paths))
    try:
        yield
    finally:
        _SEEN.reset(token)
