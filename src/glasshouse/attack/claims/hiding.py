"""What do numbers that are hidden still give away? Those that are printed leave little room for them.

The cells of a table add up to a total that another table prints. So a cell is at most the total less what the others
are at least, and at least the total less what the others are at most. Hiding all zeros, for one, hides almost nothing:
the numbers that are left add up to their totals, and leave none for the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

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
