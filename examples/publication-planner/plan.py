"""Which tables may we publish? Counts records into sets of tables, attacks each set, and prints what is certain then.

Run: python examples/publication-planner/plan.py examples/publication-planner/sets.toml
"""

from __future__ import annotations

import json
import sys
import tomllib
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from glasshouse.cli.main import main as glasshouse


def run(*command: object) -> dict[str, Any]:
    """One command of the tool, in this process; what it says with --json."""
    with redirect_stdout(StringIO()) as out, redirect_stderr(StringIO()) as said:
        code = glasshouse([*(str(word) for word in command), "--workers", "1", "--quiet", "--json"])
    if code:
        sys.exit(said.getvalue() or out.getvalue())
    return dict(json.loads(out.getvalue()))


def main(sets: str) -> None:
    plan = tomllib.loads(Path(sets).read_text(encoding="utf-8"))
    beside = Path(sets).parent
    own = beside / plan["scenario"]
    scenario = own if own.is_dir() else plan["scenario"]
    limit = plan["tolerable"]
    width = max(len(name) for name in plan["set"])
    print(f"{'publish':{width}}  tables  certain  places with one solution")
    with TemporaryDirectory() as folder:
        tables = Path(folder) / "tables.csv.gz"
        run("tabulate", beside / plan["records"], "--scenario", scenario, "--out", tables)
        for name, chosen in plan["set"].items():
            found = run("vary", tables, "--scenario", scenario, "--tables", ",".join(chosen))
            certain, alone = found["headline"]["share_certain_upper"], found["headline"]["zero_solvar_share"]
            untold = ", ".join(found["not_compared"])
            verdict = f"says nothing of {untold}: not comparable" if untold else "" if certain <= limit else "too much"
            print(f"{name:{width}}  {len(chosen):6}  {certain:7.1%}  {alone:6.1%}  {verdict}".rstrip())


if __name__ == "__main__":
    main(*sys.argv[1:])
