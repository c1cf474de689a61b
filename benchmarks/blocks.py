"""Who lives in a made-up block? Seeded persons of scenario `sf1-person`, in blocks that look like those of 2010.

Three mixes. `national` follows the nation of 2010. Its blocks are far more alike inside than the nation: a tract draws
a composition around the nation's, a block one around its tract's, with a concentration that varies strongly between
blocks, so that most blocks are dominated by one group and some are very mixed. `diverse` draws the composition of a
block evenly over all possible ones, with 8% of two or more races throughout; it is meant to be hard. `simple` is
between the two, like the mix of earlier prototypes: every block is a small sample of the nation, so that large blocks
are never the same inside (zero-solvar shares of those prototypes by size: 98.7, 65, 10, 0.6 and 0%).

Persons come in households: a head, mostly with a partner of the other sex and about the same age, and children; most
members share race and origin with the head. Left out: group quarters, and any tie between race, age and household.
The spread of the compositions was chosen so that the share of `national` blocks with one solution only comes near the
published one (of 3,000 by size 1-9: 99% for 99.5%, 10-49: 73% for 78.5%, 50-99: 37% for 32.6%; above 100 it is too
high, 26% for 12.6%).
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from glasshouse.model.records import Records
from glasshouse.model.schema import Schema
from glasshouse.scenarios.load import load

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

TRACT_PERSONS, TRACT_BLOCKS = 4000, 80
GROUP_BLOCKS = 30  # blocks of one block group
# share of the populated blocks of 2010 with so many persons
BANDS = ((1, 9, 0.29), (10, 49, 0.43), (50, 99, 0.16), (100, 249, 0.087), (250, 499, 0.02), (500, 999, 0.0065))
LAST = (1000, 2000, 0.0016)

# groups: not Hispanic of one race in the official order, not Hispanic of two or more, Hispanic
ONE_RACE = ("white", "black", "aian", "asian", "nhopi", "sor")
TWO_OR_MORE, HISPANIC = 6, 7
NATION = np.array([0.637, 0.122, 0.007, 0.047, 0.0015, 0.002, 0.019, 0.163])
# % of Hispanics; the rest is of two or more races
HISPANIC_RACE = {"white": 53, "sor": 36.7, "black": 2.5, "aian": 1.4, "asian": 0.4, "nhopi": 0.1}
# % of those of two or more races; the rest is spread evenly over three races, and thinly over more
TWO_RACES = (
    {"white+black": 20, "white+asian": 18, "white+sor": 17, "white+aian": 16, "white+nhopi": 2, "black+sor": 4}
    | {"black+aian": 3, "black+asian": 2, "black+nhopi": 0.7, "asian+sor": 3, "asian+nhopi": 2, "aian+sor": 1.5}
    | {"aian+asian": 0.7, "nhopi+sor": 0.6, "aian+nhopi": 0.2}
)
HOUSEHOLD = np.array([0.27, 0.33, 0.16, 0.14, 0.065, 0.025, 0.01])  # of 1, 2, ... 7 persons
STRAYS = 0.02  # of the persons of a block whose group has nothing to do with the block
SHARED = {"national": 0.95, "simple": 0.85, "diverse": 0.5}  # members who have race and origin of their head


def block_sizes(n: int, seed: int) -> Ints:
    """Sizes of populated blocks as in 2010: a band by its share, then log-uniform within the band."""
    rng = np.random.default_rng(seed)
    low, high, share = np.array([*BANDS, LAST]).T
    band = rng.choice(len(share), n, p=share / share.sum())
    log = np.log(low[band]) + rng.random(n) * np.log((high[band] + 1) / low[band])
    return np.clip(np.exp(log), low[band], high[band]).astype(np.int64)


def tract(persons: int = TRACT_PERSONS, blocks: int = TRACT_BLOCKS, seed: int = 1, mix: str = "national") -> Records:
    """One tract of so many persons in so many blocks, their sizes spread as those of 2010."""
    if not 0 < blocks <= persons:
        raise ValueError(f"{persons} persons cannot fill {blocks} blocks")
    drawn = block_sizes(blocks, seed)
    sizes = 1 + (drawn * (persons - blocks) // drawn.sum())
    sizes[np.argmax(sizes)] += persons - sizes.sum()  # what rounding left over
    return synthetic(sizes, mix, seed, tracts=np.zeros(blocks, np.int64))


def synthetic(sizes: Ints, mix: str, seed: int, *, tracts: Ints | None = None) -> Records:
    """Persons for blocks of these sizes, in tracts of about 4,000 persons or 80 blocks (or the tracts given)."""
    if mix not in SHARED:
        raise ValueError(f"unknown mix '{mix}'; known: {', '.join(SHARED)}")
    schema, rng, sizes = _schema(), np.random.default_rng(seed), np.asarray(sizes, np.int64)
    if tracts is None:
        weight = (sizes / TRACT_PERSONS + 1 / TRACT_BLOCKS) / 2
        tracts = (np.cumsum(weight) - weight).astype(np.int64)
    block = np.repeat(np.arange(len(sizes)), sizes)
    household, rank = _households(block, rng)
    sex, age = _sex_and_age(household, rank, rng)
    cumulative = np.cumsum(_compositions(tracts, mix, rng), axis=1)
    group = np.minimum((rng.random((len(block), 1)) > cumulative[block]).sum(axis=1), HISPANIC)
    race = _races(schema, group, rng)
    head = np.searchsorted(household, household)  # households are in order: where one's own begins
    alike = rng.random(len(block)) < SHARED[mix]
    group, race = (np.where(alike, what[head], what) for what in (group, race))
    codes = np.column_stack([sex, age, race, group == HISPANIC]).astype(np.int16)
    return Records(schema, _codes(tracts), block.astype(np.int32), codes)


@cache
def _schema() -> Schema:
    return load("sf1-person").schema


def _codes(tracts: Ints) -> tuple[str, ...]:
    """15-character codes in a state 99 that does not exist: county, tract, block group and block."""
    order = np.arange(len(tracts)) - np.searchsorted(tracts, tracts)
    group, within = order // GROUP_BLOCKS % 9 + 1, order % GROUP_BLOCKS + order // (9 * GROUP_BLOCKS) * GROUP_BLOCKS
    numbers = zip(tracts.tolist(), group.tolist(), within.tolist(), strict=True)
    return tuple(f"99{t // 100 + 1:03d}{t % 100 + 1:06d}{g}{w:03d}" for t, g, w in numbers)


def _dirichlet(shape: Floats, rng: np.random.Generator) -> Floats:
    """A composition per row; shapes may be so small that all draws vanish, then the largest shape takes all."""
    draws = rng.standard_gamma(shape) + 1e-300 * (shape == shape.max(axis=1, keepdims=True))
    return draws / draws.sum(axis=1, keepdims=True)


def _compositions(tracts: Ints, mix: str, rng: np.random.Generator) -> Floats:
    """The shares of the groups in each block."""
    if mix == "diverse":
        flat = _dirichlet(np.ones((len(tracts), HISPANIC)), rng) * 0.92
        return np.insert(flat, TWO_OR_MORE, 0.08, axis=1)
    if mix == "simple":
        return _dirichlet(np.tile(NATION / NATION.sum() * 10, (len(tracts), 1)), rng)
    around = _dirichlet(np.tile(NATION / NATION.sum() * 2.5, (int(tracts.max(initial=0)) + 1, 1)), rng)
    concentration = rng.lognormal(np.log(2.5), 1.3, (len(tracts), 1))
    return (1 - STRAYS) * _dirichlet(around[tracts] * concentration, rng) + STRAYS * NATION / NATION.sum()


def _races(schema: Schema, group: Ints, rng: np.random.Generator) -> Ints:
    """The race of each person, given the group: one race is what it says, the others are drawn."""
    race = schema.attribute("race")
    many = np.array([TWO_RACES.get(label, {3: 0.4, 4: 0.05}.get(label.count("+") + 1, 0.01)) for label in race.levels])
    many[[race.level(name) for name in ONE_RACE]] = 0
    hispanic = many / many.sum() * (100 - sum(HISPANIC_RACE.values()))
    hispanic[[race.level(name) for name in HISPANIC_RACE]] = list(HISPANIC_RACE.values())
    races = np.array([*(race.level(name) for name in ONE_RACE), 0, 0])[group]
    for which, weights in ((TWO_OR_MORE, many), (HISPANIC, hispanic)):
        chosen = group == which
        races[chosen] = rng.choice(len(weights), chosen.sum(), p=weights / weights.sum())
    return races


def _households(block: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """The household of each person and the person's rank in it: a stream of households, cut where a block ends."""
    sizes = rng.choice(len(HOUSEHOLD), len(block) + 1, p=HOUSEHOLD) + 1
    first = np.zeros(len(block), np.bool_)
    begins = np.cumsum(sizes) - sizes
    first[begins[begins < len(block)]] = True
    first[1:] |= block[1:] != block[:-1]
    household = np.cumsum(first) - 1
    return household, np.arange(len(block)) - np.flatnonzero(first)[household]


