"""Which tables does an office publish? Loads a scenario, which is data (TOML and CSV), and checks it."""

from __future__ import annotations

import csv
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, lru_cache
from importlib import resources
from itertools import product
from pathlib import Path

from glasshouse.errors import InputError, unknown
from glasshouse.limits import CODE_LENGTH, LINES, NAME_LENGTH, SPELLINGS, TOML_BYTES
from glasshouse.model.geography import Geography
from glasshouse.model.printed import EXACT, Printed
from glasshouse.model.release import Line, Table, attributes_counted
from glasshouse.model.schema import Attribute, Group, Recode, Schema
from glasshouse.model.wording import Wording, plain_wording
from glasshouse.scenarios.households import Household
from glasshouse.scenarios.households import read as read_household
from glasshouse.scenarios.layout import Layout
from glasshouse.scenarios.layout import read as read_layout
from glasshouse.scenarios.names import read as read_names
from glasshouse.scenarios.occupancy import Occupancy
from glasshouse.scenarios.occupancy import read as read_occupancy
from glasshouse.scenarios.parse import KINDS, Official, Parser, Toml, dict_of, only, within
from glasshouse.scenarios.printed import read as read_printed
from glasshouse.scenarios.shape import refuse_other_kinds
from glasshouse.scenarios.spelling import bins, spell, spell_lines
from glasshouse.scenarios.toml import is_there, read_toml
from glasshouse.text import harmful

__all__ = ["Archive", "Official", "Scenario", "bins", "known_scenarios", "load", "spell", "strategy_query"]

# Columns of result files that stand beside the code of a place: no level may be called so.
RESULTS = {
    "level", "geoid", "table", "variable", "lower", "upper", "low", "high", "population", "records", "certain",
    "solvar", "attribute", "group", "order", "proof", "method", "error", "households", "persons", "answer", "claims",
}  # fmt: skip


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
    compared: tuple[str, str] = ("binned", "finest")  # what the cells are called: with bins, and without
    unique_on: tuple[str, ...] = ()  # attributes or bins: who is alone with them in a place counts as unique
    aside: tuple[Table, ...] = ()  # tables of the scenario that are not used this time
    leave_out: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # codes of rows that are no records here
    claim: Wording | None = None  # what claims about records may say, if the scenario has words for it
    measure: Mapping[str, Recode] = field(default_factory=dict)  # what noise is added to: factors of strategy queries
    reference: str = ""  # of which census published figures can stand beside those of these tables
    occupancy: Occupancy | None = None  # what another agency says of the same households, and a rule for them
    source: str = field(default="", compare=False)  # the name or folder it was loaded by
    household: Household | None = None  # of persons: who lives together, and what makes households alike
    layout: Layout | None = None  # how the office's own table files are laid out, if the scenario says so
    printed: Printed = EXACT  # how the office prints its numbers
    places: Path | None = None  # a list of the office's codes and names of places, if its codes do not nest
    microdata: Mapping[str, float] | None = None  # what the office asks of records that it releases itself
    spelled: Mapping[str, tuple[str, int]] = field(default_factory=dict)  # names of variables that follow no pattern

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
        return _names(self.catalogue, self.patterns) | dict(self.spelled)

    def choose(self, tables: Iterable[str]) -> Scenario:
        """The same scenario with only some of its tables."""
        chosen = {self.table(name).name for name in tables}
        left = (*self.aside, *(table for table in self.tables if table.name not in chosen))
        return replace(self, tables=tuple(table for table in self.tables if table.name in chosen), aside=left)

    @property
    def unchosen(self) -> frozenset[str]:
        """The names of the tables that are not used this time."""
        return frozenset(table.name for table in self.aside)

    def with_zeros(self, kinds: Collection[str]) -> Scenario:
        """The same scenario that calls only records of these kinds of structural zero impossible.

        The tables stay as they are, so what the words of a table mean must stay: a total whose parts would no longer
        make it up is refused.
        """
        unheard = set(kinds).difference(KINDS)
        if unheard:
            raise unknown("kind of structural zero", min(unheard), KINDS)
        kept = tuple(zero for zero in self.schema.impossible if zero.kind in kinds)
        schema = Schema(self.schema.attributes, kept)
        for table in self.tables:
            for line in table.subtotals:
                parts = (table.line(part).predicate for part in line.parts)
                if line.predicate and not schema.covered(line.predicate, (part for part in parts if part is not None)):
                    raise InputError(
                        f"without other kinds of structural zero than {', '.join(sorted(kinds)) or 'none'} the parts "
                        f"of {line.variable} do not make it up; keep the kind 'definition'"
                    )
        return replace(self, schema=schema)

    @cached_property
    def wording(self) -> Wording:
        """The words for descriptions of records: the scenario's own, or names and labels."""
        return self.claim or plain_wording(self.schema, self.recodes)

    def said(self, table: Table, line: Line) -> str:
        """What a line counts, in words."""
        if line.predicate is None or line.predicate.empty:  # answers, or nobody
            return f"{table.title}: {line.label}"
        return self.wording.said(self.schema, line.predicate)

    @cached_property
    def attributes_used(self) -> frozenset[str]:
        """The attributes that the tables look at."""
        return frozenset().union(*(attributes_counted(table) for table in self.tables))

    @cached_property
    def attributes_told(self) -> frozenset[str]:
        """The attributes that its tables look at, also those that are not used this time."""
        return self.attributes_used.union(*(attributes_counted(table) for table in self.aside))


