"""Which data sets of a block are the most likely? The t best that fit, all different, by what a sample says of kinds.

Minimise the sum of -log p(kind) over households (equation 2 of Steed, Qing and Wu). A sample of the census knows
neither bedrooms nor who is subsidised, so the cost of a data set depends on its *census part* alone: how many
households there are of each kind of the sample. All ways to house one census part cost the same, and often there are
thousands. So census parts are listed from the cheapest on (Lawler's boxes), and of each the ways to house it: all of
them where they are few, else drawn at random with the seed. An attacker who takes violations to be rare may try the
ways with the fewest of them first (`fewest`): the sample has nothing to say on that.

Costs are in units of a ten-thousandth of a nat, rounded to whole numbers: likelihoods that are closer count as equal.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import count

import numpy as np
from numpy.typing import NDArray

from glasshouse.attack.occupancy.kinds import Block, Kinds
from glasshouse.model.records import UNLIMITED, Count
from glasshouse.program.answers import some
from glasshouse.program.integer import IntegerProgram, Outcome, Proof
from glasshouse.program.ladder import CLIMB, Ladder, engage, relaxation, weaker
from glasshouse.program.listing import without
from glasshouse.program.reduce import Programs, split
from glasshouse.program.search import enumerate_part

NAT = 10_000  # units of cost
STEPS = 50  # of a search for each way wanted, before ways are drawn instead
BATCHES = 4  # of draws, before those that came up are taken for all that will
BOXES = 3_000  # questions about further census parts of a block
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Sample:
    """Kinds of household as a sample has them, with every way to be housed: `of` is the kind in the sample."""

    kinds: Kinds
    of: Ints
    cost: Ints  # of a household of each kind

    @staticmethod
    def weighed(kinds: Kinds, of: Ints, households: Ints) -> Sample:
        """With the cost of kinds that so many households of the sample have."""
        price = np.rint(NAT * (np.log(households.sum()) - np.log(households))).astype(np.int64)
        return Sample(kinds, of, price[of])


@dataclass(frozen=True)
class Likely:
    """Data sets, the most likely first: a row each, how many households there are of each of `kinds`.

    `proof`: that none that is cheaper was missed. `tied`: another costs as much as the last. With `all_there` there are
    no others at all.
    """

    kinds: Ints
    x: Count
    cost: Count
    tied: bool
    all_there: bool
    proof: Proof
    clock: bool = False


def likely(
    sample: Sample, readings: Sequence[Block], t: int, rng: np.random.Generator, ladder: Ladder = CLIMB, *,
    fewest: bool = False,
) -> Likely:  # fmt: skip
    """The t cheapest data sets that fit under any reading; none where the kinds of the sample cannot make one."""
    found = [_likely(sample, block, t, rng, ladder, fewest) for block in readings]
    return found[0] if len(found) == 1 else _merged(sample, found, t, fewest)


def _merged(sample: Sample, found: Sequence[Likely], t: int, fewest: bool) -> Likely:
    """The t cheapest of several lists, each once."""
    rows = np.zeros((sum(len(one.x) for one in found), len(sample.kinds)), np.int64)
    for one, first in zip(found, np.cumsum([0, *(len(one.x) for one in found)]).tolist(), strict=False):
        rows[first : first + len(one.x), one.kinds] = one.x
    cost = np.concatenate([one.cost for one in found])
    order = np.lexsort((rows @ sample.kinds.breaks if fewest else np.zeros(len(rows)), cost))
    once = np.array(list({rows[at].tobytes(): at for at in order[::-1]}.values())[::-1], np.int64)
    first, cost = once[:t], cost[once]
    last = cost[t - 1] if len(cost) >= t else UNLIMITED
    tied = bool((cost[t:] == last).any()) or any(one.tied and one.cost[-1] == last for one in found)
    kinds = np.unique(np.concatenate([one.kinds for one in found]))
    return Likely(
        kinds, rows[np.ix_(first, kinds)], cost[:t], tied, len(once) <= t and all(one.all_there for one in found),
        reduce(weaker, (one.proof for one in found)), any(one.clock for one in found),
    )  # fmt: skip


def _likely(sample: Sample, block: Block, t: int, rng: np.random.Generator, ladder: Ladder, fewest: bool) -> Likely:
    """The same under one reading."""
    listing = _Listing(sample, block, rng, ladder, fewest)
    rows: list[Count] = []
    costs: list[int] = []
    for part, price in listing.parts():
        ways = listing.ways(part, t + 1 - len(rows))
        rows += list(ways)
        costs += [price] * len(ways)
        if len(rows) > t:
            break
    x = np.array(rows[:t], np.int64).reshape(-1, len(listing.chosen))
    tied = len(rows) > t and costs[t] == costs[t - 1]
    all_there = len(rows) <= t and not listing.cut
    return Likely(listing.chosen, x, np.array(costs[:t], np.int64), tied, all_there, listing.proof, listing.clock)


class _Listing:
    """The census parts of a block in order of cost, and the ways to house each."""

    def __init__(self, sample: Sample, block: Block, rng: np.random.Generator, ladder: Ladder, fewest: bool) -> None:
        self.rng, self.ladder, self.fewest = rng, ladder, fewest
        self.proof, self.clock, self.cut = Proof.EXACT, False, False
        program, self.chosen = sample.kinds.program(block, sample.cost)
        self.impossible = sample.kinds.too_many(block)
        self.breaks = sample.kinds.breaks[self.chosen]
        _, self.kind = np.unique(sample.of[self.chosen], return_inverse=True)
        self.numbers = int(self.kind.max(initial=-1)) + 1  # of kinds in the sample that the block can have
        self.program = _with_sums(program, self.kind, self.numbers)
        self.first = len(program.row_lower)
        self.asked = 0

    def parts(self) -> Iterator[tuple[Count, int]]:
        """Census parts (households of each kind of the sample) and their costs, from the cheapest on."""
        if self.impossible:
            return
        ticket = count()
        heap: list[tuple[int, int, Count | None, Count, Count]] = []

        def add(lower: Count, upper: Count) -> None:
            """A box, by what its relaxation says it cannot cost less than; most are never solved."""
            floor, part = self._relaxed(lower, upper)
            if floor is not None:
                heapq.heappush(heap, (floor, next(ticket), part, lower, upper))

        add(np.zeros(self.numbers, np.int64), self._most())
        begun = False
        while heap:
            price, _, part, lower, upper = heapq.heappop(heap)
            if part is None:
                found = self._cheapest(lower, upper)
                if found is not None:
                    heapq.heappush(heap, (found[0], next(ticket), found[1], lower, upper))
                continue
            if not begun:
                part = self._by_chance(part, price)
            begun = True
            yield part, price
            for rest in without(part, lower, upper):
                if not self._enough():
                    add(*rest)

    def _enough(self) -> bool:
        """Too many questions were asked: what follows may not be the next best."""
        self.asked += 1
        if self.asked > BOXES:
            self.cut, self.proof = True, Proof.UNDECIDED
        return self.asked > BOXES

    def _most(self) -> Count:
        most = np.zeros(self.numbers, np.int64)
        np.add.at(most, self.kind, self.program.upper)
        return most

    def _boxed(self, lower: Count, upper: Count) -> IntegerProgram:
        program = self.program
        return replace(
            program,
            row_lower=np.concatenate([program.row_lower[: self.first], lower]),
            row_upper=np.concatenate([program.row_upper[: self.first], upper]),
        )

    def _relaxed(self, lower: Count, upper: Count) -> tuple[int | None, Count | None]:
        """What no census part of a box costs less than (None: there is none), and the cheapest one if it is known."""
        program = self._boxed(lower, upper)
        solution = relaxation(program, self.ladder)
        self.clock |= solution.clock
        if solution.proof == Proof.UNDECIDED:
            return (0 if solution.floor is None else solution.floor), None
        return (None, None) if solution.x is None else (program.value(solution.x), self._census(solution.x))

    def _cheapest(self, lower: Count, upper: Count) -> tuple[int, Count] | None:
        """The cheapest census part within a box."""
        program = self._boxed(lower, upper)
        solution = engage(program, self.ladder, confirm=True)
        self.clock |= solution.clock
        self.proof = weaker(self.proof, solution.proof)
        if solution.x is None:
            self.cut |= solution.outcome != Outcome.INFEASIBLE
            return None
        return program.value(solution.x), self._census(solution.x)

    def _census(self, x: Count) -> Count:
        part = np.zeros(self.numbers, np.int64)
        np.add.at(part, self.kind, x)
        return part

    def _by_chance(self, part: Count, price: int) -> Count:
        """Another part that costs no more, if the seed has it so: no solver's preference decides which comes first."""
        program = self.program.with_row(self.program.cost, -UNLIMITED, price)
        weights = self.rng.integers(0, 1000, self.numbers)[self.kind]
        solution = engage(replace(program, cost=weights), self.ladder, confirm=False)
        if solution.x is None or self.program.value(solution.x) > price:
            return part
        return self._census(solution.x)

    def ways(self, part: Count, wanted: int) -> Count:
        """Different ways to house a census part, so many if there are: with the fewest violations first, or any."""
        inside = np.flatnonzero(part[self.kind] > 0)
        one = self._housing(part, inside)
        found: list[Count] = []
        for program in self._by_violations(one, inside) if self.fewest else [one]:
            found += list(self._some(program, wanted - len(found)))
            if len(found) >= wanted:
                break
        rows = np.zeros((len(found), len(self.chosen)), np.int64)
        rows[:, inside] = np.array(found, np.int64).reshape(len(found), len(inside))
        return rows

    def _by_violations(self, one: Programs, inside: Ints) -> Iterator[Programs]:
        """The ways with the fewest violations, then those with one more, and so on."""
        broken = self.breaks[inside].astype(np.int64)
        ends = []
        for sign in (1, -1):
            solution = engage(one.integer_program(sign * broken), self.ladder, confirm=True)
            self.clock |= solution.clock
            self.proof = weaker(self.proof, solution.proof)
            if solution.x is None:
                return
            ends.append(int(broken @ solution.x))
        for number in range(ends[0], ends[1] + 1):
            yield Programs.of(one.integer_program(broken).with_row(broken, number, number))

    def _some(self, one: Programs, wanted: int) -> Count:
        """Ways that fit a program: all, in an order by chance, or so many that were drawn."""
        found, through = enumerate_part(one, 0, wanted, STEPS * wanted)
        return found[self.rng.permutation(len(found))] if through else self._drawn(one, wanted)

    def _housing(self, part: Count, inside: Ints) -> Programs:
        """The program of the ways to house a census part."""
        program = self._boxed(part, part)
        return Programs.of(replace(program, upper=np.minimum(program.upper, part[self.kind])).only(inside))

    def _drawn(self, one: Programs, wanted: int) -> Count:
        """Different ways that were drawn, in the order they came."""
        several = _copies(one, wanted)
        width = len(one.lower)
        found: dict[bytes, Count] = {}
        for _ in range(BATCHES):
            seeds = self.rng.integers(0, 2**64, wanted, dtype=np.uint64)
            answers = some(split(several, np.zeros(wanted, np.bool_)), seeds, self.ladder)
            self.clock |= bool(answers.clock.any())
            for x, fits in zip(answers.x.reshape(wanted, width), answers.fits, strict=True):
                if fits:
                    found.setdefault(x.tobytes(), x)
            if len(found) >= wanted:
                break
        else:
            found |= self._listed(one, wanted, found)
        return np.array(list(found.values())[:wanted], np.int64).reshape(-1, width)

    def _listed(self, one: Programs, wanted: int, drawn: dict[bytes, Count]) -> dict[bytes, Count]:
        """What draws have missed, listed one after the other for as long as it takes, within reason."""
        more, through = enumerate_part(one, 0, wanted, 100 * STEPS * wanted)
        if not through and len({*drawn, *(x.tobytes() for x in more)}) < wanted:
            self.cut, self.proof = True, Proof.UNDECIDED
        return {x.tobytes(): x for x in more if x.tobytes() not in drawn}


