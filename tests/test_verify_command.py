"""Does `glasshouse verify` keep its contract, from tables to claims, and agree with the households behind them?

What is expected is worked out here from the true households alone, row by row in plain Python, or from a second run
that was asked differently; how claims are found is none of this file's business (see `tests.test_verify`).
"""

from __future__ import annotations

import json
import math
import os
import re
import signal
import stat
import time
import xml.etree.ElementTree as ET
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from glasshouse.attack.claims.withholding import named
from glasshouse.attack.published import NothingFits
from glasshouse.commands.work import verify as verifying
from glasshouse.engine.ledger import Ledger
from glasshouse.engine.manifest import code_hash
from glasshouse.report.figure import Figure
from glasshouse.scenarios import load as scenario_module
from tests.running import Ended, good, started, tool, without

DHC = ("--scenario", "dhc-household")
COLUMNS = ("TEN", "VACS", "HHSIZE", "HHT", "HHT2", "THHSPAN", "THHLDRAGE", "THHRACE", "TP18", "TP65")
TRACTS = ("98001000100", "98001000200", "99001000100", "99001000200", "99003000100")
VACANT = f"{TRACTS[0]}1900"  # a block where nobody lives
FEW = "P16,P19,H3,H5,H9,H13"  # tables that are quickly compiled

RENTED = "3;4"  # no table of the scenario tells rented and occupied without rent apart

DESCRIPTION = {
    "block": pl.String, "k": pl.Int8, "columns": pl.List(pl.String), "values": pl.List(pl.String),
    "description": pl.String,
}  # fmt: skip
BOUNDS = {"m": pl.Int64, "low": pl.Int64, "high": pl.Int64, "proof": pl.String}
FILES: dict[str, dict[str, Any]] = {
    "claims": DESCRIPTION
    | BOUNDS
    | {"kind": pl.Int32, "printed": pl.Boolean, "truth": pl.Int64, "p_tract": pl.Float64, "p_state": pl.Float64},
    "apart": DESCRIPTION | BOUNDS,
    "counts": {
        "block": pl.String, "k": pl.Int8, "multiplicity": pl.String, "claims": pl.Int64, "kinds": pl.Int64,
        "households_low": pl.Int64, "households_high": pl.Int64, "households": pl.Int64,
    },
    "places": {
        "block": pl.String, "tract": pl.String, "households": pl.Int64, "vacant": pl.Int64, "unique": pl.Boolean,
        "cells": pl.Int64, "claims": pl.Int64, "kinds": pl.Int64, "undecided": pl.Int64, "queries": pl.Int64,
        "queries_dropped": pl.Int64, "households_low": pl.Int64, "households_high": pl.Int64,
        "vacant_low": pl.Int64, "vacant_high": pl.Int64, "truth": pl.Int64,
    },
    "absent": DESCRIPTION | {"printed": pl.Boolean, "proof": pl.String},
    "cannot": DESCRIPTION | BOUNDS,
    "reasons": DESCRIPTION
    | {
        "m": pl.Int64, "because": pl.String, "variables": pl.List(pl.String), "lower": pl.List(pl.Int64),
        "upper": pl.List(pl.Int64), "proof": pl.String, "minimal": pl.Boolean,
    },
    "leaks": {
        "block": pl.String, "table": pl.String, "change": pl.String, "of": pl.Int64, "claims": pl.Int64,
        "kinds": pl.Int64, "undecided": pl.Int64,
    },
}  # fmt: skip

Row = dict[str, Any]
Household = dict[str, str]
Said = tuple[str, tuple[str, ...], tuple[str, ...]]  # block, columns, values


@pytest.fixture(scope="module", autouse=True)
def _quick() -> Iterator[None]:
    """A scenario is loaded once and its tables are compiled once: they depend on nothing else."""
    code_hash.cache_clear()  # someone may have edited the sources since the tests began
    made: dict[Any, Any] = {}
    claimable = verifying.Claimable

    def remembered(schema: Any, tables: Any, variables: Any, wording: Any) -> Any:
        key = schema.impossible, tuple(table.name for table in tables), variables
        if key not in made:
            made[key] = claimable(schema, tables, variables, wording)
        return made[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scenario_module, "load", cache(scenario_module.load))
        patch.setattr(verifying, "Claimable", remembered)
        yield


