"""Does viprchk, the checker of the VIPR project, accept what we write? And what does it accept that is false?

It runs where viprchk is on the path, or where the environment variable VIPRCHK names it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import polars as pl
import pytest

import glasshouse as gh
from tests.bounds_sample import NORLAND
from tests.proof_toys import Json, certificate, facts, finish, toy, write
from tests.test_proofs import verdict

VIPRCHK = os.environ.get("VIPRCHK") or shutil.which("viprchk")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not VIPRCHK, reason="viprchk is not on the path, and VIPRCHK does not name it"),
]


# It says these at the last of the lines that it has followed; the last for a count of 0 where zeros say it all.
VERIFIED = "Infeasibility verified.", "Successfully verified optimal value range", "RTP is a tautology."


def said_of(path: Path) -> tuple[bool, str]:
    """Whether it accepts a file, and what it prints."""
    ended = subprocess.run([str(VIPRCHK), str(path)], capture_output=True, text=True, check=False)
    return ended.returncode == 0, ended.stdout + ended.stderr


def followed(path: Path) -> bool:
    """Is it accepted for its lines? A file that has none is accepted, too."""
    fine, text = said_of(path)
    return fine and any(one in text for one in VERIFIED)


def all_accepted(folder: Path, at_least: int) -> None:
    found = sorted(folder.glob("*.vipr"))
    assert len(found) >= at_least
    assert [path.name for path in found if not followed(path)] == []


def test_the_facts_of_toys(tmp_path: Path) -> None:
    for seed in range(40):
        definitions, rows, records = toy(seed, intervals=seed % 3 == 0)
        hashes = write(tmp_path, definitions, rows)
        for number, said in enumerate(facts(definitions, rows, records)):
            found = certificate(tmp_path, said)
            assert found is not None
            (tmp_path / f"{seed}-{number}.vipr").write_text(finish(found[1], hashes))
    all_accepted(tmp_path, 300)


def test_every_certificate_of_a_county_of_twelve_thousand(tmp_path: Path) -> None:
    tables = tmp_path / "tables.csv.gz"
    gh.synthesize(persons=12_000, seed=1, out=tmp_path / "county")
    gh.tabulate(tmp_path / "county" / "cef.parquet", scenario="sf1-person", out=tables)
    gh.vary(tables, scenario="sf1-person", out=tmp_path / "solvar")
    found = gh.prove(tmp_path / "solvar", tables=tables, out=tmp_path / "proofs")
    assert found.summary.certified >= found.summary.by_proof_before["exact"]["certified"] > 500
    all_accepted(tmp_path / "proofs", 300)


def test_every_certificate_of_real_tracts(data: Path, tmp_path: Path) -> None:
    tables = data / "sf1_tracts" / "tables.csv.gz"
    gh.vary(tables, scenario="sf1-person", out=tmp_path / "solvar")
    gh.prove(tmp_path / "solvar", tables=tables, out=tmp_path / "proofs")
    all_accepted(tmp_path / "proofs", 4_000)


def test_claims_hidden_numbers_and_contradictions(tmp_path: Path) -> None:
    scenario, tables, hidden = str(NORLAND / "scenario"), tmp_path / "tables.csv", tmp_path / "hidden.csv"
    gh.tabulate(NORLAND / "records.csv", scenario=scenario, subtotals=True, out=tables)
    gh.verify(tables, scenario=scenario, columns=3, out=tmp_path / "claims")
    gh.protect.suppress(tables, scenario=scenario, below=3, out=hidden)
    gh.bounds(hidden, scenario=scenario, out=tmp_path / "bounds")
    frame = pl.read_csv(tables, infer_schema=False).filter(pl.col("table") == "W1")
    wrong = (pl.int_range(pl.len()) == 1) & (pl.col("value") != "0")
    frame = frame.with_columns(pl.when(wrong).then(pl.lit("999")).otherwise(pl.col("value")).alias("value"))
    frame.write_csv(tmp_path / "wrong.csv")
    gh.bounds(tmp_path / "wrong.csv", scenario=scenario, only=("W1",), out=tmp_path / "contradictions")
    asked = {"claims": (tables, 1_000), "bounds": (hidden, 500), "contradictions": (tmp_path / "wrong.csv", 1)}
    for name, (published, at_least) in asked.items():
        gh.prove(tmp_path / name, tables=published, scenario=scenario, out=tmp_path / f"{name}-proved")
        all_accepted(tmp_path / f"{name}-proved", at_least)


def test_areas_as_a_whole_and_differences_of_their_numbers(tmp_path: Path) -> None:
    tables, scenario = tmp_path / "norland.csv", str(NORLAND / "scenario")
    gh.tabulate(NORLAND / "records.csv", scenario=scenario, out=tables)
    jointly = gh.vary(tables, scenario=scenario, scope="town").prove(
        tables, scenario=scenario, out=tmp_path / "jointly"
    )
    assert {"area solvar", "area certain", "solvar", "certain"} == set(jointly.index["fact"])
    gh.vary(tables, scenario=scenario, tighten=True).prove(tables, scenario=scenario, out=tmp_path / "tightened")
    only = ("W1", "W2", "T1")
    gh.protect.suppress(tables, scenario=scenario, below=3, out=tmp_path / "hidden.csv")
    gh.bounds(tmp_path / "hidden.csv", scenario=scenario, only=only, out=tmp_path / "bounds")
    gh.prove(tmp_path / "bounds", tables=tmp_path / "hidden.csv", scenario=scenario, out=tmp_path / "bounds-proved")
    for name, at_least in (("jointly", 30), ("tightened", 30), ("bounds-proved", 100)):
        all_accepted(tmp_path / name, at_least)


def test_two_agencies(tmp_path: Path) -> None:
    """Of detect: the least and the most under each reading, and numbers that cannot all be true."""
    gh.synthesize(persons=4_000, subsidised=0.2, seed=3, out=tmp_path / "county")
    tables, properties = tmp_path / "tables.csv.gz", tmp_path / "county" / "housing.parquet"
    gh.tabulate(tmp_path / "county" / "households.parquet", scenario="subsidised-housing", out=tables)
    noisy = tmp_path / "noisy.parquet"
    gh.protect.properties(properties, rho="0.05", scenario="subsidised-housing", seed=1, out=noisy)
    for name, printed in (("true", properties), ("noisy", noisy)):
        found = gh.detect(tables, properties=printed, seconds=0)
        kinds = ("least", "contradiction") if name == "noisy" else ("least", "most")
        proved = found.prove(tables, properties=printed, facts=kinds, out=tmp_path / name)
        assert (proved.index.height and name != "noisy") or "contradiction" in set(proved.index["fact"])
        all_accepted(tmp_path / name, 5)


ONE_RECORD = "VER 1.0\nVAR 1\nx0\nINT 1\n0\nOBJ min\n0\nCON 1 0\nT_01 E 1 1 0 1\n"
HOLES = {  # none shows anything: one record is published, and possible; three say that it is not
    "a split at a number that is not whole": "RTP infeas\nSOL 0\nDER 5\na L 1/2 1 0 1 { asm } -1\n"
    "b G 3/2 1 0 1 { asm } -1\nc G 1 0 { lin 2 0 2 1 -2 } -1\nd G 1 0 { lin 2 2 2 0 -2 } -1\n"
    "e G 1 0 { uns 3 1 4 2 } -1\n",
    "a goal that says nothing": "RTP range -inf inf\nSOL 0\nDER 0\n",
    "no line at all": "RTP infeas\nSOL 0\nDER 0\n",
    "an assumption of the second case is forgotten": "RTP infeas\nSOL 0\nDER 6\na L 0 1 0 1 { asm } -1\n"
    "b G 1 1 0 1 { asm } -1\nf G 5 1 0 1 { asm } -1\nc G 1 0 { lin 2 0 1 1 -1 } -1\nd G 4 0 { lin 2 3 1 0 -1 } -1\n"
    "e G 1 0 { uns 4 1 5 2 } -1\n",
}


@pytest.mark.parametrize("hole", HOLES)
def test_what_it_accepts_and_ours_refuses(hole: str, tmp_path: Path) -> None:
    definitions, _, _ = toy(3)
    definitions["numbers"] = {"house": {"T_01": {"table": "T", "says": "everybody", "counts": [{}]}}, "street": {}}
    definitions["impossible"] = []
    hashes = write(tmp_path, definitions, [["house", "A1a", "T_01", "1", "1"]])
    said: Json = {"fact": "contradiction", "places": ["A1a"], "levels": ["house"]}
    text = finish(f"% fact {json.dumps(said)}\n{ONE_RECORD}{HOLES[hole]}", hashes)
    fine, why = verdict(tmp_path, text)
    assert not fine and why
    assert said_of(tmp_path / "one.vipr")[0]
