"""What is done to one unit of `--leave-one-out`? For every chosen person, what is said with and without them."""

from __future__ import annotations

from glasshouse.assess.people.leaving_out import LeavingOut, Targets, leave_each_out
from glasshouse.engine.job import Done


def leave_out(job: LeavingOut, item: Targets) -> Done:
    """One unit: for every chosen person, what each teller says with and without them."""
    found = leave_each_out(job, item)
    same = {f"same {name}": int(held) for name, held in found.same.items()}
    return Done({"leaving": found.counts}, {**same, "left_out": found.persons})
