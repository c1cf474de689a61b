"""How few and how many can a set of variables count, over all solutions of a part? Listed, met, or asked for.

One engine for every such question. A part whose solutions can all be listed shows the ends of all sets at a glance.
Otherwise limits from propagation say what is sure, every solution met narrows what is open for all sets at once, and
only where the two differ is an end asked for; each answer is one more solution for all the others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from glasshouse.model.records import UNLIMITED
from glasshouse.program.answers import Answers, minimum
from glasshouse.program.bounds import linear
from glasshouse.program.highs import Kept, highs
from glasshouse.program.integer import Limit, Outcome, Proof
from glasshouse.program.ladder import ORDER, Ladder, Rung
from glasshouse.program.moves import exchanges, wandered
from glasshouse.program.propagate import Array
from glasshouse.program.prove import dual_bound
from glasshouse.program.reduce import Programs, Split, split
from glasshouse.program.search import enumerate_part

LISTED = 1024  # solutions of a part that are worth listing
STEPS = 4096  # of the search that lists them
WALKS = 6  # known solutions that are looked around
AT_ONCE = 512  # sets that are counted together
LARGE = 100  # entries of a part in which a vertex is met sooner than a search ends
WHOLE = 1e-6
Flags = NDArray[np.bool_]
Sets = Flags | None  # a row each over the variables of a part; None: every variable is a set of its own
Kind = TypeVar("Kind", np.int64, np.bool_)

LEAST, MOST = 1, -1  # which end


def distinct(sets: Flags) -> tuple[Flags, Array]:
    """The sets without repetition, in order, and which of them each is."""
    packed, of = np.unique(np.packbits(sets, axis=1), axis=0, return_inverse=True)
    return np.unpackbits(packed, axis=1, count=sets.shape[1]).astype(np.bool_), of.reshape(-1)


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
        for number in order:
            wanted = not settling or all(one.met[number] == end.met[number] for one in ends)
            if wanted and end.met[number] != end.bound[number]:
                answers = self._answers(self.split, end, int(number))
                if answers.fits[0]:
                    _meet_all(ends, answers.x)
                _learn(end, int(number), answers, end.implied(int(number)) if settling else np.array([number]))

    def _answers(self, whole: Split, end: End, number: int) -> Answers:
        cost = np.zeros(len(self.start), np.int64)
        cost[number if end.sets is None else end.sets[number]] = end.which
        self.calls += 1
        answers = None if self.kept is None else _at_a_vertex(self.kept, cost, self.ladder.limit)
        if answers is not None:
            return answers
        answers = minimum(whole, linear(cost), self.ladder, start=self.start)
        self.clock |= bool(answers.clock[0])
        return answers


def _at_a_vertex(kept: Kept, cost: Array, limit: Limit) -> Answers | None:
    """The least of a cost where a vertex of the relaxation is whole and its multipliers show that nothing is less.

    That is so nearly always, and in a large part it is ten times quicker than a search that begins anew.
    """
    if limit.allows_nothing:
        return None
    relaxed = kept.relax(cost, limit)
    if relaxed.x is None or relaxed.duals is None:
        return None
    x = np.rint(relaxed.x).astype(np.int64)
    program = replace(kept.program, cost=cost)
    if np.abs(x - relaxed.x).max() > WHOLE or not program.fits(x):
        return None
    value = program.value(x)
    if dual_bound(program, relaxed.duals, wanted=value) != value:
        return None
    one = np.array([value])
    rung, clock = np.full(1, Rung.SOLVER, np.int8), np.zeros(1, np.bool_)
    return Answers(x, (Outcome.OPTIMAL,), (Proof.EXACT,), one, one, rung, clock)


def _learn(end: End, number: int, answers: Answers, holds_for: Array) -> None:
    """What an answer says of the end of a set, and of others that the bound holds for."""
    bound, proof = end.which * int(answers.floor[0]), answers.proof[0]
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
