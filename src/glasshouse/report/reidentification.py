"""What does the risk look like? Precision against the size of the block, beside guessing, for those who differ."""

from __future__ import annotations

import polars as pl

from glasshouse.assess.variability import ALL, BANDS
from glasshouse.report.charts import Axis, Bands

PANELS = {"all": "everyone on the list", "nonmodal": "nonmodal persons", "nonmodal-unique": "nonmodal and unique"}
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
