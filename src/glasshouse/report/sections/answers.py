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
    Said,
    Section,
    Series,
    Share,
    Table,
    Verdict,
    Words,
    literal,
)
from glasshouse.report.sections.comparison import named

ONE = "singleton"
SOURCE = "compared/summary.parquet"
# the measures that people look at, in this order; others are in the data files
RISKS = {
    "found_exposed": ("exposed people found", "found"), "precision_exposed": ("precision for the exposed", "precision"),
    "agreement": ("records that agree with the truth", "agreement"),
    "found_all": ("everybody found", "found"),
}  # fmt: skip
USES = {
    "share_error": ("error of shares", "use"), "dissimilarity_error": ("error of segregation", "use"),
    "population_error": ("error of populations", "use"),
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

    def cell(self, known: Mapping[str, Mapping[str, Any]], key: str) -> Cell:
        """A measure of one setting, as a share of those it is about."""
        row = known.get(key)
        if row is None or row["value"] is None:
            return None
        if key.startswith("found_"):
            return _part(row["value"], self._of(key), row["low"], row["high"])
        if key.startswith("precision_"):
            return _part(row["value"], self._putative(known, key), row["low"], row["high"])
        return Measure(row["value"], self.persons, "share", row["low"], row["high"])

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
    return Share(round(share * whole), whole, low, high) if whole else None


def claims(summary: Mapping[str, Any], examples: pl.DataFrame, place: str) -> Section:
    """Statements that must be true, how many households they single out, and which tables give them away."""
    rows = [row for row in summary["by_columns"] if row["multiplicity"] == ONE]
    table = Table(
        "claims-by-columns", "Households singled out for certain, by how much a claim says",
        (Column("traits named, at least"), Column("claims", "claims"), Column("households", "persons"),
         Column("singled out", "claims"), Column(f"{plural(place)} with such a claim", "claims")),
        tuple(
            (
                str(row["k"]), Count(row["claims"]), Count(row["households"]),
                Share(row["represented"], row["households"], row["share_low"], row["share_high"]),
                Share(row["blocks_with_claim"], row["blocks"], row["block_share_low"], row["block_share_high"]),
            )
            for row in rows
        ),
        "claims/summary.json: by_columns, multiplicity 'singleton'",
    )  # fmt: skip
    blocks: list[Block] = [
        Chart("claims-chart", "Households singled out",
              "The more a claim says, the fewer households it can be proved of.", table,
              (Series(3, "singled out", "bar"),), "share of households", up=True)
    ]  # fmt: skip
    lost = [row for row in summary.get("leaks", ()) if row["change"] == "withheld" and row["claims"]]
    if lost:
        leaks = Table(
            "claims-leaks", "Claims lost if a family of tables were withheld",
            (Column("withheld"), Column("claims lost", "claims"), Column("share of all claims", "share")),
            tuple(
                (row["table"], Count(row["claims"]), Share(row["claims"], row["certain"], row["low"], row["high"]))
                for row in lost
            ),
            "claims/summary.json: leaks", ("Families that change nothing alone are left out.",),
        )  # fmt: skip
        says = "The share of certain claims that only these tables, on top of all others, give away."
        blocks.append(
            Chart("claims-leaks-chart", "Which tables give the claims away", says, leaks, (Series(2, "lost", "bar"),),
                  "share of claims lost")
        )  # fmt: skip
    if examples.height:
        blocks.append(Table(
            "claims-examples", "Some of them, in words", (Column(place), Column("what must be true")),
            tuple((row[place], row["description"]) for row in examples.iter_rows(named=True)),
            "claims/claims.parquet: one household, as many columns as there are", keys=2, records=True,
        ))  # fmt: skip
    first: Any = next(iter(rows), None)
    lead: Any = "Nothing could be proved of single households."
    if first is not None and first["households"]:
        lead = Said(
            f"{{}} of households in the {plural(place)} looked at are singled out for certain by a statement about "
            f"{first['k']} or more of their traits.",
            (Share(first["represented"], first["households"], first["share_low"], first["share_high"]),),
        )
    return Section("claims", "What must be true of households", lead, tuple(blocks))


def occupancy(summary: Mapping[str, Any], found: pl.DataFrame, place: str) -> Section:
    """What the numbers of two agencies say together."""
    blocks = int(summary["blocks"])
    table = Table(
        "occupancy", "What follows from both agencies' numbers",
        (Column("answer"), Column(plural(place), "violations"), Column("share", "violations")),
        tuple(
            (title, Count(int(summary[key])), Share(int(summary[key]), blocks) if blocks else None)
            for key, title in (
                ("certain", "somebody breaks the rule, for certain"), ("open", "perhaps nobody does"),
                ("contradiction", "nothing fits the numbers"), ("undecided", "undecided"),
            )
        ),
        "occupancy/summary.json",
    )  # fmt: skip
    parts: list[Block] = [table]
    certain = found.filter(pl.col("answer") == "certain")
    if certain.height:
        parts.append(Table(
            "occupancy-places", f"{plural(place).capitalize()} where it is certain",
            (Column(place), Column("households", "persons"), Column("subsidised", "persons"),
             Column("violations, at least", "violations"), Column("at most", "violations")),
            tuple(
                (row[place], Count(row["households"]), Count(row["subsidised"]), Count(row["violations_low"]),
                 Count(row["violations_high"]))
                for row in certain.iter_rows(named=True)
            ),
            "occupancy/places.parquet: answer 'certain'; why, in occupancy/reasons.parquet", records=True,
        ))  # fmt: skip
    lead = Said(
        f"In {{}} of {plural(place)} with subsidised housing a household must be breaking the occupancy rule, though "
        "neither agency says so.",
        (Share(int(summary["certain"]), blocks) if blocks else None,),
    )  # fmt: skip
    return Section("occupancy", "Two agencies together", lead, tuple(parts))


def noise(levels: Sequence[tuple[str, float, float, float, float]], name: str, prior: float, scale: float) -> Section:
    """What one noisy count gives away: levels with rho, standard deviation, posterior and ratio."""
    table = Table(
        "noise", f"One noisy count of each level ({name})",
        (Column("level"), Column("rho", "rho"), Column("noise (standard deviation)"),
         Column("average posterior", "posterior"), Column("times the prior", "posterior")),
        tuple(
            (level, Measure(rho, 0, "number"), Measure(sd, 0, "number"), Measure(after, 0), Measure(ratio, 0, "number"))
            for level, rho, sd, after, ratio in levels
        ),
        "noise.json", (f"Prior {prior:g}: what the adversary believed before.",),
    )  # fmt: skip
    worst = max(levels, key=lambda one: one[3])
    lead = (
        f"An adversary who knows everybody else and gives even odds ({prior:.0%}) to one person's answer comes to "
        f"believe {worst[3]:.1%}, on average, after seeing the noisy count of one {worst[0].replace('_', ' ')}."
        if prior == 0.5
        else f"A prior of {prior:.0%} becomes {worst[3]:.1%}, on average, after one noisy count of the level "
        f"{worst[0].replace('_', ' ')}."
    )
    says = "Move the prior and rho: the average posterior is computed by the exact formula, in this page."
    block = Noise(
        "noise-sliders", "Try it", says, table, tuple((level, rho) for level, rho, *_ in levels), prior, worst[1], scale
    )
    return Section("noise", "What one noisy count would give away", lead, (block,))


def protections(summary: pl.DataFrame, about: About, refused: Mapping[str, str], published: str) -> Section:
    """The front of risk and error as an explorer; what could not be tried, and what 'nothing' publishes, is said."""
    risks = {key: value for key, value in RISKS.items() if key in set(summary["measure"])}
    costs = [name for name in summary["measure"].unique(maintain_order=True) if name.startswith(COST)]
    uses = {
        name: (f"{USES[kind][0]} ({_level(name, kind)})", USES[kind][1])
        for kind in USES
        for name in summary["measure"].unique(maintain_order=True)
        if name.startswith(kind) and (kind != "population_error" or name.endswith(_level(costs[0], COST)))
    }
    columns = [Column("setting", "front"), Column("protection", "protection")]
    columns += [Column(title, term) for title, term in risks.values()]
    columns += [Column(f"error of {_level(name, COST)} tables", "error") for name in costs]
    columns += [Column(title, term) for title, term in uses.values()]
    guesses = [key for key in risks if _some(summary, key)["baseline"].null_count() < _some(summary, key).height]
    columns += [Column(f"guessing: {risks[key][0]}", "guess") for key in guesses]
    rows: list[tuple[Cell, ...]] = []
    for (setting, protect), part in summary.group_by("setting", "protect", maintain_order=True):
        known = {row["measure"]: row for row in part.iter_rows(named=True)}
        cells: list[Cell] = [str(setting), named(str(protect))]
        cells += [about.cell(known, key) for key in (*risks, *costs, *uses)]
        cells += [about.guess(known, key) for key in guesses]
        rows.append(tuple(cells))
    table = Table(
        "protections", "Every setting, every measure", tuple(columns), tuple(rows),
        f"{SOURCE}: value, low, high and baseline of each measure", (published,) if published else (), keys=2,
    )  # fmt: skip
    first = 2 + len(risks)
    explorer = Explorer(
        "explorer", "Risk against error",
        "Each mark is a setting; a line joins those that no other beats in both. Choose two to compare them.", table,
        tuple(range(2, first)), tuple(range(first, first + len(costs) + len(uses))),
        {2 + list(risks).index(key): len(columns) - len(guesses) + number for number, key in enumerate(guesses)},
    )  # fmt: skip
    best, on_front = _best(summary), front(summary).filter(~pl.col("dominated"))["setting"]
    lead: Any = "The same attacks on every protection."
    if best is not None:
        lead = Said(
            f"Where no other does better in both: {literal('; '.join(on_front))}. "
            + (
                f"The cheapest that brings the attack on the most exposed down to guessing: {literal(best['setting'])}"
                if _enough(best)
                else f"None brings the attack on the most exposed down to guessing; nearest comes "
                f"{literal(best['setting'])}"
            )
            + ", with {} of them found (guessing {}).",
            (about.found(best["risk"]), None if best["baseline"] is None else about.found(best["baseline"])),
        )
    left: tuple[Block, ...] = ()
    if refused:  # why is for the office alone: a complaint about a file may quote it
        why = Table(
            "protections-refused", "Why they could not be tried", (Column("setting"), Column("reason")),
            tuple(refused.items()), "compared/manifest.json: refused", keys=2, records=True,
        )  # fmt: skip
        left = (Words((f"Could not be tried: {'; '.join(refused)}.",)), why)
    return Section("protections", "What would protect people, and what it costs", lead, (explorer, *left))


def verdict(summary: pl.DataFrame | None, about: About, why_not: str) -> Verdict:
    """The fourth number of the first screen: a protection on the front."""
    title = "Best protection on the front"
    meaning = (
        "Of the settings that no other beats in both risk and error, the cheapest that stops the attack, or nearly."
    )
    best = None if summary is None else _best(summary)
    if best is None or summary is None:
        reason = why_not or "no setting has both a risk and a cost"
        return Verdict(title, None, f"Not measured: {reason}.", meaning, "found", "methods", SOURCE)
    none = next((row for row in front(summary).iter_rows(named=True) if not row["protect"]), None)
    found = [about.found(row["risk"]) for row in (best, none) if row is not None]
    before = "" if none is None else " ({} if nothing is protected)"
    guess = None if best["baseline"] is None else about.found(best["baseline"])
    meaning = (
        "The cheapest setting tried whose attack on the most exposed is no better than guessing, as far as this tells."
        if _enough(best)
        else "No setting tried brings the attack on the most exposed down to guessing; this one comes nearest."
    )
    said = Said(
        f"{{}} of the most exposed are found{before}, by guessing {{}}; the finest tables err by {{}}.",
        (*found, guess, Measure(best["cost"], about.persons)),
    )
    return Verdict(title, str(best["setting"]), said, meaning, "found", "protections", SOURCE)


def _best(summary: pl.DataFrame) -> dict[str, Any] | None:
    """The cheapest setting on the front that is no better than guessing, as far as it tells; else the safest."""
    points = front(summary).filter(~pl.col("dominated") & (pl.col("protect") != "")).sort("cost")
    if not points.height:
        return None
    rows = points.to_dicts()
    enough = [row for row in rows if _enough(row)]
    return enough[0] if enough else min(rows, key=lambda row: row["risk"])


def _enough(row: Mapping[str, Any]) -> bool:
    """Is the attack no better than guessing, as far as its interval tells?"""
    least = row["risk"] if row["risk_low"] is None else row["risk_low"]
    return row["baseline"] is not None and least <= row["baseline"]


def _some(summary: pl.DataFrame, measure: str) -> pl.DataFrame:
    return summary.filter(pl.col("measure") == measure)


def _level(name: str, kind: str) -> str:
    return name.removeprefix(kind).strip("_").replace("_", " ")
