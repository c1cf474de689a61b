"""What does "certain" rest on? Which places there are, what is compared, what can be dealt out, how many there may be.

Each example was answered wrongly once. What is certain must be so in the records behind the tables, whichever tables
are left out; telling less must never look worse.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import glasshouse as gh
from glasshouse.assess.headline import Headline
from glasshouse.attack.published import drawn
from glasshouse.commands.vary import Varied
from glasshouse.model.records import satisfies
from glasshouse.model.schema import Impossible, Schema
from glasshouse.program.tables.cells import partition
from glasshouse.scenarios.load import load
from tests.oracles import attribute
from tests.running import good, tool

TRACT = "99001000100"
RACES = ("white", "black", "aian", "asian", "nhopi", "sor")
SOME = ["P12B", "PCT12", *(f"PCT12{letter}" for letter in "ABCDEFGHI")]
NORLAND = Path(__file__).parents[1] / "examples" / "own-country"


def person(block: int, sex: int, age: int, race: str, hispanic: int = 0) -> dict[str, Any]:
    races = {name: int(name == race) for name in RACES}
    return {"geoid": f"{TRACT}{block}", "sex": ("male", "female")[sex - 1], "age": age, **races, "hispanic": hispanic}


FIVE = [
    person(1000, 1, 34, "black"), person(1001, 2, 71, "white"), person(1001, 1, 73, "white"),
    person(1002, 2, 29, "asian"), person(1002, 1, 3, "asian"),
]  # fmt: skip
SIX = [
    person(1000, 1, 31, "black", 1), person(1000, 1, 36, "black"), person(1000, 1, 33, "asian"),
    person(1000, 1, 38, "asian", 1), person(1001, 1, 31, "black"), person(1001, 1, 38, "asian"),
]  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _quick() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("glasshouse.report.figure.Figure.save", lambda _, path: path.write_text("<svg/>"))
        yield


def tables_of(people: list[dict[str, Any]], only: list[str] | None = None) -> pl.DataFrame:
    return gh.tabulate(pl.DataFrame(people), scenario="sf1-person", only=only or []).frame("tables")


def varied(tables: pl.DataFrame, **how: Any) -> Varied:
    return gh.vary(tables, scenario="sf1-person", workers=1, **how)


def by_place(found: Varied) -> dict[str, dict[str, Any]]:
    return {row["block"][-4:]: row for row in found.places.iter_rows(named=True)}


# Which places there are


def test_places_that_the_file_names_do_not_vanish_with_their_tables() -> None:
    """The file has P1, so it names every block with people; tables that are not used say where people may be."""
    found = varied(tables_of(FIVE), only=SOME, scope="tract")
    places = by_place(found)
    assert set(places) == {"1000", "1001", "1002"}
    assert places["1000"]["certain"] == 1 and found.summary.headline is not None
    assert sum(row["certain"] for row in places.values()) == 1, "four of five may be in any of three blocks"
    assert all(row["proof"] == "exact" and row["solvar"] > 0 for row in places.values())
    assert not any("--all-places" in note for note in found.notes)


def test_where_places_are_not_known_nothing_rests_on_it(tmp_path: Path) -> None:
    """No table in the file counts everybody in a block: a block that is not named may hold the others."""
    tables = tables_of(FIVE, SOME)
    found = varied(tables, only=SOME, scope="tract")
    (row,) = by_place(found).values()
    assert row["certain"] == 1 and row["solvar_upper"] > 0
    assert any("--all-places" in note for note in found.notes)
    rebuilt = gh.reconstruct(tables, scenario="sf1-person", only=SOME, workers=1)
    assert any("were put there" in note for note in rebuilt.notes)
    (tmp_path / "all.csv").write_text("block\n" + "".join(f"{TRACT}{block}\n" for block in (1000, 1001, 1002)))
    listed = varied(tables, only=SOME, scope="tract", all_places=tmp_path / "all.csv")
    assert set(by_place(listed)) == {"1000", "1001", "1002"}
    assert not any("--all-places" in note for note in listed.notes)


def test_a_true_release_is_not_called_contradictory_for_places_it_does_not_name(tmp_path: Path) -> None:
    """Blocks count black people only, and one tract has none: no block of it is named, but people live there."""
    other = {**person(1000, 2, 50, "white"), "geoid": "990010002001000"}
    only = ["P12B", "PCT12", "PCT12A", "PCT12B"]
    tables_of([*FIVE, other], only).write_csv(tmp_path / "t.csv")
    options = ("--scenario", "sf1-person", "--tables", ",".join(only), "--quiet")
    good(tool("check", tmp_path / "t.csv", *options))
    good(tool("reconstruct", tmp_path / "t.csv", "--out", tmp_path / "r", "--workers", 1, *options))


# What is compared


def test_ages_are_dealt_out_within_the_tracts_single_years() -> None:
    """Equation 8 as printed: no exchange of origin is possible within the tract's years, though it is within bins."""
    found = varied(tables_of(SIX))
    assert found.places["solvar"].to_list() == [0, 0] == found.places["solvar_upper"].to_list()
    assert found.places["certain"].to_list() == [4, 2] and set(found.places["proof"]) == {"exact"}
    finer = varied(tables_of(SIX), schema="exact-age")
    assert (found.places["distance"] <= finer.places["distance"]).all(), "a coarser distance never exceeds a finer one"


