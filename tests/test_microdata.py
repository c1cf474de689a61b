"""Would the office have released the records? The rules of microdata, counted again by hand and by brute force."""

from __future__ import annotations

from collections import Counter

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glasshouse.assess.microdata import RuleResult, Rules, microdata_rules
from glasshouse.errors import InputError

RACES = ("white", "black")
PLACES = pl.DataFrame({"block": ["a", "b", "c"], "persons": [5, 1, 0]})
RECORDS = pl.DataFrame(
    {
        "block": ["a"] * 5 + ["b"],
        "age": [3, 3, 3, 40, 40, 3],
        "white": [1, 1, 1, 0, 1, 1],
        "black": [0, 0, 0, 1, 1, 0],
    }
)
SMALL = Rules(area=3, category=2, sample=0.5)


def results(rules: Rules = SMALL, **options: object) -> dict[str, RuleResult]:
    found = microdata_rules(PLACES, RECORDS, rules, marginals=["age", RACES], over="Testing", **options)  # type: ignore[arg-type]
    return {f"{one.rule} {one.title.partition(': ')[2]}".strip(): one for one in found}


def test_the_rules_are_those_of_the_2010_census() -> None:
    """Paper 000, supplement: 10% of the records, areas of 100,000 persons, categories of 10,000 in the nation."""
    assert Rules() == Rules(area=100_000, category=10_000, sample=0.1)


def test_the_sample() -> None:
    found = results(certain=3)
    assert list(found) == ["sample", "certain", "area", "category age", "category white, black"]
    sample, certain = found["sample"], found["certain"]
    assert (sample.part, sample.whole, sample.passed, sample.judged) == (6, 6, False, True)
    assert (sample.wants, sample.told) == ("at most 50% of the records", "6 records are rebuilt, of 6 persons")
    assert (certain.part, certain.whole, certain.passed) == (3, 6, True)
    assert certain.told == "3 records are proved to be right, of 6 persons"
    assert not results(certain=4)["certain"].passed
    assert "certain" not in results()
    assert results(Rules(sample=1.0))["sample"].passed


def test_areas_without_persons_are_none() -> None:
    area = results()["area"]
    assert (area.smallest, area.below, area.units, area.part, area.whole) == (1, 1, 2, 1, 6)
    assert not area.passed
    assert area.told == "1 of 2 areas are smaller, with 1 persons; the smallest has 1"
    assert area.wants == "at least 3 persons in each area that records name"
    assert results(Rules(area=1))["area"].passed


def test_categories_are_values_or_combinations() -> None:
    age, race = (results(nation=True)[f"category {name}"] for name in ("age", "white, black"))
    assert (age.smallest, age.below, age.units, age.part, age.passed, age.judged) == (2, 0, 2, 0, True, True)
    assert (race.smallest, race.below, race.units, race.part, race.whole) == (1, 2, 3, 2, 6)
    assert (race.passed, race.judged) == (False, True)
    assert "nation they may" not in race.has


def test_less_than_the_nation_can_pass_and_cannot_fail() -> None:
    age, race = (results()[f"category {name}"] for name in ("age", "white, black"))
    assert age.passed and age.judged  # what is large here is large in the nation
    assert not race.passed and not race.judged
    assert race.told.endswith("in the nation they may be larger, so this alone judges nothing")
    assert {one.over for one in results().values()} == {"Testing"}


def test_titles_and_weights() -> None:
    grouped = RECORDS.group_by("age", *RACES).len("records")
    for records in (grouped, grouped.lazy()):
        found = microdata_rules(PLACES, records, SMALL, marginals=["age", RACES], over="Testing", weight="records",
                                titles={RACES: "race", "age": "age"})  # fmt: skip
        assert [one.title for one in found[2:]] == ["Only large categories: age", "Only large categories: race"]
        plain = results()
        assert [one.counts for one in found] == [one.counts for one in plain.values()]


def test_more_records_than_persons_are_all_of_them() -> None:
    found = microdata_rules(PLACES.head(1), RECORDS, SMALL, marginals=[], over="Testing")
    assert (found[0].part, found[0].whole, found[0].counts) == (5, 5, (6, 5))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=40),
       st.integers(1, 12))  # fmt: skip
def test_brute_force_counts_the_same(people: list[tuple[int, int, int]], least: int) -> None:
    frame = pl.DataFrame(people, schema=["block", "p", "q"], orient="row")
    places = frame.group_by("block").len("n")
    rules = Rules(least, least, 0.1)
    found = microdata_rules(places, frame, rules, marginals=[("p", "q")], over="all", nation=True, persons="n")
    for one, sizes in ((found[1], Counter(row[0] for row in people)), (found[2], Counter(row[1:] for row in people))):
        small = [size for size in sizes.values() if size < least]
        assert (one.below, one.part, one.smallest) == (len(small), sum(small), min(sizes.values()))
        assert (one.units, one.whole, one.passed) == (len(sizes), len(people), not small)
        assert one.has.count("{}") == len(one.counts)
        assert 0 <= one.part <= one.whole


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"marginals": ["height"]}, "records have no column 'height'; found: block, age, white, black"),
        ({"weight": "times"}, "records have no column 'times'"),
        ({"persons": "people"}, "places have no column 'people'; found: block, persons"),
        ({"certain": 7}, "7 certain records of 6 persons"),
        ({"certain": -1}, "expected at most all"),
        ({"places": PLACES.tail(1)}, "nothing can be judged"),
        ({"records": RECORDS.head(0)}, "nothing can be judged"),
    ],
)
def test_what_cannot_be_judged_is_refused(options: dict[str, object], message: str) -> None:
    given = {"places": PLACES, "records": RECORDS, "rules": SMALL, "marginals": ["age"], "over": "Testing", **options}
    with pytest.raises(InputError, match=message):
        microdata_rules(**given)  # type: ignore[arg-type]


@pytest.mark.parametrize("rules", [{"area": 0}, {"category": -1}, {"sample": 0.0}, {"sample": 1.5}])
def test_rules_that_make_no_sense_are_refused(rules: dict[str, float]) -> None:
    with pytest.raises(InputError, match="expected whole numbers from 1"):
        Rules(**rules)  # type: ignore[arg-type]
