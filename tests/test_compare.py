"""Does `compare` say what the commands say? Plans, means and fronts against other ways, and one small county."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import stat
import time
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats
from scipy.special import expit

from glasshouse.assess.comparison import COST, MEASURES, RISK, front, summarised
from glasshouse.assess.rates import wilson
from glasshouse.commands.compare import _countable
from glasshouse.commands.compare_plan import Setting, known_plans, read_plan
from glasshouse.commands.protect.register import protection, protections
from glasshouse.commands.work.compare import folder_of
from glasshouse.errors import InputError
from glasshouse.report.description import Curves, value_of
from glasshouse.report.render import curves
from glasshouse.report.sections.comparison import risk_utility
from glasshouse.report.words import table
from tests.running import Ended, good, started, tool

RECORDS, TABLES = ([one.name for one in protections(of)] for of in ("records", "tables"))
DATA = ("measures.parquet", "summary.parquet", "front.parquet", "uses.parquet", "risk-utility.svg")


def refused(ended: Ended, pattern: str, out: Path | None = None) -> None:
    assert ended.code == 2 and "Traceback" not in ended.err, ended
    assert re.fullmatch(r"glasshouse: [^\n]*\n?", ended.err), ended.err
    assert re.search(pattern, ended.err), ended.err
    assert out is None or not out.exists()


# Means and intervals

Row = tuple[str, int, str, float | None, float | None, float | None, float | None]


def measures(*rows: Row, protect: str = "swap", kind: str = "risk") -> pl.DataFrame:
    """Rows of setting, seed, measure, value, low, high, baseline."""
    wide = [(s, protect, seed, kind, m, v, low, high, base, "higher") for s, seed, m, v, low, high, base in rows]
    return pl.DataFrame(wide, schema=MEASURES, orient="row")


def of(summary: pl.DataFrame, setting: str = "a", measure: str = "m") -> dict[str, Any]:
    return summary.row(by_predicate=(pl.col("setting") == setting) & (pl.col("measure") == measure), named=True)


@pytest.mark.parametrize("count", [2, 3, 7])
def test_the_mean_over_seeds_has_the_interval_of_student(count: int) -> None:
    values = np.random.default_rng(count).normal(20, 3, count)
    rows = [("a", s, "m", v, None, None, 0.1 * s) for s, v in enumerate(values)]
    found = of(summarised(measures(*rows, kind="use")))
    low, high = stats.t.interval(0.95, count - 1, loc=values.mean(), scale=stats.sem(values))
    assert found["seeds"] == count and found["value"] == pytest.approx(values.mean())
    assert (found["low"], found["high"]) == pytest.approx((low, high))
    assert found["baseline"] == pytest.approx(0.1 * (count - 1) / 2)


def test_one_seed_keeps_its_own_interval_and_shares_stay_shares() -> None:
    found = of(summarised(measures(("a", 1, "m", 0.4, 0.1, 0.8, 0.2))))
    assert (found["seeds"], found["value"], found["low"], found["high"], found["baseline"]) == (1, 0.4, 0.1, 0.8, 0.2)
    none = of(summarised(measures(("a", 1, "m", 7.5, None, None, None))))
    assert (none["value"], none["low"], none["high"], none["baseline"]) == (7.5, None, None, None)
    near = of(summarised(measures(("a", 1, "m", 0.02, 0.0, 0.1, 0), ("a", 2, "m", 0.3, 0.2, 0.4, 0))))
    assert near["low"] == 0 and 0.3 < near["high"] <= 1
    far = of(summarised(measures(("a", 1, "m", 0.99, 0.9, 1.0, 0), ("a", 2, "m", 0.6, 0.5, 0.7, 0))))
    assert far["high"] == 1 and 0 <= far["low"] < 0.6
    twice = ("a", 1, "m", 0.9, None, None, 0), ("a", 2, "m", 1.4, None, None, 0)
    over = of(summarised(measures(*twice, kind="use")))
    assert over["high"] > 1.4  # an error may be more than everything


def test_settings_measures_and_missing_values_stay_apart_and_in_order() -> None:
    rows: list[Row] = [
        ("b", 1, "x", 1.0, None, None, None), ("a", 1, "x", 2.0, None, None, None),
        ("b", 2, "x", 3.0, None, None, None), ("b", 1, "y", None, None, None, None),
        ("a", 2, "x", None, None, None, None),
    ]  # fmt: skip
    found = summarised(measures(*rows))
    assert found.select("setting", "measure", "seeds", "value").rows() == [
        ("b", "x", 2, 2.0), ("a", "x", 1, 2.0), ("b", "y", 0, None),
    ]  # fmt: skip
    empty = summarised(measures())
    assert empty.is_empty() and front(empty).is_empty()


def test_what_is_no_share_is_not_clipped() -> None:
    """0.9 and 0.5 percentage points, records or units of rho: 1 is no limit for them."""
    twice = ("a", 1, "m", 0.9, None, None, None), ("a", 2, "m", 0.5, None, None, None)
    found = of(summarised(measures(*twice, kind="use")))
    assert found["high"] == pytest.approx(stats.t.interval(0.95, 1, loc=0.7, scale=0.2)[1])
    assert of(summarised(measures(*twice)))["high"] == 1  # measures of risk are shares, with or without an interval


def test_the_same_seed_twice_is_one_seed() -> None:
    twice = [("a", seed, "m", value, 0.0, 1.0, None) for seed, value in ((1, 0.2), (2, 0.4), (1, 0.2), (2, 0.4))]
    once = of(summarised(measures(*twice[:2])))
    try:
        found = of(summarised(measures(*twice)))
    except InputError:
        return
    assert (found["seeds"], found["low"], found["high"]) == (once["seeds"], once["low"], once["high"])


# The front


def points(*pairs: tuple[float | None, float | None]) -> pl.DataFrame:
    rows: list[Row] = []
    for number, (risk, cost) in enumerate(pairs):
        rows += [(f"s{number}", 1, RISK, risk, None, None, 0.1), (f"s{number}", 1, COST, cost, None, None, None)]
    return front(summarised(measures(*rows)))


@pytest.mark.parametrize("seed", range(20))
def test_dominated_as_by_brute_force(seed: int) -> None:
    """On a coarse grid there are ties in one, and in both."""
    rng = np.random.default_rng(seed)
    pairs = [(float(r), float(c)) for r, c in rng.integers(0, 6, (int(rng.integers(1, 25)), 2)) / 5]
    found = points(*pairs)
    assert found["setting"].to_list() == [f"s{number}" for number in range(len(pairs))]
    for (risk, cost), said in zip(pairs, found["dominated"], strict=True):
        better = [r <= risk and c <= cost and (r < risk or c < cost) for r, c in pairs]
        assert said == any(better), (risk, cost)
    assert not found["dominated"].all()
    kept = found.filter(~pl.col("dominated")).unique(["risk", "cost"]).sort("cost")
    assert all(a > b for a, b in pairwise(kept["risk"]))  # less risk always costs more


def test_ties_and_missing_measures() -> None:
    assert points((0.5, 0.5), (0.5, 0.5))["dominated"].to_list() == [False, False]
    assert points((0.5, 0.5), (0.5, 0.4), (0.4, 0.5))["dominated"].to_list() == [True, False, False]
    assert points((0.5, None), (None, 0.5), (0.9, 0.9))["setting"].to_list() == ["s2"]
    only = front(summarised(measures(("a", 1, RISK, 0.5, None, None, None))))
    assert only.is_empty() and "dominated" in only.columns
    other = front(
        summarised(measures(("a", 1, "m", 3.0, 2.0, 4.0, 1.0), ("a", 1, "n", 5.0, None, None, None))), "m", "n"
    )
    assert other.select("risk", "cost", "risk_low", "risk_high", "baseline").rows() == [(3.0, 5.0, 2.0, 4.0, 1.0)]


def test_one_name_for_two_protections_does_not_mix_their_measures() -> None:
    """As two folders side by side may have it: either refused, or a point for each with its own risk and cost."""
    one = measures(("a", 1, RISK, 0.1, None, None, None), ("a", 1, COST, 0.9, None, None, None), protect="swap")
    two = measures(("a", 1, RISK, 0.8, None, None, None), ("a", 1, COST, 0.2, None, None, None), protect="noise")
    try:
        found = front(summarised(pl.concat([one, two])))
    except InputError:
        return
    assert set(found.select("protect", "risk", "cost").rows()) == {("swap", 0.1, 0.9), ("noise", 0.8, 0.2)}


def test_the_chart_has_every_setting_the_baseline_and_hollow_points() -> None:
    found = points((0.5, 0.5), (0.9, 0.1), (0.9, 0.9))
    (drawn,) = risk_utility("T", found, "block").pictures
    assert isinstance(drawn, Curves) and [row[0] for row in drawn.table.rows] == ["s0", "s1", "s2"]
    (spec,) = (curves.spec(drawn, drawn.table.rows, narrow=False),)
    line = next(layer for layer in spec["layer"] if layer["mark"]["type"] == "line")
    front_at = [value_of(row[2]) for row in (drawn.table.rows[1], drawn.table.rows[0])]
    assert [point["x"] for point in line["data"]["values"]] == front_at  # from left to right
    looks = {one.label: one.look for one in drawn.series if one.label}
    assert looks["guessing from the same release"] == "tick" and looks["another is better in both"] == "ring"
    beaten = [row[4] is not None for row in drawn.table.rows]
    assert beaten == found["dominated"].to_list() and all(row[5] is not None for row in drawn.table.rows)
    assert set(table("protections")) == {"none", *RECORDS, *TABLES}  # every protection has a name


# Plans

HEAD = 'scenario = "sf1-person"\nattackers = ["attacker-perfect"]\n'
ONE = '[[setting]]\nname = "a"\n'
SWAP = '[[setting]]\nname = "s"\nprotect = "swap"\nrate = 0.1\n'
TOPDOWN = '[[setting]]\nname = "t"\nprotect = "topdown"\nscenario = "mdf-person"\nbudget = "persons-2020"\n'


@pytest.mark.parametrize("name", known_plans())
def test_built_in_plans(name: str) -> None:
    plan = read_plan(name)
    assert plan.name == name and plan.title and plan.settings and len(set(plan.seeds)) == len(plan.seeds)
    assert {one.protect for one in plan.settings} <= {"", *RECORDS, *TABLES}
    assert any(not one.protect for one in plan.settings)  # what no protection does stands beside
    shown = good(tool("compare", "--show-plan", "--plan", name))
    assert all(one.name in shown.out for one in plan.settings) and shown.err == ""


def test_the_standard_plan_is_shown_unasked_and_others_are_refused(tmp_path: Path) -> None:
    assert good(tool("compare", "--show-plan")).out == good(tool("compare", "--show-plan", "--plan", "standard")).out
    refused(tool("compare", "--show-plan", "--plan", "nothing"), "unknown plan 'nothing'; known: .*standard")
    refused(tool("compare", "--show-plan", "--plan", "no.toml"), "no.toml: there is no such file")
    refused(tool("compare", "--show-plan", "--plan", tmp_path), "unknown plan")


BAD = {
    "not toml": ("scenario = \n", r"not valid TOML"),
    "unknown key": (HEAD + "speed = 3\n" + ONE, r"unknown key 'speed'; known: attack, attackers, by, pick, scenario"),
    "elements of households": (HEAD + 'attack = "claims"\nby = "sex"\n' + ONE, r"by counts elements of persons"),
    "wrong type": ("scenario = 3\n" + ONE, r"'scenario' is a int; expected a str"),
    "one table": (HEAD + '[setting]\nname = "a"\n', r"'setting' is a dict; expected a list"),
    "no scenario": (ONE, r"'scenario' is missing"),
    "no settings": (HEAD, r"'setting' is missing; expected scenario and \[\[setting\]\]"),
    "no name": (HEAD + '[[setting]]\nprotect = "swap"\n', r"\[\[setting\]\] without a name; expected name ="),
    "blank name": (HEAD + '[[setting]]\nname = " "\n', r"without a name"),
    "number as name": (HEAD + "[[setting]]\nname = 3\n", r"without a name"),
    "unknown protection": (
        HEAD + ONE + 'protect = "sawp"\n',
        r"setting 'a': unknown protection 'sawp'; known: cellkey, noise, relocate, round, suppress, swap, topdown",
    ),
    "twice": (HEAD + ONE + SWAP + ONE, r"two settings are called 'a'; expected different names"),
    "unknown match": (HEAD + TOPDOWN + 'match = "x"\n' + SWAP, r"unknown setting 'x'; known: s, t"),
    "match of a swap": (HEAD + SWAP + 'match = "t"\n' + TOPDOWN, r"setting 's': match is for topdown"),
    "match of a table": (
        HEAD + TOPDOWN + 'match = "n"\n[[setting]]\nname = "n"\nprotect = "noise"\nrho = 1\n', r"match is for topdown",
    ),
    "match of a match": (
        HEAD + TOPDOWN + 'match = "u"\n' + TOPDOWN.replace('"t"', '"u"') + 'match = "s"\n' + SWAP, r"has none itself",
    ),
    "options of nothing": (HEAD + ONE + "rate = 0.1\n", r"options \(rate\) but no protection; expected protect ="),
    "a table as option": (HEAD + SWAP + "nearest = { a = 1 }\n", r"--nearest \{'a': 1\}: expected a whole number"),
    "a date as option": (HEAD + SWAP + "nearest = 2020-01-01\n", r"nearest' is the date or time 2020-01-01"),
    "capitals": (HEAD + SWAP + "Rate = 1\n", r"unknown option of protect swap 'Rate'; known: coordinates, "),
    "a text as number": (HEAD + SWAP + 'nearest = "many"\n', r"--nearest many: expected a whole number"),
    "a number as switch": (HEAD + TOPDOWN + "bottom-up = 1\n", r"--bottom-up 1: expected True or False"),
    "no such choice": (HEAD + SWAP + 'group_quarters = "move"\n', r"known: keep, synthesize"),
    "of another protection": (HEAD + SWAP + "base = 3\n", r"unknown option of protect swap 'base'"),
    "what must be given": (HEAD + SWAP.replace("rate = 0.1\n", ""), r"setting 's': 'rate' is missing: The share"),
    "no seeds": ("seeds = []\n" + HEAD + ONE, r"seeds is \[\]; expected different whole numbers"),
    "equal seeds": ("seeds = [1, 1]\n" + HEAD + ONE, r"seeds is \[1, 1\]; expected different whole numbers"),
    "texts as seeds": ('seeds = ["1"]\n' + HEAD + ONE, r"expected different whole numbers"),
    "truths as seeds": ("seeds = [true]\n" + HEAD + ONE, r"expected different whole numbers"),
    **{
        f"fixed {key}": (HEAD + SWAP + f'{key} = "x"\n', rf"setting 's': '{key}' cannot be set here")
        for key in ("out", "seed", "overwrite", "log", "households-out")
    },
    **{
        f"unknown {key}": (HEAD + SWAP + f'{key} = "x"\n', rf"setting 's': unknown option of protect swap '{key}'")
        for key in ("json", "quiet", "verbose", "values", "measurements", "secure")
    },
    "noise that cannot be drawn again": (
        HEAD + TOPDOWN + "secure = true\n", r"setting 't': 'secure' cannot be set here; a comparison says it itself",
    ),
}  # fmt: skip


@pytest.mark.parametrize("why", BAD)
def test_bad_plans_get_one_clear_line(why: str, tmp_path: Path) -> None:
    text, pattern = BAD[why]
    plan, out = tmp_path / "mine.toml", tmp_path / "out"
    plan.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=pattern):
        read_plan(str(plan))
    refused(tool("compare", tmp_path, "--plan", plan, "--out", out), pattern, out)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(HEAD + "setting = []\n", id="an empty list of settings"),
        pytest.param("seeds = [-1]\n" + HEAD + ONE, id="a negative seed"),
        pytest.param(HEAD + TOPDOWN + 'match = "a"\n' + ONE, id="match of nothing"),
        pytest.param(
            HEAD + TOPDOWN.replace('budget = "persons-2020"\n', 'match = "s"\n') + SWAP, id="match without a budget"
        ),
        pytest.param(HEAD + SWAP + "help = true\n", id="help as an option"),
        pytest.param((HEAD + 'title = "caf\xe9"\n' + ONE).encode("latin-1"), id="not UTF-8"),
    ],
)
def test_plans_that_cannot_work_are_refused_too(text: str | bytes, tmp_path: Path) -> None:
    plan = tmp_path / "mine.toml"
    plan.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError):
        read_plan(str(plan))


def test_options_are_keywords_of_the_function(tmp_path: Path) -> None:
    """As on a command line, in the form that the function declares."""
    text = HEAD + TOPDOWN + (
        'rho = 4\nbottom_up = true\nhold = ["total@county", "total@state"]\nplaces = "{blocks}"\n'
        '[[setting]]\nname = "r"\nprotect = "relocate"\nby = "a, b"\nlambda = 2\ncapacity = 20\n'
        '[[setting]]\nname = "h"\nprotect = "suppress"\ntables = ["P1", "P12"]\n'
    )  # fmt: skip
    (tmp_path / "plan.toml").write_text(text, encoding="utf-8")
    plan, where = read_plan(str(tmp_path / "plan.toml")), tmp_path / "blocks.parquet"
    asked = {
        "scenario": "mdf-person", "budget": "persons-2020", "rho": Fraction(4), "bottom_up": True,
        "hold": ("total@county", "total@state"), "seed": 3,
    }  # fmt: skip
    assert plan.setting("t").keywords(where, 3) == {**asked, "places": where}
    assert plan.setting("t").keywords(None, 3) == {**asked, "places": None}
    assert plan.setting("r").keywords(None, 1) == {"by": ("a", "b"), "at_risk": 2, "capacity": "20", "seed": 1}
    assert plan.setting("h").keywords(None, 1) == {"only": ("P1", "P12")}  # it leaves nothing to chance
    settings = [Setting("a", protection(one), {}) for one in (*RECORDS, *TABLES)]
    assert [one.of_tables for one in settings] == [False] * 3 + [True] * 4
    assert [one.protect for one in settings if one.printed] == ["noise", "round", "cellkey"]


# The command, on a few blocks of two tracts and few tables


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A county of 18 blocks, and a scenario with four of the tables of sf1-person."""
    made = tmp_path_factory.mktemp("compare")
    good(tool("synthesize", "--persons", 5000, "--seed", 2, "--out", made / "whole", "--quiet"))
    people = pl.read_parquet(made / "whole" / "cef.parquet").with_columns(tract=pl.col("block").str.head(11))
    sizes = people.group_by("tract", "block").len().sort("tract", "len", "block")
    fair = sizes.filter(pl.col("len").is_between(8, 60)).group_by("tract", maintain_order=True)
    some = fair.agg(pl.col("block").gather_every(2).head(8)).explode("block")
    assert some["tract"].n_unique() == 2
    (made / "county").mkdir()
    for name in ("cef", "attacker-perfect", "commercial", "blocks"):
        frame = pl.read_parquet(made / "whole" / f"{name}.parquet")
        frame.filter(pl.col("block").is_in(some["block"].to_list())).write_parquet(made / "county" / f"{name}.parquet")
    from glasshouse.commands.compare_plan import resources

    source = Path(str(resources.files("glasshouse") / "scenarios" / "data" / "sf1-person"))
    before, tables = (source / "scenario.toml").read_text(encoding="utf-8").split("[table]\n")
    few = [line for line in tables.splitlines() if line.startswith(("P1 ", "P8 ", "P12 ", "PCT12 "))]
    assert len(few) == 4
    (made / "few").mkdir()
    text = before + "[table]\n" + re.sub(r', iterations = "\w+"', "", "\n".join(few)) + "\n"
    (made / "few" / "scenario.toml").write_text(text, encoding="utf-8")
    shutil.copy(source / "catalogue.csv", made / "few")
    (made / "small.toml").write_text(plan_text(made), encoding="utf-8")
    return made


