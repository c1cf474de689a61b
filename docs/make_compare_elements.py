"""Makes the table of docs/compare.md with tau, phi and U of paper 003: protections of records on a synthetic county.

Run: python docs/make_compare_elements.py   (two minutes on one core)
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import polars as pl
from made_part import put_part  # beside this file

import glasshouse as gh

PAGE = Path(__file__).resolve().parent / "compare.md"
PERSONS = 4000
SETTINGS = ("nothing", "swap 10%", "swap 50%", "relocate, half way", "relocate, most private", "TopDown, 2020")
COLUMNS = {"tau": "tau", "phi": "phi", "element_utility": "U", "found_exposed": "exposed found"}


def made(folder: Path) -> str:
    gh.synthesize(persons=PERSONS, seed=3, out=folder / "county")
    found = gh.compare([folder / "county"], settings=SETTINGS, seeds=1, workers=1).frame("summary")
    lines = ["| setting | " + " | ".join(COLUMNS.values()) + " |", "|---" * (1 + len(COLUMNS)) + "|"]
    for name in SETTINGS:
        here = dict(found.filter(pl.col("setting") == name).select("measure", "value").iter_rows())
        cells = [f"{here[one]:.1%}" if one == "found_exposed" else f"{here[one]:.5f}" for one in COLUMNS]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    command = " ".join(f'--setting "{name}"' for name in SETTINGS)
    return "\n".join([
        f"A synthetic county of {PERSONS:,} persons (seed 3), one seed: `glasshouse compare county "
        f"{command} --seeds 1`. The means are over all",
        "elements of seven columns, most of them empty, so tau is small "
        "everywhere; what counts is the ratio to the first row:", "",
        *lines,
    ])  # fmt: skip


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="glasshouse-page-") as where:
        put_part(PAGE, __file__, made(Path(where)))
