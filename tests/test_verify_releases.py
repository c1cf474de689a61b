"""Is what `verify` writes about a release true of every data set that fits it, and is nothing missed?

Scenarios are drawn, with files of their own: one to three attributes, groups of levels that overlap from table to
table, universes, structural zeros, a unit that is the place. Numbers are exact, rounded or hidden within bounds. Every
data set that fits a place is written down one by one, over single levels, and what is certain is read off them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import glasshouse as gh
from glasshouse.scenarios.load import load
from tests.often import often
from tests.oracles import TooMany, listed

Kind = tuple[int, ...]
Line = dict[int, frozenset[int]]  # by attribute, the levels that are counted
Description = tuple[tuple[str, ...], tuple[str, ...]]  # columns, codes
NAMES = "abc"
PLACES = 25


@dataclass(frozen=True)
class Drawn:
    """A scenario of one's own: how many levels each attribute has, what cannot be, and the lines of its tables."""

    sizes: tuple[int, ...]
    zeros: tuple[Line, ...]
    tables: tuple[tuple[Line, ...], ...]  # leaves in the order that offices print them
    path: Path

    @property
    def kinds(self) -> list[Kind]:
        every = product(*(range(size) for size in self.sizes))
        return [kind for kind in every if not any(matches(zero, kind) for zero in self.zeros)]

    @property
    def lines(self) -> list[Line]:
        return [line for table in self.tables for line in table]

    def values(self, at: int) -> list[frozenset[int]]:
        """The levels of an attribute that no line tells apart together; single ones if no line looks at it."""
        if not any(at in line for line in self.lines):
            return [frozenset([level]) for level in range(self.sizes[at])]
        alike: dict[tuple[bool, ...], set[int]] = {}
        for level in range(self.sizes[at]):
            told = tuple(level in line[at] for line in self.lines if at in line)
            alike.setdefault(told, set()).add(level)
        return [frozenset(levels) for levels in alike.values()]


def matches(line: Line, kind: Sequence[int]) -> bool:
    return all(kind[at] in levels for at, levels in line.items())


def bins(rng: np.random.Generator, size: int) -> list[range]:
    cuts = [0, *(cut for cut in range(1, size) if rng.random() < 0.6), size]
    return [range(low, high) for low, high in pairwise(cuts)]


def draw(rng: np.random.Generator, folder: Path) -> Drawn:
    sizes = tuple(rng.integers(2, 5, rng.integers(1, 4)).tolist())
    text = [
        'title = "Drawn"',
        f'[geography]\nplace = "ward"\nunit = "{rng.choice(["ward", "town"])}"\nlevels = {{ town = 2, ward = 4 }}',
        *(f"[attribute.{name}]\nrange = [0, {size - 1}]" for name, size in zip(NAMES, sizes, strict=False)),
    ]
    zeros: list[Line] = []
    if len(sizes) > 1 and rng.random() < 0.5:
        one, other = rng.permutation(len(sizes))[:2].tolist()
        zero = {one: frozenset([int(rng.integers(sizes[one]))]), other: frozenset([int(rng.integers(sizes[other]))])}
        zeros.append(zero)
        sets = "\n".join(f'{NAMES[at]} = "{min(levels)}"' for at, levels in zero.items())
        text.append(f'[[impossible]]\n{sets}\nreason = "so it is"')
    tables, recodes, told = [], [], []
    for number in range(rng.integers(1, 4)):
        by = sorted(rng.permutation(len(sizes))[: rng.integers(1, 3)].tolist())
        groups = {at: bins(rng, sizes[at]) for at in by}
        universe: Line = {}
        rest = [at for at in range(len(sizes)) if at not in by]
        if number and rest and rng.random() < 0.4:  # the first table counts everybody: nothing is without a limit
            at = int(rng.choice(rest))
            universe = {at: frozenset(range(int(rng.integers(1, sizes[at])), sizes[at]))}
        for at in by:
            spelled = " ".join(f"{one.start}-{one.stop - 1}" if len(one) > 1 else str(one.start) for one in groups[at])
            recodes.append(f'{NAMES[at]}{number} = {{ attribute = "{NAMES[at]}", bins = "{spelled}" }}')
        within = "".join(f', universe = {{ {NAMES[at]} = "{min(levels)}+" }}' for at, levels in universe.items())
        of = ", ".join(f'"{NAMES[at]}{number}"' for at in by)
        told.append(f'T{number} = {{ title = "T", level = "ward", by = [{of}]{within} }}')
        cells = product(*(groups[at] for at in by))
        lines = ({**universe, **{at: frozenset(one) for at, one in zip(by, cell, strict=True)}} for cell in cells)
        tables.append(tuple({at: some for at, some in line.items() if len(some) < sizes[at]} for line in lines))
    text += ["[recode]", *recodes, "[table]", *told]
    (folder / "scenario.toml").write_text("\n".join(text), encoding="utf-8")
    return Drawn(sizes, tuple(zeros), tuple(tables), folder)


