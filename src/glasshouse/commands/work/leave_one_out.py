"""The job behind `--leave-one-out`: one unit of it."""

from __future__ import annotations

from typing import Any

import polars as pl

from glasshouse.assess.people.leaving_out import HOUSEHOLD, LeavingOut, Targets, leave_each_out

__all__ = ["HOUSEHOLD", "LeavingOut", "Targets", "leave_out"]


def leave_out(job: LeavingOut, item: Targets) -> tuple[dict[str, pl.DataFrame], dict[str, Any]]:
    """One unit: for every chosen person, what each teller says with and without them."""
    found = leave_each_out(job, item)
    same = {f"same {name}": int(held) for name, held in found.same.items()}
    return {"leaving": found.counts}, {"counts": {**same, "left_out": found.persons}}
