"""Is a violation proved just where every data set that fits has one? Small blocks written down household by household.

Nothing here looks at our matrices: a household is a tuple, what agencies publish of households is counted in plain
Python from appendix E of Steed, Qing and Wu (papers/004), and every data set of a small block is written down.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from importlib import resources
from itertools import combinations_with_replacement, permutations, product
from math import floor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glasshouse.attack.occupancy.bundles import Bundles, bundle
from glasshouse.attack.occupancy.detect import Answer, detect, explain
from glasshouse.attack.occupancy.kinds import Block, Kinds, every_kind, groups_present, in_faces, some_kinds
from glasshouse.attack.occupancy.likely import Sample, likely
from glasshouse.attack.occupancy.noisy import least_error
from glasshouse.attack.occupancy.statements import (
    MORE_HOUSEHOLDS,
    MORE_PEOPLE,
    NO_HOUSEHOLDS,
    QUARTERS,
    LeftOut,
    Property,
    largest,
    readings_of,
)
from glasshouse.attack.occupancy.unlike import unlike
from glasshouse.errors import InputError
from glasshouse.model.records import UNLIMITED, Codes, Interval
from glasshouse.program import few
from glasshouse.program.integer import Outcome, Proof
from glasshouse.program.ladder import Ladder, engage
from glasshouse.scenarios.load import Scenario, load
from glasshouse.scenarios.occupancy import Occupancy
from tests.often import often

SEEDS = st.integers(0, 2**32 - 1)
RACES = range(1, 8)  # White, Black, AIAN, Asian, NHPI, Other, several; 1 and 2 are not Hispanic and Hispanic
PAIRS = tuple(product((1, 2), RACES))
GROUPS = {  # HUD's shares of householders, as pairs of origin and race
    "pct_white_nothsp": {(1, 1)},
    "pct_black_nonhsp": {(1, 2)},
    "pct_native_american_nonhsp": {(1, 3)},
    "pct_asian_pacific_nonhsp": {(1, 4), (1, 5)},
    "pct_hispanic": {(2, race) for race in RACES},
    "pct_multi": {(1, 7)},
}
BEDROOMS = ("pct_bed1", "pct_bed2", "pct_bed3")
UNITS = "total_units"
ADULTS = ("pct_1adult", "pct_2adults")
SHARES = (*BEDROOMS, *GROUPS, *ADULTS)


class Household(NamedTuple):
    persons: int
    children: int
    origin: int
    race: int
    bedrooms: int  # 0: not subsidised; 1, 2, 3 or more

    @property
    def pair(self) -> tuple[int, int]:
        return self.origin, self.race


Published = dict[str, int]  # of the census, by variable


@dataclass(frozen=True)
class World:
    """A scenario: the most persons of a household, the size of the open line of H13, persons allowed by bedrooms."""

    most: int = 7
    open_line: int = 7
    allowed: tuple[int, int] = (2, 4)

    @property
    def scenario(self) -> Scenario:
        return _scenario(self)

    @property
    def occupancy(self) -> Occupancy:
        found = self.scenario.occupancy
        assert found is not None
        return found

    def breaks(self, one: Household) -> bool:
        return one.bedrooms in (1, 2) and one.persons > self.allowed[one.bedrooms - 1]

    def violations(self, households: Iterable[Household]) -> int:
        return sum(self.breaks(one) for one in households)

    @property
    def sizes(self) -> dict[str, int]:
        return {f"H013000{1 + size}": size for size in range(1, self.open_line + 1)}

    def census(self, households: Sequence[Household]) -> Published:
        """What the census publishes of a block's households."""
        size = Counter(min(one.persons, self.open_line) for one in households)
        pairs = Counter(one.pair for one in households)
        persons, children = (sum(one[at] for one in households) for at in (0, 1))
        found = {"H0030002": len(households), "P0010001": persons, "P0160001": persons}
        found |= {"P0160002": children, "P0160003": persons - children}
        found |= {name: size[number] for name, number in self.sizes.items()}
        return found | {variable: pairs[pair] for variable, pair in PAIR_OF.items()}


PAIR_OF = {f"P01500{2 + race + 8 * (origin - 1):02d}": (origin, race) for origin, race in PAIRS}
REAL, TINY = World(), World(4, 4, (1, 3))


@cache
def _scenario(world: World) -> Scenario:
    text = (resources.files("glasshouse") / "scenarios" / "data" / "subsidised-housing" / "scenario.toml").read_text(
        "utf-8"
    )
    catalogue = (
        resources.files("glasshouse") / "scenarios" / "data" / "subsidised-housing" / "catalogue.csv"
    ).read_bytes()
    for old, new in _changes(world):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    assert tomllib.loads(text)
    with TemporaryDirectory() as folder:
        Path(folder, "scenario.toml").write_text(text, "utf-8")
        Path(folder, "catalogue.csv").write_bytes(catalogue)
        return load(folder)


def _changes(world: World) -> Iterable[tuple[str, str]]:
    yield "most = 20", f"most = {world.most}"
    if world.open_line < 7:
        yield 'catalogue = "catalogue.csv" ', "# "  # the official tables have more lines
        yield '{ label = "7-or-more-person household", levels = { persons = "7+" } },', ""
        for size in range(world.open_line + 1, 7):
            yield f'{{ label = "{size}-person household", levels = {{ persons = "{size}" }} }},', ""
        last = world.open_line
        yield f'levels = {{ persons = "{last}" }} }},', f'levels = {{ persons = "{last}+" }} }},'
        old = '"H0130002", "H0130003", "H0130004", "H0130005", "H0130006", "H0130007"'
        yield old, ", ".join(f'"{name}"' for name, size in world.sizes.items() if size < last)
        yield (
            'bedrooms = "1", household = { persons = "3+" }',
            f'bedrooms = "1", household = {{ persons = "{world.allowed[0] + 1}+" }}',
        )
        yield (
            'bedrooms = "2", household = { persons = "5+" }',
            f'bedrooms = "2", household = {{ persons = "{world.allowed[1] + 1}+" }}',
        )


def half_up(part: int, whole: int) -> int:
    """part / whole as a whole number, halves up."""
    return floor(Fraction(part, whole) + Fraction(1, 2))


def hud(households: Sequence[Household]) -> Property:
    """What HUD publishes of a property where these live: whole percentages, halves up."""
    counts = {name: sum(one.bedrooms == at + 1 for one in households) for at, name in enumerate(BEDROOMS)}
    counts |= {name: sum(one.pair in pairs for one in households) for name, pairs in GROUPS.items()}
    counts["pct_1adult"] = sum(one.children > 0 and one.persons - one.children == 1 for one in households)
    counts["pct_2adults"] = sum(one.children > 0 and one.persons - one.children >= 2 for one in households)
    columns: dict[str, int | None] = {name: half_up(100 * number, len(households)) for name, number in counts.items()}
    people = sum(one.persons for one in households)
    return Property(len(households), columns | {"people_total": people, UNITS: len(households)})


def with_units(one: Property, units: Sequence[int]) -> Property:
    """The same property, whose percentages of bedrooms are those of so many units of each size."""
    shares = {name: half_up(100 * number, sum(units)) for name, number in zip(BEDROOMS, units, strict=True)}
    return replace(one, columns={**one.columns, **shares, UNITS: sum(units)})


Readings = tuple[Block, ...]


def block(world: World, model: str, census: Published, properties: Sequence[Property]) -> Readings | LeftOut:
    told = {name: Interval(value, value) for name, value in census.items()}
    return readings_of(world.occupancy, world.occupancy.model(model), "180010001001000", told, properties)


@cache
def faces(world: World, model: str) -> Kinds:
    return in_faces(world.occupancy, world.occupancy.model(model), world.scenario.schema)


@cache
def bundles(world: World, model: str) -> Bundles:
    return bundle(faces(world, model))


@cache
def one_face(world: World) -> Kinds:
    return every_kind(world.occupancy, world.occupancy.model("sharp"), world.scenario.schema)


def codes_of(world: World, households: Sequence[Household]) -> Codes:
    numbers = world.scenario.schema.attribute("household").numbers
    level = {pair: at for at, pair in enumerate(zip(numbers["persons"], numbers["children"], strict=True))}
    return np.array([(level[one.persons, one.children], *one[2:]) for one in households], np.int16).reshape(-1, 4)


def households_of(world: World, codes: Codes) -> list[Household]:
    """The household of each kind; a face that does not tell of something has -1 there."""
    numbers = world.scenario.schema.attribute("household").numbers
    return [Household(numbers["persons"][level], numbers["children"][level], *rest) for level, *rest in codes.tolist()]


def draw(world: World, rng: np.random.Generator, count: int, *, most: int | None = None) -> list[Household]:
    """Households at random, of few races so that shares matter, with an adult each."""
    pairs = [PAIRS[at] for at in rng.choice(len(PAIRS), 3)]
    found = []
    for _ in range(count):
        persons = int(rng.integers(1, (most or world.most) + 1))
        children = int(rng.integers(0, persons)) if rng.random() < 0.6 else 0
        bedrooms = int(rng.choice([0, 1, 2, 3], p=[0.25, 0.3, 0.25, 0.2]))
        found.append(Household(persons, children, *pairs[rng.integers(3)], bedrooms))
    return found


