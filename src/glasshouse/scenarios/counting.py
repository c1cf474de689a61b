"""How is a count asked for in one line? `sex=female;age=0..4|10..14`: labels of levels, or from one to another."""

from __future__ import annotations

from glasshouse.errors import InputError
from glasshouse.model.schema import Attribute, Predicate, Schema

EXPECTED = "expected ATTRIBUTE=LEVEL, as in ATTRIBUTE=LEVEL|LEVEL;ATTRIBUTE=FROM..TO"


def read_count(schema: Schema, asked: str) -> Predicate:
    """The description that a line asks for; names that are not known are refused with those that are."""
    sets: dict[str, frozenset[int]] = {}
    for part in (one.strip() for one in asked.split(";")):
        name, equals, levels = (one.strip() for one in part.partition("="))
        if not (name and equals and levels):
            raise InputError(f"--count {asked}: found '{part}'; {EXPECTED}")
        if name in sets:
            raise InputError(f"--count {asked}: {name} is named twice; put its levels together: {name}=LEVEL|LEVEL")
        try:
            attribute = schema.attribute(name)
            sets[name] = frozenset().union(*(_levels(attribute, one.strip()) for one in levels.split("|")))
        except InputError as error:
            error.add_where(f"--count {asked}")
            raise
    return schema.where(sets)


def _levels(attribute: Attribute, said: str) -> frozenset[int]:
    """The levels of a label, or from one label to another."""
    first, dots, last = (one.strip() for one in said.partition(".."))
    if said in attribute.levels or not dots:
        return frozenset([attribute.level(said)])
    begin, end = attribute.level(first), attribute.level(last)
    if begin > end:
        raise InputError(f"{attribute.name}={said}: {first} stands after {last}; expected the first level first")
    return frozenset(range(begin, end + 1))
