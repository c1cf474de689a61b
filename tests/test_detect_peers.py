"""The peer with one integer variable a household says of a block what the detection over bundles of kinds says."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from benchmarks.detect_peers import PerHousehold
from benchmarks.detect_vs_per_household import compiled, scenario

from glasshouse.attack.occupancy.detect import Answer, detect
from glasshouse.attack.occupancy.kinds import Block
from glasshouse.attack.occupancy.statements import LeftOut, Property, readings_of
from glasshouse.model.records import UNLIMITED, Interval, Records
from glasshouse.model.tabulate import tabulate
from glasshouse.scenarios.occupancy import Statement

CAP = 10.0
Home = tuple[int, int, int, int, int]  # persons, children, origin, race, bedrooms (0: not subsidised)


def statements() -> tuple[Statement, ...]:
    return scenario().occupancy.model("paper").statements


def percent(flags: list[bool]) -> int:
    return (200 * sum(flags) + len(flags)) // (2 * len(flags))


def block(homes: list[Home]) -> Block:
    """What is published of a block: the census of all, and one property of the subsidised."""
    place, codes = scenario(), np.zeros((len(homes), 4), np.int16)
    numbers = place.schema.attribute("household").numbers
    level = {pair: at for at, pair in enumerate(zip(numbers["persons"], numbers["children"], strict=True))}
    for row, (persons, children, origin, race, _) in enumerate(homes):
        codes[row, :3] = level[persons, children], origin, race
    counts = tabulate(Records(place.schema, ("1",), np.zeros(len(homes), np.int32), codes), place.tables, "block")
    census = {name: Interval(int(n), int(n)) for name, n in zip(counts.variables, counts.lower[0], strict=True)}
    inside = [home for home in homes if home[4]]
    columns = {
        "people_total": sum(home[0] for home in inside),
        "total_units": len(inside),
        "pct_white_nothsp": percent([home[2:4] == (1, 1) for home in inside]),
        "pct_black_nonhsp": percent([home[2:4] == (1, 2) for home in inside]),
        "pct_native_american_nonhsp": percent([home[2:4] == (1, 3) for home in inside]),
        "pct_asian_pacific_nonhsp": percent([home[2] == 1 and home[3] in (4, 5) for home in inside]),
        "pct_hispanic": percent([home[2] == 2 for home in inside]),
        "pct_1adult": percent([home[1] > 0 and home[0] - home[1] == 1 for home in inside]),
        "pct_2adults": percent([home[1] > 0 and home[0] - home[1] > 1 for home in inside]),
        **{f"pct_bed{k}": percent([home[4] == k for home in inside]) for k in (1, 2, 3)},
    }
    model = place.occupancy.model("paper")
    found = readings_of(place.occupancy, model, "1", census, [Property(len(inside), columns)])
    assert not isinstance(found, LeftOut)
    (only,) = found
    return only


def asked(one: Block, *, ordered: bool) -> Answer | None:
    return PerHousehold(statements(), one, ordered=ordered).decide(CAP).answer


FIVE: Home = (5, 3, 1, 2, 1)
TWO: Home = (2, 0, 2, 1, 0)


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize(
    ("homes", "answer"),
    [
        ([FIVE, FIVE, TWO], Answer.CERTAIN),  # five in each of two homes of one bedroom
        ([(*FIVE[:4], 3), (*FIVE[:4], 3), TWO], Answer.OPEN),
        ([(2, 0, 1, 1, 1), (*FIVE[:4], 3), TWO], Answer.OPEN),
        ([(2, 1, 1, 4, 1), (3, 1, 1, 5, 1), (1, 0, 1, 1, 0)], Answer.CERTAIN),
    ],
)
def test_who_must_break_the_rule_is_known(homes: list[Home], answer: Answer, ordered: bool) -> None:
    one = block(homes)
    assert detect(compiled("paper"), [one]).answer == answer
    assert asked(one, ordered=ordered) == answer


@pytest.mark.parametrize("name", ["H0130003", "P0150003", "black"])
def test_more_households_of_a_sort_than_there_are_is_a_contradiction(name: str) -> None:
    one = block([FIVE, FIVE, TWO])
    named = np.array([statement.name == name for statement in statements()])
    wrong = replace(one, lower=np.where(named, 4, one.lower), upper=np.where(named, UNLIMITED, one.upper))
    assert detect(compiled("paper"), [wrong]).answer == Answer.CONTRADICTION
    assert asked(wrong, ordered=False) == asked(wrong, ordered=True) == Answer.CONTRADICTION


def test_both_say_the_same_of_blocks_drawn_at_random() -> None:
    rng, seen = np.random.default_rng(7), Counter[Answer]()
    for _ in range(25):
        persons = rng.integers(1, 7, rng.integers(3, 9))
        homes = [
            (int(p), int(rng.integers(0, p)), int(rng.integers(1, 3)), int(rng.integers(1, 8)), int(rng.integers(0, 4)))
            for p in persons
        ]
        one = block([*homes, FIVE])  # somebody is subsidised
        moved = rng.integers(-1, 2, len(one.lower)) * (rng.random(len(one.lower)) < 0.15)  # as if noise were added
        lower = np.maximum(one.lower + moved, 0)
        one = replace(one, lower=lower, upper=np.maximum(lower, one.upper))
        found = detect(compiled("paper"), [one]).answer
        seen[found] += 1
        assert asked(one, ordered=False) == asked(one, ordered=True) == found
    assert len(seen) == len(Answer), seen
