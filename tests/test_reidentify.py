"""Are people linked, confirmed and guessed as the paper says? Its algorithms as printed, one record at a time.

Nothing of the core is used for what is expected: matching is the double loop, guessers and modal status are counted
with dictionaries from the words of the paper, and what would be guessed without a person is asked without that person.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from glasshouse.assess.baselines import (
    Neighbours,
    Reach,
    modal_guess,
    modal_status,
    proportional_guess,
    reach,
    shares,
)
from glasshouse.assess.rates import Rate, clustered, difference, paired, wilson
from glasshouse.assess.reidentification import (
    COUNTS,
    GROUPS,
    Answer,
    Places,
    Standing,
    added,
    agreement_rates,
    count,
    count_agreement,
    rates,
)
from glasshouse.attack.people.reidentify import (
    EXACTLY,
    IN_BINS,
    NOBODY,
    Features,
    Links,
    People,
    agreement,
    attached,
    confirmed,
    match,
    putative,
    taken,
)
from glasshouse.errors import GlasshouseBug, InputError
from glasshouse.files.units import by_unit, side_by_side
from glasshouse.model.bands import ALL, BANDS
from glasshouse.model.geography import Geography
from glasshouse.scenarios.load import Scenario
from tests.often import often

Pairs = list[tuple[int, int]]
STARTS = [*range(22), 22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85]  # the 38 bins, as printed


def ints(values: Sequence[int]) -> np.ndarray[Any, Any]:
    return np.array(values, np.int64)


# Algorithm 1, as it is printed


def double_loop(left: Sequence[Hashable], right: Sequence[Hashable]) -> tuple[Pairs, list[int], list[int]]:
    """For each left record the first right one that is the same; both are removed. Links, and what is left."""
    links: Pairs = []
    rest, over = list(range(len(right))), []
    for at, record in enumerate(left):
        for other in rest:
            if record == right[other]:
                rest.remove(other)
                links.append((at, other))
                break
        else:
            over.append(at)
    return links, over, rest


def two_passes(left: Sequence[Sequence[Hashable]], right: Sequence[Sequence[Hashable]]) -> tuple[Pairs, Pairs]:
    """Algorithms 2, 3 and 4: matched on the first features, and what is left on the second; `side[pass][record]`."""
    first, over, rest = double_loop(left[0], right[0])
    again, _, _ = double_loop([left[1][at] for at in over], [right[1][at] for at in rest])
    return first, [(over[a], rest[b]) for a, b in again]


KEYS = st.one_of(st.integers(0, 3), st.sampled_from([2**20 - 1, 2**20, 2**20 + 1, 2**40, 2**62]), st.integers(0, 2**62))


@st.composite
def sides(draw: st.DrawFn, keys: st.SearchStrategy[Any]) -> list[tuple[int, Any]]:
    """Records of one file: place and key, place by place; places may be missing, and there may be none at all."""
    records = draw(st.lists(st.tuples(st.sampled_from([0, 1, 2, 3, 11]), keys), max_size=25))
    return sorted(records, key=lambda record: record[0])


def of(links: Links) -> tuple[Pairs, Pairs]:
    """The links of each pass, checked in both directions."""
    found: tuple[Pairs, Pairs] = ([], [])
    for right, (left, how) in enumerate(zip(links.right.tolist(), links.how.tolist(), strict=True)):
        assert (left == NOBODY) == (how == 0)
        if how:
            assert links.left[left] == right
            found[how - 1].append((left, right))
    assert np.count_nonzero(links.left >= 0) == len(links) == len(found[0]) + len(found[1])
    assert links.exact == len(found[0])
    return sorted(found[0]), sorted(found[1])


def numbers(values: Sequence[int]) -> np.ndarray[Any, Any]:
    """Places, as `People` keeps them."""
    return np.array(values, np.int32)


@given(sides(KEYS), sides(KEYS))
@example([], [])
@example([(0, 1)], [])
@example([], [(5, 2**40)])
@example([(1, 7), (1, 7), (2, 7)], [(1, 7), (2, 7), (2, 7)])
def test_match_is_the_double_loop(left: list[tuple[int, int]], right: list[tuple[int, int]]) -> None:
    keys = [ints([key for _, key in side]) for side in (left, right)]
    places = [numbers([place for place, _ in side]) for side in (left, right)]
    found = match(keys[0], places[0], keys[1], places[1])
    links, over, rest = double_loop(left, right)
    assert of(found) == (links, [])
    assert np.flatnonzero(found.left == NOBODY).tolist() == over
    assert np.flatnonzero(found.right == NOBODY).tolist() == rest


@given(sides(st.integers(0, 2)), sides(st.integers(0, 2)), st.integers(0, 2**32))
def test_how_many_match_does_not_depend_on_the_order(
    left: list[tuple[int, int]], right: list[tuple[int, int]], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(3):
        args = []
        for side in (left, right):
            place = numbers([place for place, _ in side])
            order = taken(place, rng)
            args += [ints([key for _, key in side])[order], place[order]]
        linked = match(*args).left >= 0
        pairs = zip(args[1][linked].tolist(), args[0][linked].tolist(), strict=True)
        assert Counter(pairs) == Counter(left) & Counter(right)


# Algorithms 2 and 3: two passes

Record = tuple[int, tuple[int, int, int]]  # place, (exact, binned, cell)
CELLS = 3
ANY = st.tuples(st.one_of(st.integers(0, 5), st.just(2**21)), st.integers(0, 2), st.integers(0, CELLS - 1))


def people(records: Sequence[Record]) -> People:
    return People.of(
        ints([place for place, _ in records]), *(ints([said[at] for _, said in records]) for at in range(3))
    )


@given(sides(ANY), sides(ANY))
def test_agreement_is_two_literal_passes(left: list[Record], right: list[Record]) -> None:
    exact, binned = ([[(p, s[at], s[2]) for p, s in side] for side in (left, right)] for at in (0, 1))
    expected = two_passes([exact[0], binned[0]], [exact[1], binned[1]])
    assert of(agreement(people(left), people(right), CELLS)) == expected


@given(sides(ANY), sides(ANY))
def test_putative_is_two_literal_passes_and_does_not_look_at_what_is_sensitive(
    left: list[Record], right: list[Record]
) -> None:
    exact, binned = ([[(p, s[at]) for p, s in side] for side in (left, right)] for at in (0, 1))
    expected = two_passes([exact[0], binned[0]], [exact[1], binned[1]])
    data, listed = people(left), people(right)
    links = putative(data, listed)
    assert of(links) == expected
    unknown = listed.saying(np.full(len(listed), NOBODY))
    assert of(putative(data.saying(data.cell[::-1].copy()), unknown)) == expected
    cells = attached(data, links).tolist()
    told = {b: left[a][1][2] for a, b in [*expected[0], *expected[1]]}
    assert cells == [told.get(b, NOBODY) for b in range(len(right))]


@given(sides(ANY))
def test_a_file_agrees_with_itself_exactly_in_any_order(records: list[Record]) -> None:
    file = people(records)
    links = agreement(file, file, CELLS)
    assert links.exact == len(links) == len(records)
    order = taken(file.place, np.random.default_rng(len(records)))
    shuffled = People(*(part[order] for part in (file.place, file.exact, file.binned, file.cell)))
    assert agreement(file, shuffled, CELLS).exact == len(records)


def test_large_keys_of_many_cells_are_numbered() -> None:
    """Without the warning as an error, a table of 17 GB would be asked for."""
    file = people([(0, (2**25, 0, 0)), (0, (1, 0, 1))])
    assert agreement(file, file, 126).exact == 2


def test_keys_that_do_not_fit_into_32_bits_are_refused() -> None:
    """Cut to 32 bits, 2^32 + 5 would be linked to 5."""
    most = 2**31 - 1
    left, right = (people([(0, (key, number, 0))]) for number, key in enumerate((most, most - 1)))
    assert len(putative(left, right)) == 0 and len(putative(left, left)) == 1
    for key in (2**31, 2**32 + 5):
        with pytest.raises(InputError, match="too many combinations"):
            people([(0, (key, 0, 0))])


def test_records_must_lie_place_by_place() -> None:
    with pytest.raises(GlasshouseBug, match="place by place"):
        people([(1, (0, 0, 0)), (0, (0, 0, 0))])


@given(st.lists(st.integers(0, 4), max_size=40), st.integers(0, 2**32))
def test_records_are_taken_place_by_place_in_an_order_drawn(places: list[int], seed: int) -> None:
    order = taken(ints(places), np.random.default_rng(seed))
    assert sorted(order.tolist()) == list(range(len(places)))
    assert [places[at] for at in order] == sorted(places)
    assert order.tolist() == taken(ints(places), np.random.default_rng(seed)).tolist()


def test_each_of_equal_records_comes_first_equally_often() -> None:
    first = Counter(int(taken(np.zeros(3, np.int64), np.random.default_rng(seed))[0]) for seed in range(900))
    assert all(abs(first[at] - 300) < 5 * np.sqrt(900 * 2 / 9) for at in range(3))


# Algorithm 4


@st.composite
def named(draw: st.DrawFn) -> list[tuple[int, int, int, int]]:
    """Records with persons, each at most once in a place: place, person, exact, cell."""
    who = draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5)), unique=True, max_size=14))
    said = [(draw(st.integers(0, 4)), draw(st.integers(NOBODY, 1))) for _ in who]
    return sorted(((*a, *b) for a, b in zip(who, said, strict=True)), key=lambda record: record[0])


@given(named(), named())
def test_confirmed_is_algorithm_4_where_a_person_is_named_once_in_a_place(
    listed: list[tuple[int, int, int, int]], truth: list[tuple[int, int, int, int]]
) -> None:
    truth = [(place, person, exact, max(cell, 0)) for place, person, exact, cell in truth]
    files = [
        People.of(
            ints([r[0] for r in side]),
            ints([r[2] for r in side]),
            ints([r[2] // 2 for r in side]),
            ints([r[3] for r in side]),
        )
        for side in (listed, truth)
    ]
    rows = {(place, person): at for at, (place, person, _, _) in enumerate(truth)}
    true_row = ints([rows.get((place, person), NOBODY) for place, person, _, _ in listed])
    right, exactly = confirmed(files[0], files[0].cell, files[1], true_row)

    enhanced = [at for at, record in enumerate(listed) if record[3] != NOBODY]  # those with a putative link
    left = [listed[at] for at in enhanced]
    binned = [[(p, i, e // 2, c) for p, i, e, c in side] for side in (left, truth)]
    first, second = two_passes([left, binned[0]], [truth, binned[1]])
    assert {enhanced[a] for a, _ in first} == set(np.flatnonzero(exactly).tolist())
    assert {enhanced[a] for a, _ in [*first, *second]} == set(np.flatnonzero(right).tolist())


# What is known of people, and what is sensitive


def features(scenario: Scenario) -> Features:
    return Features(scenario.schema, scenario.bins, scenario.unique_on)


def test_sex_and_age_are_known_and_race_and_origin_are_sensitive(sf1: Scenario) -> None:
    known = features(sf1)
    assert (known.known, known.sensitive, known.cells) == (("sex", "age"), ("race", "hispanic"), 126)
    sex, age = (part.reshape(-1) for part in np.meshgrid(np.arange(2), np.arange(111), indexing="ij"))
    none = np.zeros(len(age), np.int64)
    levels = {"sex": sex, "age": age, "race": none, "hispanic": none}
    assert len(set(known.exactly(levels).tolist())) == 222
    bins = [(int(s), sum(a >= start for start in STARTS)) for s, a in zip(sex, age, strict=True)]
    numbers = known.in_bins(levels).tolist()
    assert len(set(bins)) == len(set(numbers)) == len(set(zip(bins, numbers, strict=True))) == 76
    race, origin = (part.reshape(-1) for part in np.meshgrid(np.arange(63), np.arange(2), indexing="ij"))
    other = np.zeros(126, np.int64)
    cells = known.cell({"sex": other, "age": other, "race": race, "hispanic": origin})
    assert sorted(cells.tolist()) == list(range(126))


def test_a_scenario_must_say_by_what_people_are_known(sf1: Scenario) -> None:
    with pytest.raises(InputError, match="by what people are known"):
        Features(sf1.schema, sf1.bins, ())
    with pytest.raises(InputError, match="nothing is learnt"):
        Features(sf1.schema, {}, tuple(attribute.name for attribute in sf1.schema.attributes))
    assert Features(sf1.schema, {}, ("sex",)).sensitive == ("age", "race", "hispanic")


# Guessers and modal status, from the words of the paper


@dataclass(frozen=True)
class Nation:
    """Records by place and cell, the area of each place, and what the rest of the nation has."""

    records: tuple[tuple[int, int], ...]
    around: tuple[int, ...]
    elsewhere: tuple[int, ...]

    def place(self, place: int) -> Counter[int]:
        return Counter(cell for at, cell in self.records if at == place)

    def area(self, place: int) -> Counter[int]:
        return Counter(cell for at, cell in self.records if self.around[at] == self.around[place])

    @property
    def nation(self) -> list[int]:
        own = Counter(cell for _, cell in self.records)
        return [own[cell] + more for cell, more in enumerate(self.elsewhere)]

    @property
    def most(self) -> int:
        """The cell of the nation with most persons, of equals the first."""
        return self.nation.index(max(self.nation))

    def without(self, number: int) -> Nation:
        return Nation(self.records[:number] + self.records[number + 1 :], self.around, self.elsewhere)

    def status(self, place: int) -> int:
        """'... the cell with most persons. If there is a tie, or if the modal population count is one ...'"""
        for counts in (self.place(place), self.area(place)):
            most = max(counts.values(), default=0)
            cells = [cell for cell, number in counts.items() if number == most]
            if len(cells) == 1 and most > 1:
                return cells[0]
        return self.most

    def modal(self, place: int) -> int:
        """'Given a tie in the block-level modal ... or a block population of 1 ... the block-group-level ...'"""
        for counts in (self.place(place), self.area(place)):
            most = max(counts.values(), default=0)
            cells = [cell for cell, number in counts.items() if number == most]
            if len(cells) == 1 and sum(counts.values()) > 1:
                return cells[0]
        return self.most

    def shares(self, place: int) -> list[Fraction]:
        """'... in proportion to its relative frequency within the block'; a block population of 1: as above."""
        for counts in (self.place(place), self.area(place)):
            if sum(counts.values()) > 1:
                return [Fraction(counts[cell], sum(counts.values())) for cell in range(len(self.elsewhere))]
        return [Fraction(number, max(sum(self.nation), 1)) for number in self.nation]

    @property
    def neighbours(self) -> Neighbours:
        place, cell = (ints([record[at] for record in self.records]) for at in (0, 1))
        return Neighbours.of(place, cell, ints(self.around), ints(self.nation))


@st.composite
def nations(draw: st.DrawFn, persons: int = 16) -> Nation:
    cells, places = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    around = draw(st.lists(st.integers(0, 1), min_size=places, max_size=places))
    areas = sorted(set(around))
    record = st.tuples(st.integers(0, places - 1), st.integers(0, cells - 1))
    records = draw(st.lists(record, max_size=persons))
    elsewhere = draw(st.lists(st.integers(0, 3), min_size=cells, max_size=cells))
    return Nation(tuple(records), tuple(areas.index(area) for area in around), tuple(elsewhere))


@settings(max_examples=often(300))
@given(nations())
def test_guessers_and_modal_status_are_what_the_paper_says(nation: Nation) -> None:
    places = range(len(nation.around))
    neighbours = nation.neighbours
    assert modal_status(neighbours).tolist() == [nation.status(place) for place in places]
    assert modal_guess(neighbours).tolist() == [nation.modal(place) for place in places]
    found = shares(neighbours)
    assert found == pytest.approx(np.array([[float(p) for p in nation.shares(place)] for place in places]))


@pytest.mark.parametrize(
    ("block", "group", "status", "guess"),
    [
        ([3, 2, 0], [0, 9, 0], 0, 0),  # the block can tell
        ([2, 2, 0], [0, 9, 0], 1, 1),  # a tie: the block group
        ([1, 0, 0], [0, 9, 0], 1, 1),  # one person: the block group
        ([1, 1, 1], [0, 9, 0], 1, 1),  # all different: the block group
        ([1, 0, 0], [0, 1, 0], 2, 2),  # a tie there too: the nation
        ([1, 0, 0], [0, 0, 0], 2, 2),  # one person there too: the nation
        ([2, 0, 0], [0, 0, 0], 0, 0),
        ([0, 2, 2], [3, 0, 0], 0, 0),
    ],
)
def test_where_a_block_cannot_tell(block: list[int], group: list[int], status: int, guess: int) -> None:
    """Two blocks in a block group; the nation is mostly of the third cell."""
    neighbours = Neighbours(ints([block, group]), ints([block]) + ints([group]), ints([0, 0]), ints([50, 60, 70]))
    assert (modal_status(neighbours)[0], modal_guess(neighbours)[0]) == (status, guess)


def test_status_and_guess_differ_where_the_largest_cell_is_one_of_one() -> None:
    """Status asks for a modal count of more than one, the guesser for more than one person; only a tie is between."""
    for counts in ([1, 0], [0, 1], [1, 1], [2, 1], [1, 2], [2, 2], [3, 0]):
        neighbours = Neighbours(ints([counts]), ints([[9, 0]]), ints([0]), ints([9, 0]))
        assert modal_status(neighbours) == modal_guess(neighbours)  # a mode of one among several is a tie


@settings(max_examples=often(60))
@given(nations(), st.integers(0, 2**32))
def test_the_proportional_guesser_never_says_what_nobody_around_is(nation: Nation, seed: int) -> None:
    assume(sum(nation.nation))
    places = ints([place for place in range(len(nation.around)) for _ in range(30)])[::-1].copy()
    drawn = proportional_guess(shares(nation.neighbours), places, np.random.default_rng(seed))
    chances = [nation.shares(place) for place in range(len(nation.around))]
    assert all(chances[place][cell] > 0 for place, cell in zip(places.tolist(), drawn.tolist(), strict=True))
    again = proportional_guess(shares(nation.neighbours), places, np.random.default_rng(seed))
    assert drawn.tolist() == again.tolist()


# How far guessing goes


def shared(found: Reach, persons: int) -> list[float]:
    return [float(part.sum() / persons) for part in found]


def test_the_ten_persons_of_the_paper() -> None:
    """Nine White, one Asian. The paper prints 81.1%, which credits the tenth person with one in nine."""
    ten = Nation(((0, 0),) * 9 + ((0, 1),), (0,), (50, 5))
    modal, proportional, modal_without, proportional_without = shared(reach(ten.neighbours), 10)
    assert (modal, proportional) == pytest.approx((0.90, 0.82))
    assert (modal_without, proportional_without) == pytest.approx((0.90, 0.80))
    assert 100 * (proportional_without + Fraction(1, 9) / 10) == pytest.approx(81.1, abs=0.05)
    by_hand = (9 * Fraction(8, 9) + 0) / 10
    assert proportional_without == pytest.approx(float(by_hand))


def brute_reach(nation: Nation) -> list[list[Fraction]]:
    """Each person is taken out of block, block group and nation, and the guessers are asked again."""
    found = []
    for place in range(len(nation.around)):
        counts = nation.place(place)
        size = sum(counts.values())
        right, chance = 0, Fraction(0)
        for number, (at, cell) in enumerate(nation.records):
            if at == place:
                rest = nation.without(number)
                right += rest.modal(place) == cell
                chance += rest.shares(place)[cell]
        squares = sum((Fraction(n * n, size) for n in counts.values()), Fraction(0))
        found.append([Fraction(max(counts.values(), default=0)), squares, Fraction(right), chance])
    return found


@settings(max_examples=often(300))
@given(nations(persons=12))
def test_reach_is_what_asking_without_each_person_gives(nation: Nation) -> None:
    assume(sum(nation.nation) > 1)
    found = np.array(reach(nation.neighbours)).T
    assert found == pytest.approx(np.array([[float(part) for part in row] for row in brute_reach(nation)]))


def test_reach_where_one_person_decides_the_nation() -> None:
    """One in a block and block group alone, of the nation's largest cell by one: without them it is the other's."""
    nation = Nation(((0, 1),), (0,), (5, 5))
    assert nation.nation == [5, 6] and nation.without(0).modal(0) == 0
    found = np.array(reach(nation.neighbours)).T
    assert found == pytest.approx(np.array([[float(part) for part in row] for row in brute_reach(nation)]))


@given(nations())
def test_bounds_are_bounds(nation: Nation) -> None:
    """Nobody is guessed better without them than the paper's upper bounds allow, and no bound is above everyone."""
    assume(sum(nation.nation) > 1)
    found = reach(nation.neighbours)
    size = nation.neighbours.places.sum(axis=1)
    assert (found.modal_without <= found.modal + 1e-9).all() and (found.modal <= size).all()
    assert (found.proportional_without <= found.proportional + 1e-9).all()
    assert (found.proportional <= found.modal + 1e-9).all()
    modal = modal_guess(nation.neighbours)
    right = Counter(place for place, cell in nation.records if modal[place] == cell)
    for place in range(len(nation.around)):
        counts = nation.place(place)
        assert right[place] <= found.modal[place]
        alone = Counter(counts.values())[max(counts.values(), default=0)] == 1
        if alone and sum(counts.values()) > 1:  # the block can tell: the bound is reached
            assert right[place] == found.modal[place]


