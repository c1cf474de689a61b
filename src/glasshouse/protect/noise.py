"""What does noise on tables cost, and what is published after it? Exact prices, discrete Gaussian noise, whole counts.

Only the lines of a table that are no subtotals get noise; the subtotals are added up afterwards and cost nothing. A
line that costs rho has noise exp(-rho n^2 / d), where d says in how many lines neighbouring data sets differ. A record
is in one line of a table (in a tally, or below an *of which*, in several), so a table costs what its dearest lines
that can count one record cost together. Levels and tables add up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from glasshouse.errors import InputError, unknown
from glasshouse.mechanism.account import Allocation, Ledger
from glasshouse.mechanism.gaussian import DiscreteGaussian, rate_of
from glasshouse.records import Count
from glasshouse.release import Counts, Line, Table
from glasshouse.scenario import Scenario, strategy_query
from glasshouse.schema import Predicate, Recode, Schema
from glasshouse.tabulate import compile_tables

Draw = Callable[[DiscreteGaussian, int], NDArray[np.int64]]  # so many noise values
Published = Mapping[str, Sequence[str]]  # the variables of each level
Strategy = tuple[tuple[Recode, ...], Fraction]  # a strategy query and its rho


class Afterwards(StrEnum):
    """What happens to noisy counts before they are published."""

    SIMPLE = "simple"  # negatives to 0, whole counts that add up to the invariants
    CLIP = "clip"  # negatives to 0
    NONE = "none"  # nothing: refused where a count is negative


@dataclass(frozen=True)
class Measured:
    """The lines of a table that get noise at a level, the rho of each, and the price of the table."""

    level: str
    table: Table
    lines: tuple[Line, ...]
    rho: tuple[Fraction, ...]
    price: Fraction

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


def plan_evenly(scenario: Scenario, published: Published, rho: Fraction, neighbours: str = "add-remove") -> Plan:
    """The same rho for every table at every level where it is published."""
    _refuse_no_rho(rho)
    found = [(level, table) for level in published for table in _tables(scenario, level, published[level])]
    share = {(level, table.name): rho / len(found) for level, table in found}
    return _account(scenario, published, Ledger(rho), neighbours, share, {})


def plan_by(scenario: Scenario, published: Published, allocation: Allocation) -> Plan:
    """What an allocation says: for tables by their names, else for strategy queries, by the rule of appendix F.

    An allocation without queries divides each level's share evenly among its tables.
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
    if not set(allocation.queries) <= set(scenario.by_table).union(scenario.unchosen):
        return _strategy_account(scenario, published, ledger, allocation, unspent)
    share: dict[tuple[str, str], Fraction] = {}
    for level in published:
        tables = _tables(scenario, level, published[level])
        for table in tables:
            one = allocation.rho(level) / len(tables)
            if allocation.queries:
                one = allocation.queries.get(table.name, {}).get(level, Fraction(0)) * allocation.rho(level)
            if not one:
                raise InputError(
                    f"table {table.name} has no share of the allocation '{allocation.name}' at level {level}; "
                    "give it one, or leave it out (--tables)"
                )
            share[level, table.name] = one
    return _account(scenario, published, ledger, allocation.neighbours, share, unspent)


def _account(
    scenario: Scenario,
    published: Published,
    ledger: Ledger,
    neighbours: str,
    share: Mapping[tuple[str, str], Fraction],
    unspent: Mapping[str, Fraction],
) -> Plan:
    """Tables of known prices: each of their lines gets as much as lines that can count one record share."""
    measured: dict[str, tuple[Measured, ...]] = {}
    for level in published:
        some = []
        for table in _tables(scenario, level, published[level]):
            lines = measured_lines(table, published[level])
            price = share[level, table.name]
            each = price / lines_of_one_record(scenario.schema, table, lines)
            ledger.spend(f"{level} {table.name}", price)
            some.append(Measured(level, table, lines, (each,) * len(lines), price))
        measured[level] = tuple(some)
    return Plan(neighbours, ledger, measured, unspent)


def _strategy_account(
    scenario: Scenario, published: Published, ledger: Ledger, allocation: Allocation, unspent: Mapping[str, Fraction]
) -> Plan:
    """Lines that get the noise they would have if they were added up from the best strategy query."""
    strategies = {query: strategy_query(scenario, query) for query in allocation.queries}
    measured: dict[str, tuple[Measured, ...]] = {}
    for level in published:
        rhos = [(strategies[query], allocation.rho(level, query)) for query in allocation.queries]
        some = []
        for table in _tables(scenario, level, published[level]):
            lines = measured_lines(table, published[level])
            rho = tuple(_best(scenario.schema, level, rhos, line, allocation.name) for line in lines)
            dearest = sorted(rho, reverse=True)[: lines_of_one_record(scenario.schema, table, lines)]
            one = Measured(level, table, lines, rho, sum(dearest, Fraction(0)))
            ledger.spend(one.purpose, one.price)
            some.append(one)
        measured[level] = tuple(some)
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
    """The most of these lines that one record can be counted in: 1, but for tallies and *of which*."""
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


@dataclass(frozen=True)
class Invariant:
    """A number that is published as it is."""

    table: Table
    line: Line
    predicate: Predicate


