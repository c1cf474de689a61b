"""Are the certain records counted in the right groups? By enumeration on toys, by sums on small counties.

Also `vary --units`: some units alone say what they say among others.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from glasshouse.assess.certain_groups import GROUPS, MOST, grouped
from glasshouse.attack.far import Kinds
from glasshouse.attack.published import Published, Unit
from glasshouse.attack.vary import vary
from glasshouse.model.tabulate import tabulate
from glasshouse.scenarios.load import Scenario
from tests.oracles import Ints, kinds_of, records_of
from tests.running import Ended, good, tool
from tests.test_attack import ALONE, AROUND, Target, folded, starts, targets

# Of every kind of records, how many are in every solution


def cells_of(target: Target, kinds: Kinds) -> Ints:
    """The cell of each kind of records that a toy has."""
    return kinds.cells.of(target.toy.kinds.astype(np.int16))


def by_kind(kinds: Kinds) -> dict[tuple[int, int], tuple[int, int]]:
    found = zip(kinds.place, kinds.cell, kinds.records, kinds.certain, strict=True)
    return {(int(place), int(cell)): (int(records), int(certain)) for place, cell, records, certain in found}


def check_kinds(target: Target, kinds: Kinds, start: Ints, fewest: dict[int, Ints], about: str) -> int:
    """Records as the start has them; certain as the least of all solutions (by place, over cells)."""
    cells, certain = cells_of(target, kinds), 0
    begin = folded(start, cells)
    wanted = {}
    for place, row in enumerate(begin.tolist()):
        for cell, count in enumerate(row):
            if count:
                wanted[place, cell] = count, min(count, int(fewest[place][cell]))
                certain += wanted[place, cell][1]
    assert by_kind(kinds) == wanted, about
    return certain


@pytest.mark.parametrize("sort", ALONE)
def test_of_each_kind_as_many_are_certain_as_are_in_every_solution(sort: str) -> None:
    rng, seen = np.random.default_rng(21), 0
    for target in targets(sort, 12):
        for name, start in starts(target, rng).items():
            kinds = vary(target.published, target.unit, *target.records(start)).kinds
            cells = cells_of(target, kinds)
            fewest = {place: folded(some, cells).min(axis=0) for place, some in enumerate(target.toy.alone)}
            seen += check_kinds(target, kinds, start, fewest, f"{target.about}, start {name}")
    assert seen > 20


@pytest.mark.parametrize("sort", AROUND)
def test_with_numbers_around_as_many_of_each_kind_are_certain(sort: str) -> None:
    rng, seen = np.random.default_rng(22), 0
    for target in targets(sort, 10):
        for name, start in starts(target, rng).items():
            ask = partial(vary, target.published, target.unit, *target.records(start), finest=True)
            about = f"{target.about}, start {name}"
            kinds = ask().kinds
            cells = cells_of(target, kinds)
            fewest = {place: folded(some, cells).min(axis=0) for place, some in enumerate(target.toy.capped)}
            seen += check_kinds(target, kinds, start, fewest, about)
            joint = {
                int(place): folded(target.joint[area][:, row, :], cells).min(axis=0)
                for area in target.areas()
                for row, place in enumerate(target.inside(area))
            }
            together = ask(jointly=True).kinds
            if target.fits(start):
                check_kinds(target, together, start, joint, f"{about}, jointly")
            for at, (_, certain) in by_kind(together).items():  # never more than is true
                assert certain <= max(joint[at[0]][at[1]], fewest[at[0]][at[1]]), about
    assert seen > 20


@pytest.mark.parametrize("sort", [*ALONE, *AROUND])
def test_kinds_add_up_to_the_places(sort: str) -> None:
    rng = np.random.default_rng(23)
    for target in targets(sort, 8):
        for start in starts(target, rng).values():
            if not target.fits(start):
                continue  # of other starts only what they share with every solution is counted
            for jointly in (False, True):
                varied = vary(target.published, target.unit, *target.records(start), jointly=jointly)
                kinds, places = varied.kinds, len(start)
                for counts, told in ((kinds.records, varied.places.population), (kinds.certain, varied.places.certain)):
                    added = np.bincount(kinds.place, weights=counts, minlength=places).astype(np.int64)
                    assert added.tolist() == told.tolist(), target.about
                assert (kinds.certain <= kinds.records).all() and (kinds.certain >= 0).all()


# Groups


CHOICES = ("T1,T2,T3,T4,T5,T6", "T1,T2,T6", "T1,T3", "T1,T4", "T1,T5", "T1,T2", "T1")


def toy_kinds(toy: Scenario, seed: int) -> tuple[Kinds, list[list[int]]]:
    """A street of random houses, and the levels of the records that were started from."""
    rng = np.random.default_rng(seed)
    every = kinds_of(toy.schema)
    truth = np.stack([np.bincount(rng.integers(0, len(every), n), minlength=len(every)) for n in (1, 3, 0, 7)])
    inner = tuple(table for table in toy.tables if table.level == "house")
    outer = tuple(table for table in toy.tables if table.level == "street")
    records = records_of(toy.schema, truth, ["991", "992", "993", "994"])
    own = tabulate(records, inner, "house")
    street = records_of(toy.schema, truth.sum(axis=0, keepdims=True), ["99"])
    around = tabulate(street, outer, "street") if outer else None
    names = () if around is None else around.variables
    published = Published(toy.schema, inner, own.variables, outer, names, toy.bins, toy.unique_on)
    unit = Unit(own, around, np.zeros(4, np.int64))
    return vary(published, unit, records.place, records.codes).kinds, records.codes.tolist()


@pytest.mark.parametrize("chosen", CHOICES)
@pytest.mark.parametrize("seed", range(4))
def test_groups_count_the_records_of_the_start(toy: Scenario, chosen: str, seed: int) -> None:
    scenario = toy.choose(chosen.split(","))
    kinds, records = toy_kinds(scenario, seed)
    frame = grouped(scenario, kinds, "99")
    assert frame.columns == ["street", *GROUPS] and set(frame["street"]) <= {"99"}
    for (attribute,), part in frame.group_by("attribute", maintain_order=True):
        at = scenario.schema.position[str(attribute)]
        groups = printed(scenario, str(attribute), part["group"].to_list())
        counted = Counter(next(label for label, levels in groups.items() if row[at] in levels) for row in records)
        assert dict(part.select("group", "records").iter_rows()) == counted
        assert part["order"].is_sorted() and part["order"].is_unique().all()
        assert int(part["certain"].sum()) == int(kinds.certain.sum())
        assert (part["certain"] <= part["records"]).all()


def printed(scenario: Scenario, attribute: str, labels: list[str]) -> dict[str, frozenset[int]]:
    """The levels of each label: of the attribute itself, or of a recode that is no tally; each level has one label."""
    own = next(one for one in scenario.schema.attributes if one.name == attribute)
    choices = [{level: frozenset([number]) for number, level in enumerate(own.levels)}]
    for recode in scenario.recodes.values():
        if recode.attribute == attribute and not recode.tally:
            choices += [{one.label: one.levels for one in recode.groups}]
            choices += [{one.label: one.levels for one in recode.leaves}]
    fitting = [
        choice
        for choice in choices
        if set(labels) <= set(choice) and sorted(n for some in choice.values() for n in some) == list(range(len(own)))
    ]
    assert fitting, (attribute, labels)
    return max(fitting, key=len)


@pytest.mark.parametrize("chosen", CHOICES)
def test_no_kind_of_records_lies_in_two_groups(toy: Scenario, chosen: str) -> None:
    """What the tables do not tell apart may not be told apart by a group: the records could be either."""
    scenario = toy.choose(chosen.split(","))
    kinds, _ = toy_kinds(scenario, 1)
    frame = grouped(scenario, kinds, "99")
    for number, attribute in enumerate(scenario.schema.attributes):
        labels = frame.filter(attribute=attribute.name)["group"].to_list()
        if not labels:
            continue
        groups = printed(scenario, attribute.name, labels)
        classes = kinds.cells.classes[number]
        for first in range(len(attribute)):
            for second in range(first):
                if classes[first] == classes[second]:
                    assert all((first in some) == (second in some) for some in groups.values())


def test_a_tally_groups_nobody(toy: Scenario) -> None:
    """With a tally alone, answers are counted and not persons."""
    assert any(recode.tally for recode in toy.recodes.values())
    tallied = {group.label for recode in toy.recodes.values() if recode.tally for group in recode.groups}
    for chosen in CHOICES:
        kinds, _ = toy_kinds(toy.choose(chosen.split(",")), 2)
        frame = grouped(toy.choose(chosen.split(",")), kinds, "99")
        assert not tallied & set(frame["group"])


# The command


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory, toy_folder: Path) -> Path:
    """Three streets of small houses, their tables, and what varies in them."""
    folder, rng = tmp_path_factory.mktemp("grouping"), np.random.default_rng(5)
    houses = [f"9{street}{house}" for street in range(3) for house in range(8)]
    rows = [
        (house, rng.choice(["red", "green", "blue"]), str(rng.integers(0, 4)), str(rng.integers(0, 2)))
        for house in houses
        for _ in range(rng.integers(0, 6))
    ]
    named = pl.DataFrame(rows, schema=["house", "colour", "size", "owner"], orient="row")
    named.write_csv(folder / "records.csv")
    told = ("--scenario", toy_folder, "--out", folder / "tables.csv", "-q")
    good(tool("tabulate", folder / "records.csv", *told))
    good(varied(folder, toy_folder, folder / "all"))
    return folder


def varied(town: Path, scenario: Path, out: Path, *more: object) -> Ended:
    return tool("vary", town / "tables.csv", "--scenario", scenario, "--workers", 1, "-q", "--out", out, *more)


def totals(folder: Path) -> pl.DataFrame:
    """For every attribute, groups add up to the places, unit by unit."""
    groups, places = (pl.read_parquet(folder / f"{name}.parquet") for name in ("groups", "places"))
    wanted = places.group_by("street").agg(pl.col("population").sum(), pl.col("certain").sum()).sort("street")
    assert groups["attribute"].unique().sort().to_list() == ["colour", "owner", "size"]
    for (_,), part in groups.group_by("attribute", maintain_order=True):
        added = part.group_by("street").agg(pl.col("records").sum(), pl.col("certain").sum()).sort("street")
        assert added.rows() == wanted.rows()
    assert (groups["certain"] <= groups["records"]).all() and (groups["records"] > 0).all()
    assert (groups.group_by("street", "attribute").len()["len"] <= MOST).all()
    return groups


def test_groups_add_up_to_the_places(town: Path) -> None:
    assert totals(town / "all")["certain"].sum() > 0


@pytest.mark.parametrize("more", [(), ("--tighten",)], ids=str)
def test_groups_add_up_where_streets_limit_houses(
    town: Path, toy_folder: Path, tmp_path: Path, more: tuple[str, ...]
) -> None:
    good(varied(town, toy_folder, tmp_path / "out", "--scope", "street", *more))
    alone = totals(town / "all")["certain"].sum()
    assert totals(tmp_path / "out")["certain"].sum() >= alone


def test_groups_of_given_records_are_counted_from_them(town: Path, toy_folder: Path, tmp_path: Path) -> None:
    good(varied(town, toy_folder, tmp_path / "out", "--from", town / "records.csv"))
    groups, records = totals(tmp_path / "out"), pl.read_csv(town / "records.csv", infer_schema=False)
    for (attribute,), part in groups.group_by("attribute", maintain_order=True):
        codes = {"0": "no", "1": "yes"} if attribute == "owner" else {}
        counted = Counter(codes.get(value, value) for value in records[str(attribute)])
        assert dict(part.group_by("group").agg(pl.col("records").sum()).iter_rows()) == counted


# Some units


def test_some_units_alone_say_what_they_say_among_others(town: Path, toy_folder: Path, tmp_path: Path) -> None:
    for codes in (["91"], ["90", "92"]):
        good(varied(town, toy_folder, tmp_path / codes[0], "--units", ",".join(codes)))
        for name in ("places", "areas", "groups"):
            whole = pl.read_parquet(town / "all" / f"{name}.parquet").filter(pl.col("street").is_in(codes))
            some = pl.read_parquet(tmp_path / codes[0] / f"{name}.parquet")
            assert some.height and some.equals(whole), name


def test_all_units_by_name_are_the_whole_run(town: Path, toy_folder: Path, tmp_path: Path) -> None:
    good(varied(town, toy_folder, tmp_path / "out", "--units", "92, 90,91,90"))
    for name in ("places", "areas", "groups"):
        assert (tmp_path / "out" / f"{name}.parquet").read_bytes() == (town / "all" / f"{name}.parquet").read_bytes()


@pytest.mark.parametrize("codes", ["99", "90,nowhere", "901", "*", "../x"])
def test_a_unit_that_is_not_there_is_refused(town: Path, toy_folder: Path, tmp_path: Path, codes: str) -> None:
    ended = varied(town, toy_folder, tmp_path / "out", "--units", codes)
    assert ended.code == 2 and ended.err.count("\n") == 1
    assert "--units" in ended.err and codes.split(",")[-1] in ended.err
    assert not (tmp_path / "out").exists()


def test_other_units_are_another_run(town: Path, toy_folder: Path, tmp_path: Path) -> None:
    good(varied(town, toy_folder, tmp_path / "out", "--units", "90"))
    ended = varied(town, toy_folder, tmp_path / "out", "--units", "91")
    assert ended.code == 2 and "--overwrite" in ended.err
