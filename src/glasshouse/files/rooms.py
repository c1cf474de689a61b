"""Where does unfinished work lie, and who may clear it away?

Everything unfinished is called `.glasshouse-...`, is for its owner alone, and is locked by the process that works on
it. The system lets go of a lock whenever and however a process ends. So whoever finds something of this name and can
lock it knows that its owner is gone, and removes it; what a living run holds is left alone.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from glasshouse.errors import InputError

UNFINISHED = ".glasshouse-"
LOCK = "lock"
JOURNAL = "moves.json"  # in a room: its files are whole, and only have to get their names


def held(path: Path) -> int | None:
    """Lock a file, which is made if it is not there: its handle. None if another process has it, or it is gone."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(handle).st_nlink:  # nobody removed it between the two calls
            return handle
    except BlockingIOError:
        pass
    except BaseException:
        os.close(handle)
        raise
    os.close(handle)
    return None


def refuse_strange(folder: Path) -> None:
    """Refuse a place for unfinished work that somebody else has put there: a link to elsewhere, or their own folder."""
    with suppress(FileNotFoundError):
        told = folder.lstat()
        if not stat.S_ISDIR(told.st_mode) or told.st_uid != os.getuid():
            raise InputError(
                f"{folder} is no folder of yours, and unfinished work would lie in it; remove it, or name another "
                "place to write"
            )


@contextmanager
def locked(folder: Path, complaint: str) -> Iterator[None]:
    """Hold a folder by the lock in it; if another run does, that is the complaint."""
    handle = held(folder / LOCK)
    if handle is None:
        raise InputError(complaint)
    try:
        yield
    finally:
        os.close(handle)


def busy(folder: Path) -> bool:
    """Does a run hold the folder right now?"""
    if not (folder / LOCK).exists():
        return False
    handle = held(folder / LOCK)
    if handle is None:
        return True
    os.close(handle)
    return False


def unfinished_file(folder: Path) -> tuple[int, str]:
    """A new private file in a folder, locked until its handle is closed: the handle, and the path."""
    while True:
        handle, name = tempfile.mkstemp(prefix=UNFINISHED, dir=folder)  # mkstemp gives mode 0600
        with suppress(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(handle).st_nlink:
                return handle, name
        os.close(handle)  # someone cleared it away before it was locked


@contextmanager
def passing_folder(near: Path | None = None) -> Iterator[Path]:
    """A private folder that is gone afterwards. What killed runs have left beside it goes first."""
    around = near or Path(tempfile.gettempdir())
    sweep(around)
    handle = None
    while handle is None:
        folder = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=around))  # mkdtemp gives mode 0700
        handle = held(folder / LOCK)
    try:
        inside = folder / "inside"  # the lock is nobody's business
        inside.mkdir(mode=0o700)
        yield inside
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(handle)


def sweep(folder: Path) -> None:
    """Remove what killed runs of this user have left in a folder, but not a result that only lacks its names."""
    for path in folder.glob(f"{UNFINISHED}*"):
        with suppress(OSError):  # gone meanwhile, or not ours to remove
            inside = path.is_dir() and not path.is_symlink()
            if path.lstat().st_uid != os.getuid() or (path / JOURNAL).exists():
                continue
            handle = held(path / LOCK if inside else path)
            if handle is None:
                continue
            try:
                shutil.rmtree(path) if inside else path.unlink(missing_ok=True)
            finally:
                os.close(handle)


def sync(folder: Path) -> None:
    """Make sure that the names in a folder survive a power cut."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
