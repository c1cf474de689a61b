"""Which histogram is nearest to counts that no histogram fits? Exactly, as a piecewise-linear integer program.

Noisy counts contradict each other. The error of a number is a whole number e >= 0 up or down, and at whole numbers e^2
is the largest of the lines `(2m + 1) e - m (m + 1)` through m^2 and (m + 1)^2. A few of these lines give a bound from
below; where the answer has an error whose square they miss, the lines through it are added and the program is solved
again, until nothing is counted too little.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from glasshouse.errors import InputError
from glasshouse.program.histogram import Compiled
from glasshouse.program.integer import IntegerProgram, Outcome, Proof, Solution
from glasshouse.program.ladder import Ladder, engage
from glasshouse.program.propagate import Array
from glasshouse.records import UNLIMITED, Count

CLIMB = Ladder()
ROUNDS = 60  # of adding lines
FARTHEST = 700_000  # an error whose square still fits a program
LINES = (*range(8), 10, 12, 16, 24, 32, 64, 256, 4096)  # lines to begin with, by the number m they pass through


@dataclass(frozen=True)
class Nearest:
    """The histogram (by cell) nearest to the counts: its numbers, and `floor <= least error <= error`."""

    outcome: Outcome
    x: Count
    fitted: Count  # what the histogram gives for each variable
    error: int
    floor: int
    proof: Proof


def nearest(
    compiled: Compiled,
    noisy: Count,
    weights: Count,
    *,
    power: int = 2,
    hard: NDArray[np.bool_] | None = None,
    ladder: Ladder = CLIMB,
) -> Nearest:
    """Minimise the sum of weights times |error| (power 1) or error squared (power 2) over all histograms.

    `noisy` and `weights` are by variable of `compiled.own`; `hard` are numbers that must be met exactly. Weights are
    whole numbers: scale them first.
    """
    rows = compiled.own
    if power not in (1, 2):
        raise InputError(f"the error can be absolute (1) or squared (2); found power {power}")
    if len(noisy) != len(rows.variables) or len(weights) != len(rows.variables):
        raise InputError(
            f"there are {len(rows.variables)} variables; found {len(noisy)} counts and {len(weights)} weights"
        )
    if (weights < 0).any():
        raise InputError("weights must not be negative")
    if rows.partial.any() or rows.sums.nnz != len(rows.set_of):
        raise InputError("some numbers are finer than the cells; compile with 'finest'")
    exact = np.zeros(len(noisy), np.bool_) if hard is None else hard
    used = np.flatnonzero(exact | (weights > 0))
    alternative = np.argsort(rows.sums.indices)  # of each variable: the row of the one entry in its column
    members = rows.members[rows.differences :][rows.set_of[alternative[used]]]
    live = np.ones(len(compiled.cells), np.bool_)  # a hard zero rules its cells out
    for row in np.flatnonzero(exact[used] & (noisy[used] == 0)):
        live[members.indices[members.indptr[row] : members.indptr[row + 1]]] = False
    cells = np.flatnonzero(live)
    members = members[:, cells].tocsr()
    soft = np.flatnonzero(~exact[used])
    lines = [list(LINES) if power == 2 else [] for _ in soft]
    for _ in range(ROUNDS):
        program = _program(members, noisy[used], weights[used], soft, lines)
        solution = engage(program, ladder, confirm=True)
        if solution.x is None:
            return _unanswered(compiled, solution)
        counts = np.zeros(len(compiled.cells), np.int64)
        counts[cells] = solution.x[: len(cells)]
        errors = np.abs(np.asarray(members @ solution.x[: len(cells)]) - noisy[used])[soft]
        error = int(sum(w * e**power for w, e in zip(weights[used][soft].tolist(), errors.tolist(), strict=True)))
        missed = [at for at, e in enumerate(errors.tolist()) if lines[at] and not {e - 1, e} & set(lines[at])]
        if not missed:
            return _answer(solution, compiled, counts, error)
        if errors.max() > FARTHEST or solution.proof == Proof.UNDECIDED:
            break  # the square is beyond what a program can hold; or more lines would not be proved either
        for at in missed:
            lines[at] = sorted({*lines[at], int(errors[at]) - 1, int(errors[at])})
    return _answer(replace(solution, proof=Proof.UNDECIDED), compiled, counts, error)


def _program(
    members: sparse.csr_matrix, noisy: Count, weights: Count, soft: Array, lines: list[list[int]]
) -> IntegerProgram:
    """cells x - up + down = noisy for each number; its cost is up + down, or a variable above every line of them.

    Hard numbers have neither. Variables: cells, then up, down and (where there are lines) the cost of soft numbers.
    """
    n, m, k = members.shape[1], members.shape[0], len(soft)
    squared = [number for number in range(k) if lines[number]]
    up, down, cost = n + np.arange(k), n + k + np.arange(k), n + 2 * k + np.arange(len(squared))
    rows = [np.repeat(np.arange(m), np.diff(members.indptr)), soft, soft]
    columns = [members.indices.astype(np.int64), up, down]
    ones = np.ones(k, np.int64)
    values = [members.data.astype(np.int64), -ones, ones]
    row_lower, row_upper = [noisy], [noisy]
    at = m
    for number, variable in zip(squared, cost.tolist(), strict=True):
        through = np.array(lines[number], np.int64)
        row, slope = at + np.arange(len(through)), -(2 * through + 1)
        for column, value in ((variable, np.ones_like(slope)), (up[number], slope), (down[number], slope)):
            rows.append(row)
            columns.append(np.full(len(row), column))
            values.append(value)
        row_lower.append(-through * (through + 1))
        row_upper.append(np.full(len(row), UNLIMITED))
        at += len(row)
    row, column, value = np.concatenate(rows), np.concatenate(columns), np.concatenate(values)
    order = np.lexsort((column, row))
    price = np.zeros(n + 2 * k + len(squared), np.int64)
    price[cost] = weights[soft[squared]]
    plain = np.setdiff1d(np.arange(k), squared)
    price[up[plain]] = price[down[plain]] = weights[soft[plain]]
    return IntegerProgram(
        price,
        np.zeros(len(price), np.int64),
        np.full(len(price), UNLIMITED),
        np.concatenate(row_lower),
        np.concatenate(row_upper),
        np.concatenate([[0], np.cumsum(np.bincount(row, minlength=at))]),
        column[order].astype(np.int32),
        value[order],
    )


def _answer(solution: Solution, compiled: Compiled, counts: Count, error: int) -> Nearest:
    floor = error if solution.proof != Proof.UNDECIDED else max(solution.floor or 0, 0)
    outcome = Outcome.OPTIMAL if solution.proof != Proof.UNDECIDED else Outcome.FEASIBLE
    return Nearest(outcome, counts, _fitted(compiled, counts), error, floor, solution.proof)


def _unanswered(compiled: Compiled, solution: Solution) -> Nearest:
    nothing = np.zeros(len(compiled.cells), np.int64)
    outcome = solution.outcome if solution.outcome == Outcome.INFEASIBLE else Outcome.STOPPED
    return Nearest(outcome, nothing, _fitted(compiled, nothing), 0, max(solution.floor or 0, 0), solution.proof)


def _fitted(compiled: Compiled, counts: Count) -> Count:
    rows = compiled.own
    alternative = np.argsort(rows.sums.indices)
    members = rows.members[rows.differences :][rows.set_of[alternative]]
    return np.asarray(members @ counts)
