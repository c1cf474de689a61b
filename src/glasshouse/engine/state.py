"""How far is the run in a folder? What is done, what is left, since when."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from glasshouse.errors import InputError


@dataclass(frozen=True)
class State:
    """What is done in a folder, what is left, since when."""

    state: str  # done, running or stopped
    command: str | None
    units: int | None
    finished: int | None
    refused: int | None = None
    wall_seconds: float | None = None
    open: int | None = None
    started: str | None = None
    resumed: int | None = None
    seconds_since_last: int | None = None


def state_of(path: Path) -> tuple[State, list[str]]:
    """What is done in a folder, what is left, since when; and the same in words."""
    from glasshouse.engine.folder import LEDGER, read_manifest  # late: --help must not wait for them
    from glasshouse.engine.ledger import peek
    from glasshouse.files.rooms import busy

    if not path.is_dir():
        raise InputError(f"{path}: there is no such folder")
    told, running = read_manifest(path), peek(path / LEDGER)
    if not told and running is None:
        raise InputError(f"{path} holds no run of ours; expected the --out folder of a command")
    if told and (running is None or told.get("complete")):
        counts = told.get("counts", {})
        refused, seconds = len(counts.get("refused", {})), told.get("wall_seconds")
        done = State("done", told.get("command"), counts.get("units"), counts.get("units"), refused, seconds)
        of_them = f", {refused:,} of them refused" if refused else ""
        units = f", {done.units:,} units" if done.units is not None else ""
        return done, [f"{done.command}: done{units}{of_them}; its last run took {seconds} s"]
    if running is None:
        raise InputError(f"{path} changed while it was looked at; ask again")
    about = running.about
    state = State(
        "running" if busy(path / LEDGER) else "stopped", about.get("command"), about.get("units"), running.finished,
        open=running.open, started=about.get("started"), resumed=about.get("resumed", 0),
        seconds_since_last=None if running.last is None else round(time.time() - running.last),
    )  # fmt: skip
    again = {0: "", 1: ", resumed once"}.get(state.resumed or 0, f", resumed {state.resumed} times")
    last = f", last unit {state.seconds_since_last:,} s ago" if state.seconds_since_last is not None else ""
    of = f" of {state.units:,}" if state.units else ""
    lines = [
        f"{state.command}: {state.state}, {running.finished:,}{of} units done",
        f"    started {state.started}{again}{last}",
    ]
    if running.open:
        lines.append(f"    {running.open:,} units were stopped by the clock; the same command does them again")
    if state.state == "stopped":
        lines.append("    run the same command again to resume")
    return state, lines
