"""Which table would an office withhold first? A bar for each, as long as the claims that depend on it."""

from __future__ import annotations

import polars as pl

from glasshouse.report.description import Cell, Chart, Column, Count, Series, Share, Table
from glasshouse.report.figure import Figure
from glasshouse.report.words import phrase, table

MOST = 25  # bars that are read


def picture(by_table: pl.DataFrame) -> Figure:
    """The tables on which most claims depend."""
    shown = by_table.filter(pl.col("claims") > 0, pl.col("share").is_not_null()).head(MOST)
    if shown.height:
        first = shown.row(0, named=True)
        title = phrase(f"leaks.title_{first['change']}", share=first["share"], table=first["table"])
    else:  # all bars are 0 long, and some are drawn to say so
        title, shown = phrase("leaks.none"), by_table.head(MOST)
    words = table("leaks.changes")
    rows: list[tuple[Cell, ...]] = []
    for change, said in words.items():
        for row in shown.filter(pl.col("change") == change).iter_rows(named=True):
            certain = max(int(row["certain"]), 1)
            rows.append(
                (said, row["table"], Count(row["claims"]), Share(row["claims"], certain, row["low"], row["high"]))
            )
    columns = (Column(""), Column(phrase("leaks.table")), Column(phrase("leaks.claims"), "claims"),
               Column(phrase("leaks.axis"), "share"))  # fmt: skip
    found = Table("leaks", title, columns, tuple(rows), "leaks.parquet", keys=2)
    series = (Series(3, phrase("leaks.axis"), "bar"),)
    return Figure.of(
        Chart("leaks-chart", title, phrase("leaks.says"), found, series, phrase("leaks.axis"), panel=0, most=MOST)
    )
