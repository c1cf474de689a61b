#!/usr/bin/env python3
"""Is this proof true? Checks certificates of facts about published tables; nothing but Python is needed.

    python check_proof.py PROOFS --tables TABLES.csv.gz [FILE.vipr ...]

PROOFS has `definitions.json` and certificates, TABLES is the published file, a long CSV. Exit code 0: all accepted; 1:
some refused; 2: bad usage. `docs/proofs.md` specifies what a certificate must have, and why its fact is then true.
Nothing that is read is run, and all is read within limits. Only where certificates rest on a second agency's file is
another program used: `check_second.py`, beside this one.
"""

import csv
import gzip
import hashlib
import json
import re
import runpy
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from fractions import Fraction
from functools import lru_cache, partial, reduce
from pathlib import Path
from typing import Any, NamedTuple

CERTIFICATE_BYTES, DEFINITIONS_BYTES, LINE_LENGTH = 1 << 23, 1 << 25, 1 << 16
LEVELS, BOXES, HUGE = 5_000, 50_000, 1 << 4096  # of all attributes; of all their numbers; the largest denominator
KINDS, MEMORY = 500_000, 1 << 32  # kinds of record that are told apart in a place, and the bits that they take
STEPS, KEPT = 200_000_000, 100  # of work for one certificate; what a number that is kept in memory is charged
TOO_LONG = "it takes too long to see"
FORMAT, VIPR, DEFINITIONS, UNREADABLE = "glasshouse proof 1", ".vipr", "definitions.json", "it cannot be read"
NAME, WHOLE, NUMBER = re.compile(r"[^\s<>@:%{}]{1,200}"), "[0-9]{1,12}", "-?[0-9]{1,60}(?:/0*[1-9][0-9]{0,59})?"
SECOND, READS_SECOND = "second.csv", "check_second.py"  # what a second agency prints; the program that reads it
MOST_SAID = 40  # levels that a statement lists
PAIRS = re.compile(rf"{WHOLE}(?: {WHOLE} {NUMBER})*")  # how many, then each with its number
LINE = re.compile(rf"\A\S+ ([EGL]) ({NUMBER}) (OBJ|[-0-9/ ]+) {{ (asm|lin|rnd|uns) ?([-0-9/ ]*) }} \S+\Z")
OTHER = {"E": "E", "G": "L", "L": "G"}  # the sense of a row that is taken away
FACTS = {"overlap": (1, "records"), "least": (1, "where"), "most": (0, "where"), "contradiction": (0, "")}
Number = int | Fraction
Box = dict[int, int]  # of each attribute that is restricted, the levels that are allowed, as bits
Key = tuple[str, str, str]  # a published number: its level, the code of its place or area, and its name


class Refused(Exception):  # noqa: N818  # it is a verdict
    """Why a certificate is not accepted, in one line."""


def need(true: object, why: str = "") -> None:
    """Refuse what is not so; without words, it is not of the form that is specified."""
    if not true:
        raise Refused(why) if why else ValueError


@contextmanager
def form(what: str) -> Iterator[None]:
    """What cannot be read, or is not as specified, is refused, whatever is wrong with it."""
    try:
        yield
    except Exception as error:
        why = UNREADABLE if isinstance(error, OSError | EOFError) else "not of the form that is specified"
        raise (error if isinstance(error, Refused) else Refused(f"{what}: {why}")) from None


def content(path: Path, most: int) -> bytes:
    """What is in a file, within limits; what hands out bytes without end, or waits for them, is none."""
    with form(path.name):
        need(path.is_file() and path.stat().st_size <= most, f"{path.name}: {UNREADABLE}, or it is too large")
        return path.read_bytes()


def whole(value: object) -> int:
    need(re.fullmatch(WHOLE, str(value)))
    return int(str(value))


def once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    need(len(dict(pairs)) == len(pairs))
    return dict(pairs)


