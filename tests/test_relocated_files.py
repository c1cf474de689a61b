"""Is theta what was promised, does a chosen point lie on the front, and are files judged as a plain recount says?"""

from __future__ import annotations

import csv
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import glasshouse as gh
from glasshouse.assess.front.choosing import KINDS, Target, choose
from glasshouse.assess.front.released import Elements, released
from glasshouse.assess.frontier import measures
from glasshouse.commands.relocating.theta import read_theta, theta_frame
from glasshouse.errors import InputError
from glasshouse.protection.relocation.front import Spread, front, protection, utility
from glasshouse.protection.relocation.rules import Matrix, Rules
from tests.often import often
from tests.running import good, tool
from tests.test_relocate import problems
from tests.test_tradeoff_command import SMALL, refused

BY = ("sex", "white", "hispanic")


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    path = tmp_path / "matrix.csv"
    path.write_text(SMALL)
    return path


@pytest.fixture(scope="module")
def county(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("people") / "county"
    good(tool("synthesize", "--persons", 2500, "--seed", 3, "--out", folder, "--quiet"))
    return folder


# A point by U, P or tau


@given(problems(), st.floats(0, 1), st.sampled_from(KINDS), st.sampled_from(Spread))
def test_a_chosen_point_is_on_the_front(problem: tuple[Matrix, Rules], q: float, kind: Any, spread: Spread) -> None:
    matrix, rules = problem
    one = front(matrix, rules)
    point = one.at_share(q)
    there = measures(matrix, one.relocation(point, spread))
    wanted = {"q": q, "U": point.U, "P": point.P, "tau": there.tau}[kind]
    found = choose(one, Target(kind, wanted), spread)
    relocation = one.relocation(found.point, spread)  # refuses what is not on the front
    rounding = 1e-9 * max(1.0, one.P_max)  # what is left of a person after rounding (NEARLY) weighs as a person does
    assert protection(matrix, rules.weight, relocation) == pytest.approx(found.point.P, abs=rounding)
    assert utility(matrix, relocation) == pytest.approx(found.point.U, abs=1e-9)
    assert pytest.approx(found.point.U, abs=1e-9) == one.at_share(found.q).U
    if kind == "tau":  # at most the risk asked for, with at least as much utility
        assert measures(matrix, relocation).tau <= wanted * (1 + 1e-8) and found.point.U >= point.U - 1e-9
    elif one.P_max > 0:
        assert pytest.approx((point.P, point.U), abs=1e-8) == (found.point.P, found.point.U)


@given(problems(), st.sampled_from(Spread))
@settings(max_examples=often(25))
def test_beyond_the_front_is_refused_with_its_range(problem: tuple[Matrix, Rules], spread: Spread) -> None:
    one = front(*problem)
    for kind, value in (
        ("U", one.U_min - 0.01),
        ("U", 1.01),
        ("P", one.P_max + 0.1),
        ("P", -1),
        ("tau", 1.5),
        ("tau", -1),
    ):
        with pytest.raises(InputError, match=rf"{kind} = .* is not on the front of lambda \d: there {kind} goes from"):
            choose(one, Target(kind, value), spread)


def test_tau_is_met_as_early_as_a_fine_search_meets_it(data: Path) -> None:
    found = gh.tradeoff(data / "franklin" / "tract_ver.csv", at=["tau=0.1"], points=2).chosen.row(0, named=True)
    assert found["tau"] <= 0.1 and found["P"] == pytest.approx(530, abs=1e-6)
    before = gh.tradeoff(data / "franklin" / "tract_ver.csv", at=[found["q"] - 1e-6], points=2).chosen.row(
        0, named=True
    )
    assert before["tau"] > 0.1


@pytest.mark.parametrize(
    ("text", "message"),
    [("V=1", "'V' is no number of a point"), ("U=many", "'many' is no number"), ("", "is no number"),
     ("q=nan", "expected a share"), ("q=1.5", "q goes from 0 to 1"), ("U=0.1", "U goes from 0"),
     ("P=99", "P goes from 0 to"), ("tau=0.001", "tau goes from")],
)  # fmt: skip
def test_points_that_cannot_be(matrix: Path, text: str, message: str) -> None:
    refused(tool("tradeoff", matrix, "--at", text, "--json"), message)
    with pytest.raises(InputError, match="twice"):
        gh.tradeoff(matrix, at=["0.5", 0.5])


# Theta


def recounted(rows: list[dict[str, str]], cells: int, counts: dict[tuple[str, str], int]) -> tuple[float, float]:
    """P and U from a file of chances, with nothing but the formulas (2), (3), (5), (6)."""
    moved, noise = 0.0, 0.0
    for row in rows:
        people = int(row["people"])
        assert people == counts[row["combination"], row["source"]]
        going = people * float(row["chance"])
        moved += going / people**2
        noise += going * (1 / people + 1 / counts[row["combination"], row["target"]])
    return moved, 1 - noise / cells


@pytest.mark.parametrize("spread", ["whole", "even"])
def test_theta_has_the_p_and_u_of_the_point(matrix: Path, tmp_path: Path, spread: str) -> None:
    """By a plain recount of the file, at every point that was asked for."""
    found = gh.tradeoff(matrix, risk=[1, 3], at=[0.3, "P=2", 1], capacity=5, spread=spread)
    found.theta.write_csv(tmp_path / "theta.csv")
    with (tmp_path / "theta.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    lines = [line.split(",") for line in SMALL.splitlines()]
    counts = {(kind, line[0]): int(line[at]) for line in lines[1:] for at, kind in enumerate(lines[0]) if at}
    for point in found.chosen.iter_rows(named=True):
        mine = [one for one in rows if int(one["lambda"]) == point["lambda"] and float(one["q"]) == point["q"]]
        assert recounted(mine, 16, counts) == pytest.approx((point["P"], point["U"]), abs=1e-12)


@given(problems(), st.floats(0.05, 1), st.sampled_from(Spread))
def test_theta_is_read_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, problem: tuple[Matrix, Rules], q: float, spread: Spread
) -> None:
    matrix, rules = problem
    one = front(matrix, rules)
    relocation = one.relocation(one.at_share(q), spread)
    if not len(relocation):
        return
    path = tmp_path_factory.mktemp("theta") / "theta.csv"
    theta_frame(matrix, relocation, int(rules.risk), q).write_csv(path)
    again, of = read_theta(path, matrix, int(rules.risk))
    assert of == q
    for name in ("combination", "source", "target", "share"):
        assert np.array_equal(getattr(again, name), getattr(relocation, name))


def test_theta_re_applied_gives_the_same_p_and_u_and_the_same_draw(county: Path, tmp_path: Path) -> None:
    people = county / "cef.parquet"
    whole = gh.tradeoff(people, by=BY, at=["0.5", "tau=0.05"], spread="even", out=tmp_path / "front", points=2)
    for point in whole.chosen.iter_rows(named=True):
        again = gh.protect.relocate(people, by=BY, theta=tmp_path / "front" / "theta.parquet", q=point["q"])
        direct = gh.protect.relocate(
            people,
            by=BY,
            q=point["q"],
            theta_out=tmp_path / f"{point['q']}.csv",
            out=tmp_path / f"{point['q']}.parquet",
        )
        assert pytest.approx((point["P"], point["U"]), abs=1e-9) == (again.summary.P, again.summary.U)
        assert again.summary.method == "theta" and direct.summary.method == "flow"
        assert again.records.equals(direct.records)
        third = gh.protect.relocate(people, by=BY, theta=tmp_path / f"{point['q']}.csv", q=point["q"])
        assert third.records.equals(direct.records)
    named = gh.protect.relocate(people, by=BY, at="tau=0.05").summary
    assert pytest.approx((point["P"], point["U"]), abs=1e-9) == (named.P, named.U)


HEAD = "lambda,q,combination,source,target,people,chance\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lambda,q\n3,1\n", "column 'combination' is missing"),
        (HEAD + "2,1,f_a,t1,t2,1,0.5\n", "expected rows of lambda 3 and one q; found lambda 2 with q 1"),
        (HEAD, "found no row at all"),
        (HEAD + "3,1,f_z,t1,t2,1,0.5\n", "line 2: the combination is not in the data"),
        (HEAD + "3,1,f_a,t9,t2,1,0.5\n", "line 2: the source is not in the data"),
        (HEAD + "3,1,f_a,t1,t9,1,0.5\n", "line 2: the target is not in the data"),
        (HEAD + "3,1,f_a,t1,t2,1,0.5\n3,0.5,f_a,t1,t2,1,0.5\n", "found lambda 3 with q 0.5, lambda 3 with q 1"),
        (HEAD + "3,1,f_a,t1,t1,1,0.5\n", "one place"),
        (HEAD + "3,1,f_a,t1,t2,2,0.5\n", "another number of people"),
        (HEAD + "3,1,f_a,t1,t2,1,1.5\n", "line 2: column 'chance': expected a chance above 0"),
        (HEAD + "3,1,f_a,t1,t2,1,\n", "column 'chance'"),
        (HEAD + "3,1,f_a,t1,t2,1,0.5\n3,1,f_a,t1,t2,1,0.2\n", "the way stands twice"),
        (HEAD + "3,1,f_a,t1,t2,1,0.5\n3,1,f_a,t1,t3,1,0.7\n", "sum to at most 1"),
        (HEAD + "3,1,f_b,t1,t3,1,0.5\n", "nobody of the combination is in the target"),
    ],
)
def test_a_bad_theta_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    people = tmp_path / "people.csv"
    people.write_text("place,sex,race\nt1,f,a\nt2,f,a\nt2,f,a\nt3,f,a\nt1,f,b\nt2,f,b\n")
    theta = tmp_path / "theta.csv"
    theta.write_text(text)
    words = ["protect", "relocate", people, "--by", "sex,race", "--place", "place", "--theta", theta]
    refused(tool(*words, "--out", tmp_path / "moved.csv"), message)
    assert not (tmp_path / "moved.csv").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--q", 0.5, "--at", "U=0.9"], "--q and --at both"),
        (["--at", "U=0.01"], "is not on the front of lambda 3: there U goes from"),
        (["--theta", "cef", "--at", "P=3"], "--theta has relocations by lambda and q"),
        (["--theta", "cef", "--coverage", "relaxed"], "--coverage says who may move where"),
        (["--theta", "cef", "--spread", "whole"], "--spread says who may move where"),
        (["--theta", "nowhere.csv"], "there is no such file"),
    ],
)
def test_relocating_what_cannot_be(county: Path, tmp_path: Path, words: list[Any], message: str) -> None:
    people = county / "cef.parquet"
    words = [people if word == "cef" else word for word in words]
    refused(tool("protect", "relocate", people, "--by", "sex,white", *words, "--out", tmp_path / "m.parquet"), message)


