"""The job behind `glasshouse protect swap`: person records in, the same records out, some households elsewhere.

What a household is, who is an adult, who stands out and which areas matter, the scenario says (`[household]`). The file
is read twice: first the columns that decide, for the whole file; then everything, piece by piece, to be
written as it came, in the order of its rows, with other places. Households are numbered by their identifiers and take
their draws from them, so the order of rows decides nothing. The file of the households themselves can go along.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.commands.words.protections import SwapCounts
from glasshouse.commands.work.swapped_households import Moves, check_households, identifiers, write_households
from glasshouse.errors import InputError, unknown
from glasshouse.files.coded_columns import Spelling, whole_numbers
from glasshouse.files.frames import Chunk, Source, need_columns, open_source
from glasshouse.files.output import RowWriter, row_writer
from glasshouse.files.places import PlaceColumns, check_codes, read_codes
from glasshouse.files.surroundings import numbers_of
from glasshouse.model.chance import chance
from glasshouse.model.geography import Geography, plural
from glasshouse.protection.swap.by_tiers import (
    RANKING,
    TIERS,
    Homes,
    SwappedNearby,
    along_codes,
    composed_alike,
    draws_of,
    swap_by_tiers,
    tiers,
)
from glasshouse.protection.swap.households import alike_key, at_risk
from glasshouse.protection.swap.quarters import redraw
from glasshouse.scenarios.fitting import of_persons
from glasshouse.scenarios.households import Household
from glasshouse.scenarios.load import Scenario

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]

QUARTERS = ("keep", "synthesize")
NOBODY = -1
LIVES, GROWN, CELL, QUARTERED, DEFINED = "the place", "adult", "the cell", "in quarters", "defined"  # our own columns


@dataclass(frozen=True)
class Told:
    """What the scenario says of persons and households."""

    geography: Geography
    home: Household
    adult: Spelling
    adults: frozenset[int]  # levels
    cell: tuple[Spelling, ...]  # what makes a person stand out

    @classmethod
    def by(cls, scenario: Scenario | None, source: Source) -> Told:
        """By the scenario that is given, or the one whose columns the file has."""
        if scenario is None:
            scenario, home = of_persons(source.columns)
        elif scenario.household is None:
            raise InputError(f"scenario {scenario.name} does not say what a household is; it needs [household]")
        else:
            home = scenario.household
        ((name, levels),) = home.adult.sets
        spellings = [Spelling(scenario.schema.attribute(one)) for one in (name, *home.stand_out)]
        return cls(scenario.geography, home, spellings[0], levels, tuple(spellings[1:]))

    @property
    def place(self) -> str:
        return self.geography.place

    @property
    def columns(self) -> list[str]:
        return [column for spelling in (self.adult, *self.cell) for column in spelling.columns]

    @property
    def log(self) -> pl.Schema:
        home, place = self.home.column, self.place
        names = (home, f"from_{place}", f"to_{place}", f"partner_{home}")
        return pl.Schema(dict.fromkeys(names, pl.String()) | {"distance": pl.Float64(), "tier": pl.Int64()})


def swap_file(
    records: Path,
    out: Path,
    *,
    rate: float,
    seed: int,
    scenario: Scenario | None = None,
    nearest: int = 5,
    small: int = 10,
    coordinates: Path | None = None,
    quarters: str = "keep",
    log: Path | None = None,
    households: Path | None = None,
    households_out: Path | None = None,
) -> SwapCounts:
    """Write the records of a file with some households in each other's places; what was done, in numbers.

    Without a scenario, the columns of the file decide which built-in one says what a household is. `households` is the
    file of these households, which is written with the same moves to `households_out`. All files get their names when
    all are whole.
    """
    if (households is None) != (households_out is None):
        raise InputError("--households and --households-out go together: give both, or neither")
    if quarters not in QUARTERS:
        raise unknown("--group-quarters", quarters, QUARTERS)
    source = open_source(records)
    told = Told.by(scenario, source)
    if not 0 <= rate <= 1:
        raise InputError(f"--rate {rate:g}: expected the share of households that change {told.place}, from 0 to 1")
    people = _people(source, told)
    where = _where(coordinates, people) if coordinates else along_codes(people.area(told.home.near))
    draws = draws_of(people.names, seed)
    homes = _homes(people, small, draws[:, RANKING])
    done = swap_by_tiers(homes, where, rate, draws, nearest)
    quartered, known = int((people.unit < 0).sum()), told.home.quarters.column in source.columns
    counts = SwapCounts(
        persons=len(people.unit),
        households=len(homes),
        imputed_households=int(homes.fixed.sum()),
        moved=done.moved,
        share=done.share,
        persons_moved=int((done.partner[people.unit[people.unit >= 0]] >= 0).sum()),
        chosen=int(done.chosen.sum()),
        unmatched=done.unmatched,
        tiers=_by_tier(homes, done),
        nearness="coordinates" if coordinates else "codes",
        group_quarters_persons=quartered,
        group_quarters_by=told.home.quarters.column if known else told.home.column,
    )
    cell = people.cell
    if quarters == "synthesize":
        cell, farther = _synthetic(people, source, seed)
        differently = int((cell != people.cell).sum())
        drawn = {told.home.within: farther}
        counts = replace(counts, redrawn_from=drawn, redrawn=quartered, redrawn_differently=differently)
    place = np.where(people.unit >= 0, np.append(done.place, 0)[people.unit], people.place)
    moves = Moves(source, people.names, people.line, people.places, homes.place, done.place, told.geography, told.home)
    with ExitStack() as stack:
        if households is not None and households_out is not None:
            file, units = check_households(households, moves)
            counts = replace(counts, units=units, units_without_persons=units - counts.households)
            write_households(file, stack.enter_context(row_writer(households_out)), moves)
        if log is not None:
            _write_log(stack.enter_context(row_writer(log)), people, homes, done)
        writer = stack.enter_context(row_writer(out))
        _write(source, writer, people, place, cell if quarters == "synthesize" else None)
    return counts


@dataclass(frozen=True)
class _People:
    """What decides of the persons of a file, a row each, in its order; and of their households, by identifier."""

    told: Told
    place: Ints  # by number
    unit: Ints  # the number of the household; NOBODY in group quarters
    adult: Flags
    cell: Ints  # what makes a person stand out
    defined: Flags
    places: pl.Series  # codes, sorted
    names: pl.Series  # identifiers of households, sorted
    home: Ints  # the place of each household
    line: Ints  # where its first member stands

    def area(self, level: str) -> Ints:
        """Of each place, the number of the area of a level that it lies in, from 0, in the order of codes."""
        codes = self.places.str.head(self.told.geography.lengths[level])
        return codes.rank("dense").to_numpy().astype(np.int64) - 1


def _people(source: Source, told: Told) -> _People:
    """Read the columns that decide, and find the households."""
    home = told.home
    need_columns(source, [told.place, *told.columns], "swapping reads person records")
    need_columns(
        source, [home.column], "households are swapped: it says who lives together; add it, or see protect relocate"
    )
    extra = [name for name in (home.quarters.column, home.defined) if name in source.columns]
    parts, first = [], 0
    for chunk in source.chunks([told.place, home.column, *told.columns, *extra]):
        first = first or chunk.first
        parts.append(_deciding(source, chunk, told))
    frame = pl.concat(parts) if parts else pl.DataFrame()
    if not frame.height:
        raise InputError(f"{source.path.name}: there is a header and no records; expected persons")
    places = frame[LIVES].unique().sort()
    place = places.search_sorted(frame[LIVES]).to_numpy().astype(np.int64)
    quartered = frame[QUARTERED].to_numpy()
    named = frame[home.column].set(pl.Series(quartered), None)
    names = named.drop_nulls().unique().sort()
    unit = np.full(len(place), NOBODY, np.int64)
    unit[~quartered] = names.search_sorted(named.drop_nulls()).to_numpy()
    mixed = pl.Series(quartered) & frame[home.column].is_in(names.implode())
    if mixed.any():
        line = first + int(mixed.arg_max() or 0)
        raise InputError(
            f"{source.where(line)}: '{home.quarters.column}' says group quarters, and other lines with the same "
            f"{home.column} do not; expected all members of a unit alike"
        )
    at = np.flatnonzero(unit >= 0)
    lives = np.empty(len(names), np.int64)
    lives[unit[at]] = place[at]
    line_of = first + at[np.unique(unit[at], return_index=True)[1]]
    _refuse_divided(source, told, first, unit, at, place, lives)
    adult, cell, defined = (frame[name].to_numpy() for name in (GROWN, CELL, DEFINED))
    return _People(told, place, unit, adult, cell.astype(np.int64), defined, places, names, lives, line_of)


def _deciding(source: Source, chunk: Chunk, told: Told) -> pl.DataFrame:
    """Of some records what decides, checked value by value."""
    codes = read_codes(source, chunk, PlaceColumns(((told.place, 0),), told.place))
    check_codes(source, chunk.first, codes, told.geography, told.place)
    cell, step = np.zeros(chunk.frame.height, np.int64), 1
    for spelling in told.cell:
        cell, step = cell + spelling.read(source, chunk) * step, step * len(spelling)
    household, quarters, defined = identifiers(source, chunk, told.home.column), told.home.quarters, told.home.defined
    quartered = household.is_null().to_numpy()
    if quarters.column in chunk.frame.columns:
        quartered |= whole_numbers(source, chunk, quarters.column, quarters.highest) > 0
    grown = np.isin(told.adult.level[told.adult.read(source, chunk)], list(told.adults))
    counted = np.ones(len(cell), np.bool_)
    if defined in chunk.frame.columns:
        counted = whole_numbers(source, chunk, defined, 1) > 0
    return pl.DataFrame(
        [
            codes.alias(LIVES),
            household,
            pl.Series(GROWN, grown),
            pl.Series(CELL, cell.astype(np.int32)),
            pl.Series(QUARTERED, quartered),
            pl.Series(DEFINED, counted),
        ]
    )


def _refuse_divided(source: Source, told: Told, first: int, unit: Ints, at: Ints, place: Ints, home: Ints) -> None:
    """Refuse a household with members in two places, by its first line."""
    divided = np.unique(unit[at[place[at] != home[unit[at]]]])
    if len(divided):
        line = first + int(np.flatnonzero(np.isin(unit, divided))[0])
        more = f" ({len(divided) - 1:,} more households like it)" if len(divided) > 1 else ""
        raise InputError(
            f"{source.where(line)}: the members of this household are in two {plural(told.place)}{more}; expected one "
            f"{told.home.column} for those who live together, and no other household with the same"
        )


def _where(path: Path, people: _People) -> Floats:
    """The coordinates of places, from a file that may have others too."""
    source, place = open_source(path), people.told.place
    need_columns(source, ("x", "y"), f"where {plural(place)} lie: {place}, x, y")
    code = source.columns[0]
    parts = [chunk.frame[code].cast(pl.String) for chunk in source.chunks([code])]
    listed = pl.concat([pl.Series(code, [], dtype=pl.String), *parts]).drop_nulls().unique().sort()
    numbers = numbers_of(path, listed.to_list(), ("x", "y"))
    missing = people.places.filter(~people.places.is_in(listed.implode()))
    if len(missing):
        raise InputError(
            f"{path.name}: {len(missing):,} {plural(place)} of the records are missing, such as '{missing[0]}'; "
            f"expected a row for every {place}, its code in the first column, here '{code}'"
        )
    at: Ints = listed.search_sorted(people.places).to_numpy().astype(np.int64)
    return numbers[at]


def _homes(people: _People, small: int, tie: Floats) -> Homes:
    """The households as a swap sees them: what they agree on, and how exposed each is."""
    households, places, level = len(people.names), len(people.places), people.told.home
    inside = people.unit >= 0
    unit = people.unit[inside]
    persons, adults, defined = (
        np.bincount(unit[some[inside]], minlength=households)
        for some in (np.ones_like(inside), people.adult, people.defined)
    )
    in_place = np.bincount(people.place, minlength=places)
    # The group quarters of a place are one more unit: who is alone with a cell depends on their residents, too.
    every_unit = np.where(inside, people.unit, households + people.place)
    risk = at_risk(np.append(people.home, np.arange(places)), in_place, every_unit, people.cell, small)[:households]
    near, area = (people.area(one)[people.home] for one in (level.near, level.within))
    alike = composed_alike(near, persons, adults, unit, people.cell[inside])
    tier = tiers(area, risk, alike, in_place[people.home], tie)
    return Homes(people.home, area, alike_key(persons, adults), tier, defined == 0)


def _by_tier(homes: Homes, done: SwappedNearby) -> tuple[Mapping[str, float], ...]:
    """How many households each tier has, the most exposed first, and how many of them moved."""
    moved = np.bincount(homes.tier[done.partner >= 0], minlength=len(TIERS))
    every = np.bincount(homes.tier, minlength=len(TIERS))
    return tuple(
        {"tier": number + 1, "weight": TIERS[number][1], "households": int(every[number]), "moved": int(moved[number])}
        for number in range(len(TIERS))
    )


def _synthetic(people: _People, source: Source, seed: int) -> tuple[Ints, int]:
    """Cells, with those of residents of group quarters drawn anew; and how many came from the whole wider area.

    The draws of an area of donors are its own. Residents take them in the order of place, identifiers, what tells them
    apart, and cell: so the order of rows does not matter, but among those who agree in all of these.
    """
    home = people.told.home
    rows = np.flatnonzero(people.unit < 0)
    names = [name for name in (home.column, *home.tell_apart) if name in source.columns]
    parts, begin = [], 0
    for chunk in source.chunks(names):
        mine = rows[(rows >= begin) & (rows < begin + chunk.frame.height)] - begin
        parts.append(chunk.frame[mine].select(pl.all().cast(pl.String)))
        begin += chunk.frame.height
    keys = [pl.Series(LIVES, people.place[rows]), pl.Series(CELL, people.cell[rows])]
    sorted_ = pl.concat(parts).with_columns(*keys).with_row_index("at").sort(LIVES, *names, CELL)
    rows = rows[sorted_["at"].to_numpy()]
    place = people.place[rows]
    donors = people.area(home.donors)[place]
    length = people.told.geography.lengths[home.donors]
    draw = np.concatenate(
        [np.empty(0)]
        + [
            chance(seed, str(people.places[int(place[at])])[:length], "group quarters").random(int(number))
            for at, number in zip(*np.unique(donors, return_index=True, return_counts=True)[1:], strict=True)
        ]
    )
    done = redraw(donors, people.area(home.within)[place], people.adult[rows], people.cell[rows], draw)
    cell = people.cell.copy()
    cell[rows] = done.cell
    return cell, done.from_wide


def _write(source: Source, writer: RowWriter, people: _People, place: Ints, cell: Ints | None) -> None:
    """The records as they came, in their new places; with cells, what makes them stand out is written anew."""
    told = people.told
    kinds = pl.read_parquet_schema(source.path) if source.counted_in == "row" else {}
    kinds = {name: kind for name, kind in kinds.items() if name != told.place}
    done = 0
    for chunk in source.chunks():
        rows = slice(done, done + chunk.frame.height)
        done = rows.stop
        columns = [people.places.gather(place[rows]).alias(told.place)]
        if cell is not None:
            columns += _spelled(told, cell[rows], chunk.frame)
        writer.write(chunk.frame.with_columns(columns).cast(kinds))  # type: ignore[arg-type]  # as they came


def _spelled(told: Told, cell: Ints, frame: pl.DataFrame) -> Sequence[pl.Series]:
    """The columns that say a cell."""
    found: list[pl.Series] = []
    for spelling in told.cell:
        found += spelling.spelled(cell % len(spelling), frame)
        cell = cell // len(spelling)
    return found


def _write_log(writer: RowWriter, people: _People, homes: Homes, done: SwappedNearby) -> None:
    """The pairs, a row for each of the two, in the order of identifiers. Who reads it undoes the swap."""
    moved = np.flatnonzero(done.partner >= 0)
    columns = (
        people.names.gather(moved),
        people.places.gather(homes.place[moved]),
        people.places.gather(done.place[moved]),
        people.names.gather(done.partner[moved]),
        pl.Series(done.distance[moved]),
        pl.Series(homes.tier[moved] + 1),
    )
    log = people.told.log
    writer.write(pl.DataFrame(dict(zip(log.names(), columns, strict=True)), schema=log))
