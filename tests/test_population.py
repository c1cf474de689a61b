"""Is the synthetic county what it says: people who could live together, files that agree, one seed for all of it?

Households are checked against the 2020 rules for them (written out below, and the list of legal combinations where the
real data is), files against naive counts, calibration against the figures that papers/000 prints.
"""

from __future__ import annotations

import hashlib
import json
import re
import signal
import stat
import subprocess
import sys
import time
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal, assert_frame_not_equal

from glasshouse.errors import InputError
from glasshouse.population import likeness
from glasshouse.population.attackers import qualities
from glasshouse.population.county import County, Tract
from glasshouse.population.identity import spelled
from glasshouse.population.places import TRACT_METRES, lay_out
from glasshouse.population.preset import known_presets, load_preset
from glasshouse.scenarios import load as scenario_module
from tests.running import Ended, good, tool, without

NAMES = ("cef", "hdf", "households", "commercial", "attacker-perfect", "sample", "housing", "blocks")
FILES = {f"{name}.parquet" for name in NAMES}
PRESETS = ("national", "homogeneous-rural", "diverse-urban")
RACES = ["white", "black", "aian", "asian", "nhopi", "sor"]
PERSON = ["sex", "age", *RACES, "hispanic"]
COLUMNS = ["TEN", "VACS", "HHSIZE", "HHT", "HHT2", "THHSPAN", "THHLDRAGE", "THHRACE", "TP18", "TP65"]
SEXES = ("male", "female")
BINS = (*range(22), 22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85)  # where the 38 age bins begin
SIZES = (1, 10, 50, 100, 250, 500, 1000)  # where the bands of block sizes begin
SF1 = ("--scenario", "sf1-person")
SIX = ("HHSIZE", "HHT", "HHT2", "THHLDRAGE", "TP18", "TP65")

# persons, seed, preset: from one person to a town
CASES = [
    *((persons, seed, preset) for preset in PRESETS for persons, seed in ((1, 1), (1, 5), (2, 2), (10, 3), (333, 4))),
    (4_001, 1, "national"), (9_000, 7, "homogeneous-rural"), (20_000, 8, "diverse-urban"), (60_000, 2, "national"),
]  # fmt: skip
TOWN = (60_000, 2, "national")


def refused(ended: Ended, *words: str) -> None:
    """One clear line, and nothing on stdout."""
    assert ended.code == 2, ended
    assert ended.out == "" and ended.err.count("\n") == 1 and "bug" not in ended.err, ended
    for word in words:
        assert word in ended.err


def synthesize(out: Path | None, *options: object) -> Ended:
    return tool("synthesize", *(() if out is None else ("--out", out)), *options)


class Files:
    """The files of a county, each read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.read: dict[str, pl.DataFrame] = {}

    def __getitem__(self, name: str) -> pl.DataFrame:
        if name not in self.read:
            self.read[name] = pl.read_parquet(self.folder / f"{name}.parquet")
        return self.read[name]

    @property
    def occupied(self) -> pl.DataFrame:
        return self["households"].filter(pl.col("VACS") == 0)

    @property
    def told(self) -> dict[str, Any]:
        manifest = json.loads((self.folder / "manifest.json").read_text())
        assert isinstance(manifest, dict)
        return manifest


Make = Callable[..., Files]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A built-in scenario is frozen, so it is loaded once for all tests here."""
    monkeypatch.setattr(scenario_module, "load", _load)


_load = cache(scenario_module.load)


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """The files of a county, made once by the command."""

    @cache
    def made(persons: int, seed: int, preset: str, *options: object) -> Files:
        out = tmp_path_factory.mktemp("county") / "out"
        good(synthesize(out, "--persons", persons, "--seed", seed, "--preset", preset, *options))
        return Files(out)

    return made


@pytest.fixture(params=CASES, ids=lambda case: f"{case[2]}-{case[0]}-{case[1]}")
def county(request: pytest.FixtureRequest, make: Make) -> Files:
    return make(*request.param)


@pytest.fixture
def town(make: Make) -> Files:
    return make(*TOWN)


def binned(frame: pl.DataFrame) -> pl.DataFrame:
    """With the 38-bin age of papers/000."""
    bins = [bisect_right(BINS, age) - 1 for age in range(111)]
    return frame.with_columns(agebin=pl.col("age").cast(pl.Int64).replace_strict(list(range(111)), bins))


def rows(frame: pl.DataFrame, *columns: str) -> Counter[tuple[Any, ...]]:
    return Counter(frame.select(columns or frame.columns).iter_rows())


def households_of(persons: pl.DataFrame) -> dict[str, list[dict[str, Any]]]:
    """Those who live in households, by household."""
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for person in persons.filter(pl.col("relation") != "resident").iter_rows(named=True):
        found[person["household_id"]].append(person)
    return found


def face(people: list[dict[str, Any]]) -> tuple[tuple[Any, ...], ...]:
    """What a household looks like, in whatever order its members are written."""
    return tuple(sorted(tuple(person[name] for name in ("relation", *PERSON)) for person in people))


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes()) for path in paths}


