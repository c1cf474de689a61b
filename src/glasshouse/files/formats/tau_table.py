"""What does a table of tau-Argus say? Cells with a value and a status each, and hierarchies of codes.

A table is a text of lines `"code","code",value,status`, all crossings of its codes in order, totals first; a value `-`
is an empty cell. A `.rda` of the same name beside it says more: names, hierarchies, columns of largest contributions,
and a separator (`tau_metadata`). A hierarchy (`.hrc`) has a code a line, with a lead string (`@`) for each level below
the first; codes of the table that are not in it stand right below the total. A code may come twice in a hierarchy, at
different places: codes are known by their order. Statuses: 1 safe, 2 safe by hand, 3 to 9 unsafe for various reasons,
10 protected (must be shown), 11 and 12 suppressed besides, 13 and 14 empty; or marks, S, U and P unless told otherwise.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from glasshouse.errors import InputError
from glasshouse.files.archive import SafeZip
from glasshouse.files.formats import tau_metadata as rda
from glasshouse.files.formats.tau_metadata import LEAD, Metadata, Variable, lines_of
from glasshouse.limits import CODE_LENGTH, LEVELS, TEXT_FILE_BYTES, WAYS
from glasshouse.model.contributions import Contributions
from glasshouse.model.records import UNLIMITED
from glasshouse.text import harmful

Ints = NDArray[np.int64]
Hierarchy = tuple[tuple[str, int], ...]  # codes in order, and how far each lies below the total (1: right below)

SHOWN = frozenset({1, 2, 10, 13, 14})
UNSAFE = frozenset({3, 4, 5, 6, 7, 8, 9})
BESIDES = frozenset({11, 12})
STATUS_OF_MARK = {rda.SAFE: 1, rda.UNSAFE: 9, rda.PROTECT: 10}  # unsafe, and shown, by hand


@dataclass(frozen=True)
class Nodes:
    """The codes of one variable in order, the total first; `parent` is -1 for the total."""

    codes: tuple[str, ...]
    parent: Ints

    @cached_property
    def leaves(self) -> Ints:
        """The nodes without parts."""
        return np.setdiff1d(np.arange(len(self.codes)), self.parent)

    @cached_property
    def inside(self) -> sparse.csr_matrix:
        """Nodes x leaves: which leaves each node adds up."""
        node, leaf = self.leaves.copy(), np.arange(len(self.leaves))
        rows, columns = [], []
        while len(node):
            rows.append(node)
            columns.append(leaf)
            above = self.parent[node]
            node, leaf = above[above >= 0], leaf[above >= 0]
        at = np.concatenate(rows), np.concatenate(columns)
        return sparse.csr_matrix((np.ones(len(at[0]), np.int64), at), (len(self.codes), len(self.leaves)))


@dataclass(frozen=True)
class TauTable:
    """A table: its variables, and value (in units of 10 ** -decimals) and status of every crossing, in order.

    `labels` names the variables. `largest` has the largest contributions of every cell, a column each, and
    `contributors` how many there are, where the file tells.
    """

    where: str
    variables: tuple[Nodes, ...]
    value: Ints
    status: Ints
    decimals: int
    labels: tuple[str, ...] = ()
    largest: Ints | None = None
    contributors: Ints | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The codes of each cell."""
        shape = [len(nodes.codes) for nodes in self.variables]
        return tuple(
            ", ".join(nodes.codes[node] for nodes, node in zip(self.variables, at, strict=True))
            for at in np.ndindex(*shape)
        )

    @property
    def hidden(self) -> NDArray[np.bool_]:
        return ~np.isin(self.status, sorted(SHOWN))

    @property
    def lower(self) -> Ints:
        """As published: what is shown is exact, what is hidden not negative."""
        return np.where(self.hidden, 0, self.value)

    @property
    def upper(self) -> Ints:
        return np.where(self.hidden, UNLIMITED, self.value)

    @property
    def contributions(self) -> tuple[Contributions, ...] | None:
        """Who makes up each cell, in units as the values are; None where the file does not tell."""
        if self.largest is None:
            return None
        people = [None] * len(self.value) if self.contributors is None else self.contributors.tolist()
        found = []
        for at, (total, largest, count) in enumerate(
            zip(self.value.tolist(), self.largest.tolist(), people, strict=True)
        ):
            named = largest if count is None else largest[:count]  # beyond those there are, zeros fill the columns
            try:
                found.append(Contributions(total, tuple(named), count))
            except InputError as error:
                error.add_where(f"{self.where}: cell {self.names[at]}")
                raise
        return tuple(found)

    @property
    def times(self) -> sparse.csr_matrix:
        """Numbers x crossings of leaves: what each number adds up."""
        every = sparse.csr_matrix(np.ones((1, 1), np.int64))
        for nodes in self.variables:
            every = sparse.kron(every, nodes.inside, format="csr")
        return every