def parsed(text: str) -> Any:
    """What JSON says; all its numbers must be whole, and no name may be given twice."""
    return json.loads(text, object_pairs_hook=once, parse_int=whole, parse_float=whole, parse_constant=whole)


class Definitions:
    """What the published numbers count: boxes of levels, one for each time that a number counts a record."""

    def __init__(self, content: bytes) -> None:
        self.sha256 = hashlib.sha256(content).hexdigest()
        with form(DEFINITIONS):
            told = parsed(content.decode())
            need(told["format"] == FORMAT)
            self.attributes = [(str(one["name"]), list(map(str, one["levels"]))) for one in told["attributes"]]
            self.position = {name: at for at, (name, _) in enumerate(self.attributes)}
            sizes = [len(levels) for _, levels in self.attributes]
            self.compare = [list(map(whole, told["compare"][name])) for name in self.position]
            need(all(sizes) and sizes == list(map(len, self.compare)) and sum(sizes) <= LEVELS)
            self.place, self.mapping = str(told["place"]), told["mapping"]
            self.length = {level: whole(length) for level, length in told["levels"].items()}
            self.hidden, self.all_places = told["absent"] != "zero", told["all_places"] is True
            self.totals, self.assumed, self.aside = (set(told[one]) for one in ("totals", "assumed", "aside"))
            self.impossible = [self.box(one["where"]) for one in told["impossible"]]
            self.numbers: dict[str, dict[str, list[Box]]] = {}
            self.table, self.second = dict[str, str](), dict[tuple[str, str], dict[str, Any]]()
            for level, some in told["numbers"].items():
                self.numbers[level] = {name: [self.box(one) for one in said["counts"]] for name, said in some.items()}
                self.table |= {name: str(said["table"]) for name, said in some.items()}
                self.second |= {(level, name): dict(said["second"]) for name, said in some.items() if "second" in said}
            self.own = {self.place, *(level for level, _ in self.second)}  # levels whose numbers are of single places
            boxes = len(self.impossible) + sum(1 + len(one) for some in self.numbers.values() for one in some.values())
            need(boxes <= BOXES and all(map(NAME.fullmatch, self.table)))
            need(set(self.numbers) <= set(self.length) and self.place in self.numbers)

    def box(self, where: Mapping[str, str]) -> Box:
        """Read levels by their numbers, as in `{"age": "0-4 18", "sex": "1"}`."""
        found: Box = {}
        for name, part in ((name, part) for name, text in where.items() for part in text.split()):
            at, (first, _, last) = self.position[name], part.partition("-")
            low, high = whole(first), whole(last or first)
            need(low <= high < len(self.attributes[at][1]))
            found[at] = found.get(at, 0) | (1 << high + 1) - (1 << low)
        return found

    def area(self, place: str, level: str) -> str:
        if level in self.own:
            return place
        return str(self.mapping[level].get(place, "")) if level in self.mapping else place[: self.length[level]]


class Published(NamedTuple):
    """The published numbers of some places and of the areas around them, and which places there are in those."""

    defined: Definitions
    values: dict[Key, tuple[int, int | None]]
    inside: dict[tuple[str, str], set[str]]
    sha256: str = ""

    def value(self, key: Key) -> tuple[int, int | None]:
        """Between which numbers a published one lies; one that is absent is 0, or was hidden."""
        return self.values.get(key, (0, None if self.defined.hidden else 0))


