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
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

CERTIFICATE_BYTES, DEFINITIONS_BYTES, LINE_LENGTH = 1 << 23, 1 << 25, 1 << 16
ROWS, ASSUMPTIONS, KINDS = 200_000, 10_000, 500_000  # of a certificate; kinds of record that are told apart
TERMS, HUGE = 50_000_000, 1 << 4096  # numbers multiplied for one certificate; the largest denominator
FORMAT, VIPR, DEFINITIONS, UNREADABLE = "glasshouse proof 1", ".vipr", "definitions.json", "it cannot be read"
NUMBER, WHOLE = r"-?[0-9]{1,60}(?:/0*[1-9][0-9]{0,59})?", r"[0-9]{1,12}"
PAIRS = re.compile(rf"{WHOLE}(?: {WHOLE} {NUMBER})*")  # how many, then each with its number
LINE = re.compile(rf"\S+ ([EGL]) ({NUMBER}) (OBJ|[-0-9/ ]+) {{ (asm|lin|rnd|uns) ?([-0-9/ ]*) }} \S+")
FACTS = {"overlap": (1, "records"), "least": (1, "where"), "most": (0, "where"), "contradiction": (0, "")}
NAME = re.compile(r"[^\s<>@:%{}]{1,200}")
Number = int | Fraction
Box = dict[int, int]  # of each attribute that is restricted, the levels that are allowed, as bits
Key = tuple[str, str, str]  # a published number: its level, the code of its place or area, and its name
Ends = tuple[int, int | None]  # between which numbers one lies; None: no limit


class Refused(Exception):  # noqa: N818  # it is a verdict
    """Why a certificate is not accepted, in one line."""