# Files as they are


def plain_measures(before: pl.DataFrame, after: pl.DataFrame, person: str | None) -> tuple[float, float, float]:
    """tau, phi and U of two files of records by loops over people and elements."""
    x, y, s = Counter[Any](), Counter[Any](), Counter[Any]()
    homes: dict[str, Any] = {}
    for block, *kind, name in before.select("block", *BY, pl.lit("") if person is None else person).iter_rows():
        x[block, *kind] += 1
        homes[name] = (block, *kind)
    for block, *kind, name in after.select("block", *BY, pl.lit("") if person is None else person).iter_rows():
        y[block, *kind] += 1
        s[block, *kind] += person is not None and homes[name] == (block, *kind)
    if person is None:
        s = Counter({one: min(x[one], y[one]) for one in x})
    kinds = np.prod([before[name].n_unique() for name in BY])
    cells = int(kinds) * before["block"].n_unique()
    tau = sum(s[one] / x[one] / y[one] for one in x if y[one]) / cells
    phi = sum(x[one] == y[one] == s[one] == 1 for one in x) / cells
    noise = sum((x[one] - s[one] + y[one] - s[one]) / max(x[one], 1) for one in set(x) | set(y))
    return tau, phi, 1 - noise / cells


def test_drawn_swapped_and_noisy_files_by_a_plain_recount(county: Path, tmp_path: Path) -> None:
    people, places = county / "cef.parquet", county / "blocks.parquet"
    # every record with a name of its own: those of the county may be missing
    named = pl.read_parquet(people).with_row_index("who").with_columns(pl.col("who").cast(pl.String))
    named.write_parquet(tmp_path / "named.parquet")
    drawn = gh.protect.relocate(tmp_path / "named.parquet", by=BY, at="P=50", out=tmp_path / "drawn.parquet").summary
    gh.protect.swap(tmp_path / "named.parquet", rate=0.2, out=tmp_path / "swapped.parquet")
    gh.protect.topdown(people, scenario="pl94", budget="pl94-2020", places=places, out=tmp_path / "noisy.parquet")
    noisy = pl.read_parquet(tmp_path / "noisy.parquet")
    with_sex = noisy.with_columns(sex=pl.lit("female")) if "sex" not in noisy.columns else noisy
    with_sex.write_parquet(tmp_path / "noisy.parquet")
    files = {name: tmp_path / f"{name}.parquet" for name in ("drawn", "swapped", "noisy")}
    beside = gh.tradeoff(tmp_path / "named.parquet", by=BY, protected=files, person="who", points=2).protected
    alike = gh.tradeoff(tmp_path / "named.parquet", by=BY, protected=files, points=2).protected
    for name, path in files.items():
        after = pl.read_parquet(path)
        who = "who" if name != "noisy" else None
        row = beside.row(by_predicate=pl.col("name") == name, named=True)
        assert (row["tau"], row["phi"], row["utility"]) == pytest.approx(plain_measures(named, after, who), abs=1e-12)
        assert row["stayed"] == ("by name" if who else "at most")
        row = alike.row(by_predicate=pl.col("name") == name, named=True)
        assert (row["tau"], row["phi"], row["utility"]) == pytest.approx(plain_measures(named, after, None), abs=1e-12)
    row = beside.row(0, named=True)
    assert (drawn.tau_drawn, drawn.phi_drawn, drawn.U_drawn, drawn.P_drawn) == pytest.approx(
        (row["tau"], row["phi"], row["utility"], row["P"]), abs=1e-12
    )
    assert row["left"] == drawn.moved and row["appeared"] == 0  # nobody goes where nobody of their kind lives


