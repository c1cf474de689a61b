"""How few and how many can a set of variables count, over all solutions of a part? Listed, met, or asked for.

One engine for every such question. A part whose solutions can all be listed shows the ends of all sets at a glance.
Otherwise limits from propagation say what is sure, every solution met narrows what is open for all sets at once, and
only where the two differ is an end asked for; each answer is one more solution for all the others.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from glasshouse.model.records import UNLIMITED, Count
from glasshouse.program.answers import minimum
from glasshouse.program.bounds import linear
from glasshouse.program.certainty.prove import dual_bound
from glasshouse.program.highs import Kept, highs
from glasshouse.program.integer import IntegerProgram, Proof
from glasshouse.program.ladder import ORDER, Ladder
from glasshouse.program.moves import exchanges, wandered
from glasshouse.program.propagate import Array
from glasshouse.program.reduce import Programs, Split, split
from glasshouse.program.search import enumerate_part

LISTED = 1024  # solutions of a part that are worth listing
STEPS = 4096  # of the search that lists them
WALKS = 6  # known solutions that are looked around
AT_ONCE = 512  # sets that are counted together
LARGE = 100  # entries of a part in which a vertex is met sooner than a search ends
WHOLE = 1e-6
MIXED = np.uint64(0x9E3779B97F4A7C15)  # an odd number, bits of which look like chance
Flags = NDArray[np.bool_]
Sets = Flags | None  # a row each over the variables of a part; None: every variable is a set of its own
Kind = TypeVar("Kind", np.int64, np.bool_)

LEAST, MOST = 1, -1  # which end


def distinct(sets: Flags) -> tuple[Flags, Array]:
    """The sets without repetition, in order, and which of them each is."""
    packed = np.packbits(sets, axis=1)
    first, of = different(packed)
    return np.unpackbits(packed[first], axis=1, count=sets.shape[1]).astype(np.bool_), of


def different(rows: NDArray[np.uint8], seed: int = 0) -> tuple[Array, Array]:
    """Where each different row of bytes stands first, in the order of the bytes, and which of them each row is.

    Rows get a random number each, which are sorted instead of the rows; rows with the same number are compared.
    """
    padded = np.zeros((len(rows), -(-rows.shape[1] // 8) * 8), np.uint8)
    padded[:, : rows.shape[1]] = rows
    words = padded.view(np.uint64)
    words ^= words >> np.uint64(32)  # one to one: a product keeps little of high bits alone
    words *= MIXED
    words ^= words >> np.uint64(29)
    chance = np.random.default_rng(seed).integers(0, 2**64, words.shape[1], dtype=np.uint64)
    _, first, of = np.unique(words @ chance, return_index=True, return_inverse=True)
    of = of.reshape(-1)
    if (words != words[first[of]]).any():  # two rows with the same number: other numbers
        return different(rows, seed + 1)
    _, order, rank = np.unique(rows[first], axis=0, return_index=True, return_inverse=True)
    return first[order], rank.reshape(-1)[of]


def meets_vertices(program: Programs, ladder: Ladder) -> bool:
    """Are ends of this part looked for at vertices first?"""
    return len(program.index) >= LARGE and highs in ladder.engines and not ladder.limit.allows_nothing


def solutions_of(program: Programs, ladder: Ladder, *, brief: bool = False) -> tuple[NDArray[np.int64], bool]:
    """Solutions of a part, a row each, and whether these are all; what nothing limits has no end of them.

    With `brief` a part that is large has none: its ends are met sooner at vertices.
    """
    if brief and meets_vertices(program, ladder):
        return np.empty((0, len(program.lower)), np.int64), False
    if ladder.nodes > 0 and program.upper.max() < UNLIMITED:
        return enumerate_part(program, 0, LISTED, STEPS)
    return np.empty((0, len(program.lower)), np.int64), False


@dataclass
class End:
    """The least or the most of each set: no solution goes beyond `bound`, and some solution meets `met`.

    Proofs are indices into ORDER. `proof` is how the bound is proved. `asked` is what came of asking for the set
    itself, be it undecided, and 0 where nobody asked.
    """

    which: int
    sets: Sets
    bound: Array
    met: Array
    proof: Array
    asked: Array

    def only(self, chosen: Array) -> End:
        """The same of some of the sets."""
        sets = None if self.sets is None else self.sets[chosen]
        return End(self.which, sets, *(array[chosen] for array in self._known))

    def put(self, chosen: Array, some: End) -> None:
        """Take over what was learnt of some of the sets."""
        for mine, learnt in zip(self._known, some._known, strict=True):
            mine[chosen] = learnt

    @property
    def _known(self) -> tuple[Array, Array, Array, Array]:
        return self.bound, self.met, self.proof, self.asked

    @property
    def sizes(self) -> Array:
        """How many variables each set has."""
        return np.ones(len(self.met), np.int64) if self.sets is None else self.sets.sum(axis=1)

    def meet(self, counts: Array, at: Array | slice = slice(None)) -> None:
        """Some solution counts so much."""
        self.met[at] = (np.minimum if self.which == LEAST else np.maximum)(self.met[at], counts)

    def farthest(self, counts: NDArray[np.number]) -> Array:
        """The end of each row of counts."""
        return np.asarray(counts.min(axis=1) if self.which == LEAST else counts.max(axis=1), np.int64)

    def implied(self, number: int) -> Array:
        """The sets that a bound on this one holds for: those around it count no less, those inside it no more."""
        if self.sets is None:
            return np.array([number])
        one = self.sets[number]
        outside = one & ~self.sets if self.which == LEAST else self.sets & ~one
        return np.flatnonzero(~outside.any(axis=1))


Ends = tuple[End, ...]


class Extremes:
    """What sets of variables of one part count at least and at most, as far as it was listed, met or asked for.

    It begins with some solutions of the part, a row each: with `all_there` nothing is left to ask.
    """

    def __init__(
        self, program: Programs, ladder: Ladder, solutions: NDArray[np.int64], *ends: tuple[int, Sets],
        all_there: bool = False,
    ) -> None:  # fmt: skip
        self.program, self.ladder, self.start = program, ladder, solutions[0]
        self.calls, self.clock = 0, False
        self.split: Split | None = None
        if not all_there:
            self.split = split(program, np.zeros(1, np.bool_), propagate=ladder.propagate)
        self.ends = tuple(self._end(which, sets, solutions) for which, sets in ends)
        self.kept: Kept | None = None
        if self.split is not None and meets_vertices(program, ladder):
            limited = replace(program, lower=self.split.lower, upper=self.split.upper)
            self.kept = Kept(limited.integer_program(np.zeros(len(program.lower), np.int64)))
            self.used = (self.start > 0) | (self.kept.program.lower != 0)  # by solutions met

    def _end(self, which: int, sets: Sets, solutions: NDArray[np.int64]) -> End:
        count = solutions.shape[1] if sets is None else len(sets)
        end = End(which, sets, *(np.zeros(count, np.int64) for _ in range(4)))
        end.met = _met(end, solutions)
        end.bound = end.met.copy()
        if self.split is not None:
            end.bound = _counted(sets, self.split.lower if which == LEAST else self.split.upper)
            end.bound = np.minimum(end.bound, UNLIMITED)
            if which == MOST:  # more of what nothing limits always fits
                endless = _counted(sets, self.split.upper >= UNLIMITED)
                end.met[endless] = end.bound[endless] = UNLIMITED
        return end

    @property
    def agree(self) -> Flags:
        """The sets whose least and most are the same in every solution met."""
        least, most = self.ends
        return np.asarray(least.met == most.met)

    def look_around(self) -> None:
        """Meet solutions next to known ones: an exchange changes the counts of sets it leads into or out of."""
        rng, x = np.random.default_rng(0), self.start
        for _ in range(WALKS):
            moves = exchanges(self.program, x, rng)
            open_ = np.flatnonzero(self.agree)
            if not len(moves) or not len(open_):
                break
            for begin in range(0, len(open_), AT_ONCE):
                some = open_[begin : begin + AT_ONCE]
                for end in self.ends:
                    if end.sets is not None:
                        chosen = end.sets[some].astype(np.int8)
                        change = chosen[:, moves[:, 2]] + chosen[:, moves[:, 3]]
                        change -= chosen[:, moves[:, 0]] + chosen[:, moves[:, 1]]
                        end.meet(end.sets[some] @ x + end.farthest(change), some)
            x = wandered(self.program, x, moves, rng)

    def ask(self, ends: Ends, at: int, order: Array, *, settling: bool = False) -> None:
        """Ask for an end (of all ends, or of those of some sets), one set after the other, where it is open still.

        `settling` asks only whether sets count the same in every solution: it leaves out those of which two counts were
        met, and takes a bound for all sets that it holds for, which costs a look at each and pays where thousands lie
        in each other.
        """
        if self.split is None:
            return
        end = ends[at]
        for number in map(int, order):

            def wanted(number: int = number) -> bool:
                agreed = not settling or all(one.met[number] == end.met[number] for one in ends)
                return bool(agreed and end.met[number] != end.bound[number])

            holds_for = partial(end.implied, number) if settling else partial(np.atleast_1d, number)
            cost = np.zeros(len(self.start), np.int64)
            cost[number if end.sets is None else end.sets[number]] = end.which
            if wanted():
                self.calls += 1
                self._look_at_a_vertex(ends, at, number, cost, holds_for)
            if wanted():
                answers = minimum(self.split, linear(cost), self.ladder, start=self.start)
                self.clock |= bool(answers.clock[0])
                if answers.fits[0]:
                    _meet_all(ends, answers.x)
                _learn(end, number, int(answers.floor[0]), answers.proof[0], holds_for())

    def _look_at_a_vertex(
        self, ends: Ends, at: int, number: int, cost: Array, holds_for: Callable[[], Array]
    ) -> None:  # fmt: skip
        """What a vertex of the relaxation tells of an end: its multipliers prove a bound, and it may lead to the end.

        Relaxations go on from one another and cost a hundredth of a search that begins anew. Where the bound is what
        some solution was seen to count, that is the end. Otherwise a solution that counts more is looked for: at the
        vertex, or, where it is not whole, among solutions of what it and those met before use, which are few variables.
        """
        if self.kept is None:
            return
        end, program = ends[at], self.kept.program
        relaxed = self.kept.relax(cost, self.ladder.limit)
        if relaxed.x is None or relaxed.duals is None:
            return
        floor = dual_bound(program, relaxed.duals, cost, wanted=end.which * int(end.met[number]))
        if floor is None:
            return
        _learn(end, number, floor, Proof.EXACT, holds_for())
        if end.met[number] == end.bound[number]:
            return
        near = np.rint(relaxed.x).astype(np.int64)
        x: Count | None = near
        if not program.fits(near):
            x = self._among(replace(program, cost=cost), np.flatnonzero(self.used | (relaxed.x > WHOLE)))
        if x is not None:
            self.used = (self.start > 0) | (x > 0) | (program.lower != 0)
            _meet_all(ends, x)

    def _among(self, program: IntegerProgram, used: Array) -> Count | None:
        """The cheapest solution that leaves out all variables but those used, as far as HiGHS finds it."""
        found = highs(program.only(used), self.ladder.limit)
        self.clock |= found.clock
        if found.x is None:
            return None
        x = np.zeros(len(program.cost), np.int64)
        x[used] = found.x
        return x if program.fits(x) else None


def _learn(end: End, number: int, floor: int, proof: Proof, holds_for: Array) -> None:
    """What an answer says of the end of a set, and of others that the bound holds for."""
    bound = end.which * floor
    better = holds_for[end.which * end.bound[holds_for] < end.which * bound]
    end.bound[better] = bound
    # a floor is exact whatever else is undecided; where two engines agree they have raised it
    end.proof[better] = ORDER.index(Proof.TWO_ENGINES if proof == Proof.TWO_ENGINES else Proof.EXACT)
    end.asked[number] = ORDER.index(proof)
    if proof == Proof.TWO_ENGINES:
        end.bound[number] = end.met[number]  # whatever both claim, what was met is there


def _meet_all(ends: Ends, x: Array) -> None:
    """A solution more: what it counts is met."""
    counts: dict[int, Array] = {}  # the least and the most may be of the same sets
    for end in ends:
        key = id(end.sets)
        if key not in counts:
            counts[key] = _counted(end.sets, x)
        end.meet(counts[key])


def _counted(sets: Sets, x: NDArray[Kind]) -> NDArray[Kind]:
    """What each set counts in a solution; of flags, whether it has one that is up."""
    return x.copy() if sets is None else np.asarray(sets @ x)


def _met(end: End, solutions: NDArray[np.int64]) -> Array:
    """What some of the solutions, a row each, meet."""
    if end.sets is None:
        return end.farthest(solutions.T)
    if len(solutions) == 1:
        return _counted(end.sets, solutions[0])
    exact = int(np.abs(solutions).max()) * solutions.shape[1] < 2**53  # then so are floats, which are quicker
    kind = np.float64 if exact else np.int64
    found, columns = np.empty(len(end.sets), np.int64), solutions.T.astype(kind)
    for begin in range(0, len(found), AT_ONCE):
        counts = end.sets[begin : begin + AT_ONCE].astype(kind) @ columns
        found[begin : begin + AT_ONCE] = end.farthest(counts)
    return found