def plan_text(made: Path, more: str = "", seeds: str = "[1, 2]") -> str:
    return f"""
title = "Small"
scenario = "{made / "few"}"
seeds = {seeds}
by = "hispanic,white"
attackers = ["attacker-perfect", "commercial"]
[[setting]]
name = "swap, a third"
protect = "swap"
rate = 0.33
coordinates = "{{blocks}}"
[[setting]]
name = "noise"
protect = "noise"
rho = 4
[[setting]]
name = "too much"
protect = "swap"
rate = 2
{more}"""


@pytest.fixture(scope="module")
def words(folder: Path) -> list[Any]:
    return ["compare", folder / "county", "--plan", folder / "small.toml"]


@pytest.fixture(scope="module")
def compared(folder: Path, words: list[Any]) -> tuple[Path, Path, Ended]:
    """The comparison by one worker, with the files of every run, and what was said."""
    out, kept = folder / "compared", folder / "kept"
    return out, kept, good(tool(*words, "--workers", 1, "--out", out, "--keep", kept), 1)


def value(out: Path, setting: str, seed: int, measure: str) -> dict[str, Any]:
    rows = pl.read_parquet(out / "measures.parquet")
    here = (pl.col("setting") == setting) & (pl.col("seed") == seed) & (pl.col("measure") == measure)
    return rows.row(by_predicate=here, named=True)


