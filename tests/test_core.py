"""What must the core show on real tables? Blocks unique with the tract tables, each one answered, and no luck."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glasshouse.errors import InputError
from glasshouse.files.records import level_matrix, open_records
from glasshouse.files.tables import open_tables
from glasshouse.model.records import Records
from glasshouse.model.release import Counts, Release
from glasshouse.model.schema import EVERYONE
from glasshouse.model.tabulate import tabulate
from glasshouse.program.integer import Outcome, Proof
from glasshouse.program.ladder import Rung
from glasshouse.program.questions import Start, farthest, one, start_of
from glasshouse.program.tables.histogram import Area, Compiled, Problem, compile_tables, places_alone, places_jointly
from glasshouse.program.tables.refine import prepare, refine
from glasshouse.scenarios.load import Scenario
from tests.often import often


@pytest.fixture(scope="module")
def compiled(sf1: Scenario) -> Compiled:
    """All 34 person tables: cells are what the block tables tell apart."""
    return _compile(sf1, finest=False)


def _compile(scenario: Scenario, *, finest: bool) -> Compiled:
    inner = [table for table in scenario.tables if table.level == "block"]
    outer = [table for table in scenario.tables if table.level == "tract"]
    return compile_tables(
        scenario.schema, inner, [v for t in inner for v in t.variables],
        around=outer, around_present=[v for t in outer for v in t.variables], finest=finest,
    )  # fmt: skip


def _people(scenario: Scenario, sizes: list[int], seed: int) -> Records:
    """Persons of a few common kinds, in blocks of these sizes."""
    rng = np.random.default_rng(seed)
    block = np.repeat(np.arange(len(sizes)), sizes)
    n = len(block)
    race = np.where(rng.random(n) < 0.6, 0, rng.choice([1, 3, 5, 6, 9, 11], n))
    columns = [rng.integers(0, 2, n), rng.integers(0, 100, n), race, rng.random(n) < 0.25]
    places = tuple(f"99001000001{number + 1000}" for number in range(len(sizes)))
    return Records(scenario.schema, places, block.astype(np.int32), np.column_stack(columns).astype(np.int16))


def _published(scenario: Scenario, records: Records) -> tuple[Counts, Counts]:
    whole = Records(records.schema, ("99001000001",), np.zeros(len(records), np.int32), records.codes)
    inner = tabulate(records, [t for t in scenario.tables if t.level == "block"], "block")
    return inner, tabulate(whole, [t for t in scenario.tables if t.level == "tract"], "tract")


def _area(compiled: Compiled, inner: Counts, outer: Counts) -> Area:
    assert compiled.around is not None
    columns = [outer.column[variable] for variable in compiled.around.variables]
    of = np.array([outer.row[place[:11]] for place in inner.places])
    return Area(outer.lower[:, columns], outer.upper[:, columns], of)


# the structure that makes it fast


def test_a_cell_of_the_person_tables_lies_in_at_most_four_rows(compiled: Compiled) -> None:
    """FINDINGS G: after differencing nested rows each cell lies in at most four."""
    rows = compiled.own.members[: compiled.own.differences]
    assert len(compiled.cells) == 2 * 38 * 63 * 2
    assert set(np.asarray(rows.sum(axis=0)).ravel()) == {1, 2, 3, 4}


def test_under_18_and_18_and_over_are_independent(compiled: Compiled, sf1: Scenario) -> None:
    """FINDINGS A. Besides, 72 cells are known by themselves: White alone, by origin, sex and bin, from 20 on."""
    rows = compiled.own.members[: compiled.own.differences]
    young = compiled.cells.inside(sf1.schema.where({"age": range(18)}))
    assert young.sum() == len(compiled.cells) * 18 // 38  # single years below 20
    inside, size = rows @ young.astype(np.int64), np.asarray(rows.sum(axis=1)).ravel()
    assert ((inside == 0) | (inside == size)).all()
    assert compiled.parts == 2 + 72


def test_the_tract_tables_say_sex_bin_race_group_and_origin_exactly(compiled: Compiled) -> None:
    """FINDINGS A: their rows, added up to bins, are a partition of the cells."""
    assert compiled.around is not None
    rows = compiled.around.members[: compiled.around.differences]
    assert rows.shape[0] == 2 * 38 * 7 * 2
    assert (np.asarray(rows.sum(axis=0)).ravel() == 1).all()


# the 14 real tracts


@pytest.fixture(scope="module")
def tracts(data: Path, sf1: Scenario) -> list[Release]:
    return list(open_tables(data / "sf1_tracts" / "tables.csv.gz", sf1).releases())


def test_every_block_of_the_real_tracts_is_unique_with_the_tract_tables(
    tracts: list[Release], compiled: Compiled, data: Path, sf1: Scenario
) -> None:
    """README of the data: sex, 38-bin age, race and Hispanic origin of every block are certain (equation 8)."""
    file = open_records(data / "sf1_tracts" / "records.csv.gz", sf1)
    truth: dict[str, list[np.ndarray]] = {}  # type: ignore[type-arg]
    for frame in file.frames():
        codes, places = level_matrix(frame, sf1.schema), frame["geoid"].to_list()
        for place, row in zip(places, codes, strict=True):
            truth.setdefault(place, []).append(row)
    blocks = 0
    for release in tracts:
        inner, outer = release.levels["block"], release.levels["tract"]
        problem = places_alone(compiled, inner, _area(compiled, inner, outer))
        found = one(problem, np.random.default_rng(1))
        assert set(found.outcome) == {Outcome.OPTIMAL}
        far = farthest(problem, start_of(problem, found.x))
        assert (far.most == 0).all()
        assert set(far.answers.proof) == {Proof.EXACT}
        for number, place in enumerate(inner.places):
            variables = slice(problem.programs.first[number], problem.programs.first[number + 1])
            known = np.zeros(len(compiled.cells), np.int64)
            known[problem.cell[variables]] = found.x[variables]
            real = compiled.cells.of(np.array(truth[place], np.int16))
            assert (known == np.bincount(real, minlength=len(known))).all()
        blocks += len(inner.places)
    assert blocks == 4558


def test_blocks_that_need_the_tract_tables_are_not_unique_without_them(
    tracts: list[Release], compiled: Compiled
) -> None:
    """FINDINGS A: 42 of the 8,530 blocks of 28 tracts; these are half of them."""
    open_blocks = 0
    for release in tracts:
        problem = places_alone(compiled, release.levels["block"])
        far = farthest(problem, start_of(problem, one(problem, np.random.default_rng(1)).x))
        assert (far.distance == far.most).all()
        open_blocks += int((far.distance > 0).sum())
    assert open_blocks == 23


def test_every_block_of_guernsey_is_answered_and_proved(data: Path, sf1: Scenario) -> None:
    bins = [sf1.schema.where({"age": leaf.levels}) for leaf in sf1.recodes["age-38"].leaves]
    compiled, answered = None, 0
    for release in open_tables(data / "guernsey" / "tables.csv.gz", sf1).releases():
        counts = release.levels["block"]
        compiled = compiled or compile_tables(sf1.schema, release.published("block"), counts.variables, told_apart=bins)
        problem = places_alone(compiled, counts)
        found = one(problem, np.random.default_rng(1))
        far = farthest(problem, start_of(problem, found.x))
        assert found.fits.all()
        assert Proof.UNDECIDED not in far.answers.proof
        assert (far.distance == far.most).all()
        assert (far.distance % 2 == 0).all()  # the same number of people, so whole records are exchanged
        answered += len(counts.places)
    assert answered == 2185


# laws on made-up blocks of the real tables


@settings(max_examples=often(15))
@given(sizes=st.lists(st.integers(0, 40), min_size=1, max_size=5), seed=st.integers(0, 10**6))
def test_the_truth_is_admitted_and_more_tables_never_allow_more(
    sf1: Scenario, compiled: Compiled, sizes: list[int], seed: int
) -> None:
    records = _people(sf1, sizes, seed)
    inner, outer = _published(sf1, records)
    area = _area(compiled, inner, outer)
    cell = compiled.cells.of(records.codes)
    start = Start(records.place.astype(np.int64), cell, np.ones(len(cell), np.int64))
    reach = []
    for problem in (
        places_alone(compiled, inner),
        places_alone(compiled, inner, area),
        places_alone(compiled, inner, area, tighten=True),
    ):
        x, outside = problem.start(start.cell, start.place, start.counts)
        assert problem.programs.fit(x).all()
        assert not outside.any()
        reach.append(farthest(problem, start).distance)
    assert (reach[0] >= reach[1]).all()
    assert (reach[1] >= reach[2]).all()
    joint = places_jointly(compiled, inner, area)
    x, outside = joint.start(start.cell, start.place, start.counts)
    assert joint.programs.fit(x).all()
    assert not outside.any()
    assert farthest(joint, start).distance[0] <= reach[2].sum()


def test_answers_do_not_depend_on_how_many_work_on_them(sf1: Scenario, compiled: Compiled) -> None:
    units = [_published(sf1, _people(sf1, [30, 60, 5], seed))[0] for seed in range(12)]

    def work(unit: Counts) -> bytes:
        problem = places_alone(compiled, unit)
        found = one(problem, np.random.default_rng(5))
        far = farthest(problem, start_of(problem, found.x))
        return found.x.tobytes() + far.x.tobytes() + far.distance.tobytes()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, units)) == [work(unit) for unit in units]


def test_numbers_may_stand_in_any_order_also_for_two_who_ask_at_once(sf1: Scenario, compiled: Compiled) -> None:
    """Where numbers stand was once remembered for the last asker only, whoever asked."""
    plain = _published(sf1, _people(sf1, [30, 60], 3))[0]
    order = np.random.default_rng(1).permutation(len(plain.variables))
    mixed = np.ascontiguousarray(plain.lower[:, order])
    shuffled = Counts("block", plain.places, tuple(plain.variables[at] for at in order), mixed, mixed)
    wanted = [_solved(places_alone(compiled, counts)) for counts in (plain, shuffled)]
    assert wanted[0] == wanted[1]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda counts: _solved(places_alone(compiled, counts)), [plain, shuffled] * 40))
    assert set(found) == {wanted[0]}


def test_a_place_alone_and_among_others_gets_the_same_distance(sf1: Scenario, compiled: Compiled) -> None:
    records = _people(sf1, [25, 0, 1, 70], 3)
    counts = tabulate(records, [t for t in sf1.tables if t.level == "block"], "block")
    cell = compiled.cells.of(records.codes)
    together = farthest(places_alone(compiled, counts), Start(records.place.astype(np.int64), cell, np.ones_like(cell)))
    for row in range(4):
        alone = Counts("block", (counts.places[row],), counts.variables, *([counts.lower[[row]]] * 2))
        mine = records.place == row
        start = Start(np.zeros(mine.sum(), np.int64), cell[mine], np.ones(mine.sum(), np.int64))
        assert farthest(places_alone(compiled, alone), start).distance[0] == together.distance[row]


def test_a_huge_block_and_an_empty_one_stand_side_by_side(sf1: Scenario, compiled: Compiled) -> None:
    records = _people(sf1, [1, 0, 2000], 8)
    problem = places_alone(compiled, tabulate(records, [t for t in sf1.tables if t.level == "block"], "block"))
    found = one(problem, np.random.default_rng(2))
    assert found.fits.all()
    assert found.rung[1] == Rung.PROPAGATION
    assert not problem.chosen(EVERYONE)[problem.place == 1].any()  # nothing lives there


# exact ages


def test_single_years_dealt_to_the_records_reproduce_every_table(sf1: Scenario, compiled: Compiled) -> None:
    records = _people(sf1, [40, 90, 3, 0, 200], 4)
    inner, outer = _published(sf1, records)
    fine = _compile(sf1, finest=True)
    problem = places_jointly(compiled, inner, _area(compiled, inner, outer))
    found = one(problem, np.random.default_rng(1))
    assert found.fits.all()
    assert fine.around is not None
    numbers = outer.lower[0, [outer.column[variable] for variable in fine.around.variables]]
    entry, cell = refine(prepare(compiled, fine), problem.cell, found.x, numbers, np.random.default_rng(2))
    codes = np.empty((len(entry), 4), np.int16)
    for attribute, classes in enumerate(fine.cells.classes):
        codes[:, attribute] = np.unique(classes, return_index=True)[1][fine.cells.codes[cell, attribute]]
    again = _published(sf1, Records(sf1.schema, inner.places, problem.place[entry], codes))
    assert (again[0].lower == inner.lower).all()
    assert (again[1].lower == outer.lower).all()
    assert (codes != records.codes[: len(codes)]).any()  # it is a solution, not the truth
    with pytest.raises(InputError, match="do not add up"):
        refine(prepare(compiled, fine), problem.cell[:-1], found.x[:-1] + 1, numbers, np.random.default_rng(2))


def test_cells_that_cannot_be_dealt_are_refused(toy: Scenario) -> None:
    inner = [table for table in toy.tables if table.level == "house"]
    outer = [table for table in toy.tables if table.level == "street"]
    present = [v for t in inner for v in t.variables], [v for t in outer for v in t.variables]
    coarse = compile_tables(toy.schema, inner, present[0], around=outer, around_present=present[1])
    alone = compile_tables(toy.schema, inner, present[0])
    fine = compile_tables(toy.schema, inner, present[0], around=outer, around_present=present[1], finest=True)
    with pytest.raises(InputError, match="none were compiled"):
        prepare(alone, fine)
    with pytest.raises(InputError, match="finest"):
        prepare(coarse, fine)


def _solved(problem: Problem) -> bytes:
    return one(problem, np.random.default_rng(5)).x.tobytes()


def test_the_same_seed_draws_the_same_histogram_and_another_seed_another(sf1: Scenario, compiled: Compiled) -> None:
    counts = tabulate(_people(sf1, [80] * 10, 6), [t for t in sf1.tables if t.level == "block"], "block")
    problem = places_alone(compiled, counts)
    assert _solved(problem) == _solved(places_alone(compiled, counts))
    assert len({one(problem, np.random.default_rng(seed)).x.tobytes() for seed in range(10)}) > 5
