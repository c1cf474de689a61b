"""Which protections are compared, and how? A plan is data: settings, each the options of a command."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from importlib import resources
from pathlib import Path
from typing import Any

from glasshouse.errors import InputError, unknown

RECORDS, TABLES = ("swap", "topdown", "relocate"), ("noise", "round", "suppress", "cellkey")
NOTHING = ""
BLOCKS = "{blocks}"
_KEYS = {"title": str, "scenario": str, "seeds": list, "attackers": list, "setting": list}
_OWN = ("name", "protect", "match")
_FIXED = ("help", "out", "seed", "overwrite", "json", "quiet", "verbose", "values", "measurements", "log", "secure")


@dataclass(frozen=True)
class Setting:
    """A protection at one strength: the options of its command. `match`: another setting whose noise it should have."""

    name: str
    protect: str
    options: Mapping[str, Any]
    match: str = ""

    @property
    def of_tables(self) -> bool:
        """Are tables changed, or the records behind them?"""
        return self.protect in TABLES

    @property
    def files(self) -> dict[str, Path]:
        """Options that name a file: what the result depends on besides the plan."""
        texts = {key: value for key, value in self.options.items() if isinstance(value, str)}
        return {key: Path(value) for key, value in texts.items() if Path(value).is_file()}

    def arguments(self, blocks: Path | None, changed: Mapping[str, Any] | None = None) -> list[str]:
        """The options as they stand on a command line."""
        found = []
        for key, value in {**self.options, **(changed or {})}.items():
            flag = f"--{key.replace('_', '-')}"
            if value == BLOCKS:
                found += [flag, str(blocks)] if blocks is not None else []
            elif value is True:
                found.append(flag)
            elif value is not False:
                for one in value if isinstance(value, list) else [value]:
                    found += [flag, str(one)]
        return found


@dataclass(frozen=True)
class ComparePlan:
    """Settings that go through the same attacks, with the same seeds."""

    name: str
    title: str
    scenario: str
    seeds: tuple[int, ...]
    attackers: tuple[str, ...]
    settings: tuple[Setting, ...]
    chosen: tuple[str, ...] = ()  # of the settings, by name; none: all of them

    @property
    def asked(self) -> tuple[Setting, ...]:
        """The settings that are run."""
        return tuple(self.setting(name) for name in dict.fromkeys(self.chosen)) or self.settings

    def setting(self, name: str) -> Setting:
        for one in self.settings:
            if one.name == name:
                return one
        raise unknown("setting", name, [one.name for one in self.settings])


def known_plans() -> tuple[str, ...]:
    folder = resources.files("glasshouse") / "commands" / "plans"
    return tuple(sorted(item.name.removesuffix(".toml") for item in folder.iterdir() if item.name.endswith(".toml")))


def plan_path(name: str) -> Path:
    """The file of a plan by name, or one of your own."""
    if name in known_plans():
        return Path(str(resources.files("glasshouse") / "commands" / "plans" / f"{name}.toml"))
    if Path(name).is_file():
        return Path(name)
    if name.endswith(".toml"):
        raise InputError(f"{name}: there is no such file")
    raise unknown("plan", name, known_plans())


def read_plan(name: str) -> ComparePlan:
    """A plan from its file; what is not known in it is refused."""
    path = plan_path(name)
    try:
        said = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path.name}: not valid TOML: {error}") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path.name}: not UTF-8 at byte {error.start}; expected a text file in UTF-8") from None
    for key, value in said.items():
        if key not in _KEYS:
            raise InputError(f"{path.name}: {unknown('key', key, _KEYS)}")
        if not isinstance(value, _KEYS[key]):
            raise InputError(f"{path.name}: '{key}' is a {type(value).__name__}; expected a {_KEYS[key].__name__}")
    missing = [key for key in ("scenario", "setting") if key not in said]
    if missing:
        raise InputError(f"{path.name}: '{missing[0]}' is missing; expected scenario and [[setting]]")
    seeds = said.get("seeds", [1])
    if not seeds or any(type(seed) is not int or seed < 0 for seed in seeds) or len(set(seeds)) < len(seeds):
        raise InputError(f"{path.name}: seeds is {seeds}; expected different whole numbers from 0, as [1, 2, 3]")
    if not said["setting"]:
        raise InputError(f"{path.name}: no setting; expected at least one [[setting]]")
    settings = tuple(_setting(path, entry) for entry in said["setting"])
    plan = ComparePlan(
        path.stem, str(said.get("title", path.stem)), said["scenario"], tuple(seeds),
        tuple(str(one) for one in said.get("attackers", [])), settings,
    )  # fmt: skip
    names = [one.name for one in settings]
    for one in settings:
        if names.count(one.name) > 1:
            raise InputError(f"{path.name}: two settings are called '{one.name}'; expected different names")
        if one.match:
            where = f"{path.name}, setting '{one.name}'"
            if one.match not in names:
                raise InputError(f"{where}: match: {unknown('setting', one.match, names)}")
            other = plan.setting(one.match)
            if one.protect != "topdown" or other.match or other.protect not in RECORDS:
                raise InputError(
                    f"{where}: match is for topdown, and names a setting with a protection of records "
                    f"({', '.join(RECORDS)}) that has none itself"
                )
            if "budget" not in one.options or "rho" in one.options:
                raise InputError(f"{where}: with match, name the budget that is made larger or smaller, and no rho")
    return plan


def _setting(path: Path, entry: Any) -> Setting:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or not entry["name"].strip():
        raise InputError(f'{path.name}: a [[setting]] without a name; expected name = "..."')
    name, protect = entry["name"], entry.get("protect", NOTHING)
    known = (*RECORDS, *TABLES)
    where = f"{path.name}, setting '{name}'"
    if protect != NOTHING and protect not in known:
        raise InputError(f"{where}: {unknown('protection', str(protect), known)}")
    options = {key: value for key, value in entry.items() if key not in _OWN}
    for key, value in options.items():
        if key in _FIXED or not re.fullmatch(r"[a-z][a-z_-]*", key):
            raise InputError(f"{where}: '{key}' cannot be set here; a comparison says it itself")
        if not isinstance(value, (str, int, float, bool, list)):
            raise InputError(
                f"{where}: '{key}' is a {type(value).__name__}; expected a number, a text or a list of them"
            )
    if protect == NOTHING and options:
        raise InputError(f'{where}: options ({", ".join(options)}) but no protection; expected protect = "..."')
    return Setting(name, protect, options, str(entry.get("match", "")))


def times(total: Fraction, factor: float) -> str:
    """A budget so many times as large, to six digits, as text."""
    return str((total * Fraction(f"{factor:.6g}")).limit_denominator(10**9))
