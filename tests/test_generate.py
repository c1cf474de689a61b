"""Does the intersection of K data sets hold the complete answer? And is what tables print anyway told as printed?

Laws on random toys (`tests.oracles`), whatever was published: brute force lists every data set of a place and every
kind of record that can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from glasshouse.assess.priors import Prior, Uniform
from glasshouse.attack.claims.generate import Generated, generated, reconstructions
from glasshouse.attack.claims.printed import Printed
from glasshouse.attack.claims.verify import Claimable, Place, Verified, places_of, verify
from glasshouse.model.wording import Wording
from glasshouse.program.listing import every
from glasshouse.program.settled import Verdict
from tests.often import often
from tests.oracles import Toy, claim_toy, mask_of, matching, words_of

PHASES = (Phase.explicit, Phase.reuse, Phase.generate)  # a smaller seed is no smaller toy: nothing to shrink
seeds = st.integers(0, 10**6)
published = st.fixed_dictionaries(
    {"hide": st.sampled_from([0.0, 0.25, 0.5]), "intervals": st.booleans(), "apart": st.booleans()}
)
WANTED = (1, 2, 5, 20)


def claimable_of(toy: Toy, wording: Wording) -> Claimable:
    return Claimable(toy.schema, toy.tables, toy.counts.variables, wording)


def places_in(toy: Toy, wording: Wording) -> list[Place]:
    return list(places_of(claimable_of(toy, wording), toy.counts, np.random.default_rng(1)))


def certain(verified: Verified) -> dict[tuple[int, ...], int]:
    asked = verified.claims
    m = asked.settled.low[asked.candidates.kind]
    return {tuple(row): int(m[at]) for at, row in enumerate(asked.candidates.values.tolist()) if asked.certain[at]}


def agreed(found: Generated) -> dict[tuple[int, ...], int]:
    return {tuple(row): int(m) for row, m in zip(found.values[found.agreed].tolist(), found.m[found.agreed],
                                                 strict=True)}  # fmt: skip


def times(place: Place, x: np.ndarray, description: Sequence[int]) -> int | None:
    """How many records of a data set match, by its cells one by one; None where a cell holds both."""
    bits = np.array([int(sum(1 << c for c, value in enumerate(description) if value >= 0))])
    named = np.array([max(value, 0) for value in description])
    inside, meeting = place.live.matching(named, bits)
    low, high = (int(x[flags[0] & ~place.apart].sum()) for flags in (inside, meeting))
    return low if low == high else None


@given(seed=seeds, options=published, data=st.data())
@settings(max_examples=often(25), phases=PHASES)
def test_the_intersection_holds_the_complete_answer(seed: int, options: dict[str, Any], data: st.DataObject) -> None:
    """Whatever K: each claim that is certain is agreed on, with the same count; more data sets agree on no more."""
    toy, wording, _ = claim_toy(seed, **options)
    least = data.draw(st.integers(1, len(wording.columns)))
    for place in places_in(toy, wording):
        whole = verify(place, least)
        drawn = reconstructions(place, max(WANTED), np.random.default_rng(seed))
        before: dict[tuple[int, ...], int] | None = None
        for found in generated(whole, drawn, WANTED):
            together = agreed(found)
            assert certain(whole).items() <= together.items()
            assert before is None or together.items() <= before.items()
            left = {tuple(row) for row in found.values[found.left_over].tolist()}
            assert left == {row for row in together if row not in certain(whole)}, "toys are all decided"
            before = together


@given(seed=seeds, options=published)
@settings(max_examples=often(15), phases=PHASES)
def test_what_is_drawn_fits_and_is_counted_as_it_is(seed: int, options: dict[str, Any]) -> None:
    """Data sets are different and fit; frequencies are those of a plain recount, the most frequent first."""
    toy, wording, _ = claim_toy(seed, **options)
    for place in places_in(toy, wording):
        whole, k = verify(place, 1), 7
        drawn = reconstructions(place, k, np.random.default_rng(seed))
        assert 1 <= len(drawn) <= k and len({row.tobytes() for row in drawn}) == len(drawn)
        assert all(place.problem.programs.only(place.number).fit(x).all() for x in drawn)
        (found,) = generated(whole, drawn, (k,))
        assert found.different == len(drawn) and (np.diff(found.frequency) <= 0).all()
        for row, m, share in zip(found.values.tolist(), found.m, found.frequency, strict=True):
            counts = [times(place, x, row) for x in drawn]
            assert m >= 1 and share > 0.5 and counts.count(int(m)) == round(share * len(drawn))
        listed = {tuple(row) for row in found.values.tolist()}
        for description in _descriptions(place, drawn[0]):
            counts = [times(place, x, description) for x in drawn]
            told = counts[0] is not None and 2 * counts.count(counts[0]) > len(drawn)
            assert (description in listed) == told, description


def _descriptions(place: Place, x: np.ndarray) -> set[tuple[int, ...]]:
    """Every description of a record of a data set."""
    found = set()
    for cell in np.flatnonzero((x > 0) & ~place.apart):
        values = place.live.shared[cell].tolist()
        told = [column for column, value in enumerate(values) if value >= 0]
        for k in range(1, len(told) + 1):
            for some in combinations(told, k):
                found.add(tuple(value if column in some else -1 for column, value in enumerate(values)))
    return found


def test_all_data_sets_agree_on_the_complete_answer() -> None:
    """Where every data set was drawn, nothing is left over; and toys with several data sets there are."""
    several = 0
    for seed in range(40):
        toy, wording, _ = claim_toy(seed, hide=0.0, intervals=seed % 2 == 0)
        for place in places_in(toy, wording):
            drawn = reconstructions(place, 200, np.random.default_rng(seed))
            there = every(place.problem, 200, place.number)
            if not there.complete or not 1 < len(drawn) == len(there.x):
                continue
            assert {row.tobytes() for row in drawn} == {row.tobytes() for row in there.x}
            whole = verify(place, 1)
            (found,) = generated(whole, drawn, (200,))
            assert agreed(found) == certain(whole) and not found.left_over.any()
            several += 1
    assert several > 5


def test_a_few_data_sets_leave_something_over() -> None:
    """The paper's step alone is no proof: some toy has a claim that one data set bears out and another refutes."""
    left = 0
    for seed in range(10):
        toy, wording, _ = claim_toy(seed, hide=0.0, intervals=False)
        for place in places_in(toy, wording):
            (found,) = generated(verify(place, 1), reconstructions(place, 1, np.random.default_rng(0)), (1,))
            left += int(found.left_over.sum())
            assert (found.verdict[found.left_over] == Verdict.REFUTED).all()
    assert left


