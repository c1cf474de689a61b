"""What do the protections of the command line share? One group of commands."""

from __future__ import annotations

from typing import Annotated

import typer

protect_app = typer.Typer(
    rich_markup_mode=None,
    help="Protect records (swap, topdown, relocate), tables (noise, round, suppress, cellkey) or statistics of "
    "subsidised properties (properties).",
    no_args_is_help=True,
)
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the result of another run in --out.")]
