#!/usr/bin/env python3
"""Is this proof true? Checks certificates of facts about published tables; nothing but Python is needed.

    python check_proof.py PROOFS --tables TABLES.csv.gz [FILE.vipr ...]

PROOFS is a folder with `definitions.json` and certificates (`*.vipr`; FILE: only these), TABLES the published file, a
long CSV. Exit code 0: all accepted; 1: some refused; 2: bad usage. What a certificate must have, and why its fact is
true if it is accepted, is specified in `docs/proofs.md`. Nothing that is read is run, and all is read within limits.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

CERTIFICATE_BYTES, DEFINITIONS_BYTES, LINE_LENGTH = 1 << 23, 1 << 25, 1 << 16
ROWS, ASSUMPTIONS, KINDS = 200_000, 10_000, 500_000  # of a certificate; kinds of record that are told apart
TERMS, HUGE = 50_000_000, 1 << 4096  # numbers multiplied for one certificate; the largest denominator
FORMAT, VIPR, DEFINITIONS, UNREADABLE = "glasshouse proof 1", ".vipr", "definitions.json", "it cannot be read"
NUMBER, WHOLE = re.compile(r"(-?[0-9]{1,60})(?:/([0-9]{1,60}))?"), re.compile(r"[0-9]{1,12}")
NAME = re.compile(r"[^\s<>@:%{}]{1,200}")
Number = int | Fraction
Box = dict[int, int]  # of each attribute that is restricted, the levels that are allowed, as bits
Key = tuple[str, str, str]  # a published number: its level, the code of its place or area, and its name


class Refused(Exception):  # noqa: N818  # it is a verdict
    """Why a certificate is not accepted, in one line."""


@contextmanager
def form(what: str) -> Iterator[None]:
    """What is not as specified is refused."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, RecursionError):
        raise Refused(f"{what}: not of the form that is specified") from None


def whole(value: Any) -> int:
    if type(value) is not int or abs(value) >= 10**12:
        raise ValueError
    return value


@dataclass(frozen=True)
class Row:
    """A constraint: the sum of the terms is equal to (E), at least (G) or at most (L) a number."""

    terms: Mapping[int, Number]
    sense: str
    right: Number

    def dominates(self, other: Row) -> bool:
        """Does the other follow from this one alone? From an absurdity (0 >= 1) everything does."""
        if not self.terms and {"E": self.right != 0, "G": self.right > 0, "L": self.right < 0}[self.sense]:
            return True
        by = {"E": self.right == other.right, "G": self.right >= other.right, "L": self.right <= other.right}
        return self.terms == other.terms and self.sense in ("E", other.sense) and by[other.sense]


class Definitions:
    """What the published numbers count: boxes of levels, one for each time that a number counts a record."""

    def __init__(self, content: bytes) -> None:
        self.sha256 = hashlib.sha256(content).hexdigest()
        with form("definitions"):
            told = json.loads(content[:DEFINITIONS_BYTES])
            self.attributes = [(str(one["name"]), list(map(str, one["levels"]))) for one in told["attributes"]]
            self.position = {name: at for at, (name, _) in enumerate(self.attributes)}
            self.compare = [list(map(whole, told["compare"][name])) for name, _ in self.attributes]
            self.place, self.length = str(told["place"]), {str(k): whole(v) for k, v in told["levels"].items()}
            self.mapping = {str(k): {str(a): str(b) for a, b in v.items()} for k, v in told["mapping"].items()}
            self.hidden, self.all_places = told["absent"] != "zero", told["all_places"] is True
            self.impossible = [self.box(one["where"]) for one in told["impossible"]]
            self.numbers: dict[str, dict[str, list[Box]]] = {level: {} for level in told["numbers"]}
            self.table: dict[str, str] = {}
            for level, numbers in told["numbers"].items():
                for name, said in numbers.items():
                    self.numbers[level][name] = [self.box(one) for one in said["counts"]]
                    self.table[name] = str(said["table"])
            self.totals, self.assumed, self.aside = (set(told[one]) for one in ("totals", "assumed", "aside"))
            every = all(len(of) == len(levels) for of, (_, levels) in zip(self.compare, self.attributes, strict=True))
            known = set(self.numbers) <= set(self.length) and self.place in self.numbers
            if told["format"] != FORMAT or not every or not known or not all(map(NAME.fullmatch, self.table)):
                raise ValueError

    def box(self, where: Mapping[str, str]) -> Box:
        """Read levels by their numbers, as in `{"age": "0-4 18", "sex": "1"}`."""
        found = {}
        for name, text in where.items():
            at, bits = self.position[name], 0
            for part in text.split():
                first, _, last = part.partition("-")
                low, high = int(first), int(last or first)
                if not 0 <= low <= high < len(self.attributes[at][1]):
                    raise ValueError
                bits |= (1 << high + 1) - (1 << low)
            found[at] = bits
        return found

    def area(self, place: str, level: str) -> str:
        return self.mapping[level].get(place, "") if level in self.mapping else place[: self.length[level]]


