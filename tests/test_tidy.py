"""Are tables as offices write them read as the release they are? And is whatever could mean two things refused?"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import glasshouse as gh
from glasshouse.commands.scenarios import scenarios
from glasshouse.errors import InputError
from glasshouse.files import frames
from glasshouse.files.tables import open_tables
from glasshouse.model.printed import Printed, Rounded
from glasshouse.model.records import UNLIMITED, Interval
from glasshouse.model.release import Release, Table
from glasshouse.scenarios.load import Scenario, load
from tests.often import often

NORLAND = Path(__file__).resolve().parents[1] / "examples" / "own-country"
TOY = """
title = "Toy"
[geography]
place = "ward"
unit = "town"
levels = { town = 2, ward = 4 }
[attribute.sex]
levels = ["woman", "man"]
[attribute.age]
range = [0, 99]
[recode]
sex = { attribute = "sex" }
age = { attribute = "age", bins = "0-14 15-64 65+" }
[table]
W1 = { title = "Sex by age", level = "ward", by = ["sex", "age"] }
"""
FULL = """ward,sex,age,count
AA01,total,total,9
AA01,woman,total,5
AA01,woman,0-14,1
AA01,woman,15-64,c
AA01,woman,65+,2
AA01,man,total,4
AA01,man,0-14,0
AA01,man,15-64,4
AA01,man,65+,0
"""


def scenario_of(folder: Path, text: str = TOY, **files: str) -> Scenario:
    folder.mkdir(exist_ok=True)
    (folder / "scenario.toml").write_text(text)
    for name, content in files.items():
        (folder / name.replace("_", ".")).write_text(content)
    return load(str(folder))


def read(path: Path, scenario: Scenario, **how: object) -> dict[tuple[str, str, str], tuple[int, int]]:
    rows = pl.concat(list(open_tables(path, scenario, **how).rows()))  # type: ignore[arg-type]
    return {(level, geoid, variable): (low, high) for level, geoid, variable, low, high, _ in rows.iter_rows()}


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def numbers_of(releases: Iterator[Release]) -> dict[tuple[str, str, str], Interval]:
    return {
        (level, place, variable): counts.value(place, variable)
        for release in releases
        for level, counts in release.levels.items()
        for place in counts.places
        for variable in counts.variables
    }


def labels(scenario: Scenario, table: Table) -> list[dict[str, str]]:
    """For every line of a table, the label of each recode; written without the code under test."""
    found: list[dict[str, str]] = []

    def walk(path: dict[str, str], depth: int) -> None:
        found.append(path)
        if depth < len(table.by):
            recode = scenario.recodes[table.by[depth]]
            for group in recode.groups:
                walk({**path, recode.attribute: group.label}, depth + 1)

    walk({}, 0)
    assert len(found) == len(table.lines)
    return found


def as_tidy(scenario: Scenario, long: pl.DataFrame, folder: Path, seed: int = 1) -> None:
    """A file for each table, as an office would write it: a column for each attribute, 'all' for everybody."""
    folder.mkdir()
    for table in scenario.tables:
        words = labels(scenario, table)
        name = {line.variable: said for line, said in zip(table.lines, words, strict=True)}
        columns = [scenario.recodes[one].attribute for one in table.by]
        rows = [
            {"area": geoid, **{column: name[variable].get(column, "total") for column in columns}, "count": value}
            for geoid, variable, value in long.filter(table=table.name).select("geoid", "variable", "value").iter_rows()
        ]
        random.Random(seed).shuffle(rows)
        pl.DataFrame(rows).write_csv(folder / f"{table.name}.csv")


@pytest.fixture(scope="module")
def norland(tmp_path_factory: pytest.TempPathFactory) -> tuple[Scenario, Path]:
    out = tmp_path_factory.mktemp("norland") / "tables.csv"
    gh.tabulate(NORLAND / "records.csv", scenario=str(NORLAND / "scenario"), subtotals=True, out=out)
    return load(str(NORLAND / "scenario")), out


def test_a_release_written_tidy_and_read_back_is_the_same(norland: tuple[Scenario, Path], tmp_path: Path) -> None:
    scenario, out = norland
    as_tidy(scenario, pl.read_csv(out), tmp_path / "tidy")
    mine = numbers_of(open_tables(tmp_path / "tidy", scenario).releases())
    assert mine == numbers_of(open_tables(out, scenario).releases())


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 1000), st.sampled_from([2, 3, 5]), st.booleans())
def test_read_back_after_marks_and_rounding_the_truth_is_inside(
    norland: tuple[Scenario, Path], tmp_path_factory: pytest.TempPathFactory, seed: int, base: int, marks: bool
) -> None:
    scenario, out = norland
    rng, folder = random.Random(seed), tmp_path_factory.mktemp("tidy")
    long = pl.read_csv(out)

    def shown(count: int) -> str:
        if marks:
            return "c" if 1 <= count < base else str(count)
        return str(count // base * base + base * (rng.randrange(base) < count % base))

    printed = Printed(markers={"c": Interval(1, base - 1)}) if marks else Printed(Rounded(base))
    as_tidy(scenario, long.with_columns(value=pl.col("value").map_elements(shown, pl.String)), folder / "t", seed)
    truth = numbers_of(open_tables(out, scenario).releases())
    mine = numbers_of(open_tables(folder / "t", scenario, printed=printed).releases())
    assert mine.keys() == truth.keys()
    for cell, count in truth.items():
        assert mine[cell].lower <= count.lower <= mine[cell].upper
        if marks:
            assert mine[cell] == ((1, base - 1) if 1 <= count.lower < base else count)


def test_words_marks_and_levels_of_a_tidy_file(tmp_path: Path) -> None:
    toy = scenario_of(tmp_path / "toy", TOY + '[printed]\nmarkers = { c = "1..4" }\n')
    found = read(written(tmp_path / "full.csv", FULL), toy)
    assert found["ward", "AA01", "W1_001"] == (9, 9)
    assert found["ward", "AA01", "W1_004"] == (1, 4)
    assert len(found) == 9
    town = read(written(tmp_path / "town.csv", "geoid,Sex,AGE,Value\nAA,MAN,65-99,3\nAA,woman,15-64,1\n"), toy)
    assert town == {("town", "AA", "W1_009"): (3, 3), ("town", "AA", "W1_004"): (1, 1)}


def test_without_a_meaning_a_mark_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"full\.csv, line 5: the value is 'c'.*--marker"):
        read(written(tmp_path / "full.csv", FULL), scenario_of(tmp_path / "toy"))


def test_pieces_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy = scenario_of(tmp_path / "toy")
    places = [f"A{town}{ward:02}" for town in "ABC" for ward in range(40)]
    rows = [f"{place},{sex},{age},{n % 7}" for n, place in enumerate(places) for sex in ("woman", "man")
            for age in ("0-14", "15-64", "65+")]  # fmt: skip
    path = written(tmp_path / "many.csv", "ward,sex,age,count\n" + "\n".join(rows) + "\n")
    whole = read(path, toy)
    monkeypatch.setattr(frames, "BLOCK_BYTES", 100)
    assert read(path, toy) == whole
    assert len(whole) == len(rows)


def test_columns_that_a_scenario_declares(tmp_path: Path) -> None:
    text = (
        TOY
        + """
