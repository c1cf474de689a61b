"""Do all spellings of one truth read the same, rows in any order come together, and files get written whole?"""

from __future__ import annotations

import gzip
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glasshouse.errors import InputError
from glasshouse.files import frames as frames_module
from glasshouse.files.frames import as_text, open_source
from glasshouse.files.output import private_file, row_writer
from glasshouse.files.records import open_records
from glasshouse.files.regroup import by_key, regroup
from glasshouse.files.tables import TableFile, open_tables
from glasshouse.model.release import UNLIMITED, Counts
from glasshouse.scenarios.load import Scenario, load, spell

from .conftest import TOY

# Five blocks in three tracts of two states; the lines of P12 are sexes by ages, 1 the total, 2 and 26 the sexes.
PLACES = ("010730051031000", "010730051031001", "010730052001000", "390599772003104", "390599772003105")
TABLES = {"P1": 1, "P12": 49}


def truth(place: int, table: str, line: int) -> int:
    """A number to publish; none of the male children, and not all places alike."""
    return 7 * place + line % 5 if table == "P12" and line % 4 else 3 * place if table == "P1" else 0


def published(lines: Callable[[str, int], bool] = lambda table, line: True) -> pl.DataFrame:
    rows = [
        ("block", place, table, line, truth(at, table, line))
        for at, place in enumerate(PLACES)
        for table, last in TABLES.items()
        for line in range(1, last + 1)
        if lines(table, line)
    ]
    return pl.DataFrame(rows, schema=["level", "geoid", "table", "line", "value"], orient="row")


OFFICIAL, API = "{letters}{number:3}{iteration:1}{line:3}", "{letters}{number:3}{iteration}{line:3}"


def long(pattern: str = OFFICIAL, **options: Any) -> pl.DataFrame:
    frame = published(**options)
    names = [spell(pattern, table, line) for table, line in frame.select("table", "line").iter_rows()]
    return frame.select("level", "geoid", "table", pl.Series("variable", names), "value")


def wide(pattern: str) -> pl.DataFrame:
    return long(pattern).pivot("variable", index="geoid", values="value")


def separate(frame: pl.DataFrame, names: tuple[str, str, str, str], *, padded: bool) -> pl.DataFrame:
    """The parts of the code in columns of their own."""
    bounds = (0, 2), (2, 3), (5, 6), (11, 4)
    parts = [pl.col("geoid").str.slice(*at).alias(name) for name, at in zip(names, bounds, strict=True)]
    return frame.with_columns(part if padded else part.cast(pl.Int64) for part in parts).drop("geoid")


Frozen = dict[tuple[str, tuple[str, ...]], dict[str, Any]]


def read(file: TableFile, **options: Any) -> Frozen:
    """Every release of a file as plain values that can be compared."""
    return {
        (level, counts.places): plain(counts) for r in file.releases(**options) for level, counts in r.levels.items()
    }


def plain(counts: Counts) -> dict[str, Any]:
    return {"variables": counts.variables, "lower": counts.lower.tolist(), "upper": counts.upper.tolist()}


@pytest.fixture(scope="module")
def some(sf1: Scenario) -> Scenario:
    return sf1.choose(["P1", "P12", "P12A"])


@pytest.fixture(scope="module")
def expected(some: Scenario) -> Frozen:
    """The same releases, by hand."""
    variables = {(t, n): spell(OFFICIAL, t, n) for t, last in TABLES.items() for n in range(1, last + 1)}
    result: Frozen = {}
    for tract in sorted({place[:11] for place in PLACES}):
        places = tuple(place for place in PLACES if place.startswith(tract))
        numbers = [[truth(PLACES.index(place), *key) for key in variables] for place in places]
        result["block", places] = {"variables": tuple(variables.values()), "lower": numbers, "upper": numbers}
    return result


# Table files: one truth, many spellings


def write_text(frame: pl.DataFrame, path: Path, **options: Any) -> Path:
    text = frame.write_csv(**options)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def write_parquet(frame: pl.DataFrame, path: Path) -> Path:
    frame.write_parquet(path)
    return path


