"""What does HiGHS say? An adapter: the relaxation first, whose duals are proof; branch and bound for the rest.

HiGHS counts in floating point. Its x is rounded and checked in integers, its duals and rays in rational arithmetic;
what is left is a claim of one engine. Most programs of this house have a whole vertex and end with the relaxation.

The limits are simplex iterations and branch-and-bound nodes, which are the same on every machine. HiGHS does not limit
the iterations inside branch and bound, so a unit of effort buys fewer nodes of a larger program.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, replace
from math import ceil, inf, isfinite
from typing import Any, NamedTuple

import highspy
import numpy as np
from numpy.typing import NDArray

from glasshouse.errors import GlasshouseBug
from glasshouse.model.records import UNLIMITED, Count
from glasshouse.program.certainty.prove import certified, dual_bound, infeasible
from glasshouse.program.integer import (
    IntegerProgram,
    Limit,
    Outcome,
    Proof,
    Solution,
    at_once,
    largest,
    refuse_unbounded,
)

Float = NDArray[np.float64]

ITERATIONS = 20_000  # of the simplex method, a unit of effort
ENTRIES = 10**6  # of a program that gets all these iterations; a larger one gets fewer
NODES = 300_000  # of branch and bound, a unit of effort, divided by the size of the program
SIZE_OF_NODE = 300  # what a node costs besides its entries, in entries
_MOST = 2**31 - 1
_WIDE = UNLIMITED // 2  # a limit beyond is none
_ROOM = 1 << 20  # beyond the largest number of a program: as far as integers without a limit go
_FAR = 10**9  # among larger numbers branch and bound may never end
_REACH = 10**8  # as far as it may go where limits are farther: 2 of 200 random programs never ended at 10^9, none here
_EXACT = 10**15  # HiGHS refuses larger coefficients, and larger costs are not exact in floating point

OPTIONS: dict[str, object] = {
    "output_flag": False,
    "threads": 1,
    "random_seed": 0,
    "mip_rel_gap": 0.0,
    "mip_abs_gap": 1 - 1e-6,  # costs are whole: what is less than one better is not better
    "mip_heuristic_run_feasibility_jump": False,  # takes longer than all the rest on small programs
}
_Status = highspy.HighsModelStatus
_ENDLESS = {_Status.kUnbounded, _Status.kUnboundedOrInfeasible}
_STUCK = {_Status.kSolveError, _Status.kPresolveError, _Status.kPostsolveError, _Status.kUnknown, _Status.kNotset}
_engines = threading.local()


@dataclass(frozen=True, eq=False)
class Relaxation:
    """What HiGHS says when x may be fractional: `duals` are those of the rows or, of an infeasible program, a ray."""

    status: highspy.HighsModelStatus
    x: Float | None
    duals: Float | None


def highs(program: IntegerProgram, limit: Limit) -> Solution:
    """Solve an integer program with HiGHS."""
    settled = at_once(program, limit)
    if settled is not None:
        return settled
    if max(program.largest_cost, program.largest_coefficient) >= _EXACT:
        return Solution(Outcome.STOPPED)  # HiGHS cannot hold these numbers
    began = time.perf_counter()
    relaxation = relax(program, limit)
    if relaxation.status == _Status.kInfeasible:
        proven = relaxation.duals is not None and infeasible(program, relaxation.duals)
        return Solution(Outcome.INFEASIBLE, proof=Proof.EXACT if proven else Proof.UNDECIDED)
    if relaxation.status in _ENDLESS:
        return _endless(program, limit) or Solution(Outcome.STOPPED)
    floor = None
    x = _whole(program, relaxation.x)
    if relaxation.status == _Status.kOptimal and relaxation.x is not None and relaxation.duals is not None:
        floor = dual_bound(program, relaxation.duals)
        if x is not None:
            value = program.value(x)
            if value == floor or abs(value - float(program.cost @ relaxation.x)) < 0.5:
                return certified(program, Solution(Outcome.OPTIMAL, x, value, floor))
    elif relaxation.status not in _STUCK:
        outcome = Outcome.STOPPED if x is None else Outcome.FEASIBLE
        return certified(program, Solution(outcome, x, clock=relaxation.status == _Status.kTimeLimit))
    if not limit.branches:
        return Solution(Outcome.STOPPED, bound=floor, floor=floor, duals=relaxation.duals, point=relaxation.x)
    left = inf if limit.seconds is None else limit.seconds - (time.perf_counter() - began)
    if left <= 0:
        return Solution(Outcome.STOPPED, bound=floor, floor=floor, clock=True)
    return _branch(program, limit, left, floor, relaxation.x)


def _endless(program: IntegerProgram, limit: Limit) -> Solution | None:
    """Refuse a cost that falls without end; None where no direction is found in which it does."""
    if highs(program.falling(), limit).x is None:
        return None
    return refuse_unbounded(highs(program.without_cost(), limit))


def relax(program: IntegerProgram, limit: Limit) -> Relaxation:
    """Solve the program for fractional x. Without presolve: it is faster on small programs, and keeps the rays."""
    engine = _engine()
    _set(engine, "presolve", "off")
    iterations = limit.effort * ITERATIONS * min(1.0, ENTRIES / max(len(program.index), 1))
    _set(engine, "simplex_iteration_limit", ceil(min(max(iterations, 1), _MOST)))
    _run(engine, program, 0, inf if limit.seconds is None else limit.seconds)
    return _relaxed(engine)


def _relaxed(engine: Any) -> Relaxation:
    """What a run came to."""
    status = engine.getModelStatus()
    if status == _Status.kInfeasible:
        answer, found, ray = engine.getDualRay()
        known = answer != highspy.HighsStatus.kError and found
        return Relaxation(status, None, np.array(ray, np.float64) if known else None)
    solution = engine.getSolution()
    x = np.array(solution.col_value) if solution.value_valid else None
    return Relaxation(status, x, np.array(solution.row_dual) if solution.dual_valid else None)


def _branch(program: IntegerProgram, limit: Limit, seconds: float, floor: int | None, point: Float | None) -> Solution:
    """Solve the program for whole x by branch and bound; `point` is where its relaxation is least.

    Integers without a limit can keep HiGHS at the root for ever, where no limit counts. They get one, far beyond all
    others; then an x is an x, but what HiGHS says of all x is no claim about the program, unless better ones are there.
    """
    near = _near(program, point)
    if near is None:
        return Solution(Outcome.STOPPED, bound=floor, floor=floor)
    box, whole = _boxed(near)
    engine = _engine()
    _set(engine, "presolve", "choose")
    _set(engine, "simplex_iteration_limit", _MOST)
    nodes = limit.effort * NODES / (SIZE_OF_NODE + len(program.index) + len(program.cost))
    _set(engine, "mip_max_nodes", ceil(min(max(nodes, 1), _MOST)))
    _run(engine, box, 1, seconds)
    status = engine.getModelStatus()
    if status == _Status.kInfeasible:
        return Solution(Outcome.INFEASIBLE if whole else Outcome.STOPPED, floor=floor)
    if status in _ENDLESS:
        return _endless(program, limit) or Solution(Outcome.STOPPED, floor=floor)
    solution = engine.getSolution()
    x = _whole(box, np.array(solution.col_value)) if solution.value_valid else None
    whole = whole or (x is not None and _nothing_better_outside(near.program, box, near.program.value(x)))
    claimed = engine.getInfo().mip_dual_bound
    sure = whole and isfinite(claimed) and status not in _STUCK
    bound = ceil(claimed - 1e-6) + program.value(near.origin) if sure else None
    bound = max((b for b in (bound, floor) if b is not None), default=None)
    clock = status == _Status.kTimeLimit
    if x is None:
        return Solution(Outcome.STOPPED, None, bound, floor, clock=clock)
    x = x + near.origin
    value = program.value(x)
    if status == _Status.kOptimal and bound is not None and bound >= value:
        return certified(program, Solution(Outcome.OPTIMAL, x, value, floor))
    bound = None if bound is None else min(bound, value)
    return certified(program, Solution(Outcome.FEASIBLE, x, bound, floor, clock=clock))


class _Near(NamedTuple):
    """A program of how far its variables are from an origin; how large its rows are, and where it is relaxed."""

    program: IntegerProgram
    origin: Count
    farthest: int


def _near(program: IntegerProgram, point: Float | None) -> _Near | None:
    """The program with numbers that branch and bound can hold, measured from limits if need be; None: there is none.

    Rows are met to a millionth. Where numbers are so large that doubles are hardly finer, HiGHS may never end.
    """
    found = _measured(program, point, np.zeros_like(program.lower))
    if found is not None and found.farthest > _FAR:
        below, above = program.lower > -UNLIMITED, program.upper < UNLIMITED
        found = _measured(program, point, np.where(below, program.lower, np.where(above, program.upper, 0)))
    return found if found is not None and found.farthest <= _FAR else None


def _measured(program: IntegerProgram, point: Float | None, origin: Count) -> _Near | None:
    """The program measured from an origin; None where its limits are beyond what a program can have."""
    moved = program.activity(origin)
    sides = (program.lower, origin), (program.upper, origin), (program.row_lower, moved), (program.row_upper, moved)
    limits = [np.where(np.abs(side) < UNLIMITED, side - by, side) for side, by in sides]
    if max(largest(side) for side in limits) > UNLIMITED:
        return None
    lower, upper, row_lower, row_upper = (side.astype(np.int64) for side in limits)
    known = None if program.known is None else program.known - origin
    found = replace(program, lower=lower, upper=upper, row_lower=row_lower, row_upper=row_upper, known=known)
    farthest = max(largest(side[np.abs(side) <= _WIDE]) for side in (row_lower, row_upper))
    if point is not None and np.isfinite(point).all():  # where HiGHS stopped for trouble it may be anything
        farthest = max(farthest, largest(point - origin))
    return _Near(found, origin, farthest)


def _boxed(near: _Near) -> tuple[IntegerProgram, bool]:
    """The program with nearer limits for variables that have none, or one far away; and whether it is the same."""
    program = near.program
    lower, upper = program.implied
    sides = [side[np.abs(side) <= _REACH] for side in (lower, upper)]
    farthest = max(near.farthest, *(largest(side) for side in sides)) + _ROOM
    most = farthest * max(program.largest_coefficient, 1)  # a row may multiply one variable for another
    reach = min(most, max(_REACH, farthest))
    if not ((lower < -reach) | (upper > reach)).any():
        return program, True
    low = np.where(program.lower < -reach, np.maximum(lower, -reach), program.lower)
    high = np.where(program.upper > reach, np.minimum(upper, reach), program.upper)
    if program.known is not None:  # what is known stays possible
        low, high = np.minimum(low, program.known), np.maximum(high, program.known)
    return replace(program, lower=low, upper=high), False


def _nothing_better_outside(program: IntegerProgram, box: IntegerProgram, value: int) -> bool:
    """Does whatever costs no more than a value keep to the limits of the box?"""
    if not program.largest_cost or abs(value) >= UNLIMITED:
        return False
    lower, upper = program.with_row(program.cost, -UNLIMITED, value).implied
    return bool((lower >= box.lower).all() and (upper <= box.upper).all())


class Kept:
    """A program that is relaxed again and again with other costs: each time from where the last one ended.

    A changed cost leaves the last vertex possible, so the primal simplex goes on from there.
    """

    def __init__(self, program: IntegerProgram) -> None:
        self.program = program
        self.engine = _new_engine()
        self.warm = False
        _set(self.engine, "presolve", "off")
        _load(self.engine, replace(program, cost=np.zeros_like(program.cost)), 0)
        self._all = np.arange(len(program.cost), dtype=np.int32)

    def relax(self, cost: Count, limit: Limit) -> Relaxation:
        """The least of a cost for fractional x."""
        engine = self.engine
        iterations = limit.effort * ITERATIONS * min(1.0, ENTRIES / max(len(self.program.index), 1))
        _set(engine, "simplex_iteration_limit", ceil(min(max(iterations, 1), _MOST)))
        _set(engine, "time_limit", engine.getRunTime() + (inf if limit.seconds is None else limit.seconds))
        _set(engine, "simplex_strategy", 4 if self.warm else 1)
        if engine.changeColsCost(len(cost), self._all, cost.astype(np.float64)) == highspy.HighsStatus.kError:
            raise GlasshouseBug("HiGHS does not take other costs; please report the version of highspy")
        engine.run()
        found = _relaxed(engine)
        self.warm = found.status == _Status.kOptimal
        return found


class Growing:
    """A program that is relaxed again and again with rows added or dropped, or other limits, from where it ended.

    Costs are not perturbed: the vertices are better to cut at, and fewer cases are needed. Wall-clock seconds, where
    they are limited, are those of all relaxations together; `late`: they are over.
    """

    def __init__(self, program: IntegerProgram, limit: Limit) -> None:
        self.engine, self.limit, self.late = _new_engine(), limit, False
        if limit.seconds is not None:
            _set(self.engine, "time_limit", self.engine.getRunTime() + limit.seconds)
        _set(self.engine, "presolve", "off")
        _set(self.engine, "dual_simplex_cost_perturbation_multiplier", 0.0)
        _load(self.engine, program, 0)
        self._all = np.arange(len(program.cost), dtype=np.int32)
        self._entries = max(len(program.index), 1)

    def relax(self) -> Relaxation:
        """The least cost for fractional x."""
        iterations = self.limit.effort * ITERATIONS * min(1.0, ENTRIES / self._entries)
        _set(self.engine, "simplex_iteration_limit", ceil(min(max(iterations, 1), _MOST)))
        self.engine.run()
        found = _relaxed(self.engine)
        self.late |= found.status == _Status.kTimeLimit
        return found

    def basics(self) -> NDArray[np.int64]:
        """What the vertex rests on: a variable by its number, a row r as -1 - r."""
        status, basic = self.engine.getBasicVariables()
        return np.empty(0, np.int64) if status == highspy.HighsStatus.kError else basic.astype(np.int64)

    def multipliers(self, number: int) -> Float | None:
        """The combination of rows in which one of the basics is left alone."""
        status, row = self.engine.getBasisInverseRow(number)
        return None if status == highspy.HighsStatus.kError else np.array(row, np.float64)

    def add(self, coefficients: NDArray[np.int64], least: NDArray[np.int64]) -> None:
        """Rows that must be no less than so much."""
        for row, low in zip(coefficients, least, strict=True):
            used = np.flatnonzero(row)
            self.engine.addRow(float(low), inf, len(used), used.astype(np.int32), row[used].astype(np.float64))

    def drop(self, rows: NDArray[np.int64]) -> None:
        self.engine.deleteRows(len(rows), rows.astype(np.int32))

    def limit_rows(self, rows: NDArray[np.int64], lower: Count, upper: Count) -> None:
        """Other limits of some rows, out of limits for all."""
        for row in rows.tolist():
            low = -inf if lower[row] <= -UNLIMITED else float(lower[row])
            self.engine.changeRowBounds(row, low, inf if upper[row] >= UNLIMITED else float(upper[row]))

    def limit_to(self, lower: Count, upper: Count) -> None:
        """Other limits of the variables."""
        low = np.where(lower <= -UNLIMITED, -inf, lower).astype(np.float64)
        high = np.where(upper >= UNLIMITED, inf, upper).astype(np.float64)
        self.engine.changeColsBounds(len(self._all), self._all, low, high)


def _whole(program: IntegerProgram, x: Float | None) -> Count | None:
    """The nearest whole vector, if it fits."""
    if x is None or not np.isfinite(x).all() or np.abs(x).max() >= 2**53:
        return None
    whole = np.rint(x).astype(np.int64)
    return whole if program.fits(whole) else None


def _engine() -> Any:
    """This thread's HiGHS, with our options set once."""
    if not hasattr(_engines, "highs"):
        _engines.highs = _new_engine()
    return _engines.highs


