"""Does the command line keep its contract: exit codes, what is printed where, what is written, and what is not?"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import random
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from glasshouse.cli import main as cli
from glasshouse.cli.main import main
from glasshouse.commands.work import tabulate as tabulating
from glasshouse.engine import manifest
from glasshouse.scenarios import load as scenario_module
from tests.running import Ended, good, tool

SF1 = ("--scenario", "sf1-person")
COMMANDS = tuple(name.replace("_", "-") for name in cli.TERMINAL)
RACES = ("white", "black", "aian", "asian", "nhopi", "sor")
BLOCKS = ("010730051031000", "010730051031001", "010730051032000", "010730052001000", "390599772003104")


def people(count: int = 300, seed: int = 7) -> list[str]:
    """Lines of records, white and Asian people only, so that some tables have nothing to count."""
    chance = random.Random(seed)
    lines = []
    for _ in range(count):
        races = chance.choice([(1, 0, 0, 0, 0, 0), (0, 0, 0, 1, 0, 0), (1, 0, 0, 1, 0, 0)])
        person = (chance.choice(BLOCKS), chance.choice(("male", "female")), chance.randint(0, 110), *races)
        lines.append(",".join(map(str, (*person, chance.randint(0, 1)))))
    return lines


HEADER = ",".join(("block", "sex", "age", *RACES, "hispanic"))
LINES = people()


Run = Callable[..., Ended]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def ended(*arguments: object) -> Ended:
        code = main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return Ended(code, printed.out, printed.err)

    return ended


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A built-in scenario is frozen, so it is loaded once for all tests here."""
    monkeypatch.setattr(scenario_module, "load", _load)


_load = cache(scenario_module.load)


@pytest.fixture
def records(tmp_path: Path) -> Path:
    path = tmp_path / "records.csv"
    path.write_text("\n".join([HEADER, *LINES, ""]))
    return path


@pytest.fixture
def tables(tmp_path: Path, records: Path, run: Run) -> Path:
    assert run("tabulate", records, *SF1, "--tables", "P1,P6,P12", "--out", tmp_path / "tables.csv").code == 0
    return tmp_path / "tables.csv"


def long(path: Path) -> pl.DataFrame:
    if path.suffix == ".parquet":
        return pl.read_parquet(path)
    return pl.read_csv(path, schema_overrides={"geoid": pl.String})


def python(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, **options)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# Help, version, usage


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_every_command_has_an_example(command: str, run: Run) -> None:
    ended = run(command, "--help")
    assert ended.code == 0 and ended.err == ""
    assert re.search(rf"Example:\s+glasshouse {command} ", ended.out)
    assert "--json" in ended.out and "--quiet" in ended.out


def test_help_waits_for_no_heavy_import() -> None:
    script = (
        "import sys\nfrom glasshouse.cli.main import main\nassert main(['--help']) == 0\n"
        "print(sorted({'polars', 'numba', 'scipy', 'numpy', 'pyarrow', 'rich.progress'} & set(sys.modules)))"
    )
    ended = python("-c", script)
    assert ended.stdout.splitlines()[-1] == "[]", ended.stderr
    assert "Usage: glasshouse" in ended.stdout


def test_without_arguments_there_is_help(run: Run) -> None:
    ended = run()
    assert ended.code == 0 and "Usage: glasshouse" in ended.out


def test_the_version_is_told(run: Run) -> None:
    ended = run("--version")
    assert (ended.code, ended.err) == (0, "")
    assert re.fullmatch(r"glasshouse \d+\.\d+\.\d+\n", ended.out)


@pytest.mark.parametrize("arguments", [("divine",), ("check",), ("check", "x.csv"), ("tabulate", "--colour", "red")])
def test_wrong_usage_ends_with_2_and_points_to_the_help(arguments: tuple[str, ...], run: Run) -> None:
    ended = run(*arguments)
    assert ended.code == 2 and ended.out == ""
    assert ended.err.startswith("glasshouse: ") and ended.err.count("\n") == 1 and "--help" in ended.err


def test_the_module_can_be_run_and_gives_its_exit_code() -> None:
    ended = python("-m", "glasshouse", "check", "nowhere.csv", *SF1, "--json")
    assert ended.returncode == 2
    assert json.loads(ended.stdout)["exit_code"] == 2
    assert ended.stderr.startswith("glasshouse: nowhere.csv") and ended.stderr.count("\n") == 1


