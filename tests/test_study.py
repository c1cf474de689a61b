"""Do reconstruct, vary and status keep their promises from end to end: right, resumable, whoever dies?"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import random
import re
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from benchmarks import blocks

from glasshouse.commands.work import units as units_module
from glasshouse.engine import job as job_module
from glasshouse.engine.manifest import code_hash
from glasshouse.files.records import record_frame
from glasshouse.scenarios import load as scenario_module
from tests.clusters import certificates, cluster, configured, in_environment, needs_dask
from tests.running import Ended, good, started, tool

ROOT = Path(__file__).resolve().parents[1]
SF1 = ("--scenario", "sf1-person")
FEW = ("--tables", "P1,P6,P8,P12,P12A,P12H,PCT12,PCT12A")  # quick to compile: for commands that run as processes
RACES = ["white", "black", "aian", "asian", "nhopi", "sor"]
PERSON = ["block", "sex", "age", *RACES, "hispanic"]
DATA_FILES = {
    "reconstruct": {"records.parquet", "places.parquet"},
    "vary": {"places.parquet", "areas.parquet", "groups.parquet", "summary.json", "solvar-by-size.svg"},
}
TRACTS = tuple(f"99001{number:06d}" for number in range(1, 13))
BAD = TRACTS[2]
UNITS = 80  # of a run that is met in the middle
FAR = {
    "population": pl.Int64, "population_upper": pl.Int64, "solvar": pl.Float64, "solvar_upper": pl.Float64,
    "certain": pl.Int64,
    "certain_upper": pl.Int64, "proof": pl.String, "certain_proof": pl.String, "distance": pl.Int64,
    "distance_upper": pl.Int64, "method": pl.String,
}  # fmt: skip


def attack(command: str, tables: Path, out: Path | None, *options: object) -> Ended:
    """The command in this process (unless the options say otherwise)."""
    where = () if out is None else ("--out", out)
    who = () if {"--workers", "--executor"} & set(options) else ("--workers", 1)
    return tool(command, tables, *SF1, *where, *who, *options)


def data_files(folder: Path, command: str) -> dict[str, bytes]:
    """The bytes of the data files; what a picture numbers goes on counting in one process (see the test of that)."""
    found = {name: (folder / name).read_bytes() for name in DATA_FILES[command]}
    return {name: unnumbered(content) if name.endswith(".svg") else content for name, content in found.items()}


def unnumbered(picture: bytes) -> bytes:
    numbers: dict[bytes, bytes] = {}
    return re.sub(rb"\bclip\d+", lambda found: numbers.setdefault(found[0], b"clip-%d" % len(numbers)), picture)


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Everything in a folder: when it was changed, and its bytes."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes()) for path in paths}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def told(folder: Path) -> dict[str, Any]:
    manifest = json.loads((folder / "manifest.json").read_text())
    assert isinstance(manifest, dict)
    return manifest


def table_rows(path: Path) -> pl.DataFrame:
    """The numbers of a table file that are not 0, in a fixed order."""
    long = (
        pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path, schema_overrides={"geoid": pl.String})
    )
    numbers = long.filter(pl.col("value") != 0).with_columns(pl.col("value").cast(pl.Int64))
    return numbers.select("level", "geoid", "variable", "value").sort("level", "geoid", "variable")


def tabulated(records: Path, out: Path, *options: str) -> pl.DataFrame:
    good(tool("tabulate", records, *SF1, "--out", out, *options))
    return table_rows(out)


def of(frame: pl.DataFrame, *tracts: str, without: bool = False) -> pl.DataFrame:
    """The rows of these tracts, or of all others."""
    column = "block" if "block" in frame.columns else "tract"
    inside = pl.col(column).str.head(11).is_in(tracts)
    return frame.filter(~inside if without else inside)


def rows(folder: Path, name: str) -> pl.DataFrame:
    return pl.read_parquet(folder / f"{name}.parquet")


def valid(frame: pl.DataFrame) -> pl.DataFrame:
    """Bounds that are bounds."""
    assert frame.select(
        (pl.col("solvar") >= 0).all()
        & (pl.col("solvar") <= pl.col("solvar_upper")).all()
        & (pl.col("solvar_upper") <= 1).all()
        & (pl.col("certain") >= 0).all()
        & (pl.col("certain") <= pl.col("certain_upper")).all()
        & (pl.col("certain_upper") <= pl.col("population")).all()
        & (pl.col("distance") == (pl.col("solvar") * 2 * pl.col("population")).round()).all()
    ).item()
    assert set(frame["proof"]) <= {"exact", "two-engines", "undecided"}
    return frame


# What is shared: scenarios and compiled tables, as they would be in one run; and made-up counties


@pytest.fixture(scope="module", autouse=True)
def _quick() -> Iterator[None]:
    """A built-in scenario is loaded once, and tables are compiled once: both depend on nothing else."""
    code_hash.cache_clear()  # someone may have edited the sources since the tests began
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scenario_module, "load", _load)
        patch.setattr(job_module, "Published", _published)
        patch.setattr(job_module, "UnitCheck", _unit_check)
        yield


_load = cache(scenario_module.load)
_Published, _UnitCheck = job_module.Published, job_module.UnitCheck
_compiled: dict[tuple[Any, ...], Any] = {}


def _published(schema: Any, tables: Any, variables: Any, around: Any, around_variables: Any, *rest: Any) -> Any:
    key = id(schema), tuple(t.name for t in tables), variables, tuple(t.name for t in around), around_variables
    if key not in _compiled:
        _compiled[key] = _Published(schema, tables, variables, around, around_variables, *rest)
    return _compiled[key]


def _unit_check(scenario: Any) -> Any:
    """What names the conflicts of a unit; kept with its scenario, so that the id stays its own."""
    key = (id(scenario),)
    if key not in _compiled:
        _compiled[key] = scenario, _UnitCheck(scenario)
    return _compiled[key][1]


def county(folder: Path, name: str, sizes: Any, mix: str, seed: int, tracts: Any, *options: str) -> Path:
    """The tables of made-up persons, who are kept beside them."""
    made = blocks.synthetic(sizes, mix, seed, tracts=tracts)
    frame = record_frame(_load("sf1-person"), made.places, made.place, made.codes, {})
    frame.write_parquet(folder / f"{name}-records.parquet")
    tabulated(folder / f"{name}-records.parquet", folder / f"{name}.parquet", *options)
    return folder / f"{name}.parquet"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("study")


def small(folder: Path, name: str, seed: int) -> Path:
    sizes = np.random.default_rng(3).integers(1, 60, 72)
    return county(folder, name, sizes, "national", seed, np.repeat(np.arange(12), 6))


@pytest.fixture(scope="module")
def tables(place: Path) -> Path:
    return small(place, "county", 3)


@pytest.fixture(scope="module")
def other_tables(place: Path) -> Path:
    """Another vintage: the same codes and sizes of blocks, other people."""
    return small(place, "other", 4)


@pytest.fixture(scope="module")
def long_tables(place: Path) -> Path:
    """Many small units, so that a run can be met in the middle."""
    sizes = np.random.default_rng(5).integers(1, 40, 2 * UNITS)
    return county(place, "long", sizes, "national", 5, np.repeat(np.arange(UNITS), 2), *FEW)


@pytest.fixture(scope="module")
def hard_tables(place: Path) -> Path:
    """Blocks that only the solvers finish."""
    return county(place, "hard", np.full(8, 300), "diverse", 5, np.repeat(np.arange(4), 2))


@pytest.fixture(scope="module")
def rebuilt(place: Path, tables: Path) -> Path:
    good(attack("reconstruct", tables, place / "rebuilt"))
    return place / "rebuilt"


@pytest.fixture(scope="module")
def varied(place: Path, tables: Path) -> Path:
    good(attack("vary", tables, place / "varied"))
    return place / "varied"


# Real tables: what is known of them


@pytest.fixture(scope="module")
def real(data: Path) -> Path:
    return data / "sf1_tracts"


def schema38(frame: pl.DataFrame, bins: pl.DataFrame) -> pl.DataFrame:
    """Persons as the paper compares them, as a multiset."""
    frame = frame if "agebin" in frame.columns else frame.join(bins, on="age", how="left")
    told = frame.select("block", "sex", pl.col("agebin").cast(pl.Int64), pl.col(*RACES, "hispanic").cast(pl.Int64))
    assert told.null_count().sum_horizontal().item() == 0
    return told.sort(pl.all())


@pytest.fixture(scope="module")
def bins(place: Path) -> pl.DataFrame:
    """The bin of each age, from the ends of the 38 bins as the paper lists them."""
    starts = [*range(22), 22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85]
    assert len(starts) == 38
    ages = np.arange(111)
    return pl.DataFrame({"age": ages, "agebin": np.searchsorted(starts, ages, side="right") - 1})


def test_real_tracts_are_rebuilt_as_published_and_give_their_tables(
    real: Path, bins: pl.DataFrame, tmp_path: Path
) -> None:
    said = good(attack("reconstruct", real / "tables.csv.gz", tmp_path / "out", "--json")).json
    assert (said["records"], said["units"], said["refused"], said["level"]) == (32_300, 14, {}, "tract")
    records = rows(tmp_path / "out", "records")
    assert records.select(pl.col("age").cast(pl.Int64), pl.col("agebin").cast(pl.Int64)).equals(
        records.select(pl.col("age").cast(pl.Int64)).join(bins, on="age", how="left", maintain_order="left")
    )
    with gzip.open(real / "records.csv.gz") as stream:
        truth = pl.read_csv(stream.read(), schema_overrides={"block": pl.String})
    assert schema38(records, bins).equals(schema38(truth, bins))
    assert rows(tmp_path / "out", "places")["recounted"].all()
    again = tabulated(tmp_path / "out" / "records.parquet", tmp_path / "again.parquet")
    assert again.equals(table_rows(real / "tables.csv.gz"))


def test_real_tracts_are_known_for_certain(real: Path, tmp_path: Path) -> None:
    good(attack("vary", real / "tables.csv.gz", tmp_path / "out"))
    places = valid(rows(tmp_path / "out", "places"))
    assert places.height == 4558 and places["population"].sum() == 32_300
    assert places["solvar"].max() == places["solvar_upper"].max() == 0
    assert set(places["proof"]) <= {"exact", "two-engines"}
    assert places["certain"].equals(places["population"].rename("certain"))
    areas = valid(rows(tmp_path / "out", "areas"))
    assert areas.height == 14 and areas["solvar_upper"].max() == 0


def test_without_tract_tables_23_real_blocks_can_vary(real: Path, tmp_path: Path) -> None:
    good(attack("vary", real / "tables.csv.gz", tmp_path / "out", "--level", "block"))
    places = valid(rows(tmp_path / "out", "places"))
    assert places.height == 4558 and set(places["proof"]) <= {"exact", "two-engines"}
    assert places.filter(pl.col("solvar") > 0).height == 23
    assert places.filter(pl.col("solvar_upper") > 0).height == 23


def test_protected_tracts_are_rebuilt_too(real: Path, bins: pl.DataFrame, tmp_path: Path) -> None:
    published = tabulated(real / "records_dp.csv.gz", tmp_path / "dp.parquet")
    said = good(attack("reconstruct", tmp_path / "dp.parquet", tmp_path / "out", "--json")).json
    assert said["records"] == 32_291 and said["refused"] == {}
    assert tabulated(tmp_path / "out" / "records.parquet", tmp_path / "again.parquet").equals(published)
    good(attack("vary", tmp_path / "dp.parquet", tmp_path / "varied"))
    certain = valid(rows(tmp_path / "varied", "places")).filter(pl.col("solvar_upper") == 0)["block"].to_list()
    with gzip.open(real / "records_dp.csv.gz") as stream:
        truth = pl.read_csv(stream.read(), schema_overrides={"block": pl.String})
    known = pl.col("block").is_in(certain)
    found = schema38(rows(tmp_path / "out", "records").filter(known), bins)
    assert len(certain) > 4000 and found.equals(schema38(truth.filter(known), bins))


def test_guernsey_has_no_tract_tables_and_is_told_so(data: Path, tmp_path: Path) -> None:
    source = data / "guernsey" / "tables.csv.gz"
    ended = good(attack("reconstruct", source, tmp_path / "out"))
    assert "every block is solved alone" in ended.err and "warning: no number of P6, P7, P10" in ended.err
    assert told(tmp_path / "out")["counts"]["level"] == "block"
    assert any("solved alone" in note for note in told(tmp_path / "out")["counts"]["notes"])
    used = ("P1", "P8", "P9", *(f"P12{letter}" for letter in "ABCDEFG"))
    again = tabulated(
        tmp_path / "out" / "records.parquet", tmp_path / "t.parquet", "--tables", ",".join(used), "--subtotals"
    )
    names = [line.variable for table in _load("sf1-person").tables if table.name in used for line in table.lines]
    official = table_rows(source).filter(pl.col("variable").is_in(names))
    assert again.height > 10_000 and again.equals(official)


# What is written


def test_the_columns_of_a_reconstruction(rebuilt: Path) -> None:
    records = rows(rebuilt, "records")
    assert records.columns == [*PERSON, "agebin"]
    assert records.schema["block"] == pl.String and set(records["sex"]) == {"male", "female"}
    assert records["age"].is_between(0, 110).all() and records["agebin"].is_between(0, 37).all()
    assert set(records.select(pl.concat_list(*RACES, "hispanic").explode()).to_series()) == {0, 1}
    assert records["block"].is_sorted()
    places = rows(rebuilt, "places")
    assert places.schema == pl.Schema(
        {
            "block": pl.String, "tract": pl.String, "population": pl.Int64, "method": pl.String,
            "recounted": pl.Boolean, "error": pl.Int64, "error_floor": pl.Int64, "proof": pl.String,
        }
    )  # fmt: skip
    assert (places["error"] == 0).all() and (places["error_floor"] == 0).all() and set(places["proof"]) == {"exact"}
    assert places.height == 72 and places["block"].is_sorted() and places["recounted"].all()
    counted = records.group_by("block").agg(pl.len().cast(pl.Int64).alias("population")).sort("block")
    assert places.select("block", "population").equals(counted)
    assert places["tract"].equals(places["block"].str.head(11).rename("tract"))


def test_the_columns_of_a_variation(varied: Path) -> None:
    places, areas = valid(rows(varied, "places")), valid(rows(varied, "areas"))
    columns = {"block": pl.String, "tract": pl.String, **FAR, "unique": pl.Int64, "start_fits": pl.Boolean}
    columns |= {"certain_whole": pl.Int64, "untold": pl.Int64}
    assert places.schema == pl.Schema(columns)
    assert areas.schema == pl.Schema({"tract": pl.String, "blocks": pl.Int64, **FAR})
    assert places.height == 72 and places["block"].is_sorted() and areas["tract"].to_list() == list(TRACTS)
    assert areas["blocks"].to_list() == [6] * 12
    assert 0 < places.filter(pl.col("solvar") > 0).height < 72  # something to tell apart


@pytest.mark.parametrize("command", ["reconstruct", "vary"])
def test_times_have_a_file_of_their_own(command: str, rebuilt: Path, varied: Path) -> None:
    times = rows(rebuilt if command == "reconstruct" else varied, "timings")
    assert times.schema == pl.Schema({"tract": pl.String, "blocks": pl.Int64, "seconds": pl.Float64})
    assert times["tract"].to_list() == list(TRACTS) and times["seconds"].min() > 0  # type: ignore[operator]


@pytest.mark.parametrize("command", ["reconstruct", "vary"])
def test_only_the_owner_can_read_what_is_written(command: str, rebuilt: Path, varied: Path) -> None:
    folder = rebuilt if command == "reconstruct" else varied
    assert {path.name for path in folder.iterdir()} == DATA_FILES[command] | {"manifest.json", "timings.parquet"}
    assert mode(folder) == 0o700
    assert {mode(path) for path in folder.iterdir()} == {0o600}


@pytest.mark.parametrize("command", ["reconstruct", "vary"])
def test_the_manifest_says_what_made_it(command: str, tables: Path, rebuilt: Path, varied: Path) -> None:
    folder = rebuilt if command == "reconstruct" else varied
    said = told(folder)
    assert said["command"] == command and said["format_version"] == 1 and said["complete"] is True
    assert said["parameters"]["seed"] == 1 and said["parameters"]["scenario"] == "sf1-person"
    digest = hashlib.sha256(tables.read_bytes()).hexdigest()
    assert said["inputs"] == {"tables": {"name": "county.parquet", "sha256": digest}}
    assert {"glasshouse", "python", "numpy", "highspy", "ortools", "polars"} <= set(said["versions"])
    assert said["counts"]["units"] == 12 and said["counts"]["refused"] == {}
    assert said["wall_seconds"] > 0 and said["cpu_seconds"] > 0
    assert set(said["outputs"]) == DATA_FILES[command]
    for name, value in said["outputs"].items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == value


def test_rebuilt_records_count_up_to_every_number(rebuilt: Path, tables: Path, tmp_path: Path) -> None:
    assert tabulated(rebuilt / "records.parquet", tmp_path / "t.parquet").equals(table_rows(tables))


def test_at_block_level_the_block_tables_are_met(tables: Path, tmp_path: Path) -> None:
    good(attack("reconstruct", tables, tmp_path / "out", "--level", "block"))
    again = tabulated(tmp_path / "out" / "records.parquet", tmp_path / "t.parquet")
    is_block = pl.col("level") == "block"
    assert again.filter(is_block).equals(table_rows(tables).filter(is_block))
    assert not again.equals(table_rows(tables))


@pytest.mark.parametrize("command", ["reconstruct", "vary"])
def test_json_is_one_object_and_alone_writes_nothing(
    command: str, tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    ended = good(attack(command, tables, None, "--json"))
    assert ended.err == "" and list(tmp_path.iterdir()) == []
    assert ended.json["command"] == command and ended.json["out"] is None
    assert {"scenario", "level", "seed", "units", "refused", "stopped_by_clock", "notes"} <= set(ended.json)


def test_quiet_still_says_what_was_left_out(tables: Path, tmp_path: Path) -> None:
    spoiled = tmp_path / "spoiled.parquet"
    frame = pl.read_parquet(tables)
    at = pl.arange(0, frame.height, eager=True) == int(frame["variable"].index_of("PCT0120003") or 0)
    frame.with_columns(pl.when(at).then(pl.col("value") + 1).otherwise(pl.col("value")).alias("value")).write_parquet(
        spoiled
    )
    ended = attack("reconstruct", spoiled, tmp_path / "out", "--quiet")
    assert ended.code == 1 and "is left out" in ended.err and "left out" in ended.out


def test_an_attribute_that_no_table_tells_is_named_and_not_compared(tables: Path, tmp_path: Path) -> None:
    ended = attack("vary", tables, tmp_path / "out", "--tables", "P1,P8")
    assert "compared without sex, age, hispanic" in ended.out and "no table used tells sex, age, hispanic" in ended.err
    said = attack("vary", tables, tmp_path / "again", "--tables", "P1,P8", "--json").json
    assert said["not_compared"] == ["sex", "age", "hispanic"] and said["headline"]["share_certain"] == 1


def test_a_tract_without_tables_of_its_own_is_the_sum_of_its_blocks(tables: Path, tmp_path: Path) -> None:
    good(attack("vary", tables, tmp_path / "out", "--level", "block"))
    places, areas = rows(tmp_path / "out", "places"), rows(tmp_path / "out", "areas")
    summed = places.group_by("tract").agg(pl.col("distance", "distance_upper", "certain").sum()).sort("tract")
    assert summed.equals(areas.select(summed.columns).sort("tract"))
    assert set(areas["proof"]) <= {"exact", "two-engines"}


def test_uniques_are_counted_among_the_data_defined(tables: Path, place: Path, tmp_path: Path) -> None:
    """Table S5: data-defined persons who are alone, data-defined or not, with their sex and age bin in the block."""
    people = pl.read_parquet(place / "county-records.parquet").with_row_index()
    flagged = people.with_columns((pl.col("index") % 3 > 0).cast(pl.Int8).alias("data_defined")).drop("index")
    flagged.write_parquet(tmp_path / "flagged.parquet")
    ended = good(attack("vary", tables, tmp_path / "out", "--uniques", tmp_path / "flagged.parquet"))
    told = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert told["unique_among"] == "data-defined records of the file given" and "unique   " in ended.out
    edges = [*range(23), 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85, 200]
    binned = flagged.with_columns(pl.Series("bin", np.searchsorted(edges, flagged["age"].to_numpy(), side="right")))
    alone = binned.filter(pl.struct("block", "sex", "bin").is_unique() & (pl.col("data_defined") == 1)).height
    share = next(row["unique_share"] for row in told["by_size"] if row["band"] == "all")
    assert share == pytest.approx(alone / flagged.height)


def test_uniques_of_other_people_are_not_used(tables: Path, place: Path, tmp_path: Path) -> None:
    pl.read_parquet(place / "county-records.parquet").head(100).write_parquet(tmp_path / "few.parquet")
    said = good(attack("vary", tables, tmp_path / "out", "--uniques", tmp_path / "few.parquet", "--json")).json
    assert said["unique_among"].startswith("all records of the start; those of --uniques are not behind these tables")
    pl.read_parquet(tmp_path / "few.parquet").clear().write_parquet(tmp_path / "nobody.parquet")
    again = attack("vary", tables, tmp_path / "again", "--uniques", tmp_path / "nobody.parquet", "--json")
    assert good(again).json["unique_among"].startswith("all records of the start; those of --uniques")


def test_another_run_in_the_folder_is_told_by_what_differs(tables: Path, tmp_path: Path) -> None:
    good(attack("reconstruct", tables, tmp_path / "out"))
    ended = attack("reconstruct", tables, tmp_path / "out", "--seed", "5", "--level", "block")
    assert ended.code == 2 and "seed 1, now 5" in ended.err and "level None, now block" in ended.err


def test_quiet_is_quiet(tables: Path, tmp_path: Path) -> None:
    ended = attack("reconstruct", tables, tmp_path / "out", "--quiet")
    assert ended.code == 0 and ended.err == "" and ended.out.count("\n") == 1  # the result, and nothing else


# The same again, or not


@pytest.mark.parametrize("command", ["reconstruct", "vary"])
def test_the_same_seed_gives_the_same_bytes(
    command: str, tables: Path, rebuilt: Path, varied: Path, tmp_path: Path
) -> None:
    good(attack(command, tables, tmp_path / "again"))
    assert data_files(tmp_path / "again", command) == data_files(
        rebuilt if command == "reconstruct" else varied, command
    )


def test_a_picture_does_not_depend_on_those_before(tables: Path, tmp_path: Path) -> None:
    for name in ("first", "second"):
        good(attack("vary", tables, tmp_path / name))
    first, second = ((tmp_path / name / "solvar-by-size.svg").read_bytes() for name in ("first", "second"))
    assert unnumbered(first) == unnumbered(second)
    assert first == second


def test_another_seed_gives_other_records_of_the_same_tables(tables: Path, rebuilt: Path, tmp_path: Path) -> None:
    good(attack("reconstruct", tables, tmp_path / "out", "--seed", 2))
    assert not rows(tmp_path / "out", "records").equals(rows(rebuilt, "records"))
    assert tabulated(tmp_path / "out" / "records.parquet", tmp_path / "t.parquet").equals(table_rows(tables))


@pytest.mark.parametrize("command", ["reconstruct", "vary"])
def test_a_finished_folder_is_up_to_date(command: str, tables: Path, rebuilt: Path, varied: Path) -> None:
    folder = rebuilt if command == "reconstruct" else varied
    before = tree(folder)
    ended = good(attack(command, tables, folder))
    assert ended.out.startswith(f"{folder} is up to date\n")
    assert good(attack(command, tables, folder, "--json")).json["unchanged"] is True
    assert tree(folder) == before


def test_a_damaged_result_is_made_anew(tables: Path, rebuilt: Path, tmp_path: Path) -> None:
    good(attack("reconstruct", tables, tmp_path / "out"))
    (tmp_path / "out" / "records.parquet").write_bytes(b"PAR1")
    assert "up to date" not in good(attack("reconstruct", tables, tmp_path / "out")).out
    assert data_files(tmp_path / "out", "reconstruct") == data_files(rebuilt, "reconstruct")


def test_another_run_replaces_a_result_only_if_told_to(tables: Path, rebuilt: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    good(attack("reconstruct", tables, out, "--seed", 2))
    before = tree(out)
    for command in DATA_FILES:
        ended = attack(command, tables, out)
        assert ended.code == 2 and "holds the result of another run" in ended.err and "--overwrite" in ended.err
        assert ended.err.count("\n") == 1 and tree(out) == before
    good(attack("reconstruct", tables, out, "--overwrite"))
    assert data_files(out, "reconstruct") == data_files(rebuilt, "reconstruct")
    good(attack("vary", tables, out, "--overwrite"))
    assert {path.name for path in out.iterdir()} == DATA_FILES["vary"] | {"manifest.json", "timings.parquet"}


def test_a_folder_of_something_else_is_left_alone(tables: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("It was a dark and stormy night.")
    before = tree(tmp_path)
    for out in (tmp_path / "thesis", tmp_path / "thesis" / "chapter.txt"):
        ended = attack("reconstruct", tables, out)
        assert ended.code == 2 and ended.err.count("\n") == 1 and str(out) in ended.err
        assert tree(tmp_path) == before


def test_overwriting_spares_the_files_of_others(tables: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("It was a dark and stormy night.")
    attack("reconstruct", tables, tmp_path / "thesis", "--overwrite")
    assert (tmp_path / "thesis" / "chapter.txt").read_text() == "It was a dark and stormy night."


def test_overwriting_spares_a_ledger_that_is_not_ours(tables: Path, tmp_path: Path) -> None:
    (tmp_path / "accounts" / "ledger").mkdir(parents=True)
    (tmp_path / "accounts" / "ledger" / "2024.txt").write_text("all our money")
    attack("reconstruct", tables, tmp_path / "accounts", "--overwrite")
    assert (tmp_path / "accounts" / "ledger" / "2024.txt").exists()


def test_overwriting_with_bad_input_keeps_the_old_result(tables: Path, tmp_path: Path) -> None:
    good(attack("reconstruct", tables, tmp_path / "out"))
    before = tree(tmp_path / "out")
    (tmp_path / "garbled.csv").write_text("level,geoid,table,variable,value\nblock,x,P1,P0010001,5\n")
    assert attack("reconstruct", tmp_path / "garbled.csv", tmp_path / "out", "--overwrite").code == 2
    assert tree(tmp_path / "out") == before


def test_overwriting_does_not_eat_its_own_input(tables: Path, tmp_path: Path) -> None:
    good(attack("reconstruct", tables, tmp_path / "out"))
    before = tree(tmp_path / "out")
    ended = attack("vary", tables, tmp_path / "out", "--from", tmp_path / "out", "--overwrite")
    assert ended.code == 2 and tree(tmp_path / "out") == before


def test_overwriting_helps_against_a_garbled_manifest_as_it_says(tables: Path, tmp_path: Path) -> None:
    good(attack("reconstruct", tables, tmp_path / "out"))
    (tmp_path / "out" / "manifest.json").write_text("{")
    ended = attack("reconstruct", tables, tmp_path / "out")
    assert ended.code == 2 and "--overwrite" in ended.err
    good(attack("reconstruct", tables, tmp_path / "out", "--overwrite"))


# Who does the work does not matter


def test_two_workers_give_the_same_bytes(tables: Path, rebuilt: Path, varied: Path, tmp_path: Path) -> None:
    for command, single in (("reconstruct", rebuilt), ("vary", varied)):
        good(attack(command, tables, tmp_path / command, "--workers", 2))
        assert data_files(tmp_path / command, command) == data_files(single, command)


def eventually(true: Callable[[], bool], what: str = "it") -> None:
    for _ in range(60_000):
        if true():
            return
        time.sleep(0.002)
    raise AssertionError(f"{what} never came")


@needs_dask
def test_a_dask_cluster_gives_the_same_bytes(tables: Path, rebuilt: Path, varied: Path, tmp_path: Path) -> None:
    with cluster(tmp_path, 2) as found:
        for command, single in (("reconstruct", rebuilt), ("vary", varied)):
            good(attack(command, tables, tmp_path / command, "--executor", found.address))
            assert data_files(tmp_path / command, command) == data_files(single, command)


@needs_dask
def test_a_cluster_with_certificates_gives_the_same_bytes_and_knows_no_strangers(
    tables: Path, rebuilt: Path, tmp_path: Path
) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    ours.mkdir()
    theirs.mkdir()
    told = certificates(ours)
    with cluster(tmp_path, 2, protocol="tls", **in_environment(told)) as found:
        assert found.address.startswith("tls://")
        with configured(told):
            ended = good(attack("reconstruct", tables, tmp_path / "out", "--executor", found.address))
        assert "unencrypted" not in ended.err
        assert data_files(tmp_path / "out", "reconstruct") == data_files(rebuilt, "reconstruct")
        with configured(certificates(theirs)):
            ended = good(attack("reconstruct", tables, tmp_path / "no", "--executor", found.address), 2)
        assert "no Dask scheduler answered" in ended.err and "certificates of the same authority" in ended.err


# Where vary starts, and what it is asked


def test_starting_from_a_reconstruction_is_the_default(
    tables: Path, rebuilt: Path, varied: Path, tmp_path: Path
) -> None:
    good(attack("vary", tables, tmp_path / "out", "--from", rebuilt))
    assert data_files(tmp_path / "out", "vary") == data_files(varied, "vary")
    inputs = told(tmp_path / "out")["inputs"]
    assert inputs["from"]["sha256"] == hashlib.sha256((rebuilt / "records.parquet").read_bytes()).hexdigest()


def test_vary_may_start_from_the_truth(tables: Path, varied: Path, tmp_path: Path) -> None:
    truth = tables.with_name("county-records.parquet")
    good(attack("vary", tables, tmp_path / "out", "--from", truth))
    places = valid(rows(tmp_path / "out", "places"))
    assert places["start_fits"].all()
    for column in ("certain", "population"):  # these do not depend on the start; solvar may, up to a factor of 2
        assert places[column].equals(rows(varied, "places")[column])
    both = places.join(rows(varied, "places"), on="block")
    assert both.filter((pl.col("solvar") == 0) != (pl.col("solvar_right") == 0)).is_empty()
    assert both.filter(pl.col("distance") > 2 * pl.col("distance_right")).is_empty()


@pytest.fixture(scope="module")
def from_outside(place: Path, tables: Path) -> tuple[Path, Ended]:
    """A start that fits the blocks and not their tracts."""
    good(attack("reconstruct", tables, place / "blocks-alone", "--level", "block"))
    ended = good(attack("vary", tables, place / "from-outside", "--from", place / "blocks-alone"))
    return place / "from-outside", ended


def test_what_is_certain_does_not_depend_on_the_start(from_outside: tuple[Path, Ended], varied: Path) -> None:
    folder, _ = from_outside
    places = valid(rows(folder, "places"))
    outside = (~places["start_fits"]).sum()
    assert 0 < outside == told(folder)["counts"]["starts_outside"]
    assert places["certain"].equals(rows(varied, "places")["certain"])
    assert places.filter("start_fits")["solvar_upper"].max() <= 1  # type: ignore[operator]


def test_people_are_told_that_the_start_does_not_fit(from_outside: tuple[Path, Ended]) -> None:
    _, ended = from_outside
    assert re.search(r"\bstart|--from|do(es)? not fit", ended.out + ended.err)


def test_records_of_other_tables_are_no_start(tables: Path, other_tables: Path, varied: Path, tmp_path: Path) -> None:
    ours, theirs = (pl.read_parquet(path.with_name(path.stem + "-records.parquet")) for path in (tables, other_tables))
    wrong = TRACTS[3:7]
    mixed = pl.concat([of(ours, *wrong, without=True), of(theirs, *wrong)])
    mixed.write_parquet(tmp_path / "mixed.parquet")
    ended = good(attack("vary", tables, tmp_path / "out", "--from", tmp_path / "mixed.parquet"), 1)
    refused = told(tmp_path / "out")["counts"]["refused"]
    assert sorted(refused) == sorted(wrong)
    for tract in wrong:
        assert f"tract {tract} is left out: the records given do not count up" in ended.err
    places = rows(tmp_path / "out", "places")
    assert places.height == 8 * 6 and of(places, *wrong).is_empty()
    assert places["certain"].equals(of(rows(varied, "places"), *wrong, without=True)["certain"])


def test_exact_ages_vary(tables: Path, tmp_path: Path, varied: Path) -> None:
    good(attack("vary", tables, tmp_path / "out", "--schema", "exact-age"))
    places = valid(rows(tmp_path / "out", "places"))
    assert places["solvar"].mean() > rows(varied, "places")["solvar"].mean()  # type: ignore[operator]
    assert valid(rows(tmp_path / "out", "areas")).height == 12


def test_more_limits_leave_less_to_vary(tables: Path, tmp_path: Path, varied: Path) -> None:
    good(attack("vary", tables, tmp_path / "out", "--tighten"))
    tight, printed = valid(rows(tmp_path / "out", "places")), rows(varied, "places")
    assert (tight["solvar"] <= printed["solvar_upper"]).all()
    assert (tight["solvar_upper"] <= printed["solvar_upper"]).all()
    assert (tight["certain"] >= printed["certain"]).all()
    assert tight["solvar_upper"].sum() < printed["solvar_upper"].sum()


def test_a_tract_in_all_varies_no_more_than_its_blocks(tables: Path, tmp_path: Path, varied: Path) -> None:
    good(attack("vary", tables, tmp_path / "out", "--scope", "tract"))
    joint, alone = valid(rows(tmp_path / "out", "areas")), valid(rows(varied, "areas"))
    assert (joint["solvar_upper"] <= alone["solvar_upper"]).all()
    assert joint["solvar_upper"].sum() < alone["solvar_upper"].sum()
    assert (joint["certain"] >= alone["certain"]).all()
    places, before = valid(rows(tmp_path / "out", "places")), rows(varied, "places")
    assert (places["certain"] >= before["certain"]).all()
    assert places["certain"].sum() > before["certain"].sum()
    assert (places["solvar_upper"] <= before["solvar_upper"]).all()


# Numbers that cannot be true


def changed(frame: pl.DataFrame, level: str, geoid: str, variable: str, by: int) -> pl.DataFrame:
    hit = (pl.col("level") == level) & (pl.col("geoid") == geoid) & (pl.col("variable") == variable)
    assert frame.filter(hit).height == 1
    return frame.with_columns(pl.when(hit).then(pl.col("value") + by).otherwise(pl.col("value")).alias("value"))


def unequal_sum(frame: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    variable = frame.filter((pl.col("level") == "tract") & (pl.col("geoid") == BAD))["variable"][5]
    return changed(frame, "tract", BAD, variable, 1)


def two_vintages(frame: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    mixed = (pl.col("level") == "tract") & (pl.col("geoid") == BAD)
    return pl.concat([frame.filter(~mixed), other.filter(mixed)])


def no_tract(frame: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    return frame.filter((pl.col("level") != "tract") | (pl.col("geoid") != BAD))


def impossible_block(frame: pl.DataFrame, other: pl.DataFrame) -> pl.DataFrame:
    return changed(frame, "block", f"{BAD}1000", "P0010001", 1)


@pytest.mark.parametrize("command", ["reconstruct", "vary"])
@pytest.mark.parametrize("spoil", [unequal_sum, two_vintages, no_tract, impossible_block])
def test_one_bad_tract_is_left_out_with_its_reason_and_the_rest_is_done(
    command: str,
    spoil: Callable[[pl.DataFrame, pl.DataFrame], pl.DataFrame],
    tables: Path,
    other_tables: Path,
    rebuilt: Path,
    varied: Path,
    tmp_path: Path,
) -> None:
    spoilt = spoil(pl.read_parquet(tables), pl.read_parquet(other_tables))
    spoilt.write_parquet(tmp_path / "t.parquet")
    out = tmp_path / "out"
    ended = good(attack(command, tmp_path / "t.parquet", out), 1)
    refused = told(out)["counts"]["refused"]
    assert list(refused) == [BAD] and refused[BAD]["cells"]
    for cell in refused[BAD]["cells"]:
        assert set(cell) == {"geoid", "level", "variable", "lower", "upper", "summed"}
        assert cell["geoid"].startswith(BAD)
    first = refused[BAD]["cells"][0]
    *before, said = ended.err.splitlines()
    assert said == f"tract {BAD} is left out: {refused[BAD]['reason']}"
    assert all(line.startswith("warning: totals in") for line in before), before  # rows may be missing
    assert first["variable"] in ended.err and first["geoid"] in ended.err and str(first["lower"]) in ended.err
    clean = rebuilt if command == "reconstruct" else varied
    for name in ("records", "places") if command == "reconstruct" else ("places", "areas"):
        assert rows(out, name).equals(of(rows(clean, name), BAD, without=True))
    before = tree(out)
    again = good(attack(command, tmp_path / "t.parquet", out), 1)
    assert again.err == ended.err and "is up to date" in again.out
    in_json = good(attack(command, tmp_path / "t.parquet", out, "--json"), 1)
    assert in_json.json["refused"] == refused and tree(out) == before


def test_json_names_the_bad_cells_when_nothing_is_written(tables: Path, tmp_path: Path) -> None:
    frame = pl.read_parquet(tables)
    unequal_sum(frame, frame).write_parquet(tmp_path / "t.parquet")
    said = good(attack("reconstruct", tmp_path / "t.parquet", None, "--json"), 1).json
    assert list(said["refused"]) == [BAD] and len(said["refused"][BAD]["cells"]) == 2
    assert said["units"] == 12 and said["places"] == 66


def test_a_tract_that_could_not_be_rebuilt_has_the_same_reason_when_vary_starts_there(
    tables: Path, tmp_path: Path
) -> None:
    frame = pl.read_parquet(tables)
    unequal_sum(frame, frame).write_parquet(tmp_path / "t.parquet")
    good(attack("reconstruct", tmp_path / "t.parquet", tmp_path / "rebuilt"), 1)
    said = good(attack("vary", tmp_path / "t.parquet", None, "--from", tmp_path / "rebuilt", "--json"), 1).json
    assert said["refused"] == told(tmp_path / "rebuilt")["counts"]["refused"]


@pytest.mark.parametrize("command", ["reconstruct", "vary"])
def test_when_every_tract_is_of_another_vintage_all_are_left_out(
    command: str, tables: Path, other_tables: Path, tmp_path: Path
) -> None:
    is_tract = pl.col("level") == "tract"
    mixed = pl.concat([pl.read_parquet(tables).filter(~is_tract), pl.read_parquet(other_tables).filter(is_tract)])
    mixed.write_parquet(tmp_path / "t.parquet")
    ended = good(attack(command, tmp_path / "t.parquet", tmp_path / "out"), 1)
    assert sorted(told(tmp_path / "out")["counts"]["refused"]) == list(TRACTS)
    assert ended.err.count(" is left out: ") == 10 and "... and 2 more" in ended.err
    for name in DATA_FILES[command]:
        if name.endswith(".parquet"):
            assert pl.read_parquet(tmp_path / "out" / name).is_empty()


# Wrong usage and files that cannot be read


def garbled(folder: Path, name: str, content: bytes) -> Path:
    (folder / name).write_bytes(content)
    return folder / name


WRONG = {
    "unknown level": ("reconstruct", ("--level", "parish"), r"unknown level 'parish'; known: .*tract"),
    "level not there": ("reconstruct", ("--level", "county"), r"no number of a county .*tract, block"),
    "unknown assumption": ("reconstruct", ("--assume-published", "P99"), r"unknown table 'P99'"),
    "unknown cluster": ("reconstruct", ("--executor", "spark://h:1"), r"expected dask://HOST:PORT"),
    "unknown scope": ("vary", ("--scope", "parish"), r"unknown scope 'parish'; known: .*tract"),
    "scope not there": ("vary", ("--scope", "county"), r"--scope county needs the tables of that level"),
    "unknown schema": ("vary", ("--schema", "years"), r"unknown schema 'years'; known: 38-bin, exact-age"),
    "tract scope of blocks": ("vary", ("--scope", "tract", "--level", "block"), r"--scope tract needs the tables"),
    "ages of blocks": ("vary", ("--schema", "exact-age", "--level", "block"), r"exact-age needs the tables"),
    "no start": ("vary", ("--from", "nowhere"), r"nowhere: there is no such file"),
    "no workers": ("vary", ("--workers", "0"), r"--workers"),
    "no number": ("vary", ("--seed", "one"), r"--seed"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_usage_gets_one_line(case: str, tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command, options, words = WRONG[case]
    monkeypatch.chdir(tmp_path)
    ended = attack(command, tables, tmp_path / "out", *options)
    assert ended.code == 2 and ended.out == ""
    assert ended.err.startswith("glasshouse: ") and ended.err.count("\n") == 1
    assert re.search(words, ended.err), ended.err


LATE = ("unknown level", "level not there", "unknown assumption", "unknown cluster", "scope not there")
LATE += ("tract scope of blocks", "ages of blocks")


@pytest.mark.parametrize("case", [pytest.param(case) if case in LATE else case for case in WRONG])
def test_wrong_usage_leaves_nothing_behind(
    case: str, tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, options, _ = WRONG[case]
    monkeypatch.chdir(tmp_path)
    assert attack(command, tables, tmp_path / "out", *options).code == 2
    assert list(tmp_path.iterdir()) == []


def test_an_out_must_be_named(tables: Path) -> None:
    for command in DATA_FILES:
        ended = attack(command, tables, None)
        assert ended.code == 2 and ended.err.startswith("glasshouse: --out is missing") and ended.err.count("\n") == 1


UNREADABLE = {
    "empty.csv": b"",
    "junk.parquet": random.Random(1).randbytes(2000),
    "word.csv": b"level,geoid,table,variable,value\nblock,990010000021000,P1,P0010001,many\n",
    "code.csv": b"level,geoid,table,variable,value\nblock,12,P1,P0010001,5\n",
    "tracts.csv": b"level,geoid,table,variable,value\ntract,99001000002,PCT12,PCT0120003,5\n",
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_file_that_cannot_be_read_gets_one_line(name: str, tmp_path: Path) -> None:
    source = garbled(tmp_path, name, UNREADABLE[name])
    ended = attack("reconstruct", source, tmp_path / "out")
    assert ended.code == 2 and ended.out == "" and name in ended.err
    assert ended.err.startswith("glasshouse: ") and ended.err.count("\n") == 1 and "bug" not in ended.err


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_file_that_cannot_be_read_leaves_no_folder(name: str, tmp_path: Path) -> None:
    source = garbled(tmp_path, name, UNREADABLE[name])
    assert attack("vary", source, tmp_path / "out").code == 2
    assert list(tmp_path.iterdir()) == [source]


# Stopped by the clock


def test_what_the_clock_stopped_has_bounds_and_is_finished_next_time(hard_tables: Path, tmp_path: Path) -> None:
    ended = attack("vary", hard_tables, tmp_path / "out", "--seconds", "1e-9", "--json")
    assert ended.code == 1  # done, but not to the end
    said = ended.json
    stopped = said["stopped_by_clock"]
    assert stopped and said["units"] == 4 and told(tmp_path / "out")["complete"] is False
    quick = valid(rows(tmp_path / "out", "places"))
    assert "undecided" in set(of(quick, *stopped)["proof"])
    state = good(tool("status", tmp_path / "out", "--json")).json
    assert (state["state"], state["finished"], state["open"]) == ("stopped", 4 - len(stopped), len(stopped))
    assert "stopped by the clock" in good(tool("status", tmp_path / "out")).out

    said = good(attack("vary", hard_tables, tmp_path / "out", "--json")).json
    assert said["stopped_by_clock"] == [] and said["units_from_before"] == 4 - len(stopped)
    good(attack("vary", hard_tables, tmp_path / "fresh"))
    assert data_files(tmp_path / "out", "vary") == data_files(tmp_path / "fresh", "vary")
    assert not (tmp_path / "out" / "ledger").exists()
    final = valid(rows(tmp_path / "out", "places"))
    assert (final["distance"] <= quick["distance_upper"]).all() and (final["distance_upper"] >= quick["distance"]).all()
    assert (final["certain_upper"] >= quick["certain"]).all() and (final["certain"] <= quick["certain_upper"]).all()


def test_people_are_told_what_the_clock_stopped(hard_tables: Path, tmp_path: Path) -> None:
    ended = attack("vary", hard_tables, tmp_path / "out", "--seconds", "1e-9")
    assert ended.code == 1 and "clock" in ended.out + ended.err


def test_the_ledger_is_the_owners_alone(hard_tables: Path, tmp_path: Path) -> None:
    attack("vary", hard_tables, tmp_path / "out", "--seconds", "1e-9")
    ledger = tmp_path / "out" / "ledger"
    assert mode(ledger) == 0o700 and mode(tmp_path / "out") == 0o700
    assert {path.name: oct(mode(path)) for path in ledger.iterdir() if mode(path) != 0o600} == {}


# Interrupted


def stop_at(monkeypatch: pytest.MonkeyPatch, name: str, before: Callable[[], Any] = lambda: None) -> None:
    """Ctrl-C at the moment when a step of the run begins."""

    def interrupted(*arguments: Any, **options: Any) -> None:
        before()
        raise KeyboardInterrupt

    module = units_module if hasattr(units_module, name) else job_module
    monkeypatch.setattr(module, name, interrupted)


@pytest.mark.parametrize("step", [pytest.param("make_job"), "run", pytest.param("put_together")])
def test_what_is_said_at_ctrl_c_is_true(
    step: str, tables: Path, rebuilt: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        stop_at(patch, step)
        ended = attack("reconstruct", tables, out)
    assert ended.code == 130 and ended.out == "" and ended.err.count("\n") == 1
    assert ("nothing was left behind" in ended.err) == (not out.exists()), ended.err
    assert ("are kept" in ended.err) == out.exists(), ended.err
    good(attack("reconstruct", tables, out))
    assert data_files(out, "reconstruct") == data_files(rebuilt, "reconstruct")


def test_ctrl_c_of_json_alone_keeps_nothing_and_says_so(
    tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    stop_at(monkeypatch, "run")
    ended = attack("reconstruct", tables, None, "--json")
    assert ended.code == 130 and list(tmp_path.iterdir()) == []
    assert "nothing was left behind" in ended.err


def test_half_written_files_of_a_killed_run_go_when_it_goes_on(
    tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    with monkeypatch.context() as patch:  # kill -9 leaves the file that is being written under its first name
        stop_at(patch, "put_together", lambda: (out / ".glasshouse-a1b2c3d4").write_bytes(b"half"))
        assert attack("reconstruct", tables, out).code == 130
    good(attack("reconstruct", tables, out))
    assert {path.name for path in out.iterdir()} == DATA_FILES["reconstruct"] | {"manifest.json", "timings.parquet"}


def test_a_run_killed_at_its_very_first_step_goes_on(tables: Path, rebuilt: Path, tmp_path: Path) -> None:
    """After the lock was taken, before the ledger had said what it is of."""
    ledger = tmp_path / "out" / "ledger"
    ledger.mkdir(parents=True)
    (ledger / "lock").touch()
    (ledger / ".run.json.a1b2c3d4").write_text("{")
    good(attack("reconstruct", tables, tmp_path / "out"))
    assert data_files(tmp_path / "out", "reconstruct") == data_files(rebuilt, "reconstruct")


def test_a_damaged_ledger_is_helped_as_it_says(tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        stop_at(patch, "put_together")
        assert attack("reconstruct", tables, tmp_path / "out").code == 130
    (tmp_path / "out" / "ledger" / "run.json").write_text("{")
    said = tool("status", tmp_path / "out")
    assert said.code == 2 and "run the command again" in said.err
    assert good(attack("reconstruct", tables, tmp_path / "out", "--json")).json["units_from_before"] == 12


# Killed, at any moment


@pytest.fixture(scope="module")
def undisturbed(place: Path, long_tables: Path) -> dict[str, dict[str, bytes]]:
    for command in DATA_FILES:
        good(attack(command, long_tables, place / f"long-{command}", *FEW))
    return {command: data_files(place / f"long-{command}", command) for command in DATA_FILES}


def command_line(command: str, tables: Path, out: Path, *options: object) -> tuple[object, ...]:
    return ("-m", "glasshouse", command, tables, *SF1, *FEW, "--out", out, *(options or ("--workers", 2)))


def units(out: Path) -> int:
    return len(list((out / "ledger").glob("*.unit")))


def children(pid: int) -> dict[int, str]:
    """The processes that a process has started, and their command lines."""
    found = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError):
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == pid:
                found[int(path.name)] = (path / "cmdline").read_text().replace("\0", " ")
    return found


def workers_of(pid: int) -> list[int]:
    return sorted(child for child, line in children(pid).items() if "spawn_main" in line)


def gone(pid: int) -> bool:
    """Is a process dead? One that only waits to be buried is."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


