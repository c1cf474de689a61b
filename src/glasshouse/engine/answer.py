"""How does an answer come home from a machine that we need not trust? As JSON and Arrow, and as what was asked for.

What a unit gave travels as the ledger keeps it, squeezed so that nobody on the way squeezes it again; what was raised,
as JSON. Whatever else comes is refused: a worker can lie about the numbers, and do nothing more.
"""

from __future__ import annotations

import json
import math
import traceback
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl
import pyarrow as pa
from pydantic import TypeAdapter

from glasshouse.engine.ledger import Entry, Notes, opened, packed
from glasshouse.errors import GlasshouseBug, InputError
from glasshouse.text import harmful, plain

_MOST = 2**30  # bytes of one answer
_RAISED = b'{"raised": '
_OURS = InputError.__name__


class Refused(Exception):  # noqa: N818  # it is what becomes of an answer
    """An answer is not what was asked for; the message says what is wrong with it."""


@dataclass(frozen=True)
class Expected:
    """What the answer to one unit must be: of this job and unit, with frames of these kinds only."""

    job: str
    unit: str
    places: int
    kinds: Mapping[str, pl.Schema]


@dataclass(frozen=True)
class _Raised:
    kind: str
    lines: tuple[str, ...]
    notes: tuple[str, ...]


_NOTES, _WORDS = TypeAdapter(Notes), TypeAdapter(_Raised)


def entry_home(entry: Entry, job: str) -> bytes:
    """What a unit gave, as it travels."""
    return zlib.compress(packed(entry, job), 1)


def error_home(error: Exception) -> bytes:
    """What was raised, as it travels: its name and its words, and where it happened."""
    ours = isinstance(error, InputError)
    kind, lines = (_OURS, list(error.args)) if ours else (type(error).__name__, [str(error)])
    where = "On a worker of the cluster:\n" + "".join(traceback.format_tb(error.__traceback__))
    said = {"kind": kind, "lines": lines, "notes": [*getattr(error, "__notes__", ()), where]}
    return zlib.compress(_RAISED + json.dumps(said).encode() + b"}", 1)


def read_answer(answer: bytes, expected: Expected) -> Entry:
    """What a unit gave; what was raised there is raised here. An answer that is neither is refused."""
    try:
        content = _unsqueezed(answer)
        if content.startswith(_RAISED):
            said: Entry | _Raised = _WORDS.validate_json(json.dumps(json.loads(content)["raised"]), strict=True)
        else:
            said = _entry(content, expected)
    except (Exception, pl.exceptions.PanicException) as error:  # whatever the bytes are
        raise Refused(str(error) if isinstance(error, Refused) else f"unreadable: {type(error).__name__}") from None
    if isinstance(said, _Raised):
        raise _error(said)
    return said


def _unsqueezed(answer: bytes) -> bytes:
    squeezed = zlib.decompressobj()
    content = squeezed.decompress(answer, _MOST)
    if not squeezed.eof or squeezed.unused_data:
        raise Refused("cut off, or too long")
    return content


def _entry(content: bytes, expected: Expected) -> Entry:
    whole = opened(content, expected.job, expected.unit)
    if whole is None:
        raise Refused("of another unit or another job, or damaged")
    header, rest = whole
    notes = _NOTES.validate_json(json.dumps(header["notes"]), strict=True)  # 1 is not True
    if notes.places != expected.places or not math.isfinite(notes.seconds) or not math.isfinite(notes.cpu):
        raise Refused("its notes are of another unit")
    if notes.refused is not None and harmful(notes.refused.reason) is not None:
        raise Refused("its words cannot be printed")
    frames, at = {}, 0
    for name, size in header["frames"]:
        if name not in expected.kinds:
            raise Refused("rows that nobody asked for")
        frames[name] = _frame(rest[at : at + size], expected.kinds[name])
        at += size
    return Entry(expected.unit, notes, frames)


def _frame(packed: bytes, kind: pl.Schema) -> pl.DataFrame:
    """The rows, checked to the last buffer: pyarrow does that for bytes from strangers, polars does not."""
    with pa.ipc.open_file(pa.py_buffer(packed)) as reader:
        if reader.schema.names != kind.names():
            raise Refused("rows with other columns")
        table = reader.read_all()
    table.validate(full=True)
    frame = pl.from_arrow(table)
    if not isinstance(frame, pl.DataFrame) or frame.schema != kind:
        raise Refused("rows with other columns")
    return frame


def _error(raised: _Raised) -> Exception:
    """An exception of ours: those of others are told, and not made again."""
    error: Exception
    if raised.kind == _OURS:
        error = InputError(*raised.lines)
    else:
        said = ": ".join(plain(text) for text in (raised.kind, *raised.lines))
        error = GlasshouseBug(f"a worker raised {said}")
    for note in raised.notes:
        error.add_note(plain(note, lines=True))
    return error
