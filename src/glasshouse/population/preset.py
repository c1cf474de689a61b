"""What should the county look like? A preset: shares and sizes, read from TOML and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from glasshouse.errors import InputError, unknown
from glasshouse.scenarios.toml import found as shown
from glasshouse.scenarios.toml import is_there, read_toml

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
    elif is_there(name):
        path = Path(name)
    else:
        raise unknown("preset", name, known_presets())
    return _checked(path, read_toml(path, path.name))


def _checked(path: Path, toml: dict[str, Any]) -> Preset:
    title = toml.pop("title", path.stem)
    if not isinstance(title, str):
        raise InputError(f"{path.name}: 'title' is {shown(title)}; expected a text")
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
            expected = _fault(section, name, given[name])
            if expected is not None:
                raise InputError(f"{path.name}: '{name}' in [{section}] is {shown(given[name])}; expected {expected}")
    homes = toml["households"]
    for name in ("married", "partners", "roommates"):
        if len(homes[name]) != len(homes["sizes"]):
            raise InputError(f"{path.name}: '{name}' in [households] needs a number for each of 'sizes'")
    if max(map(sum, zip(homes["married"], homes["partners"], homes["roommates"], strict=True))) > 100:
        raise InputError(f"{path.name}: married, partners and roommates of one size are more than 100% in [households]")
    return Preset(path.stem, str(title), toml)


def _fault(section: str, name: str, value: Any) -> str | None:
    """What an entry should have been; None when it is right."""
    if (section, name) == ("blocks", "bands"):
        rows = value if isinstance(value, list) else []
        fine = bool(rows) and all(isinstance(row, list) and len(row) == 3 and all(map(_number, row)) for row in rows)
        fine = fine and all(int(row[0]) == row[0] and int(row[1]) == row[1] and row[2] > 0 for row in rows)
        ends = [0, *(end for row in rows for end in row[:2])] if fine else []
        rising = all(low <= high for low, high in zip(ends[1::2], ends[2::2], strict=True)) and all(
            before < after for before, after in zip(ends[::2], ends[1::2], strict=False)
        )
        return None if fine and rising else "rows of from, to, share: whole numbers from 1 up that rise, shares above 0"
    if name in _LISTS:
        length = _LISTS[name]
        fine = (
            isinstance(value, list)
            and all(map(_number, value))
            and len(value) == (length or len(value))
            and bool(value)
        )
        if name not in ("sizes", "vacancy", "kinds"):
            fine = fine and max(value) <= 100
        return None if fine and (sum(value) > 0 or name == "roommates") else f"{length or 'some'} numbers from 0 up"
    if not _number(value):
        return "a number from 0 up"
    low, high = _RANGES.get(name, (0.0, 100.0))
    return None if low <= value <= high else f"a number from {low:g} to {high:g}"


_LISTS = {
    "sizes": 0, "married": 0, "partners": 0, "roommates": 0, "owned_mortgage": 2, "owned_free": 2, "vacancy": 7,
    "kinds": 7,
}  # fmt: skip
_RANGES = {
    "tract_persons": (1.0, 100_000.0), "group_persons": (1.0, 100_000.0), "alike": (0.0, 1.0), "tract": (0.01, 1e6),
    "block": (0.01, 1e6), "spread": (0.0, 10.0), "grows": (0.0, 5.0), "vacant": (0.0, 95.0),
}  # fmt: skip


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12


def _shares(values: Any) -> Floats:
    array = np.asarray(values, np.float64)
    if array.ndim != 1 or array.sum() <= 0:
        raise InputError(f"shares must be a list of numbers with a positive sum; found {values!r}")
    return np.asarray(array / array.sum())
