"""Does the core say of all histograms what brute force says? Every question, every rung, on thousands of toys."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
import pytest

from glasshouse.errors import InputError
from glasshouse.model.records import UNLIMITED
from glasshouse.model.release import Counts, build_table
from glasshouse.model.schema import EVERYONE, Group, Impossible, Predicate, Recode, Schema
from glasshouse.program.answers import Answers
from glasshouse.program.conflict import conflict
from glasshouse.program.cpsat import cpsat
from glasshouse.program.highs import highs
from glasshouse.program.integer import Limit, Outcome, Proof, Unbounded
from glasshouse.program.ladder import Ladder
from glasshouse.program.listing import every, top
from glasshouse.program.nearest import nearest
from glasshouse.program.questions import Start, best, farthest, one, start_of
from glasshouse.program.ranges import ranges
from glasshouse.program.tables.histogram import Area, Compiled, Problem, compile_tables, places_alone, places_jointly
from tests.often import often
from tests.oracles import (
    Ints,
    Limits,
    Toy,
    attribute,
    kinds_of,
    mask_of,
    random_groups,
    random_predicate,
    random_table,
    satisfiable,
    total_table,
    toys,
)

LADDERS = {
    "default": Ladder(),
    "propagation and highs": Ladder(propagate=True, nodes=0, engines=(highs,)),
    "two engines": Ladder(propagate=False, nodes=0, engines=(highs, cpsat)),
    "cpsat": Ladder(propagate=False, nodes=0, engines=(cpsat,)),
    "propagation and search": Ladder(propagate=True, nodes=10**6, engines=()),
    "search": Ladder(propagate=False, nodes=10**6, engines=()),
    "short search": Ladder(nodes=4, engines=()),
    "short search and engines": Ladder(nodes=4),
}
SURE = {"default", "two engines", "propagation and search", "search", "short search and engines"}  # settle every toy
QUICK = {"default", "propagation and search", "search", "short search"}  # rungs that list without going box by box
SHARE = {"default": 60, "propagation and highs": 30, "two engines": 25, "cpsat": 25, "propagation and search": 45,
         "search": 45, "short search": 45, "short search and engines": 35}  # fmt: skip  # toys of each sort
SHARE = {rung: often(toys) for rung, toys in SHARE.items()}
CLIMBED = (Outcome.OPTIMAL, Outcome.FEASIBLE)

each_ladder = pytest.mark.parametrize("rung", LADDERS)


def fine(schema: Schema) -> list[Predicate]:
    """Predicates that tell every level apart."""
    return [schema.where({a.name: [level]}) for a in schema.attributes for level in range(len(a))]


@dataclass(frozen=True, eq=False)
class Case:
    """A problem, and for each of its programs every histogram that fits, over the kinds of its places."""

    toy: Toy
    problem: Problem
    fitting: tuple[Ints, ...]

    @cached_property
    def cell_of_kind(self) -> Ints:
        return self.problem.compiled.cells.of(self.toy.kinds.astype(np.int16))

    @property
    def width(self) -> int:
        return len(self.problem.compiled.cells)

    def places(self, number: int) -> Ints:
        return np.flatnonzero(self.problem.program == number)

    def on_cells(self, histograms: Ints) -> Ints:
        """Histograms over places x kinds as histograms over places x cells."""
        n, places = len(self.toy.kinds), histograms.shape[1] // max(len(self.toy.kinds), 1)
        result = np.zeros((len(histograms), places * self.width), np.int64)
        for place in range(places):
            for kind in range(n):
                result[:, place * self.width + self.cell_of_kind[kind]] += histograms[:, place * n + kind]
        return result

    @cached_property
    def cells(self) -> tuple[Ints, ...]:
        """For each program every histogram over places x cells that fits."""
        return tuple(np.unique(self.on_cells(some), axis=0) for some in self.fitting)

    @cached_property
    def sets(self) -> tuple[set[tuple[int, ...]], ...]:
        return tuple({tuple(row) for row in some.tolist()} for some in self.cells)

    def variables(self, number: int) -> slice:
        return slice(self.problem.programs.first[number], self.problem.programs.first[number + 1])

    def at(self, number: int) -> Ints:
        """Where the variables of a program stand in places x cells."""
        mine = self.variables(number)
        first = self.places(number)[0] if len(self.places(number)) else 0
        return (self.problem.place[mine].astype(np.int64) - first) * self.width + self.problem.cell[mine]

    def spread(self, number: int, x: Ints) -> Ints:
        """Values of the variables of a program (rows) over places x cells."""
        wide = np.zeros((*x.shape[:-1], len(self.places(number)) * self.width), np.int64)
        wide[..., self.at(number)] = x
        return wide

    def cost(self, rng: np.random.Generator) -> Ints:
        return rng.integers(-4, 5, len(self.problem.programs.lower))

    def values(self, number: int, cost: Ints) -> Ints:
        """What each fitting histogram costs."""
        return self.cells[number][:, self.at(number)] @ cost[self.variables(number)]


def compiled_of(toy: Toy, *, told: bool = False, finest: bool = True) -> Compiled:
    return compile_tables(
        toy.schema,
        toy.tables,
        toy.counts.variables,
        around=toy.around,
        around_present=toy.area.variables if toy.area is not None else (),
        told_apart=fine(toy.schema) if told else (),
        finest=finest,
    )


def area_of(toy: Toy, compiled: Compiled) -> Area:
    assert toy.area is not None and toy.of is not None and compiled.around is not None
    columns = [toy.area.column[name] for name in compiled.around.variables]
    return Area(toy.area.lower[:, columns], toy.area.upper[:, columns], toy.of)


def case_of(toy: Toy, *, told: bool = False) -> Case:
    compiled = compiled_of(toy, told=told)
    if toy.area is None:
        return Case(toy, places_alone(compiled, toy.counts), toy.alone)
    return Case(toy, places_jointly(compiled, toy.counts, area_of(toy, compiled)), toy.jointly)


@cache
def cases(sort: str, count: int) -> tuple[Case, ...]:
    """Cases of a sort; every second one has cells that tell everything apart."""
    return tuple(case_of(toy, told=toy.seed % 2 == 1) for toy in toys(sort, count))


def some_cases(rung: str, *sorts: str) -> list[Case]:
    return [case for sort in sorts for case in cases(sort, SHARE[rung])]


ADMITTED = ("exact", "interval", "tallied", "joint")
REFUSED = ("contradictory", "fractional", "broken")


def programs_of(case: Case) -> range:
    return range(len(case.problem.programs))


def where(case: Case, number: int = 0) -> str:
    return f"seed {case.toy.seed}, program {number}, area {case.toy.area is not None}"


def check(case: Case, answers: Answers, cost: Ints | None, rung: str) -> None:
    """Are the answers what brute force says? Of `one` (no cost) it is only asked to fit."""
    assert len(answers.outcome) == len(case.problem.programs)
    for number in programs_of(case):
        about = where(case, number)
        outcome, proof = answers.outcome[number], answers.proof[number]
        if not len(case.cells[number]):
            assert outcome == Outcome.INFEASIBLE or (rung not in SURE and outcome == Outcome.STOPPED), about
            assert rung not in SURE or proof != Proof.UNDECIDED, about
            assert not answers.fits[number], about
            continue
        if rung == "short search" and outcome == Outcome.STOPPED:
            assert not answers.fits[number] and proof == Proof.UNDECIDED, about
            assert cost is None or answers.floor[number] <= case.values(number, cost).min(), about
            continue
        assert outcome in CLIMBED and answers.fits[number], about
        x = answers.x[case.variables(number)]
        assert tuple(case.spread(number, x).tolist()) in case.sets[number], about
        if cost is None:
            continue
        least = int(case.values(number, cost).min())
        assert answers.floor[number] <= least <= answers.value[number], about
        assert answers.value[number] == x @ cost[case.variables(number)], about
        assert rung not in SURE or proof != Proof.UNDECIDED, about
        if proof != Proof.UNDECIDED:
            assert outcome == Outcome.OPTIMAL, about
            assert answers.floor[number] == least == answers.value[number], about


# Every histogram


@each_ladder
def test_every_lists_exactly_the_histograms_of_brute_force(rung: str) -> None:
    for case in some_cases(rung, *ADMITTED, *REFUSED):
        for number in programs_of(case):
            wanted = case.sets[number]
            if rung not in QUICK and len(wanted) > 12:
                continue  # solvers go box by box
            found = every(case.problem, len(wanted) + 1, number, LADDERS[rung])
            rows = [tuple(row) for row in case.spread(number, found.x).tolist()]
            assert len(set(rows)) == len(rows) and set(rows) <= wanted, where(case, number)
            assert found.complete or rung not in SURE, where(case, number)
            assert found.complete == (found.proof != Proof.UNDECIDED), where(case, number)
            if found.complete:
                assert set(rows) == wanted, where(case, number)


@each_ladder
def test_every_with_less_room_than_needed_is_not_complete(rung: str) -> None:
    rng = np.random.default_rng(1)
    for case in some_cases(rung, *ADMITTED):
        for number in programs_of(case):
            wanted = case.sets[number]
            if len(wanted) < 2 or (rung not in QUICK and len(wanted) > 12):
                continue
            limit = int(rng.integers(1, len(wanted)))
            found = every(case.problem, limit, number, LADDERS[rung])
            rows = {tuple(row) for row in case.spread(number, found.x).tolist()}
            assert not found.complete and len(found.x) == len(rows) and rows <= wanted, where(case, number)
            assert len(rows) == limit or rung == "short search", where(case, number)
            exactly = every(case.problem, len(wanted), number, LADDERS[rung])
            assert exactly.complete or rung not in SURE, where(case, number)


# One histogram


@each_ladder
def test_one_fits_if_and_only_if_something_fits(rung: str) -> None:
    for case in some_cases(rung, *ADMITTED, *REFUSED):
        check(case, one(case.problem, np.random.default_rng(case.toy.seed), LADDERS[rung]), None, rung)


@each_ladder
def test_the_same_seed_draws_the_same_histogram(rung: str) -> None:
    for case in some_cases(rung, *ADMITTED)[::5]:
        once, again = (one(case.problem, np.random.default_rng(7), LADDERS[rung]) for _ in range(2))
        assert (once.x == again.x).all() and once.outcome == again.outcome


@pytest.mark.parametrize("rung", ["default", "search", "propagation and search"])
def test_different_seeds_reach_every_histogram_of_a_small_toy(rung: str) -> None:
    tried = 0
    for case in some_cases(rung, *ADMITTED):
        for number in programs_of(case):
            if not 2 <= len(case.sets[number]) <= 4 or tried > 60:
                continue
            tried += 1
            drawn = set()
            for seed in range(400):
                x = one(case.problem, np.random.default_rng(seed), LADDERS[rung]).x[case.variables(number)]
                drawn.add(tuple(case.spread(number, x).tolist()))
                if drawn == case.sets[number]:
                    break
            assert drawn == case.sets[number], where(case, number)
    assert tried > 15


@pytest.mark.parametrize("rung", ["propagation and highs", "two engines", "cpsat"])
def test_solvers_too_are_not_sent_to_the_same_corner_every_time(rung: str) -> None:
    several = 0
    tried = 0
    for case in some_cases(rung, *ADMITTED):
        for number in programs_of(case):
            if len(case.sets[number]) >= 3 and tried < 15:
                tried += 1
                draws = [
                    one(case.problem, np.random.default_rng(s), LADDERS[rung]).x[case.variables(number)]
                    for s in range(10)
                ]
                several += len({tuple(x.tolist()) for x in draws}) > 1
    assert tried > 5 and several >= 0.8 * tried


# The best


@each_ladder
def test_best_costs_what_brute_force_says(rung: str) -> None:
    rng = np.random.default_rng(2)
    for case in some_cases(rung, *ADMITTED, *REFUSED):
        cost = case.cost(rng)
        check(case, best(case.problem, cost, LADDERS[rung]), cost, rung)


@each_ladder
def test_top_lists_the_cheapest_in_order(rung: str) -> None:
    rng = np.random.default_rng(3)
    slow = rung not in QUICK
    for case in some_cases(rung, *ADMITTED, *REFUSED):
        cost = case.cost(rng)
        for number in programs_of(case):
            t = int(rng.integers(1, 4 if slow else 9))
            found = top(case.problem, t, cost, number, LADDERS[rung])
            rows = [tuple(row) for row in case.spread(number, found.x).tolist()]
            assert len(set(rows)) == len(rows) and set(rows) <= case.sets[number], where(case, number)
            assert (found.x @ cost[case.variables(number)] == found.values).all(), where(case, number)
            assert found.complete or rung not in SURE, where(case, number)
            if found.complete:
                cheapest = np.sort(case.values(number, cost))[:t]
                assert found.values.tolist() == cheapest.tolist(), where(case, number)


def test_costs_far_apart_are_added_without_error() -> None:
    for case in cases("exact", 60):
        cost = np.where(np.arange(len(case.problem.programs.lower)) % 2 == 0, 10**9 + 7, -(10**9) + 3).astype(np.int64)
        for rung in ("default", "two engines", "search"):
            check(case, best(case.problem, cost, LADDERS[rung]), cost, rung)


# The farthest


def starts(case: Case, rng: np.random.Generator) -> list[Ints]:
    """Histograms over places x kinds to measure from: the truth, a fitting one of each program, and just any."""
    fitting = case.toy.truth.copy()
    for number in programs_of(case):
        if len(case.fitting[number]) and len(case.places(number)):
            row = case.fitting[number][rng.integers(0, len(case.fitting[number]))]
            fitting[case.places(number)] = row.reshape(len(case.places(number)), -1)
    return [case.toy.truth, fitting, rng.integers(0, 3, case.toy.truth.shape)]


def as_start(case: Case, histogram: Ints) -> Start:
    place, kind = np.nonzero(histogram >= 0)  # with zeros, and with several kinds of the same cell
    return Start(place.astype(np.int64), case.cell_of_kind[kind], histogram[place, kind])


def distances(case: Case, number: int, start: Ints, keys: Ints, counted: np.ndarray) -> Ints:
    """The L1 distance of every fitting histogram from a start, on groups of kinds."""
    places = len(case.places(number))
    wide = case.fitting[number].reshape(-1, places, start.shape[1])
    gap = wide - start[case.places(number)][None]
    total = np.zeros(len(wide), np.int64)
    for key in np.unique(keys[counted]).tolist():
        total += np.abs(gap[:, :, counted & (keys == key)].sum(axis=2)).sum(axis=1)
    return total


def check_farthest(case: Case, start: Ints, keys: Ints, rung: str, on: tuple[Recode, ...], within: Predicate) -> None:
    counted = mask_of(case.toy.schema, case.toy.kinds, within)
    found = farthest(case.problem, as_start(case, start), LADDERS[rung], on=on, within=within)
    for number in programs_of(case):
        about = where(case, number)
        if not len(case.fitting[number]):
            assert not found.answers.fits[number], about
            continue
        all_of_them = distances(case, number, start, keys, counted)
        if rung == "short search" and found.answers.outcome[number] == Outcome.STOPPED:
            assert all_of_them.max() <= found.most[number], about
            continue
        x = case.spread(number, found.x[case.variables(number)])
        assert tuple(x.tolist()) in case.sets[number], about
        assert found.distance[number] <= all_of_them.max() <= found.most[number], about
        here = (case.cells[number] == x).all(axis=1)
        matching = (case.on_cells(case.fitting[number]) == x).all(axis=1)
        assert here.any() and (all_of_them[matching] == found.distance[number]).all(), about
        assert rung not in SURE or found.answers.proof[number] != Proof.UNDECIDED, about
        if found.answers.proof[number] != Proof.UNDECIDED:
            assert found.distance[number] == all_of_them.max() == found.most[number], about


@each_ladder
def test_farthest_is_as_far_as_brute_force_says(rung: str) -> None:
    rng = np.random.default_rng(4)
    for case in some_cases(rung, *ADMITTED, *REFUSED):
        for start in starts(case, rng):
            check_farthest(case, start, case.cell_of_kind, rung, (), EVERYONE)


@each_ladder
def test_farthest_on_coarser_attributes_and_within_a_description(rung: str) -> None:
    rng = np.random.default_rng(5)
    for toy in [toy for sort in ADMITTED for toy in toys(sort, SHARE[rung])]:
        case = case_of(toy, told=True)
        for start in starts(case, rng):
            within = random_predicate(rng, toy.schema) if rng.random() < 0.6 else EVERYONE
            on, keys = [], np.zeros(len(toy.kinds), np.int64)
            for position in range(len(toy.schema.attributes)):
                keys = keys * 10 + toy.kinds[:, position]
            if rng.random() < 0.7:
                keys = np.zeros(len(toy.kinds), np.int64)
                for position, a in enumerate(toy.schema.attributes):
                    groups = random_groups(rng, list(range(len(a))), a.name)
                    if len(groups) > 1 and rng.random() < 0.3:
                        groups = groups[1:]  # what is in no group is one more
                    recode = Recode(a.name, a.name, groups)
                    chosen = rng.random() < 0.7
                    of = np.arange(len(a)) if chosen is False else np.full(len(a), 9)
                    if chosen:
                        on.append(recode)
                        for leaf_number, leaf in enumerate(recode.leaves):
                            of[sorted(leaf.levels)] = leaf_number
                    keys = keys * 10 + of[toy.kinds[:, position]]
            check_farthest(case, start, keys, rung, tuple(on), within)


def test_farthest_refuses_descriptions_that_the_cells_do_not_tell_apart() -> None:
    schema = Schema((attribute("a", 3),))
    compiled = compile_tables(schema, [total_table(schema, "block")], ["T0_1"])
    problem = places_alone(compiled, Counts("block", ("p",), ("T0_1",), np.array([[2]]), np.array([[2]])))
    start = Start(np.zeros(1, np.int64), np.zeros(1, np.int64), np.array([2]))
    with pytest.raises(InputError, match="told_apart"):
        farthest(problem, start, within=schema.where({"a": [0]}))
    with pytest.raises(InputError, match="told_apart"):
        farthest(problem, start, on=[Recode("r", "a", (Group("0", frozenset({0})),))])


# Ranges


@each_ladder
def test_ranges_are_those_of_brute_force(rung: str) -> None:
    rng = np.random.default_rng(6)
    for case in some_cases(rung, *ADMITTED, *REFUSED):
        asked = [random_predicate(rng, case.toy.schema, empty=True) for _ in range(4)] + [EVERYONE]
        masks = [mask_of(case.toy.schema, case.toy.kinds, p) for p in asked]
        for number in programs_of(case):
            about = where(case, number)
            found = ranges(case.problem, asked, number, LADDERS[rung])
            if not len(case.fitting[number]):
                assert found.fits is False or (rung not in SURE and found.fits is None), about
                continue
            assert found.fits is True or (rung == "short search" and found.fits is None), about
            if found.fits is None:
                continue
            wide = case.fitting[number].reshape(len(case.fitting[number]), -1, len(case.toy.kinds))
            for at, mask in enumerate(masks):
                counts = wide[:, :, mask].sum(axis=(1, 2))
                assert found.low[at] <= counts.min() <= found.met_low[at], about
                assert found.met_high[at] <= counts.max() <= found.high[at], about
                assert rung not in SURE or found.proof[at] != Proof.UNDECIDED, about
                if found.proof[at] != Proof.UNDECIDED:
                    assert (found.low[at], found.high[at]) == (counts.min(), counts.max()), about
                    assert (found.met_low[at], found.met_high[at]) == (counts.min(), counts.max()), about


# Conflicts


def believed(toy: Toy, numbers: tuple, compiled: Compiled) -> tuple[int, list[Limits]]:
    """The limits of some numbers alone, over places x kinds."""
    n = len(toy.kinds)
    limits = []
    for number in numbers:
        if number.layer:
            inside = tuple(p * n + v for p in range(len(toy.counts.places)) for v in toy.around_masks[number.variable])
            at = toy.area.column[number.variable]
            assert (number.lower, number.upper) == (toy.area.lower[0, at], toy.area.upper[0, at])
        else:
            place = number.row
            inside = tuple(place * n + v for v in toy.own_masks[number.variable])
            at = toy.counts.column[number.variable]
            assert (number.lower, number.upper) == (toy.counts.lower[place, at], toy.counts.upper[place, at])
        limits.append((inside, number.lower, number.upper))
    return len(toy.counts.places) * n, limits


@each_ladder
def test_a_conflict_is_a_contradiction_of_which_no_number_can_be_spared(rung: str) -> None:
    told = 0
    for case in some_cases(rung, *REFUSED):
        area = None if case.toy.area is None else area_of(case.toy, case.problem.compiled)
        found = conflict(case.problem.compiled, case.toy.counts, area, LADDERS[rung])
        assert found is not None or rung not in SURE, where(case)
        if found is None:
            continue
        told += 1
        assert found.proof != Proof.UNDECIDED, where(case)
        # without a solver, numbers without an upper end can be too much for a search
        assert found.minimal or rung not in SURE or not LADDERS[rung].engines, where(case)
        n, limits = believed(case.toy, found.numbers, case.problem.compiled)
        assert len(limits) and not satisfiable(n, limits), where(case)
        if found.minimal:
            for spared in range(len(limits)):
                assert satisfiable(n, limits[:spared] + limits[spared + 1 :]), where(case)
    assert told > 20


@each_ladder
def test_there_is_no_conflict_where_something_fits(rung: str) -> None:
    for case in some_cases(rung, *ADMITTED):
        if len(case.problem.programs) == 1:
            area = None if case.toy.area is None else area_of(case.toy, case.problem.compiled)
            assert conflict(case.problem.compiled, case.toy.counts, area, LADDERS[rung]) is None, where(case)


# The nearest


def nearest_by_hand(members: np.ndarray, noisy: Ints, weights: Ints, power: int, hard: np.ndarray) -> int | None:
    """The least error over all histograms; a cell never needs more than the largest number that counts it."""
    used = hard | (weights > 0)
    tops = [max([0, *noisy[used & (members[:, cell] > 0)].tolist()]) for cell in range(members.shape[1])]
    if np.prod([top + 1 for top in tops]) > 20_000:
        return -1
    grids = np.meshgrid(*(np.arange(top + 1) for top in tops), indexing="ij")
    x = np.stack([grid.reshape(-1) for grid in grids])
    errors = members @ x - noisy[:, None]
    x_fits = (errors[hard] == 0).all(axis=0)
    total = (weights[~hard, None] * np.abs(errors[~hard]) ** power).sum(axis=0)
    return int(total[x_fits].min()) if x_fits.any() else None


@pytest.mark.parametrize("rung", [rung for rung in LADDERS if LADDERS[rung].engines])  # it always asks a solver
@pytest.mark.parametrize("power", [1, 2])
def test_nearest_errs_as_little_as_brute_force(rung: str, power: int) -> None:
    rng = np.random.default_rng(8)
    tried = missed = 0
    for case in some_cases(rung, "exact"):
        compiled = case.problem.compiled
        names = compiled.own.variables
        if case.toy.seed % 3 == 0 or not names or len(compiled.cells) > 8:
            continue
        members = np.zeros((len(names), len(compiled.cells)), np.int64)
        for row, name in enumerate(names):
            inside = case.toy.own_masks[name]
            for kind in set(inside):
                members[row, case.cell_of_kind[kind]] = inside.count(kind)
        hard = rng.random(len(names)) < 0.15
        exact = np.array([case.toy.counts.lower[0, case.toy.counts.column[name]] for name in names])
        noisy = np.where(hard & (rng.random(len(names)) < 0.9), exact, exact + rng.integers(-2, 3, len(names)))
        noisy = np.minimum(noisy, 4)
        weights = rng.integers(0, 4, len(names))
        wanted = nearest_by_hand(members, noisy, weights, power, hard)
        if wanted == -1:
            continue
        tried += 1
        found = nearest(compiled, noisy, weights, power=power, hard=hard, ladder=LADDERS[rung])
        if wanted is None:
            assert found.outcome in (Outcome.INFEASIBLE, Outcome.STOPPED), where(case)
            assert found.outcome == Outcome.INFEASIBLE or rung not in SURE, where(case)
            missed += 1
            continue
        assert found.outcome in CLIMBED, where(case)
        assert (found.x >= 0).all() and (members @ found.x == found.fitted).all(), where(case)
        assert (found.fitted[hard] == noisy[hard]).all(), where(case)
        error = (weights[~hard] * np.abs(found.fitted - noisy)[~hard] ** power).sum()
        assert found.error == error and found.floor <= wanted <= error, where(case)
        assert rung not in SURE or found.proof != Proof.UNDECIDED, where(case)
        if found.proof != Proof.UNDECIDED:
            assert found.error == wanted == found.floor, where(case)
    assert tried >= often(11)


# Tables of the area around, as limits from above for one place


def projected(case: Case, tighten: bool) -> tuple[Problem, Case]:
    area = area_of(case.toy, case.problem.compiled)
    problem = places_alone(case.problem.compiled, case.toy.counts, area, tighten=tighten)
    return problem, Case(case.toy, problem, case.toy.capped)


@each_ladder
def test_printed_numbers_of_an_area_limit_each_place_from_above(rung: str) -> None:
    rng = np.random.default_rng(9)
    for joint in cases("joint", 2 * SHARE[rung]):
        _, case = projected(joint, tighten=False)
        check(case, one(case.problem, rng, LADDERS[rung]), None, rung)
        cost = case.cost(rng)
        check(case, best(case.problem, cost, LADDERS[rung]), cost, rung)
        if LADDERS[rung].nodes:
            for number in programs_of(case):
                found = every(case.problem, len(case.sets[number]) + 1, number, LADDERS[rung])
                rows = {tuple(row) for row in case.spread(number, found.x).tolist()}
                assert found.complete and rows == case.sets[number], where(case, number)


def fits_at(problem: Problem, place: int, wide: Ints) -> bool:
    """Does a histogram over the cells of one place fit its program? Other places stay empty."""
    used = np.flatnonzero(wide)
    x, lost = problem.start(used, np.full(len(used), place, np.int64), wide[used])
    return bool(problem.programs.fit(x)[place] and not lost[place] and not problem.bad[place])


def test_tightened_limits_of_an_area_keep_whatever_fits_jointly() -> None:
    for joint in cases("joint", 150):
        problem, case = projected(joint, tighten=True)
        for number in programs_of(joint):
            for row in joint.cells[number]:
                for place, wide in zip(joint.places(number), row.reshape(-1, joint.width), strict=True):
                    assert fits_at(problem, int(place), wide), where(joint, number)
        assert case.problem is problem


def test_tightened_limits_of_an_area_admit_nothing_that_its_printed_numbers_refuse() -> None:
    for joint in cases("joint", 150):
        problem, case = projected(joint, tighten=True)
        for place in range(len(joint.toy.counts.places)):
            found = every(problem, 5000, place)
            assert found.complete, where(case, place)
            rows = {tuple(row) for row in case.spread(place, found.x).tolist()}
            assert rows <= case.sets[place], where(case, place)


def test_numbers_of_an_area_finer_than_the_cells_never_refuse_what_fits() -> None:
    for toy in toys("joint", 150):
        compiled = compiled_of(toy, finest=False)
        area = area_of(toy, compiled)
        jointly = Case(toy, places_jointly(compiled, toy.counts, area), toy.jointly)
        for number in programs_of(jointly):
            for row in jointly.cells[number]:
                used = np.flatnonzero(row)
                place = jointly.places(number)[used // jointly.width]
                x, lost = jointly.problem.start(used % jointly.width, place, row[used])
                assert jointly.problem.programs.fit(x)[number] and not lost[number], where(jointly, number)
                assert not jointly.problem.bad[number], where(jointly, number)
        for tighten in (False, True):
            alone = places_alone(compiled, toy.counts, area, tighten=tighten)
            for number in programs_of(jointly):
                for row in jointly.cells[number]:
                    for place, wide in zip(jointly.places(number), row.reshape(-1, jointly.width), strict=True):
                        assert fits_at(alone, int(place), wide), where(jointly, number)


# Laws


def test_the_truth_is_always_admitted() -> None:
    for sort in ADMITTED:
        for case in cases(sort, 130):
            problems = [case.problem]
            if case.toy.area is not None:
                problems += [projected(case, tighten=tighten)[0] for tighten in (False, True)]
            start = as_start(case, case.toy.truth)
            for problem in problems:
                x, lost = problem.start(start.cell, start.place, start.counts)
                assert problem.programs.fit(x).all() and not lost.any() and not problem.bad.any(), where(case)


def test_adding_a_table_never_widens_a_range() -> None:
    rng = np.random.default_rng(10)
    narrowed = 0
    for toy in [toy for sort in ("exact", "interval") for toy in toys(sort, 110)]:
        case = case_of(toy)
        more = random_table(rng, toy.schema, "X", "block")
        nothing = np.zeros((1, len(more.variables)), np.int64)
        masks = toy.masks([more], Counts("block", ("p0",), more.variables, nothing, nothing))
        added = np.stack([toy.truth[:, list(masks[name])].sum(axis=1) for name in more.variables], axis=1)
        counts = Counts(
            "block", toy.counts.places, (*toy.counts.variables, *more.variables),
            np.concatenate([toy.counts.lower, added], axis=1), np.concatenate([toy.counts.upper, added], axis=1),
        )  # fmt: skip
        longer = case_of(replace(toy, tables=(*toy.tables, more), counts=counts))
        asked = [random_predicate(rng, toy.schema) for _ in range(4)]
        for number in programs_of(case):
            before, after = ranges(case.problem, asked, number), ranges(longer.problem, asked, number)
            assert (before.low <= after.low).all() and (after.high <= before.high).all(), where(case, number)
            narrowed += bool((before.low < after.low).any() or (after.high < before.high).any())
    assert narrowed > 50


def test_propagation_removes_no_histogram_that_fits() -> None:
    for sort in ADMITTED:
        for case in cases(sort, 130):
            split = case.problem.split(propagate=True)
            assert not split.impossible.any(), where(case)
            for number in programs_of(case):
                x = case.cells[number][:, case.at(number)]
                mine = case.variables(number)
                assert x.sum() == case.cells[number].sum(), where(case, number)  # no live cell was left out
                assert (split.lower[mine] <= x).all() and (x <= split.upper[mine]).all(), where(case, number)


def test_propagation_refuses_only_what_brute_force_refuses() -> None:
    refused = 0
    for sort in REFUSED:
        for case in cases(sort, 120):
            split = case.problem.split(propagate=True)
            for number in programs_of(case):
                refused += bool(split.impossible[number])
                assert not (split.impossible[number] and len(case.cells[number])), where(case, number)
    assert refused > 100


@each_ladder
def test_a_place_is_answered_the_same_in_a_batch_and_alone(rung: str) -> None:
    rng = np.random.default_rng(11)
    for case in some_cases(rung, "exact", "interval"):
        if len(case.problem.programs) == 1:
            continue
        cost = case.cost(rng)
        start = starts(case, rng)[2]
        together = best(case.problem, cost, LADDERS[rung])
        far = farthest(case.problem, as_start(case, start), LADDERS[rung])
        for place, name in enumerate(case.toy.counts.places):
            own = case.toy.counts
            single = replace(
                case.toy,
                counts=Counts("block", (name,), own.variables, own.lower[[place]], own.upper[[place]]),
                truth=case.toy.truth[[place]],
            )
            alone = case_of(single, told=case.toy.seed % 2 == 1)
            # a place of exact numbers beside places of intervals may have other rows, but the same cells
            mine = cost[case.variables(place)]
            assert (alone.at(0) == case.at(place) % case.width).all(), where(case, place)
            answer = best(alone.problem, mine, LADDERS[rung])
            check(alone, answer, mine, rung)
            if rung in SURE:
                assert answer.value[0] == together.value[place], where(case, place)
            farther = farthest(alone.problem, as_start(alone, start[[place]]), LADDERS[rung])
            if rung in SURE:
                assert farther.distance[0] == far.distance[place], where(case, place)


# Bad input


def little(
    lower: list[int], upper: list[int] | None = None, *, levels: int = 3, zeros: tuple[Impossible, ...] = ()
) -> Problem:
    """One place, one attribute: a total, and every level."""
    schema = Schema((attribute("a", levels),), zeros)
    recode = Recode("a", "a", tuple(Group(f"a{i}", frozenset({i})) for i in range(levels)))
    table = build_table(
        schema, name="T1", level="block", title="a", by=[recode], variable=lambda n: f"T1_{n}", also=[1]
    )
    names = table.variables
    high = lower if upper is None else upper
    counts = Counts("block", ("p",), names, np.array([lower], np.int64), np.array([high], np.int64))
    return places_alone(compile_tables(schema, [table], names), counts)


@each_ladder
def test_an_empty_place_has_one_empty_histogram(rung: str) -> None:
    problem = little([0, 0, 0, 0])
    answers = one(problem, np.random.default_rng(0), LADDERS[rung])
    assert answers.outcome == (Outcome.OPTIMAL,) and answers.proof == (Proof.EXACT,) and answers.x.sum() == 0
    listing = every(problem, 5, ladder=LADDERS[rung])
    assert listing.complete and len(listing.x) == 1 and listing.x.sum() == 0
    found = ranges(problem, [EVERYONE], ladder=LADDERS[rung])
    assert (found.low[0], found.high[0], found.fits) == (0, 0, True)
    nowhere = Start(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))
    assert farthest(problem, nowhere, LADDERS[rung]).distance.tolist() == [0]
    elsewhere = Start(np.zeros(1, np.int64), np.array([2]), np.array([4]))
    assert farthest(problem, elsewhere, LADDERS[rung]).distance.tolist() == [4]


@each_ladder
def test_a_place_with_one_person_is_known_or_not(rung: str) -> None:
    problem = little([1, 0, 1, 0])
    assert every(problem, 5, ladder=LADDERS[rung]).complete
    answers = one(problem, np.random.default_rng(0), LADDERS[rung])
    assert answers.x[problem.cell == 1].tolist() == [1] and answers.x.sum() == 1
    open_ = little([1, 0, 0, 0], [1, 1, 1, 1])
    listing = every(open_, 5, ladder=LADDERS[rung])
    assert listing.complete or rung not in SURE
    assert len(listing.x) <= 3 and (listing.x.sum(axis=1) == 1).all()


@each_ladder
def test_counts_above_two_to_the_31_are_counted_exactly(rung: str) -> None:
    big = 3_000_000_000
    for problem in (little([big, big - 1, 1, 0]), little([big, 0, 1, 0], [big, big, big, 0])):
        answers = best(problem, np.array([-1, 2, 5][: len(problem.cell)]), LADDERS[rung])
        assert answers.fits[0] and answers.x.tolist() == [big - 1, 1]
        assert answers.value[0] == -(big - 1) + 2
        start = Start(np.zeros(1, np.int64), np.zeros(1, np.int64), np.array([big]))
        far = farthest(problem, start, LADDERS[rung])
        most = 2 if problem.programs.upper.max() == big - 1 else 2 * big
        assert far.distance[0] <= most <= far.most[0]
        if far.answers.proof[0] != Proof.UNDECIDED:
            assert far.distance[0] == most == far.most[0]
        found = ranges(problem, [problem.compiled.cells.schema.where({"a": [1]})], ladder=LADDERS[rung])
        assert found.low[0] <= 1 and found.high[0] >= (1 if most == 2 else big)


@pytest.mark.parametrize("limit", [Limit(effort=0), Limit(seconds=0), Limit(effort=0, seconds=0)])
@pytest.mark.parametrize("engines", [(highs,), (cpsat,), (highs, cpsat)])
def test_without_effort_nothing_is_claimed(limit: Limit, engines: tuple) -> None:
    ladder = Ladder(propagate=False, nodes=0, engines=engines, limit=limit)
    for case in [case for sort in (*ADMITTED, *REFUSED) for case in cases(sort, often(60))]:
        rng = np.random.default_rng(0)
        cost = case.cost(rng)
        for answers in (one(case.problem, rng, ladder), best(case.problem, cost, ladder)):
            for number in programs_of(case):
                outcome = answers.outcome[number]
                if outcome == Outcome.INFEASIBLE:
                    assert not len(case.cells[number]) and answers.proof[number] == Proof.EXACT, where(case, number)
                elif outcome != Outcome.STOPPED:  # nothing was left to decide
                    x = case.spread(number, answers.x[case.variables(number)])
                    assert tuple(x.tolist()) in case.sets[number], where(case, number)
        far = farthest(case.problem, as_start(case, case.toy.truth), ladder)
        for number in programs_of(case):
            listing = every(case.problem, 10, number, ladder)
            rows = {tuple(row) for row in case.spread(number, listing.x).tolist()}
            assert rows <= case.sets[number] and not (listing.complete and rows != case.sets[number]), where(
                case, number
            )
            if len(case.fitting[number]):
                everything = np.ones(len(case.toy.kinds), np.bool_)
                true = distances(case, number, case.toy.truth, case.cell_of_kind, everything).max()
                assert far.most[number] >= true, where(case, number)
                assert not far.answers.fits[number] or far.distance[number] <= true, where(case, number)


def test_a_limit_of_nothing_stops_what_propagation_leaves_open() -> None:
    problem = little([2, 0, 0, 0], [2, 2, 2, 2])
    for limit in (Limit(effort=0), Limit(seconds=0)):
        for engines in ((highs,), (cpsat,), (highs, cpsat)):
            ladder = Ladder(nodes=0, engines=engines, limit=limit)
            assert one(problem, np.random.default_rng(0), ladder).outcome == (Outcome.STOPPED,)
            stopped = best(problem, np.array([1, 2, 3]), ladder)
            assert stopped.outcome == (Outcome.STOPPED,) and not stopped.fits.any()
            assert bool(stopped.clock[0]) == (limit.seconds is not None)
            assert ranges(problem, [EVERYONE], ladder=ladder).fits is None
            listing = every(problem, 9, ladder=ladder)
            assert not len(listing.x) and not listing.complete and listing.proof == Proof.UNDECIDED


def test_undecided_ranges_still_hold_every_count() -> None:
    ladder = Ladder(nodes=0, limit=Limit(effort=0))
    problem = little([2, 0, 0, 0], [2, 2, 2, 2])
    found = ranges(problem, [EVERYONE], ladder=ladder)
    assert found.low[0] <= 2 <= found.high[0]


def test_no_question_answers_where_nothing_fits() -> None:
    rng = np.random.default_rng(12)
    for sort in REFUSED:
        for case in cases(sort, 100):
            assert not one(case.problem, rng).fits.any()
            assert not best(case.problem, case.cost(rng)).fits.any()
            assert not farthest(case.problem, as_start(case, case.toy.truth)).answers.fits.any()
            assert not len(every(case.problem, 3).x) and not len(top(case.problem, 3, case.cost(rng)).x)
            assert ranges(case.problem, [EVERYONE]).fits is False


def test_numbers_of_impossible_records_contradict() -> None:
    schema = Schema((attribute("a", 3),))
    zeros = (Impossible(schema.where({"a": [2]}), "never"),)
    assert one(little([1, 0, 0, 1], zeros=zeros), np.random.default_rng(0)).outcome == (Outcome.INFEASIBLE,)
    assert one(little([1, 1, 0, 0], zeros=zeros), np.random.default_rng(0)).outcome == (Outcome.OPTIMAL,)
    every_kind = (Impossible(schema.where({"a": [0]}), "never"), Impossible(schema.where({"a": [1, 2]}), "never"))
    assert one(little([0, 0, 0, 0], zeros=every_kind), np.random.default_rng(0)).outcome == (Outcome.OPTIMAL,)
    assert one(little([1, 0, 0, 1], zeros=every_kind), np.random.default_rng(0)).outcome == (Outcome.INFEASIBLE,)


def test_a_range_below_zero_contradicts() -> None:
    assert one(little([0, -3, 0, 0], [2, -1, 2, 2]), np.random.default_rng(0)).outcome == (Outcome.INFEASIBLE,)
    assert one(little([0, -3, 0, 0], [2, 0, 2, 2]), np.random.default_rng(0)).fits.all()


def test_start_of_gives_back_the_histogram() -> None:
    for case in cases("joint", 60):
        answers = one(case.problem, np.random.default_rng(0))
        start = start_of(case.problem, answers.x)
        x, lost = case.problem.start(start.cell, start.place, start.counts)
        assert (x == answers.x).all() and not lost.any()
        assert farthest(case.problem, start).distance.min() >= 0


def test_costs_too_large_for_int64_are_refused_or_right() -> None:
    big = 3_000_000_000
    problem = little([big, 0, 0, 0], [big, big, big, big])
    try:
        answers = best(problem, np.array([4 * 10**9, 5 * 10**9, 6 * 10**9]))
    except InputError:
        return
    assert not answers.fits[0] or int(answers.value[0]) == 4 * 10**9 * big


def uncounted() -> Problem:
    """One place where level a0 is counted once, and nothing is published of a1 and a2."""
    schema = Schema((attribute("a", 3),))
    table = build_table(
        schema, name="T1", level="block", title="a0", by=[], variable=lambda n: f"T1_{n}",
        universe=schema.where({"a": [0]}),
    )  # fmt: skip
    counts = Counts("block", ("p",), ("T1_1",), np.array([[1]]), np.array([[1]]))
    return places_alone(compile_tables(schema, [table], ["T1_1"]), counts)


def test_a_cost_that_falls_without_end_is_refused_by_every_rung() -> None:
    for rung in SURE:
        with pytest.raises(Unbounded):
            best(uncounted(), np.array([1, -1]), LADDERS[rung])


def test_the_range_of_what_nothing_limits_is_unlimited_on_every_rung() -> None:
    problem = uncounted()
    asked = [problem.compiled.cells.schema.where({"a": [1]}), problem.compiled.cells.schema.where({"a": [0]})]
    for ladder in LADDERS.values():
        found = ranges(problem, asked, ladder=ladder)
        assert found.low.tolist() == [0, 1] and found.high[0] >= UNLIMITED and found.high[1] == 1


def two_places() -> tuple[Compiled, Counts]:
    """Two places with their totals, 2 and 3, compiled with the total of an area."""
    schema = Schema((attribute("a", 3),))
    compiled = compile_tables(
        schema, [total_table(schema, "block")], ["T0_1"],
        around=[total_table(schema, "area", "A0")], around_present=["A0_1"], finest=True,
    )  # fmt: skip
    counts = Counts("block", ("p", "q"), ("T0_1",), np.array([[2], [3]]), np.array([[2], [3]]))
    return compiled, counts


def test_an_area_for_only_some_places_is_refused() -> None:
    compiled, counts = two_places()
    totals = np.array([[2], [3]])
    with pytest.raises(InputError):
        places_alone(compiled, counts, Area(totals, totals, np.array([0])))


def test_an_area_without_places_must_be_empty() -> None:
    compiled, counts = two_places()
    for number, outcome in ((0, Outcome.OPTIMAL), (1, Outcome.INFEASIBLE)):
        totals = np.array([[2], [number], [3]])
        problem = places_jointly(compiled, counts, Area(totals, totals, np.array([0, 2])))
        answers = one(problem, np.random.default_rng(0))
        assert answers.outcome == (Outcome.OPTIMAL, outcome, Outcome.OPTIMAL)


@pytest.mark.parametrize(("total", "low", "high"), [(9, [1, 1, 2], [1, 1, 2]), (3, [0, 0, 0], [5, 5, 5])])
def test_a_published_total_of_a_tally_is_kept(total: int, low: list[int], high: list[int]) -> None:
    schema = Schema((attribute("a", 3),))
    pairs = Recode("p", "a", tuple(Group(f"not{i}", frozenset({0, 1, 2} - {i})) for i in range(3)), tally=True)
    table = build_table(schema, name="T1", level="block", title="p", by=[pairs], variable=lambda n: f"T1_{n}", also=[1])
    counts = Counts("block", ("p",), table.variables, np.array([[total, *low]]), np.array([[total, *high]]))
    problem = places_alone(compile_tables(schema, [table], table.variables), counts)
    # every record is counted twice in pairs of three levels, so 9 is not 1 + 1 + 2, and 3 answers cannot be
    assert one(problem, np.random.default_rng(0)).outcome == (Outcome.INFEASIBLE,)


def test_a_published_total_of_a_tally_is_kept_without_its_leaves() -> None:
    schema = Schema((attribute("a", 3),))
    pairs = Recode("p", "a", tuple(Group(f"not{i}", frozenset({0, 1, 2} - {i})) for i in range(3)), tally=True)
    table = build_table(schema, name="T1", level="block", title="p", by=[pairs], variable=lambda n: f"T1_{n}", also=[1])
    numbers = np.array([[3, 1]])  # three answers are one and a half records
    counts = Counts("block", ("p",), ("T1_1", "T0_1"), numbers, numbers)
    compiled = compile_tables(schema, [table, total_table(schema, "block")], counts.variables)
    assert one(places_alone(compiled, counts), np.random.default_rng(0)).outcome == (Outcome.INFEASIBLE,)


def test_a_program_that_does_not_exist_is_refused() -> None:
    with pytest.raises((InputError, IndexError)):
        every(little([2, 0, 0, 0], [2, 2, 2, 2]), 9, number=-1)


def test_conflict_of_several_places_without_an_area_is_refused() -> None:
    schema = Schema((attribute("a", 3),))
    compiled = compile_tables(schema, [total_table(schema, "block")], ["T0_1"])
    numbers = np.array([[1], [-2]])
    with pytest.raises(InputError):
        conflict(compiled, Counts("block", ("p", "q"), ("T0_1",), numbers, numbers))


def test_no_places_and_no_tables_are_no_trouble() -> None:
    schema = Schema((attribute("a", 3),))
    none = np.zeros((0, 1), np.int64)
    compiled = compile_tables(schema, [total_table(schema, "block")], ["T0_1"])
    problem = places_alone(compiled, Counts("block", (), ("T0_1",), none, none))
    assert one(problem, np.random.default_rng(0)).outcome == ()
    empty = np.zeros((1, 0), np.int64)
    open_ = places_alone(compile_tables(schema, [], []), Counts("block", ("p",), (), empty, empty))
    assert best(open_, np.ones(len(open_.cell), np.int64)).x.sum() == 0
    assert len(kinds_of(schema)) == 3


@pytest.mark.parametrize(("far", "sure"), [(40, True), (4_000, True), (4_000_000, False)])
def test_nearest_takes_large_errors_or_gives_bounds(far: int, sure: bool) -> None:
    compiled = little([0, 0, 0, 0]).compiled
    noisy = np.array([0 if name == "T1_1" else far for name in compiled.own.variables])
    found = nearest(compiled, noisy, np.ones(4, np.int64))
    # a total of 0 against three levels of `far`: each level gives way by three quarters
    least = 4 * (3 * far // 4) ** 2
    assert found.floor <= least <= found.error
    assert (found.proof != Proof.UNDECIDED) == sure
    assert not sure or found.error == least
