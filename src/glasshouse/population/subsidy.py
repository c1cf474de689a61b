"""Who lives in subsidised properties, in how many bedrooms, and what is published of each property?

After appendix B of Steed, Qing and Wu (papers/004). A property has priors p_l for the seven attributes that HUD's
Picture of Subsidized Households counts: the householder is white, black, native, Asian or Pacific (each of that race
alone and not Hispanic), Hispanic, of several races (not Hispanic); the household has children. Equation 7 is read so:

- The M households are those that can be drawn: the rented ones of the block. Of two properties of a block, the second
  draws from what the first has left.
- d is the whole combination of the seven attributes. A household weighs the product of p_l where it has an attribute
  and 1 - p_l where it has not, over all seven as if they were independent, divided by the share of the M households
  that have the very same combination.
- N_s households are drawn one after the other without replacement, in proportion to weight among those left; the
  weights stay what they were at the start.
- A prior of 0 or 1 is the limit of priors close to it: a household that contradicts such priors is drawn only when all
  that contradict fewer of them are in.

Then b bedrooms (0 or 1, 2, 3 or more) have the chance p_b * alpha ** violation(b, persons), normalised. Where every
bedroom count that p_b allows violates the rule, alpha cancels: such a violation cannot be avoided.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.errors import InputError
from glasshouse.population.preset import RACES

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

GROUPS = ("white", "black", "native", "asian", "hispanic", "multi")  # of householders; some other race alone has none
WHITE, BLACK, NATIVE, ASIAN, HISPANIC, MULTI = range(len(GROUPS))
ATTRIBUTES = (*GROUPS, "children")
KINDS = ("elderly", "family")
MOST_PERSONS = (2, 4, np.iinfo(np.int64).max)  # for 0 or 1, 2, 3 or more bedrooms: two heartbeats a room
SHARE = 732_757 / 116_716_292  # of the households of 2010
FEWEST_PUBLISHED = 11  # households that report
SUPPRESSED, POORLY_REPORTED = -4, -5
_OF_ONE_RACE = {"white": WHITE, "black": BLACK, "aian": NATIVE, "asian": ASIAN, "nhopi": ASIAN, "sor": -1}
_GROUP_OF_RACES = np.full(2 ** len(RACES), MULTI)
_GROUP_OF_RACES[[0, *(1 << bit for bit in range(len(RACES)))]] = [-1, *(_OF_ONE_RACE[name] for name in RACES)]


@dataclass(frozen=True)
class Homes:
    """The occupied households of a county."""

    block: Ints  # a number from 0
    persons: Ints
    children: Ints  # under 18
    adults: Ints
    race: Ints  # the householder's, a bit for each of RACES
    hispanic: Flags  # the householder
    rented: Flags

    def __post_init__(self) -> None:
        for field in fields(self):
            if len(getattr(self, field.name)) != len(self.block):
                raise InputError(f"homes: '{field.name}' and 'block' differ in length")
        for name in ("hispanic", "rented"):
            if getattr(self, name).dtype != np.bool_:  # 0 and 1 would be taken for positions
                raise InputError(f"homes: '{name}' must be true or false")

    def attributes(self) -> Flags:
        """Which of ATTRIBUTES each household has."""
        group = np.where(self.hispanic, HISPANIC, _GROUP_OF_RACES[self.race])
        return np.column_stack([group[:, None] == np.arange(len(GROUPS)), self.children > 0])


@dataclass(frozen=True)
class Properties:
    """Subsidised properties: where, how large, and what HUD would know of each beforehand."""

    block: Ints
    units: Ints
    households: Ints  # in occupied units
    priors: Floats  # share of households with each of ATTRIBUTES
    bedrooms: Floats  # share of households with 0 or 1, 2, 3 or more
    reporting: Floats  # chance that a household reports


@dataclass(frozen=True)
class Subsidy:
    """Which households live in which property, with how many bedrooms, and whether they are too many for them."""

    property: Ints  # its number; -1 for none
    bedrooms: Ints  # 1 for 0 or 1, 2, 3 for 3 or more; 0 where there is no property
    violation: Flags
    reported: Flags  # to HUD
    properties: Properties


def simulate(homes: Homes, rng: np.random.Generator, *, alpha: float = 1e-4, share: float = SHARE) -> Subsidy:
    """Subsidised properties for about this share of the households; a smaller alpha makes for fewer violations."""
    for name, value in (("alpha", alpha), ("share", share)):
        if not 0 <= value <= 1:
            raise InputError(f"{name} is {value}; expected a number from 0 to 1")
    properties = plan(homes, share, rng)
    number = choose(homes, properties, rng)
    inside = np.flatnonzero(number >= 0)
    bedrooms, reported = np.zeros(len(number), np.int64), np.zeros(len(number), np.bool_)
    bedrooms[inside] = furnish(homes.persons[inside], properties.bedrooms[number[inside]], alpha, rng)
    reported[inside] = rng.random(len(inside)) < properties.reporting[number[inside]]
    return Subsidy(number, bedrooms, violates(bedrooms, homes.persons), reported, properties)


def property_ids(number: Ints) -> pl.Series:
    """How properties are called in files: 000001 and on; nothing for -1."""
    return pl.Series("property_id", [f"{n + 1:06d}" if n >= 0 else None for n in number.tolist()], dtype=pl.String)


def violates(bedrooms: Ints, persons: Ints) -> Flags:
    """More than two persons a bedroom? With 3 or more bedrooms, or an unknown number (0), nobody can tell."""
    most = np.array([MOST_PERSONS[-1], *MOST_PERSONS])
    return np.asarray(persons > most[bedrooms])


# Which properties there are


def plan(homes: Homes, share: float, rng: np.random.Generator) -> Properties:
    """Properties for about this share of the households, or as many as those that rent allow."""
    blocks = int(homes.block.max(initial=-1)) + 1
    rented = np.bincount(homes.block[homes.rented], minlength=blocks)
    block, households = _sites(rented, share * len(homes.block), rng)
    numbers, count = _assumptions(), len(block)
    rate = rng.beta(*_pair(numbers["occupied"]["beta"]), count)
    units = np.maximum(households, np.floor(households / rate).astype(np.int64))
    kinds = {name: np.array([numbers[kind][name] for kind in KINDS], np.float64) for name in numbers[KINDS[0]]}
    kind = rng.choice(len(KINDS), count, p=_shares(kinds["share"]))
    with_and_without = np.column_stack([kinds["children"], 100 - kinds["children"]]) / 100
    children = _around(with_and_without[kind], kinds["children_alike"][kind], rng)[:, 0]
    bedrooms = _around(kinds["bedrooms"][kind] / 100, kinds["bedrooms_alike"][kind], rng)
    priors = np.column_stack([_householders(homes, block, blocks, rng), children])
    poor = rng.random(count) < numbers["reported"]["poor"] / 100
    low, high = _pair(numbers["reported"]["poor_range"])
    usual = rng.beta(*_pair(numbers["reported"]["beta"]), count)
    reporting = np.where(poor, rng.uniform(low / 100, high / 100, count), usual)
    return Properties(block, units, households, priors, bedrooms, reporting)


@cache
def _assumptions() -> Mapping[str, Any]:
    text = (resources.files("glasshouse") / "population" / "subsidy.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def _pair(values: Sequence[float]) -> tuple[float, float]:
    first, second = values
    return float(first), float(second)


def _sites(rented: Ints, wanted: float, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """The block and the households of each property, until so many households are placed in the mean.

    Small blocks come first among those with room, so that a property is a good part of its block. A property that fits
    nowhere is cut to the largest room there is.
    """
    size = _assumptions()["size"]
    room, used = rented.copy(), np.zeros(len(rented), np.bool_)
    block: list[int] = []
    households: list[int] = []
    left = wanted
    while left > 0:
        want = max(round(rng.lognormal(np.log(size["median"]), size["spread"])), int(size["fewest"]))
        again = rng.random() < size["second"] / 100
        fit = np.flatnonzero((used == again) & (room >= want))
        if not len(fit):
            want = min(want, int(room[~used].max(initial=0)))
            fit = np.flatnonzero(~used & (room >= want))
        if want < size["fewest"] or rng.random() * want >= left:  # the last one: in or out, right in the mean
            break
        site = int(rng.choice(fit, p=_shares(1 / rented[fit])))
        block.append(site)
        households.append(want)
        room[site], used[site], left = room[site] - want, True, left - want
    return np.array(block, np.int64), np.array(households, np.int64)


def _householders(homes: Homes, block: Ints, blocks: int, rng: np.random.Generator) -> Floats:
    """Priors for the groups of householders: between the nation's properties and those who rent in the block."""
    numbers = _assumptions()["householder"]
    has = homes.attributes()[:, : len(GROUPS)] & homes.rented[:, None]
    counts = np.column_stack([np.bincount(homes.block[one], minlength=blocks) for one in has.T])[block]
    nation = _shares(np.array([numbers[name] for name in GROUPS], np.float64))
    near = np.where(counts.sum(1, keepdims=True) > 0, counts / np.maximum(counts.sum(1, keepdims=True), 1), nation)
    local = numbers["local"] / 100
    return _around(local * near + (1 - local) * nation, np.full(len(block), float(numbers["alike"])), rng)


