"""Which non-negative table of children agrees best with noisy answers, and adds up to the parent?

Rows are the cells of a histogram that the parent has people in, columns its children. With noisy answers m of several
queries (a query puts cells into groups g), each with a weight w, the table x minimises

    sum over children c, queries q, groups g of   w_q (sum of x_jc over cells j of g  -  m_qgc)^2

over all x >= 0 with sum over c of x_jc = p_j, the parent's count. A parent's own table, which has nobody above it, is
the same with one column and, if it is known, a total.

Accelerated projected gradients: a gradient is a sum by groups and back; the projection splits into one simplex for each
cell. Steps need no line search, as the largest eigenvalue is at most the largest row sum of the Hessian. What is left
to gain is bounded by `gap`, the value of the best linear step (Frank and Wolfe), so an answer says how good it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from glasshouse.errors import GlasshouseBug

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

STEPS = 20_000
FIRST = 100  # steps before cells that stay at 0 are left aside
ROUND = 500  # steps before it is looked again which cells those are
LOOK = 25  # steps between two looks at the gap
CLOSE = 0.002  # how far the table may be from the best one, in people: the root of all squared differences
ENOUGH = 1e-10  # the gap, relative to the objective at the start, where cells are not asked for one by one


@dataclass(frozen=True)
class Answers:
    """Noisy answers to one query: of each cell its group, and by group and child a number; `weight` is 1 / variance."""

    group: Ints
    noisy: Floats
    weight: float

    def __post_init__(self) -> None:
        if len(self.group) and not 0 <= self.group.min() <= self.group.max() < len(self.noisy):
            raise GlasshouseBug("a cell is in a group that has no answer")


@dataclass(frozen=True)
class Fitted:
    """The table found, and how much better another could be at most (infinite where that is not known)."""

    x: Floats  # cells x children
    objective: float
    gap: float
    steps: int
    off: float  # at most so far from the best table, as CLOSE; infinite if not known


def fit(parent: Floats, children: int, answers: Sequence[Answers], allowed: NDArray[np.bool_] | None = None) -> Fitted:
    """The table of children that adds up to the parent; nobody is where `allowed` is False.

    Every cell that the parent has people in must be allowed in some child.
    """
    may = np.ones((len(parent), children), np.bool_) if allowed is None else allowed
    if np.any((parent > 0) & ~may.any(axis=1)):
        raise GlasshouseBug("people of the parent are allowed nowhere")
    x = np.where(may, parent[:, None] / np.maximum(may.sum(axis=1), 1)[:, None], 0.0)
    return _solve(x, parent, may, answers, _CELLS)


def fit_alone(cells: int, answers: Sequence[Answers], total: float | None, allowed: NDArray[np.bool_]) -> Fitted:
    """A table with nothing above it, of one column; with a total, or as many people as the answers make likely."""
    may = allowed.reshape(cells, 1)
    start = np.where(may, (total if total is not None else 0.0) / max(int(may.sum()), 1), 0.0)
    whole = np.array([total if total is not None else 0.0])
    kind = _TOTAL if total is not None else _FREE
    # Most cells stay at 0. Those that are not, or want to be, are enough to work with, as the slope shows afterwards.
    found = _solve(start, whole, may, answers, kind, FIRST)
    steps = found.steps
    while steps < STEPS and found.steps:
        x, before = found.x, found.objective
        slope = _slope(x, answers)
        level = float((slope * x).sum() / max(x.sum(), 1e-300)) if total is not None else 0.0
        some = np.flatnonzero((x[:, 0] > 0) | (may[:, 0] & (slope[:, 0] < level)))
        fewer = [Answers(one.group[some], one.noisy, one.weight) for one in answers]
        inner = _solve(x[some], whole, may[some], fewer, kind, min(ROUND, STEPS - steps))
        x[some] = inner.x
        steps += max(inner.steps, 1)
        found = _judged(x, whole, may, answers, kind, steps)
        if found.off <= CLOSE or (np.isinf(found.off) and found.gap <= ENOUGH * before):
            break
        stays = np.isinf(found.gap) and inner.steps < ROUND  # it moves no more; does any cell at 0 want to?
        if stays and not np.any(_slope(x, answers)[may & (x == 0)] < -1e-9 * max(found.objective, 1)):
            break
    return found


_CELLS, _TOTAL, _FREE = range(3)  # what is held: each cell's sum over children; the sum of all cells; nothing


def _solve(
    x: Floats, held: Floats, may: NDArray[np.bool_], answers: Sequence[Answers], kind: int, most: int = STEPS
) -> Fitted:
    """Improve a table in place, at most so many steps."""
    group, noisy, weight, scale = _stacked(x, answers)
    single = _single(answers, len(x)) / scale
    enough = (single * CLOSE**2, 0.0) if single else (0.0, ENOUGH)
    held = held.astype(np.float64, copy=False)  # whole numbers, too, so that it is compiled once
    objective, gap, steps = _descend(x, held, may, group, noisy, weight, kind, most, *enough)
    return _fitted(x, objective * scale, gap * scale, int(steps), single * scale)


def _judged(
    x: Floats, held: Floats, may: NDArray[np.bool_], answers: Sequence[Answers], kind: int, steps: int
) -> Fitted:
    """What a table is worth."""
    group, noisy, weight, scale = _stacked(x, answers)
    slope, error = np.empty_like(x), np.empty_like(noisy)
    objective = float(_differentiate(x, group, noisy, weight, error, slope))
    single = _single(answers, len(x))
    if kind != _FREE:
        gap = float(_gap(x, held, may, slope, kind))
    else:  # what is left of the slope where x may follow it, over how steep the objective is at least
        left = np.where(x > 0, slope, np.minimum(slope, 0))[may]
        gap = float(left @ left) / (2 * single / scale) if single else np.inf
    return _fitted(x, objective * scale, gap * scale, steps, single)


def _fitted(x: Floats, objective: float, gap: float, steps: int, single: float) -> Fitted:
    return Fitted(x, objective, gap, steps, float(np.sqrt(gap / single)) if single > 0 else np.inf)


def _slope(x: Floats, answers: Sequence[Answers]) -> Floats:
    group, noisy, weight, scale = _stacked(x, answers)
    slope = np.empty_like(x)
    _differentiate(x, group, noisy, weight, np.empty_like(noisy), slope)
    return slope * scale


def alone(answers: Sequence[Answers], cells: int) -> list[Answers]:
    """The answers to queries that ask for every cell by itself."""
    return [one for one in answers if len(one.noisy) >= cells and len(np.unique(one.group)) == cells]


def _single(answers: Sequence[Answers], cells: int) -> float:
    """The weight of queries that ask for every cell by itself: how steep the objective is at least."""
    return float(sum(one.weight for one in alone(answers, cells)))


def _stacked(x: Floats, answers: Sequence[Answers]) -> tuple[Ints, Floats, Floats, float]:
    """All answers one below the other: of each query and cell the row, the rows, their weights over the largest."""
    scale = max((one.weight for one in answers), default=1.0)
    group = np.array([one.group for one in answers], np.int64).reshape(len(answers), len(x))
    sizes = [len(one.noisy) for one in answers]
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    noisy = np.concatenate([one.noisy for one in answers]) if answers else np.zeros((0, x.shape[1]))
    weight = np.repeat([one.weight / scale for one in answers], sizes)
    return group + first[:-1, None], noisy, weight, scale


@njit(cache=True, nogil=True)
def _descend(x, held, may, group, noisy, weight, kind, most, close, enough):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Improve x in place; return the objective, the gap and the number of steps."""
    cells, children = x.shape
    queries = group.shape[0]
    of_answer = np.zeros(noisy.shape[0])
    for query in range(queries):
        for cell in range(cells):
            of_answer[group[query, cell]] += 1
    steepest = 0.0
    for cell in range(cells):
        row = 0.0
        for query in range(queries):
            row += weight[group[query, cell]] * of_answer[group[query, cell]]
        steepest = max(steepest, 2 * row)
    if steepest == 0.0 or cells == 0:
        return 0.0, 0.0, 0
    error = np.empty_like(noisy)
    slope = np.empty_like(x)
    look, before = x.copy(), x.copy()
    line = np.empty(max(children, cells))
    spare = np.empty(max(children, cells))
    value = _differentiate(x, group, noisy, weight, error, slope)
    least, gap = value, np.inf
    momentum = 1.0
    step = 0
    while step < most:
        step += 1
        _differentiate(look, group, noisy, weight, error, slope)
        turn = 0.0
        for cell in range(cells):
            for child in range(children):
                before[cell, child] = x[cell, child]
                x[cell, child] = look[cell, child] - slope[cell, child] / steepest
        _project(x, held, may, kind, line, spare)
        after = (1 + np.sqrt(1 + 4 * momentum * momentum)) / 2
        moved = 0.0
        for cell in range(cells):
            for child in range(children):
                change = x[cell, child] - before[cell, child]
                turn += (look[cell, child] - x[cell, child]) * change
                moved = max(moved, abs(change))
        if turn > 0:  # the momentum points the wrong way: begin anew from here
            after = 1.0
            push = 0.0
        else:
            push = (momentum - 1) / after
        for cell in range(cells):
            for child in range(children):
                look[cell, child] = x[cell, child] + push * (x[cell, child] - before[cell, child])
        momentum = after
        if step % LOOK == 0 or moved == 0.0:
            value = _differentiate(x, group, noisy, weight, error, slope)
            if kind == _FREE:
                if moved < 1e-7:
                    break
            else:
                gap = _gap(x, held, may, slope, kind)
                if gap <= max(close, enough * least):
                    break
            if moved == 0.0:
                break
    value = _differentiate(x, group, noisy, weight, error, slope)
    if kind != _FREE:
        gap = _gap(x, held, may, slope, kind)
    return value, gap, step


