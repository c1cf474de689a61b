"""Which hidden numbers are given away? How many, in which tables, at which levels, in which areas."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from glasshouse.assess.hidden import WIDE, hidden, narrow_as_printed
from glasshouse.assess.hidden import Rule as Narrow
from glasshouse.report.description import (
    Block,
    Cell,
    Chart,
    Column,
    Count,
    Section,
    Sentence,
    Series,
    Share,
    Table,
    Verdict,
    Words,
)
from glasshouse.report.words import joined, phrase, say
from glasshouse.scenarios.load import Scenario

SECTION, SOURCE = "bounds", "bounds.parquet"
PLACES = 8  # of each level, the places that are ranked
_COUNTED = ("exact", "narrow", "wide")
_FLAGS = ("present", "alike", "undecided")


@dataclass(frozen=True)
class Bounds:
    """What `bounds` found: a row for each number that was asked for, and the numbers that give some of them away.

    `printed` has what was published of numbers that the frame does not have (`level, geoid, variable, lower, upper`),
    for the tables as they are printed. `width` and `percent` are the rule by which a range is narrow. Of a file, only
    counts by table and place are held, and the rows of the few places that are printed.
    """

    frame: pl.DataFrame | pl.LazyFrame
    scenario: Scenario
    reasons: pl.DataFrame | pl.LazyFrame | None = None
    printed: pl.DataFrame | None = None
    width: int = 1
    percent: float = 0.0
    conflicts: int = 0  # places whose numbers cannot all be true: nothing is known of them

    @property
    def judged(self) -> pl.LazyFrame:
        """The numbers by what others give away: of one that is as narrow as it was printed, nothing."""
        as_printed = narrow_as_printed(Narrow(self.width, self.percent))
        return self.frame.lazy().with_columns(
            verdict=pl.when(as_printed).then(pl.lit(WIDE)).otherwise("verdict"), hidden=hidden()
        )

    @cached_property
    def each(self) -> pl.DataFrame:
        """How many numbers of each table are hidden in each place, and what is known of them."""
        verdicts = [(pl.col("verdict") == name).sum().cast(pl.Int64).alias(name) for name in _COUNTED]
        flags = [pl.col("present", "alike").sum().cast(pl.Int64)]
        undecided = (pl.col("proof") == "undecided").sum().cast(pl.Int64).alias("undecided")
        return (
            self.judged.filter("hidden").group_by("table", "level", "geoid")
            .agg(pl.len().cast(pl.Int64).alias("hidden"), *verdicts, *flags, undecided)
            .sort("table", "level", "geoid").collect(engine="streaming")
        )  # fmt: skip

    @cached_property
    def all_hidden(self) -> Hidden:
        return Hidden.of(self.each.select(counted()).row(0, named=True))

    def flagged(self, name: str) -> int:
        """So many hidden numbers are `present`, `alike` or `undecided`."""
        return int(self.each[name].sum())

    @property
    def levels(self) -> list[str]:
        """The levels that have a hidden number, coarse to fine."""
        found = set(self.each["level"])
        return [level for level in self.scenario.geography.levels if level in found]

    def title_of(self, table: str | None) -> str:
        """A table's name and title; numbers of no table were asked for one by one."""
        known = self.scenario.by_table.get(table or "")
        return phrase("bounds.asked") if known is None else f"{known.name} {known.title}"

    def rule(self) -> str:
        """When a range is narrow, in words."""
        key = "bounds.narrow_percent" if self.percent else "bounds.narrow_width"
        return phrase(key, width=self.width, percent=self.percent)


@dataclass(frozen=True)
class Hidden:
    """How many hidden numbers there are, and what is known of them: wide are those that nothing gives away."""

    hidden: int
    exact: int
    narrow: int
    wide: int
    places: int

    @classmethod
    def of(cls, row: dict[str, int]) -> Hidden:
        return cls(*(int(row[name]) for name in ("hidden", *_COUNTED, "places")))

    @property
    def given(self) -> int:
        """So many are given away, exactly or nearly."""
        return self.exact + self.narrow

    def cells(self) -> tuple[Cell, ...]:
        counts = (self.hidden, self.exact, self.narrow, self.wide)
        return (*map(Count, counts), Share(self.exact, self.hidden), Share(self.given, self.hidden))


def counted() -> list[pl.Expr]:
    """What `Hidden` counts, of `Bounds.each` or of its groups."""
    return [pl.col("hidden", *_COUNTED).sum(), pl.struct("level", "geoid").n_unique().alias("places")]


def _grouped(found: Bounds, *by: str) -> dict[tuple[Any, ...], Hidden]:
    rows = found.each.group_by(by, maintain_order=True).agg(counted()).iter_rows(named=True)
    return {tuple(row[name] for name in by): Hidden.of(row) for row in rows}


def headline(found: Bounds) -> Sentence:
    """All of it in one sentence."""
    every = found.all_hidden
    if not every.hidden:
        return phrase("bounds.nothing_hidden")
    return say(
        "bounds.headline", hidden=Count(every.hidden), share=Share(every.given, every.hidden), exact=Count(every.exact),
        narrow=Count(every.narrow), rule=found.rule(),
    )  # fmt: skip


