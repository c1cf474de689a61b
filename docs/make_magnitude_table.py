"""Makes the table of sensitive cells on docs/bounds.md: the test problems of tau-Argus, judged by their own rule.

Run: python docs/make_magnitude_table.py   (seconds; needs ../shared/data/world beside the repository)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
from made_part import put_part  # beside this file
from numpy.typing import NDArray
from world_releases import (  # beside this file
    TAU_RULES,
    WORLD,
    Release,
    tau_contributions,
    tau_linked,
    tau_problems,
    tau_records,
    tau_release,
)

from glasshouse.assess.sensitive import NOT_PROTECTED, PROTECTED, UNDECIDED, PPercent, Range, sensitive
from glasshouse.files.formats.tau_table import TauTable
from glasshouse.model.contributions import Contributions
from glasshouse.model.records import UNLIMITED
from glasshouse.program.numbers.linked import link
from glasshouse.program.numbers.system import alone

PAGE = Path(__file__).resolve().parent / "bounds.md"
LINKED, SHOWN = "test_2a with 2b", "shown"


def judged(folder: Path = WORLD / "tau") -> dict[str, list[int]]:
    """Of each problem: the cells, those that break the rule, and how many of these are protected, or shown."""
    tables, microdata = tau_problems(folder), tau_records(folder)
    cells = {name: tau_contributions(name, table, microdata[name]) for name, table in tables.items()}
    found: dict[str, list[int]] = {}
    for name, table in tables.items():
        found[name] = _row(tau_release(table), table.hidden, cells[name], TAU_RULES[name].p, [table])
    both = ("test_2a", "test_2b")
    together, hidden = tau_linked(tables)
    of_both = tuple(cell for name in both for cell in cells[name])
    found[LINKED] = _row(together, hidden, of_both, TAU_RULES[both[0]].p, [tables[name] for name in both])
    return found


def _row(
    release: Release, hidden: NDArray[np.bool_], cells: Sequence[Contributions], p: int, tables: Sequence[TauTable]
) -> list[int]:
    linked = link(release.numbers)
    kinds = np.unique(linked.number[hidden])
    ends = alone(linked, release.lower, release.upper).ends(kinds)
    verdicts: Counter[str] = Counter()
    for at, cell in enumerate(cells):
        broken, needed = sensitive(cell, [PPercent(Fraction(p))])
        if not broken:
            continue
        if not hidden[at]:
            verdicts[SHOWN] += 1
            continue
        number = np.searchsorted(kinds, linked.number[at])
        low, high, least, most = (int(side[number]) for side in (ends.low, ends.high, ends.met_low, ends.met_high))
        endless = high >= UNLIMITED
        known = Range(low, None if endless else high, least, None if endless else most, endless)
        verdicts[known.judge(cell.total, needed)] += 1
    unsafe = sum(int((table.status == 3).sum()) for table in tables)
    kept = [verdicts[one] for one in (PROTECTED, NOT_PROTECTED, UNDECIDED, SHOWN)]
    return [len(cells), int(hidden.sum()), unsafe, sum(verdicts.values()), *kept]


def main() -> None:
    head = ["test problem", "cells", "hidden", "unsafe by tau-Argus", "sensitive", "protected", "not protected",
            "undecided", "shown"]  # fmt: skip
    rows = [head, ["---"] * len(head), *([name, *(f"{n:,}" for n in row)] for name, row in judged().items())]
    put_part(PAGE, __file__, "\n".join("| " + " | ".join(row) + " |" for row in rows))


if __name__ == "__main__":
    main()
