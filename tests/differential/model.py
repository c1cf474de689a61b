"""What fits a release? Equations 7 and 8 of paper 000 as printed, in CP-SAT, from the files alone.

Nothing here knows Glasshouse. A record is of one of the possible *kinds* (a level of every attribute, structural zeros
left out), x[place, kind] says how many there are, every published number is a row over x. Alone, a place has its own
numbers as equalities and those of its area as limits from above (equation 8); jointly, all are equalities. Two
histograms are compared in the cells of convention 23: every level, or the groups of the bins, and what the place's own
tables tell apart.

Which places exist may not be in a release (convention 61). `open_` programs have a place besides those that are named,
with all the zeros that an absent place has (6): whoever is there makes up the area's numbers, compared with nobody.
"""

from __future__ import annotations

import csv
import re
import tomllib
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from pathlib import Path
from typing import Any

from ortools.sat.python import cp_model

Sets = Mapping[str, frozenset[int]]  # a description: the levels allowed, of each attribute that is restricted
Key = tuple[str, int]  # a place and a kind
Ends = tuple[int, int | None]  # least and most; None is no limit
SECONDS = 30.0


# The scenario


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


# The release


class Release:
    """The numbers of a file, of some of its tables, read by convention 6."""

    def __init__(self, scenario: Read, path: Path, only: Collection[str] | None = None) -> None:
        self.scenario = scenario
        self.ends: dict[tuple[str, str, str], Ends] = {}
        self.named: set[str] = set()  # places that any number of the file names, of whichever table
        seen: set[tuple[str, str]] = set()
        with path.open(newline="") as stream:
            rows = list(csv.DictReader(stream))
        long = bool(rows) and "variable" in rows[0]
        self.codes: dict[str, set[str]] = {}
        for row in rows:
            level, code = row["level"], row["geoid"]
            if level == scenario.place:
                self.named.add(code)
            cells = {row["variable"]: row} if long else {v: row for v in row if v in scenario.owner and row[v] != ""}
            for variable in cells:
                if only is not None and scenario.owner[variable] not in only:
                    continue
                low = int(row["value" if "value" in row else "lower"] if long else row[variable])
                high = (int(row["upper"]) if row["upper"] else None) if long and "upper" in row else low
                self.ends[level, code, variable] = low, high
                seen.add((level, variable))
                self.codes.setdefault(level, set()).add(code)
        self.places_known = self._places_known(rows, long=long)
        self.variables: dict[str, list[Line]] = {}
        for level in scenario.levels:
            tables = {scenario.owner[variable] for at, variable in seen if at == level}
            told = [
                line
                for line in scenario.lines
                if (level, line.variable) in seen or (long and line.table in tables and not line.parts)
            ]
            if told:
                self.variables[level] = told
        self.named |= self.codes.get(scenario.place, set())
        for level in scenario.levels:  # an area that only finer rows tell of is there too
            if level in self.variables:
                finer = [code for other in scenario.levels for code in self.codes.get(other, set())
                         if scenario.lengths[other] > scenario.lengths[level]]  # fmt: skip
                self.codes.setdefault(level, set()).update(code[: scenario.lengths[level]] for code in finer)

    def _places_known(self, rows: Sequence[Mapping[str, str]], *, long: bool) -> tuple[bool, ...]:
        """Does the file name every place (convention 61)? Both will do where only several tables together do."""
        if not long:
            return (True,)
        place = self.scenario.place
        seen = {self.scenario.owner[row["variable"]] for row in rows if row["level"] == place}
        totals = [line for line in self.scenario.lines if line.table in seen and line.variable.endswith("_001")]
        if any(line.sets == ({},) and not line.answers for line in totals):
            return (True,)
        lines = [line.times for line in self.scenario.lines if line.table in seen]
        return (False, True) if all(map(any, zip(*lines, strict=True))) else (False,)

    @property
    def levels_around(self) -> list[str]:
        """The levels whose numbers can be used besides those of places: those within a unit, coarse to fine."""
        lengths, place = self.scenario.lengths, self.scenario.place
        return [level for level in self.variables if lengths[level] >= lengths[self.scenario.unit] and level != place]

    def tables(self, *levels: str | None) -> set[str]:
        return {line.table for level in levels if level for line in self.variables.get(level, [])}

    def told(self, level: str, code: str, line: Line) -> Ends:
        return self.ends.get((level, code, line.variable), (0, 0))

    def code(self, place: str, level: str) -> str:
        return place[: self.scenario.lengths[level]]

    def compared(self, around: str | None, *, finest: bool = False, whole: bool = False) -> list[Hashable]:
        """The cell of each kind (convention 23), by what is told; `whole`: by all that the scenario's tables tell."""
        own = self.variables.get(self.scenario.place, [])
        outer = self.variables.get(around, []) if around and finest else []
        tables = self.scenario.tables if whole else self.tables(self.scenario.place, around)
        return self.scenario.cells(self.scenario.looked_at(tables), [*own, *outer])

    # Rows of programs

    def _row(self, level: str, code: str, line: Line, places: Iterable[str], *, cap: bool = False) -> Row:
        low, high = self.told(level, code, line)
        times = {(place, kind): often for place in places for kind, often in enumerate(line.times) if often}
        return Row(times, 0 if cap else low, high)

    def alone(self, place: str, around: str | None) -> Program:
        """A place by itself; the numbers of its area are limits from above."""
        mine = self.scenario.place
        rows = [self._row(mine, place, line, [place]) for line in self.variables[mine]]
        if around:
            area = self.code(place, around)
            rows += [self._row(around, area, line, [place], cap=True) for line in self.variables[around]]
        return Program(self.scenario, [place], rows)

    def together(self, levels: Collection[str], within: str = "", *, open_: bool) -> Program:
        """All places within an area with the numbers of the areas at these levels, even of those that have no place.

        With `open_`, there may be others: a place for every area, absent at all finer levels.
        """
        lengths = self.scenario.lengths
        everywhere = dict.fromkeys(place for place in sorted(self.named) if place.startswith(within))
        members: dict[tuple[str, str], list[str]] = {}
        for level in levels:
            if level in self.variables and level != self.scenario.place:
                for code in sorted(code for code in self.codes[level] if code.startswith(within)):
                    members[level, code] = [place for place in everywhere if self.code(place, level) == code]
        if open_:
            for level, code in list(members):
                elsewhere = f"{code}*"
                everywhere[elsewhere] = None
                for (other, around), inside in members.items():
                    if lengths[other] <= lengths[level] and code.startswith(around):
                        inside.append(elsewhere)
        rows = []
        for place in everywhere:
            finer = [at for at in self.variables if lengths[at] > len(place.rstrip("*"))] if "*" in place else []
            own = [self.scenario.place] if "*" not in place and self.scenario.place in levels else []
            for level in {*own, *(at for at in finer if at in levels)}:
                rows += [self._row(level, place, line, [place]) for line in self.variables.get(level, [])]
        for (level, code), inside in members.items():
            rows += [self._row(level, code, line, inside) for line in self.variables[level]]
        return Program(self.scenario, list(everywhere), rows)


