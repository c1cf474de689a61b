"""How different could the records be? The farthest set that fits, from a given one (paper 000, equations 7 and 8).

solvar of a place is the L1 distance to the farthest histogram that fits, over twice the number of records: 0 means that
the records are known for certain. Numbers of the area around are limits from above for one place; jointly, for all its
places, they are equalities. Beyond the paper: how many records are certain although the place as a whole is not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from glasshouse.attack.published import Published, Unit, refuse_unfit
from glasshouse.model.records import UNLIMITED, Codes, Count, Index
from glasshouse.program.integer import Proof
from glasshouse.program.ladder import CLIMB, Ladder, weaker
from glasshouse.program.least import Least, least
from glasshouse.program.propagate import Array
from glasshouse.program.questions import Farthest, Start, farthest, start_of
from glasshouse.program.tables.cells import Cells
from glasshouse.program.tables.histogram import Compiled, Problem, places_alone


@dataclass(frozen=True)
class Far:
    """Of each place, or each area: `distance <= the farthest <= most` (L1), `certain` records of at most so many."""

    population: Count
    distance: Count
    most: Count
    certain: Count
    certain_most: Count
    proof: tuple[Proof, ...]
    certain_proof: tuple[Proof, ...]
    rung: NDArray[np.int8]
    clock: NDArray[np.bool_]  # the wall clock had a say


@dataclass(frozen=True)
class Kinds:
    """The kinds of records of the start: a cell of a place each, how many there are, how many of them are certain."""

    cells: Cells
    place: NDArray[np.int64]
    cell: NDArray[np.int64]
    records: Count
    certain: Count


@dataclass(frozen=True)
class Varied:
    """What can vary in a unit: of each place, and of each area in all (of the unit, where there are no areas)."""

    places: Far
    areas: Far
    kinds: Kinds
    unique: Count  # of each place: records alone in it with what makes a record unique
    start_fits: NDArray[np.bool_]  # of each place: the given records fit all its limits


def vary(
    published: Published,
    unit: Unit,
    place: Index,
    codes: Codes,
    *,
    finest: bool = False,
    tighten: bool = False,
    jointly: bool = False,
    ladder: Ladder = CLIMB,
) -> Varied:
    """How far other records that fit can be from these; in bins, or with `finest` in what all tables tell apart.

    With `tighten` differences of the area's numbers are limits too. With `jointly` also all places of an area at once.
    """
    published.refuse_contradictions(unit)
    compiled = published.finest if finest else published.binned
    start = _start(compiled, place, codes)
    area = published.area(compiled, unit)
    alone = _ask(places_alone(compiled, unit.counts, area, tighten=tighten), start, ladder)
    unique = _unique(published, len(unit.counts.places), place, codes)
    sure = _certain_of(start, alone)
    if not jointly or area is None:
        kinds = Kinds(compiled.cells, start.place, start.cell, start.counts, sure)
        return Varied(alone.far, _added_up(unit, alone), kinds, unique, alone.fits)
    together = _ask(_held(published.together(compiled, unit), alone), start, ladder)
    places, areas = _within_area(alone.far, together, start, ladder), _area(unit, alone.far, together.far)
    if not finest and not published.bins_say_all(unit):
        places, areas = (_relaxed(far, asked) for far, asked in ((places, alone), (areas, together)))
    sure = np.maximum(sure, _certain_of(start, together))
    kinds = Kinds(compiled.cells, start.place, start.cell, start.counts, sure)
    return Varied(places, areas, kinds, unique, alone.fits)


def _certain_of(start: Start, answer: _Answer) -> Count:
    """Of each kind of records of the start, how many are in every solution."""
    key, wanted = (
        place.astype(np.int64) * len(answer.problem.compiled.cells) + cell
        for place, cell in ((answer.problem.place, answer.problem.cell), (start.place, start.cell))
    )
    at = np.minimum(np.searchsorted(key, wanted), max(len(key) - 1, 0))  # keys ascend
    found = key[at] == wanted if len(key) else np.zeros(len(wanted), np.bool_)
    certain = np.zeros(len(wanted), np.int64)
    certain[found] = np.minimum(answer.sure.low[at[found]], start.counts[found])
    return certain


def admitted(
    published: Published, unit: Unit, place: Index, codes: Codes, *, finest: bool = False, tighten: bool = False
) -> NDArray[np.bool_]:
    """In which places records fit all limits: the place's own numbers, and those of the area around from above."""
    compiled = published.finest if finest else published.binned
    problem = places_alone(compiled, unit.counts, published.area(compiled, unit), tighten=tighten)
    start = _start(compiled, place, codes)
    begin, outside = problem.start(start.cell, start.place, start.counts)
    return problem.programs.fit(begin) & ~outside & ~problem.bad


