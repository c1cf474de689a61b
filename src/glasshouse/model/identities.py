"""Do published numbers agree? Lines that count the same records one way or another must add up.

Every line counts the records of a predicate. For a line p and a family of disjoint lines F:

* packing: the lines of F inside p add up to at most p, and to exactly p when their sizes do;
* covering: when F covers p, the lines of F that touch p add up to at least p.

Both follow from sizes alone, so they are found once per set of published tables. Numbers of a coarser level are
compared with the sums of the finer ones in the same way. What needs more than one family is left to the core.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from glasshouse.model.geography import Geography, plural
from glasshouse.model.records import Count
from glasshouse.model.release import Counts, Table
from glasshouse.model.schema import Predicate, Schema

Term = tuple[str, str]  # the level at which a variable was published, and its name
Source = tuple[str, Table, frozenset[str]]  # a table, the level it was published at, and the variables present
EQUAL, AT_LEAST, AT_MOST = 0, 1, -1
TOLD = 8  # parts that a statement names; all of them are in the finding
_SIGN = {EQUAL: "=", AT_LEAST: ">=", AT_MOST: "<="}


@dataclass(frozen=True)
class Cell:
    """A published number, as a finding names it."""

    level: str
    variable: str
    lower: int
    upper: int
    summed: bool = False  # over the finer places of the place a finding is about

    @property
    def name(self) -> str:
        return f"{self.variable} over its {plural(self.level)}" if self.summed else self.variable

    @property
    def spelled(self) -> str:
        return str(self.lower) if self.lower == self.upper else f"{self.lower} to {self.upper}"


@dataclass(frozen=True)
class Suspect:
    """A number that, changed alone, would make everything at its place agree."""

    cell: Cell
    agrees: int


@dataclass(frozen=True)
class Finding:
    """Published numbers of one place that cannot all be true."""

    level: str
    geoid: str
    statement: str
    identity: str
    cells: tuple[Cell, ...]
    suspects: tuple[Suspect, ...]
    broken: int


@dataclass(frozen=True)
class Identities:
    """The relations between the numbers of one level: row `i` of `matrix` times the numbers is `relation` 0.

    A row has +1 at its total and -1 at its parts. Terms of a finer level stand for sums over its places.
    """

    level: str
    terms: tuple[Term, ...]
    matrix: sparse.csr_array
    relation: NDArray[np.int8]

    def __len__(self) -> int:
        return len(self.relation)

    @cached_property
    def _signs(self) -> tuple[sparse.csr_array, sparse.csr_array]:
        """The totals and the parts, apart, one column per identity: the interval of a difference needs both."""
        positive, negative = self.matrix.copy(), self.matrix.copy()
        positive.data, negative.data = np.maximum(self.matrix.data, 0), np.maximum(-self.matrix.data, 0)
        return sparse.csr_array(positive.T), sparse.csr_array(negative.T)

    def _range(self, lower: Count, upper: Count) -> tuple[sparse.coo_array, sparse.coo_array]:
        """The least and the greatest value of every identity's total minus parts, where it is not 0."""
        total, parts = self._signs
        low = sparse.csr_array(lower)
        high = low if lower is upper else sparse.csr_array(upper)
        return sparse.coo_array(low @ total - high @ parts), sparse.coo_array(high @ total - low @ parts)

    def broken(self, lower: Count, upper: Count) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """The rows of numbers that break an identity, each with the identities it breaks."""
        least, most = self._range(lower, upper)
        above = (least.data > 0) & (self.relation[least.col] != AT_LEAST)
        below = (most.data < 0) & (self.relation[most.col] != AT_MOST)
        rows = np.concatenate([least.row[above], most.row[below]])
        identities = np.concatenate([least.col[above], most.col[below]])
        for row in np.unique(rows):
            yield int(row), np.unique(identities[rows == row])

    def explain(self, geoid: str, lower: Count, upper: Count, broken: NDArray[np.int64]) -> Finding:
        """Put the shortest of a place's broken identities into words, and name the numbers that would mend all."""
        row = int(min(broken, key=lambda row: (self._told(row, upper), self.relation[row] != EQUAL, row)))
        columns = self.matrix.indices[self.matrix.indptr[row] : self.matrix.indptr[row + 1]]
        signs = self.matrix.data[self.matrix.indptr[row] : self.matrix.indptr[row + 1]]
        total, *parts = (self._cell(int(column), lower, upper) for column in columns[np.argsort(-signs, kind="stable")])
        relation = int(self.relation[row])
        identity = f"{total.name} {_SIGN[relation]} {' + '.join(part.name for part in parts)}"
        told = tuple(part for part in parts if part.upper > 0)
        statement = _statement(total, parts, relation)
        suspects = tuple(self._suspects(lower, upper, broken))
        return Finding(self.level, geoid, statement, identity, (total, *told), suspects, len(broken))

    def _told(self, row: int, upper: Count) -> int:
        """How many numbers one must say to state an identity: those that are not 0."""
        return int(np.count_nonzero(upper[self.matrix.indices[self.matrix.indptr[row] : self.matrix.indptr[row + 1]]]))

    def _cell(self, column: int, lower: Count, upper: Count) -> Cell:
        level, variable = self.terms[column]
        return Cell(level, variable, int(lower[column]), int(upper[column]), summed=level != self.level)

    @cached_property
    def _by_column(self) -> sparse.csc_array:
        return sparse.csc_array(self.matrix)

    def _suspects(self, lower: Count, upper: Count, broken: NDArray[np.int64]) -> Iterator[Suspect]:
        """Numbers in every broken identity that a single change would mend without breaking another."""
        shared = np.bincount(self.matrix[broken].indices, minlength=len(self.terms)) == len(broken)
        total, parts = self._signs
        for column in np.flatnonzero(shared & (lower == upper)):
            if self.terms[column][0] != self.level:
                continue
            entries = slice(self._by_column.indptr[column], self._by_column.indptr[column + 1])
            rows, signs = self._by_column.indices[entries], self._by_column.data[entries]
            least = lower @ total[:, rows] - upper @ parts[:, rows]
            most = upper @ total[:, rows] - lower @ parts[:, rows]
            change = _mend(least, most, signs, self.relation[rows])
            if change and lower[column] + change >= 0:
                yield Suspect(self._cell(int(column), lower, upper), int(lower[column]) + change)


