"""The peers of the benchmarks are what they claim to be, and the made-up blocks look like blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks import __main__ as bench
from benchmarks import gurobi
from benchmarks.blocks import block_sizes, synthetic, tract
from benchmarks.peers import (
    Ints,
    Model,
    Published,
    farthest_model,
    highs,
    histogram_farthest,
    record_binary,
    record_model,
    solve,
    tract_record_binary,
)

from glasshouse.files.tables import open_tables
from glasshouse.model.records import Records
from glasshouse.model.tabulate import tabulate
from glasshouse.scenarios.load import load

SF1 = load("sf1-person")
BLOCK = [table for table in SF1.tables if table.level == "block"]
TRACT = [table for table in SF1.tables if table.level == "tract"]
CELLS = tuple(variable for table in BLOCK for variable in table.variables)
WHITE, BLACK, ASIAN = 0, 1, 3
WHITE_BLACK, WHITE_ASIAN = (SF1.schema.attribute("race").level(label) for label in ("white+black", "white+asian"))


@pytest.fixture(scope="module")
def exact() -> Published:
    return Published(SF1, "block", CELLS, exact=True)


@pytest.fixture(scope="module")
def binned() -> Published:
    return Published(SF1, "block", CELLS, exact=False)


def one_block(persons: list[tuple[int, int, int, int]]) -> tuple[Records, Ints]:
    """A block of these persons (sex, age, race, Hispanic) and its counts."""
    records = Records(SF1.schema, ("b",), np.zeros(len(persons), np.int32), np.array(persons, np.int16))
    return records, tabulate(records, BLOCK, "block").lower[0]


def blocks_of(sizes: list[int], mix: str, seed: int) -> Iterator[tuple[Records, Ints]]:
    records = synthetic(np.array(sizes), mix, seed)
    for place in range(len(sizes)):
        yield one_block(records.codes[records.place == place].tolist())


def farthest_by_hand(published: Published, row: Ints, start: Ints) -> int:
    """Look at every histogram that has these counts."""
    cells = np.flatnonzero(published.possible(row))
    lines = [published.matrix.indices[slice(*published.matrix.indptr[cell : cell + 2])] for cell in cells]
    best = -1

    def place(index: int, left: Ints, distance: int) -> None:
        nonlocal best
        if index == len(cells):
            best = max(best, distance) if not left.any() else best
            return
        for count in range(int(left[lines[index]].min()) + 1):
            rest = left.copy()
            rest[lines[index]] -= count
            place(index + 1, rest, distance + abs(count - int(start[cells[index]])))

    place(0, row, 0)
    return best


def test_the_matrix_counts_as_tabulate_does(exact: Published, binned: Published) -> None:
    records = synthetic(np.array([300]), "diverse", 4)
    row = tabulate(records, BLOCK, "block").lower[0]
    for published in (exact, binned):
        histogram = published.histogram(records.codes)
        assert histogram.sum() == 300
        assert published.reproduces(histogram, row)
        assert (published.slots(row) >= histogram).all()
        assert (published.ceilings(row) >= histogram).all()
        assert published.possible(row)[histogram > 0].all()
        moved = np.roll(histogram, 1)
        assert not published.reproduces(moved, row)


def test_potential_records_are_as_many_as_p12_counts(exact: Published) -> None:
    """The paper's example: 50 women of 22 to 24 make 50 binaries for each type of a woman of 22, of 23 and of 24."""
    _, row = one_block([(1, 22 + i % 3, ASIAN, 1) for i in range(50)])
    model, _, kind = record_model(exact, row[None], eliminate=False)
    assert len(kind) == 50 * 3 * 63 * 2
    assert set(exact.types[kind, 1]) == {22, 23, 24} and set(exact.types[kind, 0]) == {1}
    assert (model.upper == 1).all()
    _, _, kind = record_model(exact, row[None], eliminate=True)
    assert len(kind) == 50 * 3


