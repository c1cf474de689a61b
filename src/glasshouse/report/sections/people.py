"""Who could be identified, compared with guessing? The report's answers where the truth is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from glasshouse.assess.people.groups import EVERYBODY, EXPOSED, NONMODAL
from glasshouse.model.bands import ALL, BANDS
from glasshouse.report.description import (
    Block,
    Cell,
    Chart,
    Column,
    Count,
    Measure,
    Section,
    Series,
    Share,
    Table,
    Verdict,
)
from glasshouse.report.words import columns, phrase, plain, say

GROUPS = (EVERYBODY, NONMODAL, EXPOSED)
RATES = "risk/rates.parquet"


def exposed(rates: pl.DataFrame, data: str, attacker: str) -> dict[str, Any] | None:
    """The rate for the most exposed, if there are any."""
    found = rates.filter(
        (pl.col("data") == data) & (pl.col("attacker") == attacker) & (pl.col("group") == EXPOSED)
        & (pl.col("band") == ALL) & (pl.col("putative") > 0)
    )  # fmt: skip
    return found.row(0, named=True) if found.height else None


def verdict(rates: pl.DataFrame | None, data: str, attacker: str, why_not: str) -> Verdict:
    """The third number of the first screen."""
    title, meaning = phrase("people.verdict"), phrase("people.verdict_meaning")
    if rates is None:
        told = phrase("page.not_measured", reason=why_not)
        return Verdict(title, None, told, meaning, "precision", "methods", RATES)
    row = exposed(rates, data, attacker)
    precision, guess = _beside_guessing(row)
    lost = row is not None and row["advantage_low"] is not None and row["advantage_low"] <= 0
    beside = say("people.guessing_lost" if lost else "people.guessing", guess=guess)
    return Verdict(title, precision, beside, meaning, "exposed", "identify", RATES)


def _beside_guessing(row: Mapping[str, Any] | None) -> tuple[Share, Cell]:
    """Precision and what guessing reaches; of nobody, no numbers, said in the same words."""
    if row is None:
        return Share(0, 0), Share(0, 0)
    guess = Measure(row["baseline"], row["putative"], "share")
    return Share(row["confirmed"], row["putative"], row["low"], row["high"]), guess


def identify(
    rates: pl.DataFrame,
    agreement: pl.DataFrame,
    places: Mapping[str, int],
    left_out: pl.DataFrame | None,
    data: str,
    names: Mapping[str, str],
    attacker: str,
) -> Section:
    """Re-identification by group and attacker, by size of place, agreement, and what a person's own answer adds.

    `places` are how many there are of each size.
    """
    attackers = rates["attacker"].unique(maintain_order=True).to_list()
    table = _rates(rates, data, attackers)
    says, precision = phrase("people.chart_says"), phrase("columns.precision")
    series = (Series(5, precision, "dot"), Series(6, phrase("columns.guessing"), "tick"))
    blocks: list[Block] = [Chart("precision-chart", phrase("people.chart"), says, table, series, precision, panel=0)]
    size = _by_size(rates, data, attacker, places)
    blocks.append(Chart("precision-size-chart", phrase("people.by_size"), says, size, series, precision, up=True))
    blocks.append(_agreement(agreement, names))
    if left_out is not None and left_out.height:
        blocks.append(_left_out(left_out, data))
    precision_, guess = _beside_guessing(exposed(rates, data, attacker))
    lead = say("people.lead", precision=precision_, guess=guess)
    return Section("identify", phrase("people.title"), lead, tuple(blocks))


def _rates(rates: pl.DataFrame, data: str, attackers: Sequence[str]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for attacker in attackers:
        for group in GROUPS:
            row = _row(rates, data=data, attacker=attacker, group=group, band=ALL)
            linked, right = row["putative"], row["confirmed"]
            rows.append((
                attacker, phrase(f"people.groups.{group}"), Count(row["population"]), Count(linked), Count(right),
                Share(right, linked, row["low"], row["high"]),
                Measure(row["baseline"], linked, "share") if linked and row["baseline"] is not None else None,
                _advantage(row) if linked else None,
                Share(min(right, row["population"]), row["population"]),
            ))  # fmt: skip
    return Table(
        "reidentification", phrase("people.table"),
        (Column(phrase("columns.list"), "list"), Column(phrase("columns.people"), "exposed"), *_counted(),
         Column(phrase("columns.guessing"), "guess"), Column(phrase("people.more"), "guess"),
         Column(phrase("people.found"), "found")),
        tuple(rows), phrase("people.source", file=RATES, data=data), keys=2,
    )  # fmt: skip


def _row(rates: pl.DataFrame, **of: str) -> Mapping[str, Any]:
    """A row of the rates; where nobody is in it, one of zeros."""
    found = rates.filter(**of)
    if found.height:
        return found.row(0, named=True)
    return {name: 0 if kind.is_integer() else None for name, kind in rates.schema.items()}


def _counted() -> tuple[Column, ...]:
    terms = {"looked_for": "population", "putative": "putative", "confirmed": "confirmed", "precision": "precision"}
    return tuple(Column(phrase(f"columns.{name}"), term) for name, term in terms.items())


def _advantage(row: Mapping[str, Any]) -> Cell:
    if row["advantage"] is None:
        return None
    return Measure(row["advantage"], row["putative"], "points", row["advantage_low"], row["advantage_high"])


def _by_size(rates: pl.DataFrame, data: str, attacker: str, places: Mapping[str, int]) -> Table:
    bands = {band: _row(rates, data=data, attacker=attacker, group=EXPOSED, band=band) for band in BANDS}
    rows = tuple(
        (
            band, Count(places.get(band, 0)), Count(row["population"]), Count(row["putative"]),
            Count(row["confirmed"]), Share(row["confirmed"], row["putative"], row["low"], row["high"]),
            None if row["baseline"] is None else Measure(row["baseline"], row["putative"], "share"),
        )
        for band, row in bands.items()
    )  # fmt: skip
    return Table(
        "reidentification-size", phrase("people.by_size_table", attacker=attacker),
        (Column(phrase("people.in_place")), Column(phrase("people.places")), *_counted(),
         Column(phrase("columns.guessing"), "guess")),
        rows, phrase("people.by_size_source", file=RATES, data=data, group=EXPOSED, attacker=attacker), places=1,
    )  # fmt: skip


def _agreement(agreement: pl.DataFrame, names: Mapping[str, str]) -> Table:
    some = agreement.filter((pl.col("group") == ALL) & (pl.col("band") == ALL))
    rows = tuple(
        (
            phrase("people.compared", one=names.get(row["data"], row["data"]),
                   other=names.get(row["with"], row["with"])),
            Count(row["population"]), Share(row["binned"], row["population"], row["binned_low"], row["binned_high"]),
            Share(row["exact"], row["population"], row["exact_low"], row["exact_high"]),
            None if row["baseline"] is None else Measure(row["baseline"], row["population"], "share"),
        )
        for row in some.iter_rows(named=True)
    )  # fmt: skip
    return Table(
        "agreement", phrase("people.agreement"),
        columns("people.agreement_columns", "", "persons", "agreement", "agreement", "guess"),
        rows, phrase("people.agreement_source"),
    )  # fmt: skip


def _left_out(frame: pl.DataFrame, data: str) -> Table:
    some = frame.filter(pl.col("data").is_in([data, "MDG", "PRG"]))
    rows = tuple(
        (
            row["attacker"], plain(f"people.groups.{row['group']}", row["group"]),
            phrase("people.rebuilt") if row["data"] == data else phrase("people.guesser", name=row["data"]),
            Count(row["persons"]),
            Share(row["right_in"], row["persons"]), Share(row["right_out"], row["persons"]),
            Measure(row["difference"], row["persons"], "points", row["low"], row["high"]),
        )
        for row in some.iter_rows(named=True)
    )  # fmt: skip
    return Table(
        "left-out", phrase("people.left_out"),
        columns("people.left_out_columns", "", "", "", *["left_out"] * 4),
        rows, phrase("people.left_out_source"), keys=3,
    )  # fmt: skip
