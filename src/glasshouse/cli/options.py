"""What do the commands share? Options, the steps before the work, and the last word."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glasshouse.errors import InputError

if TYPE_CHECKING:  # heavy modules are imported by the commands that need them, so that --help is quick
    from glasshouse.files.tables import TableFile
    from glasshouse.scenarios.load import Scenario


class Interrupted(Exception):  # noqa: N818  # it is no error; it says what is kept
    """Ctrl-C in a command that keeps what is done."""


DONE, FINDINGS, BAD_INPUT, OUR_BUG, INTERRUPTED = 0, 1, 2, 3, 130

ScenarioName = Annotated[
    str,
    typer.Option("--scenario", "-s", help="A built-in scenario (see glasshouse scenarios) or the path of a folder."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on stdout.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no notes.")]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Say more on stderr; show where a bug of ours happened.")
]
Tables = Annotated[
    str, typer.Option("--tables", help="Use only these tables, as in P1,P8,P12; default: all of the scenario.")
]
Mapping_ = Annotated[
    list[str],
    typer.Option(
        "--mapping",
        metavar="LEVEL=FILE",
        help="A level that is no prefix of the code: a CSV with columns named as the place (block) and as LEVEL.",
    ),
]

Out = Annotated[Path | None, typer.Option("--out", "-o", help="The folder to write; the same command goes on in it.")]
Seed = Annotated[int, typer.Option("--seed", help="The same seed gives the same files.")]
Codebook_ = Annotated[Path | None, typer.Option("--codebook", help="The codebook of an NHGIS extract.")]
Assume = Annotated[
    str,
    typer.Option(
        "--assume-published",
        metavar="all|seen|LIST",
        help="Of tables with no number in the file: which were published, all zero?",
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the result of another run in --out.")]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        "-w",
        min=1,
        max=256,
        help="Processes of this machine (not with --executor); default: one for each core. The answer is the same.",
    ),
]
Executor = Annotated[
    str | None,
    typer.Option("--executor", metavar="dask://HOST:PORT", help="Work on a Dask cluster instead (tls:// encrypts)."),
]


def chosen_scenario(name: str, tables: str, mapping: list[str]) -> Scenario:
    from dataclasses import replace

    from glasshouse.files.mapping import read_mapping
    from glasshouse.scenarios.load import load

    scenario = load(name)
    for entry in mapping:
        level, _, path = entry.partition("=")
        if not path:
            raise InputError(f"--mapping {entry}: expected LEVEL=FILE")
        codes = read_mapping(Path(path), level, scenario.geography)
        scenario = replace(scenario, geography=scenario.geography.with_mapping(level, codes))
    return scenario.choose(table.strip() for table in tables.split(",")) if tables else scenario


def inputs_of(inputs: Mapping[str, Path], scenario: str, mapping: list[str]) -> dict[str, Path]:
    """Every file a result depends on, by role."""
    maps = {f"mapping {level}": Path(path) for level, _, path in (entry.partition("=") for entry in mapping)}
    folder = Path(scenario)
    own = sorted(folder.glob("*.toml")) + sorted(folder.glob("*.csv")) if (folder / "scenario.toml").is_file() else []
    return {**inputs, **maps, **{f"scenario {path.name}": path for path in own}}


def refuse_no_file(path: Path) -> None:
    if not path.exists():
        raise InputError(f"{path}: there is no such file")
    if path.is_dir():
        raise InputError(f"{path} is a directory; expected a file")


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


def finish(said: Mapping[str, Any], as_json: bool, quiet: bool, lines: list[str], *, always: bool = False) -> int:
    """The last word: JSON, or lines for people."""
    if as_json:
        print(json.dumps(said))
    elif always or not quiet:
        print("\n".join(lines))
    return DONE


def say(*lines: str) -> None:
    for line in lines:
        print(line, file=sys.stderr)
