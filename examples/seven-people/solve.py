"""Who are the seven? Reads the printed statistics, rebuilds the people behind them and proves that no others fit.

After S. Garfinkel, J. M. Abowd and C. Martindale (2018). A count is itself; a withheld one is 0 to 2. A mean is a sum
of ages, as far as its rounding tells. A median m of n persons: at most n/2 of them are below m, at most n/2 above.
Where n is even, two persons in the middle are 2m together; README.md says for which row that is needed.
Run: python examples/seven-people/solve.py
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from fractions import Fraction
from math import ceil, floor
from pathlib import Path

import polars as pl

import glasshouse as gh

HERE = Path(__file__).resolve().parent
BLOCK, WITHHELD = "99001", "(D)"
Row = tuple[str, int, int]  # a variable of the scenario, and the least and the most that it may be


def published(statistics: Path) -> Iterator[Row]:
    """The printed statistics as numbers of the scenario's tables."""
    with statistics.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            row, count = line["row"], line["count"]
            if count == WITHHELD:
                yield f"N{row}_001", 0, 2
                continue
            n, median = int(count), int(line["median age"])
            yield f"N{row}_001", n, n
            yield from (middle_two(n) if row == "2C" else around(f"M{row}", 1, n))
            yield f"A{row}_001", *rounded(line["mean age"], n)
            if row == "2C":
                yield "A2M_001", 2 * median, 2 * median


def around(table: str, first: int, n: int) -> Iterator[Row]:
    """A median of n persons: how many of them, below it, at it (one at least if n is odd) and above it."""
    for line, least, most in ((0, n, n), (1, 0, n // 2), (2, n % 2, n), (3, 0, n // 2)):
        yield f"{table}_{first + line:03}", least, most


def middle_two(n: int) -> Iterator[Row]:
    """A median of an even number: the two in the middle have it between them, and so have the others."""
    yield "M2C_001", n, n
    yield from around("M2C", 2, n - 2)
    yield from around("M2C", 6, 2)


def rounded(mean: str, n: int) -> tuple[int, int]:
    """The sums of n ages whose mean is printed so, to one decimal."""
    return ceil(n * (Fraction(mean) - Fraction(1, 20))), floor(n * (Fraction(mean) + Fraction(1, 20)))


def main() -> None:
    rows = [(BLOCK, *row) for row in published(HERE / "statistics.csv")]
    statistics = pl.DataFrame(rows, schema=["geoid", "variable", "lower", "upper"], orient="row")
    tables = gh.read_tables(statistics, scenario=HERE / "scenario")
    rebuilt = gh.reconstruct(tables, workers=1)
    people = rebuilt.records.sort("age")
    (found,) = gh.vary(tables, start=rebuilt, workers=1).places.iter_rows(named=True)
    print("    age  sex     race   status")
    for age, sex, race, married in people.select("age", "sex", "race", "married").iter_rows():
        print(f"    {age:3}  {sex:6}  {race:5}  {'married' if int(married) else 'single'}")
    sure = "no other people fit (proved)" if found["solvar_upper"] == 0 else "other people fit too"
    print(f"{found['certain']} of {found['population']} certain: {sure}")


if __name__ == "__main__":
    main()
