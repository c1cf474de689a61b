"""Makes the tables and pictures of docs/verify.md: claims about a synthetic state's households, beside the paper's.

Run: python docs/make_verify_page.py   (about ten minutes on two cores, half of it without structural zeros)
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import polars as pl
from made_part import put_part  # beside this file

from glasshouse.assess.paper_claims import beside_paper, published
from glasshouse.cli.main import main

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "verify.md"
PERSONS, SEED, BLOCKS, FEWER = 500_000, 1, 250, 40
SCENARIO = ("--scenario", "dhc-household")
KS = range(6, 11)
DROPPED = {
    "nothing": ("national-all", "all queries"), "1": ("drop-1", "without ones"), "0": ("drop-0", "without zeros"),
    "0 and 1": ("drop-0,1", "without zeros and ones"),
}  # fmt: skip


def study(folder: Path) -> dict[str, float]:
    """Every step, and its seconds."""
    seconds: dict[str, float] = {}

    def step(name: str, *options: str) -> None:
        began = time.perf_counter()
        if main([*options, "--quiet"]):
            raise SystemExit(f"{name} failed")
        seconds[name] = time.perf_counter() - began

    for preset in ("national", "diverse-urban"):
        county = folder / preset
        step(f"synthesize {preset}", "synthesize", "--persons", str(PERSONS), "--seed", str(SEED), "--preset", preset,
             "--out", str(county))  # fmt: skip
        homes, tables = str(county / "households.parquet"), str(folder / f"{preset}.parquet")
        step(f"tabulate {preset}", "tabulate", homes, *SCENARIO, "--out", tables)
        verify = ("verify", tables, *SCENARIO, "--truth", homes)
        priors = ("--prior-tract", homes, "--prior-state", homes)
        step(f"{preset}", *verify, *priors, "--pick", f"10:{BLOCKS}", "--out", str(folder / f"{preset}-all"))
        step(f"{preset}, paper's zeros", *verify, "--pick", f"10:{BLOCKS}", "--zeros", "paper", "--out",
             str(folder / f"{preset}-paper"))  # fmt: skip
        if preset == "national":
            step("state median", *verify, "--pick", f"state-median:{BLOCKS}", "--out", str(folder / "median"))
            for drop in ("1", "0", "0,1"):
                step(f"without {drop}", *verify, "--pick", f"10:{BLOCKS}", "--drop-cells", drop, "--out",
                     str(folder / f"drop-{drop}"))  # fmt: skip
            step("which table", *verify, "--pick", f"10:{FEWER}", "--leaks", "family", "--why", "3", "--out",
                 str(folder / "leaks"))  # fmt: skip
    return seconds


def _summary(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return found


def _rates(folder: Path, multiplicity: str) -> dict[int, dict[str, Any]]:
    return {row["k"]: row for row in _summary(folder)["by_columns"] if row["multiplicity"] == multiplicity}


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.1f}"


def beside(folder: Path) -> list[str]:
    """Blocks and households by k, ours and theirs."""
    ours = pl.DataFrame(_summary(folder / "national-all")["by_columns"], infer_schema_length=None)
    theirs = {(row["multiplicity"], row["k"]): row for row in beside_paper(ours).iter_rows(named=True)}
    lines = []
    for multiplicity, words in (("singleton", "exactly one household"), ("all", "any number of households")):
        lines += [
            f"**Claims about {words}**: percent of households represented (percent of blocks with such a claim)", "",
            "| columns | national | national, paper's zeros | diverse-urban | diverse-urban, paper's zeros | paper |",
            "|---|---|---|---|---|---|",
        ]  # fmt: skip
        for k in KS:
            cells = []
            for run in ("national-all", "national-paper", "diverse-urban-all", "diverse-urban-paper"):
                row = _rates(folder / run, multiplicity)[k]
                cells.append(f"{_percent(row['share'])} ({_percent(row['block_share'])})")
            row = theirs[multiplicity, k]
            blocks = row["block_share_published"]
            cells.append(_percent(row["country_published"]) + (f" (about {100 * blocks:.0f})" if blocks else ""))
            lines.append(f"| {k} | {' | '.join(cells)} |")
        lines.append("")
    median = _rates(folder / "median", "singleton")
    sizes = _summary(folder / "median")["median_size"]
    said = ", ".join(f"{k}: {_percent(median[k]['share'])} ({_percent(median[k]['block_share'])})" for k in KS)
    return [
        *lines,
        f"Blocks of the state's own median size ({sizes:.0f} households; national), exactly one: {said}.",
        "",
    ]


def write_page() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        seconds = study(folder)
        made = "\n".join([*beside(folder), *ablation(folder), *explained(folder), *told(folder, seconds)])
        for picture, to in (("claims-by-columns.svg", "verify-claims.svg"), ("columns-used.svg", "verify-columns.svg")):
            shutil.copyfile(folder / "national-all" / picture, ROOT / "docs" / to)
        shutil.copyfile(folder / "leaks" / "leaks.svg", ROOT / "docs" / "verify-leaks.svg")
    put_part(PAGE, __file__, made)


def ablation(folder: Path) -> list[str]:
    """The paper's table 5, ours beside theirs."""
    paper = published("5")
    lines = [
        "**Numbers left out** (`--drop-cells`): percent of households singled out, ours (paper 002, table 5)", "",
        "| left out | percent of the numbers | 6 columns | 7 | 8 | 9 | 10 |", "|---|---|---|---|---|---|---|",
    ]  # fmt: skip
    for words, (run, panel) in DROPPED.items():
        rows, theirs = _rates(folder / run, "singleton"), paper.filter(panel=panel)
        removed = theirs.filter(column="queries_removed")["value"].item()
        share = _summary(folder / run)["queries_left_out"]["share_mean"]
        cells = []
        for k in KS:
            value = theirs.filter(pl.col("k") == k)["value"].item()
            cells.append(f"{_percent(rows[k]['share'])} ({100 * value / 2500:.1f})")
        lines.append(f"| {words} | {100 * share:.1f} ({100 * removed:.1f}) | {' | '.join(cells)} |")
    return [*lines, ""]


