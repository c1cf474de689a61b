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
from glasshouse.model.records import UNLIMITED, Count
from glasshouse.program.integer import IntegerProgram, Outcome, Proof, Solution
from glasshouse.program.ladder import CLIMB, Ladder, cheapest_of_many
from glasshouse.program.propagate import Array
from glasshouse.program.tables.histogram import Compiled

ROUNDS = 60  # of adding lines
FARTHEST = 700_000  # an error whose square still fits a program
LINES = (*range(8), 10, 12, 16, 24, 32, 64, 256, 4096)  # lines to begin with, by the number m they pass through


@dataclass(frozen=True)
class Beside:
    """Rows that hold whatever the noisy numbers are, and the most that each variable can be."""

    rows: sparse.csr_matrix
    lower: Count
    upper: Count
    most: Count


@dataclass(frozen=True)
class Nearest:
    """The histogram (by cell) nearest to the counts: its numbers, and `floor <= least error <= error`.

    An error of UNLIMITED means that no histogram was found; x is then empty.
    """

    outcome: Outcome
    x: Count
    fitted: Count  # what the histogram gives for each variable
    error: int
    floor: int
    proof: Proof
    clock: bool = False  # the wall clock had a say: another run may know more


def nearest(
    compiled: Compiled,
    noisy: Count,
    weights: Count,
    *,
    power: int = 2,
    hard: NDArray[np.bool_] | None = None,
    between: tuple[Count, Count] | None = None,
    ladder: Ladder = CLIMB,
    thorough: bool = True,
) -> Nearest:
    """Minimise the sum of weights times |error| (power 1) or error squared (power 2) over all histograms.

    `noisy` and `weights` are by variable of `compiled.own`; `hard` are numbers that must be met exactly, and `between`
    has a lower and an upper limit for every number, whatever its noisy count (UNLIMITED is none). Weights are whole
    numbers: scale them first. Several places at once are one place with an attribute more. Without `thorough`, an
    answer that may miss the least by little is taken as it is, with its floor, where proving more would take long.
    """
    rows = compiled.own
    _refuse(len(rows.variables), noisy, weights, power, hard, between)
    if rows.partial.any() or rows.sums.nnz != len(rows.set_of):
        raise InputError("some numbers are finer than the cells; compile with 'finest'")
    exact = np.zeros(len(noisy), np.bool_) if hard is None else hard
    low, high = (np.zeros(len(noisy), np.int64), np.full(len(noisy), UNLIMITED)) if between is None else between
    used = np.flatnonzero(exact | (weights > 0) | (low > 0) | (high < UNLIMITED))
    alternative = np.argsort(rows.sums.indices)  # of each variable: the row of the one entry in its column
    members = rows.members[rows.differences :][rows.set_of[alternative[used]]]
    live = np.ones(len(compiled.cells), np.bool_)  # a hard zero rules its cells out
    for row in np.flatnonzero((exact[used] & (noisy[used] == 0)) | (high[used] == 0)):
        live[members.indices[members.indptr[row] : members.indptr[row + 1]]] = False
    cells = np.flatnonzero(live)
    members = members[:, cells].tocsr()
    found = nearest_sums(
        members, noisy[used], weights[used], exact[used], (low[used], high[used]), power=power, ladder=ladder,
        thorough=thorough,
    )  # fmt: skip
    counts = np.zeros(len(compiled.cells), np.int64)
    counts[cells] = found.x
    return replace(found, x=counts, fitted=_fitted(compiled, counts))


def nearest_sums(
    members: sparse.csr_matrix,
    noisy: Count,
    weights: Count,
    hard: NDArray[np.bool_],
    between: tuple[Count, Count],
    *,
    power: int = 2,
    cost: Count | None = None,
    beside: Beside | None = None,
    ladder: Ladder = CLIMB,
    thorough: bool = True,
) -> Nearest:
    """The same for sums given as rows over variables, each variable of which may have a cost of its own.

    What is minimised, and told as the error, is then the cost of the variables and the weighted error together.
    """
    soft = np.flatnonzero(~hard)
    own = np.zeros(members.shape[1], np.int64) if cost is None else cost
    lines = [list(LINES) if power == 2 else [] for _ in soft]
    step = int(np.concatenate([weights[weights > 0], own[own > 0]]).min(initial=1))
    for _ in range(ROUNDS):
        program = _program(members, noisy, weights, soft, lines, between, own, beside)
        solution = cheapest_of_many(program, ladder, step, thorough=thorough)
        held = solution.x
        if held is None and power == 2 and solution.outcome != Outcome.INFEASIBLE:  # squares can be beyond all solvers
            plain = _program(members, noisy, weights, soft, [[] for _ in soft], between, own, beside)
            held = cheapest_of_many(plain, ladder, step, thorough=False).x
        if held is None:
            return _unanswered(members, solution)
        counts = held[: members.shape[1]]
        errors = np.abs(np.asarray(members @ counts) - noisy)[soft]
        error = int(sum(w * e**power for w, e in zip(weights[soft].tolist(), errors.tolist(), strict=True)))
        error += int(own @ counts)
        if solution.x is None:
            break
        missed = [at for at, e in enumerate(errors.tolist()) if lines[at] and not {e - 1, e} & set(lines[at])]
        if not missed:
            return _answer(solution, members, counts, error)
        if errors.max() > FARTHEST:
            break  # the square is beyond what a program can hold
        for at in missed:
            lines[at] = sorted({*lines[at], int(errors[at]) - 1, int(errors[at])})
    return _answer(replace(solution, proof=Proof.UNDECIDED), members, counts, error)


