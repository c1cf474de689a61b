"""Are the paper's tables the paper's? Every printed figure, where ours go, what the public may see, how it looks."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import count, pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from glasshouse.assess.paper_tables import (
    ATTACKERS,
    PLAYS,
    PaperTable,
    behind,
    paper_tables,
    printed,
)
from glasshouse.assess.variability import by_size, quantiles
from glasshouse.assess.variability import published as published_variability
from glasshouse.errors import InputError
from glasshouse.model.bands import ALL, BANDS
from glasshouse.report.beside import described, report_of, unpublished, write_tables
from glasshouse.report.description import HIDDEN, Count, Measure, Share
from glasshouse.report.publish import THRESHOLD, Rule, public_cell, publish
from glasshouse.report.render.heads import headings
from tests.often import often
from tests.test_variability import block, cells, places

Row = dict[str, Any]

OURS = ("CEF", "HDF", "rHDF_bt", "rHDF_b", "MDG", "PRG")
GROUPS = ("all", "matching", "modal", "nonmodal", "nonmodal-unique", "nonmodal-unique-exact")
EVERY_GROUP = (*GROUPS, *(f"zero-solvar-{group}" for group in GROUPS))
NAMES = ["3", "4", "5", "6", "S1", *(f"S{number}" for number in range(4, 14))]
BANDED = {"5": "nonmodal", "S6": "all", "S9": "modal", "S11": "nonmodal", "S12": "all", "S13": "modal"}
TWO = [f"{attacker}_{number}" for attacker in ATTACKERS for number in ("putative", "confirmed", "precision")]
SIX = ["population", "putative", "putative_share", "confirmed", "confirmed_share", "precision"]
AGREE = ["population", "exact", "binned", "exact_share", "binned_share"]


def rates(data: tuple[str, ...] = OURS, attackers: tuple[str, ...] = tuple(PLAYS)) -> pl.DataFrame:
    """Rates in which every count is another one, so that none can stand in another's place."""
    number = count(1)
    rows = []
    for name in data:
        for attacker in attackers:
            for group in EVERY_GROUP:
                for band in (ALL, *BANDS):
                    confirmed = 100_003 * next(number)
                    putative, population = confirmed + 50_001, confirmed + 90_007
                    precision = confirmed / putative
                    rows.append(
                        {"data": name, "attacker": attacker, "group": group, "band": band, "population": population}
                        | {"putative": putative, "confirmed": confirmed, "precision": precision}
                        | {"low": precision - 0.0101, "high": precision + 1e-5, "baseline": 0.33333, "guesser": "MDG"}
                        | {"putative_exact": 0, "confirmed_exact": 0}
                    )
    return pl.DataFrame(rows)


def agreement(data: tuple[str, ...] = ("HDF", "rHDF_bt", "rHDF_b", "MDG")) -> pl.DataFrame:
    number = count(1)
    rows = []
    for name in data:
        for other in ("CEF", "HDF"):
            for group in ("all", "zero-solvar-all"):
                for band in (ALL, *BANDS):
                    exact = 10_007 * next(number)
                    binned, population = 2 * exact, 2 * exact + 77
                    rows.append(
                        {"data": name, "with": other, "group": group, "band": band, "population": population}
                        | {"exact": exact, "binned": binned, "baseline": 0.25}
                        | {"exact_share": exact / population, "exact_low": 0.1, "exact_high": 0.9}
                        | {"binned_share": binned / population, "binned_low": 0.2, "binned_high": 1.0}
                    )
    return pl.DataFrame(rows)


OVERLAP = {
    "commercial": {"matching": 34_567, "not_matching": 58_433, "list": 93_000, "data_defined": 89_012},
    "another": {"matching": 12_345, "not_matching": 1, "list": 12_346, "data_defined": 89_012},
}


