"""How is a solution found in which many numbers are as small, or as large, as they can be? By wishes, one by one.

A wish fixes a variable at a value, if propagation does not object; otherwise it is let go. When all wishes were heard
the other variables are fixed, too. What comes out fits in whole numbers; what is given up says nothing. Nothing is
taken back but the last step, so a dive costs little more than propagation, and a few of them meet the ends of hundreds
of variables.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from glasshouse.program.propagate import LEAF, Array, State, Trail, activities, forget, move, settle
from glasshouse.program.reduce import Programs

HALVINGS = 64  # steps that one variable may take


def dive(part: Programs, wishes: Array, values: Array, near: Array, order: Array) -> NDArray[np.int64] | None:
    """A solution of a single part in which the wishes (variables, and their values) are true as far as was found.

    Then the variables in this `order` are given the value that they have in `near`, or one close to it. Near a solution
    little is in the way.
    """
    x = part.lower.copy()
    return x if _dive(part.system, x, part.upper.copy(), wishes, values, near, order) else None


@njit(cache=True, nogil=True)
def _dive(system, lower, upper, wishes, values, near, order):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Fix every variable, in place. False: given up."""
    n, m = len(lower), len(system.row_lower)
    queue, queued, ends = np.empty(m + 1, np.int64), np.zeros(m, np.bool_), np.zeros(2, np.int64)
    state = State(lower, upper, np.empty(m, np.int64), np.empty(m, np.int64), queue, queued, ends)
    activities(0, m, system, state)
    kept = np.empty(n + 1, np.int64), np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    trail = Trail(np.full(n, -1, np.int64), kept[0], kept[1], kept[2], np.zeros(1, np.int64))
    step = np.zeros(1, np.int64)
    for at in range(len(wishes)):
        variable, value = wishes[at], values[at]
        if lower[variable] < upper[variable] and lower[variable] <= value <= upper[variable]:
            _holds(variable, value, value, system, state, trail, step)
    for variable in order:
        for _ in range(HALVINGS):
            low, high = lower[variable], upper[variable]
            if low == high:
                break
            value = min(max(near[variable], low), high)
            if _holds(variable, value, value, system, state, trail, step):
                break
            half = low + (high - low) // 2
            one, other = (low, half), (half + 1, high)
            if value > half:
                one, other = other, one
            if not _holds(variable, one[0], one[1], system, state, trail, step) and not _holds(
                variable, other[0], other[1], system, state, trail, step
            ):
                return False
        if lower[variable] < upper[variable]:
            return False
    for row in range(m):  # noqa: SIM110  # compiled
        if not system.row_lower[row] <= state.least[row] <= system.row_upper[row]:
            return False
    return True


@njit(**LEAF)
def _holds(variable, low, high, system, state, trail, step):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Give a variable these limits, if propagation allows; otherwise all is as before."""
    step[0] += 1
    trail.used[0] = 1
    trail.stamp[variable] = step[0]
    trail.variable[0], trail.lower[0], trail.upper[0] = variable, state.lower[variable], state.upper[variable]
    move(variable, low, high, system, state, 0)
    visits = len(system.row_lower) // 2 + 50  # what is overlooked shows when all is fixed
    if settle(system, state, 0, visits, trail, 0, step[0]) == -1:
        return True
    while trail.used[0] > 0:
        trail.used[0] -= 1
        at = trail.used[0]
        move(trail.variable[at], trail.lower[at], trail.upper[at], system, state, 0)
    forget(state, 0)
    return False
