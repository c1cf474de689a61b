"""Is there nothing cheaper? A proof of our own: cuts until the relaxation's bound is met, then cases.

Cuts (`cuts`) are inequalities in whole numbers that follow from the rows. Cases are limits of one variable: at most k,
or k + 1 and more; every whole solution is in one of the two. Each case ends with a bound in rational arithmetic that no
solution in it is below, or with multipliers that show that nothing fits. Floating point only proposes. Only what is
cheaper than the best x is looked for, so limits that all such x keep to are taken at once, and cuts rest on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from glasshouse.model.records import UNLIMITED, Count
from glasshouse.program.certainty.cuts import LARGEST, REACH, Cuts, Rows, cuts, wholes
from glasshouse.program.certainty.mixing import Mixing
from glasshouse.program.certainty.prove import dual_bound, infeasible, within
from glasshouse.program.highs import Growing, Relaxation, highs
from glasshouse.program.integer import IntegerProgram, Limit, Outcome, Proof, Solution, largest

ROUNDS = 40  # of cuts
EACH = 100  # cuts of a round
PARALLEL = 0.9  # a cut that is nearly another one is left out
VIOLATED = 1e-3  # a cut that is hardly violated is left out
STALLED = 4  # rounds that gain next to nothing, after which cases are better
CASES = 20_000_000  # a unit of effort, divided by the size of the program
SIZE_OF_CASE = 300
NEARBY = 0.02  # of the effort, to look for a better x near the best one
AGAIN = 3  # times at most, before cases
NEARBY_AT = (30, 120, 480)  # cases, at whose vertices it is looked for again
ENOUGH, HOPE = 1000, 30  # relaxations after which it is foreseen how many more; given up beyond so many times the limit
ENTRIES = 2_000_000  # of a matrix; larger programs are not tried
RELIABLE, LOOKED = 1, 8  # what a variable brings is known after so many cuts; so many are tried at once
WHOLE = 1e-6
Float = NDArray[np.float64]


def closed(program: IntegerProgram, x: Count | None, floor: int | None, limit: Limit) -> Solution:
    """Prove that nothing is cheaper than x (without one: that nothing fits), or find something; else the best floor."""
    if len(program.row_lower) * len(program.cost) > ENTRIES or limit.allows_nothing or _too_large(program):
        return Solution(Outcome.STOPPED if x is None else Outcome.FEASIBLE, x, floor, floor)
    return Closing(program, x, floor, limit).solution()


def _too_large(program: IntegerProgram) -> bool:
    """Are there numbers that floating point, or the sums here, could not hold?"""
    return (
        max(program.largest_cost, program.largest_coefficient) >= LARGEST
        or largest(program.lower) >= REACH
        or largest(program.upper) >= REACH
    )


@dataclass(frozen=True, eq=False)
class Limits:
    """Limits of the variables; of a case, those before, and the variable that is at most a number, or at least."""

    lower: Count
    upper: Count
    before: Limits | None = None
    at: int = -1
    up: bool = False


class Cutting(NamedTuple):
    """Why a cut holds: multipliers of rows, what they are divided by, and the vertex that it was to break."""

    whole: NDArray[np.int64]
    divisor: int
    rows: Count
    x: Float
    sums: Float
    coefficients: Count
    least: int


@dataclass
class Closing:
    """What is known of a program on the way: the best x, a floor of all costs, and, if it `keeps` that, the proof.

    Rows are numbered: those of the program, then cuts in the order in which they were made. A proof that is kept takes
    no limits of what is cheaper than the best x: each would be a line as long as a case, and saves hardly any.
    """

    program: IntegerProgram
    x: Count | None
    floor: int | None
    limit: Limit
    rows: Rows = field(init=False)
    engine: Growing = field(init=False)
    value: int = UNLIMITED  # only what costs less is looked for: than x, where there is one
    keeps: bool = False
    whole: IntegerProgram | None = None  # with all cuts
    made: list[Cutting] = field(default_factory=list)
    # of limits, the two cases that they were divided into, or the multipliers, of which rows, that end them
    tree: dict[Limits, tuple[Limits, Limits] | tuple[Float, Count]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.rows, self.engine = Rows.of(self.program), Growing(self.program, self.limit)
        self.numbers = np.arange(len(self.rows.lower))  # of the rows
        self.mixing = Mixing(self.rows)
        self.value = self.value if self.x is None else self.program.value(self.x)
        self.first = self.limits = Limits(self.program.lower, self.program.upper)  # of all that is cheaper than x
        self.size = SIZE_OF_CASE + len(self.program.index) + len(self.program.cost)

    def solution(self) -> Solution:
        through = self.cut()
        for _ in range(AGAIN):
            if through or not self._nearby():
                break
            through = self.cut()
        through = through or self._cases()
        if self.x is None:
            if through:
                return Solution(Outcome.INFEASIBLE, proof=Proof.EXACT)
            return Solution(Outcome.STOPPED, clock=self.engine.late)
        if through:
            return Solution(Outcome.OPTIMAL, self.x, self.value, self.value, Proof.EXACT)
        return Solution(Outcome.FEASIBLE, self.x, self.floor, self.floor, clock=self.engine.late)

    def cut(self) -> bool:
        """Add cuts, round by round; True: nothing is cheaper."""
        given, before, stalled = len(self.program.row_lower), -np.inf, 0
        for _ in range(ROUNDS):
            relaxed = self.engine.relax()
            if relaxed.x is None or relaxed.duals is None or self.engine.late:
                return False  # if nothing fits, or nothing is cheaper, that is the first case
            cost = float(self.program.cost @ relaxed.x)
            self._meet(relaxed.x)
            if self._at_least(relaxed.duals, self.limits):
                return True
            if self._narrow(relaxed.duals):
                continue
            stalled = stalled + 1 if cost < before + 0.01 else 0
            before = max(before, cost)
            if stalled > STALLED:
                break
            sums = self.rows.matrix @ relaxed.x
            found, why = self._violated(relaxed.x, sums)
            if not why:
                break
            slack = (np.arange(len(sums)) >= given) & (sums - self.rows.lower > WHOLE)
            if slack.any():
                self.engine.drop(np.flatnonzero(slack))
                self.rows.keep(~slack)
                self.numbers = self.numbers[~slack]
            self._take(found, why)
        return False

    def _nearby(self, vertex: Float | None = None) -> bool:
        """Look for a better x between the best one and a vertex: where the two agree it stays. Is one found?

        Of some hundred variables a few dozen are left, and with cuts the vertex is near the best x of all.
        """
        at = self.engine.relax().x if vertex is None else vertex
        if self.x is None or at is None:
            return False
        apart, before = np.abs(at - self.x) > WHOLE, self.value
        lower, upper = (np.where(apart, side, self.x) for side in (self.program.lower, self.program.upper))
        few = replace(self.program, lower=lower, upper=upper, known=self.x)
        self._meet(highs(few, replace(self.limit, effort=self.limit.effort * NEARBY)).x)
        return self.value < before

    def _take(self, found: Cuts, why: Sequence[Cutting]) -> None:
        """Add cuts to the rows."""
        self.engine.add(found.coefficients, found.least)
        self.rows.add(found.coefficients, found.least)
        first = len(self.program.row_lower) + len(self.made)
        self.numbers = np.concatenate([self.numbers, np.arange(first, first + len(why))])
        self.made += why
        self.whole = None

    def _narrow(self, duals: Float) -> bool:
        """Take the limits of all that is cheaper than the best x. Does a variable have fewer values now?"""
        if self.keeps:
            return False
        limits = self._narrowed(self.limits, duals)
        narrower = int((limits.lower > self.limits.lower).sum() + (limits.upper < self.limits.upper).sum())
        if not narrower or (limits.lower > limits.upper).any():
            return False  # that nothing is cheaper is shown by a bound
        self.limits = limits
        self.engine.limit_to(limits.lower, limits.upper)
        return True

    def _narrowed(self, limits: Limits, duals: Float) -> Limits:
        lower, upper = within(self._within(limits), duals, self.value - 1)
        return Limits(lower, upper)

    def _violated(self, x: Float, sums: Float) -> tuple[Cuts, list[Cutting]]:
        """The cuts that x breaks most, without those that are nearly alike."""
        multipliers, divisors = (
            np.concatenate(two) for two in zip(self._mixed(x), self._of_vertex(x, sums), strict=True)
        )
        found = cuts(self.rows, self.limits.lower, self.limits.upper, x, multipliers, divisors)
        order = np.argsort(-found.depth, kind="stable")
        order = order[found.depth[order] > VIOLATED]
        directions = np.empty((EACH, len(x)))
        chosen: list[int] = []
        for number in map(int, order):
            direction = found.coefficients[number].astype(np.float64)
            direction /= np.sqrt(direction @ direction)
            if np.abs(directions[: len(chosen)] @ direction).max(initial=0) < PARALLEL:
                directions[len(chosen)] = direction
                chosen.append(number)
            if len(chosen) == EACH:
                break
        taken = Cuts(found.coefficients[chosen], found.least[chosen], found.depth[chosen])
        return taken, [
            Cutting(whole, divisor, self.numbers, x, sums, coefficients, int(least))
            for whole, divisor, coefficients, least in zip(
                multipliers[chosen], divisors[chosen].tolist(), taken.coefficients, taken.least, strict=True
            )
        ]

    def _mixed(self, x: Float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Multipliers of rows, and what they are divided by: of few rows at a time."""
        multipliers, divisors = self.mixing.proposed(self.limits.lower, self.limits.upper, x)
        cuts_below = np.zeros((len(multipliers), len(self.rows.lower) - multipliers.shape[1]), np.int64)
        return np.concatenate([multipliers, cuts_below], axis=1), divisors

    def _of_vertex(self, x: Float, sums: Float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Multipliers of rows, and what they are divided by: those that leave one of the vertex's basics alone."""
        basics = self.engine.basics()
        own = basics >= 0
        values = np.where(own, x[np.where(own, basics, 0)], sums[np.where(own, 0, -1 - basics)])
        found = [
            self.engine.multipliers(int(number)) for number in np.flatnonzero(np.abs(values - np.rint(values)) >= 1e-4)
        ]
        return wholes(np.array([one for one in found if one is not None]).reshape(-1, len(sums)))

    def _cases(self) -> bool:
        """Go through all cases, depth first; True: nothing is cheaper in any of them."""
        most = left = int(self.limit.effort * CASES / self.size)
        gains, seen = _Gains(len(self.program.cost)), 0
        open_ = [_Case(self.limits)]
        while open_:
            closed_share = 1 - sum(case.share for case in open_)
            used = most - left
            if left <= 0 or (used > ENOUGH and closed_share * most * HOPE < used):
                return False  # or, as far as can be foreseen, it would take several times as long as allowed
            left -= 1
            case = open_.pop()
            self.engine.limit_to(case.limits.lower, case.limits.upper)
            relaxed = self.engine.relax()
            if self.engine.late:
                return False
            if relaxed.x is None:
                if not self._empty(relaxed, case.limits):
                    return False
                continue
            cost = float(self.program.cost @ relaxed.x)
            gains.learn(case, cost)
            self._meet(relaxed.x)
            if relaxed.duals is None:
                return False
            if cost > self.value - 1 + WHOLE and self._at_least(relaxed.duals, case.limits):
                continue
            seen += 1
            if seen in NEARBY_AT:
                self._nearby(relaxed.x)
            given = case.limits
            if not self.keeps:
                narrowed = self._narrowed(given, relaxed.duals)
                if (narrowed.lower <= narrowed.upper).all():  # of all that is cheaper than the best x
                    case = replace(case, limits=narrowed)
            left -= self._look(gains, relaxed.x, case, cost)
            at = gains.pick(relaxed.x, case)
            if at is None:
                return False  # a whole vertex whose bound the multipliers do not show
            halves = case.cut_at(at, relaxed.x, cost)
            self._conclude(given, (halves[0].limits, halves[1].limits))
            open_ += halves
        return True

    def _look(self, gains: _Gains, x: Float, case: _Case, cost: float) -> int:
        """Learn what cutting variables brings of which nothing is known yet; how many cases that took."""
        looked = 0
        for at in gains.unknown(x):
            for half in case.cut_at(int(at), x, cost):
                self.engine.limit_to(half.limits.lower, half.limits.upper)
                relaxed = self.engine.relax()
                far = max(float(self.value), cost + 1.0) if self.x is not None else cost + 1.0
                gains.learn(half, far if relaxed.x is None else float(self.program.cost @ relaxed.x))
                looked += 1
        return looked

    def _empty(self, relaxed: Relaxation, limits: Limits) -> bool:
        """Is it proved that nothing fits within these limits: by one row alone, or by multipliers?"""
        up, down = np.maximum(self.rows.matrix, 0), np.minimum(self.rows.matrix, 0)
        least, most = up @ limits.lower + down @ limits.upper, up @ limits.upper + down @ limits.lower
        alone = (least > self.rows.upper).astype(np.float64) - (most < self.rows.lower)
        if alone.any():
            one = np.zeros_like(alone)
            one[np.flatnonzero(alone)[0]] = -alone[np.flatnonzero(alone)[0]]
            self._conclude(limits, (one, self.numbers))
            return True
        if relaxed.duals is None or not infeasible(self._within(limits), relaxed.duals):
            return False
        self._conclude(limits, (relaxed.duals, self.numbers))
        return True

    def _within(self, limits: Limits) -> IntegerProgram:
        """All rows and cuts, with these limits of the variables."""
        if self.whole is None:
            self.whole = self.rows.program(self.program.cost, limits.lower, limits.upper)
        return replace(self.whole, lower=limits.lower, upper=limits.upper)

    def _at_least(self, duals: Float, limits: Limits) -> bool:
        """Is it proved that nothing within these limits is cheaper than the best x?"""
        found = dual_bound(self._within(limits), duals, wanted=self.value)
        if limits is self.limits and found is not None and (self.floor is None or found > self.floor):
            self.floor = min(found, self.value)
        if found is None or found < self.value:
            return False
        self._conclude(limits, (duals, self.numbers))
        return True

    def _conclude(self, limits: Limits, why: tuple[Limits, Limits] | tuple[Float, Count]) -> None:
        if self.keeps:
            self.tree[limits] = why

    def _meet(self, x: Float | Count | None) -> None:
        """Take a whole x that is cheaper."""
        if x is None:
            return
        whole = np.rint(x)
        if np.abs(whole - x).max(initial=0) < WHOLE:
            found = whole.astype(np.int64)
            if self.program.fits(found) and self.program.value(found) < self.value:
                self.x, self.value = found, self.program.value(found)


@dataclass(frozen=True, eq=False)
class _Case:
    """Limits of the variables; how far the one was cut that was cut last, and what the relaxation cost."""

    limits: Limits
    step: float = 1.0
    cost: float = 0.0
    share: float = 1.0  # of all cases, each half being as much as the other

    def cut_at(self, at: int, x: Float, cost: float) -> tuple[_Case, _Case]:
        """The two cases of a variable: up to what it has, or more."""
        below, given = int(np.floor(x[at])), self.limits
        if below >= given.upper[at]:
            below -= 1
        lower, upper = given.lower.copy(), given.upper.copy()
        lower[at], upper[at] = below + 1, below
        more = Limits(lower, given.upper, given, at=at, up=True)
        fewer = Limits(given.lower, upper, given, at=at)
        return (
            _Case(more, max(below + 1 - float(x[at]), WHOLE), cost, self.share / 2),
            _Case(fewer, max(float(x[at]) - below, WHOLE), cost, self.share / 2),
        )


class _Gains:
    """By how much the bound rose when a variable was cut, on average, for each unit."""

    def __init__(self, count: int) -> None:
        self.sums, self.times = np.zeros((2, count)), np.zeros((2, count))

    def learn(self, case: _Case, cost: float) -> None:
        at, side = case.limits.at, int(case.limits.up)
        if at >= 0:
            self.sums[side, at] += max(cost - case.cost, 0.0) / case.step
            self.times[side, at] += 1

    def unknown(self, x: Float) -> NDArray[np.int64]:
        """A few variables, least whole first, that were hardly cut yet."""
        part = np.abs(x - np.rint(x))
        some = np.flatnonzero((part > WHOLE) & (self.times.min(axis=0) < RELIABLE))
        return some[np.argsort(-part[some], kind="stable")[:LOOKED]]

    def pick(self, x: Float, case: _Case) -> int | None:
        """The variable whose two cases promise most; with none that is not whole, any that is open."""
        part = x - np.floor(x)
        some = np.flatnonzero((part > WHOLE) & (part < 1 - WHOLE))
        if not len(some):
            wide = np.flatnonzero(case.limits.lower < case.limits.upper)
            return int(wide[0]) if len(wide) else None
        usual = self.sums.sum(axis=1) / np.maximum(self.times.sum(axis=1), 1)
        usual[self.times.sum(axis=1) == 0] = 1.0
        rise = np.where(self.times > 0, self.sums / np.maximum(self.times, 1), usual[:, None])[:, some]
        promise = np.maximum(rise[1] * (1 - part[some]), WHOLE) * np.maximum(rise[0] * part[some], WHOLE)
        return int(some[promise.argmax()])