def nhgis(folder: Path, *, names: bool = False) -> Path:
    """An extract as NHGIS sends it: codes of its own, two header rows, and a codebook beside."""
    frame = separate(wide(OFFICIAL), ("STATEA", "COUNTYA", "TRACTA", "BLOCKA"), padded=True)
    codes = {spell(OFFICIAL, "P1", 1): "H7V001"} | {spell(OFFICIAL, "P12", n): f"H76{n:03d}" for n in range(1, 50)}
    frame = frame.rename(codes).with_columns(GISJOIN=pl.lit("G01007300"), NAME=pl.lit("Block 1000, Block Group 1"))
    if names:
        frame = frame.with_columns(STATE=pl.lit("Alabama"), COUNTY=pl.lit("Jefferson County"), YEAR=pl.lit("2010"))
    columns = [
        "GISJOIN",
        *(["YEAR", "STATE", "COUNTY"] if names else []),
        "STATEA",
        "COUNTYA",
        "TRACTA",
        "BLOCKA",
        "NAME",
    ]
    frame = frame.select(*columns, *codes.values())
    descriptions = ",".join(f'"{name}: of, many words"' for name in [*("GIS Join Match Code" for _ in columns), *codes])
    header, _, rows = frame.write_csv(quote_style="always").partition("\n")
    path = folder / "nhgis0001_ds172_2010_block.csv"
    path.write_text(f"{header}\n{descriptions.replace('P0', 'Persons')}\n{rows}")
    (folder / "nhgis0001_ds172_2010_block_codebook.txt").write_text(
        "Table 1:     Total Population\nUniverse:    Total population\nSource code: P1\nNHGIS code:  H7V\n"
        "        H7V001:      Total\n\nTable 2:     Sex by Age\nSource code: P12\nNHGIS code:  H76\n"
    )
    return path


API_COLUMNS = ("state", "county", "tract", "block")
SPELLINGS: dict[str, Callable[[Path], Path]] = {
    "long csv": lambda f: write_text(long(), f / "t.csv"),
    "long csv.gz": lambda f: write_text(long(), f / "t.csv.gz"),
    "long parquet": lambda f: write_parquet(long(), f / "t.parquet"),
    "long, shuffled": lambda f: write_text(long().sample(fraction=1, shuffle=True, seed=1), f / "t.csv"),
    "long, no zeros": lambda f: write_text(long().filter(pl.col("value") > 0), f / "t.csv"),
    "long, no level and table": lambda f: write_text(long().drop("level", "table"), f / "t.csv"),
    "long, API names": lambda f: write_text(long(API), f / "t.csv"),
    "long, lower and upper": lambda f: write_text(
        long().rename({"value": "lower"}).with_columns(upper="lower"), f / "t.csv"
    ),
    "long, floats in parquet": lambda f: write_parquet(long().cast({"value": pl.Float64}), f / "t.parquet"),
    "long, text in parquet": lambda f: write_parquet(long().cast({"value": pl.String}), f / "t.parquet"),
    "long, dictionaries": lambda f: write_parquet(
        long().cast({"variable": pl.Categorical, "level": pl.Categorical, "table": pl.Categorical}), f / "t.parquet"
    ),
    "wide, official names": lambda f: write_text(wide(OFFICIAL), f / "t.csv"),
    "wide, parquet": lambda f: write_parquet(wide(OFFICIAL), f / "t.parquet"),
    "wide, API": lambda f: write_text(separate(wide(API), API_COLUMNS, padded=False), f / "t.csv"),
    "wide, API of 2020": lambda f: write_text(
        separate(wide("{letters}{number}{iteration}_{line:3}N"), API_COLUMNS, padded=False), f / "t.csv"
    ),
    "wide, API, parquet of numbers": lambda f: write_parquet(
        separate(wide(API), API_COLUMNS, padded=False), f / "t.parquet"
    ),
    "wide, GEO_ID": lambda f: write_text(
        wide(API).with_columns("1000000US" + pl.col("geoid")).rename({"geoid": "GEO_ID"}), f / "t.csv"
    ),
    "NHGIS": nhgis,
    "CRLF": lambda f: write_text(long(), f / "t.csv", line_terminator="\r\n"),
    "semicolons": lambda f: write_text(long(), f / "t.csv", separator=";"),
    "pipes": lambda f: write_text(long(), f / "t.txt", separator="|"),
    "tabs": lambda f: write_text(long(), f / "t.txt", separator="\t"),
    "quotes": lambda f: write_text(long(), f / "t.csv", quote_style="always"),
    "BOM": lambda f: write_text(long(), f / "t.csv", include_bom=True),
    "comments": lambda f: _prepend(write_text(long(), f / "t.csv"), "# made by hand; 5, 6 | 7\n#\n"),
    "no last line end": lambda f: _rewrite(write_text(long(), f / "t.csv"), lambda text: text.rstrip("\n")),
}


