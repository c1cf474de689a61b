"""What does the risk look like? Precision against the size of the block, beside guessing, for those who differ."""

from __future__ import annotations

from typing import Any

import polars as pl

from glasshouse.assess.paper_tables import Column as PaperColumn
from glasshouse.assess.paper_tables import PaperTable
from glasshouse.assess.variability import ALL, BANDS
from glasshouse.report.description import Cell, Chart, Column, Series, Share, Table
from glasshouse.report.figure import Figure
from glasshouse.report.words import phrase

PANELS = {"all": "everyone on the list", "nonmodal": "nonmodal persons", "nonmodal-unique": "nonmodal and unique"}
LEAST = 10  # putative re-identifications behind a point


def picture(rates: pl.DataFrame, learnt: str, place: str) -> Figure:
    """Precision with its interval, by block size, a line for every file and guesser, a panel for every group.

    `learnt` says what the attacker would learn, `place` what is small or large. Of the last attacker of the run: by
    custom the best informed.
    """
    attacker = rates["attacker"][-1] if rates.height else ""
    some = rates.filter(
        pl.col("attacker") == attacker, pl.col("group").is_in(list(PANELS)), pl.col("band") != ALL,
        pl.col("putative") >= LEAST,
    )  # fmt: skip
    data = some["data"].unique(maintain_order=True).to_list()
    known = {(row["group"], row["band"], row["data"]): row for row in some.iter_rows(named=True)}
    rows = [
        (PANELS[group], band, *(_precision(known.get((group, band, name))) for name in data))
        for group in PANELS
        for band in BANDS
        if any((group, band, name) in known for name in data)
    ]
    title = phrase("reidentification.title", learnt=learnt, attacker=attacker)
    if not attacker:
        title = phrase("reidentification.nobody")
    table = Table(
        "precision-by-size", title,
        (Column(phrase("reidentification.group")), Column(phrase("reidentification.persons", place=place)),
         *(Column(name, "precision") for name in data)), tuple(rows), "rates.parquet", keys=2,
    )  # fmt: skip
    series = tuple(Series(2 + at, name) for at, name in enumerate(data))
    says = phrase("reidentification.says", least=LEAST, place=place)
    return Figure.of(Chart("precision", title, says, table, series, phrase("reidentification.axis"), up=True, panel=0))


def _precision(row: dict[str, Any] | None) -> Cell:
    return None if row is None else Share(row["confirmed"], row["putative"], row["low"], row["high"])


def left_out_table(found: pl.DataFrame) -> PaperTable:
    """What is not in the paper: persons left out one by one, in the shape of its tables."""
    keys = {"attacker": "List", "group": "Persons", "data": "Data"}
    counts = {
        "persons": ("", "Left out"), "listed": ("", "On the list"), "inferred_in": ("With the person", "Inferred"),
        "right_in": ("With the person", "Right"), "inferred_out": ("Without", "Inferred"),
        "right_out": ("Without", "Right"),
    }  # fmt: skip
    columns = [PaperColumn(name, "key", ("", "", heading)) for name, heading in keys.items()]
    columns += [PaperColumn(name, "count", ("", *headings)) for name, headings in counts.items()]
    columns += [
        PaperColumn("share_in", "share", ("", "Right of all left out", "With"), ratio=("right_in", "persons", 1)),
        PaperColumn("share_out", "share", ("", "Right of all left out", "Without"), ratio=("right_out", "persons", 1)),
        PaperColumn("difference", "share", ("", "Because they answered", "Difference")),
        PaperColumn("difference_low", "low", ("", "Because they answered", "95% from")),
        PaperColumn("difference_high", "high", ("", "Because they answered", "to")),
    ]
    renamed = found.rename({"low": "difference_low", "high": "difference_high"})
    return PaperTable(
        "left out",
        "What a person's own answer gave away: inference with and without them (not in the paper)",
        (
            "Each person was taken out of the data, which were tabulated and rebuilt again; the list stays.",
            "+MDG: the modal guess where no record is found. Persons who are not on the list count as not seen.",
            "A larger difference is worse for the people.",
        ),
        renamed.select(column.name for column in columns),
        tuple(columns),
    )
