"""How many of these records does every set have that fits? The lines that show it, or the most that can be shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from glasshouse.proofs.derivation import CASES, RELAXATIONS, Derivation
from glasshouse.proofs.part import Cells
from glasshouse.proofs.space import Space
from glasshouse.proofs.stages import closed

FEWER = 50  # cases for a try at less


class Part(NamedTuple):
    """Kinds that stand or fall together, how many overlap at least, and what was asked of them."""

    kinds: Sequence[int]
    wanted: int
    cells: Cells | None = None


Parts = Sequence[Part]


def shown_overlap(
    space: Space,
    target: int,
    parts: Parts,
    *,
    give_up: bool = False,
    cases: int = CASES,
    relaxations: int = RELAXATIONS,
) -> tuple[Derivation, int] | None:
    """Lines that show the largest overlap up to the target; None where not even 1 is shown.

    First one line for all. Then part by part: one line, lines for single kinds, chords, and cases at last; where there
    are too many cases, less is shown: 1 less, 2, 4, ... With `give_up` only the target itself will do.
    """
    derived = Derivation(space, cases, relaxations)
    whole = {space.m(kind): 1 for kind in range(len(space.counts))}
    if derived.bounded(whole, target) is not None:
        return derived, target
    lines, total = [], 0
    for part in parts:
        found = _part(derived, part, give_up=give_up) if part.wanted > 0 else None
        if part.wanted > 0 and give_up and (found is None or found[1] < part.wanted):
            return None
        if found is not None:
            lines.append(found[0])
            total += found[1]
    if not total:
        return None
    derived.summed(whole, total, lines)
    return derived, total


def _part(derived: Derivation, part: Part, *, give_up: bool) -> tuple[int, int] | None:
    """A line for the overlap of some kinds, and how large it is."""
    space, (kinds, wanted, cells) = derived.space, part
    terms = {space.m(kind): 1 for kind in kinds}
    known = len(derived.known)
    found = derived.bounded(terms, wanted)
    for step in (derived.each, derived.chord):
        if found is None:
            for kind in kinds:
                step(kind)
            found = derived.bounded(terms, wanted)
    if found is None and cells is not None and not give_up:
        found = closed(derived, kinds, wanted, cells)
    if found is None:
        found = _cases(derived, terms, wanted)
    less = wanted
    if found is None and not give_up:
        sure, step_down = max(derived.least(terms) or 0, 0), 1
        while found is None and less > sure:
            less, step_down = max(wanted - step_down, sure), 2 * step_down
            derived.left = max(derived.left, FEWER)
            found = (
                (derived.bounded(terms, less) if less > 0 else None) if less == sure else _cases(derived, terms, less)
            )
    del derived.known[known:]
    return None if found is None else (found, less)


def _cases(derived: Derivation, terms: dict[int, int], wanted: int) -> int | None:
    """By cases; lines of a try that failed are taken away."""
    before = len(derived.lines)
    found = derived.cases(terms, wanted)
    if found is None:
        del derived.lines[before:]
    return found


def pruned(derived: Derivation) -> None:
    """Take lines away that the last one does not rest on."""
    lines = derived.lines
    needed = np.zeros(len(lines), np.bool_)
    needed[-1] = True
    for at in range(len(lines) - 1, -1, -1):
        if needed[at]:
            for ref in (*lines[at].times, *(lines[at].cases or ())):
                if isinstance(ref, int):
                    needed[ref] = True
    derived.keep(np.flatnonzero(needed).tolist())
