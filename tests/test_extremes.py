"""How few and how many can a set count? Ends met at vertices, against an integer program for each of them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from benchmarks.claims_peers import PerClaim
from benchmarks.claims_vs_per_claim import claimable, counts_of

from glasshouse.attack.claims.verify import places_of, verify
from glasshouse.population.county import County
from glasshouse.population.homes import COLUMNS
from glasshouse.population.people import HOUSEHOLD, QUARTERS
from glasshouse.population.preset import load_preset
from glasshouse.program.extremes import Extremes, different
from glasshouse.program.settled import Verdict
from tests.often import often

SIZES = (24, 60)  # households of the blocks: their parts are too large to list, and some vertices are not whole
ASKED = often(25)  # kinds of a block of either verdict, at most


def test_rows_that_differ_are_found_in_the_order_of_their_bytes() -> None:
    rng = np.random.default_rng(1)
    for width in (1, 7, 8, 9, 40):
        rows = rng.integers(0, 256, (40, width), dtype=np.uint8)[rng.integers(0, 40, 300)]
        _, first, of = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        found = different(rows)
        assert (found[0] == first).all() and (found[1] == of.reshape(-1)).all()


def test_rows_that_get_the_same_number_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chance may give two rows one number; then other numbers are drawn."""
    draw, seeds = np.random.default_rng, []

    class Zeros:
        def integers(self, low: int, high: int, size: int, dtype: Any) -> np.ndarray:
            return np.zeros(size, dtype)

    def at_first_none(seed: int) -> Any:
        seeds.append(seed)
        return Zeros() if seed == 0 else draw(seed)

    monkeypatch.setattr("glasshouse.program.extremes.np.random.default_rng", at_first_none)
    first, of = different(np.array([[2, 0], [1, 0], [2, 0], [1, 1]], np.uint8))
    assert first.tolist() == [1, 3, 0] and of.tolist() == [2, 0, 2, 1] and seeds == [0, 1]


def test_what_is_settled_at_vertices_is_what_integer_programs_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kinds of claims about whole blocks of households, each against the least and the most by HiGHS."""
    among, beside = Extremes._among, 0

    def counted(*asked: Any) -> Any:
        nonlocal beside
        beside += 1
        return among(*asked)

    monkeypatch.setattr(Extremes, "_among", counted)
    monkeypatch.setattr("glasshouse.program.extremes.WALKS", 0)  # nothing is refuted before it is asked about
    verdicts: Counter[int] = Counter()
    for size in SIZES:
        units = block_of(size)
        (place,) = places_of(claimable(), counts_of(units), np.random.default_rng(1))
        asked, peer = verify(place, 6).claims, PerClaim(place)
        order = np.random.default_rng(size).permutation(len(asked.candidates.inside))
        certain = asked.settled.verdict[order] == Verdict.SETTLED
        for kind in (*order[certain][:ASKED], *order[~certain][:ASKED]):
            _, low, high = peer.extremes(asked.candidates.inside[kind], asked.candidates.meeting[kind])
            verdict = asked.settled.verdict[kind]
            assert (verdict == Verdict.SETTLED) == (low == high) and verdict != Verdict.OPEN
            assert asked.settled.low[kind] <= low <= high <= asked.settled.high[kind]
            verdicts[int(verdict)] += 1
    assert verdicts[Verdict.SETTLED] and verdicts[Verdict.REFUTED] and beside, "a vertex should not have been whole"


def block_of(households: int) -> np.ndarray:
    """The units of a block of a synthetic county that has so many households."""
    county = County(load_preset("national"), 30_000, 1)
    for number in range(county.places.tracts):
        tract = county.tract(number)
        kind, block = tract.people.unit_kind, tract.people.unit_block
        units = np.column_stack([tract.homes.columns[name] for name in COLUMNS])
        for one in np.flatnonzero(np.bincount(block[kind == HOUSEHOLD]) == households):
            return np.asarray(units[(block == one) & (kind != QUARTERS)])
    raise AssertionError(f"no block of {households} households")
