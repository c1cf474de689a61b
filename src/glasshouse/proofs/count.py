"""How many records of a description does every set have that fits, at least and at most? The lines that show it."""

from __future__ import annotations

import numpy as np

from glasshouse.proofs.derivation import Derivation
from glasshouse.proofs.space import Space


def shown_count(space: Space, bound: int) -> tuple[Derivation, int] | None:
    """Lines that show the bound of the space's fact, or the nearest that can be shown; None: none."""
    sign = -1 if space.fact.kind == "most" else 1
    terms = {int(at): sign * int(space.times[at]) for at in np.flatnonzero(space.times)}
    if not terms:  # published zeros leave nobody of the description
        derived = Derivation(space)
        derived.summed({}, 0, ())
        return (derived, 0) if sign < 0 else None
    step = 0
    while step <= max(bound, 64):
        derived = Derivation(space)
        target = sign * bound - step
        if sign > 0 and target < 1:
            return None
        if derived.bounded(terms, target) is None and derived.cases(terms, target) is None:
            step = max(2 * step, 1)
            continue
        return derived, sign * target
    return None