def test_what_is_refused_is_said_and_the_rest_done(compared: tuple[Path, Path, Ended]) -> None:
    """Convention 22."""
    out, _, ended = compared
    for seed in (1, 2):
        assert f"'too much', seed {seed} is left out" in ended.err
    assert "--rate 2: expected" in ended.err and "swap, a third" not in ended.err
    rows = pl.read_parquet(out / "measures.parquet")
    assert rows.schema == MEASURES
    assert set(rows.select("setting", "protect", "seed").rows()) == {
        (name, protect, seed)
        for name, protect in (("swap, a third", "swap"), ("noise", "noise")) for seed in (1, 2)
    }  # fmt: skip
    assert not rows.select("setting", "seed", "measure").is_duplicated().any()
    told = json.loads((out / "manifest.json").read_text())
    assert told["complete"] and set(told["counts"]["refused"]) == {"'too much', seed 1", "'too much', seed 2"}
    assert told["outputs"].keys() == set(DATA) and told["counts"]["runs"] == 6
    lines = ended.out.splitlines()
    assert [line.split("  ")[0].strip() for line in lines[1:3]] == ["swap, a third", "noise"]
    assert lines[-1] == f"-> {out}" and any(line.startswith("guessing from the same release finds") for line in lines)


def test_every_number_is_that_of_the_files_kept(compared: tuple[Path, Path, Ended]) -> None:
    """In plain polars, from what the commands wrote."""
    out, kept, _ = compared
    for number, setting in enumerate(("swap, a third", "noise")):
        for seed in (1, 2):
            folder = kept / f"{number:03d}s{seed}"
            rates = pl.read_parquet(folder / "linked" / "rates.parquet").filter(pl.col("band") == "all")
            for attacker, after in (("attacker-perfect", ""), ("commercial", " (commercial)")):
                for group, word in (("nonmodal-unique", "exposed"), ("all", "all")):
                    some = rates.filter((pl.col("attacker") == attacker) & (pl.col("group") == group))
                    row = {one["data"]: one for one in some.iter_rows(named=True)}
                    mine = row["rebuilt"]
                    said = value(out, setting, seed, f"found_{word}{after}")
                    assert said["value"] == mine["confirmed"] / mine["population"]
                    low, high = map(float, wilson(mine["confirmed"], mine["population"]))
                    assert (said["low"], said["high"]) == (low, high)
                    guess = max(row["MDG"]["confirmed"], row["PRG"]["confirmed"]) / mine["population"]
                    assert said["baseline"] == guess and said["low"] <= said["value"] <= said["high"]
                    said = value(out, setting, seed, f"precision_{word}{after}")
                    assert said["value"] == mine["confirmed"] / mine["putative"]
                    assert (said["low"], said["high"], said["baseline"]) == (
                        mine["low"],
                        mine["high"],
                        mine["baseline"],
                    )
            agreement = pl.read_parquet(folder / "linked" / "agreement.parquet")
            here = (pl.col("data") == "rebuilt") & (pl.col("with") == "CEF") & (pl.col("band") == "all")
            row = agreement.row(by_predicate=here & (pl.col("group") == "all"), named=True)
            assert value(out, setting, seed, "agreement")["value"] == row["binned"] / row["population"]
            if setting == "noise":
                continue
            places = pl.read_parquet(folder / "solvar" / "places.parquet").filter(pl.col("population") > 0)
            people = places["population"].sum()
            assert value(out, setting, seed, "certain")["value"] == places["certain"].sum() / people
            mean = (places["solvar"] * places["population"]).sum() / people
            assert value(out, setting, seed, "solvar")["value"] == pytest.approx(mean)
            zero = (places["solvar_upper"] == 0).mean()
            assert value(out, setting, seed, "blocks_certain")["value"] == pytest.approx(zero)