def quickly(*command: object) -> Ended:
    """The command without pictures, workbooks and pages, which take longer than all the rest."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("glasshouse.report.sections.claims.write", lambda *_, **__: [])
        patch.setattr(Figure, "save", lambda _, path: path.write_text("<svg/>"))
        return tool(*command)


# A small county: blocks of a synthetic one dealt out to five tracts of two states, and one where nobody lives


@dataclass(frozen=True)
class County:
    folder: Path

    @property
    def records(self) -> Path:
        return self.folder / "households.parquet"

    @property
    def tables(self) -> Path:
        return self.folder / "tables.parquet"

    @cached_property
    def truth(self) -> dict[str, list[Household]]:
        """The true units of every block, vacant ones too, their codes as text."""
        found: dict[str, list[Household]] = {}
        for row in pl.read_parquet(self.records).iter_rows(named=True):
            found.setdefault(row["block"], []).append({name: str(row[name]) for name in COLUMNS})
        return found

    @cached_property
    def households(self) -> dict[str, list[Household]]:
        return {block: [unit for unit in units if unit["VACS"] == "0"] for block, units in self.truth.items()}

    @cached_property
    def sizes(self) -> dict[str, int]:
        return {block: len(units) for block, units in self.households.items()}

    @cached_property
    def published(self) -> dict[tuple[str, str], int]:
        frame = pl.read_parquet(self.tables)
        return {(block, name): value for block, name, value in frame.select("geoid", "variable", "value").iter_rows()}

    def blocks(self, *sizes: int) -> list[str]:
        """The first blocks of these sizes."""
        left = dict(sorted(self.sizes.items()))
        found = []
        for size in sizes:
            found.append(next(block for block, here in left.items() if here == size))
            del left[found[-1]]
        return found

    def command(self, out: Path | None, *options: object, tables: Path | None = None, workers: int = 1) -> list[object]:
        where = [] if out is None else ["--out", out]
        usual = [*DHC, "--workers", workers, *where]
        return ["verify", tables or self.tables, *without(usual, options), *options]

    def verify(self, out: Path | None, *options: object, tables: Path | None = None) -> Ended:
        return quickly(*self.command(out, *options, tables=tables))

    def with_records(self) -> list[object]:
        return ["--truth", self.records, "--prior-tract", self.records, "--prior-state", self.records]


def small_county(folder: Path, seed: int = 2) -> Path:
    """Records of 17 blocks of 1 to 13 households, and of a block of three vacant units."""
    good(tool("synthesize", "--persons", 1200, "--seed", seed, "--out", folder / "county", "--quiet"))
    units = pl.read_parquet(folder / "county" / "households.parquet").select(
        "block", "household_id", *(pl.col(name) for name in COLUMNS)
    )
    sizes = units.group_by("block").agg(n=(pl.col("VACS") == 0).sum()).filter(pl.col("n") > 0).sort("n", "block")
    chosen = [*sizes.filter(pl.col("n") <= 8)["block"], *sizes.filter(pl.col("n") > 10)["block"][:2]]
    place = {
        old: f"{TRACTS[at % len(TRACTS)]}1{at // len(TRACTS):03}" for at, old in enumerate(chosen)
    }  # sizes are dealt out
    nobody = units.filter(pl.col("VACS") != 0).tail(3).with_columns(block=pl.lit(VACANT))
    here = units.filter(pl.col("block").is_in(chosen)).with_columns(pl.col("block").replace_strict(place))
    path = folder / "households.parquet"
    pl.concat([here, nobody]).sort("block", "household_id").write_parquet(path)
    return path


@pytest.fixture(scope="module")
def county(tmp_path_factory: pytest.TempPathFactory) -> County:
    folder = tmp_path_factory.mktemp("verify")
    good(tool("tabulate", small_county(folder), *DHC, "--out", folder / "tables.parquet", "--quiet"))
    return County(folder)


@dataclass(frozen=True)
class Run:
    folder: Path
    ended: Ended

    def file(self, name: str) -> pl.DataFrame:
        return pl.read_parquet(self.folder / f"{name}.parquet")

    def rows(self, name: str) -> list[Row]:
        return self.file(name).to_dicts()

    @cached_property
    def claims(self) -> list[Row]:
        return self.rows("claims")

    @cached_property
    def certain(self) -> dict[Said, int]:
        """What is verified: each claim with its count."""
        return {said(row): row["m"] for row in self.claims if row["m"] is not None}

    def digests(self) -> dict[str, str]:
        """All that must be the same whenever the same is asked."""
        paths = [path for path in self.folder.iterdir() if path.name not in ("timings.parquet", "manifest.json")]
        # colours of pictures are numbered as long as a process lasts
        texts = {path.name: re.sub(rb"gradient_\d+", b"gradient", path.read_bytes()) for path in sorted(paths)}
        return {name: sha256(text).hexdigest() for name, text in texts.items()}

    @property
    def summary(self) -> Row:
        found = json.loads((self.folder / "summary.json").read_text())
        assert isinstance(found, dict)
        return found

    @property
    def manifest(self) -> Row:
        found = json.loads((self.folder / "manifest.json").read_text())
        assert isinstance(found, dict)
        return found


@pytest.fixture(scope="module")
def run(county: County) -> Run:
    """The whole county, with the truth and both priors."""
    ended = tool(*county.command(county.folder / "whole", *county.with_records()))
    return Run(county.folder / "whole", good(ended))


@pytest.fixture
def asked(county: County, tmp_path: Path) -> Callable[..., Run]:
    """Ask in a folder of its own."""

    def ask(*options: object, tables: Path | None = None) -> Run:
        out = tmp_path / f"run{len(list(tmp_path.glob('run*')))}"
        return Run(out, good(county.verify(out, *options, tables=tables)))

    return ask


def said(row: Row) -> Said:
    return row["block"], tuple(row["columns"]), tuple(row["values"])


def fits(unit: Household, row: Row) -> bool:
    """Does a household match a description? A value may stand for several codes."""
    return all(unit[name] in value.split(";") for name, value in zip(row["columns"], row["values"], strict=True))


def count(units: Iterable[Household], row: Row) -> int:
    return sum(fits(unit, row) for unit in units)


# The files of the contract


def test_the_columns_of_the_files(run: Run) -> None:
    for name in ("claims", "apart", "counts", "places"):
        assert dict(run.file(name).schema) == FILES[name], name
        assert run.file(name).columns == list(FILES[name])
    assert {path.name for path in run.folder.iterdir()} >= {"summary.json", "manifest.json", "tables-public.html"}


def test_what_a_row_of_claims_says(run: Run) -> None:
    assert len(run.claims) > 5000
    assert len({said(row) for row in run.claims}) == len(run.claims), "a description is listed once"
    for row in run.claims:
        assert row["k"] == len(row["columns"]) == len(row["values"]) >= 6
        assert row["columns"] == [name for name in COLUMNS if name in row["columns"]]
        assert row["m"] == row["low"] == row["high"] >= 1  # small blocks: all is decided
        assert row["proof"] in ("exact", "two-engines")
        number = "one household" if row["m"] == 1 else f"{row['m']} households"
        assert row["description"].startswith(f"Exactly {number}: ") and row["description"].endswith(".")
    assert {row["k"] for row in run.claims} == set(range(6, 11))
    assert [row["block"] for row in run.claims] == sorted(row["block"] for row in run.claims)


def test_verified_claims_hold_in_the_truth(county: County, run: Run) -> None:
    for row in run.claims:
        assert count(county.households[row["block"]], row) == row["m"] == row["truth"], row


def test_rented_and_without_rent_are_never_told_apart(run: Run) -> None:
    tenures = {value for row in run.claims for name, value in zip(row["columns"], row["values"], strict=True)
               if name == "TEN"}  # fmt: skip
    assert tenures <= {"1", "2", "3;4"} and "3;4" in tenures


def test_kinds_count_the_same_households(county: County, run: Run) -> None:
    kinds: dict[tuple[str, int], list[bool]] = {}
    for row in run.claims:
        who = [fits(unit, row) for unit in county.households[row["block"]]]
        assert kinds.setdefault((row["block"], row["kind"]), who) == who
    assert 100 < len(kinds) < len(run.claims) / 10


def test_counts_are_those_of_the_claims(county: County, run: Run) -> None:
    """In plain polars: descriptions, kinds, and the true households that one of them fits."""
    counted = run.file("counts")
    assert counted.height == 17 * 5 * 2  # blocks, numbers of columns, singletons and all
    claims = run.file("claims")
    for what, rows in (("singleton", claims.filter(pl.col("m") == 1)), ("all", claims)):
        expected = rows.group_by("block", "k").agg(claims=pl.len().cast(pl.Int64), kinds=pl.col("kind").n_unique())
        found = counted.filter(multiplicity=what).join(expected, on=["block", "k"], how="left", suffix="_expected")
        assert found["claims"].to_list() == found["claims_expected"].fill_null(0).to_list()
        assert found["kinds"].to_list() == found["kinds_expected"].fill_null(0).to_list()
    by_part: dict[tuple[str, int], list[Row]] = {}
    for row in run.claims:
        by_part.setdefault((row["block"], row["k"]), []).append(row)
    for row in counted.iter_rows(named=True):
        mine = by_part.get((row["block"], row["k"]), [])
        mine = [one for one in mine if one["m"] == 1] if row["multiplicity"] == "singleton" else mine
        met = sum(any(fits(unit, one) for one in mine) for unit in county.households[row["block"]])
        assert row["households"] == met
        assert row["households_low"] <= met <= row["households_high"] <= county.sizes[row["block"]]
    single, every = (counted.filter(multiplicity=what)["households"] for what in ("singleton", "all"))
    assert (single <= every).all() and single.sum() < every.sum()


def test_places_are_those_of_the_truth(county: County, run: Run) -> None:
    places = {row["block"]: row for row in run.rows("places")}
    assert set(places) == set(county.truth)
    numbers = Counter(row["block"] for row in run.claims)
    for block, row in places.items():
        vacant = len(county.truth[block]) - county.sizes[block]
        assert (row["tract"], row["households"], row["vacant"]) == (block[:11], county.sizes[block], vacant)
        assert row["households_low"] == row["households_high"] == row["truth"] == row["households"]
        assert row["vacant_low"] == row["vacant_high"] == vacant
        assert row["claims"] == numbers[block] and row["undecided"] == row["queries_dropped"] == 0
        kinds = {one["kind"] for one in run.claims if one["block"] == block}
        assert row["kinds"] == len(kinds) and row["queries"] == 630
        whole = sum(one["m"] for one in run.claims if one["block"] == block and one["k"] == 10)
        assert row["unique"] == (whole == county.sizes[block])
    assert 0 < sum(row["unique"] for row in places.values()) < len(places)


def test_how_probable_claims_are(county: County, run: Run) -> None:
    """Equation 4, in whole numbers: m of N households drawn from the tract, or the state, match."""
    for row in [*run.claims[::97], *[row for row in run.claims if row["m"] > 1][:40]]:
        n, m = county.sizes[row["block"]], row["m"]
        for name, length in (("p_tract", 11), ("p_state", 2)):
            around = [unit for block, units in county.households.items() if block[:length] == row["block"][:length]
                      for unit in units]  # fmt: skip
            p = count(around, row) / len(around)
            assert row[name] == pytest.approx(math.comb(n, m) * p**m * (1 - p) ** (n - m), rel=1e-9), row


def test_how_probable_claims_are_as_the_paper_counts(county: County, run: Run, asked: Callable[..., Run]) -> None:
    """With vacant units in N and in the prior; and where every value is equally likely (equation 4)."""
    found = asked("--counting", "units", "--prior-tract", county.records, "--prior-uniform")
    assert found.certain == run.certain, "what is certain does not depend on it"
    for row in found.claims[::53]:
        units = [unit for block, some in county.truth.items() if block[:11] == row["block"][:11] for unit in some]
        n, m, p = len(county.truth[row["block"]]), row["m"], count(units, row) / len(units)
        assert row["p_tract"] == pytest.approx(math.comb(n, m) * p**m * (1 - p) ** (n - m), rel=1e-9), row
        assert 0 < row["p_uniform"] < 1
    alone = next(row for row in found.claims if {"HHSIZE", "HHT", "VACS"} <= set(row["columns"]) and row["k"] == 6)
    schema = scenario_module.load("dhc-household").schema
    share = math.prod(len(value.split(";")) / len(schema.attribute(name)) for name, value in
                      zip(alone["columns"], alone["values"], strict=True))  # fmt: skip
    n, m = len(county.truth[alone["block"]]), alone["m"]
    assert alone["p_uniform"] == pytest.approx(math.comb(n, m) * share**m * (1 - share) ** (n - m), rel=1e-9)
    only = asked("--prior-uniform", "--blocks", alone["block"])
    mine = next(row for row in only.claims if said(row) == said(alone))
    assert mine["p_uniform"] > alone["p_uniform"], "an occupied unit has fewer values to be drawn from"
    assert {row["prior"] for row in found.summary["baselines"]} == {"tract", "uniform"}


@pytest.mark.slow
def test_what_drawn_data_sets_agree_on(county: County, run: Run, asked: Callable[..., Run]) -> None:
    """The intersection holds every certain claim, whatever K; blocks in company are answered as alone."""
    found = asked("--reconstructions", "2,20")
    rows = found.rows("generated")
    for k in (2, 20):
        mine = [row for row in rows if row["reconstructions"] == k]
        agreed = {said(row): row["m"] for row in mine if row["frequency"] == 1}
        assert run.certain.items() <= agreed.items()
        assert all(row["verified"] == (said(row) in run.certain) for row in mine if row["frequency"] == 1)
        assert all(0.5 < row["frequency"] <= 1 and 1 <= row["different"] <= k for row in mine)
        told = [row for row in found.summary["generated"]
                if row["reconstructions"] == k and row["multiplicity"] == "all"]  # fmt: skip
        assert sum(row["agreed"] for row in told) == len(agreed)
        assert sum(row["left_over"] for row in told) == len(agreed) - len(run.certain)
        assert sum(row["certain"] for row in told) == len(run.certain)
    assert f"K = {20:<22,}{len(agreed):,} agreed" in found.ended.out
    block = max(county.sizes, key=lambda code: county.sizes[code])
    alone = asked("--reconstructions", "20", "--blocks", block, "--singletons")
    there = [row for row in rows if (row["block"], row["reconstructions"], row["m"]) == (block, 20, 1)]
    assert alone.rows("generated") == there


def test_claims_that_a_table_prints_anyway(run: Run, asked: Callable[..., Run]) -> None:
    """Seven columns may say what a line says: who lives alone in a rented home. Without zeros, only few columns do."""
    printed = [row for row in run.claims if row["printed"]]
    assert printed and run.summary["printed"] == len(printed) < len(run.claims) / 20
    few = asked("--columns", 2, "--zeros", "paper", "--tables", "H3,H4,H10,P16")
    told = {tuple(row["columns"]) for row in few.claims if row["printed"]}
    assert ("TEN", "THHRACE") in told or ("TEN", "VACS", "THHRACE") in told
    assert all(len(set(names) - {"VACS"}) <= 4 for names in told)


def test_vacant_units_are_told_apart(county: County, run: Run) -> None:
    for row in run.claims:
        assert "VACS" not in row["columns"] or row["values"][row["columns"].index("VACS")] == "0"
    expected = Counter((block, unit["VACS"]) for block, units in county.truth.items() for unit in units)
    found = {(row["block"], row["values"][1]): row["m"] for row in run.rows("apart")}
    assert found == {key: number for key, number in expected.items() if key[1] != "0"}
    for row in run.rows("apart"):
        assert row["columns"] == list(COLUMNS) and row["k"] == 10
        assert row["values"][:1] + row["values"][2:] == ["0"] * 9
        assert re.match(r"Exactly (one vacant unit|\d+ vacant units): ", row["description"])
    for name in ("claims", "counts"):
        assert VACANT not in set(run.file(name)["block"])


def test_what_cannot_be(county: County, run: Run, asked: Callable[..., Run]) -> None:
    """Somebody fits, how many is not known: proved without one number being certain."""
    found = asked("--blocks", ",".join(county.blocks(4, 5, 6, 8)), "--cannot", 0)
    rows = found.rows("cannot")
    assert dict(found.file("cannot").schema) == FILES["cannot"] and found.summary["cannot"] == len(rows)
    assert rows and not {said(row) for row in rows} & set(run.certain)
    for row in rows:
        assert row["m"] == 0 and 1 <= row["low"] < row["high"] and row["description"].startswith("At least ")
        assert row["low"] <= count(county.households[row["block"]], row) <= row["high"]


# The same numbers everywhere, and nothing of anyone


def test_the_summary_adds_up(county: County, run: Run) -> None:
    summary = run.summary
    assert summary["claims"] == len(run.claims) == summary["undecided"]["claims"]
    assert (
        summary["unique"]["blocks"] == 17 and summary["undecided"]["undecided"] == 0
    )  # the vacant one is no block here
    places = run.file("places").filter(pl.col("households") > 0)
    assert summary["unique"]["unique"] == places["unique"].sum()
    assert summary["median_size"] == places["households"].median()
    counted = run.file("counts")
    for row in summary["by_columns"]:
        mine = counted.filter(multiplicity=row["multiplicity"], k=row["k"])
        assert row["claims"] == mine["claims"].sum() and row["kinds"] == mine["kinds"].sum()
        assert row["blocks_with_claim"] == (mine["claims"] > 0).sum() and row["blocks"] == 17
        assert row["represented"] == mine["households"].sum()
        assert row["households"] == sum(county.sizes.values())
        assert row["share"] == pytest.approx(row["represented"] / row["households"])
        assert row["share_low"] <= row["share"] <= row["share_high"]
        line = next(
            line
            for part in [run.ended.out.split("\n\n")[1 if row["multiplicity"] == "singleton" else 2]]
            for line in part.splitlines()
            if line.split()[:1] == [str(row["k"])]
        )
        assert f"{row['block_share']:.1%} (" in line and f"{row['share']:.1%} (" in line
    for name in ("tables.html", "tables.xlsx"):
        text = words(run.folder / name).replace(",", "")
        for row in summary["by_columns"]:
            assert str(row["claims"]) in text and str(row["represented"]) in text, name


def test_the_manifest(county: County, run: Run) -> None:
    manifest = run.manifest
    assert manifest["command"] == "verify" and manifest["complete"] and manifest["format_version"] == 1
    assert set(manifest["inputs"]) == {"tables", "truth", "prior tract", "prior state"}
    assert all(re.fullmatch("[0-9a-f]{64}", one["sha256"]) for one in manifest["inputs"].values())
    assert manifest["parameters"]["columns"] == 6 and manifest["parameters"]["seed"] == 1
    assert manifest["counts"]["claims"] == len(run.claims) and manifest["wall_seconds"] > 0
    assert {*manifest["outputs"], "manifest.json", "timings.parquet"} == {path.name for path in run.folder.iterdir()}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_files_are_for_the_owner_alone(run: Run) -> None:
    assert mode(run.folder) == 0o700
    assert {mode(path) for path in run.folder.iterdir()} == {0o600}


def words(path: Path) -> str:
    """All that a file says, as text."""
    if path.suffix == ".parquet":
        frame = pl.read_parquet(path)
        return frame.cast(pl.String).write_csv() + "\n".join(frame.columns)
    if path.suffix == ".xlsx":
        with zipfile.ZipFile(path) as book:
            return "\n".join(book.read(name).decode() for name in book.namelist())
    return path.read_text(encoding="utf-8")


def test_no_block_and_no_household_is_told_of(county: County, run: Run) -> None:
    """Only the data files hold them; not what is printed, nor anything that sums up."""
    ended = good(county.verify(run.folder, *county.with_records(), "--verbose"))
    descriptions = {row["description"].partition(": ")[2] for row in (*run.claims, *run.rows("apart"))}
    secrets = {*county.truth, *pl.read_parquet(county.records)["household_id"].drop_nulls()}
    texts = {"out": run.ended.out + ended.out, "err": run.ended.err + ended.err}
    open_to_see = {"claims.parquet", "apart.parquet", "counts.parquet", "places.parquet"}
    for path in run.folder.iterdir():
        if path.name not in open_to_see:
            texts[path.name] = words(path)
    assert {"summary.json", "manifest.json", "tables.html", "tables-public.html", "tables-public.xlsx"} < set(texts)
    for name, text in texts.items():
        assert not {word for word in re.findall(r"\w+", text) if word in secrets}, name
        assert not [one for one in descriptions if one in text], name
    assert not [tract for tract in TRACTS for name, text in texts.items() if tract in text and "parquet" not in name]


def test_the_json_of_the_contract(county: County, run: Run, tmp_path: Path) -> None:
    ended = good(county.verify(None, "--json", "--columns", 9, "--blocks", ",".join(county.blocks(2, 3))))
    told = ended.json
    assert told["command"] == "verify" and told["out"] is None and told["units"] >= 1
    assert set(told) >= {"scenario", "seed", "claims", "unique", "by_columns", "undecided", "refused", "notes"}
    assert {row["k"] for row in told["by_columns"]} == {9, 10} and ended.err == ""
    again = good(county.verify(run.folder, *county.with_records(), "--json")).json
    assert again["unchanged"] is True and again["out"] == str(run.folder)
    assert {name: again[name] for name in run.summary} == run.summary
    assert not list(tmp_path.iterdir())


# The same bytes


def test_an_interrupted_run_goes_on_with_more_workers(
    county: County, asked: Callable[..., Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, put, done = tmp_path / "out", Ledger.put, []
    options = ["--columns", 3, "--tables", FEW]

    def stop(ledger: Ledger, *entry: Any, **more: Any) -> None:
        put(ledger, *entry, **more)
        done.append(entry)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "put", stop)
        ended = county.verify(out, *options)
    assert ended.code == 130 and ended.out == "" and "run the same command again to resume" in ended.err
    assert len(done) == 1 and not (out / "claims.parquet").exists()
    state = good(tool("status", out, "--json")).json
    assert (state["state"], state["finished"], state["units"]) == ("stopped", 1, 5)
    found = Run(out, good(quickly(*county.command(out, *options, workers=2))))
    assert found.manifest["counts"]["units_from_before"] == 1
    assert found.digests() == asked(*options).digests()
    state = good(tool("status", out, "--json")).json
    assert (state["state"], state["finished"], state["units"]) == ("done", 5, 5)


def test_asked_again_it_is_up_to_date_and_made_anew_it_is_the_same(county: County, asked: Callable[..., Run]) -> None:
    options = ["--blocks", ",".join(county.blocks(4, 5)), "--singletons"]
    first = asked(*options)
    before, stamp = first.digests(), (first.folder / "claims.parquet").stat().st_mtime_ns
    assert "up to date" in good(county.verify(first.folder, *options)).out
    assert (first.folder / "claims.parquet").stat().st_mtime_ns == stamp
    other = county.verify(first.folder, *options, "--columns", 7)
    assert other.code == 2 and "columns 6, now 7" in other.err and "--overwrite" in other.err
    good(county.verify(first.folder, *options, "--overwrite"))
    assert first.digests() == before


@pytest.mark.slow
def test_interrupted_from_the_keyboard(county: County, run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = county.command(out, *county.with_records())
    with started("-m", "glasshouse", *command) as process:
        while process.poll() is None and not list(out.glob("ledger/*.unit")):
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        printed, err = process.communicate()
    assert process.returncode == 130 and printed == "" and "run the same command again to resume" in err
    code_hash.cache_clear()  # as the process has just read the sources
    good(tool(*command))
    assert Run(out, run.ended).digests() == run.digests()


# What is asked


def test_columns_mean_at_least(run: Run, asked: Callable[..., Run]) -> None:
    eight = asked("--columns", 8)
    assert {row["k"] for row in eight.claims} == {8, 9, 10}
    assert eight.certain == {key: m for key, m in run.certain.items() if len(key[1]) >= 8}
    assert set(eight.file("counts")["k"]) == {8, 9, 10}


def test_singletons_are_those_of_all(run: Run, asked: Callable[..., Run]) -> None:
    single = asked("--singletons")
    assert single.certain == {key: m for key, m in run.certain.items() if m == 1}
    assert len(single.certain) < len(run.certain) and single.summary["claims"] == len(single.claims)
    mine, all_ = single.file("counts"), run.file("counts").filter(multiplicity="singleton")
    same = ["block", "k", "multiplicity", "claims", "kinds", "households_low", "households_high"]
    assert mine.select(same).equals(all_.select(same))
    assert "one or several" not in single.ended.out


def test_some_blocks_are_answered_as_among_all(
    county: County, run: Run, asked: Callable[..., Run], tmp_path: Path
) -> None:
    chosen = county.blocks(3, 4, 6)
    listed = tmp_path / "blocks.txt"
    listed.write_text("block\n" + "\n".join(chosen) + "\n")
    some, again = asked("--blocks", ",".join(chosen), *county.with_records()), asked("--blocks", listed)
    expected = {key: m for key, m in run.certain.items() if key[0] in chosen}
    assert some.certain == again.certain == expected
    rows = {said(row): row for row in run.claims}
    for row in some.claims:  # kinds are numbers of a run
        assert row | {"kind": None} == rows[said(row)] | {"kind": None}
    for name in ("counts", "places", "apart"):
        assert some.file(name).equals(run.file(name).filter(pl.col("block").is_in(chosen))), name


def test_a_long_list_of_blocks_is_no_name_of_a_file(county: County, asked: Callable[..., Run]) -> None:
    """All blocks of the county, and as many that are not there: more letters than a file may be called by."""
    codes = ",".join([*county.truth, *(f"99001000100{number:04}" for number in range(20))])
    assert len(codes) > 255
    assert len(asked("--blocks", codes, "--columns", 10).rows("places")) == len(county.truth)


def test_blocks_that_are_not_there_are_counted(county: County, tmp_path: Path) -> None:
    ended = good(county.verify(tmp_path / "out", "--blocks", f"{county.blocks(1)[0]},990019999001000"))
    assert re.search("warning: 1 of the 2 .*--blocks.* not in the file", ended.err)


def lower_median(numbers: Iterable[int]) -> int:
    ordered = sorted(numbers)
    return ordered[(len(ordered) - 1) // 2]


@pytest.mark.slow
def test_blocks_are_picked_by_size(county: County, asked: Callable[..., Run]) -> None:
    lived_in = {block: size for block, size in county.sizes.items() if size}
    states = {block[:2] for block in lived_in}

    def picked(pick: str, seed: int = 1) -> set[str]:
        return set(asked("--pick", pick, "--seed", seed, "--columns", 10, "--tables", FEW).file("places")["block"])

    found = {seed: picked("2:1", seed) for seed in (1, 2, 3, 4)}
    assert found[1] == picked("2:1") and len({frozenset(one) for one in found.values()}) > 1
    for one in found.values():
        assert {block[:2] for block in one} == states and [lived_in[block] for block in one] == [2, 2]
    middle = lower_median(lived_in.values())
    assert picked("median:99") == {block for block, size in lived_in.items() if size == middle}
    own = {state: lower_median(size for block, size in lived_in.items() if block[:2] == state) for state in states}
    assert picked("state-median:99") == {block for block, size in lived_in.items() if size == own[block[:2]]}


# What is left out


def test_hidden_zeros_hide_nothing(county: County, run: Run, asked: Callable[..., Run]) -> None:
    """All but the two "of which" lines of P20 are implied: the numbers left add up to their totals."""
    chosen = county.blocks(2, 3, 4, 5, 6, 6, 8)
    hidden = asked("--drop-cells", 0, "--blocks", ",".join(chosen))
    before = {key: m for key, m in run.certain.items() if key[0] in chosen}
    assert hidden.certain.items() <= before.items()
    lost = set(before) - set(hidden.certain)
    of_which = {"P0200009", "P0200015"}  # who lives with relatives: only it tells
    zero = {block for block in county.truth for name in of_which if not county.published.get((block, name))}
    assert {key[0] for key in lost} <= zero and len(lost) < 0.02 * len(before)
    places = hidden.file("places")
    values = Counter(block for (block, _), value in county.published.items() if value)
    cells = {row["block"]: row["queries"] - row["queries_dropped"] for row in places.iter_rows(named=True)}
    assert all(0 < left <= values[block] + 2 for block, left in cells.items()), "what is left is not zero"
    assert "queries left out" in hidden.ended.out


def test_hidden_ones_hide_something(county: County, run: Run, asked: Callable[..., Run]) -> None:
    chosen = county.blocks(2, 3, 4, 5)
    both, ones = (asked("--drop-cells", cells, "--blocks", ",".join(chosen)) for cells in ("0,1", "1"))
    assert both.certain.items() < ones.certain.items() < run.certain.items()
    assert set(ones.certain) < {key for key in run.certain if key[0] in chosen}


def test_fewer_structural_zeros_verify_less(county: County, asked: Callable[..., Run]) -> None:
    options = ["--tables", FEW, "--columns", 3, "--blocks", ",".join(county.blocks(2, 3, 4, 5, 6))]
    every, certain, paper = (asked(*options, "--zeros", zeros).certain for zeros in ("all", "certain", "paper"))
    assert paper.items() < certain.items() <= every.items()
    for (block, columns, values), m in paper.items():
        row = {"columns": columns, "values": values}
        assert count(county.households[block], row) == m


def test_fewer_tables_verify_less(county: County, run: Run, asked: Callable[..., Run]) -> None:
    """Of what both can say; what fewer tables do not tell apart is one value, and claims that name it hold as well."""
    fewer = asked("--tables", FEW)
    coarse = {said(row) for row in fewer.claims if any(";" in value and value != RENTED for value in row["values"])}
    same = {key: m for key, m in fewer.certain.items() if key not in coarse}
    assert coarse and same.items() < run.certain.items()
    assert all(count(county.households[row["block"]], row) == row["m"] for row in fewer.claims)
    assert "claims name what the published tables tell apart: TEN in 3 groups" in fewer.ended.err


# Which table, and why


def test_what_a_withheld_table_hides(county: County, asked: Callable[..., Run]) -> None:
    chosen = county.blocks(2, 3)
    leaks = asked("--blocks", ",".join(chosen), "--leaks", "family")
    rows = leaks.rows("leaks")
    assert dict(leaks.file("leaks").schema) == FILES["leaks"]
    own = Counter(key[0] for key in leaks.certain)
    assert {row["change"] for row in rows} == {"withheld"} and len(rows) == 17 * 2
    lost: Counter[str] = Counter()
    for row in rows:
        assert row["of"] == own[row["block"]] and 0 <= row["claims"] <= row["of"]
        assert bool(row["claims"]) == bool(row["kinds"]) and row["undecided"] == 0
        lost[row["table"]] += row["claims"]
    assert not any(lost[name] for name in ("H1", "H6", "H7", "H9", "H10", "H11")), "sums of other tables"
    told = {row["table"]: row for row in leaks.summary["leaks"]}
    assert {name: row["claims"] for name, row in told.items()} == dict(lost)
    assert all(row["certain"] == sum(own.values()) for row in told.values())
    worst = lost.most_common(1)[0][0]
    assert lost[worst] and f"{worst} " in leaks.ended.out and (leaks.folder / "leaks.svg").exists()
    # withheld in truth: the same claims are gone
    names = [table.name for table in scenario_module.load("dhc-household").tables]
    gone = f"{worst.partition(',')[0]}[A-V]?"
    without = asked(
        "--blocks", ",".join(chosen), "--tables", ",".join(name for name in names if not re.fullmatch(gone, name))
    )
    assert len(set(leaks.certain) - set(without.certain)) == lost[worst]


@pytest.mark.slow
def test_what_an_added_table_gives_away(county: County, asked: Callable[..., Run]) -> None:
    chosen = ["--blocks", county.blocks(5)[0]]
    leaks = asked(*chosen, "--tables", FEW, "--leaks", "family")
    rows = leaks.rows("leaks")
    assert {row["change"] for row in rows} == {"withheld", "added"}
    withheld = {row["table"] for row in rows if row["change"] == "withheld"}
    added = {row["table"] for row in rows if row["change"] == "added"}
    assert withheld == set(FEW.split(",")) and added >= {"H12, A-I", "H14", "P20", "H13, A-I"}
    plain = asked(*chosen, "--tables", FEW)
    assert leaks.certain == plain.certain
    more = asked(*chosen, "--tables", f"{FEW},P20")
    gained = sum(row["claims"] for row in rows if (row["table"], row["change"]) == ("P20", "added"))
    assert gained == len(set(more.certain) - set(plain.certain)) > 0
    assert "gained when a table is added" in leaks.ended.out


def opened(block: str, reason: dict[str, int], known: dict[str, int], path: Path) -> Path:
    """The tables of a reason, saying nothing but the numbers that are known."""
    rows = []
    for table in scenario_module.load("dhc-household").tables:
        for line in table.lines if any(line.variable in reason for line in table.lines) else ():
            value = known.get(line.variable)
            lower, upper = (0, 10**6) if value is None else (value, value)
            rows.append(("block", block, table.name, line.variable, lower, upper))
    names = ["level", "geoid", "table", "variable", "lower", "upper"]
    pl.DataFrame(rows, schema=names, orient="row").write_parquet(path)
    return path


def test_reasons_are_published_numbers(county: County, run: Run, asked: Callable[..., Run]) -> None:
    """They have the values of the tables; alone they imply the claim, and none can be left out."""
    block = county.blocks(3)[0]
    explained = asked("--blocks", block, "--why", 1)
    rows = explained.rows("reasons")
    assert dict(explained.file("reasons").schema) == FILES["reasons"]
    assert len(rows) == 1 and explained.summary["reasons"] == len(rows)
    tables = {line.variable: table.name for table in scenario_module.load("dhc-household").tables
              for line in table.lines}  # fmt: skip
    for row in rows:
        assert run.certain[said(row)] == row["m"] and row["minimal"] and row["proof"] in ("exact", "two-engines")
        assert row["description"] == next(one["description"] for one in run.claims if said(one) == said(row))
        assert row["because"].startswith("Because ") and row["variables"]
        for name, lower, upper in zip(row["variables"], row["lower"], row["upper"], strict=True):
            assert lower == upper == county.published.get((block, name), 0)
            assert f"{tables[name]} counts {lower or 'none'} ({name}: " in row["because"]


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 3])
def test_reasons_are_enough_and_not_too_much(
    county: County, asked: Callable[..., Run], tmp_path: Path, size: int
) -> None:
    (block,) = county.blocks(size)
    for row in asked("--blocks", block, "--why", 2).rows("reasons"):
        reason = dict(zip(row["variables"], row["lower"], strict=True))
        alone = opened(block, reason, reason, tmp_path / "alone.parquet")
        assert asked("--columns", row["k"], tables=alone).certain.get(said(row)) == row["m"]
        for name in reason:
            fewer = {other: value for other, value in reason.items() if other != name}
            tables = opened(block, reason, fewer, tmp_path / "fewer.parquet")
            assert said(row) not in asked("--columns", row["k"], tables=tables).certain, name


def test_descriptions_that_nobody_fits(county: County, asked: Callable[..., Run]) -> None:
    """True, the coarsest, and known from a printed zero or not."""
    chosen = county.blocks(3)
    absent = asked("--blocks", ",".join(chosen), "--tables", FEW, "--absent", 2)
    rows = absent.rows("absent")
    assert dict(absent.file("absent").schema) == FILES["absent"] and absent.summary["absent"] == len(rows)
    assert {row["k"] for row in rows} == {1, 2} and {row["printed"] for row in rows} == {True, False}
    none = {said(row) for row in rows}
    for row in rows:
        assert count(county.households[row["block"]], row) == 0
        assert row["description"].startswith("No household: ")
        for name, value in zip(row["columns"], row["values"], strict=True):
            assert row["k"] == 1 or (row["block"], (name,), (value,)) not in none, "a coarser one says it already"
    sizes = {row["values"][0]: row["printed"] for row in rows if row["columns"] == ["HHSIZE"]}
    assert sizes and all(sizes.values()), "H9 prints every size"


# What is not decided, not true, or not there


def test_undecided_claims_have_bounds(county: County, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("glasshouse.program.extremes.LISTED", 1)
    big = [block for block, size in county.sizes.items() if size > 8]
    out = tmp_path / "out"
    ended = good(county.verify(out, "--blocks", ",".join(big), "--effort", 0, *county.with_records()))
    found = Run(out, ended)
    rows = [row for row in found.claims if row["proof"] == "undecided"]
    assert rows and len(rows) == found.summary["undecided"]["undecided"] == found.file("places")["undecided"].sum()
    for row in rows:
        assert row["m"] is None and row["low"] < row["high"]
        assert row["p_tract"] is None and row["p_state"] is None
        assert row["low"] <= count(county.households[row["block"]], row) == row["truth"] <= row["high"]
    sure = [row for row in found.claims if row["proof"] != "undecided"]
    assert all(row["m"] == row["low"] == row["high"] == row["truth"] for row in sure)
    assert found.summary["claims"] == found.file("places")["claims"].sum() == len(sure)


@pytest.fixture(scope="module")
def elsewhere(county: County, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Households of another county that has blocks of the same codes."""
    return small_county(tmp_path_factory.mktemp("elsewhere"), seed=3)


