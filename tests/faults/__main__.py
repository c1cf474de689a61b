"""Try every fault (or, with --every N, every N-th) of some commands, or of all, and count."""

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
options.add_argument("--every", type=int, default=1)
asked = options.parse_args()
bad = 0
with tempfile.TemporaryDirectory() as folder, serving() as server:
    bench = Bench(Path(folder), server)
    for name in asked.commands or COMMANDS:
        began = time.perf_counter()
        for kind in KINDS:
            try:
                bench.trial(name, COMMANDS[name], kind, asked.every)
            except AssertionError as error:
                bad += 1
                print(f"{error}: {error.__cause__}"[:2000], flush=True)
        counts = ", ".join(f"{kind} {bench.tried[name, kind]}" for kind in KINDS)
        print(f"{name}: {counts} ({time.perf_counter() - began:.0f} s)", flush=True)
totals = ", ".join(f"{kind} {sum(n for (_, k), n in bench.tried.items() if k == kind)}" for kind in KINDS)
print(f"in all: {totals}; {bad} went wrong")
sys.exit(bool(bad))
