"""Is the workbook the report? Every number in its cell, as a number; named sheets, same bytes; the CSV of numbers."""

from __future__ import annotations

import csv
import io
import zipfile
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glasshouse.errors import GlasshouseBug
from glasshouse.report.description import (
    HIDDEN,
    Column,
    Count,
    Definition,
    Measure,
    Report,
    Said,
    Section,
    Share,
    Table,
    Verdict,
)
from glasshouse.report.numbering import numbered
from glasshouse.report.publish import publish
from glasshouse.report.render.numbers import HEAD, numbers
from glasshouse.report.render.sheets import sheet_names, sheets

MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"

RISK = Table(
    "risk by size",
    "Risk by size of block",
    (Column("size"), Column("persons"), Column("right", "precision"), Column("printed", "precision", published=True)),
    (
        ("1-9", Count(12), Share(3, 12, 0.1, 0.5), Measure(0.25, 0, "share")),
        ("10-49", Count(12_345), Share(6000, 12_345), Measure(0.3, 0, "share")),
        ("50+", HIDDEN, None, Measure(0.35, 0, "share")),
        ("=1+1", Count(0), HIDDEN, None),
    ),
    "precision.parquet",
    ("Blocks without persons are left out.", Said("{} persons are in small blocks.", (Count(12),))),
)
COST = Table(
    "cost/of: noise?",
    "What noise costs",
    (Column("setting"), Column("change"), Column("error")),
    (
        ("a", Measure(-0.031, 100, "points", -0.04, -0.02), Measure(12.5, 100, "number")),
        ("b", Measure(0.031, 100, "points"), Measure(1234.5, 100, "number")),
        ("c", None, Measure(float("inf"), 0, "number")),
    ),
    "tradeoff.parquet",
)
MEANINGS = (
    Definition("precision", "Precision", "Confirmed of putative.", "higher", "reidentify.md"),
    Definition("solvar", "Solvar", "How much data sets differ.", "lower"),
)


def report() -> Report:
    beside = Said("guessing: {}", (Share(1, 4),))
    return Report(
        "What a town gives away",
        "Of the town of Testing.",
        "internal",
        (Verdict("Right", Share(30, 40, 0.6, 0.9), beside, "Most are right.", "precision", "s", "precision.parquet"),),
        (Said("{} blocks are too small", (Count(7),)),),
        (Section("s", "S", "Lead.", (RISK, COST, RISK)),),
        MEANINGS,
        (("seed", "1"), ("command", "=glasshouse report")),
    )


def book(found: bytes) -> dict[str, dict[str, str | float]]:
    """The sheets of a workbook by name: what stands in each cell."""
    with zipfile.ZipFile(io.BytesIO(found)) as packed:
        shared = [
            "".join(part.text or "" for part in item.iter(f"{MAIN}t"))
            for item in ElementTree.fromstring(packed.read("xl/sharedStrings.xml"))
        ]
        names = [
            one.get("name") or "" for one in ElementTree.fromstring(packed.read("xl/workbook.xml")).iter(f"{MAIN}sheet")
        ]
        sheets = {}
        for number, name in enumerate(names, start=1):
            root = ElementTree.fromstring(packed.read(f"xl/worksheets/sheet{number}.xml"))
            assert not list(root.iter(f"{MAIN}f"))  # no formula anywhere
            sheets[name] = {
                cell.get("r") or "": shared[int(value)] if cell.get("t") == "s" else float(value)
                for cell in root.iter(f"{MAIN}c")
                if (value := cell.findtext(f"{MAIN}v")) is not None
            }
    return sheets


def test_there_is_a_sheet_for_each_table_once() -> None:
    assert list(book(sheets(report()))) == ["Read me", "risk by size", "cost of noise", "Definitions"]


def test_numbers_are_numbers_and_ends_have_columns_where_there_are_any() -> None:
    risk = book(sheets(report()))["risk by size"]
    assert risk["A1"] == "Risk by size of block"
    assert [risk.get(f"{letter}3") for letter in "ABCDEFG"] == [
        "size",
        "persons",
        "right",
        "low",
        "high",
        "printed",
        None,
    ]
    assert (risk["C4"], risk["F4"]) == ("Precision (higher is worse)",) * 2
    assert [risk[f"{letter}5"] for letter in "ABCDEF"] == ["1-9", 12, 0.25, 0.1, 0.5, 0.25]
    assert risk["C6"] == pytest.approx(6000 / 12_345) and "D6" not in risk
    assert risk["B7"] == "hidden" and "C7" not in risk
    assert (risk["A8"], risk["B8"], risk["C8"]) == ("=1+1", 0, "hidden")
    assert (risk["A10"], risk["A11"]) == (RISK.notes[0], "12 persons are in small blocks.")
    assert risk["A12"] == "Source: precision.parquet"


def test_points_are_written_as_in_the_list_of_numbers() -> None:
    cost = book(sheets(report()))["cost of noise"]
    assert [cost[f"{letter}4"] for letter in "ABCD"] == ["a", -0.031, -0.04, -0.02]
    assert (cost["E4"], cost["E5"], cost["E6"]) == (12.5, 1234.5, "inf")
    assert "B6" not in cost


