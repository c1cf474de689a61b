"""Does a walk find records that fit, and only such? Toys with attributes, all counted again; and what rests on it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from glasshouse.model.records import UNLIMITED
from glasshouse.program.highs import highs
from glasshouse.program.integer import IntegerProgram, Limit, Outcome, Proof
from glasshouse.program.numbers.walk import Board, Ring, Walk, walk

SHAPE = (2, 5, 3)
CODES = np.array(list(np.ndindex(*SHAPE)), np.int16)


def sets() -> sparse.csr_matrix:
    """Everybody, every pair of attributes, and every single one."""
    rows = [np.ones(len(CODES), np.int64)]
    for kept in ([0], [1], [2], [0, 1], [1, 2], [0, 2]):
        rows += [(CODES[:, kept] == one).all(axis=1).astype(np.int64) for one in np.unique(CODES[:, kept], axis=0)]
    return sparse.csr_matrix(np.array(rows))


def toy(seed: int, base: int = 3) -> tuple[np.ndarray, np.ndarray, Ring]:
    """The rounded numbers of eight places, and of the two areas they lie in."""
    rng, times = np.random.default_rng(seed), sets()
    truth = rng.poisson(0.6, (8, len(CODES)))
    of = np.repeat([0, 1], 4)
    areas = np.array([truth[of == area].sum(axis=0) for area in (0, 1)])
    (low, high), (below, above) = (_rounded(counts @ times.T, base, rng) for counts in (truth, areas))
    return low, high, Ring(np.arange(times.shape[0]), of, below, above)


def _rounded(counts: np.ndarray, base: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    printed = (counts + rng.integers(0, base, counts.shape)) // base * base
    return np.maximum(printed - base + 1, 0), printed + base - 1


def counted(places: int, place: np.ndarray, cell: np.ndarray) -> np.ndarray:
    x = np.zeros((places, len(CODES)), np.int64)
    np.add.at(x, (place, cell), 1)
    return x


@pytest.mark.parametrize("codes", [CODES, None])
def test_records_that_a_walk_finds_fit_all_levels(codes: np.ndarray | None) -> None:
    found, times = 0, sets()
    for seed in range(12):
        low, high, ring = toy(seed)
        one = Walk(Board.of(times, codes), low, high, [ring], 1)
        if one.found() == 0:
            found += 1
            x = counted(8, *one.records())
            areas = np.array([x[ring.of == area].sum(axis=0) for area in (0, 1)])
            for counts, least, most in ((x, low, high), (areas, ring.lower, ring.upper)):
                assert (counts @ times.T >= least).all() and (counts @ times.T <= most).all()
    assert found >= (12 if codes is not None else 6)


def test_a_walk_says_the_same_again_and_knows_when_nothing_fits() -> None:
    low, high, ring = toy(1)
    board, asked = Board.of(sets(), CODES), [np.zeros(low.shape, np.bool_), np.zeros(ring.lower.shape, np.bool_)]
    first, again = (walk(board, low, high, [ring], asked, 7) for _ in range(2))
    assert first.wrong == 0 and first.cell.tolist() == again.cell.tolist() != []
    high[0, 0] = 0  # nobody in all, somebody in a part
    low[0, 1], high[0, 1] = 1, 3
    assert walk(board, low, high, [ring], asked, 7).wrong > 0


def test_an_area_without_places_cannot_have_anybody() -> None:
    low, high, ring = toy(1)
    alone = Ring(ring.at, np.zeros(8, np.int64), ring.lower.copy(), np.full(ring.upper.shape, UNLIMITED))
    alone.lower[:] = [[0], [1]]
    assert Walk(Board.of(sets(), CODES), low, high, [alone], 1).found() > 0


def test_a_walk_apart_keeps_to_all_limits_and_has_less_in_common() -> None:
    low, high, _ = toy(2)
    times = sets()
    start = Walk(Board.of(times, CODES), low, high, (), 1)
    assert start.found() == 0
    mine = counted(8, *start.records())
    kinds = np.flatnonzero(mine[0])
    every = sparse.vstack([times, sparse.identity(len(CODES), dtype=np.int64, format="csr")[kinds]], format="csr")
    free = np.zeros((1, len(kinds)), np.int64)
    far = Walk(Board.of(every, CODES), np.hstack([low[:1], free]), np.hstack([high[:1], free + UNLIMITED]), (), 1)
    assert far.found() == 0
    far.apart(times.shape[0] + np.arange(len(kinds)), np.array([0]))
    other = counted(1, *far.records())
    assert (other @ times.T >= low[:1]).all() and (other @ times.T <= high[:1]).all()
    assert np.minimum(other[0], mine[0]).sum() < mine[0].sum() / 2


def _program(rows: list[tuple[dict[int, int], int]], cost: list[int]) -> IntegerProgram:
    sizes = np.cumsum([0, *(len(row) for row, _ in rows)])
    right = np.array([value for _, value in rows], np.int64)
    index = np.array([at for row, _ in rows for at in row], np.int32)
    value = np.array([times for row, _ in rows for times in row.values()], np.int64)
    free = np.zeros(len(cost), np.int64)
    return IntegerProgram(np.array(cost, np.int64), free, free + UNLIMITED, right, right, sizes, index, value)


def test_integers_without_a_limit_are_branched_on_within_limits_and_claim_nothing() -> None:
    """x + y even, x - y odd: fractions fit, whole numbers do not, and no limit is there to see it by."""
    odd = _program([({0: 1, 1: 1, 2: -2}, 0), ({0: 1, 1: -1, 3: -2}, 1)], [0, 0, 0, 0])
    found = highs(odd, Limit(effort=1.0))
    assert (found.outcome, found.proof, found.x) == (Outcome.STOPPED, Proof.UNDECIDED, None)
    dear = _program([({0: 3, 1: -3, 2: -2, 3: 1}, 1), ({1: 1, 2: 1, 3: 1, 4: -2}, 1)], [1, 1, 1, 1, 1])
    best = highs(dear, Limit(effort=1.0))  # what costs no more lies inside any limit
    assert best.outcome == Outcome.OPTIMAL and best.x is not None and dear.fits(best.x)
