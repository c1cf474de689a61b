"""Which records, in full, are these? Levels for records of which the compared classes are known, within limits."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy import sparse

from glasshouse.model.records import UNLIMITED, Codes
from glasshouse.program.highs import highs
from glasshouse.program.integer import IntegerProgram, Limit
from glasshouse.proofs.check_proof import Kinds, Published

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
