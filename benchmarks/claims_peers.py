"""The programs that a claim about a block can be put to, one claim at a time: the histogram's, and the paper's own.

`PerClaim` asks for the least and the most of a count over the live cells; `OneHot` is paper 002's program, one binary
for every record and value (equations 7 to 18, with what is misprinted put right).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import cached_property

import highspy
import numpy as np

from benchmarks.peers import Flags, Floats, Ints, Model, highs
from glasshouse.attack.claims.verify import Claimable, Place
from glasshouse.model.release import Counts
from glasshouse.model.schema import Predicate
from glasshouse.program.reduce import Programs

CLOCK = time.process_time
CAP = 180.0  # seconds a claim, as in the paper
BIG = 100  # M of the paper: far more than a small block has records
HASH = 1000
SEED = 1


class PerClaim:
    """The least and the most of a count over the histograms of a block: a solver that keeps the block, cost by cost.

    `jump` leaves HiGHS its feasibility jump, which is on by default and takes longer than all the rest here. With
    `relax` the relaxation is solved first, from the basis of the claim before, and integers are asked for only where
    it leaves open what the answer is; that is a bound and a known solution, not only a program.
    """

    def __init__(self, place: Place, *, jump: bool = False, relax: bool = False) -> None:
        program, self.known = place.problem.programs.only(place.number), place.x
        self.columns = np.arange(len(self.known), dtype=np.int32)
        self.whole = self._solver(program, 1, mip_abs_gap=0.99, mip_heuristic_run_feasibility_jump=jump)
        self.relaxed = self._solver(program, 0, presolve="off") if relax else None
        if self.relaxed is not None:
            self.relaxed.run()

    def _solver(self, program: Programs, whole: int, **options: object) -> highspy.Highs:
        solver, n = highspy.Highs(), len(self.known)
        for name, value in {"output_flag": False, "threads": 1, **options}.items():
            solver.setOptionValue(name, value)
        limits = (program.lower, program.upper, program.row_lower, program.row_upper)
        by_row, minimise = int(highspy.MatrixFormat.kRowwise), int(highspy.ObjSense.kMinimize)
        # fmt: off
        solver.passModel(n, len(program.row_lower), len(program.index), by_row, minimise, 0.0, np.zeros(n),
                         *(limit.astype(np.float64) for limit in limits), program.starts[:-1].astype(np.int32),
                         program.index, program.coefficient.astype(np.float64), np.full(n, whole, np.int32))
        # fmt: on
        return solver

    def extremes(self, inside: Flags, meeting: Flags) -> tuple[float, int, int]:
        """Seconds from the cost of a claim to its least and most count, and these."""
        least, most = inside.astype(np.float64), meeting.astype(np.float64)
        began = CLOCK()
        low = self._extreme(least, highspy.ObjSense.kMinimize)
        high = self._extreme(most, highspy.ObjSense.kMaximize)
        return CLOCK() - began, low, high

    def _extreme(self, cost: Floats, sense: highspy.ObjSense) -> int:
        if self.relaxed is not None:
            bound, here = self._solved(self.relaxed, cost, sense), int(cost @ self.known)
            if abs(bound - here) < 1 - 1e-6:
                return here
            x = np.array(self.relaxed.getSolution().col_value)
            if np.abs(x - np.rint(x)).max() < 1e-6:
                return round(bound)
        return round(self._solved(self.whole, cost, sense))

    def _solved(self, solver: highspy.Highs, cost: Floats, sense: highspy.ObjSense) -> float:
        solver.changeColsCost(len(cost), self.columns, cost)
        solver.changeObjectiveSense(sense)
        solver.run()
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise RuntimeError(f"HiGHS stopped with {solver.modelStatusToString(solver.getModelStatus())}")
        return float(solver.getObjectiveValue())


class _Rows:
    """Rows of a model, one after the other."""

    def __init__(self) -> None:
        self.row: list[int] = []
        self.column: list[int] = []
        self.value: list[int] = []
        self.least: list[float] = []
        self.most: list[float] = []

    def add(self, terms: Sequence[tuple[int, int]], least: float = -np.inf, most: float = np.inf) -> None:
        """A row `least <= sum(value * column) <= most` of (column, value) terms."""
        self.row += [len(self.least)] * len(terms)
        self.column += [column for column, _ in terms]
        self.value += [value for _, value in terms]
        self.least.append(least)
        self.most.append(most)

    def model(self, columns: int, more: _Rows | None = None) -> Model:
        """All variables are binary and none costs anything: does something fit?"""
        both = [self] if more is None else [self, more]
        shift = [0, len(self.least)]
        row = np.concatenate([np.array(one.row, np.int64) + at for one, at in zip(both, shift, strict=False)])
        column, value, least, most = (
            np.concatenate([getattr(one, name) for one in both]) for name in ("column", "value", "least", "most")
        )
        entries = (row, column.astype(np.int64), value.astype(np.float64))
        return Model.of(np.zeros(columns), np.ones(columns), (least, most), entries)


class OneHot:
    """The paper's program of one block: X, a row of binaries for every record; W, does record k satisfy query i?

    Binary `k * width + first[c] + v` says that record k has value v in column c. Not in the paper, but needed for the
    same verdicts as ours: records that the scenario calls impossible are ruled out, and a value is a level as claims
    name it (rented and occupied without rent are one, since no table tells them apart). Subtotals are left out.

    What is printed is not quite what is meant:
    - the dummy sub-predicate that pads Q is all ones; times a record that is the number of columns, not 1, and (8)
      could not hold. A query has its own r here;
    - (9) runs over all n queries, not to m, which is the multiplicity of a claim.
    """

    def __init__(self, about: Claimable, counts: Counts) -> None:
        self.names = about.wording.columns
        groups = [about.wording.groups[name] for name in self.names]
        self.values = [_value_of_level(some) for some in groups]
        self.first = np.concatenate([[0], np.cumsum([len(some) for some in groups])])
        self.width = int(self.first[-1])
        queries = [
            (line.predicate, int(counts.lower[0, counts.column[line.variable]]))
            for table in about.tables
            for line in table.lines
            if line.number in table.cells and line.predicate is not None
        ]
        self.records = next(count for predicate, count in queries if not predicate.sets)  # H1 counts them all
        queries = [query for query in queries if query[0].sets]
        self.parts = [list(self._sets(predicate)) for predicate, _ in queries]  # the sub-predicates of each query
        self.queries = len(queries)
        self.columns = self.records * (self.width + self.queries)
        self.hash = np.random.default_rng(SEED).integers(1, HASH, self.width)
        self.rows = _Rows()
        for k in range(self.records):
            self._record(k, [zero.predicate for zero in about.schema.impossible])
        for i, (_, count) in enumerate(queries):
            self._query(i, self.parts[i], count)
        for k in range(1, self.records):  # (18)
            after, before = self.at(k, np.arange(self.width)), self.at(k - 1, np.arange(self.width))
            self.rows.add([*zip(after, self.hash, strict=True), *zip(before, -self.hash, strict=True)], least=0)

    def at(self, k: int, values: Ints) -> list[int]:
        """The binaries of record k for some values, numbered over all columns."""
        return [k * self.width + int(value) for value in values]

    def w(self, i: int, k: int) -> int:
        return self.records * self.width + i * self.records + k

    def _sets(self, predicate: Predicate) -> Iterator[Ints]:
        """The values of each sub-predicate, numbered over all columns."""
        for name, levels in predicate.sets:
            column = self.names.index(name)
            of = self.values[column]
            inside = np.unique(of[sorted(levels)])
            if set(np.flatnonzero(np.isin(of, inside)).tolist()) != set(levels):
                raise ValueError(f"{name}: a table or a rule tells apart what claims do not")
            yield self.first[column] + inside

    def _record(self, k: int, impossible: Sequence[Predicate]) -> None:
        for first, last in zip(self.first[:-1], self.first[1:], strict=True):
            self.rows.add([(at, 1) for at in self.at(k, np.arange(first, last))], 1, 1)
        for predicate in impossible:
            terms = [(at, 1) for values in self._sets(predicate) for at in self.at(k, values)]
            self.rows.add(terms, most=len(predicate.sets) - 1)

    def _query(self, i: int, parts: Sequence[Ints], count: int) -> None:
        for k in range(self.records):
            w, z = self.w(i, k), [[(at, -1) for at in self.at(k, values)] for values in parts]
            for part in z:  # (7)
                self.rows.add([(w, 1), *part], most=0)
            self.rows.add([(w, 1), *(term for part in z for term in part)], least=1 - len(z))  # (8)
        self.rows.add([(self.w(i, k), 1) for k in range(self.records)], count, count)  # (9)

    @cached_property
    def model(self) -> Model:
        """Problem 1: which data sets fit?"""
        return self.rows.model(self.columns)

    def encoded(self, units: Ints) -> Floats:
        """Records (by level, columns as claims have them) as the variables of `model`, in the order of their hashes."""
        values = (
            np.column_stack([of[column] for of, column in zip(self.values, units.T, strict=True)]) + self.first[:-1]
        )
        values = values[np.argsort(self.hash[values].sum(axis=1), kind="stable")]
        x = np.zeros(self.columns)
        x[(np.arange(len(values))[:, None] * self.width + values).reshape(-1)] = 1
        return x

    def other(self, description: Ints, m: int) -> Model:
        """Problem 3: which data sets fit that do not have exactly m records of a description (-1: any value)?

        What is printed is not quite what is meant: in (10) to (13) v stands for a_j, the value of the description,
        while in (15) it is how many there are; M(1 - T)U is no linear term, but M U does the same beside M T; and in
        (17) M(Y - 1) must be M(1 - Y), as the explanation below it has it.
        """
        rows, big = _Rows(), BIG
        named = np.flatnonzero(description >= 0)
        indices = np.concatenate([np.arange(self.first[c], self.first[c + 1]) for c in named])
        a = np.isin(indices, self.first[named] + description[named]).astype(np.int64)
        v, first = len(indices), self.columns
        s = [first + 2 * v * self.records + i for i in range(self.records)]
        y = s[-1] + 1
        for i in range(self.records):
            t = [first + i * v + j for j in range(v)]
            u = [first + (self.records + i) * v + j for j in range(v)]
            for x, t_j, u_j, a_j in zip(self.at(i, indices), t, u, a.tolist(), strict=True):
                rows.add([(x, 1), (t_j, big)], most=big + a_j)  # (10)
                rows.add([(x, -1), (t_j, big)], most=big - a_j)  # (11)
                rows.add([(x, 1), (t_j, big), (u_j, big)], least=1 + a_j)  # (12)
                rows.add([(x, -1), (t_j, big), (u_j, -big)], least=1 - a_j - big)  # (13)
                rows.add([(s[i], 1), (t_j, -1)], most=0)  # (14)
            rows.add([(s[i], 1), *((t_j, -1) for t_j in t)], least=1 - v)  # (15)
        total = [(s_i, 1) for s_i in s]
        rows.add([*total, (y, -big)], most=m - 1)  # (16)
        rows.add([*total, (y, -big)], least=1 + m - big)  # (17)
        return self.rows.model(y + 1, rows)

    def verified(self, description: Ints, m: int, cap: float = CAP) -> tuple[float, bool | None]:
        """Seconds, and whether no data set has another count; None if it did not end."""
        model = self.other(description, m)
        began = CLOCK()
        _, outcome, values = highs(model, cap)
        seconds = cap if outcome == "timeout" else CLOCK() - began
        if outcome == "solved" and not fits(model, np.rint(values)):
            raise RuntimeError("HiGHS found a data set that does not fit")
        return seconds, None if outcome == "timeout" else outcome == "infeasible"


def _value_of_level(groups: Sequence[frozenset[int]]) -> Ints:
    """The number of the group of each level."""
    values = np.empty(sum(len(levels) for levels in groups), np.int64)
    for number, levels in enumerate(groups):
        values[sorted(levels)] = number
    return values


def fits(model: Model, x: Floats) -> bool:
    """Does x keep to every row? In whole numbers."""
    sums = np.zeros(len(model.row_lower))
    np.add.at(sums, model.index, model.value * np.repeat(x, np.diff(model.starts)))
    return bool((sums >= model.row_lower).all() and (sums <= model.row_upper).all())
