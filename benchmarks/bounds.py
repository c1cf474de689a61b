"""How fast are bounds? The least and the most of every number, beside a program for each end of each number.

Two kinds of release: a block's tables, rounded (775 numbers, none of them exact), and linked tables with about 10,000
hidden cells. Ours is timed from published numbers to answers with their proofs; how the numbers hang together is worked
out once for all places, and is said apart. Seconds are the processor's. The peers are asked for some of the ends, and
their time is scaled to all.
Every answer of a peer is compared with ours: an integer program must say the same, a linear one too unless only whole
numbers tell, which is counted.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchmarks import blocks, core
from benchmarks.bounds_peers import End, Warm, cold
from benchmarks.claims_vs_per_claim import machine
from benchmarks.linked_tables import Linked as Release
from benchmarks.linked_tables import linked_tables
from glasshouse.model.records import UNLIMITED
from glasshouse.model.release import Counts, counted
from glasshouse.model.tabulate import tabulate
from glasshouse.program.integer import IntegerProgram, Proof
from glasshouse.program.ladder import ORDER
from glasshouse.program.numbers.ends import Ends
from glasshouse.program.numbers.linked import Linked, Numbers, link, numbers_of
from glasshouse.program.numbers.system import System, alone
from glasshouse.program.reduce import Programs
from glasshouse.program.tables.cells import partition
from glasshouse.protection.perturb import Protected, Rounding, round_counts, suppress
from glasshouse.report.framed import Axis, lines

Ints = NDArray[np.int64]
RESULTS = Path(__file__).parent / "results"
SEED, BASE, BELOW = 1, 3, 3
BLOCKS = (20, 50, 100, 200)  # persons of the blocks of `bounds-vs-milp`, one each
INTEGER, LINEAR = 3, 12  # numbers a block that the peers are asked for, both ends of each
CAP = 120.0
LEAVES, MEAN = (40, 40, 25), 120.0  # of the linked tables: about 10,000 hidden cells
COLD, EACH = 6, 10  # hidden cells of which cold peers are asked; of warm ones every so manieth
SIZES = (10, 20, 50, 100, 200, 500, 1000, 2000)
SAME = 4  # blocks of each size
TABLES = ((5, 5, 10), (10, 10, 10), (20, 10, 10), (20, 20, 10), (20, 20, 20), (40, 20, 20), (40, 40, 20), (50, 40, 25))


class Asked(NamedTuple):
    """Numbers of places, both ends of each, and what that took."""

    system: System
    wanted: Ints
    ends: Ends
    seconds: float


def asked(linked: Linked, lower: Ints, upper: Ints, chosen: Ints) -> Asked:
    """Both ends of the chosen numbers of each place (a row each), from published numbers to proved answers."""
    began = time.process_time()
    system = alone(linked, lower, upper)
    kinds = np.unique(linked.number[chosen])
    wanted = (np.arange(len(lower))[:, None] * linked.width + kinds[None, :]).reshape(-1)
    found = system.ends(wanted)
    return Asked(system, wanted, found, time.process_time() - began)


@cache
def block_numbers() -> tuple[Numbers, Linked, float]:
    """The numbers of a block, tied to each other, and the seconds that took."""
    place = core.scenario()
    tables = [table for table in place.tables if table.level == "block"]
    cells = partition(place.schema, [one for table in tables for line in table.lines for one in counted(table, line)])
    numbers = numbers_of(cells, tables, {line.variable for table in tables for line in table.lines})
    link(numbers)  # compiled code is loaded first
    began = time.process_time()
    linked = link(numbers)
    return numbers, linked, time.process_time() - began


def block_counts(size: int, count: int, mix: str = "national") -> Counts:
    tables = [table for table in core.scenario().tables if table.level == "block"]
    return tabulate(blocks.synthetic(np.full(count, size), mix, 7), tables, "block")


def block_asked(counts: Counts, told: Protected) -> tuple[Asked, Ints]:
    """All printed numbers of blocks, and which of the numbers those are."""
    numbers, linked, _ = block_numbers()
    at = np.array([numbers.names.index(variable) for variable in counts.variables])
    shape = len(told.lower), len(numbers.names)
    lower, upper = np.zeros(shape, np.int64), np.full(shape, UNLIMITED, np.int64)
    lower[:, at], upper[:, at] = told.lower, told.upper
    return asked(linked, lower, upper, at), at


def rounded(counts: Counts) -> Protected:
    return round_counts(counts.lower, BASE, Rounding.RANDOM, np.random.default_rng(SEED))


def vs_milp() -> dict[str, object]:
    """A block's rounded tables, beside an integer program for each end."""
    numbers, linked, compiled = block_numbers()
    rng = np.random.default_rng(SEED)
    block_asked(block_counts(10, 1), rounded(block_counts(10, 1)))  # compiled code is loaded first
    rows, ours, peer = [], [], {"integer": [], "linear": [], "warm": []}
    for size in BLOCKS:
        counts = block_counts(size, 1)
        told = rounded(counts)
        found, at = block_asked(counts, told)
        mine = min(found.seconds, block_asked(counts, told)[0].seconds)
        times = numbers.times[at]
        width = times.shape[1]
        program = IntegerProgram(
            np.zeros(width, np.int64), np.zeros(width, np.int64), np.full(width, UNLIMITED), told.lower[0],
            told.upper[0], times.indptr.astype(np.int64), times.indices.astype(np.int32), times.data,
        )  # fmt: skip
        sides = 2 * len(at)
        some = rng.permutation(len(at))[:LINEAR]
        seconds = {"integer": [], "linear": []}
        for order, number in enumerate(some):
            cost = np.asarray(times[number].todense()).reshape(-1)
            place = int(np.searchsorted(found.wanted, linked.number[at[number]]))
            for most in (False, True):
                for kind, whole in (("integer", True), ("linear", False)):
                    if not whole or order < INTEGER:
                        end = cold(program, cost, most=most, whole=whole, cap=CAP)
                        _compare(end, found.ends, place, most=most, whole=whole)
                        seconds[kind].append(end.seconds)
        warm = warm_by_part(found, 1)
        ours.append(mine)
        peer["integer"].append(sides * float(np.mean(seconds["integer"])))
        peer["linear"].append(sides * float(np.mean(seconds["linear"])))
        peer["warm"].append(warm.seconds)
        rows.append(
            {
                "persons": size,
                "ours seconds": round(mine, 3),
                "integer program, seconds a side": round(float(np.mean(seconds["integer"])), 3),
                "ratio, integer programs": round(peer["integer"][-1] / mine),
                "ratio, cold linear programs": round(peer["linear"][-1] / mine, 1),
                "ratio, warm linear programs by part": round(peer["warm"][-1] / mine, 2),
                "only whole numbers tell": warm.gaps,
                **_said(found.ends, told.lower, told.upper, linked.number[at], found.wanted),
            }
        )
    total = sum(ours)
    return {
        "name": "bounds-vs-milp",
        "ratio": round(sum(peer["integer"]) / total),
        "unit": "times faster, all blocks together",
        "n": len(BLOCKS),
        "peer": "an integer program for each end of each number, over the cells that the tables tell apart, HiGHS",
        "detail": {
            "numbers a block": len(at),
            "blocks": rows,
            "seconds a block, mean": round(total / len(BLOCKS), 3),
            "ratio, cold linear programs": round(sum(peer["linear"]) / total, 1),
            "ratio, warm linear programs by part": round(sum(peer["warm"]) / total, 2),
            "compiling the tables, once, seconds": round(compiled, 3),
            "machine": machine(),
            "left_out": f"compiling the tables; building the peers' arrays. Both ends of {INTEGER} numbers a block were"
            f" asked for with integer programs and of {LINEAR} with linear ones, drawn at random, and scaled to all; "
            "their answers were ours. The warm peer is given our parts after propagation, and answers every end "
            "without a proof",
        },
    }


