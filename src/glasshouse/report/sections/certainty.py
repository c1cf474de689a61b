"""What is certain, where, of whom, and which tables give it away? The report's answers from the tables alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from glasshouse.assess.microdata import RuleResult
from glasshouse.assess.variability import ALL, published
from glasshouse.model.geography import plural
from glasshouse.report.description import (
    Block,
    Cell,
    Chart,
    Column,
    Count,
    Map,
    Measure,
    Said,
    Section,
    Sentence,
    Series,
    Shape,
    Share,
    Table,
    Verdict,
    Words,
    literal,
)
from glasshouse.report.sections.methods import label

PLACES = "solvar/places.parquet"
_CLASSES = (
    "A record is compared in the finest classes that the tables of its place tell apart. Where they are finer, as "
    "single years of age are for the young, being certain asks for more."
)


@dataclass(frozen=True)
class Certainty:
    """What `vary` found: its headline, by size, and of each place; the names of the levels, and of what is compared.

    `reference` is the census whose published figures are of the same tables, if they are.
    """

    head: Mapping[str, Any]
    by_size: Sequence[Mapping[str, Any]]
    places: pl.DataFrame
    place: str
    unit: str
    compared: Sequence[str]  # the attributes of a record, written out
    reference: str = ""

    @property
    def persons(self) -> int:
        return int(self.head["population"])

    @property
    def certain(self) -> int:
        return int(self.places["certain"].sum())

    @property
    def share(self) -> Cell:
        low, high = self.head["share_certain"], self.head["share_certain_upper"]
        if low == high:
            return Share(self.certain, self.persons)
        return Measure(low, self.persons, "share", low, high)

    @property
    def solvar(self) -> Measure:
        low, high = self.head["solvar_mean"], self.head["solvar_mean_upper"]
        return Measure(low, self.persons) if low == high else Measure(low, self.persons, "share", low, high)

    @property
    def one_solution(self) -> Share:
        blocks, share = int(self.head["blocks"]), self.head["zero_solvar_share"]
        return Share(
            round(share * blocks), blocks, self.head["zero_solvar_share_low"], self.head["zero_solvar_share_high"]
        )


def verdicts(found: Certainty) -> tuple[Verdict, Verdict]:
    """The first two numbers of the first screen."""
    what = _listed([found.place, *found.compared])
    ours, theirs = (
        (f" {found.reference}, published: {_census()[ALL]:.1%}.",
         f"{found.reference}, published: {published('S4')['cumulative_solvar'][-1]:.1%}. ")
        if found.reference else ("", "")
    )  # fmt: skip
    return (
        Verdict(
            "People whose record is certain", found.share,
            Said(
                f"Tables that give nothing away: 0%. {{}} of {plural(found.place)} have one solution only.{ours}",
                (found.one_solution,),
            ),
            f"Their {what} follow from the tables alone: they are in every set of records that fits.",
            "certain", "size", PLACES,
        ),
        Verdict(
            "Records that could still differ (solvar)", found.solvar, f"{theirs}At 0% every record would be known.",
            "How much of a place another set of records that fits the tables could change, at most: on average over "
            "people.",
            "solvar", "size", PLACES,
        ),
    )  # fmt: skip


def where(found: Certainty, shapes: tuple[str, Mapping[str, Shape]] | None) -> Section:
    """Areas ranked, and a map if it is known where they lie."""
    areas = _areas(found, found.unit)
    top, bottom = areas.rows[0] if areas.rows else None, areas.rows[-1] if areas.rows else None
    blocks: list[Block] = []
    if shapes is not None:
        blocks.append(_map(found, areas, *shapes))
    most = min(len(areas.rows), 15)
    says = f"{plural(found.unit).capitalize()} by their share of certain records, the largest first (at most 15)."
    blocks.append(
        Chart("areas-ranked", f"{plural(found.unit).capitalize()}, ranked", says, areas, (Series(2, "certain", "bar"),),
              "share of records that are certain", most=most)
    )  # fmt: skip
    lead: Any = "Every area is one of the areas of the tables."
    if top is not None and bottom is not None:
        lead = Said(
            f"The share of records that are certain goes from {{}} to {{}} among {len(areas.rows):,} "
            f"{plural(found.unit)}.",
            (bottom[2], top[2]),
        )
        if len(areas.rows) == 1:
            lead = Said(f"There is one {found.unit}; {{}} of its records are certain.", (top[2],))
    return Section("where", "Where", lead, tuple(blocks))


def _areas(found: Certainty, level: str) -> Table:
    zero = (pl.col("solvar_upper") == 0) & (pl.col("proof") != "undecided")
    rows = (
        found.places.filter(pl.col("population") > 0)
        .group_by(level)
        .agg(
            pl.col("population").sum(), pl.col("certain").sum(), pl.len().alias("places"), zero.sum().alias("zero"),
            ((pl.col("solvar") * pl.col("population")).sum() / pl.col("population").sum()).alias("solvar"),
        )
        .sort(pl.col("certain") / pl.col("population"), level, descending=[True, False])
    )  # fmt: skip
    one = level == found.place
    columns = [Column(level), Column("persons", "persons"), Column("certain", "certain"), Column("solvar", "solvar")]
    columns += [] if one else [Column(f"{plural(found.place)} with one solution", "one_solution")]
    return Table(
        f"areas-{level}",
        f"Certainty by {level}",
        tuple(columns),
        tuple(
            (
                row[level], Count(row["population"]), Share(row["certain"], row["population"]),
                Measure(row["solvar"], row["population"]),
                *(() if one else (Share(row["zero"], row["places"]),)),
            )
            for row in rows.iter_rows(named=True)
        ),
        f"{PLACES}: rows with population above 0, by {level}; certain / population, the mean of solvar over persons, "
        "rows with solvar_upper = 0",
        records=one,
    )  # fmt: skip


def _map(found: Certainty, areas: Table, level: str, shapes: Mapping[str, Shape]) -> Map:
    table = areas if level == found.unit else _areas(found, level)
    there = {row[0] for row in table.rows}
    kept = {code: shape for code, shape in shapes.items() if code in there}
    says = f"Every {level} where it lies; the stronger the shade, the larger the share of its records that is certain."
    return Map("map", f"Certain records by {level}", says, table, 2, kept, "share of records that are certain")


def who(groups: pl.DataFrame) -> Section:
    """Shares of certain records by what the tables group people by."""
    blocks: list[Block] = []
    summed = groups.group_by("attribute", "group", "order", maintain_order=True).agg(pl.col("records", "certain").sum())
    ends: list[tuple[float, str, Share]] = []
    for (attribute,), part in summed.group_by("attribute", maintain_order=True):
        title = label(str(attribute))
        rows = [
            (label(row["group"]), Count(row["records"]), Share(row["certain"], row["records"]))
            for row in part.sort("order").iter_rows(named=True)
            if row["records"]
        ]
        ends += [(share.value, f"{title}: {label}", share) for label, _, share in rows if share.whole >= 100]
        table = Table(
            f"who-{attribute}", f"Certainty by {title}",
            (Column(title), Column("records", "persons"), Column("certain", "certain")), tuple(rows),
            "solvar/groups.parquet: certain and records of this attribute, summed over all units",
            ("Counted over the rebuilt records, which give every published number back.", _CLASSES),
        )  # fmt: skip
        says = f"The share of records that are certain, by {title} as the tables group it."
        blocks.append(
            Chart(f"who-{attribute}-chart", f"By {title}", says, table, (Series(2, "certain", "bar"),),
                  "share of records that are certain", most=30)
        )  # fmt: skip
    lead: Any = "Who is certain, by what the tables group people by."
    if len(ends) > 1:
        low, high = min(ends), max(ends)
        lead = Said(
            f"Of groups with a hundred records or more, most certain: {literal(high[1])} ({{}}); least: "
            f"{literal(low[1])} ({{}}).",
            (high[2], low[2]),
        )
    return Section("who", "Who", lead, tuple(blocks))


def why(leaks: pl.DataFrame, place: str, unit: str) -> Section:
    """What withholding each family of tables would change."""
    rows: list[tuple[Cell, ...]] = []
    for row in leaks.sort(pl.col("not_compared") == "", pl.col("without").fill_null(-1), "tables").iter_rows(
        named=True
    ):
        before, name = Share(row["certain"], row["records"]), f"{row['tables']}: {row['title']}"
        if row["without"] is None or row["not_compared"]:  # compared in less, more would seem certain
            told = (
                f"nothing would be told of {row['not_compared']}" if row["without"] is not None else row["not_compared"]
            )
            rows.append((name, None, before, None, told))
            continue
        after = Share(row["without"], row["records"])
        rows.append((name, after, before, Measure(after.value - before.value, row["records"], "points"), ""))
    first = leaks.row(0, named=True)
    table = Table(
        "withheld", "Certain records if a family of tables were withheld",
        (Column("withheld"), Column("certain without", "withheld"), Column("certain with all", "certain"),
         Column("change"), Column("note")),
        tuple(rows),
        "leaks.parquet: without / records, certain / records; each row is a run of vary without these tables",
        ("Where the other tables no longer tell an attribute apart, the shares cannot be compared.",),
    )  # fmt: skip
    says = "Each dot: the share of records that would still be certain without these tables; rings: with all tables."
    chart = Chart(
        "withheld-chart", "What each family of tables gives away", says, table,
        (Series(1, "without these tables", "dot"), Series(2, "with all tables", "ring")),
        "share of records that are certain", most=30,
    )  # fmt: skip
    base = Words((
        Said(f"Looked at: {{}} {plural(place)} in {{}} {plural(unit)}, drawn with the seed.",
             (Count(first["blocks"]), Count(first["units"], people=False))),
    ))  # fmt: skip
    return Section("why", "Why", _why_in_words(rows), (base, chart))


def _why_in_words(rows: Sequence[tuple[Cell, ...]]) -> Sentence:
    """Which tables it is owed to."""
    alone = [str(row[0]) for row in rows if row[1] is None]
    strong = [row for row in rows if isinstance(row[3], Measure) and row[3].value < -0.005]
    said = ""
    if alone:
        said = f"Without {literal(_listed(alone[:3]))} some traits would not be told at all. "
    weak = len(rows) - len(strong) - len(alone)
    rest = f" {weak} of {len(rows)} families change next to nothing when only they are withheld." if weak else ""
    if strong:
        return Said(
            f"{said}Without {literal(str(strong[0][0]))}, {{}} of the records looked at would be certain instead of "
            f"{{}}.{rest}",
            (strong[0][1], strong[0][2]),
        )
    return said or "No family of tables gives it away alone: what each tells is repeated by others."


def size(found: Certainty) -> Section:
    """Certainty by the size of places, beside the published figures."""
    census = _census() if found.reference else {}
    rows: list[tuple[Cell, ...]] = []
    for row in found.by_size:
        if row["blocks"]:
            share = Share(row["zero_blocks"], row["blocks"], row["zero_share_low"], row["zero_share_high"])
            certain = Share(round(row["certain_share"] * row["population"]), row["population"])
            printed = [Measure(census[row["band"]], 0)] if census else []
            rows.append((row["band"], Count(row["blocks"]), Count(row["population"]), share, certain, *printed))
    theirs = f"{found.reference}, published"
    table = Table(
        "by-size", f"Certainty by the size of the {found.place}",
        (Column("persons"), Column(plural(found.place)), Column("people", "persons"),
         Column("with one solution", "one_solution"), Column("certain records", "certain"),
         *([Column(theirs, "one_solution", published=True)] if census else [])),
        tuple(rows), f"solvar/summary.json: by_size{'; published: Abowd et al., Table S5' if census else ''}",
        (f"The published figures are of all {plural(found.place)} of the {found.reference} of the United States, by "
         "the same tables.",) if census else (),
        places=1,
    )  # fmt: skip
    says = f"The share of {plural(found.place)} of a size that have one solution; lines are 95% intervals."
    chart = Chart(
        "by-size-chart", f"{plural(found.place).capitalize()} with one solution, by number of persons", says, table,
        (Series(3, "these tables", "dot"), *([Series(5, theirs, "ring")] if census else [])),
        "share with one solution", up=True, most=len(rows) - 1,
    )  # fmt: skip
    more = (
        f", more than live in those {plural(found.place)}, since records can be certain where a {found.place} as a "
        "whole is not"
        if found.head["share_certain"] > found.head["zero_solvar_population_share"]
        else ""
    )
    lead = Said(
        f"{{}} of {plural(found.place)} have one solution; {{}} of all records are certain{more}.",
        (found.one_solution, found.share),
    )
    undecided = int(found.head["undecided"])
    notes = (Words((Said(f"Undecided within the limits of this run: {{}} {plural(found.place)}; their bounds are used.",
                         (Count(undecided),)),)),) if undecided else ()  # fmt: skip
    return Section("size", "How sure, by size of place", lead, (chart, *notes))


def _census() -> dict[str, float]:
    """Blocks with one solution in the 2010 Census by size, as printed; of all sizes, from the printed counts."""
    printed = published("S5")
    shares = dict(printed.select("band", "zero_share").iter_rows())
    return {**shares, ALL: int(printed["zero_blocks"].sum()) / int(printed["blocks"].sum())}


def rules(results: Sequence[RuleResult]) -> Section:
    """Would the rebuilt records have passed the office's own rules for microdata?"""
    judged = [one for one in results if one.judged]
    broken = [one for one in judged if not one.passed]
    table = Table(
        "rules", "The rebuilt records and the rules for microdata",
        (Column("rule"), Column("the rule wants"), Column("persons concerned", "rule"), Column("smallest", "persons"),
         Column("too small"), Column("of"), Column("verdict")),
        tuple(
            (
                one.title, one.wants, Share(one.part, one.whole),
                None if one.smallest is None else Count(one.smallest),
                Count(one.below, people=False) if one.units else None,
                Count(one.units, people=False) if one.units else None,
                "not judged here" if not one.judged else "kept" if one.passed else "broken",
            )
            for one in results
        ),
        "rebuilt/records.parquet and solvar/places.parquet, counted over their columns",
        tuple(dict.fromkeys(f"Taken over: {one.over}." for one in results)),
    )  # fmt: skip
    lead = (
        f"No: of {len(judged)} tests that can be made here, {len(broken)} fail. The tables were published under their "
        "own rules; the records that follow from them were not."
        if broken
        else "As far as this can be judged here, yes."
    )
    return Section("rules", "Would these records have been released?", lead, (table,))


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else ""
