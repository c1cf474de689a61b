"""How do we speak with a Dask scheduler? In plain data: nothing that it says is unpickled in this process.

Dask's client unpickles much of what it hears: results, errors, tracebacks, the types of results, warnings, and whatever
is marked so in any message. All of it comes in through one door, the `read` of a connection. Ours lets in numbers, text
and what is made of them, and sealed bytes that only we can open; of the rest nothing is left.
"""

from __future__ import annotations

import gc
import logging
import queue
import re
import struct
import sys
import threading
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_address
from typing import Any

from glasshouse.errors import GlasshouseBug, InputError
from glasshouse.text import plain

PATIENCE = 10  # seconds until a scheduler must have answered
_ADDRESS = re.compile(r"(dask|tls)://((?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5})")
_MOST = 2**30  # bytes of one message
_CLASS = re.compile(rb"\x8c.[\w.]{1,100}\x94\x8c.(\w{1,100})\x94\x93", re.DOTALL)  # how a pickle names a class
_WRAPPED = "unpickle_exception"  # as tblib, which Dask uses, wraps an error


@dataclass(frozen=True, repr=False)
class Sealed:
    """Bytes that a worker sent. They are not of a type that Dask would ever unpickle."""

    content: bytes


def connected(address: str, *, insecure: bool) -> Any:
    """A client of the scheduler, through which everything goes: we speak to no one else."""
    read = _ADDRESS.fullmatch(address)
    if read is None or not 0 < int(address.rpartition(":")[2]) < 2**16:
        raise InputError(f"'{address}' is not the address of a cluster; expected dask://HOST:PORT or tls://HOST:PORT")
    scheme, place = read.groups()
    try:
        import dask
        import distributed
    except ImportError:
        raise InputError("Dask is not installed; pip install 'glasshouse[dask]'") from None
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)  # they print data; what matters we say ourselves
    dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"})  # a job may be large
    if scheme == "dask":
        place = _not_overheard(address, place, insecure=insecure)
    schemes = _plain_connections()
    library: Any = distributed  # its calls have no types
    security = library.Security()
    if scheme == "tls" and None in (security.tls_ca_file, security.tls_client_cert):
        raise InputError(  # without an authority of its own, Dask would take any certificate that any website has
            f"{address}: Dask's configuration names no certificates; tls:// needs distributed.comm.tls.ca-file, "
            "distributed.comm.tls.client.cert and distributed.comm.tls.client.key"
        )
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def ask() -> None:
        try:
            found = library.Client(
                f"{schemes[scheme]}://{place}",
                security=security,
                timeout=PATIENCE,
                set_as_default=False,
                direct_to_workers=False,
                name="glasshouse",
            )
        except Exception as error:
            found = error.with_traceback(None)
            gc.collect()  # now: if the failed client were collected while a new one starts, Dask would lock itself out
        answers.put(found)

    # In a thread: at something that listens and is no scheduler the client would wait for ever.
    threading.Thread(target=ask, daemon=True).start()
    try:
        answer = answers.get(timeout=PATIENCE + 1)
    except queue.Empty:
        answer = TimeoutError()
    if isinstance(answer, Exception):
        certificates = "" if scheme == "dask" else ", with certificates of the same authority"
        raise InputError(
            f"{address}: no Dask scheduler answered within {PATIENCE} seconds ({type(answer).__name__}); "
            f"check that one runs there{certificates}"
        ) from answer
    if not isinstance(answer.scheduler_comm.comm, _PlainReader):
        raise GlasshouseBug("this version of Dask does not speak through the connection that it was given")
    return answer


def _not_overheard(address: str, place: str, *, insecure: bool) -> str:
    """The place as numbers, if what is said there without encryption stays on this machine, or need not."""
    from distributed.comm.addressing import resolve_address

    host = place.rpartition(":")[0]
    try:
        resolved = str(resolve_address(f"tcp://{place}")).removeprefix("tcp://")
        here = ip_address(resolved.rpartition(":")[0].strip("[]")).is_loopback
    except (OSError, ValueError) as error:
        raise InputError(f"{address}: there is no machine of the name {host} ({type(error).__name__})") from None
    if not here and not insecure:
        raise InputError(
            f"{address}: dask:// neither encrypts nor asks who is there, and {host} is another machine; use tls:// "
            "with certificates, or say --insecure if nobody else can reach the network between them"
        )
    _warn_that_all_can_read(place)
    return resolved  # and no other name is looked up: what was checked is what we connect to


