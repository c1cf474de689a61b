"""Which variables stand in the same rows? They count as one; a description may cut through what was put together.

Where little was published many kinds of record are limited by the same numbers. Whatever they hold together, any one of
them could hold alone, so for a description that cuts through them the least counts those wholly inside it, and the
most all that meet it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from glasshouse.errors import GlasshouseBug
from glasshouse.model.records import UNLIMITED
from glasshouse.program.propagate import Array
from glasshouse.program.reduce import Programs
from glasshouse.program.tables.histogram import Problem

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Alike:
    """A problem with variables put together: `of[v]` is the new variable of the old variable `v`.

    The cell of a new variable is that of the first of its old ones.
    """

    problem: Problem
    of: Array

    def every(self, old: Flags) -> Flags:
        """The new variables all of whose old ones are chosen."""
        fine = np.ones(len(self.problem.cell), np.bool_)
        fine[self.of[~old]] = False
        return fine

    def some(self, old: Flags) -> Flags:
        """The new variables some of whose old ones are chosen."""
        fine = np.zeros(len(self.problem.cell), np.bool_)
        fine[self.of[old]] = True
        return fine


def put_together(problem: Problem, label: NDArray[np.integer] | None = None) -> Alike:
    """Make one variable of all that stand in the same rows of a program, where any of them could hold what all do.

    Variables with another `label` stay apart.
    """
    programs = problem.programs
    names = _names(programs)
    if label is not None:
        names = np.column_stack([names, label.astype(np.uint64)])
    first, of = np.unique(names, axis=0, return_index=True, return_inverse=True)[1:]
    order = np.argsort(first, kind="stable")  # new variables in the order of their first old ones
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    of, first = rank[of.reshape(-1)], first[order]
    _check(programs, first[of])
    kept = np.zeros(len(of), np.bool_)
    kept[first] = True
    entry = kept[programs.index]
    starts = np.concatenate([[0], np.cumsum(entry)])[programs.starts].astype(np.int64)
    fewer = Programs(
        np.searchsorted(first, programs.first).astype(np.int64),
        programs.lower[first],
        programs.upper[first],
        programs.row_first,
        programs.row_lower,
        programs.row_upper,
        starts,
        of[programs.index[entry]].astype(np.int32),
        programs.coefficient[entry],
    )
    return Alike(replace(problem, programs=fewer, place=problem.place[first], cell=problem.cell[first]), of)


def _names(programs: Programs) -> NDArray[np.uint64]:
    """A name for what a variable stands in; the same for variables that may be put together, and for no others.

    Names are sums of random numbers, so two could be equal by chance: `_check` makes sure that they are not.
    """
    rng = np.random.default_rng(0)
    names = np.empty((len(programs.lower), 4), np.uint64)
    for column in range(2):
        chance = rng.integers(0, 2**64, len(programs.row_lower), dtype=np.uint64)
        rows = np.repeat(chance, np.diff(programs.starts)) * programs.coefficient.astype(np.uint64)
        total = np.zeros(len(names), np.uint64)
        np.add.at(total, programs.index, rows)
        names[:, column] = total
    names[:, 2] = programs.program_of.astype(np.uint64)
    names[:, 3] = np.where(_free(programs), 0, 1 + np.arange(len(names))).astype(np.uint64)
    return names


def _free(programs: Programs) -> Flags:
    """The variables that only their rows limit: from nothing up to what the tightest of them allows."""
    allowed = np.full(len(programs.lower), UNLIMITED, np.int64)
    upper = np.repeat(programs.row_upper, np.diff(programs.starts))
    plain = (programs.coefficient > 0) & (upper < UNLIMITED)
    np.minimum.at(allowed, programs.index[plain], upper[plain] // programs.coefficient[plain])
    free: Flags = (programs.lower == 0) & (programs.upper >= allowed)
    row = np.repeat(np.arange(len(programs.row_lower)), np.diff(programs.starts))
    mixed = np.isin(row, row[programs.coefficient < 0])  # there a cell may hold more than the row's number
    free[programs.index[mixed]] = False
    return free


def _check(programs: Programs, like: Array) -> None:
    """Every variable must stand in the rows of the one it is put together with, as often."""
    starts, rows, times = programs.system.begins, programs.system.row_of, programs.system.by_column
    lengths = np.diff(starts)
    if (lengths != lengths[like]).any():
        raise GlasshouseBug("variables of different rows were put together; please report this")
    moved = np.flatnonzero(like != np.arange(len(like)))
    within = np.arange(int(lengths[moved].sum())) - np.repeat(
        np.cumsum(lengths[moved]) - lengths[moved], lengths[moved]
    )
    mine = np.repeat(starts[:-1][moved], lengths[moved]) + within
    other = np.repeat(starts[:-1][like[moved]], lengths[moved]) + within
    if (rows[mine] != rows[other]).any() or (times[mine] != times[other]).any():
        raise GlasshouseBug("variables of different rows were put together; please report this")
