"""Is what verified claims add up to right? Sums by hand, laws, the paper's own arithmetic, and who may read what."""

from __future__ import annotations

import csv
import re
import zipfile
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from glasshouse.assess.claimed_places import (
    EVERY,
    MULTIPLICITIES,
    SINGLETON,
    by_columns,
    dropped,
    median_size,
    sizes,
    unique,
)
from glasshouse.assess.claims import Results, baselines, columns_used, combinations, summed_up, undecided
from glasshouse.assess.paper_claims import beside_paper, marginal_sets, published
from glasshouse.assess.rates import Rate
from glasshouse.commands.attack import Attacked
from glasshouse.commands.words.verify import Summary, lines_for_people, summed
from glasshouse.errors import InputError
from glasshouse.report.beside import described
from glasshouse.report.description import Measure, Share, text, value_of
from glasshouse.report.render.drawing import pictures
from glasshouse.report.sections.answers import claims as claims_section
from glasshouse.report.sections.answers import singled_out
from glasshouse.report.sections.claims import LEAST, columns_picture, picture, write
from glasshouse.report.sections.claims_tables import Names, tables, whom
from glasshouse.scenarios.load import load
from tests.often import often

Row = dict[str, Any]

NAMES = ("TEN", "SIZE", "AGE", "RACE")
CLAIMS = {
    "place": pl.String, "k": pl.Int8, "columns": pl.List(pl.String), "values": pl.List(pl.String),
    "description": pl.String, "m": pl.Int64, "low": pl.Int64, "high": pl.Int64, "proof": pl.String, "kind": pl.Int32,
    "truth": pl.Int64, "p_tract": pl.Float64, "p_state": pl.Float64,
}  # fmt: skip
COUNTS = {
    "place": pl.String, "k": pl.Int8, "multiplicity": pl.String, "claims": pl.Int64, "kinds": pl.Int64,
    "households_low": pl.Int64, "households_high": pl.Int64, "households": pl.Int64,
}  # fmt: skip
PLACES = {
    "place": pl.String, "tract": pl.String, "households": pl.Int64, "vacant": pl.Int64, "unique": pl.Boolean,
    "cells": pl.Int64, "claims": pl.Int64, "kinds": pl.Int64, "undecided": pl.Int64, "queries": pl.Int64,
    "queries_dropped": pl.Int64, "households_low": pl.Int64, "households_high": pl.Int64, "vacant_low": pl.Int64,
    "vacant_high": pl.Int64, "truth": pl.Int64,
}  # fmt: skip


def code(number: int) -> str:
    return f"99001{number:010}"


def claim(block: int, columns: str, m: int | None, tract: float | None = 0.1, state: float | None = None) -> Row:
    named = columns.split()
    return {
        "place": code(block), "k": len(named), "columns": named, "values": ["1"] * len(named),
        "description": "a household that nobody else may know of", "m": m, "low": m or 0, "high": m or 9,
        "proof": "undecided" if m is None else "exact", "kind": 0, "truth": m, "p_tract": tract, "p_state": state,
    }  # fmt: skip


def place(block: int, households: int, known: bool | None = False, gone: int = 0) -> Row:
    return {
        "place": code(block), "tract": code(block)[:11], "households": households, "vacant": 1, "unique": known,
        "cells": 5, "claims": 0, "kinds": 0, "undecided": 0, "queries": 10, "queries_dropped": gone,
        "households_low": households, "households_high": households, "vacant_low": 1, "vacant_high": 1,
        "truth": households,
    }  # fmt: skip


def between(block: int, low: int, high: int | None, truth: int | None = None) -> Row:
    """A place of which the tables do not say how many households it has."""
    bounds = {"households": None, "households_low": low, "households_high": high, "truth": truth}
    return {**place(block, low), **bounds}


def count(block: int, k: int, multiplicity: str, claims: int, least: int, most: int, real: int | None) -> Row:
    return {
        "place": code(block), "k": k, "multiplicity": multiplicity, "claims": claims, "kinds": min(claims, 1),
        "households_low": least, "households_high": most, "households": real,
    }  # fmt: skip


def claims_of(rows: list[Row]) -> pl.LazyFrame:
    return pl.DataFrame(rows, CLAIMS).lazy()


def counts_of(rows: list[Row]) -> pl.DataFrame:
    return pl.DataFrame(rows, COUNTS)


def places_of(rows: list[Row]) -> pl.DataFrame:
    return pl.DataFrame(rows, PLACES)


def told(results: Results) -> Summary:
    """What scripts are told."""
    return summed(Attacked("toy", "block", 1, 1, 0), 7, results)


# Two blocks of four and six households, one of vacant units only; by hand

