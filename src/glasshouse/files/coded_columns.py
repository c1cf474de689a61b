"""What do the columns of an attribute say together? One number for each record, and the columns back from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.errors import InputError
from glasshouse.files.frames import Chunk, Source
from glasshouse.model.schema import Attribute
from glasshouse.text import is_whole

Ints = NDArray[np.int64]
NONE = -1  # no level


@dataclass(frozen=True)
class Spelling:
    """How an attribute is spelled in columns, and one number for what they say, the first column counting least."""

    attribute: Attribute

    @property
    def columns(self) -> tuple[str, ...]:
        return self.attribute.readings[0].columns

    @cached_property
    def codes(self) -> tuple[list[str], ...]:
        """Of each column, its codes."""
        every = [code for level in self.attribute.readings[0].codes for code in level]
        return tuple(sorted({code[at] for code in every}, key=_in_order) for at in range(len(self.columns)))

    def __len__(self) -> int:
        return prod(len(codes) for codes in self.codes)

    @cached_property
    def level(self) -> Ints:
        """The level of each number; NONE where columns contradict each other."""
        found = np.full(len(self), NONE, np.int64)
        places = [{code: place for place, code in enumerate(codes)} for codes in self.codes]
        for level, spelled in enumerate(self.attribute.readings[0].codes):
            for code in spelled:
                at = [place[part] for place, part in zip(places, code, strict=True)]
                found[self._together([np.array(one) for one in at])] = level
        return found

    def _together(self, positions: Sequence[Ints]) -> Ints:
        number, step = np.zeros_like(positions[0], dtype=np.int64), 1
        for position, codes in zip(positions, self.codes, strict=True):
            number, step = number + position * step, step * len(codes)
        return number

    def read(self, source: Source, chunk: Chunk) -> Ints:
        """The number of each record, checked value by value."""
        columns = zip(self.columns, self.codes, strict=True)
        number = self._together([_position(source, chunk, name, codes) for name, codes in columns])
        wrong = self.level[number] == NONE
        if wrong.any():
            at = int(wrong.argmax())
            flags = all(codes == ["0", "1"] for codes in self.codes) and not number[at]
            said = (
                "are all 0; expected at least one 1" if flags else f"are no level of '{self.attribute.name}' together"
            )
            raise InputError(f"{source.where(chunk.first + at)}: {' '.join(self.columns)} {said}")
        return number

    def spelled(self, number: Ints, frame: pl.DataFrame) -> list[pl.Series]:
        """The columns that say these numbers, of the kind that the frame has."""
        found = []
        for name, codes in zip(self.columns, self.codes, strict=True):
            found.append(pl.Series(name, codes).gather(number % len(codes)).cast(frame[name].dtype))
            number = number // len(codes)
        return found


def _in_order(code: str) -> tuple[int, str]:
    """Codes that are numbers go by their size."""
    return (int(code), "") if is_whole(code) else (-1, code)


def _position(source: Source, chunk: Chunk, name: str, codes: list[str]) -> Ints:
    """Which of the codes of a column each record has."""
    if codes == [str(number) for number in range(len(codes))]:
        return whole_numbers(source, chunk, name, len(codes) - 1)
    text = chunk.frame[name].cast(pl.String).str.strip_chars()
    found = text.replace_strict(codes, list(range(len(codes))), default=None, return_dtype=pl.Int64)
    if found.null_count():
        at = int(found.is_null().arg_max() or 0)
        said = "empty" if text[at] in (None, "") else repr(text[at][:20])
        raise InputError(f"{source.where(chunk.first + at)}: column '{name}' is {said}; expected one of {codes[:9]}")
    return found.to_numpy()


def whole_numbers(source: Source, chunk: Chunk, name: str, highest: int) -> Ints:
    """A column of whole numbers from 0, however they are spelled."""
    column = chunk.frame[name]
    if column.dtype == pl.String:
        column = column.str.strip_chars()
        column = column.set(~column.str.contains(r"^[0-9]{1,15}(\.0*)?$").fill_null(False), None)
    number = column.cast(pl.Float64, strict=False)
    wrong = ~(number.is_between(0, highest) & (number == number.floor())).fill_null(False)
    if wrong.any():
        at = int(wrong.arg_max() or 0)
        given = chunk.frame[name][at]
        said = "empty" if given in (None, "") else repr(str(given)[:20])
        expected = "0 or 1" if highest == 1 else f"a whole number from 0 to {highest}"
        raise InputError(f"{source.where(chunk.first + at)}: column '{name}' is {said}; expected {expected}")
    return number.to_numpy().astype(np.int64)