def test_the_mean_of_draws_is_what_was_expected(data: Path) -> None:
    """P and U are linear in who moves, so draws have the expected ones on average."""
    from glasshouse.commands.work.relocate import elements_of
    from glasshouse.files.matrix import read_matrix
    from glasshouse.protection.relocation.rules import capacities, moves

    found = read_matrix(data / "franklin" / "tract_ver.csv")
    matrix = Matrix(found.combinations, found.places, found.counts)
    one = front(matrix, Rules(3, capacities(matrix, 20)))
    point = one.at_share(0.5)
    relocation = one.relocation(point, Spread.EVEN)
    rng = np.random.default_rng(1)
    drawn = [released(elements_of(matrix, moves(matrix, relocation, rng))).utility for _ in range(60)]
    assert np.mean(drawn) == pytest.approx(point.U, abs=4 * np.std(drawn) / np.sqrt(60))


@given(problems(), st.data())
def test_names_say_more_than_numbers(problem: tuple[Matrix, Rules], data: st.DataObject) -> None:
    """Where it is only known how many are there, tau and phi are the most, and the noise the least that can be."""
    before = problem[0].counts
    after = np.array([[data.draw(st.integers(0, 5)) for _ in row] for row in before])
    stayed = np.array(
        [
            [data.draw(st.integers(0, int(min(x, y)))) for x, y in zip(r, s, strict=True)]
            for r, s in zip(before, after, strict=True)
        ]
    )
    known = released(Elements(before, after, stayed, before.size))
    most = released(Elements(before, after, np.minimum(before, after), before.size))
    assert known.tau <= most.tau and known.phi <= most.phi and known.utility <= most.utility + 1e-12


