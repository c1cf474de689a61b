"""What is audited, and how? A TOML file, checked key by key; every complaint is one line with the key and a remedy."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from glasshouse.commands.compare import compare
from glasshouse.commands.declaration import declaration
from glasshouse.commands.detect import detect
from glasshouse.commands.reidentify import reidentify
from glasshouse.commands.synthesize import synthesize
from glasshouse.commands.vary import vary
from glasshouse.commands.verify import verify
from glasshouse.errors import InputError, unknown
from glasshouse.limits import COMPLAINTS, NAME_LENGTH
from glasshouse.scenarios.load import folder_of, known_scenarios
from glasshouse.scenarios.toml import is_there, read_toml

File = Annotated[Path, Field(strict=False)]  # a text in the file
Rate = Annotated[float, Field(ge=0, le=1)]
Seed = Annotated[int, Field(ge=0)]
BUILT_IN = "county"
SHOWN = 60  # letters of a wrong value that a complaint repeats


def option(function: Callable[..., Any], name: str, **otherwise: Any) -> Any:
    """A key that is an option of a command: its default, its limits and its help are those of the function."""
    declared = declaration(function).by_name[name]
    limits = {"ge": declared.opt.least, "le": declared.opt.most}
    said = {"default": declared.default, "description": declared.opt.help.rstrip(".")} | otherwise
    return Field(**{key: limit for key, limit in limits.items() if limit is not None} | said)


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Input(_Part):
    """The office's own files."""

    tables: File | None = Field(
        default=None, description="published tables; without, they are counted from `published`"
    )
    records: File | None = Field(default=None, description="the confidential records, with person_id: the truth")
    published: File | None = Field(default=None, description="the records behind the tables; default: `records`")
    households: File | None = Field(default=None, description="household records, for [claims] and [occupancy]")
    household_tables: File | None = Field(default=None, description="published tables of households, for [claims]")
    occupancy_tables: File | None = Field(default=None, description="published tables of households, for [occupancy]")
    properties: File | None = Field(default=None, description="a second agency's properties, for [occupancy]")
    geometry: File | None = Field(default=None, description="where places lie: GeoJSON, or codes with x and y")
    codebook: File | None = option(vary, "codebook")
    assume_published: str = option(vary, "assume_published")
    missing: Literal["zero", "hidden"] | None = option(vary, "missing")


class Synthetic(_Part):
    """A county of `glasshouse synthesize` instead of files."""

    persons: int = option(synthesize, "persons", default=20_000, ge=200)
    seed: Seed = 1
    preset: str = option(synthesize, "preset")
    commercial: str = option(synthesize, "commercial")
    subsidised: Rate = option(synthesize, "subsidised")


class Attackers(_Part):
    """Who looks for people in the rebuilt records."""

    lists: dict[str, File] = Field(default_factory=dict, description="lists of named people, by name")
    presets: list[Literal["low", "2010-like", "high"]] = Field(
        default_factory=list, description="lists as an attacker might buy them, made from the records"
    )
    perfect: bool = Field(default=True, description="also somebody who knows block, sex and age of everybody")
    leave_one_out: int = option(reidentify, "leave_one_out")

    @model_validator(mode="after")
    def _own_names(self) -> Attackers:
        taken = sorted({"perfect", "commercial"} & set(self.lists))
        if taken:
            raise ValueError(f"the name {taken[0]} is taken by a list of ours; expected another in lists")
        return self


class Leaks(_Part):
    """Which tables give it away? Each family is withheld in turn, in a sample of units."""

    blocks: int = Field(default=300, ge=0, description="so many blocks at least, in whole units; 0: do not ask")


class Claims(_Part):
    """What must be true of households (glasshouse verify)."""

    scenario: str
    columns: int = option(verify, "columns")
    pick: str = option(verify, "pick")
    leaks: Literal["", "table", "family"] = option(verify, "leaks")


class Occupancy(_Part):
    """What the numbers of two agencies give away together (glasshouse detect)."""

    scenario: str
    model: Literal["sharp", "paper"] = option(detect, "model")


class Proofs(_Part):
    """Certificates that strangers can check (glasshouse prove): of which steps, and in how many places."""

    of: list[Literal["vary", "bounds", "claims", "occupancy"]] = Field(
        default=["vary", "bounds"], description="the steps whose results are proved"
    )
    blocks: int = Field(
        default=300, ge=1, description="vary and bounds: so many places at least, in whole units drawn with the seed"
    )
    examples: int = Field(default=12, ge=0, le=200, description="places of which the internal report shows the proofs")


