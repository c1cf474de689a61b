"""In which words is it said? Every text of the report by its key, from one file a language.

A text may have fields: `{persons}`. A cell in a field stays a cell, so that the public version can hide it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import resources
from pathlib import Path
from string import Formatter

from glasshouse.errors import GlasshouseBug, unknown
from glasshouse.report.description import (
    Cell,
    Column,
    Count,
    Definition,
    Hidden,
    Measure,
    Said,
    Sentence,
    Share,
    literal,
    text,
)

_CELLS = (Count, Share, Measure, Hidden)
_LANGUAGE: ContextVar[str | Path] = ContextVar("language", default="en")


def languages() -> list[str]:
    """The languages there are: a file of `text/` each."""
    folder = resources.files("glasshouse") / "report" / "text"
    return sorted(one.name.removesuffix(".toml") for one in folder.iterdir() if one.name.endswith(".toml"))


@contextmanager
def language(name: str | Path) -> Iterator[None]:
    """Say what is said meanwhile in another language, by its name or its file."""
    if isinstance(name, str) and name not in languages():
        raise unknown("language", name, languages())
    before = _LANGUAGE.set(name)
    try:
        yield
    finally:
        _LANGUAGE.reset(before)


@cache
def _told(name: str | Path) -> Mapping[str, object]:
    if isinstance(name, Path):
        return tomllib.loads(name.read_text(encoding="utf-8"))
    return tomllib.loads(
        (resources.files("glasshouse") / "report" / "text" / f"{name}.toml").read_text(encoding="utf-8")
    )


def all_of(key: str) -> object:
    """Whatever the language has under a key: a text, a list, or a table of them."""
    found: object = _told(_LANGUAGE.get())
    for part in key.split("."):
        if not isinstance(found, Mapping) or part not in found:
            raise GlasshouseBug(f"the language {_LANGUAGE.get()} has no text '{key}'; please report this")
        found = found[part]
    return found


def table(key: str) -> dict[str, str]:
    """Several texts, by their names, in the order of the file."""
    found = all_of(key)
    if not isinstance(found, Mapping):
        raise GlasshouseBug(f"'{key}' is not a table of texts; please report this")
    return {str(name): str(value) for name, value in found.items()}


def several(key: str) -> tuple[str, ...]:
    """A list of texts."""
    found = all_of(key)
    if not isinstance(found, list):
        raise GlasshouseBug(f"'{key}' is not a list of texts; please report this")
    return tuple(map(str, found))


def entries(key: str) -> list[Mapping[str, str]]:
    """A list of tables of texts."""
    found = all_of(key)
    return [dict(one) for one in found] if isinstance(found, list) else []


def say(key: str, **fields: Cell | int | float | Sentence) -> Sentence:
    """A text with its fields filled in: a plain string, or one with cells.

    A field may have a format (`{share:.1%}`) unless it is a cell; None is a cell too: there is no such number.
    """
    found = all_of(key)
    if not isinstance(found, str):
        raise GlasshouseBug(f"'{key}' is not one text; please report this")
    template = ""
    cells: list[Cell] = []
    for before, name, spec, _ in Formatter().parse(found):
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
    """A text if the file has it."""
    try:
        return phrase(key)
    except GlasshouseBug:
        return otherwise


def worse_of(meaning: Definition) -> str:
    """Which way is worse, in words."""
    return phrase(f"worse.{meaning.worse}") if meaning.worse else ""


def joined(*sentences: Sentence) -> Sentence:
    """Sentences one after the other."""
    parts = [Said(literal(one), ()) if isinstance(one, str) else one for one in sentences]
    cells = tuple(cell for one in parts for cell in one.cells)
    return Said(" ".join(one.template for one in parts), cells) if cells else " ".join(map(text, sentences))


def columns(key: str, *terms: str) -> tuple[Column, ...]:
    """The heads of a table from a list of texts, with the term that each is of."""
    return tuple(Column(title, term) for title, term in zip(several(key), terms, strict=True))
