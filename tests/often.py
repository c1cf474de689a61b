"""On how many random cases is a law tried? On all in `make test-all`; on some of them, the first, in `make test`."""

from __future__ import annotations

import os

ALL = os.environ.get("GLASSHOUSE_TESTS") == "all"


def often(cases: int) -> int:
    """All of so many cases, or a third of them."""
    return cases if ALL else -(-cases // 3)
