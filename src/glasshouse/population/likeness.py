"""Does a synthetic county look like a real one? Figures that were published of the 2010 Census, beside its own.

`agebin` is the bin of each age, 0 to 110. Shares are of persons unless they say otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from glasshouse.errors import InputError
from glasshouse.model.bands import BANDS
from glasshouse.population.preset import RACES

# share of persons who are data-defined and unique on block, sex, 38-bin age, by block size: paper 000, Table S5
UNIQUE_2010 = (0.817, 0.503, 0.269, 0.122, 0.034, 0.008, 0.002)
UNIQUE_EXACT_2010 = 0.44  # unique on block, sex, single year of age: paper 000, supporting text
DEFINED_2010, DUPLICATE_2010 = 0.894, 0.010  # the same, on person identifiers
LISTED_2010 = {"matching": 106.3, "not matching": 182.9, "list": 289.1, "data-defined": 276.0}  # millions, Table S1


def binned(frame: pl.DataFrame, agebin: Sequence[int]) -> pl.DataFrame:
    """The same records with a column `agebin`."""
    bins = pl.Series("agebin", list(agebin), dtype=pl.Int64)
    return frame.with_columns(bins.gather(frame["age"].cast(pl.Int64)))


def uniques(cef: pl.DataFrame, agebin: Sequence[int]) -> pl.DataFrame:
    """By block size: persons, and the share who are data-defined and unique on block, sex and 38-bin age."""
    if cef.is_empty():
        raise InputError("there are no records; nothing to compare")
    alone = pl.struct("block", "sex", "agebin").is_unique() & (pl.col("data_defined") == 1)
    size = pl.len().over("block")
    named = pl.Series("band", list(BANDS))
    rows = binned(cef, agebin).select(size.alias("size"), alone.alias("alone"))
    band = pl.Series(list(BANDS.values())).search_sorted(rows["size"], side="right") - 1
    counted = rows.with_columns(band.alias("number")).group_by("number").agg(
        pl.len().alias("persons"), pl.col("alone").mean().alias("ours")
    )  # fmt: skip
    frame = pl.DataFrame({"number": list(range(len(BANDS))), "band": named, "published": list(UNIQUE_2010)})
    counted = counted.with_columns(pl.col("number").cast(pl.Int64))
    return frame.join(counted, on="number", how="left").sort("number").select("band", "persons", "ours", "published")


def unique_exact(cef: pl.DataFrame) -> float:
    """The share of persons unique on block, sex and single year of age, data-defined or not."""
    return float(cef.select(pl.struct("block", "sex", "age").is_unique().mean()).item())


def concentration(cef: pl.DataFrame) -> dict[str, float]:
    """How alike blocks are inside: the share of persons of their block's modal race and origin; the sum of squares.

    The first is what a modal guesser can reach at most, the second a proportional one (paper 000).
    """
    cells = cef.group_by("block", *RACES, "hispanic").len()
    blocks = cells.group_by("block").agg(
        pl.col("len").max().alias("modal"), pl.col("len").sum().alias("size"),
        (pl.col("len").cast(pl.Float64) ** 2).sum().alias("squares"),
    )  # fmt: skip
    total, modal = int(blocks["size"].sum()), int(blocks["modal"].sum())
    squares = float(blocks.select((pl.col("squares") / pl.col("size")).sum()).item())
    return {"modal share": modal / total, "sum of squared shares": squares / total}


def identifiers(cef: pl.DataFrame) -> dict[str, float]:
    """The share of records that are data-defined, and of identified records that are duplicates."""
    known = cef.filter(pl.col("person_id").is_not_null()).height
    defined = int(cef["data_defined"].sum())
    return {"data-defined": defined / cef.height, "duplicates": 1 - defined / max(known, 1)}


def list_overlap(cef: pl.DataFrame, commercial: pl.DataFrame, agebin: Sequence[int]) -> dict[str, int]:
    """How much of a bought list is right: records that agree on person, block, sex and 38-bin age (Table S1)."""
    keys = ["person_id", "block", "sex", "agebin"]
    truth = binned(cef.filter(pl.col("data_defined") == 1), agebin).select(keys)
    listed = binned(commercial, agebin).select(keys).unique("person_id", keep="first", maintain_order=True)
    matching = listed.join(truth, on=keys, how="semi").height
    return {
        "matching": matching,
        "not matching": listed.height - matching,
        "list": listed.height,
        "data-defined": truth.height,
    }