def test_a_protected_matrix_may_have_other_places_and_kinds(matrix: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text("tract,old_b,young_a,new\nt4,2,50,1\nt9,1,0,0\n")
    found = gh.tradeoff(matrix, protected=[("mine", other)], points=2).protected.row(0, named=True)
    assert (found["name"], found["appeared"], found["stayed"]) == ("mine", 2, "at most")
    assert found["tau"] == pytest.approx((1 / 2 + 1 / 50) / 16)  # of young_a and old_b in t4, all stayed
    changed = 16 - 2  # all other elements are empty now: each has noise 1; and two people where nobody was
    assert found["utility"] == pytest.approx(1 - (changed + 2) / 16)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--protected", "nowhere.csv"], "there is no such file"),
        (["--protected", "a=m", "--protected", "a=m"], "two files go by the name a"),
        (["--person", "who"], "--person needs --by and --protected"),
        (["--variables", "young"], "--variables needs"),
        (["--variables", "younger", "--attributes", "age,race"], "unknown variable 'younger'; known: a, b, old"),
    ],
)
def test_what_cannot_stand_beside_a_front(matrix: Path, words: list[str], message: str) -> None:
    words = [word.replace("=m", f"={matrix}") for word in words]
    refused(tool("tradeoff", matrix, *words, "--json"), message)


