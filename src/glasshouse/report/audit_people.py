"""Who could be identified, compared with guessing? The report's answers where the truth is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from glasshouse.assess.people.groups import EVERYBODY, EXPOSED, NONMODAL
from glasshouse.report.description import (
    Block,
    Cell,
    Chart,
    Column,
    Count,
    Measure,
    Said,
    Section,
    Series,
    Share,
    Table,
    Verdict,
)

GROUPS = {EVERYBODY: "everyone on the list", NONMODAL: "unlike their neighbours", EXPOSED: "the most exposed"}
RATES = "risk/rates.parquet"
ALL = "all"


def exposed(rates: pl.DataFrame, data: str, attacker: str) -> dict[str, Any] | None:
    """The rate for the most exposed, if there are any."""
    found = rates.filter(
        (pl.col("data") == data) & (pl.col("attacker") == attacker) & (pl.col("group") == EXPOSED)
        & (pl.col("band") == ALL) & (pl.col("putative") > 0)
    )  # fmt: skip
    return found.row(0, named=True) if found.height else None


def verdict(rates: pl.DataFrame | None, data: str, attacker: str, why_not: str) -> Verdict:
    """The third number of the first screen."""
    title, meaning = (
        "Precision for the most exposed",
        "How often an attacker with a list of names is right about people who differ from their neighbours and are "
        "alone in their place with their sex and age.",
    )
    row = None if rates is None else exposed(rates, data, attacker)
    if row is None:
        reason = why_not or "no person of the most exposed group was linked"
        return Verdict(title, None, f"Not measured: {reason}.", meaning, "precision", "methods", RATES)
    guess = Measure(row["baseline"], row["putative"])
    lost = row["advantage_low"] is not None and row["advantage_low"] <= 0
    more = " No better than guessing, as far as this tells." if lost else ""
    return Verdict(
        title, Share(row["confirmed"], row["putative"], row["low"], row["high"]),
        Said(f"Guessing reaches {{}} for the same people.{more}", (guess,)), meaning, "exposed", "identify", RATES,
    )  # fmt: skip


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
    says = (
        "Dots: how often the attacker is right when claiming to know; ticks: guessing from the same release. "
        "Lines are 95% intervals."
    )
    series = (Series(5, "precision", "dot"), Series(6, "guessing", "tick"))
    blocks: list[Block] = [
        Chart("precision-chart", "Precision against guessing", says, table, series, "precision", panel=0)
    ]
    size = _by_size(rates, data, attacker, places)
    if size is not None:
        blocks.append(
            Chart("precision-size-chart", "The most exposed, by size of place", says, size,
                  (Series(5, "precision", "dot"), Series(6, "guessing", "tick")), "precision", up=True)
        )  # fmt: skip
    blocks.append(_agreement(agreement, names))
    if left_out is not None and left_out.height:
        blocks.append(_left_out(left_out, data))
    row = exposed(rates, data, attacker)
    lead: Any = "Rebuilt records, linked to lists of named people and checked against the truth."
    if row is not None:
        lead = Said(
            "About the most exposed, an attacker with the best of these lists is right in {} of cases; guessing would "
            "be in {}.",
            (Share(row["confirmed"], row["putative"], row["low"], row["high"]),
             Measure(row["baseline"], row["putative"])),
        )  # fmt: skip
    return Section("identify", "Who could be identified", lead, tuple(blocks))


def _rates(rates: pl.DataFrame, data: str, attackers: Sequence[str]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for attacker in attackers:
        for group, title in GROUPS.items():
            some = rates.filter(
                (pl.col("data") == data) & (pl.col("attacker") == attacker) & (pl.col("group") == group)
                & (pl.col("band") == ALL)
            )  # fmt: skip
            for row in some.iter_rows(named=True):
                linked, right = row["putative"], row["confirmed"]
                rows.append((
                    attacker, title, Count(row["population"]), Count(linked), Count(right),
                    Share(right, linked, row["low"], row["high"]) if linked else None,
                    Measure(row["baseline"], linked) if linked and row["baseline"] is not None else None,
                    _advantage(row) if linked else None,
                    Share(min(right, row["population"]), row["population"]) if row["population"] else None,
                ))  # fmt: skip
    return Table(
        "reidentification", "Re-identification by list and group",
        (Column("list", "list"), Column("people", "exposed"), Column("looked for", "population"),
         Column("putative", "putative"), Column("confirmed", "confirmed"), Column("precision", "precision"),
         Column("guessing", "guess"), Column("more than guessing", "guess"), Column("found", "found")),
        tuple(rows), f"{RATES}: rows of data '{data}', band 'all'", keys=2,
    )  # fmt: skip


def _advantage(row: Mapping[str, Any]) -> Cell:
    if row["advantage"] is None:
        return None
    return Measure(row["advantage"], row["putative"], "points", row["advantage_low"], row["advantage_high"])


def _by_size(rates: pl.DataFrame, data: str, attacker: str, places: Mapping[str, int]) -> Table | None:
    some = rates.filter(
        (pl.col("data") == data) & (pl.col("attacker") == attacker) & (pl.col("group") == EXPOSED)
        & (pl.col("band") != ALL) & (pl.col("putative") > 0)
    )  # fmt: skip
    rows = tuple(
        (
            row["band"], Count(places.get(row["band"], 0)), Count(row["population"]), Count(row["putative"]),
            Count(row["confirmed"]), Share(row["confirmed"], row["putative"], row["low"], row["high"]),
            None if row["baseline"] is None else Measure(row["baseline"], row["putative"]),
        )
        for row in some.sort(pl.col("band").str.extract(r"^(\d+)").cast(pl.Int64)).iter_rows(named=True)
    )  # fmt: skip
    if len(rows) < 2:
        return None
    return Table(
        "reidentification-size", f"The most exposed, by size of place (list: {attacker})",
        (Column("persons in the place"), Column("places"), Column("looked for", "population"),
         Column("putative", "putative"), Column("confirmed", "confirmed"), Column("precision", "precision"),
         Column("guessing", "guess")),
        rows, f"{RATES}: rows of data '{data}', group '{EXPOSED}', attacker '{attacker}'", places=1,
    )  # fmt: skip


def _agreement(agreement: pl.DataFrame, names: Mapping[str, str]) -> Table:
    some = agreement.filter((pl.col("group") == ALL) & (pl.col("band") == ALL))
    rows = tuple(
        (
            f"{names.get(row['data'], row['data'])}, compared with {names.get(row['with'], row['with'])}",
            Count(row["population"]), Share(row["binned"], row["population"], row["binned_low"], row["binned_high"]),
            Share(row["exact"], row["population"], row["exact_low"], row["exact_high"]),
            None if row["baseline"] is None else Measure(row["baseline"], row["population"]),
        )
        for row in some.iter_rows(named=True)
    )  # fmt: skip
    return Table(
        "agreement", "How many records agree",
        (Column("records"), Column("records compared", "persons"), Column("agree, age in bins", "agreement"),
         Column("agree, age in years", "agreement"), Column("guessing", "guess")),
        rows, "risk/agreement.parquet: rows of group 'all', band 'all'",
    )  # fmt: skip


def _left_out(frame: pl.DataFrame, data: str) -> Table:
    some = frame.filter(pl.col("data").is_in([data, "MDG", "PRG"]))
    rows = tuple(
        (
            row["attacker"], GROUPS.get(row["group"], row["group"]),
            "rebuilt records" if row["data"] == data else f"guessing ({row['data']})", Count(row["persons"]),
            Share(row["right_in"], row["persons"]), Share(row["right_out"], row["persons"]),
            Measure(row["difference"], row["persons"], "points", row["low"], row["high"]),
        )
        for row in some.iter_rows(named=True)
        if row["persons"]
    )  # fmt: skip
    return Table(
        "left-out", "What a person's own answer adds",
        (Column("list"), Column("people"), Column("by"), Column("persons taken out", "left_out"),
         Column("right with", "left_out"), Column("right without", "left_out"),
         Column("because they answered", "left_out")),
        rows, "risk/leave-one-out.parquet: persons taken out one by one, the attack repeated",
        keys=3,
    )  # fmt: skip
