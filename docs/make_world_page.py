"""Makes the table of docs/world.md: every real file, read, described, checked and audited, or refused.

Run: python docs/make_world_page.py [--folder FOLDER] [FILE...]   (a quarter of an hour on a free machine; needs
../shared/data/world beside the repository). What a FOLDER of an earlier run already has is not run again.

Each command is run as a user would run it. A file that is not among TRIALS is described without any option.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
from made_part import put_part  # beside this file
from world_releases import WORLD, tau_problems  # beside this file

from glasshouse.errors import InputError
from glasshouse.files.formats import crossed
from glasshouse.files.frames import of_columns
from glasshouse.files.properties import read_properties
from glasshouse.files.sample import read_sample
from glasshouse.scenarios.load import load
from glasshouse.scenarios.printed import read_changes

PAGE = Path(__file__).resolve().parent / "world.md"
PATIENCE = 400  # seconds that a command may take
SHORT = 330  # letters of a refusal that are shown


@dataclass(frozen=True)
class Trial:
    """How a file is used: options that `describe` asks for, or a built-in scenario, or what else reads it.

    `part` makes a smaller file for the audit, and `said` says which; without, all of it is audited.
    """

    describe: str = ""
    scenario: str = ""
    read: Callable[[Path], str] | None = None
    part: Callable[[pl.DataFrame], pl.DataFrame] | None = None
    said: str = ""
    audit: bool = True
    tables: tuple[str, ...] = ()  # of the scenario, for the audit


def _sample(path: Path) -> str:
    return f"a sample of {len(read_sample(path))} states, as `detect --sample`"


def _properties(path: Path) -> str:
    scenario = load("subsidised-housing")
    about = scenario.occupancy
    if about is None:
        raise SystemExit("the scenario has no second agency")
    found = read_properties(
        path, scenario.geography, about.shares, exclusive=about.wholes, counts=about.counts,
        of_units=about.shares_of_units,
    )  # fmt: skip
    left = "".join(f"; {number} left out: {why}" for why, number in found.left_out.items())
    return f"{found.frame.height} developments, as `detect --properties`{left}"


def _changes(path: Path) -> str:
    return f"p-table up to count {len(read_changes(path).changes) - 1:,}, as `--cell-key`"


def _tau(path: Path) -> str:
    tables = tau_problems()
    some = {"OUTPUT.zip": [name for name in tables if name != "Simple2D"], "Simple2D_Expected_Output.zip": ["Simple2D"]}
    if path.name not in some:
        return "microdata and hierarchies, with the tables of the other archives"
    cells = sum(len(tables[name].names) for name in some[path.name])
    number = len(some[path.name])
    return f"{number} table{'s' * (number != 1)}, {cells:,} cells with a status, after unpacking"


def _numbers(path: Path) -> str:
    """How many numbers a file has that is no table of counts; a file of columns must be described to be read."""
    if of_columns(path):
        return "refused as it is described"
    return f"{sum(piece.height for table in crossed(path) for piece in table.pieces()):,} numbers, as a table"


TRIALS = {
    "jsonstat/galicia.json": Trial("--accept --place residence --attribute birth=birthplace --noise-within 1"),
    "jsonstat/statswe.json": Trial("--accept"),
    "px/14001.px": Trial("--accept"),
    "nz/dwelling.parquet": Trial(
        "--value V0001,V0002,V0003,V0004,V0005 --total column=V0005 --place code --only geography=Ward "
        "--only year=2013 --accept",
    ),
    "de/demo_100m_tile.parquet": Trial(
        scenario="de-2011-grid",
        part=lambda frame: frame.filter(pl.col("x") < 2),
        said="cells with x below 2; audited: G1 and G5",
        tables=("G1", "G5"),
    ),
    "us/il2020.pl_COMBINED_TRACT.csv.gz": Trial(scenario="pl94", audit=False, said="it has tracts and no blocks"),
    "us/pl_2010_cook_block.csv.gz": Trial(scenario="pl94", audit=False, said="99,042 blocks take hours"),
    "us/ri2018_2020Style.pl.zip": Trial(scenario="pl94"),
    "hud/public_housing_developments_7rows.csv": Trial(read=_properties),
    "pums/person_sample.csv": Trial(read=_sample),
    "pums/household_sample.csv": Trial(read=_sample),
    "ons/ptable_10_5_rule.csv.gz": Trial(read=_changes),
    "nhgis/nhgis0972_csv.zip": Trial(scenario="pl94"),
    "nhgis/nhgis1436_csv.zip": Trial(scenario="pl94"),
} | {f"tau/{path.name}": Trial(read=_tau) for path in sorted((WORLD / "tau").glob("*.zip"))}


@dataclass(frozen=True)
class Ran:
    """What a command said: its exit code, and its lines."""

    code: int
    lines: tuple[str, ...]

    @property
    def told(self) -> str:
        """A refusal, or the first line of the answer, as one line of a table."""
        said = [line.removeprefix("glasshouse: ") for line in self.lines if not line.startswith(("note:", "warning:"))]
        line = " ".join(said if self.code == 2 else said[:1])
        return (line if len(line) <= SHORT else line[:SHORT] + " ...").replace("|", "\\|")


def run(*words: str) -> Ran:
    """A command of Glasshouse, run as a user would."""
    command = [sys.executable, "-m", "glasshouse", *words]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False, env=os.environ)
    except subprocess.TimeoutExpired:
        return Ran(-1, (f"stopped after {PATIENCE} seconds",))
    said = found.stderr if found.returncode == 2 else found.stdout
    return Ran(found.returncode, tuple(line for line in said.splitlines() if line.strip()))


@dataclass(frozen=True)
class Row:
    """A line of the table, and the command that was used."""

    file: str
    read: str
    described: str
    checked: str
    bounded: str
    audited: str
    command: str = ""

    @property
    def cells(self) -> Sequence[str]:
        return [f"`{self.file}`", self.read, self.described, self.checked, self.bounded, self.audited]


def tried(name: str, folder: Path) -> Row:
    """What becomes of a file."""
    trial, path, home = TRIALS.get(name, Trial()), WORLD / name, folder / name.replace("/", "_")
    home.mkdir(exist_ok=True)
    if trial.read is not None:
        described = run("describe", str(path), "--out", str(home / "scenario"))
        try:
            read = trial.read(path)
        except InputError as error:
            read = f"refused: {error}"
        return Row(name, read, f"refused: {described.told}", "", "", "")
    if trial.scenario:
        described, scenario, said = "", trial.scenario, f"with `--scenario {trial.scenario}`"
    else:
        options = shlex.split(trial.describe)
        found = run("describe", str(path), *options, "--out", str(home / "scenario"), "--overwrite")
        if found.code:
            return Row(name, _numbers(path), f"refused: {found.told}", "", "", "")
        described = f"yes{', with options' if options else ''}: {found.told}"
        scenario, said = str(home / "scenario"), "by the scenario that was described"
    used = path
    if trial.part is not None:
        used = home / path.name
        trial.part(pl.read_parquet(path)).write_parquet(used)
    checked = run("check", str(used), "--scenario", scenario)
    command = f"glasshouse describe {path.name} {trial.describe}" if trial.describe else ""
    if checked.code == 2:
        return Row(name, f"refused: {checked.told}", described, "", "", "", command)
    part = f" ({trial.said})" if trial.said and trial.part else ""
    audited = f"not here: {trial.said}" if not trial.audit else _audit(used, scenario, home, trial.tables) + part
    bounded = _bounds(used, scenario, home) if trial.audit else ""
    return Row(name, said, described, checked.told + part, bounded, audited, command)


def _bounds(tables: Path, scenario: str, home: Path) -> str:
    out = home / "bounds"
    return run("bounds", str(tables), "--scenario", scenario, "--out", str(out)).told.removesuffix(f" -> {out}")


def _audit(tables: Path, scenario: str, home: Path, some: Sequence[str]) -> str:
    config, chosen = home / "audit.toml", f"tables = {json.dumps(some)}\n" if some else ""
    text = f'title = "{tables.name}"\nscenario = "{scenario}"\n{chosen}[input]\ntables = "{tables}"\n'
    config.write_text(text)
    said, fault = _summary(home / "audit", "audit", "--config", str(config))
    if said is None:
        return fault
    places = f"{said['blocks']:,} place{'s' * (said['blocks'] != 1)}"
    return f"{tables.name}: {said['persons']:,} records in {places}"


def _summary(out: Path, *words: str) -> tuple[dict[str, Any] | None, str]:
    """What a command found, unless a folder of an earlier run says it; or its refusal."""
    if not (out / "summary.json").exists():
        found = run(*words, "--out", str(out), "--overwrite")
        if found.code not in (0, 1):
            return None, f"refused: {found.told}" if found.code == 2 else found.told
    return json.loads((out / "summary.json").read_text(encoding="utf-8")), ""


def page(rows: Sequence[Row]) -> str:
    head = ["file", "read", "described", "checked", "bounds", "audited"]
    table = ["| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *(row.cells for row in rows))]
    used = [f"    {row.command}" for row in rows if row.command]
    number = sum(row.described.startswith("yes") for row in rows)
    said = f"`describe` gave a scenario for {number} of {len(rows)} files without an edit"
    return "\n".join([*table, "", f"{said}. Where it asked, the answers were given as options:", "", *used])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path)
    parser.add_argument("files", nargs="*")
    given = parser.parse_args()
    names = given.files or sorted(str(path.relative_to(WORLD)) for path in WORLD.glob("*/*"))
    with tempfile.TemporaryDirectory() as folder:
        made = page([tried(name, given.folder or Path(folder)) for name in names])
    if given.files:
        print(made)
    else:
        put_part(PAGE, __file__, made)


if __name__ == "__main__":
    main()
