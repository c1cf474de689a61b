"""Which columns are one attribute? The same codes, or coarser and finer ones, in several tables; and its levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from glasshouse.errors import InputError
from glasshouse.files.describing.asking import Inquiry
from glasshouse.files.describing.bins import OLDEST, Bin
from glasshouse.files.describing.columns import Table, naming
from glasshouse.files.describing.places import called, plain_name
from glasshouse.files.describing.totals import Tree, roots
from glasshouse.files.formats.delimited import OVER
from glasshouse.limits import LEVELS

Levels = frozenset[int]
REST = "not printed"


@dataclass(frozen=True)
class Attribute:
    """Something known about records: its levels by label and code, and what every code of every column means.

    `sets` has, for a table's number and its column, the levels of each code; `everybody` the code of all, if any.
    """

    name: str
    title: str
    labels: tuple[str, ...]
    codes: tuple[str, ...]
    sets: Mapping[tuple[int, str], Mapping[str, Levels]]
    everybody: Mapping[tuple[int, str], str | None]
    first: int | None = None  # of whole numbers: the least
    open_from: int | None = None  # of whole numbers: the highest stands for itself and all above
    why: str = ""
    trees: Mapping[tuple[int, str], Tree] = field(default_factory=dict)

    @property
    def all(self) -> Levels:
        return frozenset(range(len(self.labels)))

    def covered(self, key: tuple[int, str]) -> Levels:
        """The levels that the codes of a column speak of, the total aside."""
        return frozenset().union(*(some for code, some in self.sets[key].items() if code != self.everybody[key]))


Key = tuple[int, str]


def link(tables: Sequence[Table], trees: Mapping[Key, Tree], inquiry: Inquiry) -> tuple[Attribute, ...]:
    """The attributes of all tables together."""
    owner: dict[Key, str] = {}
    for key in trees:
        title = trees[key].column.title
        owner[key] = plain_name(
            inquiry.answers.attribute.get(key[1]) or (title if key[1] == OVER else called(key[1], title))
        )
    _join_by_codes(owner, trees, inquiry)
    found = []
    for name in dict.fromkeys(owner.values()):
        members = {key: trees[key] for key, one in owner.items() if one == name}
        twice = [number for number, _ in members if [one for one, _ in members].count(number) > 1]
        if twice:
            columns = [column for number, column in members if number == twice[0]]
            raise InputError(
                f"{tables[twice[0]].look.path.name}: the columns {' and '.join(columns)} would be one "
                f"attribute '{name}'; "
                f"name one of them otherwise: --attribute '{columns[-1]}=NAME'"
            )
        with naming(tables[number] for number, _ in members):
            found += [_attribute(*part, inquiry) for part in _apart(name, members, inquiry)]
    return tuple(found)


def _meant(tree: Tree) -> frozenset[str]:
    """The texts of a column besides its total, as far as people read them."""
    return frozenset(tree.column.label(code).strip().casefold() for code in tree.column.codes if code != tree.total)


def _join_by_codes(owner: dict[Key, str], trees: Mapping[Key, Tree], inquiry: Inquiry) -> None:
    """Columns of other names with the same codes are asked for, and taken together."""
    for one, other in combinations(trees, 2):
        if one[0] == other[0] or owner[one] == owner[other] or one[1] in inquiry.answers.attribute:
            continue
        if other[1] in inquiry.answers.attribute:
            continue
        mine, its = _meant(trees[one]), _meant(trees[other])
        if mine == its and len(mine) > 1:
            telling = len(mine) > 2 and not all(text.isdigit() for text in mine)
            inquiry.ask(
                f"'{one[1]}' and '{other[1]}' have the same codes; are they one attribute?",
                f"--attribute '{other[1]}={owner[one]}' (or another name, if they are two)",
                f"--attribute {other[1]}={owner[one]}" if telling else "",
            )
            before = owner[other]
            owner.update({key: owner[one] for key, name in owner.items() if name == before and key[0] != one[0]})


def _apart(name: str, members: Mapping[Key, Tree], inquiry: Inquiry) -> list[tuple[str, Mapping[Key, Tree]]]:
    """Columns of one name that share nothing are two attributes: that is safe, and said."""
    keys = list(members)
    first = [keys[0]]
    for key in keys[1:]:
        tree = members[key]
        known = [members[one] for one in first]
        shares = any(_meant(tree) & _meant(other) for other in known) or any(
            {*tree.column.codes} & {*other.column.codes} - {tree.total} for other in known
        )
        if shares or (tree.bins and any(other.bins for other in known)) or name in inquiry.answers.attribute.values():
            first.append(key)
    rest = {key: members[key] for key in keys if key not in first}
    if not rest:
        return [(name, members)]
    inquiry.ask(
        f"'{name}' has other codes in one table than in another; are these coarser or finer codes of the same?",
        f"--group '{name}:CODE=CODE|CODE' for each coarser code",
        "them as two attributes, which links nothing",
    )
    return [(name, {key: members[key] for key in first}), *_apart(f"{name}_2", rest, inquiry)]


def _attribute(name: str, members: Mapping[Key, Tree], inquiry: Inquiry) -> Attribute:
    whole = all(
        len(tree.bins) == len([code for code in tree.column.codes if code != tree.total]) for tree in members.values()
    )
    binned = whole and any(tree.bins for tree in members.values())
    made = _whole_numbers if binned else _categories
    found = made(name, members, inquiry)
    if len(found.labels) == 1:
        column, total = next((key[1], tree.total) for key, tree in members.items())
        remedy = f"--only '{column}={total}' keeps its totals" if total is not None else f"--ignore '{column}'"
        raise InputError(f"'{column}' tells nobody apart: all it has is '{found.labels[0]}'; {remedy}")
    if len(found.labels) > LEVELS:
        raise InputError(
            f"'{name}' has {len(found.labels):,} levels; expected at most {LEVELS:,}; is it a place? (--place)"
        )
    return found


def _whole_numbers(name: str, members: Mapping[Key, Tree], inquiry: Inquiry) -> Attribute:
    """An attribute of whole numbers, by its bins."""
    every = [one for tree in members.values() for one in tree.bins.values()]
    first = min(one.first for one in every)
    is_open = any(one.last is None for one in every)
    highest = max(max(one.first, one.last or 0) for one in every)
    ages = any(tree.ages for tree in members.values())
    top = max(highest, OLDEST) if is_open and ages else highest
    labels = tuple(str(number) for number in range(first, top + 1))

    def levels(one: Bin) -> Levels:
        return frozenset(number - first for number in one.range(top))

    sets = {key: {code: levels(one) for code, one in tree.bins.items()} for key, tree in members.items()}
    return _with_totals(
        name, members, labels, labels, sets, first=first, open_from=top if is_open else None,
        why="labels are bins of whole numbers",
    )  # fmt: skip


def _categories(name: str, members: Mapping[Key, Tree], inquiry: Inquiry) -> Attribute:
    """An attribute of categories: the levels are the codes that no table divides."""
    nodes: list[tuple[str, str]] = []  # code and label of everything that is named
    at: dict[tuple[Key, str], int] = {}
    parts: dict[int, set[int]] = {}
    spans: dict[int, Bin] = {}
    for key, tree in members.items():
        for code in tree.column.codes:
            if code != tree.total:
                at[key, code] = _same(nodes, code, tree.column.labels.get(code, ""))
                if code in tree.bins:
                    spans[at[key, code]] = tree.bins[code]
    for key, tree in members.items():
        for code, some in tree.parts.items():
            if code != tree.total and len(some) > 1:
                parts.setdefault(at[key, code], set()).update(at[key, one] for one in some if one != tree.total)
    for code, some in _groups_told(members, inquiry).items():
        whole = next((index for index, node in enumerate(nodes) if node[0] == code), None)
        inner = {index for index, node in enumerate(nodes) if node[0] in some}
        if whole is not None and whole not in inner and inner:
            parts[whole] = inner
    _bins_inside(spans, parts)
    _the_others(name, members, nodes, at, parts, inquiry)
    leaves = [index for index in range(len(nodes)) if index not in parts]
    level = {node: number for number, node in enumerate(leaves)}

    def levels(node: int, above: tuple[int, ...] = ()) -> Levels:
        if node in above:
            raise InputError(
                f"'{name}': '{nodes[node][0] or 'blank'}' is a part of itself; expected groups of other codes (--group)"
            )
        if node in level:
            return frozenset([level[node]])
        return frozenset().union(*(levels(one, (*above, node)) for one in sorted(parts[node])))

    labels, codes = [nodes[node][1] or nodes[node][0] for node in leaves], [nodes[node][0] for node in leaves]
    if any(not tree.whole for tree in members.values()):
        labels, codes = [*labels, REST], [*codes, REST]
    labels = [label or "blank" for label in labels]
    if len(set(labels)) < len(labels):
        labels = [
            f"{label} ({code})" if labels.count(label) > 1 else label for label, code in zip(labels, codes, strict=True)
        ]
    sets = {
        key: {code: levels(at[key, code]) for code in tree.column.codes if code != tree.total}
        | ({} if tree.whole else {REST: frozenset([len(labels) - 1])})
        for key, tree in members.items()
    }
    return _with_totals(name, members, tuple(labels), tuple(codes), sets)


def _bins_inside(spans: Mapping[int, Bin], parts: dict[int, set[int]]) -> None:
    """Of codes that are bins beside others that are none: wider ones are made up of narrower ones."""
    top = max((max(one.first, one.last or 0) for one in spans.values()), default=0) + 1
    wide = {node: frozenset(one.range(top)) for node, one in spans.items()}
    for node, span in wide.items():
        inside = [other for other, some in wide.items() if some < span]
        direct = [one for one in inside if not any(wide[one] < wide[other] for other in inside)]
        if direct and frozenset().union(*(wide[one] for one in direct)) == span and node not in parts:
            parts[node] = set(direct)


def _same(nodes: list[tuple[str, str]], code: str, label: str) -> int:
    """The node of a code: by its code, unless that has another label elsewhere, or by its label."""
    for index, (known, its) in enumerate(nodes):
        if known == code and (not label or not its or label.casefold() == its.casefold()):
            nodes[index] = (known, its or label)
            return index
    for index, (known, its) in enumerate(nodes):
        if (label or code).strip().casefold() == (its or known).strip().casefold():
            return index
    nodes.append((code, label))
    return len(nodes) - 1


def _groups_told(members: Mapping[Key, Tree], inquiry: Inquiry) -> dict[str, tuple[str, ...]]:
    columns = {column for _, column in members}
    return {
        name.partition(":")[2]: tuple(one.strip() for one in codes.split("|"))
        for name, codes in inquiry.answers.group.items()
        if name.partition(":")[0] in columns
    }


def _the_others(
    name: str, members: Mapping[Key, Tree], nodes: Sequence[tuple[str, str]], at: Mapping[tuple[Key, str], int],
    parts: dict[int, set[int]], inquiry: Inquiry,
) -> None:  # fmt: skip
    """Two tables whose codes make up the same total: what one has beyond the other is what the other has instead."""

    def leaves(node: int) -> set[int]:
        return {node} if node not in parts else set().union(*(leaves(one) for one in parts[node]))

    tops = {
        key: {leaf for code in roots(tree) for leaf in leaves(at[key, code])}
        for key, tree in members.items()
        if tree.whole
    }
    for one, other in combinations(tops, 2):
        mine, its = tops[one] - tops[other], tops[other] - tops[one]
        if not mine or not its:
            continue
        single, several = (mine, its) if len(mine) == 1 else (its, mine)
        both = members[one].adds_up and members[other].adds_up
        said = ", ".join(f"'{nodes[node][1] or nodes[node][0]}'" for node in sorted(single | several)[:6])
        (column,) = {key[1] for key in (one, other)} if one[1] == other[1] else {one[1]}
        if len(single) == 1:
            (node,) = single
            codes = "|".join(nodes[index][0] for index in sorted(several))
            inquiry.ask(
                f"'{name}': one table has {said} where another has others; both add up to the same total?",
                f"--group '{column}:{nodes[node][0]}={codes}'",
                f"--group {column}:{nodes[node][0]}={codes}" if both else "",
            )
            parts[node] = several
            return
        inquiry.ask(
            f"'{name}': two tables have different codes ({said}); which are groups of others?",
            f"--group '{column}:CODE=CODE|CODE' for each, or --attribute '{other[1]}=NAME' if they are two attributes",
        )


def _with_totals(
    name: str, members: Mapping[Key, Tree], labels: tuple[str, ...], codes: tuple[str, ...],
    sets: Mapping[Key, Mapping[str, Levels]], *, first: int | None = None, open_from: int | None = None, why: str = "",
) -> Attribute:  # fmt: skip
    """The attribute, with what the total of each column means: everybody, or everybody of whom its codes speak."""
    everybody = {key: tree.total for key, tree in members.items()}
    every = frozenset(range(len(labels)))
    whole: dict[Key, Mapping[str, Levels]] = {}
    for key, tree in members.items():
        spoken = frozenset().union(*sets[key].values())
        of_all = not spoken or not tree.adds_up
        whole[key] = {**sets[key], **({tree.total: every if of_all else spoken} if tree.total is not None else {})}
    title = next((tree.column.title for tree in members.values() if tree.column.title), "")
    title = title or next((key[1] for key in members if plain_name(key[1]) == name), name).replace("_", " ")
    return Attribute(name, title, labels, codes, whole, everybody, first, open_from, why, members)
