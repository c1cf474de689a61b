"""Which combinations of rows are worth rounding? Those in which a variable is measured from a switch, not a limit.

A row `x <= u s`, s being 0 or 1, limits x by another variable. At a fractional vertex x mostly stands at that limit and
far from its own. So rows are added up a few at a time, beginning with each; every variable is replaced by the limit
nearest to it, which adds that limit's row too; and the sum is divided by one of its coefficients (Marchand and Wolsey's
mixed rounding). What comes out is only a proposal: whatever the multipliers, the cut that `cuts` makes of them holds.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from glasshouse.model.records import UNLIMITED, Count
from glasshouse.program.certainty.cuts import Rows

Float = NDArray[np.float64]

TOGETHER = 6  # rows that are added up at most
DIVISORS = 12  # that are tried of each sum
WORTH = 1e-3  # by how much a vertex must break a cut
SCALE = 10**5  # no multiplier is larger


class Mixing:
    """The rows of a program that are added up: its own, not the cuts."""

    def __init__(self, rows: Rows) -> None:
        self.count, columns = rows.matrix.shape
        row, column = np.nonzero(rows.matrix)
        self.row = _lists(row, column, rows.matrix[row, column], self.count)
        order = np.lexsort((row, column))
        self.column = _lists(column[order], row[order], rows.matrix[row, column][order], columns)
        self.lower, self.upper = rows.lower, rows.upper

    def proposed(self, lower: Count, upper: Count, x: Float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Multipliers of the rows, and what their sums are divided by: at most one for each row to begin with."""
        sums = np.add.reduceat(np.append(x[self.row[1]] * self.row[2], 0.0), self.row[0][:-1])
        sums[np.diff(self.row[0]) == 0] = 0.0
        starts, wide = _switches(*self.row, self.lower, self.upper, lower, upper)
        found, divisor = _mixed(*self.row, *self.column, self.lower, self.upper, lower, upper, x, sums, starts, wide)
        return found[divisor > 0], divisor[divisor > 0]


