"""Which inequalities does every whole solution satisfy, although a fractional vertex does not? Gomory's, in integers.

All data are whole, so the sum of a row is a whole number like any variable. For any multipliers y = Y / D of the rows,

    sum over j of (Y A)_j x_j - sum over i of Y_i (A x)_i = 0.

Measure every variable and every row from one of its limits, t >= 0 whole: the sum of C_k t_k is a whole number B, up to
multiples of D. Let f_k and f_0 be C_k and B modulo D. If f_0 is not 0,

    sum of G_k t_k >= f_0 (D - f_0),   G_k = f_k (D - f_0) where f_k <= f_0, and f_0 (D - f_k) elsewhere.

That is so for any Y, D and choice of limits: what floating point proposes can make a cut weak, never wrong. The
coefficients are then made small, rounded up, which is allowed since no t is negative.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from glasshouse.model.records import UNLIMITED, Count
from glasshouse.program.integer import SAFE, IntegerProgram
from glasshouse.program.propagate import INNER

Float = NDArray[np.float64]

FRACTIONS = 120  # the largest denominator that multipliers may have
OTHERWISE = 5040  # the denominator of those that have none of these
SMALL = 120  # what the right side of a cut is scaled to
LARGEST = 10**6  # no coefficient of a cut is larger
REACH = 2**31  # limits that are larger are not measured from
WIDEST = 2**24  # divisors are smaller
CLOSE = 1e-6


@dataclass
class Rows:
    """The rows of a program, and cuts below them: a matrix, and between which limits each lies."""

    matrix: NDArray[np.int64]
    lower: Count
    upper: Count

    @staticmethod
    def of(program: IntegerProgram) -> Rows:
        matrix = np.zeros((len(program.row_lower), len(program.cost)), np.int64)
        np.add.at(matrix, (program.row_of, program.index), program.coefficient)
        return Rows(matrix, program.row_lower.copy(), program.row_upper.copy())

    def add(self, coefficients: NDArray[np.int64], least: NDArray[np.int64]) -> None:
        self.matrix = np.concatenate([self.matrix, coefficients])
        self.lower = np.concatenate([self.lower, least])
        self.upper = np.concatenate([self.upper, np.full(len(least), UNLIMITED)])

    def keep(self, rows: NDArray[np.bool_]) -> None:
        self.matrix, self.lower, self.upper = self.matrix[rows], self.lower[rows], self.upper[rows]

    def program(self, cost: Count, lower: Count, upper: Count) -> IntegerProgram:
        """All rows as a program."""
        row, column = np.nonzero(self.matrix)
        starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(self.matrix)))])
        entries = self.matrix[row, column]
        return IntegerProgram(cost, lower, upper, self.lower, self.upper, starts, column.astype(np.int32), entries)


class Cuts(NamedTuple):
    """Cuts, a row each: coefficients (all 0: none), their least sum, and by how much a vertex breaks it per length."""

    coefficients: NDArray[np.int64]
    least: NDArray[np.int64]
    depth: Float


def cuts(
    rows: Rows, lower: Count, upper: Count, x: Float, whole: NDArray[np.int64], divisor: NDArray[np.int64]
) -> Cuts:
    """What follows from the multipliers whole / divisor of the rows, a row each, and x may break."""
    found = Cuts(np.zeros((len(whole), len(x)), np.int64), np.zeros(len(whole), np.int64), np.zeros(len(whole)))
    row, column = np.nonzero(rows.matrix)
    starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=len(rows.lower)))]).astype(np.int64)
    entries = starts, column.astype(np.int64), rows.matrix[row, column]
    _cuts(*entries, rows.lower, rows.upper, lower, upper, x, rows.matrix @ x, whole, divisor, *found)
    return found


def wholes(multipliers: Float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Multipliers, a row each, as whole ones and what they are divided by; without those that are no fractions."""
    whole, divisor = np.zeros(multipliers.shape, np.int64), np.zeros(len(multipliers), np.int64)
    _wholes(multipliers, whole, divisor)
    return whole[divisor > 0], divisor[divisor > 0]


