"""Who are those whose records are certain? Counted by what the office's own tables group people by.

Of every attribute the finest grouping is taken that a reader can still look at and that no kind of records straddles.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.attack.far import Kinds
from glasshouse.model.records import group_of_level
from glasshouse.program.tables.cells import Cells
from glasshouse.scenarios.load import Scenario

MOST = 25  # groups that a reader can still look at
GROUPS = {"attribute": pl.String, "group": pl.String, "order": pl.Int64, "records": pl.Int64, "certain": pl.Int64}


def grouped(scenario: Scenario, kinds: Kinds, unit: str) -> pl.DataFrame:
    """The records of a unit, and the certain among them, by every group of every attribute: those of nobody too."""
    parts = []
    for attribute, labels, group in _groupings(scenario, kinds.cells):
        of = group[kinds.cell]
        records, certain = (
            np.bincount(of, weights=counts, minlength=len(labels)).astype(np.int64)
            for counts in (kinds.records, kinds.certain)
        )
        columns = {"group": labels, "order": range(len(labels)), "records": records, "certain": certain}
        parts.append(pl.DataFrame(columns).with_columns(attribute=pl.lit(attribute)))
    frame = pl.concat(parts) if parts else pl.DataFrame(schema=GROUPS)
    named = pl.lit(unit, pl.String).alias(scenario.geography.unit)
    return frame.select(named, *(pl.col(name).cast(kind) for name, kind in GROUPS.items()))


def _groupings(scenario: Scenario, cells: Cells) -> Iterator[tuple[str, list[str], NDArray[np.int64]]]:
    """For every attribute that can be shown: its name, the labels of its groups, and the group of each cell."""
    for number, attribute in enumerate(scenario.schema.attributes):
        alone = np.arange(len(attribute), dtype=np.int64)
        found = [(list(attribute.levels), alone)] if len(attribute) <= MOST else []
        found += [
            ([group.label for group in groups], group_of_level(scenario.schema, recode, groups))
            for recode in scenario.recodes.values()
            if recode.attribute == attribute.name and not recode.tally
            for groups in recode.cuts()
            if len(groups) <= MOST
        ]
        classes = cells.classes[number]
        first = np.unique(classes, return_index=True)[1]
        whole = [
            (labels, groups)
            for labels, groups in found
            if groups.max(initial=0) < len(labels) and np.array_equal(groups[first][classes], groups)
        ]
        if whole and classes.max(initial=0) > 0:  # an attribute that nothing tells apart says nothing
            labels, groups = max(whole, key=lambda one: len(one[0]))
            yield attribute.name, labels, groups[first][cells.codes[:, number]]