def test_the_truth_of_another_county_is_noticed(county: County, run: Run, tmp_path: Path, elsewhere: Path) -> None:
    ended = good(county.verify(tmp_path / "out", "--truth", elsewhere, "--columns", 8))
    assert re.search(
        r"warning: in \d+ blocks the true records \(--truth\) do not give the published numbers", ended.err
    )
    found = Run(tmp_path / "out", ended)
    assert found.certain == {key: m for key, m in run.certain.items() if len(key[1]) >= 8}
    assert any(row["truth"] != row["m"] for row in found.claims)
    assert "warning" in " ".join(found.manifest["counts"]["notes"])


def one_number_changed(county: County, path: Path, tract: str) -> tuple[Path, str]:
    """Tables in which one block of a tract has a household too many by size."""
    frame = pl.read_parquet(county.tables)
    block = min(block for block, size in county.sizes.items() if block.startswith(tract) and size > 1)
    name = min(variable for place, variable in county.published if place == block and variable.startswith("H009"))
    wrong = (pl.col("geoid") == block) & (pl.col("variable") == name)
    frame.with_columns(value=pl.col("value") + wrong.cast(pl.Int64)).write_parquet(path)
    return path, block


def test_numbers_that_contradict_each_other(county: County, run: Run, tmp_path: Path) -> None:
    tables, block = one_number_changed(county, tmp_path / "tables.parquet", TRACTS[2])
    ended = good(county.verify(tmp_path / "out", "--columns", 9, tables=tables), code=1)
    (line,) = [line for line in ended.err.splitlines() if not line.startswith("warning")]
    assert line.startswith(f"tract {TRACTS[2]} is left out: block {block}: H009") and "add up to" in line
    found = Run(tmp_path / "out", ended)
    rest = {key: m for key, m in run.certain.items() if not key[0].startswith(TRACTS[2]) and len(key[1]) >= 9}
    assert found.certain == rest
    assert list(found.manifest["counts"]["refused"]) == [TRACTS[2]]
    again = good(county.verify(tmp_path / "out", "--columns", 9, "--json", tables=tables), code=1)
    assert list(again.json["refused"]) == [TRACTS[2]]
    assert "1 of them refused" in good(tool("status", tmp_path / "out")).out


