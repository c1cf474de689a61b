"""How different could the records be? The farthest set that fits, from a given one (paper 000, equations 7 and 8).

solvar of a place is the L1 distance to the farthest histogram that fits, over the records of both: of the start, and
the most that fit. Where every histogram has as many records, that is twice their number, as in the paper. 0 means that
the records are known for certain. Numbers of the area around are limits from above for one place; jointly, for all its
places, they are equalities. Beyond the paper: how many records are certain although the place as a whole is not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from glasshouse.attack.far import Far, Kinds
from glasshouse.attack.fitting import far_apart
from glasshouse.attack.published import Published, Unit, refuse_unfit
from glasshouse.model.records import UNLIMITED, Codes, Count, Index
from glasshouse.program.answers import minimum, some
from glasshouse.program.bounds import linear
from glasshouse.program.integer import Proof
from glasshouse.program.ladder import CLIMB, Ladder, remembering, weaker, without_branching
from glasshouse.program.least import least
from glasshouse.program.propagate import Array
from glasshouse.program.questions import Start, farthest, start_of
from glasshouse.program.reduce import split
from glasshouse.program.tables.dealing import Dealing, dealt_alone, dealt_jointly, last_place
from glasshouse.program.tables.histogram import Compiled, Problem, places_alone

SEED = 1  # of walks to records that are far: any will do, if always the same


@dataclass(frozen=True)
class Varied:
    """What can vary in a unit: of each place, and of each area in all (of the unit, where there are no areas)."""

    places: Far
    areas: Far
    kinds: Kinds
    unique: Count  # of each place: records alone in it with what makes a record unique
    start_fits: NDArray[np.bool_]  # of each place: the given records fit all its limits
    asked: Problem  # of places alone
    farthest: Array  # the records found farthest from the start, as values of its variables
    together: tuple[Problem, Array] | None = None  # jointly: the same of the places of an area at once


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
    known = None if finest else far_apart(published, unit, start, SEED)
    brief = remembering(ladder if known is None else without_branching(ladder))  # most parts come twice: see `_dealt`
    alone = _ask(places_alone(compiled, unit.counts, area, tighten=tighten), start, brief, known=known)
    if area is not None and not finest:
        alone = _dealt(published, unit, alone, start, place, codes, brief, tighten=tighten, asked=known is None)
    if not published.compared:
        alone = alone._replace(low=np.zeros_like(alone.low), far=_nothing_told(alone.far))
    unique = _unique(published, len(unit.counts.places), place, codes)
    sure = _certain_of(start, alone)
    if not jointly or area is None:
        kinds = Kinds(compiled.cells, start.place, start.cell, start.counts, sure)
        return Varied(alone.far, _added_up(unit, alone), kinds, unique, alone.fits, alone.problem, alone.x)
    joint, begin = published.together(compiled, unit), start
    if not finest and not published.bins_say_all(unit):
        joint, begin = _with_ways(published, unit, joint, start, place, codes)
    together = _ask(_held(joint, alone), begin, ladder, unit.named)
    if published.compared:
        places = _within_area(alone.far, together, begin, ladder, unit.named)
    else:
        places = alone.far
        together = together._replace(low=np.zeros_like(together.low), far=_nothing_told(together.far))
    areas = _area(unit, alone.far, together.far)
    sure = np.maximum(sure, _certain_of(start, together))
    kinds = Kinds(compiled.cells, start.place, start.cell, start.counts, sure)
    both = together.problem, together.x
    return Varied(places, areas, kinds, unique, alone.fits, alone.problem, alone.x, both)


def _certain_of(start: Start, answer: _Answer) -> Count:
    """Of each kind of records of the start, how many are in every solution."""
    width = len(answer.problem.compiled.cells) + answer.problem.ways
    key, wanted = (
        place.astype(np.int64) * width + cell
        for place, cell in ((answer.problem.place, answer.problem.cell), (start.place, start.cell))
    )
    at = np.minimum(np.searchsorted(key, wanted), max(len(key) - 1, 0))  # keys ascend
    found = key[at] == wanted if len(key) else np.zeros(len(wanted), np.bool_)
    certain = np.zeros(len(wanted), np.int64)
    certain[found] = np.minimum(answer.low[at[found]], start.counts[found])
    return certain


def admitted(
    published: Published, unit: Unit, place: Index, codes: Codes, *, finest: bool = False, tighten: bool = False
) -> NDArray[np.bool_]:
    """In which places records fit all limits: the place's own numbers, and those of the area around from above."""
    compiled = published.finest if finest else published.binned
    problem = places_alone(compiled, unit.counts, published.area(compiled, unit), tighten=tighten)
    start = _start(compiled, place, codes)
    begin, outside = problem.start(start.cell, start.place, start.counts)
    fits: NDArray[np.bool_] = problem.programs.fit(begin) & ~outside & ~problem.bad
    doubtful = None if finest else _in_doubt(published, unit, problem, start, place, codes, fits, tighten=tighten)
    if doubtful is not None:
        fits[doubtful.at] = doubtful.fits
    return fits