def members(archive: SafeZip, name: str) -> bytes:
    """A member of an archive as a whole; one that is too large is refused."""
    with archive.open(name) as stream:
        content = stream.read(TEXT_FILE_BYTES + 1)
    if len(content) > TEXT_FILE_BYTES:
        raise archive.error(name, f"more than {TEXT_FILE_BYTES >> 20} MiB", "a table or a hierarchy")
    return content


def read_hierarchy(content: bytes, where: str, lead: str = LEAD) -> Hierarchy:
    """The codes of a hierarchy in order, and how far each lies below the total (1: right below)."""
    found: list[tuple[str, int]] = []
    for number, line in lines_of(content, where):
        code = line.lstrip(lead)
        depth = (len(line) - len(code)) // len(lead) + 1
        if (
            not code.strip()
            or len(code) > CODE_LENGTH
            or depth > (found[-1][1] if found else 0) + 1
            or harmful(code.strip()) is not None
        ):
            raise InputError(
                f"{where}, line {number}: found '{line[:CODE_LENGTH]}'; expected a code of at most {CODE_LENGTH} "
                f"letters, at most one level below the line before; mend that line"
            )
        found.append((code.strip(), depth))
    if len(found) > LEVELS:
        raise InputError(f"{where}: {len(found):,} codes; expected at most {LEVELS:,}; give a shorter hierarchy")
    return tuple(found)


# The rows of a table


@dataclass(frozen=True)
class Layout:
    """Which column is what, and what parts them."""

    codes: tuple[int, ...]
    value: int
    status: int | None
    width: int
    count: int | None = None
    largest: tuple[int, ...] = ()
    separator: str = ","

    @classmethod
    def plain(cls, ways: int) -> Layout:
        """Codes, a value and a status: as tables are written for people."""
        return cls(tuple(range(ways)), ways, ways + 1, ways + 2)

    @classmethod
    def told(cls, metadata: Metadata) -> Layout:
        columns = list(enumerate(metadata.variables))
        values = [at for at, one in columns if one.is_value]
        codes = tuple(at for at, one in columns if one.is_code)
        if not values or not 1 <= len(codes) <= WAYS:
            raise InputError(
                f"{metadata.where}: {len(codes)} variables that are <RECODEABLE> and {len(values)} that are <NUMERIC>; "
                f"expected 1 to {WAYS} codes and a value for a table"
            )

        def one_of(option: str) -> int | None:
            return next((at for at, one in columns if one.has(option)), None)

        largest = tuple(at for at, one in columns if one.has(rda.LARGEST))
        return cls(
            codes,
            values[0],
            one_of(rda.STATUS),
            len(columns),
            one_of(rda.FREQUENCY),
            largest,
            metadata.separator or ",",
        )


