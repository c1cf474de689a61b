"""Does the page of `bounds` show what is known, and to the office alone? Tables as printed, public version, paper."""

from __future__ import annotations

import csv
import io
import re
import shutil
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from glasshouse.errors import GlasshouseBug
from glasshouse.report.bounds import report_of, sections, write_page
from glasshouse.report.description import Count, Printed, Report, Said, Section, Share, text
from glasshouse.report.publish import publish
from glasshouse.report.render.numbers import numbers
from glasshouse.report.render.page import page
from glasshouse.report.render.sheets import sheets
from glasshouse.report.sections.bounds import Bounds, headline
from glasshouse.report.sections.methods import definitions, terms_of
from glasshouse.report.sections.printed import LINES, PLACES, TABLES, as_printed, chosen, ranged, sheet
from glasshouse.report.theme import DARK, LIGHT
from tests.bounds_sample import EVIL, evil, sample
from tests.test_report_page import Reader


def printed_blocks(found: Bounds) -> list[Printed]:
    return [block for block in as_printed(found).blocks if isinstance(block, Printed)]


# What is said


def test_the_headline_counts_what_is_hidden_and_what_is_given_away() -> None:
    found, frame = sample(), sample().frame
    exact, narrow = (frame.filter(pl.col("verdict") == name).height for name in ("exact", "narrow"))
    said = headline(found)
    assert isinstance(said, Said)
    assert set(said.cells) == {Share(exact + narrow, frame.height), Count(frame.height), Count(exact), Count(narrow)}
    assert "differ by 1 or less" in text(said)


def test_numbers_that_are_printed_exactly_are_not_hidden() -> None:
    """With `--numbers all` the frame has them, too."""
    found = sample()
    assert found.printed is not None
    more = found.printed.with_columns(
        table=pl.col("variable").str.slice(0, 2), low="lower", high="upper", verdict=pl.lit("exact"),
        present=pl.lit(False), alike=pl.lit(False), proof=pl.lit("exact"), scope=pl.col("level"),
    )  # fmt: skip
    every = replace(found, frame=pl.concat([found.frame, more], how="diagonal"), printed=None)
    assert every.all_hidden == found.all_hidden
    assert [(one.known, one.lines) for one in printed_blocks(every)] == [
        (one.known, one.lines) for one in printed_blocks(found)
    ]


def test_a_number_that_is_as_narrow_as_it_was_printed_is_not_given_away() -> None:
    """Printed as 1 or 2, and no more is known: nobody gave it away (convention 63); 0 to 2 is another matter."""
    printed = only(lower=1, upper=2, low=1, high=2, verdict="narrow")
    assert (printed.all_hidden.narrow, printed.all_hidden.wide) == (0, 1)
    assert "wide" in printed_blocks(printed)[0].known and "narrow" not in printed_blocks(printed)[0].known
    other = only(lower=0, upper=2, low=1, high=2, verdict="narrow")
    assert (other.all_hidden.narrow, other.all_hidden.wide) == (1, 0)


def test_a_file_is_read_as_a_frame_is(tmp_path: Path) -> None:
    found = sample()
    assert isinstance(found.frame, pl.DataFrame) and isinstance(found.reasons, pl.DataFrame)
    found.frame.write_parquet(tmp_path / "bounds.parquet")
    found.reasons.write_parquet(tmp_path / "reasons.parquet")
    frame, reasons = (pl.scan_parquet(tmp_path / f"{name}.parquet") for name in ("bounds", "reasons"))
    assert page(report_of(replace(found, frame=frame, reasons=reasons), "T")) == page(report_of(found, "T"))


def test_nothing_hidden_is_said_and_nothing_is_printed() -> None:
    empty = replace(sample(), frame=sample().frame.clear(), reasons=None)
    (only,) = sections(empty)
    assert text(only.lead).endswith("nothing is hidden.") and not only.blocks
    assert "nothing is hidden." in page(report_of(empty, "T"))


def test_numbers_that_were_asked_for_are_of_no_table() -> None:
    asked = replace(sample(), frame=sample().frame.with_columns(table=pl.lit(None, pl.String)))
    (only,) = sections(asked)
    assert "numbers that were asked for one by one" in page(report_of(asked, "T")) and only.name == "bounds"


