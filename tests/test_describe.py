"""Does a scenario found in tables say what they say? Laws on random tables, and what is asked instead of guessed."""

from __future__ import annotations

import csv
import time
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import glasshouse as gh
from glasshouse.commands.describe import Described
from glasshouse.errors import InputError
from glasshouse.files.describing.bins import Bin, read_bin, read_bins
from glasshouse.files.describing.figures import read_figures
from glasshouse.model.schema import Predicate, Recode
from glasshouse.scenarios.load import Scenario, load
from tests.often import often

Row = tuple[str, ...]
SEXES, WORK = ("women", "men"), ("works", "looks for work", "neither")
BINS = {"0-14": range(15), "15-29": range(15, 30), "30-64": range(30, 65), "65+": range(65, 200)}
COARSE = {"Under 30": range(30), "30 and over": range(30, 200)}


def write(path: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return path


def proper(found: Described, folder: Path) -> Scenario:
    """The scenario that was written."""
    found.write(folder / "proper")
    return load(str(folder / "proper"))


def meant(scenario: Scenario, files: Mapping[str, Any], row: Mapping[str, str]) -> Predicate:
    """Whom a row counts, by what is written of its columns."""
    sets = {}
    for column, text in row.items():
        if column not in files["column"]:
            continue
        entry = files["column"][column]
        attribute = scenario.schema.attribute(entry["attribute"])
        word = entry.get("codes", {}).get(text, text)
        if word == "*":
            continue
        groups = {
            group.label: group.levels
            for recode in scenario.recodes.values()
            if recode.attribute == attribute.name
            for group in _every(recode)
        }
        codes = {code[0][0]: level for level, code in enumerate(attribute.readings[0].codes)}
        sets[attribute.name] = (
            {attribute.level(word)} if word in attribute.levels else groups[word] if word in groups else {codes[word]}
        )
    return scenario.schema.where(sets)


def _every(recode: Recode) -> list[Any]:
    waiting, found = list(recode.groups), []
    while waiting:
        found.append(waiting.pop())
        waiting += found[-1].parts
    return found


@st.composite
def people(draw: st.DrawFn) -> list[tuple[str, str, int, str]]:
    one = st.tuples(
        st.sampled_from(["A1", "A2", "B1"]), st.sampled_from(SEXES), st.integers(0, 99), st.sampled_from(WORK)
    )
    return draw(st.lists(one, min_size=3, max_size=40))


def tables(records: list[tuple[str, str, int, str]], shape: int, folder: Path) -> list[Path]:
    """Tables of some records: crossed, with sums over any attribute or none, coarser and finer bins, two levels."""
    sums = [["Total"] if shape & bit else [] for bit in (1, 2, 4)]
    places = ["A1", "A2", "B1"] + (["A", "B"] if shape & 8 else [])
    every = range(200)

    def count(place: str, sexes: Iterable[str], ages: Iterable[int], work: Iterable[str]) -> int:
        wanted, some, kinds = set(ages), set(sexes), set(work)
        return sum(r[0].startswith(place) and r[1] in some and r[2] in wanted and r[3] in kinds for r in records)

    sexes = {sex: [sex] for sex in SEXES} | dict.fromkeys(sums[0], SEXES)
    ages = {**BINS, **(COARSE if shape & 16 else {}), **dict.fromkeys(sums[1], every)}
    work = {kind: [kind] for kind in WORK} | dict.fromkeys(sums[2], WORK)
    first = [
        (place, sex, age, count(place, sexes[sex], ages[age], WORK)) for place, sex, age in product(places, sexes, ages)
    ]
    second = [
        (place, kind, age, count(place, SEXES, span, work[kind]))
        for place, kind, (age, span) in product(places, work, COARSE.items())
    ]
    return [
        write(folder / "sex.csv", ["district", "sex", "age", "count"], first),
        write(folder / "work.csv", ["district", "work", "age", "count"], second),
    ]


@settings(max_examples=often(60))
@given(people(), st.integers(0, 31))
def test_the_records_counted_again_give_the_published_tables(
    records: list[tuple[str, str, int, str]], shape: int
) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        files = tables(records, shape, folder)
        told = {name: "Total" if shape & bit else "none" for name, bit in (("sex", 1), ("age", 2), ("work", 4))}
        if shape & 2:
            del told["age"]  # it has one in the first table and none in the second
        found = gh.describe(files, rounded="none", missing="zero", total=told)
        scenario = proper(found, folder)
        written = tomllib.loads(found.scenario)["files"]
        rows = [(place, sex, str(age), kind) for place, sex, age, kind in records]
        place = scenario.geography.place
        raw = write(folder / "records.csv", [place, "sex", "age", "work"], rows)
        counted = gh.tabulate(raw, scenario=str(folder / "proper"), subtotals=True).tables
        again = {(level, code, name): int(number) for level, code, name, number in counted.select(
            "level", "geoid", "variable", "value").rows()}  # fmt: skip
        levels = {length: level for level, length in scenario.geography.lengths.items()}
        for file in files:
            for row in csv.DictReader(file.read_text(encoding="utf-8").splitlines()):
                wanted = meant(scenario, written, row)
                level = levels[len(row["district"])]
                lines = [
                    line.variable
                    for table in scenario.tables
                    if table.level == level
                    for line in table.lines
                    if line.predicate == wanted
                ]
                assert lines, (row, wanted)
                for line in lines:
                    assert again.get((level, row["district"], line), 0) == int(row["count"]), row


def small(folder: Path, rows: Sequence[Sequence[object]], header: Sequence[str] = ("district", "sex", "count")) -> Path:
    return write(folder / "small.csv", header, rows)


PLAIN = [
    ("A1", "Total", 5),
    ("A1", "women", 2),
    ("A1", "men", 3),
    ("A2", "Total", 9),
    ("A2", "women", 8),
    ("A2", "men", 1),
]


def test_what_was_found_is_told(tmp_path: Path) -> None:
    found = gh.describe(small(tmp_path, PLAIN))
    assert [one.name for one in found.summary.dimensions] == ["sex"]
    assert "'Total' is the total (2 of 2 sums agree)" in found.summary.dimensions[0].found
    assert found.summary.questions == () and found.summary.tables[0].lines == 3
    written = tomllib.loads(found.scenario)
    assert written["files"]["column"]["sex"]["codes"] == {"Total": "*"} and written["files"]["place"] == "district"
    assert tomllib.loads(found.audit)["input"]["tables"] == str(tmp_path / "small.csv")


def test_every_mark_is_asked_for_at_once(tmp_path: Path) -> None:
    rows = [("A1", "women", "c"), ("A1", "men", ".."), ("A2", "women", ""), ("A2", "men", 4)]
    with pytest.raises(gh.InputError) as error:
        gh.describe(small(tmp_path, rows))
    said = str(error.value)
    assert all(text in said for text in ("--marker 'c=1..4'", "--marker '..=1..4'", "--marker 'blank=1..4'"))
    found = gh.describe(small(tmp_path, rows), marker={"c": "1..4", "..": "any", "blank": "0"})
    assert tomllib.loads(found.scenario)["printed"]["markers"] == {"c": "1..4", "..": "any", "blank": "0"}
    with pytest.raises(gh.InputError, match=r"expected a number, a range"):
        gh.describe(small(tmp_path, rows), marker={"c": "4..1"}, accept=True)
    with pytest.raises(gh.InputError, match="no number is marked so"):
        gh.describe(small(tmp_path, PLAIN), marker={"x": "any"})


def test_what_is_accepted_is_safe_and_said(tmp_path: Path) -> None:
    rows = [(f"A{n}", sex, 3 * (n + 1)) for n in range(20) for sex in SEXES]
    with pytest.raises(gh.InputError, match=r"every number is a multiple of 3.*--rounded 3:random"):
        gh.describe(small(tmp_path, rows), levels="district")
    with pytest.raises(gh.InputError, match=r"do not begin with each other.*--levels NAME"):  # A1 is no region of A10
        gh.describe(small(tmp_path, rows), rounded="none")
    rows = [(f"A{n:02}", sex, 3 * (n + 1)) for n in range(20) for sex in SEXES]
    found = gh.describe(small(tmp_path, rows), accept=True)
    assert tomllib.loads(found.scenario)["printed"]["rounded"] == {"base": 3, "how": "random"}
    assert "multiple of 3" in found.summary.questions[0] and "# - every number is a multiple of 3" in found.scenario
    exact = gh.describe(small(tmp_path, rows), rounded="none")
    assert "rounded" not in tomllib.loads(exact.scenario)["printed"]
    with pytest.raises(gh.InputError, match="no multiples of 5"):
        gh.describe(small(tmp_path, rows), rounded="5")


def test_a_total_that_is_none_is_not_taken_in_silence(tmp_path: Path) -> None:
    wrong = [(place, sex, int(number) - (sex == "Total")) for place, sex, number in PLAIN]
    with pytest.raises(gh.InputError, match=r"'Total' of 'sex' is not the sum of its parts in 2 of 2 rows"):
        gh.describe(small(tmp_path, wrong), accept=True)
    found = gh.describe(small(tmp_path, wrong), noise_within=1)
    assert tomllib.loads(found.scenario)["printed"]["noise"] == {"within": 1}


def test_parts_that_nobody_prints_are_a_level_of_their_own(tmp_path: Path) -> None:
    more = [(place, sex, int(number) + (sex == "Total")) for place, sex, number in PLAIN]
    found = gh.describe(small(tmp_path, more), accept=True)
    written = tomllib.loads(found.scenario)
    assert written["attribute"]["sex"]["levels"] == ["women", "men", "not printed"]
    assert written["printed"]["missing"] == "hidden"
    with pytest.raises(gh.InputError, match="--missing zero"):
        gh.describe(small(tmp_path, more), accept=True, missing="zero")


def test_a_sum_that_no_word_tells_is_asked_for(tmp_path: Path) -> None:
    rows = [(f"A{n}", code, [3 * n + 3, n + 1, 2 * n + 2, 7][at]) for n in range(9) for at, code in enumerate("pqrs")]
    with pytest.raises(gh.InputError, match=r"'p' of 'kind' is the sum of the 2 codes below it"):
        gh.describe(small(tmp_path, rows, ("district", "kind", "count")))


def test_files_that_count_different_people_are_asked_for(tmp_path: Path) -> None:
    one = write(tmp_path / "all.csv", ["area", "age", "count"], [("A1", "0-14", 3), ("A1", "15+", 5)])
    other = write(tmp_path / "work.csv", ["area", "work", "count"], [("A1", "works", 4), ("A1", "does not", 1)])
    with pytest.raises(gh.InputError, match=r"work.csv and all.csv count different people in 1 of 1 places"):
        gh.describe([one, other])
    found = gh.describe([one, other], universe={"work.csv:age": "15+"})
    assert tomllib.loads(found.scenario)["table"]["T2"]["universe"] == {"age": "15+"}


def test_a_table_inside_another_is_one_table(tmp_path: Path) -> None:
    """Bins with and without their subtotals: a file that fits two tables could be read as either."""
    fine = [("A1", "0-14", 3), ("A1", "15-29", 5), ("A1", "30+", 1)]
    files = [
        write(tmp_path / "fine.csv", ["area", "age", "count"], fine),
        write(tmp_path / "all.csv", ["area", "age", "count"], [*fine, ("A1", "0-29", 8)]),
    ]
    written = tomllib.loads(gh.describe(files).scenario)
    assert list(written["table"]) == ["T1"] and written["table"]["T1"]["by"] == ["age-3-nested"]


def test_files_of_different_places_are_asked_for(tmp_path: Path) -> None:
    """A table that some places lack would be read as zeros there."""
    one = write(tmp_path / "age.csv", ["area", "age", "count"], [("A1", "0-14", 3), ("A1", "15+", 5)])
    other = write(tmp_path / "sex.csv", ["area", "sex", "count"], [("A2", "men", 4), ("A2", "women", 1)])
    with pytest.raises(gh.InputError, match=r"has no row of 1 places that another file has \(first: A2\)"):
        gh.describe([one, other])
    assert tomllib.loads(gh.describe([one, other], accept=True).scenario)["printed"]["missing"] == "hidden"


def test_records_are_refused(tmp_path: Path) -> None:
    rows = [("A1", "women", 33), ("A1", "women", 34), ("A1", "women", 33)]
    with pytest.raises(gh.InputError, match="count them first with glasshouse tabulate"):
        gh.describe(
            write(tmp_path / "records.csv", ["serial", "sex", "age"], [(n, *r[1:]) for n, r in enumerate(rows)])
        )
    with pytest.raises(gh.InputError, match="rows have the same codes as another row"):
        gh.describe(small(tmp_path, rows))
    with pytest.raises(gh.InputError, match="no whole number"):
        gh.describe(small(tmp_path, [("A1", "women", 0.5)]))


def test_places_that_do_not_nest_are_listed(tmp_path: Path) -> None:
    rows = [("Nord", "women", 2), ("Nord", "men", 1), ("Süd-West", "women", 3), ("Süd-West", "men", 0),
            ("Total", "women", 5), ("Total", "men", 1)]  # fmt: skip
    found = gh.describe(small(tmp_path, rows))
    assert tomllib.loads(found.scenario)["geography"]["places"] == "places.csv"
    listed = found.frame("places").rows()
    assert [(level, code, geoid) for level, code, _, geoid in listed] == [
        ("region", "Total", "Total"), ("area", "Nord", "Total1"), ("area", "Süd-West", "Total2")
    ]  # fmt: skip
    assert "2 of 2 numbers of areas are the sums of the places inside" in found.summary.printed
    proper(found, tmp_path)


def test_a_lookup_says_which_places_lie_in_which(tmp_path: Path) -> None:
    rows = [(code, sex, 4) for code in ("E01", "E02", "W01", "R1X", "R2X") for sex in SEXES]
    lookup = write(tmp_path / "lookup.csv", ["LADCD", "RGNCD"], [("E01", "R1X"), ("E02", "R1X"), ("W01", "R2X")])
    found = gh.describe(small(tmp_path, rows), places=lookup, rounded="none")
    geography = tomllib.loads(found.scenario)["geography"]
    assert geography["levels"] == {"rgncd": 3, "ladcd": 6} and geography["place"] == "ladcd"
    with pytest.raises(gh.InputError, match="codes of the tables are not in it"):
        gh.describe(small(tmp_path, [*rows, ("X99", "women", 1)]), places=lookup, rounded="none")


def test_one_area_is_asked_for(tmp_path: Path) -> None:
    rows = [("women", 2), ("men", 3)]
    path = small(tmp_path, rows, ("sex", "count"))
    with pytest.raises(gh.InputError, match="no column looks like places"):
        gh.describe(path)
    assert tomllib.loads(gh.describe(path, area="XX").scenario)["files"]["area"] == "XX"


def test_one_of_several_times_is_described(tmp_path: Path) -> None:
    rows = [("A1", sex, year, 2) for sex in SEXES for year in (2011, 2021)]
    path = small(tmp_path, rows, ("district", "sex", "year", "count"))
    with pytest.raises(gh.InputError, match=r"--only 'year=2021'"):
        gh.describe(path)
    found = gh.describe(path, keep={"year": "2021"})
    assert found.summary.numbers == 2 and tomllib.loads(found.scenario)["files"]["only"] == {"year": "2021"}


def test_coarser_codes_are_linked_when_both_make_up_the_total(tmp_path: Path) -> None:
    fine = [("A1", "Total", 9), ("A1", "a", 2), ("A1", "b", 3), ("A1", "c", 4)]
    coarse = [("A1", "Total", 9), ("A1", "a", 2), ("A1", "others", 7)]
    files = [
        write(tmp_path / f"{name}.csv", ["area", "faith", "count"], rows)
        for name, rows in (("fine", fine), ("coarse", coarse))
    ]
    with pytest.raises(gh.InputError, match=r"--group 'faith:others=b\|c'"):
        gh.describe(files)
    written = tomllib.loads(gh.describe(files, group={"faith:others": "b|c"}).scenario)
    assert written["attribute"]["faith"]["levels"] == ["a", "b", "c"]
    assert {"label": "others", "levels": ["b", "c"]} in written["recode"]["faith-2"]["groups"]


@pytest.mark.parametrize(("label", "expected"), [
    ("Aged 5 to 9 years", Bin(5, 9)), ("Y_LT15", Bin(0, 14)), ("Y15T29", Bin(15, 29)), ("Y15-29", Bin(15, 29)),
    ("85+", Bin(85, None)), ("Y_GE85", Bin(85, None)), ("Aged 4 years and under", Bin(0, 4)),
    ("Aged under 1 year", Bin(0, 0)), ("100 years and over", Bin(100, None)), ("17", Bin(17, 17)), ("Y17", Bin(17, 17)),
    ("0\u20134", Bin(0, 4)), ("unter 3 Jahre", Bin(0, 2)), ("75 und älter", Bin(75, None)),
    ("De 60 y más", Bin(60, None)),
    ("6 or more persons", Bin(6, None)), ("90+ år", Bin(90, None)), ("Menos de 15", Bin(0, 14)),
    ("Total", None), ("women", None), ("Not stated", None), ("9-5", None), ("A10", None), ("", None),
])  # fmt: skip
def test_labels_that_are_bins(label: str, expected: Bin | None) -> None:
    assert read_bin(label) == expected


def test_codes_that_are_bare_numbers_may_be_anything() -> None:
    assert read_bins("sex", {"1": "", "2": ""}) == {}
    assert read_bins("sex", {"1": "Male", "2": "Female"}) == {}
    assert set(read_bins("age", {"1": "", "2": ""})) == {"1", "2"}
    assert set(read_bins("rooms", {"1": "1 room", "2": "2 rooms", "3": "3 or more rooms"})) == {"1", "2", "3"}


def test_many_places_cost_no_square_of_them(tmp_path: Path) -> None:
    """Twenty thousand, some of which lie in others, took minutes: of each, all others were looked through."""
    counts = {f"{place:06d}": 1 for place in range(20_000)} | {f"{place:03d}": 1_000 for place in range(20)}
    rows = ((place, sex, count) for place, count in counts.items() for sex in ("f", "m"))
    path = write(tmp_path / "a.csv", ("district", "sex", "count"), rows)
    began = time.process_time()
    found = gh.describe(path)
    assert time.process_time() - began < 5
    assert len(proper(found, tmp_path).geography.lengths) == 2


def test_more_codes_than_an_attribute_can_have_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", ("district", "job", "count"), (("A1", f"job {at}", 1) for at in range(10_001)))
    with pytest.raises(InputError, match=r"'job' has 10,001 different codes; expected at most 10,000.*--ignore job"):
        gh.describe(path)


@pytest.mark.parametrize(
    "wrong", [["1" * 100_000], [f"x{at}" for at in range(101)], ["a\x7f"]], ids=["long", "many", "odd"]
)
def test_texts_that_are_no_marks_are_refused_in_a_line(wrong: list[str], tmp_path: Path) -> None:
    """A number of 100,000 digits was taken for a mark, and repeated whole in what was asked."""
    rows = [("A1", f"s{at}", text) for at, text in enumerate(["1", "2", *wrong])]
    with pytest.raises(InputError, match=r"stands instead of a number.*at most 100 different marks") as caught:
        gh.describe(write(tmp_path / "a.csv", ("district", "sex", "count"), rows))
    assert len(str(caught.value)) < 400


def test_a_column_that_no_scenario_can_name_is_refused_with_its_file(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", ("district", "se\u2066x", "count"), [("A1", "f", 1), ("A1", "m", 2)])
    with pytest.raises(InputError, match=r"a\.csv: .*\\u2066"):
        gh.describe(path, accept=True)


@pytest.mark.parametrize("status", ["x" * 201, "a\x7f"])
def test_a_status_that_no_scenario_can_name_is_refused_with_its_file(status: str, tmp_path: Path) -> None:
    """Found by the fuzzer: it was written into a scenario, which then could not be read."""
    header = ("district", "sex", "count", "status")
    path = write(tmp_path / "a.csv", header, [("A1", "f", 1, "A"), ("A1", "m", 2, status)])
    with pytest.raises(InputError, match=r"a\.csv: column 'status' has a code of"):
        gh.describe(path, accept=True)


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=20), st.sampled_from(["", ",", " ", "'", "."]))
def test_thousands_are_read(numbers: list[int], separator: str) -> None:
    texts = [f"{number:,}".replace(",", separator) for number in numbers]
    found = read_figures(texts, "x")
    assert [found.numbers[text] for text in texts] == numbers and not found.marks