def test_a_column_that_names_nobody_is_refused(county: Path) -> None:
    people = county / "cef.parquet"
    frame = pl.read_parquet(people).with_columns(who=pl.lit("x"))
    with pytest.raises(InputError, match=r"--person who: cef\.parquet has no such column"):
        gh.tradeoff(people, by=BY, protected={"p": frame}, person="who")
    with pytest.raises(InputError, match="column 'eyes' is missing"):
        gh.tradeoff(people, by=("eyes",), protected={"p": people})


# A regression on named variables, and twelve maps


def test_a_regression_on_named_variables_is_table_4(data: Path) -> None:
    """Table 4 prints -0.16, 0.19, -0.25, 0.53; the optimum taken moves the second digit (`tests/test_frontier.py`)."""
    asked = {"risk": 3, "attributes": "age,ethnicity,race", "variables": "white,aian,nothispanic,total population"}
    found = gh.tradeoff(data / "franklin" / "tract_ver.csv", **asked, points=2)
    table = found.explained.filter(model="named")
    assert table["variable"].to_list() == ["(Intercept)", "white", "aian", "nothispanic", "total population"]
    assert table["coefficient"].to_list()[1:] == pytest.approx([-0.16, 0.19, -0.25, 0.53], abs=0.02)
    assert table["coefficient"].to_list()[1:] == pytest.approx([-0.1795, 0.1851, -0.2434, 0.5298], abs=1e-4)
    assert max(table["p"].to_list()[1:]) < 0.01
    # an independent least squares
    counts = pl.read_csv(data / "franklin" / "tract_ver.csv", schema_overrides={"tract": pl.String})
    total = counts.select(pl.sum_horizontal(pl.exclude("tract"))).to_series().to_numpy()
    share = {
        name: counts.select(pl.sum_horizontal(filter(rule, counts.columns[1:]))).to_series().to_numpy() / total
        for name, rule in {"white": lambda c: c.endswith("_white"), "aian": lambda c: c.endswith("_aian"),
                           "not": lambda c: "_nothispanic_" in c}.items()
    }  # fmt: skip
    design = np.column_stack([*share.values(), total])
    change = found.changes["change"].to_numpy()
    scaled = [(column - column.mean()) / column.std(ddof=1) for column in (*design.T, change)]
    expected = np.linalg.lstsq(np.column_stack(scaled[:-1]), scaled[-1], rcond=None)[0]
    assert table["coefficient"].to_list()[1:] == pytest.approx(expected.tolist(), abs=1e-9)


def test_twelve_maps_in_one_run(county: Path, tmp_path: Path) -> None:
    out = tmp_path / "maps"
    words = [f"--lambda={risk}" for risk in (1, 2, 3)] + [f"--at={q}" for q in (0.25, 0.5, 0.75, 1)]
    good(tool("tradeoff", county / "cef.parquet", "--by", ",".join(BY), *words, "--points", 2, "--coordinates",
              county / "blocks.parquet", "--out", out, "--quiet"))  # fmt: skip
    drawn = (out / "changes.svg").read_text()
    titles = [f"λ = {risk}, q = {q:g}" for risk in (1, 2, 3) for q in (0.25, 0.5, 0.75, 1)]
    assert [drawn.count(f">{title}<") for title in titles] == [1] * 12
    assert drawn.count("<svg") >= 13
    chosen = pl.read_parquet(out / "chosen.parquet")
    changes = pl.read_parquet(out / "changes.parquet")
    assert chosen.height == 12 and changes.group_by("lambda", "q").len().height == 12
    signs: dict[Any, Counter[int]] = defaultdict(Counter)
    for row in changes.iter_rows(named=True):
        signs[row["lambda"], row["q"]][int(np.sign(row["change"]))] += 1
    for row in chosen.iter_rows(named=True):
        here = signs[row["lambda"], row["q"]]
        assert (row["gaining"], row["losing"], row["unchanged"]) == (here[1], here[-1], here[0])


def test_twelve_panels_without_coordinates(matrix: Path) -> None:
    drawn = gh.tradeoff(matrix, risk=[1, 3], at=[0.5, 1], points=2).figure("changes").svg()
    assert [drawn.count(f">λ = {risk}, q = {q:g}<") for risk in (1, 3) for q in (0.5, 1)] == [1] * 4