def test_the_first_sheet_says_what_the_report_is() -> None:
    front = book(sheets(report()))["Read me"]
    assert (front["A1"], front["A2"]) == ("What a town gives away", "Of the town of Testing.")
    assert str(front["A3"]).startswith("Internal version")
    assert [front[f"{letter}6"] for letter in "ABCDEF"] == [
        "Right",
        0.75,
        0.6,
        0.9,
        "guessing: 25.0%",
        "Most are right.",
    ]
    assert "7 blocks are too small" in front.values() and "=glasshouse report" in front.values()
    public = book(sheets(publish(report(), 10)))["Read me"]
    assert str(public["A3"]).startswith("Public version")
    assert public["E6"] == "guessing: (hidden)"
    assert "No limit was exceeded." in book(sheets(replace(report(), findings=())))["Read me"].values()


def test_the_last_sheet_has_the_definitions() -> None:
    last = book(sheets(report()))["Definitions"]
    assert [last[f"{letter}2"] for letter in "ABCD"] == [
        "Precision",
        "Confirmed of putative.",
        "higher is worse",
        "reidentify.md",
    ]


def test_the_public_workbook_has_no_exact_count() -> None:
    inside, found = (book(sheets(one))["risk by size"] for one in (report(), publish(report(), 10)))
    exact = {str(inside[f"B{line}"]) for line in (5, 6, 7)} - {"hidden"}
    assert exact and not exact & set(map(str, found.values())) and inside["B3"] not in found.values()
    assert "hidden" in found.values() and "(hidden) persons are in small blocks." in found.values()


def test_formats_frozen_heads_and_print_set_up() -> None:
    with zipfile.ZipFile(io.BytesIO(sheets(report()))) as packed:
        styles = packed.read("xl/styles.xml").decode()
        sheet = packed.read("xl/worksheets/sheet2.xml").decode()
    for known in ("+0.0%;-0.0%;0.0%", "<i/>", "FF636363"):
        assert known in styles
    for known in ('state="frozen"', 'topLeftCell="B5"', 'orientation="landscape"', 'paperSize="9"', "fitToPage"):
        assert known in sheet


def test_the_same_report_gives_the_same_bytes() -> None:
    assert sheets(report()) == sheets(report())
    assert numbers(report()) == numbers(report())


@given(st.lists(st.text(max_size=45), max_size=12))
def test_sheets_have_legal_names_each_once(names: list[str]) -> None:
    found = sheet_names(iter(names))
    assert len({name.lower() for name in found} | {"read me", "definitions", "history"}) == len(names) + 3
    for name in found:
        assert 1 <= len(name) <= 31
        assert not set(name) & set("[]:*?/\\")
        assert name[0] != "'" and name[-1] != "'"


# numbers.csv


def test_every_number_is_a_line_and_says_which() -> None:
    lines = numbers(report()).split("\n")
    assert lines[0] == ",".join(HEAD) == "line,table,row,column,value,low,high,part,whole,term,worse,source"
    assert lines[-1] == ""
    rows = list(csv.DictReader(io.StringIO(numbers(report()))))
    found = list(numbered(report()))
    assert len(rows) == len(found) == len(lines) - 2 == 1 + 12 + 6
    for line, (row, one) in enumerate(zip(rows, found, strict=True), start=2):
        assert int(row["line"]) == line == one.line
        assert lines[line - 1].startswith(f"{line},")
        assert row["source"] == one.source and row["column"] == one.column
    assert rows[0] == dict(zip(HEAD, ("2", "verdict", "Right", "", "0.75", "0.6", "0.9", "30", "40", "precision",
                                      "higher is worse", "precision.parquet"), strict=True))  # fmt: skip
    values = [row["value"] for row in rows if row["table"] == "risk by size"]
    assert values == [
        "12",
        "0.25",
        "0.25",
        "12345",
        repr(6000 / 12_345),
        "0.3",
        "hidden",
        "",
        "0.35",
        "0",
        "hidden",
        "",
    ]


def test_texts_are_never_formulas_and_numbers_stay_numbers() -> None:
    rows = list(csv.DictReader(io.StringIO(numbers(report()))))
    assert {row["row"] for row in rows if row["row"].startswith(("=", "'"))} == {"'=1+1"}
    assert "-0.031" in {row["value"] for row in rows}
    for start in "=+-@\t":
        told = replace(RISK, rows=(("a", f"{start}x", None, None),))
        (row, *_) = csv.DictReader(io.StringIO(numbers(only(told))))
        assert row["value"] == f"'{start}x"


def only(table: Table) -> Report:
    return replace(report(), verdicts=(), sections=(Section("s", "S", "Lead.", (table,)),))


def test_a_text_of_two_lines_and_a_term_without_meaning_are_bugs_of_ours() -> None:
    with pytest.raises(GlasshouseBug, match="more than one line"):
        numbers(only(replace(RISK, source="a\nb")))
    with pytest.raises(GlasshouseBug, match="does not define"):
        numbers(replace(report(), definitions=()))
    with pytest.raises(GlasshouseBug, match="does not define"):
        sheets(replace(report(), definitions=()))


def test_a_report_without_tables_is_a_workbook_too(tmp_path: Path) -> None:
    bare = replace(report(), verdicts=(), sections=())
    assert list(book(sheets(bare))) == ["Read me", "Definitions"]
    assert numbers(bare) == ",".join(HEAD) + "\n"
    empty = book(sheets(only(replace(RISK, rows=()))))["risk by size"]
    assert empty["A6"] == RISK.notes[0]
