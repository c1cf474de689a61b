"""How long would the nation take? A large sample of blocks like those of 2010, end to end, and what it comes to.

Both commands run as a user runs them, on two processes: tables are read, every tract is rebuilt and every block's
farthest alternative is proved or bounded, records and places are written. What is counted is processor time of all
processes. The cost of starting (loading, compiling the tables) is measured on one tract and counted once, not scaled
up. Left out: making the synthetic records and tabulating them, which is the office's own work.

The sample: synthetic counties (`glasshouse synthesize`), their published file after swapping. `national` is calibrated
to the 2010 Census (docs/population.md); `diverse-urban`, with large and mixed blocks, is hard and is run on fewer; its
hours are for as many persons as the nation has, in fewer blocks. The uncertainty is that of the sample: tracts are
drawn again with replacement, 2,000 times, for the middle 95%.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from glasshouse.assess.variability import published
from glasshouse.report.sections.variability import picture

BLOCKS_2010 = 6_207_027  # populated blocks; Abowd et al., supporting information
PERSONS_2010 = 308_745_538
PUBLISHED = "zero-solvar shares of the 2010 Census by block size: 99.5, 78.5, 32.6, 12.6, 2.9, 0.8, 1.1%; 69.4% of all"
PICTURE = Path(__file__).parent / "results" / "solvar-by-size.svg"
SAMPLES = {"national": 5_300_000, "diverse-urban": 300_000}  # persons
SCENARIO = ("--scenario", "sf1-person")
SEED = 20


def _tables(folder: Path, preset: str, persons: int) -> Path:
    """The tables that an office would publish of a synthetic county (after swapping), made by our own commands."""
    _glasshouse(
        folder, "synthesize", "--persons", str(persons), "--preset", preset, "--seed", str(SEED), "--out", "county"
    )
    _glasshouse(folder, "tabulate", "county/hdf.parquet", "--out", "tables.parquet", *SCENARIO)
    return folder / "tables.parquet"


def _glasshouse(folder: Path, *arguments: str) -> tuple[float, int]:
    """Run a command as a user does; its processor seconds with all its workers, and the largest memory of any."""
    command = [sys.executable, "-m", "glasshouse", *arguments, "--quiet"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss


def _measured(mix: str, persons: int) -> dict[str, object]:
    """One mix: both commands, and what the nation would take."""
    with tempfile.TemporaryDirectory(prefix="glasshouse-nation-") as name:
        folder = Path(name)
        tables = _tables(folder, mix, persons)
        first = pl.scan_parquet(tables).filter(pl.col("geoid").str.starts_with("99001000100")).collect()
        first.write_parquet(folder / "one.parquet")
        start = sum(
            _glasshouse(folder, c, "one.parquet", "--out", f"one-{c}", "--workers", "1", *SCENARIO)[0] for c in COMMANDS
        )
        seconds, memory = {}, 0
        for command in COMMANDS:
            seconds[command], most = _glasshouse(
                folder, command, "tables.parquet", "--out", command, "--workers", "2", *SCENARIO
            )
            memory = max(memory, most)
        told = json.loads((folder / "vary" / "summary.json").read_text(encoding="utf-8"))
        count = told["headline"]["blocks"]
        if mix == "national":
            places = pl.read_parquet(folder / "vary" / "places.parquet").rename({"block": "place", "tract": "area"})
            picture(places, published("S5")).save(PICTURE)
        tracts = [pl.read_parquet(folder / command / "timings.parquet")["seconds"].to_numpy() for command in COMMANDS]
    total = sum(seconds.values())
    scale = (BLOCKS_2010 / count if mix == "national" else PERSONS_2010 / persons) / 3600
    each = tracts[0] + tracts[1]
    rng = np.random.default_rng(SEED)
    again = rng.choice(each, (2000, len(each))).sum(axis=1) - each.sum()
    low, high = (scale * max(0.0, total - start + np.quantile(again, q)) for q in (0.025, 0.975))
    sizes = {row["band"]: round(row["zero_share"], 4) for row in told["by_size"] if row["blocks"]}
    return {
        "core hours": round(scale * (total - start) + start / 3600, 2),
        "95% interval": [round(low, 2), round(high, 2)],
        "blocks": count,
        "persons": persons,
        "core seconds of reconstruct": round(seconds["reconstruct"], 1),
        "core seconds of vary": round(seconds["vary"], 1),
        "of which starting": round(start, 1),
        "largest process MiB": memory // 1024,
        "zero-solvar share by size": sizes,
        "solvar, mean over persons": round(told["headline"]["solvar_mean"], 4),
        "certain persons": round(told["headline"]["share_certain"], 4),
        "undecided blocks": told["headline"]["undecided"],
        "share of time in the slowest 1% of tracts": round(
            float(np.sort(each)[-max(1, len(each) // 100) :].sum() / each.sum()), 3
        ),
    }


COMMANDS = ("reconstruct", "vary")


def run() -> dict[str, object]:
    found = {mix: _measured(mix, count) for mix, count in SAMPLES.items()}
    return {
        "name": "nation-core-hours",
        "ratio": found["national"]["core hours"],
        "unit": "core hours for 6,207,027 blocks, reconstruct and vary, end to end",
        "n": found["national"]["blocks"],
        "peer": "Census Bureau: 30 machines x 3 days (reconstruction) + 25 x 14 days (solvar), 96 cores each: "
        "1,013,760 core hours",
        "detail": {**found, "published": PUBLISHED},
    }
