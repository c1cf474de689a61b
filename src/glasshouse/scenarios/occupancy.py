"""What do two agencies say of the same households? Statements, the models that read them, and a rule some may break.

A census counts the households of a block; an agency says something of those that live in its properties there. Each
published number is a *statement*: so many households of a description, or so many persons in them. A *model* says how
strictly each statement is to be taken. All of it is data of the scenario, the rule too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from glasshouse.errors import InputError, unknown
from glasshouse.model.release import Table, answers, counted
from glasshouse.model.schema import EVERYONE, Predicate, Recode, Schema
from glasshouse.scenarios.parse import Parser, dict_of, only


class Sense(StrEnum):
    """How strictly a number is taken."""

    EXACTLY = "exactly"
    AT_LEAST = "at_least"
    AT_LEAST_OR_ALL = "at_least_or_all"  # or what as many of the largest households hold, if that is less
    WITHIN_ROUNDING = "within_rounding"  # any count that gives the published percentage
    ROUNDED_DOWN = "rounded_down"  # at least the percentage, rounded down to a count
    ROUNDED = "rounded"  # exactly the percentage, rounded to a count
    IN_ANY_UNITS = "in_any_units"  # at least so many must live in such units, whichever units have nobody who reports
    IN_LARGEST_UNITS = "in_largest_units"  # at least so many if those who report live in the largest; rounded down


OF_HOUSEHOLDS = (Sense.WITHIN_ROUNDING, Sense.ROUNDED_DOWN, Sense.ROUNDED)  # how percentages can be read
OF_UNITS = (Sense.IN_ANY_UNITS, Sense.IN_LARGEST_UNITS)


@dataclass(frozen=True)
class Statement:
    """A published number of a block: how many answers households give, one for each of `adds` that they fit.

    A number of households has one description; a number of persons has one for "at least one person", one for "at
    least two", and so on. `columns` are those of a property file; without any it is a number of the census.
    """

    name: str
    label: str
    adds: tuple[Predicate, ...]
    columns: tuple[str, ...] = ()
    share: bool = False  # percentages rather than a count
    units: bool = False  # percentages of units, which may stand empty; else of the households that report
    sense: Sense = Sense.EXACTLY

    @property
    def of_property(self) -> bool:
        return bool(self.columns)


@dataclass(frozen=True)
class Model:
    """How statements are read. `present` attributes mean that somebody of that level lives in the household."""

    name: str
    title: str
    statements: tuple[Statement, ...]
    present: tuple[str, ...] = ()
    without_quarters: bool = False


@dataclass(frozen=True)
class Key:
    """A way to tell households apart: by attributes, groups of levels, and whether descriptions fit."""

    name: str
    parts: tuple[str | Recode | tuple[str, Predicate], ...]  # the name of an attribute, a recode, a flag

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(part if isinstance(part, str) else part.name if isinstance(part, Recode) else part[0]
                     for part in self.parts)  # fmt: skip


@dataclass(frozen=True)
class Occupancy:
    """Households of a block, some of them in subsidised properties, and a rule on how many persons a home may have."""

    households: str  # the variable that says how many there are
    occupied: Predicate  # and whom it counts
    subsidised: Predicate
    reported: str
    units: str  # the column of a property file that says how many units there are; "" if no statement is of units
    residents: str
    everyone: str
    unreal: str
    householder: tuple[str, str]  # the attributes of the householder: ethnicity, race
    members: tuple[str, str]  # what counts all members of a household, and the children among them
    sizes: Mapping[str, int]  # the variables that count households by size, and the least persons of each
    breaks: tuple[Predicate, ...]  # a household that fits one of these breaks the rule
    models: Mapping[str, Model]
    spelled: Mapping[str, tuple[str, ...]]  # of each column of a property file, its other names
    whole: Mapping[str, tuple[str, ...]]  # columns that are shares of one whole, by its name; units from the smallest
    keys: Mapping[str, Key]
    measures: Mapping[str, Key]
    people: str = ""  # the column of a property file that says how many persons live there; "" if none does

    def model(self, name: str) -> Model:
        if name not in self.models:
            raise unknown("model", name, self.models)
        return self.models[name]

    @property
    def wholes(self) -> tuple[tuple[str, ...], ...]:
        return tuple(self.whole.values())

    def sizes_of_units(self, statement: Statement) -> tuple[str, ...]:
        """The columns of all units, from the smallest on, of which a statement names some."""
        return next(columns for columns in self.wholes if set(statement.columns) <= set(columns))

    @property
    def shares(self) -> dict[str, tuple[str, ...]]:
        """Every column of percentages that some model looks at, and its other names."""
        named = [c for model in self.models.values() for s in model.statements if s.share for c in s.columns]
        return {column: self.spelled.get(column, ()) for column in dict.fromkeys(named)}

    @property
    def counts(self) -> dict[str, tuple[str, ...]]:
        """Every column of counts that some model looks at, and its other names."""
        said = [s for model in self.models.values() for s in model.statements if s.of_property and not s.share]
        return {column: self.spelled.get(column, ()) for s in said for column in s.columns}

    @property
    def shares_of_units(self) -> tuple[str, ...]:
        """The columns of percentages that may be of units."""
        said = [s for model in self.models.values() for s in model.statements if s.units]
        return tuple(dict.fromkeys(column for s in said for column in s.columns))

    def variables(self, model: Model) -> tuple[str, ...]:
        """The census numbers that a model looks at."""
        named = [s.name for s in model.statements if not s.of_property]
        return tuple(dict.fromkeys([self.households, *named]))


def read(toml: Mapping[str, Any], parser: Parser, tables: Sequence[Table]) -> Occupancy:
    """The section `occupancy` of a scenario."""
    needed = "households subsidised reported residents everyone unreal householder members sizes breaks property model"
    only(toml, "occupancy", required=needed, optional="units spelled whole flag key measure")
    census = {s.name: s for table in tables for s in _census(table)}
    for role in ("households", "residents", "everyone"):
        if toml[role] not in census:
            raise unknown(f"variable of '{role}'", toml[role], census)
    known = {name: _statistic(name, entry, parser) for name, entry in dict_of(toml, "property").items()}
    lines = {table.name: [line.variable for line in table.leaves] for table in tables}
    everybody = answers(parser.schema, EVERYONE, str(toml["members"][0]))
    flags = {name: parser.predicate(entry) for name, entry in dict_of(toml, "flag").items()}
    models = {
        name: _model(name, entry, census | known, lines, parser.schema)
        for name, entry in dict_of(toml, "model").items()
    }
    if not models:
        raise InputError("a scenario of occupancy needs at least one model of it")
    found = Occupancy(
        households=toml["households"],
        occupied=_only(census[toml["households"]].adds),
        subsidised=parser.predicate(dict_of(toml, "subsidised")),
        reported=toml["reported"],
        units=str(toml.get("units", "")),
        residents=toml["residents"],
        everyone=toml["everyone"],
        unreal=toml["unreal"],
        householder=_pair("householder", toml["householder"], parser.schema.by_name),
        members=_pair("members", toml["members"], [name for one in parser.schema.attributes for name in one.numbers]),
        sizes=_sizes(toml["sizes"], toml["members"][0], tables, parser.schema),
        breaks=tuple(parser.predicate(entry) for entry in toml["breaks"]),
        models=models,
        spelled={column: tuple(others) for column, others in dict_of(toml, "spelled").items()},
        whole={name: tuple(columns) for name, columns in dict_of(toml, "whole").items()},
        keys={name: _key(name, parts, parser, flags) for name, parts in dict_of(toml, "key").items()},
        measures={name: _key(name, parts, parser, flags) for name, parts in dict_of(toml, "measure").items()},
        people=next((one.columns[0] for one in known.values() if not one.share and one.adds == everybody), ""),
    )
    if any(not broken <= found.subsidised for broken in found.breaks):
        raise InputError("a rule on subsidised households must name only them; see 'breaks' and 'subsidised'")
    for one in known.values():
        if one.units and not (found.units and any(set(one.columns) <= set(columns) for columns in found.wholes)):
            raise InputError(f"property {one.name}: units need 'units' (their number) and a 'whole' with {one.columns}")
    return found


def _only(adds: tuple[Predicate, ...]) -> Predicate:
    if len(adds) != 1:
        raise InputError("'households' must be a number of households, not of persons in them")
    return adds[0]


def _pair(role: str, names: Sequence[str], known: Iterable[str]) -> tuple[str, str]:
    for name in names:
        if name not in known:
            raise unknown(f"name in '{role}'", name, known)
    first, second = names
    return first, second


def _sizes(table: str, number: str, tables: Sequence[Table], schema: Schema) -> dict[str, int]:
    """The least persons in households of each line of the table of sizes."""
    lines = [line for one in tables if one.name == table for line in one.leaves]
    if not lines:
        raise unknown("table of sizes", table, [one.name for one in tables])
    attribute = next(one for one in schema.attributes if number in one.numbers)
    found = {}
    for line in lines:
        levels = (line.predicate or EVERYONE).by_attribute.get(attribute.name, range(len(attribute)))
        found[line.variable] = min(attribute.numbers[number][level] for level in levels)
    return found


def _census(table: Table) -> Iterable[Statement]:
    for line in table.lines:
        yield Statement(line.variable, f"{table.title}: {line.label}", tuple(counted(table, line)))


def _statistic(name: str, toml: Mapping[str, Any], parser: Parser) -> Statement:
    where = f"property {name}"
    described = {key: value for key, value in toml.items() if key in parser.schema.by_name}
    only(toml, where, required="label", optional=" ".join(["column", "share", "units", "sums", *described]))
    ((how, named), *others) = [(key, toml[key]) for key in ("share", "units", "column") if key in toml] or [("", ())]
    if not how or others:
        raise InputError(f"{where}: expected 'share' or 'units' (columns of percentages), or 'column' (a count)")
    predicate = parser.predicate(described) if described else EVERYONE
    adds = answers(parser.schema, predicate, toml["sums"]) if "sums" in toml else (predicate,)
    columns = (str(named),) if how == "column" else tuple(named)
    return Statement(name, toml["label"], adds, columns, share=how != "column", units=how == "units")


def _model(
    name: str, toml: Mapping[str, Any], known: Mapping[str, Statement], lines: Mapping[str, list[str]], schema: Schema
) -> Model:
    where = f"model {name}"
    only(toml, where, required="title", optional=" ".join([*Sense, "present", "without_quarters"]))
    found: dict[str, Statement] = {}
    for sense in Sense:
        for asked in toml.get(sense.value, []):
            for one in lines.get(asked, [asked]):
                if one not in known:
                    raise unknown(f"number of {where}", one, {*known, *lines})
                if one in found:
                    raise InputError(f"{where}: '{one}' is named twice")
                said = known[one]
                if (sense in OF_UNITS) != said.units or (sense in OF_HOUSEHOLDS) != (said.share and not said.units):
                    what = "a percentage of units" if said.units else "a percentage" if said.share else "no percentage"
                    raise InputError(f"{where}: '{one}' is {what}; not '{sense}'")
                found[one] = replace(said, sense=sense)
    present = tuple(schema.attribute(one).name for one in toml.get("present", []))
    for said in found.values():
        named = {name for predicate in said.adds for name in predicate.by_attribute}
        if named & set(present) and said.sense not in (Sense.AT_LEAST, Sense.ROUNDED_DOWN):
            raise InputError(
                f"{where}: '{said.name}' counts who is present; that is at least so many, not '{said.sense}'"
            )
    return Model(name, toml["title"], tuple(found.values()), present, bool(toml.get("without_quarters", False)))


def _key(name: str, parts: Sequence[str], parser: Parser, flags: Mapping[str, Predicate]) -> Key:
    found: list[str | Recode | tuple[str, Predicate]] = []
    for part in parts:
        if part in flags:
            found.append((part, flags[part]))
        elif part in parser.schema.by_name:
            found.append(part)
        elif part in parser.recodes:
            found.append(parser.recodes[part])
        else:
            raise unknown(f"part of key '{name}'", part, {*flags, *parser.schema.by_name, *parser.recodes})
    return Key(name, tuple(found))
