"""How is a sentence said? A text of the language with its fields filled in: `{persons}`.

A cell in a field stays a cell, so that the public version can hide it.
"""

from __future__ import annotations

from string import Formatter

from glasshouse.errors import GlasshouseBug
from glasshouse.report.description import (
    Cell,
    Column,
    Count,
    Definition,
    Hidden,
    Measure,
    Report,
    Said,
    Sentence,
    Share,
    literal,
    text,
)
from glasshouse.report.language import all_of, entries, has, language, languages, one, several, table

__all__ = [
    "all_of", "certified", "columns", "entries", "joined", "language", "languages", "measured", "phrase", "plain",
    "say", "several", "table", "worse_of",
]  # fmt: skip
_CELLS = (Count, Share, Measure, Hidden)


def say(key: str, **fields: Cell | int | float | Sentence) -> Sentence:
    """A text with its fields filled in: a plain string, or one with cells.

    A field may have a format (`{share:.1%}`) unless it is a cell; None is a cell too: there is no such number.
    """
    template = ""
    cells: list[Cell] = []
    for before, name, spec, _ in Formatter().parse(one(key)):
        template += literal(before)
        if name is None:
            continue
        if name not in fields:
            raise GlasshouseBug(f"the text '{key}' has a field '{name}' that nobody fills; please report this")
        value = fields[name]
        if isinstance(value, Said):
            template += value.template
            cells += value.cells
        elif value is None or isinstance(value, _CELLS):
            template += "{}"
            cells.append(value)
        else:
            template += literal(format(value, spec or ""))
    said = Said(template, tuple(cells))
    return said if cells else text(said)


def phrase(key: str, **fields: int | float | str) -> str:
    """A text without cells."""
    return text(say(key, **fields))


def plain(key: str, otherwise: str) -> str:
    """A text if the language has it."""
    return phrase(key) if has(key) else otherwise


def measured(term: str, value: float, over: int, low: float | None = None, high: float | None = None) -> Measure:
    """A number that is no count, in the unit that the definition of its term names first."""
    unit = next(entry["units"][0] for entry in entries("definition") if entry["term"] == term)
    return Measure(value, over, unit, low, high)


def worse_of(meaning: Definition) -> str:
    """Which way is worse, in words."""
    return phrase(f"worse.{meaning.worse}") if meaning.worse else ""


def certified(report: Report) -> list[tuple[str, str]]:
    """The certificate line by line: what the run was, then its digests."""
    how = "page.digest_keyed" if report.keyed else "page.digest"
    return [*report.certificate, *((role, phrase(how, digest=digest)) for role, digest in report.digests)]


def joined(*sentences: Sentence) -> Sentence:
    """Sentences one after the other."""
    parts = [Said(literal(said), ()) if isinstance(said, str) else said for said in sentences]
    cells = tuple(cell for said in parts for cell in said.cells)
    return Said(" ".join(said.template for said in parts), cells) if cells else " ".join(map(text, sentences))


def columns(key: str, *terms: str) -> tuple[Column, ...]:
    """The heads of a table from a list of texts, with the term that each is of."""
    return tuple(Column(title, term) for title, term in zip(several(key), terms, strict=True))
