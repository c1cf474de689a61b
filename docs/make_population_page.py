"""Makes the tables and pictures of docs/population.md: a county, its tables and its solvar, beside the targets.

Run: python docs/make_population_page.py   (about two minutes on two cores)
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import polars as pl
from made_part import put_part  # beside this file

from glasshouse.assess.variability import by_size, published
from glasshouse.cli.main import main
from glasshouse.population import likeness
from glasshouse.report.framed import Axis, lines
from glasshouse.report.sections.variability import picture
from glasshouse.scenarios.load import load

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "population.md"
PERSONS, SEED = 600_000, 1
SCENARIO = ("--scenario", "sf1-person")


def agebins() -> list[int]:
    """The 38-bin age of every age."""
    leaves = load("sf1-person").bins["agebin"].leaves
    return [next(number for number, leaf in enumerate(leaves) if age in leaf.levels) for age in range(111)]


def study(folder: Path) -> None:
    """The county, its published tables, and how certain they make its records."""
    steps = [
        ["synthesize", "--persons", str(PERSONS), "--seed", str(SEED), "--out", str(folder / "county"), "--quiet"],
        [
            "tabulate",
            str(folder / "county" / "hdf.parquet"),
            *SCENARIO,
            "--out",
            str(folder / "tables.parquet"),
            "--quiet",
        ],
        ["vary", str(folder / "tables.parquet"), *SCENARIO, "--out", str(folder / "solvar"), "--quiet"],
    ]
    for step in steps:
        if main(step):
            raise SystemExit(f"{' '.join(step)} failed")


def tables(folder: Path) -> str:
    cef = pl.read_parquet(folder / "county" / "cef.parquet")
    commercial = pl.read_parquet(folder / "county" / "commercial.parquet")
    places = pl.read_parquet(folder / "solvar" / "places.parquet")
    counts = json.loads((folder / "county" / "manifest.json").read_text(encoding="utf-8"))["counts"]
    bins = agebins()
    alone, zero = likeness.uniques(cef, bins), by_size(places)
    target = published("S5")
    lines = [
        f"{PERSONS:,} persons, preset `national`, seed {SEED}: "
        f"{counts['blocks']:,} blocks, {counts['tracts']:,} tracts.",
        "",
        "| persons in the block | blocks | unique and data-defined: ours | published "
        "| known for certain (solvar 0): ours | published |",
        "|---|---|---|---|---|---|",
    ]
    shares = dict(zip(target["band"], target["zero_share"], strict=True))
    blocks = dict(zip(zero["band"], zip(zero["blocks"], zero["zero_share"], strict=True), strict=True))
    for band, _, ours, wanted in alone.iter_rows():
        count, known = blocks[band]
        known = "" if known is None else f"{known:.1%}"
        lines.append(f"| {band} | {count:,} | {ours or 0:.1%} | {wanted:.1%} | {known} | {shares[band]:.1%} |")
    total = zero.filter(pl.col("band") == "all").row(0, named=True)
    nation = target["zero_blocks"].sum() / target["blocks"].sum()
    lines.append(f"| all | {total['blocks']:,} | | | {total['zero_share']:.1%} | {nation:.1%} |")
    mix, ids = likeness.concentration(cef), likeness.identifiers(cef)
    lines += [
        "",
        "| figure | ours | published |",
        "|---|---|---|",
        f"| unique on block, sex, single year of age | {likeness.unique_exact(cef):.1%} "
        f"| about {likeness.UNIQUE_EXACT_2010:.0%} |",
        f"| of the modal race and origin of the block (a modal guesser) | {mix['modal share']:.1%} | |",
        f"| sum of squared shares in the block (a proportional guesser) | {mix['sum of squared shares']:.1%} | |",
        f"| data-defined | {ids['data-defined']:.1%} | {likeness.DEFINED_2010:.1%} |",
        f"| identified records that are duplicates | {ids['duplicates']:.2%} | {likeness.DUPLICATE_2010:.1%} |",
    ]
    overlap = likeness.list_overlap(cef, commercial, bins)
    lines += [
        "",
        "Table S1: the bought list (`2010-like`) against the truth, on person, block, sex and 38-bin age.",
        "",
        "| records | ours | for 100 data-defined | published, millions | for 100 |",
        "|---|---|---|---|---|",
    ]
    for name, wanted in likeness.LISTED_2010.items():
        ours = overlap[name]
        base = overlap["data-defined"]
        whole = likeness.LISTED_2010["data-defined"]
        lines.append(f"| {name} | {ours:,} | {100 * ours / base:.1f} | {wanted} | {100 * wanted / whole:.1f} |")
    return "\n".join(lines)


def pictures(folder: Path) -> None:
    cef = pl.read_parquet(folder / "county" / "cef.parquet")
    places = pl.read_parquet(folder / "solvar" / "places.parquet")
    ages = cef.group_by("sex", "age").len().sort("sex", "age").with_columns((pl.col("len") / cef.height).alias("share"))
    share = Axis("share", "share of persons", zero=True, style="share")
    by_age = lines("Persons by age and sex", ages, Axis("age", "age"), share, Axis("sex"))
    by_age.save(ROOT / "docs" / "population-ages.svg")
    picture(places, published("S5")).save(ROOT / "docs" / "population-solvar.svg")
    sizes = places.select(pl.col("population").alias("persons")).sort("persons").with_row_index("rank", offset=1)
    steps = sizes.group_by("persons").agg((pl.col("rank").max() / places.height).alias("share")).sort("persons")
    ours = steps.with_columns(pl.lit("ours").alias("of"))
    both = pl.concat([ours, load_bands().select(ours.columns)], how="vertical_relaxed")
    x, y = Axis("persons", "persons in the block", log=True), Axis("share", "share of blocks", zero=True)
    sizes_ = lines("Blocks with at most so many persons", both, x, y, Axis("of"))
    sizes_.save(ROOT / "docs" / "population-sizes.svg")


def load_bands() -> pl.DataFrame:
    """The published sizes, as a cumulative share at the end of each band."""
    target = published("S5")
    ends = [9, 49, 99, 249, 499, 999, 2000]
    shares = (
        target.filter(pl.col("band") != "all")["blocks"].cum_sum()
        / target.filter(pl.col("band") != "all")["blocks"].sum()
    )
    return pl.DataFrame({"persons": ends, "share": shares, "of": ["published"] * len(ends)})


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="glasshouse-page-") as name:
        study(Path(name))
        text = tables(Path(name))
        pictures(Path(name))
    put_part(PAGE, __file__, text)
    sys.exit(0)