def test_elements_are_counted_as_paper_003_has_them(compared: tuple[Path, Path, Ended], folder: Path) -> None:
    """tau, phi and U of the swapped file by a plain recount; protections of tables release no records to count."""
    out, kept, _ = compared
    keys = ["block", "hispanic", "white"]
    x = Counter(pl.read_parquet(folder / "county" / "cef.parquet").select(keys).iter_rows())
    cells = int(np.prod([len({one[at] for one in x}) for at in range(3)]))
    for seed in (1, 2):
        (path,) = kept.glob(f"*s{seed}/protected.parquet")
        y = Counter(pl.read_parquet(path).select(keys).iter_rows())
        tau = sum(min(x[one], y[one]) / x[one] / y[one] for one in x if y[one]) / cells
        phi = sum(x[one] == y[one] == 1 for one in x) / cells
        useful = 1 - sum(abs(x[one] - y[one]) / max(x[one], 1) for one in {*x, *y}) / cells
        found = [value(out, "swap, a third", seed, name) for name in ("tau", "phi", "element_utility")]
        assert [one["value"] for one in found] == pytest.approx([tau, phi, useful], abs=1e-12)
        assert found[0]["baseline"] == pytest.approx(sum(1 / many for many in x.values()) / cells)
        assert found[0]["value"] < found[0]["baseline"] and found[2]["worse"] == "lower"
    assert "tau" not in pl.read_parquet(out / "measures.parquet").filter(setting="noise")["measure"].to_list()


