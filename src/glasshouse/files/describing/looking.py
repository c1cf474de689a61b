"""What stands in a table? Its columns with their codes, and every number with the codes it belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.errors import InputError
from glasshouse.files.crossed import STATUS, VALUE, Crossed, Role
from glasshouse.files.describing.figures import Figures, read_figures
from glasshouse.limits import DESCRIBED_CELLS, DESCRIBED_NUMBERS, NAME_LENGTH
from glasshouse.text import harmful

NUMBER, MARK = "\0number", "\0mark"  # names that no column of a file has
BLANK = "blank"  # how a question calls a number that is not there


@dataclass(frozen=True)
class Column:
    """A column that says what numbers count: its codes in the order met, with what the file tells of them."""

    name: str
    codes: tuple[str, ...]
    labels: Mapping[str, str]
    parents: Mapping[str, str]
    role: Role = ""
    title: str = ""

    def label(self, code: str) -> str:
        return self.labels.get(code) or code

    @property
    def told(self) -> str:
        return self.title or self.name


@dataclass(frozen=True)
class Look:
    """A table as it is: of each column the place of its code in `codes`, the number, and the mark where none is."""

    path: Path
    title: str
    columns: tuple[Column, ...]
    frame: pl.DataFrame
    marks: Mapping[str, str]  # texts instead of a number, and what the file says of them
    beside: tuple[str, ...]  # statuses that stand beside numbers or other texts
    thousands: str

    @cached_property
    def by_name(self) -> dict[str, Column]:
        return {column.name: column for column in self.columns}

    def without(self, names: Iterable[str]) -> Look:
        """The same table without some columns."""
        gone = frozenset(names)
        kept = tuple(column for column in self.columns if column.name not in gone)
        return replace(self, columns=kept, frame=self.frame.drop(gone))

    def only(self, name: str, code: str) -> Look:
        """The rows with one code of a column, which then says nothing any more."""
        column = self.by_name[name]
        if code not in column.codes:
            raise InputError(
                f"{self.path.name}: column '{name}' has no '{code}'; found: {', '.join(column.codes[:20])}"
            )
        rows = self.frame.filter(pl.col(name) == column.codes.index(code))
        kept = []
        for one in self.columns:
            codes = [one.codes[index] for index in rows[one.name].unique().sort()]
            back = {one.codes.index(code): index for index, code in enumerate(codes)}
            rows = rows.with_columns(pl.col(one.name).replace_strict(back, return_dtype=pl.UInt32))
            kept.append(replace(one, codes=tuple(codes)))
        return replace(self, columns=tuple(kept), frame=rows)

    def matrix(self, name: str) -> NDArray[np.float64]:
        """A row for everything else that is the same, a column for each code: the number; NaN hidden, -1 no row."""
        others = [column.name for column in self.columns if column.name != name]
        width = len(self.by_name[name].codes)
        frame = self.frame
        if others:
            key = frame.select(pl.struct(others).rank("dense") - 1).to_series().to_numpy().astype(np.int64)
        else:
            key = np.zeros(frame.height, np.int64)
        rows = min(int(key.max(initial=-1)) + 1, max(1, DESCRIBED_CELLS // width))
        inside = key < rows
        numbers = frame[NUMBER].cast(pl.Float64).fill_null(float("nan")).to_numpy()
        found = np.full((rows, width), -1.0)
        found[key[inside], frame[name].to_numpy()[inside]] = numbers[inside]
        return found

    def refuse_repeats(self) -> None:
        """A number has one place in a table: rows that say the same twice are records, or lack a column."""
        names = [column.name for column in self.columns]
        if self.frame.height < 2:
            return
        repeats = self.frame.select(names).is_duplicated() if names else pl.Series([True])
        if repeats.any():
            rows = self.frame.filter(repeats).head(1) if names else self.frame.head(1)
            said = ", ".join(f"{one.name} {one.codes[rows[one.name][0]]}" for one in self.columns)
            raise InputError(
                f"{self.path.name}: {int(repeats.sum()):,} rows have the same codes as another row "
                f"({said or 'no codes'});"
                " expected a table, with one row for each number; records are counted with glasshouse tabulate, and a "
                "column left out may be what tells the rows apart"
            )


def look(table: Crossed, only: Mapping[str, str], thousands: str = "") -> Look:
    """Read a table whole, or only its rows with some codes: the different texts once, the rows as places in lists."""
    names = [one.name for one in table.dimensions]
    lists: dict[str, dict[str, int]] = {name: {} for name in (*names, VALUE, STATUS)}
    pieces: list[pl.DataFrame] = []
    rows = 0
    wanted = [pl.col(name) == code for name, code in only.items() if name in names]
    for whole in table.pieces():
        piece = whole.filter(*wanted) if wanted else whole
        rows += piece.height
        if rows > DESCRIBED_NUMBERS:
            raise InputError(f"{table.path.name}: more than {DESCRIBED_NUMBERS:,} numbers; describe some of them")
        pieces.append(piece.select(_indexed(piece[name], lists[name]) for name in lists))
    if not rows:
        said = "".join(f" with {name} {code}" for name, code in only.items() if name in names)
        raise InputError(f"{table.path.name} has no numbers{said}; expected a row for each")
    frame = pl.concat(pieces)
    for name in (*names, STATUS):
        _refuse_odd(table, name, lists[name])
    figures = read_figures(lists[VALUE], table.path.name, thousands)
    frame, marks, beside = _marked(frame, figures, list(lists[VALUE]), list(lists[STATUS]))
    told = {mark: table.marks.get(mark, "") for mark in marks}
    columns = []
    for one in table.dimensions:
        seen = lists[one.name]
        known = {category.code: category for category in one.categories}
        order = [code for code in known if code in seen] + [code for code in seen if code not in known]
        place = {seen[code]: index for index, code in enumerate(order)}
        frame = frame.with_columns(pl.col(one.name).replace_strict(place, return_dtype=pl.UInt32))
        columns.append(
            Column(
                one.name,
                tuple(order),
                {code: known[code].label for code in order if code in known and known[code].label},
                {code: known[code].parent for code in order if code in known and known[code].parent},
                one.role,
                one.label,
            )
        )
    return Look(table.path, table.title, tuple(columns), frame, told, beside, figures.thousands)


def _indexed(column: pl.Series, known: dict[str, int]) -> pl.Series:
    """Each text as its place in a list that grows; what is not there is the empty text."""
    texts = column.cast(pl.String).fill_null("").str.strip_chars()
    for one in texts.unique(maintain_order=True):
        known.setdefault(one, len(known))
    return texts.replace_strict(known, return_dtype=pl.UInt32).alias(column.name)


def _refuse_odd(table: Crossed, name: str, codes: Mapping[str, int]) -> None:
    if harmful(name) is not None or len(name) > NAME_LENGTH:
        raise InputError(
            f"{table.path.name}: a column is called '{name[:NAME_LENGTH]}'; expected at most {NAME_LENGTH} letters "
            "that can be printed"
        )
    for code in codes:
        if harmful(code) is not None or len(code) > NAME_LENGTH:
            raise InputError(
                f"{table.path.name}: column '{name}' has a code of {len(code):,} letters or with control characters; "
                f"expected at most {NAME_LENGTH} letters that can be printed"
            )


def _marked(
    frame: pl.DataFrame, figures: Figures, values: Sequence[str], statuses: Sequence[str]
) -> tuple[pl.DataFrame, tuple[str, ...], tuple[str, ...]]:
    """Numbers and marks. Where there is no number, a status beside it is the mark."""
    number = pl.Series([figures.numbers.get(text) for text in values], dtype=pl.Int64)
    frame = frame.with_columns(
        number.gather(frame[VALUE]).alias(NUMBER), pl.Series(values).gather(frame[VALUE]).alias(MARK)
    )
    index = frame[VALUE]
    status = pl.Series(statuses, dtype=pl.String).gather(frame[STATUS])
    alone = frame[NUMBER].is_null()
    mark = pl.when(frame[MARK] == "").then(status).otherwise(frame[MARK])
    frame = frame.with_columns(pl.when(alone).then(mark).otherwise(None).alias(MARK)).drop(VALUE, STATUS)
    marks = tuple(frame.filter(alone)[MARK].unique(maintain_order=True))
    written = pl.Series([text != "" for text in values], dtype=pl.Boolean).gather(index)
    beside = tuple(one for one in status.filter(written).unique(maintain_order=True) if one)
    return frame, marks, beside
