"""Does the household file move with its persons, and nothing else in it change?"""

from __future__ import annotations

import json
import stat
from pathlib import Path

import polars as pl
import pytest

from glasshouse.commands.work.swap import swap_file
from glasshouse.errors import InputError
from tests.running import good, tool
from tests.test_swap_command import HEADER, person, refused, written


@pytest.fixture(scope="module")
def county(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("moving") / "county"
    good(tool("synthesize", "--persons", 3000, "--seed", 1, "--out", folder, "--quiet"))
    return folder


def units(folder: Path, *lines: str, header: str = "block,bedrooms,household_id") -> Path:
    return written(folder / "units.csv", *lines, header=header)


def unit(block: int, household: str, bedrooms: int = 2) -> str:
    return f"99001000100{block:04},{bedrooms},{household}"


def test_households_are_where_their_persons_are(county: Path, tmp_path: Path) -> None:
    people, given = county / "cef.parquet", county / "households.parquet"
    out, moved, log = tmp_path / "people.parquet", tmp_path / "homes.parquet", tmp_path / "pairs.csv"
    words = [
        "protect", "swap", people, "--rate", 0.2, "--coordinates", county / "blocks.parquet", "--out", out,
        "--log", log, "--households", given, "--households-out", moved,
    ]  # fmt: skip
    ended = good(tool(*words))
    before, after = pl.read_parquet(given), pl.read_parquet(moved)
    assert f"{before.height:,} housing units, with the same moves -> {moved}" in ended.out
    # nothing but the block changes, and no row its place
    assert after.columns == [name for name in before.columns if name != "published_block"]
    assert after.drop("block").equals(before.drop("block", "published_block"))
    assert after.schema == before.drop("published_block").schema
    # the same households are where the persons are
    persons = pl.read_parquet(out).filter(pl.col("gq") == 0)
    where = persons.group_by("household_id").agg(pl.col("block").unique(), pl.len().alias("members"))
    assert set(where["block"].list.len()) == {1}
    both = after.join(where.explode("block"), on="household_id", suffix="_of_persons")
    assert both.height == where.height and both["block"].equals(both["block_of_persons"])
    assert (both["members"] == both["persons"]).all()
    gone = after.filter(after["block"] != before["block"])
    pairs = pl.read_csv(log, schema_overrides={"to_block": pl.String, "household_id": pl.String})
    assert 0 < gone.height == pairs.height
    assert sorted(gone.select("household_id", "block").rows()) == pairs.select("household_id", "to_block").rows()
    # vacant units stay, and every block has as many households of each size and as many adults
    vacant = pl.col("persons") == 0
    assert after.filter(vacant)["block"].equals(before.filter(vacant)["block"]) and after.filter(vacant).height
    key = ["block", "persons", "children"]
    assert after.group_by(key).len().sort(key).equals(before.group_by(key).len().sort(key))
    # the manifest, and the same again
    told = json.loads(out.with_name("people.parquet.manifest.json").read_text())
    assert set(told["inputs"]) == {"records", "coordinates", "households"}
    assert told["parameters"]["households-out"] == str(moved) and stat.S_IMODE(moved.stat().st_mode) == 0o600
    counts = told["counts"]
    assert (counts["units"], counts["units_without_persons"]) == (before.height, before.filter(vacant).height)
    assert good(tool(*words, "--json")).json["unchanged"]
    first = moved.read_bytes()
    good(tool(*words, "--overwrite", "--quiet"))
    assert moved.read_bytes() == first
    # the persons go where they go without their household file
    good(tool("protect", "swap", people, "--rate", 0.2, "--coordinates", county / "blocks.parquet",
              "--out", tmp_path / "alone.parquet", "--quiet"))  # fmt: skip
    assert (tmp_path / "alone.parquet").read_bytes() == out.read_bytes()


def test_the_kind_of_file_and_the_order_of_rows_do_not_matter(county: Path, tmp_path: Path) -> None:
    people, frame = county / "cef.parquet", pl.read_parquet(county / "households.parquet")
    mixed = frame.with_row_index("line").sample(fraction=1, shuffle=True, seed=2)
    mixed.write_csv(tmp_path / "mixed.csv")
    for given, out in ((county / "households.parquet", "a.parquet"), (tmp_path / "mixed.csv", "b.csv.gz")):
        swap_file(people, tmp_path / f"people-{out}", rate=0.3, seed=4, households=given, households_out=tmp_path / out)
    one = pl.read_parquet(tmp_path / "a.parquet")
    two = pl.read_csv(tmp_path / "b.csv.gz", schema={"line": pl.Int64, **one.schema})
    assert two["line"].to_list() == mixed["line"].to_list()
    assert two.sort("line").drop("line").equals(one)


def test_files_are_read_in_pieces(county: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {"rate": 0.3, "seed": 4, "households": county / "households.parquet"}
    names = ("whole", "pieces")
    for name in names:
        out = tmp_path / f"{name}.csv"
        swap_file(county / "cef.parquet", tmp_path / f"p-{name}.csv", households_out=out, **kept)  # type: ignore[arg-type]
        monkeypatch.setattr("glasshouse.files.frames.BATCH_ROWS", 100)
    assert (tmp_path / "whole.csv").read_bytes() == (tmp_path / "pieces.csv").read_bytes()


def test_what_is_in_the_file_stays_to_the_letter(tmp_path: Path) -> None:
    records = written(tmp_path / "people.csv", person(1000, "a"), person(1001, "b"), person(1001, ""))
    lines = [unit(1001, "b") + ',"x, y", 01', unit(1001, "") + ",,", unit(1000, "a", 3) + ",é,1.0"]
    header = "block,bedrooms,household_id,note,what"
    given = units(tmp_path, *lines, header=header)
    said = swap_file(
        records, tmp_path / "out.csv", rate=1, seed=1, households=given, households_out=tmp_path / "moved.csv"
    )
    assert (said.moved, said.units, said.units_without_persons) == (2, 3, 1)
    swapped = [lines[0].replace("1001,", "1000,", 1), lines[1], lines[2].replace("1000,", "1001,", 1)]
    assert (tmp_path / "moved.csv").read_text().splitlines() == [header, *swapped]
    swap_file(records, tmp_path / "none.csv", rate=0, seed=1, households=given, households_out=tmp_path / "same.csv")
    assert (tmp_path / "same.csv").read_bytes() == given.read_bytes()


def test_numbers_of_households_may_be_decimals_in_one_of_the_files(tmp_path: Path) -> None:
    records = written(tmp_path / "people.csv", person(1000, "1"), person(1001, "2"))
    frame = pl.DataFrame({"household_id": [2.0, None, 1.0], "block": [f"99001000100{n}" for n in (1001, 1001, 1000)]})
    frame.write_parquet(tmp_path / "units.parquet")
    swap_file(
        records, tmp_path / "out.csv", rate=1, seed=1, households=tmp_path / "units.parquet",
        households_out=tmp_path / "moved.parquet",
    )  # fmt: skip
    after = pl.read_parquet(tmp_path / "moved.parquet")
    assert after["block"].str.tail(4).to_list() == ["1000", "1001", "1001"]
    assert after["household_id"].equals(frame["household_id"])


@pytest.mark.parametrize(
    ("lines", "pattern"),
    [
        ([unit(1000, "a")], r"units.csv: 1 of the 2 households .* not in it, the first that of people.csv, line 3;"),
        (
            [unit(1000, "a"), unit(1002, "b")],
            r"units.csv, line 3: .*another block than its persons .people.csv, line 3",
        ),
        ([unit(1000, "a"), unit(1001, "b"), unit(1000, "a")], r"units.csv, line 4: another line has the same"),
        ([unit(1000, "a"), unit(1001, "b")[2:]], r"units.csv, line 3: block"),
        ([unit(1000, "a"), ",1,b"], r"units.csv, line 3: the block code is empty"),
        ([], r"2 of the 2 households"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_and_nothing_is_written(
    lines: list[str], pattern: str, tmp_path: Path
) -> None:
    records = written(tmp_path / "people.csv", person(1000, "a"), person(1001, "b"))
    out, moved, log = tmp_path / "new" / "out.csv", tmp_path / "new" / "moved.csv", tmp_path / "new" / "log.csv"
    ended = tool("protect", "swap", records, "--rate", 0, "--out", out, "--log", log,
                 "--households", units(tmp_path, *lines), "--households-out", moved)  # fmt: skip
    refused(ended, pattern, out)
    assert not moved.parent.exists()


def test_the_persons_of_another_swap_are_not_those_of_the_file(county: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    words = ["--households", county / "households.parquet", "--households-out", tmp_path / "moved.csv", "--out", out]
    ended = tool("protect", "swap", county / "hdf.parquet", "--rate", 0.1, *words)
    refused(ended, r"households.parquet.*(another block|are not in it)", out)
    assert not (tmp_path / "moved.csv").exists()


def test_a_failure_while_writing_leaves_neither_file(
    county: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import glasshouse.commands.work.swap as job

    def full(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(job, "_write", full)
    with pytest.raises(OSError, match="no space"):
        swap_file(
            county / "cef.parquet", tmp_path / "out.csv", rate=0.1, seed=1, log=tmp_path / "log.csv",
            households=county / "households.parquet", households_out=tmp_path / "moved.csv",
        )  # fmt: skip
    assert not list(tmp_path.iterdir())


def test_bad_options(tmp_path: Path) -> None:
    records, out = written(tmp_path / "people.csv", person(1000, "a")), tmp_path / "out.csv"
    given, moved = units(tmp_path, unit(1000, "a")), tmp_path / "moved.csv"
    words = ["protect", "swap", records, "--rate", 0, "--out", out]
    refused(tool(*words, "--households", given), "go together", out)
    refused(tool(*words, "--households-out", moved), "go together", out)
    with pytest.raises(InputError, match="go together"):
        swap_file(records, out, rate=0, seed=1, households=given)
    both = [*words, "--households", given, "--households-out"]
    for taken in (given, records, out):
        refused(tool(*both, taken), "another file of this command", out)
    refused(tool(*both, moved, "--log", moved), "another file of this command", out)
    refused(tool(*both, tmp_path / "moved.txt"), "cannot write this kind", out)
    refused(tool(*words, "--households", tmp_path / "no.csv", "--households-out", moved), "no such file", out)
    for missing in ("block", "household_id"):
        header = "block,bedrooms,household_id".replace(missing, "other")
        given = units(tmp_path, unit(1000, "a"), header=header)
        refused(tool(*both, moved), f"units.csv: column '{missing}' is missing", out)
    moved.write_text("mine")
    refused(tool(*both, moved), "moved.csv exists, and .*out.csv does not", out)
    assert moved.read_text() == "mine" and HEADER in records.read_text()
