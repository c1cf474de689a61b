"""What is certain, where, of whom, and which tables give it away? The report's answers from the tables alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from glasshouse.assess.microdata import RuleResult
from glasshouse.assess.one_solution import one_solution
from glasshouse.assess.variability import published
from glasshouse.model.bands import ALL
from glasshouse.model.geography import plural
from glasshouse.report.description import (
    Block,
    Cell,
    Chart,
    Column,
    Count,
    Map,
    Measure,
    Section,
    Sentence,
    Series,
    Shape,
    Share,
    Table,
    Verdict,
    Words,
)
from glasshouse.report.sections.methods import label
from glasshouse.report.words import columns, joined, phrase, say, several

PLACES = "solvar/places.parquet"


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
            return Share(self.certain, self.persons, everybody=True)
        return Measure(low, self.persons, "share", low, high)

    @property
    def solvar(self) -> Measure:
        low, high = self.head["solvar_mean"], self.head["solvar_mean_upper"]
        return Measure(low, self.persons, "share") if low == high else Measure(low, self.persons, "share", low, high)

    @property
    def one_solution(self) -> Share:
        blocks, share = int(self.head["blocks"]), self.head["zero_solvar_share"]
        return Share(
            round(share * blocks), blocks, self.head["zero_solvar_share_low"], self.head["zero_solvar_share_high"]
        )


def verdicts(found: Certainty) -> tuple[Verdict, Verdict]:
    """The first two numbers of the first screen."""
    places, census = plural(found.place), "_beside" if found.reference else ""
    certain, solvar = _census()[ALL], float(published("S4")["cumulative_solvar"][-1])
    return (
        Verdict(
            phrase("certainty.people"), found.share,
            say(f"certainty.people_beside{census}", share=found.one_solution, places=places,
                reference=found.reference, theirs=certain),
            phrase("certainty.people_meaning", what=_listed([found.place, *found.compared])),
            "certain", "size", PLACES,
        ),
        Verdict(
            phrase("certainty.records"), found.solvar,
            phrase(f"certainty.records_beside{census}", reference=found.reference, theirs=solvar),
            phrase("certainty.records_meaning"), "solvar", "size", PLACES,
        ),
    )  # fmt: skip


def where(found: Certainty, shapes: tuple[str, Mapping[str, Shape]] | None) -> Section:
    """Areas ranked, and a map if it is known where they lie."""
    areas = _areas(found, found.unit)
    top, bottom = areas.rows[0] if areas.rows else None, areas.rows[-1] if areas.rows else None
    blocks: list[Block] = []
    if shapes is not None:
        blocks.append(_map(found, areas, *shapes))
    units = plural(found.unit).capitalize()
    blocks.append(
        Chart("areas-ranked", phrase("where.ranked", units=units), phrase("where.ranked_says", units=units), areas,
              (Series(2, phrase("columns.certain"), "bar"),), phrase("where.axis"), most=15)
    )  # fmt: skip
    lead = say("where.none")
    if top is not None and bottom is not None:
        lead = say(
            "where.lead", least=bottom[2], most=top[2], number=len(areas.rows), units=plural(found.unit)
        ) if len(areas.rows) > 1 else say("where.lead_one", unit=found.unit, share=top[2])  # fmt: skip
        ends = [cell.value for cell in (top[2], bottom[2]) if isinstance(cell, Share)]
        if len(areas.rows) > 1 and len(set(ends)) == 1:
            lead = say("where.lead_same", number=len(areas.rows), units=plural(found.unit), share=top[2])
    return Section("where", phrase("where.title"), lead, tuple(blocks), ranks=True)


def _areas(found: Certainty, level: str) -> Table:
    zero = one_solution("solvar_upper")
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
    columns = [Column(level), *(Column(phrase(f"columns.{term}"), term) for term in ("persons", "certain", "solvar"))]
    columns += [] if one else [Column(phrase("where.one_solution", places=plural(found.place)), "one_solution")]
    return Table(
        f"areas-{level}",
        phrase("where.table", level=level),
        tuple(columns),
        tuple(
            (
                row[level], Count(row["population"]), Share(row["certain"], row["population"]),
                Measure(row["solvar"], row["population"], "share"),
                *(() if one else (Share(row["zero"], row["places"]),)),
            )
            for row in rows.iter_rows(named=True)
        ),
        phrase("where.source", file=PLACES, level=level),
        records=one,
        order=(2, True),
        inhabited=True,
    )  # fmt: skip


def _map(found: Certainty, areas: Table, level: str, shapes: Mapping[str, Shape]) -> Map:
    table = areas if level == found.unit else _areas(found, level)
    there = {row[0] for row in table.rows}
    kept = {code: shape for code, shape in shapes.items() if code in there}
    title, says = phrase("where.map", level=level), phrase("where.map_says", level=level)
    return Map("map", title, says, table, 2, kept, phrase("where.axis"))


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
        ]
        ends += [(share.value, f"{title}: {label}", share) for label, _, share in rows if share.whole >= 100]
        table = Table(
            f"who-{attribute}", phrase("who.table", trait=title),
            (Column(title), Column(phrase("columns.records"), "persons"), Column(phrase("columns.certain"), "certain")),
            tuple(rows), phrase("who.source"), several("who.notes"),
        )  # fmt: skip
        blocks.append(
            Chart(f"who-{attribute}-chart", phrase("who.chart", trait=title), phrase("who.chart_says", trait=title),
                  table, (Series(2, phrase("columns.certain"), "bar"),), phrase("where.axis"), most=30)
        )  # fmt: skip
    lead = say("who.none")
    if len(ends) > 1:
        low, high = min(ends), max(ends)
        lead = say("who.lead", most=high[1], high=high[2], least=low[1], low=low[2])
        if low[0] == high[0]:
            lead = say("who.lead_same", share=low[2])
    return Section("who", phrase("who.title"), lead, tuple(blocks), ranks=True)


def why(leaks: pl.DataFrame, place: str, unit: str) -> Section:
    """What withholding each family of tables would change."""
    rows: list[tuple[Cell, ...]] = []
    for row in leaks.sort(pl.col("not_compared") == "", pl.col("without").fill_null(-1), "tables").iter_rows(
        named=True
    ):
        before, name = Share(row["certain"], row["records"]), f"{row['tables']}: {row['title']}"
        if row["without"] is None or row["not_compared"]:  # compared in less, more would seem certain
            told = row["not_compared"]
            if row["without"] is not None:
                told = phrase("why.nothing_told", traits=told)
            rows.append((name, None, before, None, told))
            continue
        after = Share(row["without"], row["records"])
        rows.append((name, after, before, Measure(after.value - before.value, row["records"], "points"), ""))
    first = leaks.row(0, named=True)
    table = Table(
        "withheld", phrase("why.table"),
        columns("why.columns", "", "withheld", "certain", "", ""),
        tuple(rows), phrase("why.source"), several("why.notes"), order=(1, False),
    )  # fmt: skip
    chart = Chart(
        "withheld-chart", phrase("why.chart"), phrase("why.chart_says"), table,
        (Series(1, phrase("why.without"), "dot"), Series(2, phrase("why.with"), "ring")), phrase("where.axis"), most=30,
    )  # fmt: skip
    looked = {"blocks": Count(first["blocks"]), "units": Count(first["units"], people=False)}
    base = Words((say("why.looked_at", **looked, places=plural(place), areas=plural(unit)),))
    return Section("why", phrase("why.title"), _why_in_words(rows), (base, chart), ranks=True)


def _why_in_words(rows: Sequence[tuple[Cell, ...]]) -> Sentence:
    """Which tables it is owed to."""
    alone = [str(row[0]) for row in rows if row[1] is None]
    strong = [row for row in rows if isinstance(row[3], Measure) and row[3].value < -0.005]
    parts: list[Sentence] = []
    if alone:
        parts.append(say("why.not_told", families=_listed(alone[:3])))
    if strong:
        family, without, with_all = strong[0][:3]
        parts.append(say("why.strong", family=str(family), without=without, all=with_all))
        if weak := len(rows) - len(strong) - len(alone):
            parts.append(say("why.weak", weak=weak, families=len(rows)))
    return joined(*parts) if parts else say("why.none")


def size(found: Certainty) -> Section:
    """Certainty by the size of places, beside the published figures."""
    census = _census() if found.reference else {}
    rows: list[tuple[Cell, ...]] = []
    for row in found.by_size:
        share = Share(row["zero_blocks"], row["blocks"], row["zero_share_low"], row["zero_share_high"])
        certain = Share(round((row["certain_share"] or 0) * row["population"]), row["population"])
        printed = [Measure(census[row["band"]], 0, "share")] if census else []
        rows.append((row["band"], Count(row["blocks"]), Count(row["population"]), share, certain, *printed))
    places, theirs = plural(found.place), phrase("size.published", reference=found.reference)
    table = Table(
        "by-size", phrase("size.table", place=found.place),
        (Column(phrase("columns.persons")), Column(places), Column(phrase("size.people"), "persons"),
         Column(phrase("size.one_solution"), "one_solution"), Column(phrase("size.certain"), "certain"),
         *([Column(theirs, "one_solution", published=True)] if census else [])),
        tuple(rows), phrase("size.source_beside" if census else "size.source"),
        (phrase("size.note", places=places, reference=found.reference),) if census else (), places=1,
    )  # fmt: skip
    chart = Chart(
        "by-size-chart", phrase("size.chart", places=places.capitalize()), phrase("size.chart_says", places=places),
        table, (Series(3, phrase("size.ours"), "dot"), *([Series(5, theirs, "ring")] if census else [])),
        phrase("size.axis"), up=True, most=len(rows) - 1,
    )  # fmt: skip
    more = found.head["share_certain"] > found.head["zero_solvar_population_share"]
    lead = say(
        "size.lead_more" if more else "size.lead", one=found.one_solution, certain=found.share, places=places,
        place=found.place,
    )  # fmt: skip
    undecided = int(found.head["undecided"])
    notes = (Words((say("size.undecided", number=Count(undecided), places=places),)),) if undecided else ()
    return Section("size", phrase("size.title"), lead, (chart, *notes))


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
        "rules", phrase("rules.table"),
        columns("rules.columns", "", "", "rule", "persons", "", "", ""),
        tuple(
            (
                one.title, one.wants, Share(one.part, one.whole),
                None if one.smallest is None else Count(one.smallest),
                Count(one.below) if one.units else None,
                Count(one.units) if one.units else None,
                phrase("rules.not_judged" if not one.judged else "rules.kept" if one.passed else "rules.broken"),
            )
            for one in results
        ),
        phrase("rules.source"), tuple(dict.fromkeys(phrase("rules.over", over=one.over) for one in results)),
    )  # fmt: skip
    lead = phrase("rules.no", tests=len(judged), broken=len(broken)) if broken else phrase("rules.yes")
    return Section("rules", phrase("rules.title"), lead, (table,))


def _listed(names: Sequence[str]) -> str:
    return "".join(names) if len(names) < 2 else f"{', '.join(names[:-1])}{phrase('page.and')}{names[-1]}"
