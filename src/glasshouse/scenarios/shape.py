"""Of what kind is each entry of a scenario? A text, a number, true or false, a list or a table of them.

What an entry means is said where it is read; here it is only made sure that it is what the reader takes it for: a
length of `true` would be a length of 1, a text would be a list of its letters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from glasshouse.errors import InputError
from glasshouse.limits import NAME_LENGTH
from glasshouse.scenarios.toml import found

# A shape is a kind, a list of one shape, a table of shapes by key, the name of a shape below, or a choice of those.
# In a table, `...` stands for every other key. An entry that no table has is told by those who read the table.
Shape = type | str | list[Any] | dict[Any, Any] | tuple[Any, ...]


class Name(str):
    """A text that is short: a name, a label, a title."""


_LABELS = [Name]
_CODES: Shape = (str, [(Name, int, [(Name, int)])])
_NUMBER: Shape = (int, float)
_DESCRIPTION = {...: "levels"}
_SHAPES: dict[str, Shape] = {
    "levels": (str, _LABELS, {"not": "levels", "has": Name, "size": (int, [int]), ...: str}),
    "group": (
        Name,
        {
            "label": Name, "levels": "levels", "has": Name, "size": (int, [int]), "not": "levels", "each": bool,
            "parts": ["group"],
        },
    ),
    "archive": {
        "suffix": Name, "geography": Name, "delimiter": Name, "fileid": Name, "sumlev": {...: Name}, "lacks": _LABELS,
    },
}  # fmt: skip
_SCENARIO: Shape = {
    "title": Name, "reference": Name, "variable": Name, "aliases": _LABELS, "catalogue": Name, "names": Name,
    "geography": {"place": Name, "unit": Name, "levels": {...: int}, "compose": [str], "places": Name},
    "archive": ("archive", ["archive"]),
    "attribute": {
        ...: {
            "levels": _LABELS, "codes": _CODES, "subsets": _LABELS, "column": Name,
            "from": {...: _CODES}, "counts": _LABELS, "rest": Name, "label": Name,
        },
    },
    "impossible": [{"reason": str, "kind": Name, "unless": _DESCRIPTION, ...: "levels"}],
    "recode": {...: {"attribute": Name, "groups": ["group"], "bins": str, "tally": bool}},
    "iteration": {...: {"title": Name, ...: "levels"}},
    "table": {
        ...: {
            "title": Name, "level": Name, "by": _LABELS, "universe": _DESCRIPTION, "undivided": _LABELS,
            "also": [int], "of_which": {...: {"label": Name, ...: "levels"}}, "iterations": Name, "doubt": str,
            "sums": Name, "parts": {...: Name}, "bottom_up": Name,
        },
    },
    "compare": {"bins": {...: Name}, "unique": _LABELS, "names": _LABELS},
    "records": {"leave_out": {...: [(Name, int)]}},
    "measure": {...: Name},
    "microdata": {"area": int, "category": int, "sample": _NUMBER},
    "files": {
        "value": Name, "status": Name, "place": Name, "area": Name, "ignore": _LABELS, "only": {...: (Name, int)},
        "column": {...: {"attribute": Name, "codes": {...: "levels"}}},
    },
    "printed": {
        "rounded": (int, Name, {"base": int, "how": Name, "zeros": Name}), "markers": {...: (Name, int)},
        "missing": Name, "cell_key": {"table": Name}, "noise": {"scale": _NUMBER, "within": _NUMBER},
        "thousands": Name, "decimal": Name,
    },
    "claim": {
        "record": _LABELS, "apart_record": _LABELS, "any_record": _LABELS, "clauses": [{"of": _LABELS, "start": Name}],
        "words": {...: _LABELS}, "values": {...: Name}, "sets": {...: {...: Name}}, "finer": {...: Name},
        "apart": _DESCRIPTION,
    },
    "household": {
        "column": Name, "adult": _DESCRIPTION, "stand_out": _LABELS, "quarters": {"column": Name, "highest": int},
        "defined": Name, "tell_apart": _LABELS, "near": Name, "donors": Name, "within": Name,
    },
    "occupancy": {
        "households": Name, "subsidised": _DESCRIPTION, "reported": Name, "units": Name, "residents": Name,
        "everyone": Name, "unreal": Name, "householder": _LABELS, "members": _LABELS, "sizes": Name,
        "breaks": [_DESCRIPTION], "spelled": {...: _LABELS}, "whole": {...: _LABELS}, "flag": {...: _DESCRIPTION},
        "key": {...: _LABELS}, "measure": {...: _LABELS},
        "property": {
            ...: {"label": Name, "column": Name, "share": _LABELS, "units": _LABELS, "sums": Name, ...: "levels"},
        },
        "model": {...: {"title": Name, "without_quarters": bool, ...: _LABELS}},
    },
}  # fmt: skip
_KINDS = {str: "a text", Name: "a text", int: "a whole number", float: "a number", bool: "true or false"}


def refuse_other_kinds(toml: Mapping[str, Any]) -> None:
    """Refuse the first entry of a scenario that is not of its kind."""
    _refuse(toml, _SCENARIO, ())


def _refuse(value: Any, shape: Shape, where: tuple[str, ...]) -> None:
    options = list(_options(shape))
    chosen = next((one for one in options if _fits(value, one)), None)
    name = f"'{'.'.join(where)}'" if where else "the scenario"
    if chosen is None:
        expected = " or ".join(dict.fromkeys(_said(one) for one in options))
        raise InputError(f"{name} is {found(value)}; expected {expected}")
    if chosen is Name and len(value) > NAME_LENGTH:
        raise InputError(f"{name} has {len(value):,} letters; expected at most {NAME_LENGTH}")
    if isinstance(chosen, list):
        for number, one in enumerate(value, 1):
            _refuse(one, chosen[0], (*where, str(number)))
    elif isinstance(chosen, dict):
        for key, one in value.items():
            inside = chosen.get(key, chosen.get(...))
            if inside is not None:
                _refuse(one, inside, (*where, key))


def _options(shape: Shape) -> Iterator[Any]:
    """The kinds, lists and tables that a shape allows."""
    known = _SHAPES[shape] if isinstance(shape, str) else shape
    if isinstance(known, tuple):
        for one in known:
            yield from _options(one)
    else:
        yield known


def _fits(value: Any, option: Any) -> bool:
    """Is it of the kind, its inside aside? True is no whole number."""
    if isinstance(option, (list, dict)):
        return isinstance(value, type(option))
    return type(value) is (str if option is Name else option)


def _said(option: Any) -> str:
    if isinstance(option, list):
        return "a list"
    return "a table of entries" if isinstance(option, dict) else _KINDS[option]
