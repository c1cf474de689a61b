"""Are files of the United States read as their offices publish them? Small twins of real ones, and the real ones."""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Callable
from fractions import Fraction
from math import floor
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import glasshouse as gh
from glasshouse.cli.main import main
from glasshouse.errors import InputError
from glasshouse.files.codebook import Codebook
from glasshouse.files.properties import read_properties
from glasshouse.files.records import open_records
from glasshouse.files.sample import read_sample
from glasshouse.files.shares import rounded, within_rounding
from glasshouse.files.summary import segments_of
from glasshouse.files.tables import open_tables
from glasshouse.scenarios.load import Scenario, load

BLOCKS = ("170310101001000", "170310101001001", "170310102002003")


@pytest.fixture(scope="module")
def world(data: Path) -> Path:
    if not (data / "world").is_dir():
        pytest.skip("the files of other offices are not beside the repository")
    return data / "world"


@pytest.fixture(scope="module")
def pl94() -> Scenario:
    return load("pl94")


@pytest.fixture(scope="module")
def housing() -> Scenario:
    return load("subsidised-housing")


def numbers(path: Path, scenario: Scenario) -> dict[tuple[str, str, str], int]:
    """Every number of a file that is not 0."""
    rows = pl.concat(list(open_tables(path, scenario).rows())).drop_nulls("variable")
    assert rows["lower"].equals(rows["upper"])
    return {(level, place, name): value for level, place, name, value, *_ in rows.iter_rows() if value}


# Long codes: summary level, variant, component, US, code


@pytest.mark.parametrize("column", ["GEOID", "geo_id", "GEOCODE", "block", "GEOID20"])
@pytest.mark.parametrize("prefix", ["7500000US", "1000000US", "1010000US", "10000US", ""])
def test_a_long_code_is_the_code_after_it(tmp_path: Path, pl94: Scenario, column: str, prefix: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"{column},P0010001\n" + "".join(f"{prefix}{code},{n}\n" for n, code in enumerate(BLOCKS, 1)))
    assert numbers(path, pl94) == {("block", code, "P0010001"): n for n, code in enumerate(BLOCKS, 1)}


def test_a_long_code_agrees_with_the_parts_beside_it(tmp_path: Path, pl94: Scenario) -> None:
    """The file of tracts of Illinois: GEOID, GEOCODE and parts, of which the last are blank."""
    path = tmp_path / "t.csv"
    path.write_text(
        "SUMLEV,GEOID,GEOCODE,STATE,COUNTY,TRACT,BLKGRP,BLOCK,P0010001\n"
        "140,1400000US17001000100,17001000100,17,001,000100,,,4644\n"
    )
    assert numbers(path, pl94) == {("tract", "17001000100", "P0010001"): 4644}
    path.write_text(path.read_text().replace("17,001,000100", "17,003,000100"))
    with pytest.raises(InputError, match="which are two places"):
        numbers(path, pl94)


def test_records_may_have_long_codes(tmp_path: Path, pl94: Scenario) -> None:
    header = "block,voting_age,white,black,aian,asian,nhopi,sor,hispanic\n"
    (tmp_path / "r.csv").write_text(header + f"7500000US{BLOCKS[0]},1,1,0,0,0,0,0,0\n")
    some = pl94.choose(["P1", "P2", "P3", "P4"])
    (frame,) = open_records(tmp_path / "r.csv", some).frames()
    assert frame["geoid"].to_list() == [BLOCKS[0]]


@pytest.mark.parametrize(
    ("code", "complaint"),
    [
        ("8600000US60601", "of summary level 860; expected one of 040, 050"),  # a ZIP code area has five digits too
        ("14000A0US17031010100", "of component A0, a part of an area; expected 00"),
        ("1400043US17031010100", "of component 43, a part of an area"),
        ("1400000US17031", "with 5 characters after 'US'; expected 11 at summary level 140"),
        ("0500000US1703101", "with 7 characters after 'US'; expected 5"),
    ],
)
def test_other_areas_are_not_taken_for_ours(tmp_path: Path, pl94: Scenario, code: str, complaint: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"GEOID,P0010001\n0500000US17031,7\n{code},3\n")
    with pytest.raises(InputError, match=f"t.csv, line 3: GEOID is '{code}', {complaint}"):
        numbers(path, pl94)


