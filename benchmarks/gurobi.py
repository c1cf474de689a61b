"""How fast is Gurobi on the same models? Only those that its free licence, limited in size, can take.

gurobipy is no dependency: without it (`pip install gurobipy`), or where its licence has run out, these benchmarks are
left out. That licence is for internal evaluation and forbids to publish the results of benchmarks: so they run by name
only, print what they find, and keep nothing. Blocks whose model is too large are left out on both sides, and counted.
"""

from __future__ import annotations

import time
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csc_array

from benchmarks import core, peers

MOST = 2000  # variables, and constraints, that the licence allows


@cache
def _environment() -> Any:
    """A silent environment on one thread; starting one reads the licence."""
    import gurobipy

    environment = gurobipy.Env(empty=True)
    environment.setParam("OutputFlag", 0)
    environment.start()
    environment.setParam("Threads", 1)
    environment.setParam("MIPGapAbs", peers.GAP)  # the relative gap is 1e-4 in both solvers, their default
    return environment


def available() -> bool:
    """Is gurobipy installed, with a licence that is good?"""
    if find_spec("gurobipy") is None:
        return False
    import gurobipy

    try:
        _environment()
    except gurobipy.GurobiError:
        return False
    return True


def solve(model: peers.Model, cap: float) -> tuple[float, str, peers.Floats]:
    """As `peers.highs`: seconds from arrays to answer, the outcome, and the values if there are any."""
    from gurobipy import GRB
    from gurobipy import Model as Gurobi

    rows, columns = len(model.row_lower), len(model.cost)
    if max(rows, columns) > MOST:
        return 0.0, "too large", np.zeros(0)
    below, above = np.isfinite(model.row_lower), np.isfinite(model.row_upper)
    equal = model.row_lower == model.row_upper
    if not (equal | (below != above)).all():
        raise ValueError("a row has two different limits; the models of the peers have none")
    sense = np.where(equal, "=", np.where(above, "<", ">"))
    limit = np.where(above, model.row_upper, model.row_lower)
    matrix = csc_array((model.value, model.index, model.starts), (rows, columns)).tocsr()
    with Gurobi(env=_environment()) as solver:
        solver.setParam("TimeLimit", cap)
        start = time.perf_counter()
        x = solver.addMVar(columns, ub=model.upper, obj=model.cost, vtype=GRB.INTEGER)
        solver.addMConstr(matrix, x, sense, limit)
        solver.optimize()
        status = solver.Status
        values = x.X if status == GRB.OPTIMAL else np.zeros(0)
        seconds = time.perf_counter() - start
    if status == GRB.OPTIMAL:
        return seconds, "solved", values
    if status in (GRB.INFEASIBLE, GRB.INF_OR_UNBD):  # every variable has an upper limit
        return seconds, "infeasible", values
    if status == GRB.TIME_LIMIT:
        return cap, "timeout", values
    raise RuntimeError(f"Gurobi stopped with status {status}")


class Timed(NamedTuple):
    """Seconds on the blocks of one source that the licence can take: ours (a block, together), Gurobi's, HiGHS's."""

    ours: float
    gurobi: core.Times
    highs: core.Times
    left_out: int


def farthest() -> dict[str, object] | None:
    """As `core.farthest_ratio("mean")`."""
    if _missing("farthest-vs-gurobi"):
        return None
    timed = {}
    for sample in core.samples():
        far = core.far(sample.name)
        block = (sample, far.problem, far.start, far.found)
        answers = [core.whole_block(*block, row, solve) for row in range(len(sample.persons))]
        rows = _that_fit(answers)
        first = far.problem.programs.first
        start = np.concatenate([far.start[first[row] : first[row + 1]] for row in rows])
        ours = min(core.timed_answer(sample, rows, start=start)[0] for _ in range(2)) / len(rows)
        highs = [core.whole_block(*block, row) for row in rows]
        timed[sample.name] = _timed(ours, answers, highs)
    peer = "whole-block histogram MILP with zero elimination (equation 8 without tract tables), on Gurobi"
    return _result("farthest-vs-gurobi", peer, timed)


def feasible() -> dict[str, object] | None:
    """As `core.feasible(eliminate=True)`."""
    if _missing("feasible-vs-gurobi"):
        return None
    timed = {}
    for sample in core.samples():
        tried = core.tried(sample, eliminate=True)
        answers = [_record_binary(sample, row, solve) for row in tried]
        rows = tried[_that_fit(answers)]
        highs = [_record_binary(sample, row, peers.highs) for row in rows]
        timed[sample.name] = _timed(core.ours_one(sample, rows)[0], answers, highs)
    peer = "one binary per person slot (paper 000, equations 3 and 6, single years), with zero elimination, on Gurobi"
    return _result("feasible-vs-gurobi", peer, timed)


def _missing(name: str) -> bool:
    if available():
        return False
    print(f"{name}: left out, as gurobipy is not installed or has no valid licence")
    return True


def _record_binary(sample: core.Sample, row: int, by: peers.Solver) -> peers.Answer:
    return peers.record_binary(sample.exact, sample.counts.lower[row], eliminate=True, cap=core.CAP, by=by)


def _that_fit(answers: list[peers.Answer]) -> peers.Ints:
    return np.flatnonzero([answer.outcome != "too large" for answer in answers])


def _timed(ours: float, gurobi: list[peers.Answer], highs: list[peers.Answer]) -> Timed:
    """What is not solved counts at the cap."""
    kept = [answer for answer in gurobi if answer.outcome != "too large"]
    seconds = [np.array([a.seconds if a.outcome == "solved" else core.CAP for a in some]) for some in (kept, highs)]
    return Timed(ours, *seconds, len(gurobi) - len(kept))


def _result(name: str, peer: str, timed: dict[str, Timed]) -> dict[str, object]:
    detail = {
        source: {
            "blocks": len(t.gurobi),
            "left out, too large for the licence": t.left_out,
            "ours ms": round(t.ours * 1e3, 4),
            "peer mean ms": round(float(t.gurobi.mean()) * 1e3, 3),
            "peer median ms": round(float(np.median(t.gurobi)) * 1e3, 3),
            "HiGHS on the same, mean ms": round(float(t.highs.mean()) * 1e3, 3),
            "HiGHS on the same, median ms": round(float(np.median(t.highs)) * 1e3, 3),
            "ratio": round(float(t.gurobi.mean()) / t.ours, 2),
            "unsolved": int((t.gurobi >= core.CAP).sum()),
        }
        for source, t in timed.items()
    }
    blocks = sum(len(t.gurobi) for t in timed.values())
    ours = sum(t.ours * len(t.gurobi) for t in timed.values())
    return {
        "name": name,
        "ratio": round(float(sum(t.gurobi.sum() for t in timed.values())) / ours, 2),
        "unit": "times, mean seconds a block (ours includes building and proofs)",
        "n": blocks,
        "peer": peer,
        "detail": detail,
    }