@njit(cache=True, nogil=True)
def _wholes(multipliers, whole, divisor):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """The least denominator that makes whole numbers of all multipliers; too large ones, and NaN, are left out."""
    for number in range(len(multipliers)):
        largest = 0.0
        for value in multipliers[number]:
            largest = max(largest, abs(value)) if abs(value) < LARGEST else np.inf
        chosen = 0
        for one in range(1, FRACTIONS + 1):
            fits = True
            for value in multipliers[number]:
                scaled = value * one
                if abs(value) > CLOSE and not abs(scaled - np.rint(scaled)) < CLOSE:
                    fits = False
                    break
            if fits:
                chosen = one
                break
        chosen = chosen if chosen else OTHERWISE
        if largest * chosen < LARGEST:
            divisor[number] = chosen
            for row in range(multipliers.shape[1]):
                whole[number, row] = np.int64(np.rint(multipliers[number, row] * chosen))


@njit(cache=True, nogil=True)
def _cuts(starts, index, times, r_low, r_high, low, high, x, sums, whole, divisor, found, least, depth):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    columns, rows = len(low), len(r_low)
    terms = np.zeros(columns, np.int64)
    for number in range(len(whole)):
        multipliers, d = whole[number], divisor[number]
        if not 0 < d < WIDEST:
            continue
        reach = 0.0  # no sum of rows is larger
        for row in range(rows):
            if multipliers[row] != 0:
                most = np.int64(0)
                for entry in range(starts[row], starts[row + 1]):
                    most = max(most, abs(times[entry]))
                reach += float(abs(multipliers[row])) * most
        if reach >= REACH:
            continue
        terms[:] = 0
        for row in range(rows):
            if multipliers[row] != 0:
                for entry in range(starts[row], starts[row + 1]):
                    terms[index[entry]] += multipliers[row] * times[entry]
        total, size, usable = np.int64(0), 0.0, True
        for k in range(columns + rows):
            own = k < columns
            i = k if own else k - columns
            term = terms[i] if own else -multipliers[i]
            if term != 0:
                a, b, value = (low[i], high[i], x[i]) if own else (r_low[i], r_high[i], sums[i])
                base = b if _from_above(a, b, value) else a
                size += abs(float(term)) * abs(float(base))
                if abs(base) >= REACH or size >= SAFE:
                    usable = False
                    break
                total += term * base
        left = -total % d if usable else np.int64(0)
        if left == 0:
            continue
        most = left * (d - left)
        lowest = min(most, np.int64(SMALL))
        cut = found[number]
        for k in range(columns + rows):
            own = k < columns
            i = k if own else k - columns
            term = terms[i] if own else -multipliers[i]
            if term == 0:
                continue
            a, b, value = (low[i], high[i], x[i]) if own else (r_low[i], r_high[i], sums[i])
            above = _from_above(a, b, value)
            rest = -term % d if above else term % d
            gain = rest * (d - left) if rest <= left else left * (d - rest)
            if most > SMALL:
                gain = -(-gain * SMALL // most)
            if above:
                gain = -gain
            lowest += gain * (b if above else a)
            if own:
                cut[i] += gain
            else:
                for entry in range(starts[i], starts[i + 1]):
                    cut[index[entry]] += gain * times[entry]
        shared, widest = np.int64(0), np.int64(0)
        for column in range(columns):
            p, q = abs(cut[column]), shared
            widest = max(widest, p)
            while q:
                p, q = q, p % q
            shared = p
        if shared == 0 or widest > LARGEST * shared:
            cut[:] = 0
            continue
        value, length = 0.0, 0.0
        for column in range(columns):
            cut[column] //= shared
            value += float(cut[column]) * x[column]
            length += float(cut[column]) * float(cut[column])
        least[number] = -(-lowest // shared)
        depth[number] = max((float(least[number]) - value) / np.sqrt(length), 0.0)


@njit(**INNER)
def _from_above(low, high, value):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Is a variable measured from its limit above? From the nearer one."""
    return high < UNLIMITED and (low <= -UNLIMITED or float(high) - value < value - float(low))
