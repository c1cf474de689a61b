"""What would have been guessed anyway? Guessing from the neighbours, and who differs from them (paper 000).

A **modal guesser** (MDG) says of everybody in a place what most records there say; a **proportional guesser** (PRG)
says what a record drawn there says. Both read the published file. Where a place cannot tell (the modal guesser: a tie,
or one record; the proportional one: one record), the area around is asked, then the nation.

A person is **modal** if they are what most people of their place are, in truth; here a place cannot tell when there is
a tie, or when the largest cell holds one person.

`counts[i, c]` is the number of records of place (or area) i whose sensitive cell is c; `around` is the area of each
place. The nation is everything that was given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from glasshouse.attack.people.reidentify import Ints

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Neighbours:
    """Records counted by sensitive cell: of each place, of the area around it, and of the nation."""

    places: Ints
    areas: Ints
    around: Ints
    nation: Ints

    @classmethod
    def of(cls, place: NDArray[Any], cell: NDArray[Any], around: Ints, nation: Ints) -> Neighbours:
        """Count records; the nation comes counted, since no unit sees all of it."""
        cells = len(nation)
        places = np.bincount(place.astype(np.int64) * cells + cell, minlength=len(around) * cells).reshape(-1, cells)
        areas = np.zeros((1 + int(around.max(initial=-1)), cells), np.int64)
        np.add.at(areas, around, places)
        return cls(places, areas, around, nation)


def modal_status(truth: Neighbours) -> Ints:
    """The cell that makes a person of each place modal."""
    cell, tells = _largest(truth.places)
    area_cell, area_tells = _largest(truth.areas)
    tells &= truth.places.max(axis=1, initial=0) > 1
    area_tells &= truth.areas.max(axis=1, initial=0) > 1
    return _asked(truth, (cell, tells), (area_cell, area_tells))


def modal_guess(published: Neighbours) -> Ints:
    """What the modal guesser says in each place."""
    cell, tells = _largest(published.places)
    area_cell, area_tells = _largest(published.areas)
    tells &= published.places.sum(axis=1) > 1
    area_tells &= published.areas.sum(axis=1) > 1
    return _asked(published, (cell, tells), (area_cell, area_tells))


def shares(published: Neighbours) -> Floats:
    """The chances with which the proportional guesser says each cell, in each place."""
    counts = published.places.astype(np.float64)
    area = published.areas[published.around]
    alone = published.places.sum(axis=1) <= 1
    counts[alone] = area[alone]
    lost = alone & (area.sum(axis=1) <= 1)
    counts[lost] = published.nation
    found: Floats = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return found


def proportional_guess(chances: Floats, place: NDArray[Any], rng: np.random.Generator) -> Ints:
    """One draw of the proportional guesser for each record, by its place."""
    cell = np.empty(len(place), np.int64)
    at = rng.random(len(place))
    order = np.argsort(place, kind="stable")
    bounds = np.searchsorted(place[order], np.arange(len(chances) + 1))
    for number in np.flatnonzero(np.diff(bounds)):
        rows = order[bounds[number] : bounds[number + 1]]
        ends = np.cumsum(chances[number])
        cell[rows] = np.searchsorted(ends, at[rows] * ends[-1], side="right")
    return cell


class Reach(NamedTuple):
    """How often guessers can be right about the people of a place, in persons; see `reach`."""

    modal: Floats
    proportional: Floats
    modal_without: Floats
    proportional_without: Floats


def reach(published: Neighbours) -> Reach:
    """How many people of each place guessers can be right about.

    The first two are the paper's upper bounds: the persons in the largest cell, and the sum of squared shares times the
    persons. The others are what the same guessers get right of each person when that person has been taken out first:
    the honest counterfactual, of which the bounds are simplifications. (In the paper's example of ten, nine alike: 90%
    and 82%; without: 90% and 80%, where the paper prints 81.1%, crediting the tenth with 1/9 though nobody like them is
    left.)
    """
    counts = published.places.astype(np.float64)
    size = counts.sum(axis=1)
    modal = counts.max(axis=1, initial=0)
    squares = (counts * counts).sum(axis=1) / np.maximum(size, 1)
    row, cell = np.nonzero(published.places)
    some = published.places[row, cell]
    left = Neighbours(
        _without(published.places[row], cell),
        _without(published.areas[published.around[row]], cell),
        np.arange(len(row)),
        published.nation,
    )
    guess, chance = modal_guess(left), shares(left)[np.arange(len(row)), cell]
    # the nation too is without this person
    nation, total = published.nation, int(published.nation.sum())
    asked = ~_tells(left.places) & ~_tells(left.areas)
    guess[asked] = (nation - np.eye(len(nation), dtype=np.int64)).argmax(axis=1)[cell[asked]]
    right = guess == cell
    lost = (left.places.sum(axis=1) <= 1) & (left.areas.sum(axis=1) <= 1)
    chance = np.where(lost, (nation[cell] - 1) / max(total - 1, 1), chance)
    right_without, chance_without = (np.bincount(row, part * some, len(size)) for part in (right.astype(float), chance))
    return Reach(modal, squares, right_without.astype(np.float64), chance_without.astype(np.float64))


def _tells(counts: Ints) -> Flags:
    only: Flags = _largest(counts)[1] & (counts.sum(axis=1) > 1)
    return only


def _without(counts: Ints, cell: Ints) -> Ints:
    left = counts.copy()
    left[np.arange(len(cell)), cell] -= 1
    return left


def _largest(counts: Ints) -> tuple[Ints, Flags]:
    """The largest cell of each row (the first of equals), and whether it is the only one as large."""
    if not len(counts):
        return np.empty(0, np.int64), np.empty(0, np.bool_)
    most = counts.max(axis=1)
    return counts.argmax(axis=1), (np.count_nonzero(counts == most[:, None], axis=1) == 1) & (most > 0)


def _asked(neighbours: Neighbours, place: tuple[Ints, Flags], area: tuple[Ints, Flags]) -> Ints:
    """The place's cell where it can tell, else the area's, else the nation's (of equals the first)."""
    of_area = np.where(area[1], area[0], int(neighbours.nation.argmax()))
    return np.where(place[1], place[0], of_area[neighbours.around])