@pytest.mark.slow
def test_the_tracts_of_illinois_agree_with_themselves(world: Path) -> None:
    found = gh.check(world / "us" / "il2020.pl_COMBINED_TRACT.csv.gz", scenario="pl94")
    assert found.summary.agrees and found.summary.places == {"tract": 3265}


def test_tables_of_tracts_alone_are_not_called_absent(
    tmp_path: Path, pl94: Scenario, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.csv"
    path.write_text("GEOID,P0010001\n1400000US17001000100,4644\n")
    assert main(["check", str(path), "--scenario", "pl94"]) == 0
    said = capsys.readouterr().err
    assert "no number of P2, P3, P4, P5: taken as unpublished" in said
    assert "no number of P1 by block, only for other areas: taken as unpublished there" in said


@pytest.mark.slow  # 99,042 blocks
def test_the_blocks_of_cook_county_have_5194675_persons(world: Path, pl94: Scenario) -> None:
    path = world / "us" / "pl_2010_cook_block.csv.gz"
    found = numbers(path, pl94)
    assert sum(value for (_, _, name), value in found.items() if name == "P0010001") == 5_194_675
    checked = gh.check(path, scenario="pl94")
    assert checked.summary.agrees and checked.summary.places == {"block": 99_042}


# Test vintages of archives


def test_an_archive_of_a_test_vintage_is_read_back(tmp_path: Path, pl94: Scenario) -> None:
    records = tmp_path / "r.csv"
    people = [(BLOCKS[n % 3], n % 8, n % 2, n % 2, 1 - n % 2, n % 3 == 0) for n in range(40)]
    records.write_text(
        "block,gq,voting_age,white,black,aian,asian,nhopi,sor,hispanic\n"
        + "".join(f"{b},{gq},{v},{w},{k},0,0,0,0,{int(h)}\n" for b, gq, v, w, k, h in people)
    )
    gh.tabulate(records, scenario="pl94", out=tmp_path / "t.csv", subtotals=True)
    gh.tabulate(records, scenario="pl94", out=tmp_path / "il2018_2020Style.pl.zip")
    with zipfile.ZipFile(tmp_path / "il2018_2020Style.pl.zip") as archive:
        assert "ilgeo2018_2020Style.pl" in archive.namelist()
    assert numbers(tmp_path / "il2018_2020Style.pl.zip", pl94) == numbers(tmp_path / "t.csv", pl94)


def test_what_does_not_add_up_in_a_part_of_a_state_is_said(world: Path) -> None:
    """The Bureau's own test files, of which somebody kept 7 tracts and the county as it was."""
    found = gh.check(world / "us" / "ri2018_2020Style.pl.zip", scenario="pl94")
    assert not found.summary.agrees and found.summary.places["tract"] == 7


# NHGIS extracts


CODEBOOK = """Codebook for NHGIS data file 'nhgis0001_{name}'

Data Summary

Year:             2020
Geographic level: Block
Dataset:          {dataset}
   NHGIS code:    2020_{name}

Tables:

1. {title}
   Universe:    Total population
   Source code: {table}
   NHGIS code:  {code}

Data Dictionary

    Table 1:     {title}
    Universe:    Total population
    Source code: {table}
    NHGIS code:  {code}
{lines}
"""


def extract(folder: Path, *tables: tuple[str, str, int, str]) -> Path:
    """An extract as it is sent: a CSV file and its codebook for each (table, code, lines, title)."""
    path = folder / "nhgis0001_csv.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for table, code, lines, title in tables:
            columns = [f"{code}{line:03d}" for line in range(1, lines + 1)]
            listed = "\n".join(f"        {column}:      A line" for column in columns)
            text = CODEBOOK.format(name=table, dataset="A census", title=title, table=table, code=code, lines=listed)
            archive.writestr(f"nhgis0001_csv/nhgis0001_{table}_codebook.txt", text)
            head = ",".join(["GISJOIN", "STATEA", "COUNTYA", "TRACTA", "BLOCKA", *columns])
            rows = [
                ",".join([f"G{b}", b[:2], b[2:5], b[5:11], b[11:], *(str(n + at) for at in range(lines))])
                for n, b in enumerate(BLOCKS)
            ]
            archive.writestr(f"nhgis0001_csv/nhgis0001_{table}.csv", "\n".join([head, *rows]) + "\n")
    return path


def test_an_extract_is_read_from_the_zip(tmp_path: Path, pl94: Scenario) -> None:
    path = extract(tmp_path, ("P1", "U7B", 71, "Race"), ("B01001", "ALT0", 49, "Sex by Age"), ("P3", "U7D", 71, "Race"))
    found = numbers(path, pl94)
    assert {name[:4] for _, _, name in found} == {"P001", "P003"}
    assert found["block", BLOCKS[1], "P0010003"] == found["block", BLOCKS[1], "P0030003"] == 3
    assert len(found) == 2 * (3 * 71 - 1)


def test_an_extract_without_a_table_of_the_scenario_says_what_it_holds(tmp_path: Path, pl94: Scenario) -> None:
    path = extract(tmp_path, ("B01001", "ALT0", 49, "Sex by Age"), ("NH004", "D6Z", 8, "Year Structure Built"))
    expected = (
        r"nhgis0001_csv.zip: an NHGIS extract of B01001 \(Sex by Age, A census\); NH004 \(Year Structure Built, A "
        r"census\): no table of P.L. 94-171 .* \(P1, P2, P3, P4, P5\); order an extract with tables of the scenario"
    )
    with pytest.raises(InputError, match=expected):
        numbers(path, pl94)
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path)
    with pytest.raises(InputError, match=r"nhgis0001_NH004.csv: an NHGIS extract of NH004 \(Year Structure Built"):
        numbers(tmp_path / "nhgis0001_csv" / "nhgis0001_NH004.csv", pl94)


