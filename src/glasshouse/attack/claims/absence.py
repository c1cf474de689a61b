"""What can be ruled out? Descriptions that no record fits, and counts that a description cannot have.

Absence passes to finer descriptions, so only the coarsest are listed. No record fits a description exactly when no cell
that can be filled matches it; and asking again and again for a data set that fills cells not filled yet finds them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from glasshouse.attack.claims.verify import Claimable, Place, Verified
from glasshouse.model.records import UNLIMITED
from glasshouse.model.release import counted
from glasshouse.program.answers import minimum
from glasshouse.program.bounds import linear
from glasshouse.program.integer import Outcome, Proof
from glasshouse.program.ladder import CLIMB, Ladder
from glasshouse.program.ranges import ranges_of
from glasshouse.program.reduce import Programs, Split, split
from glasshouse.program.settled import Verdict

Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Fillable:
    """The variables of a place that hold a record in some data set that fits, and those of which that is open."""

    yes: Flags
    open: Flags
    proof: Proof  # that no other can be filled


def fillable(place: Place, ladder: Ladder = CLIMB) -> Fillable:
    """Which variables can hold a record: those not met yet are asked for, all together, until they hold none."""
    alone = _alone(place, ladder)
    met = (place.x > 0) | (alone.lower > 0) | (alone.upper >= UNLIMITED)  # what nothing limits can be filled
    left = ~met & (alone.upper > 0)
    while (left & ~met).any():
        answers = minimum(alone, linear(-(left & ~met).astype(np.int64)), ladder, start=place.x)
        found = answers.fits[0] & (answers.x > 0) & left & ~met
        if found.any():
            met |= found
        elif answers.floor[0] == 0:
            proof = Proof.EXACT if answers.proof[0] == Proof.UNDECIDED else answers.proof[0]
            return Fillable(met, np.zeros(len(met), np.bool_), proof)
        else:
            return Fillable(met, left & ~met, Proof.UNDECIDED)
    return Fillable(met, np.zeros(len(met), np.bool_), Proof.EXACT)


@dataclass(frozen=True)
class Absence:
    """The coarsest descriptions of at most so many columns that no record fits (not counting records apart)."""

    values: NDArray[np.int16]
    printed: Flags  # a published zero says so already
    proof: Proof


class Patterns:
    """Which combinations of values the schema allows, by set of columns; worked out once for all places."""

    def __init__(self, claimable: Claimable, most: int) -> None:
        self.vocabulary, self.most = claimable.vocabulary, most
        self.sizes = [len(claimable.wording.groups[name]) for name in claimable.wording.columns]
        cells = claimable.compiled.cells
        self.rows = self.expanded(cells.codes[~claimable.apart].astype(np.int64)[:, list(self.vocabulary.at)])
        self.claimable = claimable
        self.reached: dict[bytes, Ints] = {}

    def reach(self, values: NDArray[np.int16]) -> Ints:
        """For each column the values, as bits, that possible records of a description have; remembered."""
        if values.tobytes() not in self.reached:
            rows = self.rows[((self.rows == values) | (values < 0)).all(axis=1)]
            ones = np.ones(1, self.bits)
            self.reached[values.tobytes()] = np.bitwise_or.reduce(ones << rows.astype(self.bits), axis=0, initial=0)
        return self.reached[values.tobytes()]

    @property
    def bits(self) -> type[np.int64] | type[object]:
        """What holds a bit for each value of a column: whole numbers of any size where there are many."""
        return np.int64 if max(self.sizes, default=0) < 63 else object

    def expanded(self, classes: Ints) -> Ints:
        """The values of cells, a row for each combination that a cell covers."""
        rows = classes.copy()
        for column, covers in enumerate(self.vocabulary.covers):
            times = covers.sum(axis=1)[rows[:, column]]
            value = [np.flatnonzero(covers[kind]) for kind in rows[:, column]]
            repeated = np.repeat(np.arange(len(rows)), times)
            rows = rows[repeated]
            rows[:, column] = np.concatenate([*value, np.empty(0, np.int64)]) if len(value) else rows[:, column]
        return rows

    @cached_property
    def possible(self) -> dict[tuple[int, ...], Ints]:
        """By set of columns, the keys of what the schema allows."""
        return {chosen: self.keys(self.rows, chosen) for chosen in self.chosen}

    @cached_property
    def chosen(self) -> list[tuple[int, ...]]:
        columns = range(len(self.sizes))
        return [some for k in range(1, self.most + 1) for some in combinations(columns, k)]

    def keys(self, rows: Ints, chosen: tuple[int, ...]) -> Ints:
        """The combinations of values of some columns, each as one number."""
        key = np.zeros(len(rows), np.int64)
        for column in chosen:
            key = key * self.sizes[column] + rows[:, column]
        return np.unique(key)

    def spelled(self, key: Ints, chosen: tuple[int, ...]) -> NDArray[np.int16]:
        """The values of such numbers, -1 for columns not named."""
        values = np.full((len(key), len(self.sizes)), -1, np.int16)
        for column in reversed(chosen):
            values[:, column] = key % self.sizes[column]
            key = key // self.sizes[column]
        return values


def absent(patterns: Patterns, place: Place, zeros: Ints, ladder: Ladder = CLIMB) -> Absence:
    """The coarsest descriptions that no record fits; `zeros` are the masks of published zeros (see `zero_masks`)."""
    known = fillable(place, ladder)
    filled = (known.yes | known.open) & ~place.apart  # what is open is not ruled out
    cells = filled if place.live.of is None else filled[place.live.of[place.live.order]]
    rows = patterns.expanded(place.live.classes[cells])
    found = []
    there: dict[tuple[int, ...], Ints] = {}
    for chosen in patterns.chosen:
        there[chosen] = patterns.keys(rows, chosen)
        missing = patterns.spelled(np.setdiff1d(patterns.possible[chosen], there[chosen]), chosen)
        for column in chosen:  # every coarser description must be there
            coarser = tuple(other for other in chosen if other != column)
            if coarser and len(missing):
                key = np.zeros(len(missing), np.int64)
                for other in coarser:
                    key = key * patterns.sizes[other] + missing[:, other]
                missing = missing[np.isin(key, there[coarser])]
        found.append(missing)
    values = np.concatenate(found) if found else np.empty((0, len(patterns.sizes)), np.int16)
    return Absence(values, _printed(patterns, values, zeros), known.proof)


def zero_masks(patterns: Patterns, zero: Flags, variables: tuple[str, ...]) -> Ints:
    """The published zeros of a place: a row for each line, for each column the values it counts, as bits."""
    claimable = patterns.claimable
    names = {variable for variable, none in zip(variables, zero, strict=True) if none}
    zeros = [
        some.by_attribute
        for table in claimable.tables
        for line in table.lines
        if line.variable in names and (line.predicate is not None or line.answers)
        for some in counted(table, line)  # none of all that it counts is there
        if set(some.by_attribute) <= set(claimable.wording.columns)
    ]
    rows = [
        [_mask(claimable.wording.groups[name], sets.get(name)) for name in claimable.wording.columns] for sets in zeros
    ]
    return np.array(rows, patterns.bits).reshape(len(rows), len(patterns.sizes))


def _mask(groups: Sequence[frozenset[int]], allowed: frozenset[int] | None) -> int:
    """The values of a column, as bits, whose levels are all allowed."""
    return sum(1 << value for value, levels in enumerate(groups) if allowed is None or levels <= allowed)


def _printed(patterns: Patterns, values: NDArray[np.int16], zeros: Ints) -> Flags:
    """The descriptions all of whose possible records lie inside a line whose published number is 0."""
    mine = np.array([patterns.reach(row) for row in values], patterns.bits).reshape(len(values), len(patterns.sizes))
    found = np.zeros(len(values), np.bool_)
    for line in zeros:
        found |= ((mine & ~line) == 0).all(axis=1)
    return found


@dataclass(frozen=True)
class Ruled:
    """A kind of description whose count cannot be m, though it is not known."""

    kind: int
    low: int
    high: int
    proof: Proof


def cannot(verified: Verified, m: int, ladder: Ladder = CLIMB) -> Iterator[Ruled]:
    """The kinds that somebody must fit, of which it is not certain how many, but exactly m cannot be (footnote 9).

    With m = 0 that is: at least one there must be. All such descriptions are among the candidates, whichever data set
    these are from.
    """
    place, asked = verified.place, verified.claims
    kinds = np.flatnonzero(asked.settled.verdict != Verdict.SETTLED)
    if not len(kinds):
        return
    inside, meeting = asked.candidates.inside[kinds], asked.candidates.meeting[kinds]
    found = ranges_of(place.problem, inside, meeting, place.number, ladder, place.x)
    for at, kind in enumerate(kinds):
        low, high, proof = int(found.low[at]), int(found.high[at]), found.proof[at]
        if low < 1:
            continue
        if m < low or m > high:  # bounds hold whatever is undecided
            yield Ruled(int(kind), low, high, Proof.EXACT if proof == Proof.UNDECIDED else proof)
        elif found.met_low[at] < m < found.met_high[at] and (inside[at] == meeting[at]).all():
            sure = _never(place, inside[at], m, ladder)
            if sure is not None:
                yield Ruled(int(kind), low, high, sure)


def _never(place: Place, chosen: Flags, m: int, ladder: Ladder) -> Proof | None:
    """The proof that these variables never hold m records in all; None when they can, or it was not decided."""
    program = place.problem.programs.only(place.number)
    zero = np.zeros(len(chosen), np.int64)
    longer = program.integer_program(zero).with_row(chosen.astype(np.int64), m, m)
    whole = split(Programs.of(longer), np.zeros(1, np.bool_), propagate=ladder.propagate)
    answers = minimum(whole, linear(zero), ladder)
    ruled_out = answers.outcome[0] == Outcome.INFEASIBLE and answers.proof[0] != Proof.UNDECIDED
    return answers.proof[0] if ruled_out else None


def _alone(place: Place, ladder: Ladder) -> Split:
    program: Programs = place.problem.programs.only(place.number)
    return split(program, np.zeros(1, np.bool_), propagate=ladder.propagate)
