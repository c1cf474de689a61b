"""What does an SDMX-CSV file say? Versions 1.0 and 2.0: codes in columns, a number and its status in each line.

The first column is DATAFLOW (1.0) or STRUCTURE (2.0). Columns before OBS_VALUE are dimensions, those after it
attributes, as services write them; a structure beside the file says it for certain. Names beside codes, in columns
of their own (`STRUCTURE_NAME` is there) or behind a colon (`F: Female`), are labels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from glasshouse.errors import InputError
from glasshouse.files.crossed import LINE, STATUS, VALUE, Category, Crossed, Dimension
from glasshouse.files.formats.crossing import checked, shown
from glasshouse.files.formats.sdmx_structure import STATUS_NAMES, Structure, structure_beside
from glasshouse.files.frames import Source, open_text
from glasshouse.limits import CATEGORIES, DATASETS, NAME_LENGTH

OBS_VALUE = "OBS_VALUE"
FIRST = ("DATAFLOW", "STRUCTURE")
ABOUT = frozenset({*FIRST, "STRUCTURE_ID", "STRUCTURE_NAME", "ACTION", "SERIES_KEY", "OBS_KEY", "LAST UPDATE"})
TOLD_APART = ": "  # a code and its name, where both are in one field
REMOVED = ("D",)  # an action that takes numbers back


@dataclass(frozen=True)
class Header:
    """What the columns are: of each dimension the column of its codes, and that of its names if there is one."""

    dimensions: tuple[tuple[str, str, str], ...]  # name, column of codes, column of names
    labels: tuple[str, ...]  # of the dimensions
    value: str
    status: str
    table: str  # the column that says which table a line belongs to
    action: str
    both: bool  # a field has the code and its name

    @property
    def wanted(self) -> list[str]:
        names = [column for _, code, name in self.dimensions for column in (code, name)]
        return [column for column in (*names, self.value, self.status, self.table, self.action) if column]


def is_sdmx(columns: Sequence[str]) -> bool:
    """Do these columns begin as SDMX-CSV begins?"""
    return bool(columns) and _bare(columns[0]) in FIRST


def read(path: Path) -> tuple[Crossed, ...]:
    """Every table of a file, not read yet: one for each dataflow or structure in it."""
    source = open_text(path)
    if not is_sdmx(source.columns):
        raise InputError(
            f"{path.name}: columns are {source.told}; expected DATAFLOW or STRUCTURE first, as in SDMX-CSV"
        )
    plain = header_of(source, Structure())
    tables, labels = _looked_through(source, plain)
    found = []
    for table in tables:
        structure = structure_beside(path, frozenset(re.findall(r"[A-Za-z_][\w@$-]*", table)))
        header = header_of(source, structure)
        dimensions = [
            _dimension(structure, name, label, labels.get(name, {}))
            for (name, _, _), label in zip(header.dimensions, header.labels, strict=True)
        ]
        found.append(
            Crossed(
                path, table, checked(path.name, dimensions),
                _pieces(source, header, table if len(tables) > 1 else None),
                marks=structure.marks(_bare(header.status)),
            )
        )  # fmt: skip
    return tuple(found)


def header_of(source: Source, structure: Structure) -> Header:
    """Sort the columns out."""
    path, columns = source.path, list(source.columns)
    both = any(TOLD_APART in name for name in columns)
    named = any(_bare(name) == "STRUCTURE_NAME" for name in columns)
    parts = [name for name in columns if _bare(name) not in ABOUT]
    pairs = [(name, "") for name in parts]
    if named:
        if len(parts) % 2:
            raise InputError(
                f"{path.name}: STRUCTURE_NAME says that names stand beside codes, and {len(parts)} columns are no "
                "pairs; expected a column of names after each column of codes; export the file again"
            )
        pairs = list(zip(parts[::2], parts[1::2], strict=True))
    bare = [_bare(code) for code, _ in pairs]
    if bare.count(OBS_VALUE) != 1:
        found = "no column" if OBS_VALUE not in bare else f"{bare.count(OBS_VALUE)} columns"
        raise InputError(
            f"{path.name}: {found} called {OBS_VALUE}; expected one with the numbers; found: {source.told}"
        )
    if "" in bare:
        raise InputError(f"{path.name}: a column has no name; expected one for each; found: {source.told}")
    if len(set(bare)) < len(bare):
        twice = next(name for name in bare if bare.count(name) > 1)
        raise InputError(f"{path.name}: the column '{shown(twice)}' stands twice; expected different columns")
    kept = bare[: bare.index(OBS_VALUE)]
    if structure.dimensions:
        missing = [name for name in structure.dimensions if name not in bare]
        if missing:
            raise InputError(
                f"{path.name}: the structure beside it has the dimension {shown(missing[0])}, and no column is "
                f"called so; found: {source.told}; give the structure of this file, or none"
            )
        kept = list(structure.dimensions)
    column = dict(zip(bare, pairs, strict=True))
    status = next((column[name][0] for name in STATUS_NAMES if name in column and name not in kept), "")
    about = {_bare(name): name for name in columns if _bare(name) in ABOUT}
    labels = [column[name][1] or column[name][0].partition(TOLD_APART)[2].strip() for name in kept]
    return Header(
        tuple((name, *column[name]) for name in kept), tuple(labels), column[OBS_VALUE][0], status,
        about.get("STRUCTURE_ID") or about.get("DATAFLOW") or about["STRUCTURE"], about.get("ACTION", ""), both,
    )  # fmt: skip


def _bare(name: str) -> str:
    """A column's own name: without a label behind a colon, and what 2.0 says of separators in brackets."""
    bare = name.partition(TOLD_APART)[0].strip()
    return bare.partition("[")[0] if bare.endswith("]") else bare


