"""What do verified claims look like? Who is singled out by how many columns, how surprising it is, which columns.

Pictures and tables hold sums over blocks only: never a block's code, never a description. A box of a picture
stands for ten claims or more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from glasshouse.assess.claims import EVERY, SINGLETON, SURPRISING, Results
from glasshouse.model.geography import plural
from glasshouse.report.charts import COLOURS, SHADES, Spec, small
from glasshouse.report.sections.claims_tables import LEAST, WORDS, tables
from glasshouse.report.tables import write_tables

_COLOUR = {SINGLETON: COLOURS[1], EVERY: COLOURS[0]}
_ANYONE = "if all alike"
_PADDING = {"left": 12, "right": 24, "top": 8, "bottom": 8}  # other fonts may be wider than the renderer's


@dataclass(frozen=True)
class Known:
    """Bars of blocks where somebody is known for certain, and boxes of how probable that was, side by side.

    `bars` has `k, claims` (a word for each group), `share, low, high`; `boxes` has `panel, k, claims` and the numbers
    of a box plot. Without boxes there are only the bars.
    """

    title: str
    subtitle: tuple[str, ...]  # in lines
    bars: pl.DataFrame
    boxes: pl.DataFrame
    place: str

    def spec(self) -> Spec:
        panels = [self._bars()]
        panels += [self._boxes(str(name), part) for (name,), part in self.boxes.group_by("panel", maintain_order=True)]
        title = {"text": self.title, "subtitle": list(self.subtitle), "offset": 14}
        return {"title": title, "hconcat": panels, "spacing": 32, "padding": _PADDING}

    def _group(self) -> Spec:
        drawn = [name for name, word in WORDS.items() if word in self.bars["claims"]]
        words = [WORDS[name] for name in drawn]
        scale = {"domain": words, "range": [_COLOUR[name] for name in drawn]}
        return {
            "x": {
                "field": "k", "type": "ordinal", "title": "columns that the claim names", "axis": {"labelAngle": 0},
                "scale": {"paddingInner": 0.25},
            },
            "xOffset": {"field": "claims", "type": "nominal", "sort": words},
            "color": {
                "field": "claims", "type": "nominal", "title": "claims about", "scale": scale,
                "legend": {"orient": "bottom", "direction": "horizontal", "columnPadding": 40, "symbolType": "square"},
            },
        }  # fmt: skip

    def _bars(self) -> Spec:
        group = self._group()
        y: Spec = {"field": "share", "type": "quantitative", "title": None}
        y["scale"] = {"domain": [0, 1.06], "nice": False}  # room for the number above a full bar
        y["axis"] = {"format": "%", "values": [0, 0.2, 0.4, 0.6, 0.8, 1]}
        ends = {**group, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": {"value": "#222222"}}
        text = {"field": "label", "type": "nominal"}
        above = {**group, "y": {**y, "field": "high"}, "text": text, "color": {"value": "#222222"}}
        layers: list[Spec] = [
            {"mark": {"type": "bar"}, "encoding": {**group, "y": y}},
            {"mark": {"type": "rule", "strokeWidth": 1.2}, "encoding": ends},
            {"mark": {"type": "text", "dy": -6, "fontSize": 9}, "encoding": above},
        ]
        title = [f"Share of {plural(self.place)} with at least", "one verified claim (higher is worse)"]
        label = (100 * pl.col("share")).round().cast(pl.Int64).cast(pl.String)  # without a sign there is room for two
        data = {"values": self.bars.with_columns(label.alias("label")).to_dicts()}
        width = 330 if self.boxes.height else 480  # alone, it is as wide as its title
        return {"title": _lines(title), "width": width, "height": 250, "data": data, "layer": layers}

    def _boxes(self, panel: str, data: pl.DataFrame) -> Spec:
        group, largest = self._group(), float(self.boxes["max"].max())  # type: ignore[arg-type]  # there is a box
        top = next(end for end in (0.1, 0.25, 0.5, 1.0) if largest <= end)
        ticks = [tick for tick in (0, 0.005, SURPRISING, 0.05, 0.1, 0.25, 0.5, 1) if tick <= top]
        # most are near 0, and some are 0: the root keeps them apart, where a logarithm could not show them
        y: Spec = {
            "type": "quantitative",
            "title": None,
            "scale": {"type": "sqrt", "domain": [0, 1.06 * top], "nice": False},
        }
        y["axis"] = {"format": ".1~%", "values": ticks}

        def between(low: str, high: str) -> Spec:
            return {**group, "y": {**y, "field": low}, "y2": {"field": high}}

        middle = {**group, "y": {**y, "field": "median"}, "color": {"value": "#000000"}}
        outer = {"type": "point", "size": 14, "strokeWidth": 1, "filled": False}
        layers: list[Spec] = [
            {"mark": {"type": "rule", "strokeWidth": 1.3}, "encoding": between("whisker_low", "whisker_high")},
            {"mark": {"type": "bar", "opacity": 1}, "encoding": between("q1", "q3")},
            {"mark": {"type": "tick", "thickness": 2}, "encoding": middle},
            {"mark": outer, "encoding": {**group, "y": {**y, "field": "max"}}},
            {
                "data": {"values": [{"at": SURPRISING}]},
                "mark": {"type": "rule", "strokeDash": [4, 4], "color": "#555555"},
                "encoding": {"y": {**y, "field": "at"}},
            },
        ]
        data_ = {"values": data.to_dicts()}
        title = ["Probability of a claim, guessed", f"from the {panel} (lower is worse)"]
        return {"title": _lines(title), "width": 270, "height": 250, "data": data_, "layer": layers}


@dataclass(frozen=True)
class Named:
    """A heat map for each group: how often claims of so many columns name each column."""

    title: str
    subtitle: tuple[str, ...]  # in lines
    data: pl.DataFrame  # panel, k, column, share
    columns: tuple[str, ...]  # from the top down

    def spec(self) -> Spec:
        panels = [self._panel(str(name), part) for (name,), part in self.data.group_by("panel", maintain_order=True)]
        empty: list[Spec] = [{"mark": "point", "data": {"values": []}}]
        title = {"text": self.title, "subtitle": list(self.subtitle), "offset": 14}
        return {"title": title, "hconcat": panels or empty, "spacing": 32, "padding": _PADDING}

    def _panel(self, name: str, data: pl.DataFrame) -> Spec:
        x = {"field": "k", "type": "ordinal", "title": "columns that the claim names", "axis": {"labelAngle": 0}}
        y = {"field": "column", "type": "nominal", "title": None, "sort": list(self.columns), "axis": {"ticks": False}}
        scale = {"domain": [0, 1], "range": list(SHADES)}
        shade = {"field": "share", "type": "quantitative", "title": "share of claims", "scale": scale}
        shade["legend"] = {"format": "%"}
        text = {"field": "share", "type": "quantitative", "format": ".0%"}
        readable = {"condition": {"test": "datum.share > 0.55", "value": "white"}, "value": "#1b1b1b"}
        layers: list[Spec] = [
            {"mark": {"type": "rect", "stroke": "white"}, "encoding": {"x": x, "y": y, "color": shade}},
            {"mark": {"type": "text", "fontSize": 10}, "encoding": {"x": x, "y": y, "text": text, "color": readable}},
        ]
        step = {"step": 44}, {"step": 22}
        data_ = {"values": data.to_dicts()}
        return {"title": small(name), "width": step[0], "height": step[1], "data": data_, "layer": layers}


def _lines(text: Sequence[str]) -> Spec:
    """The title of a panel in several lines."""
    return small("") | {"text": list(text)}


def picture(by_columns: pl.DataFrame, baselines: pl.DataFrame, place: str = "block") -> Known:
    """Figures 3 and 5: blocks with verified claims by k, and how probable those claims were under each prior.

    A prior without claims enough for a box has no panel.
    """
    claims = pl.col("multiplicity").replace_strict(WORDS).alias("claims")
    bars = by_columns.select(
        "k", claims, pl.col("block_share").alias("share"), low="block_share_low", high="block_share_high"
    )
    drawn = baselines.filter(pl.col("claims") >= LEAST).select(
        pl.col("prior").alias("panel"), "k", claims, "whisker_low", "q1", "median", "q3", "whisker_high", "max",
    )  # fmt: skip
    blocks, households = by_columns.select("blocks", "households").row(0) if by_columns.height else (0, 0)
    said = [f"{blocks:,} {plural(place)}, {households:,} households; thin black lines: 95% intervals."]
    if drawn.height:
        said += [
            "Boxes: quartiles and median; whiskers: furthest within 1.5 times their distance;",
            f"circle: largest; dashed: {SURPRISING:.0%}. Fewer than {LEAST} claims have no box.",
        ]
    return Known(_headline(by_columns, place), tuple(said), bars, drawn, place)


def _headline(by_columns: pl.DataFrame, place: str) -> str:
    """What the first bar says, in a sentence."""
    single = by_columns.filter(multiplicity=SINGLETON).sort("k")
    if single.is_empty():
        return "Nothing was asked about households"
    k, share = single.select("k", "block_share").row(0)
    return f"{share:.0%} of {plural(place)} have a household that {k} columns single out for certain"


def columns_picture(columns_used: pl.DataFrame) -> Named:
    """Figure 4: which columns the verified claims of k columns name; below, what it would be if all were alike."""
    names = tuple(columns_used["column"].unique(maintain_order=True))
    panel = pl.format("Claims about {}", pl.col("multiplicity").replace_strict(WORDS)).alias("panel")
    found = columns_used.select(panel, "k", "column", "share")
    even = found.select("panel", "k").unique(maintain_order=True)
    even = even.with_columns(pl.lit(_ANYONE).alias("column"), (pl.col("k") / max(len(names), 1)).alias("share"))
    return Named(
        f"Verified claims name {_rarest(columns_used)} least often" if names else "No claim is verified",
        ("Share of verified claims that name a column; one above the last row is given away more easily (worse).",),
        pl.concat([found, even]),
        (*names, _ANYONE),
    )


def _rarest(columns_used: pl.DataFrame) -> str:
    """The column in the fewest claims that single somebody out, or in the fewest of all if none do."""
    first = columns_used.filter(pl.col("multiplicity") == pl.col("multiplicity").first())
    counted = first.group_by("column", maintain_order=True).agg(pl.col("hits").sum())
    return str(counted["column"][counted["hits"].arg_min() or 0])


def write(folder: Path, results: Results, about: Sequence[str], place: str = "block") -> list[str]:
    """Write the tables of a run, exact for the office and rounded for everyone; the names of the files."""
    return [
        *write_tables(tables(results, place, public=False), folder, public=False, about=about),
        *write_tables(tables(results, place, public=True), folder, public=True, about=about),
    ]
