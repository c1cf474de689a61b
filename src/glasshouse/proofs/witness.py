"""Which records, in full, are these? Levels for records of which the compared classes are known, within limits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np
from scipy import sparse

from glasshouse.model.records import UNLIMITED, Codes
from glasshouse.program.highs import highs
from glasshouse.program.integer import IntegerProgram, Limit
from glasshouse.proofs.certificate import Witness
from glasshouse.proofs.check_proof import Fact, Key, Kinds, Model, Published, Refused, form

Classes = tuple[int, ...]


def in_full(codes: Codes) -> list[tuple[int, ...]]:
    """Records as a witness lists them: how many, and a level of each attribute."""
    some, times = np.unique(codes, axis=0, return_counts=True)
    return [(int(count), *map(int, one)) for count, one in zip(times, some, strict=True)]


def realised(
    published: Published, kinds: Kinds, levels: tuple[str, ...], place: str, wanted: Mapping[Classes, int]
) -> list[tuple[int, ...]] | None:
    """Records with so many in each class, none more than the numbers of an area around allow; None: not found."""
    defined = published.defined
    code = {level: defined.area(place, level) for level in levels}
    high = {key: published.value((key[0], code[key[0]], key[1]))[1] for key in kinds.of}
    dead = sum(bits for key, bits in kinds.of.items() if high[key] == 0)
    alive = [one for one in kinds.alive(dead) if one[1] in wanted]
    if len(levels) == 1:
        first = {kind: record for record, kind, _ in reversed(alive)}
        return [(count, *first[kind]) for kind, count in wanted.items()] if set(first) == set(wanted) else None
    at = {kind: row for row, kind in enumerate(wanted)}
    around = [(bits, high[key]) for key, bits in kinds.of.items() if key[0] != defined.place and high[key] != 0]
    entries = [(at[kind], column, 1) for column, (_, kind, _) in enumerate(alive)]
    row = len(at)
    upper = list(wanted.values())
    total = sum(upper)
    for bits, top in around:
        met = [(column, (boxes & bits).bit_count()) for column, (_, _, boxes) in enumerate(alive) if boxes & bits]
        if top is not None and met and top < total * max(times for _, times in met):
            entries += [(row, column, times) for column, times in met]
            upper.append(top)
            row += 1
    lower = np.array([*wanted.values(), *([0] * (row - len(at)))], np.int64)
    rows, columns, times = (np.array(one, np.int64) for one in zip(*entries, strict=True)) if entries else ([],) * 3
    matrix = sparse.csr_matrix((times, (rows, columns)), (row, len(alive)), dtype=np.int64)
    zero = np.zeros(len(alive), np.int64)
    program = IntegerProgram(
        zero, zero, np.full_like(zero, UNLIMITED), lower, np.array(upper, np.int64), matrix.indptr.astype(np.int64),
        matrix.indices.astype(np.int32), matrix.data.astype(np.int64),
    )  # fmt: skip
    found = highs(program, Limit(effort=10.0)).x
    if found is None:
        return None
    return [(int(found[one]), *alive[one][0]) for one in np.flatnonzero(found)]


def realised_together(
    published: Published, kinds: Kinds, levels: tuple[str, ...], places: Sequence[str],
    wanted: Mapping[str, Mapping[Classes, int]],
) -> dict[str, list[tuple[int, ...]]] | None:  # fmt: skip
    """Records of several places, so many in each class of each, that meet all numbers; None: not found."""
    defined = published.defined
    columns: list[tuple[str, tuple[int, ...]]] = []
    entries: list[tuple[int, int, int]] = []
    ends: list[tuple[int, int | None]] = [(count, count) for some in wanted.values() for count in some.values()]
    demands = {(place, kind): row for row, (place, kind) in enumerate((p, k) for p in wanted for k in wanted[p])}
    rows: dict[Key, int] = {}
    for place in places:
        keys = {key: (key[0], defined.area(place, key[0]), key[1]) for key in kinds.of}
        dead = sum(bits for key, bits in kinds.of.items() if published.value(keys[key])[1] == 0)
        for record, kind, boxes in kinds.alive(dead) if place in wanted else ():
            if (place, kind) not in demands:
                continue
            entries.append((demands[place, kind], len(columns), 1))
            for key, bits in kinds.of.items():
                if boxes & bits and key[0] != defined.place:
                    if keys[key] not in rows:
                        rows[keys[key]] = len(ends)
                        ends.append(published.value(keys[key]))
                    entries.append((rows[keys[key]], len(columns), (boxes & bits).bit_count()))
            columns.append((place, record))
    if not entries or len({row for row, _, _ in entries if row < len(demands)}) < len(demands):
        return None
    at, column, times = (np.array(one, np.int64) for one in zip(*entries, strict=True))
    matrix = sparse.csr_matrix((times, (at, column)), (len(ends), len(columns)), dtype=np.int64)
    low = np.array([low for low, _ in ends], np.int64)
    high = np.array([UNLIMITED if top is None else top for _, top in ends], np.int64)
    zero = np.zeros(len(columns), np.int64)
    program = IntegerProgram(
        zero, zero, np.full_like(zero, UNLIMITED), low, high, matrix.indptr.astype(np.int64),
        matrix.indices.astype(np.int32), matrix.data.astype(np.int64),
    )  # fmt: skip
    x = highs(program, Limit(effort=10.0)).x
    if x is None:
        return None
    found: dict[str, list[tuple[int, ...]]] = {}
    for (place, record), times_found in zip(columns, x.tolist(), strict=True):
        if times_found:
            found.setdefault(place, []).append((times_found, *record))
    return found


def fits(fact: Fact, published: Published, kinds: Kinds, witness: Witness) -> bool:
    """Does the checker count this up to all numbers?"""
    try:
        with form("witness"):
            Model(fact, published, kinds, ()).recounted(json.dumps(witness.said()))
    except Refused:
        return False
    return True
