"""How different can another data set of the block be? Solution variability, over all attributes or over a few.

solvar(D*) is the largest L1 distance between the histogram of D* and that of any data set that fits (equation 3 of
Steed, Qing and Wu, after Abowd et al.); over 2|D*| it is the share of households that may be otherwise. Among those
that break the rule alone, their number is not fixed: one more or fewer counts one, one that is otherwise counts two.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from glasshouse.attack.occupancy.kinds import Block, Kinds
from glasshouse.errors import GlasshouseBug
from glasshouse.model.records import Count
from glasshouse.program.integer import Outcome, Proof
from glasshouse.program.ladder import CLIMB, Ladder, cheapest, weaker
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

    def or_more(self, most: int) -> Unlike:
        """Where not all that fits was looked at: other data sets may be up to so much farther."""
        return replace(self, most=most, proof=self.proof if self.distance == most else Proof.UNDECIDED)

    @property
    def share(self) -> float:
        """L1 / 2|D*|, also where only those that break the rule are looked at."""
        return self.distance / (2 * self.households)

    @property
    def share_most(self) -> float:
        return self.most / (2 * self.households)


def unlike(
    kinds: Kinds,
    readings: Sequence[Block],
    start: Ints,
    counts: Count,
    ladder: Ladder = CLIMB,
    *,
    key: Key | None = None,
    breaking: bool = False,
) -> Unlike:
    """How far a data set that fits under any reading can be from one: `counts` households of the kinds `start`.

    Looked at are all attributes or those of a key, of all households or of those that break the rule.
    """
    looked = kinds.breaks if breaking else np.ones(len(kinds), np.bool_)
    group = np.where(looked, np.arange(len(kinds)) if key is None else kinds.groups(key)[0], -1)
    begin = np.zeros(len(kinds), np.int64)
    np.add.at(begin, start, counts)
    found = [_farthest(kinds, block, begin, group, breaking, ladder) for block in readings]
    fitting = [one for one in found if one is not None]
    if not fitting:
        raise GlasshouseBug("a data set that fits has a kind of household that the block cannot have")
    distance, most = max(one.distance for one in fitting), max(one.most for one in fitting)
    proof = reduce(weaker, (one.proof for one in fitting))
    return Unlike(int(begin.sum()), distance, most, proof, any(one.clock for one in fitting))


def _farthest(
    kinds: Kinds, block: Block, begin: Count, group: Ints, breaking: bool, ladder: Ladder
) -> Unlike | None:  # fmt: skip
    """The same under one reading, which the start need not fit; None where nothing does.

    `group` says of each kind which others it is told apart from; -1: it is not looked at.
    """
    program, chosen = kinds.program(block)
    households, twice = int(begin.sum()), 1 if breaking else 2
    own = np.zeros(int(group.max(initial=0)) + 1, np.int64)
    np.add.at(own, group[group >= 0], begin[group >= 0])
    total = int(own.sum())
    alike = chosen[(group[chosen] >= 0) & (own[group[chosen]] > 0)]
    if not breaking and _nobody_alike(kinds, block, alike, ladder):
        return Unlike(households, 2 * households, 2 * households, Proof.EXACT)
    if breaking and (others := _most_others(kinds, block, alike, ladder)) is not None:
        return Unlike(households, total + others, total + others, Proof.EXACT)
    names, inverse = np.unique(group[chosen], return_inverse=True)
    here = names >= 0  # a first name of -1 is that of kinds that are not looked at
    number, knots = inverse.reshape(-1) - int((~here).sum()), own[names[here]]
    single, none, halved = Programs.of(program), np.zeros(1, np.bool_), np.array([not breaking])
    fitting = single.fit(begin[chosen]) & (begin.sum() == begin[chosen].sum())
    owner = np.zeros(len(knots), np.int64)
    answers, _ = farthest_in_groups(single, none, begin[chosen], number, knots, owner, halved, ladder, fitting)
    if answers.outcome[0] == Outcome.INFEASIBLE:
        return None
    if not answers.fits[0]:  # nobody knows whether anything fits
        return Unlike(households, 0, total + (block.subsidised if breaking else total), Proof.UNDECIDED)
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
