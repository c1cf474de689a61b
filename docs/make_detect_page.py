"""Makes the tables and pictures of docs/detect.md: detection on a synthetic county under protections, beside the paper.

Run: python docs/make_detect_page.py [FOLDER]   (about half an hour on two cores; finished steps in FOLDER are kept)
"""

from __future__ import annotations

import json
import re
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import polars as pl

from glasshouse.assess.occupancy import LIKELY, SAMPLING, UNIQUES
from glasshouse.report.charts import Axis, Lines, write
from glasshouse.run.cli import main

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "detect.md"
PERSONS, SEED, SUBSIDISED = 400_000, 1, 0.2
SCENARIO = ("--scenario", "subsidised-housing")
KEY = "subsidised, bedrooms, race, child"
# Steed, Qing and Wu, Table 1: putative share of blocks, precision, recall
PAPER = {"none": (0.23, 1.00, 0.52), "swapping, 10%": (0.15, 0.98, 0.33), "noise, 2020 budget": (0.66, 0.56, 0.84)}
# the same, section 4.2: precision and recall of households at k = all, by the key with bedrooms; all and unique
PAPER_HOUSEHOLDS = {("none", "all"): (0.66, 0.21), ("none", "unique"): (0.63, 0.11),
                    ("noise, 2020 budget", "unique"): (0.37, None)}  # fmt: skip


def done(*words: object) -> float:
    """Run a command; its seconds."""
    began = time.perf_counter()
    if main([str(word) for word in words] + ["--quiet"]):
        raise SystemExit(f"{words[0]} failed: {' '.join(map(str, words))}")
    return time.perf_counter() - began


def protections(folder: Path) -> dict[str, tuple[Path, Path]]:
    """What each protection publishes: the tables of the census and the file of properties."""
    county = folder / "county"
    homes, housing, truth = county / "households.parquet", county / "housing.parquet", folder / "tables.parquet"
    if not (county / "manifest.json").is_file():
        done("synthesize", "--persons", PERSONS, "--subsidised", SUBSIDISED, "--seed", SEED, "--out", county)
    if not truth.is_file():
        done("tabulate", homes, *SCENARIO, "--out", truth)
    found = {"none": (truth, housing)}
    for rate in (10, 50):
        moved, tables = folder / f"swapped-{rate}.parquet", folder / f"tables-swap-{rate}.parquet"
        if not tables.is_file():
            done("protect", "swap", county / "cef.parquet", "--rate", rate / 100, "--seed", SEED, "--coordinates",
                 county / "blocks.parquet", "--out", folder / "cef-swapped.parquet", "--households", homes,
                 "--households-out", moved, "--overwrite")  # fmt: skip
            done("tabulate", moved, *SCENARIO, "--out", tables)
        found[f"swapping, {rate}%"] = tables, housing
    noise = {"noise, 2020 budget": ("--budget", "occupancy-2020"), "noise, rho 0.1": ("--rho", "0.1"),
             "noise, rho 10": ("--rho", "10")}  # fmt: skip
    for name, words in noise.items():
        tables = folder / f"tables-{name.replace(', ', '-').replace(' ', '-')}.parquet"
        if not tables.is_file():
            done("protect", "noise", truth, *SCENARIO, *words, "--invariant", "H0030002", "--invariant", "H0030003",
                 "--seed", SEED, "--out", tables)  # fmt: skip
        found[name] = tables, housing
    both = folder / "housing-noisy.parquet"
    if not both.is_file():
        done("protect", "properties", housing, "--rho", "12.66", "--seed", SEED, "--out", both)
    found["noise, 2020 budget, on properties too"] = found["noise, 2020 budget"][0], both
    return found


