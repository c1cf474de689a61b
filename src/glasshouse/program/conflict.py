"""Why does nothing fit? A smallest set of published numbers that cannot all be true.

Smallest means: leave out any one of them and something fits. The numbers are halved again and again, each half kept
only as far as it is needed (QuickXplain), so that a few numbers among hundreds are found in a few dozen questions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glasshouse.errors import InputError
from glasshouse.model.records import UNLIMITED, Count
from glasshouse.model.release import Counts
from glasshouse.program.answers import some
from glasshouse.program.integer import Outcome, Proof
from glasshouse.program.ladder import CLIMB, Ladder
from glasshouse.program.propagate import Array
from glasshouse.program.tables.histogram import Area, Compiled, Problem, places_alone, places_jointly


@dataclass(frozen=True)
class Number:
    """A published number: of a place, or (place None) of the area around the places."""

    place: str | None
    variable: str
    lower: int
    upper: int


@dataclass(frozen=True)
class Conflict:
    """Numbers that cannot all be true. `minimal`: without any one of them something fits."""

    numbers: tuple[Number, ...]
    proof: Proof
    minimal: bool


def conflict(compiled: Compiled, counts: Counts, area: Area | None = None, ladder: Ladder = CLIMB) -> Conflict | None:
    """A smallest contradiction among the numbers of one place, or of the places of an area together.

    Without `area`, `counts` has one place. None when something fits, or when that could not be decided.
    """
    if area is None and len(counts.places) != 1:
        raise InputError(f"a conflict is of one place, or of the places of an area; found {len(counts.places)} places")
    numbers = _Numbers(compiled, counts, area)
    everything = np.arange(len(numbers))
    outcome, proof = numbers.fit(everything, ladder)
    if outcome != Outcome.INFEASIBLE or proof == Proof.UNDECIDED:
        return None
    unsure = False

    def contradict(chosen: Array) -> bool:
        nonlocal unsure
        answer, how = numbers.fit(chosen, ladder)
        unsure |= answer == Outcome.STOPPED or (answer == Outcome.INFEASIBLE and how == Proof.UNDECIDED)
        return answer == Outcome.INFEASIBLE and how != Proof.UNDECIDED

    chosen = np.sort(smallest(contradict, everything[:0], everything, fresh=False))
    _, proof = numbers.fit(chosen, ladder)
    return Conflict(numbers.named(chosen), proof, not unsure)


Test = Callable[[Array], bool]


def smallest(contradict: Test, given: NDArray[np.int64], open_: NDArray[np.int64], *, fresh: bool) -> NDArray[np.int64]:
    """The numbers of `open_` needed for a contradiction with `given`; `fresh` says that `given` has just grown."""
    if fresh and contradict(given):
        return open_[:0]
    if len(open_) <= 1:
        return open_
    half = len(open_) // 2
    first, second = open_[:half], open_[half:]
    late = smallest(contradict, np.concatenate([given, first]), second, fresh=True)
    early = smallest(contradict, np.concatenate([given, late]), first, fresh=len(late) > 0)
    return np.concatenate([early, late])


class _Numbers:
    """The published numbers in a row, and what fits when only some of them are believed."""

    def __init__(self, compiled: Compiled, counts: Counts, area: Area | None) -> None:
        self.compiled, self.area = compiled, area
        columns = [counts.column[variable] for variable in compiled.own.variables]
        self.counts = Counts(
            counts.level, counts.places, compiled.own.variables, counts.lower[:, columns], counts.upper[:, columns]
        )
        self.own = self.counts.lower.size

    def __len__(self) -> int:
        return self.own + (0 if self.area is None else self.area.lower.size)

    def fit(self, chosen: Array, ladder: Ladder) -> tuple[Outcome, Proof]:
        believed = np.zeros(len(self), np.bool_)
        believed[chosen] = True
        lower, upper = _only(self.counts.lower, self.counts.upper, believed[: self.own])
        counts = Counts(self.counts.level, self.counts.places, self.counts.variables, lower, upper)
        problem: Problem
        if self.area is None:
            problem = places_alone(self.compiled, counts)
        else:
            limits = _only(self.area.lower, self.area.upper, believed[self.own :])
            problem = places_jointly(self.compiled, counts, Area(*limits, self.area.of))
        return fits_something(problem, ladder)

    def named(self, chosen: Array) -> tuple[Number, ...]:
        return tuple(self._name(int(at)) for at in chosen)

    def _name(self, at: int) -> Number:
        around = self.compiled.around
        if self.area is None or around is None or at < self.own:
            row, column = divmod(at, len(self.counts.variables))
            low, high = self.counts.lower[row, column], self.counts.upper[row, column]
            return Number(self.counts.places[row], self.counts.variables[column], int(low), int(high))
        row, column = divmod(at - self.own, len(around.variables))
        low, high = self.area.lower[row, column], self.area.upper[row, column]
        return Number(None, around.variables[column], int(low), int(high))


def fits_something(problem: Problem, ladder: Ladder) -> tuple[Outcome, Proof]:
    """Does anything fit the first program? With the proof if nothing does."""
    seeds = np.zeros(len(problem.programs), np.uint64)
    drawn = some(problem.split(propagate=ladder.propagate), seeds, ladder)
    return drawn.outcome[0], drawn.proof[0]


def _only(lower: Count, upper: Count, believed: NDArray[np.bool_]) -> tuple[Count, Count]:
    """The numbers that are believed; of the others nothing is known."""
    mask = believed.reshape(lower.shape)
    return np.where(mask, lower, 0), np.where(mask, upper, UNLIMITED)
