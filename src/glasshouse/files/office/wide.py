"""Which columns and rows are used of a file with a column for each variable? Those that the scenario's layout says."""

from __future__ import annotations

import re
from collections.abc import Iterable

import polars as pl

from glasshouse.errors import InputError
from glasshouse.files.frames import Source, as_text
from glasshouse.files.places import PlaceColumns, place_columns
from glasshouse.scenarios.layout import Layout
from glasshouse.scenarios.load import Scenario


def placed(source: Source, scenario: Scenario) -> PlaceColumns:
    """The columns that say the place: the one that the layout names, or those that are called so."""
    layout = scenario.layout
    if layout is None or not layout.place:
        return place_columns(source, scenario.geography)
    if layout.place not in source.columns:
        raise InputError(f"{source.path.name}: no column '{layout.place}' (the place); found: {source.told}")
    return PlaceColumns(((layout.place, 0),), None)


def rows_of(frame: pl.DataFrame, layout: Layout) -> pl.DataFrame:
    """The rows that have the values of `only`."""
    for name, value in layout.only.items():
        if name in frame.columns:
            frame = frame.filter((as_text(frame[name]).str.strip_chars() == value).fill_null(False))
    return frame


def filters(source: Source, layout: Layout) -> list[str]:
    """The columns that say whether a row is used."""
    return [name for name in layout.only if name in source.columns]


def shapes(names: Iterable[str]) -> frozenset[str]:
    """How variables look: what looks like one must be one."""
    return frozenset(shape(name) for name in names)


def shape(name: str) -> str:
    """How a name looks, its digits aside: P0120003 and P0129999 look alike, POP100 does not."""
    return re.sub(r"\d", "0", name)
