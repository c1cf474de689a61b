"""How is a fact written down so that strangers can check it? As VIPR: rows by their official names, and lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import wraps
from typing import ParamSpec

from glasshouse.errors import GlasshouseBug
from glasshouse.proofs.check_proof import (
    CERTIFICATE_BYTES,
    FORMAT,
    TOO_LONG,
    Fact,
    Kinds,
    Model,
    Published,
    Refused,
    written,
)  # fmt: skip
from glasshouse.proofs.derivation import Derivation, Line, Ref

OF_FILES = 1_000  # bytes of a header that are about files
P = ParamSpec("P")
Shown = tuple[int, str]  # the bound that is shown, and the text of the certificate
Records = Mapping[str, Sequence[tuple[int, ...]]]  # by place: how many, and a level of each attribute


@dataclass(frozen=True)
class Witness:
    """Records that fit all numbers, or all those of a contradiction but one."""

    records: Records
    without: str = ""

    def said(self) -> dict[str, object]:
        named = {"without": self.without} if self.without else {}
        return {**named, "records": {place: [list(one) for one in some] for place, some in self.records.items()}}


def _header(fact: Mapping[str, object], witnesses: Sequence[Witness]) -> list[str]:
    """The lines of a header that are about the fact; those about files come when the files are known."""
    lines = [f"% fact {_json(fact)}", *(f"% witness {_json(one.said())}" for one in witnesses)]
    return [line for line in lines if line.isascii()]


def complete(text: str, published: str, definitions: str) -> str:
    """A certificate with what its header says of files: their hashes."""
    return f"% {FORMAT}\n% published {published}\n% definitions {definitions}\n{text}"


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def within_limits(nothing: Shown) -> Callable[[Callable[P, Shown]], Callable[P, Shown]]:
    """What is beyond the limits of the checker is not shown, and no reason to stop."""

    def limited(shown: Callable[P, Shown]) -> Callable[P, Shown]:
        @wraps(shown)
        def tried(*given: P.args, **named: P.kwargs) -> Shown:
            try:
                return shown(*given, **named)
            except Refused:
                return nothing

        return tried

    return limited


def text_of(
    said: Mapping[str, object], witnesses: Sequence[Witness], published: Published, kinds: Kinds, derived: Derivation
) -> str:
    """A certificate, but for what its header says of files; refused if the checker would not read that much."""
    fact = Fact(json.dumps(said), published.defined)
    text = "\n".join([*_header(said, witnesses), _body(fact, published, kinds, derived)])
    if len(text) > CERTIFICATE_BYTES - OF_FILES:
        raise Refused(TOO_LONG)
    return text


def _body(fact: Fact, published: Published, kinds: Kinds, derived: Derivation) -> str:
    """The VIPR text of a derivation: only rows that are used, kinds of record with the same column as one variable."""
    lines = derived.lines
    used = {ref.rstrip("<>"): None for line in lines for ref in line.times if isinstance(ref, str) and ":" not in ref}
    names = [name for name in derived.space.names if name in used]
    if not any(line.times or line.terms for line in lines):  # zeros say it all; viprchk takes no file without a row
        names = list(derived.space.names[:1])
    found = _columns(fact, published, kinds, derived, names)
    if found is None:  # a case divides kinds that these rows do not tell apart
        names = list(derived.space.names)
        found = _columns(fact, published, kinds, derived, names)
    if found is None:
        raise GlasshouseBug("a line of a derivation is about kinds of record that no row tells apart")
    model, column = found
    return _Writer(model, derived, column).text(names)


def _columns(
    fact: Fact, published: Published, kinds: Kinds, derived: Derivation, names: Sequence[str]
) -> tuple[Model, list[int]] | None:
    """The checker's own program of these rows, and its variable of each column of the space; None: one is two."""
    model, space = Model(fact, published, kinds, names), derived.space
    at = {name: row for row, name in enumerate(space.names)}
    by_column = space.matrix.tocsc()
    wanted = {at[name]: order for order, name in enumerate(names)}
    place = {group: number for number, group in enumerate(model.groups)}
    column: list[int] = []
    for group in range(space.groups):
        part = slice(by_column.indptr[group], by_column.indptr[group + 1])
        mine = [
            (int(r), int(v)) for r, v in zip(by_column.indices[part], by_column.data[part], strict=True) if r in wanted
        ]
        key = tuple((space.keys[row], times) for row, times in sorted(mine, key=lambda one: wanted[one[0]]))
        column.append(place.get((key, int(space.kind_of[group]), int(space.times[group])), -1))
    column += [model.at[f"m{kind}"] for kind in range(len(space.counts))]
    column += [model.at[f"s{kind}"] for kind in space.several]
    for line in derived.lines:
        told: dict[int, int] = {}
        for one, final in enumerate(column):
            if final >= 0 and told.setdefault(final, line.terms.get(one, 0)) != line.terms.get(one, 0):
                return None
        if any(column[one] < 0 for one in line.terms):
            return None
    return model, column


