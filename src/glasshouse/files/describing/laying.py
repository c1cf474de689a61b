"""Which tables does a scenario need so that every printed number is one of their lines?

A table prints a total, then every group of its first recode, and inside each the groups of the next: so it has the
sums over its last recodes, and no others. Sums over the first ones are lines of another table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from math import prod

import polars as pl

from glasshouse.files.describing.columns import Table
from glasshouse.files.describing.linking import Attribute, Key, Levels
from glasshouse.files.describing.places import Places

ORDERS = 6  # attributes up to which every order of them is tried
COMPARED = 20_000  # lines of a table up to which it is compared with others
SUM = -1  # the class of a code that counts everybody
LEVEL = "\0level"  # a name that no column of a file has
Kind = tuple[int, ...]  # the class of each code of a number


@dataclass(frozen=True)
class Group:
    """Some levels under a label, perhaps divided."""

    label: str
    levels: Levels
    parts: tuple[Group, ...] = ()


@dataclass(frozen=True)
class Recode:
    """A way to look at an attribute."""

    attribute: str
    groups: tuple[Group, ...]

    @property
    def covered(self) -> Levels:
        return frozenset().union(*(group.levels for group in self.groups))

    @property
    def leaves(self) -> int:
        return sum(_leaves(group) for group in self.groups)

    @property
    def divided(self) -> bool:
        return any(group.parts for group in self.groups)


@dataclass(frozen=True)
class Family:
    """The codes of a column in classes: everybody, those that nothing divides, and layers of larger ones.

    A recode stands for each class; that of class 0 has the larger ones as divided groups, if they nest.
    """

    classes: Mapping[str, int]
    recodes: Mapping[int, Recode]
    everybody: Levels | None


@dataclass(frozen=True)
class Laid:
    """A table of the scenario."""

    level: str
    by: tuple[Recode, ...]
    universe: tuple[tuple[str, Levels], ...]

    def within(self, whom: Mapping[str, Levels]) -> Laid:
        """The same table of fewer records."""
        inside = dict(self.universe)
        for name, levels in whom.items():
            inside[name] = inside[name] & levels if name in inside else levels
        return replace(self, universe=tuple(sorted(inside.items())))


def family(attribute: Attribute, key: Key, label: Mapping[Levels, str]) -> Family:
    """Put the codes of a column into classes."""
    sets, total = attribute.sets[key], attribute.everybody[key]
    codes = [code for code in sets if code != total]
    different = list(dict.fromkeys(sets[code] for code in codes))
    inside = {one: [other for other in different if other < one] for one in different}
    direct = {
        one: [other for other in some if not any(other < third for third in some)] for one, some in inside.items()
    }
    nests = all(
        not some or (frozenset().union(*some) == one and sum(map(len, some)) == len(one))
        for one, some in direct.items()
    )
    tops = [one for one in different if not any(one < other for other in different)]
    if nests and sum(map(len, tops)) == len(frozenset().union(*tops)):
        depth: dict[Levels, int] = {}

        def made(one: Levels, at: int) -> Group:
            depth[one] = at
            return Group(label[one], one, tuple(made(part, at + 1) for part in direct[one]))

        recodes = {0: Recode(attribute.name, tuple(made(one, 1) for one in tops))}
        layer = {one: (depth[one] if direct[one] else 0) for one in different}
    else:
        layer, layers = {}, list[list[Levels]]()
        for one in sorted(different, key=len):
            at = next((at for at, some in enumerate(layers) if not any(one & other for other in some)), len(layers))
            layers[at : at + 1] = [[*(layers[at] if at < len(layers) else []), one]]
            layer[one] = at
        recodes = {}
    for at in set(layer.values()) - set(recodes):
        recodes[at] = Recode(attribute.name, tuple(Group(label[one], one) for one in different if layer[one] == at))
    classes = {code: layer[sets[code]] for code in codes} | ({total: SUM} if total is not None else {})
    return Family(classes, recodes, sets[total] if total is not None else None)


def lay(table: Table, families: Mapping[str, Family], places: Places) -> list[Laid]:
    """The tables that have a line for every number of a file's table."""
    columns = [column for column in table.look.columns if column.name in families]
    kinds = coded(table, families, places).unique(maintain_order=True).rows()
    found = []
    for name in reversed(list(places.levels)):
        wanted = [tuple(kind[1:]) for kind in kinds if kind[0] == name]
        found += [Laid(name, *one) for one in _cover(wanted, [families[one.name] for one in columns])]
    return found


def merged(laid: Mapping[Laid, Sequence[int]]) -> dict[Laid, list[int]]:
    """The same tables without those whose lines another one has, too: a number would have two places to go."""
    lines = {one: _lines(one) for one in laid}
    found: dict[Laid, list[int]] = {}
    for one, some in laid.items():
        larger = [
            other
            for other in laid
            if other != one and (other.level, other.universe) == (one.level, one.universe) and lines[one] < lines[other]
            if {recode.attribute for recode in other.by} == {recode.attribute for recode in one.by}
        ]
        keeper = max(larger, key=lambda other: len(lines[other]), default=one)
        found.setdefault(keeper, []).extend(some)
    return {one: sorted(set(found[one])) for one in laid if one in found}


