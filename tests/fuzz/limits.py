"""How is a case kept from harming us? It runs in a process that has little memory, and is killed when it takes long."""

from __future__ import annotations

import multiprocessing as mp
import os
import resource
import shutil
import signal
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

SECONDS, BYTES = 5.0, 1 << 30  # of one case: of the processor, and of memory
_ASLEEP = 60.0  # seconds by the clock after which a case hangs, whatever the processor does
_STARTING = 300.0  # seconds, to import everything
FINE = ("read", "refused")
MADE = "made"


@dataclass
class Fuzzed:
    """How the cases ended, and those that ended otherwise."""

    ended: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    slowest: tuple[float, str] = (0.0, "")

    def told(self) -> str:
        kinds = sorted({kind for kind, _ in self.ended})
        lines = [
            f"{kind:<10}" + "".join(f"{self.ended[kind, how]:>9,} {how}" for how in (*FINE, "wrong")) for kind in kinds
        ]
        return "\n".join([*lines, f"slowest: {self.slowest[0]:.2f} s, {self.slowest[1]}", *self.wrong])


class Reader:
    """A process that reads cases, one after the other."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="glasshouse-fuzz-"))
        context = mp.get_context("spawn")
        self.end, other = context.Pipe()
        self.process = context.Process(target=_serve, args=(other, str(self.folder)), daemon=True)
        self.process.start()
        other.close()
        if self._answer(_STARTING) != "ready":
            raise RuntimeError("the process that reads cases does not start")

    def read(self, kind: str, seed: int) -> str:
        """How a case ended; after a crash or a hang the process is gone."""
        self.end.send((kind, seed))
        began, spent = time.monotonic(), self._spent()
        while (answer := self._answer(0.2)) in (None, MADE):
            if answer == MADE:  # the making is ours, and not measured
                spent = self._spent()
            took, asleep = self._spent() - spent, time.monotonic() - began
            if self.died or took > SECONDS or asleep > _ASLEEP:
                how = f"crash (exit code {self.process.exitcode})" if self.died else f"more than {SECONDS:g} s"
                self.close()
                return how
        return answer

    def _spent(self) -> float:
        """Seconds of the processor that the process has had."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def died(self) -> bool:
        return not self.process.is_alive()

    def _answer(self, seconds: float) -> str | None:
        try:
            return str(self.end.recv()) if self.end.poll(seconds) else None
        except (EOFError, OSError):
            return None

    def close(self) -> None:
        self.process.kill()
        self.process.join()
        shutil.rmtree(self.folder, ignore_errors=True)


def fuzz(cases: Iterable[tuple[str, int]]) -> Iterator[Fuzzed]:
    """Run cases, and say after each how all have ended."""
    found, reader = Fuzzed(), None
    try:
        for kind, seed in cases:
            reader = reader or Reader()
            began = time.monotonic()
            how = reader.read(kind, seed)
            took = time.monotonic() - began
            found.slowest = max(found.slowest, (took, f"{kind} {seed}"))
            found.ended[kind, how if how in FINE else "wrong"] += 1
            if how not in FINE:
                found.wrong.append(f"python -m tests.fuzz --kind {kind} --case {seed}: {how}")
                if not reader.process.is_alive():
                    reader = None
            yield found
    finally:
        if reader is not None:
            reader.close()


def _serve(end: Connection, folder: str) -> None:
    """In the process: read what is asked for, in an empty folder, with as much more memory as a case may take."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["POLARS_MAX_THREADS"] = "1"
    tempfile.tempdir = folder
    from tests.fuzz.cases import KINDS, run, warm

    warm(Path(folder))  # what is loaded late, and compiled, is there before the memory is measured
    for kind in KINDS:
        _once(run, kind, 0, folder)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    end.send("ready")
    while True:
        try:
            kind, seed = end.recv()
        except EOFError:
            return
        end.send(_once(run, kind, seed, folder, lambda: end.send(MADE)))


def _once(run: Any, kind: str, seed: int, folder: str, made: Callable[[], None] = lambda: None) -> str:
    with tempfile.TemporaryDirectory(dir=folder) as own:
        try:
            return str(run(kind, seed, Path(own), made))
        except BaseException as error:
            at = traceback.extract_tb(error.__traceback__)[-3:]
            where = " < ".join(f"{Path(one.filename).name}:{one.lineno}" for one in reversed(at))
            return f"{type(error).__name__}: {str(error)[:200]!r} at {where}"