def test_the_section_is_one_of_a_report_like_any_other() -> None:
    """As the audit has it: numbers.csv, the workbook and the page take it; the public version loses the tables."""
    made = Report("T", "", "internal", (), (), sections(sample()), (), ())
    made = replace(made, definitions=definitions(terms_of(made)))
    rows = list(csv.DictReader(io.StringIO(numbers(made))))
    block = printed_blocks(sample())[0]
    assert {row["table"] for row in rows} >= {"bounds-by-table", "bounds-by-level", "bounds-by-place", block.table.name}
    book = zipfile.ZipFile(io.BytesIO(sheets(made)))
    assert LIGHT["exact"].removeprefix("#") in book.read("xl/styles.xml").decode()
    assert "<table" in page(made)
    assert [section.name for section in publish(made, 10).sections] == ["bounds"]


# The tables as printed


def test_every_number_stands_with_what_is_known_of_it() -> None:
    found = sample()
    assert found.printed is not None
    of = next(one for one in chosen(found) if one.table == "W1")
    block = sheet(found, of)
    table = found.scenario.table("W1")
    assert block.lines[:3] == ((0, "total"), (1, "woman"), (2, "0-6")) and len(block.lines) == len(table.lines)
    row = {(row["geoid"], row["variable"]): row for row in found.frame.iter_rows(named=True)}
    told = {(row["geoid"], row["variable"]): row["lower"] for row in found.printed.iter_rows(named=True)}
    at = iter(zip(block.table.rows, block.known, strict=True))
    for line in table.lines:
        for place in block.places:
            cells, known = next(at)
            key = place, line.variable
            if key in row:
                assert known == row[key]["verdict"]
                assert cells[block.proved[0]] == Count(row[key]["low"])
                assert cells[block.proved[1]] == Count(row[key]["high"])
            else:
                assert known == "printed" and cells[block.printed[0]] == Count(told[key])


def test_the_tables_and_places_where_most_is_given_away_come_first_and_the_rest_is_said() -> None:
    found = sample()
    some = chosen(found)
    assert len(some) == TABLES and all(len(one.places) <= PLACES for one in some)
    away = found.frame.filter(pl.col("verdict") != "wide")
    assert some[0].table == away["table"].value_counts(sort=True)["table"][0]
    wards = next(one for one in some if one.level == "ward")
    counted = away.filter(pl.col("table") == wards.table)["geoid"].value_counts(sort=True)
    least = counted["count"][PLACES - 1]
    assert set(counted.filter(pl.col("count") > least)["geoid"]) <= set(wards.places)
    assert f"{TABLES} of 6 tables" in text(as_printed(found).lead)
    assert f"{PLACES} of {wards.among} wards" in text(sheet(found, wards).says)
    long = next(one for one in some if one.table == "T2")
    assert len(sheet(found, long).lines) <= LINES and "lines are left out" in text(sheet(found, long).says)


@pytest.mark.parametrize(("low", "high", "said"), [(2, 2, "2"), (0, 3000, "0 to 3,000"), (5, None, "5 or more")])
def test_ranges_in_words(low: int, high: int | None, said: str) -> None:
    assert ranged(low, high) == said


def only(**changes: object) -> Bounds:
    """The sample with the first hidden number of W1 changed."""
    found = sample()
    frame = found.frame.lazy().collect().filter(pl.col("table") == "W1")
    row = {**frame.row(0, named=True), **changes}
    others = frame.filter(pl.col("geoid") == row["geoid"])[1:2] if row["lower"] is None else frame.clear()
    return replace(found, frame=pl.concat([pl.DataFrame([row], schema=frame.schema), others]))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"low": 2, "high": 2}, "It is exactly 2: no other number fits"),
        ({"low": 0, "high": 7, "verdict": "wide"}, "It is 0 to 7: no number outside"),
        ({"low": 1, "high": None, "verdict": "wide"}, "It is 1 or more: the published numbers set no upper limit."),
        ({"lower": 0, "upper": 5}, "The office printed 0 to 5."),
        ({"lower": 3, "upper": None}, "The office printed 3 or more."),
        ({"lower": None, "upper": None}, "The office did not print it."),
        ({"low": 1, "high": 4, "verdict": "wide", "present": True, "alike": False}, "It cannot be 0."),
        ({"alike": True}, "everybody in the group is alike"),
        ({"proof": "two-engines"}, "Two independent solvers agree"),
        ({"proof": "undecided", "met_low": 1, "met_high": 2}, "records that fit were found for 1 to 2."),
        ({"proof": "undecided", "met_low": None, "met_high": None}, "A narrower range may hold: the run ended"),
        ({"scope": "ward"}, "from the numbers of this ward alone"),
        ({"scope": "town"}, "of this ward together with those of its town"),
    ],
)
def test_the_note_says_what_is_proved_and_how(changes: dict[str, object], said: str) -> None:
    (block,) = printed_blocks(only(**changes))
    notes = [str(row[block.note]) for row in block.table.rows if row[block.note]]
    assert len(notes) <= 2 and any(said in note for note in notes)
    assert said in Reader(page(report_of(only(**changes), "T"))).all("html")[0].text