def test_columns_of_elements_must_be_there(folder: Path, tmp_path: Path) -> None:
    """A plan of one's own is refused; those that come with us fit other files too, and say what they leave out."""
    (tmp_path / "mine.toml").write_text(plan_text(folder).replace('by = "hispanic,white"', 'by = "eyes"'))
    words = ["compare", folder / "county", "--plan", tmp_path / "mine.toml", "--out", tmp_path / "out"]
    refused(tool(*words), r"mine.toml: by: cef.parquet has no column 'eyes'; found: ", tmp_path / "out")
    (tmp_path / "mine.toml").write_text(plan_text(folder).replace("hispanic,white", "white,white"))
    refused(tool(*words), "by names a column twice", tmp_path / "out")
    plan = replace(read_plan("standard"), by=("eyes",))
    fitted, notes = _countable(plan, folder / "county" / "cef.parquet")
    assert fitted.by == () and notes == [
        "note: tau, phi and the utility of elements were not counted: cef.parquet has no column 'eyes'"
    ]


def test_contradictory_tables_have_no_certainty(compared: tuple[Path, Path, Ended]) -> None:
    """Noise: the nearest records, and nothing is called certain."""
    out, kept, _ = compared
    names = set(pl.read_parquet(out / "measures.parquet").filter(pl.col("setting") == "noise")["measure"])
    assert not names & {"certain", "solvar", "blocks_certain"} and {"found_exposed", "infer_alone", "rho"} <= names
    places = pl.read_parquet(kept / "001s1" / "rebuilt" / "places.parquet")
    assert "nearest" in set(places["method"]) and places["error"].sum() > 0
    assert not (kept / "001s1" / "solvar").exists()
    assert "-" in next(line for line in compared[2].out.splitlines() if line.startswith("noise")).split()


def numbers(path: Path, level: str) -> pl.DataFrame:
    """The numbers of a level: those published there, and those of blocks added up."""
    rows = pl.read_parquet(path).select("geoid", "variable", "value", at="level")
    digits = {"block": 15, "tract": 11}[level]
    some = rows.filter(pl.col("at").is_in(["block", level])).with_columns(pl.col("geoid").str.head(digits))
    return some.group_by("geoid", "variable").agg(pl.col("value").sum())


def relative_error(exact: Path, other: Path, level: str) -> float:
    """All that the numbers of a level are off, by all that they count."""
    at = ["geoid", "variable"]
    both = numbers(exact, level).join(numbers(other, level), on=at, how="full", coalesce=True, suffix="_other")
    both = both.fill_null(0)
    return float((both["value"] - both["value_other"]).abs().sum() / both["value"].sum())


def test_use_is_the_error_of_the_tables(compared: tuple[Path, Path, Ended]) -> None:
    out, kept, _ = compared
    exact = kept / "001s1" / "exact.parquet"
    for number, setting in enumerate(("swap, a third", "noise")):
        for level in ("block", "tract"):
            wanted = relative_error(exact, kept / f"{number:03d}s2" / "tables.parquet", level)
            assert value(out, setting, 2, f"table_error_{level}")["value"] == pytest.approx(wanted) and wanted > 0
    uses = pl.read_parquet(out / "uses.parquet").filter(pl.col("table").is_null(), pl.col("level") == "block")
    relative = uses.filter(pl.col("measure") == "relative error")
    assert relative.height == 4
    for setting, seed, found in relative.select("setting", "seed", "value").iter_rows():
        assert found == value(out, setting, seed, "table_error_block")["value"]


