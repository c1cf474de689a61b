"""Are tables in SDMX-CSV the same tables? Written and read again, with a status where a number is protected."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import glasshouse as gh
from glasshouse.errors import InputError
from glasshouse.files.formats import crossed, sdmx_out
from glasshouse.files.output import row_writer
from glasshouse.files.tables import open_tables
from glasshouse.model.release import Release
from glasshouse.scenarios.load import Scenario
from tests.running import good, tool

KEY = ["level", "geoid", "table", "variable"]
METHODS = {
    "suppress": ["suppress", "--below", 4],
    "round": ["round", "--base", 3],
    "cellkey": ["cellkey", "--seed", 5],
    "noise": ["noise", "--rho", "1", "--seed", 2],
}


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("county")
    good(tool("synthesize", "--persons", 150, "--seed", 3, "--out", folder / "county"))
    return folder / "county" / "cef.parquet"


@pytest.fixture(scope="module")
def tables(records: Path) -> Path:
    path = records.with_name("t.parquet")
    good(tool("tabulate", records, "--scenario", "pl94", "--subtotals", "--levels", "tract", "--out", path))
    return path


def same(one: list[Release], other: list[Release]) -> None:
    assert len(one) == len(other) > 0
    for release, again in zip(one, other, strict=True):
        assert release.levels.keys() == again.levels.keys()
        for level, counts in release.levels.items():
            assert (counts.places, counts.variables) == (again.levels[level].places, again.levels[level].variables)
            assert np.array_equal(counts.lower, again.levels[level].lower)
            assert np.array_equal(counts.upper, again.levels[level].upper)


def released(path: Path, scenario: Scenario) -> list[Release]:
    return list(open_tables(path, scenario).releases())


def test_tabulated_tables_are_read_again(records: Path, tables: Path, tmp_path: Path, pl94: Scenario) -> None:
    for ending in sdmx_out.ENDINGS:
        out = tmp_path / f"t{ending}"
        good(tool("tabulate", records, "--scenario", "pl94", "--subtotals", "--levels", "tract", "--out", out))
        same(released(tables, pl94), released(out, pl94))
        (table,) = crossed(out)
        assert [one.name for one in table.dimensions] == ["LEVEL", "GEO", "TABLE", "VARIABLE"]
        rows = pl.concat(table.pieces())
        assert set(rows["status"]) == {sdmx_out.EXACT}
        wanted = pl.read_parquet(tables).sort(KEY)
        found = rows.rename({"LEVEL": "level", "GEO": "geoid", "TABLE": "table", "VARIABLE": "variable"}).sort(KEY)
        assert found.select(KEY).equals(wanted.select(KEY))
        assert found["value"].cast(pl.Int64).equals(wanted["value"])


@pytest.mark.parametrize("method", METHODS)
def test_protected_tables_are_read_again(method: str, tables: Path, tmp_path: Path, pl94: Scenario) -> None:
    """The same protection, the same seed: as Parquet and as SDMX-CSV it is one release."""
    words = ["protect", *METHODS[method], tables, "--scenario", "pl94", "--out"]
    plain, out = tmp_path / "p.parquet", tmp_path / "p.sdmx.csv"
    good(tool(*words, plain))
    good(tool(*words, out))
    same(released(plain, pl94), released(out, pl94))
    told = pl.read_csv(out, infer_schema=False)
    assert told.columns[:3] == list(sdmx_out.ABOUT)
    hidden = told["OBS_STATUS"] == sdmx_out.HIDDEN
    assert hidden.any() == (method == "suppress")
    assert (told["OBS_VALUE"].is_null() == hidden).all()
    assert (told["OBS_STATUS"] == sdmx_out.NEAR).any() == (method != "suppress")
    if "LOWER" in told.columns:
        exact = told["OBS_STATUS"] == sdmx_out.EXACT
        assert ((told["LOWER"] == told["UPPER"]).fill_null(False) == exact).filter(~hidden).all()


def test_what_an_office_prints_has_a_status_and_no_interval(tables: Path, tmp_path: Path, pl94: Scenario) -> None:
    out, values = tmp_path / "p.parquet", tmp_path / "v.sdmx.csv"
    words = ["protect", "suppress", tables, "--scenario", "pl94", "--below", 4, "--out", out, "--values", values]
    said = good(tool(*words, "--json")).json
    told = pl.read_csv(values, infer_schema=False)
    assert "LOWER" not in told.columns
    assert (told["OBS_STATUS"] == "Q").sum() == said["hidden"] == told["OBS_VALUE"].null_count() > 0
    with pytest.raises(InputError, match=r"v\.sdmx\.csv, line \d+: value of \w+ is empty"):
        released(values, pl94)


def test_invariants_are_the_counts_themselves(tables: Path, tmp_path: Path) -> None:
    out = tmp_path / "n.sdmx.csv"
    gh.protect.noise(tables, scenario="pl94", rho="1", invariant=("P0010001",), out=out)
    told = pl.read_csv(out, infer_schema=False)
    known = told["VARIABLE"] == "P0010001"
    assert set(told.filter(known)["OBS_STATUS"]) == {"A"} and set(told.filter(~known)["OBS_STATUS"]) == {"E"}


def test_only_tables_are_written_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="only tables"), row_writer(tmp_path / "x.sdmx.csv") as writer:
        writer.write(pl.DataFrame({"a": [1]}))
    assert not list(tmp_path.iterdir())


CELLS = st.lists(
    st.tuples(st.integers(0, 10**12), st.one_of(st.none(), st.integers(0, 10**12))), min_size=1, max_size=20
)


@given(cells=CELLS)
def test_any_interval_is_read_again(
    cells: list[tuple[int, int | None]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    frame = pl.DataFrame(
        {
            "level": "block", "geoid": [f"{at:015d}" for at in range(len(cells))],
            "table": "P1", "variable": "P0010001",
            "lower": pl.Series([low for low, _ in cells], dtype=pl.Int64),
            "upper": pl.Series([None if high is None else max(low, high) for low, high in cells], dtype=pl.Int64),
        }
    )  # fmt: skip
    path = tmp_path_factory.mktemp("rows") / "x.sdmx.csv"
    with row_writer(path) as writer:
        writer.write(frame)
    source = sdmx_out.opened(path)
    again = pl.concat([chunk.frame for chunk in source.chunks()])
    assert again.with_columns(pl.col("lower", "upper").cast(pl.Int64)).equals(frame)


def test_tables_of_ours_that_lack_a_column_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.sdmx.csv"
    path.write_text("STRUCTURE,STRUCTURE_ID,ACTION,LEVEL,GEO,TABLE,VARIABLE\na,b,I,block,1,P1,P0010001\n")
    with pytest.raises(InputError, match=r"x\.sdmx\.csv: column OBS_VALUE is missing"):
        sdmx_out.opened(path)
