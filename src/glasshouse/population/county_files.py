"""What is in the files of a synthetic county? Households over all tracts; and of one tract the rows of every file.

A tract is made twice from its seed: first its households alone, which are swapped and put into subsidised properties
over the whole county; then again, to write the files. So only households stay in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.population import subsidy
from glasshouse.population.attackers import Listed, Quality, commercial, perfect
from glasshouse.population.county import County, Tract
from glasshouse.population.homes import COLUMNS
from glasshouse.population.identity import spelled
from glasshouse.population.people import HOUSEHOLD, VACANT
from glasshouse.population.preset import RACES

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
AtRisk = Callable[[Ints, Ints, Ints, Ints], Flags]  # block of units, persons by block, unit and cell of persons

SEX = pl.Series(["male", "female"])
RELATION = pl.Series(["householder", "spouse", "partner", "child", "relative", "nonrelative", "resident"])
SAMPLED = 0.1
RENTED = (3, 4)
COUNTY = 5  # letters of its code
UNITS = 10**5  # more than a tract has


@dataclass(frozen=True)
class CountyHomes:
    """All households of the county, tract by tract."""

    block: Ints
    area: Ints  # the county that each lies in
    tract: Ints
    persons: Ints
    adults: Ints
    risk: Flags
    imputed: Flags
    subsidisable: subsidy.Homes
    vacant: Ints  # by block


def homes_of(county: County, at_risk: AtRisk, watch: Callable[[float], None]) -> CountyHomes:
    """The households of all tracts, made one after the other, and which are at risk by a rule that is given."""
    parts: list[dict[str, NDArray[Any]]] = []
    vacant = np.zeros(len(county.places.codes), np.int64)
    for number in range(county.places.tracts):
        tract = county.tract(number)
        people, homes = tract.people, tract.homes
        at = np.flatnonzero(people.unit_kind == HOUSEHOLD)
        blocks = county.places.of_tract(number)
        in_block = np.bincount(people.unit_block[people.unit], minlength=blocks.stop - blocks.start)
        risk = at_risk(people.unit_block, in_block, people.unit, people.race * 2 + people.hispanic)[at]
        empty = people.unit_block[people.unit_kind == VACANT]
        vacant += np.bincount(tract.first_block + empty, minlength=len(vacant))
        parts.append(
            {
                "block": tract.first_block + people.unit_block[at],
                "tract": np.full(len(at), number),
                "persons": homes.persons[at],
                "adults": homes.adults[at],
                "race": homes.race[at],
                "hispanic": homes.hispanic[at],
                "rented": np.isin(homes.columns["TEN"][at], RENTED),
                "risk": risk,
                "fixed": tract.identities.imputed[at],
            }
        )
        watch(0.3 * (number + 1) / county.places.tracts)
    whole = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    area = pl.Series(county.places.codes).str.head(COUNTY).rank("dense").to_numpy().astype(np.int64)[whole["block"]]
    subsidisable = subsidy.Homes(
        whole["block"],
        whole["persons"],
        whole["persons"] - whole["adults"],
        whole["adults"],
        whole["race"],
        whole["hispanic"] == 1,
        whole["rented"],
    )
    return CountyHomes(
        whole["block"],
        area,
        whole["tract"],
        whole["persons"],
        whole["adults"],
        whole["risk"],
        whole["fixed"],
        subsidisable,
        vacant,
    )


def frames_of(
    county: County,
    grade: Quality,
    tract: Tract,
    codes: pl.Series,
    published: Ints,
    housed: subsidy.Subsidy,
    mine: slice,
) -> dict[str, pl.DataFrame]:
    """The rows of one tract in every file."""
    people, identities = tract.people, tract.identities
    block = tract.first_block + people.unit_block
    moved = block.copy()
    moved[: len(published)] = published  # households come first
    unit_id = _unit_ids(tract)
    order = np.argsort(block[people.unit], kind="stable")
    persons = _persons(tract, order)
    unit = people.unit[order]
    cef = pl.DataFrame(
        [
            pl.Series("person_id", spelled(identities.person[order]), dtype=pl.String),
            unit_id.gather(unit).alias("household_id"),
            codes.gather(block[unit]).alias("block"),
            *persons,
            RELATION.gather(people.relation[order]).alias("relation"),
            pl.Series("gq", people.quarters[unit].astype(np.int16)),
            pl.Series("data_defined", identities.data_defined[order].astype(np.int16)),
        ]
    )
    hdf = pl.DataFrame([unit_id.gather(unit).alias("household_id"), codes.gather(moved[unit]).alias("block"), *persons])
    homes = _household_frame(tract, codes, block, moved, unit_id, housed, mine)
    truth = perfect(people, identities, tract.first_block)
    stranger = county.persons + 4 * tract.first_person + 1000 * tract.number  # numbers that nobody has
    bought = commercial(truth, county.places.persons, grade, stranger, county.lists(tract.number))
    return {
        "cef": cef,
        "hdf": hdf,
        "households": homes,
        "commercial": _list_frame(bought, codes),
        "attacker-perfect": _list_frame(truth, codes),
        "sample": _sample(county, tract, order, persons),
    }


def _unit_ids(tract: Tract) -> pl.Series:
    """Identifiers of units that tell nothing of where they are: a swapped household keeps its own."""
    numbers = tract.number * UNITS + np.arange(len(tract.people.unit_block))
    return pl.Series("household_id", spelled(numbers, "H"), dtype=pl.String)


def _persons(tract: Tract, order: Ints) -> list[pl.Series]:
    """The columns of persons, as record files spell them."""
    people = tract.people
    race = people.race[order]
    return [
        SEX.gather(people.sex[order]).alias("sex"),
        pl.Series("age", people.age[order].astype(np.int16)),
        *(pl.Series(name, (race >> bit & 1).astype(np.int16)) for bit, name in enumerate(RACES)),
        pl.Series("hispanic", people.hispanic[order].astype(np.int16)),
    ]


def _household_frame(
    tract: Tract, codes: pl.Series, block: Ints, moved: Ints, unit_id: pl.Series, housed: subsidy.Subsidy, mine: slice
) -> pl.DataFrame:
    """Housing units, occupied and vacant; group quarters are none."""
    people, homes = tract.people, tract.homes
    at = np.flatnonzero((people.unit_kind == HOUSEHOLD) | (people.unit_kind == VACANT))
    at = at[np.argsort(block[at], kind="stable")]
    count = mine.stop - mine.start
    place = np.full(len(block), -1)
    place[:count] = housed.property[mine]
    told = {"bedrooms": housed.bedrooms, "violation": housed.violation, "reported": housed.reported}
    columns = {name: np.zeros(len(block), np.int16) for name in told}  # vacant units have none
    for name, values in told.items():
        columns[name][:count] = values[mine]
    return pl.DataFrame(
        [
            unit_id.gather(at),
            codes.gather(block[at]).alias("block"),
            codes.gather(moved[at]).alias("published_block"),
            *(pl.Series(name, homes.columns[name][at].astype(np.int16)) for name in COLUMNS),
            pl.Series("persons", homes.persons[at].astype(np.int16)),
            pl.Series("children", homes.children[at].astype(np.int16)),
            subsidy.property_ids(place[at]),
            *(pl.Series(name, values[at]) for name, values in columns.items()),
        ]
    )


def _list_frame(listed: Listed, codes: pl.Series) -> pl.DataFrame:
    return pl.DataFrame(
        [
            pl.Series("person_id", spelled(listed.person), dtype=pl.String),
            codes.gather(listed.block).alias("block"),
            SEX.gather(listed.sex).alias("sex"),
            pl.Series("age", listed.age.astype(np.int16)),
        ]
    )


def _sample(county: County, tract: Tract, order: Ints, persons: list[pl.Series]) -> pl.DataFrame:
    """A public-use sample: one household in ten with all its members, and no place finer than the county."""
    people, homes = tract.people, tract.homes
    rng = county.sampling(tract.number)
    chosen = (people.unit_kind == HOUSEHOLD) & (rng.random(len(people.unit_block)) < SAMPLED)
    serial = tract.number * UNITS + np.arange(len(chosen))
    unit = people.unit[order]
    frame = pl.DataFrame(
        [
            pl.Series("household", serial[unit]),
            pl.repeat(str(county.places.codes[tract.first_block])[:COUNTY], len(unit), eager=True).alias("county"),
            *persons,
            RELATION.gather(people.relation[order]).alias("relation"),
            *(pl.Series(name, homes.columns[name][unit].astype(np.int16)) for name in COLUMNS if name != "VACS"),
        ]
    )
    return frame.filter(pl.Series(chosen[unit]))


def shuffled(sample: pl.DataFrame, county: County) -> pl.DataFrame:
    """Households in an order, and with numbers, that tell nothing of where they are."""
    serials = sample["household"].unique().sort()
    mixed = county.sampling(county.places.tracts).permutation(len(serials)) + 1
    number = pl.DataFrame({"household": serials, "number": mixed})
    joined = sample.join(number, on="household", how="left", maintain_order="left").with_columns(household="number")
    return joined.drop("number").sort("household", maintain_order=True)


def blocks_of(county: County, homes: CountyHomes) -> pl.DataFrame:
    """The blocks: their codes, where they lie, and how many live there."""
    places = county.places
    codes = pl.Series("block", places.codes, dtype=pl.String)
    return pl.DataFrame(
        [
            codes,
            codes.str.head(12).alias("block_group"),
            codes.str.head(11).alias("tract"),
            pl.Series("x", places.x),
            pl.Series("y", places.y),
            pl.Series("persons", places.persons),
            pl.Series("households", np.bincount(homes.block, minlength=len(places.codes)).astype(np.int64)),
            pl.Series("vacant_units", homes.vacant),
        ]
    )