def _around(mean: Floats, alike: Floats, rng: np.random.Generator) -> Floats:
    """A composition per row around its mean, in whole percentages as HUD publishes them, so often 0 or 100."""
    draws = rng.standard_gamma(np.maximum(mean, 1e-9) * alike[:, None])
    return np.asarray(np.rint(100 * draws / draws.sum(1, keepdims=True)) / 100)


def _shares(values: Floats) -> Floats:
    return np.asarray(values / values.sum())


# Who lives in them


def choose(homes: Homes, properties: Properties, rng: np.random.Generator) -> Ints:
    """The property of each household, -1 for none, drawn by equation 7."""
    number = np.full(len(homes.block), -1, np.int64)
    attributes = homes.attributes()
    blocks = max(homes.block.max(initial=-1), properties.block.max(initial=-1)) + 1
    turn = _rank(properties.block)  # the first properties of all blocks, then the second, ...
    for now in range(int(turn.max(initial=-1)) + 1):
        drawing = np.full(blocks, -1, np.int64)
        drawing[properties.block[turn == now]] = np.flatnonzero(turn == now)
        free = np.flatnonzero(homes.rented & (number < 0) & (drawing[homes.block] >= 0))
        mine = drawing[homes.block[free]]
        contradicts, weight = likelihood(attributes[free], mine, properties.priors)
        luck = weight + rng.gumbel(size=len(free))  # the largest of these are draws without replacement by weight
        order = np.lexsort((-luck, contradicts, mine))
        inside = order[_rank(mine[order]) < properties.households[mine[order]]]
        number[free[inside]] = mine[inside]
    if np.any(np.bincount(number[number >= 0], minlength=len(properties.block)) != properties.households):
        raise InputError("a property has more households than are rented in its block")
    return number


