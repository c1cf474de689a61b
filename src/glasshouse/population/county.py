"""How is a whole county made? Tract by tract, each from its own seed, so that any of them can be made again."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from glasshouse.population.homes import Homes, describe
from glasshouse.population.identity import Identities, identify
from glasshouse.population.people import People, populate
from glasshouse.population.places import Places, lay_out
from glasshouse.population.preset import Preset

_PLACES, _PEOPLE, _HOMES, _IDENTITIES, _LISTS, _SAMPLE, SWAP, SUBSIDY = range(8)  # what chance is for


@dataclass(frozen=True)
class Tract:
    """The people of one tract, and where its blocks and persons begin in those of the county."""

    number: int
    first_block: int
    first_person: int
    people: People
    homes: Homes
    identities: Identities


@dataclass(frozen=True)
class County:
    """A county (or several) of so many persons: a preset and a seed are all it takes."""

    preset: Preset
    persons: int
    seed: int

    @cached_property
    def places(self) -> Places:
        return lay_out(self.preset, self.persons, self.chance(_PLACES))

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        return np.concatenate([[0], np.cumsum(self.places.persons)])

    def chance(self, purpose: int, tract: int = 0) -> np.random.Generator:
        """Chance for one purpose in one tract, whatever else is drawn."""
        return np.random.default_rng([self.seed, purpose, tract])

    def lists(self, tract: int) -> np.random.Generator:
        return self.chance(_LISTS, tract)

    def sampling(self, tract: int) -> np.random.Generator:
        return self.chance(_SAMPLE, tract)

    def tract(self, number: int) -> Tract:
        """The people of a tract; the same every time."""
        blocks = self.places.of_tract(number)
        people = populate(self.preset, self.places.persons[blocks], self.chance(_PEOPLE, number))
        homes = describe(self.preset, people, self.chance(_HOMES, number))
        first = int(self._ends[blocks.start])
        return Tract(
            number, blocks.start, first, people, homes, identify(people, first, self.chance(_IDENTITIES, number))
        )