def test_json_can_be_printed_where_only_ascii_can(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    ended = python("-m", "glasshouse", "check", str(tmp_path / "é.csv"), *SF1, "--json", env=environment)
    assert ended.returncode == 2 and "Traceback" not in ended.stderr


# What tabulate says and writes


def test_tabulate_says_what_it_did_in_one_json_object(records: Path, tmp_path: Path, run: Run) -> None:
    ended = run("tabulate", records, *SF1, "--out", tmp_path / "t.csv", "--json")
    assert ended.code == 0 and ended.err == ""
    assert set(ended.json) == {"command", "scenario", "tables", "out", "records", "cells", "places"}
    assert ended.json["records"] == len(LINES) and ended.json["tables"] == 34
    assert ended.json["out"] == str(tmp_path / "t.csv")


def test_json_alone_writes_nothing(records: Path, tmp_path: Path, run: Run) -> None:
    ended = run("tabulate", records, *SF1, "--json")
    assert ended.code == 0 and ended.json["out"] is None
    assert list(tmp_path.iterdir()) == [records]


def test_places_and_non_zero_cells_are_counted_once(records: Path, tmp_path: Path, run: Run) -> None:
    ended = run("tabulate", records, *SF1, "--out", tmp_path / "t.csv", "--json")
    assert ended.json["places"] == {"block": 5, "tract": 3}
    assert ended.json["cells"] == long(tmp_path / "t.csv").filter(pl.col("value") > 0).height


def test_people_get_a_line_and_quiet_people_none(records: Path, tmp_path: Path, run: Run) -> None:
    spoken = run("tabulate", records, *SF1, "--tables", "P1", "--out", tmp_path / "a.csv")
    assert spoken.out == f"300 records, 1 tables, 5 non-zero cells in 5 blocks -> {tmp_path / 'a.csv'}\n"
    assert spoken.err == ""
    assert run("tabulate", records, *SF1, "--tables", "P1", "--out", tmp_path / "b.csv", "--quiet") == (0, "", "")


def test_every_table_has_a_row_even_if_all_is_zero(records: Path, tmp_path: Path, run: Run) -> None:
    run("tabulate", records, *SF1, "--out", tmp_path / "t.csv")
    frame = long(tmp_path / "t.csv")
    assert frame["table"].n_unique() == 34
    assert frame.filter(pl.col("value") == 0)["table"].unique().sort().to_list() == [
        *("P12B", "P12C", "P12E", "P12F"), *("PCT12B", "PCT12C", "PCT12E", "PCT12F", "PCT12J", "PCT12K"),
        *("PCT12M", "PCT12N"),
    ]  # fmt: skip


@pytest.mark.parametrize("chosen", ["P12B", "P1,PCT12B"])
def test_a_level_of_which_all_is_zero_has_rows_too(chosen: str, records: Path, tmp_path: Path, run: Run) -> None:
    ended = run("tabulate", records, *SF1, "--tables", chosen, "--out", tmp_path / "t.csv")
    assert ended.code == 0, ended.err
    assert set(long(tmp_path / "t.csv")["table"]) == set(chosen.split(","))


def test_a_scenario_may_publish_for_large_areas_only(toy_folder: Path, tmp_path: Path, run: Run) -> None:
    text = (toy_folder / "scenario.toml").read_text().split("[table]")[0]
    (tmp_path / "scenario.toml").write_text(f'{text}[table]\nT1 = {{ title = "All", level = "town", by = [] }}\n')
    (tmp_path / "r.csv").write_text("house\n111\n112\n211\n")
    assert run("tabulate", tmp_path / "r.csv", "--scenario", tmp_path, "--out", tmp_path / "t.csv").code == 0
    assert long(tmp_path / "t.csv").cast(pl.String)["value"].to_list() == ["2", "1"]


def test_the_tables_are_those_of_a_count_by_hand(records: Path, tmp_path: Path, run: Run) -> None:
    run("tabulate", records, *SF1, "--tables", "P1,P12", "--out", tmp_path / "t.csv", "--levels", "county,state")
    frame = pl.read_csv(records, schema_overrides={"block": pl.String})
    numbers = {tuple(row[:2] + row[3:4]): row[4] for row in long(tmp_path / "t.csv").iter_rows()}
    for level, length in (("block", 15), ("county", 5), ("state", 2)):
        area = pl.col("block").str.head(length)
        for geoid, count in frame.group_by(area).len().iter_rows():
            assert numbers.pop((level, geoid, "P0010001")) == count
        small = frame.filter((pl.col("sex") == "female") & (pl.col("age") < 5))
        for geoid, count in small.group_by(area).len().iter_rows():
            assert numbers.pop((level, geoid, "P0120027")) == count  # line 27: female, under 5
    assert not any(variable in ("P0010001", "P0120027") for _, _, variable in numbers)


def test_coarser_levels_are_sums_of_finer_ones(records: Path, tmp_path: Path, run: Run) -> None:
    run("tabulate", records, *SF1, "--tables", "P6,P12", "--out", tmp_path / "t.csv", "--levels", "county,state")
    frame = long(tmp_path / "t.csv").filter(pl.col("value") > 0)
    blocks = frame.filter(pl.col("level") == "block")
    for level, length in (("county", 5), ("state", 2)):
        summed = blocks.group_by(pl.col("geoid").str.head(length), "variable").agg(pl.col("value").sum())
        here = frame.filter(pl.col("level") == level).select("geoid", "variable", "value")
        assert here.sort("geoid", "variable").equals(summed.sort("geoid", "variable"))
    assert run("check", tmp_path / "t.csv", *SF1).code == 0


def mapped(folder: Path) -> Path:
    areas = {BLOCKS[0]: "north", BLOCKS[1]: "south", BLOCKS[2]: "north", BLOCKS[3]: "south", BLOCKS[4]: "south"}
    path = folder / "mapping.csv"
    path.write_text("block,region\n" + "".join(f"{block},{area}\n" for block, area in areas.items()))
    return path


def test_a_mapped_level_is_a_sum_over_its_places(records: Path, tmp_path: Path, run: Run) -> None:
    mapping = mapped(tmp_path)
    option = ("--mapping", f"region={mapping}")
    run("tabulate", records, *SF1, "--tables", "P1,P12", "--levels", "region", *option, "--out", tmp_path / "t.csv")
    frame = long(tmp_path / "t.csv")
    blocks = frame.filter(pl.col("level") == "block").join(long_mapping(mapping), left_on="geoid", right_on="block")
    summed = blocks.group_by(pl.col("region").alias("geoid"), "variable").agg(pl.col("value").sum())
    here = frame.filter(pl.col("level") == "region").select("geoid", "variable", "value")
    assert here.sort("geoid", "variable").equals(summed.sort("geoid", "variable"))
    assert run("check", tmp_path / "t.csv", *SF1, *option).code == 0


def long_mapping(path: Path) -> pl.DataFrame:
    return pl.read_csv(path, infer_schema=False)


def test_a_mapped_level_can_be_checked_beside_tracts(records: Path, tmp_path: Path, run: Run) -> None:
    option = ("--mapping", f"region={mapped(tmp_path)}")
    run("tabulate", records, *SF1, "--tables", "P1,PCT12", "--levels", "region", *option, "--out", tmp_path / "t.csv")
    ended = run("check", tmp_path / "t.csv", *SF1, *option)
    assert ended.code == 0, ended.err


def test_some_tables_are_the_same_rows_as_among_all(records: Path, tmp_path: Path, run: Run) -> None:
    run("tabulate", records, *SF1, "--out", tmp_path / "all.csv")
    run("tabulate", records, *SF1, "--tables", "P6,PCT12A", "--out", tmp_path / "some.csv")
    everything, some = long(tmp_path / "all.csv"), long(tmp_path / "some.csv")
    assert set(some["table"]) == {"P6", "PCT12A"}
    assert some.equals(everything.filter(pl.col("table").is_in(["P6", "PCT12A"])))


def test_subtotals_are_the_sums_of_their_parts(records: Path, tmp_path: Path, run: Run) -> None:
    chosen = ("--tables", "P8,P12")
    run("tabulate", records, *SF1, *chosen, "--out", tmp_path / "cells.csv")
    run("tabulate", records, *SF1, *chosen, "--subtotals", "--out", tmp_path / "lines.csv")
    cells, lines = long(tmp_path / "cells.csv"), long(tmp_path / "lines.csv")
    scenario = _load("sf1-person")
    value = {(geoid, variable): value for _, geoid, _, variable, value in lines.iter_rows()}
    for table in (scenario.table("P8"), scenario.table("P12")):
        for line in table.subtotals:
            parts = [table.line(part).variable for part in line.parts]
            for block in BLOCKS:
                assert value.get((block, line.variable), 0) == sum(value.get((block, part), 0) for part in parts)
    subtotals = [line.variable for table in ("P8", "P12") for line in scenario.table(table).subtotals]
    assert lines.filter(~pl.col("variable").is_in(subtotals)).equals(cells)


# Bytes


def test_neither_workers_nor_the_order_of_rows_change_a_byte(
    records: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tabulating, "BATCH_ROWS", 40)  # several batches, so that workers have something to share
    shuffled = tmp_path / "shuffled.csv"
    shuffled.write_text("\n".join([HEADER, *random.Random(1).sample(LINES, len(LINES))]))
    written = set()
    for index, (source, workers) in enumerate(((records, 1), (records, 2), (records, 5), (shuffled, 1), (shuffled, 5))):
        out = tmp_path / f"t{index}.csv"
        options = ("--levels", "county", "--workers", workers, "--out", out)
        assert run("tabulate", source, *SF1, "--tables", "P1,P12,PCT12", *options).code == 0
        written.add(out.read_bytes())
    assert len(written) == 1


def test_all_kinds_of_files_hold_the_same_rows(records: Path, tmp_path: Path, run: Run) -> None:
    for name in ("t.csv", "t.csv.gz", "t.parquet"):
        assert run("tabulate", records, *SF1, "--tables", "P1,P12", "--out", tmp_path / name).code == 0
    expected = (tmp_path / "t.csv").read_bytes()
    assert gzip.decompress((tmp_path / "t.csv.gz").read_bytes()) == expected
    assert long(tmp_path / "t.parquet").equals(long(tmp_path / "t.csv"))


def test_what_is_written_is_for_its_owner_alone(records: Path, tmp_path: Path, run: Run) -> None:
    before = os.umask(0)
    try:
        run("tabulate", records, *SF1, "--tables", "P1", "--out", tmp_path / "new" / "t.csv")
        run("tabulate", records, *SF1, "--out", tmp_path / "packed" / "al2010.sf1.zip")
    finally:
        os.umask(before)
    assert mode(tmp_path / "new") == mode(tmp_path / "packed") == 0o700
    files = [*(tmp_path / "new").iterdir(), *(tmp_path / "packed").iterdir()]
    assert len(files) == 4 and {mode(path) for path in files} == {0o600}


# Manifests


def test_a_manifest_lies_beside_the_file(records: Path, tmp_path: Path, run: Run) -> None:
    mapping = mapped(tmp_path)
    run(
        "tabulate",
        records,
        *SF1,
        "--out",
        tmp_path / "t.parquet",
        "--mapping",
        f"region={mapping}",
        "--levels",
        "region",
    )
    said = json.loads((tmp_path / "t.parquet.manifest.json").read_text())
    assert said["command"] == "tabulate" and said["format_version"] == 1
    assert said["parameters"]["scenario"] == "sf1-person" and len(said["parameters"]["tables"]) == 34
    assert re.fullmatch("[0-9a-f]{64}", said["key"])
    assert said["inputs"] == {
        role: {"name": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
        for role, path in {"records": records, "mapping region": mapping}.items()
    }
    assert said["counts"]["records"] == len(LINES)
    assert {"glasshouse", "python", "numpy", "polars"} <= set(said["versions"])
    assert said["wall_seconds"] >= 0 and said["cpu_seconds"] >= 0


def test_a_second_run_is_up_to_date_and_writes_nothing(records: Path, tables: Path, run: Run) -> None:
    again = ("tabulate", records, *SF1, "--tables", "P1,P6,P12", "--out", tables)
    before = tables.stat(), manifest.manifest_path(tables).stat()
    ended = run(*again)
    assert ended.code == 0 and "up to date" in ended.out
    said = run(*again, "--json").json
    assert (said["command"], said["out"], said["unchanged"]) == ("tabulate", str(tables), True)
    assert said["records"] == len(LINES)
    after = tables.stat(), manifest.manifest_path(tables).stat()
    for old, new in zip(before, after, strict=True):
        assert (old.st_mtime_ns, old.st_ino) == (new.st_mtime_ns, new.st_ino)


@pytest.mark.parametrize("options", [("--tables", "P1"), ("--tables", "P1,P6,P12", "--subtotals")])
def test_another_question_is_refused_unless_told_to_overwrite(
    options: tuple[str, ...], records: Path, tables: Path, run: Run
) -> None:
    before = tables.read_bytes()
    ended = run("tabulate", records, *SF1, *options, "--out", tables)
    assert ended.code == 2 and "--overwrite" in ended.err and str(tables) in ended.err
    assert tables.read_bytes() == before
    assert run("tabulate", records, *SF1, *options, "--out", tables, "--overwrite").code == 0
    assert tables.read_bytes() != before


def test_changed_input_is_refused_by_the_next_process(records: Path, tables: Path, run: Run) -> None:
    records.write_text("\n".join([HEADER, *LINES[1:]]))
    command = ("-m", "glasshouse", "tabulate", str(records), *SF1, "--tables", "P1,P6,P12", "--out", str(tables))
    before = tables.read_bytes()
    ended = python(*command)
    assert ended.returncode == 2 and "--overwrite" in ended.stderr
    assert tables.read_bytes() == before
    assert python(*command, "--overwrite").returncode == 0
    assert tables.read_bytes() != before


def test_changed_input_is_refused_in_the_same_process(records: Path, tables: Path, run: Run) -> None:
    records.write_text("\n".join([HEADER, *LINES[1:]]))
    assert run("tabulate", records, *SF1, "--tables", "P1,P6,P12", "--out", tables).code == 2


def test_a_stop_before_the_manifest_leaves_the_older_result_as_it_was(
    records: Path, tables: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    other = tmp_path / "other.csv"
    other.write_text("\n".join([HEADER, *LINES[:100]]))
    before = tables.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(manifest.Manifest, "write", stop)
        assert run("tabulate", other, *SF1, "--tables", "P1,P6,P12", "--out", tables, "--overwrite").code == 130
    assert tables.read_bytes() == before
    assert "up to date" in run("tabulate", records, *SF1, "--tables", "P1,P6,P12", "--out", tables).out
    assert run("tabulate", other, *SF1, "--tables", "P1,P6,P12", "--out", tables).code == 2


# What check says


def test_tables_of_our_own_agree(tables: Path, run: Run) -> None:
    ended = run("check", tables, *SF1)
    assert ended.code == 0 and ended.out.startswith("All numbers agree: ")
    assert "no number of P7, P8, P9, P10, P11, P12A-I, P14, PCT12, PCT12A-O" in ended.err  # a warning names the absent
    assert run("check", tables, *SF1, "--tables", "P1,P6,P12", "--quiet").err == ""


@pytest.mark.parametrize("name", ["t.csv.gz", "t.parquet", pytest.param("al2010.sf1.zip", marks=pytest.mark.slow)])
def test_all_34_tables_agree_in_every_kind_of_file(name: str, tmp_path: Path, run: Run) -> None:
    records = tmp_path / "records.csv"
    records.write_text("\n".join([HEADER, *(line for line in LINES if not line.startswith("39"))]))
    assert run("tabulate", records, *SF1, "--out", tmp_path / name).code == 0
    ended = run("check", tmp_path / name, *SF1, "--json")
    assert ended.code == 0 and ended.json["agrees"] and ended.json["absent"] == []
    assert ended.json["places"] == {"block": 4, "tract": 2}


def test_check_says_what_it_found_in_one_json_object(tables: Path, run: Run) -> None:
    ended = run("check", tables, *SF1, "--json")
    assert ended.code == 0 and ended.err == ""
    assert set(ended.json) == {
        "command", "scenario", "tables", "agrees", "places", "numbers", "identities", "undecided", "ignored", "absent",
        "notes", "findings",
    }  # fmt: skip
    assert ended.json["findings"] == [] and len(ended.json["absent"]) == 31
    assert ended.json["numbers"] == long(tables).height


def spoil(tables: Path) -> Path:
    """One person more in the total of a block."""
    lines = tables.read_text().splitlines()
    at = next(index for index, line in enumerate(lines) if f"{BLOCKS[0]},P1,P0010001" in line)
    start, _, value = lines[at].rpartition(",")
    lines[at] = f"{start},{int(value) + 1}"
    spoilt = tables.with_name("spoilt.csv")
    spoilt.write_text("\n".join(lines))
    return spoilt


def test_a_contradiction_is_a_finding_with_exit_code_1(tables: Path, run: Run) -> None:
    total = long(tables).filter((pl.col("geoid") == BLOCKS[0]) & (pl.col("variable") == "P0010001"))["value"][0]
    ended = run("check", spoil(tables), *SF1, "--json")
    assert ended.code == 1 and not ended.json["agrees"]
    (finding,) = ended.json["findings"]
    assert (finding["level"], finding["geoid"]) == ("block", BLOCKS[0])
    assert {"variable": "P0010001", "value": total + 1, "would_agree": total} in finding["suspects"]
    assert all(cell["geoid"] == BLOCKS[0] for cell in finding["cells"])


@pytest.mark.parametrize("options", [(), ("--quiet",)])
def test_findings_are_told_to_people_even_to_quiet_ones(options: tuple[str, ...], tables: Path, run: Run) -> None:
    ended = run("check", spoil(tables), *SF1, *options)
    assert ended.code == 1
    assert f"block {BLOCKS[0]}: " in ended.out and "P0010001" in ended.out
    assert (ended.err == "") == bool(options)


def test_the_number_of_workers_does_not_change_what_is_found(tables: Path, run: Run) -> None:
    assert len({run("check", spoil(tables), *SF1, "--json", "--workers", workers) for workers in (1, 2, 5)}) == 1


def test_absent_tables_can_be_declared_published(tables: Path, run: Run) -> None:
    chosen = ("--tables", "P1,P6,P12,P8")
    assert run("check", tables, *SF1, *chosen).code == 0
    ended = run("check", tables, *SF1, *chosen, "--assume-published", "P8", "--json")
    assert ended.code == 1  # all races 0, and yet there are people
    (note,) = ended.json["notes"]
    assert "rows missing there: 315" in note and "--missing hidden" in note
    assert run("check", tables, *SF1, *chosen, "--assume-published", "all").code == 1


def test_absent_tables_that_were_not_declared_are_named(tables: Path, run: Run) -> None:
    ended = run("check", tables, *SF1, "--tables", "P1,P6,P12,P8,P9", "--assume-published", "P1")
    assert "P8" in ended.err and "P9" in ended.err


def test_a_county_of_zeros_contradicts_its_blocks(tmp_path: Path, run: Run) -> None:
    (tmp_path / "t.csv").write_text(f"level,geoid,P0010001\nblock,{BLOCKS[0]},5\ncounty,{BLOCKS[0][:5]},0\n")
    assert run("check", tmp_path / "t.csv", *SF1, "--tables", "P1").code == 1


# How it ends when it ends badly

PERSONAL = "010730051031000 female 43"


def failing(error: BaseException) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> Any:
        raise error

    return fail


def test_a_bug_of_ours_ends_with_3_and_keeps_the_data_to_itself(
    records: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tabulating, "tabulate_file", failing(ValueError(PERSONAL)))
    ended = run("tabulate", records, *SF1, "--out", tmp_path / "new" / "t.csv", "--json")
    assert ended.code == 3 and ended.json["exit_code"] == 3
    assert "a bug of ours" in ended.err and "ValueError" in ended.err and "test_cli.py:" in ended.err
    assert ended.err.count("\n") == 1
    assert PERSONAL not in ended.err + ended.out
    assert not (tmp_path / "new").exists()


def test_even_a_verbose_bug_keeps_the_data_to_itself(
    records: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tabulating, "tabulate_file", failing(ValueError(PERSONAL)))
    ended = run("tabulate", records, *SF1, "--out", tmp_path / "t.csv", "--verbose")
    assert ended.code == 3 and "test_cli.py" in ended.err
    assert PERSONAL not in ended.err


def test_an_interrupt_ends_with_130_and_leaves_nothing(
    records: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tabulating, "_frame", failing(KeyboardInterrupt()))
    ended = run("tabulate", records, *SF1, "--out", tmp_path / "new" / "t.csv")
    assert ended.code == 130 and "Traceback" not in ended.err
    assert list(tmp_path.iterdir()) == [records]


def test_an_interrupt_says_what_to_do(records: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tabulating, "_frame", failing(KeyboardInterrupt()))
    ended = run("tabulate", records, *SF1, "--json")
    assert "interrupted" in ended.err and ended.json["exit_code"] == 130


def test_a_complaint_tells_the_offending_value_and_nothing_else_of_the_record(tmp_path: Path, run: Run) -> None:
    line = "390599772003104,female,1043,0,1,0,0,0,0,1"
    (tmp_path / "r.csv").write_text(f"{HEADER}\n{LINES[0]}\n{line}\n{LINES[1]}\n")
    ended = run("tabulate", tmp_path / "r.csv", *SF1, "--json", "--verbose")
    assert ended.code == 2 and "1043" in ended.err and "line 3" in ended.err
    assert "390599772003104" not in ended.err + ended.out and "female" not in ended.err + ended.out


def test_good_records_leave_no_trace_in_what_is_said(records: Path, tmp_path: Path, run: Run) -> None:
    ended = run("tabulate", records, *SF1, "--out", tmp_path / "t.csv", "--verbose")
    assert not any(block in ended.out + ended.err for block in BLOCKS)
    assert not any(block in manifest.manifest_path(tmp_path / "t.csv").read_text() for block in BLOCKS)


# What a newcomer stumbled over


def test_a_mapping_that_is_not_asked_for_is_refused(records: Path, tmp_path: Path, run: Run) -> None:
    ended = run("tabulate", records, *SF1, "--out", tmp_path / "t.csv", "--mapping", f"region={mapped(tmp_path)}")
    assert ended.code == 2 and "add it to --levels" in ended.err


def test_a_result_that_was_edited_is_not_up_to_date(records: Path, tables: Path, run: Run) -> None:
    tables.write_bytes(tables.read_bytes().replace(b",1", b",2", 1))
    ended = run("tabulate", records, *SF1, "--out", tables)
    assert ended.code == 2 and "no longer" in ended.err


def test_nothing_to_compare_is_not_agreement(tmp_path: Path, run: Run) -> None:
    (tmp_path / "t.csv").write_text("level,geoid,variable,value\nblock,010730051031000,P0010001,5\n")
    ended = run("check", tmp_path / "t.csv", *SF1, "--quiet")
    assert ended.code == 0 and ended.out.startswith("Nothing to compare: 1 numbers")


def test_a_finding_names_zeros_and_stays_short(tmp_path: Path, run: Run) -> None:
    rows = [f"tract,01073005103,PCT012{letter}{line:03d},1" for letter in "B" for line in range(3, 106)]
    rows += ["block,010730051031000,P0080004,50", "block,010730051031000,P0010001,9"]
    (tmp_path / "t.csv").write_text("level,geoid,variable,value\n" + "\n".join(rows) + "\n")
    ended = run("check", tmp_path / "t.csv", *SF1, "--quiet")
    assert ended.code == 1
    assert max(len(line) for line in ended.out.splitlines()) < 400
    assert "and 95 more up to PCT012B105" in ended.out
    assert "perhaps because of block 010730051031000, which lies in it" in ended.out


def test_swapped_commands_are_recognised(records: Path, tables: Path, run: Run) -> None:
    assert "published tables, not records" in run("tabulate", tables, *SF1, "--json").err
    assert "looks like records" in run("check", records, *SF1).err


def test_scenarios_are_listed_with_their_tables(run: Run) -> None:
    assert "sf1-person" in run("scenarios").out
    shown = run("scenarios", "sf1-person").out
    assert "record columns: block, sex, age, white" in shown and "PCT12O" in shown
    assert run("scenarios", "pl94", "--json").json["columns"][0] == "block"


HERE = ("check {} --scenario sf1-person", "tabulate {} --scenario sf1-person --out t.csv", "describe {} --out new",
        "bounds {} --scenario sf1-person --out new", "vary {} --scenario sf1-person --out new",
        "protect swap {} --rate 0.1 --out p.parquet", "tabulate people.csv --scenario sf1-person --out {}",
        "protect swap people.csv --rate 0.1 --out {}", "detect {} --properties {} --out new",
        "reidentify {} --truth {} --published {} --attacker {} --scenario sf1-person --out new")  # fmt: skip


@pytest.mark.parametrize("name", [".", "..", "/"])
@pytest.mark.parametrize("typed", HERE)
def test_the_folder_one_stands_in_is_no_bug(
    typed: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`glasshouse check .` ended as a bug of ours: such a path has no name that another could be put beside."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    Path("people.csv").write_text("block,sex,age,white,black,aian,asian,nhopi,sor,hispanic\n")
    assert "a bug of ours" not in good(tool(*typed.format(*[name] * 4).split()), code=2).err