def _sex_and_age(household: Ints, rank: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Heads by the size of their household; a partner close in age; children a generation younger; some others."""
    persons, size = len(household), np.bincount(household)
    homes = len(size)
    lone = np.where(rng.random(homes) < 0.45, rng.normal(33, 9, homes), rng.normal(68, 15, homes))
    pair = np.where(rng.random(homes) < 0.45, rng.normal(36, 10, homes), rng.normal(63, 12, homes))
    family = rng.normal(39, 10, homes)
    age_of_head = np.clip(np.select([size == 1, size == 2], [lone, pair], family), 18, 105)
    coupled = rng.random(homes) < np.select([size == 1, size == 2], [0, 0.78], 0.74)
    sex, age = rng.random(persons) < 0.51, age_of_head[household]
    partner = (rank == 1) & coupled[household]
    sex[partner] = ~sex[np.flatnonzero(partner) - 1]
    age[partner] = np.maximum(age[partner] + rng.normal(0, 3.5, partner.sum()), 18)
    rest = (rank > 0) & ~partner
    child = age - rng.normal(28, 6, persons)
    child = np.where(child < 0, rng.random(persons) * 18, child)
    # some are not children of the head: a parent, or someone of about the same age
    other = np.where(rng.random(persons) < 0.4, age + rng.normal(27, 5, persons), age + rng.normal(0, 8, persons))
    age[rest] = np.where(rng.random(persons) < 0.88, child, other)[rest]
    return sex.astype(np.int64), np.clip(age, 0, 110).astype(np.int64)