def test_where_nothing_is_told_nothing_is_certain() -> None:
    found = varied(tables_of(FIVE), only=["P1"])
    head = found.summary.headline
    assert head is not None and (head.share_certain, head.share_certain_upper) == (0, 0)
    assert (head.solvar_mean, head.zero_solvar_share) == (1, 0)


def test_less_published_is_never_worse_in_whole_records() -> None:
    people = tables_of(SIX + FIVE)
    before: Headline | None = None
    for only in (["P1"], ["P1", "P12"], ["P1", "P12", "P8"], ["P1", "P12", "P8", "P9"], []):
        head = varied(people, only=only).summary.headline
        assert head is not None
        if before is not None:
            assert before.share_certain_whole <= head.share_certain_whole
            assert before.zero_solvar_share_whole <= head.zero_solvar_share_whole
        before = head
    assert before is not None and before.share_certain_whole == before.share_certain > 0


def test_zeros_of_what_is_not_compared_divide_nothing() -> None:
    """H3 tells occupied from vacant; why a unit stands empty is in VACS, and nothing else is compared."""
    scenario = load("dhc-household")
    schema = scenario.schema
    rng = np.random.default_rng(3)
    kinds = partition(schema, [schema.where({"VACS": [level]}) for level in range(len(schema.attribute("VACS")))])
    occupied = np.flatnonzero(kinds.inside(schema.where({"VACS": [0]})))
    compiled = type("One", (), {"cells": kinds})()
    codes = drawn(compiled, rng.choice(occupied, 30), rng, schema)
    from glasshouse.files.records import record_frame

    records = record_frame(scenario, [f"{TRACT}1000"], np.zeros(30, np.int32), codes, {})
    tables = gh.tabulate(records, scenario="dhc-household").frame("tables")
    found = gh.vary(tables, scenario="dhc-household", only=["H3"], workers=1)
    head = found.summary.headline
    assert head is not None and head.share_certain == 1, "30 occupied units, and no vacant one"
    assert (head.solvar_mean, head.share_certain_whole) == (0, 0)


def test_looking_away_leaves_just_what_is_possible() -> None:
    """Against every record written down: what is left of some attributes is possible with some level of the others."""
    rng = np.random.default_rng(5)
    for _ in range(200):
        sizes = rng.integers(1, 4, rng.integers(1, 4))
        schema = Schema(tuple(attribute(name, int(size)) for name, size in zip("abcd", sizes, strict=False)))
        zeros = []
        for _ in range(rng.integers(0, 4)):
            named = [a for a in schema.attributes if rng.random() < 0.6]
            levels = {a.name: np.flatnonzero(rng.random(len(a)) < 0.6).tolist() for a in named}
            if all(levels.values()):
                zeros.append(Impossible(schema.where(levels), "so it is"))
        whole = Schema(schema.attributes, tuple(zeros))
        every = np.array(list(product(*(range(int(size)) for size in sizes))), np.int16)
        possible = ~np.any(
            [satisfies(whole, every, zero.predicate) for zero in zeros] or [np.zeros(len(every), bool)], 0
        )
        away = [a.name for a in schema.attributes if rng.random() < 0.5]
        kept = [at for at, a in enumerate(schema.attributes) if a.name not in away]
        left = {tuple(row) for row in every[possible][:, kept].tolist()}
        seen = whole.looking_away(away)
        told = ~np.any(
            [satisfies(seen, every, z.predicate) for z in seen.impossible] or [np.zeros(len(every), bool)], 0
        )
        assert {tuple(row) for row in every[told][:, kept].tolist()} == left
        cells = partition(whole, [schema.where({schema.attributes[at].name: [0]}) for at in kept])
        assert cells.sizes.sum() == possible.sum() and len(cells) <= possible.sum()


# How many there may be


@pytest.mark.parametrize("protection", [("round", "--base", 5, "--how", "nearest"), ("suppress", "--below", 3)])
def test_intervals_keep_solvar_a_share(tmp_path: Path, protection: tuple[object, ...]) -> None:
    scenario = ("--scenario", NORLAND / "scenario", "--quiet")
    good(tool("tabulate", NORLAND / "records.csv", "--out", tmp_path / "t.csv", *scenario))
    first, *options = protection
    good(tool("protect", first, tmp_path / "t.csv", *options, "--out", tmp_path / "p.csv", *scenario))
    good(tool("vary", tmp_path / "p.csv", "--out", tmp_path / "v", "--workers", 1, *scenario))
    places = pl.read_parquet(tmp_path / "v" / "places.parquet")
    for column in ("solvar", "solvar_upper"):
        assert places[column].is_between(0, 1).all()
    assert (places["population"] <= places["population_upper"]).all()
    assert (places["certain_upper"] <= places["population"]).all()
    assert (places["population"] < places["population_upper"]).any(), "some total is not known"
