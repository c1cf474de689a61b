"""How many of these records does every set have that fits? The lines that show it, or the most that can be shown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from glasshouse.proofs.derivation import Derivation
from glasshouse.proofs.space import Space

Parts = Sequence[tuple[Sequence[int], int]]  # kinds that stand or fall together, and how many overlap at least


def shown_overlap(space: Space, target: int, parts: Parts, *, give_up: bool = False) -> tuple[Derivation, int] | None:
    """Lines that show the largest overlap up to the target; None where not even 1 is shown.

    First one line for all. Then part by part: one line, lines for single kinds, chords, and cases at last; where there
    are too many cases, less is shown: 1 less, 2, 4, ... With `give_up` only the target itself will do.
    """
    derived = Derivation(space)
    whole = {space.m(kind): 1 for kind in range(len(space.counts))}
    if derived.bounded(whole, target) is not None:
        return derived, target
    lines, total = [], 0
    for kinds, wanted in parts:
        if wanted < 1:
            continue
        terms = {space.m(kind): 1 for kind in kinds}
        found = _part(derived, kinds, wanted)
        step = 1
        if found is None and give_up:
            return None
        while found is None and wanted - step > 0:
            derived.left = max(derived.left, 0) + 50
            found = _cases(derived, terms, wanted - step)
            wanted, step = (wanted, step * 2) if found is None else (wanted - step, step)
        if found is not None:
            lines.append(found)
            total += wanted
    if not total:
        return None
    if len(lines) > 1 or len(derived.lines) - 1 not in lines or len(parts) > 1:
        derived.summed(whole, total, lines)
    return derived, total


def _part(derived: Derivation, kinds: Sequence[int], wanted: int) -> int | None:
    space = derived.space
    terms = {space.m(kind): 1 for kind in kinds}
    known = len(derived.known)
    found = derived.bounded(terms, wanted)
    if found is None:
        for kind in kinds:
            least = derived.least({space.m(kind): 1})
            if least is not None and least > 0:
                line = derived.bounded({space.m(kind): 1}, least)
                if line is not None:
                    derived.learn(line)
        found = derived.bounded(terms, wanted)
    if found is None:
        for kind in kinds:
            derived.chord(kind)
        found = derived.bounded(terms, wanted)
    if found is None:
        found = _cases(derived, terms, wanted)
    del derived.known[known:]
    return found


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
