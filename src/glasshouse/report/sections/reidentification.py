"""What does the risk look like? Precision against the size of the block, beside guessing, for those who differ."""

from __future__ import annotations

import polars as pl

from glasshouse.assess.paper_tables import Column as PaperColumn
from glasshouse.assess.paper_tables import PaperTable
from glasshouse.model.bands import ALL, BANDS
from glasshouse.report.description import Chart, Column, Series, Share, Table
from glasshouse.report.figure import Figure
from glasshouse.report.words import phrase, several
from glasshouse.report.words import table as texts

LEAST = 10  # putative re-identifications behind a point
_LEFT = {  # counts, with the texts of their two headings
    "persons": ("", "persons"), "listed": ("", "listed"), "inferred_in": ("with_person", "inferred"),
    "right_in": ("with_person", "right"), "inferred_out": ("without", "inferred"), "right_out": ("without", "right"),
}  # fmt: skip


def picture(rates: pl.DataFrame, learnt: str, place: str) -> Figure:
    """Precision with its interval, by block size, a line for every file and guesser, a panel for every group.

    `learnt` says what the attacker would learn, `place` what is small or large. Of the last attacker of the run: by
    custom the best informed.
    """
    attacker, panels = rates["attacker"][-1] if rates.height else "", texts("reidentification.groups")
    some = rates.filter(
        pl.col("attacker") == attacker, pl.col("group").is_in(list(panels)), pl.col("band") != ALL,
        pl.col("putative") >= LEAST,
    )  # fmt: skip
    data = some["data"].unique(maintain_order=True).to_list()
    known = _shares(some)
    rows = [
        (panels[group], band, *(known.get((group, band, name)) for name in data))
        for group in panels
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


def _shares(some: pl.DataFrame) -> dict[tuple[str, str, str], Share]:
    """The precision of each group, band and data."""
    numbers = some.select("group", "band", "data", "confirmed", "putative", "low", "high")
    return {(group, band, data): Share(*share) for group, band, data, *share in numbers.iter_rows()}


def left_out_table(found: pl.DataFrame) -> PaperTable:
    """What is not in the paper: persons left out one by one, in the shape of its tables."""
    keys, heads = texts("left_out.keys"), texts("left_out.heads")
    columns = [PaperColumn(name, "key", ("", "", heading)) for name, heading in keys.items()]
    columns += [
        PaperColumn(name, "count", ("", heads[over] if over else "", heads[under]))
        for name, (over, under) in _LEFT.items()
    ]
    columns += [
        PaperColumn("share_in", "share", ("", heads["of_all"], heads["with"]), ratio=("right_in", "persons", 1)),
        PaperColumn("share_out", "share", ("", heads["of_all"], heads["without"]), ratio=("right_out", "persons", 1)),
        PaperColumn("difference", "share", ("", heads["because"], heads["difference"])),
        PaperColumn("difference_low", "low", ("", heads["because"], heads["from"])),
        PaperColumn("difference_high", "high", ("", heads["because"], heads["to"])),
    ]
    renamed = found.rename({"low": "difference_low", "high": "difference_high"})
    frame = renamed.select(column.name for column in columns)
    return PaperTable("left out", phrase("left_out.title"), several("left_out.notes"), frame, tuple(columns))