MOMENTS = ("begun", "hired", "units", "together", "manifest")


def has_come(moment: str, process: subprocess.Popen[str], out: Path, count: int) -> bool:
    if process.poll() is not None:
        return True
    if moment == "begun":
        return (out / "ledger" / "run.json").exists()
    if moment == "hired":
        return bool(workers_of(process.pid))
    if moment == "units":
        return units(out) >= count
    if moment == "together":
        return any(out.glob(".*.parquet.*")) or (out / "places.parquet").exists()
    return (out / "manifest.json").exists()


def finished_by_itself(process: subprocess.Popen[str]) -> None:
    _, err = process.communicate()
    assert process.returncode == 0, err
    assert "Traceback" not in err


def disturb(command: str, victim: str, moment: str, count: int, wait: float, tables: Path, out: Path) -> None:
    """Start a command, kill it or one of its workers at a moment, and see it to its end."""
    with started(*command_line(command, tables, out)) as process:
        eventually(lambda: has_come(moment, process, out, count), moment)
        time.sleep(wait)
        offspring = list(children(process.pid))
        if victim == "worker" and (workers := workers_of(process.pid)):
            os.kill(workers[count % len(workers)], signal.SIGKILL)
            finished_by_itself(process)
            return
        process.kill()
        process.wait()
        eventually(lambda: all(gone(pid) for pid in offspring), "the end of its workers")
    with started(*command_line(command, tables, out)) as process:
        finished_by_itself(process)