def test_the_commands_by_hand_write_the_same_files(compared: tuple[Path, Path, Ended], folder: Path,
                                                   tmp_path: Path) -> None:  # fmt: skip
    _, kept, _ = compared
    county, scenario = folder / "county", ["--scenario", folder / "few", "--quiet"]
    records, tables = tmp_path / "records.parquet", tmp_path / "tables.parquet"
    swap = ["protect", "swap", county / "cef.parquet", "--rate", 0.33, "--coordinates", county / "blocks.parquet"]
    good(tool(*swap, "--seed", 2, "--out", records, "--quiet"))
    good(tool("tabulate", records, *scenario, "--out", tables))
    attack = [tables, *scenario, "--seed", 2, "--workers", 1]
    good(tool("reconstruct", *attack, "--out", tmp_path / "rebuilt"))
    good(tool("vary", *attack, "--out", tmp_path / "solvar"))
    lists = [f"--attacker={name}={county / name}.parquet" for name in ("attacker-perfect", "commercial")]
    good(tool(
        "reidentify", f"rebuilt={tmp_path / 'rebuilt'}", "--vary", tmp_path / "solvar", "--truth",
        county / "cef.parquet", "--published", records, *lists, *scenario, "--seed", 2, "--workers", 1,
        "--out", tmp_path / "linked",
    ))  # fmt: skip
    names = ("rebuilt/records.parquet", "rebuilt/places.parquet", "solvar/places.parquet", "linked/rates.parquet",
             "linked/agreement.parquet")  # fmt: skip
    for name in names:
        assert (tmp_path / name).read_bytes() == (kept / "000s2" / name).read_bytes(), name
    assert pl.read_parquet(records).equals(pl.read_parquet(kept / "000s2" / "protected.parquet"))


def test_infer_is_what_many_draws_of_the_noise_give(compared: tuple[Path, Path, Ended]) -> None:
    """An adversary who knows everyone else; one person alone in every cell; prior 1/2 (paper 001, eq. 3.1)."""
    out, kept, _ = compared
    told = json.loads((kept / "001s1" / "tables.parquet.manifest.json").read_text())["counts"]
    rhos = [float(np.divide(*map(int, f"{rho}/1".split("/")[:2]))) for rho in told["ledger"].values()]
    assert told["neighbours"] == "add-remove" and sum(rhos) == pytest.approx(4)
    assert value(out, "noise", 1, "rho")["value"] == pytest.approx(4)
    rng, grid, odds = np.random.default_rng(1), np.arange(-80, 81), np.zeros(200_000)
    for rho in rhos:
        chance = np.exp(-(grid**2) * rho)  # variance 1 / (2 rho)
        odds += rho * (2 * (1 + rng.choice(grid, len(odds), p=chance / chance.sum())) - 1)
    said = value(out, "noise", 1, "infer_alone")
    assert said["value"] == pytest.approx(float(expit(odds).mean()), abs=0.003)
    assert said["baseline"] == 0.5 < said["value"] < 1


def test_summary_and_front_follow_from_the_measures(compared: tuple[Path, Path, Ended]) -> None:
    out, _, ended = compared
    rows, summary = pl.read_parquet(out / "measures.parquet"), pl.read_parquet(out / "summary.parquet")
    assert summary.equals(summarised(rows)) and pl.read_parquet(out / "front.parquet").equals(front(summary))
    means = dict(rows.filter(pl.col("measure") == RISK).group_by("setting").agg(pl.col("value").mean()).rows())
    for line in ended.out.splitlines()[1:3]:
        name, *cells = re.split(r"  +", line.strip())
        assert cells[0] == f"{means[name]:.1%}"
    beaten = dict(pl.read_parquet(out / "front.parquet").select("setting", "dominated").rows())
    for name, is_beaten in beaten.items():
        line = next(line for line in ended.out.splitlines() if line.startswith(name))
        assert ("another is better in both" in line) == is_beaten != ("on the front" in line)
    drawn = (out / "risk-utility.svg").read_text(encoding="utf-8")
    assert all(name in drawn for name in beaten) and "guessing" in drawn and "Small" in drawn


def test_files_are_private_and_hold_nothing_of_a_record(compared: tuple[Path, Path, Ended], folder: Path) -> None:
    """Convention 9. The files that a run keeps do hold records, and are private too."""
    out, kept, ended = compared
    for top in (out, kept):
        for path in (top, *top.rglob("*")):
            assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    assert {path.name for path in out.iterdir()} == {*DATA, "manifest.json"}  # no ledger, nothing half written
    people = pl.read_parquet(folder / "county" / "cef.parquet").select("person_id", "household_id").head(50)
    ids = [str(one) for row in people.rows() for one in row if len(str(one)) > 6]
    texts = [ended.out, ended.err, *((out / name).read_text() for name in ("manifest.json", "risk-utility.svg"))]
    for name in DATA[:-1]:
        texts += [str(cell) for row in pl.read_parquet(out / name).iter_rows() for cell in row]
    for text in texts:
        assert not re.search(r"(?<![\d.])99001\d{6}", text)  # neither a tract nor a block
        assert not [one for one in ids if one in text]


def test_again_it_is_up_to_date_and_another_plan_is_refused(
    compared: tuple[Path, Path, Ended], words: list[Any], folder: Path
) -> None:
    out, _, _ = compared
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in out.iterdir()}
    ended = good(tool(*words, "--workers", 2, "--out", out), 1)
    assert "up to date" in ended.out and "'too much', seed 1 is left out" in ended.err
    said = good(tool(*words, "--out", out, "--json"), 1).json
    assert said["unchanged"] and set(said["refused"]) == {"'too much', seed 1", "'too much', seed 2"}
    refused(tool(*words, "--out", out, "--seeds", 1), "another run.*--overwrite")
    refused(tool(*words, "--out", out, "--setting", "noise"), "another run.*--overwrite")
    refused(tool(*words, "--out", folder / "county"), "input of this command")
    assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in out.iterdir()} == before


