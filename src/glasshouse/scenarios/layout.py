"""How does an office lay out its own table files? Which column has the numbers, the places, and each attribute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from glasshouse.errors import InputError
from glasshouse.model.schema import Recode, Schema
from glasshouse.scenarios.meaning import Dictionary, dictionary
from glasshouse.scenarios.parse import Parser, Toml, dict_of, only


@dataclass(frozen=True)
class Layout:
    """The columns of an office's table files; what is not said is found by name.

    `columns` has, by the name of a column, the words for the levels of its attribute. Rows that do not have the values
    of `only` are left out; columns to `ignore` say nothing that matters.
    """

    value: str = ""
    status: str = ""
    place: str = ""
    area: str = ""  # the one area that all numbers are of, where no column says it
    ignore: tuple[str, ...] = ()
    only: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, Dictionary] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.place and self.area:
            raise InputError("files: 'place' and 'area' are both given; expected a column of places or one area")
        named = [self.value, self.status, self.place, *self.ignore, *self.columns]
        for name in named:
            if name and named.count(name) > 1:
                raise InputError(f"files: the column '{name}' has two meanings; expected one")


def read(toml: Toml, parser: Parser) -> Layout:
    """The section `[files]` of a scenario."""
    only(toml, "files", optional="value status place area ignore only column")
    return Layout(
        value=toml.get("value", ""),
        status=toml.get("status", ""),
        place=toml.get("place", ""),
        area=toml.get("area", ""),
        ignore=tuple(toml.get("ignore", [])),
        only={column: str(value) for column, value in dict_of(toml, "only").items()},
        columns={name: _column(name, entry, parser) for name, entry in dict_of(toml, "column").items()},
    )


def _column(name: str, toml: Toml, parser: Parser) -> Dictionary:
    only(toml, f"files.column.{name}", required="attribute", optional="codes")
    words = dictionary(parser.schema.attribute(toml["attribute"]), parser.recodes)
    declared = {str(code): _levels(words, code, said, parser) for code, said in dict_of(toml, "codes").items()}
    return replace(words, declared=declared, met={})


def _levels(words: Dictionary, code: str, said: Any, parser: Parser) -> frozenset[int]:
    """What a code of a file means: `*`, a label, a group of a recode, bins, or labels."""
    if isinstance(said, str):
        found = words.levels(said)
        if found is not None:
            return found
    try:
        return parser.levels(words.attribute, said)
    except InputError:
        raise InputError(
            f"code '{code}' means '{said}', which is no level of {words.attribute.name}; expected \"*\" (everybody), "
            f"a label, a bin or a group of a recode: {words.known}"
        ) from None


def columns_by_name(schema: Schema, recodes: Mapping[str, Recode]) -> dict[str, Dictionary]:
    """The columns that need no declaration, in small letters: those named as an attribute, or as in record files."""
    found: dict[str, Dictionary] = {}
    for attribute in schema.attributes:
        words = dictionary(attribute, recodes)
        single = [reading.columns[0] for reading in attribute.readings[:1] if len(reading.columns) == 1]
        for name in (attribute.name, *single):
            found.setdefault(name.casefold(), words)
    return found
