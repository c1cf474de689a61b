"""The program of appendix E of Steed, Qing and Wu (paper 004): one integer variable for every household of a block.

For household i: p_i persons, c_i of them under 18, r_i^j (does somebody of origin and race j live there?) and, where it
is subsidised, b_i^k (has its home k bedrooms?). What is written as an indicator or a product is made linear, as tightly
as we can: I(p_i = x) are binaries of which just one is 1, and b_i^1 I(p_i > 2) = 0 is b_i^1 + I(p_i > 2) <= 1.

What is printed is not quite what is meant: the product of r_i^j over Hispanic j would ask for a person of every race in
one household; "any person of Hispanic origin", as the text has it, is a binary that is at most their sum. A property
publishes one number of Asians and Pacific Islanders, so that is a binary of the same sort.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from benchmarks.peers import INFINITY, Ints, Model, highs
from glasshouse.attack.occupancy.detect import Answer
from glasshouse.attack.occupancy.kinds import Block
from glasshouse.model.records import UNLIMITED
from glasshouse.scenarios.occupancy import Statement

CLOCK = time.process_time
TOP = 7  # persons: so many and more are one size of H13
MOST_IN = (2, 4)  # persons in a home of 0 or 1 bedroom, and of 2; of 3 and more nobody can tell
PEOPLE = [(origin, race) for origin in (1, 2) for race in range(1, 8)]  # J: levels of THHSPAN and THHRACE

Terms = Sequence[tuple[Ints, int]]  # columns, one a household, and the coefficient that all have


class Decided(NamedTuple):
    """Seconds of the solver, what they say of the block (None if it did not end), and how often it was asked."""

    seconds: float
    answer: Answer | None
    solves: int


class _Linear:
    """Columns and rows of a model, a column or row a household at a time."""

    def __init__(self) -> None:
        self.upper: list[Ints] = []
        self.columns = 0
        self.entries: list[tuple[Ints, Ints, Ints]] = []
        self.limits: list[Ints] = []
        self.rows = 0

    def new(self, count: int, most: int) -> Ints:
        """Columns from 0 to `most`."""
        self.upper.append(np.full(count, most))
        self.columns += count
        return np.arange(self.columns - count, self.columns)

    def each(self, terms: Terms, least: float = -INFINITY, most: float = INFINITY) -> None:
        """A row for each household: the sum of its terms."""
        count = len(terms[0][0])
        for columns, value in terms:
            self.entries.append((self.rows + np.arange(count), columns, np.full(count, value)))
        self._limit(count, least, most)

    def total(self, columns: Ints, least: float, most: float) -> None:
        """One row: the sum over households."""
        self.entries.append((np.full(len(columns), self.rows), columns, np.ones(len(columns), np.int64)))
        self._limit(1, least, most)

    def _limit(self, count: int, least: float, most: float) -> None:
        self.limits.append(np.tile([least, most], (count, 1)))
        self.rows += count

    def model(self, rows: int) -> Model:
        """The first so many rows; nothing costs anything."""
        row, column, value = (np.concatenate(some) for some in zip(*self.entries, strict=True))
        kept = row < rows
        limits = np.concatenate(self.limits)[:rows]
        upper = np.concatenate(self.upper).astype(np.float64)
        entries = (row[kept], column[kept], value[kept].astype(np.float64))
        return Model.of(np.zeros(self.columns), upper, (limits[:, 0].copy(), limits[:, 1].copy()), entries)


class PerHousehold:
    """The programs of one block, with the rule and without; `block` has the numbers of the statements.

    With `ordered`, households stand in the order of their size, the subsidised and the others each. The appendix leaves
    the order free, so that a solver meets the same households in every order.
    """

    def __init__(self, statements: Sequence[Statement], block: Block, *, ordered: bool = False) -> None:
        ends = zip(block.lower.tolist(), block.upper.tolist(), strict=True)
        known = {
            one.name: (low, INFINITY if high >= UNLIMITED else high)
            for one, (low, high) in zip(statements, ends, strict=True)
        }
        n, inside, persons = block.households, slice(block.subsidised), max(known["P0010001"][0], TOP)
        made = _Linear()
        p, c = made.new(n, persons), made.new(n, persons)
        size = [made.new(n, 1) for _ in range(TOP + 1)]  # I(p = x), and at last I(p >= 7)
        beyond = made.new(n, persons - TOP)
        child = made.new(n, 1)  # I(c > 0)
        b = [made.new(block.subsidised, 1) for _ in range(3)]
        r = {who: made.new(n, 1) for who in PEOPLE}
        made.each([(one, 1) for one in size], 1, 1)
        made.each([(p, 1), (beyond, -1), *((one, -x) for x, one in enumerate(size) if x)], 0, 0)
        made.each([(beyond, 1), (size[TOP], TOP - persons)], most=0)
        made.each([(c, 1), (p, -1)], most=0)
        made.each([(c, 1), (child, -1)], least=0)
        made.each([(c, 1), (child, -persons)], most=0)
        made.each([(one, 1) for one in b], 1, 1)
        sums = {f"H013000{x + 1}": size[x] for x in range(1, TOP)}
        sums |= {"P0010001": p, "P0160002": c, "people": p[inside], "children": child[inside]}
        sums |= {f"bed{k + 1}": one for k, one in enumerate(b)}
        for statement in statements:
            if statement.name not in sums:
                sums[statement.name] = _present(made, statement, r, inside)
            made.total(sums[statement.name], *known[statement.name])
        if ordered:
            for some in (p[inside], p[block.subsidised :]):
                made.each([(some[:-1], 1), (some[1:], -1)], least=0)
        without = made.rows
        for most, one in zip(MOST_IN, b, strict=False):
            made.each([(one, 1), *((at[inside], 1) for at in size[most + 1 :])], most=1)
        self.with_rule, self.without = made.model(made.rows), made.model(without)

    def decide(self, cap: float) -> Decided:
        """Equation 1: does anything fit without a violation? If not: does anything fit at all?"""
        spent = 0.0
        for solves, model in enumerate((self.with_rule, self.without), start=1):
            began = CLOCK()
            _, outcome, _ = highs(model, cap)
            spent += cap if outcome == "timeout" else CLOCK() - began
            if outcome == "timeout":
                return Decided(spent, None, solves)
            if outcome == "solved":
                return Decided(spent, Answer.OPEN if solves == 1 else Answer.CERTAIN, solves)
        return Decided(spent, Answer.CONTRADICTION, solves)


def _present(made: _Linear, statement: Statement, r: dict[tuple[int, int], Ints], inside: slice) -> Ints:
    """Columns that say whether somebody whom a statement counts lives in a household."""
    (predicate,) = statement.adds
    levels = predicate.by_attribute
    named = product(levels.get("THHSPAN", (1, 2)), levels.get("THHRACE", range(1, 8)))
    some = [r[who][inside] if statement.of_property else r[who] for who in named]
    if len(some) == 1:
        return some[0]
    anybody = made.new(len(some[0]), 1)
    made.each([(anybody, 1), *((one, -1) for one in some)], most=0)
    return anybody
