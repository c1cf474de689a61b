"""How useful are protected data still? Errors of counts and populations, and of three things people do with them.

The truth and the protected data are compared as tables; records are counted into the same tables first. What is said:

- **counts**: over the leaves of a table at a level, the sum of absolute errors (L1), the same relative to the sum of
  the true counts, the mean error of a number, the share of numbers that are not the true ones, the largest error;
- **populations**: how far the number of records of a place is off. A place whose true number is 0 has no error in
  percent and is counted apart;
- **shares**: how far the share of a group among the people of a unit (a tract) is off, in percentage points;
- **segregation**: the index of dissimilarity between a group and the rest, over places and over units within an area
  (the level above the unit), D = 1/2 sum |g/G - r/R|; several areas are averaged by their true people;
- **districts**: the whole file divided into equal ones on the protected counts: walking places in the order of their
  codes, borders lie where the sum so far is nearest to its due. Then the people of each are counted in the truth.

An interval is judged by its midpoint, one without an upper end by its lower end; neither counts as unchanged. The mean
width of those with two ends is given, and the share of those without. At a level coarser than a table's own, numbers
that were published there are judged, and sums of the places otherwise. A place that only one side knows has zeros on
the other. 0/0 is 0 (convention 36). These are errors over all places, no sample of them: so they have no interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import NDArray

from glasshouse.assess.numbers import Counting, Floats, Numbers, Side, at_or_above, groups_of, recodes_of
from glasshouse.errors import GlasshouseBug, InputError
from glasshouse.model.records import Index, Records
from glasshouse.model.release import Release
from glasshouse.model.schema import Recode
from glasshouse.scenarios.load import Scenario

DISTRICTS = 4


class _Sums:
    """Figures that add up, but for the largest."""

    def __add__(self, other: Self) -> Self:
        mine, theirs = vars(self), vars(other)
        names = [one.name for one in fields(self)]  # type: ignore[arg-type]  # every subclass is a dataclass
        return type(self)(*(max(mine[n], theirs[n]) if n == "largest" else mine[n] + theirs[n] for n in names))


@dataclass(frozen=True)
class Errors(_Sums):
    """How far the numbers of a table are off at one level."""

    numbers: int = 0
    changed: int = 0
    total: float = 0.0  # of the true counts
    absolute: float = 0.0  # L1
    largest: float = 0.0
    width: float = 0.0  # of intervals with two ends, added up
    unlimited: int = 0  # numbers that include an interval without an upper end

    @property
    def relative(self) -> float:
        """L1 as a share of the true counts; where those are all 0, as if there were one."""
        return self.absolute / max(self.total, 1.0)

    @property
    def mean(self) -> float:
        return self.absolute / max(self.numbers, 1)

    @property
    def share_changed(self) -> float:
        return self.changed / max(self.numbers, 1)

    @property
    def mean_width(self) -> float:
        return self.width / max(self.numbers - self.unlimited, 1)


@dataclass(frozen=True)
class Population(_Sums):
    """How far the numbers of records of the places of a level are off."""

    places: int = 0
    absolute: float = 0.0
    percent: float = 0.0  # added up over places that are not empty
    largest: float = 0.0
    exact: int = 0
    empty: int = 0  # places without a record in truth
    empty_absolute: float = 0.0  # records that they have in the protected data

    @property
    def mean(self) -> float:
        return self.absolute / max(self.places, 1)

    @property
    def mean_percent(self) -> float:
        return self.percent / max(self.places - self.empty, 1)

    @property
    def share_exact(self) -> float:
        return self.exact / max(self.places, 1)


@dataclass(frozen=True)
class Share:
    """How far the share of a group is off, in percentage points, on average over the units that have anyone."""

    recode: str
    group: str
    error: float
    truth: float  # the share in truth of all units together, in percent


@dataclass(frozen=True)
class Segregation:
    """The index of dissimilarity of a group and the rest, over the places of a level within each area."""

    level: str
    recode: str
    group: str
    truth: float
    protected: float
    error: float  # the mean of the areas' absolute differences


@dataclass(frozen=True)
class Districts:
    """The largest deviation of a district from the ideal population, in percent."""

    number: int
    deviation: float  # in truth, of districts drawn on the protected counts
    claimed: float  # what the protected counts say of them
    informed: float  # in truth, of districts drawn on the true counts


@dataclass(frozen=True)
class Utility:
    """How useful protected data are beside the truth."""

    levels: tuple[str, ...]  # coarse to fine
    unit: str
    tables: Mapping[tuple[str, str], Errors]  # by level and table
    populations: Mapping[str, Population]  # by level
    shares: tuple[Share, ...]
    segregation: tuple[Segregation, ...]
    districts: Districts | None  # None without anyone

    def at(self, level: str) -> Errors:
        """The errors of all tables of a level together."""
        return sum((errors for (where, _), errors in self.tables.items() if where == level), Errors())


def errors_of(truth: Floats, value: Floats, width: Floats | None = None, unlimited: Floats | None = None) -> Errors:
    """The errors of judged values beside true counts, whatever their shape."""
    off = np.abs(value - truth)
    wide = np.zeros_like(off) if width is None else width
    endless = np.zeros_like(off) if unlimited is None else unlimited
    return Errors(
        off.size,
        int(np.count_nonzero((off > 0) | (wide > 0) | (endless > 0))),
        float(truth.sum()),
        float(off.sum()),
        float(off.max(initial=0.0)),
        float(wide[endless == 0].sum()),
        int(np.count_nonzero(endless)),
    )


def population_of(truth: Floats, value: Floats, sure: NDArray[np.bool_] | None = None) -> Population:
    """The errors of the numbers of records of places; `sure`: those published as one number."""
    off, empty = np.abs(value - truth), truth == 0
    return Population(
        len(truth),
        float(off.sum()),
        float((100 * off[~empty] / truth[~empty]).sum()),
        float(off.max(initial=0.0)),
        int(np.count_nonzero((off == 0) if sure is None else (off == 0) & sure)),
        int(empty.sum()),
        float(off[empty].sum()),
    )


def dissimilarity(counts: Floats) -> Floats:
    """The index of each group (a column) against the rest, over places (rows); 0 where one of the two is empty.

    >>> dissimilarity(np.array([[30.0, 10.0], [10.0, 10.0]])).round(3).tolist()
    [0.25, 0.25]
    """
    rest = counts.sum(axis=1, keepdims=True) - counts
    group, others = counts.sum(axis=0), rest.sum(axis=0)
    apart = np.abs(counts / np.where(group > 0, group, 1) - rest / np.where(others > 0, others, 1)).sum(axis=0) / 2
    return np.where((group > 0) & (others > 0), apart, 0.0)


def shares(counts: Floats) -> Floats:
    """The share of each group (a column) in each place (a row), in percent; 0 of nobody."""
    total = counts.sum(axis=1, keepdims=True)
    return 100 * counts / np.where(total > 0, total, 1)


def draw_districts(counts: Floats, number: int) -> Index:
    """The district of each place: borders lie where the sum so far is nearest to its due, the earlier one on a tie."""
    sums = np.concatenate([[0.0], np.cumsum(counts)])
    due = sums[-1] * np.arange(1, number) / number
    borders = [int(np.argmin(np.abs(sums - one))) for one in due]
    return np.searchsorted(np.array(borders), np.arange(len(counts)), side="right").astype(np.int32)


def deviation(counts: Floats, district: Index, number: int) -> float:
    """The largest deviation of a district's people from the ideal, in percent of the ideal; 0 of nobody."""
    ideal = counts.sum() / number
    people = np.bincount(district, weights=counts, minlength=number)
    return float(100 * np.abs(people - ideal).max() / ideal) if ideal > 0 else 0.0


