"""Who lives in a tract? Households with their members, group quarters and vacant units, drawn block by block.

A household is a size, then a type, then members whose ages make sense together: a partner close in age to the
householder, children a generation younger, now and then a parent or someone else. Race and origin come from the block,
whose mix comes from its tract, and are mostly shared in a household; children of mixed couples are often of both
races. Everything is drawn for all households of a tract at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glasshouse.population.preset import HISPANIC, MANY, RACES, Preset

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

HOUSEHOLDER, SPOUSE, PARTNER, CHILD, RELATIVE, NONRELATIVE, RESIDENT = range(7)  # RESIDENT: of group quarters
HOUSEHOLD, QUARTERS, VACANT = range(3)
MALE, FEMALE = 0, 1
OLDEST, VERY_OLD, ADULT = 110, 99, 18
YOUNGEST_PARENT, OLDEST_MOTHER, OLDEST_FATHER = 15, 49, 60  # years between a parent and an own child
# share of those of two or more races by their races, a bit for each; the rest is spread over three and more
_PAIRS = {
    ("white", "black"): 20, ("white", "asian"): 18, ("white", "sor"): 17, ("white", "aian"): 16, ("white", "nhopi"): 2,
    ("black", "sor"): 4, ("black", "aian"): 3, ("black", "asian"): 2, ("black", "nhopi"): 0.7, ("asian", "sor"): 3,
    ("asian", "nhopi"): 2, ("aian", "sor"): 1.5, ("aian", "asian"): 0.7, ("nhopi", "sor"): 0.6, ("aian", "nhopi"): 0.2,
}  # fmt: skip
_MORE = {3: 0.4, 4: 0.05, 5: 0.01, 6: 0.01}


@dataclass(frozen=True)
class People:
    """The housing units of a tract and the persons in them, unit by unit."""

    unit_block: Ints  # the block of each unit, counted within the tract
    unit_kind: Ints
    quarters: Ints  # the kind of group quarters, from 1; 0 for the rest
    unit: Ints  # the unit of each person
    relation: Ints
    sex: Ints
    age: Ints
    race: Ints  # a set of races, a bit for each of RACES
    hispanic: Ints


def populate(preset: Preset, persons: Ints, rng: np.random.Generator) -> People:
    """Households, group quarters and vacant units for blocks of so many persons."""
    inside = _in_quarters(preset, persons, rng)
    block, unit, rank = _households(preset, persons - inside, rng)
    size = np.bincount(unit) if len(unit) else np.zeros(0, np.int64)
    unit_block = block[np.flatnonzero(rank == 0)]
    relation, sex, age = _members(preset, unit, rank, size, rng)
    mix = _mixes(preset, persons, rng)
    race, hispanic = _races(preset, unit, relation, unit_block, mix, rng)
    homes = len(size)
    facility = np.flatnonzero(inside)
    kind = rng.choice(len(preset["group_quarters"]["kinds"]), len(facility), p=preset.shares("group_quarters", "kinds"))
    resident = np.repeat(np.arange(len(facility)), inside[facility])
    gq_sex, gq_age = _residents(kind[resident], rng)
    gq_race, gq_hispanic = _drawn(preset, _group(mix[facility[resident]], rng), rng)
    empty = _vacant(preset, unit_block, len(persons), rng)
    return People(
        np.concatenate([unit_block, facility, empty]),
        np.repeat([HOUSEHOLD, QUARTERS, VACANT], [homes, len(facility), len(empty)]),
        np.concatenate([np.zeros(homes, np.int64), kind + 1, np.zeros(len(empty), np.int64)]),
        np.concatenate([unit, homes + resident]),
        np.concatenate([relation, np.full(len(resident), RESIDENT)]),
        np.concatenate([sex, gq_sex]),
        np.concatenate([age, gq_age]),
        np.concatenate([race, gq_race]),
        np.concatenate([hispanic, gq_hispanic]),
    )


def _in_quarters(preset: Preset, persons: Ints, rng: np.random.Generator) -> Ints:
    """How many persons of each block live in group quarters: most or all of a few blocks that are not small."""
    share = float(preset["group_quarters"]["share"]) / 100
    fit = persons >= 30
    chance = np.where(fit, min(1.0, share / 0.7 * persons.sum() / max(persons[fit].sum(), 1)), 0.0)
    chosen = rng.random(len(persons)) < chance
    part = np.where(rng.random(len(persons)) < 0.4, 1.0, 0.2 + 0.6 * rng.random(len(persons)))
    return np.where(chosen, np.maximum((persons * part).astype(np.int64), 1), 0)


def _households(preset: Preset, persons: Ints, rng: np.random.Generator) -> tuple[Ints, Ints, Ints]:
    """The block and household of each person and the rank in it: a stream of sizes, cut where blocks end."""
    share = preset.shares("households", "sizes")
    block = np.repeat(np.arange(len(persons)), persons)
    sizes = rng.choice(len(share), len(block) + 1, p=share) + 1
    first = np.zeros(len(block), np.bool_)
    begins = np.cumsum(sizes) - sizes
    first[begins[begins < len(block)]] = True
    first[1:] |= block[1:] != block[:-1]
    unit = np.cumsum(first) - 1
    return block, unit, np.arange(len(block)) - np.flatnonzero(first)[unit]


def _members(preset: Preset, unit: Ints, rank: Ints, size: Ints, rng: np.random.Generator) -> tuple[Ints, Ints, Ints]:
    """Relation, sex and age of every person of a household."""
    homes, persons = len(size), len(unit)
    at = np.minimum(size, len(preset["households"]["sizes"])) - 1
    draw = 100 * rng.random(homes)
    numbers = preset["households"]
    married = np.asarray(numbers["married"], np.float64)[at]
    partners = married + np.asarray(numbers["partners"], np.float64)[at]
    roommates = partners + np.asarray(numbers["roommates"], np.float64)[at]
    is_married, is_coupled = draw < married, draw < partners
    strangers = (draw >= partners) & (draw < roommates)
    lone_parent = ~is_coupled & ~strangers & (size > 1)
    head_age = _head_ages(size, strangers, rng)
    alone_rate = numbers["female_alone"] / 100 + np.interp(head_age, [40, 85], [-0.12, 0.22])  # women live longer
    female = rng.random(homes) < np.select([size == 1, lone_parent], [alone_rate, numbers["female_lone"] / 100], 0.45)
    relation, sex, age = np.full(persons, CHILD), (rng.random(persons) < 0.49).astype(np.int64), head_age[unit]
    head, second = rank == 0, rank == 1
    relation[head], sex[head] = HOUSEHOLDER, female.astype(np.int64)
    partner = second & is_coupled[unit]
    relation[partner] = np.where(is_married[unit[partner]], SPOUSE, PARTNER)
    of_head = sex[np.flatnonzero(partner) - 1]
    sex[partner] = np.where(rng.random(partner.sum()) < 0.99, 1 - of_head, of_head)
    older = np.where(sex[partner] == of_head, 0.0, np.where(of_head == FEMALE, 2.0, -2.0))  # men are, by two years
    age[partner] = _grown_up(age[partner] + older + rng.normal(0, 3.5, partner.sum()), rng)
    rest = (rank > 0) & ~partner
    other = rest & (rng.random(persons) >= 0.88)
    alone = rest & strangers[unit]
    _children(rest & ~other & ~alone, unit, sex, age, relation, head_age, female, rng)
    kind = rng.random(persons)  # a parent, someone of about the same age, or a grandchild
    apart = age + np.select([kind < 0.3, kind < 0.65], [rng.normal(27, 5, persons), rng.normal(0, 8, persons)],
                            rng.normal(-50, 8, persons))  # fmt: skip
    apart = np.where(apart < 0, rng.random(persons) * ADULT, apart)
    age[other] = np.where(apart > VERY_OLD, age, apart)[other]
    stranger = (rng.random(persons) < 0.45) & (kind >= 0.3) & (kind < 0.65)
    relation[other] = np.where(stranger, NONRELATIVE, RELATIVE)[other]
    relation[alone] = NONRELATIVE
    age[alone] = _grown_up(age + rng.normal(0, 5, persons), rng)[alone]
    return relation, sex, np.clip(np.floor(age), 0, OLDEST).astype(np.int64)


def _head_ages(size: Ints, strangers: Flags, rng: np.random.Generator) -> Floats:
    homes = len(size)
    young = rng.random(homes) < 0.40
    lone = np.where(young, rng.normal(34, 10, homes), rng.normal(68, 15, homes))
    pair = np.where(young, rng.normal(36, 10, homes), rng.normal(64, 12, homes))
    shared = rng.normal(31, 10, homes)
    family = rng.normal(40.5, 11, homes)
    age = np.select([strangers, size == 1, size == 2], [shared, lone, pair], family)
    return np.round(_grown_up(age, rng))


def _grown_up(age: Floats, rng: np.random.Generator) -> Floats:
    """Ages of adults: what chance put below or far above is drawn again, so that no age is crowded."""
    young, old = ADULT + 14 * rng.random(len(age)), VERY_OLD - 14 * np.sqrt(rng.random(len(age)))
    return np.asarray(np.select([age < ADULT, age > VERY_OLD], [young, old], age))


def _children(
    chosen: Flags, unit: Ints, sex: Ints, age: Floats, relation: Ints, head: Floats, female: Flags,
    rng: np.random.Generator,
) -> None:  # fmt: skip
    """Own children: a generation younger than the householder; who cannot be one is another relative (a grandchild)."""
    at = np.flatnonzero(chosen)
    parent = head[unit[at]]
    years = parent - rng.normal(28, 6, len(at))
    latest = parent - YOUNGEST_PARENT
    years = np.where((years < 0) | (years > latest), rng.random(len(at)) * np.minimum(latest, ADULT), years)
    age[at] = np.floor(np.maximum(years, 0))
    gap = parent - age[at]
    most = np.where(female[unit[at]], OLDEST_MOTHER, OLDEST_FATHER)
    relation[at] = np.where((gap >= YOUNGEST_PARENT) & (gap <= most), CHILD, RELATIVE)


def _residents(kind: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Sex and age in group quarters: correctional, juvenile, nursing, other institutional, college, military, other."""
    count = len(kind)
    centre = np.array([34.0, 16, 82, 45, 19.6, 23, 42])[kind]
    spread = np.array([10.0, 1.5, 9, 15, 1.3, 4, 14])[kind]
    least, most = np.array([18, 12, 55, 18, 18, 18, 18])[kind], np.array([80, 20, 105, 90, 26, 45, 90])[kind]
    female = np.array([0.09, 0.15, 0.68, 0.4, 0.55, 0.12, 0.35])[kind]
    age = np.clip(np.round(rng.normal(centre, spread)), least, most)
    return (rng.random(count) < female).astype(np.int64), age.astype(np.int64)


