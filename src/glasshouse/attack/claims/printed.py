"""Which claims can be read off the tables? Those that say of all records what a line of one table says already.

A claim is printed when a line of a table counts exactly the records that its description fits, among all records that
can be, and its number is printed as it is, or adds up from lines that are (paper 002, section 4). Two descriptions may
fit the same records though they name other columns: who lives alone has no children. So records are compared, not
words. That a place's own zeros leave nobody else does not count, for that takes numbers of several lines.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from glasshouse.attack.claims.verify import Claimable
from glasshouse.model.release import Counts
from glasshouse.model.schema import Predicate

Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]
SOME = 100  # cells that are looked at before all of them


@dataclass(frozen=True)
class _Line:
    """A line that claims may repeat: the numbers that print it, and the value that all it counts have by column."""

    numbers: tuple[str, ...]  # its own, or those that add up to it
    predicate: Predicate
    only: Ints  # -1: it counts records with several values
    cells: int  # how many it counts


class Printed:
    """The lines that claims may repeat; what was compared once is remembered, as places are much alike."""

    def __init__(self, claimable: Claimable) -> None:
        self.claimable = claimable
        self.lines: dict[int, _Line | None] = {}
        self.sizes: dict[bytes, int] = {}  # by description, the cells that it fits; -1 where it cuts through some

    @cached_property
    def _named(self) -> list[tuple[tuple[str, ...], Predicate]]:
        """Every line with the numbers that print it: its own, or those that add up to it."""
        present, found = set(self.claimable.variables), []
        for table in self.claimable.tables:
            for line in table.lines:
                parts = tuple(leaf.variable for leaf in table.leaves_of(line))
                numbers = (line.variable,) if line.variable in present else parts
                if line.predicate is not None and present.issuperset(numbers):
                    found.append((numbers, line.predicate))
        return found

    def _line(self, number: int) -> _Line | None:
        """A line, worked out when it is first asked for; None if it counts records apart, as no claim does."""
        if number not in self.lines:
            claimable = self.claimable
            numbers, predicate = self._named[number]
            cells = np.flatnonzero(claimable.compiled.cells.inside(predicate))
            only = [self._value(column, cells) for column in range(len(claimable.vocabulary.at))]
            apart = bool(claimable.apart[cells].any())
            line = _Line(numbers, predicate, np.array(only, np.int64), len(cells))
            self.lines[number] = None if apart else line
        return self.lines[number]

    def _value(self, column: int, cells: Ints) -> int:
        """The value that all these cells have in a column; -1: they have several, as a few of them tell mostly."""
        said, codes = self.claimable.vocabulary, self.claimable.compiled.cells.codes
        covers = said.covers[column]
        for some in (cells[:: len(cells) // SOME + 1], cells):
            met = np.zeros(len(covers), np.bool_)
            met[codes[some, said.at[column]]] = True  # quicker than sorting the codes of all cells
            covered = covers[met].any(axis=0)
            if covered.sum() > 1:
                return -1
        return int(covered.argmax()) if covered.any() else -1

    def of(self, descriptions: NDArray[np.int16], counts: Counts, row: int) -> Flags:
        """Which of the certain claims of a place are printed anyway: a line with the same records has its number.

        A line that counts nobody repeats no claim; of the others, all records must fit the description, and none more.
        """
        printed = {
            name: int(counts.lower[row, at])
            for name, at in counts.column.items()
            if counts.lower[row, at] == counts.upper[row, at]
        }
        found = np.zeros(len(descriptions), np.bool_)
        for number, (numbers, _) in enumerate(self._named):
            if any(name not in printed for name in numbers) or not sum(printed[name] for name in numbers):
                continue
            if (line := self._line(number)) is not None:
                fitting = ((descriptions == line.only) | (descriptions < 0)).all(axis=1) & ~found
                for at in np.flatnonzero(fitting):
                    found[at] = self._no_more(descriptions[at], line)
        return found

    def _no_more(self, values: NDArray[np.int16], line: _Line) -> bool:
        """Does a description that all records of a line fit no others?"""
        wording = self.claimable.wording
        named = {name: int(value) for name, value in zip(wording.columns, values, strict=True) if value >= 0}
        said = all(
            name in named and wording.groups[name][named[name]] <= levels for name, levels in line.predicate.sets
        )
        return said or self._size(values) == line.cells  # as many as the line, which lie in it: the same

    def _size(self, values: NDArray[np.int16]) -> int:
        """How many cells a description fits, those apart left aside; -1 where it cuts through some."""
        key = values.tobytes()
        if key not in self.sizes:
            said, codes = self.claimable.vocabulary, self.claimable.compiled.cells.codes
            meeting, named = np.flatnonzero(~self.claimable.apart), np.flatnonzero(values >= 0)
            for column in named:
                meeting = meeting[said.covers[column][codes[meeting, said.at[column]], values[column]]]
            whole = all((said.only[at][codes[meeting, said.at[at]]] == values[at]).all() for at in named)
            self.sizes[key] = len(meeting) if whole else -1
        return self.sizes[key]
