"""Why does nothing fit? A smallest set of published numbers that cannot all be true.

Smallest means: leave out any one of them and something fits. The numbers are halved again and again, each half kept
only as far as it is needed (QuickXplain), so that a few numbers among hundreds are found in a few dozen questions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from glasshouse.program.tables.histogram import Area, Compiled, Problem, places_within
from glasshouse.program.tables.rows import Rows


@dataclass(frozen=True)
class Number:
    """A published number: of a place (layer 0), or of an area around the places (1), or around those (2 and so on)."""

    layer: int
    row: int  # which of the places, or areas, of the layer
    variable: str
    lower: int
    upper: int


@dataclass(frozen=True)
class Conflict:
    """Numbers that cannot all be true. `minimal`: without any one of them something fits."""

    numbers: tuple[Number, ...]
    proof: Proof
    minimal: bool


def conflict(
    compiled: Compiled,
    counts: Counts,
    area: Area | None = None,
    ladder: Ladder = CLIMB,
    *,
    beyond: Sequence[tuple[Rows, Area]] = (),
) -> Conflict | None:
    """A smallest contradiction among the numbers of one place, or of the places of an area together.

    Without `area`, `counts` has one place. `beyond` are numbers of larger areas around, with their rows, as `gathered`
    takes them; the last is one area. None when something fits, or when that could not be decided.
    """
    if area is None and len(counts.places) != 1:
        raise InputError(f"a conflict is of one place, or of the places of an area; found {len(counts.places)} places")
    numbers = _Numbers(compiled, counts, area, beyond)
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

    def __init__(
        self, compiled: Compiled, counts: Counts, area: Area | None, beyond: Sequence[tuple[Rows, Area]]
    ) -> None:
        self.compiled, self.counts = compiled, counts
        self.areas = [] if area is None or compiled.around is None else [(compiled.around, area), *beyond]
        columns = [counts.column[variable] for variable in compiled.own.variables]
        self.limits = [(counts.lower[:, columns], counts.upper[:, columns])]
        self.limits += [(area.lower, area.upper) for _, area in self.areas]
        self.names = [compiled.own.variables, *(rows.variables for rows, _ in self.areas)]
        self.ends = np.cumsum([lower.size for lower, _ in self.limits])

    def __len__(self) -> int:
        return int(self.ends[-1])

    def fit(self, chosen: Array, ladder: Ladder) -> tuple[Outcome, Proof]:
        believed = np.zeros(len(self), np.bool_)
        believed[chosen] = True
        each = np.split(believed, self.ends[:-1])
        own, *around = (_only(*limits, mask) for limits, mask in zip(self.limits, each, strict=True))
        counts = Counts(self.counts.level, self.counts.places, self.names[0], *own)
        areas = [(rows, Area(*limits, area.of)) for (rows, area), limits in zip(self.areas, around, strict=True)]
        return fits_something(places_within(self.compiled, counts, areas), ladder)

    def named(self, chosen: Array) -> tuple[Number, ...]:
        return tuple(self._name(int(at)) for at in chosen)

    def _name(self, at: int) -> Number:
        layer = int(np.searchsorted(self.ends, at, side="right"))
        lower, upper = self.limits[layer]
        row, column = divmod(at - int(self.ends[layer]) + lower.size, len(self.names[layer]))
        return Number(layer, row, self.names[layer][column], int(lower[row, column]), int(upper[row, column]))


def fits_something(problem: Problem, ladder: Ladder) -> tuple[Outcome, Proof]:
    """Does anything fit the first program? With the proof if nothing does."""
    seeds = np.zeros(len(problem.programs), np.uint64)
    drawn = some(problem.split(propagate=ladder.propagate), seeds, ladder)
    return drawn.outcome[0], drawn.proof[0]


def _only(lower: Count, upper: Count, believed: NDArray[np.bool_]) -> tuple[Count, Count]:
    """The numbers that are believed; of the others nothing is known."""
    mask = believed.reshape(lower.shape)
    return np.where(mask, lower, 0), np.where(mask, upper, UNLIMITED)