def read_published(path: Path, second: Path, defined: Definitions, places: Collection[str]) -> Published:
    """Read a published file, line by line, and a second agency's; only what is about these places is kept."""
    values, seen = dict[Key, tuple[int, int | None]](), set(defined.second)
    inside = {(level, defined.area(place, level)): set[str]() for place in places for level in defined.numbers}
    with form(path.name), path.open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
        stream.seek(0)
        for level, code, name, value in numbers_in(gzip.GzipFile(fileobj=stream) if path.suffix == ".gz" else stream):
            for at in defined.numbers if level == defined.place else ():
                inside.get((at, defined.area(code, at)), set()).add(code)
            if name in defined.numbers.get(level, {}):
                seen.add((level, name))
                if (level, code) in inside and values.setdefault((level, code, name), value) is not value:
                    raise Refused(f"the tables have {name} of {code} twice")
            elif name not in defined.aside and name not in defined.table:
                raise Refused(f"the tables have a number {name[:50]!r} that is not defined")
    # a number is published if it is in the file somewhere, or is a cell of a table that is, or is assumed
    tables = {(level, defined.table[name]) for level, name in seen}
    for level, name in ((level, name) for level, some in defined.numbers.items() for name in some):
        cell = name not in defined.totals and (level, defined.table[name]) in tables
        need(cell or (level, name) in seen or name in defined.assumed, f"no {level} of the tables has a number {name}")
    if defined.second:
        printed, reads = content(second, CERTIFICATE_BYTES), runpy.run_path(str(Path(__file__).with_name(READS_SECOND)))
        with form(second.name):
            values |= reads["follow"](printed.decode(), defined.second, places)
        sha256 += f" {hashlib.sha256(printed).hexdigest()}"
    return Published(defined, values, inside, sha256)


def numbers_in(stream: Any) -> Iterator[tuple[str, str, str, tuple[int, int | None]]]:
    """The numbers of a long CSV file, one in each line."""
    lines = (next(csv.reader([one.decode()], strict=True)) for one in iter(lambda: stream.readline(LINE_LENGTH), b""))
    header = next(lines, [])
    for of in (once(list(zip(header, line, strict=True))) for line in lines):
        low, high = (of["value"], of["value"]) if "value" in of else (of["lower"], of["upper"])
        yield of["level"], of["geoid"], of["variable"], (whole(low), whole(high) if high or "value" in of else None)


