"""Are files of subsidised properties read right? Every reason to leave one out, every refusal, what rounding says."""

from __future__ import annotations

import gzip
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from glasshouse.errors import InputError
from glasshouse.files.properties import PropertyFile, read_properties
from glasshouse.files.shares import rounded, rounded_down, within_rounding
from glasshouse.model.geography import Geography
from glasshouse.population.subsidy import simulate, statistics
from tests.test_subsidy import county

GEOGRAPHY = Geography(
    {"state": 2, "county": 5, "tract": 11, "block": 15},
    "block",
    "tract",
    compose=((("STATE", 2), ("COUNTY", 3), ("TRACT", 6), ("BLOCK", 4)),),
)
SHARES = {
    "pct_bed1": [],
    "pct_bed2": [],
    "pct_bed3": [],
    "pct_white_nothsp": ["pct_white", "pct_white_nonhsp"],
    "pct_black_nonhsp": ["pct_black"],
    "pct_native_american_nonhsp": ["pct_native_american"],
    "pct_asian_pacific_nonhsp": ["pct_asian_pacific"],
    "pct_hispanic": [],
    "pct_multi": [],
    "pct_1adult": [],
    "pct_2adults": [],
}
BEDROOMS = ("pct_bed1", "pct_bed2", "pct_bed3")
RACES = tuple(SHARES)[3:9]
COLUMNS = ["property_id", "block", "total_units", "number_reported", "people_total", *SHARES]
ONE, TWO = "390490001001000", "390490001001001"
USUAL = {
    "code": "OH001", "program_label": "Public Housing", "program": "2", "sub_program": "NA", "block": ONE,
    "total_units": "50", "number_reported": "40", "people_total": "90", "pct_bed1": "50", "pct_bed2": "30",
    "pct_bed3": "20", "pct_white_nothsp": "25", "pct_black_nonhsp": "75", "pct_native_american_nonhsp": "0",
    "pct_asian_pacific_nonhsp": "0", "pct_hispanic": "0", "pct_multi": "0", "pct_1adult": "30", "pct_2adults": "10",
}  # fmt: skip


def row(**changed: Any) -> dict[str, Any]:
    return {**USUAL, **changed}


def rows_of(count: int) -> list[dict[str, Any]]:
    return [row(code=f"OH{number:03d}", block=ONE if number % 3 else TWO) for number in range(count)]


def written(folder: Path, rows: list[dict[str, Any]], name: str = "psh.csv") -> Path:
    path, frame = folder / name, pl.DataFrame(rows, infer_schema_length=None)
    if name.endswith(".parquet"):
        frame.write_parquet(path)
    else:
        text = frame.write_csv().encode()
        path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    return path


def read(folder: Path, *rows: dict[str, Any], **options: Any) -> PropertyFile:
    return read_properties(written(folder, list(rows)), GEOGRAPHY, SHARES, **options)


def without(given: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name not in names}


# What rounding says


def test_within_rounding_are_the_counts_that_some_rounding_of_halves_makes_the_share() -> None:
    """Brute force for every share of up to 250; half even is half up or half down."""
    share = np.arange(101)
    for of in range(1, 251):
        low, high = within_rounding(share, np.full(101, of))
        n = np.arange(of + 1)
        half_up, half_down = (200 * n + of) // (2 * of), -((of - 200 * n) // (2 * of))
        half_even = np.array([round(Fraction(100 * one, of)) for one in n.tolist()])
        expected = (half_up == share[:, None]) | (half_down == share[:, None])
        assert np.array_equal((n >= low[:, None]) & (n <= high[:, None]), expected)
        assert not np.any((half_even == share[:, None]) & ~expected)
        assert np.all((low >= 0) & (high <= of) & (low <= high + 1))


@given(st.integers(0, 100), st.integers(0, 10**12))
def test_the_roundings_agree(share: int, of: int) -> None:
    low, high = within_rounding(share, of)
    down, near = rounded_down(share, of), rounded(share, of)
    assert 100 * down <= share * of < 100 * (down + 1)
    assert -100 <= 2 * (share * of - 100 * near) < 100
    assert 0 <= down <= near <= min(down + 1, of)
    assert low > high or low <= near <= high
    assert 0 <= low <= high + 1 <= of + 1
    for function in (rounded_down, rounded):
        assert function(np.array([share]), np.array([of])).tolist() == [function(share, of)]
    arrays = within_rounding(np.array([share]), np.array([of]))
    assert [one.tolist() for one in arrays] == [[low], [high]]
    assert {one.dtype for one in arrays} == {np.dtype(np.int64)}