def test_an_extract_for_another_scenario_names_it(tmp_path: Path, pl94: Scenario) -> None:
    with pytest.raises(InputError, match=r"--scenario .*sf1-person.* has some of them"):
        numbers(extract(tmp_path, ("P12", "H76", 49, "Sex by Age")), pl94)


def test_a_table_of_the_same_name_is_not_taken_for_ours(tmp_path: Path, pl94: Scenario) -> None:
    """P2 is urban and rural in one product, origin by race in another."""
    with pytest.raises(InputError, match=r"table P2 has 6 lines; expected 73, as in P.L. 94-171 .*is --scenario right"):
        numbers(extract(tmp_path, ("P2", "H7W", 6, "Urban and Rural")), pl94)


def test_codes_of_a_codebook_are_text(tmp_path: Path, pl94: Scenario) -> None:
    path = tmp_path / "codebook.txt"
    path.write_text("Source code: P1\nNHGIS code: [[H7(\n")
    assert Codebook.read(path, pl94).names["[[H7(001"] == "P0010001"


def test_tables_that_are_not_the_scenario_s_need_no_name_of_its_pattern(tmp_path: Path, pl94: Scenario) -> None:
    path = tmp_path / "codebook.txt"
    path.write_text("Source code: [[[\nNHGIS code: ABC\nSource code: P1\nNHGIS code: H7V\n")
    book = Codebook.read(path, pl94)
    assert {name[:3] for name in book.names} == {"H7V"} and set(book.tables) >= {"[[[", "P1"}


def test_an_extract_with_something_missing_is_refused(tmp_path: Path, pl94: Scenario) -> None:
    for kept, complaint in (("_codebook.txt", "holds no .csv file"), ("", "no codebook of it")):
        path = tmp_path / "t.zip"
        with zipfile.ZipFile(extract(tmp_path, ("P1", "U7B", 71, "Race"))) as whole, zipfile.ZipFile(path, "w") as part:
            for name in whole.namelist():
                if kept and name.endswith(kept):
                    part.writestr(name, whole.read(name))
                elif not kept:
                    part.writestr(name.replace("P1_codebook", "P9_codebook"), whole.read(name))
        with pytest.raises(InputError, match=complaint):
            numbers(path, pl94)


@pytest.mark.parametrize(
    ("name", "table"), [("nhgis0972_csv.zip", "NH004"), ("nhgis1436_csv.zip", r"CW3 .*; B01001 .*; B01002")]
)
def test_real_extracts_are_refused_with_their_tables(world: Path, pl94: Scenario, name: str, table: str) -> None:
    with pytest.raises(InputError, match=rf"{name}: an NHGIS extract of {table} .*no table of P.L. 94-171"):
        numbers(world / "nhgis" / name, pl94)


# Shares with decimals