def _rewrite(path: Path, change: Callable[[str], str]) -> Path:
    path.write_text(change(path.read_text()))
    return path


def _prepend(path: Path, text: str) -> Path:
    return _rewrite(path, lambda rest: text + rest)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_gives_the_same_releases(
    spelling: str, tmp_path: Path, some: Scenario, expected: Frozen
) -> None:
    file = open_tables(SPELLINGS[spelling](tmp_path), some)
    assert read(file) == expected
    assert file.absent() == ("P12A",)


@pytest.mark.parametrize("spelling", ["long csv", "CRLF", "wide, API", "NHGIS", "comments"])
def test_the_size_of_pieces_does_not_matter(
    spelling: str, tmp_path: Path, some: Scenario, expected: Frozen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames_module, "BLOCK_BYTES", 700)
    assert read(open_tables(SPELLINGS[spelling](tmp_path), some)) == expected


def test_line_numbers_count_on_from_piece_to_piece(
    tmp_path: Path, some: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames_module, "BLOCK_BYTES", 100)
    path = _prepend(write_text(long(), tmp_path / "t.csv"), "# one\n# two\n")
    lines = path.read_text().splitlines()
    lines[99] = lines[99].rpartition(",")[0] + ",x"
    path.write_text("\n".join(lines))
    with pytest.raises(InputError, match="line 100: value of P012"):
        read(open_tables(path, some))


def test_an_extract_with_the_names_of_states_and_counties_is_read(
    tmp_path: Path, some: Scenario, expected: Frozen
) -> None:
    assert read(open_tables(nhgis(tmp_path, names=True), some)) == expected


def test_a_codebook_can_be_named(tmp_path: Path, some: Scenario, expected: Frozen) -> None:
    path = nhgis(tmp_path)
    elsewhere = (tmp_path / "nhgis0001_ds172_2010_block_codebook.txt").rename(tmp_path / "book.txt")
    with pytest.raises(InputError, match="NHGIS codes need --codebook"):
        read(open_tables(path, some))
    assert read(open_tables(path, some, elsewhere)) == expected


def test_a_blank_upper_means_no_limit(tmp_path: Path, some: Scenario) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"geoid,variable,lower,upper\n{PLACES[0]},P0010001,3,\n{PLACES[1]},P0010001,0,4\n")
    (release,) = open_tables(path, some).releases()
    assert tuple(release.levels["block"].value(PLACES[0], "P0010001")) == (3, UNLIMITED)
    assert tuple(release.levels["block"].value(PLACES[1], "P0010001")) == (0, 4)
    assert not release.levels["block"].exact


@pytest.mark.parametrize("dtype", [pl.Int64, pl.Int32, pl.Null, pl.String])
def test_a_null_upper_means_no_limit_in_parquet(dtype: Any, tmp_path: Path, some: Scenario) -> None:
    frame = pl.DataFrame({"geoid": PLACES[:1], "variable": ["P0010001"], "lower": [3]})
    frame.with_columns(pl.lit(None, dtype).alias("upper")).write_parquet(tmp_path / "t.parquet")
    (release,) = open_tables(tmp_path / "t.parquet", some).releases()
    assert tuple(release.levels["block"].value(PLACES[0], "P0010001")) == (3, UNLIMITED)


def test_numbers_held_as_a_dictionary_of_text_are_read(tmp_path: Path, some: Scenario, expected: Frozen) -> None:
    long().cast(pl.String).cast(pl.Categorical).write_parquet(tmp_path / "t.parquet")
    assert read(open_tables(tmp_path / "t.parquet", some)) == expected


def test_subtotals_are_published_only_where_they_are_given(tmp_path: Path, some: Scenario) -> None:
    leaves = {line.number for line in some.table("P12").leaves}
    path = write_text(long(lines=lambda table, line: table == "P12" and line in leaves), tmp_path / "t.csv")
    release = next(open_tables(path, some).releases())
    assert release.levels["block"].variables == tuple(line.variable for line in some.table("P12").leaves)
    assert "P0120001" not in release.levels["block"].column


def test_official_tables_outside_the_scenario_are_left_aside_and_counted(tmp_path: Path, sf1: Scenario) -> None:
    file = open_tables(write_text(long(), tmp_path / "t.csv"), sf1.choose(["P1"]))
    assert [release.levels["block"].variables for release in file.releases()] == [("P0010001",)] * 3
    assert file.seen.ignored == {"P12": 49 * len(PLACES)}
    assert file.seen.cells == len(PLACES)


