"""Every claim that must be true of a block (paper 002), beside asking a solver about one claim after the other.

Both get the published counts of blocks of 10 occupied households as arrays (scenario dhc-household) and say which of
all candidate claims of at least 6 columns are verified: exactly m records match the description, whatever data set it
was. Candidates are those of the paper: every description of a record that one fitting data set has. Two peers:

- `PerClaim`: two solves a claim, the least and the most of its count over the block's histogram, live cells only.
- `OneHot`: the paper's own program (equations 7 to 18), one binary for every record and value: a claim is verified if
  no data set has another count. On blocks of 3 to 6 households: one claim of 10 households takes up to minutes.

The peers are asked about a sample of the claims, which is scaled to all of them; building their models is left out, as
is compiling the tables for ours. Their verdicts must be ours. `by_size` says how our time grows with the households.
Seconds are those of the processor, for all, since a machine may have other work; each runs on one core.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from benchmarks.claims_peers import CAP, CLOCK, OneHot, PerClaim
from benchmarks.core import rows_of
from benchmarks.peers import Ints
from glasshouse.attack.claims.verify import Claimable, Verified, places_of, verify
from glasshouse.model.records import Records
from glasshouse.model.release import Counts
from glasshouse.model.tabulate import tabulate
from glasshouse.population.county import County
from glasshouse.population.homes import COLUMNS
from glasshouse.population.people import HOUSEHOLD, QUARTERS
from glasshouse.population.preset import load_preset
from glasshouse.report.framed import Axis, lines
from glasshouse.scenarios.load import Scenario, load

RESULTS = Path(__file__).parent / "results"
LEAST = 6  # columns of a claim
SEED = 1
COUNTIES = {"national": 500_000, "diverse-urban": 1_300_000}  # persons, so that both have enough blocks of every size

HOUSEHOLDS, BLOCKS = 10, 8  # the blocks of the comparison, of each county
ROUNDS, SAMPLED = 3, 15  # claims of a block asked about in a round
BY_DEFAULT = 5  # of them also with the solver's own settings, which are slower

SMALL = (3, 4, 5, 6)  # households of the blocks for the paper's program, one of each
ASKED = 5  # of its verified claims, and of the others

GROWTH = {5: 40, 10: 200, 20: 20, 40: 10, 80: 3}  # households, and how many such blocks of each county
SLOW, SLOWEST = 5.0, 60.0  # seconds (wall): 95 of 100 blocks of 10 households within the first, all within the second


@cache
def scenario() -> Scenario:
    return load("dhc-household")


@cache
def claimable() -> Claimable:
    """The tables, compiled."""
    place = scenario()
    return Claimable(
        place.schema, place.tables, counts_of(np.zeros((0, len(COLUMNS)), np.int64)).variables, place.wording
    )


def counts_of(units: Ints, block: Ints | None = None) -> Counts:
    """What is published of blocks of these housing units, their columns as `COLUMNS`."""
    place = scenario()
    of = np.zeros(len(units), np.int32) if block is None else block.astype(np.int32)
    at = [COLUMNS.index(attribute.name) for attribute in place.schema.attributes]
    names = tuple(f"{number:04d}" for number in range(int(of.max(initial=0)) + 1))
    records = Records(place.schema, names, of, np.ascontiguousarray(units[:, at]).astype(np.int16))
    return tabulate(records, place.tables, "block")


@cache
def county(preset: str) -> dict[int, Counts]:
    """The blocks of a synthetic county by their number of households, as many as are asked for of each."""
    wanted = {**dict.fromkeys(SMALL, 1), **GROWTH}
    found: dict[int, list[Ints]] = {size: [] for size in wanted}
    made = County(load_preset(preset), COUNTIES[preset], SEED)
    for number in range(made.places.tracts):
        tract = made.tract(number)
        kind, block = tract.people.unit_kind, tract.people.unit_block
        units = np.column_stack([tract.homes.columns[name] for name in COLUMNS])
        households = np.bincount(block[kind == HOUSEHOLD])
        for size, blocks in found.items():
            for one in np.flatnonzero(households == size)[: wanted[size] - len(blocks)]:
                blocks.append(units[(block == one) & (kind != QUARTERS)])
    return {
        size: counts_of(np.concatenate(blocks), np.repeat(np.arange(len(blocks)), [len(one) for one in blocks]))
        for size, blocks in found.items()
    }


def ours(counts: Counts) -> tuple[float, Verified]:
    """Seconds from the counts of one block to all its verified claims, and these."""
    began = CLOCK()
    (place,) = places_of(claimable(), counts, np.random.default_rng(SEED))
    found = verify(place, LEAST)
    return CLOCK() - began, found


def warm() -> None:
    """Compile tables and code, which is left out."""
    for preset in COUNTIES:
        for size in (5, 10):
            ours(rows_of(county(preset)[size], np.arange(1)))


class Compared(NamedTuple):
    """One block: seconds of ours for all its claims, and of each form of the peer for each claim asked about."""

    found: Verified
    seconds: float
    peer: dict[str, list[float]]
    verified: list[bool]  # of the claims asked about

    @property
    def claims(self) -> int:
        return len(self.found.claims.candidates.values)

    def ratio(self, form: str) -> float:
        return float(np.mean(self.peer[form])) * self.claims / self.seconds


INTEGER, DEFAULT, RELAXED = "integer programs", "integer programs, default settings", "relaxation first"


def compared(counts: Counts, seed: int) -> Compared:
    """One block, ours and the peer in turns, since a machine is not always equally fast."""
    _, found = ours(counts)
    forms = {
        INTEGER: PerClaim(found.place),
        RELAXED: PerClaim(found.place, relax=True),
        DEFAULT: PerClaim(found.place, jump=True),
    }
    candidates, certain = found.claims.candidates, found.claims.certain
    count = min(ROUNDS * SAMPLED, len(certain))
    chosen = np.random.default_rng([SEED, seed]).choice(len(certain), count, replace=False)
    mine: list[float] = []
    peer: dict[str, list[float]] = {form: [] for form in forms}
    for asked in np.array_split(chosen, ROUNDS):
        for form, solver in forms.items():
            mine.append(ours(counts)[0])
            for claim in asked[: BY_DEFAULT if form == DEFAULT else None]:
                kind = candidates.kind[claim]
                seconds, low, high = solver.extremes(candidates.inside[kind], candidates.meeting[kind])
                peer[form].append(seconds)
                if (low == high) != certain[claim]:
                    raise SystemExit(f"{form}: a claim has {low} to {high} records, and ours says {certain[claim]}")
    return Compared(found, float(np.median(mine)), peer, certain[chosen].tolist())


def run() -> dict[str, object]:
    """All verified claims of a block, against two solves for each candidate."""
    warm()
    blocks = [
        compared(rows_of(county(preset)[HOUSEHOLDS], np.arange(block, block + 1)), block)
        for block in range(BLOCKS)
        for preset in COUNTIES
    ]
    mine, claims = np.array([block.seconds for block in blocks]), np.array([block.claims for block in blocks])
    forms = {}
    for form in (INTEGER, DEFAULT, RELAXED):
        theirs = np.array([np.mean(block.peer[form]) for block in blocks]) * claims
        forms[form] = {
            "claims asked": sum(len(block.peer[form]) for block in blocks),
            "ms a claim, mean": round(1e3 * float((theirs / claims).mean()), 3),
            "seconds a block, median": round(float(np.median(theirs)), 3),
            "seconds a block, mean": round(float(theirs.mean()), 3),
            "ratio, median of blocks": round(float(np.median(theirs / mine)), 1),
            "ratio, least and most": [round(float(end), 1) for end in ((theirs / mine).min(), (theirs / mine).max())],
            "ratio of totals": round(float(theirs.sum() / mine.sum()), 1),
        }
    known = np.concatenate([np.array(block.peer[INTEGER])[block.verified] for block in blocks])
    verified = sum(int(block.found.claims.certain.sum()) for block in blocks)
    kinds = np.array([len(block.found.claims.candidates.inside) for block in blocks])
    once = sum(float(np.mean(block.peer[INTEGER])) * k for block, k in zip(blocks, kinds, strict=True))
    return {
        "name": "claims-vs-per-claim",
        "ratio": forms[INTEGER]["ratio, median of blocks"],
        "unit": "times faster, median of blocks",
        "n": len(blocks),
        "peer": "least and most of each candidate claim, two integer programs over the live cells of the block's "
        "histogram, HiGHS; one solver a block, feasibility jump off (it is slower with it)",
        "detail": {
            "blocks": f"{HOUSEHOLDS} households, {BLOCKS} of each synthetic county: {', '.join(COUNTIES)}",
            "claims": f"{LEAST} columns and more, every multiplicity",
            "candidates a block, mean": round(float(claims.mean()), 1),
            "kinds a block, mean": round(float(kinds.mean()), 1),
            "verified claims, all blocks": verified,
            "undecided claims, all blocks": sum(int(block.found.claims.undecided.sum()) for block in blocks),
            "seconds a block, median": round(float(np.median(mine)), 4),
            "seconds a block, mean": round(float(mine.mean()), 4),
            "peer": forms,
            "ratio of totals if only verified claims were asked about": round(
                float(known.mean()) * verified / float(mine.sum()), 1
            ),
            "ratio of totals if each kind were asked about once": round(once / float(mine.sum()), 1),
            "machine": machine(),
            "left_out": "compiling the tables; building the peer's model; finding its candidates. The peer was asked "
            f"about {ROUNDS * SAMPLED} claims a block drawn at random ({ROUNDS * BY_DEFAULT} with default settings), "
            "scaled to all candidates; its verdicts were ours on all of them",
        },
    }


def one_hot() -> dict[str, object]:
    """All verified claims of a small block, against the paper's program for each candidate."""
    warm()
    rows, mine, theirs = [], [], []
    for size in SMALL:
        counts = rows_of(county("national")[size], np.arange(1))
        _, found = ours(counts)
        peer = OneHot(claimable(), counts)
        certain = found.claims.certain
        rng = np.random.default_rng([SEED, size])
        own, spent, ended, total = [], [], 0, 0.0
        for group in (np.flatnonzero(certain), np.flatnonzero(~certain)):
            some = [_asked(peer, found, claim) for claim in rng.choice(group, min(ASKED, len(group)), replace=False)]
            own += [ours(counts)[0] for _ in range(3)]
            ended += sum(verdict is not None for _, verdict in some)
            spent += [seconds for seconds, _ in some]
            total += len(group) * float(np.mean([seconds for seconds, _ in some])) if some else 0.0
        mine.append(float(np.median(own)))
        theirs.append(total)
        rows.append(
            {
                "households": size,
                "records": peer.records,
                "candidates": len(certain),
                "verified": int(certain.sum()),
                "binaries": len(peer.model.cost),
                "rows": len(peer.model.row_lower),
                "ended": f"{ended} of {len(spent)}",
                "seconds a claim, mean and most": [round(float(np.mean(spent)), 3), round(max(spent), 3)],
                "seconds, all claims": round(theirs[-1], 1),
                "ours seconds": round(mine[-1], 5),
                "ratio": round(theirs[-1] / mine[-1]),
            }
        )
    return {
        "name": "claims-vs-one-hot",
        "ratio": round(sum(theirs) / sum(mine)),
        "unit": "times faster, all blocks together",
        "n": len(rows),
        "peer": "the program of paper 002 (equations 7 to 18, made linear) for each candidate claim, HiGHS",
        "detail": {
            "blocks": rows,
            "cap seconds": CAP,
            "machine": machine(),
            "left_out": f"building the peer's models; {ASKED} verified claims a block and {ASKED} others were drawn at "
            "random and scaled to all candidates. The paper uses Gurobi, and asks only about candidates that up to "
            "100 data sets share",
        },
    }