def test_the_proportional_guesser_is_right_as_often_as_the_sum_of_squares_says() -> None:
    rng = np.random.default_rng(8)
    records = [(place, int(rng.integers(0, 3) ** 2 // 2)) for place in range(12) for _ in range(2 + place)]
    nation = Nation(tuple(records), tuple(place // 4 for place in range(12)), (4, 2, 1))
    neighbours = nation.neighbours
    place, cell = (ints([record[at] for record in records]) for at in (0, 1))
    chances = shares(neighbours)
    runs = 600
    right = sum(
        int((proportional_guess(chances, place, np.random.default_rng(seed)) == cell).sum()) for seed in range(runs)
    )
    expected = float(reach(neighbours).proportional.sum())
    p = chances[place, cell]
    assert float(p.sum()) == pytest.approx(expected)  # no block of one here
    assert abs(right / runs - expected) < 4 * np.sqrt((p * (1 - p)).sum() / runs)


# How sure a rate is, where neighbours share their fate


def sums(hits: Sequence[int], total: Sequence[int]) -> tuple[int, ...]:
    k, n = ints(hits), ints(total)
    return tuple(int(v) for v in (k.sum(), n.sum(), (k * k).sum(), (k * n).sum(), (n * n).sum(), (n > 0).sum()))


def interval(hits: Sequence[int], total: Sequence[int]) -> tuple[float, float]:
    low, high = clustered(*sums(hits, total))
    return float(low), float(high)


@st.composite
def clusters(draw: st.DrawFn, largest: int = 60) -> tuple[list[int], list[int]]:
    total = draw(st.lists(st.integers(0, largest), min_size=1, max_size=40))
    assume(sum(total))
    kind = draw(st.sampled_from(["any", "none", "all", "whole"]))
    if kind == "whole":  # a cluster shares its fate
        return [n * draw(st.integers(0, 1)) for n in total], total
    hits = [0 if kind == "none" else n if kind == "all" else draw(st.integers(0, n)) for n in total]
    return hits, total


@given(clusters(), st.randoms(use_true_random=False))
def test_an_interval_holds_its_share_is_never_a_point_and_does_not_mind_the_order(
    case: tuple[list[int], list[int]], random: Any
) -> None:
    hits, total = case
    low, high = interval(hits, total)
    share = sum(hits) / sum(total)
    assert 0 <= low <= share + 1e-12 and share - 1e-12 <= high <= 1 and high - low > 1e-3 / sum(total)
    if share == 0:
        assert low == 0 and 0 < high < 1
    if share == 1:
        assert high == 1 and 0 < low < 1
    if 0 < share < 1:
        assert 0 < low < share < high < 1
    order = list(range(len(total)))
    random.shuffle(order)
    assert interval([hits[at] for at in order], [total[at] for at in order]) == (low, high)
    assert interval([*hits, 0], [*total, 0]) == (low, high)  # an empty cluster says nothing
    mixed = len({Fraction(k, n) for k, n in zip(hits, total, strict=True) if n}) > 1
    if mixed or share in (0, 1):  # else see the next test
        other = interval([n - k for k, n in zip(hits, total, strict=True)], total)  # misses instead of hits
        assert other == pytest.approx((1 - high, 1 - low), abs=1e-9)


def test_clusters_of_the_same_share_are_the_same_whether_hits_or_misses_are_counted() -> None:
    low, high = interval([2, 2], [5, 5])
    assert interval([3, 3], [5, 5]) == pytest.approx((1 - high, 1 - low))


@given(st.integers(1, 60), st.integers(1, 50))
def test_none_and_all_are_counted_as_if_clusters_shared_their_fate(number: int, size: int) -> None:
    for share in (0, 1):
        low, high = interval([share * size] * number, [size] * number)
        assert (low, high) == pytest.approx([float(end) for end in wilson(share * number, number)])


def test_of_nobody_nothing_is_known() -> None:
    assert [float(end) for end in clustered(0, 0, 0, 0, 0, 0)] == [0, 1]
    assert interval([3], [7]) == pytest.approx([float(end) for end in wilson(3 / 7, 1)])  # one cluster: one thing


@given(st.integers(500, 3000), st.floats(0.02, 0.98))
def test_clusters_of_one_are_independent_things(n: int, share: float) -> None:
    k = round(share * n)
    assert interval([1] * k + [0] * (n - k), [1] * n) == pytest.approx([float(end) for end in wilson(k, n)], abs=1e-4)


@given(st.integers(4, 40), st.integers(2, 20), st.integers(1, 39))
def test_the_more_alike_neighbours_are_the_wider(number: int, size: int, some: int) -> None:
    some = 1 + some % (number - 1)
    alike = interval([size] * some + [0] * (number - some), [size] * number)
    evenly = [some * size // number + (at < some * size % number) for at in range(number)]
    apart = wilson(some * size, number * size)
    assert alike == pytest.approx([float(end) for end in wilson(some, number)], abs=0.01 + 1 / number)
    assert alike[1] - alike[0] > float(apart[1] - apart[0])
    mixed = interval(evenly, [size] * number)
    assert mixed[1] - mixed[0] <= alike[1] - alike[0] + 1e-12


def test_many_rates_at_once_are_the_same() -> None:
    rng = np.random.default_rng(1)
    cases = [(rng.integers(0, 4, 9), rng.integers(4, 9, 9)) for _ in range(6)]
    cases += [(np.zeros(9, int), np.ones(9, int)), (np.ones(9, int), np.ones(9, int))]
    together = clustered(*np.array([sums(k.tolist(), n.tolist()) for k, n in cases]).T)
    alone = [interval(k.tolist(), n.tolist()) for k, n in cases]
    assert np.column_stack(together).tolist() == [list(ends) for ends in alone]


@pytest.mark.parametrize(("alike", "share"), [(1e9, 0.3), (3.0, 0.5), (3.0, 0.9), (0.5, 0.3), (0.05, 0.5)])
def test_an_interval_holds_the_truth_about_95_times_in_100(alike: float, share: float) -> None:
    """Clusters with a rate of their own around the share (less alike: nearer to it), sizes like blocks'."""
    rng = np.random.default_rng(17)
    runs, number = 4000, 120
    size = np.minimum(1 + rng.geometric(0.06, (runs, number)), 90)
    rate = rng.beta(alike * share, alike * (1 - share), (runs, number))
    hits = rng.binomial(size, rate)
    args = [part.sum(axis=1) for part in (hits, size, hits**2, hits * size, size**2)]
    low, high = clustered(*args, np.full(runs, number))
    covered = float(((low <= share) & (share <= high)).mean())
    assert 0.92 < covered < 0.98
    naive = wilson(args[0], args[1])
    if alike <= 3:
        assert float(((naive[0] <= share) & (share <= naive[1])).mean()) < covered - 0.05


# A difference between two answers about the same people


def test_newcombe_1998_method_10() -> None:
    found = paired(12, 2, 36, 0)
    assert (found.value, found.low, found.high) == pytest.approx((0.2, 0.0569, 0.3404), abs=5e-5)


@given(*(st.integers(0, 60) for _ in range(4)))
def test_a_difference_is_the_same_the_other_way_round_and_within_bounds(
    first: int, second: int, both: int, neither: int
) -> None:
    assume(first + second + both + neither)
    found, other = paired(first, second, both, neither), paired(second, first, both, neither)
    assert (found.value, found.low, found.high) == pytest.approx((-other.value, -other.high, -other.low), abs=1e-12)
    assert found.value == pytest.approx((first - second) / (first + second + both + neither))
    assert -1 <= found.low <= found.value + 1e-12 and found.value - 1e-12 <= found.high <= 1
    assert found.high - found.low > 1e-3
    mirrored = paired(second, first, neither, both)  # wrong instead of right
    assert (mirrored.low, mirrored.high) == pytest.approx((other.low, other.high), abs=1e-12)


@pytest.mark.parametrize("n", [1, 2, 10, 1000])
def test_differences_at_the_extremes(n: int) -> None:
    always, never, same = paired(n, 0, 0, 0), paired(0, n, 0, 0), paired(0, 0, n, 0)
    assert (always.value, always.high) == (1, 1) and -1 < always.low < 1
    assert (never.value, never.low) == (-1, -1) and -1 < never.high < 1
    assert same.value == 0 and -1 < same.low < 0 < same.high < 1 and same.low == pytest.approx(-same.high)
    assert paired(0, 0, 0, n).high == pytest.approx(same.high)
    assert isinstance(always, Rate)


def test_a_difference_over_nobody_is_refused() -> None:
    with pytest.raises(InputError, match="nobody"):
        paired(0, 0, 0, 0)


@pytest.mark.parametrize("chances", [(0.2, 0.1, 0.4, 0.3), (0.05, 0.05, 0.85, 0.05), (0.6, 0.02, 0.3, 0.08)])
def test_a_difference_holds_the_truth_about_95_times_in_100(chances: tuple[float, ...]) -> None:
    drawn = np.random.default_rng(5).multinomial(60, chances, 1500)
    truth = chances[0] - chances[1]
    found = [paired(*(int(v) for v in row)) for row in drawn]
    assert 0.92 < sum(rate.low <= truth <= rate.high for rate in found) / len(found) < 0.99


# A difference between two answers about the same people, who live in clusters

Told = tuple[list[int], list[int], list[int], list[int]]  # of each cluster: right and asked, of either answer


def apart(case: Told) -> tuple[float, float, float]:
    k1, n1, k2, n2 = (ints(part) for part in case)
    crossed = [np.float64((a * b).sum()) for a, b in ((k1, k2), (k1, n2), (n1, k2), (n1, n2))]
    first, second = (
        tuple(np.float64(value) for value in sums(k.tolist(), n.tolist())) for k, n in ((k1, n1), (k2, n2))
    )
    return tuple(float(part) for part in difference(first, second, crossed))  # type: ignore[return-value]


@st.composite
def answers(draw: st.DrawFn) -> Told:
    clusters = draw(st.lists(st.tuples(*(st.integers(0, 9) for _ in range(4))), min_size=2, max_size=20))
    asked = [(a, b) for a, b, _, _ in clusters]
    assume(all(sum(part) for part in zip(*asked, strict=True)))
    right = [(min(a, c), min(b, d)) for a, b, c, d in clusters]
    return [c for c, _ in right], [a for a, _ in asked], [d for _, d in right], [b for _, b in asked]


@given(answers())
def test_a_clustered_difference_is_within_bounds_and_the_same_the_other_way_round(case: Told) -> None:
    value, low, high = apart(case)
    k1, n1, k2, n2 = case
    assert value == pytest.approx(sum(k1) / sum(n1) - sum(k2) / sum(n2))
    assert -1 <= low <= value + 1e-12 and value - 1e-12 <= high <= 1
    assert apart((k2, n2, k1, n1)) == pytest.approx((-value, -high, -low), abs=1e-9)


@given(st.integers(20, 60), st.integers(20, 60), st.integers(100, 300), st.integers(100, 300))
def test_in_clusters_of_one_it_is_the_paired_difference(first: int, second: int, both: int, neither: int) -> None:
    right = [(1, 0)] * first + [(0, 1)] * second + [(1, 1)] * both + [(0, 0)] * neither
    one = [1] * len(right)
    found = apart(([a for a, _ in right], one, [b for _, b in right], one))
    expected = paired(first, second, both, neither)  # which allows for counts being whole: a little wider
    assert found == pytest.approx((expected.value, expected.low, expected.high), abs=0.006)


def test_a_clustered_difference_holds_the_truth_about_95_times_in_100() -> None:
    """Places with a rate of their own, which both answers share in part; the second is a chance, not a count."""
    rng = np.random.default_rng(4)
    runs, number = 1500, 120
    covered, alone = 0, 0
    for _ in range(runs):
        size = np.minimum(1 + rng.geometric(0.06, number), 90)
        rate = rng.beta(1.2, 0.8, number)
        k1, k2 = rng.binomial(size, rate), size * (0.5 * rate + 0.1)
        crossed = [np.float64((a * b).sum()) for a, b in ((k1, k2), (k1, size), (size, k2), (size, size))]
        first, second = (
            [np.float64(v) for v in (k.sum(), size.sum(), (k * k).sum(), (k * size).sum(), (size * size).sum(), number)]
            for k in (k1, k2)
        )
        _, low, high = difference(first, second, crossed)
        covered += bool(low <= 0.6 - 0.4 <= high)
        alone += bool(clustered(*first)[0] <= 0.6 <= clustered(*first)[1])
    assert 0.92 < alone / runs < 0.98
    assert 0.92 < covered / runs < 0.99


# Counts become rates


def blocks_of(sizes: Sequence[int], zero: Sequence[bool] | None = None) -> Places:
    return Places.of(ints(sizes), None if zero is None else np.array(zero, np.bool_))


YES = st.booleans()
# place, how a file and a guesser link it, right, exactly, chance, inside the group
LISTED = st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 2), YES, YES, st.floats(0, 1), YES)


@given(
    st.lists(st.tuples(st.sampled_from([0, 1, 9, 10, 49, 50, 1000]), st.booleans()), min_size=1, max_size=6),
    st.lists(LISTED, max_size=20),
)
def test_counts_by_group_and_band_are_what_a_loop_gives(places: list[tuple[int, bool]], records: list[Any]) -> None:
    records = sorted(record for record in records if record[0] < len(places))
    place = np.array([record[0] for record in records], np.int32)
    how, other = (np.array([record[at] for record in records], np.int8) for at in (1, 2))
    right = np.array([record[3] for record in records], np.bool_) & (how > 0)
    exactly = right & np.array([record[4] for record in records], np.bool_)
    chance = np.array([record[5] for record in records]) * (other > 0)
    inside = np.array([record[6] for record in records], np.bool_)
    groups = {group: inside if group != "all" else np.ones(len(records), np.bool_) for group in GROUPS}
    population = {group: ints([7 + at for at in range(len(places))]) for group in GROUPS}
    answer = Answer.of(Links(np.where(how > 0, 0, NOBODY), how, 0), (right, exactly))
    guess = Answer(Links(np.where(other > 0, 0, NOBODY), other, 0), (other > 0, other > 0), chance)
    blocks = blocks_of([size for size, _ in places], [zero for _, zero in places])
    standing = Standing(place, groups, population)
    found = count("x", "y", blocks, standing, answer, {"MDG": answer, "PRG": guess})
    assert found.schema == COUNTS and found.height == 2 * len(GROUPS) * (1 + len(BANDS))
    ends = [*list(BANDS.values())[1:], 10**9]
    limits = {ALL: (0, 10**9)} | dict(zip(BANDS, zip(BANDS.values(), ends, strict=True), strict=True))
    for row in found.iter_rows(named=True):
        low, high = limits[row["band"]]
        zero_only, group = row["group"].startswith("zero-solvar-"), row["group"].removeprefix("zero-solvar-")
        some = {at for at, (size, zero) in enumerate(places) if low <= size < high and (zero or not zero_only)}
        mine = [at for at, record in enumerate(records) if record[0] in some and groups[group][at]]
        n, k, m = (Counter(records[at][0] for at in mine if flag[at]) for flag in (how > 0, right, other > 0))
        e: Counter[int] = Counter()
        for at in mine:
            e[records[at][0]] += chance[at]
        assert row["population"] == sum(7 + at for at in some)
        assert (row["putative"], row["confirmed"], row["places"]) == (n.total(), k.total(), len(n))
        assert row["putative_exact"] == sum(how[at] == EXACTLY for at in mine)
        assert row["confirmed_exact"] == sum(bool(exactly[at]) for at in mine)
        assert row["expected"] == row["confirmed"]  # a file leaves nothing to chance
        sums = {"n_n": (n, n), "k_n": (k, n), "k_k": (k, k), "e_n": (k, n), "e_e": (k, k)}
        sums |= {f"{a}_{b}_MDG": (x, y) for a, x in (("k", k), ("n", n)) for b, y in (("e", k), ("n", n))}
        sums |= {f"{a}_{b}_PRG": (x, y) for a, x in (("k", k), ("n", n)) for b, y in (("e", e), ("n", m))}
        for name, (first, second) in sums.items():
            assert row[name] == pytest.approx(sum(first[at] * second[at] for at in some))


def made(people: int, **said: tuple[int, int]) -> pl.DataFrame:
    """Everyone in a place of their own, the first so many linked, the first so many of these right."""
    inside = np.ones(people, np.bool_)
    place = np.arange(people, dtype=np.int32)
    answers = {}
    for name, (linked, right) in said.items():
        how = (place < linked).astype(np.int8)
        answers[name] = Answer.of(Links(np.where(how > 0, place, NOBODY), how, 0), (place < right, place < right))
    size = np.ones(people, np.int64)
    standing = Standing(place, dict.fromkeys(GROUPS, inside), dict.fromkeys(GROUPS, size))
    guesses = {name: answers[name] for name in ("MDG", "PRG")}
    blocks = blocks_of([1] * people)
    return pl.concat(count(name, "list", blocks, standing, answer, guesses) for name, answer in answers.items())


def test_a_rate_stands_beside_the_better_guesser() -> None:
    found = rates(made(99, CEF=(80, 60), rHDF=(80, 40), worse=(80, 10), MDG=(80, 8), PRG=(80, 20)))
    by = {row["data"]: row for row in found.filter(group="all", band=ALL).iter_rows(named=True)}
    assert by["rHDF"]["precision"] == 0.5 and by["rHDF"]["low"] < 0.5 < by["rHDF"]["high"]
    assert (by["rHDF"]["baseline"], by["rHDF"]["guesser"]) == (0.25, "PRG")
    assert (by["MDG"]["baseline"], by["PRG"]["guesser"], by["MDG"]["advantage"]) == (None, None, None)
    assert by["rHDF"]["advantage"] == 0.25 and 0 < by["rHDF"]["advantage_low"] < 0.25 < by["rHDF"]["advantage_high"]
    assert by["worse"]["advantage"] == -0.125 and by["worse"]["advantage_high"] < 0
    ends = [float(end) for end in clustered(40, 80, 40, 40, 80, 80)]
    assert [by["rHDF"]["low"], by["rHDF"]["high"]] == ends


def test_where_nobody_is_linked_no_rate_is_claimed() -> None:
    found = rates(made(9, rHDF=(0, 0), MDG=(0, 0), PRG=(0, 0))).filter(group="all", band=ALL)
    assert found["data"].to_list() == ["rHDF", "MDG", "PRG"]
    rated = ("precision", "low", "high", "baseline", "guesser", "advantage", "advantage_low", "advantage_high")
    assert found.select(rated).null_count().row(0) == (3,) * len(rated)
    half = rates(made(9, rHDF=(0, 0), MDG=(9, 9), PRG=(9, 9))).filter(group="all", band=ALL, data="rHDF")
    assert half.select("precision", "advantage").row(0) == (None, None)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=80))
def test_units_are_added_up_whatever_their_number(numbers: list[int]) -> None:
    frames = {n: made(9, a=(n, 0), MDG=(n, n), PRG=(n, 0)).filter(group="all", band=ALL) for n in set(numbers)}
    total = added((frames[n] for n in numbers), COUNTS)
    assert total.schema == COUNTS and total["data"].to_list() == ["a", "MDG", "PRG"]
    assert total["putative"].to_list() == [sum(numbers)] * 3 and total["confirmed"][1] == sum(numbers)
    assert total["population"].to_list() == [9 * len(numbers)] * 3


def test_agreement_is_of_the_records_of_the_other_file_and_bins_include_the_exact() -> None:
    how = np.array([EXACTLY] * 4 + [IN_BINS] * 6 + [0] * 10, np.int8)
    links = Links(np.where(how > 0, 0, NOBODY), how, 0)
    counted = count_agreement("rHDF", "HDF", blocks_of([5, 70]), np.array([0] * 12 + [1] * 8), links)
    rows = {row["band"]: row for row in agreement_rates(counted).iter_rows(named=True)}
    assert set(rows) == {ALL, "1-9", "50-99"}
    row = rows[ALL]
    assert (row["population"], row["exact"], row["binned"]) == (20, 4, 10)
    assert (row["exact_share"], row["binned_share"], row["baseline"]) == (0.2, 0.5, None)
    assert row["exact_low"] < 0.2 < row["exact_high"]
    assert (rows["1-9"]["population"], rows["1-9"]["binned"]) == (12, 10)
    assert (rows["50-99"]["population"], rows["50-99"]["binned_share"], rows["50-99"]["binned_low"]) == (8, 0, 0)


# Files side by side

GEOGRAPHY = Geography({"state": 1, "tract": 2, "block": 4}, "block", "tract")
CODES = [f"{unit}{block}" for unit in ("1a", "1b", "20", "29", "3Z") for block in ("00", "01", "x9")]


@given(
    st.lists(st.lists(st.sampled_from(CODES), max_size=9), max_size=6),
    st.sampled_from([1, 2, 7, 1000]),
)
def test_rows_come_unit_by_unit_in_the_order_of_codes(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[list[str]], limit: int
) -> None:
    near = tmp_path_factory.mktemp("units")
    read: list[int] = []
    rows = [(code, number) for number, code in enumerate(code for chunk in chunks for code in chunk)]

    def frames() -> Iterator[pl.DataFrame]:
        at = 0
        for number, chunk in enumerate(chunks):
            read.append(number)
            yield pl.DataFrame(rows[at : at + len(chunk)], schema={"geoid": pl.String, "row": pl.Int64}, orient="row")
            at += len(chunk)

    found = []
    for unit, frame in by_unit(frames(), GEOGRAPHY, near, limit=limit):
        assert len(read) == len(chunks)  # all is read before the first comes out
        found.append((unit, frame.select("geoid", "row").rows()))
    assert [unit for unit, _ in found] == sorted({code[:2] for code, _ in rows})
    for unit, inside in found:
        assert inside == [row for row in rows if row[0][:2] == unit]
    assert not list(near.iterdir())


@given(st.dictionaries(st.sampled_from("abcd"), st.sets(st.sampled_from(["1a", "1b", "20", "29", "3Z"]))))
def test_files_are_read_side_by_side(have: dict[str, set[str]]) -> None:
    streams = {
        name: iter([(unit, pl.DataFrame({"from": [f"{name} {unit}"]})) for unit in sorted(units)])
        for name, units in have.items()
    }
    found = [
        (unit, {name: frame["from"].item() for name, frame in some.items()}) for unit, some in side_by_side(streams)
    ]
    assert all(a < b for (a, _), (b, _) in pairwise(found))
    assert found == [
        (unit, {name: f"{name} {unit}" for name in have if unit in have[name]})
        for unit in sorted(set().union(*have.values()))
    ]


def test_a_unit_of_one_file_is_held_only_until_it_is_due() -> None:
    """No file runs ahead of the others by more than the unit that comes next."""
    asked: list[str] = []

    def stream(name: str, units: Sequence[str]) -> Iterator[tuple[str, pl.DataFrame]]:
        for unit in units:
            asked.append(name + unit)
            yield unit, pl.DataFrame()

    together = side_by_side({"x": stream("x", "135"), "y": stream("y", "246")})
    assert next(together)[0] == "1" and asked == ["x1", "y2"]
    assert next(together)[0] == "2" and asked == ["x1", "y2", "x3"]