def districts_of(truth: Floats, value: Floats, number: int = DISTRICTS) -> Districts:
    """Districts drawn on protected counts, judged by the truth; places in the order of their codes."""
    if number < 1:
        raise InputError(f"the number of districts is {number}; expected at least 1")
    drawn, informed = draw_districts(value, number), draw_districts(truth, number)
    return Districts(
        number, deviation(truth, drawn, number), deviation(value, drawn, number), deviation(truth, informed, number)
    )


class Comparison:
    """The truth and protected data side by side, fed unit by unit in increasing order; memory holds one area."""

    def __init__(self, scenario: Scenario, recodes: Sequence[Recode], districts: int = DISTRICTS) -> None:
        geography = scenario.geography
        self.scenario, self.recodes, self.districts = scenario, tuple(recodes), districts
        self.within = [level for level in geography.levels if geography.within_unit(level)]
        self.above = [level for level in geography.levels if level not in self.within]
        self.truth, self.protected = Side(scenario, self.recodes), Side(scenario, self.recodes)
        self._tables: dict[tuple[str, str], Errors] = {}
        self._populations: dict[str, Population] = {}
        self._people: list[Floats] = []  # of places in order: in truth, and in the protected data
        self._shares: dict[str, list[Floats]] = {}  # by recode: errors, records in truth, units with anyone
        self._held: dict[str, dict[tuple[str, str], list[tuple[Floats, Floats]]]] = {}  # areas that are not complete
        self._apart: dict[tuple[str, str], Floats] = {}  # weight, truth, protected, error; of each group
        self._last = ""

    def add(self, truth: Release, protected: Release) -> None:
        """Compare what both say about one unit (or several, after those before)."""
        geography = self.scenario.geography
        ours, theirs = self.truth.numbers(truth), self.protected.numbers(protected)
        for level in self.within:
            self._compare(level, ours[level], theirs[level])
        self.truth.add(ours, self.above)
        self.protected.add(theirs, self.above)
        codes = sorted({*ours[geography.unit].places, *theirs[geography.unit].places})
        if codes and codes[0] <= self._last:
            raise GlasshouseBug("units were not compared in the order of their codes")
        self._last = codes[-1] if codes else self._last
        for area in sorted(self._held)[:-1]:
            self._close(area)

    def finish(self, truth: Release | None = None, protected: Release | None = None) -> Utility:
        """The result; what was published at levels above the unit may be given, and is summed otherwise."""
        geography = self.scenario.geography
        for area in sorted(self._held):
            self._close(area)
        ours = {} if truth is None else self.truth.numbers(truth)
        theirs = {} if protected is None else self.protected.numbers(protected)
        for level in self.above:
            self._compare(level, self.truth.above(level, ours), self.protected.above(level, theirs))
        people = np.concatenate(self._people, axis=1) if self._people else np.zeros((2, 0))
        known = {level for level, _ in self._tables}.union(self._populations)
        return Utility(
            tuple(level for level in geography.levels if level in known),
            geography.unit,
            self._tables,
            self._populations,
            tuple(share for recode in self.recodes for share in self._shares_of(recode)),
            tuple(one for key, sums in self._apart.items() for one in self._segregation_of(*key, sums)),
            districts_of(people[0], people[1], self.districts) if people.any() else None,
        )

    def _compare(self, level: str, truth: Numbers, protected: Numbers) -> None:
        if truth.data[1:].any():
            raise InputError("the truth holds intervals; expected records, or tables of exact numbers")
        places = sorted({*truth.places, *protected.places})
        ours, theirs = truth.chosen(places, truth.spans), protected.chosen(places, protected.spans)
        for name in ours.spans:
            own = self.scenario.by_table.get(name)
            if own and name in theirs.spans and at_or_above(self.scenario.geography, level, own.level):
                mine, (value, width, unlimited) = ours.columns(name)[0], theirs.columns(name)
                before = self._tables.get((level, name), Errors())
                self._tables[level, name] = before + errors_of(mine, value, width, unlimited)
        everyone = self.truth.view(ours, None), self.protected.view(theirs, None)
        if everyone[0] is not None and everyone[1] is not None:
            mine, (value, width, unlimited) = everyone[0][0, :, 0], everyone[1][:, :, 0]
            found = population_of(mine, value, (width == 0) & (unlimited == 0))
            self._populations[level] = self._populations.get(level, Population()) + found
            if level == self.scenario.geography.place:
                self._people.append(np.stack([mine, value]))
        if level in (self.scenario.geography.place, self.scenario.geography.unit):
            for recode in self.recodes:
                groups = self.truth.view(ours, recode), self.protected.view(theirs, recode)
                if groups[0] is not None and groups[1] is not None:
                    self._group(level, places, recode.name, groups[0][0], groups[1][0])

    def _group(self, level: str, places: Sequence[str], recode: str, truth: Floats, value: Floats) -> None:
        """Take in the groups of some places: of each its records in truth, and in the protected data."""
        geography = self.scenario.geography
        if level == geography.unit:
            alive = truth.sum(axis=1) > 0
            off = np.abs(shares(truth) - shares(value))[alive].sum(axis=0)
            sums = [off, truth.sum(axis=0), np.array(float(alive.sum()))]
            before = self._shares.get(recode)
            self._shares[recode] = sums if before is None else [a + b for a, b in zip(before, sums, strict=True)]
        levels = list(geography.lengths)
        at = levels.index(geography.unit)
        length = geography.lengths[levels[at - 1]] if at else 0  # without a level above, everything is one area
        areas = np.array([place[:length] for place in places], dtype=np.str_)
        for area in np.unique(areas):
            here = areas == area
            held = self._held.setdefault(str(area), {})
            held.setdefault((level, recode), []).append((truth[here], value[here]))

    def _close(self, area: str) -> None:
        """An area is complete: add its indices, weighted by its true people."""
        for key, pieces in self._held.pop(area).items():
            truth, value = (np.concatenate([piece[side] for piece in pieces]) for side in (0, 1))
            ours, theirs = dissimilarity(truth), dissimilarity(value)
            sums = float(truth.sum()) * np.stack([np.ones_like(ours), ours, theirs, np.abs(ours - theirs)])
            self._apart[key] = self._apart[key] + sums if key in self._apart else sums

    def _shares_of(self, recode: Recode) -> list[Share]:
        if recode.name not in self._shares:
            return []
        off, people, units = self._shares[recode.name]
        mean, whole = off / max(float(units), 1.0), 100 * people / max(float(people.sum()), 1.0)
        return [
            Share(recode.name, group.label, float(mean[at]), float(whole[at]))
            for at, group in enumerate(groups_of(recode))
        ]

    def _segregation_of(self, level: str, recode: str, sums: Floats) -> list[Segregation]:
        weight, *means = sums
        truth, protected, off = (mean / np.where(weight > 0, weight, 1) for mean in means)
        return [
            Segregation(level, recode, group.label, float(truth[at]), float(protected[at]), float(off[at]))
            for at, group in enumerate(groups_of(self.scenario.recodes[recode]))
        ]


