"""How much of the report could somebody check who trusts neither us nor a solver? Counts, and certificates to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from glasshouse.model.geography import plural
from glasshouse.report.description import (
    Block,
    Cell,
    Column,
    Count,
    Panel,
    Panels,
    Section,
    Sentence,
    Share,
    Table,
    Verdict,
    Words,
)
from glasshouse.report.words import columns, joined, phrase, say, table


def certified(told: Mapping[str, Any]) -> Share | None:
    """The share of the records looked at that are certified."""
    if not told.get("records"):
        return None
    return Share(told["certain_certified"], told["records"], everybody=bool(told["everything"]))


def on_card(verdict: Verdict, told: Mapping[str, Any]) -> Verdict:
    """The card of what is certain, with how much of it is certified."""
    share = certified(told)
    if share is None:
        return verdict
    certain = Share(told["certain"], told["records"], everybody=share.everybody)
    more = say("proofs.card" if told["everything"] else "proofs.card_some", certified=share, certain=certain)
    return replace(verdict, beside=joined(verdict.beside, more))


def proofs(
    told: Mapping[str, Any], place: str, persons: int, examples: Sequence[tuple[str, int, int, str]],
    panels: Sequence[Panel],
) -> Section:  # fmt: skip
    """What is certified, of how much; the places whose certificates are shown, and the certificates."""
    blocks: list[Block] = [_counts(told, place)]
    notes: list[Sentence] = []
    if told.get("records") and not told["everything"]:
        share = Share(told["records"], persons)
        notes.append(say("proofs.some", blocks=Count(told["places"]), places=plural(place), share=share))
    if examples:
        blocks.append(Table(
            "proofs-places", phrase("proofs.places", places=plural(place)),
            (Column(place), Column(phrase("columns.persons"), "persons"), Column(phrase("columns.certain"), "certain")),
            tuple((code, Count(many), Share(sure, many)) for code, many, sure, _ in examples),
            phrase("proofs.places_source"), records=True, links=tuple(link for *_, link in examples),
        ))  # fmt: skip
    if panels:
        blocks.append(Panels(phrase("proofs.certificates"), phrase("proofs.certificates_says"), tuple(panels)))
    blocks.append(Words((*notes, phrase("proofs.how"))))
    lead: Sentence = phrase("proofs.lead_none")
    share_ = certified(told)
    if share_ is not None:
        certain = Share(told["certain"], told["records"], everybody=share_.everybody)
        lead = say("proofs.lead", records=Count(told["records"]), certain=certain, certified=share_)
    return Section("proofs", phrase("proofs.title"), lead, tuple(blocks), records=True)


def _counts(told: Mapping[str, Any], place: str) -> Table:
    rows: list[tuple[Cell, ...]] = []
    if told.get("records"):
        for key, many, name in (
            ("certain", told["records"], phrase("proofs.records")),
            ("one_solution", told["places"], phrase("proofs.one_solution", places=plural(place))),
        ):
            made, sure = told[key], told[f"{key}_certified"]
            rows.append((name, Count(many), Count(made), Count(sure), Share(sure, made)))
    steps, notes = told["steps"], list[Sentence]()
    for step, name in table("proofs.steps").items():
        if step in steps:
            made, sure = steps[step]["facts"], steps[step]["certified"]
            rows.append((name, Count(made), Count(made), Count(sure), Share(sure, made)))
    for key in ("weaker", "open"):
        number = sum(one[key] for one in steps.values())
        notes += [say(f"proofs.{key}_one" if number == 1 else f"proofs.{key}", number=Count(number))] if number else []
    return Table(
        "proofs", phrase("proofs.table"), columns("proofs.columns", "", "", "", "certified", "certified"),
        tuple(rows), phrase("proofs.source"), tuple(notes), records=True,
    )  # fmt: skip