@contextmanager
def form(what: str) -> Iterator[None]:
    """What is not as specified is refused."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError, RecursionError):
        raise Refused(f"{what}: not of the form that is specified") from None


def whole(value: Any) -> int:
    if type(value) is not int or abs(value) >= 10**12:
        raise ValueError
    return value


class Definitions:
    """What the published numbers count: boxes of levels, one for each time that a number counts a record."""

    def __init__(self, content: bytes) -> None:
        self.sha256 = hashlib.sha256(content).hexdigest()
        with form("definitions"):
            told = json.loads(content[:DEFINITIONS_BYTES])
            self.attributes = [(str(one["name"]), list(map(str, one["levels"]))) for one in told["attributes"]]
            self.position = {name: at for at, (name, _) in enumerate(self.attributes)}
            compared = [zip(told["compare"][name], levels, strict=True) for name, levels in self.attributes]
            self.compare = [[whole(one) for one, _ in some] for some in compared]
            self.place, self.length = str(told["place"]), {str(k): whole(v) for k, v in told["levels"].items()}
            self.mapping = {str(k): {str(a): str(b) for a, b in v.items()} for k, v in told["mapping"].items()}
            self.hidden, self.all_places = told["absent"] != "zero", told["all_places"] is True
            self.impossible = [self.box(one["where"]) for one in told["impossible"]]
            self.numbers: dict[str, dict[str, list[Box]]] = {level: {} for level in told["numbers"]}
            self.table: dict[str, str] = {}
            for level, name, said in ((at, *one) for at, some in told["numbers"].items() for one in some.items()):
                self.numbers[level][name] = [self.box(one) for one in said["counts"]]
                self.table[name] = str(said["table"])
            self.totals, self.assumed, self.aside = (set(told[one]) for one in ("totals", "assumed", "aside"))
            known = set(self.numbers) <= set(self.length) and self.place in self.numbers
            if told["format"] != FORMAT or not known or not all(map(NAME.fullmatch, self.table)):
                raise ValueError

    def box(self, where: Mapping[str, str]) -> Box:
        """Read levels by their numbers, as in `{"age": "0-4 18", "sex": "1"}`."""
        found = {}
        for name, text in where.items():
            at, bits = self.position[name], 0
            for first, _, last in (part.partition("-") for part in text.split()):
                low, high = int(first), int(last or first)
                if not 0 <= low <= high < len(self.attributes[at][1]):
                    raise ValueError
                bits |= (1 << high + 1) - (1 << low)
            found[at] = bits
        return found

    def area(self, place: str, level: str) -> str:
        return self.mapping[level].get(place, "") if level in self.mapping else place[: self.length[level]]


class Published(NamedTuple):
    """The published numbers of some places and of the areas around them, and which places there are in those."""

    defined: Definitions
    values: dict[Key, Ends]
    inside: dict[tuple[str, str], set[str]]
    sha256: str = ""

    def value(self, key: Key) -> Ends:
        """Between which numbers a published one lies; one that is absent is 0, or was hidden."""
        return self.values.get(key, (0, None if self.defined.hidden else 0))


def read_published(path: Path, defined: Definitions, places: Collection[str]) -> Published:
    """Read a published file; only what is about these places is kept."""
    values, seen = dict[Key, Ends](), set[tuple[str, str]]()
    inside = {(level, defined.area(place, level)): set[str]() for place in places for level in defined.numbers}
    try:
        with path.open("rb") as stream:
            sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as stream:
            for level, code, name, value in numbers_in(stream):
                for at in defined.numbers if level == defined.place else ():
                    inside.get((at, defined.area(code, at)), set()).add(code)
                if name in defined.numbers.get(level, {}):
                    seen.add((level, name))
                    if (level, code) in inside and values.setdefault((level, code, name), value) is not value:
                        raise Refused(f"the tables have {name} of {code} twice")
                elif name not in defined.aside and name not in defined.table:
                    raise Refused(f"the tables have a number {name[:50]!r} that is not defined")
    except (OSError, EOFError, UnicodeError, csv.Error) as error:
        raise Refused(f"{path.name} cannot be read ({type(error).__name__})") from None
    # a number is published if it is in the file somewhere, or is a cell of a table that is, or is assumed
    tables = {(level, defined.table[name]) for level, name in seen}
    for level, name in ((level, name) for level, some in defined.numbers.items() for name in some):
        cell = name not in defined.totals and (level, defined.table[name]) in tables
        if not cell and (level, name) not in seen and name not in defined.assumed:
            raise Refused(f"no {level} of the tables has a number {name}, which the definitions call published")
    return Published(defined, values, inside, sha256)


def numbers_in(stream: Any) -> Iterator[tuple[str, str, str, Ends]]:
    """The numbers of a long CSV file."""
    reader = csv.reader(line.decode("utf-8") for line in iter(lambda: stream.readline(LINE_LENGTH), b""))
    header = next(reader, [])
    names = ["level", "geoid", "variable", *(("value", "value") if "value" in header else ("lower", "upper"))]
    if not set(names) <= set(header) or len(set(header)) < len(header):
        raise Refused("the tables need columns level, geoid, variable and value (or lower and upper)")
    at = [header.index(name) for name in names]
    for line in reader:
        level, code, name, low, high = (line[one] for one in at) if len(line) == len(header) else [""] * 5
        if not re.fullmatch(WHOLE, low) or (not re.fullmatch(WHOLE, high) and (high or names[3] == "value")):
            raise Refused(f"the tables have a line without whole numbers, of {name[:50]!r}")
        yield level, code, name, (int(low), int(high) if high else None)


class Kinds:
    """Kinds of record that the numbers of some levels tell apart, and which boxes each lies in."""

    def __init__(self, defined: Definitions, levels: Collection[str]) -> None:
        self.defined, boxes = defined, list[Box]()
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

    def numbers(self, place: str) -> dict[Key, int]:
        """The published numbers that count records of a place, and the boxes of each."""
        return {(level, self.defined.area(place, level), name): bits for (level, name), bits in self.of.items()}

    def alive(self, dead: int, most: int = KINDS) -> list[tuple[tuple[int, ...], tuple[int, ...], int]]:
        """Kinds in none of the dead boxes: a record of each, the classes it is compared in, and the boxes it is in."""
        nodes: list[tuple[tuple[int, ...], tuple[int, ...], int]] = [((), (), -1)]
        for classes, ended in zip(self.classes, self.ended, strict=True):
            over = (dead | self.zeros) & ended
            before, nodes = nodes, []
            for record, kind, boxes in before:
                some = (one for one in classes.items() if not boxes & one[0][0] & over)
                nodes += [((*record, level), (*kind, one), boxes & inside) for (inside, one), level in some]
                if len(nodes) > most:
                    raise Refused("more kinds of record are told apart than this program counts")
        return nodes


class Fact:
    """What is claimed of every set of records that fits: an overlap, a count at least or at most, or that none fits."""

    def __init__(self, text: str, defined: Definitions) -> None:
        with form("fact"):
            said = json.loads(text)
            self.kind, self.bound = str(said["fact"]), whole(said.get("bound", 0))
            self.places, self.levels = tuple(map(str, said["places"])), tuple(map(str, said["levels"]))
            listed = said.get("records", {})  # of an overlap: of each place, or of the first, the kinds of record
            records = {self.places[0]: listed} if isinstance(listed, list) else listed
            kinds = [(place, one) for place, some in records.items() for one in some]
            self.records = [(whole(one[0]), (place, tuple(map(whole, one[1:])))) for place, one in kinds]
            self.where = [defined.box(one) for one in said.get("where", [])]  # of a count: what is counted
            self.within = tuple(map(str, records or said.get("within", self.places)))  # in which of the places
            self.total = tuple(map(str, said.get("total", [])))  # numbers that count every record within once
            apart = [len(set(some)) == len(some) for some in (self.places, self.levels, [k for _, k in self.records])]
            least, needs = FACTS[self.kind]
            has = "records" * bool(self.records) + "where" * bool(self.where)
            positive, known = all(count > 0 for count, _ in self.records), set(self.levels) <= set(defined.numbers)
            if not all(apart) or not positive or not known or has != needs:
                raise ValueError
        if self.bound < least or not self.places or not set(self.within) <= set(self.places):
            raise Refused("the fact says nothing")

    def times(self, record: Sequence[int], place: str) -> int:
        """How often the count that is asked for counts a record of a place."""
        inside = (all(bits >> record[at] & 1 for at, bits in box.items()) for box in self.where)
        return sum(inside) if place in self.within else 0


class Row(NamedTuple):
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


def written(terms: Mapping[int, Number]) -> str:
    return " ".join([str(len(terms)), *(f"{at} {terms[at]}" for at in sorted(terms))])


class Model:
    """The integer program of a fact: its variables, and what each row that a certificate may use must be."""

    def __init__(self, fact: Fact, published: Published, kinds: Kinds, used: Iterable[str]) -> None:
        self.fact, self.published, self.kinds, self.defined = fact, published, kinds, published.defined
        self.numbers = {place: kinds.numbers(place) for place in fact.places}  # of each place, with their boxes
        self.used, total = (dict.fromkeys(map(self.number, names)) for names in (used, fact.total))
        self.total = sum(self.ends(key)[0] for key in total)
        once = len(total) == len(fact.total) and all(low == high for low, high in map(self.ends, total))
        number, seen = {kind: at for at, (_, kind) in enumerate(fact.records)}, 0
        self.most = [0] * len(fact.records)  # of each kind, the smallest number that counts all its records; -1: none
        groups: dict[tuple[tuple[tuple[Key, int], ...], int, int], None] = {}
        for place in fact.places:
            if not published.inside.get((self.defined.place, place)):
                raise Refused(f"the tables do not name {self.defined.place} {place[:50]}")
            keys = self.numbers[place]
            highs = [(bits, published.value(key)[1]) for key, bits in keys.items()]
            used_here = [(key, keys[key]) for key in self.used if key in keys]
            # boxes of numbers that are 0 hold nobody; a contradiction names every number that it uses
            dead = 0 if fact.kind == "contradiction" else sum(bits for bits, high in highs if high == 0)
            cover: dict[int, int] = {}  # of each kind, the boxes that hold all its records
            alive = kinds.alive(dead, KINDS - seen)
            seen += len(alive)
            for record, classes, boxes in alive:
                mine, times = number.get((place, classes), -1), fact.times(record, place)
                cover[mine] = cover.get(mine, -1) & boxes
                counted = sum((boxes & keys[key]).bit_count() for key in total if key in keys)
                once = once and (not total or counted == (place in fact.within))
                column = tuple((key, (boxes & bits).bit_count()) for key, bits in used_here if boxes & bits)
                if column or mine >= 0 or times:
                    groups[column, mine, times] = None
            for mine, boxes in ((at, bits) for at, bits in cover.items() if at >= 0):
                over = [high // (boxes & bits).bit_count() for bits, high in highs if boxes & bits and high is not None]
                self.most[mine] = min(over, default=-1)
        if not once or any(0 <= most < count for most, (count, _) in zip(self.most, fact.records, strict=True)):
            raise Refused("the total does not count every record once, or a published number forbids a record")
        for at, bits in (one for box in fact.where for one in box.items()):
            if any((bits >> level ^ bits >> kinds.classes[at][key]) & 1 for level, key in enumerate(kinds.levels[at])):
                raise Refused("the count divides records that are not told apart")
        self.groups = list(groups)  # kinds with the same column are one variable
        self.terms: dict[Key, dict[int, Number]] = {key: {} for key in self.used}
        for at, key, times in ((at, *one) for at, group in enumerate(groups) for one in group[0]):
            self.terms[key][at] = times
        several = [f"s{at}" for at, (count, _) in enumerate(fact.records) if count > 1]
        self.names = [f"x{at}" for at in range(len(groups))] + [f"m{at}" for at in range(len(fact.records))] + several
        self.at = {name: at for at, name in enumerate(self.names)}

    def number(self, name: str) -> Key:
        """The published number that a row is. NAME alone is of the first place, NAME@CODE of another or an area."""
        variable, _, code = name.rstrip("<>").partition("@")
        wanted = (code or self.fact.places[0], variable)
        some = (key for keys in self.numbers.values() for key in keys if key[1:] == wanted)
        found = next((key for key in some if code or key[0] == self.defined.place), None)
        if found is None:
            raise Refused(f"{name[:80]} is no published number of the fact's places and levels")
        return found

    def ends(self, key: Key) -> Ends:
        """Between which numbers it lies for the fact's places; if it counts others too, it is a limit from above."""
        low, high = self.published.value(key)
        alone = self.defined.all_places and self.published.inside[key[:2]] <= set(self.fact.places)
        return low if alone or key[0] == self.defined.place else 0, high

    def row(self, name: str) -> Row:
        """What the row of this name is: a published number, a bound of a variable, or a link of a kind of records."""
        sort, colon, rest = name.partition(":")
        if not colon:
            key, side = self.number(name), name[len(name.rstrip("<>")) :]
            low, high = self.ends(key)
            said = {"": ("E", low if low == high else None), "<": ("L", high), ">": ("G", low)}
            sense, right = said.get(side, ("", None))
            if right is None:
                raise Refused(f"{name[:80]}: what is published does not say this of the fact's places")
            return Row(self.terms[key], sense, right)
        if sort == "lb":
            return Row({self.at[rest]: 1}, "G", 0)
        kind, m, s = int(rest), self.at[f"m{rest}"], self.at.get(f"s{rest}")
        count, most = self.fact.records[kind][0], self.most[kind]
        if sort == "full" and s is not None:
            return Row({m: 1, s: -count}, "G", 0)
        if sort != "over" or most < 0:
            raise ValueError
        mine: dict[int, Number] = {at: -1 for at, group in enumerate(self.groups) if group[1] == kind}
        more = {s: most - count} if s is not None and most > count else {}
        return Row(mine | {m: most if count == 1 else 1} | more, "G", 0)

    @cached_property
    def goal(self) -> Row:
        """What the last line must show."""
        if self.fact.kind == "contradiction":
            return Row({}, "G", 1)
        overlap: dict[int, Number] = {self.at[f"m{at}"]: 1 for at in range(len(self.fact.records))}
        terms = overlap or {at: times for at, (_, _, times) in enumerate(self.groups) if times}
        return Row(terms, "L" if self.fact.kind == "most" else "G", self.fact.bound)

    def head(self, rows: Sequence[str]) -> str:
        """The certificate with these rows up to its derivation; terms in the order of the variables."""
        count, kind, bound = len(self.names), self.fact.kind, self.fact.bound
        every, bounds = " ".join(map(str, range(count))), sum(name.startswith("lb:") for name in rows)
        wanted = {"contradiction": "infeas", "most": f"range -inf {bound}"}.get(kind, f"range {bound} inf")
        objective = f"OBJ {'max' if kind == 'most' else 'min'}\n{written(self.goal.terms)}"
        variables = f"VAR {count}\n{' '.join(self.names)}\nINT {count}\n{every}"
        told = ((name, self.row(name)) for name in rows)
        said = "".join(f"{name} {row.sense} {row.right} {written(row.terms)}\n" for name, row in told)
        return f"VER 1.0\n{variables}\n{objective}\nCON {len(rows)} {bounds}\n{said}RTP {wanted}\nSOL 0\nDER "