TOY_PLACES = places_of([place(1, 4), place(2, 6, None), place(3, 0, True)])
TOY_CLAIMS = claims_of(
    [
        claim(1, "TEN SIZE", 1, 0.00), claim(1, "TEN AGE", 1, 0.01), claim(1, "SIZE AGE", 1, 0.02),
        claim(1, "TEN RACE", 2, 0.03), claim(2, "TEN SIZE", 1, 0.50), claim(2, "AGE RACE", 3, None),
        claim(1, "TEN SIZE AGE", 1, 0.01), claim(2, "TEN SIZE AGE", None, 0.9),
    ]
)  # fmt: skip
TOY_COUNTS = counts_of(
    [
        count(1, 2, SINGLETON, 3, 1, 3, 2), count(2, 2, SINGLETON, 1, 1, 1, 1), count(3, 2, SINGLETON, 0, 0, 0, 0),
        count(1, 2, EVERY, 4, 2, 4, 3), count(2, 2, EVERY, 2, 3, 4, 4), count(3, 2, EVERY, 0, 0, 0, 0),
        count(1, 3, SINGLETON, 1, 1, 1, 1), count(2, 3, SINGLETON, 0, 0, 0, 0), count(3, 3, SINGLETON, 0, 0, 0, 0),
        count(1, 3, EVERY, 1, 1, 1, 1), count(2, 3, EVERY, 0, 0, 0, 0), count(3, 3, EVERY, 0, 0, 0, 0),
    ]
)  # fmt: skip


def test_blocks_and_households_by_hand() -> None:
    found = by_columns(TOY_COUNTS, TOY_PLACES)
    assert found.select("multiplicity", "k").rows() == [("singleton", 2), ("singleton", 3), ("all", 2), ("all", 3)]
    assert found["blocks"].to_list() == [2] * 4 and found["households"].to_list() == [10] * 4
    assert found["blocks_with_claim"].to_list() == [2, 1, 2, 1]
    assert found["block_share"].to_list() == [1, 0.5, 1, 0.5]
    half = Rate.of(1, 2)
    assert found.select("block_share_low", "block_share_high").row(1) == (half.low, half.high)
    assert found["claims"].to_list() == [4, 1, 6, 1]
    assert found.select("represented_least", "represented_most", "represented").row(0) == (2, 4, 3)
    assert found.select("share_least", "share_most", "share").row(2) == (0.5, 0.8, 0.7)
    assert found.select("per_block_least", "per_block_most", "per_block").row(2) == (2.5, 4.0, 3.5)


def test_without_the_truth_the_interval_reaches_from_the_least_to_the_most() -> None:
    untold = TOY_COUNTS.with_columns(pl.lit(None, pl.Int64).alias("households"))
    known, found = by_columns(TOY_COUNTS, TOY_PLACES), by_columns(untold, TOY_PLACES)
    assert found["represented"].null_count() == found["share"].null_count() == found.height
    assert (found["share_low"] <= known["share_low"]).all() and (found["share_high"] >= known["share_high"]).all()
    same = ["blocks", "block_share", "claims", "represented_least", "share_most"]
    assert_frame_equal(found.select(same), known.select(same))
    partly = TOY_COUNTS.with_columns(pl.when(pl.col("place") != code(1)).then("households").alias("households"))
    assert by_columns(partly, TOY_PLACES)["represented"].null_count() == found.height  # of some blocks is not of all


def test_a_share_is_between_bounds_where_the_number_of_households_is_open() -> None:
    """Block 1 has 2 to 5, block 2 has none to 8: of the latter it is not known whether it has any."""
    homes = places_of([between(1, 2, 5), between(2, 0, 8)])
    counts = counts_of([count(1, 2, SINGLETON, 1, 1, 3, None), count(2, 2, SINGLETON, 1, 0, 4, None)])
    (row,) = by_columns(counts, homes).to_dicts()
    assert row["blocks"] == row["blocks_with_claim"] == 2
    assert (row["households"], row["households_least"], row["households_most"]) == (None, 2, 13)
    assert (row["share_least"], row["share_most"], row["share"]) == (1 / 13, 7 / 7, None)
    assert 0 <= row["share_low"] <= row["share_least"] and row["share_high"] == 1
    # nothing limits block 2: then the least share is nothing, and the most is as before
    endless = places_of([between(1, 2, 5), between(2, 0, None)])
    (row,) = by_columns(counts, endless).to_dicts()
    assert (row["households_least"], row["households_most"]) == (2, None)
    assert (row["share_least"], row["share_most"], row["share_low"]) == (0, 1, 0)
    # with the truth, both numbers are its own
    homes = places_of([between(1, 2, 5, truth=4), between(2, 0, None, truth=6)])
    real = counts.with_columns(households=pl.Series([2, 1]))
    (row,) = by_columns(real, homes).to_dicts()
    assert (row["households"], row["represented"], row["share"]) == (10, 3, 0.3)
    assert row["share_low"] < 0.3 < row["share_high"]
    assert (row["share_least"], row["share_most"]) == (0, 1)
    # of one place alone it says nothing of all
    partly = by_columns(real, homes.with_columns(pl.when(pl.col("truth") == 4).then("truth").alias("truth")))
    assert partly["households"].null_count() == partly["represented"].null_count() == partly["share"].null_count() == 1


