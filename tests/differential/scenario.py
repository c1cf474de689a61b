"""What is a record, and what does a line of a table count? A scenario as its folder tells it.

Nothing here knows Glasshouse: `scenario.toml` is read as docs/scenarios.md describes it, as far as the generator writes
it, and every line becomes how often it counts each of the possible *kinds* of record.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from pathlib import Path
from typing import Any

Sets = Mapping[str, frozenset[int]]  # a description: the levels allowed, of each attribute that is restricted


@dataclass(frozen=True)
class Line:
    """One number of a table: how often it counts each kind, and the descriptions that it counts."""

    table: str
    variable: str
    times: tuple[int, ...]
    sets: tuple[Sets, ...]
    parts: bool  # a subtotal
    answers: bool = False  # it counts answers, not records


@dataclass(frozen=True)
class Read:
    """A scenario as its folder tells it."""

    place: str
    unit: str
    lengths: dict[str, int]  # by level, coarse to fine
    attributes: dict[str, list[str]]
    kinds: list[tuple[int, ...]]
    lines: list[Line]
    level_of: dict[str, str]  # of each table
    bins: dict[str, list[frozenset[int]]]
    zeros: list[Sets]

    @property
    def levels(self) -> list[str]:
        return list(self.lengths)

    @property
    def tables(self) -> list[str]:
        return list(self.level_of)

    @cached_property
    def owner(self) -> dict[str, str]:
        return {line.variable: line.table for line in self.lines}

    @cached_property
    def by_variable(self) -> dict[str, Line]:
        return {line.variable: line for line in self.lines}

    def spelled(self, kind: int) -> list[str]:
        return [labels[level] for labels, level in zip(self.attributes.values(), self.kinds[kind], strict=True)]

    def kind(self, labels: Sequence[str]) -> int:
        """The number of the kind that has these labels."""
        pairs = zip(self.attributes.values(), labels, strict=True)
        return self.kinds.index(tuple(known.index(label) for known, label in pairs))

    def matching(self, sets: Sets) -> frozenset[int]:
        return frozenset(number for number, kind in enumerate(self.kinds) if _inside(self.attributes, kind, sets))

    def looked_at(self, tables: Iterable[str]) -> set[str]:
        """The attributes that these tables restrict somewhere."""
        chosen = set(tables)
        return {name for line in self.lines if line.table in chosen for sets in line.sets for name in sets}

    def cells(self, attributes: Collection[str], told: Iterable[Line]) -> list[Hashable]:
        """For each kind the cell that it is compared in: bins or levels, divided by what these lines tell apart."""
        apart: dict[str, list[frozenset[int]]] = {name: [] for name in self.attributes}
        for line in told:
            for sets in line.sets:
                for name, levels in sets.items():
                    apart[name].append(levels)
        found: list[Hashable] = []
        for kind in self.kinds:
            cell = []
            for name, level in zip(self.attributes, kind, strict=True):
                if name in attributes:
                    group = next((at for at, some in enumerate(self.bins.get(name, [])) if level in some), level)
                    cell.append((group, tuple(level in levels for levels in apart[name])))
            found.append(tuple(cell))
        return found


def read_scenario(folder: Path) -> Read:
    """Read `scenario.toml` as docs/scenarios.md describes it, as far as the generator writes it."""
    toml = tomllib.loads((folder / "scenario.toml").read_text())
    attributes = {}
    for name, entry in toml["attribute"].items():
        first, last = entry.get("range", (0, -1))
        attributes[name] = entry.get("levels") or [str(number) for number in range(first, last + 1)]
    zeros = [zero for entry in toml.get("impossible", []) for zero in _zeros(attributes, entry)]
    every = product(*(range(len(labels)) for labels in attributes.values()))
    kinds = [kind for kind in every if not any(_inside(attributes, kind, zero) for zero in zeros)]
    layout = _Layout(attributes, kinds, toml.get("recode", {}))
    lines, level_of = [], {}
    for name, entry in toml["table"].items():
        for letter in ("", *entry.get("iterations", "")):
            only = {k: v for k, v in toml["iteration"][letter].items() if k != "title"} if letter else {}
            universe = _both(_described(attributes, entry.get("universe", {})), _described(attributes, only))
            level_of[name + letter] = entry["level"]
            lines += layout.lines(name + letter, entry, universe)
    compare = toml.get("compare", {}).get("bins", {})
    bins = {toml["recode"][name]["attribute"]: layout.leaves(name) for name in compare.values()}
    places = toml["geography"]
    return Read(places["place"], places["unit"], places["levels"], attributes, kinds, lines, level_of, bins, zeros)


def _zeros(attributes: dict[str, list[str]], entry: dict[str, Any]) -> Iterable[Sets]:
    """A structural zero, or with `unless` one for each attribute that must have some of its levels."""
    named = {name: value for name, value in entry.items() if name in attributes}
    sets = _described(attributes, named)
    for name, value in entry.get("unless", {}).items():
        rest = frozenset(range(len(attributes[name]))) - _levels(attributes[name], value)
        yield _both(sets, {name: rest})
    if not entry.get("unless"):
        yield sets


def _levels(labels: list[str], value: Any) -> frozenset[int]:
    """Levels by a label, several labels, or bins of whole numbers."""
    if isinstance(value, list):
        return frozenset(labels.index(label) for label in value)
    if value in labels:
        return frozenset([labels.index(value)])
    found: set[int] = set()
    for word in value.split():
        first, last = re.fullmatch(r"(\d+)(?:-(\d+)|\+)?", word).groups()  # type: ignore[union-attr]
        end = int(labels[-1]) if word.endswith("+") else int(last or first)
        found.update(labels.index(str(number)) for number in range(int(first), end + 1))
    return frozenset(found)


def _described(attributes: dict[str, list[str]], entry: Mapping[str, Any]) -> Sets:
    """A description; an attribute that may have every level is not restricted (convention 2)."""
    sets = {name: _levels(attributes[name], value) for name, value in entry.items()}
    return {name: levels for name, levels in sets.items() if len(levels) < len(attributes[name])}


def _both(one: Sets, other: Sets) -> Sets:
    names = {**one, **other}
    return {name: one.get(name, levels) & other.get(name, levels) for name, levels in names.items()}


def _inside(attributes: Iterable[str], kind: Sequence[int], sets: Sets) -> bool:
    return all(level in sets[name] for name, level in zip(attributes, kind, strict=True) if name in sets)


def _each(span: re.Match[str]) -> str:
    """Five bins of one number each for `0..4`."""
    return " ".join(str(number) for number in range(int(span[1]), int(span[2]) + 1))


class _Layout:
    """Lays tables out as offices print them: a total, then every group followed by what divides it."""

    def __init__(self, attributes: dict[str, list[str]], kinds: list[tuple[int, ...]], recodes: dict[str, Any]) -> None:
        self.attributes, self.kinds, self.recodes = attributes, kinds, recodes

    def leaves(self, name: str) -> list[frozenset[int]]:
        labels = self.attributes[self.recodes[name]["attribute"]]
        waiting, found = self._groups(name), []
        while waiting:
            group = waiting.pop(0)
            waiting[:0] = group.get("parts", [])
            found += [] if group.get("parts") else [_levels(labels, group["levels"])]
        return found

    def _groups(self, name: str) -> list[dict[str, Any]]:
        recode = self.recodes[name]
        if "bins" in recode:
            words = (re.sub(r"(\d+)\.\.(\d+)", _each, word) for word in recode["bins"].split())
            return [{"label": word, "levels": word} for word in " ".join(words).split()]
        every = recode.get("groups", self.attributes[recode["attribute"]])
        return [{"label": group, "levels": group} if isinstance(group, str) else group for group in every]

    def lines(self, table: str, entry: dict[str, Any], universe: Sets) -> list[Line]:
        found: list[Line] = []
        if "sums" in entry:
            found.append(self._sum(table, entry["sums"], universe))
            return found
        by, whole = entry["by"], entry.get("undivided", [])

        def add(label: str, sets: Sets, groups: list[dict[str, Any]], depth: int) -> tuple[int, ...]:
            at = len(found)
            name = f"{table}_{at + 1:03}"
            found.append(Line(table, name, self._counted(sets), (sets,), False))
            first = len(found)
            for group in groups:
                attribute = self.recodes[by[depth]]["attribute"]
                inside = _both(sets, self._restricted(attribute, group["levels"]))
                if group.get("parts"):
                    add(group["label"], inside, group["parts"], depth)
                elif group["label"] in whole or depth + 1 == len(by):
                    add(group["label"], inside, [], depth)
                else:
                    add(group["label"], inside, self._groups(by[depth + 1]), depth + 1)
            if groups:
                leaves = [line for line in found[first:] if not line.parts]
                answers = any(self.recodes[name].get("tally") for name in by[depth:])
                times = [sum(column) for column in zip(*(leaf.times for leaf in leaves), strict=True)]
                told = tuple(some for leaf in leaves for some in leaf.sets) if answers else (sets,)
                counted = tuple(times) if answers else self._counted(sets)
                found[at] = Line(table, name, counted, told, True, answers)
            elif label in entry.get("of_which", {}):
                some = entry["of_which"][label]
                inside = _both(sets, _described(self.attributes, {k: v for k, v in some.items() if k != "label"}))
                found.append(Line(table, f"{table}_{at + 2:03}", self._counted(inside), (inside,), False))
            return ()

        add("total", universe, self._groups(by[0]) if by else [], 0)
        return found

    def _sum(self, table: str, number: str, universe: Sets) -> Line:
        numbers = [int(label) for label in self.attributes[number]]
        at = list(self.attributes).index(number)
        times = tuple(numbers[kind[at]] * _inside(self.attributes, kind, universe) for kind in self.kinds)
        answers = []
        for least in range(1, max(numbers) + 1):
            enough = [label for label, value in zip(self.attributes[number], numbers, strict=True) if value >= least]
            answers.append(_both(universe, self._restricted(number, enough)))
        return Line(table, f"{table}_001", times, tuple(answers), False, True)

    def _restricted(self, attribute: str, value: Any) -> Sets:
        return _described(self.attributes, {attribute: value})

    def _counted(self, sets: Sets) -> tuple[int, ...]:
        return tuple(int(_inside(self.attributes, kind, sets)) for kind in self.kinds)


def descriptions(scenario: Read, kind: int, told: Iterable[Line]) -> Iterable[Sets]:
    """Everything that claims can say of a kind: some columns, in the values that these lines tell apart (39)."""
    apart = {name: {sets[name] for line in told for sets in line.sets if name in sets} for name in scenario.attributes}
    values: dict[str, frozenset[int]] = {}
    for (name, labels), level in zip(scenario.attributes.items(), scenario.kinds[kind], strict=True):
        alike = [at for at in range(len(labels)) if all((at in some) == (level in some) for some in apart[name])]
        if len(alike) < len(labels):
            values[name] = frozenset(alike)
    for count in range(1, len(values) + 1):
        for some in combinations(values, count):
            yield {name: values[name] for name in some}
