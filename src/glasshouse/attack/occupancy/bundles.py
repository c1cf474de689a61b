"""How are kinds of household that differ only in how many live there taken together? Exactly, as a few variables.

To every number but sums of members, households of 4 adults and 1 child and of 3 adults and 2 children may answer alike.
Such kinds are one *bundle*: n households with, in all, A adults and C children. If the bundle holds every whole (a, c)
with limits on a, on c and on a + c, then n of its households can have any A and C within n times those limits, and no
others (the limits are totally unimodular, so a whole point of n times the set is a sum of n whole points of it). So
three variables stand for hundreds of kinds, and whole solutions are found ten times sooner.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from glasshouse.attack.occupancy.kinds import Block, Kinds
from glasshouse.errors import InputError
from glasshouse.model.records import UNLIMITED, Count
from glasshouse.model.schema import Attribute
from glasshouse.program.integer import IntegerProgram

Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Bundles:
    """Bundles of kinds: `rows` has those of the kinds, then limits on members that hold within the bundles."""

    kinds: Kinds
    rows: sparse.csc_matrix
    lower: Count  # of the rows within bundles
    upper: Count
    breaks: Flags  # of each variable; those of members break nothing
    face: Ints
    largest: int  # members of a household

    def program(
        self, block: Block, cost: Ints | None = None, believed: Flags | None = None, barred: Flags | None = None
    ) -> IntegerProgram:
        """The program of a block; `believed` says which rows of the kinds count, `barred` variables are left out."""
        lower, upper = self.kinds.limits(block)
        if believed is not None:
            lower, upper = np.where(believed, lower, 0), np.where(believed, upper, UNLIMITED)
        dead = np.zeros(self.rows.shape[1], np.bool_) if barred is None else barred.copy()
        zero = np.concatenate([upper == 0, np.zeros(len(self.lower), np.bool_)])
        column = np.repeat(np.arange(len(dead)), np.diff(self.rows.indptr))
        dead[column[zero[self.rows.indices] & (self.rows.data > 0)]] = True
        chosen = np.flatnonzero(~dead)
        most = np.full(len(dead), UNLIMITED if believed is not None else block.households * self.largest, np.int64)
        lower, upper = np.concatenate([lower, self.lower]), np.concatenate([upper, self.upper])
        return IntegerProgram.of_columns(self.rows, chosen, cost, most, lower, upper)


def bundle(kinds: Kinds) -> Bundles:
    """Take kinds together that differ in their members alone."""
    members = _members(kinds)
    answers = kinds.rows.toarray()
    sums = answers.max(axis=1, initial=0) > 1
    alike = np.column_stack([answers[~sums].T, kinds.breaks, kinds.face, members > 0])
    _, group = np.unique(alike, axis=0, return_inverse=True)
    order = np.argsort(group.reshape(-1), kind="stable")
    columns: list[Ints] = []
    breaks: list[bool] = []
    face: list[int] = []
    inner = _Inner()
    for some in np.split(order, np.flatnonzero(np.diff(group.reshape(-1)[order])) + 1):
        for chosen in _whole(members, some):
            first, own = len(columns), members[chosen]
            steps = _steps(answers[:, chosen], own, sums)
            columns.append(answers[:, chosen[0]] - steps @ (own[0] - own.min(axis=0)))
            free = np.flatnonzero(np.ptp(own, axis=0))
            columns += [steps[:, one] for one in free]
            breaks += [bool(kinds.breaks[chosen[0]])] + [False] * len(free)
            face += [int(kinds.face[chosen[0]])] * (1 + len(free))
            inner.add(first, own - own.min(axis=0), free)
    rows = sparse.vstack([sparse.csc_matrix(np.array(columns, np.int64).T), inner.rows(len(columns))], format="csc")
    rows.sort_indices()
    largest = max(int(members.sum(axis=1).max(initial=1)), 1)
    lower, upper = np.array(inner.lower, np.int64), np.array(inner.upper, np.int64)
    return Bundles(kinds, rows, lower, upper, np.array(breaks, np.bool_), np.array(face, np.int64), largest)


class _Inner:
    """Limits on the members of bundles, row by row."""

    def __init__(self) -> None:
        self.entries: list[tuple[int, int, int]] = []
        self.lower: list[int] = []
        self.upper: list[int] = []

    def add(self, first: int, own: Ints, free: Ints) -> None:
        """The limits of one bundle, whose members beyond the least are variables after `first`."""
        variables = [first + 1 + number for number in range(len(free))]
        for one, variable in zip(free, variables, strict=True):
            self._at_most(first, [variable], int(own[:, one].max()))
        if len(free) > 1:
            sums = own.sum(axis=1)
            self._at_most(first, variables, int(sums.max()))
            self._at_least(first, variables, int(sums.min()))

    def _at_most(self, first: int, variables: list[int], times: int) -> None:
        self._row(first, variables, times, -UNLIMITED, 0)

    def _at_least(self, first: int, variables: list[int], times: int) -> None:
        if times:
            self._row(first, variables, times, 0, UNLIMITED)

    def _row(self, first: int, variables: list[int], times: int, lower: int, upper: int) -> None:
        row = len(self.lower)
        self.entries += [(row, variable, 1) for variable in variables] + [(row, first, -times)]
        self.lower.append(lower)
        self.upper.append(upper)

    def rows(self, columns: int) -> sparse.csc_matrix:
        row, column, value = np.array(self.entries, np.int64).reshape(-1, 3).T
        return sparse.csc_matrix((value, (row, column)), shape=(len(self.lower), columns), dtype=np.int64)


def _members(kinds: Kinds) -> Ints:
    """How many members of each sort every kind has; where its face does not tell, none."""
    counting = [attribute for attribute in kinds.schema.attributes if attribute.numbers]
    if len(counting) > 1:
        raise InputError("members of a household are told by one attribute")
    found = np.zeros((len(kinds), 2), np.int64)
    for attribute in counting:
        level = kinds.codes[:, kinds.schema.position[attribute.name]]
        for at, numbers in enumerate(_sorts(attribute)):
            found[:, at] = np.where(level >= 0, np.array(numbers)[level], 0)
    return found


def _sorts(attribute: Attribute) -> list[tuple[int, ...]]:
    """The two sorts of members that make up all: adults and children."""
    names = list(attribute.numbers)
    for one in names:
        for other in names:
            both = tuple(a + b for a, b in zip(attribute.numbers[one], attribute.numbers[other], strict=True))
            if one < other and both in attribute.numbers.values():
                return [attribute.numbers[one], attribute.numbers[other]]
    raise InputError(f"the numbers of {attribute.name} are not two sorts of members and all of them")


def _whole(members: Ints, some: Ints) -> Iterator[Ints]:
    """Kinds that fill the limits of their members; kinds that do not, one by one."""
    own = members[some]
    least, sums = own.min(axis=0), own.sum(axis=1)
    (a, b), (c, d) = zip(least.tolist(), own.max(axis=0).tolist(), strict=True)
    inside = sum(max(min(d, int(sums.max()) - x) - max(c, int(sums.min()) - x) + 1, 0) for x in range(a, b + 1))
    if inside == len(some) == len(np.unique(own, axis=0)):
        yield some
    else:
        yield from some[:, None]


def _steps(answers: Ints, own: Ints, sums: Flags) -> Ints:
    """What one more member of each sort adds to each number; members must add the same everywhere."""
    steps = np.zeros((len(answers), own.shape[1]), np.int64)
    for row in np.flatnonzero(sums):
        found, *_ = np.linalg.lstsq(np.column_stack([own, np.ones(len(own))]), answers[row], rcond=None)
        steps[row] = np.rint(found[:-1])
        steps[row][np.ptp(own, axis=0) == 0] = 0
        if (answers[row] - answers[row][0] != (own - own[0]) @ steps[row]).any():
            raise InputError("a number adds up members in a way that is not the same for all households")
    return steps
