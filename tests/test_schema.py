"""Do predicates behave like sets of records? Every law is compared with listing all records."""

from __future__ import annotations

import pickle
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glasshouse.errors import InputError
from glasshouse.model.geography import Geography
from glasshouse.model.records import Histogram, Interval, Records
from glasshouse.model.schema import EVERYONE, Attribute, Group, Impossible, Predicate, Reading, Recode, Schema
from glasshouse.scenarios.load import load


def attribute(name: str, size: int) -> Attribute:
    codes = tuple(((str(level),),) for level in range(size))
    return Attribute(name, tuple(f"{name}{level}" for level in range(size)), (Reading((name,), codes),))


PLAIN = Schema((attribute("a", 3), attribute("b", 2), attribute("c", 4)))
CELLS = list(product(range(3), range(2), range(4)))
level_sets = st.fixed_dictionaries(
    {}, optional={"a": st.sets(st.integers(0, 2)), "b": st.sets(st.integers(0, 1)), "c": st.sets(st.integers(0, 3))}
)
predicates = level_sets.map(PLAIN.where)


def listed(predicate: Predicate) -> set[tuple[int, ...]]:
    """The records of a predicate, one by one: the definition."""
    sets = predicate.by_attribute
    return {cell for cell in CELLS if all(cell["abc".index(name)] in levels for name, levels in sets.items())}


@given(predicates, predicates)
def test_predicates_are_sets_of_records(p: Predicate, q: Predicate) -> None:
    assert listed(p & q) == listed(p) & listed(q)
    assert (p <= q) == (listed(p) <= listed(q)) or p.empty
    assert p.meets(q) == bool(listed(p) & listed(q))
    assert p.empty == (not listed(p))
    assert PLAIN.size(p) == len(listed(p))


@given(predicates)
def test_equal_descriptions_are_equal_objects(p: Predicate) -> None:
    whole = {name: set(levels) for name, levels in p.sets} | {
        a.name: range(len(a)) for a in PLAIN.attributes if a.name not in p.by_attribute
    }
    assert PLAIN.where(whole) == p
    assert hash(PLAIN.where(whole)) == hash(p)
    assert p & EVERYONE == p


@given(st.lists(predicates, max_size=4), predicates)
def test_structural_zeros_are_left_out_of_sizes(holes: list[Predicate], p: Predicate) -> None:
    schema = Schema(PLAIN.attributes, tuple(Impossible(hole, "told so") for hole in holes))
    possible = set(CELLS) - set().union(*(listed(hole) for hole in holes))
    assert schema.size(p) == len(listed(p) & possible)
    assert schema.size() == len(possible)


@given(st.lists(predicates, max_size=4), predicates)
def test_covered_means_no_record_is_left(boxes: list[Predicate], p: Predicate) -> None:
    assert PLAIN.covered(p, boxes) == (listed(p) <= set().union(*(listed(box) for box in boxes)))


records = st.lists(st.tuples(st.integers(0, 1), st.sampled_from(CELLS)), max_size=30)


@given(records, predicates)
def test_records_and_their_histogram_answer_the_same(rows: list[tuple[int, tuple[int, ...]]], p: Predicate) -> None:
    """Convention 1: one question, put to records or to a histogram."""
    place = np.array([row[0] for row in rows], np.int32)
    codes = np.array([row[1] for row in rows], np.int16).reshape(-1, 3)
    held = Records(PLAIN, ("x", "y"), place, codes)
    for where in (None, "x", "y"):
        expected = sum(1 for at, cell in rows if cell in listed(p) and where in (None, "xy"[at]))
        assert held.count(p, where) == held.histogram().count(p, where) == Interval(expected, expected)
    assert len(held) == len(held.histogram()) == len(rows)


def test_counting_at_an_unknown_place_is_refused() -> None:
    empty = Histogram(PLAIN, ("x",), np.zeros(0, np.int32), np.zeros((0, 3), np.int16), np.zeros(0, np.int64))
    with pytest.raises(InputError, match="no records of place 'z'"):
        empty.count(EVERYONE, "z")


def test_an_interval_is_exact_only_when_it_is_one_value() -> None:
    assert Interval(4, 4).exact == 4
    with pytest.raises(InputError, match="not known exactly: 3 to 5"):
        _ = Interval(3, 5).exact


def test_groups_must_not_overlap_except_in_a_tally() -> None:
    groups = (Group("low", frozenset([0, 1])), Group("high", frozenset([1, 2])))
    with pytest.raises(InputError, match="level 1 is in two groups"):
        Recode("r", "a", groups)
    assert Recode("r", "a", groups, tally=True).leaves == groups


def test_parts_make_up_their_group() -> None:
    with pytest.raises(InputError, match="not the sum of its parts"):
        Group("all", frozenset([0, 1, 2]), (Group("one", frozenset([0])),))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Schema((attribute("a", 2), attribute("a", 2))), "different names"),
        (lambda: PLAIN.where({"d": [0]}), "unknown attribute 'd'; known: a, b, c"),
        (lambda: PLAIN.where({"a": [3]}), "levels 0..2; found 3"),
        (lambda: attribute("a", 0), "at least one level"),
        (lambda: Attribute("a", ("x", "y"), (Reading(("a",), ((("1",),), (("1",),))),)), "different codes"),
        (lambda: PLAIN.attribute("a").level("purple"), "unknown level of a 'purple'"),
    ],
)
def test_a_schema_that_makes_no_sense_is_refused(make: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()  # type: ignore[operator]


def test_nouns_travel_to_workers() -> None:
    scenario = load("sf1-person")
    assert pickle.loads(pickle.dumps(scenario)) == scenario
    recode = Recode("r", "a", (Group("low", frozenset([0, 1])),))
    for noun in (PLAIN, recode, PLAIN.where({"a": [1]})):
        assert pickle.loads(pickle.dumps(noun)) == noun  # made here


US = Geography({"state": 2, "county": 5, "block": 15}, place="block", unit="county")


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("010730051031000", None),
        ("10730051031000", "leading zero seems to have been lost"),
        ("1.07300510310E+13", "scientific notation"),
        ("01073005103100!", "15 letters or digits"),
        ("", "has 0 characters"),
    ],
)
def test_a_damaged_code_is_explained(code: str, fault: str | None) -> None:
    """Convention 4: codes are text."""
    found = US.fault(code, "block")
    assert (found is None) if fault is None else (found is not None and fault in found)


def test_levels_are_prefixes_or_mapped() -> None:
    mapped = US.with_mapping("district", {"010730051031000": "north"})
    assert mapped.code("010730051031000", "county") == "01073"
    assert mapped.code("010730051031000", "district") == "north"
    assert not mapped.within_unit("district")
    assert mapped.within_unit("block")
    with pytest.raises(InputError, match="not in the mapping of level 'district'"):
        mapped.code("010730051031001", "district")
    with pytest.raises(InputError, match="already a prefix"):
        US.with_mapping("county", {})
    with pytest.raises(InputError, match="coarse to fine"):
        Geography({"block": 15, "county": 5}, place="county", unit="block")
    assert US.told({"county": 1, "block": 2000}) == "2,000 blocks, 1 county"
    assert US.told({"county": 2}) == "2 counties"