@given(seed=seeds, hide=st.sampled_from([0.0, 0.5]), apart=st.booleans())
@settings(max_examples=often(25), phases=PHASES)
def test_printed_means_that_a_line_counts_the_same_records(seed: int, hide: float, apart: bool) -> None:
    """By brute force over all kinds of record that can be: a line, or lines that add up to one, has the same ones."""
    toy, wording, _ = claim_toy(seed, hide=hide, intervals=False, apart=apart)
    claimable = claimable_of(toy, wording)
    printed, values = Printed(claimable), words_of(toy, wording)
    others = np.ones(len(toy.kinds), np.bool_)
    if wording.apart is not None:
        others = ~mask_of(toy.schema, toy.kinds, wording.apart)
    for row, place in enumerate(places_in(toy, wording)):
        exact = {name for name, at in toy.counts.column.items()
                 if toy.counts.lower[row, at] == toy.counts.upper[row, at]}  # fmt: skip
        lines = [
            mask_of(toy.schema, toy.kinds, line.predicate)
            for table in toy.tables for line in table.lines
            if line.predicate is not None
            and (line.variable in exact
                 or (line.variable not in toy.counts.column
                     and exact.issuperset(leaf.variable for leaf in table.leaves_of(line))))
        ]  # fmt: skip
        said = verify(place, 1).claims.candidates.values
        found = printed.of(said, toy.counts, row)
        for description, told in zip(said.tolist(), found, strict=True):
            mine = matching(values, description) & others
            assert told == any((mine == line).all() for line in lines), description


def test_equally_likely_values() -> None:
    """The uniform prior of the paper: a product over columns, then the binomial of equation 4."""
    uniform = Uniform((np.array([0.25, 0.75]), np.array([0.5, 0.5])))
    descriptions = np.array([[0, 1], [1, -1], [-1, -1]], np.int16)
    m, n = np.array([1, 2, 3]), 3
    expected = [comb(n, int(k)) * p**k * (1 - p) ** (n - k) for k, p in zip(m, (0.125, 0.75, 1.0), strict=True)]
    assert uniform.chance(descriptions, m, n) == pytest.approx(expected)
    same = Prior.of(np.array([[a, b] for a in (0, 1, 1, 1) for b in (0, 1)], np.int16))
    assert uniform.chance(descriptions, m, n) == pytest.approx(same.chance(descriptions, m, n))
