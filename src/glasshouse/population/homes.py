"""How does the census describe a household? Its size, type, tenure and householder, from the persons in it.

The columns and codes are those of the 2020 household file (TEN, VACS, HHSIZE, HHT, HHT2, THHSPAN, THHLDRAGE, THHRACE,
TP18, TP65). All but tenure and vacancy follow from the members, so no household can be one that the census calls
impossible.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glasshouse.population.people import (
    ADULT,
    CHILD,
    FEMALE,
    HOUSEHOLD,
    HOUSEHOLDER,
    PARTNER,
    RELATIVE,
    SPOUSE,
    VACANT,
    People,
)
from glasshouse.population.preset import Preset

Ints = NDArray[np.int64]

COLUMNS = ("TEN", "VACS", "HHSIZE", "HHT", "HHT2", "THHSPAN", "THHLDRAGE", "THHRACE", "TP18", "TP65")
LARGEST = 7  # seven or more persons are one size
ELDERLY = 65
AGES = (15, 25, 35, 45, 55, 60, 65, 75, 85)  # where the age groups of householders begin
SEVERAL = 7  # two or more races
# how home ownership goes with age: stages of life, owners against the mean, and the share of them without a mortgage
_STAGES = (0, 25, 35, 45, 55, 65, 75)
_OWNED = (0.28, 0.66, 0.96, 1.10, 1.18, 1.22, 1.12)
_PAID = (0.15, 0.10, 0.14, 0.22, 0.38, 0.60, 0.78)


@dataclass(frozen=True)
class Homes:
    """The housing units of a tract: what the census says of each, and how many persons, adults and children it has."""

    columns: dict[str, Ints]
    persons: Ints
    adults: Ints
    children: Ints
    race: Ints  # the householder's, a bit for each race; 0 without one
    hispanic: Ints

    @property
    def occupied(self) -> NDArray[np.bool_]:
        return self.columns["HHSIZE"] > 0


def describe(preset: Preset, people: People, rng: np.random.Generator) -> Homes:
    """What the census says of every unit; tenure and vacancy status are drawn."""
    units = len(people.unit_block)
    household = people.unit_kind == HOUSEHOLD
    persons, adults = _count(people, np.ones(len(people.unit), np.bool_)), _count(people, people.age >= ADULT)
    head = np.full(units, -1, np.int64)
    heads = np.flatnonzero(people.relation == HOUSEHOLDER)
    head[people.unit[heads]] = heads
    married, partnered = _any(people, people.relation == SPOUSE), _any(people, people.relation == PARTNER)
    own_child = _any(people, (people.relation == CHILD) & (people.age < ADULT))
    related = _any(people, np.isin(people.relation, (CHILD, RELATIVE)))
    female = household & (people.sex[head] == FEMALE)
    alone = household & (persons == 1)
    hht = np.select(
        [married, related, alone], [1, np.where(female, 3, 2), np.where(female, 6, 4)], np.where(female, 7, 5)
    )
    lone = np.select([alone, own_child, related], [0, 1, 2], 3)  # without spouse or partner
    hht2 = np.select(
        [married, partnered], [np.where(own_child, 1, 2), np.where(own_child, 3, 4)], np.where(female, 5, 9) + lone
    )
    race = np.where(household, people.race[head], 0)
    single = np.log2(np.maximum(race & -race, 1)).astype(np.int64) + 1
    hispanic = np.where(household, people.hispanic[head], 0)
    columns = {
        "TEN": np.where(household, _tenure(preset, married, np.where(household, people.age[head], 0), rng), 0),
        "VACS": np.where(people.unit_kind == VACANT, _vacancy(preset, units, rng), 0),
        "HHSIZE": np.where(household, np.minimum(persons, LARGEST), 0),
        "HHT": np.where(household, hht, 0),
        "HHT2": np.where(household, hht2, 0),
        "THHSPAN": np.where(household, hispanic + 1, 0),
        "THHLDRAGE": np.where(household, np.searchsorted(AGES, people.age[head], side="right"), 0),
        "THHRACE": np.where(household, np.where(race & (race - 1), SEVERAL, single), 0),
        "TP18": np.where(household, persons > adults, 0).astype(np.int64),
        "TP65": np.where(household, _any(people, people.age >= ELDERLY), 0).astype(np.int64),
    }
    return Homes(columns, persons, adults, persons - adults, race, hispanic)


def _count(people: People, chosen: NDArray[np.bool_]) -> Ints:
    return np.bincount(people.unit[chosen], minlength=len(people.unit_block)).astype(np.int64)


def _any(people: People, chosen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return np.asarray(_count(people, chosen) > 0)


def _tenure(preset: Preset, married: NDArray[np.bool_], age: Ints, rng: np.random.Generator) -> Ints:
    """1 owned with a mortgage, 2 owned free and clear, 3 rented, 4 without payment of rent: by marriage and age."""
    draw, wed = rng.random(len(married)), married.astype(np.int64)
    owned = (preset.rates("households", "owned_mortgage") + preset.rates("households", "owned_free"))[wed]
    stage = np.searchsorted(_STAGES, age, side="right") - 1
    without = float(preset["households"]["without_rent"]) / 100
    owned = np.minimum(owned * np.array(_OWNED)[stage], 1 - without)
    mortgage = owned * (1 - np.array(_PAID)[stage])
    return np.select([draw < mortgage, draw < owned, draw < owned + without], [1, 2, 4], 3)


def _vacancy(preset: Preset, units: int, rng: np.random.Generator) -> Ints:
    share = preset.shares("households", "vacancy")
    return np.asarray(rng.choice(len(share), units, p=share) + 1)
