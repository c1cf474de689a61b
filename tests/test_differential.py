"""Do the commands and an independent model of equations 7 and 8 agree on random releases? And is the model right?"""

from __future__ import annotations

import csv
import json
from collections import Counter
from itertools import product
from pathlib import Path

import pytest

import glasshouse as gh
from tests.differential.bounds import WAYS, compare_bounds
from tests.differential.case import Case, Findings, quickly
from tests.differential.compare import COMMANDS, examine
from tests.differential.generator import generate
from tests.differential.model import Key, Program, gathered
from tests.often import often

QUICK, MANY, AT_ONCE = 60, 500, 5
FIRST = [pytest.param(first, marks=[pytest.mark.slow] * (first > QUICK // 2)) for first in range(1, QUICK, AT_ONCE)]


def disagreements(tmp_path: Path, seeds: range, *, every: bool = True) -> list[str]:
    """What is wrong with the cases of seeds; or with vary and some of the other commands and options in turn."""
    told, others = [], [command for command in COMMANDS if command not in ("vary", "bounds")]
    with quickly():
        for seed in seeds:
            some = ["vary", *(others[(seed + step) % len(others)] for step in (0, 3, 5)[: often(3)])]
            found = examine(generate(seed, tmp_path / str(seed)), COMMANDS if every else some)
            told += [f"case {seed}: {kind}: {text}" for kind, text in found.wrong]
    return told


@pytest.mark.parametrize("first", FIRST)
def test_no_disagreement_on_random_releases(tmp_path: Path, first: int) -> None:
    """The case of a seed again: `python -m tests.differential --count 1 --seed SEED --keep FOLDER`."""
    wrong = disagreements(tmp_path, range(first, first + AT_ONCE), every=False)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("first", range(1, QUICK, 2 * AT_ONCE))
def test_bounds_are_those_of_the_model_on_random_releases(tmp_path: Path, first: int) -> None:
    """As it is asked, and by one of the ways that the engine is made to go, in turn."""
    asked, *forced = WAYS
    wrong = []
    with quickly():
        for seed in range(first, first + 2 * AT_ONCE, 2)[: often(AT_ONCE)]:
            found = Findings()
            compare_bounds(Case(generate(seed, tmp_path / str(seed))), found, [asked, forced[seed // 2 % len(forced)]])
            wrong += [f"case {seed}: {kind}: {text}" for kind, text in found.wrong]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("seed", [5688, 9000, 34039])
def test_what_was_found_beyond_the_quick_ones_stays_mended(tmp_path: Path, seed: int) -> None:
    """5688: a number of an area that counts no kind of record that can be. 9000: zeros inside bins, jointly.

    34039: a table whose universe names an attribute and can be nobody looks at that attribute all the same.
    """
    wrong = disagreements(tmp_path, range(seed, seed + 1))
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
def test_reasons_among_numbers_without_limits_come_to_an_end(tmp_path: Path) -> None:
    """50521: a sum, places that are not named and three levels; HiGHS never came back from one branch and bound."""
    found = Findings()
    with quickly():
        compare_bounds(Case(generate(50521, tmp_path / "case")), found, ["bounds"])
    assert not found.wrong and found.counts["why: numbers"] > 1


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1, MANY, 10 * AT_ONCE))
def test_no_command_disagrees_on_many_random_releases(tmp_path: Path, first: int) -> None:
    """Six to fifteen commands on each. Of more, at the desk: `python -m tests.differential --count 2000`."""
    wrong = disagreements(tmp_path, range(first, first + 10 * AT_ONCE))
    assert not wrong, "\n".join(wrong)


def test_the_shapes_that_matter_are_among_the_quick_ones(tmp_path: Path) -> None:
    """Otherwise nothing that agrees means anything."""
    shapes: Counter[str] = Counter()
    for seed in range(1, QUICK + 1):
        case = Case(generate(seed, tmp_path / str(seed)))
        scenario, release = case.scenario, case.release
        fits = case.whole(open_=True).fits
        tables = release.tables(scenario.place, case.around)
        levels = {at: release.together([at], open_=True) for at in release.variables}
        finer = release.compared(case.around, finest=True)
        shapes.update({
            case.told["style"]: True,
            "fits": fits,
            "contradicts": not fits,
            "contradicts, and each level fits": not fits and all(level.fits for level in levels.values()),
            "one attribute": len(scenario.attributes) == 1,
            "many levels": max(len(labels) for labels in scenario.attributes.values()) > 8,
            "tallies or sums": any(line.answers for line in scenario.lines if line.table in tables),
            "structural zeros": bool(scenario.zeros),
            "an attribute that is not told": len(scenario.looked_at(tables)) < len(scenario.attributes),
            "unit is place": scenario.unit == scenario.place,
            "three levels used": len(release.levels_around) > 1,
            "single years around": bool(scenario.bins) and len(set(finer)) > len(set(case.cells)),
            "tables left out": bool(case.only),
            "people in a place that is not named": not {place for place, _ in case.truth} <= release.named,
            "alone and jointly differ": fits and any(case.alone(place).certain(case.cells, [place])
                != case.joint(release.code(place, case.around), open_=True).certain(case.cells, [place])
                for place in release.codes[scenario.place] if case.around),
        })  # fmt: skip
    assert min(shapes.values()) > 1, shapes


# The model itself


def written(folder: Path, toml: str, records: list[str], rows: list[str], **told: object) -> Case:
    (folder / "scenario").mkdir(parents=True)
    (folder / "scenario" / "scenario.toml").write_text(toml)
    (folder / "records.csv").write_text("\n".join(records) + "\n")
    (folder / "tables.csv").write_text("\n".join(["level,geoid,variable,value", *rows]) + "\n")
    (folder / "case.json").write_text(json.dumps({"seed": 1, "changed": "", **told}))
    return Case(folder)


def tabulated(case: Case) -> Case:
    """The same case with everything published about its records."""
    rows = []
    for line in case.scenario.lines:
        level = case.scenario.level_of[line.table]
        for code in sorted({case.release.code(place, level) for place, _ in case.truth}):
            count = sum(n * line.times[kind] for (place, kind), n in case.truth.items() if place.startswith(code))
            rows.append([level, code, line.variable, count])
    with (case.folder / "tables.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([["level", "geoid", "variable", "value"], *rows])
    return Case(case.folder)


BINS = """
title = "single years are told of the area alone"
[geography]
place = "block"
unit = "tract"
levels = { tract = 1, block = 2 }
[attribute]
age = { range = [30, 39] }
race = { levels = ["black", "asian"] }
hispanic = { levels = ["no", "yes"] }
[recode]
band = { attribute = "age", bins = "30-34 35-39" }
year = { attribute = "age", bins = "30..39" }
race = { attribute = "race" }
hispanic = { attribute = "hispanic" }
[compare]
bins = { ageband = "band" }
[table]
B1 = { title = "band by race", level = "block", by = ["band", "race"] }
B2 = { title = "race by origin", level = "block", by = ["race", "hispanic"] }
B3 = { title = "band, Hispanic", level = "block", by = ["band"], universe = { hispanic = "yes" } }
T1 = { title = "year by race", level = "tract", by = ["year", "race"] }
T2 = { title = "year, Hispanic", level = "tract", by = ["year"], universe = { hispanic = "yes" } }
"""
SIX = ["block,age,race,hispanic", "11,31,black,yes", "11,36,black,no", "11,33,asian,no", "11,38,asian,yes",
       "12,31,black,no", "12,38,asian,no"]  # fmt: skip


def test_single_years_of_the_area_limit_what_is_compared_in_bins(tmp_path: Path) -> None:
    """In bins two pairs could change their origins; but nobody of the tract is Hispanic at 33 or 36 (equation 8)."""
    case = tabulated(written(tmp_path / "case", BINS, SIX, ["block,11,B1_001,4"]))
    assert case.alone("11").farthest(case.truth, case.cells, ["11"]) == 0
    assert case.alone("11").certain(case.cells, ["11"]) == 4
    without = case.own("11")
    assert without.farthest(case.truth, case.cells, ["11"]) == 8 and without.certain(case.cells, ["11"]) == 0


VANISHING = """
title = "a place that vanishes"
[geography]
place = "block"
unit = "tract"
levels = { tract = 1, block = 2 }
[attribute]
a = { levels = ["x", "y"] }
[recode]
a = { attribute = "a" }
[table]
B1 = { title = "x", level = "block", by = [], universe = { a = "x" } }
T1 = { title = "a", level = "tract", by = ["a"] }
"""


def test_whoever_lives_in_a_place_that_is_not_named_makes_up_the_area(tmp_path: Path) -> None:
    """Of two persons one is in the place that is named, or both are elsewhere: nothing tells."""
    rows = ["block,11,B1_001,1", "tract,1,T1_002,1", "tract,1,T1_003,1"]
    case = written(tmp_path / "case", VANISHING, ["block,a", "11,x", "12,y"], rows)
    here: dict[Key, int] = {("11", 0): 1, ("11", 1): 1}
    known, open_ = case.joint("1", open_=False), case.joint("1", open_=True)
    assert known.certain(case.cells, ["11"]) == 2 and known.farthest(here, case.cells, ["11"]) == 0
    assert open_.certain(case.cells, ["11"]) == 1 and open_.farthest(here, case.cells, ["11"]) == 1
    assert open_.holds({("11", 0): 1}) and not known.holds({("11", 0): 1})


def test_that_nobody_is_elsewhere_is_a_reason_and_says_so(tmp_path: Path) -> None:
    """The x of the tract is in the block that is named: in others the table of blocks would count it (6, 61)."""
    case = written(tmp_path / "case", VANISHING, ["block,a", "11,x", "12,y"], ["block,11,B1_001,1"])
    with case.tables.open("w", newline="") as stream:
        csv.writer(stream).writerows([
            ["level", "geoid", "variable", "lower", "upper"], ["block", "11", "B1_001", 0, 3],
            ["tract", "1", "T1_002", 1, 1], ["tract", "1", "T1_003", 1, 1],
        ])  # fmt: skip
    told = gh.bounds(case.tables, **case.options(why=1, workers=1))
    assert told.bounds.select("geoid", "variable", "low", "high").rows() == [("11", "B1_001", 1, 1)]
    reasons = {row["reason_variable"]: row for row in told.reasons.iter_rows(named=True)}
    assert set(reasons) == {"B1_001", "T1_002"} and "named" not in reasons["T1_002"]["reason_description"]
    rest = reasons["B1_001"]
    assert (rest["reason_level"], rest["reason_geoid"], rest["upper"]) == ("block", "1", 0)
    assert rest["reason_description"].endswith(", in blocks that are not named")


@pytest.mark.parametrize("seed", range(200, 215))
def test_the_model_agrees_with_a_listing(tmp_path: Path, seed: int) -> None:
    """Of small cases every histogram is written down."""
    case = Case(generate(seed, tmp_path / "case"))
    for place in sorted(case.release.codes[case.scenario.place]):
        program = case.alone(place)
        every = listing(program)
        if every is None:
            continue
        assert program.fits == bool(every)
        if every and not program.free:
            start = every[0]
            begin = gathered(start, case.cells, [place])
            ends = [gathered(some, case.cells, [place]) for some in every]
            far = max(sum(abs(end.get(c, 0) - begin.get(c, 0)) for c in {*begin, *end}) for end in ends)
            assert program.farthest(start, case.cells, [place]) == far
            assert program.certain(case.cells, [place]) == sum(min(end.get(c, 0) for end in ends) for c in begin)
            chosen = {(place, kind) for kind in range(0, len(case.cells), 2)}
            counts = [sum(n for key, n in some.items() if key in chosen) for some in every]
            assert (program.least(chosen), program.most(chosen)) == (min(counts), max(counts))


def listing(program: Program) -> list[dict[Key, int]] | None:
    """Every histogram that fits; None when there are too many to try."""
    size = 1
    for key in program.live:
        size *= program.top[key] + 1
    if size > 20_000 or program.free:
        return None
    found = []
    for values in product(*(range(program.top[key] + 1) for key in program.live)):
        x = dict(zip(program.live, values, strict=True))
        sums = [(sum(often * x.get(key, 0) for key, often in row.times.items()), row) for row in program.rows]
        if all(row.low <= total and (row.high is None or total <= row.high) for total, row in sums):
            found.append({key: value for key, value in x.items() if value})
    return found
