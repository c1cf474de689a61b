"""Do all tables count the same people? Their totals say so, place by place; if not, who is counted is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import polars as pl

from glasshouse.errors import InputError
from glasshouse.files.describing.asking import Inquiry
from glasshouse.files.describing.bins import read_bin
from glasshouse.files.describing.columns import Table
from glasshouse.files.describing.figures import Printed
from glasshouse.files.describing.linking import Attribute, Key, Levels
from glasshouse.files.describing.looking import NUMBER
from glasshouse.files.describing.totals import Tree, roots


def restrict(
    tables: Sequence[Table],
    trees: Mapping[Key, Tree],
    attributes: Sequence[Attribute],
    printed: Printed,
    inquiry: Inquiry,
) -> dict[str, dict[str, Levels]]:
    """Whom each file counts, as told; files whose totals differ without a reason are asked for."""
    told = _told(tables, attributes, inquiry)
    counted = {
        number: (_totals(table, number, trees), _reach(number, attributes))
        for number, table in enumerate(tables)
        if table.look.path.name not in told
    }
    for one, other in combinations(counted, 2):
        (mine, whom), (its, others) = counted[one], counted[other]
        if whom != others:
            continue  # one of them speaks of fewer levels, and the numbers of these need not agree
        slack = 0 if printed.exact else printed.slack(1) * max(mine[1], its[1])
        shared = sorted(place for place in mine[0] if place in its[0])
        wrong = [place for place in shared if abs(mine[0][place] - its[0][place]) > slack]
        if wrong:
            few, many = sorted((one, other), key=lambda number: counted[number][0][0][wrong[0]])
            files = tables[few].look.path.name, tables[many].look.path.name
            numbers = counted[few][0][0][wrong[0]], counted[many][0][0][wrong[0]]
            inquiry.ask(
                f"{files[0]} and {files[1]} count different people in {len(wrong):,} of {len(shared):,} places (first: "
                f"{wrong[0] or 'the area'}, {numbers[0]:,} and {numbers[1]:,}); whom does {files[0]} count?",
                f"--universe '{files[0]}:COLUMN=CODE|CODE' (such as age=15+), or describe them apart",
            )
    return told


def _reach(number: int, attributes: Sequence[Attribute]) -> frozenset[tuple[str, Levels]]:
    """Of which levels a table speaks, where that is not all of them."""
    keys = [(one, key) for one in attributes for key in one.sets if key[0] == number]
    found = {
        one.name: one.sets[key][one.everybody[key] or ""] if one.everybody[key] else one.covered(key)
        for one, key in keys
    }
    whole = {one.name: one.all for one in attributes}
    return frozenset((name, levels) for name, levels in found.items() if levels != whole[name])


def _totals(table: Table, number: int, trees: Mapping[Key, Tree]) -> tuple[dict[str, int], int]:
    """How many a table counts in each place, where nothing is hidden; and the most numbers that were added up."""
    frame = table.look.frame
    for column in table.attributes:
        tree = trees[number, column.name]
        kept = [tree.total] if tree.total is not None else roots(tree)
        frame = frame.filter(pl.col(column.name).is_in([column.codes.index(code) for code in kept]))
    codes = table.look.by_name[table.place].codes if table.place else ("",)
    place = pl.col(table.place) if table.place else pl.lit(0, pl.UInt32)
    summed = frame.group_by(place.alias("\0at")).agg(
        pl.col(NUMBER).sum().alias("\0sum"), pl.col(NUMBER).is_null().any().alias("\0hidden"), pl.len().alias("\0rows")
    )
    known = summed.filter(~pl.col("\0hidden"))
    at = {codes[index]: int(number) for index, number in known.select("\0at", "\0sum").rows()}
    return at, int(known["\0rows"].max() or 1)  # type: ignore[arg-type]  # a number


def _told(tables: Sequence[Table], attributes: Sequence[Attribute], inquiry: Inquiry) -> dict[str, dict[str, Levels]]:
    files = {table.look.path.name for table in tables}
    found: dict[str, dict[str, Levels]] = {}
    for said, codes in inquiry.answers.universe.items():
        file, _, name = said.rpartition(":")
        attribute = next(
            (one for one in attributes if name == one.name or name in {column for _, column in one.sets}), None
        )
        if file not in files or attribute is None:
            columns = ", ".join(one.name for one in attributes)
            raise InputError(
                f"--universe {said}={codes}: expected FILE:COLUMN=CODE|CODE; files: "
                f"{', '.join(sorted(files))}; columns: "
                f"{columns}"
            )
        found.setdefault(file, {})[attribute.name] = _levels(attribute, codes, said)
    return found


def _levels(attribute: Attribute, codes: str, said: str) -> Levels:
    """The levels that codes mean, or bins of whole numbers."""
    levels: set[int] = set()
    for code in (one.strip() for one in codes.split("|")):
        known = next((sets[code] for sets in attribute.sets.values() if code in sets), None)
        span = read_bin(code) if attribute.first is not None else None
        if known is not None:
            levels |= known
        elif code in attribute.labels:
            levels.add(attribute.labels.index(code))
        elif span is not None:
            first = attribute.first or 0
            levels |= {number - first for number in span.range(first + len(attribute.labels) - 1) if number >= first}
        else:
            raise InputError(f"--universe {said}={codes}: '{code}' is no code of {attribute.name}")
    return frozenset(levels)
