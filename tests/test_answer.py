"""Is an answer from another machine read as what was asked for, and as nothing else, whatever its bytes are?"""

from __future__ import annotations

import hashlib
import json
import random
import zlib
from dataclasses import replace

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from glasshouse.engine import answer as answers
from glasshouse.engine.answer import Expected, Refused, entry_home, error_home, read_answer
from glasshouse.engine.ledger import Entry, Refusal
from glasshouse.engine.manifest import Occupied
from glasshouse.errors import GlasshouseBug, InputError
from tests.test_ledger import entry, frames

KINDS = {name: frame.schema for name, frame in frames().items()}
EXPECTED = Expected("job", "36001000100", 3, KINDS)


def test_what_is_sent_is_read() -> None:
    found = read_answer(entry_home(entry(), "job"), EXPECTED)
    assert (found.unit, found.notes) == (entry().unit, entry().notes)
    assert list(found.frames) == sorted(KINDS)
    for name, frame in found.frames.items():
        assert_frame_equal(frame, frames()[name])


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        (InputError, InputError("first", "second\x1b[2J")),
        (InputError, Occupied("first", "second\x1b[2J")),
        (GlasshouseBug, GlasshouseBug("promised")),
        (GlasshouseBug, SystemError("rare")),
        (GlasshouseBug, type("Own", (KeyError,), {})("rare")),
    ],
)
def test_what_was_raised_is_raised_as_an_exception_of_ours(kind: type[Exception], error: Exception) -> None:
    error.add_note("noted")
    with pytest.raises(kind) as caught:
        read_answer(error_home(error), EXPECTED)
    assert type(caught.value) is kind
    if isinstance(error, InputError):
        assert caught.value.args == ("first", r"second\x1b[2J")
    else:
        assert str(caught.value) == f"a worker raised {type(error).__name__}: {error}"
    assert caught.value.__notes__ == ["noted", "On a worker of the cluster:\n"]


def other(**said: object) -> Entry:
    return replace(entry(), notes=replace(entry().notes, **said))  # type: ignore[arg-type]  # any field


STRANGE = {
    "of another job": (entry(), replace(EXPECTED, job="other"), "another unit or another job"),
    "of another unit": (entry("36001000200"), EXPECTED, "another unit or another job"),
    "of other places": (entry(), replace(EXPECTED, places=4), "notes are of another unit"),
    "rows not asked for": (entry(), replace(EXPECTED, kinds={"places": KINDS["places"]}), "nobody asked for"),
    "other columns": (
        entry(), replace(EXPECTED, kinds=KINDS | {"places": pl.Schema({"block": pl.String})}), "other columns",
    ),
    "other types": (
        entry(), replace(EXPECTED, kinds=KINDS | {"places": pl.Schema({"block": pl.String, "solvar": pl.Int64})}),
        "other columns",
    ),
    "words that move the cursor": (other(refused=Refusal("\x1b[2Jgone")), EXPECTED, "cannot be printed"),
    "no number of seconds": (other(seconds=float("nan")), EXPECTED, "another unit|unreadable"),
    "notes that are no numbers": (other(counts={"left": "many"}), EXPECTED, "unreadable"),
    "a flag that is a number": (other(clock=2), EXPECTED, "unreadable"),
}  # fmt: skip


@pytest.mark.parametrize("name", STRANGE)
def test_an_answer_to_something_else_is_refused(name: str) -> None:
    sent, expected, why = STRANGE[name]
    with pytest.raises(Refused, match=why):
        read_answer(entry_home(sent, "job"), expected)


def test_an_answer_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "_MOST", 10_000)
    with pytest.raises(Refused, match="too long"):
        read_answer(zlib.compress(bytes(10_001)), EXPECTED)
    with pytest.raises(Refused, match="too long"):
        read_answer(entry_home(entry(), "job") + b"more", EXPECTED)


def sealed(content: bytes) -> bytes:
    """With the hash that a liar would give it."""
    rest = content[len(b'{"sha256": "') + 64 :]
    return zlib.compress(b'{"sha256": "' + hashlib.sha256(rest).hexdigest().encode() + rest)


def test_damaged_answers_are_refused_or_read_and_nothing_else_happens() -> None:
    """Bytes are changed in the frames and in the words around them, and sealed anew."""
    rng = random.Random(1)
    content = zlib.decompress(entry_home(entry(), "job"))
    refused = 0
    for _ in range(1000):
        changed = bytearray(content)
        for _ in range(rng.randint(1, 4)):
            changed[rng.randrange(len(changed))] = rng.randrange(256)
        try:
            found = read_answer(sealed(bytes(changed)), EXPECTED)
        except Refused:
            refused += 1
        else:
            assert {name: frame.schema for name, frame in found.frames.items()}.items() <= KINDS.items()
    assert refused > 500


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[]\n", b"null\n", b'{"raised": ', b'{"raised": 1}', b'{"raised": {"kind": "InputError"}}',
        b"[" * 9999,
        b'{"raised": ' + b"[" * 100_000, b'{"raised": {"kind": 1, "lines": [], "notes": []}}',
    ],
)  # fmt: skip
def test_what_is_no_answer_is_refused(content: bytes) -> None:
    for sent in (content, zlib.compress(content), sealed(b'{"sha256": "' + bytes(64) + content)):
        with pytest.raises(Refused):
            read_answer(sent, EXPECTED)


def test_a_header_that_lies_is_refused() -> None:
    line, _, rest = zlib.decompress(entry_home(entry(), "job")).partition(b"\n")
    header = json.loads(line)
    sizes = [size for _, size in header["frames"]]
    lies: list[list[list[object]]] = [
        [["places", -1], ["places", len(rest) + 1]],
        [["places", len(rest)]],
        [[["places"], len(rest)]],
        [["places", sizes[0], 1]],
        [["records", sizes[0]], ["places", len(rest) - sizes[0]]],
    ]
    for lie in lies:
        said = json.dumps({"sha256": "0" * 64, **{k: v for k, v in header.items() if k != "sha256"}, "frames": lie})
        with pytest.raises(Refused):
            read_answer(sealed(said.encode() + b"\n" + rest), EXPECTED)
