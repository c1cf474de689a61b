"""The job behind `glasshouse bounds`: what every number of a unit can be, level by level, and what gives it away."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from glasshouse.assess.hidden import ASKED, NARROW, VERDICTS, Rule, alike, given_away, present
from glasshouse.attack.bounds import NOTHING, Bounder, LevelBounds, UnitBounds
from glasshouse.attack.nesting import only_places
from glasshouse.attack.published import Published
from glasshouse.engine.job import Done, Job
from glasshouse.errors import InputError
from glasshouse.files.tables import TableFile
from glasshouse.model.geography import Geography, plural
from glasshouse.model.identities import Finding
from glasshouse.model.records import UNLIMITED, Count
from glasshouse.model.release import Counts, Line, Release, Table, counted
from glasshouse.model.schema import Predicate
from glasshouse.program.integer import Proof
from glasshouse.program.ladder import ORDER
from glasshouse.scenarios.load import Scenario

Flags = NDArray[np.bool_]

_BOUNDS = pl.Schema({
    "level": pl.String, "geoid": pl.String, "table": pl.String, "variable": pl.String, "description": pl.String,
    "lower": pl.Int64, "upper": pl.Int64, "low": pl.Int64, "high": pl.Int64, "met_low": pl.Int64, "met_high": pl.Int64,
    "verdict": pl.String, "present": pl.Boolean, "alike": pl.Boolean, "proof": pl.String, "scope": pl.String,
})  # fmt: skip
_REASONS = pl.Schema({
    "level": pl.String, "geoid": pl.String, "variable": pl.String, "number": pl.Int64, "reason_level": pl.String,
    "reason_geoid": pl.String, "reason_variable": pl.String, "reason_description": pl.String, "lower": pl.Int64,
    "upper": pl.Int64, "minimal": pl.Boolean, "proof": pl.String,
})  # fmt: skip
_CONFLICTS = pl.Schema({
    "level": pl.String, "geoid": pl.String, "statement": pl.String, "nearest": pl.Int64, "nearest_proof": pl.String,
    "changes": pl.String,
})  # fmt: skip
PRINTED = pl.Schema({
    "level": pl.String, "geoid": pl.String, "variable": pl.String, "lower": pl.Int64, "upper": pl.Int64,
})  # fmt: skip
NAMED = 8  # numbers of nearest data that are named


def schemas(why: int) -> dict[str, pl.Schema]:
    """The columns of the data files."""
    return {"bounds": _BOUNDS, "conflicts": _CONFLICTS} | ({"reasons": _REASONS} if why else {})


class Described(NamedTuple):
    """A number in words: its table, what it counts, whether that can be anybody, and the other parts of its group."""

    table: str
    description: str
    possible: bool
    others: tuple[str, ...] = ()


@dataclass(frozen=True)
class Levels:
    """One unit: its code, and its numbers by level."""

    code: str
    levels: Mapping[str, Counts]

    @property
    def places(self) -> int:
        return len(list(self.levels.values())[-1].places) if self.levels else 0


@dataclass(frozen=True)
class Bounding(Job):
    """What all units share of a run of bounds."""

    whole: bool = True  # every place is in the file
    asked: Mapping[str, Predicate] = field(default_factory=dict)  # further counts, by what was typed
    every: bool = False  # numbers that are printed exactly, or not at all, are told, too
    rule: Rule = Rule()  # noqa: RUF009  # frozen
    told: str | None = None  # the only level that is told
    why: int = 0  # numbers of a unit that are explained

    @cached_property
    def bounder(self) -> Bounder:
        scenario = self.scenario
        return Bounder(
            scenario.schema, scenario.tables, scenario.geography, asked=self.asked, everything=self.every,
            whole=self.whole,
        )  # fmt: skip

    @cached_property
    def described(self) -> dict[str, Described]:
        """Every number in words, in the order of the tables; what was asked for last."""
        found = {line.variable: one for table in self.scenario.tables for line, one in described(self.scenario, table)}
        wording, schema = self.scenario.wording, self.scenario.schema
        return found | {
            name: Described(ASKED, wording.said(schema, predicate), not schema.covered(predicate, ()))
            for name, predicate in self.asked.items()
        }

    @cached_property
    def position(self) -> dict[str, int]:
        return {variable: at for at, variable in enumerate(self.described)}


def described(scenario: Scenario, table: Table) -> Iterator[tuple[Line, Described]]:
    """The lines of a table in words.

    What a line counts that cannot be anybody (a structural zero) is known without any table. Parts of a group that
    cannot be anybody are no others: that all are in what is left is known, too.
    """
    schema = scenario.schema
    possible = {
        line.number: any(not one.empty and not schema.covered(one, ()) for one in counted(table, line))
        for line in table.lines
    }
    others: dict[int, tuple[str, ...]] = {}
    for whole in table.subtotals:
        if whole.predicate is not None:  # parts of a tally overlap
            parts = [part for part in whole.parts if possible[part]]
            others |= {part: tuple(table.line(one).variable for one in parts if one != part) for part in parts}
    for line in table.lines:
        yield (
            line,
            Described(table.name, scenario.said(table, line), possible[line.number], others.get(line.number, ())),
        )


def above(geography: Geography) -> str:
    """The code of the unit of work that has the areas larger than a unit; no unit of the file is called so."""
    return "above".ljust(geography.lengths[geography.unit] + 1, "x")


def open_levels(
    file: TableFile, releases: Iterator[Release], *, level: str | None, effort: float, seconds: float | None
) -> tuple[Job, Iterator[Levels], set[str]]:
    """What all units share, the units with all their levels, and their codes; larger areas are one more unit."""
    first = next(releases)
    scenario, geography = file.scenario, file.scenario.geography
    there = [at for at in geography.levels if any(at == seen for seen, _ in file.seen.variables)]
    if level is not None and geography.known(level) not in there:
        raise InputError(f"--level {level}: no number of a {level} in {file.path.name}; its levels: {', '.join(there)}")
    inside = [at for at in there if geography.within_unit(at)]
    around = inside[0] if len(inside) > 1 else None
    codes = set(file.seen.units) | ({above(geography)} if len(inside) < len(there) else set())

    def items() -> Iterator[Levels]:
        for release in chain([first], releases):
            within = [counts for at, counts in release.levels.items() if geography.within_unit(at) and counts.places]
            code = geography.code(within[0].places[0], geography.unit) if within else above(geography)
            ordered = sorted(release.levels, key=geography.levels.index)
            yield Levels(code, {at: release.levels[at] for at in ordered})

    published = Published(scenario.schema, scenario.tables, (), (), ())
    return Job(scenario, published, around, 1, effort, seconds), items(), codes


def bound(job: Bounding, item: Levels) -> Done:
    """One unit: what each of its numbers can be; where nothing fits, what contradicts; on request the reasons."""
    found = list(_asked(job, item))
    levels = tuple(one for unit in found for one in unit.levels)
    conflicts = _conflicts(job, item, found)
    wrong = set(conflicts.select("level", "geoid").iter_rows())
    told = [one for one in levels if job.told in (None, one.level)]
    rows = [_rows(job, item.levels[one.level], one, wrong) for one in told]
    bounds = pl.concat([pl.DataFrame(schema=_BOUNDS), *rows])
    frames = {"bounds": bounds, "conflicts": conflicts}
    if job.why:
        frames["reasons"] = _reasons(job, item, told, bounds)
    undecided = int((bounds["proof"] == str(Proof.UNDECIDED)).sum())
    counts = {"populated": bounds.height, "proved": bounds.height - undecided}
    counts |= {f"places {one.level}": len(one.places) for one in told}
    return Done(frames, counts, any(one.clock for one in levels))


def _asked(job: Bounding, item: Levels) -> Iterator[UnitBounds]:
    """The bounds of a unit; areas larger than a unit are asked level by level, each alone."""
    for levels in _together(job, item):
        yield job.bounder.bounds(levels, job.ladder)


def _together(job: Bounding, item: Levels) -> list[Mapping[str, Counts]]:
    """The levels that are asked about together."""
    inside = all(job.scenario.geography.within_unit(level) for level in item.levels)
    return [item.levels] if inside else [{level: counts} for level, counts in item.levels.items()]


def _rows(job: Bounding, counts: Counts, found: LevelBounds, wrong: Collection[tuple[str, str]]) -> pl.DataFrame:
    """A row for each number that is asked for, place by place, in the order of the tables; places may be left out."""
    columns = sorted(range(len(found.variables)), key=lambda at: job.position[found.variables[at]])
    names = [found.variables[at] for at in columns]
    words = [job.described[name] for name in names]
    lower, upper, low, high = (part[:, columns] for part in (found.lower, found.upper, found.low, found.high))
    printed = np.array([name in counts.column for name in names], np.bool_)
    new = np.array([name in job.asked for name in names], np.bool_)
    possible = np.array([one.possible for one in words], np.bool_)
    chosen = ((lower < upper) & printed) | job.every | new
    right = np.array([(found.level, place) not in wrong for place in found.places], np.bool_)
    chosen &= possible & right[:, None]
    place, number = np.nonzero(chosen)
    others = np.column_stack(
        [_most_of(counts, found, one.others) for one in words] or [np.empty((len(lower), 0), np.int64)]
    )
    met_low, met_high = (part[:, columns][chosen] for part in (found.met_low, found.met_high))
    rows = pl.DataFrame(
        {
            "level": pl.repeat(found.level, len(place), dtype=pl.String, eager=True),
            "geoid": _each(found.places, place),
            "table": _each([one.table for one in words], number),
            "variable": _each(names, number),
            "description": _each([one.description for one in words], number),
            "lower": _blank(lower[chosen], ~printed[number]),
            "upper": _blank(upper[chosen], ~printed[number] | (upper[chosen] >= UNLIMITED)),
            "low": low[chosen],
            "high": _blank(high[chosen], high[chosen] >= UNLIMITED),
            "met_low": _blank(met_low, met_low < 0),
            "met_high": _blank(met_high, (met_high < 0) | (met_high >= UNLIMITED)),
            "verdict": _each(VERDICTS, job.rule.verdicts(low, high)[chosen]),
            "present": present(lower, low)[chosen],
            "alike": alike(low, others)[chosen],
            "proof": _each([str(proof) for proof in ORDER], found.proof[:, columns][chosen]),
            "scope": _each(found.scope, place),
        }
    )
    return rows.match_to_schema(_BOUNDS)


def _each(values: Sequence[str], at: NDArray[np.integer]) -> pl.Series:
    return pl.Series(values, dtype=pl.String).gather(at.astype(np.int64))


def _blank(values: Count, where: Flags) -> pl.Series:
    """Numbers, some of them blank."""
    return pl.Series(values, dtype=pl.Int64).set(pl.Series(where), None)


def _most_of(counts: Counts, found: LevelBounds, others: Sequence[str]) -> NDArray[np.int64]:
    """The most that some numbers can be together, place by place; where nothing is known of one, there is no limit."""
    if not others:
        return np.full(len(found.places), UNLIMITED, np.int64)
    total = np.zeros(len(found.places), np.int64)
    column = {name: at for at, name in enumerate(found.variables)}
    for name in others:
        if name in column:
            total += found.high[:, column[name]]
        elif name in counts.column:
            row = [counts.row[place] for place in found.places]
            total += counts.upper[row, counts.column[name]]
        else:
            total += UNLIMITED
    return np.minimum(total, UNLIMITED)


def _conflicts(job: Bounding, item: Levels, found: Sequence[UnitBounds]) -> pl.DataFrame:
    """The places whose numbers nothing fits, with a statement that is broken and the nearest numbers that something
    fits; else what the levels say together."""
    rows: dict[tuple[str, str], tuple[str, int | None, str | None, str | None]] = {}
    for unit in found:
        for one in unit.levels:
            for at in np.flatnonzero(one.fits == NOTHING):
                place = one.places[at]
                statement = _statement(job, item.levels[one.level], place)
                rows[one.level, place] = statement, *_nearest(job, item.levels, one.level, place)
    if not rows and any(unit.fits == NOTHING for unit in found):
        unknown = None, None, None
        rows = {(one.level, one.geoid): (one.statement, *unknown) for one in reversed(_findings(job, item.levels))}
        if not rows:
            largest = next(iter(item.levels.values()))
            said = "no records fit its numbers together with those of all that lies in it (proved)"
            rows = {(largest.level, place): (said, *unknown) for place in largest.places}
    named = [(*place, *told) for place, told in sorted(rows.items())]
    return pl.DataFrame(named, schema=_CONFLICTS, orient="row")


def _nearest(
    job: Bounding, levels: Mapping[str, Counts], level: str, place: str
) -> tuple[int | None, str | None, str | None]:
    """By how little the numbers of a place must change in all so that something fits, the proof, and which change."""
    found = job.bounder.nearest(levels, level, place, job.ladder)
    if found is None:
        return None, None, None
    named = [f"{one.variable}: printed {_range(one.lower, one.upper)}, nearest {value:,}"
             for one, value in found.changes[:NAMED]]  # fmt: skip
    if len(found.changes) > NAMED:
        named.append(f"and {len(found.changes) - NAMED:,} more")
    return found.total, str(found.proof), "; ".join(named)


def _range(lower: int, upper: int) -> str:
    if upper >= UNLIMITED:
        return f"{lower:,} or more"
    return f"{lower:,}" if lower == upper else f"{lower:,} to {upper:,}"


def _statement(job: Bounding, counts: Counts, place: str) -> str:
    """Which numbers of a place contradict each other."""
    findings = _findings(job, {counts.level: only_places(counts, np.array([counts.row[place]]))})
    return findings[0].statement if findings else "no records fit its numbers (proved)"


def _findings(job: Bounding, levels: Mapping[str, Counts]) -> list[Finding]:
    return job.check.findings(Release(job.scenario.schema, job.scenario.tables, levels))


def _reasons(job: Bounding, item: Levels, told: Sequence[LevelBounds], bounds: pl.DataFrame) -> pl.DataFrame:
    """The published numbers that give away some of a unit's numbers: exact ones first, then narrow ones.

    Of these, first those of the table of which most is given away, in the place where most of it is: as on the page.
    """
    of_table, here = pl.len().over("table", "level"), pl.len().over("table", "level", "geoid")
    order = pl.col("verdict") == NARROW, -of_table.cast(pl.Int64), -here.cast(pl.Int64)
    known = bounds.filter(given_away(job.rule)).sort(*order, maintain_order=True)
    rows: list[tuple[object, ...]] = []
    by_level = {one.level: one for one in told}
    together = {level: levels for levels in _together(job, item) for level in levels}
    for level, place, variable in known.select("level", "geoid", "variable").head(job.why).iter_rows():
        found = job.bounder.why(together[level], by_level[level], place, variable, job.ladder)
        if found is None:
            continue
        for number, one in enumerate(found.numbers, 1):
            most = None if one.upper >= UNLIMITED else one.upper
            said = job.described[one.variable].description
            if one.place not in item.levels[one.level].row:  # the rest of an area (convention 61)
                said = f"{said}, in {plural(one.level)} that are not named"
            rows.append(
                (level, place, variable, number, one.level, one.place, one.variable, said, one.lower, most,
                 found.minimal, str(found.proof))
            )  # fmt: skip
    return pl.DataFrame(rows, schema=_REASONS, orient="row")


def printed_in(file: TableFile, places: Mapping[str, Collection[str]], assume: str) -> pl.DataFrame:
    """What was published of every number of some places, by level."""
    frames = [pl.DataFrame(schema=PRINTED)]
    for level, counts in file.some(places, assume=assume).levels.items() if places else ():
        row, column = np.indices(counts.lower.shape).reshape(2, -1)
        upper = counts.upper.reshape(-1)
        frame = pl.DataFrame(
            {"level": pl.repeat(level, len(row), dtype=pl.String, eager=True), "geoid": _each(counts.places, row),
             "variable": _each(counts.variables, column), "lower": counts.lower.reshape(-1),
             "upper": _blank(upper, upper >= UNLIMITED)}, schema=PRINTED
        )  # fmt: skip
        frames.append(frame.filter(pl.col("geoid").is_in(sorted(places[level]))))
    return pl.concat(frames)