def _vacant(preset: Preset, unit_block: Ints, blocks: int, rng: np.random.Generator) -> Ints:
    """The blocks of vacant units: as many beside the occupied ones as the preset says."""
    rate = float(preset["households"]["vacant"]) / 100
    odds = rate / (1 - rate)
    return np.repeat(np.arange(blocks), rng.poisson(odds * np.bincount(unit_block, minlength=blocks)))


def _mixes(preset: Preset, persons: Ints, rng: np.random.Generator) -> Floats:
    """The shares of the groups in each block: around those of the tract, which lie around the preset's."""
    numbers = preset["composition"]
    nation = preset.groups
    tract = _dirichlet(nation[None, :] * float(numbers["tract"]), rng)
    median, spread = float(numbers["block"]), float(numbers["spread"])
    concentration = rng.lognormal(np.log(median), spread, (len(persons), 1))
    concentration *= np.maximum(persons / 50, 1.0)[:, None] ** float(numbers["grows"])
    strays = float(numbers["strays"]) / 100
    return np.asarray((1 - strays) * _dirichlet(tract * concentration, rng) + strays * nation)


def _dirichlet(shape: Floats, rng: np.random.Generator) -> Floats:
    """A composition per row; shapes may be so small that all draws vanish, then the largest shape takes all."""
    draws = rng.standard_gamma(shape) + 1e-300 * (shape == shape.max(axis=1, keepdims=True))
    return np.asarray(draws / draws.sum(axis=1, keepdims=True))