@given(st.integers(1, 5000), st.data())
def test_the_truth_is_within_rounding(of: int, data: st.DataObject) -> None:
    part = data.draw(st.integers(0, of))
    low, high = within_rounding((200 * part + of) // (2 * of), of)
    assert low <= part <= high


# Files that are read


def test_a_file_of_2014_and_on(tmp_path: Path) -> None:
    found = read(tmp_path, row(code="B", block=TWO), row(code="C"), row(code="A", pct_hispanic="-1", pct_multi=""))
    assert found.frame.columns == COLUMNS
    assert found.frame["property_id"].to_list() == ["A", "C", "B"] and found.frame["block"].to_list() == [ONE, ONE, TWO]
    assert found.frame["pct_hispanic"].to_list() == [None, 0, 0] and found.frame["pct_multi"].to_list() == [None, 0, 0]
    assert found.frame.row(1, named=True) == {
        "property_id": "C", "block": ONE, **{name: int(USUAL[name]) for name in COLUMNS[2:]}
    }  # fmt: skip
    assert set(found.frame.dtypes[:2]) == {pl.String} and set(found.frame.dtypes[2:]) == {pl.Int64}
    assert (found.left_out, found.properties, found.absent) == ({}, 3, ())


def test_a_file_of_2012_has_other_names_and_lacks_some(tmp_path: Path) -> None:
    names = {name.removesuffix("_nonhsp") for name in USUAL} - {"pct_white_nothsp", "pct_multi"}
    old = {name.upper(): USUAL.get(name, USUAL.get(f"{name}_nonhsp")) for name in sorted(names)}
    found = read(tmp_path, old, exclusive=[BEDROOMS, RACES])
    assert found.absent == ("pct_white_nothsp", "pct_multi")
    assert found.frame["pct_black_nonhsp"].to_list() == [75] and found.frame["pct_multi"].to_list() == [None]
    assert found.frame.columns == COLUMNS and found.frame["pct_multi"].dtype == pl.Int64


def test_headers_in_any_case_with_blanks_and_a_mark(tmp_path: Path) -> None:
    header = ",".join(f" {name.upper().replace('_', ' ') if name.startswith('number') else name} " for name in USUAL)
    path = tmp_path / "psh.csv"
    path.write_text(f"\ufeff{header}\n{','.join(USUAL.values())}\n", encoding="utf-8")
    usual = read_properties(written(tmp_path, [USUAL], "usual.csv"), GEOGRAPHY, SHARES).frame
    assert_frame_equal(read_properties(path, GEOGRAPHY, SHARES).frame, usual)
    odd = {f" {name.title()} ": value for name, value in USUAL.items()}
    assert_frame_equal(
        read_properties(written(tmp_path, [odd], "odd.parquet"), GEOGRAPHY, SHARES, exclusive=[RACES]).frame, usual
    )


def test_csv_gz_and_parquet_are_the_same_in_any_order(tmp_path: Path) -> None:
    rows = [{**one, "sub_program": "x"} for one in rows_of(20)]
    rows += [row(code="OH001", program="3", pct_bed1="10"), row(code="OH001", program="4", pct_bed1="-1")]
    whole = read_properties(written(tmp_path, rows), GEOGRAPHY, SHARES)
    numbers = [{n: int(v) if n in COLUMNS[2:] else v for n, v in one.items()} for one in rows]
    decimals = [{n: float(v) if n in COLUMNS[2:] else v for n, v in one.items()} for one in rows]
    decimals[-1]["pct_bed1"] = float("nan")
    mixed = [rows[at] for at in np.random.default_rng(1).permutation(len(rows))]
    for name, form in (("a.csv.gz", rows), ("b.parquet", numbers), ("c.parquet", decimals), ("d.csv", mixed)):
        found = read_properties(written(tmp_path, form, name), GEOGRAPHY, SHARES)
        assert_frame_equal(found.frame, whole.frame)
        assert (found.left_out, found.properties) == (whole.left_out, whole.properties) == ({}, 22)


def test_numbers_as_people_write_them(tmp_path: Path) -> None:
    usual = read(tmp_path, USUAL).frame
    written_so = {"pct_bed1": "50%", "pct_bed2": "30.0", "pct_bed3": " 20 % ", "total_units": "50.00"}
    assert_frame_equal(read(tmp_path, row(**written_so)).frame, usual)
    large = read(tmp_path, row(number_reported="1,234", people_total="1,234,567")).frame
    assert large["number_reported"].to_list() == [1234] and large["people_total"].to_list() == [1234567]


@pytest.mark.parametrize("name", ["BLOCK", "geoid", "GEOID10", "Block_Geoid"])
def test_the_block_may_have_other_names(tmp_path: Path, name: str) -> None:
    found = read(tmp_path, {**without(USUAL, "block"), name: ONE})
    assert found.frame["block"].to_list() == [ONE]


def test_the_block_may_be_in_parts(tmp_path: Path) -> None:
    parts = {"State": "39", "County": "49", "Tract": "100", "Block": "1000"}
    blank = dict(parts, Block="NA")
    found = read(tmp_path, {**without(USUAL, "block"), **parts}, {**without(row(code="B"), "block"), **blank})
    assert found.frame["block"].to_list() == ["390490001001000"] and found.left_out == {"no block": 1}


def test_without_a_key_the_row_number_stands_for_it(tmp_path: Path) -> None:
    found = read(tmp_path, *[without(one, "code") for one in rows_of(12)])
    assert found.frame["property_id"].to_list()[:3] == ["000002", "000003", "000005"]
    assert read(tmp_path, row(code="A"), row(code=" ")).frame["property_id"].to_list() == ["000002", "A"]


def test_our_own_file(tmp_path: Path) -> None:
    """What is suppressed there is left out here, and all else comes back."""
    homes, codes = county()
    given = statistics(homes, simulate(homes, np.random.default_rng(3), share=0.05), codes)
    path = tmp_path / "housing.parquet"
    given.write_parquet(path)
    found = read_properties(path, GEOGRAPHY, SHARES, exclusive=[BEDROOMS, RACES])
    published = given.filter(pl.col("pct_bed1") >= 0).sort("block", "property_id")
    assert_frame_equal(found.frame, published.select(COLUMNS))
    expected = {
        "suppressed": int((given["pct_bed1"] == -4).sum()),
        "poorly reported": int((given["pct_bed1"] == -5).sum()),
    }
    assert found.left_out == {reason: count for reason, count in expected.items() if count}
    assert found.properties == given.height and found.absent == ()
    given.write_csv(tmp_path / "housing.csv")
    again = read_properties(tmp_path / "housing.csv", GEOGRAPHY, SHARES, exclusive=[BEDROOMS, RACES])
    assert_frame_equal(again.frame, found.frame)


# What is left out


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"program_label": " Summary of all HUD Programs", "pct_bed1": "12.4", "block": "x"}, "summary row"),
        ({"block": ""}, "no block"),
        ({"block": "NA", "number_reported": "-4"}, "no block"),
        ({"number_reported": "-4"}, "suppressed"),
        ({"people_total": "-4.0"}, "suppressed"),
        ({"pct_2adults": "-4", "pct_bed1": "-5"}, "suppressed"),
        ({"number_reported": "0", "pct_2adults": "-4"}, "suppressed"),
        ({"number_reported": "-5"}, "poorly reported"),
        ({"people_total": "-5", "number_reported": "NA"}, "poorly reported"),
        ({"pct_multi": "-5.0"}, "poorly reported"),
        ({"number_reported": "0"}, "nobody reported"),
        ({"number_reported": "-1"}, "nobody reported"),
        ({"number_reported": "na"}, "nobody reported"),
        ({"number_reported": ""}, "nobody reported"),
        ({"pct_bed1": "52"}, "shares add up to more than 100"),
        ({"pct_white_nothsp": "26", "pct_multi": "2"}, "shares add up to more than 100"),
    ],
)
def test_each_reason(tmp_path: Path, changed: dict[str, str], reason: str) -> None:
    found = read(tmp_path, row(code="other"), row(**changed), exclusive=[BEDROOMS, RACES])
    assert found.left_out == {reason: 1} and found.frame["property_id"].to_list() == ["other"]
    assert found.properties == (1 if reason == "summary row" else 2)


