"""Makes the tables and the picture of docs/reidentify.md: the whole study of a synthetic county, beside the paper's.

Run: python docs/make_reidentify_page.py   (about seven minutes on two cores, most of it leaving people out)
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from pathlib import Path

import polars as pl
from made_part import put_part  # beside this file

from glasshouse.assess.paper_tables import printed
from glasshouse.cli.main import main

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reidentify.md"
PERSONS, SEED, LEFT_OUT = 500_000, 1, 2000
SCENARIO = ("--scenario", "sf1-person")
ROWS = ("CEF", "HDF", "rHDF_bt", "rHDF_b", "MDG", "PRG")
GROUPS = (
    ("everyone", "all", "S6", None),
    ("modal persons", "modal", "S9", None),
    ("nonmodal persons", "nonmodal", "5", None),
    ("nonmodal, blocks with one solution", "zero-solvar-nonmodal", "S8", 0),
    ("nonmodal and unique, blocks with one solution", "zero-solvar-nonmodal-unique", "S8", 1),
)


def study(folder: Path) -> dict[str, float]:
    """Every step, and its seconds."""
    county, tables = folder / "county", str(folder / "tables.parquet")
    files = ["--truth", str(county / "cef.parquet"), "--published", str(county / "hdf.parquet")]
    lists = ["--attacker", str(county / "commercial.parquet"), "--attacker", str(county / "attacker-perfect.parquet")]
    rebuilt, vary = [str(folder / "tract"), str(folder / "block")], ["--vary", str(folder / "solvar")]
    steps = {
        "synthesize": ["--persons", str(PERSONS), "--seed", str(SEED), "--out", str(county)],
        "tabulate": [str(county / "hdf.parquet"), *SCENARIO, "--out", tables],
        "reconstruct": [tables, *SCENARIO, "--out", rebuilt[0]],
        "reconstruct ": [tables, *SCENARIO, "--level", "block", "--out", rebuilt[1]],
        "vary": [tables, *SCENARIO, "--out", str(folder / "solvar")],
        "reidentify": [*rebuilt, *vary, *files, *lists, "--out", str(folder / "risk")],
        "reidentify --leave-one-out": [*rebuilt, *vary, *files, *lists[2:], "--leave-one-out", str(LEFT_OUT), "--out",
                                       str(folder / "held")],
        "reidentify --leave-one-out --swap": [*rebuilt[:1], *vary, *files, *lists[2:], "--leave-one-out", str(LEFT_OUT),
                                              "--swap", "0.02,0.10", "--out", str(folder / "swapped")],
    }  # fmt: skip
    seconds = {}
    for name, options in steps.items():
        began = time.perf_counter()
        if main([name.split()[0], *options, "--quiet"]):
            raise SystemExit(f"{name} failed")
        seconds[name] = time.perf_counter() - began
    return seconds


def tables(folder: Path, seconds: dict[str, float]) -> str:
    rates = pl.read_parquet(folder / "risk" / "rates.parquet").filter(pl.col("band") == "all")
    lines = [
        f"A synthetic county of {PERSONS:,} persons (preset `national`, seed {SEED}) beside the nation in 2010 (paper",
        "000, in brackets). Nothing was fitted to these figures; the county was calibrated to block sizes, homogeneity",
        "and uniques ([population](population.md)). Precision, in percent:",
        "",
        "| | rHDF_bt, bought list | rHDF_bt | HDF | rHDF_b | MDG | PRG |",
        "|---|---|---|---|---|---|---|",
    ]
    for words, group, table, panel in GROUPS:
        cells = [
            _cell(rates, group, table, panel, data, attacker)
            for data, attacker in (
                ("rHDF_bt", "commercial"),
                ("rHDF_bt", "attacker-perfect"),
                ("HDF", "attacker-perfect"),
                ("rHDF_b", "attacker-perfect"),
                ("MDG", "attacker-perfect"),
                ("PRG", "attacker-perfect"),
            )
        ]
        lines.append(f"| {words} | {' | '.join(cells)} |")
    lines += ["", "(All but the first column: a list that is right about everybody.)", "", _agreement(folder), ""]
    lines += [
        *_left(folder / "held", "The swap held as it was"),
        "",
        *_left(folder / "swapped", "Households swapped again"),
        "",
    ]
    told = ", ".join(f"`{name.strip()}` {value:.0f}" for name, value in seconds.items())
    lines.append(f"Seconds on 2 cores, in this order: {told}.")
    return "\n".join(lines)


def _cell(rates: pl.DataFrame, group: str, table: str, panel: int | None, data: str, attacker: str) -> str:
    ours = rates.filter(pl.col("group") == group, pl.col("data") == data, pl.col("attacker") == attacker)
    role = {"commercial": "COMRCL", "attacker-perfect": "CEFatkr"}[attacker]
    theirs = printed(table)
    if panel is not None:
        theirs = theirs.filter(pl.col("panel") == theirs["panel"].unique(maintain_order=True)[panel])
    else:
        theirs = theirs.filter(pl.col("band") == "all")
    published = theirs.filter(pl.col("data") == data)[f"{role}_precision"].item()
    return f"{100 * ours['precision'].item():.1f} ({100 * published:.1f})"


def _agreement(folder: Path) -> str:
    rows = pl.read_parquet(folder / "risk" / "agreement.parquet").filter(
        pl.col("band") == "all", pl.col("group") == "all"
    )  # fmt: skip
    theirs = printed("3").filter(pl.col("band") == "all")
    said = []
    for data, other in (("HDF", "CEF"), ("rHDF_bt", "CEF"), ("rHDF_b", "CEF"), ("rHDF_bt", "HDF"), ("rHDF_b", "HDF")):
        mine = rows.filter(pl.col("data") == data, pl.col("with") == other)
        paper = theirs.filter(pl.col("data") == data, pl.col("with") == other)
        said.append(
            f"{data} with {other} {100 * mine['binned_share'].item():.1f}% ({100 * paper['binned_share'].item():.1f})"
        )
    guess = rows.filter(pl.col("data") == "MDG", pl.col("with") == "CEF")["binned_share"].item()
    return (
        f"Agreement, age in bins: {'; '.join(said)}. Records whose race and origin are only guessed (MDG) "
        f"agree with the truth in {100 * guess:.1f}%."
    )


def _left(folder: Path, words: str) -> list[str]:
    rows = pl.read_parquet(folder / "leave-one-out.parquet")
    lines = [
        f"**{words}**, {LEFT_OUT:,} persons of each group left out in turn, the right list:",
        "",
        "| | with them | without | because they answered | no inference without |",
        "|---|---|---|---|---|",
    ]
    for group in ("all", "nonmodal", "nonmodal-unique"):
        for data in ("rHDF_bt", "rHDF_bt+MDG", "MDG", "PRG"):
            row = rows.filter(pl.col("group") == group, pl.col("data") == data).row(0, named=True)
            lines.append(
                f"| {data}, {group} | {row['share_in']:.1%} | {row['share_out']:.1%} | {row['difference']:+.1%} "
                f"({row['low']:+.1%} to {row['high']:+.1%}) | {row['persons'] - row['inferred_out']:,} of "
                f"{row['persons']:,} |"
            )
    return lines


def write_page() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = tables(folder, study(folder))
        shutil.copyfile(folder / "risk" / "precision-by-size.svg", ROOT / "docs" / "reidentify-precision.svg")
    put_part(PAGE, __file__, made)


if __name__ == "__main__":  # a guard: workers import this module again
    sys.exit(write_page())