def test_numbers_left_aside_are_counted_alike_in_wide_files(tmp_path: Path, sf1: Scenario) -> None:
    file = open_tables(write_text(wide(OFFICIAL), tmp_path / "t.csv"), sf1.choose(["P1"]))
    list(file.releases())
    assert file.seen.ignored == {"P12": 49 * len(PLACES)}


@pytest.mark.parametrize(
    ("assume", "tables"),
    [("seen", {"P1", "P12"}), ("all", {"P1", "P12", "P12A"}), ("P12A", {"P1", "P12", "P12A"}), ("P1", {"P1", "P12"})],
)
def test_absent_tables_are_unpublished_unless_said_otherwise(
    assume: str, tables: set[str], tmp_path: Path, some: Scenario
) -> None:
    file = open_tables(write_text(long(), tmp_path / "t.csv"), some)
    for release in file.releases(assume=assume):
        counts = release.levels["block"]
        assert {table.name for table in release.published("block")} == tables
        if "P12A" in tables:
            assert not counts.lower[:, [counts.column[line.variable] for line in some.table("P12A").leaves]].any()
    assert file.absent() == ("P12A",)


def test_an_area_that_only_its_blocks_tell_of_has_zeros(tmp_path: Path, sf1: Scenario) -> None:
    rows = ["level,geoid,variable,value", f"block,{PLACES[0]},P0010001,3", f"block,{PLACES[2]},P0010001,4"]
    (tmp_path / "t.csv").write_text("\n".join([*rows, f"tract,{PLACES[0][:11]},P0010001,3"]))
    first, second = open_tables(tmp_path / "t.csv", sf1.choose(["P1"])).releases()
    assert first.levels["tract"].lower.tolist() == [[3]]
    assert second.levels["tract"].places == (PLACES[2][:11],) and second.levels["tract"].lower.tolist() == [[0]]


def test_a_county_of_zeros_is_kept_in_a_wide_file(tmp_path: Path, sf1: Scenario) -> None:
    (tmp_path / "t.csv").write_text(f"level,geoid,P0010001\nblock,{PLACES[0]},3\ncounty,{PLACES[0][:5]},0\n")
    *_, last = open_tables(tmp_path / "t.csv", sf1.choose(["P1"])).releases()
    assert last.levels["county"].value(PLACES[0][:5], "P0010001").exact == 0


# Records

PLAIN = "block,sex,age,white,black,aian,asian,nhopi,sor,hispanic\n" + "\n".join(
    (
        f"{PLACES[0]},male,4,1,0,0,0,0,0,0",
        f"{PLACES[0]},female,110,0,1,0,0,0,0,1",
        f"{PLACES[3]},male,21,0,0,0,0,0,1,0",
        f"{PLACES[2]},female,0,1,1,0,0,0,0,0",
        f"{PLACES[2]},male,67,1,1,1,1,1,1,1",
        "",
    )
)
# CENRACE: 1-6 alone, 7-21 two races in order, ..., 63 all six
PPMF_2023 = """TABBLKST,TABBLKCOU,TABTRACTCE,TABBLK,RTYPE,GQTYPE,QSEX,QAGE,CENHISP,CENRACE
1,73,5103,1000,3,0,1,4,1,1
1,73,5103,1000,3,0,2,112,2,2
39,59,977200,3104,3,0,1,21,1,6
1,73,5200,1000,3,0,2,0,1,7
1,73,5200,1000,3,0,1,67,2,63
"""


def record_frame(path: Path, scenario: Scenario) -> pl.DataFrame:
    return pl.concat(open_records(path, scenario).frames())


@pytest.fixture
def plain_records(tmp_path: Path) -> Path:
    path = tmp_path / "plain.csv"
    path.write_text(PLAIN)
    return path


def test_plain_records_become_levels(plain_records: Path, sf1: Scenario) -> None:
    frame = record_frame(plain_records, sf1)
    assert frame["geoid"].to_list() == [PLACES[0], PLACES[0], PLACES[3], PLACES[2], PLACES[2]]
    assert frame["age"].to_list() == [4, 110, 21, 0, 67]
    race = sf1.schema.attribute("race")
    assert [race.levels[level] for level in frame["race"]] == [
        "white", "black", "sor", "white+black", "white+black+aian+asian+nhopi+sor",
    ]  # fmt: skip
    assert frame["sex"].to_list() == [0, 1, 0, 1, 0] and frame["hispanic"].to_list() == [0, 1, 0, 0, 1]


