"""Which tables does an office publish? Loads a scenario, which is data (TOML and CSV), and checks it."""

from __future__ import annotations

import csv
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from importlib import resources
from itertools import combinations
from pathlib import Path
from typing import Any, TypeVar, cast

from glasshouse.errors import InputError, unknown
from glasshouse.geography import Geography
from glasshouse.release import Table, build_table
from glasshouse.schema import Attribute, Group, Impossible, Predicate, Reading, Recode, Schema

Toml = Mapping[str, Any]
Made = TypeVar("Made")


@dataclass(frozen=True)
class Official:
    """An official table, whether or not the scenario uses it: how many lines, and its segment in the archive."""

    table: str
    lines: int
    segment: int


@dataclass(frozen=True)
class Archive:
    """How an office packs its tables: a geographic header and segments, joined on a record number."""

    suffix: str
    geography: str
    delimiter: str
    fileid: str
    sumlev: Mapping[str, str]
    lacks: tuple[str, ...] = ()  # tables of the scenario that this vintage does not have


@dataclass(frozen=True)
class Scenario:
    """What an office publishes: the record, the places, the tables and their official names."""

    name: str
    title: str
    schema: Schema
    geography: Geography
    recodes: Mapping[str, Recode]
    tables: tuple[Table, ...]
    catalogue: tuple[Official, ...]
    patterns: tuple[str, ...]
    archives: tuple[Archive, ...] = ()
    bins: Mapping[str, Recode] = field(default_factory=dict)  # how records are compared: a column gives the group
    unique_on: tuple[str, ...] = ()  # attributes or bins: who is alone with them in a place counts as unique
    unchosen: frozenset[str] = frozenset()  # tables of the scenario that are not used this time

    @cached_property
    def by_table(self) -> dict[str, Table]:
        return {table.name: table for table in self.tables}

    def table(self, name: str) -> Table:
        if name not in self.by_table:
            raise unknown("table", name, self.by_table)
        return self.by_table[name]

    @cached_property
    def official(self) -> dict[str, tuple[str, int]]:
        """Every spelling of every official variable, with its table and line."""
        names: dict[str, tuple[str, int]] = {}
        for pattern in reversed(self.patterns):
            for entry in self.catalogue:
                for line in range(1, entry.lines + 1):
                    names[spell(pattern, entry.table, line)] = (entry.table, line)
        return names

    def choose(self, tables: Iterable[str]) -> Scenario:
        """The same scenario with only some of its tables."""
        chosen = {self.table(name).name for name in tables}
        left = self.unchosen.union(table.name for table in self.tables if table.name not in chosen)
        return replace(self, tables=tuple(table for table in self.tables if table.name in chosen), unchosen=left)

    @cached_property
    def attributes_used(self) -> frozenset[str]:
        """The attributes that the tables look at."""
        lines = (line.predicate for table in self.tables for line in table.lines if line.predicate is not None)
        return frozenset(name for predicate in lines for name in predicate.by_attribute)


def known_scenarios() -> tuple[str, ...]:
    """The scenarios that come with Glasshouse."""
    folder = resources.files("glasshouse") / "scenarios"
    return tuple(sorted(item.name for item in folder.iterdir() if (item / "scenario.toml").is_file()))


