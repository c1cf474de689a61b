"""How do our own tables look in SDMX-CSV? A line for each number, with its status and, where protected, its interval.

Written where the name of a file ends in `.sdmx.csv` (or `.sdmx.csv.gz`), and read again as the same release.
OBS_STATUS is of SDMX's own code list CL_OBS_STATUS: A is the count itself, E a number near it (rounded, perturbed,
noisy; the list has no code for these), Q is suppressed, and OBS_VALUE is then blank.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from glasshouse.errors import GlasshouseBug, InputError
from glasshouse.files.frames import Chunk, Source, add_format, open_text

ENDINGS = (".sdmx.csv", ".sdmx.csv.gz")
EXACT, NEAR, HIDDEN = "A", "E", "Q"
ABOUT = {"STRUCTURE": "dataflow", "STRUCTURE_ID": "GLASSHOUSE:TABLES(1.0)", "ACTION": "I"}
KEY = {"level": "LEVEL", "geoid": "GEO", "table": "TABLE", "variable": "VARIABLE"}
PRINTED = {"value": "OBS_VALUE", "status": "OBS_STATUS"}
INTERVAL = {"lower": "LOWER", "upper": "UPPER"}


def is_sdmx(path: Path) -> bool:
    """Is a file of this name written as SDMX-CSV?"""
    return path.name.lower().endswith(ENDINGS)


def printed(shown: pl.Series, hidden: pl.Series, exact: pl.Series) -> dict[str, pl.Series]:
    """What is printed of numbers, and the status of each."""
    near = pl.Series([NEAR], dtype=pl.String).new_from_index(0, len(shown))
    status = near.set(exact, EXACT).set(hidden, HIDDEN)
    return {"value": shown.set(hidden, None), "status": status}


def rows(frame: pl.DataFrame) -> pl.DataFrame:
    """Long rows of tables as lines of SDMX-CSV; without a status, what is exact is told from its interval."""
    if not set(KEY) <= set(frame.columns) or not {"value", "lower"} & set(frame.columns):
        raise InputError("only tables are written as SDMX-CSV; name a file that ends in .csv or .parquet")
    told = frame
    if "value" not in told.columns:
        exact = pl.col("lower") == pl.col("upper").fill_null(-1)
        told = told.with_columns(pl.when(exact).then("lower").alias("value"))
    if "status" not in told.columns:
        blank = pl.col("value").is_null()
        told = told.with_columns(pl.when(blank).then(pl.lit(HIDDEN)).otherwise(pl.lit(EXACT)).alias("status"))
    interval = INTERVAL if "lower" in told.columns else {}
    about = [pl.lit(text).alias(name) for name, text in ABOUT.items()]
    return told.select(*about, *(pl.col(old).alias(new) for old, new in (KEY | PRINTED | interval).items()))


def opened(path: Path) -> Source:
    """A file that we wrote, with our own names of columns; one of another structure as it is."""
    raw = open_text(path)
    names = {name: old for old, name in (KEY | PRINTED | INTERVAL).items()}
    if not set(KEY.values()) <= set(raw.columns):
        return raw
    interval = set(INTERVAL.values()) <= set(raw.columns)
    wanted = [*KEY, *(INTERVAL if interval else ["value"])]
    missing = [name for name, old in names.items() if old in wanted and name not in raw.columns]
    if missing:
        raise InputError(f"{path.name}: column {missing[0]} is missing; expected it in tables that Glasshouse wrote")

    def pieces(source: Source, some: Sequence[str]) -> Iterator[Chunk]:
        if raw.pieces is None:
            raise GlasshouseBug(f"{path.name}: nobody says how its rows are read")
        new = {old: name for name, old in names.items()}
        for chunk in raw.pieces(raw, [new[one] for one in some]):
            yield replace(chunk, frame=chunk.frame.rename({new[one]: one for one in some}))

    return replace(raw, columns=tuple(wanted), pieces=pieces)


for _ending in ENDINGS:
    add_format(_ending, opened)
