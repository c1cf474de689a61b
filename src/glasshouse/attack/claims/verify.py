"""What must be true of records that cannot be rebuilt? Every claim that holds in all data sets that fit (paper 002).

A claim R(a, m) says that exactly m records match the description a. It is verified when the least and the most of
COUNT(a) over all data sets that fit are both m: complete, where sampling data sets and claims is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from glasshouse.attack.claims.descriptions import Candidates, Live, Vocabulary, subsets_of
from glasshouse.attack.claims.hiding import tightened
from glasshouse.attack.published import refuse_unfit
from glasshouse.errors import InputError
from glasshouse.model.records import Count
from glasshouse.model.release import Counts, Table, attributes_counted
from glasshouse.model.schema import Schema
from glasshouse.model.wording import Wording
from glasshouse.program.ladder import CLIMB, Ladder
from glasshouse.program.questions import one
from glasshouse.program.ranges import ranges_of
from glasshouse.program.settled import Settled, Verdict, settled
from glasshouse.program.tables.alike import put_together
from glasshouse.program.tables.histogram import Compiled, Problem, places_alone
from glasshouse.program.tables.kept import compiled_tables

Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Claimable:
    """The tables of places, compiled, and what claims about their records may say."""

    schema: Schema
    tables: tuple[Table, ...]
    variables: tuple[str, ...]
    wording: Wording

    @cached_property
    def compiled(self) -> Compiled:
        """The cells are the coarsest that the tables and structural zeros tell apart: nothing finer can be certain.

        Claims may name levels that tables do not tell apart, if zeros do: so every level of a cell must be possible.
        """
        apart = [] if self.wording.apart is None else [self.wording.apart]
        zeros = [zero.predicate for zero in self.schema.impossible]
        return compiled_tables(self.schema, self.tables, self.variables, told_apart=[*apart, *zeros])

    @cached_property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary(self.wording, self.compiled.cells)

    @cached_property
    def looked_at(self) -> Flags:
        """The columns that some table looks at; zeros alone may tell something of others."""
        told = frozenset().union(*(attributes_counted(table) for table in self.tables))
        return np.array([name in told for name in self.wording.columns], np.bool_)

    @cached_property
    def apart(self) -> Flags:
        """Cells of which claims are reported apart."""
        if self.wording.apart is None:
            return np.zeros(len(self.compiled.cells), np.bool_)
        return self.compiled.cells.inside(self.wording.apart)


@dataclass(frozen=True)
class Represented:
    """How many records the verified claims of k columns are about: between two bounds in every data set that fits."""

    k: int
    singletons: bool
    kinds: Ints  # the verified kinds with descriptions of k columns
    low: int
    high: int


@dataclass(frozen=True)
class Place:
    """One place while it is asked about: its program, a data set that fits, and its live cells as claims see them."""

    problem: Problem
    number: int
    x: Count
    live: Live
    apart: Flags  # of each variable
    looked_at: Flags  # of each column: does a table look at it?


@dataclass(frozen=True)
class Asked:
    """Descriptions, and what is known of each of their kinds."""

    candidates: Candidates
    settled: Settled

    @property
    def certain(self) -> Flags:
        """The descriptions that are verified, one by one."""
        return np.asarray(self.settled.verdict == Verdict.SETTLED)[self.candidates.kind]

    @property
    def undecided(self) -> Flags:
        """The descriptions of which that is not known."""
        return np.asarray(self.settled.verdict == Verdict.OPEN)[self.candidates.kind]


@dataclass(frozen=True)
class Verified:
    """What is certain of one place, and of the records in it that are reported apart (by all columns at once)."""

    place: Place
    claims: Asked
    apart: Asked
    records: tuple[int, int]  # the least and most of them, without those apart, as far as they are proved
    records_apart: tuple[int, int]
    unique: bool | None  # is the place known as a whole, in the columns that tables look at? None: undecided
    clock: bool
    least: int  # columns of the claims

    def represented(self, ladder: Ladder = CLIMB) -> Iterator[Represented]:
        """How many records the claims of every k are about, those that single out one record first."""
        candidates, low = self.claims.candidates, self.claims.settled.low
        columns, certain = candidates.columns, self.claims.certain
        asked: list[tuple[int, bool, Ints]] = []
        for k in range(self.least, candidates.values.shape[1] + 1):
            kinds = np.unique(candidates.kind[(columns == k) & certain])
            asked.append((k, True, kinds[low[kinds] == 1]))
            asked.append((k, False, kinds))
        unions = np.array([candidates.meeting[kinds].any(axis=0) for _, _, kinds in asked], np.bool_)
        distinct, of = np.unique(unions, axis=0, return_inverse=True)
        found = ranges_of(self.place.problem, distinct, distinct, self.place.number, ladder, self.place.x)
        for (k, single, kinds), at in zip(asked, of.reshape(-1), strict=True):
            yield Represented(k, single, kinds, int(found.low[at]), min(int(found.high[at]), self.records[1]))


def places_of(
    claimable: Claimable, counts: Counts, rng: np.random.Generator, ladder: Ladder = CLIMB
) -> Iterator[Place]:
    """The places of a unit one by one, each with a data set that fits its numbers."""
    counts = tightened(counts, claimable.tables)
    problem = places_alone(claimable.compiled, counts)
    cells = problem.cell
    of = None
    if not counts.exact:  # many cells may be limited by the same numbers
        alike = put_together(problem, claimable.apart[problem.cell].astype(np.int64))
        problem, of = alike.problem, alike.of
    apart = claimable.apart[problem.cell]
    answers = one(problem, rng, ladder)
    refuse_unfit(answers)
    for number in range(len(problem.programs)):
        first, last = int(problem.programs.first[number]), int(problem.programs.first[number + 1])
        if of is None:
            mine = slice(first, last)
            live = Live(claimable.vocabulary, cells[mine])
        else:
            inside = (of >= first) & (of < last)
            live = Live(claimable.vocabulary, cells[inside], of[inside] - first)
        yield Place(problem, number, answers.x[first:last], live, apart[first:last], claimable.looked_at)


def verify(place: Place, least: int, ladder: Ladder = CLIMB) -> Verified:
    """Every claim about a place with at least so many columns that holds in all data sets that fit.

    Records that are reported apart are not counted by claims, whatever the description.
    """
    columns = place.live.shared.shape[1]
    if not 1 <= least <= columns:
        raise InputError(f"--columns {least}: a claim here can name 1 to {columns} columns")
    held = np.flatnonzero(place.x)
    told = np.array([place.looked_at @ (np.int64(1) << np.arange(columns))])
    totals = np.array([~place.apart, place.apart])
    asked = [
        place.live.candidates(held[among[held]], subsets, among)
        for among, every in zip(totals, (subsets_of(columns, least), subsets_of(columns, columns)), strict=True)
        for subsets in (every, told)
    ]
    inside = np.concatenate([totals, *(some.inside for some in asked)])
    meeting = np.concatenate([totals, *(some.meeting for some in asked)])
    found = settled(place.problem, place.x, inside, meeting, place.number, ladder)
    ends = np.cumsum([len(totals), *(len(some.inside) for some in asked)])
    main, whole, apart, whole_apart = (
        Asked(some, found.some(slice(first, last)))
        for some, first, last in zip(asked, ends[:-1], ends[1:], strict=True)
    )
    number = found.some(slice(len(totals)))
    unique = _unique(place, (whole, whole_apart), number.verdict)
    records, records_apart = _range(place, totals, number, ladder)
    return Verified(place, main, apart, records, records_apart, unique, found.clock, least)


def _range(place: Place, totals: Flags, number: Settled, ladder: Ladder) -> list[tuple[int, int]]:
    """The least and the most records of each total: where they differ, more is asked than that they do."""
    sure = bool((number.verdict == Verdict.SETTLED).all())
    found = number if sure else ranges_of(place.problem, totals, totals, place.number, ladder, place.x)
    return list(zip(found.low.tolist(), found.high.tolist(), strict=True))


def _unique(place: Place, asked: tuple[Asked, ...], totals: NDArray[np.int8]) -> bool | None:
    """Is every record known in every column that tables look at, and their number fixed? Then one data set fits."""
    if not place.looked_at.any():  # a number of records, and nothing about any of them
        return False
    known, refuted = 0, bool((totals == Verdict.REFUTED).any())
    for one_of in asked:
        kind = one_of.candidates.kind
        verdict = one_of.settled.verdict[kind]
        known += int(one_of.settled.low[kind][verdict == Verdict.SETTLED].sum())
        refuted |= bool((verdict == Verdict.REFUTED).any())
    if (totals == Verdict.SETTLED).all() and known == int(place.x.sum()):
        return True
    held = place.live.shared[np.flatnonzero(place.x)][:, place.looked_at]
    cut = bool((held < 0).any())  # a record could have several values there
    return False if refuted or cut else None