@given(st.integers(1, 5000), st.integers(0, 4), st.data())
def test_the_truth_is_within_rounding_at_any_decimals(of: int, decimals: int, data: st.DataObject) -> None:
    part = data.draw(st.integers(0, of))
    share = floor(Fraction(100 * 10**decimals * part, of) + Fraction(1, 2))
    low, high = within_rounding(share, of, decimals)
    assert low <= part <= high and low <= rounded(share, of, decimals) <= high
    if 100 * 10**decimals > of:
        assert low == high == part
    arrays = within_rounding(np.array([share]), np.array([of]), decimals)
    assert [one.tolist() for one in arrays] == [[low], [high]]


HEADER = "DEVELOPMENT_CODE,TOTAL_UNITS,NUMBER_REPORTED,PEOPLE_TOTAL,PCT_HISPANIC,PCT_BED1,PCT_BED2,PCT_BED3,"
HEADER += "CHLDRN_MBR_CNT,STATE2KX,CNTY2KX,TRACT2KX,BLOCK2KX\n"


def properties(folder: Path, *rows: str) -> Path:
    path = folder / "developments.csv"
    path.write_text(HEADER + "".join(f"{row}\n" for row in rows))
    return path


def test_the_decimals_of_a_share_are_those_of_its_column(tmp_path: Path, housing: Scenario) -> None:
    path = properties(
        tmp_path, "A,72,66,102,0,39.39,50,10.61,23,01,089,002100,2014", "B,9,8,-4,0,-4,-4,-4,-4,01,089,002100,",
        "C,40,40,80,5,50.0,40.0,10,20,01,089,002100,2015",
    )  # fmt: skip
    about = housing.occupancy
    assert about is not None
    found = read_properties(
        path, housing.geography, about.shares, exclusive=about.wholes, counts=about.counts,
        of_units=about.shares_of_units,
    )  # fmt: skip
    used = ("pct_bed1", "pct_bed2", "pct_bed3", "pct_hispanic")
    assert {name: found.decimals[name] for name in used} == dict(zip(used, (2, 0, 2, 0), strict=True))
    assert found.frame["property_id"].to_list() == ["A", "C"] and found.left_out == {"no block": 1}
    assert found.frame["block"].to_list() == ["010890021002014", "010890021002015"]
    assert found.frame["pct_bed1"].to_list() == [3939, 5000] and found.frame["pct_bed2"].to_list() == [50, 40]
    assert found.frame["children_total"].to_list() == [23, 20]


def test_a_share_that_no_number_of_households_gives_is_left_out(tmp_path: Path, housing: Scenario) -> None:
    """33 among shares with decimals is 33.00: no number of 66 households, nor of 72 units."""
    path = properties(
        tmp_path, "A,72,66,102,0,39.39,50,10.61,23,01,089,002100,2014", "B,72,66,102,0,33,50,17,23,01,089,002100,2014",
        "C,72,66,102,4.55,38.89,50,11.11,23,01,089,002100,2014",
    )  # fmt: skip
    about = housing.occupancy
    assert about is not None
    found = read_properties(
        path, housing.geography, about.shares, exclusive=about.wholes, of_units=about.shares_of_units
    )
    assert found.left_out == {"a share that no number of households gives": 1}
    assert found.frame["property_id"].to_list() == ["A", "C"]  # 38.89% is 28 of 72 units


def occupied(folder: Path, sizes: dict[int, int]) -> Path:
    """The tables of a block with so many households of each size, nobody under 18, householders white."""
    households, people = sum(sizes.values()), sum(size * number for size, number in sizes.items())
    values = {
        "P0010001": people, "P0160001": people, "P0160003": people, "H0030001": households, "H0030002": households,
        "P0150003": households,
    }  # fmt: skip
    values |= {f"H013{size + 1:04d}": number for size, number in sizes.items()}
    path = folder / "tables.csv"
    path.write_text("geoid,variable,value\n" + "".join(f"990010001001000,{n},{v}\n" for n, v in values.items()))
    return path