@cache
def _warn_that_all_can_read(place: str) -> None:
    """Once, however often we connect."""
    print(f"warning: data and results travel unencrypted to {place}; use tls:// to encrypt them", file=sys.stderr)


class _PlainReader:
    """The part of a connection that listens; the rest is Dask's."""

    stream: Any

    async def read(self, deserializers: object = None) -> object:
        from distributed.comm.core import CommClosedError

        if self.stream is None:
            raise CommClosedError
        try:
            return plain_message(await _frames(self.stream))
        except Exception as error:  # gone, or not to be understood: both end the connection
            self.abort()
            raise CommClosedError(type(error).__name__) from None
        except BaseException:
            self.abort()  # the rest of the message would be taken for a new one
            raise

    def abort(self) -> None:
        super().abort()  # type: ignore[misc]  # Dask's


@cache
def _plain_connections() -> dict[str, str]:
    """Our kinds of connection, made known to Dask; by the scheme of an address, the name it has there."""
    from distributed.comm import registry, tcp

    library: Any = tcp  # its classes have no types
    names = {}
    for scheme, backend, connector, comm in (
        ("dask", library.TCPBackend, library.TCPConnector, library.TCP),
        ("tls", library.TLSBackend, library.TLSConnector, library.TLS),
    ):
        ours = type("Plain" + comm.__name__, (_PlainReader, comm), {})
        how = type("Plain" + connector.__name__, (connector,), {"comm_class": ours})
        names[scheme] = f"glasshouse-{scheme}"
        registry.backends[names[scheme]] = type("Plain" + backend.__name__, (backend,), {"_connector_class": how})()
    return names


async def _frames(stream: Any) -> list[memoryview]:
    """The parts of the next message, as Dask writes them: their lengths, then their bytes."""
    from distributed.protocol.utils import unpack_frames

    left = _MOST

    async def take(size: int) -> memoryview:
        nonlocal left
        left -= size
        if left < 0:
            raise ValueError("a message that is too long")
        taken = bytearray(size)
        if size:
            await stream.read_into(taken)
        return memoryview(taken)

    (size,) = struct.unpack("Q", await take(8))
    frames, missing = unpack_frames(await take(size), partial=True)
    return [*frames, *[await take(size) for size in missing]]


def plain_message(frames: list[memoryview]) -> object:
    """What a message says, in plain data; what happened on workers (events) is left out."""
    import msgpack

    def decoded(told: dict[Any, Any]) -> object:
        if "__Serialized__" in told:
            return _sealed(frames, told["__Serialized__"])
        if "__Set__" in told:
            return set(told["as-list"])
        return None if "__Pickled__" in told or "__Enum__" in told else told

    said = _plain(msgpack.loads(frames[0], object_hook=decoded, use_list=False, strict_map_key=False))
    if isinstance(said, tuple):  # a stream of messages; a worker could print on our terminal by an event
        return tuple(one for one in said if not _is_event(one))
    return () if _is_event(said) else said


def _is_event(said: object) -> bool:
    return isinstance(said, dict) and said.get("op") == "event"


def _sealed(frames: list[memoryview], at: object) -> Sealed | None:
    """Bytes that travel beside a message, in the way in which Dask sends bytes; None if it is anything else."""
    import msgpack

    if type(at) is not int or not 0 < at < len(frames):
        return None
    header = msgpack.loads(frames[at], strict_map_key=False)
    if header.get("type") not in ("bytes", "builtins.bytes") or any(header.get("compression") or ()):
        return None
    return Sealed(b"".join(frames[at + 1 : at + 1 + header["num-sub-frames"]]))


def _plain(said: object) -> object:
    """The same without any bytes: what Dask's client unpickles is always bytes."""
    if isinstance(said, dict):
        told = {_plain(key): _plain(value) for key, value in said.items()}
        if "traceback" in told:
            told["traceback"] = None
        if "exception" in told:
            told["exception"] = _named(said["exception"])
        return told
    if isinstance(said, tuple):
        return tuple(map(_plain, said))
    if isinstance(said, set):
        return set(map(_plain, said))
    if isinstance(said, str):
        return plain(said, lines=True)
    return said if said is None or isinstance(said, bool | int | float | Sealed) else None


def _named(error: object) -> str:
    """What an error is called, read in its bytes; Dask makes an exception with this text."""
    content = error.content if isinstance(error, Sealed) else error
    names = [found.decode("ascii", "replace") for found in _CLASS.findall(content)] if type(content) is bytes else []
    return next((name for name in names if name != _WRAPPED), "an error without a name")
