"""Which records come nearest to tables that no records fit? Place by place; proved nearest, or with a bound.

Noise makes numbers contradict each other. An attacker then looks for records whose counts differ least from those
published: in sum (`absolute`), or in the sum of squares (`squared`), which is likeliest under Gaussian noise alike for
all numbers (paper 004, equation 8, without a prior). Nothing about such records is certain, and nothing here says so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glasshouse.attack.published import Published, Unit, drawn
from glasshouse.errors import InputError
from glasshouse.model.records import UNLIMITED, Codes, Index
from glasshouse.program.integer import Outcome, Proof
from glasshouse.program.ladder import Ladder
from glasshouse.program.nearest import nearest
from glasshouse.program.questions import one
from glasshouse.program.tables.histogram import places_alone

POWER = {"absolute": 1, "squared": 2}


@dataclass(frozen=True)
class RebuiltFromNoise:
    """Records, sorted by place; of each place how far they are from its numbers, and at least how far any are."""

    place: Index
    codes: Codes
    fits: NDArray[np.bool_]
    error: NDArray[np.int64]  # UNLIMITED where none were found: the place has no records here
    floor: NDArray[np.int64]
    proof: tuple[Proof, ...]
    rung: NDArray[np.int8]  # of places that fit
    clock: bool  # the wall clock stopped some: another run may know more


def rebuild_from_noise(
    published: Published, unit: Unit, rng: np.random.Generator, measure: str, ladder: Ladder
) -> RebuiltFromNoise:
    """Records that fit where any do, else the nearest."""
    counts = unit.counts
    if not counts.exact:
        raise InputError(
            "the nearest records are looked for with exact numbers; intervals fit, or contradict each other"
        )
    compiled = published.finest if published.binned.own.partial.any() else published.binned
    problem = places_alone(compiled, counts)
    answers = one(problem, rng, ladder)
    fits = answers.fits[problem.program]
    entries = np.flatnonzero(np.where(fits[problem.place], answers.x, 0))
    places, cells, times = [problem.place[entries]], [problem.cell[entries]], [answers.x[entries]]
    error, floor = np.zeros(len(fits), np.int64), np.zeros(len(fits), np.int64)
    proof, clock = [answers.proof[program] for program in problem.program], bool(answers.clock.any())
    columns = [counts.column[variable] for variable in compiled.own.variables]
    for number in np.flatnonzero(~fits):
        noisy = counts.lower[number, columns]
        found = nearest(
            compiled, noisy, np.ones(len(noisy), np.int64), power=POWER[measure], ladder=ladder, thorough=False
        )
        error[number], floor[number], proof[number] = found.error, found.floor, found.proof
        clock |= found.clock
        if found.outcome in (Outcome.OPTIMAL, Outcome.FEASIBLE) and found.error < UNLIMITED:
            some = np.flatnonzero(found.x)
            places.append(np.full(len(some), number, np.int32))
            cells.append(some.astype(np.int32))
            times.append(found.x[some])
    place, cell, count = (np.concatenate(part).astype(np.int64) for part in (places, cells, times))
    place, codes = np.repeat(place, count), drawn(compiled, np.repeat(cell, count), rng, published.schema)
    order = np.lexsort((*codes.T[::-1], place))
    return RebuiltFromNoise(
        place[order].astype(np.int32), np.ascontiguousarray(codes[order]), error == 0, error, floor, tuple(proof),
        answers.rung[problem.program], clock,
    )  # fmt: skip
