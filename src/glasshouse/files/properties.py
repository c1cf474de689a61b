"""How do files of subsidised properties become statistics by block?

The file is HUD's Picture of Subsidized Households at project level, or one of ours with the same columns. Its shares
are percentages, of households or of units as the scenario says, printed with as many decimals as the longest value of
their column has. Nothing is geocoded: the block is a column or is in a second file. HUD's codes (-1 missing, -4
suppressed, -5 poorly reported) are told apart before a number is used.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.errors import InputError, unknown
from glasshouse.files.frames import Chunk, Source, as_text, need_columns, open_source
from glasshouse.files.places import PlaceColumns, check_codes, place_columns, read_codes
from glasshouse.files.shares import within_rounding
from glasshouse.model.geography import Geography
from glasshouse.scenarios.occupancy import Occupancy

MISSING, SUPPRESSED, POORLY_REPORTED = -1, -4, -5
_CODES = (MISSING, SUPPRESSED, POORLY_REPORTED)
_COUNTS = ("total_units", "number_reported", "people_total")
_KEY = {"key": ("property_id", "code", "development_code")}
_PROGRAM = {name: (name,) for name in ("program_label", "program", "sub_program")}
_SUM_OF_PROGRAMS = "summary of all hud programs"
_MOST = 10**12  # convention 7
_A_COUNT = r"^(-?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,15}))(?:\.0*)?$"
_A_SHARE = r"^(-?[0-9]{1,3})(?:\.([0-9]*?)0*)?\s*%?$"  # the zeros at the end say nothing: programs add them
_DECIMALS = 6
_NO_COUNT = "a share that no number of households gives"


@dataclass(frozen=True)
class PropertyFile:
    """The properties that can be used, and how many cannot, by reason."""

    frame: pl.DataFrame  # by block and property_id; counts and shares are whole numbers, null where unknown
    left_out: Mapping[str, int]  # rows, by the first reason that applies
    properties: int  # rows about one property: neither sums over programs nor parts of another row
    absent: tuple[str, ...]  # counts and shares that the file has no column of; null throughout
    decimals: Mapping[str, int] = field(default_factory=dict)  # of each share: its numbers are of the last one printed
    spelled: Mapping[str, str] = field(default_factory=dict)  # what the file calls a share, if otherwise than we do

    def printed(self, columns: Iterable[str]) -> dict[str, list[dict[str, str]]]:
        """A line for each property of a place, as text with the decimals of its columns; blank is unknown."""
        found: dict[str, list[dict[str, str]]] = {}
        for row in self.frame.iter_rows(named=True):
            named = re.sub(r"[^0-9A-Za-z._-]", "_", str(row["property_id"] or ""))
            numbers = {name: _decimal(row.get(name), self.decimals.get(name, 0)) for name in columns}
            found.setdefault(row["block"], []).append({"place": row["block"], "property": named, **numbers})
        return found


def _decimal(value: int | None, decimals: int) -> str:
    if value is None or not decimals:
        return "" if value is None else str(value)
    return f"{value // 10**decimals}.{value % 10**decimals:0{decimals}d}"


def read_properties(
    path: Path,
    geography: Geography,
    shares: Mapping[str, Sequence[str]],
    *,
    blocks: Path | None = None,
    programs: Sequence[str] = (),
    exclusive: Sequence[Sequence[str]] = (),
    counts: Mapping[str, Sequence[str]] | None = None,
    of_units: Collection[str] = (),
) -> PropertyFile:
    """Read the properties of a file, with these shares: our name of each, and other spellings of it.

    `blocks` is a file with the block of each property; it goes before a block in the file itself. `programs` are the
    labels of programs to keep, all by default. `exclusive` lists shares that are parts of one whole. `counts` are
    further counts that a file may have, and `of_units` the shares that may be of units instead of households. Values
    are checked in rows that no earlier reason leaves out.
    """
    for name in (name for group in exclusive for name in group):
        if name not in shares:
            raise unknown("share", name, shares)
    further = {name: other for name, other in (counts or {}).items() if name not in _COUNTS}
    numbers: dict[str, Sequence[str]] = {name: (name, *shares.get(name, ())) for name in (*_COUNTS, *shares)}
    sheet = _read(
        path,
        {**numbers, **{name: (name, *other) for name, other in further.items()}, **_KEY, **_PROGRAM},
        None if blocks else geography,
    )
    absent = tuple(name for name in numbers if name not in sheet.names)
    if {"people_total", *shares} <= set(absent):
        raise InputError(
            f"{path.name}: no share, no people_total; is this a file of properties? found: {sheet.source.told}"
        )
    if "number_reported" in absent:
        need_columns(sheet.source, ("number_reported",), "shares are of the households that report")
    reasons = _not_asked_for(sheet, programs)
    codes = sheet.codes(geography, _any(reasons)) if blocks is None else _looked_up(sheet, blocks, geography)
    reasons["no block"] = codes.is_null()
    used = ~_any(reasons)
    decimals = {name: sheet.decimals(name, used) for name in shares}
    read = [name for name in (*numbers, *further) if name in numbers or name in sheet.names]
    values = pl.DataFrame([sheet.numbers(name, used, decimals.get(name)) for name in read])
    reasons |= _not_published(values.drop("total_units"))
    reasons["shares add up to more than 100"] = _too_much(values, exclusive, decimals)
    reasons[_NO_COUNT] = _no_count(values, decimals, of_units)
    known = values.select(pl.when(pl.all() >= 0).then(pl.all()))
    frame = pl.DataFrame([sheet.identities(), codes.alias("block"), *known]).filter(~_any(reasons))
    left_out = _counted(reasons)
    lines = sheet.rows.frame.height - left_out.get("summary row", 0) - left_out.get("part of another row", 0)
    spelled = {name: _plain(own) for name in shares if (own := sheet.names.get(name)) and _plain(own) != name}
    return PropertyFile(frame.sort("block", "property_id", *known.columns), left_out, lines, absent, decimals, spelled)


def open_properties(
    path: Path, geography: Geography, occupancy: Occupancy, blocks: Path | None, programs: Sequence[str]
) -> PropertyFile:
    """The properties of a file, with the columns that some model of a scenario looks at."""
    return read_properties(
        path, geography, occupancy.shares, blocks=blocks, programs=programs, exclusive=occupancy.wholes,
        counts=occupancy.counts, of_units=occupancy.shares_of_units,
    )  # fmt: skip


@dataclass(frozen=True)
class PropertyNumbers:
    """What a file says of its properties, a row each, in its order; negative (HUD's codes) where nothing is said."""

    source: Source
    units: tuple[str, ...]  # the name of each row, which no other has
    names: Mapping[str, str]  # what the file calls a column, by our name
    values: Mapping[str, NDArray[np.int64]]  # of the columns that it has


def read_numbers(
    path: Path, shares: Mapping[str, Sequence[str]], exclusive: Sequence[Sequence[str]] = ()
) -> PropertyNumbers:
    """Read every number of a file in which a household is counted once: to be published otherwise, all or nothing.

    So rows that count households of other rows again are refused, and columns in another spelling, which may count
    households that other shares count too (the Hispanic, before 2014).
    """
    numbers: dict[str, Sequence[str]] = {name: (name, *shares.get(name, ())) for name in (*_COUNTS, *shares)}
    sheet = _read(path, {**numbers, **_KEY, **_PROGRAM}, None)
    if {"people_total", *shares}.isdisjoint(sheet.names):
        raise InputError(
            f"{path.name}: no share, no people_total; is this a file of properties? found: {sheet.source.told}"
        )
    need_columns(sheet.source, [] if "number_reported" in sheet.names else ["number_reported"], "shares are of those")
    need_columns(sheet.source, [] if "key" in sheet.names else ["property_id"], "or 'code': which property a row is")
    for name in shares:
        if name in sheet.names and _plain(sheet.names[name]) != name:
            raise InputError(
                f"{path.name}: column '{sheet.names[name]}' may count households that other shares count too; rename "
                f"it '{name}' if it does not"
            )
    _refuse_rows(sheet, sheet.text("key").is_null(), "the property has no name; expected one of its own")
    for reason, rows in _not_asked_for(sheet, ()).items():
        _refuse_rows(sheet, rows, f"{reason}, whose households other rows count too; leave such rows out")
    every = pl.Series([True] * sheet.rows.frame.height, dtype=pl.Boolean)
    for name in shares:
        _refuse_rows(
            sheet, sheet.longer(name, 0), f"column '{sheet.names.get(name)}' has decimals; expected whole percentages"
        )
    values = pl.DataFrame([sheet.numbers(name, every, 0 if name in shares else None) for name in numbers])
    _refuse_rows(
        sheet,
        _too_much(values, exclusive, {}),
        "shares add up to more than 100; expected parts of one whole, each once",
    )
    said = values.select(pl.any_horizontal((pl.col("people_total", *shares) > 0).fill_null(False))).to_series()
    _refuse_rows(
        sheet, said & (values["number_reported"].fill_null(0) <= 0), "numbers of households and no number_reported"
    )
    known = {name: values[name].fill_null(MISSING).to_numpy() for name in numbers if name in sheet.names}
    units = zip(sheet.text("key"), *(column.fill_null("") for column in sheet.programs()), strict=True)
    return PropertyNumbers(sheet.source, tuple("/".join(unit).rstrip("/") for unit in units), sheet.names, known)


@dataclass(frozen=True)
class _Sheet:
    """All rows of a file, the file's own names of the columns that it has, and where the block is."""

    source: Source
    rows: Chunk
    names: Mapping[str, str]
    place: PlaceColumns

    def text(self, name: str) -> pl.Series:
        """A column as text; null where nothing applies, and throughout if there is no such column."""
        if name not in self.names:
            return pl.Series(name, [None] * self.rows.frame.height, dtype=pl.String)
        return _text(self.rows.frame[self.names[name]]).alias(name)

    def identities(self) -> pl.Series:
        """The key of each property, or the number of its row."""
        numbers = pl.Series([f"{row:06d}" for row in range(1, self.rows.frame.height + 1)], dtype=pl.String)
        return self.text("key").zip_with(self.text("key").is_not_null(), numbers).alias("property_id")

    def programs(self) -> tuple[pl.Series, pl.Series]:
        """The program and the part of it; the label stands for the program if that has no column."""
        return self.text("program" if "program" in self.names else "program_label"), self.text("sub_program")

    def codes(self, geography: Geography, skipped: pl.Series) -> pl.Series:
        """The block of each row, null for a blank; well formed except in the rows that are skipped."""
        frame = self.rows.frame
        plain = [_text(frame[name]) for name in self.place.names if frame[name].dtype == pl.String]
        codes = read_codes(self.source, replace(self.rows, frame=frame.with_columns(plain)), self.place)
        checked = codes.set(skipped | codes.is_null(), "0" * geography.lengths[geography.place])
        check_codes(self.source, self.rows.first, checked, geography, geography.place)
        return codes

    def longer(self, name: str, decimals: int) -> pl.Series:
        """Which values of a share have more decimals than these, zeros at the end aside?"""
        return (self.text(name).str.extract(_A_SHARE, 2).str.len_bytes() > decimals).fill_null(False)

    def decimals(self, name: str, used: pl.Series) -> int:
        """How many decimals a share is printed with: as many as the longest of its values has in the rows used."""
        found = self.text(name).filter(used).str.extract(_A_SHARE, 2).str.len_bytes().max()
        most = int(found) if isinstance(found, int) else 0
        if most > _DECIMALS:
            row = int((used & self.longer(name, _DECIMALS)).arg_max() or 0)
            raise InputError(
                f"{self.source.where(self.rows.first + row)}: column '{self.names[name]}' is "
                f"'{self.text(name)[row][:20]}'; expected a percentage with at most {_DECIMALS} decimals"
            )
        return most

    def numbers(self, name: str, used: pl.Series, decimals: int | None) -> pl.Series:
        """A column of counts, or of shares with so many decimals, and HUD's codes; null for missing.

        Refuses the first other value in a row used. Shares are whole numbers of their last decimal.
        """
        text = self.text(name)
        found = _counts(text) if decimals is None else _shares(text, decimals)
        top = _MOST if decimals is None else 100 * 10**decimals
        bad = used & text.is_not_null() & ~(found.is_between(0, top) | found.is_in(_CODES)).fill_null(False)
        if bad.any():
            row = int(bad.arg_max() or 0)
            wanted = f"a whole number from 0 to {_MOST:,}" if decimals is None else "a percentage 0 to 100"
            raise InputError(
                f"{self.source.where(self.rows.first + row)}: column '{self.names[name]}' is '{text[row][:20]}'; "
                f"expected {wanted}, or HUD's codes -1, -4, -5 or NA; write the value as HUD publishes it"
            )
        return found.set(found == MISSING, None)


def _counts(text: pl.Series) -> pl.Series:
    """Whole numbers, negative ones too; null where it is none."""
    return text.str.extract(_A_COUNT).str.replace_all(",", "").cast(pl.Int64)


def _shares(text: pl.Series, decimals: int) -> pl.Series:
    """Percentages as whole numbers of their last decimal, and HUD's codes as they are; null where it is neither."""
    head, part = pl.col("text").str.extract(_A_SHARE, 1), pl.col("text").str.extract(_A_SHARE, 2).fill_null("")
    tail = part.str.slice(0, decimals).str.pad_end(decimals, "0").cast(pl.Int64) if decimals else pl.lit(0, pl.Int64)
    whole = head.cast(pl.Int64)
    share = pl.when(~head.str.starts_with("-")).then(whole * 10**decimals + tail)
    code = (part == "") & whole.is_in(_CODES)
    return text.to_frame("text").select(pl.when(code).then(whole).otherwise(share)).to_series().alias(text.name)


def _read(path: Path, spellings: Mapping[str, Sequence[str]], geography: Geography | None) -> _Sheet:
    """Read those of the columns that a file has, and the block's if its geography is given."""
    if path.name.lower().endswith((".xlsx", ".xls", ".xlsb")):
        raise InputError(f"{path.name}: workbooks are not read; save as CSV (UTF-8), then give that file")
    source = open_source(path)
    names = {name: own for name, known in spellings.items() if (own := _own_name(source, known)) is not None}
    place = _place(source, geography) if geography else PlaceColumns((), None)
    chunks = list(source.chunks(dict.fromkeys([*names.values(), *place.names]) or source.columns[:1]))
    if not chunks:
        raise InputError(f"{path.name}: a header and no rows; expected a row per property")
    return _Sheet(source, Chunk(pl.concat([chunk.frame for chunk in chunks]), chunks[0].first, 1.0), names, place)


def _plain(name: str) -> str:
    """The name of a column in lower case, blanks inside made underscores, without blanks or a mark (BOM) around it."""
    return "_".join(name.replace("\ufeff", "").lower().split())


def _own_name(source: Source, spellings: Sequence[str]) -> str | None:
    """What the file calls a column; None if it has none. Two spellings at once are refused."""
    known = {_plain(name) for name in spellings}
    found = [name for name in source.columns if _plain(name) in known]
    if len(found) > 1:
        raise InputError(
            f"{source.path.name}: columns '{found[0]}' and '{found[1]}' both say '{spellings[0]}'; remove one of them"
        )
    return found[0] if found else None


def _place(source: Source, geography: Geography) -> PlaceColumns:
    """The columns of the block's code, under the file's own names."""
    plain = replace(source, columns=tuple(_plain(name) for name in source.columns))
    own = PlaceColumns((("block_geoid", 0),), geography.place)
    try:
        place = own if "block_geoid" in plain.columns else place_columns(plain, geography)
    except InputError as error:
        raise InputError(
            f"{error}; a second file (--property-blocks) may have property_id or code, and {geography.place}"
        ) from None
    if place.level not in (None, geography.place):
        raise InputError(
            f"{source.path.name}: properties are placed by {place.level}; expected a column '{geography.place}' with "
            f"the code of the {geography.place}; add it, or give a second file with property_id and {geography.place}"
        )
    columns = tuple((_own_name(source, (name,)) or name, width) for name, width in place.columns)
    return replace(place, columns=columns, others=())  # tracts of HUD's files may be those of another census


def _text(column: pl.Series) -> pl.Series:
    """Values as text; a blank or NA is null."""
    found = as_text(column).str.strip_chars()
    return found.set(found.str.to_uppercase().is_in(("", "NA", "N/A")), None)


def _looked_up(sheet: _Sheet, path: Path, geography: Geography) -> pl.Series:
    """The block of each property, from a second file; null for one that is not in it."""
    if "key" not in sheet.names:
        need_columns(sheet.source, ("property_id",), "or 'code': the file of blocks goes by it")
    other = _read(path, _KEY, geography)
    if "key" not in other.names:
        need_columns(other.source, ("property_id",), "or 'code': it says which property a block is of")
    keys = other.text("key")
    codes = other.codes(geography, keys.is_null())
    rows: dict[str | None, int] = {}
    for row, key in enumerate(keys):
        if key is not None and codes[rows.setdefault(key, row)] != codes[row]:
            raise InputError(
                f"{other.source.where(other.rows.first + row)}: property '{key[:40]}' has another {geography.place} "
                f"than in {other.source.counted_in} {other.rows.first + rows[key]}; expected one of each property"
            )
    found = [rows.get(key) for key in sheet.text("key")]
    if all(row is None for row in found):
        raise InputError(
            f"{path.name}: no property of {sheet.source.path.name} is in it; compare '{other.names['key']}' there with "
            f"'{sheet.names['key']}' (were leading zeros lost?)"
        )
    return codes.gather(pl.Series(found, dtype=pl.UInt32))


def _not_asked_for(sheet: _Sheet, programs: Sequence[str]) -> dict[str, pl.Series]:
    """Rows that would count a household twice, and rows of other programs."""
    label = sheet.text("program_label").str.to_lowercase()
    summed = (label == _SUM_OF_PROGRAMS).fill_null(False)
    _refuse_twice(sheet, ~summed)
    whole = pl.col("sub_program").is_null()  # HUD's splits of a program stand beside the row of the whole program
    split = pl.col("key").is_not_null() & ~whole & whole.any().over("key", "program")
    frame = pl.DataFrame([sheet.text("key"), sheet.programs()[0].alias("program"), sheet.programs()[1]])
    if programs and "program_label" not in sheet.names:
        need_columns(sheet.source, ("program_label",), "programs to keep are chosen by it")
    wanted = [name.strip().lower() for name in programs]
    there = sheet.text("program_label").filter(~summed).drop_nulls().unique()
    for given, name in zip(programs, wanted, strict=True):
        if name not in there.str.to_lowercase().to_list():
            raise InputError(f"{sheet.source.path.name}: {unknown('program', given, there)}")
    other = ~label.is_in(wanted).fill_null(False) & bool(wanted)
    return {"summary row": summed, "part of another row": frame.select(split).to_series(), "other program": other}


def _refuse_rows(sheet: _Sheet, rows: pl.Series, fault: str) -> None:
    """Refuse the first of these rows, and say how many there are."""
    if rows.any():
        more = f" ({rows.sum() - 1:,} more like it)" if rows.sum() > 1 else ""
        raise InputError(f"{sheet.source.where(sheet.rows.first + int(rows.arg_max() or 0))}{more}: {fault}")


def _refuse_twice(sheet: _Sheet, checked: pl.Series) -> None:
    """Refuse a property that is there twice under one program and one part of it."""
    seen: dict[tuple[str | None, ...], int] = {}
    columns = zip(checked, sheet.text("key"), *sheet.programs(), strict=True)
    for line, (counts, *which) in enumerate(columns, start=sheet.rows.first):
        before = seen.setdefault(tuple(which), line) if counts and which[0] is not None else line
        if before != line:
            raise InputError(
                f"{sheet.source.where(line)}: property '{which[0][:40]}' stands in {sheet.source.counted_in} {before} "
                "already, with the same program; expected one row of each property and program"
            )


def _not_published(values: pl.DataFrame) -> dict[str, pl.Series]:
    def any_is(code: int) -> pl.Series:
        return values.select(pl.any_horizontal((pl.all() == code).fill_null(False))).to_series()

    nobody = values["number_reported"].fill_null(0) == 0
    return {"suppressed": any_is(SUPPRESSED), "poorly reported": any_is(POORLY_REPORTED), "nobody reported": nobody}


def _too_much(values: pl.DataFrame, exclusive: Sequence[Sequence[str]], decimals: Mapping[str, int]) -> pl.Series:
    """Do parts of one whole exceed it by more than rounding can: half a step for each part that is not 0?"""
    found = pl.Series([False] * values.height, dtype=pl.Boolean)
    for group in exclusive:
        finest = max((decimals.get(name, 0) for name in group), default=0)
        step = {name: 10 ** (finest - decimals.get(name, 0)) for name in group}
        total, slack = pl.lit(-100 * 10**finest, pl.Int64), pl.lit(0, pl.Int64)
        for name in group:
            part = pl.col(name).fill_null(0)
            total, slack = total + part * step[name], slack + (part > 0).cast(pl.Int64) * step[name]
        found |= values.select((2 * total > slack).alias("found")).to_series()
    return found


def _no_count(values: pl.DataFrame, decimals: Mapping[str, int], of_units: Collection[str]) -> pl.Series:
    """Rows with a share that is printed with decimals and that no number of households gives, nor of units.

    Whole percentages are taken as they are: they leave several numbers, and averages of a year blur them.
    """
    found = np.zeros(values.height, np.bool_)
    of = {name: values[name].fill_null(0).to_numpy() for name in ("number_reported", "total_units")}
    for name, digits in decimals.items():
        if digits:
            share = values[name].fill_null(MISSING).to_numpy()
            given = [
                np.less_equal(*within_rounding(np.maximum(share, 0), np.maximum(of[base], 0), digits))
                for base in (("number_reported", "total_units") if name in of_units else ("number_reported",))
            ]
            found |= (share >= 0) & ~np.logical_or.reduce(given)
    return pl.Series(found)


def _any(reasons: Mapping[str, pl.Series]) -> pl.Series:
    return pl.DataFrame(reasons).select(pl.any_horizontal(pl.all())).to_series()


def _counted(reasons: Mapping[str, pl.Series]) -> dict[str, int]:
    """Rows by the first reason that applies."""
    first = pl.DataFrame(reasons).select(pl.coalesce(pl.when(name).then(pl.lit(name)) for name in reasons)).to_series()
    return {name: count for name in reasons if (count := int((first == name).sum()))}
