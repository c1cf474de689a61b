"""Makes tables 1, 2 and 6 of paper 000 and its uniques on docs/reidentify.md, beside the printed ones.

Run: python docs/make_reidentify_tables.py   (three minutes on one core; a test checks Table 2)
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
from made_part import put_part  # beside this file

import glasshouse as gh
from glasshouse.assess.paper_tables import printed
from glasshouse.assess.variability import published
from glasshouse.scenarios.load import Scenario, load

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reidentify.md"
PERSONS, SEED = 40_000, 1
SCENARIO = "sf1-person"
RACES = ("white", "black", "aian", "asian", "nhopi", "sor")
# Table 1 as printed (the Bureau's workbook): pik, block, sex, age, agebin, race, ethnicity
TABLE_1 = {
    "CEF": "x x x x y x x", "HDF": ". x x z y x x", "COMRCL": "x x x x y . .", "CEFatkr": "x x x x y . .",
    "rHDF_bt": ". x x z y x x", "rHDF_b": ". x x . x x x", "MDF": ". x x z y x x", "rMDF_bt": ". x x z y x x",
}  # fmt: skip
# Table 2 as printed; its note speaks of 8.6 billion and 241 million statistics in blocks and tracts
TABLE_2 = {
    "block": ("P1 P6 P7 P8 P9 P10 P11 P12 P14 P12A P12B P12C P12D P12E P12F P12G P12H P12I", "8.6 billion"),
    "tract": (
        "PCT12 PCT12A PCT12B PCT12C PCT12D PCT12E PCT12F PCT12G PCT12H PCT12I PCT12J PCT12K PCT12L PCT12M PCT12N "
        "PCT12O",
        "241 million",
    ),
}
PLACES = {"block": 11_078_297, "tract": 73_057}  # as paper 000 counts them, empty ones included
PRIME = 2_147_483_629


def cells_of(scenario: Scenario, level: str) -> Iterator[np.ndarray]:
    """Which records each published cell of a level counts: an indicator over all possible records."""
    names = [attribute.name for attribute in scenario.schema.attributes]
    sizes = [len(attribute.levels) for attribute in scenario.schema.attributes]
    for table in scenario.tables:
        for number in sorted(table.cells) if table.level == level else ():
            inside = [np.ones(size, bool) for size in sizes]
            for name, levels in dict(table.line(number).predicate.sets).items():
                inside[names.index(name)] = np.isin(np.arange(sizes[names.index(name)]), list(levels))
            counted = inside[0]
            for one in inside[1:]:
                counted = np.logical_and.outer(counted, one)
            yield counted.ravel()


def rank(matrix: np.ndarray) -> int:
    """The rank over the integers modulo a large prime: at most the true one, and equal to it but by rare accident."""
    rest, found = matrix.astype(np.int64), 0
    for column in range(rest.shape[1]):
        pivots = np.flatnonzero(rest[found:, column])
        if not len(pivots):
            continue
        rest[[found, found + pivots[0]]] = rest[[found + pivots[0], found]]
        row = rest[found, column:] * pow(int(rest[found, column]), -1, PRIME) % PRIME
        below = found + 1 + np.flatnonzero(rest[found + 1 :, column])
        rest[below, column:] = (rest[below, column:] - rest[below, column][:, None] * row % PRIME) % PRIME
        found += 1
        if found == len(rest):
            break
    return found


def independent(scenario: Scenario, level: str) -> tuple[int, int]:
    """How many cells of a place are published, and how many of them are linearly independent."""
    cells = np.array(list(cells_of(scenario, level)))
    return len(cells), rank(np.unique(cells, axis=1))


def table_2() -> list[str]:
    scenario = load(SCENARIO)
    lines = [
        "| Table 2 | the same tables | cells of a place | of these independent | cells of all places | independent | "
        "the paper's note: independent |",
        "|---" * 7 + "|",
    ]
    for level, (names, note) in TABLE_2.items():
        ours = [table.name for table in scenario.tables if table.level == level]
        same = "yes" if sorted(ours) == sorted(names.split()) else f"no: {sorted(set(ours) ^ set(names.split()))}"
        cells, free = independent(scenario, level)
        every = [f"{number * PLACES[level] / 1e6:,.0f} million" for number in (cells, free)]
        lines.append(
            f"| {level}, {len(ours)} tables | {same} | {cells:,} | {free:,} | {every[0]} | {every[1]} | {note} |"
        )
    return lines


def study(folder: Path) -> gh.Reidentified:  # type: ignore[name-defined]
    """A county, its tables, what is rebuilt from them, and the same after the 2020 system."""
    home = folder / "county"
    gh.synthesize(persons=PERSONS, seed=SEED, out=home)
    gh.protect.topdown(home / "cef.parquet", places=home / "blocks.parquet", out=folder / "MDF.parquet")
    for name, records in (("rHDF_bt", home / "hdf.parquet"), ("rMDF_bt", folder / "MDF.parquet")):
        gh.tabulate(records, scenario=SCENARIO, out=folder / f"{name}-tables.parquet")
        gh.reconstruct(folder / f"{name}-tables.parquet", scenario=SCENARIO, out=folder / name)
    tables = folder / "rHDF_bt-tables.parquet"
    gh.reconstruct(tables, scenario=SCENARIO, level="block", out=folder / "rHDF_b")
    gh.vary(tables, scenario=SCENARIO, out=folder / "solvar")
    data = {name: folder / name for name in ("rHDF_bt", "rHDF_b", "rMDF_bt")} | {"MDF": folder / "MDF.parquet"}
    return gh.reidentify(
        data, truth=home / "cef.parquet", published=home / "hdf.parquet", vary=folder / "solvar",
        attacker={name: home / f"{name}.parquet" for name in ("commercial", "attacker-perfect")},
    )  # fmt: skip


def table_1(folder: Path) -> list[str]:
    home = folder / "county"
    files = {
        "CEF": home / "cef.parquet", "HDF": home / "hdf.parquet", "COMRCL": home / "commercial.parquet",
        "CEFatkr": home / "attacker-perfect.parquet", "MDF": folder / "MDF.parquet",
    } | {name: folder / name / "records.parquet" for name in ("rHDF_bt", "rHDF_b", "rMDF_bt")}  # fmt: skip
    lines = ["| Table 1: printed, ours | pik | block | sex | age | agebin | race | ethnicity |", "|---" * 8 + "|"]
    for name, row in TABLE_1.items():
        columns = pl.read_parquet_schema(files[name])
        rebuilt = name.startswith("r")
        age = "." if "age" not in columns else "d" if name == "rHDF_b" else "z" if rebuilt else "x"
        ours = [
            "x" if "person_id" in columns else ".", "x" if "block" in columns else ".",
            "x" if "sex" in columns else ".", age, "y" if age != "." else ".",
            "x" if all(race in columns for race in RACES) else ".", "x" if "hispanic" in columns else ".",
        ]  # fmt: skip
        pairs = [f"{theirs}, {mine}" for theirs, mine in zip(row.split(), ours, strict=True)]
        lines.append(f"| {name} | " + " | ".join(pairs) + " |")
    return lines


def table_6(found: pl.DataFrame) -> list[str]:
    theirs, correct = printed("6"), printed("S8")
    lines = [
        "| Table 6: precision, printed (ours) | nonmodal, COMRCL | nonmodal, CEFatkr | unique, COMRCL | "
        "unique, CEFatkr | unique on exact age, CEFatkr |",
        "|---" * 6 + "|",
    ]
    for name in ("CEF", "HDF", "rHDF_bt", "rHDF_b", "rMDF_bt", "MDF", "MDG", "PRG"):
        cells = []
        for panel, group in (("Panel A", "nonmodal"), ("Panel B", "nonmodal-unique")):
            for attacker, file in (("COMRCL", "commercial"), ("CEFatkr", "attacker-perfect")):
                paper, own = (
                    frame.filter(pl.col("data") == name, pl.col("panel").str.starts_with(panel))[
                        f"{attacker}_precision"
                    ][0]
                    for frame in (theirs, correct)
                )
                told = f"{paper:.1%}" if paper == own else f"{paper:.1%}, in S8 {own:.1%},"
                cells.append(f"{told} ({_precision(found, name, file, group)})")
        exact = _precision(found, name, "attacker-perfect", "nonmodal-unique-exact")
        lines.append(f"| {name} | " + " | ".join(cells) + f" | ({exact}) |")
    return lines


def _precision(found: pl.DataFrame, data: str, attacker: str, group: str) -> str:
    some = found.filter(
        pl.col("data") == data, pl.col("attacker") == attacker, pl.col("group") == f"zero-solvar-{group}",
        pl.col("band") == "all",
    )  # fmt: skip
    return f"{some['precision'][0]:.1%}" if some.height and some["precision"][0] is not None else "nobody"


def uniques(found: pl.DataFrame) -> list[str]:
    theirs = dict(published("S5").select("band", "unique_share").iter_rows())
    lines = [
        "| persons of the block | unique on sex and age bin, data-defined: printed, ours | all persons | "
        "unique on sex and exact age, all persons: printed, ours | data-defined |",
        "|---" * 5 + "|",
    ]
    for row in found.iter_rows(named=True):
        paper = f"{theirs[row['band']]:.1%}, " if row["band"] in theirs else ""
        exact = "44%, " if row["band"] == "all" else ""
        lines.append(
            f"| {row['band']} | {paper}{row['defined_unique_share']:.1%} | {row['unique_share']:.1%} | "
            f"{exact}{row['unique_exact_share']:.1%} | {row['defined_unique_exact_share']:.1%} |"
        )
    return lines


def made(folder: Path) -> str:
    found = study(folder)
    return "\n".join([*table_2(), "", *table_1(folder), "", *table_6(found.rates), "", *uniques(found.uniques)])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="glasshouse-page-") as where:
        put_part(PAGE, __file__, made(Path(where)))
