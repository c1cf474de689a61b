"""What else do the published numbers give away, and what would stop it? Claims, two agencies, noise, protections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from glasshouse.assess.comparison import COST, front
from glasshouse.model.geography import plural
from glasshouse.report.description import (
    Block,
    Cell,
    Chart,
    Column,
    Count,
    Explorer,
    Measure,
    Noise,
    Section,
    Series,
    Share,
    Table,
    Verdict,
    Words,
)
from glasshouse.report.sections.comparison import named
from glasshouse.report.words import columns, measured, phrase, say
from glasshouse.report.words import table as texts

ONE = "singleton"
SOURCE = "compared/summary.parquet"
# the measures that people look at, in this order; others are in the data files
RISKS = {"found_exposed": "found", "precision_exposed": "precision", "agreement": "agreement", "found_all": "found"}
USES = {  # with the term that says in which unit
    "share_error": "use_shares", "dissimilarity_error": "use_segregation", "population_error": "use_populations",
}  # fmt: skip


@dataclass(frozen=True)
class About:
    """How many people the measures of a comparison are about: all, those on the list, the most exposed."""

    persons: int
    listed: int
    exposed: int

    def found(self, share: float) -> Cell:
        """A share of the most exposed."""
        return _part(share, self.exposed)

    def cell(self, known: Mapping[str, Mapping[str, Any]], key: str, term: str) -> Cell:
        """A measure of one setting: as a share of those it is about, or in the unit of its term."""
        row = known.get(key)
        if row is None or row["value"] is None:
            return None
        if key.startswith("found_"):
            return _part(row["value"], self._of(key), row["low"], row["high"])
        if key.startswith("precision_"):
            return _part(row["value"], self._putative(known, key), row["low"], row["high"])
        return measured(term, row["value"], self.persons, row["low"], row["high"])

    def guess(self, known: Mapping[str, Mapping[str, Any]], key: str) -> Cell:
        row = known.get(key)
        if row is None or row["baseline"] is None:
            return None
        if key.startswith("precision_"):
            return _part(row["baseline"], self._putative(known, key))
        return _part(row["baseline"], self._of(key) if key.startswith("found_") else self.persons)

    def _of(self, key: str) -> int:
        return self.exposed if key.endswith("exposed") else self.listed

    def _putative(self, known: Mapping[str, Mapping[str, Any]], key: str) -> int:
        """How many were linked: the confirmed, over how often that is right."""
        found = known.get(key.replace("precision", "found"))
        if found is None or not found["value"] or not known[key]["value"]:
            return self._of(key)
        return round(float(found["value"]) * self._of(key) / float(known[key]["value"]))


def _part(share: float, whole: int, low: float | None = None, high: float | None = None) -> Cell:
    return Share(round(share * whole), whole, low, high)


def singled_out(row: Mapping[str, Any]) -> Share:
    """The share of households that claims represent: by the truth, or the least that is proved.

    Where nobody is there, or nothing limits how many there are, it is one of nobody: no number.
    """
    known = row["share"] is not None
    part, whole = ("represented", "households") if known else ("represented_least", "households_most")
    return Share(row[part], row[whole], row["share_low"], row["share_high"]) if row[whole] else Share(0, 0)


def claims(
    summary: Mapping[str, Any], examples: pl.DataFrame, place: str, links: tuple[str, ...] = ()
) -> Section:  # fmt: skip
    """Statements that must be true, how many households they single out, and which tables give them away."""
    rows = [row for row in summary.get("by_columns") or () if row["multiplicity"] == ONE]
    table = Table(
        "claims-by-columns", phrase("certain_claims.table"),
        (Column(phrase("certain_claims.traits")), Column(phrase("certain_claims.claims"), "claims"),
         Column(phrase("certain_claims.households"), "persons"), Column(phrase("certain_claims.singled_out"), "claims"),
         Column(phrase("certain_claims.with_claim", places=plural(place)), "claims")),
        tuple(
            (
                str(row["k"]), Count(row["claims"]), None if row["households"] is None else Count(row["households"]),
                singled_out(row),
                Share(row["blocks_with_claim"], row["blocks"], row["block_share_low"], row["block_share_high"]),
            )
            for row in rows
        ),
        phrase("certain_claims.source"),
    )  # fmt: skip
    blocks: list[Block] = [
        Chart("claims-chart", phrase("certain_claims.chart"), phrase("certain_claims.chart_says"), table,
              (Series(3, phrase("certain_claims.singled_out"), "bar"),), phrase("certain_claims.axis"), up=True)
    ]  # fmt: skip
    lost = [row for row in summary.get("leaks") or () if row["change"] == "withheld"]
    if lost:
        leaks = Table(
            "claims-leaks", phrase("certain_claims.leaks"),
            columns("certain_claims.leaks_columns", "", "claims", "share"),
            tuple(
                (row["table"], Count(row["claims"]), Share(row["claims"], row["certain"], row["low"], row["high"]))
                for row in lost
            ),
            phrase("certain_claims.leaks_source"), order=(2, True),
        )  # fmt: skip
        lost_ = (Series(2, phrase("certain_claims.lost"), "bar"),)
        blocks.append(
            Chart("claims-leaks-chart", phrase("certain_claims.leaks_chart"), phrase("certain_claims.leaks_says"),
                  leaks, lost_, phrase("certain_claims.leaks_axis"))
        )  # fmt: skip
    if examples.height:
        blocks.append(Table(
            "claims-examples", phrase("certain_claims.examples"),
            (Column(place), Column(phrase("certain_claims.true"))),
            tuple((row[place], row["description"]) for row in examples.iter_rows(named=True)),
            phrase("certain_claims.examples_source"), keys=2, records=True, links=links,
        ))  # fmt: skip
    lead = say("certain_claims.none")
    if rows:
        how = "lead_least" if rows[0]["share"] is None else "lead"
        lead = say(f"certain_claims.{how}", share=singled_out(rows[0]), places=plural(place), k=rows[0]["k"])
    return Section("claims", phrase("certain_claims.title"), lead, tuple(blocks))


def occupancy(
    summary: Mapping[str, Any], certain: pl.DataFrame, place: str, reading: str, links: tuple[str, ...] = ()
) -> Section:  # fmt: skip
    """What the numbers of two agencies say together, read in this way; `links`: of the places that are certain."""
    blocks = int(summary["blocks"])
    table = Table(
        "occupancy", phrase("occupancy.table"),
        (Column(phrase("occupancy.answer")), Column(plural(place), "violations"),
         Column(phrase("occupancy.share"), "violations")),
        tuple(
            (title, Count(int(summary[key])), Share(int(summary[key]), blocks))
            for key, title in texts("occupancy.answers").items()
        ),
        "occupancy/summary.json",
    )  # fmt: skip
    parts: list[Block] = [table]
    if certain.height:
        parts.append(Table(
            "occupancy-places", phrase("occupancy.where", places=plural(place).capitalize()),
            (Column(place), *columns("occupancy.where_columns", "persons", "persons", "violations", "violations")),
            tuple(
                (row[place], Count(row["households"]), Count(row["subsidised"]), Count(row["violations_low"]),
                 Count(row["violations_high"]))
                for row in certain.iter_rows(named=True)
            ),
            phrase("occupancy.where_source"), records=True, links=links,
        ))  # fmt: skip
    lead = say("occupancy.lead", share=Share(int(summary["certain"]), blocks), places=plural(place), reading=reading)
    return Section("occupancy", phrase("occupancy.title"), lead, tuple(parts))


def noise(levels: Sequence[tuple[str, float, float, float, float]], name: str, prior: float, scale: float) -> Section:
    """What one noisy count gives away: levels with rho, standard deviation, posterior and ratio."""
    table = Table(
        "noise", phrase("noise.table", name=name),
        columns("noise.columns", "", "rho", "", "posterior", "posterior"),
        tuple(
            (level, Measure(rho, 0, "number"), Measure(sd, 0, "number"), Measure(after, 0, "share"),
             Measure(ratio, 0, "number"))
            for level, rho, sd, after, ratio in levels
        ),
        "noise.json", (phrase("noise.prior", prior=prior),),
    )  # fmt: skip
    worst = max(levels, key=lambda one: one[3])
    key, level = "noise.lead_even" if prior == 0.5 else "noise.lead", worst[0].replace("_", " ")
    lead = phrase(key, prior=prior, after=worst[3], level=level)
    block = Noise(
        "noise-sliders", phrase("noise.try"), phrase("noise.try_says"), table,
        tuple((level, rho) for level, rho, *_ in levels), prior, worst[1], scale,
    )  # fmt: skip
    return Section("noise", phrase("noise.title"), lead, (block,))


def protections(summary: pl.DataFrame, about: About, refused: Mapping[str, str], published: str) -> Section:
    """The front of risk and error as an explorer; what could not be tried, and what 'nothing' publishes, is said."""
    risks = {key: value for key, value in RISKS.items() if key in set(summary["measure"])}
    costs = [name for name in summary["measure"].unique(maintain_order=True) if name.startswith(COST)]
    uses = {
        name: (phrase(f"protecting.uses.{kind}", level=_level(name, kind)), term)
        for kind, term in USES.items()
        for name in summary["measure"].unique(maintain_order=True)
        if name.startswith(kind) and (kind != "population_error" or name.endswith(_level(costs[0], COST)))
    }
    titles = texts("protecting.risks")
    columns = [Column(phrase("comparison.setting"), "front"), Column(phrase("comparison.protection"), "protection")]
    columns += [Column(titles[key], term) for key, term in risks.items()]
    columns += [Column(phrase("protecting.error", level=_level(name, COST)), "error") for name in costs]
    columns += [Column(title, term) for title, term in uses.values()]
    terms = {**risks, **dict.fromkeys(costs, "error"), **{name: term for name, (_, term) in uses.items()}}
    guesses = [key for key in risks if _some(summary, key)["baseline"].null_count() < _some(summary, key).height]
    columns += [Column(phrase("protecting.guessing", risk=titles[key]), "guess") for key in guesses]
    rows: list[tuple[Cell, ...]] = []
    for (setting, protect), part in summary.group_by("setting", "protect", maintain_order=True):
        known = {row["measure"]: row for row in part.iter_rows(named=True)}
        cells: list[Cell] = [str(setting), named(str(protect))]
        cells += [about.cell(known, key, term) for key, term in terms.items()]
        cells += [about.guess(known, key) for key in guesses]
        rows.append(tuple(cells))
    table = Table(
        "protections", phrase("protecting.table"), tuple(columns), tuple(rows),
        phrase("protecting.source", file=SOURCE), (published,) if published else (), keys=2,
    )  # fmt: skip
    first = 2 + len(risks)
    explorer = Explorer(
        "explorer", phrase("protecting.explorer"), phrase("protecting.explorer_says"), table,
        tuple(range(2, first)), tuple(range(first, first + len(costs) + len(uses))),
        {2 + list(risks).index(key): len(columns) - len(guesses) + number for number, key in enumerate(guesses)},
    )  # fmt: skip
    points = front(summary)
    best, on_front = _best(points), points.filter(~pl.col("dominated"))["setting"]
    lead = say("protecting.none")
    if best is not None:
        lead = say(
            "protecting.lead_enough" if best.enough else "protecting.lead", front="; ".join(on_front),
            setting=best.name, found=about.found(best.risk),
            guess=None if best.guess is None else about.found(best.guess),
        )  # fmt: skip
    left: tuple[Block, ...] = ()
    if refused:  # why is for the office alone: a complaint about a file may quote it
        why = Table(
            "protections-refused", phrase("protecting.why"),
            (Column(phrase("comparison.setting")), Column(phrase("protecting.reason"))),
            tuple(refused.items()), "compared/manifest.json: refused", keys=2, records=True,
        )  # fmt: skip
        left = (Words((phrase("protecting.refused", settings="; ".join(refused)),)), why)
    return Section("protections", phrase("protecting.title"), lead, (explorer, *left))


def verdict(summary: pl.DataFrame | None, about: About, why_not: str) -> Verdict:
    """The fourth number of the first screen: a protection on the front."""
    title = phrase("protecting.best")
    points = None if summary is None else front(summary)
    best = None if points is None else _best(points)
    if best is None or points is None:
        said = phrase("page.not_measured", reason=why_not or phrase("protecting.no_setting"))
        return Verdict(title, None, said, phrase("protecting.best_meaning"), "found", "methods", SOURCE)
    none = points.filter(pl.col("protect") == "")["risk"].to_list()
    cells: dict[str, Cell] = {
        "found": about.found(best.risk), "error": measured("error", best.cost, about.persons),
        "guess": None if best.guess is None else about.found(best.guess),
        "nothing": about.found(none[0]) if none else None,
    }  # fmt: skip
    beside = say("protecting.best_beside_nothing" if none else "protecting.best_beside", **cells)
    meaning = phrase("protecting.best_enough" if best.enough else "protecting.best_nearest")
    return Verdict(title, best.name, beside, meaning, "found", "protections", SOURCE)


@dataclass(frozen=True)
class _Setting:
    """A point of the front: the risk that is left, what guessing reaches, and the cost."""

    name: str
    risk: float
    low: float | None
    guess: float | None
    cost: float

    @property
    def enough(self) -> bool:
        """Is the attack no better than guessing, as far as its interval tells?"""
        return self.guess is not None and (self.risk if self.low is None else self.low) <= self.guess


def _best(points: pl.DataFrame) -> _Setting | None:
    """The cheapest setting on the front that is no better than guessing, as far as it tells; else the safest."""
    some = points.filter(~pl.col("dominated") & (pl.col("protect") != "")).sort("cost")
    rows = [_Setting(*row) for row in some.select("setting", "risk", "risk_low", "baseline", "cost").iter_rows()]
    return next((row for row in rows if row.enough), min(rows, key=lambda row: row.risk, default=None))


def _some(summary: pl.DataFrame, measure: str) -> pl.DataFrame:
    return summary.filter(pl.col("measure") == measure)


def _level(name: str, kind: str) -> str:
    return name.removeprefix(kind).strip("_").replace("_", " ")