def test_all_left_out(county: County, tmp_path: Path) -> None:
    tables, block = one_number_changed(county, tmp_path / "tables.parquet", TRACTS[3])
    ended = good(county.verify(tmp_path / "out", "--blocks", block, "--tables", "H3,H9", tables=tables), code=1)
    assert "every tract was left out" in ended.out and pl.read_parquet(tmp_path / "out" / "claims.parquet").is_empty()


def test_nobody_lives_there(county: County, tmp_path: Path) -> None:
    options = ["--blocks", VACANT, "--why", 1, *county.with_records()]
    ended = good(county.verify(tmp_path / "out", *options))
    assert "no block has any households" in ended.out
    found = Run(tmp_path / "out", ended)
    assert not found.claims and not found.rows("counts") and found.rows("apart")
    assert found.rows("places")[0]["vacant"] == 3
    assert good(county.verify(tmp_path / "out", *options, "--json")).json["claims"] == 0


def test_a_household_alone(county: County, tmp_path: Path) -> None:
    (block,) = county.blocks(1)
    ended = good(county.verify(tmp_path / "out", "--blocks", block))
    assert ended.out.startswith("1 block, 1 household; 100.0% is known as a whole (1 of 1, ")
    found = Run(tmp_path / "out", ended)
    assert len(found.claims) == 386 and {row["kind"] for row in found.claims} == {found.claims[0]["kind"]}
    ten = next(row for row in found.claims if row["k"] == 10)
    (unit,) = county.households[block]
    assert fits(unit, ten)