def _start(compiled: Compiled, place: Index, codes: Codes) -> Start:
    """Records as a histogram."""
    key = place.astype(np.int64) * len(compiled.cells) + compiled.cells.of(codes)
    names, counts = np.unique(key, return_counts=True)
    return Start(names // len(compiled.cells), names % len(compiled.cells), counts.astype(np.int64))


class _Answer(NamedTuple):
    """What was asked of a problem, and what came of it for each of its programs."""

    problem: Problem
    fits: NDArray[np.bool_]
    found: Farthest
    sure: Least
    far: Far


def _ask(problem: Problem, start: Start, ladder: Ladder) -> _Answer:
    """The farthest histogram, and the records that are in every one that fits."""
    found = farthest(problem, start, ladder)
    refuse_unfit(found.answers)
    begin, outside = problem.start(start.cell, start.place, start.counts)
    fits = problem.programs.fit(begin) & ~outside & ~problem.bad
    first = np.where(fits[problem.programs.program_of], begin, found.x)
    varies = found.most > 0
    sure = least(problem, [first, found.x], ladder, varies)
    population = np.zeros(len(problem.programs), np.int64)
    np.add.at(population, problem.program[start.place], start.counts)
    certain, certain_most = (_summed(x, problem.programs.program_of, len(varies)) for x in (sure.low, sure.met))
    proof = found.answers.proof
    certain_proof = tuple(sure.proof[at] if varies[at] else proof[at] for at in range(len(proof)))
    clock = found.answers.clock | sure.clock
    bounded = problem.fixed_total & fits  # then at most those that are not certain differ
    most = np.where(bounded, np.minimum(found.most, 2 * (population - certain)), found.most)
    distance, rung = found.distance, found.answers.rung
    proof = tuple(  # where those who are certain close the gap, that is what proves it
        certain_proof[at] if kept == Proof.UNDECIDED and distance[at] == most[at] else kept
        for at, kept in enumerate(proof)
    )
    far = Far(population, distance, most, certain, certain_most, proof, certain_proof, rung, clock)
    return _Answer(problem, fits, found, sure, far)


def _summed(x: Array, owner: NDArray[np.integer], count: int) -> Count:
    total = np.zeros(count, np.int64)
    np.add.at(total, owner, x)
    return total


def _held(joint: Problem, alone: _Answer) -> Problem:
    """The joint problem with the places that are known for certain alone held fixed."""
    known = start_of(alone.problem, alone.found.x)
    x, _ = joint.start(known.cell, known.place, known.counts)
    single, programs = (alone.far.most == 0)[joint.place], joint.programs
    lower, upper = np.where(single, x, programs.lower), np.where(single, x, programs.upper)
    return replace(joint, programs=replace(programs, lower=lower, upper=upper))


def _area(unit: Unit, places: Far, together: Far) -> Far:
    """What areas can vary in all: no more than their places alone, added up; held places lend their proof."""
    most = np.minimum(together.most, _summed(places.most, unit.of, len(together.most)))
    proof, certain_proof = list(together.proof), list(together.certain_proof)
    weakest = [Proof.EXACT] * len(most)
    for place, area in enumerate(unit.of):
        weakest[area] = weaker(weakest[area], places.proof[place])
        if places.most[place] == 0:
            proof[area] = weaker(proof[area], places.proof[place])
            certain_proof[area] = weaker(certain_proof[area], places.proof[place])
    for area in np.flatnonzero(most == together.distance):
        if proof[area] == Proof.UNDECIDED:  # the bounds of the places are met
            proof[area] = weakest[area]
    return replace(together, most=most, proof=tuple(proof), certain_proof=tuple(certain_proof))


def _relaxed(far: Far, asked: _Answer) -> Far:
    """Where finer numbers of the area were only added up: bounds hold, but what was met may not fit all of them."""
    open_ = far.most > 0
    proof = tuple(Proof.UNDECIDED if varies else kept for varies, kept in zip(open_, far.proof, strict=True))
    most = np.where(asked.problem.fixed_total, far.population, UNLIMITED)
    settled = ~open_ | (far.certain == most)
    certain_proof = tuple(
        kept if sure else Proof.UNDECIDED for sure, kept in zip(settled, far.certain_proof, strict=True)
    )
    certain_most = np.where(settled, far.certain, most)
    return replace(far, distance=np.zeros_like(far.distance), certain_most=certain_most, proof=proof,
                   certain_proof=certain_proof)  # fmt: skip


def _added_up(unit: Unit, alone: _Answer) -> Far:
    """What places alone say of their area: it varies at most as much as they do, added up (the bound of the paper)."""
    places = alone.far
    count = 1 if unit.areas is None else len(unit.areas.places)
    population, most, certain = (_summed(x, unit.of, count) for x in (places.population, places.most, places.certain))
    proof, rung, clock = [Proof.EXACT] * count, np.zeros(count, np.int8), np.zeros(count, np.bool_)
    for place, area in enumerate(unit.of):
        proof[area] = weaker(proof[area], places.proof[place])
    np.maximum.at(rung, unit.of, places.rung)
    np.logical_or.at(clock, unit.of, places.clock)
    if unit.areas is None:  # nothing ties the places: what holds of each holds of all
        distance, upper = (_summed(x, unit.of, count) for x in (places.distance, places.certain_most))
        sure = [Proof.EXACT] * count
        for place, area in enumerate(unit.of):
            sure[area] = weaker(sure[area], places.certain_proof[place])
        return Far(population, distance, most, certain, upper, tuple(proof), tuple(sure), rung, clock)
    told = tuple(Proof.UNDECIDED if most[area] else proof[area] for area in range(count))
    fixed = np.ones(count, np.bool_)
    np.logical_and.at(fixed, unit.of, alone.problem.fixed_total)
    certain_most = np.where(most == 0, certain, np.where(fixed, population, UNLIMITED))
    return Far(population, np.zeros(count, np.int64), most, certain, certain_most, told, told, rung, clock)


def _within_area(places: Far, together: _Answer, start: Start, ladder: Ladder) -> Far:
    """Each place again, now that the other places of its area must make up the area's numbers with it.

    Whatever is certain of a place cannot differ; what is left open is asked for, place by place.
    """
    problem, area = together.problem, together.problem.program
    count = len(places.population)
    certain, certain_most = (_summed(x, problem.place, count) for x in (together.sure.low, together.sure.met))
    held = [Proof.EXACT] * len(problem.programs)  # what the areas owe to places that were known alone
    for place in np.flatnonzero(places.most == 0):
        held[area[place]] = weaker(held[area[place]], places.proof[place])
    distance, most = places.distance.copy(), places.most.copy()
    rung, clock = np.maximum(places.rung, together.far.rung[area]), places.clock | together.far.clock[area]
    proof = list(places.proof)
    certain_proof = [weaker(held[at], together.far.certain_proof[at]) for at in area]
    for place in np.flatnonzero(places.most > 0):
        among = np.zeros(count, np.bool_)
        among[place] = True
        found = farthest(problem, start, ladder, among=among)
        at = area[place]
        met = found.answers.fits[at]  # from a start outside of the limits there may be no way in
        distance[place] = found.distance[at] if met else 0
        most[place] = min(int(places.most[place]), int(found.most[at])) if met else places.most[place]
        proof[place] = weaker(held[at], found.answers.proof[at])
        if proof[place] == Proof.UNDECIDED and distance[place] == most[place]:
            proof[place] = weaker(held[at], places.proof[place])  # the bound of the place alone is met
        clock[place] |= found.answers.clock[at]
    single = places.most == 0
    known = np.where(single, places.certain, np.maximum(certain, places.certain))
    certain_most = np.where(single, places.certain_most, np.maximum(certain_most, known))
    for row in range(count):
        if single[row]:
            certain_proof[row] = places.certain_proof[row]
        elif known[row] == certain_most[row] and certain_proof[row] == Proof.UNDECIDED:
            certain_proof[row] = Proof.TWO_ENGINES  # other places are undecided; here both ends were proved
    return Far(
        places.population, distance, most, known, certain_most, tuple(proof), tuple(certain_proof), rung, clock
    )  # fmt: skip


def _unique(published: Published, count: int, place: Index, codes: Codes) -> Count:
    """Of each place, how many records are alone in it with what makes a record unique."""
    unique = np.zeros(count, np.int64)
    if published.unique_on:
        key = np.column_stack([place, *(published.groups(column, codes) for column in published.unique_on)])
        kinds, times = np.unique(key, axis=0, return_counts=True)
        np.add.at(unique, kinds[times == 1, 0], 1)
    return unique
