"""What does a run say while it works? Nothing, unless it runs aloud: a bar with the time left, and a few lines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from glasshouse.text import plain

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Voice:
    """Whether bars and lines are shown; the library is silent, the command line is not."""

    bars: bool = False
    lines: bool = False


_voice: ContextVar[Voice] = ContextVar("voice", default=Voice())  # noqa: B039  # frozen


@contextmanager
def aloud(*, bars: bool = True, lines: bool = True) -> Iterator[None]:
    """Within this, runs show how far they are."""
    before = _voice.set(Voice(bars, lines))
    try:
        yield
    finally:
        _voice.reset(before)


def say(*lines: str) -> None:
    """Say something while a run is under way."""
    if _voice.get().lines:
        for line in lines:
            print(plain(line, lines=True), file=sys.stderr)


def shows_bars() -> bool:
    return _voice.get().bars


class Bar(Protocol):
    """Takes the share that is done, and perhaps a few words on how it goes."""

    def __call__(self, done: float, said: str = "") -> None: ...


@contextmanager
def progress(description: str) -> Iterator[Bar]:
    """A bar on stderr with the time left, when that is a terminal; silence elsewhere."""
    if not _voice.get().bars or not sys.stderr.isatty():
        yield lambda done, said="": None
        return
    from rich.console import Console  # late: --help must not wait for it
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns: tuple[Any, ...] = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[said]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(description, total=1.0, said="")
        yield lambda done, said="": bar.update(task, completed=min(done, 1.0), said=said)


def in_order(work: Callable[[Item], Result], items: Iterable[Item], workers: int) -> Iterator[Result]:
    """Apply compiled work to items in threads, a few ahead, and give the results in order: workers do not matter."""
    if workers <= 1:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(workers) as pool:
        waiting: list[Future[Result]] = []
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > 2 * workers:
                yield waiting.pop(0).result()
        for future in waiting:
            yield future.result()
