"""Does the audit of a whole state fit a small machine? The time, memory and files of every step, as a user runs it.

`python -m benchmarks.state PERSONS --out DIR` runs `glasshouse audit` on a synthetic state, watches every process that
it starts, and stops the run if one of them holds more than the ceiling. With `--kill STEP` the whole group of processes
is killed (as by a power cut) in the middle of that step, and the same command is run again: what both took is told.
Processor seconds and memory are read from /proc twice a second, so the last half second of a process is not seen; the
peak of memory is the kernel's own. Not part of `make bench`: five million persons take hours.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

RESULTS = Path(__file__).parent / "results" / "state.json"
GIB = 1 << 30
EVERY = 0.5  # seconds between two looks
TICKS = os.sysconf("SC_CLK_TCK")
STEP = re.compile(r"^\[\d+/\d+\] ([\w-]+): ")
CONFIG = """
title = "A synthetic state"
scenario = "sf1-person"
seed = 1

[synthetic]
persons = {persons}
seed = 1

[attackers]
leave_one_out = 60

[leaks]
blocks = {leaks}

[claims]
scenario = "dhc-household"
columns = 6
pick = "median:10"
leaks = "family"

[occupancy]
scenario = "subsidised-housing"

[noise]
budget = "paper-2020"

[protections]
plan = "audit"
settings = {settings}
"""


@dataclass
class Took:
    """What one step took."""

    wall: float = 0.0
    cpu: float = 0.0
    peak: int = 0  # bytes of the largest process
    processes: set[int] = field(default_factory=set)
    killed: bool = False


class Watch(threading.Thread):
    """Looks at all processes of a run, and adds what they use to the step that is being done."""

    def __init__(self, root: int, ceiling: int) -> None:
        super().__init__(daemon=True)
        self.root, self.ceiling = root, ceiling
        self.steps: dict[str, Took] = {}
        self.name_of_step, self.began = "start", time.perf_counter()
        self.seen: dict[tuple[int, str], float] = {}
        self.lock, self.over, self.ended = threading.Lock(), False, False

    def step(self, name: str) -> None:
        self.look()
        with self.lock:
            self.took.wall += time.perf_counter() - self.began
            self.name_of_step, self.began = name, time.perf_counter()
            for pid in self._group():
                _forget_peak(pid)

    @property
    def took(self) -> Took:
        return self.steps.setdefault(self.name_of_step, Took())

    def run(self) -> None:
        while not self.ended:
            self.look()
            time.sleep(EVERY)

    def look(self) -> None:
        with self.lock:
            for pid in self._group():
                found = _used(pid)
                if found is None:
                    continue
                born, cpu, peak = found
                took = self.took
                took.cpu += cpu - self.seen.get((pid, born), 0.0)
                self.seen[pid, born] = cpu
                took.peak = max(took.peak, peak)
                took.processes.add(pid)
                if peak > self.ceiling and not self.over:
                    self.over = True
                    os.killpg(self.root, signal.SIGKILL)

    def _group(self) -> list[int]:
        """Every process of the run: they share its session."""
        found = []
        for name in os.listdir("/proc"):
            try:
                if name.isdigit() and os.getsid(int(name)) == self.root:
                    found.append(int(name))
            except OSError:
                continue
        return found


def _used(pid: int) -> tuple[str, float, int] | None:
    """When a process began, its processor seconds, and the most memory that it held since it was last forgotten."""
    try:
        after = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return None
    peak = re.search(r"VmHWM:\s+(\d+) kB", status)
    return after[19], (int(after[11]) + int(after[12])) / TICKS, int(peak[1]) * 1024 if peak else 0


def _forget_peak(pid: int) -> None:
    try:
        Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return


def _size(path: Path) -> int:
    return sum(one.stat().st_size for one in ([path] if path.is_file() else path.rglob("*")) if one.is_file())


def _run(command: list[str], ceiling: int, kill: str, after: float) -> tuple[Watch, int]:
    """Run the audit once; `kill`: the step in which it is killed, so many seconds after it began."""
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    watch = Watch(process.pid, ceiling)
    watch.start()
    assert process.stderr is not None and process.stdout is not None

    def stop() -> None:
        watch.took.killed = True
        os.killpg(process.pid, signal.SIGKILL)

    for line in process.stderr:
        print(line, end="", file=sys.stderr, flush=True)
        if found := STEP.match(line):
            watch.step(found[1])
            if found[1] == kill:
                threading.Timer(after, stop).start()
    print(process.stdout.read()[-4000:], file=sys.stderr, flush=True)
    code = process.wait()
    watch.ended = True
    watch.step("end")
    return watch, code


def _told(watch: Watch, code: int) -> dict[str, object]:
    steps = {name: one for name, one in watch.steps.items() if name != "end"}
    return {
        "exit": code,
        "over the ceiling": watch.over,
        "wall seconds": round(sum(one.wall for one in steps.values())),
        "cpu seconds": round(sum(one.cpu for one in steps.values())),
        "largest process MiB": max(one.peak for one in steps.values()) >> 20,
        "steps": {
            name: {
                "wall seconds": round(one.wall, 1),
                "cpu seconds": round(one.cpu, 1),
                "largest process MiB": one.peak >> 20,
                "processes": len(one.processes),
                **({"killed": True} if one.killed else {}),
            }
            for name, one in steps.items()
        },
    }


def main() -> int:
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("persons", type=int)
    ask.add_argument("--out", type=Path, required=True, help="an empty folder; the audit is kept there")
    ask.add_argument("--workers", type=int, default=2)
    ask.add_argument("--leaks", type=int, default=300, help="blocks of the sample in which tables are withheld")
    ask.add_argument("--setting", action="append", default=[], help="only this of the audit's protections")
    ask.add_argument("--ceiling", type=float, default=4.0, help="GiB of one process")
    ask.add_argument("--kill", default="", help="the step in which everything is killed once")
    ask.add_argument("--after", type=float, default=20.0, help="seconds into that step")
    ask.add_argument("--results", type=Path, default=RESULTS)
    asked = ask.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    config, out = asked.out / "state.toml", asked.out / "audit"
    said = CONFIG.format(persons=asked.persons, leaks=asked.leaks, settings=json.dumps(asked.setting))
    config.write_text(said, encoding="utf-8")
    command = [sys.executable, "-m", "glasshouse", "audit", "--config", str(config), "--out", str(out)]
    command += ["--workers", str(asked.workers)]
    runs = []
    for kill in [asked.kill, ""] if asked.kill else [""]:
        watch, code = _run(command, int(asked.ceiling * GIB), kill, asked.after)
        runs.append(_told(watch, code))
        told = {
            "persons": asked.persons, "workers": asked.workers, "ceiling GiB": asked.ceiling, "runs": runs,
            "files MiB": {one.name: round(_size(one) / (1 << 20), 1) for one in sorted(out.iterdir())},
        }  # fmt: skip
        asked.results.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
        print(json.dumps(runs[-1], indent=2))
        if watch.over:
            return 1
    return code


if __name__ == "__main__":
    sys.exit(main())