def studies(folder: Path) -> dict[tuple[str, str], Path]:
    """Detection under every protection and model, with the truth beside it; households where the paper has them."""
    county = folder / "county"
    found: dict[tuple[str, str], Path] = {}
    for name, (tables, housing) in protections(folder).items():
        for model in ("sharp", "paper"):
            out = folder / f"{model}-{name.replace(', ', '-').replace(' ', '-')}"
            words: list[object] = ["--truth", county / "households.parquet", "--model", model]
            if model == "sharp" and name in ("none", "swapping, 10%", "noise, 2020 budget", "noise, rho 10"):
                t = 100 if name in ("none", "swapping, 10%") else 10  # as the paper does for what costs much
                words += ["--sample", county / "sample.parquet", "--solutions", t]
            if model == "sharp" and name == "none":
                words += ["--why"]
            seconds = done("detect", tables, "--properties", housing, *words, "--out", out)
            if seconds > 5:
                (folder / f"seconds-{out.name}").write_text(f"{seconds:.0f}")
            found[name, model] = out
    for ties in ("fewest",):
        out = folder / f"sharp-none-{ties}"
        done("detect", folder / "tables.parquet", "--properties", county / "housing.parquet", "--truth",
             county / "households.parquet", "--sample", county / "sample.parquet", "--solutions", 100, "--ties", ties,
             "--out", out)  # fmt: skip
        found[f"none, {ties} violations first", "sharp"] = out
    return found


