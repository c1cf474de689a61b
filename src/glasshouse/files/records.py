"""How do record files become levels? Any spelling the scenario declares, in pieces, checked value by value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.errors import InputError
from glasshouse.files.frames import Chunk, Source, Watch, as_text, open_source, unwatched
from glasshouse.files.places import PlaceColumns, check_codes, place_columns, read_codes
from glasshouse.model.records import Codes, satisfies
from glasshouse.model.release import attributes_counted
from glasshouse.model.schema import Attribute, Reading, Schema
from glasshouse.scenarios.load import Scenario
from glasshouse.text import is_whole


@dataclass(frozen=True)
class RecordFile:
    """A file of records that a scenario can read: where the place is, and which columns give each attribute."""

    source: Source
    scenario: Scenario
    place: PlaceColumns
    readings: dict[str, Reading]  # an attribute that no table looks at has none
    left_out: Counter[str] = field(default_factory=Counter, compare=False)  # records passed over so far, by column

    def frames(
        self, watch: Watch = unwatched, *, flag: str | None = None, names: Sequence[str] = ()
    ) -> Iterator[pl.DataFrame]:
        """The records in pieces: `geoid`, for every attribute its level as a number, and a 0/1 column `flag`.

        Columns in `names` are passed on as text; a blank is null.
        """
        wanted = dict.fromkeys([*self.place.names, *(c for r in self.readings.values() for c in r.columns), *names])
        wanted |= {} if flag is None else {flag: None}
        wanted |= {name: None for name in self.scenario.leave_out if name in self.source.columns}
        geography = self.scenario.geography
        for chunk in self.source.chunks(wanted):
            codes = read_codes(self.source, chunk, self.place)
            check_codes(self.source, chunk.first, codes, geography, geography.place)
            columns = [codes]
            for attribute in self.scenario.schema.attributes:
                levels = np.zeros(chunk.frame.height, np.int16)
                if attribute.name in self.readings:
                    levels = _levels(self.source, chunk, attribute, self.readings[attribute.name])
                columns.append(pl.Series(attribute.name, levels))
            if flag is not None:
                columns.append(pl.Series(flag, _positions(self.source, chunk, flag, ["0", "1"])))
            for name in names:
                text = as_text(chunk.frame[name]).str.strip_chars()
                columns.append(text.set(text == "", None))
            frame, kept = pl.DataFrame(columns), self._kept(chunk)
            self._refuse_impossible(frame, chunk.first, kept)
            watch(chunk.done)
            yield frame if kept.all() else frame.filter(kept)

    def _kept(self, chunk: Chunk) -> NDArray[np.bool_]:
        """Which rows are records of the scenario; the others (group quarters in a file of units) are counted."""
        kept = np.ones(chunk.frame.height, np.bool_)
        for name, codes in self.scenario.leave_out.items():
            if name in chunk.frame.columns:
                text = as_text(chunk.frame[name]).str.strip_chars()
                out = text.is_in(codes).fill_null(False).to_numpy() & kept
                self.left_out[name] += int(out.sum())
                kept &= ~out
        return kept

    def _refuse_impossible(self, frame: pl.DataFrame, first: int, kept: NDArray[np.bool_]) -> None:
        """Refuse the first record that the schema says cannot exist, with the reason."""
        schema = self.scenario.schema
        for zero in schema.impossible:
            if set(zero.predicate.by_attribute) <= set(self.readings):
                found = satisfies(schema, level_matrix(frame, schema), zero.predicate) & kept
                if found.any():
                    description = schema.describe(zero.predicate)
                    raise InputError(
                        f"{self.source.where(first + int(found.argmax()))}: {description} cannot be: {zero.reason}"
                    )


def level_matrix(frame: pl.DataFrame, schema: Schema) -> Codes:
    """The levels of a frame of records, a row per record and a column per attribute."""
    return np.column_stack([frame[attribute.name].to_numpy() for attribute in schema.attributes])


def record_frame(
    scenario: Scenario,
    places: Sequence[str],
    place: NDArray[np.int32],
    codes: Codes,
    bins: Mapping[str, NDArray[np.int64]],
) -> pl.DataFrame:
    """Records as files spell them: the place, the columns of every attribute, then columns of bins."""
    columns = [pl.Series(scenario.geography.place, places, dtype=pl.String).gather(place)]
    for attribute in scenario.schema.attributes:
        reading = attribute.readings[0]
        level = codes[:, scenario.schema.position[attribute.name]].astype(np.int32)
        for number, column in enumerate(reading.columns):
            spelled = [level_codes[0][number] for level_codes in reading.codes]
            whole = all(is_whole(code) and str(int(code)) == code for code in spelled)
            known = (
                pl.Series(column, [int(code) for code in spelled], dtype=_width(spelled))
                if whole
                else pl.Series(column, spelled)
            )
            columns.append(known.gather(level))
    return pl.DataFrame([*columns, *(pl.Series(column, group, dtype=pl.Int16) for column, group in bins.items())])


def _width(codes: Sequence[str]) -> type[pl.DataType]:
    """Codes are small, as a rule."""
    return pl.Int16 if max(map(int, codes)) < 2**15 else pl.Int64


def open_records(path: Path, scenario: Scenario, attributes: Collection[str] | None = None) -> RecordFile:
    """Look at a record file's header and find every attribute the scenario's tables need, or those named."""
    source = open_source(path)
    if {"variable", "value"} <= set(source.columns):
        raise InputError(
            f"{path.name}: has columns 'variable' and 'value': published tables, not records; expected records"
        )
    geography = scenario.geography
    place = place_columns(source, geography)
    if place.level not in (None, geography.place):
        raise InputError(f"{path.name}: records are placed by {place.level}; expected a column '{geography.place}'")
    readings = {}
    needed = scenario.attributes_used if attributes is None else attributes
    for attribute in scenario.schema.attributes:
        if attribute.name in needed:
            readings[attribute.name] = _reading(source, attribute, scenario, counted=attributes is None)
    return RecordFile(source, scenario, place, readings)


def _reading(source: Source, attribute: Attribute, scenario: Scenario, *, counted: bool) -> Reading:
    """The first spelling of an attribute whose columns the file has."""
    for reading in attribute.readings:
        if all(column in source.columns for column in reading.columns):
            return reading
    preferred = attribute.readings[0].columns
    missing = next(column for column in preferred if column not in source.columns)
    if not counted:
        raise InputError(
            f"{source.path.name}: column '{missing}' is missing; it says '{attribute.name}', which is needed of every "
            f"record here; found: {source.told}"
        )
    users = [table.name for table in scenario.tables if attribute.name in attributes_counted(table)]
    spare = [table.name for table in scenario.tables if table.name not in users]
    remedy = f"; or leave out what needs it: --tables {','.join(spare)}" if spare else ""
    raise InputError(
        f"{source.path.name}: column '{missing}' is missing; it says '{attribute.name}', which {', '.join(users[:4])}"
        f"{' and others' if len(users) > 4 else ''} count{remedy}; found: {source.told}"
    )


def _levels(source: Source, chunk: Chunk, attribute: Attribute, reading: Reading) -> NDArray[np.int16]:
    """Translate columns into level numbers: each column to the position of its code, then all positions together."""
    position = np.zeros(chunk.frame.height, np.int64)
    known = [_plain([code for level in reading.codes for code in level], i) for i in range(len(reading.columns))]
    spellings = [list(dict.fromkeys(plain.values())) for plain in known]
    for name, codes in zip(reading.columns, spellings, strict=True):
        position = position * len(codes) + _positions(source, chunk, name, codes)
    shape = [len(codes) for codes in spellings]
    table = np.full(shape, -1, np.int16)
    places = [{code: place for place, code in enumerate(codes)} for codes in spellings]
    for level, spelled in enumerate(reading.codes):
        for code in spelled:
            at = zip(places, known, code, strict=True)
            table[tuple(place[plain[part]] for place, plain, part in at)] = level
    levels: NDArray[np.int16] = table.reshape(-1)[position]
    if len(levels) and levels.min() < 0:
        line = chunk.first + int(np.argmin(levels))
        raise InputError(
            f"{source.where(line)}: {_all_of(reading.columns)} is no level of '{attribute.name}'{_hint(reading)}"
        )
    return levels


def _plain(codes: Sequence[tuple[str, ...]], column: int) -> dict[str, str]:
    """The codes of a column, each with the one that stands for it: 01 is 1, where all are whole numbers."""
    parts = dict.fromkeys(code[column] for code in codes)
    numbers = all(map(is_whole, parts))
    return {part: str(int(part)) if numbers else part for part in parts}


def _positions(source: Source, chunk: Chunk, name: str, codes: list[str]) -> NDArray[np.int64]:
    column = chunk.frame[name]
    numbers = all(map(is_whole, codes))
    found: pl.Series
    if numbers:
        if column.dtype == pl.String:
            column = column.str.strip_chars()
        values = column.cast(pl.Float64 if column.dtype.is_float() else pl.Int64, strict=False)
        table = pl.Series(
            [float(code) if values.dtype == pl.Float64 else int(code) for code in codes], dtype=values.dtype
        )
        lowest, highest = int(codes[0]), int(codes[-1])
        if values.dtype == pl.Int64 and all(int(code) == at for at, code in enumerate(codes, lowest)):
            found = (values - lowest).set(
                ~values.is_between(lowest, highest), None
            )  # the codes count up: no look-up needed
        else:
            found = values.replace_strict(table, pl.Series(range(len(codes)), dtype=pl.Int64), default=None)
    else:
        text = column.cast(pl.String).str.strip_chars()
        found = text.replace_strict(codes, list(range(len(codes))), default=None, return_dtype=pl.Int64)
    if found.null_count():
        at = int(found.is_null().arg_max() or 0)
        value = chunk.frame[name][at]
        said = "empty" if value is None else repr(str(value)[:20])
        expected = _expected(codes, numbers)
        raise InputError(f"{source.where(chunk.first + at)}: column '{name}' is {said}; expected {expected}")
    return found.to_numpy()


def _expected(codes: list[str], numbers: bool) -> str:
    if numbers and len(codes) > 2:
        return f"a whole number from {codes[0]} to {codes[-1]}"
    return " or ".join(codes) if len(codes) < 9 else f"one of {len(codes)} codes, such as {codes[0]}"


def _all_of(columns: tuple[str, ...]) -> str:
    return " ".join(columns)


def _hint(reading: Reading) -> str:
    """Six flags that are all 0 are the usual mistake."""
    flags = len(reading.columns) > 1 and all(set(code) <= {"0", "1"} for level in reading.codes for code in level)
    return " (all are 0); expected at least one 1" if flags else "; the combination of codes is not known"