@njit(cache=True, nogil=True)
def _differentiate(x, group, noisy, weight, error, slope):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """The objective and its slope; `error` is room to work in."""
    cells, children = x.shape
    for answer in range(noisy.shape[0]):
        for child in range(children):
            error[answer, child] = -noisy[answer, child]
    for query in range(group.shape[0]):
        for cell in range(cells):
            answer = group[query, cell]
            for child in range(children):
                error[answer, child] += x[cell, child]
    value = 0.0
    for answer in range(noisy.shape[0]):
        for child in range(children):
            value += weight[answer] * error[answer, child] * error[answer, child]
            error[answer, child] *= 2 * weight[answer]
    slope[:] = 0.0
    for query in range(group.shape[0]):
        for cell in range(cells):
            answer = group[query, cell]
            for child in range(children):
                slope[cell, child] += error[answer, child]
    return value


@njit(cache=True, nogil=True)
def _project(x, held, may, kind, line, spare):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """The nearest x that is not negative, nowhere where it may not be, and has the sums that are held."""
    cells, children = x.shape
    if kind == _CELLS:
        for cell in range(cells):
            count = 0
            for child in range(children):
                if may[cell, child]:
                    line[count] = x[cell, child]
                    count += 1
            level = _water(line, spare, count, held[cell])
            for child in range(children):
                x[cell, child] = max(x[cell, child] - level, 0.0) if may[cell, child] else 0.0
    else:
        level = 0.0
        if kind == _TOTAL:
            count = 0
            for cell in range(cells):
                if may[cell, 0]:
                    line[count] = x[cell, 0]
                    count += 1
            level = _water(line, spare, count, held[0])
        for cell in range(cells):
            x[cell, 0] = max(x[cell, 0] - level, 0.0) if may[cell, 0] else 0.0


