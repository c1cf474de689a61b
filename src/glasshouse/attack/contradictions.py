"""Can all numbers of a unit be true? By adding up, and where that sees nothing: does any histogram at all fit them?

Numbers can satisfy every identity and still be impossible: because several families contradict each other together,
or because only fractions of people would fit. The core decides that for every place alone, and for every area jointly
with all that lies in it, and names a smallest set of numbers that cannot all be true.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glasshouse.attack.fitting import Ground, worth_a_walk
from glasshouse.attack.nesting import Frame, Frames, Nest, frames, nest, with_rests
from glasshouse.errors import InputError
from glasshouse.model.geography import Geography, plural
from glasshouse.model.identities import TOLD, Cell, Checker, Finding, sum_up
from glasshouse.model.release import Counts, Release, Table
from glasshouse.model.schema import Schema
from glasshouse.program.answers import some
from glasshouse.program.conflict import Number, conflict
from glasshouse.program.integer import Limit, Outcome, Proof
from glasshouse.program.ladder import CLIMB, Ladder
from glasshouse.program.propagate import Array
from glasshouse.program.reduce import split
from glasshouse.program.tables.histogram import Problem
from glasshouse.scenarios.load import Scenario

Stack = tuple[Counts, list[Counts]]  # the numbers of a level, and for the same places the sums of finer levels
MOST, MOST_FINE = 300_000, 5_000  # variables of a program worth trying, and of one in finer cells; else undecided
BRIEF = Ladder(limit=Limit(effort=2.0))  # a second question about the same numbers gets less time
FITS, UNSURE, NOTHING = 1, 0, -1  # some histogram fits; not decided; it is proved that none does


@dataclass(frozen=True)
class Doubt:
    """A place (alone, or an area with all that lies in it) whose numbers fit nothing, or could not be decided."""

    level: str
    geoid: str
    proved: tuple[Frame, Nest] | None = None  # the numbers that nothing fits, and their cells; None: not decided


class Decider:
    """Asks the core about every place; what depends on the published tables alone is compiled once."""

    def __init__(self, schema: Schema, tables: Sequence[Table], geography: Geography, *, whole: bool = True) -> None:
        self.schema, self.tables, self.geography = schema, tables, geography
        self.whole = whole  # are all places there? Otherwise every area has a rest (convention 61)
        self.frames: dict[tuple[tuple[str, ...], ...], Frames] = {}
        self.grounds: dict[frozenset[str], Ground | None] = {}

    def decide(self, release: Release) -> list[Doubt]:
        """The doubtful places of a unit, at every level that lies within units: alone, and with all inside them."""
        levels = [counts for counts in self._levels(release.levels) if self.geography.within_unit(counts.level)]
        if not all(counts.exact for counts in levels) and self.walked(levels):
            return []  # records were found that fit everything
        doubts = [doubt for counts in levels for doubt in self._doubts(Nest(counts))]
        for number in range(2, len(levels) + 1):
            doubts += self._together(levels[:number])
        return doubts

    def walked(self, levels: Sequence[Counts]) -> bool:
        """Were records found, by a walk, that fit all numbers of a unit (finest level first)?"""
        if not worth_a_walk(levels):
            return False
        some = levels if self.whole or len(levels) < 2 else with_rests(levels, self.geography)
        places, *areas = some
        layers = [
            (counts, np.array([counts.row[self.geography.code(place, counts.level)] for place in places.places]))
            for counts in areas
        ]
        names = frozenset(name for counts in some for name in counts.variables)
        if names not in self.grounds:
            try:
                self.grounds[names] = Ground.of_tables(self.schema, self.tables, names)
            except InputError:  # more cells than can be written down
                self.grounds[names] = None
        ground = self.grounds[names]
        return ground is not None and ground.fitting(places, layers, 1) is not None

    def decide_coarsest(self, numbers: Mapping[str, Counts]) -> list[Doubt]:
        """The doubtful areas of the coarsest of these levels: alone, and with all inside them."""
        levels = self._levels(numbers)
        return [*self._doubts(Nest(levels[-1])), *self._together(levels)]

    def _levels(self, numbers: Mapping[str, Counts]) -> list[Counts]:
        """Finest first."""
        return [numbers[level] for level in reversed(self.geography.levels) if level in numbers]

    def _together(self, levels: Sequence[Counts]) -> Iterator[Doubt]:
        numbers = nest(levels, self.geography, whole=self.whole) if len(levels) > 1 else None
        if numbers is not None:
            yield from self._doubts(numbers)

    def _doubts(self, numbers: Nest) -> Iterator[Doubt]:
        """Asked in the cells of places first; if numbers of areas cut across those, then in finer ones."""
        top, ways = numbers.levels[-1], self._frames(numbers)
        problem = ways.places.problem(numbers)
        verdict, x = _verdicts(problem)
        yield from _proved(ways.places, numbers, verdict)
        if not ways.say_all:
            left = np.flatnonzero(verdict != NOTHING)
            verdict[left] = finer = _finer(ways, numbers, problem, verdict, x)[left]
            if ways.finest is not None:
                yield from _proved(ways.finest, numbers.only(left), finer)
        yield from (Doubt(top.level, top.places[row]) for row in np.flatnonzero(verdict == UNSURE))

    def _frames(self, numbers: Nest) -> Frames:
        key = tuple(counts.variables for counts in numbers.levels)
        if key not in self.frames:
            self.frames[key] = frames(self.schema, self.tables, numbers)
        return self.frames[key]


def _verdicts(problem: Problem, ladder: Ladder = CLIMB) -> tuple[NDArray[np.int8], Array]:
    """Of each program: does any histogram fit, or is it proved that none does? And what fits, where something does."""
    large = np.diff(problem.programs.first) > MOST
    answers = some(split(problem.programs, problem.bad | large), np.zeros(len(large), np.uint64), ladder)
    nothing = np.array([outcome == Outcome.INFEASIBLE for outcome in answers.outcome], np.bool_)
    nothing &= np.array([proof != Proof.UNDECIDED for proof in answers.proof], np.bool_) & (problem.bad | ~large)
    return np.where(nothing, NOTHING, np.where(answers.fits & ~large, FITS, UNSURE)).astype(np.int8), answers.x


def _finer(ways: Frames, numbers: Nest, problem: Problem, verdict: NDArray[np.int8], x: Array) -> NDArray[np.int8]:
    """What the finest cells say of each area, given what fits in the cells of places.

    Often what fits there can be divided further as it stands. Only where it cannot, everything is asked anew.
    """
    if ways.finest is None:
        return np.where(verdict == NOTHING, NOTHING, UNSURE).astype(np.int8)
    if ways.dealt and numbers.layers[0].counts.exact:
        ((rows, area),) = ways.finest.areas(numbers)
        return np.where(rows.limits(area.lower, area.upper).bad, NOTHING, verdict).astype(np.int8)
    divided, _ = _verdicts(
        ways.divided(numbers, problem, np.where((verdict == FITS)[problem.programs.program_of], x, 0))
    )
    found = np.where((verdict == FITS) & (divided == FITS), FITS, UNSURE).astype(np.int8)
    left = np.flatnonzero((verdict != NOTHING) & (found != FITS) & (ways.sizes(problem) <= MOST_FINE))
    if len(left):
        found[left], _ = _verdicts(ways.finest.problem(numbers.only(left)), BRIEF)
    return found


def _proved(frame: Frame, numbers: Nest, verdict: NDArray[np.int8]) -> Iterator[Doubt]:
    top = numbers.levels[-1]
    for row in np.flatnonzero(verdict == NOTHING):
        yield Doubt(top.level, top.places[row], (frame, numbers.only(np.array([row]))))


class UnitCheck:
    """Tells what is wrong with the numbers of single units: by adding up, else what only the core can tell."""

    def __init__(self, scenario: Scenario) -> None:
        self.geography = scenario.geography
        self.checker = Checker(scenario.schema, scenario.tables)
        self.decider = Decider(scenario.schema, scenario.tables, scenario.geography)

    def findings(self, release: Release) -> list[Finding]:
        found = [finding for stack in stacks(release, self.geography) for finding in self.checker.check(*stack)]
        if not found:
            told = (explain(doubt) for doubt in self.decider.decide(release))
            found = [finding for finding in told if finding is not None]
        return found


def stacks(release: Release, geography: Geography) -> Iterator[Stack]:
    """Every level of a release with the sums of its finer levels, finest first."""
    finer: list[Counts] = []
    for level in reversed(geography.levels):
        if level in release.levels:
            counts = release.levels[level]
            yield counts, coarsest_of_each([sum_up(other, counts.places, geography, level) for other in finer])
            finer.append(counts)


def coarsest_of_each(finer: list[Counts]) -> list[Counts]:
    """Of several finer levels (finest first), each variable at the coarsest that has it: the rest is tied to that."""
    met: set[str] = set()
    kept = []
    for counts in reversed(finer):
        columns = [at for at, variable in enumerate(counts.variables) if variable not in met]
        met.update(counts.variables)
        if columns:
            names = tuple(counts.variables[at] for at in columns)
            kept.append(Counts(counts.level, counts.places, names, counts.lower[:, columns], counts.upper[:, columns]))
    return kept


def explain(doubt: Doubt) -> Finding | None:
    """A smallest set of numbers that cannot all be true, as a finding; None when that cannot be proved."""
    if doubt.proved is None:
        return None
    frame, numbers = doubt.proved
    areas = frame.areas(numbers)
    found = conflict(frame.compiled, numbers.counts, areas[0][1] if areas else None, beyond=areas[1:])
    if found is None:
        return None
    cells = tuple(_cell(number, numbers) for number in found.numbers)
    ordered = sorted(cells, key=lambda cell: cell.upper == 0)  # zeros last
    told = [f"{cell.variable} = {cell.spelled}" for cell in ordered[:TOLD]]
    if len(cells) > TOLD:
        told.append(f"and {len(cells) - TOLD} more")
    least = "" if found.minimal else " (perhaps fewer of them already)"
    within = " and ".join(plural(counts.level) for counts in reversed(numbers.levels[:-1]))
    inside = f" with its {within}" if within else ""
    statement = f"these {len(cells)} numbers cannot all be true{least}, though all add up{inside}: {', '.join(told)}"
    return Finding(doubt.level, doubt.geoid, statement, f"no histogram fits; proof: {found.proof}", cells, (), 1)


def _cell(number: Number, numbers: Nest) -> Cell:
    """A number by its name; one that is not of the largest area also by its place."""
    counts = numbers.levels[number.layer]
    outermost = number.layer == len(numbers.layers)
    place = counts.places[number.row]
    rest = any(place in layer.counts.row for layer in numbers.layers[number.layer :])
    where = f"{plural(counts.level)} of {place} that have no number" if rest else place
    name = number.variable if outermost else f"{number.variable} of {where}"
    return Cell(counts.level, name, number.lower, number.upper)
