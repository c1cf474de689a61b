"""How is a description written down? A scenario that a person can read and correct, with a reason beside each line."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from glasshouse.errors import InputError
from glasshouse.files.describing.describe import Description
from glasshouse.files.describing.laying import Group, Laid, Recode
from glasshouse.files.describing.linking import Attribute, Levels
from glasshouse.files.describing.looking import BLANK
from glasshouse.files.describing.totals import Tree
from glasshouse.files.formats.delimited import OVER

NOT_TABLES = "# what follows is about files"  # the scenario proper ends here
Named = dict[Recode, str]


def scenario_toml(found: Description) -> str:
    """The text of `scenario.toml`."""
    recodes = _named_recodes(found)
    lines = [
        "# Written by glasshouse describe from the tables themselves. Read it, and correct what is wrong:",
        "# every line is a decision, and the words behind # say what it rests on.",
        "",
        f"title = {_text(found.title)}",
        *_accepted(found),
        "",
        *_geography(found),
        *(line for attribute in found.attributes for line in _attribute(attribute)),
        *_recodes(found, recodes),
        *_compare(found, recodes),
        *_tables(found, recodes),
        "",
        NOT_TABLES,
        *_files(found),
        *_printed(found),
    ]
    return "\n".join(lines) + "\n"


def places_csv(found: Description) -> str:
    """The list of places: level, code, name, geoid."""
    into = io.StringIO()
    writer = csv.writer(into, lineterminator="\n")
    writer.writerow(["level", "code", "name", "geoid"])
    order = list(found.places.levels)
    for code in sorted(
        found.places.geoid, key=lambda one: (order.index(found.places.level_of[one]), found.places.geoid[one])
    ):
        name = found.places.name_of.get(code, "")
        writer.writerow([found.places.level_of[code], code, name, found.places.geoid[code]])
    return into.getvalue()


def audit_toml(found: Description, files: Sequence[Path], out: Path | None) -> str:
    """A small configuration of an audit of these tables."""
    used = list(dict.fromkeys(p.absolute() for p in files if any(table.look.path == p for table in found.tables)))
    folders = {path.parent for path in used}
    whole = used[0] if len(used) == 1 else next(iter(folders))
    tables = os.path.relpath(whole, out.absolute()) if out is not None else str(whole)
    said = "" if len(used) == 1 else "   # a folder: all files in it are read as one release"
    if len(used) > 1 and any(path.is_file() and path.absolute() not in used for path in whole.iterdir()):
        said = "   # other files lie in this folder, too: give the described ones a folder of their own"
    if len(folders) > 1:
        said = "   # the files lie in several folders: put them into one, and name it here"
    return "\n".join([
        "# An audit of the described tables: glasshouse audit --config audit.toml --out report",
        f"title = {_text(found.title)}",
        'scenario = "."',
        "[input]",
        f"tables = {_text(tables)}{said}",
    ]) + "\n"  # fmt: skip


def _accepted(found: Description) -> list[str]:
    if not found.taken:
        return []
    return ["", "# Not told by the tables, and taken because --accept was said:"] + [
        f"# - {_comment(one.said)}" for one in found.taken
    ]


def _geography(found: Description) -> list[str]:
    places = found.places
    lines = ["[geography]"]
    levels = ", ".join(f"{_key(name)} = {length}" for name, length in places.levels.items())
    lines.append(f"levels = {{ {levels} }}   # {_comment(places.why)}")
    lines.append(f"place = {_text(places.finest)}   # the finest level that the tables have")
    lines.append(f"unit = {_text(places.unit)}   # worked on at once")
    if places.listed:
        lines.append('places = "places.csv"   # the codes of the files, and the nested codes that are used for them')
    if found.sums:
        lines.append(f"# {found.sums}")
    return [*lines, ""]


def _attribute(attribute: Attribute) -> list[str]:
    columns = dict.fromkeys(name for _, name in attribute.sets)
    linked = len({number for number, _ in attribute.sets})
    said = f"column{'s' * (len(columns) > 1)} {', '.join(columns)}" + (f"; in {linked} tables" if linked > 1 else "")
    lines = [f"[attribute.{_key(attribute.name)}]   # {_comment(said)}"]
    if attribute.first is not None:
        last = int(attribute.labels[-1])
        end = f"; {last} stands for {last} and over" if attribute.open_from is not None else ""
        lines.append(f"range = [{attribute.first}, {last}]   # {attribute.why}{end}")
    else:
        lines.append(f"levels = {_list(attribute.labels)}")
        if attribute.codes != attribute.labels:
            lines.append(f"codes = {_list(attribute.codes)}   # as the files write them")
    return [*lines, ""]


def _named_recodes(found: Description) -> Named:
    """A name for every recode that tables use, and for groups that only codes of files mean."""
    names: Named = {}
    every = [recode for laid in found.laid for recode in laid.by]
    for attribute in found.attributes:
        known = {group for recode in every if recode.attribute == attribute.name for group in _sets(recode.groups)}
        wanted = {
            levels
            for key, sets in attribute.sets.items()
            for code, levels in sets.items()
            if code != attribute.everybody[key]
        }
        every += [
            Recode(attribute.name, (Group(found.labels[attribute.name][levels], levels),))
            for levels in sorted(wanted - known, key=sorted)
            if 1 < len(levels) < len(attribute.labels)
        ]
    for recode in dict.fromkeys(every):
        whole = recode.leaves == len(next(one for one in found.attributes if one.name == recode.attribute).labels)
        name = recode.attribute if whole and not recode.divided else f"{recode.attribute}-{recode.leaves}"
        name += "-nested" if recode.divided else ""
        while name in names.values():
            name += "-b"
        names[recode] = name
    return names


def _sets(groups: Iterable[Group]) -> Iterable[Levels]:
    for group in groups:
        yield group.levels
        yield from _sets(group.parts)


def _recodes(found: Description, names: Named) -> list[str]:
    lines = ["[recode]"]
    for recode, name in names.items():
        attribute = next(one for one in found.attributes if one.name == recode.attribute)
        lines.append(f"{_key(name)} = {{ attribute = {_text(attribute.name)}{_groups(attribute, recode)} }}")
    return [*lines, ""]


def _groups(attribute: Attribute, recode: Recode) -> str:
    if attribute.first is not None and not recode.divided and all(_run(group.levels) for group in recode.groups):
        return f", bins = {_text(_bins(attribute, [group.levels for group in recode.groups]))}"
    if not recode.divided and [group.levels for group in recode.groups] == [
        frozenset([at]) for at in range(len(attribute.labels))
    ]:
        return ""
    return f", groups = [{', '.join(_group(attribute, group) for group in recode.groups)}]"


def _group(attribute: Attribute, group: Group) -> str:
    if len(group.levels) == 1 and not group.parts:
        return _text(group.label)
    if group.parts and [part.levels for part in group.parts] == [frozenset([at]) for at in sorted(group.levels)]:
        return f"{{ label = {_text(group.label)}, levels = {_levels(attribute, group.levels)}, each = true }}"
    inside = f", parts = [{', '.join(_group(attribute, part) for part in group.parts)}]" if group.parts else ""
    return f"{{ label = {_text(group.label)}, levels = {_levels(attribute, group.levels)}{inside} }}"


def _levels(attribute: Attribute, levels: Levels) -> str:
    """Levels as an entry names them: bins of whole numbers, or labels."""
    if attribute.first is not None:
        return _text(_bins(attribute, _runs(levels)))
    return _list([attribute.labels[at] for at in sorted(levels)])


def _bins(attribute: Attribute, groups: Sequence[Levels]) -> str:
    """Bins of whole numbers, single ones that follow each other together."""
    words: list[str] = []
    first, last = attribute.first or 0, len(attribute.labels) - 1
    run: list[int] = []

    def close() -> None:
        if run:
            words.append(str(run[0]) if len(run) == 1 else f"{run[0]}..{run[-1]}")
            run.clear()

    for levels in groups:
        low, high = min(levels) + first, max(levels) + first
        if low == high:
            if run and run[-1] != low - 1:
                close()
            run.append(low)
            continue
        close()
        words.append(f"{low}+" if attribute.open_from is not None and max(levels) == last else f"{low}-{high}")
    close()
    return " ".join(words)


def _run(levels: Levels) -> bool:
    return max(levels) - min(levels) == len(levels) - 1


def _runs(levels: Levels) -> list[Levels]:
    runs: list[list[int]] = []
    for at in sorted(levels):
        if runs and runs[-1][-1] == at - 1:
            runs[-1].append(at)
        else:
            runs.append([at])
    return [frozenset(run) for run in runs]


def _compare(found: Description, names: Named) -> list[str]:
    """Whole numbers of which tables tell only bins are compared in these."""
    lines, recodes = [], []
    for attribute in found.attributes:
        if attribute.first is None:
            continue
        told: dict[tuple[int, ...], list[int]] = {}
        every = list(dict.fromkeys(levels for sets in attribute.sets.values() for levels in sets.values()))
        told_by: list[list[int]] = [[] for _ in attribute.labels]
        for number, levels in enumerate(every):
            for at in levels:
                told_by[at].append(number)
        for at, numbers in enumerate(told_by):
            told.setdefault(tuple(numbers), []).append(at)
        runs = sorted((run for some in told.values() for run in _runs(frozenset(some))), key=min)
        if len(runs) == len(attribute.labels):
            continue
        recode = Recode(attribute.name, tuple(Group("", run) for run in runs))
        alike = [(one, name) for one, name in names.items() if one.attribute == attribute.name and not one.divided]
        same = [name for one, name in alike if [group.levels for group in one.groups] == runs]
        name = same[0] if same else f"{attribute.name}-told"
        if not same:
            recodes.append(
                f"{_key(name)} = {{ attribute = {_text(attribute.name)}{_groups(attribute, recode)} }}   # all "
                f"that is told"
            )
        lines.append(f"{_key(attribute.name + '_group')} = {_text(name)}")
    if not lines:
        return []
    return [*recodes, *([""] if recodes else []), "[compare]",
            f"bins = {{ {', '.join(lines)} }}   # records are compared in what the tables tell apart", ""]  # fmt: skip


def _tables(found: Description, names: Named) -> list[str]:
    lines = ["[table]"]
    for number, (laid, some) in enumerate(found.laid.items(), 1):
        files = [found.tables[one].look.path.name for one in some]
        universe = {name: levels for name, levels in laid.universe if levels != _of(found, name).all}
        inside = ", ".join(f"{_key(name)} = {_levels(_of(found, name), levels)}" for name, levels in universe.items())
        entry = [
            f"title = {_text(table_title(found, laid))}",
            f"level = {_text(laid.level)}",
            f"by = {_list([names[recode] for recode in laid.by])}",
            *([f"universe = {{ {inside} }}"] if inside else []),
        ]
        lines.append(f"T{number} = {{ {', '.join(entry)} }}   # {_comment(', '.join(dict.fromkeys(files)))}")
    return lines


def table_title(found: Description, laid: Laid) -> str:
    """What a table crosses, in words."""
    words = " by ".join(_of(found, recode.attribute).title for recode in laid.by) or "total"
    return (words[0].upper() + words[1:])[:150]


def _of(found: Description, name: str) -> Attribute:
    return next(one for one in found.attributes if one.name == name)


def _files(found: Description) -> list[str]:
    lines = ["[files]"]
    if found.value:
        lines.append(f"value = {_text(found.value)}   # the numbers")
    if found.status:
        lines.append(f"status = {_text(found.status)}   # marks beside them")
    place = next((table.place for table in found.tables if table.place), "")
    lines.append(
        f"place = {_text(place)}   # the places"
        if place
        else f"area = {_text(found.places.area)}   # no column says the place"
    )
    left: dict[str, str] = {}
    for table in found.tables:
        left |= {**table.left} | dict.fromkeys(table.above, f"it says which larger area '{table.place}' lies in")
    kept = {name: why for name, why in left.items() if why.startswith("only '")}
    ignored = [name for name in left if name not in kept]
    lines += [f"# not used: {_comment(name)}: {_comment(left[name])}" for name in ignored]
    if ignored:
        lines.append(f"ignore = {_list(ignored)}")
    if kept:
        only = ", ".join(
            f"{_key(name)} = {_text(re.findall(chr(39) + '(.*)' + chr(39), why)[0])}" for name, why in kept.items()
        )
        lines.append(f"only = {{ {only} }}   # rows of others are not read")
    for name, (attribute, codes, trees) in _columns(found).items():
        lines += ["", f"[files.column.{_key(name)}]", f"attribute = {_text(attribute.name)}"]
        if codes:
            inside = ", ".join(f"{_key(code)} = {_text(meant)}" for code, meant in codes.items())
            lines.append(f"codes = {{ {inside} }}")
        for tree in trees:
            lines += [f"# '{_comment(code)}': {_comment(why)}" for code, why in tree.why.items()]
    return [*lines, ""]


def _columns(found: Description) -> Mapping[str, tuple[Attribute, dict[str, str], list[Tree]]]:
    """What the codes of each column mean, where that is not what the attribute itself calls it."""
    columns: dict[str, tuple[Attribute, dict[str, str], list[Tree]]] = {}
    for attribute in found.attributes:
        labels, own = found.labels[attribute.name], dict(zip(attribute.codes, range(len(attribute.codes)), strict=True))
        for key, sets in attribute.sets.items():
            known, codes, trees = columns.setdefault(key[1], (attribute, {}, []))
            if known is not attribute:
                raise InputError(
                    f"the column '{key[1]}' is {known.name} in one file and {attribute.name} in another; "
                    f"rename one of them"
                )
            trees.append(attribute.trees[key])
            for code, levels in sets.items():
                if code not in attribute.trees[key].column.codes:
                    continue
                meant = "*" if code == attribute.everybody[key] or levels == attribute.all else labels[levels]
                same = code == meant or (meant != "*" and levels == frozenset([own.get(code, -1)]))
                if same and key[1] != OVER:  # of columns of numbers all are named, or a reader would not find them
                    continue
                if codes.setdefault(code, meant) != meant:
                    raise InputError(
                        f"'{code}' of the column '{key[1]}' means '{codes[code]}' in one file and '{meant}' in "
                        f"another; give it "
                        "two codes"
                    )
    return columns


def _printed(found: Description) -> list[str]:
    printed = found.printed
    lines = ["[printed]"]
    if printed.base > 1:
        lines.append(
            f"rounded = {{ base = {printed.base}, how = {_text(printed.how)} }}   # every number is a multiple of it"
        )
    if printed.within:
        lines.append(f"noise = {{ within = {printed.within} }}   # told so (--noise-within)")
    if printed.markers:
        inside = ", ".join(f"{_key(mark or BLANK)} = {_text(meant)}" for mark, meant in printed.markers.items())
        lines.append(f"markers = {{ {inside} }}   # texts instead of a number")
    if printed.thousands:
        lines.append(f"thousands = {_text(printed.thousands)}")
    lines.append(f"missing = {_text(printed.missing)}   # what a number is that has no row")
    return lines


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _list(texts: Iterable[str]) -> str:
    return f"[{', '.join(_text(text) for text in texts)}]"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _text(name)


def _comment(text: str) -> str:
    """A text that stays on its line."""
    return " ".join(text.split())