@dataclass(frozen=True)
class Published:
    """The published numbers of some places and of the areas around them, and which places there are in those."""

    defined: Definitions
    values: dict[Key, tuple[int, int | None]]
    inside: dict[tuple[str, str], set[str]]
    sha256: str = ""

    def value(self, key: Key) -> tuple[int, int | None]:
        """Between which numbers a published one lies; one that is absent is 0, or was hidden."""
        return self.values.get(key, (0, None if self.defined.hidden else 0))


def read_published(path: Path, defined: Definitions, places: Collection[str]) -> Published:
    """Read a published file; only what is about these places is kept."""
    values, seen = dict[Key, tuple[int, int | None]](), set[tuple[str, str]]()
    inside = {(level, defined.area(place, level)): set[str]() for place in places for level in defined.numbers}
    try:
        with path.open("rb") as stream:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as stream:
            for level, code, name, value in numbers_in(stream):
                for at in defined.numbers if level == defined.place else ():
                    inside.get((at, defined.area(code, at)), set()).add(code)
                if name not in defined.numbers.get(level, {}):
                    if name not in defined.aside and name not in defined.table:
                        raise Refused(f"the tables have a number {name[:50]!r} that is not defined")
                    continue
                seen.add((level, name))
                if (level, code) in inside and values.setdefault((level, code, name), value) is not value:
                    raise Refused(f"the tables have {name} of {code} twice")
    except (OSError, EOFError, UnicodeError, csv.Error) as error:
        raise Refused(f"{path.name} cannot be read ({type(error).__name__})") from None
    # a number is published if it is in the file somewhere, or is a cell of a table that is, or is assumed
    tables = {(level, defined.table[name]) for level, name in seen}
    for level, numbers in defined.numbers.items():
        for name in numbers.keys() - defined.assumed:
            cell = name not in defined.totals and (level, defined.table[name]) in tables
            if not cell and (level, name) not in seen:
                raise Refused(f"no {level} of the tables has a number {name}, which the definitions call published")
    return Published(defined, values, inside, sha256)


def numbers_in(stream: Any) -> Iterator[tuple[str, str, str, tuple[int, int | None]]]:
    """The numbers of a long CSV file."""
    reader = csv.reader(line.decode("utf-8") for line in iter(lambda: stream.readline(LINE_LENGTH), b""))
    header = next(reader, [])
    names = ["level", "geoid", "variable", *(("value", "value") if "value" in header else ("lower", "upper"))]
    if not set(names) <= set(header) or len(set(header)) < len(header):
        raise Refused("the tables need columns level, geoid, variable and value (or lower and upper)")
    at = [header.index(name) for name in names]
    for line in reader:
        level, code, name, low, high = (line[one] for one in at) if len(line) == len(header) else ("", "", "", "", "")
        if not WHOLE.fullmatch(low) or (not WHOLE.fullmatch(high) and (high or names[3] == "value")):
            raise Refused(f"the tables have a line without whole numbers, of {name[:50]!r}")
        yield level, code, name, (int(low), int(high) if high else None)


