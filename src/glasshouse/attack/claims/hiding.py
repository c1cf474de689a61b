"""What do numbers that are hidden still give away? Those that are printed leave little room for them.

The cells of a table add up to a total that another table prints. So a cell is at most the total less what the others
are at least, and at least the total less what the others are at most. Hiding all zeros, for one, hides almost nothing:
the numbers that are left add up to their totals, and leave none for the rest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from glasshouse.model.records import UNLIMITED, Count
from glasshouse.model.release import Counts, Table
from glasshouse.model.schema import Predicate

PASSES = 5  # totals of totals; in practice two or three


def without(counts: Counts, hidden: NDArray[np.bool_]) -> Counts:
    """The counts with some of them unpublished."""
    if not hidden.any():
        return counts
    lower, upper = np.where(hidden, 0, counts.lower), np.where(hidden, UNLIMITED, counts.upper)
    return Counts(counts.level, counts.places, counts.variables, lower, upper)


def only(counts: Counts, tables: Iterable[Table]) -> Counts:
    """The counts that are lines of these tables."""
    names = {line.variable for table in tables for line in table.lines}
    variables = tuple(variable for variable in counts.variables if variable in names)
    at = [counts.column[variable] for variable in variables]
    return Counts(counts.level, counts.places, variables, counts.lower[:, at], counts.upper[:, at])


def totals(tables: Iterable[Table], present: Collection[str], of: Collection[Predicate | None]) -> list[Table]:
    """Tables whose numbers add up to the number of all these records, which they do not print."""
    return [
        table for table in tables
        if table.universe in of and table.lines[0].predicate == table.universe and not table.tally
        and table.lines[0].variable not in present and all(leaf.variable in present for leaf in table.leaves)
    ]  # fmt: skip


def leave_out(
    counts: Counts, tables: Sequence[Table], values: Collection[int], kept: Collection[Predicate | None]
) -> tuple[Counts, NDArray[np.bool_]]:
    """The counts without exact ones of these values, and which these are.

    How many records there are of the `kept` descriptions stays known: those numbers stay, and where the tables print
    only their parts, the sum is put in their place, after all others.
    """
    printed = {line.variable for table in tables for line in table.lines if line.predicate in kept}
    free = np.array([variable not in printed for variable in counts.variables], np.bool_)
    gone = np.isin(counts.lower, list(values)) & (counts.lower == counts.upper) & free
    sums = totals(tables, counts.column, kept) if values else []
    at = [[counts.column[leaf.variable] for leaf in table.leaves] for table in sums]
    less = without(counts, gone)
    ends = (
        np.column_stack([some, *(np.minimum(every[:, one].sum(axis=1), UNLIMITED) for one in at)])
        for some, every in ((less.lower, counts.lower), (less.upper, counts.upper))
    )
    variables = (*counts.variables, *(table.lines[0].variable for table in sums))
    return Counts(counts.level, counts.places, variables, *ends), gone


def tightened(counts: Counts, tables: Sequence[Table]) -> Counts:
    """The same counts, with those known that totals leave one value; no data set that fits is ruled out.

    Intervals that stay open are left as they were: the core knows the totals too, and further rows would only slow it.
    """
    if counts.exact:
        return counts
    lower, upper = counts.lower.copy(), np.minimum(counts.upper, UNLIMITED)
    printed: dict[Predicate, list[int]] = {}
    for table in tables:
        for line in table.lines:
            if line.predicate is not None and line.variable in counts.column:
                printed.setdefault(line.predicate, []).append(counts.column[line.variable])
    divided = []
    for table in tables:
        columns = [counts.column.get(line.variable) for line in table.leaves]
        if not table.tally and table.universe in printed and len(columns) > 1 and None not in columns:
            divided.append((printed[table.universe], np.array(columns, np.int64)))
    for _ in range(PASSES):
        before = lower.sum(), upper.sum()
        for same in printed.values():  # two tables may print one number
            lower[:, same] = lower[:, same].max(axis=1, keepdims=True)
            upper[:, same] = upper[:, same].min(axis=1, keepdims=True)
        for total, parts in divided:
            _divide(lower, upper, lower[:, total].max(axis=1), upper[:, total].min(axis=1), parts)
        if (lower.sum(), upper.sum()) == before:
            break
    known = lower >= upper  # more than: no data set fits, which the core will say
    lower, upper = np.where(known, lower, counts.lower), np.where(known, upper, counts.upper)
    return Counts(counts.level, counts.places, counts.variables, lower, upper)


def _divide(lower: Count, upper: Count, least: Count, most: Count, parts: NDArray[np.int64]) -> None:
    """Tighten the parts of totals, in place."""
    low, high = lower[:, parts], upper[:, parts]
    others = low.sum(axis=1, keepdims=True) - low
    room = np.where(most[:, None] >= UNLIMITED, UNLIMITED, most[:, None] - others)
    endless = (high >= UNLIMITED).sum(axis=1, keepdims=True) - (high >= UNLIMITED) > 0
    needed = least[:, None] - (high.sum(axis=1, keepdims=True) - high)
    upper[:, parts] = np.minimum(high, np.maximum(room, 0))
    lower[:, parts] = np.maximum(low, np.where(endless, 0, needed))