def _asked(peer: OneHot, found: Verified, claim: int) -> tuple[float, bool | None]:
    """What the paper's program needs and says of a claim; where it ends, it must say what we do."""
    candidates, certain = found.claims.candidates, bool(found.claims.certain[claim])
    m = int(candidates.inside[candidates.kind[claim]] @ found.place.x)
    seconds, verdict = peer.verified(candidates.values[claim].astype(np.int64), m)
    if verdict not in (None, certain):
        raise SystemExit(f"the paper's program says {verdict} of a claim, and ours {certain}")
    return seconds, verdict


def by_size() -> dict[str, object]:
    """How our time grows with the households of a block; and how long blocks of 10 take, many of them."""
    warm()
    rows, ten = [], {}
    for preset in COUNTIES:
        for size in GROWTH:
            counts = county(preset)[size]
            seconds, wall, found = np.zeros(len(counts.places)), np.zeros(len(counts.places)), []
            for block in range(len(counts.places)):
                began = time.perf_counter()
                seconds[block], verified = ours(rows_of(counts, np.arange(block, block + 1)))
                wall[block] = time.perf_counter() - began
                found.append(verified)
            claims = sum(len(one.claims.candidates.values) for one in found)
            undecided = sum(int(one.claims.undecided.sum()) for one in found)
            rows.append(
                {
                    "county": preset,
                    "households": size,
                    "blocks": len(found),
                    "median_seconds": _short(np.median(seconds)),
                    "p95_seconds": _short(np.percentile(seconds, 95)),
                    "max_seconds": _short(seconds.max()),
                    "max_wall_seconds": _short(wall.max()),
                    "live_cells": _median(one.place.live.count for one in found),
                    "candidates": _median(len(one.claims.candidates.values) for one in found),
                    "kinds": _median(len(one.claims.candidates.inside) for one in found),
                    "verified": _median(int(one.claims.certain.sum()) for one in found),
                    "verified_kinds": _median(
                        len(np.unique(one.claims.candidates.kind[one.claims.certain])) for one in found
                    ),
                    "undecided_claims": undecided,
                    "solver_calls": _median(one.claims.settled.solver_calls for one in found),
                }
            )
            if size == HOUSEHOLDS:
                ten[preset] = {
                    "blocks": len(found),
                    f"share within {SLOW:.0f} s": round(float((wall <= SLOW).mean()), 4),
                    f"share within {SLOWEST:.0f} s": round(float((wall <= SLOWEST).mean()), 4),
                    "slowest seconds": _short(seconds.max()),
                    "slowest seconds by the clock on the wall": _short(wall.max()),
                    "claims": claims,
                    "undecided claims": undecided,
                    "share undecided": round(undecided / claims, 6),
                }
    exponents = {}
    for preset in COUNTIES:
        chosen = [row for row in rows if row["county"] == preset]
        x, y = (np.log([float(row[key]) for row in chosen]) for key in ("households", "median_seconds"))
        exponents[preset] = round(float(np.polyfit(x, y, 1)[0]), 2)
    frame = pl.DataFrame(rows).unpivot(
        ["median_seconds", "max_seconds"], index=["county", "households"], value_name="seconds", variable_name="which"
    )
    words = pl.col("which").replace_strict({"median_seconds": "median", "max_seconds": "slowest"})
    picture = lines(
        "Verified claims: time a block, from counts to all of them",
        frame.with_columns(of=pl.format("{}, {}", "county", words)),
        Axis("households", "occupied households in the block", log=True),
        Axis("seconds", "processor seconds a block", log=True),
        Axis("of"),
        points=True,
    )
    picture.save(RESULTS / "claims-by-size.svg")
    (RESULTS / "claims-by-size.svg").chmod(0o644)
    content = {"exponents": exponents, "ten_households": ten, "rows": rows, "machine": machine()}
    (RESULTS / "claims-by-size.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return {
        "name": "claims-by-size",
        "ratio": exponents["national"],
        "unit": f"exponent of median time over households, {min(GROWTH)} to {max(GROWTH)}",
        "n": sum(int(row["blocks"]) for row in rows),
        "peer": "none",
        "detail": {
            "exponents": exponents,
            "blocks of 10 households": ten,
            "median seconds": {preset: _of(rows, preset, "median_seconds") for preset in COUNTIES},
            "slowest seconds": {preset: _of(rows, preset, "max_seconds") for preset in COUNTIES},
            "machine": machine(),
            "file": "claims-by-size.json, claims-by-size.svg",
            "left_out": "compiling the tables; how many records the claims are about (represented)",
        },
    }


def _of(rows: Sequence[dict[str, object]], preset: str, key: str) -> dict[str, object]:
    return {str(row["households"]): row[key] for row in rows if row["county"] == preset}


def _short(seconds: float) -> float:
    return round(float(seconds), 4)


def _median(numbers: Iterator[int]) -> float:
    return float(np.median(list(numbers)))


def machine() -> str:
    """What this ran on, and how busy it was."""
    names = [line.split(":", 1)[1].strip() for line in _lines(Path("/proc/cpuinfo")) if line.startswith("model name")]
    busy = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"{os.cpu_count()} cores, {names[0] if names else platform.machine()}{busy}"


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []
