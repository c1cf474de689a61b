"""How are levels, whole numbers and variables spelled? Bins, codes of record files, and patterns of names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from glasshouse.errors import InputError, unknown
from glasshouse.limits import LEVELS
from glasshouse.model.schema import Attribute, Reading
from glasshouse.text import is_whole


def spell(pattern: str, table: str, line: int) -> str:
    """The name of a variable: `{letters}{number:3}{iteration:1}{line:3}` makes P012A003 of line 3 of table P12A.

    The fields are the parts of the table's name (P, 12, A), the whole of it, and the line; a width pads with zeros.

    >>> spell("{letters}{number:3}{iteration:1}{line:3}", "PCT12", 3)
    'PCT0120003'
    """
    return next(spell_lines(pattern, table, (line,)))


def spell_lines(pattern: str, table: str, lines: Iterable[int]) -> Iterator[str]:
    """The names of the variables of some lines of a table; the pattern is read once."""
    parts = re.fullmatch(r"([A-Za-z]+)([0-9]+)([A-Za-z]*)", table)
    values = {"table": table}
    if parts:
        values |= {"letters": parts[1], "number": parts[2], "iteration": parts[3]}
    pieces: list[str | int] = []  # a number stands for the line, padded to that width
    literals = re.split(r"\{(\w+)(?::([0-9]))?\}", pattern)
    for plain, name, width in zip(literals[::3], [*literals[1::3], None], [*literals[2::3], None], strict=True):
        pieces.append(plain)
        if name is not None and name != "line" and name not in values:
            raise InputError(f"variable pattern '{pattern}' has no meaning for table '{table}': '{name}' is not known")
        if name is not None:
            pieces.append(int(width or 0) if name == "line" else values[name].rjust(int(width or 0), "0"))
    for line in lines:
        yield "".join([piece if isinstance(piece, str) else str(line).rjust(piece, "0") for piece in pieces])


def bins(text: str, top: int) -> list[range]:
    """Read bins of whole numbers: `0-4` is one bin, `0..4` five of one number each, `85+` all from 85 on.

    >>> [list(group) for group in bins("0..2 3-4 6+", top=7)]
    [[0], [1], [2], [3, 4], [6, 7]]
    """
    found: list[range] = []
    numbers = 0
    for word in text.split():
        match = re.fullmatch(r"([0-9]{1,9})(?:(-|\.\.)([0-9]{1,9})|(\+))?", word)
        if not match:
            raise InputError(f"'{word[:40]}' is not a bin; expected 7, 0-4, 0..4 or 85+")
        first = int(match[1])
        last = top if match[4] else int(match[3] or first)
        if not first <= last <= top:
            raise InputError(f"bin '{word}' does not lie within 0 to {top}")
        numbers += last + 1 - first
        if numbers > 2 * LEVELS:
            raise InputError(f"bins of more than {2 * LEVELS:,} numbers, at '{word}'; expected each number once")
        found += [range(n, n + 1) for n in range(first, last + 1)] if match[2] == ".." else [range(first, last + 1)]
    return found


def refuse_levels(where: str, number: int) -> None:
    if number > LEVELS:
        raise InputError(f"{where}: {number:,} levels; expected at most {LEVELS:,} of one attribute")


def members(where: str, toml: Mapping[str, Any]) -> tuple[tuple[str, ...], list[Reading], dict[str, tuple[int, ...]]]:
    """Levels that say how many members a record has, and how many of them are of a kind; the rest are the others.

    Members ascend, and within them those of the kind. Both are columns of record files.
    """
    names, most = tuple(toml["counts"]), toml["most"]
    if len(names) != 2 or type(most) is not int or most < 1:
        raise InputError(
            f'{where}: expected counts of two columns, all members and some of them, as ["persons", "children"], and '
            "the most members as a whole number from 1 up"
        )
    refuse_levels(where, (most + 1) * (most + 2) // 2)
    whole, kind = names
    pairs = [(members, some) for members in range(most + 1) for some in range(members + 1)]
    label = toml.get("label", f"{{{whole}}} {whole}, {{{kind}}} {kind}")
    labels = tuple(label.replace(f"{{{whole}}}", str(n)).replace(f"{{{kind}}}", str(k)) for n, k in pairs)
    numbers = {whole: tuple(n for n, _ in pairs), kind: tuple(k for _, k in pairs)}
    if toml["rest"] in names:
        raise InputError(f"{where}: the rest is called '{toml['rest']}' like one of the counts; expected another name")
    numbers[toml["rest"]] = tuple(n - k for n, k in pairs)
    return labels, [Reading(names, tuple(((str(n), str(k)),) for n, k in pairs))], numbers


def spellings(codes: str | list[str | list[str]]) -> tuple[tuple[tuple[str, ...], ...], ...]:
    """The codes of one column for each level: as bins of whole numbers, or listed, several spellings as a list."""
    if isinstance(codes, str):
        return tuple(tuple((str(number),) for number in group) for group in bins(codes, LEVELS))
    return tuple(tuple((str(code),) for code in (some if isinstance(some, list) else [some])) for some in codes)


def numbers_of(attribute: Attribute) -> dict[int, int]:
    """The level of each whole number that stands for one, as its label or its code; none if some have no number."""
    names: tuple[str, ...] = attribute.levels
    if not all(map(is_whole, names)) and len(attribute.readings[0].columns) == 1:
        names = tuple(codes[0][0] for codes in attribute.readings[0].codes)
    return {int(name): level for level, name in enumerate(names)} if all(map(is_whole, names)) else {}


def binned(attribute: Attribute, text: str) -> list[tuple[str, frozenset[int]]]:
    """Bins of an attribute whose levels are whole numbers, or have them as codes: a label and the levels of each."""
    level = numbers_of(attribute)
    found = []
    for group in bins(text, max(level, default=0)):
        missing = [number for number in group if number not in level]
        if missing:
            raise unknown(f"level of {attribute.name}", str(missing[0]), [str(number) for number in level])
        labels = [attribute.levels[level[number]] for number in group]
        label = _span(group) if is_whole(labels[0]) else " or ".join(labels)
        found.append((label, frozenset(level[number] for number in group)))
    return found


def _span(group: range) -> str:
    return str(group[0]) if len(group) == 1 else f"{group[0]}-{group[-1]}"