def test_microdata_of_2023_are_read_as_the_same_records(plain_records: Path, sf1: Scenario) -> None:
    (plain_records.parent / "ppmf.csv").write_text(PPMF_2023)
    assert record_frame(plain_records.parent / "ppmf.csv", sf1).equals(record_frame(plain_records, sf1))


def test_microdata_of_2021_are_read_as_the_same_records(plain_records: Path, pl94: Scenario) -> None:
    rows = [
        "INTAGE,TABBLKST,TABBLKCOU,TABTRACTCE,TABBLKGRPCE,TABBLK,RTYPE,GQTYPE_PL,VOTING_AGE,CENHISP,CENRACE,GEOID10"
    ]
    for (state, county, tract, block, *_, hispanic, race), age, place in zip(
        (line.split(",") for line in PPMF_2023.splitlines()[1:]), (4, 110, 21, 0, 67),
        (PLACES[0], PLACES[0], PLACES[3], PLACES[2], PLACES[2]), strict=True,
    ):  # fmt: skip
        where = f"{int(state):02d},{int(county):03d},{int(tract):06d},{block[0]},{block}"
        rows.append(f"20210608_P,{where},3,0,{2 if age >= 18 else 1},{hispanic},{race},{place}")
    (plain_records.parent / "ppmf.csv").write_text("\n".join(rows) + "\n")
    same = plain_records.parent / "with-quarters.csv"
    text = PLAIN.splitlines()
    same.write_text("\n".join([text[0] + ",gq", *(line + ",0" for line in text[1:])]) + "\n")
    assert record_frame(plain_records.parent / "ppmf.csv", pl94).equals(record_frame(same, pl94))


FLAGS = ["white", "black", "aian", "asian", "nhopi", "sor", "hispanic"]


@pytest.mark.parametrize(
    "types",
    [
        pytest.param(dict.fromkeys(FLAGS, pl.Boolean) | {"age": pl.Int8}, id="booleans"),
        pytest.param(dict.fromkeys(FLAGS, pl.UInt8) | {"age": pl.UInt16}, id="unsigned"),
        pytest.param(dict.fromkeys(FLAGS, pl.Float64) | {"age": pl.Float32}, id="floats"),
        pytest.param(dict.fromkeys([*FLAGS, "age"], pl.String), id="text"),
        pytest.param({"sex": pl.Categorical}, id="dictionary of sexes"),
        pytest.param(dict.fromkeys([*FLAGS, "age"], pl.Categorical), id="dictionaries of digits"),
    ],
)
def test_parquet_records_of_any_type_are_the_same(types: dict[str, Any], plain_records: Path, sf1: Scenario) -> None:
    frame = pl.read_csv(plain_records, schema_overrides={"block": pl.String})
    through = {name: pl.String if kind == pl.Categorical else kind for name, kind in types.items()}
    frame.cast(through).cast(types).write_parquet(plain_records.parent / "r.parquet")
    assert record_frame(plain_records.parent / "r.parquet", sf1).equals(record_frame(plain_records, sf1))


def test_codes_in_any_order_stand_for_their_own_levels(tmp_path: Path) -> None:
    own = TOY.replace("range = [0, 3]", 'levels = ["nil", "two", "one", "three"]\ncodes = ["0", "2", "1", "3"]')
    own = own.replace('bins = "0-1 2 3"', 'groups = ["nil", "one", "two", "three"]').replace(
        'size = "2+"', 'size = "two"'
    )
    (tmp_path / "scenario.toml").write_text(own)
    (tmp_path / "r.csv").write_text("house,colour,size,owner\n111,red,0,0\n111,red,1,0\n111,red,2,0\n111,red,3,0\n")
    scenario = load(str(tmp_path))
    size = scenario.schema.attribute("size")
    found = [size.levels[level] for level in record_frame(tmp_path / "r.csv", scenario)["size"]]
    assert found == ["nil", "one", "two", "three"]


def test_the_microdata_of_guernsey_have_40085_records(data: Path, pl94: Scenario) -> None:
    frame = record_frame(data / "guernsey" / "ppmf_2021-06-08.csv.gz", pl94)
    assert frame.height == 40_085
    assert frame["geoid"].str.len_bytes().unique().to_list() == [15]
    assert frame["geoid"].str.starts_with("39059").all()


