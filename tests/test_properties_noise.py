"""Is noise on the statistics of properties what the account says, and is nothing else changed?"""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy.stats import chisquare

from glasshouse.commands.work.properties import noise_properties
from glasshouse.errors import InputError
from glasshouse.files.properties import read_properties
from glasshouse.files.shares import rounded, within_rounding
from glasshouse.mechanism.account import epsilon
from glasshouse.mechanism.gaussian import DiscreteGaussian
from glasshouse.population.subsidy import half_up, simulate, statistics
from glasshouse.protection.properties import Ints, Question, account_for, add_noise, questions_of, width
from glasshouse.scenarios.load import Scenario, load
from tests.running import good, tool
from tests.test_properties import BEDROOMS, GEOGRAPHY, RACES, SHARES, row, written
from tests.test_subsidy import county
from tests.test_swap_command import refused

ADULTS = ("pct_1adult", "pct_2adults")
WHOLES = (BEDROOMS, RACES, ADULTS)


@pytest.fixture(scope="module")
def housing() -> Scenario:
    return load("subsidised-housing")


@pytest.fixture(scope="module")
def published() -> pl.DataFrame:
    """The properties of a county, some of them suppressed or poorly reported, some with more than 100 households."""
    homes, codes = county(100_000)
    return statistics(homes, simulate(homes, np.random.default_rng(3), share=0.4), codes)