class Kinds:
    """Kinds of record that the numbers of some levels tell apart, and which boxes each lies in."""

    def __init__(self, defined: Definitions, levels: Collection[str]) -> None:
        boxes: list[Box] = []
        self.of: dict[tuple[str, str], int] = {}  # the boxes of each number, as bits
        for level in levels:
            for name, some in defined.numbers[level].items():
                self.of[level, name] = ((1 << len(some)) - 1) << len(boxes)
                boxes += some
        self.zeros = ((1 << len(defined.impossible)) - 1) << len(boxes)
        boxes += defined.impossible
        self.classes: list[dict[tuple[int, int], int]] = []  # of each attribute: (boxes, class compared), first level
        self.levels: list[list[tuple[int, int]]] = []  # the same of each level
        for at, compared in enumerate(defined.compare):
            allowing: dict[int, int] = {}  # boxes by the levels that they allow here
            for bit, box in enumerate(boxes):
                allowing[box.get(at, -1)] = allowing.get(box.get(at, -1), 0) | 1 << bit
            level_of = [(sum(b for a, b in allowing.items() if a >> n & 1), one) for n, one in enumerate(compared)]
            self.levels.append(level_of)
            self.classes.append({key: level_of.index(key) for key in dict.fromkeys(level_of)})
        last = [max(box, default=0) for box in boxes]
        self.ended = [sum(1 << bit for bit, end in enumerate(last) if end <= at) for at in range(len(self.classes))]

    def alive(self, dead: int) -> list[tuple[tuple[int, ...], tuple[int, ...], int]]:
        """Kinds in none of the dead boxes: a record of each, the classes it is compared in, and the boxes it is in."""
        nodes: list[tuple[tuple[int, ...], tuple[int, ...], int]] = [((), (), -1)]
        for classes, ended in zip(self.classes, self.ended, strict=True):
            over = (dead | self.zeros) & ended
            before, nodes = nodes, []
            for record, kind, boxes in before:
                some = (one for one in classes.items() if not boxes & one[0][0] & over)
                nodes += [((*record, level), (*kind, one), boxes & inside) for (inside, one), level in some]
                if len(nodes) > KINDS:
                    raise Refused("more kinds of record are told apart than this program counts")
        return nodes


@dataclass(frozen=True)
class Fact:
    """What is claimed of every set of records that fits: an overlap, a count at least or at most, or none fits."""

    kind: str  # overlap, least, most or contradiction
    places: tuple[str, ...]
    levels: tuple[str, ...]  # whose numbers are used
    records: tuple[tuple[int, tuple[int, ...]], ...]  # of an overlap: how many, and the classes they are compared in
    where: tuple[Box, ...]  # of a count: what is counted
    within: tuple[str, ...]  # of a count: in which of the places
    bound: int
    total: tuple[str, ...]  # numbers that together count every record of the place once


def fact_of(text: str, defined: Definitions) -> Fact:
    with form("fact"):
        said = json.loads(text)
        kind, places, levels = said["fact"], tuple(map(str, said["places"])), tuple(map(str, said["levels"]))
        records = tuple((whole(one[0]), tuple(map(whole, one[1:]))) for one in said.get("records", []))
        where, bound = tuple(defined.box(one) for one in said.get("where", [])), whole(said.get("bound", 0))
        within = tuple(map(str, said.get("within", places)))
        apart = all(len(set(some)) == len(some) for some in (places, levels, [one[1] for one in records]))
        single = not records or (len(places) == 1 and min(records)[0] > 0)
        needs = {"overlap": "records", "least": "where", "most": "where", "contradiction": ""}[kind]
        has = "records" * bool(records) + "where" * bool(where)
        if not (apart and single and has == needs and set(levels) <= set(defined.numbers)):
            raise ValueError
        if bound < (kind in ("overlap", "least")) or not places or not set(within) <= set(places):
            raise Refused("the fact says nothing")
        return Fact(kind, places, levels, records, where, within, bound, tuple(map(str, said.get("total", []))))