@given(data=st.data())
@settings(max_examples=often(200), deadline=None)
def test_the_bounds_of_a_share_are_those_of_all_numbers_that_are_possible(data: st.DataObject) -> None:
    """Every number of households and of those represented, within their bounds, listed."""
    homes, rows, ways = [], [], []
    for block in range(data.draw(st.integers(1, 3))):
        low = data.draw(st.integers(0, 3))
        high = data.draw(st.integers(max(low, 1), 4))
        least = data.draw(st.integers(0, low))
        most = data.draw(st.integers(least, high))
        homes.append(between(block, low, high))
        rows.append(count(block, 2, EVERY, 1 if most else 0, least, most, None))
        ways.append([(r, n) for n in range(low, high + 1) for r in range(least, min(most, n) + 1)])
    (row,) = by_columns(counts_of(rows), places_of(homes)).to_dicts()
    sums = [(sum(r for r, _ in one), sum(n for _, n in one)) for one in product(*ways)]
    shares = [r / n for r, n in sums if n]
    assert row["share_least"] == pytest.approx(min(shares)) and row["share_most"] == pytest.approx(max(shares))
    assert (row["households_least"], row["households_most"]) == (min(n for _, n in sums), max(n for _, n in sums))


def test_places_of_which_the_size_is_not_known() -> None:
    """A place is left out only when it is proved to have no household; sizes that are open are in no other row."""
    homes = places_of([between(1, 0, 3), between(2, 0, None), between(3, 2, 4), place(4, 2), place(5, 0)])
    assert unique(homes).blocks == 4
    assert sizes(homes).select("households", "blocks").rows() == [(2, 1), (None, 3)]
    assert median_size(homes) is None
    assert median_size(places_of([between(1, 0, 3), place(2, 3), place(4, 5)])) == 3


def test_a_run_that_asks_about_singletons_only() -> None:
    counts = TOY_COUNTS.filter(multiplicity=SINGLETON)
    results = summed_up(TOY_CLAIMS.filter(pl.col("m") == 1), counts, TOY_PLACES, NAMES)
    for frame in (results.by_columns, results.baselines, results.columns_used, results.combinations):
        assert set(frame["multiplicity"]) == {SINGLETON}
    assert not [line for line in lines_for_people(results, Names()) if "one or several" in line]
    assert "any number" not in str(picture(results.by_columns, results.baselines))
    assert len(tables(results)) == 8


def test_a_block_is_unique_only_if_proved() -> None:
    """Convention 15; the block of vacant units is left out."""
    found = asdict(unique(TOY_PLACES))
    assert found == {
        "blocks": 2, "unique": 0, "share": 0.0, "low": 0.0, "high": Rate.of(1, 2).high, "undecided": 1,
    }  # fmt: skip
    assert unique(places_of([place(1, 3, True), place(2, 2, True)])).share == 1.0


def test_sizes_and_queries_by_hand() -> None:
    rows = [place(1, 4), place(2, 6, gone=1), place(3, 4, gone=2), place(4, 0, gone=10)]
    found = sizes(places_of(rows))
    assert found.select("households", "blocks", "share").rows() == [(4, 2, 2 / 3), (6, 1, 1 / 3)]
    assert median_size(places_of(rows)) == 4.0
    assert asdict(dropped(places_of(rows))) == {
        "queries": 30, "dropped": 3, "share_mean": pytest.approx(0.1), "share_least": 0.0, "share_most": 0.2,
    }  # fmt: skip


def test_boxes_by_hand() -> None:
    found = baselines(TOY_CLAIMS)
    assert found.select("prior", "multiplicity", "k").rows() == [
        ("tract", "singleton", 2), ("tract", "singleton", 3), ("tract", "all", 2), ("tract", "all", 3),
    ]  # fmt: skip
    row = found.row(0, named=True)  # of 0, 0.01, 0.02 and 0.5
    assert row["claims"] == 4
    assert (row["q1"], row["median"], row["q3"]) == pytest.approx((0.0075, 0.015, 0.14))
    assert (row["min"], row["max"], row["p90"]) == pytest.approx((0.0, 0.5, 0.356))
    assert row["whisker_low"] == 0.0
    # 0.5 is beyond 0.14 + 1.5 x 0.1325, and 0.02 below the quartile: a whisker without length
    assert row["whisker_high"] == row["q3"]
    assert row["surprising"] == 0.5 and row["surprising_low"] < 0.5 < row["surprising_high"]
    assert found.filter(multiplicity=EVERY, k=2)["claims"].item() == 5  # the claim without a probability is not there


