"""Does `bounds` say what is so? Every row beside the least and the most in the model, by each way of the engine.

All levels of a unit are believed at once; a level larger than a unit, and every place of a unit in which nothing fits
all, has its own numbers alone. What is called `exact` or `two-engines` must be equal at both ends, what is undecided
must hold, and conflicts must be those that are. Reasons must suffice, and each must be needed if that is said.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

import glasshouse as gh
from glasshouse.program.numbers.system import System
from tests.differential.case import Case, Findings, run
from tests.differential.model import Ends, Key, Program
from tests.differential.scenario import Line

PROVED = ("exact", "two-engines")
CHECKED = 150  # numbers of a case that are compared; all of small cases, otherwise some


class Way(NamedTuple):
    """How the engine is made to go: is a walk tried (None: where it is worth it), and is every unit large?"""

    walks: bool | None = None
    large: bool = False
    numbers: str = "all"
    why: int = 0  # numbers of a unit that are explained
    rungs: tuple[tuple[str, int], ...] = ()  # what is tried for each end, and how long


WAYS = {
    "bounds": Way(why=2),
    "bounds (hidden)": Way(numbers="hidden", why=2),
    "bounds (walk)": Way(walks=True),
    "bounds (no walk)": Way(walks=False),
    "bounds (relaxations)": Way(walks=False, rungs=(("STEPS", 1), ("ROUNDS", 0))),
    "bounds (branches)": Way(walks=False, rungs=(("STEPS", 1), ("ROUNDS", 0), ("FACES", 0))),
    "bounds (dives)": Way(walks=False, rungs=(("STEPS", 1), ("RELAXED", -1))),
    "bounds (large)": Way(walks=True, large=True),
    "bounds (large, no walk)": Way(walks=False, large=True),
}
Number = tuple[str, str, str]  # level, code, variable
EXPLAINED = 2  # numbers of a unit


@contextmanager
def made_to_go(way: Way) -> Iterator[None]:
    """Make the engine go one of its ways."""
    with ExitStack() as stack:
        if way.walks is not None:
            loose = property(lambda system: np.full(len(system.programs), way.walks))
            stack.enter_context(patch.object(System, "loose", loose))
        for rung, value in way.rungs:
            stack.enter_context(patch(f"glasshouse.program.numbers.ends.{rung}", value))
        if way.large:
            stack.enter_context(patch("glasshouse.attack.bounds.AS_ONE", -1))
        yield


def compare_bounds(case: Case, found: Findings, ways: Collection[str] = tuple(WAYS)) -> None:
    """By each way; a count that no table has is asked for besides the lines of the tables."""
    said, asked = _asked(case)
    readings = [_Reading(case, asked, whole=known) for known in case.release.places_known]
    for name in ways:
        way = WAYS[name]
        options = case.options(numbers=way.numbers, count=[said], why=way.why, workers=1)
        with made_to_go(way):
            told = run(found, name, gh.bounds, case.tables, **options)
        if told is None:
            continue
        if told.refused:
            found.blame(f"{name}: refused", str(dict(told.refused)))
        blamed = [list(_judged(reading, told, name, found)) for reading in readings]
        if all(blamed):
            found.wrong += blamed[0]


def _asked(case: Case) -> tuple[str, Line]:
    """A count that is asked for, as it is typed and as a line."""
    rng, scenario = random.Random(case.told.get("case", case.seed)), case.scenario
    names = rng.sample(list(scenario.attributes), rng.randint(1, len(scenario.attributes)))
    sets, words = {}, []
    for name in names:
        labels = scenario.attributes[name]
        first, last = sorted(rng.choices(range(len(labels)), k=2))
        between = rng.random() < 0.5
        sets[name] = frozenset(range(first, last + 1) if between else {first, last})
        words.append(f"{name}={labels[first]}{'..' if between else '|'}{labels[last]}")
    said = ";".join(words)
    inside = scenario.matching(sets)
    times = tuple(int(kind in inside) for kind in range(len(scenario.kinds)))
    return said, Line("asked", said, times, (sets,), False)


class _Reading:
    """What the model makes of a case, if the places named are all there are, or if they need not be."""

    def __init__(self, case: Case, asked: Line, *, whole: bool) -> None:
        self.case, self.release, self.scenario, self.whole = case, case.release, case.scenario, whole
        self.lines = {**self.scenario.by_variable, asked.variable: asked}
        lengths = self.scenario.lengths
        self.inside = [at for at in self.release.variables if lengths[at] >= lengths[self.scenario.unit]]
        self._known: dict[object, Ends] = {}
        self._programs: dict[object, Program] = {}
        self._truths: dict[object, dict[Key, int] | None] = {}

    # What is believed

    @cached_property
    def units(self) -> list[str]:
        codes = {code for level in self.inside for code in self._codes(level)}
        return sorted({self.release.code(code, self.scenario.unit) for code in codes})

    def _codes(self, level: str) -> list[str]:
        codes = self.release.named if level == self.scenario.place else self.release.codes[level]
        return sorted(codes)

    @cached_property
    def numbers(self) -> set[Number]:
        """Every number that has a row: lines of tables of a level that can count somebody, and what was asked for."""
        found = set()
        for level, told in self.release.variables.items():
            tables = {line.table for line in told}
            lines = [line for line in self.lines.values() if line.table in tables or line.table == "asked"]
            found |= {(level, code, line.variable) for code in self._codes(level) for line in lines if any(line.times)}
        return found

    def published(self, number: Number) -> Ends | None:
        """A number as it was printed; None where it was not."""
        level, code, variable = number
        printed = any(line.variable == variable for line in self.release.variables[level])
        return self.release.told(level, code, self.lines[variable]) if printed else None

    def hidden(self, number: Number) -> bool:
        """Was it printed, but not exactly; or was it asked for?"""
        ends = self.published(number)
        return self.lines[number[2]].table == "asked" or (ends is not None and ends[0] != ends[1])

    def joint(self, unit: str) -> Program:
        """All numbers of a unit."""
        key = ("joint", unit)
        if key not in self._programs:
            self._programs[key] = self.release.together(self.inside, unit, open_=not self.whole)
        return self._programs[key]

    def own(self, level: str, code: str) -> Program:
        """The numbers of one place or area, whatever there is elsewhere."""
        key = ("own", level, code)
        if key not in self._programs:
            rows = [self.release.row(level, code, line, [code]) for line in self.release.variables[level]]
            self._programs[key] = Program(self.scenario, [code], rows)
        return self._programs[key]

    def alone(self, level: str, code: str) -> bool:
        """Is a number bounded by the numbers of its own place or area?"""
        return level not in self.inside or not self.joint(self.release.code(code, self.scenario.unit)).fits

    def program(self, level: str, code: str) -> Program:
        return self.own(level, code) if self.alone(level, code) else self.joint(code[: self._unit])

    @property
    def _unit(self) -> int:
        return self.scenario.lengths[self.scenario.unit]

    def times(self, program: Program, number: Number) -> dict[Key, int]:
        """Who is counted by a number; those in places that are not named, too."""
        level, code, variable = number
        inside = [place for place in program.places if _lies_in(place, code, level == self.scenario.place)]
        often = self.lines[variable].times
        return {(place, kind): count for place in inside for kind, count in enumerate(often) if count}

    def ends(self, number: Number) -> Ends:
        """The least and the most of a number that is believed with all others."""
        program = self.program(*number[:2])
        times = self.times(program, number)
        key = id(program), frozenset(times.items())
        if key not in self._known:
            self._known[key] = program.ends(times)
        return self._known[key]

    def truth(self, program: Program, code: str) -> dict[Key, int] | None:
        """The true records of a program with the places that are named; None where they do not fit it."""
        key = id(program)
        if key not in self._truths:
            own = program.places == [code]
            mine: dict[Key, int] = {}
            for (place, kind), count in self.case.truth.items():
                if place.startswith(code if own else code[: self._unit]):
                    where = code if own else place
                    mine[where, kind] = mine.get((where, kind), 0) + count
            self._truths[key] = mine if program.holds(mine) else None
        return self._truths[key]

    @cached_property
    def contradictory(self) -> set[tuple[str, str]]:
        """Places and areas whose own numbers nothing fits, of units that contradict; and larger areas."""
        every = [(level, code) for level in self.release.variables for code in self._codes(level)]
        return {one for one in every if self.alone(*one) and not self.own(*one).fits}

    def believing(self, unit: str, some: Iterable[Number]) -> Program:
        """A unit in which only some numbers are believed."""
        places = self.joint(unit).places
        rows = []
        for level, code, variable in some:
            inside = [place for place in places if _lies_in(place, code, level == self.scenario.place)]
            where = self.where(level, code)
            if where != code:
                inside = [place for place in places if place == where]  # none, if all places are named
            rows.append(self.release.row(level, where, self.lines[variable], inside))
        return Program(self.scenario, places, rows)

    def where(self, level: str, code: str) -> str:
        """The code of a place or area; that of an area among smaller ones stands for what is not named in it."""
        return f"{code}*" if len(code) < self.scenario.lengths[level] else code


def _lies_in(place: str, code: str, is_place: bool) -> bool:
    return place == code if is_place else place.startswith(code)


def _judged(reading: _Reading, told: Any, name: str, found: Findings) -> Iterator[tuple[str, str]]:
    way = WAYS[name]
    rows = {(row["level"], row["geoid"], row["variable"]): row for row in told.bounds.iter_rows(named=True)}
    conflicts = set(told.conflicts.select("level", "geoid").iter_rows())
    yield from _conflicts(reading, conflicts, large=way.large, name=name)
    numbers = reading.numbers if way.numbers == "all" else {one for one in reading.numbers if reading.hidden(one)}
    expected = {number for number in numbers if number[:2] not in conflicts}
    for number in sorted(expected ^ set(rows)):
        yield f"{name}: {'no row' if number in expected else 'a row too many'}", str(number)
    both = sorted(expected & set(rows))
    if len(both) > CHECKED:
        both = sorted(random.Random(reading.case.seed).sample(both, CHECKED))
    for number in both:
        if way.large and number[0] in reading.inside and reading.alone(*number[:2]):
            continue  # whoever does not see that nothing fits may say anything of it
        if not reading.program(*number[:2]).fits:
            continue  # blamed already
        row, ends = rows[number], reading.ends(number)
        found.counts[f"{name}: numbers"] += 1
        found.counts[f"{name}: numbers proved"] += row["proof"] in PROVED
        text = (
            f"{number}: {row['low']}..{row['high']} met {row['met_low']}..{row['met_high']} {row['proof']} "
            f"{row['scope']}, the model {ends[0]}..{ends[1]}"
        )
        yield from ((f"{name}: {kind}", text) for kind in _row(reading, number, row, ends))
    if way.why:
        yield from _reasons(reading, told, rows, found)


def _conflicts(
    reading: _Reading, conflicts: set[tuple[str, str]], *, large: bool, name: str
) -> Iterator[tuple[str, str]]:
    by_unit: dict[str, set[tuple[str, str]]] = {unit: set() for unit in reading.units}
    larger = {one for one in conflicts if one[0] not in reading.inside}
    for one in conflicts - larger:
        by_unit.setdefault(reading.release.code(one[1], reading.scenario.unit), set()).add(one)
    wrong = {one for one in reading.contradictory if one[0] not in reading.inside}
    if larger != wrong:
        yield f"{name}: conflicts of larger areas", f"{sorted(larger)}, the model {sorted(wrong)}"
    for unit, mine in by_unit.items():
        wrong = {one for one in reading.contradictory if one[0] in reading.inside and one[1].startswith(unit)}
        fits = reading.joint(unit).fits
        if fits and mine:
            yield f"{name}: a conflict in what fits", f"{unit}: {sorted(mine)}"
        elif wrong and mine != wrong and not (large and mine > wrong):
            yield f"{name}: other conflicts", f"{unit}: {sorted(mine)}, the model {sorted(wrong)}"
        elif not fits and not mine and not large:
            yield f"{name}: no conflict", f"{unit}; changed: {reading.case.told['changed']}"


def _row(reading: _Reading, number: Number, row: Mapping[str, Any], ends: Ends) -> Iterator[str]:
    """What is wrong with a row."""
    level, code = number[:2]
    least, most = ends
    high = float("inf") if row["high"] is None else row["high"]
    top = float("inf") if most is None else most
    if row["proof"] in PROVED:
        if (row["low"], row["high"]) != (least, most):
            yield "not " + row["proof"]
        if row["met_low"] is None or (row["met_low"], row["met_high"]) != (row["low"], row["high"]):
            yield f"{row['proof']} and not met"
    elif row["proof"] != "undecided":
        yield "unknown proof"
    if row["low"] > least or high < top:
        yield "does not hold"
    if row["met_low"] is not None and not least <= row["met_low"] <= top:
        yield "met below the least"
    if row["met_high"] is not None and not least <= row["met_high"] <= top:
        yield "met above the most"
    published = reading.published(number)
    if (row["lower"], row["upper"]) != (published or (None, None)):
        yield f"published {published}"
    verdict = "exact" if row["low"] == high else "narrow" if high - row["low"] <= 1 else "wide"
    if row["verdict"] != verdict:
        yield f"{row['verdict']} instead of {verdict}"
    if row["present"] != (not row["lower"] and row["low"] > 0):
        yield "present"
    program = reading.program(level, code)
    if row["alike"] and (row["low"] < 1 or not any(
        program.most([key for key in around if key not in reading.times(program, number)]) == 0
        for around in _groups(reading, program, number)
    )):  # fmt: skip
        yield "not alike"
    true = reading.truth(program, code)
    elsewhere = level != reading.scenario.place and any("*" in place for place in program.places)
    if true is not None and not elsewhere:  # others may make up an area
        here = sum(true.get(key, 0) * often for key, often in reading.times(program, number).items())
        if not row["low"] <= here <= high:
            yield "the truth is outside"


def _groups(reading: _Reading, program: Program, number: Number) -> Iterator[dict[Key, int]]:
    """The groups of its table that a number may be a part of."""
    mine = reading.lines[number[2]]
    for line in reading.lines.values():
        part = line.table == mine.table and line.parts and not line.answers and line != mine
        if part and all(few <= many for few, many in zip(mine.times, line.times, strict=True)):
            yield reading.times(program, (*number[:2], line.variable))


def _reasons(
    reading: _Reading, told: Any, rows: Mapping[Number, Mapping[str, Any]], found: Findings
) -> Iterator[tuple[str, str]]:
    """Do the reasons suffice, and is each needed?"""
    targets: dict[Number, list[Mapping[str, Any]]] = {}
    for row in told.reasons.iter_rows(named=True):
        targets.setdefault((row["level"], row["geoid"], row["variable"]), []).append(row)
    for target, reasons in targets.items():
        if target not in rows:
            yield "why: no such number", str(target)
            continue
        numbers = [(row["reason_level"], row["reason_geoid"], row["reason_variable"]) for row in reasons]
        text = f"{target} {rows[target]['low']}..{rows[target]['high']} by {numbers}"
        own = all(number[:2] == target[:2] for number in numbers)
        if not own and reading.alone(*target[:2]):
            yield "why: numbers of other places, though they contradict", text
            continue
        bounds = rows[target]["low"], rows[target]["high"]

        def ends(some: Sequence[Number], target: Number = target, own: bool = own) -> Ends:
            if own:
                kept = [reading.release.row(*one[:2], reading.lines[one[2]], [target[1]]) for one in some]
                program = Program(reading.scenario, [target[1]], kept)
            else:
                program = reading.believing(target[1][: reading._unit], some)
            return program.ends(reading.times(program, target))

        found.counts["why: numbers"] += 1
        found.counts["why: reasons"] += len(numbers)
        for row, number in zip(reasons, numbers, strict=True):
            where = reading.where(*number[:2])
            if (row["lower"], row["upper"]) != reading.release.told(number[0], where, reading.lines[number[2]]):
                yield "why: a reason is not what was published", f"{text}: {number} {row['lower']}..{row['upper']}"
        shown = ends(numbers)
        if shown[0] < bounds[0] or (bounds[1] is not None and (shown[1] is None or shown[1] > bounds[1])):
            yield "why: the reasons do not suffice", f"{text}: the model {shown}"
        if reasons[0]["minimal"]:
            for at, number in enumerate(numbers):
                fewer = ends([*numbers[:at], *numbers[at + 1 :]])
                if fewer[0] >= bounds[0] and (bounds[1] is None or (fewer[1] is not None and fewer[1] <= bounds[1])):
                    yield "why: a reason that is not needed", f"{text}: without {number} the model {fewer}"
        else:
            found.counts["why: not minimal"] += 1
    for unit, given in _given_away(reading, rows).items():
        missing = min(EXPLAINED, len(given)) - sum(target in targets for target in given)
        for target in given if missing > 0 else ():
            if target not in targets and missing > 0 and _needs_none(reading, unit, target, rows[target]):
                found.counts["why: no number is needed"] += 1
                missing -= 1
        if missing > 0:
            yield "why: no reasons", f"unit {unit}: of {given}"


def _needs_none(reading: _Reading, unit: str, target: Number, row: Mapping[str, Any]) -> bool:
    """Does a number keep to its bounds whatever was published?"""
    own = not unit or reading.alone(*target[:2])
    program = Program(reading.scenario, [target[1]] if own else reading.joint(unit).places, [])
    return program.fits and program.ends(reading.times(program, target)) == (row["low"], row["high"])


def _given_away(reading: _Reading, rows: Mapping[Number, Mapping[str, Any]]) -> dict[str, list[Number]]:
    """The numbers of each unit of which some are explained: those that are given away and not printed so."""
    given: dict[str, dict[str, list[Number]]] = {}
    for number, row in rows.items():
        hidden = row["table"] == "asked" or (row["lower"] is not None and row["lower"] != row["upper"])
        printed = row["upper"] is not None and row["upper"] - row["lower"] <= 1
        if hidden and (row["verdict"] == "exact" or (row["verdict"] == "narrow" and not printed)):
            unit = number[1][: reading._unit] if number[0] in reading.inside else ""
            given.setdefault(unit, {"exact": [], "narrow": []})[row["verdict"]].append(number)
    return {
        unit: some["exact"] if len(some["exact"]) >= EXPLAINED else [*some["exact"], *some["narrow"]]
        for unit, some in given.items()
    }
