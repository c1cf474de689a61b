"""What does CP-SAT say? An adapter: an engine that counts in integers, for what HiGHS leaves undecided.

It shares nothing with HiGHS, so that what both say is as good as certain; alone it is one engine. Its variables need
limits on both sides: missing ones are taken from the rows, and where the rows imply none, from a box that takes from
its claims whatever holds in the box only.
"""

from __future__ import annotations

import time
from dataclasses import replace
from math import ceil, isfinite
from typing import Any

import numpy as np
from ortools.sat.python import cp_model_helper

from glasshouse.errors import GlasshouseBug
from glasshouse.model.records import UNLIMITED, Count
from glasshouse.program.certainty.prove import certified, dual_bound
from glasshouse.program.integer import SAFE, IntegerProgram, Limit, Outcome, Proof, Solution, at_once, refuse_unbounded

QUICK = 0.02  # units of effort spent without presolve, which costs more than solving a small program
_Status = cp_model_helper.CpSolverStatus
_OPEN = {_Status.UNKNOWN, _Status.FEASIBLE}


def cpsat(program: IntegerProgram, limit: Limit) -> Solution:
    """Solve an integer program with CP-SAT, on one thread and with a fixed seed."""
    settled = at_once(program, limit)
    if settled is not None:
        return settled
    lower, upper = program.implied
    if (lower > upper).any():
        return Solution(Outcome.INFEASIBLE, proof=Proof.EXACT)  # single rows contradict the limits
    missing = bool((lower <= -UNLIMITED).any() or (upper >= UNLIMITED).any())
    if missing and program.largest_cost and cpsat(program.falling(), limit).x is not None:
        return refuse_unbounded(cpsat(program.without_cost(), limit))
    floor = dual_bound(program, np.zeros(len(program.row_lower)))
    if not limit.branches:
        return Solution(Outcome.STOPPED, floor=floor)  # it has no relaxation to stop at
    if not _countable(program, lower, upper):
        return Solution(Outcome.STOPPED, floor=floor)  # its sums could overflow
    model = _model(program, lower, upper)
    began = time.perf_counter()
    answer = _ask(model, replace(limit, effort=min(QUICK, limit.effort)), presolve=False)
    spent = answer.deterministic_time
    if answer.status in _OPEN and limit.effort > QUICK:
        left = None if limit.seconds is None else limit.seconds - (time.perf_counter() - began)
        if left is None or left > 0:
            quick, answer = answer, _ask(model, Limit(limit.effort - QUICK, left), presolve=True)
            spent += answer.deterministic_time
            if answer.status in _OPEN and quick.status == _Status.FEASIBLE and not _cheaper(answer, quick):
                answer = quick
    # An open question with effort left can only have been stopped by the clock.
    clock = limit.seconds is not None and answer.status in _OPEN and spent < limit.effort
    solution = _read(program, answer, floor, boxed=missing, clock=clock)
    if missing and solution.outcome is Outcome.FEASIBLE and solution.x is not None and not clock:
        return _unboxed(program, solution, program.value(solution.x), limit)
    return solution


def _unboxed(program: IntegerProgram, found: Solution, value: int, limit: Limit) -> Solution:
    """Where nothing that costs at most what was found leaves the box, solve that for an answer that holds."""
    if abs(value) < UNLIMITED and program.largest_cost:
        better = program.with_row(program.cost, -UNLIMITED, value)
        lower, upper = better.implied
        if (lower > -UNLIMITED).all() and (upper < UNLIMITED).all():
            answer = cpsat(better, limit)
            return found if answer.x is None else answer
    return found


def _read(program: IntegerProgram, answer: Any, floor: int | None, *, boxed: bool, clock: bool) -> Solution:
    """What an answer of CP-SAT means; what it says of a box only is not a claim."""
    if answer.status == _Status.INFEASIBLE:
        return Solution(Outcome.STOPPED if boxed else Outcome.INFEASIBLE, floor=floor)
    claimed = answer.best_objective_bound if program.largest_cost else 0.0
    bound = floor
    if not boxed and isfinite(claimed) and abs(claimed) < 2**53:
        bound = ceil(claimed - 1e-6)
        bound = bound if floor is None else max(bound, floor)
    x = np.array(list(answer.solution), np.int64)
    if answer.status == _Status.UNKNOWN or not program.fits(x):
        return Solution(Outcome.STOPPED, None, bound, floor, clock=clock)
    value = program.value(x)
    if answer.status == _Status.OPTIMAL and not boxed:
        return certified(program, Solution(Outcome.OPTIMAL, x, value, floor))
    bound = None if bound is None else min(bound, value)
    return certified(program, Solution(Outcome.FEASIBLE, x, bound, floor, clock=clock))


def _cheaper(one: Any, other: Any) -> bool:
    return bool(one.status == _Status.FEASIBLE and one.objective_value < other.objective_value)


def _countable(program: IntegerProgram, lower: Count, upper: Count) -> bool:
    """Can no sum of a row or of the cost leave int64, whatever values CP-SAT tries? With room to spare."""
    reach = np.maximum(np.abs(lower), np.abs(upper)).astype(np.float64)
    cost = np.abs(program.cost.astype(np.float64)) @ reach
    rows = np.abs(program.coefficient.astype(np.float64)) * reach[program.index]
    return bool(cost < SAFE / 4 and rows.sum() < SAFE / 4)


def _model(program: IntegerProgram, lower: Count, upper: Count) -> cp_model_helper.CpModelProto:
    """The program in CP-SAT's own format; lists are the fastest way in."""
    model = cp_model_helper.CpModelProto()
    add = model.variables.add
    for pair in np.stack([lower, upper], axis=1).tolist():
        add().domain.extend(pair)
    starts, index, coefficient = program.starts.tolist(), program.index.tolist(), program.coefficient.tolist()
    limits = np.stack(
        [
            np.where(program.row_lower <= -UNLIMITED, -SAFE, program.row_lower),
            np.where(program.row_upper >= UNLIMITED, SAFE, program.row_upper),
        ],
        axis=1,
    ).tolist()
    for row, pair in enumerate(limits):
        entries = slice(starts[row], starts[row + 1])
        linear = model.constraints.add().linear
        linear.vars.extend(index[entries])
        linear.coeffs.extend(coefficient[entries])
        linear.domain.extend(pair)
    (priced,) = np.nonzero(program.cost)
    if len(priced):
        model.objective.vars.extend(priced.tolist())
        model.objective.coeffs.extend(program.cost[priced].tolist())
    return model


def _ask(model: cp_model_helper.CpModelProto, limit: Limit, *, presolve: bool) -> Any:
    parameters = cp_model_helper.SatParameters()
    parameters.num_workers = 1
    parameters.interleave_search = False
    parameters.random_seed = 0
    parameters.max_deterministic_time = limit.effort
    parameters.cp_model_presolve = presolve
    if limit.seconds is not None:
        parameters.max_time_in_seconds = limit.seconds
    wrapper = cp_model_helper.SolveWrapper()
    wrapper.set_parameters(parameters)
    answer = wrapper.solve(model)  # type: ignore[no-untyped-call]  # its stub leaves this one out
    if answer.status == _Status.MODEL_INVALID:
        raise GlasshouseBug(f"CP-SAT does not take a program: {answer.solution_info}; please report the program")
    return answer
