"""How does a proof by cuts and cases become lines? The core's own steps (`program/certainty`), again in fractions.

A case ends with a sum of rows and limits in whole numbers, and a line that divides and rounds it. A cut (`cuts`)
follows in two cases. With multipliers Y of the rows, a divisor D, and variables and rows measured from their limits,
t >= 0, the sum of C_k t_k is B; with C_k = D q_k + f_k, where f_k <= f_0, or C_k = D q_k - (D - f_k), and f_0 = B
modulo D, all of them whole,

    D (sum of q_k t_k - floor(B / D)) = f_0 - (sum of f_k t_k) + (sum of (D - f_k) t_k).

Either the sum of q_k t_k is at most floor(B / D), or it is at least that and 1. Each says the cut, with some t_k >= 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from glasshouse.model.records import UNLIMITED
from glasshouse.program.certainty.cases import Closing, Cutting, Limits
from glasshouse.program.certainty.cuts import SMALL, Rows
from glasshouse.proofs.derivation import Derivation, Line, Ref
from glasshouse.proofs.enough import enough

# What multipliers are times to be whole: the less that is, the shorter the line.
UNITS = (
    1, 2, 6, 12, 24, 60, 120, 240, 420, 840, 1260, 1680, 2520, 5040, 7560, 10080, 15120,
    20160, 27720, 45360, 55440, 83160, 110880, 166320, 221760, 332640, 498960, 720720, 2**24, 2**44,
)  # fmt: skip
Float = NDArray[np.float64]
Ints = NDArray[np.int64]
Known = tuple[Ref, int] | None  # so many times this row or line says it; None: that a column is not below 0


class Unshown(Exception):  # noqa: N818  # it is an answer
    """A step rests on something that no line shows."""


class Base(Protocol):
    """Why the rows of the program and the limits of its variables hold."""

    def row(self, number: int, *, up: bool) -> Known: ...

    def limit(self, column: int, *, up: bool) -> Known: ...


class Measured(NamedTuple):
    """A variable, or beyond them a row, measured from a limit: t >= 0."""

    what: int
    times: int  # of t
    sign: int  # -1: from above
    limit: int


class Replay:
    """Lines for what the core has closed; `columns` are its variables, as sums of columns of the derivation."""

    def __init__(self, derived: Derivation, columns: Sequence[Mapping[int, int]], base: Base, closing: Closing) -> None:
        self.derived, self.columns, self.base, self.closing = derived, columns, base, closing
        program, cuts = closing.program, closing.made
        self.matrix = np.vstack([Rows.of(program).matrix, *(one.coefficients for one in cuts)])
        self.low = np.concatenate([program.row_lower, np.array([one.least for one in cuts], np.int64)])
        self.high = np.concatenate([program.row_upper, np.full(len(cuts), UNLIMITED)])
        self.given, self.cost, self.value = len(program.row_lower), program.cost, closing.value
        self.cuts: dict[int, int] = {}  # the lines of those that were used
        self.halves: dict[Limits, int] = {}

    def shown(self) -> int:
        """The line that nothing costs less than the best x."""
        return self._shown(self.closing.limits)

    def _shown(self, limits: Limits) -> int:
        """A line that nothing within these limits costs less; or that nothing is within them."""
        first, second = self.closing.tree[limits]
        if isinstance(first, Limits) and isinstance(second, Limits):
            return self._divided(first, second)
        duals, rows = np.asarray(first, np.float64), np.asarray(second, np.int64)
        part = Rows(self.matrix[rows], self.low[rows], self.high[rows])
        for some in (enough(part.program(self.cost, limits.lower, limits.upper), duals, self.value), duals):
            for shown in (self._bounded, self._absurd):
                line = shown(some, rows, limits)
                if line is not None:
                    return line
        raise Unshown

    def _divided(self, more: Limits, fewer: Limits) -> int:
        for half in (more, fewer):
            sign, limit = (1, half.lower) if half.up else (-1, half.upper)
            terms = {column: sign * times for column, times in self.columns[half.at].items()}
            self.halves[half] = self.derived.assumed(terms, sign * int(limit[half.at]))
        first, second = self._shown(fewer), self._shown(more)
        nothing = self.derived.lines[first].absurd and self.derived.lines[second].absurd
        terms, value = ({}, 1) if nothing else (self._columns(self.cost), self.value)
        return self.derived.add(Line(terms, value, "uns", cases=(first, self.halves[fewer], second, self.halves[more])))

    def _columns(self, terms: Ints, times: int = 1) -> dict[int, int]:
        """Terms of the program's variables, so many times, as those of the derivation's columns."""
        used = map(int, np.flatnonzero(terms))
        return {at: times * int(terms[one]) * much for one in used for at, much in self.columns[one].items()}

    # What multipliers say

    def _bounded(self, duals: Float, rows: Ints, limits: Limits) -> int | None:
        """Lines that the cost is not less than the value, by multipliers of rows."""
        for unit in UNITS:
            least, y, left = self._summed(duals * unit, rows, limits, unit)
            if least > unit * (self.value - 1):
                whole = Line(self._columns(self.cost, unit), least, "lin", self._times(y, left, limits))
                divided: dict[Ref, Fraction] = {self.derived.add(whole): Fraction(1, unit)}
                return self.derived.add(Line(self._columns(self.cost), self.value, "rnd", divided))
        return None

    def _absurd(self, ray: Float, rows: Ints, limits: Limits) -> int | None:
        """A line that nothing fits, by multipliers whose sign and length do not matter."""
        sizes = np.abs(ray)
        longest = float(sizes.max(initial=0.0))
        if not 1e-100 < longest < 1e30:
            return None
        shortest = float(sizes[sizes > 1e-9 * longest].min())
        for length in (shortest, -shortest, longest, -longest):
            for unit in UNITS:
                least, y, left = self._summed(ray / length * unit, rows, limits, 0)
                if least > 0:
                    return self.derived.add(Line({}, least, "lin", self._times(y, left, limits)))
        return None

    def _summed(
        self, duals: Float, rows: Ints, limits: Limits, unit: int
    ) -> tuple[int, dict[int, int], dict[int, int]]:
        """The least that so many times the cost can be; whole multipliers of rows, and what is left of variables."""
        whole = np.rint(np.where(np.abs(duals) < 1e30, duals, 0.0))
        whole = np.where(np.where(whole > 0, self.low[rows] > -UNLIMITED, self.high[rows] < UNLIMITED), whole, 0.0)
        y = {int(rows[at]): int(whole[at]) for at in np.flatnonzero(whole)}
        rest = self.cost.astype(object) * unit
        for row, times in y.items():
            used = np.flatnonzero(self.matrix[row])
            rest[used] -= times * self.matrix[row, used].astype(object)
        left = {int(at): int(rest[at]) for at in np.flatnonzero(rest)}
        least = sum(times * int((self.low if times > 0 else self.high)[row]) for row, times in y.items())
        least += sum(times * int((limits.lower if times > 0 else limits.upper)[at]) for at, times in left.items())
        return least, y, left

    def _times(self, y: Mapping[int, int], left: Mapping[int, int], limits: Limits) -> dict[Ref, Fraction]:
        known = [(self.row(row, up=times < 0), abs(times)) for row, times in y.items()]
        known += [(self.limit(limits, at, up=times < 0), abs(times)) for at, times in left.items()]
        return _together((one, Fraction(times)) for one, times in known)

    # Why rows and limits hold

    def row(self, number: int, *, up: bool) -> Known:
        """Why a row holds: of the program, or a cut."""
        if number < self.given:
            return self.base.row(number, up=up)
        if number not in self.cuts:
            self.cuts[number] = self._cut(self.closing.made[number - self.given])
        return self.cuts[number], 1

    def limit(self, limits: Limits, column: int, *, up: bool) -> Known:
        """Why a variable keeps to its limit: it is that of a case, or was so before all cases."""
        value, before = _side(limits, column, up=up), limits.before
        while before is not None and _side(before, column, up=up) == value:
            limits, before = before, before.before
        return self.base.limit(column, up=up) if before is None else (self.halves[limits], 1)

    def _cut(self, cut: Cutting) -> int:
        """The five lines of a cut: two cases, the cut in each, and both together."""
        size, d, measured = len(self.cost), cut.divisor, self._measured(cut)
        total = -sum(one.sign * one.times * one.limit for one in measured)
        left, step = total % d, total // d
        most = left * (d - left)
        right, found, divided = min(most, SMALL), np.zeros(size, np.int64), np.zeros(size, np.int64)
        scale = Fraction(right, most)
        gains: list[tuple[Known, int, int]] = []  # why t >= 0, what it brings, and f or f - D
        for what, much, sign, limit in measured:
            f = much % d if much % d <= left else much % d - d
            gain = f * (d - left) if f >= 0 else -left * f
            gain = -(-gain * SMALL // most) if most > SMALL else gain
            own, times_divided = what < size, (much - f) // d
            vector = np.eye(1, size, what, dtype=np.int64)[0] if own else self.matrix[what - size]
            found, divided = found + sign * gain * vector, divided + sign * times_divided * vector
            right, step = right + sign * gain * limit, step + sign * times_divided * limit
            up, first = sign < 0, self.closing.limits
            gains.append((self.limit(first, what, up=up) if own else self.row(what - size, up=up), gain, f))
        shared = int(np.gcd.reduce(found))
        terms, sides = self._columns(cut.coefficients), self._columns(divided)
        most_so = self.derived.assumed({at: -times for at, times in sides.items()}, -step)
        or_more = self.derived.assumed(sides, step + 1)
        lines = []
        for side, weight in ((most_so, scale * (d - left)), (or_more, -scale * left)):
            times = _together([((side, 1), abs(weight) * d), *((why, gain - weight * f) for why, gain, f in gains)])
            reason = "rnd" if right % shared else "lin"
            lines.append(
                self.derived.add(Line(terms, cut.least, reason, {ref: n / shared for ref, n in times.items()}))
            )
        return self.derived.add(Line(terms, cut.least, "uns", cases=(lines[0], most_so, lines[1], or_more)))

    def _measured(self, cut: Cutting) -> list[Measured]:
        """What the cut's multipliers sum up: variables and rows, each from the limit that the vertex is nearer to."""
        y = {int(cut.rows[at]): int(cut.whole[at]) for at in np.flatnonzero(cut.whole)}
        sums = sum((times * self.matrix[row] for row, times in y.items()), np.zeros(len(self.cost), np.int64))
        value = dict(zip(cut.rows.tolist(), cut.sums.tolist(), strict=True))
        limits = self.closing.limits
        some = [
            (at, int(sums[at]), cut.x[at], limits.lower[at], limits.upper[at]) for at in np.flatnonzero(sums).tolist()
        ]
        some += [(len(sums) + row, -times, value[row], self.low[row], self.high[row]) for row, times in y.items()]
        found = []
        for what, times, at, low, high in some:
            above = high < UNLIMITED and (low <= -UNLIMITED or float(high) - at < at - float(low))
            sign = -1 if above else 1
            found.append(Measured(what, sign * times, sign, int(high if above else low)))
        return found


def _side(limits: Limits, column: int, *, up: bool) -> int:
    return int((limits.upper if up else limits.lower)[column])


def _together(parts: Iterable[tuple[Known, Fraction]]) -> dict[Ref, Fraction]:
    """How often each row or line is taken in all."""
    times: dict[Ref, Fraction] = {}
    for known, much in parts:
        if known is not None:
            times[known[0]] = times.get(known[0], Fraction(0)) + known[1] * much
    return {ref: much for ref, much in times.items() if much}
