"""Who are the seven? Reads the printed statistics, rebuilds the people behind them and proves that no others fit.

After S. Garfinkel, J. M. Abowd and C. Martindale (2018). A count is itself; a withheld one is 0 to 2. A mean is a sum
of ages, as far as its rounding tells. A median m of n persons: at most n/2 of them are below m, at most n/2 above.
Where n is even, two persons in the middle are 2m together; README.md says for which row that is needed.
Run: python examples/seven-people/solve.py
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from fractions import Fraction
from io import StringIO
from math import ceil, floor
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from glasshouse.cli.main import main as glasshouse

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


def write(path: Path) -> None:
    lines = [f"{BLOCK},{variable},{least},{most}" for variable, least, most in published(HERE / "statistics.csv")]
    path.write_text("\n".join(["geoid,variable,lower,upper", *lines, ""]), encoding="utf-8")


def run(*command: object) -> None:
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()) as said:
        code = glasshouse([str(word) for word in command])
    if code:
        sys.exit(said.getvalue())


def main() -> None:
    with TemporaryDirectory() as place:
        folder = Path(place)
        tables = folder / "published.csv"
        write(tables)
        common = (tables, "--scenario", HERE / "scenario", "--workers", 1, "--quiet")
        run("reconstruct", *common, "--out", folder / "rebuilt")
        run("vary", *common, "--from", folder / "rebuilt", "--out", folder / "varied")
        people = pl.read_parquet(folder / "rebuilt" / "records.parquet").sort("age")
        (found,) = pl.read_parquet(folder / "varied" / "places.parquet").iter_rows(named=True)
    print("    age  sex     race   status")
    for age, sex, race, married in people.select("age", "sex", "race", "married").iter_rows():
        print(f"    {age:3}  {sex:6}  {race:5}  {'married' if int(married) else 'single'}")
    sure = "no other people fit (proved)" if found["solvar_upper"] == 0 else "other people fit too"
    print(f"{found['certain']} of {found['population']} certain: {sure}")


if __name__ == "__main__":
    main()