def test_columns_and_combinations_by_hand() -> None:
    used = columns_used(TOY_CLAIMS, NAMES)
    assert used.filter(multiplicity=SINGLETON, k=2).select("column", "hits", "claims").rows() == [
        ("TEN", 3, 4), ("SIZE", 3, 4), ("AGE", 2, 4), ("RACE", 0, 4),
    ]  # fmt: skip
    assert used.filter(multiplicity=SINGLETON, k=3)["share"].to_list() == [1, 1, 1, 0]
    none = used.filter(multiplicity=SINGLETON, k=2, column="RACE").row(0, named=True)
    assert (none["low"], none["high"]) == (0.0, Rate.of(0, 2).high)  # two blocks, each as one draw
    found = combinations(TOY_CLAIMS, NAMES, 2)
    assert found.filter(k=2).select("multiplicity", "rank", "columns", "hits", "share").rows() == [
        ("singleton", 1, ["TEN", "SIZE"], 2, 0.5), ("singleton", 2, ["TEN", "AGE"], 1, 0.25),
        ("all", 1, ["TEN", "SIZE"], 2, 1 / 3), ("all", 2, ["TEN", "AGE"], 1, 1 / 6),
    ]  # fmt: skip


def test_undecided_claims_are_counted_and_never_verified() -> None:
    found = asdict(undecided(TOY_CLAIMS))
    assert (found["claims"], found["undecided"], found["share"]) == (8, 1, 1 / 8)
    assert found["low"] < 1 / 8 < found["high"]
    unproved = TOY_CLAIMS.with_columns(pl.lit("undecided").alias("proof"))  # though m is there
    assert undecided(unproved).undecided == 8
    assert baselines(unproved).is_empty() and columns_used(unproved, NAMES).is_empty()


def test_no_claims_at_all() -> None:
    nothing = claims_of([])
    assert asdict(undecided(nothing)) == {"claims": 0, "undecided": 0, "share": None, "low": None, "high": None}
    assert baselines(nothing).is_empty() and combinations(nothing, NAMES).is_empty()
    zero = TOY_COUNTS.with_columns(
        pl.lit(0, pl.Int64).alias(n) for n in ("claims", "kinds", "households_low", "households_high", "households")
    )
    results = summed_up(nothing, zero, TOY_PLACES, NAMES)
    assert results.by_columns["block_share"].to_list() == [0.0] * 4
    assert results.by_columns["share_high"].min() > 0.5  # type: ignore[operator]  # two blocks say little
    assert lines_for_people(results, Names())[-1].endswith("0 of 0 claims")
    assert columns_picture(results.columns_used).title == "No claim is verified"
    assert len(tables(results)) == 8


# Laws


@st.composite
def runs(draw: st.DrawFn) -> tuple[pl.LazyFrame, pl.DataFrame, pl.DataFrame]:
    """What a run may write, whatever it found: the three files agree with each other."""
    names = list(NAMES)
    rows, counted, homes = [], [], []
    with_truth = draw(st.booleans())
    for block in range(draw(st.integers(1, 6))):
        size = draw(st.integers(1, 12)) if not block else draw(st.integers(0, 12))
        homes.append(place(block, size, draw(st.sampled_from([True, False, None])), draw(st.integers(0, 10))))
        homes[-1]["truth"] = size if with_truth else None
        sure = 0
        for k in range(1, len(names) + 1):
            sets = st.lists(st.sampled_from(names), min_size=k, max_size=k, unique=True).map(" ".join)
            chance = st.one_of(st.none(), st.floats(0, 1))
            found = []
            if size:
                one = st.builds(claim, st.just(block), sets, st.one_of(st.none(), st.integers(1, size)), chance, chance)
                found = draw(st.lists(one, max_size=4))
            rows += found
            before = (0, 0, 0)
            for multiplicity in MULTIPLICITIES:
                wanted = [c for c in found if c["m"] == 1 or (c["m"] and multiplicity == EVERY)]
                some = sorted(draw(st.integers(low, size)) for low in before) if wanted else [0, 0, 0]
                before = (some[0], some[0], some[0])
                sure = max(sure, some[0])
                real = some[1] if with_truth else None
                counted.append(count(block, k, multiplicity, len(wanted), some[0], some[2], real))
        if draw(st.booleans()) and (size or block):  # the tables leave open how many there are
            low, high = draw(st.integers(sure, size)), draw(st.sampled_from([size, size + 3, None]))
            homes[-1] |= {"households": size if low == high else None, "households_low": low, "households_high": high}
    return claims_of(rows), counts_of(counted), places_of(homes)


