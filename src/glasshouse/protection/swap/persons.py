"""Who lives where once the households of a file of persons have traded places, and how is it without one person?

A person less makes a household smaller, or empty. It is then alike to others than it was, and trades with others; or
it is entirely imputed now, and stays. And some neighbours may be at risk: the block has become small, or one of them
alone there with a race; or no longer, as the one who was alone is gone. All other households are as they were, and so
are their draws. So it is enough to swap again those that are alike to one of these, in area, persons and adults.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from glasshouse.errors import InputError
from glasshouse.protection.swap.by_rates import Draws, Flags, Households, Ints, Rates, at_risk, swap, swap_key

NOWHERE = -1  # the block of a unit without persons
_NO_KEY = 0  # of units that never take part; that of a household is at least 1
_KINDS = {"Ints": np.dtype(np.int64), "Flags": np.dtype(np.bool_)}


@dataclass(frozen=True)
class Persons:
    """A file of persons, a row each, and the units that they live in. A block lies in one area and in one `near`."""

    unit: Ints  # the number of the household or group quarters of each person
    adult: Flags
    cell: Ints  # race and origin, or whatever makes a person stand out who is alone with it in a block
    identified: Flags  # a household without anyone identified is entirely imputed, and never swapped
    unit_block: Ints  # of each unit; blocks are numbered from 0
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
        if np.any((self.unit < 0) | (self.unit >= self.units)) or np.any(self.unit_block < 0):
            raise InputError("every person needs a unit that exists, and every unit a block numbered from 0")

    def __len__(self) -> int:
        return len(self.unit)

    @property
    def units(self) -> int:
        """How many households and group quarters there are, with those that nobody lives in."""
        return len(self.unit_block)


@dataclass(frozen=True)
class Settled:
    """Where every unit is after swapping, and what it takes to say where it would be without some person."""

    unit_block: Ints  # NOWHERE for a unit without persons
    persons: Persons
    rates: Rates
    draws: Draws
    small: int
    homes: Households  # all units before swapping; group quarters, and units without persons, are fixed
    alike: Mapping[tuple[int, int], Ints]  # by area and key, the households that may be swapped
    of_block: Sequence[Ints]  # the persons of each block before swapping

    def without(self, person: int) -> Ints:
        """Where every unit would be if that person had not been in the file; NOWHERE for one that is empty then.

        Exactly as if all was done again, with the same draws, for the file without the person.
        """
        if not 0 <= person < len(self.persons):
            raise InputError(f"there is no person {person} in a file of {len(self.persons)} persons")
        persons, homes, home = self.persons, self.homes, int(self.persons.unit[person])
        others = self.of_block[persons.unit_block[home]]
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
        again = Households(homes.block[rows], homes.area[rows], homes.near[rows], key[rows], risk[rows], fixed[rows])
        unit_block = self.unit_block.copy()
        unit_block[rows] = swap(again, self.rates, self.draws.some(rows)).block
        if not len(family):
            unit_block[home] = NOWHERE
        return unit_block


def settle(persons: Persons, rates: Rates, draws: Draws, small: int = 10) -> Settled:
    """Swap the households of a file of persons. Every unit has a row of draws. What is small is for you to say."""
    units, block = persons.units, persons.unit_block
    everyone = np.ones(len(persons), np.bool_)
    size, adults, identified = (
        np.bincount(persons.unit[some], minlength=units) for some in (everyone, persons.adult, persons.identified)
    )
    takes_part = persons.unit_household & (size > 0)
    key = np.full(units, _NO_KEY, np.int64)
    key[takes_part] = swap_key(size[takes_part], adults[takes_part])
    in_block = np.bincount(block[persons.unit], minlength=np.max(block, initial=-1) + 1)
    risk = at_risk(block, in_block, persons.unit, persons.cell, small)
    homes = Households(block, persons.unit_area, persons.unit_near, key, risk, ~takes_part | (identified == 0))
    unit_block = np.where(size > 0, swap(homes, rates, draws).block, NOWHERE)
    of_block = np.split(np.argsort(block[persons.unit], kind="stable"), np.cumsum(in_block)[:-1])
    return Settled(unit_block, persons, rates, draws, small, homes, _alike(homes), of_block)


def _key(persons: Persons, family: Ints) -> int:
    """What a household of these persons agrees on with those that it may trade places with."""
    if len(family) == 0:
        return _NO_KEY
    return int(swap_key(np.array([len(family)]), np.array([np.count_nonzero(persons.adult[family])]))[0])


def _alike(homes: Households) -> dict[tuple[int, int], Ints]:
    """By area and key, the households that may be swapped; block by block, so that `Households` are checked quickly."""
    rows = np.flatnonzero(~homes.fixed)
    rows = rows[np.lexsort((homes.block[rows], homes.key[rows], homes.area[rows]))]
    new = (np.diff(homes.area[rows]) != 0) | (np.diff(homes.key[rows]) != 0)
    groups = np.split(rows, np.flatnonzero(new) + 1) if len(rows) else []
    return {(int(homes.area[group[0]]), int(homes.key[group[0]])): group for group in groups}
