"""Why is it so? Lines of a derivation: sums of rows with rational multipliers, rounded; cases where those do not do.

Multipliers are those of the relaxation, proposed in floating point, taken as fractions, and summed up in whole numbers:
what a line says is what its sum gives, whoever proposed it. Inside, every line is of the form `terms >= number`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from glasshouse.model.records import UNLIMITED
from glasshouse.program.highs import relax
from glasshouse.program.integer import IntegerProgram, Limit
from glasshouse.proofs.space import Ints, Space

CASES, FEW = 4_000, 100  # of one fact; of a try that may be given up
RELAXATIONS = 100_000  # of one fact; beyond them nothing more is shown
DENOMINATORS = (1, 2, 6, 12, 60, 420, 5040, 720720, 2**24)
_CLOSE, _WHOLE = 1e-6, 1e-6
_LIMIT = Limit(effort=50.0)
Float = NDArray[np.float64]
Ref = str | int  # a row by its name, or a line by its number


@dataclass(frozen=True)
class Line:
    """A line: the sum of these columns is at least a number, for a reason."""

    terms: Mapping[int, int]
    right: int
    reason: str  # asm, lin, rnd, uns
    times: Mapping[Ref, Fraction] = field(default_factory=dict)
    cases: tuple[int, ...] | None = None  # uns: two lines, each with its assumption

    @property
    def absurd(self) -> bool:
        return not self.terms and self.right > 0


@dataclass(frozen=True)
class _Relaxed:
    """What the relaxation proposes: a point, or none, and multipliers of the rows."""

    x: Float | None
    duals: Float | None


class Derivation:
    """Lines that follow from the rows of a space."""

    def __init__(self, space: Space, cases: int = CASES, relaxations: int = RELAXATIONS) -> None:
        self.space, self.left, self.relaxations = space, cases, relaxations
        self.lines: list[Line] = []
        self.known: list[int] = []  # lines that rest on no assumption, as further rows
        kinds = [kind for kind in range(len(space.counts)) if space.most[kind] >= 0]
        links = sparse.lil_matrix((len(kinds) + len(space.several), space.columns), dtype=np.int64)
        self.names: list[str] = list(space.names)
        for row, kind in enumerate(kinds):
            self.names.append(f"over:{kind}")
            links[row, np.flatnonzero(space.kind_of == kind)] = -1
            if space.counts[kind] == 1:
                links[row, space.m(kind)] = space.most[kind]
            else:
                links[row, space.m(kind)] = 1
                links[row, space.s(kind)] = space.most[kind] - space.counts[kind]
        for row, one in enumerate(space.several, len(kinds)):
            kind = int(one)
            self.names.append(f"full:{kind}")
            links[row, space.m(kind)], links[row, space.s(kind)] = 1, -space.counts[kind]
        numbers = sparse.csr_matrix(
            (space.matrix.data, space.matrix.indices, space.matrix.indptr), (space.matrix.shape[0], space.columns)
        )
        self.rows = sparse.vstack([numbers, links.tocsr()], format="csr", dtype=np.int64)
        self.rows.eliminate_zeros()
        none = np.zeros(links.shape[0], np.int64)
        self.low = np.concatenate([space.low, none])
        self.high = np.concatenate([space.high, np.full(len(none), UNLIMITED)])
        self.limiting = self._limiting()

    def _limiting(self) -> Ints:
        """Of each group the number with the least limit that counts it, -1 for none."""
        found = np.full(self.space.groups, -1, np.int64)
        for row in np.argsort(-self.space.high, kind="stable"):
            if self.space.high[row] < UNLIMITED:
                found[self.space.matrix.indices[self.space.matrix.indptr[row] : self.space.matrix.indptr[row + 1]]] = (
                    row
                )
        return found

    # What the relaxation says

    def bounded(self, terms: Mapping[int, int], target: int, under: Sequence[int] = ()) -> int | None:
        """A line that shows `terms >= target`, or that nothing fits; None if the relaxation does not show it."""
        return self._line(self._relaxed(terms, under), terms, target, under)

    def least(self, terms: Mapping[int, int]) -> int | None:
        """The least that the relaxation leaves to a sum, rounded up; None if it has none."""
        relaxed = self._relaxed(terms, ())
        found = self._multipliers(relaxed, terms, (), None) if relaxed.x is not None else None
        return None if found is None else -(-found[0].numerator // found[0].denominator)

    def _relaxed(self, terms: Mapping[int, int], under: Sequence[int]) -> _Relaxed:
        if not self.relaxations:
            return _Relaxed(None, None)
        self.relaxations -= 1
        matrix, low, high = self._with(under)
        cost = np.zeros(self.space.columns, np.int64)
        cost[list(terms)] = list(terms.values())
        zero = np.zeros_like(cost)
        program = IntegerProgram(
            cost, zero, np.full_like(cost, UNLIMITED), low, high, matrix.indptr.astype(np.int64),
            matrix.indices.astype(np.int32), matrix.data.astype(np.int64),
        )  # fmt: skip
        answer = relax(program, _LIMIT)
        return _Relaxed(answer.x if answer.status.name == "kOptimal" else None, answer.duals)

    def _with(self, under: Sequence[int]) -> tuple[sparse.csr_matrix, Ints, Ints]:
        """All rows: those of the space, then the lines that are known, or hold in a case."""
        more = [self.lines[one] for one in (*self.known, *under)]
        if not more:
            return self.rows, self.low, self.high
        starts = np.cumsum([0, *(len(line.terms) for line in more)])
        columns = [column for line in more for column in line.terms]
        values = [value for line in more for value in line.terms.values()]
        extra = sparse.csr_matrix((values, columns, starts), (len(more), self.space.columns), dtype=np.int64)
        matrix = sparse.vstack([self.rows, extra], format="csr")
        low = np.concatenate([self.low, np.array([line.right for line in more], np.int64)])
        return matrix, low, np.concatenate([self.high, np.full(len(more), UNLIMITED)])

    def _line(self, relaxed: _Relaxed, terms: Mapping[int, int], target: int, under: Sequence[int]) -> int | None:
        if relaxed.duals is None:
            return None
        if relaxed.x is None:
            return self._absurd(relaxed.duals, under)
        found = self._multipliers(relaxed, terms, under, target)
        if found is None or found[0] <= target - 1:
            return None
        value, times = found
        return self.add(Line(dict(terms), target, "lin" if value >= target else "rnd", times))

    def _absurd(self, ray: Float, under: Sequence[int]) -> int | None:
        """A line 0 >= 1 from a ray, whose sign and length do not matter."""
        sizes = np.abs(ray)
        longest = float(sizes.max(initial=0.0))
        if not 1e-100 < longest < 1e30:
            return None
        shortest = float(sizes[sizes > 1e-9 * longest].min())
        for unit in (shortest, -shortest, longest, -longest):
            found = self._multipliers(_Relaxed(None, ray / unit), {}, under, None)
            if found is not None and found[0] > 0:
                value, times = found
                return self.add(Line({}, 1, "lin", {ref: much / value for ref, much in times.items()}))
        return None

    def _multipliers(
        self, relaxed: _Relaxed, terms: Mapping[int, int], under: Sequence[int], target: int | None
    ) -> tuple[Fraction, dict[Ref, Fraction]] | None:
        """The bound that multipliers give exactly, and they; fractions are as simple as they may be."""
        if relaxed.duals is None:
            return None
        matrix, low, high = self._with(under)
        cost = np.zeros(self.space.columns, np.int64)
        cost[list(terms)] = list(terms.values())
        best: tuple[Fraction, Ints, int] | None = None
        for denominator in DENOMINATORS:
            scaled = relaxed.duals * denominator
            if np.abs(scaled).max(initial=0) > 2**40:
                break
            rounded = np.rint(scaled)
            meant = bool(np.abs(rounded - scaled).max(initial=0) < _CLOSE * denominator)
            if not meant and denominator != DENOMINATORS[-1]:
                continue
            y = self._repaired(matrix, low, high, rounded.astype(np.int64), denominator * cost)
            if y is None:
                continue
            sides = np.where(y > 0, low, np.where(y < 0, high, 0))
            value = Fraction(sum(int(a) * int(b) for a, b in zip(y, sides, strict=True) if a), denominator)
            if best is None or value > best[0]:
                best = value, y, denominator
            if meant or (target is not None and value > target - 1):
                break
        if best is None:
            return None
        value, y, denominator = best
        times = {self._ref(int(at), int(y[at]), under): Fraction(int(y[at]), denominator) for at in np.flatnonzero(y)}
        return value, times

    def _repaired(self, matrix: sparse.csr_matrix, low: Ints, high: Ints, y: Ints, cost: Ints) -> Ints | None:
        """Multipliers whose signs are allowed, and that leave no column less than nothing."""
        y = np.where(y > 0, np.where(low > -UNLIMITED, y, 0), np.where(high < UNLIMITED, y, 0))
        rest = cost - matrix.T @ y
        groups = self.space.groups
        if (rest[groups:] < 0).any():
            wrong = groups + np.flatnonzero(rest[groups:] < 0)
            y = np.where(np.asarray(abs(matrix[:, wrong]).sum(axis=1)).reshape(-1) > 0, 0, y)
            rest = cost - matrix.T @ y
        for column in np.flatnonzero(rest[:groups] < 0):
            if rest[column] >= 0:
                continue  # another column's repair did it
            row = self.limiting[column]
            if row < 0:
                return None
            part = matrix[row]
            times = int(part.data[part.indices == column][0])
            step = int(rest[column]) // times  # rounded down: nothing is left less than nothing
            if y[row] > 0 and y[row] + step < 0 and high[row] >= UNLIMITED:
                return None
            y[row] += step
            rest[part.indices] -= step * part.data
        return None if (rest < 0).any() else y

    def _ref(self, row: int, sign: int, under: Sequence[int]) -> Ref:
        given = len(self.names)
        if row >= given:
            return (*self.known, *under)[row - given]
        if row >= len(self.space.names) or self.low[row] == self.high[row]:
            return self.names[row]
        return self.names[row] + (">" if sign > 0 else "<")

    # Steps

    def add(self, line: Line) -> int:
        self.lines.append(line)
        return len(self.lines) - 1

    def assumed(self, terms: Mapping[int, int], right: int) -> int:
        return self.add(Line(dict(terms), right, "asm"))

    def summed(self, terms: Mapping[int, int], right: int, lines: Sequence[int]) -> int:
        """A line that is the sum of others."""
        return self.add(Line(dict(terms), right, "lin", {one: Fraction(1) for one in lines}))

    def learn(self, line: int) -> None:
        """Take a line that rests on nothing as a row from now on."""
        self.known.append(line)

    def keep(self, some: Sequence[int]) -> None:
        """Only these lines, which rest on no others."""
        number: dict[Ref, int] = {one: at for at, one in enumerate(some)}
        kept = [self.lines[one] for one in some]
        self.lines = [
            replace(
                line,
                times={number.get(ref, ref): much for ref, much in line.times.items()},
                cases=None if line.cases is None else tuple(number[one] for one in line.cases),
            )
            for line in kept
        ]
        self.known = []

    def each(self, kind: int) -> bool:
        """Learn how many of one kind overlap at least, from how many there are at least; False: nothing.

        Either there are no more than overlap, or all k overlap.
        """
        space = self.space
        k, most, m = int(space.counts[kind]), int(space.most[kind]), space.m(kind)
        mine = self.there(kind, 1)
        least = min(self.least(mine) or 0, k) if most >= 0 else 0
        if least < 1:
            return False
        line = self.bounded({m: 1}, least)
        if line is None:
            there = self.bounded(mine, least)
            if there is None:
                return False
            line = self.overlapping(kind, least, there)
        self.learn(line)
        return True

    def chord(self, kind: int) -> bool:
        """Learn `u m >= k x` of a kind whose x is at most u, less than any single number says; else False.

        If none of the k overlap, x is 0; if there is a switch, either m >= x, or m = k and x <= u.
        """
        space = self.space
        k, most, m = int(space.counts[kind]), int(space.most[kind]), space.m(kind)
        mine = self.there(kind, -1)
        least = self.least(mine)
        if least is None or (most >= 0 and -least >= most) or most < 0:
            return False
        u = max(-least, k)
        if u >= most:
            return False
        limit = self.bounded(mine, -u)
        if limit is None:
            return False
        terms = self.there(kind, -k) | {m: u}
        if k == 1:  # x <= most m <= 0
            self.learn(self.either(kind, terms, 0, {"over": 1, "off": most - u}, {"on": u, limit: 1}))
        else:  # x - m <= (most - k) s <= 0, so u m >= u x >= k x; or m >= k s >= k, so u m >= u k >= k x
            none: dict[Ref, int] = {"over": u, "off": u * (most - k)}
            self.learn(self.either(kind, terms, 0, none, {"full": u, "on": u * k, limit: k}))
        return True

    # What links a kind of records with how many overlap

    def there(self, kind: int, times: int) -> dict[int, int]:
        """How many records of a kind there are, so many times."""
        return {int(at): times for at in np.flatnonzero(self.space.kind_of == kind)}

    def overlapping(self, kind: int, least: int, there: int) -> int:
        """A line that at least so many of a kind overlap, from one that there are at least so many, or more."""
        k, most, terms = int(self.space.counts[kind]), int(self.space.most[kind]), {self.space.m(kind): 1}
        if k == 1:
            part = Fraction(1, most)
            return self.add(Line(terms, 1, "rnd", {f"over:{kind}": part, there: part}))
        return self.either(kind, terms, least, {"over": 1, "off": most - k, there: 1}, {"full": 1, "on": k})

    def either(
        self, kind: int, terms: Mapping[int, int], right: int, none: Mapping[Ref, int], some: Mapping[Ref, int]
    ) -> int:
        """A line in two cases: `off`, the switch of a kind is 0, or `on`, it is 1; `over` and `full` are its rows.

        The switch is s, or, where k = 1, whether the one record overlaps.
        """
        space = self.space
        switch = space.m(kind) if space.counts[kind] == 1 else space.s(kind)
        off, on = self.assumed({switch: -1}, 0), self.assumed({switch: 1}, 1)
        names: dict[Ref, Ref] = {"over": f"over:{kind}", "full": f"full:{kind}", "off": off, "on": on}
        first, second = (
            self.add(Line(terms, right, "lin", {names.get(ref, ref): Fraction(n) for ref, n in times.items() if n}))
            for times in (none, some)
        )
        return self.add(Line(terms, right, "uns", cases=(first, off, second, on)))

    def cases(self, terms: Mapping[int, int], target: int, under: tuple[int, ...] = ()) -> int | None:
        """A line that shows `terms >= target` by cases, or None when there are too many."""
        if self.left <= 0:
            return None
        self.left -= 1
        relaxed = self._relaxed(terms, under)
        line = self._line(relaxed, terms, target, under)
        if line is not None or relaxed.x is None:
            return line
        column = self._fractional(relaxed.x, terms)
        if column is None:
            return None  # a whole point that is less: the target is wrong
        below = int(np.floor(relaxed.x[column] + _WHOLE))
        at_most = self.assumed({column: -1}, -below)
        first = self.cases(terms, target, (*under, at_most))
        if first is None:
            return None
        more = self.assumed({column: 1}, below + 1)
        second = self.cases(terms, target, (*under, more))
        if second is None:
            return None
        nothing = self.lines[first].absurd and self.lines[second].absurd
        shown = ({}, 1) if nothing else (dict(terms), target)
        return self.add(Line(*shown, "uns", cases=(first, at_most, second, more)))

    def _fractional(self, x: Float, terms: Mapping[int, int]) -> int | None:
        """The column to divide: switches and overlaps of what is asked for first, then the rest; least whole first."""
        part = np.abs(x - np.rint(x))
        groups, several = self.space.groups, groups_of(self.space)
        asked = [column for column in (*terms, *(several[c] for c in terms if c in several)) if column >= groups]
        for some in (np.array(asked, np.int64), np.arange(groups, self.space.columns), np.arange(groups)):
            open_ = some[part[some] > _WHOLE]
            if len(open_):
                return int(open_[np.argmax(part[open_])])
        return None


def groups_of(space: Space) -> dict[int, int]:
    """The switch of each overlap that has one, by column."""
    return {space.m(int(kind)): space.s(int(kind)) for kind in space.several}