def explained(folder: Path) -> list[str]:
    """Three claims and why they are certain."""
    reasons = pl.read_parquet(folder / "leaks" / "reasons.parquet").filter(pl.col("m") == 1)
    chosen = (
        reasons.with_columns(pl.col("variables").list.len().alias("numbers"))
        .filter(pl.col("k") >= 8, pl.col("numbers") <= 5)
        .sort("k", "numbers", "description", descending=[True, False, False])
        .unique("block", keep="first", maintain_order=True)
        .head(3)
    )
    lines = ["**Three claims, and why they are certain** (`--why`; a synthetic state, so nobody lives there):", ""]
    for row in chosen.iter_rows(named=True):
        lines += [f"* {row['description']} ({row['k']} columns)  ", f"  *{row['because']}*"]
    return [*lines, ""]


def told(folder: Path, seconds: dict[str, float]) -> list[str]:
    unique = _summary(folder / "national-all")["unique"]
    other = _summary(folder / "diverse-urban-all")["unique"]
    undecided = [_summary(folder / run)["undecided"] for run in ("national-all", "diverse-urban-all", "national-paper",
                                                                  "diverse-urban-paper", "median")]  # fmt: skip
    open_, asked = sum(one["undecided"] for one in undecided), sum(one["claims"] for one in undecided)
    lines = [
        f"Known as a whole: {unique['unique']} of {unique['blocks']} blocks (national; {100 * unique['low']:.1f}% to "
        f"{100 * unique['high']:.1f}%), {other['unique']} of {other['blocks']} (diverse-urban; "
        f"{100 * other['low']:.1f}% to {100 * other['high']:.1f}%); paper 002: 0 of 500. "
        f"Undecided: {open_:,} of {asked:,} claims, over all runs of this page.",
        "",
    ]
    times = ", ".join(f"{name} {value:.0f}" for name, value in seconds.items() if "tabulate" not in name)
    return [*lines, f"Seconds on 2 cores (which had other work besides): {times}."]


if __name__ == "__main__":  # a guard: workers import this module again
    sys.exit(write_page())
