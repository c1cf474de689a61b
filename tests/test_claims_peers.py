"""The peers that verify claims one by one say what the verification of all at once says."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.claims_peers import Model, OneHot, PerClaim, fits
from benchmarks.claims_vs_per_claim import claimable, counts_of, ours

from glasshouse.attack.claims.verify import Verified
from glasshouse.model.release import Counts

pytestmark = pytest.mark.slow  # benchmarks' peers: half a minute to set up

# TEN, VACS, HHSIZE, HHT, HHT2, THHSPAN, THHLDRAGE, THHRACE, TP18, TP65
OWNERS = (1, 0, 4, 1, 1, 1, 3, 1, 1, 0)  # a married couple, 35 to 44, with children
TENANTS = (3, 0, 2, 5, 12, 1, 2, 1, 0, 0)  # two young men who share a home
TWO = np.array([OWNERS, TENANTS])
FOUR = np.array(
    [
        OWNERS,
        (1, 0, 2, 1, 2, 2, 7, 1, 0, 1),
        (2, 0, 1, 6, 5, 1, 8, 1, 0, 1),
        (3, 0, 2, 3, 6, 1, 2, 6, 1, 0),
        (0, 2, 0, 0, 0, 0, 0, 0, 0, 0),
    ]
)


@pytest.fixture(scope="module")
def four() -> tuple[Counts, Verified]:
    counts = counts_of(FOUR)
    return counts, ours(counts)[1]


@pytest.mark.parametrize("form", [{}, {"jump": True}, {"relax": True}])
def test_two_solves_a_claim_say_what_we_say(four: tuple[Counts, Verified], form: dict[str, bool]) -> None:
    found = four[1]
    candidates, certain = found.claims.candidates, found.claims.certain
    assert 0 < certain.sum() < len(certain) and not found.claims.undecided.any()
    peer = PerClaim(found.place, **form)
    for claim in range(0, len(certain), 7):
        kind = candidates.kind[claim]
        _, low, high = peer.extremes(candidates.inside[kind], candidates.meeting[kind])
        assert low <= int(candidates.inside[kind] @ found.place.x) <= high
        assert (low == high) == certain[claim]


def test_the_program_of_the_paper_says_what_we_say(four: tuple[Counts, Verified]) -> None:
    counts, found = four
    peer = OneHot(claimable(), counts)
    assert peer.records == len(FOUR)
    candidates, certain = found.claims.candidates, found.claims.certain
    for claim in (*np.flatnonzero(certain)[:: certain.sum() // 2], *np.flatnonzero(~certain)[:: (~certain).sum() // 2]):
        m = int(candidates.inside[candidates.kind[claim]] @ found.place.x)
        assert peer.verified(candidates.values[claim].astype(np.int64), m)[1] == certain[claim]


def test_the_program_of_the_paper_admits_the_truth() -> None:
    peer = OneHot(claimable(), counts_of(TWO))
    assert peer.records == len(TWO)
    for units in (TWO, TWO[::-1]):  # in whatever order they stand: the hash puts them in its own
        truth = with_queries(peer, peer.encoded(units))
        assert fits(peer.model, truth)
    changed = TWO.copy()
    changed[1, 7] = 2
    assert not fits(peer.model, with_queries(peer, peer.encoded(changed)))


def test_a_claim_that_is_true_of_the_truth_is_not_contradicted_by_it() -> None:
    peer = OneHot(claimable(), counts_of(TWO))
    truth = with_queries(peer, peer.encoded(TWO))
    owners = np.array([values[level] for values, level in zip(peer.values, OWNERS, strict=True)])
    for m, other in ((1, False), (0, True), (2, True)):
        model = peer.other(owners, m)
        assert completed(peer, model, truth, owners, m) is other


def with_queries(peer: OneHot, x: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    """Fill in W: does record k satisfy query i?"""
    for i, parts in enumerate(peer.parts):
        for k in range(peer.records):
            x[peer.w(i, k)] = all(x[peer.at(k, values)].sum() == 1 for values in parts)
    return x


def completed(peer: OneHot, model: Model, truth: np.ndarray, description: np.ndarray, m: int) -> bool:  # type: ignore[type-arg]
    """Fill in T, U, S and Y as the paper means them: does the program admit the truth?"""
    named = np.flatnonzero(description >= 0)
    indices = np.concatenate([np.arange(peer.first[c], peer.first[c + 1]) for c in named])
    a = np.isin(indices, peer.first[named] + description[named])
    rows = np.array([truth[peer.at(k, indices)] for k in range(peer.records)])
    t, u = rows == a, rows < a
    s = t.all(axis=1)
    x = np.concatenate([truth, t.reshape(-1), u.reshape(-1), s, [s.sum() > m]])
    return fits(model, x)
