"""Makes the tables and pictures of docs/tradeoff.md: points chosen, twelve maps, Table 4, draws, other protections.

Run: python docs/make_tradeoff_page.py   (a minute; needs ../shared/data/franklin)
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from made_part import put_part  # beside this file

import glasshouse as gh
from glasshouse.assess.front.released import protection_of, released
from glasshouse.assess.frontier import measures
from glasshouse.commands.work.relocate import elements_of
from glasshouse.files.matrix import read_matrix
from glasshouse.protection.relocation.front import Spread, front
from glasshouse.protection.relocation.rules import Matrix, Rules, capacities, moves

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "tradeoff.md"
FRANKLIN = ROOT.parent / "shared" / "data" / "franklin" / "tract_ver.csv"
LAMBDAS, QS, DRAWS = (1, 2, 3), (0.25, 0.5, 0.75, 1), 200
PRINTED = {"white": -0.16, "aian": 0.19, "nothispanic": -0.25, "total population": 0.53}  # Table 4
BY = "sex,white,hispanic"


def twelve() -> list[str]:
    """Figure 11 in numbers: how many tracts gain, lose and keep their people at each of its twelve solutions."""
    found = gh.tradeoff(
        FRANKLIN, risk=LAMBDAS, at=QS, attributes="age,ethnicity,race", variables=",".join(PRINTED), points=2
    )
    found.figure("changes").save(PAGE.with_name("tradeoff-changes.svg"))
    lines = ["| tracts that gain, lose, keep | " + " | ".join(f"q = {q:g}" for q in QS) + " |", "|---" * 5 + "|"]
    for risk in LAMBDAS:
        rows = found.chosen.filter(pl.col("lambda") == risk).iter_rows(named=True)
        cells = [f"{row['gaining']}, {row['losing']}, {row['unchanged']}" for row in rows]
        lines.append(f"| lambda {risk} | " + " | ".join(cells) + " |")
    return [*lines, "", *_regression(found.explained)]


def _regression(explained: pl.DataFrame) -> list[str]:
    last = explained.filter((pl.col("model") == "named") & (pl.col("lambda") == 3))
    lines = [
        "| Table 4, standardised coefficients (p value) | printed, q = 1 | "
        + " | ".join(f"q = {q:g}" for q in QS)
        + " |",
        "|---" * 6 + "|",
    ]
    for name, printed in PRINTED.items():
        rows = last.filter(pl.col("variable") == name).sort("q")
        cells = [f"{row['coefficient']:.3f} ({row['p']:.3f})" for row in rows.iter_rows(named=True)]
        lines.append(f"| {name} | {printed:.2f} | " + " | ".join(cells) + " |")
    return lines


def chosen() -> list[str]:
    """One front, entered by each of its numbers."""
    asked = ("U=0.9", "P=684", "tau=0.1", "tau=0.05")
    found = gh.tradeoff(FRANKLIN, at=asked, points=2)
    lines = ["| `--at` | q | P | U | tau | phi | rows of theta |", "|---" * 7 + "|"]
    for row in found.chosen.iter_rows(named=True):
        ways = found.theta.filter(pl.col("q") == row["q"]).height
        lines.append(
            f"| `{row['at'].replace(' ', '')}` | {row['q']:.4f} | {row['P']:.4f} | {row['U']:.6f} | {row['tau']:.6f} | "
            f"{row['phi']:.6f} | {ways:,} |"
        )
    return lines


def drawn() -> list[str]:
    """What is expected beside what draws have."""
    read = read_matrix(FRANKLIN)
    matrix = Matrix(read.combinations, read.places, read.counts)
    rules = Rules(3, capacities(matrix, 20))
    one = front(matrix, rules)
    lines = [
        "| lambda 3 | P: expected, drawn | U: expected, drawn | tau: expected, drawn | phi: expected, drawn |",
        "|---|---|---|---|---|",
    ]
    for spread in Spread:
        for q in (0.25, 0.5, 1.0):
            point = one.at_share(q)
            relocation = one.relocation(point, spread)
            hoped, rng = measures(matrix, relocation), np.random.default_rng(1)
            rows = []
            for _ in range(DRAWS):
                now = elements_of(matrix, moves(matrix, relocation, rng))
                seen = released(now)
                rows.append((protection_of(now, rules), seen.utility, seen.tau, seen.phi))
            mean, off = np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1)
            pairs = zip((point.P, point.U, hoped.tau, hoped.phi), mean, off, (2, 5, 5, 5), strict=True)
            cells = [f"{a:.{digits}f}, {b:.{digits}f} ± {c:.{digits}f}" for a, b, c, digits in pairs]
            lines.append(f"| {spread.value}, q = {q:g} | " + " | ".join(cells) + " |")
    return lines


def beside(folder: Path) -> list[str]:
    """Protections of a synthetic county beside its fronts; and twelve maps of it."""
    county = gh.synthesize(persons=4000, seed=3, out=folder / "county")
    people, places = folder / "county" / "cef.parquet", folder / "county" / "blocks.parquet"
    files = {name: folder / f"{name}.parquet" for name in ("swap 10%", "swap 50%", "TopDown, 2020", "relocated, q = 1")}
    gh.protect.swap(people, rate=0.1, coordinates=places, out=files["swap 10%"])
    gh.protect.swap(people, rate=0.5, coordinates=places, out=files["swap 50%"])
    gh.protect.topdown(people, scenario="mdf-person", budget="persons-2020", places=places, out=files["TopDown, 2020"])
    gh.protect.relocate(people, by=BY, out=files["relocated, q = 1"])
    found = gh.tradeoff(people, by=BY, risk=LAMBDAS, at=QS, coordinates=places, protected=files, person="person_id")
    found.figure("changes").save(PAGE.with_name("tradeoff-maps.svg"))
    found.figure("protected").save(PAGE.with_name("tradeoff-protected.svg"))
    before = found.summary.baselines[0]
    lines = [
        "| | tau | phi | U | people not where they were | in elements that were empty | who stayed is known |",
        "|---" * 7 + "|",
        f"| as it is | {before.tau:.4f} | {before.phi:.4f} | 1 | 0 | 0 | |",
    ]
    lines += [
        f"| {one.name} | {one.tau:.4f} | {one.phi:.4f} | {one.utility:.4f} | {one.left:,} | {one.appeared:,} | "
        f"{one.stayed} |"
        for one in found.summary.protected
    ]
    end = found.chosen.filter((pl.col("lambda") == 3) & (pl.col("q") == 1)).row(0, named=True)
    lines.append(f"| the front, lambda 3, q = 1, expected | {end['tau']:.4f} | {end['phi']:.4f} | {end['U']:.4f} | "
                 f"{end['moved']:,.0f} | 0 | |")  # fmt: skip
    return [f"{county.cef.height:,} people of a synthetic county (seed 3), elements by `{BY}` and block:", "", *lines]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="glasshouse-page-") as where:
        said = beside(Path(where))
    put_part(PAGE, __file__, "\n".join([
        "**A point by any of its numbers** (Franklin, lambda 3):", "", *chosen(), "",
        "**Twelve solutions** (Franklin; the paper's figure 11 in numbers, and its Table 4 at every q):", "",
        *twelve(), "",
        f"**Expected and drawn** (mean ± standard deviation of {DRAWS} draws):", "", *drawn(), "",
        f"**Other protections beside the front.** {said[0]}", "", *said[2:],
    ]))  # fmt: skip
