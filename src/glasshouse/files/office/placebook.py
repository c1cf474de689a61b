"""Which place does an office's code or name stand for? Found in a list of places, or by the length of the code."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from glasshouse.errors import InputError, unknown
from glasshouse.files.frames import need_columns, open_source, refuse_control
from glasshouse.limits import PLACES_LISTED
from glasshouse.model.geography import Geography

COLUMNS = ("level", "code", "name", "geoid")
At = tuple[str, str]  # a level, and a nested code


@dataclass(frozen=True)
class PlaceBook:
    """The codes and names of places, as an office writes them."""

    geography: Geography
    codes: dict[str, tuple[At, ...]] = field(default_factory=dict)
    names: dict[str, tuple[At, ...]] = field(default_factory=dict)
    listed: str = ""  # the name of the list, if there is one

    def find(self, text: str, level: str | None = None) -> At:
        """The level and the nested code of a place, by its code or else its name; the complaint has no line yet."""
        if level is not None and level not in self.geography.levels:
            raise unknown("level", level, self.geography.levels)
        if not self.listed:
            return self._by_length(text, level)
        for known in (self.codes, self.names):
            found = tuple(one for one in known.get(text, ()) if level in (None, one[0]))
            if len(found) == 1:
                return found[0]
            if found:
                said = " and ".join(f"{at} {geoid}" for at, geoid in found[:4])
                raise InputError(
                    f"'{text[:40]}' is {said} in {self.listed}; expected one place: use codes that differ, or a column "
                    "'level'"
                )
        raise InputError(f"'{text[:40]}' is no code or name of a place in {self.listed}; expected one that is listed")

    def _by_length(self, text: str, level: str | None) -> At:
        lengths = {size: name for name, size in self.geography.lengths.items()}
        at = level or lengths.get(len(text), self.geography.place)
        fault = self.geography.fault(text, at)
        if fault:
            every = ", ".join(f"{name} {size}" for name, size in self.geography.lengths.items())
            raise InputError(f"{at} '{text[:40]}' {fault if text else 'is empty'} (letters in a code: {every})")
        return at, text


def read_places(path: Path | None, geography: Geography) -> PlaceBook:
    """The list of places that belongs to a scenario: level, code, name, geoid. Without one, codes say it."""
    if path is None:
        return PlaceBook(geography)
    source = open_source(path)
    need_columns(source, ("level", "geoid"), "a list of places has level, code, name and geoid")
    columns = [name for name in COLUMNS if name in source.columns]
    if not {"code", "name"} & set(columns):
        raise InputError(f"{path.name}: columns 'code' and 'name' are missing; expected one of them at least")
    codes: dict[str, dict[At, None]] = {}
    names: dict[str, dict[At, None]] = {}
    texts: dict[At, str] = {}
    for chunk in source.chunks(columns):
        if chunk.first + chunk.frame.height > PLACES_LISTED:
            raise InputError(f"{path.name}: more than {PLACES_LISTED:,} places; expected fewer")
        frame = chunk.frame.select(pl.all().cast(pl.String).str.strip_chars().fill_null(""))
        for column in columns:
            refuse_control(source, chunk.first, frame[column])
        for line, row in enumerate(frame.iter_rows(named=True), start=chunk.first):
            level, geoid = row["level"], row["geoid"]
            if level not in geography.lengths:
                raise InputError(f"{source.where(line)}: {unknown('level', level, geography.lengths)}")
            fault = geography.fault(geoid, level)
            if fault:
                raise InputError(f"{source.where(line)}: geoid '{geoid[:40]}' {fault}")
            code = row.get("code", "")
            if texts.setdefault((level, geoid), code) != code:
                raise InputError(f"{source.where(line)}: {level} {geoid} was listed before with another code")
            for known, text in ((codes, code), (names, row.get("name", ""))):
                if text:
                    known.setdefault(text, {})[level, geoid] = None
    by_code, by_name = ({text: tuple(at) for text, at in known.items()} for known in (codes, names))
    return PlaceBook(geography, by_code, by_name, path.name)
