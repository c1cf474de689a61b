"""How large are certificates, and how long do they take? Every fact of a synthetic county of 12,000 persons.

The county is `glasshouse synthesize --persons 12000 --seed 1` with the 34 tables of Summary File 1. The solvar and the
certain records of every block are proved, and every file is checked by `check_proof.py`, which reads the published file
anew. The size is that of all certificates in one archive (tar and xz), over all persons. Seconds are the processor's;
those of proving include those of `vary`, which is run again.
"""

from __future__ import annotations

import io
import json
import lzma
import tarfile
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl

import glasshouse as gh
from benchmarks.claims_vs_per_claim import machine
from glasshouse.proofs.check_proof import check

RESULTS = Path(__file__).parent / "results"
PERSONS, SEED = 12_000, 1
BANDS = ((1, 9), (10, 49), (50, 99), (100, 249), (250, 499), (500, 10**6))


@cache
def county() -> dict[str, Any]:
    """Everything that is said of the county: facts by size, bytes and seconds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        gh.synthesize(persons=PERSONS, seed=SEED, out=folder / "county")
        tables = folder / "tables.csv.gz"
        gh.tabulate(folder / "county" / "cef.parquet", scenario="sf1-person", out=tables)
        began = time.process_time()
        varied = gh.vary(tables, scenario="sf1-person", out=folder / "solvar", workers=1)
        solving = time.process_time() - began
        began = time.process_time()
        proved = gh.prove(folder / "solvar", tables=tables, out=folder / "proofs", workers=1)
        proving = time.process_time() - began
        files = sorted((folder / "proofs").glob("*.vipr"))
        began = time.process_time()
        verdicts = list(check(folder / "proofs", tables, files))
        checking = time.process_time() - began
        assert all(fine for _, fine, _ in verdicts)
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for path in files:
                archive.add(path, path.name)
        found: dict[str, Any] = {
            "persons": int(varied.places["population"].sum()), "blocks": varied.places.height,
            "facts": proved.summary.facts, "certified": proved.summary.certified, "weaker": proved.summary.weaker,
            "by proof before": proved.summary.by_proof_before, "certificates": len(files),
            "bytes": sum(path.stat().st_size for path in files), "bytes packed": len(lzma.compress(packed.getvalue())),
            "seconds of vary": round(solving, 1),
            "seconds of prove, which runs vary again and checks": round(proving, 1),
            "seconds of checking": round(checking, 2),
        }  # fmt: skip
        sizes = dict(varied.places.select("block", "population").iter_rows())
        bytes_of = pl.DataFrame({"band": [_band(sizes[p.name.split("-")[0]]) for p in files],
                                 "bytes": [p.stat().st_size for p in files]})  # fmt: skip
        found["bytes of a certificate, median by persons of the block"] = {
            str(band): int(size)
            for band, size in bytes_of.group_by("band").agg(pl.col("bytes").median()).sort("band").iter_rows()
        }
        by_band: dict[str, float] = {}
        for low, high in BANDS:
            some = [path for path in files if low <= sizes[path.name.split("-")[0]] <= high]
            began = time.process_time()
            list(check(folder / "proofs", tables, some[:20]))
            empty = time.process_time()
            list(check(folder / "proofs", tables, []))
            reading = time.process_time() - empty
            if some:
                by_band[_band(low)] = round((empty - began - reading) / len(some[:20]), 4)
        found["seconds of checking one, mean by persons of the block, without reading the tables"] = by_band
        found["machine"] = machine()
    (RESULTS / "proofs.json").write_text(json.dumps(found, indent=1) + "\n")
    return found


def _band(persons: int) -> str:
    low, high = next(one for one in BANDS if one[0] <= persons <= one[1])
    return f"{low:03d}-{high}" if high < 10**6 else f"{low}+"


def bytes_per_person() -> dict[str, Any]:
    """The size of all certificates in one archive, over all persons."""
    found = county()
    return {
        "name": "proof-bytes-per-person", "ratio": round(found["bytes packed"] / found["persons"], 1),
        "unit": "bytes a person, all certificates in one archive (tar, xz)", "n": found["persons"], "peer": "none",
        "detail": {**found, "file": "proofs.json", "left_out": "definitions.json (820 kB, once for a scenario)"},
    }  # fmt: skip


def check_vs_solve() -> dict[str, Any]:
    """How many times faster it is to check all certificates than to find them."""
    found = county()
    emitting = found["seconds of prove, which runs vary again and checks"] - found["seconds of checking"]
    return {
        "name": "proof-check-vs-solve", "ratio": round(emitting / found["seconds of checking"], 1),
        "unit": "times faster to check than to solve and prove", "n": found["certificates"],
        "peer": "vary and prove, which made them",
        "detail": {
            **{name: value for name, value in found.items() if "seconds" in name or name == "machine"},
            "file": "proofs.json", "left_out": "synthesis, tabulation, compiling the core",
        },
    }  # fmt: skip