def invariant(scenario: Scenario, variable: str) -> Invariant:
    """The line of a variable, in any official spelling, whose true value is to be published."""
    name, number = scenario.official.get(variable, ("", 0))
    if name not in scenario.by_table:
        raise unknown("variable to keep", variable, [table.lines[0].variable for table in scenario.tables])
    line = scenario.table(name).line(number)
    if line.predicate is None or line.within is not None:
        raise InputError(f"{line.variable} cannot be kept: it is no count of records that others add up to")
    return Invariant(scenario.table(name), line, line.predicate)


def publish(
    counts: Counts,
    measured: Sequence[Measured],
    noisy: Mapping[str, Count],
    how: Afterwards,
    invariants: Sequence[Invariant] = (),
) -> tuple[Count, int]:
    """The numbers of a level that are published in place of the true ones, and how many were negative before.

    `simple` is that of Steed et al.: negatives become 0; the lines of a table that together count what an invariant
    counts are scaled to it, in whole numbers by largest remainder (the earlier line first on a tie); an *of which* is
    at most its line. Subtotals are then added up. Tables are not made consistent with each other.
    """
    negatives = sum(int((numbers < 0).sum()) for numbers in noisy.values())
    if how is Afterwards.NONE and negatives:
        raise InputError(
            f"{negatives:,} noisy counts of level {counts.level} are negative, and tables hold counts from 0; choose "
            "another --postprocess, and keep the noisy numbers in a file of their own with --measurements"
        )
    here = {one.table.name: one for one in measured}
    kept = {known.predicate: _true(counts, known) for known in invariants if known.table.name in here}
    result = np.zeros_like(counts.lower)
    for name, one in here.items():
        column = {line.number: number for number, line in enumerate(one.lines)}
        values = np.maximum(noisy[name], 0)
        if how is Afterwards.SIMPLE:
            _scale(one.table, column, values, kept)
            for line in one.lines:
                if line.within is not None:
                    own, whole = column[line.number], column[line.within]
                    values[:, own] = np.minimum(values[:, own], values[:, whole])
        for line in one.table.lines:
            if line.variable in counts.column:
                leaves = [column[leaf.number] for leaf in one.table.leaves_of(line)]
                result[:, counts.column[line.variable]] = values[:, leaves].sum(axis=1)
    return result, negatives


def _true(counts: Counts, known: Invariant) -> Count:
    columns = [counts.column[leaf.variable] for leaf in known.table.leaves_of(known.line)]
    total: Count = counts.lower[:, columns].sum(axis=1)
    return total


def _scale(table: Table, column: Mapping[int, int], values: Count, kept: Mapping[Predicate, Count]) -> None:
    """Scale leaves, in place, to what is known of their total; the smallest totals first, which then stay."""
    if table.tally:
        return  # a tally counts answers: its leaves do not add up to records
    totals = [line for line in table.lines if line.predicate in kept and line.within is None]
    fixed: list[int] = []
    for line in sorted(totals, key=lambda line: (len(table.leaves_of(line)), -line.number)):
        below = [column[leaf.number] for leaf in table.leaves_of(line)]
        free = [at for at in below if at not in fixed]
        assert line.predicate is not None  # it is one of those kept
        known = kept[line.predicate] - values[:, [at for at in below if at in fixed]].sum(axis=1)
        if (known < 0).any() or (not free and known.any()):
            raise InputError(f"table {table.name}: the numbers to keep contradict each other; see glasshouse check")
        if free:
            values[:, free] = scale_to(values[:, free], known)
            fixed += free


def scale_to(values: Count, totals: Count) -> Count:
    """Rows in proportion to what they were, in whole numbers that add up to the totals; rows of zeros evenly.

    Every number is rounded down, and the largest remainders up, the earlier one first on a tie.

    >>> scale_to(np.array([[1, 1, 2], [0, 0, 0]]), np.array([6, 4])).tolist()
    [[2, 1, 3], [2, 1, 1]]
    """
    weights = np.where(values.sum(axis=1, keepdims=True) == 0, 1, values)
    if float(weights.max(initial=0)) * float(totals.max(initial=0)) >= 2**62:
        weights, totals = weights.astype(object), totals.astype(object)  # whole numbers of any size
    wanted, whole = weights * totals[:, None], weights.sum(axis=1, keepdims=True)
    scaled, remainder = (wanted // whole).astype(np.int64), (wanted % whole).astype(np.int64)
    short = (totals - scaled.sum(axis=1)).astype(np.int64)
    order = np.argsort(-remainder, axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.broadcast_to(np.arange(order.shape[1]), order.shape), axis=1)
    found: Count = scaled + (rank < short[:, None])
    return found


def _tables(scenario: Scenario, level: str, variables: Sequence[str]) -> tuple[Table, ...]:
    """The tables that have a number at a level."""
    here = set(variables)
    return tuple(table for table in scenario.tables if any(line.variable in here for line in table.lines))


def _refuse_no_rho(rho: Fraction) -> None:
    if rho <= 0:
        raise InputError(f"rho is {rho}; expected more than 0: with none, nothing can be published")
