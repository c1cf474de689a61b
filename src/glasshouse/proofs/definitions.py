"""What must a stranger be told of the tables? What every published number counts, in boxes of levels, as JSON."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence

from glasshouse.errors import InputError
from glasshouse.model.release import Table, counted
from glasshouse.model.schema import Predicate, Schema
from glasshouse.proofs.check_proof import FORMAT, NAME
from glasshouse.scenarios.load import Scenario


def definitions(
    scenario: Scenario,
    schema: Schema,
    compare: Sequence[Sequence[int]],
    variables: Mapping[str, Collection[str]],
    *,
    hidden: bool,
    all_places: bool,
    assumed: Collection[str],
    aside: Collection[str],
    made_from: Mapping[str, str] | None = None,
    mapping: Mapping[str, Mapping[str, str]] | None = None,
    second: Mapping[str, Mapping[str, Mapping[str, object]]] | None = None,
    second_from: Mapping[str, object] | None = None,
) -> bytes:
    """The definitions of the numbers that are published at some levels.

    The schema says which records cannot be; records are compared in classes of levels, by attribute.

    `assumed` are numbers that no row of the file has and that count as published all the same, `aside` names in the
    file that are not used. `made_from` is the file that published.csv was taken from, where the file itself is no long
    CSV; `mapping` has the areas of places at levels that are no prefix of a code. `second` has, for each way to read a
    second agency's file, the numbers that follow from it (`second_from`: the file that second.csv was taken from).
    """
    geography = scenario.geography
    numbers = {level: _numbers(scenario, set(names)) for level, names in variables.items()}
    named = {name for some in numbers.values() for name in some}
    totals = [
        line.variable for table in scenario.tables for line in table.lines if line.parts and line.variable in named
    ]
    told = {
        "format": FORMAT,
        "scenario": scenario.name,
        "place": geography.place,
        "levels": {level: geography.lengths.get(level, 0) for level in (*variables, *(second or {}))},
        "mapping": {level: dict(sorted(codes.items())) for level, codes in (mapping or {}).items()},
        "attributes": [{"name": one.name, "levels": list(one.levels)} for one in schema.attributes],
        "compare": {one.name: [int(c) for c in compare[at]] for at, one in enumerate(schema.attributes)},
        "impossible": [
            {"where": boxed(schema, zero.predicate), "reason": zero.reason, "kind": zero.kind}
            for zero in schema.impossible
        ],
        "absent": "hidden" if hidden else "zero",
        "all_places": all_places,
        "assumed": sorted(set(assumed) & named),
        "aside": sorted(aside),
        "totals": totals,
        "numbers": {**numbers, **(second or {})},
    }
    if second_from is not None:
        told["second_from"] = dict(second_from)
    if made_from is not None:
        told["made_from"] = dict(made_from)
    return (json.dumps(told, ensure_ascii=False, indent=1) + "\n").encode()


def _numbers(scenario: Scenario, names: set[str]) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = {}
    for table in scenario.tables:
        for line in table.lines:
            if line.variable in names:
                if not NAME.fullmatch(line.variable):
                    raise InputError(f"a number called '{line.variable[:50]}' cannot be named in a certificate")
                counts = [boxed(scenario.schema, one) for one in _boxes(table, line.number)]
                said = scenario.said(table, line)
                found[line.variable] = {"table": table.name, "says": said, "counts": counts}
    return found


def _boxes(table: Table, number: int) -> Iterable[Predicate]:
    """What a line counts; a description that nobody can have counts nobody."""
    return (one for one in counted(table, table.line(number)) if not one.empty)


def boxed(schema: Schema, predicate: Predicate) -> dict[str, str]:
    """A predicate as definitions have it: levels by their numbers."""
    return {name: ranges(sorted(levels)) for name, levels in predicate.sets}


def ranges(levels: Sequence[int]) -> str:
    """Numbers as text: 0-4 18."""
    parts: list[list[int]] = []
    for level in levels:
        if parts and level == parts[-1][-1] + 1:
            parts[-1] = [parts[-1][0], level]
        else:
            parts.append([level])
    return " ".join("-".join(map(str, part)) for part in parts)
