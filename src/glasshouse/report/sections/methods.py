"""How was it done, and what do the words mean? The report's last part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from glasshouse.report.description import Block, Definition, Report, Section, Sentence, Words
from glasshouse.report.words import entries, phrase, plain, say, several


def definitions(used: Iterable[str]) -> tuple[Definition, ...]:
    """The definitions of the terms that are used, in the order of the file."""
    wanted = set(used)
    return tuple(
        Definition(**{**entry, "units": tuple(entry["units"])})
        for entry in entries("definition")
        if entry["term"] in wanted
    )


def label(name: str) -> str:
    """A name of the scenario, written out where the language has words for it."""
    return plain(f"labels.{name}", name.replace("_", " "))


def methods(left_out: Sequence[tuple[str, str, Sentence]]) -> Section:
    """How it was done, what it does not say, and what was left out."""
    blocks: list[Block] = [
        Words(several("methods.paragraphs")), Words((phrase("methods.keep_in_mind"),), several("methods.points"))
    ]  # fmt: skip
    if left_out:
        some = (say("methods.left_out_one", name=name, what=what, why=why) for name, what, why in left_out)
        blocks.append(Words((phrase("methods.left_out"),), tuple(some)))
    return Section("methods", phrase("methods.title"), phrase("methods.lead"), tuple(blocks))


def terms_of(report: Report) -> set[str]:
    """Every term that a number of the report refers to."""
    columns = [column for table in report.tables() for column in table.columns]
    return {verdict.term for verdict in report.verdicts} | {column.term for column in columns if column.term}
