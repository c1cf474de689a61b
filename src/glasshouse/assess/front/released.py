"""How do the risks and the utility of paper 003 come out for a file as it is released? Counted, not expected.

The paper's tau, phi and U are of chances. A released file has none: of every element (people of one kind in one place)
x lived there, x' are there now, and s of the x still are. With these in place of the chances (theta_kii = s / x,
x tilde = x') equations (15), (17) and (5) read

    tau = 1/(mn) sum (s / x) / x'           phi = 1/(mn) #{x = x' = s = 1}
    U = 1 - 1/(mn) sum ((x - s) + (x' - s)) / max(x, 1)

over the m n elements of the true data; 0/0 is 0. Where nobody of a kind lived the paper's noise is 1/0; here each
person who appears there counts as one. Who stayed is counted by name where both files name people. Of people without a
name at most min(x, x') stayed, and that is taken: tau and phi are then the most, the noise the least that they can be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glasshouse.errors import InputError
from glasshouse.protection.relocation.rules import Matrix, Rules

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Elements:
    """The elements of two files: how many were there, are there now, and still are."""

    before: Integers
    after: Integers
    stayed: Integers
    cells: int  # m n of the true data

    def __post_init__(self) -> None:
        if not self.before.shape == self.after.shape == self.stayed.shape:
            raise InputError("elements before, after and of those who stayed are not the same ones")
        if np.any(self.stayed < 0) or np.any(self.stayed > np.minimum(self.before, self.after)):
            raise InputError("more people stayed in an element than were in it")

    @classmethod
    def nameless(cls, before: Matrix, after: Matrix) -> Elements:
        """Of two matrices: as many stayed as can have."""
        x, y = aligned(before, after)
        return cls(x, y, np.minimum(x, y), before.cells)


def aligned(before: Matrix, after: Matrix) -> tuple[Integers, Integers]:
    """The counts of two matrices over the combinations and places of either."""
    kinds, places = (
        {name: number for number, name in enumerate(dict.fromkeys((*ours, *theirs)))}
        for ours, theirs in ((before.combinations, after.combinations), (before.places, after.places))
    )
    found = []
    for one in (before, after):
        counts = np.zeros((len(kinds), len(places)), np.int64)
        rows, columns = ([order[name] for name in names] for order, names in (
            (kinds, one.combinations), (places, one.places)))  # fmt: skip
        counts[np.ix_(rows, columns)] = one.counts
        found.append(counts)
    return found[0], found[1]


@dataclass(frozen=True)
class Released:
    """Risk and utility of a file as it is."""

    tau: float
    phi: float
    utility: float
    left: int  # people who are no longer where they were
    appeared: int  # people where nobody of their kind lived


def released(of: Elements) -> Released:
    """Count the risks and the utility of a released file."""
    x, y, s = (part.astype(np.float64) for part in (of.before, of.after, of.stayed))
    cells = max(of.cells, 1)
    risks = np.divide(s, x * y, out=np.zeros(x.shape), where=s > 0)
    unique = (of.before == 1) & (of.after == 1) & (of.stayed == 1)
    noise = ((x - s) + (y - s)) / np.maximum(x, 1)
    return Released(
        float(risks.sum()) / cells,
        int(unique.sum()) / cells,
        1 - float(noise.sum()) / cells,
        int((of.before - of.stayed).sum()),
        int(of.after[of.before == 0].sum()),
    )


def protection_of(of: Elements, rules: Rules) -> float:
    """P of equation 2: what moving those at risk was worth, for those who are no longer where they were."""
    risky = (of.before > 0) & (of.before <= rules.risk)
    gone = (of.before - of.stayed)[risky]
    weight = rules.weights(of.before[risky]) if risky.any() else np.zeros(0)
    return float(np.sum(weight * gone))