@pytest.mark.parametrize("mix", ["national", "diverse"])
def test_record_binaries_reproduce_the_counts(exact: Published, binned: Published, mix: str) -> None:
    for records, row in blocks_of([1, 2, 3, 5, 8, 11, 15], mix, 5):
        for published, eliminate in ((exact, False), (exact, True), (binned, False), (binned, True)):
            answer = record_binary(published, row, eliminate=eliminate, cap=20)
            assert answer.outcome == "solved" and answer.objective is None and 0 < answer.seconds < 20
        # the same once more, counted by tabulate and not by the peer's own matrix
        model, _, kind = record_model(binned, row[None], eliminate=True)
        _, _, values = solve(model, 20)
        found, counts = one_block(binned.types[np.repeat(kind, values)].tolist())
        assert len(found) == len(records)
        assert (counts == row).all()


def test_counts_that_no_block_has_are_infeasible(binned: Published) -> None:
    _, row = one_block([(0, 30, WHITE, 0), (1, 30, BLACK, 0)])
    row = row.copy()
    row[CELLS.index("P0010001")] = 3
    for eliminate in (True, False):
        assert record_binary(binned, row, eliminate=eliminate, cap=20).outcome == "infeasible"


def test_a_timeout_counts_at_the_cap(binned: Published) -> None:
    records = synthetic(np.array([400]), "diverse", 6)
    row = tabulate(records, BLOCK, "block").lower[0]
    assert record_binary(binned, row, eliminate=True, cap=0.001) == (0.001, "timeout", None)


def test_the_farthest_of_two_known_blocks(binned: Published) -> None:
    swap = [(0, 30, WHITE_BLACK, 0), (1, 60, WHITE_ASIAN, 0)]  # who of the two is which?
    ring = [(0, 30, BLACK, 1), (1, 60, BLACK, 0), (0, 30, ASIAN, 0), (1, 60, ASIAN, 1)]  # who is Hispanic?
    unlike = [(0, 30, WHITE, 1), (1, 60, WHITE, 0), (0, 3, ASIAN, 0)]  # P12I tells
    for persons, distance in ((swap, 4), (ring, 8), (unlike, 0)):
        records, row = one_block(persons)
        start = binned.histogram(records.codes)
        assert histogram_farthest(binned, row, start, cap=20).objective == distance
        assert farthest_by_hand(binned, row, start) == distance


def test_the_farthest_equals_brute_force_on_small_blocks(binned: Published) -> None:
    distances = []
    for records, row in blocks_of([3, 4, 5, 6, 6, 7] * 5, "diverse", 8):
        start = binned.histogram(records.codes)
        if binned.possible(row).sum() <= 24:
            distances.append(farthest_by_hand(binned, row, start))
            assert histogram_farthest(binned, row, start, cap=20).objective == distances[-1]
    assert len(distances) >= 15
    assert max(distances) > 0


def test_a_cell_may_overflow_the_start(binned: Published) -> None:
    """Of the same type twice: the binaries matter only where a cell can hold more than the start has."""
    persons = [(0, 30, WHITE_BLACK, 0)] * 2 + [(0, 30, WHITE_ASIAN, 0)] + [(1, 60, WHITE_BLACK, 0)]
    persons += [(1, 60, WHITE_ASIAN, 0)] * 2
    records, row = one_block(persons)
    start = binned.histogram(records.codes)
    answer = histogram_farthest(binned, row, start, cap=20)
    assert answer.objective == farthest_by_hand(binned, row, start) == 8


def test_the_farthest_is_even_and_at_least_as_far_as_the_truth(binned: Published) -> None:
    for records, row in blocks_of([20, 40, 60], "diverse", 9):
        model, _, kind = record_model(binned, row[None], eliminate=True)
        _, _, values = solve(model, 20)
        start = np.bincount(np.repeat(kind, values), minlength=len(binned.types))
        answer = histogram_farthest(binned, row, start, cap=20)
        assert answer.outcome == "solved" and answer.objective is not None
        assert answer.objective % 2 == 0
        assert answer.objective >= np.abs(binned.histogram(records.codes) - start).sum()


