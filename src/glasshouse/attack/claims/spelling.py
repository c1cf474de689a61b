"""How are descriptions spelled in files? Columns, codes and a sentence; and the reason for a claim in words."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.attack.claims.descriptions import predicate_of
from glasshouse.attack.claims.reasons import Number, Reason
from glasshouse.files.output import Columns
from glasshouse.model.records import UNLIMITED
from glasshouse.model.schema import Attribute, Schema
from glasshouse.model.wording import Noun, Wording

COLUMNS: Columns = {"k": pl.Int8, "columns": pl.List(pl.String), "values": pl.List(pl.String), "description": pl.String}
SEVERAL = ";"  # between the codes of a value that stands for several levels
Values = NDArray[np.int16]


class Teller:
    """Spells descriptions; what was said once of some columns is remembered, as places are much alike."""

    def __init__(self, schema: Schema, wording: Wording) -> None:
        self.schema, self.wording = schema, wording
        self.clauses: dict[tuple[int, str, bytes], str] = {}

    @cached_property
    def codes(self) -> list[pl.Series]:
        """For each column the codes of its values."""
        return [
            pl.Series([SEVERAL.join(code_of(self.schema.attribute(name), level) for level in sorted(levels))
                       for levels in self.wording.groups[name]], dtype=pl.String)
            for name in self.wording.columns
        ]  # fmt: skip

    @cached_property
    def said_together(self) -> list[list[int]]:
        """For each clause the columns it depends on: its own, and finer ones that may say the same."""
        at = {name: column for column, name in enumerate(self.wording.columns)}
        found = []
        for clause in self.wording.clauses:
            names = [*clause.attributes, *(self.wording.finer.get(name, name) for name in clause.attributes)]
            found.append(sorted({at[name] for name in names if name in at}))
        return found

    def frame(
        self, values: Values, counts: Sequence[int | None], *, never: bool = False, apart: bool = False
    ) -> pl.DataFrame:
        """A row for each description: how many columns, which, their codes, and a sentence with its count."""
        named = values >= 0
        which = pl.DataFrame(
            [pl.Series(name, [name], dtype=pl.String).gather(np.zeros(len(values), np.uint32))
             .set(pl.Series(~named[:, column]), None) for column, name in enumerate(self.wording.columns)]
        )  # fmt: skip
        codes = pl.DataFrame(
            [self.codes[column].gather(np.maximum(values[:, column], 0).astype(np.uint32)).alias(name)
             .set(pl.Series(~named[:, column]), None) for column, name in enumerate(self.wording.columns)]
        )  # fmt: skip
        lists = (frame.select(pl.concat_list(pl.all()).list.drop_nulls()).to_series() for frame in (which, codes))
        told = [self.sentence(row, m, never=never, apart=apart) for row, m in zip(values, counts, strict=True)]
        columns = (pl.Series(named.sum(axis=1), dtype=pl.Int8), *lists, pl.Series(told, dtype=pl.String))
        return pl.DataFrame([series.alias(name) for name, series in zip(COLUMNS, columns, strict=True)])

    def sentence(self, values: Values, count: int | None, *, never: bool = False, apart: bool = False) -> str:
        """The description with its count: so many match; it is not decided how many; or so many cannot match.

        Records `apart` have a noun of their own; of all others, claims count none of those.
        """
        noun = self.wording.apart_noun if apart and self.wording.apart_noun else self.wording.noun
        clauses = [self._clause(number, values, noun) for number in range(len(self.wording.clauses))]
        said = "; ".join(clause for clause in clauses if clause)
        if count is None:
            return f"It is not decided how many {noun.many}: {said}."
        told = self.wording.counted(noun, count, said)
        if never:  # "No household: ..." cannot be: "At least one household: ..."; otherwise "Not exactly two ..."
            return f"At least one{told[2:]}" if count == 0 else f"Not {told[0].lower()}{told[1:]}"
        return told

    def _clause(self, number: int, values: Values, noun: Noun) -> str:
        columns = self.said_together[number]
        key = number, noun.one, values[columns].tobytes()
        if key not in self.clauses:
            some = np.full_like(values, -1)
            some[columns] = values[columns]
            predicate = predicate_of(self.wording, self.schema, some)
            self.clauses[key] = self.wording.clause(self.schema, predicate, noun, self.wording.clauses[number])
        return self.clauses[key]

    def because(self, reason: Reason) -> str:
        """The published numbers that imply a claim, in words."""
        return "Because " + "; ".join(self._number(number) for number in reason.numbers) + "."

    def _number(self, number: Number) -> str:
        line = number.line
        said = line.label if line.predicate is None else self.wording.said(self.schema, line.predicate)
        if number.lower == number.upper:
            count = "none" if number.lower == 0 else f"{number.lower:,}"
        elif number.upper >= UNLIMITED:
            count = f"at least {number.lower:,}"
        else:
            count = f"{number.lower:,} to {number.upper:,}"
        return f"{number.table.name} counts {count} ({number.line.variable}: {said})"


def parted(codes: str) -> list[str]:
    """The codes of a value that is several."""
    return codes.split(SEVERAL)


def code_of(attribute: Attribute, level: int) -> str:
    """How record files spell a level; of one that several columns spell, its label."""
    if not attribute.readings or len(attribute.readings[0].columns) > 1:
        return attribute.levels[level]
    return attribute.readings[0].codes[level][0][0]