def _new_engine() -> Any:
    engine = highspy._core._Highs()  # the plain binding: the class around it sets up callbacks we do not use
    for name, value in OPTIONS.items():
        _set(engine, name, value)
    return engine


def _set(engine: Any, name: str, value: object) -> None:
    if engine.setOptionValue(name, value) != highspy.HighsStatus.kOk:
        raise GlasshouseBug(f"HiGHS does not take the option {name} = {value}; please report the version of highspy")


def _run(engine: Any, program: IntegerProgram, integrality: int, seconds: float) -> None:
    """Load a program, which forgets the one before and everything learnt from it, and solve it.

    Loading takes 10 microseconds. Changing a solved relaxation to integers instead is slower in all: HiGHS then keeps
    the basis and skips presolve.
    """
    _set(engine, "time_limit", engine.getRunTime() + seconds)  # its clock goes on from one program to the next
    _load(engine, program, integrality)
    if integrality and program.known is not None:
        start = highspy.HighsSolution()
        start.col_value = program.known.astype(np.float64).tolist()
        if engine.setSolution(start) == highspy.HighsStatus.kError:
            raise GlasshouseBug("HiGHS does not take a solution to start from; please report the program")
    if engine.run() == highspy.HighsStatus.kError and engine.getModelStatus() not in _STUCK:
        raise GlasshouseBug(f"HiGHS failed with {engine.getModelStatus()}; please report the program")


def _load(engine: Any, program: IntegerProgram, integrality: int) -> None:
    """Give a program to an engine, which forgets the one before."""
    n = len(program.cost)
    status = engine.passModel(
        n,
        len(program.row_lower),
        len(program.index),
        highspy.MatrixFormat.kRowwise.value,
        highspy.ObjSense.kMinimize.value,
        0.0,
        program.cost.astype(np.float64),
        np.where(program.lower <= -UNLIMITED, -inf, program.lower),
        np.where(program.upper >= UNLIMITED, inf, program.upper),
        np.where(program.row_lower <= -UNLIMITED, -inf, program.row_lower),
        np.where(program.row_upper >= UNLIMITED, inf, program.row_upper),
        program.starts[:-1].astype(np.int32),
        program.index,
        program.coefficient.astype(np.float64),
        np.full(n, integrality, np.int32),
    )
    if status == highspy.HighsStatus.kError:  # a warning tells of coefficients that are 0
        raise GlasshouseBug(f"HiGHS does not take a program of {n} variables; please report the program")
    if engine.clearSolver() == highspy.HighsStatus.kError:
        raise GlasshouseBug("HiGHS does not forget the problem before; please report the version of highspy")