def _with_sums(program: IntegerProgram, group: Ints, groups: int) -> IntegerProgram:
    """The program with a row for each group of variables: their sum, without limits."""
    order = np.argsort(group, kind="stable")
    sizes = np.bincount(group, minlength=groups)
    return replace(
        program,
        row_lower=np.concatenate([program.row_lower, np.zeros(groups, np.int64)]),
        row_upper=np.concatenate([program.row_upper, np.full(groups, UNLIMITED)]),
        starts=np.concatenate([program.starts, program.starts[-1] + np.cumsum(sizes)]),
        index=np.concatenate([program.index, order.astype(np.int32)]),
        coefficient=np.concatenate([program.coefficient, np.ones(len(order), np.int64)]),
    )


def _copies(one: Programs, number: int) -> Programs:
    """The same program so many times."""
    n, m, entries = len(one.lower), len(one.row_lower), len(one.index)
    shift = np.repeat(np.arange(number), entries) * n
    return Programs(
        np.arange(number + 1) * n, np.tile(one.lower, number), np.tile(one.upper, number),
        np.arange(number + 1) * m, np.tile(one.row_lower, number), np.tile(one.row_upper, number),
        np.concatenate([[0], (np.repeat(np.arange(number), m) * entries) + np.tile(one.starts[1:], number)]),
        (np.tile(one.index, number) + shift).astype(np.int32), np.tile(one.coefficient, number),
    )  # fmt: skip
