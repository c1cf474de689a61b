"""Where do people live? Tracts, block groups and blocks with their codes, coordinates and numbers of persons."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glasshouse.errors import InputError
from glasshouse.population.preset import Preset

Ints = NDArray[np.int64]

STATE = "99"  # no state has this code
TRACTS_OF_COUNTY = 999
MOST_GROUPS, MOST_BLOCKS = 9, 999  # of a tract, of a block group: one digit and three
MOST_PERSONS = 400_000_000
TRACT_METRES = 3000.0  # a tract is a square of this side


@dataclass(frozen=True)
class Places:
    """Blocks, tract by tract: their codes, how many persons they are for, and where they lie in metres."""

    codes: tuple[str, ...]
    persons: Ints
    tract: Ints  # of each block, counted from 0
    x: NDArray[np.float64]
    y: NDArray[np.float64]

    @property
    def tracts(self) -> int:
        return int(self.tract[-1]) + 1 if len(self.tract) else 0

    def of_tract(self, tract: int) -> slice:
        first, last = np.searchsorted(self.tract, [tract, tract + 1])
        return slice(int(first), int(last))


def lay_out(preset: Preset, persons: int, rng: np.random.Generator) -> Places:
    """Blocks for so many persons, with the sizes of the preset, gathered into tracts of blocks of a similar size."""
    if not 1 <= persons <= MOST_PERSONS:
        raise InputError(f"--persons is {persons:,}; expected 1 to {MOST_PERSONS:,}")
    sizes = _sizes(preset, persons, rng)
    alike = float(preset["blocks"]["alike"])
    rank = np.argsort(np.argsort(np.log(sizes) + 1e-9 * rng.random(len(sizes)))) / len(sizes)
    sizes = sizes[np.argsort(alike * rank + (1 - alike) * rng.random(len(sizes)), kind="stable")]
    tract = _tracts(sizes, float(preset["blocks"]["tract_persons"]))
    order = np.lexsort((rng.random(len(sizes)), _shuffled(tract, rng)[tract]))  # tracts in no order, blocks neither
    sizes, tract = sizes[order], _renumbered(tract[order])
    group, number = _groups(sizes, tract, float(preset["blocks"]["group_persons"]))
    if tract[-1] >= 999 * TRACTS_OF_COUNTY:
        raise InputError(f"{persons:,} persons need more than {999 * TRACTS_OF_COUNTY:,} tracts; ask for fewer")
    codes = tuple(
        f"{STATE}{t // TRACTS_OF_COUNTY + 1:03d}{t % TRACTS_OF_COUNTY + 1:04d}00{g}{n:03d}"
        for t, g, n in zip(tract.tolist(), group.tolist(), number.tolist(), strict=True)
    )
    return Places(codes, sizes, tract, *_coordinates(tract, rng))


def _sizes(preset: Preset, persons: int, rng: np.random.Generator) -> Ints:
    """Block sizes: a band by its share, then a size within it, smaller ones more often, until all are placed."""
    low, high, share = np.array(preset["blocks"]["bands"], np.float64).T
    found: list[Ints] = []
    left = persons
    while left > 0:
        band = rng.choice(len(share), max(1000, left // 40), p=share / share.sum())
        least, most, share_of = (
            low[band],
            high[band] + 1,
            rng.random(len(band)) ** 1.25,
        )  # means within bands as published
        size = np.where(most <= 10, least + (most - least) * share_of, least * (most / least) ** share_of)
        sizes = np.clip(size, least, high[band]).astype(np.int64)
        kept = int(np.searchsorted(np.cumsum(sizes), left)) + 1
        found.append(sizes[:kept])
        left -= int(sizes[:kept].sum())
    all_sizes = np.concatenate(found)
    all_sizes[-1] += left  # what was too much
    return all_sizes[all_sizes > 0]


def _tracts(sizes: Ints, persons: float) -> Ints:
    """Consecutive blocks of about so many persons, and never more than codes can number."""
    weight = np.maximum(sizes / persons, 1 / (MOST_GROUPS * MOST_BLOCKS * 0.4))
    return np.asarray((np.cumsum(weight) - weight).astype(np.int64))


def _shuffled(tract: Ints, rng: np.random.Generator) -> Ints:
    return rng.permutation(int(tract[-1]) + 1)


def _renumbered(tract: Ints) -> Ints:
    return np.cumsum(np.concatenate([[0], (np.diff(tract) != 0).astype(np.int64)]))


def _groups(sizes: Ints, tract: Ints, persons: float) -> tuple[Ints, Ints]:
    """The block group of each block, from 1, and its number in it."""
    weight = np.maximum(sizes / persons, 1 / (MOST_BLOCKS - 1))
    before = np.cumsum(weight) - weight
    group = (before - before[np.searchsorted(tract, tract)]).astype(np.int64) + 1
    if group.max() > MOST_GROUPS:
        raise InputError(f"a tract would have {group.max()} block groups; at most {MOST_GROUPS}: raise group_persons")
    key = tract * (MOST_GROUPS + 1) + group
    return group, np.arange(len(sizes)) - np.searchsorted(key, key)


def _coordinates(tract: Ints, rng: np.random.Generator) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Tracts are squares on a grid, row by row; blocks lie within theirs in rows, a little off."""
    tracts = int(tract[-1]) + 1
    wide = int(np.ceil(np.sqrt(tracts)))
    rank = np.arange(len(tract)) - np.searchsorted(tract, tract)
    side = np.ceil(np.sqrt(np.bincount(tract)[tract]))
    step = TRACT_METRES / side
    x = (tract % wide) * TRACT_METRES + (rank % side + 0.25 + 0.5 * rng.random(len(tract))) * step
    y = (tract // wide) * TRACT_METRES + (rank // side + 0.25 + 0.5 * rng.random(len(tract))) * step
    return np.round(x, 1), np.round(y, 1)