def likelihood(attributes: Flags, number: Ints, priors: Floats) -> tuple[Ints, Floats]:
    """Equation 7 for households that property `number` may draw: priors of 0 or 1 they contradict; log of the rest."""
    prior = priors[number]
    chance = np.where(attributes, prior, 1 - prior)
    combination = attributes @ (1 << np.arange(attributes.shape[1])) + (number << attributes.shape[1])
    _, which, alike = np.unique(combination, return_inverse=True, return_counts=True)
    frequency = alike[which] / np.bincount(number, minlength=len(priors))[number]
    return (chance == 0).sum(1), np.log(np.where(chance == 0, 1.0, chance)).sum(1) - np.log(frequency)


def furnish(persons: Ints, shares: Floats, alpha: float, rng: np.random.Generator) -> Ints:
    """Bedrooms (1, 2 or 3) of each household: by the shares of its property, times alpha where too few."""
    violation = persons[:, None] > np.array(MOST_PERSONS)
    chance = shares * np.where(violation, alpha, 1.0)
    chance = np.where(chance.sum(1, keepdims=True) > 0, chance, shares)  # alpha 0, and nothing else is left
    below = np.cumsum(chance, axis=1)
    return np.asarray((rng.random((len(persons), 1)) * below[:, -1:] >= below).sum(1) + 1)


