"""What do some of the data sets that fit agree on? The paper's first step (paper 002, 2.3), beside the complete answer.

K different data sets that fit are drawn. A claim that exactly m records match a description is *agreed* when all K bear
it out: the intersection, which the paper then verifies claim by claim. A claim that is certain holds in every data set,
so the intersection of any K holds the complete answer; what it has besides is left over, and is refuted by a data set
that was not drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glasshouse.attack.claims.descriptions import subsets_of
from glasshouse.attack.claims.verify import Place, Verified
from glasshouse.program.answers import some
from glasshouse.program.ladder import CLIMB, Ladder
from glasshouse.program.reduce import Programs, split
from glasshouse.program.settled import Verdict

Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]
AT_ONCE = 100  # data sets that are drawn together
ROUNDS = 3  # times that as many as are wanted are drawn, where the same come again
KINDS = 512  # that are counted together
UNKNOWN = -1  # a count that a data set does not tell: the description cuts through its cells


@dataclass(frozen=True)
class Generated:
    """Claims that more than half of K data sets bear out, the most frequent first; all K: their intersection."""

    wanted: int  # K
    different: int  # data sets there were: fewer than K where no more were found
    values: NDArray[np.int16]  # descriptions, a row each
    m: Ints
    frequency: NDArray[np.float64]  # the share of the data sets in which exactly m records match
    verdict: NDArray[np.int8]  # what the complete answer says of it

    @property
    def agreed(self) -> Flags:
        """The claims that all of the data sets bear out."""
        return np.asarray(self.frequency == 1)

    @property
    def left_over(self) -> Flags:
        """Those of them that another data set refutes."""
        return np.asarray(self.agreed & (self.verdict == Verdict.REFUTED))


def reconstructions(place: Place, wanted: int, rng: np.random.Generator, ladder: Ladder = CLIMB) -> Ints:
    """Different data sets that fit a place, a row each, in the order in which they were drawn: at most so many.

    Draws have no equal chances (convention 18). A place with few data sets has fewer than were asked for.
    """
    program = place.problem.programs.only(place.number)
    copies: dict[int, Programs] = {}
    found: dict[bytes, Ints] = {}
    for _ in range(ROUNDS):
        before, left = len(found), wanted
        while left and len(found) < wanted:
            times = min(AT_ONCE, left)
            left -= times
            if times not in copies:
                copies[times] = Programs.joined([program] * times)
            seeds = rng.integers(0, 2**64, times, dtype=np.uint64)
            whole = split(copies[times], np.zeros(times, np.bool_), propagate=ladder.propagate)
            answers = some(whole, seeds, ladder)
            for x in answers.x.reshape(times, -1)[answers.fits]:
                found.setdefault(x.tobytes(), x)
        if len(found) == before or len(found) >= wanted:
            break
    rows = list(found.values())[:wanted] or [place.x]
    return np.array(rows, np.int64)


def generated(verified: Verified, data_sets: Ints, wanted: Sequence[int]) -> Iterator[Generated]:
    """What the first K of the data sets agree on, for every K wanted, and what the complete answer says of it."""
    place, least = verified.place, verified.least
    columns = place.live.shared.shape[1]
    for k in wanted:
        first = data_sets[:k]
        held = np.flatnonzero(first.any(axis=0) & ~place.apart)
        found = place.live.candidates(held, subsets_of(columns, least), ~place.apart)
        m, often = _majority(found.inside, found.meeting, first)
        chosen = np.flatnonzero((m[found.kind] >= 1) & (2 * often[found.kind] > len(first)))
        values, kind = found.values[chosen], found.kind[chosen]
        named = (values >= 0).sum(axis=1)
        order = np.lexsort((*values.T[::-1], -named, -often[kind]))
        values, kind = values[order], kind[order]
        verdict = _verdicts(verified, values, m[kind])
        yield Generated(k, len(first), values, m[kind], often[kind] / len(first), verdict)


def _majority(inside: Flags, meeting: Flags, data_sets: Ints) -> tuple[Ints, Ints]:
    """For each kind the count that most of the data sets may share, and how many of them have it.

    If more than half of the counts are equal, the middle one of them in order is that count.
    """
    m, often = np.empty(len(inside), np.int64), np.empty(len(inside), np.int64)
    columns, middle = data_sets.T.astype(np.float64), len(data_sets) // 2
    for begin in range(0, len(inside), KINDS):
        some_kinds = slice(begin, begin + KINDS)
        counts = inside[some_kinds] @ columns
        cut = (inside[some_kinds] != meeting[some_kinds]).any(axis=1)
        if cut.any():
            counts[cut] = np.where(counts[cut] == meeting[some_kinds][cut] @ columns, counts[cut], UNKNOWN)
        shared = np.partition(counts, middle, axis=1)[:, middle]
        m[some_kinds] = shared.astype(np.int64)
        often[some_kinds] = (counts == shared[:, None]).sum(axis=1)
    return m, often


def _verdicts(verified: Verified, values: NDArray[np.int16], m: Ints) -> NDArray[np.int8]:
    """What the complete answer says: a description that its one data set does not hold is refuted by that."""
    asked = verified.claims
    at = {row.tobytes(): number for number, row in enumerate(asked.candidates.values)}
    found = np.full(len(values), Verdict.REFUTED, np.int8)
    for row, description in enumerate(values):
        number = at.get(description.tobytes())
        if number is not None:
            kind = asked.candidates.kind[number]
            verdict = asked.settled.verdict[kind]
            same = asked.settled.low[kind] == m[row]
            found[row] = verdict if verdict == Verdict.OPEN or same else Verdict.REFUTED
    return found
