"""What was found in tables that nobody described, in plain sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # heavy modules are imported when they are needed, so that --help is quick
    from glasshouse.files.describing.describe import Description
    from glasshouse.files.describing.linking import Attribute
    from glasshouse.scenarios.load import Scenario

SHOWN = 12


@dataclass(frozen=True)
class Dimension:
    """A column of the tables: what it is, how many codes or levels it has, and how that was found."""

    name: str
    columns: tuple[str, ...]
    levels: int
    found: str
    files: tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """A table of the scenario."""

    name: str
    title: str
    level: str
    lines: int


@dataclass(frozen=True)
class Summary:
    """What was found: dimensions, places, tables, what links them, what was left out, what was taken without asking."""

    title: str
    files: tuple[str, ...]
    numbers: int
    dimensions: tuple[Dimension, ...]
    places: Mapping[str, int]
    tables: tuple[Table, ...]
    linked: tuple[str, ...]
    left_out: Mapping[str, str]
    printed: tuple[str, ...]
    questions: tuple[str, ...]


def summarise(found: Description, scenario: Scenario, files: Sequence[Path]) -> Summary:
    """The summary of a description, and of the scenario that was made of it."""
    names = [table.look.path.name for table in found.tables]
    dimensions = tuple(
        Dimension(
            one.name, tuple(dict.fromkeys(column for _, column in one.sets)), len(one.labels), _how(one),
            tuple(dict.fromkeys(names[number] for number, _ in one.sets)),
        )
        for one in found.attributes
    )  # fmt: skip
    levels = list(found.places.level_of.values())
    left = {name: why for table in found.tables for name, why in table.left.items()}
    left |= {path.name: "nothing tells which places lie in which" for path in files if path.name not in names}
    linked = tuple(f"{one.name} links {', '.join(one.files)}" for one in dimensions if len(one.files) > 1)
    tables = tuple(Table(one.name, one.title, one.level, len(one.lines)) for one in scenario.tables)
    return Summary(
        found.title, tuple(dict.fromkeys(names)), sum(table.look.frame.height for table in found.tables), dimensions,
        {level: levels.count(level) for level in found.places.levels}, tables, linked, left, _printed(found),
        tuple(one.said for one in found.taken),
    )  # fmt: skip


def lines(summary: Summary) -> list[str]:
    """The summary for people."""
    from glasshouse.model.geography import plural

    files = ", ".join(summary.files[:4]) + (" and others" if len(summary.files) > 4 else "")
    places = ", ".join(
        f"{number:,} {level if number == 1 else plural(level)}" for level, number in summary.places.items()
    )
    told = [f"{summary.numbers:,} numbers in {files}: {places}."]
    told += [f"    {one.name:<16} {one.levels:>5} levels   {one.found}" for one in summary.dimensions]
    told.append("Tables that have a line for each of these numbers:")
    told += [f"    {one.name:<5} {one.level:<12} {one.lines:>6} lines   {one.title}" for one in summary.tables[:SHOWN]]
    if len(summary.tables) > SHOWN:
        told.append(f"    ... and {len(summary.tables) - SHOWN:,} more")
    told += [f"{one[0].upper()}{one[1:]}." for one in (*summary.linked, *summary.printed)]
    told += [f"Left out: {name} ({why})." for name, why in summary.left_out.items()]
    told += [f"Taken without being told: {one}" for one in summary.questions]
    return told


def _how(attribute: Attribute) -> str:
    """How levels and totals were found, in a few words."""
    columns = ", ".join(dict.fromkeys(tree.column.told for tree in attribute.trees.values()))
    whys: dict[str, list[str]] = {}
    for tree in attribute.trees.values():
        if tree.total is not None:
            whys.setdefault(tree.column.label(tree.total), []).append(tree.why.get(tree.total, "by its name"))
    totals = [f"'{label}' is the total ({', '.join(dict.fromkeys(some))})" for label, some in whys.items()]
    groups = sum(len(tree.parts) + sum(code in tree.bins for code in tree.why) for tree in attribute.trees.values())
    said = [f"column {columns}" + (f", {attribute.why}" if attribute.why else ""), *totals]
    said += [f"{groups} subtotals"] if groups else []
    return "; ".join(said)


def _printed(found: Description) -> tuple[str, ...]:
    printed, said = found.printed, []
    if printed.base > 1:
        said.append(f"numbers are read as rounded to {printed.base} ({printed.how})")
    if printed.within:
        said.append(f"numbers may be off by up to {printed.within}")
    said += [f"'{mark or 'blank'}' stands for {meant}" for mark, meant in printed.markers.items()]
    if printed.missing == "hidden":
        said.append("a number that has no row is hidden")
    if found.sums:
        said.append(found.sums)
    return tuple(said)
