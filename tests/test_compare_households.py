"""Does `compare` attack households as `detect` and `verify` do? Every number is that of the commands run by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.running import Ended, good, tool

PLAN = """
title = "toy"
attack = "{attack}"
scenario = "{scenario}"
{more}

[[setting]]
name = "nothing"

[[setting]]
name = "swap 50%"
protect = "swap"
rate = 0.5
coordinates = "{{blocks}}"
"""
NOISE = """
[[setting]]
name = "noise"
protect = "noise"
rho = 1
neighbours = "change-one"
invariant = ["H0030002", "H0030003"]
"""


@pytest.fixture(scope="module")
def county(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compare") / "county"
    made = ("--persons", 6_000, "--subsidised", 0.4, "--alpha", 0.2, "--seed", 4)
    good(tool("synthesize", *made, "--out", folder, "--quiet"))
    return folder


def plan(folder: Path, attack: str, scenario: str, more: str = "", settings: str = "") -> Path:
    path = folder / f"{attack}.toml"
    path.write_text(PLAN.format(attack=attack, scenario=scenario, more=more) + settings)
    return path


def compare(county: Path, *words: object) -> Ended:
    return tool("compare", county, *words, "--workers", 1, "--quiet")


def measured(out: Path) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["setting"], row["measure"]): row
            for row in pl.read_parquet(out / "measures.parquet").iter_rows(named=True)}  # fmt: skip


@pytest.mark.slow
def test_what_two_agencies_say_is_compared(county: Path, tmp_path: Path) -> None:
    """Table 1 in one command: each setting's numbers are those of `detect` on the files that were kept."""
    out, kept = tmp_path / "out", tmp_path / "kept"
    made = plan(tmp_path, "occupancy", "subsidised-housing", settings=NOISE)
    good(compare(county, "--plan", made, "--keep", kept, "--out", out))
    found, homes = measured(out), county / "households.parquet"
    for number, setting in enumerate(("nothing", "swap 50%", "noise")):
        tables = kept / f"{number:03d}s1" / "tables.parquet"
        for model, after in (("sharp", ""), ("paper", " (paper)")):
            words = ("--properties", county / "housing.parquet", "--truth", homes, "--model", model, "--json")
            told = json.loads(good(tool("detect", tables, *words, "--workers", 1)).out)["blocks_right"]
            blocks = told["blocks"]
            assert found[setting, f"putative_places{after}"]["value"] == pytest.approx(told["putative"] / blocks)
            recall, chance = found[setting, f"found_places{after}"], told["recall_by_chance"]
            assert recall["value"] == pytest.approx(told["recall"]["value"]) and recall["baseline"] == chance
            if told["precision"]:
                assert found[setting, f"precision_places{after}"]["value"] == told["precision"]["value"]
            assert found[setting, f"nothing_fits{after}"]["value"] == told["contradictions"] / blocks
    assert found["nothing", "table_error_block"]["value"] == 0 < found["swap 50%", "table_error_block"]["value"]
    assert found["nothing", "found_places"]["value"] > 0, "else this test shows nothing"
    front = pl.read_parquet(out / "front.parquet")
    assert front["risk"].to_list() == [found[name, "found_places"]["value"] for name in front["setting"]]
    assert json.loads((out / "manifest.json").read_text())["counts"]["risk"] == "found_places"
    assert "places with a household" in (out / "risk-utility.svg").read_text()


@pytest.mark.slow
def test_claims_about_households_are_compared(county: Path, tmp_path: Path) -> None:
    """Who is singled out in the protected tables, and how often truly; the same blocks for every setting."""
    out, kept = tmp_path / "out", tmp_path / "kept"
    made = plan(tmp_path, "claims", "dhc-household", 'pick = "4:6"')
    good(compare(county, "--plan", made, "--keep", kept, "--out", out))
    found = measured(out)
    blocks = []
    for number, setting in enumerate(("nothing", "swap 50%")):
        folder = kept / f"{number:03d}s1" / "claims"
        claims, places = (pl.read_parquet(folder / f"{name}.parquet") for name in ("claims", "places"))
        blocks.append(places["block"].to_list())
        single = claims.filter(pl.col("m") == 1)
        truly = single.filter(pl.col("truth") == 1)
        assert found[setting, "claimed_places"]["value"] == single["block"].n_unique() / places.height
        assert found[setting, "singled_out_truly"]["value"] == truly["block"].n_unique() / places.height
        assert found[setting, "precision_claims"]["value"] == pytest.approx(truly.height / single.height)
    assert blocks[0] == blocks[1] and len(blocks[0]) == 6
    assert found["nothing", "precision_claims"]["value"] == 1 >= found["swap 50%", "precision_claims"]["value"]


@pytest.mark.parametrize(
    ("attack", "more", "settings", "pattern"),
    [
        ("house", "", "", "unknown attack 'house'; known: claims, occupancy, people"),
        ("occupancy", 'pick = "10:5"', "", "pick says which places claims are about"),
        ("claims", "", '\n[[setting]]\nname = "moved"\nprotect = "relocate"\nby = "sex"\nlambda = 3\n'
         "capacity = 20\nq = 1.0\n", "setting 'moved': protect relocate changes persons alone"),
    ],
)  # fmt: skip
def test_plans_that_cannot_work(
    county: Path, tmp_path: Path, attack: str, more: str, settings: str, pattern: str
) -> None:
    ended = compare(
        county, "--plan", plan(tmp_path, attack, "dhc-household", more, settings), "--out", tmp_path / "out"
    )
    assert ended.code == 2 and pattern in ended.err and ended.err.count("\n") == 1, ended.err
    assert not (tmp_path / "out").exists()


def test_what_an_attack_on_households_needs(county: Path, tmp_path: Path) -> None:
    made = plan(tmp_path, "occupancy", "subsidised-housing")
    words = ("--plan", made, "--out", tmp_path / "out", "--quiet")
    alone = tool("compare", "--truth", county / "cef.parquet", *words)
    assert alone.code == 2 and "--households: it is missing; the attack of plan occupancy" in alone.err
    none = compare(county, *words[:-1], "--properties", tmp_path / "none.csv")
    assert none.code == 2 and "--properties" in none.err and "there is no such file" in none.err
    other = plan(tmp_path, "occupancy", "dhc-household")
    ended = compare(county, "--plan", other, "--out", tmp_path / "out")
    assert ended.code == 2 and "says nothing of a second agency" in ended.err


@pytest.mark.parametrize("name", ["occupancy", "claims"])
def test_built_in_plans_attack_households(name: str) -> None:
    shown = good(tool("compare", "--show-plan", "--plan", name)).out
    assert f'attack = "{name}"' in shown and "swap 50%" in shown