def _lines(one: Laid) -> frozenset[frozenset[tuple[str, Levels]]]:
    """Whom the lines of a table count, the total aside; none if they are too many to compare."""
    if prod(recode.leaves for recode in one.by) > COMPARED:
        return frozenset()
    found: set[frozenset[tuple[str, Levels]]] = set()

    def walk(inside: frozenset[tuple[str, Levels]], groups: Sequence[Group], at: int) -> None:
        for group in groups:
            line = inside | {(one.by[at].attribute, group.levels)}
            found.add(line)
            if group.parts:
                walk(inside, group.parts, at)
            elif at + 1 < len(one.by):
                walk(line, one.by[at + 1].groups, at + 1)

    if one.by:
        walk(frozenset(), one.by[0].groups, 0)
    return frozenset(found)


def coded(table: Table, families: Mapping[str, Family], places: Places) -> pl.DataFrame:
    """Of each number the level of its place, and the class of each of its codes."""
    frame = table.look.frame
    classes = [
        pl.Series([families[column.name].classes[code] for code in column.codes], dtype=pl.Int64)
        .gather(frame[column.name])
        .alias(column.name)
        for column in table.look.columns
        if column.name in families
    ]
    if table.place:
        levels = pl.Series(
            [places.level_of.get(code) for code in table.look.by_name[table.place].codes], dtype=pl.String
        )
        level = levels.gather(frame[table.place])
    else:
        level = pl.Series([places.finest] * frame.height, dtype=pl.String)
    return pl.DataFrame([level.alias(LEVEL), *classes])


def has_gaps(table: Table, families: Mapping[str, Family], places: Places) -> bool:
    """Do some combinations of codes have no row, of those that the table has elsewhere?"""
    names = [column.name for column in table.look.columns if column.name in families]
    frame = coded(table, families, places)
    codes = table.look.by_name[table.place].codes if table.place else ()
    at_level = {level: sum(places.level_of.get(code) == level for code in codes) or 1 for level in places.levels}
    sizes = [Counter(families[name].classes.values()) for name in names]
    for level, *kind, rows in frame.group_by([LEVEL, *names]).len().rows():
        if level is not None and rows < at_level[level] * prod(
            size[one] for size, one in zip(sizes, kind, strict=True)
        ):
            return True
    return False


def _cover(
    wanted: Sequence[Kind], families: Sequence[Family]
) -> list[tuple[tuple[Recode, ...], tuple[tuple[str, Levels], ...]]]:
    """Tables for kinds of numbers, largest first: each takes all the sums that it can print."""
    left, found = dict.fromkeys(wanted), []
    while left:
        kind = min(left, key=lambda one: (sum(at == SUM for at in one), sum(max(at, 0) for at in one)))
        crossed = [at for at, one in enumerate(kind) if one != SUM]
        orders = permutations(crossed) if len(crossed) <= ORDERS else [tuple(crossed)]
        best = max(orders, key=lambda order: len(_printed(left, kind, order, families)))
        for one in _printed(left, kind, best, families):
            del left[one]
        by = tuple(families[at].recodes[kind[at]] for at in best)
        found.append((by, _universe(kind, by, families)))
    return found


def _printed(left: Iterable[Kind], kind: Kind, order: Sequence[int], families: Sequence[Family]) -> list[Kind]:
    """The kinds of numbers that a table prints which crosses attributes in an order."""
    found = []
    for one in left:
        shared = [at for at in order if one[at] != SUM]
        rest = order[len(shared) :]
        if list(order[: len(shared)]) != shared or any(one[at] != SUM for at in range(len(one)) if at not in order):
            continue
        sums = all(families[at].everybody == families[at].recodes[kind[at]].covered for at in rest)
        same = all(one[at] == kind[at] for at in shared[:-1])
        last = not shared or one[shared[-1]] == kind[shared[-1]]
        nested = bool(shared) and kind[shared[-1]] == 0 and families[shared[-1]].recodes[0].divided
        if sums and same and (last or nested):
            found.append(one)
    return found


def _universe(kind: Kind, by: Sequence[Recode], families: Sequence[Family]) -> tuple[tuple[str, Levels], ...]:
    """Whom a table counts, attribute by attribute, also where that is everybody."""
    inside = {recode.attribute: recode.covered for recode in by}
    for at, family in enumerate(families):
        if kind[at] == SUM and family.everybody is not None:
            attribute = next(iter(family.recodes.values())).attribute if family.recodes else ""
            if attribute and attribute not in inside:
                inside[attribute] = family.everybody
    return tuple(sorted(inside.items()))


def _leaves(group: Group) -> int:
    return sum(map(_leaves, group.parts)) if group.parts else 1