def test_the_note_lists_the_numbers_that_give_it_away() -> None:
    found = sample()
    assert found.reasons is not None
    first = found.reasons.filter(pl.col("variable").str.starts_with("W1")).row(0, named=True)
    of = replace(next(one for one in chosen(found) if one.table == "W1"), places=(first["geoid"],))
    block = sheet(found, of)
    at = next(at for at, row in enumerate(block.table.rows) if str(row[0]).startswith(first["variable"]))
    assert len(block.reasons[at]) == 3
    assert f"{first['reason_variable']} ({first['reason_description']}), ward {first['geoid']}" in block.reasons[at][0]
    assert "If any one of the numbers below were not published" in str(block.table.rows[at][block.note])
    many = pl.concat(
        [found.reasons, *(found.reasons.with_columns(number=pl.lit(4 + again, pl.Int64)) for again in range(3))]
    )
    assert sheet(replace(found, reasons=many), of).reasons[at][-1] == "and 4 more: reasons.parquet"
    loose = replace(found, reasons=found.reasons.with_columns(minimal=pl.lit(False)))
    assert "perhaps not all of them are needed" in str(sheet(loose, of).table.rows[at][block.note])


def test_a_number_nobody_looked_at_is_not_called_printed() -> None:
    found = sample()
    without = replace(found, printed=found.printed.clear() if found.printed is not None else None)
    assert "unknown" in printed_blocks(without)[-1].known
    assert "not looked at" in page(report_of(without, "T"))


def test_a_sheet_has_a_row_for_each_number() -> None:
    block = printed_blocks(sample())[0]
    with pytest.raises(GlasshouseBug, match="does not have a row for each"):
        replace(block, places=block.places[1:])


# The page


def test_labels_and_codes_are_never_markup() -> None:
    shown = page(report_of(evil(), EVIL))
    assert EVIL not in shown and "&lt;script&gt;alert(" in shown
    read = Reader(shown)
    assert not read.all("script")
    assert any(EVIL in one.text for one in read.all("th"))


def test_the_same_results_give_the_same_bytes_in_one_file_for_the_owner_that_loads_nothing(tmp_path: Path) -> None:
    found = sample()
    for name in ("a.html", "b.html"):
        told = write_page(
            found.frame, found.reasons, found.scenario, "T", tmp_path / name, False, printed=found.printed, width=1
        )
        assert told == ()
    first = (tmp_path / "a.html").read_bytes()
    assert first == (tmp_path / "b.html").read_bytes() and len(first) < 1_000_000
    assert (tmp_path / "a.html").stat().st_mode & 0o777 == 0o600
    for element in Reader(first.decode()).elements:
        assert not {"src", "srcset", "action", "style"} & set(element.attributes)
        assert element.attributes.get("href", "#").startswith("#")


def test_colour_is_never_alone_and_every_note_is_reached_by_its_number() -> None:
    read = Reader(page(report_of(sample(), "T")))
    cells = [one for one in read.elements if one.attributes.get("class") == "cell"]
    notes = {one.attributes["id"]: one for one in read.elements if one.attributes.get("class") == "note"}
    assert cells and len(cells) == len(notes)
    for cell in cells:
        assert cell.attributes["tabindex"] == "0" and cell.attributes["aria-describedby"] in notes
        assert re.search("[\u25cf\u25d0\u25cb]", cell.text) and "given away" in cell.text
    legend = [one.text for one in read.elements if one.attributes.get("class") == "keys known-keys"]
    assert "\u25cf" in legend[0] and "given away exactly" in legend[0]


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_colours_are_told_apart_by_their_lightness_and_carry_their_text(palette: dict[str, str]) -> None:
    for name in ("exact", "narrow", "wide"):
        assert contrast(palette[name], palette[f"{name}ink"]) >= 4.5
    assert contrast(palette["exact"], palette["narrow"]) >= 2
    assert contrast(palette["narrow"], palette["wide"]) >= 1.3
    assert contrast(palette["exact"], palette["paper"]) >= 3


# The public version


def public(found: Bounds, path: Path) -> str:
    assert write_page(found.frame, found.reasons, found.scenario, "T", path, True, printed=found.printed, width=1) == ()
    return path.read_text(encoding="utf-8")


