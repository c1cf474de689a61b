"""How sure is a rate? A share of counted things, and the interval that it stands for.

The interval is Wilson's: it stays within 0 and 1, and it is right where nothing or everything was hit (0 of n says
"less than about 4 in n", not "never"). Its things are taken as independent draws: blocks may be, persons of one block
are not. Where the counts of each block are known, `clustered` allows for that; a difference between two answers about
the same persons has an interval of its own (`paired`).
"""

from __future__ import annotations

from collections.abc import Sequence
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


def clustered(
    hits: ArrayLike, total: ArrayLike, hits_squared: ArrayLike, product: ArrayLike, total_squared: ArrayLike,
    clusters: ArrayLike,
) -> tuple[Floats, Floats]:  # fmt: skip
    """Wilson's interval for rates of things that come in clusters, such as the persons of a block.

    `hits_squared`, `product` and `total_squared` are sums over clusters of k k, k n and n n, for k hits in n things.
    From them follows how many independent things the clusters are worth (the variance of a ratio of sums); Wilson's
    interval is taken for that many. At 0 of n and n of n nothing shows how alike the things of a cluster are: there,
    every cluster counts as one.

    >>> low, high = clustered(5, 10, 5, 5, 10, 10)  # ten clusters of one: as if independent, nearly
    >>> float(low.round(2)), float(high.round(2))
    (0.24, 0.76)
    """
    k, n, kk, kn, nn, c = (
        np.asarray(v, np.float64) for v in (hits, total, hits_squared, product, total_squared, clusters)
    )
    share = k / np.maximum(n, 1)
    spread = np.maximum(kk - 2 * share * kn + share * share * nn, 0) * c / np.maximum(c - 1, 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        worth = share * (1 - share) * n * n / spread
    worst = n * n / np.maximum(nn, 1)  # the things of a cluster always share their fate
    blind = (k <= 0) | (k >= n) | (c < 2)
    worth = np.where(blind, c, np.clip(worth, worst, n))
    return wilson(np.minimum(share * worth, worth), worth)


def difference(
    first: Sequence[Floats], second: Sequence[Floats], crossed: Sequence[Floats]
) -> tuple[Floats, Floats, Floats]:
    """How much larger the first of two clustered rates is, with its interval.

    Both are given as to `clustered`; `crossed` are the sums over clusters of k1 k2, k1 n2, n1 k2 and n1 n2, which tell
    how far the rates go together. The ends of the two intervals are combined as Newcombe does for paired rates: so it
    is right where a rate is 0 or 1, too.
    """
    (k1, n1, kk1, kn1, nn1, _), (k2, n2, kk2, kn2, nn2, _) = first, second
    low1, high1 = clustered(*first)
    low2, high2 = clustered(*second)
    p1, p2 = k1 / np.maximum(n1, 1), k2 / np.maximum(n2, 1)
    kk, kn, nk, nn = crossed
    own1 = np.maximum(kk1 - 2 * p1 * kn1 + p1 * p1 * nn1, 0)
    own2 = np.maximum(kk2 - 2 * p2 * kn2 + p2 * p2 * nn2, 0)
    both = kk - p2 * kn - p1 * nk + p1 * p2 * nn
    with np.errstate(divide="ignore", invalid="ignore"):
        alike = np.where(own1 * own2 > 0, np.clip(both / np.sqrt(own1 * own2), -1, 1), 0.0)
    found = p1 - p2
    down, up = (p1 - low1, high2 - p2), (high1 - p1, p2 - low2)
    below, above = (np.sqrt(np.maximum(a * a - 2 * alike * a * b + b * b, 0)) for a, b in (down, up))
    return found, np.maximum(found - below, -1.0), np.minimum(found + above, 1.0)


def paired(only_first: int, only_second: int, both: int, neither: int, confidence: float = 0.95) -> Rate:
    """How much more often the first of two answers about the same things is right, with Newcombe's interval.

    Wilson's intervals of the two rates are combined, with what the answers have in common taken out; it stays within
    -1 and 1, and is right where one answer is always or never right (Newcombe 1998, method 10).
    """
    n = only_first + only_second + both + neither
    if n == 0:
        raise InputError("a difference over nobody is not known; at least one thing must be counted")
    first, second = (both + only_first) / n, (both + only_second) / n
    low_1, high_1 = wilson(both + only_first, n, confidence)
    low_2, high_2 = wilson(both + only_second, n, confidence)
    spread = (both + only_first) * (neither + only_second) * (both + only_second) * (neither + only_first)
    cross = both * neither - only_first * only_second
    shared = max(cross - n / 2, 0) if cross > 0 else cross
    alike = shared / spread**0.5 if spread else 0.0
    difference = first - second
    down = (first - low_1) ** 2 - 2 * alike * (first - low_1) * (high_2 - second) + (high_2 - second) ** 2
    up = (high_1 - first) ** 2 - 2 * alike * (high_1 - first) * (second - low_2) + (second - low_2) ** 2
    low, high = difference - max(float(down), 0) ** 0.5, difference + max(float(up), 0) ** 0.5
    return Rate(difference, max(low, -1.0), min(high, 1.0))
