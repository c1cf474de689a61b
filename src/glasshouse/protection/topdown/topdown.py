"""How are records made that add up at every level, from noisy counts? From the top down, as the 2020 system did.

At the top the histogram is measured with noise and made non-negative and whole. Then, level by level, the children of
each place are measured, and the non-negative table that agrees best with the answers and adds up to the parent is found
(`least_squares`) and rounded with its sums held (`controlled`); inside the finest sums, people are placed as is likely
(`placement`). A cell without people above has none below, so tables are as sparse as the data. Places are done depth
first: at any time the tables of one path from the top are in memory, and the records of a place come out when its
parent is done.

Chance is that of each place, so what grows from a place depends on its table and its own records alone: `branches`
stops at the places of a level, and whoever has a branch can `grow` it, in any order, on any machine.

What is held exactly (`Held`): counts of a query at a level, which are then exact above it too; and absence: where
nobody of a group of a query lives, nobody will (the 2020 system knew which kinds of group quarters a block has).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count, pairwise

import numpy as np

from glasshouse.errors import GlasshouseBug, InputError
from glasshouse.mechanism.sampler import simulate
from glasshouse.protection.topdown.controlled import SLACK, round_alone, round_children
from glasshouse.protection.topdown.least_squares import Answers, Fitted, Floats, fit, fit_alone
from glasshouse.protection.topdown.measurements import Flags, Ints, Measure, Query, Strategy, divides, nested
from glasshouse.protection.topdown.placement import place

HEAVY = 100.0  # how much more than all else a count that is held weighs, before it is made exact
Draw = Callable[[Measure, int, np.random.Generator], Ints]


def simulated(measure: Measure, size: int, rng: np.random.Generator) -> Ints:
    """Noise from the labelled simulator."""
    return simulate(measure.noise, size, rng)


@dataclass(frozen=True)
class Held:
    """What does not get noise: by level, queries whose counts are exact, and queries whose empty groups stay empty."""

    counts: dict[str, Query] = field(default_factory=dict)
    absence: dict[str, Query] = field(default_factory=dict)

    def downwards(self, levels: Sequence[str]) -> Held:
        """The same for every level: what is held at a level is held above it, in the finest form that any has."""
        counts, absence = {}, {}
        for index, level in enumerate(levels):
            below = [self.counts[other] for other in levels[index:] if other in self.counts]
            if below:
                finest = below[0]
                for query in below[1:]:
                    if divides(finest, query):
                        finest = query
                    elif not divides(query, finest):
                        raise InputError(
                            f"counts of '{finest.name}' and of '{query.name}' cannot both be held: "
                            "neither divides the other"
                        )
                counts[level] = finest
            empty = {self.absence[other].name: self.absence[other] for other in levels[index:] if other in self.absence}
            if len(empty) > 1:  # each alone might be possible, and both together nowhere
                raise InputError(
                    f"absence of {' and of '.join(repr(name) for name in empty)} is to be held; one query's can be: "
                    f"cross them, as '{' * '.join(empty)}'"
                )
            if empty:
                absence[level] = next(iter(empty.values()))
        return Held(counts, absence)


@dataclass
class Quality:
    """How well the tables agree with the answers: the worst certificate, and how many steps it took."""

    tables: int = 0
    steps: int = 0
    off: float = 0.0  # how far a table may be from the best, in people, where that is known
    moved: int = 0  # persons moved to make counts that are held exact

    def add(self, other: Quality) -> None:
        self.tables += other.tables
        self.steps += other.steps
        self.off = max(self.off, other.off)
        self.moved += other.moved

    def note(self, fitted: Fitted) -> None:
        self.tables += 1
        self.steps += fitted.steps
        if np.isfinite(fitted.off):
            self.off = max(self.off, fitted.off)


@dataclass(frozen=True)
class Sorted:
    """All records in the order of their places: the cell of each, and where the records of each place begin."""

    places: tuple[str, ...]  # sorted
    cells: Ints
    bounds: Ints  # len(places) + 1

    def of(self, first: int, last: int) -> Ints:
        """The cells of the records of places `first` to `last`."""
        return self.cells[self.bounds[first] : self.bounds[last]]

    def part(self, first: int, last: int) -> Sorted:
        """Places `first` to `last` with their records, and nothing of the others."""
        bounds = self.bounds[first : last + 1]
        return Sorted(self.places[first:last], self.of(first, last).copy(), bounds - bounds[0])


@dataclass(frozen=True)
class Branch:
    """All that lies below some place: its records and its table, or no table where nothing above has been asked."""

    number: int
    records: Sorted
    depth: int = 0  # of the place whose table it is
    table: tuple[Ints, Ints] | None = None  # its cells with people, and how many

    @property
    def code(self) -> str:
        """A name that sorts as the branches stand."""
        return f"{self.number:09d}"

    @property
    def places(self) -> int:
        return len(self.records.places)


@dataclass(frozen=True)
class TopDown:
    """What does not change from place to place."""

    strategy: Strategy
    lengths: dict[str, int]  # of the codes of each level, from the top down
    possible: Flags
    held: Held
    chance: Callable[[str], np.random.Generator]  # of a place
    draw: Draw = simulated
    quality: Quality = field(default_factory=Quality)
    chains: dict[str, list[Query]] | None = None  # worked out before, by another of the same

    def protect(self, records: Sorted) -> Iterator[tuple[str, Ints]]:
        """Every place and the cells of its new records, in the order of the codes."""
        top = self.strategy.levels[0]
        for code, first, last in self._parts(records, 0, len(records.places), self.lengths[top]):
            cells, counts = self._top(records, code, first, last)
            yield from self._below(records, 0, first, last, cells, counts)

    def branches(self, records: Sorted, length: int) -> Iterator[Branch]:
        """What is left to grow once everything above the places whose codes have so many letters is done.

        They are of the finest level whose codes are no longer, the last one aside; where there is none below the top,
        nothing is asked here, and the branches begin with the top.
        """
        levels = self.strategy.levels
        depth = sum(self.lengths[level] <= length for level in levels[:-1]) - 1
        numbers, whole = count(), (0, len(records.places))
        if depth < 1:
            for _, first, last in self._parts(records, *whole, min(length, self.lengths[levels[0]])):
                yield Branch(next(numbers), records.part(first, last))
            return
        for code, first, last in self._parts(records, *whole, self.lengths[levels[0]]):
            table = self._top(records, code, first, last)
            for begin, end, below in self._down(records, 0, depth, first, last, table):
                yield Branch(next(numbers), records.part(begin, end), depth, below)

    def _down(
        self, records: Sorted, depth: int, to: int, first: int, last: int, table: tuple[Ints, Ints]
    ) -> Iterator[tuple[int, int, tuple[Ints, Ints]]]:
        """The places of depth `to` below one, where each begins and ends, and its table."""
        if depth == to:
            yield first, last, table
            return
        for begin, end, below in self._tables(records, depth, first, last, *table):
            yield from self._down(records, depth + 1, to, begin, end, below)

    def grow(self, branch: Branch) -> tuple[list[tuple[str, Ints]], Quality]:
        """The places of a branch with the cells of their new records, and how well its tables agree with answers."""
        alone, records = replace(self, quality=Quality(), chains=self._chains), branch.records
        if branch.table is None:
            found = alone.protect(records)
        else:
            found = alone._below(records, branch.depth, 0, branch.places, *branch.table)
        return list(found), alone.quality

    def _parts(self, records: Sorted, first: int, last: int, length: int) -> Iterator[tuple[str, int, int]]:
        """The places of codes so long among those from `first` to `last`: each with where it begins and ends."""
        begin = first
        for at in range(first + 1, last + 1):
            if at == last or records.places[at][:length] != records.places[begin][:length]:
                yield records.places[begin][:length], begin, at
                begin = at

    def _top(self, records: Sorted, code: str, first: int, last: int) -> tuple[Ints, Ints]:
        """The table of a place that nothing is above: its cells with people, and how many."""
        level, rng = self.strategy.levels[0], self.chance(code)
        truth = records.of(first, last)
        live = self.possible.copy()
        if level in self.held.absence:
            query = self.held.absence[level]
            live &= (query.counted(truth) > 0)[query.group]
        exact = self.held.counts.get(level)
        if exact is not None:
            live &= (exact.counted(truth) > 0)[exact.group]
        cells = np.flatnonzero(live)
        if (not len(truth) and exact is not None) or not len(cells):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        answers = [self._ask(one, cells, [truth], rng) for one in self.strategy.measures[level]]
        if exact is not None:  # the total is held as it is, and its own noisy answer tells nothing more
            answers = [one for one in answers if len(one.noisy) > 1]
            answers += [_exactly(exact, cells, [truth], answers)] if exact.groups > 1 and answers else []
        total = len(truth) if exact is not None else None
        fitted = fit_alone(len(cells), answers, total, np.ones(len(cells), np.bool_))
        self.quality.note(fitted)
        chain = self._chain(level, cells)
        x = round_alone(fitted.x[:, 0], total, chain, rng, _slack(fitted))
        if exact is not None:
            self.quality.moved += _make_exact(x[:, None], fitted.x, exact.group[cells][:, None], exact.counted(truth))
        some = x > 0
        return cells[some], x[some]

    def _below(
        self, records: Sorted, depth: int, first: int, last: int, cells: Ints, counts: Ints
    ) -> Iterator[tuple[str, Ints]]:
        """The places below one of level `depth`, whose table is given."""
        levels = self.strategy.levels
        if depth + 1 == len(levels):
            yield records.places[first], np.repeat(cells, counts)
            return
        for begin, end, table in self._tables(records, depth, first, last, cells, counts):
            yield from self._below(records, depth + 1, begin, end, *table)

    def _tables(
        self, records: Sorted, depth: int, first: int, last: int, cells: Ints, counts: Ints
    ) -> Iterator[tuple[int, int, tuple[Ints, Ints]]]:
        """The children of a place of level `depth`, whose table is given: where each begins and ends, and its table."""
        level = self.strategy.levels[depth + 1]
        children = list(self._parts(records, first, last, self.lengths[level]))
        x = self._children(records, level, children, cells, counts)
        for number, (_, begin, end) in enumerate(children):
            some = x[:, number] > 0
            yield begin, end, (cells[some], x[some, number])

    def _children(
        self, records: Sorted, level: str, children: list[tuple[str, int, int]], cells: Ints, counts: Ints
    ) -> Ints:
        """The tables of all children of a place: they add up to its own."""
        if not len(cells):
            return np.zeros((0, len(children)), np.int64)
        if len(children) == 1:
            return counts[:, None]  # an only child is its parent: nothing is asked, and nothing spent is wasted on it
        chances = [self.chance(code) for code, _, _ in children]
        truths = [records.of(begin, end) for _, begin, end in children]
        answers = [self._ask(one, cells, truths, *chances) for one in self.strategy.measures[level]]
        allowed = np.ones((len(cells), len(children)), np.bool_)
        if level in self.held.absence:
            query = self.held.absence[level]
            allowed = np.column_stack([(query.counted(truth) > 0)[query.group[cells]] for truth in truths])
        exact = self.held.counts.get(level)
        if exact is not None:
            answers = [*answers, _exactly(exact, cells, truths, answers)]
        fitted = fit(counts.astype(np.float64), len(children), answers, allowed)
        self.quality.note(fitted)
        chain = self._chain(level, cells)
        x = round_children(fitted.x, counts, chain, chances[0], _slack(fitted))
        if exact is not None:
            wanted = np.column_stack([exact.counted(truth) for truth in truths])
            self.quality.moved += _trade(x, fitted.x, exact.group[cells], wanted, allowed)
        finest = chain[-1] if chain else np.zeros(len(cells), np.int64)
        x = place(x, finest, answers, allowed, chances[0], draw=level == self.strategy.levels[-1])
        if (x < 0).any() or not np.array_equal(x.sum(axis=1), counts) or (x[~allowed] > 0).any():
            raise GlasshouseBug("children do not add up to their parent")
        return x

    def _ask(self, measure: Measure, cells: Ints, truths: Sequence[Ints], *chances: np.random.Generator) -> Answers:
        """The noisy answers of some places to a query, of the groups that can have people."""
        query = measure.query
        alive, group = np.unique(query.group[cells], return_inverse=True)
        noisy = np.empty((len(alive), len(truths)))
        for number, (truth, rng) in enumerate(zip(truths, chances, strict=True)):
            noisy[:, number] = query.counted(truth)[alive] + self.draw(measure, len(alive), rng)
        return Answers(group.astype(np.int64), noisy, measure.weight)

    def _chain(self, level: str, cells: Ints) -> list[Ints]:
        """The sums that rounding holds to the nearest whole numbers, numbered for these cells."""
        return [np.unique(q.group[cells], return_inverse=True)[1].astype(np.int64) for q in self._chains[level]]

    @cached_property
    def _chains(self) -> dict[str, list[Query]]:
        """Of each level the sums that rounding watches: what is held, then queries with much weight for each group."""
        if self.chains is not None:
            return self.chains
        found = {}
        for level in self.strategy.levels:
            weighed = [(one.query, one.weight / one.query.groups) for one in self.strategy.measures[level]]
            held = self.held.counts.get(level)
            found[level] = nested([*weighed, *([] if held is None else [(held, np.inf)])])
        return found


def _slack(fitted: Fitted) -> float:
    """What is nearer to a whole number than the table is known to be right, counts as whole."""
    return float(np.clip(2 * fitted.off, SLACK, 2.0**-6)) if np.isfinite(fitted.off) else SLACK


def _exactly(query: Query, cells: Ints, truths: Sequence[Ints], answers: Sequence[Answers]) -> Answers:
    """Counts that are held, as answers that outweigh all others."""
    alive, group = np.unique(query.group[cells], return_inverse=True)
    counts = np.column_stack([query.counted(truth)[alive] for truth in truths]).astype(np.float64)
    return Answers(group.astype(np.int64), counts, HEAVY * max(one.weight for one in answers))


def _make_exact(x: Ints, wish: Floats, group: Ints, wanted: Ints) -> int:
    """Give every group of one column its count, changing first what was rounded worst; how many were changed."""
    changed = 0
    have = np.bincount(group[:, 0], weights=x[:, 0], minlength=len(wanted)).astype(np.int64)
    for number in np.flatnonzero(have != wanted):
        rows = np.flatnonzero(group[:, 0] == number)
        while have[number] != wanted[number]:
            way = 1 if have[number] < wanted[number] else -1
            over = (x[rows, 0] - wish[rows, 0]) * way + np.where((x[rows, 0] == 0) & (way < 0), np.inf, 0)
            x[rows[np.argmin(over)], 0] += way
            have[number] += way
            changed += 1
    return changed


def _trade(x: Ints, wish: Floats, group: Ints, wanted: Ints, allowed: Flags) -> int:
    """Move people between children, cell by cell, until every child has the counts that are held; how many moved.

    Where nobody of one child may be in another, somebody goes to a third whose own move on, and so forth.
    """
    moved = 0
    for number in np.unique(group):
        rows = np.flatnonzero(group == number)
        over = x[rows].sum(axis=0) - wanted[number]
        if over.sum() != 0:
            raise GlasshouseBug("counts that are held differ between a place and its parts")
        while over.any():
            giver, taker = int(np.argmax(over)), int(np.argmin(over))
            for source, target in _way(x[rows], allowed[rows], giver, taker):
                gain = (x[rows, source] - wish[rows, source]) - (x[rows, target] - wish[rows, target])
                gain[(x[rows, source] == 0) | ~allowed[rows, target]] = -np.inf
                best = rows[int(np.argmax(gain))]
                x[best, source] -= 1
                x[best, target] += 1
                moved += 1
            over[giver] -= 1
            over[taker] += 1
    return moved


def _way(x: Ints, allowed: Flags, giver: int, taker: int) -> list[tuple[int, int]]:
    """The fewest moves from child to child by which one has a person less and another one more."""
    if np.any((x[:, giver] > 0) & allowed[:, taker]):
        return [(giver, taker)]
    before, wave = {giver: giver}, [giver]
    while wave and taker not in before:
        following = []
        for child in wave:
            for other in np.flatnonzero(allowed[x[:, child] > 0].any(axis=0)).tolist():
                if other not in before:
                    before[other] = child
                    following.append(other)
        wave = following
    if taker not in before:
        raise InputError(
            "with this noise, counts and absence cannot both be held: there is nowhere for some to go; hold one of "
            "them, or spend more rho"
        )
    way = [taker]
    while way[-1] != giver:
        way.append(before[way[-1]])
    return [(source, target) for target, source in pairwise(way)]
