"""How different can another data set of the block be? Solution variability, over all attributes or over a few.

solvar(D*) is the largest L1 distance between the histogram of D* and that of any data set that fits (equation 3 of
Steed, Qing and Wu, after Abowd et al.); over 2|D*| it is the share of households that may be otherwise. Among those
that break the rule alone, their number is not fixed: one more or fewer counts one, one that is otherwise counts two.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glasshouse.attack.occupancy.kinds import Block, Kinds
from glasshouse.errors import GlasshouseBug
from glasshouse.model.records import Count
from glasshouse.program.integer import Proof
from glasshouse.program.ladder import CLIMB, Ladder, cheapest
from glasshouse.program.questions import farthest_in_groups
from glasshouse.program.reduce import Programs
from glasshouse.scenarios.occupancy import Key

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Unlike:
    """`distance <= solvar <= most` (L1), for a data set of so many households."""

    households: int
    distance: int
    most: int
    proof: Proof
    clock: bool = False

    @property
    def share(self) -> float:
        """L1 / 2|D*|, also where only those that break the rule are looked at."""
        return self.distance / (2 * self.households)

    @property
    def share_most(self) -> float:
        return self.most / (2 * self.households)


def unlike(
    kinds: Kinds,
    block: Block,
    start: Ints,
    counts: Count,
    ladder: Ladder = CLIMB,
    *,
    key: Key | None = None,
    breaking: bool = False,
) -> Unlike:
    """How far a data set that fits can be from one: `counts` households of the kinds with the numbers `start`.

    Looked at are all attributes or those of a key, of all households or of those that break the rule.
    """
    program, chosen = kinds.program(block)
    begin = _begin(len(kinds), chosen, start, counts)
    looked = kinds.breaks[chosen] if breaking else np.ones(len(chosen), np.bool_)
    named = np.arange(len(chosen)) if key is None else kinds.groups(key)[0][chosen]
    groups, inverse = np.unique(named[looked], return_inverse=True)
    group = np.full(len(chosen), -1, np.int64)
    group[looked] = inverse
    knots = np.zeros(len(groups), np.int64)
    np.add.at(knots, group[looked], begin[looked])
    households = int(begin.sum())
    alike = chosen[np.isin(group, np.flatnonzero(knots))]
    if not breaking and _nobody_alike(kinds, block, alike, ladder):
        return Unlike(households, 2 * households, 2 * households, Proof.EXACT)
    if breaking and (others := _most_others(kinds, block, alike, ladder)) is not None:
        most = int(knots.sum()) + others
        return Unlike(households, most, most, Proof.EXACT)
    single, none, halved = Programs.of(program), np.zeros(1, np.bool_), np.array([not breaking])
    answers, _ = farthest_in_groups(single, none, begin, group, knots, np.zeros(len(groups), np.int64), halved, ladder)
    total, twice = int(knots.sum()), 1 if breaking else 2
    distance, most = (twice * (total - int(end[0])) for end in (answers.value, answers.floor))
    return Unlike(households, distance, most, answers.proof[0], bool(answers.clock[0]))


def _nobody_alike(kinds: Kinds, block: Block, alike: Ints, ladder: Ladder) -> bool:
    """Is there a data set without any of these kinds? Then it is as different as can be, and no search is needed."""
    barred = np.zeros(len(kinds), np.bool_)
    barred[alike] = True
    program, _ = kinds.program(block, barred=barred)
    return cheapest(program, ladder).x is not None


def _most_others(kinds: Kinds, block: Block, alike: Ints, ladder: Ladder) -> int | None:
    """The most households that can break the rule, if so many can without any of these kinds; else None.

    Nothing is farther: the distance is at most all who break it there and all who break it here.
    """
    barred = np.zeros(len(kinds), np.bool_)
    found = []
    for some in (alike[:0], alike):
        barred[some] = True
        program, _ = kinds.program(block, -kinds.breaks.astype(np.int64), barred=barred)
        solution = cheapest(program, ladder)
        if solution.x is None or solution.proof != Proof.EXACT:
            return None
        found.append(-program.value(solution.x))
    return found[0] if found[0] == found[1] else None


def _begin(kinds: int, chosen: Ints, start: Ints, counts: Count) -> Count:
    """The data set in the variables of the program."""
    every = np.zeros(kinds, np.int64)
    np.add.at(every, start, counts)
    if every.sum() != every[chosen].sum():
        raise GlasshouseBug("a data set that fits has a kind of household that the block cannot have")
    return np.asarray(every[chosen])