TOTAL, DETAILED = "total", "detailed"  # strategy queries that every scenario understands


def strategy_query(scenario: Scenario, query: str) -> tuple[Recode, ...]:
    """What a strategy query of a budget crosses: `votingage * cenrace`, by the scenario's own names for it.

    A factor is an entry of the scenario's `[measure]`, or an attribute by its name, every level for itself. `total`
    crosses nothing, `detailed` every attribute. Each record is in one cell of the product.
    """
    if query.strip() == TOTAL:
        return ()
    if query.strip() == DETAILED:
        return tuple(every_level(attribute) for attribute in scenario.schema.attributes)
    factors: list[Recode] = []
    for name in (word.strip() for word in query.split("*")):
        if name in scenario.measure:
            factors.append(scenario.measure[name])
        elif name in scenario.schema.by_name:
            factors.append(every_level(scenario.schema.attribute(name)))
        else:
            raise unknown(f"factor of the query '{query}'", name, {*scenario.measure, *scenario.schema.by_name})
    looked_at = [factor.attribute for factor in factors]
    if len(set(looked_at)) < len(looked_at):
        twice = next(name for name in looked_at if looked_at.count(name) > 1)
        raise InputError(f"query '{query}' has two factors that look at {twice}; expected one for each attribute")
    return tuple(factors)


def every_level(attribute: Attribute) -> Recode:
    """An attribute as it is: a group for each of its levels."""
    groups = tuple(Group(label, frozenset([level])) for level, label in enumerate(attribute.levels))
    return Recode(attribute.name, attribute.name, groups)


def known_scenarios() -> tuple[str, ...]:
    """The scenarios that come with Glasshouse."""
    folder = resources.files("glasshouse") / "scenarios" / "data"
    return tuple(sorted(item.name for item in folder.iterdir() if (item / "scenario.toml").is_file()))


def scenarios_with(section: str) -> tuple[str, ...]:
    """The scenarios that come with Glasshouse and have a section of this name."""
    folder = resources.files("glasshouse") / "scenarios" / "data"
    texts = {name: (folder / name / "scenario.toml").read_text(encoding="utf-8") for name in known_scenarios()}
    return tuple(name for name, text in texts.items() if section in tomllib.loads(text))


