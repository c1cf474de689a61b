"""How is one program solved at the least cost? Rung by rung: relaxation, shortcut, branch and bound, second engine.

The relaxation comes first: it often ends with a whole x, and its bound and duals open shortcuts. A shortcut finds an x
in fewer variables, or by a search that the duals guide; where that meets the relaxation's bound, nothing need branch.
What branch and bound claims is checked in integers and proved: by a bound in rational arithmetic where that is tight,
otherwise by cuts and cases (`cases`). What they leave open is put to a second solver.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import IntEnum
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glasshouse.program import search
from glasshouse.program.bounds import Cost
from glasshouse.program.certainty.cases import closed
from glasshouse.program.certainty.confirm import two_engines
from glasshouse.program.certainty.prove import certified
from glasshouse.program.cpsat import cpsat
from glasshouse.program.few import among_few, many
from glasshouse.program.highs import highs
from glasshouse.program.integer import IntegerProgram, Limit, Outcome, Proof, Solution, Solver, higher
from glasshouse.program.propagate import Array
from glasshouse.program.reduce import Programs
from glasshouse.program.straight import descended, straighten

LIMIT = Limit(effort=2.0)  # for each part and solver
NODES = 100  # steps of a search before the solver is asked; more settles few parts more
GUIDED = 500  # steps of a search that has the multipliers of a solver's relaxation
GUIDED_LAST = 40  # times as many steps for what two solvers leave open
FINDING = 0.25  # of the effort of branch and bound, where it is to find a good solution and not to prove it
DESCENTS, FURTHER = 4, 12  # to a better start: before the search that the multipliers guide, and after it


ORDER = (Proof.EXACT, Proof.TWO_ENGINES, Proof.UNDECIDED)  # from the strongest to the weakest


def weaker(one: Proof, other: Proof) -> Proof:
    """What two claims together are worth."""
    return max(one, other, key=ORDER.index)


class Rung(IntEnum):
    """What it took to answer."""

    PROPAGATION = 0
    SEARCH = 1
    SOLVER = 2


class Memory(dict[bytes, Any]):
    """What was answered before, by the question: the same question about the same part is not put twice.

    An answer follows from the question alone, so whatever is remembered is what asking again would give.
    """

    @staticmethod
    def key(part: Programs, *asked: NDArray[Any] | Limit | None) -> bytes:
        """What stands for a question: a part, and the arrays and limits that were asked with."""
        numbers = part.lower, part.upper, part.row_lower, part.row_upper, part.starts, part.index, part.coefficient
        digest = blake2b(digest_size=32)
        for one in (*numbers, *asked):
            shown = f"{one.dtype.str}{one.shape}" if isinstance(one, np.ndarray) else repr(one)
            digest.update(shown.encode() + b";")
            if isinstance(one, np.ndarray):
                digest.update(np.ascontiguousarray(one).data)
        return digest.digest()


@dataclass(frozen=True)
class Ladder:
    """The rungs that may be used: a search of so many steps (0: none), and solvers, the second of which comes last.

    Between the two, a search of `guided` steps uses what the first solver's relaxation knows.
    """

    propagate: bool = True
    nodes: int = NODES
    guided: int = GUIDED
    engines: tuple[Solver, ...] = (highs, cpsat)
    limit: Limit = LIMIT
    cases: bool = True  # claims are proved by cuts and cases before a second solver is asked
    memory: Memory | None = field(default=None, compare=False, repr=False)  # of parts; for one unit


CLIMB = Ladder()  # what is used where nothing else is said


def remembering(ladder: Ladder) -> Ladder:
    """The same rungs, with a memory: for problems that have parts in common."""
    return replace(ladder, memory=Memory())


def without_branching(ladder: Ladder) -> Ladder:
    """The rungs up to the relaxation, whose bounds are proved; but all of them if much effort is asked for."""
    if ladder.limit.effort >= LIMIT.effort:
        return ladder
    return replace(ladder, engines=ladder.engines[:1], limit=replace(ladder.limit, branches=False))


def relaxation(program: IntegerProgram, ladder: Ladder) -> Solution:
    """What the first solver knows before it branches."""
    if not ladder.engines:
        return Solution(Outcome.STOPPED)
    return ladder.engines[0](program, replace(ladder.limit, branches=False))


def engage(program: IntegerProgram, ladder: Ladder, *, confirm: bool) -> Solution:
    """Ask the first solver; a claim that nothing fits, or with `confirm` any claim, is put to the second."""
    if not ladder.engines:
        return Solution(Outcome.STOPPED)
    solution = ladder.engines[0](program, ladder.limit)
    return confirmed(program, solution, ladder) if confirm or solution.outcome == Outcome.INFEASIBLE else solution


def confirmed(program: IntegerProgram, solution: Solution, ladder: Ladder, *, unclaimed: bool = False) -> Solution:
    """Prove what the first solver claims, by cuts and cases; if that takes too long, put it to the second.

    With `unclaimed`, it is also tried to prove the best an x of which nothing is claimed.
    """
    claims = solution.outcome in (Outcome.OPTIMAL, Outcome.INFEASIBLE) or (unclaimed and solution.x is not None)
    if not claims or solution.proof != Proof.UNDECIDED or not ladder.engines:
        return solution
    if ladder.cases:
        proved = closed(program, solution.x, solution.floor, ladder.limit)
        if proved.proof == Proof.EXACT or _refuted(program, solution, proved):
            return proved
        floor = higher(solution.floor, proved.floor)
        solution = replace(solution, floor=floor, clock=solution.clock or proved.clock)
    return two_engines(program, solution, ladder.engines[1], ladder.limit) if len(ladder.engines) > 1 else solution


def _refuted(program: IntegerProgram, claim: Solution, found: Solution) -> bool:
    """Was something found that the first solver said there is not?"""
    if found.x is None:
        return False
    return claim.x is None or program.value(found.x) < program.value(claim.x)


# What a relaxation makes possible: an x, given the relaxation and, once a solver has branched, what it holds. The
# number tells the turn: 0 before the first solver branches, 1 before the second is asked, 2 after it was.
Shortcut = Callable[[Solution, Solution | None, int], Solution | None]


def escalate(
    program: IntegerProgram, ladder: Ladder, shortcut: Shortcut, *, thorough: bool = True, weak: bool = False
) -> Solution:
    """The cheapest x, by all rungs. Without `thorough`, an x that a shortcut finds is taken, proved or not.

    Where the relaxation is `weak`, cuts and cases come before branch and bound, as they find the best x sooner. What
    they leave open gets a share of the effort: all that is wanted then is a better x. Where variables are very many, it
    is wanted at once, and a few of them are enough for it; all are branched on last, if nothing else decides.
    """
    relaxed = relaxation(program, ladder)
    if relaxed.proof != Proof.UNDECIDED:
        return relaxed
    early = shortcut(relaxed, None, 0)
    if early is not None:
        if early.proof != Proof.UNDECIDED or not thorough:
            return early
        program = replace(program, known=early.x)
    weak = weak and early is not None and ladder.cases and ladder.limit.branches
    wide = weak and many(program)
    if wide:
        early = among_few(program, relaxed, ladder.engines[0], ladder.limit) or early
    if weak and early is not None:
        if early.proof == Proof.UNDECIDED:
            early = closed(program, early.x, relaxed.floor, ladder.limit)
        if early.proof != Proof.UNDECIDED:
            return early
        program = replace(program, known=early.x)
    answered = relaxed.x is not None or relaxed.outcome == Outcome.INFEASIBLE or not ladder.engines
    answered |= wide
    brief = replace(ladder.limit, effort=ladder.limit.effort * FINDING) if weak else ladder.limit
    held = relaxed if answered else ladder.engines[0](program, brief)
    if weak and early is not None:
        held = replace(held, floor=higher(held.floor, early.floor), clock=held.clock or early.clock)
        if not _refuted(program, early, held):  # the same x has been tried
            ladder = replace(ladder, cases=False)
    for turn in (1, 2):
        if held.x is not None and held.proof == Proof.UNDECIDED:
            proved = shortcut(relaxed, held, turn)
            if proved is not None and proved.proof != Proof.UNDECIDED:
                return proved
        held = confirmed(program, held, ladder, unclaimed=weak and turn == 1)
    if held.x is None and early is not None:  # whatever engines claim
        floor = higher(held.floor, early.floor)
        held = replace(held, outcome=Outcome.FEASIBLE, x=early.x, floor=floor, proof=Proof.UNDECIDED)
    return _branched(program, held, ladder) if wide and held.proof == Proof.UNDECIDED else held


def _branched(program: IntegerProgram, held: Solution, ladder: Ladder) -> Solution:
    """The last resort where variables are many: the first solver branches on all, and the second is asked."""
    found = ladder.engines[0](program, ladder.limit)
    held = replace(held, floor=higher(held.floor, found.floor), clock=held.clock or found.clock)
    if found.x is None or (held.x is not None and program.value(held.x) < program.value(found.x)):
        return held
    return confirmed(program, replace(found, floor=held.floor, clock=held.clock), ladder)


def solve(part: Programs, cost: Cost, ladder: Ladder, start: Array | None = None) -> Solution:
    """The cheapest solution of a single part; `start` is one."""
    if ladder.memory is None:
        return _solve(part, cost, ladder, start)
    key = ladder.memory.key(part, *cost, start, ladder.limit)
    if key not in ladder.memory:
        ladder.memory[key] = _solve(part, cost, ladder, start)
    found: Solution = ladder.memory[key]
    return found


def _solve(part: Programs, cost: Cost, ladder: Ladder, start: Array | None) -> Solution:
    """The same, by all rungs.

    The shortcut is a search with the duals for multipliers, which proves what it finds; before it, a better start is
    looked for. If it takes too long it is tried again when a solver has found the likely best solution, and for longer
    when two solvers leave it open.
    """
    bent = part.integer_program(cost.below)
    straight = straighten(bent, cost)

    def told(x: Array, *, best: bool) -> Solution:
        value = int(cost.of(x).sum()) - straight.left_out
        if best:
            return Solution(Outcome.OPTIMAL, straight.spread(x), value, value, Proof.EXACT)
        return Solution(Outcome.FEASIBLE, straight.spread(x))

    def guided(relaxed: Solution, held: Solution | None, turn: int) -> Solution | None:
        x = start if held is None or held.x is None else straight.gathered(held.x)
        if x is None:
            return None
        if straight.weak and turn == 0 and relaxed.duals is not None and ladder.limit.branches:
            x = descended(bent, cost, x, ladder.limit, DESCENTS)
        if relaxed.floor is not None and int(cost.of(x).sum()) - straight.left_out <= relaxed.floor:
            return told(x, best=True)  # nothing is cheaper than what is known
        found = None
        if relaxed.duals is not None and ladder.guided:
            steps = ladder.guided * (GUIDED_LAST if turn == 2 else 1)
            found = search.minimise_guided(part, cost, steps, x, relaxed.duals)
        if found is not None:
            x = found.x
            if found.exhausted[0]:
                return told(x, best=True)
        if straight.weak and turn == 0 and ladder.limit.branches:
            x = descended(bent, cost, x, ladder.limit, FURTHER, seed=1)  # cuts and cases need the best there is
        return told(x, best=False)

    solution = escalate(straight.program, ladder, guided, weak=straight.weak)
    if solution.floor is not None:
        solution = replace(solution, floor=solution.floor + straight.left_out)
    if solution.x is not None:
        return replace(solution, x=straight.gathered(solution.x))
    if start is None:
        return solution
    return replace(solution, outcome=Outcome.FEASIBLE, x=start, proof=Proof.UNDECIDED)  # whatever engines claim


def cheapest(program: IntegerProgram, ladder: Ladder) -> Solution:
    """The cheapest x, sooner where the relaxation's bound can be met by the variables that a few vertices use."""

    def among_those(relaxed: Solution, held: Solution | None, turn: int) -> Solution | None:
        found = None if turn or not ladder.engines else among_few(program, relaxed, ladder.engines[0], ladder.limit)
        return found if found is not None and found.proof != Proof.UNDECIDED else None

    return escalate(program, ladder, among_those)


def cheapest_of_many(program: IntegerProgram, ladder: Ladder, weight: int, *, thorough: bool) -> Solution:
    """The cheapest x, first among columns that the relaxation finds worth their cost, give or take half of `weight`.

    Of some ten thousand cells nearly all are out of the question. Branch and bound on the few that are not is a hundred
    times quicker, and the relaxation's bound holds for the whole program: an x that meets it is proved.
    """

    def worth_their_cost(relaxed: Solution, held: Solution | None, turn: int) -> Solution | None:
        if turn or relaxed.duals is None:
            return None
        saved = program.coefficient.astype(np.float64) * relaxed.duals[: len(program.row_lower)][program.row_of]
        worth = program.cost - np.bincount(program.index, saved, len(program.cost)) <= weight / 2
        fewer = replace(program, upper=np.where(worth, program.upper, program.lower))
        found, floor = ladder.engines[0](fewer, ladder.limit), relaxed.floor
        if found.x is None:
            return None
        return certified(program, Solution(Outcome.FEASIBLE, found.x, floor, floor, clock=found.clock))

    return escalate(program, ladder, worth_their_cost, thorough=thorough)