@pytest.mark.parametrize(
    "changed",
    [
        {"number_reported": "60"},  # more than the units: averages
        {"total_units": "-4"},
        {"total_units": "", "people_total": "-1"},
        {"pct_bed1": "51"},  # three parts may be rounded up, by 1.5 points
        {"pct_bed1": "-1", "pct_bed2": "100", "pct_bed3": "1"},  # a part that is missing takes nothing
        {"pct_white_nothsp": "26"},
        {"pct_1adult": "100", "pct_2adults": "100"},  # not named as parts of one whole
    ],
)
def test_what_stays(tmp_path: Path, changed: dict[str, str]) -> None:
    found = read(tmp_path, row(**changed), exclusive=[BEDROOMS, RACES])
    assert found.left_out == {} and found.frame.height == 1
    for name, value in changed.items():
        assert found.frame[name].to_list() == [int(value) if value and int(value) >= 0 else None]


@given(st.lists(st.tuples(*[st.integers(0, 40)] * 4), min_size=1, max_size=20))
def test_true_shares_are_never_left_out(
    tmp_path_factory: pytest.TempPathFactory, counts: list[tuple[int, ...]]
) -> None:
    counts = [of for of in counts if sum(of)] or [(1, 0, 0, 0)]
    rows = []
    for number, (*parts, rest) in enumerate(counts):
        of = sum(parts) + rest
        rounded_up = [str((200 * part + of) // (2 * of)) for part in parts]
        rows.append(row(code=str(number), number_reported=str(of), **dict(zip(BEDROOMS, rounded_up, strict=True))))
    found = read(tmp_path_factory.mktemp("law"), *rows, exclusive=[BEDROOMS])
    assert found.left_out == {} and found.frame.height == len(rows)


def test_reasons_come_in_order_and_add_up(tmp_path: Path) -> None:
    rows = [
        row(code="1", number_reported="0"),
        row(code="2", pct_bed1="-5"),
        row(code="3", pct_bed1="-4"),
        row(code="4", block=""),
        row(code="5", block="", program_label="Mod Rehab"),
        row(code="1", program_label="Summary of All HUD Programs", program="1"),
        row(code="6"),
        row(code="6", sub_program="PH, MTW"),
        row(code="7", pct_bed1="100"),
    ]
    found = read(tmp_path, *rows, programs=["PUBLIC housing "], exclusive=[BEDROOMS])
    assert list(found.left_out.items()) == [
        ("summary row", 1), ("part of another row", 1), ("other program", 1), ("no block", 1), ("suppressed", 1),
        ("poorly reported", 1), ("nobody reported", 1), ("shares add up to more than 100", 1),
    ]  # fmt: skip
    assert found.frame["property_id"].to_list() == ["6"]
    assert found.properties == 7 and found.frame.height + sum(found.left_out.values()) == len(rows)


def test_all_may_be_left_out(tmp_path: Path) -> None:
    found = read(tmp_path, row(pct_bed1="-4"))
    assert found.frame.height == 0 and found.frame.columns == COLUMNS
    assert found.frame.dtypes == [pl.String] * 2 + [pl.Int64] * (len(COLUMNS) - 2)


def test_programs_of_one_property_are_kept_apart(tmp_path: Path) -> None:
    rows = [row(), row(program="3", program_label="Mod Rehab"), row(program="4", sub_program="a")]
    rows.append(row(program="4", sub_program="b"))
    assert read(tmp_path, *rows).frame["property_id"].to_list() == ["OH001"] * 4
    nameless = [row(code="", sub_program=part) for part in ("NA", "a", "a")]  # nothing says that they are one property
    assert read(tmp_path, *nameless).frame.height == 3
    labels = [without(one, "program", "sub_program") for one in rows[:2]]
    assert read(tmp_path, *labels).frame.height == 2
    assert read(tmp_path, *labels, programs=["mod rehab"]).left_out == {"other program": 1}


def test_values_of_rows_that_are_not_used_do_not_matter(tmp_path: Path) -> None:
    odd = {"pct_bed1": "12.4", "block": "short"}
    assert read(tmp_path, row(code="a", program_label="Mod Rehab", **odd), USUAL, programs=["Public Housing"])
    assert read(tmp_path, row(code="a", pct_bed1="many", block=""), USUAL).left_out == {"no block": 1}
    assert read(tmp_path, row(months_waiting="12.4")).frame.height == 1


# The file of blocks


@pytest.mark.parametrize("key", ["code", "property_id", "CODE"])
def test_blocks_from_a_second_file(tmp_path: Path, key: str) -> None:
    rows = [without(row(code=code), "block") for code in ("A", "B", "C", "D", "")]
    pairs = [("A", TWO), ("B", ONE), ("C", ""), ("X", ONE), ("A", TWO)]
    blocks = written(tmp_path, [{key: code, "block": block} for code, block in pairs], "blocks.csv")
    found = read(tmp_path, *rows, blocks=blocks)
    assert found.frame.select("property_id", "block").rows() == [("B", ONE), ("A", TWO)]
    assert found.left_out == {"no block": 3} and found.properties == 5


def test_the_file_of_blocks_goes_before_the_file_itself(tmp_path: Path) -> None:
    blocks = written(tmp_path, [{"code": "OH001", "geoid": TWO}], "blocks.parquet")
    assert read(tmp_path, row(block="whatever"), blocks=blocks).frame["block"].to_list() == [TWO]


def test_keys_that_are_numbers_are_text(tmp_path: Path) -> None:
    blocks = written(tmp_path, [{"code": "800000001", "block": TWO}], "blocks.csv")
    for key in (800000001, 800000001.0):
        path = written(tmp_path, [row(code=key)], "psh.parquet")
        frame = read_properties(path, GEOGRAPHY, SHARES, blocks=blocks).frame
        assert frame.select("property_id", "block").rows() == [("800000001", TWO)]


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([{"code": "OH001", "block": ONE}, {"code": "OH001", "block": TWO}],
         r"blocks.csv, line 3: property 'OH001' has another block than in line 2"),
        ([{"code": "OH001", "block": ONE[1:]}], r"blocks.csv, line 2: block '90490001001000' has 14 digits"),
        ([{"code": "1", "block": ONE}], r"blocks.csv: no property of psh.csv is in it; compare 'code'"),
        ([{"name": "OH001", "block": ONE}], r"blocks.csv: column 'property_id' is missing \(or 'code'"),
        ([{"code": "OH001", "tract": ONE[:11]}], r"blocks.csv: properties are placed by tract; .* a column 'block'"),
        ([{"code": "OH001", "property_id": "1", "block": ONE}], r"'code' and 'property_id' both say"),
    ],
)  # fmt: skip
def test_files_of_blocks_that_are_refused(tmp_path: Path, blocks: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path, USUAL, blocks=written(tmp_path, blocks, "blocks.csv"))