@pytest.mark.slow
def test_two_workers_say_the_same_as_one(compared: tuple[Path, Path, Ended], words: list[Any], tmp_path: Path) -> None:
    out = tmp_path / "out"
    good(tool(*words, "--setting", "noise", "--workers", 2, "--out", out, "--quiet"))
    for name in ("measures.parquet", "uses.parquet", "summary.parquet"):
        wanted = pl.read_parquet(compared[0] / name).filter(pl.col("setting") == "noise")
        assert pl.read_parquet(out / name).equals(wanted), name


@pytest.mark.slow
def test_killed_and_gone_on_with_by_two_workers(
    compared: tuple[Path, Path, Ended], words: list[Any], folder: Path, tmp_path: Path
) -> None:
    """Conventions 8, 20 and 21: the same bytes as one worker's who was left in peace."""
    out = tmp_path / "out"
    command = [*words, "--workers", 2, "--out", out, "--quiet"]
    with started("-m", "glasshouse", *command) as process:
        end = time.monotonic() + 120
        while not list(out.glob("ledger/*.unit")):
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    done = len(list(out.glob("ledger/*.unit")))
    assert 0 < done < 6 and not (out / "manifest.json").exists()
    status = good(tool("status", out, "--json")).json
    assert (status["state"], status["finished"], status["units"]) == ("stopped", done, 6)
    good(tool(*command), 1)
    for name in DATA:
        assert (out / name).read_bytes() == (compared[0] / name).read_bytes(), name
    assert {path.name for path in out.iterdir()} == {*DATA, "manifest.json"}


# Side by side


def halves(out: Path, near: Path, column: str, first: Any) -> list[Path]:
    rows, made = pl.read_parquet(out / "measures.parquet"), []
    for name, some in (("one", pl.col(column) == first), ("two", pl.col(column) != first)):
        (near / name).mkdir()
        rows.filter(some).write_parquet(near / name / "measures.parquet")
        made.append(near / name)
    return made


@pytest.mark.parametrize(("column", "first"), [("seed", 1), ("setting", "noise")])
def test_side_by_side_is_the_whole(column: str, first: Any, compared: tuple[Path, Path, Ended],
                                   tmp_path: Path) -> None:  # fmt: skip
    """Seeds, or settings, done apart and put together say the same as done at once."""
    out = tmp_path / "out"
    folders = halves(compared[0], tmp_path, column, first)
    said = good(tool("compare", *folders, "--out", out, "--json")).json
    whole = pl.read_parquet(compared[0] / "summary.parquet")
    key = ["setting", "measure"]
    assert pl.read_parquet(out / "summary.parquet").sort(key).equals(whole.sort(key))
    points_ = pl.read_parquet(compared[0] / "front.parquet").sort("setting")
    assert pl.read_parquet(out / "front.parquet").sort("setting").equals(points_)
    assert set(said["front"]) == set(points_.filter(~pl.col("dominated"))["setting"])
    assert "up to date" in good(tool("compare", *folders, "--out", out)).out
    assert stat.S_IMODE(out.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in out.iterdir()} == {0o600}


def test_the_same_result_twice_says_no_more_than_once(compared: tuple[Path, Path, Ended], tmp_path: Path) -> None:
    ended = tool("compare", compared[0], compared[0], "--out", tmp_path / "out", "--quiet")
    if ended.code == 2:
        return
    columns = ["setting", "measure", "seeds", "low", "high"]
    found, once = (pl.read_parquet(at / "summary.parquet").select(columns) for at in (tmp_path / "out", compared[0]))
    assert found.equals(once)