@pytest.mark.parametrize(("rows", "said"), [
    ([("", "women", 1), ("A1", "men", 2)], r"\.csv: 'district' is blank in some rows"),
    ([("Total", "women", 1), ("_T", "men", 2), ("A1", "men", 2)], r"\.csv: 'Total' and '_T' of .* called totals"),
    ([("A1", "Total", 1), ("A1", "women", 1), ("A2", "women", 2)], r"\.csv: 'sex' tells nobody apart"),
])  # fmt: skip
def test_what_cannot_be_used_is_refused(rows: Sequence[Sequence[object]], said: str, tmp_path: Path) -> None:
    with pytest.raises(gh.InputError, match=said):
        gh.describe(small(tmp_path, rows), accept=True)


def test_a_parquet_file_as_data_frames_are_written(tmp_path: Path) -> None:
    """Numbers of rows without a name, and numbers that became decimals: the same as the file of commas."""
    header = ("district", "sex", "count")
    columns = dict(zip(header, zip(*PLAIN, strict=True), strict=True))
    frame = pl.DataFrame({"": range(len(PLAIN)), **columns}).cast({"count": pl.Float64})
    frame.write_parquet(tmp_path / "small.parquet")
    frame.write_csv(tmp_path / "numbered.csv")
    usual = gh.describe(small(tmp_path, PLAIN), accept=True).summary
    for name in ("small.parquet", "numbered.csv"):
        found = gh.describe(tmp_path / name, accept=True).summary
        assert found.places == usual.places and found.numbers == usual.numbers
        assert [one.levels for one in found.dimensions] == [one.levels for one in usual.dimensions]