def sha(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def own_preset(path: Path, *changes: tuple[str, str], like: str = "national") -> Path:
    """A preset file: a built-in one in which entries stand otherwise, as ("vacant", "3")."""
    built_in = Path(sys.modules["glasshouse"].__path__[0]) / "population" / "presets" / f"{like}.toml"
    text = built_in.read_text()
    for name, value in changes:
        text, count = re.subn(rf"(?m)^{re.escape(name)} = .*$", f"{name} = {value}", text, count=1)
        assert count == 1, f"{name} is no entry of {like}"
    path.write_text(text)
    return path


# Places


def test_every_case_is_of_a_known_preset() -> None:
    assert set(known_presets()) == set(PRESETS)


def test_there_are_as_many_persons_as_asked_for_and_no_block_is_empty(county: Files) -> None:
    told = county.told
    blocks, cef = county["blocks"], county["cef"]
    assert cef.height == county["hdf"].height == told["parameters"]["persons"] == told["counts"]["records"]
    assert (blocks["persons"] >= 1).all() and blocks["persons"].sum() == cef.height
    assert dict(rows(cef, "block")) == {(block,): n for block, n in blocks.select("block", "persons").iter_rows()}
    assert told["counts"]["blocks"] == blocks.height
    assert told["counts"]["tracts"] == blocks["tract"].n_unique()


def test_codes_are_nested_and_those_of_no_state(county: Files) -> None:
    blocks = county["blocks"]
    assert blocks["block"].is_unique().all()
    for block, group, tract in blocks.select("block", "block_group", "tract").iter_rows():
        assert re.fullmatch(r"99\d{13}", block) and group == block[:12] and tract == block[:11]
        assert group[11] in "123456789"  # the block group is the first digit of the block number
    for name in ("cef", "hdf", "households", "commercial", "attacker-perfect", "housing"):
        assert set(county[name]["block"]) <= set(blocks["block"])


def test_blocks_lie_in_the_square_of_their_tract_and_no_two_at_one_spot(county: Files) -> None:
    blocks = county["blocks"]
    assert blocks["x"].is_finite().all() and blocks["y"].is_finite().all()
    assert not blocks.select("x", "y").is_duplicated().any()
    square = blocks.with_columns((pl.col("x", "y") // TRACT_METRES).cast(pl.Int64))
    assert (square.group_by("tract").agg(n=pl.struct("x", "y").n_unique())["n"] == 1).all()
    assert square.select("x", "y").n_unique() == square["tract"].n_unique()  # no square is shared


@pytest.mark.parametrize("preset", PRESETS)
def test_tracts_have_about_four_thousand_persons_and_blocks_the_bands_of_the_preset(preset: str) -> None:
    chosen = load_preset(preset)
    places = lay_out(chosen, 400_000, np.random.default_rng(3))
    of_tract = np.bincount(places.tract, places.persons)
    assert abs(np.median(of_tract) - 4000) < 200 and (of_tract[:-1] > 0).all()
    low, high, share = np.array(chosen["blocks"]["bands"]).T
    inside = (places.persons[:, None] >= low) & (places.persons[:, None] <= high)
    assert (inside.sum(1) == 1).mean() > 0.9999  # the last block takes what is left
    wanted = share / share.sum()
    assert (np.abs(inside.mean(0) - wanted) < 4 * np.sqrt(wanted * (1 - wanted) / len(inside))).all()


def test_a_state_has_several_counties_and_every_code_once() -> None:
    places = lay_out(load_preset("homogeneous-rural"), 4_500_000, np.random.default_rng(1))
    assert len(set(places.codes)) == len(places.codes) and all(len(code) == 15 for code in places.codes)
    assert {code[:5] for code in places.codes} == {"99001", "99002"}
    tracts = [code[:11] for code in places.codes]
    assert len(set(tracts)) == places.tracts == len(set(zip(tracts, places.tract.tolist(), strict=True)))
    assert places.persons.sum() == 4_500_000 and places.persons.min() >= 1


@pytest.mark.parametrize(
    "persons",
    [
        pytest.param(10**18),
        0,
        -7,
    ],
)
def test_what_cannot_be_laid_out_is_refused(persons: int) -> None:
    with pytest.raises(InputError):
        lay_out(load_preset("national"), persons, np.random.default_rng(1))


# Households: who lives together


def broken_rules(home: dict[str, int]) -> list[str]:
    """The rules Z01 to Z23 for the ten columns of a housing unit (DHC 2020) that it breaks."""
    ten, vacs, size, hht, hht2, span, age, race, under18, over65 = (home[name] for name in COLUMNS)
    if vacs:
        return ["Z01"] if any(value for name, value in home.items() if name != "VACS") or vacs > 7 else []
    alone, female_child = size == 1, hht == 3 and hht2 in (3, 6)
    one_child = size == 2 and under18
    holds = {
        "Z02": ten in range(1, 5) and size in range(1, 8) and hht in range(1, 8) and hht2 in range(1, 13)
        and span in (1, 2) and age in range(1, 10) and race in range(1, 8),
        "Z03": (hht == 1) == (hht2 in (1, 2)),
        "Z04": hht2 != 3 or hht in (2, 3),
        "Z05": hht2 != 4 or hht in (2, 3, 5, 7),
        "Z06": (hht2 == 5) == (hht == 6),
        "Z07": hht2 not in (6, 7) or hht == 3,
        "Z08": hht2 != 8 or hht == 7,
        "Z09": (hht2 == 9) == (hht == 4),
        "Z10": hht2 not in (10, 11) or hht == 2,
        "Z11": hht2 != 12 or hht == 5,
        "Z12": alone == (hht in (4, 6)) == (hht2 in (5, 9)),
        "Z13": hht2 not in (1, 3) or size >= 3,
        "Z14": not (hht2 == 4 and hht in (2, 3)) or size >= 3,
        "Z15": hht2 not in (1, 3, 6, 10) or under18 == 1,
        "Z16": hht2 in (1, 3, 5, 9) or size >= 2,
        "Z17": age < 7 or over65 == 1,
        "Z18": not alone or over65 == int(age >= 7),
        "Z19": not (alone and under18) or age == 1,
        "Z20": not (size == 2 and hht2 in (6, 10) and age <= 6) or over65 == 0,
        "Z21": not (one_child and age == 6) or over65 == 0,
        "Z22": not (one_child and 2 <= age <= 5 and hht2 not in (6, 10)) or over65 == 0,
        "Z23": age < 8 or not female_child,
    }  # fmt: skip
    return [rule for rule, kept in holds.items() if not kept]


def test_the_rules_written_here_are_the_legal_combinations(data: Path) -> None:
    legal = set(pl.read_csv(data / "dhc_spec" / "household_legal_combos.csv").select(SIX).iter_rows())
    shape = (range(1, 8), range(1, 8), range(1, 13), range(1, 10), (0, 1), (0, 1))
    rest = {"TEN": 1, "VACS": 0, "THHSPAN": 1, "THHRACE": 1}
    grid = np.stack(np.meshgrid(*shape, indexing="ij"), -1).reshape(-1, 6).tolist()
    kept = {
        tuple(six) for six in grid if not set(broken_rules({**rest, **dict(zip(SIX, six, strict=True))})) - {"Z22"}
    }  # the list goes by the 2020 system, which did not impose Z22
    assert kept == legal


def test_no_household_breaks_a_rule(county: Files) -> None:
    for home in county["households"].select(COLUMNS).unique().iter_rows(named=True):
        assert broken_rules(home) == [], home


def test_every_household_is_of_a_legal_combination(county: Files, data: Path) -> None:
    legal = set(pl.read_csv(data / "dhc_spec" / "household_legal_combos.csv").select(SIX).iter_rows())
    assert set(county.occupied.select(SIX).iter_rows()) <= legal


def naive(people: list[dict[str, Any]]) -> dict[str, int]:
    """The columns of a household as the census says them, person by person."""
    head = next(person for person in people if person["relation"] == "householder")
    relations = {person["relation"] for person in people}
    woman, ages = head["sex"] == "female", [person["age"] for person in people]
    own = any(person["relation"] == "child" and person["age"] < 18 for person in people)
    family = bool(relations & {"child", "relative"})
    if "spouse" in relations:
        hht, hht2 = 1, 1 if own else 2
    elif len(people) == 1:
        hht, hht2 = (6, 5) if woman else (4, 9)
    else:
        hht = (3 if woman else 2) if family else (7 if woman else 5)
        hht2 = (5 if woman else 9) + (1 if own else 2 if family else 3)
        if "partner" in relations:
            hht2 = 3 if own else 4
    races = [number for number, race in enumerate(RACES, 1) if head[race]]
    return {
        "HHSIZE": min(len(people), 7), "HHT": hht, "HHT2": hht2, "THHSPAN": 1 + head["hispanic"],
        "THHLDRAGE": sum(head["age"] >= least for least in (15, 25, 35, 45, 55, 60, 65, 75, 85)),
        "THHRACE": races[0] if len(races) == 1 else 7, "TP18": int(min(ages) < 18), "TP65": int(max(ages) >= 65),
        "persons": len(people), "children": sum(age < 18 for age in ages),
    }  # fmt: skip


def test_the_columns_of_households_follow_from_their_members(county: Files) -> None:
    homes = {home["household_id"]: home for home in county.occupied.iter_rows(named=True)}
    members = households_of(county["cef"])
    assert len(homes) == county.occupied.height == county.told["counts"]["households"]
    assert set(members) == set(homes)  # so those in group quarters have no row there
    for name, people in members.items():
        found = naive(people)
        assert {column: homes[name][column] for column in found} == found, people
        assert {person["block"] for person in people} == {homes[name]["block"]}


def test_members_of_a_household_make_sense_together(county: Files) -> None:
    for people in households_of(county["cef"]).values():
        relations = Counter(person["relation"] for person in people)
        assert relations["householder"] == 1 and relations["spouse"] + relations["partner"] <= 1
        assert set(relations) <= {"householder", "spouse", "partner", "child", "relative", "nonrelative"}
        head = next(person for person in people if person["relation"] == "householder")
        assert head["age"] >= 15
        for person in people:
            if person["relation"] in ("spouse", "partner"):
                assert person["age"] >= 18
            if person["relation"] == "child":
                assert 15 <= head["age"] - person["age"] <= (49 if head["sex"] == "female" else 60)


def test_persons_are_of_some_race_and_of_an_age_that_tables_know(county: Files) -> None:
    cef = county["cef"]
    for name in ("cef", "hdf"):
        frame = county[name]
        assert frame["age"].is_between(0, 110).all() and frame["sex"].is_in(SEXES).all()
        assert frame.select(pl.col(*RACES, "hispanic").is_in([0, 1]).all()).row(0) == (True,) * 7
        assert frame.select(pl.sum_horizontal(RACES).min()).item() >= 1
    assert not cef["household_id"].str.contains(cef["block"][0][2:11], literal=True).any()  # it tells nothing of place


def test_vacant_units_are_nothing_but_vacant(county: Files) -> None:
    vacant = county["households"].filter(pl.col("VACS") > 0)
    assert vacant["VACS"].is_between(1, 7).all()
    assert vacant.select(pl.col("TEN", *COLUMNS[2:], "persons", "children", "bedrooms", "violation").sum()).row(0) == (
        (0,) * 13
    )
    assert vacant["property_id"].null_count() == vacant.height
    assert (vacant["block"] == vacant["published_block"]).all()
    assert county["households"]["household_id"].is_unique().all()


def test_units_are_counted_by_block(county: Files) -> None:
    found = county["households"].group_by("block").agg(
        households=(pl.col("VACS") == 0).sum().cast(pl.Int64), vacant_units=(pl.col("VACS") > 0).sum().cast(pl.Int64)
    )  # fmt: skip
    both = county["blocks"].select("block", "households", "vacant_units").join(found, on="block", how="left")
    assert (both["households"] == both["households_right"].fill_null(0)).all()
    assert (both["vacant_units"] == both["vacant_units_right"].fill_null(0)).all()


def test_those_in_group_quarters_are_in_no_household(county: Files) -> None:
    cef = county["cef"]
    assert ((cef["gq"] > 0) == (cef["relation"] == "resident")).all() and cef["gq"].is_between(0, 7).all()
    residents = cef.filter(pl.col("gq") > 0)
    assert not set(residents["household_id"]) & set(county["households"]["household_id"])
    facilities = residents.group_by("household_id").agg(pl.col("gq", "block").n_unique())
    assert (facilities["gq"] == 1).all() and (facilities["block"] == 1).all()
    assert (residents["age"] >= 12).all()
    assert not set(residents["household_id"].unique()) & set(county["sample"].get_column("household").cast(pl.String))


def test_a_county_may_be_all_group_quarters(tmp_path: Path) -> None:
    preset = own_preset(tmp_path / "dormitory.toml", ("bands", "[[30, 60, 100]]"), ("share", "100"))
    empty = 0
    for seed in range(8):
        out = tmp_path / str(seed)
        said = good(synthesize(out, "--persons", 40, "--seed", seed, "--preset", preset, "--json")).json
        files = Files(out)
        assert files["cef"].height == 40 and said["households"] == files.occupied.height
        assert files["sample"].columns == Files(tmp_path / "0")["sample"].columns
        empty += said["households"] == 0
    assert empty


# Identifiers, and the attacker's lists


def test_identifiers_and_who_is_data_defined(county: Files) -> None:
    cef = county["cef"]
    assert cef["data_defined"].is_in([0, 1]).all()
    named = cef.filter(pl.col("person_id").is_not_null())
    assert cef.filter(pl.col("person_id").is_null())["data_defined"].sum() == 0
    people = named.group_by("person_id").agg(
        pl.len(), pl.col("data_defined").sum(), pl.col("block", "household_id").n_unique()
    )
    assert (people["data_defined"] == 1).all() and people["len"].is_in([1, 2]).all()
    assert (people["block"] == 1).all() and (people["household_id"] == 1).all()
    assert named["person_id"].str.contains(r"^P\d{11}$").all()
    assert county.told["counts"]["data_defined"] == cef["data_defined"].sum()


def test_the_perfect_attacker_has_everyone_who_is_data_defined_as_they_are(county: Files) -> None:
    columns = ("person_id", "block", "sex", "age")
    perfect = county["attacker-perfect"]
    assert tuple(perfect.columns) == columns and perfect["person_id"].is_unique().all()
    assert rows(perfect) == rows(county["cef"].filter(pl.col("data_defined") == 1), *columns)


def test_nobody_is_on_the_bought_list_twice_and_strangers_are_strangers(county: Files) -> None:
    bought, cef = county["commercial"], county["cef"]
    assert bought.columns == ["person_id", "block", "sex", "age"] and bought.null_count().sum_horizontal().item() == 0
    assert bought["person_id"].is_unique().all() and county.told["counts"]["commercial_records"] == bought.height
    assert bought["age"].is_between(0, 110).all() and bought["sex"].is_in(SEXES).all()
    numbers = spelled(np.arange(2 * cef.height))
    assert len(set(numbers)) == len(numbers)
    known = bought.filter(pl.col("person_id").is_in(numbers[: cef.height]))
    assert set(known["person_id"]) <= set(county["attacker-perfect"]["person_id"])
    strangers = bought.filter(~pl.col("person_id").is_in(numbers[: cef.height]))
    assert not set(strangers["person_id"]) & set(cef["person_id"].drop_nulls())


@pytest.mark.slow
def test_nobody_is_on_the_bought_list_twice_where_tracts_are_tiny(tmp_path: Path) -> None:
    preset = own_preset(tmp_path / "hermits.toml", ("tract_persons", "1"), ("bands", "[[1, 1, 100]]"))
    good(synthesize(tmp_path / "out", "--persons", 900, "--preset", preset, "--commercial", "low"))
    assert Files(tmp_path / "out")["commercial"]["person_id"].is_unique().all()


def test_shares_of_identifiers_are_those_of_the_paper(town: Files) -> None:
    """papers/000: 89.4% of records are data-defined; 1.0% of those with an identifier were dropped as duplicates."""
    cef = town["cef"]
    assert abs(cef["data_defined"].mean() - 0.894) < 0.01
    named = cef["person_id"].is_not_null().sum()
    assert abs((named - cef["data_defined"].sum()) / named - 0.010) < 0.003


def matches(files: Files) -> tuple[int, int, int]:
    """Records on the list, those that agree on person, block, sex and 38-bin age with the truth, data-defined ones."""
    truth = binned(files["cef"].filter(pl.col("data_defined") == 1))
    bought = binned(files["commercial"])
    agree = bought.join(truth, on=["person_id", "block", "sex", "agebin"], how="semi").height
    return bought.height, agree, truth.height


def test_the_bought_list_is_as_good_as_in_table_s1(town: Files) -> None:
    """Table S1, in millions: 289.1 on the list, 106.3 of them in the truth, 182.9 not; 276.0 data-defined."""
    bought, agree, defined = matches(town)
    assert abs(agree / bought - 106.3 / 289.1) < 0.02
    assert abs(bought / defined - 289.1 / 276.0) < 0.02
    assert abs(agree / defined - 106.3 / 276.0) < 0.02
    assert abs((bought - agree) / defined - 182.9 / 276.0) < 0.02


def test_better_lists_are_better(make: Make) -> None:
    shares = {}
    for quality in ("low", "2010-like", "high"):
        bought, agree, defined = matches(make(20_000, 8, "diverse-urban", "--commercial", quality))
        shares[quality] = (agree / bought, agree / defined)
    assert set(shares) == set(qualities())
    assert shares["low"] < shares["2010-like"] < shares["high"]
    assert shares["low"][1] < shares["2010-like"][1] < shares["high"][1]


# The published file: households that changed places


def test_the_published_file_has_the_same_persons_and_as_many_everywhere(county: Files) -> None:
    cef, hdf = county["cef"], county["hdf"]
    assert {"block", *PERSON} <= set(hdf.columns) and not {"person_id", "data_defined"} & set(hdf.columns)
    assert rows(hdf, "household_id", *PERSON) == rows(cef, "household_id", *PERSON)  # households move whole
    adult = [pl.col("block"), pl.col("block").str.head(5).alias("county"), (pl.col("age") >= 18).alias("adult")]
    assert rows(hdf.select(adult)) == rows(cef.select(adult))
    assert rows(hdf.select(pl.col("block").str.head(5), *PERSON)) == rows(
        cef.select(pl.col("block").str.head(5), *PERSON)
    )
    shapes = [
        frame.group_by("household_id", "block").agg(pl.len(), adults=(pl.col("age") >= 18).sum())
        for frame in (cef, hdf)
    ]
    assert shapes[0].height == shapes[1].height == cef["household_id"].n_unique()
    assert rows(shapes[0], "block", "len", "adults") == rows(shapes[1], "block", "len", "adults")


def test_households_are_published_where_the_published_file_has_them(county: Files) -> None:
    homes, hdf = county.occupied, county["hdf"]
    published = homes.select("household_id", "published_block")
    both = hdf.join(published, on="household_id", how="left")
    inside = both.filter(pl.col("published_block").is_not_null())
    assert (inside["block"] == inside["published_block"]).all()
    true = county["cef"].select("household_id", true="block").unique()
    stayed = both.filter(pl.col("published_block").is_null()).join(true, on="household_id")
    assert (stayed["block"] == stayed["true"]).all()  # group quarters stay


def test_households_are_swapped_in_pairs_across_tracts_of_a_county(county: Files) -> None:
    homes = county.occupied.with_columns(adults=pl.col("persons") - pl.col("children"))
    moved = homes.filter(pl.col("block") != pl.col("published_block"))
    assert moved.height == county.told["counts"]["swapped_households"]
    assert (moved["block"].str.head(11) != moved["published_block"].str.head(11)).all()
    assert (moved["block"].str.head(5) == moved["published_block"].str.head(5)).all()
    there = rows(moved, "block", "published_block", "persons", "adults")
    back = rows(moved, "published_block", "block", "persons", "adults")
    assert there == back


def test_some_households_are_swapped_and_none_without_a_chance(make: Make, town: Files) -> None:
    assert 0.01 < town.told["counts"]["swapped_households"] / town.told["counts"]["households"] < 0.10
    still = make(9_000, 7, "homogeneous-rural", "--swap-base", 0, "--swap-risky", 0)
    assert_frame_equal(still["hdf"], still["cef"].select(still["hdf"].columns))
    wild = make(9_000, 7, "homogeneous-rural", "--swap-base", 1, "--swap-risky", 1)
    assert wild.told["counts"]["swapped_households"] > 0.9 * 0.97 * wild.told["counts"]["households"]


# The public-use sample, and the subsidised properties


def test_the_sample_is_one_household_in_ten_with_all_its_members(county: Files) -> None:
    sample = county["sample"]
    assert set(sample.columns) == {"household", "county", *PERSON, "relation", *COLUMNS} - {"VACS"}
    members: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for person in sample.iter_rows(named=True):
        members[person["household"]].append(person)
    whole = Counter(face(people) for people in households_of(county["cef"]).values())
    drawn = Counter(face(people) for people in members.values())
    for people in members.values():
        found = naive(people)
        assert all(person[column] == found[column] for person in people for column in COLUMNS if column in found)
        assert len({person["TEN"] for person in people}) == 1
    assert drawn <= whole
    homes = county.told["counts"]["households"]
    assert abs(len(members) - 0.1 * homes) <= 5 * (0.09 * homes) ** 0.5 + 1
    assert set(sample["county"]) <= set(county["blocks"]["block"].str.head(5))


def test_the_sample_holds_no_code_finer_than_the_county(county: Files) -> None:
    sample = county["sample"]
    for column in sample.select(pl.col(pl.String)).columns:
        assert not sample[column].str.contains(r"\d{6}").any()


@pytest.mark.parametrize("by", ["number", "place in the file"])
def test_nothing_in_the_sample_tells_which_households_are_of_one_tract(by: str, town: Files) -> None:
    """Households of the sample that can be recognised in the truth: are neighbours in the sample neighbours there?"""
    homes = households_of(town["cef"])
    looks = Counter(face(people) for people in homes.values())
    where = {face(people): people[0]["block"][:11] for people in homes.values()}
    sample: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for person in town["sample"].iter_rows(named=True):
        sample[person["household"]].append(person)
    order = sorted(sample) if by == "number" else list(sample)
    tracts = [where[face(sample[number])] for number in order if looks[face(sample[number])] == 1]
    assert len(tracts) > 500 and len(set(tracts)) == 15
    together = np.mean([one == two for one, two in pairwise(tracts)])
    assert together < 0.2  # of 15 tracts


def test_properties_are_in_real_blocks_and_small_ones_are_suppressed(county: Files) -> None:
    housing, homes = county["housing"], county.occupied
    hidden = [name for name in housing.columns if name.startswith(("pct_", "people_"))]
    hidden = [name for name in hidden if name not in ("pct_occupied", "pct_reported")]
    for row in housing.iter_rows(named=True):
        values = {row[name] for name in hidden}
        assert (values == {-4}) == (row["number_reported"] < 11)
        assert -4 not in values or values == {-4}
    inside = homes.filter(pl.col("property_id").is_not_null())
    assert inside.height == county.told["counts"]["subsidised_households"]
    assert inside["violation"].sum() == county.told["counts"]["violations"] == homes["violation"].sum()
    assert inside["TEN"].is_in([3, 4]).all() and inside["bedrooms"].is_between(1, 3).all()
    assert (homes.filter(pl.col("property_id").is_null())["bedrooms"] == 0).all()
    assert homes.columns[-1] == "reported" and homes["reported"].dtype == pl.Int16
    assert (homes.filter(pl.col("property_id").is_null())["reported"] == 0).all()
    reporting = dict(inside.group_by("property_id").agg(pl.col("reported").sum()).iter_rows())
    assert reporting == dict(housing.select("property_id", "number_reported").iter_rows())
    most = {1: 2, 2: 4, 3: 10**6}
    for rooms, persons, violation in inside.select("bedrooms", "persons", "violation").iter_rows():
        assert violation == int(persons > most[rooms])
    by_property = inside.group_by("property_id").agg(pl.len(), pl.col("block").unique())
    assert by_property.height == housing.height
    blocks = by_property.select(pl.col("block").list.first(), one=pl.col("block").list.len() == 1)
    assert blocks["one"].all() and Counter(blocks["block"]) == Counter(housing["block"])


def test_households_name_their_property_as_the_file_of_properties_does(town: Files) -> None:
    homes, housing = town.occupied.filter(pl.col("property_id").is_not_null()), town["housing"]
    assert homes.height and set(homes["property_id"]) == set(housing["property_id"])
    both = homes.join(housing, on="property_id", suffix="_property")
    assert both.height == homes.height and (both["block"] == both["block_property"]).all()


# Files and the rest of the tool


def variables(path: Path) -> dict[tuple[str, str], int]:
    long = pl.read_parquet(path).filter(pl.col("value") != 0)
    return {(geoid, name): int(value) for geoid, name, value in long.select("geoid", "variable", "value").iter_rows()}


@pytest.mark.parametrize("name", ["cef", "hdf"])
def test_tables_of_persons_are_naive_counts(name: str, make: Make, tmp_path: Path) -> None:
    files = make(9_000, 7, "homogeneous-rural")
    tables = tmp_path / "tables.parquet"
    good(tool("tabulate", files.folder / f"{name}.parquet", *SF1, "--tables", "P1,P8,P12H,PCT12", "--out", tables))
    persons = files[name]
    wanted: Counter[tuple[str, str]] = Counter()
    several = pl.sum_horizontal(RACES) > 1
    lines = {
        "P0010001": pl.lit(True),
        "P0080003": (pl.col("white") == 1) & ~several,
        "P0080004": (pl.col("black") == 1) & ~several,
        "P0080011": (pl.col("white") + pl.col("black") == 2) & (pl.sum_horizontal(RACES) == 2),
        "P012H": pl.col("hispanic") == 1,
    }
    for variable, chosen in lines.items():
        for block, count in persons.filter(chosen).group_by("block").len().iter_rows():
            wanted[block, variable] = count
    of_tract = persons.with_columns(tract=pl.col("block").str.head(11))
    for tract, sex, age, count in of_tract.group_by("tract", "sex", "age").len().iter_rows():
        line = age if age < 100 else 100 + (age - 100) // 5
        wanted[tract, f"PCT012{(3 if sex == 'male' else 107) + line:04d}"] += count
    counted: Counter[tuple[str, str]] = Counter()
    for (place, variable), value in variables(tables).items():
        name_of = "P012H" if variable.startswith("P012H") else variable  # all sexes and ages of it together
        if name_of in lines or variable.startswith("PCT012"):
            counted[place, name_of] += value
    assert counted == wanted


def test_the_swapped_file_publishes_the_same_totals(make: Make, tmp_path: Path) -> None:
    files = make(20_000, 8, "diverse-urban")
    totals = []
    for name in ("cef", "hdf"):
        tables = tmp_path / f"{name}.parquet"
        good(tool("tabulate", files.folder / f"{name}.parquet", *SF1, "--tables", "P1,P10", "--out", tables))
        totals.append({key: value for key, value in variables(tables).items() if key[1] in ("P0010001", "P0100001")})
    assert totals[0] == totals[1]
    blocks = files["blocks"]
    inside = {(block, "P0010001"): persons for block, persons in blocks.select("block", "persons").iter_rows()}
    assert {key: value for key, value in totals[0].items() if key[1] == "P0010001"} == inside
    by_tract = blocks.group_by("tract").agg(pl.col("persons").sum())["persons"].sum()
    assert by_tract == sum(inside.values()) == 20_000


@pytest.mark.slow
def test_its_tables_can_be_attacked(make: Make, tmp_path: Path) -> None:
    files = make(333, 4, "national")
    tables = tmp_path / "tables.parquet"
    good(tool("tabulate", files.folder / "hdf.parquet", *SF1, "--out", tables))
    assert good(tool("check", tables, *SF1)).code == 0
    good(tool("reconstruct", tables, *SF1, "--workers", 1, "--out", tmp_path / "rebuilt"))
    good(tool("vary", tables, *SF1, "--workers", 1, "--out", tmp_path / "varied"))
    rebuilt = pl.read_parquet(tmp_path / "rebuilt" / "records.parquet")
    assert rows(rebuilt, "block") == rows(files["hdf"], "block")
    sure = pl.read_parquet(tmp_path / "varied" / "places.parquet").filter(pl.col("solvar") == 0)["block"]
    assert len(sure)
    key = ("block", "sex", "agebin", *RACES, "hispanic")
    known = pl.col("block").is_in(sure.implode())
    truth = binned(files["hdf"]).with_columns(pl.col("agebin").cast(pl.Int64))
    mine = binned(rebuilt.drop("agebin", strict=False)).with_columns(pl.col("agebin").cast(pl.Int64))
    assert rows(mine.filter(known), *key) == rows(truth.filter(known), *key)


# One seed


def test_the_same_seed_gives_the_same_bytes_and_another_does_not(make: Make, tmp_path: Path) -> None:
    first = make(9_000, 7, "homogeneous-rural")
    script = "import sys; from glasshouse.cli.main import main; sys.exit(main(sys.argv[1:]))"
    options = ["--persons", "9000", "--preset", "homogeneous-rural", "--quiet"]
    for seed, name in ((7, "again"), (8, "other")):
        subprocess.run(  # another process: nothing that is left over in this one helps
            [sys.executable, "-c", script, "synthesize", *options, "--seed", str(seed), "--out", str(tmp_path / name)],
            check=True,
        )
    for name in (*sorted(FILES), "datasheet.md"):
        assert sha(first.folder / name) == sha(tmp_path / "again" / name)
        assert sha(first.folder / name) != sha(tmp_path / "other" / name), name


def same_tract(one: Tract, two: Tract) -> None:
    assert (one.number, one.first_block, one.first_person) == (two.number, two.first_block, two.first_person)
    for part in ("people", "homes", "identities"):
        left, right = getattr(one, part), getattr(two, part)
        for field in fields(left):
            a, b = getattr(left, field.name), getattr(right, field.name)
            if isinstance(a, dict):
                assert a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)
            else:
                assert np.array_equal(a, b)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_tract_alone_is_the_tract_in_the_county(preset: str, make: Make) -> None:
    whole = County(load_preset(preset), 20_000, 8)
    for number in range(whole.places.tracts):
        tract = whole.tract(number)
        if number in (0, 2, whole.places.tracts - 1):
            same_tract(tract, County(load_preset(preset), 20_000, 8).tract(number))
    if preset == "diverse-urban":
        cef = make(20_000, 8, preset)["cef"]
        people = tract.people
        blocks = [whole.places.codes[tract.first_block + block] for block in people.unit_block[people.unit]]
        named = zip(blocks, [SEXES[sex] for sex in people.sex], people.age.tolist(), strict=True)
        assert Counter(named) == rows(cef.filter(pl.col("block").str.head(11) == blocks[0][:11]), "block", "sex", "age")


def test_what_is_made_around_the_truth_does_not_change_it(make: Make) -> None:
    usual = make(20_000, 8, "diverse-urban")
    options = ("--commercial", "low", "--swap-base", 0, "--swap-risky", 0, "--alpha", 0.5, "--subsidised", 0.2)
    other = make(20_000, 8, "diverse-urban", *options)
    for name in ("cef", "attacker-perfect", "sample", "blocks"):
        assert sha(usual.folder / f"{name}.parquet") == sha(other.folder / f"{name}.parquet")
    for name in ("hdf", "commercial", "housing"):
        assert_frame_not_equal(usual[name], other[name])


@pytest.mark.slow
def test_a_county_of_many_tracts_is_more_than_one_county(tmp_path: Path) -> None:
    preset = own_preset(tmp_path / "hamlets.toml", ("tract_persons", "8"), ("bands", "[[1, 9, 100]]"))
    good(synthesize(tmp_path / "out", "--persons", 9_000, "--preset", preset, "--swap-base", 0.2, "--swap-risky", 0.5))
    files = Files(tmp_path / "out")
    assert files["blocks"]["block"].str.head(5).n_unique() > 1
    test_the_published_file_has_the_same_persons_and_as_many_everywhere(files)
    test_households_are_swapped_in_pairs_across_tracts_of_a_county(files)
    test_the_sample_is_one_household_in_ten_with_all_its_members(files)
    assert files["sample"]["county"].n_unique() == files["blocks"]["block"].str.head(5).n_unique()


# The command


def test_what_a_run_leaves_and_says(tmp_path: Path) -> None:
    out = tmp_path / "new" / "county"
    options = ("--persons", 500, "--seed", 9)
    said = good(synthesize(out, *options, "--json")).json
    assert said["command"] == "synthesize" and said["records"] == 500 and said["unchanged"] is False
    assert {path.name for path in out.iterdir()} == {*FILES, "datasheet.md", "manifest.json"}
    assert mode(out) == mode(out.parent) == 0o700 and {mode(path) for path in out.iterdir()} == {0o600}
    manifest = Files(out).told
    assert manifest["command"] == "synthesize" and manifest["complete"] is True and manifest["inputs"] == {}
    assert manifest["parameters"]["seed"] == 9 and manifest["parameters"]["preset"] == "national"
    assert manifest["outputs"] == {name: sha(out / name) for name in (*FILES, "datasheet.md")}
    assert all(said[name] == value for name, value in manifest["counts"].items() if name not in ("lines", "notes"))
    sheet = (out / "datasheet.md").read_text()
    assert "seed 9" in sheet and "Nobody in these files is real" in sheet and "{" not in sheet
    before = tree(out)
    again = good(synthesize(out, *options, "--json")).json
    assert again == said | {"unchanged": True} and tree(out) == before
    assert "up to date" in good(synthesize(out, *options)).out and tree(out) == before


def test_json_alone_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    said = good(synthesize(None, "--persons", 300, "--json")).json
    assert said["out"] is None and said["records"] == 300 and list(tmp_path.iterdir()) == []
    refused(synthesize(None, "--persons", 300), "--out")


def test_quiet_is_quiet_and_the_line_says_what_was_made(tmp_path: Path) -> None:
    assert good(synthesize(tmp_path / "a", "--persons", 300, "--quiet"))[1:] == ("", "")
    ended = good(synthesize(tmp_path / "b", "--persons", 300))
    assert ended.out.startswith("300 persons in ") and ended.out.count("\n") == 1


@pytest.mark.parametrize(
    "other",
    [("--seed", 2), ("--persons", 301), ("--preset", "diverse-urban"), ("--commercial", "low"), ("--swap-risky", 0.2),
     ("--alpha", 0.1), ("--subsidised", 0.5)],
)  # fmt: skip
def test_the_result_of_another_run_is_replaced_only_on_demand(other: tuple[str, object], tmp_path: Path) -> None:
    out, options = tmp_path / "county", {"--persons": 300, "--seed": 1}
    good(synthesize(out, *(word for pair in options.items() for word in pair)))
    before = tree(out)
    changed = [word for pair in (options | {other[0]: other[1]}).items() for word in pair]
    refused(synthesize(out, *changed), "--overwrite")
    assert tree(out) == before
    good(synthesize(out, *changed, "--overwrite"))
    assert {path.name for path in out.iterdir()} == {*FILES, "datasheet.md", "manifest.json"}
    assert Files(out).told["parameters"][other[0][2:].replace("-", "_")] == other[1]


def test_a_damaged_result_is_made_again(tmp_path: Path) -> None:
    out = tmp_path / "county"
    good(synthesize(out, "--persons", 300))
    whole = sha(out / "cef.parquet")
    (out / "cef.parquet").write_bytes(b"half")
    (out / "sample.parquet").unlink()
    good(synthesize(out, "--persons", 300))
    assert sha(out / "cef.parquet") == whole and (out / "sample.parquet").is_file()


def test_a_folder_of_someone_else_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    before = tree(tmp_path)
    refused(synthesize(tmp_path / "mine", "--persons", 300), "not empty")
    refused(synthesize(tmp_path / "mine" / "thesis.txt", "--persons", 300), "is a file")
    assert tree(tmp_path) == before


def test_a_preset_of_ones_own(tmp_path: Path) -> None:
    preset = own_preset(tmp_path / "alike.toml", ("title", '"all {seed} alike"'), *((race, "0") for race in RACES[1:]))
    preset.write_text(re.sub(r"(?m)^(many|hispanic) = .*$", r"\1 = 0", preset.read_text()))
    good(synthesize(tmp_path / "out", "--persons", 2000, "--preset", preset))
    files = Files(tmp_path / "out")
    assert files.told["inputs"] == {"preset": {"name": "alike.toml", "sha256": sha(preset)}}
    assert files.told["parameters"]["preset"] == "alike"
    assert rows(files["cef"], *RACES, "hispanic") == {(1, 0, 0, 0, 0, 0, 0): 2000}
    assert "all {seed} alike" in (tmp_path / "out" / "datasheet.md").read_text()
    preset.write_text(preset.read_text() + "\n")
    refused(synthesize(tmp_path / "out", "--persons", 2000, "--preset", preset), "--overwrite")
    refused(synthesize(tmp_path, "--persons", 2000, "--preset", preset), "input of this command")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--persons", 0), ("--persons", "expected 1 to")),
        (("--persons", -3), ("--persons", "expected 1 to")),
        (("--persons", "many"), ("--persons",)),
        (("--persons", 2.5), ("--persons",)),
        (("--seed", -1), ("--seed",)),
        (("--preset", "suburban"), ("suburban", *PRESETS)),
        (("--preset", ""), PRESETS),
        (("--commercial", "perfect"), ("perfect", "low", "2010-like", "high")),
        (("--swap-base", 0.3), ("0.3", "0.1")),
        (("--swap-base", -0.1), ("--swap-base",)),
        (("--swap-risky", 1.5), ("--swap-risky",)),
        (("--swap-risky", "nan"), ("--swap-risky",)),
        (("--alpha", 2), ("--alpha",)),
        (("--alpha", "nan"), ("--alpha",)),
        (("--subsidised", -1), ("--subsidised",)),
        (("--colour", "blue"), ("--colour",)),
        pytest.param(("--persons", 10**18), ("persons",)),
        pytest.param(("--persons", 10**30), ("persons",)),
    ],
)
def test_bad_options_get_one_clear_line_and_leave_nothing(
    options: tuple[object, ...], words: tuple[str, ...], tmp_path: Path
) -> None:
    refused(synthesize(tmp_path / "new" / "out", *without(["--persons", 300], options), *options), *words)
    assert list(tmp_path.iterdir()) == []


