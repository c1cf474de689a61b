"""What does noise on the statistics of subsidised properties cost, and what is published then?

A *question* is a set of numbers of a property that share no household: households by bedrooms, by householder, with
children by adults; and the people. Rho is divided evenly among the questions; a household is in one line of a question
and in one property, so each line of a question gets all of the question's rho. Noise exp(-rho n^2 / d) is added to
counts. The file has percentages: the counts are those that they round to. Where up to 100 households report, that is
the true count, and one household more or less moves it by one. Where more report, a point is more than a household, and
the count can jump by ceil(reported / 100): there the noise is as many times as wide, at the same price.

Afterwards: negatives to 0; the lines of a question that every household is in (bedrooms) are scaled to the households
that report, those of any other down to them if they are more; there are as many people as households that report, at
least. How many report is published as it is and in no account.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

import numpy as np
from numpy.typing import NDArray

from glasshouse.errors import InputError
from glasshouse.files.shares import rounded
from glasshouse.mechanism.account import Ledger
from glasshouse.mechanism.gaussian import DiscreteGaussian
from glasshouse.model.schema import Predicate, Schema
from glasshouse.population.subsidy import half_up
from glasshouse.protection.afterwards import scale_to
from glasshouse.protection.noise import noise_of
from glasshouse.scenarios.occupancy import Occupancy

Ints = NDArray[np.int64]
Draw = Callable[[str, Ints, DiscreteGaussian, int], Ints]  # for these rows, in a question, so many values each


@dataclass(frozen=True)
class Question:
    """Numbers of a property that share no household: percentages of those that report, or counts."""

    name: str
    columns: tuple[str, ...]
    share: bool
    fills: bool = False  # is every household in one of them?


@dataclass(frozen=True)
class Noisy:
    """What is published with noise, by column; how many numbers got noise, and how many it made negative."""

    values: Mapping[str, Ints]
    measured: int
    negatives: int


def questions_of(occupancy: Occupancy, schema: Schema, there: Collection[str]) -> tuple[Question, ...]:
    """The questions that the columns of a file answer, shares first."""
    said = {
        column: one
        for model in occupancy.models.values()
        for one in model.statements
        for column in one.columns
        if len(one.columns) == 1
    }
    alone = {column: (column,) for column in occupancy.shares if not any(column in some for some in occupancy.wholes)}
    found = []
    for name, columns in {**occupancy.whole, **alone}.items():
        parts = [said[column].adds[0] for column in columns if column in said and column in there]
        here = tuple(column for column in columns if column in there)
        fills = len(parts) == len(columns) and _fill(schema, parts, occupancy.subsidised)
        found.append(Question(name, here, share=True, fills=fills))
    found += [
        Question(one.name, (column,), share=False) for column, one in said.items() if not one.share and column in there
    ]
    return tuple(question for question in found if question.columns)


def account_for(questions: Sequence[Question], rho: Fraction) -> Ledger:
    """Rho divided evenly among the questions."""
    if rho <= 0:
        raise InputError(f"rho is {rho}; expected more than 0: with none, nothing can be published")
    ledger = Ledger(rho)
    for question in questions:
        ledger.spend(question.name, rho / len(questions))
    return ledger


def add_noise(
    numbers: Mapping[str, Ints],
    reported: Ints,
    questions: Sequence[Question],
    ledger: Ledger,
    neighbours: str,
    draw: Draw,
) -> Noisy:
    """The numbers of properties with noise, a row each; what is negative (a code) stays, and so does who reports."""
    reported = np.maximum(reported, 0)
    values: dict[str, Ints] = {}
    measured = negatives = 0
    for question in questions:
        given = np.column_stack([numbers[column] for column in question.columns])
        known = (given >= 0) & (reported > 0)[:, None]
        counts = rounded(given, reported[:, None]) if question.share else given
        noise = _noise(question, reported, known, ledger.spent[question.name], neighbours, draw)
        noisy = np.where(known, counts + noise, 0)
        measured += int(known.sum())
        negatives += int((noisy < 0).sum())
        shown = _published(question, np.maximum(noisy, 0), known, reported)
        for column, new, old, here in zip(question.columns, shown.T, given.T, known.T, strict=True):
            values[column] = np.where(here, new, old)
    return Noisy(values, measured, negatives)


def width(question: Question, reported: Ints) -> Ints:
    """By how much one household can move a count of a question: that of a point of so many, where it is a share."""
    return np.maximum(-(-reported // 100), 1) if question.share else np.ones_like(reported)


def _noise(
    question: Question, reported: Ints, known: NDArray[np.bool_], rho: Fraction, neighbours: str, draw: Draw
) -> Ints:
    wide, rows = width(question, reported), np.asarray(known.any(axis=1))
    noise = np.zeros((len(reported), len(question.columns)), np.int64)
    for step in np.unique(wide[rows]).tolist():
        some = np.flatnonzero(rows & (wide == step))
        noise[some] = draw(question.name, some, noise_of(rho / step**2, neighbours), len(question.columns))
    return noise


def _published(question: Question, counts: Ints, known: NDArray[np.bool_], reported: Ints) -> Ints:
    """What is printed of counts that are not negative."""
    if not question.share:
        return np.maximum(counts, reported[:, None])
    total = np.minimum(counts.sum(axis=1), reported)
    if question.fills:
        total = np.where(known.all(axis=1), reported, total)
    return half_up(100 * scale_to(counts, total), reported[:, None])


def _fill(schema: Schema, parts: Sequence[Predicate], whole: Predicate) -> bool:
    """Is every record of a description in one of these parts of it, which do not overlap?"""
    names = {name for one in (*parts, whole) for name in one.by_attribute}

    def cells(predicate: Predicate) -> int:
        levels = predicate.by_attribute
        return prod(len(levels.get(name, range(len(schema.attribute(name))))) for name in names)

    return sum(cells(part & whole) for part in parts) == cells(whole)
