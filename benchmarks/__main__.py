"""`make bench` runs every benchmark; `make bench ONLY=name` runs one. Each replaces its own entry in the results."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypedDict

from benchmarks import (
    bounds,
    claims_vs_per_claim,
    core,
    detect_vs_per_household,
    front_vs_lps,
    growth,
    gurobi,
    match_vs_loop,
    nation,
    posterior_vs_gibbs,
    proofs,
    report_by_size,
    tabulate_vs_groupby,
    topdown_by_size,
)

RESULTS = Path(__file__).parent / "results" / "latest.json"


class Result(TypedDict):
    """One line of the results: how many times faster (or another unit), than what, on how much."""

    name: str
    ratio: float
    unit: str
    n: int
    peer: str
    detail: dict[str, object]


BENCHMARKS: dict[str, Callable[[], Result]] = {
    "bounds-by-size": bounds.by_size,
    "bounds-vs-lp": bounds.vs_lp,
    "bounds-vs-milp": bounds.vs_milp,
    "claims-by-size": claims_vs_per_claim.by_size,
    "claims-vs-one-hot": claims_vs_per_claim.one_hot,
    "claims-vs-per-claim": claims_vs_per_claim.run,
    "detect-by-size": detect_vs_per_household.by_size,
    "detect-vs-per-household": detect_vs_per_household.run,
    "farthest-by-size": growth.by_size,
    "farthest-vs-histogram-mean": lambda: core.farthest_ratio("mean"),
    "farthest-vs-histogram-median": lambda: core.farthest_ratio("median"),
    "feasible-vs-record-binary": lambda: core.feasible(eliminate=True),
    "feasible-vs-record-binary-full": lambda: core.feasible(eliminate=False),
    "front-vs-lps": front_vs_lps.run,
    "match-vs-loop": match_vs_loop.run,
    "nation-core-hours": nation.run,
    "posterior-vs-gibbs": posterior_vs_gibbs.run,
    "proof-bytes-per-person": proofs.bytes_per_person,
    "proof-check-vs-solve": proofs.check_vs_solve,
    "report-by-size": report_by_size.run,
    "share-without-solver": core.share_without_solver,
    "tabulate-vs-groupby": tabulate_vs_groupby.run,
    "topdown-by-size": topdown_by_size.run,
    "tract-vs-record-binary": core.tract_ratio,
}


# Run by name only, printed and never kept: the licence of that solver does not allow results to be published.
PRINTED: dict[str, Callable[[], Result | None]] = {  # None: it is not installed
    "farthest-vs-gurobi": gurobi.farthest,
    "feasible-vs-gurobi": gurobi.feasible,
}


def main(names: list[str]) -> int:
    known = [*BENCHMARKS, *PRINTED]
    unknown = [name for name in names if name not in known]
    if unknown:
        print(f"unknown benchmark '{unknown[0]}'; known: {', '.join(known)}", file=sys.stderr)
        return 2
    kept: dict[str, Result] = {}
    if RESULTS.exists():
        kept = {entry["name"]: entry for entry in json.loads(RESULTS.read_text(encoding="utf-8"))}
    for name in names or BENCHMARKS:
        if name in PRINTED:
            result = PRINTED[name]()
            if result is not None:
                print(json.dumps(result, indent=2))
            continue
        kept[name] = BENCHMARKS[name]()
        print(json.dumps(kept[name], indent=2))
        RESULTS.write_text(json.dumps([kept[key] for key in sorted(kept)], indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
