"""The job behind `glasshouse prove`: certificates of what `vary` says of the places of a unit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from glasshouse.attack.published import Published as Tables
from glasshouse.attack.published import Unit
from glasshouse.attack.vary import Varied, vary
from glasshouse.commands.proving.areas import Around, SaidOfArea, facts_of_area, parts_of
from glasshouse.commands.proving.chosen import CERTAIN, SOLVAR
from glasshouse.commands.work.vary import Varying, start_records
from glasshouse.engine.job import Done, Item
from glasshouse.model.records import UNLIMITED
from glasshouse.model.release import counts_everyone
from glasshouse.model.schema import EVERYONE
from glasshouse.program.integer import Proof
from glasshouse.program.propagate import Array
from glasshouse.proofs.certificate import Witness, text_of
from glasshouse.proofs.check_proof import Definitions, Fact, Kinds, Published, Refused
from glasshouse.proofs.derivation import CASES, FEW
from glasshouse.proofs.overlap import Part, Parts, pruned, shown_overlap
from glasshouse.proofs.part import Cells
from glasshouse.proofs.space import space_of
from glasshouse.proofs.witness import Classes, in_full, realised
from glasshouse.scenarios.load import Scenario

CERTIFICATES = pl.Schema(
    {"unit": pl.String, "place": pl.String, "fact": pl.String, "file": pl.String, "wanted": pl.Int64,
     "shown": pl.Int64, "before": pl.String, "records": pl.Int64, "text": pl.String}
)  # fmt: skip


class Said(NamedTuple):
    """What the result says of a place: how many of the start's records overlap at least, how many are certain."""

    overlap: int
    certain: int
    proof: str
    certain_proof: str


