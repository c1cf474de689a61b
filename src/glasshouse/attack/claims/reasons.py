"""Why is a claim certain? Published numbers that imply it, none of which can be left out.

Believe no number at all and ask for a data set that breaks the claim, as close as can be to one that fits. It breaks
published numbers too. Believe a few numbers of which every such data set so far breaks at least one, and ask again,
until nothing breaks the claim any more: what is believed then implies it, and what is not needed is taken out.
Only the numbers believed tell kinds of record apart, so every question is small, however many kinds there are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from glasshouse.attack.claims.verify import Claimable
from glasshouse.model.records import UNLIMITED, Count
from glasshouse.model.release import Line, Table, counted
from glasshouse.model.schema import Predicate
from glasshouse.program.answers import minimum
from glasshouse.program.bounds import Cost
from glasshouse.program.integer import Outcome, Proof
from glasshouse.program.ladder import CLIMB, ORDER, Ladder
from glasshouse.program.reduce import Programs, split
from glasshouse.program.tables.cells import Cells

ROUNDS = 250  # data sets that break a claim, before lines once believed are kept till the end
AT_ONCE = 40  # lines that one number can mark, above the numbers of up to a million kinds
NOTHING_THERE = 1.25  # a zero is a little harder to follow than a count, so counts are preferred
Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Number:
    """A published number that a reason rests on."""

    table: Table
    line: Line
    lower: int
    upper: int


@dataclass(frozen=True)
class Reason:
    """Published numbers that imply a claim. `minimal`: without any one of them it would not be implied."""

    numbers: tuple[Number, ...]
    proof: Proof
    minimal: bool


@dataclass(frozen=True)
class Lines:
    """The published lines that count whole cells: of each, its table, the cells it counts and how often."""

    cells: Cells
    tables: tuple[Table, ...]
    lines: tuple[Line, ...]
    members: tuple[NDArray[np.int32], ...]
    times: tuple[Ints, ...]
    apart: Flags  # cells that claims do not count

    @staticmethod
    def of(claimable: Claimable) -> Lines:
        """Lines that cut through cells are left out, and totals of tallies, which count no records."""
        cells, present = claimable.compiled.cells, frozenset(claimable.variables)
        found = []
        for table in claimable.tables:
            for line in table.lines:
                if line.variable not in present or (line.predicate is None and not line.answers):
                    continue
                some = counted(table, line)
                inside = [cells.inside(predicate) for predicate in some]
                whole = all((one == cells.meeting(p)).all() for one, p in zip(inside, some, strict=True))
                if whole:
                    often = np.asarray(np.sum(inside, axis=0, dtype=np.int64))
                    members = np.flatnonzero(often)
                    found.append((table, line, members.astype(np.int32), often[members]))
        tables, lines, chosen, times = zip(*found, strict=True) if found else ((), (), (), ())
        return Lines(cells, tables, lines, chosen, times, claimable.apart)

    @cached_property
    def by_cell(self) -> sparse.csc_matrix:
        """A row for each line, a column for each cell."""
        sizes = [len(members) for members in self.members]
        rows, columns = np.repeat(np.arange(len(sizes)), sizes), np.concatenate([*self.members, np.empty(0, np.int32)])
        shape = (len(sizes), len(self.cells))
        times = np.concatenate([*self.times, np.empty(0, np.int64)])
        return sparse.csc_matrix((times, (rows, columns)), shape=shape)


@dataclass
class Explainer:
    """Explains claims about one place: its numbers by line, and a data set that fits them."""

    lines: Lines
    lower: Count
    upper: Count
    cell: NDArray[np.integer]  # of each kind of record in the data set that fits
    held: Count  # how many records of it
    ladder: Ladder = CLIMB
    asked: int = 0

    def __post_init__(self) -> None:
        self.fitting = np.zeros(len(self.lines.cells), np.int64)
        np.add.at(self.fitting, self.cell.astype(np.int64), self.held)
        zeros = (self.upper == 0).astype(np.int64)
        self.unlikely = np.asarray(self.lines.by_cell.T @ zeros)  # how many published zeros a record there would break
        self.price = np.where(self.upper == 0, NOTHING_THERE, 1.0)

    def explain(self, description: Predicate, m: int, without: Iterable[str] = ()) -> Reason | None:
        """Numbers that imply that m records match, none to be left out; None when none do, or it was not decided.

        Numbers of the tables named in `without` are not used.
        """
        cells, hidden = self.lines.cells, frozenset(without)
        there = ~self.lines.apart
        claim = _Claim(cells.inside(description) & there, cells.meeting(description) & there, m)
        usable = np.array([table.name not in hidden for table in self.lines.tables], np.bool_)
        broken: list[Flags] = []  # by each data set that breaks the claim, the lines it breaks with it
        believed: list[int] = []
        while True:
            proof, lines = self._implied(claim, believed)
            if proof is not None:
                return self._smallest(claim, believed, broken, proof)
            if lines is None or not (lines & usable).any():
                return None  # undecided; or a data set that fits all the numbers, so the claim is not certain
            broken.append(lines & usable)
            believed = self._hitting(broken) if len(broken) < ROUNDS else sorted([*believed, self._first(broken[-1])])

    def _first(self, lines: Flags) -> int:
        """Of broken lines, the one that counts the most kinds of record."""
        at = np.flatnonzero(lines)
        return int(at[np.argmax([len(self.lines.members[line]) for line in at])])

    def _hitting(self, broken: list[Flags]) -> list[int]:
        """Few lines of which every data set breaks at least one: again and again the one that most break."""
        left = np.array(broken, np.bool_).reshape(len(broken), len(self.price))
        chosen = []
        while len(left):
            best = int(np.argmax(left.sum(axis=0) / self.price))
            chosen.append(best)
            left = left[~left[:, best]]
        return sorted(chosen)

    def _smallest(self, claim: _Claim, believed: list[int], broken: list[Flags], proof: Proof) -> Reason:
        minimal = True
        for line in sorted(believed, key=lambda at: (-self.price[at], len(self.lines.members[at]))):
            rest = [other for other in believed if other != line]
            if any(not lines[rest].any() for lines in broken):
                continue  # a data set is known that only this line rules out
            how, lines = self._implied(claim, rest)
            if how is not None:
                believed, proof = rest, how
            elif lines is None:
                minimal = False
            else:
                broken.append(lines)
        order = sorted(believed, key=lambda at: (self.upper[at] == 0, at))  # what is there before what is not
        return Reason(tuple(self._number(at) for at in order), proof, minimal)

    def _number(self, at: int) -> Number:
        return Number(self.lines.tables[at], self.lines.lines[at], int(self.lower[at]), int(self.upper[at]))

    def _implied(self, claim: _Claim, believed: list[int]) -> tuple[Proof | None, Flags | None]:
        """How it is proved that these numbers imply the claim; or the lines broken by a data set that breaks it."""
        proofs = []
        label = claim.inside.astype(np.int64) + claim.meeting
        for begin in range(0, len(believed), AT_ONCE):
            for place, at in enumerate(believed[begin : begin + AT_ONCE]):
                label[self.lines.members[at]] |= np.int64(1) << (place + 20)
            label = np.searchsorted(np.unique(label), label)  # few kinds: quicker than sorting all cells
        for at in believed:  # a line that counts some cells more often than others tells those apart
            often = self.lines.times[at]
            if (often > 1).any():
                label = label * (often.max() + 1)
                label[self.lines.members[at]] += often
                label = np.searchsorted(np.unique(label), label)
        for side in (-1, 1):
            outcome, proof, broken = self._break(claim, side, believed, label)
            if outcome != Outcome.INFEASIBLE or proof == Proof.UNDECIDED:
                return None, broken
            proofs.append(proof)
        return max(proofs, key=ORDER.index), None

    def _break(self, claim: _Claim, side: int, believed: list[int], label: Ints) -> tuple[Outcome, Proof, Flags | None]:
        """A data set with fewer than m (side -1), or more, that match, and in which the numbers believed are right."""
        if side < 0 and claim.m == 0:
            return Outcome.INFEASIBLE, Proof.EXACT, None  # there are not fewer than none
        count = int(label.max()) + 1
        held = np.bincount(label, weights=self.fitting, minlength=count).astype(np.int64)
        asked = claim.inside if side < 0 else claim.meeting
        pairs = [np.unique(label[self.lines.members[at]], return_index=True) for at in believed]
        entries = [*(kinds for kinds, _ in pairs), np.unique(label[asked])]
        often = [self.lines.times[at][first] for at, (_, first) in zip(believed, pairs, strict=True)]
        index, times = np.concatenate(entries), np.concatenate([*often, np.ones(len(entries[-1]), np.int64)])
        starts = np.concatenate([[0], np.cumsum([len(some) for some in entries])]).astype(np.int64)
        ends = (0, claim.m - 1) if side < 0 else (claim.m + 1, UNLIMITED)
        most = np.full(count, int(self.held.sum()) + claim.m + 1, np.int64)  # to break it, more are never needed
        for kinds, at in zip(entries, believed, strict=False):
            most[kinds] = np.minimum(most[kinds], self.upper[at])
        programs = Programs(
            np.array([0, count]), np.zeros(count, np.int64), most, np.array([0, len(entries)]),
            np.append(self.lower[believed], ends[0]).astype(np.int64),
            np.append(np.minimum(self.upper[believed], UNLIMITED), ends[1]).astype(np.int64), starts,
            index.astype(np.int32), times,
        )  # fmt: skip
        self.asked += 1
        whole = split(programs, np.zeros(1, np.bool_), propagate=self.ladder.propagate)
        ones = np.ones(count, np.int64)
        answers = minimum(whole, Cost(-ones, ones, held), self.ladder)  # the distance, but for a constant
        broken = self._broken(answers.x, held, label) if answers.fits[0] else None
        return answers.outcome[0], answers.proof[0], broken

    def _broken(self, x: Count, held: Count, label: Ints) -> Flags:
        """The lines broken by a data set: records stay where they are, if they can; others go where least is broken."""
        used = np.flatnonzero(self.fitting)
        placed = self.fitting[used].copy()
        for kind in np.flatnonzero(x < held):
            less = int(held[kind] - x[kind])
            for at in np.flatnonzero(label[used] == kind):
                taken = min(less, int(placed[at]))
                placed[at] -= taken
                less -= taken
        more = np.flatnonzero(x > held)
        best = []
        for kind in more:
            inside = np.flatnonzero(label == kind)
            best.append(int(inside[np.argmin(self.unlikely[inside])]))
        cells, counts = np.concatenate([used, np.array(best, np.int64)]), np.concatenate([placed, (x - held)[more]])
        sums = np.asarray(self.lines.by_cell[:, cells] @ counts)
        return np.asarray((sums < self.lower) | (sums > self.upper))


@dataclass(frozen=True)
class _Claim:
    inside: Flags
    meeting: Flags
    m: int
