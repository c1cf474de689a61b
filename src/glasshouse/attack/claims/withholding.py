"""Which table gives it away? Claims that are lost when a table is withheld, and gained when it is added.

Withholding can only lose claims, so only those that are certain are asked about again, with the table's numbers hidden.
What a table adds is what would be lost if it were withheld again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from glasshouse.attack.claims.hiding import without
from glasshouse.attack.claims.verify import Claimable, Verified, places_of, verify
from glasshouse.model.release import Counts, Table
from glasshouse.program.ladder import CLIMB, Ladder
from glasshouse.program.settled import Verdict, settled

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Change:
    """What changes for the claims of one place: descriptions and kinds lost or gained, and those undecided."""

    claims: int
    kinds: int
    undecided: int


def families(tables: Iterable[Table]) -> dict[str, tuple[Table, ...]]:
    """Tables by the name they share with their iterations: P16 is P16 and P16A to P16V."""
    found: dict[str, tuple[Table, ...]] = {}
    for table in tables:
        match = re.fullmatch(r"([A-Za-z]+\d+)[A-Za-z]*", table.name)
        name = match[1] if match else table.name
        found[name] = (*found.get(name, ()), table)
    return found


def hidden(counts: Counts, tables: Iterable[Table]) -> Flags:
    """The columns of these tables."""
    names = {line.variable for table in tables for line in table.lines}
    return np.array([variable in names for variable in counts.variables], np.bool_)


def lost(
    claimable: Claimable, counts: Counts, columns: Flags, known: Sequence[Verified], rng: np.random.Generator,
    ladder: Ladder = CLIMB, *, singletons: bool = False,
) -> list[Change]:  # fmt: skip
    """Of each place, the claims (or only those about one record) no longer certain when these columns are withheld."""
    masked = without(counts, np.broadcast_to(columns, counts.lower.shape))
    changes = []
    for place, before in zip(places_of(claimable, masked, rng, ladder), known, strict=True):
        asked, certain = before.claims, before.claims.certain & _wanted(before, singletons)
        values, kind = asked.candidates.values[certain], asked.candidates.kind[certain]
        held = before.place.live.shared[np.flatnonzero(before.place.x)]
        inside, meeting = (sets & ~place.apart for sets in place.live.described(values, held))  # kinds may part now
        now = settled(place.problem, place.x, inside, meeting, place.number, ladder)
        open_ = now.verdict == Verdict.OPEN
        gone = ~open_ & ~((now.verdict == Verdict.SETTLED) & (now.low == asked.settled.low[kind]))
        changes.append(Change(int(gone.sum()), len(np.unique(kind[gone])), int(open_.sum())))
    return changes


def gained(
    claimable: Claimable, counts: Counts, columns: Flags, least: int, rng: np.random.Generator,
    ladder: Ladder = CLIMB, *, singletons: bool = False,
) -> list[Change]:  # fmt: skip
    """Of each place, the claims (or only those about one record) that are certain only with these columns."""
    now = [verify(place, least, ladder) for place in places_of(claimable, counts, rng, ladder)]
    gone = lost(claimable, counts, columns, now, rng, ladder, singletons=singletons)
    open_ = [int(verified.claims.undecided.sum()) for verified in now]
    return [replace(one, undecided=one.undecided + more) for one, more in zip(gone, open_, strict=True)]


def _wanted(verified: Verified, singletons: bool) -> Flags:
    """The descriptions that are looked at."""
    low = verified.claims.settled.low[verified.claims.candidates.kind]
    return np.asarray((low == 1) | (not singletons))


def named(tables: Sequence[Table], *, by_family: bool) -> Mapping[str, tuple[Table, ...]]:
    """What is withheld or added at once: each table alone, or with its iterations (named `P16, A-V`)."""
    if not by_family:
        return {table.name: (table,) for table in tables}
    found = {}
    for name, group in families(tables).items():
        letters = [table.name.removeprefix(name) for table in group if table.name != name]
        several = len(letters) > 1 and len(group) > 1
        found[f"{name}, {letters[0]}-{letters[-1]}" if several else group[0].name] = group
    return found
