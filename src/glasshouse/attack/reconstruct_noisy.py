"""Which records come nearest to tables that no records fit? Place by place; proved nearest, or with a bound.

Noise makes numbers contradict each other. An attacker then looks for records whose counts differ least from those
published: in sum (`absolute`), or in the sum of squares (`squared`), which is likeliest under Gaussian noise alike for
all numbers (paper 004, equation 8, without a prior). Nothing about such records is certain, and nothing here says so.

Rounding and cell keys print numbers that need not be true, each with an interval that is. An attacker uses both: of the
records inside every interval, those nearest to the print.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from glasshouse.attack.published import Published, Unit, drawn
from glasshouse.errors import InputError
from glasshouse.model.records import UNLIMITED, Codes, Index
from glasshouse.model.release import Counts
from glasshouse.program.integer import Outcome, Proof
from glasshouse.program.ladder import Ladder, Rung
from glasshouse.program.nearest import nearest
from glasshouse.program.questions import one
from glasshouse.program.tables.histogram import Compiled, places_alone

Whole = NDArray[np.signedinteger]
POWER = {"absolute": 1, "squared": 2}
INSIDE = 0.02  # of the usual effort, for records inside every interval: most are found at once, or not for a long time


@dataclass(frozen=True)
class RebuiltFromNoise:
    """Records, sorted by place; of each place how far they are from its numbers, and at least how far any are."""

    place: Index
    codes: Codes
    fits: NDArray[np.bool_]  # every number: where intervals are published, inside every one of them
    error: NDArray[np.int64]  # UNLIMITED where none were found: the place has no records here
    floor: NDArray[np.int64]
    proof: tuple[Proof, ...]
    rung: NDArray[np.int8]  # of places without an error
    clock: bool  # the wall clock stopped some: another run may know more


def rebuild_from_noise(
    published: Published,
    unit: Unit,
    rng: np.random.Generator,
    measure: str,
    ladder: Ladder,
    print_: Counts | None = None,
) -> RebuiltFromNoise:
    """Records that fit where any do, else the nearest; beside a print, the nearest to it inside the intervals."""
    counts = unit.counts
    compiled = published.finest if published.binned.own.partial.any() else published.binned
    if print_ is not None:
        return _inside(published, compiled, counts, print_, rng, measure, ladder)
    if not counts.exact:
        raise InputError(
            "the nearest records are looked for with exact numbers; these are intervals: give what was printed, too "
            "(--printed FILE)"
        )
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
    place, codes = _records(published, compiled, places, cells, times, rng)
    return RebuiltFromNoise(
        place, codes, error == 0, error, floor, tuple(proof), answers.rung[problem.program], clock
    )  # fmt: skip


def _inside(
    published: Published, compiled: Compiled, counts: Counts, print_: Counts, rng: np.random.Generator, measure: str,
    ladder: Ladder,
) -> RebuiltFromNoise:  # fmt: skip
    """The records nearest to a print of those inside every interval, place by place.

    Where none are found with little effort, the nearest to the print, inside or not.
    """
    columns, printed = ([one.column[variable] for variable in compiled.own.variables] for one in (counts, print_))
    weights = np.ones(len(columns), np.int64)
    lower, upper = counts.lower[:, columns], counts.upper[:, columns]
    ask = partial(nearest, compiled, weights=weights, power=POWER[measure], thorough=False)
    brief = replace(ladder, limit=replace(ladder.limit, effort=ladder.limit.effort * INSIDE))
    found = []
    for noisy, low, high in zip(print_.lower[:, printed], lower, upper, strict=True):
        inside = ask(noisy=noisy, between=(low, high), ladder=brief)
        found.append(inside if inside.error < UNLIMITED else ask(noisy=noisy, ladder=ladder))
    used = [np.flatnonzero(one.x) for one in found]
    place, codes = _records(
        published, compiled, [np.full(len(some), number) for number, some in enumerate(used)], used,
        [one.x[some] for one, some in zip(found, used, strict=True)], rng,
    )  # fmt: skip
    error = np.array([one.error for one in found], np.int64)
    fitted = np.array([one.fitted for one in found], np.int64).reshape(lower.shape)
    fits = ((fitted >= lower) & (fitted <= upper)).all(axis=1)
    return RebuiltFromNoise(
        place, codes, fits & (error < UNLIMITED), error, np.array([one.floor for one in found], np.int64),
        tuple(one.proof for one in found), np.full(len(found), Rung.SOLVER, np.int8), any(one.clock for one in found),
    )  # fmt: skip


def _records(
    published: Published, compiled: Compiled, places: Sequence[Whole], cells: Sequence[Whole], times: Sequence[Whole],
    rng: np.random.Generator,
) -> tuple[Index, Codes]:  # fmt: skip
    """Records of cells of places, each so many times, sorted by place."""
    place, cell, count = (np.concatenate(part).astype(np.int64) for part in (places, cells, times))
    place, codes = np.repeat(place, count), drawn(compiled, np.repeat(cell, count), rng, published.schema)
    order = np.lexsort((*codes.T[::-1], place))
    return place[order].astype(np.int32), np.ascontiguousarray(codes[order])