@dataclass(frozen=True)
class Ward:
    """The numbers of a place, its truth, and all data sets that fit: how many records of each kind."""

    truth: list[Kind]
    bounds: list[tuple[int, int]]
    fitting: np.ndarray[Any, np.dtype[np.int64]]


def ward(rng: np.random.Generator, drawn: Drawn) -> Ward | None:
    kinds, sort = drawn.kinds, rng.choice(["exact", "rounded", "hidden"])
    truth = [kinds[at] for at in rng.integers(0, len(kinds), rng.integers(0, 5)).tolist()]
    bounds = []
    for line in drawn.lines:
        value = sum(matches(line, kind) for kind in truth)
        if sort == "rounded":
            low = int(rng.integers(max(value - 1, 0), value + 1))
            bounds.append((low, low + 1))
        else:
            bounds.append((0, 2) if sort == "hidden" and value <= 2 and rng.random() < 0.5 else (value, value))
    limits = [
        (tuple(at for at, kind in enumerate(kinds) if matches(line, kind)), low, high)
        for line, (low, high) in zip(drawn.lines, bounds, strict=True)
    ]
    try:
        return Ward(truth, bounds, listed(len(kinds), limits))
    except TooMany:
        return None


def code(number: int) -> str:
    return f"{number % 3:02}{number:02}"


def release(drawn: Drawn, wards: Sequence[Ward]) -> pl.DataFrame:
    """The numbers as a file has them; a number for every cell of every place, also where it is 0."""
    tables = load(str(drawn.path)).tables
    variables = [(table.name, leaf.variable) for table in tables for leaf in table.leaves]
    # groups that no possible record of the universe is in are no lines of a table, so both must have as many
    assert len(variables) == len(drawn.lines)
    rows = [
        ("ward", code(number), table, variable, low, high)
        for number, one in enumerate(wards)
        for (table, variable), (low, high) in zip(variables, one.bounds, strict=True)
    ]
    return pl.DataFrame(rows, ["level", "geoid", "table", "variable", "lower", "upper"], orient="row")


def certain(drawn: Drawn, one: Ward) -> dict[Description, int]:
    """Every description that the same number of records, at least one, match in every data set that fits."""
    kinds, found = drawn.kinds, {}
    for count in range(1, len(drawn.sizes) + 1):
        for columns in combinations(range(len(drawn.sizes)), count):
            for values in product(*(drawn.values(at) for at in columns)):
                line = dict(zip(columns, values, strict=True))
                numbers = one.fitting @ np.array([matches(line, kind) for kind in kinds], np.int64)
                if numbers.min() == numbers.max() > 0:
                    codes = tuple(";".join(str(level) for level in sorted(some)) for some in values)
                    found[tuple(NAMES[at] for at in columns), codes] = int(numbers[0])
    return found


def known_as_a_whole(drawn: Drawn, one: Ward) -> bool:
    """Do all data sets have the same records, in the attributes that a line looks at, as far as lines tell?"""
    seen = [at for at in range(len(drawn.sizes)) if any(at in line for line in drawn.lines)]
    cells = product(*(drawn.values(at) for at in seen))
    every = [dict(zip(seen, cell, strict=True)) for cell in cells]
    sums = [one.fitting @ np.array([matches(line, kind) for kind in drawn.kinds], np.int64) for line in every]
    return bool(seen) and all(some.min() == some.max() for some in sums)


