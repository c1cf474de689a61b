"""What is published after noise? Whole counts from 0 that add up, and agree with what is known exactly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from glasshouse.errors import InputError, unknown
from glasshouse.model.records import Count
from glasshouse.model.release import Counts, Line, Table
from glasshouse.model.schema import Predicate
from glasshouse.protection.noise import Measured
from glasshouse.scenarios.load import Scenario


class Afterwards(StrEnum):
    """What happens to noisy counts before they are published."""

    SIMPLE = "simple"  # negatives to 0, whole counts that add up to the invariants
    CLIP = "clip"  # negatives to 0
    NONE = "none"  # nothing: refused where a count is negative


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
    at most its line. Subtotals are then added up. Tables are not made consistent with each other, but for those that
    are made bottom up from another.
    """
    negatives = sum(int((numbers < 0).sum()) for numbers in noisy.values())
    if how is Afterwards.NONE and negatives:
        raise InputError(
            f"{negatives:,} noisy counts of level {counts.level} are negative, and tables hold counts from 0; choose "
            "another --postprocess, and keep the noisy numbers in a file of their own with --measurements"
        )
    kept = _kept(counts, measured, invariants)
    result = np.zeros_like(counts.lower)
    shown: dict[str, dict[int, Count]] = {}  # by table and line that is no subtotal
    for one in sorted(measured, key=lambda one: one.made is not None):  # what is made from others, after them
        if one.made is not None:
            shown[one.table.name] = _bottom_up(one, np.maximum(noisy[one.table.name], 0), shown, how)
        elif not one.held:
            shown[one.table.name] = _measured(one, np.maximum(noisy[one.table.name], 0), kept, how)
        else:
            lines = [line for line in one.table.lines if not line.parts and line.variable in counts.column]
            shown[one.table.name] = {line.number: counts.lower[:, counts.column[line.variable]] for line in lines}
        for line in one.table.lines:
            if line.variable in counts.column:
                values = [shown[one.table.name][leaf.number] for leaf in one.table.leaves_of(line)]
                result[:, counts.column[line.variable]] = np.sum(values, axis=0)
    return result, negatives


def _kept(counts: Counts, measured: Sequence[Measured], invariants: Sequence[Invariant]) -> dict[Predicate, Count]:
    """What is known exactly: the invariants, and all numbers of tables that are held."""
    here = {one.table.name for one in measured}
    known = [known for known in invariants if known.table.name in here]
    for one in measured:
        lines = [line for line in one.table.lines if one.held and line.within is None]
        known += [Invariant(one.table, line, line.predicate) for line in lines if line.predicate is not None]
    return {one.predicate: _true(counts, one) for one in known}


def _measured(one: Measured, values: Count, kept: Mapping[Predicate, Count], how: Afterwards) -> dict[int, Count]:
    """The lines of a table from their own noisy numbers."""
    column = {line.number: number for number, line in enumerate(one.lines)}
    if how is Afterwards.SIMPLE:
        _scale(one.table, column, values, kept)
        for line in one.lines:
            if line.within is not None:
                own, whole = column[line.number], column[line.within]
                values[:, own] = np.minimum(values[:, own], values[:, whole])
    return {number: values[:, at] for number, at in column.items()}


def _bottom_up(
    one: Measured, values: Count, shown: Mapping[str, Mapping[int, Count]], how: Afterwards
) -> dict[int, Count]:
    """The lines of a table whose total another table makes: each at most what is left, the last what is left then."""
    assert one.made is not None
    source = one.made.table
    if how is not Afterwards.SIMPLE:
        raise InputError(
            f"table {one.table.name} is made bottom up from {source.name}, which only --postprocess simple does; "
            f"choose it, or leave {one.table.name} out (--tables)"
        )
    left = np.sum(
        [adds * shown[source.name][leaf.number] for adds, leaf in zip(one.made.adds, source.leaves, strict=True)],
        axis=0,
    )
    lines: dict[int, Count] = {}
    for line, noisy in zip(one.lines, values.T, strict=True):
        lines[line.number] = np.minimum(noisy, left)
        left = left - lines[line.number]
    return lines | {one.table.leaves[-1].number: left}


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