def test_decimals_make_detect_sharper(tmp_path: Path) -> None:
    """Of 3 households in 4 units, 66.67% in one bedroom are 2; of 67% one may be the unit that stands empty."""
    tables = occupied(tmp_path, {3: 3})
    found = {}
    for name, shares in {"whole": "67,33,0", "printed": "66.67,33.33,0"}.items():
        path = properties(tmp_path, f"A,4,3,9,0,{shares},0,99,001,000100,1000")
        for model in ("sharp", "paper"):
            (row,) = gh.detect(tables, properties=path, model=model, workers=1).places.iter_rows(named=True)
            found[name, model] = (row["answer"], row["violations_low"])
    assert found == {
        ("whole", "sharp"): ("certain", 1), ("printed", "sharp"): ("certain", 2),
        ("whole", "paper"): ("certain", 1), ("printed", "paper"): ("certain", 2),
    }  # fmt: skip


def test_children_of_a_property_must_have_room(tmp_path: Path) -> None:
    """Nobody in the block is under 18: a property with a child there contradicts the census."""
    tables = occupied(tmp_path, {3: 3})
    answers = {}
    for children in ("0", "1", "-1"):
        path = properties(tmp_path, f"A,4,3,9,0,66.67,33.33,0,{children},99,001,000100,1000")
        answers[children] = gh.detect(tables, properties=path, workers=1).places["answer"].to_list()
    assert answers == {"0": ["certain"], "1": ["contradiction"], "-1": ["certain"]}


def test_the_agency_s_own_file_gives_counts(world: Path, housing: Scenario) -> None:
    about = housing.occupancy
    assert about is not None
    path = world / "hud" / "public_housing_developments_7rows.csv"
    found = read_properties(
        path, housing.geography, about.shares, exclusive=about.wholes, counts=about.counts,
        of_units=about.shares_of_units,
    )  # fmt: skip
    assert found.frame.height == 6 and found.left_out == {"no block": 1}
    for row in found.frame.iter_rows(named=True):
        for name, digits in found.decimals.items():
            if row[name] is not None:
                low, high = within_rounding(row[name], row["number_reported"], digits)
                assert low == high
    brookside = found.frame.filter(pl.col("property_id") == "AL047000051").row(0, named=True)
    assert within_rounding(brookside["pct_bed1"], 66, 2) == (26, 26)


# The 2020 Demographic and Housing Characteristics File


@pytest.fixture(scope="module")
def dhc() -> Scenario:
    return load("dhc-person")


def test_lines_that_both_censuses_publish_mean_the_same(dhc: Scenario, sf1: Scenario) -> None:
    """Golden by way of the 2010 cells, which are compared with the official list one by one."""
    shared = [table for table in sf1.tables if table.name in dhc.by_table]
    assert len(shared) == len(sf1.tables) == 34
    assert dhc.schema == sf1.schema
    for table in shared:
        other = dhc.table(table.name)
        assert (other.level, other.cells) == (table.level, table.cells)
        for one, two in zip(table.lines, other.lines, strict=True):
            assert (one.variable, one.predicate, one.parts) == (two.variable, two.predicate, two.parts)


def test_what_only_2020_publishes(dhc: Scenario) -> None:
    """Golden: titles of the official table matrix of 2020."""
    assert len(dhc.tables) == 62 and sum(len(table.cells) for table in dhc.tables) == 1948 + 3296
    race, age = dhc.schema.attribute("race"), dhc.schema.attribute("age")

    def described(table: str, line: int) -> dict[str, object]:
        predicate = dhc.table(table).line(line).predicate
        assert predicate is not None
        return dict(predicate.by_attribute)

    with_other = frozenset(level for level, label in enumerate(race.levels) if "sor" in label.split("+"))
    under_5 = frozenset(range(5))
    assert described("P12AH", 3) == {"sex": {0}, "age": under_5, "race": with_other, "hispanic": {1}}
    assert described("P12AB", 1) == {"race": with_other, "hispanic": {0}}
    assert described("P12V", 49)["age"] == frozenset(range(85, len(age)))
    assert described("P12P", 1) == {"race": {race.level("white")}, "hispanic": {1}}
    assert described("P3", 8) == {"race": frozenset(range(6, 63))}
    assert described("P4", 2) == {"hispanic": {0}} and described("P5", 17)["hispanic"] == {1}
    for spelling in ("P12AH_003N", "P012AH03", "P012AH003"):
        assert dhc.official[spelling] == ("P12AH", 3)
    assert dhc.official["PCT12O_209N"] == ("PCT12O", 209)


