"""Do two engines agree? What one claims is put to another, which shares nothing with it."""

from __future__ import annotations

from dataclasses import replace
from math import gcd

import numpy as np

from glasshouse.errors import GlasshouseBug
from glasshouse.model.records import UNLIMITED, Count
from glasshouse.program.certainty.prove import certified, dual_bound
from glasshouse.program.integer import IntegerProgram, Limit, Outcome, Proof, Solution, Solver, higher


def _checked(program: IntegerProgram, solution: Solution) -> Solution:
    """The same, for a solution from any engine at all."""
    if solution.x is not None and not program.fits(solution.x):
        raise GlasshouseBug("an engine handed out an x that does not fit its program; please report the program")
    return certified(program, solution)


def two_engines(program: IntegerProgram, first: Solution, second: Solver, limit: Limit) -> Solution:
    """Ask a second engine to confirm what the first claims.

    An optimal x is confirmed when the second engine, too, finds nothing cheaper; `infeasible` when it finds nothing.
    What is not confirmed comes back undecided, between the proven floor and the best x that either holds.
    """
    trivial = dual_bound(program, np.zeros(len(program.row_lower)))
    first = _checked(program, replace(first, floor=higher(first.floor, trivial)))
    if first.proof is Proof.EXACT or first.outcome in (Outcome.FEASIBLE, Outcome.STOPPED):
        return first
    if first.outcome is Outcome.INFEASIBLE:
        return _confirm_infeasible(program, first, second, limit)
    if first.x is None:
        raise GlasshouseBug("an engine claims an optimum and holds no x; please report the program")
    return _confirm_optimal(program, first, first.x, second, limit)


def _confirm_infeasible(program: IntegerProgram, first: Solution, second: Solver, limit: Limit) -> Solution:
    other = _checked(program, second(program, limit))
    if other.outcome is Outcome.INFEASIBLE:
        proof = Proof.EXACT if other.proof is Proof.EXACT else Proof.TWO_ENGINES
        return Solution(Outcome.INFEASIBLE, floor=first.floor, proof=proof)
    if other.proof is Proof.EXACT:
        return other
    floor = higher(first.floor, other.floor)
    outcome = Outcome.STOPPED if other.x is None else Outcome.FEASIBLE
    return Solution(outcome, other.x, floor, floor, clock=first.clock or other.clock)


def _confirm_optimal(program: IntegerProgram, first: Solution, x: Count, second: Solver, limit: Limit) -> Solution:
    value = program.value(x)
    unsure = Solution(Outcome.FEASIBLE, x, first.floor, first.floor, clock=first.clock)
    step = gcd(*(int(c) for c in program.cost))
    cheaper = (value - 1) // step  # a zero cost has value == floor and does not come here
    if not -UNLIMITED <= cheaper < UNLIMITED:
        return unsure  # the question cannot be put
    question = program.with_row(program.cost // step, -UNLIMITED, cheaper)
    other = _checked(question, second(question, limit))
    if other.outcome is Outcome.INFEASIBLE:
        if other.proof is Proof.EXACT:
            return Solution(Outcome.OPTIMAL, x, value, value, Proof.EXACT)
        return Solution(Outcome.OPTIMAL, x, value, first.floor, Proof.TWO_ENGINES)
    # A floor of the question holds for what is cheaper than x; everything else costs at least as much as x.
    floor = first.floor if other.floor is None else higher(first.floor, min(other.floor, value))
    best = x if other.x is None else other.x
    return _checked(program, replace(unsure, x=best, bound=floor, floor=floor, clock=first.clock or other.clock))
