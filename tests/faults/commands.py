"""Which commands write, and on what? One small run of each, on a county of three hundred people."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

from tests.behaviour import COPIED, EXAMPLES, _few_people, _few_tables
from tests.faults.server import Server

MINI = "--scenario ../given/mini"
TABLES = f"../given/tables.parquet {MINI}"
COUNTY = "../given/county"
PLAN = """
title = "One"
scenario = "../given/mini"
seeds = [1]
attackers = ["attacker-perfect"]
[[setting]]
name = "swap"
protect = "swap"
rate = 0.1
"""
AUDIT = """
title = "Norland, tables only"
scenario = "../given/norland/scenario"
[input]
tables = "../given/norland.csv"
"""

TIDY = """district,sex,age,count
A1,Total,Total,9
A1,women,0-14,1
A1,women,15+,3
A1,men,0-14,3
A1,men,15+,2
A2,Total,Total,4
A2,women,0-14,1
A2,women,15+,1
A2,men,0-14,1
A2,men,15+,1
"""


class Command(NamedTuple):
    """A command as it is typed; with `older`, an older result lies in its place, and it says --overwrite."""

    typed: str
    older: str = ""
    secure: bool = False
    rows: int = 0  # what a sort holds in memory; the rest goes to disk
    every: int = 1  # of its calls, every so many is tried by the tests; all of them by `python -m tests.faults`
    keeps: str = ""  # the folder where tables are kept as they were compiled

    @property
    def arguments(self) -> list[str]:
        return self.typed.split()


_NOISE = f"protect noise {TABLES} --rho 4 --measurements new/m.csv --out new/t.csv"
_RECORDS = f"{COUNTY}/cef.parquet"
COMMANDS = {
    "describe": Command("describe ../given/tidy.csv --out new/country"),
    "synthesize": Command("synthesize --persons 200 --seed 1 --out new/county"),
    "tabulate": Command(f"tabulate {COUNTY}/hdf.parquet {MINI} --out new/t.parquet"),
    "tabulate, sorted on disk": Command(f"tabulate {COUNTY}/hdf.parquet {MINI} --out new/t.csv.gz", rows=100),
    "tabulate, an archive": Command("tabulate ../given/alabama.csv --scenario sf1-person --out new/al2010.sf1.zip"),
    "tabulate, over an older one": Command(
        f"tabulate {COUNTY}/hdf.parquet {MINI} --overwrite --out new/t.csv",
        f"tabulate {COUNTY}/cef.parquet {MINI} --out new/t.csv",
    ),
    "reconstruct": Command(f"reconstruct {TABLES} --workers 1 --out new/rebuilt"),
    "reconstruct, over an older one": Command(
        f"reconstruct {TABLES} --workers 1 --overwrite --out new/rebuilt",
        f"reconstruct {TABLES} --workers 1 --seed 9 --out new/rebuilt",
    ),
    "vary": Command(f"vary {TABLES} --from ../given/rebuilt --workers 1 --out new/solvar"),
    "vary, tables kept": Command(
        f"vary {TABLES} --from ../given/rebuilt --workers 1 --out new/solvar", every=9, keeps="new/cache"
    ),
    "vary, tables read": Command(
        f"vary {TABLES} --from ../given/rebuilt --workers 1 --overwrite --out new/solvar",
        f"vary {TABLES} --from ../given/rebuilt --workers 1 --seed 9 --out new/solvar",
        every=9,
        keeps="new/cache",
    ),
    "bounds": Command(
        "bounds ../given/suppressed.csv --scenario ../given/norland/scenario --tables W1,W2 --why 1 --workers 1 "
        "--out new/bounds",
        every=3,
    ),
    "verify": Command(
        "verify ../given/norland.csv --scenario ../given/norland/scenario --columns 2 --workers 1 --out new/claims",
        every=5,
    ),
    "prove": Command(
        f"prove ../given/solvar --tables ../given/tables.parquet {MINI} --workers 1 --out new/proofs", every=15
    ),
    "detect": Command(
        f"detect ../given/subsidised.parquet --properties {COUNTY}/housing.parquet --workers 1 --seconds 0 "
        "--out new/found"
    ),
    "furnish": Command(
        f"furnish {COUNTY}/households.parquet --sample {COUNTY}/sample.parquet --properties {COUNTY}/housing.parquet "
        "--out new/truth"
    ),
    "reidentify": Command(
        f"reidentify ../given/rebuilt --truth {_RECORDS} --published {COUNTY}/hdf.parquet "
        f"--attacker {COUNTY}/commercial.parquet {MINI} --workers 1 --out new/risk"
    ),
    "infer figures": Command("infer figures --only 5 --out new/figures"),
    "infer sweep": Command("infer sweep --rho 0.1,1 --prior 1/2 --out new/swept"),
    "protect swap": Command(
        f"protect swap {_RECORDS} --rate 0.1 --log new/pairs.csv --households {COUNTY}/households.parquet "
        "--households-out new/homes.parquet --out new/p.parquet"
    ),
    "protect topdown": Command(
        f"protect topdown {_RECORDS} --scenario pl94 --budget pl94-2020 --places {COUNTY}/blocks.parquet "
        "--out new/p.parquet"
    ),
    "protect relocate": Command(
        f"protect relocate {_RECORDS} --by sex,hispanic --lambda 3 --capacity 20 --q 0.5 --theta-out new/theta.csv "
        "--out new/p.parquet"
    ),
    "protect noise": Command(_NOISE),
    "protect noise, secure": Command(f"{_NOISE} --secure", secure=True),
    "protect noise, over an older one": Command(f"{_NOISE} --overwrite", f"{_NOISE} --seed 9"),
    "protect round": Command(f"protect round {TABLES} --base 3 --values new/v.parquet --out new/t.parquet"),
    "protect suppress": Command(f"protect suppress {TABLES} --below 5 --values new/v.csv.gz --out new/t.csv.gz"),
    "protect cellkey": Command(f"protect cellkey {TABLES} --seed 7 --out new/t.parquet"),
    "protect properties": Command(
        f"protect properties {COUNTY}/housing.parquet --rho 12.66 --scenario subsidised-housing --out new/p.parquet"
    ),
    "tradeoff": Command(f"tradeoff {_RECORDS} --by sex,hispanic --lambda 3 --capacity 20 --points 3 --out new/front"),
    "compare": Command(f"compare {COUNTY} --plan ../given/plan.toml --workers 1 --out new/compared", every=15),
    "audit": Command("audit --config ../given/audit.toml --workers 1 --out new/audit", every=25),
}


GIVEN = {
    "county": f"synthesize --persons 300 --seed 7 --subsidised 0.25 --out {COUNTY}",
    "tables.parquet": f"tabulate {COUNTY}/hdf.parquet {MINI} --out ../given/tables.parquet",
    "norland.csv": "tabulate ../given/norland/records.csv --scenario ../given/norland/scenario "
    "--out ../given/norland.csv",
    "suppressed.csv": "protect suppress ../given/norland.csv --scenario ../given/norland/scenario --below 3 "
    "--out ../given/suppressed.csv",
    "subsidised.parquet": f"tabulate {COUNTY}/households.parquet --scenario subsidised-housing "
    "--out ../given/subsidised.parquet",
    "rebuilt": f"reconstruct {TABLES} --workers 1 --out ../given/rebuilt",
    "solvar": f"vary {TABLES} --workers 1 --out ../given/solvar",
}


def prepare(root: Path, server: Server, typed: str) -> None:
    """Make what a command reads, if it is not there."""
    read = typed + AUDIT if "audit.toml" in typed else typed
    for name, maker in GIVEN.items():
        if f"../given/{name}" in read and not (root / "given" / name).exists():
            prepare(root, server, maker.rpartition("--out")[0])
            ended = server.run(maker.split(), new_case(root))
            assert ended.code == 0, ended


def begin(root: Path) -> None:
    """Put what is not made by commands into the folder that all of them read."""
    given = root / "given"
    given.mkdir()
    _few_tables(given / "mini")
    _few_people(given / "alabama.csv")
    shutil.copytree(EXAMPLES / COPIED["norland"], given / "norland", ignore=shutil.ignore_patterns("__pycache__"))
    (given / "plan.toml").write_text(PLAN)
    (given / "audit.toml").write_text(AUDIT)
    (given / "tidy.csv").write_text(TIDY)


def new_case(root: Path) -> Path:
    """An empty folder for one run."""
    case = root / "case"
    shutil.rmtree(case, ignore_errors=True)
    (case / "tmp").mkdir(parents=True)
    return case