def _rank(values: Ints) -> Ints:
    """Where each stands among its equals: 0, 1, ..."""
    order = np.argsort(values, kind="stable")
    rank = np.empty(len(values), np.int64)
    rank[order] = np.arange(len(values)) - np.searchsorted(values[order], values[order])
    return rank


# What is published of them


def statistics(homes: Homes, subsidy: Subsidy, block_codes: Sequence[str]) -> pl.DataFrame:
    """A row per property with the columns of HUD's Picture.

    Percentages are whole, of the households that report, and rounded half up, in integers: HUD does not say how it
    rounds, and half up is what people and databases do. So the true share is no more than half a point below the number
    and less than half a point above it. Where fewer than 11 report (-4, also if both hold) or fewer than half (-5), the
    code stands for the people and for every share of households; numbers of units and households stay, and their
    ratios.
    """
    properties, count = subsidy.properties, len(subsidy.properties.block)
    if properties.block.max(initial=-1) >= len(block_codes):
        raise InputError(f"a property is in block {properties.block.max()}; codes are given for {len(block_codes)}")
    chosen = np.flatnonzero(subsidy.reported)
    mine, has = subsidy.property[chosen], homes.attributes()[chosen]
    children, adults, bedrooms = has[:, -1], homes.adults[chosen], subsidy.bedrooms[chosen]

    def tally(flags: Flags) -> Ints:
        return np.bincount(mine[flags], minlength=count)

    reported = np.bincount(mine, minlength=count)
    persons = np.zeros(count, np.int64)
    np.add.at(persons, mine, homes.persons[chosen])
    reasons = [reported < FEWEST_PUBLISHED, 2 * reported < properties.households]
    code = np.select(reasons, [SUPPRESSED, POORLY_REPORTED], 0)

    def published(values: Ints) -> Ints:
        return np.where(code < 0, code, values)

    shares = {
        "pct_bed1": bedrooms == 1,
        "pct_bed2": bedrooms == 2,
        "pct_bed3": bedrooms == 3,
        "pct_white_nothsp": has[:, WHITE],
        "pct_black_nonhsp": has[:, BLACK],
        "pct_native_american_nonhsp": has[:, NATIVE],
        "pct_asian_pacific_nonhsp": has[:, ASIAN],
        "pct_hispanic": has[:, HISPANIC],
        "pct_multi": has[:, MULTI],
        "pct_1adult": children & (adults == 1),
        "pct_2adults": children & (adults >= 2),
    }
    tenths = half_up(10 * persons, reported)
    return pl.DataFrame(
        {
            "property_id": property_ids(np.arange(count)),
            "block": pl.Series([block_codes[block] for block in properties.block.tolist()], dtype=pl.String),
            "total_units": properties.units,
            "pct_occupied": half_up(100 * properties.households, properties.units),
            "number_reported": reported,
            "pct_reported": half_up(100 * reported, properties.households),
            "people_total": published(persons),
            "people_per_unit": np.where(code < 0, code, tenths / 10),
            **{name: published(half_up(100 * tally(flags), reported)) for name, flags in shares.items()},
        }
    )


def half_up(part: Ints, whole: Ints) -> Ints:
    """part / whole as a whole number, halves up, without a rounding error; 0 of nothing is 0."""
    return np.asarray((2 * part + whole) // np.maximum(2 * whole, 1))
