"""Is what is said around verified claims right: why, which table, what is ruled out, how surprising? By brute force.

Toys and all data sets that fit them are those of `tests.oracles`. A reason is tested by the data sets that agree with
its numbers and with no others; a table that gives claims away by counting twice, with it and without it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations, combinations_with_replacement, product
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from glasshouse.assess.leaks import by_table
from glasshouse.assess.priors import Prior
from glasshouse.assess.rates import wilson
from glasshouse.attack.claims.absence import Absence, Patterns, absent, cannot, fillable, zero_masks
from glasshouse.attack.claims.descriptions import predicate_of
from glasshouse.attack.claims.hiding import tightened, without
from glasshouse.attack.claims.reasons import Explainer, Lines, Reason
from glasshouse.attack.claims.verify import Place, Verified, verify
from glasshouse.attack.claims.withholding import Change, families, gained, lost, named
from glasshouse.attack.claims.withholding import hidden as columns_of_tables
from glasshouse.attack.published import NothingFits
from glasshouse.model.records import UNLIMITED
from glasshouse.model.release import Counts, OfWhich, Table, build_table
from glasshouse.model.schema import EVERYONE, Group, Impossible, Predicate, Recode, Schema
from glasshouse.model.wording import Wording
from glasshouse.program.integer import Limit, Proof
from glasshouse.program.ladder import Ladder
from glasshouse.program.moves import Moves, exchanges, wandered
from glasshouse.program.reduce import Programs
from glasshouse.program.tables.histogram import places_alone
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
    mask_of,
    matching,
    plain_words,
    satisfiable,
    total_table,
    wording_of,
    words_of,
)
from tests.test_verify import (
    AB,
    ONE,
    PHASES,
    Said,
    between,
    claimable_of,
    columns_of,
    hide_some,
    margins,
    places_in,
    random_programs,
    recoded,
    rows_of,
    said,
    seeds,
    small_toy,
)

Flags = np.ndarray
LITTLE = {"one step": Ladder(nodes=1, engines=()), "no effort": Ladder(nodes=1, limit=Limit(effort=0))}
published = st.fixed_dictionaries(
    {
        "hide": st.sampled_from([0.0, 0.25, 0.5]),
        "intervals": st.booleans(),
        "total": st.booleans(),
        "apart": st.sampled_from([False, False, True]),
    }
)


def small(seed: int, **options: Any) -> tuple[Toy, Wording, tuple[Known, ...]]:
    """Two to four attributes, few people."""
    return claim_toy(seed, **{"kinds": 24, "people": 4, **options})


def described(toy: Toy, wording: Wording) -> list[tuple[int, ...]]:
    """Everything that words can say, possible or not: a value, or nothing, for each column; but not nothing at all."""
    values = [range(-1, len(wording.groups[name])) for name in wording.columns]
    return [row for row in product(*values) if columns_of(row)]


def predicate(toy: Toy, wording: Wording, description: Sequence[int]) -> Predicate:
    return predicate_of(wording, toy.schema, np.array(description, np.int16))


def others(toy: Toy, wording: Wording) -> Flags:
    """The kinds of record that claims count: those that are not reported apart."""
    if wording.apart is None:
        return np.ones(len(toy.kinds), np.bool_)
    return ~mask_of(toy.schema, toy.kinds, wording.apart)


def counted(toy: Toy, wording: Wording, place: int) -> Known:
    """What brute force knows of the records that claims count."""
    known = known_of(toy, wording, place)
    return known.only(~known.apart)


def withheld(toy: Toy, *tables: Table) -> Toy:
    """The toy with all numbers of some tables unpublished, their totals too."""
    return hide_some(toy, *(line.variable for table in tables for line in table.lines))


# Why is it certain?


def explainer_of(toy: Toy, wording: Wording, place: Place, ladder: Ladder | None = None) -> Explainer:
    """As a run makes it: the numbers line by line, and the data set that was found."""
    lines = Lines.of(claimable_of(toy, wording))
    at = [toy.counts.column[line.variable] for line in lines.lines]
    first = int(place.problem.programs.first[place.number])
    cell = place.problem.cell[first : first + len(place.x)]
    lower, upper = toy.counts.lower[place.number, at], toy.counts.upper[place.number, at]
    return Explainer(lines, lower, upper, cell, place.x, ladder or Ladder())


Told = tuple[Predicate, int, int]  # records of this description are between two numbers


def numbers_of(reason: Reason) -> list[Told]:
    assert all(number.line.predicate is not None for number in reason.numbers)
    return [(number.line.predicate or EVERYONE, number.lower, number.upper) for number in reason.numbers]


def implied(toy: Toy, numbers: Sequence[Told], chosen: Flags, m: int) -> bool:
    """Do these kinds hold m records in every data set with these numbers? They are written down until one does not.

    Kinds of record that the same numbers count stand as one, and each holds at most `enough`: at least m + 1, and all
    that any of the numbers asks for. That misses nothing. Take a data set that counts fewer or more than m, and take
    away of every kind what is beyond `enough`: no sum grows, and a sum that loses anything still holds `enough` of
    that one kind. So it has the numbers as before, and counts fewer, or more, than m as before.
    """
    enough = max([m + 1, *(low for _, low, _ in numbers)])
    masks = [*(mask_of(toy.schema, toy.kinds, told) for told, _, _ in numbers), chosen]
    alike = sorted(set(zip(*(mask.tolist() for mask in masks), strict=True))) if len(toy.kinds) else []
    inside = [tuple(v for v, kind in enumerate(alike) if kind[row]) for row in range(len(masks))]
    limits: list[Limits] = [(mine, low, high) for mine, (_, low, high) in zip(inside, numbers, strict=False)]
    limits += [((v,), 0, enough) for v in range(len(alike))]
    fewer, more = (inside[-1], 0, m - 1), (inside[-1], m + 1, UNLIMITED)
    return not any(len(listed(len(alike), [*limits, broken], enough=1)) for broken in (fewer, more))


def check_reason(toy: Toy, place: int, chosen: Flags, m: int, reason: Reason, hidden: Iterable[str] = ()) -> None:
    """The numbers are published, of no hidden table, and imply the claim; without any one of them they do not."""
    numbers = numbers_of(reason)
    for number in reason.numbers:
        column = toy.counts.column[number.line.variable]
        assert (number.lower, number.upper) == (toy.counts.lower[place, column], toy.counts.upper[place, column])
        assert number.line in number.table.lines and number.table in toy.tables
        assert number.table.name not in set(hidden)
    assert implied(toy, numbers, chosen, m)
    assert reason.proof in (Proof.EXACT, Proof.TWO_ENGINES)
    for at in range(len(numbers) if reason.minimal else 0):
        assert not implied(toy, numbers[:at] + numbers[at + 1 :], chosen, m)
    zeros = [number.upper == 0 for number in reason.numbers]
    assert zeros == sorted(zeros), "what is there comes before what is not"


def plainly(toy: Toy) -> Toy:
    """The toy without the totals of tallies: they count answers, and no reason rests on them."""
    return hide_some(toy, *(line.variable for table in toy.tables for line in table.lines if line.predicate is None))


def some_of(rng: np.random.Generator, rows: Sequence[tuple[int, ...]], most: int) -> list[tuple[int, ...]]:
    return [rows[at] for at in rng.permutation(len(rows))[:most].tolist()]


def check_explained(toy: Toy, wording: Wording, seed: int, ladder: Ladder | None = None, most: int = 3) -> Counter[str]:
    """Some of the claims about every place, and some that are not certain; without some of the tables, too."""
    rng, seen = np.random.default_rng(seed), Counter[str]()
    every = described(toy, wording)
    for place in places_in(toy, wording):
        explainer = explainer_of(toy, wording, place, ladder)
        for hidden in ((), rng.permutation([table.name for table in toy.tables])[: 1 + seed % 2].tolist()):
            less = plainly(withheld(toy, *(table for table in toy.tables if table.name in hidden)))
            try:
                known = counted(less, wording, place.number)
            except TooMany:
                continue
            reach = {row: known.of(row) for row in every}
            certain = {row: low for row, (low, high) in reach.items() if low == high}
            for sort, wanted in (("none", [0]), ("one", [1]), ("several", range(2, 99))):
                for row in some_of(rng, [row for row, m in certain.items() if m in wanted], most):
                    description, m = predicate(toy, wording, row), certain[row]
                    reason = explainer.explain(description, m, hidden)
                    if ladder is None:
                        assert reason is not None and reason.minimal
                    if reason is not None:
                        chosen = mask_of(toy.schema, toy.kinds, description) & others(toy, wording)
                        check_reason(toy, place.number, chosen, m, reason, hidden)
                        seen[sort] += 1
                    assert explainer.explain(description, m + 1, hidden) is None
                    assert m == 0 or explainer.explain(description, m - 1, hidden) is None
            for row in some_of(rng, [row for row in every if row not in certain], most):
                for m in {reach[row][0], min(reach[row][0] + 1, reach[row][1])}:
                    assert explainer.explain(predicate(toy, wording, row), m, hidden) is None
                seen["open"] += 1
    return seen


@given(seed=seeds, options=published)
@settings(max_examples=often(12), phases=PHASES)
def test_the_numbers_of_a_reason_imply_the_claim_and_each_is_needed(seed: int, options: dict[str, Any]) -> None:
    """For claims of none, one and several records; and what is not certain has no reason."""
    toy, wording, _ = small(seed, **options)
    check_explained(toy, wording, seed)


@pytest.mark.parametrize(("at_once", "rounds"), [(1, 250), (2, 1), (40, 0)])
def test_reasons_with_many_numbers_are_found_in_the_same_way(
    at_once: int, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More lines than one number can mark, and more data sets than are looked at together."""
    monkeypatch.setattr("glasshouse.attack.claims.reasons.AT_ONCE", at_once)
    monkeypatch.setattr("glasshouse.attack.claims.reasons.ROUNDS", rounds)
    seen = Counter[str]()
    for seed in range(8):
        toy, wording, _ = small(seed, hide=0.25 * (seed % 2))
        seen += check_explained(toy, wording, seed, most=2)
    assert min(seen[sort] for sort in ("none", "one", "several", "open")) > 3