def summary(folder: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((folder / "summary.json").read_text("utf-8"))
    return told


def percent(share: float | None, digits: int = 0) -> str:
    return "-" if share is None else f"{share:.{digits}%}"


def blocks(found: dict[tuple[str, str], Path]) -> list[str]:
    """Table 1."""
    lines = ["| protection | model | blocks | with violations | putative | nothing fits | precision | recall |",
             "|---" * 8 + "|"]  # fmt: skip
    for (name, model), folder in found.items():
        if name.endswith("first"):
            continue
        one = summary(folder)["blocks_right"]
        precision, recall = ((percent(one[rate]["value"]) if one[rate] else "-") for rate in ("precision", "recall"))
        lines.append(
            f"| {name} | {model} | {one['blocks']:,} | {percent(one['precision_by_chance'])} | "
            f"{percent(one['recall_by_chance'])} | {percent(one['contradictions'] / one['blocks'])} | {precision} | "
            f"{recall} |"
        )
        if model == "paper" and name in PAPER:
            share, right, recalled = PAPER[name]
            lines.append(f"| {name} | *published* | 10,224 | 45% | {percent(share)} | | {percent(right)} | "
                         f"{percent(recalled)} |")  # fmt: skip
    return lines


def households(found: dict[tuple[str, str], Path]) -> list[str]:
    """What all putative households give, by protection, for the key with bedrooms and the one without."""
    head = ("protection", "key", "households", "putative", "precision", "recall", "match rate",
            "sampling attack, same blocks", "chance")  # fmt: skip
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for (name, model), folder in found.items():
        if model != "sharp" or not (folder / "solutions.parquet").is_file():
            continue
        rates = pl.read_parquet(folder / "rates.parquet").filter("all_putative")
        for key in (KEY, "race, child"):
            for who in ("all", UNIQUES):
                rows = rates.filter((pl.col("key") == key) & (pl.col("households") == who))
                ours = rows.filter(pl.col("attacker") == LIKELY).to_dicts()
                theirs = rows.filter((pl.col("attacker") == SAMPLING) & (pl.col("blocks") == "detected")).to_dicts()
                if not ours:
                    continue
                one, other = ours[0], theirs[0]["precision"] if theirs else None
                lines.append(f"| {name} | {key} | {who} | {one['putative']:,} | {percent(one['precision'])} | "
                             f"{percent(one['recall'])} | {percent(one['match_rate'])} | {percent(other)} | "
                             f"{percent(one['baseline'])} |")  # fmt: skip
                if key == KEY and (name, who) in PAPER_HOUSEHOLDS:
                    right, recalled = PAPER_HOUSEHOLDS[name, who]
                    lines.append(f"| {name} (*published*) | {key} | {who} | | {percent(right)} | {percent(recalled)} | "
                                 "| | |")  # fmt: skip
    return lines


def picture(found: dict[tuple[str, str], Path]) -> None:
    """Precision against recall as k grows, by protection (figures 3, A.4 to A.6)."""
    frames = []
    for (name, model), folder in found.items():
        if model == "sharp" and (folder / "solutions.parquet").is_file():
            rates = pl.read_parquet(folder / "rates.parquet").filter(pl.col("attacker") == LIKELY)
            frames.append(rates.with_columns(protection=pl.lit(name)))
    data = pl.concat(frames).filter((pl.col("putative") > 0) & (pl.col("households") == "all")).sort("protection", "k")
    data = data.select("precision", "recall", "protection", "key")
    write(Lines("Households matched, as more kinds are tried", data, Axis("recall", "recall", zero=True),
                Axis("precision", "precision", zero=True), Axis("protection", "protection"), panel="key", columns=3),
          PAGE.with_name("detect-protections.svg"))  # fmt: skip


def correlation(folder: Path) -> float:
    """Between violations in likely data sets and true ones, over blocks (figure A.3)."""
    places = pl.read_parquet(folder / "places.parquet").drop_nulls("likely_violations")
    return float(places.select(pl.corr("likely_violations", "violations_true")).item())


def page(folder: Path) -> str:
    found = studies(folder)
    out = folder / "solvar"
    seconds = done("detect", folder / "tables.parquet", "--properties", folder / "county" / "housing.parquet",
                   "--sample", folder / "county" / "sample.parquet", "--solvar", "--out", out)  # fmt: skip
    shutil.copy(out / "solvar.svg", PAGE.with_name("detect-solvar.svg"))
    shutil.copy(found["none", "sharp"] / "certain-by-size.svg", PAGE.with_name("detect-certain.svg"))
    picture(found)
    exact = summary(found["none", "sharp"])
    reasons = pl.read_parquet(found["none", "sharp"] / "reasons.parquet")
    usual = reasons["numbers"].list.join(", ").value_counts(sort=True)
    right = exact["blocks_right"]
    where = f"{PERSONS:,} persons, {exact['blocks']:,} blocks with a property, {exact['subsidised']:,} subsidised of"
    solvar = summary(out)["solvar"]
    lines = [f"| over | mean | one solution | all can differ | of blocks ({seconds:.0f} s) |", "|---" * 5 + "|"]
    for name, one in solvar.items():
        numbers = f"{one['one_solution']:,} | {one['all_can_differ']:,} | {one['blocks']:,}"
        lines.append(f"| {name} | {one['mean']:.1%} | {numbers} |")
    return "\n".join([
        "![Blocks by what their numbers imply](detect-certain.svg)\n",
        f"*A synthetic county of {where} {exact['households']:,} households; "
        f"{percent(right['precision_by_chance'])} of the blocks have a violation "
        "(the paper: 47% subsidised, 44.9% of blocks).*\n",
        "**Blocks** (Table 1; published rows are the paper's, of its own synthetic data and its model):\n",
        *blocks(found),
        f"\nIn certain blocks without protection at least {exact['violations_at_least']:,} households break the rule, "
        f"proved. The usual reason ({usual['count'][0]:,} of {reasons.height:,} blocks): "
        f"{usual['numbers'][0]}.\n",
        "\n**Households** (k = all; precision and recall among those whom the key lets an attacker look at):\n",
        *households(found),
        f"\nViolations in the likely data sets and true ones go together over certain blocks with a correlation of "
        f"{correlation(found['none', 'sharp']):.2f} (figure A.3 calls it strong).\n",
        "![Households matched, by protection](detect-protections.svg)\n",
        "\n**Solution variability** (figure 2; the paper's real blocks: 16 of 10,224 with one solution, 344 in the "
        "simple set):\n",
        *lines,
        "\n![How different another data set can be](detect-solvar.svg)",
    ])  # fmt: skip


if __name__ == "__main__":
    where = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp(prefix="glasshouse-page-"))
    where.mkdir(exist_ok=True)
    made = page(where)
    begin, end = "<!-- made by docs/make_detect_page.py -->\n", "<!-- end -->"
    text = re.sub(
        re.escape(begin) + r".*?" + re.escape(end),
        lambda _: begin + made + "\n" + end,
        PAGE.read_text("utf-8"),
        flags=re.S,
    )
    PAGE.write_text(text, "utf-8")
    print(made)