def pairs(text: str, below: int) -> dict[int, Number]:
    """Numbers by index, as in `2 0 1 3 -1/2`: how many, then each index and its number."""
    count, *words = text.split(" ")
    if not PAIRS.fullmatch(text) or len(words) != 2 * int(count):
        raise Refused(f"{text[:40]!r} is not so many numbers")
    values = (Fraction(word) if "/" in word else int(word) for word in words[1::2])
    found = dict(zip(map(int, words[::2]), values, strict=True))
    if len(found) < int(count) or max(found, default=-1) >= below or not all(found.values()):
        raise Refused("an index is named twice, or with 0, or it is of nothing before")
    return found


def show(text: str, model: Model, names: Sequence[str]) -> None:
    """Refuse a certificate unless it is about this program, and every line follows."""
    head, goal = model.head(names), model.goal
    if not text.startswith(head):
        raise Refused("its rows, or what it is to show, are not what the published numbers and the fact say")
    count, *lines = text[len(head) :].removesuffix("\n").split("\n")
    if count != str(len(lines)) or not 0 < len(lines) < ROWS:
        raise Refused("it has not as many lines as it says, or too many")
    rows, under = [model.row(name) for name in names], [0] * len(names)  # assumptions a row rests on, as bits
    assumed, spent = dict[int, int](), 0
    for at, line in enumerate(lines, len(rows)):
        if not (match := LINE.fullmatch(line)):
            raise Refused(f"row {at} is not a line as specified")
        sense, right, left, reason, given = match.groups()
        row = Row(goal.terms if left == "OBJ" else pairs(left, len(model.names)), sense, Fraction(right))
        rests = 0
        if reason == "asm":
            assumed[at] = rests = 1 << len(assumed)
        elif reason == "uns":
            one, first, other, second = map(int, given.split(" "))
            if not {first, second} <= set(assumed) or not covers(rows[first], rows[second]):
                raise Refused(f"row {at}: its two cases are no assumptions, or do not cover everything")
            if min(one, other) < 0 or not (rows[one].dominates(row) and rows[other].dominates(row)):
                raise Refused(f"row {at} does not follow from its two cases")
            rests = (under[one] & ~assumed[first]) | (under[other] & ~assumed[second])
        else:
            times = pairs(given, at)
            spent += sum(len(rows[one].terms) + 1 for one in times)
            if spent > TERMS or not combined(times, rows, sense, rounded=reason == "rnd").dominates(row):
                raise Refused(f"row {at} does not follow from those named, or it takes too long to see")
            for one in times:
                rests |= under[one]
        rows.append(row)
        under.append(rests)
        if len(assumed) > ASSUMPTIONS:
            raise Refused("the certificate has too many cases")
    if under[-1] or not rows[-1].dominates(goal):
        raise Refused("the last line does not show the fact")


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
    fact, kinds, numbers = model.fact, model.kinds, {place: model.kinds.numbers(place) for place in model.fact.places}
    counted, found, asked = Counter[Key](), Counter[tuple[str, tuple[int, ...]]](), 0
    with form("witness"):
        said = json.loads(text)
        without = {model.number(said["without"])} if "without" in said else set()
        for place, times, *record in ((place, *one) for place, some in said["records"].items() for one in some):
            told = [levels[whole(level)] for levels, level in zip(kinds.levels, record, strict=True)]
            boxes = -1
            for inside, _ in told:
                boxes &= inside
            if whole(times) < 1 or min(record) < 0 or boxes & kinds.zeros:
                raise ValueError
            found[place, tuple(one for _, one in told)] += times
            asked += times * fact.times(record, place)
            counted.update({key: times * (boxes & bits).bit_count() for key, bits in numbers[place].items()})
    every = {key for some in numbers.values() for key in some}
    for key in (set(model.used) if fact.kind == "contradiction" else every) - without:
        low, high = model.ends(key)
        if counted[key] < low or (high is not None and counted[key] > high):
            raise Refused(f"a witness does not count up to {key[2]} of {key[1]}")
    if without and fact.kind != "contradiction":
        raise Refused("a witness leaves out a number")
    overlap = sum(min(found[kind], count) for count, kind in fact.records)
    return overlap if fact.records else asked, "".join(key[2] + "@" + key[1] for key in without)


