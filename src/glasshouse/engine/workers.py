"""Who does the work? This process, a pool of processes, or a Dask cluster; the answers are the same."""

from __future__ import annotations

import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, count, islice
from multiprocessing import connection, parent_process, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.synchronize import Lock
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from glasshouse.engine.package import PackedJob, fit_to_travel
from glasshouse.errors import GlasshouseBug, InputError, MachineFailed

if TYPE_CHECKING:  # a new process starts the sooner
    import polars as pl

    from glasshouse.engine.job import Asked
    from glasshouse.engine.ledger import Entry

Job = TypeVar("Job")
Item = TypeVar("Item", bound="Asked")
Result = TypeVar("Result")

_BREAKS = 3
_LISTEN = 0.5  # seconds
_ONE_THREAD = dict.fromkeys(("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
_hired: tuple[Callable[[Any, Any], Any], PackedJob] | None = None  # in a worker: the work and its job


@dataclass(frozen=True)
class Crew:
    """How many processes of this machine work, or the address of the cluster that does."""

    workers: int = 1
    address: str | None = None  # dask://HOST:PORT or tls://HOST:PORT
    insecure: bool = False  # dask:// to another machine, too

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise InputError(f"--workers is {self.workers}; expected 1 or more")
        if self.insecure and self.address is None:
            raise InputError("--insecure needs --executor: on this machine nothing is sent")


def work_through(
    work: Callable[[Job, Item], Entry], job: Job, items: Iterable[Item], crew: Crew, kinds: Mapping[str, pl.Schema]
) -> Iterator[Entry]:
    """What work(job, item) gave, in the order in which it is finished; what work raises comes out here.

    A worker is sent the job once and keeps it. At most 2 items for each worker, and 1, are taken and not yet answered.
    Rows that come from another machine must be of these `kinds`.
    """
    if crew.address is not None:
        from glasshouse.engine.dask import by_cluster  # late: Dask is an extra

        yield from by_cluster(work, job, items, kinds, crew.address, insecure=crew.insecure)
        return
    rest = iter(items)
    ahead = deque(islice(rest, 2 * crew.workers if crew.workers > 1 else 0))
    if crew.workers > 1 and len(ahead) == 2 * crew.workers:
        yield from _by_processes(work, job, ahead, rest, crew.workers)
        return
    for item in chain(_poured(ahead), rest):  # so few are done before a second process has started
        yield work(job, item)


def _by_processes(
    work: Callable[[Job, Item], Entry], job: Job, ahead: deque[Item], rest: Iterator[Item], workers: int
) -> Iterator[Entry]:
    """Give the items to a pool; when a worker dies, give what was in hand to a new pool."""
    numbers = count()
    breaks = 0
    while True:
        in_hand: dict[int, Item] = {}
        with _Pool(work, job, workers) as pool:
            while True:
                for item in islice(chain(_poured(ahead), rest), 2 * workers + 1 - len(in_hand)):
                    number = next(numbers)
                    in_hand[number] = item
                    pool.give(number, item)
                if not in_hand:
                    return
                number, result, error = pool.take()
                if isinstance(error, BrokenProcessPool):
                    break
                del in_hand[number]
                if error is not None:
                    raise error
                breaks = 0
                yield result
        ahead.extend(in_hand.values())
        breaks += 1
        if breaks == _BREAKS:
            raise MachineFailed(
                f"workers die again and again ({breaks} times without a result in between), perhaps for want of "
                "memory; what is finished is kept: run the command again with fewer --workers"
            ) from error


def _poured(items: deque[Item]) -> Iterator[Item]:
    while items:
        yield items.popleft()


class _Pool:
    """A pool whose workers hold the job; at the end they are killed, whatever they do.

    A foreman, a thread of its own, deals with the standard pool: a Ctrl-C strikes the main thread anywhere, and if it
    struck there, a lock might stay locked for ever. The main thread meets the foreman only at queues that bear it.
    """

    def __init__(self, work: Callable[[Job, Any], Any], job: Job, workers: int) -> None:
        self.context = _Workers()
        # Not among the arguments of a process: if it died while it read them, its parent would wait for ever.
        self.receiver, sender = self.context.Pipe(duplex=False)
        hiring = (work, self.receiver, self.context.Lock())
        self.pool = ProcessPoolExecutor(workers, self.context, _hire, hiring)
        self.orders: SimpleQueue[tuple[int, Any] | None] = SimpleQueue()
        self.given: SimpleQueue[int] = SimpleQueue()
        self.answers: SimpleQueue[tuple[int, Any, BaseException | None]] = SimpleQueue()
        self.foreman = threading.Thread(target=self._lead, daemon=True)
        copies = (PackedJob.of(job).content, sender, workers)
        self.courier = threading.Thread(target=_hand_out, args=copies, daemon=True)

    def __enter__(self) -> _Pool:
        self.courier.start()
        self.foreman.start()
        return self

    def __exit__(self, *why: object) -> None:
        self.orders.put(None)
        self.foreman.join()
        self.courier.join()

    def give(self, number: int, item: Any) -> None:
        self.orders.put((number, item))
        _next_of(self.given)  # until then the environment may be that of a new worker

    def take(self) -> tuple[int, Any, BaseException | None]:
        """The number of an item with what came of it: a result or an error."""
        return _next_of(self.answers)

    def _lead(self) -> None:
        while (order := self.orders.get()) is not None:
            number, item = order
            try:
                self.pool.submit(_work_on, item).add_done_callback(partial(self._report, number))
            except Exception as error:
                self.answers.put((number, None, error))
            self.given.put(number)
        self.context.kill()
        self.pool.shutdown(cancel_futures=True)
        self.receiver.close()  # no one is left to read: the courier may stop

    def _report(self, number: int, future: Future[Any]) -> None:
        if not future.cancelled():
            error = future.exception()
            self.answers.put((number, None if error else future.result(), error))


def _next_of(queue: SimpleQueue[Result]) -> Result:
    """Wait, but wake up now and then: a Ctrl-C that comes just before the waiting begins is not heard in it."""
    while True:
        with suppress(Empty):
            return queue.get(timeout=_LISTEN)


def _hand_out(packed: bytes, sender: Connection, workers: int) -> None:
    with sender, suppress(BrokenPipeError):
        for _ in range(workers):
            sender.send_bytes(packed)


class _Workers(SpawnContext):
    """Starts the processes of one pool and knows them all, also one that a Ctrl-C surprised at its start."""

    def __init__(self) -> None:
        super().__init__()
        self.started: list[_Worker] = []

    def Process(self, *args: Any, **kwargs: Any) -> SpawnProcess:  # type: ignore[override]  # noqa: N802  # a class there
        worker = _Worker(*args, **kwargs)
        self.started.append(worker)
        return worker

    def kill(self) -> None:
        for worker in self.started:
            if worker.pid is not None:
                worker.kill()
                worker.join()


class _Worker(SpawnProcess):
    """A process with one thread that does not hear Ctrl-C: that is for its parent, who ends it."""

    def start(self) -> None:
        resource_tracker.ensure_running()  # first: it would let SIGINT through again
        before = {name: os.environ.get(name) for name in _ONE_THREAD}
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # the new process inherits it
        try:
            os.environ.update(_ONE_THREAD)
            super().start()
        finally:
            for name, value in before.items():
                os.environ.pop(name)
                if value is not None:
                    os.environ[name] = value
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _hire(work: Callable[[Any, Any], Any], receiver: Connection, turn: Lock) -> None:
    """In a new worker: take the job, and make sure to go when the parent goes, even by kill -9."""
    global _hired
    threading.Thread(target=_go_with_parent, daemon=True).start()
    with turn:
        _hired = (work, PackedJob("", receiver.recv_bytes()))


def _go_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def _work_on(item: Any) -> Any:
    if _hired is None:
        raise GlasshouseBug("a worker was given an item before its job")
    work, packed = _hired
    try:
        return work(packed.job(), item)
    except Exception as error:
        if fit_to_travel(error) is not error:
            raise fit_to_travel(error) from None
        raise