# Bad input: one clear error


def refused(ended: Ended, pattern: str, out: Path | None = None) -> None:
    assert ended.code == 2 and "Traceback" not in ended.err, ended
    assert ended.out == "" and re.fullmatch(r"glasshouse: [^\n]*\n?", ended.err), ended
    assert re.search(pattern, ended.err), ended.err
    assert out is None or not out.exists(), "nothing is left behind"


@pytest.mark.parametrize(
    ("options", "pattern"),
    [
        (["--columns", 0], "--columns.*greater than or equal to 1"),
        (["--columns", 11], "--columns 11: a record of this scenario has 10 columns"),
        (["--columns", "six"], "--columns.*integer"),
        (["--zeros", "none"], "'none'; known: all, certain, paper"),
        (["--leaks", "tables"], "'tables'; known: family, table"),
        (["--absent", 6], "--absent.*less than or equal to 5"),
        (["--cannot", -1], "--cannot.*greater than or equal to 0"),
        (["--why", -1], "--why.*greater than or equal to 0"),
        (["--drop-cells", "x"], "--drop-cells x: expected a whole number"),
        (["--drop-cells", "-1"], "--drop-cells -1: expected 0 or more"),
        (["--pick", "10"], "--pick 10: expected state-median:5, median:5 or a size such as 10:5"),
        (["--pick", "10:0"], "--pick 10:0: expected"),
        (["--pick", "mean:5"], "--pick mean:5: expected"),
        (["--pick", "9999:5"], "--pick: no block has 9999"),
        (["--pick", "2:1", "--blocks", "980010001001000"], "--blocks and --pick: give one or the other"),
        (["--blocks", "99"], "--blocks: '99' is no code of a block; expected 15 characters, or the path of a file"),
        (["--blocks", "nofile.txt"], "'nofile.txt' is no code of a block"),
        (["--tables", "P16,Q9"], "unknown table 'Q9'; known: "),
        (["--scenario", "nonsense"], "unknown scenario 'nonsense'; known: .*dhc-household"),
        (["--reconstructions", "0"], "--reconstructions 0: expected 1 to 10000"),
        (["--reconstructions", "10,none"], "--reconstructions none: expected a whole number"),
        (["--counting", "homes"], "'homes'; known: households, units"),
        (["--workers", 0], "--workers.*greater than or equal to 1"),
        (["--bloks", "1"], "--bloks.*--blocks"),
        (["--truth", "nofile.parquet"], "nofile.parquet: there is no such file"),
    ],
)
def test_wrong_options(county: County, tmp_path: Path, options: list[object], pattern: str) -> None:
    refused(county.verify(tmp_path / "out", *options), pattern, tmp_path / "out")