def statement(model: Model, witnesses: Sequence[str]) -> str:
    """What was shown, in words. Witnesses are counted again: the bound is met, or a number is needed."""
    fact, sets, attributes = model.fact, [recounted(one, model) for one in witnesses], model.defined.attributes
    if fact.kind == "contradiction":
        names = [f"{name}@{code}" for _, code, name in model.used]
        needed = "; without any one of them some set fits the others" if {one for _, one in sets} >= set(names) else ""
        return f"No set of records fits these {len(names)} published numbers: {', '.join(names)}{needed}."
    around = "".join(f" and of the {level} around" for level in fact.levels if level != model.defined.place)
    what = f"of the {sum(count for count, _ in fact.records)} records named"
    what += f", and {model.total} in all" if fact.total else ""
    for number, box in enumerate(fact.where):
        what = f"{what} or" if number else "records"
        for (name, labels), bits in ((attributes[at], bits) for at, bits in box.items()):
            what += f" {name} {'|'.join(label for n, label in enumerate(labels) if bits >> n & 1)}"
    what += "" if fact.within == fact.places else f" in {', '.join(fact.within)}"
    what += "; one that has exactly that many was counted" if fact.bound in [met for met, _ in sets] else ""
    where, side = f"{model.defined.place} {', '.join(fact.places)}{around}", "most" if fact.kind == "most" else "least"
    return f"Every set that fits the numbers of {where} has at {side} {fact.bound} {what}."


