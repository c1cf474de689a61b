"""What would the attack say in another world? Records are tabulated, rebuilt from the tables, and asked again.

The worlds that matter are the one that is, and the one in which a certain person had not been there. What is inferred
about that person in the first and not in the second, their own answer gave away.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from glasshouse.attack.people.reidentify import Features, Ints, Links, People, attached, putative, taken
from glasshouse.attack.published import Published, Unit
from glasshouse.attack.reconstruct import reconstruct
from glasshouse.model.records import Codes
from glasshouse.model.release import Counts
from glasshouse.model.tabulate import Tabulator
from glasshouse.program.ladder import Ladder


@dataclass(frozen=True)
class World:
    """The records of a unit that tables are made from: by place, then by what they say."""

    place: Ints
    codes: Codes

    @classmethod
    def of(cls, place: Ints, codes: Codes) -> World:
        order = np.lexsort((*codes.T[::-1], place))
        return cls(place[order], np.ascontiguousarray(codes[order]))

    def without(self, row: int) -> World:
        return World(np.delete(self.place, row), np.ascontiguousarray(np.delete(self.codes, row, axis=0)))


@dataclass(frozen=True)
class Tabled:
    """How a world is published: its tables, and the places and areas that they speak of."""

    published: Published
    places: tuple[str, ...]
    areas: tuple[str, ...]
    of: Ints  # the area of each place
    levels: tuple[str, str | None]  # of the places, of the areas

    def tables(self, world: World) -> Unit:
        """The numbers that would be published."""
        inner, outer = self.published.counting
        counts = _counted(inner, self.published.variables, self.levels[0], self.places, world)
        if outer is None or self.levels[1] is None:
            return Unit(counts, None, np.zeros(len(self.places), np.int64))
        area = self.of[world.place]
        order = np.argsort(area, kind="stable")
        grouped = World(area[order], np.ascontiguousarray(world.codes[order]))
        areas = _counted(outer, self.published.around_variables, self.levels[1], self.areas, grouped)
        return Unit(counts, areas, self.of)

    def rebuilt(self, world: World, rng: np.random.Generator, ladder: Ladder) -> World:
        """What an attacker rebuilds from the tables of a world."""
        found = reconstruct(self.published, self.tables(world), rng, ladder)
        return World(found.place.astype(np.int64), found.codes)


def _counted(
    tabulator: Tabulator, variables: tuple[str, ...], level: str, names: tuple[str, ...], world: World
) -> Counts:
    """The published variables of each place, or area, that records are counted in."""
    bounds = np.searchsorted(world.place, np.arange(len(names) + 1)).astype(np.int64)
    row, column, value = tabulator.count(world.codes, bounds)
    counts = np.zeros((len(names), len(tabulator.variables)), np.int64)
    counts[row, column] = value
    at = {variable: number for number, variable in enumerate(tabulator.variables)}
    counts = np.ascontiguousarray(counts[:, [at[variable] for variable in variables]])
    return Counts(level, names, variables, counts, counts)


def ordered(world: World, features: Features, rng: np.random.Generator) -> People:
    """The records of a world in the order in which they are linked."""
    order = taken(world.place, rng)
    levels = features.levels(world.codes[order])
    return People.of(world.place[order], features.exactly(levels), features.in_bins(levels), features.cell(levels))


def inferred(data: People, listed: People, place: int, row: int) -> int:
    """What is attached to one listed person, by linking their place alone; `NOBODY` for nothing."""
    here, there = _at(data, place), _at(listed, place)
    links: Links = putative(here, there)
    return int(attached(here, links)[row - int(np.searchsorted(listed.place, place))])


def _at(people: People, place: int) -> People:
    begin, end = np.searchsorted(people.place, [place, place + 1])
    zero = np.zeros(end - begin, np.int32)
    return People(zero, people.exact[begin:end], people.binned[begin:end], people.cell[begin:end])
