"""Run many cases: `python -m tests.differential --count 2000 --seed 1`; one again: `--folder FOLDER`."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from pathlib import Path

os.environ.setdefault("POLARS_MAX_THREADS", "1")  # the frames are tiny

from tests.differential.case import Findings, quickly, smallest
from tests.differential.compare import COMMANDS, examine
from tests.differential.generator import generate


def one(seed: int, keep: Path, commands: Sequence[str]) -> tuple[int, Findings]:
    """Generate and examine the case of a seed; its folder is kept if something is wrong with it."""
    folder = keep / f"{seed:06}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with quickly():
        found = examine(generate(seed, folder), commands)
    if not found.wrong:
        shutil.rmtree(folder)
    return seed, found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1, help="the first one")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="where folders of disagreements are kept")
    parser.add_argument("--folder", type=Path, help="examine this case again")
    parser.add_argument("--only", default="", help="show kinds that contain this")
    parser.add_argument("--commands", default=",".join(COMMANDS), help="which commands are compared")
    asked = parser.parse_args()
    commands = asked.commands.split(",")
    if asked.folder:
        found = examine(asked.folder, commands)
        for kind, text in found.wrong:
            print(f"{kind}: {text}")
        return int(bool(found.wrong))
    began, keep = time.perf_counter(), asked.keep or Path(tempfile.mkdtemp(prefix="differential-"))
    seeds = range(asked.seed, asked.seed + asked.count)
    kinds: dict[str, list[tuple[int, Path, str]]] = {}
    counts: Counter[str] = Counter()
    with ProcessPoolExecutor(asked.workers) as pool:
        for seed, found in pool.map(one, seeds, repeat(keep), repeat(commands)):
            counts += found.counts
            for kind, text in found.wrong:
                if asked.only in kind:
                    print(f"{seed}: {kind}: {text[:160]}", file=sys.stderr, flush=True)
                    folder = keep / f"{seed:06}"
                    kinds.setdefault(kind, []).append((smallest(folder), folder, text))
    for name, count in sorted(counts.items()):
        print(f"{count:8,} {name}")
    print(f"{asked.count} cases from seed {asked.seed} in {time.perf_counter() - began:.0f} s")
    for kind, some in sorted(kinds.items(), key=lambda pair: -len(pair[1])):
        places = len({folder for _, folder, _ in some})
        print(f"\n{kind}: {len(some)} times in {places} cases; smallest first:")
        for _, folder, text in sorted(some)[:3]:
            print(f"    {folder}: {text[:300]}")
    return int(bool(kinds))


if __name__ == "__main__":
    sys.exit(main())
