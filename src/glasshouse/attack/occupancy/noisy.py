"""Which data set comes closest to noisy numbers that none fits? Squared error of the census, exactly.

Equation 8 of Steed, Qing and Wu: -log L(D') + |Q(D') - Q(D)|^2, where L is 1 or the likelihood of a sample. Numbers
are whole, so squares are piecewise linear and no quadratic solver is needed. The households, the subsidised among them,
what properties publish and census numbers that are intervals are taken as they are. Numbers of who is present count
only where a sample says who is (in its model). The answer is the best one or close to it: `least` says how close.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from glasshouse.attack.occupancy.bundles import Bundles
from glasshouse.attack.occupancy.kinds import TOTALS, Block, Kinds
from glasshouse.model.records import UNLIMITED, Count
from glasshouse.program.integer import Proof
from glasshouse.program.ladder import CLIMB, Ladder, weaker
from glasshouse.program.nearest import Beside, nearest_sums


@dataclass(frozen=True)
class LeastError:
    """The squared error of the closest data set, and how many of its households break the rule.

    `least` is what error and likelihood together cannot be below, in the units of the likelihood (1 without it).
    """

    x: Count
    error: int
    cost: int
    least: int
    violations: int
    proof: Proof
    clock: bool = False


def least_error(
    kinds: Kinds | Bundles, readings: Sequence[Block], ladder: Ladder = CLIMB, *, cost: Count | None = None,
    weight: int = 1,
) -> LeastError | None:  # fmt: skip
    """The closest data set under any reading; None where the numbers that are taken as they are cannot be met.

    With the `cost` of each kind, a squared error of 1 weighs as much as `weight` units of it.
    """
    found = [one for block in readings if (one := _least_error(kinds, block, ladder, cost, weight)) is not None]
    if not found:
        return None
    best, proof = min(found, key=lambda one: one.cost), reduce(weaker, (one.proof for one in found))
    return replace(best, least=min(one.least for one in found), proof=proof, clock=any(one.clock for one in found))


def _least_error(
    kinds: Kinds | Bundles, block: Block, ladder: Ladder, cost: Count | None, weight: int
) -> LeastError | None:
    """The same under one reading."""
    plain = kinds.kinds if isinstance(kinds, Bundles) else kinds
    lower, upper = plain.limits(block)
    census = np.concatenate([np.zeros(TOTALS * plain.faces, np.bool_), block.exact[~plain.present]])
    hard = np.arange(len(lower)) < TOTALS * plain.faces
    rows = kinds.rows.tocsr()
    measured = np.flatnonzero(census | hard)
    within = np.setdiff1d(np.arange(rows.shape[0]), measured)
    more = (kinds.lower, kinds.upper) if isinstance(kinds, Bundles) else (lower[:0], upper[:0])
    largest = kinds.largest if isinstance(kinds, Bundles) else 1
    most = np.full(rows.shape[1], block.households * largest, np.int64)
    least, greatest = (np.concatenate(both)[within] for both in ((lower, more[0]), (upper, more[1])))
    weights = np.where(census[measured], weight, 0).astype(np.int64)
    noisy = lower[measured]
    open_ = np.zeros(len(measured), np.int64), np.full(len(measured), UNLIMITED)
    found = nearest_sums(
        rows[measured].tocsr(), noisy, weights, hard[measured], open_, cost=cost,
        beside=Beside(rows[within].tocsr(), least, greatest, most), ladder=ladder, thorough=False,
    )  # fmt: skip
    if found.error >= UNLIMITED:
        return None
    error = int((np.abs(found.fitted - noisy)[census[measured]] ** 2).sum())
    broken = int(found.x[kinds.breaks].sum())
    return LeastError(found.x, error, found.error, found.floor, broken, found.proof, found.clock)