@pytest.mark.parametrize(
    ("command", "victim", "count"),
    [pytest.param("reconstruct", "parent", 9, marks=pytest.mark.slow), ("vary", "worker", 5)],
)
def test_kill_9_does_no_harm(
    command: str, victim: str, count: int, long_tables: Path, undisturbed: dict[str, dict[str, bytes]], tmp_path: Path
) -> None:
    disturb(command, victim, "units", count, 0, long_tables, tmp_path / "out")
    assert data_files(tmp_path / "out", command) == undisturbed[command]
    assert told(tmp_path / "out")["complete"] and not (tmp_path / "out" / "ledger").exists()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_kill_9_does_no_harm_at_any_moment(
    seed: int, long_tables: Path, undisturbed: dict[str, dict[str, bytes]], tmp_path: Path
) -> None:
    chance = random.Random(seed)
    command, victim = ("reconstruct", "vary")[seed % 2], ("parent", "worker")[seed // 2 % 2]
    moment = MOMENTS[seed % len(MOMENTS)] if victim == "parent" else chance.choice(MOMENTS[1:3])
    count, wait = chance.randrange(1, UNITS), chance.choice((0.0, chance.random() * 0.1))
    disturb(command, victim, moment, count, wait, long_tables, tmp_path / "out")
    assert data_files(tmp_path / "out", command) == undisturbed[command]
    assert told(tmp_path / "out")["complete"] and not (tmp_path / "out" / "ledger").exists()


@pytest.mark.slow
def test_one_run_killed_again_and_again_comes_to_its_end(
    long_tables: Path, undisturbed: dict[str, dict[str, bytes]], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    for count in (2, 12, 40, UNITS - 1):
        with started(*command_line("vary", long_tables, out)) as process:
            eventually(lambda count=count: has_come("units", process, out, count))  # type: ignore[misc]  # a default
            process.kill()
            process.wait()
        state = good(tool("status", out, "--json")).json
        assert state["state"] == "done" or state["finished"] >= count
    with started(*command_line("vary", long_tables, out)) as process:
        finished_by_itself(process)
    assert data_files(out, "vary") == undisturbed["vary"]


@needs_dask
@pytest.mark.slow
@pytest.mark.parametrize(("command", "protocol"), [("reconstruct", "tcp"), ("vary", "tcp"), ("vary", "tls")])
def test_a_dask_worker_that_is_killed_is_done_without(
    command: str, protocol: str, long_tables: Path, undisturbed: dict[str, dict[str, bytes]], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    told = in_environment(certificates(tmp_path)) if protocol == "tls" else {}
    with (
        cluster(tmp_path, 2, protocol=protocol, **told) as found,
        started(*command_line(command, long_tables, out, "--executor", found.address), **told) as process,
    ):
        eventually(lambda: has_come("units", process, out, 5))
        assert process.poll() is None, "it was over before a worker could be killed"
        found.workers[0].kill()
        finished_by_itself(process)
    assert data_files(out, command) == undisturbed[command]


@needs_dask
@pytest.mark.slow
def test_a_run_on_dask_can_be_killed_and_finished_at_home(
    long_tables: Path, undisturbed: dict[str, dict[str, bytes]], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with cluster(tmp_path, 2) as found:
        with started(*command_line("vary", long_tables, out, "--executor", found.address)) as process:
            eventually(lambda: has_come("units", process, out, 5))
            process.kill()
            process.wait()
        kept = units(out)
    with started(*command_line("vary", long_tables, out, "--workers", 1, "--json")) as process:
        printed, _ = process.communicate()
        assert json.loads(printed)["units_from_before"] == kept
    assert data_files(out, "vary") == undisturbed["vary"]


def in_the_middle(process: subprocess.Popen[str], out: Path) -> None:
    """Hold a run, and all its workers, when its first unit is done."""
    eventually(lambda: has_come("units", process, out, 1))
    os.killpg(process.pid, signal.SIGSTOP)
    assert process.poll() is None and 0 < units(out) < UNITS


def test_a_run_from_status_to_ctrl_c_to_its_end(
    long_tables: Path, undisturbed: dict[str, dict[str, bytes]], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with started(*command_line("reconstruct", long_tables, out)) as process:
        in_the_middle(process, out)
        done = units(out)
        state = good(tool("status", out, "--json")).json
        assert (state["state"], state["command"], state["units"]) == ("running", "reconstruct", UNITS)
        assert (state["finished"], state["open"], state["resumed"]) == (done, 0, 0)
        lines = good(tool("status", out)).out
        assert lines.startswith(f"reconstruct: running, {done} of {UNITS} units done\n") and "started 20" in lines

        before = tree(out)
        second = attack("reconstruct", long_tables, out, *FEW)
        assert second.code == 2 and second.err.count("\n") == 1 and str(out) in second.err
        third = attack("reconstruct", long_tables, out, *FEW, "--seed", 2)
        assert third.code == 2 and third.err.count("\n") == 1 and str(out) in third.err
        assert tree(out) == before

        offspring = list(children(process.pid))
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to all of them
        os.killpg(process.pid, signal.SIGCONT)
        printed, err = process.communicate()
        assert process.returncode == 130 and printed == ""
        assert err.endswith(
            "glasshouse: interrupted; the units that are done are kept; run the same command again to resume\n"
        )
        eventually(lambda: all(gone(pid) for pid in offspring), "the end of its workers")

    done = units(out)
    state = good(tool("status", out, "--json")).json
    assert (state["state"], state["finished"]) == ("stopped", done) and done > 0
    lines = good(tool("status", out)).out
    assert f"stopped, {done} of {UNITS} units done" in lines and "run the same command again to resume" in lines

    with started(*command_line("reconstruct", long_tables, out, "--workers", 2, "--json")) as process:
        printed, err = process.communicate()
    said = Ended(process.returncode, printed, err)
    assert good(said).json["units_from_before"] == done and said.err == ""
    assert data_files(out, "reconstruct") == undisturbed["reconstruct"]
    state = good(tool("status", out, "--json")).json
    assert (state["state"], state["command"], state["units"], state["refused"]) == ("done", "reconstruct", UNITS, 0)
    assert good(tool("status", out)).out.startswith(f"reconstruct: done, {UNITS} units; ")


@pytest.mark.slow
def test_a_run_at_work_cannot_be_overwritten(long_tables: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with started(*command_line("reconstruct", long_tables, out)) as process:
        in_the_middle(process, out)
        before = tree(out)
        ended = attack("reconstruct", long_tables, out, *FEW, "--overwrite")
        assert (ended.code, tree(out) == before) == (2, True)
        assert "another run is working" in ended.err


def test_there_is_no_status_of_anything_else(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "nowhere"):
        ended = tool("status", folder)
        assert ended.code == 2 and ended.err.count("\n") == 1 and str(folder) in ended.err
        assert tool("status", folder, "--json").json["exit_code"] == 2


# At scale


@pytest.mark.slow
def test_a_thousand_tracts_count_up_again(place: Path, tmp_path: Path) -> None:
    sizes = np.minimum(blocks.block_sizes(6000, 9), 300)
    source = county(place, "thousand", sizes, "national", 9, np.repeat(np.arange(1000), 6))
    said = good(attack("reconstruct", source, tmp_path / "out", "--workers", 2, "--json")).json
    assert (said["units"], said["refused"], said["places"], said["recounted"]) == (1000, {}, 6000, 6000)
    assert said["records"] == sizes.sum() and rows(tmp_path / "out", "places")["recounted"].all()
    again = tabulated(tmp_path / "out" / "records.parquet", tmp_path / "again.parquet")
    assert again.equals(table_rows(source))