def test_points_may_be_decimals(tmp_path: Path) -> None:
    path = small(tmp_path, [("A1", "women", "1.234"), ("A1", "men", "2.000")])
    with pytest.raises(gh.InputError, match=r"or are these decimals\? Say --thousands \. or --thousands none"):
        gh.describe(path)
    assert tomllib.loads(gh.describe(path, thousands=".").scenario)["printed"]["thousands"] == "."
    with pytest.raises(gh.InputError, match=r"'1.234' is no whole number"):
        gh.describe(path, thousands="none")


@pytest.fixture(scope="module")
def world(data: Path) -> Path:
    if not (data / "world").is_dir():
        pytest.skip("the files of other offices are not beside the repository")
    return data / "world"


def test_real_tables_over_columns(world: Path, tmp_path: Path) -> None:
    """Age by single year, with bands as subtotals, as Nomis writes it."""
    found = gh.describe(world / "uk" / "census2021-ts007-ltla.csv", title="UK")
    assert found.summary.places == {"area": 331} and found.summary.tables[0].lines == 113
    assert "(331 of 331 sums agree); 11 subtotals" in found.summary.dimensions[0].found
    proper(found, tmp_path)
    three = sorted((world / "uk").glob("*.csv"))
    with pytest.raises(gh.InputError, match="are of the same people"):
        gh.describe(three)
    assert gh.describe(three, accept=True).summary.files == ("census2021-ts007-ltla.csv",)