# The programs


@dataclass(frozen=True)
class Row:
    """A number: these variables, so often each, add up to between two ends."""

    times: dict[Key, int]
    low: int
    high: int | None


class Program:
    """Whole x >= 0 that keep to all rows; every solution that was met is kept, as it may refute what is asked next."""

    def __init__(self, scenario: Read, places: Sequence[str], rows: Sequence[Row]) -> None:
        self.scenario, self.places, self.rows = scenario, places, rows
        self.keys = keys = [(place, kind) for place in places for kind in range(len(scenario.kinds))]
        tops: dict[Key, list[int]] = {key: [] for key in keys}
        for row in rows:
            if row.high is not None:
                for key, often in row.times.items():
                    tops[key].append(row.high // often)
        self.free = {key for key in keys if not tops[key]}  # no number limits these
        plenty = sum(row.low for row in rows) + 20
        self.top = {key: min(tops[key], default=plenty) for key in keys}
        self.live = [key for key in keys if self.top[key] > 0]
        self.model = cp_model.CpModel()
        self.x = {key: self.model.new_int_var(0, self.top[key], f"{key[0]}.{key[1]}") for key in self.live}
        self.met: list[dict[Key, int]] = []
        self.impossible = False
        for row in rows:
            terms = [often * self.x[key] for key, often in row.times.items() if key in self.x]
            if not terms:
                self.impossible |= row.low > 0 or (row.high is not None and row.high < 0)
            elif row.high is None:
                self.model.add(sum(terms) >= row.low)
            else:
                self.model.add_linear_constraint(sum(terms), row.low, row.high)

    @cached_property
    def fits(self) -> bool:
        """Does anything fit?"""
        return self._solve(None) is not None

    def _solve(self, goal: Any) -> dict[Key, int] | None:
        """The largest value of an expression, or any solution; None when there is none."""
        if self.impossible:
            return None
        self.model.clear_objective()  # type: ignore[no-untyped-call]
        if goal is not None:
            self.model.maximize(goal)
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.max_time_in_seconds = SECONDS
        status = solver.solve(self.model)
        if status == cp_model.INFEASIBLE:
            return None
        if status != cp_model.OPTIMAL:
            raise TimeoutError(f"the model was not decided ({solver.status_name(status)})")
        found = {key: solver.value(x) for key, x in self.x.items()}
        found = {key: value for key, value in found.items() if value}
        for row in self.rows:
            total = sum(often * found.get(key, 0) for key, often in row.times.items())
            assert row.low <= total and (row.high is None or total <= row.high), "the model's own answer does not fit"
        self.met.append(found)
        return found

    def holds(self, histogram: Mapping[Key, int]) -> bool:
        """Does a histogram of the places that are named fit, perhaps with others elsewhere?"""
        elsewhere = [place for place in self.places if place.endswith("*")]
        named = set(self.places) - set(elsewhere)
        if any(key[0] not in named for key in histogram):
            return False
        left = []
        for row in self.rows:
            here = sum(often * histogram.get(key, 0) for key, often in row.times.items() if key[0] in named)
            times = {key: often for key, often in row.times.items() if key[0] not in named}
            high = None if row.high is None else row.high - here
            if high is not None and high < 0:
                return False
            left.append(Row(times, max(row.low - here, 0), high))
        return Program(self.scenario, elsewhere, left).fits

    def least(self, keys: Collection[Key]) -> int:
        """The least that these variables hold together."""
        chosen = [self.x[key] for key in keys if key in self.x]
        known = min((sum(found.get(key, 0) for key in keys) for found in self.met), default=1)
        if not chosen or known == 0:
            return 0
        found = self._solve(-sum(chosen))
        assert found is not None
        return sum(found.get(key, 0) for key in keys)

    def most(self, keys: Collection[Key]) -> int | None:
        """The most that they hold; None where there is no limit."""
        if any(key in self.free for key in keys):
            return None
        chosen = [self.x[key] for key in keys if key in self.x]
        if not chosen:
            return 0
        found = self._solve(sum(chosen))
        assert found is not None
        return sum(found.get(key, 0) for key in keys)

    def farthest(self, start: Mapping[Key, int], cells: Sequence[Hashable], places: Collection[str]) -> int | None:
        """The L1 distance from a start to the farthest that fits, in cells of these places; None without limit."""
        if any((place, kind) in self.free for place in places for kind in range(len(cells))):
            return None
        begin = gathered(start, cells, places)
        shared = []
        for (place, cell), count in begin.items():
            inside = [self.x[place, kind] for kind, of in enumerate(cells) if of == cell and (place, kind) in self.x]
            both = self.model.new_int_var(0, count, "")
            self.model.add_min_equality(both, [sum(inside), count])
            shared.append(both)
        moved = sum(x for (place, _), x in self.x.items() if place in places)
        found = self._solve(moved - 2 * sum(shared) if shared or self.x else None)
        assert found is not None
        end = gathered(found, cells, places)
        return sum(abs(end.get(cell, 0) - begin.get(cell, 0)) for cell in {*begin, *end})

    def certain(self, cells: Sequence[Hashable], places: Collection[str]) -> int:
        """How many records are in every histogram that fits: over all cells, the least that it holds, added up."""
        assert self.fits
        some = gathered(self.met[0], cells, places)
        return sum(self.least([(place, kind) for kind, of in enumerate(cells) if of == cell]) for place, cell in some)


def gathered(
    histogram: Mapping[Key, int], cells: Sequence[Hashable], places: Collection[str]
) -> dict[tuple[str, Hashable], int]:
    """A histogram in the cells that are compared."""
    found: dict[tuple[str, Hashable], int] = {}
    for (place, kind), count in histogram.items():
        if place in places and count:
            found[place, cells[kind]] = found.get((place, cells[kind]), 0) + count
    return found


def descriptions(scenario: Read, kind: int, least: int) -> Iterable[Sets]:
    """Everything that can be said of a kind by at least so many columns."""
    names = list(scenario.attributes)
    for count in range(least, len(names) + 1):
        for some in combinations(range(len(names)), count):
            yield {names[at]: frozenset([scenario.kinds[kind][at]]) for at in some}