@pytest.mark.parametrize("name", ["dhc-person", "dhc-household"])
def test_tables_stand_where_the_matrix_of_the_archive_puts_them(name: str) -> None:
    """Golden: the official table matrix; a segment has at most 255 fields, five of them links."""
    segments = {segment.number: segment for segment in segments_of(load(name))}
    assert max(segment.fields for segment in segments.values()) == 255
    first = {
        table: (number, index) for number, segment in segments.items()
        for index, table, variable in segment.variables("{table}_{line}") if variable.endswith("_1")
    }  # fmt: skip
    assert first["P1"] == (5, 5) and first["P12A"] == (6, 198) and first["P12AA"] == (7, 5)
    assert first["P12B"] == (8, 152) and first["P12X"] == (13, 5) and first["P16"] == (13, 228)
    assert first["H12D"] == (2, 5) and first["P17"] == (14, 185) and first["P19"] == (15, 68)
    assert first["PCT12"] == (21, 5) and first["PCT12O"] == (36, 5)


def test_households_stand_where_the_specification_says(data: Path) -> None:
    places = {
        variable: (segment.number, index) for segment in segments_of(load("dhc-household"))
        for index, _, variable in segment.variables("{table}_{line}")
    }  # fmt: skip
    with (data / "dhc_spec" / "dhc_household_tables.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            assert places[f"{row['table']}_{row['line']}"] == (int(row["segment"]), int(row["column0"]))


def people(path: Path, number: int = 60) -> Path:
    """Persons of three blocks of Illinois."""
    races = ["1,0,0,0,0,0", "0,1,0,0,0,0", "1,0,0,1,0,0", "0,0,1,0,0,1"]
    rows = [f"{BLOCKS[n % 3]},{'male' if n % 2 else 'female'},{7 * n % 111},{races[n % 4]},{n % 5 // 4}"
            for n in range(number)]  # fmt: skip
    path.write_text("block,sex,age,white,black,aian,asian,nhopi,sor,hispanic\n" + "\n".join(rows) + "\n")
    return path


def homes(path: Path) -> Path:
    """Households and a vacant unit."""
    header = "block,TEN,VACS,HHSIZE,HHT,HHT2,THHSPAN,THHLDRAGE,THHRACE,TP18,TP65\n"
    rows = ["1,0,2,1,2,1,4,1,0,0", "3,0,1,6,5,2,2,2,0,0", "0,1,0,0,0,0,0,0,0,0", "2,0,4,1,1,1,3,4,1,0"]
    path.write_text(header + "".join(f"{BLOCKS[n % 3]},{row}\n" for n, row in enumerate(rows * 2)))
    return path


def rewritten(path: Path, out: Path, change: dict[str, Callable[[str], str]]) -> Path:
    """An archive with some of its members changed."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            text = old.read(name).decode("latin-1")
            new.writestr(name, next((how for part, how in change.items() if part in name), str)(text))
    return out


@pytest.mark.parametrize(
    ("name", "made"), [("dhc-person", people), pytest.param("dhc-household", homes, marks=pytest.mark.slow)]
)
def test_the_archive_of_2020_is_read_back(tmp_path: Path, name: str, made: Callable[[Path], Path]) -> None:
    records, scenario = made(tmp_path / "r.csv"), load(name)
    gh.tabulate(records, scenario=name, out=tmp_path / "t.csv", subtotals=True, levels=("county", "state"))
    gh.tabulate(records, scenario=name, out=tmp_path / "il2020.dhc.zip", levels=("county", "state"))
    found, expected = numbers(tmp_path / "il2020.dhc.zip", scenario), numbers(tmp_path / "t.csv", scenario)
    assert found == expected and {"block", "county", "state"} <= {level for level, _, _ in found}
    with zipfile.ZipFile(tmp_path / "il2020.dhc.zip") as archive:
        header = archive.read("ilgeo2020.dhc").decode("latin-1").splitlines()
        assert {line.count("|") for line in header} == {96}


def test_medians_and_other_summary_levels_of_blocks_do_no_harm(tmp_path: Path, dhc: Scenario) -> None:
    path = tmp_path / "il2020.dhc.zip"
    gh.tabulate(people(tmp_path / "r.csv"), scenario="dhc-person", out=path)
    expected = numbers(path, dhc)

    def medians(text: str) -> str:
        fields = [line.split("|") for line in text.splitlines()]
        return "".join("|".join([*row[:152], *["38.5"] * 30, *row[182:]]) + "\n" for row in fields)

    for level in ("100", "750"):
        levels = {"geo2020": lambda text, level=level: text.replace("|101|", f"|{level}|"), "00013": medians}
        assert numbers(rewritten(path, tmp_path / f"{level}.zip", levels), dhc) == expected
    short = rewritten(path, tmp_path / "short.zip", {"00006": lambda text: text.replace("|0\n", "\n", 1)})
    with pytest.raises(InputError, match=r"il000062020.dhc, line 1: found 246 fields; expected 247 fields separated"):
        numbers(short, dhc)


def test_the_names_of_the_interface_of_2020_are_read(tmp_path: Path, dhc: Scenario) -> None:
    path = tmp_path / "api.csv"
    path.write_text("GEO_ID,state,county,tract,block,P1_001N,P12AH_003N,H1_001N\n"
                    f"1000000US{BLOCKS[0]},17,031,010100,1000,5,2,3\n")  # fmt: skip
    found = numbers(path, dhc)
    assert found == {("block", BLOCKS[0], "P0010001"): 5, ("block", BLOCKS[0], "P012AH003"): 2}


# Public-use files of the American Community Survey


PERSONS = [  # household, age, RAC1P, HISP, RELSHIPP, weight; our races, our relation
    ("2021HU01", 40, 1, 1, 20, 30, "1,0,0,0,0,0", "householder"),
    ("2021HU01", 41, 9, 1, 21, 31, "1,0,0,1,0,0", "spouse"),
    ("2021HU01", 7, 6, 1, 25, 29, "0,0,0,1,0,0", "child"),
    ("2021HU02", 70, 5, 2, 20, 12, "0,0,1,0,0,0", "householder"),
    ("2021HU03", 33, 8, 24, 20, 50, "0,0,0,0,0,1", "householder"),
    ("2021HU04", 29, 7, 1, 20, 8, "0,0,0,0,1,0", "householder"),
]


def public_use(path: Path, *, since_2019: bool = True, state: bool = True, weight: bool = True) -> Path:
    """A file of persons as the survey publishes it, with one in group quarters."""
    relation = {20: 0, 21: 1, 25: 2, 37: 16}
    rows = [*(one[:6] for one in PERSONS), ("2021GQ05", 80, 1, 1, 37, 5)]
    header = ["RT", "SERIALNO", "SPORDER", "PUMA", *["ST"] * state, *["PWGTP"] * weight, "AGEP", "HISP", "RAC1P"]
    lines = [",".join([*header, "RELSHIPP" if since_2019 else "RELP"])]
    for home, age, race, origin, kin, pounds in rows:
        told = ["P", home, "1", "00100", *["1"] * state, *[f"{pounds:05d}"] * weight, age, f"{origin:02d}", race]
        lines.append(",".join(str(one) for one in [*told, kin if since_2019 else f"{relation[kin]:02d}"]))
    path.write_text("\n".join(lines) + "\n")
    return path


def kinds(path: Path) -> dict[str, list[tuple[object, ...]]]:
    return {
        state: [
            (*row[:3], tuple(row[3]), row[4]) for row in zip(
                one.persons.tolist(), one.children.tolist(), one.householder.tolist(), one.present.tolist(),
                one.households.tolist(), strict=True,
            )
        ] for state, one in read_sample(path).items()
    }  # fmt: skip


def own_sample(path: Path) -> Path:
    header = "household,state,age,white,black,aian,asian,nhopi,sor,hispanic,relation\n"
    path.write_text(header + "".join(f"{p[0]},01,{p[1]},{p[6]},{int(p[3] > 1)},{p[7]}\n" for p in PERSONS))
    return path


@pytest.mark.parametrize("since_2019", [True, False])
def test_a_public_use_file_is_the_sample_that_it_says(tmp_path: Path, since_2019: bool) -> None:
    expected = kinds(own_sample(tmp_path / "own.csv"))
    alone = kinds(public_use(tmp_path / "psam_p01.csv", since_2019=since_2019, weight=False))
    assert alone == expected and len(expected["01"]) == 4
    weighed = kinds(public_use(tmp_path / "psam_p01.csv", since_2019=since_2019))
    assert [row[:4] for row in weighed["01"]] == [row[:4] for row in expected["01"]]
    assert sorted(row[4] for row in weighed["01"]) == [8, 12, 30, 50]  # those of the householders


def both(folder: Path, homes: str, **options: bool) -> Path:
    path = folder / "csv_al.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("psam_p01.csv", public_use(folder / "p.csv", **options).read_text())
        archive.writestr("psam_h01.csv", homes)
        archive.writestr("ACS2021_PUMS_README.pdf", b"%PDF")
    return path


HOMES = "SERIALNO,ST,WGTP,NP\n2021HU01,01,30,3\n2021HU02,01,12,1\n2021HU03,01,50,1\n2021HU04,01,8,1\n2021GQ05,01,0,1\n"


def test_persons_and_households_are_joined(tmp_path: Path) -> None:
    whole = kinds(public_use(tmp_path / "psam_p01.csv"))
    assert kinds(both(tmp_path, HOMES)) == whole
    assert kinds(both(tmp_path, HOMES, state=False, weight=False)) == whole


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (
            ("2021HU01,01,30,3", "2021HU01,01,30,4"),
            r"household '2021HU01' has NP 4 and 3 persons in the file of persons",
        ),
        (
            ("2021HU03,01", "2021HU33,01"),
            r"psam_p01.csv, line 6: SERIALNO is '2021HU03', which csv_al.zip: psam_h01.csv has not",
        ),
        (("2021HU03,01", "2021HU02,01"), r"psam_h01.csv: household '2021HU02' stands in it twice"),
        (("SERIALNO,ST", "SERIALNO,X"), r"a public-use file of persons without ST or STATE"),
    ],
)
def test_households_that_do_not_fit_are_refused(tmp_path: Path, change: tuple[str, str], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        read_sample(both(tmp_path, HOMES.replace(*change), state=False))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("1,00030,40,01,1,20", "1,00030,40,25,1,20"), r"line 2: column 'HISP' is '25'; expected a whole number"),
        (
            ("1,00030,40,01,1,20", "1,00030,40,01,0,20"),
            r"line 2: column 'RAC1P' is '0'; expected a whole number from 1",
        ),
        (("1,00030,40,01,1,20", "1,00030,x,01,1,20"), r"line 2: column 'AGEP' is 'x'; expected a whole number"),
        (("1,00030,40,01,1,20", "1,00030,40,01,1,36"), r"1 households have no person whose relation is 'householder'"),
        (("RELSHIPP", "REL"), r"without RELSHIPP or RELP \(relationship to the householder\)"),
        (("AGEP", "AGE"), r"households without their persons"),
    ],
)
def test_public_use_files_with_mistakes_are_refused(tmp_path: Path, change: tuple[str, str], complaint: str) -> None:
    path = public_use(tmp_path / "psam_p01.csv")
    path.write_text(path.read_text().replace(*change, 1))
    with pytest.raises(InputError, match=complaint):
        read_sample(path)


def test_lines_of_fixed_width_are_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "al.2010.pums.01.txt"
    path.write_text("H" + "0123456789" * 8 + "\nP" + "0123456789" * 5 + "\n")
    with pytest.raises(InputError, match=r"al.2010.pums.01.txt: lines of fixed width, .* 2010 Census; expected CSV"):
        read_sample(path)


AREAS = """
title = "Persons of a sample"
[geography]
place = "sample_geog"
unit = "sample_geog"
levels = { sample_geog = 1 }
[attribute.sex]
levels = ["male", "female"]
codes = ["1", "2"]
column = "SEX"
[attribute.age]
range = [0, 99]
column = "AGEP"
[recode]
sex = { attribute = "sex" }
age = { attribute = "age", bins = "0-19 20-64 65+" }
[table]
T1 = { title = "Sex by age", level = "sample_geog", by = ["sex", "age"] }
"""


def test_a_scenario_of_one_s_own_counts_public_use_records(world: Path, tmp_path: Path) -> None:
    (tmp_path / "areas").mkdir()
    (tmp_path / "areas" / "scenario.toml").write_text(AREAS)
    counted = gh.tabulate(world / "pums" / "person_sample.csv", scenario=str(tmp_path / "areas"), subtotals=True)
    assert counted.summary.records == 7924
    for name, complaint in {"person_sample": "without HISP", "household_sample": "without their persons"}.items():
        with pytest.raises(InputError, match=complaint):
            read_sample(world / "pums" / f"{name}.csv")