def test_a_start_of_another_block_is_refused(binned: Published) -> None:
    _, row = one_block([(0, 30, WHITE, 0)])
    with pytest.raises(ValueError, match="start does not reproduce"):
        histogram_farthest(binned, row, np.zeros(len(binned.types), np.int64), cap=20)


def test_the_binaries_of_a_small_tract_reproduce_both_levels(exact: Published) -> None:
    records = tract(persons=120, blocks=8, seed=2)
    blocks = tabulate(records, BLOCK, "block")
    whole = Records(records.schema, ("t",), np.zeros_like(records.place), records.codes)
    above = tabulate(whole, TRACT, "tract")
    tracts = Published(SF1, "tract", above.variables, exact=True)
    answer = tract_record_binary(exact, blocks.lower, tracts, above.lower[0], cap=20)
    assert answer.outcome == "solved"


def test_a_partial_release_is_modelled_with_what_it_has(data: Path) -> None:
    """Guernsey has no P12; its iterations by race add up to the same."""
    release = next(open_tables(data / "guernsey" / "tables.csv.gz", SF1).releases())
    counts = release.levels["block"]
    published = Published(SF1, "block", counts.variables, exact=False)
    persons = counts.lower[:, counts.column["P0010001"]]
    for place in np.flatnonzero(persons <= 15)[:5]:
        row = counts.lower[place]
        assert published.slots(row[published.kept]).max() <= persons[place]
        for eliminate in (True, False):
            assert record_binary(published, row, eliminate=eliminate, cap=20).outcome == "solved"


needs_gurobi = pytest.mark.skipif(
    not gurobi.available(), reason="gurobipy is not installed, or has no valid licence; it is no dependency"
)


@needs_gurobi
def test_gurobi_finds_what_highs_finds(exact: Published, binned: Published) -> None:
    for records, row in blocks_of([1, 3, 8, 15, 30], "diverse", 5):
        start = binned.histogram(records.codes)
        one, other = (histogram_farthest(binned, row, start, cap=20, by=by) for by in (highs, gurobi.solve))
        assert one.outcome == other.outcome == "solved" and one.objective == other.objective
        assert 0 < other.seconds < 20
        model, _, kind = record_model(binned, row[None], eliminate=True)
        _, outcome, values = solve(model, 20, gurobi.solve)
        assert outcome == "solved"
        _, counts = one_block(binned.types[np.repeat(kind, values)].tolist())
        assert (counts == row).all()
        assert record_binary(exact, row, eliminate=True, cap=20, by=gurobi.solve).outcome == "solved"


@needs_gurobi
def test_gurobi_knows_what_does_not_fit_and_when_to_stop(binned: Published) -> None:
    _, row = one_block([(0, 30, WHITE, 0), (1, 30, BLACK, 0)])
    row = row.copy()
    row[CELLS.index("P0010001")] = 3
    assert record_binary(binned, row, eliminate=True, cap=20, by=gurobi.solve).outcome == "infeasible"
    records = synthetic(np.array([60]), "diverse", 6)
    row = tabulate(records, BLOCK, "block").lower[0]
    model, *_ = farthest_model(binned, row, binned.histogram(records.codes))
    assert max(len(model.cost), len(model.row_lower)) <= gurobi.MOST
    seconds, outcome, values = gurobi.solve(model, 1e-9)
    assert (seconds, outcome, len(values)) == (1e-9, "timeout", 0)


@needs_gurobi
def test_gurobi_is_not_given_more_than_its_licence_allows() -> None:
    def sums(count: int) -> Model:
        """So many numbers, each at most 1, that add up to 7."""
        limit, entries = np.array([7.0]), (np.zeros(count, np.int64), np.arange(count), np.ones(count))
        return Model.of(np.zeros(count), np.ones(count), (limit, limit), entries)

    _, outcome, values = solve(sums(gurobi.MOST), 20, gurobi.solve)
    assert outcome == "solved" and values.sum() == 7
    assert solve(sums(gurobi.MOST + 1), 20, gurobi.solve)[:2] == (0.0, "too large")
    two_sided = replace(sums(3), row_upper=np.array([9.0]))
    with pytest.raises(ValueError, match="two different limits"):
        gurobi.solve(two_sided, 20)


