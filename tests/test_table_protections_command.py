"""Do the commands that protect tables keep their promises? Files, accounts, attacks that read them, clear errors."""

from __future__ import annotations

import json
import re
import stat
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest

from glasshouse.commands.work.noise import noise_file
from glasshouse.commands.work.perturb import perturb_file, rounding
from glasshouse.mechanism.account import epsilon
from glasshouse.scenarios.load import Scenario, load
from tests.running import Ended, good, tool

METHODS = {
    "round": ["round", "--base", 3],
    "nearest": ["round", "--base", 5, "--how", "nearest"],
    "suppress": ["suppress", "--below", 4, "--zeros", "hide"],
    "cellkey": ["cellkey", "--seed", 5],
}


def refused(ended: Ended, pattern: str) -> None:
    assert ended.code == 2 and "Traceback" not in ended.err, ended
    assert re.fullmatch(r"glasshouse: [^\n]*\n?", ended.err), ended.err
    assert re.search(pattern, ended.err), ended.err


def read(path: Path) -> pl.DataFrame:
    return pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path, infer_schema_length=0)


def dense(truth: pl.DataFrame, scenario: Scenario) -> int:
    """How many numbers there are: every leaf in every place, and the totals that are seen at a level (convention 6)."""
    leaves = {line.variable for table in scenario.tables for line in table.leaves}
    return sum(part["geoid"].n_unique() * len(leaves.union(part["variable"])) for _, part in truth.group_by("level"))


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The redistricting tables of a small county, subtotals too, at blocks, their tract and the county."""
    folder = tmp_path_factory.mktemp("county")
    good(tool("synthesize", "--persons", 150, "--seed", 3, "--out", folder / "county"))
    words = ["--scenario", "pl94", "--subtotals", "--levels", "tract,county"]
    good(tool("tabulate", folder / "county" / "cef.parquet", *words, "--out", folder / "t.parquet"))
    return folder / "t.parquet"


@pytest.fixture(scope="module")
def blocks(tables: Path) -> Path:
    """The same at blocks alone, which are quicker to attack."""
    path = tables.with_name("blocks.parquet")
    pl.read_parquet(tables).filter(pl.col("level") == "block").write_parquet(path)
    return path


@pytest.mark.parametrize("method", METHODS)
def test_the_truth_is_inside_and_the_file_is_dense(method: str, tables: Path, tmp_path: Path, pl94: Scenario) -> None:
    out, values = tmp_path / "out.parquet", tmp_path / "values.csv"
    words = ["protect", *METHODS[method], tables, "--scenario", "pl94", "--out", out, "--values", values, "--json"]
    said = good(tool(*words)).json
    told, printed, truth = pl.read_parquet(out), read(values), pl.read_parquet(tables)
    assert told.height == printed.height == dense(truth, pl94) == said["cells"]
    assert said["places"] == {"block": 7, "tract": 1, "county": 1}
    joined = told.join(truth, on=["level", "geoid", "table", "variable"], how="left", maintain_order="left")
    assert joined["value"].drop_nulls().len() == truth.height
    value = joined["value"].fill_null(0)
    assert ((told["lower"] <= value) & (value <= told["upper"])).all()
    hidden = printed["value"].is_null() | (printed["value"] == "")
    assert hidden.sum() == said["hidden"] and (said["hidden"] > 0) == (method == "suppress")
    shown = printed["value"].cast(pl.Int64, strict=False)
    assert ((told["lower"] <= shown) & (shown <= told["upper"])).filter(~hidden).all()
    assert {stat.S_IMODE(path.stat().st_mode) for path in (out, values)} == {0o600}
    assert good(tool(*words)).json["unchanged"]
    values.unlink()
    refused(tool(*words), "exists, and .* does not; remove it or add --overwrite")


@pytest.mark.parametrize("method", METHODS)
def test_attacks_read_what_protections_write(method: str, blocks: Path, tmp_path: Path) -> None:
    """The truth fits, so nothing contradicts; and records that fit are found."""
    out = tmp_path / "out.csv"
    good(tool("protect", *METHODS[method], blocks, "--scenario", "pl94", "--out", out))
    assert good(tool("check", out, "--scenario", "pl94", "--json")).json["agrees"]
    rebuilt, again = tmp_path / "rebuilt", tmp_path / "again.parquet"
    good(tool("reconstruct", out, "--scenario", "pl94", "--out", rebuilt))
    good(tool("tabulate", rebuilt / "records.parquet", "--scenario", "pl94", "--subtotals", "--out", again))
    told = pl.read_csv(out, schema_overrides={"geoid": pl.String})
    counted = told.join(pl.read_parquet(again), on=["level", "geoid", "variable"], how="left", maintain_order="left")
    value = counted["value"].fill_null(0)
    assert ((value >= told["lower"]) & (value <= told["upper"])).all()


def test_the_same_description_has_the_same_change(tables: Path, tmp_path: Path) -> None:
    out = tmp_path / "values.parquet"
    good(tool("protect", "cellkey", tables, "-s", "pl94", "--out", tmp_path / "k.parquet", "--values", out))
    total = {
        name: pl.read_parquet(out).filter(pl.col("variable") == name)["value"].to_list()
        for name in ("P0010001", "P0020001", "P0030001", "P0040001")
    }
    assert total["P0010001"] == total["P0020001"] and total["P0030001"] == total["P0040001"]


def test_order_and_kind_of_the_file_do_not_matter(tables: Path, tmp_path: Path) -> None:
    """Convention 8: the same numbers in another order, as CSV, give the same rows."""
    shuffled = tmp_path / "shuffled.csv"
    pl.read_parquet(tables).sample(fraction=1, shuffle=True, seed=4).write_csv(shuffled)
    for words in (["round"], ["cellkey"], ["noise", "--rho", 1]):
        files = []
        for number, path in enumerate((tables, shuffled)):
            files.append(tmp_path / f"{words[0]}{number}.parquet")
            good(tool("protect", *words, path, "-s", "pl94", "--out", files[-1]))
        assert files[0].read_bytes() == files[1].read_bytes()
        other = tmp_path / f"{words[0]}-other.parquet"
        good(tool("protect", *words, tables, "-s", "pl94", "--seed", 2, "--out", other))
        assert other.read_bytes() != files[0].read_bytes()


def test_cells_that_are_named_are_hidden(tables: Path, tmp_path: Path) -> None:
    geoid = pl.read_parquet(tables).filter(pl.col("level") == "block")["geoid"][0]
    also, out = tmp_path / "also.csv", tmp_path / "out.csv"
    also.write_text(f"level,geoid,variable\nblock,{geoid},P1_001N\n")
    ended = good(tool("protect", "suppress", tables, "-s", "pl94", "--also", also, "--out", out))
    assert "the cells of --also were hidden" in ended.err
    row = read(out).filter((pl.col("geoid") == geoid) & (pl.col("variable") == "P0010001"))
    assert row.select("lower", "upper").rows() == [("0", None)]
    also.write_text("level,geoid,variable\nblock,999999999999999,P0010001\n")
    words = ["protect", "suppress", tables, "-s", "pl94", "--also", also, "--out", out, "--overwrite"]
    before = out.read_bytes()
    refused(tool(*words), "P0010001 of block 999999999999999 is to be hidden, and no such number is in the tables")
    assert out.read_bytes() == before
    for text, complaint in {
        "level,geoid\n": "column 'variable' is missing",
        "level,geoid,variable\nshire,1,P0010001\n": "line 2: unknown level 'shire'",
        "level,geoid,variable\nblock,1,P0010001\n": "line 2: geoid '1' has 1 characters",
        f"level,geoid,variable\nblock,{geoid},P9\n": "line 2: 'P9' is no variable of a table in use",
    }.items():
        also.write_text(text)
        refused(tool(*words), complaint)


def test_a_p_table_of_ones_own(tables: Path, tmp_path: Path) -> None:
    ptable, out = tmp_path / "p.csv", tmp_path / "out.parquet"
    ptable.write_text("count,change,probability\n0,0,1\n1,-1,2/3\n1,2,1/3\n2,1,1\n")
    words = ["protect", "cellkey", tables, "-s", "pl94", "--ptable", ptable, "--out", out, "--overwrite"]
    good(tool(*words))
    assert set(pl.read_parquet(out).select("lower", "upper").unique().rows()) >= {(0, 1), (1, 2)}
    ptable.write_text("count,change,probability\n0,0,1\n1,-1,0.5\n")
    refused(tool(*words), "p.csv: p-table: the probabilities of count 1 add up to 1/2; expected exactly 1")


def test_the_account_of_noise(tables: Path, tmp_path: Path) -> None:
    out, raw = tmp_path / "noisy.parquet", tmp_path / "raw.csv"
    words = ["protect", "noise", tables, "-s", "pl94", "--budget", "pl94-2020", "--out", out, "--measurements", raw]
    said = good(tool(*words, "--invariant", "P0010001", "--json")).json
    manifest = json.loads((tmp_path / "noisy.parquet.manifest.json").read_text())["counts"]
    spent = sum(Fraction(price) for price in manifest["ledger"].values())
    assert set(manifest["ledger"]) == {f"{at} P{n}" for at in ("block", "tract", "county") for n in range(1, 6)}
    assert said["rho_spent"] == str(spent) and Fraction(said["rho_left"]) == Fraction(293764, 114921) - spent
    assert said["epsilon"] == epsilon(float(spent), 1e-10) and said["neighbours"] == "change-one"
    assert set(said["levels_unspent"]) == {"block_group", "state", "nation"}
    told, truth = pl.read_parquet(out), pl.read_parquet(tables)
    keys = ["level", "geoid", "variable"]
    for total in ("P0010001", "P0020001"):  # the same universe, so the same invariant
        both = told.filter(pl.col("variable") == total).join(truth, on=keys)
        assert both.height == 9 and (both["value"] == both["value_right"]).all()
    numbers = pl.read_csv(raw, schema_overrides={"geoid": pl.String})
    assert numbers.columns == ["level", "geoid", "table", "variable", "noisy", "rho", "variance"]
    assert said["negatives"] == (numbers["noisy"] < 0).sum() > 0
    assert numbers.filter(pl.col("variable") == "P0010001").is_empty()  # totals are added up, not measured
    one = numbers.filter((pl.col("level") == "block") & (pl.col("variable") == "P0020002")).row(0, named=True)
    assert one["variance"] == pytest.approx(1 / float(Fraction(one["rho"])))


def test_noise_that_costs_nothing_much_changes_nothing(tables: Path, tmp_path: Path) -> None:
    """With rho 1000 a table, noise is 0: the published tables are the true ones, dense."""
    out = tmp_path / "noisy.csv"
    ended = good(tool("protect", "noise", tables, "-s", "pl94", "--rho", 15000, "--out", out, "--postprocess", "none"))
    assert "rho 15000 (15000) spent of 15000" in ended.out
    told = pl.read_csv(out, schema_overrides={"geoid": pl.String}).filter(pl.col("value") > 0)
    truth = pl.read_parquet(tables).filter(pl.col("value") > 0)
    assert set(told.rows()) == set(truth.rows())


def test_secure_noise_has_no_seed(tables: Path, tmp_path: Path) -> None:
    small = tmp_path / "p5.parquet"
    pl.read_parquet(tables).filter((pl.col("table") == "P5") & (pl.col("level") == "county")).write_parquet(small)
    words = ["protect", "noise", small, "-s", "pl94", "--rho", "1/2", "--secure", "--tables", "P5"]
    said = good(tool(*words, "--out", tmp_path / "out.csv", "--json")).json
    assert said["source"] == "secure" and said["rho_spent"] == "1/2"
    refused(tool(*words, "--seed", 1, "--out", tmp_path / "out2.csv"), "--secure has no seed")


def test_budgets_of_ones_own(tables: Path, tmp_path: Path) -> None:
    budget, out = tmp_path / "mine.toml", tmp_path / "out.csv"
    levels = '[levels]\nblock = "1/2"\ntract = "1/4"\ncounty = "1/4"\n'
    shares = "".join(f'[queries.P{n}]\nblock = "1/5"\ntract = "1/5"\ncounty = "1/5"\n' for n in range(1, 6))
    budget.write_text(f'title = "mine"\ntotal = "1"\n{levels}{shares}')
    words = ["protect", "noise", tables, "-s", "pl94", "--budget", budget, "--out", out, "--json"]
    said = good(tool(*words)).json
    assert said["rho_spent"] == "1" and said["ledger"]["block P3"] == "1/10" and said["neighbours"] == "add-remove"
    said = good(tool(*words, "--rho", "0.1", "--overwrite")).json
    assert said["rho_spent"] == "1/10" and said["ledger"]["tract P1"] == "1/200"
    refused(tool(*words, "--neighbours", "change-one", "--overwrite"), "for add-remove neighbours, not for change-one")


def test_clear_errors(tables: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    noise = ["protect", "noise", tables, "-s", "pl94", "--out", out]
    for words, complaint in [
        ([*noise], "expected --rho, or --budget"),
        ([*noise, "--rho", "0"], "--rho is 0; expected more than 0"),
        ([*noise, "--rho", "much"], "--rho is 'much'; expected a decimal or a fraction"),
        ([*noise, "--budget", "pl94-2030"], "unknown budget 'pl94-2030'; known: .*pl94-2020"),
        ([*noise, "--budget", "dhc-persons-2020"], "level 'tract' is in the tables and has no share"),
        ([*noise, "--rho", "1", "--neighbours", "next-door"], "unknown --neighbours 'next-door'"),
        ([*noise, "--rho", "1", "--postprocess", "hope"], "unknown --postprocess 'hope'; known: clip, none, simple"),
        ([*noise, "--rho", "1", "--postprocess", "none"], "negative, and tables hold counts from 0"),
        ([*noise, "--rho", "1", "--postprocess", "clip", "--invariant", "P0010001"], "--invariant needs simple"),
        ([*noise, "--rho", "1", "--invariant", "P9"], "unknown variable to keep 'P9'"),
        ([*noise, "--rho", "1", "--measurements", out], "another file of this command"),
        ([*noise, "--rho", "1", "--measurements", tables], "another file of this command"),
        (
            ["protect", "round", tables, "-s", "pl94", "--how", "away", "--out", out],
            "known: down, nearest, random, up",
        ),
        (
            ["protect", "suppress", tables, "-s", "pl94", "--zeros", "x", "--out", out],
            "'x'; known: hide, show",
        ),
        (["protect", "round", tables, "-s", "pl94", "--out", tmp_path / "out.doc"], "cannot write this kind of file"),
        (["protect", "round", tmp_path / "none.csv", "-s", "pl94", "--out", out], "there is no such file"),
    ]:
        refused(tool(*words), complaint)
        assert not out.exists()
    good(tool("protect", "round", tables, "-s", "pl94", "--out", out))
    again = ["protect", "suppress", out, "-s", "pl94", "--out", tmp_path / "twice.csv"]
    refused(tool(*again), "is an interval; protections of tables start from exact counts")


def test_in_process(tables: Path, tmp_path: Path) -> None:
    scenario = load("pl94").choose(["P1", "P5"])
    counts = perturb_file(tables, scenario, tmp_path / "r.parquet", rounding(3, seed=2))
    truth = pl.read_parquet(tables).filter(pl.col("table").is_in(["P1", "P5"]))
    assert counts.cells == pl.read_parquet(tmp_path / "r.parquet").height == dense(truth, scenario)
    counts = noise_file(tables, scenario, tmp_path / "n.parquet", rho=Fraction(1), postprocess="clip")
    assert counts.rho_spent == "1" and len(counts.ledger) == 6
