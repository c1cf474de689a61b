"""What must a swap know of the records of persons? Who lives together, who is an adult, who stands out, and the areas.

A scenario of persons says it under `[household]`. The rules of swapping are code; what they are applied to is data.
"""

from __future__ import annotations

from dataclasses import dataclass

from glasshouse.errors import InputError, unknown
from glasshouse.model.geography import Geography
from glasshouse.model.schema import Attribute, Predicate, Schema
from glasshouse.scenarios.parse import Parser, Toml, only


@dataclass(frozen=True)
class Quarters:
    """The column that says who lives in group quarters: its codes go from 0, a household, to the highest."""

    column: str
    highest: int


@dataclass(frozen=True)
class Household:
    """What makes the households of a scenario of persons alike, and which areas they trade places in."""

    column: str  # who lives together; blank in group quarters
    adult: Predicate  # partners have as many persons, and as many of these
    stand_out: tuple[str, ...]  # attributes: who is alone with them in a place is at risk; drawn anew in group quarters
    quarters: Quarters  # a file may do without
    defined: str  # a column of 0 and 1, if a file has it: a household of which all are 0 is imputed, and stays
    tell_apart: tuple[str, ...]  # columns, where a file has them: the order in which residents of a unit are drawn for
    near: str  # a level: households composed alike are counted in it; by codes alone, it is what is near
    donors: str  # a level: residents of group quarters get the values of some in the same
    within: str  # a level: no household leaves it; where donors are too few, they are from here

    def columns(self, schema: Schema) -> tuple[str, ...]:
        """What a file of persons must have besides the place: the columns of adults, then of what stands out."""
        attributes = [*self.adult.by_attribute, *self.stand_out]
        return tuple(column for name in attributes for column in spelled(schema.attribute(name)))


def spelled(attribute: Attribute) -> tuple[str, ...]:
    """The columns that records spell an attribute in, as our own files do."""
    return attribute.readings[0].columns


def read(toml: Toml, parser: Parser, geography: Geography) -> Household:
    """The `[household]` of a scenario."""
    only(toml, "household", required="column adult stand_out quarters defined tell_apart near donors within")
    only(toml["quarters"], "quarters", required="column highest")
    adult = parser.predicate(toml["adult"])
    if len(adult.by_attribute) != 1:
        raise InputError("adult: expected the levels of one attribute, some of them and not all")
    stand_out = tuple(parser.schema.attribute(name).name for name in toml["stand_out"])
    if not stand_out or set(stand_out) & set(adult.by_attribute):
        raise InputError("stand_out: expected one attribute or several, and not the one that says who is an adult")
    for key in ("near", "donors", "within"):
        if toml[key] not in geography.lengths:
            raise unknown(f"level of {key}", toml[key], geography.lengths)
    return Household(
        toml["column"],
        adult,
        stand_out,
        Quarters(toml["quarters"]["column"], int(toml["quarters"]["highest"])),
        toml["defined"],
        tuple(toml["tell_apart"]),
        toml["near"],
        toml["donors"],
        toml["within"],
    )
