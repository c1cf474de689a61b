"""The whole front between privacy and utility, against 21 points of it by the linear programs that paper 003 prints.

Both get the matrix of Franklin County (28 combinations, 284 tracts; lambda 3, capacity 20) as arrays and give answers:
we, all breakpoints of the front; the peer, the most protection at 21 utilities (equation 19), with HiGHS by way of
scipy, one variable for each theta_kij. Building the peer's model is left out, building ours is not. Both must agree at
the 21 utilities. Without the shared file a synthetic matrix of that size stands in, and the result says so. Then a
county of blocks, synthetic: seconds and memory, with more room and with little, where more people must be rerouted.
"""

from __future__ import annotations

import csv
import resource
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from glasshouse.protection.relocation.front import Front, Matrix, Rules, capacities, front, verify
from glasshouse.protection.relocation.linear import full_program
from glasshouse.report.sections.frontier import time_picture

RESULTS = Path(__file__).parent / "results"

FRANKLIN = Path(__file__).resolve().parents[2] / "shared" / "data" / "franklin" / "tract_ver.csv"
COMBINATIONS, TRACTS, PEOPLE, BLOCKS = 28, 284, 1_138_011, 15_000
LAMBDA, CAPACITY, POINTS = 3, 20, 21


def synthetic(places: int, seed: int = 1) -> Matrix:
    """Combinations from common to very rare, places of very different size, people drawn in both."""
    rng = np.random.default_rng(seed)
    share = rng.dirichlet(np.geomspace(4, 0.02, COMBINATIONS))[:, None] * rng.gamma(1.5, size=(COMBINATIONS, places))
    size = rng.lognormal(sigma=0.7, size=places)
    mean = share * size
    counts = rng.poisson(mean * PEOPLE / mean.sum())
    return Matrix(tuple(map(str, range(COMBINATIONS))), tuple(map(str, range(places))), counts)


def franklin() -> tuple[Matrix, str]:
    if not FRANKLIN.is_file():
        return synthetic(TRACTS), f"synthetic, {COMBINATIONS} x {TRACTS} (Franklin's file is not here)"
    with FRANKLIN.open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file)
    counts = np.array([[int(value) for value in row[1:]] for row in rows]).T
    return Matrix(tuple(head[1:]), tuple(row[0] for row in rows), counts), "Franklin County, 28 x 284"


def peer(matrix: Matrix, rules: Rules, utilities: list[float]) -> tuple[list[float], list[float]]:
    """Seconds until each of the 21 programs is solved, their model built before, and their P."""
    program = replace(full_program(matrix, rules), precision=1e-7)  # the default of HiGHS
    start = time.perf_counter()
    seconds, found = [], []
    for utility in utilities:
        found.append(program.best(utility)[1])
        seconds.append(time.perf_counter() - start)
    return seconds, found


def run_time(ours: float, theirs: list[float]) -> None:
    """Figure 7: how long it takes to have the first, the second, ... the 21st point."""
    names = (["21 printed programs"] * len(theirs), ["the whole front"] * len(theirs))
    points = list(range(1, len(theirs) + 1))
    frame = pl.DataFrame(
        {"solved": points * 2, "seconds": [*theirs, *[ours] * len(theirs)], "how": [*names[0], *names[1]]}
    )
    time_picture(frame).save(RESULTS / "front-run-time.svg")


def blocks(capacity: float) -> dict[str, object]:
    matrix = synthetic(BLOCKS)
    rules = Rules(LAMBDA, capacities(matrix, capacity))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds, found = _timed(lambda: front(matrix, rules), 3)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    gap = verify(matrix, rules, found, [found.at_share(q) for q in (0.25, 0.5, 0.75, 1.0)])
    return {
        "places": BLOCKS,
        "capacity": capacity,
        "elements_at_risk": int(np.sum((matrix.counts > 0) & (matrix.counts <= LAMBDA))),
        "breakpoints": len(found.P),
        "rerouted_steps": int(np.sum(np.diff(found.traced.first) > 1)),  # type: ignore[union-attr]
        "seconds": round(seconds, 3),
        "megabytes_more": round(grown / 1024),
        "largest_gap": float(f"{gap:.1e}"),
    }


def run() -> dict[str, object]:
    front(synthetic(20), Rules(LAMBDA, np.full(20, 2.0)))  # compiled once
    large = [blocks(CAPACITY), blocks(2)]  # before the peer, which takes more memory
    matrix, of = franklin()
    rules = Rules(LAMBDA, capacities(matrix, CAPACITY))
    mine, found = _timed(lambda: front(matrix, rules), 20)
    points = [found.at_share(q) for q in np.linspace(0, 1, POINTS)]
    spent, protected = peer(matrix, rules, [point.U for point in points])
    theirs = spent[-1]
    run_time(mine, spent)
    apart = max(abs(point.P - other) for point, other in zip(points, protected, strict=True)) / found.P_max
    if apart > 1e-7:
        raise SystemExit(f"the two do not find the same front: {apart}")
    return {
        "name": "front-vs-lps",
        "ratio": round(theirs / mine),
        "unit": "times faster",
        "n": matrix.cells,
        "peer": "21 epsilon-constraint linear programs as printed, HiGHS by way of scipy",
        "detail": {
            "matrix": of,
            "lambda": LAMBDA,
            "capacity": CAPACITY,
            "breakpoints": len(found.P),
            "seconds": round(mine, 5),
            "peer_seconds": round(theirs, 2),
            "largest_difference": float(f"{apart:.1e}"),
            "blocks": large,
            "left_out": "reading files; building the peer's model",
        },
    }


def _timed(work, times):  # type: ignore[no-untyped-def]
    best: float = float("inf")
    result: Front | None = None
    for _ in range(times):
        start = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - start)
    return best, result
