"""What is measured of a histogram, and with how much noise? Queries that put cells into groups, each with its rho."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

import numpy as np
from numpy.typing import NDArray

from glasshouse.errors import InputError, unknown
from glasshouse.mechanism.account import Allocation, Ledger
from glasshouse.mechanism.gaussian import DiscreteGaussian, rate_of
from glasshouse.model.records import Codes, group_of_level
from glasshouse.model.schema import Schema
from glasshouse.scenarios.load import DETAILED, TOTAL, Scenario, strategy_query

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

MAX_CELLS = 2**24  # of a histogram: a number of every one is drawn at the top


@dataclass(frozen=True)
class Query:
    """One way to look at a histogram: of each cell the number of its group."""

    name: str
    group: Ints
    groups: int

    def counted(self, cells: Ints) -> Ints:
        """How many of these records, given by their cells, are in each group."""
        return np.bincount(self.group[cells], minlength=self.groups).astype(np.int64)


@dataclass(frozen=True)
class Measure:
    """A query that is asked of every place of a level, and the noise that its answers get."""

    query: Query
    rho: Fraction
    noise: DiscreteGaussian

    @property
    def weight(self) -> float:
        """One over the parameter of the noise: nearly its variance, and still a number when there is hardly any."""
        return 2 * self.noise.rate


@dataclass(frozen=True)
class Strategy:
    """What is asked at each level, from the top down, and what it costs."""

    levels: tuple[str, ...]
    measures: Mapping[str, tuple[Measure, ...]]  # by level
    ledger: Ledger
    left_out: tuple[str, ...]  # queries of the allocation that the scenario has no words for
    neighbours: str


def cells_of(schema: Schema, codes: Codes) -> Ints:
    """Which cell of the full histogram each record is in: its levels, read as one number."""
    cell = np.zeros(len(codes), np.int64)
    for position, attribute in enumerate(schema.attributes):
        cell = cell * len(attribute) + codes[:, position]
    return cell


def codes_of(schema: Schema, cells: Ints) -> Codes:
    """The levels of records from their cells."""
    codes = np.empty((len(cells), len(schema.attributes)), np.int16)
    left = cells
    for position in range(len(schema.attributes) - 1, -1, -1):
        left, codes[:, position] = np.divmod(left, len(schema.attributes[position]))
    return codes


def possible_cells(schema: Schema) -> Flags:
    """Which cells of the full histogram can have records."""
    shape = [len(attribute) for attribute in schema.attributes]
    if prod(shape) > MAX_CELLS:
        raise InputError(
            f"a record has {prod(shape):,} possible combinations; noise from the top down takes up to {MAX_CELLS:,}"
        )
    may = np.ones(shape, np.bool_)
    for zero in schema.impossible:
        allowed = zero.predicate.by_attribute
        may[np.ix_(*(sorted(allowed.get(a.name, range(len(a)))) for a in schema.attributes))] = False
    return may.reshape(-1)


def query_of(scenario: Scenario, name: str) -> Query:
    """A query by the name that a budget gives it, over the full histogram of the scenario."""
    schema = scenario.schema
    shape = [len(attribute) for attribute in schema.attributes]
    if name == DETAILED:
        return Query(name, np.arange(prod(shape)), prod(shape))
    group, groups = np.zeros(prod(shape), np.int64), 1
    cells = np.indices(shape, np.int16).reshape(len(shape), -1) if name != TOTAL else None
    for recode in strategy_query(scenario, name):
        of_level = group_of_level(schema, recode)
        assert cells is not None
        group = group * (int(of_level.max()) + 1) + of_level[cells[schema.position[recode.attribute]]]
        groups *= int(of_level.max()) + 1
    return Query(name, group, groups)


def strategy_of(
    scenario: Scenario, allocation: Allocation, levels: Sequence[str], *, neighbours: str | None = None
) -> Strategy:
    """What an allocation asks at these levels; what it has for other levels, or in other words, stays unspent."""
    for level in levels:
        if level not in allocation.levels:
            raise unknown(f"level of the budget '{allocation.name}'", level, allocation.levels)
    rule = neighbours or allocation.neighbours
    known = {name: _known(scenario, name) for name in allocation.queries}
    queries = {name: query_of(scenario, name) for name, heard in known.items() if heard}
    ledger = Ledger(allocation.total)
    measures: dict[str, tuple[Measure, ...]] = {}
    for level in levels:
        asked = []
        for name, query in queries.items():
            rho = allocation.rho(level, name)
            if rho > 0:
                ledger.spend(f"{level}: {name}", rho)
                asked.append(Measure(query, rho, DiscreteGaussian(rate_of(float(rho), rule))))
        if not asked:
            raise InputError(
                f"the budget '{allocation.name}' asks nothing at level {level} that this scenario has words for; "
                "give it a share, or add what its queries mean to the scenario's [measure]"
            )
        measures[level] = tuple(asked)
    return Strategy(tuple(levels), measures, ledger, tuple(name for name, heard in known.items() if not heard), rule)


def _known(scenario: Scenario, name: str) -> bool:
    try:
        strategy_query(scenario, name)
    except InputError:
        return False
    return True


def nested(queries: Iterable[tuple[Query, float]]) -> list[Query]:
    """Of queries with weights, a chain from coarse to fine, the weightiest first: sums that can be watched together."""
    chain: list[Query] = []
    for query, _ in sorted(queries, key=lambda pair: -pair[1]):
        if query.name in (TOTAL, DETAILED):
            continue  # the one is always watched, the other is the cells themselves
        finer = [other for other in chain if divides(query, other)]
        coarser = [other for other in chain if divides(other, query)]
        if len(finer) + len(coarser) == len(chain) and not set(map(id, finer)) & set(map(id, coarser)):
            chain = [*coarser, query, *finer]
    return chain


def divides(coarse: Query, fine: Query) -> bool:
    """Is every group of the fine query inside one group of the coarse one?"""
    around = np.full(fine.groups, -1, np.int64)
    around[fine.group] = coarse.group
    return bool(np.array_equal(around[fine.group], coarse.group))