@settings(max_examples=often(25), deadline=None)
@given(runs())
def test_shares_are_shares_and_intervals_hold_them(run: tuple[pl.LazyFrame, pl.DataFrame, pl.DataFrame]) -> None:
    claims, counts, homes = run
    results = summed_up(claims, counts, homes, NAMES)
    found = results.by_columns
    assert found.select("multiplicity", "k").rows() == [(m, k) for m in MULTIPLICITIES for k in range(1, 5)]
    assert (found["represented_least"] <= found["represented_most"]).all()
    assert (found["represented_most"] <= found["households_most"]).all()  # never more than there are
    assert (found["households_least"] <= found["households_most"]).all()
    assert (
        (found["households"] >= found["households_least"]) & (found["households"] <= found["households_most"])
    ).all()
    assert found.filter(~pl.col("block_share").is_between("block_share_low", "block_share_high")).is_empty()
    untold = found.filter(pl.col("share").is_null())
    assert (untold["share_low"] <= untold["share_least"]).all() and (untold["share_most"] <= untold["share_high"]).all()
    assert found.filter(~pl.col("share").is_between("share_low", "share_high")).is_empty()
    for frame in (found, results.columns_used, results.combinations, results.sizes, results.baselines):
        shares = frame.select(pl.col(pl.Float64).exclude("^per_block.*$")).to_numpy()
        assert np.all(np.isnan(shares) | ((shares >= 0) & (shares <= 1)))
    for frame in (results.columns_used, results.combinations):
        assert frame.filter(~pl.col("share").is_between("low", "high")).is_empty()
    # a singleton is one of all
    one, every = (found.filter(multiplicity=m) for m in MULTIPLICITIES)
    assert (one["block_share"] <= every["block_share"]).all() and (one["claims"] <= every["claims"]).all()
    # a claim of k columns names k of them
    for (_, k), rows in results.columns_used.group_by("multiplicity", "k"):
        assert rows["hits"].sum() == k * rows["claims"][0] and rows["column"].to_list() == list(NAMES)
    for _, rows in results.combinations.group_by("multiplicity", "k"):
        assert rows["hits"].is_sorted(descending=True) and rows["hits"].sum() <= rows["claims"][0]
    boxes = ("min", "whisker_low", "q1", "median", "q3", "whisker_high", "max")
    order = results.baselines.select(boxes).to_numpy()
    assert np.all(np.diff(order, axis=1) >= -1e-12)
    assert (results.baselines["p90"] <= results.baselines["max"] + 1e-12).all()
    assert results.sizes["blocks"].sum() == results.unique.blocks == found["blocks"][0]
    text = "\n".join(lines_for_people(results, Names()))
    assert "nan" not in text and "None" not in text and "inf" not in text


@settings(max_examples=10, deadline=None)
@given(runs(), st.randoms(use_true_random=False))
def test_the_order_of_rows_makes_no_difference(run: Any, random: Any) -> None:
    """Convention 8."""
    claims, counts, homes = run
    shuffled = [frame.sample(fraction=1, shuffle=True, seed=random.randrange(99)) for frame in
                (claims.collect(), counts, homes)]  # fmt: skip
    one = told(summed_up(claims, counts, homes, NAMES))
    assert one == told(summed_up(shuffled[0].lazy(), shuffled[1], shuffled[2], NAMES))


@settings(max_examples=often(40), deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_boxes_against_a_second_engine(chances: list[float]) -> None:
    found = baselines(claims_of([claim(n, "TEN", 1, p) for n, p in enumerate(chances)])).row(0, named=True)
    low, middle, high, ninety = np.percentile(chances, [25, 50, 75, 90])
    inside = [p for p in chances if low - 1.5 * (high - low) <= p <= high + 1.5 * (high - low)]
    expected = (low, middle, high, ninety, min(*inside, low), max(*inside, high))
    names = ("q1", "median", "q3", "p90", "whisker_low", "whisker_high")
    assert tuple(found[name] for name in names) == pytest.approx(expected, abs=1e-9)
    rate = Rate.of(sum(p < 0.02 for p in chances), len(chances))  # a claim a block: independent draws
    assert found["surprising"] == rate.value


# Golden: the paper


def test_every_printed_figure_stands_in_the_line_that_is_named(data: Path) -> None:
    (paper,) = (data.parent / "papers").glob("002*.txt")
    lines = paper.read_text(encoding="utf-8").splitlines()
    source = Path(__file__).resolve().parents[1] / "src/glasshouse/assess/published_claims.csv"
    with source.open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) > 90
    for row in rows:
        line = lines[int(row["line"]) - 1]
        if row["column"] == "unique":
            assert "no blocks we evaluate on can be fully reconstructed" in line
        else:
            assert re.search(rf"(?<![\d.]){re.escape(row['printed'])}(?![\d.]*\d)", line), row


def values(table: str, panel: str, column: str) -> list[float]:
    return published(table).filter(panel=panel, column=column)["value"].to_list()