@pytest.mark.parametrize("role", ["--truth", "--prior-tract", "--prior-state"])
def test_files_that_are_no_households(county: County, tmp_path: Path, role: str) -> None:
    out, persons = tmp_path / "out", county.folder / "county" / "cef.parquet"
    refused(county.verify(out, role, persons), "cef.parquet: column 'TEN' is missing.*found: person_id", out)
    refused(county.verify(out, role, county.tables), "tables.parquet: .*published tables, not records", out)


def test_files_that_are_no_tables(county: County, tmp_path: Path) -> None:
    out, persons = tmp_path / "out", county.folder / "county" / "cef.parquet"
    refused(county.verify(out, tables=tmp_path / "nofile.parquet"), "nofile.parquet: there is no such file", out)
    refused(county.verify(out, tables=county.records), "looks like records; expected tables", out)
    refused(county.verify(out, tables=persons), "cef.parquet: no column is a variable of 2020 Census", out)
    other = tmp_path / "sf1.csv"
    other.write_text("level,geoid,table,variable,value\nblock,980010001001000,P12,P0120003,1\n")
    refused(
        county.verify(out, tables=other),
        "found P12, .* but of scenario dhc-person and sf1-person; is --scenario right",
        out,
    )


def test_where_to_write(county: County, tmp_path: Path) -> None:
    refused(county.verify(None), "--out is missing.*--json")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "thesis.doc").write_text("mine")
    for more in ([], ["--overwrite"]):
        refused(county.verify(tmp_path / "theirs", *more), "not empty and holds no run of ours")
    assert (tmp_path / "theirs" / "thesis.doc").read_text() == "mine"
    refused(county.verify(tmp_path / "theirs" / "thesis.doc"), "is a file; expected a folder")
    before = set(county.folder.iterdir())
    for more in ([], ["--overwrite"]):
        refused(county.verify(county.folder, *more), "is an input of this command|holds no run of ours")
    assert set(county.folder.iterdir()) == before