def _group(mix: Floats, rng: np.random.Generator) -> Ints:
    """A group for each row of shares."""
    above = rng.random((len(mix), 1)) > np.cumsum(mix, axis=1)
    return np.asarray(np.minimum(above.sum(axis=1), HISPANIC))


def _drawn(preset: Preset, group: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Race and origin of persons of a group: one race is what it says, the others are drawn."""
    sets = np.arange(1, 64)
    several = np.array([_several(int(some)) for some in sets])
    one = np.array([float(preset["hispanic_race"][name]) for name in RACES])
    hispanic = several / several.sum() * max(0.0, 100 - one.sum())
    hispanic[2 ** np.arange(6) - 1] = one
    race = (1 << np.minimum(group, 5)).astype(np.int64)
    for which, weights in ((MANY, several), (HISPANIC, hispanic)):
        chosen = np.flatnonzero(group == which)
        race[chosen] = rng.choice(sets, len(chosen), p=weights / weights.sum())
    return race, (group == HISPANIC).astype(np.int64)


def _several(some: int) -> float:
    names = tuple(name for bit, name in enumerate(RACES) if some >> bit & 1)
    if len(names) < 2:
        return 0.0
    return float(_PAIRS[names[0], names[1]] if len(names) == 2 else _MORE[len(names)])


def _races(
    preset: Preset, unit: Ints, relation: Ints, unit_block: Ints, mix: Floats, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """Race and origin of the members of households."""
    numbers, persons = preset["composition"], len(unit)
    own_race, own_hispanic = _drawn(preset, _group(mix[unit_block[unit]], rng), rng)
    head = np.searchsorted(unit, unit)  # where one's household begins
    race, hispanic = own_race[head], own_hispanic[head]
    second = np.minimum(head + 1, max(persons - 1, 0))
    couple = np.isin(relation[second], (SPOUSE, PARTNER)) & (unit[second] == unit) if persons else np.zeros(0, np.bool_)
    like = np.select(
        [relation == HOUSEHOLDER, np.isin(relation, (SPOUSE, PARTNER)), relation == CHILD],
        [100.0, float(numbers["partner"]), float(numbers["child"])],
        float(numbers["other"]),
    )
    alike = 100 * rng.random(persons) < like
    race, hispanic = np.where(alike, race, own_race), np.where(alike, hispanic, own_hispanic)
    child = (relation == CHILD) & couple & alike
    mother_race, mother_hispanic = race[second], hispanic[second]  # of the other parent, whoever heads the household
    both = rng.random(persons) < 0.45
    race = np.where(child, np.where(both, race[head] | mother_race, race[head]), race)
    either = rng.random(persons) < 0.8
    hispanic = np.where(child & either, hispanic[head] | mother_hispanic, hispanic)
    return race, hispanic