class _Writer:
    """Writes the lines of a derivation over the variables of the checker's program."""

    def __init__(self, model: Model, derived: Derivation, column: Sequence[int]) -> None:
        self.model, self.lines, self.column = model, derived.lines, column
        self.bounds: dict[int, None] = {}
        self.sums = [self._rest(line) for line in self.lines]
        for rest in self.sums:
            self.bounds.update(dict.fromkeys(rest))

    def _terms(self, line: Line) -> dict[int, int]:
        return {self.column[at]: value for at, value in line.terms.items() if value}

    def _rest(self, line: Line) -> dict[int, Fraction]:
        """What the multipliers of a line leave to the bounds of variables."""
        if line.reason not in ("lin", "rnd"):
            return {}
        rest = {at: Fraction(value) for at, value in self._terms(line).items()}
        for ref, much in line.times.items():
            terms = self.model.row(ref).terms if isinstance(ref, str) else self._terms(self.lines[ref])
            for at, value in terms.items():
                rest[at] = rest.get(at, Fraction(0)) - much * value
        if any(value < 0 for value in rest.values()):
            raise GlasshouseBug("the multipliers of a line leave less than nothing to a variable")
        return {at: value for at, value in rest.items() if value}

    def text(self, names: Sequence[str]) -> str:
        links = dict.fromkeys(r for line in self.lines for r in line.times if isinstance(r, str) and ":" in r)
        sided = {r for line in self.lines for r in line.times if isinstance(r, str) and ":" not in r}
        numbers = [f"{name}{side}" for name in names for side in ("", ">", "<") if f"{name}{side}" in sided]
        if {one.rstrip("<>") for one in numbers} != set(names):  # all rows are there to tell columns apart
            numbers += [name for name in names if not {name, f"{name}<", f"{name}>"} & sided and self._is_row(name)]
            numbers += [f"{name}<" for name in names if not {name, f"{name}<", f"{name}>"} & set(numbers)]
        rows = [*(f"lb:{self.model.names[at]}" for at in sorted(self.bounds)), *links, *numbers]
        self.at: dict[Ref, int] = {name: number for number, name in enumerate(rows)}
        self.at |= {number: len(rows) + number for number in range(len(self.lines))}
        told = [self._line(number, line) for number, line in enumerate(self.lines)]
        goal = self.model.goal
        if goal.sense == "L":
            last = len(rows) + len(told) - 1
            told.append(f"goal L {goal.right} OBJ {{ lin 1 {last} -1 }} -1")
        return self.model.head(rows) + f"{len(told)}\n" + "\n".join(told) + "\n"

    def _is_row(self, name: str) -> bool:
        low, high = self.model.ends(self.model.number(name))
        return low == high

    def _flipped(self, line: Line) -> bool:
        """Is a case written as `at most`?"""
        return line.reason == "asm" and next(iter(line.terms.values())) < 0

    def _line(self, number: int, line: Line) -> str:
        terms, right, sense = self._terms(line), line.right, "G"
        if self._flipped(line):
            terms, right, sense = {at: -value for at, value in terms.items()}, -right, "L"
        left = "OBJ" if terms == self.model.goal.terms and terms else written(terms)
        reason = line.reason
        if line.cases is not None:
            reason += "".join(f" {self.at[one]}" for one in line.cases)
        elif line.reason != "asm":
            times = {
                self.at[ref]: -much if isinstance(ref, int) and self._flipped(self.lines[ref]) else much
                for ref, much in line.times.items()
            }
            bounds = {self.at[f"lb:{self.model.names[at]}"]: much for at, much in self.sums[number].items()}
            reason += f" {written(times | bounds)}"
        return f"d{number} {sense} {right} {left} {{ {reason} }} -1"