def verdicts(found: Bounds) -> tuple[Verdict, ...]:
    """The numbers of the first screen."""
    every = found.all_hidden
    present, alike = found.flagged("present"), found.flagged("alike")
    cards: list[tuple[str, Cell, Sentence]] = [
        ("given", Share(every.given, every.hidden),
         say("bounds.given_beside", given=Count(every.given), hidden=Count(every.hidden))),
        ("exact", Share(every.exact, every.hidden),
         say("bounds.exact_beside", exact=Count(every.exact), hidden=Count(every.hidden))),
        ("present", Share(present, every.hidden), say("bounds.present_beside", present=Count(present))),
        ("alike", Share(alike, every.hidden), say("bounds.alike_beside", alike=Count(alike))),
    ]  # fmt: skip
    return tuple(
        Verdict(phrase(f"bounds.{name}"), number, beside, phrase(f"bounds.{name}_meaning", rule=found.rule()),
                f"bounds_{name}", SECTION, SOURCE)
        for name, number, beside in cards
    )  # fmt: skip


def given_away(found: Bounds) -> Section:
    """How many hidden numbers can be worked out, by table, by level, and in which places most."""
    lead = headline(found)
    if found.each.is_empty():
        return Section(SECTION, phrase("bounds.title"), lead, ())
    blocks: list[Block] = [Words(_remarks(found)), _by_table(found)]
    if len(found.levels) > 1:
        blocks.append(_by_level(found))
    blocks.append(_by_place(found))
    return Section(SECTION, phrase("bounds.title"), lead, tuple(blocks))


def _remarks(found: Bounds) -> tuple[Sentence, ...]:
    every, numbers = found.all_hidden.hidden, {name: found.flagged(name) for name in _FLAGS}
    remarks = (  # also of none: in public, nothing looks like few
        say(f"bounds.{name}_remark", some=Count(some), share=Share(some, every)) for name, some in numbers.items()
    )
    return phrase("bounds.how", rule=found.rule()), *remarks


def _columns(*keys: str) -> tuple[Column, ...]:
    names = ("hidden", *_COUNTED, "exact_share", "given_share")
    terms = ("", "bounds_exact", "bounds_given", "", "bounds_exact", "bounds_given")
    heads = (Column(phrase(f"bounds.columns.{name}"), term) for name, term in zip(names, terms, strict=True))
    return (*(Column(phrase(f"bounds.columns.{key}")) for key in keys), *heads)


def _by_table(found: Bounds) -> Chart:
    """A bar for each table of the scenario at each level that has hidden numbers: also where nothing is hidden."""
    known = _grouped(found, "table", "level")
    tables = (one for one in found.scenario.tables if one.level in found.levels)
    keys: dict[tuple[Any, ...], None] = {(one.name, one.level): None for one in tables}
    rows = [(key, known.get(key, Hidden(0, 0, 0, 0, 0))) for key in keys | dict.fromkeys(sorted(known, key=str))]
    rows.sort(key=lambda row: (-row[1].given / max(row[1].hidden, 1), -row[1].hidden, found.title_of(row[0][0])))
    table = Table(
        "bounds-by-table", phrase("bounds.by_table"), _columns("table", "level"),
        tuple((found.title_of(table), level, *one.cells()) for (table, level), one in rows),
        phrase("bounds.source", file=SOURCE), keys=2, shown=len(rows), behind=tuple(one.places for _, one in rows),
        order=(7, True),
    )  # fmt: skip
    series = (Series(6, phrase("bounds.exactly"), "bar"), Series(7, phrase("bounds.at_all"), "bar"))
    return Chart(
        "bounds-tables", phrase("bounds.by_table"), phrase("bounds.by_table_says"), table, series,
        phrase("bounds.axis"), most=12,
    )  # fmt: skip


def _by_level(found: Bounds) -> Table:
    known = {level: one for (level,), one in _grouped(found, "level").items()}
    return Table(
        "bounds-by-level", phrase("bounds.by_level"), _columns("level"),
        tuple((level, *known[level].cells()) for level in found.levels), phrase("bounds.source", file=SOURCE),
        behind=tuple(known[level].places for level in found.levels),
    )  # fmt: skip


def _by_place(found: Bounds) -> Chart:
    """The places in which most numbers are given away: for the office alone."""
    ranked = (
        found.each.group_by("level", "geoid").agg(counted())
        .with_columns(given=pl.col("exact") + pl.col("narrow"))
        .sort("given", "exact", "level", "geoid", descending=[True, True, False, False])
    )  # fmt: skip
    without = int((ranked["given"] == 0).sum())
    shown = ranked.filter(pl.int_range(pl.len()).over("level") < PLACES)
    order = {level: at for at, level in enumerate(found.levels)}
    rows = sorted(shown.iter_rows(named=True), key=lambda row: order[row["level"]])  # the ranks of a level stay
    first = ranked.row(0, named=True)
    says = [say("bounds.most", level=first["level"], place=first["geoid"], given=Count(first["given"]),
                hidden=Count(first["hidden"]))]  # fmt: skip
    if without:
        says.append(say("bounds.without", number=Count(without), places=Count(ranked.height)))
    if ranked.height > len(rows):
        says.append(phrase("bounds.some_places", shown=PLACES, places=ranked.height, file=SOURCE))
    table = Table(
        "bounds-by-place", phrase("bounds.by_place"), _columns("level", "place"),
        tuple((row["level"], row["geoid"], *Hidden.of(row).cells()) for row in rows),
        phrase("bounds.source", file=SOURCE), keys=2, records=True, shown=len(rows),
    )  # fmt: skip
    series = (Series(3, phrase("bounds.exactly"), "bar"), Series(4, phrase("bounds.nearly"), "bar"))
    return Chart(
        "bounds-places", phrase("bounds.by_place"), joined(*says), table, series, phrase("bounds.numbers_axis"),
        panel=0, most=PLACES,
    )  # fmt: skip
