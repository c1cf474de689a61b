"""What does a linear program say? The paper's programs (7)-(12): as printed, and with equal elements together.

These are the oracles of the parametric flow, and its stand-in where elements at risk cannot be gathered and are too
many. `full_lp` has a variable for each theta_kij; `reduced_lp` one for the people of a group and count who go to j.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_array, vstack

from glasshouse.errors import GlasshouseBug
from glasshouse.protection.relocation.rules import Coverage, Floats, Groups, Ints, Matrix, Relocation, Rules, at_risk

PRECISION = 1e-10  # what HiGHS is asked for; it can do no better. Its own default is 1e-7, and up to three times faster


@dataclass(frozen=True, eq=False)
class Program:
    """max protection @ x, with noise @ x <= E, rows @ x <= right and 0 <= x <= upper."""

    protection: Floats
    noise: Floats
    rows: csr_array
    right: Floats
    upper: Floats
    cells: int
    combination: Ints  # of each variable, where it is a theta
    source: Ints
    target: Ints
    precision: float = PRECISION

    def solve(self, objective: Floats, noise: float | None = None, least: float | None = None) -> Floats:
        """The x that maximises, with limits on noise and protection if given."""
        if not len(objective):
            return np.zeros(0)
        extra = [(self.noise, noise)] if noise is not None else []
        extra += [(-self.protection, -least)] if least is not None else []
        rows = vstack([self.rows, *(csr_array(row[None]) for row, _ in extra)], format="csr")
        right = np.concatenate([self.right, [limit for _, limit in extra]])
        options = {name + "_feasibility_tolerance": self.precision for name in ("primal", "dual")}
        bounds = np.column_stack([np.zeros(len(objective)), self.upper])
        found = linprog(-objective, A_ub=rows, b_ub=right, bounds=bounds, method="highs", options=options)
        if found.status != 0:
            raise GlasshouseBug(f"the linear program of a relocation was not solved: {found.message}")
        return np.asarray(np.clip(found.x, 0, self.upper))

    def best(self, epsilon: float | None) -> tuple[Floats, float, float]:
        """x, P and U: the most protection with U >= epsilon, or (None) without limit and then with the least noise."""
        if epsilon is not None:
            x = self.solve(self.protection, noise=max(0.0, (1 - epsilon) * self.cells))
        else:
            most = float(self.protection @ self.solve(self.protection))
            x = self.solve(-self.noise, least=most * (1 - 1e-13))
        return x, *self.value(x)

    def value(self, x: Floats) -> tuple[float, float]:
        """P and U."""
        return float(self.protection @ x), 1 - float(self.noise @ x) / max(self.cells, 1)

    def relocation(self, theta: Floats) -> Relocation:
        """Chances of the program as printed; what is below the solver's precision is 0."""
        some = theta > PRECISION
        return Relocation(self.combination[some], self.source[some], self.target[some], np.minimum(theta[some], 1))


@dataclass(frozen=True)
class Optimum:
    """What a linear program found: P, U, and how many variables and rows it took."""

    P: float
    U: float
    variables: int
    rows: int


def full_program(matrix: Matrix, rules: Rules) -> Program:
    """As printed: theta_kij for each element at risk and each place that covers it."""
    rules.check(matrix)
    row, place, count = at_risk(matrix, rules)
    receives = rules.receives(matrix)
    sources, targets = [], []
    for number, (k, i) in enumerate(zip(row, place, strict=True)):
        open_ = receives[k] if rules.near is None else receives[k] & rules.near[[i]].toarray()[0]
        if rules.coverage is Coverage.RELAXED:
            open_ = open_ & (np.arange(len(open_)) != i)
        found = np.flatnonzero(open_)
        targets.append(found)
        sources.append(np.full(len(found), number))
    element = np.concatenate([*sources, np.empty(0, np.int64)]).astype(np.int64)
    target = np.concatenate([*targets, np.empty(0, np.int64)]).astype(np.int64)
    people = count[element].astype(np.float64)
    weight = rules.weights(count)[element] * people
    noise = people * (1 / people + 1 / matrix.counts[row[element], target])
    column = np.arange(len(element))
    shape = (len(row) + len(rules.capacity), len(element))
    where = (np.concatenate([element, len(row) + target]), np.concatenate([column, column]))
    rows = csr_array((np.concatenate([np.ones(len(element)), people]), where), shape=shape)
    right = np.concatenate([np.ones(len(row)), rules.capacity])
    upper = np.ones(len(element))
    return Program(weight, noise, rows, right, upper, matrix.cells, row[element], place[element], target)


def reduced_program(matrix: Matrix, rules: Rules) -> Program:
    """People of a group and count who go to j."""
    groups = Groups.of(matrix, rules)
    pair_group, pair_kind = np.nonzero(groups.supply > 0)
    limits = groups.limits(matrix)
    pair, target = np.nonzero(np.isfinite(groups.cost[pair_group]))
    group, kind = pair_group[pair], pair_kind[pair]
    number = np.arange(len(pair))
    shape = (len(pair_group) + len(rules.capacity), len(pair))
    where = (np.concatenate([pair, len(pair_group) + target]), np.concatenate([number, number]))
    rows = csr_array((np.ones(2 * len(pair)), where), shape=shape)
    right = np.concatenate([groups.supply[pair_group, pair_kind], rules.capacity])
    noise = 1.0 / groups.counts[kind] + groups.cost[group, target]
    none = np.empty(0, np.int64)
    upper = limits[group, target]
    return Program(groups.weight[kind], noise, rows, right, upper, matrix.cells, none, none, none)


def full_lp(matrix: Matrix, rules: Rules, epsilon: float | None = None) -> Optimum:
    """The most protection with U >= epsilon (or the end of the front), by the program as the paper prints it."""
    return _optimum(full_program(matrix, rules), epsilon)


def reduced_lp(matrix: Matrix, rules: Rules, epsilon: float | None = None) -> Optimum:
    """The same by the program of groups and counts."""
    return _optimum(reduced_program(matrix, rules), epsilon)


def _optimum(program: Program, epsilon: float | None) -> Optimum:
    _, protection, utility = program.best(epsilon)
    return Optimum(protection, utility, len(program.noise), len(program.right))


def corners(program: Program) -> list[tuple[float, float, Floats]]:
    """All corners of the front, as P, U and x: bisection on slopes (Cohon's NISE).

    Between two known points, maximise along the normal of their chord. Either nothing lies beyond it, and by duality
    the chord is the front; or a new corner does, and each half is asked again. Exact up to the solver's precision.
    """
    end, most, least = program.best(None)
    start = np.zeros(len(end))
    found = [(0.0, 1.0, start)]
    asked = [((0.0, 1.0, start), (most, least, end))]
    while asked:
        left, right = asked.pop()
        rise, fall = right[0] - left[0], (left[1] - right[1]) * program.cells
        level = fall * left[0] - rise * (1 - left[1]) * program.cells
        if rise <= PRECISION * max(most, 1):
            continue
        x = program.solve((fall * program.protection - rise * program.noise) / max(fall, rise))
        protection, utility = program.value(x)
        beyond = fall * protection - rise * (1 - utility) * program.cells - level
        if beyond > 1e-9 * max(fall * most, rise, 1e-9) and left[0] < protection < right[0]:
            asked += [((protection, utility, x), right), (left, (protection, utility, x))]
        else:
            found.append(right)
    return found
