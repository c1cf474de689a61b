"""Is the sum over all blocks right? Chance averaged out in full, second engines, laws, and the Bureau's own tables."""

from __future__ import annotations

import re
import zipfile
from dataclasses import asdict
from fractions import Fraction
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from scipy.stats import binomtest

from glasshouse.assess.one_solution import have_one_solution, one_solution
from glasshouse.assess.rates import Rate, wilson
from glasshouse.assess.variability import NUMBERS, by_size, headline, published, quantiles
from glasshouse.errors import InputError
from glasshouse.model.bands import ALL, BANDS
from glasshouse.report.description import Curves, Field, Measure, value_of
from glasshouse.report.sections.variability import _edges, picture
from tests.often import often

Row = dict[str, Any]


def places(rows: list[Row]) -> pl.DataFrame:
    schema = {"place": pl.String, "area": pl.String, **dict.fromkeys(NUMBERS, pl.Int64), "proof": pl.String}
    return pl.DataFrame(rows, schema=schema)


def block(
    number: int, population: int, distance: int, more: int = 0, proof: str = "exact", unique: int = 0, tract: int = 1
) -> Row:
    upper = min(distance + more, 2 * population)
    certain = max(population - upper, 0)
    return {
        "place": f"b{number}",
        "area": f"t{tract}",
        "population": population,
        "population_upper": population,
        "distance": distance,
        "distance_upper": upper,
        "certain": certain,
        "certain_upper": max(population - distance, 0),
        "unique": min(unique, population),
        "proof": proof,
    }


