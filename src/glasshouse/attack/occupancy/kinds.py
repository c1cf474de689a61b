"""Which kinds of household can a block have, and what does each answer to what is published? Compiled once.

A kind is a column of an integer program: so many households of the block are of it. Where two attributes are named
together by no statement and by no rule, which of their levels go together is free: such attributes are in different
*faces*, each with columns of its own, and any two faces with the same households, as many of them subsidised, are those
of one data set (pair them off within the subsidised, and within the others). So the question whether something fits
needs not the product of all attributes, but their sum. Where whole households are asked for, there is one face.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from glasshouse.errors import GlasshouseBug, InputError
from glasshouse.model.records import UNLIMITED, Codes, Count, group_of_level, satisfies
from glasshouse.model.schema import Predicate, Recode, Schema
from glasshouse.program.integer import IntegerProgram
from glasshouse.scenarios.occupancy import Key, Model, Occupancy, Statement

Flags = NDArray[np.bool_]
Ints = NDArray[np.int64]

TOTALS = 2  # rows of each face before the statements: households, and subsidised ones


@dataclass(frozen=True)
class Block:
    """What is known of a block: its households, the subsidised among them, and limits for every statement.

    `exact` are statements whose number is published as one number, however strictly the model takes it.
    """

    code: str
    households: int
    subsidised: int
    lower: Count
    upper: Count
    exact: Flags


@dataclass(frozen=True)
class Kinds:
    """Kinds of household: their levels (-1 where their face tells none), and what each answers, a row a statement."""

    schema: Schema
    statements: tuple[Statement, ...]
    codes: Codes
    subsidised: Flags
    breaks: Flags
    face: Ints
    faces: int
    rows: sparse.csc_matrix  # two rows of totals for each face, then the statements
    present: Flags  # statements that any household can answer beside all others: only their size matters

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def named(self) -> tuple[Statement, ...]:
        """The statements of the rows after the totals."""
        return tuple(one for one, vague in zip(self.statements, self.present, strict=True) if not vague)

    def limits(self, block: Block) -> tuple[Count, Count]:
        """The limits of all rows."""
        totals = np.tile([block.households, block.subsidised], self.faces)
        lower, upper = block.lower[~self.present], block.upper[~self.present]
        return np.concatenate([totals, lower]), np.concatenate([totals, upper])

    def too_many(self, block: Block) -> bool:
        """Does a statement that counts whoever lives in a household name more households than there are?"""
        most = [block.subsidised if statement.of_property else block.households for statement in self.statements]
        return bool((block.lower > np.array(most))[self.present].any())

    def program(
        self, block: Block, cost: Ints | None = None, believed: Flags | None = None, barred: Flags | None = None
    ) -> tuple[IntegerProgram, Ints]:
        """The program of a block over the kinds it can have, and which kinds these are.

        `believed` says which rows count (by default all); `barred` kinds are left out.
        """
        lower, upper = self.limits(block)
        if believed is not None:
            lower, upper = np.where(believed, lower, 0), np.where(believed, upper, UNLIMITED)
        room = self._room(upper, block.households if believed is None else None)
        if barred is not None:
            room = np.where(barred, 0, room)
        chosen = np.flatnonzero(room)
        return IntegerProgram.of_columns(self.rows, chosen, cost, room, lower, upper), chosen

    def _room(self, upper: Count, households: int | None) -> Ints:
        """The most households of each kind that single numbers allow."""
        room = np.full(len(self), UNLIMITED if households is None else households, np.int64)
        row = self.rows.indices
        column = np.repeat(np.arange(len(self)), np.diff(self.rows.indptr))
        np.minimum.at(room, column, upper[row] // self.rows.data)
        return np.minimum(room, UNLIMITED)

    def numbers(self, codes: Codes) -> Ints:
        """The numbers of kinds, from their levels; of kinds that differ in nothing else."""
        at = {row.tobytes(): number for number, row in enumerate(np.ascontiguousarray(self.codes))}
        if len(at) < len(self):
            raise GlasshouseBug("these kinds are not told apart by their levels")
        return np.array([at[row.tobytes()] for row in np.ascontiguousarray(codes.astype(self.codes.dtype))], np.int64)

    def and_these(self, others: Kinds, some: Ints) -> tuple[Kinds, Ints]:
        """These kinds and some of others that answer the same statements; and the numbers that those have now.

        One with the levels and the answers of a kind that is there is that kind.
        """
        alike = self.numbers(others.codes[some])
        same = np.asarray((self.rows[:, alike] != others.rows[:, some]).sum(axis=0)).reshape(-1) == 0
        new = some[~same]

        def joined(mine: NDArray[Any], theirs: NDArray[Any]) -> NDArray[Any]:
            return np.concatenate([mine, theirs[new]])

        found = replace(
            self,
            codes=joined(self.codes, others.codes),
            subsidised=joined(self.subsidised, others.subsidised),
            breaks=joined(self.breaks, others.breaks),
            face=joined(self.face, others.face),
            rows=sparse.hstack([self.rows, others.rows[:, new]], format="csc"),
        )
        return found, np.where(same, alike, len(self) + np.cumsum(~same) - 1)

    def groups(self, key: Key) -> tuple[Ints, NDArray[np.int64]]:
        """The group of each kind when only a key is looked at, and the value of every part for each group."""
        return group_by(self.schema, self.codes, key)


def group_by(schema: Schema, codes: Codes, key: Key) -> tuple[Ints, NDArray[np.int64]]:
    """The group of each row of codes when only a key is looked at, and the values of each group."""
    values = key_values(schema, codes, key)
    found, inverse = np.unique(values, axis=0, return_inverse=True)
    return inverse.reshape(-1).astype(np.int64), found


def key_values(schema: Schema, codes: Codes, key: Key) -> NDArray[np.int64]:
    """What a key says of each row of codes: a level, the number of a group, or 0 and 1."""
    columns = []
    for part in key.parts:
        if isinstance(part, str):
            columns.append(codes[:, schema.position[part]].astype(np.int64))
        elif isinstance(part, Recode):
            columns.append(group_of_level(schema, part)[codes[:, schema.position[part.attribute]]])
        else:
            columns.append(satisfies(schema, codes, part[1]).astype(np.int64))
    return np.column_stack(columns) if columns else np.zeros((len(codes), 0), np.int64)


def faces_of(occupancy: Occupancy, model: Model, schema: Schema) -> list[tuple[str, ...]]:
    """The attributes that some number or the rule looks at, those looked at together in one face."""
    together: list[set[str]] = []
    looked = [_looked_at(predicate, occupancy, schema) for predicate in occupancy.breaks]
    for statement in model.statements:
        names = set().union(*(_looked_at(one, occupancy, schema) for one in statement.adds))
        looked.append(names.difference(model.present))
    looked.append(set(occupancy.subsidised.by_attribute))
    for names in looked:
        joined = [face for face in together if face & names]
        together = [face for face in together if not face & names] + ([names.union(*joined)] if names else [])
    return [tuple(one.name for one in schema.attributes if one.name in face) for face in together]


def _looked_at(predicate: Predicate, occupancy: Occupancy, schema: Schema) -> set[str]:
    """The attributes that tell households that fit a description from others; all households have some levels."""
    usual = schema.levels_within(occupancy.occupied)
    return {name for name, levels in predicate.sets if not usual[name] <= levels}


def in_faces(occupancy: Occupancy, model: Model, schema: Schema) -> Kinds:
    """The kinds of each face side by side: enough to ask whether something fits."""
    names = faces_of(occupancy, model, schema)
    codes, subsidised = zip(*(_combinations(occupancy, schema, some) for some in names), strict=True)
    face = np.repeat(np.arange(len(names)), [len(rows) for rows in codes])
    return _Compiler(occupancy, model, schema, names).kinds(np.concatenate(codes), np.concatenate(subsidised), face)


def every_kind(occupancy: Occupancy, model: Model, schema: Schema) -> Kinds:
    """Every combination of the attributes that some number, rule or key looks at.

    Where a model counts who is present, somebody of every group lives in each: numbers of them are lower limits, so
    a data set that fits still fits when others move in, and only these kinds are needed to ask what else fits.
    """
    names = {name for face in faces_of(occupancy, model, schema) for name in face}.union(model.present)
    ordered = tuple(one.name for one in schema.attributes if one.name in names)
    codes, subsidised = _combinations(occupancy, schema, ordered)
    everybody = np.ones((len(codes), len(groups_present(model, schema))), np.bool_) if model.present else None
    compiler = _Compiler(occupancy, model, schema, [ordered], everybody)
    return compiler.kinds(codes, subsidised, np.zeros(len(codes), np.int64))


def some_kinds(
    occupancy: Occupancy, model: Model, schema: Schema, codes: Codes, present: NDArray[np.bool_] | None = None
) -> tuple[Kinds, Ints]:
    """Kinds as households of a sample have them, each with every way to be subsidised; which household each is of.

    `present[i, j]`: somebody of the j-th of `groups_present` lives in household i.
    """
    if len(occupancy.subsidised.sets) != 1:
        raise InputError("households are subsidised by the levels of one attribute")
    ((name, _),) = occupancy.subsidised.sets
    ways = sorted(schema.levels_within(occupancy.occupied)[name])
    again = np.repeat(np.arange(len(codes)), len(ways))
    longer = codes[again].copy()
    longer[:, schema.position[name]] = np.tile(np.array(ways, np.int16), len(codes))
    subsidised = satisfies(schema, longer, occupancy.subsidised)
    every = tuple(attribute.name for attribute in schema.attributes)
    compiler = _Compiler(occupancy, model, schema, [every], None if present is None else present[again])
    return compiler.kinds(longer, subsidised, np.zeros(len(longer), np.int64)), again


def groups_present(model: Model, schema: Schema) -> list[dict[str, frozenset[int]]]:
    """The groups of persons whose presence in a household some statement counts."""
    found: list[dict[str, frozenset[int]]] = []
    for statement in model.statements:
        for predicate in statement.adds:
            named = {name: levels for name, levels in predicate.sets if name in model.present}
            if named and named not in found:
                found.append(named)
    return found


def _combinations(occupancy: Occupancy, schema: Schema, names: Sequence[str]) -> tuple[Codes, Flags]:
    """Every possible combination of levels of occupied homes; in a face that does not tell, subsidised and not."""
    usual = schema.levels_within(occupancy.occupied)
    told = set(occupancy.subsidised.by_attribute) <= set(names)
    rows = np.array(list(product(*(sorted(usual[name]) for name in names))), np.int16).reshape(-1, len(names))
    codes = np.full((len(rows), len(schema.attributes)), -1, np.int16)
    codes[:, [schema.position[name] for name in names]] = rows
    for zero in schema.impossible:
        if set(zero.predicate.by_attribute) <= set(names):
            codes = codes[~satisfies(schema, codes, zero.predicate)]
    if told:
        return codes, satisfies(schema, codes, occupancy.subsidised)
    flags = np.repeat([False, True], len(codes))
    return np.concatenate([codes, codes]), flags


@dataclass(frozen=True)
class _Compiler:
    """Works out what kinds answer; the attributes of each face, and who is present in a household, if that is known."""

    occupancy: Occupancy
    model: Model
    schema: Schema
    faces: Sequence[Sequence[str]]
    present: Flags | None = None

    def kinds(self, codes: Codes, subsidised: Flags, face: Ints) -> Kinds:
        breaks = np.zeros(len(codes), np.bool_)
        for predicate in self.occupancy.breaks:
            breaks |= self._fits(codes, predicate)
        rows: list[NDArray[np.generic]] = []
        for number in range(len(self.faces)):
            rows += [face == number, (face == number) & subsidised]
        vague = np.array([self._vague(statement) for statement in self.model.statements], np.bool_)
        for statement, unclear in zip(self.model.statements, vague, strict=True):
            if not unclear:
                mine = (face == self._face(statement)) & (subsidised | (not statement.of_property))
                rows.append(np.where(mine, self._answers(codes, statement), 0))
        matrix = sparse.csc_matrix(np.array(rows).astype(np.int64).reshape(len(rows), len(codes)))
        matrix.sort_indices()
        return Kinds(
            self.schema, self.model.statements, codes, subsidised, breaks, face, len(self.faces), matrix, vague
        )  # fmt: skip

    def _vague(self, statement: Statement) -> bool:
        """Does it count who is present, where nobody knows who that is?"""
        named = any(set(one.by_attribute) & set(self.model.present) for one in statement.adds)
        return named and self.present is None

    def _face(self, statement: Statement) -> int:
        """The face that tells what a statement looks at; a total is told by any."""
        names = set().union(*(_looked_at(one, self.occupancy, self.schema) for one in statement.adds))
        return next((number for number, face in enumerate(self.faces) if names & set(face)), 0)

    def _answers(self, codes: Codes, statement: Statement) -> Ints:
        """How often each kind answers a statement."""
        total = np.zeros(len(codes), np.int64)
        groups = groups_present(self.model, self.schema)
        for predicate in statement.adds:
            named = {name: levels for name, levels in predicate.sets if name in self.model.present}
            rest = tuple((name, levels) for name, levels in predicate.sets if name not in named)
            fits = self._fits(codes, Predicate(rest))
            if named and self.present is not None:
                fits &= self.present[:, groups.index(named)]
            total += fits
        return total

    def _fits(self, codes: Codes, predicate: Predicate) -> Flags:
        """Which kinds fit a description, as far as it tells households apart; none where their face does not tell."""
        telling = _looked_at(predicate, self.occupancy, self.schema)
        told = (codes[:, [self.schema.position[name] for name in telling]] >= 0).all(axis=1)
        some = Predicate(tuple((name, levels) for name, levels in predicate.sets if name in telling))
        return np.asarray(told & satisfies(self.schema, codes, some))