@pytest.fixture(scope="module")
def file(published: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("properties") / "housing.parquet"
    published.write_parquet(path)
    return path


# What a percentage says


def test_a_percentage_of_up_to_100_says_how_many() -> None:
    for of in range(1, 101):
        count = np.arange(of + 1)
        all_of = np.full(len(count), of)
        assert (rounded(half_up(100 * count, all_of), all_of) == count).all()


def test_a_percentage_of_more_comes_back_from_the_count_it_rounds_to() -> None:
    share = np.arange(101)
    for of in range(101, 1500):
        all_of = np.full(len(share), of)
        assert (half_up(100 * rounded(share, all_of), all_of) == share).all()


def test_one_household_moves_a_count_by_no_more_than_the_noise_allows_for() -> None:
    question, most = Question("adults", ADULTS, share=True), {}
    for of in range(1, 1201):
        all_of = np.full(of + 1, of)
        count = rounded(half_up(100 * np.arange(of + 1), all_of), all_of)
        most[of] = int(np.diff(count).max())
    assert most == dict(enumerate(width(question, np.arange(1, 1201)).tolist(), start=1))
    assert width(Question("people", ("people_total",), share=False), np.array([5, 500])).tolist() == [1, 1]


# The questions and the account


def test_the_questions_follow_from_the_scenario(housing: Scenario) -> None:
    assert housing.occupancy is not None
    every = {*SHARES, "people_total"}
    found = questions_of(housing.occupancy, housing.schema, every)
    assert [(one.name, one.columns, one.share, one.fills) for one in found] == [
        ("bedrooms", BEDROOMS, True, True),  # every subsidised household has bedrooms
        ("householder", RACES, True, False),  # some other race alone has no column
        ("adults", ADULTS, True, False),  # nor have households without children
        ("people", ("people_total",), False, False),
    ]
    fewer = questions_of(housing.occupancy, housing.schema, every - {"pct_bed2", *ADULTS})
    assert [(one.name, one.columns, one.fills) for one in fewer] == [
        ("bedrooms", ("pct_bed1", "pct_bed3"), False),
        ("householder", RACES, False),
        ("people", ("people_total",), False),
    ]


def test_the_ledger_adds_up(file: Path, published: pl.DataFrame, tmp_path: Path) -> None:
    out = tmp_path / "noisy.parquet"
    words = ["protect", "properties", file, "--rho", "12.66", "--seed", 3, "--out", out]
    said = good(tool(*words, "--json")).json
    told = json.loads((tmp_path / "noisy.parquet.manifest.json").read_text())
    assert told["command"] == "protect properties" and set(told["inputs"]) == {"data"}
    assert told["parameters"] == {
        "scenario": "subsidised-housing", "rho": "633/50", "neighbours": "", "secure": False, "seed": 3,
    }  # fmt: skip
    counts = told["counts"]
    ledger = {name: Fraction(price) for name, price in counts["ledger"].items()}
    assert set(ledger) == {"bedrooms", "householder", "adults", "people"} and set(ledger.values()) == {
        Fraction(633, 200)
    }
    assert sum(ledger.values()) == Fraction(counts["rho_spent"]) == Fraction(counts["rho"]) == Fraction("12.66")
    assert counts["rho_left"] == "0" and counts["neighbours"] == "add-remove" and counts["source"] == "simulator"
    assert (counts["epsilon"], counts["delta"]) == (epsilon(12.66, 1e-10), 1e-10)
    usable = published.filter(pl.col("people_total") >= 0)
    assert 0 < usable.height == counts["with_noise"] < published.height == counts["properties"]
    assert counts["measured"] == usable.height * 12 and counts["wider"] == (usable["number_reported"] > 100).sum() > 0
    assert counts["as_they_are"] == [
        "property_id", "block", "total_units", "pct_occupied", "number_reported", "pct_reported",
    ]  # fmt: skip
    assert any("pct_occupied" in note for note in said["notes"])
    assert said["notes"] == counts["notes"] and "simulator" in said["notes"][0]
    assert good(tool(*words, "--json")).json["unchanged"]
    ended = good(tool(*words, "--overwrite"))
    assert "rho 633/50 (12.66) spent of 633/50: epsilon 46.81" in ended.out and "householder 633/200" in ended.out


def test_fewer_questions_share_the_same_rho(tmp_path: Path, housing: Scenario) -> None:
    path = written(tmp_path, [{"code": "a", "number_reported": 20, "people_total": 40, "pct_bed1": 50, "note": "x"}])
    said = noise_properties(path, housing, tmp_path / "out.csv", rho=Fraction(1))
    assert said.ledger == {"bedrooms": "1/2", "people": "1/2"} and said.as_they_are == (
        "code", "number_reported", "note",
    )  # fmt: skip


# The numbers


def test_with_very_large_rho_the_input_comes_back(
    file: Path, published: pl.DataFrame, tmp_path: Path, housing: Scenario
) -> None:
    out = tmp_path / "same.parquet"
    noise_properties(file, housing, out, rho=Fraction(4000))
    after = pl.read_parquet(out)
    assert after.schema == published.schema
    small = pl.col("number_reported") <= 100
    assert after.filter(small).equals(published.filter(small)) and published.filter(~small).height
    assert after.drop(*SHARES).equals(published.drop(*SHARES))


@pytest.mark.parametrize(("name", "lines", "as_they_were"), [("bedrooms", 3, 0.7), ("householder", 6, 0.85)])
def test_beyond_100_without_noise_a_share_may_be_a_point_off(
    name: str, lines: int, as_they_were: float, housing: Scenario
) -> None:
    """The counts that percentages round to need not add up; scaled, some move, rarely by more than a point."""
    assert housing.occupancy is not None
    every = questions_of(housing.occupancy, housing.schema, SHARES)
    (question,) = (one for one in every if one.name == name)
    rng = np.random.default_rng(1)
    reported = rng.integers(101, 3000, 20_000)
    counts = np.floor(rng.dirichlet(np.full(lines, 0.7), len(reported)) * reported[:, None]).astype(np.int64)
    counts[:, 0] += reported - counts.sum(axis=1)
    given = dict(zip(question.columns, half_up(100 * counts, reported[:, None]).T, strict=True))
    done = add_noise(
        given, reported, [question], account_for([question], Fraction(1)), "add-remove",
        lambda name, rows, noise, size: np.zeros((len(rows), size), np.int64),
    )  # fmt: skip
    off = np.abs(np.column_stack([done.values[column] - given[column] for column in question.columns]))
    assert off.max() <= 3 and (off > 1).mean() < 0.001 and (off == 0).all(axis=1).mean() > as_they_were


def noise_seen(folder: Path, housing: Scenario, rho: Fraction, neighbours: str = "add-remove") -> dict[str, Any]:
    """What noise does to 4,000 properties where nothing is cut: 100 report, so a percentage is a count."""
    usual = row(number_reported=100, people_total=5000, pct_black_nonhsp=30, pct_1adult=40, pct_2adults=30)
    rows = [{**usual, "code": f"OH{number:05d}"} for number in range(4000)]
    path, out = written(folder, rows, "many.parquet"), folder / f"{neighbours}.parquet"
    said = noise_properties(path, housing, out, rho=rho, neighbours=neighbours, seed=11)
    before, after = pl.read_parquet(path), pl.read_parquet(out)
    assert said.negatives > 0  # the groups that nobody is of, clipped
    names = ("people_total", "pct_1adult", "pct_2adults", "pct_hispanic", *BEDROOMS)
    return {name: (after[name].cast(pl.Int64) - before[name].cast(pl.Int64)).to_numpy() for name in names}


@pytest.mark.parametrize(("neighbours", "rate"), [("add-remove", 0.05), ("change-one", 0.025)])
def test_noise_has_the_distribution_that_was_paid_for(
    neighbours: str, rate: float, tmp_path: Path, housing: Scenario
) -> None:
    """Four questions: rho 0.2 gives each 0.05, whatever number of lines it has."""
    seen, noise = noise_seen(tmp_path, housing, Fraction(1, 5), neighbours), DiscreteGaussian(rate)
    for name in ("people_total", *ADULTS):
        edge = 6
        found = np.bincount(np.clip(seen[name], -edge, edge) + edge, minlength=2 * edge + 1)
        mass = noise.mass(np.arange(-edge, edge + 1))
        mass[[0, -1]] = noise.at_least(edge)
        assert chisquare(found, mass * len(seen[name])).pvalue > 0.001, name
        assert abs(seen[name].mean()) < 4 * np.sqrt(noise.variance / 4000)
        assert seen[name].var() == pytest.approx(noise.variance, rel=0.1)
    # a group that nobody is of: half of the noise is clipped
    assert abs((seen["pct_hispanic"] > 0).mean() - noise.at_least(1)) < 0.04
    # bedrooms are scaled to who reports, so they change by 0 together, and less than their noise
    assert (sum(seen[name] for name in BEDROOMS) == 0).all()
    assert 0.3 * noise.variance < seen["pct_bed1"].var() < noise.variance
    assert abs(np.corrcoef(seen["people_total"], seen["pct_1adult"])[0, 1]) < 0.06
    assert abs(np.corrcoef(seen["pct_1adult"], seen["pct_2adults"])[0, 1]) < 0.06


def test_noise_is_wider_where_a_point_is_several_households() -> None:
    questions = (Question("adults", ADULTS, share=True), Question("people", ("people_total",), share=False))
    asked: list[tuple[str, list[int], float]] = []

    def draw(question: str, rows: Ints, noise: DiscreteGaussian, size: int) -> Ints:
        asked.append((question, rows.tolist(), noise.rate))
        return np.zeros((len(rows), size), np.int64)

    reported = np.array([100, 101, 250, 40, -4, 0])
    numbers = {name: np.array([10, 20, 30, -5, -4, 0]) for name in ADULTS} | {"people_total": 2 * reported}
    done = add_noise(numbers, reported, questions, account_for(questions, Fraction(2)), "add-remove", draw)
    assert asked == [
        ("adults", [0], 1), ("adults", [1], 1 / 4), ("adults", [2], 1 / 9), ("people", [0, 1, 2, 3], 1),
    ]  # fmt: skip
    assert done.measured == 10 and done.values["pct_1adult"].tolist() == [10, 20, 30, -5, -4, 0]


def test_afterwards(housing: Scenario) -> None:
    assert housing.occupancy is not None
    questions = questions_of(housing.occupancy, housing.schema, {*SHARES, "people_total"})
    shift = {"bedrooms": [-20, 6, 10], "householder": [0, 5, 0, 3, -9, 0], "adults": [3, 9], "people": [-30]}

    def draw(question: str, rows: Ints, noise: DiscreteGaussian, size: int) -> Ints:
        return np.tile(shift[question], (len(rows), 1))

    usual = {name: np.array([int(row()[name])]) for name in (*SHARES, "people_total")}  # 50 30 20, 25 75, 30 10
    reported, ledger = np.array([20]), account_for(questions, Fraction(1))
    noisy = add_noise(usual, reported, questions, ledger, "add-remove", draw)
    shown = {name: int(value[0]) for name, value in noisy.values.items()}
    # 10 6 4 become 0 12 14, of 20: 0 9 11
    assert [shown[name] for name in BEDROOMS] == [0, 45, 55]
    # 5 15 0 0 0 0 become 5 20 0 3 0 0, which are 28: scaled down to 20 they are 4 14 0 2 (3.57, 14.29, 2.14)
    assert [shown[name] for name in RACES] == [20, 70, 0, 10, 0, 0]
    assert [shown[name] for name in ADULTS] == [45, 55]  # 6 2 become 9 11: 20, as they are
    assert shown["people_total"] == 60 and noisy.negatives == 2 and noisy.measured == 12
    shift["people"] = [-85]
    assert add_noise(usual, reported, questions, ledger, "add-remove", draw).values["people_total"].tolist() == [20]


def test_what_comes_out_is_a_file_of_properties(
    file: Path, published: pl.DataFrame, tmp_path: Path, housing: Scenario
) -> None:
    out = tmp_path / "noisy.csv.gz"
    noise_properties(file, housing, out, rho=Fraction(1, 2), seed=5)
    before, after = (read_properties(path, GEOGRAPHY, SHARES, exclusive=WHOLES) for path in (file, out))
    assert after.left_out == before.left_out and after.frame.height == before.frame.height
    shown = after.frame
    assert not shown.select(*SHARES).equals(before.frame.select(*SHARES))
    small = shown.filter(pl.col("number_reported") <= 100)
    of = small["number_reported"].to_numpy()
    counts = np.column_stack([rounded(small[name].to_numpy(), of) for name in BEDROOMS])
    assert (counts.sum(axis=1) == of).all()
    for columns in WHOLES:
        fewest = sum(
            within_rounding(shown[name].to_numpy(), shown["number_reported"].to_numpy())[0] for name in columns
        )
        assert (fewest <= shown["number_reported"].to_numpy()).all()
    assert (shown["people_total"] >= shown["number_reported"]).all()
    raw = pl.read_csv(out, schema=published.schema)
    coded = pl.col("people_total") < 0
    assert raw.filter(coded).equals(published.filter(coded)) and raw.filter(coded).height
    good_rows = raw.filter(~coded)
    tenths = half_up(10 * good_rows["people_total"].to_numpy(), good_rows["number_reported"].to_numpy())
    assert good_rows["people_per_unit"].to_list() == (tenths / 10).tolist()
    kept = ["property_id", "block", "total_units", "pct_occupied", "number_reported", "pct_reported"]
    assert raw.select(kept).equals(published.select(kept))


def test_codes_stay_and_numbers_beside_them_do_not(tmp_path: Path, housing: Scenario) -> None:
    rows = [
        row(code="a", pct_bed1="-4", people_total="NA"),
        row(code="b", number_reported="-1", people_total="", **dict.fromkeys(SHARES, "-5")),
        row(code="c", number_reported="0", people_total="0", **dict.fromkeys(SHARES, "0")),
        row(code="d", pct_bed1="50.0", pct_bed2="30 %", people_total="1,090"),
    ]
    path = written(tmp_path, rows)
    said = noise_properties(path, housing, tmp_path / "out.csv", rho=Fraction(4000))
    after = (tmp_path / "out.csv").read_text().splitlines()
    assert after[:4] == path.read_text().splitlines()[:4]
    assert after[4].split(",")[7:10] == ["1090", "50", "30"]  # spelled alike, whether noise changed them or not
    assert (said.properties, said.with_noise, said.measured) == (4, 2, 10 + 12)
    noise_properties(path, housing, tmp_path / "noisy.csv", rho=Fraction(1, 100))
    a, b, c, _ = pl.read_csv(tmp_path / "noisy.csv", infer_schema=False).rows(named=True)
    assert (a["pct_bed1"], a["people_total"]) == ("-4", "NA") and (a["pct_bed2"], a["pct_bed3"]) != ("30", "20")
    assert int(a["pct_bed2"]) + int(a["pct_bed3"]) <= 101
    given = pl.read_csv(path, infer_schema=False).rows(named=True)
    assert b == given[1] and c == given[2]


def test_the_order_of_rows_and_the_kind_of_file_do_not_matter(
    file: Path, published: pl.DataFrame, tmp_path: Path, housing: Scenario
) -> None:
    mixed = published.sample(fraction=1, shuffle=True, seed=8)
    mixed.head(60).write_csv(tmp_path / "some.csv")
    for path, out in ((file, "one.parquet"), (tmp_path / "some.csv", "two.csv")):
        noise_properties(path, housing, tmp_path / out, rho=Fraction(1), seed=2)
    one = pl.read_parquet(tmp_path / "one.parquet")
    two = pl.read_csv(tmp_path / "two.csv", schema=published.schema)
    assert two["property_id"].to_list() == mixed["property_id"].head(60).to_list()
    assert_frame_equal(two.sort("property_id"), one.filter(pl.col("property_id").is_in(two["property_id"].implode())))
    noise_properties(file, housing, tmp_path / "other.parquet", rho=Fraction(1), seed=3)
    assert not pl.read_parquet(tmp_path / "other.parquet").equals(one)


def test_a_property_of_two_programs_has_noise_of_its_own_in_each(tmp_path: Path, housing: Scenario) -> None:
    rows = [row(code=f"a{n}", program=program, people_total=900) for n in range(20) for program in ("2", "5")]
    noise_properties(written(tmp_path, rows), housing, tmp_path / "out.csv", rho=Fraction(1, 50))
    people = pl.read_csv(tmp_path / "out.csv")["people_total"].to_numpy()
    assert (people[::2] != people[1::2]).sum() > 10


def test_narrow_columns_stay_narrow_while_numbers_fit(tmp_path: Path, housing: Scenario) -> None:
    frame = pl.DataFrame(
        {"code": ["a"], "number_reported": [40], "people_total": [90], "pct_bed1": [50.0], "units": [3]},
        schema={
            "code": pl.Categorical, "number_reported": pl.UInt8, "people_total": pl.Int8, "pct_bed1": pl.Float32,
            "units": pl.Int16,
        },
    )  # fmt: skip
    frame.write_parquet(tmp_path / "narrow.parquet")
    noise_properties(tmp_path / "narrow.parquet", housing, tmp_path / "out.parquet", rho=Fraction(4000))
    assert pl.read_parquet(tmp_path / "out.parquet").equals(frame)
    seen = set()
    for seed in range(6):
        noise_properties(
            tmp_path / "narrow.parquet", housing, tmp_path / "o.parquet", rho=Fraction(1, 10**6), seed=seed
        )
        seen.add(pl.read_parquet(tmp_path / "o.parquet").schema["people_total"])
    assert seen <= {pl.Int8, pl.Int64} and pl.Int64 in seen


# The command


def test_the_secure_source_has_no_seed(file: Path, published: pl.DataFrame, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    words = ["protect", "properties", file, "--rho", "1", "--out", out]
    refused(tool(*words, "--secure", "--seed", 1), "--secure has no seed", out)
    said = good(tool(*words, "--secure", "--json")).json
    assert said["source"] == "secure" and not any("simulator" in note for note in said["notes"])
    after = pl.read_parquet(out)
    assert after["property_id"].equals(published["property_id"]) and not after.equals(published)
    assert ((after["people_total"] - published["people_total"]).abs() < 40).all()


@pytest.mark.parametrize(
    ("changed", "pattern"),
    [
        ({"pct_bed1": "101"}, r"psh.csv, line 2: column 'pct_bed1' is '101'; expected a percentage"),
        ({"pct_bed1": "90"}, r"line 2: shares add up to more than 100"),
        ({"number_reported": "-4"}, r"line 2: numbers of households and no number_reported"),
        ({"code": ""}, r"line 2: the property has no name"),
        ({"code": "OH002"}, r"line 3: property 'OH002' stands in line 2 already"),
        ({"program_label": "Summary of All HUD Programs"}, r"line 2: summary row, whose households other rows count"),
    ],
)
def test_bad_rows(changed: dict[str, Any], pattern: str, tmp_path: Path) -> None:
    path, out = written(tmp_path, [row(**changed), row(code="OH002")]), tmp_path / "out.csv"
    refused(tool("protect", "properties", path, "--rho", 1, "--out", out), pattern, out)


def test_parts_of_another_row_are_refused(tmp_path: Path) -> None:
    path, out = written(tmp_path, [row(), row(sub_program="1"), row(sub_program="2")]), tmp_path / "out.csv"
    pattern = r"line 3 \(1 more like it\): part of another row"
    refused(tool("protect", "properties", path, "--rho", 1, "--out", out), pattern, out)


@pytest.mark.parametrize(
    ("renamed", "pattern"),
    [
        ({"pct_black_nonhsp": "pct_black"}, r"column 'pct_black' may count households .* rename it 'pct_black_nonhsp'"),
        ({"number_reported": "x"}, r"column 'number_reported' is missing"),
        ({"code": "x"}, r"column 'property_id' is missing \(or 'code'"),
        ({name: f"x{name}" for name in (*SHARES, "people_total")}, r"is this a file of properties"),
    ],
)
def test_bad_columns(renamed: dict[str, str], pattern: str, tmp_path: Path) -> None:
    path, out = tmp_path / "psh.csv", tmp_path / "out.csv"
    pl.DataFrame([row()]).rename(renamed).write_csv(path)
    refused(tool("protect", "properties", path, "--rho", 1, "--out", out), pattern, out)


def test_bad_options(file: Path, tmp_path: Path, housing: Scenario) -> None:
    out = tmp_path / "out.csv"
    words = ["protect", "properties", file, "--out", out]
    refused(tool(*words, "--rho", "0"), "--rho is 0; expected more than 0", out)
    refused(tool(*words, "--rho", "much"), "--rho is 'much'; expected a decimal or a fraction", out)
    refused(tool(*words, "--rho", "1", "--neighbours", "none"), "known: add-remove, change-one", out)
    refused(tool(*words, "--rho", "1", "--scenario", "pl94"), "pl94 says nothing of properties", out)
    refused(tool("protect", "properties", tmp_path / "no.csv", "--rho", 1, "--out", out), "no such file", out)
    refused(tool(*words[:3], "--rho", 1, "--out", tmp_path / "out.txt"), "cannot write this kind", out)
    refused(tool(*words[:3], "--rho", 1, "--out", file), "is an input of this command")
    with pytest.raises(InputError, match="known: add-remove, change-one"):
        noise_properties(file, housing, out, rho=Fraction(1), neighbours="none")
    with pytest.raises(InputError, match="says nothing of properties"):
        noise_properties(file, load("pl94"), out, rho=Fraction(1))
    with pytest.raises(InputError, match="expected more than 0"):
        noise_properties(file, housing, out, rho=Fraction(0))
    assert not out.exists()


def test_help_lists_it() -> None:
    assert "properties" in good(tool("protect", "--help")).out
    assert "glasshouse protect properties county/housing.parquet --rho 12.66" in " ".join(
        good(tool("protect", "properties", "--help")).out.split()
    )


@pytest.mark.parametrize("header", ["people_per_unit", "PEOPLE_PER_UNIT", "People per Unit"])
def test_people_per_unit_never_tells_what_the_people_do_not(header: str, tmp_path: Path) -> None:
    """In any spelling it is made anew; where the people are missing it is taken out, or it would tell them."""
    lines = [f"property_id,block,number_reported,people_total,{header},pct_bed1,pct_bed2,pct_bed3"]
    lines += [f"{n},99001000100{n:04d},40,{90 + n},2.{n % 10},50,30,20" for n in range(1, 31)]
    lines += ["31,990010001000031,46,NA,2.7,50,30,20", "32,990010001000032,46,-1,2.7,50,30,20"]
    (tmp_path / "in.csv").write_text("\n".join(lines) + "\n")
    good(tool("protect", "properties", tmp_path / "in.csv", "--rho", "0.01", "--out", tmp_path / "out.csv", "--quiet"))
    out = pl.read_csv(tmp_path / "out.csv", infer_schema=False)
    people, ratio = out["people_total"].to_list(), out[header].to_list()
    for told, per_unit in zip(people[:30], ratio[:30], strict=True):
        assert float(per_unit) == (2 * 10 * int(told) + 40) // (2 * 40) / 10
    assert people[:30] != [str(90 + n) for n in range(1, 31)]
    assert [float(one) for one in ratio[30:]] == [-1, -1]