# Every data set of a small block, household by household


@dataclass(frozen=True)
class Written:
    """Every multiset of so many homes (persons, children, bedrooms), and what is counted in each."""

    homes: tuple[tuple[int, int, int], ...]
    members: np.ndarray  # a row each: numbers of homes
    count: Mapping[str, np.ndarray]


@cache
def written(world: World, number: int) -> Written:
    homes = tuple((p, c, b) for p in range(1, world.most + 1) for c in range(p + 1) for b in range(4))
    rows = np.arange(len(homes))[:, None] if number else np.zeros((1, 0), np.int64)
    for _ in range(number - 1):  # homes in no falling order
        times = len(homes) - rows[:, -1]
        first = np.repeat(np.cumsum(times) - times, times)
        last = np.repeat(rows[:, -1], times) + np.arange(times.sum()) - first
        rows = np.column_stack([np.repeat(rows, times, axis=0), last])
    persons, children, bedrooms = (np.array(column, np.int8) for column in zip(*homes, strict=True))
    inside = bedrooms > 0

    def total(values: np.ndarray) -> np.ndarray:
        return values.astype(np.int8)[rows].sum(axis=1, dtype=np.int64)

    one = {name: np.minimum(persons, world.open_line) == size for name, size in world.sizes.items()}
    one |= {"P0010001": persons, "P0160002": children, "P0160003": persons - children}
    one |= {"subsidised": inside, "people_total": persons * inside}
    one |= {name: bedrooms == at + 1 for at, name in enumerate(BEDROOMS)}
    one |= {f"bed{a}or{b}": (bedrooms == a) | (bedrooms == b) for a, b in ((1, 2), (1, 3), (2, 3))}
    one["pct_1adult"] = inside & (children > 0) & (persons - children == 1)
    one["pct_2adults"] = inside & (children > 0) & (persons - children >= 2)
    one["with children"] = inside & (children > 0)
    one["violations"] = np.array([world.breaks(Household(p, c, 1, 1, b)) for p, c, b in homes])
    return Written(homes, rows, {name: total(values) for name, values in one.items()})


def gives(share: int | None, part: int, whole: int) -> bool:
    """Is a whole percentage a rounding of part / whole, halves up or down? What is not published says nothing."""
    return share is None or abs(200 * part - 2 * share * whole) <= whole


def least_units(share: int | None, units: int) -> int:
    """The fewest of so many units that are this percentage of them; where none are, the count just below."""
    if share is None:
        return 0
    good = [n for n in range(units + 1) if gives(share, n, units)]
    return min(good) if good else max(n for n in range(units + 1) if 100 * n < share * units)


Rooms = frozenset[tuple[int, ...]]


@cache
def anywhere(number: int) -> Rooms:
    """Every way in which so many households can live with 1, 2 and 3 bedrooms."""
    return frozenset(n for n in product(range(number + 1), repeat=3) if sum(n) == number)


@cache
def in_any_units(reported: int, shares: tuple[int | None, ...], units: int) -> Rooms:
    """Where households that report can live: units of each size are written down, at least as many as percentages say,
    and those that have a household are chosen in every way. Households beyond the units live anywhere."""
    found: set[tuple[int, ...]] = set()
    least = [least_units(share, units) for share in shares]
    number = max(units, sum(least))
    for sizes in anywhere(number):
        if all(n >= low for n, low in zip(sizes, least, strict=True)):
            found |= {n for n in product(*(range(size + 1) for size in sizes)) if sum(n) == min(number, reported)}
    return beside(found, max(reported - number, 0))


