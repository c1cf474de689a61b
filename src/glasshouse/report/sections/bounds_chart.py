"""How well are hidden numbers known? For each table, the share that is exact, narrow and wide."""

from __future__ import annotations

from collections.abc import Sequence

from glasshouse.assess.hidden import Known
from glasshouse.report.description import Cell, Chart, Column, Count, Series, Share, Table
from glasshouse.report.figure import Figure
from glasshouse.report.words import phrase

MOST = 25  # tables that are read


def picture(by_table: Sequence[Known]) -> Figure:
    """The tables with hidden numbers, by how much of them is given away, the worst first."""
    some = [one for one in by_table if one.hidden]
    some.sort(key=lambda one: (-one.exact / one.hidden, -one.narrow / one.hidden, one.table, one.level))
    exact, hidden = sum(one.exact for one in some), sum(one.hidden for one in some)
    title = phrase("bounds_picture.title", exact=exact, hidden=hidden) if some else phrase("bounds_picture.none")
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            one.table,
            one.level,
            Count(one.hidden),
            *(Share(part, one.hidden) for part in (one.exact, one.narrow, one.wide)),
        )
        for one in some[:MOST]
    )
    parts = ("exact", "narrow", "wide")
    columns = tuple(Column(phrase(f"bounds_picture.{head}")) for head in ("table", "level", "hidden", *parts))
    found = Table("bounds", title, columns, rows, "bounds.parquet", keys=2)
    series = tuple(Series(at, phrase(f"bounds_picture.{part}"), "bar") for at, part in enumerate(parts, 3))
    chart = Chart(
        "bounds-chart", title, phrase("bounds_picture.says"), found, series, phrase("bounds_picture.axis"), most=MOST,
        stacked=True,
    )  # fmt: skip
    return Figure.of(chart)
