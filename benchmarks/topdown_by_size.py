"""How does noise from the top down grow with the county? Seconds and memory by persons, from records in to records out.

Synthetic counties in the redistricting schema (2,016 cells) with the 2020 budget, and one with sex and age (55,944).
Reading, counting, noise, least squares, rounding and writing are all in. The ratio is the exponent of time over
persons. Every table is certified (see `protection/topdown/least_squares.py`): the largest `off` is given.
"""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from glasshouse.cli.main import main
from glasshouse.commands.work.topdown import Settings, topdown_file
from glasshouse.mechanism.account import allocation
from glasshouse.scenarios.load import load

SIZES = (10_000, 40_000, 160_000)
WITH_AGE = 40_000


def run() -> dict[str, object]:
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for persons in SIZES:
            main(
                ["synthesize", "--persons", str(persons), "--seed", "1", "--out", str(folder / str(persons)), "--quiet"]
            )
        cases = [(size, "pl94", "pl94-2020") for size in (SIZES[0], *SIZES)]  # the first compiles, and is not kept
        cases.append((WITH_AGE, "mdf-person", "persons-2020"))
        for persons, scenario, budget in cases:
            county = folder / str(persons)
            began = time.perf_counter()
            said = topdown_file(
                county / "cef.parquet", load(scenario), folder / "out.parquet",
                Settings(allocation(budget), places=county / "blocks.parquet"),
            )  # fmt: skip
            rows.append(
                {
                    "scenario": scenario,
                    "persons": persons,
                    "blocks": said.places,
                    "seconds": round(time.perf_counter() - began, 2),
                    "tables": said.tables,
                    "steps": said.steps,
                    "largest_off": round(said.off, 5),
                    "peak_mib_so_far": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
                }
            )
    plain = rows[1:-1]
    slope = np.polyfit(np.log([r["persons"] for r in plain]), np.log([r["seconds"] for r in plain]), 1)[0]
    return {
        "name": "topdown-by-size", "ratio": round(float(slope), 2), "unit": "exponent of seconds over persons",
        "n": len(plain), "peer": "itself at other sizes", "detail": {"rows": rows[1:]},
    }  # fmt: skip