@pytest.mark.parametrize("rung", LITTLE)
def test_a_reason_is_right_however_little_may_be_done(rung: str) -> None:
    seen = Counter[str]()
    for seed in range(8):
        toy, wording, _ = small(seed, intervals=seed % 2 == 0)
        seen += check_explained(toy, wording, seed, LITTLE[rung], most=2)
    assert seen["none"] and seen["one"] and seen["open"]


def reason_for(toy: Toy, description: Predicate, m: int, *hidden: str) -> dict[str, tuple[int, int]] | None:
    """The variables that a reason rests on, with their numbers, in its order."""
    (place,) = places_in(toy, plain_words(toy.schema))
    reason = explainer_of(toy, plain_words(toy.schema), place).explain(description, m, hidden)
    if reason is None:
        return None
    check_reason(toy, 0, mask_of(toy.schema, toy.kinds, description), m, reason, hidden)
    assert reason.minimal
    return {number.line.variable: (number.lower, number.upper) for number in reason.numbers}


def test_the_example_of_the_paper_has_three_numbers_for_a_reason() -> None:
    """Section 4.2 of papers/002: one row with A = B = 0, one with B = C = 0 and one with B = 0."""
    schema = Schema(tuple(attribute(name, 2) for name in "abc"))
    tables = [
        total_table(schema, "block"),
        recoded(schema, "AB", universe={"a": [0], "b": [0]}),
        recoded(schema, "BC", universe={"b": [0], "c": [0]}),
        recoded(schema, "B", universe={"b": [0]}),
    ]
    toy = small_toy(schema, tables, (0, 0, 0), (0, 1, 1), (1, 1, 0))
    row = schema.where({"a": [0], "b": [0], "c": [0]})
    assert reason_for(toy, row, 1) == {"AB_1": (1, 1), "BC_1": (1, 1), "B_1": (1, 1)}
    assert all(reason_for(toy, row, 1, name) is None for name in ("AB", "BC", "B"))
    assert reason_for(toy, row, 1, "T0") == reason_for(toy, row, 1)
    assert reason_for(toy, schema.where({"b": [0]}), 1) == {"B_1": (1, 1)}, "it is printed"
    assert reason_for(toy, schema.where({"b": [1]}), 2) == {"T0_1": (3, 3), "B_1": (1, 1)}
    nobody_else = schema.where({"a": [1], "b": [0]})
    assert reason_for(toy, nobody_else, 0) == {"AB_1": (1, 1), "B_1": (1, 1)}


def test_a_reason_uses_what_is_left_of_the_tables() -> None:
    """Two records, both a0 and both b1: a table says its own, and a0 with b1 takes two of them."""
    toy = margins((0, 1), (0, 1))
    both = AB.where({"a": [0], "b": [1]})
    assert reason_for(toy, AB.where({"a": [0]}), 2) == {"A_2": (2, 2)}
    assert reason_for(toy, AB.where({"a": [0]}), 2, "A") is None
    assert reason_for(toy, AB.where({"a": [1]}), 0) == {"A_3": (0, 0)}
    assert {"A_2": (2, 2), "B_3": (2, 2)}.items() & (reason_for(toy, both, 2) or {}).items(), "one or the other count"
    assert reason_for(toy, AB.where({}), 2) == {"T0_1": (2, 2)}
    assert reason_for(toy, AB.where({}), 2, "T0") in ({"A_2": (2, 2), "A_3": (0, 0)}, {"B_3": (2, 2), "B_2": (0, 0)})
    assert reason_for(toy, both, 2, "T0", "A", "B") is None
    assert reason_for(toy, both, 1) is None and reason_for(toy, AB.where({"a": [0]}), 0) is None


def test_what_cannot_be_needs_no_number() -> None:
    """The schema says so itself."""
    schema = Schema(AB.attributes, (Impossible(AB.where({"a": [0], "b": [0]}), "so it is"),))
    toy = small_toy(schema, [recoded(schema, "A", "a")], (0, 1))
    assert reason_for(toy, schema.where({"a": [0], "b": [0]}), 0) == {}
    assert reason_for(toy, schema.where({"a": [0], "b": [1]}), 1) == {"A_2": (1, 1)}
    assert reason_for(toy, schema.where({"a": [0], "b": [0]}), 1) is None


def test_intervals_can_be_a_reason() -> None:
    """At most two in all, at least two of them a0."""
    toy = between(margins((0, 0), (0, 1)), {"T0_1": (1, 2), "A_2": (2, 9), "A_3": (0, UNLIMITED)})
    assert reason_for(toy, AB.where({"a": [0]}), 2) == {"T0_1": (1, 2), "A_2": (2, 9)}
    assert reason_for(toy, AB.where({"a": [1]}), 0) == {"T0_1": (1, 2), "A_2": (2, 9)}


@pytest.mark.xfail(strict=True, reason="a reason never rests on the total of a tally")
def test_the_total_of_a_tally_can_be_a_reason() -> None:
    """Level 0 counts twice: two answers of one record say that it is level 0. Lines that count records are hidden."""
    schema = Schema((attribute("a", 2),))
    some = Recode("some", "a", (Group("with 0", frozenset([0])), Group("any", frozenset([0, 1]))), tally=True)
    table = build_table(schema, name="T", level="block", title="T", by=[some], variable=lambda n: f"T_{n}", also=[1])
    toy = hide_some(small_toy(schema, [total_table(schema, "block"), table], (0,)), "T_2", "T_3")
    assert known_of(toy, plain_words(schema), 0).of((0,)) == (1, 1)
    assert reason_for(toy, schema.where({"a": [0]}), 1) == {"T0_1": (1, 1), "T_1": (2, 2)}


# Which table gives it away?


def verified_of(toy: Toy, wording: Wording, least: int) -> list[Verified]:
    return [verify(place, least) for place in places_in(toy, wording)]


def unlike(wider: Said, narrower: Said) -> set[tuple[int, ...]]:
    """The claims of one that the other does not make."""
    return {row for row, m in wider.items() if narrower.get(row) != m}


def check_change(change: Change, rows: set[tuple[int, ...]], verified: Verified) -> None:
    """These claims, and the kinds that they are of where they are certain."""
    kind_of = dict(zip(rows_of(verified.claims), verified.claims.candidates.kind.tolist(), strict=True))
    assert change == Change(len(rows), len({kind_of[row] for row in rows}), 0)


def all_known(toy: Toy, wording: Wording) -> list[Known] | None:
    """What brute force knows of the records of every place that claims count; None where that is too much."""
    try:
        return [counted(toy, wording, place) for place in range(len(toy.counts.places))]
    except TooMany:
        return None


def check_lost(toy: Toy, wording: Wording, least: int) -> Counter[str]:
    claimable, found = claimable_of(toy, wording), verified_of(toy, wording, least)
    known, seen = all_known(toy, wording), Counter[str]()
    for table in toy.tables if known is not None else ():
        without_it = all_known(withheld(toy, table), wording)
        if without_it is None:
            continue
        columns = columns_of_tables(toy.counts, [table])
        changes = lost(claimable, toy.counts, columns, found, np.random.default_rng(2))
        single = lost(claimable, toy.counts, columns, found, np.random.default_rng(2), singletons=True)
        for change, about_one, one, before, less in zip(changes, single, found, known, without_it, strict=True):
            gone = unlike(before.certain(least), less.certain(least))
            check_change(change, gone, one)
            check_change(about_one, {row for row in gone if before.of(row) == (1, 1)}, one)
            seen["lost" if gone else "kept"] += 1
    return seen


def check_gained(toy: Toy, wording: Wording, least: int, rng: np.random.Generator) -> Counter[str]:
    """Some tables are not used, and each of them is added alone."""
    claimable, seen = claimable_of(toy, wording), Counter[str]()
    unused = [table for table in toy.tables if rng.random() < 0.5]
    before = withheld(toy, *unused)
    known = all_known(before, wording)
    if known is None:
        return seen
    for table in unused:
        with_table = withheld(toy, *(other for other in unused if other is not table))
        with_it = all_known(with_table, wording)
        if with_it is None:
            continue
        columns = columns_of_tables(toy.counts, [table])
        changes = gained(claimable, with_table.counts, columns, least, np.random.default_rng(2))
        single = gained(claimable, with_table.counts, columns, least, np.random.default_rng(2), singletons=True)
        now = verified_of(with_table, wording, least)
        for change, about_one, one, less, more in zip(changes, single, now, known, with_it, strict=True):
            old, new = less.certain(least), more.certain(least)
            assert not unlike(old, new), "another table loses no claim"
            check_change(change, unlike(new, old), one)
            check_change(about_one, {row for row in unlike(new, old) if new[row] == 1}, one)
            seen["gained" if new != old else "same"] += 1
    return seen


