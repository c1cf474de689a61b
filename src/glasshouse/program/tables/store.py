"""How are arrays that follow from a scenario alone kept on disk for the next run, and when are they believed?

A file is called by the hash of everything that its arrays follow from: the question, our sources that answer it, and
the versions of the libraries they use. It is believed only if it belongs to this user and nobody else could write it,
names the same hash inside, has just the arrays and lengths that it tells, and every byte is as it was written.
Whatever else lies there is as if it were not there: what it holds is worked out again. No object is ever unpickled.

A file has a line of JSON, and then the bytes of the arrays, one after the other.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import stat
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import metadata, resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from glasshouse.errors import GlasshouseBug, InputError
from glasshouse.files.output import private_file, private_folder
from glasshouse.files.rooms import sweep

VARIABLE = "GLASSHOUSE_CACHE"  # of the environment: another folder, or `off`
MOST_BYTES = 256 * 2**20  # of all files together; those that were used longest ago go first
LONGEST_HEAD = 2**20
ENDING = ".compiled"
_DTYPES = ("bool", "int16", "int32", "int64")
_APART = 64  # bytes: every array begins at a multiple, as those that NumPy makes
_LIBRARIES = ("numpy", "scipy", "numba")
_SOURCES = ("errors.py", "limits.py", "text.py", "model", "program")
_LONG = 1000  # letters: what is spelled so long is remembered for the next question
_long: dict[int, tuple[weakref.ref[Any], str]] = {}  # by the number of a thing, as long as it lives


class Kept(NamedTuple):
    """Arrays by name, and what else is known: plain JSON."""

    arrays: Mapping[str, NDArray[Any]]
    about: Mapping[str, Any]


def folder() -> Path | None:
    """Where files are kept; None: nowhere."""
    told = os.environ.get(VARIABLE, "")
    if told.lower() == "off":
        return None
    if told:
        return Path(told).absolute()
    base = os.environ.get("XDG_CACHE_HOME", "")
    with suppress(RuntimeError):  # a user without a home keeps nothing
        return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "glasshouse"
    return None


def key_of(question: object) -> str:
    """The name of what follows from a question: the hash of all that it says, of our sources, and of versions."""
    return hashlib.sha256(f"{_basis()}\n{_spelled(question, {})}".encode()).hexdigest()


@cache
def _basis() -> str:
    digest = hashlib.sha256()
    root = Path(str(resources.files("glasshouse")))
    for path in sorted(path for name in _SOURCES for path in (root / name, *(root / name).rglob("*.py"))):
        if path.is_file():
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    versions = [f"{name} {metadata.version(name)}" for name in _LIBRARIES]
    return " ".join([digest.hexdigest(), platform.python_version(), platform.machine(), *versions])


def _spelled(thing: object, known: dict[int, str]) -> str:
    """Everything that a thing says, in one spelling; equal things have equal ones, and others others.

    `known` are those that were spelled before: a scenario says the same again and again.
    """
    if thing is None or isinstance(thing, (str, int)):
        return repr(thing)
    if isinstance(thing, np.integer):
        return repr(int(thing))
    if id(thing) in known:
        return known[id(thing)]
    if id(thing) in _long:
        return _long[id(thing)][1]
    if isinstance(thing, frozenset):
        told = f"{{{','.join(sorted(_spelled(one, known) for one in thing))}}}"
    elif isinstance(thing, (tuple, list)):
        told = f"({','.join([_spelled(one, known) for one in thing])})"
    elif isinstance(thing, Mapping):
        pairs = sorted((_spelled(name, known), _spelled(one, known)) for name, one in thing.items())
        told = f"[{','.join(f'{name}:{one}' for name, one in pairs)}]"
    elif is_dataclass(thing):
        values = [_spelled(getattr(thing, name), known) for name in _names(thing.__class__)]
        told = f"{type(thing).__name__}({','.join(values)})"
        if len(told) >= _LONG:
            _remember(thing, told)
    else:
        raise GlasshouseBug(f"a {type(thing).__name__} has no spelling to be kept by")
    known[id(thing)] = told  # what is spelled is part of the question, so it lives, and nothing else gets its number
    return told


def _remember(thing: Any, told: str) -> None:
    """A noun is frozen, so what it says stays; its number may be another's when it is gone."""
    number = id(thing)
    _long[number] = weakref.ref(thing, lambda _: _long.pop(number, None)), told


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def read(key: str) -> Kept | None:
    """What is kept under a key; None if nothing is, or nothing that can be believed."""
    at = folder()
    if at is None:
        return None
    with suppress(OSError, ValueError, TypeError, KeyError, RecursionError):  # else it is worked out again
        path = at / f"{key}{ENDING}"
        if not _private(os.lstat(at), stat.S_ISDIR):
            return None
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with open(handle, "rb", buffering=0) as stream:
            told = os.fstat(handle)
            if not _private(told, stat.S_ISREG) or told.st_size > MOST_BYTES:
                return None
            content = np.empty(told.st_size, np.uint8)  # where NumPy puts it, as compiled code wants its arrays
            kept = _parsed(key, content) if _filled(stream, content) else None
        if kept is not None:
            with suppress(OSError):
                os.utime(path)  # it was of use: others go first
        return kept
    return None


