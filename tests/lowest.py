"""Do the versions that pyproject.toml allows work? `make lowest` tries the lowest of them, and the pinned ones.

A new environment for each, with `pip install .` as a stranger would do it; then a county is invented, published,
attacked, protected and audited in it, once on this machine and once on a Dask cluster. It needs a network for pip.

    python -m tests.lowest [lowest|pinned]...
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_LOWEST = re.compile(r"([A-Za-z0-9_-]+)(?:\[[a-z,]+\])?>=([0-9.]+)(?:,<[0-9.]+)?")
AUDIT = """
title = "A small county"
scenario = "sf1-person"
seed = 1

[synthetic]
persons = 400
seed = 1

[claims]
scenario = "dhc-household"
columns = 6
pick = "median:3"
"""
CLUSTER = """
import sys
from distributed import LocalCluster
import glasshouse as gh
if __name__ == "__main__":
    with LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as cluster:
        address = cluster.scheduler_address.replace("tcp://", "dask://")
        gh.vary(sys.argv[1], scenario="sf1-person", executor=address, out=sys.argv[2])
"""


def lowest() -> list[str]:
    """The least version of everything that we need, as pip is told; one without a lower end is a mistake."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = []
    for need in (*project["dependencies"], *project["optional-dependencies"]["dask"]):
        read = _LOWEST.fullmatch(need)
        if read is None:
            raise SystemExit(f"pyproject.toml: '{need}' has no lower end; expected NAME>=VERSION")
        found.append(f"{read[1]}=={read[2]}")
    return found


def pinned() -> list[str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return [line.split("#")[0].strip() for line in lines if line and not line.startswith("#")]


def tried(name: str, constraints: list[str], folder: Path) -> None:
    """Install and run; what goes wrong is an error."""
    venv.create(folder / "venv", with_pip=True)
    (folder / "constraints.txt").write_text("\n".join(constraints) + "\n", encoding="utf-8")
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(program: str, *arguments: object) -> str:
        command = [str(folder / "venv" / "bin" / program), *map(str, arguments)]
        ended = subprocess.run(command, cwd=folder, env=alone, capture_output=True, text=True)
        if ended.returncode not in (0, 1) or "Traceback" in ended.stderr:
            raise SystemExit(f"{name}: {' '.join(command)}\n{ended.stdout}{ended.stderr}")
        return ended.stdout

    quiet = ("--quiet", "--disable-pip-version-check", "--constraint", folder / "constraints.txt")
    run("python", "-m", "pip", "install", *quiet, f"{ROOT}[dask]")
    for line in sorted(run("python", "-m", "pip", "list", "--format", "freeze", "--disable-pip-version-check").split()):
        if line.lower().split("==")[0] in {one.lower().split("==")[0] for one in lowest()}:
            print("   ", line)
    scenario = ("--scenario", "sf1-person")
    run("glasshouse", "synthesize", "--persons", 400, "--seed", 1, "--out", "county")
    run("glasshouse", "tabulate", "county/hdf.parquet", *scenario, "--out", "tables.parquet")
    run("glasshouse", "check", "tables.parquet", *scenario)
    run("glasshouse", "reconstruct", "tables.parquet", *scenario, "--out", "rebuilt")
    run("glasshouse", "vary", "tables.parquet", *scenario, "--workers", 2, "--out", "varied")
    run(
        "glasshouse",
        "protect",
        "noise",
        "tables.parquet",
        *scenario,
        "--rho",
        "1",
        "--secure",
        "--out",
        "noisy.parquet",
    )
    (folder / "cluster.py").write_text(CLUSTER, encoding="utf-8")
    run("python", "cluster.py", "tables.parquet", "on-dask")
    if (folder / "varied" / "places.parquet").read_bytes() != (folder / "on-dask" / "places.parquet").read_bytes():
        raise SystemExit(f"{name}: a cluster gives other bytes")
    (folder / "audit.toml").write_text(AUDIT, encoding="utf-8")
    run("glasshouse", "audit", "--config", "audit.toml", "--out", "audit")
    summary = json.loads((folder / "audit" / "summary.json").read_text(encoding="utf-8"))
    print(f"    an audit of {summary['persons']:,} persons: {summary['share_certain']:.1%} certain")


def main(asked: list[str]) -> None:
    every = {"lowest": lowest, "pinned": pinned}
    for name in asked or list(every):
        print(f"{name} versions, Python {sys.version.split()[0]}")
        with tempfile.TemporaryDirectory(prefix="glasshouse-lowest-") as folder:
            tried(name, every[name](), Path(folder))
        print("    all of it works")


if __name__ == "__main__":
    main(sys.argv[1:])
