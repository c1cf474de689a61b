"""How do tests run the tool? In this process, with what it prints caught; or as a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from io import StringIO
from typing import Any, NamedTuple

from glasshouse.cli.main import main


class Ended(NamedTuple):
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one JSON object that is all of stdout."""
        assert self.out.count("\n") == 1, self.out
        said = json.loads(self.out)
        assert isinstance(said, dict)
        return said


def without(usual: Sequence[object], given: Sequence[object]) -> list[object]:
    """The usual arguments without options (and their values) that are given otherwise; none may be there twice."""
    again = [at for at, one in enumerate(usual) if isinstance(one, str) and one.startswith("--") and one in given]
    return [one for at, one in enumerate(usual) if at not in again and at - 1 not in again]


def tool(*arguments: object) -> Ended:
    """A command in this process."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    return Ended(code, out.getvalue(), err.getvalue())


def good(ended: Ended, code: int = 0) -> Ended:
    """It ended as it should, and without a bug of ours."""
    assert ended.code == code, ended
    assert "Traceback" not in ended.err and "bug" not in ended.err
    return ended


@contextmanager
def started(*command: object, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """A Python process in a group of its own, which ends with the test."""
    process = subprocess.Popen(
        [sys.executable, *map(str, command)],
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