def test_the_averages_of_tables_4_and_7_are_over_250_and_232_blocks() -> None:
    """FINDINGS B: 669 / 2.88 is 232.3, and no number but 232 gives all ten averages as printed."""
    for panel, blocks in (("state", 250), ("country", 232)):
        fits = set(range(200, 301))
        for table in ("4", "7"):
            pairs = zip(values(table, panel, "represented"), values(table, panel, "per_block"), strict=True)
            for total, mean in pairs:
                fits &= {n for n in fits if abs(total / n - mean) <= 0.005 + 1e-9}
        assert blocks in fits
        assert panel == "state" or fits == {blocks}


def test_the_numbers_of_households_are_those_of_the_other_panel() -> None:
    """Blocks of the country's median size have 10 households: 250 of them 2,500, which stands beside the state's."""
    for table in ("4", "7"):
        for panel, printed in (("state", 2500), ("country", 2430)):
            assert values(table, panel, "households") == [printed]
            assert values(table, panel, "households_per_block") == [printed / 250]
    assert published("text").filter(column="median_size")["value"].item() * 250 == 2500


def test_table_5_begins_as_table_4_and_its_removals_add_up() -> None:
    assert values("5", "all queries", "represented") == values("4", "country", "represented")
    ones, zeros, both = (
        values("5", f"without {what}", "queries_removed")[0] for what in ("ones", "zeros", "zeros and ones")
    )
    assert ones + zeros == pytest.approx(both)
    assert round(ones / (1 - zeros), 4) == 0.3728  # footnote 7
    fewer = [values("5", panel, "represented") for panel in ("without zeros and ones", "without ones", "all queries")]
    assert all(least <= some <= all_ for least, some, all_ in zip(*fewer, strict=True))  # fewer queries tell less


def test_the_sets_of_table_3_add_up_and_the_shares_of_table_6_do_not_exceed_all() -> None:
    sets = published("3")
    assert sets.filter(column="sets")["value"].sum() == sets.filter(column="sets_total")["value"].item() == 24
    for (k,), rows in published("6").group_by("k"):
        assert rows["value"].sum() <= 1 and rows["value"].is_sorted(descending=True), k


def test_our_tables_look_at_as_many_sets_of_columns_as_the_paper_says() -> None:
    found = marginal_sets(load("dhc-household"))
    assert found["sets"].to_list() == found["sets_published"].to_list() == [4, 10, 8, 2]
    persons = marginal_sets(load("sf1-person"))
    assert persons["sets"].sum() > 0 and persons.columns == found.columns


def test_ours_stand_beside_the_papers() -> None:
    rows = [count(n, k, m, 1, 1, 1, 1) for n in range(4) for k in (6, 8) for m in MULTIPLICITIES]
    found = beside_paper(by_columns(counts_of(rows), places_of([place(n, 5) for n in range(4)])))
    assert found.select("multiplicity", "k").rows() == [(m, k) for m in MULTIPLICITIES for k in range(6, 11)]
    six = found.filter(multiplicity=SINGLETON, k=6).row(0, named=True)
    assert (six["block_share"], six["share"], six["block_share_published"]) == (1.0, 0.2, 0.8)
    theirs = [
        six[f"{name}_published"] for name in ("state", "country", "without_ones", "without_zeros", "without_both")
    ]
    assert theirs == pytest.approx([659 / 2430, 669 / 2500, 249 / 2500, 460 / 2500, 47 / 2500])
    every = found.filter(multiplicity=EVERY, k=8).row(0, named=True)
    assert (every["state_published"], every["country_published"]) == pytest.approx((642 / 2430, 691 / 2500))
    assert every["without_ones_published"] is None
    assert found.filter(k=7)["block_share"].null_count() == 2  # not asked here; published all the same


def test_an_unknown_table_is_refused() -> None:
    with pytest.raises(InputError, match="known: 3, 4, 5, 6, 7, figure 3, text"):
        published("2")


# Golden: what a person reads


def toy(truth: bool = True) -> Results:
    counts = TOY_COUNTS if truth else TOY_COUNTS.with_columns(pl.lit(None, pl.Int64).alias("households"))
    return summed_up(TOY_CLAIMS, counts, TOY_PLACES, NAMES, marginal_sets(load("dhc-household")))


