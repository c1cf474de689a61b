"""Which places are there, and which lie in which? By the lengths of codes, by what files tell, or by a lookup."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from unicodedata import combining, normalize

import numpy as np
import polars as pl

from glasshouse.errors import InputError
from glasshouse.files.describing.asking import Inquiry
from glasshouse.files.describing.columns import Table, is_total, naming
from glasshouse.files.describing.figures import Printed
from glasshouse.files.frames import as_text, open_source
from glasshouse.limits import CODE_LENGTH

AREA = "area"  # what a level is called that has no other name
LONGEST = 24  # letters of a column's name that a level can be called by
USUAL = {1: (AREA,), 2: ("region", AREA), 3: ("region", "district", AREA), 4: ("country", "region", "district", AREA)}
_NO_NAMES = frozenset(
    ["geo", "geography", "geographycode", "geography_code", "code", "geoid", "area_code", "areacode", "cell"]
)


@dataclass(frozen=True)
class Places:
    """Levels of places from coarse to fine with the lengths of their codes, and each code with its level and geoid."""

    levels: Mapping[str, int]
    level_of: Mapping[str, str]
    geoid: Mapping[str, str]
    name_of: Mapping[str, str] = field(default_factory=dict)
    listed: bool = False  # codes do not begin with those of the areas around them: they are looked up
    why: str = ""
    area: str = ""  # no column says the place: all numbers are of this area
    unplaced: frozenset[str] = frozenset()  # codes whose numbers are left out

    @property
    def finest(self) -> str:
        return list(self.levels)[-1]

    @property
    def unit(self) -> str:
        """What is worked on at once: the level around the places."""
        return list(self.levels)[max(0, len(self.levels) - 2)]


def find_places(tables: Sequence[Table], lookup: Path | None, printed: Printed, inquiry: Inquiry) -> Places:
    """The geography of all tables together; a complaint names their files."""
    with naming(tables):
        return _found(tables, lookup, printed, inquiry)


def _found(tables: Sequence[Table], lookup: Path | None, printed: Printed, inquiry: Inquiry) -> Places:
    columns = [table.look.by_name[table.place] for table in tables if table.place]
    if not columns:
        code = inquiry.answers.area or "A"
        if not (code.isascii() and code.isalnum()) or len(code) > CODE_LENGTH:
            raise InputError(f"--area {code}: expected letters and digits, at most {CODE_LENGTH}")
        names = _names(1, inquiry.answers.levels, "")
        return Places(
            {names[0]: len(code)}, {code: names[0]}, {code: code}, why="all numbers are of one area", area=code
        )
    if len(columns) < len(tables) or len({column.name for column in columns}) > 1:
        said = ", ".join(f"{table.look.path.name}: {table.place or 'none'}" for table in tables)
        raise InputError(
            f"the columns of places have different names ({said}); rename them, or describe the files apart"
        )
    codes = list(dict.fromkeys(code for column in columns for code in column.codes))
    labels = {code: column.labels[code] for column in columns for code in column.codes if column.labels.get(code)}
    if "" in codes:
        raise InputError(
            f"'{columns[0].name}' is blank in some rows; expected a code for each place, also for the total"
        )
    totals = list(dict.fromkeys(code for column in columns for code in column.codes if is_total(column, code)))
    if len(totals) > 1:
        raise InputError(f"'{totals[0]}' and '{totals[1]}' of '{columns[0].name}' are both called totals; rename one")
    total = totals[0] if totals else None
    below = [code for code in codes if code != total]
    if lookup is not None:
        return _looked_up(lookup, codes, labels, inquiry)
    parents = {code: column.parents[code] for column in columns for code in column.codes if code in column.parents}
    above = _above(tables)
    if above:
        if total is not None:
            raise InputError(
                f"'{total}' of '{columns[0].name}' stands for areas of '{tables[0].above[-1]}'; expected one "
                f"column with the "
                "codes of all areas (--places FILE then says which lie in which)"
            )
        return _by_parents(codes, above, labels, inquiry, f"'{tables[0].above[-1]}' follows from '{columns[0].name}'")
    if any(parent in codes for parent in parents.values()):
        known = {code: parent for code, parent in parents.items() if parent in codes}
        return _by_parents(codes, known, labels, inquiry, "the file tells which areas lie in which")
    nested = _by_length(below)
    if len(nested) > 1 and (len(inquiry.answers.levels) == 1 or _smaller_than_inside(tables, below, nested, printed)):
        nested = []
    if nested and total is None:
        names = _names(len(nested), inquiry.answers.levels, called(columns[0].name, columns[0].title))
        levels = dict(zip(names, nested, strict=True))
        back = {length: name for name, length in levels.items()}
        why = "codes of areas begin those of the areas inside" if len(nested) > 1 else "all codes have the same length"
        return Places(
            levels, {code: back[len(code)] for code in codes}, {code: code for code in codes}, labels, why=why
        )
    if nested and len(nested) > 1:
        known = {code: outer or str(total) for code, outer in _around(below, nested).items()}
        return _by_parents(codes, known, labels, inquiry, f"'{total}' is all of them, and codes begin those inside")
    if _mixed(below) and len(inquiry.answers.levels) != 1:
        inquiry.ask(
            f"'{columns[0].name}': codes have {min(map(len, below))} to {max(map(len, below))} letters and do "
            f"not begin with "
            "each other (were zeros at their beginning lost?); which areas lie in which?",
            "--levels NAME if all are of one level, or --places FILE with the columns code and parent",
        )
    flat = dict.fromkeys(below, total) if total is not None else {}
    said = f"'{total}' is all of them" if total is not None else "codes are no codes of one length"
    return _by_parents(codes, flat, labels, inquiry, said, columns[0].name)


def _above(tables: Sequence[Table]) -> dict[str, str]:
    """The area around each place, and around that, where columns of larger areas say so."""
    found: dict[str, str] = {}
    for table in tables:
        chain = [*table.above, table.place]
        for larger, smaller in pairwise(chain):
            pairs = table.look.frame.select(smaller, larger).unique().rows()
            inner, outer = table.look.by_name[smaller].codes, table.look.by_name[larger].codes
            for one, other in pairs:
                if found.setdefault(inner[one], outer[other]) != outer[other]:
                    raise InputError(
                        f"'{inner[one]}' lies in '{found[inner[one]]}' and in '{outer[other]}'; expected one"
                    )
    return found


def _by_length(codes: Sequence[str]) -> list[int]:
    """The lengths of codes, if each level begins the next: 2, 4 and 7 letters. Nothing if they do not."""
    if not all(code.isascii() and code.isalnum() and len(code) <= CODE_LENGTH for code in codes):
        return []
    lengths = sorted({len(code) for code in codes})
    known = {length: {code for code in codes if len(code) == length} for length in lengths}
    for shorter, longer in pairwise(lengths):
        if not {code[:shorter] for code in known[longer]} <= known[shorter]:
            return []
    return lengths


def _smaller_than_inside(
    tables: Sequence[Table], codes: Sequence[str], lengths: Sequence[int], printed: Printed
) -> bool:
    """Has an area fewer than the places whose codes begin with its own? Then these do not lie in it."""
    inner: dict[str, list[str]] = {}
    for code, outer in _around(codes, lengths).items():
        if outer is not None:
            inner.setdefault(outer, []).append(code)
    for table in tables:
        at = {code: index for index, code in enumerate(table.look.by_name[table.place].codes)}
        matrix = table.look.matrix(table.place)
        for area, some in inner.items():
            inside = [at[code] for code in some if code in at]
            if area in at and inside:
                parts = matrix[:, inside]
                summed = np.where(np.isnan(parts) | (parts < 0), 0, parts).sum(axis=1)
                whole = matrix[:, at[area]]
                if (summed[whole >= 0] > whole[whole >= 0] + printed.slack(len(inside))).any():
                    return True
    return False


def _around(codes: Sequence[str], lengths: Sequence[int]) -> dict[str, str | None]:
    """Of each code the longest other one that it begins with."""
    known = set(codes)
    return {
        code: next(
            (code[:length] for length in reversed(lengths) if length < len(code) and code[:length] in known), None
        )
        for code in codes
    }


def _mixed(codes: Sequence[str]) -> bool:
    """Are these codes (not names) of several lengths?"""
    return len({len(code) for code in codes}) > 1 and all(re.search(r"[0-9]", code) for code in codes)


def _by_parents(
    codes: Sequence[str],
    parents: Mapping[str, str],
    labels: Mapping[str, str],
    inquiry: Inquiry,
    why: str,
    name: str = "",
) -> Places:
    """Places from the area around each: levels are how far from the top, geoids the codes along the way."""
    every = list(dict.fromkeys([*codes, *parents, *parents.values()]))
    chains: dict[str, tuple[str, ...]] = {}
    for code in every:
        chain = [code]
        while chain[-1] in parents:
            chain.append(parents[chain[-1]])
            if len(chain) > 32:
                raise InputError(
                    f"'{code}' lies in itself, by way of '{parents[code]}'; expected areas inside larger ones"
                )
        chains[code] = tuple(reversed(chain))
    depth = max(map(len, chains.values()))
    names = _names(depth, inquiry.answers.levels, name)
    own = [_short([chain[at] for chain in chains.values() if len(chain) == at + 1]) for at in range(depth)]
    widths = [max(map(len, short.values())) for short in own]
    levels = {names[at]: sum(widths[: at + 1]) for at in range(depth)}
    if list(levels.values())[-1] > CODE_LENGTH:
        raise InputError(f"nested codes of places would have more than {CODE_LENGTH} letters; give shorter codes")
    geoid = {code: "".join(own[at][one] for at, one in enumerate(chain)) for code, chain in chains.items()}
    level_of = {code: names[len(chain) - 1] for code, chain in chains.items()}
    return Places(levels, level_of, geoid, labels, True, why)


def _short(codes: Sequence[str]) -> dict[str, str]:
    """Codes of one level in letters and digits of one length: as they are, or numbered."""
    different = list(dict.fromkeys(codes))
    if len({len(code) for code in different}) == 1 and all(code.isascii() and code.isalnum() for code in different):
        return {code: code for code in different}
    width = len(str(len(different)))
    return {code: str(number).rjust(width, "0") for number, code in enumerate(different, 1)}


def _looked_up(path: Path, codes: Sequence[str], labels: Mapping[str, str], inquiry: Inquiry) -> Places:
    """Places from a file: code and parent in columns, or a column of codes for each level."""
    source = open_source(path)
    frame = pl.concat([pl.DataFrame([as_text(one) for one in chunk.frame.get_columns()]) for chunk in source.chunks()])
    lower = {name.lower(): name for name in source.columns}
    if "code" in lower and "parent" in lower:
        pairs = frame.select(lower["code"], lower["parent"]).unique().rows()
        parents = {code: parent for code, parent in pairs if parent and code}
        listed = {code for code, _ in pairs}
        named = lower.get("name")
        labels = dict(labels) | (dict(frame.select(lower["code"], named).drop_nulls().rows()) if named else {})
    else:
        wanted = set(codes)
        share = {name: len(wanted & set(frame[name].drop_nulls())) for name in source.columns}
        holding = [name for name in source.columns if share[name]]
        if not holding:
            raise InputError(
                f"{path.name}: no column holds the codes of the tables ('{codes[0]}', ...); found: {source.told}"
            )
        finest = max(holding, key=lambda name: (frame[name].n_unique(), share[name]))
        chain = sorted(
            (
                name
                for name in source.columns
                if name == finest
                or (name in holding and frame.select(finest, name).n_unique() == frame[finest].n_unique())
            ),
            key=lambda name: frame[name].n_unique(),
        )
        parents, listed = {}, set(frame[finest].drop_nulls())
        for larger, smaller in pairwise(chain):
            parents |= {
                one: other for one, other in frame.select(smaller, larger).unique().drop_nulls().rows() if one != other
            }
        if not inquiry.answers.levels:
            inquiry = Inquiry(replace(inquiry.answers, levels=tuple(plain_name(name) for name in chain)))
    known = listed.union(parents, parents.values())
    absent = [code for code in codes if code not in known]
    if absent:
        raise InputError(
            f"{path.name}: {len(absent):,} codes of the tables are not in it (the first: '{absent[0]}'); "
            f"expected a row for each"
        )
    return _by_parents(codes, parents, labels, inquiry, f"{path.name} says which lie in which")


def plain_name(name: str) -> str:
    """A name that TOML takes without quotes: small letters, digits and underscores."""
    bare = "".join(one for one in normalize("NFKD", name) if not combining(one))
    return re.sub(r"[^a-z0-9]+", "_", bare.lower()).strip("_") or "column"


def called(name: str, title: str) -> str:
    """What a column is called in a scenario: by its title, where its name is only a code."""
    words = re.sub(r"\(.*?\)", "", title)
    return plain_name(words if words.strip() and re.search(r"[0-9]", name) else name)


def _names(number: int, told: Sequence[str], column: str) -> tuple[str, ...]:
    """Names for levels, coarse to fine."""
    if told:
        if len(told) != number or len(set(told)) != number:
            raise InputError(
                f"--levels {','.join(told)}: the places have {number} level{'s' * (number > 1)}; expected as "
                f"many different "
                "names, from coarse to fine"
            )
        return tuple(plain_name(name) for name in told)
    if number == 1 and 0 < len(column) <= LONGEST and plain_name(column) not in _NO_NAMES:
        return (plain_name(column),)
    return USUAL.get(number) or (*(f"level_{at}" for at in range(1, number)), AREA)
