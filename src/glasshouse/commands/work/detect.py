"""The job behind `glasshouse detect`: what two agencies say of the blocks of one unit, as rows of its files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.assess.occupancy import ALL, ALONE, DETECTED, LIKELY, SAMPLING, Ranking, alone, counted, ranked
from glasshouse.attack.occupancy.bundles import Bundles, bundle
from glasshouse.attack.occupancy.detect import Answer, Found, detect, explain
from glasshouse.attack.occupancy.kinds import Block, Kinds, every_kind, in_faces, key_values
from glasshouse.attack.occupancy.likely import NAT, Likely, Sample, likely
from glasshouse.attack.occupancy.noisy import least_error
from glasshouse.attack.occupancy.sampled import sample_of
from glasshouse.attack.occupancy.statements import LeftOut, Property, readings_of
from glasshouse.attack.occupancy.unlike import unlike
from glasshouse.commands.work.questions import AboutOccupancy
from glasshouse.commands.work.reconstruct import where
from glasshouse.engine.job import Done, Item, Job
from glasshouse.errors import GlasshouseBug
from glasshouse.files.output import Columns
from glasshouse.files.properties import PropertyFile
from glasshouse.files.records import level_matrix
from glasshouse.files.sample import StateSample
from glasshouse.files.units import Stream
from glasshouse.model.records import UNLIMITED, Codes, Index, Interval, satisfies
from glasshouse.model.release import Counts
from glasshouse.scenarios.load import Scenario
from glasshouse.scenarios.occupancy import Key, Model, Occupancy

QUESTION = "detect"
Truth = tuple[Index, Codes]  # of each true household the row of its block, and its levels


@dataclass(frozen=True)
class Housed(Item):
    """A unit, and the true households of its blocks, if they are known."""

    truth: Truth | None = None


@dataclass(frozen=True)
class Enquiry(Job):
    """What all units share: what is asked, and what is known besides the tables."""

    asked: AboutOccupancy
    properties: Mapping[str, tuple[Property, ...]]  # by place
    samples: Mapping[str, StateSample]  # by coarsest area
    rankings: Mapping[tuple[str, str], Ranking]  # what a strong attacker knows, by coarsest area and key

    @property
    def occupancy(self) -> Occupancy:
        if self.scenario.occupancy is None:
            raise GlasshouseBug("a job of occupancy needs a scenario with a section of that name")
        return self.scenario.occupancy

    @cached_property
    def model(self) -> Model:
        return self.occupancy.model(self.asked.model)

    @cached_property
    def kinds(self) -> Kinds:
        return in_faces(self.occupancy, self.model, self.scenario.schema)

    @cached_property
    def bundles(self) -> Bundles:
        return bundle(self.kinds)

    @cached_property
    def every(self) -> Kinds:
        return every_kind(self.occupancy, self.model, self.scenario.schema)

    @cached_property
    def _sampled(self) -> dict[str, Sample]:
        return {}

    def sample(self, place: str) -> Sample | None:
        """The kinds of the coarsest area that a place lies in; None where the sample has nobody of it."""
        area = self.coarse(place)
        if area not in self.samples:
            return None
        if area not in self._sampled:
            found, _ = sample_of(self.occupancy, self.model, self.scenario.schema, self.samples[area])
            self._sampled[area] = found
        return self._sampled[area]

    def coarse(self, place: str) -> str:
        """The code of the coarsest area that a place lies in."""
        return self.scenario.geography.code(place, self.scenario.geography.coarsest)


def properties_by_block(file: PropertyFile) -> dict[str, tuple[Property, ...]]:
    """What is published of the properties of each block."""
    found: dict[str, list[Property]] = {}
    frame, decimals = file.frame, {name: digits for name, digits in file.decimals.items() if digits}
    columns = [name for name in frame.columns if name not in ("property_id", "block", "number_reported")]
    for row in frame.iter_rows(named=True):
        known = {name: row[name] for name in columns}
        found.setdefault(row["block"], []).append(Property(row["number_reported"], known, decimals))
    return {block: tuple(some) for block, some in sorted(found.items())}


def schemas(scenario: Scenario, asked: AboutOccupancy) -> dict[str, pl.Schema]:
    """The columns of the data files."""
    place: Columns = {scenario.geography.place: pl.String}
    unit: Columns = {scenario.geography.unit: pl.String}
    places: Columns = place | unit | {
        "model": pl.String, "households": pl.Int64, "subsidised": pl.Int64, "properties": pl.Int64,
        "answer": pl.String, "violations_low": pl.Int64, "violations_high": pl.Int64, "low_met": pl.Boolean,
        "high_met": pl.Boolean, "proof": pl.String,
    }  # fmt: skip
    if asked.solvar:
        for name in _measures(scenario):
            places |= {name: pl.Float64, f"{name}_upper": pl.Float64, f"{name}_proof": pl.String}
    if asked.groups:
        places["rebuilt_violations"] = pl.Int64
        places |= {f"{name}_{who}": pl.Int64 for name in _measures(scenario)[:-1] for who in ALONE}
    if asked.nearest:
        places |= {"nearest_error": pl.Int64, "nearest_violations": pl.Int64, "nearest_proof": pl.String}
    if asked.solutions:
        places |= {"solutions": pl.Int64, "tied": pl.Boolean, "likely_violations": pl.Float64,
                   "solutions_proof": pl.String}  # fmt: skip
    if asked.truth:
        places["violations_true"] = pl.Int64
    found: dict[str, Columns] = {"places": places, "left-out": place | {"reason": pl.String}}
    if asked.why:
        found["reasons"] = place | {
            "because": pl.String, "numbers": pl.List(pl.String), "lower": pl.List(pl.Int64),
            "upper": pl.List(pl.Int64), "proof": pl.String, "minimal": pl.Boolean,
        }  # fmt: skip
    if asked.solutions:
        columns = {a.name: pl.Int16 for a in scenario.schema.attributes if not a.numbers}
        members = dict.fromkeys(_occupancy(scenario).members, pl.Int16)
        found["solutions"] = place | {"solution": pl.Int32, "cost": pl.Float64, **members, **columns,
                                      "households": pl.Int64, "violation": pl.Boolean}  # fmt: skip
        found["ranking"] = place | {
            "key": pl.String, "rank": pl.Int32, "columns": pl.List(pl.String), "values": pl.List(pl.Int64),
            "frequency": pl.Float64,
        }  # fmt: skip
    if asked.truth:
        found["matches"] = place | {"key": pl.String, "attacker": pl.String, "blocks": pl.String, "rank": pl.Int32,
                                    "households": pl.Int64, "violations": pl.Int64, "unique": pl.Int64,
                                    "unique_violations": pl.Int64, "frequency": pl.Float64}  # fmt: skip
    return {name: pl.Schema(columns) for name, columns in found.items()}


def _occupancy(scenario: Scenario) -> Occupancy:
    assert scenario.occupancy is not None  # the command has refused others
    return scenario.occupancy


def _measures(scenario: Scenario) -> list[str]:
    return ["solvar", *(f"solvar_{name}" for name in _occupancy(scenario).measures), "solvar_violations"]


def examine(job: Enquiry, item: Housed) -> Done:
    """One unit: every block with a property, and what was asked of it."""
    page = _Page(job, item)
    for row, code in enumerate(item.unit.counts.places):
        if code in job.properties:
            page.add(row, code)
    frames = {
        name: pl.DataFrame(page.rows[name], schema=schema, orient="row")
        for name, schema in schemas(job.scenario, job.asked).items()
    }
    answers = frames["places"]["answer"].value_counts()
    told = dict(zip(answers["answer"].to_list(), answers["count"].to_list(), strict=True))
    notes = {"blocks": frames["places"].height, **told, "left_out": frames["left-out"].height,
             "undecided": int((frames["places"]["proof"] == "undecided").sum()), "untrue": page.untrue,
             "not_in_sample": page.not_in_sample, "no_sample": page.no_sample}  # fmt: skip
    return Done(frames, notes, page.clock)


class _Page:
    """The rows of one unit's files."""

    def __init__(self, job: Enquiry, item: Housed) -> None:
        self.job, self.item = job, item
        self.rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in schemas(job.scenario, job.asked)}
        self.untrue = self.not_in_sample = self.no_sample = 0
        self.clock = False

    def add(self, row: int, code: str) -> None:
        """One block: asked, explained, rebuilt, matched."""
        job = self.job
        known = job.properties[code]
        census = _census(job.scenario, self.item.unit.counts, row)
        readings = readings_of(job.occupancy, job.model, code, census, known)
        if isinstance(readings, LeftOut):
            self.rows["left-out"].append((readings.code, readings.reason))
            return
        block = readings[0]  # households, and the subsidised among them, are the same in all
        found = detect(job.bundles, readings, job.ladder)
        self.clock |= found.clock
        fits = found.answer != Answer.CONTRADICTION  # of nothing, nothing can be said
        ends = (found.low, found.high, found.low_met, found.high_met) if fits else (None,) * 4
        told: list[Any] = [
            *where(code, self.item.code, job.scenario.geography), job.model.name, block.households,
            block.subsidised, len(known), found.answer.value, *ends, str(found.proof),
        ]  # fmt: skip
        if found.answer == Answer.CERTAIN and job.asked.why:
            self._explain(readings)
        rebuilt = self._rebuild(readings, found)
        if job.asked.solvar:
            told += self._vary(readings, rebuilt)
        if job.asked.groups:
            told += self._alone(block, rebuilt)
        if job.asked.nearest:
            told += self._nearest(readings, found)
        if not self._wanted(found):
            rebuilt = None  # it was for the variability alone
        if job.asked.solutions:
            told += self._list(block, rebuilt)
        if job.asked.truth:
            told.append(self._match(row, block, found, rebuilt))
        self.rows["places"].append(tuple(told))

    def _explain(self, readings: Sequence[Block]) -> None:
        reason = explain(self.job.bundles, readings, self.job.ladder)
        if reason is None:
            return
        kinds, occupancy, block = self.job.kinds, self.job.occupancy, readings[0]
        ends = [zip(*(end[~kinds.present].tolist() for end in (one.lower, one.upper)), strict=True) for one in readings]
        numbers: list[tuple[str, str, Sequence[tuple[int, int]]]] = [
            (occupancy.households, "households", [(block.households, block.households)]),
            (occupancy.reported, "subsidised households", [(block.subsidised, block.subsidised)]),
            *((statement.name, statement.label, some) for statement, *some in zip(kinds.named, *ends, strict=True)),
        ]
        chosen = [numbers[row] for row in reason.rows]
        said = [f"{label}: {' or '.join(dict.fromkeys(_told(*end) for end in some))} ({name})"
                for name, label, some in chosen]  # fmt: skip
        lower = [min(low for low, _ in some) for *_, some in chosen]
        upper = [max(high for _, high in some) for *_, some in chosen]
        self.rows["reasons"].append(
            (block.code, f"Because of {'; '.join(said)}.", [name for name, *_ in chosen], lower,
             [None if high >= UNLIMITED else high for high in upper], str(reason.proof), reason.minimal)
        )  # fmt: skip

    def _rebuild(self, readings: Sequence[Block], found: Found) -> Likely | None:
        """The most likely data sets, for blocks where they are asked for."""
        asked, block = self.job.asked, readings[0]
        t = max(self._wanted(found), 1 if asked.solvar else 0)
        sample = self.job.sample(block.code)
        if not t or found.answer == Answer.CONTRADICTION:
            return None
        if sample is None:
            self.no_sample += 1
            return None
        rng = self.job.generator(block.code, QUESTION)
        rebuilt = likely(sample, readings, t, rng, self.job.ladder, fewest=asked.ties == "fewest")
        self.clock |= rebuilt.clock
        self.not_in_sample += not len(rebuilt.x)
        return rebuilt if len(rebuilt.x) else None

    def _wanted(self, found: Found) -> int:
        """How many data sets of a block are listed."""
        asked = self.job.asked
        return asked.solutions if asked.everywhere or found.answer == Answer.CERTAIN else 0

    def _vary(self, readings: Sequence[Block], rebuilt: Likely | None) -> list[Any]:
        """How different other data sets can be from the most likely one: all that fit, of whatever kinds.

        Of all who may be present, data sets with everybody in every household are enough, unless the most likely one
        has such a household and it is asked who is present: then the answer is a bound.
        """
        names = _measures(self.job.scenario)
        sample = self.job.sample(readings[0].code)
        if rebuilt is None or sample is None:
            return [None] * (3 * len(names))
        used = rebuilt.x[0] > 0
        counts = rebuilt.x[0][used]
        kinds, start, everybody = sample.kinds, rebuilt.kinds[used], False
        if self.job.asked.among == "all":
            kinds, start = self.job.every.and_these(sample.kinds, rebuilt.kinds[used])
            everybody = bool(self.job.model.present) and bool((start < len(self.job.every)).any())
        told: list[Any] = []
        for name in names:
            key, breaking = self.job.occupancy.measures.get(name.removeprefix("solvar_")), name.endswith("violations")
            far = unlike(kinds, readings, start, counts, self.job.ladder, key=key, breaking=breaking)
            if key is None and everybody:
                own = int(counts[kinds.breaks[start]].sum()) if breaking else far.households
                far = far.or_more(own + (readings[0].subsidised if breaking else far.households))
            self.clock |= far.clock
            told += [far.share, far.share_most, str(far.proof)]
        return told

    def _alone(self, block: Block, rebuilt: Likely | None) -> list[Any]:
        """Of the most likely data set: who breaks the rule, and who is alone with the attributes of each measure."""
        names, sample = _measures(self.job.scenario)[:-1], self.job.sample(block.code)
        if rebuilt is None or sample is None:
            return [None] * (1 + len(ALONE) * len(names))
        used = rebuilt.x[0] > 0
        kinds, counts = rebuilt.kinds[used], rebuilt.x[0][used]
        codes, broken = sample.kinds.codes[kinds], sample.kinds.breaks[kinds]
        within = satisfies(self.job.scenario.schema, codes, self.job.occupancy.subsidised)
        told: list[Any] = [int(counts[broken].sum())]
        for name in names:
            key = self.job.occupancy.measures.get(name.removeprefix("solvar_"))
            group = kinds if key is None else sample.kinds.groups(key)[0][kinds]
            told += alone(group, counts, within, broken)
        return told

    def _nearest(self, readings: Sequence[Block], found: Found) -> list[Any]:
        """The closest data set to numbers that none fits (of others it is one that fits)."""
        if found.answer != Answer.CONTRADICTION:
            return [0, None, None]
        sample = self.job.sample(readings[0].code)
        near = (
            least_error(self.job.bundles, readings, self.job.ladder)
            if sample is None
            else least_error(sample.kinds, readings, self.job.ladder, cost=sample.cost, weight=NAT)
        )
        if near is None:
            return [None, None, None]
        self.clock |= near.clock
        return [near.error, near.violations, str(near.proof)]

    def _list(self, block: Block, rebuilt: Likely | None) -> list[Any]:
        """The data sets themselves, and the kinds of household that break the rule in them, by how often."""
        sample = self.job.sample(block.code)
        wanted = self.job.asked.solutions
        if rebuilt is None or sample is None:
            return [0, None, None, None]
        broken = sample.kinds.breaks[rebuilt.kinds]
        schema = self.job.scenario.schema
        attribute = next(one for one in schema.attributes if one.numbers)
        for number, x in enumerate(rebuilt.x[:wanted], 1):
            for at in np.flatnonzero(x):
                codes = sample.kinds.codes[rebuilt.kinds[at]]
                level = int(codes[schema.position[attribute.name]])
                members = [attribute.numbers[name][level] for name in self.job.occupancy.members]
                others = [int(codes[schema.position[a.name]]) for a in schema.attributes if not a.numbers]
                self.rows["solutions"].append(
                    (block.code, number, float(rebuilt.cost[number - 1]) / NAT, *members, *others, int(x[at]),
                     bool(broken[at]))
                )  # fmt: skip
        for name, ranking in self._ranked(rebuilt, sample).items():
            columns = list(self.job.occupancy.keys[name].columns)
            for rank, (values, often) in enumerate(zip(ranking.values, ranking.weight, strict=True), 1):
                frequency = float(often) / len(rebuilt.x[:wanted])
                self.rows["ranking"].append((block.code, name, rank, columns, values.tolist(), frequency))
        mean = float(rebuilt.x[:wanted, broken].sum() / max(len(rebuilt.x[:wanted]), 1))
        return [len(rebuilt.x[:wanted]), rebuilt.tied, mean, str(rebuilt.proof)]

    def _ranked(self, rebuilt: Likely, sample: Sample) -> dict[str, Ranking]:
        """By key: what violating households look like in the data sets, the most frequent first."""
        wanted = self.job.asked.solutions
        broken = sample.kinds.breaks[rebuilt.kinds]
        codes = sample.kinds.codes[rebuilt.kinds[broken]]
        weight = rebuilt.x[:wanted, broken].sum(axis=0)  # whole numbers: equal ones are equal
        schema = self.job.scenario.schema
        return {name: ranked(key_values(schema, codes, key), weight) for name, key in self.job.occupancy.keys.items()}

    def _match(self, row: int, block: Block, found: Found, rebuilt: Likely | None) -> int:
        """Who of the true households would be matched by each attacker; how many truly break the rule."""
        job = self.job
        assert self.item.truth is not None
        place, every = self.item.truth
        codes = every[place == row]
        broken = breaking(job.occupancy, job.scenario, codes)
        violations = int(broken.sum())
        certain = found.answer == Answer.CERTAIN
        self.untrue += certain and violations == 0
        sample = job.sample(block.code)
        likely_ones = self._ranked(rebuilt, sample) if rebuilt and sample and job.asked.solutions else {}
        for name, key in job.occupancy.keys.items():
            open_to = _may_break(job.occupancy, job.scenario, codes, key)
            values = key_values(job.scenario.schema, codes[open_to], key)
            attackers = {SAMPLING: job.rankings.get((job.coarse(block.code), name)), LIKELY: likely_ones.get(name)}
            for attacker, ranking in attackers.items():
                where = DETECTED if certain else ALL
                sets = len(rebuilt.x[: job.asked.solutions]) if attacker == LIKELY and rebuilt else 1
                for line in counted(values, broken[open_to], ranking, sets):
                    self.rows["matches"].append((block.code, name, attacker, where, *line))
        return violations


