"""Is every verified claim true in all data sets that fit, and is none missed? Brute force on toys, then real tables.

Data sets of a toy are written down one by one (`tests.oracles`), and what is certain is read off them with plain counts
for every set of columns. The laws hold on toys too large for that; the real tables are those of 2020 households.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations
from operator import itemgetter
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from glasshouse.attack.claims.hiding import tightened, without
from glasshouse.attack.claims.verify import Asked, Claimable, Place, Verified, places_of, verify
from glasshouse.attack.claims.withholding import hidden as hidden_columns
from glasshouse.attack.claims.withholding import lost
from glasshouse.attack.published import NothingFits
from glasshouse.errors import InputError
from glasshouse.model.records import UNLIMITED, Records
from glasshouse.model.release import Counts, Table, build_table
from glasshouse.model.schema import Group, Recode, Schema
from glasshouse.model.tabulate import tabulate
from glasshouse.model.wording import Wording
from glasshouse.population.county import County
from glasshouse.population.preset import load_preset
from glasshouse.program.cpsat import cpsat
from glasshouse.program.highs import highs
from glasshouse.program.integer import Limit, Proof
from glasshouse.program.ladder import Ladder
from glasshouse.program.listing import every
from glasshouse.program.moves import exchanges, wandered
from glasshouse.program.ranges import ranges, ranges_of
from glasshouse.program.reduce import Programs
from glasshouse.program.settled import Verdict, settled
from glasshouse.program.tables.alike import put_together
from glasshouse.program.tables.histogram import Problem, places_alone
from glasshouse.scenarios.load import Scenario, load
from tests.often import often
from tests.oracles import (
    Ints,
    Known,
    Limits,
    TooMany,
    Toy,
    attribute,
    claim_toy,
    known_of,
    listed,
    matching,
    plain_words,
    random_predicate,
    records_of,
    told_toy,
    total_table,
    wording_of,
    words_of,
)
from tests.test_program import LADDERS, SURE, cases, programs_of, where

Said = dict[tuple[int, ...], int]

BRIEF = {
    "short search": Ladder(nodes=4, engines=()),
    "one step": Ladder(nodes=1, engines=()),
    "no effort": Ladder(nodes=1, limit=Limit(effort=0)),
    "cpsat alone": Ladder(propagate=False, nodes=0, engines=(cpsat,), cases=False),
}
THOROUGH = {  # they decide every toy
    "default": Ladder(),
    "no list": Ladder(nodes=0),
    "the other engine first": Ladder(nodes=0, engines=(cpsat, highs)),
    "no propagation": Ladder(propagate=False, nodes=0),
    "search": Ladder(nodes=10**6, engines=()),
}

PHASES = (Phase.explicit, Phase.reuse, Phase.generate)  # a smaller seed is no smaller toy: nothing to shrink
seeds = st.integers(0, 10**6)
published = st.fixed_dictionaries(
    {
        "hide": st.sampled_from([0.0, 0.25, 0.5]),
        "intervals": st.booleans(),
        "total": st.sampled_from([True, False]),
        "coarse": st.booleans(),
    }
)


# What is claimed, and what is true


def claimable_of(toy: Toy, wording: Wording) -> Claimable:
    return Claimable(toy.schema, toy.tables, toy.counts.variables, wording)


def places_in(toy: Toy, wording: Wording, ladder: Ladder | None = None, seed: int = 1) -> list[Place]:
    rng = np.random.default_rng(seed)
    return list(places_of(claimable_of(toy, wording), toy.counts, rng, ladder or Ladder()))


def rows_of(asked: Asked) -> list[tuple[int, ...]]:
    return [tuple(row) for row in asked.candidates.values.tolist()]


def said(asked: Asked) -> Said:
    """What is verified: each description with its count."""
    low = asked.settled.low[asked.candidates.kind].tolist()
    return {row: m for row, m, sure in zip(rows_of(asked), low, asked.certain.tolist(), strict=True) if sure}


def undecided(asked: Asked) -> set[tuple[int, ...]]:
    return {row for row, is_open in zip(rows_of(asked), asked.undecided.tolist(), strict=True) if is_open}


def columns_of(description: Sequence[int]) -> int:
    return sum(value >= 0 for value in description)


def endless(most: int) -> bool:
    return most >= UNLIMITED


def contains(reported: tuple[int, int], true: tuple[int, int]) -> bool:
    return reported[0] <= true[0] and (reported[1] >= true[1] or endless(reported[1]))


def check_asked(asked: Asked, known: Known, least: int) -> None:
    """Every verdict on a description is that of brute force, and so is every bound; kinds count alike."""
    found = asked.settled
    assert len(found.verdict) == len(found.proof) == len(asked.candidates.inside)
    of_kind: dict[int, tuple[int, int]] = {}
    for row, kind in zip(rows_of(asked), asked.candidates.kind.tolist(), strict=True):
        true = known.of(row)
        mine = int(found.low[kind]), int(found.high[kind])
        met = int(found.met_low[kind]), int(found.met_high[kind])
        assert columns_of(row) >= least
        assert contains(mine, true), (row, mine, true)
        assert true[0] <= met[0] and (met[1] <= true[1] or endless(true[1])), (row, met, true)
        if found.verdict[kind] == Verdict.SETTLED:
            assert mine == true == met and true[0] == true[1] >= 1
            assert found.proof[kind] in (Proof.EXACT, Proof.TWO_ENGINES)
        elif found.verdict[kind] == Verdict.REFUTED:
            assert true[0] < true[1] and met[0] < met[1] and found.proof[kind] == Proof.EXACT
        else:
            assert met[0] == met[1] and found.proof[kind] == Proof.UNDECIDED
        assert of_kind.setdefault(kind, true) == true, "descriptions of one kind have different ranges"
    assert set(of_kind) == set(range(len(found.verdict))), "a kind without a description"


def check(verified: Verified, known: Known, least: int, *, sure: bool, ladder: Ladder | None = None) -> None:
    """Is what is said of a place what brute force says: each claim, the records they are about, the totals, unique?"""
    main, other = known.only(~known.apart), known.only(known.apart)
    claims, certain, still_open = said(verified.claims), main.certain(least), undecided(verified.claims)
    check_asked(verified.claims, main, least)
    check_asked(verified.apart, other, known.values.shape[1])
    assert claims.items() <= certain.items()
    assert not (sure and still_open)
    assert certain.items() <= claims.items() | {(row, certain.get(row)) for row in still_open}
    wanted = other.certain(known.values.shape[1])
    assert said(verified.apart).items() <= wanted.items()
    if sure:
        assert said(verified.apart) == wanted
    for mine, chosen in ((verified.records, ~known.apart), (verified.records_apart, known.apart)):
        assert contains(mine, known.range(chosen))
        assert mine[0] < mine[1] or mine == known.range(chosen)
        assert not sure or mine == known.range(chosen), "the number of records is as narrow as it can be"
    fixed = all(mine[0] == mine[1] for mine in (verified.records, verified.records_apart))
    assert verified.unique in (main.unique and other.unique, None)
    if sure and fixed:
        assert verified.unique is not None
    check_represented(verified, main, least, claims, sure=sure, ladder=ladder)
    assert not verified.clock


def check_represented(
    verified: Verified, known: Known, least: int, claims: Said, *, sure: bool, ladder: Ladder | None
) -> None:
    columns = known.values.shape[1]
    found = list(verified.represented(ladder or Ladder()))
    assert [(one.k, one.singletons) for one in found] == [
        (k, single) for k in range(least, columns + 1) for single in (True, False)
    ]
    for one in found:
        about = [row for row, m in claims.items() if columns_of(row) == one.k and (m == 1 or not one.singletons)]
        true = known.represented(about)
        kind_of = dict(zip(rows_of(verified.claims), verified.claims.candidates.kind.tolist(), strict=True))
        assert set(one.kinds.tolist()) == {kind_of[row] for row in about}
        assert one.low <= true[0] and true[1] <= one.high
        if sure:
            assert (one.low, one.high) == true


# Oracles


@given(seed=seeds, options=published, data=st.data())
@settings(max_examples=often(70), phases=PHASES)
def test_what_is_verified_is_what_is_certain(seed: int, options: dict[str, Any], data: st.DataObject) -> None:
    """Complete and sound: claims, represented records, totals and uniqueness, whatever was published."""
    toy, wording, known = claim_toy(seed, **options)
    least = data.draw(st.integers(1, len(wording.columns)))
    for place, truth in zip(places_in(toy, wording), known, strict=True):
        check(verify(place, least), truth, least, sure=True)


@given(seed=seeds, options=published, data=st.data())
@settings(max_examples=often(35), phases=PHASES)
def test_records_that_are_reported_apart(seed: int, options: dict[str, Any], data: st.DataObject) -> None:
    """The number of them is published, so no variable holds some of them and some of the others."""
    toy, wording, known = claim_toy(seed, apart=True, **options)
    least = data.draw(st.integers(1, len(wording.columns)))
    for place, truth in zip(places_in(toy, wording), known, strict=True):
        check(verify(place, least), truth, least, sure=True)


@cache
def drawn(seed: int) -> tuple[Toy, Wording, tuple[Known, ...]]:
    """Toys that several tests share."""
    return claim_toy(seed, hide=(0.0, 0.3)[seed % 2], intervals=seed % 3 == 0, apart=seed % 5 == 0)


@pytest.mark.parametrize("rung", THOROUGH)
def test_what_is_verified_does_not_depend_on_how_it_is_decided(rung: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of real places have too many solutions to list; then each description is asked for."""
    monkeypatch.setattr("glasshouse.program.extremes.LISTED", 1)
    for seed in range(30 if rung in ("default", "search") else 10):
        toy, wording, known = drawn(seed)
        if any(one.endless.any() for one in known):
            continue
        least = seed % len(wording.columns) + 1
        for place, truth in zip(places_in(toy, wording, THOROUGH[rung]), known, strict=True):
            check(verify(place, least, THOROUGH[rung]), truth, least, sure=True, ladder=THOROUGH[rung])