def _lists(
    of: NDArray[np.int64], what: NDArray[np.int64], times: NDArray[np.int64], count: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    starts = np.concatenate([[0], np.cumsum(np.bincount(of, minlength=count))]).astype(np.int64)
    return starts, what.astype(np.int64), times.astype(np.int64)


def _switches(
    starts: NDArray[np.int64], index: NDArray[np.int64], times: NDArray[np.int64], row_lower: Count, row_upper: Count,
    lower: Count, upper: Count,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:  # fmt: skip
    """Of each variable, the rows that limit it by one other with two values: from above, and from below (-1: none)."""
    above, below = np.full(len(lower), -1, np.int64), np.full(len(lower), -1, np.int64)
    for row in np.flatnonzero((np.diff(starts) == 2) & (row_lower < row_upper)):
        at = slice(starts[row], starts[row + 1])
        for (x, s), (own, other) in ((index[at], times[at]), (index[at][::-1], times[at][::-1])):
            if abs(own) == 1 and abs(other) > 0 and upper[s] - lower[s] <= 1 and upper[x] > lower[x] and x != s:
                if (row_upper[row] < UNLIMITED) == (own > 0):
                    above[x] = row
                else:
                    below[x] = row
    return above, below


@njit(cache=True, nogil=True)
def _mixed(starts, index, times, c_starts, c_index, c_times, r_low, r_high, low, high, x, sums, above, below):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    rows, columns = len(r_low), len(low)
    found, divisor = np.zeros((rows, rows), np.int64), np.zeros(rows, np.int64)
    for begin in range(rows):
        size, first = starts[begin + 1] - starts[begin], starts[begin]
        if size == 0 or (size == 2 and (above[index[first]] == begin or below[index[first]] == begin)):
            continue
        w, a = np.zeros(rows, np.int64), np.zeros(columns, np.int64)
        w[begin] = 1
        for entry in range(starts[begin], starts[begin + 1]):
            a[index[entry]] = times[entry]
        for _ in range(TOGETHER):
            v, b = w.copy(), a.copy()
            for j in range(columns):
                if a[j] != 0:
                    row = _nearest(j, low, high, x, sums, r_low, r_high, above[j], below[j])
                    if row >= 0:
                        own = 0
                        for entry in range(starts[row], starts[row + 1]):
                            if index[entry] == j:
                                own = times[entry]
                        many = a[j] * own  # own is 1 or -1
                        v[row] -= many
                        for entry in range(starts[row], starts[row + 1]):
                            b[index[entry]] -= many * times[entry]
            best = _divided(b, v, low, high, x, r_low, r_high, sums)
            if best > 0:
                found[begin], divisor[begin] = v, best
                break
            if not _one_more(
                w, a, starts, index, times, c_starts, c_index, c_times, r_low, r_high, low, high, x, sums, above, below
            ):
                break
    return found, divisor


@njit(cache=True, nogil=True)
def _nearest(j, low, high, x, sums, r_low, r_high, above, below):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """The row that limits a variable more closely than its own limits, or -1."""
    best, row = min(x[j] - low[j], high[j] - x[j]), -1
    for one in (above, below):
        if one >= 0:
            slack = r_high[one] - sums[one] if r_high[one] < UNLIMITED else sums[one] - r_low[one]
            if slack <= best + 1e-9:
                best, row = slack, one
    return row


@njit(cache=True, nogil=True)
def _divided(b, v, low, high, x, r_low, r_high, sums):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """The divisor whose cut is broken most, for its length; 0: none."""
    used, total = 0, 0
    terms, far, fixed = (
        np.empty(len(b) + len(v), np.int64),
        np.empty(len(b) + len(v)),
        np.empty(len(b) + len(v), np.bool_),
    )
    tried, divisors = 0, np.zeros(DIVISORS, np.int64)
    for k in range(len(b) + len(v)):
        own = k < len(b)
        i = k if own else k - len(b)
        term = b[i] if own else -v[i]
        if term == 0:
            continue
        if abs(term) > SCALE:
            return 0
        least, most, value = (low[i], high[i], x[i]) if own else (r_low[i], r_high[i], sums[i])
        from_above = most < UNLIMITED and (least <= -UNLIMITED or most - value < value - least)
        side = most if from_above else least
        total -= term * side
        terms[used], far[used] = -term if from_above else term, max(most - value if from_above else value - least, 0.0)
        fixed[used] = least == most
        used += 1
        if own and far[used - 1] > 1e-6 and abs(term) > 1 and tried < DIVISORS:
            new = True
            for at in range(tried):
                new &= divisors[at] != abs(term)
            if new:
                divisors[tried] = abs(term)
                tried += 1
    best, chosen = WORTH, 0
    for at in range(tried):
        d = divisors[at]
        left = total % d
        if left == 0:
            continue
        needed, length = float(left * (d - left)), 0.0
        for k in range(used):
            if fixed[k]:
                continue
            rest = terms[k] % d
            gain = float(rest * (d - left) if rest <= left else left * (d - rest))
            needed -= gain * far[k]
            length += gain * gain
        if length > 0 and needed / np.sqrt(length) > best:
            best, chosen = needed / np.sqrt(length), d
    return chosen


@njit(cache=True, nogil=True)
def _one_more(w, a, starts, index, times, c_starts, c_index, c_times, r_low, r_high, low, high, x, sums, above, below):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Add the row that removes the variable farthest from all its limits; False: there is none."""
    farthest, chosen, add = 1e-6, -1, -1
    for j in range(len(a)):
        if a[j] == 0:
            continue
        far = min(x[j] - low[j], high[j] - x[j])
        for one in (above[j], below[j]):
            if one >= 0:
                far = min(far, r_high[one] - sums[one] if r_high[one] < UNLIMITED else sums[one] - r_low[one])
        if far <= farthest:
            continue
        for entry in range(c_starts[j], c_starts[j + 1]):
            row = c_index[entry]
            if w[row] != 0 or row == above[j] or row == below[j]:
                continue
            slack = min(
                sums[row] - r_low[row] if r_low[row] > -UNLIMITED else 1e9,
                r_high[row] - sums[row] if r_high[row] < UNLIMITED else 1e9,
            )
            if slack < 1e-6:
                farthest, chosen, add = far, j, row
                break
    if chosen < 0:
        return False
    own = 0
    for entry in range(starts[add], starts[add + 1]):
        if index[entry] == chosen:
            own = times[entry]
    one, other = abs(own), a[chosen] if own > 0 else -a[chosen]
    p, q = one, abs(other)
    while q:
        p, q = q, p % q
    one, other = one // p, other // p
    if max(one, abs(other)) > 100:
        return False
    for i in range(len(w)):
        w[i] *= one
    for j in range(len(a)):
        a[j] *= one
    w[add] -= other
    for entry in range(starts[add], starts[add + 1]):
        a[index[entry]] -= other * times[entry]
    return True