def said_of(folder: Path, scenario: Scenario) -> dict[str, Said]:
    """What a result of vary says of its places."""
    columns = "population", "distance", "certain", "proof", "certain_proof"
    frame = pl.read_parquet(folder / "places.parquet").select(scenario.geography.place, *columns)
    return {
        place: Said(population - distance // 2, certain, proof, certain_proof)
        for place, population, distance, certain, proof, certain_proof in frame.iter_rows()
    }


@dataclass(frozen=True)
class Proving(Varying):
    """What all units share of a run of prove."""

    definitions: bytes = b""
    said: Mapping[str, Said] = field(default_factory=dict)  # by place
    areas: Mapping[str, SaidOfArea] = field(default_factory=dict)
    facts: frozenset[str] = frozenset()  # kinds of facts that are proved

    @cached_property
    def defined(self) -> Definitions:
        return Definitions(self.definitions)

    @cached_property
    def kinds(self) -> dict[tuple[str, ...], Kinds]:
        place = self.scenario.geography.place
        levels = [(place,)] + ([(place, self.area_level)] if self.area_level else [])
        return {some: Kinds(self.defined, some) for some in levels}


def held(defined: Definitions, unit: Unit, area_level: str | None) -> Published:
    """The numbers of a unit as the checker has them."""
    values: dict[tuple[str, str, str], tuple[int, int | None]] = {}
    inside: dict[tuple[str, str], set[str]] = {}
    for counts in (unit.counts, unit.areas):
        if counts is None:
            continue
        absent = UNLIMITED if defined.hidden else 0
        for row, column in zip(*np.nonzero((counts.lower != 0) | (counts.upper != absent)), strict=True):
            high = int(counts.upper[row, column])
            key = counts.level, counts.places[row], counts.variables[column]
            values[key] = int(counts.lower[row, column]), None if high >= UNLIMITED else high
    for at, place in enumerate(unit.counts.places):
        inside[unit.counts.level, place] = {place}
        if unit.areas is not None and area_level is not None:
            inside.setdefault((area_level, unit.areas.places[unit.of[at]]), set()).add(place)
    return Published(defined, values, inside)


def total_names(tables: Tables) -> list[str]:
    """Numbers of a place that together count every record once; none where there are none."""
    for table in tables.tables:
        if counts_everyone(table) and not table.sums:
            for line in table.lines:
                if line.predicate == EVERYONE and line.variable in tables.variables:
                    return [line.variable]
            leaves = [line.variable for line in table.leaves]
            if set(leaves) <= set(tables.variables):
                return leaves
    return []


def prove_unit(job: Proving, item: Item) -> Done:
    """One unit: of each of its places the certificates of what vary says."""
    place, codes, _ = start_records(job, item)
    varied = vary(
        job.published, item.unit, place, codes, finest=job.finest, tighten=job.tighten, jointly=job.jointly,
        ladder=job.ladder,
    )  # fmt: skip
    published, parts = held(job.defined, item.unit, job.area_level), parts_of(varied.asked)
    starts = {code: in_full(codes[place == at]) for at, code in enumerate(item.unit.counts.places)}
    rows: list[tuple[object, ...]] = []
    named, arounds = item.unit.named, _arounds(job, item.unit, published, starts)
    for at, code in enumerate(item.unit.counts.places):
        if named[at] and varied.places.population[at] > 0:
            around = arounds.get(int(item.unit.of[at]))
            about = _Place(job, published, varied, parts, at, code, starts[code], around)
            rows += [(item.code, code, *one) for one in about.facts()]
    if varied.together is not None and item.unit.areas is not None:
        for number, code in enumerate(item.unit.areas.places):
            inside, names = np.flatnonzero(item.unit.of == number), total_names(job.published)
            facts = facts_of_area(arounds.get(number), code, varied, inside, job.areas[code], names, job.facts)
            rows += [(item.code, code, *one) for one in facts] if len(inside) else []
    frame = pl.DataFrame(rows, schema=CERTIFICATES, orient="row")
    return Done({"certificates": frame}, {"places": int(named.sum())}, bool(varied.places.clock.any()))


def _arounds(
    job: Proving, unit: Unit, published: Published, starts: Mapping[str, list[tuple[int, ...]]]
) -> dict[int, Around]:
    """The areas that are looked at as a whole, if the checker sees that all their places are there.

    A difference of two numbers of an area is a limit for each place only because the places make both up exactly.
    """
    if not (job.jointly or job.tighten) or unit.areas is None or job.area_level is None or not job.defined.all_places:
        return {}
    place, found = job.scenario.geography.place, {}
    levels = place, job.area_level
    for number in range(len(unit.areas.places)):
        inside = [code for at, code in enumerate(unit.counts.places) if unit.of[at] == number]
        mine = {code: starts[code] for code in inside if starts[code]}
        found[number] = Around(job.defined, job.kinds[levels], published, levels, tuple(inside), mine)
    return found


@dataclass(frozen=True)
class _Place:
    """What vary says of one place, and its numbers."""

    job: Proving
    published: Published
    varied: Varied
    part_of: Array
    at: int
    code: str
    start: list[tuple[int, ...]]  # its records in full
    around: Around | None  # the area, if that is solved as a whole

    def facts(self) -> Iterator[tuple[str, str, int, int, str, int, str]]:
        """What vary says: the name of each fact, its file, what was to be shown and was, its proof before, the text."""
        far, kinds, said = self.varied.places, self.varied.kinds, self.job.said[self.code]
        mine = kinds.place == self.at
        cells, counts, certain = kinds.cell[mine], kinds.records[mine], kinds.certain[mine]
        population, sure = int(far.population[self.at]), int(far.certain[self.at])
        farthest = self._farthest()
        fixed = bool(self.varied.asked.fixed_total[self.varied.asked.program[self.at]])
        total = total_names(self.job.published) if fixed else []
        overlap = np.minimum(counts, np.array([farthest.get(int(cell), 0) for cell in cells], np.int64))
        found, name = int(overlap.sum()), f"{self.code}-solvar.vipr"
        both = [SOLVAR, CERTAIN] if found == population else [SOLVAR]  # one file says both
        chosen = [one for one in both if one in self.job.facts]
        if total and said.overlap > 0 and chosen:
            shown, text = 0, ""
            if found:
                parts = self._parts(cells, overlap)
                shown, text = self._shown(cells, counts, parts, found, total, farthest, said.proof, said.overlap)
            for one in chosen:
                wanted, before = (said.overlap, said.proof) if one == SOLVAR else (said.certain, said.certain_proof)
                yield one, name if text else "", wanted, shown, before, population, text if one == chosen[0] else ""
        if said.certain > 0 and not (total and found == population) and CERTAIN in self.job.facts:
            some = np.flatnonzero(certain > 0)
            each = [Part([kind], int(certain[one])) for kind, one in enumerate(some)]
            shown, text = 0, ""
            if sure:
                shown, text = self._shown(
                    cells[some], certain[some], each, sure, [], farthest, said.certain_proof, said.certain
                )
            name = f"{self.code}-certain.vipr" if text else ""
            yield CERTAIN, name, said.certain, shown, said.certain_proof, population, text

    def _farthest(self) -> dict[int, int]:
        """The records farthest from the start, by cell."""
        asked = self.varied.asked
        mine = np.flatnonzero((asked.place == self.at) & asked.counted & (self.varied.farthest > 0))
        return {int(asked.cell[one]): int(self.varied.farthest[one]) for one in mine}

    def _parts(self, cells: Array, overlap: Array) -> Parts:
        """The kinds of the start by the part of the problem that they are in."""
        asked = self.varied.asked
        mine = np.flatnonzero(asked.place == self.at)
        part = {int(asked.cell[one]): int(self.part_of[one]) for one in mine}
        found: dict[int, list[int]] = {}
        for kind, cell in enumerate(cells):
            found.setdefault(part.get(int(cell), -1), []).append(kind)
        return [Part(some, int(overlap[some].sum()), self._cells(number)) for number, some in sorted(found.items())]

    def _cells(self, part: int) -> Cells | None:
        """A part of what was asked, whose cells are all compared."""
        split, classes = self.varied.asked.split(), self.varied.kinds.cells.codes
        if part < 0:
            return None
        variables = split.variables(part)
        of = [tuple(map(int, classes[cell])) for cell in self.varied.asked.cell[variables]]
        return Cells(of, split.parts.only(part), self.varied.farthest[variables])

    def _shown(
        self,
        cells: Array,
        counts: Array,
        parts: Parts,
        wanted: int,
        total: list[str],
        farthest: Mapping[int, int],
        before: str,
        target: int,
    ) -> tuple[int, str]:
        """The overlap that is shown, and the text; first with the numbers of the place alone.

        `wanted` is what is true of the place alone, with the area around as limits from above; jointly, the target is.
        """
        classes = self.varied.kinds.cells.codes
        records = [[int(count), *map(int, classes[cell])] for cell, count in zip(cells, counts, strict=True)]
        best: tuple[int, str] = (0, "")
        hurried = self.around is not None  # what needs the area is not tried at length without it
        for levels, kinds in self.job.kinds.items():
            said = {"fact": "overlap", "places": [self.code], "levels": list(levels), "records": records,
                    "bound": wanted}  # fmt: skip
            fact = Fact(json.dumps(said), self.job.defined)
            last = len(levels) == len(list(self.job.kinds)[-1]) and not hurried
            cases = CASES if last and before != Proof.UNDECIDED else FEW
            try:
                found = shown_overlap(
                    space_of(fact, self.published, kinds), wanted, parts, give_up=not last, cases=cases
                )
                if found is None or found[1] <= best[0]:
                    continue
                derived, shown = found
                pruned(derived)
                said |= {"bound": shown} | ({"total": total} if total else {})
                text = text_of(said, self._witnesses(levels, kinds, farthest), self.published, kinds, derived)
            except Refused:  # it is beyond the checker's limits
                continue
            best = shown, text
            if shown == wanted:
                break
        if self.around is not None and best[0] < target:
            every = [Part(range(len(records)), target)]
            more = self.around.shown({self.code: [tuple(one) for one in records]}, every, target, total, before)
            best = max(best, more if more[0] else best)
            if hurried and not best[0]:
                shown_alone = replace(self, around=None)
                return shown_alone._shown(cells, counts, parts, wanted, total, farthest, before, target)
        return best

    def _witnesses(self, levels: tuple[str, ...], kinds: Kinds, farthest: Mapping[int, int]) -> list[Witness]:
        """The start, and the records farthest from it, in full."""
        classes = self.varied.kinds.cells.codes
        wanted: dict[Classes, int] = {tuple(map(int, classes[cell])): count for cell, count in farthest.items()}
        far = realised(self.published, kinds, levels, self.code, wanted)
        found = [self.start] + ([far] if far is not None else [])
        return [Witness({self.code: one}) for one in found]
