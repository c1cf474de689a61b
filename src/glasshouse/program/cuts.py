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

import numpy as np
from numpy.typing import NDArray

from glasshouse.model.records import UNLIMITED, Count
from glasshouse.program.integer import IntegerProgram

Float = NDArray[np.float64]

FRACTIONS = np.arange(1, 121)  # denominators that multipliers may have
OTHERWISE = 5040  # the denominator of those that have none of these
SMALL = 120  # what the right side of a cut is scaled to
LARGEST = 10**6  # no coefficient of a cut is larger
REACH = 2**31  # limits that are larger are not measured from
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


def denominator(multipliers: Float) -> int:
    """The least that makes whole numbers of all multipliers."""
    used = multipliers[np.abs(multipliers) > CLOSE]
    scaled = used[:, None] * FRACTIONS
    whole = (np.abs(scaled - np.rint(scaled)) < CLOSE).all(axis=0)
    return int(FRACTIONS[whole.argmax()]) if whole.any() else OTHERWISE


def cut(
    rows: Rows, lower: Count, upper: Count, x: Float, whole: NDArray[np.int64], divisor: int
) -> tuple[NDArray[np.int64], int] | None:
    """What follows from the multipliers whole / divisor, and x may break: coefficients, and their least sum."""
    used = np.flatnonzero(whole)
    matrix = rows.matrix[used]
    if np.abs(whole[used]).astype(np.float64) @ np.abs(matrix).max(axis=1, initial=0) >= REACH:
        return None
    terms = np.concatenate([whole[used] @ matrix, -whole[used]])
    among = np.flatnonzero(terms)
    low, high = (np.concatenate(ends)[among] for ends in ((lower, rows.lower[used]), (upper, rows.upper[used])))
    value = np.concatenate([x, matrix @ x])[among]
    from_above = (high < UNLIMITED) & ((low <= -UNLIMITED) | (high - value < value - low))
    base = np.where(from_above, high, low)
    if (np.abs(base) >= REACH).any():
        return None
    terms = terms[among]
    left = -int(terms @ base) % divisor
    if left == 0:
        return None
    rest = np.where(from_above, -terms, terms) % divisor
    gains = np.where(rest <= left, rest * (divisor - left), left * (divisor - rest))
    least = left * (divisor - left)
    if least > SMALL:
        gains, least = -(-gains * SMALL // least), SMALL
    gains = np.where(from_above, -gains, gains)
    least += int(gains @ base)
    own = among < len(lower)
    found = np.zeros(len(lower), np.int64)
    found[among[own]] = gains[own]
    found += gains[~own] @ matrix[among[~own] - len(lower)]
    shared = int(np.gcd.reduce(found))
    if shared == 0 or np.abs(found).max() > LARGEST * shared:
        return None
    return found // shared, -(-least // shared)
