"""How does a Dask cluster do the work? It is sent the job and the items, and gives the results back to us alone.

Dask's own futures are used, not its `get_executor()`: they can be released one by one, say why they ended, and a
result that was lost with its worker is computed again.
"""

from __future__ import annotations

import gc
import logging
import queue
import re
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any, TypeVar

from glasshouse.engine.manifest import code_hash
from glasshouse.engine.package import PackedJob, fit_to_travel
from glasshouse.errors import InputError

Job = TypeVar("Job")
Item = TypeVar("Item")
Result = TypeVar("Result")

_ADDRESS = re.compile(r"(dask|tls)://((?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5})")
_PATIENCE = 10  # seconds until a scheduler must have answered
_LOOK_AGAIN = 2.0  # seconds until the workers are counted again


@dataclass(frozen=True, repr=False)
class _Parcel:
    """What travels, closed: Dask neither looks into it nor prints it in a log."""

    content: Any


@dataclass(frozen=True, repr=False)
class _Raised:
    """What the work raised, brought home as an answer: the log of a worker shows the data of a task that fails."""

    error: Exception


def by_cluster(work: Callable[[Job, Item], Result], job: Job, items: Iterable[Item], address: str) -> Iterator[Result]:
    """What executors.work_through promises; only that a unit which runs when we leave runs to its end, unheard."""
    packed = PackedJob.of(job)
    client = _connected(address)
    rest = iter(items)
    in_hand: set[Any] = set()
    done: queue.SimpleQueue[Any] = queue.SimpleQueue()
    try:
        with _trouble_named(client, address):
            # A task and not scattered data: if the worker that holds it dies, another one makes it again.
            shared = client.submit(_kept, packed, pure=False)
            width = _Width(client, address)
        while True:
            with _trouble_named(client, address):
                most = 2 * width.now() + 1
            for item in islice(rest, max(0, most - len(in_hand))):
                with _trouble_named(client, address):
                    future = client.submit(_work_on, work, shared, _Parcel(item), code_hash(), pure=False)
                    in_hand.add(future)
                    future.add_done_callback(done.put)
            if not in_hand:
                return
            try:
                future = done.get(timeout=_LOOK_AGAIN)
            except queue.Empty:
                continue
            with _trouble_named(client, address):
                answer = future.result()
            in_hand.remove(future)
            future.release()
            if isinstance(answer, _Raised):
                raise answer.error
            yield answer.content
    finally:
        with suppress(Exception):  # a scheduler that is gone cannot say goodbye
            client.close(timeout=_PATIENCE)


class _Width:
    """How many items the cluster does at once, counted again as workers come and go."""

    def __init__(self, client: Any, address: str) -> None:
        self.client, self.address = client, address
        self.threads, self.looked, self.looks_at_none = 0, float("-inf"), 0

    def now(self) -> int:
        if time.monotonic() - self.looked >= _LOOK_AGAIN:
            self.threads = sum(self.client.nthreads().values())
            self.looked = time.monotonic()
            self.looks_at_none = 0 if self.threads else self.looks_at_none + 1
            if self.looks_at_none == 3:
                print(f"warning: {self.address} has no workers; waiting for some to come", file=sys.stderr)
        return self.threads


def _connected(address: str) -> Any:
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
        _warn_that_all_can_read(place)
    library: Any = distributed  # its calls have no types
    answers: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def ask() -> None:
        try:
            found = library.Client(
                f"{'tcp' if scheme == 'dask' else 'tls'}://{place}",
                security=library.Security(),
                timeout=_PATIENCE,
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
        answer = answers.get(timeout=_PATIENCE + 1)
    except queue.Empty:
        answer = TimeoutError()
    if isinstance(answer, Exception):
        certificates = "" if scheme == "dask" else ", and that Dask's configuration names the certificates"
        raise InputError(
            f"{address}: no Dask scheduler answered within {_PATIENCE} seconds ({type(answer).__name__}); "
            f"check that one runs there{certificates}"
        ) from answer
    return answer


@cache
def _warn_that_all_can_read(place: str) -> None:
    """Once, however often we connect."""
    print(f"warning: data and results travel unencrypted to {place}; use tls:// to encrypt them", file=sys.stderr)


@contextmanager
def _trouble_named(client: Any, address: str) -> Iterator[None]:
    """Say what is wrong with the cluster, without the data that its messages may hold."""
    from distributed.scheduler import KilledWorker

    kept = "what is finished is kept: run the command again"
    try:
        yield
    except Exception as error:
        if isinstance(error, KilledWorker):
            found = "workers die again and again over one unit, perhaps for want of memory"
            remedy = "with more memory for each worker"
        elif isinstance(error, CancelledError | OSError) or client.status != "running":
            found, remedy = "the scheduler is gone", "when it is back"
        else:
            found = "the workers cannot take up the work; they need the same packages as this machine"
            remedy = "when they have them"
        raise InputError(f"{address}: {found} ({type(error).__name__}); {kept} {remedy}") from error


def _kept(packed: PackedJob) -> PackedJob:
    return packed


def _work_on(work: Callable[[Any, Any], Any], packed: PackedJob, item: _Parcel, code: str) -> _Parcel | _Raised:
    """On a worker: do one item, with the code of whoever asked and no other."""
    try:
        if code_hash() != code:
            raise InputError("a worker of the cluster has another glasshouse than this one; install the same on all")
        return _Parcel(work(packed.job(), item.content))
    except Exception as error:
        error.add_note("On a worker of the cluster:\n" + "".join(traceback.format_tb(error.__traceback__)))
        return _Raised(fit_to_travel(error))
