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
    from glasshouse.model.printed import Printed, Rule
    from glasshouse.scenarios.load import Scenario

TablesGiven = Annotated[
    Path, Opt("Published tables: tidy, long or wide CSV, CSV.gz or Parquet, a folder of them, or an office's zip.")
]
RecordsGiven = Annotated[Path, Opt("Records: CSV, CSV.gz or Parquet.", metavar="RECORDS")]
ScenarioName = Annotated[
    str, Opt("A built-in scenario (see glasshouse scenarios) or the path of a folder.", short="-s")
]
OutFolder = Annotated[Path | None, Opt("The folder to write; run the same command again to resume.", short="-o")]
OutFile = Annotated[Path | None, Opt("Where to write: .csv, .csv.gz or .parquet.", short="-o")]
Overwrite = Annotated[bool, Opt("Replace the result of another run in --out.")]
Seed = Annotated[int, Opt("The same seed gives the same files.")]
TABLE_ROLES = ("tables", "data", "source")  # inputs that may be a folder of table files
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
Cluster = Annotated[
    str | None,
    Opt(
        "Work on a Dask cluster instead; tls:// with certificates, or dask:// on this machine.",
        metavar="tls://HOST:PORT",
    ),
]
Insecure = Annotated[bool, Opt("Let --executor dask:// reach another machine: unencrypted, and nobody is asked who.")]


@dataclass(frozen=True)
class Reading:
    """How published tables are read."""

    codebook: Annotated[Path | None, Opt("The codebook of an NHGIS extract.")] = None
    assume_published: Annotated[
        str, Opt("Tables that are absent from the file and should be read as all zero.", metavar="all|seen|LIST")
    ] = "seen"
    missing: Annotated[
        Literal["zero", "hidden"] | None,
        Opt(
            "What a number is that has no row: 0 as it would be printed, or hidden (anything from 0 up); default: as "
            "the scenario says, else zero."
        ),
    ] = None
    rounded: Annotated[
        str | None,
        Opt(
            "Numbers are rounded to multiples of BASE: random (default), nearest, half-up, up or down; kept: a printed "
            "0 is a 0.",
            metavar="BASE[:HOW[:kept]]",
        ),
    ] = None
    cell_key: Annotated[
        Path | None,
        Opt("Numbers are changed by cell keys, as this p-table allows (count, change or pcv, pvalue).", metavar="FILE"),
    ] = None
    noise_within: Annotated[float | None, Opt("Numbers have noise, at most this much.", metavar="NUMBER", least=0)] = (
        None
    )
    marker: Annotated[
        Mapping[str, str] | None,
        Opt(
            "What a text or status instead of a number means: c=1..4, ..=any, blank=0, p=shown (the number stands).",
            metavar="TEXT=MEANING",
        ),
    ] = None
    thousands: Annotated[
        str | None, Opt("The sign between thousands, as in 1,234; a dot makes the comma decimal.", metavar="SIGN")
    ] = None
    exact: Annotated[bool, Opt("The numbers are exact counts, whatever the scenario says of how they are printed.")] = (
        False
    )
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
        given = {
            "missing": self.missing if self.missing != "zero" else None,
            "rounded": self.rounded,
            "noise_within": self.noise_within,
            "marker": " ".join(f"{mark}={said}" for mark, said in sorted((self.marker or {}).items())),
            "thousands": self.thousands,
            "exact": self.exact,
        }
        told = {name: str(value) for name, value in given.items() if value not in (None, False, "")}
        return {"assume_published": self.assume_published, **told}

    @property
    def inputs(self) -> dict[str, Path]:
        given = {"codebook": self.codebook, "all_places": self.all_places, "cell_key": self.cell_key}
        return {role: path for role, path in given.items() if path is not None}

    def open(self, tables: Path, scenario: Scenario) -> TableFile:
        """The table file, read this way."""
        from glasshouse.files.tables import open_tables

        printed = self.printed(scenario.printed)
        return open_tables(tables, scenario, self.codebook, self.all_places, self.missing, printed)

    def printed(self, own: Printed) -> Printed:
        """How numbers are printed: as the scenario says, where no option says otherwise."""
        from glasshouse.model.printed import Noisy, Printed
        from glasshouse.scenarios.printed import markers, one_rule, read_changes, rounded

        rules: list[Rule] = [rounded(self.rounded)] if self.rounded is not None else []
        rules += [read_changes(self.cell_key)] if self.cell_key is not None else []
        rules += [Noisy(self.noise_within)] if self.noise_within is not None else []
        if self.exact and rules:
            raise InputError(f"--exact: and the numbers are {rules[0].told}; give one or the other")
        rule = None if self.exact else one_rule(rules) or own.rule
        given = markers(self.marker or {})
        thousands, decimal = own.thousands, own.decimal
        if self.thousands is not None:
            thousands, decimal = self.thousands, "," if self.thousands == "." else "."
        return Printed(rule, {**own.markers, **given}, self.missing or own.missing, thousands, decimal)


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
    insecure: Insecure = False

    @property
    def crew(self) -> Crew:
        return crew_of(self.workers, self.executor, insecure=self.insecure)