def _start(compiled: Compiled, place: Index, codes: Codes) -> Start:
    """Records as a histogram."""
    key = place.astype(np.int64) * len(compiled.cells) + compiled.cells.of(codes)
    names, counts = np.unique(key, return_counts=True)
    return Start(names // len(compiled.cells), names % len(compiled.cells), counts.astype(np.int64))


class _Answer(NamedTuple):
    """What was asked of a problem, and what came of it for each of its programs."""

    problem: Problem
    fits: NDArray[np.bool_]
    x: Array  # the farthest
    low: Array  # every solution has at least so many
    met: Array  # and some has no more
    far: Far


def _ask(
    problem: Problem, start: Start, ladder: Ladder, among: NDArray[np.bool_] | None = None, known: Start | None = None,
    *, certain: bool = True,
) -> _Answer:  # fmt: skip
    """The farthest histogram, and the records that are in every one that fits; in the places `among` all.

    `known` may be far already. Without `certain`, who is in every one is not asked beyond propagation.
    """
    among = np.ones(len(problem.places), np.bool_) if among is None else among
    found = farthest(problem, start, ladder, among=among, known=known)
    refuse_unfit(found.answers)
    begin, outside = problem.start(start.cell, start.place, start.counts)
    fits = problem.programs.fit(begin) & ~outside & ~problem.bad
    first = np.where(fits[problem.programs.program_of], begin, found.x)
    varies = found.most > 0
    sure = least(problem, [first, found.x], ladder, varies, ask=certain)
    mine = problem.counted & among[problem.place]
    owner = problem.programs.program_of[mine]
    real = (start.cell < len(problem.compiled.cells)) & among[start.place]
    population = _summed(start.counts[real], problem.program[start.place[real]], len(varies))
    known_certain, certain_most = (_summed(x[mine], owner, len(varies)) for x in (sure.low, sure.met))
    most_records = _summed(found.x[mine], owner, len(varies))
    if not problem.fixed_total.all():
        most_records = np.where(problem.fixed_total, most_records, _most_records(problem, mine, found.x, ladder))
    proof = found.answers.proof
    certain_proof = tuple(sure.proof[at] if varies[at] else proof[at] for at in range(len(proof)))
    clock = found.answers.clock | sure.clock
    bounded = problem.fixed_total & fits  # then at most those that are not certain differ
    most = np.where(bounded, np.minimum(found.most, 2 * (population - known_certain)), found.most)
    distance, rung = found.distance, found.answers.rung
    proof = tuple(  # where those who are certain close the gap, that is what proves it
        certain_proof[at] if kept == Proof.UNDECIDED and distance[at] == most[at] else kept
        for at, kept in enumerate(proof)
    )
    far = Far(population, most_records, distance, most, known_certain, certain_most, proof, certain_proof, rung, clock)
    return _Answer(problem, fits, found.x, sure.low, sure.met, far)


def _most_records(problem: Problem, counted: NDArray[np.bool_], x: Array, ladder: Ladder) -> Count:
    """Of each program, a number of records that no solution exceeds; x solves all."""
    split, owner = problem.split(propagate=ladder.propagate), problem.programs.program_of
    endless = np.zeros(len(problem.programs), np.bool_)
    endless[owner[counted & (split.upper >= UNLIMITED)]] = True
    answers = minimum(split, linear(-(counted & ~endless[owner]).astype(np.int64)), ladder, start=x)
    return np.where(endless, UNLIMITED, np.minimum(-answers.floor, UNLIMITED))


class _InDoubt(NamedTuple):
    """The places in which it is not clear that records can have what only the area's tables tell: with that asked."""

    at: Array
    problem: Problem
    start: Start
    fits: NDArray[np.bool_]  # whether the records of the start can have it


def _in_doubt(
    published: Published, unit: Unit, problem: Problem, start: Start, place: Index, codes: Codes,
    which: NDArray[np.bool_], *, tighten: bool,
) -> _InDoubt | None:  # fmt: skip
    """Those among some places; their records are dealt as they are, or, if that does not fit, in another way."""
    area, found = published.area(published.finest, unit), published.dealing(unit, tighten=tighten)
    if found is None or area is None:
        return None
    longer, at = dealt_alone(problem, *found, area, which)
    if not len(at):
        return None
    row = np.full(len(unit.counts.places), -1, np.int64)
    row[at] = np.arange(len(at))
    both = _and_ways(start, found[0], published.finest.cells.of(codes), place)
    kept = row[both.place] >= 0
    begin = Start(row[both.place[kept]], both.cell[kept], both.counts[kept])
    x, lost = longer.start(begin.cell, begin.place, begin.counts)
    fits = longer.programs.fit(x) & ~lost
    if not fits.all():
        free = ~longer.counted
        bounds = (np.where(free, limit, x) for limit in (longer.programs.lower, longer.programs.upper))
        held = replace(longer.programs, **dict(zip(("lower", "upper"), bounds, strict=True)))
        answers = some(split(held, longer.bad | lost | fits), np.zeros(len(at), np.uint64), CLIMB)
        other = start_of(longer, np.where(answers.fits[held.program_of], answers.x, 0))
        stay = ~answers.fits[begin.place]
        begin = Start(*(np.concatenate([a[stay], b]) for a, b in zip(_arrays(begin), _arrays(other), strict=True)))
        fits |= answers.fits
    return _InDoubt(at, longer, begin, fits)


def _dealt(
    published: Published, unit: Unit, alone: _Answer, start: Start, place: Index, codes: Codes, ladder: Ladder,
    *, tighten: bool, asked: bool,
) -> _Answer:  # fmt: skip
    """The same, with what only the area's tables tell where it is not clear that records can have it.

    Unless it is `asked` again who is certain, those who were stay so: fewer records fit than before.
    """
    open_ = alone.far.most > 0
    doubtful = _in_doubt(published, unit, alone.problem, start, place, codes, open_, tighten=tighten)
    if doubtful is None:
        return alone
    again, at = _ask(doubtful.problem, doubtful.start, ladder, certain=asked), doubtful.at
    mine = np.isin(alone.problem.place, at)  # the same variables, but for the ways

    def put(before: Array, now: Array) -> Array:
        return _placed(before, mine, now[doubtful.problem.counted])

    fits = alone.fits.copy()
    fits[at] = again.fits
    x, low, met = put(alone.x, again.x), put(alone.low, again.low), put(alone.met, again.met)
    far = again.far
    if not asked:
        low = np.maximum(low, alone.low)
        known = np.maximum(far.certain, alone.far.certain[at])
        before = (alone.far.certain_proof[place] for place in at)
        proof = tuple(
            Proof.UNDECIDED if open_ else Proof.EXACT if kept == Proof.EXACT else Proof.TWO_ENGINES
            for open_, kept in zip(known < far.certain_most, before, strict=True)
        )
        far = replace(far, certain=known, certain_proof=proof)
    return _Answer(alone.problem, fits, x, low, met, alone.far.put(at, far))


def _placed(array: Array, at: NDArray[np.bool_], values: Array) -> Array:
    found = array.copy()
    found[at] = values
    return found


def _with_ways(
    published: Published, unit: Unit, joint: Problem, start: Start, place: Index, codes: Codes
) -> tuple[Problem, Start]:
    """The joint problem with what only the area's tables tell in it, and the start with what it has of that."""
    found = published.dealing(unit, tighten=True, jointly=True)
    if found is None:
        return joint, start
    last = np.array([last_place(joint, area) for area in range(len(joint.programs))], np.int64)
    return dealt_jointly(joint, *found), _and_ways(
        start, found[0], published.finest.cells.of(codes), last[unit.of[place]]
    )


def _and_ways(start: Start, dealing: Dealing, fine: NDArray[np.int64], place: NDArray[np.integer]) -> Start:
    """A start with the ways in which its records, of these fine cells, are dealt."""
    way = dealing.way[fine]
    key, times = np.unique(place[way >= 0].astype(np.int64) * dealing.ways + way[way >= 0], return_counts=True)
    dealt = Start(key // dealing.ways, key % dealing.ways + dealing.cells, times.astype(np.int64))
    return Start(*(np.concatenate(pair) for pair in zip(_arrays(start), _arrays(dealt), strict=True)))


def _arrays(start: Start) -> tuple[NDArray[np.int64], NDArray[np.int64], Count]:
    return start.place, start.cell, start.counts


def _nothing_told(far: Far) -> Far:
    """Where tables tell no attribute of a record, any record could be any other: none is certain, all may differ."""
    distance = np.minimum(far.population + far.population_most, UNLIMITED)
    none, proof = np.zeros_like(distance), (Proof.EXACT,) * len(distance)
    return replace(far, distance=distance, most=distance, certain=none, certain_most=none, proof=proof,
                   certain_proof=proof)  # fmt: skip


def _summed(x: Array, owner: NDArray[np.integer], count: int) -> Count:
    total = np.zeros(count, np.int64)
    np.add.at(total, owner, x)
    return total


def _held(joint: Problem, alone: _Answer) -> Problem:
    """The joint problem with the places that are known for certain alone held fixed."""
    known = start_of(alone.problem, alone.x)
    x, _ = joint.start(known.cell, known.place, known.counts)
    single, programs = (alone.far.most == 0)[joint.place] & joint.counted, joint.programs
    lower, upper = np.where(single, x, programs.lower), np.where(single, x, programs.upper)
    return replace(joint, programs=replace(programs, lower=lower, upper=upper))


def _area(unit: Unit, places: Far, together: Far) -> Far:
    """What areas can vary in all: no more than their places alone, added up; held places lend their proof."""
    places, of = places.only(unit.named), unit.of[unit.named]
    most, records = (
        np.minimum(mine, _summed(of_places, of, len(mine)))
        for mine, of_places in (
            (together.most, places.most), (together.population_most, places.population_most),
        )
    )  # fmt: skip
    proof, certain_proof = list(together.proof), list(together.certain_proof)
    weakest = [Proof.EXACT] * len(most)
    for place, area in enumerate(of):
        weakest[area] = weaker(weakest[area], places.proof[place])
        if places.most[place] == 0:
            proof[area] = weaker(proof[area], places.proof[place])
            certain_proof[area] = weaker(certain_proof[area], places.proof[place])
    for area in np.flatnonzero(most == together.distance):
        if proof[area] == Proof.UNDECIDED:  # the bounds of the places are met
            proof[area] = weakest[area]
    return replace(together, population_most=records, most=most, proof=tuple(proof), certain_proof=tuple(certain_proof))


def _added_up(unit: Unit, alone: _Answer) -> Far:
    """What places alone say of their area: it varies at most as much as they do, added up (the bound of the paper)."""
    places, of = alone.far.only(unit.named), unit.of[unit.named]
    count = 1 if unit.areas is None else len(unit.areas.places)
    summed = (places.population, places.population_most, places.most, places.certain)
    population, records, most, certain = (np.minimum(_summed(x, of, count), UNLIMITED) for x in summed)
    proof, rung, clock = [Proof.EXACT] * count, np.zeros(count, np.int8), np.zeros(count, np.bool_)
    for place, area in enumerate(of):
        proof[area] = weaker(proof[area], places.proof[place])
    np.maximum.at(rung, of, places.rung)
    np.logical_or.at(clock, of, places.clock)
    if unit.areas is None:  # nothing ties the places: what holds of each holds of all
        distance, upper = (_summed(x, of, count) for x in (places.distance, places.certain_most))
        sure = [Proof.EXACT] * count
        for place, area in enumerate(of):
            sure[area] = weaker(sure[area], places.certain_proof[place])
        distance = np.minimum(distance, UNLIMITED)
        return Far(population, records, distance, most, certain, upper, tuple(proof), tuple(sure), rung, clock)
    told = tuple(Proof.UNDECIDED if most[area] else proof[area] for area in range(count))
    fits = np.ones(count, np.bool_)
    np.logical_and.at(fits, of, alone.fits[unit.named])
    certain_most = np.where(most == 0, certain, np.where(fits, population, records))
    return Far(population, records, np.zeros(count, np.int64), most, certain, certain_most, told, told, rung, clock)


def _within_area(places: Far, together: _Answer, start: Start, ladder: Ladder, named: NDArray[np.bool_]) -> Far:
    """Each place again, now that the other places of its area must make up the area's numbers with it.

    Whatever is certain of a place cannot differ; what is left open is asked for, place by place.
    """
    problem, area = together.problem, together.problem.program
    count = len(places.population)
    mine = problem.counted
    certain, certain_most = (_summed(x[mine], problem.place[mine], count) for x in (together.low, together.met))
    held = [Proof.EXACT] * len(problem.programs)  # what the areas owe to places that were known alone
    for place in np.flatnonzero(places.most == 0):
        held[area[place]] = weaker(held[area[place]], places.proof[place])
    distance, most = places.distance.copy(), places.most.copy()
    rung, clock = np.maximum(places.rung, together.far.rung[area]), places.clock | together.far.clock[area]
    proof = list(places.proof)
    certain_proof = [weaker(held[at], together.far.certain_proof[at]) for at in area]
    for place in np.flatnonzero((places.most > 0) & named):
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
    return Far(places.population, places.population_most, distance, most, known, certain_most, tuple(proof),
               tuple(certain_proof), rung, clock)  # fmt: skip


def _unique(published: Published, count: int, place: Index, codes: Codes) -> Count:
    """Of each place, how many records are alone in it with what makes a record unique."""
    unique = np.zeros(count, np.int64)
    if published.unique_on:
        key = np.column_stack([place, *(published.groups(column, codes) for column in published.unique_on)])
        kinds, times = np.unique(key, axis=0, return_counts=True)
        np.add.at(unique, kinds[times == 1, 0], 1)
    return unique