@st.composite
def some_places(draw: st.DrawFn, largest: int = 40, sizes: int = 2000) -> list[Row]:
    """Blocks of every size, some empty, some undecided, many ties; at least one with people."""
    rows = []
    for number in range(draw(st.integers(1, largest))):
        population = draw(st.one_of(st.integers(0, 12), st.integers(1, sizes))) if number else draw(st.integers(1, 9))
        half = draw(
            st.one_of(st.just(0), st.sampled_from([0, population // 2, population]), st.integers(0, population))
        )
        proof = draw(st.sampled_from(["exact", "exact", "two-engines", "undecided"]))
        more = 2 * draw(st.integers(0, 5)) if proof == "undecided" else 0
        unique, tract = draw(st.integers(0, 20)), draw(st.integers(1, 4))
        rows.append(block(number, population, 2 * half, more, proof, unique, tract))
    return rows


def solvar(row: Row) -> Fraction:
    return Fraction(row["distance"], 2 * row["population"])


# Oracles: the definitions, in fractions, one block at a time


def by_chance(rows: list[Row], step: int) -> list[tuple[float, ...]]:
    """Table S4 with ties broken in every possible way, averaged; a rank that a row's end cuts is shared."""
    people = [row for row in rows if row["population"]]
    orders = list(permutations(people))
    found = []
    for percent in range(step, 101, step):
        population, distance = Fraction(0), Fraction(0)
        for order in orders:
            left = Fraction(percent * len(people), 100)
            for row in sorted(order, key=solvar):
                part = min(left, Fraction(1))
                population += part * row["population"]
                distance += part * row["distance"]
                left -= part
        values = sorted(solvar(row) for row in people)
        quantile = next(v for v in values if 100 * sum(w <= v for w in values) >= percent * len(values))
        population, distance = population / len(orders), distance / len(orders)
        found.append((float(quantile), float(population), float(distance), float(distance / (2 * population))))
    return found


@settings(max_examples=often(40))
@given(some_places(largest=6, sizes=30), st.sampled_from([5, 10, 25, 50, 100]))
def test_ties_shared_evenly_are_ties_broken_by_chance_on_average(rows: list[Row], step: int) -> None:
    found = quantiles(places(rows), step)
    ours = found.select("quantile", "cumulative_population", "distance", "cumulative_solvar").to_numpy()
    assert ours == pytest.approx(np.array(by_chance(rows, step)), rel=1e-12, abs=1e-12)


@given(some_places())
def test_by_size_and_headline_are_what_counting_gives(rows: list[Row]) -> None:
    people = [row for row in rows if row["population"]]
    zero = [row for row in people if row["distance_upper"] == 0 and row["proof"] != "undecided"]
    table = {row["band"]: row for row in by_size(places(rows)).iter_rows(named=True)}
    assert list(table) == [*BANDS, ALL]
    ends = [*list(BANDS.values())[1:], 10**9]
    for band, low, high in [*zip(BANDS, BANDS.values(), ends, strict=True), (ALL, 1, 10**9)]:
        inside = [row for row in people if low <= row["population"] < high]
        known = [row for row in zero if low <= row["population"] < high]
        found, size = table[band], sum(row["population"] for row in inside)
        assert (found["blocks"], found["population"]) == (len(inside), size)
        assert found["zero_blocks"] == len(known)
        assert found["zero_population"] == sum(row["population"] for row in known)
        assert found["undecided"] == sum(row["proof"] == "undecided" for row in inside)
        if inside:
            assert found["unique_share"] == sum(row["unique"] for row in inside) / size
            assert found["certain_share"] == sum(row["certain"] for row in inside) / size
            assert found["zero_population_share"] == found["zero_population"] / size
            rate = Rate.of(len(known), len(inside))
            assert (found["zero_share"], found["zero_share_low"], found["zero_share_high"]) == pytest.approx(
                (rate.value, rate.low, rate.high), abs=1e-15
            )
        else:
            assert all(value is None for name, value in found.items() if "_share" in name)

    said, size = asdict(headline(places(rows))), sum(row["population"] for row in people)
    between = sum(min(Fraction(row["distance_upper"], row["population"]), 1) * row["population"] for row in people)
    assert said["most_between_any_two"] == float(between / size)
    assert said["solvar_mean"] == float(sum(solvar(row) * row["population"] for row in people) / size)
    tracts = {row["area"] for row in people}
    assert said["tracts"] == len(tracts)
    open_tracts = {row["area"] for row in people if row not in zero}
    assert said["zero_tracts"] == len(tracts - open_tracts)
    assert sum(said["proofs"].values()) == said["blocks"] == len(people)
    assert said["undecided"] == said["proofs"]["undecided"] == table[ALL]["undecided"]


@given(st.integers(1, 10**7), st.floats(0, 1), st.sampled_from([0.5, 0.9, 0.95, 0.999]))
def test_wilson_against_a_second_engine(total: int, part: float, confidence: float) -> None:
    hits = round(part * total)
    expected = binomtest(hits, total).proportion_ci(confidence, method="wilson")
    low, high = wilson(hits, total, confidence)
    assert (float(low), float(high)) == pytest.approx((expected.low, expected.high), rel=1e-9, abs=1e-12)


# Laws


@given(some_places())
def test_totals_add_up_and_shares_are_shares(rows: list[Row]) -> None:
    frame = places(rows)
    said, table, bands = asdict(headline(frame)), quantiles(frame), by_size(frame)
    last = table.row(-1, named=True)
    assert last["cumulative_population"] == said["population"] == frame["population"].sum()
    assert last["distance"] == frame.filter(pl.col("population") > 0)["distance"].sum()
    assert last["cumulative_solvar"] == said["solvar_mean"]
    assert table["population"].sum() == pytest.approx(said["population"])
    for column in ("quantile", "cumulative_population", "distance", "cumulative_solvar"):
        assert all(a <= b * (1 + 1e-12) for a, b in pairwise(table[column].to_list()))
    for name in ("blocks", "population", "zero_blocks", "zero_population", "undecided"):
        assert bands[name][:-1].sum() == bands[name][-1]
    shares = bands.select(pl.col("^.*_share.*$")).to_numpy()
    assert np.all(np.isnan(shares) | ((shares >= 0) & (shares <= 1)))
    assert bands.filter(~pl.col("zero_share").is_between("zero_share_low", "zero_share_high")).is_empty()
    assert 0 <= said["solvar_mean"] <= said["solvar_mean_upper"] <= said["most_between_any_two"] + 1e-15
    assert said["most_between_any_two"] <= min(2 * said["solvar_mean_upper"], 1) + 1e-15
    assert said["zero_solvar_share_low"] <= said["zero_solvar_share"] <= said["zero_solvar_share_high"]
    assert said["zero_solvar_population_share"] <= said["share_certain"] <= said["share_certain_upper"] <= 1


@settings(max_examples=often(50))
@given(some_places(), st.randoms(use_true_random=False))
def test_the_order_of_rows_and_empty_blocks_make_no_difference(rows: list[Row], random: Any) -> None:
    other = [row for row in rows if row["population"]] + [block(-1, 0, 0), block(-2, 0, 0, proof="undecided")]
    random.shuffle(other)
    one, two = places(rows), places(other)
    assert_frame_equal(quantiles(one), quantiles(two), check_exact=True)
    assert_frame_equal(by_size(one), by_size(two), check_exact=True)
    assert headline(one) == headline(two)
    assert picture(one) == picture(two)


@given(some_places())
def test_the_bounds_are_never_below_what_was_found(rows: list[Row]) -> None:
    found, bound = quantiles(places(rows)), quantiles(places(rows), of="distance_upper")
    assert (found["quantile"] <= bound["quantile"]).all()
    assert bound["cumulative_solvar"][-1] == headline(places(rows)).solvar_mean_upper


@given(st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)), min_size=1))
def test_an_interval_holds_its_rate_and_is_right_at_the_ends(pairs: list[tuple[int, int]]) -> None:
    """House rule 2."""
    hits, total = np.array([min(pair) for pair in pairs]), np.array([max(pair) for pair in pairs])
    low, high = wilson(hits, total)
    assert np.all((low >= 0) & (high <= 1) & (low * total <= hits) & (hits <= high * total))
    assert np.all((low == 0) == (hits == 0)) and np.all((high == 1) == (hits == total))
    if (total == 0).any():
        assert set(zip(low[total == 0], high[total == 0], strict=True)) == {(0.0, 1.0)}


