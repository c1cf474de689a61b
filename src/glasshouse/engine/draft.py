"""How do several files of a result become there at one moment? They lie in a draft until a journal says: whole.

The files of a result are written into a private room. One rename, that of the journal, is the commit point: before it
nothing of the result is there, and what lies in the room is removed by the next run; after it the result is there,
and whoever comes next gives the files their names, however often that is interrupted. The manifest is the last to get
its name, and that of an older result is the first to go: no manifest ever vouches for the files of another run.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import overload

from glasshouse.engine.plain import read_json
from glasshouse.errors import InputError
from glasshouse.files.output import private_file, private_folder
from glasshouse.files.rooms import JOURNAL, UNFINISHED, locked, refuse_strange, sync

Moves = Sequence[tuple[Path, Path]]  # from the draft to its name; the manifest is the last


def room_of(out: Path) -> Path:
    """Where the files lie that go with a single file, until all are whole."""
    return out.parent / f"{UNFINISHED}{out.name}"


@overload
def draft_of(path: Path, other: Path) -> Path: ...
@overload
def draft_of(path: Path, other: Path | None) -> Path | None: ...
def draft_of(path: Path, other: Path | None) -> Path | None:
    """The draft of another file that goes with the one whose draft is at `path`; none if there is no other."""
    return other and path.parent / hashlib.sha256(str(other.absolute()).encode()).hexdigest()[:16] / other.name


def committed(room: Path) -> bool:
    """Is there a result in the room that only lacks its names?"""
    return (room / JOURNAL).is_file()


def commit(room: Path, moves: Moves, gone: Iterable[Path]) -> None:
    """From here on the result is there. `gone`: what of an older one goes, its manifest first."""
    base = room.parent
    said = {
        "move": [[os.path.relpath(draft, base), os.path.relpath(final, base)] for draft, final in moves],
        "remove": [os.path.relpath(path, base) for path in gone],
    }
    for _, final in moves:
        if final.is_dir():
            raise InputError(f"{final} is a directory; expected the name of a file to write")
    with private_file(room / JOURNAL) as stream:
        stream.write(json.dumps(said).encode())
    settle(room)


def settle(room: Path) -> None:
    """Give the files of a committed draft their names; what an interrupted run has done of it is not done again."""
    base, journal = room.parent, room / JOURNAL
    if journal.stat().st_uid != os.getuid():
        raise InputError(f"{room} belongs to another user, whose run was killed; only that user can end it")
    try:
        told = read_json(journal) or {}
        moves = [(base / draft, base / final) for draft, final in told["move"]]
        gone = [base / name for name in told["remove"]]
    except (ValueError, LookupError, TypeError):
        raise InputError(
            f"{journal}: this end of a run that was killed is damaged; remove {room} to begin again"
        ) from None
    if any(draft.exists() for draft, _ in moves[-1:]):  # else everything has its name
        for draft, final in moves:
            if not draft.exists() and not final.exists():
                raise InputError(f"{draft}: this file of a run that was killed is gone; remove {room} to begin again")
        try:
            _named(moves, gone)
        except OSError as error:
            raise InputError(
                f"{moves[-1][1].parent}: the result is whole, but its files could not be given their names "
                f"({error.strerror}); it is kept: run the same command again"
            ) from None
    journal.unlink()
    sync(room)


def _named(moves: Moves, gone: Sequence[Path]) -> None:
    for path in gone:
        path.unlink(missing_ok=True)
    for draft, final in moves:
        if draft.exists():
            with private_folder(final.parent):
                _move(draft, final)
    for folder in {final.parent for _, final in moves}:
        sync(folder)


def _move(draft: Path, final: Path) -> None:
    try:
        os.replace(draft, final)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        with draft.open("rb") as source, private_file(final) as stream:  # it lies on another disk
            shutil.copyfileobj(source, stream, 1 << 20)
        draft.unlink()


@contextmanager
def drafting(out: Path) -> Iterator[Path]:
    """The room of a single file, locked; gone afterwards. A result that a killed run left there gets its names."""
    room = room_of(out)
    refuse_strange(room)
    with private_folder(room), locked(room, f"another run is writing {out}; wait for it"):
        try:
            if committed(room):
                settle(room)
            yield room
        finally:
            if not committed(room):  # else naming the files failed: the next run goes on
                shutil.rmtree(room, ignore_errors=True)