# What a new user stumbled over


@pytest.fixture(params=["twice", "elsewhere"])
def untrue(request: pytest.FixtureRequest, county: County, elsewhere: Path, tmp_path: Path) -> Path:
    """Households that do not give the published numbers: every true one twice, or those of another county."""
    if request.param == "elsewhere":
        return elsewhere
    twice = tmp_path / "twice.parquet"
    pl.concat([pl.read_parquet(county.records)] * 2).write_parquet(twice)
    return twice


def test_who_is_represented_is_said_of_a_truth_that_gives_the_published_numbers_alone(
    county: County, untrue: Path
) -> None:
    """Counted in a truth that is not one, a share could leave its interval, or pass 1; bounds need no truth."""
    by_truth = [
        good(county.verify(None, "--json", "--truth", truth, "--pick", "4:1")).json["by_columns"]
        for truth in (county.records, untrue)
    ]
    assert by_truth[0]
    for right, wrong in zip(*by_truth, strict=True):
        assert right["share_low"] <= right["share_least"] <= right["share"] <= right["share_most"]
        assert right["share_most"] <= right["share_high"] <= 1
        counted_in_the_truth = {"represented": None, "per_block": None, "share": None}
        assert wrong == right | counted_in_the_truth


def test_leaks_of_singletons_are_of_singletons(county: County, asked: Callable[..., Run]) -> None:
    found = asked("--blocks", county.blocks(3)[0], "--singletons", "--leaks", "family")
    assert {row["certain"] for row in found.summary["leaks"]} == {len(found.claims)}