class Kinds:
    """Kinds of record that the numbers of some levels tell apart, and which boxes each lies in."""

    def __init__(self, defined: Definitions, levels: Collection[str]) -> None:
        self.defined, boxes = defined, list[Box]()
        self.of: dict[tuple[str, str], int] = {}  # the boxes of each number, as bits
        for key, some in (((level, name), some) for level in levels for name, some in defined.numbers[level].items()):
            self.of[key] = ((1 << len(some)) - 1) << len(boxes)
            boxes += some
        self.zeros = ((1 << len(defined.impossible)) - 1) << len(boxes)
        boxes += defined.impossible
        # of each attribute: the boxes and the class compared of every level; of each such pair, the first level
        self.levels, self.classes = list[list[tuple[int, int]]](), list[dict[tuple[int, int], int]]()
        for at, compared in enumerate(defined.compare):
            allowing: dict[int, int] = {}  # boxes by the levels that they allow here
            for bit, box in enumerate(boxes):
                allowing[box.get(at, -1)] = allowing.get(box.get(at, -1), 0) | 1 << bit
            level_of = [(sum(b for a, b in allowing.items() if a >> n & 1), one) for n, one in enumerate(compared)]
            self.levels.append(level_of)
            self.classes.append({key: level_of.index(key) for key in dict.fromkeys(level_of)})
        last = [max(box, default=0) for box in boxes]
        self.ended = [sum(1 << bit for bit, end in enumerate(last) if end <= at) for at in range(len(self.classes))]
        self.most = min(KINDS, MEMORY // (len(boxes) + 256 * len(self.classes) + 1))

    def numbers(self, place: str) -> dict[Key, int]:
        area = {level: self.defined.area(place, level) for level, _ in self.of}  # the numbers that count its records
        return {(level, area[level], name): bits for (level, name), bits in self.of.items()}

    def alive(self, dead: int, most: int = KINDS) -> list[tuple[tuple[int, ...], tuple[int, ...], int]]:
        """Kinds in none of the dead boxes: a record of each, the classes it is compared in, and the boxes it is in."""
        nodes: list[tuple[tuple[int, ...], tuple[int, ...], int]] = [((), (), -1)]
        for classes, over in zip(self.classes, [(dead | self.zeros) & one for one in self.ended], strict=True):
            parents, nodes = nodes, []
            for record, kind, boxes in parents:
                some = (one for one in classes.items() if not boxes & one[0][0] & over)
                nodes += [((*record, level), (*kind, one), boxes & inside) for (inside, one), level in some]
                need(len(nodes) <= min(self.most, most), "more kinds of record are told apart than this program counts")
        return nodes


class Fact:
    """What is claimed of every set of records that fits: an overlap, a count at least or at most, or that none fits."""

    def __init__(self, text: str, defined: Definitions) -> None:
        with form("fact"):
            said = parsed(text)
            self.kind, self.bound = str(said["fact"]), whole(said.get("bound", 0))
            self.places, self.levels = tuple(map(str, said["places"])), tuple(map(str, said["levels"]))
            listed = said.get("records", {})  # of an overlap: of each place, or of the first, the kinds of record
            records = {self.places[0]: listed} if isinstance(listed, list) else listed
            kinds = [(place, one) for place, some in records.items() for one in some]
            self.records = [(whole(one[0]), (place, tuple(map(whole, one[1:])))) for place, one in kinds]
            self.where = [defined.box(one) for one in said.get("where", [])]  # of a count: what is counted
            self.within = dict.fromkeys(map(str, records or said.get("within", self.places)))  # which of the places
            self.total = tuple(map(str, said.get("total", [])))  # numbers that count every record within once
            apart = [len(set(some)) == len(some) for some in (self.places, self.levels, [k for _, k in self.records])]
            least, needs = FACTS[self.kind]
            has = "records" * bool(self.records) + "where" * bool(self.where)
            need(has == needs and all(apart) and all(count for count, _ in self.records))
        need(self.bound >= least and self.places and set(self.within) <= set(self.places), "the fact says nothing")

    def times(self, record: Sequence[int], place: str) -> int:
        """How often the count that is asked for counts a record of a place."""
        where = self.where if place in self.within else []
        return sum(all(bits >> record[at] & 1 for at, bits in box.items()) for box in where)


class Row(NamedTuple):
    """A constraint: the sum of the terms is equal to (E), at least (G) or at most (L) a number."""

    terms: Mapping[int, Number]
    sense: str
    right: Number
    under: int = 0  # the assumptions that it rests on, as bits

    def dominates(self, other: "Row") -> bool:
        """Does the other follow from this one alone? From an absurdity (0 >= 1) everything does."""
        absurd = not self.terms and {"E": self.right != 0, "G": self.right > 0, "L": self.right < 0}[self.sense]
        by = {"E": self.right == other.right, "G": self.right >= other.right, "L": self.right <= other.right}
        return absurd or (self.terms == other.terms and self.sense in ("E", other.sense) and by[other.sense])


def written(terms: Mapping[int, Number]) -> str:
    return " ".join([str(len(terms)), *(f"{at} {terms[at]}" for at in sorted(terms))])


class Model:
    """The integer program of a fact: its variables, and what each row that a certificate may use must be."""

    def __init__(self, fact: Fact, published: Published, kinds: Kinds, used: Iterable[str]) -> None:
        self.fact, self.published, self.kinds, self.defined = fact, published, kinds, published.defined
        self.left, self.places = STEPS - LEVELS * len(fact.where), set(fact.places)
        self.areas = {(level, self.defined.area(one, level)) for level in fact.levels for one in fact.places}
        self.used, total = (dict.fromkeys(map(self.number, names)) for names in (used, fact.total))
        self.terms: dict[Any, dict[int, Number]] = {key: {} for key in (*self.used, *range(len(fact.records)))}
        self.most: dict[int, int] = {}  # of each, the smallest number that counts all its records; -1: none
        self.groups: dict[tuple[tuple[tuple[Key, int], ...], int, int], int] = {}  # same column, one variable
        self.total = sum(self.ends(key)[0] for key in total)
        every = all(low == high for low, high in map(self.ends, total)) and len(total) == len(fact.total)
        kind_of = {kind: at for at, (_, kind) in enumerate(fact.records)}
        for place in fact.places:
            need(published.inside.get((self.defined.place, place)), f"the tables do not name {place[:50]}")
            keys = kinds.numbers(place)
            highs = [(bits, published.value(key)[1]) for key, bits in keys.items()]
            used_here, total_here = ([(key, keys[key]) for key in some if key in keys] for some in (self.used, total))
            # boxes of numbers that are 0 hold nobody; a contradiction names every number that it uses
            dead = 0 if fact.kind == "contradiction" else sum(bits for bits, high in highs if high == 0)
            cover: dict[int, int] = {}  # of each kind, the boxes that hold all its records
            alive = kinds.alive(dead)
            self.spend(len(keys) + len(alive) * (KEPT + len(used_here) + len(total_here) + len(fact.where)))
            for record, classes, boxes in alive:
                mine, times = kind_of.get((place, classes), -1), fact.times(record, place)
                cover[mine] = cover.get(mine, -1) & boxes
                counted = sum((boxes & bits).bit_count() for _, bits in total_here)
                every = every and (not total or counted == (place in fact.within))
                column = tuple((key, (boxes & bits).bit_count()) for key, bits in used_here if boxes & bits)
                at = len(self.groups)
                if (column or mine >= 0 or times) and self.groups.setdefault((column, mine, times), at) == at:
                    self.spend(KEPT * (1 + len(column)))
                    for key, count in (*column, *[(mine, -1)][mine < 0 :]):
                        self.terms[key][at] = count
            self.spend(len(cover) * len(highs))
            for mine, boxes in cover.items():
                over = [high // (boxes & bits).bit_count() for bits, high in highs if boxes & bits and high is not None]
                self.most[mine] = min(over, default=-1)
        every = every and not any(0 <= self.most.get(at, 0) < count for at, (count, _) in enumerate(fact.records))
        need(every, "the total does not count every record once, or a published number forbids a record")
        for at, bits in (one for box in fact.where for one in box.items()):
            same = (bits >> level ^ bits >> kinds.classes[at][key] for level, key in enumerate(kinds.levels[at]))
            need(not any(one & 1 for one in same), "the count divides records that are not told apart")
        self.top = {f"m{at}": count for at, (count, _) in enumerate(fact.records)}  # the most that a variable can be
        self.top |= {f"s{at}": 1 for at, (count, _) in enumerate(fact.records) if count > 1}
        self.names = [*(f"x{at}" for at in range(len(self.groups))), *self.top]
        self.at = {name: at for at, name in enumerate(self.names)}
        terms: dict[int, Number] = {at: times for (_, _, times), at in self.groups.items() if times}
        terms |= {self.at[f"m{at}"]: 1 for at in range(len(fact.records))}
        self.goal = Row(terms, "L" if fact.kind == "most" else "G", 1 if fact.kind == "contradiction" else fact.bound)

    def spend(self, steps: int) -> None:
        self.left -= steps
        need(self.left >= 0, TOO_LONG)

    def number(self, name: str) -> Key:
        """The published number that a row is. NAME alone is of the first place, NAME@CODE of another or an area."""
        self.spend(len(self.fact.levels))
        variable, at, code = name.rstrip("<>").partition("@")
        some = [(level, code if at else self.fact.places[0], variable) for level in self.fact.levels]
        some = [key for key in some if key[:2] in self.areas and (key[0], variable) in self.kinds.of]
        need(some, f"{name[:80]} is no published number of the fact's places and levels")
        return some[0]

    def ends(self, key: Key) -> tuple[int, int | None]:
        """Between which numbers it lies for the fact's places; if it counts others too, it is a limit from above."""
        low, high = self.published.value(key)
        alone = self.defined.all_places and self.published.inside[key[:2]] <= self.places
        return low if alone or key[0] in self.defined.own else 0, high

    def row(self, name: str) -> Row:
        """What the row of this name is: a published number, a limit of a variable, or a link of a kind of records."""
        sort, colon, rest = name.partition(":")
        if not colon:
            key, side = self.number(name), name[len(name.rstrip("<>")) :]
            low, high = self.ends(key)
            sense, right = {"": ("E", low if low == high else None), "<": ("L", high), ">": ("G", low)}[side]
            need(right is not None, f"{name[:80]}: what is published does not say this of the fact's places")
            return Row(self.terms[key], sense, right or 0)
        if sort in ("lb", "ub"):
            return Row({self.at[rest]: 1}, *(("G", 0) if sort == "lb" else ("L", self.top[rest])))
        kind, m, s = int(rest), self.at[f"m{rest}"], self.at.get(f"s{rest}", -1)
        (count, _), most = self.fact.records[kind], self.most[kind]
        need(most >= 0 if sort == "over" else sort == "full" and s >= 0)
        over = self.terms[kind] | ({m: most} if count == 1 else {m: 1, s: most - count})
        terms = over if sort == "over" else {m: 1, s: -count}
        return Row({at: value for at, value in terms.items() if value}, "G", 0)

    def head(self, rows: Sequence[str]) -> str:
        """The certificate with these rows up to its derivation; terms in the order of the variables."""
        count, kind, bound = len(self.names), self.fact.kind, self.fact.bound
        wanted = {"contradiction": "infeas", "most": f"range -inf {bound}"}.get(kind, f"range {bound} inf")
        variables = f"VAR {count}\n{' '.join(self.names)}\nINT {count}\n{' '.join(map(str, range(count)))}"
        told = ((name, *self.row(name)) for name in rows)
        said = "".join(f"{name} {sense} {right} {written(terms)}\n" for name, terms, sense, right, _ in told)
        numbers = f"CON {len(rows)} {sum(name.startswith('lb:') for name in rows)}\n{said}"
        goal = f"OBJ {'max' if kind == 'most' else 'min'}\n{written(self.goal.terms)}"
        return f"VER 1.0\n{variables}\n{goal}\n{numbers}RTP {wanted}\nSOL 0\nDER "

    def show(self, text: str, names: Sequence[str]) -> None:
        """Refuse a certificate unless it is about this program, and every line follows."""
        head = self.head(names)
        count, *lines = text.removeprefix(head).removesuffix("\n").split("\n")
        need(text.startswith(head), "its rows or its goal are not what the published numbers and the fact say")
        need(count == str(len(lines)), "it has not as many lines as it says")
        rows, assumed = [self.row(name) for name in names], dict[int, int]()
        for at, line in enumerate(lines, len(rows)):
            [(sense, right, left, reason, given)] = LINE.findall(line)
            row = Row(self.goal.terms if left == "OBJ" else self.pairs(left, len(self.names)), sense, Fraction(right))
            self.spend(4 * len(row.terms) + len(assumed))
            if reason == "asm":
                assumed[at] = rests = 1 << len(assumed)
            elif reason == "uns":
                one, first, other, second = map(whole, given.split(" "))
                low, high = sorted((rows[first], rows[second]), key=lambda row: row.sense, reverse=True)
                beside = (low.sense, high.sense, low.terms, low.right + 1) == ("L", "G", high.terms, high.right)
                integers = all(value.denominator == 1 for value in (low.right, *low.terms.values()))
                need(beside and integers and {first, second} <= set(assumed), f"row {at}: its cases do not cover all")
                need(rows[one].dominates(row) and rows[other].dominates(row), f"row {at} follows not from both cases")
                rests = (rows[one].under & ~assumed[first]) | (rows[other].under & ~assumed[second])
            else:
                total = self.combined(self.pairs(given, at), rows, sense, rounded=reason == "rnd")
                need(total.dominates(row), f"row {at} does not follow from those named")
                rests = total.under
            rows.append(row._replace(under=rests))
        need(not rows[-1].under and rows[-1].dominates(self.goal), "the last line does not show the fact")

    def pairs(self, text: str, below: int) -> dict[int, Number]:
        """Numbers by index, as in `2 0 1 3 -1/2`: how many, then each index and its number."""
        need(PAIRS.fullmatch(text), f"{text[:40]!r} are no numbers")
        count, *words = text.split(" ")
        values = [Fraction(word) if "/" in word else int(word) for word in words[1::2]]
        found = dict(zip(map(int, words[::2]), values, strict=True))
        fine = len(found) == int(count) == len(words) // 2 and max(found, default=-1) < below and all(found.values())
        need(fine, "an index is named twice, or with 0, or it is of nothing before, or there are not so many")
        return found

    def combined(self, times: Mapping[int, Number], rows: Sequence[Row], sense: str, *, rounded: bool) -> Row:
        """The sum of rows, each so many times, if the signs allow it; every variable is whole: it may be rounded."""
        terms, rests = dict[int, Number]({-1: 0}), 0  # -1: the right side
        for row, much in ((rows[at], much) for at, much in times.items()):
            need(row.sense in ("E", sense if much > 0 else OTHER[sense]), "a row is taken with the wrong sign")
            self.spend(4 * len(row.terms) + 4)
            for variable, value in (*row.terms.items(), (-1, row.right)):
                terms[variable] = terms.get(variable, 0) + much * value
                need(terms[variable].denominator <= HUGE, "numbers become too long")
            rests |= row.under
        terms, right = {at: value for at, value in terms.items() if value and at >= 0}, terms[-1]
        if rounded and sense != "E" and all(value.denominator == 1 for value in terms.values()):
            right = -(-right // 1) if sense == "G" else right // 1
        return Row(terms, sense, right, rests)

    def recounted(self, text: str) -> tuple[int, set[Key]]:
        """Count records that are said to fit: the overlap or count that they have, and the number they may break."""
        fact, kinds, counted, found, asked = self.fact, self.kinds, Counter[Key](), Counter[Any](), 0
        said = parsed(text)
        without = {self.number(said["without"])} if "without" in said else set()
        for place, keys, some in ((place, kinds.numbers(place), some) for place, some in said["records"].items()):
            self.spend((1 + len(some)) * (len(keys) + len(fact.where)))
            for times, *record in some:
                told = [levels[whole(level)] for levels, level in zip(kinds.levels, record, strict=True)]
                boxes = reduce(int.__and__, (inside for inside, _ in told))
                need(whole(times) and place in self.places and not boxes & kinds.zeros)
                found[place, tuple(one for _, one in told)] += times
                asked += times * fact.times(record, place)
                counted.update({key: times * (boxes & bits).bit_count() for key, bits in keys.items() if boxes & bits})
        every = {key for place in fact.places for key in kinds.numbers(place)}
        for key in set(self.used) - without if fact.kind == "contradiction" else every:
            low, high = self.ends(key)
            fits = low <= counted[key] and (high is None or counted[key] <= high)
            need(fits, f"a witness does not count up to {key[2]} of {key[1]}")
        return sum(min(found[kind], count) for count, kind in fact.records) if fact.records else asked, without

    def statement(self, witnesses: Sequence[str]) -> str:
        """What was shown, in words. Witnesses are counted again: the bound is met, or a number is needed."""
        fact, sets = self.fact, [self.recounted(one) for one in witnesses]
        read = {level: f"a second agency (if {level})" for level in self.defined.own}
        around = [read.get(level, f"the {level} around") for level in fact.levels if level != self.defined.place]
        of = " and of ".join([f"{self.defined.place} {', '.join(fact.places)}", *around])
        if fact.kind == "contradiction":
            names = ", ".join(f"{name}@{code}" for _, code, name in self.used)
            needed = set(self.used) <= {key for _, without in sets for key in without}
            more = "; without any one of them some set fits the others" * needed
            return f"No set of records fits these {len(self.used)} published numbers of {of}: {names}{more}."
        total = f", and {self.total} in all" if fact.total else ""
        what = "records" if fact.where else f"of the {sum(count for count, _ in fact.records)} records named{total}"
        for number, box in enumerate(fact.where):
            what += " or" if number else ""
            for (name, labels), bits in ((self.defined.attributes[at], bits) for at, bits in box.items()):
                some = [label for n, label in enumerate(labels) if bits >> n & 1]
                some[3:-1] = [f"({len(some) - 4} more)"] if len(some) > MOST_SAID else some[3:-1]
                what += f" {name} {'|'.join(some)}"
            self.spend(len(what))
        what += "" if set(fact.within) == self.places else f" in {', '.join(fact.within)}"
        what += "; one that has exactly that many was counted" if fact.bound in [met for met, _ in sets] else ""
        side = "most" if fact.kind == "most" else "least"
        return f"Every set that fits the numbers of {of} has at {side} {fact.bound} {what}."


def opened(path: Path, defined: Definitions) -> tuple[dict[str, str], list[str], Fact, str]:
    """The header of a certificate, its witnesses, its fact, and the rest."""
    text = content(path, CERTIFICATE_BYTES).decode("ascii")
    lines = re.findall(r"(?m)^% (\S+) (.*)$", text)
    witnesses = [said for name, said in lines if name == "witness"]
    head = once([line for line in lines if line[0] != "witness"])
    return head, witnesses, Fact(head["fact"], defined), re.sub(r"(?m)^% .*\n", "", text)


def check(folder: Path, tables: Path, files: Sequence[Path]) -> Iterator[tuple[Path, bool, str]]:
    """Of each certificate, whether it is accepted, and what it shows or why not; the tables are read once."""
    defined = Definitions(content(folder / DEFINITIONS, DEFINITIONS_BYTES))
    places = set[str]()
    for path in files:
        with suppress(Refused), form("certificate"):  # it is refused below
            places.update(opened(path, defined)[2].places)
    published = read_published(tables, folder / SECOND, defined, places)
    kinds_of = lru_cache(2)(partial(Kinds, defined))
    for path in files:
        try:
            with form("certificate"):
                head, witnesses, fact, text = opened(path, defined)
                ours = {"glasshouse": "proof 1", "published": published.sha256, "definitions": defined.sha256}
                need(ours.items() <= head.items(), "it is of another published file, or of other definitions")
                names = list(once(re.findall(r"(?m)^(\S+) ([EGL]) ", text.partition("\nRTP ")[0])))  # no row twice
                model = Model(fact, published, kinds_of(fact.levels), (name for name in names if ":" not in name))
                model.show(text, names)
                yield path, True, line_of(model.statement(witnesses))
        except Refused as error:
            yield path, False, line_of(str(error))


def line_of(text: str) -> str:
    """What is printed is one line, whatever labels and names of files have in them."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def main(words: Sequence[str]) -> int:
    if len(words) < 3 or words[1] != "--tables":
        print(__doc__)
        return 2
    fine, files = 0, [Path(one) for one in words[3:]] or sorted(Path(words[0]).rglob(f"*{VIPR}"))
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        for path, shown, said in check(Path(words[0]), Path(words[2]), files):
            fine += shown
            print("accepted" if shown else "REFUSED", line_of(path.name), said)
    except Refused as error:
        print("REFUSED:", line_of(str(error)))
    print(f"{fine} accepted, {len(files) - fine} refused")
    return int(not files or fine < len(files))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
