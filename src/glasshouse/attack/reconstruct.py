"""Which records could stand behind these tables? One set that fits, drawn with a seed (paper 000, equations 1 to 6).

With the tables of the area around, all its places are solved jointly in the cells that records are compared in, and
what only those tables tell (single years of age) is dealt out afterwards. Without them, each place alone. No model of
people is used to choose among the sets of records that fit.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glasshouse.attack.fitting import fitting
from glasshouse.attack.published import Published, Unit, drawn, recounted, refuse_unfit
from glasshouse.errors import GlasshouseBug
from glasshouse.model.records import Codes, Index
from glasshouse.program.ladder import CLIMB, Ladder, Rung
from glasshouse.program.propagate import Array
from glasshouse.program.questions import one
from glasshouse.program.tables.histogram import Compiled, Problem
from glasshouse.program.tables.refine import refine


@dataclass(frozen=True)
class Rebuilt:
    """Records that fit, by place and level; of each place the rung that gave them, and whether they count up again."""

    place: Index
    codes: Codes
    rung: NDArray[np.int8]
    recounted: NDArray[np.bool_]  # of each place: counted again, its records give every number of the place
    recounted_areas: NDArray[np.bool_]


def reconstruct(published: Published, unit: Unit, rng: np.random.Generator, ladder: Ladder = CLIMB) -> Rebuilt:
    """Records that fit every number of a unit; `NothingFits` when there are none, or none were found."""
    walked = _walked(published, unit, rng)
    if walked is not None:
        return walked
    compiled, problem, x, rung = solution(published, unit, rng, ladder)
    entries = np.flatnonzero(x)
    cell, place, count = problem.cell[entries], problem.place[entries], x[entries]
    if unit.areas is not None and compiled is published.binned and published.around_is_finer:
        compiled, place, fine = _dealt(published, unit, place, cell, count, rng)
    else:
        place, fine = np.repeat(place, count), np.repeat(cell, count).astype(np.int64)
    return _rebuilt(published, unit, compiled, place, fine, rung[problem.program], rng)


def _walked(published: Published, unit: Unit, rng: np.random.Generator) -> Rebuilt | None:
    """Records that a walk finds, where numbers are intervals; counted again before they are told."""
    published.refuse_contradictions(unit)
    other = rng.spawn(1)[0]  # what is drawn otherwise stays the same
    found = fitting(published, unit, int(other.integers(2**31)))
    if found is None:
        return None
    rung = np.full(len(unit.counts.places), Rung.SEARCH, np.int8)
    built = _rebuilt(published, unit, published.finest, found.place.astype(np.int32), found.cell, rung, other)
    return built if built.recounted.all() and built.recounted_areas.all() else None


def _rebuilt(
    published: Published, unit: Unit, compiled: Compiled, place: Index, cell: NDArray[np.int64],
    rung: NDArray[np.int8], rng: np.random.Generator,
) -> Rebuilt:  # fmt: skip
    """Records in cells with all their levels, in order, counted again."""
    codes = drawn(compiled, cell, rng, published.schema)
    order = np.lexsort((*codes.T[::-1], place))
    place, codes = place[order].astype(np.int32), np.ascontiguousarray(codes[order])
    return Rebuilt(place, codes, rung, *recounted(published, unit, place, codes))


def solution(
    published: Published, unit: Unit, rng: np.random.Generator, ladder: Ladder
) -> tuple[Compiled, Problem, Array, NDArray[np.int8]]:
    """A solution in the cells that records are compared in, or in finer ones where dealing would not do."""
    published.refuse_contradictions(unit)
    compiled = published.binned if published.bins_say_all(unit) else published.finest
    problem = published.together(compiled, unit)
    answers = one(problem, rng, ladder)
    refuse_unfit(answers)
    return compiled, problem, answers.x, answers.rung


def _dealt(
    published: Published, unit: Unit, place: Index, cell: Index, count: Array, rng: np.random.Generator
) -> tuple[Compiled, Index, NDArray[np.int64]]:
    """Every record with the fine cell that was dealt to it, area by area."""
    deal, fine = published.deal, published.finest
    if deal is None or unit.areas is None or fine.around is None:
        raise GlasshouseBug("records were to be dealt to fine cells, but no tables say how")
    columns = [unit.areas.column[variable] for variable in fine.around.variables]
    places, cells = [], []
    for area in range(len(unit.areas.places)):
        mine = np.flatnonzero(unit.of[place] == area)
        entry, fine_cell = refine(deal, cell[mine], count[mine], unit.areas.lower[area, columns], rng)
        places.append(place[mine][entry])
        cells.append(fine_cell)
    return fine, np.concatenate(places), np.concatenate(cells)