class Noise(_Part):
    """What one noisy count would give away (glasshouse infer)."""

    budget: str = Field(default="", description="a named budget, or a TOML file")
    query: str = Field(default="detailed", description="which query of the budget")
    rho: float | None = Field(default=None, gt=0, description="instead of a budget: the rho of one count")
    prior: float = Field(default=0.5, gt=0, lt=1, description="what the adversary believes beforehand")

    @model_validator(mode="after")
    def _one(self) -> Noise:
        if bool(self.budget) == (self.rho is not None):
            raise ValueError("expected either budget or rho")
        return self


class Protections(_Part):
    """The same attacks on every protection (glasshouse compare)."""

    plan: str = option(compare, "plan", default="audit")
    settings: list[str] = Field(default_factory=list, description="only these of the plan")
    seeds: int = option(compare, "seeds")


class Microdata(_Part):
    """The office's own rules for microdata, where the scenario has none or others: would the rebuilt records pass?"""

    area: int | None = Field(default=None, ge=0, description="persons that an area must have to be named")
    category: int | None = Field(default=None, ge=0, description="persons that a category must have to be named")
    sample: Rate | None = Field(default=None, description="the largest share of records that may be released")


class Thresholds(_Part):
    """What may not be exceeded (solvar_mean: gone below): exit code 1 if it is."""

    share_certain: Rate | None = Field(default=None, description="share of records that are certain")
    zero_solvar_share: Rate | None = Field(default=None, description="share of blocks with one solution")
    solvar_mean: Rate | None = Field(default=None, description="solvar must not be lower than this")
    precision_exposed: Rate | None = Field(default=None, description="re-identification precision for the most exposed")
    advantage_exposed: Rate | None = Field(default=None, description="the same, less what guessing reaches")
    found_exposed: Rate | None = Field(default=None, description="share of the most exposed who are found")
    claims_households: Rate | None = Field(
        default=None, description="share of households with a certain claim of their own"
    )
    detected_blocks: Rate | None = Field(
        default=None, description="share of blocks where both agencies' numbers can be true only with a violation"
    )
    posterior: Rate | None = Field(default=None, description="average posterior from one noisy count")
    share_given_away: Rate | None = Field(default=None, description="share of the hidden numbers that others give away")


class Public(_Part):
    """The version for everybody."""

    threshold: int = Field(default=10, ge=3, description="nothing is said about fewer persons")


class Config(_Part):
    """An audit."""

    title: str = Field(
        default="An audit of published tables", pattern=r"^[^\r\n]{1,200}$", description="one line, at most 200 letters"
    )
    scenario: str = Field(description="a built-in scenario, or the folder of one")
    tables: list[str] = Field(default_factory=list, description="use only these tables of the scenario")
    seed: Seed = 1
    minutes: float | None = Field(
        default=None, gt=0, description="budget of time: parts that would take it over are left out"
    )
    input: Input | None = None
    synthetic: Synthetic | None = None
    attackers: Attackers = Attackers()
    leaks: Leaks = Leaks()
    claims: Claims | None = None
    occupancy: Occupancy | None = None
    proofs: Proofs | None = None
    noise: Noise | None = None
    protections: Protections | None = None
    microdata: Microdata = Microdata()
    thresholds: Thresholds = Thresholds()
    public: Public = Public()

    @model_validator(mode="after")
    def _one_source(self) -> Config:
        if (self.input is None) == (self.synthetic is None):
            raise ValueError("expected either [input] with files, or [synthetic]")
        if (
            self.input is not None
            and self.input.tables is None
            and self.input.records is None
            and not (self.input.published)
        ):
            raise ValueError("[input]: expected tables, or records to count them from")
        return self


def schema() -> str:
    """The JSON Schema of the file."""
    return json.dumps(Config.model_json_schema(), indent=2)


def config_path(name: Path | None) -> Path:
    """The file of a configuration: yours, or the built-in one."""
    if name is None:
        return Path(str(resources.files("glasshouse") / "commands" / "audits" / f"{BUILT_IN}.toml"))
    if not is_there(name):
        raise InputError(f"{name}: there is no such file; expected a TOML file (glasshouse audit --show-config)")
    return name


def read_config(path: Path) -> Config:
    """A configuration, with its files found beside it. Everything wrong with it is said at once, a line each."""
    try:
        config = Config.model_validate(read_toml(path, path.name))
    except ValidationError as error:
        found = error.errors(include_url=False)
        lines = [_complaint(path.name, one) for one in found[:COMPLAINTS]]
        more = [f"{path.name}: and {len(found) - COMPLAINTS:,} more mistakes"] if len(found) > COMPLAINTS else []
        raise InputError(*lines, *more) from None
    return _found(config, path)


