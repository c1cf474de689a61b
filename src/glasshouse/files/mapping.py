"""Which area does a place belong to, where the code does not say? A file of two columns tells."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from glasshouse.errors import InputError
from glasshouse.files.frames import need_columns, open_source
from glasshouse.files.places import check_codes, short_codes
from glasshouse.model.geography import Geography


def read_mapping(path: Path, level: str, geography: Geography) -> dict[str, str]:
    """Read the area of every place: columns named after the place level and the new level."""
    source = open_source(path)
    need_columns(source, (geography.place, level), f"a mapping needs '{geography.place}' and '{level}'")
    codes: dict[str, str] = {}
    for chunk in source.chunks((geography.place, level)):
        places, areas = (chunk.frame[name].cast(pl.String).str.strip_chars() for name in (geography.place, level))
        places = short_codes(source, chunk.first, geography.place, places)
        check_codes(source, chunk.first, places, geography, geography.place)
        check_codes(source, chunk.first, areas, geography.with_mapping(level, {}), level)
        for line, (place, area) in enumerate(zip(places, areas, strict=True), start=chunk.first):
            if codes.setdefault(place, area) != area:
                raise InputError(f"{source.where(line)}: {geography.place} {place} was put into another {level} before")
    return codes
