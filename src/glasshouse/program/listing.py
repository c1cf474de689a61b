"""Which histograms fit, one by one? The cheapest few, or all of them.

Parts are independent, so a list for the whole is made from lists for the parts. A part whose search does not end is
listed by asking for the cheapest, then for the cheapest of what remains: the rest falls into boxes, each of which
agrees with the solution up to some variable and differs in it (Lawler).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count

import numpy as np
from numpy.typing import NDArray

from glasshouse.errors import InputError
from glasshouse.program.answers import minimum, refuse_endless
from glasshouse.program.bounds import linear
from glasshouse.program.integer import Outcome, Proof
from glasshouse.program.ladder import CLIMB, Ladder, weaker
from glasshouse.program.propagate import Array
from glasshouse.program.reduce import Programs, Split, split
from glasshouse.program.search import enumerate_part
from glasshouse.program.tables.histogram import Problem

STEPS_PER_SOLUTION = 50  # of a search that lists solutions, before boxes are tried


@dataclass(frozen=True)
class Listing:
    """Histograms that fit a program, a row each over its variables, cheapest first.

    With `complete` there are no others (or, of the cheapest few, none cheaper). `proof` is of that.
    """

    x: NDArray[np.int64]
    values: Array
    complete: bool
    proof: Proof


def every(problem: Problem, limit: int, number: int = 0, ladder: Ladder = CLIMB) -> Listing:
    """All histograms that fit a program, if there are at most `limit`; otherwise the list is not complete."""
    problem.check(number)
    if limit < 1:
        raise InputError(f"a list of histograms needs room for at least one; found a limit of {limit}")
    zero = np.zeros(len(problem.programs.lower), np.int64)
    found = _listed(problem.split(propagate=ladder.propagate), number, zero, limit + 1, ladder, cheapest=False)
    return replace(
        found, x=found.x[:limit], values=found.values[:limit], complete=found.complete and len(found.x) <= limit
    )


def top(problem: Problem, t: int, cost: Array, number: int = 0, ladder: Ladder = CLIMB) -> Listing:
    """The t cheapest histograms that fit a program; `cost` is per record, by variable of the problem."""
    problem.check(number)
    if t < 1:
        raise InputError(f"ask for at least one histogram; found {t}")
    return _listed(problem.split(propagate=ladder.propagate), number, cost, t, ladder, cheapest=True)


def _listed(whole: Split, number: int, cost: Array, wanted: int, ladder: Ladder, *, cheapest: bool) -> Listing:
    refuse_endless(whole, linear(cost))
    first, last = int(whole.whole.first[number]), int(whole.whole.first[number + 1])
    if whole.impossible[number]:
        return Listing(np.empty((0, last - first), np.int64), np.empty(0, np.int64), True, Proof.EXACT)
    rows = whole.lower[None, first:last].copy()
    base = cost[first:last].copy()
    base[whole.origin[whole.owner[whole.parts.program_of] == number] - first] = 0  # counted with their parts
    values = np.array([int(base @ rows[0])])
    proof, complete = Proof.EXACT, True
    for part in np.flatnonzero(whole.owner == number):
        inside = whole.variables(int(part))
        x, through, sure = _of_part(whole.parts, int(part), cost[inside], wanted, ladder, cheapest=cheapest)
        if through and not len(x):  # nothing fits this part, so nothing fits
            return Listing(np.empty((0, last - first), np.int64), np.empty(0, np.int64), True, sure)
        proof = weaker(proof, sure)
        complete &= through
        rows, values = _combined(rows, values, x, x @ cost[inside], inside - first, wanted)
    return Listing(rows, values, complete, proof)


def _combined(rows: Array, values: Array, x: Array, more: Array, inside: Array, wanted: int) -> tuple[Array, Array]:
    """The cheapest combinations of solutions so far with solutions of one more part; both come in order of cost.

    Number i of one with number j of the other has (i + 1)(j + 1) - 1 others that cost no more, so few pairs matter.
    """
    lengths = np.minimum(wanted // np.arange(1, len(values) + 1), len(more))
    before = np.repeat(np.arange(len(values)), lengths)
    chosen = np.arange(len(before)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    sums = values[before] + more[chosen]
    order = np.argsort(sums, kind="stable")[:wanted]
    longer = rows[before[order]].copy()
    longer[:, inside] = x[chosen[order]]
    return longer, sums[order]


def _of_part(
    parts: Programs, part: int, cost: Array, wanted: int, ladder: Ladder, *, cheapest: bool
) -> tuple[Array, bool, Proof]:
    """Solutions of a part in order of cost: are they all that were wanted, and is that proved?"""
    spread = np.zeros(len(parts.lower), np.int64)
    spread[parts.first[part] : parts.first[part + 1]] = cost
    if ladder.nodes > 0:
        steps = ladder.nodes + STEPS_PER_SOLUTION * wanted
        x, through = enumerate_part(parts, part, wanted, steps, cost=linear(spread) if cheapest else None)
        if through or (not cheapest and len(x) == wanted):
            return x, through, Proof.EXACT
    return _boxes(parts.only(part), cost, wanted, ladder)


def _boxes(program: Programs, cost: Array, wanted: int, ladder: Ladder) -> tuple[Array, bool, Proof]:
    """The cheapest solutions, box by box. What a solver left undecided makes the list undecided."""
    found: list[Array] = []
    proof, ticket = Proof.EXACT, count()
    heap: list[tuple[int, int, Array, Array, Array]] = []

    def add(lower: Array, upper: Array) -> None:
        nonlocal proof
        box = split(replace(program, lower=lower, upper=upper), np.zeros(1, np.bool_), propagate=ladder.propagate)
        answers = minimum(box, linear(cost), ladder)
        proof = weaker(proof, answers.proof[0])
        if answers.outcome[0] in (Outcome.OPTIMAL, Outcome.FEASIBLE):
            heapq.heappush(heap, (int(answers.value[0]), next(ticket), answers.x, lower, upper))

    add(program.lower, program.upper)
    while heap and len(found) < wanted:
        _, _, x, lower, upper = heapq.heappop(heap)
        found.append(x)
        if len(found) == wanted:
            break
        for rest in without(x, lower, upper):
            add(*rest)
    rows = np.array(found, np.int64).reshape(len(found), len(cost))
    return rows, proof != Proof.UNDECIDED, proof


def without(x: Array, lower: Array, upper: Array) -> Iterator[tuple[Array, Array]]:
    """The boxes that a box falls into without x: each agrees with x up to some variable and differs in it (Lawler)."""
    low, high = lower.copy(), upper.copy()
    for variable in np.flatnonzero(lower < upper):
        for side in (-1, 1):
            below, above = low.copy(), high.copy()
            (above if side < 0 else below)[variable] = x[variable] + side
            if below[variable] <= above[variable]:
                yield below, above
        low[variable] = high[variable] = x[variable]
