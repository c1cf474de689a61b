"""What is the least and the most of every variable that is asked for, over all whole solutions? Proved, or bounded.

Limits from propagation are bounds. Whatever solution is met shows how far a variable can go, and most limits are met by
solutions found near known ones (`dive`). Where they are not, the relaxation is asked for the end itself, each time from
the vertex it ended at; its bound is recomputed in rational arithmetic and rounded to a whole number. A vertex that is
not whole may have whole neighbours that cost the same; branch and bound is asked last.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from glasshouse.model.records import UNLIMITED, Count
from glasshouse.program.answers import some
from glasshouse.program.certainty.prove import dual_bound
from glasshouse.program.dive import dive
from glasshouse.program.highs import Kept
from glasshouse.program.integer import IntegerProgram, Outcome, Proof
from glasshouse.program.ladder import CLIMB, ORDER, Ladder, cheapest
from glasshouse.program.propagate import Array
from glasshouse.program.reduce import Programs, Split
from glasshouse.program.search import enumerate_part

LISTED, STEPS = 256, 1024  # solutions of a part that are worth listing, and steps of the search that lists them
ROUNDS = 8  # of dives for every open end
WORTH = 0.15  # a round that closes a smaller share of what is open is the last
POOL = 64  # solutions that are kept to start from
FACES = 3  # other vertices at which a variable is at its bound, before branching
WIDE = UNLIMITED >> 20  # a limit so large may have come from one that is none
RELAXED = 200_000  # entries of a part of which relaxations are asked; beyond, ends that were not met stay open
LEAST, MOST = 0, 1
Flags = NDArray[np.bool_]
EXACT, TWO_ENGINES, UNDECIDED = map(ORDER.index, (Proof.EXACT, Proof.TWO_ENGINES, Proof.UNDECIDED))


@dataclass(frozen=True)
class Ends:
    """Of each variable asked for: no solution is below `low` or above `high`, and some are `met_low` and `met_high`.

    `low_proof` and `high_proof` are indices into ORDER: how sure it is that the two agree. UNLIMITED is no limit, and
    where no solution is known -1 is met.
    `fits` says of each program whether anything fits: 1 yes, 0 not known, -1 nothing does, with `why` its proof.
    """

    low: Array
    high: Array
    met_low: Array
    met_high: Array
    low_proof: Array
    high_proof: Array
    fits: NDArray[np.int8]
    why: tuple[Proof, ...]
    clock: Flags  # of each program


class Known(NamedTuple):
    """Of each program: were data found that fit? And by variable the least and the most that such data have."""

    found: Flags
    low: Array
    high: Array


def ends(whole: Split, wanted: Array, needed: Flags, ladder: Ladder = CLIMB, known: Known | None = None) -> Ends:
    """The ends of the `wanted` variables (ascending) of programs; rows that are not `needed` follow from the others."""
    whole = opened(whole)
    found = some(whole, np.zeros(len(whole.whole), np.uint64), ladder)
    proved = [
        outcome == Outcome.INFEASIBLE and proof != Proof.UNDECIDED
        for outcome, proof in zip(found.outcome, found.proof, strict=True)
    ]
    fits = np.where(found.fits, 1, np.where(proved, -1, 0)).astype(np.int8)
    clock = found.clock.copy()
    table = _Table(whole, wanted, fits[whole.whole.program_of[wanted]] > 0, found.x)
    if known is not None:
        table.meet(known, wanted, whole.whole.program_of[wanted])
        fits[known.found] = 1
    position = np.full(len(whole.lower), -1, np.int64)
    position[wanted] = np.arange(len(wanted))
    for part in np.flatnonzero(np.diff(whole.parts.row_first) > 0):
        owner = int(whole.owner[part])
        origin = whole.variables(int(part))
        mine = position[origin]
        if found.fits[owner] and table.open(mine[mine >= 0]):
            rows = whole.row_origin[whole.parts.row_first[part] : whole.parts.row_first[part + 1]]
            asked = _Part(whole.parts.only(int(part)), np.flatnonzero(mine >= 0), found.x[origin], needed[rows], ladder)
            if known is not None and known.found[owner]:
                asked.walked = True
                asked.met = np.stack([np.minimum(asked.met[LEAST], known.low[origin]),
                                      np.maximum(asked.met[MOST], known.high[origin])])  # fmt: skip
            asked.ask()
            table.put(mine[mine >= 0], asked)
            clock[owner] |= asked.clock
    return table.ends(fits, found.proof, clock)


def opened(whole: Split) -> Split:
    """Take back limits that come from nothing but UNLIMITED, which propagation takes for a number like any other."""
    if not (whole.parts.upper > WIDE).any():
        return whole
    endless = _endless(whole.whole)
    endless[whole.impossible[whole.whole.program_of]] = False
    upper = np.where(endless, UNLIMITED, whole.upper)
    return replace(whole, upper=upper, parts=replace(whole.parts, upper=upper[whole.origin]))


def _endless(programs: Programs) -> Flags:
    """The variables that can grow without end, if anything fits: a row limits one side if the other is limited."""
    row = np.repeat(np.arange(len(programs.row_lower)), np.diff(programs.starts))
    adds = programs.coefficient > 0
    closed = np.where(adds, programs.row_upper[row] < UNLIMITED, programs.row_lower[row] > -UNLIMITED)
    endless, before = programs.upper >= UNLIMITED, -1
    while endless.sum() != before:
        before = endless.sum()
        added, taken = (
            np.bincount(row[endless[programs.index] & side], minlength=len(programs.row_lower))
            for side in (adds, ~adds)
        )
        endless[programs.index[closed & (np.where(adds, taken[row], added[row]) == 0)]] = False
    return endless


class _Table:
    """What is known of the variables asked for, both ends of each."""

    def __init__(self, whole: Split, wanted: Array, fit: Flags, x: Array) -> None:
        count = len(wanted)
        self.bound = np.stack([whole.lower[wanted], whole.upper[wanted]])
        self.met = np.stack([x[wanted], x[wanted]])
        self.proof = np.zeros((2, count), np.int64)
        part = np.full(len(whole.lower), -1, np.int64)
        part[whole.origin] = np.repeat(np.arange(len(whole.owner)), np.diff(whole.parts.first))
        tied = part[wanted] >= 0
        tied[tied] = np.diff(whole.parts.row_first)[part[wanted[tied]]] > 0
        self.met[:, ~tied] = self.bound[:, ~tied]  # nothing stands in the way of what is in no row
        self.met[:, ~fit] = -1
        self.proof[:, ~fit] = UNDECIDED

    def meet(self, known: Known, wanted: Array, program: Array) -> None:
        """Take over what is known of programs of which something is."""
        some = known.found[program]
        low, high = known.low[wanted[some]], known.high[wanted[some]]
        nothing = self.met[LEAST, some] < 0
        self.met[LEAST, some] = np.where(nothing, low, np.minimum(self.met[LEAST, some], low))
        self.met[MOST, some] = np.maximum(self.met[MOST, some], high)
        self.proof[:, some] = np.where(self.met[:, some] == self.bound[:, some], EXACT, UNDECIDED)

    def open(self, some: Array) -> bool:
        return bool((self.bound[:, some] != self.met[:, some]).any())

    def put(self, some: Array, part: _Part) -> None:
        bound, proof = part.known()
        self.bound[:, some], self.proof[:, some] = bound[:, part.targets], proof[:, part.targets]
        self.met[:, some] = part.met[:, part.targets]

    def ends(self, fits: NDArray[np.int8], why: tuple[Proof, ...], clock: Flags) -> Ends:
        (low, high), (met_low, met_high), (one, other) = self.bound, self.met, self.proof
        return Ends(low, high, met_low, met_high, one, other, fits, why, clock)


@dataclass
class _Part:
    """One part: its variables, those that are asked for, and a solution to begin with."""

    program: Programs
    targets: Array
    start: Count
    needed: Flags
    ladder: Ladder
    clock: bool = False
    walked: bool = False  # ends that are easy to meet were met
    pool: list[Count] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.bound = np.stack([self.program.lower, self.program.upper])
        self.met = np.stack([self.start, self.start])
        self.claimed = np.full_like(self.met, -1)  # ends that two engines agree on
        self.endless = self.program.upper >= UNLIMITED
        self.met[MOST, self.endless] = UNLIMITED  # whatever was met, more of it fits too
        self.pool.append(self.start)

    def ask(self) -> None:
        if not self._listed():
            if not self.walked:
                self._dive()
            if self._open().any() and len(self.program.index) <= RELAXED:
                self._relax()

    def known(self) -> tuple[Array, Array]:
        """The bounds and how sure they are. What was met says more than engines: a later x may refute a claim."""
        agreed = self.claimed == self.met
        proof = np.where(agreed, TWO_ENGINES, UNDECIDED)
        proof[self.bound == self.met] = EXACT
        return np.where(agreed, self.met, self.bound), proof

    def _open(self) -> Flags:
        """Of each target (least, most): is its bound not met?"""
        return np.asarray(self.bound[:, self.targets] != self.met[:, self.targets])

    def _meet(self, x: Count) -> None:
        np.minimum(self.met[LEAST], x, out=self.met[LEAST])
        np.maximum(self.met[MOST], x, out=self.met[MOST])
        if len(self.pool) < POOL:
            self.pool.append(x)

    def _listed(self) -> bool:
        """Few solutions are listed, and show everything."""
        if self.endless.any():
            return False
        every, through = enumerate_part(self.program, 0, LISTED, STEPS)
        if len(every):
            self.met[LEAST] = np.minimum(self.met[LEAST], every.min(axis=0))
            self.met[MOST] = np.maximum(self.met[MOST], every.max(axis=0))
            self.pool += list(every[:: max(1, len(every) // 8)])
        if through:
            self.bound = self.met.copy()
        return through

    def _dive(self) -> None:
        """Look for solutions near known ones in which a variable is at its bound, for one open end after the other."""
        rng, count = np.random.default_rng(0), len(self.start)
        plain = np.arange(count)
        for number in range(ROUNDS):
            sides = np.argwhere(self._open())
            for which, at in sides[rng.permutation(len(sides))]:
                variable = int(self.targets[at])
                if self.met[which, variable] == self.bound[which, variable]:
                    continue
                near = self.pool[int(rng.integers(len(self.pool)))]
                order = rng.permutation(count) if number % 2 else plain
                wish = np.array([variable])
                x = dive(self.program, wish, self.bound[which, wish], near, order)
                if x is not None:
                    self._meet(x)
            left = int(self._open().sum())
            if left == 0 or len(sides) - left < WORTH * len(sides):
                break

    def _relax(self) -> None:
        program = _only_rows(self.program, self.needed)
        kept = Kept(program)
        kept.relax(program.cost, self.ladder.limit)
        for which in (LEAST, MOST):
            for at in np.flatnonzero(self._open()[which]):
                variable = int(self.targets[at])
                if self.met[which, variable] != self.bound[which, variable]:
                    self._ask_for(kept, which, variable)

    def _ask_for(self, kept: Kept, which: int, variable: int) -> None:
        """One end of one variable: by the relaxation, at other vertices of the same value, by branch and bound."""
        sign = 1 if which == LEAST else -1
        cost = np.zeros(len(self.start), np.int64)
        cost[variable] = sign
        relaxed = kept.relax(cost, self.ladder.limit)
        if relaxed.duals is not None:
            floor = dual_bound(kept.program, relaxed.duals, cost)
            if floor is not None:
                self._learn(which, variable, floor)
        near = self._whole(relaxed.x)
        wish = np.array([variable])
        for seed in range(FACES):
            if self.met[which, variable] == self.bound[which, variable] or near is None:
                break
            order = np.random.default_rng(seed).permutation(len(self.start))
            x = dive(self.program, wish, self.bound[which, wish], near, order)
            if x is not None:
                self._meet(x)
        if self.met[which, variable] != self.bound[which, variable]:
            self._branch(replace(kept.program, cost=cost), which, variable)

    def _whole(self, x: NDArray[np.float64] | None) -> Count | None:
        """The nearest whole vector; if it is a solution, it is met."""
        if x is None or not np.isfinite(x).all() or np.abs(x).max(initial=0) >= 2**53:
            return None
        whole = np.rint(x).astype(np.int64)
        if self.program.fit(whole).all():
            self._meet(whole)
        return whole

    def _branch(self, program: IntegerProgram, which: int, variable: int) -> None:
        solution = cheapest(program, self.ladder)
        self.clock |= solution.clock
        if solution.x is not None:
            self._meet(solution.x)
            if solution.proof == Proof.TWO_ENGINES:
                self.claimed[which, variable] = solution.x[variable]
        if solution.floor is not None:
            self._learn(which, variable, solution.floor)

    def _learn(self, which: int, variable: int, floor: int) -> None:
        """No solution goes beyond this."""
        if which == LEAST:
            self.bound[which, variable] = max(self.bound[which, variable], floor)
        else:
            self.bound[which, variable] = min(self.bound[which, variable], -floor)


def _only_rows(part: Programs, kept: Flags) -> IntegerProgram:
    """The program of some rows, without a cost."""
    sizes = np.diff(part.starts)
    entries = np.repeat(kept, sizes)
    return IntegerProgram(
        np.zeros(len(part.lower), np.int64), part.lower, part.upper, part.row_lower[kept], part.row_upper[kept],
        np.concatenate([[0], np.cumsum(sizes[kept])]).astype(np.int64), part.index[entries], part.coefficient[entries],
    )  # fmt: skip
