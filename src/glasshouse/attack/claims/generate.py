"""What do some of the data sets that fit agree on? The paper's first step (paper 002, 2.3), beside the complete answer.

K different data sets that fit are drawn. A claim that exactly m records match a description is *agreed* when all K bear
it out: the intersection, which the paper then verifies claim by claim. All claims of the intersection are claims of the
first data set, so only those are counted. A claim that is certain holds in every data set, so the intersection of any K
holds the complete answer; what it has besides is left over, and is refuted by a data set that was not drawn.
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
from glasshouse.program.reduce import Programs, Split, split
from glasshouse.program.settled import Verdict

Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]
AT_ONCE = 100  # data sets that are drawn together
ROUNDS = 3  # times that as many as are wanted are drawn, where the same come again
UNKNOWN = -1  # a count that a data set does not tell: the description cuts through its cells


@dataclass(frozen=True)
class Generated:
    """Claims of the first of K data sets that more than half of them bear out, the most frequent first."""

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
    copies: dict[int, Split] = {}
    found: dict[bytes, Ints] = {}
    for _ in range(ROUNDS):
        before, left = len(found), wanted
        while left and len(found) < wanted:
            times = min(AT_ONCE, left)
            left -= times
            if times not in copies:
                same = Programs.joined([program] * times)
                copies[times] = split(same, np.zeros(times, np.bool_), propagate=ladder.propagate)
            seeds = rng.integers(0, 2**64, times, dtype=np.uint64)
            answers = some(copies[times], seeds, ladder)
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
    held = np.flatnonzero((data_sets[0] > 0) & ~place.apart)
    found = place.live.candidates(held, subsets_of(columns, least), ~place.apart)
    counts = _counts(found.inside, found.meeting, data_sets)
    same = (counts == counts[:, :1]) & (counts[:, :1] != UNKNOWN)
    for k in wanted:
        first = min(k, len(data_sets))
        often = same[:, :first].sum(axis=1)
        chosen = np.flatnonzero(2 * often[found.kind] > first)
        values, kind = found.values[chosen], found.kind[chosen]
        named = (values >= 0).sum(axis=1)
        order = np.lexsort((*values.T[::-1], -named, -often[kind]))
        values, kind = values[order], kind[order]
        m = counts[kind, 0]
        yield Generated(k, first, values, m, often[kind] / first, _verdicts(verified, values, m))


def _counts(inside: Flags, meeting: Flags, data_sets: Ints) -> Ints:
    """How many records of each data set (a column) each kind counts; UNKNOWN where it cuts through cells."""
    columns = data_sets.T.astype(np.float64)
    counts = inside @ columns
    cut = (inside != meeting).any(axis=1)
    if cut.any():
        counts[cut] = np.where(counts[cut] == meeting[cut] @ columns, counts[cut], UNKNOWN)
    return np.asarray(counts.astype(np.int64))


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
