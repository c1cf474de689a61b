"""Counting all 34 tables: our compiled look-ups against a straightforward Polars group-by per table.

Both start from the same frame in memory (place, levels of the four attributes) and end with long counts in memory.
The peer recodes each attribute with a look-up, filters the universe and groups, table by table, on all cores; ours
runs on one. Reading and writing files is left out of the ratio and measured apart, end to end.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

from glasshouse.commands.work.tabulate import areas_of, runs_of
from glasshouse.model.release import Table
from glasshouse.model.tabulate import compile_tables
from glasshouse.scenarios.load import Scenario, load

PERSONS = 1_000_000
# the peak of a child's own memory; what getrusage tells includes the parent's pages at the fork
_WITH_PEAK = """
import re, sys
from glasshouse.cli.main import main
code = main(sys.argv[1:])
print(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
sys.exit(code)
"""
GROWTH = (100_000, 300_000, 1_000_000, 3_000_000)


def population(scenario: Scenario, persons: int, seed: int = 1) -> pl.DataFrame:
    """Persons in blocks of about 50 and tracts of about 80 blocks; a simple mix, mostly one race."""
    rng = np.random.default_rng(seed)
    sizes = rng.geometric(1 / 50, 2 * persons // 50 + 10)
    block = np.repeat(np.arange(len(sizes)), sizes)[:persons]
    codes = np.array(
        [f"99{b // 4000 % 1000:03d}{b // 80 % 10**6:06d}{1000 + b % 80:04d}" for b in range(block[-1] + 1)]
    )
    race = np.where(rng.random(persons) < 0.75, 0, np.minimum(rng.geometric(0.45, persons), 62))
    levels = {
        "sex": rng.integers(0, 2, persons),
        "age": np.minimum(rng.gamma(2.2, 17, persons), 110),
        "race": race,
        "hispanic": rng.random(persons) < 0.16,
    }
    columns = {name: pl.Series(values.astype(np.int16)) for name, values in levels.items()}
    return pl.DataFrame({"geoid": codes[block], **columns}).sort("geoid", maintain_order=True)


def ours(scenario: Scenario, people: pl.DataFrame) -> int:
    """Compiling included: it is what a first call costs."""
    codes = np.ascontiguousarray(people.select(a.name for a in scenario.schema.attributes).to_numpy())
    runs = runs_of(people["geoid"])
    cells = 0
    for level in ("block", "tract"):
        tabulator = compile_tables(scenario.schema, [table for table in scenario.tables if table.level == level])
        areas, bounds = areas_of(runs, scenario.geography.lengths[level])
        place, column, value = tabulator.count(codes, bounds)
        frame = pl.DataFrame(
            {
                "geoid": pl.Series(areas, dtype=pl.String).gather(place),
                "variable": pl.Series(tabulator.variables).gather(column),
                "value": value,
            }
        )
        cells += frame.height
    return cells


def peer(scenario: Scenario, people: pl.DataFrame) -> int:
    """What one would write by hand: per table, recode, filter, group, count."""
    cells = 0
    for table in scenario.tables:
        place = pl.col("geoid").str.head(scenario.geography.lengths[table.level])
        if table.tally:
            for line in table.leaves:
                assert line.predicate is not None
                inside = [pl.col(name).is_in(sorted(levels)) for name, levels in line.predicate.sets]
                cells += people.filter(inside).group_by(place).len().height
            continue
        cells += _grouped(scenario, people, table, place)
    return cells


def _grouped(scenario: Scenario, people: pl.DataFrame, table: Table, place: pl.Expr) -> int:
    inside = [pl.col(name).is_in(sorted(levels)) for name, levels in table.universe.sets]
    keys = [place]
    for recode in (scenario.recodes[name] for name in table.by):
        group = {level: number for number, leaf in enumerate(recode.leaves) for level in sorted(leaf.levels)}
        keys.append(pl.col(recode.attribute).replace_strict(group, default=None, return_dtype=pl.Int16))
    kept = people.filter(inside) if inside else people
    counts = kept.group_by(keys).len()
    # P9 and P11 do not divide Hispanics by race; P14 prints its sex totals as cells
    if table.name in ("P9", "P11"):
        hispanic = counts.filter(pl.col("hispanic") == 0).group_by("geoid").agg(pl.col("len").sum()).height
        return counts.filter(pl.col("hispanic") == 1).height + hispanic
    if table.name == "P14":
        return counts.height + kept.group_by(keys[:2]).len().height
    return counts.height


def best_of(times: int, work: object, *arguments: object) -> tuple[float, int]:
    best, result = float("inf"), 0
    for _ in range(times):
        start = time.perf_counter()
        result = work(*arguments)  # type: ignore[operator]
        best = min(best, time.perf_counter() - start)
    return best, result


def run() -> dict[str, object]:
    scenario = load("sf1-person")
    people = population(scenario, PERSONS)
    ours(scenario, people.head(1000))  # compiled code is cached on disk; load it
    mine, cells = best_of(3, ours, scenario, people)
    theirs, same = best_of(3, peer, scenario, people)
    if cells != same:
        raise SystemExit(f"the two do not agree: {cells} cells and {same}")
    growth = {str(n): round(best_of(2, ours, scenario, population(scenario, n))[0], 3) for n in GROWTH}
    return {
        "name": "tabulate-vs-groupby",
        "ratio": round(theirs / mine, 1),
        "unit": "times faster",
        "n": PERSONS,
        "peer": "Polars group-by per table, all cores",
        "detail": {
            "cells": cells,
            "seconds": round(mine, 3),
            "peer_seconds": round(theirs, 3),
            "persons_per_second": round(PERSONS / mine),
            "seconds_by_persons": growth,
            "end_to_end": end_to_end(scenario),
            "left_out": "reading and writing files (see end_to_end: Parquet in, Parquet out, one process)",
        },
    }


def end_to_end(scenario: Scenario) -> dict[str, dict[str, float]]:
    """The command itself, file to file: seconds and peak memory, to see that memory stays flat."""
    report = {}
    for persons in (1_000_000, 10_000_000):
        with tempfile.TemporaryDirectory() as folder:
            source, out = Path(folder) / "records.parquet", Path(folder) / "tables.parquet"
            _contract(scenario, population(scenario, persons)).write_parquet(source)
            start = time.perf_counter()
            command = ["tabulate", str(source), "--scenario", "sf1-person", "--out", str(out), "--quiet"]
            done = subprocess.run(
                [sys.executable, "-c", _WITH_PEAK, *command], check=True, capture_output=True, text=True
            )
            report[str(persons)] = {
                "seconds": round(time.perf_counter() - start, 1),
                "peak_gib": round(int(done.stdout) / 2**20, 2),
            }
    return report


def _contract(scenario: Scenario, people: pl.DataFrame) -> pl.DataFrame:
    """The same persons in the columns that record files have."""
    columns = [people["geoid"].alias("block")]
    for attribute in scenario.schema.attributes:
        reading = attribute.readings[0]
        for index, name in enumerate(reading.columns):
            text = pl.Series(name, [level[0][index] for level in reading.codes]).gather(people[attribute.name])
            columns.append(text if name == "sex" else text.cast(pl.Int16))
    return pl.DataFrame(columns)