@pytest.mark.parametrize("rung", BRIEF)
def test_nothing_false_is_verified_however_little_may_be_done(rung: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glasshouse.program.extremes.LISTED", 1)
    open_ = 0
    for seed in range(30):
        toy, wording, known = drawn(seed)
        if any(one.endless.any() for one in known):
            continue
        try:
            places = places_in(toy, wording, BRIEF[rung])
        except NothingFits as nothing:
            if nothing.proof is not None:
                raise
            continue
        for place, truth in zip(places, known, strict=True):
            found = verify(place, 1, BRIEF[rung])
            open_ += len(undecided(found.claims))
            check(found, truth, 1, sure=False, ladder=BRIEF[rung])
    assert open_, "this ladder should leave something undecided"


SORTS = ("exact", "interval", "tallied", "joint")


@pytest.mark.parametrize(("rung", "count"), [("default", 20), ("search", 20), ("short search", 20), ("two engines", 3)])
@pytest.mark.parametrize(("listed_at_most", "large"), [(1024, 100), (1, 100), (1, 0)])
def test_sets_of_variables_are_settled_as_by_brute_force(
    rung: str, count: int, listed_at_most: int, large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The core's own question, also for places that are solved jointly and for sets that cut through cells.

    Parts that are not listed are asked about by search, or at vertices, as large ones are.
    """
    monkeypatch.setattr("glasshouse.program.extremes.LISTED", listed_at_most)
    monkeypatch.setattr("glasshouse.program.extremes.LARGE", large)
    rng = np.random.default_rng(1)
    verdicts: Counter[int] = Counter()
    for case in (case for sort in SORTS for case in cases(sort, count)):
        for number in programs_of(case):
            every_x = case.cells[number][:, case.at(number)]
            start = every_x[rng.integers(0, len(every_x))]
            meeting = rng.random((12, every_x.shape[1])) < rng.choice([0.1, 0.5, 0.9], (12, 1))
            inside = meeting & (rng.random(meeting.shape) < rng.choice([0.8, 1.0], (12, 1)))
            found = settled(case.problem, start, inside, meeting, number, LADDERS[rung])
            low, high = (every_x @ inside.T).min(axis=0), (every_x @ meeting.T).max(axis=0)
            assert (found.low <= low).all() and (high <= found.high).all(), where(case, number)
            assert (low <= found.met_low).all() and (found.met_high <= high).all(), where(case, number)
            settled_here = found.verdict == Verdict.SETTLED
            assert (settled_here <= (low == high)).all(), where(case, number)
            assert ((found.verdict == Verdict.REFUTED) <= (low < high)).all(), where(case, number)
            assert (found.low == found.high)[settled_here].all()
            assert rung not in SURE or not (found.verdict == Verdict.OPEN).any(), where(case, number)
            assert all(
                (p == Proof.UNDECIDED) == (v == Verdict.OPEN) for p, v in zip(found.proof, found.verdict, strict=True)
            )
            some = found.some(slice(3, 7))
            assert (some.low == found.low[3:7]).all() and some.proof == found.proof[3:7]
            assert (some.verdict == found.verdict[3:7]).all() and (some.met_high == found.met_high[3:7]).all()
            verdicts.update(found.verdict.tolist())
    assert verdicts[Verdict.SETTLED] and verdicts[Verdict.REFUTED]


# Laws, on toys of any size


def larger(seed: int, **options: Any) -> tuple[Toy, Wording]:
    """Too large for brute force: up to 256 kinds of record and 25 records."""
    return told_toy(np.random.default_rng([seed, 3]), seed, kinds=256, people=25, **options)


def claims_in(toy: Toy, wording: Wording, least: int, ladder: Ladder | None = None, seed: int = 1) -> list[Said]:
    places = places_in(toy, wording, ladder, seed)
    return [said(verify(place, least, ladder or Ladder()).claims) for place in places]


def hiding(toy: Toy, flags: np.ndarray) -> Toy:
    return replace(toy, counts=without(toy.counts, flags))


def only(toy: Toy, tables: Sequence[Table]) -> Toy:
    """The toy with some of its tables."""
    names = [name for table in tables for name in table.variables if name in toy.counts.column]
    at = [toy.counts.column[name] for name in names]
    counts = Counts("block", toy.counts.places, tuple(names), toy.counts.lower[:, at], toy.counts.upper[:, at])
    return replace(toy, tables=tuple(tables), counts=counts)


@given(seed=seeds, options=published)
@settings(max_examples=often(25), phases=PHASES)
def test_the_truth_satisfies_every_verified_claim(seed: int, options: dict[str, Any]) -> None:
    toy, wording = larger(seed, **options)
    words = words_of(toy, wording)
    for place, truth in zip(places_in(toy, wording), toy.truth, strict=True):
        found = verify(place, 1)
        for row, m in said(found.claims).items():
            assert truth @ matching(words, row) == m
        assert found.records[0] <= truth.sum() <= found.records[1]
        for one in found.represented():
            about = np.zeros(len(words), np.bool_)
            for row, m in said(found.claims).items():
                if columns_of(row) == one.k and (m == 1 or not one.singletons):
                    about |= matching(words, row)
            assert one.low <= truth @ about <= one.high


@given(seed=seeds, intervals=st.booleans(), share=st.sampled_from([0.1, 0.5, 1.0]))
@settings(max_examples=often(25), phases=PHASES)
def test_hiding_numbers_never_gains_a_claim(seed: int, intervals: bool, share: float) -> None:
    toy, wording = larger(seed, intervals=intervals)
    flags = np.random.default_rng(seed).random(toy.counts.lower.shape) < share
    flags[:, toy.counts.column["T0_1"]] = False
    less, more = claims_in(hiding(toy, flags), wording, 1), claims_in(toy, wording, 1)
    assert all(few.items() <= many.items() for few, many in zip(less, more, strict=True))


@given(seed=seeds, intervals=st.booleans(), data=st.data())
@settings(max_examples=often(25), phases=PHASES)
def test_another_table_never_loses_a_claim(seed: int, intervals: bool, data: st.DataObject) -> None:
    toy, wording = larger(seed, intervals=intervals)
    first, *others = toy.tables
    kept = data.draw(st.lists(st.sampled_from(others), unique_by=id))
    less, more = claims_in(only(toy, [first, *kept]), wording, 1), claims_in(toy, wording, 1)
    assert all(few.items() <= many.items() for few, many in zip(less, more, strict=True))


@given(seed=seeds, options=published)
@settings(max_examples=often(15), phases=PHASES)
def test_what_is_verified_does_not_depend_on_the_data_set_that_was_found_first(
    seed: int, options: dict[str, Any]
) -> None:
    """Candidates are read off one data set that fits, so they may differ; what is certain may not."""
    toy, wording = larger(seed, **options)
    once, *again = (places_in(toy, wording, seed=chance) for chance in (1, 2, 3))
    for places in zip(once, *again, strict=True):
        found = [verify(place, 1) for place in places]
        assert all(said(one.claims) == said(found[0].claims) for one in found)
        assert all(one.unique == found[0].unique for one in found if None not in (one.unique, found[0].unique))
        reports = [[(one.k, one.singletons, one.low, one.high) for one in each.represented()] for each in found]
        assert all(report == reports[0] for report in reports)


@pytest.mark.parametrize("rung", [name for name in THOROUGH if name != "default"])
def test_every_way_to_decide_verifies_the_same(rung: str) -> None:
    """Also where brute force ends; what a ladder leaves undecided is not compared."""
    for seed in range(8):
        toy, wording = larger(seed, hide=0.1 * (seed % 2))
        toy = replace(toy, counts=limited(toy))
        for place, other in zip(places_in(toy, wording), places_in(toy, wording, THOROUGH[rung]), strict=True):
            found, again = verify(place, 1), verify(other, 1, THOROUGH[rung])
            if not undecided(found.claims) and not undecided(again.claims):
                assert said(found.claims) == said(again.claims)


def limited(toy: Toy) -> Counts:
    """The counts with the total published."""
    lower, upper = toy.counts.lower.copy(), toy.counts.upper.copy()
    lower[:, toy.counts.column["T0_1"]] = upper[:, toy.counts.column["T0_1"]] = toy.truth.sum(axis=1)
    return replace(toy.counts, lower=lower, upper=upper)


@given(seed=seeds, options=published, data=st.data())
@settings(max_examples=often(25), phases=PHASES)
def test_a_coarser_description_counts_no_less(seed: int, options: dict[str, Any], data: st.DataObject) -> None:
    """So absence passes to finer descriptions; and the core's bounds keep to it."""
    toy, wording, known = claim_toy(seed, **options)
    place, truth = places_in(toy, wording)[0], known[0]
    found = verify(place, 1).claims
    low, high = found.settled.low[found.candidates.kind], found.settled.high[found.candidates.kind]
    for fine in range(len(found.candidates.values)):
        row = found.candidates.values[fine]
        wider = ((found.candidates.values == row) | (found.candidates.values < 0)).all(axis=1)
        sure = wider & found.certain & found.certain[fine]
        assert (low[fine] <= low[sure]).all() and (high[fine] <= high[sure]).all()
    kind = data.draw(st.sampled_from(truth.values.tolist())) if len(truth.values) else []
    for k in range(len(kind)):
        finer = [truth.of((*kind[: k + more], *[-1] * (len(kind) - k - more))) for more in (0, 1)]
        assert finer[1][0] <= finer[0][0] and finer[1][1] <= finer[0][1]
    predicates = [random_predicate(np.random.default_rng([seed, n]), toy.schema) for n in range(4)]
    chain = [predicates[0]]
    for predicate in predicates[1:]:
        chain.append(chain[-1] & predicate)
    reach = ranges(place.problem, chain, 0) if place.live.of is None else None
    if reach is not None:
        assert (np.diff(reach.low) <= 0).all() and (np.diff(reach.high) <= 0).all()


def recoded(schema: Schema, name: str, *by: str, universe: dict[str, list[int]] | None = None) -> Table:
    """A table of these attributes, all levels told apart."""
    whole = [
        Recode(
            f"{name}{one}",
            one,
            tuple(Group(f"{name}{one}{i}", frozenset([i])) for i in range(len(schema.attribute(one)))),
        )
        for one in by
    ]
    inside = schema.where(universe or {})
    return build_table(
        schema, name=name, level="block", title=name, by=whole, variable=lambda n: f"{name}_{n}", universe=inside
    )


def small_toy(schema: Schema, tables: Sequence[Table], *records: tuple[int, ...]) -> Toy:
    """One place with these records."""
    toy = Toy(schema, tuple(tables), Counts("block", (), (), np.zeros((0, 0)), np.zeros((0, 0))), np.zeros((1, 0)))
    truth = np.array([[records.count(tuple(kind)) for kind in toy.kinds.tolist()]], np.int64)
    counts = tabulate(records_of(schema, truth, ("p0",)), toy.tables, "block")
    return replace(toy, counts=counts, truth=truth)


AB = Schema((attribute("a", 2), attribute("b", 2)))


def test_what_is_verified_passes_neither_to_finer_nor_to_coarser_descriptions() -> None:
    """One record: a is known, a with b is not. Two records, one of them a0 with b0: how many are a0 is not known."""
    toy = small_toy(AB, [recoded(AB, "A", "a")], (0, 0))
    assert claims_in(toy, plain_words(AB), 1) == [{(0, -1): 1}]
    toy = small_toy(AB, [total_table(AB, "block"), recoded(AB, "B", universe={"a": [0], "b": [0]})], (0, 0), (0, 1))
    assert claims_in(toy, plain_words(AB), 1) == [{(0, 0): 1}]
    known = known_of(toy, plain_words(AB), 0)
    assert known.of((0, -1)) == (1, 2) and known.of((-1, 0)) == (1, 2)


def test_absence_passes_to_finer_descriptions() -> None:
    toy = small_toy(AB, [recoded(AB, "A", "a")], (0, 0), (0, 1))
    (place,) = places_in(toy, plain_words(AB))
    finer = ranges(place.problem, [AB.where({"a": [1]}), AB.where({"a": [1], "b": [0]})])
    assert finer.high.tolist() == [0, 0] and finer.low.tolist() == [0, 0]
    assert claims_in(toy, plain_words(AB), 1) == [{(0, -1): 2}], "absence is no claim"


def test_the_example_of_the_paper_is_found() -> None:
    """Section 4.2 of papers/002: one row with A = B = 0, one with B = C = 0, one with B = 0: they are the same row."""
    schema = Schema(tuple(attribute(name, 2) for name in "abc"))
    tables = [
        total_table(schema, "block"),
        recoded(schema, "AB", universe={"a": [0], "b": [0]}),
        recoded(schema, "BC", universe={"b": [0], "c": [0]}),
        recoded(schema, "B", universe={"b": [0]}),
    ]
    toy = small_toy(schema, tables, (0, 0, 0), (0, 1, 1), (1, 1, 0))
    (found,) = claims_in(toy, plain_words(schema), 1)
    assert found[0, 0, 0] == 1 and found == known_of(toy, plain_words(schema), 0).certain(1)


def test_words_that_cut_through_what_the_tables_tell() -> None:
    """Levels 0 and 1 are counted together: claims about level 0 alone, or about 1 with 2, are never certain."""
    schema = Schema((attribute("a", 3), attribute("b", 2)))
    pairs = Recode("pairs", "a", (Group("low", frozenset([0, 1])), Group("high", frozenset([2]))))
    table = build_table(schema, name="T", level="block", title="T", by=[pairs], variable=lambda n: f"T_{n}")
    toy = small_toy(schema, [table, recoded(schema, "B", "b")], (0, 0), (2, 0))
    single = wording_of("ab", {"a": [[0], [1], [2]], "b": [[0], [1]]})
    assert claims_in(toy, single, 1) == [{(2, -1): 1, (-1, 0): 2, (2, 0): 1}]
    across = wording_of("ab", {"a": [[0], [1, 2]], "b": [[0], [1]]})
    assert claims_in(toy, across, 1) == [{(-1, 0): 2}]
    merged = wording_of("ba", {"a": [[0, 1], [2]], "b": [[0, 1]]})
    assert claims_in(toy, merged, 1) == [{(-1, 0): 1, (-1, 1): 1, (0, -1): 2, (0, 0): 1, (0, 1): 1}]


@pytest.mark.parametrize("least", [0, -1, 3])
def test_claims_have_one_to_all_columns(least: int) -> None:
    (place,) = places_in(small_toy(AB, [recoded(AB, "A", "a")], (0, 0)), plain_words(AB))
    with pytest.raises(InputError, match=f"--columns {least}: a claim here can name 1 to 2 columns"):
        verify(place, least)


def test_numbers_that_are_hidden() -> None:
    toy = small_toy(AB, [recoded(AB, "A", "a")], (0, 0), (1, 1))
    assert without(toy.counts, np.zeros((1, 2), np.bool_)) is toy.counts
    less = without(toy.counts, np.array([[True, False]]))
    assert less.lower.tolist() == [[0, 1]] and less.upper.tolist() == [[UNLIMITED, 1]] and not less.exact
    assert toy.counts.exact and toy.counts.lower.tolist() == [[1, 1]], "the original stays"


@pytest.mark.parametrize("rung", THOROUGH)
def test_every_kind_may_be_without_a_limit(rung: str) -> None:
    toy = small_toy(AB, [recoded(AB, "A", "a")], (0, 0))
    (place,) = places_in(hiding(toy, np.ones((1, 2), np.bool_)), plain_words(AB), THOROUGH[rung])
    found = verify(place, 1, THOROUGH[rung])
    assert said(found.claims) == {} and found.records == (0, UNLIMITED) and found.unique is not True
    assert all((one.low, one.high) == (0, 0) for one in found.represented(THOROUGH[rung]))


def test_what_only_engines_say_is_not_called_exact() -> None:
    """At most one of any two of four levels, and at least one in all: exactly one. Fractions allow for two."""
    schema = Schema((attribute("a", 4),))
    pairs = tuple(Group(f"{i}{j}", frozenset([i, j])) for i, j in combinations(range(4), 2))
    by = [Recode("pairs", "a", pairs, tally=True)]
    table = build_table(schema, name="T", level="block", title="T", by=by, variable=lambda n: f"T_{n}")
    toy = small_toy(schema, [total_table(schema, "block"), table], (0,))
    toy = between(toy, {"T0_1": (1, 4)} | dict.fromkeys(table.variables, (0, 1)))
    (place,) = places_in(toy, plain_words(schema))
    everyone = np.ones((1, len(place.x)), np.bool_)
    proofs = {}
    for name, ladder in {"search": Ladder(), "engines": Ladder(nodes=0, guided=0, cases=False)}.items():
        found = settled(place.problem, place.x, everyone, everyone, 0, ladder)
        assert found.verdict.tolist() == [Verdict.SETTLED] and found.low.tolist() == found.high.tolist() == [1]
        proofs[name] = found.proof
    assert proofs == {"search": (Proof.EXACT,), "engines": (Proof.TWO_ENGINES,)}
    alone = Ladder(nodes=0, guided=0, engines=(highs,), cases=False)
    found = settled(place.problem, place.x, everyone, everyone, 0, alone)
    assert found.verdict.tolist() == [Verdict.OPEN] and found.proof == (Proof.UNDECIDED,)


@given(seed=seeds, options=published)
@settings(max_examples=often(30), phases=PHASES)
def test_what_totals_leave_for_hidden_numbers_rules_nothing_out(seed: int, options: dict[str, Any]) -> None:
    toy, _, _ = claim_toy(seed, kinds=16, **options)
    closer = replace(toy, counts=tightened(toy.counts, toy.tables))
    assert (closer.counts.lower >= toy.counts.lower).all() and (closer.counts.upper <= toy.counts.upper).all()
    try:
        for before, after in zip(toy.alone, closer.alone, strict=True):
            assert before.tolist() == after.tolist()
    except TooMany:
        for place, truth in enumerate(toy.truth):
            assert all(low <= truth[list(kinds)].sum() <= high for kinds, low, high in closer.own_limits(place))


# Variables that stand in the same rows


def problem_of(programs: Programs) -> Problem:
    """A problem without tables or places."""
    nothing: Any = None
    size, count = len(programs.lower), len(programs)
    return Problem(
        nothing,
        tuple(f"p{i}" for i in range(count)),
        programs,
        programs.program_of.astype(np.int32),
        np.arange(size, dtype=np.int32),
        np.zeros(count, np.bool_),
        np.arange(count),
        np.zeros(count, np.bool_),
    )


def random_programs(rng: np.random.Generator) -> tuple[Programs, list[list[Limits]]]:
    """One to three programs that have a solution, with columns that are often equal; their limits for brute force."""
    first, row_first, starts = [0], [0], [0]
    lower, upper, row_lower, row_upper, index, coefficient = ([] for _ in range(6))
    limits: list[list[Limits]] = []
    for _ in range(rng.integers(1, 4)):
        size, rows = int(rng.integers(1, 6)), int(rng.integers(0, 4))
        matrix = rng.choice([0, 1, 1, 2], (rows, size))
        for v in range(1, size):
            if rng.random() < 0.5:
                matrix[:, v] = matrix[:, v - 1]
        x = rng.integers(0, 2, size)
        low = np.where(rng.random(size) < 0.85, 0, rng.integers(0, x + 1))
        in_rows = matrix.any(axis=0) & (rng.random(size) < 0.8)  # these need no limit of their own
        high = np.where(in_rows, rng.choice([9, UNLIMITED]), x + rng.integers(0, 3, size))
        sums = matrix @ x
        width = rng.integers(0, 3, rows)
        begin = first[-1]
        mine: list[Limits] = [((v,), int(low[v]), int(high[v])) for v in range(size)]
        for row in range(rows):
            at = np.flatnonzero(matrix[row])
            index += (begin + at).tolist()
            coefficient += matrix[row, at].tolist()
            starts.append(len(index))
            row_lower.append(int(sums[row]) - int(width[row]))
            row_upper.append(int(sums[row]) + int(rng.integers(0, 2)))
            inside = tuple(v for v in at.tolist() for _ in range(matrix[row, v]))
            mine.append((inside, row_lower[-1], row_upper[-1]))
        limits.append(mine)
        lower += low.tolist()
        upper += high.tolist()
        first.append(begin + size)
        row_first.append(row_first[-1] + rows)
    arrays = (np.array(some, np.int64) for some in (first, lower, upper, row_first, row_lower, row_upper, starts))
    return Programs(*arrays, np.array(index, np.int32), np.array(coefficient, np.int64)), limits


def groups_of(programs: Programs) -> list[tuple[Any, ...]]:
    """For each variable what it may be put together by, in plain Python."""
    rows: list[list[tuple[int, int]]] = [[] for _ in programs.lower]
    for row in range(len(programs.row_lower)):
        for entry in range(programs.starts[row], programs.starts[row + 1]):
            rows[programs.index[entry]].append((row, int(programs.coefficient[entry])))
    found: list[tuple[Any, ...]] = []
    for v, mine in enumerate(rows):
        allowed = min((programs.row_upper[row] // times for row, times in mine), default=UNLIMITED)
        free = programs.lower[v] == 0 and programs.upper[v] >= allowed
        found.append((int(programs.program_of[v]), tuple(mine)) if free else ("alone", v))
    return found


@given(seed=seeds)
@settings(max_examples=often(60), phases=PHASES)
def test_variables_of_the_same_rows_count_as_one(seed: int) -> None:
    """Any set has the range that brute force gives it, on the program as it was and on the one with fewer variables."""
    rng = np.random.default_rng(seed)
    programs, limits = random_programs(rng)
    problem, alike = problem_of(programs), put_together(problem_of(programs))
    groups = groups_of(programs)
    for v, w in combinations(range(len(groups)), 2):
        assert (alike.of[v] == alike.of[w]) == (groups[v] == groups[w])
    assert len(alike.problem.cell) == len(set(groups)) == len(alike.problem.programs.lower)
    assert alike.problem.cell.tolist() == [groups.index(group) for group in dict.fromkeys(groups)]
    assert (alike.problem.place == problem.place[alike.problem.cell]).all()
    for number, mine in enumerate(limits):
        here = slice(programs.first[number], programs.first[number + 1])
        new = slice(alike.problem.programs.first[number], alike.problem.programs.first[number + 1])
        old = np.zeros((6, len(groups)), np.bool_)
        old[:, here] = rng.random((6, here.stop - here.start)) < 0.6
        inside = np.array([alike.every(flags) for flags in old])[:, new]
        meeting = np.array([alike.some(flags) for flags in old])[:, new]
        assert (inside <= meeting).all()
        data = listed(here.stop - here.start, mine)
        sums = data @ old[:, here].T
        before = ranges_of(problem, old[:, here], old[:, here], number)
        after = ranges_of(alike.problem, inside, meeting, number)
        assert before.low.tolist() == after.low.tolist() == sums.min(axis=0).tolist()
        assert before.high.tolist() == after.high.tolist() == sums.max(axis=0).tolist()


def test_exchanges_lead_from_one_solution_to_others() -> None:
    """They refute without any solver, so each must be right; on the tables of toys and on programs of any rows."""
    rng = np.random.default_rng(1)
    met = 0
    for case in (case for sort in ("exact", "interval") for case in cases(sort, 20)):
        for number in programs_of(case):
            here = case.cells[number][:, case.at(number)]
            met += sum(check_exchanges(case.problem.programs.only(number), here, rng) for _ in range(3))
    for seed in range(60):
        programs, limits = random_programs(np.random.default_rng(seed))
        for number, mine in enumerate(limits):
            part = programs.only(number)
            try:
                met += check_exchanges(part, listed(len(part.lower), mine), rng)
            except TooMany:
                continue
    assert met > 100


def check_exchanges(part: Programs, solutions: Ints, rng: np.random.Generator) -> int:
    """Every exchange from a solution, and where a walk ends, must be among the solutions of brute force."""
    every_one = {tuple(row) for row in solutions.tolist()}
    x = solutions[rng.integers(0, len(solutions))]
    if not len(x):
        return 0
    moves = exchanges(part, x, rng)
    for give, also, take, too in moves.tolist():
        there = x.copy()
        for variable, change in ((give, -1), (also, -1), (take, 1), (too, 1)):
            there[variable] += change
        assert tuple(there.tolist()) in every_one and (there != x).any()
    assert tuple(wandered(part, x, moves, rng).tolist()) in every_one
    return len(moves)


def test_hidden_numbers_leave_fewer_variables() -> None:
    """With the total alone all kinds count as one; claims about it are then none, but that everybody is counted."""
    toy = small_toy(AB, [total_table(AB, "block"), recoded(AB, "T", "a", "b")], (0, 0), (0, 1), (1, 1))
    assert len(places_in(toy, plain_words(AB))[0].x) == 3, "kinds that nobody is of are left out"
    flags = np.ones((1, 5), np.bool_)
    flags[0, 0] = False
    (place,) = places_in(hiding(toy, flags), plain_words(AB))
    assert len(place.x) == 1 and place.live.shared.tolist() == [[-1, -1]]
    found = verify(place, 1)
    assert said(found.claims) == {} and found.records == (3, 3) and found.unique is False


# Real tables: households of a synthetic county

COLUMNS = ("TEN", "VACS", "HHSIZE", "HHT", "HHT2", "THHSPAN", "THHLDRAGE", "THHRACE", "TP18", "TP65")
SIX = 6  # columns that a claim of the paper has at least
Home = dict[str, int]
Units = Counter[tuple[int, ...]]  # by what claims say of them, column by column

COUPLE: Home = dict(zip(COLUMNS, (1, 0, 4, 1, 1, 1, 4, 1, 1, 0), strict=True))  # two adults and two children
WIDOW: Home = dict(zip(COLUMNS, (2, 0, 1, 6, 5, 1, 8, 1, 0, 1), strict=True))
STUDENTS: Home = dict(zip(COLUMNS, (3, 0, 3, 5, 12, 2, 1, 6, 0, 0), strict=True))


def vacant(status: int) -> Home:
    return dict.fromkeys(COLUMNS, 0) | {"VACS": status}


@cache
def dhc() -> Claimable:
    """The 79 tables, compiled once."""
    scenario = households()
    return Claimable(scenario.schema, scenario.tables, numbers_of([]).variables, scenario.wording)


@cache
def households() -> Scenario:
    return load("dhc-household")


def records_in(blocks: Sequence[Sequence[Home]]) -> Records:
    """Units block by block; what the files call code is the number of the level here."""
    schema = households().schema
    codes = [[home[one.name] for one in schema.attributes] for homes in blocks for home in homes]
    place = np.repeat(np.arange(len(blocks)), [len(homes) for homes in blocks]).astype(np.int32)
    names = tuple(f"{number:015d}" for number in range(len(blocks)))
    return Records(schema, names, place, np.array(codes, np.int16).reshape(len(place), len(schema.attributes)))


def numbers_of(*blocks: Sequence[Home]) -> Counts:
    return tabulate(records_in(blocks), households().tables, "block")


@cache
def county(persons: int, seed: int) -> tuple[tuple[Home, ...], ...]:
    """The units of the blocks of a county, those in group quarters left out."""
    made = County(load_preset("national"), persons, seed)
    blocks: list[tuple[Home, ...]] = []
    for number in range(len(np.unique(made.places.tract))):
        tract = made.tract(number)
        columns = tract.homes.columns
        of: dict[int, list[Home]] = {}
        for unit, block in enumerate(tract.people.unit_block.tolist()):
            of.setdefault(block, [])
            if columns["VACS"][unit] or columns["HHSIZE"][unit]:
                of[block].append({name: int(columns[name][unit]) for name in COLUMNS})
        blocks += (tuple(of[block]) for block in sorted(of))
    return tuple(blocks)


def occupied(homes: Sequence[Home]) -> int:
    return sum(home["VACS"] == 0 for home in homes)


def small_blocks(most: int, persons: int = 9000, seed: int = 5) -> list[tuple[Home, ...]]:
    return [homes for homes in county(persons, seed) if 1 <= occupied(homes) <= most]


def value_of(column: str, level: int) -> int:
    (number,) = [n for n, levels in enumerate(households().wording.groups[column]) if level in levels]
    return number


def words(home: Home) -> tuple[int, ...]:
    """What claims say of a unit, column by column."""
    return tuple(value_of(name, home[name]) for name in households().wording.columns)


Key = tuple[tuple[int, ...], tuple[int, ...]]  # the columns that are named, and their values


def named_only(description: Sequence[int]) -> Key:
    named = tuple(column for column, value in enumerate(description) if value >= 0)
    return named, tuple(description[column] for column in named)


def keyed(claims: Said) -> dict[Key, int]:
    return {named_only(description): m for description, m in claims.items()}


def described(units: Units, least: int) -> Counter[Key]:
    """How many units match each description of at least so many columns that any of them matches."""
    found: Counter[Key] = Counter()
    for k in range(least, len(COLUMNS) + 1):
        for named in combinations(range(len(COLUMNS)), k):
            values = itemgetter(*named)
            for unit, times in units.items():
                found[named, values(unit)] += times
    return found


def certain_in(data_sets: Sequence[Units], least: int, homes: int) -> dict[Key, int]:
    """The descriptions of households that every data set counts alike; a vacant unit has the value 0 of tenure."""
    tenure, none = households().wording.columns.index("TEN"), value_of("TEN", 0)
    assert none not in {value_of("TEN", level) for level in range(1, 5)}
    lived_in = [Counter({unit: n for unit, n in some.items() if unit[tenure] != none}) for some in data_sets]
    assert all(some.total() == homes for some in lived_in)
    everywhere = set(described(lived_in[0], least).items())
    for some in lived_in[1:]:
        everywhere &= described(some, least).items()
    return dict(everywhere)


def all_data_sets(counts: Counts, most: int) -> list[Units] | None:
    """Every data set that fits the numbers of a block, as units by what claims say of them; None: too many."""
    problem = places_alone(dhc().compiled, counts)
    found = every(problem, most)
    if not found.complete:
        return None
    assert found.proof != Proof.UNDECIDED
    cells, names = dhc().compiled.cells, households().wording.columns
    said_of = []
    for cell in problem.cell.tolist():
        levels = cells.levels(cell).by_attribute
        values = [
            {value_of(name, level) for level in levels.get(name, range(len(cells.schema.attribute(name))))}
            for name in names
        ]
        assert all(len(some) == 1 for some in values), "tables tell all values of claims apart"
        said_of.append(tuple(some.pop() for some in values))
    return [Counter({of: n for of, n in zip(said_of, row, strict=True) if n}) for row in found.x.tolist()]


def verified_in(counts: Counts, seed: int = 1) -> Verified:
    (place,) = places_of(dhc(), counts, np.random.default_rng(seed))
    return verify(place, SIX)


def check_block(homes: Sequence[Home], most: int) -> bool:
    """Compare with every data set that fits; False when those are too many."""
    counts = numbers_of(homes)
    data_sets = all_data_sets(counts, most)
    if data_sets is None:
        return False
    truth = Counter(words(home) for home in homes)
    assert truth in data_sets
    found, certain = verified_in(counts), certain_in(data_sets, SIX, occupied(homes))
    assert keyed(said(found.claims)) == certain
    assert not undecided(found.claims)
    assert found.unique == (len(data_sets) == 1)
    assert found.records == (occupied(homes),) * 2 and found.records_apart == (len(homes) - occupied(homes),) * 2
    for one in found.represented():
        about: dict[tuple[int, ...], set[tuple[int, ...]]] = {}
        for (named, values), m in certain.items():
            if len(named) == one.k and (m == 1 or not one.singletons):
                about.setdefault(named, set()).add(values)
        counted = [
            sum(n for unit, n in some.items() if any(itemgetter(*named)(unit) in about[named] for named in about))
            for some in data_sets
        ]
        assert (one.low, one.high) == (min(counted), max(counted))
    return True


def test_what_is_verified_of_small_blocks_is_what_every_data_set_says() -> None:
    checked, several = 0, 0
    for homes in small_blocks(6):
        if occupied(homes) >= 2 and check_block(homes, 40):
            checked += 1
            several += verified_in(numbers_of(homes)).unique is False
        if checked == 15:
            break
    assert checked == 15 and several >= 5


@pytest.mark.slow
def test_what_is_verified_of_many_blocks_is_what_every_data_set_says() -> None:
    assert sum(check_block(homes, 1500) for homes in small_blocks(8, 20_000, 6)) >= 100


def test_every_verified_claim_is_true_of_the_households() -> None:
    blocks = small_blocks(14)[:60]
    assert len(blocks) == 60
    places = places_of(dhc(), numbers_of(*blocks), np.random.default_rng(1))
    for homes, place in zip(blocks, places, strict=True):
        found = verify(place, SIX)
        truth = described(Counter(words(home) for home in homes if home["VACS"] == 0), SIX)
        assert keyed(said(found.claims)).items() <= truth.items()
        assert found.records == (occupied(homes),) * 2 and found.records_apart == (len(homes) - occupied(homes),) * 2
        assert not undecided(found.claims) or found.unique is not True
        empty = Counter(words(home) for home in homes if home["VACS"])
        assert said(found.apart) == dict(empty), "of vacant units every number is published"


def test_the_seed_and_the_company_do_not_change_what_is_verified_of_blocks() -> None:
    blocks = small_blocks(8)[5:12]
    together = numbers_of(*blocks)
    for seed in (1, 2):
        places = places_of(dhc(), together, np.random.default_rng(seed))
        for homes, place in zip(blocks, places, strict=True):
            assert said(verify(place, SIX).claims) == said(verified_in(numbers_of(homes), 3).claims)


@pytest.mark.parametrize("home", [COUPLE, WIDOW, STUDENTS], ids=["couple", "widow", "students"])
@pytest.mark.parametrize("times", [1, 4])
def test_a_block_of_identical_households_is_known_in_full(home: Home, times: int) -> None:
    found = verified_in(numbers_of([home] * times))
    assert found.unique is True and found.records == (times, times) and found.records_apart == (0, 0)
    claims = keyed(said(found.claims))
    assert claims == described(Counter([words(home)] * times), SIX) and len(claims) == 386
    for one in found.represented():
        assert (one.low, one.high) == ((0, 0) if one.singletons and times > 1 else (times, times))


def test_every_block_with_one_household_is_known_in_full() -> None:
    blocks = small_blocks(1)
    assert len(blocks) >= 10
    for homes, place in zip(blocks, places_of(dhc(), numbers_of(*blocks), np.random.default_rng(1)), strict=True):
        found = verify(place, SIX)
        assert found.unique is True and len(said(found.claims)) == 386
        assert sum(said(found.apart).values()) == len(homes) - 1


@pytest.mark.parametrize("homes", [[], [vacant(1)], [vacant(1), vacant(7), vacant(7)]])
def test_a_block_without_households_has_no_claims(homes: list[Home]) -> None:
    found = verified_in(numbers_of(homes))
    assert said(found.claims) == {} and len(found.claims.candidates.values) == 0
    assert found.records == (0, 0) and found.records_apart == (len(homes), len(homes)) and found.unique is True
    assert said(found.apart) == dict(Counter(words(home) for home in homes))
    assert all((one.low, one.high, len(one.kinds)) == (0, 0, 0) for one in found.represented())


@pytest.mark.parametrize("hide", [False, True])
def test_numbers_that_contradict_each_other_fit_nothing(hide: bool) -> None:
    """More White householders than householders; or as many men living alone as there are one-person households."""
    counts = numbers_of([COUPLE, WIDOW, vacant(1)], [COUPLE, STUDENTS])
    assert len(list(places_of(dhc(), counts, np.random.default_rng(1)))) == 2
    for variable in ("H0060002", "P0200015", "H0010001"):
        lower = counts.lower.copy()
        lower[0, counts.column[variable]] += 1
        wrong = replace(counts, lower=lower, upper=lower)
        if hide:
            flags = np.zeros(lower.shape, np.bool_)
            flags[:, counts.column["P0160003"]] = True
            wrong = without(wrong, flags)
        with pytest.raises(NothingFits) as error:
            list(places_of(dhc(), wrong, np.random.default_rng(1)))
        assert error.value.proof == Proof.EXACT


def hiding_zeros(counts: Counts, kept: Sequence[str]) -> Counts:
    always = [line.variable for name in ("H1", "H3") for line in households().table(name).lines]
    stays = np.array([variable in (*always, *kept) for variable in counts.variables])
    return without(counts, (counts.lower == 0) & ~stays)


def of_which() -> list[str]:
    return [line.variable for table in households().tables for line in table.of_which]


def check_zeros(homes: Sequence[Home], kept: Sequence[str]) -> None:
    counts = numbers_of(homes)
    less = hiding_zeros(counts, kept)
    assert (less.upper[0] >= UNLIMITED).sum() > 500
    again = tightened(less, households().tables)
    closed = again.lower == again.upper
    assert closed.mean() > 0.9 and (again.lower == counts.lower)[closed].all()
    shown, told = verified_in(less), verified_in(counts)
    assert said(shown.claims) == said(told.claims) and said(shown.apart) == said(told.apart)
    assert shown.unique == told.unique and shown.records == told.records
    ends = [[(one.k, one.low, one.high) for one in found.represented()] for found in (shown, told)]
    assert ends[0] == ends[1]


def test_hiding_every_published_zero_loses_no_claim() -> None:
    """A zero says nothing that the other numbers do not, while the numbers of units and households are published.

    A table divides the households, or those of a race or an origin. Its cells that are not zero are printed, and add up
    to that total: so the others are zero. The total of a table for one race is itself a cell of the table of races; if
    it is zero, that follows in the same way. A line `of which` divides nothing, so its zero need not follow: it is
    kept here.
    """
    assert of_which() == ["P0200010", "P0200016"]
    blocks = [homes for homes in small_blocks(2) if occupied(homes) == 2]
    for homes in (*blocks[:2], (COUPLE,), (), (vacant(3),)):
        check_zeros(homes, of_which())


@pytest.mark.slow
def test_hiding_every_published_zero_loses_no_claim_in_many_blocks() -> None:
    """The lines `of which` are hidden too: H14 and P19 say what they say."""
    for homes in small_blocks(4)[:40]:
        check_zeros(homes, ())


def test_a_zero_of_an_of_which_line_need_not_follow() -> None:
    """In the full set it does: H14 has those living alone by age. Without H14 and P19 only the line itself tells.

    A man and a woman live alone; one of them is over 65, both rent, and `of which 65 and over` is 0 for the man.
    """
    young = dict(zip(COLUMNS, (3, 0, 1, 4, 9, 1, 3, 1, 0, 0), strict=True))
    old = dict(zip(COLUMNS, (3, 0, 1, 6, 5, 1, 7, 1, 0, 1), strict=True))
    counts = numbers_of([young, old])
    assert counts.value(counts.places[0], "P0200016").exact + counts.value(counts.places[0], "P0200010").exact == 1
    full = said(verified_in(counts).claims)
    assert said(verified_in(hiding_zeros(counts, ())).claims) == full
    fewer = households().choose(t.name for t in households().tables if t.name not in ("H14", "P19"))
    counts = tabulate(records_in([[young, old]]), fewer.tables, "block")
    claimable = Claimable(fewer.schema, fewer.tables, counts.variables, fewer.wording)
    both = [line for line in of_which() if counts.value(counts.places[0], line).exact]
    flags = np.array([[variable in both for variable in counts.variables]])  # the 1; the 0 is hidden with the others
    claims = []
    for kept in (of_which(), ()):
        (place,) = places_of(claimable, without(hiding_zeros(counts, kept), flags), np.random.default_rng(1))
        claims.append(said(verify(place, SIX).claims))
    assert claims[1].items() < claims[0].items()


# Mistakes that were found; strict, so that whoever mends one is told to take the mark away

ONE = Schema((attribute("a", 2),))


def hide_some(toy: Toy, *variables: str) -> Toy:
    return hiding(toy, np.array([[name in variables for name in toy.counts.variables]]))


def between(toy: Toy, limits: dict[str, tuple[int, int]]) -> Toy:
    """The toy with intervals for numbers."""
    low, high = toy.counts.lower.copy(), toy.counts.upper.copy()
    for name, (least, most) in limits.items():
        low[:, toy.counts.column[name]], high[:, toy.counts.column[name]] = least, most
    return replace(toy, counts=replace(toy.counts, lower=low, upper=high))


def margins(*records: tuple[int, int]) -> Toy:
    return small_toy(AB, [total_table(AB, "block"), recoded(AB, "A", "a"), recoded(AB, "B", "b")], *records)


def test_records_apart_that_no_table_tells_apart_are_bounded() -> None:
    toy = small_toy(AB, [total_table(AB, "block")], (0, 0), (1, 1))
    (place,) = places_in(toy, plain_words(AB, AB.where({"a": [1]})))
    found = verify(place, 1)
    assert found.records == found.records_apart == (0, 2)


@pytest.mark.parametrize("level", [0, 1])
def test_records_apart_that_hidden_numbers_would_tell_apart_are_bounded(level: int) -> None:
    toy = hide_some(margins((0, 0), (1, 0)), "A_2", "A_3")
    (place,) = places_in(toy, plain_words(AB, AB.where({"a": [level]})))
    found = verify(place, 1)
    assert found.records == found.records_apart == (0, 2)


def test_hiding_every_published_one_leaves_the_household_of_a_block_possible() -> None:
    """The paper's table 5 hides them. Of a couple and a vacant unit it is said: no household, two vacant units."""
    counts = numbers_of([COUPLE, vacant(1)])
    found = verified_in(without(counts, counts.lower == 1))
    assert found.records[0] <= 1 <= found.records[1] and found.records_apart[0] <= 1 <= found.records_apart[1]


def test_a_claim_is_not_lost_where_records_apart_are_put_together_with_others() -> None:
    """Both records have b0, but it is open who is apart: claims count the others, so nothing is certain, either way."""
    toy = hide_some(margins((0, 0), (1, 0)), "A_2", "A_3")
    claims = [claims_in(toy, plain_words(AB, AB.where({"a": [level]})), 1) for level in (0, 1)]
    assert claims[0] == claims[1] == [{}]


def test_what_is_verified_does_not_depend_on_who_is_apart_in_the_first_data_set() -> None:
    """a0 b0 and a1 b1, or a0 b1 and a1 b0: of the record that is not apart, a0 is certain and b is not."""
    words_here = plain_words(AB, AB.where({"a": [1]}))
    found = [claims_in(margins((0, 0), (1, 1)), words_here, 1, seed=seed)[0] for seed in range(8)]
    assert all(claims == {(0, -1): 1} for claims in found)


def test_a_place_whose_number_of_records_is_open_is_not_unique() -> None:
    """One or two records; None would mean undecided, and it is decided."""
    toy = between(small_toy(ONE, [recoded(ONE, "A", "a")], (0,)), {"A_3": (0, 1)})
    unique = [verify(places_in(toy, plain_words(ONE), seed=seed)[0], 1).unique for seed in range(8)]
    assert unique == [False] * 8


def test_a_place_is_unique_where_a_description_fits_records_apart_and_others() -> None:
    toy = small_toy(AB, [recoded(AB, "T", "a", "b")], (0, 0), (1, 0))
    words_here = wording_of("b", {"b": [[0], [1]]}, AB.where({"a": [1]}))
    assert known_of(toy, words_here, 0).unique
    assert verify(places_in(toy, words_here)[0], 1).unique is True


def test_what_no_number_limits_has_no_limit() -> None:
    """One record is a0; of a1 there may be any number, and the total is hidden."""
    toy = hide_some(small_toy(ONE, [total_table(ONE, "block"), recoded(ONE, "A", "a")], (0,)), "T0_1", "A_3")
    (place,) = places_in(toy, plain_words(ONE))
    found = ranges(place.problem, [ONE.where({"a": [1]})])
    assert (int(found.low[0]), int(found.high[0])) == (0, UNLIMITED)


def test_what_no_number_limits_has_no_limit_in_a_tally() -> None:
    schema = Schema((attribute("a", 1),))
    twice = Recode("twice", "a", (Group("once", frozenset([0])), Group("again", frozenset([0]))), tally=True)
    table = build_table(schema, name="T", level="block", title="T", by=[twice], variable=lambda n: f"T_{n}", also=[1])
    toy = hide_some(small_toy(schema, [table], (0,)), "T_1", "T_2", "T_3")
    (place,) = places_in(toy, plain_words(schema))
    assert verify(place, 1).records == (0, UNLIMITED)


def test_engines_can_be_asked_where_something_has_no_limit() -> None:
    toy = small_toy(ONE, [total_table(ONE, "block"), recoded(ONE, "A", "a")], (0,))
    toy = between(toy, {"T0_1": (0, UNLIMITED), "A_2": (1, 2), "A_3": (0, UNLIMITED)})
    (place,) = places_in(toy, plain_words(ONE), Ladder(nodes=0))
    assert said(verify(place, 1, Ladder(nodes=0)).claims) == {}


def test_claims_that_a_table_gives_away_are_those_not_certain_without_it() -> None:
    """A couple alone in a block: without P20 the claims that name HHT2 are lost, and no others."""
    counts = numbers_of([COUPLE])
    columns = hidden_columns(counts, [households().table("P20")])
    change = lost(dhc(), counts, columns, [verified_in(counts)], np.random.default_rng(1))
    rest = said(verified_in(without(counts, columns[None, :])).claims)
    assert [one.claims for one in change] == [386 - len(rest)] and len(rest) == 130


def test_as_many_columns_as_can_be_listed_are_counted_and_more_are_refused() -> None:
    def of_columns(columns: int) -> Place:
        schema = Schema(tuple(attribute(f"a{number}", 1) for number in range(columns)))
        toy = small_toy(schema, [total_table(schema, "block")], (0,) * columns)
        (place,) = places_in(toy, plain_words(schema))
        return place

    assert said(verify(of_columns(20), 20).claims) == {(0,) * 20: 1}
    with pytest.raises(InputError, match="at most 20 columns; the scenario's records have 21"):
        verify(of_columns(21), 21)


def test_variables_with_limits_of_their_own_are_not_put_together() -> None:
    """x + y <= z, x and y at most 3, z at most 5. No table gives such a row; sums that are added to a program do."""
    zero, upper = np.zeros(3, np.int64), np.array([3, 3, 5])
    row = (np.array([0, 1]), np.array([-UNLIMITED]), np.zeros(1, np.int64), np.array([0, 3]))
    programs = Programs(np.array([0, 3]), zero, upper, *row, np.arange(3, dtype=np.int32), np.array([1, 1, -1]))
    alike = put_together(problem_of(programs))
    both = np.array([True, True, False])
    found = ranges_of(alike.problem, alike.every(both)[None, :], alike.some(both)[None, :])
    assert int(found.high[0]) == 5
