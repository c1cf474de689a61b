"""How do the entries of a scenario become attributes, recodes and tables? Every complaint says in which entry."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain, combinations
from typing import Any, TypeVar, cast

from glasshouse.errors import InputError, unknown
from glasshouse.model.geography import Geography
from glasshouse.model.release import OfWhich, Table, build_sums, build_table
from glasshouse.model.schema import EVERYONE, Attribute, Group, Impossible, Predicate, Reading, Recode, Schema
from glasshouse.model.wording import Clause, Noun, Wording, labels_of_groups, single_levels

Toml = Mapping[str, Any]
Made = TypeVar("Made")
KINDS = (
    "certain",
    "definition",
    "edit rule",
)  # of structural zeros: true of households, of words, of one office's files


@dataclass(frozen=True)
class Official:
    """An official table, whether or not the scenario uses it: how many lines, and its segment in the archive."""

    table: str
    lines: int
    segment: int


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


class Parser:
    """Turns entries about records and tables into nouns; the attributes come first, the rest names their levels."""

    def __init__(self, toml: Toml, patterns: tuple[str, ...]) -> None:
        self.patterns = patterns
        attributes = tuple(
            within(f"attribute {name}", self.attribute, name, entry)
            for name, entry in dict_of(toml, "attribute").items()
        )
        self.schema = Schema(attributes)
        zeros = [zero for entry in toml.get("impossible", []) for zero in self.impossible(entry)]
        self.schema = Schema(attributes, tuple(zeros))
        self.recodes = {
            name: within(f"recode {name}", self.recode, name, entry) for name, entry in dict_of(toml, "recode").items()
        }

    def attribute(self, name: str, toml: Toml) -> Attribute:
        where = f"attribute {name}"
        only(toml, where, optional="levels codes range subsets column from counts rest most label")
        column = toml.get("column", name)
        numbers: dict[str, tuple[int, ...]] = {}
        if "counts" in toml:
            only(toml, where, required="counts rest most", optional="label")
            labels, readings, numbers = _members(where, toml)
        elif "subsets" in toml:
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
                if toml["range"][0] >= 0:
                    numbers = {name: tuple(range(toml["range"][0], toml["range"][1] + 1))}
            else:
                labels = tuple(need(toml, where, "levels"))
            readings = [Reading((column,), _spellings(toml.get("codes", list(labels))))]
        for other, text in dict_of(toml, "from").items():
            readings.append(Reading((other,), _spellings(text)))
        return Attribute(name, labels, tuple(readings), numbers)

    def impossible(self, toml: Toml) -> list[Impossible]:
        """A structural zero; with `unless`, one for each attribute that must have some of its levels."""
        reason, kind = need(toml, "impossible", "reason"), toml.get("kind", KINDS[0])
        if kind not in KINDS:
            raise unknown("kind of impossible", kind, KINDS)
        where = self.predicate({key: value for key, value in toml.items() if key not in ("reason", "kind", "unless")})
        must = [self.predicate({name: {"not": value}}) for name, value in dict_of(toml, "unless").items()]
        return [Impossible(where & other, reason, kind) for other in must or [EVERYONE]]

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
            if _numbers(attribute) and (attribute.levels[0].isdigit() or re.fullmatch(r"[-\d.+ ]+", value)):
                return frozenset(level for _, levels in _binned(attribute, value) for level in levels)
            raise unknown(f"level of {attribute.name}", value, attribute.levels)
        if isinstance(value, list):
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
            groups = [Group(label, levels) for label, levels in _binned(attribute, toml["bins"])]
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
        found = []
        universe = self.predicate(dict_of(toml, "universe"))
        for letter in ("", *toml.get("iterations", "")):
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
            )
            if catalogue and len(table.lines) != catalogue[table.name].lines:
                official = catalogue[table.name].lines
                raise InputError(f"table {table.name} has {len(table.lines)} lines; its catalogue gives it {official}")
            found.append(table)
        return found

    def counts(self, name: str, toml: Toml) -> Callable[..., Table]:
        """How to lay out a table that counts records."""
        optional = "universe undivided also of_which iterations doubt"
        only(toml, f"table {name}", required="title level by", optional=optional)
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


def _members(where: str, toml: Toml) -> tuple[tuple[str, ...], list[Reading], dict[str, tuple[int, ...]]]:
    """Levels that say how many members a record has, and how many of them are of a kind; the rest are the others.

    Members ascend, and within them those of the kind. Both are columns of record files.
    """
    names, most = tuple(toml["counts"]), toml["most"]
    if len(names) != 2 or type(most) is not int or most < 1:
        raise InputError(
            f'{where}: expected counts of two columns, all members and some of them, as ["persons", "children"], and '
            "the most members as a whole number from 1 up"
        )
    whole, kind = names
    pairs = [(members, some) for members in range(most + 1) for some in range(members + 1)]
    label = toml.get("label", f"{{{whole}}} {whole}, {{{kind}}} {kind}")
    labels = tuple(label.replace(f"{{{whole}}}", str(n)).replace(f"{{{kind}}}", str(k)) for n, k in pairs)
    numbers = {whole: tuple(n for n, _ in pairs), kind: tuple(k for _, k in pairs)}
    if toml["rest"] in names:
        raise InputError(f"{where}: the rest is called '{toml['rest']}' like one of the counts; expected another name")
    numbers[toml["rest"]] = tuple(n - k for n, k in pairs)
    return labels, [Reading(names, tuple(((str(n), str(k)),) for n, k in pairs))], numbers


def _spellings(codes: str | list[str | list[str]]) -> tuple[tuple[tuple[str, ...], ...], ...]:
    """The codes of one column for each level: as bins of whole numbers, or listed, several spellings as a list."""
    if isinstance(codes, str):
        return tuple(tuple((str(number),) for number in group) for group in bins(codes, 10**4))
    return tuple(tuple((str(code),) for code in (some if isinstance(some, list) else [some])) for some in codes)


def _noun(words: list[str], where: Predicate) -> Noun:
    if len(words) != 3:
        raise InputError(f"{words} are not three words for records: one, several, all of them")
    return Noun(words[0], words[1], words[2], where)


def _numbers(attribute: Attribute) -> dict[int, int]:
    """The level of each whole number that stands for one, as its label or its code; none if some have no number."""
    names: tuple[str, ...] = attribute.levels
    if not all(name.isdigit() for name in names) and len(attribute.readings[0].columns) == 1:
        names = tuple(codes[0][0] for codes in attribute.readings[0].codes)
    return {int(name): level for level, name in enumerate(names)} if all(name.isdigit() for name in names) else {}


def _binned(attribute: Attribute, text: str) -> list[tuple[str, frozenset[int]]]:
    """Bins of an attribute whose levels are whole numbers, or have them as codes: a label and the levels of each."""
    level = _numbers(attribute)
    found = []
    for group in bins(text, max(level, default=0)):
        missing = [number for number in group if number not in level]
        if missing:
            raise unknown(f"level of {attribute.name}", str(missing[0]), [str(number) for number in level])
        labels = [attribute.levels[level[number]] for number in group]
        label = _span(group) if labels[0].isdigit() else " or ".join(labels)
        found.append((label, frozenset(level[number] for number in group)))
    return found


def within(entry: str, make: Callable[..., Made], *arguments: Any) -> Made:
    """Make something of an entry; a complaint says which entry it was."""
    try:
        return make(*arguments)
    except InputError as error:
        raise InputError(str(error) if entry in str(error) else f"{entry}: {error}") from None
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        # data of the wrong kind deep inside: a list where a word should be, a word where a number should be
        raise InputError(f"{entry}: a value is of the wrong kind ({error})") from None


def _span(group: range) -> str:
    return str(group[0]) if len(group) == 1 else f"{group[0]}-{group[-1]}"


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
