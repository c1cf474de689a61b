"""What does an attacker know? A list of named people with address, sex and age, as bought, or perfect.

A bought list is never right throughout: it misses people, has others who moved away or never lived here, old
addresses, wrong ages and sexes.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from glasshouse.errors import unknown
from glasshouse.population.identity import Identities
from glasshouse.population.people import OLDEST, People

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Quality:
    """How good a list is: shares of its records (see commercial.toml)."""

    coverage: float
    address: float
    age: float
    sex: float
    strangers: float


@dataclass(frozen=True)
class Listed:
    """A list of people: the number of the person, of the block in the county, sex and age."""

    person: Ints
    block: Ints
    sex: Ints
    age: Ints


def qualities() -> dict[str, Quality]:
    """The named qualities."""
    text = (resources.files("glasshouse") / "population" / "commercial.toml").read_text(encoding="utf-8")
    return {name: Quality(**entry) for name, entry in tomllib.loads(text).items()}


def quality(name: str) -> Quality:
    known = qualities()
    if name not in known:
        raise unknown("quality of the commercial list", name, known)
    return known[name]


def perfect(people: People, identities: Identities, first_block: int) -> Listed:
    """Everyone who is data-defined, as they are."""
    at = np.flatnonzero(identities.data_defined)
    block = first_block + people.unit_block[people.unit[at]]
    return Listed(identities.person[at], block, people.sex[at], people.age[at])


def commercial(truth: Listed, persons: Ints, grade: Quality, stranger: int, rng: np.random.Generator) -> Listed:
    """A bought list made from the perfect one; people who are not in the county get numbers from `stranger` on.

    `persons` is how many live in each block: who is listed at a wrong one is so by that.
    """
    covered = np.flatnonzero(rng.random(len(truth.person)) < grade.coverage)
    others = rng.poisson(grade.strangers * len(truth.person))
    like = rng.integers(0, max(len(truth.person), 1), others if len(truth.person) else 0)
    at = np.concatenate([covered, like])
    person = np.concatenate([truth.person[covered], stranger + np.arange(len(like))])
    sex, age, block = truth.sex[at].copy(), truth.age[at].copy(), truth.block[at].copy()
    known = np.arange(len(at)) < len(covered)
    moved = (rng.random(len(at)) >= grade.address) | ~known  # strangers live anywhere
    block[moved] = _elsewhere(persons, block[moved], rng)
    wrong = (rng.random(len(at)) >= grade.age) & known
    off = np.where(rng.random(len(at)) < 0.6, rng.integers(1, 4, len(at)), rng.integers(4, 30, len(at)))
    age[wrong] = np.clip(age + off * rng.choice([-1, 1], len(at)), 0, OLDEST)[wrong]
    flipped = (rng.random(len(at)) >= grade.sex) & known
    sex[flipped] = 1 - sex[flipped]
    order = rng.permutation(len(at))
    return Listed(person[order], block[order], sex[order], age[order])


def _elsewhere(persons: Ints, block: Ints, rng: np.random.Generator) -> Ints:
    """Another block for each, by their numbers of persons."""
    ends = np.cumsum(persons)
    drawn = np.searchsorted(ends, rng.integers(0, ends[-1], len(block)), side="right")
    return np.where(drawn == block, (drawn + 1) % len(ends), drawn)
