"""Which counts are the same in every histogram that fits? Thousands of descriptions at once.

One histogram that fits gives each description the only count it can have for certain; any other that counts differently
refutes it. So a few drawn histograms refute most, each asked-for extreme refutes more on its way, and only what must
be true is asked for in both directions. A bound on one description holds for others: where a wider one counts no more,
neither does a narrower one, and where a narrower one counts no less, neither does a wider one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from glasshouse.model.records import UNLIMITED
from glasshouse.program import ladder as rungs
from glasshouse.program import search
from glasshouse.program.bounds import linear
from glasshouse.program.histogram import Problem
from glasshouse.program.integer import Proof
from glasshouse.program.ladder import Ladder
from glasshouse.program.moves import exchanges, wandered
from glasshouse.program.propagate import Array
from glasshouse.program.ranges import LISTED
from glasshouse.program.reduce import Programs, Split, split

CLIMB = Ladder()
WALKS = 6  # known solutions that are looked around
AT_ONCE = 512  # sets whose changes are counted together
Flags = NDArray[np.bool_]


class Verdict(IntEnum):
    """What is known of a count."""

    SETTLED = 0  # the same in every histogram that fits
    REFUTED = 1  # two that fit count differently
    OPEN = 2  # all that were met agree, but others might not


@dataclass(frozen=True)
class Settled:
    """For each description its verdict, `low <= every count <= high`, and the least and most that were met.

    Of what is refuted no more was asked than that. `listed` says that every histogram that fits was looked at.
    """

    verdict: NDArray[np.int8]
    low: Array
    high: Array
    met_low: Array
    met_high: Array
    proof: tuple[Proof, ...]
    listed: bool
    solver_calls: int
    clock: bool

    def some(self, chosen: slice) -> Settled:
        """The same of some of the descriptions."""
        return replace(
            self, verdict=self.verdict[chosen], low=self.low[chosen], high=self.high[chosen],
            met_low=self.met_low[chosen], met_high=self.met_high[chosen], proof=self.proof[chosen],
        )  # fmt: skip


def settled(
    problem: Problem, start: Array, inside: Flags, meeting: Flags, number: int = 0, ladder: Ladder = CLIMB
) -> Settled:
    """Which sets of variables of a program count the same in every solution; `start` is one.

    `inside` are the variables that count towards the least, `meeting` those that count towards the most: they differ
    where a description cuts through cells.
    """
    whole = problem.split(propagate=ladder.propagate)
    first = int(problem.programs.first[number])
    fixed = start.copy()
    parts = []
    for part in np.flatnonzero(whole.owner == number):
        columns = whole.origin[whole.parts.first[part] : whole.parts.first[part + 1]] - first
        fixed[columns] = 0
        parts.append(_Part(whole.parts.only(int(part)), columns, start[columns], inside, meeting, ladder))
    base_low, base_high = inside @ fixed, meeting @ fixed
    alive = base_low == base_high
    for one in parts:
        alive &= one.agree[one.of]
    for one in parts:
        one.ask(alive)
        alive &= one.agree[one.of]
    sums = [base_low.copy(), base_high.copy(), base_low.copy(), base_high.copy()]
    sure = np.zeros(len(inside), np.int64)
    for one in parts:
        for total, known in zip(sums, (one.low, one.high, one.met_low, one.met_high), strict=True):
            total += known[one.of]
        sure = np.maximum(sure, np.maximum(one.sure_low, one.sure_high)[one.of])
    low, high, met_low, met_high = (np.minimum(total, UNLIMITED) for total in sums)
    verdict = np.where(met_low < met_high, Verdict.REFUTED, np.where(low == high, Verdict.SETTLED, Verdict.OPEN))
    proof = tuple(
        Proof.UNDECIDED if verdict[at] == Verdict.OPEN else Proof.EXACT if verdict[at] else rungs.ORDER[sure[at]]
        for at in range(len(verdict))
    )
    return Settled(
        verdict.astype(np.int8), low, high, met_low, met_high, proof, all(one.listed for one in parts),
        sum(one.calls for one in parts), any(one.clock for one in parts),
    )  # fmt: skip


class _Part:
    """One part of a program: what every set of its variables counts at least and at most, as far as it was asked."""

    def __init__(
        self, program: Programs, columns: Array, start: Array, inside: Flags, meeting: Flags, ladder: Ladder
    ) -> None:
        self.start, self.ladder = start, ladder
        pairs, of = np.unique(
            np.packbits(np.concatenate([inside[:, columns], meeting[:, columns]], axis=1), axis=1),
            axis=0, return_inverse=True,
        )  # fmt: skip
        self.of: Array = of.reshape(-1)
        width = len(columns)
        both = np.unpackbits(pairs, axis=1, count=2 * width).astype(np.bool_)
        self.inside, self.meeting = both[:, :width], both[:, width:]
        self.calls, self.clock = 0, False
        pool, self.listed = search.enumerate_part(program, 0, LISTED, 4 * LISTED) if ladder.nodes > 0 else (None, False)
        self.split: Split | None = None
        if pool is None or not self.listed:
            self.split = split(program, np.zeros(1, np.bool_), propagate=ladder.propagate)
            pool = start[None, :]
        least, most = self.inside @ pool.T, self.meeting @ pool.T
        self.met_low, self.met_high = least.min(axis=1), most.max(axis=1)
        self.low, self.high = self.met_low.copy(), self.met_high.copy()
        if self.split is not None:
            self.low = self.inside @ self.split.lower
            self.high = np.minimum(self.meeting @ self.split.upper, UNLIMITED)
            endless = self.meeting @ (self.split.upper >= UNLIMITED)  # more of such a cell always fits
            self.met_high[endless] = self.high[endless] = UNLIMITED
            self._look_around(program)
        self.sure_low, self.sure_high = np.zeros(len(pairs), np.int64), np.zeros(len(pairs), np.int64)

    def _look_around(self, program: Programs) -> None:
        """Refute by solutions next to known ones: an exchange changes the counts of sets it leads into or out of."""
        rng, x = np.random.default_rng(0), self.start
        for _ in range(WALKS):
            moves = exchanges(program, x, rng)
            open_ = np.flatnonzero(self.agree)
            if not len(moves) or not len(open_):
                break
            for begin in range(0, len(open_), AT_ONCE):
                some = open_[begin : begin + AT_ONCE]
                for sets, met, least in ((self.inside, self.met_low, True), (self.meeting, self.met_high, False)):
                    chosen = sets[some].astype(np.int8)
                    change = chosen[:, moves[:, 2]] + chosen[:, moves[:, 3]]
                    change -= chosen[:, moves[:, 0]] + chosen[:, moves[:, 1]]
                    there = sets[some] @ x
                    if least:
                        met[some] = np.minimum(met[some], there + change.min(axis=1))
                    else:
                        met[some] = np.maximum(met[some], there + change.max(axis=1))
            x = wandered(program, x, moves, rng)

    @property
    def agree(self) -> Flags:
        """The sets that count the same in every solution met."""
        return np.asarray(self.met_low == self.met_high)

    def ask(self, alive: Flags) -> None:
        """Ask for the most, wide sets first, and for the least, narrow sets first, of sets that may be settled."""
        if self.split is None:
            return
        wanted = np.zeros(len(self.low), np.bool_)
        wanted[self.of[alive]] = True
        chosen = np.flatnonzero(wanted & self.agree)
        some = _Some(self.inside[chosen], self.meeting[chosen], *(array[chosen] for array in self._known))
        for number in np.argsort(-some.meeting.sum(axis=1), kind="stable"):
            if some.met_low[number] == some.met_high[number] < some.high[number]:
                self._ask(self.split, some, int(number), most=True)
        for number in np.argsort(some.inside.sum(axis=1), kind="stable"):
            if some.met_high[number] == some.met_low[number] > some.low[number]:
                self._ask(self.split, some, int(number), most=False)
        for array, found in zip(self._known, some[2:], strict=True):
            array[chosen] = found

    @property
    def _known(self) -> tuple[Array, ...]:
        return self.low, self.high, self.met_low, self.met_high, self.sure_low, self.sure_high

    def _ask(self, whole: Split, some: _Some, number: int, *, most: bool) -> None:
        chosen = some.meeting[number] if most else some.inside[number]
        cost = chosen.astype(np.int64)
        answers = rungs.minimum(whole, linear(-cost if most else cost), self.ladder, start=self.start)
        self.calls += 1
        self.clock |= bool(answers.clock[0])
        if answers.fits[0]:
            np.minimum(some.met_low, some.inside @ answers.x, out=some.met_low)
            np.maximum(some.met_high, some.meeting @ answers.x, out=some.met_high)
        # a floor is exact whatever else is undecided; where two engines agree they have raised it
        how = rungs.ORDER.index(Proof.TWO_ENGINES if answers.proof[0] == Proof.TWO_ENGINES else Proof.EXACT)
        if most:
            bound = -int(answers.floor[0])
            fewer = ~(some.meeting & ~chosen).any(axis=1)  # sets inside this one count no more
            better = fewer & (some.high > bound)
            some.high[better], some.sure_high[better] = bound, how
        else:
            bound = int(answers.floor[0])
            more = ~(chosen & ~some.inside).any(axis=1)  # sets around this one count no less
            better = more & (some.low < bound)
            some.low[better], some.sure_low[better] = bound, how


class _Some(NamedTuple):
    """The sets of a part that may be settled, and what is known of them."""

    inside: Flags
    meeting: Flags
    low: Array
    high: Array
    met_low: Array
    met_high: Array
    sure_low: Array
    sure_high: Array
