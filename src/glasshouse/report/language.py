"""Which language is spoken? Texts by their keys, from one file a language: `text/en.toml` and its translations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from glasshouse.errors import GlasshouseBug, unknown
from glasshouse.scenarios.toml import read_toml

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
        return read_toml(name)
    return read_toml(Path(str(resources.files("glasshouse") / "report" / "text" / f"{name}.toml")))


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


def entries(key: str) -> list[Mapping[str, Any]]:
    """A list of tables of texts."""
    found = all_of(key)
    return [dict(one) for one in found] if isinstance(found, list) else []


def one(key: str) -> str:
    """One text as it stands in the file, its fields not filled in."""
    found = all_of(key)
    if not isinstance(found, str):
        raise GlasshouseBug(f"'{key}' is not one text; please report this")
    return found


def has(key: str) -> bool:
    """Has the language such a text?"""
    found: object = _told(_LANGUAGE.get())
    for part in key.split("."):
        if not isinstance(found, Mapping) or part not in found:
            return False
        found = found[part]
    return True
