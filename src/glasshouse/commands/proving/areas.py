"""What is shown of all places of an area together? Overlaps where the numbers of the area are met exactly."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from glasshouse.attack.vary import Varied
from glasshouse.commands.proving.chosen import CERTAIN, SOLVAR
from glasshouse.program.integer import Proof
from glasshouse.program.propagate import Array
from glasshouse.program.tables.histogram import Problem
from glasshouse.proofs.certificate import Records, Witness, text_of, within_limits
from glasshouse.proofs.check_proof import Definitions, Fact, Kinds, Published
from glasshouse.proofs.derivation import CASES, FEW
from glasshouse.proofs.overlap import Part, Parts, pruned, shown_overlap
from glasshouse.proofs.space import space_of
from glasshouse.proofs.witness import Classes, fits, realised_together

PLACES, MOST_KINDS = 100, 60_000  # of an area that is looked at as a whole: its places, and kinds of record in them
RELAXATIONS, EFFORT = 1_500, 30_000_000  # for one fact of it: at most so many, with so many numbers in all their rows
Record = tuple[int, ...]  # how many, and a level of each attribute; or how many, and a class of each


class SaidOfArea(NamedTuple):
    """What the result says of an area as a whole."""

    population: int
    overlap: int
    certain: int
    proof: str
    certain_proof: str


def said_of_areas(folder: Path, level: str) -> dict[str, SaidOfArea]:
    """What a result of vary says of its areas."""
    columns = level, "population", "distance", "certain", "proof", "certain_proof"
    frame = pl.read_parquet(folder / "areas.parquet").select(columns)
    return {
        area: SaidOfArea(population, population - distance // 2, certain, proof, certain_proof)
        for area, population, distance, certain, proof, certain_proof in frame.iter_rows()
    }


def parts_of(problem: Problem) -> Array:
    """Of each variable of what was asked, the part it is in; -1 where it is known."""
    split = problem.split()
    label = np.full(len(split.lower), -1, np.int64)
    label[split.origin] = np.repeat(np.arange(len(split.parts)), np.diff(split.parts.first))
    return label


@dataclass(frozen=True)
class Around:
    """An area of which every place is known, and the records that were started from."""

    defined: Definitions
    kinds: Kinds
    published: Published
    levels: tuple[str, str]  # of places, and the area's
    places: tuple[str, ...]
    starts: Mapping[str, Sequence[Record]]

    @within_limits((0, ""))
    def shown(
        self, records: Mapping[str, Sequence[Record]], parts: Parts, wanted: int, total: Sequence[str], before: str,
        farthest: Mapping[str, Mapping[Classes, int]] | None = None,
    ) -> tuple[int, str]:  # fmt: skip
        """The overlap with these records that is shown, and the text; nothing where the area is too large."""
        if len(self.places) > PLACES:
            return 0, ""
        said: dict[str, object] = {
            "fact": "overlap", "places": list(self.places), "levels": list(self.levels),
            "records": {place: [list(one) for one in some] for place, some in records.items()}, "bound": wanted,
        }  # fmt: skip
        fact = Fact(json.dumps(said), self.defined)
        space = space_of(fact, self.published, self.kinds, MOST_KINDS)
        found = shown_overlap(
            space,
            wanted,
            parts,
            cases=CASES if before != Proof.UNDECIDED else FEW,
            relaxations=min(RELAXATIONS, EFFORT // max(space.matrix.nnz, 1)),
        )
        if found is None:
            return 0, ""
        derived, shown = found
        pruned(derived)
        said |= {"bound": shown}
        if total:
            said |= {"total": [f"{name}@{place}" for place in records for name in total]}
        sets: list[Records] = [self.starts]
        if farthest is not None:
            far = realised_together(self.published, self.kinds, self.levels, self.places, farthest)
            sets += [] if far is None else [far]
        fact = Fact(json.dumps(said), self.defined)
        witnesses = [one for one in map(Witness, sets) if fits(fact, self.published, self.kinds, one)]
        return shown, text_of(said, witnesses, self.published, self.kinds, derived)


def facts_of_area(
    around: Around | None, code: str, varied: Varied, rows: Array, said: SaidOfArea,
    names: Sequence[str], facts: frozenset[str],
) -> Iterator[tuple[str, str, int, int, str, int, str]]:  # fmt: skip
    """What vary says of an area as a whole: how many of the start's records overlap at least, and are certain."""
    assert varied.together is not None
    problem, farthest = varied.together
    kinds, label = varied.kinds, parts_of(problem)
    inside = np.isin(kinds.place, rows)
    order = np.flatnonzero(inside)[np.argsort(kinds.place[inside], kind="stable")]
    mine = problem.counted & np.isin(problem.place, rows)
    those = zip(problem.place[mine].tolist(), problem.cell[mine].tolist(), strict=True)
    at = dict(zip(those, np.flatnonzero(mine).tolist(), strict=True))
    variable = np.array([at.get((int(kinds.place[one]), int(kinds.cell[one])), -1) for one in order], np.int64)
    known = np.where(variable >= 0, farthest[variable], 0)
    both = np.minimum(kinds.records[order], known)
    fixed = bool(problem.fixed_total[problem.program[rows[0]]])
    wanted = {
        SOLVAR: (both, said.overlap, said.proof),
        CERTAIN: (kinds.certain[order], said.certain, said.certain_proof),
    }
    for name, (counts, bound, before) in wanted.items():
        if name not in facts or not bound or (name == SOLVAR and not (fixed and names)):
            continue
        some = np.flatnonzero(counts > 0) if name == CERTAIN else np.arange(len(order))
        records: dict[str, list[Record]] = {}
        parts: dict[int, list[int]] = {}
        for number, one in enumerate(some):
            kind = order[one]
            count = int(counts[one] if name == CERTAIN else kinds.records[kind])
            told = map(int, kinds.cells.codes[kinds.cell[kind]])
            records.setdefault(varied.asked.places[int(kinds.place[kind])], []).append((count, *told))
            part = int(label[variable[one]]) if variable[one] >= 0 else -1
            parts.setdefault(part, []).append(number)
        listed = [Part(those, int(counts[some[those]].sum())) for _, those in sorted(parts.items())]
        far: dict[str, dict[Classes, int]] | None = None
        if name == SOLVAR:
            far = {}
            for v in np.flatnonzero(mine & (farthest > 0)):
                classes = tuple(map(int, kinds.cells.codes[problem.cell[v]]))
                far.setdefault(varied.asked.places[int(problem.place[v])], {})[classes] = int(farthest[v])
        shown, text = 0, ""
        if around is not None:
            total = names if name == SOLVAR else ()
            shown, text = around.shown(records, listed, bound, total, before, far)
        file = f"{code}-{name}.vipr" if text else ""
        yield f"area {name}", file, bound, shown, before, said.population, text
