"""Bounds to show: Norland's tables with small numbers hidden, and invented ranges around the true numbers."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from pathlib import Path

import polars as pl

import glasshouse as gh
from glasshouse.report.sections.bounds import Bounds
from glasshouse.scenarios.load import load

ROOT = Path(__file__).resolve().parents[1]
NORLAND = ROOT / "examples" / "own-country"
EVIL = "<script>alert('x')</script> & \"quotes\""
SCHEMA = {
    "level": pl.String, "geoid": pl.String, "table": pl.String, "variable": pl.String, "description": pl.String,
    "lower": pl.Int64, "upper": pl.Int64, "low": pl.Int64, "high": pl.Int64, "met_low": pl.Int64, "met_high": pl.Int64,
    "verdict": pl.String, "present": pl.Boolean, "alike": pl.Boolean, "proof": pl.String, "scope": pl.String,
}  # fmt: skip
WHY = {
    "level": pl.String, "geoid": pl.String, "variable": pl.String, "number": pl.Int64, "reason_level": pl.String,
    "reason_geoid": pl.String, "reason_variable": pl.String, "reason_description": pl.String, "lower": pl.Int64,
    "upper": pl.Int64, "minimal": pl.Boolean, "proof": pl.String,
}  # fmt: skip


@cache
def sample() -> Bounds:
    """Numbers of 1 or 2 are not printed in wards; those of towns are rounded to 3. Ranges are drawn, not proved."""
    rng, scenario = random.Random(24), load(str(NORLAND / "scenario"))
    counted = gh.tabulate(NORLAND / "records.csv", scenario=str(NORLAND / "scenario"), subtotals=True).tables
    truth = {(row["geoid"], row["variable"]): row["value"] for row in counted.iter_rows(named=True)}
    places = {level: sorted({place for place, _ in truth if len(place) == size}) for level, size in
              (("town", 4), ("ward", 7))}  # fmt: skip
    rows, why, printed = [], [], []
    for level, some in places.items():
        for place in some:
            for table in scenario.tables:
                for line in table.lines if table.level == level else ():
                    value = truth.get((place, line.variable), 0)
                    lower = value - value % 3 if level == "town" else 0 if value in (1, 2) else value
                    upper = lower + 2 if level == "town" else None if value in (1, 2) else value
                    if lower == upper:
                        printed.append((level, place, line.variable, lower, upper))
                        continue
                    kind = rng.choices(("exact", "narrow", "wide"), (1, 2, 6) if level == "town" else (7, 3, 5))[0]
                    low, high = value, value
                    if kind != "exact":
                        low = max(0, value - rng.randint(0, 1))
                        high = low + 1 + (rng.randint(1, 6) if kind == "wide" else 0)
                    if level == "town":
                        low, high = max(low, lower), min(high, upper or 0)
                        kind = "exact" if low == high else "narrow" if high - low < 2 else "wide"
                    proof = rng.choices(("exact", "two-engines", "undecided"), (8, 1, 1))[0] if low < high else "exact"
                    met = (low, high) if proof != "undecided" else (value, value)
                    described = f"{table.title}: {line.label}"
                    rows.append((
                        level, place, table.name, line.variable, described, lower, upper, low, high, *met, kind,
                        low > 0 and not lower, low == high and not line.parts and rng.random() < 0.1, proof,
                        level if rng.random() < 0.5 else "town",
                    ))  # fmt: skip
                    if kind == "exact":
                        why += [
                            (level, place, line.variable, at, level, place, other.variable,
                             f"{table.title}: {other.label}", truth.get((place, other.variable), 0),
                             truth.get((place, other.variable), 0), True, "exact")
                            for at, other in enumerate(rng.sample(table.lines, 3), start=1)
                        ]  # fmt: skip
    frame, reasons = (pl.DataFrame(some, schema=head, orient="row") for some, head in ((rows, SCHEMA), (why, WHY)))
    names = ["level", "geoid", "variable", "lower", "upper"]
    return Bounds(frame, scenario, reasons, pl.DataFrame(printed, schema=names, orient="row"), width=1)


def evil() -> Bounds:
    """The same, from an office whose labels and codes are markup."""
    found = sample()
    first = found.scenario.tables[0]
    lines = tuple(replace(line, label=EVIL) for line in first.lines)
    tables = (replace(first, title=EVIL, lines=lines), *found.scenario.tables[1:])
    said = pl.lit(EVIL)
    return replace(
        found,
        scenario=replace(found.scenario, tables=tables),
        frame=found.frame.with_columns(description=said, geoid=pl.col("geoid") + said),
        reasons=None if found.reasons is None else found.reasons.with_columns(
            reason_description=said, geoid=pl.col("geoid") + said
        ),
        printed=None,
    )  # fmt: skip