def _dimension(structure: Structure, name: str, label: str, labels: dict[str, str]) -> Dimension:
    found = structure.dimension(name, tuple(Category(code, text) for code, text in labels.items()))
    return found if found.label or not label else Dimension(name, label, found.categories, found.role)


def _looked_through(source: Source, header: Header) -> tuple[list[str], dict[str, dict[str, str]]]:
    """One pass: which tables there are, and what codes are called where the file says it."""
    tables: dict[str, None] = {}
    labels: dict[str, dict[str, str]] = {}
    named = [one for one in header.dimensions if one[2] or header.both]
    extra = [column for _, code, name in named for column in (code, name) if column]
    total = 0
    for chunk in source.chunks([header.table, *([header.action] if header.action else []), *extra]):
        of = _or_none(_told(header, chunk.frame[header.table].cast(pl.String)))
        if of.null_count():
            at = source.where(chunk.first + int(of.is_null().arg_max() or 0))
            raise InputError(f"{at}: {header.table} is empty; expected the table that the line belongs to")
        tables.update(dict.fromkeys(of.unique().sort()))
        if len(tables) > DATASETS:
            raise InputError(f"{source.path.name}: more than {DATASETS:,} different tables in {header.table}")
        _refuse_removed(source, header, chunk.frame, chunk.first)
        for name, code, beside in named:
            codes = chunk.frame[code].cast(pl.String)
            pairs = pl.DataFrame(
                {
                    "code": _told(header, codes),
                    "name": chunk.frame[beside].cast(pl.String) if beside else _behind(codes),
                }
            ).unique(maintain_order=True)
            mine = labels.setdefault(name, {})
            for code_, text in pairs.drop_nulls("code").iter_rows():
                if not mine.get(code_):
                    total += code_ not in mine
                    mine[code_] = (text or "")[:NAME_LENGTH]
        if total > CATEGORIES:
            raise InputError(f"{source.path.name}: more than {CATEGORIES:,} different codes with names")
    if not tables:
        raise InputError(f"{source.path.name}: a header and no rows; expected numbers")
    return list(tables), labels


def _refuse_removed(source: Source, header: Header, frame: pl.DataFrame, first: int) -> None:
    if header.action:
        removed = frame[header.action].cast(pl.String).is_in(list(REMOVED)).fill_null(False)
        if removed.any():
            at = source.where(first + int(removed.arg_max() or 0))
            raise InputError(f"{at}: ACTION is D, which takes numbers back; expected numbers; give the file they leave")


def _told(header: Header, column: pl.Series) -> pl.Series:
    """Codes, without the names behind them."""
    text = column.str.strip_chars()
    return text.str.split(TOLD_APART).list.first() if header.both else text


def _behind(column: pl.Series) -> pl.Series:
    return column.str.extract(r"^.*?: (.*)$", 1)


def _pieces(source: Source, header: Header, table: str | None) -> Callable[[], Iterator[pl.DataFrame]]:
    def pieces() -> Iterator[pl.DataFrame]:
        for chunk in source.chunks(dict.fromkeys(header.wanted)):
            columns = [
                _told(header, chunk.frame[code].cast(pl.String)).alias(name) for name, code, _ in header.dimensions
            ]
            columns.append(_or_none(chunk.frame[header.value]).alias(VALUE))
            if header.status:
                columns.append(_or_none(_told(header, chunk.frame[header.status].cast(pl.String))).alias(STATUS))
            else:
                columns.append(pl.repeat(None, chunk.frame.height, dtype=pl.String, eager=True).alias(STATUS))
            columns.append(pl.int_range(chunk.first, chunk.first + chunk.frame.height, eager=True).alias(LINE))
            frame = pl.DataFrame(columns)
            if table is not None:
                frame = frame.filter(_told(header, chunk.frame[header.table].cast(pl.String)) == table)
            yield frame

    return pieces


def _or_none(column: pl.Series) -> pl.Series:
    text = column.cast(pl.String).str.strip_chars()
    return text.set(text == "", None)
