"""Killed, out of disk, unreadable: does the same command then end as if nothing had happened? See `tests.faults`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import glasshouse
from glasshouse import NAMESPACES
from glasshouse.commands.declaration import declaration
from tests.faults.commands import COMMANDS, Command
from tests.faults.inject import FULL, KILL, UNREADABLE
from tests.faults.judge import KINDS, Bench
from tests.faults.server import serving

SOME = (("protect properties", KILL, 6), ("protect properties", FULL, 8), ("protect properties", UNREADABLE, 8),
        ("synthesize", KILL, 30))  # fmt: skip
SHARE = 4  # of every so many faults one; of every single one, at the desk: `python -m tests.faults`


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with serving() as server:
        yield Bench(tmp_path_factory.mktemp("faults"), server)


def test_every_command_that_writes_is_put_to_the_test() -> None:
    functions = {verb: getattr(glasshouse, verb) for verb in glasshouse.VERBS}
    functions |= {f"{name} {verb}": getattr(group, verb) for name, group in NAMESPACES.items() for verb in group}
    writing = {name for name, function in functions.items() if "out" in declaration(function).by_name}
    typed = [command.typed for command in COMMANDS.values()]
    own = {"protect cap"}  # a test's own, which may have been added to the register
    assert {name for name in writing if not any(one.startswith(f"{name} ") for one in typed)} <= own


@pytest.mark.parametrize(("name", "kind", "every"), SOME)
def test_some_faults(name: str, kind: str, every: int, bench: Bench) -> None:
    wrong = list(filter(None, bench.trial(name, COMMANDS[name], kind, every)))
    assert bench.tried[name, kind] >= 2 and not wrong, "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", COMMANDS)
def test_faults_of_every_command(name: str, kind: str, bench: Bench) -> None:
    wrong = list(filter(None, bench.trial(name, COMMANDS[name], kind, SHARE * COMMANDS[name].every)))
    assert bench.tried[name, kind] and not wrong, "\n".join(wrong)


def test_the_harness_sees_when_a_second_run_gives_something_else(bench: Bench) -> None:
    typed = COMMANDS["protect properties"].typed.replace("--rho 12.66", "--rho 0.001")  # two draws are never alike
    chance = Command(f"{typed} --secure")  # not declared as secure
    (wrong,) = bench.trial("a draw", chance, KILL, 1000)
    assert wrong.startswith("a draw: kill at call 1 of")


CALLS = re.compile(r"(renameat2|renameat|rename|unlinkat|unlink|rmdir|mkdirat|mkdir|fsync|fdatasync|link|linkat)\(")
NAMED = {"renameat2": "rename", "renameat": "rename", "unlink": "remove", "mkdirat": "mkdir", "fdatasync": "fsync"}


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
@pytest.mark.parametrize("name", COMMANDS)
def test_no_library_renames_or_removes_behind_our_back(name: str, bench: Bench, tmp_path: Path) -> None:
    """What the system is asked for is what the harness counts: nothing in another language escapes it."""
    command = COMMANDS[name]
    if command.rows or command.every > 1:
        pytest.skip("long, and what it writes is written by the others")
    case, _ = bench.case(command)
    counted = Counter(bench.run(command, case).calls)
    case, _ = bench.case(command)
    log = tmp_path / "log"
    program = [sys.executable, "-m", "glasshouse", *command.arguments]
    environment = os.environ | {"TMPDIR": str(case / "tmp"), "PYTHONDONTWRITEBYTECODE": "1"}
    traced = "trace=rename,renameat,renameat2,unlink,unlinkat,rmdir,mkdir,mkdirat,fsync,fdatasync,link,linkat"
    subprocess.run(["strace", "-f", "-y", "-e", traced, "-o", log, *program], cwd=case, env=environment, check=True)
    met = Counter(_call(line) for line in log.read_text().splitlines() if _ours(line, case))
    kinds = ("rename", "remove", "rmdir", "mkdir", "fsync")
    assert {kind: met[kind] for kind in kinds} == {kind: counted[kind] for kind in kinds}
    assert not met["link"] + met["linkat"]


def _ours(line: str, case: Path) -> bool:
    """A call in the folder of the case: by an absolute path inside it, or by a relative one."""
    found = CALLS.search(line)
    if not found or "resumed>" in line:
        return False
    path = re.search(r'"([^"]*)"', line)
    if path is None:
        return str(case) in line
    return path[1].startswith(str(case)) or (not path[1].startswith("/") and (str(case) in line or "<" not in line))


def _call(line: str) -> str:
    found = CALLS.search(line)
    assert found is not None
    if found[1] == "unlinkat":
        return "rmdir" if "AT_REMOVEDIR" in line else "remove"
    return NAMED.get(found[1], found[1])