def some_places() -> pl.DataFrame:
    return places([block(n, 1 + 7 * n, 2 * (n % 5), tract=n // 10, unique=n) for n in range(200)])


def full(data: tuple[str, ...] = OURS) -> dict[str, PaperTable]:
    made = paper_tables(rates(data), agreement(), OVERLAP, some_places())
    return {table.name: table for table in made}


FULL = full()
BARE = {table.name: table for table in paper_tables(rates().clear(), agreement().clear(), {}, None)}


# Golden: the figures as printed


LABELS = {"rHDFb,t": "rHDF_bt", "rHDFb": "rHDF_b", "rMDFb,t": "rMDF_bt"}
SHEETS: dict[str, tuple[str, list[range], str]] = {  # the sheet, the lines of each panel, the letters of its numbers
    "3": ("Table 3", [range(4, 44)], "CDEFG"),
    "4": ("Table 4", [range(4, 10), range(11, 17)], "BCDEFG"),
    "5": ("Table 5", [range(4, 52)], "CDEFGH"),
    "S6": ("Table S6", [range(4, 52)], "CDEFGH"),
    "S7": ("Table S7", [range(4, 12), range(13, 21)], "BCDEFG"),
    "S8": ("Table 6 & Table S8", [range(5, 13), range(14, 22)], "BCDEFGH"),
    "S9": ("Table S9", [range(4, 52)], "CDEFGH"),
    "S10": ("Table S10", [range(4, 44)], "CDEFG"),
    "S11": ("Table S11", [range(4, 44)], "CDEFGH"),
    "S12": ("Table S12", [range(4, 44)], "CDEFGH"),
    "S13": ("Table S13", [range(4, 44)], "CDEFGH"),
}
MISPRINTED = ("1-9", "50-99", "500-999")  # where S10 swaps its rows of rHDF_b,t and rHDF_b (FINDINGS A)


def is_share(column: str) -> bool:
    return column.endswith(("share", "precision"))


def test_table_6_is_that_of_the_workbook_and_its_repetitions_are_said(data: Path) -> None:
    """Printed beside each other there, below each other here; where S8 has another figure, the note says so."""
    (workbook,) = (data / "published").glob("*.xlsx")
    sheet, ours = cells(workbook, "Table 6 & Table S8"), printed("6")
    assert ours.height == 16
    own = {(row["panel"][:7], row["data"]): row for row in printed("S8").iter_rows(named=True)}
    other = []
    for at, row in enumerate(ours.iter_rows(named=True)):
        line, letters = 29 + at % 8, "BC" if at < 8 else "DE"
        name = str(sheet[f"A{line}"])
        assert row["data"] == LABELS.get(name, name)
        for letter, attacker in zip(letters, ATTACKERS, strict=True):
            assert row[f"{attacker}_precision"] == pytest.approx(float(sheet[f"{letter}{line}"]) / 100, abs=1e-9)
            if row[f"{attacker}_precision"] != own[row["panel"][:7], row["data"]][f"{attacker}_precision"]:
                other.append((row["panel"][:7], row["data"], attacker))
    assert other == [("Panel B", name, "COMRCL") for name in ("rMDF_bt", "MDF", "MDG", "PRG")]
    assert any("repeats panel A's COMRCL precision" in note for note in FULL["6"].notes)


def test_table_6_has_the_precisions_of_s8_and_knows_whom_they_are_about() -> None:
    ours, whole = FULL["6"].frame, behind(list(FULL.values()))["6"]
    told = {(row["panel"][:7], row["data"]): row for row in FULL["S8"].frame.iter_rows(named=True)}
    for row, least in zip(ours.iter_rows(named=True), whole, strict=True):
        same = told[row["panel"][:7], row["data"]]
        for attacker in ATTACKERS:
            for column in ("precision", "precision_low", "baseline", "guesser"):
                assert row[f"{attacker}_{column}"] == same[f"{attacker}_{column}"]
        known = [same[f"{attacker}_putative"] for attacker in ATTACKERS if same[f"{attacker}_putative"] is not None]
        assert least == min(known, default=0)


@pytest.mark.parametrize("table", SHEETS)
def test_the_published_figures_are_those_of_the_workbook(table: str, data: Path) -> None:
    (workbook,) = (data / "published").glob("*.xlsx")
    name, panels, letters = SHEETS[table]
    sheet, ours = cells(workbook, name), printed(table)
    keys = [key for key in ("panel", "data", "with", "band") if key in ours.columns]
    numbers = [column for column in ours.columns if column not in keys]
    assert numbers == (AGREE if "with" in keys else SIX if len(letters) == 6 and "panel" in keys else
                       (["population"] if table == "S8" else []) + TWO)  # fmt: skip
    assert ours.height == sum(len(lines) for lines in panels)
    found = {row[: len(keys)]: row[len(keys) :] for row in ours.iter_rows()}
    assert len(found) == ours.height
    order = []
    for panel, lines in enumerate(panels):
        for line in lines:
            label, _, other = sheet[f"A{line}"].partition("-")
            told = {"data": LABELS.get(label.strip(), label.strip()), "with": other, "band": ALL}
            if "panel" in keys:
                told["panel"] = ours["panel"].unique(maintain_order=True)[panel]
            if "band" in keys:
                told["band"] = sheet[f"B{line}"].replace("All", ALL)
            order.append(tuple(told[key] for key in keys))
            if table == "S10" and told["band"] in MISPRINTED:
                told["data"] = {"rHDF_bt": "rHDF_b", "rHDF_b": "rHDF_bt"}.get(told["data"], told["data"])
            for letter, column, value in zip(letters, numbers, found[tuple(told[key] for key in keys)], strict=True):
                scale = 0.01 if is_share(column) else 1000
                assert float(sheet[f"{letter}{line}"]) * scale == pytest.approx(value), (table, line, column)
    assert order == ours.select(keys).rows()


def test_the_overlap_is_that_of_the_workbook(data: Path) -> None:
    (workbook,) = (data / "published").glob("*.xlsx")
    sheet = cells(workbook, "Table S1")
    for line, row in zip((3, 4, 5), printed("S1").iter_rows(named=True), strict=True):
        for letter, column in zip("BCD", ("in_cef", "not_in_cef", "total"), strict=True):
            told = sheet.get(f"{letter}{line}")
            assert row[column] == (None if told is None else 1000 * int(told))


def test_the_workbooks_own_output_names_mdf_as_s7_does(data: Path) -> None:
    """What the notes of S11 to S13 say: the block copied from the program's output has the two names swapped."""
    (workbook,) = (data / "published").glob("*.xlsx")
    for table in ("S11", "S12", "S13"):
        sheet = cells(workbook, f"Table {table}")
        for line in range(4, 44):
            left, right = sheet[f"A{line}"], sheet[f"J{line}"]
            assert {"rMDFb,t": "MDF", "MDF": "$rMDF_{b,t}$"}.get(left, right) == right
    one, other = printed("S7").head(8), printed("S12").filter(pl.col("band") == ALL)
    for name, swapped in (("MDF", "rMDF_bt"), ("rMDF_bt", "MDF")):
        confirmed = other.filter(pl.col("data") == swapped)["COMRCL_confirmed"].item()
        assert one.filter(pl.col("data") == name)["confirmed"].item() == confirmed


def unit(thousands: int, *, exact: bool = False) -> int:
    """What a printed count is rounded to, in thousands."""
    return 1 if exact else 10 ** max(len(str(thousands)) - 4, 0)


RATIOS = {
    "putative_share": ("putative", "population"),
    "confirmed_share": ("confirmed", "population"),
    "precision": ("confirmed", "putative"),
    "exact_share": ("exact", "population"),
    "binned_share": ("binned", "population"),
}
# three of 804 printed percentages do not follow from the counts beside them; each looks rounded twice (24.849 as 24.85)
ROUNDED_TWICE = {
    ("S6", "PRG", "500-999", "COMRCL_precision", 0.249),
    ("S7", "MDG", None, "precision", 0.838),
    ("S10", "rMDF_bt", ALL, "exact_share", 0.189),
}


def test_printed_percentages_follow_from_printed_counts() -> None:
    seen, odd = 0, set()
    for table in SHEETS:
        for row in printed(table).iter_rows(named=True):
            for column in filter(is_share, row):
                prefix, _, number = column.rpartition("_") if column.endswith("_precision") else ("", "", column)
                part, whole = (f"{prefix}_{name}" if prefix else name for name in RATIOS[number])
                a, b = row[part] // 1000, row[whole] // 1000
                half_a, half_b = unit(a) / 2, unit(b, exact=table in ("3", "S10")) / 2
                low, high = (a - half_a) / (b + half_b), (a + half_a) / (b - half_b)
                seen += 1
                if not (low - 0.0005 <= row[column] + 1e-9 and row[column] - 1e-9 <= high + 0.0005):
                    odd.add((table, row["data"], row.get("band"), column, row[column]))
    assert (seen, odd) == (804, ROUNDED_TWICE)


def test_printed_bands_add_up() -> None:
    for table in ("3", "S10", *BANDED):
        frame = printed(table)
        keys = [key for key in ("data", "with") if key in frame.columns]
        for column in frame.columns:
            if column in (*keys, "band") or is_share(column):
                continue
            for group in frame.partition_by(keys):
                thousands = [value // 1000 for value in group[column]]
                assert group["band"].to_list() == [ALL, *BANDS]
                assert abs(sum(thousands[1:]) - thousands[0]) <= sum(unit(value) for value in thousands) / 2


def test_modal_and_nonmodal_are_all() -> None:
    """Confirmed persons are one or the other."""
    for parts, whole in ((("S9", "5"), "S6"), (("S13", "S11"), "S12")):
        columns = [f"{attacker}_confirmed" for attacker in ATTACKERS]
        one, two, both = (printed(table).select("data", "band", *columns) for table in (*parts, whole))
        joined = both.join(one, on=["data", "band"], suffix="_1").join(two, on=["data", "band"], suffix="_2")
        assert joined.height == both.height
        for row in joined.iter_rows(named=True):
            for column in columns:
                told = [row[name] // 1000 for name in (column, f"{column}_1", f"{column}_2")]
                assert abs(told[0] - told[1] - told[2]) <= sum(map(unit, told)) / 2


@pytest.mark.parametrize(("one", "other"), [("S10", "3"), ("S11", "5"), ("S12", "S6"), ("S13", "S9")])
def test_tables_that_repeat_another_agree_with_it(one: str, other: str) -> None:
    """S10 does so only as corrected."""
    keys = [key for key in ("data", "with", "band") if key in printed(one).columns]
    both = printed(one).join(printed(other), on=keys, suffix="_other")
    assert both.height == 24
    for column in printed(one).columns:
        if column not in keys:
            assert both[column].to_list() == both[f"{column}_other"].to_list()


def test_an_unknown_table_is_refused() -> None:
    with pytest.raises(InputError, match="known: 3, 4, 5, 6, S1, S10"):
        printed("S2")


# Where ours go


def test_every_table_is_there_with_every_published_figure() -> None:
    for tables in (FULL, BARE):
        assert list(tables) == NAMES
        for name, table in tables.items():
            assert [column.name for column in table.columns] == table.frame.columns
            paper = published_variability(name) if name in ("S4", "S5") else printed(name)
            paper = paper.rename({"quantile": "quantile_at_begin"} if name == "S4" else {})
            theirs = table.frame.select(pl.col("^.*_published$").name.map(lambda text: text.removesuffix("_published")))
            numbers = [column for column in paper.columns if column in theirs.columns]
            assert theirs.columns == numbers
            shown = theirs.filter(~pl.all_horizontal(pl.all().is_null()))
            assert_frame_equal(shown, paper.select(numbers))
            assert any("worse for the people" in note for note in table.notes)  # house rule 2


def test_what_a_run_lacks_is_null_and_what_was_published_stands() -> None:
    for table in BARE.values():
        for column in table.columns:
            nulls = table.frame[column.name].null_count()
            if column.kind == "key":
                assert nulls == 0
            elif not column.published:
                assert nulls == table.frame.height, (table.name, column.name)


def value(frame: pl.DataFrame, column: str, **where: str) -> Any:
    found = frame.filter(pl.col(key) == told for key, told in where.items())
    return found[column].item() if found.height else None


def compared(row: Row, rows: pl.DataFrame, prefix: str = "", **where: str) -> None:
    names = {"putative": "putative", "confirmed": "confirmed", "precision": "precision", "precision_low": "low"}
    for ours, theirs in (names | {"precision_high": "high", "baseline": "baseline", "guesser": "guesser"}).items():
        assert row[prefix + ours] == value(rows, theirs, data=row["data"], **where), (where, ours)


def test_ours_are_those_of_the_group_the_attacker_and_the_band() -> None:
    every = rates().with_columns(pl.col("attacker").replace(PLAYS))
    for name, group in BANDED.items():
        for row in FULL[name].frame.iter_rows(named=True):
            for attacker in ATTACKERS:
                compared(row, every, f"{attacker}_", attacker=attacker, group=group, band=row["band"])
    for row in FULL["4"].frame.iter_rows(named=True):
        compared(row, every, attacker=row["panel"], group="all", band=ALL)
    for row in FULL["S7"].frame.iter_rows(named=True):
        group = {"Panel A": "all", "Panel B": "matching"}[row["panel"][:7]]
        compared(row, every, attacker="COMRCL", group=group, band=ALL)
        if row["population"] is not None:
            assert row["putative_share"] == row["putative"] / row["population"]
            assert row["confirmed_share"] == row["confirmed"] / row["population"]
    for row in FULL["S8"].frame.iter_rows(named=True):
        group = {"Panel A": "zero-solvar-nonmodal", "Panel B": "zero-solvar-nonmodal-unique"}[row["panel"][:7]]
        for attacker in ATTACKERS:
            compared(row, every, f"{attacker}_", attacker=attacker, group=group, band=ALL)
        where = {"data": row["data"], "attacker": "CEFatkr", "group": group, "band": ALL}
        assert row["population"] == value(every, "population", **where)
    for name in ("3", "S10"):
        for row in FULL[name].frame.iter_rows(named=True):
            where = {"data": row["data"], "with": row["with"], "group": "all", "band": row["band"]}
            for column in (*AGREE, "baseline"):
                assert row[column] == value(agreement(), column, **where)
            assert row["exact_share_low"] == value(agreement(), "exact_low", **where)
            assert row["binned_share_high"] == value(agreement(), "binned_high", **where)


def test_the_columns_are_the_papers_then_the_intervals() -> None:
    paper = [name for number in TWO for name in (number, f"{number}_published")]
    after = [f"{a}_{name}" for a in ATTACKERS for name in ("precision_low", "precision_high", "baseline", "guesser")]
    assert FULL["S6"].frame.columns == ["data", "band", *paper, *after]
    assert FULL["S8"].frame.columns == ["panel", "data", "population", "population_published", *paper, *after]
    assert FULL["4"].frame.columns[:4] == ["panel", "data", "population", "population_published"]
    assert FULL["3"].frame.columns[:3] == ["data", "with", "band"]


def test_the_overlap_is_laid_out_as_in_the_paper() -> None:
    frame = FULL["S1"].frame
    assert frame.select("panel", "records", "in_cef", "not_in_cef", "total").rows() == [
        ("COMRCL", "in the list", 34_567, 58_433, 93_000),
        ("COMRCL", "not in the list", 89_012 - 34_567, None, None),
        ("COMRCL", "total", 89_012, None, None),
        ("another", "in the list", 12_345, 1, 12_346),
        ("another", "not in the list", 89_012 - 12_345, None, None),
        ("another", "total", 89_012, None, None),
    ]
    assert frame["in_cef_published"].to_list() == [106_300_000, 169_700_000, 276_000_000, None, None, None]


def test_solvar_stands_where_the_paper_has_it() -> None:
    """Its quantile is where an interval begins: ours of 95 percent stands in the row of 100."""
    ours, table = quantiles(some_places()), FULL["S4"].frame
    assert table["quantile_at_begin"].to_list() == [0.0, *ours["quantile"][:-1]]
    assert table["cumulative_solvar"].to_list() == ours["cumulative_solvar"].to_list()
    assert table["cumulative_population"].to_list() == ours["cumulative_population"].round().to_list()
    sizes, table = by_size(some_places()), FULL["S5"].frame
    assert table["band"].to_list() == [*BANDS, ALL]
    for column in (
        "blocks",
        "unique_share",
        "zero_blocks",
        "zero_share",
        "zero_share_low",
        "certain_share",
        "undecided",
    ):
        assert table[column].to_list() == sizes[column].to_list()


def test_data_unknown_to_the_paper_come_after_its_own() -> None:
    made = paper_tables(rates((*OURS, "topdown", "MDF", "a")), agreement(("HDF", "topdown")), {}, None)
    tables = {table.name: table.frame for table in made}
    for name, group in (*((name, "band") for name in BANDED), ("4", "panel"), ("S7", "panel"), ("S8", "panel")):
        paper = printed(name)
        for part in tables[name].partition_by(group):
            theirs = paper.filter(pl.col(group) == part[group][0])
            assert part["data"].to_list() == [*theirs["data"], "a", "topdown"]
            assert part.tail(2).select(pl.col("^.*_published$")).null_count().sum_horizontal().item() > 0
    assert value(tables["S12"], "COMRCL_confirmed", data="MDF", band="1-9") is not None
    last = tables["3"].filter(pl.col("band") == "1000+").select("data", "with").rows()
    assert last[-2:] == [("topdown", "CEF"), ("topdown", "HDF")]
    assert tables["S10"].filter(pl.col("data") == "topdown")["with"].unique().to_list() == ["CEF"]


def test_the_order_of_rows_makes_no_difference() -> None:
    turned = paper_tables(rates().reverse(), agreement().reverse(), dict(reversed(OVERLAP.items())), some_places())
    for one, two in zip(FULL.values(), turned, strict=True):
        assert_frame_equal(one.frame, two.frame, check_exact=True)


def test_an_attacker_may_be_missing_have_the_papers_name_or_be_unknown_to_it() -> None:
    made = paper_tables(rates(attackers=("CEFatkr", "neighbour")), agreement(), {}, None)
    table = next(table for table in made if table.name == "S6")
    assert table.frame["COMRCL_putative"].null_count() == table.frame.height
    assert table.frame["CEFatkr_putative"].null_count() == 0
    assert any("neighbour; not shown" in note for note in table.notes)
    with pytest.raises(InputError, match=r"two rows of data CEF, attacker COMRCL.*two attackers play one part"):
        paper_tables(rates(attackers=("commercial", "COMRCL")), agreement(), {}, None)
    with pytest.raises(InputError, match="two rows of panel COMRCL"):
        paper_tables(rates(), agreement(), OVERLAP | {"COMRCL": OVERLAP["commercial"]}, None)


def test_frames_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InputError, match="the rates have no column 'putative'"):
        paper_tables(rates().drop("putative"), agreement(), {}, None)
    with pytest.raises(InputError, match="the agreement have no column 'binned_low'"):
        paper_tables(rates(), agreement().drop("binned_low"), {}, None)
    with pytest.raises(InputError, match="unknown band of the rates '1-99'"):
        paper_tables(rates().with_columns(pl.col("band").replace("1-9", "1-99")), agreement(), {}, None)


# What the public may see


@st.composite
def some_rates(draw: st.DrawFn) -> pl.DataFrame:
    rows = []
    for name in draw(st.sets(st.sampled_from(("CEF", "rHDF_bt", "topdown")), min_size=1)):
        for attacker in PLAYS:
            for group, band in (("all", ALL), ("all", "1-9"), ("matching", ALL), ("zero-solvar-nonmodal", ALL)):
                population = draw(st.one_of(st.integers(0, 20_000), st.integers(0, 10**9)))
                putative = draw(st.integers(0, population))
                confirmed = draw(st.one_of(st.just(putative), st.integers(0, putative)))
                rate = confirmed / putative if putative else None
                ends = (None, None) if rate is None else (rate * draw(st.floats(0.9, 1)), min(1.0, rate * 1.0001))
                rows.append((name, attacker, group, band, population, putative, confirmed, rate, *ends, rate, "MDG"))
    columns = [name for name in rates().columns if not name.endswith("_exact")]
    return pl.DataFrame(rows, {name: rates().schema[name] for name in columns}, orient="row")


@settings(max_examples=often(25))
@given(some_rates())
def test_the_public_version_is_that_of_the_one_rule(frame: pl.DataFrame) -> None:
    """Convention 55: what everybody may see of these tables is what `publish` lets them see of any other."""
    tables = paper_tables(frame, agreement(), OVERLAP, some_places())
    inside = report_of(tables, ["Ours."])
    public = publish(inside, THRESHOLD)
    assert publish(public, THRESHOLD) == public
    left = {table.name: table for table in public.tables()}
    for table in inside.tables():
        if table.name not in left:
            continue  # nothing of it may be seen
        kept = [
            at for at, column in enumerate(table.columns)
            if column.published or not any(isinstance(row[at], Count) for row in table.rows)
        ]  # fmt: skip
        assert left[table.name].columns == tuple(table.columns[at] for at in kept)
        for before, after in zip(table.rows, left[table.name].rows, strict=True):
            for one, other in zip((before[at] for at in kept), after, strict=True):
                assert other is HIDDEN or other == public_cell(one, Rule(THRESHOLD))
                if isinstance(other, Measure) and other.low is not None and other.high is not None:
                    assert other.low <= other.value + 1e-9 and other.value <= other.high + 1e-9


@settings(max_examples=often(25))
@given(some_rates())
def test_a_described_table_holds_every_number_of_its_frame(frame: pl.DataFrame) -> None:
    for table in paper_tables(frame, agreement(), OVERLAP, some_places()):
        found = described(table)
        assert len(found.rows) == table.frame.height
        shown = [one for one in table.columns if one.kind not in ("low", "high")]
        assert [(one.title, one.published) for one in found.columns] == [(c.headings[2], c.published) for c in shown]
        for row, cells_ in zip(table.frame.iter_rows(named=True), found.rows, strict=True):
            for column, cell in zip(shown, cells_, strict=True):
                value = row[column.name]
                assert (cell is None or cell == Share(0, 0)) == (value is None)
                if value is None:
                    continue
                if isinstance(cell, (Count, Share, Measure)):
                    assert cell.value == pytest.approx(value)
                if isinstance(cell, (Share, Measure)) and f"{column.name}_low" in row:
                    assert (cell.low, cell.high) == (row[f"{column.name}_low"], row[f"{column.name}_high"])
                if isinstance(cell, Measure):
                    assert (cell.over == 0) == column.published


# How it is shown


class Page(HTMLParser):
    """Reads a page: every element closed in order, its attributes, and the rows of every table."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.tables: list[list[list[tuple[str, dict[str, str], str]]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        told = {name: text or "" for name, text in attrs}
        self.attributes += [(tag, name, text) for name, text in told.items()]
        if tag not in ("meta", "br"):
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append((tag, told, ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)
        if {"td", "th"} & set(self.open):
            tag, told, text = self.tables[-1][-1][-1]
            self.tables[-1][-1][-1] = (tag, told, text + data)


def read(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    page.close()
    assert page.open == []
    return page


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("tables")
    strange = paper_tables(rates((*OURS, "=1+1", "<script>")), agreement(), OVERLAP, some_places())
    about = ["Ours are of a synthetic county & no one's."]
    names = write_tables(strange, where, about)
    assert sorted(path.name for path in where.iterdir()) == sorted(names)
    return where


def test_the_files_and_who_may_read_them(folder: Path) -> None:
    names = {f"table-{name if len(name) != 2 else f'S0{name[1]}'}.parquet" for name in NAMES}
    assert "table-S06.parquet" in names and "table-3.parquet" in names and "table-S10.parquet" in names
    books = {"tables.xlsx", "tables.html", "tables-public.xlsx", "tables-public.html"}
    modes = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
    assert set(modes) == names | books
    assert set(modes.values()) == {0o600}
    assert_frame_equal(pl.read_parquet(folder / "table-S04.parquet"), FULL["S4"].frame)


def test_the_same_tables_give_the_same_bytes(tmp_path: Path) -> None:
    for where in ("one", "two"):
        write_tables(list(full().values()), tmp_path / where, ["Twice."])
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


@pytest.mark.parametrize("name", ["tables.html", "tables-public.html"])
def test_the_page_stands_alone_and_can_be_read_out(name: str, folder: Path) -> None:
    page = read(folder / name)
    tags = {tag for tag, _, _ in page.attributes}
    assert not tags & {"script", "link", "img", "iframe"}
    linked = [text for _, name, text in page.attributes if name in ("href", "src", "action", "style", "onclick")]
    ids = {text for _, name, text in page.attributes if name == "id"}
    assert len(linked) >= len(NAMES) and {text.removeprefix("#") for text in linked} <= ids
    source = (folder / name).read_text(encoding="utf-8")
    assert "http:" not in source and "https:" not in source and "url(" not in source and "@import" not in source
    assert source.count("<caption") == source.count("<thead>") == len(NAMES)
    assert "&lt;script&gt;" in source and "<script" not in source
    assert "county &amp; no one&#39;s." in source
    assert not re.search(r"\b(nan|None|null|NaN|inf)\b", "".join(page.text))
    for table in page.tables:
        width = max(len(row) for row in table)
        for row in table:
            if row[0][1].get("class") == "panel":
                assert row[0][1]["colspan"] == str(width) and row[0][1]["scope"] == "rowgroup"
            assert all("scope" in told for tag, told, _ in row if tag == "th")
            assert all(text for _, _, text in row)
    assert any(text == "\N{EN DASH}" for row in page.tables[-1] for _, _, text in row)


def test_the_page_says_what_the_frame_holds(folder: Path) -> None:
    page = read(folder / "tables.html")
    table = page.tables[NAMES.index("S6")]
    assert [text for _, _, text in table[0]][2:] == [
        "Attacker COMRCL", "Attacker CEFatkr", "Ours, COMRCL", "Ours, CEFatkr",
    ]  # fmt: skip
    assert [told.get("class") for _, told, _ in table[2]][:4] == ["n", "n published"] * 2
    first = next(row for row in table if row[0][0] == "th" and row[0][2] == "HDF")
    row = FULL["S6"].frame.row(1, named=True)
    expected = ["HDF", "All"]
    for attacker in ATTACKERS:
        for number in ("putative", "confirmed"):
            expected += [f"{row[f'{attacker}_{number}{suffix}']:,}" for suffix in ("", "_published")]
        ours, ends = (
            f"{row[f'{attacker}_precision']:.1%}",
            [row[f"{attacker}_precision_{end}"] for end in ("low", "high")],
        )
        expected += ["{}{:.1%} to {:.1%}".format(ours, *ends), f"{row[f'{attacker}_precision_published']:.1%}"]
    expected += ["33.3%", "MDG"] * len(ATTACKERS)
    assert [text for _, _, text in first] == expected


def counts_of(tables: dict[str, PaperTable]) -> Iterator[int]:
    for table in tables.values():
        for column in table.columns:
            if column.kind == "count" and not column.published:
                yield from table.frame[column.name].drop_nulls()


def test_no_exact_count_is_in_a_public_file(folder: Path) -> None:
    """Convention 55: counts of ours are not in it."""
    exact = {number for number in counts_of(FULL) if number > 999}
    published = {
        number
        for table in FULL.values()
        for column in table.columns
        if column.published and column.kind == "count"
        for number in table.frame[column.name].drop_nulls()
    }
    assert len(exact) > 500
    page = "".join(read(folder / "tables-public.html").text)
    shown = {int(text.replace(",", "")) for text in re.findall(r"\d{1,3}(?:,\d{3})+", page)}
    stored = {int(text) for text in re.findall(r"<v>(\d+)</v>", sheets(folder / "tables-public.xlsx"))}
    for numbers in (shown, {number for number in stored if number > 999}):
        assert not numbers & (exact - published)
        assert numbers & published
    internal = "".join(read(folder / "tables.html").text)
    assert all(f"{number:,}" in internal for number in exact)


def test_few_are_hidden_in_public(tmp_path: Path) -> None:
    """What `tables-public` said of counts below 10,000 before: everything. Now the rule of the report holds."""
    few = rates().with_columns(population=25, putative=pl.lit(17), confirmed=pl.lit(4), precision=4 / 17)
    write_tables(paper_tables(few, agreement(), OVERLAP, None), tmp_path, ["Few."])
    inside, public = ("".join(read(tmp_path / f"{name}.html").text) for name in ("tables", "tables-public"))
    assert "23.5%" in inside and "23.5%" not in public
    assert "hidden" in public and "shares of fewer than 200 are hidden" in public
    book = cells(tmp_path / "tables-public.xlsx", "S6")
    assert "hidden" in book.values() and not {"17", "4", "25"} & set(book.values())


def test_a_size_that_no_place_has_is_no_reason_for_want_of_a_public_version(tmp_path: Path) -> None:
    """A share of nobody is in the sums of its column, so that nobody there is not proved by the others alone."""
    small = places([block(n, 1 + n % 90, n % 3, tract=n // 40, unique=n % 5) for n in range(400)])
    made = [one for one in paper_tables(rates().clear(), agreement().clear(), {}, small) if one.name == "S5"]
    empty = made[0].frame.filter(band="1000+")
    assert empty["blocks"].to_list() == [0]
    assert "tables-public.html" in write_tables(made, tmp_path, ["Small places."])


def test_a_public_version_that_gives_somebody_away_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert unpublished(write_tables([FULL["S5"]], tmp_path / "fine", ["Fine."])) == []
    monkeypatch.setattr("glasshouse.report.beside.given_away", lambda *_: ("S5",))
    names = write_tables([FULL["S5"]], tmp_path / "not", ["Not fine."])
    assert {path.name for path in (tmp_path / "not").iterdir()} == {"tables.xlsx", "tables.html", "table-S05.parquet"}
    assert "There is no public version" in "".join(read(tmp_path / "not" / "tables.html").text)
    (said,) = unpublished(names)
    assert said.startswith("tables-public.html was not written: ")


def sheets(path: Path) -> str:
    with zipfile.ZipFile(path) as archive:
        return "".join(archive.read(name).decode() for name in archive.namelist() if "worksheets/" in name)


@pytest.mark.parametrize("name", ["tables.xlsx", "tables-public.xlsx"])
def test_the_workbook_is_read_by_others(name: str, folder: Path) -> None:
    with zipfile.ZipFile(folder / name) as archive:
        assert archive.testzip() is None
        for part in archive.namelist():
            ElementTree.fromstring(archive.read(part))
    source = sheets(folder / name)
    assert source.count("<worksheet") == source.count("<mergeCells") == len(NAMES) + 1  # and what it is, first
    assert source.count('state="frozen"') == len(NAMES)
    assert "<f>" not in source and "<hyperlink" not in source  # text is text, whatever it begins with
    found = cells(folder / name, "S6")
    assert found["A1"].startswith("Table S6. Putative reidentifications")
    assert (found["A3"], found["A6"], found["B6"], found["C3"]) == ("Data", "CEF", "All", "Attacker COMRCL")
    row = FULL["S6"].frame.row(0, named=True)
    assert "=1+1" in found.values() and "<script>" in found.values()
    assert "rHDF b,t" in found.values()
    front = cells(folder / name, "Read me")
    assert any("Ours are of a synthetic county & no one's." in text for text in front.values())
    assert any("without counts of persons" in text for text in front.values()) == ("public" in name)
    if "public" in name:
        assert str(row["COMRCL_putative"]) not in found.values() and "ours" in found.values()
        return
    assert (found["K3"], found["C4"], found["C5"], found["D5"]) == (
        "Attacker CEFatkr", "Putative", "ours", "published",
    )  # fmt: skip
    ours, theirs, ends = found["G6"], found["J6"], (found["H6"], found["I6"])
    assert found["G5"] == "ours" and (found["H5"], found["I5"], found["J5"]) == ("low", "high", "published")
    assert int(found["C6"]) == row["COMRCL_putative"] and float(ours) == pytest.approx(row["COMRCL_precision"])
    assert [float(end) for end in ends] == pytest.approx([row[f"COMRCL_precision_{end}"] for end in ("low", "high")])
    assert float(theirs) == pytest.approx(row["COMRCL_precision_published"])
    assert int(found["D6"]) == row["COMRCL_putative_published"]


@pytest.mark.parametrize("name", NAMES)
def test_the_head_covers_every_column_once(name: str) -> None:
    columns = described(FULL[name]).columns
    head = headings(columns)
    depth = max(cell.row + cell.rows for cell in head)
    covered = [
        (row, column)
        for cell in head
        for row in range(cell.row, cell.row + cell.rows)
        for column in range(cell.column, cell.column + cell.columns)
    ]
    assert sorted(covered) == [(row, column) for row in range(depth) for column in range(len(columns))]
    assert all((one.row, one.column) < (two.row, two.column) for one, two in pairwise(head))
    last = [cell for cell in head if cell.row + cell.rows == depth]
    assert [cell.text for cell in sorted(last, key=lambda cell: cell.column)] == [c.title for c in columns]


def test_bands_of_few_blocks_are_hidden_in_public() -> None:
    """Convention 55: everybody would know which block it is, however many people live there."""
    made = paper_tables(rates(), agreement(), OVERLAP, some_places())
    (sizes,) = (table.frame for table in made if table.name == "S5")
    blocks = dict(sizes.select("band", "blocks").rows())
    few = {band for band, number in blocks.items() if 0 < number < THRESHOLD}
    assert few and few != set(blocks)
    public = publish(report_of(made, []), THRESHOLD)
    (table,) = (one for one in public.tables() if one.name == "S6")
    ours = [at for at, column in enumerate(table.columns) if not column.published and at >= table.keys]
    for row in table.rows:
        numbers = [row[at] for at in ours if not isinstance(row[at], str) and row[at] is not None]
        assert not numbers or all(cell is HIDDEN for cell in numbers) == (str(row[1]).replace("All", "all") in few)