def opened(path: Path, defined: Definitions) -> tuple[dict[str, str], list[str], Fact, str]:
    """The header of a certificate, its witnesses, its fact, and the rest."""
    with path.open("rb") as stream:
        text = stream.read(CERTIFICATE_BYTES + 1).decode("ascii")
    lines = re.findall(r"(?m)^% (\S+) (.*)$", text)
    head, witnesses = dict(lines), [said for name, said in lines if name == "witness"]
    once = len(lines) - len(witnesses) == len(head.keys() - {"witness"})
    if len(text) > CERTIFICATE_BYTES or not once or f"glasshouse {head['glasshouse']}" != FORMAT:
        raise Refused("it is too large, or its header is not as specified")
    return head, witnesses, Fact(head["fact"], defined), re.sub(r"(?m)^% .*\n", "", text)


def accepted(path: Path, published: Published, by_levels: dict[tuple[str, ...], Kinds]) -> str:
    """What a certificate shows, in words."""
    head, witnesses, fact, text = opened(path, published.defined)
    if (head["published"], head["definitions"]) != (published.sha256, published.defined.sha256):
        raise Refused("it is of another published file, or of other definitions")
    count = re.search(r"(?m)^CON ([0-9]{1,6}) .*\n", text)
    lines = text[count.end() :].split("\n", int(count[1]))[:-1] if count else []
    names = [line.partition(" ")[0] for line in lines]
    if len(set(names)) < len(names):
        raise Refused("a row is named twice")
    kinds = by_levels.setdefault(fact.levels, by_levels.get(fact.levels) or Kinds(published.defined, fact.levels))
    model = Model(fact, published, kinds, (name for name in names if ":" not in name))
    show(text, model, names)
    return statement(model, witnesses)


