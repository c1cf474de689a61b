"""Who lives where once the households of a file of persons have traded places, and how is it without one person?

A person less makes a household smaller, or empty. It is then alike to others than it was, and trades with others; or
it is entirely imputed now, and stays. And some neighbours may be at risk: the place has become small, or one of them
alone there with a cell; or no longer, as the one who was alone is gone. All other households are as they were, and so
are their draws. So it is enough to swap again those that are alike to one of these, in area, persons and adults.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from glasshouse.errors import InputError
from glasshouse.protection.swap.by_rates import Draws, Households, Rates, swap_by_rates
from glasshouse.protection.swap.households import Flags, Ints, alike_key, at_risk

NOWHERE = -1  # the place of a unit without persons
_NO_KEY = 0  # of units that never take part; that of a household is at least 1
_KINDS = {"Ints": np.dtype(np.int64), "Flags": np.dtype(np.bool_)}


@dataclass(frozen=True)
class Persons:
    """A file of persons, a row each, and the units that they live in. A place lies in one area and in one `near`."""

    unit: Ints  # the number of the household or group quarters of each person
    adult: Flags
    cell: Ints  # whatever makes a person stand out who is alone with it in a place
    identified: Flags  # a household without anyone identified is entirely imputed, and never swapped
    unit_place: Ints  # of each unit; places are numbered from 0
    unit_area: Ints  # which a swap stays in
    unit_near: Ints  # which a swap leaves
    unit_household: Flags  # or else group quarters, which are never swapped

    def __post_init__(self) -> None:
        for field in fields(self):
            column, rows = getattr(self, field.name), self.units if field.name.startswith("unit_") else len(self)
            kind = _KINDS[str(field.type)]
            if column.shape != (rows,) or column.dtype != kind:
                found = f"{column.dtype} of shape {column.shape}"
                raise InputError(f"'{field.name}' of the persons must be {kind} of shape {(rows,)}; found {found}")
        if np.any((self.unit < 0) | (self.unit >= self.units)) or np.any(self.unit_place < 0):
            raise InputError("every person needs a unit that exists, and every unit a place numbered from 0")

    def __len__(self) -> int:
        return len(self.unit)

    @property
    def units(self) -> int:
        """How many households and group quarters there are, with those that nobody lives in."""
        return len(self.unit_place)


@dataclass(frozen=True)
class Settled:
    """Where every unit is after swapping, and what it takes to say where it would be without some person."""

    unit_place: Ints  # NOWHERE for a unit without persons
    persons: Persons
    rates: Rates
    draws: Draws
    small: int
    homes: Households  # all units before swapping; group quarters, and units without persons, are fixed
    alike: Mapping[tuple[int, int], Ints]  # by area and key, the households that may be swapped
    of_place: Sequence[Ints]  # the persons of each place before swapping

    def without(self, person: int) -> Ints:
        """Where every unit would be if that person had not been in the file; NOWHERE for one that is empty then.

        Exactly as if all was done again, with the same draws, for the file without the person.
        """
        if not 0 <= person < len(self.persons):
            raise InputError(f"there is no person {person} in a file of {len(self.persons)} persons")
        persons, homes, home = self.persons, self.homes, int(self.persons.unit[person])
        others = self.of_place[persons.unit_place[home]]
        others = others[others != person]
        family = others[persons.unit[others] == home]
        key, risk, fixed = homes.key.copy(), homes.risk.copy(), homes.fixed.copy()
        if not homes.fixed[home]:  # who is fixed stays so
            key[home] = _key(persons, family)
            fixed[home] = not np.any(persons.identified[family])
        around, number = np.unique(persons.unit[others], return_inverse=True)
        risk[around] = at_risk(np.zeros_like(around), np.array([len(others)]), number, persons.cell[others], self.small)
        # Whoever is fixed might as well be absent: nobody else's swap depends on them.
        changed = np.append(around[risk[around] != homes.risk[around]], home)
        changed = changed[~homes.fixed[changed]]
        groups = {pair for keys in (homes.key, key) for pair in zip(homes.area[changed], keys[changed], strict=True)}
        rows = np.concatenate([np.empty(0, np.int64), *(self.alike[pair] for pair in groups & self.alike.keys())])
        again = Households(homes.place[rows], homes.area[rows], homes.near[rows], key[rows], risk[rows], fixed[rows])
        unit_place = self.unit_place.copy()
        unit_place[rows] = swap_by_rates(again, self.rates, self.draws.some(rows)).place
        if not len(family):
            unit_place[home] = NOWHERE
        return unit_place


def settle(persons: Persons, rates: Rates, draws: Draws, small: int = 10) -> Settled:
    """Swap the households of a file of persons. Every unit has a row of draws. What is small is for you to say."""
    units, place = persons.units, persons.unit_place
    everyone = np.ones(len(persons), np.bool_)
    size, adults, identified = (
        np.bincount(persons.unit[some], minlength=units) for some in (everyone, persons.adult, persons.identified)
    )
    takes_part = persons.unit_household & (size > 0)
    key = np.full(units, _NO_KEY, np.int64)
    key[takes_part] = alike_key(size[takes_part], adults[takes_part])
    in_place = np.bincount(place[persons.unit], minlength=np.max(place, initial=-1) + 1)
    risk = at_risk(place, in_place, persons.unit, persons.cell, small)
    homes = Households(place, persons.unit_area, persons.unit_near, key, risk, ~takes_part | (identified == 0))
    unit_place = np.where(size > 0, swap_by_rates(homes, rates, draws).place, NOWHERE)
    of_place = np.split(np.argsort(place[persons.unit], kind="stable"), np.cumsum(in_place)[:-1])
    return Settled(unit_place, persons, rates, draws, small, homes, _alike(homes), of_place)


def _key(persons: Persons, family: Ints) -> int:
    """What a household of these persons agrees on with those that it may trade places with."""
    if len(family) == 0:
        return _NO_KEY
    return int(alike_key(np.array([len(family)]), np.array([np.count_nonzero(persons.adult[family])]))[0])


def _alike(homes: Households) -> dict[tuple[int, int], Ints]:
    """By area and key, the households that may be swapped; place by place, so that `Households` are checked quickly."""
    rows = np.flatnonzero(~homes.fixed)
    rows = rows[np.lexsort((homes.place[rows], homes.key[rows], homes.area[rows]))]
    new = (np.diff(homes.area[rows]) != 0) | (np.diff(homes.key[rows]) != 0)
    groups = np.split(rows, np.flatnonzero(new) + 1) if len(rows) else []
    return {(int(homes.area[group[0]]), int(homes.key[group[0]])): group for group in groups}
