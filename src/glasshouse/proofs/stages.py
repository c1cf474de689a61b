"""How is a hard part shown in few lines? By cuts, then by what sums of some costs come to, and cases last.

A case is a long line, so there should be few. The core's cases close such a part faster with many more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from glasshouse.model.records import Count
from glasshouse.program.certainty.cases import Closing
from glasshouse.program.certainty.cuts import Rows
from glasshouse.program.highs import highs, relax
from glasshouse.program.integer import IntegerProgram, Limit, Proof
from glasshouse.proofs.derivation import Derivation
from glasshouse.proofs.part import Cells, PartProgram
from glasshouse.proofs.replay import Known, Replay, Unshown

LIMIT, OF_SUM = Limit(effort=5.0), Limit(effort=1.0)
GAIN = 1e-6
TERMS = 500_000  # of all lines: with more, a certificate is too long to be checked


def closed(derived: Derivation, kinds: Sequence[int], wanted: int, cells: Cells) -> int | None:
    """The line that at least so many of these kinds overlap; None: it is not shown."""
    before, part, line = len(derived.lines), PartProgram(derived), None
    try:
        program, x = part.program(kinds, cells)
        if program.value(x) == wanted and program.fits(x):
            closing = Closing(program, x, None, LIMIT, keeps=True)
            through = closing.cut()
            if closing.value == wanted:
                cut = Replay(derived, part.columns, part, closing)
                line = cut.shown() if through else _by_cases(cut, part.sums())
    except Unshown:
        line = None
    if line is None or sum(len(one.terms) + len(one.times) for one in derived.lines[before:]) > TERMS:
        del derived.lines[before:]
        return None
    return line


def _by_cases(cut: Replay, sums: Sequence[Count]) -> int | None:
    """Learn what each sum comes to at least, one after the other; then cut again, and divide."""
    grown = _Grown(cut)
    for cost in sums:
        grown.learn(cost)
    closing = Closing(grown.program(cut.cost), None, None, LIMIT, cut.value, keeps=True)
    if closing.solution().proof != Proof.EXACT or closing.x is not None:
        return None
    return Replay(cut.derived, cut.columns, grown, closing).shown()


@dataclass
class _Grown:
    """A program with its cuts, and sums below them of which the least is known; why its rows and limits hold."""

    cut: Replay
    sums: list[Closing] = field(default_factory=list)
    lines: dict[int, int] = field(default_factory=dict)  # of sums that were used

    def program(self, cost: Count) -> IntegerProgram:
        """All rows, with another cost."""
        closing, sums = self.cut.closing, self.sums
        rows = Rows(closing.rows.matrix, closing.rows.lower, closing.rows.upper)
        if sums:
            rows.add(np.array([one.program.cost for one in sums]), np.array([one.value for one in sums], np.int64))
        return rows.program(cost, closing.limits.lower, closing.limits.upper)

    def learn(self, cost: Count) -> None:
        """Take a sum that comes to more than the relaxation says."""
        program = self.program(cost)
        vertex, found = relax(program, OF_SUM).x, highs(program, OF_SUM)
        if vertex is None or found.x is None or program.value(found.x) < cost @ vertex + GAIN:
            return
        closing = Closing(program, found.x, None, OF_SUM, keeps=True)
        if closing.solution().proof == Proof.EXACT:
            self.sums.append(closing)

    def row(self, number: int, *, up: bool) -> Known:
        numbers = self.cut.closing.numbers
        if number < len(numbers):
            return self.cut.row(int(numbers[number]), up=up)
        at = number - len(numbers)
        if at not in self.lines:
            self.lines[at] = Replay(self.cut.derived, self.cut.columns, self, self.sums[at]).shown()
        return self.lines[at], 1

    def limit(self, column: int, *, up: bool) -> Known:
        return self.cut.limit(self.cut.closing.limits, column, up=up)
