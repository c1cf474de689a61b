"""Who makes up a number that is a sum? Its total, and its largest contributions, largest first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from glasshouse.errors import InputError


class Cell(NamedTuple):
    """Which number it is."""

    level: str
    geoid: str
    variable: str


@dataclass(frozen=True)
class Contributions:
    """Who makes up a cell: the sum, its largest contributions (largest first), and how many contributors, if told."""

    total: int
    largest: tuple[int, ...]
    contributors: int | None = None

    def __post_init__(self) -> None:
        told, left = sum(self.largest), self.total - sum(self.largest)
        unknown = None if self.contributors is None else self.contributors - len(self.largest)
        if min((self.total, *self.largest)) < 0:
            raise InputError("a contribution below 0; expected numbers from 0 up")
        if list(self.largest) != sorted(self.largest, reverse=True):
            raise InputError("contributions are not in order; expected the largest first")
        if left < 0:
            raise InputError(f"the largest contributions add up to {told:,}, more than the total of {self.total:,}")
        if unknown is not None and (unknown < 0 or (unknown == 0 and left > 0)):
            raise InputError(
                f"{self.contributors:,} contributors of a total of {self.total:,}, but {len(self.largest):,} "
                f"contributions that add up to {told:,} are named"
            )
        if left > 0 and self.largest and unknown is not None and left > unknown * self.largest[-1]:
            raise InputError(
                f"the contributions that are not named add up to {left:,}, more than {unknown:,} times the least that "
                f"is named ({self.largest[-1]:,})"
            )

    def top(self, number: int) -> int:
        """The sum of the largest so many; refused if they are not all known."""
        if len(self.largest) < number and sum(self.largest) < self.total:
            raise InputError(
                f"{len(self.largest)} contributions are named, which are not all; expected the {number} largest"
            )
        return sum(self.largest[:number])


def together(cells: Sequence[Contributions]) -> Contributions:
    """Several cells as one, where nobody contributes to two of them: as far down as every cell is known."""
    known = [one for one in cells if sum(one.largest) < one.total]  # cells of which not all contributions are named
    depth = min((len(one.largest) for one in known), default=None)
    largest = sorted((value for one in cells for value in one.largest), reverse=True)
    told = all(one.contributors is not None for one in cells)
    people = sum(one.contributors or 0 for one in cells) if told else None
    return Contributions(sum(one.total for one in cells), tuple(largest[:depth]), people)


def of_records(given: Iterable[tuple[str, int]]) -> Contributions:
    """Contributors with what each gives, one row or several for each."""
    sums: dict[str, int] = {}
    for contributor, value in given:
        sums[contributor] = sums.get(contributor, 0) + value
    return Contributions(sum(sums.values()), tuple(sorted(sums.values(), reverse=True)), len(sums))


@dataclass(frozen=True)
class Contributed:
    """The contributions of many cells; where contributors are named, `joined` makes several cells one."""

    cells: Mapping[Cell, Contributions]
    joined: Callable[[Sequence[Cell]], Contributions] | None = None

    def of(self, cell: Cell) -> Contributions | None:
        """Who makes up a cell; None: that is not told. Where contributors are named, nobody else is anywhere."""
        return self.cells.get(cell, None if self.joined is None else Contributions(0, (), 0))

    def union(self, cells: Sequence[Cell]) -> Contributions | None:
        """Several cells as one; None where one of them is not told.

        Somebody who contributes to two of them is one contributor if names are known, else taken for two.
        """
        if self.joined is not None:
            return self.joined(cells)
        given = [self.cells[cell] for cell in cells if cell in self.cells]
        return together(given) if len(given) == len(cells) else None