def _statement(total: Cell, parts: Sequence[Cell], relation: int) -> str:
    """A broken identity in words that can be read aloud."""
    told, zeros = [part for part in parts if part.upper > 0], [part for part in parts if part.upper == 0]
    if len(parts) == 1 and relation == EQUAL:
        return f"{total.name} is {total.spelled} but {parts[0].name} is {parts[0].spelled}; they must be equal"
    if relation == AT_LEAST and len(told) == 1:
        return f"{told[0].name} is {told[0].spelled} but {total.name}, which contains it, is {total.spelled}"
    low, high = sum(cell.lower for cell in told), sum(cell.upper for cell in told)
    adds = str(low) if low == high else f"{low} to {high}"
    listed = [f"{cell.name} = {cell.spelled}" for cell in told[:TOLD]]
    if len(told) > TOLD:
        listed.append(f"and {len(told) - TOLD} more up to {told[-1].name}")
    if len(zeros) == 1:
        listed.append(f"{zeros[0].name} = 0")
    elif zeros:
        listed.append(f"{len(zeros)} zeros ({zeros[0].name} to {zeros[-1].name})")
    what = {EQUAL: "its parts", AT_LEAST: "numbers it contains", AT_MOST: "the numbers it lies within"}[relation]
    return f"{total.name} is {total.spelled}, but {what} add up to {adds}: {', '.join(listed)}"