def utility_of(
    truth: Records,
    protected: Records,
    scenario: Scenario,
    *,
    groups: Sequence[str] = (),
    districts: int = DISTRICTS,
) -> Utility:
    """How useful protected records are beside the true ones; `groups` names recodes whose groups are looked at."""
    recodes = recodes_of(scenario, groups)
    counting, comparison = Counting.of(scenario, recodes), Comparison(scenario, recodes, districts)
    ours, theirs = _by_unit(truth, scenario), _by_unit(protected, scenario)
    for unit in sorted({*ours, *theirs}):
        nobody = Records(scenario.schema, (), truth.place[:0], truth.codes[:0])
        comparison.add(counting.release(ours.get(unit, nobody)), counting.release(theirs.get(unit, nobody)))
    return comparison.finish()


def utility_of_tables(
    truth: Release,
    protected: Release,
    scenario: Scenario,
    *,
    groups: Sequence[str] = (),
    districts: int = DISTRICTS,
) -> Utility:
    """How useful protected tables are beside the true ones; tables that only one of them has are left out."""
    comparison = Comparison(scenario, recodes_of(scenario, groups), districts)
    comparison.add(truth, protected)
    return comparison.finish()


def _by_unit(records: Records, scenario: Scenario) -> dict[str, Records]:
    """The records of each unit."""
    geography = scenario.geography
    unit = np.array([geography.code(place, geography.unit) for place in records.places], dtype=np.str_)
    found = {}
    for code in np.unique(unit):
        mine = np.flatnonzero(unit == code)
        number = np.full(len(unit), -1, np.int32)
        number[mine] = np.arange(len(mine))
        rows = number[records.place] >= 0
        places = tuple(records.places[at] for at in mine)
        found[str(code)] = Records(records.schema, places, number[records.place[rows]], records.codes[rows])
    return found