def rows_of(content: bytes, where: str, layout: Layout) -> tuple[list[list[str]], list[int]]:
    """The fields of every line, as many as there are columns, and the numbers of the lines."""
    rows, lines = [], []
    for number, line in lines_of(content, where):
        try:
            (row,) = csv.reader([line], delimiter=layout.separator, skipinitialspace=True, strict=True)
        except (csv.Error, ValueError):
            parted = f"expected fields parted by '{layout.separator}'"
            raise InputError(f"{where}, line {number}: cannot be read; {parted}") from None
        if len(row) != layout.width:
            raise InputError(
                f"{where}, line {number}: {len(row)} fields; expected {layout.width}: {len(layout.codes)} codes, a "
                "value and what else the table has; give as many hierarchies as the table has variables"
            )
        for at in layout.codes:
            if not row[at].strip() or len(row[at]) > CODE_LENGTH or harmful(row[at]) is not None:
                raise InputError(
                    f"{where}, line {number}: the code '{row[at][:CODE_LENGTH]}'; expected 1 to {CODE_LENGTH} letters "
                    "that can be printed"
                )
        rows.append([text.strip() for text in row])
        lines.append(number)
    if not rows:
        raise InputError(f"{where}: no lines; expected a table of tau-Argus, a line for each cell")
    return rows, lines


def read_table(
    content: bytes, where: str, hierarchies: Sequence[Hierarchy | None], metadata: Metadata | None = None
) -> TauTable:
    """A table; of each variable its hierarchy, or None where all codes stand right below the total."""
    ways = len(hierarchies)
    if not 1 <= ways <= WAYS:
        raise InputError(f"{where}: hierarchies of {ways} variables; expected 1 to {WAYS}")
    layout = Layout.plain(ways) if metadata is None else Layout.told(metadata)
    rows, lines = rows_of(content, where, layout)
    codes = [tuple(row[at] for at in layout.codes) for row in rows]
    sequences = [_sequence(codes, way) for way in range(ways)]
    shape = tuple(len(sequence) for sequence in sequences)
    if int(np.prod(shape)) != len(rows) or any(
        code != tuple(sequence[at] for sequence, at in zip(sequences, place, strict=True))
        for code, place in zip(codes, np.ndindex(*shape), strict=True)
    ):
        raise InputError(
            f"{where}: {len(rows):,} lines are not all crossings of {' x '.join(map(str, shape))} codes in order; "
            "expected the table as tau-Argus writes it, with empty cells"
        )
    numbers = [layout.value, *layout.largest]
    value, decimals = _values([[row[at] for at in numbers] for row in rows], lines, where)
    marks = metadata.marks if metadata is not None else rda.USUAL_MARKS
    status = np.ones(len(rows), np.int64)
    if layout.status is not None:
        status = statuses([row[layout.status] for row in rows], lines, where, marks)
    counts = None if layout.count is None else _counts([row[layout.count] for row in rows], lines, where)
    nodes = tuple(_nodes(sequence, known or ()) for sequence, known in zip(sequences, hierarchies, strict=True))
    names = tuple(one.name for one in metadata.codes) if metadata is not None else ()
    largest = value[:, 1:] if layout.largest else None
    return TauTable(where, nodes, value[:, 0], status, decimals, names, largest, counts)


def open_table(path: Path) -> TauTable:
    """A table with its `.rda` beside it, which names its hierarchies."""
    metadata = rda.metadata_beside(path)
    if metadata is None:
        raise InputError(f"{path.name}: no {path.stem}.rda beside it; expected one, which names its hierarchies")
    content = rda.content_of(path)
    layout = Layout.told(metadata)
    rows, _ = rows_of(content, path.name, layout)
    codes = [tuple(row[at] for at in layout.codes) for row in rows]
    known = [hierarchy_of(path, one, _sequence(codes, way)) for way, one in enumerate(metadata.codes)]
    return read_table(content, path.name, known, metadata)


