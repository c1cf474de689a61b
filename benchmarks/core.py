"""How fast is the core? The questions `one` and `farthest`, beside the published formulations, on the same blocks.

Blocks: 600 of the `simple` synthetic mix with the 2010 sizes, and, where the shared data is there, every tenth block
of Guernsey County's partial release. Ours is timed from published counts to checked and proved answers, with at least
2,000 blocks at once (the same ones again and again), as a run over a county does; the peers from arrays in to answer
out, without building their models.
"""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import blocks, peers
from glasshouse.files.tables import open_tables
from glasshouse.model.records import Records
from glasshouse.model.release import Counts
from glasshouse.model.tabulate import tabulate
from glasshouse.program.integer import Proof
from glasshouse.program.ladder import Rung
from glasshouse.program.questions import Farthest, farthest, one, start_of
from glasshouse.program.tables.histogram import Area, Compiled, Problem, compile_tables, places_alone, places_jointly
from glasshouse.program.tables.refine import prepare, refine
from glasshouse.scenarios.load import Scenario, load

GUERNSEY = Path(__file__).resolve().parents[2] / "shared" / "data" / "guernsey" / "tables.csv.gz"
SYNTHETIC, SEED, CAP = 600, 1, 60.0
SMALL = 60  # persons: the full record-binary model is only tried up to here
COPIES = (100, 2000)  # of a block that takes little, and of one that takes very little
QUICK = (0.004, 0.0001)  # seconds a block

Times = NDArray[np.float64]


class Sample(NamedTuple):
    """Blocks of one source: their numbers, the tables compiled, and the same for the peers."""

    name: str
    counts: Counts
    compiled: Compiled  # the 38 age bins told apart, as `farthest` measures
    natural: Compiled  # only what the tables tell apart, which is all that `one` needs
    published: peers.Published
    exact: peers.Published  # with single years of age, as the paper's model
    persons: NDArray[np.int64]


def scenario() -> Scenario:
    return load("sf1-person")


def tables(level: str, variables: tuple[str, ...]) -> list:  # type: ignore[type-arg]  # of Table
    return [t for t in scenario().tables if t.level == level and all(v in variables for v in t.variables)]


def bins() -> list:  # type: ignore[type-arg]  # of Predicate
    """The 38 age bins, told apart even where a partial release does not."""
    place = scenario()
    return [place.schema.where({"age": leaf.levels}) for leaf in place.recodes["age-38"].leaves]


@cache
def samples() -> tuple[Sample, ...]:
    """The blocks of every source that is there."""
    place = scenario()
    records = blocks.synthetic(blocks.block_sizes(SYNTHETIC, SEED), "simple", SEED)
    counts = tabulate(records, tables("block", tuple(v for t in place.tables for v in t.variables)), "block")
    found = [_sample("synthetic", counts)]
    if GUERNSEY.exists():
        counts = guernsey_counts()
        found.append(_sample("guernsey", rows_of(counts, np.arange(0, len(counts.places), 10))))
    return tuple(found)


def guernsey_counts() -> Counts:
    """All blocks of Guernsey County's release."""
    parts = [release.levels["block"] for release in open_tables(GUERNSEY, scenario()).releases()]
    places = tuple(place for part in parts for place in part.places)
    numbers = np.concatenate([part.lower for part in parts])
    return Counts("block", places, parts[0].variables, numbers, numbers)


def rows_of(counts: Counts, rows: NDArray[np.int64]) -> Counts:
    """Some of the places."""
    numbers = np.ascontiguousarray(counts.lower[rows])
    return Counts(counts.level, tuple(counts.places[row] for row in rows), counts.variables, numbers, numbers)


def population(counts: Counts) -> str:
    """The variable that counts everyone."""
    return next(variable for variable in counts.variables if variable in ("P0010001", "P001001"))


def _sample(name: str, counts: Counts) -> Sample:
    place = scenario()
    compiled = compile_tables(place.schema, tables("block", counts.variables), counts.variables, told_apart=bins())
    natural = compile_tables(place.schema, tables("block", counts.variables), counts.variables)
    published = peers.Published(place, "block", counts.variables, exact=False)
    exact = peers.Published(place, "block", counts.variables, exact=True)
    return Sample(name, counts, compiled, natural, published, exact, counts.lower[:, counts.column[population(counts)]])