def _mend(least: Count, most: Count, sign: NDArray[np.int8], relation: NDArray[np.int8]) -> int | None:
    """The smallest change of one number that satisfies every identity it is in, or None.

    An identity holds after a change d when [least + sign d, most + sign d] meets 0 (=) or reaches it (<=, >=).
    """
    floor, ceiling = -np.inf, np.inf
    for low, high, way, kind in zip(least, most, sign, relation, strict=True):
        # total - parts + way * d must be able to be <= 0 (unless only >= is asked) and >= 0 (unless only <= is asked)
        above = -high if kind != AT_MOST else -np.inf
        below = -low if kind != AT_LEAST else np.inf
        if way > 0:
            floor, ceiling = max(floor, above), min(ceiling, below)
        else:
            floor, ceiling = max(floor, -below), min(ceiling, -above)
    if floor > ceiling:
        return None
    return int(floor if floor > 0 else ceiling if ceiling < 0 else 0)


def find_identities(schema: Schema, level: str, sources: Sequence[Source]) -> Identities:
    """Every identity between some tables seen at one level: its own first, then finer ones summed up."""
    lines = [(at, line) for at, table, present in sources for line in table.lines if line.variable in present]
    terms = tuple((at, line.variable) for at, line in lines)
    column = {term: index for index, term in enumerate(terms)}
    found = _Collected(own=sum(at == level for at, _ in terms))
    for at, table, present in sources:
        for line in table.subtotals:
            parts = [table.line(part).variable for part in line.parts]
            if line.variable in present and all(part in present for part in parts):
                found.add(column[at, line.variable], EQUAL, np.array([column[at, part] for part in parts]))
    counted = np.array([index for index, (_, line) in enumerate(lines) if line.predicate is not None])
    boxes = _Boxes(schema, [line.predicate for _, line in lines if line.predicate is not None])
    for total, same in _same_numbers(sources, column):
        found.add(total, EQUAL, np.array([same]))
    for family in _families(schema, sources):
        members = np.searchsorted(counted, sorted(column[term] for term in family.terms))
        for target, relation, chosen in boxes.relations(members, disjoint=family.disjoint):
            found.add(int(counted[target]), relation, counted[chosen])
    return found.assemble(level, terms)


def _same_numbers(sources: Sequence[Source], column: Mapping[Term, int]) -> Iterator[tuple[int, int]]:
    """Lines that add up the same number of the same records, each with the first such line.

    So do lines of one name at two levels. Where all leaves of a table are there, families tie those (see `_families`).
    """
    first: dict[object, int] = {}
    for at, table, present in sources:
        whole = all(leaf.variable in present for leaf in table.leaves)
        for line in table.lines:
            if line.variable in present and (line.answers or not whole):
                total = first.setdefault(line.answers or line.variable, column[at, line.variable])
                if total != column[at, line.variable]:
                    yield total, column[at, line.variable]


class _Collected:
    """Identities as they are found, each once; an equation replaces an inequality of the same numbers.

    One that has only sums of finer places says nothing new: those places were checked themselves. The first `own`
    columns are the level's own numbers.
    """

    def __init__(self, own: int) -> None:
        self.own = own
        self.found: dict[tuple[int, bytes], int] = {}

    def add(self, total: int, relation: int, parts: NDArray[np.int64]) -> None:
        if len(parts) == 1 and (relation == AT_MOST or (relation == EQUAL and parts[0] < total)):
            # two numbers: say it of the larger, or of the one listed first, which is the coarser level's
            total, relation, parts = int(parts[0]), abs(relation), np.array([total])
        if total not in parts and min(total, parts.min()) < self.own:
            key = (total, parts.astype(np.int64).tobytes())
            if self.found.get(key) != EQUAL:
                self.found[key] = relation

    def assemble(self, level: str, terms: tuple[Term, ...]) -> Identities:
        totals = np.array([total for total, _ in self.found], np.int64)
        parts = [np.frombuffer(raw, np.int64) for _, raw in self.found]
        rows = np.concatenate([np.arange(len(parts)), np.repeat(np.arange(len(parts)), [len(part) for part in parts])])
        columns = np.concatenate([totals, *parts])
        signs = np.where(np.arange(len(rows)) < len(totals), 1, -1)
        matrix = sparse.csr_array((signs, (rows, columns)), shape=(len(parts), len(terms)))
        return Identities(level, terms, matrix, np.array(list(self.found.values()), np.int8))


