"""The job behind `glasshouse check`: do the numbers of a release agree with each other, and blocks with tracts?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import numpy as np

from glasshouse.attack.contradictions import Decider, Doubt, Stack, coarsest_of_each, explain, stacks
from glasshouse.engine.progress import in_order
from glasshouse.files.frames import Watch, unwatched
from glasshouse.files.tables import TableFile
from glasshouse.model.geography import Geography
from glasshouse.model.identities import Checker, Finding, sum_up
from glasshouse.model.records import Count
from glasshouse.model.release import Counts, Release


@dataclass
class Checked:
    """What was checked, and what was found."""

    places: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    identities: dict[str, int] = field(default_factory=dict)
    undecided: Counter[str] = field(default_factory=Counter)  # places, by level, where it is not known if anything fits


def check_file(file: TableFile, *, assume: str = "seen", workers: int = 1, watch: Watch = unwatched) -> Checked:
    """Check every place of a table file, unit by unit; levels coarser than the unit last, against running sums."""
    checker = Checker(file.scenario.schema, file.scenario.tables)
    geography = file.scenario.geography
    checked = Checked()

    decider = Decider(file.scenario.schema, file.scenario.tables, geography)

    def work() -> Iterator[Stack | Release]:
        above: _Above | None = None
        for release in file.releases(assume=assume, watch=watch):
            above = above or _Above(geography, {level for level, _ in file.seen.variables})
            coarse = [level for level in release.levels if not geography.within_unit(level)]
            for level in coarse:
                yield above.joined(release, level)
            if not coarse:
                above.add(release)
                yield from stacks(release, geography)
                yield release

    def check(item: Stack | Release) -> tuple[Stack | None, list[Finding], list[Doubt]]:
        if isinstance(item, Release):
            return None, [], decider.decide(item)
        return item, list(checker.check(*item)), []

    named: set[tuple[str, str]] = set()
    for stack, findings, doubts in in_order(check, work(), workers):
        if stack is not None:
            checked.places[stack[0].level] += len(stack[0].places)
        checked.findings += findings
        named |= {(finding.level, finding.geoid) for finding in findings}
        for doubt in doubts:  # what adding up shows already is not told twice
            if (doubt.level, doubt.geoid) not in named and not _inside(doubt, named, geography):
                finding = explain(doubt, geography.place) if doubt.decided else None
                named.add((doubt.level, doubt.geoid))
                if finding is None:
                    checked.undecided[doubt.level] += 1
                else:
                    checked.findings.append(finding)
    checked.identities = {stack[0][0]: len(identities) for stack, identities in checker.prepared.items()}
    return checked


def _inside(doubt: Doubt, named: set[tuple[str, str]], geography: Geography) -> bool:
    """Is the doubt about an area one of whose places has a finding of its own?"""
    return doubt.area is not None and any((geography.place, place) in named for place in doubt.counts.places)


class _Above:
    """Sums of finer levels for areas that are larger than a unit, kept while units stream by."""

    def __init__(self, geography: Geography, levels: Collection[str]) -> None:
        self.geography = geography
        self.coarse = [level for level in levels if not geography.within_unit(level)]
        self.sums: dict[tuple[str, str], dict[str, tuple[Count, Count]]] = {}  # area level, finer level: by area
        self.variables: dict[str, tuple[str, ...]] = {}

    def add(self, release: Release) -> None:
        for finer, counts in release.levels.items():
            self.variables[finer] = counts.variables
            for level in self.coarse:
                if level in self.geography.mappings and finer != self.geography.place:
                    continue  # a mapping knows places only
                areas = sorted({self.geography.code(place, level) for place in counts.places})
                total = sum_up(counts, areas, self.geography, level)
                kept = self.sums.setdefault((level, finer), {})
                for row, area in enumerate(areas):
                    lower, upper = kept.get(area, (0, 0))
                    kept[area] = (lower + total.lower[row], upper + total.upper[row])

    def joined(self, release: Release, level: str) -> Stack:
        """A coarse level with the sums of every finer one; an area only finer rows tell of is there with zeros."""
        known = [set(areas) for (at, _), areas in self.sums.items() if at == level]
        places = sorted(set(release.levels[level].places).union(*known))
        counts = _rows(release.levels[level], places)
        finer = []
        for other in reversed(self.geography.levels):
            if (level, other) in self.sums:
                kept = self.sums[level, other]
                zero = np.zeros(len(self.variables[other]), np.int64)
                lower, upper = (np.array([kept.get(place, (zero, zero))[side] for place in places]) for side in (0, 1))
                finer.append(Counts(other, counts.places, self.variables[other], lower, upper))
            elif other in release.levels and self._inside(other, level):
                finer.append(sum_up(release.levels[other], places, self.geography, level))
        return counts, coarsest_of_each(finer)

    def _inside(self, finer: str, level: str) -> bool:
        lengths = self.geography.lengths
        return level in lengths and finer in lengths and lengths[finer] > lengths[level]


def _rows(counts: Counts, places: list[str]) -> Counts:
    """The same numbers for these places, 0 for one that was not there."""
    at = np.array([counts.row.get(place, -1) for place in places], np.int64)
    lower, upper = (np.where(at[:, None] >= 0, numbers[at], 0) for numbers in (counts.lower, counts.upper))
    return Counts(counts.level, tuple(places), counts.variables, lower, upper)
