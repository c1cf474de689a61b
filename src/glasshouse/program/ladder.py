"""How is a question answered at the least cost? Rung by rung: propagation, then search, then a solver.

What propagation fixes needs nothing more. Small parts are searched through. Only what is left goes to a solver. Its
relaxation gives multipliers with which a second search proves most of the rest; what branch and bound claims is checked
in integers, proved by a bound in rational arithmetic where that is tight, and otherwise put to a second solver. Every
answer says which rung gave it, and how sure it is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from glasshouse.errors import GlasshouseBug, InputError
from glasshouse.model.records import UNLIMITED
from glasshouse.program import search
from glasshouse.program.bounds import Cost, linear
from glasshouse.program.cpsat import cpsat
from glasshouse.program.highs import highs
from glasshouse.program.integer import SAFE, IntegerProgram, Limit, Outcome, Proof, Solution, Solver, Unbounded
from glasshouse.program.propagate import Array
from glasshouse.program.prove import two_engines
from glasshouse.program.reduce import Programs, Split

LIMIT = Limit(effort=2.0)  # for each part and solver
NODES = 100  # steps of a search before the solver is asked; more settles few parts more
GUIDED_LAST = 40  # times as many steps for what two solvers leave open
GUIDED = 500  # steps of a search that has the multipliers of a solver's relaxation


ORDER = (Proof.EXACT, Proof.TWO_ENGINES, Proof.UNDECIDED)  # from the strongest to the weakest


class Rung(IntEnum):
    """What it took to answer."""

    PROPAGATION = 0
    SEARCH = 1
    SOLVER = 2


@dataclass(frozen=True)
class Ladder:
    """The rungs that may be used: a search of so many steps (0: none), and solvers, the second of which confirms.

    Between the two, a search of `guided` steps uses what the first solver's relaxation knows.
    """

    propagate: bool = True
    nodes: int = NODES
    guided: int = GUIDED
    engines: tuple[Solver, ...] = (highs, cpsat)
    limit: Limit = LIMIT


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

    @property
    def fits(self) -> NDArray[np.bool_]:
        """The programs for which a solution was found."""
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
    open_ = ~split.impossible[split.whole.program_of]
    endless = open_ & (split.upper >= UNLIMITED) & (cost.above < 0)
    if endless.any():
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
    proof = [Proof.EXACT if sure else Proof.UNDECIDED for sure in exact]
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
            solution = solve(parts, int(part), inside.at(variables), ladder, start)
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
    outcome = [Outcome.INFEASIBLE if bad else Outcome.OPTIMAL for bad in split.impossible]
    proofs = [Proof.EXACT] * programs
    for part in np.flatnonzero(~known | nothing | (value != floor) | np.array([p != Proof.EXACT for p in proof], bool)):
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


def weaker(one: Proof, other: Proof) -> Proof:
    """What two claims together are worth."""
    return max(one, other, key=ORDER.index)


def solve(parts: Programs, number: int, cost: Cost, ladder: Ladder, start: Array | None = None) -> Solution:
    """Put one part to the solvers, with the cost's two slopes made linear; the answer is in the part's variables.

    The relaxation comes first: its duals guide a search that proves what it finds. If that takes too long the solver
    branches, and the search is tried again, now with the likely best solution known; then the second solver is asked,
    and what even that leaves open is searched once more, for longer.
    """
    part = parts.only(number)
    program, second = _linear(part.integer_program(cost.below), cost)
    left_out = int(((cost.below - cost.above) * cost.knot)[cost.knot <= part.lower].sum())  # what lies before the knots
    relaxed = Solution(Outcome.STOPPED)
    if ladder.engines and ladder.guided:
        relaxed = ladder.engines[0](program, replace(ladder.limit, branches=False))
    if start is not None and relaxed.duals is not None:
        found = search.minimise_guided(part, cost, ladder.guided, start, relaxed.duals)
        if found is not None and found.exhausted[0]:
            return _exact(found)
        start = start if found is None else found.x
    if start is not None:
        program = replace(program, known=_spread(start, part, cost, second))
    solution = relaxed
    if relaxed.x is None and relaxed.outcome != Outcome.INFEASIBLE:
        solution = engage(program, ladder, confirm=False)
    for steps in (ladder.guided, GUIDED_LAST * ladder.guided):
        if solution.x is not None and solution.proof == Proof.UNDECIDED and relaxed.duals is not None:
            x = _gathered(solution, len(part.lower), second)
            found = search.minimise_guided(part, cost, steps, x, relaxed.duals)
            if found is not None and found.exhausted[0]:
                return _exact(found)
        solution = confirmed(program, solution, ladder)
    if solution.floor is not None:
        solution = replace(solution, floor=solution.floor + left_out)
    if solution.x is None:
        if start is None:
            return solution
        return replace(solution, outcome=Outcome.FEASIBLE, x=start, proof=Proof.UNDECIDED)  # whatever engines claim
    return replace(solution, x=_gathered(solution, len(part.lower), second))


def _exact(found: search.Found) -> Solution:
    value = int(found.value[0])
    return Solution(Outcome.OPTIMAL, found.x, value, value, Proof.EXACT)


def _gathered(solution: Solution, count: int, second: Array) -> Array:
    """The variables of a part, from those of its linear program."""
    if solution.x is None:
        raise GlasshouseBug("a solver claims an optimum and holds no x; please report this")
    x = solution.x[:count].copy()
    x[second] += solution.x[count : count + len(second)]
    return x


def confirmed(program: IntegerProgram, solution: Solution, ladder: Ladder) -> Solution:
    """Put what the first solver claims to the second, unless it is proved."""
    claims = solution.outcome in (Outcome.OPTIMAL, Outcome.INFEASIBLE)
    if claims and solution.proof == Proof.UNDECIDED and len(ladder.engines) > 1:
        return two_engines(program, solution, ladder.engines[1], ladder.limit)
    return solution


def engage(program: IntegerProgram, ladder: Ladder, *, confirm: bool) -> Solution:
    """Ask the first solver; a claim that nothing fits, or with `confirm` any claim, is put to the second."""
    if not ladder.engines:
        return Solution(Outcome.STOPPED)
    solution = ladder.engines[0](program, ladder.limit)
    return confirmed(program, solution, ladder) if confirm or solution.outcome == Outcome.INFEASIBLE else solution


def _linear(program: IntegerProgram, cost: Cost) -> tuple[IntegerProgram, Array]:
    """The same program with linear costs. A variable with a bend inside its limits gets a second one beyond the knot;
    where the slope falls there, a switch lets the second rise only when the first is full. A first variable with two
    values is its own switch.
    """
    n = len(cost.knot)
    low, high, knot = program.lower, program.upper, cost.knot
    slope = np.where(knot <= low, cost.above, cost.below)
    second = np.flatnonzero((cost.below != cost.above) & (knot > low) & (knot < high))
    if not len(second):
        return replace(program, cost=slope), second
    upper = high.copy()
    upper[second] = knot[second]
    number = np.full(n, -1, np.int64)
    number[second] = n + np.arange(len(second))
    own, switched = _switched(cost, low, high, second)
    switch = n + len(second) + np.arange(len(switched))
    doubled = number[program.index] >= 0
    m = len(program.row_lower)
    alone = m + np.arange(len(own))  # second <= (high - knot) * (first - low)
    full, over = m + len(own) + np.arange(len(switched)), m + len(own) + len(switched) + np.arange(len(switched))
    ones, once = np.ones(len(switched), np.int64), np.ones(len(own), np.int64)
    # first >= low + (knot - low) * switch;  second <= (high - knot) * switch
    rows = [program.row_of, program.row_of[doubled], alone, alone, full, full, over, over]
    index = [program.index.astype(np.int64), number[program.index[doubled]]]
    index += [number[own], own, switched, switch, number[switched], switch]
    value = [program.coefficient, program.coefficient[doubled], once, knot[own] - high[own]]
    value += [ones, low[switched] - knot[switched], ones, knot[switched] - high[switched]]
    row, column, entry = np.concatenate(rows), np.concatenate(index), np.concatenate(value)
    order = np.lexsort((column, row))
    none, unlimited = np.zeros(len(switched), np.int64), np.full(len(switched), UNLIMITED)
    below = np.full(len(own), -UNLIMITED)
    return IntegerProgram(
        np.concatenate([slope, cost.above[second], none]),
        np.concatenate([low, np.zeros(len(second) + len(switched), np.int64)]),
        np.concatenate([upper, high[second] - knot[second], ones]),
        np.concatenate([program.row_lower, below, low[switched], -unlimited]),
        np.concatenate([program.row_upper, (knot[own] - high[own]) * low[own], unlimited, none]),
        np.concatenate([[0], np.cumsum(np.bincount(row, minlength=m + len(own) + 2 * len(switched)))]),
        column[order].astype(np.int32),
        entry[order],
    ), second


def _switched(cost: Cost, lower: Array, upper: Array, second: Array) -> tuple[Array, Array]:
    """Of the variables with a bend, those whose slope falls: with two values before the knot, and with more."""
    falling = second[cost.below[second] > cost.above[second]]
    limit = (upper[falling] - cost.knot[falling]).astype(np.float64) * lower[falling]  # of the row that links the two
    two = (cost.knot[falling] - lower[falling] == 1) & (limit < UNLIMITED)
    return falling[two], falling[~two]


def _spread(x: Array, part: Programs, cost: Cost, second: Array) -> Array:
    """A solution in the variables of the linear program."""
    first = x.copy()
    first[second] = np.minimum(x[second], cost.knot[second])
    switched = _switched(cost, part.lower, part.upper, second)[1]
    beyond = x[second] - first[second]
    return np.concatenate([first, beyond, (x[switched] > cost.knot[switched]).astype(np.int64)])