def test_a_file_of_blocks_needs_keys_to_go_by(tmp_path: Path) -> None:
    blocks = written(tmp_path, [{"code": "OH001", "block": ONE}], "blocks.csv")
    with pytest.raises(InputError, match=r"psh.csv: column 'property_id' is missing \(or 'code'"):
        read(tmp_path, without(USUAL, "code"), blocks=blocks)


# What is refused


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"pct_bed1": "12.x"}, r"column 'pct_bed1' is '12.x'; expected a percentage 0 to 100, or HUD's codes"),
        ({"pct_bed1": "-4.5"}, r"column 'pct_bed1' is '-4.5'; expected a percentage 0 to 100, or HUD's codes"),
        ({"pct_bed1": "12.1234567"}, r"'pct_bed1' is '12.1234567'; expected a percentage with at most 6 decimals"),
        ({"pct_bed1": "101"}, r"'pct_bed1' is '101'; expected a percentage"),
        ({"pct_bed1": "-2"}, r"'pct_bed1' is '-2'; expected a percentage"),
        ({"pct_bed1": "-4.4"}, r"'pct_bed1' is '-4.4'"),
        ({"pct_bed1": "about half of all the households"}, r"'pct_bed1' is 'about half of all th'; .* as HUD"),
        ({"pct_bed1": "1,000"}, r"'pct_bed1' is '1,000'"),
        ({"number_reported": "40.5"}, r"'number_reported' is '40.5'; expected a whole number from 0 to"),
        ({"number_reported": "-2"}, r"'number_reported' is '-2'; expected a whole number"),
        ({"number_reported": "1,23"}, r"'number_reported' is '1,23'"),
        ({"number_reported": "12%"}, r"'number_reported' is '12%'"),
        ({"people_total": "9999999999999999"}, r"'people_total' is '9999999999999999'; expected a whole number"),
        ({"total_units": "many"}, r"'total_units' is 'many'"),
        ({"block": ONE[1:]}, r"block '90490001001000' has 14 digits .* leading zero"),
        ({"block": "39049000100100?"}, r"block '39049000100100\?' has 15 characters"),
    ],
)
def test_values_that_are_refused(tmp_path: Path, changed: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=rf"^psh.csv, line 3: .*{message}"):
        read(tmp_path, row(code="first"), row(**changed))


