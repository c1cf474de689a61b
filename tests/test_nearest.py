"""Is the nearest histogram the nearest? Noisy counts of several tables against brute force, on every ladder.

`nearest` takes the numbers of one place: each is soft, with a weight, or hard, and then met exactly, or kept within
limits. It knows no areas by name, but answers for places jointly when the place is an attribute. Brute force knows
kinds of record and masks only, none of the core's cells and rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice, product

import numpy as np
import pytest
from numpy.typing import NDArray

from glasshouse.errors import InputError
from glasshouse.model.records import UNLIMITED
from glasshouse.model.release import Table, build_table
from glasshouse.model.schema import Group, Impossible, Recode, Schema
from glasshouse.program.integer import Limit, Outcome, Proof
from glasshouse.program.ladder import Ladder
from glasshouse.program.nearest import Nearest, nearest
from glasshouse.program.tables.histogram import Compiled, compile_tables
from tests.oracles import (
    Ints,
    attribute,
    kinds_of,
    mask_of,
    random_predicate,
    random_recode,
    random_schema,
    random_table,
    total_table,
)
from tests.test_program import CLIMBED, LADDERS, SURE

GRID = 10_000  # histograms that brute force looks at; a question with more is not asked
WEIGHTS = (0, 1, 1, 2, 3, 7, 50, 1000, 20_000)
SETTLES = {rung for rung in SURE if LADDERS[rung].engines}  # what only a solver answers, these prove
WITH_ENGINE = [rung for rung in LADDERS if LADDERS[rung].engines]
WITHOUT = {
    **{rung: LADDERS[rung] for rung in LADDERS if not LADDERS[rung].engines},
    "no effort": Ladder(limit=Limit(effort=0)),
    "no time": Ladder(limit=Limit(seconds=0)),
}
SHARE = {rung: 100 if rung == "default" else 50 for rung in WITH_ENGINE}  # questions of each sort
SORTS = ("plain", "tally", "zeros", "far")


@dataclass(frozen=True, eq=False)
class Question:
    """Noisy numbers of one place, in the order of `compiled.own`; hard ones lie between `low` and `high`."""

    seed: int
    compiled: Compiled
    members: Ints  # variables x kinds: how often a number counts a kind
    cell: Ints  # of each kind
    noisy: Ints
    weights: Ints
    hard: NDArray[np.bool_]
    low: Ints
    high: Ints

    def on_cells(self) -> Ints:
        """Variables x cells: all kinds of a cell are counted alike."""
        wide = np.zeros((len(self.members), len(self.compiled.cells)), np.int64)
        wide[:, self.cell] = self.members
        return wide

    def by_hand(self, power: int) -> int | None:
        """The least error over all histograms, each looked at; None if none keeps to the hard numbers.

        A kind never needs more records than the largest number that counts it, and none if no number does.
        """
        sides = np.meshgrid(*(np.arange(top + 1) for top in self.tops()), indexing="ij")
        numbers = self.members @ np.stack([side.reshape(-1) for side in sides])
        met = ((numbers >= self.low[:, None]) & (numbers <= self.high[:, None]))[self.hard].all(axis=0)
        off = np.abs(numbers - self.noisy[:, None])[~self.hard] ** power
        total = (self.weights[~self.hard, None] * off).sum(axis=0)
        return int(total[met].min()) if met.any() else None

    def tops(self) -> list[int]:
        """Of each kind, the most records worth a look."""
        top = np.where(self.hard, self.high, self.noisy)
        used = self.hard | (self.weights > 0)
        return [max([0, *top[used & (column > 0)].tolist()]) for column in self.members.T]

    def size(self) -> float:
        return float(np.prod([top + 1.0 for top in self.tops()]))

    def ask(self, power: int, ladder: Ladder) -> Nearest:
        return nearest(self.compiled, self.noisy, self.weights, power=power, hard=self.hard, ladder=ladder)


def counted(schema: Schema, kinds: Ints, tables: Sequence[Table]) -> dict[str, Ints]:
    """How often each published number counts each kind; the total of a tally counts one for every answer."""
    result = {}
    for table in tables:
        times: dict[int, Ints] = {}
        for line in reversed(table.lines):  # parts stand below
            if line.predicate is not None:
                times[line.number] = mask_of(schema, kinds, line.predicate).astype(np.int64)
            else:
                times[line.number] = np.sum([times[part] for part in line.parts], axis=0, dtype=np.int64)
            if line.variable in table.variables:
                result[line.variable] = times[line.number]
    return result


def question(
    rng: np.random.Generator, seed: int, compiled: Compiled, kinds: Ints, members: Ints, *, far: bool = False
) -> Question:
    """Noise on the numbers of a few records; some numbers hard, most of those as the records have them."""
    n = len(members)
    people, scale = (25, 12.0) if far else (6, float(rng.choice([0.5, 1, 2])))
    truth = np.bincount(rng.integers(0, len(kinds), rng.integers(0, people)), minlength=len(kinds))
    hard = rng.random(n) < rng.choice([0, 0.15, 0.4])
    noise = np.rint(rng.laplace(0, scale, n)).astype(np.int64)
    noisy = members @ truth + np.where(hard & (rng.random(n) < 0.95), 0, noise)
    cell = compiled.cells.of(kinds.astype(np.int16))
    return Question(seed, compiled, members, cell, noisy, rng.choice(WEIGHTS, n), hard, noisy, noisy)


def tallied(rng: np.random.Generator, schema: Schema) -> Table:
    one = schema.attributes[int(rng.integers(0, len(schema.attributes)))]
    recode = random_recode(rng, one, "tally", tally=True)
    also = [1] if recode.tally and rng.random() < 0.5 else []
    return build_table(
        schema, name="N", level="block", title="tally", by=[recode], variable=lambda n: f"N_{n}", also=also
    )


def questions(sort: str, count: int) -> list[Question]:
    """So many questions of a sort: plain, tally (with a table that counts some records often), zeros (structural), far
    (few kinds and much noise, so that lines are missing at first).
    """
    made, more = _made(sort)
    made += islice(more, max(count - len(made), 0))
    return made[:count]


@cache
def _made(sort: str) -> tuple[list[Question], Iterator[Question]]:
    """The questions made so far, and those to come."""
    return [], _questions(sort)


def _questions(sort: str, first: int = 0) -> Iterator[Question]:
    for seed in range(first, 100_000):
        rng = np.random.default_rng([seed, sum(sort.encode())])
        schema = random_schema(rng, 3 if sort == "far" else 9)
        if sort == "zeros":
            zeros = tuple(Impossible(random_predicate(rng, schema), "so it is") for _ in range(2))
            schema = Schema(schema.attributes, tuple(zero for zero in zeros if zero.predicate.sets))
        if len(kinds_of(schema)) < 2 or (sort == "zeros" and not schema.impossible):
            continue
        tables = [random_table(rng, schema, f"T{i + 1}", "block") for i in range(rng.integers(2, 5))]
        if sort == "tally":
            tables[0] = tallied(rng, schema)
        if rng.random() < 0.5:
            tables.append(total_table(schema, "block"))
        names = [name for table in tables for name in table.variables]
        present = [name for name in names if rng.random() < 0.9] or names
        compiled, kinds = compile_tables(schema, tables, present), kinds_of(schema)
        times = counted(schema, kinds, tables)
        members = np.array([times[name] for name in compiled.own.variables], np.int64).reshape(-1, len(kinds))
        asked = question(rng, seed, compiled, kinds, members, far=sort == "far")
        if len(members) and asked.size() <= GRID:
            yield asked


def check(asked: Question, found: Nearest, power: int, wanted: int | None, rung: str) -> None:
    """Is the answer what brute force says? What is undecided must have bounds that hold."""
    about = f"seed {asked.seed}"
    if wanted is None:
        assert found.outcome == Outcome.INFEASIBLE or (found.outcome == Outcome.STOPPED and rung not in SETTLES), about
        assert found.proof != Proof.UNDECIDED or rung not in SETTLES, about
        return
    assert found.outcome in CLIMBED, about
    assert found.x.dtype == np.int64 and (found.x >= 0).all(), about
    assert (found.fitted == asked.on_cells() @ found.x).all(), about
    assert (found.fitted == asked.noisy)[asked.hard].all(), about
    soft = ~asked.hard
    error = (asked.weights * np.abs(found.fitted - asked.noisy) ** power)[soft].sum()
    assert found.error == error and found.floor <= wanted <= error, about
    assert found.proof != Proof.UNDECIDED or rung not in SETTLES or power == 2, about  # for squares see below
    assert (found.outcome == Outcome.OPTIMAL) == (found.proof != Proof.UNDECIDED), about
    assert found.proof == Proof.UNDECIDED or found.error == wanted == found.floor, about


@pytest.mark.parametrize("rung", WITH_ENGINE)
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("sort", SORTS)
def test_noisy_tables_are_met_as_nearly_as_brute_force_meets_them(rung: str, power: int, sort: str) -> None:
    for asked in questions(sort, SHARE[rung]):
        check(asked, asked.ask(power, LADDERS[rung]), power, asked.by_hand(power), rung)


@pytest.mark.parametrize("rung", sorted(SETTLES))
def test_every_question_about_squares_is_settled(rung: str) -> None:
    for asked in hardest():
        assert asked.ask(2, LADDERS[rung]).proof != Proof.UNDECIDED, asked.seed


@pytest.mark.parametrize("power", [1, 2])
def test_large_weights_do_not_silence_cpsat(power: int) -> None:
    for asked in questions("plain", 50):
        heavy = replace(asked, weights=asked.weights * 100)
        assert heavy.ask(power, LADDERS["cpsat"]).outcome != Outcome.STOPPED, asked.seed


def test_an_undecided_answer_is_as_near_as_its_solver_can_tell() -> None:
    """Here HiGHS alone finds the least error, once it has the lines through the errors of its first answer."""
    for asked in hardest():
        assert asked.ask(2, Ladder()).error == asked.by_hand(2), asked.seed


@cache
def hardest() -> tuple[Question, ...]:
    """Of many questions, those whose relaxation does not settle them."""
    seeds = (("plain", 137), ("tally", 777), ("zeros", 813), ("far", 487), ("far", 594), ("far", 768))
    return tuple(next(asked for asked in _questions(sort, first) if asked.seed == first) for sort, first in seeds)


def test_the_questions_are_what_they_claim_to_be() -> None:
    every = {sort: questions(sort, SHARE["default"]) for sort in SORTS}
    assert sum((asked.members > 1).any() for asked in every["tally"]) > 15
    assert all(asked.compiled.cells.schema.impossible for asked in every["zeros"])
    together = [asked for some in every.values() for asked in some]
    least = [asked.by_hand(2) for asked in together]
    assert sum(asked.hard.any() for asked in together) > 120
    assert sum((asked.noisy < 0).any() for asked in together) > 80
    assert sum(error is None for error in least) > 10
    assert sum(error is not None and error > 0 for error in least) > 250
    assert sum(len({name.split("_")[0] for name in asked.compiled.own.variables}) > 2 for asked in together) > 150
    assert sum(np.ptp(asked.weights) >= 1000 for asked in together) > 150
    assert sum(len(asked.compiled.cells) < asked.members.shape[1] for asked in together) > 15
    far = [nearest(a.compiled, a.noisy, a.weights, hard=a.hard) for a in every["far"]]
    largest = [np.abs(f.fitted - a.noisy)[a.weights > 0].max(initial=0) for f, a in zip(far, every["far"], strict=True)]
    assert sum(error > 12 for error in largest) > 20


# Intervals, and places jointly


@pytest.mark.parametrize("power", [1, 2])
def test_limits_are_kept_and_give_the_least_over_their_values(power: int) -> None:
    """Asked with limits, and value by value: both are what brute force says."""
    tried = widened = 0
    for asked in (*questions("plain", 50), *questions("tally", 50)):
        rows = np.flatnonzero(asked.hard)[:2]
        rng = np.random.default_rng(asked.seed)
        low, high = asked.low.copy(), asked.high.copy()
        low[rows] -= rng.integers(0, 3, len(rows))
        high[rows] += rng.integers(0, 3, len(rows))
        wide = replace(asked, low=low, high=high)
        if not len(rows) or wide.size() > GRID:
            continue
        errors = []
        for values in product(*(range(low[row], high[row] + 1) for row in rows.tolist())):
            noisy = asked.noisy.copy()
            noisy[rows] = values
            found = replace(asked, noisy=noisy).ask(power, Ladder())
            assert found.proof != Proof.UNDECIDED, asked.seed
            errors += [found.error] if found.outcome == Outcome.OPTIMAL else []
        wanted = wide.by_hand(power)
        assert wanted == (min(errors) if errors else None), asked.seed
        soft = asked.hard.copy()
        soft[rows] = False
        lower, upper = np.zeros(len(low), np.int64), np.full(len(low), UNLIMITED)
        lower[rows], upper[rows] = np.maximum(low[rows], 0), np.maximum(high[rows], -1)
        weights = asked.weights.copy()
        weights[rows] = 0
        found = nearest(asked.compiled, asked.noisy, weights, power=power, hard=soft, between=(lower, upper))
        assert found.proof != Proof.UNDECIDED, asked.seed
        assert wanted == (found.error if found.outcome == Outcome.OPTIMAL else None), asked.seed
        tried += 1
        widened += wanted != asked.by_hand(power)
    assert tried > 30 and widened > 8


@cache
def joint(seed: int) -> Question:
    """Two or three places whose tables, and those of their area, are asked for together; the place is an attribute."""
    rng = np.random.default_rng([seed, 7])
    places, levels = int(rng.integers(2, 4)), int(rng.integers(2, 4))
    schema = Schema((attribute("place", places), attribute("a", levels)))
    tables, rows = [], []
    for place in (*range(places), None):
        universe = schema.where({} if place is None else {"place": [place]})
        name = "area" if place is None else f"place{place}"
        sets = [frozenset({level}) for level in range(levels)]
        tally = bool(rng.random() < 0.3)
        if tally:
            sets = [frozenset({0, level}) for level in range(1, levels)]
        recode = Recode(name, "a", tuple(Group(f"{name}{i}", some) for i, some in enumerate(sets)), tally=tally)
        table = build_table(
            schema, name=name, level="area", title=name, by=[recode], variable=lambda n, name=name: f"{name}_{n}",
            universe=universe, also=[1],
        )  # fmt: skip
        tables.append(table)
        once = np.array([[level in some for level in range(levels)] for some in sets], np.int64)
        once = np.concatenate([once.sum(axis=0, keepdims=True), once])  # the total first
        rows.append(np.kron(np.eye(places, dtype=np.int64)[place] if place is not None else np.ones(places, int), once))
    names = [name for table in tables for name in table.variables]
    compiled = compile_tables(schema, tables, names)
    members = np.concatenate(rows)[[names.index(name) for name in compiled.own.variables]]
    return question(rng, seed, compiled, kinds_of(schema), members)


@pytest.mark.parametrize("rung", WITH_ENGINE)
@pytest.mark.parametrize("power", [1, 2])
def test_places_of_an_area_are_met_jointly(rung: str, power: int) -> None:
    tried = moved = 0
    for seed in range(SHARE[rung]):
        asked = joint(seed)
        if asked.size() > GRID:
            continue
        wanted = asked.by_hand(power)
        check(asked, asked.ask(power, LADDERS[rung]), power, wanted, rung)
        tried += 1
        of_area = np.array([name.startswith("area") for name in asked.compiled.own.variables])
        alone = replace(asked, weights=np.where(of_area, 0, asked.weights), hard=asked.hard & ~of_area)
        moved += wanted is None or wanted > (alone.by_hand(power) or 0)
    assert tried > 20 and moved > 15


# Ladders without a solver, and what cannot be asked


@pytest.mark.parametrize("rung", WITHOUT)
@pytest.mark.parametrize("power", [1, 2])
def test_without_a_solver_nothing_is_claimed(rung: str, power: int) -> None:
    for sort in SORTS:
        for asked in questions(sort, 30):
            found, wanted = asked.ask(power, WITHOUT[rung]), asked.by_hand(power)
            assert found.outcome in (Outcome.STOPPED, Outcome.INFEASIBLE), asked.seed
            if found.outcome == Outcome.INFEASIBLE:
                assert wanted is None and found.proof != Proof.UNDECIDED, asked.seed
            else:
                assert found.proof == Proof.UNDECIDED, asked.seed
                assert wanted is None or found.floor <= wanted, asked.seed


@pytest.mark.parametrize("rung", WITHOUT)
def test_without_a_solver_the_error_is_a_bound_from_above(rung: str) -> None:
    for asked in questions("plain", 60):
        wanted = asked.by_hand(2)
        assert wanted is None or asked.ask(2, WITHOUT[rung]).error >= wanted, asked.seed


def test_numbers_of_one_histogram_are_met_exactly() -> None:
    for asked in (asked for sort in SORTS for asked in questions(sort, 40)):
        exact = asked.members @ np.random.default_rng(asked.seed).integers(0, 3, asked.members.shape[1])
        found = replace(asked, noisy=exact).ask(2, Ladder())
        assert (found.error, found.floor, found.outcome) == (0, 0, Outcome.OPTIMAL), asked.seed
        assert (found.fitted == exact)[asked.hard | (asked.weights > 0)].all(), asked.seed


def small() -> Question:
    return next(asked for asked in questions("plain", 60) if len(asked.noisy) > 3 and not asked.hard.any())


def test_bad_powers_weights_and_lengths_are_refused() -> None:
    asked = small()
    compiled, noisy, weights = asked.compiled, asked.noisy, asked.weights
    for power in (0, 3):
        with pytest.raises(InputError, match="power"):
            nearest(compiled, noisy, weights, power=power)
    with pytest.raises(InputError, match="negative"):
        nearest(compiled, noisy, weights - weights.max() - 1)
    for one, other in ((noisy[1:], weights), (noisy, weights[1:])):
        with pytest.raises(InputError, match="variables"):
            nearest(compiled, one, other)


@pytest.mark.parametrize("change", [-1, 1])
def test_hard_numbers_of_another_length_are_refused(change: int) -> None:
    asked = small()
    with pytest.raises(InputError):
        nearest(asked.compiled, asked.noisy, asked.weights, hard=np.zeros(len(asked.noisy) + change, np.bool_))


def test_hard_numbers_as_zeros_and_ones_are_kept_or_refused() -> None:
    for asked in questions("plain", 60):
        try:
            found = replace(asked, hard=asked.hard.astype(np.int64)).ask(2, Ladder())  # type: ignore[arg-type]
        except InputError:
            continue
        assert found.outcome not in CLIMBED or (found.fitted == asked.noisy)[asked.hard].all(), asked.seed


@pytest.mark.parametrize("wrong", [0.5, 2.0**50])
def test_counts_that_are_not_whole_or_endless_are_refused(wrong: float) -> None:
    asked = small()
    noisy = asked.noisy + (wrong if wrong < 1 else int(wrong))
    with pytest.raises(InputError):
        nearest(asked.compiled, noisy, asked.weights)
