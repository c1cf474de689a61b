"""Can all numbers of a unit be true? By adding up, and where that sees nothing: does any histogram at all fit them?

Numbers can satisfy every identity and still be impossible: because several families contradict each other together,
or because only fractions of people would fit. The core decides that for every place alone, and for the places of an
area jointly with the area's own numbers, and names a smallest set of numbers that cannot all be true.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glasshouse.attack.published import untold
from glasshouse.model.geography import Geography, plural
from glasshouse.model.identities import TOLD, Cell, Checker, Finding, sum_up
from glasshouse.model.release import Counts, Release, Table
from glasshouse.model.schema import Schema
from glasshouse.program.answers import some
from glasshouse.program.conflict import conflict
from glasshouse.program.integer import Outcome, Proof
from glasshouse.program.ladder import CLIMB
from glasshouse.program.tables.histogram import Area, Compiled, Problem, compile_tables, places_alone, places_jointly
from glasshouse.scenarios.load import Scenario

Stack = tuple[Counts, list[Counts]]  # the numbers of a level, and for the same places the sums of finer levels


@dataclass(frozen=True)
class Doubt:
    """A place (alone, or an area with the places inside it) whose numbers fit nothing, or could not be decided."""

    level: str
    geoid: str
    decided: bool
    compiled: Compiled
    counts: Counts
    area: Area | None = None


class Decider:
    """Asks the core about every place; what depends on the published tables alone is compiled once."""

    def __init__(self, schema: Schema, tables: Sequence[Table], geography: Geography) -> None:
        self.schema, self.tables, self.geography = schema, tables, geography
        self.compiled: dict[tuple[tuple[str, ...], tuple[str, ...]], Compiled] = {}

    def decide(self, release: Release) -> list[Doubt]:
        """The doubtful places of a unit, at every level that lies within units."""
        levels = [level for level in reversed(self.geography.levels) if level in release.levels]
        inner = [level for level in levels if self.geography.within_unit(level)]
        doubts = [doubt for level in inner for doubt in self._alone(release.levels[level])]
        if self.geography.place in inner:
            for level in inner:
                if level != self.geography.place:
                    doubts += self._jointly(release.levels[self.geography.place], release.levels[level])
        return doubts

    def _alone(self, counts: Counts) -> Iterator[Doubt]:
        compiled = self._compile(counts.variables, ())
        for row, decided in _doubtful(places_alone(compiled, counts)):
            yield Doubt(counts.level, counts.places[row], decided, compiled, _rows(counts, np.array([row])))

    def _jointly(self, counts: Counts, outer: Counts) -> Iterator[Doubt]:
        compiled = self._compile(counts.variables, outer.variables)
        if compiled.around is None:
            return
        of = np.array([outer.row.get(self.geography.code(p, outer.level), -1) for p in counts.places], np.int64)
        order = np.argsort(of, kind="stable")
        order = order[of[order] >= 0]
        columns = [outer.column[variable] for variable in compiled.around.variables]
        inner = _rows(counts, order)
        area = Area(outer.lower[:, columns], outer.upper[:, columns], of[order])
        for row, decided in _doubtful(places_jointly(compiled, inner, area)):
            mine = np.flatnonzero(area.of == row)
            alone = Area(area.lower[[row]], area.upper[[row]], np.zeros(len(mine), np.int64))
            yield Doubt(outer.level, outer.places[row], decided, compiled, _rows(inner, mine), alone)

    def _compile(self, variables: tuple[str, ...], outer: tuple[str, ...]) -> Compiled:
        if (variables, outer) not in self.compiled:
            inside, around = self._tables(variables), self._tables(outer)
            schema = self.schema.looking_away(untold(self.schema, [*inside, *around]))
            self.compiled[variables, outer] = compile_tables(
                schema, inside, variables, around=around, around_present=outer
            )
        return self.compiled[variables, outer]

    def _tables(self, variables: tuple[str, ...]) -> list[Table]:
        present = frozenset(variables)
        return [table for table in self.tables if any(line.variable in present for line in table.lines)]


class UnitCheck:
    """Tells what is wrong with the numbers of single units: by adding up, else what only the core can tell."""

    def __init__(self, scenario: Scenario) -> None:
        self.geography = scenario.geography
        self.checker = Checker(scenario.schema, scenario.tables)
        self.decider = Decider(scenario.schema, scenario.tables, scenario.geography)

    def findings(self, release: Release) -> list[Finding]:
        found = [finding for stack in stacks(release, self.geography) for finding in self.checker.check(*stack)]
        if not found:
            told = (explain(doubt, self.geography.place) for doubt in self.decider.decide(release) if doubt.decided)
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


def explain(doubt: Doubt, place_level: str) -> Finding | None:
    """A smallest set of numbers that cannot all be true, as a finding; None when that cannot be proved."""
    found = conflict(doubt.compiled, doubt.counts, doubt.area)
    if found is None:
        return None
    cells = tuple(
        Cell(doubt.level if n.place is None or doubt.area is None else place_level, _named(n.place, n.variable, doubt),
             n.lower, n.upper)
        for n in found.numbers
    )  # fmt: skip
    ordered = sorted(cells, key=lambda cell: cell.upper == 0)  # zeros last
    told = [f"{cell.variable} = {cell.spelled}" for cell in ordered[:TOLD]]
    if len(cells) > TOLD:
        told.append(f"and {len(cells) - TOLD} more")
    least = "" if found.minimal else " (perhaps fewer of them already)"
    inside = "" if doubt.area is None else f" with its {plural(place_level)}"
    statement = f"these {len(cells)} numbers cannot all be true{least}, though all add up{inside}: {', '.join(told)}"
    return Finding(doubt.level, doubt.geoid, statement, f"no histogram fits; proof: {found.proof}", cells, (), 1)


def _named(place: str | None, variable: str, doubt: Doubt) -> str:
    return variable if place is None or doubt.area is None else f"{variable} of {place}"


def _doubtful(problem: Problem) -> Iterator[tuple[int, bool]]:
    """The programs for which no histogram was found, and whether it is proved that there is none."""
    answers = some(problem.split(), np.zeros(len(problem.programs), np.uint64), CLIMB)
    for number in np.flatnonzero(~answers.fits):
        sure = answers.outcome[number] == Outcome.INFEASIBLE and answers.proof[number] != Proof.UNDECIDED
        yield int(number), sure


def _rows(counts: Counts, rows: NDArray[np.int64]) -> Counts:
    lower = np.ascontiguousarray(counts.lower[rows])
    upper = lower if counts.exact else np.ascontiguousarray(counts.upper[rows])
    return Counts(counts.level, tuple(counts.places[row] for row in rows), counts.variables, lower, upper)
