"""How much of some records overlaps, in one part of what was asked? The program of the part, and why each row holds.

Its variables are cells of records, how many of each kind overlap (m), and whether all k of a kind do (s). What
propagation knows of the cells makes the links between these closer than published numbers do. Lines show all of it, as
far as it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

import numpy as np

from glasshouse.model.records import UNLIMITED, Count
from glasshouse.program.certainty.cuts import Rows
from glasshouse.program.integer import IntegerProgram
from glasshouse.program.propagate import Array
from glasshouse.program.reduce import Programs
from glasshouse.proofs.derivation import Derivation, Ref
from glasshouse.proofs.replay import Known, Unshown

Terms = Mapping[int, int]
Side = tuple[str, int, bool]  # of a row or a limit, by its number; True: from above


class Cells(NamedTuple):
    """A part of what was asked: the cell of each variable, by its classes, its rows and limits, and a solution."""

    of: Sequence[tuple[int, ...]]
    programs: Programs
    x: Array


@dataclass
class PartProgram:
    """The program of a part: its columns as sums of columns of the derivation, and why rows and limits hold."""

    derived: Derivation
    columns: list[Terms] = field(default_factory=list)
    limits: list[tuple[int, int]] = field(default_factory=list)
    rows: list[tuple[Terms, int, int]] = field(default_factory=list)
    asked: dict[int, int] = field(default_factory=dict)  # of a column of cells, that of what overlaps there
    kinds: dict[int, int] = field(default_factory=dict)  # of a column of what overlaps
    why: dict[Side, Callable[[], Known]] = field(default_factory=dict)  # where no sum of published numbers shows it
    known: dict[Side, Known] = field(default_factory=dict)  # what has been asked for

    def program(self, kinds: Sequence[int], cells: Cells) -> tuple[IntegerProgram, Array]:
        column, start = self._cells(cells)
        space = self.derived.space
        for kind in kinds:
            _, (_, classes) = space.fact.records[kind]
            if classes not in column:
                raise Unshown
            start += self._kind(kind, column[classes], start)
        matrix = np.zeros((len(self.rows), len(self.columns)), np.int64)
        for number, (terms, _, _) in enumerate(self.rows):
            matrix[number, list(terms)] = list(terms.values())
        low, high = (np.array([row[side] for row in self.rows], np.int64) for side in (1, 2))
        lower, upper = (np.array([pair[side] for pair in self.limits], np.int64) for side in (0, 1))
        cost = self._once(self.asked.values())
        return Rows(matrix, low, high).program(cost, lower, upper), np.array(start, np.int64)

    def sums(self) -> list[Count]:
        """What overlaps in the cells of a row, or of all kinds alike in some attributes; as costs, shortest first."""
        found = {tuple(sorted(self.asked[at] for at in terms if at in self.asked)) for terms, _, _ in self.rows}
        columns = sorted(self.asked.values())
        told = [self.derived.space.fact.records[self.kinds[at]][1][1] for at in columns]
        attributes = range(len(told[0]))
        for some in (some for size in attributes for some in combinations(attributes, size)):
            alike: dict[tuple[int, ...], list[int]] = {}
            for column, classes in zip(columns, told, strict=True):
                alike.setdefault(tuple(classes[one] for one in some), []).append(column)
            found |= {tuple(group) for group in alike.values()}
        return [
            self._once(one) for one in sorted(found, key=lambda one: (len(one), one)) if 1 < len(one) < len(columns)
        ]

    def _once(self, columns: Iterable[int]) -> Count:
        cost = np.zeros(len(self.columns), np.int64)
        cost[list(columns)] = 1
        return cost

    def _column(self, terms: Terms, low: int, high: int) -> int:
        self.columns.append(terms)
        self.limits.append((low, high))
        return len(self.columns) - 1

    def _cells(self, cells: Cells) -> tuple[dict[tuple[int, ...], int], list[int]]:
        """A column for each cell, and its value; cells that no number tells apart are one."""
        space, one = self.derived.space, cells.programs
        groups: dict[tuple[int, ...], dict[int, int]] = {}
        for group, classes in enumerate(space.classes):
            groups.setdefault(classes, {})[group] = 1
        signature: list[list[tuple[int, int]]] = [[] for _ in cells.of]
        for row in range(len(one.row_lower)):
            for entry in range(one.starts[row], one.starts[row + 1]):
                signature[one.index[entry]].append((row, int(one.coefficient[entry])))
        column, alike, start = dict[tuple[int, ...], int](), dict[tuple[tuple[int, int], ...], int](), list[int]()
        kinds = {classes for _, (_, classes) in space.fact.records}
        for at in sorted(range(len(cells.of)), key=lambda at: cells.of[at] not in groups):
            classes, low, high = cells.of[at], int(one.lower[at]), int(one.upper[at])
            if high >= UNLIMITED:
                raise Unshown
            if classes in groups:
                column[classes] = self._column(groups[classes], low, high)
                start.append(int(cells.x[at]))
                if classes not in kinds:
                    alike[tuple(signature[at])] = column[classes]
                continue
            same = alike.get(tuple(signature[at]))
            if same is None:
                raise Unshown
            column[classes], (least, most) = same, self.limits[same]
            self.limits[same] = least + low, most + high
            start[same] += int(cells.x[at])
        of = [column[classes] for classes in cells.of]
        for row in range(len(one.row_lower)):
            part = slice(one.starts[row], one.starts[row + 1])
            terms = {of[at]: int(times) for at, times in zip(one.index[part], one.coefficient[part], strict=True)}
            self.rows.append((terms, int(one.row_lower[row]), int(one.row_upper[row])))
        return column, start

    def _kind(self, kind: int, cell: int, start: Sequence[int]) -> list[int]:
        """Columns and rows of a kind of records; and the values of the columns."""
        space, (low, high) = self.derived.space, self.limits[cell]
        k, most, found = int(space.counts[kind]), int(space.most[kind]), min(start[cell], int(space.counts[kind]))
        if most < 0:
            raise Unshown
        m = self._column({space.m(kind): 1}, min(low, k), k)
        self.asked[cell], self.kinds[m] = m, kind
        self.why["limit", m, True] = lambda: (f"ub:m{kind}", -1)
        links = _Links(self, kind, cell)
        if low:
            self.why["limit", m, False] = links.least
        if low >= k:
            return [found]
        if k == 1:
            self._link({m: high, cell: -1}, 0, lambda: links.alone(m))
            return [found]
        if high <= k:
            self._link({m: 1, cell: -1}, 0, lambda: links.every(m))
            return [found]
        s = self._column({space.s(kind): 1}, 0, 1)
        self.why["limit", s, True] = lambda: (f"ub:s{kind}", -1)
        self._link({m: 1, cell: -1, s: high - k}, 0, lambda: links.over(m, s))
        self._link({m: 1, s: low - k}, low, lambda: links.full(m, s))
        if k - low == 1:
            self._link({m: 1 + high - k, cell: -1}, (high - k) * low, lambda: links.chord(m))
        return [found, int(start[cell] > k)]

    def _link(self, terms: Terms, least: int, why: Callable[[], Known]) -> None:
        self.why["row", len(self.rows), False] = why
        self.rows.append((terms, least, UNLIMITED))

    # Why rows and limits hold

    def row(self, number: int, *, up: bool) -> Known:
        terms, low, high = self.rows[number]
        return self._told(("row", number, up), terms, high if up else low)

    def limit(self, column: int, *, up: bool) -> Known:
        low, high = self.limits[column]
        return self._told(("limit", column, up), {column: 1}, high if up else low) if up or low else None

    def _told(self, side: Side, terms: Terms, right: int) -> Known:
        """What says so, with its lines; without a reason of its own, published numbers do in one line of the cells."""
        if side not in self.known:
            if side in self.why:
                self.known[side] = self.why[side]()
            else:
                sign = -1 if side[-1] else 1
                cells = {at: sign * times for one, times in terms.items() for at in self.columns[one]}
                line = self.derived.bounded(cells, sign * right)
                if line is None:
                    raise Unshown
                self.known[side] = line, 1
        return self.known[side]


@dataclass(frozen=True)
class _Links:
    """Why the rows of a kind hold that are closer than the certificate's own, x <= most m or x - m <= (most - k) s.

    Its cell has from `low` to `high` records. In two cases, as `Derivation.either` has them.
    """

    part: PartProgram
    kind: int
    cell: int

    @property
    def _numbers(self) -> tuple[int, int, int, int]:
        space = self.part.derived.space
        return int(space.counts[self.kind]), int(space.most[self.kind]), *self.part.limits[self.cell]

    def _known(self, ref: str) -> Known:
        return f"{ref}:{self.kind}", 1

    def _either(self, terms: Terms, right: int, none: Mapping[str, int], some: Mapping[str, int]) -> Known:
        told = {at: times * much for one, times in terms.items() for at, much in self.part.columns[one].items()}
        first, second = (
            {self._ref(name): times for name, times in one.items() if name != "low" or self._numbers[2]}
            for one in (none, some)
        )
        return self.part.derived.either(self.kind, told, right, first, second), 1

    def _ref(self, name: str) -> Ref:
        """What there is of the cell at least and at most, as a line; other names are of rows."""
        found = self.part.limit(self.cell, up=name == "high") if name in ("low", "high") else None
        return name if found is None else found[0]

    def least(self) -> Known:
        """At least as many overlap as there are, or all."""
        k, _, low, _ = self._numbers
        return self.part.derived.overlapping(self.kind, min(k, low), int(self._ref("low"))), 1

    def alone(self, m: int) -> Known:
        """k = 1: x <= high m."""
        _, most, _, high = self._numbers
        if high >= most:
            return self._known("over")
        return self._either({m: high, self.cell: -1}, 0, {"over": 1, "off": most - high}, {"on": high, "high": 1})

    def every(self, m: int) -> Known:
        """high <= k: all there are overlap."""
        k, most, _, _ = self._numbers
        return self._either({m: 1, self.cell: -1}, 0, {"over": 1, "off": most - k}, {"full": 1, "on": k, "high": 1})

    def over(self, m: int, s: int) -> Known:
        """Beyond k there are at most high - k, and none where not all k overlap."""
        k, most, _, high = self._numbers
        if high >= most:
            return self._known("over")
        terms, some = {m: 1, self.cell: -1, s: high - k}, {"full": 1, "on": high, "high": 1}
        return self._either(terms, 0, {"over": 1, "off": most - high}, some)

    def full(self, m: int, s: int) -> Known:
        """From low to k."""
        k, most, low, _ = self._numbers
        if not low:
            return self._known("full")
        none = {"over": 1, "off": most - k + k - low, "low": 1}
        return self._either({m: 1, s: low - k}, low, none, {"full": 1, "on": low})

    def chord(self, m: int) -> Known:
        """k - low = 1: beyond k there are at most high - k for the one that overlaps beyond low."""
        k, most, low, high = self._numbers
        beyond, once = high - k, 1 + high - k
        none = {"over": once, "off": (most - k) * once, "low": beyond}
        return self._either({m: once, self.cell: -1}, beyond * low, none, {"full": once, "on": k * once, "high": 1})
