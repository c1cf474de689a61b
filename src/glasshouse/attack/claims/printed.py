"""Which claims can be read off the tables? Those that say of all records what a line of one table says already.

A claim is printed when a line of a table counts exactly the records that its description fits, among all records that
can be, and its number is printed as it is, or adds up from lines that are (paper 002, section 4). Two descriptions may
fit the same records though they name other columns: who lives alone has no children. So records are compared, not
words. That a place's own zeros leave nobody else does not count, for that takes numbers of several lines.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from glasshouse.attack.claims.verify import Claimable
from glasshouse.model.release import Counts

Flags = NDArray[np.bool_]
Bits = NDArray[np.uint8]
Lines = tuple[tuple[str, ...], ...]  # numbers that are printed, or add up


class Printed:
    """The kinds of record that can be, as bits for each value of each column; and the lines that a claim may repeat."""

    def __init__(self, claimable: Claimable) -> None:
        self.claimable = claimable
        self.known: dict[bytes, Lines] = {}  # by description, the lines that count the same records

    @cached_property
    def _bits(self) -> list[tuple[list[Bits], list[Bits]]]:
        """For each column and value the cells all of whose records have it, and those some of whose records do."""
        said, codes = self.claimable.vocabulary, self.claimable.compiled.cells.codes
        found = []
        for column, at in enumerate(said.at):
            values = range(said.covers[column].shape[1])
            every = [np.packbits((said.only[column] == value)[codes[:, at]]) for value in values]
            found.append((every, [np.packbits(said.covers[column][:, value][codes[:, at]]) for value in values]))
        return found

    @cached_property
    def _lines(self) -> dict[bytes, Lines]:
        """The lines by the cells that they count: the number that is printed, or those that add up to it."""
        found: dict[bytes, Lines] = {}
        present, cells = set(self.claimable.variables), self.claimable.compiled.cells
        for table in self.claimable.tables:
            for line in table.lines:
                parts = tuple(leaf.variable for leaf in table.leaves_of(line))
                numbers = (line.variable,) if line.variable in present else parts
                if line.predicate is not None and present.issuperset(numbers):
                    key = np.packbits(cells.inside(line.predicate)).tobytes()
                    found[key] = (*found.get(key, ()), numbers)
        return found

    @cached_property
    def _others(self) -> Bits:
        """The cells that claims are about."""
        return np.packbits(~self.claimable.apart)

    def lines(self, values: NDArray[np.int16]) -> Lines:
        """The lines that count the records that a description fits; remembered."""
        key = values.tobytes()
        if key not in self.known:
            inside, meeting = self._others.copy(), self._others.copy()
            for column in np.flatnonzero(values >= 0):
                every, some = self._bits[column]
                inside &= every[values[column]]
                meeting &= some[values[column]]
            same = bool((inside == meeting).all())  # no line cuts through a cell
            self.known[key] = self._lines.get(inside.tobytes(), ()) if same else ()
        return self.known[key]

    def of(self, descriptions: NDArray[np.int16], counts: Counts, row: int) -> Flags:
        """Which of the certain claims of a place are printed anyway: a line with the same records has its number."""
        exact = {name for name, at in counts.column.items() if counts.lower[row, at] == counts.upper[row, at]}
        return np.array(
            [any(exact.issuperset(numbers) for numbers in self.lines(values)) for values in descriptions], np.bool_
        )