def test_the_public_page_names_no_place_no_number_and_no_line(tmp_path: Path) -> None:
    found, shown = sample(), public(sample(), tmp_path / "p.html")
    for place in found.frame["geoid"].unique():
        assert place not in shown
    for variable in found.frame["variable"].unique():
        assert variable not in shown
    assert 'class="note"' not in shown and '<table class="printed"' not in shown
    told = Reader(shown).all("main")[0].text
    counts = [int(one.replace(",", "")) for one in re.findall(r"(?<![\d.%A-Z])\d[\d,]*(?![\d.%])\b", told)]
    allowed = {1, 15, 0}  # of the rule, of a title, of a definition
    assert all(count % 10 == 0 or count in allowed for count in counts), counts
    shares = [float(one) for one in re.findall(r"([\d.]+)%", told)]
    assert shares and all(share % 5 == 0 for share in shares), shares


def test_the_public_page_depends_on_counts_alone(tmp_path: Path) -> None:
    """Other ranges, other places and other reasons with the same verdicts make the same page, byte for byte."""
    found = sample()
    other = found.frame.with_columns(
        low=pl.col("low") * 7 + 3, high=pl.col("high") * 7 + 3, met_low=pl.lit(None, pl.Int64),
        geoid=pl.col("geoid").str.replace("O0", "X5").str.replace("U0", "Y5"), description=pl.lit("?"),
        lower=pl.lit(0, pl.Int64), upper=pl.lit(None, pl.Int64), scope=pl.col("level"),
    ).reverse()  # fmt: skip
    assert public(found, tmp_path / "a.html") == public(
        replace(found, frame=other, reasons=None, printed=None), tmp_path / "b.html"
    )


def test_a_section_with_sheets_is_dropped_even_if_nobody_said_records() -> None:
    block = printed_blocks(sample())[0]
    open_ = replace(block, table=replace(block.table, records=False))
    made = Report("T", "", "internal", (), (), (Section("s", "S", "", (open_,)),), (), ())
    assert publish(made, 10).sections[0].blocks == ()


def test_few_hidden_numbers_look_like_none_in_public(tmp_path: Path) -> None:
    """One number of a group all alike, or none: the page is the same."""
    found = sample()
    pages = {
        public(replace(found, frame=found.frame.with_columns(alike=pl.int_range(pl.len()) < some)), tmp_path / "x.html")
        for some in (0, 1, 9)
    }
    assert len(pages) == 1


# In a browser

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no chromium on this machine")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("bounds") / "bounds.html"
    path.write_text(page(report_of(sample(), "T")), encoding="utf-8")
    return path.as_uri()


@pytest.mark.parametrize("viewport", [{"width": 1280, "height": 900}, PHONE], ids=["desktop", "phone"])
def test_pointing_or_going_to_a_number_shows_its_note_inside_the_window(
    browser: Any, address: str, viewport: dict[str, int]
) -> None:
    """Without a script: there is none on the page."""
    context = browser.new_context(viewport=viewport, java_script_enabled=True, reduced_motion="reduce")
    shown = context.new_page()
    shown.goto(address)
    assert shown.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert shown.locator(".note:visible").count() == 0
    for cell in (shown.locator("td.k-exact > .cell").nth(3), shown.locator("td.k-wide > .cell").last):
        for go in (cell.hover, cell.focus):
            go()
            note = shown.locator(".note:visible")
            assert note.count() == 1
            assert note.get_attribute("id") == cell.get_attribute("aria-describedby")
            at = note.bounding_box()
            assert at["x"] >= 0 and at["x"] + at["width"] <= viewport["width"]
            assert at["y"] >= 0 and at["y"] + at["height"] <= viewport["height"]
            shown.mouse.move(1, 1)
        cell.blur()
    context.close()


def test_on_paper_ranges_stand_in_the_cells_and_notes_do_not(browser: Any, address: str) -> None:
    shown = browser.new_page()
    shown.goto(address)
    shown.emulate_media(media="print")
    shown.locator("td.k-exact > .cell").first.focus()
    assert shown.locator(".note:visible").count() == 0
    cell = shown.locator("td.k-narrow > .cell .v").first
    assert cell.is_visible() and re.fullmatch(r"\d+\u2013\d+", cell.inner_text())
    ink, ground = shown.locator("td.k-exact > .cell").first.evaluate(
        "(one) => [getComputedStyle(one).color, getComputedStyle(one).backgroundColor]"
    )
    assert ink == "rgb(27, 31, 36)" and ground == "rgba(0, 0, 0, 0)"  # dark on paper, whether colours print or not
    shown.close()
