"""How does the cost of `farthest` grow with the size of a block? Times, a plot and an exponent; and Guernsey by rung.

For each mix and size, blocks of exactly that size are answered together, from published counts to proved distance,
and the mean time a block is kept. The exponent is the slope of log time over log persons, by least squares, from 10
persons on (below, the call itself costs more than the block). Guernsey's real blocks are answered in the 38 age bins.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks import blocks, core
from glasshouse.model.tabulate import tabulate
from glasshouse.program.ladder import Rung
from glasshouse.program.questions import farthest, one, start_of
from glasshouse.program.tables.histogram import compile_tables, places_alone
from glasshouse.report.framed import Axis, lines

RESULTS = Path(__file__).parent / "results"
SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000)
PERSONS = 6000  # answered for each mix and size, but at least 6 blocks and at most 300
BANDS = ((1, 9), (10, 49), (50, 99), (100, 249), (250, 499), (500, 999), (1000, 10**9))


def by_size() -> dict[str, object]:
    """Time, share by rung and proof for each mix and size."""
    rows = []
    place = core.scenario()
    tables = [table for table in place.tables if table.level == "block"]
    compiled = None
    for mix in ("national", "simple", "diverse"):
        for size in SIZES:
            count = int(np.clip(PERSONS // size, 6, 300))
            counts = tabulate(blocks.synthetic(np.full(count, size), mix, 7), tables, "block")
            compiled = compiled or compile_tables(place.schema, tables, counts.variables)
            seconds = np.inf
            for _ in range(2):
                began = time.perf_counter()
                problem = places_alone(compiled, counts)
                start = one(problem, np.random.default_rng(7))
                found = farthest(problem, start_of(problem, start.x))
                seconds = min(seconds, time.perf_counter() - began)
            rung = found.answers.rung
            rows.append(
                {
                    "mix": mix,
                    "persons": size,
                    "blocks": count,
                    "milliseconds": round(seconds / count * 1e3, 4),
                    "without_solver": round(float((rung < Rung.SOLVER).mean()), 3),
                    "proved": round(float(np.mean([str(p) != "undecided" for p in found.answers.proof])), 3),
                }
            )
    exponents = {}
    for mix in ("national", "simple", "diverse"):
        chosen = [row for row in rows if row["mix"] == mix and row["persons"] >= 10]
        x, y = (np.log([float(row[key]) for row in chosen]) for key in ("persons", "milliseconds"))
        exponents[mix] = round(float(np.polyfit(x, y, 1)[0]), 2)
    picture = lines(
        "farthest: time a block, from counts to proved distance",
        pl.DataFrame(rows),
        Axis("persons", "persons in the block", log=True),
        Axis("milliseconds", "milliseconds a block, one core", log=True),
        Axis("mix"),
        points=True,
    )
    picture.save(RESULTS / "farthest-by-size.svg")
    (RESULTS / "farthest-by-size.svg").chmod(0o644)
    _save("farthest-by-size.json", {"exponents": exponents, "rows": rows, "guernsey": guernsey()})
    return {
        "name": "farthest-by-size",
        "ratio": exponents["simple"],
        "unit": "exponent of time over persons, 10 to 2,000",
        "n": sum(int(row["blocks"]) for row in rows),
        "peer": "none",
        "detail": {"exponents": exponents, "file": "farthest-by-size.json, farthest-by-size.svg"},
    }


def guernsey() -> list[dict[str, object]]:
    """Guernsey's blocks by size: time, rung and proof of `one` and `farthest`."""
    if not core.GUERNSEY.exists():
        return []
    counts = core.guernsey_counts()
    place = core.scenario()
    compiled = compile_tables(
        place.schema, core.tables("block", counts.variables), counts.variables, told_apart=core.bins()
    )
    persons = counts.lower[:, counts.column[core.population(counts)]]
    rows = []
    for low, high in BANDS:
        chosen = np.flatnonzero((persons >= low) & (persons <= high))
        if len(chosen):
            some = core.rows_of(counts, chosen)
            began = time.perf_counter()
            problem = places_alone(compiled, some)
            start = one(problem, np.random.default_rng(7))
            middle = time.perf_counter()
            found = farthest(problem, start_of(problem, start.x))
            end = time.perf_counter()
            rows.append(
                {
                    "persons": f"{low} to {high}" if high < 10**9 else f"{low} and more",
                    "blocks": len(chosen),
                    "one, microseconds": round((middle - began) / len(chosen) * 1e6, 1),
                    "farthest, microseconds": round((end - middle) / len(chosen) * 1e6, 1),
                    "rungs of one": {r.name.lower(): int((start.rung == r).sum()) for r in Rung},
                    "rungs of farthest": {r.name.lower(): int((found.answers.rung == r).sum()) for r in Rung},
                    "proofs of farthest": {p: found.answers.proof.count(p) for p in sorted(set(found.answers.proof))},
                    "mean solvar": round(float((found.distance / (2 * persons[chosen])).mean()), 4),
                }
            )
    return rows


def _save(name: str, content: object) -> None:
    (RESULTS / name).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
