"""Harm many files: `python -m tests.fuzz --minutes 10 --seed 1`; one again: `--kind scenario --case 17`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path


def cases(seed: int, minutes: float, kinds: list[str]) -> Iterator[tuple[str, int]]:
    """Cases of every kind in turn, half of them scenarios, until the time is over."""
    end, number = time.monotonic() + 60 * minutes, 0
    while time.monotonic() < end:
        yield (kinds[number // 2 % len(kinds)] if number % 2 else kinds[0]), seed * 1_000_000 + number
        number += 1


def main() -> int:
    from tests.fuzz.cases import KINDS, run
    from tests.fuzz.limits import Fuzzed, fuzz

    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", choices=[*KINDS], action="append", help="only these")
    parser.add_argument("--case", type=int, help="this one alone, here, without limits")
    parser.add_argument("--keep", type=Path, help="where the files of one case stay")
    given = parser.parse_args()
    if given.case is not None:
        with tempfile.TemporaryDirectory() as folder:
            where = given.keep or Path(folder)
            where.mkdir(parents=True, exist_ok=True)
            print(run((given.kind or ["scenario"])[0], given.case, where))
        return 0
    found, told = Fuzzed(), 0
    for found in fuzz(cases(given.seed, given.minutes, given.kind or [*KINDS])):
        if len(found.wrong) // 20 > told:
            told = len(found.wrong) // 20
            print(f"{len(found.wrong)} wrong so far; the last: {found.wrong[-1]}", file=sys.stderr)
    print(f"seed {given.seed}\n{found.told()}")
    return 1 if found.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
