"""Makes the tables and pictures of docs/detect.md: detection on a synthetic county under protections, beside the paper.

Run: python docs/make_detect_page.py [FOLDER]   (some minutes on two cores; finished steps in FOLDER are kept)

In the paper's blocks nearly half of all households are subsidised, in some all of them; in ours a property stands among
many others, and has units that stand empty. So there are four counties: as it is synthesized; with households that are
not subsidised taken out of blocks with a property, at random, until those that are make up a share of the block that is
drawn evenly from 30% to 100% (`dense`); and each of them with as many units as households that report (`full`). Only
the dense and full one stands beside the paper; what the two changes do is a table of its own.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from made_part import put_part  # beside this file

from glasshouse.assess.occupancy import LIKELY, SAMPLING, UNIQUES
from glasshouse.cli.main import main
from glasshouse.report.framed import Axis, lines

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "detect.md"
PERSONS, SEED, SUBSIDISED = 100_000, 1, 0.2
SOME = 24  # properties whose blocks' solution variability is worked out
SHARES = (0.3, 1.0)  # of a block's households that are subsidised
DATA_SETS = 10  # the most likely of each block; the paper takes 100, and 10 or more for noise
HOUSEHOLDS = {("none", "sharp"), ("none", "paper"), ("swapping, 10%", "paper"), ("noise, 2020 budget", "paper"),
              ("noise, rho 0.1", "paper"), ("noise, 2020 budget, on properties too", "paper")}  # fmt: skip
SCENARIO = ("--scenario", "subsidised-housing")
KEY = "subsidised, bedrooms, race, child"
# Steed, Qing and Wu, Table 1: putative share of blocks, precision, recall
PAPER = {"none": (0.23, 1.00, 0.52), "swapping, 10%": (0.15, 0.98, 0.33), "noise, 2020 budget": (0.66, 0.56, 0.84)}
# the same, section 4.2: precision and recall of households at k = all, by key; all and unique. What it says of noise is
# of rho 0.1 and less, divided evenly, not of the 2020 budget
PAPER_HOUSEHOLDS = {("none", KEY, "all"): (0.66, 0.21), ("none", KEY, "unique"): (0.63, 0.11),
                    ("none", "race, child", "unique"): (0.40, 0.10),
                    ("noise, rho 0.1", KEY, "unique"): (0.37, None),
                    ("noise, rho 0.1", "race, child", "unique"): (0.27, None)}  # fmt: skip
CHANGED = ("--neighbours", "change-one")  # the paper's variance is 1 / (c rho): that of changed records


def done(*words: object) -> float:
    """Run a command; its seconds."""
    began = time.perf_counter()
    if main([str(word) for word in words] + ["--quiet"]):
        raise SystemExit(f"{words[0]} failed: {' '.join(map(str, words))}")
    return time.perf_counter() - began


def dense(county: Path, out: Path) -> None:
    """The county with fewer households that are not subsidised in blocks with a property."""
    homes = pl.read_parquet(county / "households.parquet").with_row_index("row")
    inside = (pl.col("reported") == 1) & (pl.col("bedrooms") > 0)
    blocks = homes.filter(inside).group_by("block").len().sort("block")
    rng = np.random.default_rng(SEED)
    target = blocks.with_columns(share=pl.Series(rng.uniform(*SHARES, blocks.height)))
    most = (pl.col("len") * (1 / pl.col("share") - 1)).round().cast(pl.Int64)
    others = homes.filter(~inside & (pl.col("persons") > 0)).with_columns(luck=pl.lit(0.0))
    others = others.with_columns(luck=pl.Series(rng.random(others.height))).join(target, on="block")
    gone = others.filter(pl.col("luck").rank("ordinal").over("block") > most)["household_id"]
    out.mkdir(exist_ok=True)
    for name in ("households", "cef"):
        rows = pl.read_parquet(county / f"{name}.parquet")
        rows.filter(~pl.col("household_id").is_in(gone.implode()).fill_null(False)).write_parquet(
            out / f"{name}.parquet"
        )
    for name in ("housing", "sample", "blocks"):
        shutil.copy(county / f"{name}.parquet", out / f"{name}.parquet")


def full(county: Path) -> Path:
    """The properties of a county without units that nobody reports from."""
    out = county / "housing-full.parquet"
    housing = pl.read_parquet(county / "housing.parquet")
    housing.with_columns(total_units=pl.col("number_reported")).write_parquet(out)
    return out


def conditions(folder: Path) -> list[str]:
    """What taking out other households does, and what empty units do, without protection."""
    lines = ["| county | units | blocks | subsidised | with violations | recall, sharp | recall, paper | false |",
             "|---" * 8 + "|"]  # fmt: skip
    for place, words in {"county": "as synthesized", "dense": "others taken out"}.items():
        tables = folder / f"tables-{place}.parquet"
        if not tables.is_file():
            done("tabulate", folder / place / "households.parquet", *SCENARIO, "--out", tables)
        for units, housing in {
            "some empty": folder / place / "housing.parquet",
            "all full": full(folder / place),
        }.items():
            told = {}
            for model in ("sharp", "paper"):
                out = folder / f"condition-{place}-{units.replace(' ', '-')}-{model}"
                done("detect", tables, "--properties", housing, "--model", model, "--truth",
                     folder / place / "households.parquet", "--out", out)  # fmt: skip
                told[model] = summary(out)
            sharp, right = told["sharp"], {model: one["blocks_right"] for model, one in told.items()}
            recall = [percent(one["recall"]["value"]) for one in right.values()]
            false = sum(one["putative"] - one["confirmed"] for one in right.values())
            lines.append(
                f"| {words} | {units} | {sharp['blocks']:,} | {percent(sharp['subsidised'] / sharp['households'])} | "
                f"{percent(right['sharp']['precision_by_chance'])} | {' | '.join(recall)} | {false} |"
            )
    return lines


def protections(folder: Path) -> dict[str, tuple[Path, Path]]:
    """What each protection publishes: the tables of the census and the file of properties."""
    county = folder / "dense"
    homes, truth = county / "households.parquet", folder / "tables-dense.parquet"
    if not (folder / "county" / "manifest.json").is_file():
        made = ("--persons", PERSONS, "--subsidised", SUBSIDISED, "--seed", SEED)
        done("synthesize", *made, "--out", folder / "county")
    if not homes.is_file():
        dense(folder / "county", county)
    housing = full(county)
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
    for name, words in {"2020 budget": ("--budget", "occupancy-2020"), "rho 0.1": ("--rho", "0.1", *CHANGED)}.items():
        tables = folder / f"tables-noise-{name.replace(' ', '-')}.parquet"
        if not tables.is_file():
            done("protect", "noise", truth, *SCENARIO, *words, "--invariant", "H0030002", "--invariant", "H0030003",
                 "--seed", SEED, "--out", tables)  # fmt: skip
        found[f"noise, {name}"] = tables, housing
    both = folder / "housing-noisy.parquet"
    if not both.is_file():
        done("protect", "properties", housing, "--rho", "12.66", *CHANGED, "--seed", SEED, "--out", both)
    found["noise, 2020 budget, on properties too"] = found["noise, 2020 budget"][0], both
    return found


def studies(folder: Path) -> dict[tuple[str, str], Path]:
    """Detection under every protection and model, with the truth beside it; households where the paper has them."""
    county = folder / "dense"
    truth = ("--truth", county / "households.parquet")
    found: dict[tuple[str, str], Path] = {}
    for name, (tables, housing) in protections(folder).items():
        for model in ("sharp", "paper"):
            out = folder / f"{model}-{name.replace(', ', '-').replace(' ', '-')}"
            words: list[object] = [*truth, "--model", model]
            if (name, model) in HOUSEHOLDS:
                words += ["--sample", county / "sample.parquet", "--solutions", DATA_SETS]
            if (name, model) == ("none", "sharp"):
                words += ["--why"]
            seconds = done("detect", tables, "--properties", housing, *words, "--out", out)
            if seconds > 5:
                (folder / f"seconds-{out.name}").write_text(f"{seconds:.0f}")
            found[name, model] = out
    out = folder / "sharp-none-fewest"
    done("detect", folder / "tables-dense.parquet", "--properties", full(county), *truth, "--sample",
         county / "sample.parquet", "--solutions", DATA_SETS, "--ties", "fewest", "--out", out)  # fmt: skip
    found["none, fewest violations first", "sharp"] = out
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


def by_share(found: dict[tuple[str, str], Path]) -> list[str]:
    """Recall by how much of the block is subsidised: the more, the fewer others there are to stand in."""
    lines = ["| subsidised share of the block | with violations | sharp | paper |", "|---" * 4 + "|"]
    both = [pl.read_parquet(found["none", model] / "places.parquet") for model in ("sharp", "paper")]
    for low, high in ((0.3, 0.5), (0.5, 0.7), (0.7, 0.9), (0.9, 1.01)):
        share = pl.col("subsidised") / pl.col("households")
        rows = [p.filter((share >= low) & (share < high) & (pl.col("violations_true") > 0)) for p in both]
        if rows[0].height:
            recall = [f"{(one['answer'] == 'certain').mean():.0%}" for one in rows]
            lines.append(f"| {low:.0%} to {min(high, 1):.0%} | {rows[0].height:,} blocks | {' | '.join(recall)} |")
    return lines


def households(found: dict[tuple[str, str], Path]) -> list[str]:
    """Putative households by protection, for the key with bedrooms and the one without: the first kind, and all."""
    head = ("protection", "model", "key", "households", "precision, k = 1", "recall", "precision, k = all", "recall",
            "match rate", "sampling attack, same blocks", "chance")  # fmt: skip
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for (name, model), folder in found.items():
        if not (folder / "solutions.parquet").is_file():
            continue
        rates = pl.read_parquet(folder / "rates.parquet")
        for key in (KEY, "race, child"):
            for who in ("all", UNIQUES):
                rows = rates.filter((pl.col("key") == key) & (pl.col("households") == who))
                ours = rows.filter(pl.col("attacker") == LIKELY)
                theirs = rows.filter((pl.col("attacker") == SAMPLING) & (pl.col("blocks") == "detected"))
                first, whole, other = (
                    some.row(0, named=True) if some.height else {}
                    for some in (ours.filter(pl.col("k") == 1), ours.filter("all_putative"),
                                 theirs.filter("all_putative"))
                )  # fmt: skip
                shares = [one.get(rate) for one in (first, whole) for rate in ("precision", "recall")]
                shares += [whole.get("match_rate"), other.get("precision"), whole.get("baseline")]
                told = " | ".join(percent(share) for share in shares)
                lines.append(f"| {name} | {model} | {key} | {who} | {told} |")
                if model == "paper" and (name, key, who) in PAPER_HOUSEHOLDS:
                    right, recalled = PAPER_HOUSEHOLDS[name, key, who]
                    lines.append(f"| {name} | *published* | {key} | {who} | | | {percent(right)} | "
                                 f"{percent(recalled)} | | | |")  # fmt: skip
    return lines


def picture(found: dict[tuple[str, str], Path]) -> None:
    """Precision against recall as k grows, by protection (figures 3, A.4 to A.6)."""
    frames = []
    for (name, model), folder in found.items():
        if model == "paper" and (folder / "solutions.parquet").is_file():
            rates = pl.read_parquet(folder / "rates.parquet").filter(pl.col("attacker") == LIKELY)
            short = name.replace("noise, 2020 budget, on properties too", "noise, also on properties")
            frames.append(rates.with_columns(protection=pl.lit(short)))
    data = pl.concat(frames).filter((pl.col("putative") > 0) & (pl.col("households") == "all")).sort("protection", "k")
    data = data.select("precision", "recall", "protection", "key")
    recall, precision = (Axis(name, name, zero=True, style="share") for name in ("recall", "precision"))
    title = "Households matched, as more kinds are tried (model paper)"
    lines(title, data, recall, precision, Axis("protection"), "key").save(PAGE.with_name("detect-protections.svg"))


def noise(folder: Path) -> str:
    """How large the noise of the 2020 budget is: the root of 1 / rho of a line (neighbours change one record)."""
    told = json.loads((folder / "tables-noise-2020-budget.parquet.manifest.json").read_text("utf-8"))["counts"][
        "ledger"
    ]
    words = {"block H13": "households by size", "block P15": "householders by race", "block P16": "children"}
    return ", ".join(
        f"{words[line]} {float(Fraction(rho)) ** -0.5:,.0f}" for line, rho in told.items() if line in words
    )


def swapped(found: dict[tuple[str, str], Path]) -> str:
    """How many blocks have another answer after swapping."""
    told = []
    for model in ("paper", "sharp"):
        before = pl.read_parquet(found["none", model] / "places.parquet").select("block", "answer")
        for rate in (10, 50):
            after = pl.read_parquet(found[f"swapping, {rate}%", model] / "places.parquet").select("block", "answer")
            both = before.join(after, on="block", suffix="_after")
            other = both.filter(pl.col("answer") != pl.col("answer_after"))
            nothing = other.filter(pl.col("answer_after") == "contradiction").height
            told.append(f"{other.height:,} of {both.height:,} blocks after {rate}% with `{model}` ({nothing:,} of "
                        "these become contradictions)")  # fmt: skip
    return f"Swapping changes the answer of {', '.join(told)}."


def correlation(folder: Path) -> float:
    """Between violations in likely data sets and true ones, over blocks (figure A.3)."""
    places = pl.read_parquet(folder / "places.parquet").drop_nulls("likely_violations")
    return float(places.select(pl.corr("likely_violations", "violations_true")).item())


def page(folder: Path) -> str:
    found = studies(folder)
    out, some = folder / "solvar", folder / "housing-some.parquet"
    pl.read_parquet(full(folder / "dense")).sort("block").head(SOME).write_parquet(some)
    lines = ["| over | model | mean | one solution | all can differ | blocks |", "|---" * 6 + "|"]
    for model in ("paper", "sharp"):
        done("detect", folder / "tables-dense.parquet", "--properties", some, "--sample",
             folder / "dense" / "sample.parquet", "--solvar", "--model", model, "--out", out,
             "--overwrite")  # fmt: skip
        for name, one in summary(out)["solvar"].items():
            numbers = f"{one['one_solution']:,} | {one['all_can_differ']:,} | {one['blocks']:,}"
            lines.append(f"| {name} | {model} | {one['mean']:.1%} | {numbers} |")
    shutil.copy(out / "solvar.svg", PAGE.with_name("detect-solvar.svg"))
    shutil.copy(found["none", "sharp"] / "certain-by-size.svg", PAGE.with_name("detect-certain.svg"))
    picture(found)
    exact = summary(found["none", "sharp"])
    reasons = pl.read_parquet(found["none", "sharp"] / "reasons.parquet")
    usual = reasons["numbers"].list.join(", ").value_counts(sort=True)
    right = exact["blocks_right"]
    where = f"{PERSONS:,} persons, {exact['blocks']:,} blocks with a property, {exact['subsidised']:,} subsidised of"
    return "\n".join([
        "![Blocks by what their numbers imply](detect-certain.svg)\n",
        f"*A synthetic county of {where} {exact['households']:,} households, after other households were taken out of "
        f"its blocks and empty units out of its properties; {percent(right['precision_by_chance'])} of the blocks have "
        "a violation (the paper: 47% subsidised, 44.9% of blocks). "
        f"A mean block has {exact['subsidised'] / exact['blocks']:.0f} subsidised households (the paper's: 72).*\n",
        "**How much of it is the county.** Recall is the share of the blocks with a violation that are found; `false`, "
        "blocks found without one, by either model:\n",
        *conditions(folder),
        "\nThe last row is the county of all that follows: the nearest to the paper's, and not how our county was made."
        "\n",
        "**Blocks** (Table 1; published rows are the paper's, of its own synthetic data and its model):\n",
        *blocks(found),
        f"\nIn certain blocks without protection the numbers need at least {exact['violations_at_least']:,} households "
        f"above the limit (`sharp`). The usual reason ({usual['count'][0]:,} of {reasons.height:,} blocks): "
        f"{usual['numbers'][0]}.\n",
        f"{swapped(found)}\n",
        f"Standard deviation of the noise of the 2020 budget, as appendix F works it out: {noise(folder)}.\n",
        "**Recall without protection, by how much of the block is subsidised:**\n",
        *by_share(found),
        "\n**Households** (whom the key lets an attacker look at; with the first kind of a block, and with all, in the "
        f"{DATA_SETS} most likely data sets of each; the paper's are with all, k = |V|, in 100, and what it tells of "
        "noise is of rho 0.1 and less, divided evenly):\n",
        *households(found),
        f"\nViolations in the likely data sets and true ones go together over certain blocks with a correlation of "
        f"{correlation(found['none', 'sharp']):.2f} (figure A.3 calls it strong).\n",
        "![Households matched, by protection](detect-protections.svg)\n",
        f"\n**Solution variability** of the first {SOME} properties' blocks (figure 2; the paper's real blocks: 16 of "
        "10,224 with one solution, 344 in the "
        "simple set):\n",
        *lines,
        "\n![How different another data set can be](detect-solvar.svg)",
    ])  # fmt: skip


if __name__ == "__main__":
    where = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp(prefix="glasshouse-page-"))
    where.mkdir(exist_ok=True)
    made = page(where)
    put_part(PAGE, __file__, made)
    print(made)