def _refuse(
    count: int,
    noisy: Count,
    weights: Count,
    power: int,
    hard: NDArray[np.bool_] | None,
    between: tuple[Count, Count] | None,
) -> None:
    """Refuse numbers that make no sense."""
    if power not in (1, 2):
        raise InputError(f"the error can be absolute (1) or squared (2); found power {power}")
    if len(noisy) != count or len(weights) != count:
        raise InputError(f"there are {count} variables; found {len(noisy)} counts and {len(weights)} weights")
    if not np.issubdtype(np.asarray(noisy).dtype, np.integer) or not np.issubdtype(
        np.asarray(weights).dtype, np.integer
    ):
        raise InputError("noisy counts and weights must be whole numbers; scale them first")
    if (np.abs(noisy) > UNLIMITED).any():
        raise InputError(f"a noisy count is beyond {UNLIMITED:,}")
    if (weights < 0).any():
        raise InputError("weights must not be negative")
    if hard is not None and (len(hard) != count or np.asarray(hard).dtype != np.bool_):
        raise InputError(f"'hard' must say true or false for each of the {count} variables")
    if between is not None and not all(len(limits) == count for limits in between):
        raise InputError(f"'between' needs a lower and an upper limit for each of the {count} variables")


def _program(
    members: sparse.csr_matrix,
    noisy: Count,
    weights: Count,
    soft: Array,
    lines: list[list[int]],
    between: tuple[Count, Count],
    own: Count,
    beside: Beside | None,
) -> IntegerProgram:
    """cells x - up + down = noisy for each number; its cost is up + down, or a variable above every line of them.

    Hard numbers have neither. Variables: cells, then up, down and (where there are lines) the cost of soft numbers. No
    cell needs more than the largest number that counts it: with less, no error is larger and no limit broken.
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
    limited = np.flatnonzero((between[0] > 0) | (between[1] < UNLIMITED))
    held = [(members[limited], between[0][limited], between[1][limited])]
    held += [] if beside is None else [(beside.rows, beside.lower, beside.upper)]
    for inside, least, most in held:
        rows.append(at + np.repeat(np.arange(len(least)), np.diff(inside.indptr)))
        columns.append(inside.indices.astype(np.int64))
        values.append(inside.data.astype(np.int64))
        row_lower.append(least)
        row_upper.append(most)
        at += len(least)
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
    price[:n] = own
    price[cost] = weights[soft[squared]]
    plain = np.setdiff1d(np.arange(k), squared)
    price[up[plain]] = price[down[plain]] = weights[soft[plain]]
    return IntegerProgram(
        price,
        np.zeros(len(price), np.int64),
        _limits(members, noisy, soft, squared, between[0], beside),
        np.concatenate(row_lower),
        np.concatenate(row_upper),
        np.concatenate([[0], np.cumsum(np.bincount(row, minlength=at))]),
        column[order].astype(np.int32),
        value[order],
    )


def _limits(
    members: sparse.csr_matrix, noisy: Count, soft: Array, squared: list[int], lower: Count, beside: Beside | None
) -> Count:
    """What cells, errors and costs can at most be."""
    largest = np.maximum(np.maximum(noisy, 0), np.minimum(lower, UNLIMITED))
    cells = np.zeros(members.shape[1], np.int64)
    if beside is None:
        np.maximum.at(cells, members.indices, largest[np.repeat(np.arange(members.shape[0]), np.diff(members.indptr))])
    else:
        cells = beside.most
    most = np.asarray(members.astype(np.float64) @ cells.astype(np.float64))
    up = np.minimum(np.maximum(most - noisy, 0), UNLIMITED).astype(np.int64)[soft]
    down = np.maximum(noisy, 0)[soft]
    far = np.minimum(np.maximum(up, down)[squared], 10**6)
    return np.concatenate([cells, up, down, np.minimum(far**2, UNLIMITED)])


def _answer(solution: Solution, members: sparse.csr_matrix, counts: Count, error: int) -> Nearest:
    floor = error if solution.proof != Proof.UNDECIDED else max(solution.floor or 0, 0)
    outcome = Outcome.OPTIMAL if solution.proof != Proof.UNDECIDED else Outcome.FEASIBLE
    clock = solution.clock and solution.proof == Proof.UNDECIDED
    return Nearest(outcome, counts, np.asarray(members @ counts), error, floor, solution.proof, clock)


def _unanswered(members: sparse.csr_matrix, solution: Solution) -> Nearest:
    nothing = np.zeros(members.shape[1], np.int64)
    outcome = solution.outcome if solution.outcome == Outcome.INFEASIBLE else Outcome.STOPPED
    floor = max(solution.floor or 0, 0)
    return Nearest(
        outcome, nothing, np.asarray(members @ nothing), UNLIMITED, floor, solution.proof, solution.clock
    )  # fmt: skip


def _fitted(compiled: Compiled, counts: Count) -> Count:
    rows = compiled.own
    alternative = np.argsort(rows.sums.indices)
    members = rows.members[rows.differences :][rows.set_of[alternative]]
    return np.asarray(members @ counts)
