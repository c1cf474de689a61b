"""How does a frame become a picture of the report? Its rows become those of a table, its columns axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from glasshouse.report.description import Cell, Column, Curves, Measure, Scale, Sentence, Series, Style, Table
from glasshouse.report.figure import Figure


@dataclass(frozen=True)
class Axis:
    """A column of the frame, what to call it, and whether its scale is logarithmic or starts at 0."""

    column: str
    title: str = ""
    log: bool = False
    zero: bool = False
    style: Style = "number"

    def scale(self) -> Scale:
        return Scale(self.title, "log" if self.log else "linear", self.zero)


def table_of(name: str, title: str, frame: pl.DataFrame, keys: Sequence[str], numbers: Sequence[Axis]) -> Table:
    """A frame as a table: columns of words, then of numbers that are about nobody."""
    rows = [
        tuple(None if row[key] is None else str(row[key]) for key in keys)
        + tuple(number(row[one.column], one.style) for one in numbers)
        for row in frame.iter_rows(named=True)
    ]
    columns = (*map(Column, keys), *(Column(one.title or one.column) for one in numbers))
    return Table(name, title, columns, tuple(rows), "", keys=len(keys))


def number(value: float | None, style: Style = "number") -> Cell:
    """A number about nobody, if there is one."""
    return None if value is None else Measure(float(value), 0, style)


def lines(
    title: str,
    data: pl.DataFrame,
    x: Axis,
    y: Axis,
    group: Axis,
    panel: str | None = None,
    *,
    says: Sentence = "",
    points: bool = False,
    rule_x: float | None = None,
    rule_y: float | None = None,
    marks: pl.DataFrame | None = None,
    nested: bool = False,
) -> Figure:
    """Lines of a long frame, one for each group, in panels; `marks` are points of their own, of the same groups."""
    keys = [group.column] if panel is None else [panel, group.column]
    if group.title:
        named = pl.format(f"{group.title}: {{}}", group.column).alias(group.column)
        data, marks = data.with_columns(named), None if marks is None else marks.with_columns(named)
    both = data.with_columns(pl.lit(None, pl.Float64).alias("mark"))
    if marks is not None:
        only = marks.with_columns(pl.col(y.column).alias("mark"), pl.lit(None, pl.Float64).alias(y.column))
        both = pl.concat([both, only.select(both.columns)], how="vertical_relaxed")
    elif points:
        both = both.with_columns(pl.col(y.column).alias("mark"))
    numbers = [x, y, Axis("mark", y.title, style=y.style)]
    dots = points or marks is not None
    table = table_of("lines", title, both, keys, numbers if dots else numbers[:2])
    at = len(keys)
    series = (Series(at + 1, "", "line"), *((Series(at + 2, y.title, "dot" if points else "ring"),) if dots else ()))
    curves = Curves(
        "curves", title, says, table, at, series, x.scale(), y.scale(), at - 1, None if panel is None else 0,
        rule_x=rule_x, rule_y=rule_y, nested=nested,
    )  # fmt: skip
    return Figure.of(curves)