@given(seed=seeds, options=published, data=st.data())
@settings(max_examples=often(12), phases=PHASES)
def test_claims_lost_without_a_table_are_those_that_are_certain_only_with_it(
    seed: int, options: dict[str, Any], data: st.DataObject
) -> None:
    toy, wording, _ = small(seed, **options)
    check_lost(toy, wording, data.draw(st.integers(1, len(wording.columns))))


@given(seed=seeds, options=published, data=st.data())
@settings(max_examples=often(12), phases=PHASES)
def test_claims_gained_with_a_table_are_those_that_are_certain_only_with_it(
    seed: int, options: dict[str, Any], data: st.DataObject
) -> None:
    toy, wording, _ = small(seed, **options)
    check_gained(toy, wording, data.draw(st.integers(1, len(wording.columns))), np.random.default_rng(seed))


@pytest.mark.parametrize("rung", LITTLE)
def test_claims_are_not_said_to_be_lost_or_gained_when_little_may_be_done(
    rung: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that are not decided are counted apart: they may be lost or not, gained or not."""
    monkeypatch.setattr("glasshouse.program.extremes.LISTED", 1)
    open_ = 0
    for seed in range(10):
        toy, wording, _ = small(seed, intervals=seed % 3 == 0)
        table = toy.tables[1 + seed % (len(toy.tables) - 1)]
        columns = columns_of_tables(toy.counts, [table])
        known, less = all_known(toy, wording), all_known(withheld(toy, table), wording)
        if known is None or less is None:
            continue
        claimable, ladder = claimable_of(toy, wording), LITTLE[rung]
        full = verified_of(toy, wording, 1)
        try:
            gone = lost(claimable, toy.counts, columns, full, np.random.default_rng(2), ladder)
            new = gained(claimable, toy.counts, columns, 1, np.random.default_rng(2), ladder)
        except NothingFits as nothing:
            if nothing.proof is not None:
                raise
            continue
        for one, other, more, fewer in zip(gone, new, known, less, strict=True):
            true = len(unlike(more.certain(1), fewer.certain(1)))
            assert one.claims <= true <= one.claims + one.undecided
            assert other.claims <= true <= other.claims + other.undecided
            open_ += one.undecided + other.undecided
    assert open_


def test_what_a_table_adds_to_one_record() -> None:
    """One record, a0 and b0: three claims are certain with all tables, none with the total, one with one margin."""
    toy, words = margins((0, 0)), plain_words(AB)
    claimable = claimable_of(toy, words)
    _, a, b = toy.tables
    assert columns_of_tables(toy.counts, [b]).tolist() == [name in b.variables for name in toy.counts.variables]
    for added, still, claims, kinds in (([a, b], [], 3, 1), ([a], [b], 1, 1), ([a], [], 2, 1), ([], [], 0, 0)):
        columns, counts = columns_of_tables(toy.counts, added), withheld(toy, *still).counts
        assert gained(claimable, counts, columns, 1, np.random.default_rng(1)) == [Change(claims, kinds, 0)]


@pytest.mark.parametrize("table", [1, 2])
def test_what_a_table_gives_away_of_one_record(table: int) -> None:
    """That it is b0 is certain without the table of a; that it is a0, and a0 with b0, is not."""
    toy, words = margins((0, 0)), plain_words(AB)
    columns = columns_of_tables(toy.counts, [toy.tables[table]])
    changes = lost(claimable_of(toy, words), toy.counts, columns, verified_of(toy, words, 1), np.random.default_rng(1))
    assert changes == [Change(2, 1, 0)]


def test_records_apart_are_neither_lost_nor_gained() -> None:
    """a0 with b0, and a1 with b0, which is apart: that one record is b0 is certain, and the total adds nothing."""
    toy = small_toy(AB, [total_table(AB, "block"), recoded(AB, "T", "a", "b")], (0, 0), (1, 0))
    words, chance = plain_words(AB, AB.where({"a": [1]})), np.random.default_rng(1)
    claimable, found = claimable_of(toy, words), verified_of(toy, words, 1)
    assert said(found[0].claims) == {(0, -1): 1, (-1, 0): 1, (0, 0): 1}
    for table, claims in zip(toy.tables, (0, 3), strict=True):
        columns = columns_of_tables(toy.counts, [table])
        assert [one.claims for one in lost(claimable, toy.counts, columns, found, chance)] == [claims]
        assert [one.claims for one in gained(claimable, toy.counts, columns, 1, chance)] == [claims]


def test_all_numbers_of_a_table_are_its_columns() -> None:
    """Its totals are, where they are published; those of other tables are not."""
    both = Recode("g", "a", (Group("a0", frozenset([0])), Group("a1", frozenset([1]))))
    table = build_table(AB, name="T", level="block", title="T", by=[both], variable=lambda n: f"T_{n}", also=[1])
    counts = small_toy(AB, [total_table(AB, "block"), table], (0, 0)).counts
    for tables in ([], [table], [total_table(AB, "block")]):
        wanted = [any(name.startswith(f"{some.name}_") for some in tables) for name in counts.variables]
        assert columns_of_tables(counts, tables).tolist() == wanted
    assert set(counts.variables) == {"T0_1", "T_1", "T_2", "T_3"}


def test_nothing_is_asked_of_a_place_without_claims() -> None:
    toy, words = margins(), plain_words(AB)
    columns = columns_of_tables(toy.counts, toy.tables[:2])
    found = verified_of(toy, words, 1)
    assert lost(claimable_of(toy, words), toy.counts, columns, found, np.random.default_rng(1)) == [Change(0, 0, 0)]


def named_tables(*names: str) -> list[Table]:
    return [total_table(AB, "block", name) for name in names]


def test_tables_go_by_families() -> None:
    """P16 with its iterations P16A to P16V; a name of another make stands for itself."""
    tables = named_tables("P16A", "H1", "P16", "PCT12", "P160", "P16V", "H1x", "16", "T_1", "B25001B", "PCT12AB")
    names = {name: tuple(table.name for table in group) for name, group in families(tables).items()}
    assert names == {
        "P16": ("P16A", "P16", "P16V"),
        "H1": ("H1", "H1x"),
        "PCT12": ("PCT12", "PCT12AB"),
        "P160": ("P160",),
        "16": ("16",),
        "T_1": ("T_1",),
        "B25001": ("B25001B",),
    }
    assert list(names) == ["P16", "H1", "PCT12", "P160", "16", "T_1", "B25001"], "in the order of the tables"
    assert [*named(tables, by_family=True).values()] == [*families(tables).values()]
    assert list(named(tables, by_family=True)) == ["P16, A-V", "H1", "PCT12", "P160", "16", "T_1", "B25001B"]
    alone = named(tables, by_family=False)
    assert list(alone) == [table.name for table in tables] and all(alone[t.name] == (t,) for t in tables)
    assert families([]) == named([], by_family=True) == named([], by_family=False) == {}


# What is ruled out?


def cells_of(toy: Toy, wording: Wording, place: Place) -> tuple[Ints, Ints]:
    """The live cells of a place, and the variable that each of them is part of."""
    claimable = claimable_of(toy, wording)
    whole = places_alone(claimable.compiled, tightened(toy.counts, toy.tables))
    mine = slice(whole.programs.first[place.number], whole.programs.first[place.number + 1])
    cells = whole.cell[mine].astype(np.int64)
    return cells, np.arange(len(cells)) if place.live.of is None else place.live.of


def can_hold(toy: Toy, place: int) -> Flags:
    """The kinds of record that some data set holds."""
    limits, kinds = toy.own_limits(place), len(toy.kinds)
    return np.array([satisfiable(kinds, [*limits, ((kind,), 1, UNLIMITED)]) for kind in range(kinds)], np.bool_)


def check_fillable(toy: Toy, wording: Wording, *, ladder: Ladder | None = None) -> int:
    """A variable can be filled when, and only when, each of its kinds of record can be."""
    checked, cells = 0, claimable_of(toy, wording).compiled.cells
    for place in places_in(toy, wording):
        found = fillable(place, ladder or Ladder())
        try:
            fine = can_hold(toy, place.number)
        except TooMany:
            continue
        filled = {int(cell): bool(sure) for cell, sure in zip(cells.of(toy.kinds.astype(np.int16)), fine, strict=True)}
        alive, variable = cells_of(toy, wording, place)
        for cell, sure in filled.items():
            at = variable[alive == cell]
            if len(at) and ladder is None:
                assert found.yes[at[0]] == sure and not found.open[at[0]]
            elif len(at):
                assert found.yes[at[0]] <= sure <= (found.yes | found.open)[at[0]]
            else:
                assert not sure, "a cell that is not live holds nothing"
            checked += 1
        assert not (found.yes & found.open).any()
        assert (found.proof == Proof.UNDECIDED) == found.open.any()
    return checked


def there(known: Known, description: Sequence[int]) -> bool:
    """Does a record match the description in some data set?"""
    return known.of(description)[1] > 0


def coarser(description: Sequence[int]) -> list[tuple[int, ...]]:
    """The description with one column less, if any is left."""
    fewer = [tuple(-1 if c == column else v for c, v in enumerate(description)) for column in range(len(description))]
    return [row for row in fewer if columns_of(row) == columns_of(description) - 1 and columns_of(row)]


def finer(description: Sequence[int], wide: Sequence[int]) -> bool:
    """Does one description say all that another says?"""
    return all(value in (-1, mine) for value, mine in zip(wide, description, strict=True))


def allowed(toy: Toy, wording: Wording, most: int) -> list[tuple[int, ...]]:
    """What can be said of a possible record that is not reported apart, by at most so many columns."""
    words = words_of(toy, wording)[others(toy, wording)]
    found = set()
    for k in range(1, most + 1):
        for some in combinations(range(words.shape[1]), k):
            found |= {tuple(v if c in some else -1 for c, v in enumerate(row)) for row in words.tolist()}
    return sorted(found)


def zero_lines(toy: Toy, place: int) -> list[Predicate]:
    """The lines of a place whose published number is 0."""
    upper, column = toy.counts.upper[place], toy.counts.column
    lines = [line for table in toy.tables for line in table.lines if line.variable in column]
    return [line.predicate for line in lines if line.predicate is not None and upper[column[line.variable]] == 0]


def absence_of(toy: Toy, wording: Wording, place: Place, most: int) -> Absence:
    """As a run asks for it."""
    patterns = Patterns(claimable_of(toy, wording), most)
    zeros = zero_masks(patterns, toy.counts.upper[place.number] == 0, toy.counts.variables)
    return absent(patterns, place, zeros)


def check_absent(toy: Toy, wording: Wording, most: int) -> Counter[str]:
    """The coarsest absent descriptions, all of them, and nothing else; what is called printed is."""
    seen = Counter[str]()
    everything, possible = allowed(toy, wording, most), allowed(toy, wording, len(wording.columns))
    words, known = words_of(toy, wording), all_known(toy, wording)
    if known is None:
        return seen
    for place, truth in zip(places_in(toy, wording), known, strict=True):
        found = absence_of(toy, wording, place, most)
        rows = [tuple(row) for row in found.values.tolist()]
        missing = {row for row in everything if not there(truth, row)}
        assert len(set(rows)) == len(rows) == len(found.printed)
        assert set(rows) == {row for row in missing if not missing & set(coarser(row))}
        assert found.proof in (Proof.EXACT, Proof.TWO_ENGINES)
        for fine in possible:  # of all columns, too
            around = [row for row in rows if finer(fine, row)]
            assert not around or not there(truth, fine)
            assert around or there(truth, fine) or columns_of(fine) > most
        for row, printed in zip(rows, found.printed.tolist(), strict=True):
            mine = matching(words, row) & others(toy, wording)
            inside = any((mine <= mask_of(toy.schema, toy.kinds, line)).all() for line in zero_lines(toy, place.number))
            assert printed <= inside
            if told_apart(wording) and len(wording.columns) == len(toy.schema.attributes):
                assert printed == inside
            seen[f"printed {printed}"] += 1
    return seen


def told_apart(wording: Wording) -> bool:
    """Is every level a value of its own?"""
    return all(len(levels) == 1 for groups in wording.groups.values() for levels in groups)


def counts_of(known: Known, description: Sequence[int], m: int) -> bool:
    """Do exactly m records match in some data set? Of a kind that no number limits there can always be more."""
    chosen = matching(known.values, description)
    sums = known.data @ chosen
    return bool((sums == m).any()) or (bool((chosen & known.endless).any()) and bool(sums.min() <= m))


def check_cannot(toy: Toy, wording: Wording, least: int, ladder: Ladder | None = None) -> Counter[str]:
    """What is listed must fit somebody, is not certain, and cannot be m; nothing is missed, unless a cell is cut."""
    known, seen = all_known(toy, wording), Counter[str]()
    if known is None:
        return seen
    every = [row for row in described(toy, wording) if columns_of(row) >= least]
    for place, truth in zip(places_in(toy, wording), known, strict=True):
        verified = verify(place, least, ladder or Ladder())
        candidates = verified.claims.candidates
        cut = (candidates.inside != candidates.meeting).any(axis=1)[candidates.kind]
        cut_through = {row for row, some in zip(rows_of(verified.claims), cut.tolist(), strict=True) if some}
        reach = {row: truth.of(row) for row in every}
        for m in (0, 1, 2, 3):
            listed_here: set[tuple[int, ...]] = set()
            for one in cannot(verified, m, ladder or Ladder()):
                mine = [tuple(row) for row in candidates.values[candidates.kind == one.kind].tolist()]
                assert mine and one.proof in (Proof.EXACT, Proof.TWO_ENGINES)
                for row in mine:
                    low, high = reach[row]
                    assert 1 <= one.low <= low and high <= one.high
                    assert (low < high or ladder is not None) and not counts_of(truth, row, m)
                    seen[f"{m}{' between' if low < m < high else ''}"] += 1
                assert not listed_here & set(mine), "each kind once"
                listed_here |= set(mine)
            for row, (low, high) in reach.items() if ladder is None else ():
                if 1 <= low < high and (m == 0 or row not in cut_through or not low < m < high):
                    assert (row in listed_here) == (not counts_of(truth, row, m))
    return seen


@given(seed=seeds, options=published)
@settings(max_examples=often(15), phases=PHASES)
def test_what_can_be_filled_is_what_some_data_set_holds(seed: int, options: dict[str, Any]) -> None:
    toy, wording, _ = small(seed, **options)
    check_fillable(toy, wording)


@given(seed=seeds, options=published, data=st.data())
@settings(max_examples=often(20), phases=PHASES)
def test_the_coarsest_absent_descriptions_are_listed(seed: int, options: dict[str, Any], data: st.DataObject) -> None:
    toy, wording, _ = small(seed, **options)
    check_absent(toy, wording, data.draw(st.integers(1, len(wording.columns))))


@given(seed=seeds, options=published, data=st.data())
@settings(max_examples=often(25), phases=PHASES)
def test_counts_that_are_ruled_out(seed: int, options: dict[str, Any], data: st.DataObject) -> None:
    toy, wording, _ = small(seed, **options)
    check_cannot(toy, wording, data.draw(st.integers(1, len(wording.columns))))


@pytest.mark.parametrize("rung", LITTLE)
def test_what_is_not_known_to_be_empty_is_not_called_absent(rung: str) -> None:
    """What is left open is neither filled nor ruled out."""
    open_ = 0
    for seed in range(12):
        toy, wording, _ = small(seed, intervals=seed % 2 == 0)
        check_fillable(toy, wording, ladder=LITTLE[rung])
        for place in places_in(toy, wording):
            patterns = Patterns(claimable_of(toy, wording), 2)
            some = [absent(patterns, place, np.empty((0, 0), np.int64), one) for one in (LITTLE[rung], Ladder())]
            known = fillable(place, LITTLE[rung])
            open_ += int(known.open.any())
            if known.open.any():
                assert some[0].proof == Proof.UNDECIDED
            rows = [{tuple(row) for row in one.values.tolist()} for one in some]
            assert all(any(finer(row, wide) for wide in rows[1]) for row in rows[0])
    assert open_


@pytest.mark.parametrize("rung", LITTLE)
def test_no_count_is_ruled_out_wrongly_however_little_may_be_done(rung: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glasshouse.program.extremes.LISTED", 1)
    seen = Counter[str]()
    for seed in range(15):
        toy, wording, _ = small(seed, intervals=seed % 3 == 0)
        seen += check_cannot(toy, wording, 1, LITTLE[rung])
    assert seen["0"] or seen["2"]


def absent_in(toy: Toy, wording: Wording, most: int = 2) -> dict[tuple[int, ...], bool]:
    """What is absent in the only place, and whether that is printed."""
    (place,) = places_in(toy, wording)
    found = absence_of(toy, wording, place, most)
    assert found.proof == Proof.EXACT
    return {tuple(row): printed for row, printed in zip(found.values.tolist(), found.printed.tolist(), strict=True)}


def test_absence_that_is_printed_and_absence_that_follows() -> None:
    """Two records, a0 with b0 and a1 with b1: the table of both prints the other pairs as 0.

    With the total, one pair and the margins only they follow.
    """
    pairs = {(0, 1), (1, 0)}
    toy = small_toy(AB, [recoded(AB, "T", "a", "b")], (0, 0), (1, 1))
    assert absent_in(toy, plain_words(AB)) == dict.fromkeys(pairs, True)
    assert absent_in(toy, plain_words(AB), 1) == {}
    toy = small_toy(AB, [*margins().tables, recoded(AB, "T", universe={"a": [0], "b": [0]})], (0, 0), (1, 1))
    assert absent_in(toy, plain_words(AB)) == dict.fromkeys(pairs, False)


def test_absence_is_printed_by_a_line_that_is_wider() -> None:
    """No a2 and no a1: said of each by a line of both, of a1 with b by nothing (a1 says more), and so of b1."""
    schema = Schema((attribute("a", 3), attribute("b", 2)))
    groups = Recode("g", "a", (Group("low", frozenset([0])), Group("high", frozenset([1, 2]))))
    table = build_table(schema, name="T", level="block", title="T", by=[groups], variable=lambda n: f"T_{n}")
    toy = small_toy(schema, [table], (0, 0))
    assert absent_in(toy, plain_words(schema)) == {(1, -1): True, (2, -1): True}
    toy = small_toy(schema, [table, recoded(schema, "B", "b", universe={"a": [0]})], (0, 0))
    assert absent_in(toy, plain_words(schema)) == {(1, -1): True, (2, -1): True, (-1, 1): False}, "b1 needs two lines"
    toy = small_toy(schema, [recoded(schema, "B", "b"), recoded(schema, "C", universe={"a": [0], "b": [1]})], (0, 0))
    assert absent_in(toy, plain_words(schema)) == {(-1, 1): True}, "by the line of b, not by that of a0 with b1"


def test_in_an_empty_place_every_value_is_absent() -> None:
    toy = small_toy(AB, [total_table(AB, "block")])
    assert absent_in(toy, plain_words(AB)) == dict.fromkeys([(0, -1), (1, -1), (-1, 0), (-1, 1)], True)


def test_absence_does_not_count_records_apart() -> None:
    """A record apart has b1, and so could others; but nobody else is there who does."""
    toy = small_toy(AB, [recoded(AB, "T", "a", "b")], (0, 0), (1, 1))
    assert absent_in(toy, plain_words(AB, AB.where({"a": [1]}))) == {(-1, 1): True}
    assert absent_in(toy, plain_words(AB, AB.where({"a": [0]}))) == {(-1, 0): True}


def test_absence_takes_hidden_numbers_for_anything() -> None:
    """With the margin of b hidden any pair with a0 can be; a1 is still printed as 0."""
    toy = hide_some(margins((0, 0), (0, 0)), "B_2", "B_3")
    assert absent_in(toy, plain_words(AB)) == {(1, -1): True}
    toy = hide_some(margins((0, 0), (0, 0)), "A_3", "B_3")
    assert absent_in(toy, plain_words(AB)) == {(1, -1): False, (-1, 1): False}, "the totals say so, no printed zero"


def ruled(toy: Toy, wording: Wording, m: int, least: int = 1, seed: int = 1) -> dict[tuple[int, ...], tuple[int, int]]:
    (place,) = places_in(toy, wording, seed=seed)
    verified = verify(place, least)
    kind = verified.claims.candidates.kind.tolist()
    found = {one.kind: (one.low, one.high) for one in cannot(verified, m)}
    return {row: found[of] for row, of in zip(rows_of(verified.claims), kind, strict=True) if of in found}


def test_a_count_between_the_least_and_the_most_can_be_ruled_out() -> None:
    """As many are a0 as are a2, namely 2 less those that are a1; one is a3: so 1, 3 or 5 are one of these three."""
    schema = Schema((attribute("a", 4),))
    counted_here = (("L", [0, 1]), ("H", [1, 2]), ("Z", [3]))
    tables = [recoded(schema, name, universe={"a": levels}) for name, levels in counted_here]
    toy = small_toy(schema, tables, (0,), (1,), (2,), (3,))
    words = wording_of("a", {"a": [[0, 2, 3], [1]]})
    for m in range(8):
        assert ruled(toy, words, m) == ({} if m in (1, 3, 5) else {(0,): (1, 5)})
    everyone_else = wording_of("a", {"a": [[0, 2], [1, 3]]})
    assert ruled(toy, everyone_else, 1) == {} and ruled(toy, everyone_else, 4) == {(1,): (1, 3)}, (
        "0, 2 or 4 may be none"
    )


def test_at_least_one_there_must_be() -> None:
    """Three records, two of them a0 and two b0: at least one is both, at most two; at most one is neither."""
    toy = margins((0, 0), (0, 1), (1, 0))
    assert ruled(toy, plain_words(AB), 0) == {(0, 0): (1, 2)}
    assert ruled(toy, plain_words(AB), 0, 2) == {(0, 0): (1, 2)}
    assert ruled(toy, plain_words(AB), 1) == {}
    assert (0, 0) not in ruled(toy, plain_words(AB), 2)
    assert ruled(small_toy(AB, [recoded(AB, "T", "a", "b")], (0, 0)), plain_words(AB), 0) == {}, "all is certain"


def test_what_no_number_limits_can_be_filled() -> None:
    """Nothing is published of a1, so there may be one; the core is not to be asked how many."""
    toy = small_toy(ONE, [recoded(ONE, "A", universe={"a": [0]})], (0,))
    (place,) = places_in(toy, plain_words(ONE))
    assert fillable(place).yes.tolist() == [True, True]


def at_least(most: int) -> Toy:
    """At least two records, one or up to so many of them a0; what is published of a1 is hidden."""
    toy = small_toy(ONE, [total_table(ONE, "block"), recoded(ONE, "A", "a")], (0,), (1,))
    return between(toy, {"T0_1": (2, UNLIMITED), "A_2": (1, most), "A_3": (0, UNLIMITED)})


def test_what_there_is_at_least_has_no_limit() -> None:
    """At least one is a1, and there may be any number."""
    assert ruled(at_least(1), plain_words(ONE), 0) == {(1,): (1, UNLIMITED)}


def test_engines_can_be_asked_where_there_is_at_least_something() -> None:
    (place,) = places_in(at_least(2), plain_words(ONE), Ladder(nodes=0))
    found = verify(place, 1, Ladder(nodes=0))
    assert said(found.claims) == {} and found.records[0] <= 2 and found.records[1] == UNLIMITED


def test_what_is_ruled_out_does_not_depend_on_the_data_set_that_was_found_first() -> None:
    """A count of 2 can be of a0 with b0 only; which of the three others are said not to have it is left to chance."""
    found = [ruled(margins((0, 0), (0, 1), (1, 0)), plain_words(AB), 2, seed=seed) for seed in range(8)]
    assert all(one == found[0] for one in found)


def test_a_zero_for_part_of_a_value_does_not_print_that_it_is_absent() -> None:
    """No a0 by one line, no a1 by another: that there is neither is printed nowhere."""
    schema = Schema((attribute("a", 3),))
    toy = small_toy(schema, [recoded(schema, "A", "a")], (2,))
    assert absent_in(toy, wording_of("a", {"a": [[0, 1], [2]]})) == {(0,): False}


def test_a_zero_for_some_of_the_records_does_not_print_that_others_are_absent() -> None:
    """Nobody has c1, which is printed; and there is no a2, which follows. With claims about a both seem printed."""
    schema = Schema((attribute("a", 3), attribute("c", 2)))
    tables = [total_table(schema, "block"), recoded(schema, "C", universe={"c": [1]})]
    tables += [recoded(schema, f"A{i}", universe={"a": [i]}) for i in (0, 1)]
    toy = between(small_toy(schema, tables, (0, 0), (1, 0)), {"A0_1": (1, 9), "A1_1": (1, 9)})
    assert absent_in(toy, wording_of("a", {"a": [[0], [1], [2]]})) == {(2,): False}


def test_a_zero_for_all_that_can_be_prints_that_a_description_is_absent() -> None:
    """a1 with b1 cannot be, so the zero of a1 with b0 says that there is no a1."""
    schema = Schema(AB.attributes, (Impossible(AB.where({"a": [1], "b": [1]}), "so it is"),))
    toy = small_toy(schema, [total_table(schema, "block"), recoded(schema, "T", "a", "b")], (0, 1), (0, 0))
    assert absent_in(toy, plain_words(schema)) == {(1, -1): True}


# What do hidden numbers still say?


def with_parts(rng: np.random.Generator) -> Toy:
    """Totals of totals, universes, a line 'of which', and some numbers printed twice; intervals and hidden numbers."""
    schema = Schema((attribute("a", 3), attribute("b", 2), attribute("c", 2)))
    either = Recode("e", "b", (Group("b0", frozenset([0])), Group("b1", frozenset([1]))))
    of_which = {"b0": OfWhich("c1", schema.where({"c": [1]}))}
    tables = [
        recoded(schema, "C", "c", universe={"a": [0], "b": [0]}),
        recoded(schema, "B", "b", universe={"a": [0]}),
        build_table(
            schema, name="W", level="block", title="W", by=[either], variable=lambda n: f"W_{n}", of_which=of_which
        ),
        recoded(schema, "A", "a"),
        recoded(schema, "D", "a"),
        total_table(schema, "block"),
    ]
    kinds = [(a, b, c) for a in range(3) for b in range(2) for c in range(2)]
    toy = small_toy(schema, tables, *(kinds[i] for i in rng.integers(0, 12, rng.integers(0, 4)).tolist()))
    lower, upper = toy.counts.lower.copy(), toy.counts.upper.copy()
    draw = rng.random(lower.shape)
    lower[draw < 0.2] -= 1
    upper[(draw > 0.1) & (draw < 0.3)] += 1
    gone = draw > rng.choice([0.5, 0.8])
    gone[:, toy.counts.column["T0_1"]] = False
    lower[gone], upper[gone] = 0, UNLIMITED
    return replace(toy, counts=replace(toy.counts, lower=lower, upper=upper))


def check_tightened(toy: Toy) -> Counter[str]:
    """Every data set that fitted still does; and what is not known now is as it was."""
    before, after, seen = toy.counts, tightened(toy.counts, toy.tables), Counter[str]()
    assert (after.level, after.places, after.variables) == (before.level, before.places, before.variables)
    known = after.lower == after.upper
    same = (after.lower == before.lower) & (after.upper == before.upper)
    assert (known | same).all()
    seen["found"] += int((known & ~same).sum())
    try:
        every = toy.alone
    except TooMany:
        return seen
    for place, data in enumerate(every):
        for inside, low, high in replace(toy, counts=after).own_limits(place):
            sums = data[:, list(inside)].sum(axis=1)
            assert (low <= sums).all() and (sums <= high).all()
        seen["data sets"] += len(data)
    return seen


@given(seed=seeds)
@settings(max_examples=often(25), phases=PHASES)
def test_totals_rule_no_data_set_out(seed: int) -> None:
    check_tightened(with_parts(np.random.default_rng(seed)))


@given(seed=seeds, options=published)
@settings(max_examples=often(15), phases=PHASES)
def test_totals_of_any_tables_rule_no_data_set_out(seed: int, options: dict[str, Any]) -> None:
    toy, _, _ = small(seed, **options | {"kinds": 12, "people": 3})
    check_tightened(toy)


def test_totals_find_something() -> None:
    seen = Counter[str]()
    for seed in range(20):
        seen += check_tightened(with_parts(np.random.default_rng(seed)))
    assert seen["found"] > 20 and seen["data sets"] > 100


def shown(counts: Counts) -> dict[str, tuple[int, int]]:
    """The numbers of the only place that are no longer hidden."""
    numbers = zip(counts.variables, counts.lower[0].tolist(), counts.upper[0].tolist(), strict=True)
    return {name: (low, high) for name, low, high in numbers if high < UNLIMITED}


def test_all_hidden_zeros_of_a_partition_come_back() -> None:
    """Also where the total is itself a hidden zero of another table, and where the total is printed in that one."""
    schema = Schema((attribute("a", 3), attribute("b", 2)))
    by_a = [recoded(schema, f"B{i}", "b", universe={"a": [i]}) for i in range(3)]
    for tables in (
        [total_table(schema, "block"), recoded(schema, "A", "a"), *by_a],
        [*by_a, recoded(schema, "A", "a")],
    ):
        tables = [*tables, total_table(schema, "block", "T9")]
        toy = small_toy(schema, tables, (0, 0), (0, 0), (0, 1), (2, 1))
        less = without(toy.counts, toy.counts.lower == 0)
        assert (less.upper == UNLIMITED).sum() == 4
        again = tightened(less, toy.tables)
        assert again.lower.tolist() == again.upper.tolist() == toy.counts.lower.tolist()


def test_a_hidden_zero_of_an_of_which_line_does_not_come_back() -> None:
    """What it counts is no part of a sum; the zeros of the table around it do come back."""
    either = Recode("e", "a", (Group("a0", frozenset([0])), Group("a1", frozenset([1]))))
    of_which = {"a0": OfWhich("b1", AB.where({"b": [1]}))}
    table = build_table(
        AB, name="W", level="block", title="W", by=[either], variable=lambda n: f"W_{n}", of_which=of_which
    )
    assert [line.variable for line in table.of_which] == ["W_3"]
    toy = small_toy(AB, [total_table(AB, "block"), table], (0, 0))
    hidden = without(toy.counts, toy.counts.lower == 0)
    assert shown(hidden) == {"T0_1": (1, 1), "W_2": (1, 1)}
    assert shown(tightened(hidden, toy.tables)) == {"T0_1": (1, 1), "W_2": (1, 1), "W_4": (0, 0)}


def test_what_totals_leave_open_stays_as_it_was() -> None:
    """Two of three hidden: at most 2 each, but that is not written down. One of three hidden: it is known."""
    schema = Schema((attribute("a", 3),))
    toy = small_toy(schema, [total_table(schema, "block"), recoded(schema, "A", "a")], (0,), (1,), (2,))
    assert shown(tightened(hide_some(toy, "A_2", "A_3").counts, toy.tables)) == {"T0_1": (3, 3), "A_4": (1, 1)}
    assert shown(tightened(hide_some(toy, "A_2").counts, toy.tables)) == shown(toy.counts)
    wide = between(toy, {"A_2": (0, 9), "A_3": (-2, 2)})
    assert shown(tightened(wide.counts, toy.tables)) == shown(wide.counts)
    lone = hide_some(toy, "T0_1")
    assert shown(tightened(lone.counts, toy.tables)) == shown(lone.counts), (
        "a total is not added up: the core does that"
    )
    assert tightened(toy.counts, toy.tables) is toy.counts


def test_parts_that_must_be_as_large_as_they_can_be() -> None:
    """Three records in three cells of at most one each."""
    schema = Schema((attribute("a", 3),))
    toy = small_toy(schema, [total_table(schema, "block"), recoded(schema, "A", "a")], (0,), (1,), (2,))
    one = between(toy, dict.fromkeys(("A_2", "A_3", "A_4"), (0, 1)))
    assert shown(tightened(one.counts, toy.tables)) == shown(toy.counts)
    most = between(toy, {"A_2": (0, 1), "A_3": (0, 1), "A_4": (0, UNLIMITED), "T0_1": (0, 3)})
    assert shown(tightened(most.counts, toy.tables)) == shown(most.counts), "less would do"


def test_two_tables_print_one_number() -> None:
    toy = small_toy(ONE, [recoded(ONE, "A", "a"), recoded(ONE, "B", universe={"a": [0]})], (0,), (0,))
    both = between(toy, {"A_2": (0, 2), "A_3": (0, 3), "B_1": (2, 5)})
    assert shown(tightened(both.counts, toy.tables)) == {"A_2": (2, 2), "A_3": (0, 3), "B_1": (2, 2)}


def test_a_tally_divides_nothing() -> None:
    """Level 0 is in both of its groups: that one of them has all does not empty the other."""
    groups = Recode("g", "a", (Group("any", frozenset([0, 1])), Group("zero", frozenset([0]))), tally=True)
    table = build_table(ONE, name="T", level="block", title="T", by=[groups], variable=lambda n: f"T_{n}")
    toy = hide_some(small_toy(ONE, [total_table(ONE, "block"), table], (0,)), "T_3")
    assert shown(tightened(toy.counts, toy.tables)) == {"T0_1": (1, 1), "T_2": (1, 1)}


@given(ends=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2) | st.none()), min_size=4, max_size=4))
@settings(max_examples=often(40), phases=PHASES)
def test_a_part_is_found_exactly_when_it_has_one_value(ends: list[tuple[int, int | None]]) -> None:
    """A total and three parts between any two numbers: which parts have one value, by writing all of them down."""
    schema = Schema((attribute("a", 3),))
    toy = small_toy(schema, [total_table(schema, "block"), recoded(schema, "A", "a")])
    limits = [(low, UNLIMITED if more is None else low + more) for low, more in ends]
    toy = between(toy, dict(zip(toy.counts.variables, limits, strict=True)))
    total, *parts = limits
    data = [
        some
        for some in product(range(8), repeat=3)
        if total[0] <= sum(some) <= total[1]
        and all(low <= n <= high for n, (low, high) in zip(some, parts, strict=True))
    ]
    found = tightened(toy.counts, toy.tables)
    for part in range(3) if data else ():
        values = {some[part] for some in data}
        mine = int(found.lower[0, part + 1]), int(found.upper[0, part + 1])
        assert mine == ((min(values), max(values)) if len(values) == 1 else parts[part])


def test_numbers_are_hidden_where_that_is_asked_for() -> None:
    counts = margins((0, 0), (1, 0)).counts
    none, all_ = np.zeros(counts.lower.shape, np.bool_), np.ones(counts.lower.shape, np.bool_)
    assert without(counts, none) is counts
    assert shown(without(counts, all_)) == {}
    some = none.copy()
    some[0, [1, 3]] = True
    less = without(counts, some)
    assert less.lower.tolist() == [[2, 0, 1, 0, 0]] and less.upper.tolist() == [[2, UNLIMITED, 1, UNLIMITED, 0]]
    assert (less.level, less.places, less.variables) == (counts.level, counts.places, counts.variables)
    assert counts.lower.tolist() == [[2, 1, 1, 2, 0]] == counts.upper.tolist(), "the counts stay"


# Which solutions lie next to one?


def part_of(matrix: Ints, x: Ints, lower: Ints, upper: Ints, slack: int = 0) -> Programs:
    """A program with these rows, of which x is a solution; a row may be off by `slack` either way."""
    rows, columns = np.nonzero(matrix)
    starts = np.concatenate([[0], np.cumsum((matrix != 0).sum(axis=1))]).astype(np.int64)
    sums = (matrix @ x).astype(np.int64)
    first, row_first = np.array([0, len(x)]), np.array([0, len(matrix)])
    values = matrix[rows, columns].astype(np.int64)
    return Programs(
        first, lower, upper, row_first, sums - slack, sums + slack, starts, columns.astype(np.int32), values
    )


def random_part(rng: np.random.Generator, *, alike: bool = False) -> tuple[Programs, Ints, Ints]:
    """Few cells in few rows, those of a small table or any; no two cells in the same rows unless `alike`."""
    if rng.random() < 0.5:
        shape = ((2, 2), (2, 3), (3, 3), (2, 2, 2))[rng.integers(0, 4)]
        cells = np.indices(shape).reshape(len(shape), -1)
        matrix = np.array([cells[axis] == level for axis, size in enumerate(shape) for level in range(size)], np.int64)
    else:
        matrix = rng.choice([0, 0, 1, 1, 2], (rng.integers(1, 5), rng.integers(2, 9)))
        matrix = matrix if alike else np.unique(matrix, axis=1)
        matrix = matrix[:, rng.permutation(matrix.shape[1])]
    matrix = matrix[matrix.any(axis=1)]
    if alike:
        matrix = matrix[:, rng.integers(0, matrix.shape[1], matrix.shape[1] + 1)]
    lower = rng.choice([0, 0, 0, 1], matrix.shape[1])
    x = lower + rng.choice([0, 1, 1, 2], matrix.shape[1])
    upper = np.minimum(x + rng.integers(0, 4, len(x)), rng.choice([2, 9, UNLIMITED]) + x)
    return part_of(matrix, x, lower, upper, int(rng.integers(0, 2))), matrix, x


def moved(x: Ints, move: Sequence[int]) -> Ints:
    there = x.copy()
    for cell, change in zip(move, (-1, -1, 1, 1), strict=True):
        there[cell] += change
    return there


def all_exchanges(part: Programs, matrix: Ints, x: Ints) -> set[tuple[int, ...]]:
    """Two cells that give, two others that take, so that every row stays and every cell keeps to its limits."""
    pairs = list(combinations_with_replacement(range(len(x)), 2))
    found = set()
    for giving, taking in product(pairs, pairs):
        there = moved(x, (*giving, *taking))
        fits = (part.lower <= there).all() and (there <= part.upper).all()
        if not set(giving) & set(taking) and fits and (matrix @ there == matrix @ x).all():
            found.add((*giving, *taking))
    return found


def all_of(moves: Moves) -> list[tuple[int, ...]]:
    return [tuple(move) for move in moves.tolist()]


def test_all_exchanges_of_small_parts_are_found() -> None:
    met = 0
    for seed in range(60):
        part, matrix, x = random_part(np.random.default_rng(seed))
        found = all_of(exchanges(part, x, np.random.default_rng(1)))
        assert len(set(found)) == len(found)
        assert set(found) == all_exchanges(part, matrix, x)
        assert all(part.fit(moved(x, move)).all() for move in found)
        met += len(found)
    assert met > 100


def test_all_exchanges_are_found_where_cells_are_in_the_same_rows() -> None:
    met = 0
    for seed in range(60):
        part, matrix, x = random_part(np.random.default_rng(seed), alike=True)
        found = all_of(exchanges(part, x, np.random.default_rng(1)))
        assert len(set(found)) == len(found) and set(found) == all_exchanges(part, matrix, x)
        assert all(part.fit(moved(x, move)).all() for move in found)
        met += len(found)
    assert met > 200


def test_exchanges_in_programs_of_any_rows() -> None:
    """Those of several programs taken alone, with numbers that are intervals."""
    for seed in range(40):
        programs, limits = random_programs(np.random.default_rng(seed))
        for number, mine in enumerate(limits):
            part = programs.only(number)
            for x in listed(len(part.lower), mine, enough=3):
                for move in all_of(exchanges(part, x, np.random.default_rng(seed))):
                    assert part.fit(moved(x, move)).all()
                    assert (part.sums(moved(x, move)) == part.sums(x)).all()


def square(*x: int, lower: int = 0, upper: int = UNLIMITED) -> tuple[Programs, Ints]:
    """A table of two by two, of which the margins are known."""
    matrix = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]])
    start = np.array(x, np.int64)
    return part_of(matrix, start, np.full(4, lower), np.full(4, upper)), start


@pytest.mark.parametrize(
    ("x", "lower", "upper", "wanted"),
    [
        ((1, 0, 0, 1), 0, 9, {(0, 3, 1, 2)}),
        ((0, 2, 3, 0), 0, 9, {(1, 2, 0, 3)}),
        ((1, 1, 1, 1), 0, 2, {(0, 3, 1, 2), (1, 2, 0, 3)}),
        ((1, 1, 1, 1), 0, 1, set()),  # no cell can take
        ((1, 1, 1, 1), 1, 9, set()),  # no cell can give
        ((2, 1, 1, 2), 1, 9, {(0, 3, 1, 2)}),
        ((2, 2, 1, 2), 1, 2, set()),  # the second can give to none, and take from none
        ((1, 0, 0, 0), 0, 9, set()),
        ((0, 0, 0, 0), 0, 9, set()),
    ],
)
def test_exchanges_keep_to_the_limits(x: tuple[int, ...], lower: int, upper: int, wanted: set[Any]) -> None:
    part, start = square(*x, lower=lower, upper=upper)
    assert set(all_of(exchanges(part, start, np.random.default_rng(1)))) == wanted


def test_a_cell_can_give_or_take_twice() -> None:
    """One row counts the first cell once, the second twice, the third not at all; another counts all."""
    matrix = np.array([[1, 2, 0], [1, 1, 1]])
    for x, upper, wanted in (
        ([2, 0, 0], [9, 9, 9], {(0, 0, 1, 2)}),
        ([1, 0, 0], [9, 9, 9], set()),
        ([0, 1, 1], [9, 9, 9], {(1, 2, 0, 0)}),
        ([0, 1, 1], [1, 9, 9], set()),
    ):
        start = np.array(x, np.int64)
        part = part_of(matrix, start, np.zeros(3, np.int64), np.array(upper, np.int64))
        assert set(all_of(exchanges(part, start, np.random.default_rng(1)))) == wanted


def wide_part() -> tuple[Programs, Ints]:
    """Five by five, all filled: many exchanges."""
    cells = np.indices((5, 5)).reshape(2, -1)
    matrix = np.array([cells[axis] == level for axis in range(2) for level in range(5)], np.int64)
    x = np.ones(25, np.int64)
    return part_of(matrix, x, np.zeros(25, np.int64), np.full(25, 9)), x


def test_no_more_exchanges_are_found_than_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of ten times ten pairs of rows and columns, both ways; fewer are a choice of those."""
    part, x = wide_part()
    every = all_of(exchanges(part, x, np.random.default_rng(1)))
    assert len(set(every)) == len(every) == 200
    for most in (1, 7, 199, 200, 201):
        some = all_of(exchanges(part, x, np.random.default_rng(1), most))
        assert len(some) == len(set(some)) == min(most, 200) and set(some) <= set(every)
    chosen = {tuple(all_of(exchanges(part, x, np.random.default_rng(seed), 7))) for seed in range(4)}
    assert len(chosen) > 1, "left to chance"
    monkeypatch.setattr("glasshouse.program.moves.WORK", 25)  # one pair of cells
    for seed in range(5):
        some = all_of(exchanges(part, x, np.random.default_rng(seed)))
        assert set(some) <= set(every) and len({move[:2] for move in some}) <= 1


def test_the_same_chance_gives_the_same_exchanges_and_walks() -> None:
    for part, x in (wide_part(), *(random_part(np.random.default_rng(seed))[::2] for seed in range(20))):
        before = x.copy()
        moves, again = (exchanges(part, x, np.random.default_rng(5)) for _ in range(2))
        assert moves.tolist() == again.tolist()
        walks = [wandered(part, x, moves, np.random.default_rng(6)) for _ in range(2)]
        assert walks[0].tolist() == walks[1].tolist()
        assert (x == before).all(), "the solution it begins with stays"


def test_a_walk_ends_at_a_solution() -> None:
    """In the same rows, within the limits; seldom where it began."""
    away = 0
    for seed in range(60):
        part, matrix, x = random_part(np.random.default_rng(seed), alike=seed % 3 == 0)
        moves = exchanges(part, x, np.random.default_rng(seed))
        there = wandered(part, x, moves, np.random.default_rng(seed))
        assert part.fit(there).all() and (matrix @ there == matrix @ x).all()
        away += int((there != x).any())
    assert away > 20
    part, x = wide_part()
    ends = {
        tuple(wandered(part, x, exchanges(part, x, np.random.default_rng(1)), np.random.default_rng(s)))
        for s in range(5)
    }
    assert len(ends) == 5


def test_a_walk_that_would_leave_the_solutions_is_not_taken() -> None:
    """Moves that are not exchanges lead nowhere; those that break a limit are passed over, the others are made."""
    part, x = square(1, 0, 0, 1)
    assert wandered(part, x, np.array([[0, 0, 1, 1], [0, 3, 3, 3]]), np.random.default_rng(1)).tolist() == x.tolist()
    assert wandered(part, x, np.empty((0, 4), np.int64), np.random.default_rng(1)).tolist() == x.tolist()
    once = np.array([[0, 3, 1, 2]])
    assert wandered(part, x, once, np.random.default_rng(1)).tolist() == [0, 1, 1, 0]
    assert wandered(part, x, np.repeat(once, 3, axis=0), np.random.default_rng(1)).tolist() == [0, 1, 1, 0]
    part, x = square(2, 0, 0, 2)
    for full in range(1, 3):  # one of the two that take
        part = replace(part, upper=np.array([9, 9 - 8 * (full == 1), 9 - 8 * (full == 2), 9]))
        assert wandered(part, x, np.repeat(once, 2, axis=0), np.random.default_rng(1)).tolist() == [1, 1, 1, 1]


def test_exchanges_with_cells_in_the_same_rows_are_found() -> None:
    """Three cells in one row: two records in the first could be in the two others. All are promised, none is found."""
    x = np.array([2, 0, 0], np.int64)
    part = part_of(np.ones((1, 3), np.int64), x, np.zeros(3, np.int64), np.full(3, 9))
    assert set(all_of(exchanges(part, x, np.random.default_rng(1)))) == {(0, 0, 1, 1), (0, 0, 1, 2), (0, 0, 2, 2)}


# How surprising is it?


records_and_descriptions = st.integers(1, 4).flatmap(
    lambda columns: st.tuples(
        st.lists(st.tuples(*[st.integers(0, 3)] * columns), max_size=12),
        st.lists(st.tuples(*[st.integers(-1, 5)] * columns), max_size=12),
    )
)


def values_of(rows_here: Sequence[tuple[int, ...]], columns: int) -> np.ndarray:
    return np.array(rows_here, np.int16).reshape(len(rows_here), columns)


@given(drawn=records_and_descriptions, columns=st.integers(1, 4))
@settings(max_examples=often(60))
def test_a_prior_counts_as_plain_counting_does(drawn: tuple[list[Any], list[Any]], columns: int) -> None:
    """With columns that are not named, and with values that nobody has."""
    people, descriptions = drawn
    columns = len((people + descriptions + [(0,) * columns])[0])
    prior = Prior.of(values_of(people, columns))
    assert prior.total == len(people)
    wanted = [
        sum(all(v in (-1, has) for v, has in zip(row, one, strict=True)) for one in people) for row in descriptions
    ]
    for _ in range(2):  # tables are kept
        assert prior.counts(values_of(descriptions, columns)).tolist() == wanted
    nothing = values_of([(-1,) * columns], columns)
    assert prior.counts(nothing).tolist() == [len(people)]


def test_a_prior_of_different_values_and_how_many_have_them() -> None:
    """As a whole state is given; values come in any order."""
    prior = Prior(values_of([(1, 0), (0, 2)], 2), np.array([3, 4]))
    asked = [(1, -1), (0, -1), (-1, 2), (-1, 0), (1, 0), (1, 2), (-1, -1), (2, -1), (-1, 1), (-1, 3), (3, 9)]
    assert prior.total == 7
    assert prior.counts(values_of(asked, 2)).tolist() == [3, 4, 4, 3, 3, 0, 7, 0, 0, 0, 0]


def test_values_that_nobody_has_are_counted_as_none() -> None:
    """Also where they would share a number with others if they were written side by side."""
    prior = Prior.of(values_of([(0, 0), (0, 1), (1, 0)], 2))
    unseen = [(0, 2), (0, 3), (0, 30), (2, 0), (30, 0), (1, 1), (30, 30), (-1, 2), (2, -1), (-1, 3), (3, -1)]
    assert prior.counts(values_of(unseen, 2)).tolist() == [0] * len(unseen)
    nobody = Prior.of(values_of([], 2))
    assert nobody.total == 0 and nobody.counts(values_of([*unseen, (-1, -1), (0, 0)], 2)).tolist() == [0] * 13
    assert prior.counts(values_of([], 2)).tolist() == []


@given(matching_here=st.integers(0, 30), others_here=st.integers(0, 30), n=st.integers(0, 300), data=st.data())
@settings(max_examples=often(60))
def test_the_chance_of_a_claim_is_binomial(matching_here: int, others_here: int, n: int, data: st.DataObject) -> None:
    m = [*data.draw(st.lists(st.integers(0, n), max_size=6)), 0, n]
    prior = Prior.of(values_of([(1,)] * matching_here + [(0,)] * others_here, 1))
    chance = prior.chance(values_of([(1,)] * len(m), 1), np.array(m), n)
    share = matching_here / max(matching_here + others_here, 1)
    assert np.abs(chance - binom.pmf(m, n, share)).max() <= 1e-12


def test_the_chance_of_what_all_or_none_have() -> None:
    """p = 0 and p = 1 leave no doubt; and without anybody to be drawn from nobody matches."""
    prior = Prior.of(values_of([(0, 0), (0, 1)], 2))
    asked, m = [(0, -1), (0, -1), (0, -1), (1, -1), (1, -1), (-1, 1), (0, 0)], [5, 4, 0, 0, 1, 5, 0]
    chance = prior.chance(values_of(asked, 2), np.array(m), 5)
    assert chance.tolist() == pytest.approx([1, 0, 0, 1, 0, 1 / 32, 1 / 32], abs=1e-12)
    assert prior.chance(values_of([(0, 1), (1, 1)], 2), np.array([0, 0]), 0).tolist() == [1, 1]
    assert Prior.of(values_of([], 1)).chance(values_of([(0,), (0,)], 1), np.array([0, 1]), 3).tolist() == [1, 0]


def test_all_chances_of_a_description_add_up_to_one() -> None:
    prior = Prior.of(values_of([(0,), (0,), (1,), (2,)], 1))
    for n in (1, 7, 200):
        chance = prior.chance(values_of([(0,)] * (n + 1), 1), np.arange(n + 1), n)
        assert chance.sum() == pytest.approx(1, abs=1e-11)


def test_a_prior_of_many_columns_counts_as_plain_counting_does() -> None:
    """Seventeen columns of fifteen values (claims may have twenty columns): the first is forgotten."""
    columns = 17
    prior = Prior.of(values_of([(14, *[14] * (columns - 1)), (0, *[14] * (columns - 1))], columns))
    assert prior.counts(values_of([(14,) * columns, (3, *[14] * (columns - 1))], columns)).tolist() == [1, 0]


def leaks(*rows_here: tuple[str, str, str, int, int, int, int]) -> pl.DataFrame:
    names = ("block", "table", "change", "of", "claims", "kinds", "undecided")
    types = [pl.String] * 3 + [pl.Int64] * 4
    return pl.DataFrame(rows_here, schema=dict(zip(names, types, strict=True)), orient="row")


def test_tables_by_what_they_give_away() -> None:
    """Sums over blocks; those withheld first, and the worst first; of two alike the first by name."""
    found = by_table(
        leaks(
            ("1", "P3", "added", 10, 1, 1, 0),
            ("1", "P1", "withheld", 10, 2, 1, 0),
            ("1", "P2", "withheld", 10, 10, 4, 0),
            ("1", "P9", "withheld", 10, 0, 0, 3),
            ("1", "P0", "withheld", 10, 5, 2, 0),
            ("2", "P3", "added", 30, 60, 2, 1),
            ("2", "P1", "withheld", 30, 3, 2, 1),
            ("2", "P2", "withheld", 30, 30, 5, 0),
            ("2", "P9", "withheld", 30, 0, 0, 4),
            ("2", "P0", "withheld", 30, 0, 0, 0),
            ("3", "P2", "withheld", 0, 0, 0, 0),
            ("3", "P9", "withheld", 0, 0, 0, 0),
        )
    )
    assert found.drop("low", "high").rows() == [
        ("withheld", "P2", 40, 40, 9, 0, 2, 1.0),
        ("withheld", "P0", 40, 5, 2, 0, 1, 0.125),
        ("withheld", "P1", 40, 5, 3, 1, 2, 0.125),
        ("withheld", "P9", 40, 0, 0, 7, 0, 0.0),
        ("added", "P3", 40, 61, 3, 1, 2, 1.525),
    ]
    names = ["change", "table", "certain", "claims", "kinds", "undecided", "blocks", "share", "low", "high"]
    assert found.columns == names
    low, high = found["low"].to_list(), found["high"].to_list()
    assert (low[-1], high[-1]) == (None, None), "what is gained is no share of what was certain"
    for share, least, most in zip(found["share"][:-1], low[:-1], high[:-1], strict=True):
        assert 0 <= least <= share <= most <= 1
    two = wilson(np.array([0, 2]), np.array([2, 2]))  # two blocks have claims, each counts as one
    assert (low[3], high[3]) == pytest.approx((0, float(two[1][0]))) and high[3] > 0.5
    assert (low[0], high[0]) == pytest.approx((float(two[0][1]), 1)) and low[0] < 0.5
    assert (low[1], high[1]) != (low[2], high[2]), "five of ten and none of thirty are spread wider than two and three"
    assert high[1] - low[1] > high[2] - low[2]


def test_a_table_about_no_claims_has_no_share() -> None:
    found = by_table(leaks(("1", "P1", "withheld", 0, 0, 0, 0), ("1", "P2", "added", 0, 7, 2, 0)))
    assert found.rows() == [
        ("withheld", "P1", 0, 0, 0, 0, 0, None, None, None),
        ("added", "P2", 0, 7, 2, 0, 1, None, None, None),
    ]
    assert by_table(leaks()).rows() == [] and by_table(leaks()).columns == found.columns


@pytest.mark.slow
def test_what_is_said_around_claims_is_right_on_many_toys() -> None:
    """All of the above for hundreds of toys, with every sort of answer met."""
    seen = Counter[str]()
    for seed in range(300):
        options = {"hide": seed % 3 / 4, "intervals": seed % 2 == 0, "total": seed % 4 < 2, "apart": seed % 5 == 0}
        toy, wording, _ = small(seed, **options)
        least = 1 + seed % len(wording.columns)
        seen += check_explained(toy, wording, seed)
        seen += check_lost(toy, wording, least) + check_gained(toy, wording, least, np.random.default_rng(seed))
        seen += check_absent(toy, wording, least) + check_cannot(toy, wording, least)
        seen["cells"] += check_fillable(toy, wording)
        seen += check_tightened(with_parts(np.random.default_rng(seed)))
    sorts = ("none", "one", "several", "open", "lost", "kept", "gained", "same", "0", "cells", "found")
    assert min(seen[sort] for sort in (*sorts, "printed True", "printed False")) >= 10, seen
