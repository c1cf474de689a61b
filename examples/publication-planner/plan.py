"""Which tables may we publish? Counts records into sets of tables, attacks each set, and prints what is certain then.

Run: python examples/publication-planner/plan.py examples/publication-planner/sets.toml
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import glasshouse as gh


def main(sets: str) -> None:
    plan = tomllib.loads(Path(sets).read_text(encoding="utf-8"))
    beside = Path(sets).parent
    own = beside / plan["scenario"]
    scenario = str(own) if own.is_dir() else plan["scenario"]
    limit = plan["tolerable"]
    width = max(len(name) for name in plan["set"])
    print(f"{'publish':{width}}  tables  certain  places with one solution")
    tables = gh.tabulate(beside / plan["records"], scenario=scenario)
    for name, chosen in plan["set"].items():
        found = gh.vary(tables, only=chosen, workers=1).summary
        certain, alone = found.headline.share_certain_upper, found.headline.zero_solvar_share
        untold = ", ".join(found.not_compared)
        verdict = f"says nothing of {untold}: not comparable" if untold else "" if certain <= limit else "too much"
        print(f"{name:{width}}  {len(chosen):6}  {certain:7.1%}  {alone:6.1%}  {verdict}".rstrip())


if __name__ == "__main__":
    main(*sys.argv[1:])
