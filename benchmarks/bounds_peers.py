"""What are bounds compared with? One program for each end of each number, as other tools do it, on the same HiGHS.

- `cold`: an integer (or linear) program from arrays to answer: the model is passed, solved from nothing, forgotten.
- `Warm`: linear programs of one part after the other, each from the vertex where the one before it ended.

Seconds are the processor's (one thread each), so that a busy machine counts for neither. An answer is the end rounded
inwards to a whole number; a fractional end of an integer program is the solver's tolerance.
"""

from __future__ import annotations

import time
from math import ceil, floor, inf
from typing import NamedTuple

import highspy
import numpy as np
from numpy.typing import NDArray

from glasshouse.model.records import UNLIMITED
from glasshouse.program.integer import IntegerProgram

Ints = NDArray[np.int64]
CLOSE = 1e-5  # to a whole number
JUMP = "mip_heuristic_run_feasibility_jump"


class End(NamedTuple):
    """Seconds, and the end that was found: None where there was no time, UNLIMITED where there is none."""

    seconds: float
    value: int | None


def cold(program: IntegerProgram, cost: Ints, *, most: bool, whole: bool, cap: float) -> End:
    """The least or the most of a sum, from arrays in to answer out."""
    solver = highspy.Highs()
    settings = {"output_flag": False, "threads": 1, "time_limit": cap, "mip_abs_gap": 0.99}
    for name, setting in {**settings, JUMP: False}.items():  # it is slower with it
        solver.setOptionValue(name, setting)
    arrays = _arrays(program, cost, most=most)
    began = time.process_time()
    solver.passModel(*arrays, np.full(len(cost), int(whole), np.int32))
    solver.run()
    status, value = solver.getModelStatus(), solver.getInfo().objective_function_value
    seconds = time.process_time() - began
    if status == highspy.HighsModelStatus.kTimeLimit:
        return End(cap, None)
    return End(seconds, _inwards(status, value, most=most))


class Warm:
    """One linear program with other costs, again and again."""

    def __init__(self, program: IntegerProgram) -> None:
        self.solver = highspy.Highs()
        for name, setting in (("output_flag", False), ("threads", 1), ("presolve", "off")):
            self.solver.setOptionValue(name, setting)
        cost = np.zeros(len(program.cost), np.int64)
        self.solver.passModel(*_arrays(program, cost, most=False), np.zeros(len(cost), np.int32))
        self.solver.run()
        self.solver.setOptionValue("simplex_strategy", 4)  # primal: another cost leaves the vertex possible

    def end(self, variable: int, *, most: bool) -> End:
        """The least or the most of a variable."""
        began = time.process_time()
        self.solver.changeColCost(variable, -1.0 if most else 1.0)
        self.solver.run()
        status, value = self.solver.getModelStatus(), self.solver.getInfo().objective_function_value
        seconds = time.process_time() - began
        self.solver.changeColCost(variable, 0.0)
        return End(seconds, _inwards(status, -value if most else value, most=most))


def _arrays(program: IntegerProgram, cost: Ints, *, most: bool) -> tuple[object, ...]:
    sense = highspy.ObjSense.kMaximize if most else highspy.ObjSense.kMinimize
    limits = (
        np.where(side >= UNLIMITED, inf, np.where(side <= -UNLIMITED, -inf, side))
        for side in (program.lower, program.upper, program.row_lower, program.row_upper)
    )
    return (
        len(cost), len(program.row_lower), len(program.index), highspy.MatrixFormat.kRowwise.value, sense.value, 0.0,
        cost.astype(np.float64), *limits, program.starts[:-1].astype(np.int32), program.index.astype(np.int32),
        program.coefficient.astype(np.float64),
    )  # fmt: skip


def _inwards(status: highspy.HighsModelStatus, value: float, *, most: bool) -> int:
    endless = (highspy.HighsModelStatus.kUnbounded, highspy.HighsModelStatus.kUnboundedOrInfeasible)
    if status in endless:
        return UNLIMITED
    if status != highspy.HighsModelStatus.kOptimal:
        raise RuntimeError(f"HiGHS stopped with {status}")
    return floor(value + CLOSE) if most else ceil(value - CLOSE)
