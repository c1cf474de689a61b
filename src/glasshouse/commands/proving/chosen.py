"""Which kinds of facts have certificates? Of each command's result its own; those that are named, or all."""

from __future__ import annotations

from collections.abc import Sequence

from glasshouse.errors import unknown

SOLVAR, CERTAIN, LEAST, MOST, CONTRADICTION = "solvar", "certain", "least", "most", "contradiction"
FACTS = {
    "vary": (SOLVAR, CERTAIN),
    "bounds": (LEAST, MOST, CONTRADICTION),
    "verify": (LEAST, MOST),
    "detect": (LEAST, MOST, CONTRADICTION),
}


def chosen_facts(of: str, named: Sequence[str]) -> frozenset[str]:
    """The kinds of facts of a command's result that are proved."""
    for one in named:
        if one not in FACTS[of]:
            raise unknown(f"kind of fact of a result of {of}", one, FACTS[of])
    return frozenset(named or FACTS[of])
