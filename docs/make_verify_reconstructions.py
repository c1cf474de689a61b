"""Makes the part of docs/verify.md about drawn data sets and priors: what K of them leave over, and what N counts.

Run: python docs/make_verify_reconstructions.py [FOLDER]   (some minutes on two cores; finished runs in FOLDER are kept)
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from made_part import put_part  # beside this file

from glasshouse.cli.main import main

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "verify.md"
PERSONS, SEED, BLOCKS, FEWER = 500_000, 1, 250, 60
COLUMNS = range(6, 11)
SCENARIO = ("--scenario", "dhc-household")
# With the paper's zeros a draw takes ten times as long, so there are fewer blocks and draws.
RUNS: dict[str, tuple[int, tuple[int, ...], tuple[str, ...]]] = {
    "all zeros": (BLOCKS, (10, 100, 1000), ()),
    "paper's zeros": (FEWER, (10, 100), ("--zeros", "paper")),
}


def done(*words: object) -> None:
    if main([str(word) for word in words] + ["--quiet"]):
        raise SystemExit(f"{words[0]} failed: {' '.join(map(str, words))}")


def summary(folder: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((folder / "summary.json").read_text("utf-8"))
    return told


def studies(folder: Path) -> dict[str, Path]:
    """The runs of this part: each is done once."""
    county, tables = folder / "county", folder / "tables.parquet"
    homes = county / "households.parquet"
    if not homes.is_file():
        done("synthesize", "--persons", PERSONS, "--seed", SEED, "--out", county)
    if not tables.is_file():
        done("tabulate", homes, *SCENARIO, "--out", tables)
    priors = ("--prior-tract", homes, "--prior-state", homes, "--prior-uniform")
    wanted: dict[str, tuple[object, ...]] = {"units": ("--pick", f"10:{BLOCKS}", *priors, "--counting", "units")}
    for name, (blocks, ks, zeros) in RUNS.items():
        wanted[name] = (*zeros, "--pick", f"10:{blocks}", "--reconstructions", ",".join(map(str, ks)))
    wanted["all zeros"] += priors
    found = {}
    for name, words in wanted.items():
        found[name] = folder / name.replace(" ", "-").replace("'", "")
        if not (found[name] / "summary.json").is_file():
            done("verify", tables, *SCENARIO, *words, "--out", found[name])
    return found


def left_over(found: dict[str, Path]) -> list[str]:
    """What the intersection of K has and the complete answer has not."""
    lines = [
        "| zeros | K | multiplicity | " + " | ".join(f"{k} columns" for k in COLUMNS) + " | all | blocks |",
        "|---" * (len(COLUMNS) + 5) + "|",
    ]
    for name, (blocks, ks, _) in RUNS.items():
        rows = summary(found[name])["generated"]
        for k in ks:
            for which, words in (("singleton", "exactly one"), ("all", "any")):
                mine = {row["k"]: row for row in rows if (row["reconstructions"], row["multiplicity"]) == (k, which)}
                cells = [f"{mine[n]['left_over']:,} of {mine[n]['agreed']:,}" if n in mine else "0" for n in COLUMNS]
                wrong, agreed = (sum(row[column] for row in mine.values()) for column in ("left_over", "agreed"))
                where = max((row["blocks"] for row in mine.values()), default=0)
                share = f" ({wrong / agreed:.2%})" if agreed else ""
                cells += [f"{wrong:,} of {agreed:,}{share}", f"{where:,} of {blocks:,}"]
                lines.append(f"| {name} | {k:,} | {words} | " + " | ".join(cells) + " |")
    return lines


def ranked(found: dict[str, Path]) -> str:
    """How much of what most of the data sets bear out is certain."""
    told = []
    for name, (_, ks, _) in RUNS.items():
        for k in ks:
            rows = [row for row in summary(found[name])["generated"]
                    if (row["reconstructions"], row["multiplicity"]) == (k, "all")]  # fmt: skip
            most, sure = (sum(row[column] for row in rows) for column in ("most", "most_certain"))
            told.append(f"{sure / most:.1%} of {most:,} at K = {k:,} ({name})")
    return f"Of the first data set's claims that more than half of all bear out, certain are {', '.join(told)}."


def baselines(found: dict[str, Path]) -> list[str]:
    """How probable claims about exactly one household were, by what N and the prior count."""
    lines = ["| N and prior count | prior | " + " | ".join(f"{k} columns" for k in COLUMNS) + " |",
             "|---" * (len(COLUMNS) + 2) + "|"]  # fmt: skip
    for name, words in (("all zeros", "households"), ("units", "all units")):
        rows = [row for row in summary(found[name])["baselines"] if row["multiplicity"] == "singleton"]
        for prior in dict.fromkeys(row["prior"] for row in rows):
            mine = {row["k"]: row for row in rows if row["prior"] == prior}
            cells = [f"{mine[k]['median']:.2g} ({mine[k]['q3']:.2g})" if k in mine else "" for k in COLUMNS]
            lines.append(f"| {words} | {prior} | " + " | ".join(cells) + " |")
    return lines


def page(folder: Path) -> str:
    found = studies(folder)
    printed = {name: (summary(found[name])["printed"], summary(found[name])["claims"]) for name in RUNS}
    told = ", ".join(f"{some:,} of {every:,} claims ({name})" for name, (some, every) in printed.items())
    sizes = summary(found["units"])["by_columns"][0]
    return "\n".join([
        f"**What K reconstructions leave over** (`--reconstructions 10,100,1000`; {BLOCKS} blocks of ten "
        f"households, the national preset; {FEWER} with the paper's zeros, where draws take ten times as long): claims "
        "that all K data sets agree on and that another data set refutes, of "
        "all that they agree on; and blocks with such a claim, at the number of columns with most:\n",
        *left_over(found),
        f"\n{ranked(found)}\n",
        f"**Printed anyway** (column `printed`): {told}. The paper says that none of its claims of six columns or more "
        "is, as no table names more than four; where zeros make other columns follow, some are.\n",
        "**What N and the prior count** (`--counting`, `--prior-uniform`): median (upper quartile) of the probability "
        "that a claim about exactly one household held anyway, in blocks of ten households and in blocks of ten "
        f"units (the second have {sizes['households'] or sizes['households_low']:,} households together):\n",
        *baselines(found),
    ])  # fmt: skip


if __name__ == "__main__":  # a guard: workers import this module again
    where = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp(prefix="glasshouse-page-"))
    where.mkdir(exist_ok=True)
    put_part(PAGE, __file__, page(where))
