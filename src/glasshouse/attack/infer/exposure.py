"""Who is how exposed? For a file of records, at how many levels each person is the only one of their kind.

The averaged risk of one noisy count does not depend on the count (S1.1), so every person has the risk of the finest
level. A person known to be unique further up is exposed to every noisy count up to there (S1.3). Here uniqueness is in
all the attributes given; S1.3's adversary knows all but one of them: leave that one out to answer their question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from glasshouse.attack.infer.onelevel import marginal
from glasshouse.errors import InputError
from glasshouse.files.frames import open_source
from glasshouse.model.geography import Geography

NATION = "nation"  # everyone: the level above all that the codes tell apart


@dataclass(frozen=True)
class Exposed:
    """Persons unique at exactly so many levels from the finest up, and their risk."""

    levels: int
    persons: int
    posterior: float
    ratio: float


@dataclass(frozen=True)
class Exposure:
    """How many persons are exposed how much, and the share whose posterior exceeds a threshold."""

    persons: int
    rows: tuple[Exposed, ...]

    def unique_up_to(self, levels: int) -> list[int]:
        """How many persons are unique at the first level, at the first two, and so on."""
        return [sum(row.persons for row in self.rows if row.levels >= level) for level in range(1, levels + 1)]

    def share_above(self, threshold: float) -> float:
        return sum(row.persons for row in self.rows if row.posterior > threshold) / self.persons


def exposure(
    people: pl.DataFrame,
    attributes: Sequence[str],
    geography: Geography,
    rates: Mapping[str, float],
    prior: float,
    *,
    sample: int = 0,
    seed: int = 0,
) -> Exposure:
    """Count uniques level by level: `people` has a `geoid`, a column for each attribute and perhaps a `count`.

    `rates` is finest first.
    """
    if people.is_empty():
        raise InputError("no records; nothing to assess")
    levels = list(rates)
    for level in levels:
        if level != NATION:
            geography.known(level)
    if "count" not in people.columns:
        people = people.with_columns(pl.lit(1, pl.Int64).alias("count"))
    frame = people.group_by("geoid", *attributes).agg(pl.col("count").sum()).filter(pl.col("count") > 0)
    frame = frame.with_columns(_area(geography, level).alias(f"area {number}") for number, level in enumerate(levels))
    alone = pl.lit(value=True)
    depth = pl.lit(0)
    for number in range(len(levels)):
        alone = alone & (pl.col("count").sum().over(f"area {number}", *attributes) == 1)
        depth = depth + alone.cast(pl.Int32)
    frame = frame.select(depth.alias("levels"), "count", "geoid", *attributes)
    if sample:
        frame = _sampled(frame.sort("geoid", *attributes), sample, seed)
    reached = frame.group_by("levels").agg(pl.col("count").sum()).sort("levels")
    rows = []
    for unique, persons in reached.iter_rows():
        risk = marginal([rates[level] for level in levels[: max(unique, 1)]], prior)
        rows.append(Exposed(unique, persons, risk.posterior, risk.ratio))
    return Exposure(int(frame["count"].sum()), tuple(rows))


def _sampled(cells: pl.DataFrame, size: int, seed: int) -> pl.DataFrame:
    """Some persons drawn without replacement; uniqueness is judged among all."""
    counts = cells["count"].to_numpy()
    if size > counts.sum():
        raise InputError(f"a sample of {size:,} of {counts.sum():,} persons; expected at most all of them")
    drawn = np.random.default_rng(seed).multivariate_hypergeometric(counts, size, method="marginals")
    return cells.with_columns(pl.Series("count", drawn)).filter(pl.col("count") > 0)


def read_matrix(path: Path, place: str) -> pl.DataFrame:
    """A matrix of counts (a row per place, a column per combination) as cells: geoid, cell, count."""
    source = open_source(path)
    cells = []
    for chunk in source.chunks():
        codes = chunk.frame[source.columns[0]].cast(pl.String).alias("geoid")
        if codes.null_count() or codes.is_duplicated().any():
            raise InputError(f"{path.name}: the first column must name each {place} once")
        for name in source.columns[1:]:
            counts = chunk.frame[name].cast(pl.Int64, strict=False)
            bad = counts.is_null() | (counts < 0)
            if bad.any():
                line = chunk.first + int(bad.arg_max() or 0)
                found = str(chunk.frame[name][line - chunk.first])[:20]
                raise InputError(
                    f"{source.where(line)}: column '{name}' is '{found}'; expected a whole number from 0 up"
                )
            cells.append(pl.DataFrame([codes, pl.Series("cell", [name] * len(codes)), counts.alias("count")]))
    if not cells:
        raise InputError(f"{path.name}: expected a row for each {place} and a column for each combination")
    return pl.concat(cells)


def _area(geography: Geography, level: str) -> pl.Expr:
    if level == NATION:
        return pl.lit("")
    if level in geography.mappings:
        return pl.col("geoid").replace_strict(dict(geography.mappings[level]), return_dtype=pl.String)
    return pl.col("geoid").str.head(geography.lengths[level])