def test_reasons_of_singletons_are_of_singletons(county: County, asked: Callable[..., Run]) -> None:
    found = asked("--blocks", county.blocks(3)[0], "--singletons", "--why", 99, "--tables", FEW, "--columns", 3)
    assert {said(row) for row in found.rows("reasons")} <= set(found.certain)


def test_the_truth_where_no_table_shows_a_column(county: County, tmp_path: Path) -> None:
    """HHT2 is in P20 alone; structural zeros make some of its values certain without it."""
    good(county.verify(tmp_path / "out", "--tables", FEW, "--columns", 3, "--truth", county.records))


def test_how_probable_claims_are_where_no_table_shows_a_column(county: County, asked: Callable[..., Run]) -> None:
    found = asked("--tables", FEW, "--columns", 3, "--prior-state", county.records)
    homes = [(block[:2], unit) for block, units in county.households.items() for unit in units]
    told = [row for row in found.claims if "HHT2" in row["columns"]]
    assert told
    for row in told[:40]:
        around = [unit for state, unit in homes if state == row["block"][:2]]
        p, m, n = count(around, row) / len(around), row["m"], county.sizes[row["block"]]
        assert row["p_state"] == pytest.approx(math.comb(n, m) * p**m * (1 - p) ** (n - m), rel=1e-9), row


def test_tables_are_called_by_their_names() -> None:
    tables = scenario_module.load("dhc-household").choose(["H4J", "H3", "P16", "P16A", "P16B"]).tables
    assert set(named(tables, by_family=True)) == {"H4J", "H3", "P16, A-B"}
    assert set(named(tables, by_family=False)) == {"H4J", "H3", "P16", "P16A", "P16B"}


def test_a_household_alone_is_told_of_by_every_table(county: County, tmp_path: Path) -> None:
    """So none gives it away alone; the picture says that, and the lines point to a file that there is."""
    command = county.command(tmp_path / "out", "--blocks", county.blocks(1)[0], "--leaks", "table")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("glasshouse.report.sections.claims.write", lambda *_, **__: [])
        found = Run(tmp_path / "out", good(tool(*command)))
    rows = found.rows("leaks")
    assert len(rows) == 79 and not any(row["claims"] for row in rows)
    picture = ET.parse(found.folder / "leaks.svg").getroot()
    assert float(picture.attrib["width"]) < 10_000 and float(picture.attrib["height"]) < 10_000
    match = re.search(r"(\d+) more in (\S+); (\d+) of them change nothing", found.ended.out)
    assert match and int(match[3]) <= int(match[1]) and (found.folder / match[2]).exists()


def test_a_prior_without_the_tract_is_noticed(county: County, tmp_path: Path) -> None:
    path = tmp_path / "prior.parquet"
    pl.read_parquet(county.records).filter(pl.col("block").str.starts_with(TRACTS[0])).write_parquet(path)
    told = good(
        county.verify(None, "--json", "--prior-tract", path, "--prior-state", path, "--columns", 9, "--pick", "4:1")
    ).json
    assert sum("--prior-tract" in note for note in told["notes"]) == 1
    assert sum("--prior-state" in note for note in told["notes"]) == 1


def test_none_of_the_blocks_is_there(county: County, tmp_path: Path) -> None:
    refused(county.verify(tmp_path / "out", "--blocks", "990019999001000"), "--blocks: none of", tmp_path / "out")


def test_fewer_blocks_than_asked_for_are_told(county: County) -> None:
    told = good(county.verify(None, "--json", "--pick", "8:5", "--columns", 10)).json
    assert any("--pick" in note for note in told["notes"])


def test_a_summary_where_nobody_lives(county: County, asked: Callable[..., Run]) -> None:
    assert asked("--blocks", VACANT).summary["claims"] == 0


def test_claims_stay_when_a_leak_is_not_decided(
    county: County, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in blocks of a hundred households, where nothing was found that fits once a family is withheld."""

    def hard(*_: Any, **__: Any) -> None:
        raise NothingFits(1, None, clock=False)

    monkeypatch.setattr(verifying, "lost", hard)
    (block,) = county.blocks(3)
    ended = county.verify(tmp_path / "out", "--blocks", block, "--leaks", "family")
    assert ended.code in (0, 1)
    assert Run(tmp_path / "out", ended).certain == {key: m for key, m in run.certain.items() if key[0] == block}
