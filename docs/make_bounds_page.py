"""Makes the tables of docs/bounds.md: bounds of real releases that others protected.

Run: python docs/make_bounds_page.py   (minutes; needs ../shared/data/world beside the repository)

Seconds are the processor's, one core. How numbers hang together is worked out once for a release; that is counted for
tau-Argus's problems only. "Contradictions" are those that propagation proves.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from made_part import put_part  # beside this file
from numpy.typing import NDArray
from world_releases import (  # beside this file
    Release,
    de_release,
    nz_release,
    p_table_width,
    tau_problems,
    tau_release,
    uk_release,
)

from glasshouse.model.records import UNLIMITED
from glasshouse.program.integer import Proof
from glasshouse.program.ladder import ORDER
from glasshouse.program.numbers.linked import Linked, link
from glasshouse.program.numbers.system import alone

PAGE = Path(__file__).resolve().parent / "bounds.md"
PERCENT = 15  # a range no wider than this share of its upper end is narrow: the p of the test problems' p% rule
CHUNK = 4_000  # places at a time
EACH = 50  # every so manieth place is asked for proved ends too
DE_SLACK = (0, 1, 2, 3, 4)
UK_SLACK = (0, 1, 2, 3, 4, 5)
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Known:
    """What is known of the numbers of places (places x numbers), and whether anything fits."""

    low: Ints
    high: Ints
    impossible: NDArray[np.bool_]
    undecided: int
    seconds: float


def known(release: Release, linked: Linked, *, proved: bool) -> Known:
    """Bounds by propagation alone (sound, and not always as close as can be), or proved ends."""
    kinds = np.unique(linked.number)
    column = np.searchsorted(kinds, linked.number)
    low, high, impossible, undecided = [], [], [], 0
    began = time.process_time()
    for first in range(0, len(release.lower), CHUNK):
        some = slice(first, first + CHUNK)
        places = len(release.lower[some])
        system = alone(linked, release.lower[some], release.upper[some])
        wanted = (np.arange(places)[:, None] * linked.width + kinds).reshape(-1)
        if proved:
            found = system.ends(wanted)
            least, most, bad = found.low, found.high, found.fits < 0
            open_ = np.maximum(found.low_proof, found.high_proof) == ORDER.index(Proof.UNDECIDED)
            undecided += int(open_.reshape(places, -1)[~bad].sum())
        else:
            split = system.split
            least, most, bad = split.lower[wanted], split.upper[wanted], split.impossible
        low.append(least.reshape(places, -1)[:, column])
        high.append(most.reshape(places, -1)[:, column])
        impossible.append(bad)
    seconds = time.process_time() - began
    return Known(np.concatenate(low), np.concatenate(high), np.concatenate(impossible), undecided, seconds)


def table(head: list[str], rows: list[list[object]]) -> str:
    said = [[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in rows]
    return "\n".join(["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *said)])


def share(part: object, whole: object) -> str:
    return f"{100 * float(np.sum(part)) / max(float(np.sum(whole)), 1):.1f}%"  # type: ignore[call-overload]


def tau() -> str:
    """The test problems of tau-Argus, each by itself."""
    tables = tau_problems()
    releases = {name: (tau_release(one), one.hidden, one.value) for name, one in tables.items()}
    rows: list[list[object]] = []
    for name, (release, hidden, value) in releases.items():
        began = time.process_time()
        linked = link(release.numbers)
        kinds = np.unique(linked.number[hidden])
        found = alone(linked, release.lower, release.upper).ends(kinds)
        seconds = time.process_time() - began
        if found.fits[0] < 0:
            rows.append([name, len(hidden), int(hidden.sum()), "contradiction", "", "", "", f"{seconds:.1f}"])
            continue
        at = np.searchsorted(kinds, linked.number[hidden])
        low, high = found.low[at], found.high[at]
        if not ((low <= value[hidden]) & (value[hidden] <= high)).all():
            raise SystemExit(f"{name}: a true value is outside its bounds")
        exact = low == high
        narrow = ~exact & (100 * (high - low) <= PERCENT * high)
        undecided = np.maximum(found.low_proof, found.high_proof) == ORDER.index(Proof.UNDECIDED)
        wide = len(low) - int(exact.sum()) - int(narrow.sum())
        counts = [len(hidden), len(low), int(exact.sum()), int(narrow.sum()), wide, int(undecided.sum())]
        rows.append([name, *counts, f"{seconds:.1f}"])
    head = ["test problem", "cells", "hidden", "exact", "narrow", "wide (safe)", "undecided", "seconds"]
    return table(head, rows)


def meshblocks() -> str:
    """New Zealand's dwellings."""
    rows: list[list[object]] = []
    linked = None
    for year in (2001, 2006, 2013):
        release = nz_release(year)
        linked = linked or link(release.numbers)
        rows.append(_shares(f"{year}, all, by propagation", release, known(release, linked, proved=False)))
    some = nz_release(2013, every=EACH)
    rows.append(_shares(f"2013, one in {EACH}, proved ends", some, known(some, linked, proved=True)))  # type: ignore[arg-type]
    head = ["meshblocks", "places", "numbers printed", "exact", "narrowed", "withheld", "exact now", "with a limit now",
            "contradictions", "undecided", "seconds"]  # fmt: skip
    return table(head, rows)


