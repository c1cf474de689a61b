"""Is the page whole without a browser? Nothing is loaded, every link leads somewhere, every number has its line."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from html.parser import HTMLParser
from itertools import pairwise
from json import loads
from xml.etree import ElementTree

import pytest

from glasshouse.report.description import (
    HIDDEN,
    Chart,
    Column,
    Count,
    Hidden,
    Map,
    Measure,
    Report,
    Series,
    Shape,
    Share,
    Table,
    Version,
    interval,
    words,
)
from glasshouse.report.numbering import numbered
from glasshouse.report.render.drawing import legend, pictures, svg
from glasshouse.report.render.page import page
from glasshouse.report.render.svg import size
from glasshouse.report.theme import LIGHT
from tests.report_sample import EVIL, sample

VOID = {"meta", "br", "input", "img", "link", "hr", "wbr"}


@dataclass
class Element:
    name: str
    attributes: dict[str, str]
    text: str = ""  # all text within
    within: list[str] = field(default_factory=list)


class Reader(HTMLParser):
    """The elements of a page in order; what is opened must be closed."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[Element] = []
        self.open: list[Element] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {key: value or "" for key, value in attributes}, within=[one.name for one in self.open])
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().name == tag

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.text += data

    def all(self, *names: str) -> list[Element]:
        return [one for one in self.elements if one.name in names]

    def having(self, attribute: str) -> list[Element]:
        return [one for one in self.elements if attribute in one.attributes]


@cache
def html(version: Version = "internal") -> str:
    return page(sample(version))


@cache
def read(version: Version = "internal") -> Reader:
    return Reader(html(version))


def test_the_same_report_gives_the_same_bytes() -> None:
    assert page(sample()) == html()


def test_the_page_is_one_small_file_that_loads_nothing() -> None:
    assert len(html().encode()) < 1_000_000
    for element in read().elements:
        assert not {"src", "srcset", "data", "action", "style"} & set(element.attributes), element
        assert not [key for key in element.attributes if key.startswith("on")], element
        assert element.attributes.get("href", "#").startswith("#"), element
        assert element.name not in ("link", "iframe", "object", "embed", "img", "base", "form")
    style = read().all("style")[0].text
    assert "url(" not in style and "@import" not in style
    addresses = set(re.findall(r"https?://[^\s\"'<]+", html()))
    assert addresses == {"http://www.w3.org/2000/svg"}  # the name of SVG, in the script