def load(name: str) -> Scenario:
    """Load a built-in scenario by name, or a scenario of your own by the path of its folder."""
    if name in known_scenarios():
        folder = Path(str(resources.files("glasshouse") / "scenarios" / name))
    elif (Path(name) / "scenario.toml").is_file():
        folder = Path(name)
    elif Path(name).name == "scenario.toml" and Path(name).is_file():
        folder = Path(name).parent
    elif Path(name).is_dir():
        raise InputError(f"{name} has no scenario.toml; a scenario is a folder with one")
    else:
        raise InputError(
            f"unknown scenario '{name}'; known: {', '.join(known_scenarios())}; "
            "or give the path of a folder that has a scenario.toml"
        )
    source = folder / "scenario.toml"
    try:
        return _Parser(folder).scenario(tomllib.loads(source.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{source}: not valid TOML in UTF-8: {error}") from None
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    except OSError as error:
        raise InputError(f"{source}: cannot read {error.filename} ({error.strerror})") from None
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        # data of the wrong kind deep inside an entry: a list where a word should be, a word where a number should be
        raise InputError(f"{source}: an entry is of the wrong kind ({error})") from None


def spell(pattern: str, table: str, line: int) -> str:
    """The name of a variable: `{letters}{number:3}{iteration:1}{line:3}` makes P012A003 of line 3 of table P12A.

    The fields are the parts of the table's name (P, 12, A), the whole of it, and the line; a width pads with zeros.

    >>> spell("{letters}{number:3}{iteration:1}{line:3}", "PCT12", 3)
    'PCT0120003'
    """
    parts = re.fullmatch(r"([A-Za-z]+)(\d+)([A-Za-z]*)", table)
    values = {"table": table, "line": str(line)}
    if parts:
        values |= {"letters": parts[1], "number": parts[2], "iteration": parts[3]}

    def fill(match: re.Match[str]) -> str:
        if match[1] not in values:
            raise InputError(
                f"variable pattern '{pattern}' has no meaning for table '{table}': '{match[1]}' is not known"
            )
        return values[match[1]].rjust(int(match[2] or 0), "0")

    return re.sub(r"\{(\w+)(?::(\d))?\}", fill, pattern)


def bins(text: str, top: int) -> list[range]:
    """Read bins of whole numbers: `0-4` is one bin, `0..4` five of one number each, `85+` all from 85 on.

    >>> [list(group) for group in bins("0..2 3-4 6+", top=7)]
    [[0], [1], [2], [3, 4], [6, 7]]
    """
    found = []
    for word in text.split():
        match = re.fullmatch(r"(\d+)(?:(-|\.\.)(\d+)|(\+))?", word)
        if not match:
            raise InputError(f"'{word}' is not a bin; expected 7, 0-4, 0..4 or 85+")
        first = int(match[1])
        last = top if match[4] else int(match[3] or first)
        if not first <= last <= top:
            raise InputError(f"bin '{word}' does not lie within 0 to {top}")
        found += [range(n, n + 1) for n in range(first, last + 1)] if match[2] == ".." else [range(first, last + 1)]
    return found


class _Parser:
    """Turns the TOML of one folder into a scenario; every complaint says in which entry."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def scenario(self, toml: Toml) -> Scenario:
        keys = "title catalogue variable aliases geography archive attribute impossible recode iteration table compare"
        _only(toml, "the top level", required="title geography attribute table", optional=keys)
        attributes = tuple(
            _within(f"attribute {name}", self.attribute, name, entry)
            for name, entry in _dict(toml, "attribute").items()
        )
        self.schema = Schema(attributes)
        self.schema = Schema(attributes, tuple(self.impossible(entry) for entry in toml.get("impossible", [])))
        recodes = {
            name: _within(f"recode {name}", self.recode, name, entry) for name, entry in _dict(toml, "recode").items()
        }
        self.patterns = (toml.get("variable", "{table}_{line:3}"), *toml.get("aliases", []))
        archives = toml.get("archive", [])
        geography = self.geography(_dict(toml, "geography"))
        catalogue = self.catalogue(toml["catalogue"]) if "catalogue" in toml else {}
        tables = [
            table
            for name, entry in _dict(toml, "table").items()
            for table in _within(
                f"table {name}", self.tables, name, entry, recodes, _dict(toml, "iteration"), catalogue, geography
            )
        ]
        _refuse_doubles(tables)
        if not catalogue:
            catalogue = {table.name: Official(table.name, len(table.lines), 0) for table in tables}
        for pattern in self.patterns:
            spell(pattern, tables[0].name, 1)
        bins, unique_on = _within("compare", self.compare, _dict(toml, "compare"), recodes)
        return Scenario(
            name=self.folder.name,
            title=toml["title"],
            schema=self.schema,
            geography=geography,
            recodes=recodes,
            tables=tuple(tables),
            catalogue=tuple(catalogue.values()),
            patterns=self.patterns,
            archives=tuple(self.archive(entry) for entry in (archives if isinstance(archives, list) else [archives])),
            bins=bins,
            unique_on=unique_on,
        )

    def compare(self, toml: Toml, recodes: Mapping[str, Recode]) -> tuple[dict[str, Recode], tuple[str, ...]]:
        """How records are compared: columns of bins, and what makes a record unique in its place."""
        _only(toml, "compare", optional="bins unique")
        bins: dict[str, Recode] = {}
        for column, name in _dict(toml, "bins").items():
            if name not in recodes:
                raise unknown(f"recode of bins '{column}'", name, recodes)
            recode = recodes[name]
            levels = {level for leaf in recode.leaves for level in leaf.levels}
            if recode.tally or len(levels) != len(self.schema.attribute(recode.attribute)):
                raise InputError(
                    f"bins '{column}': recode '{name}' does not put every {recode.attribute} into one group"
                )
            if column in self.schema.by_name or recode.attribute in [other.attribute for other in bins.values()]:
                raise InputError(f"bins '{column}': expected one new column of bins for an attribute")
            bins[column] = recode
        unique_on = tuple(toml.get("unique", []))
        for name in unique_on:
            if name not in bins:
                self.schema.attribute(name)
        return bins, unique_on

    def geography(self, toml: Toml) -> Geography:
        _only(toml, "geography", required="place unit levels", optional="compose")
        compose = tuple(tuple(_column(word) for word in line.split()) for line in toml.get("compose", []))
        return Geography(_dict(toml, "levels"), toml["place"], toml["unit"], compose=compose)

    def archive(self, toml: Toml) -> Archive:
        _only(toml, "archive", required="suffix geography delimiter fileid sumlev", optional="lacks")
        if toml["geography"] not in ("fixed-width", "delimited"):
            raise unknown("kind of geographic header", toml["geography"], ("fixed-width", "delimited"))
        return Archive(
            toml["suffix"],
            toml["geography"],
            toml["delimiter"],
            toml["fileid"],
            _dict(toml, "sumlev"),
            tuple(toml.get("lacks", [])),
        )

    def catalogue(self, name: str) -> dict[str, Official]:
        with (self.folder / Path(name).name).open(encoding="utf-8", newline="") as file:
            rows = [Official(row["table"], int(row["lines"]), int(row["segment"])) for row in csv.DictReader(file)]
        return {row.table: row for row in rows}

    def attribute(self, name: str, toml: Toml) -> Attribute:
        where = f"attribute {name}"
        _only(toml, where, optional="levels codes range subsets column from")
        column = toml.get("column", name)
        if "subsets" in toml:
            flags = tuple(toml["subsets"])
            chosen = [set(some) for size in range(1, len(flags) + 1) for some in combinations(flags, size)]
            labels = tuple("+".join(flag for flag in flags if flag in some) for some in chosen)
            readings = [Reading(flags, tuple((tuple(str(int(flag in some)) for flag in flags),) for some in chosen))]
        else:
            if "range" in toml:
                if not (isinstance(toml["range"], list) and [type(end) for end in toml["range"]] == [int, int]):
                    raise InputError(
                        f"{where}: range is {toml['range']!r}; expected two whole numbers such as [0, 110]"
                    )
                labels = tuple(str(number) for number in range(toml["range"][0], toml["range"][1] + 1))
            else:
                labels = tuple(_need(toml, where, "levels"))
            readings = [Reading((column,), tuple(((str(code),),) for code in toml.get("codes", labels)))]
        for other, text in _dict(toml, "from").items():
            groups = bins(text, 10**4)
            readings.append(Reading((other,), tuple(tuple((str(number),) for number in group) for group in groups)))
        return Attribute(name, labels, tuple(readings))

    def impossible(self, toml: Toml) -> Impossible:
        sets = {name: value for name, value in toml.items() if name != "reason"}
        return Impossible(self.predicate(sets), _need(toml, "impossible", "reason"))

    def predicate(self, toml: Toml) -> Predicate:
        return self.schema.where(
            {name: self.levels(self.schema.attribute(name), value) for name, value in toml.items()}
        )

    def levels(self, attribute: Attribute, value: Any) -> frozenset[int]:
        """Levels of an attribute: a label, labels, whole numbers as bins, `not` some, or by the members of subsets."""
        everything = frozenset(range(len(attribute)))
        if isinstance(value, str):
            if value in attribute.levels:
                return frozenset([attribute.level(value)])
            if all(label.isdigit() for label in attribute.levels):
                return frozenset(level for _, levels in _binned(attribute, value) for level in levels)
            raise unknown(f"level of {attribute.name}", value, attribute.levels)
        if isinstance(value, list):
            return frozenset(attribute.level(label) for label in value)
        _only(value, f"levels of {attribute.name}", optional="not has size")
        members = [label.split("+") for label in attribute.levels]
        if "not" in value:
            everything -= self.levels(attribute, value["not"])
        if "has" in value:
            everything &= {level for level, some in enumerate(members) if value["has"] in some}
        if "size" in value:
            least, most = value["size"] if isinstance(value["size"], list) else (value["size"], value["size"])
            everything &= {level for level, some in enumerate(members) if least <= len(some) <= most}
        return everything

    def recode(self, name: str, toml: Toml) -> Recode:
        _only(toml, f"recode {name}", required="attribute", optional="groups bins tally")
        attribute = self.schema.attribute(toml["attribute"])
        if "bins" in toml:
            groups = [Group(label, levels) for label, levels in _binned(attribute, toml["bins"])]
        else:
            groups = [self.group(attribute, entry) for entry in toml.get("groups", list(attribute.levels))]
        return Recode(name, attribute.name, tuple(groups), bool(toml.get("tally", False)))

    def group(self, attribute: Attribute, entry: Any) -> Group:
        if isinstance(entry, str):
            return Group(entry, frozenset([attribute.level(entry)]))
        _only(entry, f"a group of {attribute.name}", required="label", optional="levels has size not each parts")
        if "levels" in entry:
            levels = self.levels(attribute, entry["levels"])
        else:
            levels = self.levels(attribute, {key: entry[key] for key in ("has", "size", "not") if key in entry})
        if entry.get("each"):
            parts = tuple(Group(attribute.levels[level], frozenset([level])) for level in sorted(levels))
        else:
            parts = tuple(self.group(attribute, part) for part in entry.get("parts", []))
        return Group(entry["label"], levels, parts)

    def tables(
        self,
        name: str,
        toml: Toml,
        recodes: Mapping[str, Recode],
        iterations: Toml,
        catalogue: Mapping[str, Official],
        geography: Geography,
    ) -> list[Table]:
        where = f"table {name}"
        found = []
        _only(toml, where, required="title level by", optional="universe undivided also iterations")
        for recode in toml["by"]:
            if recode not in recodes:
                raise unknown(f"recode in table {name}", recode, recodes)
        by = [recodes[recode] for recode in toml["by"]]
        universe = self.predicate(_dict(toml, "universe"))
        for letter in ("", *toml.get("iterations", "")):
            if letter and letter not in iterations:
                raise unknown(f"iteration in table {name}", letter, iterations)
            entry = dict(iterations[letter]) if letter else {}
            suffix = f" ({entry.pop('title', letter)})" if letter else ""
            if catalogue and name + letter not in catalogue:
                raise unknown("table of the catalogue", name + letter, catalogue)
            table = build_table(
                self.schema,
                name=name + letter,
                level=geography.known(toml["level"]),
                title=toml["title"] + suffix,
                by=by,
                variable=partial(spell, self.patterns[0], name + letter),
                universe=universe & self.predicate(entry),
                undivided=toml.get("undivided", []),
                also=toml.get("also", []),
            )
            if catalogue and len(table.lines) != catalogue[table.name].lines:
                official = catalogue[table.name].lines
                raise InputError(f"table {table.name} has {len(table.lines)} lines; its catalogue gives it {official}")
            found.append(table)
        return found


def _binned(attribute: Attribute, text: str) -> list[tuple[str, frozenset[int]]]:
    """Bins of an attribute whose levels are whole numbers: a label and the levels of each."""
    found = bins(text, int(attribute.levels[-1]))
    return [(_span(group), frozenset(attribute.level(str(number)) for number in group)) for group in found]


def _within(entry: str, make: Callable[..., Made], *arguments: Any) -> Made:
    """Make something of an entry; a complaint says which entry it was."""
    try:
        return make(*arguments)
    except InputError as error:
        raise InputError(str(error) if entry in str(error) else f"{entry}: {error}") from None
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        # data of the wrong kind deep inside: a list where a word should be, a word where a number should be
        raise InputError(f"{entry}: a value is of the wrong kind ({error})") from None


def _refuse_doubles(tables: list[Table]) -> None:
    """Every published number has a name of its own."""
    owner: dict[str, str] = {}
    for table in tables:
        for line in table.lines:
            if line.variable in owner:
                raise InputError(f"variable {line.variable} is of table {owner[line.variable]} and of {table.name}")
            owner[line.variable] = table.name


def _column(word: str) -> tuple[str, int]:
    """A column and the width of its codes, as in `TRACT:6`."""
    match = re.fullmatch(r"(\w+):(\d+)", word)
    if not match:
        raise InputError(f"geography: '{word}' is not a column with a width, such as TRACT:6")
    return match[1], int(match[2])


def _span(group: range) -> str:
    return str(group[0]) if len(group) == 1 else f"{group[0]}-{group[-1]}"


def _dict(toml: Toml, key: str) -> dict[str, Any]:
    value = toml.get(key, {})
    if not isinstance(value, dict):
        raise InputError(f"'{key}' must be a table of entries; found {type(value).__name__}")
    return cast(dict[str, Any], value)


def _need(toml: Toml, where: str, key: str) -> Any:
    if key not in toml:
        raise InputError(f"{where}: '{key}' is missing")
    return toml[key]


def _only(toml: Any, where: str, required: str = "", optional: str = "") -> None:
    """Refuse entries that are missing, or that no one would read."""
    if not isinstance(toml, Mapping):
        raise InputError(
            f"{where}: expected entries such as {(required + ' ' + optional).split()[0]} = ...; found {toml!r}"
        )
    for key in required.split():
        _need(toml, where, key)
    for key in toml:
        if key not in {*required.split(), *optional.split()}:
            raise unknown(f"entry of {where}", key, {*required.split(), *optional.split()})