@pytest.mark.parametrize("name", ["pums/person_sample.csv", "pums/household_sample.csv"])
def test_real_records_are_refused(world: Path, name: str) -> None:
    with pytest.raises(gh.InputError, match="count them first with glasshouse tabulate"):
        gh.describe(world / name)


WORDS = st.sampled_from(
    [
        "",
        "Total",
        "_T",
        "A",
        "A1",
        "A10",
        "B",
        "0-4",
        "5-9",
        "5+",
        "85+",
        "Y_LT15",
        "1",
        "2",
        "c",
        "..",
        "women",
        "ö ß",
        '"',
        "a,b",
    ]
)
FIGURES = st.sampled_from(["0", "1", "2", "3", "12", "1,204", "1.204", "c", "", "-4", "7", "15", "1000"])


def _codes(row: Row) -> Row:
    return row[:-1]


@settings(max_examples=often(150))
@given(st.data())
def test_whatever_stands_in_a_table_is_described_or_refused(data: st.DataObject) -> None:
    """Never a bug of ours: a scenario that loads, or sentences."""
    names = ["geo", "sex", "age", "year", "flag", "area code", "column", "Total"]
    header = data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=4, unique=True))
    rows = data.draw(st.lists(st.tuples(*(WORDS for _ in header), FIGURES), min_size=1, max_size=12, unique_by=_codes))
    with TemporaryDirectory() as name:
        path = write(Path(name) / "t.csv", [*header, "count"], rows)
        try:
            found = gh.describe(path, accept=data.draw(st.booleans()), missing=data.draw(st.sampled_from(["", "zero"])))
        except gh.InputError:
            return
        proper(found, Path(name))
        assert {"files", "printed"} <= set(tomllib.loads(found.scenario))