# Rows in any order

KEYS = st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=12), max_size=8)


def pieces(keys: list[list[str]]) -> list[pl.DataFrame]:
    """Frames of a key and a running number, so that order can be told."""
    starts = np.cumsum([0, *(len(some) for some in keys)])
    return [
        pl.DataFrame({"key": some, "row": range(start, start + len(some))}, schema={"key": pl.String, "row": pl.Int64})
        for some, start in zip(keys, starts, strict=False)
    ]


@given(keys=KEYS, limit=st.integers(1, 20))
def test_rows_that_spill_to_disk_come_back_as_they_would_from_memory(keys: list[list[str]], limit: int) -> None:
    inside = list(regroup(pieces(keys), "key", limit=10**6))
    spilled = list(regroup(pieces(keys), "key", limit=limit))
    assert bool(inside) == bool(spilled) == any(keys)
    if inside:
        assert pl.concat(spilled).equals(pl.concat(inside))
        expected = sorted((key, row) for frame in pieces(keys) for key, row in frame.iter_rows())
        assert list(pl.concat(inside).iter_rows()) == expected
    met = [key for frame in spilled for key in frame["key"].unique()]
    assert len(met) == len(set(met)), "a key came in two frames"


def test_uneven_pieces_that_spill_lose_no_row() -> None:
    """Runs are read back in batches of one size; pieces of other sizes once shifted them and lost rows."""
    rng = np.random.default_rng(0)
    frames = pieces([[str(key) for key in rng.integers(0, 400, size)] for size in rng.integers(1, 5000, 60).tolist()])
    inside, spilled = (pl.concat(regroup(frames, "key", limit=limit)) for limit in (10**9, 37_000))
    assert spilled.equals(inside)


@given(keys=st.lists(st.sampled_from("abc"), min_size=1))
def test_the_rows_of_each_key_are_told_apart(keys: list[str]) -> None:
    frame = pieces([keys])[0].sort("key", maintain_order=True)
    parts = list(by_key(frame, "key"))
    assert [key for key, _ in parts] == sorted(set(keys))
    assert all(part["key"].unique().to_list() == [key] for key, part in parts)
    assert pl.concat(part for _, part in parts).equals(frame)


SPILLING = [["b", "a"], ["c", "a"], ["b", "d"]]


def test_rows_that_fit_touch_no_disk(tmp_path: Path) -> None:
    for _ in regroup(pieces(SPILLING), "key", near=tmp_path):
        assert list(tmp_path.iterdir()) == []


def test_spilled_rows_lie_in_a_private_folder_that_goes_away(tmp_path: Path) -> None:
    groups = regroup(pieces(SPILLING), "key", limit=2, near=tmp_path)
    next(groups)
    (scratch,) = tmp_path.iterdir()
    assert {path.name for path in scratch.iterdir()} == {"lock", "inside"}
    assert [stat.S_IMODE(path.stat().st_mode) for path in (scratch, scratch / "inside")] == [0o700, 0o700]
    assert len(list((scratch / "inside").iterdir())) == 3
    list(groups)
    assert list(tmp_path.iterdir()) == []


def test_the_folder_goes_away_when_the_consumer_stops_early(tmp_path: Path) -> None:
    groups = regroup(pieces(SPILLING), "key", limit=2, near=tmp_path)
    next(groups)
    groups.close()  # type: ignore[attr-defined]  # it is a generator
    assert list(tmp_path.iterdir()) == []


def test_the_folder_goes_away_when_reading_fails(tmp_path: Path) -> None:
    def failing() -> Iterator[pl.DataFrame]:
        yield from pieces(SPILLING)
        assert len(list(tmp_path.iterdir())) == 1
        raise InputError("line 7 is wrong")

    with pytest.raises(InputError, match="line 7"):
        list(regroup(failing(), "key", limit=2, near=tmp_path))
    assert list(tmp_path.iterdir()) == []


# Writing

ROWS = pl.DataFrame({"geoid": ["01", "02", "03"], "value": [1, 2, 3]})


