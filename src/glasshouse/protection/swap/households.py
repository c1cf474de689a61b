"""What makes two households alike, which are at risk, and what does a swap make of them? The same for both rules."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glasshouse.errors import InputError

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Swapped:
    """Who changed places with whom."""

    partner: Ints  # the row of the other household of the pair, or -1
    place: Ints  # where each household is now
    unmatched: int  # chosen households that found no partner
    chosen: Flags

    @classmethod
    def of(cls, place: Ints, partner: Ints, chosen: Flags) -> Swapped:
        """The households of pairs exchange the places they had."""
        now = np.where(partner >= 0, place[partner], place)
        return cls(partner, now, int(np.count_nonzero(chosen & (partner < 0))), chosen)

    @property
    def moved(self) -> int:
        """How many households are in another place now."""
        return int(np.count_nonzero(self.partner >= 0))

    @property
    def share(self) -> float:
        """The realised swap rate: which share of all households is in another place now."""
        return self.moved / max(len(self.partner), 1)


def alike_key(persons: Ints, adults: Ints) -> Ints:
    """One number for how many persons, and how many adults among them; different for different households."""
    if np.any((persons < 1) | (adults < 0) | (adults > persons)):
        raise InputError("a household to be swapped has at least one person, and no more adults than persons")
    size = np.asarray(persons, np.int64)
    return np.asarray(size * (size + 1) // 2 + adults, np.int64)


def at_risk(place: Ints, persons_in_place: Ints, unit_of_person: Ints, cell: Ints, small: int = 10) -> Flags:
    """Which units are at risk: in a place of fewer than `small` persons, or with a member alone there with its cell.

    `place` is that of each unit; `persons_in_place` goes by the number of the place; `cell` is what makes a person
    stand out. Who else is in a place counts: give group quarters and their residents too, and leave their flags aside.
    What is small is for you to say.
    """
    if np.any((place < 0) | (place >= len(persons_in_place))):
        raise InputError("a unit lies in a place that has no number of persons")
    if len(unit_of_person) != len(cell) or np.any((unit_of_person < 0) | (unit_of_person >= len(place))):
        raise InputError("every person needs a cell and a unit that exists")
    risk = np.asarray(persons_in_place[place] < small)
    kind = numbered(place[unit_of_person], cell)
    risk[unit_of_person[np.bincount(kind)[kind] == 1]] = True
    return risk


def numbered(*columns: Ints) -> Ints:
    """Numbers from 0 for rows of values, the same for rows that agree in all columns."""
    order = np.lexsort(columns[::-1])
    new = np.zeros(len(order), np.bool_)
    for column in columns:
        new[1:] |= np.diff(column[order]) != 0
    number = np.empty(len(order), np.int64)
    number[order] = np.cumsum(new)
    return number