[files]
value = "OBS"
status = "FLAG"
place = "GEO"
ignore = ["NOTE"]
only = { TIME = "2021" }
[files.column.GENDER]
attribute = "sex"
codes = { T = "*", F = "woman", M = "man" }
[files.column.AGEGROUP]
attribute = "age"
codes = { TOTAL = "*", Y_LT15 = "0-14", "Y15-64" = "15-64", Y_GE65 = "65+" }
[printed]
markers = { c = "1..4", r = "shown", blank = "any" }
thousands = ","
"""
    )
    toy = scenario_of(tmp_path / "toy", text)
    path = written(
        tmp_path / "x.csv",
        "\ufeffFREQ;TIME;GEO;GENDER;AGEGROUP;OBS;FLAG;NOTE\nA;2021;AA01;F;Y_GE65;1,234;r;x\nA;2021;AA01;M;Y_LT15;;c;y\n"
        "A;2020;AA01;M;Y_LT15;99;;z\nA;2021;AA01;T;TOTAL;2000;A;\nA;2021;AA01;F;TOTAL;;;\n",
    )
    assert read(path, toy) == {
        ("ward", "AA01", "W1_005"): (1234, 1234),
        ("ward", "AA01", "W1_007"): (1, 4),
        ("ward", "AA01", "W1_001"): (2000, 2000),
        ("ward", "AA01", "W1_002"): (0, UNLIMITED),
    }


def test_categories_over_columns_and_ends_of_intervals(tmp_path: Path) -> None:
    toy = scenario_of(tmp_path / "toy", TOY + '[files]\narea = "AA01"\n')
    over = read(written(tmp_path / "over.csv", "sex,0-14,15-64,65+\nwoman,1,2,3\nman,4,5,6\n"), toy)
    assert [over["ward", "AA01", f"W1_00{n}"][0] for n in (3, 4, 5, 7, 8, 9)] == [1, 2, 3, 4, 5, 6]
    text = (
        TOY
        + '[files]\nignore = ["x"]\n[files.column.column]\nattribute = "age"\ncodes = { Old = "65+", Young = "0-14" }\n'
    )
    named = scenario_of(tmp_path / "named", text)
    over = read(written(tmp_path / "named.csv", "ward,sex,Young,Old,x\nAA01,woman,1,3,99\n"), named)
    assert over == {("ward", "AA01", "W1_003"): (1, 1), ("ward", "AA01", "W1_005"): (3, 3)}
    ends = read(written(tmp_path / "ends.csv", "sex,age,lower,upper\nman,65+,2,5\nman,0-14,3,\n"), toy)
    assert ends == {("ward", "AA01", "W1_009"): (2, 5), ("ward", "AA01", "W1_007"): (3, UNLIMITED)}


def test_places_with_codes_that_do_not_nest(tmp_path: Path) -> None:
    listed = "level,code,name,geoid\ntown,E10000001,Abtown,AA\nward,E05000009,Northside,AA01\nward,E05000007,Up,AA02\n"
    text = TOY.replace("levels = { town", 'places = "places.csv"\nlevels = { town')
    toy = scenario_of(tmp_path / "toy", text, places_csv=listed)
    path = written(tmp_path / "x.csv", "area,sex,age,count\nE05000009,man,65+,3\nUp,man,65+,4\nE10000001,man,65+,7\n")
    assert read(path, toy) == {
        ("ward", "AA01", "W1_009"): (3, 3), ("ward", "AA02", "W1_009"): (4, 4), ("town", "AA", "W1_009"): (7, 7),
    }  # fmt: skip
    with pytest.raises(InputError, match=r"y\.csv, line 2: 'E0' is no code or name of a place in places\.csv"):
        read(written(tmp_path / "y.csv", "area,sex,age,count\nE0,man,65+,3\n"), toy)
    twice = listed + "ward,E10000001,Abtown,AA03\n"
    toy = scenario_of(tmp_path / "toy", text, places_csv=twice)
    with pytest.raises(InputError, match="expected one place"):
        read(path, toy)
    level = written(tmp_path / "z.csv", "level,area,sex,age,count\ntown,E10000001,man,65+,7\n")
    assert read(level, toy) == {("town", "AA", "W1_009"): (7, 7)}
    for wrong in ("level,code,geoid\nward,x,AA1\n", "level,geoid\nward,AA01\n", "level,code,geoid\ncity,x,AA01\n",
                  "level,code,geoid\nward,x,AA01\nward,y,AA01\n"):  # fmt: skip
        with pytest.raises(InputError, match=r"places\.csv"):
            read(path, scenario_of(tmp_path / "toy", text, places_csv=wrong))


def test_a_total_goes_to_the_table_that_has_it(tmp_path: Path) -> None:
    path = written(tmp_path / "x.csv", "ward,sex,age,count\nAA01,man,65+,3\nAA01,total,65+,5\nAA01,total,total,9\n")
    file = open_tables(path, scenario_of(tmp_path / "toy"))
    assert [row[2] for frame in file.rows() for row in frame.iter_rows()] == ["W1_009", "W1_001"]
    assert file.seen.totals_aside == 1
    more = TOY + 'W2 = { title = "Age", level = "ward", by = ["age"] }\n'
    assert ("ward", "AA01", "W2_004") in read(path, scenario_of(tmp_path / "toy", more))


def test_totals_alone_do_not_say_that_all_else_is_zero(tmp_path: Path) -> None:
    """At town level only totals are printed: the cells of towns are not 0, they are not published."""
    toy = scenario_of(tmp_path / "toy")
    path = written(tmp_path / "x.csv", "area,sex,age,count\nAA01,man,65+,3\nAA,total,total,5\nAA,man,total,3\n")
    found = numbers_of(open_tables(path, toy).releases())
    assert {key[2] for key in found if key[0] == "town"} == {"W1_001", "W1_006"}
    assert found["ward", "AA01", "W1_003"] == (0, 0)


def test_a_row_that_is_absent_is_a_printed_zero(tmp_path: Path) -> None:
    toy = scenario_of(tmp_path / "toy", TOY + "[printed]\nrounded = { base = 3 }\n")
    path = written(tmp_path / "x.csv", "area,sex,age,count\nAA01,man,65+,3\n")
    found = numbers_of(open_tables(path, toy).releases())
    assert found["ward", "AA01", "W1_009"] == (1, 5)
    assert found["ward", "AA01", "W1_003"] == (0, 2)
    hidden = numbers_of(open_tables(path, toy, missing="hidden").releases())
    assert hidden["ward", "AA01", "W1_003"] == (0, UNLIMITED)


def test_two_files_may_print_the_same_number(tmp_path: Path) -> None:
    toy = scenario_of(tmp_path / "toy", TOY + '[printed]\nmarkers = { c = "1..4", d = "3..9" }\n')
    folder = tmp_path / "both"
    one = written(folder / "a.csv", "area,sex,age,count\nAA01,man,65+,c\n")
    written(folder / "b.csv", "area,sex,age,count\nAA01,man,65+,d\n")
    assert numbers_of(open_tables(folder, toy).releases())["ward", "AA01", "W1_009"] == (3, 4)
    one.write_text("area,sex,age,count\nAA01,man,65+,2\n")
    with pytest.raises(InputError, match=r"b\.csv, line 2: W1_009 of ward AA01 was given before, in a\.csv, line 2"):
        numbers_of(open_tables(folder, toy).releases())
    one.write_text("area,sex,age,count\nAA01,man,65+,3\nAA01,man,65+,3\n")
    with pytest.raises(InputError, match=r"a\.csv, line 3: .* expected each number once"):
        numbers_of(open_tables(folder, toy).releases())


UNIVERSES = (
    TOY
    + """