def test_parquet_has_columns_without_a_name_and_blanks_that_are_nan(tmp_path: Path) -> None:
    """Found by the fuzzer, as bugs of ours: Polars renames such a column; programs without nulls write NaN."""
    frame = pl.DataFrame({"": ["x", "y", "z"], "n": [1.0, float("nan"), 2.5], "big": [1e300, float("inf"), -0.0]})
    source = open_source(write_parquet(frame, tmp_path / "t.parquet"))
    assert source.columns == ("", "n", "big")
    (chunk,) = source.chunks(["big", "n", ""])
    assert chunk.frame.columns == ["big", "n", ""] and chunk.frame[""].to_list() == ["x", "y", "z"]
    assert chunk.frame["n"].to_list() == [1.0, None, 2.5]
    assert as_text(chunk.frame["n"]).to_list() == ["1", None, "2.5"]
    assert as_text(chunk.frame["big"]).to_list() == ["1e+300", "inf", "0"]


@pytest.mark.parametrize("column", [
    pl.Series("a", ["x", "y", "y", None] * 9, pl.Categorical),
    pl.Series("a", [datetime(2020, 1, 1)] * 9).dt.replace_time_zone("UTC"),
    pl.Series("a", [1.5, 2.0, None] * 9),
])  # fmt: skip
def test_any_byte_of_a_parquet_file_may_be_wrong(column: pl.Series, tmp_path: Path) -> None:
    """Found by the fuzzer: Polars panics on categories that point beyond their list. Read or refused."""
    path = write_parquet(column.to_frame(), tmp_path / "t.parquet")
    whole, refused = path.read_bytes(), 0
    for at in range(4, len(whole)):
        for flipped in (0x01, 0x40):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ flipped]) + whole[at + 1 :])
            try:
                list(open_source(path).chunks())
            except InputError:
                refused += 1
    assert refused


def test_a_count_that_is_nan_is_a_blank(tmp_path: Path, some: Scenario) -> None:
    frame = long().cast({"value": pl.Float64})
    blank = frame.with_columns(
        pl.when(pl.int_range(pl.len()) == 3).then(float("nan")).otherwise("value").alias("value")
    )
    path = write_parquet(blank, tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"row 4: value of .* is empty; expected a whole number"):
        read(open_tables(path, some))


KINDS = ("t.csv", "t.csv.gz", "t.parquet")


def write(path: Path, parts: Iterable[pl.DataFrame]) -> bytes:
    with row_writer(path) as writer:
        for part in parts:
            writer.write(part)
    return path.read_bytes()


@pytest.mark.parametrize("name", KINDS)
def test_what_is_written_can_be_read_again(name: str, tmp_path: Path) -> None:
    write(tmp_path / name, [ROWS[:2], ROWS[2:]])
    frame = pl.concat(chunk.frame for chunk in open_source(tmp_path / name).chunks())
    assert frame.cast({"value": pl.Int64}).equals(ROWS)


@pytest.mark.parametrize("name", KINDS)
def test_the_same_rows_make_the_same_bytes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = write(tmp_path / name, [ROWS])
    monkeypatch.setattr("time.time", lambda: 1e9)  # gzip would write the time
    (tmp_path / "elsewhere").mkdir()
    assert write(tmp_path / "elsewhere" / f"other-{name}", [ROWS]) == first  # and the name


@pytest.mark.parametrize("name", KINDS)
def test_only_the_owner_may_read_what_is_written(name: str, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        write(tmp_path / "new" / name, [ROWS])
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new" / name).stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


def test_every_folder_that_is_made_is_private(tmp_path: Path) -> None:
    write(tmp_path / "new" / "deep" / "t.csv", [ROWS])
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


UNCLOSED = "the ParquetWriter is not closed before its stream: its __del__ prints a traceback"


@pytest.mark.parametrize("name", [*KINDS[:2], pytest.param(KINDS[2])])
@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
def test_a_failure_leaves_the_old_file_and_nothing_else(
    name: str, failure: type[BaseException], tmp_path: Path
) -> None:
    def failing() -> Iterator[pl.DataFrame]:
        yield ROWS[:1]
        raise failure

    old = write(tmp_path / name, [ROWS])
    with pytest.raises(failure):
        write(tmp_path / name, failing())
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_bytes() == old


def test_an_unknown_kind_of_file_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\.csv, \.csv\.gz, \.parquet"), row_writer(tmp_path / "new" / "t.xlsx"):
        raise AssertionError("must not get here")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    (tmp_path / "t.csv").mkdir()
    with pytest.raises(InputError, match="is a directory"), private_file(tmp_path / "t.csv"):
        raise AssertionError("must not get here")
