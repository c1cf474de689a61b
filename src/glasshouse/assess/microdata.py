"""Would the office have released the rebuilt records itself? The rules for microdata, held against them.

For its own microdata of 2010 the Census Bureau released a sample of 10% of the records, told areas of at least 100,000
persons apart, and showed a category of age, race or ethnicity only if at least 10,000 persons in the nation have it
(paper 000, supplement). Records rebuilt from tables keep to none of these: they are all of the records, block by block.

The last rule is about the nation. In records of a smaller population a category that is large enough is so in the
nation, too; one that is not may be: then the result is not `judged`, and it says which population it was taken over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from glasshouse.errors import InputError

Marginal = str | tuple[str, ...]  # a column, or columns whose combinations are the categories
Rule = Literal["sample", "certain", "area", "category"]


@dataclass(frozen=True)
class Rules:
    """What microdata must keep to: persons of an area, persons of a category in the nation, share of the records."""

    area: int = 100_000
    category: int = 10_000
    sample: float = 0.1

    def __post_init__(self) -> None:
        if self.area < 1 or self.category < 1 or not 0 < self.sample <= 1:
            raise InputError(
                f"microdata rules: area {self.area}, category {self.category}, sample {self.sample:g}; expected whole "
                "numbers from 1, and a share above 0 and up to 1"
            )


@dataclass(frozen=True)
class RuleResult:
    """A rule, and what the rebuilt records have. More `part` of the `whole` is worse.

    `part` are the persons in areas or categories that are too small, of all; for the sample, the records that are
    rebuilt or certain. `has` is a sentence with `{}` for each of `counts`, which are of persons, records or areas.
    """

    rule: Rule
    title: str
    wants: str
    has: str
    counts: tuple[int, ...]
    over: str  # the population
    passed: bool
    judged: bool
    part: int
    whole: int
    smallest: int | None = None  # persons in the smallest area or category
    below: int = 0  # areas or categories that are too small
    units: int = 0  # areas or categories

    @property
    def told(self) -> str:
        """What the records have, with its numbers: not for the public."""
        return self.has.format(*(f"{count:,}" for count in self.counts))


def microdata_rules(
    places: pl.DataFrame,
    records: pl.DataFrame | pl.LazyFrame,
    rules: Rules,
    *,
    marginals: Sequence[Marginal],
    over: str,
    nation: bool = False,
    certain: int | None = None,
    persons: str = "persons",
    weight: str | None = None,
    titles: Mapping[Marginal, str] | None = None,
) -> tuple[RuleResult, ...]:
    """Hold rebuilt records against the rules: the sample, what is certain of it, the areas, then each marginal.

    `places` has the areas that the records tell apart, a row each, with their persons. `over` names the population
    ("Greene County"), `nation` says that it is the whole nation. `certain` is the number of records that are proved,
    `weight` a column that says how many records a row stands for. A category that nobody has is none.
    """
    lazy = records.lazy()
    known = lazy.collect_schema().names()
    if persons not in places.columns:
        raise InputError(f"microdata rules: the places have no column '{persons}'; found: {', '.join(places.columns)}")
    for marginal in (*marginals, *([weight] if weight else [])):
        for column in _columns(marginal):
            if column not in known:
                raise InputError(
                    f"microdata rules: the records have no column '{column}'; found: {', '.join(known)}; "
                    "name columns of the records"
                )
    count = pl.len() if weight is None else pl.col(weight).sum()
    population = int(places[persons].sum())
    rebuilt = int(lazy.select(count.cast(pl.Int64)).collect().item())
    if not population or not rebuilt:
        raise InputError("microdata rules: there are no persons, or no rebuilt records; nothing can be judged")
    results = [_sample(rules, rebuilt, population, over)]
    if certain is not None:
        results.append(_certain(rules, certain, population, over))
    results.append(_areas(rules, places[persons], over))
    for marginal in marginals:
        sizes = lazy.group_by(_columns(marginal)).agg(count.cast(pl.Int64).alias("_persons")).collect()["_persons"]
        title = (titles or {}).get(marginal, ", ".join(_columns(marginal)))
        results.append(_categories(rules, sizes, title, over, nation))
    return tuple(results)


def _columns(marginal: Marginal) -> list[str]:
    return [marginal] if isinstance(marginal, str) else list(marginal)


def _sample(rules: Rules, rebuilt: int, population: int, over: str) -> RuleResult:
    part = min(rebuilt, population)  # protected tables can have more persons than there are
    return RuleResult(
        "sample",
        "Only a sample of the records",
        f"at most {_percent(rules.sample)} of the records",
        "{} records are rebuilt, of {} persons",
        (rebuilt, population),
        over,
        passed=part <= rules.sample * population,
        judged=True,
        part=part,
        whole=population,
    )


def _certain(rules: Rules, certain: int, population: int, over: str) -> RuleResult:
    if not 0 <= certain <= population:
        raise InputError(
            f"microdata rules: {certain:,} certain records of {population:,} persons; expected at most all"
        )
    return RuleResult(
        "certain",
        "Only a sample, counting records that are certain",
        f"at most {_percent(rules.sample)} of the records",
        "{} records are proved to be right, of {} persons",
        (certain, population),
        over,
        passed=certain <= rules.sample * population,
        judged=True,
        part=certain,
        whole=population,
    )


def _areas(rules: Rules, sizes: pl.Series, over: str) -> RuleResult:
    """Areas without persons are left out: no record tells them apart."""
    found = sizes.filter(sizes > 0)
    small = found.filter(found < rules.area)
    return RuleResult(
        "area",
        "Only large areas are told apart",
        f"at least {rules.area:,} persons in each area that records name",
        "{} of {} areas are smaller, with {} persons; the smallest has {}",
        (len(small), len(found), int(small.sum()), _least(found)),
        over,
        passed=not len(small),
        judged=True,
        part=int(small.sum()),
        whole=int(found.sum()),
        smallest=_least(found),
        below=len(small),
        units=len(found),
    )


def _categories(rules: Rules, sizes: pl.Series, title: str, over: str, nation: bool) -> RuleResult:
    found = sizes.filter(sizes > 0)
    small = found.filter(found < rules.category)
    elsewhere = "" if nation or not len(small) else "; in the nation they may be larger, so this alone judges nothing"
    return RuleResult(
        "category",
        f"Only large categories: {title}",
        f"at least {rules.category:,} persons of the nation in each category",
        "{} of {} categories are smaller, with {} persons; the smallest has {}" + elsewhere,
        (len(small), len(found), int(small.sum()), _least(found)),
        over,
        passed=not len(small),
        judged=nation or not len(small),
        part=int(small.sum()),
        whole=int(found.sum()),
        smallest=_least(found),
        below=len(small),
        units=len(found),
    )


def _least(sizes: pl.Series) -> int:
    return int(sizes.sort()[0])


def _percent(share: float) -> str:
    return f"{100 * share:g}%"