def _told(low: int, high: int) -> str:
    if low == high:
        return f"{low:,}"
    return f"at least {low:,}" if high >= UNLIMITED else f"{low:,} to {high:,}"


def breaking(occupancy: Occupancy, scenario: Scenario, codes: Codes) -> NDArray[np.bool_]:
    """Which households break the rule."""
    found = np.zeros(len(codes), np.bool_)
    for predicate in occupancy.breaks:
        found |= satisfies(scenario.schema, codes, predicate)
    return found


def _may_break(occupancy: Occupancy, scenario: Scenario, codes: Codes, key: Key) -> NDArray[np.bool_]:
    """Whom an attacker with this key looks at: where it tells who is subsidised, nobody else."""
    found = np.ones(len(codes), np.bool_)
    for part in key.parts:
        if isinstance(part, tuple) and all(broken <= part[1] for broken in occupancy.breaks):
            found &= satisfies(scenario.schema, codes, part[1])
    return found


def _census(scenario: Scenario, counts: Counts, row: int) -> dict[str, Interval]:
    """The numbers of a block; totals that the file leaves out are added up from their parts."""
    found = {
        variable: Interval(int(counts.lower[row, at]), int(counts.upper[row, at]))
        for at, variable in enumerate(counts.variables)
    }
    for table in scenario.tables:
        for line in table.subtotals:
            parts = [found.get(leaf.variable) for leaf in table.leaves_of(line)]
            known = [part for part in parts if part is not None]
            if line.variable not in found and len(known) == len(parts):
                upper = min(sum(part.upper for part in known), UNLIMITED)
                found[line.variable] = Interval(sum(part.lower for part in known), upper)
    return found


def with_truth(items: Iterator[Item], scenario: Scenario, truth: Stream | None) -> Iterator[Housed]:
    """Units with the true households of their blocks, in the order of their codes."""
    ahead = next(truth, None) if truth else None
    for item in items:
        one = Housed(item.code, item.unit)
        if truth is not None:
            while ahead is not None and ahead[0] < item.code:
                ahead = next(truth, None)
            places = pl.Series(item.unit.counts.places, dtype=pl.String)
            rows = np.empty(0, np.int32), np.empty((0, len(scenario.schema.attributes)), np.int16)
            if ahead is not None and ahead[0] == item.code:
                known = ahead[1].filter(pl.col("geoid").is_in(places.to_list())).sort("geoid", maintain_order=True)
                at = places.search_sorted(known["geoid"]).to_numpy().astype(np.int32)
                rows = at, np.ascontiguousarray(level_matrix(known, scenario.schema))
            one = replace(one, truth=rows)
        yield one