A1 = { title = "Sex of the young", level = "ward", by = ["sex"], universe = { age = "0-14" } }
A2 = { title = "Sex of the old", level = "ward", by = ["sex"], universe = { age = "65+" } }
"""
)


def test_what_fits_two_tables_is_refused_unless_the_file_says_which(tmp_path: Path) -> None:
    toy = scenario_of(tmp_path / "toy", UNIVERSES)
    text = "area,sex,count\nAA01,man,3\nAA01,total,4\n"
    with pytest.raises(InputError, match="fit the tables A1 and A2, which count different records"):
        read(written(tmp_path / "x.csv", text), toy)
    assert set(read(written(tmp_path / "A2.csv", text), toy)) == {
        ("ward", "AA01", "A2_003"),
        ("ward", "AA01", "A2_001"),
    }
    column = "table,area,sex,count\nA1,AA01,man,3\nA2,AA01,man,4\n"
    assert len(read(written(tmp_path / "y.csv", column), toy)) == 2
    told = "area,sex,age,count\nAA01,man,65+,3\n"  # also a line of W1: the same records, so no two meanings
    assert set(read(written(tmp_path / "z.csv", told), toy)) == {("ward", "AA01", "W1_009")}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ward,sex,age,count\nAA01,Femal,65+,3\n", "line 2: column 'sex' is 'Femal'; expected a word for sex: woman"),
        ("ward,sex,age,count\nAA01,man,15-29,3\n", "no line of table W1 counts age 15 to 29"),
        ("ward,sex,age,count\nAA1,man,65+,3\n", "line 2: ward 'AA1' has 3"),
        ("ward,sex,age,count\n,man,65+,3\n", "line 2: ward '' is empty"),
        ("ward,sex,year,age,count\nAA01,man,1,65+,3\nAA01,man,2,65+,3\n", "line 3: column 'year' is '2'.*nothing says"),
        ("ward,town,sex,age,count\nAA01,AA,man,65+,3\n", "ward and town may all be the place"),
        ("sex,age,count\nman,65+,3\n", "no column says which place"),
        ("ward,sex,age,value,count\nAA01,man,65+,3,3\n", "value and count may both hold the numbers"),
        ("ward,sex,count\nAA01,man,3\n", "tells sex apart, and no table of the scenario does; known: W1"),
        ("level,ward,sex,age,count\ncity,AA01,man,65+,3\n", "line 2: unknown level 'city'"),
        ("table,ward,sex,age,count\nW9,AA01,man,65+,3\n", "line 2: unknown table 'W9'"),
        ("ward,sex,age,count\nAA01,man,65+,3\nAA01,man,65+,3\n", "line 3: W1_009 of ward AA01 was given before"),
        ("ward,sex,age,count\nAA01,man,65+\n", "line 2: 3 fields; expected 4"),
        ("ward,sex,age,count,line\nAA01,man,65+,3,1\n", "a column 'line' besides the numbers"),
    ],
)
def test_bad_input_is_refused_with_file_line_and_remedy(text: str, words: str, tmp_path: Path) -> None:
    path = written(tmp_path / "x.csv", text)
    with pytest.raises(InputError, match=words) as caught:
        list(open_tables(path, scenario_of(tmp_path / "toy")).releases())
    assert "x.csv" in str(caught.value)


@pytest.mark.parametrize(
    ("section", "words"),
    [
        ('[files]\nplace = "x"\narea = "AA"\n', "'place' and 'area' are both given"),
        ('[files]\nplace = "x"\nvalue = "x"\n', "the column 'x' has two meanings"),
        ("[files.column.S]\nattribute = \"gender\"\n", "unknown attribute 'gender'"),
        ("[files.column.S]\nattribute = \"sex\"\ncodes = { F = \"female\" }\n", "code 'F' means 'female'"),
        ("[files]\ncolumns = 3\n", "entry of files"),
        ("[printed]\nrounded = { base = 1 }\n", "base of rounding is 1"),
        ("[printed]\nrounded = true\n", "'printed.rounded' is true"),
        ("[printed]\ncell_key = { table = \"none.csv\" }\n", "none.csv"),
        ("[printed]\nnoise = { within = \"2\" }\n", "expected a whole number or a number"),
    ],
)  # fmt: skip
def test_a_layout_that_means_nothing_is_refused(section: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=words):
        scenario_of(tmp_path / "toy", TOY + section)


def test_a_word_that_means_two_things_is_refused(tmp_path: Path) -> None:
    two = TOY.replace("[table]", 'other = { attribute = "age", groups = [{ label = "young", levels = "0-14" }, '
                      '{ label = "old", levels = "15+" }] }\nthird = { attribute = "age", groups = [{ label = "young", '
                      'levels = "0-29" }, { label = "30+", levels = "30+" }] }\n[table]')  # fmt: skip
    with pytest.raises(InputError, match=r"line 2: column 'age': 'young' means different things of age"):
        read(written(tmp_path / "x.csv", "ward,sex,age,count\nAA01,man,young,3\n"), scenario_of(tmp_path / "toy", two))


def test_suppressed_tables_as_printed_are_read_back(norland: tuple[Scenario, Path], tmp_path: Path) -> None:
    scenario, out = norland
    name, values, ends = scenario.source, tmp_path / "v.csv", tmp_path / "t.csv"
    gh.protect.suppress(out, scenario=name, below=3, values=values, out=ends)
    again = gh.read_tables(values, scenario=name, marker={"blank": "1..2"})
    assert again.frame.equals(gh.read_tables(ends, scenario=name).frame)
    with pytest.raises(InputError, match="--marker blank="):
        gh.read_tables(values, scenario=name)
    gh.protect.round(out, scenario=name, base=3, values=values, out=ends, overwrite=True)
    again = gh.read_tables(values, scenario=name, rounded="3")
    assert again.frame.equals(gh.read_tables(ends, scenario=name).frame)
    gh.protect.cellkey(out, scenario=name, values=values, out=ends, overwrite=True)
    again = gh.read_tables(values, scenario=name, cell_key=Path(gh.__file__).parent / "protection" / "ptable.csv")
    assert again.frame.equals(gh.read_tables(ends, scenario=name).frame)


def test_an_invented_country_end_to_end(norland: tuple[Scenario, Path], tmp_path: Path) -> None:
    """Tidy files with 'c' for 1 and 2, in a folder: what check and bounds say is what they say of the intervals."""
    scenario, out = norland
    hide = pl.when(pl.col("value").is_between(1, 2)).then(pl.lit("c")).otherwise(pl.col("value").cast(pl.String))
    as_tidy(scenario, pl.read_csv(out).with_columns(value=hide), tmp_path / "tidy")
    (tmp_path / "tidy" / "README.md").write_text("our tables")
    ends = tmp_path / "t.csv"
    gh.protect.suppress(out, scenario=scenario.source, below=3, out=ends)
    asked = {"scenario": scenario.source, "marker": {"c": "1..2"}}
    checked = gh.check(tmp_path / "tidy", **asked)
    assert checked.summary.agrees
    assert "README.md" in " ".join(checked.notes)
    mine = gh.bounds(tmp_path / "tidy", only=["W1", "W2"], **asked).bounds
    theirs = gh.bounds(ends, scenario=scenario.source, only=["W1", "W2"]).bounds
    told = ["level", "geoid", "variable", "lower", "upper", "low", "high", "verdict"]
    assert mine.select(told).equals(theirs.select(told))
    assert mine.height > 100


def test_options_go_before_the_scenario(tmp_path: Path) -> None:
    toy = scenario_of(tmp_path / "toy", TOY + '[printed]\nrounded = 3\nmarkers = { c = "1..4" }\n')
    path = written(tmp_path / "x.csv", "area,sex,age,count\nAA01,man,65+,3\nAA01,woman,65+,c\n")

    def told(**how: object) -> list[list[int]]:
        frame = gh.read_tables(path, scenario=str(tmp_path / "toy"), **how).frame  # type: ignore[arg-type]
        return frame.sort("variable").select("lower", "upper").to_numpy().tolist()

    assert told() == [[1, 4], [1, 5]]
    assert told(exact=True) == [[1, 4], [3, 3]]
    assert told(rounded="3:down") == [[1, 4], [3, 5]]
    assert told(noise_within=1) == [[1, 4], [2, 4]]
    assert told(marker={"c": "any"}) == [[0, UNLIMITED], [1, 5]]
    with pytest.raises(InputError, match="--exact"):
        told(exact=True, rounded="3")
    with pytest.raises(InputError, match="expected one of rounded"):
        told(noise_within=1, rounded="3")
    assert toy.printed.rule == Rounded(3)


def test_wide_files_are_printed_in_the_same_ways(tmp_path: Path) -> None:
    scenario_of(tmp_path / "toy")
    text = "ward,W1_001,W1_003,W1_004\nAA01,9,3,0\nAA02,0,,6\n"
    path = written(tmp_path / "wide.csv", text)
    how = {"scenario": str(tmp_path / "toy"), "rounded": "3", "marker": {"blank": "1..2"}}
    told = {(row[0], row[1]): row[2:] for row in gh.read_tables(path, **how).frame.select(
        "geoid", "variable", "lower", "upper").iter_rows()}  # fmt: skip
    assert told["AA01", "W1_001"] == (7, 11)
    assert told["AA02", "W1_003"] == (1, 2)
    found = numbers_of(
        open_tables(path, load(how["scenario"]), printed=Printed(Rounded(3), {"": Interval(1, 2)})).releases()
    )
    assert found["ward", "AA01", "W1_004"] == (0, 2)  # a 0 of a wide file is not left out as if it were exact
    assert found["ward", "AA02", "W1_004"] == (4, 8)


HARMED = {
    "x.csv": FULL.replace(",c", ",4").encode(),
    "places.csv": b"level,code,name,geoid\ntown,E1,Ab,AA\nward,AA01,Up,AA01\n",
    "ptable.csv": b"count,change,probability\n0,0,1\n1,-1,0.5\n1,1,0.5\n2,0,1\n3,0,1\n",
}


@settings(max_examples=often(150), deadline=None)
@given(st.sampled_from(sorted(HARMED)), st.randoms(use_true_random=False))
def test_harmed_files_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, name: str, rng: random.Random
) -> None:
    folder = tmp_path_factory.mktemp("harmed")
    content = bytearray(HARMED[name])
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(content) + 1)
        letters = [rng.choice(b',;\n"0-9.cA\xff\x00 *') for _ in range(rng.randint(0, 4))]
        content[at : at + rng.randint(0, 5)] = bytes(letters)
    text = TOY.replace("levels = { town", 'places = "places.csv"\nlevels = { town')
    text += '[printed]\ncell_key = { table = "ptable.csv" }\n'
    (folder / "toy").mkdir()
    for file, usual in HARMED.items():
        into = folder if file == "x.csv" else folder / "toy"
        (into / file).write_bytes(bytes(content) if file == name else usual)
    with suppress(InputError):
        numbers_of(open_tables(folder / "x.csv", scenario_of(folder / "toy", text)).releases())


def test_what_every_line_means_is_listed() -> None:
    listed = scenarios(str(NORLAND / "scenario"), lines=True)
    lines = listed.summary.lines
    assert lines is not None
    assert {"variable": "W1_003", "level": "ward", "words": "sex woman, age 0-6"}.items() <= lines[2].items()
    assert any(line.startswith("W1_003") for line in listed.lines())
    with pytest.raises(InputError, match="--lines needs a scenario"):
        scenarios(lines=True)


def test_columns_may_be_called_as_ours_are(tmp_path: Path) -> None:
    """A file of New Zealand has a column `description`; it is left aside, whatever we call our own."""
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "scenario.toml").write_text(
        """title = "Own"
[geography]
levels = { ward = 3 }
place = "ward"
unit = "ward"
[attribute.sex]
levels = ["women", "men"]
[recode]
sex = { attribute = "sex" }
[table]
T1 = { title = "Sex", level = "ward", by = ["sex"] }
[files]
ignore = ["description", "lower", "variables", ".place"]
"""
    )
    path = tmp_path / "t.csv"
    path.write_text("ward,sex,description,lower,.place,count\nA01,women,x,9,q,3\nA01,men,y,8,q,4\n")
    found = pl.concat(list(open_tables(path, load(str(folder))).rows()))
    assert sorted(found.select("variable", "lower").rows()) == [("T1_002", 3), ("T1_003", 4)]
