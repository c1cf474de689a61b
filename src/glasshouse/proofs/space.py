"""Which rows could a proof use? All published numbers over the kinds of record that are alive, as arrays.

The checker builds the program of the rows that a certificate names. To find those rows, the program of all rows is
needed; it is the same program, made by the same rules (`check_proof.Model`), in arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from glasshouse.model.records import UNLIMITED
from glasshouse.proofs.check_proof import KINDS, Fact, Key, Kinds, Published

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Space:
    """The program of a fact with every row: columns are groups of kinds of record, then overlaps, then switches."""

    fact: Fact
    keys: tuple[Key, ...]  # of the published numbers that are rows
    names: tuple[str, ...]
    matrix: sparse.csr_matrix  # numbers x groups
    low: Ints
    high: Ints  # UNLIMITED: no limit
    kind_of: Ints  # of each group; -1 of none
    times: Ints  # of each group: how often the count that is asked for counts it
    most: Ints  # of each kind of the fact's records; -1: no limit
    example: tuple[tuple[str, tuple[int, ...]], ...]  # of each group, a place and a record
    classes: tuple[tuple[int, ...], ...]  # and the classes in which that record is compared

    @cached_property
    def counts(self) -> Ints:
        return np.array([count for count, _ in self.fact.records], np.int64)

    @cached_property
    def several(self) -> Ints:
        """The kinds that have a switch."""
        return np.flatnonzero(self.counts > 1)

    @property
    def groups(self) -> int:
        return len(self.kind_of)

    @property
    def columns(self) -> int:
        return self.groups + len(self.counts) + len(self.several)

    def m(self, kind: int) -> int:
        return self.groups + kind

    def s(self, kind: int) -> int:
        return self.groups + len(self.counts) + int(np.searchsorted(self.several, kind))


def space_of(fact: Fact, published: Published, kinds: Kinds, most_kinds: int = KINDS) -> Space:
    """All rows of a fact, of numbers that are not 0; of a contradiction, those that are 0 too.

    Refused where more kinds of record are alive in all places.
    """
    defined = published.defined
    numbers = list(kinds.of)
    width = sum(bits.bit_count() for bits in kinds.of.values())
    first = np.array([(bits & -bits).bit_length() - 1 if bits else width for bits in kinds.of.values()], np.int64)
    sizes = np.array([bits.bit_count() for bits in kinds.of.values()], np.int64)
    owner = np.repeat(np.arange(len(numbers)), sizes)
    assert (np.sort(first[sizes > 0]) == first[sizes > 0]).all()
    kind_at = {kind: at for at, (_, kind) in enumerate(fact.records)}
    shown = fact.kind == "contradiction"
    keys: dict[Key, int] = {}
    blocks: list[tuple[sparse.csr_matrix, list[int], Ints, Ints]] = []
    records: list[tuple[str, tuple[int, ...]]] = []
    compared: list[tuple[int, ...]] = []
    most = np.full(len(fact.records), -1, np.int64)
    for place in fact.places:
        code = {level: defined.area(place, level) for level in fact.levels}
        values = [published.value((level, code[level], name)) for level, name in numbers]
        high = np.array([UNLIMITED if top is None else top for _, top in values], np.int64)
        dead = 0 if shown else sum(kinds.of[numbers[at]] for at in np.flatnonzero(high == 0))
        alive = kinds.alive(dead, most_kinds - len(records))
        records += [(place, record) for record, _, _ in alive]
        compared += [classes for _, classes, _ in alive]
        mask = (1 << width) - 1
        size = max((width + 7) // 8, 1)
        raw = b"".join((boxes & mask).to_bytes(size, "little") for _, _, boxes in alive)
        inside = np.unpackbits(np.frombuffer(raw, np.uint8).reshape(len(alive), size), axis=1, bitorder="little")
        counted = sparse.csr_matrix(inside[:, :width].astype(np.int64))
        sums = sparse.csr_matrix((np.ones(width, np.int64), (np.arange(width), owner)), (width, len(numbers)))
        columns = (counted @ sums).tocsr()  # alive x numbers
        mine = np.array([kind_at.get((place, kind), -1) for _, kind, _ in alive], np.int64)
        times = np.array([fact.times(record, place) for record, _, _ in alive], np.int64)
        for kind in np.flatnonzero(np.bincount(mine + 1, minlength=len(most) + 1)[1:]):
            within = columns[mine == kind].toarray().min(axis=0)
            limits = high[(within > 0) & (high < UNLIMITED)] // within[(within > 0) & (high < UNLIMITED)]
            most[kind] = int(limits.min()) if len(limits) else -1
        kept = [at for at in range(len(numbers)) if shown or high[at] > 0]
        at = [keys.setdefault((numbers[one][0], code[numbers[one][0]], numbers[one][1]), len(keys)) for one in kept]
        blocks.append((columns[:, kept], at, mine, times))
    wide = [
        sparse.csr_matrix((part.data, np.array(at, np.int64)[part.indices], part.indptr), (part.shape[0], len(keys)))
        for part, at, _, _ in blocks
    ]
    columns, kind_of, times, first_of = _merged(
        sparse.vstack(wide, format="csr"),
        np.concatenate([one[2] for one in blocks]),
        np.concatenate([one[3] for one in blocks]),
    )
    whole = [_counts_all(published, fact, key) for key in keys]
    values = [published.value(key) for key in keys]
    low = np.array([low if mine else -UNLIMITED for (low, _), mine in zip(values, whole, strict=True)], np.int64)
    high = np.array([UNLIMITED if top is None else top for _, top in values], np.int64)
    alone = len(fact.places) == 1
    names = tuple(name if level in defined.own and alone else f"{name}@{code}" for level, code, name in keys)
    matrix = columns.T.tocsr()
    matrix.sort_indices()
    example, classes = (tuple(some[one] for one in first_of) for some in (records, compared))
    return Space(fact, tuple(keys), names, matrix, low, high, kind_of, times, most, example, classes)


def _counts_all(published: Published, fact: Fact, key: Key) -> bool:
    here = published.defined.all_places and published.inside[key[:2]] <= set(fact.places)
    return key[0] in published.defined.own or here


def _merged(columns: sparse.csr_matrix, kind: Ints, times: Ints) -> tuple[sparse.csr_matrix, Ints, Ints, Ints]:
    """Kinds of record with the same column are one, in the order of the first."""
    columns.sort_indices()
    seen: dict[tuple[bytes, bytes, int, int], int] = {}
    for row in range(columns.shape[0]):
        part = slice(columns.indptr[row], columns.indptr[row + 1])
        key = columns.indices[part].tobytes(), columns.data[part].tobytes(), int(kind[row]), int(times[row])
        if part.start < part.stop or kind[row] >= 0 or times[row]:
            seen.setdefault(key, row)
    first = np.array(list(seen.values()), np.int64)
    return columns[first], kind[first], times[first], first