def test_parquet_values_that_are_refused(tmp_path: Path) -> None:
    for value in (-4.5, float("inf"), 1e300, -3.0):
        path = written(tmp_path, [row(code="a", pct_bed1=1.0), row(pct_bed1=value)], "psh.parquet")
        with pytest.raises(InputError, match=r"psh.parquet, row 2: column 'pct_bed1' is"):
            read_properties(path, GEOGRAPHY, SHARES)
    with pytest.raises(InputError, match="column 'block' holds numbers; codes are text"):
        read_properties(written(tmp_path, [row(block=int(ONE))], "psh.parquet"), GEOGRAPHY, SHARES)


def test_an_error_names_the_column_as_the_file_does(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"column 'PCT_WHITE' is '12\.x'"):
        read(tmp_path, {**without(USUAL, "pct_white_nothsp"), "PCT_WHITE": "12.x"})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (row(pct_white="1"), r"columns 'pct_white_nothsp' and 'pct_white' both say 'pct_white_nothsp'; remove one"),
        (row(PCT_BED1="1"), r"columns 'pct_bed1' and 'PCT_BED1' both say 'pct_bed1'"),
        (row(property_id="1"), r"columns 'code' and 'property_id' both say"),
        (without(USUAL, "number_reported"), r"column 'number_reported' is missing"),
        (without(USUAL, "people_total", *SHARES), r"is this a file of properties\? found: code"),
        (without(USUAL, "block"), r"no column says which place a row is about; expected 'block'"),
        ({**without(USUAL, "block"), "state": "OH"}, r"properties are placed by state; .* or give a second file"),
    ],
)
def test_headers_that_are_refused(tmp_path: Path, given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=rf"^psh.csv: .*{message}"):
        read(tmp_path, given)