class Model:
    """The integer program of a fact: its variables, and what each row that a certificate may use must be."""

    def __init__(self, fact: Fact, published: Published, kinds: Kinds, used: Iterable[str]) -> None:
        self.fact, self.published, self.kinds, self.defined = fact, published, kinds, published.defined
        self.used = dict.fromkeys(self.number(name) for name in used)
        total = [self.number(name) for name in fact.total]
        self.total: int | None = sum(published.value(key)[0] for key in total) if total else None
        once = len(set(total)) == len(total) and all(self.exact(key) for key in total)
        number = {kind: at for at, (_, kind) in enumerate(fact.records)}
        cover = [-1] * len(fact.records)  # the boxes that hold every record of a kind
        groups: dict[tuple[tuple[tuple[Key, int], ...], int, int], None] = {}
        for place in fact.places:
            if not published.inside.get((self.defined.place, place)):
                raise Refused(f"the tables do not name {self.defined.place} {place[:50]}")
            code = {level: self.defined.area(place, level) for level in fact.levels}
            highs = [(bits, published.value((at, code[at], name))[1]) for (at, name), bits in kinds.of.items()]
            here = [(key, kinds.of[key[0], key[2]]) for key in self.used if code[key[0]] == key[1]]
            # boxes of numbers that are 0 hold nobody; a contradiction names every number that it uses
            dead = 0 if fact.kind == "contradiction" else sum(bits for bits, high in highs if high == 0)
            for record, kind, boxes in kinds.alive(dead):
                mine, times = number.get(kind, -1), self.times(record, place)
                if mine >= 0:
                    cover[mine] &= boxes
                once = once and (not total or sum((boxes & kinds.of[k[0], k[2]]).bit_count() for k in total) == 1)
                column = tuple((key, (boxes & bits).bit_count()) for key, bits in here if boxes & bits)
                if column or mine >= 0 or times:
                    groups[column, mine, times] = None
        self.groups = list(groups)  # kinds with the same column are one variable
        for at, bits in (one for box in fact.where for one in box.items()):
            if any((bits >> level ^ bits >> kinds.classes[at][key]) & 1 for level, key in enumerate(kinds.levels[at])):
                raise Refused("the count divides records that are not told apart")
        self.most: list[int] = []  # the smallest published number that counts every record of a kind
        for (count, _), boxes in zip(fact.records, cover, strict=True):
            over = [high // (boxes & bits).bit_count() for bits, high in highs if boxes & bits and high is not None]
            self.most.append(min(over, default=-1) if boxes >= 0 else 0)
            if not once or 0 <= self.most[-1] < count:
                raise Refused("the total does not count every record once, or a published number forbids a record")
        several = [f"s{at}" for at, (count, _) in enumerate(fact.records) if count > 1]
        self.names = [f"x{at}" for at in range(len(groups))] + [f"m{at}" for at in range(len(fact.records))] + several
        self.at = {name: at for at, name in enumerate(self.names)}

    def times(self, record: Sequence[int], place: str) -> int:
        """How often the count that the fact is about counts a record of a place."""
        return (place in self.fact.within) * sum(
            all(bits >> record[at] & 1 for at, bits in box.items()) for box in self.fact.where
        )

    def number(self, name: str) -> Key:
        """The published number that a row is. NAME alone is of the first place, NAME@CODE of another or an area."""
        variable, _, code = name.rstrip("<>").partition("@")
        for level in self.fact.levels:
            codes = {self.defined.area(place, level) for place in self.fact.places}
            here = code in codes if code else level == self.defined.place
            if here and variable in self.defined.numbers[level]:
                return level, code or self.fact.places[0], variable
        raise Refused(f"{name[:80]} is no published number of the fact's places and levels")

    def counts_all(self, key: Key) -> bool:
        """Does a number count records of the fact's places alone? If not, it is a limit from above."""
        here = self.defined.all_places and self.published.inside[key[:2]] <= set(self.fact.places)
        return key[0] == self.defined.place or here

    def exact(self, key: Key) -> bool:
        low, high = self.published.value(key)
        return low == high and self.counts_all(key)

    def row(self, name: str) -> Row:
        """What the row of this name is: a bound, a link of a kind of records, or a published number."""
        sort, colon, rest = name.partition(":")
        if not colon:
            return self._of_number(name)
        with form(f"row {name[:80]}"):
            if sort == "lb":
                return Row({self.at[rest]: 1}, "G", 0)
            kind, m = int(rest), self.at[f"m{rest}"]
            count, most = self.fact.records[kind][0], self.most[kind]
            if sort == "full":
                return Row({m: 1, self.at[f"s{rest}"]: -count}, "G", 0)
            if sort != "over" or most < 0:
                raise ValueError
            mine: dict[int, Number] = {at: -1 for at, group in enumerate(self.groups) if group[1] == kind}
            more = {self.at[f"s{rest}"]: most - count} if count > 1 and most > count else {}
            return Row(mine | {m: most if count == 1 else 1} | more, "G", 0)

    def _of_number(self, name: str) -> Row:
        key = self.number(name)
        terms = {at: times for at, (column, _, _) in enumerate(self.groups) for one, times in column if one == key}
        low, high = self.published.value(key)
        if name.endswith("<") and high is not None:
            return Row(terms, "L", high)
        if name.endswith(">") and self.counts_all(key):
            return Row(terms, "G", low)
        if name.endswith(("<", ">")) or not self.exact(key):
            raise Refused(f"{name[:80]}: what is published does not say this of the fact's places")
        return Row(terms, "E", low)

    @property
    def goal(self) -> Row:
        """What the last line must show."""
        if self.fact.kind == "contradiction":
            return Row({}, "G", 1)
        overlap: dict[int, Number] = {self.at[f"m{at}"]: 1 for at in range(len(self.fact.records))}
        terms = overlap or {at: times for at, (_, _, times) in enumerate(self.groups) if times}
        return Row(terms, "L" if self.fact.kind == "most" else "G", self.fact.bound)

    def head(self, rows: Sequence[str]) -> str:
        """The certificate with these rows up to its derivation; terms in the order of the variables."""
        count, sense, goal = len(self.names), "max" if self.fact.kind == "most" else "min", self.goal
        wanted = {"contradiction": "infeas", "most": f"range -inf {goal.right}"}.get(
            self.fact.kind, f"range {goal.right} inf"
        )
        lines = ["VER 1.0", f"VAR {count}", " ".join(self.names), f"INT {count}", " ".join(map(str, range(count)))]
        lines += [
            f"OBJ {sense}",
            written(goal.terms),
            f"CON {len(rows)} {sum(name.startswith('lb:') for name in rows)}",
        ]
        for name in rows:
            row = self.row(name)
            lines.append(f"{name} {row.sense} {row.right} {written(row.terms)}")
        return "\n".join([*lines, f"RTP {wanted}", "SOL 0", "DER "])


def written(terms: Mapping[int, Number]) -> str:
    return " ".join([str(len(terms)), *(f"{at} {terms[at]}" for at in sorted(terms))])


class Words:
    """The derivation of a certificate, word by word."""

    def __init__(self, text: str, model: Model) -> None:
        self.words, self.next, self.model, self.objective = text.split(), 0, model, model.goal.terms

    def word(self, *wanted: str) -> str:
        self.next += 1
        found = self.words[self.next - 1] if self.next <= len(self.words) else "the end"
        if wanted and found not in wanted:
            raise Refused(f"found {found[:40]!r}; expected {' or '.join(wanted)}")
        return found

    def index(self, below: int) -> int:
        word = self.word()
        if not WHOLE.fullmatch(word) or int(word) >= below:
            raise Refused(f"{word[:40]!r} is not a number below {below}")
        return int(word)

    def number(self) -> Number:
        match = NUMBER.fullmatch(self.word())
        if not match or int(match[2] or 1) == 0:
            raise Refused(f"{self.words[self.next - 1 :][:1]} is not a number as specified")
        return Fraction(int(match[1]), int(match[2])) if match[2] else int(match[1])

    def pairs(self, below: int) -> dict[int, Number]:
        found = [(self.index(below), self.number()) for _ in range(self.index(ROWS))]
        if len(dict(found)) < len(found) or not all(value for _, value in found):
            raise Refused("an index is named twice, or with 0")
        return dict(found)

    def row(self) -> Row:
        _, sense, right = self.word(), self.word("E", "G", "L"), self.number()
        if self.words[self.next : self.next + 1] == ["OBJ"]:
            return Row(self.objective, sense + self.word()[3:], right)
        return Row(self.pairs(len(self.model.names)), sense, right)


def show(text: str, model: Model, names: Sequence[str]) -> None:
    """Refuse a certificate unless it is about this program, and every line follows."""
    head = model.head(names)
    if not text.startswith(head):
        raise Refused("its rows, or what it is to show, are not what the published numbers and the fact say")
    words = Words(text[len(head) :], model)
    rows, under = [model.row(name) for name in names], [0] * len(names)  # assumptions a row rests on, as bits
    assumed, spent = dict[int, int](), 0
    for at in range(len(rows), len(rows) + words.index(ROWS)):
        row, _, reason, rests = words.row(), words.word("{"), words.word("asm", "lin", "rnd", "uns"), 0
        if reason == "asm":
            assumed[at] = rests = 1 << len(assumed)
        elif reason == "uns":
            one, first, other, second = (words.index(at) for _ in range(4))
            if not {first, second} <= set(assumed) or not covers(rows[first], rows[second]):
                raise Refused(f"row {at}: its two cases are no assumptions, or do not cover everything")
            if not (rows[one].dominates(row) and rows[other].dominates(row)):
                raise Refused(f"row {at} does not follow from its two cases")
            rests = (under[one] & ~assumed[first]) | (under[other] & ~assumed[second])
        else:
            given = words.pairs(at)
            spent += sum(len(rows[one].terms) + 1 for one in given)
            if spent > TERMS or not combined(given, rows, row.sense, rounded=reason == "rnd").dominates(row):
                raise Refused(f"row {at} does not follow from those named, or it takes too long to see")
            for one in given:
                rests |= under[one]
        words.word("}")
        words.word()  # until when the line is needed
        rows.append(row)
        under.append(rests)
        if len(assumed) > ASSUMPTIONS:
            raise Refused("the certificate has too many cases")
    ended = words.next == len(words.words) and len(rows) > len(names) and not under[-1]
    if not ended or not rows[-1].dominates(model.goal):
        raise Refused("the last line does not show the fact, or something stands after it")


def combined(times: Mapping[int, Number], rows: Sequence[Row], sense: str, *, rounded: bool) -> Row:
    """The sum of rows, each so many times, if the signs allow it; every variable is whole, so it may be rounded."""
    terms: dict[int, Number] = {}
    right: Number = 0
    for at, much in times.items():
        if rows[at].sense != "E" and (sense == "E" or (much > 0) != (rows[at].sense == sense)):
            raise Refused("a row is taken with the wrong sign")
        right += much * rows[at].right
        for variable, value in rows[at].terms.items():
            terms[variable] = terms.get(variable, 0) + much * value
            if terms[variable].denominator > HUGE or right.denominator > HUGE:
                raise Refused("numbers become too long")
    terms = {at: value for at, value in terms.items() if value}
    if rounded and sense != "E" and all(value.denominator == 1 for value in terms.values()):
        right = -(-right // 1) if sense == "G" else right // 1
    return Row(terms, sense, right)


def covers(one: Row, other: Row) -> bool:
    """Is every whole point in one of the two: at most a whole number, or at least the next?"""
    low, high = (one, other) if one.sense == "L" else (other, one)
    integers = all(value.denominator == 1 for value in (low.right, *low.terms.values()))
    beside = low.terms == high.terms and high.right == low.right + 1
    return integers and beside and (low.sense, high.sense) == ("L", "G")


def recounted(text: str, model: Model) -> tuple[int, str]:
    """Count a set of records that is said to fit: the overlap or count that it has, and the number it may break."""
    fact, kinds, defined = model.fact, model.kinds, model.defined
    counted, found, asked = dict[Key, int](), dict[tuple[int, ...], int](), 0
    with form("witness"):
        said = json.loads(text)
        without = {model.number(said["without"])} if "without" in said else set()
        for place, some in said["records"].items():
            for times, *record in some:
                kind = tuple(of[whole(level)] for of, level in zip(defined.compare, record, strict=True))
                inside = -1
                for at, level in enumerate(record):
                    inside &= kinds.levels[at][level][0]
                if whole(times) < 1 or min(record) < 0 or place not in fact.places or inside & kinds.zeros:
                    raise ValueError
                found[kind] = found.get(kind, 0) + times
                asked += times * model.times(record, place)
                for (at_level, name), bits in kinds.of.items():
                    if inside & bits:
                        key = at_level, defined.area(place, at_level), name
                        counted[key] = counted.get(key, 0) + times * (inside & bits).bit_count()
    every = {(at, defined.area(place, at), name) for place in fact.places for at, name in kinds.of}
    for key in (set(model.used) if fact.kind == "contradiction" else every) - without:
        (low, high), has = model.published.value(key), counted.get(key, 0)
        if (has < low and model.counts_all(key)) or (high is not None and has > high):
            raise Refused(f"a witness does not count up to {key[2]} of {key[1]}")
    if without and fact.kind != "contradiction":
        raise Refused("a witness leaves out a number")
    overlap = sum(min(found.get(kind, 0), count) for count, kind in fact.records)
    return overlap if fact.records else asked, "".join(key[2] + "@" + key[1] for key in without)


def statement(model: Model, witnesses: Sequence[str]) -> str:
    """What was shown, in words. Witnesses are counted again: the bound is met, or a number is needed."""
    fact, sets, attributes = model.fact, [recounted(one, model) for one in witnesses], model.defined.attributes
    if fact.kind == "contradiction":
        names = [f"{name}@{code}" for _, code, name in model.used]
        needed = "; without any one of them some set fits the others" if {one for _, one in sets} >= set(names) else ""
        return f"No set of records fits these {len(names)} published numbers: {', '.join(names)}{needed}."
    around = "".join(f" and of the {level} around" for level in fact.levels if level != model.defined.place)
    exactly = "; one that has exactly that many was counted" if fact.bound in [met for met, _ in sets] else ""
    what = f"of the {sum(count for count, _ in fact.records)} records named"
    what += "" if model.total is None else f", and {model.total} in all"
    if not fact.records:
        named = [[(attributes[at], bits) for at, bits in box.items()] for box in fact.where]
        sides = [
            [(of[0], [label for n, label in enumerate(of[1]) if bits >> n & 1]) for of, bits in one] for one in named
        ]
        what = "records" + " or".join("".join(f" {name} {'|'.join(some)}" for name, some in one) for one in sides)
    where = f"{model.defined.place} {', '.join(fact.places)}{around}"
    what += "" if fact.within == fact.places else f" in {', '.join(fact.within)}"
    bound = f"at {'most' if fact.kind == 'most' else 'least'} {fact.bound}"
    return f"Every set that fits the numbers of {where} has {bound} {what}{exactly}."


def opened(path: Path, defined: Definitions) -> tuple[dict[str, list[str]], Fact, str]:
    """The header of a certificate, its fact, and the rest."""
    try:
        with path.open("rb") as stream:
            text = stream.read(CERTIFICATE_BYTES + 1).decode("ascii")
    except (OSError, UnicodeError) as error:
        raise Refused(f"{UNREADABLE} ({type(error).__name__})") from None
    head: dict[str, list[str]] = {}
    while text.startswith("% "):
        line, _, text = text.partition("\n")
        head.setdefault(line.split(" ")[1], []).append(line.partition(" ")[2].partition(" ")[2])
    once = all(len(head.get(one, [])) == 1 for one in ("glasshouse", "published", "definitions", "fact"))
    if len(text) > CERTIFICATE_BYTES or not once or head["glasshouse"][0] != FORMAT.partition(" ")[2]:
        raise Refused("it is too large, or its header is not as specified")
    return head, fact_of(head["fact"][0], defined), text


def check(folder: Path, tables: Path, files: Sequence[Path]) -> Iterator[tuple[Path, bool, str]]:
    """Of each certificate, whether it is accepted, and what it shows or why not; the tables are read once."""
    with (folder / DEFINITIONS).open("rb") as stream:
        defined = Definitions(stream.read(DEFINITIONS_BYTES + 1))
    places, failed = set[str](), dict[Path, Refused]()
    for path in files:
        try:
            places.update(opened(path, defined)[1].places)
        except Refused as error:
            failed[path] = error
    published, by_levels = read_published(tables, defined, places), dict[tuple[str, ...], Kinds]()
    for path in files:
        try:
            if path in failed:
                raise failed[path]
            head, fact, text = opened(path, defined)
            if (head["published"][0], head["definitions"][0]) != (published.sha256, defined.sha256):
                raise Refused("it is of another published file, or of other definitions")
            if fact.levels not in by_levels:
                by_levels[fact.levels] = Kinds(defined, fact.levels)
            count = re.search(r"^CON ([0-9]{1,6}) .*\n", text, re.MULTILINE)
            names = (
                [line.partition(" ")[0] for line in text[count.end() :].split("\n", int(count[1]))[:-1]]
                if count
                else []
            )
            if len(set(names)) < len(names):
                raise Refused("a row is named twice")
            model = Model(fact, published, by_levels[fact.levels], (name for name in names if ":" not in name))
            show(text, model, names)
            yield path, True, statement(model, head.get("witness", []))
        except Refused as error:
            yield path, False, str(error)


def main(words: Sequence[str]) -> int:
    """Check what the command line names, and say it line by line."""
    if len(words) < 3 or words[1] != "--tables":
        print(__doc__)
        return 2
    accepted, files = 0, [Path(one) for one in words[3:]] or sorted(Path(words[0]).rglob(f"*{VIPR}"))
    try:
        for path, fine, said in check(Path(words[0]), Path(words[2]), files):
            accepted += fine
            print("accepted" if fine else "REFUSED", path.name, said)
    except (OSError, Refused) as error:
        print(f"REFUSED: {error}")
    print(f"{accepted} accepted, {len(files) - accepted} refused")
    return int(not files or accepted < len(files))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
