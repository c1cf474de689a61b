"""Who can be linked? Person identifiers as a census has them: some records have none, some share one by mistake.

About nine records in ten get an identifier; the others are imputed or incomplete. Within a household two records
sometimes get the same one; then one of them, by chance, counts as the person. Records with an identifier that count
are the data-defined population (paper 000: 89.4% of records; 1.0% of those with an identifier are dropped as
duplicates).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from glasshouse.population.people import RESIDENT, People

Ints = NDArray[np.int64]

DEFINED = 0.894  # share of all records that are data-defined
DUPLICATE = 0.010  # share of the records with an identifier that are dropped
PRONE = 0.45  # share of blocks in which records share an identifier at all (paper 000: they do in 15% of blocks)
IMPUTED_HOMES = 0.25  # share of the records without one that come from households of which nothing is known
_MODULUS, _FACTOR = 10_000_000_019, 6_364_136_223  # numbers are spread over ten digits and tell nothing


@dataclass(frozen=True)
class Identities:
    """Of each record: the number of the person (or -1), whether it is data-defined; of each unit: is all imputed?"""

    person: Ints
    data_defined: NDArray[np.bool_]
    imputed: NDArray[np.bool_]


def identify(people: People, first: int, rng: np.random.Generator) -> Identities:
    """Identifiers for the records of a tract; `first` is the number of its first person in the county."""
    count, units = len(people.unit), len(people.unit_block)
    known = DEFINED / (1 - DUPLICATE)
    whole = (1 - known) * IMPUTED_HOMES
    imputed = rng.random(units) < whole
    missing = (1 - known - whole) / (1 - whole)
    has = ~imputed[people.unit] & (rng.random(count) >= missing)
    person = np.where(has, first + np.arange(count), -1)
    defined = has.copy()
    # the one before in the same household, if both have an identifier
    pair = np.flatnonzero(
        has[1:] & has[:-1] & (people.unit[1:] == people.unit[:-1]) & (people.relation[1:] != RESIDENT)
    )
    prone = rng.random(int(people.unit_block.max(initial=0)) + 1) < PRONE  # blocks where it happens at all
    pair = pair[prone[people.unit_block[people.unit[pair]]]]
    wanted = DUPLICATE * has.sum()
    chosen = pair[rng.random(len(pair)) < wanted / max(len(pair), 1)] + 1
    chosen = chosen[np.concatenate([[True], np.diff(chosen) > 1])] if len(chosen) else chosen
    person[chosen] = person[chosen - 1]
    loser = np.where(rng.random(len(chosen)) < 0.5, chosen, chosen - 1)
    defined[loser] = False
    return Identities(person, defined, imputed)


def spelled(numbers: Ints, letter: str = "P") -> list[str | None]:
    """Numbers as identifiers of ten digits in no order, which tell nothing of place; None for a negative one."""
    mixed = [(int(number) + 1) * _FACTOR % _MODULUS if number >= 0 else None for number in numbers]
    return [None if number is None else f"{letter}{number:011d}" for number in mixed]