def test_only_our_one_script_may_run() -> None:
    run = [one for one in read().all("script") if one.attributes.get("type") != "application/json"]
    assert len(run) == 1
    digest = b64encode(sha256(run[0].text.encode()).digest()).decode()
    policy = next(one.attributes["content"] for one in read().all("meta") if "http-equiv" in one.attributes)
    assert policy == (f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'")
    assert not re.search(r"\beval\b|new Function|innerHTML|document\.write|fetch\(|localStorage", run[0].text)


def test_data_of_the_script_cannot_end_it() -> None:
    data = [one for one in read().all("script") if one.attributes.get("type") == "application/json"]
    assert len(data) == 3  # the explorer's, the sliders', and the texts
    for one in data:
        assert "<" not in one.text
        loads(one.text)


@pytest.mark.parametrize("version", ["internal", "public"])
def test_text_of_data_is_text(version: Version) -> None:
    assert EVIL not in html(version)
    assert not read(version).all("img")
    assert any(one.text == EVIL for one in read(version).all("th")) or version == "public"


def test_evil_settings_stay_data() -> None:
    report = sample()
    [section] = [one for one in report.sections if one.name == "trade-off"]
    [block] = section.blocks
    table = replace(block.table, rows=((EVIL, EVIL, *block.table.rows[0][2:]), *block.table.rows[1:]))  # type: ignore
    changed = replace(report, sections=(replace(section, blocks=(replace(block, table=table),)),))  # type: ignore
    text = page(replace(changed, verdicts=()))
    assert EVIL not in text and not Reader(text).all("img")


@pytest.mark.parametrize("version", ["internal", "public"])
def test_ids_are_unique_and_links_lead_somewhere(version: Version) -> None:
    ids = [one.attributes["id"] for one in read(version).having("id")]
    assert len(ids) == len(set(ids))
    for attribute in ("href", "aria-labelledby", "aria-describedby", "for"):
        for one in read(version).having(attribute):
            assert one.attributes[attribute].removeprefix("#") in ids, one
    assert set(re.findall(r"url\(#([^)]+)\)", html(version))) <= set(ids)


def test_links_to_sections_left_out_are_left_out() -> None:
    report = sample()
    report = replace(report, sections=tuple(one for one in report.sections if one.name != "claims"))
    found = Reader(page(report))
    assert "#claims" not in {one.attributes["href"] for one in found.having("href")}


def test_headings_go_down_one_step_at_a_time() -> None:
    levels = [int(one.name[1]) for one in read().all("h1", "h2", "h3", "h4")]
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_landmarks_and_language() -> None:
    assert read().all("html")[0].attributes["lang"] == "en"
    for name, most in (("header", 1), ("main", 1), ("footer", 1), ("nav", 2)):
        assert 1 <= len(read().all(name)) <= most
    skip = read().all("a")[0]
    assert skip.attributes == {"class": "skip", "href": "#content"}


def test_every_number_has_its_line_of_numbers_csv() -> None:
    lines = {one.line: one for one in numbered(sample())}
    seen = [int(one.attributes["data-n"]) for one in read().having("data-n")]
    assert len(seen) == len(set(seen))
    for element in read().having("data-n"):
        one = lines[int(element.attributes["data-n"])]
        assert isinstance(one.cell, (Count, Share, Measure))
        verdict = element.name == "button"
        assert element.text == words(one.cell) + ("" if verdict else interval(one.cell))
        if verdict:
            assert element.attributes["data-source"] == one.source
    shown = {table.name: table.shown for table in sample().tables()}
    expected = sum(
        isinstance(cell, (Count, Share, Measure))
        for table in sample().tables()
        for row in table.rows[: shown[table.name]]
        for cell in row[table.keys :]
    )
    assert len(seen) == expected + 4


def test_every_picture_has_a_table_and_words() -> None:
    drawn = [one for one in read().all("svg") if one.attributes.get("aria-hidden") != "true"]
    assert len(drawn) == 1 + 2 * (1 + 1 + 1 + 1 + 2 + 2)  # a map; charts for wide and narrow screens, some in panels
    assert all(one.attributes["aria-label"] and one.attributes["role"] == "group" for one in drawn)
    tables = {one.attributes.get("id") for one in read().all("table")}
    assert tables == {None, *(f"table-{table.name}" for table in sample().tables())}
    labels = [
        one.attributes["aria-label"]
        for one in read().all("path", "text", "circle", "line", "rect")
        if "aria-label" in one.attributes
    ]
    assert "50-99 persons: certain: 96.9% (96.1% to 97.6%); published 2010: 12.6%" in labels
    assert any("hidden" in label for label in labels)
    assert all(
        "aria-label" in one.attributes or "aria-labelledby" in one.attributes
        for one in read().elements
        if one.attributes.get("role") == "region"
    )


def test_long_tables_say_how_many_rows_are_elsewhere() -> None:
    assert "23 more rows in tables.xlsx" in html()
    rows = [one for one in read().all("tr") if "table" in one.within]
    assert len(rows) < 100


def test_hidden_numbers_say_why() -> None:
    hidden = [one for one in read().all("abbr") if one.text == "hidden"]
    assert hidden and all(
        one.attributes["title"] == "about too few persons to be told, or about nobody" for one in hidden
    )


def test_a_hidden_verdict_is_no_number() -> None:
    report = sample()
    found = Reader(page(replace(report, verdicts=tuple(replace(one, number=HIDDEN) for one in report.verdicts))))
    lines = [int(one.attributes["data-n"]) for one in found.having("data-n")]
    assert min(lines) == len(report.verdicts) + 2
    assert [one.text for one in found.elements if one.attributes.get("class") == "big"] == ["hidden"] * 4


def test_findings_are_in_words() -> None:
    assert "2 thresholds were exceeded" in html()
    none = sample(passed=False)
    assert "No limit was exceeded" in page(none)
    assert "threshold was exceeded" not in page(replace(none, thresholds=0))


def test_versions_are_told_apart() -> None:
    assert "Internal: may hold confidential figures" in html()
    assert "Internal" not in html("public") and "Public version" in html("public")


def test_a_report_of_nothing_is_a_page() -> None:
    assert Reader(page(Report("Nothing", "About nothing.", "public", (), (), (), (), ())))


# Pictures


def charts() -> list[Chart | Map]:
    return [block for section in sample().sections for block in section.blocks if isinstance(block, (Chart, Map))]


@pytest.mark.parametrize("block", charts(), ids=lambda block: block.name)
def test_a_picture_in_a_file_stands_alone(block: Chart | Map) -> None:
    drawn = svg(block, themed=False)
    ElementTree.fromstring(drawn)
    assert "var(--" not in drawn and LIGHT["paper"] in drawn
    assert svg(block, themed=False) == drawn
    assert svg(block, themed=True) != drawn and "var(--" in svg(block, themed=True)
    assert "clip" not in drawn


@pytest.mark.parametrize("block", charts(), ids=lambda block: block.name)
def test_pictures_for_phones_are_narrow(block: Chart | Map) -> None:
    for _, drawn in pictures(block, narrow=True):
        assert size(drawn)[0] <= (358 if isinstance(block, Chart) else 600)
    for _, drawn in pictures(block, narrow=False):
        assert size(drawn)[0] <= 640


def test_cells_without_a_number_draw_nothing() -> None:
    columns = (Column("Place"), Column("Share"))
    rows = (("a", Share(1, 2)), ("b", None), ("c", HIDDEN), ("d", Measure(-0.5, 9, "share")))
    table = Table("t", "T", columns, rows, "s")
    for look in ("bar", "dot", "ring", "tick"):
        for up in (False, True):
            chart = Chart("c", "C", "Says.", table, (Series(1, "share", look),), "share", up=up)  # type: ignore[arg-type]
            drawn = svg(chart, themed=False)
            labels = re.findall(r'aria-label="(\w): share: ([^"]*)"', drawn)
            assert sorted(labels) == [("a", "50.0%"), ("c", "hidden"), ("d", "-50.0%")]
    empty = replace(table, rows=())
    assert svg(Chart("c", "C", "Says.", empty, (Series(1, "share"),), "share"), themed=False)


def test_maps_shade_by_value_and_say_what_is_missing() -> None:
    rows = (*((str(k), Share(k, 10)) for k in range(10)), ("h", HIDDEN), ("n", None), ("lost", Share(1, 10)))
    table = Table("t", "T", (Column("Code"), Column("Share")), rows, "s")
    shapes = {str(k): Shape(point=(1000.0 * k, 5000.0)) for k in range(10)}
    shapes |= {"h": Shape(point=(0.0, 0.0)), "n": Shape(point=(1.0, 1.0)), "no row": Shape(point=(2.0, 2.0))}
    block = Map("m", "M", "Says.", table, 1, shapes, "share")
    [(_, drawn)] = pictures(block, narrow=False)
    fills = dict(re.findall(r'fill="([^"]*)" role="img" aria-label="([^:"]+):', drawn))
    by_area = {area: fill for fill, area in re.findall(r'fill="([^"]*)" role="img" aria-label="([^:"]+):', drawn)}
    assert len(fills) == 7
    assert [by_area[str(k)] for k in range(10)] == [f"var(--s{k // 2 + 1})" for k in range(10)]
    assert by_area["h"] == "url(#m-hatch)" and by_area["n"] == by_area["no row"] == "var(--none)"
    said = [key.label for key in legend(block)]
    assert said == [
        "0.0% to 10.0%", "20.0% to 30.0%", "40.0% to 50.0%", "60.0% to 70.0%", "80.0% to 90.0%", "hidden", "no number",
        "not drawn, as their place is not known: 1",
    ]  # fmt: skip


def test_a_number_of_many_areas_has_a_shade_of_its_own() -> None:
    shares = [Share(k, 100) for k in range(40)] + [Share(100, 100)] * 60
    rows = tuple((str(k), share) for k, share in enumerate(shares))
    table = Table("t", "T", (Column("Code"), Column("Share")), rows, "s")
    block = Map("m", "M", "Says.", table, 1, {code: Shape(point=(k, k)) for k, (code, _) in enumerate(rows)}, "share")
    said = [key.label for key in legend(block)]
    assert said == ["0.0% to 9.0%", "10.0% to 19.0%", "20.0% to 29.0%", "30.0% to 39.0%", "100.0%"]


def test_a_degree_of_longitude_is_shorter_in_the_north() -> None:
    table = Table("t", "T", (Column("Code"), Column("Share")), (("a", Share(1, 2)),), "s")

    def shape(north: float, unit: float) -> float:
        ring = ((0.0, north), (unit, north), (unit, north + unit), (0.0, north + unit), (0.0, north))
        block = Map("m", "M", "Says.", table, 1, {"a": Shape(rings=(ring,))}, "share")
        [(_, drawn)] = pictures(block, narrow=False)
        width, height = size(drawn)
        return (width - 28) / (height - 28)

    assert shape(59.5, 1.0) == pytest.approx(0.5, abs=1e-3)
    assert shape(6_600_000.0, 1000.0) == pytest.approx(1.0, abs=1e-3)


def test_pictures_hide_what_the_table_hides() -> None:
    """A picture has no numbers but those of its table."""
    for block in charts():
        veiled = replace(block.table, rows=tuple(
            tuple(cell if k < block.table.keys or cell is None else HIDDEN for k, cell in enumerate(row))
            for row in block.table.rows
        ))  # fmt: skip
        drawn = svg(replace(block, table=veiled), themed=False)
        assert not re.search(r'aria-label="[^"]*\d%', drawn)
        assert any(isinstance(cell, Hidden) for row in veiled.rows for cell in row)
