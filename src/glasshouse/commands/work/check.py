"""The job behind `glasshouse check`: do the numbers of a release agree with each other, and blocks with tracts?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from glasshouse.attack.contradictions import Decider, Doubt, Stack, coarsest_of_each, explain, stacks
from glasshouse.attack.nesting import following, only_places
from glasshouse.engine.progress import in_order
from glasshouse.files.frames import Watch, unwatched
from glasshouse.files.tables import TableFile
from glasshouse.model.geography import Geography
from glasshouse.model.identities import Checker, Finding, sum_up
from glasshouse.model.records import Count
from glasshouse.model.release import Counts, Release

Question = Callable[[], list[Doubt]]  # about some places, for the core
MOST_KEPT = 10_000_000  # numbers that are kept to be compared with those of areas larger than a unit


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

    def work() -> Iterator[Stack | Question]:
        above: _Above | None = None
        for release in file.releases(assume=assume, watch=watch):
            if above is None:  # all rows have been read
                above = _Above(geography, {level for level, _ in file.seen.variables})
                decider.whole = file.seen.names_places(file.scenario)
            coarse = [level for level in release.levels if not geography.within_unit(level)]
            for level in sorted(coarse, key=geography.levels.index, reverse=True):
                stack = above.joined(release, level)
                yield stack
                yield from above.questions(stack, decider)
            if not coarse:
                above.add(release)
                yield from stacks(release, geography)
                yield partial(decider.decide, release)

    def check(item: Stack | Question) -> tuple[Stack | None, list[Finding], list[Doubt]]:
        if callable(item):
            return None, [], item()
        return item, list(checker.check(*item)), []

    named: set[tuple[str, str]] = set()
    for stack, findings, doubts in in_order(check, work(), workers):
        if stack is not None:
            checked.places[stack[0].level] += len(stack[0].places)
        checked.findings += findings
        named |= {(finding.level, finding.geoid) for finding in findings}
        unsure: set[tuple[str, str]] = set()
        for doubt in doubts:  # what adding up shows already is not told twice
            if not _told(doubt, named):
                finding = explain(doubt)
                if finding is None:
                    unsure.add((doubt.level, doubt.geoid))
                else:
                    checked.findings.append(finding)
                    named.add((doubt.level, doubt.geoid))
        checked.undecided.update(level for level, _ in unsure - named)
    checked.identities = {stack[0][0]: len(identities) for stack, identities in checker.prepared.items()}
    return checked


def _told(doubt: Doubt, named: set[tuple[str, str]]) -> bool:
    """Is there a finding about the same place, or about one inside it?"""
    inside = () if doubt.proved is None else doubt.proved[1].levels
    return (doubt.level, doubt.geoid) in named or any(
        (counts.level, place) in named for counts in inside for place in counts.places
    )


class _Above:
    """Sums of finer levels for areas that are larger than a unit, kept while units stream by."""

    def __init__(self, geography: Geography, levels: Collection[str]) -> None:
        self.geography = geography
        self.coarse = [level for level in levels if not geography.within_unit(level)]
        self.sums: dict[tuple[str, str], dict[str, tuple[Count, Count]]] = {}  # area level, finer level: by area
        self.variables: dict[str, tuple[str, ...]] = {}
        self.kept: list[Counts] = []  # all numbers of finer levels, for the core
        self.numbers = 0  # of finer levels; too many are not kept

    def add(self, release: Release) -> None:
        self._keep(release.levels.values())
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

    def _keep(self, levels: Collection[Counts]) -> None:
        self.numbers += sum(counts.lower.size for counts in levels)
        self.kept = [*self.kept, *levels] if self.coarse and self.numbers <= MOST_KEPT else []

    def questions(self, stack: Stack, decider: Decider) -> Iterator[Question]:
        """What the core is asked about the areas of a coarse level that say more than the sums of finer ones.

        Where not all places are there, an area of a mapping may have others, and nobody can say which.
        """
        counts, sums = stack
        more = np.flatnonzero(~following(counts, sums).all(axis=1))
        inside, whole = self._inside_areas(counts) if len(more) else ({}, True)
        for row in more:
            alone = only_places(counts, np.array([row]))
            levels = {**inside.get(alone.places[0], {}), counts.level: alone}
            if decider.whole or counts.level in self.geography.lengths:
                yield partial(_asked, decider, levels, whole=whole)
            else:
                yield partial(list, [Doubt(counts.level, alone.places[0])])
        self._keep([counts])

    def _inside_areas(self, counts: Counts) -> tuple[dict[str, dict[str, Counts]], bool]:
        """For each area of a level all finer numbers in it, by level, and whether that is all there is.

        It is not where there are too many, or where areas (of a mapping) cut across others that have numbers.
        """
        mapped = counts.level in self.geography.mappings
        levels = {kept.level for kept in self.kept}
        chosen = [kept for kept in self.kept if not mapped or kept.level == self.geography.place]
        found: dict[str, dict[str, list[Counts]]] = {}
        for kept in chosen:
            rows: dict[str, list[int]] = {}
            for row, place in enumerate(kept.places):
                rows.setdefault(self.geography.code(place, counts.level), []).append(row)
            for area, some in rows.items():
                found.setdefault(area, {}).setdefault(kept.level, []).append(only_places(kept, np.array(some)))
        whole = self.numbers <= MOST_KEPT and (not mapped or levels <= {self.geography.place})
        return {area: {level: _joined(many) for level, many in by.items()} for area, by in found.items()}, whole

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


def _asked(decider: Decider, levels: dict[str, Counts], *, whole: bool) -> list[Doubt]:
    """What the core says of one area; nothing against it is no answer where not all numbers were looked at."""
    doubts = decider.decide_coarsest(levels)
    area = next(reversed(levels.values()))
    return doubts or ([] if whole else [Doubt(area.level, area.places[0])])


def _joined(many: list[Counts]) -> Counts:
    """The same numbers of several units, as one."""
    lower, upper = (np.concatenate([getattr(counts, side) for counts in many]) for side in ("lower", "upper"))
    places = tuple(place for counts in many for place in counts.places)
    return Counts(many[0].level, places, many[0].variables, lower, upper)


def _rows(counts: Counts, places: list[str]) -> Counts:
    """The same numbers for these places, 0 for one that was not there."""
    at = np.array([counts.row.get(place, -1) for place in places], np.int64)
    lower, upper = (np.where(at[:, None] >= 0, numbers[at], 0) for numbers in (counts.lower, counts.upper))
    return Counts(counts.level, tuple(places), counts.variables, lower, upper)