def test_errors_are_json_too(tmp_path: Path) -> None:
    ended = synthesize(tmp_path / "out", "--persons", 0, "--json")
    assert ended.code == 2 and ended.json["exit_code"] == 2 and "expected 1 to" in ended.json["error"]


def test_the_ends_of_the_options_are_options(tmp_path: Path) -> None:
    for number, options in enumerate(
        [("--subsidised", 1), ("--subsidised", 0), ("--alpha", 0), ("--alpha", 1), ("--seed", 2**80), ("--seed", 0)]
    ):
        good(synthesize(tmp_path / str(number), "--persons", 1500, *options))
    assert Files(tmp_path / "1")["housing"].is_empty() and Files(tmp_path / "0")["housing"].height > 1
    assert sha(tmp_path / "4" / "cef.parquet") != sha(tmp_path / "5" / "cef.parquet")


WRONG_TYPE = "the shape of an entry is not checked: a bug of ours, exit code 3"
BAD_PRESETS = [
    ("white", "-1", None),
    ("white", '"many"', None),
    ("white", "nan", None),
    ("white", "true", None),
    ("sizes", "[0, 0]", None),
    ("sizes", "3", None),
    ("sizes", "[]", None),
    ("kinds", "[]", None),
    ("group_persons", "1", None),
    ("white", "inf", WRONG_TYPE),
    ("white", "[1, 2]", WRONG_TYPE),
    ("bands", "[[1, 9]]", WRONG_TYPE),
    ("bands", "[1, 9, 100]", WRONG_TYPE),
    ("bands", "[[1, 9, 50], [10, 49]]", WRONG_TYPE),
    ("bands", "[[1, 9, 0]]", WRONG_TYPE),
    ("bands", "[[0, 9, 50]]", "log of 0 (a warning, an error here), and blocks of nobody"),
    ("bands", "[[0.5, 0.9, 50]]", "blocks of 0 persons never add up: it runs for ever"),
    ("bands", "[[9, 1, 50]]", "accepted: a band that ends before it begins"),
    ("tract_persons", "0", WRONG_TYPE),
    ("tract_persons", "[4000]", WRONG_TYPE),
    ("group_persons", "0", WRONG_TYPE),
    ("partner", "[93]", WRONG_TYPE),
    ("married", "[0, 60]", WRONG_TYPE),
    ("married", "60", WRONG_TYPE),
    ("female_alone", "[55]", WRONG_TYPE),
    ("owned_mortgage", "[36]", WRONG_TYPE),
    ("owned_mortgage", "36", WRONG_TYPE),
    ("vacant", "100", "division by zero: exit code 3"),
    ("vacant", "150", "a negative rate: exit code 3"),
    ("share", "[2]", WRONG_TYPE),
    ("vacancy", "[0, 0, 0, 0, 0, 0, 0, 1]", "accepted: writes VACS 8, which no census has"),
    ("kinds", "[0, 0, 0, 0, 0, 0, 0, 1]", "accepted while no such quarters are drawn, then an IndexError"),
    ("strays", "300", "accepted: 300%, so shares below 0"),
    ("partner", "200", "accepted: 200%"),
    ("alike", "5", "accepted: says 0 to 1"),
    ("owned_free", "[180, 220]", "accepted: 220%"),
]