class Warmed(NamedTuple):
    """What warm linear programs by part take for all ends, how many answered, and where whole numbers tell more."""

    seconds: float
    answered: int
    gaps: int


def warm_by_part(found: Asked, each: int) -> Warmed:
    """Linear programs part by part, of every so manieth number, scaled to all; each answer is compared with ours."""
    split = found.system.split
    position = np.full(len(split.lower), -1, np.int64)
    position[found.wanted] = np.arange(len(found.wanted))
    total, answered, gaps = 0.0, 0, 0
    rng = np.random.default_rng(SEED)
    for part in np.flatnonzero(np.diff(split.parts.row_first) > 0):
        mine = position[split.variables(int(part))]
        targets = np.flatnonzero(mine >= 0)
        if len(targets) == 0:
            continue
        few = rng.permutation(targets)[: -(-len(targets) // each)]
        rows = split.row_origin[split.parts.row_first[part] : split.parts.row_first[part + 1]]
        program = _needed(split.parts.only(int(part)), found.system.needed[rows])
        began = time.process_time()
        warm = Warm(program)
        total += time.process_time() - began
        spent = 0.0
        for most in (False, True):
            for variable in few:
                end = warm.end(int(variable), most=most)
                gaps += _compare(end, found.ends, int(mine[variable]), most=most, whole=False)
                spent += end.seconds
                answered += 1
        total += spent * len(targets) / len(few)
    return Warmed(total, answered, gaps)


def _needed(part: Programs, kept: NDArray[np.bool_]) -> IntegerProgram:
    sizes = np.diff(part.starts)
    entries = np.repeat(kept, sizes)
    return IntegerProgram(
        np.zeros(len(part.lower), np.int64), part.lower, part.upper, part.row_lower[kept], part.row_upper[kept],
        np.concatenate([[0], np.cumsum(sizes[kept])]).astype(np.int64), part.index[entries], part.coefficient[entries],
    )  # fmt: skip


def _compare(end: End, ours: Ends, place: int, *, most: bool, whole: bool) -> int:
    """Is a peer's end ours? 1: ours is closer, as only whole numbers tell; anything else stops the run."""
    mine = int((ours.high if most else ours.low)[place])
    if end.value is None or end.value == mine:
        return 0
    if not whole and ((end.value > mine) if most else (end.value < mine)):
        return 1
    raise SystemExit(f"{'most' if most else 'least'} of number {place}: a peer says {end.value}, ours {mine}")


def _said(found: Ends, lower: Ints, upper: Ints, number: Ints, wanted: Ints) -> dict[str, object]:
    """Shares of the printed numbers of one place: narrowed and exact; and what is not proved."""
    at = np.searchsorted(wanted, number)
    low, high = found.low[at], found.high[at]
    undecided = np.maximum(found.low_proof, found.high_proof) == ORDER.index(Proof.UNDECIDED)
    return {
        "narrowed": round(float(((low > lower[0]) | (high < upper[0])).mean()), 3),
        "exact": int((low == high).sum()),
        "undecided": int(undecided.sum()),
    }


def vs_lp() -> dict[str, object]:
    """Linked tables with hidden cells, beside a linear program for each end of each."""
    release = linked_tables(LEAVES, mean=MEAN)
    began = time.process_time()
    linked = link(release.numbers)
    compiled = time.process_time() - began
    hidden = np.flatnonzero(release.hidden)
    table_asked(linked_tables((5, 5, 10)))  # compiled code is loaded first
    runs = [asked(linked, release.lower[None], release.upper[None], hidden) for _ in range(2)]
    found, mine = runs[0], min(run.seconds for run in runs)
    whole = linked.programs(release.lower[None], release.upper[None], needed=True)
    program = whole.integer_program(np.zeros(len(whole.lower), np.int64))
    some = np.random.default_rng(SEED).permutation(len(found.wanted))[:COLD]
    seconds = []
    for place in some:
        cost = np.zeros(len(whole.lower), np.int64)
        cost[found.wanted[place]] = 1
        for most in (False, True):
            end = cold(program, cost, most=most, whole=False, cap=CAP)
            _compare(end, found.ends, int(place), most=most, whole=False)
            seconds.append(end.seconds)
    theirs = 2 * len(found.wanted) * float(np.mean(seconds))
    warm = warm_by_part(found, EACH)
    parts = np.diff(found.system.split.parts.first)[np.diff(found.system.split.parts.row_first) > 0]
    ends = found.ends
    undecided = np.maximum(ends.low_proof, ends.high_proof) == ORDER.index(Proof.UNDECIDED)
    return {
        "name": "bounds-vs-lp",
        "ratio": round(theirs / mine),
        "unit": "times faster",
        "n": len(found.wanted),
        "peer": "a linear program for each end of each hidden cell, over the whole tables (numbers as variables, what "
        "is shown fixed), HiGHS with presolve, cold",
        "detail": {
            "numbers": len(release.counts),
            "hidden": len(hidden),
            "exact": int((ends.low == ends.high).sum()),
            "no limit": int((ends.high >= UNLIMITED).sum()),
            "undecided": int(undecided.sum()),
            "parts": len(parts),
            "largest part": int(parts.max(initial=0)),
            "ours seconds": round(mine, 2),
            "ratio, with working out how the numbers hang together": round(theirs / (mine + compiled)),
            "cold linear program, seconds a side": round(float(np.mean(seconds)), 3),
            "warm linear programs by part, seconds for all": round(warm.seconds, 2),
            "ratio, warm linear programs by part": round(warm.seconds / mine, 2),
            "only whole numbers tell, of the ends asked": f"{warm.gaps} of {warm.answered}",
            "how the numbers hang together, once, seconds": round(compiled, 2),
            "machine": machine(),
            "left_out": "working out how the numbers hang together, for all sides; building the peers' arrays. The "
            f"cold peer was asked for both ends of {COLD} hidden cells drawn at random, the warm one for one cell in "
            f"{EACH} of every part, scaled to all; the warm one is given our parts after propagation, for nothing",
        },
    }


def table_asked(release: Release) -> tuple[Asked, float]:
    """The hidden cells of linked tables, and the seconds it takes to see how their numbers hang together."""
    began = time.process_time()
    linked = link(release.numbers)
    compiled = time.process_time() - began
    return asked(linked, release.lower[None], release.upper[None], np.flatnonzero(release.hidden)), compiled


def by_size() -> dict[str, object]:
    """Seconds a block over persons, and seconds over the numbers of linked tables."""
    rows: list[dict[str, object]] = []
    kinds = {
        "rounded to 3": rounded,
        "under 3 hidden, zeros shown": lambda counts: _suppressed(counts, zeros=False),
        "under 3 hidden, zeros too": lambda counts: _suppressed(counts, zeros=True),
    }
    for kind, protect in kinds.items():
        block_asked(block_counts(10, 1), protect(block_counts(10, 1)))
        for size in SIZES:
            counts = block_counts(size, SAME)
            found, _ = block_asked(counts, protect(counts))
            rows.append(_row(kind, size, found, SAME))
    table_asked(linked_tables(TABLES[0]))
    for leaves in TABLES:
        release = linked_tables(leaves, mean=MEAN)
        found, compiled = table_asked(release)
        rows.append(_row("linked tables", len(release.counts), found, 1) | {"compiled": round(compiled, 3)})
    exponents = {}
    for kind in (*kinds, "linked tables"):
        chosen = [row for row in rows if row["kind"] == kind]
        exponents[kind] = _exponent(chosen, "seconds")
    exponents["linked tables, how they hang together"] = _exponent(
        [row for row in rows if row["kind"] == "linked tables"], "compiled"
    )
    picture = lines(
        "Bounds: time a place, from published numbers to proved answers",
        pl.DataFrame([{key: row[key] for key in ("kind", "size", "seconds")} for row in rows]),
        Axis("size", "persons in a block, or numbers of linked tables", log=True),
        Axis("seconds", "processor seconds a place", log=True),
        Axis("kind"),
        points=True,
    )
    picture.save(RESULTS / "bounds-by-size.svg")
    (RESULTS / "bounds-by-size.svg").chmod(0o644)
    content = {"exponents": exponents, "rows": rows, "machine": machine()}
    (RESULTS / "bounds-by-size.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    largest = rows[-1]
    return {
        "name": "bounds-by-size",
        "ratio": exponents["linked tables"],
        "unit": "exponent of time over the numbers of linked tables, 800 to 100,000",
        "n": len(rows),
        "peer": "none",
        "detail": {
            "exponents": exponents,
            "seconds a block, mean over sizes": {
                kind: round(float(np.mean([row["seconds"] for row in rows if row["kind"] == kind])), 4)
                for kind in kinds
            },
            "hidden cells a second, largest linked tables": round(float(largest["asked"]) / float(largest["seconds"])),
            "machine": machine(),
            "file": "bounds-by-size.json, bounds-by-size.svg",
            "left_out": "compiling the block's tables; of linked tables it is told apart",
        },
    }


def _suppressed(counts: Counts, *, zeros: bool) -> Protected:
    return suppress(counts.lower, BELOW, hide_zeros=zeros, also=np.zeros(counts.lower.shape, np.bool_))


def _row(kind: str, size: int, found: Asked, places: int) -> dict[str, object]:
    ends = found.ends
    undecided = np.maximum(ends.low_proof, ends.high_proof) == ORDER.index(Proof.UNDECIDED)
    return {
        "kind": kind,
        "size": size,
        "seconds": round(found.seconds / places, 5),
        "asked": len(found.wanted) // places,
        "exact": round(float((ends.low == ends.high).mean()), 4),
        "undecided": int(undecided.sum()),
    }


def _exponent(rows: Sequence[dict[str, object]], key: str) -> float:
    x, y = (np.log([float(str(row[name])) for row in rows]) for name in ("size", key))
    return round(float(np.polyfit(x, y, 1)[0]), 2)
