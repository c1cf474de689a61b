"""How sure is a rate? A share of counted things, and the interval that it stands for.

The interval is Wilson's: it stays within 0 and 1, and it is right where nothing or everything was hit (0 of n says
"less than about 4 in n", not "never"). Its things are taken as independent draws: blocks may be, persons of one block
are not, so shares of persons get no such interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from glasshouse.errors import InputError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Rate:
    """A share, and the interval around it."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, hits: int, total: int, confidence: float = 0.95) -> Rate:
        """The rate of `hits` in `total`.

        >>> Rate.of(0, 10)
        Rate(value=0.0, low=0.0, high=0.2775...)
        """
        if total == 0:
            raise InputError("a rate of 0 in 0 is not known; at least one thing must be counted")
        low, high = wilson(hits, total, confidence)
        return cls(hits / total, float(low), float(high))


def wilson(hits: ArrayLike, total: ArrayLike, confidence: float = 0.95) -> tuple[Floats, Floats]:
    """The lower and upper ends of Wilson's interval for each pair; of 0 in 0 nothing is known: from 0 to 1."""
    k, n = np.asarray(hits, np.float64), np.asarray(total, np.float64)
    if not np.all((k >= 0) & (k <= n) & np.isfinite(n)):
        raise InputError("a rate needs 0 <= hits <= total; the hits are more than what was counted, or less than none")
    if not 0 < confidence < 1:
        raise InputError(f"the confidence is {confidence:g}; expected a number between 0 and 1, such as 0.95")
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    spread = z * np.sqrt(k * (1 - k / np.maximum(n, 1)) + z * z / 4)
    middle, whole = k + z * z / 2, n + z * z
    # at the ends the formula gives 0 and 1 but for rounding, which must not leave the rate outside
    low = np.where(k == 0, 0.0, np.maximum((middle - spread) / whole, 0.0))
    high = np.where(k == n, 1.0, np.minimum((middle + spread) / whole, 1.0))
    return low, high
