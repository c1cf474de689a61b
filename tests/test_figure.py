"""Do pictures show themselves? In a notebook, in a file, on the page; in one palette, and only when asked for."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import polars as pl
import pytest

from glasshouse.report.description import (
    HIDDEN,
    Chart,
    Column,
    Count,
    Curves,
    Field,
    Map,
    Measure,
    Picture,
    Scale,
    Section,
    Series,
    Shape,
    Share,
    Table,
    Tiles,
)
from glasshouse.report.figure import Figure
from glasshouse.report.framed import Axis, lines
from glasshouse.report.publish import publish
from glasshouse.report.render.curves import spec
from glasshouse.report.render.drawing import legend, pictures
from glasshouse.report.render.page import page
from glasshouse.report.theme import DARK, LIGHT
from tests.report_sample import sample

EVIL = "</svg><script>alert(1)</script>"
POINTS = Table(
    "points", "Points", (Column("of"), Column(EVIL), Column("x"), Column("y"), Column("published", published=True)),
    tuple(
        (of, panel, Measure(10.0**k, 0, "number"), Measure(0.1 * k, 500, "share", 0.1 * k - 0.05, 0.1 * k + 0.05),
         Measure(0.3, 0, "share"))
        for of in ("one", "two") for panel in ("left", EVIL) for k in range(1, 5)
    ),
    "points.csv", keys=2,
)  # fmt: skip
CURVES = Curves(
    "curves", "Curves", "They rise.", POINTS, 2, (Series(3, "ours", "line"), Series(4, "theirs", "ring")),
    Scale("persons", "log"), Scale("share", zero=True), group=0, panel=1, rule_y=0.25,
)  # fmt: skip
FIELD = Field(
    Table("tiles", "Tiles", tuple(map(Column, ("left", "right", "bottom", "top", "many"))),
          tuple((*(Measure(x, 0, "number") for x in corners), "1 to 9")
                for corners in ((1.0, 10.0, -0.05, -0.01), (10.0, 100.0, 0.1, 0.2))), "", keys=0),
    ("1 to 9", "10 to 99"), "blocks",
)  # fmt: skip
GRID = Table(
    "grid", "Grid", (Column("k"), Column("column"), Column("share")),
    tuple((str(k), name, Measure(0.1 * k, 500, "share")) for k in range(1, 6) for name in ("SEX", EVIL)), "grid.csv",
    keys=2,
)  # fmt: skip
TILES = Tiles("tiles", "Tiles", "Some are dark.", GRID, 2, 0, 1, "share")
WORDS = replace(TILES, table=replace(GRID, rows=tuple((*row[:2], f"say {row[1]}") for row in GRID.rows)))
CHANGES = Table(
    "changes", "Changes", (Column("place"), Column("at"), Column("change")),
    tuple((str(at), panel, Measure(by, 0, "number")) for panel in ("a", "b") for at, by in enumerate((5, -3, 0))), "",
    keys=2,
)  # fmt: skip
SHAPES = {str(at): Shape((float(at), float(at * at))) for at in range(3)}
MAP = Map("map", "Changes", "Up is more.", CHANGES, 2, SHAPES, "persons", 1, {"a": (("1", "0"),)}, False)
BOXES = Table(
    "boxes", "Boxes", (Column("k"), *map(Column, ("median", "low", "q1", "q3", "high", "max"))),
    (("2", *(Measure(x, 300, "share") for x in (0.2, 0.01, 0.1, 0.3, 0.5, 0.9))), ("3", *[None] * 6)), "",
)  # fmt: skip
BOX = Chart(
    "box", "Boxes", "Most are low.", BOXES, (Series(1, "claims", "box", (2, 3, 4, 5, 6)),), "probability", up=True,
    scale="root", rule=0.02,
)  # fmt: skip
BARS = Chart(
    "bars", "Bars", "",
    Table("bars", "Bars", (Column("place"), Column("more"), Column("fewer")),
          tuple((str(n), Measure(n, 0, "number") if n > 0 else None, None if n > 0 else Measure(n, 0, "number"))
                for n in range(30, -30, -1)), ""),
    (Series(1, "more", "bar"), Series(2, "fewer", "bar")), "change", up=True, most=100, bare=True,
)  # fmt: skip
EVERY: dict[str, Picture] = {
    "curves": CURVES, "field": replace(CURVES, group=None, panel=None, field=FIELD), "tiles": TILES, "words": WORDS,
    "map": MAP, "box": BOX, "bars": BARS,
}  # fmt: skip


@pytest.mark.parametrize("name", EVERY)
def test_a_figure_is_one_drawing_in_one_palette(name: str) -> None:
    figure = Figure.of(EVERY[name])
    drawn = figure.svg()
    ElementTree.fromstring(drawn)  # well-formed
    assert drawn == figure.svg() == figure._repr_svg_() and drawn in figure._repr_html_()
    assert "var(--" not in drawn and "<script" not in drawn
    assert "http:" not in drawn.replace("http://www.w3.org/2000/svg", "")
    colours = set(re.findall(r"#[0-9A-Fa-f]{3,8}\b(?!\))", drawn))
    assert colours <= set(LIGHT.values()), colours - set(LIGHT.values())
    assert EVERY[name].title in unescape(drawn)


def test_a_figure_is_saved_for_its_owner(tmp_path: Path) -> None:
    figure = Figure("Both", (CURVES, TILES))
    assert figure.save(tmp_path / "both.svg").read_text(encoding="utf-8") == figure.svg()
    assert figure.save(str(tmp_path / "both.png")).read_bytes() == figure.png()
    assert figure.png().startswith(b"\x89PNG")
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    both = unescape(figure.svg())
    assert "Both" in both and "Curves" in both and "They rise." in both and "Some are dark." in both


def test_figures_of_one_notebook_share_no_names() -> None:
    """A clip of one picture would else cut another."""
    one, two = (Figure.of(replace(CURVES, title=title)).svg() for title in ("One", "Two"))
    ids = [set(re.findall(r'id="([^"]+)"', drawn)) for drawn in (one, two)]
    assert ids[0] and not ids[0] & ids[1]


def test_a_table_shows_itself_in_a_notebook() -> None:
    table = Table(
        "t", "A <b>", (Column("k"), Column("n", above=("", "over"))), ((EVIL, HIDDEN), ("x", Share(1, 2, 0.1, 0.9))), ""
    )
    shown = table._repr_html_()
    assert "<script" not in shown and "A &lt;b&gt;" in shown and "50.0% (10.0% to 90.0%)" in shown
    ElementTree.fromstring(shown)


@pytest.mark.parametrize("name", EVERY)
def test_the_page_draws_every_picture(name: str) -> None:
    block = EVERY[name]
    report = replace(sample(), sections=(Section("one", "One", "Lead.", (block,)),), verdicts=())
    shown = page(report)
    assert shown.count('<figure class="block"') == 1 and "<svg " in shown and 'class="live' not in shown
    assert EVIL not in shown and "Numbers" in shown
    public = publish(report, 10)
    assert publish(public, 10) == public
    for section in public.sections:
        assert all(getattr(one, "field", None) is None for one in section.blocks)  # tiles of single places


def test_panels_groups_and_intervals_are_drawn() -> None:
    parts = dict(pictures(CURVES, narrow=False))
    assert list(parts) == ["left", EVIL]
    assert [key.label for key in legend(CURVES)] == ["one", "two"]
    layers = spec(CURVES, POINTS.rows[:4], narrow=False)["layer"]
    kinds = [layer["mark"]["type"] for layer in layers]
    assert kinds.count("area") == kinds.count("line") == 1 and "rule" in kinds
    line = next(layer for layer in layers if layer["mark"]["type"] == "line")
    assert [point["x"] for point in line["data"]["values"]] == [10, 100, 1000, 10000]
    assert line["encoding"]["x"]["scale"]["type"] == "log"
    hidden = replace(POINTS, rows=tuple((*row[:3], HIDDEN, row[4]) for row in POINTS.rows))
    assert not [one for one in spec(CURVES, hidden.rows, narrow=False)["layer"] if one["mark"]["type"] == "line"]


def test_the_unchanged_the_more_and_the_fewer_are_told_apart() -> None:
    labels = [key.label for key in legend(MAP)]
    assert labels == ["more (at most 5)", "fewer (at most -3)", "unchanged"]
    (_, first), (_, second) = pictures(MAP, narrow=False)
    assert first.count("<path") == 3 and second.count("<path") == 2  # a line leads to the place that receives
    assert all(f"{code}, a: {change}" in first for code, change in (("0", "5"), ("1", "-3"), ("2", "0")))


def test_lines_of_a_frame() -> None:
    frame = pl.DataFrame({"of": ["a", "a", "b"], "x": [1, 2, 1], "y": [0.5, None, 0.7]})
    (curves,) = lines(
        "Title", frame, Axis("x", "ex", log=True), Axis("y", "why"), Axis("of", "kind"), points=True
    ).pictures
    assert isinstance(curves, Curves) and [row[0] for row in curves.table.rows] == ["kind: a", "kind: a", "kind: b"]
    assert curves.table.rows[1][2] is None and curves.across.kind == "log" and len(curves.series) == 2


def test_both_palettes_have_the_same_names() -> None:
    assert list(LIGHT) == list(DARK)


def test_nothing_that_draws_is_loaded_before_it_draws() -> None:
    """Heavy imports are lazy: a result can offer a figure without paying for it."""
    code = (
        "import sys\n"
        "from glasshouse.report import beside, figure, framed, publish\n"
        "from glasshouse.report.sections import answers, certainty, claims, comparison, frontier, leaks, methods\n"
        "from glasshouse.report.sections import occupancy, people, reidentification, variability\n"
        "print(sorted({'vl_convert', 'xlsxwriter', 'jinja2'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_counts_are_people_unless_said_otherwise() -> None:
    few = replace(TILES, table=replace(GRID, rows=tuple((*row[:2], Count(3)) for row in GRID.rows)))
    report = replace(sample(), sections=(Section("one", "One", "Lead.", (few,)),), verdicts=())
    (left,) = publish(report, 10).sections[0].blocks
    assert isinstance(left, Table) and [len(row) for row in left.rows] == [2] * len(GRID.rows)  # the names alone