def _shares(name: str, release: Release, found: Known) -> list[object]:
    fine = ~found.impossible[:, None]
    printed = fine & (release.upper < UNLIMITED) & (release.lower < release.upper)
    withheld = fine & (release.upper >= UNLIMITED)
    exact = found.low == found.high
    closer = (found.low > release.lower) | (found.high < release.upper)
    return [
        name, len(release.places), int(printed.sum()), share(exact & printed, printed),
        share(closer & printed, printed), int(withheld.sum()), share(exact & withheld, withheld),
        share((found.high < UNLIMITED) & withheld, withheld),
        int(found.impossible.sum()), found.undecided, f"{found.seconds:.1f}",
    ]  # fmt: skip


def grid() -> str:
    """The German grid, by how much every number may be off."""
    linked = link(de_release(0, every=1000).numbers)
    rows: list[list[object]] = []
    for slack in DE_SLACK:
        release = de_release(slack)
        found = known(release, linked, proved=False)
        line = _shares(f"{slack}", release, found)
        rows.append([line[0], line[1], line[8], line[3], line[4], line[10]])
    return table(["off by at most", "cells of the grid", "contradictions", "exact", "narrowed", "seconds"], rows)


def authorities() -> str:
    """Ages of the United Kingdom's authorities, regions and countries, by how much every number may be off."""
    exact = uk_release(0)
    linked = link(exact.numbers)
    rows: list[list[object]] = []
    for slack in UK_SLACK:
        release = uk_release(slack)
        found = known(release, linked, proved=False)
        line = _shares(f"{slack}", release, found)
        rows.append([line[0], len(exact.numbers.names), "yes" if found.impossible[0] else "no", line[4], line[10]])
    said = table(["off by at most", "numbers", "contradiction", "narrowed", "seconds"], rows)
    lowest, highest = p_table_width()
    return f"{said}\n\nThe p-table at hand changes counts by {lowest} to +{highest}.\n\n{conflicts(exact, linked)}"


def conflicts(release: Release, linked: Linked, most: int = 5) -> str:
    """Numbers that are not the sum of others, read as exact: those that are farthest off."""
    equations, value = linked.equations, np.full(linked.width, -1, np.int64)
    value[linked.number] = release.lower[0]
    entries = np.repeat(np.arange(len(equations.starts) - 1), np.diff(equations.starts))
    told = np.bincount(entries, value[equations.index] < 0) == 0
    off = np.bincount(entries, equations.coefficient * value[equations.index]).astype(np.int64)
    sums = told & ~equations.loose
    name = {int(variable): release.numbers.names[at] for at, variable in reversed(list(enumerate(linked.number)))}
    worst = [row for row in np.argsort(-np.abs(off), kind="stable") if sums[row]][:most]
    rows: list[list[object]] = []
    for row in worst:
        index = equations.index[equations.starts[row] : equations.starts[row + 1]]
        whole = int(index[-1])
        parts = [name[int(variable)] for variable in index[:-1]]
        rows.append(
            [name[whole], int(value[whole]), f"{parts[0]} and {len(parts) - 1} more", int(value[whole] + off[row])]
        )
    broken = int((sums & (off != 0)).sum())
    said = table(["number", "printed", "its parts", "their sum"], rows)
    return f"Of {int(sums.sum()):,} sums, {broken:,} do not hold as printed. The farthest off:\n\n{said}"


def main() -> None:
    parts = {
        "tau-Argus's test problems": tau(),
        "New Zealand, dwellings of meshblocks, rounded to 3": meshblocks(),
        "Germany, a tile of the 100 m grid": grid(),
        "United Kingdom, age by authority, region and country": authorities(),
    }
    put_part(PAGE, __file__, "\n\n".join(f"**{title}**\n\n{part}" for title, part in parts.items()))


if __name__ == "__main__":
    main()