@cache
def in_largest_units(reported: int, shares: tuple[int | None, ...], units: int) -> Rooms:
    """The same where percentages are rounded down, units of no known size are anything, and units are let out from the
    largest on, those of no known size first."""
    told = [(share or 0) * units // 100 for share in shares]
    found = set()
    for sizes in anywhere(units):
        if all(n >= known for n, known in zip(sizes, told, strict=True)):
            row = [at for at, known in enumerate(told) for _ in range(known)]
            row += [at for at, known in enumerate(told) for _ in range(sizes[at] - known)]
            row = row[max(units - reported, 0) :]
            found.add(tuple(row.count(at) for at in range(3)))
    return beside(found, max(reported - units, 0))


def beside(found: Iterable[tuple[int, ...]], beyond: int) -> Rooms:
    return frozenset(tuple(a + b for a, b in zip(n, more, strict=True)) for n in found for more in anywhere(beyond))


def bedrooms_allowed(model: str, one: Property) -> Rooms:
    """How many of the households that report can live with 1, 2 and 3 bedrooms, under any reading of the model."""
    shares, units = tuple(one.columns.get(name) for name in BEDROOMS), one.columns.get(UNITS)
    if units is None:
        return anywhere(one.reported)
    if model == "paper":
        return in_largest_units(one.reported, shares, units)
    found = in_any_units(one.reported, shares, units)
    given = [[n for n in range(one.reported + 1) if gives(share, n, one.reported)] for share in shares]
    if all(given) and sum(some[0] for some in given) <= one.reported:
        found |= in_any_units(one.reported, shares, one.reported)
    return found


def fits_bedrooms(model: str, one: Property, *counts: np.ndarray) -> np.ndarray:
    places = np.array([10_000, 100, 1])
    allowed = np.array(sorted(bedrooms_allowed(model, one)), np.int64).reshape(-1, 3) @ places
    return np.isin(np.column_stack(counts) @ places, allowed)


def sharp_homes(world: World, census: Published, one: Property) -> np.ndarray:
    """Which multisets of homes fit everything but the householders: every number as precisely as it is published."""
    every = written(world, census["H0030002"])
    fits = every.count["subsidised"] == one.reported
    for name in (*world.sizes, "P0160002", "P0160003"):
        if name in census:
            fits &= every.count[name] == census[name]
    people = one.columns.get("people_total")
    if people is not None:
        fits &= every.count["people_total"] == people
    for name in ADULTS:
        good = [n for n in range(one.reported + 1) if gives(one.columns.get(name), n, one.reported)]
        fits &= np.isin(every.count[name], good)
    rows = np.flatnonzero(fits)
    allowed: np.ndarray = fits_bedrooms("sharp", one, *(every.count[name][rows] for name in BEDROOMS))
    return rows[allowed]


def householders(census: Published) -> list[tuple[tuple[int, int], ...]]:
    """Every multiset of householders that P15 allows."""
    return [
        some
        for some in combinations_with_replacement(PAIRS, census["H0030002"])
        if all(some.count(pair) == census.get(variable, some.count(pair)) for variable, pair in PAIR_OF.items())
    ]


def race_fits(inside: Sequence[tuple[int, int]], one: Property) -> bool:
    """Do these subsidised householders give HUD's percentages?"""
    return all(gives(one.columns.get(name), sum(pair in pairs for pair in inside), one.reported)
               for name, pairs in GROUPS.items())  # fmt: skip


def sharp_violations(world: World, census: Published, one: Property) -> set[int]:
    """The violations of every data set that fits the sharp model: homes, each with each householder in turn."""
    every = written(world, census["H0030002"])
    rows = sharp_homes(world, census, one)
    inside = np.array([bedrooms > 0 for _, _, bedrooms in every.homes])[every.members[rows]]
    races = householders(census)
    good: dict[bytes, bool] = {}
    found = set()
    for flags, violations in zip(inside, every.count["violations"][rows].tolist(), strict=True):
        if (key := flags.tobytes()) not in good:  # what HUD says of householders depends on who is inside alone
            good[key] = any(
                race_fits([pair for pair, home in zip(order, flags, strict=True) if home], one)
                for some in races
                for order in set(permutations(some))
            )
        if good[key]:
            found.add(violations)
    return found


def paper_violations(world: World, census: Published, one: Property) -> set[int]:
    """The violations of every data set that fits appendix E as it is written.

    r_i^j (household i has a person of race and ethnicity j) is bound by lower limits alone, and by nothing that says
    who lives where: if any choice fits, the one with everybody everywhere (all r_i^j = 1) does.
    """
    households, inside = census["H0030002"], one.reported
    if any(census.get(variable, 0) > households for variable in PAIR_OF):
        return set()
    for name in GROUPS:
        share = one.columns.get(name)
        if name != "pct_multi" and share is not None and share * inside // 100 > inside:
            return set()
    every = written(world, households)
    fits = every.count["subsidised"] == inside
    for name, size in world.sizes.items():
        if size < world.open_line:
            fits &= every.count[name] >= census.get(name, 0)
    for name in ("P0010001", "P0160002"):
        fits &= every.count[name] >= census.get(name, 0)
    people = one.columns.get("people_total")
    if people is not None:
        fits &= every.count["people_total"] >= min(people, largest_set(world, census, inside))
    first, second = (one.columns.get(name) for name in ADULTS)
    if first is not None and second is not None:
        together = sum(half_up(share * inside, 100) for share in (first, second))
        fits &= every.count["with children"] == min(together, inside)
    rows = np.flatnonzero(fits)
    rows = rows[fits_bedrooms("paper", one, *(every.count[name][rows] for name in BEDROOMS))]
    return set(every.count["violations"][rows].tolist())


def largest_set(world: World, census: Published, number: int) -> int:
    """The most persons in so many households of the census: those of the largest lines of H13, of all who are left."""
    people = census.get("P0160001", census.get("P0010001"))
    if people is None or any(name not in census for name in world.sizes):
        return UNLIMITED
    lines = sorted((size for name, size in world.sizes.items() for _ in range(census[name])), reverse=True)
    if len(lines) < number:
        return people
    beyond = max(people - sum(lines), 0) if lines and lines[0] == world.open_line and number else 0
    return min(people, sum(lines[:number]) + beyond)


ORACLES = {"sharp": sharp_violations, "paper": paper_violations}


def published(world: World, rng: np.random.Generator, count: int) -> tuple[Published, Property] | None:
    """Numbers of random households, some of them changed or left out so that not everything fits; of one property."""
    households = draw(world, rng, count)
    inside = [one for one in households if one.bedrooms]
    if not inside:
        return None
    census, one = world.census(households), hud(inside)
    if rng.random() < 0.6:  # units with nobody who reports, or fewer units than households
        units = [sum(home.bedrooms == at + 1 for home in inside) + int(rng.choice([0, 0, 1, 2])) for at in range(3)]
        one = with_units(one, units)
        if rng.random() < 0.4:
            columns = {**one.columns, UNITS: max(1, (one.columns[UNITS] or 0) + int(rng.integers(-2, 2)))}
            one = replace(one, columns=columns)
    columns = dict(one.columns)
    for _ in range(int(rng.choice([0, 0, 0, 1, 2]))):  # agencies disagree
        if rng.random() < 0.5:
            name = str(rng.choice([name for name in census if name != "H0030002"]))
            census[name] = max(0, census[name] + int(rng.choice([-1, 1])))
        else:
            name = str(rng.choice(list(columns)))
            new = (columns[name] or 0) + int(rng.choice([-1, 1])) * (1 if name in ("people_total", UNITS) else 33)
            columns[name] = min(max(new, 0), 100)
    for name in list(columns):
        if rng.random() < 0.1:
            columns[name] = None
    for name in list(census):
        if name != "H0030002" and rng.random() < 0.04:
            del census[name]
    return census, Property(one.reported, columns)


SIZES = [(REAL, 2), (REAL, 3), (TINY, 3), (TINY, 4)]


@pytest.mark.parametrize("model", ["sharp", "paper"])
@pytest.mark.parametrize(("world", "count"), SIZES, ids=["real 2", "real 3", "tiny 3", "tiny 4"])
@given(seed=SEEDS)
@settings(max_examples=often(60))
def test_the_answer_is_that_of_every_data_set_written_down(world: World, count: int, model: str, seed: int) -> None:
    said = published(world, np.random.default_rng(seed), count)
    if said is None or isinstance(asked := block(world, model, *(said[0], [said[1]])), LeftOut):
        return
    every = ORACLES[model](world, *said)
    found = detect(bundles(world, model), asked)
    assert found.proof != Proof.UNDECIDED
    if not every:
        assert (found.answer, found.low, found.high) == (Answer.CONTRADICTION, 0, 0)
        assert not found.low_met and not found.high_met
        return
    assert found.answer == (Answer.CERTAIN if min(every) > 0 else Answer.OPEN)
    assert (found.low, found.high, found.low_met, found.high_met) == (min(every), max(every), True, True)


# The truth is always admitted, and a proof is right as far as its model is

FULL = World(20)


def at_home(rng: np.random.Generator, count: int, most: int = 9) -> list[Household]:
    """Households more as they are: mostly small, an adult in each, bedrooms mostly enough."""
    found = []
    for one in draw(FULL, rng, count):
        persons = int(min(rng.geometric(0.4), most))
        children = int(rng.integers(0, persons)) if rng.random() < 0.7 else 0
        enough = 1 if persons <= 2 else 2 if persons <= 4 else 3
        bedrooms = enough if one.bedrooms and rng.random() < 0.95 else one.bedrooms
        found.append(one._replace(persons=persons, children=children, bedrooms=bedrooms))
    return found


def shared_out(rng: np.random.Generator, households: Sequence[Household]) -> list[Property]:
    """What is published of one to three properties in which the subsidised live."""
    inside = [one for one in households if one.bedrooms]
    of = rng.integers(0, rng.integers(1, 4), len(inside))
    return [
        hud(some) for at in range(3) if (some := [one for one, where in zip(inside, of, strict=True) if where == at])
    ]


@pytest.mark.parametrize("model", ["sharp", "paper"])
@given(seed=SEEDS, count=st.integers(1, 60))
@settings(max_examples=often(40))
def test_the_truth_is_always_admitted(model: str, seed: int, count: int) -> None:
    """Honest numbers, halves rounded up, at most 100 households a property: no contradiction, no false proof."""
    rng = np.random.default_rng(seed)
    households = at_home(rng, count)
    properties = shared_out(rng, households)
    if not properties:
        return
    asked = block(FULL, model, FULL.census(households), properties)
    assert not isinstance(asked, LeftOut)
    found, true = detect(bundles(FULL, model), asked), FULL.violations(households)
    assert found.answer != Answer.CONTRADICTION
    assert found.low <= true <= found.high
    assert found.answer == Answer.OPEN or true > 0
    assert (found.answer == Answer.CERTAIN) == (found.low > 0)
    wider = detect(bundles(FULL, "paper"), block_here(FULL, "paper", FULL.census(households), properties))
    assert wider.low <= found.low and found.high <= wider.high  # precise numbers narrow, never widen


def units_of(rng: np.random.Generator, inside: Sequence[Household]) -> list[int]:
    """Units of each size: those of households that report, and others that have nobody who does."""
    return [sum(one.bedrooms == at + 1 for one in inside) + int(rng.choice([0, 0, 1, 3, 9])) for at in range(3)]


@given(seed=SEEDS, count=st.integers(1, 60), of_units=st.booleans())
@settings(max_examples=often(60))
def test_the_truth_is_admitted_whatever_percentages_are_of(seed: int, count: int, of_units: bool) -> None:
    """Units may stand empty, and bedrooms are published of all units or of the households that report."""
    rng = np.random.default_rng(seed)
    households = at_home(rng, count)
    inside = [one for one in households if one.bedrooms]
    if not inside:
        return
    units, one = units_of(rng, inside), hud(inside)
    said = with_units(one, units) if of_units else replace(one, columns={**one.columns, UNITS: sum(units)})
    true = FULL.violations(households)
    found = detect(bundles(FULL, "sharp"), block_here(FULL, "sharp", FULL.census(households), [said]))
    assert found.answer != Answer.CONTRADICTION and found.low <= true <= found.high
    printed = detect(bundles(FULL, "paper"), block_here(FULL, "paper", FULL.census(households), [said]))
    assert not of_units or printed.low <= true  # appendix D: of units; how many there may be at most is no matter there
    blind = replace(said, columns={**said.columns, UNITS: None})
    for model in ("sharp", "paper"):  # without the number of units, bedrooms prove nothing
        assert detect(bundles(FULL, model), block_here(FULL, model, FULL.census(households), [blind])).low == 0


def test_half_of_forty_units_say_nothing_of_twenty_households_that_fit_into_the_others() -> None:
    """20 units of one bedroom, 20 of two, 20 households of three report: all may live in the larger ones.

    With fewer units, some must live in the smaller: of 30, 15 have two bedrooms. If the percentages are of households,
    10 of them do; of 30 units, 5 must. 39 units cannot be divided into halves: 50% of them is 19 at least.
    """
    households = [Household(3, 0, 1, 1, 2)] * 20
    census, one = FULL.census(households), hud(households)
    halves: dict[str, int | None] = {**one.columns, "pct_bed1": 50, "pct_bed2": 50, "pct_bed3": 0}
    for units, least in {20: 10, 21: 9, 30: 5, 38: 1, 39: 0, 40: 0, 41: 0, 60: 0}.items():
        said = replace(one, columns={**halves, UNITS: units})
        for model in ("sharp", "paper"):
            found = detect(bundles(FULL, model), block_here(FULL, model, census, [said]))
            assert (found.answer, found.low) == (Answer.CERTAIN if least else Answer.OPEN, least), (units, model)
            assert found.proof == Proof.EXACT and found.low_met


def read_otherwise(rng: np.random.Generator, one: Property) -> Property:
    """A property with other bedrooms: readings of small ones include each other, so two are made of two properties."""
    columns = dict(one.columns)
    for name in rng.choice([*BEDROOMS, UNITS], 2, replace=False).tolist():
        columns[name] = int(rng.choice([0, 33, 50, 67, 100])) if name != UNITS else one.reported + int(rng.integers(4))
    return Property(one.reported, columns)


@pytest.mark.parametrize("model", ["sharp", "paper"])
@given(seed=SEEDS)
@settings(max_examples=often(60))
def test_what_is_said_holds_under_every_reading(model: str, seed: int) -> None:
    """A data set fits if it fits under one reading; a reason is one under all. Against all of each, written down."""
    rng = np.random.default_rng(seed)
    said = published(TINY, rng, 3)
    if said is None:
        return
    census, both = said[0], [said[1], read_otherwise(rng, said[1])]
    blocks = [block(TINY, model, census, [one]) for one in both]
    if any(isinstance(one, LeftOut) for one in blocks):
        return
    readings = [reading for some in blocks for reading in some if isinstance(reading, Block)]
    every = set().union(*(ORACLES[model](TINY, census, one) for one in both))
    found = detect(bundles(TINY, model), readings)
    assert found.proof != Proof.UNDECIDED
    if not every:
        assert found.answer == Answer.CONTRADICTION
        return
    assert found.answer == (Answer.CERTAIN if min(every) > 0 else Answer.OPEN)
    assert (found.low, found.high, found.low_met, found.high_met) == (min(every), max(every), True, True)
    reason = explain(bundles(TINY, model), readings)
    assert (reason is None) == (0 in every)
    if reason is not None:
        assert reason.minimal and all(explain(bundles(TINY, model), [reading]) is not None for reading in readings)


def test_neither_reading_includes_the_other_in_a_large_property() -> None:
    """51, 41 and 7 percent of 70 units are 36, 29 and 5; of the 69 households that report, 35, 28 and 5 at least.

    Of units, of which one has nobody who reports: at least 64 live with two bedrooms or fewer, and the sixth household
    of five persons breaks the rule. Of households: one may live anywhere, and nobody breaks it.
    """
    households = [Household(2, 0, 1, 1, 1)] * 35 + [Household(4, 0, 1, 1, 2)] * 28 + [Household(5, 0, 1, 1, 3)] * 6
    one = hud(households)
    shares: dict[str, int | None] = {**one.columns, "pct_bed1": 51, "pct_bed2": 41, "pct_bed3": 7, UNITS: 70}
    readings = block_here(FULL, "sharp", FULL.census(households), [replace(one, columns=shares)])
    names = [said.name for said in FULL.occupancy.model("sharp").statements]
    told = [[int(reading.lower[names.index(f"bed{at}")]) for at in ("1", "2", "3", "1or2")] for reading in readings]
    assert told == [[35, 28, 4, 64], [35, 28, 5, 63]]
    alone = [detect(bundles(FULL, "sharp"), [reading]) for reading in readings]
    assert [(found.answer, found.low) for found in alone] == [(Answer.CERTAIN, 1), (Answer.OPEN, 0)]
    found = detect(bundles(FULL, "sharp"), readings)
    assert (found.answer, found.low, found.proof) == (Answer.OPEN, 0, Proof.EXACT)
    assert explain(bundles(FULL, "sharp"), readings) is None


def block_here(world: World, model: str, census: Published, properties: Sequence[Property]) -> Readings:
    asked = block(world, model, census, properties)
    assert not isinstance(asked, LeftOut)
    return asked


def answers(world: World, households: Sequence[Household], census: Published | None = None) -> dict[str, Answer]:
    """What each model says of a block with one property."""
    said = census or world.census(households)
    one = hud([home for home in households if home.bedrooms])
    return {model: detect(bundles(world, model), block_here(world, model, said, [one])).answer
            for model in ("sharp", "paper")}  # fmt: skip


def test_rounding_down_proves_what_is_not_so_in_large_properties() -> None:
    """With 200 or more households a percentage that was rounded up stands for one household more than there are.

    Of 300 households 2 have one bedroom: 0.67 percent, published as 1, and 1 percent of 300 is 3. Appendix E asks for
    at least 3 small units, but only two households are small. Sharp limits know that 1 percent is 2, 3 or 4 of 300.
    """
    households = [Household(1, 0, 1, 1, 1)] * 2 + [Household(3, 0, 1, 1, 2)] + [Household(3, 0, 1, 1, 3)] * 297
    assert FULL.violations(households) == 0
    assert answers(FULL, households) == {"sharp": Answer.OPEN, "paper": Answer.CERTAIN}
    fewer = [Household(1, 0, 1, 1, 1)] * 2 + [Household(3, 0, 1, 1, 2)] + [Household(3, 0, 1, 1, 3)] * 196
    assert answers(FULL, fewer) == {"sharp": Answer.OPEN, "paper": Answer.OPEN}  # 199 households


def test_rounding_children_proves_what_is_not_so_below_200_households() -> None:
    """Rounding down is right below 200 households, but appendix E takes households with children as an equality.

    Two of 140 households have children: 1.43 percent, published as 1, and 1 percent of 140 is 1.4, so 1. Now 12
    children must live in one subsidised household and in those outside (7 persons): the subsidised one has 5 or more.
    It takes a household of one 17-year-old to come about: elsewhere an adult leaves room for one more child.
    """
    households = [Household(2, 0, 1, 1, 1)] * 133 + [Household(4, 0, 1, 1, 2)] * 5 + [Household(4, 3, 1, 1, 2)] * 2
    households += [Household(6, 5, 1, 1, 0), Household(1, 1, 1, 1, 0)]
    assert FULL.violations(households) == 0
    assert answers(FULL, households) == {"sharp": Answer.OPEN, "paper": Answer.CERTAIN}
    grown = [*households[:-1], Household(1, 0, 1, 1, 0)]
    assert answers(FULL, grown) == {"sharp": Answer.OPEN, "paper": Answer.OPEN}


def test_agencies_that_differ_about_race_contradict_and_prove_nothing() -> None:
    """The census has a householder as white, HUD as black. No data set fits; nothing is said of anybody.

    Race is in a face of its own and so cannot make a household large: sharp never turns this into a detection. Lower
    limits on who is present (appendix E) let both be true.
    """
    small = [Household(2, 0, 1, 1, 1), Household(1, 0, 1, 1, 1), Household(2, 0, 1, 1, 0)]
    large = [Household(3, 0, 1, 1, 1), *small[1:2], Household(3, 0, 1, 1, 0)]
    for households, otherwise in ((small, Answer.OPEN), (large, Answer.CERTAIN)):
        census = FULL.census(households)
        assert answers(FULL, households) == {"sharp": otherwise, "paper": otherwise}
        black = [home._replace(race=2) if at == 0 else home for at, home in enumerate(households)]
        assert answers(FULL, black, census) == {"sharp": Answer.CONTRADICTION, "paper": otherwise}


def test_a_sample_of_kinds_can_prove_what_is_not_so() -> None:
    """In a sample race goes with size: if its only black households are large, a small one cannot be told.

    The truth has no violation, and `likely` lists every data set the sample can make: all have one. That nothing is
    left when kinds that break the rule are barred would be a false proof, so detection does not use a sample. Over all
    kinds the block is open.
    """
    households = [Household(2, 0, 1, 2, 1), Household(4, 0, 1, 1, 0)]
    assert FULL.violations(households) == 0
    one = hud(households[:1])
    asked = block_here(FULL, "sharp", FULL.census(households), [without(one, "people_total")])
    assert detect(bundles(FULL, "sharp"), asked).answer == Answer.OPEN
    sample = sample_of(FULL, "sharp", [Household(4, 0, 1, 2, 0), Household(2, 0, 1, 1, 0)], [3, 2])
    found = likely(sample, asked, 100, np.random.default_rng(0))
    assert found.all_there and len(found.x) == 1
    assert (found.x @ sample.kinds.breaks[found.kinds]).tolist() == [1]
    program, _ = sample.kinds.program(asked[0], barred=sample.kinds.breaks)
    assert engage(program, Ladder(), confirm=True).outcome == Outcome.INFEASIBLE


def without(one: Property, *columns: str) -> Property:
    return replace(one, columns=dict(one.columns) | dict.fromkeys(columns))


# Faces, bundles and plain kinds say the same


def plain(kinds: Kinds, asked: Readings) -> tuple[int, int] | None:
    """The least and the most violations over plain kinds; None where nothing fits."""
    ends = []
    for sign, reading in product((1, -1), asked):
        program, chosen = kinds.program(reading, sign * kinds.breaks.astype(np.int64))
        solution = engage(program, Ladder(), confirm=True)
        assert solution.proof != Proof.UNDECIDED
        if solution.x is not None:
            ends.append(int(kinds.breaks[chosen] @ solution.x))
    return (min(ends), max(ends)) if ends else None


def ends_of(some: Bundles, asked: Readings) -> tuple[int, int] | None:
    found = detect(some, asked)
    assert found.proof != Proof.UNDECIDED
    assert (found.low_met, found.high_met) == ((found.answer != Answer.CONTRADICTION),) * 2
    return None if found.answer == Answer.CONTRADICTION else (found.low, found.high)


@cache
def whole_bundles(world: World) -> Bundles:
    return bundle(one_face(world))


@given(seed=SEEDS, count=st.integers(1, 6))
@settings(max_examples=often(25))
def test_faces_say_what_whole_households_say(seed: int, count: int) -> None:
    said = published(REAL, np.random.default_rng(seed), count)
    if said is None or isinstance(asked := block(REAL, "sharp", said[0], [said[1]]), LeftOut):
        return
    found = ends_of(bundles(REAL, "sharp"), asked)
    assert found == ends_of(whole_bundles(REAL), asked)
    assert found == plain(faces(REAL, "sharp"), asked)
    assert found == plain(one_face(REAL), asked)


@pytest.mark.parametrize("model", ["sharp", "paper"])
@given(seed=SEEDS, count=st.integers(10, 60))
@settings(max_examples=often(15))
def test_bundles_say_what_plain_kinds_say(model: str, seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    households = at_home(rng, count)
    properties, census = shared_out(rng, households), FULL.census(households)
    if rng.random() < 0.5:
        name = str(rng.choice([*FULL.sizes, "P0160002", "P0160003"]))
        census[name] = max(0, census[name] + int(rng.choice([-1, 1])))
    if not properties or isinstance(asked := block(FULL, model, census, properties), LeftOut):
        return
    assert ends_of(bundles(FULL, model), asked) == plain(faces(FULL, model), asked)


# Why


def named(kinds: Kinds) -> list[str]:
    return ["households", "subsidised", *(one.name for one in kinds.named)]


def believed(kinds: Kinds, rows: Iterable[int]) -> np.ndarray:
    """The rows of the face with the rule, of those named in a reason."""
    face = int(kinds.face[kinds.breaks][0])
    found = np.zeros(kinds.rows.shape[0], np.bool_)
    found[[2 * face + row if row < 2 else row - 2 + 2 * kinds.faces for row in rows]] = True
    return found


COLUMN = {  # what the numbers of a reason are called here
    "households": "H0030002", "people": "people_total", "children": "with children", "bed1": "pct_bed1",
    "bed2": "pct_bed2", "bed3": "pct_bed3", "one-adult": "pct_1adult", "two-adults": "pct_2adults",
}  # fmt: skip


@pytest.mark.parametrize("model", ["sharp", "paper"])
@given(seed=SEEDS, count=st.integers(2, 14))
@settings(max_examples=often(25))
def test_a_reason_is_enough_and_none_of_it_can_be_left_out(model: str, seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    households = at_home(rng, count) if count > 3 else draw(FULL, rng, count)
    inside = [one for one in households if one.bedrooms]
    if not inside:
        return
    readings = block_here(FULL, model, FULL.census(households), [hud(inside)])
    (asked,) = readings  # every unit has a household that reports
    some, kinds = bundles(FULL, model), faces(FULL, model)
    found, reason = detect(some, readings), explain(some, readings)
    assert (reason is None) == (found.answer == Answer.OPEN)
    if reason is None:
        return
    assert reason.minimal and reason.proof != Proof.UNDECIDED and len(set(reason.rows)) == len(reason.rows)
    barred = kinds.breaks | (kinds.face != kinds.face[kinds.breaks][0])
    program, _ = kinds.program(asked, believed=believed(kinds, reason.rows), barred=barred)
    assert engage(program, Ladder(), confirm=True).outcome == Outcome.INFEASIBLE
    names = named(kinds)
    lower = [asked.households, asked.subsidised, *asked.lower[~kinds.present]]
    upper = [asked.households, asked.subsidised, *asked.upper[~kinds.present]]
    for without in reason.rows:
        rest = [row for row in reason.rows if row != without]
        program, chosen = kinds.program(asked, believed=believed(kinds, rest), barred=barred)
        solution = engage(program, Ladder(), confirm=True)
        assert solution.x is not None, names[without]
        others = Counter[str]()
        for home, times in zip(households_of(FULL, kinds.codes[chosen]), solution.x.tolist(), strict=True):
            assert not times or not FULL.breaks(home)
            others += Counter({name: times * one for name, one in told(FULL, home).items()})
        for row in rest:
            count = others[COLUMN.get(names[row], names[row])]
            assert lower[row] <= count and (upper[row] == UNLIMITED or count <= upper[row]), names[row]


@pytest.mark.parametrize("model", ["sharp", "paper"])
@given(seed=SEEDS)
@settings(max_examples=often(25))
def test_no_small_data_set_without_a_violation_fits_a_reason(model: str, seed: int) -> None:
    """By enumeration of up to three households; where the households are not part of the reason, of any number."""
    households = draw(REAL, np.random.default_rng(seed), 3)
    inside = [one for one in households if one.bedrooms]
    if not inside:
        return
    kinds, (asked,) = faces(REAL, model), block_here(REAL, model, REAL.census(households), [hud(inside)])
    reason = explain(bundles(REAL, model), [asked])
    if reason is None:
        assert 0 in ORACLES[model](REAL, REAL.census(households), hud(inside))
        return
    names = named(kinds)
    lower = [asked.households, asked.subsidised, *asked.lower[~kinds.present]]
    upper = [asked.households, asked.subsidised, *asked.upper[~kinds.present]]
    for number in range(4):
        every = written(REAL, number)
        fits = every.count["violations"] == 0
        for row in reason.rows:
            count = every.count[COLUMN.get(names[row], names[row])] if row else number
            fits &= (lower[row] <= count) & (count <= upper[row])
        assert not fits.any()


# The most likely


def sample_of(world: World, model: str, homes: Sequence[Household], weights: Sequence[int],
              present: Sequence[set[tuple[int, int]]] | None = None) -> Sample:  # fmt: skip
    """A sample with so many households of each kind; `present` says who lives there, as pairs of origin and race."""
    schema, how = world.scenario.schema, world.occupancy.model(model)
    flags = None
    if present is not None:
        groups = groups_present(how, schema)
        flags = np.array([[any(origin in group.get("THHSPAN", {1, 2}) and race in group.get("THHRACE", set(RACES))
                               for origin, race in some) for group in groups] for some in present])  # fmt: skip
    kinds, of = some_kinds(world.occupancy, how, schema, codes_of(world, homes), flags)
    return Sample.weighed(kinds, of, np.array(weights, np.int64))


Limits = dict[str, tuple[int, int]]


def limits_by_hand(world: World, model: str, census: Published, one: Property) -> Limits:
    """Between which counts every number but bedrooms lies, as in the oracles above; by variable and column of HUD."""
    inside, columns = one.reported, one.columns
    found: Limits = {"subsidised": (inside, inside)}
    people = columns.get("people_total")
    if model == "sharp":
        exact = (*world.sizes, *PAIR_OF, "P0160002", "P0160003")
        found |= {name: (census[name], census[name]) for name in exact if name in census}
        if people is not None:
            found["people_total"] = (people, people)
        for name in (*GROUPS, *ADULTS):
            good = [n for n in range(inside + 1) if gives(columns.get(name), n, inside)]
            found[name] = (good[0], good[-1]) if good else (1, 0)
        return found
    least = ["P0010001", "P0160002", *PAIR_OF, *(name for name, size in world.sizes.items() if size < world.open_line)]
    found |= {name: (census[name], UNLIMITED) for name in least if name in census}
    if people is not None:
        found["people_total"] = (min(people, largest_set(world, census, inside)), UNLIMITED)
    for name in GROUPS:
        if name != "pct_multi" and (share := columns.get(name)) is not None:
            found[name] = (share * inside // 100, UNLIMITED)
    first, second = (columns.get(name) for name in ADULTS)
    if first is not None and second is not None:
        number = min(sum(half_up(share * inside, 100) for share in (first, second)), inside)
        found["with children"] = (number, number)
    return found


def told(world: World, one: Household, present: set[tuple[int, int]] | None = None) -> dict[str, int]:
    """What one household adds to every number; `present` are the origins and races of all who live there."""
    there = {one.pair} if present is None else present
    found = world.census([one]) | {name: int(pair in there) for name, pair in PAIR_OF.items()}
    inside = one.bedrooms > 0
    found |= {"subsidised": int(inside), "people_total": one.persons * inside}
    found |= {name: int(one.bedrooms == at + 1) for at, name in enumerate(BEDROOMS)}
    found |= {f"bed{a}or{b}": int(one.bedrooms in (a, b)) for a, b in ((1, 2), (1, 3), (2, 3))}
    found |= {name: int(inside and bool(there & pairs)) for name, pairs in GROUPS.items()}
    found["with children"] = int(inside and one.children > 0)
    found["pct_1adult"] = int(inside and one.children > 0 and one.persons - one.children == 1)
    found["pct_2adults"] = int(inside and one.children > 0 and one.persons - one.children >= 2)
    return found


def multisets(kinds: int, number: int) -> np.ndarray:
    return np.array(list(combinations_with_replacement(range(kinds), number)), np.int64).reshape(-1, number)


def that_fit(says: Sequence[Mapping[str, int]], number: int, limits: Limits, model: str, one: Property) -> np.ndarray:
    """Every multiset of so many households that keeps to the limits and to units: a row each, how many of each kind."""
    possible = [at for at, said in enumerate(says) if all(said[name] <= high for name, (_, high) in limits.items())]
    rows = np.array(possible, np.int64)[multisets(len(possible), number)]
    fits = np.ones(len(rows), np.bool_)
    for name, (low, high) in limits.items():
        count = np.array([said[name] for said in says], np.int64)[rows[fits]].sum(axis=1)
        fits[fits] = (low <= count) & (count <= high)
    rows = rows[fits]
    rooms = [np.array([said[name] for said in says], np.int64)[rows].sum(axis=1) for name in BEDROOMS]
    rows = rows[fits_bedrooms(model, one, *rooms)]
    found = np.zeros((len(rows), len(says)), np.int64)
    for column in rows.T:
        found[np.arange(len(rows)), column] += 1
    return found


@dataclass(frozen=True)
class Toy:
    """A small sample, a block that its kinds may make, and every data set of those kinds that fits."""

    sample: Sample
    block: Readings
    fits: np.ndarray
    households: tuple[Household, ...]  # of each kind of the sample


def toy(model: str, seed: int, *, count: int | None = None, kinds: int | None = None, vague: float = 0.3) -> Toy | None:
    rng = np.random.default_rng(seed)
    number = count or int(rng.integers(2, 5))
    homes = list({one._replace(bedrooms=0) for one in draw(REAL, rng, kinds or int(rng.integers(2, 6)), most=5)})
    homes.sort()
    weights = [int(weight) for weight in rng.choice([1, 2, 2, 5, 9], len(homes))]  # some cost the same
    present = None
    if model == "paper":
        present = [{one.pair, *(PAIRS[at] for at in rng.choice(len(PAIRS), 2))} for one in homes]
    truth = [homes[at]._replace(bedrooms=int(rng.integers(0, 4))) for at in rng.integers(0, len(homes), number)]
    inside = [one for one in truth if one.bedrooms]
    if not inside:
        return None
    census, one = REAL.census(truth), hud(inside)
    for name in [name for name in census if name != "H0030002" and rng.random() < vague]:
        del census[name]
    one = without(one, *(name for name in one.columns if rng.random() < vague))
    both = [one] if rng.random() < 0.5 else [one, read_otherwise(rng, one)]
    asked = [block(REAL, model, census, [some]) for some in both]
    if any(isinstance(some, LeftOut) for some in asked):
        return None
    ways = [home._replace(bedrooms=bedrooms) for home in homes for bedrooms in range(4)]
    there = [None if present is None else present[at] for at in range(len(homes)) for _ in range(4)]
    says = [told(REAL, home, who) for home, who in zip(ways, there, strict=True)]
    fits = np.concatenate([that_fit(says, number, limits_by_hand(REAL, model, census, some), model, some)
                           for some in both])  # fmt: skip
    readings = tuple(reading for some in asked for reading in some if isinstance(reading, Block))
    return Toy(sample_of(REAL, model, homes, weights, present), readings, np.unique(fits, axis=0), tuple(ways))


@pytest.mark.parametrize("model", ["sharp", "paper"])
@given(seed=SEEDS)
@settings(max_examples=often(20))
def test_the_most_likely_are_those_of_every_data_set_written_down(model: str, seed: int) -> None:
    one = toy(model, seed)
    if one is None:
        return
    assert codes_of(REAL, one.households).tolist() == one.sample.kinds.codes.tolist()
    costs = np.sort(one.fits @ one.sample.cost)
    every = {row.tobytes() for row in one.fits}
    for t in (1, 3, 10, 100):
        found = likely(one.sample, one.block, t, np.random.default_rng(seed))
        rows = np.zeros((len(found.x), len(one.households)), np.int64)
        rows[:, found.kinds] = found.x
        assert found.cost.tolist() == costs[:t].tolist() == (rows @ one.sample.cost).tolist()
        assert len({row.tobytes() for row in rows}) == len(rows)
        assert {row.tobytes() for row in rows} <= every
        assert found.all_there == (len(costs) <= t)
        assert found.tied == (len(costs) > t and costs[t] == costs[t - 1])
        assert found.proof != Proof.UNDECIDED
        again = likely(one.sample, one.block, t, np.random.default_rng(seed))
        assert again.x.tolist() == found.x.tolist()
        other = likely(one.sample, one.block, t, np.random.default_rng(seed + 1))
        assert other.cost.tolist() == found.cost.tolist()
        below = found.cost < (found.cost[-1] if found.tied else UNLIMITED)  # ties at the end alone may differ
        assert {x.tobytes() for x in other.x[below]} == {x.tobytes() for x in found.x[below]}


@pytest.mark.parametrize("model", ["sharp", "paper"])
@given(seed=SEEDS)
@settings(max_examples=often(25))
def test_bundles_of_a_sample_have_no_kinds_but_its_own(model: str, seed: int) -> None:
    """Kinds of a sample leave gaps (2 and 5 persons, nobody between), which a bundle must not fill."""
    one = toy(model, seed)
    if one is None:
        return
    broken = one.fits @ np.array([REAL.breaks(home) for home in one.households], np.int64)
    found = ends_of(bundle(one.sample.kinds), one.block)
    assert found == ((int(broken.min()), int(broken.max())) if len(broken) else None)


def test_a_bundle_does_not_fill_a_gap() -> None:
    """A sample has one child in five persons, and three. One household with two children is not of it."""
    sample = sample_of(REAL, "sharp", [Household(5, 1, 1, 1, 0), Household(5, 3, 1, 1, 0)], [1, 1])
    for children, fits in ((1, True), (2, False), (3, True)):
        truth = [Household(5, children, 1, 1, 1)]
        asked = block_here(REAL, "sharp", REAL.census(truth), [hud(truth)])
        assert ends_of(bundle(sample.kinds), asked) == ((1, 1) if fits else None)


@pytest.mark.parametrize("seed", [0, 2, 4])
def test_the_most_likely_where_there_are_thousands_of_ways(seed: int) -> None:
    """More ways to house a census part than are wanted: drawn, all different, and none dearer than need be."""
    one = toy("sharp", seed + 40, count=7, kinds=3, vague=0.9)
    assert one is not None and len(one.fits) > 1000
    costs = np.sort(one.fits @ one.sample.cost)
    for t in (1, 100):
        found = likely(one.sample, one.block, t, np.random.default_rng(seed))
        assert found.cost.tolist() == costs[:t].tolist()
        assert len({x.tobytes() for x in found.x}) == t
        rows = np.zeros((t, len(one.households)), np.int64)
        rows[:, found.kinds] = found.x
        assert {row.tobytes() for row in rows} <= {row.tobytes() for row in one.fits}
        assert (found.all_there, found.tied) == (False, bool(costs[t] == costs[t - 1]))
        other = likely(one.sample, one.block, t, np.random.default_rng(seed + 1))
        assert other.cost.tolist() == found.cost.tolist()
        assert t == 1 or other.x.tolist() != found.x.tolist()


def test_nothing_is_likely_where_the_sample_cannot_make_it() -> None:
    households = [Household(2, 0, 1, 1, 1), Household(3, 0, 1, 1, 0)]
    asked = block_here(REAL, "sharp", REAL.census(households), [hud(households[:1])])
    found = likely(sample_of(REAL, "sharp", [Household(2, 0, 1, 1, 0)], [1]), asked, 5, np.random.default_rng(0))
    assert len(found.x) == 0 and found.all_there and not found.tied and found.proof == Proof.EXACT
    assert detect(bundles(REAL, "sharp"), asked).answer == Answer.OPEN


# How unlike


@cache
def every_household(world: World) -> tuple[Household, ...]:
    return tuple(
        Household(p, c, origin, race, b)
        for p in range(1, world.most + 1) for c in range(p + 1) for origin, race in PAIRS for b in range(4)
    )  # fmt: skip


@cache
def all_told(world: World) -> tuple[dict[str, int], ...]:
    return tuple(told(world, one) for one in every_household(world))


def simple(world: World, one: Household) -> tuple[int, ...]:
    """The size as in H13, bedrooms, a white householder, a child."""
    return min(one.persons, world.open_line), one.bedrooms, one.pair == (1, 1), one.children > 0


def farthest(some: Sequence[Household], others: Iterable[Sequence[Household]], *, of: str, world: World) -> int:
    """The largest L1 distance of histograms."""

    def histogram(households: Sequence[Household]) -> Counter[tuple[int, ...]]:
        looked = [one for one in households if "breaking" not in of or world.breaks(one)]
        return Counter(simple(world, one) if "simple" in of else tuple(one) for one in looked)

    own = histogram(some)
    return max(sum(((own - other) + (other - own)).values()) for other in map(histogram, others))


def numbers_of(world: World, households: Sequence[Household]) -> np.ndarray:
    """Which of all kinds each household is of."""
    at = {tuple(row): number for number, row in enumerate(one_face(world).codes.tolist())}
    return np.array([at[tuple(row)] for row in codes_of(world, households).tolist()], np.int64)


@pytest.mark.parametrize(("world", "count"), [(REAL, 2), (TINY, 2), (TINY, 3)], ids=["real 2", "tiny 2", "tiny 3"])
@given(seed=SEEDS)
@settings(max_examples=often(20))
def test_solution_variability_is_the_farthest_of_all_that_fit(world: World, count: int, seed: int) -> None:
    _is_the_farthest(world, count, seed)


@given(seed=SEEDS)
@settings(max_examples=10)
def test_it_is_where_few_of_the_kinds_are_branched_on(seed: int) -> None:
    """As in blocks that can have thousands of kinds of household."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(few, "MANY", 0)
        _is_the_farthest(TINY, 3, seed)


def _is_the_farthest(world: World, count: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth = draw(world, rng, count)
    inside = [one for one in truth if one.bedrooms]
    if not inside:
        return
    one = without(hud(inside), *(name for name in SHARES if rng.random() < 0.4))
    census, asked = world.census(truth), block_here(world, "sharp", world.census(truth), [one])
    rows = that_fit(all_told(world), count, limits_by_hand(world, "sharp", census, one), "sharp", one)
    homes = every_household(world)
    fits = [[home for at in np.flatnonzero(row) for home in [homes[at]] * row[at]] for row in rows]
    assert Counter(truth) in [Counter(some) for some in fits]
    begin = fits[int(rng.integers(len(fits)))]  # any that fits, each household by itself
    for of in ("all", "simple", "breaking", "breaking simple"):
        key = world.occupancy.measures["simple"] if "simple" in of else None
        found = unlike(one_face(world), asked, numbers_of(world, begin), np.ones(count, np.int64), key=key,
                       breaking="breaking" in of)  # fmt: skip
        assert found.proof != Proof.UNDECIDED
        assert found.distance == found.most == farthest(begin, fits, of=of, world=world), of
        assert found.households == count and found.share == found.share_most == found.distance / (2 * count)


@pytest.mark.parametrize("model", ["sharp", "paper"])
@given(seed=SEEDS)
@settings(max_examples=often(25))
def test_solution_variability_over_the_kinds_of_a_sample(model: str, seed: int) -> None:
    one = toy(model, seed)
    if one is None or not len(one.fits):
        return
    begin = one.fits[seed % len(one.fits)]
    fits = [[home for home, times in zip(one.households, row, strict=True) for _ in range(times)] for row in one.fits]
    mine = fits[seed % len(fits)]
    inside = np.flatnonzero(begin)
    for of in ("all", "simple", "breaking", "breaking simple"):
        key = REAL.occupancy.measures["simple"] if "simple" in of else None
        found = unlike(one.sample.kinds, one.block, inside, begin[inside], key=key,
                       breaking="breaking" in of)  # fmt: skip
        assert found.distance == found.most == farthest(mine, fits, of=of, world=REAL), of


Somebody = tuple[Household, frozenset[tuple[int, int]]]  # a household, and who lives there


@given(seed=SEEDS)
@settings(max_examples=often(20))
def test_solution_variability_where_anybody_may_be_present(seed: int) -> None:
    """Under `paper` other data sets are of all kinds, not of those of a sample alone (equation 3 over appendix E).

    Against households of every size with few householders, in which a few sets of people live, everybody among them.
    """
    rng = np.random.default_rng(seed)
    homes = [one._replace(bedrooms=0, children=min(one.children, 1)) for one in draw(TINY, rng, 3)]
    homes = list(dict.fromkeys(one._replace(origin=1, race=int(rng.integers(1, 3))) for one in homes))
    who = [frozenset({one.pair, PAIRS[rng.integers(len(PAIRS))]}) for one in homes]
    truth = [homes[at]._replace(bedrooms=int(rng.integers(0, 4))) for at in rng.integers(0, len(homes), 2)]
    inside = [one for one in truth if one.bedrooms]
    if not inside:
        return
    census, one = TINY.census(truth), without(hud(inside), *(name for name in SHARES if rng.random() < 0.4))
    asked = block(TINY, "paper", census, [one])
    sample = sample_of(TINY, "paper", homes, [1] * len(homes), [set(some) for some in who])
    if isinstance(asked, LeftOut) or not len((rebuilt := likely(sample, asked, 1, rng)).x):
        return
    used = rebuilt.x[0] > 0
    begin = [(home, people) for at, times in zip(rebuilt.kinds[used], rebuilt.x[0][used], strict=True)
             for home, people in [(households_of(TINY, sample.kinds.codes[[at]])[0], who[at // 4])]
             for _ in range(times)]  # fmt: skip
    people = [*dict.fromkeys(who), frozenset(PAIRS)]
    every: list[Somebody] = [
        (Household(p, c, 1, race, b), some)
        for p in range(1, 5) for c in range(p + 1) for race in (1, 2) for b in range(4) for some in people
    ]  # fmt: skip
    says = [told(TINY, home, set(some)) for home, some in every]
    fits = that_fit(says, 2, limits_by_hand(TINY, "paper", census, one), "paper", one)
    others = [[every[at] for at in np.flatnonzero(row) for _ in range(row[at])] for row in fits]
    kinds, start = every_kind(
        TINY.occupancy, TINY.occupancy.model("paper"), TINY.scenario.schema
    ).and_these(sample.kinds, rebuilt.kinds[used])  # fmt: skip
    for of in ("all", "simple", "breaking"):
        key = TINY.occupancy.measures["simple"] if of == "simple" else None
        found = unlike(kinds, asked, start, rebuilt.x[0][used], key=key, breaking=of == "breaking")
        assert found.proof != Proof.UNDECIDED
        assert found.distance == found.most == far_in_kinds(begin, others, of), of
        assert of != "all" or found.share == 1  # everybody may live everywhere


def far_in_kinds(some: Sequence[Somebody], others: Iterable[Sequence[Somebody]], of: str) -> int:
    """The largest L1 distance of histograms of households and of who lives there."""

    def histogram(households: Sequence[Somebody]) -> Counter[object]:
        looked = [one for one in households if of != "breaking" or TINY.breaks(one[0])]
        return Counter(simple(TINY, one[0]) if of == "simple" else one for one in looked)

    own = histogram(some)
    return max(sum(((own - other) + (other - own)).values()) for other in map(histogram, others))


def test_solution_variability_where_kinds_differ_in_who_is_present_alone() -> None:
    """Two households of one sort, in one of which somebody black lives: other kinds, though their levels are the same.

    What fits: the subsidised one is that with the black person, or the other, or both have one. The first two differ
    in both households.
    """
    homes, present = [Household(2, 0, 1, 1, 0)] * 2, [{(1, 1)}, {(1, 1), (1, 2)}]
    sample = sample_of(REAL, "paper", homes, [3, 1], present)
    truth = [Household(2, 0, 1, 1, 1), Household(2, 0, 1, 1, 0)]
    asked = block_here(REAL, "paper", REAL.census(truth) | {"P0150004": 1}, [hud(truth[:1])])
    found = likely(sample, asked, 10, np.random.default_rng(0))
    assert len(found.x) == 3
    distances = [unlike(sample.kinds, asked, found.kinds, x).distance for x in found.x[:2]]  # one black person each
    assert distances == [4, 4]


# How close


def squared(says: Sequence[Mapping[str, int]], rows: np.ndarray, census: Published, names: Iterable[str]) -> np.ndarray:
    """The squared error of the census for each row of counts; what is not published has none."""
    error = np.zeros(len(rows), np.int64)
    for name in names:
        if name in census:
            error += (rows @ np.array([said[name] for said in says], np.int64) - census[name]) ** 2
    return error


def noisy(rng: np.random.Generator, census: Published) -> Published:
    added = {name: max(0, value + int(rng.integers(-2, 3))) for name, value in census.items()}
    return added | {"H0030002": census["H0030002"], "P0160001": 99}  # enough people, or the block is left out


def of_census(world: World, model: str) -> tuple[str, ...]:
    """The census numbers of a model, without those of householders."""
    if model == "sharp":
        return (*world.sizes, "P0160002", "P0160003")
    return (*list(world.sizes)[:-1], "P0010001", "P0160002")


def hud_alone(limits: Limits) -> Limits:
    return {name: ends for name, ends in limits.items() if name not in PAIR_OF and name[0] not in "HP"}


@pytest.mark.parametrize("model", ["sharp", "paper"])
@given(seed=SEEDS)
@settings(max_examples=often(12))
def test_the_closest_is_as_close_as_any(model: str, seed: int) -> None:
    """Of all data sets with the same households, as many subsidised, and all that HUD publishes; two households.

    Under `paper` who is present is anybody's guess, and what the census says of it is left aside.
    """
    rng = np.random.default_rng(seed)
    truth = draw(TINY, rng, 2)
    inside = [one for one in truth if one.bedrooms]
    if not inside:
        return
    census, one = noisy(rng, TINY.census(truth)), hud(inside)
    one = without(one, *(name for name in one.columns if rng.random() < 0.3))
    fixed = hud_alone(limits_by_hand(TINY, model, census, one))
    if model == "paper":
        fixed = {name: ends for name, ends in fixed.items() if name not in GROUPS}  # any household may have anybody
    rows = that_fit(all_told(TINY), 2, fixed, model, one)
    names = (*of_census(TINY, model), *(PAIR_OF if model == "sharp" else ()))
    errors = squared(all_told(TINY), rows, census, names)
    broken = rows @ np.array([TINY.breaks(home) for home in every_household(TINY)], np.int64)
    kinds = faces(TINY, model)
    found = least_error(kinds, block_here(TINY, model, census, [one]))
    assert found is not None and found.error == found.cost
    assert found.least <= errors.min() <= found.cost
    assert found.proof == Proof.UNDECIDED or found.least == found.cost
    assert found.violations in broken[errors == found.error]
    assert int(kinds.breaks @ found.x) == found.violations


@pytest.mark.parametrize("model", ["sharp", "paper"])
@given(seed=SEEDS, weight=st.sampled_from([1, 100, 10_000]))
@settings(max_examples=often(20))
def test_the_closest_and_most_likely(model: str, seed: int, weight: int) -> None:
    """Equation 8 with the likelihood of a sample: its cost and the squared error together."""
    rng = np.random.default_rng(seed)
    homes = sorted({one._replace(bedrooms=0) for one in draw(REAL, rng, 5, most=5)})
    truth = [homes[at]._replace(bedrooms=int(rng.integers(0, 4))) for at in rng.integers(0, len(homes), 3)]
    inside = [one for one in truth if one.bedrooms]
    if not inside:
        return
    who = [{one.pair, PAIRS[rng.integers(len(PAIRS))]} for one in homes] if model == "paper" else None
    census, one = noisy(rng, REAL.census(truth)), hud(inside)
    one = without(one, *(name for name in one.columns if rng.random() < 0.3))
    sample = sample_of(REAL, model, homes, [int(n) for n in rng.integers(1, 9, len(homes))], who)
    ways = [home._replace(bedrooms=bedrooms) for home in homes for bedrooms in range(4)]
    says = [told(REAL, home, None if who is None else who[at // 4]) for at, home in enumerate(ways)]
    fixed = hud_alone(limits_by_hand(REAL, model, census, one))
    rows = that_fit(says, 3, fixed, model, one)
    found = least_error(sample.kinds, block_here(REAL, model, census, [one]), cost=sample.cost, weight=weight)
    if not len(rows):
        assert found is None
        return
    names = (*of_census(REAL, model), *PAIR_OF)
    errors = squared(says, rows, census, names)
    total = weight * errors + rows @ sample.cost
    assert found is not None and found.least <= total.min() <= found.cost
    assert found.proof == Proof.UNDECIDED or found.least == found.cost
    assert found.x.tobytes() in {row.tobytes() for row in rows[total == found.cost]}
    assert found.error == squared(says, found.x[None], census, names)[0]
    assert found.violations == int(found.x @ np.array([REAL.breaks(home) for home in ways]))


def test_the_closest_does_not_ask_for_what_is_not_published() -> None:
    """A number that is not published has no error: the household has two persons, whatever H13 does not say."""
    truth = [Household(2, 0, 1, 1, 1)]
    census = {name: value for name, value in REAL.census(truth).items() if name != "H0130003"}
    found = least_error(faces(REAL, "sharp"), block_here(REAL, "sharp", census, [hud(truth)]))
    assert found is not None and found.error == 0


def test_the_closest_keeps_to_an_interval() -> None:
    """Of a census number that is known between limits there is no error to speak of: it is within them."""
    truth = [Household(2, 0, 1, 1, 1), Household(4, 0, 1, 1, 0)]
    census = {name: Interval(value, value) for name, value in REAL.census(truth).items()}
    census |= {"H0130003": Interval(0, 0), "H0130005": Interval(0, 2)}  # nobody of two persons, they say
    how = REAL.occupancy, REAL.occupancy.model("sharp"), "180010001001000"
    asked = readings_of(*how, census, [hud(truth[:1])])
    assert not isinstance(asked, LeftOut)
    found = least_error(faces(REAL, "sharp"), asked)
    assert found is not None and found.error == found.least == 1


def test_there_is_no_closest_where_properties_cannot_be_met() -> None:
    truth = [Household(2, 0, 1, 1, 1)]
    one = hud(truth)
    bad = replace(one, columns=dict(one.columns) | {"pct_white_nothsp": 50})
    assert least_error(faces(REAL, "sharp"), block_here(REAL, "sharp", REAL.census(truth), [bad])) is None


# Statements


def test_blocks_that_are_left_out_and_why() -> None:
    truth = [Household(2, 0, 1, 1, 1), Household(3, 1, 1, 2, 0)]
    census, one = REAL.census(truth), hud(truth[:1])
    for model in ("sharp", "paper"):
        assert isinstance(block(REAL, model, census, [one]), tuple)
        more = block(REAL, model, census, [one, one, one])
        assert more == LeftOut("180010001001000", MORE_HOUSEHOLDS)
        assert isinstance(block(REAL, model, census, [one, without(one, "people_total")]), tuple)
        people = replace(one, columns=dict(one.columns) | {"people_total": 6})
        assert block(REAL, model, census, [people]) == LeftOut("180010001001000", MORE_PEOPLE)
        five = replace(one, columns=dict(one.columns) | {"people_total": 5})
        assert isinstance(block(REAL, model, census, [five]), tuple)
        two = [replace(one, columns=dict(one.columns) | {"people_total": 3})] * 2  # together more than there are
        assert block(REAL, model, census, two) == LeftOut("180010001001000", MORE_PEOPLE)
        nobody = block(REAL, model, REAL.census([]), [one])
        assert nobody == LeftOut("180010001001000", NO_HOUSEHOLDS)
        crowd = block(REAL, model, census | {"P0010001": 6}, [one])
        assert crowd == LeftOut("180010001001000", QUARTERS) if model == "paper" else isinstance(crowd, tuple)
    only_all = {name: value for name, value in census.items() if name != "P0160001"}
    assert block(REAL, "sharp", only_all, [people]) == LeftOut("180010001001000", MORE_PEOPLE)
    assert isinstance(block(REAL, "paper", only_all | {"P0010001": 6}, [one]), tuple)  # nobody says who is in quarters


def test_the_number_of_households_must_be_published_and_exact() -> None:
    truth = [Household(2, 0, 1, 1, 1)]
    census = {name: Interval(value, value) for name, value in REAL.census(truth).items()}
    how = REAL.occupancy, REAL.occupancy.model("sharp"), "180010001001000"
    with pytest.raises(InputError, match="H0030002 is not published"):
        readings_of(*how, {name: value for name, value in census.items() if name != "H0030002"}, [hud(truth)])
    with pytest.raises(InputError, match="must be exact"):
        readings_of(*how, census | {"H0030002": Interval(1, 2)}, [hud(truth)])


def test_limits_of_several_properties_are_added_up() -> None:
    """7 and 30 households: sums of the limits of each, of a number that one does not publish 0 to all of its own."""
    first = Property(
        7,
        {"people_total": 20, UNITS: 7, "pct_bed1": 43, "pct_white_nothsp": 100, "pct_1adult": 14, "pct_2adults": 29},
    )
    second = Property(
        30,
        {"people_total": 50, UNITS: 30, "pct_bed1": 10, "pct_white_nothsp": None, "pct_1adult": 7, "pct_2adults": 0},
    )
    census = {"H0030002": 40, "P0160001": 100, "P0010001": 100}
    found: dict[str, Limits] = {}
    for model in ("sharp", "paper"):
        (asked,) = block_here(REAL, model, census, [first, second])
        assert (asked.households, asked.subsidised) == (40, 37)
        ends = zip(asked.lower.tolist(), asked.upper.tolist(), strict=True)
        found[model] = {one.name: end for one, end in zip(REAL.occupancy.model(model).statements, ends, strict=True)}
    sharp, paper = found["sharp"], found["paper"]
    assert (sharp["people"], sharp["bed1"], sharp["bed2"]) == ((70, 70), (3 + 3, UNLIMITED), (0, UNLIMITED))
    assert (sharp["white"], sharp["one-adult"], sharp["two-adults"]) == ((7, 37), (1 + 2, 1 + 2), (2, 2))
    assert (sharp["H0130002"], sharp["P0160002"]) == ((0, UNLIMITED), (0, UNLIMITED))
    assert (paper["people"], paper["bed1"], paper["bed2"]) == ((70, UNLIMITED), (3 + 3, UNLIMITED), (0, UNLIMITED))
    assert (paper["white"], paper["children"]) == ((7, UNLIMITED), (1 + 2 + 2 + 0, 1 + 2 + 2 + 0))
    assert (paper["P0010001"], paper["H0130002"]) == ((100, UNLIMITED), (0, UNLIMITED))
    (half,) = block_here(REAL, "paper", census, [first, without(second, "pct_2adults", "people_total")])
    names = [one.name for one in REAL.occupancy.model("paper").statements]
    assert (half.lower[names.index("children")], half.upper[names.index("children")]) == (3, 33)
    assert half.lower[names.index("people")] == 20


def test_no_more_households_with_children_than_report() -> None:
    """Half of three households is two, and two and two are four: all three, no more."""
    truth = [Household(3, 1, 1, 1, 3)] * 3
    one = replace(hud(truth), columns=dict(hud(truth).columns) | {"pct_1adult": 50, "pct_2adults": 50})
    (asked,) = block_here(REAL, "paper", REAL.census(truth), [one])
    at = [said.name for said in REAL.occupancy.model("paper").statements].index("children")
    assert (asked.lower[at], asked.upper[at]) == (3, 3)
    assert detect(bundles(REAL, "paper"), [asked]).answer == Answer.OPEN


@given(seed=SEEDS, count=st.integers(1, 6), number=st.integers(0, 6))
@settings(max_examples=often(60))
def test_the_largest_set_of_households(seed: int, count: int, number: int) -> None:
    """Against every way to share out the persons of the block over its households."""
    rng = np.random.default_rng(seed)
    sizes = [int(size) for size in rng.integers(1, 10, count)]
    census = REAL.census([Household(size, 0, 1, 1, 0) for size in sizes])
    lines = sorted(min(size, 7) for size in sizes)
    beyond, large = sum(sizes) - sum(lines), lines.count(7)
    most = 0
    for extra in product(range(beyond + 1), repeat=large):
        if sum(extra) == beyond:
            there = sorted([*lines[: count - large], *(7 + more for more in extra)], reverse=True)
            most = max(most, sum(there[:number]))
    exact = {name: Interval(value, value) for name, value in census.items()}
    assert largest(REAL.occupancy, exact, number) == (most if number <= count else sum(sizes))
    del exact["H0130005"]
    assert largest(REAL.occupancy, exact, number) == UNLIMITED
