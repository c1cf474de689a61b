"""Which of many numbers are in a set? A bit for each, so that they come out in order without being sorted."""

from __future__ import annotations

import numpy as np
from numba import njit

from glasshouse.program.propagate import LEAF

_SPREAD = np.uint64(0x03F79D71B4CB0A89)  # every six bits in a row differ (de Bruijn): one bit shifts its own to the top
_PLACE = np.zeros(64, np.int64)
_PLACE[[int((int(_SPREAD) << bit) % 2**64 >> 58) for bit in range(64)]] = np.arange(64)


@njit(**LEAF)
def first_of(word):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """The place of the lowest bit of a word that is not 0."""
    lowest = word & (~word + np.uint64(1))
    return _PLACE[(lowest * _SPREAD) >> np.uint64(58)]


@njit(**LEAF)
def mark(marks, number):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Put a number into the set."""
    marks[number >> 6] |= np.uint64(1) << np.uint64(number & 63)


@njit(**LEAF)
def taken_out(marks, words, numbers):  # type: ignore[no-untyped-def]  # pragma: no cover  # compiled
    """Write the numbers of a set down in order, and empty it. Returns how many; `words` are the marks of its words."""
    count = 0
    for group in range(len(words)):
        while words[group] != 0:
            word = group * 64 + first_of(words[group])
            words[group] &= words[group] - np.uint64(1)
            while marks[word] != 0:
                numbers[count] = word * 64 + first_of(marks[word])
                marks[word] &= marks[word] - np.uint64(1)
                count += 1
    return count