def _complaint(name: str, error: Mapping[str, Any]) -> str:
    """One thing that is wrong, in one line: the file, the key, what was found, what is expected."""
    where = [str(part) for part in error["loc"]]
    key, kind, given = ".".join(where), error["type"], error["input"]
    found = json.dumps(given, default=str)
    found = found if len(found) <= SHOWN else f"{found[: SHOWN - 3]}..."
    context = error.get("ctx", {})
    if kind == "extra_forbidden":
        return f"{name}: {unknown('key', key, [_dotted(where[:-1], one) for one in _known(where[:-1])])}"
    if kind == "missing":
        return f"{name}: '{key}' is missing; expected {_expected(where)}"
    if kind == "value_error":
        prefix = f"'{key}': " if key else ""
        return f"{name}: {prefix}{context['error']}"
    if kind == "literal_error":
        return f"{name}: '{key}' is {found}; expected one of {context['expected']}"
    limits = {"greater_than_equal": ("ge", "at least"), "less_than_equal": ("le", "at most"),
              "greater_than": ("gt", "more than"), "less_than": ("lt", "less than")}  # fmt: skip
    if kind in limits:
        limit, said = limits[kind]
        expected = _expected(where)
        more = "" if " from " in expected else f", {said} {context[limit]:g}"
        return f"{name}: '{key}' is {found}; expected {expected}{more}"
    return f"{name}: '{key}' is {found}; expected {_expected(where)}"


def _dotted(where: list[str], key: str) -> str:
    return ".".join([*where, key])


def _model(where: list[str]) -> type[BaseModel]:
    """The part of the configuration that a path of keys leads to."""
    model: type[BaseModel] = Config
    for key in where:
        annotation = model.model_fields[key].annotation
        options = [annotation, *getattr(annotation, "__args__", ())]
        model = next(one for one in options if isinstance(one, type) and issubclass(one, BaseModel))
    return model


def _known(where: list[str]) -> list[str]:
    return list(_model(where).model_fields)


def _expected(where: list[str]) -> str:
    """What belongs there, from the schema."""
    part: dict[str, Any] = Config.model_json_schema()
    shared = part.get("$defs", {})
    for key in where:
        found = part.get("properties", {}).get(key) or part.get("additionalProperties") or part.get("items") or {}
        options = found.get("anyOf", [found])
        part = next((one for one in options if one.get("type") != "null"), found)
        description = found.get("description", "")
        if "$ref" in part:
            part = shared[part["$ref"].rsplit("/", 1)[-1]]
        elif isinstance(part.get("allOf"), list) and "$ref" in part["allOf"][0]:
            part = shared[part["allOf"][0]["$ref"].rsplit("/", 1)[-1]]
    kinds = {"integer": "a whole number", "number": "a number", "string": "a text", "boolean": "true or false",
             "array": "a list", "object": "a section"}  # fmt: skip
    kind = kinds.get(str(part.get("type")), "another value")
    if "minimum" in part and "maximum" in part:
        kind += f" from {part['minimum']:g} to {part['maximum']:g}"
    return f"{kind} ({description})" if description else kind


# names of ours, or files beside the configuration
_NAMED = (
    ("claims", "scenario"), ("occupancy", "scenario"), ("noise", "budget"), ("protections", "plan"),
    ("synthetic", "preset"),
)  # fmt: skip


def _found(config: Config, path: Path) -> Config:
    """The configuration with its paths beside the file that names them; one that is not there is refused."""

    missing = []

    def beside(key: str, file: Path) -> Path:
        there = file if file.is_absolute() else path.parent / file
        if not is_there(there) and not (key == "input.tables" and is_there(there, folder=True)):
            missing.append(
                f"{path.name}: '{key}' is {str(file)[:NAME_LENGTH]}: there is no such file; paths are relative to "
                f"{path.name}"
            )
        return there

    def named(name: str) -> str:
        """A name of ours, or a file or folder beside the configuration."""
        there = path.parent / name
        return str(there) if name and (is_there(there) or is_there(there / "scenario.toml")) else name

    def scenario(key: str, name: str) -> str:
        """A scenario of ours, or a folder beside the configuration; one that is neither is refused."""
        try:
            return name if name in known_scenarios() else str(folder_of(named(name)))
        except InputError as error:
            missing.extend(f"{path.name}: '{key}': {line}" for line in error.args)
            return name

    changed: dict[str, Any] = {"scenario": scenario("scenario", config.scenario)}
    if config.input is not None:
        files = {key: beside(f"input.{key}", value) for key, value in config.input if isinstance(value, Path)}
        changed["input"] = config.input.model_copy(update=files)
    lists = {key: beside(f"attackers.lists.{key}", value) for key, value in config.attackers.lists.items()}
    changed["attackers"] = config.attackers.model_copy(update={"lists": lists})
    for part, key in _NAMED:
        section = getattr(config, part)
        if section is not None:
            name = getattr(section, key)
            there = scenario(f"{part}.{key}", name) if key == "scenario" else named(name)
            changed[part] = section.model_copy(update={key: there})
    if missing:
        raise InputError(*missing)
    return config.model_copy(update=changed)
