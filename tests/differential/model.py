"""What fits a release? Equations 7 and 8 of paper 000 as printed, in CP-SAT, from the files alone.

Nothing here knows Glasshouse. A record is of one of the possible *kinds* (a level of every attribute, structural zeros
left out), x[place, kind] says how many there are, every published number is a row over x. Alone, a place has its own
numbers as equalities and those of its area as limits from above (equation 8); jointly, all are equalities. Two
histograms are compared in the cells of convention 23: every level, or the groups of the bins, and what tables of places
tell apart, used or not.

Which places exist may not be in a release (convention 61). `open_` programs have a place besides those that are named,
with all the zeros that an absent place has (6): whoever is there makes up the area's numbers, compared with nobody.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from ortools.sat.python import cp_model

from tests.differential.scenario import Line, Read

Key = tuple[str, int]  # a place and a kind
Ends = tuple[int, int | None]  # least and most; None is no limit
SECONDS = 30.0


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
        inner = [line for line in self.scenario.lines if self.scenario.level_of[line.table] == self.scenario.place]
        outer = self.variables.get(around, []) if around and finest else []
        tables = self.scenario.tables if whole else self.tables(self.scenario.place, around)
        return self.scenario.cells(self.scenario.looked_at(tables), [*inner, *outer])

    # Rows of programs

    def row(self, level: str, code: str, line: Line, places: Iterable[str], *, cap: bool = False) -> Row:
        low, high = self.told(level, code, line)
        times = {(place, kind): often for place in places for kind, often in enumerate(line.times) if often}
        return Row(times, 0 if cap else low, high)

    def alone(self, place: str, around: str | None) -> Program:
        """A place by itself; the numbers of its area are limits from above."""
        mine = self.scenario.place
        rows = [self.row(mine, place, line, [place]) for line in self.variables[mine]]
        if around:
            area = self.code(place, around)
            rows += [self.row(around, area, line, [place], cap=True) for line in self.variables[around]]
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
                rows += [self.row(level, place, line, [place]) for line in self.variables.get(level, [])]
        for (level, code), inside in members.items():
            rows += [self.row(level, code, line, inside) for line in self.variables[level]]
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

    def ends(self, times: Mapping[Key, int]) -> Ends:
        """The least and the most of a number that counts these variables so often each."""
        terms = [often * self.x[key] for key, often in times.items() if key in self.x]
        ends: list[int | None] = []
        for sign in (-1, 1):
            if sign > 0 and any(key in self.free for key in times):
                ends.append(None)
                continue
            counts = [sum(often * found.get(key, 0) for key, often in times.items()) for found in self.met]
            if terms and not (sign < 0 and min(counts, default=1) == 0):
                found = self._solve(sign * sum(terms))
                assert found is not None
                counts = [sum(often * found.get(key, 0) for key, often in times.items())]
            ends.append((min if sign < 0 else max)(counts, default=0) if terms else 0)
        return ends[0] or 0, ends[1]

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
