"""Makes the part of docs/detect.md about Table 1 in one command, groups of households, rankings and their curves.

Run: python docs/make_detect_curves.py [FOLDER]   (some minutes on two cores; finished steps in FOLDER are kept)

The county is the dense and full one of make_detect_page.py: the nearest to the paper's.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import polars as pl
from made_part import put_part  # beside this file
from make_detect_page import KEY, PERSONS, SCENARIO, SEED, SUBSIDISED, correlation, dense, done, full, percent, summary

from glasshouse.assess.occupancy import LIKELY

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "detect.md"
DATA_SETS, SOME = 10, 40
PAPER = {  # Table 1 of the paper: putative, precision, recall
    "nothing": (0.23, 1.00, 0.52), "swap 10%": (0.15, 0.98, 0.33), "noise, 2020 budget": (0.66, 0.56, 0.84),
}  # fmt: skip
# Section 3.2: blocks, households, unique, unique and violating, of 10,224 real blocks
PAPER_GROUPS = {
    ("solvar", "one solution"): ("16", "476", "", "0"),
    ("solvar_simple", "one solution"): ("344", "20,666", "453", "170"),
    ("solvar_simple", "less than 5% can differ"): ("921", "104,324", "", "804"),
}  # fmt: skip
PICTURES = {
    "certain-by-share.svg": "detect-by-share.svg", "violations.svg": "detect-violations.svg",
    "matched-unique.svg": "detect-unique.svg", "precision-recall.svg": "detect-curves.svg",
    "match-rate.svg": "detect-match-rate.svg",
}  # fmt: skip


def table_1(folder: Path, county: Path, housing: Path) -> list[str]:
    """Every protection in one command."""
    out = folder / "table-1"
    if not (out / "summary.parquet").is_file():
        done("compare", county, "--plan", "occupancy", "--properties", housing, "--out", out)
    rows = pl.read_parquet(out / "summary.parquet")
    found = {(name, measure): value for name, measure, value in rows.select("setting", "measure", "value").iter_rows()}
    lines = ["| protection | model | putative | nothing fits | precision | recall |", "|---" * 6 + "|"]
    for name in rows["setting"].unique(maintain_order=True):
        for model, after in (("sharp", ""), ("paper", " (paper)")):
            cells = [percent(found.get((name, f"{measure}{after}"))) for measure in
                     ("putative_places", "nothing_fits", "precision_places", "found_places")]  # fmt: skip
            lines.append(f"| {name} | {model} | {' | '.join(cells)} |")
        if name in PAPER:
            share, right, recalled = (percent(value) for value in PAPER[name])
            lines.append(f"| {name} | *published* | {share} | | {right} | {recalled} |")
    return lines


def groups(folder: Path, county: Path, tables: Path, housing: Path) -> list[str]:
    """Households where data sets agree, by both models, in the blocks with the largest subsidised share."""
    some = folder / "housing-some.parquet"
    there = pl.read_parquet(county / "households.parquet").filter(pl.col("persons") > 0).group_by("block").len()
    share = (pl.col("number_reported").sum().over("block") / pl.col("len")).alias("share")
    ranked = pl.read_parquet(housing).join(there, on="block").with_columns(share)
    dense_ones = ranked.filter(pl.col("pct_bed1") >= 0).sort("share", "block", descending=[True, False]).head(SOME)
    dense_ones.drop("share", "len").write_parquet(some)
    head = ("model", "other data sets", "over", "mean", "how far", "blocks", "households", "unique",
            "unique and above the limit")  # fmt: skip
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for model in ("paper", "sharp"):
        for among in ("all", "sample"):
            out = folder / f"groups-{model}-{among}"
            if not (out / "summary.json").is_file():
                done("detect", tables, "--properties", some, "--sample", county / "sample.parquet", "--solvar",
                     "--groups", "--solvar-among", among, "--model", model, "--out", out)  # fmt: skip
            told = summary(out)
            kinds = "all that fit" if among == "all" else "of sampled kinds"
            for one in told["groups"]:
                numbers = (one["blocks"], one["households"], one["unique"], one["unique_violations"])
                cells = " | ".join(f"{number:,}" for number in numbers)
                mean = f"{told['solvar'][one['over']]['mean']:.1%}"
                lines.append(f"| {model} | {kinds} | {one['over']} | {mean} | {one['band']} | {cells} |")
    for (over, band), theirs in PAPER_GROUPS.items():
        lines.append(f"| *published* | | {over} | | {band} | {' | '.join(theirs)} |")
    return lines


def rankings(folder: Path) -> list[str]:
    """One list over all blocks beside one in each: precision where a tenth, a fifth and half of recall is reached."""
    lines = ["| key | households | ranking | kinds tried | putative | precision | recall |", "|---" * 7 + "|"]
    for key in (KEY, "race, child"):
        for who in ("all", "unique"):
            for file, words in (("rates", "in each block"), ("rates-over-all", "over all blocks")):
                rows = pl.read_parquet(folder / f"{file}.parquet").filter(
                    pl.col("attacker") == LIKELY, pl.col("key") == key, pl.col("households") == who
                )
                chosen = [rows.filter(pl.col("recall") >= share).head(1) for share in (0.1, 0.2, 0.4)]
                told = pl.concat([*chosen, rows.filter("all_putative")]).unique(maintain_order=True).to_dicts()
                lines += [f"| {key} | {who} | {words} | {row['k']:,} | {row['putative']:,} | "
                          f"{percent(row['precision'])} | {percent(row['recall'])} |" for row in told]  # fmt: skip
    return lines


def page(folder: Path) -> str:
    whole, county, tables = folder / "county", folder / "dense", folder / "tables.parquet"
    if not (whole / "manifest.json").is_file():
        done("synthesize", "--persons", PERSONS, "--subsidised", SUBSIDISED, "--seed", SEED, "--out", whole)
    if not (county / "households.parquet").is_file():
        dense(whole, county)
    housing, homes = full(county), county / "households.parquet"
    if not tables.is_file():
        done("tabulate", homes, *SCENARIO, "--out", tables)
    first = table_1(folder, county, housing)
    out = folder / "curves"
    if not (out / "summary.json").is_file():
        done("detect", tables, "--properties", housing, "--sample", county / "sample.parquet", "--solutions", DATA_SETS,
             "--truth", homes, "--out", out)  # fmt: skip
    for picture, to in PICTURES.items():
        shutil.copy(out / picture, PAGE.with_name(to))
    return "\n".join([
        "**Table 1 in one command** (`glasshouse compare county --plan occupancy --out compared`; % of blocks):\n",
        *first,
        f"\n**Groups of section 3.2** (`--solvar --groups`; the {SOME} properties with the largest share of their "
        "block, and the paper's real ones; households and uniques are those of the most likely data set):\n",
        *groups(folder, county, tables, housing),
        "\n**One list over all blocks** (`rates-over-all.parquet`) beside one in each (`rates.parquet`), model "
        "`sharp`, no protection: where the list first reaches a recall of 10%, 20% and 40%, and at its end:\n",
        *rankings(out),
        "\n![Blocks by their subsidised share](detect-by-share.svg)\n",
        f"![Households above the limit](detect-violations.svg)\n\n*Figure A.3: the correlation is "
        f"{correlation(out):.2f}.*\n",
        "![Unique households](detect-unique.svg)\n",
        "![Precision and recall](detect-curves.svg)\n",
        "![Match rate](detect-match-rate.svg)",
    ])  # fmt: skip


if __name__ == "__main__":
    where = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp(prefix="glasshouse-page-"))
    where.mkdir(exist_ok=True)
    put_part(PAGE, __file__, page(where))
