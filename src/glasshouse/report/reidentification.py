"""What does the risk look like? Precision against the size of the block, beside guessing, for those who differ."""

from __future__ import annotations

import polars as pl

from glasshouse.assess.paper_tables import Column, PaperTable
from glasshouse.assess.people.groups import EVERYBODY, EXPOSED, NONMODAL
from glasshouse.model.bands import ALL, BANDS
from glasshouse.report.charts import Axis, Bands

PANELS = {EVERYBODY: "everyone on the list", NONMODAL: "nonmodal persons", EXPOSED: "nonmodal and unique"}
LEAST = 10  # putative re-identifications behind a point


def picture(rates: pl.DataFrame, learnt: str, place: str) -> Bands:
    """Precision with its interval, by block size, a line for every file and guesser, a panel for every group.

    `learnt` says what the attacker would learn, `place` what is small or large.

    Of the last attacker of the run: by custom the best informed.
    """
    attacker = rates["attacker"][-1] if rates.height else ""
    some = rates.filter(
        pl.col("attacker") == attacker, pl.col("group").is_in(list(PANELS)), pl.col("band") != ALL,
        pl.col("putative") >= LEAST,
    )  # fmt: skip
    order = {name: number for number, name in enumerate(PANELS)}
    data = some.sort(pl.col("group").replace_strict(order, default=None), maintain_order=True).select(
        "data", "band", "precision", "low", "high", pl.col("group").replace_strict(PANELS, default="").alias("panel")
    )
    return Bands(
        f"How often an attacker is right about {learnt} ({attacker})" if attacker else "Nobody was linked",
        data,
        Axis("band", f"persons in the {place}"),
        tuple(BANDS),
        Axis("precision", "precision: confirmed of putative"),
        Axis("data"),
        "panel",
    )


def left_out_table(found: pl.DataFrame) -> PaperTable:
    """What is not in the paper: persons left out one by one, in the shape of its tables."""
    keys = {"attacker": "List", "group": "Persons", "data": "Data"}
    counts = {
        "persons": ("", "Left out"), "listed": ("", "On the list"), "inferred_in": ("With the person", "Inferred"),
        "right_in": ("With the person", "Right"), "inferred_out": ("Without", "Inferred"),
        "right_out": ("Without", "Right"),
    }  # fmt: skip
    columns = [Column(name, "key", ("", "", heading)) for name, heading in keys.items()]
    columns += [Column(name, "count", ("", *headings)) for name, headings in counts.items()]
    columns += [
        Column("share_in", "share", ("", "Right of all left out", "With"), ratio=("right_in", "persons", 1)),
        Column("share_out", "share", ("", "Right of all left out", "Without"), ratio=("right_out", "persons", 1)),
        Column("difference", "share", ("", "Because they answered", "Difference")),
        Column("difference_low", "low", ("", "Because they answered", "95% from")),
        Column("difference_high", "high", ("", "Because they answered", "to")),
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