def _filled(stream: Any, content: NDArray[np.uint8]) -> bool:
    """Read until it is full; a file that is shorter than it was is not believed."""
    view, at = content.data, 0
    while at < len(view):
        more = stream.readinto(view[at:])
        if not more:
            return False
        at += more
    return True


def _private(told: os.stat_result, kind: Callable[[int], bool]) -> bool:
    """Is it what it should be, ours, and nobody else's to write?"""
    return kind(told.st_mode) and told.st_uid == os.getuid() and not told.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _parsed(key: str, content: NDArray[np.uint8]) -> Kept | None:
    """The arrays of a file, if it is what it says."""
    ends = np.flatnonzero(content[:LONGEST_HEAD] == ord("\n"))
    if not len(ends):
        return None
    head, body = json.loads(content[: ends[0]].tobytes()), content[_next(int(ends[0]) + 1) :]
    if head["key"] != key or head["sha256"] != _digest(head, body):
        return None
    arrays: dict[str, NDArray[Any]] = {}
    at = 0
    for name, dtype, shape in head["arrays"]:
        if dtype not in _DTYPES or not all(isinstance(side, int) and side >= 0 for side in shape):
            return None
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        if at + size > len(body):
            return None
        arrays[name] = body[at : at + size].view(dtype).reshape(shape)
        at = _next(at + size)
    return Kept(arrays, head["about"]) if at == len(body) else None


def write(key: str, kept: Kept) -> None:
    """Keep arrays, if that can be; nothing depends on it."""
    at = folder()
    if at is None:
        return
    listed = [[name, array.dtype.name, list(array.shape)] for name, array in kept.arrays.items()]
    body = bytearray()
    for array in kept.arrays.values():
        if array.dtype.name not in _DTYPES:
            raise GlasshouseBug(f"an array of {array.dtype.name} is not kept; known: {', '.join(_DTYPES)}")
        body += np.ascontiguousarray(array).tobytes()
        body += bytes(_next(len(body)) - len(body))
    head = {"key": key, "arrays": listed, "about": kept.about}
    line = json.dumps(head | {"sha256": _digest(head, body)}).encode() + b"\n"
    if len(line) + _APART > LONGEST_HEAD or len(line) + len(body) > MOST_BYTES // 4:
        return
    with suppress(OSError, InputError), private_folder(at):  # a full disk, a home that cannot be written to
        if not _private(os.lstat(at), stat.S_ISDIR):
            return
        sweep(at)
        _make_room(at, len(line) + len(body))
        with private_file(at / f"{key}{ENDING}") as stream:
            stream.write(line + bytes(_next(len(line)) - len(line)) + bytes(body))


def _make_room(at: Path, more: int) -> None:
    """Remove files that were used longest ago until all are within the limit."""
    found = sorted((path.lstat().st_mtime_ns, path.lstat().st_size, path) for path in at.glob(f"*{ENDING}"))
    total = more + sum(size for _, size, _ in found)
    for _, size, path in found:
        if total <= MOST_BYTES:
            break
        path.unlink(missing_ok=True)
        total -= size


def _digest(head: Mapping[str, Any], body: Any) -> str:
    """The hash of all that a file says."""
    told = json.dumps([head["key"], head["arrays"], head["about"]]).encode()
    return hashlib.sha256(hashlib.sha256(told).digest() + hashlib.sha256(body).digest()).hexdigest()


def _next(at: int) -> int:
    return -(-at // _APART) * _APART
