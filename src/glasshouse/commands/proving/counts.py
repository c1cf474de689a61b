"""The job behind `glasshouse prove` of bounds and claims: the least and the most of counts, place by place."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import polars as pl

from glasshouse.assess.hidden import ASKED
from glasshouse.attack.claims.spelling import code_of, parted
from glasshouse.commands.proving.chosen import CONTRADICTION, LEAST, MOST
from glasshouse.commands.proving.facts import CERTIFICATES, held
from glasshouse.engine.job import Done, Item, Job
from glasshouse.model.records import UNLIMITED
from glasshouse.model.release import counted
from glasshouse.model.schema import Predicate
from glasshouse.proofs.certificate import text_of, within_limits
from glasshouse.proofs.check_proof import Definitions, Fact, Kinds, Published, Refused
from glasshouse.proofs.contradiction import shown_contradiction
from glasshouse.proofs.count import shown_count
from glasshouse.proofs.definitions import boxed
from glasshouse.proofs.overlap import pruned
from glasshouse.proofs.space import space_of
from glasshouse.scenarios.counting import read_count
from glasshouse.scenarios.load import Scenario

TOGETHER = 40  # places of an area that are looked at together
MOST_KINDS = 100_000  # of record, in all places of a contradiction
Where = tuple[tuple[tuple[str, str], ...], ...]  # boxes of levels


@dataclass(frozen=True)
class Count:
    """What a result says of a count in a place: its least and its most (UNLIMITED: no limit), and the proof of it."""

    name: str
    where: Where
    low: int | None  # None: nothing to be shown on this side
    high: int | None
    proof: str
    wide: bool = False  # the numbers of the area around are needed, or it is about the area


@dataclass(frozen=True)
class Counting(Job):
    """What all units share of a run of prove on bounds or claims."""

    definitions: bytes = b""
    counts: Mapping[str, tuple[Count, ...]] = field(default_factory=dict)  # by place
    conflicts: tuple[str, ...] = ()  # places whose numbers cannot all be true

    @cached_property
    def defined(self) -> Definitions:
        return Definitions(self.definitions)

    @cached_property
    def kinds(self) -> Kinds:
        return Kinds(self.defined, (self.scenario.geography.place,))

    @cached_property
    def wide(self) -> Kinds | None:
        """The same with the numbers of the area around."""
        place, area = self.scenario.geography.place, self.area_level
        return None if area is None else Kinds(self.defined, (place, area))


def asked_counts(of: str, folder: Path, scenario: Scenario, facts: Collection[str]) -> dict[str, tuple[Count, ...]]:
    """What a result says of counts of single places: numbers that are known better than printed, or claims."""
    found: dict[str, list[Count]] = {}
    for place, count in _bounds(folder, scenario) if of == "bounds" else _claims(folder, scenario):
        low, high = count.low if LEAST in facts else None, count.high if MOST in facts else None
        if low is not None or high is not None:
            found.setdefault(place, []).append(replace(count, low=low, high=high))
    return {place: tuple(some) for place, some in found.items()}


def _where(scenario: Scenario, predicates: list[Predicate]) -> Where:
    return tuple(tuple(boxed(scenario.schema, one).items()) for one in predicates if not one.empty)


def _bounds(folder: Path, scenario: Scenario) -> Iterator[tuple[str, Count]]:
    geography = scenario.geography
    lines = {line.variable: (table, line) for table in scenario.tables for line in table.lines}
    frame = pl.read_parquet(folder / "bounds.parquet")
    frame = frame.filter(pl.col("level").is_in([one for one in geography.levels if geography.within_unit(one)]))
    columns = "geoid", "table", "variable", "lower", "upper", "low", "high", "proof", "scope"
    for code, table, name, lower, upper, low, high, proof, scope in frame.select(columns).iter_rows():
        predicates = [read_count(scenario.schema, name)] if table == ASKED else counted(*lines[name])
        least = low if low > max(lower or 0, 0) or (low == high and low > 0) else None
        most = high if high is not None and (upper is None or high < upper or low == high) else None
        label = name if table != ASKED else f"count-{abs(hash_of(name)) % 10**8:08d}"
        if least is not None or most is not None:
            yield code, Count(label, _where(scenario, predicates), least, most, proof, scope != geography.place)


def hash_of(text: str) -> int:
    """A number for a text, the same in every run."""
    import hashlib

    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big")


def _claims(folder: Path, scenario: Scenario) -> Iterator[tuple[str, Count]]:
    place, schema = scenario.geography.place, scenario.schema
    levels = {one.name: {code_of(one, level): level for level in range(len(one))} for one in schema.attributes}
    frame = pl.read_parquet(folder / "claims.parquet").with_row_index("number")
    columns = place, "number", "columns", "values", "low", "high", "proof"
    for code, number, names, values, low, high, proof in frame.select(columns).iter_rows():
        sets = {name: [levels[name][one] for one in parted(text)] for name, text in zip(names, values, strict=True)}
        where = _where(scenario, [schema.where(sets)])
        high = None if high is None or high >= UNLIMITED else high
        yield code, Count(f"claim-{number}", where, low if low > 0 else None, high, proof)


def conflicts_of(folder: Path, scenario: Scenario) -> tuple[str, ...]:
    """The places and areas whose numbers cannot all be true, as bounds says."""
    path, geography = folder / "conflicts.parquet", scenario.geography
    if not path.is_file():
        return ()
    levels = [one for one in geography.levels if geography.within_unit(one)]
    return tuple(pl.read_parquet(path).filter(pl.col("level").is_in(levels))["geoid"].to_list())


def prove_counts(job: Counting, item: Item) -> Done:
    """One unit: certificates of the counts of its places, and of its areas, a file for each side."""
    published = held(job.defined, item.unit, job.area_level)
    rows: list[tuple[object, ...]] = []
    areas = () if item.unit.areas is None else item.unit.areas.places
    for code in (*item.unit.counts.places, *areas):
        if code in job.conflicts:
            reached, text = _contradiction(job, published, code)
            file = f"{code}-contradiction.vipr" if text else ""
            rows.append((item.code, code, CONTRADICTION, file, 0, reached, "exact", 0, text))
        shown: dict[tuple[Where, str, int], tuple[str, int]] = {}  # claims in other words may be the same count
        for count in job.counts.get(code, ()):
            for side, bound in ((LEAST, count.low), (MOST, count.high)):
                if bound is None or bound >= UNLIMITED:
                    continue
                key = count.where, side, bound
                text = ""
                if key not in shown:
                    reached, text = _shown(job, published, code, count, side, bound)
                    shown[key] = (f"{code}-{count.name}-{side}.vipr" if text else "", reached)
                file, reached = shown[key]
                fact = f"{count.name} {side}"
                rows.append((item.code, code, fact, file, bound, reached, count.proof, 0, text))
    frame = pl.DataFrame(rows, schema=CERTIFICATES, orient="row")
    return Done({"certificates": frame}, {"places": int(item.unit.named.sum())})


def _shown(job: Counting, published: Published, code: str, count: Count, side: str, bound: int) -> tuple[int, str]:
    """The bound that is shown, and the text: of the place alone, or with all places of the area around."""
    place = job.scenario.geography.place
    tries: list[tuple[Kinds, dict[str, object]]] = []
    alone = len(published.inside.get((place, code), ())) == 1
    if alone:
        tries.append((job.kinds, {"places": [code], "levels": [place]}))
    if job.wide is not None and job.area_level is not None and count.wide:
        area = job.defined.area(code, job.area_level) if alone else code
        inside = sorted(published.inside.get((job.area_level, area), ()))
        within = {"within": [code]} if alone else {}
        if inside and len(inside) <= TOGETHER:
            tries.append((job.wide, {"places": inside, "levels": [place, job.area_level], **within}))
    best: tuple[int, str] = (-1, "")
    for kinds, about in tries if count.where else ():
        said = {"fact": side, **about, "where": [dict(one) for one in count.where], "bound": bound}
        fact = Fact(json.dumps(said), job.defined)
        try:
            found = shown_count(space_of(fact, published, kinds), bound)
            if found is None:
                continue
            derived, reached = found
            if best[1] and (reached <= best[0] if side == LEAST else reached >= best[0]):
                continue
            pruned(derived)
            said |= {"bound": reached}
            best = reached, text_of(said, (), published, kinds, derived)
        except Refused:  # it is beyond the checker's limits
            continue
        if reached == bound:
            break
    return best


@within_limits((-1, ""))
def _contradiction(job: Counting, published: Published, code: str) -> tuple[int, str]:
    """Why nothing fits the numbers of a place; of an area: those of its places and its own."""
    place, kinds = job.scenario.geography.place, job.kinds
    places, levels = [code], [place]
    if (place, code) not in published.inside:
        if job.wide is None or job.area_level is None:
            return -1, ""
        places, levels, kinds = (
            sorted(published.inside.get((job.area_level, code), ())),
            [place, job.area_level],
            job.wide,
        )
    if not places or len(places) * len(kinds.alive(0)) > MOST_KINDS:
        return -1, ""
    said = {"fact": "contradiction", "places": places, "levels": levels}
    fact = Fact(json.dumps(said), job.defined)
    found = shown_contradiction(space_of(fact, published, kinds))
    if found is None:
        return -1, ""
    pruned(found.derived)
    return 0, text_of(said, found.witnesses, published, kinds, found.derived)