BATCH = 2000  # blocks that are answered together


def picked(sample: Sample, rows: NDArray[np.int64], again: int = 1) -> Counts:
    """Some blocks of a sample, again and again."""
    return rows_of(sample.counts, np.tile(rows, again))


def ours_one(sample: Sample, rows: NDArray[np.int64], repeat: int = 5) -> tuple[float, float]:
    """Seconds a block for a fitting histogram, the least of a few runs: in all, and without building the program."""
    again = -(-BATCH // len(rows))
    counts = picked(sample, rows, again)
    best, alone = np.inf, np.inf
    for _ in range(repeat):
        began = time.perf_counter()
        problem = places_alone(sample.natural, counts)
        middle = time.perf_counter()
        answers = one(problem, np.random.default_rng(SEED))
        end = time.perf_counter()
        best, alone = min(best, end - began), min(alone, end - middle)
    if not answers.fits.all():
        raise RuntimeError("a block was not answered")
    return best / len(counts.places), alone / len(counts.places)


class Far(NamedTuple):
    """The blocks of a sample, timed: together, one by one, and the peer's."""

    problem: Problem
    start: NDArray[np.int64]
    found: Farthest
    together: float  # seconds a block, all at once, from published counts: program, start, answer and proof
    together_alone: float  # the same, for the answer and its proof alone, which is what the peer's seconds are
    ours: Times  # of each block, as copies of it in one call
    alone: Times
    peer: Times
    proofs: dict[str, int]


@cache
def far(name: str) -> Far:
    """`farthest` on every block of a sample, beside the whole-block MILP from the same start.

    A run over a county answers blocks together: that gives the mean. For the median each block is timed by itself; as
    a call costs a third of a millisecond whatever the number of blocks, one that takes little is timed as 100 copies,
    and one that takes less than a tenth of a millisecond then as 2,000.
    """
    sample = next(s for s in samples() if s.name == name)
    count = len(sample.persons)
    every = np.arange(count)
    timed_answer(sample, every[:10])  # compiled code is loaded first
    runs = [timed_answer(sample, every) for _ in range(2)]
    _, _, problem, start, found = runs[0]
    ours, alone, peer = np.zeros(count), np.zeros(count), np.zeros(count)
    for row in range(count):
        variables = slice(problem.programs.first[row], problem.programs.first[row + 1])
        ours[row], alone[row], *_ = timed_answer(sample, every[row : row + 1], start=start[variables])
        for quick, copies in zip(QUICK, COPIES, strict=True):
            if ours[row] < quick:
                ours[row], alone[row], *_ = timed_answer(sample, every[row : row + 1], copies, start[variables])
        peer[row] = whole_block(sample, problem, start, found, row).seconds
    proofs = {kind: found.answers.proof.count(Proof(kind)) for kind in ("exact", "two-engines", "undecided")}
    whole, part = min(run[0] for run in runs) / count, min(run[1] for run in runs) / count
    return Far(problem, start, found, whole, part, ours, alone, peer, proofs)


def whole_block(
    sample: Sample,
    problem: Problem,
    start: NDArray[np.int64],
    found: Farthest,
    row: int,
    by: peers.Solver = peers.highs,
) -> peers.Answer:
    """The peer's `farthest` of one block from the same start; where it has one, it must be what we found."""
    variables = slice(problem.programs.first[row], problem.programs.first[row + 1])
    histogram = np.zeros(len(sample.published.types), np.int64)
    histogram[problem.cell[variables]] = start[variables]
    answer = peers.histogram_farthest(sample.published, sample.counts.lower[row], histogram, cap=CAP, by=by)
    agree = answer.objective is None or found.distance[row] <= answer.objective <= found.most[row]
    if answer.outcome == "solved" and not agree:
        raise RuntimeError(f"{sample.counts.places[row]}: {answer.objective} is not {found.distance[row]}")
    return answer


def timed_answer(
    sample: Sample, rows: NDArray[np.int64], again: int = 1, start: NDArray[np.int64] | None = None
) -> tuple[float, float, Problem, NDArray[np.int64], Farthest]:
    """The seconds a copy in all, and for the answer alone; then the program, the start and the answer.

    A start is drawn in any case; one that is given is used instead.
    """
    counts = picked(sample, rows, again)
    began = time.perf_counter()
    problem = places_alone(sample.compiled, counts)
    problem.split()
    drawn = one(problem, np.random.default_rng(SEED)).x
    middle = time.perf_counter()
    begin = drawn if start is None else np.tile(start, again)
    found = farthest(problem, start_of(problem, begin))
    end = time.perf_counter()
    return (end - began) / again, (end - middle) / again, problem, begin, found


def tried(sample: Sample, *, eliminate: bool) -> NDArray[np.int64]:
    """The blocks on which a record-binary model is tried; without elimination, small ones only."""
    return np.flatnonzero(sample.persons <= SMALL)[::4] if not eliminate else np.arange(0, len(sample.persons), 2)


def _feasible(eliminate: bool) -> tuple[Times, list[float], dict[str, object]]:
    """Ours and the peer's seconds on the blocks tried, of every source."""
    ours, seconds, detail = [], [], {}
    for sample in samples():
        rows = tried(sample, eliminate=eliminate)
        mine, alone = ours_one(sample, rows)
        times = []
        for row in rows:
            answer = peers.record_binary(sample.exact, sample.counts.lower[row], eliminate=eliminate, cap=CAP)
            times.append(CAP if answer.outcome != "solved" else answer.seconds)
        ours += [mine] * len(rows)
        seconds += times
        detail[sample.name] = {
            "blocks": len(rows),
            "ours microseconds": round(mine * 1e6, 1),
            "peer mean ms": round(float(np.mean(times)) * 1e3, 3),
            "peer median ms": round(float(np.median(times)) * 1e3, 3),
            "ratio": round(float(np.mean(times)) / mine, 1),
            "ratio without building": round(float(np.mean(times)) / alone, 1),
        }
    return np.array(ours), seconds, detail


def feasible(*, eliminate: bool) -> dict[str, object]:
    ours, seconds, detail = _feasible(eliminate)
    model = "with zero elimination" if eliminate else f"without elimination, blocks of at most {SMALL} persons"
    return {
        "name": "feasible-vs-record-binary" if eliminate else "feasible-vs-record-binary-full",
        "ratio": round(float(np.mean(seconds) / np.mean(ours)), 1),
        "unit": "times, mean seconds a block",
        "n": len(seconds),
        "peer": f"one binary per person slot (paper 000, equations 3 and 6, single years), {model}, on HiGHS",
        "detail": detail,
    }


def farthest_ratio(kind: str) -> dict[str, object]:
    found = {sample.name: far(sample.name) for sample in samples()}
    measure = np.mean if kind == "mean" else np.median
    peer = np.concatenate([f.peer for f in found.values()])
    detail = {}
    for name, f in found.items():
        ours, alone = (f.together, f.together_alone) if kind == "mean" else (np.median(f.ours), np.median(f.alone))
        detail[name] = {
            "blocks": len(f.peer),
            "ours ms": round(float(ours) * 1e3, 4),
            "peer ms": round(float(measure(f.peer)) * 1e3, 4),
            "ratio": round(float(measure(f.peer) / ours), 2),
            "ratio without building and start": round(float(measure(f.peer) / alone), 2),
            "proofs": f.proofs,
        }
    if kind == "mean":
        mine = sum(f.together * len(f.peer) for f in found.values()) / len(peer)
    else:
        mine = float(np.median(np.concatenate([f.ours for f in found.values()])))
    return {
        "name": f"farthest-vs-histogram-{kind}",
        "ratio": round(float(measure(peer) / mine), 2),
        "unit": f"times, {kind} seconds a block (ours includes building, drawing the start, and proofs)",
        "n": len(peer),
        "peer": "whole-block histogram MILP with zero elimination (equation 8 without tract tables), on HiGHS",
        "detail": detail,
    }


def share_without_solver() -> dict[str, object]:
    found = {sample.name: far(sample.name) for sample in samples()}
    rung = np.concatenate([f.found.answers.rung for f in found.values()])
    return {
        "name": "share-without-solver",
        "ratio": round(float((rung < Rung.SOLVER).mean()), 4),
        "unit": "share of blocks whose farthest histogram needs no solver",
        "n": len(rung),
        "peer": "none",
        "detail": {
            name: {r.name.lower(): round(float((f.found.answers.rung == r).mean()), 4) for r in Rung}
            for name, f in found.items()
        },
    }


def tract_ratio() -> dict[str, object]:
    """A tract of 4,000 persons in 80 blocks, all its tables, exact ages."""
    ours, peer, detail = [], [], {}
    for mix in ("simple", "national", "diverse"):
        records = blocks.tract(4000, 80, SEED, mix)
        inner, outer = _tract(records)
        compiled = compile_tables(
            scenario().schema, tables("block", inner.variables), inner.variables,
            around=tables("tract", outer.variables), around_present=outer.variables,
        )  # fmt: skip
        fine = compile_tables(
            scenario().schema, tables("block", inner.variables), inner.variables,
            around=tables("tract", outer.variables), around_present=outer.variables, finest=True,
        )  # fmt: skip
        dealt = prepare(compiled, fine)
        columns, detailed = ([outer.column[v] for v in c.around.variables] for c in (compiled, fine))
        area = Area(outer.lower[:, columns], outer.lower[:, columns], np.zeros(len(inner.places), np.int64))
        mine = np.inf
        for _ in range(4):
            began = time.perf_counter()
            problem = places_jointly(compiled, inner, area)
            answers = one(problem, np.random.default_rng(SEED))
            records_of, fine_cell = refine(
                dealt, problem.cell, answers.x, outer.lower[0, detailed], np.random.default_rng(SEED)
            )
            mine = min(mine, time.perf_counter() - began)
        if not _reproduces(fine, problem, records_of, fine_cell, inner, outer):
            raise RuntimeError("the records of the tract do not reproduce its tables")
        place = scenario()
        exact = peers.Published(place, "block", inner.variables, exact=True)
        around = peers.Published(place, "tract", outer.variables, exact=True)
        answer = peers.tract_record_binary(exact, inner.lower, around, outer.lower[0], cap=5 * CAP)
        ours.append(mine)
        peer.append(answer.seconds)
        detail[mix] = {"ours ms": round(mine * 1e3, 2), "peer s": round(answer.seconds, 3), "outcome": answer.outcome,
                       "ratio": round(answer.seconds / mine, 1)}  # fmt: skip
        if mix == "simple":
            full = peers.tract_record_binary(exact, inner.lower, around, outer.lower[0], cap=5 * CAP, eliminate=False)
            detail["paper's own model, simple"] = {
                "peer s": round(full.seconds, 2),
                "outcome": full.outcome,
                "ratio": round(full.seconds / mine, 1),
            }
    return {
        "name": "tract-vs-record-binary",
        "ratio": round(float(np.mean(peer) / np.mean(ours)), 1),
        "unit": "times, mean of three tracts",
        "n": 3,
        "peer": "one binary per person slot, a tract at once (equation 5), zeros of all tables eliminated, on HiGHS",
        "detail": detail,
    }


def _reproduces(
    fine: Compiled,
    problem: Problem,
    entry: NDArray[np.int64],
    cell: NDArray[np.int64],
    inner: Counts,
    outer: Counts,
) -> bool:
    """Tabulated again, do the records give every number of the blocks and of the tract?"""
    codes = np.empty((len(entry), len(fine.cells.classes)), np.int16)
    for attribute, classes in enumerate(fine.cells.classes):
        codes[:, attribute] = np.unique(classes, return_index=True)[1][fine.cells.codes[cell, attribute]]
    records = Records(fine.cells.schema, inner.places, problem.place[entry], codes)
    return all(
        bool((mine.lower == theirs.lower).all()) for mine, theirs in zip(_tract(records), (inner, outer), strict=True)
    )


def _tract(records: Records) -> tuple[Counts, Counts]:
    whole = Records(records.schema, ("99001000001",), np.zeros(len(records), np.int32), records.codes)
    place = scenario()
    inner = tabulate(records, [t for t in place.tables if t.level == "block"], "block")
    return inner, tabulate(whole, [t for t in place.tables if t.level == "tract"], "tract")