@dataclass(frozen=True)
class Solving(Run):
    """How a command is run that puts questions to solvers."""

    effort: Annotated[float, Opt("Solver steps for each open part; more decides more, the same always.", least=0)] = 1.0
    seconds: Annotated[
        float, Opt("Wall clock for each open part, 0 for none; what it stops is redone next time.", least=0)
    ] = 300.0


def crew_of(workers: int | None, executor: str | None, *, insecure: bool) -> Crew:
    """Who does the work: processes of this machine, or a cluster."""
    from glasshouse.engine.workers import Crew

    if workers is not None and executor is not None:
        raise InputError("--workers and --executor: the cluster has its own workers; give one or the other")
    return Crew(workers or len(os.sched_getaffinity(0)), executor, insecure)


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
    from glasshouse.files.codebook import usual_codebook
    from glasshouse.files.frames import table_files

    given = {role: path for role, path in inputs.items() if path is not None}
    if "codebook" not in given:  # then one that lies beside a file is used
        found = {f"codebook of {role}": usual_codebook(path) for role, path in given.items()}
        given |= {role: path for role, path in found.items() if path.is_file()}
    given |= {f"mapping {level}": path for level, path in (mapping or {}).items()}
    for role, path in list(given.items()):
        if not path.exists():
            raise InputError(f"{path}: there is no such file")
        if path.is_dir() and role in TABLE_ROLES:
            del given[role]
            given |= {f"{role} {file.name}": file for file in table_files(path)[0]}
        elif path.is_dir():
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
    seen = {scenario.official[variable][0] for _, variable in file.seen.variables}
    absent = [table for table in file.absent(assume) if table not in seen]
    elsewhere = [table for table in file.absent(assume) if table in seen]
    if absent:
        notes.append(
            f"warning: no number of {_families(absent)}: taken as unpublished (--assume-published says otherwise)"
        )
    if elsewhere:
        levels = " and ".join(dict.fromkeys(scenario.by_table[table].level for table in elsewhere))
        notes.append(
            f"warning: no number of {_families(elsewhere)} by {levels}, only for other areas: taken as unpublished "
            "there (--assume-published says otherwise)"
        )
    if short := file.seen.short:
        notes.append(
            f"warning: totals in {file.path.name} do not add up when numbers without a row are read as 0 (rows missing "
            f"there: {short:,}); if rows were left out to hide them, say --missing hidden"
        )
    if totals := file.seen.totals_aside:
        notes.append(
            f"note: {totals:,} totals left aside that no table of the scenario has (a table by fewer recodes would)"
        )
    if others := file.seen.passed_over:
        notes.append(f"note: files not read: {', '.join(others[:12])}{', ...' if len(others) > 12 else ''}")
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
