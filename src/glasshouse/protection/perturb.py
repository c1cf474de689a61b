"""How may an office blur a count? Rounding, suppression and cell keys, each with what a reader then knows for sure.

Every protection gives, for each number, what is printed and the interval that surely holds the truth. The interval
follows from what is printed and from the rule alone: nobody who reads it learns more than from the print.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from hashlib import blake2b
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from glasshouse.errors import InputError
from glasshouse.mechanism.account import fraction
from glasshouse.model.printed import How, Keyed, Rounded
from glasshouse.model.records import UNLIMITED, Count
from glasshouse.model.release import Line, Table, counted
from glasshouse.model.schema import Predicate

KEYS = 2**64  # how many different keys a cell can have


@dataclass(frozen=True)
class Protected:
    """Numbers as they are published: what is printed, which are left blank, and what a reader knows of the truth."""

    shown: Count  # 0 where hidden
    hidden: NDArray[np.bool_]
    lower: Count
    upper: Count


class Rounding(StrEnum):
    """To which multiple of the base a count is rounded."""

    RANDOM = "random"  # below or above, by chance and without bias
    NEAREST = "nearest"  # a count in the middle goes up
    UP = "up"
    DOWN = "down"


AS_READ: dict[Rounding, How] = {
    Rounding.RANDOM: "random", Rounding.NEAREST: "half-up", Rounding.UP: "up", Rounding.DOWN: "down",
}  # fmt: skip


def round_counts(counts: Count, base: int, how: Rounding, rng: np.random.Generator) -> Protected:
    """Round every count to a multiple of the base; only `random` uses chance.

    At random, a count with remainder r goes up with probability r / base: on average it stays what it is, and a
    multiple of the base stays for sure. Still a reader of v knows only that the truth is less than a base away.

    >>> told = round_counts(np.array([0, 4, 5, 7]), 5, Rounding.NEAREST, np.random.default_rng(1))
    >>> told.shown.tolist(), told.lower.tolist(), told.upper.tolist()
    ([0, 5, 5, 5], [0, 3, 3, 3], [2, 7, 7, 7])
    """
    rule = Rounded(base, AS_READ[how])
    if how is Rounding.RANDOM:
        below, remainder = np.divmod(counts, base)
        shown = (below + (rng.integers(0, base, counts.shape) < remainder)) * base
    else:
        added = {Rounding.NEAREST: base // 2, Rounding.UP: base - 1, Rounding.DOWN: 0}[how]
        shown = (counts + added) // base * base
    return Protected(shown, np.zeros(counts.shape, np.bool_), *rule.behind(shown))


def suppress(counts: Count, below: int, *, hide_zeros: bool, also: NDArray[np.bool_]) -> Protected:
    """Leave small counts blank, and those that someone else names.

    Of a small count a reader knows that it is small; of one that is named, nothing: whoever names it says so.
    """
    if below < 2:
        raise InputError(f"counts below {below} are to be hidden; expected 2 or more, else there is nothing to hide")
    least = 0 if hide_zeros else 1
    small = (counts >= least) & (counts < below) & ~also
    lower = np.where(small, least, np.where(also, 0, counts))
    upper = np.where(small, below - 1, np.where(also, UNLIMITED, counts))
    hidden = small | also
    return Protected(np.where(hidden, 0, counts), hidden, lower, upper)


@dataclass(frozen=True)
class PTable:
    """How cell keys change counts: `rows[n]` has the changes of count n with their probabilities, the last row of all
    larger counts too."""

    rows: tuple[tuple[tuple[int, Fraction], ...], ...]

    def __post_init__(self) -> None:
        for count, row in enumerate(self.rows):
            changes = [change for change, _ in row]
            total = sum((probability for _, probability in row), Fraction(0))
            if len(set(changes)) < len(changes):
                raise InputError(f"p-table: count {count} has a change twice; expected each once")
            if min(changes) < -count:
                raise InputError(f"p-table: count {count} has change {min(changes)}; no count goes below 0")
            if any(probability <= 0 for _, probability in row):
                raise InputError(f"p-table: count {count} has a probability that is not above 0; leave the row out")
            if total != 1:
                raise InputError(f"p-table: the probabilities of count {count} add up to {total}; expected exactly 1")

    @classmethod
    def of(cls, rows: Iterable[tuple[str, str, str]]) -> PTable:
        """A p-table from rows of text: a count, a change and its probability (a decimal or a fraction)."""
        found: dict[int, list[tuple[int, Fraction]]] = {}
        for number, (count, change, probability) in enumerate(rows, start=1):
            if not re.fullmatch(r"[0-9]{1,15}", count) or not re.fullmatch(r"[+-]?[0-9]{1,15}", change):
                raise InputError(
                    f"p-table, entry {number}: count '{count}', change '{change}'; expected whole numbers, "
                    "and no count below 0"
                )
            chance = fraction(probability, f"p-table, entry {number}: the probability")
            found.setdefault(int(count), []).append((int(change), chance))
        missing = sorted(set(range(max(found, default=0) + 1)) - set(found))
        if missing:
            raise InputError(f"p-table: no changes for count {missing[0]}; expected counts 0, 1, 2 and so on")
        return cls(tuple(tuple(sorted(found[count])) for count in range(len(found))))

    @property
    def top(self) -> int:
        """The count whose row stands for all larger ones."""
        return len(self.rows) - 1

    @cached_property
    def chances(self) -> tuple[tuple[NDArray[np.uint64], NDArray[np.int64]], ...]:
        """For each row the keys at which the next change begins, and the changes."""
        found = []
        for row in self.rows:
            ends = [int(end * KEYS) for end in accumulate(probability for _, probability in row)][:-1]
            found.append((np.array(ends, np.uint64), np.array([change for change, _ in row], np.int64)))
        return tuple(found)

    @cached_property
    def rule(self) -> Keyed:
        """What a reader of the numbers knows of it: which changes there can be."""
        changes = tuple(frozenset(change for change, _ in row) for row in self.rows)
        return Keyed(changes, changes[-1])

    def counts_behind(self, shown: int) -> tuple[int, int]:
        """The least and the most of the counts that may be printed as this number; the most is exact too."""
        (lower,), (upper,) = self.rule.behind(np.array([shown]))
        return int(lower), int(upper)


def change_by_key(counts: Count, table: PTable, keys: Callable[[NDArray[np.int64]], NDArray[np.uint64]]) -> Protected:
    """Change every count as its cell's key and the p-table say.

    `keys` gives the keys of some cells, a row of indices for each; cells whose count has a single possible change
    are not asked for.
    """
    row = np.minimum(counts, table.top)
    change = np.array([changes[0] for _, changes in table.chances], np.int64)[row]
    open_rows = [number for number, (ends, _) in enumerate(table.chances) if len(ends)]
    for number in open_rows:
        cells = np.argwhere(row == number)
        if len(cells):
            ends, changes = table.chances[number]
            change[tuple(cells.T)] = changes[np.searchsorted(ends, keys(cells), side="right")]
    shown = counts + change
    return Protected(shown, np.zeros(counts.shape, np.bool_), *table.rule.behind(shown))


class CellKeys:
    """The keys of cells: the same place and the same description of records have the same key, in every table.

    Offices add up keys of records; from tables alone the description stands for its records. Who knows the seed knows
    every key, and undoes every change: for a real release it is a secret.
    """

    def __init__(self, seed: int) -> None:
        self.secret = blake2b(str(seed).encode()).digest()

    def key(self, geoid: str, description: bytes) -> int:
        said = geoid.encode() + b"\0" + description
        return int.from_bytes(blake2b(said, key=self.secret, digest_size=8).digest(), "big")


def description_of(table: Table, line: Line) -> bytes:
    """What a line counts, spelled in one way; the total of a tally is what its leaves count, answer by answer."""
    if line.predicate is not None:
        return _spelled(line.predicate)
    return b"answers\0" + b"\0".join(sorted(_spelled(answer) for answer in counted(table, line)))


def _spelled(predicate: Predicate) -> bytes:
    return ";".join(f"{name}={','.join(map(str, sorted(levels)))}" for name, levels in predicate.sets).encode()