@dataclass(frozen=True)
class _Family:
    """Lines that can be added up: disjoint, or (a tally) at least covering."""

    terms: tuple[Term, ...]
    disjoint: bool


def _families(schema: Schema, sources: Sequence[Source]) -> Iterator[_Family]:
    """The leaves of each table, and of iterations that together make up another table's universe."""
    whole = [
        (at, table)
        for at, table, present in sources
        if not table.sums and all(line.variable in present for line in table.leaves)
    ]
    for at, table in whole:
        yield _Family(tuple((at, line.variable) for line in table.leaves), not table.tally)
    alike: dict[tuple[str, tuple[str, ...]], list[Table]] = {}
    for at, table in whole:
        if not table.tally:
            alike.setdefault((at, table.by), []).append(table)
    covers: dict[tuple[Predicate, ...], list[list[Predicate]]] = {}  # tables of other recodes have the same universes
    for (at, _), tables in alike.items():
        by_universe = {table.universe: table for table in tables}
        for target in tables:
            smaller = [u for u in by_universe if u <= target.universe and u != target.universe]
            key = (target.universe, *smaller)
            if key not in covers:
                covers[key] = list(_exact_covers(schema, target.universe, smaller))
            for cover in covers[key]:
                yield _Family(tuple((at, line.variable) for u in cover for line in by_universe[u].leaves), True)


def _exact_covers(schema: Schema, universe: Predicate, smaller: Sequence[Predicate]) -> Iterator[list[Predicate]]:
    """Sets of disjoint predicates that make up a universe.

    A set in which one more of the predicates could take the place of some says nothing new: those make it up.
    """
    whole, size = schema.size(universe), {part: schema.size(part) for part in smaller}

    def extend(chosen: list[Predicate]) -> Iterator[list[Predicate]]:
        if sum(size[part] for part in chosen) == whole:
            if chosen and not any(_replaces(part, chosen) for part in smaller if part not in chosen):
                yield chosen
            return
        left = next(schema.possible(universe, chosen))
        record = schema.where({a.name: [min(left.by_attribute.get(a.name, {0}))] for a in schema.attributes})
        for part in smaller:  # exactly one of a set has this record
            if record <= part and not any(part.meets(other) for other in chosen):
                yield from extend([*chosen, part])

    yield from extend([])


def _replaces(part: Predicate, chosen: Sequence[Predicate]) -> bool:
    inside = [other for other in chosen if other <= part]
    return bool(inside) and all(other in inside or not other.meets(part) for other in chosen)


class _Boxes:
    """Many predicates compared at once: which lie inside which, and how much they share."""

    def __init__(self, schema: Schema, predicates: Sequence[Predicate]) -> None:
        self.schema, self.predicates = schema, predicates
        self.kinds: list[NDArray[np.int64]] = []  # for each attribute, which of the distinct level sets a predicate has
        possible = list(schema.possible())
        self.shared: list[list[NDArray[np.int64]]] = [[] for _ in possible]  # levels that two sets share, in a box
        for attribute in schema.attributes:
            everything = frozenset(range(len(attribute)))
            sets = [predicate.by_attribute.get(attribute.name, everything) for predicate in predicates]
            distinct = {levels: kind for kind, levels in enumerate(dict.fromkeys(sets))}
            member = np.zeros((len(distinct), len(attribute)), np.int64)
            for levels, kind in distinct.items():
                member[kind, sorted(levels)] = 1
            self.kinds.append(np.array([distinct[levels] for levels in sets], np.int64))
            for box, shared in zip(possible, self.shared, strict=True):
                inside = member[:, sorted(box.by_attribute.get(attribute.name, everything))]
                shared.append(inside @ inside.T)
        self.size = np.zeros(len(predicates), np.int64)
        for shared in self.shared:
            of_box = (common[kind, kind] for kind, common in zip(self.kinds, shared, strict=True))
            self.size += np.prod(list(of_box), axis=0, dtype=np.int64)

    def relations(self, members: NDArray[np.int64], *, disjoint: bool) -> Iterator[tuple[int, int, NDArray[np.int64]]]:
        """For every predicate, how the members inside it or covering it add up to it."""
        common = np.zeros((len(self.predicates), len(members)), np.int64)
        for shared in self.shared:
            of_box = np.ones_like(common)
            for kind, levels in zip(self.kinds, shared, strict=True):
                of_box *= levels[:, kind[members]][kind]
            common += of_box
        touching = common > 0
        inside = touching & (common == self.size[members])
        if not disjoint:
            yield from ((int(t), AT_LEAST, members[[m]]) for t, m in np.argwhere(inside) if members[m] != t)
            boxes = [self.predicates[member] for member in members]
            alone = (common == self.size[:, None]).any(axis=1)  # inside one member: that member says more
            for at in np.flatnonzero(~alone & (common.sum(axis=1) >= self.size)):
                if self.schema.covered(self.predicates[int(at)], boxes):
                    yield int(at), AT_MOST, members[touching[at]]
            return
        filled = np.where(inside, common, 0).sum(axis=1) == self.size
        covered = (common.sum(axis=1) == self.size) & ~filled
        for target, chosen in _rows(inside):
            yield target, EQUAL if filled[target] else AT_LEAST, members[chosen]
        for target, chosen in _rows(touching & covered[:, None]):
            yield target, AT_MOST, members[chosen]