def test_a_single_statistic_is_enough(tmp_path: Path) -> None:
    found = read(tmp_path, without(USUAL, *SHARES, "total_units"))
    assert found.absent == ("total_units", *SHARES) and found.frame["people_total"].to_list() == [90]
    assert read(tmp_path, without(USUAL, "people_total", *list(SHARES)[1:])).frame["pct_bed1"].to_list() == [50]


def test_the_same_property_and_program_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^psh.csv, line 4: property 'OH001' stands in line 2 already"):
        read(tmp_path, row(), row(code="b"), row(pct_bed1="1"))
    with pytest.raises(InputError, match=r"psh.csv, line 3: .* line 2 already"):
        read(tmp_path, *[without(row(), "program", "program_label", "sub_program")] * 2)


def test_programs_that_no_row_has_are_refused(tmp_path: Path) -> None:
    rows = (USUAL, row(program_label="Mod Rehab", program="4"), row(program_label="Summary of All HUD Programs"))
    for name in ("Section 8", "Summary of All HUD Programs"):
        with pytest.raises(InputError, match=f"psh.csv: unknown program '{name}'; known: Mod Rehab, Public Housing$"):
            read(tmp_path, *rows, programs=["public housing", name])
    with pytest.raises(InputError, match="column 'program_label' is missing"):
        read(tmp_path, without(USUAL, "program_label"), programs=["Public Housing"])


def test_parts_of_a_whole_must_be_asked_for(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown share 'pct_bed4'; known: pct_1adult"):
        read(tmp_path, USUAL, exclusive=[("pct_bed1", "pct_bed4")])


def test_other_files_are_refused(tmp_path: Path) -> None:
    for name in ("PROJECT_2010.xlsx", "psh.XLS"):
        with pytest.raises(InputError, match=rf"^{name}: workbooks are not read; save as CSV"):
            read_properties(tmp_path / name, GEOGRAPHY, SHARES)
    with pytest.raises(InputError, match="there is no such file"):
        read_properties(tmp_path / "psh.csv", GEOGRAPHY, SHARES)
    (tmp_path / "psh.csv").write_text(",".join(USUAL) + "\n", encoding="utf-8")
    pl.DataFrame([USUAL]).clear().write_parquet(tmp_path / "psh.parquet")
    for name in ("psh.csv", "psh.parquet"):
        with pytest.raises(InputError, match=f"^{name}: a header and no rows"):
            read_properties(tmp_path / name, GEOGRAPHY, SHARES)
