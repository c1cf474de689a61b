"""Who might live in subsidised housing, in microdata that do not say? A truth is drawn (appendix B of papers/004).

Microdata of households print sizes up to a largest class, and whether there are children, not how many; they know
neither subsidies nor bedrooms. Three things are drawn, each by the seed:

- The size of a household of the largest class, then the number of children of one that has any, from the households of
  a public-use sample of its state that are alike: householder's origin and race, and size or presence of children.
  Where the sample has none such, the householder is left aside, then all but the number of persons.
- The households of each property, by equation 7 with the shares that the agency publishes (`subsidy.choose`), among all
  households of the block.
- Their bedrooms, by the published shares, times alpha where they are too few (`subsidy.furnish`).

Then what the properties publish is worked out anew from these households, so that both files are of one truth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.errors import InputError
from glasshouse.files.coded_columns import whole_numbers
from glasshouse.files.frames import need_columns, open_source
from glasshouse.files.sample import RACES, StateSample, group_of
from glasshouse.population import subsidy
from glasshouse.population.subsidy import Homes, Properties, Subsidy

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
CODES = {"VACS": 7, "HHSIZE": 7, "THHSPAN": 2, "THHRACE": 7, "TP18": 1}  # columns and their largest codes
LARGEST = CODES["HHSIZE"]  # the class of so many persons or more
MOST = 20  # persons of a household
STATE = 2  # digits
SHARES = {  # of householders, as the agency calls them, in the order of subsidy.GROUPS
    "white": "pct_white_nothsp", "black": "pct_black_nonhsp", "native": "pct_native_american_nonhsp",
    "asian": "pct_asian_pacific_nonhsp", "hispanic": "pct_hispanic", "multi": "pct_multi",
}  # fmt: skip
CHILDREN, BEDROOMS = ("pct_1adult", "pct_2adults"), ("pct_bed1", "pct_bed2", "pct_bed3")


@dataclass(frozen=True)
class Microdata:
    """Units as they are printed: the block of each, and its codes; `occupied` ones have a household."""

    block: pl.Series
    codes: Mapping[str, Ints]

    @property
    def occupied(self) -> Flags:
        return np.asarray(self.codes["VACS"] == 0)


@dataclass(frozen=True)
class Furnished:
    """The households with all that was drawn, what their properties publish, and what was left out."""

    households: pl.DataFrame
    housing: pl.DataFrame
    properties_left_out: Mapping[str, int]
    violations: int
    subsidised: int
    drawn_sizes: int
    drawn_children: int
    unlike: int  # households of which the sample has none with the same householder


def read_microdata(path: Path, place: str, length: int) -> Microdata:
    """The units of a file: a row each, with the place and the columns of households."""
    source = open_source(path)
    need_columns(source, (place, *CODES), "microdata of households")
    blocks, codes = [], {name: list[Ints]() for name in CODES}
    for chunk in source.chunks([place, *CODES]):
        block = chunk.frame[place].cast(pl.String)
        bad = (block.str.len_chars() != length).fill_null(True)
        if bad.any():
            at = int(bad.arg_max() or 0)
            found = f"{source.where(chunk.first + at)}: '{block[at]}'"
            raise InputError(f"{found} is no code of a {place}; expected {length} characters")
        blocks.append(block)
        for name, most in CODES.items():
            codes[name].append(whole_numbers(source, chunk, name, most))
    if not blocks:
        raise InputError(f"{path.name}: no units; expected a row for each")
    return Microdata(pl.concat(blocks), {name: np.concatenate(parts) for name, parts in codes.items()})


def furnished(
    units: Microdata, samples: Mapping[str, StateSample], properties: pl.DataFrame, rng: np.random.Generator,
    *, alpha: float, place: str,
) -> Furnished:  # fmt: skip
    """Draw what microdata do not say; `properties` are rows with a block, whole percentages and households."""
    occupied = np.flatnonzero(units.occupied)
    codes = {name: values[occupied] for name, values in units.codes.items()}
    block = units.block.gather(occupied.tolist())
    states = block.str.head(STATE)
    missing = sorted(set(states.unique().to_list()) - set(samples))
    if missing:
        raise InputError(f"the sample has nobody of {', '.join(missing)}; expected households of every state")
    persons, children, unlike = codes["HHSIZE"].copy(), np.zeros(len(occupied), np.int64), 0
    for state in sorted(samples):
        mine = np.flatnonzero((states == state).to_numpy())
        unlike += _members(mine, codes, samples[state], persons, children, rng)
    names = block.unique().sort()
    homes = Homes(
        names.search_sorted(block).to_numpy().astype(np.int64), persons, children, persons - children,
        _races(codes["THHRACE"]), codes["THHSPAN"] == 2, np.ones(len(occupied), np.bool_),
    )  # fmt: skip
    planned, left = _planned(properties, names, np.bincount(homes.block, minlength=len(names)))
    number = subsidy.choose(homes, planned, rng)
    inside = np.flatnonzero(number >= 0)
    bedrooms = np.zeros(len(number), np.int64)
    bedrooms[inside] = subsidy.furnish(persons[inside], planned.bedrooms[number[inside]], alpha, rng)
    broken = subsidy.violates(bedrooms, persons)
    drawn = Subsidy(number, bedrooms, broken, number >= 0, planned)
    return Furnished(
        _written(units, occupied, persons, children, bedrooms, number, place),
        subsidy.statistics(homes, drawn, names.to_list()),
        left,
        int(broken.sum()),
        len(inside),
        int((codes["HHSIZE"] == LARGEST).sum()),
        int((codes["TP18"] == 1).sum()),
        unlike,
    )


def _members(
    mine: Ints, codes: Mapping[str, Ints], sample: StateSample, persons: Ints, children: Ints, rng: np.random.Generator
) -> int:
    """Persons and children of the households of one state, in place; how many have nobody like them in the sample."""
    group = group_of(codes["THHSPAN"] - 1, codes["THHRACE"] - 1)
    any_child, has = sample.children > 0, codes["TP18"] == 1
    fits = (sample.persons <= MOST) & (sample.children <= sample.persons)
    unlike = 0
    for at in mine:
        alike = fits & (sample.householder == group[at])
        if codes["HHSIZE"][at] == LARGEST:
            large = fits & (sample.persons >= LARGEST)
            found, close = _one(
                rng, sample, alike & large & (any_child == has[at]), large & (any_child == has[at]), large
            )
            persons[at] = LARGEST if found is None else sample.persons[found]
            unlike += not close
        if has[at]:
            same = fits & any_child & (sample.persons == persons[at])
            found, close = _one(rng, sample, alike & same, same)
            children[at] = 1 if found is None else sample.children[found]
            unlike += not close
    return unlike


def _one(rng: np.random.Generator, sample: StateSample, *choices: Flags) -> tuple[int | None, bool]:
    """A kind of household drawn by its weight from the first choice that has any; and whether that was the first."""
    for number, chosen in enumerate(choices):
        among = np.flatnonzero(chosen)
        if len(among):
            weight = np.cumsum(sample.households[among])
            return int(among[np.searchsorted(weight, rng.random() * weight[-1], side="right")]), number == 0
    return None, False


def _races(code: Ints) -> Ints:
    """The householder's race as bits: one for each race alone, two where there are several."""
    alone = np.int64(1) << np.arange(len(RACES))
    return np.asarray(np.append(alone, 3)[code - 1], np.int64)


