"""The job behind `glasshouse prove` of detect: so many households must break the rule, reading by reading.

The second agency's file is told to the checker as it is printed (`second.csv`), with how each number follows from it;
each way in which it may be read is a level of its own, whose numbers are those of the place.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import polars as pl

from glasshouse.attack.occupancy.statements import Property, of_those_who_report
from glasshouse.commands.proving.chosen import CONTRADICTION, LEAST, MOST
from glasshouse.commands.proving.defining import Readings
from glasshouse.commands.proving.facts import CERTIFICATES, held
from glasshouse.engine.job import Done, Item, Job
from glasshouse.files.properties import PropertyFile
from glasshouse.model.schema import Schema
from glasshouse.proofs.certificate import text_of, within_limits
from glasshouse.proofs.check_proof import Definitions, Fact, Kinds, Published
from glasshouse.proofs.check_second import stated
from glasshouse.proofs.contradiction import met, shown_contradiction
from glasshouse.proofs.count import shown_count
from glasshouse.proofs.definitions import boxed
from glasshouse.proofs.overlap import pruned
from glasshouse.proofs.space import space_of
from glasshouse.scenarios.occupancy import Model, Occupancy, Sense, Statement

HOUSEHOLDS = "the shares are of the households that report"
ALL_UNITS = "the shares of units are of all units, some of them with nobody who reports"
THEIR_UNITS = "the shares of units are of the units of the households that report"
COVERED = (Sense.EXACTLY, Sense.AT_LEAST, Sense.WITHIN_ROUNDING, Sense.IN_ANY_UNITS)
Lines = Sequence[Mapping[str, str]]


class Detection(NamedTuple):
    """What detect says of a place: its answer, the least and the most households that break the rule, the proof."""

    answer: str
    low: int
    high: int
    proof: str


@dataclass(frozen=True)
class Housing(Job):
    """What all units share of a run of prove on detections."""

    definitions: bytes = b""
    lines: Mapping[str, Lines] = field(default_factory=dict)  # by place: what the second agency prints of it
    readings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by place: those that are possible
    said: Mapping[str, Detection] = field(default_factory=dict)
    broken: tuple[Mapping[str, str], ...] = ()  # the rule, as boxes; none: it has no certificates
    facts: frozenset[str] = frozenset()

    @cached_property
    def defined(self) -> Definitions:
        return Definitions(self.definitions)

    @cached_property
    def kinds(self) -> dict[str, Kinds]:
        place = self.scenario.geography.place
        return {reading: Kinds(self.defined, (place, reading)) for reading in self.defined.own - {place}}


def said_of_places(folder: Path, place: str) -> dict[str, Detection]:
    """What a result of detect says."""
    frame = pl.read_parquet(folder / "places.parquet")
    columns = place, "answer", "violations_low", "violations_high", "proof"
    return {
        code: Detection(answer, low or 0, high or 0, proof)
        for code, answer, low, high, proof in frame.select(columns).iter_rows()
    }


def is_covered(occupancy: Occupancy, model: Model) -> bool:
    """Does the checker know how the model reads each number, and does no household break the rule twice?"""
    known = all(one.sense in COVERED and (one.of_property or one.sense == Sense.EXACTLY) for one in model.statements)
    return known and not model.present and not any(a.meets(b) for a, b in combinations(occupancy.breaks, 2))


def readings_defined(schema: Schema, occupancy: Occupancy, model: Model) -> Readings:
    """The numbers that follow from what the second agency prints, for each way to read it."""
    if not any(one.units for one in model.statements):
        return {HOUSEHOLDS: _numbers(schema, occupancy, model, occupancy.reported)}
    of_units = {ALL_UNITS: occupancy.units, THEIR_UNITS: occupancy.reported}
    return {name: _numbers(schema, occupancy, model, column) for name, column in of_units.items()}


def _numbers(schema: Schema, occupancy: Occupancy, model: Model, units: str) -> dict[str, dict[str, object]]:
    subsidised = occupancy.subsidised
    found: dict[str, dict[str, object]] = {
        occupancy.reported: {
            "table": "second", "says": "households that report", "counts": [boxed(schema, subsidised)],
            "second": {"of": occupancy.reported},
        }
    }  # fmt: skip
    for one in model.statements:
        if one.of_property:
            counts = [boxed(schema, both) for said in one.adds if not (both := said & subsidised).empty]
            how = _followed(occupancy, one, units)
            found[one.name] = {"table": "second", "says": one.label, "counts": counts, "second": how}
    return found


def _followed(occupancy: Occupancy, one: Statement, units: str) -> dict[str, object]:
    """How a number follows from the lines of a place."""
    if one.units:
        whole = list(occupancy.sizes_of_units(one))
        return {"of": units, "who": occupancy.reported, "shares": list(one.columns), "whole": whole}
    if one.share:
        return {"of": occupancy.reported, "shares": list(one.columns)}
    return {"of": one.columns[0]} | ({"least": True} if one.sense == Sense.AT_LEAST else {})


def readings_of_places(
    occupancy: Occupancy, model: Model, properties: Mapping[str, Sequence[Property]]
) -> dict[str, tuple[str, ...]]:
    """Which readings are possible: decimals may show what percentages are of."""
    if not any(one.units for one in model.statements):
        return dict.fromkeys(properties, (HOUSEHOLDS,))
    return {
        place: (THEIR_UNITS,) if of_those_who_report(model, some, occupancy) else (ALL_UNITS, THEIR_UNITS)
        for place, some in properties.items()
    }


def lines_of(file: PropertyFile, occupancy: Occupancy, model: Model) -> dict[str, list[dict[str, str]]]:
    """What the second agency prints of each place, a line a property, with the decimals of its columns."""
    said = [one for one in model.statements if one.of_property]
    sizes = [column for one in said if one.units for column in (occupancy.units, *occupancy.sizes_of_units(one))]
    columns = dict.fromkeys([occupancy.reported, *sizes, *(column for one in said for column in one.columns)])
    return file.printed(columns)


def second_file(lines: Mapping[str, Lines], places: Collection[str]) -> bytes:
    """What is printed of some places, as the checker reads it."""
    some = [line for place in sorted(places) for line in lines.get(place, ())]
    told = [list(some[0]), *([*line.values()] for line in some)] if some else [["place"]]
    return "".join(",".join(line) + "\n" for line in told).encode()


def prove_housing(job: Housing, item: Item) -> Done:
    """One unit: certificates of what is said of each of its places, under each reading."""
    published = held(job.defined, item.unit, None)
    rows = [
        (item.code, code, *fact)
        for code in item.unit.counts.places
        if code in job.said
        for reading in (job.readings[code] if job.broken else ("",))
        for fact in _facts(job, published, code, reading)
    ]
    frame = pl.DataFrame(rows, schema=CERTIFICATES, orient="row")
    return Done({"certificates": frame}, {"places": sum(code in job.said for code in item.unit.counts.places)})


def _facts(
    job: Housing, published: Published, code: str, reading: str
) -> Iterator[tuple[str, str, int, int, str, int, str]]:
    """The facts of a place under a reading: the least, the most, or that nothing fits."""
    said = job.said[code]
    wanted = {LEAST: said.low, MOST: said.high} if said.answer != CONTRADICTION else {CONTRADICTION: 0}
    for kind, bound in wanted.items():
        if kind not in job.facts or (kind == LEAST and not bound):
            continue
        reached, text = _shown(job, published, code, reading, kind, bound) if reading else (-1, "")
        name = CONTRADICTION if kind == CONTRADICTION else f"violations {kind}"
        number = 1 + job.readings[code].index(reading) if reading else 1
        file = f"{code}-{name.replace(' ', '-')}-{number}.vipr" if text else ""
        yield name, file, bound, reached, said.proof, 0, text


@within_limits((-1, ""))
def _shown(job: Housing, published: Published, code: str, reading: str, kind: str, bound: int) -> tuple[int, str]:
    """The bound that is shown, and the text."""
    place, kinds = job.scenario.geography.place, job.kinds[reading]
    values = {
        (level, code, name): stated(how, job.lines[code])
        for (level, name), how in job.defined.second.items() if level == reading
    }  # fmt: skip
    inside = published.inside | {(reading, code): {code}}
    numbers = published._replace(values=published.values | values, inside=inside)
    said: dict[str, object] = {"fact": kind, "places": [code], "levels": [place, reading]}
    if kind == CONTRADICTION:
        refuted = shown_contradiction(space_of(Fact(json.dumps(said), job.defined), numbers, kinds))
        if refuted is None:
            return -1, ""
        derived, reached, witnesses = refuted.derived, 0, refuted.witnesses
    else:
        said |= {"where": [dict(one) for one in job.broken], "bound": bound}
        space = space_of(Fact(json.dumps(said), job.defined), numbers, kinds)
        found = shown_count(space, bound)
        if found is None:
            return -1, ""
        derived, reached = found
        witnesses = met(space, reached)
        said |= {"bound": reached}
    pruned(derived)
    return reached, text_of(said, witnesses, numbers, kinds, derived)