def check(drawn: Drawn, wards: Sequence[Ward]) -> tuple[int, int]:
    """How many claims there are, and how many places are known as a whole; everything is compared on the way."""
    records = [
        {"ward": code(number), **dict(zip(NAMES, kind, strict=False))}
        for number, one in enumerate(wards)
        for kind in one.truth
    ]
    truth = pl.DataFrame(records, dict.fromkeys(["ward", *NAMES[: len(drawn.sizes)]], pl.String), strict=False)
    found = gh.verify(release(drawn, wards), scenario=str(drawn.path), columns=1, workers=1, truth=truth)
    assert found.code == 0
    places = {row["ward"]: row for row in found.places.iter_rows(named=True)}
    assert set(places) == {code(number) for number in range(len(wards))}
    claims: dict[str, dict[Description, int]] = {place: {} for place in places}
    for row in found.claims.iter_rows(named=True):
        assert row["proof"] in ("exact", "two-engines") and row["m"] == row["low"] == row["high"] == row["truth"]
        claims[row["ward"]][tuple(row["columns"]), tuple(row["values"])] = row["m"]
    total = whole = 0
    for number, one in enumerate(wards):
        place = places[code(number)]
        true = certain(drawn, one)
        assert claims[code(number)] == true, (drawn, number)
        sums = one.fitting.sum(axis=1)
        assert (place["households_low"], place["households_high"]) == (sums.min(), sums.max()), (drawn, number)
        assert place["households"] == (sums.min() if sums.min() == sums.max() else None)
        assert place["truth"] == len(one.truth)
        assert place["unique"] == known_as_a_whole(drawn, one), (drawn, number)
        total, whole = total + len(true), whole + place["unique"]
    check_summary(found, wards)
    return total, whole


def check_summary(found: Any, wards: Sequence[Ward]) -> None:
    """Rates are shares, the bounds hold the truth, and nothing is called a household."""
    least, most = (sum(int(end(one.fitting.sum(axis=1))) for one in wards) for end in (np.min, np.max))
    if not most:
        assert found.summary.by_columns is None
        return
    may = sum(bool(one.fitting.any()) for one in wards)
    assert found.summary.by_columns
    for row in found.summary.by_columns:
        assert (row["households_least"], row["households_most"], row["blocks"]) == (least, most, may)
        assert row["households"] == sum(len(one.truth) for one in wards)
        assert 0 <= row["share_least"] <= row["share"] <= row["share_most"] <= 1
        assert 0 <= row["share_low"] <= row["share"] <= row["share_high"] <= 1
    assert not any("household" in line for line in found.lines())


