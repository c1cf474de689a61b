"""What are we compared with? The published formulations, as written, through arrays and on one thread.

- `record_binary`: equations (3) and (6) of Abowd et al.: a binary for every potential record of a block. A type of
  record (sex, age, race, Hispanic) has as many of them as P12 counts persons of its sex and age bin.
- `tract_record_binary`: equation (5): all blocks of a tract at once, with block and tract tables.
- `histogram_farthest`: equation (8) without its tract tables, in the best form we know for a solver: an integer per
  cell of the block's histogram and binaries only where a cell can both overlap the start and overflow it.

The paper's binaries have exact ages even where no block table tells them apart; that is `exact=True`. With
`eliminate`, binaries that some published zero rules out are dropped first, which the paper does not say it does; with
the 38 age bins (`exact=False`) that is the kindest form of the peer.

Each peer takes a time cap and gives `Answer(seconds, outcome, objective)`. Building the arrays is not timed; passing
them to the solver and solving is. A timeout counts at the cap. Every solution is checked in integers against all that
was published: `solved` means that it reproduces each count, `wrong` that the solver's tolerances let it miss one. The
solver is `highs` unless another is given; one with a limited licence may call a model `too large`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import highspy
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from glasshouse.model.tabulate import compile_tables
from glasshouse.scenarios.load import Scenario

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

INFINITY = float("inf")
GAP = 0.99  # objectives are whole: less than 1 from the best is the best
DETAILED = tuple(f"P12{letter}" for letter in "ABCDEFG")  # together they count what P12 counts


class Answer(NamedTuple):
    """What a peer needed and found; the objective is the L1 distance, or None where there is none."""

    seconds: float
    outcome: str  # solved, timeout, infeasible, wrong, too large
    objective: int | None


class Published:
    """The cells of one level as a matrix over the types of records; made once, used for every place.

    `variables` are the columns of the counts to come (`Counts.variables`); a release may lack some tables. With
    `exact` a type has a single year of age, otherwise the first year of one of the 38 bins stands for its bin.
    """

    def __init__(self, scenario: Scenario, level: str, variables: Sequence[str], *, exact: bool) -> None:
        self.scenario, self.variables = scenario, tuple(variables)
        sizes = [len(attribute) for attribute in scenario.schema.attributes]
        ages = np.arange(sizes[1])
        if not exact:
            ages = np.array([min(leaf.levels) for leaf in scenario.recodes["age-38"].leaves])
        self.age = np.searchsorted(ages, np.arange(sizes[1]), side="right") - 1  # where an age or its bin stands
        self.shape = (sizes[0], len(ages), *sizes[2:])
        self.types: Ints = np.indices(self.shape).reshape(len(sizes), -1).T.astype(np.int64)
        self.types[:, 1] = ages[self.types[:, 1]]
        tables = [table for table in scenario.tables if table.level == level]
        column = {variable: index for index, variable in enumerate(variables)}
        tables = [table for table in tables if all(variable in column for variable in table.variables)]
        tabulator = compile_tables(scenario.schema, tables)
        self.kept = np.array([column[variable] for variable in tabulator.variables])  # cells only, no subtotals
        rows, columns = [], []
        for group, step in enumerate(tabulator.steps):
            position = tabulator.starts[group] + step[np.arange(len(sizes)), self.types].sum(axis=1)
            begins = np.where(position > 0, tabulator.ends[position - 1], 0)
            lengths = tabulator.ends[position] - begins
            entry = np.repeat(begins - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
            rows.append(np.repeat(np.arange(len(self.types)), lengths))
            columns.append(tabulator.columns[entry])
        at = (np.concatenate(rows), np.concatenate(columns))
        self.matrix = csr_array(coo_array((np.ones(len(at[0]), np.int64), at), (len(self.types), len(self.kept))))
        self._slots = self._where_slots_are(tabulator.tables) if level == "block" else np.zeros((0, 0), np.int64)

    def _where_slots_are(self, owners: Sequence[str]) -> Ints:
        """For each type, the columns whose sum is the published number of persons of its sex and P12 age bin."""
        owner = np.array(owners)
        sources = ("P12",) if "P12" in owners else DETAILED
        if not set(sources) <= set(owners):
            raise ValueError("neither P12 nor all of P12A to P12G: nothing says how many potential records there are")
        bins = [sorted(leaf.levels) for leaf in self.scenario.recodes["age-23"].leaves]
        of_age = np.repeat(np.arange(len(bins)), [len(ages) for ages in bins])
        cell = self.types[:, 0] * len(bins) + of_age[self.types[:, 1]]
        return np.array([np.flatnonzero(owner == name)[cell] for name in sources])

    def slots(self, row: Ints) -> Ints:
        """How many potential records each type has in a block: the count of its cell in P12 (equation 3)."""
        return np.asarray(row[self._slots].sum(axis=0))

    def possible(self, row: Ints) -> Flags:
        """Which types no published zero rules out."""
        return np.asarray(self.matrix @ (row == 0).astype(np.int64) == 0)

    def ceilings(self, row: Ints) -> Ints:
        """The least published count that counts each type; every type is counted somewhere (in P1)."""
        matrix = self.matrix
        return np.minimum.reduceat(row[matrix.indices], matrix.indptr[:-1])

    def histogram(self, codes: NDArray[np.int16]) -> Ints:
        """Records of one place, counted by type."""
        sex, age, *rest = codes.T
        flat = np.ravel_multi_index((sex, self.age[age], *rest), self.shape)
        return np.bincount(flat, minlength=len(self.types)).astype(np.int64)

    def reproduces(self, histogram: Ints, row: Ints) -> bool:
        """Does the histogram have every published count? In integers."""
        return bool((histogram >= 0).all() and (histogram @ self.matrix == row).all())


@dataclass(frozen=True)
class Model:
    """Minimise the cost of whole numbers from 0 to `upper` whose rows lie between two limits, by columns."""

    cost: Floats
    upper: Floats
    row_lower: Floats
    row_upper: Floats
    starts: NDArray[np.int32]
    index: NDArray[np.int32]
    value: Floats

    @classmethod
    def of(
        cls, cost: Floats, upper: Floats, limits: tuple[Floats, Floats], entries: tuple[Ints, Ints, Floats]
    ) -> Model:
        """From (row, column, value) entries."""
        row, column, value = entries
        matrix = coo_array((value, (row, column)), (len(limits[0]), len(cost))).tocsc()
        starts, index = matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32)
        return cls(cost, upper, *limits, starts, index, matrix.data.astype(np.float64))


Solver = Callable[[Model, float], tuple[float, str, Floats]]  # model and cap to seconds, outcome and values


def highs(model: Model, cap: float) -> tuple[float, str, Floats]:
    """Seconds from arrays to answer, the outcome, and the values if there are any."""
    columns, rows = len(model.cost), len(model.row_lower)
    solver = highspy.Highs()
    for name, setting in (("output_flag", False), ("threads", 1), ("time_limit", cap), ("mip_abs_gap", GAP)):
        solver.setOptionValue(name, setting)
    lower, whole = np.zeros(columns), np.ones(columns, np.int32)
    by_column, minimise = int(highspy.MatrixFormat.kColwise), int(highspy.ObjSense.kMinimize)
    limits = (lower, model.upper, model.row_lower, model.row_upper)
    start = time.perf_counter()
    # fmt: off
    solver.passModel(columns, rows, len(model.value), by_column, minimise, 0.0, model.cost, *limits,
                     model.starts, model.index, model.value, whole)
    # fmt: on
    solver.run()
    status = solver.getModelStatus()
    values = np.array(solver.getSolution().col_value)
    seconds = time.perf_counter() - start
    if status == highspy.HighsModelStatus.kOptimal:
        return seconds, "solved", values
    if status == highspy.HighsModelStatus.kInfeasible:
        return seconds, "infeasible", np.zeros(0)
    if status == highspy.HighsModelStatus.kTimeLimit:
        return cap, "timeout", np.zeros(0)
    raise RuntimeError(f"HiGHS stopped with {solver.modelStatusToString(status)}")


def solve(model: Model, cap: float, by: Solver = highs) -> tuple[float, str, Ints]:
    """What a solver says, its values made whole; an empty model is never put to one."""
    if len(model.cost) == 0:  # an empty block; solvers differ in what they call this
        return 0.0, "solved" if not (model.row_lower > 0).any() else "infeasible", np.zeros(0, np.int64)
    seconds, outcome, values = by(model, cap)
    return seconds, outcome, np.rint(values).astype(np.int64)


def record_model(
    blocks: Published, rows: Ints, tract: tuple[Published, Ints] | None = None, *, eliminate: bool
) -> tuple[Model, Ints, Ints]:
    """Equations (3) to (6): the model, and the block and the type of each of its binaries.

    `rows` has a line for each block, its columns those `kept`. Rows of the model without binaries are left out, unless
    what they ask for is not zero.
    """
    alive = np.array([blocks.slots(row) for row in rows])
    if eliminate:
        alive *= np.array([blocks.possible(row) for row in rows])
        if tract is not None:
            alive *= tract[0].possible(tract[1])
    where, kind = np.nonzero(alive)
    copies = alive[where, kind]
    where, kind = np.repeat(where, copies), np.repeat(kind, copies)
    wanted = rows.ravel()
    picked = blocks.matrix[kind].tocoo()
    column, row = picked.row, where[picked.row] * rows.shape[1] + picked.col
    if tract is not None:
        above = tract[0].matrix[kind].tocoo()
        column, row = np.concatenate([column, above.row]), np.concatenate([row, len(wanted) + above.col])
        wanted = np.concatenate([wanted, tract[1]])
    used = wanted != 0
    used[row] = True
    limit = wanted[used].astype(np.float64)
    entries = ((np.cumsum(used) - 1)[row], column, np.ones(len(row)))
    return Model.of(np.zeros(len(kind)), np.ones(len(kind)), (limit, limit), entries), where, kind


def record_binary(blocks: Published, row: Ints, *, eliminate: bool, cap: float, by: Solver = highs) -> Answer:
    """Some records of one block that reproduce its tables (equation 6)."""
    wanted = row[blocks.kept]
    model, _, kind = record_model(blocks, wanted[None], eliminate=eliminate)
    seconds, outcome, values = solve(model, cap, by)
    if outcome == "solved":
        found = np.bincount(np.repeat(kind, values), minlength=len(blocks.types))
        outcome = outcome if blocks.reproduces(found, wanted) else "wrong"
    return Answer(seconds, outcome, None)


def tract_record_binary(
    blocks: Published, rows: Ints, tract: Published, row: Ints, *, cap: float, eliminate: bool = True
) -> Answer:
    """Some records of a tract that reproduce the tables of its blocks and its own (equation 5); ages must be exact."""
    if blocks.shape != tract.shape:
        raise ValueError("blocks and tract must be published over the same types; use exact=True for both")
    wanted, above = rows[:, blocks.kept], row[tract.kept]
    model, where, kind = record_model(blocks, wanted, (tract, above), eliminate=eliminate)
    seconds, outcome, values = solve(model, cap)
    if outcome == "solved":
        found = np.zeros((len(rows), len(blocks.types)), np.int64)
        np.add.at(found, (where, kind), values)
        fits = all(blocks.reproduces(mine, want) for mine, want in zip(found, wanted, strict=True))
        outcome = outcome if fits and tract.reproduces(found.sum(axis=0), above) else "wrong"
    return Answer(seconds, outcome, None)


def farthest_model(blocks: Published, wanted: Ints, start: Ints) -> tuple[Model, Ints, Ints]:
    """Least overlap with the start; also the type of each column, and by how much the column counts for it.

    A cell of the support is split: what overlaps the start, and what overflows it. Its binary is 1 if it overflows,
    and then all of the start is overlapped; a cell that cannot exceed the start needs neither.
    """
    live = np.flatnonzero(blocks.possible(wanted))
    ceiling, held = blocks.ceilings(wanted)[live], start[live]
    support = np.flatnonzero(held > 0)
    over = np.flatnonzero((held > 0) & (ceiling > held))
    room, k = (ceiling - held)[over], held[over]
    plain = np.where(held > 0, np.minimum(held, ceiling), ceiling)  # what a cell may hold, or may overlap
    kind = np.concatenate([live, live[over], live[over]])
    weight = np.concatenate([np.ones(len(live) + len(over), np.int64), np.zeros(len(over), np.int64)])
    upper = np.concatenate([plain, room, np.ones(len(over), np.int64)]).astype(np.float64)
    cost = np.zeros(len(kind))
    cost[support] = 1
    used = np.flatnonzero(wanted)
    number = np.cumsum(wanted != 0) - 1
    picked = blocks.matrix[kind[weight > 0]].tocoo()
    overflow, binary = len(live) + np.arange(len(over)), len(live) + len(over) + np.arange(len(over))
    first, second = len(used) + np.arange(len(over)), len(used) + len(over) + np.arange(len(over))
    ones, none = np.ones(len(over)), np.zeros(len(over))
    row = np.concatenate([number[picked.col], first, first, second, second])
    column = np.concatenate([picked.row, overflow, binary, over, binary])
    value = np.concatenate([np.ones(picked.nnz), ones, -room.astype(np.float64), ones, -k.astype(np.float64)])
    limit = wanted[used].astype(np.float64)
    least = np.concatenate([limit, none - INFINITY, none])  # overflow - room d <= 0 and overlap - k d >= 0
    most = np.concatenate([limit, none, none + INFINITY])
    return Model.of(cost, upper, (least, most), (row, column, value)), kind, weight


def histogram_farthest(blocks: Published, row: Ints, start: Ints, *, cap: float, by: Solver = highs) -> Answer:
    """How far (L1) a histogram with the same tables can lie from the start; `start` as `Published.histogram` has it."""
    wanted = row[blocks.kept]
    if not blocks.reproduces(start, wanted):
        raise ValueError("the start does not reproduce the tables")
    model, kind, weight = farthest_model(blocks, wanted, start)
    seconds, outcome, values = solve(model, cap, by)
    if outcome != "solved":
        return Answer(seconds, outcome, None)
    found = np.zeros(len(start), np.int64)
    np.add.at(found, kind, weight * values)
    return Answer(seconds, outcome if blocks.reproduces(found, wanted) else "wrong", int(np.abs(found - start).sum()))