def _rows(matrix: NDArray[np.bool_]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """The rows that have a True, each with the columns of its Trues."""
    rows, columns = np.nonzero(matrix)
    starts = np.flatnonzero(np.diff(rows, prepend=-1))
    for start, chosen in zip(starts, np.split(columns, starts[1:]), strict=True) if len(rows) else ():
        yield int(rows[start]), chosen


class Checker:
    """Checks places against the identities of what was published, which are worked out once."""

    def __init__(self, schema: Schema, tables: Sequence[Table]) -> None:
        self.schema, self.tables = schema, tables
        self.prepared: dict[tuple[tuple[str, tuple[str, ...]], ...], Identities] = {}

    def identities(self, stacked: Sequence[Counts]) -> Identities:
        """The identities of a level (first) with the sums of finer levels."""
        key = tuple((counts.level, counts.variables) for counts in stacked)
        if key not in self.prepared:
            present = [
                (counts.level, table, frozenset(counts.variables)) for counts in stacked for table in self.tables
            ]
            sources = [source for source in present if any(line.variable in source[2] for line in source[1].lines)]
            self.prepared[key] = find_identities(self.schema, stacked[0].level, sources)
        return self.prepared[key]

    def check(self, counts: Counts, finer: Sequence[Counts] = ()) -> Iterator[Finding]:
        """The places whose numbers cannot all be true; `finer` holds sums over finer levels, for the same places."""
        stacked = [counts, *finer]
        identities = self.identities(stacked)
        order = [[c.column[variable] for at, variable in identities.terms if at == c.level] for c in stacked]
        lower = np.hstack([c.lower[:, columns] for c, columns in zip(stacked, order, strict=True)])
        exact = all(c.exact for c in stacked)
        upper = lower if exact else np.hstack([c.upper[:, columns] for c, columns in zip(stacked, order, strict=True)])
        for row, broken in identities.broken(lower, upper):
            yield identities.explain(counts.places[row], lower[row], upper[row], broken)


def sum_up(counts: Counts, places: Sequence[str], geography: Geography, level: str) -> Counts:
    """The numbers of finer places added up to the places of a coarser level."""
    row = {place: index for index, place in enumerate(places)}
    parent = np.array([row.get(geography.code(place, level), -1) for place in counts.places], np.int64)
    sums = []
    for numbers in (counts.lower, counts.upper):
        total = np.zeros((len(places), len(counts.variables)), np.int64)
        np.add.at(total, parent[parent >= 0], numbers[parent >= 0])
        sums.append(total)
    return Counts(counts.level, tuple(places), counts.variables, sums[0], sums[1])
