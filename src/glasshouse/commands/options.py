"""Which options do commands share? How tables are read, and how a command is run; each group is declared here, once."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from glasshouse.commands.declaration import Opt
from glasshouse.errors import InputError

if TYPE_CHECKING:  # heavy modules are imported by the commands that need them, so that --help is quick
    from glasshouse.engine.workers import Crew
    from glasshouse.files.tables import TableFile
    from glasshouse.scenarios.load import Scenario

TablesGiven = Annotated[Path, Opt("Published tables: long or wide CSV, CSV.gz or Parquet, or an office's zip.")]
RecordsGiven = Annotated[Path, Opt("Records: CSV, CSV.gz or Parquet.", metavar="RECORDS")]
ScenarioName = Annotated[
    str, Opt("A built-in scenario (see glasshouse scenarios) or the path of a folder.", short="-s")
]
OutFolder = Annotated[Path | None, Opt("The folder to write; run the same command again to resume.", short="-o")]
OutFile = Annotated[Path | None, Opt("Where to write: .csv, .csv.gz or .parquet.", short="-o")]
Overwrite = Annotated[bool, Opt("Replace the result of another run in --out.")]
Seed = Annotated[int, Opt("The same seed gives the same files.")]
Only = Annotated[
    tuple[str, ...], Opt("Use only these tables, as in P1,P8,P12; default: all of the scenario.", flag="--tables")
]
Maps = Annotated[
    Mapping[str, Path] | None,
    Opt(
        "A level that is no prefix of the code: a CSV with columns named as the place and as LEVEL.",
        metavar="LEVEL=FILE",
    ),
]
Threads = Annotated[int, Opt("Threads to count in; the answer does not depend on it.", short="-w", least=1, most=256)]
Processes = Annotated[
    int | None,
    Opt(
        "Processes of this machine (not with --executor); default: one for each core. The answer is the same.",
        short="-w",
        least=1,
        most=256,
    ),
]
Cluster = Annotated[str | None, Opt("Work on a Dask cluster instead (tls:// encrypts).", metavar="dask://HOST:PORT")]


@dataclass(frozen=True)
class Reading:
    """How published tables are read."""

    codebook: Annotated[Path | None, Opt("The codebook of an NHGIS extract.")] = None
    assume_published: Annotated[
        str, Opt("Tables that are absent from the file and should be read as all zero.", metavar="all|seen|LIST")
    ] = "seen"
    missing: Annotated[
        Literal["zero", "hidden"],
        Opt("What a number is that has no row in a long file: 0, or hidden (it may be anything from 0 up)."),
    ] = "zero"
    all_places: Annotated[
        Path | None,
        Opt("A file with the code of every place there is; default: those that the tables name.", metavar="FILE"),
    ] = None
    mapping: Maps = None

    def scenario(self, name: str, only: Iterable[str] = ()) -> Scenario:
        return chosen_scenario(name, only, self.mapping)

    @property
    def parameters(self) -> dict[str, str]:
        """How it was read, as the manifest tells it; what is as usual is not told."""
        usual = {"assume_published": self.assume_published}
        return usual | ({"missing": self.missing} if self.missing != "zero" else {})

    @property
    def inputs(self) -> dict[str, Path]:
        given = {"codebook": self.codebook, "all_places": self.all_places}
        return {role: path for role, path in given.items() if path is not None}

    def open(self, tables: Path, scenario: Scenario) -> TableFile:
        """The table file, read this way."""
        from glasshouse.files.tables import open_tables

        return open_tables(tables, scenario, self.codebook, self.all_places, self.missing)


@dataclass(frozen=True)
class SomeTables(Reading):
    """How published tables are read, and which of them."""

    only: Only = ()


@dataclass(frozen=True)
class Run:
    """How a command is run that works unit by unit."""

    out: OutFolder = None
    overwrite: Overwrite = False
    workers: Processes = None
    executor: Cluster = None

    @property
    def crew(self) -> Crew:
        from glasshouse.engine.workers import Crew

        if self.workers is not None and self.executor is not None:
            raise InputError("--workers and --executor: the cluster has its own workers; give one or the other")
        return Crew(self.workers or len(os.sched_getaffinity(0)), self.executor)


@dataclass(frozen=True)
class Solving(Run):
    """How a command is run that puts questions to solvers."""

    effort: Annotated[float, Opt("Solver steps for each open part; more decides more, the same always.", least=0)] = 1.0
    seconds: Annotated[
        float, Opt("Wall clock for each open part, 0 for none; what it stops is redone next time.", least=0)
    ] = 300.0


def chosen_scenario(name: str, only: Iterable[str] = (), mapping: Mapping[str, Path] | None = None) -> Scenario:
    """A scenario with only some of its tables, and with levels that mappings give."""
    from glasshouse.files.mapping import read_mapping
    from glasshouse.scenarios.load import load

    scenario = load(name)
    for level, path in (mapping or {}).items():
        codes = read_mapping(path, level, scenario.geography)
        scenario = replace(scenario, geography=scenario.geography.with_mapping(level, codes))
    return scenario.choose(only) if only else scenario


def inputs_of(
    inputs: Mapping[str, Path | None], scenario: str = "", mapping: Mapping[str, Path] | None = None
) -> dict[str, Path]:
    """Every file a result depends on, by role; those that are not there are refused."""
    given = {role: path for role, path in inputs.items() if path is not None}
    given |= {f"mapping {level}": path for level, path in (mapping or {}).items()}
    for path in given.values():
        if not path.exists():
            raise InputError(f"{path}: there is no such file")
        if path.is_dir():
            raise InputError(f"{path} is a directory; expected a file")
    folder = Path(scenario)
    own = scenario and (folder / "scenario.toml").is_file()
    files = sorted(folder.glob("*.toml")) + sorted(folder.glob("*.csv")) if own else []
    return {**given, **{f"scenario {path.name}": path for path in files}}


def notes_on(file: TableFile, scenario: Scenario, assume: str) -> list[str]:
    """What a reader should know of the numbers that were not used."""
    notes = []
    unchosen = {t: n for t, n in file.seen.ignored.items() if t in scenario.unchosen}
    outside = {t: n for t, n in file.seen.ignored.items() if t not in unchosen}
    if unchosen:
        notes.append(f"note: left aside by --tables: {_families(unchosen)}")
    if outside:
        total = sum(outside.values())
        notes.append(
            f"note: {total:,} numbers of official tables outside the scenario left aside: {_families(outside)}"
        )
    if absent := file.absent(assume):
        notes.append(
            f"warning: no number of {_families(absent)}: taken as unpublished (--assume-published says otherwise)"
        )
    if short := file.seen.short:
        notes.append(
            f"warning: totals in {file.path.name} do not add up when numbers without a row are read as 0 (rows missing "
            f"there: {short:,}); if rows were left out to hide them, say --missing hidden"
        )
    if columns := file.seen.columns:
        notes.append(f"note: columns not read: {', '.join(columns[:12])}{', ...' if len(columns) > 12 else ''}")
    return notes


def _families(names: Iterable[str]) -> str:
    """Tables by name, runs of iterations together: P12, P12A-I, PCT12."""
    runs: list[list[str]] = []
    for name in sorted(names, key=_natural):
        if runs and _natural(name)[:2] == _natural(runs[-1][-1])[:2] and _next_letter(runs[-1][-1]) == name:
            runs[-1].append(name)
        else:
            runs.append([name])
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]}-{run[-1][-1]}" for run in runs)


def _natural(name: str) -> tuple[str, int, str]:
    """P9 before P10, P12 before P12A."""
    match = re.fullmatch(r"(\D*)(\d*)(.*)", name)
    return (match[1], int(match[2] or 0), match[3]) if match else (name, 0, "")


def _next_letter(name: str) -> str:
    return name[:-1] + chr(ord(name[-1]) + 1)
