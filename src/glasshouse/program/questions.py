"""What can be said about all histograms that fit? One of them, the best, the farthest, all of them, or a range.

Every question goes up the same ladder and comes back with its proof. Questions about many places at once (`one`,
`best`, `farthest`) are answered for all programs of a problem together; the others for one program.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glasshouse.errors import GlasshouseBug, InputError
from glasshouse.model.records import UNLIMITED, Count
from glasshouse.model.schema import EVERYONE, Predicate, Recode
from glasshouse.program.answers import Answers, minimum, some
from glasshouse.program.bounds import Cost, linear
from glasshouse.program.bounds import distance as from_start
from glasshouse.program.ladder import CLIMB, Ladder
from glasshouse.program.propagate import Array
from glasshouse.program.reduce import Programs, split, with_sums
from glasshouse.program.tables.histogram import Problem


def one(problem: Problem, rng: np.random.Generator, ladder: Ladder = CLIMB) -> Answers:
    """A histogram that fits each program, drawn with the generator.

    Cells are decided from random places on, each evenly within what propagation leaves it, so no corner is preferred;
    but histograms do not have equal chances, and what a solver had to complete leans to its vertices.
    """
    seeds = rng.integers(0, 2**64, len(problem.programs), dtype=np.uint64)
    return some(problem.split(propagate=ladder.propagate), seeds, ladder)


def best(problem: Problem, cost: Array, ladder: Ladder = CLIMB) -> Answers:
    """A histogram of least cost for each program; `cost` is per record, by variable."""
    return minimum(problem.split(propagate=ladder.propagate), linear(cost), ladder)


@dataclass(frozen=True)
class Start:
    """A histogram to measure distances from: `counts[i]` records in a cell of a place."""

    place: NDArray[np.int64]
    cell: NDArray[np.int64]
    counts: Count

    def __post_init__(self) -> None:
        if len(self.counts) and self.counts.min() < 0:
            raise InputError(f"a histogram has no negative counts; found {int(self.counts.min())}")


def start_of(problem: Problem, x: Array) -> Start:
    """The histogram that a solution is."""
    used = np.flatnonzero(x)
    return Start(problem.place[used].astype(np.int64), problem.cell[used].astype(np.int64), x[used])


@dataclass(frozen=True)
class Farthest:
    """How far a fitting histogram can be from the start, for each program: `distance <= truth <= most`.

    Where nothing limits some kind of record, both are UNLIMITED.
    """

    answers: Answers
    x: Array
    distance: Count
    most: Count


def farthest(
    problem: Problem,
    start: Start,
    ladder: Ladder = CLIMB,
    *,
    on: Collection[Recode] = (),
    within: Predicate = EVERYONE,
    among: NDArray[np.bool_] | None = None,
    known: Start | None = None,
) -> Farthest:
    """A fitting histogram at the greatest L1 distance from the start, with a proved bound.

    `known` is a histogram that may fit, and may be far.

    The distance is taken on the cells of `within`, in the places `among` all (by default every one), and on attributes
    coarsened by the recodes `on`. Where every fitting histogram has the same total, the distance falls by two for each
    record that overlaps the start.
    """
    coarse, counted = _coarse(problem, on, within)
    among = np.ones(len(problem.places), np.bool_) if among is None else among
    begin, outside = problem.start(start.cell, start.place, start.counts)
    fitting = problem.programs.fit(begin) & ~problem.bad & ~outside
    halved = problem.fixed_total & fitting & (within == EVERYONE)
    chosen = counted[start.cell] & among[start.place]
    total = np.zeros(len(problem.programs), np.int64)
    np.add.at(total, problem.program[start.place[chosen]], start.counts[chosen])
    endless = np.zeros(len(problem.programs), np.bool_)
    if not on:
        variables = np.flatnonzero(counted[problem.cell] & among[problem.place])
        cost = _spread(len(begin), variables, begin[variables], halved[problem.programs.program_of[variables]])
        whole = problem.split(propagate=ladder.propagate)
        without_end = (whole.upper >= UNLIMITED) & (cost.above < 0)
        if without_end.any():
            endless[problem.programs.program_of[without_end & ~whole.impossible[problem.programs.program_of]]] = True
            cost = cost._replace(above=np.where(without_end, 0, cost.above))
        near, there = (begin, fitting) if known is None else _cheaper(problem, cost, begin, fitting, known)
        answers = minimum(whole, cost, ladder, start=near, fitting=there)
        x = answers.x
    else:
        group, knots, owner = _groups(problem, start, coarse, counted, among)
        answers, x = farthest_in_groups(
            problem.programs, problem.bad, begin, group, knots, owner, halved, ladder, fitting
        )  # fmt: skip
    twice = np.where(halved, 2, 1)
    distance, most = (twice * (total - cost) for cost in (answers.value, answers.floor))
    return Farthest(answers, x, np.where(endless, UNLIMITED, distance), np.where(endless, UNLIMITED, most))


def _cheaper(
    problem: Problem, cost: Cost, begin: Array, fitting: NDArray[np.bool_], known: Start
) -> tuple[Array, NDArray[np.bool_]]:
    """Of two histograms the one that costs less, where it fits; and where one of them does."""
    other, outside = problem.start(known.cell, known.place, known.counts)
    fits = problem.programs.fit(other) & ~problem.bad & ~outside
    owner, costs = problem.programs.program_of, np.zeros((2, len(problem.programs)), np.int64)
    for side, x in enumerate((begin, other)):
        np.add.at(costs[side], owner, cost.of(x))
    better = fits & (~fitting | (costs[1] < costs[0]))
    return np.where(better[owner], other, begin), fitting | fits


def farthest_in_groups(
    programs: Programs, bad: NDArray[np.bool_], begin: Array, group: Array, knots: Count, owner: NDArray[np.int64],
    halved: NDArray[np.bool_], ladder: Ladder, fitting: NDArray[np.bool_] | None = None,
) -> tuple[Answers, Array]:  # fmt: skip
    """What is least like a start in the sums of groups of variables (-1: of none), and its x.

    `knots` is what the start has in each group, `owner` the program of each group; where `halved`, all totals are the
    same and what overlaps the start is counted instead of the distance.
    """
    longer, old, new = with_sums(programs, group, owner)
    cost = _spread(len(longer.lower), new, knots, halved[owner])
    longer_begin = np.zeros(len(longer.lower), np.int64)
    longer_begin[old] = begin
    np.add.at(longer_begin, new[group[group >= 0]], begin[group >= 0])
    whole = split(longer, bad, propagate=ladder.propagate)
    answers = minimum(whole, cost, ladder, start=longer_begin, fitting=fitting)
    return answers, answers.x[old]


def _groups(
    problem: Problem, start: Start, coarse: Array, counted: NDArray[np.bool_], among: NDArray[np.bool_]
) -> tuple[Array, Count, NDArray[np.int64]]:
    """Coarse cells with live cells inside: the one of each variable (or -1), what the start has there, its program."""
    width = len(problem.compiled.cells)
    key = problem.place.astype(np.int64) * width + coarse[problem.cell]
    inside = counted[problem.cell] & among[problem.place]
    names, inverse = np.unique(key[inside], return_inverse=True)
    group = np.full(len(key), -1, np.int64)
    group[inside] = inverse
    wanted = start.place * width + coarse[start.cell]
    at = np.minimum(np.searchsorted(names, wanted), max(len(names) - 1, 0))
    chosen = counted[start.cell] & among[start.place]
    found = chosen & (names[at] == wanted) if len(names) else np.zeros(len(wanted), np.bool_)
    knots = np.zeros(len(names), np.int64)
    np.add.at(knots, at[found], start.counts[found])
    return group, knots, problem.program[names // width]


def _spread(n: int, variables: Array, knots: Array, halved: NDArray[np.bool_]) -> Cost:
    """The cost of the variables that count: the distance, or the overlap alone where totals are fixed."""
    below, above, knot = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    far = from_start(knots)
    below[variables], above[variables], knot[variables] = far.below, np.where(halved, 0, far.above), knots
    return Cost(below, above, knot)


def _coarse(problem: Problem, on: Collection[Recode], within: Predicate) -> tuple[Array, NDArray[np.bool_]]:
    """For each cell the number of its coarse cell, and whether it counts."""
    cells = problem.compiled.cells
    ways = np.zeros(problem.ways, np.bool_)
    counted = np.concatenate([cells.inside(within), ways])
    if (counted != np.concatenate([cells.meeting(within), ways])).any():
        raise InputError(
            f"the cells do not tell '{cells.schema.describe(within)}' apart; name it in 'told_apart' when compiling"
        )
    codes = cells.codes.astype(np.int64).copy()
    for recode in on:
        at = cells.schema.position[recode.attribute]
        classes = cells.classes[at]
        of_level = np.full(len(classes), len(recode.leaves), np.int64)
        for number, leaf in enumerate(recode.leaves):
            of_level[sorted(leaf.levels)] = number
        of_class = np.zeros(int(classes.max()) + 1, np.int64)
        of_class[classes] = of_level
        if (of_class[classes] != of_level).any():
            raise InputError(
                f"the cells do not tell the groups of recode '{recode.name}' apart; name them in 'told_apart'"
            )
        codes[:, at] = of_class[codes[:, at]]
    if not on:
        return np.arange(len(counted)), counted
    if problem.ways:
        raise GlasshouseBug("a problem with ways is compared in its own cells")
    return np.unique(codes, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64), counted