@njit(cache=True, nogil=True)
def _water(line, spare, count, total):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """How far to lower the first numbers of a line so that what stays above 0 adds up to the total.

    Michelot's way: lower all alike, drop those below 0, again; exact after as many rounds as values drop at most.
    """
    if total <= 0.0 or count == 0:
        return np.inf
    for at in range(count):
        spare[at] = line[at]
    left = count
    level = 0.0
    while True:
        above = 0.0
        for at in range(left):
            above += spare[at]
        level = (above - total) / left
        kept = 0
        for at in range(left):
            if spare[at] > level:
                spare[kept] = spare[at]
                kept += 1
        if kept == left or kept == 0:
            return level
        left = kept


@njit(cache=True, nogil=True)
def _gap(x, held, may, slope, kind):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """How much less the objective could be at most: the slope towards the best corner of what is allowed."""
    cells, children = x.shape
    here = 0.0
    best = 0.0
    lowest = np.inf
    for cell in range(cells):
        low = np.inf
        for child in range(children):
            here += slope[cell, child] * x[cell, child]
            if may[cell, child] and slope[cell, child] < low:
                low = slope[cell, child]
        lowest = min(lowest, low)
        if kind == _CELLS and held[cell] > 0:
            best += low * held[cell]
    if kind == _TOTAL:
        best = lowest * held[0] if held[0] > 0 else 0.0
    return max(here - best, 0.0)
