"""How are a thousand runs done quickly? A process imports everything once, and forks a child for each.

What is the same in every run, the server has done before: it has imported everything, read the built-in scenarios and
set Numba up. It computes nothing else: libraries that work with threads are not yet awake when it forks.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from glasshouse.program.tables import kept, store
from tests.faults.inject import KILL, Faults

SECONDS = 120  # a run that takes longer hangs


class Ended(NamedTuple):
    """How a run ended: its exit code (-9: killed), what it printed, and the calls that were counted."""

    code: int
    out: str
    err: str
    calls: list[str]


class Server:
    """Runs commands, each in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def run(
        self, arguments: list[str], case: Path, kind: str = KILL, number: int = 0, *, on: bool = False, rows: int = 0,
        keeps: str = "",
    ) -> Ended:  # fmt: skip
        """A command in the folder of a case; `number` 0 lets nothing go wrong, `rows` is what a sort holds.

        In the folder that `keeps` what is compiled, if there is one, tables are kept however small they are.
        """
        asked = {"arguments": arguments, "case": str(case), "kind": kind, "number": number, "on": on, "rows": rows,
                 "keeps": keeps}  # fmt: skip
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        return Ended(**json.loads(self.process.stdout.readline()))


@contextmanager
def serving() -> Iterator[Server]:
    """A server, while it is needed."""
    environment = os.environ | {"POLARS_MAX_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", store.VARIABLE: "off"}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.server"], cwd=Path(__file__).parents[2], env=environment, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    try:
        yield Server(process)
    finally:
        process.communicate()  # it ends when there are no more lines


def main() -> None:
    """Answer one line with one line, until there are no more."""
    _import_everything()
    for line in sys.stdin:
        asked = json.loads(line)
        with tempfile.TemporaryDirectory() as folder:
            told = {name: Path(folder, name) for name in ("out", "err", "calls")}
            child = os.fork()
            if not child:
                _child(asked, told)
            _, status = os.waitpid(child, 0)
            texts = {name: path.read_text() if path.exists() else "" for name, path in told.items()}
        ended = Ended(os.waitstatus_to_exitcode(status), texts["out"], texts["err"], texts["calls"].split())
        print(json.dumps(ended._asdict()), flush=True)


def _import_everything() -> None:
    import pkgutil

    import numba

    import glasshouse
    from glasshouse.cli.main import application
    from glasshouse.scenarios.load import known_scenarios, load

    for module in pkgutil.walk_packages(glasshouse.__path__, "glasshouse."):
        if not module.name.endswith("__main__"):
            __import__(module.name)
    application()
    for name in known_scenarios():
        load(name).official  # noqa: B018  # both are kept
    numba.njit(lambda: 0)()


def _child(asked: dict[str, Any], told: dict[str, Path]) -> None:
    import signal

    from glasshouse.cli.main import main as command
    from glasshouse.files import regroup

    case = Path(asked["case"])
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(told[name], os.O_WRONLY | os.O_CREAT), number)
    signal.alarm(SECONDS)
    os.chdir(case)
    tempfile.tempdir = str(case / "tmp")
    if asked["rows"]:
        regroup.regroup.__kwdefaults__["limit"] = asked["rows"]  # type: ignore[index]
    if asked["keeps"]:
        os.environ[store.VARIABLE] = str(case / asked["keeps"])
        kept.WORTH = 0
    faults = Faults(asked["kind"], asked["number"], case.parent, on=asked["on"])
    faults.install()
    code = command(asked["arguments"])
    sys.stdout.flush()
    sys.stderr.flush()
    faults.kind = KILL
    faults.number = 0
    told["calls"].write_text(" ".join(faults.calls))
    os._exit(code)


if __name__ == "__main__":
    main()
