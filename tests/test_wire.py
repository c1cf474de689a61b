"""Is everything that a scheduler says plain data, and do we speak in the clear only with this machine?"""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from glasshouse.engine import wire
from glasshouse.engine.wire import Sealed, plain_message
from glasshouse.engine.workers import Crew
from glasshouse.errors import InputError
from tests import rogue, work_items
from tests.running import tool
from tests.work_items import Job, through

pytest.importorskip("distributed", reason="Dask is not installed (the extra 'dask')")


def said(message: object, **options: Any) -> object:
    """What we hear when Dask says this."""
    from distributed.protocol.core import dumps

    return plain_message([memoryview(frame).cast("B") for frame in dumps(message, **options)])


@pytest.fixture(autouse=True)
def nothing_explodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(rogue, "FOLDER", tmp_path)
    yield
    assert not (tmp_path / str(os.getpid())).exists()


def test_a_bomb_would_be_heard(tmp_path: Path) -> None:
    """The bombs of these tests do explode where something is unpickled."""
    from distributed.protocol import ToPickle, to_serialize
    from distributed.protocol.core import dumps, loads

    for sent in (ToPickle(rogue.Bomb()), to_serialize(rogue.Bomb()), to_serialize([rogue.Bomb()])):
        loads(dumps({"data": sent}))
        (tmp_path / str(os.getpid())).unlink()


def test_what_would_be_unpickled_is_not_there() -> None:
    from distributed.core import Status
    from distributed.protocol import ToPickle, to_serialize

    bomb = pickle.dumps(rogue.Bomb())
    assert said({"a": ToPickle(rogue.Bomb()), "b": bomb, "c": [bomb, {"d": (bomb,)}], "e": Status.running}) == {
        "a": None, "b": None, "c": (None, {"d": (None,)}), "e": None,
    }  # fmt: skip
    for sent in (rogue.Bomb(), [rogue.Bomb()], {"x": rogue.Bomb()}, 7, "text", bytearray(9)):
        assert said({"data": {"key": to_serialize(sent)}}) == {"data": {"key": None}}
    assert said({"data": {"key": to_serialize(bomb)}}) == {"data": {"key": Sealed(bomb)}}
    assert said({"data": to_serialize(bytes(100_000))}, frame_split_size=9_000) == {"data": Sealed(bytes(100_000))}
    assert said({"data": to_serialize(bytes(100_000))}, context={"compression": "zlib"}) == {"data": None}


def test_an_error_has_a_name_and_no_trace() -> None:
    from distributed.core import error_message
    from distributed.protocol import to_serialize
    from distributed.scheduler import KilledWorker

    for error, name in ((ModuleNotFoundError("secret"), "ModuleNotFoundError"), (OSError(5, "x"), "OSError")):
        heard: Any = said({**error_message(error), "exception_text": ""})
        assert (heard["exception"], heard["traceback"]) == (name, None)
    killed = pickle.dumps(KilledWorker("task", None, 1))  # type: ignore[arg-type]  # whichever worker
    assert said({"exception": killed, "traceback": killed}) == {"exception": "KilledWorker", "traceback": None}
    for unnamed in (b"", None, 7, "text", to_serialize(rogue.BombError())):
        assert said({"exception": unnamed}) == {"exception": "an error without a name"}


def test_events_are_not_heard() -> None:
    event = {"op": "event", "topic": "print", "event": (0, {"args": ("printed",), "file": 1})}
    assert said(event) == () and said([event, {"op": "restart"}]) == ({"op": "restart"},)


def test_text_moves_no_cursor() -> None:
    assert said(["\x1b[2J", "two\nlines", "\u202eabc"]) == (r"\x1b[2J", "two\nlines", r"\u202eabc")


MARKS = ["__Serialized__", "__Pickled__", "__Set__", "__Enum__", "as-list", "data", "exception", "traceback", "op"]
PLAIN = (
    st.none() | st.booleans() | st.integers(-1, 3) | st.floats() | st.text("a\x1b", max_size=2) | st.binary(max_size=3)
)
MESSAGES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(MARKS), inner, max_size=3),
    max_leaves=12,
)


def parts(message: object) -> Iterator[object]:
    yield message
    if isinstance(message, dict):
        for pair in message.items():
            yield from parts(pair)
    elif isinstance(message, tuple | set):
        for part in message:
            yield from parts(part)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # it only looks whether anything exploded
@given(MESSAGES, MESSAGES)
def test_no_message_holds_bytes(message: object, beside: object) -> None:
    """Whatever Dask's client would unpickle is bytes."""
    import msgpack

    frames = [memoryview(msgpack.dumps(part)) for part in (message, beside, {"type": "bytes", "num-sub-frames": 1}, 1)]
    try:
        heard = plain_message(frames)
    except Exception:  # which ends the connection
        return
    kinds = {type(part) for part in parts(heard)}
    assert kinds <= {type(None), bool, int, float, str, tuple, dict, set, Sealed}


class Stream:
    """A connection on which these bytes come."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    async def read_into(self, buffer: bytearray) -> int:
        if len(self.content) < len(buffer):
            raise EOFError
        buffer[:], self.content = self.content[: len(buffer)], self.content[len(buffer) :]
        return len(buffer)


@pytest.mark.parametrize(
    "content", [b"", b"\xff" * 64, (2**40).to_bytes(8, "little"), bytes(8), bytes(16), b"\x08" + bytes(15)]
)
def test_a_message_that_is_none_ends_the_connection(content: bytes) -> None:
    import asyncio

    from distributed.comm.core import CommClosedError

    ended = []

    class Ours(wire._PlainReader):
        stream = Stream(content)

        def abort(self) -> None:
            ended.append(True)

    with pytest.raises(CommClosedError):
        asyncio.run(Ours().read())
    assert ended == [True]


@pytest.mark.parametrize("place", ["127.0.0.1:1", "127.8.9.10:1", "[::1]:1", "localhost:1"])
def test_this_machine_may_be_spoken_to_in_the_clear(place: str) -> None:
    found = wire._not_overheard(f"dask://{place}", place, insecure=False)
    assert found.startswith(("127.", "[::1]:"))


@pytest.mark.parametrize("place", ["192.0.2.1:8786", "0.0.0.0:8786", "[::]:8786", "[2001:db8::1]:8786"])
def test_another_machine_is_spoken_to_in_the_clear_if_that_is_said(
    place: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address = f"dask://{place}"
    with pytest.raises(InputError, match=r"is another machine; use tls:// with certificates, or say --insecure"):
        next(through(work_items.square, Job(tmp_path), range(9), Crew(address=address)))
    assert capsys.readouterr().err == ""
    assert wire._not_overheard(address, place, insecure=True) == place
    assert capsys.readouterr().err.startswith(f"warning: data and results travel unencrypted to {place}")


def test_a_name_without_a_machine() -> None:
    with pytest.raises(InputError, match=r"there is no machine of the name nobody\.invalid"):
        wire._not_overheard("dask://nobody.invalid:1", "nobody.invalid:1", insecure=True)


def test_insecure_needs_an_executor() -> None:
    ended = tool("vary", "tables.csv", "--scenario", "pl94", "--insecure", "--json")
    assert ended.code == 2 and "--insecure needs --executor" in ended.err
