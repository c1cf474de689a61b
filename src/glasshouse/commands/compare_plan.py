"""Which protections are compared, and how? A plan is data: settings, each with the options of a protection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from importlib import resources
from pathlib import Path

from glasshouse.commands.declaration import formed
from glasshouse.commands.protect.register import Protection, protection, protections
from glasshouse.errors import InputError, unknown
from glasshouse.limits import SETTINGS
from glasshouse.scenarios.toml import found as shown
from glasshouse.scenarios.toml import is_there, read_toml

EVERY_PLACE = "blocks"  # the file of every place there is, beside the records of a county
BLOCKS = f"{{{EVERY_PLACE}}}"  # in a plan: that file, if there is one
COMPARED = ("records", "tables")  # what a protection must be of
ATTACKS = ("people", "occupancy", "claims")  # whom an attack is about: persons, or households in two ways
_KEYS = {
    "title": str, "scenario": str, "attack": str, "pick": str, "seeds": list, "attackers": list, "by": str,
    "setting": list,
}  # fmt: skip
_OWN = ("name", "protect", "match")
_SAID = (
    "out",
    "overwrite",
    "seed",
    "secure",
    "workers",
    "executor",
    "insecure",
)  # of a protection's keywords: what a comparison says itself


@dataclass(frozen=True)
class Setting:
    """A protection at one strength: keywords of its function. `match`: another setting whose noise it should have."""

    name: str
    protection: Protection | None
    options: Mapping[str, object]
    match: str = ""

    @property
    def protect(self) -> str:
        return self.protection.name if self.protection else ""

    @property
    def of_tables(self) -> bool:
        """Are tables changed, or the records behind them?"""
        return self.protection is not None and self.protection.of == "tables"

    @property
    def printed(self) -> bool:
        """Are numbers printed that may be untrue, so that nothing follows from them for certain?"""
        return self.protection is not None and self.of_tables and not self.protection.true

    @property
    def intervals(self) -> bool:
        """Does every number come with an interval that the true one lies in, whatever is printed?"""
        return self.protection is not None and self.of_tables and self.protection.takes("values")

    @property
    def scenario(self) -> str:
        """The tables that its function is told of, if it is told of any."""
        return str(self.options.get("scenario", ""))

    @property
    def budget(self) -> str:
        """The budget that it spends, if it spends one."""
        return str(self.options.get("budget", ""))

    @property
    def files(self) -> dict[str, Path]:
        """Options that name a file: what the result depends on besides the plan."""
        named = {key: Path(value) for key, value in self.options.items() if isinstance(value, (str, Path))}
        return {key: path for key, path in named.items() if path.is_file()}

    def keywords(self, places: Path | None, seed: int) -> dict[str, object]:
        """The keywords that its function is called with."""
        found = {key: places if value == BLOCKS else value for key, value in self.options.items()}
        if self.protection is not None and self.protection.takes("seed"):  # else it leaves nothing to chance
            found["seed"] = seed
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
    attack: str = ATTACKS[0]
    pick: str = ""  # places that claims are about, as `verify --pick` draws them; none: all
    by: tuple[str, ...] = ()  # columns whose combinations, place by place, are the elements of paper 003; none: no such
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
    if is_there(name):
        return Path(name)
    if name.endswith(".toml"):
        raise InputError(f"{name}: there is no such file")
    raise unknown("plan", name, known_plans())


def read_plan(name: str) -> ComparePlan:
    """A plan from its file; what is not known in it is refused."""
    path = plan_path(name)
    said = read_toml(path, path.name)
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
        raise InputError(f"{path.name}: seeds is {shown(seeds)}; expected different whole numbers from 0, as [1, 2, 3]")
    if not said["setting"]:
        raise InputError(f"{path.name}: no setting; expected at least one [[setting]]")
    if max(len(said["setting"]), len(seeds)) > SETTINGS:
        raise InputError(f"{path.name}: more than {SETTINGS:,} settings or seeds; expected at most so many of each")
    attack, pick = said.get("attack", ATTACKS[0]), said.get("pick", "")
    if attack not in ATTACKS:
        raise InputError(f"{path.name}: {unknown('attack', attack, ATTACKS)}")
    if pick and attack != "claims":
        raise InputError(f'{path.name}: pick says which places claims are about; expected it with attack = "claims"')
    settings = tuple(_setting(path, entry) for entry in said["setting"])
    by = tuple(one.strip() for one in said.get("by", "").split(",") if one.strip())
    if by and attack != ATTACKS[0]:
        raise InputError(
            f'{path.name}: by counts elements of persons; expected it with attack = "people", or not at all'
        )
    if len(set(by)) < len(by):
        raise InputError(f'{path.name}: by names a column twice; expected different columns, as by = "one,other"')
    plan = ComparePlan(
        path.stem, str(said.get("title", path.stem)), said["scenario"], tuple(seeds),
        tuple(str(one) for one in said.get("attackers", [])), settings, attack, pick, by,
    )  # fmt: skip
    names = [one.name for one in settings]
    for one in settings:
        if names.count(one.name) > 1:
            raise InputError(f"{path.name}: two settings are called '{one.name}'; expected different names")
        if one.match:
            where = f"{path.name}, setting '{one.name}'"
            if one.match not in names:
                raise InputError(f"{where}: match: {unknown('setting', one.match, names)}")
            other, of_records = plan.setting(one.match), protections("records")
            budgeted = [each for each in of_records if each.has_budget]
            if one.protection not in budgeted or other.match or other.protection not in of_records:
                raise InputError(
                    f"{where}: match is for {' or '.join(each.name for each in budgeted)}, and names a setting with a "
                    f"protection of records ({', '.join(each.name for each in of_records)}) that has none itself"
                )
            if "budget" not in one.options or "rho" in one.options:
                raise InputError(f"{where}: with match, name the budget that is made larger or smaller, and no rho")
    return plan


def _setting(path: Path, entry: object) -> Setting:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str) or not entry["name"].strip():
        raise InputError(f'{path.name}: a [[setting]] without a name; expected name = "..."')
    name, given = entry["name"], {key: value for key, value in entry.items() if key not in _OWN}
    where = f"{path.name}, setting '{name}'"
    if not entry.get("protect"):
        if given:
            raise InputError(f'{where}: options ({", ".join(given)}) but no protection; expected protect = "..."')
        return Setting(name, None, {}, str(entry.get("match", "")))
    try:
        chosen = protection(str(entry["protect"]), *COMPARED)
        return Setting(name, chosen, _options(chosen, given), str(entry.get("match", "")))
    except InputError as error:
        error.add_where(where)
        raise


def _options(chosen: Protection, given: Mapping[str, object]) -> dict[str, object]:
    """Options as they stand on a command line, by the keywords of the function, in the form that it declares."""
    known = {flag: one for flag, one in chosen.declared.by_flag.items() if one.name not in _SAID}
    found: dict[str, object] = {}
    for key, value in given.items():
        flag = key.replace("_", "-")
        option = chosen.declared.by_flag.get(flag)
        if option is not None and (option.name in _SAID or option.opt.writes):
            raise InputError(f"'{key}' cannot be set here; a comparison says it itself")
        if option is None:
            raise unknown(f"option of protect {chosen.name}", key, known)
        found[option.name] = value if value == BLOCKS else formed(option, value)
    for option in known.values():
        if option.required and option.name not in found and option.name != "scenario":
            raise InputError(f"'{option.flag.removeprefix('--')}' is missing: {option.opt.help}")
    return found


def times(total: Fraction, factor: float) -> Fraction:
    """A budget so many times as large, to six digits."""
    return (total * Fraction(f"{factor:.6g}")).limit_denominator(10**9)
