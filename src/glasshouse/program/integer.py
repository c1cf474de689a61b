"""What is an integer program, and what is an answer to one? Arrays of integers in, a frozen solution out.

A solver is a callable `(program, limit) -> solution`. Why it stopped (`Outcome`) is kept apart from how sure we are
(`Proof`), and every x that leaves a solver has passed `program.fits`, which counts in integers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from glasshouse.errors import GlasshouseBug, InputError
from glasshouse.model.records import UNLIMITED, Count, Index

if TYPE_CHECKING:
    from scipy import sparse

Whole = NDArray[Any]  # whole numbers: int64, or Python's own where those could overflow

SAFE = 2**62  # sums below this stay inside int64, with room for one more addition
STRIDE = 10**6  # the longest step looked for in a direction in which a program falls without end
_ROUNDS = 8  # of passing limits from row to row before giving up on an unlimited variable


class Outcome(StrEnum):
    """Why a solver stopped."""

    OPTIMAL = "optimal"  # it claims that no x is cheaper
    FEASIBLE = "feasible"  # it holds an x, perhaps not the cheapest
    INFEASIBLE = "infeasible"  # it claims that no x fits
    STOPPED = "stopped"  # it holds nothing and claims nothing


class Proof(StrEnum):
    """How sure we are of an outcome that claims something."""

    EXACT = "exact"  # checked in rational arithmetic
    TWO_ENGINES = "two-engines"  # two independent engines agree
    UNDECIDED = "undecided"  # one engine says so


class Unbounded(InputError):  # noqa: N818  # the program is unbounded; "error" would say no more
    """The cost can fall without end: something that should be limited is not."""


@dataclass(frozen=True)
class Limit:
    """How much work a solver may do: `effort` is the same on every machine, `seconds` is not and is never final."""

    effort: float = 10.0  # about a second of solver work each
    seconds: float | None = None
    branches: bool = True  # False: stop at the relaxation, and say what it knows

    def __post_init__(self) -> None:
        if isnan(self.effort) or (self.seconds is not None and isnan(self.seconds)):
            raise InputError(f"a limit must be a number; found effort {self.effort} and seconds {self.seconds}")

    @property
    def allows_nothing(self) -> bool:
        return self.effort <= 0 or self.out_of_time

    @property
    def out_of_time(self) -> bool:
        return self.seconds is not None and self.seconds <= 0


@dataclass(frozen=True, eq=False)
class Solution:
    """What a solver found: `floor <= minimum <= value of x`, whatever the engine claims."""

    outcome: Outcome
    x: Count | None = None
    bound: int | None = None  # the engine claims that no x is cheaper than this
    floor: int | None = None  # the same, checked in rational arithmetic
    proof: Proof = Proof.UNDECIDED
    clock: bool = False  # the wall clock stopped it: another run may know more
    duals: NDArray[np.float64] | None = None  # of the rows, at the relaxation: multipliers for a bound, never trusted
    point: NDArray[np.float64] | None = None  # where the relaxation is least, if the engine was told to stop there


@dataclass(frozen=True, eq=False)
class IntegerProgram:
    """Minimise cost.x over integer x with lower <= x <= upper and row_lower <= A x <= row_upper; all data are integers.

    A limit of UNLIMITED above, or -UNLIMITED below, is no limit. Row i of A has the entries starts[i]:starts[i + 1].
    """

    cost: Count
    lower: Count
    upper: Count
    row_lower: Count
    row_upper: Count
    starts: Count
    index: Index  # the variable of each entry; a row names a variable at most once
    coefficient: Count
    known: Count | None = None  # an x that fits, if one is known: engines may start from it

    def __post_init__(self) -> None:
        n, m, entries = len(self.cost), len(self.row_lower), len(self.index)
        sizes = (len(self.lower), len(self.upper), len(self.row_upper), len(self.starts), len(self.coefficient))
        if sizes != (n, n, m, m + 1, entries):
            raise GlasshouseBug(f"a program with {n} costs, {m} rows and {entries} entries has arrays of {sizes}")
        for array in (self.cost, self.lower, self.upper, self.row_lower, self.row_upper, self.coefficient, self.starts):
            if array.dtype != np.int64:
                raise GlasshouseBug(f"a program is made of 64-bit integers; found {array.dtype}")
        if self.index.dtype != np.int32:
            raise GlasshouseBug(f"a program's index is made of 32-bit integers; found {self.index.dtype}")
        if self.starts[0] != 0 or self.starts[-1] != entries or (m and np.diff(self.starts).min() < 0):
            raise GlasshouseBug("the rows of a program do not divide its entries")
        if entries and not (self.index.min() >= 0 and self.index.max() < n):
            raise GlasshouseBug(f"a row names a variable that is not among the {n} of the program")
        if entries:
            keys = np.sort(self.row_of * n + self.index)
            if (keys[1:] == keys[:-1]).any():
                raise GlasshouseBug("a row names a variable twice")
        if self.known is not None and not self.fits(self.known):
            raise GlasshouseBug("the x that a program is said to be known to have does not fit it")
        for limits in (self.lower, self.upper, self.row_lower, self.row_upper):
            if largest(limits) > UNLIMITED:
                raise GlasshouseBug(f"a limit of {largest(limits):,} in a program; beyond {UNLIMITED:,} there is none")

    @staticmethod
    def of_columns(
        columns: sparse.csc_matrix, chosen: Count, cost: Count | None, upper: Count, row_lower: Count, row_upper: Count
    ) -> IntegerProgram:
        """The program of some columns of a matrix, its variables never below 0; costs and limits are by column."""
        rows = columns[:, chosen].tocsr()
        rows.sort_indices()
        zero = np.zeros(len(chosen), np.int64)
        return IntegerProgram(
            zero if cost is None else cost[chosen], zero, upper[chosen], row_lower, row_upper,
            rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data,
        )  # fmt: skip

    @cached_property
    def row_of(self) -> Count:
        """The row of each entry."""
        return np.repeat(np.arange(len(self.row_lower)), np.diff(self.starts))

    @cached_property
    def largest_cost(self) -> int:
        return largest(self.cost)

    @cached_property
    def largest_coefficient(self) -> int:
        return largest(self.coefficient)

    def activity(self, x: Whole) -> Whole:
        """A @ x, exactly."""
        if self.largest_coefficient * largest(x) * len(self.index) < SAFE:
            return self._by_row(self.coefficient * x[self.index])
        return self._by_row(self.coefficient.astype(object) * x.astype(object)[self.index])

    def value(self, x: Whole) -> int:
        """What x costs, exactly."""
        if self.largest_cost * largest(x) * len(x) < SAFE:
            return int(self.cost @ x)
        return int(sum(self.cost.astype(object) * x.astype(object)))

    def fits(self, x: Whole) -> bool:
        """Does x keep to every limit? Counted in integers: there is no tolerance."""
        if x.shape != self.cost.shape or x.dtype.kind not in "iO":
            return False
        return _within(self.lower, x, self.upper) and _within(self.row_lower, self.activity(x), self.row_upper)

    @property
    def contradictory(self) -> bool:
        """Does some limit below exceed its limit above, or is a row of nothing not 0? Then nothing fits."""
        of_nothing = np.diff(self.starts) == 0
        not_zero = of_nothing & ((self.row_lower > 0) | (self.row_upper < 0))
        return bool((self.lower > self.upper).any() or (self.row_lower > self.row_upper).any() or not_zero.any())

    def without_cost(self) -> IntegerProgram:
        """The question whether anything fits."""
        return replace(self, cost=np.zeros_like(self.cost))

    def with_row(self, coefficients: Count, row_lower: int, row_upper: int) -> IntegerProgram:
        """The program with one more row, given densely."""
        (used,) = np.nonzero(coefficients)
        return replace(
            self,
            known=None,
            row_lower=np.append(self.row_lower, row_lower),
            row_upper=np.append(self.row_upper, row_upper),
            starts=np.append(self.starts, self.starts[-1] + len(used)),
            index=np.append(self.index, used.astype(np.int32)),
            coefficient=np.append(self.coefficient, coefficients[used]),
        )

    def only(self, chosen: Count) -> IntegerProgram:
        """The program of some of its variables (ascending), without what the others add to the rows."""
        number = np.full(len(self.cost), -1, np.int64)
        number[chosen] = np.arange(len(chosen))
        kept = number[self.index] >= 0
        return replace(
            self,
            known=None,
            cost=self.cost[chosen],
            lower=self.lower[chosen],
            upper=self.upper[chosen],
            starts=np.concatenate([[0], np.cumsum(kept)])[self.starts],
            index=number[self.index[kept]].astype(np.int32),
            coefficient=self.coefficient[kept],
        )

    @cached_property
    def implied(self) -> tuple[Count, Count]:
        """The limits of the variables, with limits that single rows imply in place of missing ones.

        Whatever fits keeps to them. They may cross, which shows that nothing fits.
        """
        lower, upper = self.lower.copy(), self.upper.copy()
        if self.largest_coefficient * UNLIMITED * (len(self.index) + 1) >= SAFE:
            return lower, upper
        for _ in range(_ROUNDS):
            open_before = _open(lower, upper)
            if not open_before:
                break
            self._tighten(self.coefficient, self.row_upper, lower, upper)
            self._tighten(-self.coefficient, -self.row_lower, lower, upper)
            if _open(lower, upper) == open_before:
                break
        return lower, upper

    def _tighten(self, a: Count, limit: Count, lower: Count, upper: Count) -> None:
        """Give a limit to variables without one, in place, from the rows a.x <= limit."""
        below, above = lower[self.index], upper[self.index]
        least = np.where(a > 0, below, above)
        endless = np.where(a > 0, below <= -UNLIMITED, above >= UNLIMITED) & (a != 0)
        terms = np.where(endless, 0, a * least)
        count = endless.astype(np.int64)
        others = self._by_row(terms)[self.row_of] - terms
        known = (self._by_row(count)[self.row_of] == count) & (limit < UNLIMITED)[self.row_of] & (a != 0)
        room = limit[self.row_of] - others
        for entries, side, missing in (
            (known & (a > 0) & (above >= UNLIMITED), upper, UNLIMITED),
            (known & (a < 0) & (below <= -UNLIMITED), lower, -UNLIMITED),
        ):
            steps = room[entries] // np.abs(a[entries])
            new = np.clip(steps if missing > 0 else -steps, -UNLIMITED, UNLIMITED)
            (np.minimum if missing > 0 else np.maximum).at(side, self.index[entries], new)

    def falling(self) -> IntegerProgram:
        """The program of the directions in which this one falls: any that fits, added again and again, lowers the cost.

        Directions longer than STRIDE are not looked for.
        """
        zero = np.zeros_like(self.cost)
        directions = IntegerProgram(
            zero,
            np.where(self.lower <= -UNLIMITED, -STRIDE, zero),
            np.where(self.upper >= UNLIMITED, STRIDE, zero),
            np.where(self.row_lower <= -UNLIMITED, -UNLIMITED, 0),
            np.where(self.row_upper >= UNLIMITED, UNLIMITED, 0),
            self.starts,
            self.index,
            self.coefficient,
        )
        return directions.with_row(self.cost, -UNLIMITED, -1)

    def _by_row(self, terms: Whole) -> Whole:
        """The sum of the entries of each row."""
        sums = np.zeros(len(terms) + 1, terms.dtype)
        np.cumsum(terms, out=sums[1:])
        return sums[self.starts[1:]] - sums[self.starts[:-1]]


Solver = Callable[[IntegerProgram, Limit], Solution]


def at_once(program: IntegerProgram, limit: Limit) -> Solution | None:
    """The answer that needs no engine, if there is one."""
    if limit.allows_nothing:
        return Solution(Outcome.STOPPED, clock=limit.out_of_time)
    if program.contradictory:
        return Solution(Outcome.INFEASIBLE, proof=Proof.EXACT)
    if len(program.cost) == 0:
        nothing = np.zeros(0, np.int64)
        if program.fits(nothing):
            return Solution(Outcome.OPTIMAL, nothing, 0, 0, Proof.EXACT)
        return Solution(Outcome.INFEASIBLE, proof=Proof.EXACT)
    return None


def refuse_unbounded(start: Solution) -> Solution:
    """Raise when there is a direction in which the cost falls and an x that fits; else say that none was found."""
    if start.x is None:
        return start
    raise Unbounded("the cost of this program falls without end; give every variable that lowers it an upper limit")


def higher(one: int | None, other: int | None) -> int | None:
    """Of two floors, the one that says more."""
    return max((floor for floor in (one, other) if floor is not None), default=None)


def largest(values: Whole) -> int:
    """The largest absolute value, as a number that cannot overflow."""
    return max(int(values.max()), -int(values.min())) if len(values) else 0


def _within(lower: Count, values: Whole, upper: Count) -> bool:
    above = (values >= lower) | (lower <= -UNLIMITED)
    below = (values <= upper) | (upper >= UNLIMITED)
    return bool(above.all() and below.all())


def _open(lower: Count, upper: Count) -> int:
    """How many limits are missing."""
    return int((lower <= -UNLIMITED).sum() + (upper >= UNLIMITED).sum())
