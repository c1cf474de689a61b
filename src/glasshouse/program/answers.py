"""What is the cheapest solution of each of many programs, or just some solution? Put together from their parts.

What propagation fixes needs nothing more. Small parts are searched through. Only what is left goes up the ladder of
solvers. Every answer says which rung gave it, and how sure it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from glasshouse.errors import GlasshouseBug, InputError
from glasshouse.model.records import UNLIMITED
from glasshouse.program import search
from glasshouse.program.bounds import Cost, linear
from glasshouse.program.integer import SAFE, Outcome, Proof, Unbounded
from glasshouse.program.ladder import Ladder, Rung, engage, solve, weaker
from glasshouse.program.propagate import Array
from glasshouse.program.reduce import Split


@dataclass(frozen=True)
class Answers:
    """An answer for each program: `floor <= least cost <= value`, where `value` is the cost of x if there is one."""

    x: Array  # of all programs, one after the other
    outcome: tuple[Outcome, ...]
    proof: tuple[Proof, ...]
    value: Array
    floor: Array
    rung: NDArray[np.int8]
    clock: NDArray[np.bool_]  # the wall clock had a say: another run may know more

    @cached_property
    def fits(self) -> NDArray[np.bool_]:
        """The programs for which a solution was found."""
        if self.outcome.count(Outcome.OPTIMAL) == len(self.outcome):  # as nearly always, of thousands
            return np.ones(len(self.outcome), np.bool_)
        return np.array([o in (Outcome.OPTIMAL, Outcome.FEASIBLE) for o in self.outcome], np.bool_)


def minimum(
    split: Split, cost: Cost, ladder: Ladder, *, start: Array | None = None, fitting: NDArray[np.bool_] | None = None
) -> Answers:
    """The cheapest solution of each program; `start`, over the variables of the whole, is one of those `fitting`."""
    refuse_endless(split, cost)
    inside = cost.at(split.origin)
    begin, known = None, None
    if start is not None:
        begin = start[split.origin]
        known = np.ones(len(split.owner), np.bool_) if fitting is None else fitting[split.owner]
    found = search.minimise(split.parts, inside, ladder.nodes, start=begin, known=known)
    return _climb(split, cost, inside, found, ladder, {})


def refuse_endless(split: Split, cost: Cost) -> None:
    """A cost must not fall without end, and its sums must be countable, whichever rung answers."""
    endless = (split.upper >= UNLIMITED) & (cost.above < 0)
    if endless.any() and (endless & ~split.impossible[split.whole.program_of]).any():
        raise Unbounded(
            "no published number limits some kinds of record, and the more of them the better; "
            "publish a total, or leave those kinds out of the question"
        )
    reach = np.maximum(np.maximum(np.abs(split.lower), np.abs(split.upper)), np.abs(cost.knot)).astype(np.float64)
    if (np.maximum(np.abs(cost.below), np.abs(cost.above)).astype(np.float64) * reach).sum() >= SAFE:
        raise InputError("these costs and counts are too large to be added up exactly; use smaller costs")


def some(split: Split, seeds: NDArray[np.uint64], ladder: Ladder) -> Answers:
    """A solution of each program, drawn with its seed; without equal chances for all solutions."""
    rank = np.arange(len(split.owner)) - np.searchsorted(split.owner, split.owner)
    mixed = seeds[split.owner] + rank.astype(np.uint64) * np.uint64(0x632BE59BD9B4E019)
    found = search.sample(split.parts, ladder.nodes, mixed)
    zero = linear(np.zeros(len(split.lower), np.int64))
    open_parts = np.flatnonzero(~found.known & ~found.exhausted)
    chance = {
        int(part): np.random.default_rng(int(mixed[part])).integers(
            0, 1000, int(split.parts.first[part + 1] - split.parts.first[part])
        )
        for part in open_parts
    }
    return _climb(split, zero, zero.at(split.origin), found, ladder, chance)


def _climb(
    split: Split, cost: Cost, inside: Cost, found: search.Found, ladder: Ladder, chance: dict[int, Array]
) -> Answers:
    """Ask the solver about the parts that the search left open, and put the parts together."""
    parts, programs = split.parts, len(split.whole)
    x = split.lower.copy()
    part_x = found.x.copy()
    floor, value = found.floor.copy(), found.value.copy()
    known, exact = found.known.copy(), found.exhausted | (found.known & (found.value == found.floor))
    proof = [Proof.EXACT] * len(parts)
    nothing = found.exhausted & ~found.known
    rung = np.full(len(parts), Rung.SEARCH, np.int8)
    clock = np.zeros(programs, np.bool_)
    for part in np.flatnonzero(~exact):
        rung[part] = Rung.SOLVER
        variables = slice(parts.first[part], parts.first[part + 1])
        start = part_x[variables] if known[part] else None
        if part in chance:
            solution = engage(parts.only(int(part)).integer_program(chance[int(part)]), ladder, confirm=False)
            solution = replace(solution, floor=0)
        else:
            solution = solve(parts.only(int(part)), inside.at(variables), ladder, start)
        clock[split.owner[part]] |= solution.clock
        if solution.x is not None:
            cost_of_it = int(inside.at(variables).of(solution.x).sum())
            if not known[part] or cost_of_it <= value[part]:  # an engine that was stopped may hold less than the search
                part_x[variables], known[part], value[part] = solution.x, True, cost_of_it
        if solution.floor is not None:
            floor[part] = max(floor[part], solution.floor)
        nothing[part] = solution.outcome == Outcome.INFEASIBLE
        proof[part] = solution.proof
        if part in chance and known[part]:
            proof[part] = Proof.EXACT  # any solution will do, and this one was checked
        if solution.proof != Proof.UNDECIDED and known[part] and part not in chance:
            floor[part] = value[part]
    x[split.origin] = part_x
    return _together(split, cost, x, known, nothing, proof, value, floor, rung, clock)


def _together(
    split: Split, cost: Cost, x: Array, known: NDArray[np.bool_], nothing: NDArray[np.bool_], proof: list[Proof],
    value: Array, floor: Array, rung: NDArray[np.int8], clock: NDArray[np.bool_],
) -> Answers:  # fmt: skip
    """What the parts of each program say together."""
    programs = len(split.whole)
    closed = np.ones(len(x), np.bool_)
    closed[split.origin] = False
    base = np.zeros(programs, np.int64)
    np.add.at(base, split.whole.program_of[closed], cost.of(x)[closed])
    values, floors = base.copy(), base
    np.add.at(values, split.owner, value)
    np.add.at(floors, split.owner, floor)
    rungs = np.zeros(programs, np.int8)
    np.maximum.at(rungs, split.owner, rung)
    outcome, proofs = [Outcome.OPTIMAL] * programs, [Proof.EXACT] * programs
    for bad in np.flatnonzero(split.impossible):
        outcome[bad] = Outcome.INFEASIBLE
    for part in np.flatnonzero(~known | nothing | (value != floor) | (rung == Rung.SOLVER)):
        program = int(split.owner[part])
        if nothing[part]:
            if outcome[program] != Outcome.INFEASIBLE or proof[part] == Proof.EXACT:
                proofs[program] = proof[part]
            outcome[program] = Outcome.INFEASIBLE
        elif outcome[program] != Outcome.INFEASIBLE:
            proofs[program] = weaker(proofs[program], proof[part])
            if not known[part]:
                outcome[program] = Outcome.STOPPED
            elif outcome[program] == Outcome.OPTIMAL and proof[part] == Proof.UNDECIDED:
                outcome[program] = Outcome.FEASIBLE
    answers = Answers(x, tuple(outcome), tuple(proofs), values, floors, rungs, clock)
    if not split.whole.fit(x)[answers.fits].all():
        raise GlasshouseBug("an answer of the core does not fit the numbers it was found for; please report this")
    return answers