def load(name: str) -> Scenario:
    """Load a built-in scenario by name, or a scenario of your own by the path of its folder."""
    if name in known_scenarios():
        return _built_in(name)
    return _read(folder_of(name), name)


def folder_of(name: str) -> Path:
    """The folder of a scenario of your own."""
    if is_there(Path(name) / "scenario.toml"):
        return Path(name)
    if Path(name).name == "scenario.toml" and is_there(name):
        return Path(name).parent
    if is_there(name, folder=True):
        raise InputError(f"{name} has no scenario.toml; a scenario is a folder with one")
    raise InputError(
        f"unknown scenario '{name[:NAME_LENGTH]}'; known: {', '.join(known_scenarios())}; "
        "or give the path of a folder that has a scenario.toml"
    )


@cache  # part of the program, like its code
def _built_in(name: str) -> Scenario:
    return _read(Path(str(resources.files("glasshouse") / "scenarios" / "data" / name)), name)


def _read(folder: Path, name: str) -> Scenario:
    source = folder / "scenario.toml"
    toml = read_toml(source)
    try:
        return replace(_Assembly(folder).scenario(toml), source=name)
    except InputError as error:
        error.add_where(source)
        raise
    except OSError as error:
        raise InputError(f"{source}: cannot read {error.filename} ({error.strerror})") from None
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        # data of the wrong kind deep inside an entry: a list where a word should be, a word where a number should be
        raise InputError(f"{source}: an entry is of the wrong kind ({error})") from None