@contextmanager
def given_up(seconds: float) -> Iterator[None]:
    """Do not wait for ever for what never ends."""

    def stop(*_: object) -> None:
        raise RuntimeError("it does not end")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(
    ("name", "value"),
    [pytest.param(name, value, id=f"{name}={value}") for name, value, reason in BAD_PRESETS],
)
def test_a_bad_number_in_a_preset_gets_one_clear_line_and_leaves_nothing(name: str, value: str, tmp_path: Path) -> None:
    preset = own_preset(tmp_path / "own.toml", (name, value))
    with given_up(2):
        ended = synthesize(tmp_path / "out", "--persons", 300, "--preset", preset)
    assert not (tmp_path / "out").exists()
    refused(ended)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ("own.toml", "missing")),
        ("title = ", ("own.toml", "TOML")),
        ("[groups]\nwhite = 1\n", ("own.toml", "missing", "[groups]")),
        ("[colours]\nred = 1\n", ("colours", "groups")),
        ("groups = 3", ("groups",)),
    ],
)
def test_a_garbled_preset_is_refused(text: str, words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(text)
    refused(synthesize(tmp_path / "out", "--persons", 300, "--preset", tmp_path / "own.toml"), *words)
    assert [path.name for path in tmp_path.iterdir()] == ["own.toml"]


def test_a_preset_that_is_no_text_or_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_bytes(b"title = \xff\xfe")
    refused(synthesize(tmp_path / "out", "--preset", tmp_path / "own.toml"), "own.toml", "UTF-8")
    refused(synthesize(tmp_path / "out", "--preset", tmp_path), "known")
    refused(synthesize(tmp_path / "out", "--preset", tmp_path / "absent.toml"), "absent.toml")
    text = own_preset(tmp_path / "own.toml").read_text()
    for section in ("groups", "hispanic_race", "blocks", "composition", "households", "group_quarters"):
        (tmp_path / "own.toml").write_text(re.sub(rf"(?ms)^\[{section}\].*?(?=^\[|\Z)", "", text))
        refused(synthesize(tmp_path / "out", "--preset", tmp_path / "own.toml"), f"[{section}] is missing")
    (tmp_path / "own.toml").write_text(text.replace("vacant = ", "vacnt = "))
    refused(synthesize(tmp_path / "out", "--preset", tmp_path / "own.toml"), "vacnt", "vacant")
    assert [path.name for path in tmp_path.iterdir()] == ["own.toml"]


def test_a_preset_that_is_built_in_is_no_input_even_if_a_file_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("national").write_text("a shopping list")
    good(synthesize(tmp_path / "out", "--persons", 300))
    assert Files(tmp_path / "out").told["inputs"] == {}


# Interrupted


def interrupt_at(monkeypatch: pytest.MonkeyPatch, call: int) -> None:
    """Ctrl-C when a tract is made for this time; each is made twice."""
    calls, real = [0], County.tract

    def tract(self: County, number: int) -> Tract:
        calls[0] += 1
        if calls[0] == call:
            raise KeyboardInterrupt
        return real(self, number)

    monkeypatch.setattr(County, "tract", tract)


@pytest.mark.parametrize("call", [1, 3, 4, 5, 6])
def test_ctrl_c_leaves_nothing(call: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ("--persons", 11_000, "--seed", 1)
    assert County(load_preset("national"), 11_000, 1).places.tracts == 3
    with monkeypatch.context() as patch:
        interrupt_at(patch, call)
        ended = synthesize(tmp_path / "new" / "out", *options)
    assert ended.code == 130 and ended.out == "" and "Traceback" not in ended.err
    assert list(tmp_path.iterdir()) == []
    good(synthesize(tmp_path / "new" / "out", *options))


@pytest.mark.parametrize(
    "at", ["glasshouse.commands.words.datasheet.datasheet", "glasshouse.engine.folder.Folder.write"]
)
def test_ctrl_c_in_the_last_moment_can_be_followed_by_the_same_command(
    at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(at, stop)
        assert synthesize(tmp_path / "out", "--persons", 300).code == 130
    good(synthesize(tmp_path / "out", "--persons", 300))


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_stopped_or_killed_can_be_run_again(sign: signal.Signals, tmp_path: Path) -> None:
    script = "import sys; from glasshouse.cli.main import main; sys.exit(main(sys.argv[1:]))"
    out = tmp_path / "out"
    options = ["synthesize", "--persons", "2000000", "--out", str(out), "--quiet"]
    process = subprocess.Popen([sys.executable, "-c", script, *options], stderr=subprocess.PIPE, text=True)
    try:
        while not (out / "ledger" / "run.json").exists() and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(sign)
        _, err = process.communicate()
    finally:
        process.kill()
    assert "Traceback" not in err and not (out / "manifest.json").exists()
    if sign == signal.SIGINT:
        assert process.returncode == 130 and not out.exists()
    else:
        assert process.returncode == -signal.SIGKILL
        refused(synthesize(out, "--persons", 300), "unfinished run")
        good(synthesize(out, "--persons", 300, "--overwrite"))
        assert {path.name for path in out.iterdir()} == {*FILES, "datasheet.md", "manifest.json"}


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_the_status_of_a_county_can_be_asked(options: tuple[str, ...], make: Make) -> None:
    assert "done" in good(tool("status", make(333, 4, "national").folder, *options)).out


# Calibration: the nation of 2010


UNIQUE = (81.7, 50.3, 26.9, 12.2, 3.4, 0.8, 0.2)  # Table S5 of papers/000, %, by block size
CERTAIN = (99.5, 78.5, 32.6, 12.6, 2.9, 0.8, 1.1)
BANDS_2010 = (29.0, 43.0, 16.0, 8.7, 2.0, 0.65, 0.16)


def bands(persons: pl.Series) -> pl.Series:
    return pl.Series("band", np.searchsorted(SIZES, persons.to_numpy(), side="right") - 1)


@pytest.mark.parametrize("seed", [1, 2])
def test_as_many_are_unique_as_in_the_nation(seed: int, make: Make) -> None:
    files = make(150_000, seed, "national")
    cef = binned(files["cef"]).with_columns(
        size=pl.len().over("block"), alone=pl.len().over("block", "sex", "agebin") == 1,
        alone_by_year=pl.len().over("block", "sex", "age") == 1,
    )  # fmt: skip
    counted = pl.col("alone") & (pl.col("data_defined") == 1)
    found = dict(cef.with_columns(bands(cef["size"])).group_by("band").agg(100 * counted.mean()).iter_rows())
    assert all(abs(found[band] - UNIQUE[band]) < 5 for band in found), found
    assert abs(100 * cef["alone_by_year"].mean() - 44) < 3


@pytest.mark.parametrize("seed", [1, 2])
def test_the_county_is_made_of_the_nation(seed: int, make: Make) -> None:
    """2010 Census: block sizes (Table S5); households by type and size, tenure, vacancy (P18, P28, H4, H3)."""
    files = make(150_000, seed, "national")
    share = bands(files["blocks"]["persons"]).value_counts(normalize=True)
    found = dict(share.iter_rows())
    assert all(abs(100 * found.get(band, 0) - BANDS_2010[band]) < 3 for band in range(7)), found
    homes, persons = files.occupied, files["cef"]
    percent = {
        "married": ((homes["HHT"] == 1).mean(), 48.4, 3), "alone": ((homes["HHSIZE"] == 1).mean(), 26.7, 3),
        "female family": ((homes["HHT"] == 3).mean(), 13.1, 3), "with children": (homes["TP18"].mean(), 33.4, 5),
        "with elderly": (homes["TP65"].mean(), 24.9, 5), "owned": ((homes["TEN"] <= 2).mean(), 65.1, 3),
        "vacant": ((files["households"]["VACS"] > 0).mean(), 11.4, 1),
        "women": ((persons["sex"] == "female").mean(), 50.8, 2),
        "65 and over": ((persons["age"] >= 65).mean(), 13.0, 3),
        "under 18": ((persons["age"] < 18).mean(), 24.0, 4), "85 and over": ((persons["age"] >= 85).mean(), 1.8, 1),
        "group quarters": ((persons["gq"] > 0).mean(), 2.6, 2),
    }  # fmt: skip
    for name, (value, wanted, most) in percent.items():
        assert abs(100 * value - wanted) < most, (name, value)
    assert abs(homes["persons"].mean() - 2.58) < 0.15 and abs(persons["age"].median() - 37.2) < 4


@pytest.mark.slow
def test_as_many_blocks_are_certain_as_in_the_nation(make: Make, tmp_path: Path) -> None:
    """Three counties together: blocks of a tract are alike, so one county is off by three points or so."""
    counties = []
    for seed in (1, 2, 3):
        files = make(150_000, seed, "national")
        tables, out = tmp_path / f"{seed}.parquet", tmp_path / str(seed)
        good(tool("tabulate", files.folder / "hdf.parquet", *SF1, "--out", tables))
        good(tool("vary", tables, *SF1, "--workers", 1, "--out", out))
        counties.append(pl.read_parquet(out / "places.parquet").select("population", "solvar_upper"))
        assert counties[-1].height == files["blocks"].height
    places = pl.concat(counties)
    certain = 100 * (pl.col("solvar_upper") == 0).mean()
    shares = places.with_columns(bands(places["population"])).group_by("band").agg(pl.len(), share=certain)
    for band, blocks, share in shares.sort("band").iter_rows():
        if blocks >= 50:
            assert abs(share - CERTAIN[band]) < 10, shares.sort("band").rows()


def test_likeness_is_what_plain_counting_says(town: Files) -> None:
    cef, listed = town["cef"].head(8000), town["commercial"]
    edges = [*range(23), 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85]
    agebin = [bisect_right(edges, age) - 1 for age in range(111)]
    persons = list(cef.iter_rows(named=True))
    sizes = Counter(p["block"] for p in persons)
    alone = Counter((p["block"], p["sex"], agebin[p["age"]]) for p in persons)
    exact = Counter((p["block"], p["sex"], p["age"]) for p in persons)
    hits, people = Counter[int](), Counter[int]()
    for p in persons:
        band = bisect_right([1, 10, 50, 100, 250, 500, 1000], sizes[p["block"]]) - 1
        people[band] += 1
        hits[band] += p["data_defined"] == 1 and alone[p["block"], p["sex"], agebin[p["age"]]] == 1
    table = likeness.uniques(cef, agebin)
    for band, (_, count, ours, _) in enumerate(table.iter_rows()):
        assert (count or 0) == people[band] and (ours or 0) == pytest.approx(hits[band] / max(people[band], 1))
    assert likeness.unique_exact(cef) == pytest.approx(sum(n for n in exact.values() if n == 1) / len(persons))
    cells = Counter((p["block"], *(p[race] for race in RACES), p["hispanic"]) for p in persons)
    modal = {block: max(n for cell, n in cells.items() if cell[0] == block) for block in sizes}
    mix = likeness.concentration(cef)
    assert mix["modal share"] == pytest.approx(sum(modal.values()) / len(persons))
    squares = sum(n * n / sizes[cell[0]] for cell, n in cells.items())
    assert mix["sum of squared shares"] == pytest.approx(squares / len(persons))
    truth = {(p["person_id"], p["block"], p["sex"], agebin[p["age"]]) for p in persons if p["data_defined"] == 1}
    right = sum((p["person_id"], p["block"], p["sex"], agebin[p["age"]]) in truth for p in listed.iter_rows(named=True))
    overlap = likeness.list_overlap(cef, listed, agebin)
    assert overlap == {"matching": right, "not matching": listed.height - right, "list": listed.height,
                       "data-defined": len(truth)}  # fmt: skip
    known = sum(p["person_id"] is not None for p in persons)
    defined = sum(p["data_defined"] for p in persons)
    told = {"data-defined": defined / len(persons), "duplicates": 1 - defined / known}
    assert likeness.identifiers(cef) == pytest.approx(told)
