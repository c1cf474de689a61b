"""Who is how exposed? For a file of records, at how many levels a person is alone in all that the adversary knows.

The averaged risk of one noisy count does not depend on the count (S1.1), so every person has the risk of the finest
level. S1.3's adversary knows all attributes of the target but one, and that the target is the only one with them at
some levels: then every noisy count up to there speaks of the target. So uniqueness is judged in all attributes but the
unknown one; being unique in all of them together is not enough. And it is judged only at levels that the file can
speak of: where it has several places, or is known to hold everyone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from glasshouse.attack.infer.onelevel import marginal
from glasshouse.errors import InputError
from glasshouse.errors import unknown as not_known
from glasshouse.files.frames import open_source
from glasshouse.model.geography import Geography

NATION = "nation"  # everyone: the level above all that the codes tell apart
ANY, NONE = "any", "none"  # which attribute is unknown: each in turn; none of those in the file


@dataclass(frozen=True)
class Exposed:
    """Persons unique, but for what is unknown, at exactly so many levels from the finest up, and their risk."""

    levels: int
    persons: int
    posterior: float
    ratio: float


@dataclass(frozen=True)
class Exposure:
    """How many persons are exposed how much, and the share whose posterior exceeds a threshold."""

    persons: int
    levels: tuple[str, ...]  # that the file can speak of, finest first
    rows: tuple[Exposed, ...]
    by_attribute: Mapping[str, tuple[int, ...]]  # by what is unknown: persons unique at each level and those before it

    @property
    def unique_up_to(self) -> tuple[int, ...]:
        """How many persons are unique at the first level, at the first two, and so on."""
        numbers = range(1, len(self.levels) + 1)
        return tuple(sum(row.persons for row in self.rows if row.levels >= number) for number in numbers)

    def share_above(self, threshold: float) -> float:
        return sum(row.persons for row in self.rows if row.posterior > threshold) / self.persons


def exposure(
    people: pl.DataFrame,
    attributes: Sequence[str],
    geography: Geography,
    rates: Mapping[str, float],
    prior: float,
    *,
    unknown: str = ANY,
    whole: str | None = None,
    sample: int = 0,
    seed: int = 0,
) -> Exposure:
    """Count uniques level by level: `people` has a `geoid`, a column for each attribute and perhaps a `count`.

    `rates` is finest first. `unknown` is the attribute that the adversary wants to learn: any (for each person the one
    that exposes them most), one by name, or none of these. `whole` is a level up to which the file holds everyone.
    """
    if people.is_empty():
        raise InputError("no records; nothing to assess")
    wanted = _unknown(unknown, attributes)
    _check(list(rates), geography, whole)
    if "count" not in people.columns:
        people = people.with_columns(pl.lit(1, pl.Int64).alias("count"))
    frame = people.group_by("geoid", *attributes).agg(pl.col("count").sum()).filter(pl.col("count") > 0)
    frame = frame.with_columns(_area(geography, level).alias(f"area {level}") for level in rates)
    levels = _spoken_of(frame, list(rates), whole)
    depths = {name: _depth(levels, [one for one in attributes if one != name]) for name in wanted}
    frame = frame.select("count", "geoid", *attributes, *(depth.alias(f"but {name}") for name, depth in depths.items()))
    if sample:
        frame = _sampled(frame.sort("geoid", *attributes), sample, seed)
    counted = frame.with_columns(pl.max_horizontal(f"but {name}" for name in wanted).alias("levels"))
    rows = []
    for unique, persons in counted.group_by("levels").agg(pl.col("count").sum()).sort("levels").iter_rows():
        risk = marginal([rates[level] for level in levels[: max(unique, 1)]], prior)
        rows.append(Exposed(unique, persons, risk.posterior, risk.ratio))
    by_attribute = {
        name: tuple(int(frame.filter(pl.col(f"but {name}") > number)["count"].sum()) for number in range(len(levels)))
        for name in wanted
    }
    return Exposure(int(frame["count"].sum()), tuple(levels), tuple(rows), by_attribute)


def _unknown(unknown: str, attributes: Sequence[str]) -> Sequence[str]:
    """What may be unknown; `none` leaves out no attribute."""
    if unknown == ANY:
        if not attributes:
            raise InputError("these tables look at no attribute, so there is none that an adversary could learn")
        return attributes
    if unknown not in (NONE, *attributes):
        raise not_known("attribute", unknown, (ANY, NONE, *attributes))
    return [unknown]


def _check(levels: Sequence[str], geography: Geography, whole: str | None) -> None:
    for level in levels:
        if level != NATION:
            geography.known(level)
    lengths = [
        0 if level == NATION else geography.lengths[level] for level in levels if level not in geography.mappings
    ]
    if lengths != sorted(set(lengths), reverse=True):
        raise InputError(f"the levels are {', '.join(levels)}; expected the finest first, each once")
    if whole is not None and whole not in levels:
        raise not_known("level", whole, levels)


def _spoken_of(frame: pl.DataFrame, levels: Sequence[str], whole: str | None) -> list[str]:
    """The finest level, and those above it up to where the file has one place and is not known to be all of it."""
    sure = 0 if whole is None else levels.index(whole)
    for number, level in enumerate(levels):
        if number > sure and frame[f"area {level}"].n_unique() == 1:
            return list(levels[:number])
    return list(levels)


def _depth(levels: Sequence[str], known: Sequence[str]) -> pl.Expr:
    """At how many levels, from the finest up, nobody else is alike in what is known."""
    alone, depth = pl.lit(value=True), pl.lit(0)
    for level in levels:
        alone = alone & (pl.col("count").sum().over(f"area {level}", *known) == 1)
        depth = depth + alone.cast(pl.Int32)
    return depth


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