def _planned(properties: pl.DataFrame, names: pl.Series, room: Ints) -> tuple[Properties, dict[str, int]]:
    """The properties that can be filled; the others are counted by reason, as the paper leaves out their blocks."""
    needed = [*SHARES.values(), *CHILDREN, *BEDROOMS]
    known = properties.filter(pl.all_horizontal(pl.col(name).is_not_null() for name in needed))
    there = known.filter(pl.col("block").is_in(names.to_list()))
    sizes = pl.DataFrame({"block": names, "room": room})
    wanted = there.join(sizes, on="block", how="left", maintain_order="left")
    fitting = wanted.filter(pl.col("number_reported").sum().over("block") <= pl.col("room"))
    counts = (properties.height, known.height, there.height, fitting.height)
    reasons = ("a share is missing", "no household of the block", "more households than the block has")
    left = {why: before - after for why, before, after in zip(reasons, counts[:-1], counts[1:], strict=True)}
    if not fitting.height:
        raise InputError("no property can be filled with these households; are both files of the same places?")
    shares = fitting.select(pl.col(name) / 100 for name in SHARES.values()).to_numpy()
    young = fitting.select((pl.col(CHILDREN[0]) + pl.col(CHILDREN[1])).clip(0, 100) / 100).to_numpy()
    rooms = fitting.select(pl.col(name).cast(pl.Float64) for name in BEDROOMS).to_numpy()
    rooms = np.where(rooms.sum(axis=1, keepdims=True) > 0, rooms, 1.0)
    households = fitting["number_reported"].to_numpy().astype(np.int64)
    units = (
        fitting["total_units"].fill_null(0).to_numpy().astype(np.int64)
        if "total_units" in fitting.columns
        else households
    )
    block = names.search_sorted(fitting["block"]).to_numpy().astype(np.int64)
    every = Properties(
        block, np.maximum(units, households), households, np.column_stack([shares, young]),
        rooms / rooms.sum(axis=1, keepdims=True), np.ones(len(block)),
    )  # fmt: skip
    return every, {why: number for why, number in left.items() if number}


def _written(
    units: Microdata, occupied: Ints, persons: Ints, children: Ints, bedrooms: Ints, number: Ints, place: str
) -> pl.DataFrame:  # fmt: skip
    """Every unit, vacant ones too, with what was drawn."""
    columns: dict[str, Ints] = {}
    for name, values in (("persons", persons), ("children", children), ("bedrooms", bedrooms)):
        columns[name] = np.zeros(len(units.block), np.int64)
        columns[name][occupied] = values
    mine = np.full(len(units.block), -1, np.int64)
    mine[occupied] = number
    frame = pl.DataFrame({place: units.block, **units.codes, **columns, "reported": (mine >= 0).astype(np.int64)})
    ids = pl.Series("household_id", [f"{at + 1:09d}" for at in range(frame.height)], dtype=pl.String)
    numbers = [name for name in frame.columns if name != place]
    return frame.with_columns(pl.col(numbers).cast(pl.Int16), ids, subsidy.property_ids(mine))