def test_without_gurobi_its_benchmarks_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "latest.json"
    results.write_text('[{"name": "farthest-vs-gurobi", "ratio": 1}]')
    monkeypatch.setattr(bench, "RESULTS", results)
    monkeypatch.setattr(gurobi, "find_spec", lambda name: None)
    assert bench.main(["farthest-vs-gurobi", "feasible-vs-gurobi"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["farthest-vs-gurobi", "feasible-vs-gurobi"]
    assert all("gurobipy is not installed" in line for line in lines)
    assert results.read_text() == '[{"name": "farthest-vs-gurobi", "ratio": 1}]'


def test_made_up_blocks_are_the_same_every_time() -> None:
    sizes = block_sizes(200, 3)
    assert (sizes == block_sizes(200, 3)).all() and (sizes != block_sizes(200, 4)).any()
    for mix in ("national", "diverse"):
        first, again, other = (synthetic(sizes, mix, seed) for seed in (3, 3, 4))
        assert first.places == again.places and (first.codes == again.codes).all()
        assert (first.codes != other.codes).any()
        assert (np.bincount(first.place, minlength=200) == sizes).all()


def test_made_up_places_are_blocks_of_tracts() -> None:
    places = synthetic(block_sizes(2000, 3), "national", 3).places
    assert len(set(places)) == 2000 and all(len(code) == 15 and code.isdigit() for code in places)
    assert list(places) == sorted(places)
    assert 20 <= len({code[:11] for code in places}) <= 30
    whole = tract(persons=4000, blocks=80, seed=1)
    assert len(whole) == 4000 and len({code[:11] for code in whole.places}) == 1
    assert np.bincount(whole.place, minlength=80).min() >= 1


def test_made_up_sizes_are_those_of_2010() -> None:
    sizes = block_sizes(50_000, 1)
    shares = np.histogram(sizes, [1, 10, 50, 100, 250, 500, 1000, 2001])[0] / len(sizes)
    assert shares == pytest.approx(np.array([0.29, 0.43, 0.16, 0.087, 0.02, 0.0065, 0.0016]), abs=0.01)
    assert 45 < sizes.mean() < 60  # 308,745,538 people in 6,207,027 blocks are 49.7


def test_made_up_persons_have_the_shares_of_their_mix() -> None:
    sizes = block_sizes(20_000, 1)
    sex, age, race, hispanic = synthetic(sizes, "national", 1).codes.T
    not_hispanic = hispanic == 0
    shares = [((race == one) & not_hispanic).mean() for one in range(6)] + [((race > 5) & not_hispanic).mean()]
    wanted = [0.637, 0.122, 0.007, 0.047, 0.0015, 0.002, 0.019]
    assert shares == pytest.approx(wanted, abs=0.04)  # tracts differ widely, and there are 250 of them
    assert hispanic.mean() == pytest.approx(0.163, abs=0.04)
    assert (race[hispanic == 1] == WHITE).mean() == pytest.approx(0.53, abs=0.02)
    assert sex.mean() == pytest.approx(0.508, abs=0.01)
    assert (age < 18).mean() == pytest.approx(0.24, abs=0.02) and (age >= 65).mean() == pytest.approx(0.13, abs=0.03)
    _, _, race, hispanic = synthetic(sizes, "diverse", 1).codes.T
    assert ((race > 5) & (hispanic == 0)).mean() == pytest.approx(0.08, abs=0.01)
    assert hispanic.mean() == pytest.approx(0.92 / 7, abs=0.01)


def test_an_unknown_mix_is_refused() -> None:
    with pytest.raises(ValueError, match="known: national, simple, diverse"):
        synthetic(np.array([3]), "mixed", 1)
    with pytest.raises(ValueError, match="cannot fill"):
        tract(persons=3, blocks=4)