def test_the_lines_for_people() -> None:
    assert lines_for_people(toy(), Names()) == [
        "2 blocks, 10 households; none is known as a whole (0 of 2, 95% interval 0.0% to 90.5%)",
        "",
        "    a household singled out for certain",
        "    columns   of blocks                 of households (95% intervals)",
        "    2         100.0% (34.2% to 100.0%)  30.0% (9.7% to 63.0%)",
        "    3         50.0% (9.5% to 90.5%)     10.0% (1.3% to 49.2%)",
        "",
        "    households counted for certain, one or several",
        "    columns   of blocks                 of households (95% intervals)",
        "    2         100.0% (34.2% to 100.0%)  70.0% (39.7% to 89.2%)",
        "    3         50.0% (9.5% to 90.5%)     10.0% (1.3% to 49.2%)",
        "",
        "    singled out where guessing would be right in fewer than 2% of cases (higher is worse)",
        "    columns   by the tract",
        "    2         50.0% (15.0% to 85.0%)",
        "    3         100.0% (20.7% to 100.0%)",
        "",
        "    blocks undecided          1 of 2",
        "    undecided                 1 of 8 claims (1.4% to 58.2%)",
    ]
    lines = lines_for_people(toy(truth=False), Names("parcel", "person", "persons"))
    assert lines[0].startswith("2 parcels, 10 persons; ") and not any("household" in line for line in lines)
    assert lines[4].endswith("20.0% to 40.0% (5.7% to 82.5%)")


def test_what_scripts_are_told_is_about_no_single_block() -> None:
    said = str(told(toy()))
    assert "99001" not in said and "nobody else" not in said


# Who may read what


def test_the_tables_name_no_block_and_no_household(tmp_path: Path) -> None:
    names = write(tmp_path, toy(), ["Ours are of a toy."])
    assert sorted(names) == sorted(path.name for path in tmp_path.iterdir())
    assert {"tables.xlsx", "tables.html", "tables-public.html"} <= set(names)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    for name in names:
        path = tmp_path / name
        if name.endswith(".xlsx"):
            with zipfile.ZipFile(path) as archive:
                text = "".join(archive.read(part).decode() for part in archive.namelist())
        else:
            text = path.read_bytes().decode(errors="replace") if name.endswith("html") else str(pl.read_parquet(path))
        assert "99001" not in text and "nobody else may know" not in text, name
    public = (tmp_path / "tables-public.html").read_text(encoding="utf-8")
    assert "guessed from the tract" not in public  # claims too few for a share
    assert "guessed from the tract" in (tmp_path / "tables.html").read_text(encoding="utf-8")
    assert "Ours are of a toy." in public


def test_every_table_says_what_is_worse_and_every_share_is_of_what_is_shown() -> None:
    for table in tables(toy()):
        assert any("worse" in note for note in table.notes), table.name  # house rule 2
        assert [column.name for column in table.columns] == table.frame.columns
        for column in table.columns:
            assert column.ratio is None or set(column.ratio[:2]) <= set(table.frame.columns)


def test_numbers_know_how_many_they_are_about() -> None:
    """Convention 55: a share without counts beside it is hidden by how many households its row is about."""
    made = tables(toy())
    told = whom(made, toy())
    for table in made:
        found = described(table, told.get(table.name))
        for row in found.rows:
            for column, cell in zip(found.columns, row, strict=True):
                if isinstance(cell, Measure):
                    assert (cell.over == 0) == column.published
    households = dict(toy().by_columns.select("k", "households").rows())
    (v4,) = (described(table, told["V4"]) for table in made if table.name == "V4")
    ours = [cell.over for row in v4.rows for cell in row if isinstance(cell, Measure) and cell.over]
    assert ours and set(ours) <= set(households.values())


def test_large_blocks_are_counted_together() -> None:
    homes = places_of([place(1, 1), place(2, 21), place(3, 50), place(4, 51), place(5, 987)])
    rows = [count(n, 1, m, 0, 0, 0, None) for n in range(1, 6) for m in MULTIPLICITIES]
    results = summed_up(claims_of([]), counts_of(rows), homes, NAMES)
    (table,) = (table for table in tables(results) if table.name == "V8")
    assert dict(table.frame.select("records", "blocks").rows()) == {
        "1": 1, "21 to 50": 2, "51 to 100": 1, "more than 100": 1,
    }  # fmt: skip


# Pictures


def many() -> Results:
    rng = np.random.default_rng(1)
    rows = [claim(n, "TEN SIZE", 1 + n % 2, p, p) for n, p in enumerate(rng.beta(0.4, 9, 60).tolist())]
    held = [(n, m, int(m == EVERY or n % 2 == 0)) for n in range(60) for m in MULTIPLICITIES]
    counted = [count(n, 2, m, some, 0, some, None) for n, m, some in held]
    return summed_up(claims_of(rows), counts_of(counted), places_of([place(n, 7) for n in range(60)]), NAMES)


