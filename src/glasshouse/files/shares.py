"""How many are a printed percentage of so many? As many as round to it, at as many decimals as were printed.

A share is a whole number of its last printed decimal: 39.39 is 3939 with 2 decimals, 39 is 39 with none.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Whole = TypeVar("Whole", int, NDArray[np.int64])


def within_rounding(share: Whole, of: Whole, decimals: int = 0) -> tuple[Whole, Whole]:
    """The fewest and the most that are this percentage of so many, however halves are rounded.

    Offices do not say: a count n is in if 100 n / of is at most half a step of the last decimal away. The first is the
    larger if none is. With two decimals, one count is left of up to 10,000.

    >>> within_rounding(33, 100), within_rounding(0, 200), within_rounding(1, 200), within_rounding(50, 3)
    ((33, 33), (0, 1), (1, 3), (2, 1))
    >>> within_rounding(3939, 66, decimals=2), within_rounding(3939, 72, decimals=2)
    ((26, 26), (29, 28))
    """
    whole = _whole(decimals)
    lowest, highest = 2 * share - (share > 0), 2 * share + (share < whole)  # in half steps
    return -(-lowest * of // (2 * whole)), highest * of // (2 * whole)


def rounded_down(share: Whole, of: Whole, decimals: int = 0) -> Whole:
    """This percentage of so many, the fraction left away.

    >>> rounded_down(29, 100), rounded_down(50, 3), rounded_down(99, 1)
    (29, 1, 0)
    """
    return share * of // _whole(decimals)


def rounded(share: Whole, of: Whole, decimals: int = 0) -> Whole:
    """This percentage of so many, to the nearest, halves up.

    >>> rounded(29, 100), rounded(50, 3), rounded(49, 1), rounded(3939, 66, decimals=2)
    (29, 2, 0, 26)
    """
    whole = _whole(decimals)
    return (2 * share * of + whole) // (2 * whole)


def _whole(decimals: int) -> int:
    """100 percent, in steps of the last decimal."""
    return 100 * int(10**decimals)
