"""What do the workers of the tests do? Functions here, where a new process finds them."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glasshouse.engine.workers import Crew, work_through
from glasshouse.errors import InputError

if TYPE_CHECKING:
    from glasshouse.engine.ledger import Entry

THREADS = ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass
class Job:
    """A job that counts how often it was used: one that is sent again would begin anew."""

    folder: Path
    ballast: bytes = b""
    used: int = 0


class Number(int):
    """A unit of work."""

    @property
    def code(self) -> str:
        return str(int(self))

    @property
    def places(self) -> int:
        return 1


@dataclass(frozen=True)
class Done:
    item: int
    answer: int
    pid: int
    used: int


def square(job: Job, item: Number) -> Done:
    job.used += 1
    return Done(int(item), item * item, os.getpid(), job.used)


def through(work: Callable[[Any, Any], Any], job: Job, items: Iterable[int], crew: Crew) -> Generator[Done]:
    """Whoever is asked does the work; to a cluster and back it goes as entries, as that of every command does."""
    numbers = map(Number, items)
    if crew.address is None:  # entries need polars, which a new process of these tests starts sooner without
        yield from work_through(work, job, numbers, crew, {})  # type: ignore[misc]
        return
    with closing(work_through(partial(as_entry, work), job, numbers, crew, {"rows": row_kind()})) as entries:  # type: ignore[type-var]
        for entry in entries:
            yield Done(**entry.frames["rows"].row(0, named=True))


def row_kind() -> Any:  # a constant that is made late
    import polars as pl

    return pl.Schema(dict.fromkeys(("item", "answer", "pid", "used"), pl.Int64))


def as_entry(work: Callable[[Any, Any], Done], job: Job, item: Number) -> Entry:
    import polars as pl

    from glasshouse.engine.ledger import Entry, Notes

    rows = pl.DataFrame([asdict(work(job, item))], schema=row_kind())
    return Entry(item.code, Notes(places=item.places), {"rows": rows})


def linger(job: Job, item: Number) -> Done:
    """All but the first two items take for ever."""
    if item > 1:
        time.sleep(3600)
    return square(job, item)


def refuse_seven(job: Job, item: Number) -> Done:
    if item == 7:
        raise InputError("seven is refused")
    return square(job, item)


class Homebound(Exception):  # noqa: N818  # it cannot be unpacked: its two arguments are not kept
    def __init__(self, left: int, right: int) -> None:
        super().__init__(f"{left} {right}")


def raise_what_cannot_travel(job: Job, item: Number) -> Done:
    raise Homebound(item, item)


class Locked(Job):
    """A job that a worker cannot unpack."""

    def __reduce__(self) -> tuple[object, ...]:
        return int, ("no number",)


def die_once(job: Job, item: Number) -> Done:
    """The first to come to item 5 is killed."""
    if item == 5:
        try:
            (job.folder / "died").touch(exist_ok=False)
        except FileExistsError:
            return square(job, item)
        os.kill(os.getpid(), signal.SIGKILL)
    return square(job, item)


def die(job: Job, item: Number) -> Done:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("dead by now")


def die_once_with_parcel(job: Job, item: tuple[int, bytes]) -> Done:
    return die_once(job, Number(item[0]))


def tell_surroundings(job: Job, item: int) -> tuple[list[str | None], bool]:
    """The settings for threads, and whether Ctrl-C is kept out."""
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, set())
    return [os.environ.get(name) for name in THREADS], signal.SIGINT in blocked