def test_the_pictures_are_drawn(tmp_path: Path) -> None:
    results = many()
    drawn = picture(results.by_columns, results.baselines)
    assert drawn.title == "50% of blocks have a household that 2 columns single out for certain"
    drawn.save(tmp_path / "claims.svg")
    text = (tmp_path / "claims.svg").read_text(encoding="utf-8")
    for said in ("higher is worse", "lower is worse", "from the tract", "from the state", "exactly one household"):
        assert said in text
    named = columns_picture(results.columns_used)
    assert named.title == "Verified claims name AGE least often"
    named.save(tmp_path / "columns.svg")
    assert "if all alike" in (tmp_path / "columns.svg").read_text(encoding="utf-8")
    assert "99001" not in text and (tmp_path / "claims.svg").stat().st_mode & 0o777 == 0o600


def test_panels_without_data_are_left_out() -> None:
    results = many()
    for prior in ("tract", "state"):
        drawn = picture(results.by_columns, results.baselines.filter(prior=prior))
        bars, boxes = drawn.pictures
        assert len(list(pictures(bars, narrow=False))) == len(list(pictures(boxes, narrow=False))) == 1
    few = results.baselines.with_columns(pl.lit(LEAST - 1, pl.Int64).alias("claims"))
    alone = picture(results.by_columns, few, Names("parcel"))
    assert len(alone.pictures) == 1 and "Boxes" not in alone.svg() and "parcels" in alone.title


# Bad input


@pytest.mark.parametrize(
    ("counts", "homes", "words"),
    [
        (TOY_COUNTS, places_of([place(1, 0)]), "none of the places has any households"),
        (TOY_COUNTS, TOY_PLACES.drop("unique"), "the places have no column 'unique'"),
        (TOY_COUNTS, pl.concat([TOY_PLACES, TOY_PLACES]), "a place is in two rows"),
        (TOY_COUNTS, places_of([place(1, 4, gone=11)]), "queries_dropped > queries"),
        (TOY_COUNTS, places_of([place(1, -1)]), "a number below 0"),
        (TOY_COUNTS, TOY_PLACES.with_columns(place=None), "the column 'place' of the places has a blank"),
        (TOY_COUNTS.drop("kinds"), TOY_PLACES, "the counts have no column 'kinds'"),
        (TOY_COUNTS.head(4), TOY_PLACES, "one row for every place, k and multiplicity"),
        (TOY_COUNTS, places_of([place(1, 4), place(9, 2)]), "one row for every place, k and multiplicity"),
        (TOY_COUNTS, places_of([place(1, 4), place(2, 2)]), "households_low <= households of the place"),
        (TOY_COUNTS, places_of([place(1, 3), place(2, 6)]), "households_high <= most households of the place"),
        (TOY_COUNTS.with_columns(households_low=9), TOY_PLACES, "households_low <= households_high"),
        (TOY_COUNTS.clear(), TOY_PLACES, "one row for every place, k and multiplicity"),
        (TOY_COUNTS.with_columns(kinds=9), TOY_PLACES, "0 <= kinds <= claims"),
        (TOY_COUNTS.with_columns(claims=0, kinds=0), TOY_PLACES, "no claims, no households"),
        (TOY_COUNTS.with_columns(multiplicity=pl.lit("two")), TOY_PLACES, "unknown multiplicity 'two'"),
    ],
)
def test_files_that_make_no_sense_are_refused(counts: pl.DataFrame, homes: pl.DataFrame, words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)):
        by_columns(counts, homes)


def test_claims_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InputError, match="names other columns than its k of TEN"):
        columns_used(TOY_CLAIMS, ("TEN", "SIZE", "AGE"))
    with pytest.raises(InputError, match="names other columns than its k"):
        combinations(TOY_CLAIMS.with_columns(k=4), NAMES)
    with pytest.raises(InputError, match="not between 0 and 1"):
        baselines(TOY_CLAIMS.with_columns(p_tract=1.5))
    with pytest.raises(InputError, match="no column of a prior, whose name begins with p_"):
        baselines(TOY_CLAIMS.drop("p_tract", "p_state"))
    with pytest.raises(InputError, match="the claims have no column 'proof'"):
        undecided(TOY_CLAIMS.drop("proof"))


def test_an_audit_without_the_truth_says_what_is_proved() -> None:
    """The least that are represented, of the most there can be; nothing, where nothing limits them."""
    summary = asdict(told(toy(truth=False)))
    row = summary["by_columns"][0]
    assert row["share"] is None and singled_out(row) == Share(2, 10, row["share_low"], row["share_high"])
    lead = claims_section(summary, pl.DataFrame(), "block").lead
    assert "At least" in text(lead)
    unlimited = singled_out({**row, "households_most": None})
    assert unlimited == Share(0, 0) and value_of(unlimited) is None  # no number, and no interval of one
    assert "At least" not in text(claims_section(asdict(told(toy())), pl.DataFrame(), "block").lead)
    nothing = asdict(Summary("toy", "block", 1, 1, 0, claims=0))
    assert (
        text(claims_section(nothing, pl.DataFrame(), "block").lead) == "Nothing could be proved of single households."
    )