@pytest.fixture(scope="module", autouse=True)
def quick() -> Iterator[None]:
    """Pictures, workbooks and pages take longer than all the rest."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("glasshouse.report.sections.claims.write", lambda *_, **__: [])
        patch.setattr("glasshouse.report.figure.Figure.save", lambda _, path: path.write_text("<svg/>"))
        yield


def check_seed(seed: int, folder: Path) -> tuple[int, int, int]:
    rng = np.random.default_rng(seed)
    drawn = draw(rng, folder)
    wards = [one for one in (ward(rng, drawn) for _ in range(PLACES)) if one is not None]
    return (len(wards), *check(drawn, wards)) if wards else (0, 0, 0)


@pytest.mark.parametrize("seed", range(often(12)))
def test_claims_about_a_release_are_those_of_every_data_set_that_fits(seed: int, tmp_path: Path) -> None:
    places, claims, _ = check_seed(seed, tmp_path)
    assert places and claims


# A country with tables of age groups, whose records know single years


NORLAND = Path(__file__).resolve().parents[1] / "examples" / "own-country"
SCENARIO = str(NORLAND / "scenario")


@pytest.fixture(scope="module")
def people() -> pl.DataFrame:
    return pl.read_csv(NORLAND / "records.csv", infer_schema=False)


@pytest.fixture(scope="module")
def norland(people: pl.DataFrame) -> pl.DataFrame:
    return gh.tabulate(people, scenario=SCENARIO).tables


def sizes(people: pl.DataFrame) -> dict[str, int]:
    return dict(people.group_by("ward").len().iter_rows())


def test_a_ward_is_known_as_a_whole_where_vary_finds_one_solution(norland: pl.DataFrame) -> None:
    """Records know single years of age, and the tables nine age groups: claims name those."""
    found = gh.verify(norland, scenario=SCENARIO, columns=2, workers=1)
    varied = gh.vary(norland, scenario=SCENARIO, level="ward", workers=1)
    one = {row["ward"]: row["solvar_upper"] == 0 for row in varied.places.iter_rows(named=True)}
    assert dict(found.places.select("ward", "unique").iter_rows()) == one
    assert 0 < sum(one.values()) < len(one)
    ages = {
        value
        for row in found.claims.iter_rows(named=True)
        for name, value in zip(row["columns"], row["values"], strict=True)
        if name == "age"
    }
    assert "20;21;22;23;24;25;26;27;28;29" in ages and len(ages) <= 9
    assert any("20-29" in said for said in found.claims["description"])
    assert any("age in 9 groups" in note for note in found.notes)


@pytest.mark.parametrize("protection", [pytest.param("round", marks=pytest.mark.slow), "suppress"])
def test_the_number_of_records_of_protected_tables_has_bounds(
    protection: str, norland: pl.DataFrame, people: pl.DataFrame
) -> None:
    """The run was refused, with the file to blame; or no ward had any records."""
    options = {"round": {"base": 5}, "suppress": {}}[protection]
    tables = getattr(gh.protect, protection)(norland, scenario=SCENARIO, **options).tables
    found = gh.verify(tables, scenario=SCENARIO, columns=2, truth=people, workers=1)
    assert found.code == 0 and found.places.height == found.summary.unique["blocks"] == 36
    for ward_, low, number, high in found.places.select(
        "ward", "households_low", "households", "households_high"
    ).iter_rows():
        assert low <= sizes(people)[ward_] <= high and (number is None) == (low < high)
    assert found.places["households"].null_count()
    for row in found.summary.by_columns:
        assert row["households_least"] < row["households"] == people.height < row["households_most"]
        assert 0 <= row["share_least"] <= row["share"] <= row["share_most"] <= 1
    assert found.lines()[0].startswith("36 wards, 341 records; ")
    untold = gh.verify(tables, scenario=SCENARIO, columns=2, workers=1)
    least, most = untold.summary.by_columns[0]["households_least"], untold.summary.by_columns[0]["households_most"]
    assert untold.lines()[0].startswith(f"36 wards, {least:,} to {most:,} records; ")
    assert untold.summary.by_columns[0]["households"] is None


def test_numbers_that_are_left_out_leave_the_number_of_records_known(
    norland: pl.DataFrame, people: pl.DataFrame
) -> None:
    """Convention 42, also where a table prints no total, but only its parts."""
    found = gh.verify(norland, scenario=SCENARIO, columns=2, drop_cells=(0, 1), truth=people, workers=1)
    assert found.code == 0
    assert dict(found.places.select("ward", "households").iter_rows()) == sizes(people)
    whole = gh.verify(norland, scenario=SCENARIO, columns=2, workers=1)
    assert (found.places["queries"] == whole.places["queries"]).all() and found.places["queries_dropped"].min() > 0
    keys = ["ward", "columns", "values", "m"]
    assert 0 < found.claims.height < whole.claims.height
    assert found.claims.join(whole.claims, on=keys, how="anti").is_empty()


def test_a_unit_may_be_the_place_itself_on_rounded_tables(
    norland: pl.DataFrame, people: pl.DataFrame, tmp_path: Path
) -> None:
    text = (NORLAND / "scenario" / "scenario.toml").read_text(encoding="utf-8")
    (tmp_path / "scenario.toml").write_text(text.replace('unit = "town"', 'unit = "ward"'), encoding="utf-8")
    rounded = gh.protect.round(norland, scenario=SCENARIO, base=5).tables
    options: dict[str, Any] = {"only": ("W1", "W2"), "columns": 1, "absent": 1, "cannot": (0,), "why": 1}
    for tables in (norland, rounded):
        some = norland.filter(pl.col("level") == "ward")["geoid"].unique().sort()[::4].to_list()
        options |= {"truth": people, "prior_area": people, "leaks": "table", "places": some}
        found = gh.verify(tables, scenario=str(tmp_path), workers=1, **options)
        assert found.code == 0 and found.places.height == len(some) == 9


def test_places_are_picked_by_sizes_that_are_known(norland: pl.DataFrame, people: pl.DataFrame) -> None:
    rounded = gh.protect.round(norland, scenario=SCENARIO, base=5).tables
    with pytest.raises(gh.InputError, match="the tables say it of none exactly"):
        gh.verify(rounded, scenario=SCENARIO, columns=2, pick="median:1", workers=1)
    first = max(ward_ for ward_, size in sizes(people).items() if list(sizes(people).values()).count(size) > 1)
    ends = [pl.when(pl.col("geoid") == first).then(pl.col("value") + add).otherwise("value") for add in (0, 1)]
    partly = norland.with_columns(ends[0].alias("lower"), ends[1].alias("upper")).drop("value")
    found = gh.verify(partly, scenario=SCENARIO, columns=2, pick=f"{sizes(people)[first]}:40", workers=1)
    alike = {ward_ for ward_, size in sizes(people).items() if size == sizes(people)[first]}
    assert set(found.places["ward"]) == alike - {first}