# Golden: Tables S4 and S5 of the supplement of Abowd et al. (2010 Census; 6,207,027 blocks, 308,745,538 persons)

S4, S5 = published("S4"), published("S5")


def test_the_last_column_of_s4_is_distance_over_twice_the_people() -> None:
    """FINDINGS A: its "Solution Variability" is cumulative L1; 61,987 / (2 x 308,746) prints as 10.0."""
    ours = S4["distance"] / (2 * S4["cumulative_population"])
    assert ours.round(3).to_list() == S4["cumulative_solvar"].to_list()


def test_the_populations_of_s4_add_up() -> None:
    """Each is rounded to thousands on its own, so sums may be one thousand off."""
    assert (S4["population"].cum_sum() - S4["cumulative_population"]).abs().max() <= 20 * 500
    assert (S4["cumulative_population"].diff() - S4["population"]).abs().max() <= 1000
    assert round(308_745_538, -3) == S4["cumulative_population"][-1]


def test_s4_prints_the_quantile_where_an_interval_begins() -> None:
    """Its row of 100 percent says 21.1, yet the mean in that interval is 28.7: 21.1 is the quantile of 95 percent.

    In every row that has distance at all, the mean solvar of the interval lies between the printed quantile and the
    next one; were it the quantile where the interval ends, it would lie below the printed one.
    """
    mean = S4["distance"].diff() / (2 * S4["population"])
    rows = zip(mean[14:], S4["quantile"][14:], [*S4["quantile"][15:], 1.0], strict=True)
    assert all(begin < inside < end for inside, begin, end in rows)
    assert mean[-1] == pytest.approx(0.287, abs=5e-4)


def test_s5_agrees_with_itself() -> None:
    assert S5["band"].to_list() == list(BANDS)
    assert S5["blocks"].sum() == 6_207_027
    assert abs(S5["population"].sum() - 308_745_538) <= 7 * 500
    assert (S5["zero_blocks"] / S5["blocks"]).round(3).to_list() == S5["zero_share"].to_list()
    assert (S5["zero_population"] / S5["population"]).round(3).to_list() == S5["zero_population_share"].to_list()
    assert S5["zero_share"].to_list() == [0.995, 0.785, 0.326, 0.126, 0.029, 0.008, 0.011]
    begin, end = list(BANDS.values()), [9, 49, 99, 249, 499, 999, 10**6]
    assert (S5["population"] / S5["blocks"]).is_between(pl.Series(begin), pl.Series(end)).all()


def test_s4_and_s5_tell_one_story() -> None:
    """69.4 percent of blocks are zero in S5; at the pace of S4's zero rows they hold the 88.6 million people of S5."""
    zero = S5["zero_blocks"].sum() / S5["blocks"].sum()
    assert zero == pytest.approx(0.694, abs=5e-4)
    pace = S4.filter(pl.col("percent") == 65)["cumulative_population"].item() / 65
    assert 100 * zero * pace == pytest.approx(S5["zero_population"].sum(), rel=2e-4)


def test_our_tables_have_the_printed_columns() -> None:
    frame = places([block(1, 5, 0), block(2, 30, 4)])
    assert quantiles(frame).columns == S4.columns
    assert set(S5.columns) <= set(by_size(frame).columns)
    assert quantiles(frame)["percent"].to_list() == S4["percent"].to_list()


