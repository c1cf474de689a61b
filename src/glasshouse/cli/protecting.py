"""What do the protections of the command line share? One group of commands, and the way from a file to a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from glasshouse.cli.options import finish, refuse_no_file

protect_app = typer.Typer(
    rich_markup_mode=None,
    help="Protect records (swap, topdown, relocate), tables (noise, round, suppress, cellkey) or statistics of "
    "subsidised properties (properties).",
    no_args_is_help=True,
)

RecordsFile = Annotated[Path, typer.Argument(metavar="RECORDS", help="Records: CSV, CSV.gz or Parquet.")]
OutFile = Annotated[Path, typer.Option("--out", "-o", help="Where to write: .csv, .csv.gz or .parquet.")]
Seed = Annotated[int, typer.Option("--seed", help="The same seed gives the same file.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the result of another run in --out.")]


def from_file_to_file(
    command: str,
    parameters: Mapping[str, Any],
    inputs: Mapping[str, Path],
    out: Path,
    work: Callable[[], tuple[dict[str, Any], list[str]]],
    *,
    overwrite: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    """Do the work unless its result is there; `work` writes `out`, and returns what to say to scripts and to people."""
    from glasshouse.engine.manifest import Manifest
    from glasshouse.files.output import check_kind

    for path in inputs.values():
        refuse_no_file(path)
    check_kind(out)
    manifest = Manifest(command, parameters, inputs)
    said: dict[str, Any] = {"command": command, "out": str(out)}
    if manifest.done(out, overwrite=overwrite):
        return finish({**said, "unchanged": True}, as_json, quiet, [f"{out} is up to date"])
    counts, lines = work()
    manifest.write(out, counts)
    return finish({**said, **counts}, as_json, quiet, lines)
