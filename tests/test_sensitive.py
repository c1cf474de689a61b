"""Are sums judged as the rules say? By the definitions, by brute force on toys, and through the command."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import glasshouse as gh
from glasshouse.assess.sensitive import (
    NOT_PROTECTED,
    PROTECTED,
    UNDECIDED,
    Dominance,
    PPercent,
    Range,
    read_dominance,
    sensitive,
)
from glasshouse.errors import InputError
from glasshouse.model.contributions import Cell, Contributed, Contributions, of_records, together
from glasshouse.model.records import UNLIMITED
from glasshouse.program.numbers.linked import Numbers, link
from glasshouse.program.numbers.system import alone
from tests.often import often
from tests.running import good, tool

VALUES = st.lists(st.integers(0, 60), max_size=6)


def cell(values: Sequence[int], named: int | None = None) -> Contributions:
    ordered = tuple(sorted(values, reverse=True))
    return Contributions(sum(ordered), ordered[:named], len(ordered))


# The rules


@given(VALUES, st.integers(1, 100))
def test_p_percent_is_what_the_second_largest_can_tell(values: Sequence[int], p: int) -> None:
    """Whoever is second knows the total and themselves: the largest is at most what is left of the total."""
    x1, x2 = (*sorted(values, reverse=True), 0, 0)[:2]
    estimate = sum(values) - x2
    broken, needed = sensitive(cell(values), [PPercent(Fraction(p))])
    assert bool(broken) == (100 * estimate < (100 + p) * x1)
    if broken:
        assert 100 * (estimate + needed) >= (100 + p) * x1 > 100 * (estimate + needed - 1)


@given(VALUES, st.integers(1, 4), st.integers(1, 99))
def test_dominance_is_a_share_of_the_total(values: Sequence[int], n: int, k: int) -> None:
    top = sum(sorted(values, reverse=True)[:n])
    broken, needed = sensitive(cell(values), [Dominance(n, Fraction(k))])
    assert bool(broken) == (100 * top > k * sum(values))
    if broken:
        assert 100 * top <= k * (sum(values) + needed) and 100 * top > k * (sum(values) + needed - 1)


@given(st.lists(VALUES, min_size=1, max_size=4), st.integers(2, 3))
def test_cells_together_are_one_cell(cells: Sequence[Sequence[int]], named: int) -> None:
    """Rules about two contributions are judged alike from whole lists and from the largest two or three of each."""
    rules = [PPercent(Fraction(10)), Dominance(1, Fraction(75)), Dominance(2, Fraction(90))]
    whole = cell([value for values in cells for value in values])
    assert sensitive(together([cell(values, named) for values in cells]), rules) == sensitive(whole, rules)


def test_who_contributes_twice_is_one_contributor_if_named() -> None:
    a, b = Cell("town", "X1", "a"), Cell("town", "X1", "b")
    by = {a: {"f": 50, "g": 20}, b: {"f": 40, "h": 30}}
    cells = {one: of_records(given.items()) for one, given in by.items()}
    named = Contributed(cells, lambda some: of_records(pair for one in some for pair in by[one].items()))
    assert named.union([a, b]) == Contributions(140, (90, 30, 20), 3)
    assert Contributed(named.cells).union([a, b]) == Contributions(140, (50, 40, 30, 20), 4)
    assert Contributed(named.cells).union([a, Cell("town", "X1", "c")]) is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((10, (5, 6)), "largest first"),
        ((10, (11,)), "more than the total"),
        ((10, (-1,)), "below 0"),
        ((10, (5, 2), 2), "2 contributors"),
        ((10, (5,), 0), "0 contributors"),
        ((10, (5, 1), 4), "more than 2 times"),
    ],
)
def test_contributions_that_cannot_be_are_refused(arguments: tuple[int, tuple[int, ...]], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Contributions(*arguments)


def test_rules_need_as_many_contributions_as_they_speak_of() -> None:
    with pytest.raises(InputError, match="the 3 largest"):
        Dominance(3, Fraction(80)).lacking(Contributions(100, (50, 20)))
    assert Dominance(3, Fraction(80)).lacking(Contributions(70, (50, 20))) > 0  # these are all


@pytest.mark.parametrize("text", ["75", "1-75", "0:75", "1:0", "1:100", "1:101", "a:b", "1:75:2", ""])
def test_a_rule_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--dominance"):
        read_dominance(text)


def test_only_what_was_met_protects() -> None:
    """Ends that may be too wide show nothing; those that are met do."""
    assert Range(0, 200, 90, 110).judge(100, 10) == PROTECTED
    assert Range(0, 200, 91, 110).judge(100, 10) == UNDECIDED
    assert Range(0, 200, 90, None).judge(100, 10) == UNDECIDED
    assert Range(0, None, 90, None, endless=True).judge(100, 10) == PROTECTED
    assert Range(0, 109, 0, 109).judge(100, 10) == NOT_PROTECTED
    assert Range(91, 200, 91, 200).judge(100, 10) == NOT_PROTECTED
    assert Range(0, 300, 0, 300).judge(100, 150) == PROTECTED  # no sum can be less than 0


# An oracle


def fitting(shown: dict[tuple[int, int], int], rows: np.ndarray, columns: np.ndarray) -> list[np.ndarray]:
    """All tables of whole numbers with these margins and shown cells."""
    free = [at for at in product(range(len(rows)), range(len(columns) - 1)) if at not in shown]
    tops = [range(int(min(rows[r], columns[c])) + 1) for r, c in free]
    found = []
    for values in product(*tops):
        table = np.zeros((len(rows), len(columns)), np.int64)
        for at, value in [*shown.items(), *zip(free, values, strict=True)]:
            table[at] = value
        last = rows - table[:, :-1].sum(axis=1)
        known = [shown.get((r, len(columns) - 1)) for r in range(len(rows))]
        table[:, -1] = last
        if (table >= 0).all() and (table.sum(axis=0) == columns).all() and all(
            one is None or one == value for one, value in zip(known, last, strict=True)
        ):  # fmt: skip
            found.append(table)
    return found


def test_verdicts_equal_brute_force() -> None:
    """Tables of two by three sums with margins: who can tell the largest contribution of a hidden sum too well?"""
    rng = np.random.default_rng(25)
    seen = dict.fromkeys((PROTECTED, NOT_PROTECTED), 0)
    for _ in range(often(150)):
        given = [
            [sorted(rng.integers(0, 6, rng.integers(1, 4)).tolist(), reverse=True) for _ in range(3)] for _ in "ab"
        ]
        true = np.array([[sum(values) for values in row] for row in given])
        hide = rng.random(true.shape) < 0.7
        rows, columns = true.sum(axis=1), true.sum(axis=0)
        shown = {at: int(true[at]) for at in product(range(2), range(3)) if not hide[at]}
        every = np.array(fitting(shown, rows, columns))
        cells = np.eye(6, dtype=np.int64).reshape(6, 2, 3)
        sets = [*cells, *(cells[3 * r : 3 * r + 3].sum(axis=0) for r in range(2)),
                *(cells[c::3].sum(axis=0) for c in range(3))]  # fmt: skip
        times = np.array([one.reshape(-1) for one in sets])
        values = times @ true.reshape(-1)
        open_ = np.concatenate([hide.reshape(-1), np.zeros(5, np.bool_)])
        linked = link(Numbers(tuple(f"n{at}" for at in range(11)), sparse.csr_matrix(times)))
        lower, upper = np.where(open_, 0, values), np.where(open_, UNLIMITED, values)
        wanted = np.unique(linked.number[open_]) if open_.any() else np.empty(0, np.int64)
        ends = alone(linked, lower[None], upper[None]).ends(wanted)
        p = int(rng.integers(5, 101))
        for at in np.flatnonzero(hide.reshape(-1)):
            place = divmod(int(at), 3)
            people = given[place[0]][place[1]]
            total, (x1, x2) = int(true[place]), (*people, 0, 0)[:2]
            broken, needed = sensitive(cell(people), [PPercent(Fraction(p))])
            if not broken:
                continue
            number = np.searchsorted(wanted, linked.number[at])
            low, high = int(ends.low[number]), int(ends.high[number])
            verdict = Range(low, high, int(ends.met_low[number]), int(ends.met_high[number])).judge(total, needed)
            can = every[:, place[0], place[1]]
            over = 100 * (int(can.max()) - x2) >= (100 + p) * x1  # the second largest, at best for the first
            under = total - int(can.min()) >= min(needed, total)
            assert verdict == (PROTECTED if over and under else NOT_PROTECTED)
            seen[verdict] += 1
    assert min(seen.values()) > 20


# The command

SCENARIO = """
title = "Turnover"
[geography]
place = "town"
unit = "country"
levels = { country = 1, town = 2 }
[attribute.branch]
levels = ["a", "b", "c"]
[attribute.size]
levels = ["small", "large"]
[recode]
branch = { attribute = "branch" }
size = { attribute = "size" }
[table]
T = { title = "Turnover by size and branch", level = "town", by = ["size", "branch"] }
B = { title = "Turnover by branch", level = "town", by = ["branch"] }
"""
RECORDS = """town,branch,size,contributor,contribution
X1,a,small,f1,10
X1,a,small,f2,20
X1,a,large,f3,900
X1,a,large,f4,40
X1,b,small,f5,30
X1,b,small,f6,35
X1,b,small,f6,5
X1,b,large,f7,300
X1,b,large,f8,280
X1,b,large,f9,200
X1,c,small,g1,44
X1,c,small,g2,41
X1,c,small,g3,43
X1,c,large,g4,400
X1,c,large,g5,390
X1,c,large,g6,395
"""
# T: all 1, small 2 (a 3, b 4, c 5), large 6 (a 7, b 8, c 9); B: all 1, a 2, b 3, c 4. Hidden: a and b of both sizes.
TABLES = """level,geoid,variable,lower,upper
town,X1,T_001,3133,3133
town,X1,T_002,228,228
town,X1,T_003,0,
town,X1,T_004,0,
town,X1,T_005,128,128
town,X1,T_006,2905,2905
town,X1,T_007,0,
town,X1,T_008,0,
town,X1,T_009,1185,1185
town,X1,B_001,3133,3133
town,X1,B_002,970,970
town,X1,B_003,850,850
town,X1,B_004,1313,1313
"""


@pytest.fixture
def office(tmp_path: Path) -> Path:
    (tmp_path / "scenario").mkdir()
    (tmp_path / "scenario" / "scenario.toml").write_text(SCENARIO)
    (tmp_path / "records.csv").write_text(RECORDS)
    (tmp_path / "tables.csv").write_text(TABLES)
    return tmp_path


def judge(office: Path, contributions: str, *rules: object, code: int = 1) -> pl.DataFrame:
    out = office / f"out of {contributions}"
    words = ["bounds", office / "tables.csv", "--scenario", office / "scenario", "--workers", 1, "--out", out]
    good(tool(*words, "--contributions", office / contributions, *(rules or ("--p-percent", 10))), code)
    return pl.read_parquet(out / "protection.parquet")


def test_every_hidden_number_is_judged(office: Path) -> None:
    found = judge(office, "records.csv")
    verdict = dict(found.select("variable", "verdict").iter_rows())
    assert verdict == {
        "T_003": "protected",  # 20 + 10: needs 2, can be 0 to 100
        "T_004": "protected",
        "T_007": "not protected",  # 900 + 40: needs 90, can be 30 more
        "T_008": "not sensitive",
        "B_002": "printed",  # 900 + 40 + 30
    }
    needed = dict(found.select("variable", "needed").iter_rows())
    assert (needed["T_003"], needed["T_004"], needed["T_007"], needed["B_002"]) == (2, 4, 90, 60)
    summary = json.loads((office / "out of records.csv" / "summary.json").read_text())["protection"]
    assert (summary["sensitive"], summary["protected"], summary["not_protected"], summary["printed"]) == (4, 2, 1, 1)


def test_known_sums_of_hidden_numbers_are_judged(office: Path) -> None:
    """Small a and b together are 100, as everybody knows; f6 and f5 give 70 of it. Large a and b: f3 and f7, 1,200."""
    found = judge(office, "records.csv", "--dominance", "2:69.5").filter(pl.col("cells") > 1)
    assert found["variable"].to_list() == ["T_003 + T_004", "T_007 + T_008"]
    assert found["total"].to_list() == [100, 1720] and set(found["verdict"]) == {"not protected"}
    (office / "tables.csv").write_text(TABLES.replace("T_002,228,228", "T_002,0,"))
    again = tool(
        "bounds", office / "tables.csv", "--scenario", office / "scenario", "--workers", 1, "--contributions",
        office / "records.csv", "--dominance", "2:69.5", "--out", office / "again",
    )  # fmt: skip
    good(again, 1)
    sums = pl.read_parquet(office / "again" / "protection.parquet").filter(pl.col("cells") > 1)
    assert sums["variable"].to_list() == ["T_003 + T_004", "T_007 + T_008"]  # 228 follows from 3133 - 2905


def test_largest_contributions_of_numbers_say_the_same_as_records(office: Path) -> None:
    """Law: nobody contributes to two of these numbers, so a row for each number is as good as records."""
    records = judge(office, "records.csv", "--p-percent", 10, "--dominance", "1:75")
    people = pl.read_csv(office / "records.csv")
    rows = []
    names = {"T_003": "small a", "T_004": "small b", "T_005": "small c", "T_007": "large a", "T_008": "large b",
             "T_009": "large c", "B_002": " a", "B_003": " b", "B_004": " c"}  # fmt: skip
    for variable, words in names.items():
        size, branch = words.split(" ")
        inside = people.filter(pl.col("branch") == branch, (pl.col("size") == size) | (size == ""))
        values = inside.group_by("contributor").agg(pl.col("contribution").sum())["contribution"].sort(descending=True)
        rows.append(("X1", variable, values.sum(), len(values), values[0], values[1]))
    columns = ["geoid", "variable", "total", "contributors", "largest_1", "largest_2"]
    pl.DataFrame(rows, schema=columns, orient="row").write_csv(office / "numbers.csv")
    assert judge(office, "numbers.csv", "--p-percent", 10, "--dominance", "1:75").equals(records)
    some = pl.DataFrame(rows[:1], schema=columns, orient="row").drop("contributors")
    some.write_csv(office / "some.csv")
    few = judge(office, "some.csv", code=0)
    assert few["verdict"].to_list() == ["protected", "not judged", "not judged", "not judged"]


def test_without_contributions_nothing_is_judged(office: Path) -> None:
    found = gh.bounds(office / "tables.csv", scenario=str(office / "scenario"), workers=1)
    assert found.summary.protection is None and "protection.parquet" not in found.files


def test_a_frame_will_do(office: Path) -> None:
    found = gh.bounds(
        office / "tables.csv", scenario=str(office / "scenario"), workers=1, p_percent=10,
        contributions=pl.read_csv(office / "records.csv"),
    )  # fmt: skip
    assert found.protection.height == 5


@pytest.mark.parametrize(
    ("name", "text", "options", "words"),
    [
        ("records.csv", RECORDS, [], "needs a rule"),
        ("records.csv", RECORDS, ["--p-percent", 0], "--p-percent"),
        ("records.csv", RECORDS, ["--p-percent", "much"], "p-percent"),
        ("records.csv", RECORDS, ["--dominance", "75"], "--dominance"),
        ("records.csv", RECORDS.replace("900", "9.5"), ["--p-percent", 10], "line 4: contribution is '9.5'"),
        ("records.csv", RECORDS.replace("900", ""), ["--p-percent", 10], "line 4: contribution is empty"),
        ("records.csv", RECORDS.replace("900", "-1"), ["--p-percent", 10], "line 4: contribution"),
        ("records.csv", RECORDS.replace("900", "901"), ["--p-percent", 10], "rule out"),
        ("records.csv", RECORDS.replace("contribution", "money"), ["--p-percent", 10], "no contributions"),
        ("records.csv", RECORDS.split("\n")[0] + "\n", ["--p-percent", 10], "no records"),
        ("n.csv", "geoid,variable,total,largest_1\nX1,T_003,30,31\n", ["--p-percent", 10], "line 2: the largest"),
        ("n.csv", "geoid,variable,total,largest_1\nX1,T_003,30,20\n", ["--p-percent", 10], "T_003 of town X1"),
        ("n.csv", "geoid,variable,total,largest_1\nX1,T_099,30,20\n", ["--p-percent", 10], "T_099"),
        ("n.csv", "geoid,variable,total,largest_1\nX1234,T_003,30,20\n", ["--p-percent", 10], "is no place"),
        ("n.csv", "geoid,variable,total,largest_1\nX1,T_003,30,20\nX1,T_003,30,20\n", ["--p-percent", 10], "already"),
        ("n.csv", "geoid,variable,total,largest_1,largest_2\nX1,T_003,30,,20\n", ["--p-percent", 10], "blank"),
        ("n.csv", "geoid,variable,total\nX1,T_003,30\n", ["--p-percent", 10], "no contributions"),
    ],
)  # fmt: skip
def test_contributions_that_are_none_are_refused(
    office: Path, name: str, text: str, options: Sequence[object], words: str
) -> None:
    (office / name).write_text(text)
    ended = tool(
        "bounds", office / "tables.csv", "--scenario", office / "scenario", "--workers", 1, "--contributions",
        office / name, *options, "--out", office / "out",
    )  # fmt: skip
    assert ended.code == 2 and "Traceback" not in ended.err, ended
    assert re.search(words, ended.err), ended.err


def test_a_rule_needs_contributions(office: Path) -> None:
    for rule in (["--p-percent", 10], ["--dominance", "1:75"]):
        ended = tool("bounds", office / "tables.csv", "--scenario", office / "scenario", *rule, "--out", office / "out")
        assert ended.code == 2 and "needs --contributions" in ended.err


def test_only_the_numbers_that_are_told_are_judged(office: Path) -> None:
    """Two towns and the country: with a level, or some units, nothing else is judged, and the rest still is used."""
    more = RECORDS.replace("X1,", "X2,").split("\n", 1)[1]
    (office / "records.csv").write_text(RECORDS + more)
    rows = TABLES.split("\n", 1)[1]
    whole = "".join(f"country,X,{name},{2 * int(low)},{2 * int(low)}\n" for name, low in
                    (line.split(",")[2:4] for line in rows.split()) if low != "0")  # fmt: skip
    (office / "tables.csv").write_text(TABLES + rows.replace("X1,", "X2,") + whole)
    found = {}
    for level in (None, "town", "country"):
        found[level] = gh.bounds(
            office / "tables.csv", scenario=str(office / "scenario"), workers=1, level=level, p_percent=10,
            contributions=office / "records.csv",
        ).protection  # fmt: skip
    assert set(found["town"]["geoid"]) == {"X1", "X2"} and set(found["town"]["verdict"]) >= {"protected", "printed"}
    assert found["country"].filter(pl.col("verdict") != "printed").is_empty()
    key = ["level", "geoid", "variable"]
    parts = pl.concat([found["country"], found["town"]]).sort(key)
    assert found[None].sort(key).equals(parts)
