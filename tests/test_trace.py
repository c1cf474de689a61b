"""Does the way from a command to the answer of a block enter any module twice? Every call of it is looked at.

A module is entered twice when it calls another which, in turn, calls it again: then neither can be read alone. Calls
within a module do not count, nor do modules that only hold nouns (`LEAVES`): anybody may ask them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import CodeType, FrameType

import numpy as np
import pytest

import glasshouse
from glasshouse.attack.claims.verify import verify
from glasshouse.attack.reconstruct import reconstruct
from glasshouse.attack.vary import vary
from glasshouse.program.cpsat import cpsat
from glasshouse.program.highs import highs
from glasshouse.program.ladder import Ladder
from tests.running import good, tool
from tests.test_attack import targets
from tests.test_verify import drawn, places_in

SRC = Path(glasshouse.__file__).parent
LEAVES = ("model.", "errors")  # what we talk about

Way = tuple[str, ...]  # modules, the outermost first, each as long as it stays the same once


class Trace:
    """The ways through the modules of the house that calls take."""

    def __init__(self) -> None:
        self.stack: list[Way] = [()]
        self.ways: set[Way] = set()
        self.names: dict[CodeType, str] = {}

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            way, module = self.stack[-1], self.module(frame.f_code)
            if module and way[-1:] != (module,):
                way = (*way, module)
                self.ways.add(way)
            self.stack.append(way)
        elif event == "return" and len(self.stack) > 1:
            self.stack.pop()

    def module(self, code: CodeType) -> str:
        """The module of the house that code is of, if any; nouns are not told."""
        if code not in self.names:
            path = Path(code.co_filename)
            own = path.is_relative_to(SRC)
            name = ".".join(path.relative_to(SRC).with_suffix("").parts) if own else ""
            self.names[code] = "" if name.startswith(LEAVES) else name
        return self.names[code]

    def reached(self, module: str) -> bool:
        return any(module in way for way in self.ways)

    def twice(self) -> list[str]:
        """The ways to an answer of the core on which a module is entered twice."""
        found = set()
        for way in self.ways:
            if len(set(way)) < len(way) and any(module.startswith(("attack.", "program.")) for module in way):
                found.add(" > ".join(way))
        return sorted(found)


@contextmanager
def traced() -> Iterator[Trace]:
    trace, before = Trace(), sys.getprofile()
    sys.setprofile(trace)
    try:
        yield trace
    finally:
        sys.setprofile(before)


LADDERS = {
    "as it is": Ladder(),
    "solvers": Ladder(nodes=0, guided=1),
    "engines disagree": Ladder(
        nodes=0, guided=0, engines=(cpsat, highs), cases=False
    ),  # the first proves nothing alone
}


@pytest.mark.parametrize("rung", LADDERS)
@pytest.mark.parametrize("sort", ["exact", "joint"])
def test_from_the_attack_to_the_answer_no_module_is_entered_twice(rung: str, sort: str) -> None:
    ladder = LADDERS[rung]
    with traced() as trace:
        for target in targets(sort, 25):
            rebuilt = reconstruct(target.published, target.unit, np.random.default_rng(1), ladder)
            vary(target.published, target.unit, rebuilt.place, rebuilt.codes, jointly=sort == "joint", ladder=ladder)
    assert trace.reached("program.extremes") and trace.reached("program.answers")
    assert rung == "as it is" or trace.reached("program.ladder")
    assert rung != "engines disagree" or trace.reached("program.certainty.confirm")
    assert not trace.twice()


@pytest.mark.parametrize("rung", LADDERS)
def test_from_claims_to_what_is_certain_no_module_is_entered_twice(rung: str) -> None:
    with traced() as trace:
        for seed in range(4):
            toy, wording, _ = drawn(seed)
            for place in places_in(toy, wording, LADDERS[rung]):
                list(verify(place, 1, LADDERS[rung]).represented(LADDERS[rung]))
    assert trace.reached("program.settled") and trace.reached("program.ranges")
    assert not trace.twice()


def test_from_the_command_to_the_answer_of_a_block_no_module_is_entered_twice(tmp_path: Path) -> None:
    good(tool("synthesize", "--persons", 300, "--seed", 3, "--out", tmp_path / "county", "--quiet"))
    records, tables = tmp_path / "county" / "cef.parquet", tmp_path / "tables.parquet"
    good(tool("tabulate", records, "--scenario", "sf1-person", "--out", tables, "--quiet"))
    import_module("glasshouse.commands.work.vary")  # importing is no way to an answer
    with traced() as trace:
        good(tool("vary", tables, "--scenario", "sf1-person", "--workers", 1, "--out", tmp_path / "out", "--quiet"))
    assert trace.reached("attack.vary") and trace.reached("program.answers"), "one worker works in this process"
    assert not trace.twice()
