"""What does a sample of the census say? Its households as kinds of the scenario, and what each kind costs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from glasshouse.attack.occupancy.kinds import groups_present, some_kinds
from glasshouse.attack.occupancy.likely import Sample
from glasshouse.files.sample import GROUPS, RACES, StateSample
from glasshouse.model.schema import Schema
from glasshouse.scenarios.occupancy import Model, Occupancy


def sample_of(occupancy: Occupancy, model: Model, schema: Schema, state: StateSample) -> tuple[Sample, int]:
    """The kinds of a state's sample, and how many of its households are larger than the scenario knows.

    Where the model looks at who is present, kinds differ in that too.
    """
    level, known = _levels(occupancy, schema, state)
    codes = np.zeros((len(level), len(schema.attributes)), np.int16)
    codes[:, [schema.position[name] for name in (_counting(occupancy, schema), *occupancy.householder)]] = level
    present = _present(occupancy, model, schema, state)
    rows = np.column_stack([codes.astype(np.int64), present.astype(np.int64)])[known]
    kinds, inverse = np.unique(rows, axis=0, return_inverse=True)
    households = np.zeros(len(kinds), np.int64)
    np.add.at(households, inverse.reshape(-1), state.households[known])
    width = len(schema.attributes)
    told = kinds[:, width:].astype(np.bool_) if model.present else None
    found, of = some_kinds(occupancy, model, schema, kinds[:, :width].astype(np.int16), told)
    return Sample.weighed(found, of, households), int(state.households[~known].sum())


def _counting(occupancy: Occupancy, schema: Schema) -> str:
    """The attribute that counts members."""
    return next(one.name for one in schema.attributes if occupancy.members[0] in one.numbers)


def _levels(
    occupancy: Occupancy, schema: Schema, state: StateSample
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:  # fmt: skip
    """Levels of members, ethnicity and race; and which households the scenario can tell."""
    attribute = schema.attribute(_counting(occupancy, schema))
    pairs = zip(*(attribute.numbers[name] for name in occupancy.members), strict=True)
    at = {pair: number for number, pair in enumerate(pairs)}
    members = np.array([at.get(pair, -1) for pair in zip(state.persons.tolist(), state.children.tolist(), strict=True)])
    ethnicity, race = _of_group(occupancy, schema)
    known = members >= 0
    columns = (np.where(known, members, 0), ethnicity[state.householder], race[state.householder])
    return np.column_stack(columns).astype(np.int64), known


def _of_group(occupancy: Occupancy, schema: Schema) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The levels of ethnicity and race of each group of persons: those that householders have, in order."""
    usual = schema.levels_within(occupancy.occupied)
    ethnicities, races = (np.array(sorted(usual[name])) for name in occupancy.householder)
    group = np.arange(GROUPS)
    return ethnicities[group // (len(RACES) + 1)], races[group % (len(RACES) + 1)]


def _present(occupancy: Occupancy, model: Model, schema: Schema, state: StateSample) -> NDArray[np.bool_]:
    """Who of the groups that statements name lives in each household."""
    named = groups_present(model, schema)
    levels = dict(zip(occupancy.householder, _of_group(occupancy, schema), strict=True))
    found = np.zeros((len(state.persons), len(named)), np.bool_)
    for column, wanted in enumerate(named):
        inside = np.ones(GROUPS, np.bool_)
        for name, some in wanted.items():
            inside &= np.isin(levels[name], sorted(some))
        found[:, column] = state.present[:, inside].any(axis=1)
    return found