class _Assembly:
    """Puts a scenario together from the TOML of one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def scenario(self, toml: Toml) -> Scenario:
        keys = "catalogue variable aliases archive impossible recode iteration compare records claim measure occupancy"
        keys += " reference household files printed names microdata"
        only(toml, "the top level", required="title geography attribute table", optional=keys)
        refuse_other_kinds(toml)
        patterns = (toml.get("variable", "{table}_{line:3}"), *toml.get("aliases", []))
        self.parser = Parser(toml, patterns)
        archives = toml.get("archive", [])
        geography = self.geography(dict_of(toml, "geography"))
        for attribute in self.parser.schema.attributes:
            if geography.place in attribute.readings[0].columns:
                raise InputError(
                    f"attribute '{attribute.name}' is spelled in the column '{geography.place}', which holds the place "
                    "of a record; expected another name"
                )
        catalogue = self.catalogue(toml["catalogue"]) if "catalogue" in toml else {}
        tables = [
            table
            for name, entry in dict_of(toml, "table").items()
            for table in within(
                f"table {name}", self.parser.tables, name, entry, dict_of(toml, "iteration"), catalogue, geography
            )
        ]
        if not tables:
            raise InputError("[table] is empty; expected at least one table")
        _refuse_doubles(tables)
        if not catalogue:
            catalogue = {table.name: Official(table.name, len(table.lines), 0) for table in tables}
        if len(patterns) * sum(one.lines for one in catalogue.values()) > SPELLINGS:
            raise InputError(f"variables have more than {SPELLINGS:,} names, in all spellings; expected fewer aliases")
        for pattern, name in product(patterns, catalogue):
            spell(pattern, name, 1)
        bins, unique_on, compared = within("compare", self.compare, dict_of(toml, "compare"))
        return Scenario(
            name=self.folder.name,
            title=toml["title"],
            schema=self.parser.schema,
            geography=geography,
            recodes=self.parser.recodes,
            tables=tuple(tables),
            catalogue=tuple(catalogue.values()),
            patterns=patterns,
            archives=tuple(self.archive(entry) for entry in (archives if isinstance(archives, list) else [archives])),
            bins=bins,
            unique_on=unique_on,
            compared=compared,
            leave_out=within("records", self.leave_out, dict_of(toml, "records")),
            claim=within("claim", self.parser.claim, toml["claim"]) if "claim" in toml else None,
            reference=str(toml.get("reference", "")),
            measure=within("measure", self.measure, dict_of(toml, "measure")),
            occupancy=within("occupancy", read_occupancy, toml["occupancy"], self.parser, tables)
            if "occupancy" in toml
            else None,
            household=within("household", read_household, toml["household"], self.parser, geography)
            if "household" in toml
            else None,
            layout=within("files", read_layout, toml["files"], self.parser) if "files" in toml else None,
            printed=within("printed", read_printed, dict_of(toml, "printed"), self.folder),
            places=self.places(dict_of(toml, "geography")),
            microdata=within("microdata", self.microdata, toml["microdata"]) if "microdata" in toml else None,
            spelled=read_names(self.folder / Path(toml["names"]).name, tables) if "names" in toml else {},
        )

    def compare(self, toml: Toml) -> tuple[dict[str, Recode], tuple[str, ...], tuple[str, str]]:
        """How records are compared: columns of bins, what makes a record unique, and what the cells are called."""
        only(toml, "compare", optional="bins unique names")
        schema, recodes = self.parser.schema, self.parser.recodes
        bins: dict[str, Recode] = {}
        for column, name in dict_of(toml, "bins").items():
            if name not in recodes:
                raise unknown(f"recode of bins '{column}'", name, recodes)
            recode = recodes[name]
            levels = {level for leaf in recode.leaves for level in leaf.levels}
            if recode.tally or len(levels) != len(schema.attribute(recode.attribute)):
                raise InputError(
                    f"bins '{column}': recode '{name}' does not put every {recode.attribute} into one group"
                )
            if column in schema.by_name or recode.attribute in [other.attribute for other in bins.values()]:
                raise InputError(f"bins '{column}': expected one new column of bins for an attribute")
            bins[column] = recode
        unique_on = tuple(toml.get("unique", []))
        for name in unique_on:
            if name not in bins:
                schema.attribute(name)
        binned, finest = toml.get("names", ["binned", "finest"])
        return bins, unique_on, (str(binned), str(finest))

    def measure(self, toml: Toml) -> dict[str, Recode]:
        """What the factors of strategy queries mean: an attribute, every level for itself, or a recode of one."""
        schema, recodes = self.parser.schema, self.parser.recodes
        found: dict[str, Recode] = {}
        for name, meant in toml.items():
            if name in (TOTAL, DETAILED) or "*" in name:
                raise InputError(f"'{name}' has a meaning of its own; expected the name of a factor")
            if meant not in recodes and meant not in schema.by_name:
                raise unknown(f"attribute or recode of '{name}'", meant, {*schema.by_name, *recodes})
            recode = every_level(schema.attribute(meant)) if meant in schema.by_name else recodes[meant]
            both = meant in schema.by_name and meant in recodes
            if both and not {leaf.levels for leaf in recodes[meant].leaves} == {g.levels for g in recode.groups}:
                raise InputError(
                    f"'{name}': '{meant}' is an attribute and a recode with other groups; rename the recode"
                )
            levels = {level for leaf in recode.leaves for level in leaf.levels}
            if recode.tally or len(levels) != len(schema.attribute(recode.attribute)):
                raise InputError(
                    f"'{name}': recode '{meant}' does not put every {recode.attribute} into one group; "
                    "noise is added to counts that divide all records"
                )
            found[name] = recode
        return found

    def microdata(self, toml: Toml) -> dict[str, float]:
        only(toml, "microdata", required="area category sample")
        return dict(toml)

    def leave_out(self, toml: Toml) -> dict[str, tuple[str, ...]]:
        only(toml, "records", optional="leave_out")
        return {column: tuple(str(code) for code in codes) for column, codes in dict_of(toml, "leave_out").items()}

    def geography(self, toml: Toml) -> Geography:
        only(toml, "geography", required="place unit levels", optional="compose places")
        taken = next((level for level in dict_of(toml, "levels") if level in RESULTS), None)
        if taken is not None:
            raise InputError(f"level '{taken}' is called as a column of results is; expected another name for it")
        compose = tuple(tuple(_column(word) for word in line.split()) for line in toml.get("compose", []))
        return Geography(dict_of(toml, "levels"), toml["place"], toml["unit"], compose=compose)

    def places(self, toml: Toml) -> Path | None:
        path = self.folder / Path(toml["places"]).name if "places" in toml else None
        if path is not None and not path.is_file():
            raise InputError(f"geography: there is no {path}; expected a list of places: level, code, name, geoid")
        return path

    def archive(self, toml: Toml) -> Archive:
        only(toml, "archive", required="suffix geography delimiter fileid sumlev", optional="lacks")
        if toml["geography"] not in ("fixed-width", "delimited"):
            raise unknown("kind of geographic header", toml["geography"], ("fixed-width", "delimited"))
        return Archive(
            toml["suffix"],
            toml["geography"],
            toml["delimiter"],
            toml["fileid"],
            dict_of(toml, "sumlev"),
            tuple(toml.get("lacks", [])),
        )

    def catalogue(self, name: str) -> dict[str, Official]:
        path = self.folder / Path(name).name
        if path.is_file() and path.stat().st_size > TOML_BYTES:
            raise InputError(f"{path.name}: more than {TOML_BYTES >> 20} MiB; expected a catalogue of at most that")
        found: dict[str, Official] = {}
        with path.open(encoding="utf-8", newline="") as file:
            try:
                for line, row in enumerate(csv.DictReader(file), 2):
                    found[row["table"]] = within(f"{path.name}, line {line}", _official, row, found)
            except (csv.Error, UnicodeDecodeError) as error:
                raise InputError(f"{path.name}: cannot be read ({error}); expected a CSV file in UTF-8") from None
        if sum(one.lines for one in found.values()) > LINES:
            raise InputError(f"{path.name}: more than {LINES:,} lines of tables; expected fewer")
        return found


@lru_cache(maxsize=8)  # a scenario with other tables chosen has the same names
def _names(catalogue: tuple[Official, ...], patterns: tuple[str, ...]) -> dict[str, tuple[str, int]]:
    names: dict[str, tuple[str, int]] = {}
    for pattern in reversed(patterns):
        for entry in catalogue:
            lines = range(1, entry.lines + 1)
            names.update(zip(spell_lines(pattern, entry.table, lines), ((entry.table, n) for n in lines), strict=True))
    return names


def _refuse_doubles(tables: list[Table]) -> None:
    """Every published number has a name of its own."""
    owner: dict[str, str] = {}
    for table in tables:
        for line in table.lines:
            if line.variable in owner:
                raise InputError(f"variable {line.variable} is of table {owner[line.variable]} and of {table.name}")
            owner[line.variable] = table.name


def _official(row: Mapping[str, str], known: Collection[str]) -> Official:
    """A row of a catalogue."""
    name, numbers = row["table"] or "", [row["lines"] or "", row["segment"] or ""]
    if not name or len(name) > NAME_LENGTH or harmful(name) is not None or name in known:
        raise InputError(f"the table is '{name[:40]}'; expected a name that no other table has")
    if not all(re.fullmatch("[0-9]{1,6}", number) for number in numbers) or int(numbers[0]) < 1:
        raise InputError(f"lines and segment are {numbers}; expected whole numbers, lines from 1 up")
    return Official(name, int(numbers[0]), int(numbers[1]))


def _column(word: str) -> tuple[str, int]:
    """A column and the width of its codes, as in `TRACT:6`."""
    match = re.fullmatch(r"(\w+):([0-9]{1,3})", word)
    if not match or int(match[2]) > CODE_LENGTH:
        raise InputError(f"geography: '{word}' is not a column with a width up to {CODE_LENGTH}, such as NAME:6")
    return match[1], int(match[2])
