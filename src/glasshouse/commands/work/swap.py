"""The job behind `glasshouse protect swap`: person records in, the same records out, some households in other blocks.

The file is read twice: first the columns that decide, for the whole file; then everything, piece by piece, to be
written as it came, in the order of its rows, with other blocks. Households are numbered by their identifiers and take
their draws from them, so the order of rows decides nothing. The file of the households themselves can go along.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.commands.work.swapped_households import (
    GEOGRAPHY,
    HOUSEHOLD,
    PLACE,
    Moves,
    check_households,
    identifiers,
    write_households,
)
from glasshouse.errors import InputError, unknown
from glasshouse.files.frames import Chunk, Source, need_columns, open_source
from glasshouse.files.output import RowWriter, row_writer
from glasshouse.files.places import PlaceColumns, check_codes, read_codes
from glasshouse.files.surroundings import numbers_of
from glasshouse.model.chance import chance
from glasshouse.protection.swap.by_rates import at_risk, swap_key
from glasshouse.protection.swap.by_tiers import (
    RANKING,
    TIERS,
    Homes,
    NearbySwap,
    alike_in_tract,
    along_codes,
    draws_of,
    swap_nearby,
    tiers,
)
from glasshouse.protection.swap.quarters import redraw

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Floats = NDArray[np.float64]

QUARTERS = ("keep", "synthesize")
QUARTERED, DEFINED, HISPANIC = "gq", "data_defined", "hispanic"
RACES = ("white", "black", "aian", "asian", "nhopi", "sor")
VOTING_AGE = 18
OLDEST = 110
HIGHEST_QUARTERS = 999  # codes of group quarters have up to three digits
NOBODY = -1
TIES = ("person_id", "sex", "age")  # what tells residents of one unit apart, where a file has it
LOG = pl.Schema(
    {
        "household_id": pl.String, "from_block": pl.String, "to_block": pl.String,
        "partner_household_id": pl.String, "distance": pl.Float64, "tier": pl.Int64,
    }
)  # fmt: skip


def swap_file(
    records: Path,
    out: Path,
    *,
    rate: float,
    seed: int,
    nearest: int = 5,
    small: int = 10,
    coordinates: Path | None = None,
    quarters: str = "keep",
    log: Path | None = None,
    households: Path | None = None,
    households_out: Path | None = None,
) -> dict[str, Any]:
    """Write the records of a file with some households in each other's blocks; what was done, in numbers.

    `households` is the file of these households, which is written with the same moves to `households_out`. All files
    get their names when all are whole.
    """
    if (households is None) != (households_out is None):
        raise InputError("--households and --households-out go together: give both, or neither")
    if quarters not in QUARTERS:
        raise unknown("--group-quarters", quarters, QUARTERS)
    if not 0 <= rate <= 1:
        raise InputError(f"--rate {rate:g}: expected the share of households that change block, from 0 to 1")
    source = open_source(records)
    people = _people(source)
    where = _where(coordinates, people) if coordinates else along_codes(_prefix(people.blocks, "tract"))
    draws = draws_of(people.names, seed)
    homes = _homes(people, small, draws[:, RANKING])
    done = swap_nearby(homes, where, rate, draws, nearest)
    counts: dict[str, Any] = {
        "persons": len(people.unit),
        "households": len(homes),
        "imputed_households": int(homes.fixed.sum()),
        "moved": done.moved,
        "share": done.share,
        "persons_moved": int((done.partner[people.unit[people.unit >= 0]] >= 0).sum()),
        "chosen": int(done.chosen.sum()),
        "unmatched": done.unmatched,
        "tiers": _by_tier(homes, done),
        "nearness": "coordinates" if coordinates else "codes",
        "group_quarters_persons": int((people.unit < 0).sum()),
        "group_quarters_by": QUARTERED if QUARTERED in source.columns else HOUSEHOLD,
    }
    cell = people.cell
    if quarters == "synthesize":
        cell, counts["redrawn_from_state"] = _synthetic(people, source, seed)
        counts["redrawn"] = counts["group_quarters_persons"]
        counts["redrawn_differently"] = int((cell != people.cell).sum())
    block = np.where(people.unit >= 0, np.append(done.block, 0)[people.unit], people.block)
    moves = Moves(source, people.names, people.line, people.blocks, homes.block, done.block)
    with ExitStack() as stack:
        if households is not None and households_out is not None:
            units, said = check_households(households, moves)
            counts |= said
            write_households(units, stack.enter_context(row_writer(households_out)), moves)
        if log is not None:
            _write_log(stack.enter_context(row_writer(log)), people, homes, done)
        writer = stack.enter_context(row_writer(out))
        _write(source, writer, people.blocks, block, cell if quarters == "synthesize" else None)
    return counts


@dataclass(frozen=True)
class _People:
    """What decides of the persons of a file, a row each, in its order; and of their households, by identifier."""

    block: Ints  # by number
    unit: Ints  # the number of the household; NOBODY in group quarters
    adult: Flags
    cell: Ints  # 6 bits of race, then origin
    defined: Flags
    blocks: pl.Series  # codes, sorted
    names: pl.Series  # identifiers of households, sorted
    home: Ints  # the block of each household
    line: Ints  # where its first member stands


def _people(source: Source) -> _People:
    """Read the columns that decide, and find the households."""
    need_columns(source, [PLACE, "age", *RACES, HISPANIC], "swapping reads person records")
    need_columns(
        source, [HOUSEHOLD], "households are swapped: it says who lives together; add it, or see protect relocate"
    )
    extra = [name for name in (QUARTERED, DEFINED) if name in source.columns]
    parts, first = [], 0
    for chunk in source.chunks([PLACE, HOUSEHOLD, "age", *RACES, HISPANIC, *extra]):
        first = first or chunk.first
        parts.append(_deciding(source, chunk))
    frame = pl.concat(parts) if parts else pl.DataFrame()
    if not frame.height:
        raise InputError(f"{source.path.name}: there is a header and no records; expected persons")
    blocks = frame[PLACE].unique().sort()
    block = blocks.search_sorted(frame[PLACE]).to_numpy().astype(np.int64)
    quartered = frame[QUARTERED].to_numpy()
    named = frame[HOUSEHOLD].set(pl.Series(quartered), None)
    names = named.drop_nulls().unique().sort()
    unit = np.full(len(block), NOBODY, np.int64)
    unit[~quartered] = names.search_sorted(named.drop_nulls()).to_numpy()
    mixed = pl.Series(quartered) & frame[HOUSEHOLD].is_in(names.implode())
    if mixed.any():
        line = first + int(mixed.arg_max() or 0)
        raise InputError(
            f"{source.where(line)}: '{QUARTERED}' says group quarters, and other lines with the same {HOUSEHOLD} do "
            "not; expected all members of a unit alike"
        )
    at = np.flatnonzero(unit >= 0)
    home = np.empty(len(names), np.int64)
    home[unit[at]] = block[at]
    line_of = first + at[np.unique(unit[at], return_index=True)[1]]
    _refuse_divided(source, first, unit, at, block, home)
    columns = {name: frame[name].to_numpy() for name in ("adult", "cell", DEFINED)}
    cell = columns["cell"].astype(np.int64)
    return _People(block, unit, columns["adult"], cell, columns[DEFINED], blocks, names, home, line_of)


def _deciding(source: Source, chunk: Chunk) -> pl.DataFrame:
    """Of some records what decides, checked value by value."""
    codes = read_codes(source, chunk, PlaceColumns(((PLACE, 0),), PLACE))
    check_codes(source, chunk.first, codes, GEOGRAPHY, PLACE)
    race = np.zeros(chunk.frame.height, np.int64)
    for bit, name in enumerate(RACES):
        race |= _whole(source, chunk, name, 1) << bit
    if not race.all():
        line = chunk.first + int(np.argmin(race))
        raise InputError(f"{source.where(line)}: {' '.join(RACES)} are all 0; expected at least one 1")
    cell = race | _whole(source, chunk, HISPANIC, 1) << len(RACES)
    household = identifiers(source, chunk)
    quartered = household.is_null().to_numpy()
    if QUARTERED in chunk.frame.columns:
        quartered |= _whole(source, chunk, QUARTERED, HIGHEST_QUARTERS) > 0
    everyone = np.ones(len(cell), np.bool_)
    return pl.DataFrame(
        [
            codes.alias(PLACE),
            household,
            pl.Series("adult", _whole(source, chunk, "age", OLDEST) >= VOTING_AGE),
            pl.Series("cell", cell.astype(np.int16)),
            pl.Series(QUARTERED, quartered),
            pl.Series(DEFINED, _whole(source, chunk, DEFINED, 1) > 0 if DEFINED in chunk.frame.columns else everyone),
        ]
    )


def _whole(source: Source, chunk: Chunk, name: str, highest: int) -> Ints:
    """A column of whole numbers from 0, however they are spelled."""
    column = chunk.frame[name]
    if column.dtype == pl.String:
        column = column.str.strip_chars()
    number = column.cast(pl.Float64, strict=False)
    wrong = ~(number.is_between(0, highest) & (number == number.floor())).fill_null(False)
    if wrong.any():
        at = int(wrong.arg_max() or 0)
        said = "empty" if column[at] in (None, "") else repr(str(column[at])[:20])
        expected = "0 or 1" if highest == 1 else f"a whole number from 0 to {highest}"
        raise InputError(f"{source.where(chunk.first + at)}: column '{name}' is {said}; expected {expected}")
    return number.to_numpy().astype(np.int64)


def _refuse_divided(source: Source, first: int, unit: Ints, at: Ints, block: Ints, home: Ints) -> None:
    """Refuse a household with members in two blocks, by its first line."""
    divided = np.unique(unit[at[block[at] != home[unit[at]]]])
    if len(divided):
        line = first + int(np.flatnonzero(np.isin(unit, divided))[0])
        more = f" ({len(divided) - 1:,} more households like it)" if len(divided) > 1 else ""
        raise InputError(
            f"{source.where(line)}: the members of this household are in two blocks{more}; expected one {HOUSEHOLD} "
            "for those who live together, and no other household with the same"
        )


def _prefix(codes: pl.Series, level: str) -> Ints:
    """Numbers from 0 for the areas of a level that blocks lie in, in the order of codes."""
    return codes.str.head(GEOGRAPHY.lengths[level]).rank("dense").to_numpy().astype(np.int64) - 1


def _where(path: Path, people: _People) -> Floats:
    """The coordinates of blocks, from a file that may have others too."""
    source = open_source(path)
    need_columns(source, ("x", "y"), "where blocks lie: block, x, y")
    code = source.columns[0]
    parts = [chunk.frame[code].cast(pl.String) for chunk in source.chunks([code])]
    listed = pl.concat([pl.Series(code, [], dtype=pl.String), *parts]).drop_nulls().unique().sort()
    numbers = numbers_of(path, listed.to_list(), ("x", "y"))
    missing = people.blocks.filter(~people.blocks.is_in(listed.implode()))
    if len(missing):
        raise InputError(
            f"{path.name}: {len(missing):,} blocks of the records are missing, such as '{missing[0]}'; expected a row "
            f"for every block, its code in the first column, here '{code}'"
        )
    at: Ints = listed.search_sorted(people.blocks).to_numpy().astype(np.int64)
    return numbers[at]


def _homes(people: _People, small: int, tie: Floats) -> Homes:
    """The households as a swap sees them: what they agree on, and how exposed each is."""
    households, blocks = len(people.names), len(people.blocks)
    inside = people.unit >= 0
    unit = people.unit[inside]
    persons, adults, defined = (
        np.bincount(unit[some[inside]], minlength=households)
        for some in (np.ones_like(inside), people.adult, people.defined)
    )
    in_block = np.bincount(people.block, minlength=blocks)
    # The group quarters of a block are one more unit: who is alone with a race depends on their residents, too.
    every_unit = np.where(inside, people.unit, households + people.block)
    risk = at_risk(np.append(people.home, np.arange(blocks)), in_block, every_unit, people.cell, small)[:households]
    tract, state = (_prefix(people.blocks, level)[people.home] for level in ("tract", "state"))
    alike = alike_in_tract(tract, persons, adults, unit, people.cell[inside])
    tier = tiers(state, risk, alike, in_block[people.home], tie)
    return Homes(people.home, state, swap_key(persons, adults), tier, defined == 0)


def _by_tier(homes: Homes, done: NearbySwap) -> list[dict[str, Any]]:
    """How many households each tier has, the most exposed first, and how many of them moved."""
    moved = np.bincount(homes.tier[done.partner >= 0], minlength=len(TIERS))
    every = np.bincount(homes.tier, minlength=len(TIERS))
    return [
        {"tier": number + 1, "weight": TIERS[number][1], "households": int(every[number]), "moved": int(moved[number])}
        for number in range(len(TIERS))
    ]


def _synthetic(people: _People, source: Source, seed: int) -> tuple[Ints, int]:
    """Cells, with those of residents of group quarters drawn anew; and how many came from the whole state.

    A county's draws are its own. Residents take them in the order of block, identifiers, sex, age and cell: so the
    order of rows does not matter, but among those who agree in all of these.
    """
    rows = np.flatnonzero(people.unit < 0)
    names = [name for name in (HOUSEHOLD, *TIES) if name in source.columns]
    parts, begin = [], 0
    for chunk in source.chunks(names):
        mine = rows[(rows >= begin) & (rows < begin + chunk.frame.height)] - begin
        parts.append(chunk.frame[mine].select(pl.all().cast(pl.String)))
        begin += chunk.frame.height
    keys = [pl.Series("the block", people.block[rows]), pl.Series("the cell", people.cell[rows])]
    sorted_ = pl.concat(parts).with_columns(*keys).with_row_index("at").sort("the block", *names, "the cell")
    rows = rows[sorted_["at"].to_numpy()]
    block = people.block[rows]
    county = _prefix(people.blocks, "county")[block]
    draw = np.concatenate(
        [np.empty(0)]
        + [
            chance(seed, str(people.blocks[int(block[at])])[: GEOGRAPHY.lengths["county"]], "group quarters").random(
                int(number)
            )
            for at, number in zip(*np.unique(county, return_index=True, return_counts=True)[1:], strict=True)
        ]
    )
    done = redraw(county, _prefix(people.blocks, "state")[block], people.adult[rows], people.cell[rows], draw)
    cell = people.cell.copy()
    cell[rows] = done.cell
    return cell, done.from_state


def _write(source: Source, writer: RowWriter, blocks: pl.Series, block: Ints, cell: Ints | None) -> None:
    """The records as they came, in their new blocks; with cells, race and origin are written anew."""
    kinds = pl.read_parquet_schema(source.path) if source.counted_in == "row" else {}
    kinds = {name: kind for name, kind in kinds.items() if name != PLACE}
    done = 0
    for chunk in source.chunks():
        rows = slice(done, done + chunk.frame.height)
        done = rows.stop
        columns = [blocks.gather(block[rows]).alias(PLACE)]
        if cell is not None:
            columns += _spelled(cell[rows], chunk.frame)
        writer.write(chunk.frame.with_columns(columns).cast(kinds))  # type: ignore[arg-type]  # as they came


def _spelled(cell: Ints, frame: pl.DataFrame) -> Sequence[pl.Series]:
    """The columns of race and origin, of the kind that the file has."""
    values = {name: cell >> bit & 1 for bit, name in enumerate((*RACES, HISPANIC))}
    return [pl.Series(name, value).cast(frame[name].dtype) for name, value in values.items()]


def _write_log(writer: RowWriter, people: _People, homes: Homes, done: NearbySwap) -> None:
    """The pairs, a row for each of the two, in the order of identifiers. Who reads it undoes the swap."""
    moved = np.flatnonzero(done.partner >= 0)
    columns = (
        people.names.gather(moved),
        people.blocks.gather(homes.block[moved]),
        people.blocks.gather(done.block[moved]),
        people.names.gather(done.partner[moved]),
        pl.Series(done.distance[moved]),
        pl.Series(homes.tier[moved] + 1),
    )
    writer.write(pl.DataFrame(dict(zip(LOG.names(), columns, strict=True)), schema=LOG))