@pytest.mark.parametrize(("table", "rows"), [("S4", range(3, 23)), ("S5", range(4, 11))])
def test_the_published_numbers_are_those_of_the_workbook(table: str, rows: range, data: Path) -> None:
    (workbook,) = (data / "published").glob("*.xlsx")
    sheet, columns = cells(workbook, f"Table {table}"), published(table).columns
    for line, ours in zip(rows, published(table).iter_rows(), strict=True):
        assert str(ours[0]) == sheet[f"A{line}"]
        for letter, name, value in zip("BCDEFGH", columns[1:], ours[1:], strict=False):
            thousands = name in ("population", "cumulative_population", "distance", "zero_population")
            scale = 1000 if thousands else 1 if name.endswith("blocks") else 0.01
            assert float(sheet[f"{letter}{line}"]) * scale == pytest.approx(value), (table, line, name)


def cells(workbook: Path, name: str) -> dict[str, str]:
    """The values of a sheet by address; a sheet is XML in an archive, and no more is needed here."""
    main = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
    with zipfile.ZipFile(workbook) as archive:
        read = {part: ElementTree.fromstring(archive.read(part)) for part in archive.namelist() if part.endswith("xml")}
        links = ElementTree.fromstring(archive.read("xl/_rels/workbook.xml.rels"))
    words = ["".join(text.text or "" for text in item.iter(f"{main}t")) for item in read["xl/sharedStrings.xml"]]
    (sheet,) = (item for item in read["xl/workbook.xml"].iter(f"{main}sheet") if item.get("name") == name)
    (link,) = (value for key, value in sheet.items() if key.endswith("}id"))
    (target,) = (item.get("Target") for item in links if item.get("Id") == link)
    found = {}
    for cell in read[f"xl/{target}"].iter(f"{main}c"):
        value = cell.findtext(f"{main}v")
        if value is not None:
            found[cell.get("r", "")] = words[int(value)] if cell.get("t") == "s" else value
    return found


# Edges


def test_one_block() -> None:
    frame = places([block(1, 8, 4, unique=3)])
    table = quantiles(frame, 50)
    assert table["quantile"].to_list() == [0.25, 0.25]
    assert table["population"].to_list() == [4.0, 4.0]
    assert table["cumulative_solvar"].to_list() == [0.25, 0.25]
    assert by_size(frame).row(-1, named=True)["unique_share"] == 3 / 8
    assert headline(frame).most_between_any_two == 0.5


def test_all_zero_is_certain_and_has_an_interval_all_the_same() -> None:
    frame = places([block(number, number + 1, 0, tract=number % 3) for number in range(20)])
    said = asdict(headline(frame))
    assert (said["zero_solvar_share"], said["zero_solvar_share_high"]) == (1.0, 1.0)
    assert 0.8 < said["zero_solvar_share_low"] < 0.9
    assert said["solvar_mean"] == said["most_between_any_two"] == 0
    assert said["zero_tracts"] == said["tracts"] == 3
    assert set(quantiles(frame)["quantile"]) == {0.0}


def test_one_solution_is_one_rule_for_frames_and_arrays() -> None:
    """Convention 15: a bound of 0 that is undecided is no proof, and a proof of another bound is none of 0."""
    upper, proof = [0, 0, 0, 2], ["exact", "two-engines", "undecided", "exact"]
    frame = pl.DataFrame({"solvar_upper": [bound / 8 for bound in upper], "distance_upper": upper, "proof": proof})
    expected = [True, True, False, False]
    assert frame.select(one_solution()).to_series().to_list() == expected
    assert frame.select(one_solution("solvar_upper")).to_series().to_list() == expected
    assert have_one_solution(np.array(upper), proof).tolist() == expected


