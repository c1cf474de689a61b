"""Try every fault (or a part of them) of some commands, or of all, and count.

Beside each other on two cores: `--part 1/2` and `--part 2/2`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.faults.commands import COMMANDS
from tests.faults.judge import KINDS, Bench
from tests.faults.server import serving

options = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
options.add_argument("commands", nargs="*", metavar="COMMAND", help=", ".join(COMMANDS))
options.add_argument("--part", default="1/1", metavar="K/N", help="of every N calls the K-th")
options.add_argument("--kind", choices=KINDS, action="append", help="only these faults")
asked = options.parse_args()
first, every = map(int, asked.part.split("/"))
bad = 0
with tempfile.TemporaryDirectory() as folder, serving() as server:
    bench = Bench(Path(folder), server)
    for name in asked.commands or COMMANDS:
        for kind in asked.kind or KINDS:
            began = time.perf_counter()
            for wrong in bench.trial(name, COMMANDS[name], kind, every, first):
                if wrong:
                    bad += 1
                    print(wrong[:2000], flush=True)
            print(f"{name}: {kind} {bench.tried[name, kind]} ({time.perf_counter() - began:.0f} s)", flush=True)
totals = ", ".join(f"{kind} {sum(n for (_, k), n in bench.tried.items() if k == kind)}" for kind in KINDS)
print(f"in all: {totals}; {bad} went wrong")
sys.exit(bool(bad))
