"""What should the county look like? A preset: shares and sizes, read from TOML and checked."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glasshouse.errors import InputError, unknown

Floats = NDArray[np.float64]

RACES = ("white", "black", "aian", "asian", "nhopi", "sor")
GROUPS = (*RACES, "many", "hispanic")  # not Hispanic of one race, of two or more; Hispanic
MANY, HISPANIC = 6, 7
_SHAPE = {
    "groups": GROUPS,
    "hispanic_race": RACES,
    "blocks": ("bands", "tract_persons", "group_persons", "alike"),
    "composition": ("tract", "block", "spread", "grows", "strays", "partner", "child", "other"),
    "households": (
        "sizes", "married", "partners", "roommates", "female_alone", "female_lone", "owned_mortgage", "owned_free",
        "without_rent", "vacant", "vacancy",
    ),
    "group_quarters": ("share", "kinds"),
}  # fmt: skip


@dataclass(frozen=True)
class Preset:
    """A kind of county: its title, and its numbers by section."""

    name: str
    title: str
    numbers: Mapping[str, Mapping[str, Any]]

    def __getitem__(self, section: str) -> Mapping[str, Any]:
        return self.numbers[section]

    @cached_property
    def groups(self) -> Floats:
        return _shares([self["groups"][name] for name in GROUPS])

    def shares(self, section: str, name: str) -> Floats:
        """A list of percentages that make up a whole."""
        return _shares(self[section][name])

    def rates(self, section: str, name: str) -> Floats:
        """Percentages that stand on their own, as shares."""
        return np.asarray(self[section][name], np.float64) / 100


def known_presets() -> tuple[str, ...]:
    folder = resources.files("glasshouse") / "population" / "presets"
    return tuple(sorted(item.name.removesuffix(".toml") for item in folder.iterdir() if item.name.endswith(".toml")))


def load_preset(name: str) -> Preset:
    """A preset by its name, or the path of a TOML file of one's own."""
    if name in known_presets():
        path = Path(str(resources.files("glasshouse") / "population" / "presets" / f"{name}.toml"))
    elif Path(name).is_file():
        path = Path(name)
    else:
        raise unknown("preset", name, known_presets())
    try:
        toml = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path.name}: not valid TOML in UTF-8: {error}") from None
    return _checked(path, toml)


def _checked(path: Path, toml: dict[str, Any]) -> Preset:
    title = toml.pop("title", path.stem)
    for section in toml:
        if section not in _SHAPE:
            raise unknown(f"section of {path.name}", section, _SHAPE)
    for section, names in _SHAPE.items():
        given = toml.get(section)
        if not isinstance(given, dict):
            raise InputError(f"{path.name}: section [{section}] is missing")
        for name in given:
            if name not in names:
                raise unknown(f"entry of [{section}] in {path.name}", name, names)
        for name in names:
            if name not in given:
                raise InputError(f"{path.name}: '{name}' is missing in [{section}]")
            if not _numbers(given[name]):
                raise InputError(
                    f"{path.name}: '{name}' in [{section}] must be numbers from 0 up; found {given[name]!r}"
                )
    return Preset(path.stem, str(title), toml)


def _numbers(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(_numbers(part) for part in value)
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _shares(values: Any) -> Floats:
    array = np.asarray(values, np.float64)
    if array.ndim != 1 or array.sum() <= 0:
        raise InputError(f"shares must be a list of numbers with a positive sum; found {values!r}")
    return np.asarray(array / array.sum())