def hierarchy_of(path: Path, variable: Variable, sequence: Sequence[str]) -> Hierarchy | None:
    """The hierarchy of a variable: a file beside the table, or the letters of its codes; None: it has none."""
    if variable.hierarchy is not None:
        found = rda.beside(path, variable.hierarchy, f"the hierarchy of {variable.name}")
        return read_hierarchy(rda.content_of(found), found.name, variable.lead)
    if not variable.digits:
        return None
    ends = np.cumsum(variable.digits).tolist()
    for code in sequence[1:]:
        if len(code) not in ends:
            raise InputError(
                f"{path.name}: the code '{code}' of {variable.name} has {len(code)} letters; expected "
                f"{' or '.join(map(str, ends))} (<HIERLEVELS>)"
            )
    return tuple((code, ends.index(len(code)) + 1) for code in sequence[1:])


def _sequence(codes: Sequence[tuple[str, ...]], way: int) -> tuple[str, ...]:
    """The codes of a variable in order: those that follow each other while the variables before it stay."""
    first = next(group for _, group in groupby(codes, key=lambda code: code[:way]))
    return tuple(code for code, _ in groupby(one[way] for one in first))


def _nodes(sequence: tuple[str, ...], known: Hierarchy) -> Nodes:
    """Codes and what is above each. Codes that the hierarchy has not, from where it was read on, are below all."""
    parent, at = [-1], 0
    above: list[tuple[int, int]] = [(0, 0)]  # depth and node of those that the next one may lie in
    for number, code in enumerate(sequence[1:], 1):
        place = next((i for i in range(at, len(known)) if known[i][0] == code), None)
        depth = 1 if place is None else known[place][1]
        for passed in range(at, at if place is None else place + 1):  # what the table has not ends what was open
            while above[-1][0] >= known[passed][1]:
                above.pop()
        while above[-1][0] >= depth:
            above.pop()
        parent.append(above[-1][1])
        above.append((depth, number))
        at = at if place is None else place + 1
    return Nodes(sequence, np.array(parent, np.int64))


def _values(texts: Sequence[Sequence[str]], lines: Sequence[int], where: str) -> tuple[Ints, int]:
    """Values as whole numbers of the smallest unit that occurs."""
    found = [
        [decimal(text, f"{where}, line {number}") for text in row] for row, number in zip(texts, lines, strict=True)
    ]
    decimals = max(-int(value.as_tuple().exponent) for row in found for value in row)
    whole = [[int(value.scaleb(max(decimals, 0))) for value in row] for row in found]
    if max(max(row) for row in whole) >= UNLIMITED:
        most = max(max(row) for row in found)
        raise InputError(f"{where}: a value of {most}; expected less than {UNLIMITED:,} smallest units")
    return np.array(whole, np.int64), max(decimals, 0)


def decimal(text: str, where: str) -> Decimal:
    """A number that is 0 or more; `-` is an empty cell."""
    if re.fullmatch(r"-|\d{1,15}(\.\d{0,12})?|\.\d{1,12}", text) is None:
        raise InputError(f"{where}: found the value '{text[:30]}'; expected a number, 0 or more, or -")
    return Decimal(0) if text == "-" else Decimal(text)


def _counts(texts: Sequence[str], lines: Sequence[int], where: str) -> Ints:
    for text, number in zip(texts, lines, strict=True):
        if re.fullmatch(r"-|\d{1,12}", text) is None:
            raise InputError(f"{where}, line {number}: '{text[:30]}' contributors; expected a whole number, 0 or more")
    return np.array([0 if text == "-" else int(text) for text in texts], np.int64)


def statuses(texts: Sequence[str], lines: Sequence[int], where: str, marks: Mapping[str, str]) -> Ints:
    known = {str(status): status for status in SHOWN | UNSAFE | BESIDES}
    known |= {marks[mark]: status for mark, status in STATUS_OF_MARK.items()}
    for text, number in zip(texts, lines, strict=True):
        if text not in known:
            raise InputError(
                f"{where}, line {number}: found the status '{text[:30]}'; expected a number from 1 to 14, or one of "
                f"{', '.join(marks.values())}"
            )
    return np.array([known[text] for text in texts], np.int64)