def test_a_zero_that_is_not_proved_is_not_counted() -> None:
    """Convention 15."""
    rows = [block(1, 8, 0, more=4, proof="undecided"), block(2, 8, 0, proof="undecided", tract=2)]
    frame = places([*rows, block(3, 8, 0, proof="two-engines", tract=3), block(4, 8, 0, proof="exact", tract=3)])
    said = asdict(headline(frame))
    assert (said["zero_solvar_share"], said["zero_tracts"], said["undecided"]) == (0.5, 1, 2)
    assert quantiles(frame)["quantile"].to_list() == [0.0] * 20
    assert quantiles(frame, of="distance_upper")["quantile"][-1] == 0.25


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (places([]), "none of the places has any people"),
        (places([block(1, 0, 0)]), "none of the places has any people"),
        (places([block(1, 3, 0)]).drop("certain"), "no column 'certain'"),
        (places([block(1, 3, 0), block(1, 3, 0)]), "a place is in two rows"),
        (places([block(1, 3, 0) | {"distance": 2}]), "distance <= distance_upper"),
        (places([block(1, 3, 0) | {"unique": 4}]), "unique <= population"),
        (places([block(1, 3, 0) | {"unique": -1}]), "0 <= every number"),
        (places([block(1, 3, 0) | {"area": None}]), "the column 'area' of the places has a blank"),
        (places([block(1, 3, 0, proof="likely")]), "unknown proof 'likely'; known: exact, two-engines, undecided"),
    ],
)
def test_places_that_make_no_sense_are_refused(frame: pl.DataFrame, words: str) -> None:
    for summary in (quantiles, by_size, headline, picture):
        with pytest.raises(InputError, match=re.escape(words)):
            summary(frame)  # type: ignore[operator]  # they differ in what else they take


def test_what_is_not_known_is_refused() -> None:
    frame = places([block(1, 3, 0)])
    for step in (0, 3, 200):
        with pytest.raises(InputError, match="divides 100"):
            quantiles(frame, step)
    with pytest.raises(InputError, match="known: distance, distance_upper"):
        quantiles(frame, of="certain")
    with pytest.raises(InputError, match="known: S4, S5"):
        published("S6")
    with pytest.raises(InputError, match="0 in 0"):
        Rate.of(0, 0)
    with pytest.raises(InputError, match="hits <= total"):
        wilson([3, 4], [3, 3])
    with pytest.raises(InputError, match="confidence"):
        wilson(1, 2, 95)


# The picture


def test_every_size_has_a_bin() -> None:
    for largest in (*range(1, 2000), 10**4 - 1, 10**4, 10**6):
        edges = _edges(largest)
        assert edges[0] == 1 and edges[-1] > largest and np.all(np.diff(edges) > 0)


@given(some_places())
def test_the_picture_holds_every_block_and_tells_of_none(rows: list[Row]) -> None:
    frame = places(rows)
    over, below = picture(frame, S5).pictures
    assert isinstance(over, Curves) and isinstance(below, Curves) and isinstance(over.field, Field)
    names = ("left", "right", "bottom", "top")
    corners = [dict(zip(names, map(value_of, row), strict=False)) for row in over.field.table.rows]
    tiles = pl.DataFrame(corners, schema=dict.fromkeys(names, pl.Float64))
    people = frame.filter(pl.col("population") > 0)
    for row in people.iter_rows(named=True):
        value = row["distance"] / (2 * row["population"])
        known = row["distance_upper"] == 0 and row["proof"] != "undecided"
        inside = tiles.filter(
            pl.lit(row["population"]).is_between("left", "right"),
            pl.col("top") < 0 if known else pl.lit(value).is_between(pl.col("bottom") - 1e-12, "top"),
        )
        assert not inside.is_empty()
    assert tiles.is_unique().all()
    assert len(over.table.rows) <= max(1, people.height // 10)  # ten blocks or more behind each point
    assert {row[4] for row in over.field.table.rows} <= set(over.field.steps)
    for curve in (over, below):
        cells = [row[2] for row in curve.table.rows if isinstance(row[2], Measure)]
        assert cells and all(one.low is not None and one.high is not None for one in cells)
        assert all(one.low <= one.value <= one.high for one in cells)  # type: ignore[operator]  # they are there


@pytest.mark.parametrize(
    "rows", [[block(1, 6, 0)], [block(n, n + 1, 2 * (n % 2), 2, "undecided") for n in range(300)]], ids=["one", "many"]
)
def test_the_picture_is_drawn(rows: list[Row], tmp_path: Path) -> None:
    for name, marks in (("alone", None), ("beside", S5)):
        picture(places(rows), marks).save(tmp_path / f"{name}.svg")
        text = (tmp_path / f"{name}.svg").read_text(encoding="utf-8")
        assert "records of the place" in text
        assert "solvar: share of records that could differ" in text
        assert (">published<" in text) == (marks is not None)
        width = re.search(r'<svg[^>]* width="(\d+)', text)
        assert width is not None and int(width[1]) <= 700