def check(folder: Path, tables: Path, files: Sequence[Path]) -> Iterator[tuple[Path, bool, str]]:
    """Of each certificate, whether it is accepted, and what it shows or why not; the tables are read once."""
    with (folder / DEFINITIONS).open("rb") as stream:
        defined = Definitions(stream.read(DEFINITIONS_BYTES + 1))
    places = set[str]()
    for path in files:
        with suppress(Refused, OSError), form("certificate"):  # it is refused below
            places.update(opened(path, defined)[2].places)
    published, by_levels = read_published(tables, defined, places), dict[tuple[str, ...], Kinds]()
    for path in files:
        try:
            with form("certificate"):
                fine, said = True, accepted(path, published, by_levels)
        except (Refused, OSError) as error:
            fine, said = False, str(error) if isinstance(error, Refused) else f"{UNREADABLE} ({type(error).__name__})"
        yield path, fine, said


def main(words: Sequence[str]) -> int:
    """Check what the command line names, and say it line by line."""
    if len(words) < 3 or words[1] != "--tables":
        print(__doc__)
        return 2
    fine, files = 0, [Path(one) for one in words[3:]] or sorted(filter(Path.is_file, Path(words[0]).rglob("*" + VIPR)))
    try:
        for path, shown, said in check(Path(words[0]), Path(words[2]), files):
            fine += shown
            print("accepted" if shown else "REFUSED", path.name, said)
    except (OSError, Refused) as error:
        print(f"REFUSED: {error}")
    print(f"{fine} accepted, {len(files) - fine} refused")
    return int(not files or fine < len(files))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
