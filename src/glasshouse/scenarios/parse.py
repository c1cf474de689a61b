"""How do the entries of a scenario become attributes, recodes and tables? Every complaint says in which entry."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, combinations
from math import prod
from typing import Any, TypeVar, cast

from glasshouse.errors import InputError, unknown
from glasshouse.limits import ATTRIBUTES, LINES, RECORDS, WAYS
from glasshouse.model.geography import Geography
from glasshouse.model.release import OfWhich, Table, build_sums, build_table
from glasshouse.model.schema import EVERYONE, Attribute, Group, Impossible, Predicate, Reading, Recode, Schema
from glasshouse.model.wording import Clause, Noun, Wording, labels_of_groups, single_levels
from glasshouse.scenarios.spelling import binned, bins, members, numbers_of, refuse_levels, spell, spellings
from glasshouse.scenarios.toml import found as shown
from glasshouse.text import is_whole

Toml = Mapping[str, Any]
Made = TypeVar("Made")
KINDS = (
    "certain",
    "definition",
    "edit rule",
)  # of structural zeros: true of households, of words, of one office's files
_TOLD = {"counts": "rest most label", "subsets": "from", "range": "codes column from", "levels": "codes column from"}


@dataclass(frozen=True)
class Official:
    """An official table, whether or not the scenario uses it: how many lines, and its segment in the archive."""

    table: str
    lines: int
    segment: int


class Parser:
    """Turns entries about records and tables into nouns; the attributes come first, the rest names their levels."""

    def __init__(self, toml: Toml, patterns: tuple[str, ...]) -> None:
        self.patterns = patterns
        self.lines_left = LINES  # that tables may have
        attributes = tuple(
            within(f"attribute {name}", self.attribute, name, entry)
            for name, entry in dict_of(toml, "attribute").items()
        )
        self.schema = Schema(attributes)
        if len(attributes) > ATTRIBUTES:
            raise InputError(f"{len(attributes)} attributes; expected at most {ATTRIBUTES}")
        if prod(map(len, attributes)) > RECORDS:
            raise InputError(
                f"the levels of all attributes make more than {RECORDS:.1e} different records; expected fewer levels"
            )
        _refuse_one_column(attributes)
        zeros = [zero for entry in toml.get("impossible", []) for zero in within("impossible", self.impossible, entry)]
        self.schema = Schema(attributes, tuple(zeros))
        self.recodes = {
            name: within(f"recode {name}", self.recode, name, entry) for name, entry in dict_of(toml, "recode").items()
        }

    def attribute(self, name: str, toml: Toml) -> Attribute:
        where = f"attribute {name}"
        told = next((way for way in _TOLD if way in toml), "levels")
        only(toml, where, optional=f"{told} {_TOLD[told]}")
        column = toml.get("column", name)
        numbers: dict[str, tuple[int, ...]] = {}
        if "counts" in toml:
            only(toml, where, required="counts rest most", optional="label")
            labels, readings, numbers = members(where, toml)
        elif "subsets" in toml:
            flags = tuple(toml["subsets"])
            refuse_levels(where, 2 ** min(len(flags), 64) - 1)  # before they are made
            chosen = [set(some) for size in range(1, len(flags) + 1) for some in combinations(flags, size)]
            labels = tuple("+".join(flag for flag in flags if flag in some) for some in chosen)
            readings = [Reading(flags, tuple((tuple(str(int(flag in some)) for flag in flags),) for some in chosen))]
        else:
            if "range" in toml:
                if not (isinstance(toml["range"], list) and [type(end) for end in toml["range"]] == [int, int]):
                    raise InputError(
                        f"{where}: range is {shown(toml['range'])}; expected two whole numbers such as [0, 110]"
                    )
                refuse_levels(where, toml["range"][1] + 1 - toml["range"][0])
                labels = tuple(str(number) for number in range(toml["range"][0], toml["range"][1] + 1))
                if toml["range"][0] >= 0:
                    numbers = {name: tuple(range(toml["range"][0], toml["range"][1] + 1))}
            else:
                labels = tuple(need(toml, where, "levels"))
                refuse_levels(where, len(labels))
            readings = [Reading((column,), spellings(toml.get("codes", list(labels))))]
        for other, text in dict_of(toml, "from").items():
            readings.append(Reading((other,), spellings(text)))
        return Attribute(name, labels, tuple(readings), numbers)

    def impossible(self, toml: Toml) -> list[Impossible]:
        """A structural zero; with `unless`, one for each attribute that must have some of its levels."""
        reason, kind = need(toml, "impossible", "reason"), toml.get("kind", KINDS[0])
        if kind not in KINDS:
            raise unknown("kind of impossible", kind, KINDS)
        where = self.predicate({key: value for key, value in toml.items() if key not in ("reason", "kind", "unless")})
        must = [self.predicate({name: {"not": value}}) for name, value in dict_of(toml, "unless").items()]
        found = [Impossible(where & other, reason, kind) for other in must or [EVERYONE]]
        for zero in found:
            if zero.predicate == EVERYONE or zero.predicate.empty:
                said = "every record" if zero.predicate == EVERYONE else "no record"
                raise InputError(
                    f"impossible '{reason}' is about {said}; expected the levels that cannot be, of one attribute or "
                    "several"
                )
        return found

    def predicate(self, toml: Toml) -> Predicate:
        return self.schema.where(
            {name: self.levels(self.schema.attribute(name), value) for name, value in toml.items()}
        )

    def levels(self, attribute: Attribute, value: Any) -> frozenset[int]:
        """Levels of an attribute: a label, labels, numbers or codes as bins, or by entries that must all hold.

        Entries say `not` which, members of subsets (`has`, `size`), or bins of the numbers that levels have.
        """
        everything = frozenset(range(len(attribute)))
        if isinstance(value, str):
            if value in attribute.levels:
                return frozenset([attribute.level(value)])
            if numbers_of(attribute) and (is_whole(attribute.levels[0]) or re.fullmatch(r"[-0-9.+ ]+", value)):
                return frozenset(level for _, levels in binned(attribute, value) for level in levels)
            raise unknown(f"level of {attribute.name}", value, attribute.levels)
        if isinstance(value, list):
            if not value:
                raise InputError(f"an empty list of levels of {attribute.name}; expected at least one")
            return frozenset(attribute.level(label) for label in value)
        only(value, f"levels of {attribute.name}", optional=" ".join(["not has size", *attribute.numbers]))
        for counted, numbers in attribute.numbers.items():
            for group in [bins(value[counted], max(numbers))] if counted in value else []:
                everything &= attribute.having(counted, chain.from_iterable(group))
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
        only(toml, f"recode {name}", required="attribute", optional="groups bins tally")
        attribute = self.schema.attribute(toml["attribute"])
        if "bins" in toml:
            groups = [Group(label, levels) for label, levels in binned(attribute, toml["bins"])]
        else:
            groups = [self.group(attribute, entry) for entry in toml.get("groups", list(attribute.levels))]
        return Recode(name, attribute.name, tuple(groups), bool(toml.get("tally", False)))

    def group(self, attribute: Attribute, entry: Any) -> Group:
        if isinstance(entry, str):
            return Group(entry, frozenset([attribute.level(entry)]))
        only(entry, f"a group of {attribute.name}", required="label", optional="levels has size not each parts")
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
        iterations: Toml,
        catalogue: Mapping[str, Official],
        geography: Geography,
    ) -> list[Table]:
        build = self.sums if "sums" in toml else self.counts
        found: list[Table] = []
        given = toml.get("iterations", "")
        letters = given.split() if " " in given else list(given)  # names of several letters stand apart
        if len(set(letters)) < len(letters):
            raise InputError(f"table {name}: an iteration is named twice in '{given}'; expected once")
        universe = self.predicate(dict_of(toml, "universe"))
        for letter in ("", *letters):
            if letter and letter not in iterations:
                raise unknown(f"iteration in table {name}", letter, iterations)
            entry = dict(iterations[letter]) if letter else {}
            suffix = f" ({entry.pop('title', letter)})" if letter else ""
            if catalogue and name + letter not in catalogue:
                raise unknown("table of the catalogue", name + letter, catalogue)
            table = build(name, toml)(
                self.schema,
                name=name + letter,
                level=geography.known(toml["level"]),
                title=toml["title"] + suffix,
                variable=partial(spell, self.patterns[0], name + letter),
                universe=universe & self.predicate(entry),
                doubt=toml.get("doubt", ""),
                most=self.lines_left,
            )
            self.lines_left -= len(table.lines)
            if catalogue and len(table.lines) != catalogue[table.name].lines:
                official = catalogue[table.name].lines
                raise InputError(f"table {table.name} has {len(table.lines)} lines; its catalogue gives it {official}")
            found.append(table)
        return found

    def counts(self, name: str, toml: Toml) -> Callable[..., Table]:
        """How to lay out a table that counts records."""
        optional = "universe undivided also of_which iterations doubt"
        only(toml, f"table {name}", required="title level by", optional=optional)
        if len(toml["by"]) > WAYS:
            raise InputError(f"table {name} crosses {len(toml['by'])} recodes; expected at most {WAYS}")
        for recode in toml["by"]:
            if recode not in self.recodes:
                raise unknown(f"recode in table {name}", recode, self.recodes)
        return partial(
            build_table,
            by=[self.recodes[recode] for recode in toml["by"]],
            undivided=toml.get("undivided", []),
            also=toml.get("also", []),
            of_which={group: self.of_which(some) for group, some in dict_of(toml, "of_which").items()},
        )

    def sums(self, name: str, toml: Toml) -> Callable[..., Table]:
        """How to lay out a table that adds up a number of the records."""
        optional = "universe parts bottom_up iterations doubt"
        only(toml, f"table {name}", required="title level sums", optional=optional)
        return partial(build_sums, sums=toml["sums"], parts=dict_of(toml, "parts"), bottom_up=toml.get("bottom_up", ""))

    def of_which(self, toml: Toml) -> OfWhich:
        sets = {name: value for name, value in toml.items() if name != "label"}
        return OfWhich(need(toml, "of_which", "label"), self.predicate(sets))

    def claim(self, toml: Toml) -> Wording:
        """What claims about records may say, and the words for it."""
        required, words = "record clauses words", dict_of(toml, "words")
        only(toml, "claim", required=required, optional="values sets finer apart apart_record any_record")
        groups: dict[str, tuple[frozenset[int], ...]] = {}
        for attribute in self.schema.attributes:
            groups[attribute.name] = single_levels(len(attribute))
        for name, recode in dict_of(toml, "values").items():
            if recode not in self.recodes or self.recodes[recode].attribute != name:
                raise unknown(
                    f"recode of {name}", recode, [r.name for r in self.recodes.values() if r.attribute == name]
                )
            chosen = [leaf.levels for leaf in self.recodes[recode].leaves]
            rest = [single for single in groups[name] if not any(single <= levels for levels in chosen)]
            groups[name] = tuple(sorted([*chosen, *rest], key=min))
        clauses = tuple(self.clause(entry) for entry in toml["clauses"])
        unsaid = set(groups).difference(*(clause.attributes for clause in clauses))
        if unsaid:
            raise InputError(f"claim: no clause says {min(unsaid)}")
        apart = self.predicate(dict_of(toml, "apart")) if "apart" in toml else None
        if apart is not None:
            only(
                toml,
                "claim with records apart",
                required=f"{required} apart_record any_record",
                optional=" ".join(toml),
            )
        others = {}  # with one attribute, what is not apart can be described
        if apart is not None and len(apart.sets) == 1:
            ((name, levels),) = apart.sets
            others[name] = frozenset(range(len(self.schema.attribute(name)))) - levels
        return Wording(
            tuple(groups),
            groups,
            clauses,
            _noun(toml["record"], self.schema.where(others)),
            {name: self.phrases(name, some, dict_of(dict_of(toml, "sets"), name)) for name, some in words.items()},
            labels_of_groups(self.recodes),
            dict_of(toml, "finer"),
            apart,
            None if apart is None else _noun(toml["apart_record"], apart),
            None if apart is None else _noun(toml["any_record"], EVERYONE),
        )

    def clause(self, toml: Toml) -> Clause:
        only(toml, "a clause", required="of", optional="start")
        return Clause(tuple(self.schema.attribute(name).name for name in toml["of"]), toml.get("start", ""))

    def phrases(self, name: str, words: list[str], sets: Mapping[str, str]) -> dict[frozenset[int], str]:
        """A phrase for every level of an attribute, and for some sets of levels."""
        attribute = self.schema.attribute(name)
        if len(words) != len(attribute):
            raise InputError(f"claim: {len(words)} phrases for {name}, which has {len(attribute)} levels")
        phrases = {frozenset([level]): phrase for level, phrase in enumerate(words)}
        return phrases | {self.levels(attribute, levels): phrase for levels, phrase in sets.items()}


def _refuse_one_column(attributes: Sequence[Attribute]) -> None:
    """Records are written with a column, or several, for each attribute."""
    owner: dict[str, str] = {}
    for attribute in attributes:
        for column in attribute.readings[0].columns:
            if column in owner:
                raise InputError(
                    f"attributes '{owner[column]}' and '{attribute.name}' are both spelled in the column '{column}'; "
                    "expected a column of its own for each"
                )
            owner[column] = attribute.name


def _noun(words: list[str], where: Predicate) -> Noun:
    if len(words) != 3:
        raise InputError(f"{words} are not three words for records: one, several, all of them")
    return Noun(words[0], words[1], words[2], where)


def within(entry: str, make: Callable[..., Made], *arguments: Any) -> Made:
    """Make something of an entry; a complaint says which entry it was."""
    try:
        return make(*arguments)
    except InputError as error:
        error.add_where(entry)
        raise
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        # data of the wrong kind deep inside: a list where a word should be, a word where a number should be
        raise InputError(f"{entry}: a value is of the wrong kind ({error})") from None


def dict_of(toml: Toml, key: str) -> dict[str, Any]:
    value = toml.get(key, {})
    if not isinstance(value, dict):
        raise InputError(f"'{key}' must be a table of entries; found {type(value).__name__}")
    return cast(dict[str, Any], value)


def need(toml: Toml, where: str, key: str) -> Any:
    if key not in toml:
        raise InputError(f"{where}: '{key}' is missing")
    return toml[key]


def only(toml: Any, where: str, required: str = "", optional: str = "") -> None:
    """Refuse entries that are missing, or that no one would read."""
    if not isinstance(toml, Mapping):
        raise InputError(
            f"{where}: expected entries such as {(required + ' ' + optional).split()[0]} = ...; found {toml!r}"
        )
    for key in required.split():
        need(toml, where, key)
    for key in toml:
        if key not in {*required.split(), *optional.split()}:
            raise unknown(f"entry of {where}", key, {*required.split(), *optional.split()})
