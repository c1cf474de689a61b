"""What does noise on tables cost? Exact prices, and discrete Gaussian noise that is worth them.

Only the lines of a table that are no subtotals get noise; the subtotals are added up afterwards and cost nothing. A
line that costs rho has noise exp(-rho n^2 / d), where d says in how many lines neighbouring data sets differ. A record
is in one line of a table (in a tally, or below an *of which*, in several), so a table costs what its dearest lines
that can count one record cost together. Levels and tables add up. In a table that adds up persons, neighbours differ by
one person, who is in one line.

Two kinds of table cost nothing: one that is published as it is (an invariant, which no account counts), and one whose
numbers are made from those of another table, bottom up.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from glasshouse.errors import InputError
from glasshouse.mechanism.account import Allocation, Ledger
from glasshouse.mechanism.gaussian import DiscreteGaussian, rate_of
from glasshouse.model.records import Count
from glasshouse.model.release import Counts, Line, Table
from glasshouse.model.schema import Predicate, Recode, Schema
from glasshouse.model.tabulate import compile_tables
from glasshouse.scenarios.load import Scenario, strategy_query

Draw = Callable[[DiscreteGaussian, int], NDArray[np.int64]]  # so many noise values
Published = Mapping[str, Sequence[str]]  # the variables of each level
Strategy = tuple[tuple[Recode, ...], Fraction]  # a strategy query and its rho
Wanted = dict[str, "list[Measured]"]  # by level


@dataclass(frozen=True)
class BottomUp:
    """How the total of a table is made from another table: what one record of each of its leaves adds to it."""

    table: Table
    adds: tuple[int, ...]


@dataclass(frozen=True)
class Measured:
    """The lines of a table that get noise at a level, the rho of each, and the price of the table.

    A table that is `held` is published as it is; the total of one `made` from another is not measured.
    """

    level: str
    table: Table
    lines: tuple[Line, ...] = ()
    rho: tuple[Fraction, ...] = ()
    price: Fraction = Fraction(0)
    held: bool = False
    made: BottomUp | None = None

    @property
    def purpose(self) -> str:
        return f"{self.level} {self.table.name}"


@dataclass(frozen=True)
class Plan:
    """Which lines get how much noise, by level; the account, and what nothing in the file asks for."""

    neighbours: str
    ledger: Ledger
    measured: Mapping[str, tuple[Measured, ...]]
    unspent: Mapping[str, Fraction]  # of levels of the allocation that are not in the file

    @property
    def spent(self) -> Fraction:
        return self.ledger.total - self.ledger.left


def plan_evenly(
    scenario: Scenario,
    published: Published,
    rho: Fraction,
    neighbours: str = "add-remove",
    kept: Collection[str] = (),
) -> Plan:
    """The same rho for every table that is measured, at every level where it is published; `kept` variables are not."""
    _refuse_no_rho(rho)
    wanted = _unpriced(scenario, published, kept)
    found = [one for some in wanted.values() for one in some if one.lines]
    share = {one.purpose: rho / len(found) for one in found}
    return _account(scenario, wanted, Ledger(rho), neighbours, share, {})


def plan_by(scenario: Scenario, published: Published, allocation: Allocation, kept: Collection[str] = ()) -> Plan:
    """What an allocation says: for tables by their names, else for strategy queries, by the rule of appendix F.

    An allocation without queries divides each level's share evenly among its tables. Tables that it holds, and those
    of which every number is `kept`, get no noise.
    """
    _refuse_no_rho(allocation.total)
    for level in published:
        if not allocation.levels.get(level):
            raise InputError(
                f"level '{level}' is in the tables and has no share of the allocation '{allocation.name}', which has "
                f"{', '.join(allocation.levels)}; leave its rows out, or use an allocation that has a share for it"
            )
    ledger = Ledger(allocation.total)
    unspent = {level: allocation.rho(level) for level in allocation.levels if level not in published}
    wanted = _unpriced(scenario, published, kept, allocation)
    if not set(allocation.queries) <= set(scenario.by_table).union(scenario.unchosen):
        return _strategy_account(scenario, wanted, ledger, allocation, unspent)
    share: dict[str, Fraction] = {}
    for level, some in wanted.items():
        measured = [one for one in some if one.lines]
        for one in measured:
            price = allocation.rho(level) / len(measured)
            if allocation.queries:
                price = allocation.queries.get(one.table.name, {}).get(level, Fraction(0)) * allocation.rho(level)
            if not price:
                raise InputError(
                    f"table {one.table.name} has no share of the allocation '{allocation.name}' at level {level}; "
                    "give it one, or leave it out (--tables)"
                )
            share[one.purpose] = price
    return _account(scenario, wanted, ledger, allocation.neighbours, share, unspent)


def _unpriced(
    scenario: Scenario, published: Published, kept: Collection[str], allocation: Allocation | None = None
) -> Wanted:
    """What is to be measured at each level, before anything is known of its price."""
    wanted: Wanted = {}
    for level, variables in published.items():
        tables = _tables(scenario, level, variables)
        wanted[level] = []
        for table in tables:
            lines = measured_lines(table, variables)
            if _holds(allocation, table, level) or all(line.variable in kept for line in lines):
                wanted[level].append(Measured(level, table, held=True))
            elif table.bottom_up:
                made = _bottom_up(scenario.schema, table, tables)
                wanted[level].append(Measured(level, table, lines[:-1], made=made))  # the last line is the rest
            else:
                wanted[level].append(Measured(level, table, lines))
    return wanted


def _holds(allocation: Allocation | None, table: Table, level: str) -> bool:
    """Does an allocation give a table no noise at a level? It says from which level up, and has the finest first."""
    if allocation is None or table.name not in allocation.hold:
        return False
    levels = list(allocation.levels)
    return levels.index(level) >= levels.index(allocation.hold[table.name])


def _bottom_up(schema: Schema, table: Table, tables: Sequence[Table]) -> BottomUp:
    """How the total of a table is made: a record adds the least that one of its line can (7 or more persons add 7)."""
    source = next((other for other in tables if other.name == table.bottom_up), None)
    if source is None:
        raise InputError(
            f"table {table.name} is made from {table.bottom_up}, which is not in the tables; add it, or leave "
            f"{table.name} out (--tables)"
        )
    attribute = schema.counting(table.sums)
    adds = []
    for line in source.leaves:
        levels = schema.levels_within(line.predicate & table.universe if line.predicate else table.universe)
        adds.append(min((attribute.numbers[table.sums][level] for level in levels[attribute.name]), default=0))
    return BottomUp(source, tuple(adds))


def _account(
    scenario: Scenario,
    wanted: Wanted,
    ledger: Ledger,
    neighbours: str,
    share: Mapping[str, Fraction],
    unspent: Mapping[str, Fraction],
) -> Plan:
    """Tables of known prices: each of their lines gets as much as lines that can count one record share."""
    measured: dict[str, tuple[Measured, ...]] = {}
    for level, some in wanted.items():
        priced = []
        for one in some:
            if one.lines:
                price = share[one.purpose]
                each = price / lines_of_one_record(scenario.schema, one.table, one.lines)
                ledger.spend(one.purpose, price)
                one = replace(one, rho=(each,) * len(one.lines), price=price)
            priced.append(one)
        measured[level] = tuple(priced)
    return Plan(neighbours, ledger, measured, unspent)


def _strategy_account(
    scenario: Scenario, wanted: Wanted, ledger: Ledger, allocation: Allocation, unspent: Mapping[str, Fraction]
) -> Plan:
    """Lines that get the noise they would have if they were added up from the best strategy query."""
    strategies = {query: strategy_query(scenario, query) for query in allocation.queries}
    measured: dict[str, tuple[Measured, ...]] = {}
    for level, some in wanted.items():
        rhos = [(strategies[query], allocation.rho(level, query)) for query in allocation.queries]
        priced = []
        for one in some:
            if one.lines:
                rho = tuple(_best(scenario.schema, level, rhos, line, allocation.name) for line in one.lines)
                dearest = sorted(rho, reverse=True)[: lines_of_one_record(scenario.schema, one.table, one.lines)]
                one = replace(one, rho=rho, price=sum(dearest, Fraction(0)))
                ledger.spend(one.purpose, one.price)
            priced.append(one)
        measured[level] = tuple(priced)
    return Plan(allocation.neighbours, ledger, measured, unspent)


def _best(schema: Schema, level: str, rhos: Sequence[Strategy], line: Line, allocation: str) -> Fraction:
    if line.predicate is None:
        raise InputError(f"{line.variable} counts answers, not records; no strategy query adds up to it")
    best = share_of(schema, rhos, line.predicate)
    if not best:
        raise InputError(
            f"no query of the allocation '{allocation}' at level {level} adds up to {line.variable} "
            f"({schema.describe(line.predicate)}); add one to it, or leave the table out (--tables)"
        )
    return best


def share_of(schema: Schema, rhos: Iterable[Strategy], predicate: Predicate) -> Fraction:
    """What a count gets of the rho of strategy queries (Steed et al., appendix F): the largest c_i / M_qi.

    M_qi cells of query i, each with noise of variance 1 / (c_i rho), add up to count q: together they have the
    variance of one count with c_i / M_qi. A query from which q cannot be added up gives nothing.
    """
    found = Fraction(0)
    for query, rho in rhos:
        cells = cells_adding_up(schema, query, predicate)
        if cells:
            found = max(found, rho / cells)
    return found


def cells_adding_up(schema: Schema, query: Sequence[Recode], predicate: Predicate) -> int:
    """How many cells of a strategy query add up to a count; 0 if some cell lies across its border.

    Cells are counted as a product; those that no record can be in count too, as in the office's own arithmetic.
    """
    allowed = predicate.by_attribute
    if set(allowed) - {factor.attribute for factor in query}:
        return 0
    cells = 1
    for factor in query:
        groups = [leaf.levels for leaf in factor.leaves]
        wanted = allowed.get(factor.attribute, frozenset(range(len(schema.attribute(factor.attribute)))))
        inside = [levels for levels in groups if levels <= wanted]
        if sum(len(levels) for levels in inside) != len(wanted):
            return 0
        cells *= len(inside)
    return cells


def measured_lines(table: Table, variables: Iterable[str]) -> tuple[Line, ...]:
    """The lines that get noise: every leaf, and what is published *of which*."""
    here = set(variables)
    missing = [line.variable for line in table.leaves if line.variable not in here]
    if missing:
        raise InputError(
            f"table {table.name}: {missing[0]} is not in the tables; totals are added up from noisy parts, so noise "
            "needs every line that is not a total; leave the table out (--tables), or publish it whole"
        )
    return tuple(line for line in table.lines if not line.parts and line.variable in here)


def lines_of_one_record(schema: Schema, table: Table, lines: Sequence[Line]) -> int:
    """The most of these lines that one record can be counted in: 1, but for tallies and *of which*.

    In a table that adds up persons, what can be there or not is a person, who is in one line.
    """
    if table.sums:
        return 1
    alone = replace(table, cells=frozenset(line.number for line in lines))
    return compile_tables(schema, [alone]).most


def add_noise(counts: Counts, measured: Sequence[Measured], neighbours: str, draw: Draw) -> dict[str, Count]:
    """The noisy numbers of a level, a row for each place and a column for each measured line, by table."""
    noisy: dict[str, Count] = {}
    for one in measured:
        truth = counts.lower[:, [counts.column[line.variable] for line in one.lines]]
        noise = np.empty_like(truth)
        for rho in dict.fromkeys(one.rho):  # few are different, and drawn at once
            columns = [column for column, other in enumerate(one.rho) if other == rho]
            drawn = draw(noise_of(rho, neighbours), len(counts.places) * len(columns))
            noise[:, columns] = drawn.reshape(len(counts.places), len(columns))
        noisy[one.table.name] = truth + noise
    return noisy


def noise_of(rho: Fraction, neighbours: str) -> DiscreteGaussian:
    """The noise of a line that costs rho."""
    return DiscreteGaussian(rate_of(float(rho), neighbours))


def _tables(scenario: Scenario, level: str, variables: Sequence[str]) -> tuple[Table, ...]:
    """The tables that have a number at a level."""
    here = set(variables)
    return tuple(table for table in scenario.tables if any(line.variable in here for line in table.lines))


def _refuse_no_rho(rho: Fraction) -> None:
    if rho <= 0:
        raise InputError(f"rho is {rho}; expected more than 0: with none, nothing can be published")
