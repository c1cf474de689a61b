"""Is it certain? Turns what an engine claims into what holds, by rational arithmetic.

Any multipliers y of the rows give a valid lower bound: for every x that fits,
cost.x = y.(A x) + (cost - y A).x >= sum of the least y_i times row i can be + the least the rest can be.
So the floating-point duals of an engine are rounded to fractions and the bound is computed in integers: rounding can
make it less tight, never wrong.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from glasshouse.errors import GlasshouseBug
from glasshouse.model.records import UNLIMITED, Count
from glasshouse.program.integer import SAFE, IntegerProgram, Outcome, Proof, Solution, Whole, largest

Float = NDArray[np.float64]

# Duals of small programs are mostly small fractions; the last is for those that are not.
DENOMINATORS = (1, 2, 12, 420, 2**20)
_CLOSE = 1e-6  # a dual this near to a fraction is taken to be it
_DOUBLE = 2**53  # integers below this are exact in floating point


FINER = 2**44  # for multipliers of rows with large coefficients


def dual_bound(
    program: IntegerProgram, duals: Float, cost: Count | None = None, wanted: int | None = None
) -> int | None:
    """A number that the cost of no x that fits is below, from any row duals; None when they give none.

    Where it is less than `wanted`, the duals are taken as finer fractions, which takes longer.
    """
    target = program.cost if cost is None else cost
    y = _tame(duals)
    best: int | None = None
    for denominator in DENOMINATORS:
        scaled = y * denominator
        whole = np.rint(scaled)
        meant = not len(y) or bool(np.abs(whole - scaled).max() <= _CLOSE)
        if meant or denominator == DENOMINATORS[-1]:
            found = _bound(program, whole, denominator, target)
            if found is not None:
                best = found if best is None else max(best, found)
                if meant:
                    break
    if wanted is not None and (best is None or best < wanted):
        found = _bound(program, np.rint(y * FINER), FINER, target)
        best = found if best is None or (found is not None and found > best) else best
    return best


def infeasible(program: IntegerProgram, ray: Float) -> bool:
    """Does this combination of rows prove that nothing fits, not even fractions? Its sign and length do not matter."""
    finite = _tame(ray)
    sizes = np.abs(finite)
    longest = float(sizes.max(initial=0.0))
    if longest < 1e-100:
        return False
    shortest = float(sizes[sizes > 1e-9 * longest].min())
    nothing = np.zeros_like(program.cost)
    for unit in (shortest, -shortest, longest, -longest):  # in units of one of its terms a ray is often whole
        found = dual_bound(program, finite / unit, nothing)
        if found is not None and found > 0:
            return True
    return False


def _tame(values: Float) -> Float:
    """The values without what no engine should say: any multipliers are valid, so changing some is allowed."""
    if len(values) and not np.abs(values).max() < 1e30:  # true for NaN too
        return np.where(np.abs(values) < 1e30, values, 0.0)
    return np.asarray(values, np.float64)


def within(program: IntegerProgram, duals: Float, most: int, divisor: int = 2**20) -> tuple[Count, Count]:
    """Limits of the variables that every x keeps to that fits and costs at most so much, from any row duals."""
    lower, upper = program.lower.copy(), program.upper.copy()
    parts = _parts(program, np.rint(_tame(duals) * divisor), divisor, program.cost)
    if parts is None:
        return lower, upper
    total, rest = parts
    room = divisor * most - total
    if rest.dtype != object and abs(room) < SAFE:
        steps = np.maximum(room // np.where(rest == 0, 1, np.abs(rest)), -1)
        fewer, more = (rest > 0) & (lower > -UNLIMITED), (rest < 0) & (upper < UNLIMITED)
        upper[fewer] = np.minimum(upper, lower + steps)[fewer]
        lower[more] = np.maximum(lower, program.upper - steps)[more]
        return lower, upper
    for at in np.flatnonzero(rest):
        price = int(rest[at])
        if price > 0 and lower[at] > -UNLIMITED:
            upper[at] = min(int(upper[at]), int(lower[at]) + max(room // price, -1))
        elif price < 0 and upper[at] < UNLIMITED:
            lower[at] = max(int(lower[at]), int(program.upper[at]) - max(room // -price, -1))
    return lower, upper


def _bound(program: IntegerProgram, multipliers: Float, denominator: int, cost: Count) -> int | None:
    """The bound of the duals multipliers / denominator, rounded up, as every cost is whole."""
    parts = _parts(program, multipliers, denominator, cost)
    return None if parts is None else -(-parts[0] // denominator)


def _parts(program: IntegerProgram, multipliers: Float, denominator: int, cost: Count) -> tuple[int, Whole] | None:
    """The bound times the denominator, and what the multipliers leave of the cost of each variable; None: no bound."""
    usable = np.where(multipliers > 0, program.row_lower > -UNLIMITED, program.row_upper < UNLIMITED)
    kept = np.where(usable, multipliers, 0.0)
    size = float(np.abs(kept).max()) if len(kept) else 0.0
    combined = size * max(program.largest_coefficient * len(program.index), 1)  # no combination of rows is larger
    dearest = program.largest_cost if cost is program.cost else largest(cost)
    fast = combined < _DOUBLE and denominator * dearest < SAFE / 2
    y: Whole = kept.astype(np.int64) if fast else _python_integers(kept)
    rest = denominator * (cost if fast else cost.astype(object)) - _combined(program, y)
    up, down = rest > 0, rest < 0
    lower, upper = program.lower, program.upper
    if (up & (lower <= -UNLIMITED)).any() or (down & (upper >= UNLIMITED)).any():
        lower, upper = program.implied
        if (up & (lower <= -UNLIMITED)).any() or (down & (upper >= UNLIMITED)).any():
            return None
    sides = np.where(up, lower, upper)
    rows = np.where(y > 0, program.row_lower, program.row_upper)
    if fast and np.abs(rest.astype(np.float64)) @ np.abs(sides) + np.abs(kept) @ np.abs(rows) < SAFE / 2:
        return int(y @ rows) + int(rest @ sides), rest
    total = sum(a * b for a, b in zip(y.tolist(), rows.tolist(), strict=True))
    total += sum(a * b for a, b in zip(rest.tolist(), sides.tolist(), strict=True))
    return total, rest


def _combined(program: IntegerProgram, y: Whole) -> Whole:
    """y A, exactly: in floating point where every sum is below 2**53, else in Python's integers."""
    if y.dtype != object:
        terms = (y[program.row_of] * program.coefficient).astype(np.float64)
        return np.bincount(program.index, terms, len(program.cost)).astype(np.int64)
    sums = np.zeros(len(program.cost), object)
    np.add.at(sums, program.index, y[program.row_of] * program.coefficient.astype(object))
    return sums


def _python_integers(values: Float) -> Whole:
    whole = np.empty(len(values), object)
    whole[:] = [int(value) for value in values]
    return whole


def certified(program: IntegerProgram, solution: Solution) -> Solution:
    """The solution, exact where its x costs no more than its floor; a contradiction between the two is our bug."""
    if solution.x is None:
        return solution
    value = program.value(solution.x)
    if solution.floor is None or value > solution.floor:
        return solution
    if value < solution.floor:
        raise GlasshouseBug(f"an x costs {value}, below the proven floor {solution.floor}; please report the program")
    return replace(solution, outcome=Outcome.OPTIMAL, bound=value, proof=Proof.EXACT, clock=False)
