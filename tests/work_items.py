"""What do the workers of the tests do? Functions here, where a new process finds them."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from glasshouse.errors import InputError

THREADS = ("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass
class Job:
    """A job that counts how often it was used: one that is sent again would begin anew."""

    folder: Path
    ballast: bytes = b""
    used: int = 0


@dataclass(frozen=True)
class Done:
    item: int
    answer: int
    pid: int
    used: int


def square(job: Job, item: int) -> Done:
    job.used += 1
    return Done(item, item * item, os.getpid(), job.used)


def linger(job: Job, item: int) -> Done:
    """All but the first two items take for ever."""
    if item > 1:
        time.sleep(3600)
    return square(job, item)


def refuse_seven(job: Job, item: int) -> Done:
    if item == 7:
        raise InputError("seven is refused")
    return square(job, item)


class Homebound(Exception):  # noqa: N818  # it cannot be unpacked: its two arguments are not kept
    def __init__(self, left: int, right: int) -> None:
        super().__init__(f"{left} {right}")


def raise_what_cannot_travel(job: Job, item: int) -> Done:
    raise Homebound(item, item)


class Locked(Job):
    """A job that a worker cannot unpack."""

    def __reduce__(self) -> tuple[object, ...]:
        return int, ("no number",)


def die_once(job: Job, item: int) -> Done:
    """The first to come to item 5 is killed."""
    if item == 5:
        try:
            (job.folder / "died").touch(exist_ok=False)
        except FileExistsError:
            return square(job, item)
        os.kill(os.getpid(), signal.SIGKILL)
    return square(job, item)


def die(job: Job, item: int) -> Done:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("dead by now")


def die_once_with_parcel(job: Job, item: tuple[int, bytes]) -> Done:
    return die_once(job, item[0])


def tell_surroundings(job: Job, item: int) -> tuple[list[str | None], bool]:
    """The settings for threads, and whether Ctrl-C is kept out."""
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, set())
    return [os.environ.get(name) for name in THREADS], signal.SIGINT in blocked