def test_folders_that_are_not_of_compare(compared: tuple[Path, Path, Ended], folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    refused(tool("compare", compared[0], folder / "county", "--out", out), "not all of them of compare", out)
    refused(tool("compare", tmp_path, "--out", out), r"no cef.parquet and no measures.parquet there; expected", out)
    refused(tool("compare", tmp_path / "none", "--out", out), "none: .*expected a folder", out)
    (tmp_path / "old").mkdir()
    pl.read_parquet(compared[0] / "measures.parquet").drop("worse").write_parquet(tmp_path / "old" / "measures.parquet")
    refused(tool("compare", tmp_path / "old", compared[0], "--out", out), "measures.parquet: other columns", out)


# What is asked for


def test_missing_and_wrong_arguments(words: list[Any], folder: Path, tmp_path: Path) -> None:
    out, county = tmp_path / "out", folder / "county"
    plan = ["--plan", folder / "small.toml"]
    refused(tool(*words), "--out is missing", out)
    refused(tool("compare", *plan, "--out", out), "nothing to compare on: .*--truth", out)
    truth = ["compare", "--truth", county / "cef.parquet", *plan, "--out", out]
    refused(tool(*truth), "--attacker is missing", out)
    refused(tool(*truth, "--attacker", tmp_path / "no.parquet"), "no.parquet: there is no such file", out)
    refused(tool("compare", "--truth", tmp_path / "no.csv", *truth[3:], "--attacker", county / "commercial.parquet"),
            "no.csv: there is no such file", out)  # fmt: skip
    refused(tool(*words, "--out", out, "--setting", "swap"), "unknown setting 'swap'; known: noise, swap, a third", out)
    refused(tool(*words, "--out", out, "--blocks", tmp_path / "b.csv"), "b.csv: there is no such file", out)
    assert tool(*words, "--out", out, "--seeds", -1).code == 2 and not out.exists()
    (tmp_path / "file").write_text("mine")
    refused(tool(*words, "--out", tmp_path / "file"), "is a file; expected a folder")
    assert (tmp_path / "file").read_text() == "mine"
    said = good(tool(*words, "--setting", "too much", "--seeds", 1, "--json", "--workers", 1), 1).json
    assert said["runs"] == 1 and said["out"] is None and said["settings"] == 0 and said["front"] == []


def test_a_setting_asked_for_twice_is_done_once(words: list[Any], tmp_path: Path) -> None:
    again = ["--setting", "too much", "--setting", "too much"]
    ended = tool(*words, *again, "--seeds", 1, "--workers", 1, "--out", tmp_path / "out", "--json")
    assert ended.code == 2 or ended.json["runs"] == 1


@pytest.mark.slow
def test_suppression_can_be_compared(folder: Path, tmp_path: Path) -> None:
    more = '[[setting]]\nname = "hidden"\nprotect = "suppress"\nbelow = 3\n'
    (tmp_path / "plan.toml").write_text(plan_text(folder, more, "[1]"), encoding="utf-8")
    words = ["compare", folder / "county", "--plan", tmp_path / "plan.toml", "--setting", "hidden", "--workers", 1]
    said = good(tool(*words, "--out", tmp_path / "out", "--json")).json
    assert said["settings"] == 1
    assert 0 <= value(tmp_path / "out", "hidden", 1, "certain")["value"] <= 1


def test_a_file_that_a_plan_names_is_an_input(folder: Path, tmp_path: Path) -> None:
    """Here a budget: wrong at first, then mended. What was said of the wrong one is not up to date."""
    budget = tmp_path / "budget.toml"
    more = TOPDOWN.replace('"persons-2020"', f'"{budget}"')
    (tmp_path / "plan.toml").write_text(plan_text(folder, more, "[1]"), encoding="utf-8")
    words = ["compare", folder / "county", "--plan", tmp_path / "plan.toml", "--setting", "t", "--workers", 1]
    budget.write_text("wrong", encoding="utf-8")
    good(tool(*words, "--out", tmp_path / "out", "--quiet"), 1)
    budget.write_text("wrong in another way", encoding="utf-8")
    ended = tool(*words, "--out", tmp_path / "out")
    assert "up to date" not in ended.out


def test_a_scenario_of_ones_own_is_an_input(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "few", tmp_path / "few")
    (tmp_path / "plan.toml").write_text(plan_text(tmp_path, seeds="[1]"), encoding="utf-8")
    words = ["compare", folder / "county", "--plan", tmp_path / "plan.toml", "--setting", "too much", "--workers", 1]
    good(tool(*words, "--out", tmp_path / "out", "--quiet"), 1)
    text = (tmp_path / "few" / "scenario.toml").read_text(encoding="utf-8")
    fewer = "\n".join(line for line in text.splitlines() if not line.startswith("P8 "))
    (tmp_path / "few" / "scenario.toml").write_text(fewer, encoding="utf-8")
    assert "up to date" not in tool(*words, "--out", tmp_path / "out").out


# Everything at once


@pytest.mark.slow
def test_the_other_protections(folder: Path, tmp_path: Path) -> None:
    more = ONE.replace('"a"', '"nothing"') + TOPDOWN + 'places = "{blocks}"\n' + TOPDOWN.replace('"t"', '"matched"') + (
        'places = "{blocks}"\nmatch = "swap, a third"\n'
        '[[setting]]\nname = "key"\nprotect = "cellkey"\n'
        '[[setting]]\nname = "three"\nprotect = "round"\nbase = 3\n'
        '[[setting]]\nname = "moved"\nprotect = "relocate"\nby = "hispanic,white"\nlambda = 3\ncapacity = 20\nq = 0.5\n'
    )  # fmt: skip
    (tmp_path / "plan.toml").write_text(plan_text(folder, more, "[1]"), encoding="utf-8")
    out, kept = tmp_path / "out", tmp_path / "kept"
    words = ["compare", folder / "county", "--plan", tmp_path / "plan.toml", "--out", out, "--keep", kept]
    said = good(tool(*words, "--workers", 2, "--json"), 1).json
    assert set(said["refused"]) == {"'too much', seed 1"} and said["settings"] == 8
    # from records: feasible by construction; the tables of noise, keys and rounding: the nearest
    rows = pl.read_parquet(out / "measures.parquet")
    certain = set(rows.filter(pl.col("measure") == "certain")["setting"])
    assert certain == {"nothing", "swap, a third", "t", "matched", "moved"}
    for number in (0, 3, 4, 5, 8):
        places = pl.read_parquet(kept / f"{number:03d}s1" / "rebuilt" / "places.parquet")
        assert places["recounted"].all() and places["error"].sum() == 0
    front_ = pl.read_parquet(out / "front.parquet")
    assert not front_.row(by_predicate=pl.col("setting") == "nothing", named=True)["dominated"]  # it has no error
    assert value(out, "nothing", 1, "table_error_block")["value"] == 0
    # as much noise as another
    wanted, found = (value(out, name, 1, "table_error_block")["value"] for name in ("swap, a third", "matched"))
    assert found == pytest.approx(wanted, rel=0.05)
    assert value(out, "matched", 1, "rho")["value"] > value(out, "t", 1, "rho")["value"]


@pytest.mark.slow
def test_the_standard_plan_on_a_few_blocks(folder: Path, tmp_path: Path) -> None:
    said = good(tool("compare", folder / "county", "--seeds", 1, "--out", tmp_path / "out", "--json")).json
    assert said["refused"] == {} and said["settings"] == len(read_plan("standard").settings)


def test_multiples_of_the_budget_are_what_their_names_say() -> None:
    from glasshouse.mechanism.account import allocation

    total, plan = allocation("persons-2020").total, read_plan("standard")
    for factor in (10, 100):
        assert Fraction(plan.setting(f"TopDown, 2020 x {factor}").options["rho"]) == factor * total


def test_a_setting_that_was_killed_while_it_was_cleared_away_is_not_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by the fault harness: data without its manifest was left, and the setting refused for it."""

    def killed(path: Path, **_: object) -> None:
        if Path(path).exists():
            (Path(path) / "manifest.json").unlink()
            raise KeyboardInterrupt

    def work() -> None:
        with folder_of(job, run) as folder:  # type: ignore[arg-type]
            (folder / "data").touch()
            (folder / "manifest.json").touch()

    job, run = SimpleNamespace(keep=None, scratch=tmp_path), SimpleNamespace(code="000s1")
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            work()
    assert not (tmp_path / "000s1.work").exists()
    with folder_of(job, run) as folder:  # type: ignore[arg-type]
        assert not list(folder.iterdir())
        (folder / "data").touch()
    assert not list(tmp_path.iterdir())
