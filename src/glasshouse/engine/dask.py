"""How does a Dask cluster do the work? It is sent the job and the items, and gives the answers back to us alone.

Dask's own futures are used, not its `get_executor()`: they can be released one by one, say why they ended, and an
answer that was lost with its worker is computed again. A worker unpickles what we send; we unpickle nothing.
"""

from __future__ import annotations

import queue
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from glasshouse.engine.answer import Expected, Refused, entry_home, error_home, read_answer
from glasshouse.engine.ledger import Entry
from glasshouse.engine.manifest import code_hash
from glasshouse.engine.package import PackedJob
from glasshouse.engine.wire import PATIENCE, Sealed, connected
from glasshouse.errors import InputError, MachineFailed

if TYPE_CHECKING:  # a worker is ready the sooner
    import polars as pl

    from glasshouse.engine.job import Asked

Job = TypeVar("Job")
Item = TypeVar("Item", bound="Asked")

_LOOK_AGAIN = 2.0  # seconds until the workers are counted again
_MOST_AT_ONCE = 10_000  # items, however many workers a scheduler says it has


@dataclass(frozen=True, repr=False)
class _Parcel:
    """What travels, closed: Dask neither looks into it nor prints it in a log."""

    content: Any


def by_cluster(
    work: Callable[[Job, Item], Entry],
    job: Job,
    items: Iterable[Item],
    kinds: Mapping[str, pl.Schema],
    address: str,
    *,
    insecure: bool,
) -> Iterator[Entry]:
    """What workers.work_through promises; only that a unit which runs when we leave runs to its end, unheard."""
    packed = PackedJob.of(job)
    try:
        client = connected(address, insecure=insecure)
    except InputError as error:
        raise MachineFailed(*error.args) from None
    rest = iter(items)
    in_hand: dict[Any, Expected] = {}
    done: queue.SimpleQueue[Any] = queue.SimpleQueue()
    try:
        with _trouble_named(client, address):
            # A task and not scattered data: if the worker that holds it dies, another one makes it again.
            shared = client.submit(_kept, packed, pure=False)
            width = _Width(client, address)
        while True:
            with _trouble_named(client, address):
                most = min(2 * width.now() + 1, _MOST_AT_ONCE)
            for item in islice(rest, max(0, most - len(in_hand))):
                with _trouble_named(client, address):
                    future = client.submit(_work_on, work, shared, _Parcel(item), code_hash(), pure=False)
                    in_hand[future] = Expected(packed.token, item.code, item.places, kinds)
                    future.add_done_callback(done.put)
            if not in_hand:
                return
            try:
                future = done.get(timeout=_LOOK_AGAIN)
            except queue.Empty:
                continue
            with _trouble_named(client, address):
                answer = future.result()
            expected = in_hand.pop(future)
            future.release()
            yield _read(answer, expected, address)
    finally:
        with suppress(Exception):  # a scheduler that is gone cannot say goodbye
            client.close(timeout=PATIENCE)


def _read(answer: object, expected: Expected, address: str) -> Entry:
    try:
        if not isinstance(answer, Sealed):
            raise Refused("no bytes")
        return read_answer(answer.content, expected)
    except Refused as why:
        raise MachineFailed(
            f"{address}: a worker does not speak as Glasshouse does, and its answer was refused ({why}); nothing of it "
            "was run or kept: check who can reach this cluster"
        ) from None


class _Width:
    """How many items the cluster does at once, counted again as workers come and go."""

    def __init__(self, client: Any, address: str) -> None:
        self.client, self.address = client, address
        self.threads, self.looked, self.looks_at_none = 0, float("-inf"), 0

    def now(self) -> int:
        if time.monotonic() - self.looked >= _LOOK_AGAIN:
            self.threads = max(0, int(sum(self.client.nthreads().values())))  # whatever a scheduler says
            self.looked = time.monotonic()
            self.looks_at_none = 0 if self.threads else self.looks_at_none + 1
            if self.looks_at_none == 3:
                print(f"warning: {self.address} has no workers; waiting for some to come", file=sys.stderr)
        return self.threads


@contextmanager
def _trouble_named(client: Any, address: str) -> Iterator[None]:
    """Say what is wrong with the cluster, without the data that its messages may hold."""
    kept = "what is finished is kept: run the command again"
    try:
        yield
    except Exception as error:
        name = str(error) if type(error) is Exception else type(error).__name__  # of a worker's we know the name alone
        if name == "KilledWorker":
            found = "workers die again and again over one unit, perhaps for want of memory"
            remedy = "with more memory for each worker"
        elif isinstance(error, CancelledError | OSError) or client.status != "running":
            found, remedy = "the scheduler is gone", "when it is back"
        else:
            found = "the workers cannot take up the work; they need the same packages as this machine"
            remedy = "when they have them"
        raise MachineFailed(f"{address}: {found} ({name}); {kept} {remedy}") from error


def _kept(packed: PackedJob) -> PackedJob:
    return packed


def _work_on(work: Callable[[Any, Any], Entry], packed: PackedJob, item: _Parcel, code: str) -> bytes:
    """On a worker: do one item, with the code of whoever asked and no other.

    What is raised comes home as an answer too: the log of a worker shows the data of a task that fails.
    """
    try:
        if code_hash() != code:
            raise InputError("a worker of the cluster has another glasshouse than this one; install the same on all")
        return entry_home(work(packed.job(), item.content), packed.token)
    except Exception as error:
        return error_home(error)
