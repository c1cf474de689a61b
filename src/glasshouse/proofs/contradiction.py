"""Which few published numbers cannot all be true? Lines that show it, and records that fit all of them but one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from glasshouse.model.records import UNLIMITED
from glasshouse.program.highs import highs
from glasshouse.program.integer import IntegerProgram, Limit, Outcome
from glasshouse.proofs.certificate import Witness
from glasshouse.proofs.derivation import Derivation
from glasshouse.proofs.space import Ints, Space

MOST = 60  # numbers of which it is asked, one after the other, whether they are needed
CORNERS = 40  # of a relaxation that are tried


@dataclass(frozen=True)
class Contradiction:
    """Lines that end in 0 >= 1, and records that fit all numbers used but one, where they were found."""

    derived: Derivation
    witnesses: tuple[Witness, ...]


def shown_contradiction(space: Space) -> Contradiction | None:
    """Why nothing fits the numbers of a space; None if something does, or it takes too many cases."""
    derived = _absurd(space)
    if derived is None:
        return None
    used = _used(derived)
    found: dict[int, Ints] = {}
    for row in list(used) if len(used) <= MOST else ():
        rest = [one for one in used if one != row]
        less = _only(space, rest)
        x = _some(less)
        if x is not None:
            found[row] = x
        elif (again := _absurd(less)) is not None:
            derived, used = again, [rest[one] for one in _used(again)]
    if set(found) >= set(used):  # those of numbers that went meanwhile say nothing
        kept = {row: x for row, x in found.items() if row in used}
    else:
        kept = {row: x for row in used if (x := _some(_only(space, [one for one in used if one != row]))) is not None}
    witnesses = tuple(Witness(_records(x, space), _full_name(space, row)) for row, x in kept.items())
    return Contradiction(derived, witnesses)


def met(space: Space, bound: int) -> tuple[Witness, ...]:
    """Records of which exactly so many are counted, if they are found within limits."""
    matrix = sparse.vstack([space.matrix, sparse.csr_matrix(space.times)], format="csr")
    x = _some(replace(space, matrix=matrix, low=np.append(space.low, bound), high=np.append(space.high, bound)), 0.05)
    return () if x is None else (Witness(_records(x, space)),)


def _full_name(space: Space, row: int) -> str:
    _, code, name = space.keys[row]
    return f"{name}@{code}"


def _absurd(space: Space) -> Derivation | None:
    derived = Derivation(space)
    line = derived.cases({}, 1)
    return None if line is None else derived


def _used(derived: Derivation) -> list[int]:
    """The rows of the space that lines rest on."""
    at = {name: row for row, name in enumerate(derived.space.names)}
    named = {ref.rstrip("<>") for line in derived.lines for ref in line.times if isinstance(ref, str)}
    return sorted(at[name] for name in named if name in at)


def _only(space: Space, rows: Sequence[int]) -> Space:
    """The space with these rows."""
    some = np.array(rows, np.int64)
    return replace(
        space, keys=tuple(space.keys[one] for one in rows), names=tuple(space.names[one] for one in rows),
        matrix=space.matrix[some], low=space.low[some], high=space.high[some],
    )  # fmt: skip


def _some(space: Space, effort: float = 10.0) -> Ints | None:
    """Whole numbers of the groups that fit all rows: a corner of the relaxation that is whole, or one is searched for.

    Costs that are drawn choose a corner. Of real places one in four to one in twenty is whole, each takes milliseconds,
    and branch and bound seconds.
    """
    zero = np.zeros(space.groups, np.int64)
    matrix = space.matrix
    program = IntegerProgram(
        zero, zero, np.full_like(zero, UNLIMITED), np.maximum(space.low, 0), space.high,
        matrix.indptr.astype(np.int64),
        matrix.indices.astype(np.int32), matrix.data.astype(np.int64),
    )  # fmt: skip
    for seed in range(CORNERS):
        cost = np.random.default_rng(seed).integers(0, 100, space.groups)
        found = highs(replace(program, cost=cost), Limit(branches=False))
        if found.x is not None or found.outcome == Outcome.INFEASIBLE:
            return found.x
    return highs(program, Limit(effort=effort)).x


def _records(x: Ints, space: Space) -> dict[str, list[tuple[int, ...]]]:
    found: dict[str, list[tuple[int, ...]]] = {}
    for group in np.flatnonzero(x):
        place, record = space.example[group]
        found.setdefault(place, []).append((int(x[group]), *record))
    return found
