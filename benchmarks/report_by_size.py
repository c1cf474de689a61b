"""How long does the report of an audit take, and how does that grow? Finished results, copied to more and more tracts.

The results are those of the built-in county's audit, without its protections; a copy has the same records under other
codes. Timed: reading them, describing them, and writing every file of both versions.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import polars as pl

import glasshouse as gh
from glasshouse.commands.auditing.config import Config, config_path, read_config
from glasshouse.commands.auditing.files import files_of
from glasshouse.commands.auditing.findings import find
from glasshouse.commands.auditing.steps import steps_of
from glasshouse.report.render.numbers import numbers
from glasshouse.report.render.page import page
from glasshouse.report.render.sheets import sheets

TRACTS = (4, 100, 1000)
LEFT_OUT = (
    "proofs, noise and protections; the public page, which would contradict itself, as only some results are copied; "
    "figures as files; the results themselves are not timed"
)
COPIED = ("solvar/places.parquet", "solvar/areas.parquet", "solvar/groups.parquet", "rebuilt/records.parquet",
          "county/blocks.parquet")  # fmt: skip


def run() -> Any:
    """Seconds of the report for 1,000 tracts."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "audit"
        toml = config_path(None).read_text(encoding="utf-8")
        path = Path(scratch) / "county.toml"
        path.write_text(toml.split("[proofs]")[0] + "[public]\nthreshold = 10\n", encoding="utf-8")
        gh.audit(config=path, out=folder)
        config, points = read_config(path), []
        for tracts in TRACTS:
            larger = Path(scratch) / f"audit{tracts}"
            shutil.copytree(folder, larger)
            _copied(larger, tracts)
            points.append(_timed(config, larger, tracts))
            print(points[-1])
            shutil.rmtree(larger)
    last = points[-1]
    return {
        "name": "report-by-size", "ratio": last["seconds"], "unit": "seconds", "n": last["tracts"], "peer": "none",
        "detail": {"points": points, "left_out": LEFT_OUT},
    }  # fmt: skip


def _copied(folder: Path, tracts: int) -> None:
    """The results of more tracts: each copy has a county code of its own."""
    places = pl.read_parquet(folder / COPIED[0])
    copies = -(-tracts // places["tract"].n_unique())
    for name in COPIED:
        frame = pl.read_parquet(folder / name)
        parts = []
        for copy in range(copies):
            codes = [column for column in ("block", "block_group", "tract") if column in frame.columns]
            other = [(pl.lit(f"99{copy:03d}") + pl.col(column).str.slice(5)).alias(column) for column in codes]
            parts.append(frame.with_columns(*other))
        pl.concat(parts).write_parquet(folder / name)


def _timed(config: Config, folder: Path, tracts: int) -> dict[str, Any]:
    files = files_of(config, folder)
    steps = steps_of(config, files)
    began = time.perf_counter()
    found = find(config, files, steps, [])
    html, workbook, lines = page(found.report), sheets(found.report), numbers(found.report)
    seconds = time.perf_counter() - began
    sizes = {"html_bytes": len(html.encode()), "xlsx_bytes": len(workbook), "csv_bytes": len(lines.encode())}
    return {"tracts": tracts, "seconds": round(seconds, 2), **sizes}
